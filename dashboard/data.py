"""
What the pages show, computed once for each question: the store, its prices, plans and sizings, cached.

A plan is kept by its question and the store's revision, so that any write - by this process or another -
makes the next page compute it anew.
"""

import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import streamlit as st

from dashboard import tables
from dashboard.ownresults import kept_results
from dashboard.state import DEFAULT_GPU, permalink
from planner.assumptions import all_assumptions
from planner.compare import Plan
from planner.compare import plan as make_plan
from planner.explain import Explanation
from planner.gpus import find_gpu
from planner.grid import size_grid
from planner.models import Model, all_models, find_model
from planner.money import Money
from planner.options import Excluded, Kind, Option
from planner.purchases import PricePoint
from planner.quants import find_quant
from planner.rates import PriceStatus, Rate
from planner.recommend import Choice
from planner.results import Result
from planner.scenario import Scenario
from planner.sizing import Sizing, Speed, size
from planner.units import GB
from planner.verdict import times_text
from planner.workload import KvDtype, Machine, Method, Workload
from pricing.settings import Settings
from pricing.store import Store
from pricing.stored import ProviderStatus, StoredOffer

if TYPE_CHECKING:
    from dashboard.charts import Dot
    from dashboard.simulator import Pace

# Ages of prices are part of what is shown: it is computed anew after this time even if nothing was written.
KEEP_SECONDS = 600
COUNTS = (1, 2, 4, 8)  # GPUs in machines that are sold or rented
METHODOLOGY = "methodology.md"
UNCLEAR = "unclear name"  # status of a bundled price that nobody can rank: it may be of several GPUs
RECOMMENDED = {
    "best_single_gpu": "Best single GPU",
    "best_multi_gpu": "Best with several GPUs",
    "best_value": "Best value",
    "unified_memory": "Unified memory",
    "cheapest_cloud": "Cloud from",
}
# Price lists that are published as packages, by how the catalogue names them; the group is the version.
PACKAGES = {
    r"genai-prices (\d[\d.]*)": "genai-prices",
    r"litellm model price file \(release (\d[\d.]*)\)": "litellm",
}
# Formats of `planner.export` that the page offers: label and type.
DOWNLOADS: Mapping[str, tuple[str, str]] = {
    "csv": ("CSV", "text/csv"),
    "xlsx": ("Excel", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"),
    "json": ("JSON", "application/json"),
    "md": ("Markdown", "text/markdown"),
    "html": ("HTML", "text/html"),
}


def now() -> datetime:
    """Return the present."""
    return datetime.now(UTC)


def settings() -> Settings:
    """Return what the environment says."""
    return Settings.from_environ(os.environ)


def own_results() -> tuple[Result, ...]:
    """Return what `breakeven calibrate` has taken in."""
    return kept_results(os.environ)


def store() -> Store:
    """Return the store of this process; a new database gets the bundled prices."""
    return _open_store(settings().database_url)


@st.cache_resource(max_entries=4, show_spinner="Opening the database")
def _open_store(url: str) -> Store:
    return Store.open(url)


def plan(scenario: Scenario) -> Plan:
    """Return every way to serve it, priced and ranked; computed once for each question and set of prices."""
    opened, own = store(), own_results()
    return _plan(permalink(scenario), opened.label, opened.revision(), hash(own), scenario, opened, own)


@st.cache_resource(max_entries=128, ttl=KEEP_SECONDS, show_spinner=False)
def _plan(
    question: str,
    label: str,
    revision: int,
    own: int,
    _scenario: Scenario,
    _store: Store,
    _own_results: tuple[Result, ...],
) -> Plan:
    asked = _scenario.as_of, _scenario.max_price_age, _scenario.provider
    prices = _prices(*asked, bool(_scenario.region), label, revision, _store)
    currencies = None if _scenario.currency == "USD" else _store.exchange_rates(_scenario.as_of)
    return make_plan(
        _scenario,
        prices.rates,
        left_out=prices.left_out,
        quotes=prices.quotes,
        currencies=currencies,
        own_results=_own_results,
    )


@dataclass(frozen=True, slots=True)
class Prices:
    """What the store offers a plan, and what it holds back."""

    rates: Sequence[Rate]
    left_out: Sequence[Excluded]
    quotes: Sequence[PricePoint]


@st.cache_resource(max_entries=8, ttl=KEEP_SECONDS, show_spinner="Reading the prices")
def _prices(
    as_of: date | None,
    max_age_days: float,
    providers: tuple[str, ...],
    by_region: bool,
    label: str,
    revision: int,
    _store: Store,
) -> Prices:
    market: dict[str, Any] = {
        "now": now(),
        "as_of": as_of,
        "max_age_days": max_age_days,
        "provider": providers or None,
    }
    left_out = [Excluded(what=what, why=why) for what, why in _store.left_out(**market)]
    rates = _store.rates(**market, cheapest=True, by_region=by_region)
    return Prices(rates, left_out, _store.quotes())


def export(found: Plan, name: str) -> Callable[[], bytes]:
    """Return what writes a plan in a format of `planner.export`; called when a person asks for the file."""

    def written() -> bytes:
        from planner.export import FORMATS

        return FORMATS[name](found, None)

    return written


# Words by which the notes of a plan are known that belong beside the verdict: `planner.remarks`.
FLIPS = "rent if you find"  # from which hours, and below which rent, the answer would be another
# How far the prices can be trusted, and what is cheaper and does not count.
TRUST = ("Rental prices:", "No rental price", "No verified price", "Cheaper, but not counted")


def threshold(found: Plan) -> str | None:
    """Return the note that turns the verdict round: from which hours, and below which rent, it would flip."""
    return next((note for note in found.notes if FLIPS in note), None)


def prices_of_verdict(found: Plan) -> str | None:
    """Say how old the prices of the cheapest rental, purchase and API are, and which is missing."""
    ways = (("rent", found.rental), ("purchase", found.purchase), ("API", found.api))
    said = [
        f"{way} {option.price.status}, {seen}"
        for way, option in ways
        if option is not None and (seen := _seen(option)) is not None
    ]
    sentences = [f"Prices: {'; '.join(said)}."] if said else []
    sentences += [note for note in trust(found) if note.startswith("No rental price")]
    return " ".join(sentences) or None


def trust(found: Plan) -> list[str]:
    """Return the notes on how far the prices can be trusted."""
    return [note for note in found.notes if note.startswith(TRUST)]


def other_notes(found: Plan) -> list[str]:
    """Return the notes that stand nowhere else on the page."""
    shown = {threshold(found), *trust(found), *found.scenario.warnings}
    return [note for note in found.notes if note not in shown]


def question_key(scenario: Scenario) -> tuple[str, str, int]:
    """Return what an answer depends on: the question and the prices."""
    opened = store()
    return permalink(scenario), opened.label, opened.revision()


def rental_of(scenario: Scenario) -> Option | None:
    """Return the cheapest rental of the machine that the size page looks at."""
    place = machine(scenario)
    return plan(replace(scenario, gpu=place.gpu.name, gpus=place.gpu_count)).rental


def paces(scenario: Scenario, sizing: Sizing) -> "list[Pace]":
    """Return how the machine of the size page writes, then the other machines of the plan, fastest first."""
    from dashboard.simulator import Pace

    def pace(name: str, speed: Speed) -> Pace:
        return Pace(name, speed.decode_tokens_per_s, speed.ttft_ms / 1000.0)

    own = (
        []
        if sizing.speed is None
        else [pace(f"{sizing.machine.gpu_count}x {sizing.machine.gpu.name}", sizing.speed)]
    )
    found = plan(replace(scenario, gpu=None, gpus=None, decode_tokens_per_s=None))
    others = {option.name: option.point.speed for option in found.options if option.point is not None}
    ordered = sorted(others.items(), key=lambda entry: -entry[1].decode_tokens_per_s)
    return own + [pace(name, speed) for name, speed in ordered if [name] != [each.name for each in own]]


def recommendations(scenario: Scenario) -> list[dict[str, Any]]:
    """Return the hardware that holds a question, by kind, whatever machine is looked at."""
    found = plan(replace(scenario, gpu=None, gpus=None, decode_tokens_per_s=None)).recommended
    rows = []
    for name, title in RECOMMENDED.items():
        choice: Choice | None = getattr(found, name)
        if choice is not None:
            rows.append(
                {
                    "kind": title,
                    "machine": choice.name,
                    "usd": choice.usd,
                    "usd_per_hour": choice.usd_per_hour,
                    "vram": choice.vram_total_gb,
                    "decode": choice.decode_tokens_per_s,
                    "as_of": (choice.as_of or "")[:10] or None,
                    "source": choice.source,
                }
            )
    return rows


def price_and_speed(found: Plan) -> "list[Dot]":
    """
    Return every machine of a plan by the speed for one user and the price of a million tokens.

    On the front are those that no other beats in both.
    """
    from dashboard.charts import Dot

    priced = [
        (option, option.point.speed.decode_tokens_per_s, option.token_prices.usd_per_million_tokens)
        for option in found.options
        if option.point is not None and option.token_prices is not None
    ]
    cheapest_so_far, front = float("inf"), set()
    for option, _, usd in sorted(priced, key=lambda entry: (-entry[1], entry[2])):
        if usd < cheapest_so_far:
            cheapest_so_far = usd
            front.add(id(option))
    return [
        Dot(
            x=speed,
            y=found.money.amount(usd),
            label=option_name(option),
            kind=_kind_of(option),
            is_front=id(option) in front,
        )
        for option, speed, usd in priced
    ]


def _kind_of(option: Option) -> str:
    """Return what sets a price apart: bought, or rented on which terms."""
    if option.kind is Kind.BUY:
        return "buy"
    if option.is_reserved:
        return "rent, reserved"
    return "rent, spot" if option.is_spot else "rent"


def option_name(option: Option) -> str:
    """Name an option in a few words."""
    name = times_text(option)
    if option.kind is Kind.BUY:
        return name if option.is_own else f"buy {name}"
    return f"{name}, {option.provider_title or option.provider}"


def option_rows(found: Plan) -> list[dict[str, Any]]:
    """Return the ranked options as rows of the table; None is unknown."""
    passed = zip(found.options, found.passed_over(), strict=True)
    return [
        _option_row(rank, option, why_not, found.money)
        for rank, (option, why_not) in enumerate(passed, start=1)
    ]


def _option_row(rank: int, option: Option, why_not: str | None, money: Money) -> dict[str, Any]:
    speed = option.point.speed if option.point else None
    prices, price = option.token_prices, option.price
    return {
        "option": _row_name(option),
        "month": in_currency(money, option.usd_per_month),
        "provider": option.provider_title or option.provider,
        "mtok": in_currency(money, prices.usd_per_million_tokens if prices else None),
        "decode": speed.decode_tokens_per_s if speed else None,
        "counts": why_not or "yes",
        "seen": _seen(option),
        "source": address_of(price.source_url),
        "rank": rank,
        "tier": option.tier,
        "status": str(price.status),
        "usd_per_hour": None if option.usd_per_hour is None else float(option.usd_per_hour),
        "usd_per_gpu_hour": None if option.usd_per_gpu_hour is None else float(option.usd_per_gpu_hour),
        "aggregate": speed.aggregate_tokens_per_s if speed else None,
        "pays_back": option.break_even_months,
        "purchase": in_currency(money, option.purchase_usd),
        "vram": option.vram_total_gb,
        "deploy": address_of(option.deploy_url),
        "product": option.name if option.kind is Kind.API else option.instance_type,
        "region": option.region,
        "billing": option.billing,
        "stated": option.purchase_source or price.source_url,
        "why": "; ".join(option.notes) or None,
    }


def _row_name(option: Option) -> str:
    """Name an option as shortly as the first column needs it; the name of an API stands in a later one."""
    if option.kind is Kind.API:
        return f"API of {option.provider_title or option.provider}"
    return f"buy {times_text(option)}" if _is_bought(option) else times_text(option)


def _is_bought(option: Option) -> bool:
    return option.kind is Kind.BUY and not option.is_own


def in_currency(money: Money, usd: float | None) -> float | None:
    """Return an amount in the currency shown, None where unknown."""
    return None if usd is None else money.amount(usd)


def _seen(option: Option) -> str | None:
    """Say when a price was seen: how long ago where that is known to the hour, else the day."""
    price = option.price
    if price.status in (PriceStatus.VERIFIED, PriceStatus.STALE) and price.age_hours is not None:
        return f"{tables.age(price.age_hours)} ago"
    return (price.seen_at or "")[:10] or None


def address_of(source: str | None) -> str | None:
    """Return a source as an address that a browser opens, None where it has none."""
    if source is None:
        return None
    for pattern, package in PACKAGES.items():
        if found := re.fullmatch(pattern, source):
            return f"https://pypi.org/project/{package}/{found[1]}/"
    if source.startswith("github:"):  # as the bundled collection names a file at a commit
        repository, _, rest = source.removeprefix("github:").partition("@")
        commit, _, path = rest.partition(":")
        return f"https://github.com/{repository}" + (f"/blob/{commit}/{path}" if path else "")
    return source if source.startswith("https://") else None


def side_by_side(explained: Sequence[Explanation]) -> list[dict[str, Any]]:
    """Return the figures of some options as a table: one row for each figure, one column for each option."""
    rows: dict[str, dict[str, Any]] = {}
    for each in explained:
        title = f"{each.number}. {option_name(each.option)}"
        for figure in each.figures:
            row = rows.setdefault(
                f"{figure.name} [{figure.unit}]", {"figure": f"{figure.name} [{figure.unit}]"}
            )
            value = tables.significant(figure.value, 4)
            row[title] = tables.starred(value, figure.is_estimate)
    return list(rows.values())


def workload(scenario: Scenario) -> Workload:
    """Return what is asked of one replica, and what was measured by the user."""
    work = scenario.workload(find_model(scenario.model).model, find_quant(scenario.quant))
    return replace(work, own_results=own_results())


def machine(scenario: Scenario) -> Machine:
    """Return the machine that the size page looks at."""
    gpu = find_gpu(scenario.gpu or DEFAULT_GPU).gpu
    return Machine(gpu=gpu, gpu_count=scenario.gpus or 1)


def sizing(scenario: Scenario, work: Workload | None = None) -> Sizing:
    """Return memory and speed of the question on that machine, or of another model asked the same."""
    measured = scenario.decode_tokens_per_s if scenario.gpu else None
    return size(work or workload(scenario), machine(scenario), measured_decode_tokens_per_s=measured)


@dataclass(frozen=True, slots=True)
class Finetuning:
    """Rows of memory and machines for three ways to train a model, and what belongs to them."""

    rows: Sequence[Mapping[str, Any]]
    notes: Sequence[str]


@st.cache_resource(max_entries=64, show_spinner=False)
def finetuning(model: str) -> Finetuning:
    """Return what fine-tuning a model of the catalogue takes."""
    return _finetuning(find_model(model).model)


def finetuning_of(model: Model) -> Finetuning:
    """Return the same of any model; what a person put there is kept for nobody else."""
    return finetuning(model.id) if model.id in all_models() else _finetuning(model)


def _finetuning(model: Model) -> Finetuning:
    """Return memory by the physical estimate and by the sizing page's arithmetic."""
    from planner.finetune import to_document

    document: Mapping[str, Any] = to_document(model)
    rows = []
    for row in document["rows"]:
        for method in ("physical", "simple"):
            found = row[method]
            machines = [f"{m['gpu_count']}x {m['gpu']}" for m in found["machines"]]
            smallest = machines[0] if machines else "none of up to 8 GPUs"
            rows.append({"tuning": row["tuning"], "method": method, **_gib(found), "smallest": smallest})
    return Finetuning(rows, document["notes"])


def _gib(memory: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in memory.items() if name.endswith("_gib")}


def gigabytes(count: float | None) -> str | None:
    """Return a number of bytes in decimal GB, as checkpoints are listed."""
    return None if count is None else f"{count / GB:,.1f}"


def market() -> Sequence[Mapping[str, Any]]:
    """Return all current offers as rows, those that are never ranked too."""
    opened = store()
    return _market(opened.label, opened.revision(), opened)


@st.cache_resource(max_entries=2, ttl=KEEP_SECONDS, show_spinner="Reading the prices")
def _market(label: str, revision: int, _store: Store) -> Sequence[Mapping[str, Any]]:
    present = now()
    return [_offer_row(offer, present) for offer in _store.current_offers()]


def counted(words: Iterable[str]) -> Mapping[str, int]:
    """Return how often each word occurs, the most frequent first."""
    return dict(Counter(words).most_common())


def held_back() -> Sequence[StoredOffer]:
    """Return what verification keeps out of every plan, newest first."""
    return store().rejected()


def may_write() -> bool:
    """Whether this server refreshes prices and takes decisions about them."""
    return not settings().read_only and not store().is_read_only


def decide(offer_id: str, what: str, *, reason: str, by: str) -> None:
    """Accept or reject a price; time, name and reason are kept with it."""
    from pricing.reviewing import Decision

    store().decide(offer_id, Decision(what), reason=reason, by=by, now=now())


def provider_statuses() -> Sequence[ProviderStatus]:
    """Return where each provider's prices stand."""
    return store().statuses(now())


def history(gpu: str, providers: Sequence[str]) -> Sequence[StoredOffer]:
    """Return all prices of a GPU there were, oldest first."""
    return store().history(gpu=gpu, provider=list(providers) or None)


def methodology() -> str | None:
    """Return the document with every formula; None where the installation lacks it."""
    packaged = files("dashboard").joinpath(METHODOLOGY)
    beside = Path(__file__).resolve().parent.parent / "docs" / METHODOLOGY  # a checkout
    for place in (packaged, beside):
        if place.is_file():
            return place.read_text(encoding="utf-8")
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One cell of a grid: `level` 0 is good, higher is worse; `word` says it without colour."""

    row: str
    column: str
    word: str
    level: int
    detail: str = ""


def fit_cells(scenario: Scenario, models: Sequence[str], gpus: Sequence[str]) -> list[Cell]:
    """Return for each model and GPU the smallest number of GPUs that holds it, in words."""
    found = size_grid(
        [find_model(name).model for name in models],
        [find_gpu(name).gpu for name in gpus],
        [find_quant(scenario.quant)],
        COUNTS,
        scenario.context,
        scenario.batch,
        kv_dtype=KvDtype(scenario.kv_dtype),
        engine=scenario.engine,
        method=Method(scenario.method),
        input_tokens=scenario.input_tokens,
        output_tokens=scenario.output_tokens,
    )
    cells = []
    for row, model in enumerate(found.models):
        for column, gpu in enumerate(found.gpus):
            fits = found.fits[row, column, 0].tolist()
            place = fits.index(True) if True in fits else None
            if place is None:
                cells.append(Cell(row=model, column=gpu, word="no", level=3, detail="not with 8"))
                continue
            speed = float(found.decode_tokens_per_s[row, column, 0, place])
            detail = (
                f"{COUNTS[place]}x {gpu}: {tables.tokens_per_s(speed)}* tok/s" if speed == speed else "fits"
            )
            word = "fits" if COUNTS[place] == 1 else f"{COUNTS[place]} GPUs"
            cells.append(Cell(row=model, column=gpu, word=word, level=min(place, 2), detail=detail))
    return cells


def cells_as_rows(cells: Sequence[Cell]) -> list[dict[str, str]]:
    """Return the details of a grid of cells as a table: one row each, a column for each of theirs."""
    rows: dict[str, dict[str, str]] = {}
    for cell in cells:
        rows.setdefault(cell.row, {"": cell.row})[cell.column] = cell.detail
    return list(rows.values())


def options_as_assumptions(scenario: Scenario) -> dict[str, float]:
    """Return the assumptions that options of the question set, where they are not at their default."""
    changed = scenario.changed()
    return {
        name: float(changed[name]) for name in all_assumptions() if isinstance(changed.get(name), int | float)
    }


def _offer_row(offer: StoredOffer, present: datetime) -> Mapping[str, Any]:
    status = offer.status(present)
    return {
        "gpu": offer.gpu or offer.gpu_raw,
        "usd_per_gpu_hour": float(offer.usd_per_gpu_hour),
        "provider": offer.provider,
        "tier": str(offer.tier),
        "region": offer.region,
        "status": str(status) if status else UNCLEAR,
        "seen_at": offer.seen_at,
        "source": address_of(offer.source_url),
        "gpu_count": offer.gpu_count,
        "usd_per_hour": float(offer.usd_per_hour),
        "gpu_fraction": offer.gpu_fraction,
        "memory_gb_per_gpu": offer.memory_gb_per_gpu,
        "form": offer.form,
        "instance_type": offer.instance_type,
        "billing": None if offer.billing is None else str(offer.billing),
        "is_ranked": offer.is_rankable,
        "why_not": None if offer.is_rankable else _why_not(offer),
    }


def _why_not(offer: StoredOffer) -> str:
    if offer.reasons:
        return offer.reasons[0]
    if offer.gpu_fraction is not None:
        return "a slice of a GPU"
    return "CPU, memory and disk are billed beside it" if offer.gpu_only else "the GPU is not known"
