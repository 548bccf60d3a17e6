"""
Questions to the database, in SQL that SQLite and PostgreSQL read alike.

Plain statements rather than table classes: SQLModel takes 0.2 s to load, and a plan only reads.
"""

import gc
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time
from decimal import Decimal
from functools import lru_cache
from typing import Any

from sqlalchemy import Connection, bindparam, text
from sqlalchemy.engine import Row

from planner.rates import Billing, Tier
from pricing.offer import Verdict
from pricing.parsing.regions import region_key
from pricing.registry import is_of_asks
from pricing.storage.columns import UtcTime, from_micros
from pricing.storage.memory import KnownPrice, Origin
from pricing.storage.stored import StoredOffer
from pricing.verification.limits import LEAP_WITHIN

FROM = "FROM price p JOIN series s ON s.id = p.series_id JOIN source x ON x.id = p.source_id"
# The same, with the series read first: in the order of its indexes, whatever SQLite knows of the sizes. A
# cross join fixes the order there and means nothing to PostgreSQL.
SERIES_FIRST = "FROM series s CROSS JOIN price p JOIN source x ON x.id = p.source_id"
# The prices read first, for what few of them have: those that are not verified have an index of their own.
PRICE_FIRST = "FROM price p CROSS JOIN series s"
RANKABLE = "s.gpu IS NOT NULL AND s.gpu_fraction IS NULL AND NOT s.gpu_only AND s.witness IS NULL"
# What a person can decide on: own runs, and bundled prices of a known GPU.
REVIEWED = "(p.origin = 'refresh' OR (p.origin = 'snapshot' AND s.gpu IS NOT NULL))"
# An ask that waits moves from day to day; so many of its prices tell that it stays. Source: own choice.
WAITING_KEPT = 8
# Earlier verified prices, by which a page of then is known. Source: own choice.
EARLIER_KEPT = 4
# A person looks for the cheapest of a kind; the identifier makes the order the same each time.
ORDER = "ORDER BY s.provider, s.gpu, s.gpu_count, p.usd_per_hour, p.id"
_SERIES = (
    "s.provider, s.witness, s.instance_type, s.gpu, s.gpu_raw, s.gpu_count, s.gpu_fraction, "
    "s.memory_gb_per_gpu, s.form, s.region, s.tier, s.commitment_days, s.gpu_only, s.billing, s.vcpus, "
    "s.ram_gb"
)
_PRICE = (
    "p.series_id, p.source_id, p.id AS price_id, p.origin, p.verdict, p.reasons, p.usd_per_hour, "
    "p.usd_per_month_cap, p.currency, p.price_original, p.fx_date, p.available, p.first_seen_at, "
    "p.last_seen_at, p.closed_at, p.closed_why, p.times_seen, p.raw"
)
# Identifiers named in one statement; PostgreSQL takes longer to plan more than it takes to find them.
AT_ONCE = 2000


# Looking up a member is several times faster than calling the enumeration, and there are thousands of rows.
TIERS: Mapping[str, Tier] = {str(tier): tier for tier in Tier}
BILLINGS: Mapping[str | None, Billing | None] = {None: None} | {str(billing): billing for billing in Billing}
VERDICTS: Mapping[str, Verdict] = {str(verdict): verdict for verdict in Verdict}
ORIGINS: Mapping[str, Origin] = {str(origin): origin for origin in Origin}
BOOLS: Mapping[Any, bool | None] = {None: None, 0: False, 1: True}  # SQLite has numbers for them


@dataclass(slots=True)
class Where:
    """Conditions and their values, joined by AND."""

    conditions: list[str] = field(default_factory=list)
    values: dict[str, Any] = field(default_factory=dict)

    def add(self, condition: str, **values: Any) -> "Where":
        """Add a condition that names its values with a colon."""
        self.conditions.append(condition)
        self.values |= values
        return self

    def at(self, moment: datetime | None) -> "Where":
        """Keep what was the market at a moment, or is now."""
        if moment is None:
            return self.add("p.closed_at IS NULL")
        return self.add(
            "p.first_seen_at <= :moment AND (p.closed_at IS NULL OR p.closed_at > :moment)", moment=moment
        )

    def one_of(self, column: str, wanted: str | Collection[str] | None) -> "Where":
        """Keep rows whose column is the wanted value or among them; None keeps all."""
        if wanted is None:
            return self
        name = column.replace(".", "_")
        if isinstance(wanted, str):
            return self.add(f"{column} = :{name}", **{name: wanted})
        return self.add(f"{column} IN :{name}", **{name: sorted(wanted)})

    def region(self, wanted: str | None) -> "Where":
        """Keep a region however it is spelled; what is offered everywhere counts too."""
        if wanted is None:
            return self
        return self.add(
            "(s.region_key IN (:region, :country, '') OR lower(s.region) = :region)",
            region=region_key("", wanted),
            country=region_key("vastai", wanted),
        )

    def __str__(self) -> str:
        return f"WHERE {' AND '.join(self.conditions)}" if self.conditions else ""


def fetch(connection: Connection, sql: str, where: Where | None = None) -> Sequence[Row[Any]]:
    """Run a statement; values come as the driver gives them, and `utc` makes a time of one."""
    values = where.values if where else {}
    parameters = [
        bindparam(name, expanding=True) if isinstance(value, list) else bindparam(name, type_=UtcTime())
        for name, value in values.items()
        if isinstance(value, list | datetime)
    ]
    return connection.execute(text(sql).bindparams(*parameters), values).all()


@contextmanager
def uncollected() -> Iterator[None]:
    """
    Let the collector rest while thousands of records are built.

    None of them is garbage, and each of its passes walks the whole heap: up to a third of the time.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


@lru_cache(maxsize=2**16)
def utc(value: str | datetime) -> datetime:
    """Return the time behind a value as fetched; thousands of rows share the time of their run."""
    time_ = datetime.fromisoformat(value) if isinstance(value, str) else value
    return time_.replace(tzinfo=UTC) if time_.tzinfo is None else time_.astimezone(UTC)


def moment_of(as_of: date | datetime | None) -> datetime | None:
    """Return the moment whose market is asked for: a day means its end, in UTC."""
    if as_of is None or isinstance(as_of, datetime):
        return as_of
    return datetime.combine(as_of, time.max, tzinfo=UTC)


def offers(
    connection: Connection,
    where: Where,
    order: str = ORDER,
    limit: int | None = None,
    *,
    series_first: bool = False,
) -> list[StoredOffer]:
    """
    Return stored offers; the first of many come at once where the order is that of an index of series.

    Prices are read without their series, which many of them share, and those once each.
    """
    if series_first:
        where.add("p.series_id = s.id")
    tables = (
        "FROM series s CROSS JOIN price p"
        if series_first
        else "FROM price p JOIN series s ON s.id = p.series_id"
    )
    sql = f"SELECT {_PRICE} {tables} {where} {order}" + (f" LIMIT {int(limit)}" if limit is not None else "")
    with uncollected():
        rows: Sequence[Sequence[Any]] = fetch(connection, sql, where)
        of_series = rows_of(
            connection, f"SELECT s.id, {_SERIES} FROM series s", "s.id", {row[0] for row in rows}
        )
        series = {row[0]: _series_values(row) for row in of_series}
        of_sources = rows_of(connection, "SELECT x.id, x.url FROM source x", "x.id", {row[1] for row in rows})
        urls = {row[0]: row[1] for row in of_sources}
        return [StoredOffer.built(series[row[0]], _price_values(urls[row[1]], row)) for row in rows]


def rows_of(
    connection: Connection, select: str, column: str, ids: Collection[int]
) -> Iterator[Sequence[Any]]:
    """
    Yield the rows whose column is one of these identifiers, some at a time.

    Args:
        connection: In a transaction.
        select: A statement without conditions.
        column: Such as `p.id`.
        ids: Whole numbers of our own, so that they may stand in the statement.
    """
    wanted = sorted(ids)
    for start in range(0, len(wanted), AT_ONCE):
        some = ", ".join(map(str, wanted[start : start + AT_ONCE]))
        yield from fetch(connection, f"{select} WHERE {column} IN ({some})")


def known_prices(connection: Connection, provider: str | None) -> Iterator[KnownPrice]:
    """
    Yield what verification compares with: each series' latest verified price, and the one that waits.

    Of one provider also earlier verified prices, of lists all of the last weeks, all bundled ones, and those
    that waited. Its own only: what witnesses say of it comes from `witness_prices`. The user's own contracts
    say nothing of a public price.
    """
    where = Where().add("s.witness IS NULL AND p.origin NOT IN ('history', 'own')")
    where.one_of("s.collector", provider)
    since = None
    if provider is not None and not is_of_asks(provider):
        newest = fetch(
            connection,
            "SELECT max(newest_seen_at) AS at FROM provider_run WHERE provider = :name",
            Where(values={"name": provider}),
        )[0].at
        since = None if newest is None else utc(newest) - LEAP_WITHIN
    yield from _known(connection, where, is_deep=provider is not None, since=since)


def witness_prices(connection: Connection, provider: str | None) -> Iterator[KnownPrice]:
    """Yield the same of what witnesses say of a provider; of one also what they said before."""
    where = Where().add("s.witness IS NOT NULL").one_of("s.provider", provider)
    yield from _known(connection, where, is_deep=provider is not None)


def _known(
    connection: Connection, where: Where, *, is_deep: bool = False, since: datetime | None = None
) -> Iterator[KnownPrice]:
    ranked = (
        f"SELECT {_SERIES}, {_PRICE}, s.offer_id, "
        "row_number() OVER (PARTITION BY p.series_id, p.verdict = 'verified' "
        f"ORDER BY p.first_seen_at DESC, p.id DESC) AS place {FROM} {where}"
    )
    latest = "closed_at IS NULL OR (place = 1 AND verdict = 'verified')"
    if is_deep:
        latest += (
            f" OR (place <= {EARLIER_KEPT} AND verdict = 'verified' AND origin = 'refresh')"
            " OR (verdict = 'verified' AND origin = 'snapshot')"
            f" OR (place <= {WAITING_KEPT} AND verdict = 'quarantined' AND origin = 'refresh')"
        )
    if since is not None:
        latest += (
            " OR (last_seen_at >= :since AND verdict = 'verified' AND origin = 'refresh' AND tier <> 'spot')"
        )
        where.values["since"] = since
    for row in fetch(connection, f"SELECT * FROM ({ranked}) latest WHERE {latest} ORDER BY price_id", where):
        yield KnownPrice(
            provider=row.provider,
            instance_type=row.instance_type,
            gpu=row.gpu,
            gpu_count=row.gpu_count,
            gpu_fraction=row.gpu_fraction,
            memory_gb_per_gpu=row.memory_gb_per_gpu,
            form=row.form,
            region=row.region,
            tier=TIERS[row.tier],
            usd_per_hour=from_micros(row.usd_per_hour),
            first_seen_at=utc(row.first_seen_at),
            last_seen_at=utc(row.last_seen_at),
            verdict=VERDICTS[row.verdict],
            origin=ORIGINS[row.origin],
            times_seen=row.times_seen,
            raw=row.raw or "",
            series_id=row.offer_id,
            witness=row.witness,
            gpu_only=bool(row.gpu_only),
            reasons=_reasons(row.reasons),
            currency=row.currency,
            price_original=None if row.price_original is None else Decimal(row.price_original),
        )


def _series_values(row: Sequence[Any]) -> tuple[Any, ...]:
    """Return the values of `SERIES_FIELDS`; by position, which takes a part of the time that names do."""
    _, *plain, tier, days, gpu_only, billing, vcpus, ram_gb = row
    return *plain, TIERS[tier], days, bool(gpu_only), BILLINGS[billing], vcpus, ram_gb


def _price_values(url: str, row: Sequence[Any]) -> tuple[Any, ...]:
    """Return the values of `PRICE_FIELDS`."""
    (
        _,
        _,
        price_id,
        origin,
        verdict,
        reasons,
        micros,
        cap,
        currency,
        original,
        fx_date,
        available,
        first_seen_at,
        last_seen_at,
        closed_at,
        closed_why,
        times_seen,
        raw,
    ) = row
    usd = from_micros(micros)
    return (
        url,
        price_id,
        ORIGINS[origin],
        VERDICTS[verdict],
        _reasons(reasons) if reasons else (),
        usd,
        None if cap is None else from_micros(cap),
        currency,
        usd if original is None else Decimal(original),
        fx_date,
        BOOLS[available],
        utc(first_seen_at),
        utc(last_seen_at),
        None if closed_at is None else utc(closed_at),
        closed_why,
        times_seen,
        raw or "",
    )


def _reasons(text_: str | None) -> tuple[str, ...]:
    return tuple(json.loads(text_)) if text_ else ()
