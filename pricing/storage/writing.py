"""How a run becomes rows: an unchanged price extends its interval, a changed one opens a new one."""

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal

from sqlalchemy import Connection, delete, func, insert, select, update

from pricing.offer import Offer, Verdict
from pricing.storage.columns import to_micros
from pricing.storage.confirmed import remember
from pricing.storage.intervals import Changes, Interval, page_of
from pricing.storage.memory import Origin, ProviderResult, RunStatus
from pricing.storage.past import Past
from pricing.storage.rows import (
    PRICE,
    REVIEW,
    RUN,
    SERIES,
    SOURCE,
    bump_revision,
    price_row,
    series_ids,
    source_ids,
    update_prices,
)
from pricing.storage.superseding import providers_of, supersede_snapshot

# Problems kept with a run; the rest is counted.
KEPT_PROBLEMS = 200
# What an `Interval` takes over as it stands, in its order, and the price behind it.
_READ = (
    "id",
    "series_id",
    "verdict",
    "reasons",
    "currency",
    "price_original",
    "first_seen_at",
    "last_seen_at",
    "usd_per_hour",
    "usd_per_month_cap",
)
# Before any observation.
EARLIEST = datetime(1, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordReport:
    """What storing one provider's result changed."""

    run_id: int
    opened: int  # new intervals
    extended: int  # unchanged prices
    closed: int  # intervals that ended: changed, sold out, vanished, confirmed otherwise
    duplicates: int  # the same offer twice in one answer; the verified, then the cheapest was kept
    notes: tuple[str, ...] = ()


def record(connection: Connection, result: ProviderResult, offers: Mapping[str, Offer]) -> RecordReport:
    """
    Store one provider's result within the given transaction, which no other writer can enter.

    Old observations (a saved answer replayed late) become history and never the current price.

    Args:
        connection: In the transaction.
        result: The run.
        offers: Its offers as `distinct` gives them, worked out before the transaction to keep that short.
    """
    changes = Changes()
    run_id = _insert_run(connection, result, offers.values())
    if offers:
        series = series_ids(connection, offers)
        sources = source_ids(connection, {offer.source_url for offer in offers.values()})
        oldest = min(offer.seen_at for offer in offers.values())
        is_late = _newest_seen_at(connection, result.provider, run_id) > oldest
        intervals = _intervals(connection, result.provider, only_open=not is_late)
        for offer_id, offer in offers.items():
            source = sources[offer.source_url]
            row = price_row(offer, series[offer_id], source, Origin.REFRESH, run_id)
            changes.observe(offer, row, intervals.get(series[offer_id], ()))
        if result.status == RunStatus.OK and not is_late:
            seen = {series[offer_id]: offer for offer_id, offer in offers.items()}
            missing = {page_of(url) for url in result.missing}
            changes.close_vanished(seen, intervals, is_whole=result.source == "refresh", missing=missing)
        _write(connection, changes, run_id)
        confirmed = [one for ids in changes.promoted.values() for one in ids]
        remember(connection, result.provider, max(offer.seen_at for offer in offers.values()), confirmed)
        _supersede(connection, result, offers.values(), is_whole=not is_late and not changes.notes)
    closed = sum(map(len, changes.closed.values()))
    counts = {"opened_count": len(changes.opened), "closed_count": closed}
    connection.execute(update(RUN).where(RUN.c.id == run_id).values(counts))
    bump_revision(connection)
    return RecordReport(
        run_id=run_id,
        opened=len(changes.opened),
        extended=sum(map(len, changes.extended.values())) + changes.repeated,
        closed=closed,
        duplicates=len(result.offers) - len(offers),
        notes=tuple(changes.notes),
    )


def distinct(offers: Iterable[Offer]) -> dict[str, Offer]:
    """Return one offer of each series: where an answer holds it twice, the verified and then the cheapest."""
    chosen: dict[str, Offer] = {}
    for offer in offers:
        offer_id = offer.id
        other = chosen.get(offer_id)
        if other is None or _preference(offer) < _preference(other):
            chosen[offer_id] = offer
    return chosen


def replace_snapshot(
    connection: Connection, offers: Sequence[Offer], closed_at: Sequence[datetime | None]
) -> None:
    """Write the bundled prices, one row each, in place of those of an older version of this program."""
    connection.execute(delete(PRICE).where(PRICE.c.origin == Origin.SNAPSHOT))
    identifiers = [offer.id for offer in offers]
    series = series_ids(connection, dict(zip(identifiers, offers, strict=True)))
    sources = source_ids(connection, {offer.source_url for offer in offers})
    rows = []
    for offer_id, offer, end in zip(identifiers, offers, closed_at, strict=True):
        row = price_row(offer, series[offer_id], sources[offer.source_url], Origin.SNAPSHOT, None)
        rows.append(row | {"closed_at": end, "closed_why": None if end is None else "newer"})
    connection.execute(insert(PRICE), rows)
    for provider, seen_at in providers_of(connection):
        supersede_snapshot(connection, provider, seen_at)
    bump_revision(connection)


def replace_history(connection: Connection, past: Sequence[tuple[Offer, Sequence[Past]]]) -> None:
    """Write the bundled observations of past days as closed intervals, in place of older editions."""
    connection.execute(delete(PRICE).where(PRICE.c.origin == Origin.HISTORY))
    wanted = {offer.id: offer for offer, _ in past}
    series = series_ids(connection, wanted)
    sources = source_ids(connection, {one.source for _, intervals in past for one in intervals})
    rows = []
    for offer, intervals in past:
        row = price_row(offer, series[offer.id], 0, Origin.HISTORY, None)
        rows += [
            row
            | {
                "source_id": sources[one.source],
                "usd_per_hour": one.usd_per_hour,
                "first_seen_at": one.first_seen_at,
                "last_seen_at": one.last_seen_at,
                "closed_at": one.closed_at,
                "closed_why": one.closed_why,
                "times_seen": one.times_seen,
            }
            for one in intervals
        ]
    connection.execute(insert(PRICE), rows)


def _write(connection: Connection, changes: Changes, run_id: int) -> None:
    for (seen_at, available), ids in changes.extended.items():
        values = {"last_seen_at": seen_at, "times_seen": PRICE.c.times_seen + 1, "run_id": run_id}
        update_prices(connection, ids, values if available is None else values | {"available": available})
    for reasons, ids in changes.promoted.items():
        update_prices(connection, ids, {"verdict": str(Verdict.VERIFIED), "reasons": reasons})
    for reasons, ids in changes.reasons.items():
        update_prices(connection, ids, {"reasons": reasons})
    for (closed_at, why), ids in changes.closed.items():
        update_prices(connection, ids, {"closed_at": closed_at, "closed_why": why})
    if changes.opened:
        connection.execute(insert(PRICE), changes.opened)


def _supersede(
    connection: Connection, result: ProviderResult, offers: Iterable[Offer], *, is_whole: bool
) -> None:
    """Close the bundled prices that a run makes superfluous; saved answers may be a part of all there is."""
    is_all = result.status == RunStatus.OK and result.source == "refresh" and not result.missing
    seen: dict[str, datetime] = {}
    verified: set[str] = set()
    for offer in offers:
        if offer.witness is None:
            seen[offer.provider] = max(offer.seen_at, seen.get(offer.provider, offer.seen_at))
            if offer.verdict == Verdict.VERIFIED:
                verified.add(offer.provider)
    for provider in verified:
        supersede_snapshot(connection, provider, seen[provider] if is_whole and is_all else None)


def _insert_run(connection: Connection, result: ProviderResult, offers: Iterable[Offer]) -> int:
    verdicts: Counter[str] = Counter()
    newest: datetime | None = None
    for offer in offers:
        verdicts[offer.verdict] += 1
        newest = offer.seen_at if newest is None else max(newest, offer.seen_at)
    problems = [{"what": p.what, "why": p.why, "raw": p.raw} for p in result.problems[:KEPT_PROBLEMS]]
    values = {
        "provider": result.provider,
        "source": result.source,
        "status": str(result.status),
        "reason": result.reason,
        "started_at": result.started_at,
        "finished_at": result.finished_at,
        "newest_seen_at": newest,
        "verified_count": verdicts[Verdict.VERIFIED],
        "quarantined_count": verdicts[Verdict.QUARANTINED],
        "rejected_count": verdicts[Verdict.REJECTED],
        "opened_count": 0,
        "closed_count": 0,
        "problem_count": len(result.problems),
        "problems": json.dumps(problems, ensure_ascii=False) if problems else None,
        "page_digests": json.dumps(dict(result.page_digests)) if result.page_digests else None,
    }
    key = connection.execute(insert(RUN).values(values)).inserted_primary_key
    assert key is not None
    return int(key[0])


def _newest_seen_at(connection: Connection, collector: str, run_id: int) -> datetime:
    """Return the newest observation of all earlier runs of this collector."""
    query = select(func.max(RUN.c.newest_seen_at)).where(RUN.c.provider == collector, RUN.c.id < run_id)
    return connection.execute(query).scalar() or EARLIEST


def _intervals(connection: Connection, collector: str, *, only_open: bool) -> dict[int, list[Interval]]:
    """Return the refreshed prices of everything that this collector keeps, by series."""
    query = (
        select(*(PRICE.c[name] for name in _READ), PRICE.c.closed_at, PRICE.c.available, SOURCE.c.url)
        .join(SERIES, SERIES.c.id == PRICE.c.series_id)
        .join(SOURCE, SOURCE.c.id == PRICE.c.source_id)
        .where(SERIES.c.collector == collector, PRICE.c.origin == Origin.REFRESH)
    )
    if only_open:
        query = query.where(PRICE.c.closed_at.is_(None))
    found: dict[int, list[Interval]] = defaultdict(list)
    pages: dict[str, str] = {}
    barred = _barred(connection)
    for *known, usd, cap, closed_at, available, url in connection.execute(query):
        page = pages.get(url) or pages.setdefault(url, page_of(url))
        amounts = to_micros(usd), None if cap is None else to_micros(cap)
        states = closed_at is None, available is False
        interval = Interval(known[0] in barred, *amounts, *states, page, *known)
        found[interval.series_id].append(interval)
    return found


def _barred(connection: Connection) -> set[int]:
    """Return the prices that a person rejected."""
    query = select(REVIEW.c.price_id).join(PRICE, PRICE.c.id == REVIEW.c.price_id)
    is_rejected = (REVIEW.c.decision == "reject", PRICE.c.verdict == Verdict.REJECTED)
    return set(connection.execute(query.where(*is_rejected)).scalars())


def _preference(offer: Offer) -> tuple[int, Decimal]:
    return tuple(Verdict).index(offer.verdict), offer.usd_per_hour
