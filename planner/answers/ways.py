"""The cheapest way of each kind that counts - rent, buy, call, mix - and the cheapest of them all."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from planner.answers.choice import are_too_slow, cheapest_api, chosen_purchase, chosen_rental
from planner.answers.money import Money
from planner.scenario import Scenario
from planner.supply.mixed import MixedFleet
from planner.supply.options import Kind, Option


@dataclass(frozen=True, slots=True, kw_only=True)
class Ways:
    """The cheapest way of each kind that counts, and the hardware that is there already."""

    scenario: Scenario
    money: Money
    rental: Option | None
    purchase: Option | None  # the cheapest to own: bought, or there already
    own: Option | None
    api: Option | None  # at the demand, or at the tokens that the cheapest machine could write
    is_slow: bool  # no machine is fast enough to talk to
    slow_kinds: frozenset[Kind] = frozenset()  # of which some are too slow to talk to
    mixed: MixedFleet | None = None  # owned base load and rented peaks, where the day is known

    @property
    def cheapest_mix(self) -> MixedFleet | None:
        """The mix of owned and rented machines, where it costs less than every single way."""
        mixed, best = self.mixed, self.best
        if mixed is None or not mixed.is_mixed or best is None:
            return None
        return mixed if self._mix_usd(mixed) < (best.usd_per_month_compared or math.inf) else None

    def _mix_usd(self, mixed: MixedFleet) -> float:
        """Return what a mix costs a month, its rent as the mean over the term. [USD/month]"""
        get = self.scenario.assumptions
        rent = mixed.best.rent_usd_per_month
        over_term = get.rents.held(mixed.rental.held_months).over_term(rent, get["term_years"])
        return mixed.best.own_usd_per_month + (rent if over_term is None else over_term)

    @property
    def machine(self) -> Option | None:
        """The cheapest machine."""
        found = [option for option in (self.rental, self.purchase) if option is not None]
        return min(found, key=lambda option: option.rank_key[1:], default=None)

    @property
    def best(self) -> Option | None:
        """The cheapest of all for the same tokens."""
        machine, api = self.machine, self.api
        if machine is None or api is None or api.usd_per_month is None:
            return machine
        return min(machine, api, key=lambda option: option.rank_key[1:])


def ways(
    scenario: Scenario, options: Sequence[Option], money: Money, mixed: MixedFleet | None = None
) -> Ways:
    """
    Return what a verdict chooses from.

    Args:
        scenario: What was asked.
        options: Ranked.
        money: In which currency amounts are written.
        mixed: Owned base load and rented peaks, where the day is known.
    """
    return Ways(
        scenario=scenario,
        money=money,
        rental=chosen_rental(options, scenario),
        purchase=chosen_purchase(options, scenario),
        own=next((option for option in options if option.is_own), None),
        api=cheapest_api(options) or next((each for each in options if each.kind is Kind.API), None),
        is_slow=are_too_slow(options),
        slow_kinds=frozenset(option.kind for option in options if option.is_too_slow),
        mixed=mixed,
    )
