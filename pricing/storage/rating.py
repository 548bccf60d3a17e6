"""Stored prices as the planner's `Rate`s: thousands in a blink, so rows are read without building offers."""

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from sqlalchemy import Connection
from sqlalchemy.engine import Row

from planner.rates import NEWER_WAITS, PriceStatus, Rate
from planner.units import MICRO_USD
from pricing.parsing.regions import is_same_place
from pricing.storage.columns import micros_text
from pricing.storage.memory import Origin
from pricing.storage.queries import (
    BILLINGS,
    BOOLS,
    FROM,
    PRICE_FIRST,
    RANKABLE,
    SERIES_FIRST,
    TIERS,
    Where,
    fetch,
    rows_of,
    uncollected,
    utc,
)
from pricing.storage.stored import AHEAD, FRESH, LeftOut
from pricing.verification.limits import WITNESS_AGE, WITNESS_SHARE

_RATE = (
    "s.id, s.offer_id, s.provider, s.instance_type, s.gpu, s.gpu_count, s.memory_gb_per_gpu, s.region, "
    "s.tier, s.billing, s.commitment_days, s.vcpus, s.ram_gb, p.usd_per_hour, p.usd_per_month_cap, "
    "p.last_seen_at, p.origin, p.available, x.url, p.id AS price_id, p.first_seen_at, s.region_key"
)
# What makes two prices of a provider the same machine on the same terms, seen in the same run. A sold-out one
# stands for itself: plans count those.
_MACHINE = (
    "s.gpu, s.provider, s.gpu_count, s.tier, s.billing, p.usd_per_month_cap, "
    "CASE WHEN NOT p.available THEN p.id END, p.last_seen_at"
)
# Price, offer and row in one text whose order is theirs: the smallest of a group is found while the prices
# are read once, where numbering the rows of each group sorts them all.
_LOW = "CAST(p.usd_per_hour + 1000000000000000 AS TEXT) || s.offer_id || ':' || p.id"
_LOWEST: Mapping[str, str] = {"sqlite": f"min({_LOW})", "postgresql": f'min(({_LOW}) COLLATE "C")'}


class Selection(NamedTuple):
    """Which prices are asked for."""

    now: datetime
    moment: datetime | None  # whose market; None: the current one
    max_age: timedelta  # a verified price that was last seen longer ago stays out
    providers: str | Collection[str] | None = None
    gpus: str | Collection[str] | None = None
    # Only the cheapest of each machine that a provider offers on the same terms.
    cheapest: bool = False
    by_region: bool = False  # and in the same region

    @property
    def at(self) -> datetime:
        """From when ages count."""
        return self.now if self.moment is None else self.moment

    def where(self) -> Where:
        """Return the conditions that all its questions share."""
        found = Where().at(self.moment)
        return found.one_of("s.provider", self.providers).one_of("s.gpu", self.gpus)


class Told(NamedTuple):
    """What a catalogue of others says."""

    witness: str
    place: str
    micros: int
    seen_at: datetime


# Provider, GPU, count and tier.
Machine = tuple[str, str, int, str]


class Described(NamedTuple):
    """What is said of a provider."""

    title: str
    home: str | None  # where one deploys
    shows_asks: bool  # of single hosts, each for one machine


Describe = Callable[[str], Described]


def rates(connection: Connection, selection: Selection, describe: Describe) -> list[Rate]:
    """
    Return the rankable prices, cheapest first.

    Args:
        connection: In a transaction.
        selection: Which.
        describe: Says what a provider is called, where one deploys, and whether its prices are asks.
    """
    where = selection.where().add("p.series_id = s.id AND p.verdict = 'verified'").add(RANKABLE)
    # As of a past day prices overlap, which no statement settles: all are read then.
    is_narrow = selection.cheapest and selection.moment is None
    rows: Sequence[Any]
    if is_narrow:
        where.add(
            "(p.origin <> 'refresh' OR p.last_seen_at >= :oldest)", oldest=selection.at - selection.max_age
        )
        rows = _cheapest(connection, where, by_region=selection.by_region)
    else:
        rows = fetch(connection, f"SELECT {_RATE} {SERIES_FIRST} {where}", where)
    if selection.moment is not None:
        rows = _newest_of_each(rows)
    with uncollected():
        notes = _waiting(connection, selection)
        if any(row.origin == Origin.SNAPSHOT for row in rows):
            notes |= _waiting_beside(connection, selection, rows)
        return _rated(rows, selection, describe, notes, _told(connection, selection))


def _cheapest(connection: Connection, where: Where, *, by_region: bool) -> list[Any]:
    """Return the cheapest price of each machine; of equal ones that of the first offer by its identifier."""
    machine = f"{_MACHINE}, s.region_key, s.region" if by_region else _MACHINE
    lowest = _LOWEST[connection.dialect.name]
    keys = fetch(
        connection, f"SELECT {lowest} FROM series s CROSS JOIN price p {where} GROUP BY {machine}", where
    )
    ids = [int(key[0].rpartition(":")[2]) for key in keys]
    return list(rows_of(connection, f"SELECT {_RATE} {FROM}", "p.id", ids))


def _rated(
    rows: Sequence[Row[Any]],
    selection: Selection,
    describe: Describe,
    notes: Mapping[int, str],
    told: Mapping[Machine, Sequence[Told]],
) -> list[Rate]:
    described = {provider: describe(provider) for provider in {row.provider for row in rows}}
    found = [_rate(row, selection, described, notes, told) for row in rows]
    kept = [rate for rate in found if rate is not None]
    kept.sort(key=lambda rate: (rate.usd_per_hour, rate.provider, rate.offer_id))
    return kept


def left_out(connection: Connection, selection: Selection) -> list[LeftOut]:
    """Return what is known and not among the rates, counted by provider and reason."""
    found = [*_unrankable(connection, selection), *_quarantined(connection, selection)]
    return [*found, *_too_old(connection, selection)]


def _rate(
    row: Sequence[Any],
    selection: Selection,
    described: Mapping[str, Described],
    notes: Mapping[int, str],
    told: Mapping[Machine, Sequence[Told]],
) -> Rate | None:
    (
        series_id,
        offer_id,
        provider,
        instance_type,
        gpu,
        gpu_count,
        memory_gb_per_gpu,
        region,
        tier,
        billing,
        commitment_days,
        vcpus,
        ram_gb,
        micros,
        cap_micros,
        last_seen_at,
        origin,
        available,
        url,
        _,
        _,
        place,
    ) = row
    seen_at = utc(last_seen_at)
    if selection.moment is not None:
        seen_at = min(seen_at, selection.moment)
    age = selection.at - seen_at
    if origin in (Origin.SNAPSHOT, Origin.HISTORY):
        status = PriceStatus.SNAPSHOT
    elif origin == Origin.OWN:
        status = PriceStatus.OWN
    elif age > selection.max_age:
        return None
    else:
        status = PriceStatus.VERIFIED if -AHEAD <= age <= FRESH else PriceStatus.STALE
    note = notes.get(series_id)
    if age < -AHEAD and origin == Origin.REFRESH:
        note = "; ".join(filter(None, (f"dated {seen_at:%Y-%m-%d}, ahead of the clock", note)))
    title, home, shows_asks = described[provider]
    return Rate(
        offer_id=offer_id,
        provider=provider,
        provider_title=title,
        instance_type=instance_type,
        gpu=gpu,
        gpu_count=gpu_count,
        memory_gb_per_gpu=memory_gb_per_gpu,
        region=region,
        tier=TIERS[tier],
        billing=BILLINGS[billing],
        usd_per_hour=micros / MICRO_USD,
        usd_per_hour_text=micros_text(micros),
        seen_at=seen_at,
        age_hours=age.total_seconds() / 3600,
        status=status,
        source_url=url,
        witnesses=_agreeing(told.get((provider, gpu, gpu_count, tier), ()), place, micros, seen_at),
        note=note,
        usd_per_month_cap=None if cap_micros is None else cap_micros / MICRO_USD,
        commitment_days=commitment_days,
        available=BOOLS[available],
        vcpus=vcpus,
        ram_gb=ram_gb,
        deploy_url=home,
        is_ask=shows_asks and status is not PriceStatus.OWN,
    )


def _told(connection: Connection, selection: Selection) -> dict[Machine, list[Told]]:
    """Return what catalogues of others say of each provider's machines."""
    where = selection.where().add("s.witness IS NOT NULL AND s.gpu IS NOT NULL AND s.gpu_fraction IS NULL")
    where.add("p.verdict = 'verified'")
    sql = (
        "SELECT s.provider, s.gpu, s.gpu_count, s.tier, s.witness, s.region_key, p.usd_per_hour, "
        f"p.last_seen_at FROM series s JOIN price p ON p.series_id = s.id {where}"
    )
    found: dict[Machine, list[Told]] = {}
    for row in fetch(connection, sql, where):
        told = Told(row.witness, row.region_key, row.usd_per_hour, utc(row.last_seen_at))
        found.setdefault((row.provider, row.gpu, row.gpu_count, row.tier), []).append(told)
    return found


def _agreeing(told: Sequence[Told], place: str, micros: int, seen_at: datetime) -> int:
    """Return how many catalogues state about this price for this place, at about this time."""
    agreeing = {
        one.witness
        for one in told
        if is_same_place(one.place, place)
        and abs(micros - one.micros) <= WITNESS_SHARE * one.micros
        and abs(one.seen_at - seen_at) <= WITNESS_AGE
    }
    return len(agreeing)


def _newest_of_each(rows: Sequence[Row[Any]]) -> list[Row[Any]]:
    """
    Keep one price of each series: where a late observation overlaps, that which was first seen last.

    Where the bundled history saw a provider's machine in a region, older bundled prices of it give way.
    """
    watched: dict[tuple[object, ...], datetime] = {}
    for row in rows:
        if row.origin == Origin.HISTORY:
            machine = (row.provider, row.gpu, row.gpu_count, row.tier, row.region_key)
            seen_at = utc(row.last_seen_at)
            watched[machine] = max(seen_at, watched.get(machine, seen_at))
    newest: dict[tuple[str, int], Row[Any]] = {}
    for row in rows:
        machine = (row.provider, row.gpu, row.gpu_count, row.tier, row.region_key)
        if row.origin == Origin.SNAPSHOT and machine in watched and utc(row.last_seen_at) < watched[machine]:
            continue
        key = (row.origin, row.price_id if row.origin == Origin.SNAPSHOT else row.id)
        if key not in newest or utc(row.first_seen_at) > utc(newest[key].first_seen_at):
            newest[key] = row
    return list(newest.values())


def _waiting(connection: Connection, selection: Selection) -> dict[int, str]:
    """Return for each series with a newer price in quarantine what to say beside the verified one."""
    # Both conditions, since the index holds what is not verified.
    where = Where().at(selection.moment).add("p.verdict <> 'verified' AND p.verdict = 'quarantined'")
    where.add("p.origin = 'refresh'")
    sql = f"SELECT p.series_id, p.usd_per_hour, p.last_seen_at, p.reasons FROM price p {where}"
    return {row.series_id: _waits(row) for row in fetch(connection, sql, where)}


def _waiting_beside(connection: Connection, selection: Selection, rows: Sequence[Row[Any]]) -> dict[int, str]:
    """
    Return the same for bundled prices, whose instances and places are spelled otherwise than in own runs.

    What waits in the same place is named, else what waits of the same machine elsewhere, with its place.
    """
    where = selection.where().add(RANKABLE).add("p.series_id = s.id AND p.origin = 'refresh'")
    where.add("p.verdict <> 'verified' AND p.verdict = 'quarantined'")
    sql = (
        "SELECT s.provider, s.gpu, s.gpu_count, s.tier, s.instance_type, s.region, s.region_key, "
        f"p.usd_per_hour, p.last_seen_at, p.reasons {PRICE_FIRST} {where} ORDER BY p.usd_per_hour, p.id"
    )
    found: dict[Machine, list[Row[Any]]] = {}
    for row in fetch(connection, sql, where):
        found.setdefault((row.provider, row.gpu, row.gpu_count, row.tier), []).append(row)
    if not found:
        return {}
    notes: dict[int, str] = {}
    for row in rows:
        if row.origin != Origin.SNAPSHOT:
            continue
        others = found.get((row.provider, row.gpu, row.gpu_count, row.tier))
        if not others:
            continue
        here = [one for one in others if is_same_place(row.region_key, one.region_key)]
        named = [one for one in here or others if one.instance_type == row.instance_type]
        one = (named or here or others)[0]
        notes[row.id] = _waits(one, "" if here else f" in {one.region}")
    return notes


def _waits(row: Any, where: str = "") -> str:
    why = "; ".join(json.loads(row.reasons)) if row.reasons else "not confirmed yet"
    return (
        f"{NEWER_WAITS}{where}, {micros_text(row.usd_per_hour)} USD/h seen on "
        f"{utc(row.last_seen_at):%Y-%m-%d}, waits in quarantine: {why}"
    )


def _unrankable(connection: Connection, selection: Selection) -> list[LeftOut]:
    where = selection.where().add(f"p.series_id = s.id AND NOT ({RANKABLE})")
    kind = (
        "CASE WHEN s.witness IS NOT NULL THEN 'witness' WHEN s.gpu_only THEN 'gpu-only' "
        "WHEN s.gpu_fraction IS NOT NULL THEN 'slice' ELSE 'unknown' END"
    )
    label = "CASE WHEN s.gpu IS NULL THEN s.gpu_raw ELSE '' END"
    sql = (
        f"SELECT s.collector, {kind} AS kind, {label} AS label, count(*) AS number, "
        f"max(p.reasons) AS reasons {SERIES_FIRST} {where} GROUP BY 1, 2, 3 ORDER BY 1, 2, 3"
    )
    whys = {
        "witness": "a catalogue of others' prices: confirms, is never ranked",
        "gpu-only": "CPU, memory and disk are billed separately and are not in the price",
        "slice": "a slice of a GPU, not a whole one",
    }
    counted: dict[LeftOut, int] = {}
    for row in fetch(connection, sql, where):
        reasons = json.loads(row.reasons) if row.reasons else []
        why = whys.get(row.kind) or (reasons[0] if reasons else f"unknown GPU {row.label!r}")
        of_what = f" of {row.label}" if row.kind == "unknown" else ""
        key = LeftOut(f"{row.collector}{of_what}", why)
        counted[key] = counted.get(key, 0) + row.number
    return [_left_out(key.what, number, key.why) for key, number in counted.items()]


def _quarantined(connection: Connection, selection: Selection) -> list[LeftOut]:
    where = selection.where().add(RANKABLE).add("p.series_id = s.id AND p.verdict <> 'verified'")
    kind = "CASE WHEN p.origin = 'refresh' THEN p.verdict ELSE 'bundled' END"
    sql = (
        f"SELECT s.provider, {kind} AS kind, count(*) AS number {PRICE_FIRST} {where} "
        "AND NOT EXISTS (SELECT 1 FROM price v WHERE v.series_id = p.series_id AND v.closed_at IS NULL "
        "AND v.verdict = 'verified') GROUP BY 1, 2 ORDER BY 1, 2"
    )
    whys = {
        "quarantined": "waits in quarantine until confirmed",
        "rejected": "rejected by the checks",
        "bundled": "bundled, but too far from the market or not what its source says",
    }
    return [_left_out(row.provider, row.number, whys[row.kind]) for row in fetch(connection, sql, where)]


def _too_old(connection: Connection, selection: Selection) -> list[LeftOut]:
    where = selection.where().add(RANKABLE)
    where.add("p.series_id = s.id AND p.verdict = 'verified' AND p.origin = 'refresh'")
    where.add("p.last_seen_at < :oldest", oldest=selection.at - selection.max_age)
    sql = (
        f"SELECT s.provider, count(*) AS number, max(p.last_seen_at) AS last_seen_at {SERIES_FIRST} {where} "
        "GROUP BY 1 ORDER BY 1"
    )
    days = f"{selection.max_age / timedelta(days=1):g}"
    return [
        _left_out(
            row.provider, row.number, f"last seen {utc(row.last_seen_at):%Y-%m-%d}, over {days} days ago"
        )
        for row in fetch(connection, sql, where)
    ]


def _left_out(what: str, number: int, why: str) -> LeftOut:
    return LeftOut(f"{what}: {number} {'price' if number == 1 else 'prices'}", why)
