"""Devices as columns of numbers, one value for each, NaN where unknown: what the formulas of speed take."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from planner.catalogues.gpus import DeviceClass, Gpu
from planner.memory import visible_bytes
from planner.serving.constants import constants, family_of
from planner.serving.reached import PRECISIONS
from planner.units import GB, Numbers
from planner.workload import Engine

Column = NDArray[np.float64]

# Kinds of links between GPUs.
LINK, SLOT, NETWORK = 0.0, 1.0, 2.0
_PCIE = re.compile(r"(\d)\.\d(?:/\d\.\d)? x(\d+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Devices:
    """Columns over devices; those of a grid carry further axes of length 1."""

    visible_bytes: Column
    label_gb: Column
    bandwidth_bytes_per_s: Column
    peak_bf16_flops: Column  # what a product runs at, by precision of the weights
    peak_fp8_flops: Column
    peak_fp4_flops: Column
    peak_int8_flops: Column
    flops_per_watt: Column  # 10^12 of the 16-bit peak; 0 where not known
    link_bytes_per_s: Column  # per direction, between GPUs that are linked
    link_kind: Column  # 0 links of GPUs, 1 slots, 2 a network
    linked_gpus: Column  # how many GPUs that link spans
    pcie_bytes_per_s: Column
    host_stream_bytes_per_s: (
        Column  # most that weights for a prompt come in at, whatever the host memory does
    )
    node_gpus: Column
    family: Column  # an index into constants().families
    range_factor: Column  # how much the range widens for thin evidence

    def reshaped(self, change: Callable[[Column], Any]) -> "Devices":
        """Return the same columns with another shape."""
        return Devices(**{field.name: change(getattr(self, field.name)) for field in fields(self)})

    def peak_flops(self, precision: str) -> Column:
        """Return the peak of products in this precision of weights. [FLOP/s]"""
        column: Column = getattr(self, f"peak_{precision}_flops")
        return column

    def precision(self, precision: str) -> NDArray[np.int64]:
        """Return what products in this precision run in, an index into PRECISIONS: 16 bit if not faster."""
        faster = np.greater(self.peak_flops(precision), self.peak_bf16_flops)
        return np.where(faster, PRECISIONS.index(precision), 0)


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


def _peak_flops(gpu: Gpu, precision: str, engine: Engine) -> float:
    """
    Return the peak in a precision for one kind of engine; NaN where none is known. [FLOP/s]

    llama.cpp multiplies prompts in 16 bit whatever the format, and adds up in 16 bit, which GeForce cards do
    twice as fast; servers add up in 32 bit.
    """
    if engine is not Engine.LLAMA_CPP:
        return _or_nan(compute_flops(gpu, precision))
    fast = gpu.fp16_fp16acc_dense_tflops
    return fast * 1e12 if fast is not None else _or_nan(compute_flops(gpu))


def _row(gpu: Gpu, engine: Engine) -> dict[str, float]:
    """Return the numbers of one device."""
    link, kind, span = _link(gpu)
    pcie = _pcie_bytes_per_s(gpu)
    return {
        "visible_bytes": visible_bytes(gpu)[0],
        "label_gb": gpu.memory_gb_vendor,
        "bandwidth_bytes_per_s": _or_nan(gpu.bandwidth_gb_per_s) * GB,
        **{f"peak_{name}_flops": _peak_flops(gpu, name, engine) for name in PRECISIONS},
        "flops_per_watt": _flops_per_watt(gpu, engine),
        "link_bytes_per_s": link,
        "link_kind": kind,
        "linked_gpus": span,
        "pcie_bytes_per_s": pcie,
        # The CPU may compute single tokens at the speed of its memory; prompts are computed on the GPU.
        "host_stream_bytes_per_s": np.inf if gpu.coherent_memory else pcie,
        "node_gpus": float(gpu.max_gpus_per_node or 8),
        "family": float(constants().families.index(family_of(gpu))),
        "range_factor": range_factor(gpu, engine),
    }


def _flops_per_watt(gpu: Gpu, engine: Engine) -> float:
    """
    Return how far the peak of a card outruns its power: 10^12 operations a watt.

    Counts for NVIDIA cards in llama.cpp, whose prompts run them at their power limit.
    """
    if engine is not Engine.LLAMA_CPP or gpu.vendor != "NVIDIA" or gpu.is_unified_memory or not gpu.tdp_w:
        return 0.0
    peak = _peak_flops(gpu, "bf16", engine)
    return 0.0 if np.isnan(peak) else peak / 1e12 / gpu.tdp_w


def grade(gpu: Gpu, engine: Engine) -> str:
    """Return the grade of evidence of a device's family with an engine of this kind."""
    family = family_of(gpu)
    return family.llama_cpp_grade if engine is Engine.LLAMA_CPP else family.server_grade


def range_factor(gpu: Gpu, engine: Engine) -> float:
    """Return how much wider a range is for a family with thin evidence, or a device of low confidence."""
    known = constants().range
    by_grade = {"A": 1.0, "B": known.grade_b, "C": known.grade_c}
    by_confidence = {"high": 1.0, "medium": known.medium_confidence, "low": known.low_confidence}
    return by_grade[grade(gpu, engine)] * by_confidence.get(gpu.confidence, 1.0)


def simple_peak_flops(columns: Devices) -> Column:
    """Return 16-bit peaks to three digits, as the sizing page labels them: 989 TFLOPS for 989.4. [FLOP/s]"""
    peak = columns.peak_bf16_flops
    digit = np.power(10.0, np.floor(np.log10(peak)) - 2.0)
    rounded: Column = np.round(peak / digit) * digit
    return rounded


def _link(gpu: Gpu) -> tuple[float, float, float]:
    """
    Return the bandwidth per direction, the kind and the reach of the link between GPUs. [B/s, 1, GPUs]

    Bridges between two cards are bought apart: they count for data-centre parts only, in pairs.
    """
    peak = gpu.interconnect_gb_per_s_bidirectional
    name = gpu.interconnect or "none"
    is_bridge = "bridge" in name
    if peak is None or name == "none" or (is_bridge and gpu.device_class is not DeviceClass.DATACENTER):
        return _pcie_bytes_per_s(gpu), SLOT, np.inf
    span = 2.0 if is_bridge and "4-way" not in name else 4.0 if is_bridge else np.inf
    return peak / 2 * GB, NETWORK if "GbE" in name else LINK, span


def _pcie_bytes_per_s(gpu: Gpu) -> float:
    """Return the bandwidth of the slot per direction; PCIe 4.0 x16 where it is not known. [B/s]"""
    match = _PCIE.search(gpu.pcie or "")
    generation, lanes = match.groups() if match else ("4", "16")
    return constants().link.pcie_gb_per_s_per_lane[generation] * int(lanes) * GB


def link_for(columns: Devices, gpu_count: Numbers) -> tuple[Numbers, Numbers]:
    """Return bandwidth and kind of the slowest link among so many GPUs of one kind. [B/s, 1]"""
    known = constants().link
    in_reach = np.less_equal(gpu_count, columns.linked_gpus)
    bandwidth = np.where(in_reach, columns.link_bytes_per_s, columns.pcie_bytes_per_s)
    kind = np.where(in_reach, columns.link_kind, SLOT)
    in_node = np.less_equal(gpu_count, columns.node_gpus)
    slow = np.minimum(bandwidth, known.network_gb_per_s * GB)
    return np.where(in_node, bandwidth, slow), np.where(in_node, kind, NETWORK)


def _or_nan(value: float | None) -> float:
    return float("nan") if value is None else value
