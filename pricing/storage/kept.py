"""
Answers of earlier runs on disk, so that a source can say "not changed" instead of sending all of it again.

What is lost here is fetched again: a folder that cannot be written, a damaged file or none at all only cost
traffic. Bodies are packed; nothing that came for a key, and no list of private hosts, is ever kept.
"""

import gzip
import hashlib
import json
import logging
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import timedelta
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import IO

from pricing.provider import Page, Request, Site, page_digest
from pricing.web.addresses import public_url

logger = logging.getLogger(__name__)

# A page that changes twice within a second has one date for both. Source: RFC 9110, 8.8.2.2.
MIN_AGE = timedelta(seconds=60)
# Price lists of 480 MB pack to a twentieth at the quickest level; a better one takes several times as long.
_LEVEL = 1
_CHUNK = 2**20


class Damaged(Exception):
    """What was kept is not what was written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """An answer that was kept, and how to ask whether it has changed."""

    etag: str | None
    last_modified: str | None
    answered_by: str  # the address that sent it, after redirects
    digest: str  # SHA-256 of the inflated body

    @property
    def conditions(self) -> Mapping[str, str]:
        """The headers that ask for an answer only where it is another."""
        found = {"If-None-Match": self.etag, "If-Modified-Since": self.last_modified}
        return {name: value for name, value in found.items() if value}


class KeptPages:
    """
    The folder of kept answers, with a folder of its own for each source.

    Different sources may be used from different threads. Several processes may share it: a file appears
    whole under its name, and is checked when it is read.

    Args:
        folder: Made when first needed.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._used: dict[str, set[str]] = {}

    def find(self, request: Request, provider: Site) -> Kept | None:
        """Return what is kept of the answer to a request, if anything."""
        if not _may_be_kept(request, provider):
            return None
        try:
            document = json.loads(self._note(provider, request).read_text(encoding="utf-8"))
            return Kept(**document)
        except (OSError, ValueError, TypeError):
            return None

    def packed(self, kept: Kept, provider: Site) -> Iterator[bytes]:
        """Yield the packed body in pieces."""
        with self._body(provider, kept.digest).open("rb") as file:
            while piece := file.read(_CHUNK):
                yield piece

    def use(self, request: Request, provider: Site, kept: Kept) -> None:
        """Note that an answer was needed in this run."""
        names = {self._note(provider, request).name, self._body(provider, kept.digest).name}
        self._used.setdefault(provider.name, set()).update(names)

    def keep(
        self,
        request: Request,
        provider: Site,
        page: Page,
        headers: Mapping[str, str],
        answered_by: str,
    ) -> None:
        """Keep an answer where its source can later say whether it has changed."""
        etag, last_modified = _validators(headers)
        if not _may_be_kept(request, provider) or not (etag or last_modified):
            return
        try:
            self._note(provider, request).parent.mkdir(parents=True, exist_ok=True)
            digest = self._pack(page, provider)
            kept = Kept(etag=etag, last_modified=last_modified, answered_by=answered_by, digest=digest)
            with _placed(self._note(provider, request)) as file:
                file.write(json.dumps(asdict(kept)).encode())
        except OSError as error:
            logger.debug("%s: page %s is not kept: %s", provider.name, request.page, error)
        else:
            self.use(request, provider, kept)

    def settle(self, provider: Site, *, is_read: bool) -> None:
        """
        Remove what is of no use any more.

        Args:
            provider: Whose pages have all come.
            is_read: Whether prices were found on them; a page that could not be read is asked for anew.
        """
        wanted = self._used.pop(provider.name, set()) if is_read else set()
        folder = self._folder / provider.name
        with suppress(OSError):
            for path in list(folder.iterdir()):
                if path.name not in wanted:
                    path.unlink(missing_ok=True)

    def _pack(self, page: Page, provider: Site) -> str:
        """Write the body under the name of its digest, and return that."""
        digest = page_digest(page)
        with (
            _placed(self._body(provider, digest)) as file,
            gzip.GzipFile(fileobj=file, mode="wb", compresslevel=_LEVEL, mtime=0) as packed,
        ):
            for piece in page.pieces():
                packed.write(piece)
        return digest

    def _note(self, provider: Site, request: Request) -> Path:
        name = hashlib.sha256(request.url.encode()).hexdigest()[:32]
        return self._folder / provider.name / f"{name}.json"

    def _body(self, provider: Site, digest: str) -> Path:
        return self._folder / provider.name / f"{digest}.gz"


@contextmanager
def _placed(path: Path) -> Iterator[IO[bytes]]:
    """Give a file to write that is there under its name once it is whole."""
    file = tempfile.NamedTemporaryFile(dir=path.parent, delete=False)  # noqa: SIM115 - renamed below
    try:
        with file:
            yield file
        Path(file.name).replace(path)
    finally:
        Path(file.name).unlink(missing_ok=True)


def checked(pieces: Iterator[bytes], digest: str) -> Iterator[bytes]:
    """
    Yield the pieces of a body as they are.

    Raises:
        Damaged: at the end, if they are not those that were kept.
    """
    total = hashlib.sha256()
    for piece in pieces:
        total.update(piece)
        yield piece
    if total.hexdigest() != digest:
        raise Damaged("it is not what was kept")


def _may_be_kept(request: Request, provider: Site) -> bool:
    is_open = not request.headers and public_url(request.url) == request.url
    return request.method == "GET" and is_open and not provider.names_hosts


def _validators(headers: Mapping[str, str]) -> tuple[str | None, str | None]:
    """Return ETag and Last-Modified as far as they tell one content from another."""
    if "no-store" in headers.get("cache-control", "").lower():
        return None, None
    last_modified = headers.get("last-modified")
    if last_modified is not None:
        try:
            age = parsedate_to_datetime(headers.get("date", "")) - parsedate_to_datetime(last_modified)
        except (TypeError, ValueError):
            last_modified = None
        else:
            last_modified = last_modified if age >= MIN_AGE else None
    return headers.get("etag") or None, last_modified
