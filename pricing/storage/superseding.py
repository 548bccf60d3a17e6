"""When a bundled price ends: once a run has verified the same offer, or has looked and not found it."""

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, func, select

from planner.rates import Tier
from pricing.offer import Verdict
from pricing.parsing.regions import is_same_place
from pricing.registry import is_of_asks
from pricing.storage.memory import Origin
from pricing.storage.rows import PRICE, SERIES, update_prices
from pricing.verification.alike import is_leap
from pricing.verification.limits import WEEK_SPAN
from pricing.verification.recall import is_accepted

# What is offered, the place and the name of the instance aside: collections may spell those otherwise.
_THING = tuple(SERIES.c[name] for name in ("gpu", "gpu_count", "gpu_fraction", "tier", "gpu_only"))
_WHERE = SERIES.c.instance_type, SERIES.c.region_key
_WHEN = (PRICE.c.verdict, PRICE.c.reasons, PRICE.c.first_seen_at, PRICE.c.last_seen_at, PRICE.c.usd_per_hour)
Thing = tuple[object, ...]


@dataclass(slots=True)
class _Own:
    """What own runs say of one provider at present."""

    rows: dict[Thing, list[Any]] = field(default_factory=lambda: defaultdict(list))
    places: set[str] = field(default_factory=set)

    def add(self, row: Any) -> None:
        self.places.add(row.region_key)
        self.rows[_thing(row)].append(row)

    def about(self, bundled: Any) -> list[Any]:
        """
        Return what is the same offer as a bundled one, as far as can be told.

        A place that no run knows may be any of them, and so may an instance whose name is not there.
        """
        place, is_known = bundled.region_key, bundled.region_key in self.places
        found = [
            row
            for row in self.rows.get(_thing(bundled), ())
            if not is_known or is_same_place(place, row.region_key)
        ]
        name = bundled.instance_type.casefold()
        return [row for row in found if row.instance_type.casefold() == name] or found


def supersede_snapshot(connection: Connection, provider: str, whole_at: datetime | None = None) -> None:
    """
    Close the bundled prices of a provider that own runs have made superfluous.

    One ends where a verified price of the same offer took its place, from when that was first seen, and where
    a whole answer with verified prices does not hold the offer any more. Where the offer only waits in
    quarantine the bundled price stays in force.

    Args:
        connection: In the transaction.
        provider: Whose.
        whole_at: When all that the provider offers was read; None where it was not.
    """
    bundled = _open(connection, provider, Origin.SNAPSHOT)
    if not bundled:
        return
    own = _Own()
    for row in _open(connection, provider, Origin.REFRESH):
        own.add(row)
    ends: dict[tuple[datetime, str], list[int]] = defaultdict(list)
    for row in bundled:
        end = _end(row, own, whole_at)
        if end is not None:
            ends[end].append(row.id)
    for (closed_at, why), ids in ends.items():
        update_prices(connection, ids, {"closed_at": closed_at, "closed_why": why})


def reopen_snapshot(connection: Connection, provider: str, first_seen_at: datetime) -> None:
    """
    Bring back the bundled prices of a provider whose place a price took that a person now rejects.

    Args:
        connection: In the transaction.
        provider: Whose.
        first_seen_at: When the rejected price was first seen: from then its place was taken.
    """
    query = (
        select(PRICE.c.id, PRICE.c.closed_at, PRICE.c.first_seen_at)
        .join(SERIES, SERIES.c.id == PRICE.c.series_id)
        .where(SERIES.c.provider == provider, SERIES.c.witness.is_(None))
        .where(PRICE.c.origin == Origin.SNAPSHOT, PRICE.c.closed_why == "refreshed")
    )
    ended = [
        row.id for row in connection.execute(query) if row.closed_at == max(row.first_seen_at, first_seen_at)
    ]
    update_prices(connection, ended, {"closed_at": None, "closed_why": None})
    supersede_snapshot(connection, provider)  # others have taken the place of most of them


def _end(bundled: Any, own: _Own, whole_at: datetime | None) -> tuple[datetime, str] | None:
    """Return when and why a bundled price ended; None where it is still the last one verified."""
    is_ranked = bundled.gpu is not None and bundled.verdict == Verdict.VERIFIED
    # What is in no plan has no place that another would have to take.
    rows = own.about(bundled) if is_ranked else [row for of_thing in own.rows.values() for row in of_thing]
    since = [
        max(bundled.first_seen_at, row.first_seen_at)
        for row in rows
        if row.verdict == Verdict.VERIFIED
        and row.last_seen_at >= bundled.first_seen_at
        and not (is_ranked and _is_in_doubt(row, bundled))
    ]
    if since:
        return min(since), "refreshed"
    is_gone = not rows and whole_at is not None and whole_at >= bundled.first_seen_at
    return (whole_at, "vanished") if is_gone and whole_at is not None else None


def _is_in_doubt(row: Any, bundled: Any) -> bool:
    """
    Whether a listed price is too far from the bundled one to take its place yet.

    No list moves so far: either may be wrong, and both are shown until the new one has stood for a week or a
    person has accepted it.

    Source:
        docs/verification.md, "leap".
    """
    if row.tier == Tier.SPOT or is_of_asks(row.provider):
        return False
    if is_accepted(json.loads(row.reasons or "[]")):
        return False
    is_new = row.last_seen_at - row.first_seen_at < WEEK_SPAN
    return is_new and is_leap(float(row.usd_per_hour / bundled.usd_per_hour))


def _open(connection: Connection, provider: str, origin: Origin) -> Sequence[Any]:
    query = (
        select(PRICE.c.id, SERIES.c.provider, *_WHEN, *_THING, *_WHERE)
        .join(SERIES, SERIES.c.id == PRICE.c.series_id)
        .where(SERIES.c.provider == provider, SERIES.c.witness.is_(None))
        .where(PRICE.c.origin == origin, PRICE.c.closed_at.is_(None))
    )
    return connection.execute(query).all()


def providers_of(connection: Connection) -> Iterable[tuple[str, datetime]]:
    """Return the providers of which own runs hold a verified price, with when the newest was seen."""
    query = (
        select(SERIES.c.provider, func.max(PRICE.c.last_seen_at))
        .join(PRICE, PRICE.c.series_id == SERIES.c.id)
        .where(PRICE.c.origin == Origin.REFRESH, PRICE.c.verdict == Verdict.VERIFIED)
        .where(SERIES.c.witness.is_(None))
        .group_by(SERIES.c.provider)
    )
    return [(provider, seen_at) for provider, seen_at in connection.execute(query)]


def _thing(row: Any) -> Thing:
    fraction = None if row.gpu_fraction is None else round(row.gpu_fraction, 2)
    return row.gpu, row.gpu_count, fraction, row.tier, bool(row.gpu_only)
