"""Azure: virtual machines with GPUs, on demand, spot and reserved, from its public retail price interface."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar
from urllib.parse import quote

from pricing.errors import ParseError
from pricing.offer import Billing, Problem, RawOffer, Tier
from pricing.parsing.machines import machines
from pricing.parsing.reading import amount, dig, is_json_with, name_of, next_key, read_rows, rows_at
from pricing.provider import Keys, Page, Provider, ProviderClass, Request

# Regions that have current GPU sizes; one request each, since a query over all of them is throttled.
# Source: the bundled snapshot, azure rows with H100, H200, A100 or MI300X; docs/providers.md, "Azure".
_REGIONS = (
    "eastus",
    "eastus2",
    "southcentralus",
    "westus2",
    "westus3",
    "canadacentral",
    "brazilsouth",
    "westeurope",
    "northeurope",
    "uksouth",
    "swedencentral",
    "germanywestcentral",
    "francecentral",
    "switzerlandnorth",
    "japaneast",
    "koreacentral",
    "southeastasia",
    "australiaeast",
    "centralindia",
    "uaenorth",
)
# The price of a reservation is that of its whole term, whatever `unitOfMeasure` says.
_HOURS_PER_YEAR = 8760
_TERMS = {1: Tier.RESERVED_1Y, 3: Tier.RESERVED_3Y}


class Azure(Provider):
    """The GPUs of a size stand in its name only: they are taken from our own table."""

    name = "azure"
    title = "Microsoft Azure"
    kind = ProviderClass.HYPERSCALER
    home = "https://portal.azure.com/#create/Microsoft.VirtualMachine"
    pages: ClassVar = {
        "prices": "https://prices.azure.com/api/retail/prices?api-version=2023-01-01-preview&$filter="
    }

    def requests(self, keys: Keys) -> Iterable[Request]:
        """Ask for the N-series of each region."""
        del keys
        for region in _REGIONS:
            where = f"serviceName eq 'Virtual Machines' and armRegionName eq '{region}'"
            url = self.pages["prices"] + quote(f"{where} and contains(armSkuName,'Standard_N')")
            yield Request(page=region, url=url, is_optional=region != _REGIONS[0])

    def follow(self, page: Page, keys: Keys) -> Iterable[Request]:
        """Ask for the next page while the answer names one."""
        del keys
        following = dig(page.json(), "NextPageLink")
        if following:
            yield Request(page=next_key(page.key), url=str(following), is_optional=True)

    def recognise(self, page: Page) -> str | None:
        """Know a page by its wrapper."""
        return "prices" if is_json_with(page, "Items", "BillingCurrency") else None

    def parse(self, pages: Mapping[str, Page]) -> Iterable[RawOffer | Problem]:
        """Read all pages; where a price is listed several times, that of the latest in force counts."""
        if not pages:
            raise ParseError("azure: no page of prices is there")
        rows: list[tuple[Page, dict[str, Any]]] = []
        for page in pages.values():
            found = rows_at(page, "Items")
            stated = dig(page.json(), "Count")
            if stated not in (None, len(found)):
                raise ParseError(f"{page.key}: {len(found)} of {stated} items", page=page.key)
            rows += [(page, row) for row in found]
        rows.sort(key=lambda pair: str(dig(pair[1], "effectiveStartDate")))
        newest: dict[tuple[object, ...], RawOffer] = {}
        problems: Counter[tuple[str, str]] = Counter()
        for item in read_rows(rows, _item, page="prices", name=lambda pair: str(dig(pair[1], "armSkuName"))):
            if isinstance(item, RawOffer):
                newest[item.instance_type, item.region, item.tier, item.commitment_days] = item
            else:
                problems[item.what, item.why] += 1
        yield from (Problem(what=what, why=why, raw=f"{n} rows") for (what, why), n in problems.items())
        yield from newest.values()


def _item(pair: tuple[Page, dict[str, Any]]) -> Iterator[RawOffer | Problem]:
    """Read a price of a Linux machine; Windows shares the meter's name and is told by the product's."""
    page, row = pair
    sku, product = name_of(row["armSkuName"], "armSkuName"), str(row["productName"])
    words = f"{row['meterName']} {row['skuName']}"
    if (
        not sku.startswith("Standard_N")
        or row["type"] not in {"Consumption", "Reservation"}
        or row["isPrimaryMeterRegion"] is not True
        or re.search(r"Windows|Cloud ?Services", product)
        or "Low Priority" in words
    ):
        return
    machine = machines("azure").get(sku)
    if machine is None:
        yield Problem(what=sku, why="a size that is not in pricing/data/machines.toml")
        return
    since = str(row["effectiveStartDate"])
    if not page.is_in_force(since):
        yield Problem(what=sku, why=f"a price that is in force only from {since[:10]}")
        return
    price = amount(row["retailPrice"], "retailPrice")
    if row["currencyCode"] != "USD" or row["unitOfMeasure"] != "1 Hour" or row["tierMinimumUnits"] != 0:
        raise ValueError(
            f"{row['currencyCode']}, {row['unitOfMeasure']}, from {row['tierMinimumUnits']} units"
        )
    if price is None:
        raise ValueError("listed at 0: a broken or a preview row")
    tier, years, billing = Tier.ON_DEMAND, None, Billing.PER_SECOND
    if row["type"] == "Reservation":
        match = re.fullmatch(r"(\d) Years?", str(row["reservationTerm"]))
        if match is None:
            raise ValueError(f"the term {row['reservationTerm']!r} is not one of years")
        years = int(match[1])
        tier, billing = _TERMS.get(years, Tier.RESERVED_OTHER), Billing.PER_TERM
    elif "Spot" in words:
        tier = Tier.SPOT
    yield RawOffer(
        instance_type=sku,
        gpu=machine.gpu,
        canonical_gpu=machine.gpu,
        gpu_count=machine.gpu_count,
        gpu_fraction=machine.gpu_fraction,
        price_per_hour=price if years is None else price / (_HOURS_PER_YEAR * years),
        page=page.key,
        raw=f"retailPrice {price} USD per {'hour' if years is None else f'{years} years'}, {row['skuName']}",
        region=name_of(row["armRegionName"], "armRegionName"),
        tier=tier,
        commitment_days=None if years is None else 365 * years,
        billing=billing,
    )
