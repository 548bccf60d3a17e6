"""How far a measured configuration is from one that is asked for, and in what they differ."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from math import inf, log

from planner.catalogues.models import Model
from planner.catalogues.quants import QuantFormat
from planner.measurements.corrections import shape_key
from planner.measurements.runs import Run
from planner.measurements.settings import settings_parts
from planner.memory import weights
from planner.serving.constants import family_of, is_tensor_parallel
from planner.serving.devices import compute_flops
from planner.serving.shape import shape_of
from planner.serving.work import weights_read_bytes
from planner.workload import Engine, Machine, Workload

# The distance of two configurations is a sum: |ln| of the ratios of what a speed depends on, times a weight,
# and a step for what no ratio describes. 0.1 is about what 10 % more bytes for each token make.
MODEL_STEP = 0.2  # another model
EXPERTS_STEP = 0.5  # experts against none
FORMAT_STEP = 0.05  # other blocks of about the same size
GPU_STEP = 0.2  # another device
FAMILY_STEP = 0.3  # of another family
ENGINE_STEP = 0.1  # another engine of the same kind
ENGINE_KIND_STEP = 0.6  # layers split against tensor parallelism
COUNT_WEIGHT = 0.5
BATCH_WEIGHT = 0.4
CONTEXT_WEIGHT = 0.15
# A context is no ratio where it is short: 1,024 tokens more are added to both.
CONTEXT_FLOOR_TOKENS = 1024.0
# The same configuration may be this far apart in its lengths.
SAME_LENGTH_RATIO = 1.25


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


def compared(workload: Workload, machine: Machine, run: Run, farthest: float) -> Neighbour | None:
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
    yield from settings_parts(workload, machine, run)
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
