"""A demand that grows: until when the machines of today carry it."""

import math

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
    growth = assumptions[GROWTH]
    if growth <= 0.0 or option.point is None:
        return None
    peak = Demand.of(scenario).peak_tokens_per_s
    if peak is None:
        return None
    carried = option.point.capacity_tokens_per_s * option.replicas
    return max(0.0, 12.0 * math.log(carried / peak) / math.log1p(growth))
