"""Renting a machine whose speed is drawn: how many copies each hour of the day takes, and what they cost."""

from collections.abc import Sequence

import numpy as np

from planner.scenario import Scenario
from planner.supply.operate import Demand
from planner.supply.options import Option, RentBasis
from planner.supply.rent import rent_of_copy
from planner.uncertainty.drawn_owning import copies_of_load
from planner.uncertainty.uncertain import Draws


def is_single(option: Option) -> bool:
    """Whether it is what a host asks for a machine of its own, of which there is one."""
    return isinstance(option.basis, RentBasis) and option.basis.rate.is_ask


def rent_at_speed(option: Option, speed: Draws | None, scenario: Scenario, demand: Demand) -> Draws | float:
    """
    Return what a rental costs a month where it is faster or slower than estimated.

    As in the plan, copies that are paid by use run only in the hours that need them. What a host asks is for
    one machine: there is no second at that price.

    Args:
        option: The rental.
        speed: Over its estimate, shape (n,); None: as estimated.
        scenario: Its hours and days.
        demand: What has to be carried.

    Source:
        docs/methodology.md, "Uncertainty".
    """
    month, basis, point = option.usd_per_month or 0.0, option.basis, option.point
    if speed is None or point is None or demand.peak_tokens_per_s is None or is_single(option):
        return month
    if not isinstance(basis, RentBasis):
        raise TypeError(f"{option.name} is no rental")
    paid = _rent_usd(basis, point.capacity_tokens_per_s * speed, scenario, demand)
    most = copies_of_load(demand.peak_tokens_per_s, point.capacity_tokens_per_s * speed)
    storage = basis.storage_usd_per_month / option.replicas * most
    total: Draws = paid + storage + basis.egress_usd_per_month
    return total


def rent_at_hours(option: Option, hours_per_day: Draws, scenario: Scenario) -> Draws:
    """
    Return what a rental costs a month at other hours of use, where these are presence. [USD/month]

    Args:
        option: The rental.
        hours_per_day: Shape (n,). [h/d]
        scenario: Its days.
    """
    basis = option.basis
    if not isinstance(basis, RentBasis):
        raise TypeError(f"{option.name} is no rental")
    hours, place = np.unique(hours_per_day, return_inverse=True)
    each = [rent_of_copy(basis.rate, hour, scenario, basis.lost_work_fraction) for hour in hours.tolist()]
    written = hours_per_day / scenario.hours_per_day  # tokens, and with them what leaves the network
    paid: Draws = np.array(each)[place] * option.replicas
    return paid + basis.storage_usd_per_month + basis.egress_usd_per_month * written


def _rent_usd(basis: RentBasis, capacity: Draws, scenario: Scenario, demand: Demand) -> Draws:
    """Return the rent of all copies, step by step of the day, those that run longest first. [USD/month]"""
    paid, below = np.zeros_like(capacity), np.zeros_like(capacity)
    for load, hours_per_day in _steps(demand.loads_tokens_per_s, demand.peak_tokens_per_s or 0.0, scenario):
        copies = copies_of_load(load, capacity)
        usd = rent_of_copy(basis.rate, hours_per_day, scenario, basis.lost_work_fraction)
        paid += (copies - below) * usd
        below = copies
    return paid


def _steps(loads: Sequence[float], peak: float, scenario: Scenario) -> list[tuple[float, float]]:
    """Return each load of the day with the hours in which there is at least so much, the least first."""
    if not loads:
        return [(peak, scenario.service_hours_per_day)]
    levels = sorted({load for load in loads if load > 0.0})
    return [(level, float(sum(load >= level for load in loads))) for level in levels]
