"""Commands and files that start a sized configuration; a repository is named only where it is known."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from planner.catalogues.quants import QuantFamily
from planner.errors import InvalidScenario
from planner.serving.commands import arguments_of
from planner.serving.repositories import ONLINE_FLAGS, repository_for
from planner.serving.speeds import SpeedSource
from planner.serving.startable import IN_GGUF, cache_of, refusal, started, started_notes
from planner.sizing import Sizing, size
from planner.units import GIB
from planner.workload import Engine, KvDtype, Workload

LAUNCH_SCHEMA = "breakeven.launch/1"

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

    Raises:
        InvalidScenario: if the engine cannot start what was sized.
    """
    work = sizing.workload
    chosen = engine or work.engine
    why = _why_not(sizing, chosen)
    if why is not None:
        raise why
    repository, online = repository_for(work.model, work.quant)
    if (online and chosen is Engine.TENSORRT_LLM) or _takes_a_file(work, chosen):
        repository = None
    name = repository or "$MODEL"
    arguments = arguments_of(chosen, sizing, name, ONLINE_FLAGS[work.quant.name] if online else None)
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
    """
    Return the launches of all engines that can start it, the sizing's own first.

    Raises:
        InvalidScenario: if its own cannot.
    """
    work = sizing.workload
    reads_gguf = work.quant.family is QuantFamily.GGUF
    others = [Engine.LLAMA_CPP] if reads_gguf else [Engine.VLLM, Engine.SGLANG, Engine.TENSORRT_LLM]
    others = [engine for engine in others if _why_not(sizing, engine) is None]
    return [launch(sizing, engine) for engine in dict.fromkeys([work.engine, *others])]


def _why_not(sizing: Sizing, engine: Engine) -> InvalidScenario | None:
    """Return why an engine cannot start what was sized; what has run, as its speed was measured, can."""
    is_measured = sizing.speed is not None and sizing.speed.source is SpeedSource.MEASURED
    if is_measured and engine is sizing.workload.engine:
        return None
    return refusal(sizing.workload, sizing.machine, engine)


def to_document(sizing: Sizing) -> Mapping[str, object]:
    """Return all launches of a sizing as `breakeven.launch/1`."""
    return {
        "schema": LAUNCH_SCHEMA,
        "model": sizing.workload.model.id,
        "gpu": sizing.machine.gpu.name,
        "gpu_count": sizing.machine.gpu_count,
        "quant": sizing.workload.quant.name,
        "fits": sizing.memory.fits,
        "notes": list(sizing.notes),
        "launches": [one.to_document() for one in launches(sizing)],
    }


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


def _takes_a_file(work: Workload, engine: Engine) -> bool:
    """Whether an engine takes the format as a file of the user's, and from no repository."""
    family = work.quant.family
    if engine is Engine.LLAMA_CPP:
        return family not in IN_GGUF
    return engine is Engine.SGLANG and family is QuantFamily.GGUF


def _notes(sizing: Sizing, engine: Engine, repository: str | None) -> list[str]:
    """Return what the command alone does not say, and what is known of what it starts."""
    work = sizing.workload
    notes, known = _known(sizing, engine)
    if _takes_a_file(work, engine):
        notes.append(f"set MODEL to a GGUF file of {work.model.name} in {work.quant.name}")
    elif repository is None:
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
    return [*notes, *started_notes(work, engine), *_engine_notes(work, engine), *known]


def _known(sizing: Sizing, engine: Engine) -> tuple[list[str], list[str]]:
    """Return whether what is started would not fit, in words, and what is known of it on this machine."""
    work, machine = sizing.workload, sizing.machine
    start = started(work, engine)
    begun = sizing if start == work else size(start, machine)
    known = list(sizing.notes if engine is work.engine else begun.notes)
    if not sizing.memory.fits:
        return ["by the estimate this does not fit: it will fail to start or run out of memory"], known
    if not begun.memory.fits:
        total, usable = begun.memory.total_bytes / GIB, begun.memory.usable_bytes / GIB
        figures = f"{total:.2f} of {usable:.2f} GiB usable"
        return [f"what is started does not fit by the calibrated estimate: {figures}"], known
    return [], known


def _engine_notes(work: Workload, engine: Engine) -> list[str]:
    notes = []
    if engine is Engine.TENSORRT_LLM and work.layout.attention_data > 1:
        notes.append("data-parallel attention is set in the file given by --extra_llm_api_options")
    if engine is Engine.TENSORRT_LLM and cache_of(work.kv_dtype, engine) is KvDtype.FP8:
        notes.append(
            "an fp8 cache is set in the file given by --extra_llm_api_options: kv_cache_config.dtype"
        )
    if work.offload_fraction and engine in (Engine.SGLANG, Engine.TENSORRT_LLM):
        notes.append(f"{engine} is started without offload here: use vllm or llama.cpp for it")
    return notes
