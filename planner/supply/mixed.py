"""Own the base load and rent the peaks: the number of machines to own at which the whole costs least."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from planner.answers.choice import counted_purchases
from planner.supply.load import shifts
from planner.supply.operate import Fleet, OperatingPoint, Refused
from planner.supply.options import Option, RentBasis
from planner.supply.owning import Terms, buy_option
from planner.supply.rent import rent_of
from planner.supply.shop import Candidate

# Up to this many every number is tried; beyond it those at which an hour of the day is just carried, or not.
ALL_TRIED = 64
# Of the machines to buy, those whose mix costs least where the price of a number of them is taken from a
# straight line between one and all; each number is priced then. Staff and idle power bend that line.
PURCHASES_TRIED = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Mix:
    """One number of machines owned, and what is rented beside them."""

    own_count: int
    rent_count: int  # in the busiest hour
    own_usd_per_month: float
    rent_usd_per_month: float

    @property
    def usd_per_month(self) -> float:
        """Both together. [USD/month]"""
        return self.own_usd_per_month + self.rent_usd_per_month


@dataclass(frozen=True, slots=True, kw_only=True)
class MixedFleet:
    """The cheapest mix of owned base load and rented peaks."""

    purchase: Option  # of one machine
    rental: Option
    best: Mix
    tried: tuple[Mix, ...]  # by number owned, from none on; the last carries everything
    purchase_usd: float  # of all machines to own
    rented_share: float  # of the output tokens

    @property
    def is_mixed(self) -> bool:
        """Whether it is neither all owned nor all rented."""
        return self.best.own_count > 0 and self.best.rent_count > 0

    def to_document(self) -> dict[str, object]:
        """Return it as the `mixed` part of `breakeven.plan/1`."""
        return {
            "own": self.purchase.name,
            "own_count": self.best.own_count,
            "rent": self.rental.single_offer_text,
            "rent_count": self.best.rent_count,
            "usd_per_month": self.best.usd_per_month,
            "own_usd_per_month": self.best.own_usd_per_month,
            "rent_usd_per_month": self.best.rent_usd_per_month,
            "purchase_usd": self.purchase_usd,
            "rented_share": self.rented_share,
            "tried": [
                {"own_count": mix.own_count, "rent_count": mix.rent_count, "usd_per_month": mix.usd_per_month}
                for mix in self.tried
            ],
        }


def mixed_fleet(
    candidates: Iterable[Candidate], fleet: Fleet, terms: Terms, purchases: Sequence[Option]
) -> MixedFleet | None:
    """
    Return the cheapest mix of one kind of machine owned and the cheapest rental.

    Args:
        candidates: What can be bought or is there.
        fleet: How one machine of each kind is run, and the load of the day.
        terms: What purchases share; its rental, or its rental paid by use, carries the peaks.
        purchases: Of the plan: what their prices say of which count goes for the mix too.

    Returns:
        The mix, which may be all owned or all rented, and is never dearer than the cheapest of
        either; None without a day, a rental, or a machine to own.

    Source:
        docs/methodology.md, "Mixed fleet".
    """
    loads, hourly = fleet.demand.loads_tokens_per_s, terms.hourly_rental
    if not loads or hourly is None:
        return None
    machines = [
        machine
        for candidate in candidates
        for count in candidate.counts
        if (machine := _machine(candidate, fleet.outcome(candidate.gpu.name, count), loads, terms))
    ]
    singles = [machine.one for machine in machines]
    counted = counted_purchases(singles, [*purchases, *singles], terms.scenario)
    kept = [machine for machine in machines if any(machine.one is option for option in counted)]
    owned = [machine for machine in kept if machine.candidate.is_own]
    bought = [
        (machine, _all_owned(machine, loads, terms)) for machine in kept if not machine.candidate.is_own
    ]
    rentals = [hourly] if terms.rental is None or terms.rental is hourly else [hourly, terms.rental]
    found = [
        _best_number(machine, rental, loads, terms)
        for rental in rentals
        for machine in (*owned, *_worth_trying(bought, rental, loads, terms))
    ]
    return min(found, key=lambda fleet: fleet.best.usd_per_month, default=None)


def _worth_trying(
    bought: Sequence[tuple["_Machine", Option]], rental: Option, loads: Sequence[float], terms: Terms
) -> list["_Machine"]:
    """
    Return the machines to buy that may give the cheapest mix, and the one that carries everything for least.

    Args:
        bought: Each machine with the option of so many of it that they carry the whole day.
        rental: What is rented beside it.
        loads: Of each hour. [tokens/s]
        terms: What purchases share.
    """
    likely = sorted(bought, key=lambda pair: _estimated_usd(pair[0], pair[1], rental, loads, terms))[
        :PURCHASES_TRIED
    ]
    budget = math.inf if terms.scenario.budget_usd is None else terms.scenario.budget_usd
    affordable = [pair for pair in bought if (pair[1].purchase_usd or 0.0) <= budget]
    whole = min(affordable, key=lambda pair: pair[1].usd_per_month or 0.0, default=None)
    if whole is not None and not any(pair[0] is whole[0] for pair in likely):
        likely.append(whole)
    return [machine for machine, _ in likely]


@dataclass(frozen=True, slots=True)
class _Machine:
    """One kind of machine to own."""

    candidate: Candidate
    point: OperatingPoint
    one: Option  # a single one, loaded as far as the day allows


def _machine(
    candidate: Candidate, point: OperatingPoint | Refused, loads: Sequence[float], terms: Terms
) -> _Machine | None:
    if isinstance(point, Refused) or point.is_too_slow:
        return None
    carried = [min(load, point.capacity_tokens_per_s) for load in loads]
    return _Machine(candidate, point, buy_option(candidate, _run(point, 1, carried, loads), terms))


def _all_owned(machine: _Machine, loads: Sequence[float], terms: Terms) -> Option:
    """Return the machines of this kind that carry the whole day."""
    count = sum(step.replicas for step in shifts(loads, machine.point.capacity_tokens_per_s))
    return buy_option(machine.candidate, _run(machine.point, count, loads, loads), terms)


def _estimated_usd(
    machine: _Machine, whole: Option, rental: Option, loads: Sequence[float], terms: Terms
) -> float:
    """Return about what the best number of this machine and its rentals cost together. [USD/month]"""
    capacity, budget = machine.point.capacity_tokens_per_s, terms.scenario.budget_usd
    one_usd, top = machine.one.usd_per_month or 0.0, whole.replicas
    each_usd = ((whole.usd_per_month or 0.0) - one_usd) / max(1, top - 1)
    price = machine.one.purchase_usd or 0.0
    most = top if budget is None or price <= 0.0 else min(top, int(budget / price))
    edges = {int(load / capacity) + more for load in loads for more in (0, 1)}
    least = math.inf
    for count in sorted({0, most, *(number for number in edges if number <= most)}):
        rest = [max(0.0, load - count * capacity) for load in loads]
        own = one_usd + each_usd * (count - 1) if count else 0.0
        least = min(least, own + _rent(rental, rest, loads, terms)[0])
    return least


def _best_number(machine: _Machine, rental: Option, loads: Sequence[float], terms: Terms) -> MixedFleet:
    """Try the numbers of one machine to own, and return the cheapest that the budget allows."""
    capacity, budget = machine.point.capacity_tokens_per_s, terms.scenario.budget_usd
    tried, capex = [], {0: 0.0}
    for count in _numbers(loads, capacity, 1 if machine.candidate.is_own else None):
        carried = [min(load, count * capacity) for load in loads]
        own = 0.0
        if count:
            option = buy_option(machine.candidate, _run(machine.point, count, carried, loads), terms)
            own, capex[count] = option.usd_per_month or 0.0, option.purchase_usd or 0.0
            if budget is not None and capex[count] > budget:
                break
        rest = [load - part for load, part in zip(loads, carried, strict=True)]
        rent, most = _rent(rental, rest, loads, terms)
        tried.append(Mix(own_count=count, rent_count=most, own_usd_per_month=own, rent_usd_per_month=rent))
    best = min(tried, key=lambda mix: (mix.usd_per_month, mix.own_count))
    carried_all = sum(min(load, best.own_count * capacity) for load in loads)
    return MixedFleet(
        purchase=machine.one,
        rental=rental,
        best=best,
        tried=tuple(tried),
        purchase_usd=capex[best.own_count],
        rented_share=max(0.0, 1.0 - carried_all / sum(loads)),
    )


def _numbers(loads: Sequence[float], capacity: float, most: int | None) -> list[int]:
    """Return the numbers of machines to try, from none to what carries the busiest hour."""
    needed = sum(step.replicas for step in shifts(loads, capacity))
    top = needed if most is None else min(most, needed)
    if top <= ALL_TRIED:
        return list(range(top + 1))
    exact = {int(load / capacity) for load in loads}
    return sorted({0, top, *(number for each in exact for number in (each, each + 1) if number <= top)})


def _run(
    point: OperatingPoint, count: int, carried: Sequence[float], loads: Sequence[float]
) -> OperatingPoint:
    """Return how so many machines run when they carry this much of each hour."""
    hours = sum(load > 0.0 for load in loads)
    share = sum(carried) / sum(loads)
    return replace(
        point,
        replicas=count,
        utilisation=point.busy_share(sum(carried) / (count * hours)),
        tokens_per_month=point.tokens_per_month * share,
        shifts=(),
    )


def _rent(rental: Option, rest: Sequence[float], loads: Sequence[float], terms: Terms) -> tuple[float, int]:
    """Return the rent of what is left over, and how many machines the busiest hour takes. [USD/month]"""
    basis, point = rental.basis, rental.point
    if not isinstance(basis, RentBasis) or point is None:
        raise TypeError(f"{rental.name} is no rental")
    steps = shifts(rest, point.capacity_tokens_per_s)
    if not steps:
        return 0.0, 0
    most = sum(step.replicas for step in steps)
    rent = rent_of(basis.rate, steps, terms.scenario, basis.lost_work_fraction).usd
    storage = basis.storage_usd_per_month / rental.replicas * most
    return rent + storage + basis.egress_usd_per_month * sum(rest) / sum(loads), most
