"""Memory and speed of many configurations at once: the formulas of memory.py and speed.py put together."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from planner.memory import (
    kv_cache_bytes,
    largest_that_fits,
    llama_cpp_runtime_bytes,
    serving_runtime_bytes,
    simple_usable_bytes,
    state_bytes,
    usable_bytes,
)
from planner.serving.constants import constants, is_tensor_parallel
from planner.serving.devices import Column, link_for
from planner.serving.question import Question
from planner.serving.reached import ENGINES, Place, Reached, reached
from planner.serving.work import Work, mixer_bytes, work_of
from planner.speed import (
    Hardware,
    Offload,
    Step,
    decode_step,
    prompt_among_others_s,
    prompt_step,
    simple_decode_s,
    simple_prefill_tokens_per_s,
    speculative_s,
    steady_state,
)
from planner.units import GIB, Numbers
from planner.workload import Engine, Method

# Values of `SpeedColumns.bound`, in the order of planner.sizing.Bound.
BOUNDS = ("memory", "compute", "interconnect", "host")


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryColumns:
    """Bytes of each configuration, all its GPUs together."""

    weights_bytes: Numbers
    kv_cache_bytes: Numbers
    state_bytes: Numbers
    runtime_bytes: Numbers
    offloaded_bytes: Numbers
    usable_bytes: Numbers
    total_bytes: Numbers
    fits: NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeedColumns:
    """Speed of each configuration, whether it fits or not; NaN where the device's rates are not known."""

    decode_tokens_per_s: Column
    aggregate_tokens_per_s: Column
    prefill_tokens_per_s: Column
    ttft_s: Column
    tpot_s: Column
    bound: NDArray[np.int64]  # an index into BOUNDS


def memory_columns(
    question: Question, context_tokens: Numbers | None = None, batch: Numbers | None = None
) -> MemoryColumns:
    """Return the memory of each configuration, at another context or batch where one is given."""
    context = question.context_tokens if context_tokens is None else context_tokens
    sequences = question.batch if batch is None else batch
    ask, layout = question, question.layout
    cache = kv_cache_bytes(ask.shape, context, sequences, ask.kv_bytes_per_element, ask.ranks, layout)
    state = state_bytes(ask.shape, sequences, layout)
    runtime = _runtime_bytes(ask, context, sequences)
    weights = ask.weights.total_bytes + mixer_bytes(ask.shape, ask.weights) * (ask.parallel.attention - 1.0)
    weights = weights + _draft_bytes(ask)
    offloaded = ask.weights.total_bytes * ask.offload_fraction
    usable = _usable_bytes(ask)
    total = weights - offloaded + cache + state + runtime
    return MemoryColumns(
        weights_bytes=weights,
        kv_cache_bytes=cache,
        state_bytes=state,
        runtime_bytes=runtime,
        offloaded_bytes=offloaded,
        usable_bytes=usable,
        total_bytes=total,
        fits=np.less_equal(total, usable),
    )


def largest_context(question: Question, size: tuple[int, ...]) -> Column:
    """Return the most tokens a sequence that fit at the given batch; 0 where not even one does."""
    return largest_that_fits(
        lambda tokens: np.broadcast_to(memory_columns(question, context_tokens=tokens).fits, size), size
    )


def largest_batch(question: Question, size: tuple[int, ...]) -> Column:
    """Return the most sequences that fit at the given context; 0 where not even one does."""
    return largest_that_fits(
        lambda batch: np.broadcast_to(memory_columns(question, batch=batch).fits, size), size
    )


def speed_columns(question: Question, memory: MemoryColumns) -> SpeedColumns:
    """Return the speed of each configuration."""
    if question.method is Method.SIMPLE:
        return _simple_speed(question, memory)
    work, hardware, known = work_columns(question), hardware_of(question), reached_columns(question)
    decode = decode_step(work, hardware, known, batch=question.batch, offload=offload_of(question))
    prompt = prompt_step(work, hardware, known, offload=offload_of(question))
    token_s = decode.total_s
    if np.any(question.drafted_tokens):
        verifying = decode_step(
            work,
            hardware,
            known,
            batch=question.batch,
            offload=offload_of(question),
            tokens_each=question.drafted_tokens + 1.0,
        )
        token_s = speculative_s(decode, verifying, work.blocks, question.drafted_tokens, question.acceptance)
    steady = steady_state(
        decode_s=token_s,
        prompt_s=prompt.total_s,
        other_prompt_s=prompt_among_others_s(
            work, hardware, known, batch=question.batch, offload=offload_of(question)
        ),
        batch=question.batch,
        output_tokens=question.output_tokens,
        reached=known,
    )
    return SpeedColumns(
        decode_tokens_per_s=np.asarray(1.0 / token_s),
        aggregate_tokens_per_s=np.asarray(steady.aggregate_tokens_per_s),
        prefill_tokens_per_s=np.asarray(question.input_tokens / prompt.total_s),
        ttft_s=np.asarray(steady.ttft_s),
        tpot_s=np.asarray(steady.tpot_s),
        bound=_bound(decode),
    )


def spilled_bytes(question: Question, memory: MemoryColumns) -> Numbers:
    """
    Return the weights that the sizing page lets spill to the host because memory does not hold them. [B]

    They come on top of what was offloaded on purpose; no other method spills by itself.

    Source:
        docs/methodology.md, "Speed".
    """
    if question.method is not Method.SIMPLE:
        return 0.0
    missing = np.maximum(np.subtract(memory.total_bytes, memory.usable_bytes), 0.0)
    return np.minimum(missing, np.subtract(memory.weights_bytes, memory.offloaded_bytes))


def work_columns(question: Question) -> Work:
    """Return what each configuration has to read and to compute."""
    ask = question
    return work_of(
        ask.shape,
        ask.weights,
        ask.layout,
        context_tokens=ask.context_tokens,
        input_tokens=ask.input_tokens,
        output_tokens=ask.output_tokens,
        cached_tokens=ask.cached_tokens,
        bytes_per_element=ask.kv_bytes_per_element,
        ranks=ask.ranks,
    )


def reached_columns(question: Question) -> Reached:
    """Return what the engine reaches in each configuration."""
    return reached(question.engine, place_of(question))


def place_of(question: Question) -> Place:
    """Return where each configuration stands in the tables of constants."""
    return Place(
        family=question.columns.family.astype(np.int64),
        engine=ENGINES.index(question.engine),
        blocks=question.blocks,
        precision=question.precision,
        conditions=question.conditions,
    )


def offload_of(question: Question) -> Offload:
    """
    Return which weights lie in host memory.

    Of a mixture of experts llama.cpp puts the routed experts there first, of which a token needs few; else
    every matrix gives the same share.
    """
    share, weights = question.offload_fraction, question.weights
    if not question.offloads_experts_first:
        return Offload(dense=share, experts=share)
    moved = share * weights.total_bytes
    rest = np.maximum(weights.total_bytes - weights.routed_bytes, 1.0)
    return Offload(
        dense=np.clip((moved - weights.routed_bytes) / rest, 0.0, 1.0),
        experts=np.clip(moved / np.maximum(weights.routed_bytes, 1.0), 0.0, 1.0),
    )


def _bound(step: Step) -> NDArray[np.int64]:
    """Return which part of a step is the longest, as an index into BOUNDS."""
    bound = np.where(np.greater(step.compute_s, step.memory_s), 1, 0)
    largest = np.maximum(step.compute_s, step.memory_s)
    for index, part in ((2, step.interconnect_s), (3, step.host_s)):
        bound = np.where(np.greater(part, largest), index, bound)
        largest = np.maximum(part, largest)
    return bound


def hardware_of(question: Question) -> Hardware:
    """Return the GPUs as the engine uses them."""
    columns, stages = question.columns, question.stages
    link, kind = link_for(columns, question.sharing)
    groups = question.parallel.attention
    group_link, group_kind = link_for(columns, question.sharing / groups)
    return Hardware(
        sharing=question.sharing,
        stages=stages,
        expert_ranks=question.parallel.experts,
        attention_groups=groups,
        micro_batches=stages if is_tensor_parallel(question.engine) else 1.0,
        bandwidth_bytes_per_s=columns.bandwidth_bytes_per_s,
        peak_flops=question.peak_flops,
        flops_per_watt=columns.flops_per_watt,
        link_bytes_per_s=link,
        link_kind=kind,
        group_link_bytes_per_s=group_link,
        group_link_kind=group_kind,
        host_bytes_per_s=question.host_bytes_per_s,
        host_stream_bytes_per_s=np.minimum(question.host_bytes_per_s, columns.host_stream_bytes_per_s),
    )


def _runtime_bytes(question: Question, context_tokens: Numbers, batch: Numbers) -> Numbers:
    if question.method is Method.SIMPLE:
        return constants().simple.runtime_gib * GIB
    if question.engine is Engine.LLAMA_CPP:
        return llama_cpp_runtime_bytes(question.shape, context_tokens, question.gpu_count)
    return serving_runtime_bytes(
        question.shape,
        batch,
        question.gpu_count,
        question.columns.visible_bytes,
        stages=question.stages,
        most_sequences=question.most_sequences,
    )


def _draft_bytes(question: Question) -> Numbers:
    """Return the weights of a draft of one layer: the mean layer of the model. [B]"""
    if not np.any(question.drafted_tokens):
        return 0.0
    shape, weights = question.shape, question.weights
    layers = weights.routed_bytes + weights.dense_read_bytes * shape.linear_params / (
        shape.linear_params + shape.head_params
    )
    return np.where(np.greater(question.drafted_tokens, 0.0), layers / shape.blocks, 0.0)


def _usable_bytes(question: Question) -> Numbers:
    if question.method is Method.SIMPLE:
        return simple_usable_bytes(question.columns.label_gb, question.gpu_count)
    return usable_bytes(
        question.columns.visible_bytes, question.gpu_count, question.engine, question.memory_fraction
    )


def _simple_speed(question: Question, memory: MemoryColumns) -> SpeedColumns:
    """Return the sizing page's speeds: what memory does not hold spills over the host link."""
    ask = question
    spilled = ask.offload_fraction + spilled_bytes(ask, memory) / memory.weights_bytes
    peak = ask.peak_flops * ask.gpu_count
    prefill = simple_prefill_tokens_per_s(ask.simple_active_params, peak)
    compute_s = ask.batch / prefill
    step_s, host_s = simple_decode_s(
        active_bytes=ask.weights.dense_read_bytes,
        spilled_fraction=spilled,
        bandwidth_bytes_per_s=ask.columns.bandwidth_bytes_per_s * ask.gpu_count,
        host_bytes_per_s=ask.host_bytes_per_s,
        compute_s=compute_s,
    )
    own_s = step_s - host_s
    bound = np.where(host_s > own_s, 3, np.where(compute_s >= step_s, 1, 0))
    decode = np.asarray(1.0 / step_s)
    return SpeedColumns(
        decode_tokens_per_s=decode,
        aggregate_tokens_per_s=np.asarray(decode * ask.batch),
        prefill_tokens_per_s=np.asarray(prefill),
        ttft_s=np.asarray(ask.input_tokens / prefill),
        tpot_s=np.asarray(step_s),
        bound=bound,
    )
