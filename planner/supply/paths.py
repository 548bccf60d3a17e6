"""How prices may move: flat, by so much a year, or a shock within some months and a change after it."""

import math
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

Months = NDArray[np.float64]


class RentPath(StrEnum):
    """How rents move in the months to come."""

    FLAT = "flat"
    DECLINE = "decline"
    SHOCK = "shock"  # up within some months, then down


@dataclass(frozen=True, slots=True, kw_only=True)
class Moves:
    """A price that moves month by month."""

    change_per_year: float = 0.0  # once a shock is over [fraction/year]
    shock_fraction: float = 0.0  # reached after shock_months, by equal factors [fraction]
    shock_months: float = 1.0  # [months]
    held_months: float = 0.0  # a price agreed for a term keeps so long, then is that of the day; 0: it moves

    def held(self, months: float) -> "Moves":
        """Return the same path for a price that is agreed for terms of so many months."""
        return replace(self, held_months=months)

    @property
    def is_flat(self) -> bool:
        """Whether every month costs the same."""
        return self.change_per_year == 0.0 and self.shock_fraction == 0.0

    @property
    def words(self) -> str:
        """The path in words, with its figures."""
        after = f"{self.change_per_year:+.0%} a year" if self.change_per_year else "flat"
        held = f", agreed for {self.held_months:g} months at a time" if self.held_months else ""
        if not self.shock_fraction:
            return f"{after}{held}"
        return f"{self.shock_fraction:+.0%} within {self.shock_months:g} months, then {after}{held}"

    def factors(self, months: Months) -> Months:
        """
        Return the price of these months over that of the first one, which is month 0.

        Args:
            months: Whole months since the start, shape (n,). [months]

        Source:
            docs/methodology.md, "Price paths".
        """
        if self.held_months:
            months = np.floor(months / self.held_months) * self.held_months
        rising = np.minimum(months, self.shock_months) / self.shock_months
        falling = np.maximum(months - self.shock_months, 0.0) / 12.0 if self.shock_fraction else months / 12.0
        factors: Months = np.exp(
            math.log1p(self.shock_fraction) * rising + math.log1p(self.change_per_year) * falling
        )
        return factors

    def paid_usd(self, usd_per_month: float, months: Months) -> Months:
        """
        Return the money paid after each of these months, shape (n,). [USD]

        Args:
            usd_per_month: In the first month. [USD/month]
            months: Times since the start, whole or broken, shape (n,). [months]

        Source:
            docs/methodology.md, "Price paths".
        """
        whole = np.floor(months)
        if self.shock_fraction or self.held_months:
            prices = usd_per_month * self.factors(np.arange(float(np.max(whole, initial=0.0)) + 1.0))
            before = np.concatenate(([0.0], np.cumsum(prices)))
            index = whole.astype(int)
            stepped: Months = before[index] + (months - whole) * prices[index]
            return stepped
        growth = math.log1p(self.change_per_year) / 12.0  # log1p and expm1 keep the smallest changes exact
        if math.expm1(growth) == 0.0:
            flat: Months = usd_per_month * months
            return flat
        paid = np.expm1(growth * whole) / math.expm1(growth)
        moved: Months = usd_per_month * (paid + (months - whole) * np.exp(growth * whole))
        return moved

    def mean_usd_per_month(self, usd_per_month: float, term_years: float) -> float:
        """Return what a month costs on average over a term, of what it costs in the first. [USD/month]"""
        months = term_years * 12.0
        return float(self.paid_usd(usd_per_month, np.array([months]))[0]) / months

    def over_term(self, usd_per_month: float, term_years: float) -> float | None:
        """Return what a month costs on average over a term; None where every month costs the same."""
        is_agreed = self.held_months >= term_years * 12.0
        return None if self.is_flat or is_agreed else self.mean_usd_per_month(usd_per_month, term_years)


FLAT = Moves()


def term_months(term_years: float) -> Months:
    """Return months 0, 1, 2, ... of a term and its end, whole or broken, shape (n,). [months]"""
    last = term_years * 12.0
    return np.append(np.arange(np.ceil(last)), last)
