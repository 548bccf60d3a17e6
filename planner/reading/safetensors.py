"""Safetensors: the header of a file, and the index of a model in several files."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeGuard

from planner.errors import UnreadableModel
from planner.reading.tensors import Tensor, TensorTable

# Source: the format's own limit, https://github.com/huggingface/safetensors, "header size limit".
MOST_HEADER_BYTES = 100_000_000
# An index names each tensor once; those of 1,000B models have 10 MB. Source: own choice, several times that.
MOST_INDEX_CHARACTERS = 64 * 2**20
# Bits of one element. Source: https://github.com/huggingface/safetensors, Dtype.
DTYPE_BITS = {
    "BOOL": 8,
    "F4": 4,
    "F6_E2M3": 6,
    "F6_E3M2": 6,
    "U8": 8,
    "I8": 8,
    "F8_E5M2": 8,
    "F8_E4M3": 8,
    "F8_E8M0": 8,
    "F8_E4M3FNUZ": 8,
    "F8_E5M2FNUZ": 8,
    "I16": 16,
    "U16": 16,
    "F16": 16,
    "BF16": 16,
    "I32": 32,
    "U32": 32,
    "F32": 32,
    "F64": 64,
    "I64": 64,
    "U64": 64,
    "C64": 64,
}
# Elements of these types hold several weights each, where most bytes of a file are of them.
_PACKED = frozenset({"U8", "I32", "U32", "F4"})
_PACKED_SHARE = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class SafetensorsIndex:
    """The `model.safetensors.index.json` of a model in several files."""

    files: tuple[str, ...]
    tensor_names: tuple[str, ...]
    total_bytes: int | None  # of all tensors
    total_parameters: int | None  # elements, where the index says


def header_bytes(start: bytes, where: str, file_bytes: int) -> int:
    """
    Return the length of a header from the first 8 bytes of its file. [B]

    Raises:
        UnreadableModel: if the file is shorter, or the length beyond what the format allows.
    """
    if len(start) < 8 or file_bytes < 8:
        raise UnreadableModel(where, f"no safetensors file: {file_bytes:,} bytes")
    length = int.from_bytes(start[:8], "little")
    if length > min(MOST_HEADER_BYTES, file_bytes - 8):
        raise UnreadableModel(where, f"no safetensors file, or cut off: claims a header of {length:,} bytes")
    return length


def parse_header(data: bytes, where: str, file_bytes: int) -> TensorTable:
    """
    Read the JSON of a header, held against the size of its file.

    Args:
        data: The header without the 8 bytes of its length.
        where: Name of the file, for messages.
        file_bytes: Size of the whole file. [B]

    Raises:
        UnreadableModel: if it is no header, or claims tensors that do not fill the file exactly.
    """
    table = _object(data, where, "header")
    found = []
    for name, entry in table.items():
        if name != "__metadata__":
            found.append(_tensor(name, entry, where))
    end = 0
    for tensor, start in sorted(found, key=lambda item: (item[1], item[0].size_bytes)):
        if start != end:
            raise UnreadableModel(
                where, f"tensor {tensor.name[:60]!r} starts at {start:,} where {end:,} is due"
            )
        end = start + tensor.size_bytes
    room = file_bytes - 8 - len(data)
    if end != room:
        raise UnreadableModel(
            where, f"cut off or overlong: its tensors need {end:,} bytes, there are {room:,}"
        )
    return _table([tensor for tensor, _ in found])


def _tensor(name: str, entry: Any, where: str) -> tuple[Tensor, int]:
    if not isinstance(entry, Mapping):
        raise UnreadableModel(where, f"tensor {name[:60]!r} is no object")
    dtype, shape, offsets = entry.get("dtype"), entry.get("shape"), entry.get("data_offsets")
    if dtype not in DTYPE_BITS:
        raise UnreadableModel(
            where, f"tensor {name[:60]!r} has the dtype {str(dtype)[:20]!r}, which is not known"
        )
    if not _counts(shape) or not _counts(offsets) or len(offsets) != 2 or len(shape) > 16:
        raise UnreadableModel(where, f"tensor {name[:60]!r} has no shape or no offsets")
    elements = math.prod(shape)
    bits = elements * DTYPE_BITS[dtype]
    if bits % 8 or bits // 8 != offsets[1] - offsets[0]:
        raise UnreadableModel(
            where, f"tensor {name[:60]!r} of {shape} {dtype} does not fill its offsets {offsets}"
        )
    return Tensor(
        name=name, shape=tuple(shape), dtype=dtype, elements=elements, size_bytes=bits // 8
    ), offsets[0]


def _counts(value: Any) -> TypeGuard[list[int]]:
    return isinstance(value, list) and all(
        isinstance(item, int) and not isinstance(item, bool) and 0 <= item < 2**53 for item in value
    )


def _table(tensors: list[Tensor]) -> TensorTable:
    """Return the tensors with the note whether their elements are weights."""
    total = sum(tensor.size_bytes for tensor in tensors)
    packed = sum(tensor.size_bytes for tensor in tensors if tensor.dtype in _PACKED)
    return TensorTable(tuple(tensors), is_packed=packed > _PACKED_SHARE * total)


def parse_index(text: str, where: str) -> SafetensorsIndex:
    """
    Read an index.

    Raises:
        UnreadableModel: if it is none.
    """
    if len(text) > MOST_INDEX_CHARACTERS:
        raise UnreadableModel(where, f"{len(text):,} characters are too many for an index")
    table = _object(text, where, "index")
    weights = table.get("weight_map")
    if not isinstance(weights, Mapping) or not weights:
        raise UnreadableModel(where, "no safetensors index: it has no weight_map")
    if not all(isinstance(file, str) for file in weights.values()):
        raise UnreadableModel(where, "no safetensors index: its weight_map names no files")
    metadata = table.get("metadata")
    metadata = metadata if isinstance(metadata, Mapping) else {}
    return SafetensorsIndex(
        files=tuple(dict.fromkeys(weights.values())),
        tensor_names=tuple(weights),
        total_bytes=_total(metadata.get("total_size")),
        total_parameters=_total(metadata.get("total_parameters")),
    )


def _total(value: Any) -> int | None:
    """Return a total that may be written as a number with a point; one that cannot be counts as absent."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 2**60 else None


def _object(data: bytes | str, where: str, what: str) -> Mapping[str, Any]:
    try:
        table = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise UnreadableModel(where, f"no safetensors {what}: not JSON") from error
    if not isinstance(table, dict):
        raise UnreadableModel(where, f"no safetensors {what}: no JSON object")
    return table
