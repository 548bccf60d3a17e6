"""Sizes and speeds of one configuration or of many: memory, speed and the notes that belong to them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache
from typing import Any

import numpy as np

from planner.catalogues.gpus import Gpu
from planner.errors import InvalidScenario
from planner.measurements.corrections import Correction, case_of, corrections
from planner.memory import SEARCH_LIMIT, Weights
from planner.serving.ceiling import check_possible
from planner.serving.estimate import (
    BOUNDS,
    MemoryColumns,
    SpeedColumns,
    largest_batch,
    largest_context,
    memory_columns,
    speed_columns,
    spilled_bytes,
)
from planner.serving.heads import fewest_stages, most_gpus, refusal
from planner.serving.notes import has_rates, machine_notes, model_context, workload_notes
from planner.serving.question import Question, question_of, weights_of
from planner.serving.ranges import NO_SPAN, Span, decode_span_of, span_of
from planner.serving.speeds import Bound, Speed, SpeedSource, corrected, stated
from planner.units import GB, GIB
from planner.workload import Engine, Layout, Machine, Method, Workload

SIZE_SCHEMA = "breakeven.size/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """Memory of one replica, summed over its GPUs; bytes."""

    weights_bytes: float
    kv_cache_bytes: float
    state_bytes: float
    runtime_bytes: float
    offloaded_bytes: float  # of the weights, in host memory; not part of the total
    spilled_bytes: float  # by the simple method: what memory does not hold; still part of the total
    usable_bytes: float
    fits: bool
    max_context_tokens: int | None  # None: not even one token fits
    max_batch: int
    basis: str  # official-size or config-formula

    @property
    def total_bytes(self) -> float:
        """What has to lie in GPU memory. [B]"""
        on_gpu = self.weights_bytes - self.offloaded_bytes
        return on_gpu + self.kv_cache_bytes + self.state_bytes + self.runtime_bytes

    def to_document(self) -> Mapping[str, object]:
        """Return the `memory` part of `breakeven.size/1`."""
        total = self.total_bytes
        return {
            "weights_gib": self.weights_bytes / GIB,
            "kv_cache_gib": self.kv_cache_bytes / GIB,
            "state_gib": self.state_bytes / GIB,
            "runtime_gib": self.runtime_bytes / GIB,
            "offloaded_gib": (self.offloaded_bytes + self.spilled_bytes) / GIB,
            "total_gib": total / GIB,
            "total_gb": total / GB,
            "usable_gib": self.usable_bytes / GIB,
            "headroom_gib": (self.usable_bytes - total) / GIB,
            "utilization": total / self.usable_bytes if self.usable_bytes > 0 else None,
            "fits": self.fits,
            "max_context_tokens": self.max_context_tokens,
            "max_batch": self.max_batch,
            "basis": self.basis,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizing:
    """One configuration, sized; `speed` is None where it does not fit, or where the engine does not start."""

    workload: Workload
    machine: Machine
    memory: Memory
    speed: Speed | None
    notes: tuple[str, ...] = ()
    is_speed_given: bool = False  # its decode speed was measured or estimated elsewhere
    correction: Correction | None = None  # by own measurements, already in the speed
    refusal: str | None = None  # why the engine does not start on this machine, whatever memory it has

    def to_document(self) -> Mapping[str, object]:
        """Return the whole as `breakeven.size/1`; speeds are null where it does not fit."""
        work, model = self.workload, self.workload.model
        names = (field.name for field in fields(Speed) if field.name != "has_ranges")
        nothing: dict[str, object] = dict.fromkeys(names)
        return {
            "schema": SIZE_SCHEMA,
            "model": {
                "id": model.id,
                "name": model.name,
                "total_params": model.main_params,
                "active_params": model.active_params,
                "evidence": model.evidence,
            },
            "gpu": self.machine.gpu.name,
            "gpu_count": self.machine.gpu_count,
            "quant": work.quant.name,
            "context_tokens": work.context_tokens,
            "batch": work.batch,
            "kv_dtype": str(work.kv_dtype),
            "engine": str(work.engine),
            "method": str(work.method),
            "offload_fraction": work.offload_fraction,
            "serving": work.serving,
            "memory": self.memory.to_document(),
            "speed": nothing if self.speed is None else self.speed.to_document(),
            "notes": list(self.notes),
        }


def size(
    workload: Workload,
    machine: Machine,
    *,
    measured_decode_tokens_per_s: float | None = None,
    estimated_range: tuple[float, float] | None = None,
) -> Sizing:
    """
    Return memory and speed of one configuration.

    Args:
        workload: What is served.
        machine: On what.
        measured_decode_tokens_per_s: A measured speed of this machine; it wins over the estimate. [tokens/s]
        estimated_range: The range of that speed where it is somebody's estimate, and stays one. [tokens/s]

    Raises:
        InvalidScenario: if the measured speed is not above 0, or beyond the bandwidth of the machine.
    """
    return size_machines(
        workload,
        [machine],
        measured_decode_tokens_per_s=measured_decode_tokens_per_s,
        estimated_range=estimated_range,
    )[0]


def size_machines(
    workload: Workload,
    machines: Sequence[Machine],
    *,
    batch: Sequence[int] | None = None,
    measured_decode_tokens_per_s: float | None = None,
    estimated_range: tuple[float, float] | None = None,
) -> list[Sizing]:
    """
    Return memory and speed of one workload on many machines, computed together.

    Args:
        workload: What is served.
        machines: On what.
        batch: For each machine the sequences at once, in place of the workload's. [sequences]
        measured_decode_tokens_per_s: As in `size`, for all of them. [tokens/s]
        estimated_range: As in `size`. [tokens/s]

    Raises:
        InvalidScenario: if there are not as many batches as machines, one is below 1, or the measured speed
            is not above 0, or beyond the bandwidth of a machine.
    """
    measured = measured_decode_tokens_per_s
    if measured is not None:
        if not 0 < measured < float("inf"):
            raise InvalidScenario("decode_tokens_per_s", measured, "a speed above 0 tokens/s")
        for machine in machines:
            check_possible(measured, workload, machine, field="decode_tokens_per_s", may_draft=True)
    if not machines:
        return []
    works = _works(workload, len(machines), batch)
    held = weights_of(workload)
    question = question_of(
        workload,
        held,
        machines,
        batch=np.array([float(work.batch) for work in works]),
    )
    memory = memory_columns(question)
    with np.errstate(invalid="ignore"):  # NaN of devices whose rates are not known
        speed = speed_columns(question, memory)
    shared = workload_notes(workload, held)
    memories = _memories(question, memory, held, len(machines))
    speeds = _speeds(works, machines, speed)
    by_own = _corrections(works, machines)
    speeds = [
        fast if fast is None or change is None else corrected(work, fast, change)
        for work, fast, change in zip(works, speeds, by_own, strict=True)
    ]
    if measured is not None:
        speeds = [
            None if fast is None else stated(work, fast, measured, estimated_range)
            for work, fast in zip(works, speeds, strict=True)
        ]
    return [
        replace(
            _sizing(work, machine, part, fast, (*shared, *_own_notes(change))),
            is_speed_given=measured is not None,
            correction=change,
        )
        for work, machine, part, fast, change in zip(works, machines, memories, speeds, by_own, strict=True)
    ]


def _corrections(works: Sequence[Workload], machines: Sequence[Machine]) -> Sequence[Correction | None]:
    """Return what own measurements make of each machine."""
    if not works[0].own_results or works[0].method is not Method.CALIBRATED:
        return [None] * len(works)
    cases = [
        case_of(
            model=work.model,
            quant=work.quant.name,
            engine=work.engine,
            gpu=machine.gpu.name,
            gpu_count=machine.gpu_count,
            batch=work.batch,
            context_tokens=work.context_tokens,
            prompt_tokens=work.input_tokens,
        )
        for work, machine in zip(works, machines, strict=True)
    ]
    return corrections(works[0].own_results, cases)


def _own_notes(change: Correction | None) -> Sequence[str]:
    """Say what own measurements have changed."""
    if change is None:
        return ()
    count = f"{change.measurements} own measurement{'s' if change.measurements > 1 else ''}"
    return (
        f"corrected by {count} of this device and engine: decode x {change.decode.factor:.2f}, "
        f"prompts x {change.prompt.factor:.2f}",
    )


def _works(workload: Workload, count: int, batch: Sequence[int] | None) -> list[Workload]:
    """Return the workload of each machine."""
    if batch is None:
        return [workload] * count
    if len(batch) != count:
        raise InvalidScenario("batch", list(batch), f"one batch for each of the {count} machines")
    return [replace(workload, batch=sequences) for sequences in batch]


def _memories(question: Question, memory: MemoryColumns, held: Weights, count: int) -> list[Memory]:
    """Return the memory records of all machines."""
    contexts, batches = largest_context(question, (count,)), largest_batch(question, (count,))
    parts = [
        np.broadcast_to(np.asarray(part, dtype=np.float64), (count,)).tolist()
        for part in (
            memory.weights_bytes,
            memory.kv_cache_bytes,
            memory.state_bytes,
            memory.runtime_bytes,
            memory.offloaded_bytes,
            spilled_bytes(question, memory),
            memory.usable_bytes,
        )
    ]
    basis = "official-size" if held.is_official else "config-formula"
    most = np.inf if question.most_sequences is None else question.most_sequences
    return [
        Memory(
            weights_bytes=weight,
            kv_cache_bytes=cache,
            state_bytes=state,
            runtime_bytes=runtime,
            offloaded_bytes=offloaded,
            spilled_bytes=spilled,
            usable_bytes=usable,
            fits=fits,
            max_context_tokens=int(context) or None,
            max_batch=int(min(sequences, most)),
            basis=basis,
        )
        for weight, cache, state, runtime, offloaded, spilled, usable, fits, context, sequences in zip(
            *parts,
            np.broadcast_to(memory.fits, (count,)).tolist(),
            contexts.tolist(),
            batches.tolist(),
            strict=True,
        )
    ]


def _speeds(
    works: Sequence[Workload], machines: Sequence[Machine], speed: SpeedColumns
) -> list[Speed | None]:
    """Return the speed records of all machines; None where a device's rates are not known."""
    columns = [
        np.broadcast_to(column, (len(machines),)).tolist()
        for column in (
            speed.decode_tokens_per_s,
            speed.aggregate_tokens_per_s,
            speed.prefill_tokens_per_s,
            speed.ttft_s,
            speed.tpot_s,
            speed.bound,
        )
    ]
    speeds: list[Speed | None] = []
    for work, machine, *row in zip(works, machines, *columns, strict=True):
        if not has_rates(machine.gpu):
            speeds.append(None)
            continue
        decode, aggregate, prefill, ttft_s, tpot_s, bound = row
        is_measured = work.method is Method.CALIBRATED  # how far it may be off; nothing says so of the other
        tpot_ms = 1e3 / decode if work.batch == 1 else tpot_s * 1e3
        figures = {
            "decode": ("decode_tokens_per_s", decode),
            "aggregate": ("aggregate_tokens_per_s", aggregate),
            "prefill": ("prefill_tokens_per_s", prefill),
            "ttft": ("ttft_ms", ttft_s * 1e3),
            "tpot": ("tpot_ms", tpot_ms),
        }
        ends: dict[str, float] = {}
        for quantity, (_, value) in figures.items():
            span = _span(machine.gpu, work.engine, quantity, work.batch > 1) if is_measured else NO_SPAN
            ends[f"{quantity}_low"], ends[f"{quantity}_high"] = value * span.low, value * span.high
        values: dict[str, Any] = {**dict(figures.values()), **ends}
        speeds.append(Speed(**values, bound=Bound(BOUNDS[bound]), has_ranges=is_measured))
    return speeds


@cache
def _span(gpu: Gpu, engine: Engine, quantity: str, is_batched: bool) -> Span:
    if quantity == "decode":
        return decode_span_of(gpu, engine, 2 if is_batched else 1)
    return span_of(gpu, engine, quantity)


def _sizing(
    work: Workload, machine: Machine, memory: Memory, speed: Speed | None, shared: Sequence[str]
) -> Sizing:
    """Return the record of one machine, without a speed where nothing could run."""
    is_simple = work.method is Method.SIMPLE
    is_measured = speed is not None and speed.source is SpeedSource.MEASURED
    refused = None if is_measured else refusal(work, machine.gpu_count)
    if refused is not None:
        memory = replace(memory, fits=False)
    runs = memory.fits or is_simple or is_measured
    said = (
        _fit_notes(work, memory, is_measured) if refused is None else _refused_notes(work, machine, refused)
    )
    notes = (*shared, *machine_notes(work, machine), *said)
    return Sizing(
        workload=work,
        machine=machine,
        memory=memory,
        speed=speed if runs else None,
        notes=notes,
        refusal=refused,
    )


def _refused_notes(work: Workload, machine: Machine, refused: str) -> list[str]:
    """Say that the engine does not start so, and with how many GPUs it would."""
    count = machine.gpu_count
    fewer = most_gpus(work, count)
    stages = fewest_stages(work, count) if work.layout == Layout() else None
    other = f" or --pipeline {stages}" if stages else ""
    return [f"does not run so: {refused}, and {work.engine} refuses that; use --gpus {fewer}{other}"]


def _fit_notes(work: Workload, memory: Memory, is_measured: bool) -> list[str]:
    """Return what follows from fitting or not."""
    limit = model_context(work.model)
    if memory.fits:
        if limit and memory.max_context_tokens and memory.max_context_tokens > limit:
            held = "any context" if memory.max_context_tokens >= SEARCH_LIMIT else "a longer context"
            return [
                f"memory holds {held} than the model's {limit:,} tokens".replace(
                    "any context than", "more than"
                )
            ]
        return []
    short_gib = (memory.total_bytes - memory.usable_bytes) / GIB
    if is_measured:
        return [f"by the estimate {short_gib:.2f} GiB are missing, and a measured speed was given"]
    spill = memory.offloaded_bytes + memory.total_bytes - memory.usable_bytes
    share = spill / memory.weights_bytes
    if work.method is Method.SIMPLE:
        return [f"{min(1.0, share) * 100:.1f} % of the weights spill over the host link"]
    if share > 1:
        return [f"does not fit: {short_gib:.2f} GiB missing, more than offloading all weights would free"]
    least = np.ceil(share * 100) / 100
    return [f"does not fit: {short_gib:.2f} GiB missing; --offload {least:.2f} would make it fit"]
