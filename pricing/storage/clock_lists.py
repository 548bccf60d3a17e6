"""What a run with a wrong clock left among token prices and rates of exchange: times are put back, too."""

import json
from collections.abc import Iterator
from datetime import date, datetime, timedelta
from typing import Any

from sqlalchemy import Connection, delete, func, or_, select, update

from pricing.offer import Verdict
from pricing.storage.confirmed import UNCONFIRMED
from pricing.storage.rows import HELD_RATES, RATE, TABLES, drop_value, get_value
from pricing.storage.stored import AHEAD, FRESH

TOKEN_PRICE = TABLES["token_price"]
_TIMES = ("first_seen_at", "last_seen_at", "verified_at", "closed_at")


def mend(connection: Connection, now: datetime, *, is_doubtful: bool) -> Iterator[str]:
    """
    Put right what is ahead of the clock by more than two days; yield a line for each list.

    Args:
        connection: In the transaction.
        now: The present.
        is_doubtful: Whether it is rather this clock that is wrong: then nothing is changed.
    """
    first = _first_ahead(connection, now + FRESH)
    last_rate = connection.execute(select(func.max(RATE.c.as_of))).scalar()
    is_rate_ahead = last_rate is not None and date.fromisoformat(last_rate) > (now + FRESH).date()
    if is_doubtful:
        at = {"prices of API tokens": first, "rates of exchange": last_rate if is_rate_ahead else None}
        for what, day in at.items():
            if day is not None:
                yield (
                    f"{what}: dated {str(day)[:10]}, ahead of this clock ({now:%Y-%m-%d}): is it right? "
                    "Nothing of them was changed"
                )
        return
    if first is not None:
        yield _put_back_token_prices(connection, first, now)
    if is_rate_ahead:
        yield _remove_rates(connection, now)
    fetched = RATE.c.fetched_at > now + FRESH
    connection.execute(update(RATE).where(fetched).values({"fetched_at": now}))


def _first_ahead(connection: Connection, limit: datetime) -> datetime | None:
    """Return the first time of token prices that lies so far ahead."""
    columns = [TOKEN_PRICE.c[name] for name in _TIMES]
    found = [connection.execute(select(func.min(at)).where(at > limit)).scalar() for at in columns]
    return min((at for at in found if at is not None), default=None)


def _put_back_token_prices(connection: Connection, first: datetime, now: datetime) -> str:
    """Put back the times of token prices as those of rents; what a wrong clock confirmed waits again."""
    limit = now + AHEAD
    seen = select(func.max(TOKEN_PRICE.c.last_seen_at)).where(TOKEN_PRICE.c.last_seen_at <= limit)
    before = min(connection.execute(seen).scalar() or now - FRESH, now)
    rows = connection.execute(
        select(TOKEN_PRICE)
        .where(or_(*(TOKEN_PRICE.c[name] > limit for name in _TIMES)))
        .order_by(TOKEN_PRICE.c.id)
    ).all()
    mended = [(row, _mended(row, limit, before, now)) for row in rows]
    for row, values in mended:
        connection.execute(update(TOKEN_PRICE).where(TOKEN_PRICE.c.id == row.id).values(values))
    for row, values in mended:
        if row.verified_at is not None and values["verified_at"] is None:
            _reopen(connection, row, before)
    return (
        f"prices of API tokens: {len(rows)} were dated {first:%Y-%m-%d} by a run with a wrong clock; "
        f"they count as seen on {before:%Y-%m-%d}"
    )


def _mended(row: Any, limit: datetime, before: datetime, now: datetime) -> dict[str, Any]:
    """Return the times of a row without those ahead; one in force that was confirmed so waits again."""
    found: dict[str, Any] = {name: getattr(row, name) for name in _TIMES}
    is_confirmed = (
        row.verified_at is not None and row.first_seen_at < row.verified_at and row.verified_at > limit
    )
    if is_confirmed and row.closed_at is None:
        found |= {"verified_at": None, "verdict": str(Verdict.QUARANTINED), "reason": UNCONFIRMED}
    seen = now if found["verified_at"] is None else before
    for name in ("first_seen_at", "verified_at"):
        if found[name] is not None and found[name] > limit:
            found[name] = seen
    for name in ("last_seen_at", "closed_at"):
        if found[name] is not None and found[name] > limit:
            found[name] = max(seen, found["first_seen_at"])
    return found


def _reopen(connection: Connection, row: Any, before: datetime) -> None:
    """Put the price in force again that one had replaced which waits once more; beside it only one waits."""
    same = (TOKEN_PRICE.c.provider == row.provider) & (TOKEN_PRICE.c.model == row.model)
    replaced = connection.execute(
        select(TOKEN_PRICE.c.id)
        .where(same, TOKEN_PRICE.c.id < row.id, TOKEN_PRICE.c.verified_at.is_not(None))
        .where(TOKEN_PRICE.c.closed_why == "changed", TOKEN_PRICE.c.closed_at == before)
        .order_by(TOKEN_PRICE.c.id.desc())
    ).scalar()
    if replaced is not None:
        values: dict[str, Any] = {"closed_at": None, "closed_why": None}
        connection.execute(update(TOKEN_PRICE).where(TOKEN_PRICE.c.id == replaced).values(values))
    later = same & TOKEN_PRICE.c.closed_at.is_(None) & TOKEN_PRICE.c.verified_at.is_(None)
    connection.execute(
        update(TOKEN_PRICE)
        .where(later, TOKEN_PRICE.c.id != row.id)
        .values({"closed_at": before, "closed_why": "changed"})
    )


def _remove_rates(connection: Connection, now: datetime) -> str:
    """Remove rates of days to come: the bank has not stated them."""
    last = (now + timedelta(days=1)).date()
    removed = connection.execute(delete(RATE).where(RATE.c.as_of > last.isoformat())).rowcount
    held = json.loads(get_value(connection, HELD_RATES) or '{"held": []}')["held"]
    if any(one["as_of"] > last.isoformat() for one in held):
        drop_value(connection, HELD_RATES)
    return f"rates of exchange: {removed} of days to come, taken by a run with a wrong clock, were removed"
