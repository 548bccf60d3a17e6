"""Machines to buy, or owned already: price with host, power, running cost, and when they pay."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from planner.assumptions import Assumptions
from planner.breakeven import (
    MonthlyCosts,
    break_even_hours_per_day,
    break_even_months_moving,
    break_even_months_with_resale,
)
from planner.cost import (
    MONTHS_PER_YEAR,
    OwnCost,
    Ownership,
    energy_kwh_per_month,
    metered_fraction,
    own_cost,
    resale_fraction,
    token_prices,
)
from planner.rates import PriceStatus
from planner.scenario import Scenario
from planner.supply.operate import Fleet, OperatingPoint, Refused
from planner.supply.options import BuyBasis, Excluded, Kind, Option, PriceOrigin, names_text
from planner.supply.shop import (
    MODULES_PER_SERVER,
    Candidate,
    Housing,
    Shop,
    machine_parts,
    machine_price,
    not_sold,
)
from planner.units import HOURS_PER_MONTH, TOKENS_PER_PRICE


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What all machines to buy share."""

    scenario: Scenario
    assumptions: Assumptions
    usd_per_kwh: float
    rental: Option | None  # the cheapest that meets the limits
    hourly_rental: Option | None  # the same among those billed by use
    g_co2_per_kwh: float | None  # of the electricity; None: not known where it comes from
    slow_rental: Option | None  # the cheapest of those too slow to talk to, for machines that are so too
    slow_hourly_rental: Option | None


def buy_options(shop: Shop, fleet: Fleet, terms: Terms) -> tuple[list[Option], list[Excluded]]:
    """Return for each device the cheapest number of it that serves what is asked, and what was left out."""
    options: list[Option] = []
    over_budget: list[Option] = []
    refusals: dict[str, list[str]] = {}
    for candidate in shop.candidates:
        best, dear = None, None
        for count in candidate.counts:
            point = fleet.outcome(candidate.gpu.name, count)
            if isinstance(point, Refused):
                continue
            if candidate.is_own and point.replicas > 1:
                name = f"{count}x {candidate.gpu.name}, your own"
                needed = f"the demand takes {point.replicas} of them, and one is there"
                refusals.setdefault(needed, []).append(name)
                continue
            option = buy_option(candidate, point, terms)
            budget = terms.scenario.budget_usd
            if budget is not None and (option.purchase_usd or 0.0) > budget and not candidate.is_own:
                dear = option if dear is None or option.rank_key < dear.rank_key else dear
            elif best is None or option.rank_key < best.rank_key:
                best = option
        if best is not None:
            options.append(best)
        elif dear is not None:
            over_budget.append(dear)
        elif candidate.is_own:
            outcome = fleet.outcome(candidate.gpu.name, candidate.counts[0])
            if isinstance(outcome, Refused):
                name = f"{candidate.counts[0]}x {candidate.gpu.name}, your own"
                refusals.setdefault(outcome.why, []).append(name)
    excluded = [Excluded(what=names_text(names), why=why) for why, names in refusals.items()]
    return options, [*excluded, *_over_budget(over_budget, terms), *not_sold(shop)]


def buy_option(candidate: Candidate, point: OperatingPoint, terms: Terms) -> Option:
    """Return the row of one machine to buy, or owned already."""
    scenario, assumptions = terms.scenario, terms.assumptions
    replicas = point.replicas
    machine_usd, machine_text = machine_price(candidate, point.machine.gpu_count, assumptions)
    parts = machine_parts(candidate, point.machine.gpu_count, assumptions)
    rated_kw, load_kw, power_text = _power(candidate, point, assumptions)
    ownership = _ownership(candidate, point, terms, machine_usd, rated_kw, load_kw)
    cost = own_cost(ownership)
    month = float(cost.usd_per_month)
    hour, fixed = _by_hour(load_kw, point.utilisation, terms, month)
    against = terms.slow_rental if point.is_too_slow else terms.rental
    hourly = terms.slow_hourly_rental if point.is_too_slow else terms.hourly_rental
    costs = monthly_costs(cost, against, assumptions)
    work = point.sizing.workload
    kwh = float(ownership.energy_kwh_per_year) / MONTHS_PER_YEAR * assumptions["pue"]
    kwh_per_mtok = kwh / point.tokens_per_month * TOKENS_PER_PRICE
    name = candidate.gpu.name if candidate.housing is Housing.COMPLETE else ""
    name = name or f"{point.machine.gpu_count}x {candidate.gpu.name}"
    basis = BuyBasis(
        ownership=ownership,
        cost=cost,
        purchase=candidate.purchase,
        machine_text=machine_text,
        host_usd=parts.host_usd * replicas,
        host_assumption=parts.host_assumption,
        replicas=replicas,
        power_assumption=_power_assumption(candidate, assumptions),
        load_kw=load_kw,
        power_text=power_text,
        hours_per_month=scenario.hours_per_month,
        days_per_month=scenario.days_per_month,
        own_usd_per_hour=hour,
        own_fixed_usd_per_month=fixed,
        gpus_per_server=MODULES_PER_SERVER if candidate.housing is Housing.MODULE else None,
        against=against,
        against_hourly=hourly,
        is_by_hours=not scenario.has_demand,
        months_with_resale=months_sold(cost, machine_usd * replicas, costs, assumptions),
    )
    return Option(
        kind=Kind.BUY,
        name=f"{name} (own)" if candidate.is_own else name,
        gpu=candidate.gpu.name,
        gpu_count=point.machine.gpu_count,
        vram_total_gb=candidate.gpu.memory_gb_vendor * point.machine.gpu_count,
        replicas=replicas,
        fits=point.sizing.memory.fits,
        usd_per_month=month,
        token_prices=token_prices(
            month / point.tokens_per_month * TOKENS_PER_PRICE,
            aggregate_tokens_per_s=point.speed.aggregate_tokens_per_s,
            prefill_tokens_per_s=point.speed.prefill_tokens_per_s,
            input_tokens=work.input_tokens,
            output_tokens=work.output_tokens,
        ),
        tokens_per_month=point.tokens_per_month,
        point=point,
        price=_price(candidate, assumptions),
        purchase_usd=float(cost.capex_usd),
        purchase_source=machine_text,
        power_w=load_kw * 1000.0,
        energy_usd_per_month=float(cost.energy_usd_per_month),
        kwh_per_million_tokens=kwh_per_mtok,
        g_co2_per_million_tokens=None if terms.g_co2_per_kwh is None else kwh_per_mtok * terms.g_co2_per_kwh,
        break_even_months=months_kept(cost, costs),
        break_even_hours_per_day=_hours(basis, hourly),
        is_too_slow=point.is_too_slow,
        is_own=candidate.is_own,
        notes=tuple(_notes(candidate, point)),
        basis=basis,
    )


def owned_cost(candidate: Candidate, point: OperatingPoint, terms: Terms) -> tuple[Ownership, OwnCost]:
    """Return how a machine to buy, or owned already, is housed and run, and what that costs."""
    machine_usd, _ = machine_price(candidate, point.machine.gpu_count, terms.assumptions)
    rated_kw, load_kw, _ = _power(candidate, point, terms.assumptions)
    ownership = _ownership(candidate, point, terms, machine_usd, rated_kw, load_kw)
    return ownership, own_cost(ownership)


def _power_assumption(candidate: Candidate, assumptions: Assumptions) -> str | None:
    """Return the assumption that says what a machine draws beyond its devices; None where all is known."""
    if assumptions.is_set("power_kw"):
        return None
    if candidate.housing is Housing.COMPLETE:
        return None if candidate.gpu.tdp_w else "unified_power_kw"
    return "card_power_factor" if candidate.housing is Housing.CARD else "server_power_factor"


def _power(candidate: Candidate, point: OperatingPoint, assumptions: Assumptions) -> tuple[float, float, str]:
    """Return rated and loaded power of all replicas, and how they came about. [kW]"""
    replicas, count = point.replicas, point.machine.gpu_count
    if assumptions.is_set("power_kw"):
        load = assumptions["power_kw"] * replicas
        return load, load, assumptions.source("power_kw")
    share, tdp_w = assumptions["load_fraction"], candidate.gpu.tdp_w
    if candidate.housing is Housing.COMPLETE:
        rated = (tdp_w / 1000.0 if tdp_w else assumptions["unified_power_kw"]) * replicas
        source = "rated power of the catalogue" if tdp_w else assumptions.source("unified_power_kw")
        return rated, rated * share, f"{rated:g} kW x {share:g} under load ({source})"
    if tdp_w is None:
        raise ValueError(f"{candidate.gpu.name} has no rated power")
    name = _power_assumption(candidate, assumptions) or ""
    rated = tdp_w / 1000.0 * count * assumptions[name] * replicas
    text = f"{replicas} x {count} x {tdp_w:g} W x {assumptions[name]:g} x {share:g} under load"
    return rated, rated * share, f"{text} ({assumptions.source(name)})"


def _ownership(
    candidate: Candidate,
    point: OperatingPoint,
    terms: Terms,
    machine_usd: float,
    rated_kw: float,
    load_kw: float,
) -> Ownership:
    """Return how all replicas together are housed and run."""
    get, replicas = terms.assumptions, point.replicas
    is_server = candidate.housing in (Housing.MODULE, Housing.SERVER)
    all_in = get.is_set("purchase_usd")  # a price that was set is all that is paid at the start
    kwh = energy_kwh_per_month(
        load_kw,
        terms.scenario.hours_per_month,
        point.utilisation,
        get["idle_power_fraction"],
        get["on_outside_hours_fraction"],
    )
    gpus = point.machine.gpu_count * replicas
    return Ownership(
        machine_usd=machine_usd * replicas,
        is_sunk=candidate.is_own,
        network_fraction=get["network_fraction"] if is_server and not all_in else 0.0,
        spares_fraction=get["spares_fraction"] if is_server and not all_in else 0.0,
        setup_usd=0.0 if all_in else get["setup_usd"],
        term_years=get["term_years"],
        discount_rate=get["discount_rate"],
        resale_fraction=resale_share(get, get["term_years"]),
        energy_kwh_per_year=kwh * MONTHS_PER_YEAR,
        pue=get["pue"],
        usd_per_kwh=terms.usd_per_kwh,
        rated_kw=rated_kw,
        colo_usd_per_kw_month=get["colo_usd_per_kw_month"],
        colo_includes_energy=get["colo_includes_energy"],
        support_fraction_per_year=get["support_fraction_per_year"] if is_server else 0.0,
        staff_fte=max(
            get["staff_fte_per_server"] * _servers(candidate, gpus, replicas), get["staff_fte_minimum"]
        ),
        staff_usd_per_fte_year=get["staff_usd_per_fte_year"],
        insurance_fraction_per_year=get["insurance_fraction_per_year"],
        failure_fraction_per_year=get["failure_rate_per_gpu_year"] * get["out_of_warranty_fraction"],
        licence_usd_per_year=get["licence_usd_per_gpu_year"] * gpus,
        bandwidth_usd_per_year=get["bandwidth_usd_per_month"] * MONTHS_PER_YEAR,
    )


def _servers(candidate: Candidate, gpus: int, replicas: int) -> int:
    """Return the number of computers to look after: replicas on modules share boards of eight."""
    return -(-gpus // MODULES_PER_SERVER) if candidate.housing is Housing.MODULE else replicas


def resale_share(assumptions: Assumptions, years: float) -> float:
    """Return the share of its price that a machine of this age sells for; a set share holds at any age."""
    given = assumptions.get("resale_fraction")
    if given is not None:
        return given
    floor, decay = assumptions["resale_floor"], assumptions["resale_decay_per_year"]
    return float(resale_fraction(years, floor, decay))


def _by_hour(load_kw: float, utilisation: float, terms: Terms, month: float) -> tuple[float, float]:
    """Return what a further hour of service costs, and what is due without any. [USD/h], [USD/month]"""
    get = terms.assumptions
    idle = get["idle_power_fraction"]
    drawn = utilisation + (1.0 - utilisation) * idle - idle * get["on_outside_hours_fraction"]
    metered = float(metered_fraction(get["colo_usd_per_kw_month"], get["colo_includes_energy"]))
    hour = load_kw * max(drawn, 0.0) * get["pue"] * terms.usd_per_kwh * metered
    return hour, max(0.0, month - hour * min(terms.scenario.hours_per_month, HOURS_PER_MONTH))


def monthly_costs(cost: OwnCost, rental: Option | None, assumptions: Assumptions) -> MonthlyCosts | None:
    """Return what renting and owning cost month by month, None where nothing is rented."""
    if rental is None or rental.usd_per_month is None:
        return None
    return MonthlyCosts(
        rent_usd=rental.usd_per_month,
        running_usd=float(cost.running_usd_per_month),
        energy_usd=float(cost.energy_usd_per_month),
        rents=assumptions.rents.held(rental.held_months),
        electricity=assumptions.electricity,
    )


def months_kept(cost: OwnCost, costs: MonthlyCosts | None) -> float | None:
    """Return the months after which buying has cost no more than renting, without a sale."""
    return None if costs is None else break_even_months_moving(float(cost.capex_usd), costs)


def months_sold(
    cost: OwnCost, machine_usd: float, costs: MonthlyCosts | None, assumptions: Assumptions
) -> float | None:
    """Return the months after which buying and then selling has cost no more than renting."""
    if costs is None:
        return None
    is_flat = assumptions.is_set("resale_fraction")  # one figure for the end of the term: it holds all along
    return break_even_months_with_resale(
        float(cost.capex_usd),
        costs,
        machine_usd=machine_usd,
        resale_floor=assumptions["resale_fraction"] if is_flat else assumptions["resale_floor"],
        resale_decay_per_year=1e9 if is_flat else assumptions["resale_decay_per_year"],
    )


def _hours(basis: BuyBasis, hourly: Option | None) -> float | None:
    """Return the hours a day from which owning costs less than renting by the hour, where they are asked."""
    if hourly is None or hourly.usd_per_hour is None or not basis.is_by_hours:
        return None
    rent = float(hourly.usd_per_hour) * hourly.replicas
    return break_even_hours_per_day(
        basis.own_fixed_usd_per_month, basis.own_usd_per_hour, rent, basis.days_per_month
    )


def _price(candidate: Candidate, assumptions: Assumptions) -> PriceOrigin:
    """Return where the price of a machine comes from."""
    is_set = assumptions.is_set("purchase_usd")
    if candidate.is_own or is_set or candidate.purchase is None:
        return PriceOrigin(seen_at=None, age_hours=None, status=PriceStatus.OWN, source_url=None)
    purchase = candidate.purchase
    return PriceOrigin(
        seen_at=purchase.as_of,
        age_hours=None,
        status=PriceStatus.OWN if purchase.is_own else PriceStatus.SNAPSHOT,
        source_url=_first_source(purchase.source),
    )


def _first_source(source: str) -> str:
    """Return the address in a source text, or the text."""
    for part in source.replace("(", " ").replace(")", " ").split():
        if part.startswith(("http://", "https://", "github:")):
            return part.rstrip(";,")
    return source


def _notes(candidate: Candidate, point: OperatingPoint) -> Iterable[str]:
    """Return what a person should know of this purchase."""
    purchase = candidate.purchase
    if candidate.is_own:
        yield "owned already: only what it costs to run counts"
    elif purchase is not None and purchase.condition != "new":
        yield (
            f"the price is for {purchase.condition} stock"
            if purchase.condition != "unstated"
            else ("the listings do not state the condition")
        )
    gpus = point.machine.gpu_count * point.replicas
    if candidate.housing is Housing.MODULE and gpus < MODULES_PER_SERVER and not candidate.is_own:
        yield "modules are sold on boards of eight: a smaller number is hard to buy"


def _over_budget(options: Sequence[Option], terms: Terms) -> list[Excluded]:
    """Say what would serve and costs more than the budget."""
    if not options:
        return []
    cheapest = sorted(options, key=lambda option: option.purchase_usd or 0.0)
    names = [f"{option.name} ({option.purchase_usd:,.0f} USD)" for option in cheapest]
    return [Excluded(what=names_text(names), why=f"over the budget of {terms.scenario.budget_usd:,.0f} USD")]
