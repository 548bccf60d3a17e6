"""The catalogue of devices: memory, bandwidth, peak rates, power, names, each with its sources."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from types import MappingProxyType

from planner.catalogue import build, close_matches, flat, lookup_key, read_lines, read_toml, unique
from planner.errors import UnknownName


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
    memory_mib_basis: str | None = None
    memory_type: str | None
    bandwidth_gb_per_s: float | None
    fp32_tflops: float | None
    tf32_dense_tflops: float | None = None
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
    launch_msrp_source: str | None = None
    is_unified_memory: bool = False  # shared with the CPU; only a part of it serves the GPU
    coherent_memory: str | None = None  # host memory that the GPU reaches beside its own
    exists: bool = True  # False: announced or rumoured, never sold
    confidence: str
    notes: str
    sources: tuple[str, ...]
    checked: str  # ISO date

    def __post_init__(self) -> None:
        if self.memory_gb_vendor <= 0:
            raise ValueError(f"{self.name}: memory must be above 0 GB, got {self.memory_gb_vendor}")
        if self.bandwidth_gb_per_s is not None and self.bandwidth_gb_per_s <= 0:
            raise ValueError(f"{self.name}: bandwidth must be above 0 GB/s, got {self.bandwidth_gb_per_s}")


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuAlias:
    """Another name of a device, as a provider, a driver or a tool writes it."""

    name: str
    gpu: str  # canonical; the default where the name is ambiguous
    seen_in: str
    evidence: str
    ambiguous_with: tuple[str, ...] = ()  # canonical names; in words where the catalogue holds no such device
    why_ambiguous: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuMatch:
    """A device found by one of its names."""

    gpu: Gpu
    ambiguous_with: tuple[str, ...]  # what else the name may mean; empty where it is plain
    matched: str  # the name as the catalogue writes it
    why_ambiguous: str | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """All devices that the name may mean, the one that is taken first."""
        return (self.gpu.name, *self.ambiguous_with)

    def may_be(self, other: "GpuMatch") -> bool:
        """Whether two names may mean one device."""
        return not set(self.names).isdisjoint(other.names)

    def remark(self, name: str) -> str | None:
        """Say which device is taken for a name that may mean another, None where it is plain."""
        if not self.ambiguous_with:
            return None
        return f"{name!r} may also mean {', '.join(self.ambiguous_with)}: {self.gpu.name} is taken"


@cache
def all_gpus() -> Mapping[str, Gpu]:
    """Return all devices by canonical name, in the order of the catalogue."""
    return _catalogue()[0]


@cache
def gpu_aliases() -> Mapping[str, GpuAlias]:
    """Return all other names of devices, by name."""
    return _catalogue()[1]


def aliases_of(gpu: str) -> tuple[GpuAlias, ...]:
    """Return the other names of one device."""
    return tuple(alias for alias in gpu_aliases().values() if alias.gpu == gpu)


def find_gpu(name: str) -> GpuMatch:
    """
    Return the device of this canonical name or alias.

    The exact spelling wins; then case, spaces, hyphens and underscores are ignored. A name that may mean
    several devices gives the default of the catalogue and says what else it may be: whoever reads a price
    must not guess, whoever asks a person may warn.

    Raises:
        UnknownName: if no device is called so; with close matches.
    """
    wanted = name.strip()
    match = _by_name().get(wanted) or _by_key().get(lookup_key(wanted))
    if match is None:
        raise UnknownName("GPU", name, _close(wanted))
    return match


def _close(name: str) -> list[str]:
    """Return canonical names that look like the name, or whose other names do."""
    near = close_matches(name, _by_name(), n=6)
    return list(dict.fromkeys(_by_name()[other].gpu.name for other in near))[:3]


@cache
def _by_name() -> Mapping[str, GpuMatch]:
    """Return every name as written, canonical ones first."""
    gpus, aliases = _catalogue()
    by_name = {name: GpuMatch(gpu=gpu, ambiguous_with=(), matched=name) for name, gpu in gpus.items()}
    for alias in aliases.values():
        match = GpuMatch(
            gpu=gpus[alias.gpu],
            ambiguous_with=alias.ambiguous_with,
            matched=alias.name,
            why_ambiguous=alias.why_ambiguous,
        )
        if by_name.setdefault(alias.name, match).gpu.name != alias.gpu:
            raise ValueError(f"gpus.toml: {alias.name!r} names both {alias.gpu} and another device")
    return by_name


@cache
def _by_key() -> Mapping[str, GpuMatch]:
    """Return every name in its forgiving form; where two spellings differ, it may mean what either means."""
    groups: dict[str, list[GpuMatch]] = {}
    for name, match in _by_name().items():
        groups.setdefault(lookup_key(name), []).append(match)
    return {key: _merged(matches) for key, matches in groups.items()}


def _merged(matches: list[GpuMatch]) -> GpuMatch:
    """Return the first of several readings of one name, with all others beside it."""
    first = matches[0]
    if first.matched == first.gpu.name:  # the canonical name is plain by definition
        return first
    others = flat(match.names for match in matches)
    return GpuMatch(
        gpu=first.gpu,
        ambiguous_with=tuple(name for name in dict.fromkeys(others) if name != first.gpu.name),
        matched=first.matched,
        why_ambiguous=next((match.why_ambiguous for match in matches if match.why_ambiguous), None),
    )


@cache
def _catalogue() -> tuple[Mapping[str, Gpu], Mapping[str, GpuAlias]]:
    tables = read_toml("gpus.toml", "gpu")
    blocks = [(table["name"], table.pop("aliases", "")) for table in tables]
    gpus = unique([build(Gpu, table) for table in tables], "name", "gpus.toml")
    aliases = unique(flat(_read_aliases(*block) for block in blocks), "name", "gpus.toml")
    return MappingProxyType(gpus), MappingProxyType(aliases)


def _read_aliases(gpu: str, block: str) -> Iterable[GpuAlias]:
    """Read lines of `name | seen in | evidence [| other devices; apart by semicolons | why]`."""
    for name, seen_in, evidence, *ambiguity in read_lines(block):
        others, why = ambiguity or ("", "")
        yield GpuAlias(
            name=name,
            gpu=gpu,
            seen_in=seen_in,
            evidence=evidence,
            ambiguous_with=tuple(other.strip() for other in others.split(";") if other.strip()),
            why_ambiguous=why or None,
        )
