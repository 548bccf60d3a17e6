"""Lium: a market of hosts, published as one robust figure per GPU, count, country and tier."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from typing import Any, ClassVar

from pricing.offer import Billing, Problem, RawOffer, Tier
from pricing.parsing.reading import (
    amount,
    is_json_rows,
    lower_quartile,
    name_of,
    needed,
    read_rows,
    rows_at,
    whole,
)
from pricing.provider import Page, Provider, ProviderClass

_TIERS = {"secure": Tier.SECURE, "community": Tier.COMMUNITY, "spot": Tier.SPOT}


class Lium(Provider):
    """
    The price is for one GPU of a host; the figure is the lower quartile of the hosts that are free now.

    Billed per second (https://lium.io/pricing).
    """

    name = "lium"
    title = "Lium"
    kind = ProviderClass.MARKETPLACE
    home = "https://lium.io/"
    pages: ClassVar = {"executors": "https://lium.io/api/executors"}
    names_hosts = True

    def recognise(self, page: Page) -> str | None:
        """Know the list by its price field."""
        return "executors" if is_json_rows(page, "price_per_gpu") else None

    def parse(self, pages: Mapping[str, Page]) -> Iterable[RawOffer | Problem]:
        """Pool the hosts; the addresses that the list holds are never read."""
        rows = rows_at(needed(pages, "executors"))
        asks: dict[tuple[str, int, str | None, Tier], list[Decimal]] = defaultdict(list)
        left_out: Counter[tuple[str, str]] = Counter()
        for item in read_rows(rows, _host, page="executors", name="machine_name"):
            if isinstance(item, RawOffer):
                asks[item.gpu, item.gpu_count, item.region, item.tier].append(item.price_per_hour)
            else:
                left_out[item.what, item.why] += 1
        yield from (Problem(what=gpu, why=why, raw=f"{n} hosts") for (gpu, why), n in left_out.items())
        for (gpu, count, country, tier), prices in asks.items():
            yield RawOffer(
                instance_type=f"{count}x {gpu}, p25 of hosts",
                gpu=gpu,
                gpu_count=count,
                price_per_hour=lower_quartile(prices),
                page="executors",
                raw=f"p25 of {len(prices)} hosts, {min(prices)} to {max(prices)} USD/h for {count} GPUs",
                region=country,
                tier=tier,
                billing=Billing.PER_SECOND,
                available=True,
            )


def _host(row: dict[str, Any]) -> Iterator[RawOffer | Problem]:
    """Read a host as one offer of all GPUs that are free on it."""
    gpu = name_of(row["machine_name"], "machine_name")
    price = amount(row["price_per_gpu"], "price_per_gpu")
    free = row["available_gpu_count"]
    tier = Tier.SPOT if row["specs"]["is_spot"] is True else _TIERS.get(str(row["tier"]))
    why = None
    if tier is None:
        why = f"the tier {row['tier']!r} is not known here"
    elif price is None:
        why = "no price"
    elif row["active"] is False or not free:
        why = "not free now"
    elif free > whole(row["gpu_count"], "gpu_count"):
        why = "more GPUs free than there are"
    if why is not None or price is None or tier is None:
        yield Problem(what=gpu, why=why or "no price")
        return
    count = whole(free, "available_gpu_count")
    country = row["location"]["country_code"] or None
    yield RawOffer(
        instance_type=gpu,
        gpu=gpu,
        gpu_count=count,
        price_per_hour=price * count,
        page="executors",
        raw=f"price_per_gpu {price}",
        region=country,
        tier=tier,
    )
