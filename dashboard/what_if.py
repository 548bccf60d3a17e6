"""What if one assumption were different: the answer over its range, and how far each one moves it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from dashboard import data
from planner.assumptions import Owner, all_assumptions
from planner.compare import Plan
from planner.scenario import Scenario
from planner.supply.options import Option
from planner.uncertainty.effects import InputEffect, input_effects

EFFECT_POINTS = 9  # enough to see where a curve bends, and few enough to wait for
WHOLE = ("input_tokens", "output_tokens", "host_gpus")  # numbers of things
HOURS = "hours_per_day"
ELECTRICITY = "electricity_usd_per_kwh"


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """What a month costs on the cheapest way to rent and to own, as one assumption moves."""

    title: str
    unit: str
    source: str
    currency: str
    here: float | None  # the present value, where it is one
    values: Sequence[float]
    rent: Sequence[float | None]
    own: Sequence[float | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Influence:
    """How far one assumption moves what owning costs more than renting, over its range, all others held."""

    name: str
    title: str
    unit: str
    source: str
    here: float | None  # the present value, where it is one
    values: Sequence[float]  # from the low to the high end of its range
    gaps: Sequence[float]  # owning less renting at each of them, in the currency shown [a month]
    gap_here: float

    @property
    def swing(self) -> float:
        """The span of the gaps. [a month]"""
        gaps = (*self.gaps, self.gap_here)
        return max(gaps) - min(gaps)

    @property
    def flips(self) -> bool:
        """Whether another way would be cheaper somewhere in the range."""
        return any((gap > 0) != (self.gap_here > 0) for gap in self.gaps)


def movable(scenario: Scenario) -> dict[str, str]:
    """
    Return the assumptions that can be moved, the names behind their titles.

    What a catalogue gives machine by machine has no range that would hold for all of them.
    """
    options, owner = scenario.to_document(), Owner(scenario.owner)
    idle = set() if scenario.has_demand else {"peak_factor"}
    if scenario.load_profile is not None:  # its hours and its peak count
        idle = {HOURS, "peak_factor"}
    return {
        record.title: record.name
        for record in all_assumptions().values()
        if record.low < record.high
        and record.by_owner(owner) is not None
        and (record.option is None or record.name in options)
        and record.name not in idle
    }


def effect(scenario: Scenario, name: str) -> Effect:
    """Return what a month costs over the range seen of one assumption, all others held."""
    record = all_assumptions()[name]
    step = (record.high - record.low) / (EFFECT_POINTS - 1)
    values = [record.low + step * number for number in range(EFFECT_POINTS)]
    if name in WHOLE:
        values = list(dict.fromkeys(float(round(value)) for value in values))
    plans = [data.plan(_with(scenario, name, value)) for value in values]
    return Effect(
        title=record.title,
        unit=record.unit,
        source=record.source,
        currency=plans[0].money.currency,
        here=_present(scenario, name),
        values=values,
        rent=[_month(found.rental, found) for found in plans],
        own=[_month(found.purchase, found) for found in plans],
    )


def at_hand(found: Plan) -> list[Influence]:
    """
    Return what each uncertain input and the hours do to the two machines of the answer, the strongest first.

    One evaluation of arrays, too quick to keep: no other machine becomes the cheapest on the way.
    """
    purchase = found.purchase
    rental = None if purchase is None else purchase.compared_with
    if purchase is None or rental is None:
        return []
    curves = input_effects(purchase, rental, found.scenario, found.assumptions)
    influences = [_influence(curve, found) for curve in curves]
    hours = _of_hours(found, purchase, rental)
    return _strongest_first([*influences, *([] if hours is None else [hours])])


def _influence(curve: InputEffect, found: Plan) -> Influence:
    return Influence(
        name=curve.input.name,
        title=curve.input.title,
        unit=curve.input.unit,
        source=curve.input.source,
        here=curve.input.base,
        values=curve.values,
        gaps=[found.money.amount(usd) for usd in curve.extra_usd_per_month],
        gap_here=found.money.amount(curve.base_usd_per_month),
    )


def _of_hours(found: Plan, purchase: Option, rental: Option) -> Influence | None:
    """Return what the hours of use do, where they are asked for and the rental is paid by them."""
    lines = found.cost_by_hours(purchase, rental)
    gap = _gap(found)
    own, rent = lines.own_usd_per_month, lines.rent_usd_per_month
    if found.scenario.has_demand or rental.is_reserved or own is None or rent is None or gap is None:
        return None
    record = all_assumptions()[HOURS]
    shown = range(round(record.low), round(record.high) + 1)
    whole = [place for place, hours in enumerate(lines.hours_per_day) if hours in shown]
    return Influence(
        name=HOURS,
        title=record.title,
        unit=record.unit,
        source=record.source,
        here=found.scenario.hours_per_day,
        values=[lines.hours_per_day[place] for place in whole],
        gaps=[found.money.amount(own[place] - rent[place]) for place in whole],
        gap_here=gap,
    )


def planned_anew(
    scenario: Scenario, progress: Callable[[float], None] = lambda share: None
) -> list[Influence]:
    """
    Return what every other assumption does, by a plan at both ends of its range; the strongest first.

    Those that move nothing are left out. Another machine may become the cheapest at an end.

    Args:
        scenario: The question.
        progress: Is told how much is done, 0 to 1; it may end the work by raising.
    """
    base = data.plan(scenario)
    here = _gap(base)
    if here is None:
        return []
    found = []
    known = {each.name for each in at_hand(base)}
    names = [name for name in movable(scenario).values() if name not in known]
    for number, name in enumerate(names, start=1):
        record = all_assumptions()[name]
        ends = [_gap(data.plan(_with(scenario, name, value))) for value in (record.low, record.high)]
        low, high = ends
        if low is not None and high is not None:
            found.append(
                Influence(
                    name=name,
                    title=record.title,
                    unit=record.unit,
                    source=record.source,
                    here=_present(scenario, name),
                    values=(record.low, record.high),
                    gaps=(low, high),
                    gap_here=here,
                )
            )
        progress(number / len(names))
    return _strongest_first(found)


def _strongest_first(found: Sequence[Influence]) -> list[Influence]:
    moving = [each for each in found if each.swing > 0.0]
    return sorted(moving, key=lambda each: -each.swing)


def _present(scenario: Scenario, name: str) -> float | None:
    """Return the value that is in use, None where a catalogue gives it."""
    if name == ELECTRICITY and scenario.electricity_region is not None:
        return None  # a tariff of the catalogue
    is_option = all_assumptions()[name].option is not None
    value = getattr(scenario, name, None) if is_option else scenario.assumptions.get(name)
    return value if isinstance(value, int | float) else None


def _month(option: Option | None, found: Plan) -> float | None:
    """Return what an option costs a month, in the currency shown."""
    return data.in_currency(found.money, None if option is None else option.usd_per_month)


def _gap(found: Plan) -> float | None:
    """Return what owning costs more than renting in a month, None where one of them is not there."""
    rental, purchase = found.rental, found.purchase
    if rental is None or purchase is None or rental.usd_per_month is None or purchase.usd_per_month is None:
        return None
    return found.money.amount(purchase.usd_per_month - rental.usd_per_month)


def _with(scenario: Scenario, name: str, value: float) -> Scenario:
    """Return the question with one assumption at another value."""
    if all_assumptions()[name].option is None:
        return replace(scenario, set=tuple((dict(scenario.set) | {name: value}).items()))
    held = dict(scenario.changed())
    if name == ELECTRICITY:  # in place of the tariff of a region
        held.pop("electricity_region", None)
    return Scenario.from_mapping(held | {name: value})
