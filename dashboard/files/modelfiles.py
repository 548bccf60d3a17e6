"""
Open what MODEL names where that is a file: a configuration, a folder, a GGUF file, `hf:owner/name`.

Of every file no more is read than its header or its configuration takes; the planner reads what that says.
"""

import os
import re
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from dashboard.files.checkpoint import CONFIG, INDEX, QUANTISATION, SINGLE
from planner.configs import ModelReading, read_config, read_config_text
from planner.errors import UnreadableModel
from planner.gguf import is_first_part, other_parts, parts_of, read_gguf
from planner.reading.facts import parse_facts, parse_params
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

# A first read that holds most headers with a vocabulary; then four times as much. Source: own choice.
FIRST_GGUF_BYTES = 8 * 2**20
_FILE_LIKE = re.compile(
    r"(hf:|\.{1,2}([/\\]|$)|[/\\~]|[A-Za-z]:[/\\])|.*\.(json|gguf|safetensors)$", re.DOTALL
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stated:
    """What a person says about a model beside its files."""

    params: int | None = None
    active_params: int | None = None
    facts: Mapping[str, Any] | None = None

    @classmethod
    def parse(cls, params: str | None, facts: Sequence[str]) -> "Stated":
        """
        Read the options `--params` and `--fact`.

        Raises:
            InvalidScenario: if one is not of its form.
        """
        total, active = parse_params(params) if params is not None else (None, None)
        return cls(params=total, active_params=active, facts=parse_facts(facts) or None)

    @property
    def options(self) -> Mapping[str, Any]:
        """What the readers take."""
        return {"params": self.params, "active_params": self.active_params, "facts": self.facts}


def is_file_name(name: str) -> bool:
    """Whether a MODEL is meant as a file, a folder or an address rather than a name of the catalogue."""
    return _FILE_LIKE.match(name) is not None


def open_model(name: str, stated: Stated, environ: Mapping[str, str] | None = None) -> ModelReading:
    """
    Read the model that a file, a folder or `hf:owner/name` holds.

    Raises:
        UnreadableModel: if it is not there or not one.
        UnknownArchitecture: if facts are missing; it names them.
        FetchError: if it cannot be fetched and no copy was kept.
    """
    if name.startswith("hf:"):
        from dashboard.files.hubmodels import open_hub

        return open_hub(name, stated.options, os.environ if environ is None else environ)
    if "://" in name:
        what = "addresses are not fetched; download the file and give its path, or give hf:owner/name"
        raise UnreadableModel(name, what)
    path = Path(name).expanduser()
    if path.is_dir():
        return _open_folder(path, name, stated)
    if path.suffix == ".gguf":
        return _open_gguf(path, stated)
    if path.suffix == ".safetensors":
        return _open_beside(path, stated)
    if path.name.endswith(".safetensors.index.json"):
        return _open_beside(path, stated)
    return _open_config(path, stated)


def _open_folder(path: Path, name: str, stated: Stated) -> ModelReading:
    """Read the configuration in a folder, else the one model in GGUF files that it holds."""
    if (path / CONFIG).exists():
        return _open_config(path / CONFIG, stated)
    found = sorted(path.glob("*.gguf"))
    models = [file for file in found if is_first_part(file.name) and not file.name.startswith("mmproj")]
    if not models:
        raise UnreadableModel(name, f"the folder holds no {CONFIG} and no .gguf file")
    if len(models) > 1:
        what = f"the folder holds {len(models)} models; name one, such as {models[0].name}"
        raise UnreadableModel(name, what)
    return _open_gguf(models[0], stated)


def _open_beside(path: Path, stated: Stated) -> ModelReading:
    """Read the configuration beside tensors or their index: these alone do not say what a layer is."""
    _size(path)
    config = path.with_name(CONFIG)
    if not config.is_file():
        raise UnreadableModel(
            str(path), f"tensors without a {CONFIG} beside them do not tell the architecture"
        )
    return _open_config(config, stated)


def _open_config(path: Path, stated: Stated) -> ModelReading:
    config = read_config_text(_text(path, MOST_CONFIG_BYTES), str(path))
    tensors, index, quantisation = None, None, None
    title = path.stem
    if path.name == CONFIG:
        title = path.absolute().parent.name or title
        beside = path.with_name(QUANTISATION)
        if beside.is_file():
            quantisation = read_config_text(_text(beside, MOST_CONFIG_BYTES), str(beside))
        tensors, index = _tensors_beside(path.parent)
    return read_config(
        config,
        name=title,
        where=str(path),
        quantisation=quantisation,
        index=index,
        tensors=tensors,
        **stated.options,
    )


def _tensors_beside(folder: Path) -> tuple[TensorTable | None, SafetensorsIndex | None]:
    """Return the tensors of the files beside a configuration; where files are missing, their index."""
    index, files = None, [SINGLE]
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
    with _opened(path) as file:
        length = header_bytes(file.read(8), str(path), size)
        return parse_header(file.read(length), str(path), size)


def _open_gguf(path: Path, stated: Stated) -> ModelReading:
    """Read the headers of a GGUF file and of the other parts of its model."""
    parts = [path, *(path.with_name(name) for name in other_parts(path.name, str(path)))]
    missing = [part.name for part in parts if not part.is_file()]
    if missing and path.is_file():
        raise UnreadableModel(
            str(path), f"{len(missing)} of its {len(parts)} parts are missing: {missing[0]}"
        )
    headers = [_gguf_header(part) for part in parts]
    if parts_of(headers[0]) > len(parts):
        count = parts_of(headers[0])
        what = f"one of {count} parts, the first of which must be named like NAME-00001-of-{count:05}.gguf"
        raise UnreadableModel(str(path), what)
    named = headers[0].fields.get("general.name")
    name = named if isinstance(named, str) and named.strip() else path.stem
    reading = read_gguf(headers, name=name, **stated.options)
    encoders = sorted(file.name for file in path.parent.glob("mmproj*.gguf"))
    if encoders:
        return reading.noted(f"{encoders[0]} beside it is an encoder of images or sound: not counted")
    return reading


def _gguf_header(path: Path) -> GgufHeader:
    """Read as much of a file as its header takes."""
    size, count = _size(path), FIRST_GGUF_BYTES
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


def _opened(path: Path) -> BinaryIO:
    try:
        return path.open("rb")
    except OSError as error:
        raise UnreadableModel(str(path), error.strerror or "cannot be opened") from error


def _size(path: Path) -> int:
    """Return the size of a file that is one; a device or a pipe could go on for ever. [B]"""
    try:
        status = path.stat()
    except (OSError, ValueError) as error:
        raise UnreadableModel(str(path), getattr(error, "strerror", None) or "no such file") from error
    if not stat.S_ISREG(status.st_mode):
        raise UnreadableModel(str(path), "not a file")
    return status.st_size


def _text(path: Path, most_bytes: int) -> str:
    """Return the text of a file that is not larger than such a file can be."""
    size = _size(path)
    if size > most_bytes:
        raise UnreadableModel(str(path), f"{size:,} bytes are too many for it")
    with _opened(path) as file:
        try:
            return file.read(most_bytes).decode("utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            why = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
            raise UnreadableModel(str(path), why or "cannot be read") from error
