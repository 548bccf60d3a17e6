"""
Strict reading of web pages: exactly what is expected, or `ParseError`.

A guess that survives a redesign is a wrong price. The only module that imports selectolax.
"""

import re
from collections.abc import Sequence
from decimal import Decimal

from selectolax.lexbor import LexborHTMLParser, LexborNode, SelectolaxError

from pricing.errors import ParseError
from pricing.provider import Page

Document = LexborHTMLParser
Node = LexborNode

# The parser is native code: pages of price tables are far smaller, larger ones are not pages.
MAX_PAGE_CHARACTERS = 16 * 2**20
# Texts of these are not what a reader sees; footnote marks would end up in names and numbers ("H100 SXM 1").
_UNSEEN = frozenset({"sup", "script", "style", "template", "noscript"})
# An amount whose cents may follow raised: whole, or of one decimal. A mark behind whole cents is a footnote.
_OPEN_AMOUNT = re.compile(r"[$€£]\s?\d[\d,]*(?:\.\d?)?$", flags=re.ASCII)
_HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")

_HOUR = r"(?:/|per\s)\s*(?:hour|hr|h)|hourly|an\shour"
# What may stand behind an amount, by the unit asked for.
_UNITS = {
    "hour": _HOUR,
    "gpu-hour": (
        r"(?:/|per\s)\s*GPU(?:\s*[/-]\s*|\s(?:per\s)?)(?:hour|hr|h)"
        r"|(?:/|per\s)\s*(?:hour|hr|h)\s*(?:/|per\s)\s*GPU"
    ),
    "month": r"(?:/|per\s)\s*(?:month|mo)|monthly|a\smonth",
}
_AMOUNT = r"(?:US)?\$\s?(?P<amount>(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?)"


def document(page: Page | str) -> Document:
    """
    Read a page as HTML.

    Raises:
        ParseError: if it is empty, not HTML, cut off, too large, or holds characters that were not decoded.
    """
    key = page.key if isinstance(page, Page) else None
    name = key or "page"
    source = page.text() if isinstance(page, Page) else page
    if "<" not in source:
        raise ParseError(f"{name}: not an HTML page", page=key)
    if key is not None and "</html" not in source.lower():
        raise ParseError(f"{name}: cut off, there is no </html>", page=key)
    if "\ufffd" in source:
        raise ParseError(f"{name}: holds characters that are not UTF-8", page=key)
    if len(source) > MAX_PAGE_CHARACTERS:
        raise ParseError(f"{name}: {len(source)} characters are too many for a page", page=key)
    return LexborHTMLParser(source)


def every(node: Document | Node, css: str, at_least: int = 1) -> list[Node]:
    """
    Return all descendants that match, in the order of the page.

    Raises:
        ParseError: if fewer than `at_least` match.
    """
    try:
        found = node.css(css)
    except SelectolaxError as error:
        raise ValueError(f"not a CSS selector: {css!r}") from error
    if isinstance(node, Node):  # a node's own css() may find the node itself
        found = [match for match in found if match.mem_id != node.mem_id]
    if len(found) < at_least:
        raise ParseError(f"expected at least {at_least} of {css!r}, found {len(found)}: the page changed")
    return found


def one(node: Document | Node, css: str) -> Node:
    """
    Return the only descendant that matches.

    Raises:
        ParseError: if none or several match.
    """
    found = every(node, css, at_least=0)
    if len(found) != 1:
        raise ParseError(f"expected exactly one {css!r}, found {len(found)}: the page changed")
    return found[0]


def text(node: Node) -> str:
    """
    Return what a reader sees: no footnote marks, any white space as one space.

    Raised digits that may be the cents of the amount before them stay, behind a "^": `usd` refuses those.
    """
    pieces: list[str] = []

    def collect(parent: Node) -> None:
        child = parent.first_child
        while child is not None:
            if child.is_text_node:
                pieces.append(child.text_content or "")
            elif child.tag not in _UNSEEN:
                collect(child)
            elif child.tag == "sup" and _may_be_cents(" ".join(pieces[-3:]), raised := text(child)):
                pieces.append(f"^{raised}")
            child = child.next

    if node.is_text_node:
        pieces.append(node.text_content or "")
    else:
        collect(node)
    return " ".join(" ".join(pieces).split())


def _may_be_cents(before: str, raised: str) -> bool:
    """Whether raised text belongs to the number before it: "$4" and "29", or "4" and ".29"."""
    seen = " ".join(before.split())
    if re.match(r"[.,]\s?\d", raised):
        return re.search(r"\d$", seen) is not None
    return re.search(r"\d", raised) is not None and _OPEN_AMOUNT.search(seen) is not None


def attribute(node: Node, name: str) -> str:
    """
    Return an attribute's value.

    Raises:
        ParseError: if it is missing or has no value.
    """
    value = node.attributes.get(name)
    if not value:
        raise ParseError(f"<{node.tag}> has no {name!r}: the page changed")
    return value


def under_heading(page: Document, heading_css: str, css: str) -> list[Node]:
    """
    Return what matches between one heading and the next of its level or above, whatever the nesting.

    Raises:
        ParseError: if the heading is not there exactly once.
    """
    heading = one(page, heading_css)
    if heading.tag not in _HEADINGS:
        raise ParseError(f"{heading_css!r} is a <{heading.tag}>, not a heading: the page changed")
    enders = set(_HEADINGS[: _HEADINGS.index(heading.tag) + 1])
    wanted = {match.mem_id for match in every(page, css, at_least=0)}
    is_inside = False
    found = []
    for node in every(page, "*", at_least=0):
        if node.mem_id == heading.mem_id:
            is_inside = True
        elif is_inside and node.tag in enders:
            break
        elif is_inside and node.mem_id in wanted:
            found.append(node)
    return found


def table_rows(table: Node, columns: Sequence[str]) -> list[list[Node]]:
    """
    Return the cells of each row of a table whose headers are exactly `columns`.

    Raises:
        ParseError: if the headers differ, a row has another number of cells, or there is no row.
    """
    headers = [text(cell) for cell in every(table, "thead th")]
    if headers != list(columns):
        raise ParseError(f"expected the columns {list(columns)}, found {headers}: the page changed")
    rows = []
    for row in every(table, "tbody tr"):
        cells = every(row, "td, th", at_least=0)
        if len(cells) != len(columns):
            raise ParseError(f"a row has {len(cells)} cells under {len(columns)} headers: the page changed")
        rows.append(cells)
    return rows


def usd(amount: str, unit: str | None = None) -> Decimal:
    """
    Read an amount in US dollars; the unit is pinned, never guessed.

    Args:
        amount: For instance "$35.28 per hour", "$1,234.50", "US$ 2.10/GPU-hour".
        unit: "hour", "gpu-hour" or "month", which must stand behind the amount. None: nothing behind it,
            or "per hour".

    Raises:
        ParseError: for any other unit, currency, or form of number; "from", ranges and signs too.
    """
    cleaned = " ".join(amount.split())
    behind = rf"(?:\s?(?:{_HOUR}))?" if unit is None else rf"\s?(?:{_UNITS[unit]})"
    match = re.fullmatch(_AMOUNT + r"(?:\sUSD)?" + behind, cleaned, flags=re.IGNORECASE | re.ASCII)
    if match is None:
        expected = "dollars" if unit is None else f"dollars per {unit}"
        raise ParseError(f"expected an amount in {expected}, found {cleaned[:80]!r}")
    return Decimal(match["amount"].replace(",", ""))
