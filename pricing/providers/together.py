"""Together: prices of one GPU's hour in clusters and on dedicated endpoints, from its pricing page."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import ClassVar

from pricing.errors import ParseError
from pricing.html import Node, document, every, one, text, usd
from pricing.offer import Billing, Problem, RawOffer, Tier
from pricing.parsing.reading import is_page_with, needed
from pricing.provider import Keys, Page, Provider, ProviderClass, Request

# Two products with the same GPU names: the table, its headers and the unit above it are all pinned.
_TABLES = {
    "gpu-cluster": (
        "table.pricing_table.is-gpu",
        ["Hardware", "ON-Demand", "Reserved", "Pay as you go"],
        "All prices are per GPU per hour.",
    ),
    "dedicated-inference": (
        "table.pricing_table:not(.is-gpu)",
        ["Hardware", "On-demand", "Reserved"],
        "All prices per gpu per hour",
    ),
}


class Together(Provider):
    """Clusters have terms of days; endpoints are a managed service and stay another instance type."""

    name = "together"
    title = "Together AI"
    kind = ProviderClass.NEOCLOUD
    home = "https://api.together.ai/"
    pages: ClassVar = {"pricing": "https://www.together.ai/pricing"}

    def requests(self, keys: Keys) -> Iterable[Request]:
        """Ask for the page."""
        del keys
        yield Request(page="pricing", url=self.pages["pricing"], is_page=True)

    def recognise(self, page: Page) -> str | None:
        """Know the page by its two kinds of table."""
        return "pricing" if is_page_with(page, "pricing_table is-gpu", "dedicated-inference") else None

    def parse(self, pages: Mapping[str, Page]) -> Iterable[RawOffer | Problem]:
        """Read both tables."""
        page = document(needed(pages, "pricing"))
        lines = {text(node) for node in every(page, "p")}
        for product, (css, expected, unit) in _TABLES.items():
            table = one(page, css)
            headers = [text(node) for node in every(table, "th")]
            if headers[: len(expected)] != expected or unit not in lines:
                raise ParseError(f"pricing: {product} has {headers}, unit {unit!r} or not: the page changed")
            for row in every(table, "tbody tr"):
                yield from _row(row, product, headers[len(expected) :])


def _row(row: Node, product: str, terms: list[str]) -> Iterator[RawOffer | Problem]:
    """Read a row: the GPU, its on-demand price, and one price for each term in days."""
    gpu, on_demand, *reserved = (text(cell) for cell in every(row, "td", at_least=3))
    columns = [("", on_demand)]
    if terms:
        columns += list(zip(terms, reserved, strict=True))
    for term, price in columns:
        if not price.startswith("$"):
            yield Problem(what=f"{gpu} {product} {term}".strip(), why="no plain price", raw=price)
            continue
        days = re.fullmatch(r"(\d+)(?:-\d+|\+) days", term)
        if term and days is None:
            raise ParseError(f"pricing: the term {term!r} is not one of days: the page changed")
        yield RawOffer(
            instance_type=f"{gpu} {product}",
            gpu=gpu,
            gpu_count=1,
            price_per_hour=usd(price),
            page="pricing",
            raw=f"{price} per GPU per hour{', ' + term if term else ''}",
            tier=Tier.RESERVED_OTHER if days else Tier.ON_DEMAND,
            commitment_days=int(days[1]) if days else None,
            billing=Billing.PER_TERM if days else None,
        )
