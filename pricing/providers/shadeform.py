"""Shadeform: an aggregator that resells other clouds; its list is a witness, never ranked. Needs a key."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar

from pricing.offer import Problem, RawOffer
from pricing.parsing.reading import amount, is_json_with, name_of, needed, number, read_rows, rows_at, whole
from pricing.parsing.witnessing import form_in, key_of
from pricing.provider import Keys, Page, Provider, ProviderClass, Request

_FORMS = {"sxm": "SXM", "pcie": "PCIe", "nvl": "NVL"}


class Shadeform(Provider):
    """Its own margin is not known: it confirms the cloud that it names and says nothing by itself."""

    name = "shadeform"
    title = "Shadeform"
    kind = ProviderClass.WITNESS
    home = "https://platform.shadeform.ai/"
    pages: ClassVar = {"types": "https://api.shadeform.ai/v1/instances/types"}
    requires_key = True
    key_help = "https://platform.shadeform.ai/settings/api"

    def requests(self, keys: Keys) -> Iterable[Request]:
        """Ask for the list with the key."""
        yield Request(page="types", url=self.pages["types"], headers={"X-API-KEY": keys.secret or ""})

    def recognise(self, page: Page) -> str | None:
        """Know the list by its key."""
        return "types" if is_json_with(page, "instance_types") else None

    def parse(self, pages: Mapping[str, Page]) -> Iterable[RawOffer | Problem]:
        """Read each instance type in each of its regions; one listed under two names counts once."""
        rows = rows_at(needed(pages, "types"), "instance_types")
        seen: set[tuple[object, ...]] = set()
        for item in read_rows(rows, _type, page="types", name="shade_instance_type"):
            if isinstance(item, RawOffer):
                key = (item.cloud, item.instance_type, item.gpu_count, item.region)
                if key in seen:
                    continue
                seen.add(key)
            yield item


def _type(row: dict[str, Any]) -> Iterator[RawOffer]:
    configuration = row["configuration"]
    instance = name_of(row["cloud_instance_type"], "cloud_instance_type")
    cents = amount(row["hourly_price"], "hourly_price")
    count = whole(configuration["num_gpus"], "num_gpus")
    if cents is None:
        raise ValueError("no price")
    stated = str(configuration["interconnect"]).rstrip("0123456789")
    # "pcie" stands beside SXM machines too: a name that says it goes first.
    form = form_in(instance) or form_in(row["shade_instance_type"]) or _FORMS.get(stated)
    for place in row["availability"]:
        own = amount(place.get("hourly_price"), "availability.hourly_price")  # a text in dollars
        yield RawOffer(
            cloud=key_of(name_of(row["cloud"], "cloud")),
            instance_type=instance,
            gpu=name_of(configuration["gpu_type"], "gpu_type"),
            gpu_count=count,
            memory_gb_per_gpu=number(configuration["vram_per_gpu_in_gb"], "vram_per_gpu_in_gb"),
            form=form,
            price_per_hour=own or cents / 100,
            page="types",
            raw=f"hourly_price {cents} cents, whole instance" if own is None else f"hourly_price {own} USD",
            region=name_of(place["region"], "region"),
            available=place["available"] is True,
            vcpus=number(configuration["vcpus"], "vcpus"),
            ram_gb=number(configuration["memory_in_gb"], "memory_in_gb"),
        )
