"""
Open what MODEL names when it is no entry of the catalogue: a configuration, a folder, a GGUF file, `hf:owner/name`.

Of every file no more is read than its header or its configuration needs; the planner reads what that says.
"""

import os
import re
import stat
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from planner.configs import ModelReading, read_config, read_config_text
from planner.errors import UnreadableModel
from planner.gguf import parts_of, read_gguf
from planner.reading.fields import MOST_CONFIG_BYTES
from planner.reading.gguf import GgufHeader, HeaderTooShort, parse_gguf
from planner.reading.safetensors import (
    MOST_INDEX_CHARACTERS,
    SafetensorsIndex,
    header_bytes,
    parse_header,
    parse_index,
)
from planner.reading.tensors import TensorTable, joined

CONFIG = "config.json"
QUANTISATION = "hf_quant_config.json"
INDEX = "model.safetensors.index.json"
SINGLE = "model.safetensors"
# A first read that holds most headers with a vocabulary; then four times more each time. Source: own choice.
FIRST_GGUF_BYTES = 8 * 2**20
_SPLIT = re.compile(r"^(.*)-(\d{5})-of-(\d{5})\.gguf$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Stated:
    """What a person says about a model beside its files."""

    params: int | None = None
    facts: Mapping[str, Any] | None = None


def is_file_name(name: str) -> bool:
    """Whether a MODEL is meant as a file, a folder or an address rather than a name of the catalogue."""
    return name.startswith(("hf:", ".", "/", "~")) or name.endswith((".json", ".gguf"))


def parse_facts(texts: list[str]) -> dict[str, Any]:
    """
    Read `NAME=VALUE`, the fields that a configuration lacks; numbers and true or false are understood.

    Raises:
        UnreadableModel: if a text is not of that form.
    """
    facts: dict[str, Any] = {}
    for text in texts:
        name, is_there, value = text.partition("=")
        if not is_there or not re.fullmatch(r"[A-Za-z_]\w*", name.strip()) or not value.strip():
            raise UnreadableModel("--fact", f"{text!r} is not NAME=VALUE, such as num_key_value_heads=8")
        facts[name.strip()] = _value(value.strip())
    return facts


def _value(text: str) -> Any:
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    try:
        return int(text) if re.fullmatch(r"-?\d+", text) else float(text)
    except ValueError:
        return text


def open_model(name: str, stated: Stated, environ: Mapping[str, str] | None = None) -> ModelReading:
    """
    Read the model that a file, a folder or `hf:owner/name` holds.

    Raises:
        UnreadableModel: if it is not there or not one.
        FetchError: if it cannot be fetched and no copy was kept.
    """
    if name.startswith("hf:"):
        from dashboard.hub import fetch_model_files

        files = fetch_model_files(name, environ if environ is not None else os.environ)
        return _read(
            files.config, name=files.repository, where=files.where, stated=stated,
            quantisation=files.quantisation, index=files.index,
        )
    path = Path(name).expanduser()
    if path.is_dir():
        return _open_folder(path, name, stated)
    if path.suffix == ".gguf":
        return _open_gguf(path, stated)
    return _open_config(path, stated)


def _open_folder(path: Path, name: str, stated: Stated) -> ModelReading:
    """Read the configuration in a folder, else the one model in GGUF files that it holds."""
    if (path / CONFIG).exists():
        return _open_config(path / CONFIG, stated)
    found = sorted(path.glob("*.gguf"))
    firsts = [file for file in found if not (split := _SPLIT.match(file.name)) or int(split[2]) == 1]
    models = [file for file in firsts if not file.name.startswith("mmproj")]
    if not models:
        raise UnreadableModel(name, f"the folder holds no {CONFIG} and no .gguf file")
    if len(models) > 1:
        raise UnreadableModel(name, f"the folder holds {len(models)} models; name one, such as {models[0].name}")
    return _open_gguf(models[0], stated)


def _open_config(path: Path, stated: Stated) -> ModelReading:
    config = read_config_text(_text(path, MOST_CONFIG_BYTES), str(path))
    title = path.stem if path.name != CONFIG else path.absolute().parent.name
    tensors, index = None, None
    quantisation = None
    if path.name == CONFIG:
        beside = path.with_name(QUANTISATION)
        if beside.is_file():
            quantisation = read_config_text(_text(beside, MOST_CONFIG_BYTES), str(beside))
        tensors, index = _tensors_beside(path.parent)
    return _read(
        config, name=title or path.stem, where=str(path), stated=stated, quantisation=quantisation,
        index=index, tensors=tensors,
    )


def _read(
    config: Mapping[str, Any],
    *,
    name: str,
    where: str,
    stated: Stated,
    quantisation: Mapping[str, Any] | None,
    index: SafetensorsIndex | None,
    tensors: TensorTable | None = None,
) -> ModelReading:
    return read_config(
        config,
        name=name,
        where=where,
        params=stated.params,
        facts=stated.facts,
        quantisation=quantisation,
        index=index,
        tensors=tensors,
    )


def _tensors_beside(folder: Path) -> tuple[TensorTable | None, SafetensorsIndex | None]:
    """Return the tensors of the files beside a configuration; where files are missing, what the index says."""
    index = None
    files = [SINGLE]
    if (folder / INDEX).is_file():
        index = parse_index(_text(folder / INDEX, 4 * MOST_INDEX_CHARACTERS), str(folder / INDEX))
        files = [file for file in index.files if Path(file).name == file]
        if len(files) < len(index.files):
            raise UnreadableModel(str(folder / INDEX), "names files outside of its folder")
    if not all((folder / file).is_file() for file in files):
        return None, index
    return joined(_safetensors(folder / file) for file in files), index


def _safetensors(path: Path) -> TensorTable:
    """Read the header of one file."""
    size = _size(path)
    with path.open("rb") as file:
        length = header_bytes(file.read(8), str(path), size)
        return parse_header(file.read(length), str(path), size)


def _open_gguf(path: Path, stated: Stated) -> ModelReading:
    """Read the headers of a GGUF file and of the other parts of its model."""
    headers = [_gguf_header(path)]
    split = _SPLIT.match(path.name)
    if split and int(split[2]) != 1:
        raise UnreadableModel(str(path), f"part {int(split[2])} of {int(split[3])}; name the first part")
    if split:
        parts = parts_of(headers[0])
        others = [path.with_name(f"{split[1]}-{number:05}-of-{split[3]}.gguf") for number in range(2, parts + 1)]
        missing = [other.name for other in others if not other.is_file()]
        if missing:
            raise UnreadableModel(str(path), f"{len(missing)} of its {parts} parts are missing: {missing[0]}")
        headers += [_gguf_header(other) for other in others]
    named = headers[0].fields.get("general.name")
    name = named if isinstance(named, str) and named.strip() else path.stem
    return read_gguf(headers, name=name, params=stated.params, facts=stated.facts)


def _gguf_header(path: Path) -> GgufHeader:
    """Read as much of a file as its header takes."""
    size = _size(path)
    count = FIRST_GGUF_BYTES
    with _opened(path) as file:
        data = file.read(count)
        while True:
            try:
                return parse_gguf(data, str(path), size)
            except HeaderTooShort:
                count *= 4
                more = file.read(count - len(data))
                if not more:  # the file became shorter while it was read
                    return parse_gguf(data, str(path), len(data))
                data += more


def _opened(path: Path) -> Any:
    try:
        return path.open("rb")
    except OSError as error:
        raise UnreadableModel(str(path), error.strerror or "cannot be opened") from error


def _size(path: Path) -> int:
    """Return the size of a file that is one; a device or a pipe could go on for ever. [B]"""
    try:
        status = path.stat()
    except OSError as error:
        raise UnreadableModel(str(path), error.strerror or "cannot be opened") from error
    if not stat.S_ISREG(status.st_mode):
        raise UnreadableModel(str(path), "not a file")
    return status.st_size


def _text(path: Path, most_bytes: int) -> str:
    """Return the text of a file that is not larger than such a file can be."""
    size = _size(path)
    if size > most_bytes:
        raise UnreadableModel(str(path), f"{size:,} bytes are too many for it")
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        raise UnreadableModel(str(path), why or "cannot be read") from error
