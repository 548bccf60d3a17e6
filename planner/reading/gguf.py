"""
The header of a GGUF file: its fields and the exact bytes of every tensor.

Everything in a header is a claim; each count and length is held against the bytes there before anything is
read for it, so that work and memory stay in proportion to the header. Long texts and lists (tokens, merges,
templates) are stepped over.

Source:
    https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
"""

import math
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from planner.errors import UnreadableModel
from planner.reading.ggml import ggml_types
from planner.reading.tensors import Tensor, TensorTable

MAGIC = b"GGUF"
# Of version 1 no file is in use; 4 is not defined. Source: the specification.
VERSIONS = (2, 3)
# A header with 10^6 tokens and merges has some 60 MB. Source: own choice, twice that.
MOST_HEADER_BYTES = 128 * 2**20
# Per-layer lists are kept, vocabularies are not. Source: own choice, more than the layers of any model.
MOST_KEPT_ITEMS = 4096
MOST_KEPT_TEXT = 4096
# Names are at most 64 bytes, keys at most 65,535. Source: the specification.
MOST_NAME_BYTES = 65_535
MOST_DIMENSIONS = 4
DEFAULT_ALIGNMENT = 32
_NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_TEXT, _LIST = 8, 9
# The shortest field: key of one byte, type, value of one byte; the shortest tensor: name, one dimension.
_LEAST_FIELD_BYTES = 14
_LEAST_TENSOR_BYTES = 33
_DEEPEST_LIST = 4


class HeaderTooShort(UnreadableModel):
    """The bytes that were given end within the header, and the file goes on: read more of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GgufHeader:
    """What a GGUF file says of itself."""

    where: str
    version: int
    fields: Mapping[str, Any]
    lengths: Mapping[str, int]  # of all lists, also of those whose items are not kept
    table: TensorTable
    data_offset: int  # of the first tensor in the file [B]

    @property
    def architecture(self) -> str:
        """The name that llama.cpp has for the architecture; empty where it is not stated."""
        name = self.fields.get("general.architecture")
        return name if isinstance(name, str) else ""

    def value(self, name: str) -> Any:
        """Return a field of the architecture, such as `block_count`; None where it is absent."""
        return self.fields.get(f"{self.architecture}.{name}")


def parse_gguf(data: bytes, where: str, file_bytes: int | None = None) -> GgufHeader:
    """
    Read a header.

    Args:
        data: The start of the file, or all of it.
        where: Name of the file, for messages.
        file_bytes: Size of the whole file; None where `data` is all of it. [B]

    Raises:
        HeaderTooShort: if the header goes on behind `data`.
        UnreadableModel: if it is no GGUF, is cut off, or claims what cannot be.
    """
    size = len(data) if file_bytes is None else file_bytes
    reader = _Reader(data, where, size)
    if reader.take(4) != MAGIC:
        raise UnreadableModel(where, "no GGUF file: it does not start with GGUF")
    version = reader.number("I")
    if version not in VERSIONS and version.to_bytes(4, "little")[::-1] in (b"\x02\0\0\0", b"\x03\0\0\0"):
        reader.order = ">"
        version = int.from_bytes(version.to_bytes(4, "little"), "big")
    if version not in VERSIONS:
        raise UnreadableModel(where, f"GGUF version {version}; versions 2 and 3 are understood")
    tensors, fields = reader.number("Q"), reader.number("Q")
    reader.room(
        tensors * _LEAST_TENSOR_BYTES + fields * _LEAST_FIELD_BYTES, f"{tensors:,} tensors, {fields:,} fields"
    )
    for _ in range(fields):
        reader.field()
    infos = [reader.tensor() for _ in range(tensors)]
    alignment = _alignment(reader, where)
    offset = math.ceil(reader.position / alignment) * alignment
    _check_data(infos, alignment, size - offset, where)
    return GgufHeader(
        where=where,
        version=version,
        fields=reader.fields,
        lengths=reader.lengths,
        table=TensorTable(tuple(tensor for tensor, _ in infos)),
        data_offset=offset,
    )


@dataclass
class _Reader:
    """A place in the header, and what was read so far."""

    data: bytes
    where: str
    size: int  # of the file
    order: str = "<"
    position: int = 0
    fields: dict[str, Any] = field(default_factory=dict)
    lengths: dict[str, int] = field(default_factory=dict)
    names: set[str] = field(default_factory=set)

    def room(self, count: int, what: str) -> None:
        """Refuse a claim that does not fit into the rest of the file."""
        if count > self.size - self.position:
            left = max(0, self.size - self.position)
            raise UnreadableModel(
                self.where,
                f"cut off or damaged: claims {what} at byte {self.position:,}, and {left:,} bytes are left",
            )

    def take(self, count: int) -> bytes:
        """Return the next bytes."""
        end = self.position + count
        if end > len(self.data):
            if end <= self.size:
                if end > MOST_HEADER_BYTES:
                    raise UnreadableModel(self.where, f"a header of more than {MOST_HEADER_BYTES:,} bytes")
                raise HeaderTooShort(self.where, f"the header goes on behind byte {len(self.data):,}")
            raise UnreadableModel(self.where, f"cut off at byte {self.size:,}, in the middle of its header")
        taken = self.data[self.position : end]
        self.position = end
        return taken

    def number(self, kind: str) -> Any:
        """Return the next number."""
        code = self.order + kind
        return struct.unpack(code, self.take(struct.calcsize(code)))[0]

    def text(self, most: int) -> str | None:
        """Return the next text, None where it is longer than is kept."""
        length = self.number("Q")
        self.room(length, f"a text of {length:,} bytes")
        raw = self.take(length)
        if length > most:
            return None
        try:
            return raw.decode("utf-8")
        except UnicodeDecodeError:
            return raw.decode("utf-8", "replace") if most == MOST_KEPT_TEXT else self._not_text()

    def _not_text(self) -> str:
        raise UnreadableModel(self.where, f"a name at byte {self.position:,} is not UTF-8 text")

    def name(self) -> str:
        """Return the next name, which must be short."""
        name = self.text(MOST_NAME_BYTES)
        if name is None:
            raise UnreadableModel(self.where, f"a name of more than {MOST_NAME_BYTES:,} bytes")
        return name

    def field(self) -> None:
        """Read one field."""
        key = self.name()
        if key in self.fields or key in self.lengths:
            raise UnreadableModel(self.where, f"the field {key[:60]!r} occurs twice")
        kind = self.number("I")
        if kind == _LIST:
            items, length = self._list(0)
            self.lengths[key] = length
            if items is not None:
                self.fields[key] = items
            return
        self.fields[key] = self._value(kind)

    def _value(self, kind: int) -> Any:
        if kind == _TEXT:
            return self.text(MOST_KEPT_TEXT)
        if kind not in _NUMBERS:
            raise UnreadableModel(self.where, f"value type {kind} at byte {self.position:,} is not known")
        return self.number(_NUMBERS[kind])

    def _list(self, depth: int) -> tuple[list[Any] | None, int]:
        """Return a list of numbers that is short enough to be one per layer, and the length of any."""
        kind, length = self.number("I"), self.number("Q")
        if kind in _NUMBERS:
            width = struct.calcsize("<" + _NUMBERS[kind])
            self.room(length * width, f"a list of {length:,} numbers")
            raw = self.take(length * width)
            if length > MOST_KEPT_ITEMS:
                return None, length
            return list(struct.unpack(f"{self.order}{length}{_NUMBERS[kind]}", raw)), length
        if kind not in (_TEXT, _LIST) or depth >= _DEEPEST_LIST:
            raise UnreadableModel(
                self.where, f"a list of value type {kind} at byte {self.position:,} is not known"
            )
        self.room(length * 8, f"a list of {length:,} items")
        if kind == _TEXT:
            self._pass_texts(length)
        else:
            for _ in range(length):
                self._list(depth + 1)
        return None, length

    def _pass_texts(self, count: int) -> None:
        """Step over the texts of a vocabulary, of which there may be a million."""
        data, position, end = self.data, self.position, len(self.data)
        length_at = struct.Struct(self.order + "Q").unpack_from
        for _ in range(count):
            length = length_at(data, position)[0] if position + 8 <= end else end
            if length > end - position - 8:  # goes on behind the bytes that are there, or lies
                self.position = position
                self.text(0)
                position = self.position
            else:
                position += 8 + length
        self.position = position

    def tensor(self) -> tuple[Tensor, int]:
        """Return the next tensor and the offset of its data."""
        name = self.name()
        if name in self.names:
            raise UnreadableModel(self.where, f"the tensor {name[:60]!r} occurs twice")
        self.names.add(name)
        rank = self.number("I")
        if not 1 <= rank <= MOST_DIMENSIONS:
            raise UnreadableModel(
                self.where, f"tensor {name[:60]!r} has {rank} dimensions; 1 to 4 are possible"
            )
        shape = tuple(self.number("Q") for _ in range(rank))
        kind = ggml_types().get(self.number("I"))
        offset = self.number("Q")
        elements = math.prod(shape)
        if kind is None:
            raise UnreadableModel(self.where, f"tensor {name[:60]!r} has a type that is not known")
        if not 0 < elements < 2**50 or shape[0] % kind.block_elements:
            raise UnreadableModel(
                self.where, f"tensor {name[:60]!r} cannot have the shape {list(shape)} in {kind.name}"
            )
        size = elements // kind.block_elements * kind.block_bytes
        return Tensor(name=name, shape=shape, dtype=kind.name, elements=elements, size_bytes=size), offset


def _alignment(reader: _Reader, where: str) -> int:
    value = reader.fields.get("general.alignment", DEFAULT_ALIGNMENT)
    if (
        not isinstance(value, int)
        or isinstance(value, bool)
        or not 8 <= value <= 2**20
        or value & (value - 1)
    ):
        raise UnreadableModel(where, f"general.alignment is {value!r}; it must be a power of 2 from 8")
    return value


def _check_data(infos: list[tuple[Tensor, int]], alignment: int, data_bytes: int, where: str) -> None:
    """Hold the places of all tensors against each other and against the file."""
    end = 0
    for tensor, offset in sorted(infos, key=lambda info: info[1]):
        if offset % alignment:
            raise UnreadableModel(
                where, f"tensor {tensor.name[:60]!r} starts at {offset:,}, not aligned to {alignment}"
            )
        if offset < end:
            raise UnreadableModel(where, f"tensor {tensor.name[:60]!r} overlaps the one before it")
        end = offset + tensor.size_bytes
    if end > data_bytes:
        missing = end - max(0, data_bytes)
        raise UnreadableModel(
            where, f"cut off: its tensors need {end:,} bytes, {missing:,} more than there are"
        )
