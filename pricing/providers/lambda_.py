"""Lambda: instances from its pricing page, and their regions from its interface where a key is set."""

import re
from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import Any, ClassVar

from pricing.errors import ParseError
from pricing.html import Document, Node, attribute, document, every, text, usd
from pricing.offer import Billing, Problem, RawOffer
from pricing.parsing.naming import identify
from pricing.parsing.reading import (
    amount,
    is_json_with,
    is_page_with,
    merged,
    name_of,
    number,
    read_rows,
    text_number,
    whole,
)
from pricing.provider import Keys, Page, Provider, ProviderClass, Request


class Lambda(Provider):
    """The price of one GPU depends on the size of the instance: each size has its own, none is scaled."""

    name = "lambda"
    title = "Lambda"
    kind = ProviderClass.NEOCLOUD
    home = "https://cloud.lambda.ai/instances"
    pages: ClassVar = {
        "pricing": "https://lambda.ai/pricing",
        "instance_types": "https://cloud.lambda.ai/api/v1/instance-types",
    }
    key_help = "optional, adds regions with capacity: https://cloud.lambda.ai/api-keys"

    def requests(self, keys: Keys) -> Iterable[Request]:
        """Ask for the page, and with a key for the instance types."""
        yield Request(page="pricing", url=self.pages["pricing"], is_page=True)
        if keys:
            headers = {"Authorization": f"Bearer {keys.secret}"}
            url = self.pages["instance_types"]
            yield Request(page="instance_types", url=url, headers=headers, is_optional=True)

    def recognise(self, page: Page) -> str | None:
        """Tell the page by its tabs, the interface by `data`."""
        if is_page_with(page, 'data-label="PRICE/GPU/HR*"', 'data-tab="8x"'):
            return "pricing"
        return "instance_types" if is_json_with(page, "data") else None

    def parse(self, pages: Mapping[str, Page]) -> Iterable[RawOffer | Problem]:
        """Read both; the page decides the price."""
        if not pages:
            raise ParseError("lambda: neither the pricing page nor the instance types are there")
        listed: list[RawOffer] = []
        detailed: list[RawOffer] = []
        for item in _page(document(pages["pricing"])) if "pricing" in pages else ():
            if isinstance(item, RawOffer):
                listed.append(item)
            else:
                yield item
        for item in _interface(pages["instance_types"]) if "instance_types" in pages else ():
            if isinstance(item, RawOffer):
                detailed.append(item)
            else:
                yield item
        yield from merged(listed, detailed, _machine)


def _page(page: Document) -> Iterator[RawOffer | Problem]:
    """Read the tabs 8x, 4x, 2x, 1x; those of 1-Click Clusters are named by their GPU. Scripts repeat them."""
    panels = {attribute(panel, "data-tab"): panel for panel in every(page, "div[role=tabpanel][data-tab]")}
    sizes = {tab: panel for tab, panel in panels.items() if re.fullmatch(r"\d+x", tab)}
    if not sizes:
        raise ParseError(f"pricing: no tab of instances among {sorted(panels)}: the page changed")
    for tab in panels.keys() - sizes.keys():
        yield Problem(
            what=f"{tab}, 1-Click Clusters", why="16 GPUs and more for weeks to a year: not an instance"
        )
    for tab, panel in sizes.items():
        for row in every(panel, "tr[data-plan]"):
            yield _row(row, int(tab.removesuffix("x")))


def _row(row: Node, count: int) -> RawOffer:
    plan = attribute(row, "data-plan")
    cells = {attribute(cell, "data-label"): text(cell) for cell in every(row, "[data-label]")}
    if cells.get("Plan") != plan or "PRICE/GPU/HR*" not in cells:
        raise ParseError(f"pricing: the row {plan!r} has the cells {sorted(cells)}: the page changed")
    memory = text_number(cells["VRAM/GPU"], "GB")
    return RawOffer(
        instance_type=f"{count}x {plan} {memory:g} GB",
        gpu=plan,
        gpu_count=count,
        memory_gb_per_gpu=memory,
        price_per_hour=usd(cells["PRICE/GPU/HR*"]) * count,
        page="pricing",
        raw=f"{cells['PRICE/GPU/HR*']} per GPU and hour",
        billing=Billing.PER_MINUTE,
        vcpus=text_number(cells["vCPUs"]),
        ram_gb=text_number(cells["RAM"], "GiB"),
    )


def _interface(page: Page) -> Iterator[RawOffer | Problem]:
    data = page.json().get("data") if isinstance(page.json(), dict) else None
    if not isinstance(data, dict) or not data:
        raise ParseError(
            "instance_types: no object 'data' with instance types: the answer changed", page=page.key
        )
    yield from read_rows(data.items(), _type, page=page.key, name=lambda row: str(row[0]))


def _type(row: tuple[str, dict[str, Any]]) -> Iterator[RawOffer]:
    """Read an instance type; a region is named only while it has capacity."""
    key, entry = row
    kind, regions = entry["instance_type"], entry["regions_with_capacity_available"]
    if kind["name"] != key:
        raise ValueError(f"the entry {key!r} is named {kind['name']!r}")
    cents = amount(kind["price_cents_per_hour"], "price_cents_per_hour")
    gpu = name_of(kind["gpu_description"], "gpu_description")
    if gpu == "N/A" or not kind["specs"]["gpus"]:  # a CPU instance
        return
    if cents is None:
        raise ValueError("no price")
    memory = re.search(r"\((\d+) GB", gpu)
    named: list[str | None] = [name_of(region["name"], "region") for region in regions]
    for region in named or [None]:
        yield RawOffer(
            instance_type=key,
            gpu=gpu,
            gpu_count=whole(kind["specs"]["gpus"], "specs.gpus"),
            memory_gb_per_gpu=float(memory[1]) if memory else None,
            price_per_hour=cents / 100,
            page="instance_types",
            raw=f"price_cents_per_hour {cents}, whole instance",
            region=region,
            billing=Billing.PER_MINUTE,
            available=region is not None,
            vcpus=number(kind["specs"]["vcpus"], "specs.vcpus"),
            ram_gb=number(kind["specs"]["memory_gib"], "specs.memory_gib"),
        )


def _machine(offer: RawOffer) -> Hashable:
    gpu = identify(offer.gpu, memory_gb=offer.memory_gb_per_gpu).gpu
    return (gpu.name if gpu else offer.gpu, offer.gpu_count)
