"""What the pages show of a sizing: machines and their pace, fine-tuning, the grid of models and GPUs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import streamlit as st

from dashboard import data, tables
from dashboard.commands.sizing_text import machine_name
from dashboard.form.fields import with_controls
from dashboard.rows.points import Cell
from dashboard.simulator import Pace
from dashboard.state import DEFAULT_GPU
from planner.catalogues.gpus import find_gpu
from planner.catalogues.models import Model, all_models, find_model
from planner.catalogues.quants import find_quant
from planner.scenario import Scenario
from planner.serving.grid import size_grid
from planner.sizing import Sizing, Speed, size
from planner.supply.options import Option
from planner.units import GB
from planner.workload import KvDtype, Machine, Method, Workload

FIT_WORDS = {True: "fits", False: "does not fit"}
COUNTS = (1, 2, 4, 8)  # GPUs in machines that are sold or rented
# Devices that most open models are run on; whether one holds a model is told of these first.
COMMON_GPUS = (
    "RTX 4090",
    "RTX 5090",
    "L40S",
    "RTX PRO 6000 Blackwell Server",
    "A100 80GB SXM",
    "H100 SXM",
    "H200 SXM",
    "B200",
    "Instinct MI300X",
    "Mac Studio M3 Ultra 512GB",
)


def rental_of(scenario: Scenario) -> Option | None:
    """Return the cheapest rental of the machine that the size page looks at."""
    place = machine(scenario)
    return data.plan(replace(scenario, gpu=place.gpu.name, gpus=place.gpu_count)).rental


def paces(scenario: Scenario, sizing: Sizing) -> list[Pace]:
    """Return how the machine of the size page writes, then the other machines of the plan, fastest first."""

    def pace(name: str, speed: Speed) -> Pace:
        return Pace(name, speed.decode_tokens_per_s, speed.ttft_ms / 1000.0)

    own = [] if sizing.speed is None else [pace(machine_name(sizing), sizing.speed)]
    found = data.plan_of_all_machines(scenario)
    others = {option.name: option.point.speed for option in found.options if option.point is not None}
    ordered = sorted(others.items(), key=lambda entry: -entry[1].decode_tokens_per_s)
    return own + [pace(name, speed) for name, speed in ordered if [name] != [each.name for each in own]]


def workload(scenario: Scenario) -> Workload:
    """Return what is asked of one replica, and what was measured by the user."""
    work = scenario.workload(find_model(scenario.model).model, find_quant(scenario.quant))
    return replace(work, own_results=data.own_results())


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


def speeds(sizing: Sizing) -> dict[str, float | None]:
    """Return how fast it is: one sequence, all of them, to the first token; None where it does not fit."""
    speed = sizing.speed
    return {
        "decode": speed.decode_tokens_per_s if speed else None,
        "aggregate": speed.aggregate_tokens_per_s if speed else None,
        "ttft": speed.ttft_ms if speed else None,
    }


def comparable(sizing: Sizing) -> dict[str, Any]:
    """Return what machines, or models, are compared by."""
    memory, speed = sizing.memory, sizing.speed
    document = memory.to_document()
    return {
        "total": document["total_gib"],
        "usable": document["usable_gib"],
        **speeds(sizing),
        "bound": str(speed.bound) if speed else None,
        "max_context": memory.max_context_tokens or None,
        "max_batch": memory.max_batch or None,
    }


def models_on(scenario: Scenario, names: Sequence[str]) -> list[dict[str, Any]]:
    """Return models on the machine of the question, the fastest first, then those that do not fit."""
    place, rows = machine(scenario), []
    for name in names:
        sized = size(workload(replace(scenario, model=name)), place)
        rows.append({"model": name, "fits": FIT_WORDS[sized.memory.fits], **comparable(sized)})
    return sorted(rows, key=lambda row: -(row["decode"] or 0.0))


def smallest_machines(sizings: Sequence[Sizing], engine: str) -> list[str | None]:
    """
    Return for each format of one workload the smallest of the common machines that holds it, None where none.

    Args:
        sizings: The workload in one format each.
        engine: As the question names it.
    """
    work = sizings[0].workload
    found = size_grid(
        [work.model],
        [find_gpu(name).gpu for name in COMMON_GPUS],
        [each.workload.quant for each in sizings],
        COUNTS,
        work.context_tokens,
        work.batch,
        kv_dtype=work.kv_dtype,
        engine=engine,
        method=work.method,
        input_tokens=work.input_tokens,
        output_tokens=work.output_tokens,
    )
    names = []
    for place in range(len(sizings)):
        held = [
            (find_gpu(gpu).gpu.memory_gb_vendor * count, count, gpu)
            for column, gpu in enumerate(found.gpus)
            for count, fits in zip(COUNTS, found.fits[0, column, place].tolist(), strict=True)
            if fits
        ]
        names.append(f"{min(held)[1]}x {min(held)[2]}" if held else None)
    return names


def notes_of_formats(sizings: Sequence[Sizing]) -> list[str]:
    """Return what is to know of each format on a machine, beyond what is to know of all, and of memory."""
    common = set(sizings[0].notes).intersection(*(each.notes for each in sizings))
    return [
        "; ".join(
            with_controls(note)
            for note in each.notes
            if note not in common and not note.startswith(("does not fit", "memory holds"))
        )
        for each in sizings
    ]


def cells_as_rows(cells: Sequence[Cell]) -> list[dict[str, str]]:
    """Return the details of a grid of cells as a table: one row each, a column for each of theirs."""
    rows: dict[str, dict[str, str]] = {}
    for cell in cells:
        rows.setdefault(cell.row, {"": cell.row})[cell.column] = cell.detail
    return list(rows.values())
