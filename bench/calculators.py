"""
Put one question to public calculators whose formula can be read, and to this program (`make calculators`).

They stand in `bench/data/calculators.toml`, each with its source and, where its page has one, a figure that
has to come out of the page's own inputs. The answers go into docs/calculators.md.
"""

import math
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from bench.documents import write_block
from planner.breakeven import MAX_MONTHS, break_even_months, break_even_tokens_per_month
from planner.compare import Plan, plan
from planner.cost import capital_usd_per_year, own_cost, usd_per_available_gpu_hour, usd_per_million_tokens
from planner.scenario import Scenario
from planner.supply.options import BuyBasis, Option
from planner.units import HOURS_PER_MONTH, HOURS_PER_YEAR, TOKENS_PER_PRICE
from pricing.store import Store

ROOT = Path(__file__).resolve().parent.parent
FILE = ROOT / "bench" / "data" / "calculators.toml"
DOCUMENT = ROOT / "docs" / "calculators.md"
# A day after the newest bundled price, so that the figures do not depend on the day of the run.
NOW = datetime(2026, 11, 30, tzinfo=UTC)
QUESTION = Scenario(
    model="llama-3.3-70b-instruct",
    quant="FP8",
    gpu="H100 SXM",
    gpus=8,
    batch=64,
    input_tokens=1024,
    output_tokens=512,
)
# Always on, as most of the pages take it, and for a working day.
HOURS_PER_DAY = (24.0, 8.0)
MONTHS_PER_YEAR = 12.0
# What NVIDIA AI Enterprise lists for a GPU and year. Source: assumption licence_usd_per_gpu_year.
LICENCE_USD = 4500.0
# An H100 hour of a large neocloud that owns it. Source: https://inferencex.semianalysis.com (2026-04).
NEOCLOUD_USD_PER_HOUR = 1.69
# The lower end of its 0.6 to 0.7. Source: the page of "Deloitte, rule of thumb" in calculators.toml.
DELOITTE_RATIO = 0.6


@dataclass(frozen=True, slots=True, kw_only=True)
class Inputs:
    """What the calculators are given; a page names some of these."""

    purchase_usd: float = 0.0
    resale_usd: float = 0.0
    gpus: int = 8
    term_years: float = 4.0
    discount_rate: float = 0.0
    rent_usd_per_hour: float = 0.0
    hours_per_month: float = HOURS_PER_MONTH
    load_kw: float = 0.0
    pue: float = 1.0
    usd_per_kwh: float = 0.0
    operation_usd_per_year: float = 0.0  # staff, support, insurance
    own_usd_per_month: float = 0.0
    aggregate_tokens_per_s: float = 0.0  # output tokens, prompts in between
    decode_tokens_per_s: float = 0.0  # of all sequences, no prompt in between
    prefill_tokens_per_s: float = 0.0
    input_tokens: float = 0.0
    output_tokens: float = 1.0
    api_usd_in: float = 0.0  # [USD/Mtok]
    api_usd_out: float = 0.0

    @property
    def energy_usd_per_hour(self) -> float:
        """Electricity under load, without cooling. [USD/h]"""
        return self.load_kw * self.usd_per_kwh

    @property
    def api_usd_per_million_output_tokens(self) -> float:
        """With the input that belongs to them. [USD/Mtok]"""
        return self.api_usd_in * self.input_tokens / self.output_tokens + self.api_usd_out


def sizing_page(given: Inputs) -> float | None:
    hours = given.hours_per_month
    return break_even_months(
        given.purchase_usd, given.rent_usd_per_hour * hours, given.energy_usd_per_hour * hours
    )


def lenovo(given: Inputs) -> float | None:
    running = given.energy_usd_per_hour * given.pue
    return break_even_months(
        given.purchase_usd, given.rent_usd_per_hour * HOURS_PER_MONTH, running * HOURS_PER_MONTH
    )


def nvidia(given: Inputs) -> float:
    hosting = given.energy_usd_per_hour * given.pue * HOURS_PER_YEAR
    year = given.purchase_usd / given.term_years + hosting + LICENCE_USD * given.gpus
    return float(usd_per_million_tokens(year / HOURS_PER_YEAR, given.aggregate_tokens_per_s))


def inferecon(given: Inputs) -> float:
    prefill_s = given.input_tokens / given.prefill_tokens_per_s
    decode_s = given.output_tokens / given.decode_tokens_per_s
    # The resale is taken off at once, and what is left is paid off with interest.
    net = given.purchase_usd - given.resale_usd
    capital = float(capital_usd_per_year(net, 0.0, given.term_years, given.discount_rate))
    power = given.energy_usd_per_hour * given.pue * HOURS_PER_YEAR
    year = capital + power + given.operation_usd_per_year
    return float(usd_per_million_tokens(year / HOURS_PER_YEAR, given.output_tokens / (prefill_s + decode_s)))


def inferencex(given: Inputs) -> float:
    return float(usd_per_million_tokens(NEOCLOUD_USD_PER_HOUR, given.aggregate_tokens_per_s / given.gpus))


def cliffcenter(given: Inputs) -> float:
    year = given.energy_usd_per_hour * given.pue * HOURS_PER_YEAR + given.operation_usd_per_year
    return (given.purchase_usd + 3.0 * year) / (3.0 * HOURS_PER_YEAR * given.gpus)


def capex_and_a_fifth(given: Inputs) -> float:
    return given.purchase_usd / given.gpus / 3.0 * 1.2 / HOURS_PER_YEAR


def llmtco_owned(given: Inputs) -> float:
    return given.purchase_usd / 36.0 + given.energy_usd_per_hour * 24.0 * 30.0


def llmtco_tokens(given: Inputs) -> float | None:
    tokens = given.input_tokens + given.output_tokens
    paid = given.input_tokens * given.api_usd_in + given.output_tokens * given.api_usd_out
    return break_even_tokens_per_month(given.rent_usd_per_hour * given.hours_per_month, paid / tokens)


def deloitte(given: Inputs) -> float:
    return given.rent_usd_per_hour * given.hours_per_month / given.own_usd_per_month


def llmflation(given: Inputs) -> float:
    tokens = given.aggregate_tokens_per_s * 3600.0 * given.hours_per_month
    flat = tokens / TOKENS_PER_PRICE * given.api_usd_per_million_output_tokens
    left = math.exp(-math.log(10.0) * given.term_years)
    return flat * (1.0 - left) / (math.log(10.0) * given.term_years)


FORMULAS: Mapping[str, Callable[[Inputs], float | None]] = {
    each.__name__: each
    for each in (
        sizing_page,
        lenovo,
        nvidia,
        inferecon,
        inferencex,
        cliffcenter,
        capex_and_a_fifth,
        llmtco_owned,
        llmtco_tokens,
        deloitte,
        llmflation,
    )
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Calculator:
    """One public calculator: what it counts, leaves out and answers."""

    name: str
    source: str
    formula: str
    answers: str
    counts: str
    leaves_out: str
    published: str | None = None  # a figure of its own, as printed
    inputs: Mapping[str, float] | None = None  # from which that came
    unit: float = 1.0  # in which it was printed
    checked: object = None

    def of(self, given: Inputs) -> float | None:
        """Return its answer."""
        return FORMULAS[self.formula](given)

    @property
    def recomputed(self) -> float | None:
        """Its answer to its own published inputs, in the unit printed."""
        found = self.of(Inputs(**self.inputs)) if self.inputs else None  # type: ignore[arg-type]
        return None if found is None else found / self.unit


def calculators() -> list[Calculator]:
    """Return every calculator."""
    records = tomllib.loads(FILE.read_text(encoding="utf-8"))["calculator"]
    return [Calculator(**record) for record in records]


def planned() -> list[Plan]:
    """Return this program's answers to the question, by the bundled prices, one for each number of hours."""
    with Store.in_memory() as store:
        rates = store.rates(NOW, cheapest=True)
    return [plan(replace(QUESTION, hours_per_day=hours), rates) for hours in HOURS_PER_DAY]


def ways(found: Plan) -> tuple[Option, Option, Option, BuyBasis]:
    """Return rental, purchase and API of the plan."""
    rental, purchase, api = found.rental, found.purchase, found.api
    if rental is None or purchase is None or api is None or not isinstance(purchase.basis, BuyBasis):
        raise ValueError("the bundled prices no longer hold all three ways")
    return rental, purchase, api, purchase.basis


def inputs_of(found: Plan) -> Inputs:
    """Return what a person would type in: the same prices, power and speeds."""
    rental, purchase, api, basis = ways(found)
    own, cost, point = basis.ownership, basis.cost, purchase.point
    prices = api.token_prices
    if point is None or prices is None:
        raise ValueError("the plan has no speed or no price of tokens")
    care = cost.staff_usd + cost.support_usd + cost.insurance_usd
    return Inputs(
        purchase_usd=float(cost.capex_usd),
        resale_usd=float(cost.resale_usd),
        gpus=purchase.gpu_count or 1,
        term_years=float(own.term_years),
        discount_rate=float(own.discount_rate),
        rent_usd_per_hour=float(rental.usd_per_hour or 0.0),
        hours_per_month=found.scenario.hours_per_month,
        load_kw=basis.load_kw,
        pue=float(own.pue),
        usd_per_kwh=float(own.usd_per_kwh),
        operation_usd_per_year=float(care),
        own_usd_per_month=purchase.usd_per_month or 0.0,
        aggregate_tokens_per_s=point.speed.aggregate_tokens_per_s,
        decode_tokens_per_s=point.speed.decode_tokens_per_s * found.scenario.batch,
        prefill_tokens_per_s=point.speed.prefill_tokens_per_s,
        input_tokens=found.scenario.input_tokens,
        output_tokens=found.scenario.output_tokens,
        api_usd_in=prices.usd_per_million_input_tokens,
        api_usd_out=prices.usd_per_million_output_tokens,
    )


def ours(found: Plan, answers: str, name: str) -> float | None:
    """Return what this program answers to the same, None for never."""
    rental, purchase, api, basis = ways(found)
    if answers == "months":
        months = purchase.break_even_months
        return None if months is None or months > MAX_MONTHS else months
    if answers == "usd_per_million_output_tokens":
        return None if purchase.token_prices is None else purchase.token_prices.usd_per_million_tokens
    if answers == "usd_per_gpu_hour":  # of an hour in service
        return owned_usd_per_gpu_hour(found, basis) * HOURS_PER_MONTH / found.scenario.hours_per_month
    if answers == "usd_per_month":
        return api.usd_per_month if name.startswith("a16z") else purchase.usd_per_month
    if answers == "rent_over_own":
        return 1.0
    price = 0.0 if api.token_prices is None else api.token_prices.usd_per_million_tokens
    tokens = break_even_tokens_per_month(rental.usd_per_month or 0.0, price)
    can = rental.tokens_per_month or 0.0
    return None if tokens is None or tokens > can else tokens * (1.0 + request_ratio(found))


def request_ratio(found: Plan) -> float:
    """Return the input tokens for each output token."""
    return found.scenario.input_tokens / found.scenario.output_tokens


def owned_usd_per_gpu_hour(found: Plan, basis: BuyBasis, **changes: float) -> float:
    """Return the levelised cost of an available hour, with some of its parts changed. [USD/GPU-h]"""
    _, purchase, _, _ = ways(found)
    cost = own_cost(replace(basis.ownership, **changes))  # type: ignore[arg-type]
    gpus = (purchase.gpu_count or 1) * purchase.replicas
    return float(usd_per_available_gpu_hour(cost.total_usd, gpus, found.assumptions["availability"]))


# What one calculator or another leaves out, and the part of an ownership that stands for it.
LEFT_OUT: tuple[tuple[str, Mapping[str, float]], ...] = (
    ("resale", {"resale_fraction": 0.0}),
    ("interest", {"discount_rate": 0.0}),
    ("resale and interest", {"resale_fraction": 0.0, "discount_rate": 0.0}),
    ("network", {"network_fraction": 0.0}),
    ("support", {"support_fraction_per_year": 0.0}),
    ("staff", {"staff_fte": 0.0}),
    ("insurance", {"insurance_fraction_per_year": 0.0}),
    ("cooling (PUE 1)", {"pue": 1.0}),
    ("electricity", {"usd_per_kwh": 0.0}),
)


def left_out_rows(found: Plan) -> list[tuple[str, ...]]:
    """Return what each part alone does to cost and break-even of the purchase."""
    rental, _, _, basis = ways(found)
    base_hour = owned_usd_per_gpu_hour(found, basis)
    rows: list[tuple[str, ...]] = []
    nothing: Mapping[str, float] = {}
    for what, changes in (("nothing", nothing), *LEFT_OUT):
        hour = owned_usd_per_gpu_hour(found, basis, **changes)
        cost = own_cost(replace(basis.ownership, **changes))  # type: ignore[arg-type]
        months = break_even_months(
            float(cost.capex_usd), rental.usd_per_month or 0.0, float(cost.running_usd_per_month)
        )
        apart = f"{hour / base_hour - 1.0:+.1%}" if changes else ""
        kept = amount("months", None if months is None or months > MAX_MONTHS else months)
        rows.append((what, f"{hour:.3f}", apart, f"{float(cost.usd_per_month):,.0f}", kept))
    return rows


UNITS: Mapping[str, str] = {
    "months": "{:,.1f} months",
    "usd_per_gpu_hour": "{:,.3f} USD/GPU-h",
    "usd_per_million_output_tokens": "{:,.3f} USD/Mtok",
    "usd_per_month": "{:,.0f} USD a month",
    "tokens_per_month": "from {:,.3g} tokens a month",
    "rent_over_own": "rent {:,.2f} of owning",
}


def amount(answers: str, value: float | None) -> str:
    """Write an answer with its unit."""
    return "never" if value is None else UNITS[answers].format(value)


def moved(theirs: float | None, own: float | None) -> str:
    """Say how far theirs is from ours."""
    return "" if theirs is None or not own else f"{theirs / own - 1.0:+.0%}"


def answers_of(each: Calculator, found: Plan) -> tuple[str, str, str]:
    """Return a calculator's answer, ours, and how far apart they are."""
    theirs, own = each.of(inputs_of(found)), ours(found, each.answers, each.name)
    if each.answers == "rent_over_own":
        ratio = theirs or 0.0
        words = ["own" if ratio >= limit else "rent" for limit in (DELOITTE_RATIO, 1.0)]
        return f"{amount(each.answers, theirs)}: {words[0]}", words[1], ""
    return amount(each.answers, theirs), amount(each.answers, own), moved(theirs, own)


def answer_rows(plans: Sequence[Plan]) -> list[tuple[str, ...]]:
    """Return one row for each calculator: its answer, ours, how far apart, for each number of hours."""
    return [
        (each.name, *(text for found in plans for text in answers_of(each, found))) for each in calculators()
    ]


def scope_rows() -> list[tuple[str, ...]]:
    """Return what each calculator counts and leaves out, with its address."""
    return [
        (
            f"[{each.name}]({each.source})" if each.source.startswith("https://") else each.name,
            each.counts,
            each.leaves_out,
        )
        for each in calculators()
    ]


def published_rows() -> list[tuple[str, ...]]:
    """Return what comes out of the inputs that the pages themselves print."""
    return [
        (each.name, each.published, f"{each.recomputed:,.4g}")
        for each in calculators()
        if each.published is not None and each.recomputed is not None
    ]


def table(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table."""
    lines = [headers, ["---"] * len(headers), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def rendered(plans: Sequence[Plan]) -> str:
    """Return all that stands between the markers of the document."""
    first = plans[0]
    lines = [f"- {line}" for found in plans for line in found.proof if not line.startswith("API")]
    lines += [f"- {line}" for line in first.proof if line.startswith("API")]
    hours = [f"{word}, {each:g} h a day" for each in HOURS_PER_DAY for word in ("theirs", "ours", "apart")]
    costs = ("left out", "USD/GPU-h, available", "against all", "USD a month", "pays back after")
    return "\n\n".join(
        [
            f"Prices of the bundled collection as of {NOW:%Y-%m-%d}.",
            "\n".join(lines),
            table(("calculator", "counts", "leaves out"), scope_rows()),
            table(("calculator", *hours), answer_rows(plans)),
            "What leaving out one thing does to our own figures of the purchase, at 24 h a day:",
            table(costs, left_out_rows(first)),
            "What comes out of the pages' own inputs:",
            table(("calculator", "published", "here"), published_rows()),
        ]
    )


def main() -> None:
    text = rendered(planned())
    print(text)
    write_block(DOCUMENT, "calculators", f"\n{text}\n")


if __name__ == "__main__":
    main()
