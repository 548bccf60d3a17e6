"""Names in the files of benchmarks: which model, weight format and GPUs they mean."""

import re
from collections.abc import Mapping
from typing import Any

from planner.catalogues.models import Model, ModelMatch, find_model
from planner.catalogues.quants import find_quant
from planner.errors import InvalidScenario, PlannerError

_PART = re.compile(r"-\d{5}-of-\d{5}$")
# A format at the end of a file's name, and as llama.cpp writes the type of a model: `Q4_K - Medium`.
_FORMAT_AT_END = re.compile(r"[-_.]((?:UD-)?(?:I?Q\d\w*|BF16|F16|MXFP4))$", re.IGNORECASE)
_FORMAT = re.compile(r"\b(I?Q\d\w*|BF16|F16|MXFP4)\b(?: - (Small|Medium|Large))?")


def find_published(name: str) -> ModelMatch | None:
    """Return the model that a file or a repository is called after, None where none is known."""
    for candidate in (name, without_format(name), name.rpartition("/")[2]):
        try:
            return find_model(candidate)
        except PlannerError:
            continue
    return None


def devices_of(row: Mapping[str, Any]) -> list[str]:
    """Return the GPUs that a row of llama-bench names, each of them."""
    return [part.strip() for part in str(row.get("gpu_info") or "").split(",") if part.strip()]


def gguf_format(model: Model | None, type_text: str, file: str) -> str:
    """
    Return the format that a GGUF file holds.

    Args:
        model: Which model it is, where that is known.
        type_text: As llama.cpp writes its type: `qwen3 8B Q4_K - Medium`.
        file: Its name.

    Raises:
        InvalidScenario: if neither says it.
    """
    if model is not None and (model.native_dtype or "").startswith("mxfp4"):
        return "MXFP4"  # experts keep their four bits, whatever the file is called
    stem = _FORMAT_AT_END.search(file_stem(file))
    written = _FORMAT.search(type_text)
    candidates = []
    if written is not None:
        size = written[2][0] if written[2] else ""
        candidates += [f"{written[1]}_{size}" if size else written[1], written[1]]
    if stem is not None:
        candidates.insert(0, stem[1])
    for candidate in candidates:
        try:
            return find_quant(candidate).name
        except PlannerError:
            continue
    raise InvalidScenario("quant", type_text or file, "the format of the file (`breakeven quants`)")


def without_format(name: str) -> str:
    """Return the name of a model's file without the format at its end."""
    return _FORMAT_AT_END.sub("", name)


def file_stem(file: str) -> str:
    """Return the name of a GGUF file without folder, part and ending; any other name as it is."""
    name = file.replace("\\", "/").rpartition("/")[2] if file.endswith(".gguf") else file
    return _PART.sub("", name.removesuffix(".gguf"))
