"""Strict reading of answers in JSON, shared by the providers: rows, amounts, counts, further pages."""

import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any

from pricing.errors import ParseError
from pricing.offer import Problem, RawOffer
from pricing.provider import Page

Read = Callable[[Any], Iterable[RawOffer | Problem]]

# A provider's own monthly figure is a cap of 672 h (28 days) to 744 h (31 days); a fifth more for rounding.
# Source: docs/providers.md, "Months"; Vultr plans, 43 / 0.059 = 728.8 and 1122.91 / 1.671 = 672.
_CAP_HOURS = (Decimal(540), Decimal(900))
_PLAIN_NUMBER = re.compile(r"\d+(?:\.\d+)?", flags=re.ASCII)


def of_kind(pages: Mapping[str, Page], key: str) -> list[Page]:
    """Return the pages `key`, `key#2`, `key#3` ... in their order."""
    found = [(_number(name, key), page) for name, page in pages.items()]
    return [page for number, page in sorted(found, key=lambda pair: pair[0] or 0) if number]


def needed(pages: Mapping[str, Page], key: str) -> Page:
    """
    Return the page without which nothing can be read.

    Raises:
        ParseError: if it is not there.
    """
    if key not in pages:
        raise ParseError(f"the page {key!r} is not there, only {sorted(pages) or 'nothing'}", page=key)
    return pages[key]


def next_key(key: str) -> str:
    """Return the key of the page after this one: `plans` is followed by `plans#2`."""
    stem, _, number = key.partition("#")
    return f"{stem}#{int(number or 1) + 1}"


def _number(name: str, key: str) -> int | None:
    stem, _, number = name.partition("#")
    return int(number or 1) if stem == key else None


def is_json_with(page: Page, *keys: str) -> bool:
    """Whether a saved answer is a JSON object that has all these keys at its top."""
    try:
        document = page.json()
    except ParseError:
        return False
    return isinstance(document, dict) and all(key in document for key in keys)


def is_json_rows(page: Page, *keys: str) -> bool:
    """Whether a saved answer is a JSON list of objects, the first of which has all these keys."""
    try:
        document = page.json()
    except ParseError:
        return False
    first = document[0] if isinstance(document, list) and document else None
    return isinstance(first, dict) and all(key in first for key in keys)


def is_page_with(page: Page, *marks: str) -> bool:
    """Whether a saved answer is a web page that holds all these pieces of text."""
    try:
        source = page.text()
    except ParseError:
        return False
    return source.lstrip()[:1] == "<" and all(mark in source for mark in marks)


def rows_at(page: Page, *path: str) -> list[Any]:
    """
    Return the list that stands under these keys.

    Raises:
        ParseError: if the document has another shape, or the list is empty.
    """
    node = page.json()
    for key in path:
        if not isinstance(node, dict) or key not in node:
            raise ParseError(f"{page.key}: no {'.'.join(path)!r} in {_shape(node)}: the answer changed")
        node = node[key]
    if not isinstance(node, list):
        raise ParseError(f"{page.key}: {'.'.join(path)!r} is {_shape(node)}, not a list: the answer changed")
    if not node:
        raise ParseError(f"{page.key}: {'.'.join(path)!r} is empty")
    return node


def dig(node: object, *path: str) -> Any:
    """Return what stands under these keys, None where something on the way is missing or no object."""
    for key in path:
        node = node.get(key) if isinstance(node, dict) else None
    return node


def beginning(page: Page, size: int) -> bytes:
    """Return the first bytes of an answer, in memory or on disk."""
    if page.file is None:
        return page.body[:size]
    with page.file.open("rb") as file:
        return file.read(size)


def _shape(node: object) -> str:
    if isinstance(node, dict):
        errors = node.get("errors") or node.get("error")
        if errors:
            return f"an answer that says {str(errors)[:160]!r}"
        return f"an object with {', '.join(sorted(map(str, node))[:6]) or 'nothing'}"
    return f"{type(node).__name__} {str(node)[:40]!r}"


def read_rows(
    rows: Iterable[Any], read: Read, *, page: str, name: str | Callable[[Any], str]
) -> Iterator[RawOffer | Problem]:
    """
    Read row by row: one that cannot be read becomes a `Problem` and spoils no other.

    Args:
        rows: The rows as they came.
        read: Yields what a row holds; raises KeyError, TypeError or ValueError where it is not as known.
        page: Key of the page, for messages.
        name: The field by which a person finds the row again, or what returns it.

    Raises:
        ParseError: if rows could not be read and not a single one could: then the page changed.
    """
    first: Problem | None = None
    is_any_read = False
    for row in rows:
        what = _name(row, name)
        try:
            found = list(read(row))
        except (KeyError, TypeError, ValueError, ArithmeticError, AttributeError) as error:
            why = f"no {error} in the row" if isinstance(error, KeyError) else str(error)
            problem = Problem(what=what, why=why, raw=str(row)[:300])
            first = first or problem
            yield problem
            continue
        is_any_read = is_any_read or any(isinstance(item, RawOffer) for item in found)
        yield from found
    if first is not None and not is_any_read:
        raise ParseError(f"{page}: no row could be read; {first.what}: {first.why}", page=page)


def _name(row: Any, name: str | Callable[[Any], str]) -> str:
    if callable(name):
        return name(row)
    return str(row.get(name, "?")) if isinstance(row, dict) else str(row)[:60]


def amount(value: object, what: str) -> Decimal | None:
    """
    Return a price as an exact decimal, or None where 0, null or an empty text says "not offered".

    Args:
        value: A JSON number, or a text that is one: some providers write prices so.
        what: Name of the field, for the message.

    Raises:
        ValueError: if it is negative, not finite, a boolean, or a text of another form.

    Source:
        docs/providers.md, "Zero".
    """
    if value is None or value == "":
        return None
    if isinstance(value, bool) or not isinstance(value, int | str | Decimal):
        raise ValueError(f"{what} is {value!r}, not a number")
    if isinstance(value, str) and not _PLAIN_NUMBER.fullmatch(value.strip()):
        raise ValueError(f"{what} is {value!r}, not a number")
    try:
        price = Decimal(value.strip() if isinstance(value, str) else value)
    except InvalidOperation as error:
        raise ValueError(f"{what} is {value!r}, not a number") from error
    if not price.is_finite() or price < 0:
        raise ValueError(f"{what} is {value!r}: a price is finite and above 0")
    return price or None


def whole(value: object, what: str) -> int:
    """
    Return a count of at least 1.

    Raises:
        ValueError: if it is anything else; a count is never guessed.
    """
    if isinstance(value, str) and value.strip().isdecimal() and value.isascii():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ValueError(f"{what} is {value!r}, not a count of at least 1")
    return value


def number(value: object, what: str) -> float | None:
    """
    Return a size as a number, None where the source has none.

    Raises:
        ValueError: if it is a boolean, a text, or not above 0.
    """
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal) or value <= 0:
        raise ValueError(f"{what} is {value!r}, not a size above 0")
    return float(value)


def name_of(value: object, what: str) -> str:
    """
    Return a name.

    Raises:
        ValueError: if it is not a text, or an empty one.
    """
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"{what} is {value!r}, not a name")
    return value.strip()


def month_cap(per_month: Decimal | None, per_hour: Decimal) -> Decimal | None:
    """
    Return the monthly cap beside an hourly price.

    Raises:
        ValueError: if the two do not belong together: then the unit of one is not what it was.
    """
    if per_month is None:
        return None
    if not _CAP_HOURS[0] <= per_month / per_hour <= _CAP_HOURS[1]:
        raise ValueError(f"{per_month} a month against {per_hour} an hour: the two do not belong together")
    return per_month


def lower_quartile(prices: Sequence[Decimal]) -> Decimal:
    """
    Return the price below which a quarter of them lie, between two of them by straight line.

    One machine's ask says little and the cheapest one least; of a single machine it is that ask.

    Source:
        docs/providers.md, "Vast.ai".
    """
    ordered = sorted(prices)
    position = Decimal(len(ordered) - 1) / 4
    below = int(position)
    if below == position:
        return ordered[below]
    return ordered[below] + (ordered[below + 1] - ordered[below]) * (position - below)


def merged(
    listed: Sequence[RawOffer], detailed: Sequence[RawOffer], machine: Callable[[RawOffer], Hashable]
) -> Iterator[RawOffer | Problem]:
    """
    Join a public price page with an interface that knows regions and sizes; the page decides the price.

    Where both agree, the offers of the interface stand for the page's. One that says another price stays out
    and is reported. What only one of them has is kept.

    Args:
        listed: From the page.
        detailed: From the interface.
        machine: What makes an offer of one the same as an offer of the other, tier included.
    """
    on_page = {machine(offer): offer for offer in listed}
    agreed = set()
    for offer in detailed:
        known = on_page.get(machine(offer))
        if known is None or known.price_per_hour == offer.price_per_hour:
            agreed.add(machine(offer))
            yield offer
        else:
            why = f"the page says {known.raw}: its price stands, this one is left out"
            yield Problem(
                what=f"{offer.instance_type} in {offer.region or 'no region'}", why=why, raw=offer.raw
            )
    yield from (offer for offer in listed if machine(offer) not in agreed)


def text_number(text: str, unit: str = "") -> float:
    """
    Return a size that a page writes as text: "208", "2,048", with a unit "1800 GiB".

    Raises:
        ParseError: if it is anything else.
    """
    match = re.fullmatch(
        rf"((?:\d{{1,3}}(?:,\d{{3}})+|\d+)(?:\.\d+)?)\s*{re.escape(unit)}", text.strip(), re.ASCII
    )
    if match is None:
        raise ParseError(
            f"expected a number{' in ' + unit if unit else ''}, found {text[:60]!r}: the page changed"
        )
    return float(match[1].replace(",", ""))
