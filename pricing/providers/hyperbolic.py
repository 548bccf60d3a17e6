"""Hyperbolic: whole rental options in cents, from the list behind its GPU page."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar

from pricing.errors import ParseError
from pricing.offer import Problem, RawOffer
from pricing.parsing.reading import amount, is_json_rows, name_of, needed, number, read_rows, rows_at, whole
from pricing.provider import Page, Provider, ProviderClass

_PRICES = frozenset({"costPerHourCents", "providerCostPerHourCents"})  # the second is what a supplier gets
_FORMS = {"sxm4": "SXM", "sxm5": "SXM", "sxm6": "SXM", "pcie": "PCIe"}


class Hyperbolic(Provider):
    """The price is that of the option with all its GPUs; options come and go with the stock."""

    name = "hyperbolic"
    title = "Hyperbolic"
    kind = ProviderClass.MARKETPLACE
    home = "https://app.hyperbolic.ai/"
    pages: ClassVar = {"options": "https://api.hyperbolic.ai/v2/alpha/on-demand/rental-options"}

    def recognise(self, page: Page) -> str | None:
        """Know the list by its price field."""
        return "options" if is_json_rows(page, "costPerHourCents") else None

    def parse(self, pages: Mapping[str, Page]) -> Iterable[RawOffer | Problem]:
        """Read each option; those of one machine, place and network are one offer, the cheapest."""
        rows = rows_at(needed(pages, "options"))
        unknown = {
            key for row in rows if isinstance(row, dict) for key in row if key.endswith("PerHourCents")
        } - _PRICES
        if unknown:
            raise ParseError(f"options: prices {sorted(unknown)} are not known here: the answer changed")
        best: dict[tuple[str, int, str | None], RawOffer] = {}
        for item in read_rows(rows, _option, page="options", name="gpuType"):
            if isinstance(item, Problem):
                yield item
                continue
            key = (item.instance_type, item.gpu_count, item.region)
            if key not in best or item.price_per_hour < best[key].price_per_hour:
                best[key] = item
        yield from best.values()


def _option(row: dict[str, Any]) -> Iterator[RawOffer | Problem]:
    gpu, form = name_of(row["gpuType"], "gpuType"), name_of(row["gpuFormFactor"], "gpuFormFactor")
    label = f"{gpu}-{form} {name_of(row['machineType'], 'machineType')}"
    network = [row.get("connectionType"), row.get("ethernetVariant")]
    label = " ".join([label, *(str(word) for word in network if word and word != "normal")])
    if row["enabled"] is not True:
        yield Problem(what=label, why="not enabled", raw=str(row["costPerHourCents"]))
        return
    cents = amount(row["costPerHourCents"], "costPerHourCents")
    count = whole(row["gpuCount"], "gpuCount")
    nodes = row["nodes"]
    if cents is None or sum(whole(node["gpuCount"], "nodes.gpuCount") for node in nodes) != count:
        raise ValueError(f"{cents} cents, {count} GPUs, nodes with {[node['gpuCount'] for node in nodes]}")
    if len(nodes) != 1:
        yield Problem(what=label, why=f"a cluster of {len(nodes)} machines", raw=f"{cents} cents per hour")
        return
    free = row.get("totalAvailable")
    yield RawOffer(
        instance_type=label,
        gpu=gpu,
        gpu_count=count,
        form=_FORMS[form],
        price_per_hour=cents / 100,
        page="options",
        raw=f"costPerHourCents {cents}, whole option",
        region=name_of(row["region"], "region"),
        available=None if free is None else free > 0,
        vcpus=number(nodes[0]["vcpuCount"], "vcpuCount"),
        ram_gb=number(nodes[0]["ramGb"], "ramGb"),
    )
