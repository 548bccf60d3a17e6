"""Whether the rates of a day can be believed: against those in force, and against what is pegged to what."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from typing import Any

from pricing.errors import ParseError
from pricing.money.ecb import DayRates

# How far a rate may lie from the one in force, by the days between them at most. Source: the largest moves of
# the dollar and the pound within so many days since 1999 are 1.054, 1.089, 1.106, 1.158, 1.179, 1.268, 1.334
# and 1.589: European Central Bank, eurofxref-hist, of 1999-01-04 to 2026-10-30.
LIMITS = (
    *((1, Decimal("1.06")), (4, Decimal("1.10")), (7, Decimal("1.12")), (14, Decimal("1.17"))),
    *((31, Decimal("1.20")), (92, Decimal("1.28")), (366, Decimal("1.36")), (1100, Decimal("1.65"))),
)
# After longer than that; a larger move takes a person, however often it is seen. Own choice: a slip of the
# point is ten.
FAR = Decimal(2)
# The Hong Kong dollar is kept within these by the US dollar. Source: Hong Kong Monetary Authority, Linked
# Exchange Rate System, since 2005.
HKD_PER_USD = (Decimal("7.75"), Decimal("7.85"))
# The two are taken a moment apart: the reference rates put it at 7.655 to 7.850. Source: eurofxref-hist.
APART = Decimal("1.015")
# The krone is kept within 2.25 % of this. Source: European Central Bank, ERM II, Denmark since 1999.
DKK_PER_EUR, DKK_WITHIN = Decimal("7.46038"), Decimal("1.0225")
_TIED = ("DKK", "HKD")
# So near to another number a rate is taken for it, where the two differ by more than the other. Own choice.
SAME, DIFFERENT = Decimal("1.02"), Decimal("1.05")
# A move is true where the bank says so on three of its days: an error is gone with the next. Own choice.
DAYS = 3
# What three days make up for; the other rules say that the page is misread, and that repeats itself.
CONFIRMED_BY_DAYS = frozenset({"move", "first-sight", "unchecked"})

Doubt = tuple[str, str]  # the rule, and why


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownRate:
    """What one euro is worth in a currency, as it is in force."""

    units: Decimal
    as_of: date


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldRate:
    """A rate that is not taken, and why."""

    currency: str
    units: Decimal
    rule: str
    why: str
    days: tuple[date, ...]  # of the bank, on which it said about so; the last is that of the rate

    @property
    def line(self) -> str:
        """Say it in one line, with the way out."""
        if self.rule in CONFIRMED_BY_DAYS:
            out = f"waits until seen on {DAYS} days, {len(self.days)} so far"
        else:
            out = "not taken"
        return f"{self.why}: {out} (`breakeven prices accept ecb:{self.currency}` takes it)"

    def to_document(self) -> dict[str, Any]:
        """Return it as it is shown and kept."""
        return {
            "currency": self.currency,
            "units_per_euro": f"{self.units:f}",
            "as_of": self.days[-1].isoformat(),
            "rule": self.rule,
            "why": self.why,
            "days": [day.isoformat() for day in self.days],
        }

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> "HeldRate":
        """Return what `to_document` said."""
        return cls(
            currency=document["currency"],
            units=Decimal(document["units_per_euro"]),
            rule=document["rule"],
            why=document["why"],
            days=tuple(date.fromisoformat(day) for day in document["days"]),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedRates:
    """The rates of a day with their verdicts."""

    as_of: date
    stated: Mapping[str, Decimal]  # all of the page
    taken: Mapping[str, Decimal]  # those to convert with; none without the dollar
    held: tuple[HeldRate, ...] = ()
    remarks: tuple[str, ...] = ()  # what was passed over, and why

    @property
    def odd(self) -> tuple[str, ...]:
        """What was not taken, a line each."""
        return (*(one.line for one in self.held), *self.remarks)


def judge(day: DayRates, known: Mapping[str, KnownRate], waiting: Mapping[str, HeldRate]) -> JudgedRates:
    """
    Return which rates of a day are taken.

    Args:
        day: As the bank's page states it.
        known: The rate of each currency in force.
        waiting: What was held back the last time, by currency.

    Raises:
        ParseError: if the page is older than the rates in force.

    Source:
        docs/verification.md, "Exchange rates".
    """
    dollar = known.get("USD")
    if dollar is not None and day.as_of < dollar.as_of:
        raise ParseError(f"rates: they are of {day.as_of}, older than those in force, of {dollar.as_of}")
    stated = day.units_per_euro
    of_page, of_dollar = _of_page(stated, known), _of_dollar(stated, known)
    # What their ties confirm is no misreading: then what is in force may have been one.
    checked = () if of_dollar or not {*_TIED} <= stated.keys() else ("USD", "HKD")
    taken, held, remarks = {}, [], []
    for currency, units in stated.items():
        before = known.get(currency)
        if before is not None and before.as_of >= day.as_of:
            if units != before.units:
                remarks.append(
                    f"{currency} {units} per euro, and {before.units} of {before.as_of} is in force"
                )
            elif before.as_of == day.as_of:
                taken[currency] = units
            continue
        doubt = (
            of_page
            or (None if currency in checked else _exchanged(currency, units, stated, known))
            or _apart(of_dollar.get(currency), _moved(currency, units, day.as_of, before))
        )
        if doubt is None:
            taken[currency] = units
            continue
        rule, why = doubt
        one = HeldRate(currency=currency, units=units, rule=rule, why=why, days=(day.as_of,))
        one = _continued(one, waiting.get(currency))
        if rule in CONFIRMED_BY_DAYS and len(one.days) >= DAYS:
            taken[currency] = units
        else:
            held.append(one)
    missing = sorted(known.keys() - stated.keys())
    if missing:
        remarks.append(f"not on the page: {', '.join(missing)}; the last ones stand")
    return JudgedRates(
        as_of=day.as_of,
        stated=stated,
        taken=taken if "USD" in taken else {},
        held=tuple(held),
        remarks=tuple(remarks),
    )


def limit(days: int) -> Decimal:
    """Return by which factor a rate may move within so many days."""
    return next((factor for within, factor in LIMITS if days <= within), FAR)


def _of_page(stated: Mapping[str, Decimal], known: Mapping[str, KnownRate]) -> Doubt | None:
    """Return what speaks against the whole page."""
    krone, before = stated.get("DKK"), known.get("DKK")
    band = DKK_PER_EUR / DKK_WITHIN, DKK_PER_EUR * DKK_WITHIN
    if krone is None or not _leaves(krone, None if before is None else before.units, *band):
        return None
    return (
        "base",
        f"the krone at {krone} per euro, which Denmark keeps near {DKK_PER_EUR}: per something else?",
    )


def _of_dollar(stated: Mapping[str, Decimal], known: Mapping[str, KnownRate]) -> dict[str, Doubt]:
    """Return what speaks against the dollar, or against that of Hong Kong, by currency."""
    dollar, hong_kong = stated.get("USD"), stated.get("HKD")
    absent = [name for name in _TIED if name in known and name not in stated]
    if absent:
        return {"USD": ("unchecked", f"USD {dollar} per euro, with no {' and '.join(absent)} to check it by")}
    if dollar is None or hong_kong is None:
        return {}
    ratio, was = hong_kong / dollar, None
    if {"HKD", "USD"} <= known.keys() and known["HKD"].as_of == known["USD"].as_of:
        was = known["HKD"].units / known["USD"].units
    low, high = HKD_PER_USD
    if not _leaves(ratio, was, low / APART, high * APART):
        return {}
    why = f"at {ratio:.3f} Hong Kong dollars to the US dollar, which are kept at {low} to {high}"
    both = [name for name in ("USD", "HKD") if name in known]
    moved = [name for name in both if not _within(stated[name], known[name].units, SAME)]
    return {name: ("dollar", f"{name} {stated[name]} per euro, {why}") for name in moved or ["USD"]}


def _apart(of_dollar: Doubt | None, moved: Doubt | None) -> Doubt | None:
    """Return what speaks against a rate; against a dollar that moved far, and by nothing checked, both."""
    if of_dollar is not None and of_dollar[0] == "unchecked" and moved is not None:
        return "dollar", f"{moved[1]}, and the page lacks what would check it"
    return of_dollar or moved


def _exchanged(
    currency: str, units: Decimal, stated: Mapping[str, Decimal], known: Mapping[str, KnownRate]
) -> Doubt | None:
    """Return that a rate is upside down, or that of another currency."""
    before = known.get(currency)
    if before is None or _within(units, before.units, DIFFERENT):
        return None
    if _within(units * before.units, Decimal(1), SAME):
        return "inverse", f"{_after(currency, units, before)}: the inverse"
    for other in _swapped_with(currency, units, stated, known):
        return "swapped", f"{_after(currency, units, before)}: exchanged with {other}"
    return None


def _moved(currency: str, units: Decimal, day: date, before: KnownRate | None) -> Doubt | None:
    """Return that a rate is too far from the one in force, or that there is none."""
    if before is None:
        return "first-sight", f"{currency} {units} per euro, seen for the first time"
    if not _within(units, before.units, FAR):
        return "far", f"{_after(currency, units, before)}: more than {FAR} times"
    days = (day - before.as_of).days
    if not _within(units, before.units, limit(days)):
        within = "a day" if days == 1 else f"{days} days"
        return "move", f"{_after(currency, units, before)}: more than {limit(days)} times within {within}"
    return None


def _after(currency: str, units: Decimal, before: KnownRate) -> str:
    return f"{currency} {units} per euro, after {before.units} on {before.as_of}"


def _swapped_with(
    currency: str, units: Decimal, stated: Mapping[str, Decimal], known: Mapping[str, KnownRate]
) -> Iterator[str]:
    """Yield the currency with which one has exchanged its rate."""
    before = known[currency].units
    for other, theirs in known.items():
        is_theirs = other != currency and other in stated and _within(units, theirs.units, SAME)
        if is_theirs and _within(stated[other], before, SAME):
            yield other


def _leaves(value: Decimal, before: Decimal | None, low: Decimal, high: Decimal) -> bool:
    """Whether a value is outside of where it is kept, unless what is in force is so too."""
    if low <= value <= high:
        return False
    return before is None or low <= before <= high or not _within(value, before, SAME)


def _within(one: Decimal, other: Decimal, factor: Decimal) -> bool:
    return 1 / factor <= one / other <= factor


def _continued(one: HeldRate, before: HeldRate | None) -> HeldRate:
    """Return a rate with the earlier days on which the bank said about the same."""
    if before is None:
        return one
    day, last = one.days[-1], before.days[-1]
    if day <= last:
        return before if day < last or one.units == before.units else one
    if not _within(one.units, before.units, limit((day - last).days)):
        return one
    return replace(one, days=(*before.days, day))
