"""Prices of API tokens as they are kept: what is in force, what is held back. Light, since plans read it."""

from collections.abc import Mapping
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

from sqlalchemy import Connection

from planner.catalogues.tokens import TokenPrice
from pricing.storage.queries import Where, fetch, utc

__all__ = ["held_back", "token_prices"]

_COLUMNS = (
    "provider, model, model_id, usd_per_mtok_input, usd_per_mtok_output, usd_per_mtok_cached_input, notes, "
    "source, last_seen_at, closed_at, closed_why"
)


def token_prices(
    connection: Connection, now: datetime, day: date | None, max_age_days: float
) -> tuple[TokenPrice, ...]:
    """
    Return the prices in force, each dated by when it was last seen; also those that the list no longer has.

    Args:
        connection: In a transaction.
        now: Ages count from here.
        day: As they stood at the end of that day; now where None.
        max_age_days: One that was not seen for longer says so.
    """
    end = now if day is None else min(now, datetime.combine(day, time.max, UTC))
    where = Where().add("verified_at <= :end", end=end)
    newest: dict[tuple[str, str], Any] = {}
    for row in fetch(
        connection, f"SELECT {_COLUMNS} FROM token_price {where} ORDER BY verified_at, id", where
    ):
        newest[row.provider, row.model] = row
    return tuple(_price(row, end, max_age_days) for row in newest.values())


def held_back(connection: Connection) -> list[Mapping[str, Any]]:
    """Return what waits or was rejected, with the reason."""
    sql = (
        "SELECT provider, model, model_id, usd_per_mtok_input, usd_per_mtok_output, verdict, reason, source, "
        "first_seen_at, last_seen_at FROM token_price WHERE closed_at IS NULL AND verified_at IS NULL "
        "ORDER BY provider, model"
    )
    times = ("first_seen_at", "last_seen_at")
    return [
        {name: utc(value) if name in times else value for name, value in row._mapping.items()}
        for row in fetch(connection, sql)
    ]


def _price(row: Any, end: datetime, max_age_days: float) -> TokenPrice:
    """Return a kept price as the planner knows it."""
    seen_at = min(utc(row.last_seen_at), end)
    cached, day = row.usd_per_mtok_cached_input, seen_at.date().isoformat()
    is_old = end - seen_at > timedelta(days=max_age_days)
    notes = (row.notes, f"not refreshed since {day}" if is_old else "")
    return TokenPrice(
        provider=row.provider,
        model_name=row.model,
        model_id=row.model_id,
        has_open_weights=True,
        usd_per_mtok_input=float(row.usd_per_mtok_input),
        usd_per_mtok_output=float(row.usd_per_mtok_output),
        usd_per_mtok_cached_input=None if cached is None else float(cached),
        as_of=day,
        source=f"LiteLLM price file, {row.source}",
        notes="; ".join(note for note in notes if note),
        checked=day,
        is_gone=row.closed_why == "gone" and row.closed_at is not None and utc(row.closed_at) <= end,
    )
