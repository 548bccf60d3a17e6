"""OVHcloud: GPU instances from the order catalogues of its French (EUR) and US (USD) companies."""

import re
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from functools import partial
from typing import Any, ClassVar

from pricing.errors import ParseError
from pricing.offer import Billing, Problem, RawOffer, Tier
from pricing.parsing.reading import amount, dig, name_of, number, read_rows, rows_at, whole
from pricing.provider import Keys, Page, Provider, ProviderClass, Request

_PRICE_UNIT = Decimal(10) ** -8  # prices are whole 1e-8 of the currency
# `formattedPrice` is rounded to cents. Source: docs/providers.md, "OVHcloud".
_HALF_CENT = Decimal("0.005")
# Hours in a month of the monthly plans, as everywhere here. Source: docs/providers.md, "Months".
_HOURS_PER_MONTH = 730
_MODES = {"consumption": Tier.ON_DEMAND, "monthly.postpaid": Tier.RESERVED_OTHER}


class OvhCloud(Provider):
    """Only addons of the brick "gpu" are instances; managed services beside them are priced by the minute."""

    name = "ovhcloud"
    title = "OVHcloud"
    kind = ProviderClass.NEOCLOUD
    home = "https://www.ovh.com/manager/public-cloud/"
    currencies = frozenset({"EUR"})
    pages: ClassVar = {
        "catalog": "https://api.ovh.com/1.0/order/catalog/public/cloud?ovhSubsidiary=FR",
        "catalog_us": "https://api.us.ovhcloud.com/1.0/order/catalog/public/cloud?ovhSubsidiary=US",
    }

    def requests(self, keys: Keys) -> Iterable[Request]:
        """Ask both companies; one that does not answer leaves the prices of the other."""
        del keys
        for key, url in self.pages.items():
            yield Request(page=key, url=url, is_optional=key != "catalog")

    def recognise(self, page: Page) -> str | None:
        """Tell the two companies by subsidiary and currency."""
        return next((key for key in self.pages if _locale(page) == _EXPECTED[key]), None)

    def parse(self, pages: Mapping[str, Page]) -> Iterable[RawOffer | Problem]:
        """Read the catalogues that are there, each in its own currency."""
        if not pages.keys() & self.pages.keys():
            raise ParseError(f"ovhcloud: no catalogue is there, only {sorted(pages) or 'nothing'}")
        for key in self.pages:
            if key in pages:
                rows = rows_at(pages[key], "addons")
                if _locale(pages[key]) != _EXPECTED[key]:
                    raise ParseError(f"{key}: the catalogue of {_locale(pages[key])}, not {_EXPECTED[key]}")
                rows = [row for row in rows if dig(row, "blobs", "commercial", "brick") == "gpu"]
                if not rows:
                    raise ParseError(f"{key}: no addon of the brick 'gpu': the catalogue changed", page=key)
                read = partial(_addon, key, _EXPECTED[key][1])
                yield from read_rows(rows, read, page=key, name="planCode")


# Subsidiary and currency of each page.
_EXPECTED = {"catalog": ("FR", "EUR"), "catalog_us": ("US", "USD")}


def _locale(page: Page) -> tuple[str, str] | None:
    try:
        locale = page.json()["locale"]
        return str(locale["subsidiary"]), str(locale["currencyCode"])
    except (ParseError, KeyError, TypeError):
        return None


def _addon(page: str, currency: str, row: dict[str, Any]) -> Iterator[RawOffer | Problem]:
    plan, _, mode = name_of(row["planCode"], "planCode").partition(".")
    technical = row["blobs"]["technical"]
    tags = row["blobs"].get("tags") or []
    why = None
    if plan.startswith("win-") or technical["os"]["family"] != "linux":
        why = "with a Windows licence inside"
    elif "-le-" in plan:
        why = "a legacy twin of another plan"
    elif "coming_soon" in tags:
        why = "not for sale yet, though it has a price"
    if why is not None or mode not in _MODES:
        yield Problem(what=row["planCode"], why=why or f"billed by {mode!r}, which is not known here")
        return
    if len(row["pricings"]) != 1:
        raise ValueError(f"{len(row['pricings'])} prices instead of one")
    pricing = row["pricings"][0]
    price = _price(pricing)
    unit = {Tier.ON_DEMAND: "hour", Tier.RESERVED_OTHER: "month"}[_MODES[mode]]
    if pricing["intervalUnit"] not in {unit, "none"}:  # US rows say "none" for both
        raise ValueError(f"{plan} {mode} is billed per {pricing['intervalUnit']}, not per {unit}")
    is_monthly = unit == "month"
    yield RawOffer(
        instance_type=plan,
        gpu=name_of(technical["gpu"]["model"], "gpu.model"),
        gpu_count=whole(technical["gpu"]["number"], "gpu.number"),
        memory_gb_per_gpu=number(technical["gpu"]["memory"]["size"], "gpu.memory.size"),
        price_per_hour=price / _HOURS_PER_MONTH if is_monthly else price,
        currency=currency,
        page=page,
        raw=f"{pricing['price']} x 1e-8 {currency} per {unit}, shown {pricing['formattedPrice']!r}",
        tier=_MODES[mode],
        commitment_days=30 if is_monthly else None,
        billing=Billing.MONTHLY if is_monthly else Billing.HOURLY,
        vcpus=number(technical["cpu"]["cores"], "cpu.cores"),
        ram_gb=number(technical["memory"]["size"], "memory.size"),
    )


def _price(pricing: Mapping[str, Any]) -> Decimal:
    """Return the price in the currency; the figure that is shown to customers must say the same."""
    units = amount(pricing["price"], "price")
    shown = re.findall(
        r"\d+(?:[.,]\d+)?", str(pricing["formattedPrice"]).replace("\xa0", "").replace(" ", "")
    )
    if units is None or len(shown) != 1:
        raise ValueError(f"price {pricing['price']}, shown {pricing['formattedPrice']!r}")
    price = units * _PRICE_UNIT
    if abs(price - Decimal(shown[0].replace(",", "."))) > _HALF_CENT:
        raise ValueError(f"the price is {price}, but shown is {pricing['formattedPrice']!r}")
    return price
