"""A person's word on a price: accepted or rejected, in force at once, kept with time, name and reason."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from typing import Any, NoReturn

from sqlalchemy import Connection, and_, insert, or_, select

from planner.catalogue import close_matches
from planner.errors import UnknownName
from pricing.errors import NothingToDecide, UnclearDecision
from pricing.offer import Verdict
from pricing.storage.memory import Origin
from pricing.storage.rows import PRICE, REVIEW, SERIES, bump_revision, update_prices
from pricing.storage.superseding import reopen_snapshot, supersede_snapshot
from pricing.verification.recall import is_accepted

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
    connection: Connection,
    offer_id: str,
    decision: Decision,
    *,
    reason: str,
    by: str,
    now: datetime,
    price: Decimal | None = None,
) -> Review:
    """
    Record a decision on an offer within the given transaction, and put it in force.

    An accepted price counts as verified from the day on which it was first seen. A rejected one stays out of
    every plan as long as the provider shows it; a verified price that it had replaced is back. So a wrong
    acceptance is taken back: the accepted price is rejected.

    Args:
        connection: In a transaction.
        offer_id: `Offer.id`, or its beginning.
        decision: What is decided.
        reason: Why, in the person's words.
        by: Who decides.
        now: When.
        price: Which price of the offer is meant, to the cent; needed to reject where an accepted one is in
            force and another waits. [USD/h]

    Raises:
        UnknownName: if there is no such offer, nothing to decide about it, or its GPU is not known.
        UnclearDecision: if several of its prices may be meant, or none is so high.
    """
    open_prices = _open_prices(connection, offer_id)
    verified = next((one for one in open_prices if one.verdict == Verdict.VERIFIED), None)
    waiting = next((one for one in open_prices if one.verdict != Verdict.VERIFIED), None)
    if price is not None:
        target = _priced(open_prices, price, decision)
    elif decision is Decision.ACCEPT:
        target = waiting
    else:
        _refuse_unclear(waiting, verified)
        target = waiting if waiting is not None and waiting.verdict == Verdict.QUARANTINED else verified
    done = Verdict.VERIFIED if decision is Decision.ACCEPT else Verdict.REJECTED
    if target is None or target.verdict == done:
        _refuse_needless(offer_id, open_prices, decision, target)
    if decision is Decision.ACCEPT and target.gpu is None:
        why = f"names no GPU that is known, only {target.gpu_raw!r}: its price can be verified by nobody"
        raise NothingToDecide(target.offer_id, why)
    if decision is Decision.ACCEPT:
        replaced = _accept(connection, target, verified)
    else:
        replaced = _reject(connection, target, waiting)
    text = f"{decision}ed by {by} on {now:%Y-%m-%d}: {reason}"
    reasons = json.dumps([*_reasons(target), text], ensure_ascii=False)
    update_prices(connection, [target.id], {"reasons": reasons})
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


def _priced(open_prices: Sequence[Any], price: Decimal, decision: Decision) -> Any:
    """Return the price of an offer that a person names, rounded as that is, and to the cent at least."""
    exponent = price.as_tuple().exponent
    cent = Decimal(1).scaleb(min(-2, exponent if isinstance(exponent, int) else 0))
    found = [one for one in open_prices if one.usd_per_hour.quantize(cent) == price.quantize(cent)]
    if open_prices and len(found) != 1:
        raise UnclearDecision(
            f"offer {open_prices[0].offer_id!r} has {'several prices' if found else 'no price'} of {price:f} "
            f"USD/h to {decision}: {_listed(open_prices)}"
        )
    return found[0] if found else None


def _refuse_unclear(waiting: Any | None, verified: Any | None) -> None:
    """
    Refuse to reject one of two prices that may be meant.

    Raises:
        UnclearDecision: where a person accepted the one in force, or rejected the other already.
    """
    if waiting is None or verified is None:
        return
    if is_accepted(_reasons(verified)) or waiting.verdict == Verdict.REJECTED:
        raise UnclearDecision(
            f"offer {verified.offer_id!r} has two prices, {_listed((verified, waiting))}: say which to "
            f"reject, for instance with --price {_amount(verified)}"
        )


def _refuse_needless(
    offer_id: str, open_prices: Sequence[Any], decision: Decision, target: Any | None
) -> NoReturn:
    if not open_prices:
        raise UnknownName("offer", offer_id)
    state = "is verified already" if decision is Decision.ACCEPT else "is rejected already"
    if target is not None and len(open_prices) > 1:
        state = f"at {_amount(target)} USD/h {state}"
    raise NothingToDecide(open_prices[0].offer_id, f"{state}; there is nothing to {decision}")


def _listed(prices: Iterable[Any]) -> str:
    """Say what an offer costs, and what each price is, the one in force first."""
    ordered = sorted(prices, key=lambda one: (one.verdict != Verdict.VERIFIED, one.id))
    return " and ".join(f"{_amount(one)} USD/h ({_state(one)})" for one in ordered)


def _amount(one: Any) -> str:
    """Write a price exactly, with cents."""
    exact, rounded = f"{one.usd_per_hour.normalize():f}", f"{one.usd_per_hour:.2f}"
    return rounded if Decimal(rounded) == one.usd_per_hour else exact


def _state(one: Any) -> str:
    if one.verdict == Verdict.VERIFIED:
        return "accepted, in force" if is_accepted(_reasons(one)) else "in force"
    return "waits" if one.verdict == Verdict.QUARANTINED else "rejected"


def _reasons(one: Any) -> list[str]:
    reasons: list[str] = json.loads(one.reasons or "[]")
    return reasons


def _open_prices(connection: Connection, offer_id: str) -> Sequence[Any]:
    """Return the current prices of one offer, from own runs, and bundled ones that are held back."""
    wanted = offer_id.strip().lower()
    is_held = and_(
        PRICE.c.origin == Origin.SNAPSHOT, PRICE.c.verdict != Verdict.VERIFIED, SERIES.c.gpu.is_not(None)
    )
    query = (
        select(
            *(PRICE.c.id, PRICE.c.series_id, PRICE.c.verdict, PRICE.c.reasons, PRICE.c.first_seen_at),
            *(PRICE.c.usd_per_hour, PRICE.c.last_seen_at, PRICE.c.currency, PRICE.c.price_original),
            *(PRICE.c.origin, SERIES.c.offer_id, SERIES.c.provider, SERIES.c.witness),
            *(SERIES.c.gpu, SERIES.c.gpu_raw),
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
        update_prices(connection, [verified.id], values)
    update_prices(connection, [target.id], {"verdict": str(Verdict.VERIFIED)})
    if target.witness is None and target.origin == Origin.REFRESH:
        supersede_snapshot(connection, target.provider)
    return None if verified is None else int(verified.id)


def _reject(connection: Connection, target: Any, waiting: Any | None) -> int | None:
    """Reject a price; where it was in force, what it had replaced is back, of own runs or bundled."""
    update_prices(connection, [target.id], {"verdict": str(Verdict.REJECTED)})
    if target.verdict != Verdict.VERIFIED:
        return None
    if waiting is not None and waiting.origin == target.origin:
        # The provider shows another price by now, and of an offer one at most is held back.
        values = {"closed_at": max(target.last_seen_at, waiting.first_seen_at), "closed_why": "changed"}
        update_prices(connection, [target.id], values)
    first_seen_at = target.first_seen_at
    before = _replaced(connection, target.series_id, first_seen_at)
    while before is not None and _is_its_figure(before, target):  # at another rate of exchange
        update_prices(connection, [before.id], {"verdict": str(Verdict.REJECTED)})
        first_seen_at = before.first_seen_at
        before = _replaced(connection, target.series_id, first_seen_at)
    if before is not None:
        values = {"closed_at": None, "closed_why": None}
        update_prices(connection, [before.id], values)
    elif target.witness is None and target.origin == Origin.REFRESH:
        reopen_snapshot(connection, target.provider, first_seen_at)
    return None if before is None else int(before.id)


def _replaced(connection: Connection, series_id: int, first_seen_at: datetime) -> Any | None:
    """Return the verified price of an own run that one first seen then took the place of."""
    return connection.execute(
        select(PRICE.c.id, PRICE.c.first_seen_at, PRICE.c.currency, PRICE.c.price_original)
        .where(
            PRICE.c.series_id == series_id,
            PRICE.c.origin == Origin.REFRESH,
            PRICE.c.verdict == Verdict.VERIFIED,
            PRICE.c.closed_at >= first_seen_at,
            PRICE.c.closed_why == "changed",
        )
        .order_by(PRICE.c.closed_at, PRICE.c.id)
    ).first()


def _is_its_figure(one: Any, target: Any) -> bool:
    """Whether two prices are one in the provider's own currency."""
    is_same = (one.currency, one.price_original) == (target.currency, target.price_original)
    return is_same and one.currency != "USD"
