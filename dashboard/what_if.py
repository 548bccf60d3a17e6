"""What if one assumption were different: the answer over its range, and how far each one moves it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from dashboard import data
from planner.assumptions import Owner, all_assumptions
from planner.compare import Plan
from planner.options import Option
from planner.scenario import Scenario

EFFECT_POINTS = 9  # enough to see where a curve bends, and few enough to wait for
WHOLE = ("input_tokens", "output_tokens", "host_gpus")  # numbers of things


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


def movable(scenario: Scenario) -> dict[str, str]:
    """
    Return the assumptions that can be moved, the names behind their titles.

    What a catalogue gives machine by machine has no range that would hold for all of them.
    """
    options, owner = scenario.to_document(), Owner(scenario.owner)
    idle = set() if scenario.has_demand else {"peak_factor"}
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
    here = getattr(scenario, name, None) if record.option else scenario.assumptions.get(name)
    return Effect(
        title=record.title,
        unit=record.unit,
        source=record.source,
        currency=plans[0].money.currency,
        here=here if isinstance(here, int | float) else None,
        values=values,
        rent=[_month(found.rental, found) for found in plans],
        own=[_month(found.purchase, found) for found in plans],
    )


def _month(option: Option | None, found: Plan) -> float | None:
    """Return what an option costs a month, in the currency shown."""
    return data.in_currency(found.money, None if option is None else option.usd_per_month)


@dataclass(frozen=True, slots=True, kw_only=True)
class Influence:
    """How far one assumption moves what owning costs more than renting, over its range, all others held."""

    title: str
    unit: str
    source: str
    low: float
    here: float | None  # the present value, where it is one
    high: float
    gap_low: float  # owning less renting, in the currency shown [a month]
    gap_here: float
    gap_high: float

    @property
    def swing(self) -> float:
        """The span between the ends. [a month]"""
        gaps = (self.gap_low, self.gap_here, self.gap_high)
        return max(gaps) - min(gaps)

    @property
    def flips(self) -> bool:
        """Whether another way would be cheaper at one end."""
        return (self.gap_low > 0) != (self.gap_high > 0) or (self.gap_low > 0) != (self.gap_here > 0)


def influences(scenario: Scenario, progress: Callable[[float], None] = lambda share: None) -> list[Influence]:
    """
    Return every assumption that moves the answer, the strongest first; those that move nothing are left out.

    Args:
        scenario: The question.
        progress: Is told how much is done, 0 to 1; it may end the work by raising.
    """
    here = _gap(data.plan(scenario))
    if here is None:
        return []
    found = []
    names = movable(scenario)
    for number, name in enumerate(names.values(), start=1):
        record = all_assumptions()[name]
        ends = [_gap(data.plan(_with(scenario, name, value))) for value in (record.low, record.high)]
        value = getattr(scenario, name, None) if record.option else scenario.assumptions.get(name)
        if ends[0] is not None and ends[1] is not None:
            found.append(
                Influence(
                    title=record.title,
                    unit=record.unit,
                    source=record.source,
                    low=record.low,
                    here=value if isinstance(value, int | float) else None,
                    high=record.high,
                    gap_low=ends[0],
                    gap_here=here,
                    gap_high=ends[1],
                )
            )
        progress(number / len(names))
    moving = [each for each in found if each.swing > 0.0]
    return sorted(moving, key=lambda each: -each.swing)


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
    return Scenario.from_mapping(dict(scenario.changed()) | {name: value})
