"""Nebius: prices of one GPU's hour, from the table that its pricing page carries in a script."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar

from pricing.errors import ParseError
from pricing.html import document, every, usd
from pricing.offer import Problem, RawOffer, Tier
from pricing.parsing.reading import is_page_with, needed, text_number
from pricing.provider import Keys, Page, Provider, ProviderClass, Request

_TITLE = "NVIDIA GPU Instances"
_BLOCK = '{"type":"highlight-table-block"'
_PUSH = re.compile(r"self\.__next_f\.push\((\[1,.*\])\)", flags=re.DOTALL)


class Nebius(Provider):
    """The order of the columns changes: they are found by their headers."""

    name = "nebius"
    title = "Nebius"
    kind = ProviderClass.NEOCLOUD
    home = "https://console.nebius.com/"
    pages: ClassVar = {"pricing": "https://nebius.com/prices"}

    def requests(self, keys: Keys) -> Iterable[Request]:
        """Ask for the page."""
        del keys
        yield Request(page="pricing", url=self.pages["pricing"], is_page=True)

    def recognise(self, page: Page) -> str | None:
        """Know the page by the title of its table."""
        return "pricing" if is_page_with(page, _TITLE, "highlight-table-block") else None

    def parse(self, pages: Mapping[str, Page]) -> Iterable[RawOffer | Problem]:
        """Read the one table of GPU instances."""
        tables = [block["table"]["content"] for block in _blocks(needed(pages, "pricing"))]
        if len(tables) != 1:
            raise ParseError(
                f"pricing: {len(tables)} tables titled {_TITLE!r} instead of one: the page changed"
            )
        headers, *rows = tables[0]
        if not rows or any(len(row) != len(headers) for row in rows):
            raise ParseError(f"pricing: no rows of {len(headers)} cells under {headers}: the page changed")
        item, vcpus, ram = (_column(headers, name) for name in ("Item", "vCPUs", "RAM, GB"))
        prices = {Tier.ON_DEMAND: _column(headers, "On-demand, GPU-hour")}
        prices[Tier.SPOT] = _column(headers, "Preemptible, GPU-hour")
        for row in rows:
            for tier, column in prices.items():
                price = row[column].strip()
                if not price.startswith("$"):  # "from $1.55", "––", "[Contact us](#form)"
                    yield Problem(what=f"{row[item]}, {tier}", why="no plain price", raw=price)
                    continue
                yield RawOffer(
                    instance_type=row[item],
                    gpu=row[item],
                    gpu_count=1,
                    price_per_hour=usd(price),
                    page="pricing",
                    raw=f"{price}, {headers[column]}",
                    tier=tier,
                    vcpus=text_number(row[vcpus]),
                    ram_gb=text_number(row[ram]),
                )


def _column(headers: list[str], name: str) -> int:
    if headers.count(name) != 1:
        raise ParseError(f"pricing: no column {name!r} in {headers}: the page changed")
    return headers.index(name)


def _blocks(page: Page) -> Iterator[Any]:
    """Yield the table blocks of that title from the page's data, which comes in pieces of escaped text."""
    pieces = []
    for script in every(document(page), "script", at_least=0):
        match = _PUSH.fullmatch((script.text() or "").strip())
        if match:
            try:
                pieces.append(json.loads(match[1])[1])
            except ValueError as error:
                raise ParseError(
                    f"pricing: the page's data are not JSON ({error})", page="pricing"
                ) from error
    data = "".join(piece for piece in pieces if isinstance(piece, str))
    for start in (match.start() for match in re.finditer(re.escape(_BLOCK), data)):
        try:
            block, _ = json.JSONDecoder().raw_decode(data, start)
        except ValueError as error:
            raise ParseError(f"pricing: a table is not JSON ({error})", page="pricing") from error
        if block.get("title") == _TITLE:
            yield block
