"""Whether what a list says of token prices can be believed: against what is known, and over time."""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal

from planner.catalogues.tokens import TokenPrice
from pricing.errors import ParseError
from pricing.offer import Verdict
from pricing.tokens.litellm import ListedPrice

# Prices by the million lay between 0.01 and 60 USD in November 2026: what is outside is in another unit, as
# 15,000 for one that is 0.015 was. Source: planner/data/api_prices.csv.
LOWEST_USD, HIGHEST_USD = Decimal("0.001"), Decimal(1000)
# A price that moved by more waits: larger cuts happen and are rare, a slip of the point is ten. Own choice.
JUMP = Decimal(2)
# How far a price may lie outside of what all other providers ask for the model: these differ by 4 to 6 times
# among themselves. Source: planner/data/api_prices.csv, gpt-oss-120b and llama-3.3-70b-instruct.
APART = Decimal(3)
# A mistake in the list is corrected within days; what still stands after a week is taken. Own choice.
CONFIRMED_AFTER = timedelta(days=7)
# Where so many of the prices have jumped at once the unit has changed, and nothing is believed. Own choice.
TOO_MANY, AT_LEAST = 0.25, 8
# Where more than half of the known prices, and so many, have moved by one factor (within so much), or in one
# direction by more than so much, all that is new or changed waits: prices move one by one. Own choice.
MOST, MASS_AT_LEAST, ONE_FACTOR, FAR = 0.5, 5, 0.005, 1.2


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldPrice:
    """A price as it is kept."""

    usd: tuple[Decimal, Decimal, Decimal | None]  # input, output, cached input [USD/Mtok]
    day: str  # of the last time that it was seen; "bundled, " goes before that of a bundled one
    first_seen_at: datetime | None = None  # None: bundled
    verdict: Verdict = Verdict.VERIFIED


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """A price of the list with its verdict."""

    price: ListedPrice
    verdict: Verdict
    reason: str | None
    model_id: str


def judge(
    prices: Sequence[ListedPrice],
    verified: Mapping[tuple[str, str], HeldPrice],
    waiting: Mapping[tuple[str, str], HeldPrice],
    bundled: Sequence[TokenPrice],
    model_ids: Mapping[tuple[str, str], str],
    now: datetime,
) -> list[Judged]:
    """
    Return the prices that belong to a model of the catalogue, each with its verdict.

    Args:
        prices: What the list says.
        verified: The price in force, by provider and model.
        waiting: What was held back the last time.
        bundled: The bundled prices.
        model_ids: Which model of the catalogue each of the prices is for.
        now: The time of the run.

    Raises:
        ParseError: if so many have jumped that the unit must have changed.

    Source:
        docs/verification.md, "Token prices".
    """
    known = _bundled(bundled) | dict(verified)
    levels = _levels(bundled)
    ours = [price for price in prices if price.key in model_ids]
    mass = _moved_at_once(ours, known)
    judged, compared, jumped = [], 0, 0
    for price in ours:
        model_id, before = model_ids[price.key], known.get(price.key)
        verdict, reason = _first_verdict(price, before, levels.get(model_id))
        if before is not None:
            compared += 1
            jumped += reason is not None
        waits = _same_waiting(price, waiting)
        if verdict is Verdict.QUARANTINED and waits is not None and _has_stood(waits, now):
            verdict, reason = Verdict.VERIFIED, None
        is_settled = (before is not None and before.usd == price.usd) or (
            waits is not None and _was_seen_on_three_days(waits, now)
        )
        if verdict is Verdict.VERIFIED and mass is not None and not is_settled:
            verdict, reason = Verdict.QUARANTINED, mass
        judged.append(Judged(price=price, verdict=verdict, reason=reason, model_id=model_id))
    if jumped >= AT_LEAST and jumped > TOO_MANY * compared:
        raise ParseError(f"prices: {jumped} of {compared} have jumped at once: another unit?", page="prices")
    return judged


def _first_verdict(
    price: ListedPrice, before: HeldPrice | None, level: tuple[Decimal, Decimal] | None
) -> tuple[Verdict, str | None]:
    """Return what a price is by itself, and why: against the one before, else against other providers'."""
    reason = _out_of_range(price.usd)
    if reason is not None:
        return Verdict.REJECTED, reason
    reason = _far(price.usd, level) if before is None else _jump(price.usd, before)
    return (Verdict.VERIFIED, None) if reason is None else (Verdict.QUARANTINED, reason)


def _bundled(prices: Sequence[TokenPrice]) -> dict[tuple[str, str], HeldPrice]:
    """Return the bundled prices in the form of kept ones."""
    found = {}
    for each in prices:
        usd_in, usd_out = each.usd_per_mtok_input, each.usd_per_mtok_output
        if usd_in is None or usd_out is None:
            continue
        cached = each.usd_per_mtok_cached_input
        found[each.provider, each.model_name] = HeldPrice(
            usd=(_exact(usd_in), _exact(usd_out), None if cached is None else _exact(cached)),
            day=f"bundled, {each.as_of}",
        )
    return found


def _exact(value: float) -> Decimal:
    return Decimal(repr(value))


def _levels(prices: Sequence[TokenPrice]) -> dict[str, tuple[Decimal, Decimal]]:
    """Return the lowest and highest price of output tokens of each model."""
    levels: dict[str, tuple[Decimal, Decimal]] = {}
    for each in prices:
        if each.model_id and each.usd_per_mtok_output:
            usd = _exact(each.usd_per_mtok_output)
            low, high = levels.get(each.model_id, (usd, usd))
            levels[each.model_id] = (min(low, usd), max(high, usd))
    return levels


def _out_of_range(usd: Sequence[Decimal | None]) -> str | None:
    for amount in usd:
        if amount is not None and not LOWEST_USD <= amount <= HIGHEST_USD:
            return (
                f"{amount:f} USD a million tokens is outside {LOWEST_USD:f} to {HIGHEST_USD:f}: another unit?"
            )
    return None


def _jump(usd: Sequence[Decimal | None], known: HeldPrice) -> str | None:
    for word, new, old in zip(("input", "output", "cached input"), usd, known.usd, strict=True):
        if new is not None and old is not None and old > 0 and not 1 / JUMP <= new / old <= JUMP:
            after = f"{old:f} ({known.day})"
            return f"{word} at {new:f} USD a million tokens after {after}: more than {JUMP:f} times"
    return None


def _far(usd: Sequence[Decimal | None], level: tuple[Decimal, Decimal] | None) -> str | None:
    output = usd[1] or Decimal(0)
    if level is None:
        return "seen for the first time, and no other provider's price of the model is known"
    low, high = level
    if low / APART <= output <= high * APART:
        return None
    return f"output at {output:f} USD a million tokens, {low.normalize():f} to {high.normalize():f} elsewhere"


def _moved_at_once(prices: Sequence[ListedPrice], known: Mapping[tuple[str, str], HeldPrice]) -> str | None:
    """Return that most known prices moved together; None where they did not."""
    factors = [_furthest(price, known[price.key].usd) for price in prices if price.key in known]
    moved = [factor for factor in factors if abs(factor - 1) > ONE_FACTOR]
    if not moved:
        return None
    middle = statistics.median(moved)
    alike = sum(abs(factor / middle - 1) <= ONE_FACTOR for factor in moved)
    most = max(alike, sum(factor > FAR for factor in moved), sum(factor < 1 / FAR for factor in moved))
    if most < MASS_AT_LEAST or most <= MOST * len(factors):
        return None
    return (
        f"{most} of {len(factors)} known prices moved at once, {middle:.2f} times in the middle: waits until "
        "seen on three days"
    )


def _furthest(price: ListedPrice, known: Sequence[Decimal | None]) -> float:
    """Return by which factor the input or the output moved, whichever did further."""
    now = (price.usd_per_mtok_input, price.usd_per_mtok_output)
    factors = [float(new / old) for new, old in zip(now, known, strict=False) if old]
    return max(factors, key=lambda factor: abs(math.log(factor)) if factor > 0 else math.inf, default=1.0)


def _same_waiting(price: ListedPrice, waiting: Mapping[tuple[str, str], HeldPrice]) -> HeldPrice | None:
    """Return what was held back the last time, where it is this very price."""
    held = waiting.get(price.key)
    return held if held is not None and held.usd == price.usd else None


def _was_seen_on_three_days(waits: HeldPrice, now: datetime) -> bool:
    """Whether what waits stood unchanged on two earlier days."""
    since = waits.first_seen_at
    return since is not None and since.date().isoformat() < waits.day < now.date().isoformat()


def _has_stood(waits: HeldPrice, now: datetime) -> bool:
    """Whether what was held back has stood unchanged for long enough."""
    since = waits.first_seen_at
    return waits.verdict is Verdict.QUARANTINED and since is not None and now - since >= CONFIRMED_AFTER
