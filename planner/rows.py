"""Memory and speed of many unlike configurations: columns in, columns out, one calculation for each group."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from planner.devices import Column, Devices, devices, simple_peak_flops
from planner.estimate import Question, memory_columns, speed_columns
from planner.gpus import Gpu, all_gpus
from planner.notes import has_rates
from planner.sizing import question_of, weights_of
from planner.units import GIB
from planner.workload import Engine, Machine, Method, Workload

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
    """Configurations of one workload that differ in machine and requests; columns of equal length."""

    workload: Workload  # model, format, engine, precision of the cache, method
    gpus: Sequence[Gpu]
    gpu_count: Column
    context_tokens: Column
    batch: Column
    input_tokens: Column
    output_tokens: Column
    offload_fraction: Column


def size_rows(rows: Rows) -> Mapping[str, Column]:
    """
    Return memory and speed of every row, by the names of MEMORY_COLUMNS and SPEED_COLUMNS.

    `fits` is 1 or 0. A speed is NaN where nothing could run, or where the device's rates are not known.
    """
    count = len(rows.gpus)
    question = _question(rows)
    memory = memory_columns(question)
    with np.errstate(invalid="ignore", divide="ignore"):  # NaN of devices whose rates are not known
        speed = speed_columns(question, memory)
    runs = np.broadcast_to(memory.fits, (count,)) | (rows.workload.method is Method.SIMPLE)
    runs = runs & np.array([has_rates(gpu) for gpu in rows.gpus])
    decode = speed.decode_tokens_per_s
    speeds = {
        "decode_tokens_per_s": decode,
        "aggregate_tokens_per_s": speed.aggregate_tokens_per_s,
        "prefill_tokens_per_s": speed.prefill_tokens_per_s,
        "ttft_ms": speed.ttft_s * 1e3,
        "tpot_ms": np.where(rows.batch == 1.0, 1e3 / decode, speed.tpot_s * 1e3),
    }
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
        "fits": np.broadcast_to(memory.fits, (count,)).astype(np.float64),
        **{name: np.where(runs, column, np.nan) for name, column in speeds.items()},
    }


def _question(rows: Rows) -> Question:
    work = rows.workload
    one = question_of(work, weights_of(work), [Machine(gpu=rows.gpus[0])], batch=np.ones(1))
    index = np.array([_positions()[gpu.name] for gpu in rows.gpus])
    columns = _all_devices(work.engine).reshaped(lambda column: column[index])
    simple = work.method is Method.SIMPLE
    return replace(
        one,
        columns=columns,
        peak_flops=simple_peak_flops(columns) if simple else columns.peak_flops(work.quant.compute_dtype),
        precision=columns.precision(work.quant.compute_dtype),
        gpu_count=rows.gpu_count,
        context_tokens=rows.context_tokens,
        batch=rows.batch,
        input_tokens=rows.input_tokens,
        output_tokens=rows.output_tokens,
        offload_fraction=rows.offload_fraction,
    )


@cache
def _all_devices(engine: Engine) -> Devices:
    return devices(list(all_gpus().values()), engine)


@cache
def _positions() -> Mapping[str, int]:
    return {name: position for position, name in enumerate(all_gpus())}
