"""Devices as columns of numbers, one value for each, NaN where unknown: what the formulas of speed take."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from planner.constants import FamilyConstants, constants, family_of
from planner.gpus import DeviceClass, Gpu
from planner.memory import Numbers, visible_bytes
from planner.units import GB
from planner.workload import Engine

Column = NDArray[np.float64]

# Precisions of matrix products, in the order of the columns of `Devices.peak_flops`.
PRECISIONS = ("bf16", "fp8", "fp4", "int8")
_PCIE = re.compile(r"(\d)\.\d(?:/\d\.\d)? x(\d+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Devices:
    """Columns over devices; those of a grid carry further axes of length 1."""

    visible_bytes: Column
    label_gb: Column
    bandwidth_bytes_per_s: Column
    peak_bf16_flops: (
        Column  # what a product runs at, by precision of the weights; weight-only formats at 16 bit
    )
    peak_fp8_flops: Column
    peak_fp4_flops: Column
    peak_int8_flops: Column
    link_bytes_per_s: Column  # per direction, between GPUs that are linked
    link_latency_s: Column
    linked_gpus: Column  # how many GPUs that link spans
    pcie_bytes_per_s: Column
    host_stream_bytes_per_s: (
        Column  # most that weights for a prompt come in at, whatever the host memory does
    )
    node_gpus: Column
    efficiency: Column
    cache_efficiency: Column
    layer_overhead_s: Column
    compute_share: Column
    range_factor: Column  # how much the range widens for thin evidence

    def reshaped(self, change: Callable[[Column], Any]) -> "Devices":
        """Return the same columns with another shape."""
        return Devices(**{field.name: change(getattr(self, field.name)) for field in fields(self)})

    def peak_flops(self, precision: str) -> Column:
        """Return the peak of products in this precision of weights. [FLOP/s]"""
        column: Column = getattr(self, f"peak_{precision}_flops")
        return column


def devices(gpus: Sequence[Gpu], engine: Engine) -> Devices:
    """Return the columns of these devices for one kind of engine."""
    rows = [_row(gpu, engine) for gpu in gpus]
    return Devices(**{name: np.array([row[name] for row in rows], dtype=np.float64) for name in rows[0]})


def supports(gpu: Gpu, precision: str) -> bool:
    """Whether the hardware multiplies in this precision, as far as its record says."""
    return _tflops(gpu, precision) is not None


def compute_flops(gpu: Gpu, precision: str = "bf16") -> float | None:
    """
    Return the dense peak for weights in this precision, None where none is known. [FLOP/s]

    Hardware without the precision reads the weights in it and computes in 16 bit.
    """
    for candidate in (_tflops(gpu, precision), gpu.bf16_dense_tflops, gpu.fp16_dense_tflops, gpu.fp32_tflops):
        if candidate is not None:
            return candidate * 1e12
    return None


def _tflops(gpu: Gpu, precision: str) -> float | None:
    by_precision = {
        "bf16": gpu.bf16_dense_tflops,
        "fp8": gpu.fp8_dense_tflops,
        "fp4": gpu.fp4_dense_tflops,
        "int8": gpu.int8_dense_tops,
    }
    return by_precision[precision]


def _effective_flops(gpu: Gpu, precision: str, engine: Engine) -> float:
    """Return the peak in a precision, less what engines lose in it; NaN where no peak is known. [FLOP/s]"""
    known = constants().engine(engine)
    shares = {
        "bf16": 1.0,
        "fp8": known.compute_share_fp8,
        "fp4": known.compute_share_fp4,
        "int8": known.compute_share_int8,
    }
    plain = _or_nan(compute_flops(gpu))
    peak = _or_nan(compute_flops(gpu, precision))
    return peak * shares[precision] if peak > plain else plain


def _row(gpu: Gpu, engine: Engine) -> dict[str, float]:
    """Return the numbers of one device."""
    link, latency, span = _link(gpu)
    known = family_constants(gpu, engine)
    return {
        "visible_bytes": visible_bytes(gpu)[0],
        "label_gb": gpu.memory_gb_vendor,
        "bandwidth_bytes_per_s": _or_nan(gpu.bandwidth_gb_per_s) * GB,
        **{f"peak_{name}_flops": _effective_flops(gpu, name, engine) for name in PRECISIONS},
        "link_bytes_per_s": link,
        "link_latency_s": latency,
        "linked_gpus": span,
        "pcie_bytes_per_s": _pcie_bytes_per_s(gpu),
        # The CPU may compute single tokens at the speed of its memory; prompts are computed on the GPU.
        "host_stream_bytes_per_s": np.inf if gpu.coherent_memory else constants().host.default_gb_per_s * GB,
        "node_gpus": float(gpu.max_gpus_per_node or 8),
        "efficiency": known.efficiency,
        "cache_efficiency": known.cache_efficiency,
        "layer_overhead_s": known.layer_overhead_us * 1e-6,
        "compute_share": known.compute_share,
        "range_factor": range_factor(gpu, engine),
    }


def family_constants(gpu: Gpu, engine: Engine) -> FamilyConstants:
    """Return what the family of a device reaches with an engine of this kind."""
    family = family_of(gpu)
    return family.llama_cpp if engine is Engine.LLAMA_CPP else family.serving


def range_factor(gpu: Gpu, engine: Engine) -> float:
    """Return how much wider a range is for a family with thin evidence, or a device of low confidence."""
    known = constants().range
    by_grade = {"A": 1.0, "B": known.grade_b, "C": known.grade_c}
    by_confidence = {"high": 1.0, "medium": known.medium_confidence, "low": known.low_confidence}
    return by_grade[family_constants(gpu, engine).grade] * by_confidence.get(gpu.confidence, 1.0)


def simple_peak_flops(columns: Devices) -> Column:
    """Return 16-bit peaks to three digits, as the sizing page labels them: 989 TFLOPS for 989.4. [FLOP/s]"""
    peak = columns.peak_bf16_flops
    digit = np.power(10.0, np.floor(np.log10(peak)) - 2.0)
    rounded: Column = np.round(peak / digit) * digit
    return rounded


def _link(gpu: Gpu) -> tuple[float, float, float]:
    """
    Return the bandwidth per direction, the latency and the reach of the link between GPUs. [B/s, s, GPUs]

    Bridges between two cards are bought apart: they count for data-centre parts only, in pairs.
    """
    known = constants().link
    peak = gpu.interconnect_gb_per_s_bidirectional
    name = gpu.interconnect or "none"
    is_bridge = "bridge" in name
    if peak is None or name == "none" or (is_bridge and gpu.device_class is not DeviceClass.DATACENTER):
        return _pcie_bytes_per_s(gpu), known.pcie_latency_us * 1e-6, np.inf
    span = 2.0 if is_bridge and "4-way" not in name else 4.0 if is_bridge else np.inf
    latency = known.network_latency_us if "GbE" in name else known.nvlink_latency_us
    return peak / 2 * GB, latency * 1e-6, span


def _pcie_bytes_per_s(gpu: Gpu) -> float:
    """Return the bandwidth of the slot per direction; PCIe 4.0 x16 where it is not known. [B/s]"""
    match = _PCIE.search(gpu.pcie or "")
    generation, lanes = match.groups() if match else ("4", "16")
    return constants().link.pcie_gb_per_s_per_lane[generation] * int(lanes) * GB


def link_for(columns: Devices, gpu_count: Numbers) -> tuple[Numbers, Numbers]:
    """Return bandwidth and latency of the slowest link among so many GPUs of one kind. [B/s, s]"""
    known = constants().link
    in_reach = np.less_equal(gpu_count, columns.linked_gpus)
    bandwidth = np.where(in_reach, columns.link_bytes_per_s, columns.pcie_bytes_per_s)
    latency = np.where(in_reach, columns.link_latency_s, known.pcie_latency_us * 1e-6)
    in_node = np.less_equal(gpu_count, columns.node_gpus)
    slow = np.minimum(bandwidth, known.network_gb_per_s * GB)
    return (
        np.where(in_node, bandwidth, slow),
        np.where(in_node, latency, np.maximum(latency, known.network_latency_us * 1e-6)),
    )


def _or_nan(value: float | None) -> float:
    return float("nan") if value is None else value
