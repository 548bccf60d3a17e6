"""What a person should know about a sizing: limits, assumptions, combinations that make no sense."""

import numpy as np

from planner.catalogues.gpus import Gpu
from planner.catalogues.models import AttentionKind, Model
from planner.catalogues.quants import QuantFamily, QuantFormat
from planner.memory import Weights, kept_expert_bits, visible_bytes
from planner.serving.constants import constants, is_tensor_parallel
from planner.serving.devices import compute_flops, grade, supports
from planner.serving.heads import attention_ranks
from planner.serving.shape import shape_of
from planner.units import GB, GIB
from planner.workload import Engine, KvDtype, Layout, Machine, Method, Workload

# Vendors on which an engine runs, by its own documentation; vLLM has plugins for the Chinese parts and Gaudi.
_ENGINE_VENDORS = {Engine.TENSORRT_LLM: {"NVIDIA"}}
# Vendors that no server with tensor parallelism supports.
_LOCAL_ONLY_VENDORS = {"Apple"}
# Settings of a server that the sizing page's arithmetic does not know, and those that llama.cpp has not;
# how its layers are laid out `_layout_note` says.
_NOT_IN_SIMPLE = (
    "cached_input",
    "draft_tokens",
    "acceptance",
    "memory_fraction",
    "pipeline",
    "expert_ranks",
    "attention_data",
)
_NOT_IN_LLAMA_CPP = ("memory_fraction",)


def workload_notes(work: Workload, weights: Weights) -> tuple[str, ...]:
    """Return what holds on every machine."""
    model = work.model
    notes = [
        _official_note(work, weights),
        _context_note(model, work.context_tokens),
        _request_note(work),
        _format_note(work),
        _cache_note(work),
        unused_note(work),
        _upcast_note(model, work.quant),
        _kept_note(work, weights),
        _window_note(work),
        _table_note(work),
        _tower_note(work),
        _engine_version_note(work),
        *model.doubts,
    ]
    return tuple(note for note in notes if note)


def machine_notes(work: Workload, machine: Machine) -> tuple[str, ...]:
    """Return what holds on this machine, whether it fits or not."""
    gpu = machine.gpu
    simple = work.method is Method.SIMPLE
    notes = [
        None if gpu.exists else f"{gpu.name} was never sold: {gpu.notes}",
        None if simple else visible_bytes(gpu)[1],
        _precision_note(work.quant, gpu),
        _unknown_rate_note(work.quant, gpu),
        _vendor_note(work.engine, gpu),
        _node_note(machine),
        _layout_note(work, machine),
        None if simple else _rank_note(work, machine),
        None if simple else _evidence_note(work.engine, gpu),
    ]
    return tuple(note for note in notes if note)


def has_rates(gpu: Gpu) -> bool:
    """Whether a device's record holds what a speed needs."""
    return gpu.bandwidth_gb_per_s is not None and compute_flops(gpu) is not None


def _official_note(work: Workload, weights: Weights) -> str | None:
    model = work.model
    if not weights.is_official or model.checkpoint_bytes is None:
        return None
    size, formula = model.checkpoint_bytes / GB, float(weights.formula_bytes) / GB
    basis = model.checkpoint_bytes_basis or "published"
    if work.method is Method.SIMPLE:
        return f"official checkpoint {size:.2f} GB ({basis}); the page's label gives {formula:.2f} GB"
    served = float(weights.total_bytes) / GB
    if model.stored is not None:
        return (
            f"weights are {served:.2f} of the {size:.2f} GB in its files; the formula gives {formula:.2f} GB"
        )
    return (
        f"weights from the official checkpoint of {size:.2f} GB ({basis}), {served:.2f} GB of it served; "
        f"the formula gives {formula:.2f} GB"
    )


def model_context(model: Model) -> int | None:
    """Return the longest context a model is made or advertised for."""
    known = [limit for limit in (model.max_position_embeddings, model.advertised_context) if limit]
    return max(known) if known else None


def _context_note(model: Model, context_tokens: int) -> str | None:
    limit = model_context(model)
    if limit is None or context_tokens <= limit:
        return None
    return f"context {context_tokens:,} is above the model's maximum of {limit:,} tokens"


def _request_note(work: Workload) -> str | None:
    needed = work.input_tokens + work.output_tokens
    if needed <= work.context_tokens:
        return None
    return (
        f"a request of {work.input_tokens:,} + {work.output_tokens:,} tokens is longer than the context of "
        f"{work.context_tokens:,}: raise --context or shorten the request"
    )


def _format_note(work: Workload) -> str | None:
    is_gguf = work.quant.family is QuantFamily.GGUF
    if is_gguf and work.engine is not Engine.LLAMA_CPP:
        return f"{work.quant.name} is a GGUF format, which {work.engine} does not serve well: use llama.cpp"
    if work.engine is Engine.LLAMA_CPP and not is_gguf and work.quant.family is not QuantFamily.NATIVE:
        return f"llama.cpp reads GGUF files, and {work.quant.name} is none: use vllm, or a GGUF format"
    return None


def _cache_note(work: Workload) -> str | None:
    if work.engine is Engine.LLAMA_CPP and work.kv_dtype is KvDtype.FP8:
        return "llama.cpp has no fp8 cache: use --kv-dtype q8_0"
    if work.engine is not Engine.LLAMA_CPP and work.kv_dtype in (KvDtype.Q8_0, KvDtype.Q4_0):
        return f"{work.engine} has no {work.kv_dtype} cache: use --kv-dtype fp8"
    return None


def unused_note(work: Workload) -> str | None:
    """Say which settings of a server were given that memory and speed do not depend on."""
    simple = work.method is Method.SIMPLE
    if not simple and work.engine is not Engine.LLAMA_CPP:
        return None
    who = "the simple method" if simple else str(work.engine)
    unused = [name for name in work.serving if name in (_NOT_IN_SIMPLE if simple else _NOT_IN_LLAMA_CPP)]
    options = [f"--{name.replace('_', '-')}" for name in unused]
    said = [f"{who} does not use {', '.join(options)}"] if options else []
    if "max_sequences" in work.serving:
        said.append(f"{who} takes --max-sequences as the largest batch only")
    return "; ".join(said) or None


def _upcast_note(model: Model, quant: QuantFormat) -> str | None:
    native = model.native_dtype
    if quant.family is not QuantFamily.NATIVE or native in (None, "bf16", "fp16", "fp32"):
        return None
    return f"the model is published as {native}: {quant.name} takes more memory and gains no quality"


def _kept_note(work: Workload, weights: Weights) -> str | None:
    """Say which weights a format does not narrow."""
    bits = kept_expert_bits(work.model, work.quant)
    if bits is None or work.method is Method.SIMPLE or weights.is_official:
        return None
    share = float(weights.routed_bytes / weights.total_bytes)
    what = f"every GGUF file of {work.model.name} keeps its experts in MXFP4 ({bits:g} bits)"
    return f"{what}: {work.quant.name} is the format of the other {(1 - share) * 100:.0f} % of the weights"


def _window_note(work: Workload) -> str | None:
    """Say what an engine needs that keeps windowed layers at full length."""
    terms = [term for term in shape_of(work.model).cache_terms if np.isfinite(term.window_tokens)]
    if work.method is Method.SIMPLE or not terms:
        return None
    extra = sum(
        term.elements_per_token * max(0.0, work.context_tokens - term.window_tokens) for term in terms
    )
    more = extra * work.kv_dtype.bytes_per_element * work.batch / GIB
    if more < 0.005:
        return None
    return (
        f"windowed layers hold their window only; an engine that keeps them whole needs {more:.2f} GiB more"
    )


def _table_note(work: Workload) -> str | None:
    model = work.model
    if not model.ngram_table_params:
        return None
    bits = model.native_other_bits
    stored = "" if bits is None else f" at {bits:g} bits, as published,"
    if work.quant.family is QuantFamily.GGUF:
        stored = ""
    elif bits is None:
        stored = " at 16 bits (their own are not known)"
    return (
        f"lookup tables of {model.ngram_table_params / 1e9:.1f}B parameters are counted{stored} on the GPUs; "
        "an engine that supports it can keep them in host memory"
    )


def _tower_note(work: Workload) -> str | None:
    """Say what text alone would save, where the towers are a file of their own."""
    towers = shape_of(work.model).tower_params * constants().memory.tower_bits / 8 / GIB
    if work.method is Method.SIMPLE or work.engine is not Engine.LLAMA_CPP or towers < 0.005:
        return None
    return f"{towers:.2f} GiB of the weights are the encoder of images or sound (mmproj file)"


def _engine_version_note(work: Workload) -> str | None:
    model = work.model
    if work.engine is Engine.LLAMA_CPP and model.llama_cpp_support:
        return f"llama.cpp support: {model.llama_cpp_support}"
    if work.engine is Engine.VLLM and model.min_vllm_version:
        return f"needs vLLM {model.min_vllm_version} or newer"
    return None


def _precision_note(quant: QuantFormat, gpu: Gpu) -> str | None:
    if quant.compute_dtype == "bf16" or supports(gpu, quant.compute_dtype):
        return None
    return f"{gpu.name} does not multiply in {quant.compute_dtype}: {quant.name} saves memory only"


def _unknown_rate_note(quant: QuantFormat, gpu: Gpu) -> str | None:
    missing = []
    if gpu.bandwidth_gb_per_s is None:
        missing.append("memory bandwidth")
    if compute_flops(gpu, quant.compute_dtype) is None:
        missing.append("compute rate")
    return f"no speed: {' and '.join(missing)} of {gpu.name} not known" if missing else None


def runs_on(engine: Engine, gpu: Gpu) -> bool:
    """Whether an engine runs on devices of this vendor."""
    vendors = _ENGINE_VENDORS.get(engine)
    is_local_only = is_tensor_parallel(engine) and gpu.vendor in _LOCAL_ONLY_VENDORS
    return (not vendors or gpu.vendor in vendors) and not is_local_only


def _vendor_note(engine: Engine, gpu: Gpu) -> str | None:
    if runs_on(engine, gpu):
        return None
    return f"{engine} does not run on {gpu.vendor} devices: use llama.cpp with a GGUF format"


def _node_note(machine: Machine) -> str | None:
    node = machine.gpu.max_gpus_per_node
    if node is None or machine.gpu_count <= node:
        return None
    return f"one node holds {node}x {machine.gpu.name}: a network of 25 GB/s a GPU between nodes is assumed"


def _layout_note(work: Workload, machine: Machine) -> str | None:
    """Say where the layout that was asked for is not the one that is taken."""
    if work.layout == Layout() or work.method is Method.SIMPLE:
        return None
    if not is_tensor_parallel(work.engine):
        return f"{work.engine} splits layers: --pipeline, --expert-ranks and --attention-data are not taken"
    n = machine.gpu_count
    if not work.layout.divides(float(n)):
        return f"{n} GPUs do not divide into the groups that were asked for: all share each layer"
    return None


def _rank_note(work: Workload, machine: Machine) -> str | None:
    """Say how the cache lies on several GPUs."""
    n = machine.gpu_count
    if n == 1:
        return None
    if not is_tensor_parallel(work.engine):
        return f"llama.cpp splits layers: {n} GPUs hold more, one stream is no faster than on one"
    ranks = attention_ranks(work, n)
    if ranks == 1:
        return None
    kinds = {group.kind for group in work.model.attention_groups}
    if kinds & {AttentionKind.MLA, AttentionKind.COMPRESSED_LATENT}:
        if ranks == n:
            return f"the latent cache is kept on each of the {n} GPUs"
        return f"the latent cache of a sequence is kept {ranks} times on the {n} GPUs"
    fewest = min((int(term.kv_heads) for term in shape_of(work.model).cache_terms), default=ranks)
    if fewest < ranks or fewest % ranks:
        return f"{fewest} KV heads on {ranks} GPUs: some of the cache is kept more than once"
    return None


def _evidence_note(engine: Engine, gpu: Gpu) -> str | None:
    evidence = grade(gpu, engine)
    if evidence == "A":
        return None
    basis = "few measurements" if evidence == "B" else "no measurements, conservative constants"
    return f"speed of {gpu.name} with {engine}: {basis}; the range is wider"
