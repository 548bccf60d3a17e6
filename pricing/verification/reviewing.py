"""A person's word on a price: accepted or rejected, in force at once, kept with time, name and reason."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import Connection, and_, insert, or_, select, update

from planner.catalogue import close_matches
from planner.errors import UnknownName
from pricing.errors import NothingToDecide
from pricing.offer import Verdict
from pricing.storage.memory import Origin
from pricing.storage.rows import PRICE, REVIEW, SERIES, bump_revision
from pricing.storage.superseding import supersede_snapshot

# Letters of an identifier that are enough where only one offer starts with them.
MIN_PREFIX = 4


class Decision(StrEnum):
    """What a person decides."""

    ACCEPT = "accept"
    REJECT = "reject"


@dataclass(frozen=True, slots=True, kw_only=True)
class Review:
    """A decision and what it changed."""

    decision: Decision
    offer_id: str
    price_id: int
    reason: str
    decided_at: datetime
    decided_by: str
    replaced_price_id: int | None  # the verified price that this one took the place of, or that is back


def decide(
    connection: Connection, offer_id: str, decision: Decision, *, reason: str, by: str, now: datetime
) -> Review:
    """
    Record a decision on an offer within the given transaction, and put it in force.

    An accepted price counts as verified from the day on which it was first seen. A rejected one stays out of
    every plan as long as the provider shows it; a verified price that it had replaced is back.

    Args:
        connection: In a transaction.
        offer_id: `Offer.id`, or its beginning.
        decision: What is decided.
        reason: Why, in the person's words.
        by: Who decides.
        now: When.

    Raises:
        UnknownName: if there is no such offer, or nothing to decide about it.
    """
    open_prices = _open_prices(connection, offer_id)
    verified = next((one for one in open_prices if one.verdict == Verdict.VERIFIED), None)
    waiting = next((one for one in open_prices if one.verdict != Verdict.VERIFIED), None)
    if decision is Decision.ACCEPT:
        target = waiting
    else:
        target = waiting if waiting is not None and waiting.verdict == Verdict.QUARANTINED else verified
    if target is None:
        known = [one.offer_id for one in open_prices]
        state = "is verified already" if decision is Decision.ACCEPT else "is rejected already"
        if known:
            raise NothingToDecide(known[0], f"{state}; there is nothing to {decision}")
        raise UnknownName("offer", offer_id)
    if decision is Decision.ACCEPT:
        replaced = _accept(connection, target, verified)
    else:
        replaced = _reject(connection, target)
    text = f"{decision}ed by {by} on {now:%Y-%m-%d}: {reason}"
    reasons = json.dumps([*(json.loads(target.reasons or "[]")), text], ensure_ascii=False)
    connection.execute(update(PRICE).where(PRICE.c.id == target.id).values(reasons=reasons))
    values = {"price_id": target.id, "decision": str(decision), "reason": reason}
    connection.execute(insert(REVIEW).values(values | {"decided_at": now, "decided_by": by}))
    bump_revision(connection)
    return Review(
        decision=decision,
        offer_id=target.offer_id,
        price_id=target.id,
        reason=reason,
        decided_at=now,
        decided_by=by,
        replaced_price_id=replaced,
    )


def _open_prices(connection: Connection, offer_id: str) -> Sequence[Any]:
    """Return the current prices of one offer, from own runs, and bundled ones that are held back."""
    wanted = offer_id.strip().lower()
    is_held = and_(
        PRICE.c.origin == Origin.SNAPSHOT, PRICE.c.verdict != Verdict.VERIFIED, SERIES.c.gpu.is_not(None)
    )
    query = (
        select(
            *(PRICE.c.id, PRICE.c.series_id, PRICE.c.verdict, PRICE.c.reasons, PRICE.c.first_seen_at),
            *(PRICE.c.origin, SERIES.c.offer_id, SERIES.c.provider, SERIES.c.witness),
        )
        .join(SERIES, SERIES.c.id == PRICE.c.series_id)
        .where(or_(PRICE.c.origin == Origin.REFRESH, is_held), PRICE.c.closed_at.is_(None))
        .order_by(PRICE.c.origin)  # what a run brought comes before what was bundled
    )
    is_prefix = MIN_PREFIX <= len(wanted) < 12 and wanted.isalnum()
    same = SERIES.c.offer_id.startswith(wanted) if is_prefix else SERIES.c.offer_id == wanted
    rows = connection.execute(query.where(same)).all()
    names = sorted({row.offer_id for row in rows})
    if len(names) == 1:
        return rows
    if names:
        raise UnknownName("offer, for several start with", offer_id, names[:3])
    held = connection.execute(query.where(PRICE.c.verdict != Verdict.VERIFIED)).all()
    raise UnknownName("offer", offer_id, close_matches(offer_id, [row.offer_id for row in held]))


def _accept(connection: Connection, target: Any, verified: Any | None) -> int | None:
    if verified is not None:
        at = max(target.first_seen_at, verified.first_seen_at)
        values = {"closed_at": at, "closed_why": "changed"}
        connection.execute(update(PRICE).where(PRICE.c.id == verified.id).values(values))
    connection.execute(update(PRICE).where(PRICE.c.id == target.id).values(verdict=str(Verdict.VERIFIED)))
    if target.witness is None and target.origin == Origin.REFRESH:
        supersede_snapshot(connection, target.provider)
    return None if verified is None else int(verified.id)


def _reject(connection: Connection, target: Any) -> int | None:
    connection.execute(update(PRICE).where(PRICE.c.id == target.id).values(verdict=str(Verdict.REJECTED)))
    if target.verdict != Verdict.VERIFIED:
        return None
    before = connection.execute(
        select(PRICE.c.id).where(
            PRICE.c.series_id == target.series_id,
            PRICE.c.origin == Origin.REFRESH,
            PRICE.c.verdict == Verdict.VERIFIED,
            PRICE.c.closed_at == target.first_seen_at,
            PRICE.c.closed_why == "changed",
        )
    ).scalar()
    if before is not None:
        values = {"closed_at": None, "closed_why": None}
        connection.execute(update(PRICE).where(PRICE.c.id == before).values(values))
    return before
