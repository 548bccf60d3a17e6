"""DigitalOcean: GPU Droplets from the pricing page of its documentation, regions from its interface."""

import re
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar

from pricing.errors import ParseError
from pricing.html import Document, document, table_rows, text, under_heading, usd
from pricing.offer import Billing, Problem, RawOffer, Tier
from pricing.parsing.reading import (
    amount,
    dig,
    is_json_with,
    is_page_with,
    merged,
    month_cap,
    name_of,
    next_key,
    number,
    of_kind,
    read_rows,
    rows_at,
    whole,
)
from pricing.provider import Keys, Page, Provider, ProviderClass, Request

# Labels and models that need DigitalOcean's own meaning: RTX 4000 and 6000 are of the Ada generation, H100
# and H200 are HGX (SXM). Source: docs/providers.md, "DigitalOcean".
_CANONICAL = {
    "NVIDIA H100": "H100 SXM",
    "NVIDIA H200": "H200 SXM",
    "NVIDIA RTX 4000": "RTX 4000 Ada",
    "NVIDIA RTX 6000": "RTX 6000 Ada",
    "nvidia_h100": "H100 SXM",
    "nvidia_h200": "H200 SXM",
}
# Section of the page -> tier; the contract section shows prices only by way of the sales department.
_SECTIONS = {
    "on-demand-gpu-droplet-pricing": Tier.ON_DEMAND,
    "spot-gpu-droplet-pricing": Tier.SPOT,
    "contract-gpu-droplet-pricing": Tier.RESERVED_OTHER,
}
_COUNT_AT_END = re.compile(r"(?P<gpu>.+?)\s*\((?P<count>\d+)x\)")
_COUNT_ELSEWHERE = re.compile(r"\(|\b\d+\s*x\b|\bx\s*\d+\b", flags=re.IGNORECASE)


class DigitalOcean(Provider):
    """The page has the price. The interface, with a token, has slug, regions and availability."""

    name = "digitalocean"
    title = "DigitalOcean"
    kind = ProviderClass.NEOCLOUD
    home = "https://cloud.digitalocean.com/droplets/new"
    pages: ClassVar = {
        "pricing": "https://docs.digitalocean.com/products/droplets/details/pricing/",
        "sizes": "https://api.digitalocean.com/v2/sizes?per_page=200",
    }
    key_help = (
        "optional, adds regions and sizes: https://cloud.digitalocean.com/account/api/tokens, read scope"
    )

    def requests(self, keys: Keys) -> Iterable[Request]:
        """Ask for the page, and with a token for the sizes."""
        yield Request(page="pricing", url=self.pages["pricing"], is_page=True)
        if keys:
            yield _sizes_request("sizes", self.pages["sizes"], keys)

    def follow(self, page: Page, keys: Keys) -> Iterable[Request]:
        """Ask for the next page of sizes while the answer names one."""
        if page.key.startswith("sizes"):
            following = dig(page.json(), "links", "pages", "next")
            if following:
                yield _sizes_request(next_key(page.key), str(following), keys)

    def recognise(self, page: Page) -> str | None:
        """Tell the page by the heading of its price table, the interface by its list of sizes."""
        if is_page_with(page, 'id="on-demand-gpu-droplet-pricing"'):
            return "pricing"
        return "sizes" if is_json_with(page, "sizes") else None

    def parse(self, pages: Mapping[str, Page]) -> Iterable[RawOffer | Problem]:
        """Read both; where they agree on a price, the offer of the interface stands for it: it knows more."""
        sizes_pages = of_kind(pages, "sizes")
        if "pricing" not in pages and not sizes_pages:
            raise ParseError("digitalocean: neither the pricing page nor the sizes are there")
        found = list(_page(document(pages["pricing"]))) if "pricing" in pages else []
        listed = [item for item in found if isinstance(item, RawOffer)]
        sizes: list[RawOffer] = []
        for item in [*found, *_sizes(sizes_pages)]:
            if isinstance(item, Problem):
                yield item
            elif item.page != "pricing":
                sizes.append(item)
        yield from merged(listed, sizes, _machine)


def _sizes_request(key: str, url: str, keys: Keys) -> Request:
    headers = {"Authorization": f"Bearer {keys.secret}"}
    return Request(page=key, url=url, headers=headers, is_optional=True)


def _page(page: Document) -> Iterator[RawOffer | Problem]:
    for heading, tier in _SECTIONS.items():
        if tier is not Tier.ON_DEMAND and not page.css(f"#{heading}"):
            continue  # spot was a preview, contracts may go; the on-demand section must be there
        tables = under_heading(page, f"h2#{heading}", "table")
        if len(tables) != 1:
            raise ParseError(
                f"pricing: {len(tables)} tables under {heading!r} instead of one: the page changed"
            )
        rows = [(text(gpu), text(price)) for gpu, price in table_rows(tables[0], ("GPU", "Price"))]
        for label, price in rows:
            yield _row(label, price, tier)


def _row(label: str, price: str, tier: Tier) -> RawOffer | Problem:
    if price.startswith("Per contract"):
        return Problem(what=label, why="priced by contract only", raw=price)
    counted = _COUNT_AT_END.fullmatch(label)
    if counted is None and _COUNT_ELSEWHERE.search(label):
        return Problem(
            what=label, why="a GPU count that is not '(Nx)' at the end: one is not assumed", raw=price
        )
    gpu = (counted["gpu"] if counted else label).partition(",")[0]  # "NVIDIA B300, air-cooled"
    return RawOffer(
        instance_type=label,
        gpu=gpu,
        canonical_gpu=_CANONICAL.get(gpu),
        gpu_count=int(counted["count"]) if counted else 1,
        price_per_hour=usd(price, "hour"),
        page="pricing",
        raw=price,
        tier=tier,
        billing=Billing.PER_TERM if tier is Tier.RESERVED_OTHER else Billing.PER_SECOND,
    )


def _sizes(pages: Sequence[Page]) -> Iterator[RawOffer | Problem]:
    count = total = 0
    for page in pages:
        rows = rows_at(page, "sizes")
        count += len(rows)
        total = dig(page.json(), "meta", "total") or count
        yield from read_rows(rows, partial(_size, page.key), page=page.key, name="slug")
    if count != total:
        yield Problem(what="sizes", why=f"{count} of {total} sizes came: pages are missing")


def _size(page: str, row: dict[str, Any]) -> Iterator[RawOffer]:
    """Read a size of the interface; its memory is the Droplet's, in GiB."""
    if "gpu_info" not in row:
        return
    info, slug = row["gpu_info"], name_of(row["slug"], "slug")
    count, model = whole(info["count"], "gpu_info.count"), name_of(info["model"], "gpu_info.model")
    price = amount(row["price_hourly"], "price_hourly")
    memory = number(info["vram"]["amount"], "gpu_info.vram")
    if price is None or memory is None or info["vram"]["unit"] != "gib":
        raise ValueError(f"price {price}, memory {info['vram']}: neither may be missing")
    ram_mb = number(row["memory"], "memory")
    for region in row["regions"] or [None]:
        yield RawOffer(
            instance_type=slug,
            gpu=model,
            canonical_gpu=_CANONICAL.get(model),
            gpu_count=count,
            memory_gb_per_gpu=memory / count,
            price_per_hour=price,
            price_per_month_cap=month_cap(amount(row["price_monthly"], "price_monthly"), price),
            page=page,
            raw=f"price_hourly {price} USD/h per Droplet",
            region=region,
            billing=Billing.PER_SECOND,
            available=row["available"] is True and region is not None,
            vcpus=number(row["vcpus"], "vcpus"),
            ram_gb=ram_mb / 1024 if ram_mb else None,
        )


def _machine(offer: RawOffer) -> Hashable:
    """Return what a label ("NVIDIA RTX 6000") and a model ("nvidia_rtx6000_ada") share, count and tier."""
    gpu = re.sub(r"[^a-z0-9]", "", offer.gpu.lower()).removesuffix("ada")
    # Two labels of one GPU (air- and liquid-cooled) stay two offers; only on-demand ones meet a size.
    return gpu, offer.gpu_count, "on demand" if offer.tier is Tier.ON_DEMAND else offer.instance_type
