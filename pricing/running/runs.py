"""A whole run as a person or a schedule starts it: alone on its database, tidied up, noted, announced."""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from pricing import notify
from pricing.collect import refresh
from pricing.errors import RunInProgress, RunMade, StoreError
from pricing.money.exchange import Exchange
from pricing.parsing.reader import Readers
from pricing.registry import find_provider, is_witness
from pricing.running.gather import Fetcher
from pricing.running.lock import run_lock
from pricing.running.reports import ProviderReport, RunReport
from pricing.settings import Settings
from pricing.storage.memory import RunStatus
from pricing.storage.stored import AHEAD
from pricing.store import Store
from pricing.tokens.litellm import LITELLM
from pricing.tokens.tokenprices import Asking

__all__ = ["LAST_GOOD_RUN", "LAST_RUN", "RECENT", "SCHEDULES", "last_good_run", "run"]

logger = logging.getLogger(__name__)

# Name under which the store keeps how the last run over all sources went.
LAST_RUN = "last_run"
# The same of the last one in which a source answered.
LAST_GOOD_RUN = "last_good_run"
# Names under which the store keeps what each scheduler means to do; its machine and process follow.
SCHEDULES = "schedule:"
# A run that another machine began this short a time before is not made again; clocks and jitter differ.
RECENT = timedelta(hours=12)


def last_good_run(store: Store, now: datetime) -> datetime | None:
    """Return when the last run over all sources began in which a provider answered; never ahead of now."""
    noted = store.noted(LAST_GOOD_RUN)
    at = None if noted is None else datetime.fromisoformat(noted["started_at"])
    return None if at is None or at > now + AHEAD else at


def run(
    names: Sequence[str] | None,
    store: Store,
    settings: Settings,
    client: Fetcher,
    now: datetime,
    progress: Callable[[ProviderReport], None] = lambda report: None,
    *,
    command: str = "breakeven prices refresh",
    wait_s: float = 0.0,
    unless_since: datetime | None = None,
) -> RunReport:
    """
    Refresh prices under the lock of the database, remove what is past its time, and announce what happened.

    Args:
        names: Provider keys, and `litellm` for the prices of API tokens; None or empty for all.
        store: Where prices are kept.
        settings: Keys, retention, who is told.
        client: Sends the requests.
        now: The time that the prices are seen.
        progress: Is told of each provider as it is done.
        command: What runs, for whoever finds the lock taken.
        wait_s: How long to wait for another run. [s]
        unless_since: Nothing is done where a good run began after this; None: whatever was done.

    Raises:
        RunInProgress: if another process refreshes this database, or (RunMade) has just done so.
        StoreError: if the database cannot be used.
    """
    try:
        with run_lock(store, now, command=command, wait_s=wait_s):
            _leave_what_is_made(store, unless_since, now)
            mended = tuple(store.mend_clock(now))
            for line in mended:
                logger.info("%s", line)
            report = _refreshed(names, store, settings, client, now, progress)
            report = replace(report, notes=(*mended, *report.notes))
            removed = 0
            if settings.retention_days is not None:
                removed = store.remove_ended(now - timedelta(days=settings.retention_days))
            if not names:
                summary = _summary(report, removed, command)
                store.note(LAST_RUN, summary)
                if _has_brought_prices(report):
                    store.note(LAST_GOOD_RUN, summary)
    except RunInProgress:
        raise
    except StoreError as error:
        if settings.notify_url is not None:
            notify.send(settings.notify_url, *notify.failure(str(error)))
        raise
    if settings.notify_url is not None:
        told = notify.announcement(report, store.moves(now), settings.notify_move_percent)
        if told is not None:
            notify.send(settings.notify_url, *told)
    return report


def _has_brought_prices(report: RunReport) -> bool:
    """Whether a provider answered; a catalogue of others' prices confirms them and brings none."""
    return any(part.status is RunStatus.OK and not is_witness(part.provider) for part in report.providers)


def _leave_what_is_made(store: Store, since: datetime | None, now: datetime) -> None:
    """Raise where a good run began later; asked under the lock, since it may have ended a moment ago."""
    if since is None:
        return
    last = last_good_run(store, now)
    if last is not None and last > since:
        raise RunMade(
            f"database {store.label}: the run of {last:%Y-%m-%d %H:%M} UTC has brought prices; nothing to do"
        )


def _refreshed(
    names: Sequence[str] | None,
    store: Store,
    settings: Settings,
    client: Fetcher,
    now: datetime,
    progress: Callable[[ProviderReport], None],
) -> RunReport:
    """Refresh the providers that are asked for, and beside them the prices of API tokens; kept one by one."""
    rented = [name for name in names or () if name != LITELLM.name]
    tokens = Asking(client) if not names or len(rented) < len(names) else None
    if names and not rented:
        report = RunReport(started_at=now, finished_at=now, providers=())
    else:
        report = _rents(rented or None, store, settings, client, now, progress)
    if tokens is None:
        return report
    return replace(report, token_prices=store.keep_token_prices(tokens.brought(), now))


def _rents(
    names: Sequence[str] | None,
    store: Store,
    settings: Settings,
    client: Fetcher,
    now: datetime,
    progress: Callable[[ProviderReport], None],
) -> RunReport:
    """Refresh with the rates of exchange of the day, where a price in another currency may come."""
    known = store.exchange_state()
    with Readers() as readers:
        if names and not any(find_provider(name).currencies for name in names):
            return refresh(names, store, settings, client, now, progress, fx=known.rates, reader=readers)
        exchange = Exchange(known, client, now)
        report = refresh(names, store, settings, client, now, progress, fx=exchange.rates_for, reader=readers)
    if exchange.brought is not None:
        store.keep_exchange_rates(exchange.brought, now)
    return replace(report, exchange=exchange.report())


def _summary(report: RunReport, removed: int, command: str) -> Mapping[str, Any]:
    statuses = [part.status for part in report.providers]
    counts = {str(status): statuses.count(status) for status in RunStatus}
    total = {
        name: sum(getattr(part, name) for part in report.providers)
        for name in ("offers", "verified", "quarantined", "rejected", "changed")
    }
    failed = [part.provider for part in report.providers if part.status is RunStatus.FAILED]
    return {
        "run_id": report.run_id,
        "started_at": f"{report.started_at:%Y-%m-%dT%H:%M:%SZ}",
        "finished_at": f"{report.finished_at:%Y-%m-%dT%H:%M:%SZ}",
        "command": command,
        "exit_code": report.exit_code,
        "sources": counts,
        "failed": failed,
        "removed": removed,
        "exchange_rates": None if report.exchange is None else report.exchange.to_document(),
        "token_prices": None if report.token_prices is None else report.token_prices.to_document(),
        **total,
    }
