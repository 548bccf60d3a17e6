"""The published measurements nearest to a configuration, how far they are from it, and what they measured."""

import re
from bisect import insort
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from math import inf, log

from planner.catalogues.gpus import Gpu, all_gpus
from planner.catalogues.models import Model, all_models
from planner.catalogues.quants import QuantFormat, find_quant
from planner.catalogues.results import Result, all_results
from planner.measurements.corrections import shape_key
from planner.measurements.replay import predictions, trials
from planner.memory import weights
from planner.serving.constants import family_of, is_tensor_parallel
from planner.serving.devices import compute_flops
from planner.serving.shape import shape_of
from planner.serving.work import weights_read_bytes
from planner.workload import Engine, Machine, Workload

EVIDENCE_SCHEMA = "breakeven.evidence/1"
# How many results stand beside an estimate.
NEAREST = 5

# The distance of two configurations is a sum: |ln| of the ratios of what a speed depends on, times a weight,
# and a step for what no ratio describes. 0.1 is about what 10 % more bytes for each token make.
MODEL_STEP = 0.2  # another model
EXPERTS_STEP = 0.5  # experts against none
FORMAT_STEP = 0.05  # other blocks of about the same size
GPU_STEP = 0.2  # another device
FAMILY_STEP = 0.3  # of another family
ENGINE_STEP = 0.1  # another engine of the same kind
ENGINE_KIND_STEP = 0.6  # layers split against tensor parallelism
OFFLOAD_STEP = 1.0  # weights in host memory against none
COUNT_WEIGHT = 0.5
BATCH_WEIGHT = 0.4
CONTEXT_WEIGHT = 0.15
# A context is no ratio where it is short: 1,024 tokens more are added to both.
CONTEXT_FLOOR_TOKENS = 1024.0
# The same configuration may be this far apart in its lengths.
SAME_LENGTH_RATIO = 1.25

# Farther away a measurement says little of the configuration: e^1 = 2.7 times the bytes, or another model,
# device and engine together. Source: own choice, from the steps above.
NEAR_DISTANCE = 1.0

# Names of the figures in `breakeven.size/1`, by the metric of a result.
FIGURES = {
    "decode_tps": "decode_tokens_per_s",
    "prefill_tps": "prefill_tokens_per_s",
    "agg_output_tps": "aggregate_tokens_per_s",
    "agg_total_tps": "aggregate_tokens_per_s",
    "e2e_output_tps": "aggregate_tokens_per_s",
    "ttft_ms": "ttft_ms",
    "tpot_ms": "tpot_ms",
}
_OF_ONE_FIGURE = re.compile(r"(^|; )(mean|median|column)\b[^;]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One measured configuration, with all figures that its source gives of it."""

    results: tuple[Result, ...]
    workload: Workload
    machine: Machine

    @property
    def first(self) -> Result:
        """What all its results have in common, and one of its figures."""
        return self.results[0]

    @property
    def measured(self) -> Mapping[str, float]:
        """The figures by their names in `breakeven.size/1`."""
        return {FIGURES[result.metric]: figure_of(result) for result in self.results}


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbour:
    """A measured configuration and how far it is from the one asked for."""

    run: Run
    distance: float  # 0: the very configuration
    differences: tuple[str, ...]  # in words, what makes up the distance

    @property
    def is_same(self) -> bool:
        """Whether the very configuration was measured; its lengths may differ by a quarter."""
        return not self.differences


def figure_of(result: Result) -> float:
    """Return a result in the unit of its figure: output tokens where a source counts prompts too."""
    if result.metric != "agg_total_tps":
        return result.value
    given, written = result.input_tokens or 0.0, result.output_tokens or 0.0
    return result.value * written / (given + written)


@cache
def all_runs() -> tuple[Run, ...]:
    """Return every published configuration of speed whose model, format and device the catalogues know."""
    return runs_of(all_results())


def runs_of(results: Iterable[Result]) -> tuple[Run, ...]:
    """Return measured configurations of speed, each with all its figures."""
    grouped: dict[tuple[object, ...], list[Result]] = {}
    for result in results:
        if result.kind != "memory" and result.model and result.quant and result.gpu:
            grouped.setdefault(_run_key(result), []).append(result)
    return tuple(
        Run(results=tuple(results), workload=_workload(results[0]), machine=_machine(results[0]))
        for results in grouped.values()
    )


def nearest(workload: Workload, machine: Machine, limit: int = NEAREST) -> tuple[Neighbour, ...]:
    """
    Return the measured configurations nearest to one, nearest first; own ones go before published ones.

    Args:
        workload: What is asked for.
        machine: On what.
        limit: How many at most.

    Source:
        docs/methodology.md, "Evidence".
    """
    found: list[Neighbour] = []
    for run in (*runs_of(workload.own_results), *all_runs()):
        farthest = found[-1].distance if len(found) == limit else inf
        near = _compared(workload, machine, run, farthest)
        if near is not None:
            insort(found, near, key=lambda one: one.distance)
            del found[limit:]
    return tuple(found)


def of_model(model: Model, gpu: Gpu | None = None, own: Sequence[Result] = ()) -> tuple[Run, ...]:
    """
    Return what was measured of a model, or of one of the same shape.

    Args:
        model: The model.
        gpu: Only on this device.
        own: The user's own measurements, which come first.
    """
    shape = shape_key(model)
    return tuple(
        run
        for run in (*runs_of(own), *all_runs())
        if shape_key(run.workload.model) == shape and (gpu is None or run.machine.gpu == gpu)
    )


def estimate_of(run: Run) -> Mapping[str, float]:
    """Return the estimates of what a run measured, under its own conditions: old engines and the like."""
    estimates = predictions(trials(run.results, run.workload.engine)).tolist()
    figures = (
        replace(result, value=estimate) for result, estimate in zip(run.results, estimates, strict=True)
    )
    return {FIGURES[result.metric]: figure_of(result) for result in figures}


def to_document(near: Neighbour) -> Mapping[str, object]:
    """Return one neighbour as part of `breakeven.evidence/1` and `breakeven.size/1`."""
    return {
        "distance": near.distance,
        "is_same": near.is_same,
        "differences": list(near.differences),
        **run_document(near.run),
    }


def run_document(run: Run) -> Mapping[str, object]:
    """Return what was measured, and what the estimate says of the same configuration."""
    first, work = run.first, run.workload
    return {
        "model": work.model.id,
        "model_published": first.model_name,
        "quant": work.quant.name,
        "quant_published": first.quant_name,
        "kv_dtype": first.kv_dtype or None,
        "engine": str(work.engine),
        "engine_published": " ".join(part for part in (first.engine_name, first.engine_version) if part),
        "gpu": run.machine.gpu.name,
        "gpu_count": run.machine.gpu_count,
        "batch": first.concurrency,
        "context_tokens": work.context_tokens,
        "input_tokens": first.input_tokens,
        "output_tokens": first.output_tokens,
        "held_tokens": first.context_tokens,
        "measured": dict(run.measured),
        "estimated": dict(estimate_of(run)),
        "date": first.date or None,
        "source": first.source,
        "source_ref": first.source_ref,
        "row_ids": [result.row_id for result in run.results],
        "notes": first.notes,
    }


def _run_key(result: Result) -> tuple[object, ...]:
    return (
        result.source,
        result.source_ref,
        result.model_name,
        result.quant_name,
        result.kv_dtype,
        result.engine_name,
        result.engine_version,
        result.gpu_name,
        result.gpu_count,
        result.tp,
        result.pp,
        result.ep,
        result.concurrency,
        result.input_tokens,
        result.output_tokens,
        result.context_tokens,
        _OF_ONE_FIGURE.sub("", result.notes),
        # a benchmark that repeats a figure is another run
        result.value if result.kind == "single_stream" else None,
    )


def _workload(result: Result) -> Workload:
    """Return what a result measured; a stream has written half of its answer on average."""
    given, written = result.input_tokens or 0.0, result.output_tokens or 0.0
    answer = written / 2 if result.kind == "single_stream" else written
    context = (result.context_tokens or 0.0) + given + answer
    return Workload(
        model=all_models()[result.model],
        quant=find_quant(result.quant),
        engine=Engine(result.engine),
        context_tokens=max(1, round(context)),
        batch=result.concurrency or 1,
        input_tokens=max(1, round(given)),
        output_tokens=max(1, round(written)),
    )


def _machine(result: Result) -> Machine:
    return Machine(gpu=all_gpus()[result.gpu], gpu_count=result.gpu_count or 1)


def _compared(workload: Workload, machine: Machine, run: Run, farthest: float) -> Neighbour | None:
    """Return how far a run is from what is asked for, or None where it is as far as the farthest wanted."""
    distance, differences = 0.0, []
    for step, words in _differences(workload, machine, run):
        distance += step
        if distance >= farthest:
            return None
        if words:
            differences.append(words)
    return Neighbour(run=run, distance=distance, differences=tuple(differences))


def _differences(workload: Workload, machine: Machine, run: Run) -> Iterable[tuple[float, str | None]]:
    """Return the parts of a distance, with words where they make another configuration of it."""
    yield from _of_machine(machine, run)
    yield from _of_engine(workload.engine, run)
    yield from _of_weights(workload, run)
    first, other = run.first, run.workload
    if bool(first.offload) is not (workload.offload_fraction > 0):
        where = "part of the weights in host memory" if first.offload else "all weights on the GPUs"
        yield OFFLOAD_STEP, where
    batch = first.concurrency
    if batch is None:
        yield BATCH_WEIGHT * abs(log(max(64, workload.batch) / workload.batch)), "all requests queued at once"
    elif batch != workload.batch:
        words = f"batch {batch:,} instead of {workload.batch:,}"
        yield BATCH_WEIGHT * abs(log(batch / workload.batch)), words
    yield _of_length("context", workload.context_tokens, other.context_tokens)
    if first.kind != "single_stream":
        yield _of_length("prompt", workload.input_tokens, other.input_tokens)
        yield _of_length("answer", workload.output_tokens, other.output_tokens)


def _of_length(name: str, asked: int, measured: int) -> tuple[float, str | None]:
    ratio = (measured + CONTEXT_FLOOR_TOKENS) / (asked + CONTEXT_FLOOR_TOKENS)
    exact = max(asked, measured) / min(asked, measured)
    words = f"{name} {measured:,} instead of {asked:,} tokens" if exact > SAME_LENGTH_RATIO else None
    return CONTEXT_WEIGHT * abs(log(ratio)), words


def _of_weights(workload: Workload, run: Run) -> Iterable[tuple[float, str | None]]:
    """Return the distance of what is read for each step, by model and format."""
    other, first = run.workload, run.first
    asked_bytes, read_bytes = (
        _read_bytes(model, quant, workload.batch)
        for model, quant in ((workload.model, workload.quant), (other.model, other.quant))
    )
    if first.weights_bytes:
        read_bytes *= first.weights_bytes / _total_bytes(other.model, other.quant)
    yield abs(log(read_bytes / asked_bytes)), None
    if other.model != workload.model and shape_key(other.model) != shape_key(workload.model):
        mixed = shape_of(other.model).is_moe is not shape_of(workload.model).is_moe
        yield MODEL_STEP + EXPERTS_STEP * mixed, f"model {other.model.name}"
    if other.quant != workload.quant or first.is_nearest_quant:
        yield FORMAT_STEP, f"{first.quant_name} instead of {workload.quant.name}"


def _of_machine(machine: Machine, run: Run) -> Iterable[tuple[float, str | None]]:
    gpu, other = machine.gpu, run.machine.gpu
    if other != gpu:
        step = GPU_STEP + FAMILY_STEP * (family_of(other) is not family_of(gpu))
        yield step, f"{other.name} instead of {gpu.name}"
        yield _log_ratio(other.bandwidth_gb_per_s, gpu.bandwidth_gb_per_s), None
        yield _log_ratio(compute_flops(other), compute_flops(gpu)) / 2, None
    count = run.machine.gpu_count
    if count != machine.gpu_count:
        words = f"{count} instead of {machine.gpu_count} GPUs"
        yield COUNT_WEIGHT * abs(log(count / machine.gpu_count)), words


def _of_engine(engine: Engine, run: Run) -> Iterable[tuple[float, str | None]]:
    other = run.workload.engine
    if other is not engine:
        same_kind = is_tensor_parallel(other) is is_tensor_parallel(engine)
        yield ENGINE_STEP if same_kind else ENGINE_KIND_STEP, f"{run.first.engine_name} instead of {engine}"
    elif run.first.engine_name.casefold() != engine.value:
        yield ENGINE_STEP, f"{run.first.engine_name} instead of {engine}"


def _log_ratio(one: float | None, two: float | None) -> float:
    return abs(log(one / two)) if one and two else inf


@cache
def _read_bytes(model: Model, quant: QuantFormat, batch: int) -> float:
    return float(weights_read_bytes(shape_of(model), weights(model, quant), float(batch)))


@cache
def _total_bytes(model: Model, quant: QuantFormat) -> float:
    return float(weights(model, quant).total_bytes) - shape_of(model).tower_params * 2.0
