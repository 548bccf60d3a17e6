"""The catalogue of weight formats: true bits per weight, family, hardware needs, with sources."""

from dataclasses import dataclass
from enum import StrEnum


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
    bits_per_weight: float  # of a whole file, as published
    simple_bits_per_weight: float | None  # the sizing page's figure, where it has one
    linear_bits: float  # of the matrices that the format quantises
    embedding_bits: float  # of embeddings and output head in that format
    experts_only: bool  # True where only expert matrices are quantised (MXFP4 checkpoints)
    compute_dtype: str  # precision in which matrix products run: bf16, fp8, int8, fp4
    title: str
    notes: str
    sources: tuple[str, ...]
    checked: str  # ISO date
