"""CoreWeave: prices of whole instances, from its pricing page."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import ClassVar

from pricing.errors import ParseError
from pricing.html import Node, document, every, one, text, usd
from pricing.offer import Problem, RawOffer, Tier
from pricing.parsing.reading import is_page_with, needed, text_number
from pricing.provider import Keys, Page, Provider, ProviderClass, Request

_ROWS = "div.kubernetes-gpu-pricing, div.gpu-pricing-and-kubernetes-gpu-pricing"
# Sold as nodes of eight with 80 GB each. Source: the bundled snapshot, coreweave rows of 2026-08-22 (SXM).
_CANONICAL = {"NVIDIA A100": "A100 80GB SXM"}


class CoreWeave(Provider):
    """Every price stands for the whole instance and several times in its row; the row's copies must agree."""

    name = "coreweave"
    title = "CoreWeave"
    kind = ProviderClass.NEOCLOUD
    home = "https://console.coreweave.com/"
    pages: ClassVar = {"pricing": "https://www.coreweave.com/pricing"}

    def requests(self, keys: Keys) -> Iterable[Request]:
        """Ask for the page."""
        del keys
        yield Request(page="pricing", url=self.pages["pricing"], is_page=True)

    def recognise(self, page: Page) -> str | None:
        """Know the page by its rows."""
        return "pricing" if is_page_with(page, "kubernetes-gpu-pricing") else None

    def parse(self, pages: Mapping[str, Page]) -> Iterable[RawOffer | Problem]:
        """Read the rows under each region's heading."""
        region: str | None = None
        rows = 0
        for node in every(document(needed(pages, "pricing")), f"h5, {_ROWS}"):
            if node.tag == "h5":
                match = re.fullmatch(r"REGION: (.+)", text(node))
                region = match[1].title() if match else None
            elif region is None:
                raise ParseError("pricing: a row of prices stands under no region: the page changed")
            else:
                rows += 1
                yield from _row(node, region)
        if rows == 0:
            raise ParseError("pricing: no row of prices: the page changed")


def _row(row: Node, region: str) -> Iterator[RawOffer | Problem]:
    names = {text(node) for node in every(row, "h3.table-model-name")}
    if len(names) != 1:
        raise ParseError(f"pricing: a row is named {sorted(names)}: the page changed")
    gpu = names.pop()
    facts = {}
    for pair in every(row, ".table-meta-text-right"):
        value, label = (text(node) for node in every(pair, "div", at_least=2)[:2])
        facts[label] = re.sub(r"\^\d+$", "", value)  # "4^1": a footnote
    count = int(text_number(facts.get("GPU Count", "")))
    cells = [text(node) for node in every(row, "div.table-v2-cell")]
    for tier, css, label in (
        (Tier.ON_DEMAND, "span.instance-price", "On-Demand Price: "),
        (Tier.SPOT, "span.spot-price", "Spot Price: "),
    ):
        line = text(one(row, css))  # "On-Demand Price: $42.00 / Hour"
        price = text(one(row, f"{css} .item-value"))
        if not line.startswith(label) or price not in cells:
            raise ParseError(f"pricing: {gpu}: {line!r} is not what the row shows: the page changed")
        if price in {"", "N/A"}:
            if tier is Tier.ON_DEMAND:
                yield Problem(what=f"{gpu} in {region}", why="no on-demand price", raw=line)
            continue
        yield RawOffer(
            instance_type=gpu,
            gpu=gpu,
            canonical_gpu=_CANONICAL.get(gpu),
            gpu_count=count,
            memory_gb_per_gpu=text_number(facts.get("VRAM", "")),
            price_per_hour=usd(line.removeprefix(label), "hour"),
            page="pricing",
            raw=line,
            region=region,
            tier=tier,
            vcpus=text_number(facts.get("vCPUs", "")),
            ram_gb=text_number(facts.get("System RAM", "")),
        )
