"""Own the base load and rent the peaks: the number of machines to own at which the whole costs least."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from planner.answers.money import Money
from planner.supply.load import shifts
from planner.supply.operate import Fleet, OperatingPoint, Refused
from planner.supply.options import Option, RentBasis
from planner.supply.owning import Terms, buy_option
from planner.supply.renting import rent_of
from planner.supply.shop import Candidate

# Up to this many every number is tried; beyond it those at which an hour of the day is just carried, or not.
ALL_TRIED = 64
# Of the machines to buy, those that cost least for what one of them can carry, and those that carry all of
# this day for least: where a few large machines stand half idle, the second are others than the first.
PURCHASES_TRIED = 3


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
            "rent": self.rental.offer_text,
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


def mixed_fleet(candidates: Iterable[Candidate], fleet: Fleet, terms: Terms) -> MixedFleet | None:
    """
    Return the cheapest mix of one kind of machine owned and the cheapest rental paid by use.

    Args:
        candidates: What can be bought or is there.
        fleet: How one machine of each kind is run, and the load of the day.
        terms: What purchases share; its rental paid by use carries the peaks.

    Returns:
        The mix, which may be all owned or all rented; None without a day, a rental, or a machine to own.

    Source:
        docs/methodology.md, "Mixed fleet".
    """
    loads, rental = fleet.demand.loads_tokens_per_s, terms.hourly_rental
    if not loads or rental is None:
        return None
    machines = sorted(
        (
            machine
            for candidate in candidates
            for count in candidate.counts
            if (machine := _machine(candidate, fleet.outcome(candidate.gpu.name, count), loads, terms))
        ),
        key=lambda machine: (machine.one.usd_per_month or 0.0) / machine.point.capacity_tokens_per_s,
    )
    owned = [machine for machine in machines if machine.candidate.is_own]
    bought = [machine for machine in machines if not machine.candidate.is_own]
    tried = bought[:PURCHASES_TRIED]
    for machine in sorted(bought, key=lambda machine: _all_owned_usd(machine, loads, terms))[
        :PURCHASES_TRIED
    ]:
        tried += [machine] if machine not in tried else []
    found = [_best_number(machine, rental, loads, terms) for machine in (*owned, *tried)]
    return min(found, key=lambda fleet: fleet.best.usd_per_month, default=None)


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


def _all_owned_usd(machine: _Machine, loads: Sequence[float], terms: Terms) -> float:
    """Return what carrying the whole day with machines of this kind alone costs. [USD/month]"""
    count = sum(step.replicas for step in shifts(loads, machine.point.capacity_tokens_per_s))
    run = _run(machine.point, count, loads, loads)
    return buy_option(machine.candidate, run, terms).usd_per_month or 0.0


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
        utilisation=min(1.0, sum(carried) / (count * point.speed.aggregate_tokens_per_s * hours)),
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


def mixed_text(mixed: MixedFleet, money: Money) -> str:
    """Say how many machines to own and to rent, what that costs, and what the pure ways cost."""
    best, rental = mixed.best, mixed.rental
    name = mixed.purchase.name
    none, most = mixed.tried[0], mixed.tried[-1]
    others = f"all rented {money.text(none.usd_per_month)}"
    if most.rent_count == 0:
        others += f", all owned {money.text(most.usd_per_month)}"
    lead = "Owned base load, rented peaks"
    if not mixed.is_mixed:
        way = "owning all" if best.own_count else "renting all"
        return f"{lead}: no mix of {name} and rentals beats {way} ({others} a month)."
    return (
        f"{lead}: {best.own_count} x ({name}) owned and up to {best.rent_count} x ({rental.name}) from "
        f"{rental.provider_title or rental.provider} cost {money.text(best.usd_per_month)} a month "
        f"({others}); {mixed.rented_share:.0%} of the tokens are rented."
    )
