"""The plan: every way to serve a model - rent, buy, API - priced and ranked, with break-even and verdict."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from planner.answers.cashflow import CashFlow, cash_flow
from planner.answers.choice import (
    are_too_slow,
    best_machine,
    cheapest_api,
    cheapest_rental,
    chosen_purchase,
    chosen_rental,
    passed_over,
)
from planner.answers.curves import CostByHours, Crossing, cost_by_hours, crossing
from planner.answers.explain import Explanation, explain
from planner.answers.growing import Growing, growing, growing_text
from planner.answers.mixedsummary import mixed_text, singles_text
from planner.answers.money import Money
from planner.answers.pathsummary import PathResult, paths_text, rent_paths
from planner.answers.paying import break_even_tokens
from planner.answers.proof import proof
from planner.answers.recommend import Recommended, candidates_to_buy, recommend_from
from planner.answers.remarks import remarks
from planner.answers.verdict import verdict
from planner.answers.ways import ways
from planner.assumptions import Assumptions
from planner.catalogues.currencies import FxRate
from planner.catalogues.gpus import all_gpus, find_gpu
from planner.catalogues.models import Model, find_model
from planner.catalogues.purchases import PricePoint
from planner.catalogues.quants import QuantFormat, find_quant
from planner.catalogues.results import Result
from planner.catalogues.tokens import TokenPrice
from planner.errors import InvalidScenario, UnknownName
from planner.measurements.measured import Measurement, check_speed, measurement_of
from planner.rates import Rate
from planner.scenario import DEFAULT_QUANT, Owned, Scenario
from planner.sensitivity import DRAWS, Sensitivity, change_text, sensitivity
from planner.serving.notes import unused_note
from planner.supply.calling import api_options
from planner.supply.electricity import electricity_carbon, electricity_price
from planner.supply.growth import carries_until_months
from planner.supply.market import check_regions, read_market
from planner.supply.mixed import MixedFleet, mixed_fleet
from planner.supply.operate import Demand, Fleet, MachineKey
from planner.supply.options import BuyBasis, Excluded, Option, ranked
from planner.supply.owning import Terms, buy_options
from planner.supply.renting import rent_options
from planner.supply.shop import machine_keys, read_shop
from planner.supply.unserved import unserved
from planner.uncertainty.spread import Spread, spread
from planner.workload import Workload

PLAN_SCHEMA = "breakeven.plan/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The answer to one question."""

    scenario: Scenario
    model: Model
    quant: QuantFormat
    verdict: str  # one sentence
    proof: tuple[str, ...]  # the figures behind it, one line for each way
    options: tuple[Option, ...]
    excluded: tuple[Excluded, ...]
    recommended: Recommended
    mixed: MixedFleet | None  # owned base load with rented peaks, where the shape of the day is known
    growth: Growing | None = None  # each way over the term, where the demand grows
    notes: tuple[str, ...]
    money: Money
    assumptions: Assumptions = field(repr=False)

    def to_document(self) -> dict[str, object]:
        """Return the plan as `breakeven.plan/1`."""
        api = self.api
        return {
            "schema": PLAN_SCHEMA,
            "scenario": self.scenario.to_document(),
            "verdict": self.verdict,
            "options": [
                {
                    **option.to_document(),
                    "carries_until_months": carries_until_months(option, self.scenario, self.assumptions),
                    "is_too_slow": option.is_too_slow,
                    "passed_over": why_not,
                    "break_even_tokens_per_month": break_even_tokens(option, api),
                }
                for option, why_not in zip(self.options, self.passed_over(), strict=True)
            ],
            "excluded": [entry.to_document() for entry in self.excluded],
            "recommended": self.recommended.to_document(),
            "mixed": None if self.mixed is None else self.mixed.to_document(),
            "growth": None if self.growth is None else self.growth.to_document(),
            "rent_paths": [result.to_document() for result in self.rent_paths()],
            "cash": self.cash_flow().to_document(),
            "notes": list(self.notes),
            "proof": list(self.proof),
        }

    def explain(self, number: int) -> Explanation:
        """
        Return how every figure of an option came about.

        Args:
            number: Its place in the ranking, from 1.

        Raises:
            InvalidScenario: if there is no such option.
        """
        if not 1 <= number <= len(self.options):
            allowed = (
                f"the number of an option, 1 to {len(self.options)}"
                if self.options
                else "no number: none serves"
            )
            raise InvalidScenario("explain", number, allowed)
        return explain(number, self.options[number - 1], self.assumptions, self.api)

    @property
    def rental(self) -> Option | None:
        """The cheapest rental that a service can rest on."""
        return chosen_rental(self.options, self.scenario)

    @property
    def purchase(self) -> Option | None:
        """The cheapest machine to buy, or owned already."""
        return chosen_purchase(self.options, self.scenario)

    @property
    def api(self) -> Option | None:
        """The cheapest API."""
        return cheapest_api(self.options)

    @property
    def singles_text(self) -> str | None:
        """What comparisons of one rental with one purchase leave out where the answer is a mix of both."""
        mixed = ways(self.scenario, self.options, self.money, self.mixed).cheapest_mix
        return None if mixed is None else singles_text(mixed, self.money)

    def passed_over(self) -> list[str | None]:
        """Say for each option why the verdict passes over it, None where it counts."""
        return passed_over(self.options, self.scenario)

    def crossing(self, purchase: Option | None = None, rental: Option | None = None) -> Crossing:
        """
        Return the cumulative cost of owning and renting up to the end of the term.

        Args:
            purchase: The machine to buy; the plan's cheapest where None.
            rental: The rental; the one that the purchase is compared with, else the plan's, where None.
        """
        own = purchase or self.purchase
        against = own.basis.against if own is not None and isinstance(own.basis, BuyBasis) else None
        return crossing(own, rental or against or self._beside(own), self.api, self.assumptions)

    def rent_paths(self, purchase: Option | None = None) -> tuple[PathResult, ...]:
        """
        Return what each path of rents comes to for a purchase against the rental that it is compared with.

        Args:
            purchase: The machine to buy; the plan's cheapest where None.
        """
        own = purchase or self.purchase
        against = None if own is None or own.is_own else own.compared_with
        return rent_paths(own, against, self.assumptions)

    def cash_flow(self, purchase: Option | None = None) -> CashFlow:
        """
        Return what renting, owning and calling an API cost in each month of the term.

        Where the demand grows, that is the cheapest of each kind with machines added as they are needed.

        Args:
            purchase: The machine to buy, for the demand of the first month; the plan's cheapest where None.
        """
        if purchase is None and self.growth is not None:
            return self.growth.cash_flow()
        own = purchase or self.purchase
        against = None if own is None else own.compared_with
        return cash_flow(against or self._beside(own), own, self.api, self.assumptions)

    def _beside(self, purchase: Option | None) -> Option | None:
        """Return the rental shown beside a purchase that is compared with none: of its kind of speed only."""
        rental = self.rental
        if purchase is None or rental is None or purchase.is_too_slow == rental.is_too_slow:
            return rental
        return None

    def sensitivity(self, purchase: Option | None = None, *, draws: int = DRAWS) -> Sensitivity | None:
        """
        Return how sure it is that a purchase is cheaper than the rental that it is compared with.

        Args:
            purchase: The machine to buy; the plan's cheapest where None.
            draws: Of all inputs at once.

        Returns:
            None where there is nothing to compare.
        """
        own = purchase or self.purchase
        rental = None if own is None else own.compared_with
        if own is None or rental is None:
            return None
        return sensitivity(own, rental, self.scenario, self.assumptions, draws=draws)

    def spread(self, *, draws: int = DRAWS) -> Spread:
        """
        Return what every option costs in draws that all share, and how often each way is the cheapest.

        Args:
            draws: Of all inputs at once.
        """
        counts = [why is None for why in self.passed_over()]
        return spread(self.options, counts, self.scenario, self.assumptions, draws=draws)

    def cost_by_hours(self, purchase: Option | None = None, rental: Option | None = None) -> CostByHours:
        """
        Return what a month costs against the hours of use a day, owned and rented by the hour.

        Args:
            purchase: The machine to buy; the plan's cheapest where None.
            rental: A rental paid by use; the one that the purchase is compared with where None.
        """
        if self.scenario.has_demand:  # the hours are no question
            return cost_by_hours(None, None, self.scenario.days_per_month)
        own = purchase or self.purchase
        against = own.basis.against_hourly if own is not None and isinstance(own.basis, BuyBasis) else None
        by_use = rental or against
        if by_use is None and self._beside(own) is not None:
            slow = are_too_slow(self.options)
            by_use = cheapest_rental(self.options, self.scenario, may_be_slow=slow, by_use=True)
        return cost_by_hours(own, by_use, self.scenario.days_per_month)


def plan(
    scenario: Scenario,
    rates: Sequence[Rate],
    *,
    model: Model | None = None,
    measurement: Measurement | None = None,
    left_out: Iterable[Excluded] = (),
    quotes: Sequence[PricePoint] = (),
    currencies: Mapping[str, FxRate] | None = None,
    own_results: tuple[Result, ...] = (),
    token_prices: Sequence[TokenPrice] = (),
) -> Plan:
    """
    Return every way to serve a model, priced and ranked.

    Args:
        scenario: What is asked.
        rates: Rental prices of whole machines.
        model: The model, where it is none of the catalogue.
        measurement: A speed measured elsewhere; else the one that the scenario's options state.
        left_out: What the caller has left out of the rates already: slices, ambiguous names, quarantine.
        quotes: Own quotes for hardware; they go before the prices of the catalogue.
        currencies: Exchange rates for the currency that is shown; the bundled ones where None.
        own_results: Measurements of the user's own; they correct the estimates.
        token_prices: Prices of API tokens that were fetched; the bundled ones stand where none is newer.

    Raises:
        UnknownName: if the model, the format, a GPU or a region is unknown; with close matches.
        InvalidScenario: if options contradict each other, or a speed is beyond its machine's bandwidth.
    """
    model, quant, scenario, naming = _named(scenario, model)
    assumptions, money, demand = (
        scenario.assumptions,
        Money.of(scenario.currency, currencies),
        Demand.of(scenario),
    )
    gpus = all_gpus()
    gpu, own = _device(scenario.gpu, naming), _owned(scenario.own, naming)
    measured = measurement or measurement_of(scenario)
    tariff, tariff_notes = electricity_price(scenario)
    work = replace(scenario.workload(model, quant), own_results=own_results)
    if measured is not None:
        check_speed(measured, work)
    fleet = Fleet(workload=work, demand=demand, gpus=gpus, measurement=measured)

    check_regions(scenario, rates)
    market = read_market(scenario, rates, gpus, gpu, assumptions)
    shop = read_shop(scenario, gpus, gpu, own, assumptions, quotes)
    to_recommend = candidates_to_buy(assumptions, scenario.as_of)
    fleet.prepare([*market.machines, *machine_keys(shop.candidates), *machine_keys(to_recommend)])

    rentals, not_rented = rent_options(scenario, market, fleet, assumptions)
    carbon, carbon_notes = electricity_carbon(scenario, assumptions)
    terms = _terms(scenario, assumptions, tariff, carbon, rentals)
    purchases, not_bought = buy_options(shop, fleet, terms)
    mixed = mixed_fleet(shop.candidates, fleet, terms, purchases)
    machines = ranked([*rentals, *purchases])
    apis, not_called = api_options(
        scenario, model, _api_tokens(scenario, demand, machines), assumptions, token_prices
    )
    options = ranked([*machines, *apis])
    found = ways(scenario, options, money, mixed)
    excluded = (
        *unserved(market, shop, fleet),
        *not_rented,
        *not_bought,
        *not_called,
        *left_out,
    )
    grown = growing(options, shop.candidates, fleet, terms)
    made = Plan(
        scenario=scenario,
        model=model,
        quant=quant,
        verdict=verdict(found, model.name, excluded, has_prices=bool(market.used or shop.candidates)),
        proof=(*proof(found, excluded), *([] if grown is None else [growing_text(grown, money)])),
        options=options,
        excluded=excluded,
        recommended=recommend_from(fleet, terms, to_recommend),
        mixed=mixed,
        growth=grown,
        notes=(
            *naming,
            *_unused(work),
            *remarks(scenario, options, assumptions, money, measured),
            *([] if mixed is None else [mixed_text(mixed, money)]),
            *tariff_notes,
            *carbon_notes,
        ),
        money=money,
        assumptions=assumptions,
    )
    found_paths, sure, bought = made.rent_paths(), made.sensitivity(draws=0), made.purchase
    notes = [] if bought is None or not found_paths else [paths_text(found_paths, bought, money)]
    if sure is not None:
        mix = found.cheapest_mix
        notes += [] if mix is None else [singles_text(mix, money)]
        notes.append(change_text(sure, money, is_mixed=mix is not None))
    return replace(made, notes=(*made.notes, *notes))


def _named(scenario: Scenario, model: Model | None) -> tuple[Model, QuantFormat, Scenario, list[str]]:
    """Return the records that the names stand for; a name of a quantised copy brings its format along."""
    naming: list[str] = []
    if model is None:
        match = find_model(scenario.model)
        model = match.model
        if match.quant is not None and scenario.quant == DEFAULT_QUANT and match.quant != DEFAULT_QUANT:
            scenario = replace(scenario, quant=match.quant)
            naming.append(f"{match.matched} is a copy in {match.quant}: that format is taken.")
    return model, find_quant(scenario.quant), scenario, naming


def _unused(work: Workload) -> list[str]:
    """Say which options the method or the engine does not use."""
    note = unused_note(work)
    return [] if note is None else [f"{note[0].upper()}{note[1:]}."]


def _device(name: str | None, naming: list[str]) -> str | None:
    """Return the canonical name of a device; an ambiguous one is taken, and said so."""
    if name is None:
        return None
    match = find_gpu(name)
    remark = match.remark(name)
    if remark is not None:
        naming.append(f"{remark}.")
    return match.gpu.name


def _owned(text: str | None, naming: list[str]) -> MachineKey | None:
    """Return the machine that is there already."""
    if text is None:
        return None
    owned = Owned.parse(text)
    name = _device(owned.gpu, naming)
    if name is None:
        raise UnknownName("GPU", owned.gpu)
    return name, owned.gpu_count


def _terms(
    scenario: Scenario,
    assumptions: Assumptions,
    usd_per_kwh: float,
    g_co2_per_kwh: float | None,
    rentals: Sequence[Option],
) -> Terms:
    """Return what purchases are compared with; those too slow to talk to with a rental that is so too."""
    slow = [option for option in rentals if option.is_too_slow]
    return Terms(
        scenario=scenario,
        assumptions=assumptions,
        usd_per_kwh=usd_per_kwh,
        g_co2_per_kwh=g_co2_per_kwh,
        rental=cheapest_rental(rentals, scenario),
        hourly_rental=cheapest_rental(rentals, scenario, by_use=True),
        slow_rental=cheapest_rental(slow, scenario, may_be_slow=True),
        slow_hourly_rental=cheapest_rental(slow, scenario, may_be_slow=True, by_use=True),
    )


def _api_tokens(scenario: Scenario, demand: Demand, machines: Sequence[Option]) -> float | None:
    """Return the output tokens that APIs are priced for: the demand, or what the best machine writes."""
    if demand.tokens_per_month is not None:
        return demand.tokens_per_month
    best = best_machine(machines, scenario)
    return best.tokens_per_month if best else None
