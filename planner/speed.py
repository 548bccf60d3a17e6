"""Speed of a served model: one decode step, a prompt, and the steady state of requests in flight."""

from dataclasses import dataclass

import numpy as np

from planner.constants import EngineConstants, constants
from planner.memory import Numbers, Weights
from planner.shape import Shape
from planner.units import GB


@dataclass(frozen=True, slots=True, kw_only=True)
class Hardware:
    """Some GPUs as one engine uses them; numbers or arrays that broadcast."""

    gpu_count: Numbers
    sharing: (
        Numbers  # GPUs that work on one layer together: all with tensor parallelism, 1 where layers are split
    )
    bandwidth_bytes_per_s: Numbers  # of one GPU
    peak_flops: Numbers  # of one GPU, in the precision of the products
    efficiency: Numbers
    cache_efficiency: Numbers
    layer_overhead_s: Numbers
    compute_share: Numbers
    link_bytes_per_s: Numbers
    link_latency_s: Numbers
    host_bytes_per_s: Numbers  # for single tokens, which the CPU may compute where they lie
    host_stream_bytes_per_s: Numbers  # for prompts, computed on the GPU


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """The parts of one pass through the model. [s]"""

    memory_s: Numbers
    compute_s: Numbers
    interconnect_s: Numbers
    host_s: Numbers
    overhead_s: Numbers

    @property
    def total_s(self) -> Numbers:
        """Reading and computing overlap in part; the rest adds. [s]"""
        together: Numbers = np.sqrt(np.square(self.memory_s) + np.square(self.compute_s))
        return together + self.interconnect_s + self.host_s + self.overhead_s


@dataclass(frozen=True, slots=True, kw_only=True)
class SteadyState:
    """What requests see while a fixed number of them is always in flight."""

    ttft_s: Numbers
    tpot_s: Numbers
    aggregate_tokens_per_s: Numbers


def experts_read_share(routed_share: float, tokens: Numbers) -> Numbers:
    """
    Share of the routed experts that a step of so many tokens reads: 1 - (1 - k/E)^(tokens^0.85).

    Source:
        docs/methodology.md, "Speed".
    """
    exponent = np.power(tokens, constants().experts.batch_exponent)
    share: Numbers = 1.0 - np.power(1.0 - routed_share, exponent)
    return share


def weights_read_bytes(shape: Shape, weights: Weights, tokens: Numbers) -> Numbers:
    """Weights that a step of so many tokens reads. [B]"""
    return weights.dense_read_bytes + weights.routed_bytes * experts_read_share(shape.routed_share, tokens)


def cache_read_bytes(
    shape: Shape, context_tokens: Numbers, batch: Numbers, bytes_per_element: float, ranks: Numbers
) -> Numbers:
    """Cache that one step reads, summed over ranks; a latent is read by each of them. [B]"""
    elements: Numbers = 0.0
    for term in shape.cache_terms:
        limits = [limit for limit in (term.window_tokens, term.read_budget_tokens) if limit is not None]
        read = np.minimum(context_tokens, min(limits)) if limits else context_tokens
        copies = ranks if term.kv_heads is None else np.maximum(1.0, ranks / term.kv_heads)
        elements = elements + term.elements_per_token * read * copies
    return elements * batch * bytes_per_element


def attention_flops_per_token(shape: Shape, context_tokens: Numbers) -> Numbers:
    """Operations of attention for one new token that looks back at the context. [FLOP]"""
    flops: Numbers = shape.recurrent_flops_per_token
    for work in shape.attention:
        seen = (
            context_tokens if work.window_tokens is None else np.minimum(context_tokens, work.window_tokens)
        )
        flops = flops + work.flops_per_pair * seen
    return flops


def attention_flops_of_prompt(shape: Shape, tokens: Numbers) -> Numbers:
    """Operations of attention over a whole prompt: each token looks back at those before it. [FLOP]"""
    flops: Numbers = shape.recurrent_flops_per_token * tokens
    for work in shape.attention:
        window = tokens if work.window_tokens is None else np.minimum(tokens, work.window_tokens)
        flops = flops + work.flops_per_pair * window * (tokens - window / 2)
    return flops


def all_reduce_s(shape: Shape, tokens: Numbers, passes: Numbers, hardware: Hardware) -> Numbers:
    """
    Time of two all-reduces a layer. [s]

    2 L [latency log2 n + 2 (n-1)/n x tokens x H x 2 B / (link x 0.6)].

    Args:
        shape: The model.
        tokens: Of all passes together.
        passes: Through the model.
        hardware: Its `sharing` is n; 1 costs nothing.
    """
    n = hardware.sharing
    volume = 2.0 * (n - 1.0) / n * tokens * shape.hidden_size * 2.0
    transfer = volume / (hardware.link_bytes_per_s * constants().link.efficiency)
    return 2.0 * shape.blocks * (hardware.link_latency_s * np.log2(n) * passes + transfer)


def decode_step(
    shape: Shape,
    weights: Weights,
    hardware: Hardware,
    engine: EngineConstants,
    *,
    batch: Numbers,
    cache_bytes: Numbers,
    attention_flops: Numbers,
    offload_fraction: Numbers,
) -> Step:
    """
    One decode step of `batch` sequences.

    Args:
        shape: The model.
        weights: In the format served.
        hardware: The GPUs.
        engine: Its overheads.
        batch: Sequences, one token of each.
        cache_bytes: Cache and state read and written, summed over the ranks. [B]
        attention_flops: Of all sequences. [FLOP]
        offload_fraction: Of the weights, read from host memory in every step.

    Source:
        docs/methodology.md, "Speed".
    """
    on_gpu = (1.0 - offload_fraction) / (
        hardware.sharing * hardware.bandwidth_bytes_per_s * hardware.efficiency
    )
    share = experts_read_share(shape.routed_share, batch)
    experts = weights.routed_bytes * share / engine.expert_read_efficiency
    cache_s = cache_bytes / (hardware.sharing * hardware.bandwidth_bytes_per_s * hardware.cache_efficiency)
    flops = 2.0 * shape.active_params * batch + attention_flops
    rate = hardware.sharing * hardware.peak_flops * _compute_share(shape, hardware, engine)
    hops = (hardware.gpu_count - hardware.sharing) * constants().host.hop_ms * 1e-3
    return Step(
        memory_s=(weights.dense_read_bytes + experts) * on_gpu + cache_s,
        compute_s=flops / rate,
        interconnect_s=all_reduce_s(shape, batch, 1.0, hardware) + hops,
        host_s=offload_fraction * weights_read_bytes(shape, weights, batch) / hardware.host_bytes_per_s,
        overhead_s=_overhead_s(shape, hardware, engine) + batch * engine.sequence_overhead_us * 1e-6,
    )


def prefill_step(
    shape: Shape,
    weights: Weights,
    hardware: Hardware,
    engine: EngineConstants,
    *,
    tokens: Numbers,
    offload_fraction: Numbers,
) -> Step:
    """
    One prompt alone, in chunks of the engine's size; the head works on its last token only.

    Source:
        docs/methodology.md, "Speed".
    """
    chunk = np.minimum(tokens, float(engine.prefill_chunk_tokens))
    passes = np.ceil(tokens / engine.prefill_chunk_tokens)
    share = experts_read_share(shape.routed_share, chunk)
    read = weights.dense_read_bytes + weights.routed_bytes * share / engine.expert_read_efficiency
    on_gpu = (1.0 - offload_fraction) / (
        hardware.sharing * hardware.bandwidth_bytes_per_s * hardware.efficiency
    )
    flops = 2.0 * (shape.active_params - shape.head_params) * tokens + attention_flops_of_prompt(
        shape, tokens
    )
    rate = hardware.sharing * hardware.peak_flops * _compute_share(shape, hardware, engine)
    host = offload_fraction * weights_read_bytes(shape, weights, chunk) / hardware.host_stream_bytes_per_s
    hops = (hardware.gpu_count - hardware.sharing) * constants().host.hop_ms * 1e-3
    return Step(
        memory_s=passes * read * on_gpu,
        compute_s=flops / rate,
        interconnect_s=all_reduce_s(shape, tokens, passes, hardware) + passes * hops,
        host_s=passes * host,
        overhead_s=passes * _overhead_s(shape, hardware, engine),
    )


def steady_state(
    *,
    decode_s: Numbers,
    prompt_s: Numbers,
    batch: Numbers,
    output_tokens: Numbers,
    engine: EngineConstants,
) -> SteadyState:
    """
    Requests always in flight, each waiting for its own prompt and slowed by the prompts of the others.

    While one request decodes, each of the others brings one prompt, and a prompt stops the decoding of all.
    A share of that stall is met before the first token, the rest between tokens. By Little's law the output
    rate is batch x output / time of a request = batch x output / (output x decode step + batch x prompt +
    overhead); alone, nothing is added to the decode step.

    Args:
        decode_s: One decode step at this batch. [s]
        prompt_s: One prompt alone. [s]
        batch: Requests in flight.
        output_tokens: Of one request.
        engine: Its overlap and overheads.

    Source:
        docs/methodology.md, "Speed".
    """
    stall = (batch - 1.0) * prompt_s
    further = np.maximum(output_tokens - 1.0, 1.0)
    waiting = np.where(np.less(output_tokens, 2), 1.0, engine.queue_share)
    ttft = engine.first_token_overhead_ms * 1e-3 + prompt_s + stall * waiting
    tpot = decode_s + stall * (1.0 - waiting) / further
    request_s = ttft + (output_tokens - 1.0) * tpot
    return SteadyState(ttft_s=ttft, tpot_s=tpot, aggregate_tokens_per_s=batch * output_tokens / request_s)


def simple_decode_s(
    *,
    active_bytes: Numbers,
    spilled_fraction: Numbers,
    bandwidth_bytes_per_s: Numbers,
    host_bytes_per_s: Numbers,
    compute_s: Numbers,
) -> tuple[Numbers, Numbers]:
    """
    The sizing page's decode step, and the part of it on the host link. [s]

    t = active x f / host + active x (1 - f) / (0.75 x bandwidth), or the computing where that is longer.

    Source:
        docs/methodology.md, "Speed", simple method.
    """
    host = active_bytes * spilled_fraction / host_bytes_per_s
    own = (
        active_bytes * (1.0 - spilled_fraction) / (bandwidth_bytes_per_s * constants().simple.bandwidth_share)
    )
    return np.maximum(host + own, compute_s), host


def simple_prefill_tokens_per_s(active_params: Numbers, peak_flops: Numbers) -> Numbers:
    """The sizing page's prompt speed: 0.52 of the peak over two operations for each active parameter."""
    return peak_flops * constants().simple.prefill_share / (2.0 * active_params)


def host_bytes_per_s(host_gb_per_s: float | None) -> float:
    """Return the bandwidth of the path to host memory, the documented default where none is given. [B/s]"""
    return (constants().host.default_gb_per_s if host_gb_per_s is None else host_gb_per_s) * GB


def _compute_share(shape: Shape, hardware: Hardware, engine: EngineConstants) -> Numbers:
    return hardware.compute_share * (engine.moe_compute_share if shape.is_moe else 1.0)


def _overhead_s(shape: Shape, hardware: Hardware, engine: EngineConstants) -> Numbers:
    """Launching the kernels of each layer, and the step of the engine. [s]"""
    experts = engine.moe_layer_overhead_us * 1e-6 if shape.is_moe else 0.0
    return shape.blocks * (hardware.layer_overhead_s + experts) + engine.step_overhead_ms * 1e-3
