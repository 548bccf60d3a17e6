"""Google Cloud: machine types with GPUs, summed from the prices of their parts in its billing catalogue."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any, ClassVar
from urllib.parse import quote

from pricing.errors import ParseError
from pricing.offer import Billing, Problem, RawOffer, Tier
from pricing.parsing.machines import SummedMachine, summed_machines
from pricing.parsing.reading import amount, dig, is_json_with, next_key, rows_at
from pricing.provider import Keys, Page, Provider, ProviderClass, Request

_SSD = ("SSD backed Local Storage",)
# Hours in the month of which local SSD is priced. Source: docs/providers.md, "Months".
_HOURS_PER_MONTH = 730
_UNITS = {"h": Decimal(1), "GiBy.h": Decimal(1), "GiBy.mo": Decimal(1) / _HOURS_PER_MONTH}
# Commitments and other usage types are left out. Source: docs/providers.md, "Google Cloud".
_USAGE = {"OnDemand": Tier.ON_DEMAND, "Preemptible": Tier.SPOT}

# Of a price that does not say since when it is in force.
_EVER = "1970-01-01T00:00:00Z"

# Price of a part per hour, by tier, region and the words of its description.
_Parts = Mapping[tuple[Tier, str, str], Decimal]


class Gcp(Provider):
    """A GPU's price alone is not the machine's: cores, memory and the disk that comes along belong to it."""

    name = "gcp"
    title = "Google Cloud"
    kind = ProviderClass.HYPERSCALER
    home = "https://console.cloud.google.com/compute/instancesAdd"
    pages: ClassVar = {
        "skus": "https://cloudbilling.googleapis.com/v1/services/6F81-5844-456A/skus?pageSize=2000"
    }
    requires_key = True
    key_help = "an API key for the Cloud Billing API: https://console.cloud.google.com/apis/credentials"

    def requests(self, keys: Keys) -> Iterable[Request]:
        """Ask for the first page; the key travels in a header, never in an address."""
        yield _request("skus", self.pages["skus"], keys)

    def follow(self, page: Page, keys: Keys) -> Iterable[Request]:
        """Ask for the next page while the answer names one."""
        token = dig(page.json(), "nextPageToken")
        if token:
            url = f"{self.pages['skus']}&pageToken={quote(str(token), safe='')}"
            yield _request(next_key(page.key), url, keys)

    def recognise(self, page: Page) -> str | None:
        """Know a page by its list."""
        return "skus" if is_json_with(page, "skus") else None

    def parse(self, pages: Mapping[str, Page]) -> Iterable[RawOffer | Problem]:
        """Gather the prices of all parts, then sum the machines of each region."""
        if not pages:
            raise ParseError("gcp: no page of SKUs is there")
        rows = [(page, row) for page in pages.values() for row in rows_at(page, "skus")]
        if all(dig(page.json(), "nextPageToken") for page in pages.values()):
            raise ParseError(f"gcp: the last of {len(pages)} pages is missing")
        parts: dict[tuple[Tier, str, str], Decimal] = {}
        origin: dict[tuple[Tier, str, str], str] = {}
        doubtful: set[tuple[Tier, str, str]] = set()
        for page, row in rows:
            try:
                found = list(_part(row, page))
            except (KeyError, TypeError, ValueError, IndexError, ArithmeticError) as error:
                yield Problem(what=_description(row), why=f"a part that could not be read: {error}")
                continue
            for part, price in found:
                if parts.setdefault(part, price) != price:
                    doubtful.add(part)
                origin[part] = page.key
        for tier, region, words in doubtful:
            del parts[tier, region, words]
            yield Problem(what=f"{words} in {region}, {tier}", why="the catalogue says several prices")
        if not parts:
            raise ParseError("gcp: no part of a GPU machine in the catalogue: the descriptions changed")
        for name, machine in summed_machines().items():
            yield from _offers(name, machine, parts, origin)


def _request(key: str, url: str, keys: Keys) -> Request:
    return Request(page=key, url=url, headers={"X-Goog-Api-Key": keys.secret or ""})


def _words() -> frozenset[str]:
    machines = summed_machines().values()
    return frozenset(_SSD).union(*((*m.core, *m.ram, *m.accelerator) for m in machines))


def _description(row: Any) -> str:
    return str(row.get("description", "?")) if isinstance(row, dict) else "?"


def _part(row: Mapping[str, Any], page: Page) -> Iterator[tuple[tuple[Tier, str, str], Decimal]]:
    """Yield the price of a part in each of its regions; SKUs of other things yield nothing."""
    text = _description(row).removeprefix("Spot Preemptible ")
    for mark in (" running in", " attached to Spot Preemptible VMs", " in "):
        text = text.partition(mark)[0]
    usage = row["category"]["usageType"]
    if text not in _words() or usage not in _USAGE:
        return
    expression = _in_force(row["pricingInfo"], page)["pricingExpression"]
    unit = expression["usageUnit"]
    rates = expression["tieredRates"]
    if unit not in _UNITS or len(rates) != 1 or rates[0]["startUsageAmount"] != 0:
        raise ValueError(f"priced per {unit!r} in {len(rates)} steps")
    money = rates[0]["unitPrice"]
    if money["currencyCode"] != "USD":
        raise ValueError(f"priced in {money['currencyCode']}")
    price = (amount(money["units"], "units") or 0) + Decimal(money["nanos"]) / 10**9
    if price <= 0:
        raise ValueError("listed at 0: a preview, not a price")
    for region in row["serviceRegions"]:
        yield (_USAGE[usage], str(region), text), price * _UNITS[unit]


def _in_force(prices: Sequence[Mapping[str, Any]], page: Page) -> Mapping[str, Any]:
    """Return the newest of a part's prices that is in force, in whatever order they stand."""
    since = [str({"effectiveTime": _EVER, **one}["effectiveTime"]) for one in prices]
    current = [pair for pair in zip(since, prices, strict=True) if page.is_in_force(pair[0])]
    if not current:
        raise ValueError(f"a price that is in force only from {min(since)[:10]}")
    return sorted(current, key=lambda pair: datetime.fromisoformat(pair[0]))[-1][1]


def _offers(
    name: str, machine: SummedMachine, parts: _Parts, origin: Mapping[tuple[Tier, str, str], str]
) -> Iterator[RawOffer | Problem]:
    """Yield the machine in each region in which it is sold and all its parts have a price."""
    missing: dict[tuple[Tier, str], list[str]] = defaultdict(list)
    for tier in (Tier.SPOT,) if machine.is_spot_only else (Tier.ON_DEMAND, Tier.SPOT):
        for region in sorted(machine.regions):

            def price_of(words: Sequence[str], tier: Tier = tier, region: str = region) -> Decimal | None:
                return next((parts[tier, region, w] for w in words if (tier, region, w) in parts), None)

            sums = {
                "core": (price_of(machine.core), Fraction(machine.vcpus)),
                "ram": (price_of(machine.ram), Fraction(machine.ram_gib)),
                "gpu": (price_of(machine.accelerator), machine.gpus),
            }
            if machine.ssd_gib:
                sums["ssd"] = (price_of(_SSD), Fraction(machine.ssd_gib))
            absent = [part for part, (price, _) in sums.items() if price is None]
            if absent:
                if "gpu" not in absent:  # otherwise the catalogue is one of another region
                    missing[tier, ", ".join(absent)].append(region)
                continue
            total = sum((price * _decimal(n) for price, n in sums.values() if price is not None), Decimal(0))
            words = next(w for w in machine.accelerator if (tier, region, w) in parts)
            yield RawOffer(
                instance_type=name,
                gpu=words,
                canonical_gpu=machine.machine.gpu,
                gpu_count=machine.machine.gpu_count,
                gpu_fraction=machine.machine.gpu_fraction,
                price_per_hour=total,
                page=origin[tier, region, words],
                raw=" + ".join(f"{n} {part} x {price}" for part, (price, n) in sums.items()),
                region=region,
                tier=tier,
                billing=Billing.PER_SECOND,
                vcpus=float(machine.vcpus),
                ram_gb=float(machine.ram_gib),
            )
    for (tier, parts_absent), regions in missing.items():
        why = f"no price of {parts_absent}: the sum would be too low"
        yield Problem(what=f"{name}, {tier}", why=why, raw=", ".join(regions))


def _decimal(number: Fraction) -> Decimal:
    return Decimal(number.numerator) / number.denominator
