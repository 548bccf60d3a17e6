"""What a run with a wrong clock left behind: times that have not come are put back."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, case, func, or_, select, update

from pricing.offer import Verdict
from pricing.storage import clock_lists
from pricing.storage.confirmed import UNCONFIRMED, forget_after
from pricing.storage.memory import Origin
from pricing.storage.rows import PRICE, RUN, SERIES, bump_revision
from pricing.storage.stored import AHEAD, FRESH

# So many runs with a wrong clock are rather a present one that is slow: nothing is changed then. Source: own
# choice; a week of nights and a few more.
MANY_RUNS = 10


def mend(connection: Connection, now: datetime) -> list[str]:
    """
    Put right the times that are ahead of the clock; return a line for each source that has such.

    What was verified counts as last seen at the last run before, what waits as first seen now, and what such
    a run confirmed waits once more: so nothing is fresh, and nothing confirmed, by a wrong clock. Times up to
    two days ahead are left to pass.

    Args:
        connection: In the transaction.
        now: The present; where it lies before the bundled prices it is this clock that is wrong.
    """
    query = select(RUN.c.provider, func.min(RUN.c.finished_at), func.count()).group_by(RUN.c.provider)
    ahead = connection.execute(query.where(RUN.c.finished_at > now + AHEAD)).all()
    told = []
    is_early = now < _bundled_at(connection)
    for provider, first, runs in sorted(ahead):
        if first - now <= FRESH:
            continue
        if runs > MANY_RUNS or is_early:
            told.append(
                f"{provider}: prices are dated {first:%Y-%m-%d} and later, ahead of this clock "
                f"({now:%Y-%m-%d}): is it right? Nothing of them was changed"
            )
            continue
        number, before = _put_back(connection, provider, now)
        told.append(
            f"{provider}: {number} prices were dated {first:%Y-%m-%d} by a run with a wrong clock; "
            f"they count as seen on {before:%Y-%m-%d}"
        )
    is_slow = is_early or any(runs > MANY_RUNS for _, _, runs in ahead)
    told += clock_lists.mend(connection, now, is_doubtful=is_slow)
    if told:
        bump_revision(connection)
    return told


def _put_back(connection: Connection, provider: str, now: datetime) -> tuple[int, datetime]:
    """Put back all times of a source that are ahead; return how many prices had one, and to when."""
    limit = now + AHEAD
    runs = RUN.c.provider == provider
    last = select(func.max(RUN.c.finished_at)).where(runs, RUN.c.finished_at <= limit)
    before = min(connection.execute(last).scalar() or now - FRESH, now)
    series = select(SERIES.c.id).where(or_(SERIES.c.collector == provider, SERIES.c.provider == provider))
    ours = PRICE.c.series_id.in_(series)
    of_runs = ours & (PRICE.c.origin == Origin.REFRESH)
    is_verified = PRICE.c.verdict == Verdict.VERIFIED
    dated = select(func.count()).where(of_runs, PRICE.c.last_seen_at > limit)
    number = int(connection.execute(dated).scalar() or 0)
    _unconfirm(connection, forget_after(connection, provider, limit))

    def put(where: ColumnElement[bool], column: str, value: Any) -> None:
        at = PRICE.c[column] > limit
        connection.execute(update(PRICE).where(where, at).values({column: value}))

    def not_before(column: str) -> Any:
        return case((PRICE.c[column] > before, PRICE.c[column]), else_=before)

    for column in ("first_seen_at", "last_seen_at"):
        put(of_runs & ~is_verified, column, now)
    put(of_runs & is_verified, "first_seen_at", before)
    put(of_runs & is_verified, "last_seen_at", not_before("first_seen_at"))
    put(ours, "closed_at", not_before("last_seen_at"))
    for column in ("started_at", "finished_at", "newest_seen_at"):
        wrong = runs & (RUN.c[column] > limit)
        connection.execute(update(RUN).where(wrong).values({column: before}))
    return number, before


def _unconfirm(connection: Connection, prices: Sequence[int]) -> None:
    """Let prices wait again that are in force, and what they had replaced count again."""
    rows = select(PRICE.c.id, PRICE.c.series_id, PRICE.c.first_seen_at).where(
        PRICE.c.id.in_(prices), PRICE.c.closed_at.is_(None), PRICE.c.verdict == Verdict.VERIFIED
    )
    for row in connection.execute(rows).all():
        others = PRICE.c.series_id == row.series_id
        waiting = others & PRICE.c.closed_at.is_(None) & (PRICE.c.id != row.id)
        gone = {"closed_at": row.first_seen_at, "closed_why": "changed"}
        not_before = case(
            (PRICE.c.first_seen_at > row.first_seen_at, PRICE.c.first_seen_at), else_=row.first_seen_at
        )
        of_run = waiting & (PRICE.c.origin == Origin.REFRESH) & (PRICE.c.verdict != Verdict.VERIFIED)
        connection.execute(update(PRICE).where(of_run).values(gone | {"closed_at": not_before}))
        held = {"verdict": str(Verdict.QUARANTINED), "reasons": json.dumps([UNCONFIRMED])}
        connection.execute(update(PRICE).where(PRICE.c.id == row.id).values(held))
        replaced = (
            others
            & (PRICE.c.origin == Origin.REFRESH)
            & (PRICE.c.verdict == Verdict.VERIFIED)
            & (PRICE.c.closed_at == row.first_seen_at)
            & (PRICE.c.closed_why == "changed")
        )
        connection.execute(update(PRICE).where(replaced).values({"closed_at": None, "closed_why": None}))


def _bundled_at(connection: Connection) -> datetime:
    """Return when the newest bundled price was seen: no right clock is behind it."""
    query = select(func.max(PRICE.c.first_seen_at)).where(PRICE.c.origin == Origin.SNAPSHOT)
    found: datetime | None = connection.execute(query).scalar()
    return found or datetime(1, 1, 1, tzinfo=UTC)
