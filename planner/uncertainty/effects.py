"""What each input does to owning against renting over its range, while all others stay: small curves."""

from dataclasses import dataclass

import numpy as np

from planner.assumptions import Assumptions
from planner.scenario import Scenario
from planner.supply.options import Option
from planner.uncertainty.comparison import Comparison
from planner.uncertainty.uncertain import Uncertain, uncertain_inputs

# Enough to see where a curve bends.
POINTS = 9


@dataclass(frozen=True, slots=True, kw_only=True)
class InputEffect:
    """What owning costs more than renting as one input goes over its range."""

    input: Uncertain
    values: tuple[float, ...]  # from its low to its high end
    extra_usd_per_month: tuple[float, ...]  # of owning over renting, at each of them [USD/month]
    base_usd_per_month: float  # of the same, at its base value [USD/month]


def input_effects(
    purchase: Option, rental: Option, scenario: Scenario, assumptions: Assumptions
) -> tuple[InputEffect, ...]:
    """
    Return the curve of every input that counts, those too that the question states; in one evaluation.

    The two machines stay the same throughout: no other becomes the cheapest.

    Args:
        purchase: To buy.
        rental: What it is compared with.
        scenario: The question.
        assumptions: The values in use.

    Source:
        docs/methodology.md, "Uncertainty".
    """
    inputs = uncertain_inputs(purchase, rental, scenario, assumptions, with_stated=True)
    size = 1 + POINTS * len(inputs)
    drawn = {each.name: np.full(size, each.base) for each in inputs}
    for place, each in enumerate(inputs):
        drawn[each.name][_columns(place)] = np.linspace(each.low, each.high, POINTS)
    extra = -Comparison(purchase, rental, scenario, assumptions).outcome(drawn, size).saving
    return tuple(
        InputEffect(
            input=each,
            values=tuple(drawn[each.name][_columns(place)].tolist()),
            extra_usd_per_month=tuple(extra[_columns(place)].tolist()),
            base_usd_per_month=float(extra[0]),
        )
        for place, each in enumerate(inputs)
    )


def _columns(place: int) -> slice:
    return slice(1 + POINTS * place, 1 + POINTS * (place + 1))
