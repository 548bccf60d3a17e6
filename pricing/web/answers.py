"""What to make of an answer: its status, its body within bounds, and what was kept of an earlier one."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Protocol

from pricing.errors import Blocked, FetchError, NotThere
from pricing.provider import Page, Request, Site
from pricing.storage.kept import Damaged, Kept, KeptPages, checked
from pricing.web.body import Sink, Undecodable, inflated
from pricing.web.failures import Again, Failures, Lost
from pricing.web.line import Watch
from pricing.web.manners import retry_after

_TRY_AGAIN = frozenset({429, 502, 503, 504})


class Response(Protocol):
    """An answer as the library of HTTP gives it."""

    @property
    def status_code(self) -> int:
        """Return such as 200."""

    @property
    def reason_phrase(self) -> str:
        """Return such as OK."""

    @property
    def headers(self) -> Mapping[str, str]:
        """Return what stands before the body."""

    @property
    def charset_encoding(self) -> str | None:
        """Return the character set that the headers name."""

    def iter_raw(self) -> Iterator[bytes]:
        """Yield the body as it came, packed or not."""


class Answers:
    """
    Reads what providers answer.

    Args:
        failures: Makes the errors.
        spool_folder: Where large bodies go.
        clock: Monotonic seconds. [s]
        wall_clock: For a `Retry-After` that is a date.
    """

    def __init__(
        self,
        failures: Failures,
        spool_folder: Callable[[], Path],
        clock: Callable[[], float],
        wall_clock: Callable[[], datetime],
    ) -> None:
        self._failures = failures
        self._spool_folder = spool_folder
        self._clock = clock
        self._wall_clock = wall_clock

    def check_status(self, response: Response, request: Request, provider: Site) -> None:
        """
        Raise unless the answer is what was asked for.

        Raises:
            Again: where another try may succeed.
            FetchError: else.
        """
        status, error = response.status_code, self._failures.error
        if status == (200 if request.byte_range is None else 206):
            return
        if status == 200:
            raise error(request, provider, "sent all of a file of which a part was asked for")
        answer = f"answered {status} {response.reason_phrase}".rstrip()
        if status in {401, 403}:
            variable = f"BREAKEVEN_{provider.name.upper()}_API_KEY"
            needs_key = bool(provider.requires_key or request.headers)
            hint = f"check {variable}" if needs_key else "it does not want to be read by us"
            raise error(request, provider, f"{answer}: {hint}", Blocked, status)
        if status in _TRY_AGAIN:
            wish_s = retry_after(response.headers.get("retry-after", ""), self._wall_clock())
            if status == 429:
                late = f"{answer}: asked too often, wait for the next run"
                raise Again(error(request, provider, late, Blocked, status), wish_s)
            raise Again(error(request, provider, f"{answer}: try again later", status=status), wish_s)
        raise error(request, provider, answer, NotThere if status in {404, 410} else FetchError, status)

    def read(
        self,
        response: Response,
        request: Request,
        provider: Site,
        deadline: float,
        watch: Watch,
    ) -> Page:
        """Read the body, inflating no more than is allowed, and into a file where it is large."""
        declared = response.headers.get("content-length", "")
        if declared.isdecimal() and int(declared) > request.max_bytes:
            raise self._failures.too_large(request, provider)
        sink = Sink(self._spool_folder)
        pieces = inflated(response.iter_raw(), response.headers.get("content-encoding", ""))
        bounded = self._bounded(pieces, request, provider, deadline)
        url = self._failures.public(request.url)
        try:
            for piece in bounded if request.sieve is None else request.sieve(bounded):
                sink.write(piece)
            if watch.has_cut:  # without a declared length a cut connection looks like an end
                raise self._failures.late(request, provider)
            if request.byte_range is not None:
                whole = _whole_bytes(response.headers.get("content-range", ""))
                return replace(sink.page(request.page, url, "utf-8"), whole_bytes=whole)
            return sink.page(request.page, url, (response.charset_encoding or "utf-8").lower())
        except (Undecodable, UnicodeError, LookupError) as error:
            text = f"sent a body that cannot be decoded: {error}"
            raise self._failures.error(request, provider, text) from error
        finally:
            sink.close()

    def unchanged(self, kept: Kept, pages: KeptPages, request: Request, provider: Site) -> Page:
        """
        Return the answer of an earlier run.

        Raises:
            Lost: if it is damaged; it is to be asked for again, without conditions.
        """
        sink = Sink(self._spool_folder)
        try:
            pieces = inflated(pages.packed(kept, provider), "gzip")
            for piece in checked(pieces, kept.digest):
                sink.write(piece)
                if sink.size > request.max_bytes:
                    raise self._failures.too_large(request, provider)
            page = sink.page(request.page, self._failures.public(request.url), "utf-8")
        except (Damaged, Undecodable, OSError) as error:
            text = f"has not changed, and what was kept of it is lost: {error}"
            raise Lost(self._failures.error(request, provider, text), 0.0) from error
        finally:
            sink.close()
        pages.use(request, provider, kept)
        return replace(page, is_unchanged=True)

    def _bounded(
        self, pieces: Iterable[bytes], request: Request, provider: Site, deadline: float
    ) -> Iterator[bytes]:
        """Yield the pieces of a body as long as it is within its size and its time."""
        size = 0
        for piece in pieces:
            size += len(piece)
            if size > request.max_bytes:
                raise self._failures.too_large(request, provider)
            if self._clock() > deadline:
                raise self._failures.late(request, provider)
            yield piece


def _whole_bytes(content_range: str) -> int | None:
    """Return the size of the whole file from `bytes 0-7/1234`, None where it is not stated."""
    size = content_range.rpartition("/")[2].strip()
    return int(size) if size.isascii() and size.isdecimal() and len(size) < 19 else None
