"""
What the pages show, computed once for each question: the store, its prices, plans and sizings, cached.

A plan is kept by its question and the store's revision, so that any write - by this process or another -
makes the next page compute it anew.
"""

import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import streamlit as st

from dashboard.tables import tokens_per_s
from planner.assumptions import all_assumptions
from planner.gpus import find_gpu
from planner.grid import size_grid
from planner.models import find_model
from planner.quants import find_quant
from planner.scenario import Scenario
from planner.sizing import Sizing, size
from planner.units import GB
from planner.workload import KvDtype, Machine, Method, Workload
from pricing.settings import Settings
from pricing.store import Store
from pricing.stored import ProviderStatus, StoredOffer

if TYPE_CHECKING:
    from dashboard.charts import Cell

# Where no device is chosen, the size page starts from the one that most pages about sizing use.
DEFAULT_GPU = "H100 SXM"
# Ages of prices are part of what is shown: it is computed anew after this time even if nothing was written.
KEEP_SECONDS = 600
COUNTS = (1, 2, 4, 8)  # GPUs in machines that are sold or rented
METHODOLOGY = "methodology.md"


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
            detail = f"{COUNTS[place]}x {gpu}: {tokens_per_s(speed)}* tok/s" if speed == speed else "fits"
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
