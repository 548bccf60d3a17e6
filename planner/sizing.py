"""Sizes and speeds of one configuration or of many: memory, speed and the notes that belong to them."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from enum import StrEnum

from planner.units import GB, GIB
from planner.workload import Machine, Workload

SIZE_SCHEMA = "breakeven.size/1"


class Bound(StrEnum):
    """What limits the decode step."""

    MEMORY = "memory"
    COMPUTE = "compute"
    INTERCONNECT = "interconnect"
    HOST = "host"


class SpeedSource(StrEnum):
    """Where a speed comes from."""

    ESTIMATED = "estimated"
    MEASURED = "measured"


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """Memory of one replica, summed over its GPUs; bytes."""

    weights_bytes: float
    kv_cache_bytes: float
    state_bytes: float
    runtime_bytes: float
    offloaded_bytes: float  # of the weights, in host memory; not part of the total
    usable_bytes: float
    fits: bool
    max_context_tokens: int | None  # None: not even one token fits
    max_batch: int
    basis: str  # official-size or config-formula

    @property
    def total_bytes(self) -> float:
        """What has to lie in GPU memory. [B]"""
        on_gpu = self.weights_bytes - self.offloaded_bytes
        return on_gpu + self.kv_cache_bytes + self.state_bytes + self.runtime_bytes

    def to_document(self) -> Mapping[str, object]:
        """Return the `memory` part of `breakeven.size/1`."""
        total = self.total_bytes
        return {
            "weights_gib": self.weights_bytes / GIB,
            "kv_cache_gib": self.kv_cache_bytes / GIB,
            "state_gib": self.state_bytes / GIB,
            "runtime_gib": self.runtime_bytes / GIB,
            "offloaded_gib": self.offloaded_bytes / GIB,
            "total_gib": total / GIB,
            "total_gb": total / GB,
            "usable_gib": self.usable_bytes / GIB,
            "headroom_gib": (self.usable_bytes - total) / GIB,
            "utilization": total / self.usable_bytes,
            "fits": self.fits,
            "max_context_tokens": self.max_context_tokens,
            "max_batch": self.max_batch,
            "basis": self.basis,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Speed:
    """Speed of one replica; the definitions are those of docs/interface.md."""

    decode_tokens_per_s: float
    decode_low: float
    decode_high: float
    aggregate_tokens_per_s: float
    aggregate_low: float
    aggregate_high: float
    prefill_tokens_per_s: float
    ttft_ms: float
    tpot_ms: float
    bound: Bound
    source: SpeedSource = SpeedSource.ESTIMATED

    def to_document(self) -> Mapping[str, object]:
        """Return the `speed` part of `breakeven.size/1`."""
        return {
            "decode_tokens_per_s": self.decode_tokens_per_s,
            "decode_low": self.decode_low,
            "decode_high": self.decode_high,
            "aggregate_tokens_per_s": self.aggregate_tokens_per_s,
            "aggregate_low": self.aggregate_low,
            "aggregate_high": self.aggregate_high,
            "prefill_tokens_per_s": self.prefill_tokens_per_s,
            "ttft_ms": self.ttft_ms,
            "tpot_ms": self.tpot_ms,
            "bound": str(self.bound),
            "source": str(self.source),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizing:
    """One configuration, sized; `speed` is None where it does not fit."""

    workload: Workload
    machine: Machine
    memory: Memory
    speed: Speed | None
    notes: tuple[str, ...] = ()

    def to_document(self) -> Mapping[str, object]:
        """Return the whole as `breakeven.size/1`; speeds are null where it does not fit."""
        work, model = self.workload, self.workload.model
        nothing: dict[str, object] = dict.fromkeys(field.name for field in fields(Speed))
        return {
            "schema": SIZE_SCHEMA,
            "model": {
                "id": model.id,
                "name": model.name,
                "total_params": model.main_params,
                "active_params": model.active_params,
                "evidence": model.evidence,
            },
            "gpu": self.machine.gpu.name,
            "gpu_count": self.machine.gpu_count,
            "quant": work.quant.name,
            "context_tokens": work.context_tokens,
            "batch": work.batch,
            "kv_dtype": str(work.kv_dtype),
            "engine": str(work.engine),
            "method": str(work.method),
            "offload_fraction": work.offload_fraction,
            "memory": self.memory.to_document(),
            "speed": nothing if self.speed is None else self.speed.to_document(),
            "notes": list(self.notes),
        }
