"""Owning one machine against renting another, for arrays of inputs at once."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from planner.assumptions import Assumptions
from planner.breakeven import MAX_MONTHS
from planner.scenario import Scenario
from planner.supply.operate import Demand
from planner.supply.options import Option
from planner.uncertainty.drawn_owning import Owning, as_draws, needed_copies
from planner.uncertainty.drawn_prices import Price, mean_rent_factor, rent_price
from planner.uncertainty.drawn_renting import is_single, rent_at_hours, rent_at_speed
from planner.uncertainty.uncertain import HOURS, OWN_SPEED, RENT_SPEED, Draws, is_same_machine


@dataclass(frozen=True, slots=True)
class Outcome:
    """What many draws come to; arrays of one value each."""

    saving: Draws  # of buying, a month over the term [USD/month]
    capex_usd: Draws
    other_usd: Draws  # running cost that does not follow electricity [USD/month]
    energy_usd: Draws  # [USD/month]
    rent_usd: Draws  # in the first month [USD/month]
    rent_change: Draws
    energy_change: Draws
    is_short: NDArray[np.bool_]  # the one machine of a host that is rented does not carry the demand


class Comparison:
    """Owning one machine against renting another, as functions of arrays of inputs."""

    def __init__(
        self, purchase: Option, rental: Option, scenario: Scenario, assumptions: Assumptions
    ) -> None:
        self._owning = Owning(purchase, scenario, assumptions)
        self._purchase, self._rental, self._assumptions = purchase, rental, assumptions
        self._scenario, self._demand = scenario, Demand.of(scenario)
        self._peak = self._demand.peak_tokens_per_s

    def outcome(self, drawn: Mapping[str, Draws], size: int) -> Outcome:
        """Return what these values of the inputs come to; inputs that are not there stay at their base."""

        def get(name: str) -> Draws:
            return drawn[name] if name in drawn else np.full(size, self._assumptions[name])

        same = is_same_machine(self._purchase, self._rental)
        rent_speed = drawn.get(OWN_SPEED if same else RENT_SPEED)
        needed = self._needed_copies(rent_speed)
        owned = self._owning.outcome(drawn, size)
        rent = rent_at_speed(self._rental, rent_speed, self._scenario, self._demand)
        if HOURS in drawn:
            rent = rent_at_hours(self._rental, drawn[HOURS], self._scenario)
        rent_change = get("rent_change_per_year")
        rented = self._rented(as_draws(rent, size), rent_change, owned.months)
        return Outcome(
            saving=rented / owned.months - owned.usd_per_month,
            capex_usd=owned.capex_usd,
            other_usd=owned.other_usd,
            energy_usd=owned.energy_usd,
            rent_usd=as_draws(rent, size),
            rent_change=rent_change,
            energy_change=get("electricity_change_per_year"),
            is_short=np.zeros(size, dtype=bool) if needed is None else needed > 1.0,
        )

    def break_even_months(self, outcome: Outcome) -> Draws:
        """Return when each draw has paid back without a sale; infinite where not within twenty years."""
        energy = Price(outcome.energy_usd, outcome.energy_change)
        rent = rent_price(outcome.rent_usd, outcome.rent_change, self._assumptions, self._rental.held_months)
        gap = outcome.capex_usd.copy()  # what owning has cost beyond renting
        months = np.where((gap <= 0.0) & (outcome.saving >= 0.0), 0.0, np.inf)
        is_open = gap > 0.0
        for year in range(MAX_MONTHS // 12):
            after = gap + 12.0 * outcome.other_usd + energy.of_year(year) - rent.of_year(year)
            crossing = np.flatnonzero(is_open & (after <= 0.0))
            if crossing.size:
                months[crossing] = 12.0 * year + self._within_the_year(
                    gap[crossing],
                    outcome.other_usd[crossing],
                    energy.by_month(year, crossing) - rent.by_month(year, crossing),
                )
                is_open[crossing] = False
            gap = after
        return months

    def _within_the_year(self, gap: Draws, other_usd: Draws, by_month: Draws) -> Draws:
        """
        Return the month in which a gap closes, between months by a straight line.

        Args:
            gap: At the beginning of the year, shape (n,). [USD]
            other_usd: What it grows by every month, shape (n,). [USD]
            by_month: What else it grows by, shape (12, n). [USD]
        """
        gaps = gap + np.cumsum(other_usd + by_month, axis=0)
        first = np.argmax(gaps <= 0.0, axis=0)
        rows = np.arange(gap.size)
        before = np.where(first == 0, gap, gaps[first - 1, rows])
        crossed: Draws = first + before / (before - gaps[first, rows])
        return crossed

    def _rented(self, usd: Draws, change: Draws, months: Draws) -> Draws:
        """Return the rent of so many months. [USD]"""
        factor = mean_rent_factor(change, months, self._assumptions, self._rental.held_months)
        return usd * factor * months

    def _needed_copies(self, speed: Draws | None) -> Draws | None:
        """Return how many of one host's machine would be needed; None where it is none, or no question."""
        return needed_copies(self._rental, speed, self._peak) if is_single(self._rental) else None
