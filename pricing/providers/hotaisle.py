"""Hot Aisle: MI300X machines, from the cards of its pricing page."""

import re
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from typing import ClassVar

from pricing.errors import ParseError
from pricing.html import Node, document, every, one, text, usd
from pricing.offer import Billing, Problem, RawOffer, Tier
from pricing.parsing.reading import is_page_with, needed, text_number
from pricing.provider import Keys, Page, Provider, ProviderClass, Request


class HotAisle(Provider):
    """The prose still names a price of older customers: only cards count, and they must agree."""

    name = "hotaisle"
    title = "Hot Aisle"
    kind = ProviderClass.NEOCLOUD
    home = "https://admin.hotaisle.app/"
    pages: ClassVar = {"pricing": "https://hotaisle.xyz/pricing"}

    def requests(self, keys: Keys) -> Iterable[Request]:
        """Ask for the page."""
        del keys
        yield Request(page="pricing", url=self.pages["pricing"], is_page=True)

    def recognise(self, page: Page) -> str | None:
        """Know the page by its unit and its GPU."""
        return "pricing" if is_page_with(page, "/GPU/hr", "MI300X") else None

    def parse(self, pages: Mapping[str, Page]) -> Iterable[RawOffer | Problem]:
        """Read the two summary boxes, then each machine's card."""
        page = document(needed(pages, "pricing"))
        boxes = {}
        for box in every(page, "div.grid > div.rounded-lg", at_least=2):
            title, price, note = (text(node) for node in every(box, "p", at_least=3)[:3])
            boxes[title] = (usd(price, "gpu-hour"), price, note)
        if boxes.keys() != {"Virtual machines", "8x bare metal"}:
            raise ParseError(f"pricing: the boxes are {sorted(boxes)}: the page changed")
        for card in every(page, "div.rounded-lg.border"):
            yield from _card(card, boxes["Virtual machines"][0])
        per_gpu, raw, term = boxes["8x bare metal"]
        if "One-month minimum" not in term:
            raise ParseError(f"pricing: the term of bare metal is {term!r}: the page changed")
        yield RawOffer(
            instance_type="8x MI300X bare metal",
            gpu="MI300X",
            gpu_count=8,
            price_per_hour=per_gpu * 8,
            page="pricing",
            raw=f"{raw}, one-month minimum",
            tier=Tier.RESERVED_OTHER,
            commitment_days=30,
            billing=Billing.MONTHLY,
        )


def _card(card: Node, listed: Decimal) -> Iterator[RawOffer]:
    """Read a card of virtual machines: "2x & 4x" with "384GB or 768GB" are two machines."""
    counts = [
        int(count) for count in re.findall(r"(\d+)x", text(one(card, "div.inline-flex > span:first-child")))
    ]
    gpu = text(one(card, "div.inline-flex > span:last-child"))
    raw = text(one(card, "p.font-bold.text-foreground"))
    if usd(raw, "gpu-hour") != listed:
        raise ParseError(f"pricing: a card says {raw}, the summary {listed}: the page changed")
    facts = [text(node) for node in every(card, "li")]
    memories = _sizes(facts, r"HBM3\b", counts)
    vcpus, ram = _sizes(facts, "CPU Cores", counts), _sizes(facts, "RAM", counts)
    for place, count in enumerate(counts):
        total = memories[place]
        yield RawOffer(
            instance_type=f"{count}x {gpu} VM",
            gpu=gpu,
            gpu_count=count,
            memory_gb_per_gpu=None if total is None else total / count,
            price_per_hour=listed * count,
            page="pricing",
            raw=raw,
            billing=Billing.PER_MINUTE,
            vcpus=vcpus[place],
            ram_gb=ram[place],
        )


def _sizes(facts: list[str], label: str, counts: list[int]) -> list[float | None]:
    """Return one size for each machine; None where the card offers a choice ("8 or 13 CPU Cores")."""
    found = [fact for fact in facts if re.search(label, fact)]
    if len(found) != 1:
        raise ParseError(f"pricing: {len(found)} lines about {label!r} on a card: the page changed")
    sizes = [text_number(size) for size in re.findall(r"(\d+)(?:GB| or | CPU)", found[0])]
    return list(sizes) if len(sizes) == len(counts) else [None] * len(counts)
