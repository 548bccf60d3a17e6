"""The catalogue of weight formats: true bits per weight, family, hardware needs, with sources."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from types import MappingProxyType

from planner.catalogue import build, close_matches, lookup_key, read_toml, unique
from planner.errors import UnknownName


class QuantFamily(StrEnum):
    """Which file format and engine a weight format belongs to."""

    NATIVE = "native"  # BF16, FP16
    GGUF = "gguf"
    FLOAT8 = "fp8"
    INTEGER = "int"
    FLOAT4 = "fp4"


@dataclass(frozen=True, slots=True, kw_only=True)
class QuantFormat:
    """One weight format; bits include block scales."""

    name: str
    family: QuantFamily
    bits_per_weight: float  # as published: of a whole 8B file for GGUF, of the quantised matrices for others
    simple_bits_per_weight: float | None  # the sizing page's figure, where it has one
    linear_bits: float  # of the matrices that the format quantises
    embedding_bits: float  # of embeddings and output head in that format, their mean
    tied_embedding_bits: float  # of the one matrix that serves as both
    experts_only: bool  # True where only expert matrices are quantised (MXFP4 checkpoints)
    compute_dtype: str  # precision in which matrix products run: bf16, fp8, int8, fp4
    title: str
    aliases: tuple[str, ...] = ()
    notes: str
    sources: tuple[str, ...]
    checked: str  # ISO date

    def __post_init__(self) -> None:
        for bits in (self.bits_per_weight, self.linear_bits, self.embedding_bits, self.tied_embedding_bits):
            if not 0 < bits <= 32:
                raise ValueError(f"{self.name}: bits per weight must lie above 0 and up to 32, got {bits}")


@cache
def all_quants() -> Mapping[str, QuantFormat]:
    """Return all weight formats by name, in the order of the catalogue: most bits first in each family."""
    records = [build(QuantFormat, table) for table in read_toml("quants.toml", "quant")]
    return MappingProxyType(unique(records, "name", "quants.toml"))


def find_quant(name: str) -> QuantFormat:
    """
    Return the weight format of this name or alias, whatever its case, spaces, hyphens and underscores.

    Raises:
        UnknownName: if no format is called so; with close matches.
    """
    quant = _by_key().get(lookup_key(name))
    if quant is None:
        raise UnknownName("quant", name, close_matches(name, all_quants()))
    return quant


@cache
def _by_key() -> Mapping[str, QuantFormat]:
    by_key: dict[str, QuantFormat] = {}
    for quant in all_quants().values():
        for name in (quant.name, *quant.aliases):
            if by_key.setdefault(lookup_key(name), quant) is not quant:
                raise ValueError(f"quants.toml: {name!r} names two formats")
    return by_key
