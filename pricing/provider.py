"""The contract of a price source: what to fetch, and a pure function that reads it."""

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from enum import StrEnum
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import urlsplit

from pricing.errors import ParseError
from pricing.offer import Problem, RawOffer

# Large pages are walked through in such steps. Source: own choice.
_PIECE_BYTES = 2**20
# Marketplaces that post a list; the others show their hosts' asks. Source: docs/verification.md, "Lists and
# asks".
POSTED_LISTS = frozenset({"runpod", "cudo", "novita", "packet-ai", "salad", "gpuhub"})


class ProviderClass(StrEnum):
    """Who sells: price levels and their movement differ by an order between these."""

    MARKETPLACE = "marketplace"
    NEOCLOUD = "neocloud"
    HYPERSCALER = "hyperscaler"
    WITNESS = "witness"  # a catalogue of others' prices: confirms, never overrules


def shows_asks(kind: ProviderClass | None, provider: str) -> bool:
    """
    Return whether a provider shows what single hosts ask, each for a machine of its own, and no list.

    Source:
        docs/verification.md, "Lists and asks".
    """
    return kind is ProviderClass.MARKETPLACE and provider not in POSTED_LISTS


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One HTTP request that a provider wants sent; sending is `pricing.http`'s work."""

    page: str  # key under which the answer reaches `parse`
    url: str
    method: str = "GET"
    json_body: Mapping[str, Any] | None = None
    headers: Mapping[str, str] = field(default_factory=dict)  # may carry a key: never logged or stored
    is_optional: bool = False  # a failure is reported and leaves the other pages usable
    is_page: bool = False  # a web page rather than an API: robots.txt applies
    is_safe: bool = (
        False  # a POST that only reads, as a GraphQL query does: may be sent again after a failure
    )
    byte_range: tuple[int, int] | None = None  # only these bytes of a file, first and last
    max_bytes: int = 16 * 2**20  # of the inflated body
    # Lets through what is wanted of a large body as it arrives, so that the rest is never kept.
    sieve: Callable[[Iterable[bytes]], Iterator[bytes]] | None = None
    deadline_s: float = 60.0  # for everything: tries, redirects, pauses, the last byte


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """An answer: its bytes in memory, or a spooled file where it is large."""

    key: str
    url: str  # without any key or token
    body: bytes = b""
    file: Path | None = None
    is_unchanged: bool = False  # its source says that it is as it was in the last run
    whole_bytes: int | None = None  # size of the whole file where a range of it was asked for
    seen_at: datetime | None = None  # when it came: what takes effect later is no price yet

    def is_in_force(self, since: str) -> bool:
        """
        Whether a price that holds from a time on (ISO 8601, UTC where it says nothing) was in force already.

        Raises:
            ValueError: if that is no time.
        """
        start = datetime.fromisoformat(since)
        start = start.replace(tzinfo=UTC) if start.tzinfo is None else start
        return self.seen_at is None or start <= self.seen_at

    def content(self) -> bytes:
        """Return the body as it came."""
        return self.body if self.file is None else self.file.read_bytes()

    def pieces(self) -> Iterator[bytes]:
        """Yield the body in pieces that fit into memory."""
        if self.file is None:
            yield self.body
            return
        with self.file.open("rb") as file:
            while piece := file.read(_PIECE_BYTES):
                yield piece

    def text(self) -> str:
        """
        Return the body as text.

        Raises:
            ParseError: if it is empty or not UTF-8.
        """
        data = self.content()
        if not data.strip():
            raise ParseError(f"{self.key}: the answer is empty", page=self.key)
        try:
            return data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise ParseError(
                f"{self.key}: the answer is not UTF-8 text ({error.reason})", page=self.key
            ) from error

    def json(self) -> Any:
        """
        Return the body read as JSON, numbers with a point as exact decimals.

        Raises:
            ParseError: if it is HTML, truncated, or otherwise not JSON.
        """
        text = self.text()
        if text.lstrip()[:1] == "<":
            raise ParseError(
                f"{self.key}: HTML came where JSON was expected (a login or error page?)", page=self.key
            )
        try:
            return json.loads(text, parse_float=Decimal, parse_constant=_refuse_constant)
        except (ValueError, ArithmeticError) as error:  # the latter of a number beyond all decimals
            raise ParseError(f"{self.key}: not valid JSON ({error})", page=self.key) from error
        except RecursionError as error:
            raise ParseError(
                f"{self.key}: not an answer: its JSON is nested too deeply", page=self.key
            ) from error


def page_digest(page: Page) -> str:
    """Return the SHA-256 of a page's bytes."""
    total = hashlib.sha256()
    for piece in page.pieces():
        total.update(piece)
    return total.hexdigest()


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a number")


@dataclass(frozen=True, slots=True, kw_only=True)
class Keys:
    """Credentials from the environment for one provider; their text is never shown."""

    secret: str | None = field(default=None, repr=False)

    def __bool__(self) -> bool:
        return bool(self.secret)


class Site:
    """What is asked over the network: where it may be asked, and how often."""

    name: ClassVar[str]  # the key used everywhere
    title: ClassVar[str]  # for people
    pages: ClassVar[Mapping[str, str]] = {}  # plain GETs: page key -> URL
    hosts: ClassVar[frozenset[str]] = frozenset()  # further hosts that redirects and later pages may name
    min_interval_s: ClassVar[float] = 1.0  # between two requests
    names_hosts: ClassVar[bool] = False  # answers hold addresses of private hosts: never kept on disk
    requires_key: ClassVar[bool] = False
    key_help: ClassVar[str] = ""  # where a person gets one

    @classmethod
    def allowed_hosts(cls) -> frozenset[str]:
        """Return every host that its requests and redirects may name."""
        return cls.hosts | {host for url in cls.pages.values() if (host := urlsplit(url).hostname)}


class Provider(Site, ABC):
    """
    A source of prices. It says what to fetch and how to read it; it never fetches, stores or logs.

    A module in `pricing.providers` holds exactly one subclass and is found by itself.
    """

    kind: ClassVar[ProviderClass]
    home: ClassVar[str]  # where a person would deploy
    currencies: ClassVar[frozenset[str]] = frozenset()  # that its prices are in, other than the dollar

    def requests(self, keys: Keys) -> Iterable[Request]:
        """Return the first requests; the default is one plain GET for each of `pages`."""
        del keys
        return [Request(page=key, url=url) for key, url in self.pages.items()]

    def follow(self, page: Page, keys: Keys) -> Iterable[Request]:
        """Return what to fetch after this answer: further pages, sent in turn until none is named."""
        del page, keys
        return []

    def recognise(self, page: Page) -> str | None:
        """
        Return the page key that a saved answer belongs to, judged by its shape, or None.

        Used by `prices replay`. The default accepts anything where the provider has a single page.
        """
        del page
        return next(iter(self.pages)) if len(self.pages) == 1 else None

    @abstractmethod
    def parse(self, pages: Mapping[str, Page]) -> Iterable[RawOffer | Problem]:
        """
        Read the pages: a pure function, strict about everything it takes.

        Args:
            pages: Answers by page key; further answers of the same kind have keys `key#2`, `key#3`.

        Returns:
            A `RawOffer` for each price, a `Problem` for each row that is not one.

        Raises:
            ParseError: if the page as a whole is not of the known shape.
        """
