"""JarvisLabs: prices of one GPU's hour per region, from the list behind its console; needs a key."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar

from pricing.offer import Billing, Problem, RawOffer, Tier
from pricing.parsing.reading import amount, is_json_with, name_of, needed, number, read_rows, rows_at, whole
from pricing.parsing.shape import SIZES
from pricing.provider import Keys, Page, Provider, ProviderClass, Request

# Regions in which a machine can be created.
# Source: recorded answer of gpuhunt's test; gpuhunt, JARVISLABS_REGION_URLS.
_REGIONS = frozenset({"india-01", "india-noida-01", "india-chennai-01", "europe-01"})


class JarvisLabs(Provider):
    """Containers and virtual machines of one GPU are rows of their own, and stay so."""

    name = "jarvislabs"
    title = "JarvisLabs"
    kind = ProviderClass.NEOCLOUD
    home = "https://cloud.jarvislabs.ai/"
    pages: ClassVar = {"server_meta": "https://backendprod.jarvislabs.net/misc/server_meta"}
    requires_key = True
    key_help = "https://cloud.jarvislabs.ai/, settings, API key"

    def requests(self, keys: Keys) -> Iterable[Request]:
        """Ask for the list with the key."""
        headers = {"Authorization": f"Bearer {keys.secret}"}
        yield Request(page="server_meta", url=self.pages["server_meta"], headers=headers)

    def recognise(self, page: Page) -> str | None:
        """Know the list by its key."""
        return "server_meta" if is_json_with(page, "server_meta") else None

    def parse(self, pages: Mapping[str, Page]) -> Iterable[RawOffer | Problem]:
        """Read each GPU of each region."""
        rows = rows_at(needed(pages, "server_meta"), "server_meta")
        yield from read_rows(rows, _row, page="server_meta", name="gpu_type")


def _row(row: dict[str, Any]) -> Iterator[RawOffer | Problem]:
    gpu, region = name_of(row["gpu_type"], "gpu_type"), name_of(row["region"], "region")
    workload = row["workload_type"] or "vm"  # older rows of virtual machines have none
    per_gpu, spot = amount(row["price_per_hour"], "price_per_hour"), amount(row["spot_price"], "spot_price")
    if region not in _REGIONS:
        yield Problem(
            what=f"{gpu} {workload}", why=f"the region {region!r} is not known here", raw=str(per_gpu)
        )
        return
    if per_gpu is None:
        raise ValueError("no price")
    largest = whole(row.get("num_gpus") or 1, "num_gpus")
    prices = [(Tier.ON_DEMAND, per_gpu, row["effective_num_free_devices"])]
    if spot is not None and spot < per_gpu:
        prices.append((Tier.SPOT, spot, row["spot_num_free_devices"]))
    vcpus, ram = number(row["cpus_per_gpu"], "cpus_per_gpu"), number(row["ram_per_gpu"], "ram_per_gpu")
    for tier, price, free in prices:
        for count in (n for n in SIZES if n <= largest):
            yield RawOffer(
                instance_type=f"{gpu} {workload}",
                gpu=gpu,
                gpu_count=count,
                memory_gb_per_gpu=float(whole(row["vram"], "vram")),
                price_per_hour=price * count,
                page="server_meta",
                raw=f"{price} USD/h per GPU",
                region=region,
                tier=tier,
                billing=Billing.PER_MINUTE,
                available=free >= count,
                vcpus=vcpus * count if vcpus else None,
                ram_gb=ram * count if ram else None,
            )
