"""What is asked of a machine: a model served in one way (`Workload`) on some GPUs (`Machine`)."""

from dataclasses import dataclass
from enum import StrEnum

from planner.catalogues.gpus import Gpu
from planner.catalogues.models import Model
from planner.catalogues.quants import QuantFamily, QuantFormat
from planner.catalogues.results import Result
from planner.errors import InvalidScenario

# GPUs that one machine, or one group of machines, may have.
MOST_GPUS = 1024
# Tokens that a draft proposes at most; published ones propose up to 8.
MOST_DRAFTED = 16


class Engine(StrEnum):
    """A serving engine."""

    VLLM = "vllm"
    SGLANG = "sglang"
    LLAMA_CPP = "llama.cpp"
    TENSORRT_LLM = "tensorrt-llm"


class Method(StrEnum):
    """How sizes and speeds are computed."""

    CALIBRATED = "calibrated"
    SIMPLE = "simple"  # the sizing page's arithmetic


class KvDtype(StrEnum):
    """Precision of the attention cache."""

    FP16 = "fp16"
    BF16 = "bf16"
    FP8 = "fp8"
    Q8_0 = "q8_0"
    Q4_0 = "q4_0"

    @property
    def bytes_per_element(self) -> float:
        """Bytes of one cached element, block scales included. [B]"""
        # ggml block sizes: q8_0 34 bytes for 32 values, q4_0 18 bytes for 32 values.
        return {"fp16": 2.0, "bf16": 2.0, "fp8": 1.0, "q8_0": 1.0625, "q4_0": 0.5625}[self.value]


def engine_for(name: str, quant: QuantFormat) -> Engine:
    """Return the engine named, or for `auto` llama.cpp for GGUF formats and vLLM for the others."""
    if name == "auto":
        return Engine.LLAMA_CPP if quant.family is QuantFamily.GGUF else Engine.VLLM
    try:
        return Engine(name)
    except ValueError:
        raise InvalidScenario("engine", name, "one of auto, " + ", ".join(Engine)) from None


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """How a server lays a model out over its GPUs, where that is not all of them on each layer."""

    pipeline: int = 1  # groups with layers of their own
    expert_ranks: int = 1  # among which whole experts are shared out; 1: each expert is split among all
    attention_data: int = 1  # groups with all of attention and sequences of their own

    def __post_init__(self) -> None:
        for name in ("pipeline", "expert_ranks", "attention_data"):
            if not 1 <= getattr(self, name) <= MOST_GPUS:
                raise InvalidScenario(name, getattr(self, name), f"1 to {MOST_GPUS} groups of GPUs")

    def divides(self, gpu_count: float) -> bool:
        """Whether so many GPUs divide into these groups."""
        ranks = gpu_count / self.pipeline
        return all((ranks / groups).is_integer() for groups in (1, self.expert_ranks, self.attention_data))

    def taken(self, gpu_count: int) -> "Layout":
        """Return the layout that so many GPUs get: one that does not divide them is not taken."""
        return self if self.divides(gpu_count) else Layout()

    def attention_ranks(self, gpu_count: int) -> int:
        """Return how many of so many GPUs share the attention of a layer."""
        return gpu_count // self.pipeline // self.attention_data


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """A model, its weight format, and the requests it is to serve."""

    model: Model
    quant: QuantFormat
    context_tokens: int = 8192  # per sequence
    batch: int = 1  # sequences at once
    kv_dtype: KvDtype = KvDtype.FP16
    engine: Engine = Engine.LLAMA_CPP
    method: Method = Method.CALIBRATED
    offload_fraction: float = 0.0  # of the weights, in host memory
    host_gb_per_s: float | None = None
    input_tokens: int = 4096
    output_tokens: int = 512
    layout: Layout = Layout()
    cached_input: float = 0.0  # share of each prompt that a cache of prefixes holds
    drafted_tokens: int = 0  # proposed by a draft of one layer (MTP, EAGLE) and verified in one step
    acceptance: float | None = None  # of each drafted token
    memory_fraction: float | None = None  # of a server; None: the engine's own
    most_sequences: int | None = None  # for which a server is set up; None: the engine's own
    own_results: tuple[Result, ...] = ()  # measured by the user; they correct the estimates

    def __post_init__(self) -> None:
        if self.context_tokens < 1:
            raise InvalidScenario("context", self.context_tokens, "at least 1 token")
        if self.batch < 1:
            raise InvalidScenario("batch", self.batch, "at least 1 sequence")
        if not 0.0 <= self.offload_fraction <= 1.0:
            raise InvalidScenario("offload", self.offload_fraction, "a fraction from 0 to 1")
        if self.host_gb_per_s is not None and not 0 < self.host_gb_per_s < float("inf"):
            raise InvalidScenario("host_gb_per_s", self.host_gb_per_s, "a bandwidth above 0 GB/s")
        self._check_serving()
        if self.input_tokens < 1:
            raise InvalidScenario("input_tokens", self.input_tokens, "at least 1 token")
        if self.output_tokens < 1:
            raise InvalidScenario("output_tokens", self.output_tokens, "at least 1 token")

    @property
    def serving(self) -> dict[str, float | int]:
        """The settings of serving that are not at their default, by the names of their options."""
        settings = {
            "cached_input": self.cached_input or None,
            "draft_tokens": self.drafted_tokens or None,
            "acceptance": self.acceptance,
            "memory_fraction": self.memory_fraction,
            "max_sequences": self.most_sequences,
        }
        groups = ("pipeline", "expert_ranks", "attention_data")
        settings |= {name: getattr(self.layout, name) for name in groups if getattr(self.layout, name) > 1}
        return {name: value for name, value in settings.items() if value is not None}

    def _check_serving(self) -> None:
        if not 0.0 <= self.cached_input < 1.0:
            raise InvalidScenario("cached_input", self.cached_input, "a fraction from 0 up, below 1")
        if not 0 <= self.drafted_tokens <= MOST_DRAFTED:
            raise InvalidScenario("draft_tokens", self.drafted_tokens, f"1 to {MOST_DRAFTED} tokens")
        if self.acceptance is not None and not 0.0 <= self.acceptance < 1.0:
            raise InvalidScenario("acceptance", self.acceptance, "a probability from 0 up, below 1")
        if (self.drafted_tokens > 0) is not (self.acceptance is not None):
            raise InvalidScenario(
                "acceptance", self.acceptance, "draft_tokens and acceptance together: how many, how often"
            )
        if self.memory_fraction is not None and not 0.0 < self.memory_fraction <= 1.0:
            raise InvalidScenario("memory_fraction", self.memory_fraction, "a fraction above 0 and up to 1")
        if self.most_sequences is not None and self.most_sequences < 1:
            raise InvalidScenario("max_sequences", self.most_sequences, "at least 1 sequence")
        if self.most_sequences is not None and self.most_sequences < self.batch:
            allowed = (
                f"at least batch {self.batch}, or a batch up to {self.most_sequences}: the others would wait"
            )
            raise InvalidScenario("max_sequences", self.most_sequences, allowed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """Some GPUs of one kind that serve one replica together."""

    gpu: Gpu
    gpu_count: int = 1

    def __post_init__(self) -> None:
        if self.gpu_count < 1:
            raise InvalidScenario("gpus", self.gpu_count, "at least 1 GPU")
