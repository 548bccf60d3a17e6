"""Memory of a served model: weights by tensor class, cache by attention kind, state, buffers."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from planner.catalogues.gpus import DeviceClass, Gpu
from planner.catalogues.models import Model
from planner.catalogues.quants import QuantFamily, QuantFormat
from planner.catalogues.stored import StoredWeights
from planner.serving.constants import constants, is_tensor_parallel
from planner.serving.shape import Shape, shape_of
from planner.units import GIB, MIB, Numbers
from planner.workload import Engine, Method

# Models whose GGUF files keep the routed experts as published, in MXFP4, whatever the format of the rest.
# Source: bartowski/openai_gpt-oss-120b-GGUF, Q2_K 58.27 to F16 60.88 GiB; ggml-org/llama.cpp#15117.
_EXPERTS_KEPT = {"gpt_oss"}
_MXFP4_BITS = 4.25
# Above any model's context and any engine's queue; the searches end there.
SEARCH_LIMIT = 2**30


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """Weights of a model in one format, all GPUs together; bytes, one number or one per format."""

    total_bytes: Numbers
    dense_read_bytes: Numbers  # read for every token: all but routed experts, embedding rows, towers, tables
    routed_bytes: Numbers  # of all routed experts
    formula_bytes: Numbers  # what the formula says, also where an official size is taken
    is_official: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheLayout:
    """How an engine lays out cache and state."""

    block_tokens: int
    window_slack_tokens: int
    recurrent_bytes: float
    convolution_bytes: float
    is_replicated: bool  # whether ranks that share a KV head, or a latent, each keep it


def is_native(model: Model, quant: QuantFormat) -> bool:
    """Whether a format is the one in which the model is published."""
    native = model.native_dtype or ""
    if native in ("bf16", "fp16"):
        return quant.family is QuantFamily.NATIVE
    published = {"fp8": "FP8", "mxfp4-experts+bf16": "MXFP4", "fp8+fp4-experts": "MXFP4", "MXFP8": "FP8"}
    published["nvfp4-experts+mxfp8+bf16"] = "NVFP4"
    return published.get(native, native) == quant.name


def kept_expert_bits(model: Model, quant: QuantFormat) -> float | None:
    """Return the bits of routed experts that a format leaves as published, None where it narrows them."""
    is_kept = model.model_type in _EXPERTS_KEPT and model.native_expert_bits == _MXFP4_BITS
    return _MXFP4_BITS if is_kept and quant.family is QuantFamily.GGUF else None


def weights(model: Model, quant: QuantFormat) -> Weights:
    """
    Weights in a format: each class of tensors at its own bits, or the official size where there is one.

    Routed experts and other matrices at the format's bits, embedding and head at theirs, towers at 16 bit.
    Formats that quantise experts only leave the other matrices as published; experts that GGUF files keep as
    published (`kept_expert_bits`) have those bits in each of their formats. Lookup tables are quantised by
    GGUF like embeddings and left as published by the others. The official size counts where the format is
    the published one, less what is stored and not served (draft layers, doubles), by its share of elements.
    Where the model's own files were read, their bytes count tensor by tensor.

    Source:
        docs/methodology.md, "Memory".
    """
    shape = shape_of(model)
    other_native = model.native_other_bits or 16.0
    routed_bits = linear_bits = quant.linear_bits
    if is_native(model, quant):
        routed_bits = model.native_expert_bits or quant.linear_bits
        linear_bits = model.native_other_bits or (16.0 if shape.is_moe else quant.linear_bits)
    elif quant.experts_only and shape.is_moe:
        linear_bits = max(other_native, 8.0)
    routed_bits = kept_expert_bits(model, quant) or routed_bits
    embedding_bits = quant.tied_embedding_bits if shape.is_tied else quant.embedding_bits
    table_bits = embedding_bits if quant.family is QuantFamily.GGUF else other_native
    formula = (
        shape.routed_params * routed_bits
        + shape.linear_params * linear_bits
        + shape.embedding_params * embedding_bits
        + shape.tower_params * constants().memory.tower_bits
        + shape.table_params * table_bits
    ) / 8
    if model.stored is not None and is_native(model, quant):
        return _stored_weights(model.stored, formula)
    official = _official_bytes(model) if is_native(model, quant) else None
    scale = 1.0 if official is None else official / formula
    dense = shape.linear_params * linear_bits + shape.head_params * embedding_bits
    return Weights(
        total_bytes=formula * scale,
        dense_read_bytes=dense / 8 * scale,
        routed_bytes=shape.routed_params * routed_bits / 8 * scale,
        formula_bytes=formula,
        is_official=official is not None,
    )


def _stored_weights(stored: StoredWeights, formula_bytes: float) -> Weights:
    """Return the weights as a model's own files hold them."""
    return Weights(
        total_bytes=float(stored.served_bytes),
        dense_read_bytes=float(stored.read_bytes),
        routed_bytes=float(stored.routed_bytes),
        formula_bytes=formula_bytes,
        is_official=True,
    )


def _official_bytes(model: Model) -> float | None:
    """Return the bytes of the published checkpoint that are served."""
    if model.checkpoint_bytes is None:
        return None
    stored = model.total_params or model.main_params
    return model.checkpoint_bytes * min(1.0, model.main_params / stored)


def simple_weights(model: Model, quant: QuantFormat) -> Weights:
    """
    Weights as the sizing page counts them: labelled parameters times bits, active ones read for a token.

    Source:
        docs/methodology.md, "Memory", simple method.
    """
    bits = quant.simple_bits_per_weight or quant.bits_per_weight
    total = (model.published_total_params or model.main_params) * bits / 8
    active = simple_active_params(model) * bits / 8
    official = is_native(model, quant) and model.checkpoint_bytes is not None
    return Weights(
        total_bytes=total,
        dense_read_bytes=min(active, total),
        routed_bytes=0.0,
        formula_bytes=total,
        is_official=official,
    )


def simple_active_params(model: Model) -> float:
    """Return the labelled active parameters; all of a dense model."""
    return float(model.published_active_params or model.published_total_params or model.active_params)


def cache_layout(engine: Engine, method: Method) -> CacheLayout:
    """Return how an engine lays out its cache; the simple method knows neither pages nor ranks."""
    known = constants().memory
    if method is Method.SIMPLE:
        return CacheLayout(
            block_tokens=1,
            window_slack_tokens=0,
            recurrent_bytes=known.recurrent_bytes,
            convolution_bytes=known.serving_convolution_bytes,
            is_replicated=False,
        )
    if engine is Engine.LLAMA_CPP:
        return CacheLayout(
            block_tokens=known.llama_cpp_block_tokens,
            window_slack_tokens=known.llama_cpp_window_slack_tokens,
            recurrent_bytes=known.recurrent_bytes,
            convolution_bytes=known.llama_cpp_convolution_bytes,
            is_replicated=False,
        )
    return CacheLayout(
        block_tokens=known.serving_block_tokens,
        window_slack_tokens=known.serving_window_slack_tokens,
        recurrent_bytes=known.recurrent_bytes,
        convolution_bytes=known.serving_convolution_bytes,
        is_replicated=is_tensor_parallel(engine),
    )


def replicas_of_cache(kv_heads: Numbers, ranks: Numbers) -> Numbers:
    """
    How often all ranks together hold the cache: n x ceil(h / n) / h.

    1 while the KV heads divide among the ranks, n / h where there are more ranks than heads: n for a latent,
    which is one head that every rank needs whole.
    """
    return ranks * np.ceil(kv_heads / ranks) / kv_heads


def kv_cache_bytes(
    shape: Shape,
    context_tokens: Numbers,
    batch: Numbers,
    bytes_per_element: Numbers,
    gpu_count: Numbers,
    layout: CacheLayout,
) -> Numbers:
    """
    Attention cache of all sequences, summed over the GPUs. [B]

    Args:
        shape: The model.
        context_tokens: Tokens of each sequence; rounded up to whole blocks. [tokens]
        batch: Sequences.
        bytes_per_element: Of the cache's precision. [B]
        gpu_count: GPUs that serve together.
        layout: Of the engine.

    Source:
        docs/methodology.md, "Memory"; elements by attention kind as in planner/serving/shape.py.
    """
    tokens = np.ceil(context_tokens / layout.block_tokens) * layout.block_tokens
    elements: Numbers = 0.0
    for term in shape.cache_terms:
        held = np.minimum(tokens, term.window_tokens + layout.window_slack_tokens)
        copies = replicas_of_cache(term.kv_heads, gpu_count) if layout.is_replicated else 1.0
        elements = elements + term.elements_per_token * held * copies
    return elements * batch * bytes_per_element


def state_bytes(shape: Shape, batch: Numbers, layout: CacheLayout) -> Numbers:
    """Fixed state of linear-attention, state-space and convolution layers, all sequences. [B]"""
    recurrent = shape.recurrent_elements * layout.recurrent_bytes
    return (recurrent + shape.convolution_elements * layout.convolution_bytes) * batch


def serving_runtime_bytes(
    shape: Shape,
    batch: Numbers,
    gpu_count: Numbers,
    visible_per_gpu_bytes: Numbers,
    *,
    stages: Numbers = 1.0,
    most_sequences: float | None = None,
) -> Numbers:
    """
    Buffers of a server, all GPUs together: activations, NCCL, graphs. [B]

    activation = 0.19 GiB + sequences x V x 14.3 B (+ 0.34 GiB for experts), with the engine's default number
    of sequences or the batch where that is larger, half of it in pipelines; outside of torch 0.25, 2.07, 2.17
    GiB on 1, 2, more ranks that share layers, 0.07 on lone ones of a pipeline.

    Args:
        shape: The model.
        batch: Sequences at once.
        gpu_count: All GPUs.
        visible_per_gpu_bytes: By which the engine chooses its default. [B]
        stages: Of a pipeline.
        most_sequences: For which the engine is set up, in place of its default.

    Source:
        docs/methodology.md, "Memory"; constants in planner/data/speed.toml.
    """
    known = constants().memory
    default = np.where(
        visible_per_gpu_bytes >= known.large_memory_gib * GIB,
        known.sequences_large_memory,
        known.sequences_small_memory,
    )
    sequences = np.maximum(default if most_sequences is None else most_sequences, batch)
    activation = (
        known.activation_base_gib * GIB
        + sequences * shape.vocab_size * known.activation_bytes_per_sequence_and_word
        + known.activation_moe_gib * GIB * shape.is_moe
    )
    is_pipeline, ranks = np.greater(stages, 1), gpu_count / stages
    alone = np.where(is_pipeline, known.non_torch_gib_stage, known.non_torch_gib_1_gpu)
    several = np.where(np.less(ranks, 3), known.non_torch_gib_2_gpus, known.non_torch_gib_4_gpus)
    outside = np.where(np.less(ranks, 2), alone, several)
    activation = activation * np.where(is_pipeline, known.activation_share_stage, 1.0)
    total: Numbers = (activation + (outside + known.graphs_gib) * GIB) * gpu_count
    return total


def llama_cpp_runtime_bytes(shape: Shape, context_tokens: Numbers, gpu_count: Numbers) -> Numbers:
    """
    Compute buffers of llama.cpp, all GPUs together: ubatch x (8 H + max(4 V, 2 n_ctx)). [B]

    Two vectors of the hidden width in 32 bit, and the logits or the mask, whichever is larger: the graph
    reuses the space of what it has done with. Engines that expand a latent for prompts (ik_llama.cpp) take
    more.

    Source:
        docs/methodology.md, "Memory"; constants in planner/data/speed.toml.
    """
    known = constants().memory
    widest = np.maximum(
        known.llama_cpp_logits_bytes * shape.vocab_size, known.llama_cpp_mask_bytes * context_tokens
    )
    row = known.llama_cpp_hidden_bytes * shape.hidden_size + widest
    total: Numbers = known.llama_cpp_ubatch_tokens * row * gpu_count
    return total


def visible_bytes(gpu: Gpu) -> tuple[float, str | None]:
    """
    Memory of one device that a process can use, and a note where that is not the driver's figure. [B]

    What the driver reports, or a share of the label where that is not known, less what no process sees.
    """
    known = constants().memory
    hidden = known.not_visible_gib * GIB
    label = gpu.memory_gb_vendor * GIB
    if gpu.is_unified_memory:
        for unified in known.unified:
            if unified.vendor == gpu.vendor:
                return max(0.0, label * unified.share - hidden), unified.note
    if gpu.memory_mib_reported is not None:
        return max(0.0, gpu.memory_mib_reported * MIB - hidden), None
    datacenter = gpu.device_class in (DeviceClass.DATACENTER, DeviceClass.CLOUD_ONLY)
    share = known.reported_share_datacenter if datacenter else known.reported_share_card
    label_text = f"{share * 100:.1f} % of the {gpu.memory_gb_vendor:g} GB label"
    note = f"what the driver reports is not known: {label_text} taken"
    return max(0.0, label * share - hidden), note


def usable_bytes(
    visible_per_gpu_bytes: Numbers, gpu_count: Numbers, engine: Engine, fraction: float | None = None
) -> Numbers:
    """Memory that an engine may fill, all GPUs together: a fraction, or all but its context. [B]"""
    known = constants().memory
    if engine is Engine.LLAMA_CPP:
        return np.maximum(visible_per_gpu_bytes - known.llama_cpp_context_gib * GIB, 0.0) * gpu_count
    share = known.serving_memory_fraction if fraction is None else fraction
    return visible_per_gpu_bytes * share * gpu_count


def simple_usable_bytes(label_gb: Numbers, gpu_count: Numbers) -> Numbers:
    """The sizing page's usable memory: 95 % of the label, read as GiB. [B]"""
    return label_gb * GIB * constants().simple.usable_share * gpu_count


def largest_that_fits(
    fits: Callable[[NDArray[np.float64]], NDArray[np.bool_]], shape: tuple[int, ...]
) -> NDArray[np.float64]:
    """
    Return the largest whole number from 1 up for which `fits` holds, 0 where not even 1 does.

    Args:
        fits: From candidate numbers to truth; true up to some number and false above.
        shape: Of the candidates.
    """
    low = np.zeros(shape)
    high = np.full(shape, SEARCH_LIMIT + 1.0)
    while np.any(is_open := high - low > 1):
        middle = np.floor((low + high) / 2)
        holds = fits(np.maximum(middle, 1.0))
        low = np.where(is_open & holds, middle, low)
        high = np.where(is_open & ~holds, middle, high)
    return low
