"""Memory and speed of many unlike configurations: columns in, columns out, all in one calculation."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from planner.catalogues.gpus import Gpu, all_gpus
from planner.catalogues.models import Model
from planner.catalogues.quants import QuantFormat
from planner.catalogues.results import Result
from planner.measurements.corrections import case_of, corrections
from planner.memory import Weights, simple_active_params, simple_weights, weights
from planner.serving.devices import Column, Devices, devices, simple_peak_flops
from planner.serving.estimate import memory_columns, speed_columns
from planner.serving.heads import attention_heads, starts
from planner.serving.notes import has_rates
from planner.serving.question import Question, offloads_experts_first
from planner.serving.reached import PRECISIONS, blocks_of
from planner.serving.shape import shape_of, stacked
from planner.speed import host_bytes_per_s
from planner.units import GIB
from planner.workload import Engine, KvDtype, Method

Record = TypeVar("Record")

MEMORY_COLUMNS = (
    "weights_gib",
    "kv_cache_gib",
    "state_gib",
    "runtime_gib",
    "total_gib",
    "usable_gib",
    "fits",
)
SPEED_COLUMNS = (
    "decode_tokens_per_s",
    "aggregate_tokens_per_s",
    "prefill_tokens_per_s",
    "ttft_ms",
    "tpot_ms",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """Configurations of one engine and one method; columns of equal length."""

    engine: Engine
    method: Method
    models: Sequence[Model]
    quants: Sequence[QuantFormat]
    kv_dtypes: Sequence[KvDtype]
    gpus: Sequence[Gpu]
    gpu_count: Column
    context_tokens: Column
    batch: Column
    input_tokens: Column
    output_tokens: Column
    offload_fraction: Column
    own_results: tuple[Result, ...] = ()  # the user's measurements, which correct the estimates


def size_rows(rows: Rows) -> Mapping[str, Column]:
    """
    Return memory and speed of every row, by the names of MEMORY_COLUMNS and SPEED_COLUMNS.

    `fits` is 1 or 0: 0 also where the engine does not start. A speed is NaN where nothing could run, or where
    the device's rates are not known.
    """
    count = len(rows.gpus)
    question = _question(rows)
    memory = memory_columns(question)
    with np.errstate(invalid="ignore", divide="ignore"):  # NaN of devices whose rates are not known
        speed = speed_columns(question, memory)
    models, places = _numbered(rows.models)
    heads = np.array([attention_heads(model) for model in models])[places]
    fits = np.broadcast_to(memory.fits, (count,)) & starts(heads, rows.gpu_count, rows.engine, rows.method)
    runs = fits | (rows.method is Method.SIMPLE)
    runs = runs & _has_rates()[_device_index(rows.gpus)]
    decode = speed.decode_tokens_per_s
    speeds: Mapping[str, Column] = {
        "decode_tokens_per_s": decode,
        "aggregate_tokens_per_s": speed.aggregate_tokens_per_s,
        "prefill_tokens_per_s": speed.prefill_tokens_per_s,
        "ttft_ms": speed.ttft_s * 1e3,
        "tpot_ms": np.where(rows.batch == 1.0, 1e3 / decode, speed.tpot_s * 1e3),
    }
    if rows.own_results and rows.method is Method.CALIBRATED:
        speeds = _corrected(rows, speeds)
    sizes = {
        "weights_gib": memory.weights_bytes,
        "kv_cache_gib": memory.kv_cache_bytes,
        "state_gib": memory.state_bytes,
        "runtime_gib": memory.runtime_bytes,
        "total_gib": memory.total_bytes,
        "usable_gib": memory.usable_bytes,
    }
    return {
        **{name: np.broadcast_to(np.asarray(size) / GIB, (count,)) for name, size in sizes.items()},
        "fits": fits.astype(np.float64),
        **{name: np.where(runs, column, np.nan) for name, column in speeds.items()},
    }


def _corrected(rows: Rows, speeds: Mapping[str, Column]) -> Mapping[str, Column]:
    """Return speeds after own measurements, as planner.serving.speeds corrects those of one machine."""
    measured = {(result.gpu, result.engine) for result in rows.own_results}
    places = [place for place, gpu in enumerate(rows.gpus) if (gpu.name, rows.engine) in measured]
    cases = [
        case_of(
            model=rows.models[place],
            quant=rows.quants[place].name,
            engine=rows.engine,
            gpu=rows.gpus[place].name,
            gpu_count=int(rows.gpu_count[place]),
            batch=int(rows.batch[place]),
            context_tokens=float(rows.context_tokens[place]),
            prompt_tokens=float(rows.input_tokens[place]),
        )
        for place in places
    ]
    decode, prompt = np.ones(len(rows.gpus)), np.ones(len(rows.gpus))
    for place, change in zip(places, corrections(rows.own_results, cases), strict=True):
        if change is not None:
            decode[place], prompt[place] = change.decode.factor, change.prompt.factor
    ttft, tpot = speeds["ttft_ms"], speeds["tpot_ms"]
    further = rows.output_tokens - 1.0
    faster = (ttft + further * tpot) / (ttft / prompt + further * tpot / decode)
    return {
        "decode_tokens_per_s": speeds["decode_tokens_per_s"] * decode,
        "aggregate_tokens_per_s": speeds["aggregate_tokens_per_s"] * faster,
        "prefill_tokens_per_s": speeds["prefill_tokens_per_s"] * prompt,
        "ttft_ms": ttft / prompt,
        "tpot_ms": tpot / decode,
    }


def _question(rows: Rows) -> Question:
    """Return all rows as one question."""
    simple = rows.method is Method.SIMPLE
    # Two files may hold models of one name: what counts is the record, of which there is one each.
    models, model_index = _numbered(rows.models)
    quants, quant_index = _numbered(rows.quants)
    device_index = _device_index(rows.gpus)
    columns = _all_devices(rows.engine).reshaped(lambda column: column[device_index])
    precision = np.array([PRECISIONS.index(quant.compute_dtype) for quant in quants])[quant_index]
    peaks = np.choose(precision, [columns.peak_flops(name) for name in PRECISIONS])
    computed = np.choose(precision, [columns.precision(name) for name in PRECISIONS])
    return Question(
        shape=stacked([shape_of(model) for model in models], model_index),
        weights=_weights(models, quants, model_index, quant_index, rows.method),
        simple_active_params=np.array([simple_active_params(model) for model in models])[model_index],
        engine=rows.engine,
        method=rows.method,
        kv_dtype=rows.kv_dtypes,
        context_tokens=rows.context_tokens,
        batch=rows.batch,
        input_tokens=rows.input_tokens,
        output_tokens=rows.output_tokens,
        offload_fraction=rows.offload_fraction,
        offloads_experts_first=offloads_experts_first(rows.engine, rows.method),
        host_bytes_per_s=host_bytes_per_s(None, rows.engine, rows.method),
        columns=columns,
        peak_flops=simple_peak_flops(columns) if simple else peaks,
        precision=computed,
        blocks=np.array([blocks_of(quant) for quant in quants])[quant_index],
        gpu_count=rows.gpu_count,
    )


def _weights(
    models: Sequence[Model],
    quants: Sequence[QuantFormat],
    model_index: NDArray[np.int64],
    quant_index: NDArray[np.int64],
    method: Method,
) -> Weights:
    """Return the weights of all rows; each pair of model and format is counted once."""
    by_method = simple_weights if method is Method.SIMPLE else weights
    pairs, places = np.unique(model_index * len(quants) + quant_index, return_inverse=True)
    held = [by_method(models[pair // len(quants)], quants[pair % len(quants)]) for pair in pairs.tolist()]

    def column(name: str) -> Column:
        each: Column = np.array([float(getattr(one, name)) for one in held])[places]
        return each

    return Weights(
        total_bytes=column("total_bytes"),
        dense_read_bytes=column("dense_read_bytes"),
        routed_bytes=column("routed_bytes"),
        formula_bytes=column("formula_bytes"),
    )


def _numbered(records: Sequence[Record]) -> tuple[Sequence[Record], NDArray[np.int64]]:
    """Return the records that differ, and for each row the place of its own."""
    names = [id(record) for record in records]
    different = dict(zip(names, records, strict=True))
    places = {one: place for place, one in enumerate(different)}
    return list(different.values()), np.array([places[one] for one in names])


def _device_index(gpus: Sequence[Gpu]) -> NDArray[np.int64]:
    positions = _positions()
    return np.array([positions[gpu.name] for gpu in gpus])


@cache
def _all_devices(engine: Engine) -> Devices:
    return devices(list(all_gpus().values()), engine)


@cache
def _has_rates() -> NDArray[np.bool_]:
    return np.array([has_rates(gpu) for gpu in all_gpus().values()])


@cache
def _positions() -> Mapping[str, int]:
    return {name: position for position, name in enumerate(all_gpus())}
