"""Which GPUs the instances of the large clouds hold, where their price lists do not say it."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from importlib import resources
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """GPUs of one instance type; a slice of a GPU has count 1 and a fraction."""

    gpu: str  # canonical
    gpu_count: int
    gpu_fraction: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SummedMachine:
    """An instance type whose price is the sum of its parts."""

    machine: Machine
    vcpus: int
    ram_gib: int
    gpus: Fraction  # for the sum
    ssd_gib: int  # local disk that always comes with it
    core: tuple[str, ...]  # beginnings of the descriptions of the parts, the newer ones first
    ram: tuple[str, ...]
    accelerator: tuple[str, ...]
    regions: frozenset[str]
    is_spot_only: bool


@cache
def _data() -> Mapping[str, Any]:
    text = resources.files("pricing").joinpath("data/machines.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def _machine(gpu: str, count: int | str) -> Machine:
    share = Fraction(count)
    return Machine(gpu=gpu, gpu_count=max(1, int(share)), gpu_fraction=None if share >= 1 else float(share))


@cache
def machines(provider: str) -> Mapping[str, Machine]:
    """Return the GPU instances of `aws` or `azure` by their names."""
    return {
        name: _machine(gpu, count)
        for gpu, instances in _data()[provider].items()
        for name, count in instances.items()
    }


@cache
def summed_machines() -> Mapping[str, SummedMachine]:
    """Return the GPU machine types of Google Cloud by their names."""
    found = {}
    for family in _data()["gcp"].values():
        for name, (vcpus, ram_gib, count) in family["machines"].items():
            found[name] = SummedMachine(
                machine=_machine(family["gpu"], count),
                vcpus=vcpus,
                ram_gib=ram_gib,
                gpus=Fraction(count),
                ssd_gib=int(family["ssd_gib_per_gpu"] * Fraction(count)),
                core=tuple(family["core"]),
                ram=tuple(family["ram"]),
                accelerator=tuple(family["accelerator"]),
                regions=frozenset(family["regions"]),
                is_spot_only=name in family.get("spot_only", ()),
            )
    return found
