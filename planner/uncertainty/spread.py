"""What every option may cost, by draws that all of them share: rent, buy and API beside each other."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from planner.assumptions import Assumptions
from planner.scenario import Scenario
from planner.sensitivity import DRAWS, QUANTILES, SEED
from planner.supply.operate import Demand
from planner.supply.options import Kind, Option
from planner.uncertainty.drawn_owning import Owning
from planner.uncertainty.drawn_prices import mean_price_factor, mean_rent_factor
from planner.uncertainty.drawn_renting import rent_at_speed
from planner.uncertainty.uncertain import (
    OWN_SPEED,
    PRICE,
    RENT_SPEED,
    Draws,
    Uncertain,
    assumed,
    speed_input,
    uncertain_of_purchase,
)

API_CHANGE = "api_change_per_year"
TERM, RENT_CHANGE = "term_years", "rent_change_per_year"


@dataclass(frozen=True, slots=True, kw_only=True)
class OptionSpread:
    """What one option costs a month, over the term, in most of the draws."""

    option: Option
    usd_per_month: tuple[float, ...]  # at QUANTILES
    cheapest_fraction: float | None  # of the draws; None: the verdict passes over it

    def to_document(self) -> dict[str, object]:
        """Return it as a part of `breakeven.sensitivity/1`."""
        option = self.option
        return {
            "kind": str(option.kind),
            "name": option.name,
            "provider": option.provider,
            "tier": option.tier,
            "usd_per_month": {
                f"p{quantile * 100:.0f}": usd
                for quantile, usd in zip(QUANTILES, self.usd_per_month, strict=True)
            },
            "cheapest_fraction": self.cheapest_fraction,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """What all options cost in the same draws."""

    options: tuple[OptionSpread, ...]  # in the order of the plan
    cheapest: Mapping[Kind, float]  # share of the draws in which a way is the cheapest of those that count
    draws: int
    seed: int

    def to_document(self) -> dict[str, object]:
        """Return it as a part of `breakeven.sensitivity/1`."""
        return {
            "draws": self.draws,
            "seed": self.seed,
            "cheapest": {str(kind): share for kind, share in self.cheapest.items()},
            "options": [each.to_document() for each in self.options],
        }


def spread(
    options: Sequence[Option],
    counts: Sequence[bool],
    scenario: Scenario,
    assumptions: Assumptions,
    *,
    draws: int = DRAWS,
    seed: int = SEED,
) -> Spread:
    """
    Return what every option costs a month over the term, in draws of all that is not known.

    Rents, electricity, term and every other assumption have one value in a draw, for all options; the price
    and the speed of a machine have one for that machine, rented or bought.

    Args:
        options: Of a plan, with a monthly cost.
        counts: Whether the verdict counts each of them.
        scenario: The question.
        assumptions: The values in use.
        draws: Of all inputs at once.
        seed: The same seed gives the same draws.

    Source:
        docs/methodology.md, "Uncertainty".
    """
    priced = [(option, is_counted) for option, is_counted in zip(options, counts, strict=True)
              if option.usd_per_month is not None]  # fmt: skip
    shared = _Shared(scenario, assumptions, draws, seed)
    costs = np.empty((len(priced), draws))
    for place, (option, _) in enumerate(priced):
        costs[place] = shared.cost(option)
    quantiles = np.quantile(costs, QUANTILES, axis=1) if priced else np.empty((len(QUANTILES), 0))
    rows = [place for place, (_, is_counted) in enumerate(priced) if is_counted]
    wins = np.zeros(len(priced))
    if rows:
        wins[rows] = np.bincount(np.argmin(costs[rows], axis=0), minlength=len(rows)) / draws
    return Spread(
        options=tuple(
            OptionSpread(
                option=option,
                usd_per_month=tuple(float(usd) for usd in quantiles[:, place]),
                cheapest_fraction=float(wins[place]) if is_counted else None,
            )
            for place, (option, is_counted) in enumerate(priced)
        ),
        cheapest={
            kind: float(sum(wins[place] for place in rows if priced[place][0].kind is kind)) for kind in Kind
        },
        draws=draws,
        seed=seed,
    )


class _Shared:
    """Draws by name, made when they are first asked for, the same whoever asks."""

    def __init__(self, scenario: Scenario, assumptions: Assumptions, draws: int, seed: int) -> None:
        self._scenario, self._assumptions, self._size = scenario, assumptions, draws
        self._random, self._drawn = np.random.default_rng(seed), dict[str, Draws]()
        self._demand = Demand.of(scenario)
        self._months = 12.0 * self._assumed(TERM)
        self._rent_change = self._assumed(RENT_CHANGE)
        self._rents: dict[float, Draws] = {}  # mean over first month, by the months for which it is agreed
        self._api = mean_price_factor(self._assumed(API_CHANGE), self._months)

    def cost(self, option: Option) -> Draws:
        """Return what an option costs a month over the term, shape (draws,). [USD/month]"""
        month = option.usd_per_month or 0.0
        if option.kind is Kind.RENT:
            return self._rent(option.held_months) * self._rented(option)
        return month * self._api if option.kind is Kind.API else self._owned(option)

    def _rent(self, held_months: float) -> Draws:
        """Return the mean rent over the term, over that of the first month."""
        if held_months not in self._rents:
            factor = mean_rent_factor(self._rent_change, self._months, self._assumptions, held_months)
            self._rents[held_months] = factor
        return self._rents[held_months]

    def _owned(self, option: Option) -> Draws:
        inputs = uncertain_of_purchase(option, self._scenario, self._assumptions)
        drawn = {each.name: self._draw(each, option) for each in inputs}
        drawn[TERM] = self._drawn[TERM]
        return Owning(option, self._scenario, self._assumptions).outcome(drawn, self._size).usd_per_month

    def _rented(self, option: Option) -> Draws | float:
        """Return the rent of the first month at the speed drawn. [USD/month]"""
        given = speed_input(RENT_SPEED, option, self._scenario)
        if given is None:
            return option.usd_per_month or 0.0
        return rent_at_speed(option, self._draw(given, option), self._scenario, self._demand)

    def _assumed(self, name: str) -> Draws:
        """Return the draws of an assumption that all options share; of what is set, its value."""
        base = self._assumptions[name]
        if self._assumptions.is_set(name):
            self._drawn[name] = np.full(self._size, base)
            return self._drawn[name]
        return self._draw(assumed(name, base), None)

    def _draw(self, given: Uncertain, option: Option | None) -> Draws:
        name = given.name
        if option is not None and name == PRICE:  # of the machine, not of the market
            name = f"price of {option.gpu}"
        elif option is not None and name in (OWN_SPEED, RENT_SPEED):
            name = f"speed of {option.gpu_count}x {option.gpu}"
        if name not in self._drawn:
            self._drawn[name] = given.at(self._random.random(self._size))
        return self._drawn[name]
