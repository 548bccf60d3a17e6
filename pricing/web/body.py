"""A body on its way in: inflated within bounds, kept in memory or, where it is large, in a file."""

import tempfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from pricing.provider import Page

# Bodies above this go to a file: a run of many providers stays small in memory. Source: own choice.
SPOOL_BYTES = 4 * 2**20
# What one step of inflating may yield. Source: own choice.
_PIECE_BYTES = 2**16


class Undecodable(Exception):
    """A body that is not in the encoding it declares, or in one that we do not read."""


def inflated(chunks: Iterable[bytes], encoding: str) -> Iterator[bytes]:
    """Yield the body in pieces of bounded size, however much a few bytes inflate to."""
    encoding = encoding.strip().lower()
    if encoding in {"", "identity"}:
        yield from chunks
        return
    if encoding not in {"gzip", "x-gzip", "deflate"}:
        raise Undecodable(f"content-encoding {encoding[:40]!r} was not asked for")
    inflate = zlib.decompressobj(zlib.MAX_WBITS | 32)  # gzip or zlib, told by the first bytes
    has_data = False
    try:
        for chunk in chunks:
            has_data = has_data or bool(chunk)
            rest = chunk
            while rest:
                if inflate.eof:  # a gzip body may hold several members
                    inflate = zlib.decompressobj(zlib.MAX_WBITS | 32)
                yield inflate.decompress(rest, _PIECE_BYTES)
                rest = inflate.unconsumed_tail or inflate.unused_data
    except zlib.error as error:
        raise Undecodable(f"it is not {encoding}") from error
    if has_data and not inflate.eof:
        raise Undecodable(f"the {encoding} data end too early")


class Sink:
    """A body as it arrives: in memory, and in a file above a size."""

    def __init__(self, folder: Callable[[], Path]) -> None:
        self.size = 0
        self._folder = folder
        self._memory = bytearray()
        self._file: Any = None

    def write(self, piece: bytes) -> None:
        """Add a piece."""
        self.size += len(piece)
        if self._file is not None:
            self._file.write(piece)
            return
        self._memory += piece
        if len(self._memory) > SPOOL_BYTES:
            self._file = tempfile.NamedTemporaryFile(dir=self._folder(), delete=False)  # noqa: SIM115 - closed by close()
            self._file.write(self._memory)
            self._memory.clear()

    def page(self, key: str, url: str, charset: str) -> Page:
        """Return the body, as UTF-8 where the answer names another character set."""
        is_utf8 = charset in {"utf-8", "utf8", "ascii", "us-ascii"}
        if self._file is not None:
            if not is_utf8:
                raise UnicodeError(f"{self.size} bytes of {charset}")
            self._file.flush()
            return Page(key=key, url=url, file=Path(self._file.name))
        body = bytes(self._memory)
        return Page(key=key, url=url, body=body if is_utf8 else body.decode(charset).encode())

    def close(self) -> None:
        """End writing; the file stays where it is."""
        if self._file is not None:
            self._file.close()
