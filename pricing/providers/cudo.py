"""Cudo Compute: price of a virtual machine with CPU, memory, disk and address, summed from a public list."""

from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from typing import Any, ClassVar

from pricing.offer import Problem, RawOffer
from pricing.parsing.reading import amount, is_json_with, name_of, needed, read_rows, rows_at
from pricing.parsing.shape import DISK_GB_PER_GPU, RAM_GB_PER_GPU, SIZES, VCPUS_PER_GPU
from pricing.provider import Page, Provider, ProviderClass

# GB of GPUs whose id leaves it open. Source: the bundled snapshot, cudo rows of 2026-03-22.
_MEMORY_GB = {"nvidia-a100-pcie": 80.0, "nvidia-a800-pcie": 80.0, "nvidia-v100-32g": 32.0}


class Cudo(Provider):
    """A row without the price of disk or address cannot be summed: it states the GPU's price only."""

    name = "cudo"
    title = "Cudo Compute"
    kind = ProviderClass.MARKETPLACE
    home = "https://compute.cudo.org/"
    pages: ClassVar = {"machine_types": "https://rest.compute.cudo.org/v1/vms/machine-types"}

    def recognise(self, page: Page) -> str | None:
        """Know the list by its key."""
        return "machine_types" if is_json_with(page, "machineTypes") else None

    def parse(self, pages: Mapping[str, Page]) -> Iterable[RawOffer | Problem]:
        """Read each machine type of each data centre."""
        rows = rows_at(needed(pages, "machine_types"), "machineTypes")
        yield from read_rows(rows, _type, page="machine_types", name="machineType")


def _type(row: dict[str, Any]) -> Iterator[RawOffer]:
    if not row.get("gpuModelId"):
        return
    model, kind = name_of(row["gpuModelId"], "gpuModelId"), name_of(row["machineType"], "machineType")
    per_gpu = _value(row, "gpuPriceHr")
    if per_gpu is None:
        raise ValueError("no price of the GPU")
    vcpu, ram, disk, address = (
        _value(row, key) for key in ("vcpuPriceHr", "memoryGibPriceHr", "minStorageGibPriceHr", "ipv4PriceHr")
    )
    vcpus = min(max(VCPUS_PER_GPU, row["minVcpuPerGpu"]), row["maxVcpuPerGpu"])
    free = row["maxGpuFree"]
    is_whole = None not in (vcpu, ram, disk, address)
    for count in [n for n in SIZES if n <= free] or [1]:
        price = per_gpu * count
        if vcpu is not None and ram is not None and disk is not None and address is not None:
            beside = vcpu * vcpus + ram * RAM_GB_PER_GPU + disk * DISK_GB_PER_GPU
            price += beside * count + address
        yield RawOffer(
            instance_type=f"{kind} {model}" + ("" if is_whole else " [gpu-only]"),
            gpu=model.removesuffix("-graphics"),
            gpu_count=count,
            memory_gb_per_gpu=_MEMORY_GB.get(model),
            price_per_hour=price,
            page="machine_types",
            raw=f"gpu {per_gpu}, vcpu {vcpu}, GiB {ram}, disk GiB {disk}, IPv4 {address} USD/h",
            region=name_of(row["dataCenterId"], "dataCenterId"),
            available=free >= count,
            vcpus=float(vcpus * count) if is_whole else None,
            ram_gb=float(RAM_GB_PER_GPU * count) if is_whole else None,
            gpu_only=not is_whole,
        )


def _value(row: Mapping[str, Any], key: str) -> Decimal | None:
    """Return the amount of a price object, None where the row has none."""
    return amount(row[key]["value"], key) if key in row else None
