"""Safetensors and GGUF files written by the tests: true headers, no more data than asked for."""

import json
import math
import struct
from collections.abc import Mapping
from typing import Any

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
