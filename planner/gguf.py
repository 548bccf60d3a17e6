"""A model from the header of its GGUF file: its shape, and exactly the bytes that it takes."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from planner.configs import ModelReading, read_config
from planner.errors import UnreadableModel
from planner.reading.ggml import file_types, nearest_format
from planner.reading.gguf import GgufHeader
from planner.reading.gguf_config import config_from_gguf
from planner.reading.tensors import Tensor, TensorClass, class_of, joined

__all__ = ["parts_of", "read_gguf"]


def parts_of(header: GgufHeader) -> int:
    """Return how many files a model is split into, by the header of its first."""
    count = header.fields.get("split.count")
    return count if isinstance(count, int) and not isinstance(count, bool) and 1 <= count <= 1000 else 1


def read_gguf(
    headers: Sequence[GgufHeader],
    *,
    name: str | None = None,
    params: int | None = None,
    active_params: int | None = None,
    facts: Mapping[str, Any] | None = None,
) -> ModelReading:
    """
    Read a model from the headers of its files.

    Elements and bytes are those of the tensors; draft layers are stored and not served.

    Args:
        headers: Of all files of the model, the first with its fields.
        name: Of the model; what the header says where it is not given.
        params: Total parameters, where a person states them.
        active_params: Parameters read for one token, likewise.
        facts: Fields that the header lacks, by their names in a configuration.

    Raises:
        UnreadableModel: if the header cannot be, or parts are missing.
        UnknownArchitecture: if it leaves open what memory depends on.
    """
    first = headers[0]
    if len(headers) != parts_of(first):
        raise UnreadableModel(first.where, f"{len(headers)} of its {parts_of(first)} parts are there")
    table = joined(header.table for header in headers)
    full = replace(first, table=table)
    named = first.fields.get("general.name")
    name = name or (named if isinstance(named, str) and named else first.where)
    reading = read_config(
        config_from_gguf(full),
        name=name,
        where=first.where,
        params=params,
        active_params=active_params,
        facts=facts,
        tensors=table,
    )
    kind = first.fields.get("general.file_type")
    stated = file_types().get(kind) if isinstance(kind, int) else None
    quant, is_exact = nearest_format(stated, _bits(table.tensors) or 16.0)
    notes = list(reading.notes)
    if not is_exact:
        notes.append(
            f"its format {stated or 'of mixed tensors'} is not in the catalogue: {quant} is the nearest"
        )
    layers = [tensor for tensor in table.tensors if class_of(tensor.name) in _MATRICES]
    routed = [tensor for tensor in layers if class_of(tensor.name) is TensorClass.ROUTED_EXPERTS]
    model = replace(
        reading.model,
        native_dtype=quant,
        native_expert_bits=_bits(routed),
        native_other_bits=_bits([tensor for tensor in layers if tensor not in set(routed)]),
        config_source="header of a GGUF file",
        notes="; ".join(notes),
    )
    return replace(reading, model=model, quant=quant, notes=tuple(notes))


_MATRICES = frozenset({TensorClass.ATTENTION, TensorClass.FEED_FORWARD, TensorClass.ROUTED_EXPERTS})


def _bits(tensors: Sequence[Tensor]) -> float | None:
    """Return the mean bits of a weight, None where there is none."""
    elements = sum(tensor.elements for tensor in tensors)
    return 8 * sum(tensor.size_bytes for tensor in tensors) / elements if elements else None
