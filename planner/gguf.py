"""A model from the headers of its GGUF files: its shape, and exactly the bytes that it takes."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from planner.catalogues.quants import all_quants
from planner.configs import ModelReading, read_config
from planner.errors import UnreadableModel
from planner.reading.ggml import file_types, nearest_format
from planner.reading.gguf import GgufHeader
from planner.reading.gguf_config import config_from_gguf
from planner.reading.tensors import Tensor, TensorClass, TensorTable, class_of, joined

__all__ = ["is_first_part", "other_parts", "parts_of", "read_gguf"]

# Files of one model. Source: own choice; the largest known have some fifty.
MOST_PARTS = 1000
# Small models have wide embeddings; a file whose bits are further from those of its name is another format.
# Source: own choice; Q4_K_M of Qwen3 0.6B has 1.3 times the bits of an 8B file.
MOST_OFF = 1.5
_SPLIT = re.compile(r"(.*)-(\d{5})-of-(\d{5})\.gguf", re.ASCII)
_MATRICES = frozenset({TensorClass.ATTENTION, TensorClass.FEED_FORWARD, TensorClass.ROUTED_EXPERTS})


def parts_of(header: GgufHeader) -> int:
    """
    Return how many files a model is split into, by the header of its first.

    Raises:
        UnreadableModel: if it claims a number that cannot be.
    """
    count = header.fields.get("split.count", 1)
    if isinstance(count, bool) or not isinstance(count, int) or not 0 <= count <= MOST_PARTS:
        raise UnreadableModel(header.where, f"split.count is {count!r}; 1 to {MOST_PARTS} parts are possible")
    return max(1, count)


def is_first_part(name: str) -> bool:
    """Whether a file is the first or only one of its model, by its name."""
    split = _SPLIT.fullmatch(name)
    return split is None or int(split[2]) == 1


def other_parts(name: str, where: str) -> list[str]:
    """
    Return the names of the other files of a model, by that of its first.

    Raises:
        UnreadableModel: if it is the name of a later part, or of too many.
    """
    split = _SPLIT.fullmatch(name)
    if split is None:
        return []
    number, parts = int(split[2]), int(split[3])
    if number != 1 or not 1 <= parts <= MOST_PARTS:
        raise UnreadableModel(where, f"part {number} of {parts}; name the first part")
    return [f"{split[1]}-{other:05}-of-{split[3]}.gguf" for other in range(2, parts + 1)]


def read_gguf(
    headers: Sequence[GgufHeader],
    *,
    name: str | None = None,
    repository: str | None = None,
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
        repository: On the Hugging Face hub, where it comes from there.
        params: Total parameters, where a person states them.
        active_params: Parameters read for one token, likewise.
        facts: Fields that the header lacks, by their names in a configuration.

    Raises:
        UnreadableModel: if the header cannot be, or parts are missing.
        UnknownArchitecture: if it leaves open what memory depends on.
    """
    first = headers[0]
    table = _whole(headers)
    named = first.fields.get("general.name")
    name = name or (named if isinstance(named, str) and named.strip() else first.where)
    reading = read_config(
        config_from_gguf(replace(first, table=table)),
        name=name,
        where=first.where,
        repository=repository,
        params=params,
        active_params=active_params,
        facts=facts,
        tensors=table,
    )
    quant, notes = _format(first, table)
    layers = [tensor for tensor in table.tensors if class_of(tensor.name) in _MATRICES]
    routed = [tensor for tensor in layers if class_of(tensor.name) is TensorClass.ROUTED_EXPERTS]
    others = [tensor for tensor in layers if class_of(tensor.name) is not TensorClass.ROUTED_EXPERTS]
    model = replace(
        reading.model,
        native_dtype=quant,
        native_expert_bits=_bits(routed),
        native_other_bits=_bits(others),
        config_source="the header of its GGUF file",
    )
    return replace(reading, model=model, quant=quant, is_gguf=True).noted(*notes)


def _whole(headers: Sequence[GgufHeader]) -> TensorTable:
    """Return the tensors of all parts, once they are all there and each is there once."""
    first = headers[0]
    parts = parts_of(first)
    if len(headers) != parts:
        raise UnreadableModel(first.where, f"{len(headers)} of its {parts} parts are there")
    table = joined(header.table for header in headers)
    names = {tensor.name for tensor in table.tensors}
    if len(names) < len(table.tensors):
        raise UnreadableModel(first.where, "its parts hold the same tensors twice")
    stated = first.fields.get("split.tensors.count", len(names))
    if stated != len(names):
        raise UnreadableModel(first.where, f"its parts hold {len(names):,} of {stated!r} tensors")
    return table


def _format(first: GgufHeader, table: TensorTable) -> tuple[str, tuple[str, ...]]:
    """Return the entry of the catalogue for the file's format, and a note where it is not the very one."""
    kind = first.fields.get("general.file_type")
    stated = file_types().get(kind) if isinstance(kind, int) else None
    bits = _bits(table.tensors) or 16.0
    quant, is_exact = nearest_format(stated, bits)
    if is_exact and not 1 / MOST_OFF < bits / all_quants()[quant].bits_per_weight < MOST_OFF:
        quant = nearest_format(None, bits)[0]
        what = f"it calls itself {stated}, and its tensors have {bits:.2f} bits a weight"
        return quant, (f"{what}: {quant} is the nearest; sizes are those of its tensors",)
    if is_exact:
        return quant, ()
    what = f"its format {stated or 'of mixed tensors'} is not in the catalogue"
    return quant, (f"{what}: {quant} is the nearest; sizes are those of its tensors",)


def _bits(tensors: Sequence[Tensor]) -> float | None:
    """Return the mean bits of a weight, None where there is none."""
    elements = sum(tensor.elements for tensor in tensors)
    return 8 * sum(tensor.size_bytes for tensor in tensors) / elements if elements else None
