"""Scaleway: GPU instances of each zone in euros, from its public product lists."""

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any, ClassVar

from pricing.errors import ParseError
from pricing.offer import Billing, Problem, RawOffer
from pricing.parsing.reading import amount, dig, name_of, next_key, number, of_kind, read_rows, whole
from pricing.provider import Keys, Page, Provider, ProviderClass, Request

# Zones with GPUs. Source: docs/providers.md, "Scaleway".
_ZONES = ("fr-par-2", "fr-par-1", "nl-ams-1", "pl-waw-2")
_PAGE_SIZE = 100
_GIB = 2**30
_AVAILABLE = {"available": True, "scarce": True, "shortage": False}


class Scaleway(Provider):
    """
    Prices are euros without VAT although the answer names no currency; memory is in bytes.

    Pages are named by zone ("fr-par-2/servers"). A saved answer does not say its zone: without one in its
    name the offers have no region.
    """

    name = "scaleway"
    title = "Scaleway"
    kind = ProviderClass.NEOCLOUD
    home = "https://console.scaleway.com/instance/servers/create"
    currencies = frozenset({"EUR"})
    pages: ClassVar = {
        "servers": "https://api.scaleway.com/instance/v1/zones/fr-par-2/products/servers",
        "availability": "https://api.scaleway.com/instance/v1/zones/fr-par-2/products/servers/availability",
    }

    def requests(self, keys: Keys) -> Iterable[Request]:
        """Ask each zone for its products and for what is in stock."""
        del keys
        for zone in _ZONES:
            base = f"https://api.scaleway.com/instance/v1/zones/{zone}/products/servers"
            query = f"?page=1&per_page={_PAGE_SIZE}"
            is_optional = zone != _ZONES[0]
            yield Request(page=f"{zone}/servers", url=base + query, is_optional=is_optional)
            yield Request(page=f"{zone}/availability", url=f"{base}/availability{query}", is_optional=True)

    def follow(self, page: Page, keys: Keys) -> Iterable[Request]:
        """Ask for the next page while one is full; the number of pages stands in a header only."""
        del keys
        if len(_servers(page)) >= _PAGE_SIZE:
            base, _, place = page.url.partition("?page=")
            following = int(place.partition("&")[0]) + 1
            url = f"{base}?page={following}&per_page={_PAGE_SIZE}"
            yield Request(page=next_key(page.key), url=url, is_optional=True)

    def recognise(self, page: Page) -> str | None:
        """Tell the two lists by what they say of a server."""
        try:
            first = next(iter(_servers(page).values()))
        except ParseError:
            return None
        return "availability" if "availability" in first else "servers" if "hourly_price" in first else None

    def parse(self, pages: Mapping[str, Page]) -> Iterable[RawOffer | Problem]:
        """Read the products of each zone."""
        stems = dict.fromkeys(key.partition("#")[0] for key in pages)
        zones = [stem.removesuffix("servers") for stem in stems if stem.endswith("servers")]
        if not zones:
            raise ParseError(f"scaleway: no list of servers is there, only {sorted(pages) or 'nothing'}")
        for zone in zones:
            stock: dict[str, str] = {}
            for page in of_kind(pages, f"{zone}availability"):
                stock |= {name: str(dig(entry, "availability")) for name, entry in _servers(page).items()}
            for page in of_kind(pages, f"{zone}servers"):
                read = partial(_server, page.key, zone.rstrip("/") or None, stock)
                yield from read_rows(
                    _servers(page).items(), read, page=page.key, name=lambda row: str(row[0])
                )


def _servers(page: Page) -> Mapping[str, Any]:
    document = page.json()
    servers = document.get("servers") if isinstance(document, dict) else None
    if not isinstance(servers, dict) or not servers or not all(isinstance(s, dict) for s in servers.values()):
        raise ParseError(f"{page.key}: no object 'servers': the answer changed", page=page.key)
    return servers


def _server(
    page: str, zone: str | None, stock: Mapping[str, str], row: tuple[str, dict[str, Any]]
) -> Iterator[RawOffer | Problem]:
    name, server = row
    if not server["gpu"]:
        return
    info = server["gpu_info"]
    if server["mig_profile"] is not None or server["end_of_service"] is not False:
        why = f"a slice ({server['mig_profile']}) or at the end of its service"
        yield Problem(what=name, why=why, raw=str(server["hourly_price"]))
        return
    price = amount(server["hourly_price"], "hourly_price")
    memory, ram = number(info["gpu_memory"], "gpu_memory"), number(server["ram"], "ram")
    if price is None or memory is None or ram is None or min(memory, ram) < _GIB:
        raise ValueError(f"price {price}, gpu_memory {memory}, ram {ram}: not a price and two sizes in bytes")
    yield RawOffer(
        instance_type=name,
        gpu=name_of(info["gpu_name"], "gpu_name"),
        gpu_count=whole(server["gpu"], "gpu"),
        memory_gb_per_gpu=memory / _GIB,
        price_per_hour=price,
        currency="EUR",
        page=page,
        raw=f"hourly_price {price} EUR, without VAT",
        region=zone,
        billing=Billing.PER_MINUTE,
        available=_AVAILABLE.get(stock.get(name, "")),
        vcpus=number(server["ncpus"], "ncpus"),
        ram_gb=ram / _GIB,
    )
