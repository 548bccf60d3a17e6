"""How memory and speed of one configuration come about: each formula with the numbers put in."""

from collections.abc import Iterator
from math import isfinite

import numpy as np

from planner.answers.figure import Figure
from planner.cost import usd_per_million_tokens
from planner.memory import CacheLayout, cache_layout, replicas_of_cache, visible_bytes
from planner.serving.constants import constants
from planner.serving.question import Question, question_of, weights_of
from planner.serving.shape import shape_of
from planner.serving.speeds import SpeedSource
from planner.sizing import Sizing
from planner.units import GIB
from planner.workload import Engine, Method

MEMORY = 'docs/methodology.md, "Memory"'
SPEED = 'docs/methodology.md, "Speed"'


def sizing_figures(sizing: Sizing, usd_per_hour: float | None = None) -> list[Figure]:
    """
    Return every figure of a sizing with its formula, the numbers of this configuration and the source.

    Args:
        sizing: Memory and speed of one configuration.
        usd_per_hour: Rent of the machine, for the price of tokens. [USD/h]
    """
    return [*_memory(sizing), *_speed(sizing), *_price(sizing, usd_per_hour)]


def _memory(sizing: Sizing) -> Iterator[Figure]:
    memory = sizing.memory
    yield _weights(sizing)
    yield _cache(sizing)
    if memory.state_bytes:
        shape, layout = shape_of(sizing.workload.model), _layout(sizing)
        yield _gib(
            "fixed state",
            memory.state_bytes,
            "sequences x (recurrent elements x bytes + convolution elements x bytes)",
            f"{sizing.workload.batch} x ({shape.recurrent_elements:,.0f} x {layout.recurrent_bytes:g} B + "
            f"{shape.convolution_elements:,.0f} x {layout.convolution_bytes:g} B)",
        )
    yield _runtime(sizing)
    on_gpu = memory.weights_bytes - memory.offloaded_bytes
    parts = (on_gpu, memory.kv_cache_bytes, memory.state_bytes, memory.runtime_bytes)
    yield _gib(
        "needed",
        memory.total_bytes,
        "weights on the GPUs + attention cache + fixed state + buffers",
        " + ".join(f"{part / GIB:,.2f}" for part in parts) + " GiB",
    )
    yield _usable(sizing)


def _weights(sizing: Sizing) -> Figure:
    """Explain the weights by their mean bits: each class of tensors has its own."""
    memory, work = sizing.memory, sizing.workload
    params = float(work.model.main_params)
    if work.method is Method.SIMPLE:
        params = float(work.model.published_total_params or work.model.main_params)
    formula = "parameters x mean bits of a weight / 8"
    if memory.basis == "official-size":
        formula = "bytes of the published files that are served"
    return _gib(
        "weights",
        memory.weights_bytes,
        formula,
        f"{params:,.0f} x {memory.weights_bytes * 8.0 / params:.4f} / 8 B",
        is_estimate=memory.basis != "official-size",
    )


def _cache(sizing: Sizing) -> Figure:
    work, layout = sizing.workload, _layout(sizing)
    question = _question(sizing)
    ranks = float(np.ravel(question.ranks)[0])
    tokens = np.ceil(work.context_tokens / layout.block_tokens) * layout.block_tokens
    terms = []
    for term in shape_of(work.model).cache_terms:
        held = min(tokens, term.window_tokens + layout.window_slack_tokens)
        copies = replicas_of_cache(term.kv_heads, ranks) if layout.is_replicated else 1.0
        kept = f" x {copies:g}" if copies != 1.0 else ""
        window = " (a window)" if isfinite(term.window_tokens) else ""
        terms.append(f"{term.elements_per_token:,.0f} x {held:,.0f}{kept}{window}")
    element = float(np.ravel(question.kv_bytes_per_element)[0])
    return _gib(
        "attention cache",
        sizing.memory.kv_cache_bytes,
        "sequences x bytes of an element x sum of (elements a token x tokens held x copies)",
        f"{work.batch} x {element:g} B x ({' + '.join(terms) or '0'})",
    )


def _runtime(sizing: Sizing) -> Figure:
    work, memory = sizing.workload, sizing.memory
    shape, count, known = shape_of(work.model), sizing.machine.gpu_count, constants().memory
    if work.method is Method.SIMPLE:
        return _gib("buffers", memory.runtime_bytes, "a constant", f"{constants().simple.runtime_gib:g} GiB")
    if work.engine is Engine.LLAMA_CPP:
        widest = f"max({known.llama_cpp_logits_bytes:g} x {shape.vocab_size:,.0f}, "
        widest += f"{known.llama_cpp_mask_bytes:g} x {work.context_tokens:,})"
        return _gib(
            "buffers",
            memory.runtime_bytes,
            "GPUs x micro-batch x (8 x hidden width + max(4 x vocabulary, 2 x context))",
            f"{count} x {known.llama_cpp_ubatch_tokens:g} x ({known.llama_cpp_hidden_bytes:g} x "
            f"{shape.hidden_size:,.0f} + {widest}) B",
        )
    return _gib(
        "buffers",
        memory.runtime_bytes,
        "GPUs x (activations of the sequences that the server is set up for + communication + graphs)",
        f"{count} x {memory.runtime_bytes / count / GIB:,.4f} GiB",
    )


def _usable(sizing: Sizing) -> Figure:
    work, memory, machine = sizing.workload, sizing.memory, sizing.machine
    known, count = constants().memory, machine.gpu_count
    visible, _ = visible_bytes(machine.gpu)
    formula, numbers = "GPUs x what a process sees x share of the server", ""
    if work.method is Method.SIMPLE:
        formula = "GPUs x label x share"
        numbers = f"{count} x {machine.gpu.memory_gb_vendor:g} GiB x {constants().simple.usable_share:g}"
    elif work.engine is Engine.LLAMA_CPP:
        formula = "GPUs x (what a process sees - context of the driver)"
        numbers = f"{count} x ({visible / GIB:,.4f} - {known.llama_cpp_context_gib:g}) GiB"
    else:
        share = known.serving_memory_fraction if work.memory_fraction is None else work.memory_fraction
        numbers = f"{count} x {visible / GIB:,.4f} GiB x {share:g}"
    return _gib("usable", memory.usable_bytes, formula, numbers, is_estimate=False)


def _speed(sizing: Sizing) -> Iterator[Figure]:
    speed, work = sizing.speed, sizing.workload
    if speed is None:
        return
    is_estimate = speed.source is SpeedSource.ESTIMATED
    step_ms = 1000.0 / speed.decode_tokens_per_s
    ends = speed.ends("decode") if is_estimate else None
    ranged = "" if ends is None else f"; {ends[0]:,.1f} to {ends[1]:,.1f}"
    asked = f"{work.batch} at once, {work.input_tokens:,} tokens in, {work.output_tokens:,} out"
    yield Figure(
        name="decode, one sequence",
        value=speed.decode_tokens_per_s,
        unit="tokens/s",
        formula="1 / time of a step: what is read / bandwidth reached, what is computed / peak reached",
        numbers=f"1 / {step_ms:,.2f} ms, limited by {speed.bound}{ranged}",
        source=SPEED if is_estimate else "measured",
        is_estimate=is_estimate,
    )
    for name, value, unit, formula, numbers in (
        (
            "first token",
            speed.ttft_ms,
            "ms",
            "prompt / prefill speed, waiting and overhead",
            f"{work.input_tokens:,} / {speed.prefill_tokens_per_s:,.0f} tokens/s = "
            f"{work.input_tokens / speed.prefill_tokens_per_s * 1000.0:,.0f} ms, the rest waiting",
        ),
        ("further token", speed.tpot_ms, "ms", "a step and the prompts of others in between", asked),
        (
            "all sequences together",
            speed.aggregate_tokens_per_s,
            "tokens/s",
            "output tokens of all requests in flight, prompts included",
            asked,
        ),
    ):
        yield Figure(
            name=name,
            value=value,
            unit=unit,
            formula=formula,
            numbers=numbers,
            source=SPEED,
            is_estimate=True,
        )


def _price(sizing: Sizing, usd_per_hour: float | None) -> Iterator[Figure]:
    if usd_per_hour is None or sizing.speed is None:
        return
    aggregate = sizing.speed.aggregate_tokens_per_s
    yield Figure(
        name="a million output tokens at full use",
        value=float(usd_per_million_tokens(usd_per_hour, aggregate)),
        unit="USD",
        formula="rent of an hour / (aggregate speed x 3600) x 1e6",
        numbers=f"{usd_per_hour:g} / ({aggregate:,.2f} x 3600) x 1e6",
        source='docs/methodology.md, "Plan"',
        is_estimate=True,
    )


def _gib(name: str, count: float, formula: str, numbers: str, *, is_estimate: bool = True) -> Figure:
    return Figure(
        name=name,
        value=count / GIB,
        unit="GiB",
        formula=formula,
        numbers=numbers,
        source=MEMORY,
        is_estimate=is_estimate,
    )


def _layout(sizing: Sizing) -> CacheLayout:
    return cache_layout(sizing.workload.engine, sizing.workload.method)


def _question(sizing: Sizing) -> Question:
    batch = np.array([float(sizing.workload.batch)])
    return question_of(sizing.workload, weights_of(sizing.workload), [sizing.machine], batch=batch)
