"""The catalogue of devices: memory, bandwidth, peak rates, power, names, each with its sources."""

from dataclasses import dataclass
from enum import StrEnum


class DeviceClass(StrEnum):
    """What kind of part it is."""

    DATACENTER = "datacenter"
    WORKSTATION = "workstation"
    CONSUMER = "consumer"
    UNIFIED = "desktop/laptop (unified)"
    DESKTOP_SYSTEM = "desktop AI system"
    CLOUD_ONLY = "cloud-only accelerator"


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """One device; rates are dense (no sparsity) peaks, None where not known or not supported."""

    name: str  # canonical
    device_class: DeviceClass
    vendor: str
    architecture: str | None
    release_date: str | None
    memory_gb_vendor: float  # the label
    memory_mib_reported: int | None  # by the driver
    memory_type: str | None
    bandwidth_gb_per_s: float | None
    fp32_tflops: float | None
    fp16_dense_tflops: float | None
    bf16_dense_tflops: float | None
    int8_dense_tops: float | None
    fp8_dense_tflops: float | None
    fp4_dense_tflops: float | None
    fp16_fp16acc_dense_tflops: float | None
    compute_note: str | None
    tdp_w: float | None
    form_factor: str | None
    interconnect: str | None
    interconnect_gb_per_s_bidirectional: float | None
    pcie: str | None
    max_gpus_per_node: int | None
    launch_msrp_usd: float | None
    is_unified_memory: bool
    exists: bool  # False: announced or rumoured, never sold
    confidence: str
    notes: str
    sources: tuple[str, ...]
    checked: str  # ISO date
