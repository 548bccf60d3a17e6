"""Safetensors and GGUF files written by the tests: true headers, no more data than asked for."""

import json
import math
import struct
from collections.abc import Mapping
from typing import Any

from planner.reading.ggml import ggml_types
from planner.reading.safetensors import DTYPE_BITS, parse_header
from planner.reading.tensors import TensorTable

Shapes = Mapping[str, tuple[str, tuple[int, ...]]]  # name to dtype and shape


def safetensors_header(tensors: Shapes) -> bytes:
    """Return the JSON of a header whose tensors lie one after the other."""
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    start = 0
    for name, (dtype, shape) in tensors.items():
        end = start + math.prod(shape) * DTYPE_BITS[dtype] // 8
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [start, end]}
        start = end
    return json.dumps(header).encode()


def data_bytes(tensors: Shapes) -> int:
    """Return the bytes of all tensors."""
    return sum(math.prod(shape) * DTYPE_BITS[dtype] // 8 for dtype, shape in tensors.values())


def safetensors_start(tensors: Shapes) -> bytes:
    """Return a file up to its first tensor."""
    header = safetensors_header(tensors)
    return struct.pack("<Q", len(header)) + header


def header_table(tensors: Shapes) -> TensorTable:
    """Return the tensors as a reader of such a file has them."""
    header = safetensors_header(tensors)
    return parse_header(header, "model.safetensors", 8 + len(header) + data_bytes(tensors))


GGUF_TYPES = {"F32": 0, "F16": 1, "Q8_0": 8, "Q4_K": 12, "Q6_K": 14, "BF16": 30, "MXFP4": 39}


def gguf_start(
    fields: Mapping[str, Any],
    tensors: Shapes,
    *,
    version: int = 3,
    counts: tuple[int, int] | None = None,
    order: str = "<",
) -> bytes:
    """
    Return a GGUF file up to its first tensor.

    Args:
        fields: Numbers, texts, truth values, and lists of numbers or texts.
        tensors: Shapes as GGUF has them: the row comes first.
        version: Of the format.
        counts: What is claimed of tensors and fields, where that is not the truth.
        order: Of bytes, `>` for big ones first.
    """
    claimed = counts or (len(tensors), len(fields))
    parts = [b"GGUF", struct.pack(order + "IQQ", version, *claimed)]
    for name, value in fields.items():
        parts.append(_text(name, order) + _value(value, order))
    offset = 0
    for name, (dtype, shape) in tensors.items():
        sizes = struct.pack(f"{order}I{len(shape)}Q", len(shape), *shape)
        parts.append(_text(name, order) + sizes + struct.pack(order + "IQ", GGUF_TYPES[dtype], offset))
        offset += _padded(gguf_tensor_bytes(dtype, shape))
    start = b"".join(parts)
    return start + b"\0" * (_padded(len(start)) - len(start))


def gguf_tensor_bytes(dtype: str, shape: tuple[int, ...]) -> int:
    """Return the bytes of one tensor."""
    kind = ggml_types()[GGUF_TYPES[dtype]]
    return math.prod(shape) // kind.block_elements * kind.block_bytes


def gguf_file_bytes(start: bytes, tensors: Shapes) -> int:
    """Return the size that the whole file has."""
    return len(start) + sum(_padded(gguf_tensor_bytes(dtype, shape)) for dtype, shape in tensors.values())


def _padded(count: int) -> int:
    return -(-count // 32) * 32


def _text(text: str, order: str) -> bytes:
    raw = text.encode()
    return struct.pack(order + "Q", len(raw)) + raw


def _value(value: Any, order: str) -> bytes:
    kind, raw = _typed(value, order)
    return struct.pack(order + "I", kind) + raw


def _typed(value: Any, order: str) -> tuple[int, bytes]:
    """Return the number of a type and the bytes of a value of it."""
    if isinstance(value, bool):
        return 7, struct.pack("?", value)
    if isinstance(value, int):
        return 4, struct.pack(order + "I", value)
    if isinstance(value, float):
        return 6, struct.pack(order + "f", value)
    if isinstance(value, str):
        return 8, _text(value, order)
    items = [_typed(item, order) for item in value]
    kind = items[0][0] if items else 4
    return 9, struct.pack(order + "IQ", kind, len(items)) + b"".join(raw for _, raw in items)
