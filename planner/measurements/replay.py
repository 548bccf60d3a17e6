"""Published measurements as configurations of the formulas: the estimate of each, as it was measured."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from planner.catalogues.gpus import all_gpus
from planner.catalogues.models import Model, all_models
from planner.catalogues.quants import QuantFormat, find_quant
from planner.catalogues.results import Result
from planner.memory import Weights, weights
from planner.serving.devices import Column
from planner.serving.estimate import hardware_of, largest_batch, offload_of, place_of, work_columns
from planner.serving.question import Parallel, Question, question_of
from planner.serving.reached import Conditions, Parameters, Place, fitted, reached
from planner.serving.shape import shape_of
from planner.serving.work import Work
from planner.speed import (
    Hardware,
    Offload,
    decode_step,
    prompt_among_others_s,
    prompt_step,
    steady_state,
)
from planner.workload import Engine, KvDtype, Layout, Machine, Workload

Record = TypeVar("Record")

METRICS = (
    "decode_tps",
    "prefill_tps",
    "agg_output_tps",
    "agg_total_tps",
    "e2e_output_tps",
    "ttft_ms",
    "tpot_ms",
)
# Those of them that are times: the longer, the slower.
TIMES = ("tpot_ms", "ttft_ms")
# Sequences that an engine takes up at most where all requests are queued at once: max_batch_size of
# TensorRT-LLM.
MOST_SEQUENCES = 2048
# A sequence holds its prompt and, on average over those in flight, this part of its answer.
WRITTEN_SHARE = 0.6
# The publisher's checkpoints for TensorRT-LLM in these formats ask for a cache of 8 bits.
_EIGHT_BIT_CACHES = ("FP8", "NVFP4", "MXFP4")
_POLLED = re.compile(r"polled every (\d+) steps")


@dataclass(frozen=True, slots=True, kw_only=True)
class Trials:
    """Measurements of one kind of engine, side by side; every array has one entry for each."""

    engine: Engine  # of their kind
    results: tuple[Result, ...]
    metric: NDArray[np.int64]  # into METRICS
    measured: Column
    work: Work
    hardware: Hardware
    place: Place
    offload: Offload
    batch: Column
    asking: Column  # requests in flight and those that memory does not hold
    chunk_tokens: Column  # NaN: the engine's own
    tail: Column  # batches over requests, of runs with random lengths

    @property
    def is_time(self) -> NDArray[np.bool_]:
        """Which of them are times; the others are speeds."""
        return np.isin(self.metric, [METRICS.index(name) for name in TIMES])

    def chosen(self, which: NDArray[np.bool_]) -> "Trials":
        """Return some of them."""
        index = np.flatnonzero(which)
        return Trials(
            engine=self.engine,
            results=tuple(self.results[place] for place in index),
            **{
                field.name: _taken(getattr(self, field.name), index)
                for field in fields(self)
                if field.name not in ("engine", "results")
            },
        )


def trials(results: Sequence[Result], engine: Engine) -> Trials:
    """
    Return the measurements of speed of one kind of engine whose model and device the catalogues know.

    Where a source does not state the format, that in which the model is published is taken.
    """
    is_llama = engine is Engine.LLAMA_CPP
    kept = [
        result
        for result in results
        if result.metric in METRICS
        and result.model
        and result.gpu
        and (result.engine == Engine.LLAMA_CPP) is is_llama
    ]
    questions = [_question(result) for result in kept]
    return Trials(
        engine=engine,
        results=tuple(kept),
        metric=np.array([METRICS.index(result.metric) for result in kept]),
        measured=np.array([result.value for result in kept]),
        work=_stacked([_work(result, ask) for result, ask in zip(kept, questions, strict=True)]),
        hardware=_stacked([hardware_of(ask) for ask in questions]),
        place=_stacked([place_of(ask) for ask in questions]),
        offload=_stacked([offload_of(ask) for ask in questions]),
        batch=np.array([float(np.ravel(ask.batch)[0]) for ask in questions]),
        asking=np.array([float(result.concurrency or 0) for result in kept]),
        chunk_tokens=np.array([float(result.ubatch or np.nan) for result in kept]),
        tail=np.array([_tail(result) for result in kept]),
    )


def predictions(these: Trials, parameters: Parameters | None = None) -> Column:
    """Return what the formulas say of each measurement, in its own unit."""
    known = reached(these.engine, these.place, parameters)
    work, hardware, offload = these.work, these.hardware, these.offload
    own = np.full(len(these.results), known.prompt_chunk_tokens)
    chunk = np.where(np.isnan(these.chunk_tokens), own, these.chunk_tokens)
    decode_s = decode_step(work, hardware, known, batch=these.batch, offload=offload).total_s
    prompt_s = prompt_step(work, hardware, known, offload=offload, chunk_tokens=chunk).total_s
    steady = steady_state(
        decode_s=decode_s,
        prompt_s=prompt_s,
        other_prompt_s=prompt_among_others_s(work, hardware, known, batch=these.batch, offload=offload),
        batch=these.batch,
        output_tokens=work.output_tokens,
        reached=known,
        asking=these.asking,
    )
    written, given = work.output_tokens, work.prompt_tokens
    aggregate = steady.aggregate_tokens_per_s / (1.0 + _tail_cost(parameters) * these.tail)
    by_metric = (
        1.0 / decode_s,
        given / prompt_s,
        aggregate,
        aggregate * (given + written) / written,
        written / (prompt_s + written * decode_s),
        steady.ttft_s * 1e3,
        steady.tpot_s * 1e3,
    )
    chosen: Column = np.choose(these.metric, [np.asarray(figures) for figures in by_metric])
    return chosen


def _tail_cost(parameters: Parameters | None) -> float:
    """Return how much of one more batch the end of a run takes, when fewer requests are in flight."""
    return (fitted() if parameters is None else parameters)["run.tail"]


def _tail(result: Result) -> float:
    """Return batches over requests where their lengths are random; else all end together."""
    if not result.notes.startswith("bench_serving") or not result.requests or (result.concurrency or 1) < 2:
        return 0.0
    return (result.concurrency or 1) / result.requests


def _question(result: Result) -> Question:
    """Return one measurement as a question, its batch no larger than memory allows."""
    model, quant = all_models()[result.model], format_of(result)
    given, written, held = (
        value or 0.0 for value in (result.input_tokens, result.output_tokens, result.context_tokens)
    )
    work = Workload(
        model=model, quant=quant, engine=Engine(result.engine), kv_dtype=cache_dtype(result, quant)
    )
    held_weights = _weights(result, model, quant)
    machine = Machine(gpu=all_gpus()[result.gpu], gpu_count=result.gpu_count or 1)
    base = question_of(work, held_weights, [machine], batch=np.ones(1))
    ask = replace(
        base,
        context_tokens=max(1.0, held + given + written / 2),
        input_tokens=max(1.0, held + given),
        output_tokens=max(1.0, written),
        parallel=_parallel(result),
        conditions=_conditions(result),
        offload_fraction=offload_fraction(result, model, quant),
        offloads_experts_first=result.offload == "experts",
        host_bytes_per_s=(result.host_gb_per_s * 1e9 if result.host_gb_per_s else base.host_bytes_per_s),
    )
    if result.kind == "single_stream":
        return ask
    kept = replace(ask, context_tokens=max(1.0, given + WRITTEN_SHARE * written))
    most = max(1.0, float(largest_batch(kept, (1,))[0]))
    wanted = float(result.concurrency or min(MOST_SEQUENCES, result.requests or MOST_SEQUENCES))
    return replace(ask, batch=np.array([min(wanted, most)]))


def format_of(result: Result) -> QuantFormat:
    """Return the format; where a source does not state it, that in which the model is published."""
    if result.quant:
        return find_quant(result.quant)
    native = all_models()[result.model].native_dtype or "bf16"
    return find_quant({"fp16": "FP16", "fp8": "FP8"}.get(native, "BF16"))


def _weights(result: Result, model: Model, quant: QuantFormat) -> Weights:
    """Return the weights, those of a published file by its bytes."""
    held = weights(model, quant)
    if result.weights_bytes is None:
        return held
    # files of text models hold no towers
    scale = result.weights_bytes / (float(held.total_bytes) - shape_of(model).tower_params * 2.0)
    return replace(
        held,
        total_bytes=held.total_bytes * scale,
        dense_read_bytes=held.dense_read_bytes * scale,
        routed_bytes=held.routed_bytes * scale,
    )


def cache_dtype(result: Result, quant: QuantFormat) -> KvDtype:
    """Return the precision of the cache; where a source does not state it, the one that its engine takes."""
    if result.kv_dtype in (KvDtype.Q8_0, KvDtype.Q4_0):
        return KvDtype(result.kv_dtype)
    if result.engine == Engine.TENSORRT_LLM and quant.name in _EIGHT_BIT_CACHES:
        return KvDtype.FP8
    return KvDtype.FP16


def _parallel(result: Result) -> Parallel:
    if result.engine == Engine.LLAMA_CPP:
        return Parallel()
    layout = layout_of(result)
    return Parallel(
        tensor=_tensor_ranks(result),
        experts=float(layout.expert_ranks),
        attention=float(layout.attention_data),
    )


def layout_of(result: Result) -> Layout:
    """Return how a server laid the model out; llama.cpp splits layers among its GPUs."""
    if result.engine == Engine.LLAMA_CPP:
        return Layout()
    tensor = int(_tensor_ranks(result))
    return Layout(
        pipeline=max(1, (result.gpu_count or 1) // tensor),
        expert_ranks=min(tensor, result.ep or 1),
        attention_data=min(tensor, result.dp or 1),
    )


def _tensor_ranks(result: Result) -> float:
    """Return the GPUs that share a layer; some sources state only those that share attention as `tp`."""
    count = result.gpu_count or 1
    shared = (result.tp or count) * (result.pp or 1)
    return float(count if (result.dp or 1) > 1 and shared != count else result.tp or count)


def _conditions(result: Result) -> Conditions:
    name, notes = result.engine_name.casefold(), result.notes
    year = result.date[:4]
    is_compiled = name == "mlc llm"
    return Conditions(
        engine_of_2023=float(year == "2023" and name == "vllm"),
        engine_of_2024=float(year in ("2023", "2024") and not is_compiled),
        no_flash_attention=float("no flash attention" in notes),
        untuned_backend=float("rocwmma" in notes and "hipblaslt=1" not in notes),
        is_fork=float(name == "ik_llama.cpp"),
        is_exllama=float(name.startswith("exllama")),
        is_compiled=float(is_compiled),
        burst=float(result.requests is not None and result.requests == result.concurrency),
        staggered=float(notes.startswith("bench_serving")),
        polling_steps=float(polled[1]) if (polled := _POLLED.search(notes)) else 1.0,
        no_server=float(result.kind == "offline_max" or result.metric == "agg_total_tps" or "habana" in name),
        offline=float(result.kind == "offline_max"),
    )


def offload_fraction(result: Result, model: Model, quant: QuantFormat) -> float:
    """Return the share of all weights in host memory, where a source says it of the experts."""
    share = result.offload_fraction or 0.0
    if result.offload != "experts":
        return share
    held = _weights(result, model, quant)
    return share * float(held.routed_bytes) / float(held.total_bytes)


def _work(result: Result, ask: Question) -> Work:
    """Return the work; of what lay in the cache before a prompt, only attention is computed."""
    held = result.context_tokens or 0.0
    return work_columns(replace(ask, cached_tokens=held))


def _stacked(records: Sequence[Record]) -> Record:
    """Return one record whose fields are arrays over the given ones."""
    first: Any = records[0]
    values: dict[str, Any] = {}
    for field in fields(first):
        parts = [getattr(record, field.name) for record in records]
        if isinstance(parts[0], Conditions):
            values[field.name] = _stacked(parts)
        else:
            values[field.name] = np.array([np.ravel(part)[0] for part in parts])
    return type(first)(**values)  # type: ignore[no-any-return]


def _taken(value: Any, index: NDArray[np.int64]) -> Any:
    if isinstance(value, np.ndarray):
        return value[index]
    return type(value)(**{field.name: _taken(getattr(value, field.name), index) for field in fields(value)})
