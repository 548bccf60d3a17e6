"""A demand that grows: what each way costs over the term when machines are added as they are needed."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from planner.answers.cashflow import CashFlow
from planner.answers.choice import passed_over
from planner.answers.money import Money
from planner.catalogues.purchases import Purchase
from planner.supply.growth import GROWTH
from planner.supply.operate import Fleet, OperatingPoint, Refused
from planner.supply.options import BuyBasis, Kind, Option, RentBasis
from planner.supply.owning import Terms, owned_cost, resale_share
from planner.supply.paths import Moves, term_months
from planner.supply.renting import rent_option
from planner.supply.shop import Candidate

Line = tuple[float, ...]
_Bought = tuple[str, bool, Purchase | None]  # device, whether it is there already, its price


@dataclass(frozen=True, slots=True, kw_only=True)
class GrownWay:
    """One way to serve a growing demand over the term."""

    option: Option  # for the demand of the first month
    copies: tuple[int, ...]  # in each month of the term; empty: an API
    paid_usd: Line  # at the start, then in each month, the resale taken off in the last [USD]

    @property
    def usd_over_term(self) -> float:
        """All that is paid, less the resale. [USD]"""
        return sum(self.paid_usd)

    @property
    def text(self) -> str:
        """The machine with how many of it run first and last, or the API."""
        option = self.option
        if option.kind is Kind.API:
            return f"{option.name} at {option.provider_title}"
        first, last = self.copies[0], self.copies[-1]
        count = f"{first}" if first == last else f"{first} to {last}"
        machines = option.name if first == last == 1 else f"{count} x ({option.name})"
        return machines if option.kind is Kind.BUY else f"{machines} from {option.provider_title}"

    def to_document(self) -> dict[str, object]:
        """Return it as in the `growth` part of `breakeven.plan/1`."""
        return {
            "kind": str(self.option.kind),
            "name": self.option.name,
            "provider": self.option.provider,
            "replicas_first": self.copies[0] if self.copies else None,
            "replicas_last": self.copies[-1] if self.copies else None,
            "usd_over_term": self.usd_over_term,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Growing:
    """The cheapest rental, purchase and API for a demand that grows month by month."""

    growth_per_year: float
    months: Line  # 0, 1, 2, ... and the end of the term
    ways: tuple[GrownWay, ...]  # cheapest first, at most one of a kind

    def to_document(self) -> dict[str, object]:
        """Return it as the `growth` part of `breakeven.plan/1`."""
        return {
            "growth_per_year": self.growth_per_year,
            "term_months": self.months[-1],
            "ways": [way.to_document() for way in self.ways],
        }

    def cash_flow(self) -> CashFlow:
        """Return what each way costs in each month."""
        by_kind = {way.option.kind: way for way in self.ways}
        lines = {kind: by_kind[kind].paid_usd if kind in by_kind else None for kind in Kind}
        names = {kind: by_kind[kind].text if kind in by_kind else None for kind in Kind}
        return CashFlow(
            months=self.months,
            rent_usd=lines[Kind.RENT],
            own_usd=lines[Kind.BUY],
            api_usd=lines[Kind.API],
            rent_name=names[Kind.RENT],
            own_name=names[Kind.BUY],
            api_name=names[Kind.API],
        )


def growing(
    options: Sequence[Option], candidates: Sequence[Candidate], fleet: Fleet, terms: Terms
) -> Growing | None:
    """
    Return what serving a growing demand costs over the term, by the cheapest rental, purchase and API.

    Each month's demand is that of the month before times (1 + g)^(1/12). Machines are added in the month in
    which those there no longer carry the peak: rented ones at the rent of that month, owned ones at today's
    price, and sold at the end of the term at their age. What is owned stays where the demand falls.

    Args:
        options: Of the plan; those that its verdict passes over do not count.
        candidates: What can be bought.
        fleet: How each machine is run for the demand of the first month.
        terms: Rents, tariff and assumptions.

    Returns:
        None where nothing grows, or no demand is stated.

    Source:
        docs/methodology.md, "Growth".
    """
    growth, scenario = terms.assumptions[GROWTH], terms.scenario
    if growth == 0.0 or not scenario.has_demand:
        return None
    times = term_months(terms.assumptions["term_years"])
    factors = Moves(change_per_year=growth).factors(times[:-1]).tolist()
    term = _Term(
        times=tuple(times.tolist()),
        factors=tuple(factors),
        fleets=tuple(fleet.under(fleet.demand.times(factor)) for factor in factors),
        terms=terms,
    )
    by_purchase = {(each.gpu.name, each.is_own, each.purchase): each for each in candidates}
    found: dict[Kind, GrownWay] = {}
    for option, why_not in zip(options, passed_over(options, scenario), strict=True):
        way = None if why_not else _way(option, by_purchase, term)
        best = found.get(option.kind)
        if way is not None and (best is None or way.usd_over_term < best.usd_over_term):
            found[option.kind] = way
    return Growing(
        growth_per_year=growth,
        months=term.times,
        ways=tuple(sorted(found.values(), key=lambda way: way.usd_over_term)),
    )


def growing_text(grown: Growing, money: Money) -> str:
    """Say what the growth of the demand does to the answer."""
    lead = (
        f"The demand changes by {grown.growth_per_year:+.0%} a year; the ranking, and when buying pays, are "
        "for that of the first month."
    )
    if not grown.ways:
        return f"{lead} No machine carries it to the end of the term."
    parts = [f"{_VERBS[way.option.kind]} {way.text} {money.text(way.usd_over_term)}" for way in grown.ways]
    return (
        f"{lead} Over the {grown.months[-1]:g} months of the term, machines added as they are needed, "
        f"cheapest first: {', '.join(parts)}."
    )


_VERBS = {Kind.RENT: "renting", Kind.BUY: "owning", Kind.API: "calling"}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Term:
    """The months of a term, and how machines are run in each of them."""

    times: Line  # beginnings of the months, and the end
    factors: Line  # demand over that of the first month
    fleets: tuple[Fleet, ...]
    terms: Terms

    def points(self, gpu: str, gpu_count: int) -> list[OperatingPoint] | None:
        """Return how a machine is run in each month; None where it cannot be in one of them."""
        points = []
        for fleet in self.fleets:
            point = fleet.outcome(gpu, gpu_count)
            if isinstance(point, Refused):
                return None
            points.append(point)
        return points

    def factors_of(self, moves: Moves) -> list[float]:
        """Return a price in each month over that of the first."""
        factors: list[float] = moves.factors(np.array(self.times[:-1])).tolist()
        return factors

    def paid(self, start_usd: float, month_usd: Callable[[int], float]) -> list[float]:
        """Return what is paid at the start and in each month; a broken last month is paid in part."""
        lengths = np.diff(self.times).tolist()
        return [start_usd, *(month_usd(index) * length for index, length in enumerate(lengths))]


def _way(option: Option, by_purchase: Mapping[_Bought, Candidate], term: _Term) -> GrownWay | None:
    """Return one option over the term; None where it cannot carry the demand to its end."""
    if option.kind is Kind.API:
        return _called(option, term)
    points = term.points(option.gpu or "", option.gpu_count or 0)
    if points is None:
        return None
    if isinstance(option.basis, RentBasis):
        return _rented(option, option.basis, points, term)
    if isinstance(option.basis, BuyBasis):
        candidate = by_purchase.get((option.gpu or "", option.is_own, option.basis.purchase))
        return None if candidate is None else _owned(option, candidate, points, term)
    return None


def _called(option: Option, term: _Term) -> GrownWay | None:
    month = option.usd_per_month
    if month is None:
        return None
    prices = term.factors_of(term.terms.assumptions.api_prices)
    paid = term.paid(0.0, lambda index: month * term.factors[index] * prices[index])
    return GrownWay(option=option, copies=(), paid_usd=tuple(paid))


def _rented(
    option: Option, basis: RentBasis, points: Sequence[OperatingPoint], term: _Term
) -> GrownWay | None:
    if basis.rate.is_ask and points[-1].replicas > 1:  # a host asks for one machine
        return None
    scenario, assumptions = term.terms.scenario, term.terms.assumptions
    rents = term.factors_of(assumptions.rents.held(option.held_months))
    months = [rent_option(scenario, basis.rate, point, assumptions).usd_per_month or 0.0 for point in points]
    return GrownWay(
        option=option,
        copies=tuple(point.replicas for point in points),
        paid_usd=tuple(term.paid(0.0, lambda index: months[index] * rents[index])),
    )


def _owned(
    option: Option, candidate: Candidate, points: Sequence[OperatingPoint], term: _Term
) -> GrownWay | None:
    """Return machines bought as they are needed; of hardware that is there, no more than there is."""
    if candidate.is_own and max(point.replicas for point in points) > 1:
        return None
    terms = term.terms
    tariff = term.factors_of(terms.assumptions.electricity)
    copies = np.maximum.accumulate([point.replicas for point in points]).tolist()
    months, bought_usd, resale_usd = [], [], 0.0
    owned = capex_usd = machine_usd = 0.0
    for index, (point, count) in enumerate(zip(points, copies, strict=True)):
        run = replace(point, replicas=count, utilisation=point.utilisation * point.replicas / count)
        ownership, cost = owned_cost(candidate, run, terms)
        energy = float(cost.energy_usd_per_month)
        months.append(float(cost.running_usd_per_month) + energy * (tariff[index] - 1.0))
        bought_usd.append(0.0)
        if count > owned:
            bought_usd[-1] = float(cost.capex_usd) - capex_usd
            if not ownership.is_sunk:
                left = (term.times[-1] - term.times[index]) / 12.0
                added = float(ownership.machine_usd) - machine_usd
                resale_usd += added * resale_share(terms.assumptions, left)
            owned, capex_usd, machine_usd = count, float(cost.capex_usd), float(ownership.machine_usd)
    budget = terms.scenario.budget_usd
    if budget is not None and capex_usd > budget and not candidate.is_own:
        return None
    paid = term.paid(0.0, lambda index: months[index])
    paid = [each + more for each, more in zip(paid, [*bought_usd, 0.0], strict=True)]
    paid[-1] -= resale_usd
    return GrownWay(option=option, copies=tuple(copies), paid_usd=tuple(paid))
