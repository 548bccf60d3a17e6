"""Tensor types of ggml and file types of llama.cpp: block sizes, and the catalogue's nearest format."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType

from planner.catalogue import lookup_key, read_csv
from planner.catalogues.quants import QuantFamily, all_quants


@dataclass(frozen=True, slots=True, kw_only=True)
class GgmlType:
    """How ggml stores a block of weights."""

    type_id: int
    name: str
    block_elements: int
    block_bytes: int  # with the block's scales

    @property
    def bits_per_weight(self) -> float:
        """Bits of one weight, its share of the scales included."""
        return 8 * self.block_bytes / self.block_elements


@cache
def ggml_types() -> Mapping[int, GgmlType]:
    """Return all tensor types by their number in a GGUF header."""
    types = [
        GgmlType(
            type_id=int(row["type_id"]),
            name=row["name"],
            block_elements=int(row["block_elements"]),
            block_bytes=int(row["block_bytes"]),
        )
        for row in read_csv("ggml_types.csv")
    ]
    return MappingProxyType({kind.type_id: kind for kind in types})


@cache
def file_types() -> Mapping[int, str]:
    """Return the names of `general.file_type`."""
    return MappingProxyType({int(row["file_type"]): row["name"] for row in read_csv("gguf_file_types.csv")})


def nearest_format(name: str | None, bits_per_weight: float) -> tuple[str, bool]:
    """
    Return the entry of the catalogue for a GGUF file, and whether it is the very format.

    Args:
        name: Of the file type, as `file_types` gives it.
        bits_per_weight: Mean of the file's tensors, which decides where the catalogue lacks the format.
    """
    gguf = [
        quant for quant in all_quants().values() if quant.family in (QuantFamily.GGUF, QuantFamily.NATIVE)
    ]
    key = lookup_key((name or "").removesuffix("_MOE"))
    for quant in all_quants().values():
        names = (quant.name, *quant.aliases) if quant in gguf else (quant.name,)
        if key and key in {lookup_key(other) for other in names}:
            return quant.name, True
    nearest = min(gguf, key=lambda quant: abs(quant.bits_per_weight - bits_per_weight))
    return nearest.name, False
