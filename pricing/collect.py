"""A run: several providers side by side, each stored as a whole, none in the way of another."""

import logging
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Protocol

from planner.currencies import FxRate, all_currencies
from pricing.errors import PricingError, StoreError
from pricing.gather import Fetcher, Gathered, fetch_pages, read
from pricing.memory import KnownPrice, ProviderResult, RunStatus
from pricing.offer import Offer, Verdict
from pricing.provider import Provider, ProviderClass
from pricing.registry import find_provider, kinds, providers
from pricing.settings import Settings
from pricing.verify import verify

if TYPE_CHECKING:
    from pricing.writing import RecordReport

__all__ = ["ProviderReport", "RunReport", "Shelf", "judge", "refresh", "source_names"]

logger = logging.getLogger(__name__)

REFRESH_SCHEMA = "breakeven.refresh/1"
# Providers are asked side by side; more threads than this gain nothing and open many connections at once.
WORKERS = 12
_COUNTS = (
    *("offers", "verified", "quarantined", "rejected", "problems"),
    *("opened", "unchanged", "closed", "seconds"),
)


class Shelf(Protocol):
    """What a run needs of the store; `pricing.store.Store` is one."""

    def known_prices(self, provider: str | None = None) -> list[KnownPrice]:
        """Return what new prices are compared with."""

    def witness_prices(self, provider: str | None = None) -> list[KnownPrice]:
        """Return what catalogues of others say."""

    def record(self, result: ProviderResult) -> "RecordReport":
        """Store one provider's result in one transaction."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderReport:
    """How one provider's part of a run went."""

    provider: str
    title: str
    status: RunStatus
    reason: str | None
    offers: int = 0
    verified: int = 0
    quarantined: int = 0
    rejected: int = 0
    problems: int = 0
    opened: int = 0  # new or changed prices
    unchanged: int = 0
    closed: int = 0  # changed, sold out or gone
    seconds: float = 0.0
    notes: tuple[str, ...] = ()

    def to_document(self) -> Mapping[str, object]:
        """Return the provider's part of `breakeven.refresh/1`."""
        counts: dict[str, object] = {name: getattr(self, name) for name in _COUNTS}
        return {"provider": self.provider, "title": self.title, "status": str(self.status)} | (
            counts | {"reason": self.reason, "notes": list(self.notes)}
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RunReport:
    """How a run went, provider by provider, in the order asked for."""

    started_at: datetime
    finished_at: datetime
    providers: tuple[ProviderReport, ...]

    @property
    def exit_code(self) -> int:
        """0 all done or skipped, 1 some failed, 3 nothing could be done."""
        statuses = Counter(report.status for report in self.providers)
        if not statuses[RunStatus.FAILED]:
            return 0 if statuses[RunStatus.OK] else 3
        return 1 if statuses[RunStatus.OK] else 3

    def to_document(self) -> Mapping[str, object]:
        """Return the run as `breakeven.refresh/1`."""
        return {
            "schema": REFRESH_SCHEMA,
            "started_at": self.started_at.isoformat().replace("+00:00", "Z"),
            "finished_at": self.finished_at.isoformat().replace("+00:00", "Z"),
            "providers": [report.to_document() for report in self.providers],
        }


def source_names(names: Iterable[str] | None = None) -> list[str]:
    """
    Return the keys of the sources to ask: those named, or all.

    Raises:
        UnknownProvider: if there is no such source; with close matches.
    """
    chosen = [find_provider(name).name for name in names or ()]
    return list(dict.fromkeys(chosen)) or sorted(providers(), key=_witnesses_first)


def refresh(
    names: Sequence[str] | None,
    store: Shelf,
    settings: Settings,
    client: Fetcher,
    now: datetime,
    progress: Callable[[ProviderReport], None] = lambda report: None,
    *,
    fx: Mapping[str, FxRate] | None = None,
) -> RunReport:
    """
    Ask providers for their prices, judge and store them.

    Fetching and reading run side by side, judging and storing in the calling thread, one short transaction
    for each provider. A provider that fails leaves the results of the others and all stored prices intact.

    Args:
        names: Provider keys; None or empty for all.
        store: Where prices are kept.
        settings: Keys of the providers that need one.
        client: Sends the requests.
        now: The time that the prices are seen.
        progress: Is told of each provider as it is done.
        fx: Exchange rates by currency; the bundled ones where left out.

    Raises:
        UnknownProvider: if a name is not that of a source.
        StoreError: if the database cannot be read or written.
    """
    chosen = [find_provider(name) for name in source_names(names)]
    rates = all_currencies() if fx is None else fx
    start = time.monotonic()
    reports: dict[str, ProviderReport] = {}

    def done(report: ProviderReport) -> None:
        reports[report.provider] = report
        logger.info("%s: %s, %d offers, %s", report.provider, report.status, report.offers, report.reason)
        progress(report)

    def ask(provider: Provider) -> tuple[ProviderResult, float]:
        begun = time.monotonic()
        return _gather(provider, client, settings, now, rates), time.monotonic() - begun

    asked = []
    for provider in chosen:
        if provider.requires_key and not settings.key_of(provider.name):
            done(_skip(provider, store, now))
        else:
            asked.append(provider)
    with _pool(len(asked)) as pool:
        running = {pool.submit(ask, provider): provider for provider in asked}
        for future in as_completed(running):
            result, seconds = future.result()
            done(_settle(running[future], result, store, rates, seconds))
    ordered = tuple(reports[provider.name] for provider in chosen)
    finished = now + timedelta(seconds=time.monotonic() - start)
    return RunReport(started_at=now, finished_at=finished, providers=ordered)


def judge(offers: Sequence[Offer], store: Shelf, fx: Mapping[str, FxRate]) -> tuple[Offer, ...]:
    """Return the offers with their verdicts, by what the store knows of the whole market."""
    known = [*store.known_prices(), *store.witness_prices()]
    usd_per_unit = {currency: rate.usd_per_unit for currency, rate in fx.items()}
    return tuple(verify(offers, known, kinds=kinds(), usd_per_unit=usd_per_unit))


@contextmanager
def _pool(count: int) -> Iterator[ThreadPoolExecutor]:
    """Yield threads; when the run is interrupted those not begun are dropped at once."""
    pool = ThreadPoolExecutor(max_workers=max(1, min(WORKERS, count)), thread_name_prefix="provider")
    try:
        yield pool
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _gather(
    provider: Provider, client: Fetcher, settings: Settings, now: datetime, fx: Mapping[str, FxRate]
) -> ProviderResult:
    """Fetch and read one provider; whatever goes wrong becomes the reason of its failure."""
    found = Gathered()
    reason: str | None = None
    begun = time.monotonic()
    try:
        pages, missing = fetch_pages(provider, client, settings.key_of(provider.name))
        found = read(provider, pages, seen_at=now, fx=fx)
        found.problems += missing
    except PricingError as error:
        reason = str(error)
    except Exception as error:  # the guard of a run: a fault in one module must not stop the others
        logger.exception("%s: a fault in its module", provider.name)
        reason = f"a fault in its module: {type(error).__name__}: {error}"
    return ProviderResult(
        provider=provider.name,
        status=RunStatus.OK if reason is None else RunStatus.FAILED,
        reason=reason,
        offers=tuple(found.offers),
        problems=tuple(found.problems),
        page_digests=found.page_digests,
        started_at=now,
        finished_at=now + timedelta(seconds=time.monotonic() - begun),
    )


def _settle(
    provider: Provider, result: ProviderResult, store: Shelf, fx: Mapping[str, FxRate], seconds: float
) -> ProviderReport:
    """Judge and store what one provider brought."""
    judged = replace(result, offers=judge(result.offers, store, fx)) if result.offers else result
    verdicts = Counter(offer.verdict for offer in judged.offers)
    stored = store.record(judged)
    return ProviderReport(
        provider=provider.name,
        title=provider.title,
        status=judged.status,
        reason=judged.reason,
        offers=len(judged.offers),
        verified=verdicts[Verdict.VERIFIED],
        quarantined=verdicts[Verdict.QUARANTINED],
        rejected=verdicts[Verdict.REJECTED],
        problems=len(judged.problems),
        opened=stored.opened,
        unchanged=stored.extended,
        closed=stored.closed,
        seconds=seconds,
        notes=stored.notes,
    )


def _skip(provider: Provider, store: Shelf, now: datetime) -> ProviderReport:
    variable = f"BREAKEVEN_{provider.name.upper()}_API_KEY"
    reason = f"needs a key: set {variable}{f' ({provider.key_help})' if provider.key_help else ''}"
    result = ProviderResult(
        provider=provider.name,
        status=RunStatus.SKIPPED,
        reason=reason,
        offers=(),
        problems=(),
        started_at=now,
        finished_at=now,
    )
    try:
        store.record(result)
    except StoreError:
        logger.warning("%s: that it was skipped could not be noted", provider.name)
    return ProviderReport(
        provider=provider.name, title=provider.title, status=RunStatus.SKIPPED, reason=reason
    )


def _witnesses_first(name: str) -> tuple[bool, str]:
    """Order sources so that witnesses are there when the prices they confirm are judged."""
    return providers()[name].kind is not ProviderClass.WITNESS, name
