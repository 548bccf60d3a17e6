"""Voltage Park: whole machines, priced per GPU and by network, from the list behind its console."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar

from pricing.errors import ParseError
from pricing.offer import Problem, RawOffer
from pricing.parsing.reading import amount, is_json_with, name_of, needed, number, read_rows, rows_at, whole
from pricing.provider import Page, Provider, ProviderClass

_NETWORKS = ("ethernet", "infiniband")
_PRICES = frozenset(f"gpu_price_{network}" for network in _NETWORKS)


class VoltagePark(Provider):
    """The prices are texts for one GPU; what is rented is the machine. The counts beside them are stock."""

    name = "voltagepark"
    title = "Voltage Park"
    kind = ProviderClass.NEOCLOUD
    home = "https://dashboard.voltagepark.com/"
    pages: ClassVar = {"locations": "https://cloud-api.voltagepark.com/api/v1/bare-metal/locations"}

    def recognise(self, page: Page) -> str | None:
        """Know the list by its count."""
        return "locations" if is_json_with(page, "results", "total_result_count") else None

    def parse(self, pages: Mapping[str, Page]) -> Iterable[RawOffer | Problem]:
        """Read each location, if the answer is whole."""
        page = needed(pages, "locations")
        rows = rows_at(page, "results")
        total = page.json().get("total_result_count")
        if page.json().get("has_next") or total != len(rows):
            raise ParseError(f"locations: {len(rows)} of {total}: pages are missing", page=page.key)
        unknown = {
            key for row in rows if isinstance(row, dict) for key in row if "gpu_price" in key
        } - _PRICES
        if unknown:
            raise ParseError(f"locations: prices {sorted(unknown)} are not known here: the answer changed")
        yield from read_rows(rows, _location, page="locations", name="id")


def _location(row: dict[str, Any]) -> Iterator[RawOffer]:
    node = row["specs_per_node"]
    count = whole(node["gpu_count"], "gpu_count")
    model = name_of(node["gpu_model"], "gpu_model")
    for network in _NETWORKS:
        price = amount(row[f"gpu_price_{network}"], f"gpu_price_{network}")
        if price is None:
            continue
        yield RawOffer(
            instance_type=f"{model} {network} at {name_of(row['id'], 'id')[:8]}",
            gpu=model,
            gpu_count=count,
            price_per_hour=price * count,
            page="locations",
            raw=f"gpu_price_{network} {price} USD/h per GPU",
            available=row[f"gpu_count_{network}"] >= count,
            vcpus=number(node["cpu_count"], "cpu_count"),
            ram_gb=number(node["ram_gb"], "ram_gb"),
        )
