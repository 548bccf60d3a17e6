"""A model from the Hugging Face hub: which of its files are asked for, which is believed first."""

from collections.abc import Mapping
from typing import Any

from dashboard.files.checkpoint import CONFIG, INDEX, QUANTISATION
from dashboard.files.hub import MOST_SHARDS, HubName, Repository
from planner.configs import ModelReading, read_config, read_config_text
from planner.errors import UnreadableModel
from planner.gguf import other_parts, read_gguf
from planner.reading.safetensors import SafetensorsIndex, parse_index
from planner.reading.tensors import TensorTable
from pricing.errors import FetchError


def open_hub(name: str, stated: Mapping[str, Any], environ: Mapping[str, str]) -> ModelReading:
    """
    Fetch what the hub holds of a model beside its weights, and read it.

    Args:
        name: `hf:owner/name`, `hf:owner/name@revision` or `hf:owner/name/FILE.gguf`.
        stated: What a person says about it, as `read_config` takes it.
        environ: May name a mirror and a token.

    Raises:
        UnreadableModel, UnknownArchitecture: if it is none, or leaves facts open.
        FetchError: if it cannot be fetched and no copy was kept.
    """
    hub = HubName.parse(name)
    with Repository(name=hub, environ=environ) as repository:
        is_gguf = hub.file is not None
        reading = _gguf(repository, stated) if is_gguf else _configured(repository, stated)
        if repository.is_stale:
            return reading.noted("the hub did not answer: copies that are more than a week old were read")
        return reading


def _gguf(repository: Repository, stated: Mapping[str, Any]) -> ModelReading:
    """Read the headers of a GGUF file and of the other parts of its model."""
    file = repository.name.file or ""
    folder, slash, base = file.rpartition("/")
    files = [file, *(f"{folder}{slash}{other}" for other in other_parts(base, repository.address(file)))]
    name = repository.name.repository
    return read_gguf([repository.gguf(each) for each in files], name=name, repository=name, **stated)


def _configured(repository: Repository, stated: Mapping[str, Any]) -> ModelReading:
    """Read the configuration, with the headers of the tensors where they are to be had, else their index."""
    name = repository.name.repository
    text = repository.text(CONFIG)
    if text is None:
        what = f"the repository has no {CONFIG}; of GGUF files name one: hf:{name}/FILE.gguf"
        raise UnreadableModel(f"hf:{name}", what)
    beside, listed = repository.text(QUANTISATION), repository.text(INDEX)
    index = None if listed is None else parse_index(listed, repository.address(INDEX))
    tensors, notes = _tensors(repository, index)
    reading = read_config(
        read_config_text(text, repository.address(CONFIG)),
        name=name,
        where=repository.address(CONFIG),
        repository=name,
        quantisation=None if beside is None else read_config_text(beside, repository.address(QUANTISATION)),
        index=index,
        tensors=tensors,
        **stated,
    )
    return reading.noted(*notes)


def _tensors(
    repository: Repository, index: SafetensorsIndex | None
) -> tuple[TensorTable | None, tuple[str, ...]]:
    """Return the tensors, and why there are none; without them the index and the configuration remain."""
    if index is not None and len(index.files) > MOST_SHARDS:
        return None, (f"its {len(index.files)} files are too many to ask each for its tensors",)
    try:
        return repository.tensors(index), ()
    except FetchError as error:
        return None, (f"its tensors could not be read: {error}",)
