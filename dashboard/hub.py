"""Fetch the small files of a model from the Hugging Face hub, and keep a copy in the user's cache."""

import json
import os
import re
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from planner.configs import read_config_text
from planner.errors import UnreadableModel
from planner.reading.safetensors import MOST_INDEX_CHARACTERS, SafetensorsIndex, parse_index
from pricing.errors import Blocked, FetchError, PricingError
from pricing.offer import Problem, RawOffer
from pricing.provider import Page, Provider, ProviderClass, Request

HOST = "https://huggingface.co"
BASE_URL_VARIABLE = "BREAKEVEN_HF_BASE_URL"
_NAME = re.compile(r"hf:([A-Za-z0-9][\w.-]*)/([A-Za-z0-9][\w.-]*)(?:@([\w.-]+))?")
# Configurations change rarely; a copy that is older is fetched again, and serves where that fails.
# Source: own choice.
FRESH_S = 7 * 24 * 3600.0
_FILES = {"config": "config.json", "quantisation": "hf_quant_config.json", "index": "model.safetensors.index.json"}


class HuggingFace(Provider):
    """The hub, to be asked by the same bounded client as price pages; it sells nothing here."""

    name = "hf"
    title = "Hugging Face hub"
    kind = ProviderClass.WITNESS
    home = HOST
    pages: Mapping[str, str] = {"hub": HOST}
    min_interval_s = 0.0

    def parse(self, pages: Mapping[str, Page]) -> Iterable[RawOffer | Problem]:
        """Return nothing: there are no prices."""
        del pages
        return []


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFiles:
    """What the hub holds of a model beside its weights."""

    repository: str
    where: str  # address, for messages and as the source
    config: Mapping[str, Any]
    quantisation: Mapping[str, Any] | None
    index: SafetensorsIndex | None


def fetch_model_files(
    name: str,
    environ: Mapping[str, str],
    *,
    folder: Path | None = None,
    now_s: Callable[[], float] = time.time,
) -> ModelFiles:
    """
    Return the configuration of `hf:owner/name` or `hf:owner/name@revision`, with its index where it has one.

    Args:
        name: As given.
        environ: May name a mirror, `BREAKEVEN_HF_BASE_URL`.
        folder: Where copies are kept; the user's cache folder by default.
        now_s: The time of the copies' file system. [s]

    Raises:
        UnreadableModel: if the name or the answer is none.
        FetchError: if nothing comes and no copy is kept.
    """
    match = _NAME.fullmatch(name)
    if match is None or ".." in name:
        raise UnreadableModel("MODEL", f"{name!r} is not hf:owner/name, such as hf:Qwen/Qwen3-8B")
    owner, model, revision = match[1], match[2], match[3] or "main"
    address = f"{HOST}/{owner}/{model}/resolve/{revision}"
    copy = (folder or _cache_folder()) / f"{owner}--{model}@{revision}.json"
    texts = _kept(copy, now_s() - FRESH_S)
    if texts is None:
        try:
            texts = _fetched(address, environ)
        except FetchError:
            texts = _kept(copy, 0.0)
            if texts is None:
                raise
        else:
            _keep(copy, texts)
    return _files(f"{owner}/{model}", address, texts)


def _files(repository: str, address: str, texts: Mapping[str, str]) -> ModelFiles:
    def parsed(key: str) -> dict[str, Any] | None:
        return read_config_text(texts[key], f"{address}/{_FILES[key]}") if key in texts else None

    config = parsed("config")
    index = parse_index(texts["index"], f"{address}/{_FILES['index']}") if "index" in texts else None
    return ModelFiles(
        repository=repository,
        where=f"{address}/{_FILES['config']}",
        config=config or {},
        quantisation=parsed("quantisation"),
        index=index,
    )


def _fetched(address: str, environ: Mapping[str, str]) -> dict[str, str]:
    """Ask the hub for the files; only the configuration must be there."""
    from pricing.http import Client

    mirror = environ.get(BASE_URL_VARIABLE, "").strip()
    texts: dict[str, str] = {}
    provider = HuggingFace()
    with Client(base_urls={"hf": mirror} if mirror else {}) as client:
        for key, file in _FILES.items():
            request = Request(
                page=key, url=f"{address}/{file}", max_bytes=MOST_INDEX_CHARACTERS, deadline_s=60.0
            )
            try:
                texts[key] = client.fetch(request, provider).text()
            except Blocked as error:
                if key == "config":
                    raise FetchError(
                        f"{address}: not open to all, or no such model; download its config.json and give the path",
                        provider="hf",
                        url=address,
                    ) from error
            except PricingError:
                if key == "config":
                    raise
    return texts


def _cache_folder() -> Path:
    from platformdirs import user_cache_path

    return user_cache_path("breakeven", appauthor=False) / "hf"


def _kept(copy: Path, not_before_s: float) -> dict[str, str] | None:
    """Return a copy that is there, whole, and not too old."""
    try:
        if copy.stat().st_mtime < not_before_s:
            return None
        texts = json.loads(copy.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    is_whole = isinstance(texts, dict) and all(isinstance(text, str) for text in texts.values())
    return texts if is_whole and "config" in texts else None


def _keep(copy: Path, texts: Mapping[str, str]) -> None:
    """Keep a copy, whole or not at all; a folder that cannot be written is no reason to fail."""
    with suppress(OSError):
        copy.parent.mkdir(parents=True, exist_ok=True)
        handle, draft = tempfile.mkstemp(dir=copy.parent, suffix=".part")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                json.dump(texts, file)
            Path(draft).replace(copy)
        except OSError:
            Path(draft).unlink(missing_ok=True)
            raise
