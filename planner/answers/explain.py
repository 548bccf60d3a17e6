"""How each figure of an option came about: formula, the numbers put in, the sources."""

from collections.abc import Iterator
from dataclasses import dataclass

from planner.answers.figure import Figure
from planner.answers.paying import paying, tokens_figure
from planner.answers.words import price_date_text, years_text
from planner.assumptions import Assumptions
from planner.cost import MONTHS_PER_YEAR, resale_fraction, usd_per_million_tokens
from planner.serving.speeds import SpeedSource
from planner.supply.depreciation import Way, schedule
from planner.supply.options import ApiBasis, BuyBasis, Kind, Option, RentBasis
from planner.supply.paths import Moves
from planner.units import GIB

EXPLANATION_SCHEMA = "breakeven.explanation/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """Every figure of one option."""

    number: int  # its place in the ranking, from 1
    option: Option
    figures: tuple[Figure, ...]

    def to_document(self) -> dict[str, object]:
        """Return it as `breakeven.explanation/1`."""
        return {
            "schema": EXPLANATION_SCHEMA,
            "number": self.number,
            "option": self.option.to_document(),
            "figures": [figure.to_document() for figure in self.figures],
            "notes": list(self.option.notes),
        }


def explain(number: int, option: Option, assumptions: Assumptions, api: Option | None = None) -> Explanation:
    """Return how every figure of an option came about; of a purchase also what it takes against an API."""
    basis = option.basis
    if isinstance(basis, RentBasis):
        money = [*_rent(option, basis, assumptions), *_tokens(option, basis.rate.usd_per_hour)]
    elif isinstance(basis, BuyBasis):
        against = [] if api is None else [tokens_figure(option, api)]
        money = [*_buy(option, basis, assumptions), *_tokens(option, None), *against]
    else:
        money = list(_api(option, basis, assumptions))
    return Explanation(number=number, option=option, figures=(*_machine(option), *money))


def _machine(option: Option) -> Iterator[Figure]:
    """Explain memory and speed of one replica."""
    point = option.point
    if point is None:
        return
    memory, work = point.sizing.memory, point.sizing.workload
    yield Figure(
        name="memory needed",
        value=memory.total_bytes / GIB,
        unit="GiB",
        formula="weights + KV cache + state + runtime",
        numbers=(
            f"{(memory.weights_bytes - memory.offloaded_bytes) / GIB:,.2f} + "
            f"{memory.kv_cache_bytes / GIB:,.2f} + {memory.state_bytes / GIB:,.2f} + "
            f"{memory.runtime_bytes / GIB:,.2f}; {memory.usable_bytes / GIB:,.2f} usable"
        ),
        source=f'{memory.basis}; docs/methodology.md, "Memory"',
        is_estimate=True,
    )
    speed = point.speed
    measured = speed.source is SpeedSource.MEASURED
    formula, source = "1 / time of a decode step", 'docs/methodology.md, "Speed"'
    change, corrected = point.sizing.correction, ""
    if change is not None:
        formula += " x correction by own measurements"
        corrected = f"; x {change.decode.factor:.3f} by {change.measurements} of this device and engine"
        source = 'docs/methodology.md, "Speed" and "Own measurements"'
    if point.sizing.is_speed_given:
        corrected = ""
        formula = source = "measured" if measured else "estimate of the sizing that was given"
    ends = speed.ends("decode")
    yield Figure(
        name="decode speed",
        value=speed.decode_tokens_per_s,
        unit="tokens/s",
        formula=formula,
        numbers=f"batch {work.batch}, {work.context_tokens:,} tokens of context, bound by {speed.bound}"
        + ("" if measured or ends is None else f"; {ends[0]:,.1f} to {ends[1]:,.1f}")
        + corrected,
        source=source,
        is_estimate=not measured,
    )
    yield Figure(
        name="aggregate speed",
        value=speed.aggregate_tokens_per_s,
        unit="tokens/s",
        formula="output tokens of all requests in flight, their prompts included",
        numbers=f"batch {work.batch}, {work.input_tokens:,} in, {work.output_tokens:,} out; one replica",
        source='docs/methodology.md, "Speed"',
        is_estimate=True,
    )


def _tokens(option: Option, usd_per_hour: float | None) -> Iterator[Figure]:
    """Explain tokens and their price."""
    point, prices = option.point, option.token_prices
    if point is None or prices is None or option.tokens_per_month is None or option.usd_per_month is None:
        return
    aggregate = point.speed.aggregate_tokens_per_s
    demanded = point.utilisation < 1.0 or point.replicas > 1
    yield Figure(
        name="output tokens",
        value=option.tokens_per_month,
        unit="tokens/month",
        formula="the demand" if demanded else "aggregate speed x 3600 x hours",
        numbers=f"{point.replicas} replicas under load for {point.utilisation:.0%} of the hours"
        if demanded
        else f"{aggregate:,.2f} x 3600 x {option.tokens_per_month / aggregate / 3600.0:,.1f}",
        source='docs/methodology.md, "Plan"',
        is_estimate=True,
    )
    full_use = ""
    if usd_per_hour is not None:
        full = usd_per_million_tokens(usd_per_hour, aggregate)
        full_use = f"; at full use {usd_per_hour:g} / ({aggregate:,.2f} x 3600) x 1e6 = {full:,.2f}"
    yield Figure(
        name="price of a million output tokens, prompts included",
        value=prices.usd_per_million_tokens,
        unit="USD/Mtok",
        formula="monthly cost / output tokens x 1e6",
        numbers=f"{option.usd_per_month:,.2f} / {option.tokens_per_month:,.0f} x 1e6{full_use}",
        source='docs/methodology.md, "Price of a token"',
        is_estimate=True,
    )
    work = point.sizing.workload
    yield Figure(
        name="share of the time spent on prompts",
        value=prices.prefill_time_fraction,
        unit="fraction",
        formula="aggregate x in / (out x prefill speed)",
        numbers=(
            f"{aggregate:,.2f} x {work.input_tokens:,} / ({work.output_tokens:,} x "
            f"{point.speed.prefill_tokens_per_s:,.0f}); {prices.usd_per_million_input_tokens:,.4f} USD/Mtok "
            f"in, {prices.usd_per_million_output_tokens:,.4f} out"
        ),
        source='docs/methodology.md, "Price of a token"',
        is_estimate=True,
    )


def _rent(option: Option, basis: RentBasis, assumptions: Assumptions) -> Iterator[Figure]:
    """Explain the monthly rent."""
    rate = basis.rate
    numbers = f"{rate.usd_per_hour_text} x {basis.paid_hours_per_month:,.1f} x {option.replicas}"
    formula = "hourly price x paid hours x replicas"
    if option.point is not None and len(option.point.shifts) > 1:
        formula = "hourly price x paid hours of a replica, their mean, x replicas"
    if basis.lost_work_fraction:
        formula, numbers = f"{formula} / (1 - lost work)", f"{numbers} / (1 - {basis.lost_work_fraction:g})"
    if basis.is_capped and option.point is not None and len(option.point.shifts) > 1:
        formula = f"{formula}, each copy up to the monthly cap"
    elif basis.is_capped:
        formula = "monthly cap x replicas"
        numbers = (
            f"{rate.usd_per_month_cap:,.2f} x {option.replicas}, below {basis.hourly_usd_per_month:,.2f}"
        )
    extras = ((basis.storage_usd_per_month, "storage"), (basis.egress_usd_per_month, "egress"))
    for amount, word in extras:
        if amount:
            formula, numbers = f"{formula} + {word}", f"{numbers} + {amount:,.2f}"
    yield Figure(
        name="rent",
        value=option.usd_per_month,
        unit="USD/month",
        formula=formula,
        numbers=numbers,
        source=f"{rate.provider_title}, {rate.instance_type}, {price_date_text(option)}: {rate.source_url}",
    )
    rents = assumptions.rents.held(option.held_months)
    yield from _over_term(option, rents, assumptions, "rent_change_per_year")


def _api(option: Option, basis: ApiBasis, assumptions: Assumptions) -> Iterator[Figure]:
    """Explain the monthly price of an API."""
    price = basis.price
    cached = ""
    if basis.cached_input_fraction and price.usd_per_mtok_cached_input is not None:
        cached = f", {basis.cached_input_fraction:.0%} of the input at {price.usd_per_mtok_cached_input:g}"
    yield Figure(
        name="API price",
        value=option.usd_per_month,
        unit="USD/month",
        formula="(input tokens x input price + output tokens x output price) / 1e6",
        numbers=(
            f"({basis.input_tokens_per_month:,.0f} x {price.usd_per_mtok_input:g} + "
            f"{basis.output_tokens_per_month:,.0f} x {price.usd_per_mtok_output:g}) / 1e6{cached}"
        ),
        source=f"{price.provider}, {price.model_name}, {price.as_of}: {price.source}",
    )
    yield from _over_term(option, assumptions.api_prices, assumptions, "api_change_per_year")


def _over_term(option: Option, moves: Moves, assumptions: Assumptions, name: str) -> Iterator[Figure]:
    """Explain what a month costs on average over the term, where its price moves."""
    if option.usd_per_month_over_term is None:
        return
    years = assumptions["term_years"]
    yield Figure(
        name="a month on average over the term",
        value=option.usd_per_month_over_term,
        unit="USD/month",
        formula="sum of the months at a price that moves / months",
        numbers=f"{option.usd_per_month:,.2f} in the first month, {moves.words}, {years_text(years)}",
        source=assumptions.source(name),
        is_estimate=True,
    )


def _buy(option: Option, basis: BuyBasis, assumptions: Assumptions) -> Iterator[Figure]:
    """Explain price, running cost and break-even of an owned machine."""
    own, cost = basis.ownership, basis.cost
    extras = (own.network_fraction, own.spares_fraction, own.setup_usd)
    yield Figure(
        name="price",
        value=float(cost.capex_usd),
        unit="USD",
        formula="0, it is spent" if own.is_sunk else "machine x (1 + network + spares) + set-up",
        numbers=f"{own.machine_usd:,.0f} x (1 + {extras[0]:g} + {extras[1]:g}) + {extras[2]:,.0f}",
        source=basis.machine_text,
        is_estimate=basis.purchase is not None,
    )
    years = float(own.term_years)
    yield Figure(
        name="resale at the end of the term",
        value=float(cost.resale_usd),
        unit="USD",
        formula="machine x resale fraction",
        numbers=f"{own.machine_usd:,.0f} x {float(own.resale_fraction):.4f} after {years_text(years)}",
        source=assumptions.source("resale_fraction"),
        is_estimate=True,
    )
    yield Figure(
        name="depreciation",
        value=float(cost.depreciation_usd) / MONTHS_PER_YEAR,
        unit="USD/month",
        formula="(price - resale) / term",
        numbers=f"({cost.capex_usd:,.0f} - {cost.resale_usd:,.0f}) / {years * MONTHS_PER_YEAR:g} months",
        source=assumptions.source("term_years"),
        is_estimate=True,
    )
    yield from _books(basis, assumptions)
    yield Figure(
        name="power under load",
        value=basis.load_kw * 1000.0,
        unit="W",
        formula="rated power x share under load",
        numbers=basis.power_text,
        source=assumptions.source("load_fraction"),
        is_estimate=not assumptions.is_set("power_kw"),
    )
    kwh = float(own.energy_kwh_per_year) / MONTHS_PER_YEAR
    yield Figure(
        name="energy",
        value=float(cost.energy_usd_per_month),
        unit="USD/month",
        formula="kWh x PUE x tariff",
        numbers=(
            f"{kwh:,.2f} x {own.pue:g} x {own.usd_per_kwh:g}; under load {basis.load_kw:g} kW for "
            f"{basis.hours_per_month:,.1f} h, idle {assumptions['idle_power_fraction']:g} of that, on in "
            f"{assumptions['on_outside_hours_fraction']:.0%} of the other hours"
        ),
        source=assumptions.source("pue"),
        is_estimate=True,
    )
    yield from _carbon(option, kwh * float(own.pue))
    lines = (
        ("colocation", cost.colo_usd, "rated kW x USD/kW-month", "colo_usd_per_kw_month"),
        ("support", cost.support_usd, "machine x share a year / 12", "support_fraction_per_year"),
        ("staff", cost.staff_usd, "FTE x cost a year / 12", "staff_fte_per_server"),
        ("insurance", cost.insurance_usd, "machine x share a year / 12", "insurance_fraction_per_year"),
        (
            "failures",
            cost.failures_usd,
            "machine x failures x not under warranty / 12",
            "failure_rate_per_gpu_year",
        ),
        ("licences", cost.licence_usd, "GPUs x USD a year / 12", "licence_usd_per_gpu_year"),
        ("internet line", cost.bandwidth_usd, "as set", "bandwidth_usd_per_month"),
    )
    for name, usd_per_year, formula, assumption in lines:
        if usd_per_year:
            yield Figure(
                name=name,
                value=float(usd_per_year) / MONTHS_PER_YEAR,
                unit="USD/month",
                formula=formula,
                numbers=f"{float(usd_per_year):,.2f} / 12",
                source=assumptions.source(assumption),
                is_estimate=True,
            )
    running = float(cost.running_usd_per_month)
    yield Figure(
        name="cost of owning",
        value=option.usd_per_month,
        unit="USD/month",
        formula="depreciation + running cost",
        numbers=f"{float(cost.depreciation_usd) / MONTHS_PER_YEAR:,.2f} + {running:,.2f}",
        source='docs/methodology.md, "Owning"',
        is_estimate=True,
    )
    yield from paying(option, basis, assumptions)


def _books(basis: BuyBasis, assumptions: Assumptions) -> Iterator[Figure]:
    """Explain the value in the books by declining balance, beside what the machine would sell for."""
    own, cost = basis.ownership, basis.cost
    capex, machine = float(cost.capex_usd), float(own.machine_usd)
    if own.is_sunk or not float(cost.resale_usd) <= capex:
        return
    curve = None
    if not assumptions.is_set("resale_fraction"):
        floor, decay = assumptions["resale_floor"], assumptions["resale_decay_per_year"]

        def curve(years: float) -> float:
            return machine * float(resale_fraction(years, floor, decay))

    years = schedule(capex, float(cost.resale_usd), float(own.term_years), Way.DECLINING, market_usd=curve)
    market = "" if curve is None else "; sold then " + ", ".join(f"{each.market_usd:,.0f}" for each in years)
    books = ", ".join(f"{each.book_usd:,.0f}" for each in years)
    yield Figure(
        name="depreciation by declining balance, first year",
        value=years[0].depreciation_usd / MONTHS_PER_YEAR,
        unit="USD/month",
        formula="book x 2 / term, or the rest by straight line where that is more, down to the resale",
        numbers=f"in the books at the end of each year {books}{market}",
        source='docs/methodology.md, "Depreciation"',
        is_estimate=True,
    )


def _carbon(option: Option, kwh_per_month: float) -> Iterator[Figure]:
    """Explain energy and CO2 of a million output tokens."""
    if option.kwh_per_million_tokens is None or option.tokens_per_month is None:
        return
    yield Figure(
        name="energy of a million output tokens",
        value=option.kwh_per_million_tokens,
        unit="kWh/Mtok",
        formula="kWh x PUE / output tokens x 1e6",
        numbers=f"{kwh_per_month:,.2f} / {option.tokens_per_month:,.0f} x 1e6",
        source='docs/methodology.md, "Energy"',
        is_estimate=True,
    )
    grams = option.g_co2_per_million_tokens
    if grams is not None and option.kwh_per_million_tokens:
        yield Figure(
            name="CO2 of a million output tokens",
            value=grams,
            unit="g/Mtok",
            formula="kWh a million tokens x g/kWh of the grid",
            numbers=f"{option.kwh_per_million_tokens:,.3f} x {grams / option.kwh_per_million_tokens:,.1f}",
            source="planner/data/carbon.csv by --electricity-region, or --set grid_g_co2_per_kwh",
            is_estimate=True,
        )


def is_estimate(option: Option) -> bool:
    """Whether the speed of an option's whole batch, and with it its price of a token, is estimated."""
    if option.kind is Kind.API or option.point is None:
        return False
    return option.point.speed.aggregate_source is SpeedSource.ESTIMATED
