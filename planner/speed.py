"""Speed of a served model: one decode step, a prompt, and the steady state of requests in flight."""

from dataclasses import dataclass

import numpy as np

from planner.serving.constants import constants
from planner.serving.reached import Reached
from planner.serving.work import Work, experts_read_share
from planner.units import GB, Numbers
from planner.workload import Engine, Method

# Prompts of llama.cpp are cut into batches of this many chunks, which GPUs with layers of their own work on
# one after the other: n_batch 2048 over n_ubatch 512 (llama.cpp, common/arg.cpp).
CHUNKS_IN_FLIGHT = 4.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Hardware:
    """Some GPUs as one engine uses them; numbers or arrays that broadcast."""

    sharing: Numbers  # GPUs that work on one layer together
    stages: Numbers  # groups of them with layers of their own
    expert_ranks: Numbers  # among which whole experts are shared out; 1: each expert is split among all
    attention_groups: Numbers  # each with all weights of attention, and with sequences of its own
    micro_batches: Numbers  # parts of a batch that are at work in different stages
    bandwidth_bytes_per_s: Numbers  # of one GPU
    peak_flops: Numbers  # of one GPU, in the precision of the products
    flops_per_watt: Numbers  # of the peak, 10^12; 0 where it does not matter or is not known
    link_bytes_per_s: Numbers
    link_kind: Numbers  # 0 links of GPUs, 1 slots, 2 a network
    group_link_bytes_per_s: Numbers  # the same within a group that shares attention
    group_link_kind: Numbers
    host_bytes_per_s: Numbers  # for single tokens, which the CPU may compute where they lie
    host_stream_bytes_per_s: Numbers  # for prompts, computed on the GPU


@dataclass(frozen=True, slots=True, kw_only=True)
class Offload:
    """The shares of the weights that lie in host memory."""

    dense: Numbers = 0.0
    experts: Numbers = 0.0


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


def all_reduce_s(
    work: Work, hardware: Hardware, reached: Reached, tokens: Numbers, passes: Numbers
) -> Numbers:
    """
    Time of what the ranks of each layer tell each other. [s]

    An all-reduce after attention and one after the feed-forward part, each

    L [latency log2 n x passes + 2 (n-1)/n x tokens x H x 2 B / (link x share reached)].

    Groups with attention of their own reduce it among themselves; then each token goes to the ranks of its k
    experts and back, 2 k / n x tokens x H x 2 B for each rank, where that is less.

    Args:
        work: The model's layers and width.
        hardware: Its `sharing` is n; 1 costs nothing.
        reached: Latencies and the share of the link.
        tokens: Of all passes together.
        passes: Through the model.
    """
    n, groups = hardware.sharing, hardware.attention_groups
    if isinstance(n, float) and n == 1.0:
        return 0.0
    vectors = tokens * work.hidden_size * 2.0
    link = hardware.link_bytes_per_s * reached.link_efficiency
    hop_s = _hop_s(hardware.link_kind, reached)
    reduced: Numbers = hop_s * np.log2(n) * passes + 2.0 * (n - 1.0) / n * vectors / link
    if isinstance(groups, float) and groups == 1.0:
        return 2.0 * work.blocks * reduced
    each = n / groups
    group_link = hardware.group_link_bytes_per_s * reached.link_efficiency
    attention = _hop_s(hardware.group_link_kind, reached) * np.log2(each) * passes
    attention = attention + 2.0 * (each - 1.0) / each * vectors / groups / group_link
    sent = 2.0 * hop_s * passes + 2.0 * work.experts_per_token / n * vectors / link
    is_sent = np.greater(groups, 1.0) & np.greater(work.experts_per_token, 0.0)
    return work.blocks * (attention + np.where(is_sent, np.minimum(sent, reduced), reduced))


def _hop_s(link_kind: Numbers, reached: Reached) -> Numbers:
    """Latency of one step over a link. [s]"""
    within = np.where(np.equal(link_kind, 0.0), reached.fast_link_s, reached.slow_link_s)
    return np.where(np.equal(link_kind, 2.0), constants().link.network_latency_us * 1e-6, within)


def decode_step(
    work: Work,
    hardware: Hardware,
    reached: Reached,
    *,
    batch: Numbers,
    offload: Offload,
    tokens_each: Numbers = 1.0,
) -> Step:
    """
    One decode step.

    Args:
        work: The model.
        hardware: The GPUs.
        reached: What the engine reaches.
        batch: Sequences.
        offload: What lies in host memory.
        tokens_each: Of each sequence: one, or the drafted ones that are verified together and one more.

    Source:
        docs/methodology.md, "Speed".
    """
    sequences = np.maximum(batch / hardware.micro_batches, 1.0)
    tokens = sequences * tokens_each
    share = experts_read_share(work.routed_share, tokens, reached.expert_exponent)
    cache = sequences * (work.cache_bytes + 2.0 * work.state_bytes)
    cache_s = cache / (hardware.sharing * hardware.bandwidth_bytes_per_s * reached.cache_efficiency)
    flops = _products(work, hardware, reached, tokens, tokens, share) + work.attention_flops * tokens
    layer_s = reached.layer_s + work.is_moe * reached.expert_layer_s + work.is_latent * reached.latent_layer_s
    host_bytes = work.dense_read_bytes * offload.dense + work.routed_bytes * share * offload.experts
    on_host = np.maximum(offload.dense, offload.experts * work.is_moe)
    return Step(
        memory_s=_weights_s(work, hardware, reached, share, offload) + cache_s,
        compute_s=flops / _rate(hardware, reached),
        interconnect_s=all_reduce_s(work, hardware, reached, tokens, 1.0)
        + (hardware.stages - 1.0) * reached.hop_s,
        host_s=host_bytes / hardware.host_bytes_per_s + on_host * work.blocks * reached.host_layer_s,
        overhead_s=work.blocks * layer_s + reached.step_s + batch * reached.sequence_s,
    )


def prompt_step(
    work: Work,
    hardware: Hardware,
    reached: Reached,
    *,
    offload: Offload,
    chunk_tokens: Numbers | None = None,
    together: Numbers = 1.0,
) -> Step:
    """
    One prompt in chunks; the head works on its last token only.

    Args:
        work: The model and the prompt.
        hardware: The GPUs.
        reached: What the engine reaches.
        offload: What lies in host memory.
        chunk_tokens: Of one chunk; the engine's own where None.
        together: Prompts that share a chunk: each bears its part of what a chunk costs. Above 1, or with
            steps of a batch in between, the weights are read for those anyway.

    Source:
        docs/methodology.md, "Speed".
    """
    limit = reached.prompt_chunk_tokens if chunk_tokens is None else chunk_tokens
    tokens = work.prompt_tokens
    chunk = np.minimum(tokens * together, limit)
    passes = np.ceil(tokens * together / limit) / together
    share = experts_read_share(work.routed_share, chunk, reached.expert_exponent)
    products = _products(work, hardware, reached, tokens, chunk, share) - 2.0 * work.head_params * tokens
    flops = products + work.prompt_attention_flops / reached.attention_share
    layer_s = (
        reached.prompt_layer_s
        + work.is_moe * reached.prompt_expert_layer_s
        + work.is_latent * reached.prompt_latent_layer_s
    )
    weights_s = _weights_s(work, hardware, reached, share, offload)
    copies = 4.0 * reached.unpack_passes * (work.dense_params - work.head_params + work.expert_params)
    unpack_s = copies / (hardware.sharing * hardware.bandwidth_bytes_per_s * reached.efficiency)
    host_bytes = work.dense_read_bytes * offload.dense + work.routed_bytes * share * offload.experts
    gain = _pipeline(np.ceil(tokens / limit), hardware.stages, reached.pipeline_share)
    return Step(
        memory_s=passes * weights_s / gain,
        compute_s=flops / (_rate(hardware, reached) * reached.prompt_share) / gain,
        interconnect_s=all_reduce_s(work, hardware, reached, tokens, passes)
        + passes * (hardware.stages - 1.0) * reached.hop_s,
        host_s=passes
        * host_bytes
        / (hardware.host_stream_bytes_per_s * reached.prompt_host_efficiency)
        / gain,
        overhead_s=passes * (work.blocks * layer_s + unpack_s) / gain,
    )


def kept_tokens(drafted: Numbers, acceptance: Numbers) -> Numbers:
    """
    Tokens that a step keeps of k drafted ones and one of its own: (1 - a^(k+1)) / (1 - a).

    Each drafted one is accepted with probability a, below 1.

    Source:
        arXiv:2211.17192, equation 1.
    """
    kept: Numbers = (1.0 - np.power(acceptance, drafted + 1.0)) / (1.0 - acceptance)
    return kept


def speculative_s(
    plain: Step, verifying: Step, blocks: Numbers, drafted: Numbers, acceptance: Numbers
) -> Numbers:
    """
    Time of one kept token where a draft of one layer proposes tokens that one step verifies. [s]

    A drafted token takes a step of one layer.

    Args:
        plain: A step without drafts.
        verifying: A step over drafted tokens and one more of each sequence.
        blocks: Layers of the model.
        drafted: Tokens.
        acceptance: Probability of each, below 1.
    """
    time_s = verifying.total_s + drafted * plain.total_s / blocks
    return time_s / kept_tokens(drafted, acceptance)


def prompt_among_others_s(
    work: Work, hardware: Hardware, reached: Reached, *, batch: Numbers, offload: Offload
) -> Numbers:
    """
    What one prompt costs the requests in flight beside it: its part of the chunks that prompts share. [s]

    Prompts that come in while others are decoded are put into one chunk as long as it holds them, at most a
    quarter of the batch at once; stages work on different prompts at the same time.
    """
    if isinstance(batch, float) and batch == 1.0:
        return 0.0  # there are no others
    room = reached.prompt_chunk_tokens / np.maximum(work.prompt_tokens, 1.0)
    together = np.clip(room, 1.0, np.maximum(batch / 4.0, 1.0))
    step = prompt_step(work, hardware, reached, offload=offload, together=together)
    shared = step.compute_s + step.interconnect_s + step.host_s + step.overhead_s
    return shared / hardware.micro_batches


def steady_state(
    *,
    decode_s: Numbers,
    prompt_s: Numbers,
    other_prompt_s: Numbers,
    batch: Numbers,
    output_tokens: Numbers,
    reached: Reached,
    asking: Numbers = 0.0,
) -> SteadyState:
    """
    Requests always in flight, each waiting for its own prompt and slowed by the prompts of the others.

    While one request decodes, each of the others brings one prompt, and a prompt stops the decoding of all.
    A share of that stall is met before the first token, the rest between tokens. By Little's law the output
    rate is batch x output / time of a request; alone, nothing is added to the decode step. Where more ask
    than are in flight, each waits outside until its turn: asking / batch - 1 times the time of a request.

    Args:
        decode_s: One decode step at this batch. [s]
        prompt_s: One prompt alone. [s]
        other_prompt_s: What the prompt of another costs. [s]
        batch: Requests in flight.
        output_tokens: Of one request.
        reached: Overheads and waiting.
        asking: Requests in flight and waiting for a place among them; no more than the batch where fewer.

    Source:
        docs/methodology.md, "Speed".
    """
    stall = (batch - 1.0) * other_prompt_s
    further = np.maximum(output_tokens - 1.0, 1.0)
    early = np.where(np.less(output_tokens, 2), 1.0, reached.queue_share)
    waiting = reached.waiting_steps * decode_s * (1.0 - 1.0 / batch)
    ttft = reached.first_token_s + prompt_s + waiting + stall * early
    tpot = decode_s + stall * (1.0 - early) / further
    request_s = ttft + (output_tokens - 1.0) * tpot
    aggregate = batch * output_tokens / request_s * reached.run_share
    ttft = ttft + request_s * np.maximum(asking / batch - 1.0, 0.0)
    return SteadyState(ttft_s=ttft, tpot_s=tpot, aggregate_tokens_per_s=aggregate)


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


def host_bytes_per_s(host_gb_per_s: float | None, engine: Engine, method: Method) -> float:
    """
    Return the bandwidth of the path to host memory. [B/s]

    Where none is given: a slot for servers and for the sizing page, the memory of a desktop for llama.cpp,
    whose CPU computes where the weights lie.
    """
    if host_gb_per_s is not None:
        return host_gb_per_s * GB
    known = constants().host
    is_local = engine is Engine.LLAMA_CPP and method is Method.CALIBRATED
    return (known.desktop_gb_per_s if is_local else known.default_gb_per_s) * GB


def _weights_s(work: Work, hardware: Hardware, reached: Reached, share: Numbers, offload: Offload) -> Numbers:
    """Reading what lies on the GPUs of the weights for one pass. [s]"""
    experts = work.routed_bytes * share * (1.0 - offload.experts) / reached.expert_efficiency
    dense = work.dense_read_bytes + work.mixer_read_bytes * (hardware.attention_groups - 1.0)
    read = dense * (1.0 - offload.dense) + experts
    return read / (hardware.sharing * hardware.bandwidth_bytes_per_s * reached.efficiency)


def _products(
    work: Work, hardware: Hardware, reached: Reached, tokens: Numbers, chunk: Numbers, share: Numbers
) -> Numbers:
    """
    Operations of matrix products, those of experts weighted by how badly they fill the units. [FLOP]

    An expert gets chunk x k / E / (share read) tokens, and each rank a slice of its columns; few tokens and
    narrow slices leave tiles empty.
    """
    rows = chunk * work.routed_share / share
    columns = work.expert_columns * hardware.expert_ranks / hardware.sharing
    unfilled = (1.0 + reached.expert_rows / rows) * (1.0 + reached.shard_columns / columns)
    return 2.0 * tokens * (work.dense_params + work.expert_params * unfilled)


def _rate(hardware: Hardware, reached: Reached) -> Numbers:
    """Operations a second that are reached: cards whose peak outruns their power clock down. [FLOP/s]"""
    peak = hardware.sharing * hardware.peak_flops
    return peak * reached.compute_share / (1.0 + hardware.flops_per_watt * reached.power_weight)


def _pipeline(chunks: Numbers, stages: Numbers, share: Numbers) -> Numbers:
    """How much faster a prompt is on GPUs that hold layers of their own and work on different chunks."""
    if isinstance(share, float) and share == 0.0:
        return 1.0
    flying = np.minimum(chunks, CHUNKS_IN_FLIGHT)
    gain = flying * stages / (flying + stages - 1.0)
    return 1.0 + (gain - 1.0) * share
