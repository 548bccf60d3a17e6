"""TensorDock: price of a virtual machine with CPU, memory and disk, summed from its public location list."""

import re
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from typing import Any, ClassVar

from pricing.offer import Problem, RawOffer
from pricing.parsing.reading import (
    amount,
    dig,
    is_json_with,
    name_of,
    needed,
    number,
    read_rows,
    rows_at,
    whole,
)
from pricing.parsing.shape import DISK_GB_PER_GPU, RAM_GB_PER_GPU, SIZES, VCPUS_PER_GPU
from pricing.provider import Page, Provider, ProviderClass

_MEMORY = re.compile(r"-(\d+)gb$")


class TensorDock(Provider):
    """
    CPU, memory and disk are chosen and paid beside the GPU: the price is that of a stated shape.

    Two locations of one city have prices of their own, and a location's price is an average of its hosts.
    """

    name = "tensordock"
    title = "TensorDock"
    kind = ProviderClass.MARKETPLACE
    home = "https://dashboard.tensordock.com/deploy"
    pages: ClassVar = {"locations": "https://dashboard.tensordock.com/api/v2/locations"}

    def recognise(self, page: Page) -> str | None:
        """Know the list by its wrapper."""
        return "locations" if is_json_with(page, "data") else None

    def parse(self, pages: Mapping[str, Page]) -> Iterable[RawOffer | Problem]:
        """Read each GPU of each location."""
        rows: list[tuple[Any, Any]] = []
        for location in rows_at(needed(pages, "locations"), "data", "locations"):
            gpus = dig(location, "gpus")
            rows += [(location, gpu) for gpu in gpus] if isinstance(gpus, list) else [(location, None)]
        yield from read_rows(rows, _gpu, page="locations", name=lambda pair: str(dig(pair[1], "v0Name")))


def _gpu(pair: tuple[dict[str, Any], dict[str, Any]]) -> Iterator[RawOffer | Problem]:
    place, row = pair
    limits, prices = row["resources"], row["pricing"]
    slug = name_of(row["v0Name"], "v0Name")
    memory = _MEMORY.search(slug)
    per_gpu = amount(row["price_per_hr"], "price_per_hr")
    vcpu, ram, disk = (
        amount(prices[field], field) for field in ("per_vcpu_hr", "per_gb_ram_hr", "per_gb_storage_hr")
    )
    if memory is None or per_gpu is None or vcpu is None or ram is None or disk is None:
        raise ValueError(f"{slug}: GPU {per_gpu}, vCPU {vcpu}, RAM {ram}, disk {disk}: none may be missing")
    beside = vcpu * VCPUS_PER_GPU + ram * RAM_GB_PER_GPU + disk * DISK_GB_PER_GPU
    region = ", ".join(name_of(place[part], part) for part in ("city", "stateprovince", "country"))
    instance = f"{slug} at {name_of(place['id'], 'id')[:8]}"
    fitting = [n for n in SIZES if n <= whole(row["max_count"], "max_count") and _fits(n, limits)]
    if not fitting:
        why = f"no machine of {VCPUS_PER_GPU} vCPU, {RAM_GB_PER_GPU} GB is free there: {limits}"
        yield Problem(what=f"{slug} in {region}", why=why, raw=f"price_per_hr {per_gpu}")
    for count in fitting:
        yield RawOffer(
            instance_type=instance,
            gpu=name_of(row["displayName"], "displayName"),
            gpu_count=count,
            memory_gb_per_gpu=float(memory[1]),
            price_per_hour=(per_gpu + beside) * count,
            page="locations",
            raw=f"per GPU and hour {per_gpu}, and {beside} for {_WITH}",
            region=region,
            available=True,
            vcpus=float(VCPUS_PER_GPU * count),
            ram_gb=float(RAM_GB_PER_GPU * count),
        )


_WITH = f"{VCPUS_PER_GPU} vCPU, {RAM_GB_PER_GPU} GB RAM, {DISK_GB_PER_GPU} GB disk"


def _fits(count: int, limits: Mapping[str, Any]) -> bool:
    """Whether that many GPUs find their share of the largest machine; a limit of 0 is one."""
    wanted = {"max_vcpus": VCPUS_PER_GPU, "max_ram_gb": RAM_GB_PER_GPU, "max_storage_gb": DISK_GB_PER_GPU}
    return all(
        (number(limits[key] or None, key) or 0) >= Decimal(size) * count for key, size in wanted.items()
    )
