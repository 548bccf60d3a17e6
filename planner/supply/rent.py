"""What a month of rented machines costs: the hours paid, the cap, and copies that follow the load."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from planner.rates import RESERVED_TIERS, Billing, Rate, Tier
from planner.scenario import Scenario
from planner.supply.load import Shift
from planner.supply.operate import OperatingPoint
from planner.units import HOURS_PER_MONTH

WHOLE_MONTH = frozenset({Billing.MONTHLY, Billing.PER_TERM})


def paid_hours_per_month(rate: Rate, hours_per_month: float) -> float:
    """
    Hours that are paid: those of use, or the whole month where the machine is reserved. [h/month]

    Source:
        docs/methodology.md, "Renting".
    """
    if rate.tier in RESERVED_TIERS or rate.billing in WHOLE_MONTH:
        return max(HOURS_PER_MONTH, hours_per_month)
    return hours_per_month


def rent_usd_per_month(rate: Rate, hours_per_month: float, lost_work_fraction: float = 0.0) -> float:
    """
    Rent of one machine for a month, up to the provider's monthly cap. [USD/month]

    Args:
        rate: The price.
        hours_per_month: Hours in which the service is there. [h/month]
        lost_work_fraction: On a spot machine, work that has to be done again. [fraction]

    Source:
        docs/methodology.md, "Renting".
    """
    cost = rate.usd_per_hour * paid_hours_per_month(rate, hours_per_month)
    if rate.tier is Tier.SPOT:
        cost /= 1.0 - lost_work_fraction
    return cost if rate.usd_per_month_cap is None else min(cost, rate.usd_per_month_cap)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rent:
    """A month's rent of all replicas."""

    usd: float
    uncapped_usd: float  # what it would be without the provider's cap
    paid_hours: float  # of one replica, the mean over all of them [h/month]


def steps_of(point: OperatingPoint, scenario: Scenario) -> tuple[Shift, ...]:
    """Return which copies of a machine run how long: all the time, or with the load of the day."""
    all_day = Shift(replicas=point.replicas, hours_per_day=scenario.service_hours_per_day)
    return point.shifts or (all_day,)


def rent_of_copy(
    rate: Rate, hours_per_day: float, scenario: Scenario, lost_work_fraction: float = 0.0
) -> float:
    """Rent of one machine for a month in which it runs so many hours of each day. [USD/month]"""
    paid = scenario.month_of(billed_hours_per_day(rate.billing, hours_per_day))
    return rent_usd_per_month(rate, paid, lost_work_fraction)


def billed_hours_per_day(billing: Billing | None, hours_per_day: float) -> float:
    """
    Return the hours of a day's session that are paid: a started one is whole where it is so billed. [h/d]

    Source:
        docs/methodology.md, "Renting".
    """
    return float(math.ceil(hours_per_day - 1e-9)) if billing is Billing.HOURLY else hours_per_day


def rent_of(rate: Rate, steps: Sequence[Shift], scenario: Scenario, lost_work_fraction: float) -> Rent:
    """
    Rent of all replicas for a month; those paid by use are started and stopped with the load of the day.

    Args:
        rate: The price of one machine.
        steps: How many of them run, and how long; at least one.
        scenario: Its days.
        lost_work_fraction: On a spot machine, work that has to be done again. [fraction]

    Source:
        docs/methodology.md, "Renting".
    """
    free = replace(rate, usd_per_month_cap=None)
    usd = uncapped_usd = paid_hours = 0.0
    for step in steps:
        hours = scenario.month_of(billed_hours_per_day(rate.billing, step.hours_per_day))
        usd += step.replicas * rent_usd_per_month(rate, hours, lost_work_fraction)
        uncapped_usd += step.replicas * rent_usd_per_month(free, hours, lost_work_fraction)
        paid_hours += step.replicas * paid_hours_per_month(rate, hours)
    replicas = sum(step.replicas for step in steps)
    return Rent(usd=usd, uncapped_usd=uncapped_usd, paid_hours=paid_hours / replicas)
