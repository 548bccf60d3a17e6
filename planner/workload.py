"""What is asked of a machine: a model served in one way (`Workload`) on some GPUs (`Machine`)."""

from dataclasses import dataclass
from enum import StrEnum

from planner.errors import InvalidScenario
from planner.gpus import Gpu
from planner.models import Model
from planner.quants import QuantFamily, QuantFormat
from planner.results import Result


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
        if self.input_tokens < 1:
            raise InvalidScenario("input_tokens", self.input_tokens, "at least 1 token")
        if self.output_tokens < 1:
            raise InvalidScenario("output_tokens", self.output_tokens, "at least 1 token")


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """Some GPUs of one kind that serve one replica together."""

    gpu: Gpu
    gpu_count: int = 1

    def __post_init__(self) -> None:
        if self.gpu_count < 1:
            raise InvalidScenario("gpus", self.gpu_count, "at least 1 GPU")
