"""What an engine can start of a sized configuration: the nearest that it has, or why it starts nothing."""

from dataclasses import replace

from planner.catalogues.quants import QuantFamily
from planner.errors import InvalidScenario
from planner.serving.constants import is_tensor_parallel
from planner.serving.heads import fewest_stages, most_gpus
from planner.serving.heads import refusal as heads_refusal
from planner.serving.notes import model_context, runs_on
from planner.workload import Engine, KvDtype, Machine, Method, Workload

# Formats that llama.cpp reads from a GGUF file: its own, one made of 16-bit weights; and MXFP4 (ggml.h).
IN_GGUF = (QuantFamily.GGUF, QuantFamily.NATIVE)


def refusal(work: Workload, machine: Machine, engine: Engine) -> InvalidScenario | None:
    """
    Return why an engine cannot start a configuration, None where it can.

    Servers refuse, or cut, a context above the model's maximum (vLLM: `VLLM_ALLOW_LONG_MAX_MODEL_LEN`).
    """
    quant, limit = work.quant, model_context(work.model)
    if not runs_on(engine, machine.gpu):
        others = " or ".join(other for other in Engine if runs_on(other, machine.gpu))
        allowed = f"{others}: {engine} does not run on {machine.gpu.vendor} devices"
        return InvalidScenario("engine", str(engine), allowed)
    if engine is Engine.LLAMA_CPP and quant.family not in IN_GGUF and quant.name != "MXFP4":
        return InvalidScenario("quant", quant.name, "a GGUF format: llama.cpp reads no other; or engine vllm")
    if engine is Engine.TENSORRT_LLM and quant.family is QuantFamily.GGUF:
        return InvalidScenario(
            "quant", quant.name, f"no GGUF format: {engine} reads none; or engine llama.cpp"
        )
    if is_tensor_parallel(engine) and limit is not None and work.context_tokens > limit:
        allowed = f"up to {limit:,} tokens, the model's maximum: {engine} refuses to start with more"
        return InvalidScenario("context", work.context_tokens, allowed)
    begun, count = started(work, engine), machine.gpu_count
    heads = heads_refusal(begun, count)
    if heads is not None:
        stages = fewest_stages(begun, count)
        piped = "" if stages is None else f", or a pipeline of {stages} stages"
        allowed = f"{most_gpus(begun, count)}{piped}: {heads}, and {engine} refuses that"
        return InvalidScenario("gpus", count, allowed)
    return None


def started(work: Workload, engine: Engine) -> Workload:
    """Return what an engine starts of a configuration; its memory is the engine's whatever the method was."""
    return replace(work, engine=engine, kv_dtype=cache_of(work.kv_dtype, engine), method=Method.CALIBRATED)


def cache_of(asked: KvDtype, engine: Engine) -> KvDtype:
    """Return the precision of the cache that is nearest to the one asked for among those of an engine."""
    if engine is Engine.LLAMA_CPP:
        return KvDtype.Q8_0 if asked is KvDtype.FP8 else asked
    return KvDtype.FP8 if asked in (KvDtype.Q8_0, KvDtype.Q4_0) else asked


def started_notes(work: Workload, engine: Engine) -> list[str]:
    """Say where an engine starts something else than was asked for."""
    notes, model = [], work.model
    cache, limit = cache_of(work.kv_dtype, engine), model_context(model)
    if cache is not work.kv_dtype:
        ratio = cache.bytes_per_element / work.kv_dtype.bytes_per_element
        size = f", of {ratio:.1f} times the size" if ratio > 1.5 else ""
        notes.append(f"{engine} has no {work.kv_dtype} cache: it is started with {cache}, the nearest{size}")
    if engine is Engine.LLAMA_CPP and limit is not None and work.context_tokens > limit:
        notes.append(f"llama.cpp cuts each sequence to the model's {limit:,} tokens")
    own = model.max_position_embeddings
    if own is not None and own < work.context_tokens <= (limit or 0):
        notes.append(
            f"context {work.context_tokens:,} is above the {own:,} tokens of the model's configuration: it "
            "takes the scaling of positions that the model's card names, or the server refuses"
        )
    if work.quant.family is QuantFamily.GGUF and engine is Engine.VLLM:
        notes.append("vllm reads GGUF with its plugin vllm-gguf-plugin, and files that are not split")
    return notes
