"""
When buying pays: months, hours a day, utilisation, tokens, and the rent at which the answer flips.

Every function answers None where it never does; nothing negative or infinite is an answer.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from planner.errors import InvalidScenario
from planner.supply.paths import FLAT, Moves
from planner.units import DAYS_PER_MONTH, TOKENS_PER_PRICE

# Beyond twenty years no machine is the same machine: a later break-even is none.
MAX_MONTHS = 240


@dataclass(frozen=True, slots=True, kw_only=True)
class MonthlyCosts:
    """What renting and owning cost in the first month, and how the prices move after it."""

    rent_usd: float  # [USD/month]
    running_usd: float  # of the owned machine, energy included, without capital [USD/month]
    energy_usd: float = 0.0  # the part of it that follows the electricity price [USD/month]
    rents: Moves = FLAT
    electricity: Moves = FLAT

    def __post_init__(self) -> None:
        _check(rent=self.rent_usd, running=self.running_usd, energy=self.energy_usd)

    @property
    def is_flat(self) -> bool:
        """Whether every month costs the same."""
        return self.rents.is_flat and self.electricity.is_flat

    def rent(self, months: NDArray[np.float64]) -> NDArray[np.float64]:
        """Rent paid after each of these months, shape (n,). [USD]"""
        return self.rents.paid_usd(self.rent_usd, months)

    def own(self, capex_usd: float, months: NDArray[np.float64]) -> NDArray[np.float64]:
        """Money spent on the owned machine after each of these months, before a sale, shape (n,). [USD]"""
        energy = self.electricity.paid_usd(self.energy_usd, months)
        other = FLAT.paid_usd(self.running_usd - self.energy_usd, months)
        return capex_usd + other + energy


def break_even_months(
    capex_usd: float, rent_usd_per_month: float, running_usd_per_month: float
) -> float | None:
    """
    Months after which the rent saved has paid the price, without selling the machine; prices are flat.

    Args:
        capex_usd: What is paid at the start. [USD]
        rent_usd_per_month: The rental that is saved. [USD/month]
        running_usd_per_month: Power, space, staff of the owned machine, without capital. [USD/month]

    Returns:
        Months, or None where running it costs as much as renting or more.

    Raises:
        InvalidScenario: if an argument is negative or not finite.

    Source:
        docs/methodology.md, "Break-even".
    """
    _check(capex=capex_usd, rent=rent_usd_per_month, running=running_usd_per_month)
    saving = rent_usd_per_month - running_usd_per_month
    if capex_usd == 0.0:
        return 0.0 if saving >= 0.0 else None
    months = capex_usd / saving if saving > 0.0 else math.inf
    return months if math.isfinite(months) else None


def break_even_months_moving(capex_usd: float, costs: MonthlyCosts) -> float | None:
    """
    Return the same where rents or electricity move: the first time within twenty years.

    Source:
        docs/methodology.md, "Break-even".
    """
    if costs.is_flat or capex_usd == 0.0:
        return break_even_months(capex_usd, costs.rent_usd, costs.running_usd)
    months = np.arange(MAX_MONTHS + 1, dtype=float)
    return first_crossing(months, costs.own(capex_usd, months), costs.rent(months))


def break_even_months_with_resale(
    capex_usd: float,
    costs: MonthlyCosts,
    *,
    machine_usd: float,
    resale_floor: float,
    resale_decay_per_year: float,
) -> float | None:
    """
    Months after which buying, and then selling, has cost no more than renting so long.

    Args:
        capex_usd: What is paid at the start. [USD]
        costs: Of renting and of running.
        machine_usd: The part of capex that sells again. [USD]
        resale_floor: Of the resale curve. [fraction]
        resale_decay_per_year: Of the resale curve. [1/year]

    Returns:
        Months, the first time; None where it does not happen within twenty years.

    Source:
        docs/methodology.md, "Break-even".
    """
    months = np.arange(MAX_MONTHS + 1, dtype=float)
    kept = resale_floor + (1.0 - resale_floor) * np.exp(-resale_decay_per_year * months / 12.0)
    own = costs.own(capex_usd, months) - machine_usd * kept
    later = slice(1, None)  # selling on the first day is no use
    if machine_usd == 0.0:
        later = slice(0, None)
    return first_crossing(months[later], own[later], costs.rent(months)[later])


def first_crossing(
    x: NDArray[np.float64], falling: NDArray[np.float64], rising: NDArray[np.float64]
) -> float | None:
    """
    Return where the first curve first meets or falls below the second, between points by a straight line.

    Returns:
        A value on the axis of `x`, or None where it stays above.
    """
    gap = falling - rising
    below = np.flatnonzero(gap <= 0.0)
    if below.size == 0:
        return None
    index = int(below[0])
    if index == 0:
        return float(x[0])
    before, after = float(gap[index - 1]), float(gap[index])
    return float(x[index - 1] + (x[index] - x[index - 1]) * before / (before - after))


def break_even_hours_per_day(
    own_fixed_usd_per_month: float,
    own_usd_per_hour: float,
    rent_usd_per_hour: float,
    days_per_month: float = DAYS_PER_MONTH,
) -> float | None:
    """
    Daily use above which owning is cheaper than renting by the hour.

    The two cost the same where the saving on each hour run pays the fixed cost of owning.

    Args:
        own_fixed_usd_per_month: Depreciation, hosting, staff; due even when idle. [USD/month]
        own_usd_per_hour: Electricity and cooling while running. [USD/h]
        rent_usd_per_hour: The same capacity, rented. [USD/h]
        days_per_month: Days of use. [d/month]

    Returns:
        Hours per day [h/d], or None where owning never pays within 24 hours.

    Raises:
        InvalidScenario: if an argument is negative or not finite.

    Source:
        docs/methodology.md, "Break-even".
    """
    _check(own_fixed=own_fixed_usd_per_month, own=own_usd_per_hour, rent=rent_usd_per_hour)
    saving = rent_usd_per_hour - own_usd_per_hour
    if saving <= 0.0:
        return None
    hours = own_fixed_usd_per_month / (saving * days_per_month)
    return hours if hours <= 24.0 else None


def break_even_utilisation(own_usd_per_available_hour: float, rent_usd_per_hour: float) -> float | None:
    """
    Share of the hours that must do useful work for owning to cost what renting costs.

    Returns:
        A fraction up to 1, or None where owning costs more even at full use.

    Source:
        docs/methodology.md, "Break-even".
    """
    _check(own=own_usd_per_available_hour, rent=rent_usd_per_hour)
    if own_usd_per_available_hour > rent_usd_per_hour or rent_usd_per_hour == 0.0:
        return None
    return own_usd_per_available_hour / rent_usd_per_hour


def break_even_tokens_per_month(
    fixed_usd_per_month: float, api_usd_per_million_tokens: float, own_usd_per_million_tokens: float = 0.0
) -> float | None:
    """
    Output tokens a month above which a machine of one's own costs less than an API.

    Args:
        fixed_usd_per_month: Rent or cost of owning, due whatever the load. [USD/month]
        api_usd_per_million_tokens: Input and output, over the output tokens. [USD/Mtok]
        own_usd_per_million_tokens: What a further million costs on the machine: energy. [USD/Mtok]

    Returns:
        Tokens a month, or None where the API is cheaper at any volume.

    Source:
        docs/methodology.md, "Break-even".
    """
    _check(fixed=fixed_usd_per_month, api=api_usd_per_million_tokens, own=own_usd_per_million_tokens)
    saving = api_usd_per_million_tokens - own_usd_per_million_tokens
    return fixed_usd_per_month / saving * TOKENS_PER_PRICE if saving > 0.0 else None


def break_even_rent_usd_per_hour(own_usd_per_month: float, hours_per_month: float) -> float:
    """
    Rent of the machine below which renting is cheaper than owning, at this use. [USD/h]

    Raises:
        InvalidScenario: if an argument is negative or not finite, or there are no hours.
    """
    _check(own=own_usd_per_month, hours=hours_per_month)
    if hours_per_month == 0.0:
        raise InvalidScenario("hours_per_month", hours_per_month, "hours above 0")
    return own_usd_per_month / hours_per_month


def net_present_value_usd(cash_usd: NDArray[np.float64], discount_rate: float) -> float:
    """
    Value today of a monthly cash flow, the first entry now.

    Args:
        cash_usd: Cash of months 0, 1, 2, ..., received positive, shape (n,). [USD]
        discount_rate: Cost of capital. [fraction/year]

    Source:
        docs/methodology.md, "Break-even".
    """
    months = np.arange(cash_usd.size, dtype=float)
    return float(np.sum(cash_usd / (1.0 + discount_rate) ** (months / 12.0)))


def _check(**amounts: float) -> None:
    """Refuse an amount that is negative or not finite."""
    for name, amount in amounts.items():
        if not math.isfinite(amount) or amount < 0.0:
            raise InvalidScenario(name, amount, "a finite amount of at least 0")
