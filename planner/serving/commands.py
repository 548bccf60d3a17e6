"""The command that starts a sized configuration, word by word: one function for each engine."""

import math

from planner.catalogues.quants import QuantFamily
from planner.memory import visible_bytes
from planner.serving.constants import constants, is_tensor_parallel
from planner.serving.hosting import layers_to_host
from planner.serving.startable import cache_of
from planner.sizing import Sizing
from planner.units import GIB
from planner.workload import Engine, KvDtype, Layout

# vLLM's own default below 70 GiB of memory; a larger batch has to be allowed.
_SERVING_SEQUENCES = 256


def arguments_of(engine: Engine, sizing: Sizing, name: str, online: str | None) -> list[str]:
    """
    Return the command of an engine.

    Args:
        engine: Which server.
        sizing: The configuration.
        name: Repository or path of the weights.
        online: The format that the engine makes of 16-bit weights while loading, None where it makes none.
    """
    build = {
        Engine.LLAMA_CPP: _llama_server,
        Engine.VLLM: _vllm,
        Engine.SGLANG: _sglang,
        Engine.TENSORRT_LLM: _trtllm,
    }[engine]
    return build(sizing, name, online)


def _llama_server(sizing: Sizing, name: str, online: str | None) -> list[str]:
    del online  # GGUF files are made beforehand
    work = sizing.workload
    is_known = name != "$MODEL"
    source = ["-hf", f"{name}:{work.quant.name}"] if is_known else ["-m", name]
    if work.quant.family is QuantFamily.NATIVE and is_known:
        source = ["-m", "$MODEL"]  # a folder of safetensors has to be converted first
    held = layers_to_host(work)
    on_gpu = work.model.num_layers - held.whole if held.whole else 999
    arguments = [
        "llama-server",
        *source,
        "--ctx-size",
        str(work.context_tokens * work.batch),
        "--parallel",
        str(work.batch),
        "--n-gpu-layers",
        str(on_gpu),
        *(["--n-cpu-moe", str(held.experts)] if held.experts else []),
        "--flash-attn",
        "on",
    ]
    if sizing.machine.gpu_count > 1:
        arguments += ["--split-mode", "layer"]
    cache = cache_of(work.kv_dtype, Engine.LLAMA_CPP)
    if cache is not KvDtype.FP16:
        arguments += ["--cache-type-k", str(cache), "--cache-type-v", str(cache)]
    return arguments


def _vllm(sizing: Sizing, name: str, online: str | None) -> list[str]:
    work, known = sizing.workload, constants().memory
    layout, ranks = _layout(sizing)
    arguments = ["vllm", "serve", name]
    if work.quant.family is QuantFamily.GGUF:
        arguments = ["vllm", "serve", name if name == "$MODEL" else f"{name}:{work.quant.name}"]
        arguments += ["--tokenizer", work.model.hf_repo] if work.model.hf_repo else []
    if ranks > layout.attention_data:
        arguments += ["--tensor-parallel-size", str(ranks // layout.attention_data)]
    if layout.pipeline > 1:
        arguments += ["--pipeline-parallel-size", str(layout.pipeline)]
    if layout.attention_data > 1:
        arguments += ["--data-parallel-size", str(layout.attention_data)]
    if layout.expert_ranks > 1:
        arguments += ["--enable-expert-parallel"]
    arguments += [
        "--max-model-len",
        str(work.context_tokens),
        "--gpu-memory-utilization",
        f"{work.memory_fraction or known.serving_memory_fraction:.2f}",
    ]
    if work.drafted_tokens and work.model.mtp_layers:
        settings = f'{{"method":"mtp","num_speculative_tokens":{work.drafted_tokens}}}'
        arguments += ["--speculative-config", settings]
    if online:
        arguments += ["--quantization", online]
    if cache_of(work.kv_dtype, Engine.VLLM) is KvDtype.FP8:
        arguments += ["--kv-cache-dtype", "fp8"]
    if work.most_sequences or work.batch > _SERVING_SEQUENCES:
        arguments += ["--max-num-seqs", str(work.most_sequences or work.batch)]
    if work.offload_fraction:
        per_gpu = sizing.memory.offloaded_bytes / sizing.machine.gpu_count / GIB
        arguments += ["--cpu-offload-gb", f"{math.ceil(per_gpu)}"]
    return arguments


def _sglang(sizing: Sizing, name: str, online: str | None) -> list[str]:
    work = sizing.workload
    layout, ranks = _layout(sizing)
    arguments = ["python", "-m", "sglang.launch_server", "--model-path", name]
    if ranks > 1:
        arguments += ["--tp", str(ranks)]
    if layout.pipeline > 1:
        arguments += ["--pp-size", str(layout.pipeline)]
    if layout.attention_data > 1:
        arguments += ["--dp", str(layout.attention_data), "--enable-dp-attention"]
    if layout.expert_ranks > 1:
        arguments += ["--ep-size", str(layout.expert_ranks)]
    arguments += [
        "--context-length",
        str(work.context_tokens),
        "--mem-fraction-static",
        f"{_static_fraction(sizing):.2f}",
    ]
    if online:
        arguments += ["--quantization", online]
    if cache_of(work.kv_dtype, Engine.SGLANG) is KvDtype.FP8:
        arguments += ["--kv-cache-dtype", "fp8_e4m3"]
    if work.most_sequences or work.batch > _SERVING_SEQUENCES:
        arguments += ["--max-running-requests", str(work.most_sequences or work.batch)]
    return arguments


def _trtllm(sizing: Sizing, name: str, online: str | None) -> list[str]:
    del online
    work = sizing.workload
    layout, ranks = _layout(sizing)
    arguments = ["trtllm-serve", name]
    if ranks > 1:
        arguments += ["--tp_size", str(ranks)]
    if layout.pipeline > 1:
        arguments += ["--pp_size", str(layout.pipeline)]
    if layout.expert_ranks > 1:
        arguments += ["--ep_size", str(layout.expert_ranks)]
    return [
        *arguments,
        "--max_seq_len",
        str(work.context_tokens),
        "--max_batch_size",
        str(work.most_sequences or work.batch),
        "--kv_cache_free_gpu_memory_fraction",
        f"{work.memory_fraction or constants().memory.serving_memory_fraction:.2f}",
    ]


def _layout(sizing: Sizing) -> tuple[Layout, int]:
    """Return the layout as the sizing took it, and the ranks that share each layer."""
    work, count = sizing.workload, sizing.machine.gpu_count
    layout = work.layout.taken(count) if is_tensor_parallel(work.engine) else Layout()
    return layout, count // layout.pipeline


def _static_fraction(sizing: Sizing) -> float:
    """Return SGLang's share for weights and cache alone: the usable memory less what runs beside them."""
    machine = sizing.machine
    visible = visible_bytes(machine.gpu)[0] * machine.gpu_count
    fraction = sizing.workload.memory_fraction or constants().memory.serving_memory_fraction
    share = (visible * fraction - sizing.memory.runtime_bytes) / visible
    return max(0.1, math.floor(share * 100) / 100)
