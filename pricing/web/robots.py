"""
What a host lets programs read of its web pages: its robots.txt, by RFC 9309.

Only pages are asked about. An interface that its provider documents for programs is no page.
"""

from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import SplitResult, urlsplit, urlunsplit

from protego import Protego

from pricing.errors import FetchError
from pricing.provider import Page, Request

# The name by which a robots.txt may address us.
PRODUCT = "breakeven"
# A crawler reads at least 500 kibibytes of it. Source: RFC 9309, 2.5.
MAX_BYTES = 512 * 1024
# A small file; a host that takes longer is not well. Source: own choice.
DEADLINE_S = 20.0
# "Too many requests" says nothing of what may be read; RFC 9309 leaves the answer to the crawler.
_TOO_MANY = 429


class Unreachable(Exception):
    """The host does not say what may be read; then nothing may be."""


@dataclass(frozen=True, slots=True)
class Robots:
    """The rules of one host for us."""

    text: str

    def allows(self, url: str) -> bool:
        """Whether the page may be read by us."""
        return bool(self._rules().can_fetch(url, PRODUCT))

    @property
    def delay_s(self) -> float:
        """The pause that it asks for between two requests. [s]"""
        rules = self._rules()
        rate = rules.request_rate(PRODUCT)
        each = 0.0 if rate is None or not rate.requests else rate.seconds / rate.requests
        return max(float(rules.crawl_delay(PRODUCT) or 0.0), each)

    def _rules(self) -> Protego:
        return Protego.parse(self.text)


def rules_of(url: str, base: SplitResult | None) -> tuple[str, str]:
    """
    Return where the rules for a page are, and the page as they name it.

    A mirror has the rules of what it mirrors, under its own path.
    """
    parts = urlsplit(url)
    if base is None or parts.netloc != base.netloc:
        return urlunsplit((parts.scheme, parts.netloc, "/robots.txt", "", "")), url
    root = base.path.rstrip("/")
    page = urlunsplit((parts.scheme, parts.netloc, parts.path.removeprefix(root), parts.query, ""))
    return urlunsplit((base.scheme, base.netloc, f"{root}/robots.txt", "", "")), page


def ask(url: str, fetch: Callable[[Request], Page]) -> Robots:
    """
    Return the rules at an address.

    Args:
        url: Of the robots.txt.
        fetch: Sends a request or raises FetchError.

    Raises:
        Unreachable: where the host cannot say: it is not there, fails, or answers with something endless.

    Source:
        RFC 9309, 2.3.1: no such file (4xx) allows everything, a failing host (5xx, network) nothing.
    """
    try:
        page = fetch(Request(page="robots", url=url, max_bytes=MAX_BYTES, deadline_s=DEADLINE_S))
    except FetchError as error:
        if error.status is not None and 400 <= error.status < 500 and error.status != _TOO_MANY:
            return Robots("")
        raise Unreachable(str(error)) from error
    return Robots(page.body.decode("utf-8-sig", "replace"))
