"""RunPod: prices of one GPU's hour in the secure and the community cloud, from its GraphQL interface."""

import re
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from functools import partial
from typing import Any, ClassVar

from pricing.errors import ParseError
from pricing.offer import Billing, Problem, RawOffer, Tier
from pricing.parsing.reading import amount, is_json_with, name_of, number, read_rows, rows_at, whole
from pricing.provider import Keys, Page, Provider, ProviderClass, Request

_QUERY = """query Prices { gpuTypes {
  id displayName memoryInGb secureCloud communityCloud
  securePrice communityPrice secureSpotPrice communitySpotPrice
  maxGpuCount maxGpuCountSecureCloud maxGpuCountCommunityCloud
  secureStock: lowestPrice(input: {gpuCount: 1, secureCloud: true}) { stockStatus }
  communityStock: lowestPrice(input: {gpuCount: 1, secureCloud: false}) { stockStatus }
} }"""
# A saved answer may lack the largest count; the price list is "per GPU, times gpu.count", up to 8.
# Source: runpod/docs openapi.json (maxCount.secure 8); whether these sizes are in stock stays unknown.
_COUNTS_UNSTATED = (1, 2, 4, 8)
# Community prices that were never on offer: H200 0.50 and MI300X 0.50 against 3.99 and 2.39 secure; true ones
# lie above 0.45 of secure. Source: docs/providers.md, "RunPod".
_LEAST_SHARE_OF_SECURE = Decimal("0.3")
# The same without a secure price beside it and without the cloud flag (A100 SXM 40GB 1.00, 2026-08-22).
_PLACEHOLDERS = frozenset({Decimal("0.5"), Decimal(1)})
# GB of the whole board, for its MIG slices. Source: planner/data/gpus.toml, RTX PRO 6000 Blackwell Server.
_MIG_BOARD_GB = {"RTX PRO 6000": 96}


class RunPod(Provider):
    """Secure and community cloud; spot only where it is really cheaper than on demand."""

    name = "runpod"
    title = "RunPod"
    kind = ProviderClass.MARKETPLACE
    home = "https://console.runpod.io/deploy"
    pages: ClassVar = {
        "gpu_types": "https://api.runpod.io/graphql",
        "catalog": "https://api.runpod.io/v2/catalog/gpus?include=AVAILABILITY&product=POD",
    }
    key_help = "optional, adds the REST catalogue: https://console.runpod.io/user/settings"

    def requests(self, keys: Keys) -> Iterable[Request]:
        """Ask GraphQL without a key; with one also the REST catalogue."""
        url, body = self.pages["gpu_types"], {"query": _QUERY}
        yield Request(page="gpu_types", url=url, method="POST", json_body=body, is_safe=True)
        if keys:
            headers = {"Authorization": f"Bearer {keys.secret}"}
            yield Request(page="catalog", url=self.pages["catalog"], headers=headers, is_optional=True)

    def recognise(self, page: Page) -> str | None:
        """Tell GraphQL's `data` from the catalogue's `gpus`."""
        if is_json_with(page, "gpus"):
            return "catalog"
        return "gpu_types" if is_json_with(page, "data") else None

    def parse(self, pages: Mapping[str, Page]) -> Iterable[RawOffer | Problem]:
        """Read the REST catalogue, and GraphQL for the GPUs that it does not list."""
        if not pages:
            raise ParseError("runpod: neither the GraphQL answer nor the REST catalogue is there")
        listed: set[str] = set()
        for key, path, read in (
            ("catalog", ("gpus",), _catalog_row),
            ("gpu_types", ("data", "gpuTypes"), _graphql_row),
        ):
            if key in pages:
                rows = [row for row in rows_at(pages[key], *path) if _id(row) not in listed]
                listed |= {_id(row) for row in rows}
                yield from read_rows(rows, partial(read, key), page=key, name="id")


def _id(row: object) -> str:
    return str(row.get("id")) if isinstance(row, dict) else ""


def _catalog_row(page: str, row: dict[str, Any]) -> Iterator[RawOffer | Problem]:
    """Read a GPU of the REST catalogue as if GraphQL had said it; serverless is another product."""
    fields = {"id": row["id"], "displayName": row["name"], "memoryInGb": row["memory"]}
    for cloud in ("secure", "community"):
        fields[f"{cloud}Price"] = row["price"].get(cloud)
        fields[f"{cloud}Cloud"] = row[cloud]
        fields[f"maxGpuCount{cloud.title()}Cloud"] = row["maxCount"].get(cloud)
        fields[f"{cloud}Stock"] = {"stockStatus": row["availability"]} if "availability" in row else None
    yield from _graphql_row(page, fields)


def _graphql_row(page: str, row: dict[str, Any]) -> Iterator[RawOffer | Problem]:
    """Read a GPU type; every price is for one GPU's hour."""
    gpu = name_of(row["id"], "id")
    if gpu == "unknown":
        yield Problem(what=gpu, why="RunPod does not say which GPU this is", raw=str(row)[:300])
        return
    lowest = row.get("lowestPrice")
    if isinstance(lowest, dict) and "securePrice" not in row and "communityPrice" not in row:
        tier, cloud = _tier_of_lowest(row)
        price = amount(lowest["uninterruptablePrice"], "uninterruptablePrice")
        counts = [whole(count, "availableGpuCounts") for count in lowest.get("availableGpuCounts") or [1]]
        if price is not None:
            yield from _offers(page, row, tier, price, f"lowestPrice, {cloud}", counts, _is_in_stock(lowest))
        return
    secure = amount(row["securePrice"], "securePrice")
    for tier in (Tier.SECURE, Tier.COMMUNITY):
        price = amount(row[f"{tier}Price"], f"{tier}Price")
        is_offered = row.get(f"{tier}Cloud")
        if price is None:
            continue
        if is_offered not in {True, None} or (
            tier is Tier.COMMUNITY and _is_placeholder(price, secure, is_flagged=is_offered is True)
        ):
            why = f"placeholder, not an offer: {tier}Cloud is {is_offered}, secure price {secure or 'none'}"
            yield Problem(what=gpu, why=why, raw=f"{tier}Price {price} USD/h per GPU")
            continue
        largest = row.get(f"maxGpuCount{tier.title()}Cloud") or row.get("maxGpuCount")
        counts = list(range(1, whole(largest, "maxGpuCount") + 1)) if largest else list(_COUNTS_UNSTATED)
        in_stock = _is_in_stock(row.get(f"{tier}Stock"))
        yield from _offers(page, row, tier, price, f"{tier}Price", counts, in_stock)
        spot = amount(row.get(f"{tier}SpotPrice"), f"{tier}SpotPrice")
        if spot is not None and spot < price:  # since 2026-08 the spot fields repeat the on-demand ones
            spot_row = {**row, "instance": f"{gpu} ({tier} cloud)"}  # both clouds may have one: two offers
            yield from _offers(page, spot_row, Tier.SPOT, spot, f"{tier}SpotPrice", counts, None)


def _tier_of_lowest(row: Mapping[str, Any]) -> tuple[Tier, str]:
    """Return the cloud that `lowestPrice` speaks of; of either one, it is a tier of its own, never merged."""
    is_secure, is_community = row.get("secureCloud"), row.get("communityCloud")
    if is_secure is True and is_community is False:
        return Tier.SECURE, "secure cloud"
    if is_secure is False and is_community is True:
        return Tier.COMMUNITY, "community cloud"
    return Tier.ON_DEMAND, "cloud not stated"


def _is_placeholder(price: Decimal, secure: Decimal | None, *, is_flagged: bool) -> bool:
    if secure is None:
        return not is_flagged and price in _PLACEHOLDERS
    return price < secure * _LEAST_SHARE_OF_SECURE


def _is_in_stock(stock: object) -> bool | None:
    return stock["stockStatus"] is not None if isinstance(stock, dict) and "stockStatus" in stock else None


def _offers(
    page: str,
    row: Mapping[str, Any],
    tier: Tier,
    price: Decimal,
    what: str,
    counts: Iterable[int],
    available: bool | None,
) -> Iterator[RawOffer]:
    form = re.search(r"\b(SXM|PCIe|NVL)$", str(row.get("displayName", "")))
    memory_gb = number(row.get("memoryInGb"), "memoryInGb")
    fraction = _mig_fraction(row["id"], memory_gb)
    for count in (1,) if fraction else counts:
        yield RawOffer(
            instance_type=row.get("instance", row["id"]),
            gpu=row["id"],
            gpu_count=count,
            gpu_fraction=fraction,
            price_per_hour=price * count,
            page=page,
            raw=f"{what} {price} USD/h per GPU",
            memory_gb_per_gpu=memory_gb,
            form=form[1] if form else None,
            region="global",
            tier=tier,
            billing=Billing.PER_SECOND,
            available=available,
        )


def _mig_fraction(gpu: str, memory_gb: float | None) -> float | None:
    """Return which share of a board a MIG slice is, by its memory; None for whole GPUs."""
    if "MIG" not in gpu:
        return None
    for board, board_gb in _MIG_BOARD_GB.items():
        if board in gpu and memory_gb is not None and memory_gb < board_gb:
            return memory_gb / board_gb
    raise ValueError("a slice of a board whose size is not known here")
