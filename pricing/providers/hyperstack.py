"""Hyperstack: prices of one GPU's hour, from the tables of its pricing page."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import ClassVar

from pricing.errors import ParseError
from pricing.html import Node, document, every, text, usd
from pricing.offer import Billing, Problem, RawOffer, Tier
from pricing.parsing.reading import is_page_with, needed, text_number
from pricing.provider import Keys, Page, Provider, ProviderClass, Request

# Plain names are PCIe cards, "NVLink" the same ones with a bridge (80 GB, not the NVL of 94 GB).
# Source: docs/providers.md, "Names"; the bundled snapshot, hyperstack rows of 2026-08-22.
_CANONICAL = {
    "NVIDIA H100": "H100 PCIe",
    "NVIDIA H100 NVLink": "H100 PCIe",
    "NVIDIA A100": "A100 80GB PCIe",
    "NVIDIA A100 NVLink": "A100 80GB PCIe",
}
# What a price is of stands in its header: an addition such as "(8 GPUs)" makes it another price.
_PRICE_HEADS = {
    Tier.ON_DEMAND: ("Pricing Per Hour",),
    Tier.SPOT: ("Pricing Per Hour",),
    Tier.RESERVED_OTHER: ("Pricing Per Hour", "Starting Per Hour"),
}
_SECTIONS = {"on-demand": Tier.ON_DEMAND, "reserved": Tier.RESERVED_OTHER, "spot": Tier.SPOT}


class Hyperstack(Provider):
    """The same model names stand in the on-demand, reserved and spot tables: the heading above decides."""

    name = "hyperstack"
    title = "Hyperstack"
    kind = ProviderClass.NEOCLOUD
    home = "https://console.hyperstack.cloud/"
    pages: ClassVar = {"pricing": "https://www.hyperstack.cloud/gpu-pricing"}

    def requests(self, keys: Keys) -> Iterable[Request]:
        """Ask for the page."""
        del keys
        yield Request(page="pricing", url=self.pages["pricing"], is_page=True)

    def recognise(self, page: Page) -> str | None:
        """Know the page by its rows."""
        return "pricing" if is_page_with(page, "page-price_card_row_item") else None

    def parse(self, pages: Mapping[str, Page]) -> Iterable[RawOffer | Problem]:
        """Read each table under its heading."""
        page = document(needed(pages, "pricing"))
        tier: Tier | None = None
        tiers_read = set()
        for node in every(page, "h1, h2, h3, h4, div.page-price_card_main"):
            if node.tag != "div":
                match = re.fullmatch(r"(on-demand|reserved|spot) gpu pricing", text(node).lower())
                tier = _SECTIONS[match[1]] if match else None
            elif tier is not None:
                tiers_read.add(tier)
                yield from _table(node, tier)
        if Tier.ON_DEMAND not in tiers_read:
            raise ParseError("pricing: no table under an 'On-Demand GPU Pricing' heading: the page changed")


def _table(table: Node, tier: Tier) -> Iterator[RawOffer | Problem]:
    heads = [text(node) for node in every(table, ".page-price_card_head_item")]
    if heads[:2] != ["GPU Model", "VRAM (GB)"] or heads[-1] not in _PRICE_HEADS[tier]:
        raise ParseError(f"pricing: the columns are {heads}: the page changed")
    for row in every(table, ".page-price_card_row_item"):
        cells = [text(node) for node in every(row, ".page-price_card_row_item_col")]
        if len(cells) != len(heads):
            raise ParseError(f"pricing: {len(cells)} cells under {len(heads)} columns: the page changed")
        gpu, memory, price = cells[0], cells[1], cells[-1]
        if not price.startswith("$"):  # "from $2.79" is a floor
            yield Problem(what=f"{gpu}, {tier}", why="no plain price", raw=price)
            continue
        has_sizes = "pCPUs" in heads[2] and "RAM" in heads[3] if len(heads) == 5 else False
        yield RawOffer(
            instance_type=gpu,
            gpu=gpu,
            canonical_gpu=_CANONICAL.get(gpu),
            gpu_count=1,
            memory_gb_per_gpu=text_number(memory),
            price_per_hour=usd(price),
            page="pricing",
            raw=f"{price}, {heads[-1]}",
            tier=tier,
            billing=Billing.PER_TERM if tier is Tier.RESERVED_OTHER else Billing.PER_MINUTE,
            vcpus=text_number(cells[2]) if has_sizes else None,
            ram_gb=text_number(cells[3]) if has_sizes else None,
        )
