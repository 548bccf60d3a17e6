"""Read `planner/data/speed.toml`: what the estimates take from measurements, with sources."""

import tomllib
from dataclasses import dataclass
from functools import cache
from typing import Any

from planner.catalogue import build, read_text
from planner.catalogues.gpus import Gpu
from planner.workload import Engine


@dataclass(frozen=True, slots=True, kw_only=True)
class UnifiedShare:
    """How much of a memory shared with the CPU may serve the GPU."""

    vendor: str
    share: float
    note: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryConstants:
    """Buffers, visible memory, pages; names carry units, sources are in the file."""

    not_visible_gib: float
    reported_share_datacenter: float
    reported_share_card: float
    serving_memory_fraction: float
    llama_cpp_context_gib: float
    activation_base_gib: float
    activation_bytes_per_sequence_and_word: float
    activation_moe_gib: float
    sequences_large_memory: int
    sequences_small_memory: int
    large_memory_gib: float
    non_torch_gib_1_gpu: float
    non_torch_gib_2_gpus: float
    non_torch_gib_4_gpus: float
    non_torch_gib_stage: float
    activation_share_stage: float
    graphs_gib: float
    serving_block_tokens: int
    llama_cpp_block_tokens: int
    llama_cpp_ubatch_tokens: int
    llama_cpp_logits_bytes: float
    llama_cpp_hidden_bytes: float
    llama_cpp_mask_bytes: float
    llama_cpp_window_slack_tokens: int
    serving_window_slack_tokens: int
    recurrent_bytes: float
    llama_cpp_convolution_bytes: float
    serving_convolution_bytes: float
    tower_bits: float
    unified: tuple[UnifiedShare, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SimpleConstants:
    """The sizing page's figures."""

    usable_share: float
    runtime_gib: float
    bandwidth_share: float
    prefill_share: float
    full_factor: float
    full_buffers_gib: float
    lora_trained_share: float
    lora_bytes_per_trained: float
    lora_buffers_gib: float
    qlora_bytes_per_trained: float
    qlora_buffers_gib: float


@dataclass(frozen=True, slots=True, kw_only=True)
class StateBytes:
    """Bytes of one trained parameter."""

    weight: float
    gradient: float
    state: float  # moments, and the 32-bit copy where there is one
    step: float  # what the optimizer takes while it steps


@dataclass(frozen=True, slots=True, kw_only=True)
class FinetuneConstants:
    """Bytes of training; names carry units, sources are in the file."""

    mixed: StateBytes
    pure_bf16: StateBytes
    adam_8bit: StateBytes
    adapter: StateBytes
    activation_bytes_per_token_and_width: float
    expert_bytes_per_token_and_width: float
    checkpoint_bytes_per_token_and_width: float
    logits_bytes_per_word: float
    framework_gib: float
    nf4_bits: float


@dataclass(frozen=True, slots=True, kw_only=True)
class HostConstants:
    """The path between host memory and GPU, where none is given."""

    default_gb_per_s: float
    desktop_gb_per_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkConstants:
    """Links between GPUs."""

    network_latency_us: float
    network_gb_per_s: float
    pcie_gb_per_s_per_lane: dict[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeedConstants:
    """What is known of engines and not fitted."""

    server_chunk_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """
    Devices that share constants; a match key left out matches all.

    Grades of evidence: A results of this family, B of a neighbour or of one source only, C none.
    """

    key: str  # in the names of fitted constants
    name: str
    vendors: tuple[str, ...] = ()
    memory: tuple[str, ...] = ()
    architectures: tuple[str, ...] = ()
    classes: tuple[str, ...] = ()
    unified: bool | None = None
    server_grade: str
    llama_cpp_grade: str

    def holds(self, gpu: Gpu) -> bool:
        """Whether a device belongs here."""
        memory = gpu.memory_type or ""
        return (
            (not self.vendors or gpu.vendor in self.vendors)
            and (not self.memory or memory.startswith(self.memory))
            and (not self.architectures or gpu.architecture in self.architectures)
            and (not self.classes or gpu.device_class in self.classes)
            and (self.unified is None or gpu.is_unified_memory is self.unified)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RangeConstants:
    """How thin evidence widens a range."""

    grade_b: float
    grade_c: float
    medium_confidence: float
    low_confidence: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Constants:
    """The whole file."""

    memory: MemoryConstants
    host: HostConstants
    simple: SimpleConstants
    finetune: FinetuneConstants
    link: LinkConstants
    speed: SpeedConstants
    range: RangeConstants
    families: tuple[Family, ...]


@cache
def constants() -> Constants:
    """Return the constants of the estimates."""
    tables: dict[str, Any] = tomllib.loads(read_text("speed.toml"))
    per_lane = tables["link"].pop("pcie_gb_per_s_per_lane")
    link = {**tables["link"], "pcie_gb_per_s_per_lane": per_lane}
    return Constants(
        memory=build(MemoryConstants, tables["memory"]),
        host=build(HostConstants, tables["host"]),
        simple=build(SimpleConstants, tables["simple"]),
        finetune=build(FinetuneConstants, tables["finetune"]),
        link=LinkConstants(**link),
        speed=build(SpeedConstants, tables["speed"]),
        range=build(RangeConstants, tables["range"]),
        families=tuple(build(Family, table) for table in tables["family"]),
    )


def family_of(gpu: Gpu) -> Family:
    """Return the family of a device; the last one holds all."""
    return next(family for family in constants().families if family.holds(gpu))


def is_tensor_parallel(engine: Engine) -> bool:
    """Whether several GPUs share each layer; llama.cpp gives each GPU layers of its own."""
    return engine is not Engine.LLAMA_CPP
