"""
Files of a model on the Hugging Face hub: its configuration, its index, the headers of its tensors.

The hub is asked only where a person names `hf:owner/name`, and by the same bounded client as price pages.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar, Self

from dashboard.files.checkpoint import SINGLE
from dashboard.files.hubcopies import Copies, Copy, default_folder
from planner.errors import UnreadableModel
from planner.reading.gguf import GgufHeader, HeaderTooShort, parse_gguf
from planner.reading.safetensors import MOST_INDEX_CHARACTERS, SafetensorsIndex, header_bytes, parse_header
from planner.reading.tensors import TensorTable, joined
from pricing.errors import Blocked, FetchError, NotThere
from pricing.http import Client
from pricing.provider import Request, Site
from pricing.settings import Settings

NAME = "hf"
HOST = "https://huggingface.co"
# Where the hub sends those who ask for a large file; another host is refused, and the model is then read
# without its tensors. Source: allowlists of public projects that fetch from the hub.
FILE_HOSTS = frozenset(
    {
        "cas-bridge.xethub.hf.co",
        "cdn-lfs.hf.co",
        "cdn-lfs-us-1.hf.co",
        "cdn-lfs-eu-1.hf.co",
        "cdn-lfs.huggingface.co",
        "cdn-lfs-us-1.huggingface.co",
        "us.aws.cdn.hf.co",
        "eu.aws.cdn.hf.co",
    }
)
# First reads that hold the headers of most shards, and of most GGUF files with their vocabulary.
FIRST_SAFETENSORS_BYTES = 128 * 2**10
FIRST_GGUF_BYTES = 8 * 2**20
# A model in more files is read by its index: each header is one or two requests. Source: own choice.
MOST_SHARDS = 64

_PART = r"([A-Za-z0-9][\w.-]*)"
_NAME = re.compile(rf"hf:{_PART}/{_PART}(?:@([\w.-]+))?(?:/([\w./-]+\.gguf))?", re.ASCII)


class HuggingFace(Site):
    """The hub, for the client; it sells nothing here."""

    name = NAME
    title = "Hugging Face hub"
    pages: ClassVar[Mapping[str, str]] = {"hub": HOST}
    hosts = FILE_HOSTS
    min_interval_s = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class HubName:
    """`hf:owner/name`, with a revision after `@` and a GGUF file after a slash where these are named."""

    repository: str
    revision: str
    file: str | None

    @classmethod
    def parse(cls, text: str) -> Self:
        """
        Read a name.

        Raises:
            UnreadableModel: if it is none.
        """
        match = _NAME.fullmatch(text)
        if match is None or ".." in text:
            raise UnreadableModel("MODEL", f"{text!r} is not hf:owner/name, such as hf:Qwen/Qwen3-8B")
        return cls(repository=f"{match[1]}/{match[2]}", revision=match[3] or "main", file=match[4])


@dataclass(kw_only=True)
class Repository:
    """
    One revision of a repository, asked for single files within `with`.

    Args:
        name: Which.
        environ: May name a mirror and a token, `BREAKEVEN_HF_BASE_URL` and `BREAKEVEN_HF_API_KEY`.
        copies: Where answers are kept.
    """

    name: HubName
    environ: Mapping[str, str]
    copies: Copies = field(default_factory=lambda: Copies(folder=default_folder()))
    is_stale: bool = False  # whether an old copy took the place of an answer that did not come

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if "_client" in vars(self):
            self._client.close()

    @cached_property
    def _settings(self) -> Settings:
        return Settings.from_environ(self.environ)

    @cached_property
    def _client(self) -> Client:
        mirror, key = self._settings.base_url_of(NAME), self._settings.key_of(NAME).secret
        return Client(base_urls={NAME: mirror} if mirror else {}, secrets=[key] if key else [])

    def address(self, file: str) -> str:
        """Return the address of a file."""
        return f"{HOST}/{self.name.repository}/resolve/{self.name.revision}/{file}"

    def text(self, file: str, most_bytes: int = 4 * MOST_INDEX_CHARACTERS) -> str | None:
        """
        Return the text of a small file, None where there is none.

        Raises:
            FetchError: if it cannot be fetched and no copy is kept.
            UnreadableModel: if it is no text.
        """
        try:
            return self._answer(file, None, most_bytes).body.decode("utf-8-sig")
        except NotThere:
            return None
        except UnicodeDecodeError as error:
            raise UnreadableModel(self.address(file), "not UTF-8 text") from error

    def tensors(self, index: SafetensorsIndex | None) -> TensorTable | None:
        """
        Return the tensors of the files that an index names, or of the one file; None where that is not there.

        Raises:
            FetchError, UnreadableModel: if a header cannot be fetched or read.
        """
        files = index.files if index is not None else (SINGLE,)
        try:
            return joined([self._shard(file) for file in files])
        except NotThere:
            return None

    def _shard(self, file: str) -> TensorTable:
        data, size = self._part(file, 0, FIRST_SAFETENSORS_BYTES)
        length = header_bytes(data, self.address(file), size)
        if len(data) < 8 + length:
            data += self._part(file, len(data), 8 + length - len(data))[0]
        return parse_header(data[8 : 8 + length], self.address(file), size)

    def gguf(self, file: str) -> GgufHeader:
        """
        Return the header of a GGUF file, fetching little more than it takes.

        Raises:
            FetchError, UnreadableModel: if it cannot be fetched or read.
        """
        data, size = self._part(file, 0, FIRST_GGUF_BYTES)
        while True:
            try:
                return parse_gguf(data, self.address(file), size)
            except HeaderTooShort:
                data += self._part(file, len(data), 3 * len(data))[0]

    def _part(self, file: str, first: int, count: int) -> tuple[bytes, int]:
        """Return so many bytes of a file, fewer where it ends, and the size of the whole."""
        copy = self._answer(file, (first, first + count - 1), count)
        if copy.whole_bytes is None or not copy.body:
            raise FetchError(
                f"{self.address(file)}: the answer does not say how large the file is", provider=NAME
            )
        return copy.body, copy.whole_bytes

    def _answer(self, file: str, byte_range: tuple[int, int] | None, most_bytes: int) -> Copy:
        """Return what is kept and fresh, else what the hub answers, else what is kept."""
        address = self.address(file)
        key = address if byte_range is None else f"{address}#{byte_range[0]}-{byte_range[1]}"
        copy = self.copies.get(key)
        if copy is None or not copy.is_fresh:
            try:
                copy = self._fetched(address, byte_range, most_bytes)
            except FetchError:
                if copy is None:
                    raise
                self.is_stale = True
            else:
                self.copies.keep(key, copy)
        if copy.is_absent:
            raise NotThere(f"{address}: not there", provider=NAME, url=address)
        return copy

    def _fetched(self, address: str, byte_range: tuple[int, int] | None, most_bytes: int) -> Copy:
        key = self._settings.key_of(NAME).secret
        request = Request(
            page=address.rpartition("/")[2],
            url=address,
            headers={"Authorization": f"Bearer {key}"} if key else {},
            byte_range=byte_range,
            max_bytes=most_bytes,
        )
        try:
            page = self._client.fetch(request, HuggingFace())
        except NotThere:
            return Copy(body=b"", whole_bytes=None, is_absent=True)
        except Blocked as error:
            what = "not open to all, or no such model: set BREAKEVEN_HF_API_KEY to a token that may read it"
            text = f"hf:{self.name.repository}: {what}, or give the path of its config.json"
            raise Blocked(text, provider=NAME, url=address) from error
        return Copy(body=page.content(), whole_bytes=page.whole_bytes)
