"""Prices that move, for many draws at once."""

import math

import numpy as np
from numpy.typing import NDArray

from planner.assumptions import Assumptions
from planner.cost import MONTHS_PER_YEAR
from planner.uncertainty.uncertain import Draws


class Price:
    """Monthly prices that move, for many draws."""

    def __init__(self, usd: Draws, change: Draws, compounds: bool = True) -> None:
        self._usd, self._change = usd, change
        # After a year a rise stays, since none has been seen to go on.
        self._stays = np.zeros(usd.shape, dtype=bool) if compounds else change > 0.0
        self._first = usd * growth_sum(change, np.full_like(change, 12.0))

    def of_year(self, year: int) -> Draws:
        """Return what is paid in a year, shape (n,). [USD]"""
        if year == 0:
            return self._first
        factor = (1.0 + self._change) ** year
        return np.where(self._stays, 12.0 * self._usd * (1.0 + self._change), self._first * factor)

    def by_month(self, year: int, rows: NDArray[np.intp]) -> Draws:
        """Return what these draws pay in each month of a year, shape (12, rows). [USD]"""
        change = self._change[rows]
        months = np.exp(np.log1p(change) * (year + np.arange(12.0)[:, np.newaxis] / 12.0))
        if year > 0:
            months = np.where(self._stays[rows], 1.0 + change, months)
        paid: Draws = self._usd[rows] * months
        return paid

    def over(self, months: Draws) -> Draws:
        """Return what is paid in so many months, the last of them in part. [USD]"""
        falling = growth_sum(self._change, months)
        if not self._stays.any():
            return self._usd * falling
        first_year = growth_sum(self._change, np.minimum(months, 12.0))
        rising = first_year + np.maximum(months - 12.0, 0.0) * (1.0 + self._change)
        return self._usd * np.where(self._stays, rising, falling)


class PriceByMonth:
    """
    The same after a shock, or agreed for a term.

    Within the months of a shock it rises to its height, and the change begins there; what the change draws is
    the same as without one. A price that is agreed for a term keeps so long, then it is that of the month.
    """

    def __init__(
        self, usd: Draws, change: Draws, compounds: bool, shock: tuple[float, float], held_months: float
    ) -> None:
        self._usd, self._change = usd, change
        self._stays = np.zeros(usd.shape, dtype=bool) if compounds else change > 0.0
        self._height, self._months = shock
        self._held_months = held_months

    def month(self, month: float, rows: NDArray[np.intp] | slice = slice(None)) -> Draws:
        """Return what is paid in one month, the first being 0. [USD]"""
        if self._held_months:
            month = month // self._held_months * self._held_months
        rise = math.exp(math.log1p(self._height) * min(month, self._months) / self._months)
        years = max(month - (self._months if self._height else 0.0), 0.0) / 12.0
        change = self._change[rows]
        moved = np.exp(np.log1p(change) * np.where(self._stays[rows], min(years, 1.0), years))
        paid: Draws = self._usd[rows] * rise * moved
        return paid

    def of_year(self, year: int) -> Draws:
        """Return what is paid in a year, shape (n,). [USD]"""
        paid: Draws = np.sum([self.month(12.0 * year + each) for each in range(12)], axis=0)
        return paid

    def by_month(self, year: int, rows: NDArray[np.intp]) -> Draws:
        """Return what these draws pay in each month of a year, shape (12, rows). [USD]"""
        return np.stack([self.month(12.0 * year + each, rows) for each in range(12)])

    def over(self, months: Draws) -> Draws:
        """Return what is paid in so many months, the last of them in part. [USD]"""
        last = int(np.ceil(np.max(months)))
        paid: Draws = np.sum(
            [self.month(float(each)) * np.clip(months - each, 0.0, 1.0) for each in range(last)], axis=0
        )
        return paid


def mean_rent_factor(
    change: Draws, months: Draws, assumptions: Assumptions, held_months: float = 0.0
) -> Draws:
    """
    Return the mean rent of these months over that of the first one.

    A fall goes on year after year; a rise, seen once, lasts a year and stays, unless it was set. One that is
    agreed for so many months at a time moves only between them.
    """
    price = rent_price(np.ones_like(change), change, assumptions, held_months)
    return price.over(months) / months


def rent_price(
    usd: Draws, change: Draws, assumptions: Assumptions, held_months: float
) -> Price | PriceByMonth:
    """Return how rents move; a rise compounds only where it was set."""
    compounds = assumptions.is_set("rent_change_per_year")
    shock = assumptions["rent_shock_fraction"], assumptions["rent_shock_months"]
    if shock[0] != 0.0 or held_months:
        return PriceByMonth(usd, change, compounds, shock, held_months)
    return Price(usd, change, compounds)


def mean_price_factor(change: Draws, months: Draws) -> Draws:
    """Return the mean price of these months over that of the first one, at a change that goes on."""
    return growth_sum(change, months) / months


def growth_sum(change_per_year: Draws, months: Draws) -> Draws:
    """Return the sum of a price that moves month by month, over that of the first month."""
    growth = np.log1p(change_per_year) / MONTHS_PER_YEAR
    step = np.expm1(growth)
    whole = np.floor(months)
    with np.errstate(divide="ignore", invalid="ignore"):
        paid = np.where(np.abs(step) < 1e-12, whole, np.expm1(growth * whole) / step)
    summed: Draws = paid + (months - whole) * np.exp(growth * whole)
    return summed
