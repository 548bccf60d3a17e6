"""Verda, formerly DataCrunch: the offers of its pricing page, and regions from its interface with a key."""

import json
import re
from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import Any, ClassVar

from pricing.errors import ParseError
from pricing.html import document, every
from pricing.offer import Billing, Problem, RawOffer, Tier
from pricing.parsing.reading import (
    amount,
    dig,
    is_json_rows,
    is_json_with,
    is_page_with,
    merged,
    name_of,
    number,
    of_kind,
    read_rows,
    rows_at,
    whole,
)
from pricing.provider import Keys, Page, Provider, ProviderClass, Request

# The end of an offer's name and the description that must go with it; others are serverless and clusters.
_TIERS = {
    "on-demand": (Tier.ON_DEMAND, "Hourly on-demand instance price"),
    "spot": (Tier.SPOT, "Hourly spot instance price"),
}
_NAME = re.compile(r"(?P<machine>(?P<count>\d+)x (?P<gpu>.+?)) (?P<tier>on-demand|spot)")
_MEMORY = re.compile(r"\b(\d+)GB\b")


class Verda(Provider):
    """Page and interface name a machine by the same words ("8x H100 SXM5 80GB")."""

    name = "verda"
    title = "Verda"
    kind = ProviderClass.NEOCLOUD
    home = "https://console.verda.com/"
    pages: ClassVar = {
        "pricing": "https://verda.com/pricing",
        "token": "https://api.verda.com/v1/oauth2/token",
        "instance_types": "https://api.verda.com/v1/instance-types?currency=usd",
        "availability": "https://api.verda.com/v1/instance-availability?is_spot=false",
    }
    key_help = "optional, adds locations: id:secret of https://console.verda.com, API credentials"

    def requests(self, keys: Keys) -> Iterable[Request]:
        """Ask for the page; with a key first for a token of the interface."""
        yield Request(page="pricing", url=self.pages["pricing"], is_page=True)
        if keys and keys.secret:
            client, _, secret = keys.secret.partition(":")
            body = {"grant_type": "client_credentials", "client_id": client, "client_secret": secret}
            url = self.pages["token"]
            yield Request(page="token", url=url, method="POST", json_body=body, is_optional=True)

    def follow(self, page: Page, keys: Keys) -> Iterable[Request]:
        """With the token ask for instance types and availability."""
        del keys
        if page.key == "token":
            if not is_json_with(page, "access_token"):
                raise ParseError(
                    "token: no 'access_token' in the answer: is the key id:secret?", page=page.key
                )
            headers = {"Authorization": f"Bearer {page.json()['access_token']}"}
            for key in ("instance_types", "availability"):
                yield Request(page=key, url=self.pages[key], headers=headers, is_optional=True)

    def recognise(self, page: Page) -> str | None:
        """Tell the page and the two lists by their shape."""
        if is_page_with(page, "application/ld+json", "Hourly on-demand instance price"):
            return "pricing"
        if is_json_rows(page, "instance_type", "price_per_hour"):
            return "instance_types"
        return "availability" if is_json_rows(page, "location_code", "availabilities") else None

    def parse(self, pages: Mapping[str, Page]) -> Iterable[RawOffer | Problem]:
        """Read both; the page decides the price."""
        if "pricing" not in pages and "instance_types" not in pages:
            raise ParseError("verda: neither the pricing page nor the instance types are there")
        places = _places(pages)
        found: dict[str, list[RawOffer]] = {"pricing": [], "instance_types": []}
        for key, read in (("pricing", _page), ("instance_types", _interface)):
            for item in read(pages[key], places) if key in pages else ():
                if isinstance(item, RawOffer):
                    found[key].append(item)
                else:
                    yield item
        yield from merged(found["pricing"], found["instance_types"], _machine)


def _machine(offer: RawOffer) -> Hashable:
    return (offer.gpu_count, offer.gpu, offer.tier)


def _page(page: Page, places: Mapping[str, list[str]] | None) -> Iterator[RawOffer | Problem]:
    """Read the offers of the page's one JSON-LD graph; two of one name must say one price."""
    del places
    scripts = every(document(page), 'script[type="application/ld+json"]')
    if len(scripts) != 1:
        raise ParseError(f"pricing: {len(scripts)} blocks of JSON-LD instead of one: the page changed")
    graph = Page(key=page.key, url=page.url, body=(scripts[0].text() or "").encode())
    offers = [
        row for row in rows_at(graph, "@graph") if isinstance(row, dict) and row.get("@type") == "Offer"
    ]
    if not offers:
        raise ParseError("pricing: no offer in the page's graph: the page changed")
    by_name: dict[str, dict[str, RawOffer | Problem]] = {}
    for item in read_rows(offers, _offer, page=page.key, name="name"):
        name = f"{item.instance_type} {item.tier}" if isinstance(item, RawOffer) else item.what
        price = str(item.price_per_hour) if isinstance(item, RawOffer) else ""
        by_name.setdefault(name, {})[price] = item
    for name, items in by_name.items():
        if len(items) == 1:
            yield from items.values()
        else:
            yield Problem(what=name, why="the page says several prices", raw=", ".join(items))


def _offer(row: dict[str, Any]) -> Iterator[RawOffer | Problem]:
    match = _NAME.fullmatch(str(row["name"]).strip())
    if match is None:
        if "instance price" in str(row["description"]):
            yield Problem(what=str(row["name"]), why="not an instance with GPUs", raw=str(row["price"]))
        return
    tier, description = _TIERS[match["tier"]]
    unit = row["priceSpecification"]
    price = amount(row["price"], "price")
    if row["description"] != description or unit["unitText"] != "hour" or price is None:
        raise ValueError(
            f"{row['description']!r}, {price} per {unit['unitText']}: not an hourly {tier} price"
        )
    if amount(unit["price"], "price") != price or unit["priceCurrency"] != row["priceCurrency"]:
        raise ValueError(f"{price} {row['priceCurrency']} and {unit['price']} {unit['priceCurrency']} differ")
    memory = _MEMORY.search(match["gpu"])
    yield RawOffer(
        instance_type=match["machine"],
        gpu=match["gpu"],
        gpu_count=whole(match["count"], "count"),
        memory_gb_per_gpu=float(memory[1]) if memory else None,
        price_per_hour=price,
        currency=name_of(row["priceCurrency"], "priceCurrency"),
        page="pricing",
        raw=f"{price} {row['priceCurrency']} per hour, {row['description']}",
        tier=tier,
        billing=Billing.PER_10_MINUTES,
    )


def _places(pages: Mapping[str, Page]) -> Mapping[str, list[str]] | None:
    """Return the locations in which each instance type can be had now; None where nobody asked."""
    places: dict[str, list[str]] = {}
    for page in of_kind(pages, "availability"):
        for row in rows_at(page):
            kinds, place = dig(row, "availabilities"), dig(row, "location_code")
            if not isinstance(kinds, list) or not isinstance(place, str):
                raise ParseError(
                    f"{page.key}: a location is {str(row)[:60]}: the answer changed", page=page.key
                )
            for kind in map(str, kinds):
                places.setdefault(kind, []).append(place)
    return places if "availability" in pages else None


def _interface(page: Page, places: Mapping[str, list[str]] | None) -> Iterator[RawOffer | Problem]:
    def read(row: dict[str, Any]) -> Iterator[RawOffer]:
        kind = name_of(row["instance_type"], "instance_type")
        if kind.startswith("CPU."):
            return
        count = whole(row["gpu"]["number_of_gpus"], "gpu.number_of_gpus")
        words = name_of(row["gpu"]["description"], "gpu.description").removeprefix(f"{count}x ")
        total = number(row["gpu_memory"]["size_in_gigabytes"], "gpu_memory")
        for tier, field in ((Tier.ON_DEMAND, "price_per_hour"), (Tier.SPOT, "spot_price")):
            price = amount(row[field], field)
            if price is None:
                continue
            named: list[str | None] = [*(places or {}).get(kind, [])]
            for place in named if named and tier is Tier.ON_DEMAND else [None]:  # spot has a list of its own
                yield RawOffer(
                    instance_type=kind,
                    gpu=words,
                    gpu_count=count,
                    memory_gb_per_gpu=total / count if total else None,
                    price_per_hour=price,
                    currency=name_of(row["currency"], "currency").upper(),
                    page="instance_types",
                    raw=f"{field} {json.dumps(str(price))} per hour, whole instance",
                    region=place,
                    tier=tier,
                    billing=Billing.PER_10_MINUTES,
                    available=None if places is None or tier is Tier.SPOT else place is not None,
                    vcpus=number(row["cpu"]["number_of_cores"], "cpu"),
                    ram_gb=number(row["memory"]["size_in_gigabytes"], "memory"),
                )

    yield from read_rows(rows_at(page), read, page=page.key, name="instance_type")
