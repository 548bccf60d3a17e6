"""Which prices a run confirmed that had waited: remembered for a few runs, in case its clock was wrong."""

import json
from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import Connection

from pricing.storage.rows import get_value, set_value

# So many runs that confirmed something are remembered: as many as `pricing.storage.clock` puts back.
REMEMBERED = 10
# Why a price waits that a wrong clock had confirmed.
UNCONFIRMED = "it was confirmed by a run with a wrong clock"


def remember(connection: Connection, provider: str, seen_at: datetime, prices: Sequence[int]) -> None:
    """Keep which prices a run confirmed."""
    if prices:
        _set(connection, provider, [*_runs(connection, provider), (seen_at, list(prices))][-REMEMBERED:])


def forget_after(connection: Connection, provider: str, limit: datetime) -> list[int]:
    """Return the prices that runs dated after a time confirmed, and keep them no longer."""
    runs = _runs(connection, provider)
    _set(connection, provider, [(at, prices) for at, prices in runs if at <= limit])
    return [one for at, prices in runs if at > limit for one in prices]


def _runs(connection: Connection, provider: str) -> list[tuple[datetime, list[int]]]:
    kept = json.loads(get_value(connection, _name(provider)) or "[]")
    return [(datetime.fromisoformat(run["seen_at"]), run["prices"]) for run in kept]


def _set(connection: Connection, provider: str, runs: Sequence[tuple[datetime, list[int]]]) -> None:
    text = json.dumps([{"seen_at": at.isoformat(), "prices": prices} for at, prices in runs])
    set_value(connection, _name(provider), text)


def _name(provider: str) -> str:
    return f"confirmed:{provider}"
