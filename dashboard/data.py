"""
What the pages show, computed once for each question: the store, its prices, plans and sizings, cached.

A plan is kept by its question and the store's revision, so that any write - by this process or another -
makes the next page compute it anew.
"""

import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import streamlit as st

from dashboard import tables
from dashboard.state import permalink
from planner.assumptions import Owner, all_assumptions
from planner.compare import Plan
from planner.compare import plan as make_plan
from planner.explain import Explanation
from planner.gpus import find_gpu
from planner.grid import size_grid
from planner.models import find_model
from planner.money import Money
from planner.options import Excluded, Kind, Option
from planner.purchases import PricePoint
from planner.quants import find_quant
from planner.rates import PriceStatus, Rate
from planner.recommend import Choice
from planner.scenario import Scenario
from planner.sizing import Sizing, size
from planner.units import GB
from planner.verdict import times_text
from planner.workload import KvDtype, Machine, Method, Workload
from pricing.settings import Settings
from pricing.store import Store
from pricing.stored import ProviderStatus, StoredOffer

if TYPE_CHECKING:
    from dashboard.charts import Cell, Dot

# Where no device is chosen, the size page starts from the one that most pages about sizing use.
DEFAULT_GPU = "H100 SXM"
# Ages of prices are part of what is shown: it is computed anew after this time even if nothing was written.
KEEP_SECONDS = 600
COUNTS = (1, 2, 4, 8)  # GPUs in machines that are sold or rented
EFFECT_POINTS = 9  # enough to see where a curve bends, and few enough to wait for
WHOLE = ("input_tokens", "output_tokens", "host_gpus")  # numbers of things
METHODOLOGY = "methodology.md"
RECOMMENDED = {
    "best_single_gpu": "Best single GPU",
    "best_multi_gpu": "Best with several GPUs",
    "best_value": "Best value",
    "unified_memory": "Unified memory",
    "cheapest_cloud": "Cloud from",
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


def store() -> Store:
    """Return the store of this process; a new database gets the bundled prices."""
    return _open_store(settings().database_url)


@st.cache_resource(max_entries=4, show_spinner="Opening the database")
def _open_store(url: str) -> Store:
    return Store.open(url)


def plan(scenario: Scenario) -> Plan:
    """Return every way to serve it, priced and ranked; computed once for each question and set of prices."""
    opened = store()
    return _plan(permalink(scenario), opened.label, opened.revision(), scenario, opened)


@st.cache_resource(max_entries=128, ttl=KEEP_SECONDS, show_spinner=False)
def _plan(question: str, label: str, revision: int, _scenario: Scenario, _store: Store) -> Plan:
    asked = _scenario.as_of, _scenario.max_price_age, _scenario.provider
    prices = _prices(*asked, bool(_scenario.region), label, revision, _store)
    currencies = None if _scenario.currency == "USD" else _store.exchange_rates(_scenario.as_of)
    return make_plan(
        _scenario,
        prices.rates,
        left_out=prices.left_out,
        quotes=prices.quotes,
        currencies=currencies,
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
TRUST = ("Rental prices:", "No rental price", "No verified price")  # how far the prices can be trusted


def threshold(found: Plan) -> str | None:
    """Return the note that turns the verdict round: from which hours, and below which rent, it would flip."""
    return next((note for note in found.notes if FLIPS in note), None)


def trust(found: Plan) -> list[str]:
    """Return the notes on how far the prices can be trusted."""
    return [note for note in found.notes if note.startswith(TRUST)]


def other_notes(found: Plan) -> list[str]:
    """Return the notes that stand nowhere else on the page."""
    shown = {threshold(found), *trust(found), *found.scenario.warnings}
    return [note for note in found.notes if note not in shown]


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """What a month costs on the cheapest way to rent and to own, as one assumption moves."""

    title: str
    unit: str
    source: str
    currency: str
    here: float | None  # the present value, where it is one
    values: Sequence[float]
    rent: Sequence[float | None]
    own: Sequence[float | None]


def movable(scenario: Scenario) -> dict[str, str]:
    """
    Return the assumptions that can be moved, the names behind their titles.

    What a catalogue gives machine by machine has no range that would hold for all of them.
    """
    options, owner = scenario.to_document(), Owner(scenario.owner)
    idle = set() if scenario.has_demand else {"peak_factor"}
    return {
        record.title: record.name
        for record in all_assumptions().values()
        if record.low < record.high
        and record.by_owner(owner) is not None
        and (record.option is None or record.name in options)
        and record.name not in idle
    }


def effect(scenario: Scenario, name: str) -> Effect:
    """Return what a month costs over the range seen of one assumption, all others held."""
    record = all_assumptions()[name]
    step = (record.high - record.low) / (EFFECT_POINTS - 1)
    values = [record.low + step * number for number in range(EFFECT_POINTS)]
    if name in WHOLE:
        values = list(dict.fromkeys(float(round(value)) for value in values))
    plans = [plan(_with(scenario, name, value)) for value in values]
    money = plans[0].money
    here = getattr(scenario, name, None) if record.option else scenario.assumptions.get(name)
    return Effect(
        title=record.title,
        unit=record.unit,
        source=record.source,
        currency=money.currency,
        here=here if isinstance(here, int | float) else None,
        values=values,
        rent=[_in(money, found.rental.usd_per_month if found.rental else None) for found in plans],
        own=[_in(money, found.purchase.usd_per_month if found.purchase else None) for found in plans],
    )


def _with(scenario: Scenario, name: str, value: float) -> Scenario:
    """Return the question with one assumption at another value."""
    if all_assumptions()[name].option is None:
        return replace(scenario, set=tuple((dict(scenario.set) | {name: value}).items()))
    return Scenario.from_mapping(dict(scenario.changed()) | {name: value})


def rental_of(scenario: Scenario) -> Option | None:
    """Return the cheapest rental of the machine that the size page looks at."""
    place = machine(scenario)
    return plan(replace(scenario, gpu=place.gpu.name, gpus=place.gpu_count)).rental


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
    return [_option_row(rank, option, found.money) for rank, option in enumerate(found.options, start=1)]


def _option_row(rank: int, option: Option, money: Money) -> dict[str, Any]:
    speed = option.point.speed if option.point else None
    prices, price = option.token_prices, option.price
    return {
        "rank": rank,
        "option": f"buy {times_text(option)}" if _is_bought(option) else times_text(option),
        "provider": option.provider_title or option.provider,
        "tier": option.tier,
        "month": _in(money, option.usd_per_month),
        "usd_per_hour": None if option.usd_per_hour is None else float(option.usd_per_hour),
        "usd_per_gpu_hour": None if option.usd_per_gpu_hour is None else float(option.usd_per_gpu_hour),
        "mtok": _in(money, prices.usd_per_million_tokens if prices else None),
        "decode": speed.decode_tokens_per_s if speed else None,
        "aggregate": speed.aggregate_tokens_per_s if speed else None,
        "pays_back": option.break_even_months,
        "purchase": _in(money, option.purchase_usd),
        "vram": option.vram_total_gb,
        "status": str(price.status),
        "seen": _seen(option),
        "source": address_of(price.source_url),
        "deploy": address_of(option.deploy_url),
        "region": option.region,
        "billing": option.billing,
        "why": "; ".join((*(["too slow to talk to"] if option.is_too_slow else []), *option.notes)) or None,
    }


def _is_bought(option: Option) -> bool:
    return option.kind is Kind.BUY and not option.is_own


def _in(money: Money, usd: float | None) -> float | None:
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
    """Return what is asked of one replica."""
    return scenario.workload(find_model(scenario.model).model, find_quant(scenario.quant))


def machine(scenario: Scenario) -> Machine:
    """Return the machine that the size page looks at."""
    gpu = find_gpu(scenario.gpu or DEFAULT_GPU).gpu
    return Machine(gpu=gpu, gpu_count=scenario.gpus or 1)


def sizing(scenario: Scenario) -> Sizing:
    """Return memory and speed of the question on that machine."""
    measured = scenario.decode_tokens_per_s if scenario.gpu else None
    return size(workload(scenario), machine(scenario), measured_decode_tokens_per_s=measured)


@dataclass(frozen=True, slots=True)
class Finetuning:
    """Rows of memory and machines for three ways to train a model, and what belongs to them."""

    rows: Sequence[Mapping[str, Any]]
    notes: Sequence[str]


@st.cache_resource(max_entries=64, show_spinner=False)
def finetuning(model: str) -> Finetuning:
    """Return what fine-tuning a model takes, by the physical estimate and by the sizing page's arithmetic."""
    from planner.finetune import to_document

    document: Mapping[str, Any] = to_document(find_model(model).model)
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


def fit_cells(scenario: Scenario, models: Sequence[str], gpus: Sequence[str]) -> "list[Cell]":
    """Return for each model and GPU the smallest number of GPUs that holds it, in words."""
    from dashboard.charts import Cell  # loads the chart library: late, so that the first page need not wait

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


def cells_as_rows(cells: "Sequence[Cell]") -> list[dict[str, str]]:
    """Return a grid of cells as a table: one row each, a column for each of theirs."""
    rows: dict[str, dict[str, str]] = {}
    for cell in cells:
        rows.setdefault(cell.row, {"": cell.row})[cell.column] = cell.word
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
        "gpu_count": offer.gpu_count,
        "gpu_fraction": offer.gpu_fraction,
        "memory_gb_per_gpu": offer.memory_gb_per_gpu,
        "form": offer.form,
        "provider": offer.provider,
        "instance_type": offer.instance_type,
        "region": offer.region,
        "tier": str(offer.tier),
        "usd_per_hour": float(offer.usd_per_hour),
        "usd_per_gpu_hour": float(offer.usd_per_gpu_hour),
        "billing": None if offer.billing is None else str(offer.billing),
        "status": str(status) if status else str(offer.verdict),
        "seen_at": offer.seen_at,
        "source": offer.source_url,
        "is_ranked": offer.is_rankable,
        "why_not": None if offer.is_rankable else _why_not(offer),
    }


def _why_not(offer: StoredOffer) -> str:
    if offer.reasons:
        return offer.reasons[0]
    if offer.gpu_fraction is not None:
        return "a slice of a GPU"
    return "CPU, memory and disk are billed beside it" if offer.gpu_only else "the GPU is not known"
