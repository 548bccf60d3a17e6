"""Commands and files that start a sized configuration; a repository is named only where it is known."""

import math
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from planner.catalogue import lookup_key
from planner.catalogues.models import Model, aliases_of
from planner.catalogues.quants import QuantFamily, QuantFormat
from planner.memory import is_native, visible_bytes
from planner.serving.constants import constants, is_tensor_parallel
from planner.sizing import Sizing
from planner.units import GIB
from planner.workload import Engine, KvDtype, Layout, Workload, engine_for

LAUNCH_SCHEMA = "breakeven.launch/1"

# Who publishes quantised copies, the most careful first; others follow in the order of the catalogue.
_OWNERS = ("nvidia", "RedHatAI", "unsloth", "ggml-org", "bartowski")
# Words of repository names that speak of the weight format only, without hyphens.
_QUANT_WORDS = (
    *(
        "gguf",
        "fp8",
        "kv",
        "dynamic",
        "block",
        "nvfp4",
        "mxfp4",
        "fp4",
        "awq",
        "gptq",
        "unsloth",
        "bnb",
        "4bit",
    ),
    *(
        "8bit",
        "int4",
        "int8",
        "w4a16",
        "w8a16",
        "w8a8",
        "quantized",
        "quant",
        "g128",
        r"\.",
        "ud",
        "mix",
        "autoround",
    ),
)
# Formats that vLLM and SGLang make from 16-bit weights while loading (their documentation, "quantization").
_ONLINE_FLAGS = {"FP8": "fp8", "NF4": "bitsandbytes"}
# Ports are the engines' own defaults.
_PORTS = {Engine.LLAMA_CPP: 8080, Engine.VLLM: 8000, Engine.SGLANG: 30000, Engine.TENSORRT_LLM: 8000}
# Images that the engines' projects publish, by vendor of the device.
_IMAGES = {
    (Engine.LLAMA_CPP, "NVIDIA"): "ghcr.io/ggml-org/llama.cpp:server-cuda",
    (Engine.LLAMA_CPP, "AMD"): "ghcr.io/ggml-org/llama.cpp:server-rocm",
    (Engine.LLAMA_CPP, "Intel"): "ghcr.io/ggml-org/llama.cpp:server-intel",
    (Engine.VLLM, "NVIDIA"): "vllm/vllm-openai:latest",
    (Engine.VLLM, "AMD"): "rocm/vllm:latest",
    (Engine.SGLANG, "NVIDIA"): "lmsysorg/sglang:latest",
    (Engine.TENSORRT_LLM, "NVIDIA"): "nvcr.io/nvidia/tensorrt-llm/release:latest",
}
# vLLM's own default below 70 GiB of memory; a larger batch has to be allowed.
_SERVING_SEQUENCES = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """How to start one configuration with one engine."""

    engine: Engine
    repository: str | None  # None: no repository in this format is known
    arguments: tuple[str, ...]  # the command, word by word
    command: str  # the same for a shell
    compose: str | None  # a docker compose file; None where no image is published for the device
    port: int
    notes: tuple[str, ...]

    def to_document(self) -> Mapping[str, object]:
        """Return one entry of `breakeven.launch/1`."""
        return {
            "engine": str(self.engine),
            "repository": self.repository,
            "command": self.command,
            "compose": self.compose,
            "port": self.port,
            "notes": list(self.notes),
        }


def launch(sizing: Sizing, engine: Engine | None = None) -> Launch:
    """
    Return what starts a sized configuration.

    Args:
        sizing: The configuration; its engine counts where none is given.
        engine: Another engine for the same machine and format.
    """
    work = sizing.workload
    chosen = engine or work.engine
    repository, online = repository_for(work.model, work.quant)
    build = {
        Engine.LLAMA_CPP: _llama_server,
        Engine.VLLM: _vllm,
        Engine.SGLANG: _sglang,
        Engine.TENSORRT_LLM: _trtllm,
    }[chosen]
    if online and chosen in (Engine.LLAMA_CPP, Engine.TENSORRT_LLM):
        repository = None
    name = repository or "$MODEL"
    arguments = build(sizing, name, _ONLINE_FLAGS[work.quant.name] if online else None)
    return Launch(
        engine=chosen,
        repository=repository,
        arguments=tuple(arguments),
        command=_shell(arguments),
        compose=_compose(sizing, chosen, arguments),
        port=_PORTS[chosen],
        notes=tuple(_notes(sizing, chosen, repository)),
    )


def launches(sizing: Sizing) -> list[Launch]:
    """Return the launches of all engines that read the format, the sizing's own first."""
    work = sizing.workload
    reads_gguf = work.quant.family is QuantFamily.GGUF
    others = [Engine.LLAMA_CPP] if reads_gguf else [Engine.VLLM, Engine.SGLANG, Engine.TENSORRT_LLM]
    if sizing.machine.gpu.vendor != "NVIDIA":
        others = [engine for engine in others if engine is not Engine.TENSORRT_LLM]
    return [launch(sizing, engine) for engine in dict.fromkeys([work.engine, *others])]


def to_document(sizing: Sizing) -> Mapping[str, object]:
    """Return all launches of a sizing as `breakeven.launch/1`."""
    return {
        "schema": LAUNCH_SCHEMA,
        "model": sizing.workload.model.id,
        "gpu": sizing.machine.gpu.name,
        "gpu_count": sizing.machine.gpu_count,
        "quant": sizing.workload.quant.name,
        "fits": sizing.memory.fits,
        "launches": [one.to_document() for one in launches(sizing)],
    }


def repository_for(model: Model, quant: QuantFormat) -> tuple[str | None, bool]:
    """
    Return the repository that holds a model in a format, and whether the engine quantises while loading.

    None where the catalogue knows no copy in that format: a name made up from a pattern may be another model.
    """
    if quant.family is QuantFamily.GGUF:
        return model.gguf_repo or _preferred(model, _copies(model, is_gguf=True)), False
    if is_native(model, quant):
        return model.hf_repo, False
    copies = [name for name, named in _copies(model, is_gguf=False) if named == quant.name]
    if copies:
        return _preferred(model, [(name, None) for name in copies]), False
    is_16_bit = (model.native_dtype or "") in ("bf16", "fp16")
    if quant.name in _ONLINE_FLAGS and is_16_bit and model.hf_repo:
        return model.hf_repo, True
    return None, False


def _copies(model: Model, *, is_gguf: bool) -> list[tuple[str, str | None]]:
    """
    Return repositories of quantised copies of the model's own weights, with their format.

    The catalogue's aliases share the shape: base models, older and newer versions of it are among them. Only
    those count whose name is the model's repository and words of quantisation.
    """
    return [
        (alias.name, alias.quant)
        for alias in aliases_of(model.id)
        if alias.kind == "quantised" and (alias.label == "GGUF") is is_gguf and is_copy_of(model, alias.name)
    ]


def is_copy_of(model: Model, repository: str) -> bool:
    """Whether a repository is, by its name, a quantised copy of the model's own repository."""
    own, name = (
        lookup_key(full.partition("/")[2]).removeprefix("meta") for full in (model.hf_repo or "", repository)
    )
    own = own.removesuffix("bf16").removesuffix("hf")
    if not own or not name.startswith(own):
        return False
    return re.fullmatch(f"(?:{'|'.join(_QUANT_WORDS)})*", name.removeprefix(own)) is not None


def _preferred(model: Model, copies: Sequence[tuple[str, str | None]]) -> str | None:
    """Return the copy of the model's own publisher, else of the first known publisher, else the first."""
    own = (model.hf_repo or "").partition("/")[0]
    for owner in (own, *_OWNERS):
        for name, _ in copies:
            if name.partition("/")[0] == owner:
                return name
    return copies[0][0] if copies else None


def _llama_server(sizing: Sizing, name: str, online: str | None) -> list[str]:
    del online  # GGUF files are made beforehand
    work = sizing.workload
    is_known = name != "$MODEL"
    source = ["-hf", f"{name}:{work.quant.name}"] if is_known else ["-m", name]
    if work.quant.family is QuantFamily.NATIVE and is_known:
        source = ["-m", "$MODEL"]  # a folder of safetensors has to be converted first
    layers = work.model.num_layers
    on_gpu = math.floor(layers * (1.0 - work.offload_fraction)) if work.offload_fraction else 999
    arguments = [
        "llama-server",
        *source,
        "--ctx-size",
        str(work.context_tokens * work.batch),
        "--parallel",
        str(work.batch),
        "--n-gpu-layers",
        str(on_gpu),
        "--flash-attn",
        "on",
    ]
    if sizing.machine.gpu_count > 1:
        arguments += ["--split-mode", "layer"]
    if work.kv_dtype in (KvDtype.Q8_0, KvDtype.Q4_0, KvDtype.BF16):
        arguments += ["--cache-type-k", str(work.kv_dtype), "--cache-type-v", str(work.kv_dtype)]
    return arguments


def _vllm(sizing: Sizing, name: str, online: str | None) -> list[str]:
    work, known = sizing.workload, constants().memory
    layout, ranks = _layout(sizing)
    arguments = ["vllm", "serve", name]
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
    if work.kv_dtype is KvDtype.FP8:
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
    if work.kv_dtype is KvDtype.FP8:
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
    layout = work.layout if is_tensor_parallel(work.engine) and work.layout.divides(count) else Layout()
    return layout, count // layout.pipeline


def _static_fraction(sizing: Sizing) -> float:
    """Return SGLang's share for weights and cache alone: the usable memory less what runs beside them."""
    machine = sizing.machine
    visible = visible_bytes(machine.gpu)[0] * machine.gpu_count
    fraction = sizing.workload.memory_fraction or constants().memory.serving_memory_fraction
    share = (visible * fraction - sizing.memory.runtime_bytes) / visible
    return max(0.1, math.floor(share * 100) / 100)


def _shell(arguments: Sequence[str]) -> str:
    """Return a command for a POSIX shell, one option a line; `$MODEL` stays to be filled in."""
    words = [f'"{word}"' if word.startswith("$") else shlex.quote(word) for word in arguments]
    lines, line = [], ""
    for word in words:
        if word.startswith("-") and line and not line.endswith("python"):
            lines.append(line)
            line = word
        else:
            line = f"{line} {word}".strip()
    return " \\\n  ".join([*lines, line])


def _compose(sizing: Sizing, engine: Engine, arguments: Sequence[str]) -> str | None:
    """Return a docker compose file, or None where no image is published for the device."""
    gpu = sizing.machine.gpu
    image = _IMAGES.get((engine, gpu.vendor))
    if image is None:
        return None
    port = _PORTS[engine]
    # The images of llama.cpp and vLLM start their server by themselves; the options follow.
    skipped = {Engine.LLAMA_CPP: 1, Engine.VLLM: 2 if gpu.vendor == "NVIDIA" else 0}.get(engine, 0)
    words = [*arguments[skipped:], "--host", "0.0.0.0", "--port", str(port)]
    lines = [
        "services:",
        "  model:",
        f"    image: {image}",
        "    ipc: host",
        "    ports:",
        f'      - "127.0.0.1:{port}:{port}"',
        "    volumes:",
        "      - models:/cache",
        "    environment:",
        "      - HF_TOKEN",
        "      - XDG_CACHE_HOME=/cache",  # where the hub's client, vLLM and llama.cpp keep what they fetch
        "    command:",
        *(f'      - "{word.replace("$MODEL", "${MODEL:?set MODEL}")}"' for word in words),
        *_device_lines(gpu.vendor, sizing.machine.gpu_count),
        "volumes:",
        "  models:",
    ]
    return "\n".join(lines) + "\n"


def _device_lines(vendor: str, gpu_count: int) -> list[str]:
    """Return how a container reaches the GPUs of a vendor."""
    if vendor == "NVIDIA":
        return [
            "    deploy:",
            "      resources:",
            "        reservations:",
            "          devices:",
            "            - driver: nvidia",
            f"              count: {gpu_count}",
            "              capabilities: [gpu]",
        ]
    devices = ["/dev/dri"] if vendor == "Intel" else ["/dev/kfd", "/dev/dri"]
    return ["    devices:", *(f"      - {device}" for device in devices)]


def _notes(sizing: Sizing, engine: Engine, repository: str | None) -> list[str]:
    """Return what the command alone does not say."""
    work = sizing.workload
    notes = []
    if not sizing.memory.fits:
        notes.append("by the estimate this does not fit: it will fail to start or run out of memory")
    if repository is None:
        notes.append(
            f"no repository of {work.model.name} in {work.quant.name} is known: set MODEL to one or to a path"
        )
    elif engine is Engine.LLAMA_CPP and work.quant.family is QuantFamily.NATIVE:
        notes.append(f"convert {repository} first (convert_hf_to_gguf.py) and set MODEL to the file")
    if work.engine is not engine:
        notes.append(f"sized for {work.engine}: memory and speed differ with {engine}")
    if work.drafted_tokens and not (engine is Engine.VLLM and work.model.mtp_layers):
        notes.append(
            f"{engine} is started without speculative decoding here: it needs a draft for this model"
        )
    if engine is Engine.TENSORRT_LLM and work.layout.attention_data > 1:
        notes.append("data-parallel attention is set in the file given by --extra_llm_api_options")
    return [*notes, *_engine_notes(work, engine)]


def _engine_notes(work: Workload, engine: Engine) -> list[str]:
    notes = []
    if engine is Engine.VLLM and work.model.min_vllm_version:
        notes.append(f"needs vLLM {work.model.min_vllm_version} or newer")
    if engine is Engine.LLAMA_CPP and work.model.llama_cpp_support:
        notes.append(f"llama.cpp support: {work.model.llama_cpp_support}")
    if engine is Engine.TENSORRT_LLM and work.kv_dtype is KvDtype.FP8:
        notes.append(
            "an fp8 cache is set in the file given by --extra_llm_api_options: kv_cache_config.dtype"
        )
    if work.offload_fraction and engine in (Engine.SGLANG, Engine.TENSORRT_LLM):
        notes.append(f"{engine} is started without offload here: use vllm or llama.cpp for it")
    if engine_for("auto", work.quant) is not engine and work.quant.family is QuantFamily.GGUF:
        notes.append(f"{engine} does not serve GGUF files well: use llama.cpp")
    return notes
