"""A demand that grows: until when the machines of today carry it."""

import math
from collections.abc import Iterable

from planner.assumptions import Assumptions
from planner.scenario import Scenario
from planner.supply.operate import Demand
from planner.supply.options import Option

GROWTH = "demand_growth_per_year"


def carries_until_months(option: Option, scenario: Scenario, assumptions: Assumptions) -> float | None:
    """
    Return after how many months a growing demand is more than an option's machines carry at its peak.

    Returns:
        Months from now; None where nothing grows, or no machine is there that could be too few.

    Source:
        docs/methodology.md, "Plan".
    """
    growth, peak = assumptions[GROWTH], Demand.of(scenario).peak_tokens_per_s
    if growth <= 0.0 or peak is None or option.point is None:
        return None
    carried = option.point.capacity_tokens_per_s * option.replicas
    return max(0.0, 12.0 * math.log(carried / peak) / math.log1p(growth))


def growth_remarks(
    scenario: Scenario, assumptions: Assumptions, rental: Option | None, purchase: Option | None
) -> Iterable[str]:
    """Say until when rental and purchase of the verdict carry a growing demand."""
    growth = assumptions[GROWTH]
    if growth == 0.0:
        return
    if not scenario.has_demand:
        yield f"{GROWTH} is set, and no demand is given that could grow (--tokens-per-month)."
        return
    parts = []
    for option in (rental, purchase):
        months = None if option is None else carries_until_months(option, scenario, assumptions)
        if option is not None and months is not None:
            parts.append(f"{option.times_text} carry it until month {months:,.0f}")
    later = f": {', '.join(dict.fromkeys(parts))}; then more of them are needed" if parts else ""
    yield f"The demand changes by {growth:+.0%} a year; all figures are for that of the first month{later}."
