"""Every model on every device in every format on several counts of GPUs, sized at once."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from planner.catalogues.gpus import Gpu
from planner.catalogues.models import Model
from planner.catalogues.quants import QuantFormat
from planner.memory import Weights, simple_active_params, simple_weights, weights
from planner.serving.devices import Devices, devices, simple_peak_flops
from planner.serving.estimate import memory_columns, speed_columns
from planner.serving.heads import attention_heads, starts
from planner.serving.question import Question
from planner.serving.reached import blocks_of
from planner.serving.shape import shape_of
from planner.speed import host_bytes_per_s
from planner.units import Numbers
from planner.workload import Engine, KvDtype, Method, engine_for

Axes = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class GridResult:
    """
    Arrays (n_models, n_gpus, n_quants, n_counts), in the order of the four names below.

    Speeds are NaN where nothing fits or a device's rates are not known.
    """

    models: tuple[str, ...]
    gpus: tuple[str, ...]
    quants: tuple[str, ...]
    gpu_counts: tuple[int, ...]
    total_bytes: Axes
    usable_bytes: Axes
    fits: NDArray[np.bool_]
    decode_tokens_per_s: Axes
    aggregate_tokens_per_s: Axes
    bound: NDArray[np.int8]  # an index into planner.serving.estimate.BOUNDS

    @property
    def configurations(self) -> int:
        """How many were sized."""
        return int(self.fits.size)


def size_grid(
    models: Sequence[Model],
    gpus: Sequence[Gpu],
    quants: Sequence[QuantFormat],
    gpu_counts: Sequence[int] = (1, 2, 4, 8),
    context_tokens: int = 8192,
    batch: int = 1,
    *,
    kv_dtype: KvDtype = KvDtype.FP16,
    engine: str = "auto",
    method: Method = Method.CALIBRATED,
    input_tokens: int = 4096,
    output_tokens: int = 512,
) -> GridResult:
    """
    Return memory and speed of all combinations, by the formulas of `planner.sizing.size`.

    Models are taken one after the other, so that what each needs stays in the processor's cache.

    Args:
        models: First axis.
        gpus: Second axis.
        quants: Third axis.
        gpu_counts: Fourth axis.
        context_tokens: Of each sequence. [tokens]
        batch: Sequences at once.
        kv_dtype: Precision of the attention cache.
        engine: Name of an engine, or `auto`: by the format.
        method: How sizes and speeds are computed.
        input_tokens: Of one request. [tokens]
        output_tokens: Of one request. [tokens]

    Source:
        docs/methodology.md, "Grid".
    """
    size = (len(models), len(gpus), len(quants), len(gpu_counts))
    result = GridResult(
        models=tuple(model.id for model in models),
        gpus=tuple(gpu.name for gpu in gpus),
        quants=tuple(quant.name for quant in quants),
        gpu_counts=tuple(gpu_counts),
        total_bytes=np.empty(size),
        usable_bytes=np.empty(size),
        fits=np.empty(size, dtype=np.bool_),
        decode_tokens_per_s=np.empty(size),
        aggregate_tokens_per_s=np.empty(size),
        bound=np.empty(size, dtype=np.int8),
    )
    counts = np.array(gpu_counts, dtype=np.float64)[None, None, :]
    for chosen, places in _by_engine(quants, engine):
        formats = [quants[place] for place in places]
        columns = devices(gpus, chosen).reshaped(lambda column: column[:, None, None])
        peaks = _peaks(columns, formats, method)
        precisions = np.concatenate([columns.precision(quant.compute_dtype) for quant in formats], axis=1)
        blocks = np.array([blocks_of(quant) for quant in formats])[None, :, None]
        for row, model in enumerate(models):
            question = Question(
                shape=shape_of(model),
                weights=_stacked(model, formats, method),
                simple_active_params=simple_active_params(model),
                engine=chosen,
                method=method,
                kv_dtype=kv_dtype,
                context_tokens=float(context_tokens),
                batch=float(batch),
                input_tokens=float(input_tokens),
                output_tokens=float(output_tokens),
                offload_fraction=0.0,
                host_bytes_per_s=host_bytes_per_s(None, chosen, method),
                columns=columns,
                peak_flops=peaks,
                precision=precisions,
                blocks=blocks,
                gpu_count=counts,
            )
            does_start = starts(attention_heads(model), counts, chosen, method)
            _fill(result, row, places, question, does_start)
    return result


def _fill(
    result: GridResult, row: int, places: list[int], question: Question, does_start: NDArray[np.bool_]
) -> None:
    """Size one model in the formats of one engine."""
    with np.errstate(invalid="ignore"):  # NaN of devices whose rates are not known
        memory = memory_columns(question)
        speed = speed_columns(question, memory)
    fits = memory.fits & does_start
    runs = fits | (question.method is Method.SIMPLE)
    result.total_bytes[row][:, places] = memory.total_bytes
    result.usable_bytes[row][:, places] = memory.usable_bytes
    result.fits[row][:, places] = fits
    result.decode_tokens_per_s[row][:, places] = np.where(runs, speed.decode_tokens_per_s, np.nan)
    result.aggregate_tokens_per_s[row][:, places] = np.where(runs, speed.aggregate_tokens_per_s, np.nan)
    result.bound[row][:, places] = speed.bound


def _by_engine(quants: Sequence[QuantFormat], engine: str) -> Iterator[tuple[Engine, list[int]]]:
    """Return for each engine the places of the formats that it serves."""
    places: dict[Engine, list[int]] = {}
    for place, quant in enumerate(quants):
        places.setdefault(engine_for(engine, quant), []).append(place)
    yield from places.items()


def _peaks(columns: Devices, quants: Sequence[QuantFormat], method: Method) -> Axes:
    """Return the peak of each device in the precision of each format, (n_gpus, n_quants, 1). [FLOP/s]"""
    if method is Method.SIMPLE:
        return simple_peak_flops(columns)
    return np.concatenate([columns.peak_flops(quant.compute_dtype) for quant in quants], axis=1)


def _stacked(model: Model, quants: Sequence[QuantFormat], method: Method) -> Weights:
    """Return the weights in all formats, (1, n_quants, 1)."""
    by_method = simple_weights if method is Method.SIMPLE else weights
    each = [by_method(model, quant) for quant in quants]

    def column(values: list[Numbers]) -> Axes:
        return np.array(values, dtype=np.float64)[None, :, None]

    return Weights(
        total_bytes=column([one.total_bytes for one in each]),
        dense_read_bytes=column([one.dense_read_bytes for one in each]),
        routed_bytes=column([one.routed_bytes for one in each]),
        formula_bytes=column([one.formula_bytes for one in each]),
    )
