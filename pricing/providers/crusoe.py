"""Crusoe: prices of one GPU's hour, from the cards of its pricing page."""

from collections.abc import Iterable, Mapping
from typing import ClassVar

from pricing.errors import ParseError
from pricing.html import document, every, one, text, usd
from pricing.offer import Problem, RawOffer, Tier
from pricing.parsing.reading import is_page_with, needed, text_number
from pricing.provider import Keys, Page, Provider, ProviderClass, Request

_HEADINGS = ["GPU model", "On-demand", "Current spot"]
# HGX boards carry SXM modules; a blank tag says nothing. Source: docs/providers.md, "Names".
_FORMS: Mapping[str, str | None] = {"HGX": "SXM", "SXM": "SXM", "PCIe": "PCIe", "NVL72": "NVL72", "": None}


class Crusoe(Provider):
    """Card by card: headings and prices read as two lists would shift against each other."""

    name = "crusoe"
    title = "Crusoe"
    kind = ProviderClass.NEOCLOUD
    home = "https://console.crusoecloud.com/"
    pages: ClassVar = {"pricing": "https://www.crusoe.ai/cloud/pricing"}

    def requests(self, keys: Keys) -> Iterable[Request]:
        """Ask for the page."""
        del keys
        yield Request(page="pricing", url=self.pages["pricing"], is_page=True)

    def recognise(self, page: Page) -> str | None:
        """Know the page by its cards."""
        return "pricing" if is_page_with(page, "pricing_gpu-item") else None

    def parse(self, pages: Mapping[str, Page]) -> Iterable[RawOffer | Problem]:
        """Read each card: name, memory and form tags, then the on-demand and the spot price."""
        page = document(needed(pages, "pricing"))
        headings = [text(node) for node in every(page, ".pricing-table-heading .pricing-heading")]
        if headings != _HEADINGS:
            raise ParseError(f"pricing: the columns are {headings}, not {_HEADINGS}: the page changed")
        for card in every(page, ".pricing_gpu-item"):
            gpu = text(one(card, ".pricing-item-heading"))
            memory, tag = (text(node) for node in every(card, ".pricing-tag", at_least=2)[:2])
            label = " ".join(f"{gpu} {memory} {tag}".split())
            if tag not in _FORMS:
                yield Problem(what=label, why=f"the form {tag!r} is not known here", raw=text(card))
                continue
            prices = [text(node) for node in every(card, ".pricing-rich")]
            if len(prices) != 2:
                raise ParseError(f"pricing: {len(prices)} prices on the card {label!r}: the page changed")
            for tier, price in zip((Tier.ON_DEMAND, Tier.SPOT), prices, strict=True):
                if price == "Contact sales":
                    yield Problem(what=f"{label}, {tier}", why="priced on request only", raw=price)
                    continue
                yield RawOffer(
                    instance_type=label,
                    gpu=gpu,
                    gpu_count=1,
                    memory_gb_per_gpu=text_number(memory, "GB"),
                    form=_FORMS[tag],
                    price_per_hour=usd(price, "gpu-hour"),
                    page="pricing",
                    raw=price,
                    tier=tier,
                )
