"""SkyPilot: its catalogue of other clouds' prices; a witness, never ranked."""

import csv
import io
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from functools import partial
from typing import ClassVar

from pricing.errors import ParseError
from pricing.offer import Problem, RawOffer, Tier
from pricing.parsing.reading import amount, beginning, name_of, read_rows
from pricing.parsing.witnessing import cloud_of, form_in, key_of, known_machine
from pricing.provider import Keys, Page, Provider, ProviderClass, Request

# Only the newest schema directory is refreshed: v6 still had the prices of spring 2025 in March 2026.
# Files that are edited by hand (RunPod, Cudo, DigitalOcean, Paperspace) are left out.
# Source: docs/providers.md, "Witnesses".
_BASE = "https://raw.githubusercontent.com/skypilot-org/skypilot-catalog/master/catalogs/v8"
_CLOUDS = ("aws", "azure", "gcp", "lambda", "oci", "nebius")
_COLUMNS = frozenset(
    {"InstanceType", "AcceleratorName", "AcceleratorCount", "Price", "SpotPrice", "Region", "GpuInfo"}
)
_MIB = re.compile(r"'SizeInMiB': (\d+)")
# Some rows hold the system's memory in the GPU's place (98304 MiB for an L40S); cards have up to 288 GB, and
# one that contradicts its name is refused later.
_MAX_MIB = 300 * 1024


class SkyPilot(Provider):
    """Rows repeat for each availability zone, some with two names of one GPU: they count once."""

    name = "skypilot"
    title = "SkyPilot catalogue"
    kind = ProviderClass.WITNESS
    home = "https://github.com/skypilot-org/skypilot-catalog"
    pages: ClassVar = {"vms": f"{_BASE}/aws/vms.csv"}

    def requests(self, keys: Keys) -> Iterable[Request]:
        """Ask for the catalogue of each cloud."""
        del keys
        for cloud in _CLOUDS:
            url = f"{_BASE}/{cloud}/vms.csv"
            yield Request(page=f"{cloud}/vms", url=url, is_optional=cloud != _CLOUDS[0])

    def recognise(self, page: Page) -> str | None:
        """Know a catalogue by its header."""
        return "vms" if beginning(page, 13) == b"InstanceType," else None

    def parse(self, pages: Mapping[str, Page]) -> Iterable[RawOffer | Problem]:
        """Read every catalogue; its cloud is that of its key, or the form of its instances."""
        if not pages:
            raise ParseError("skypilot: no catalogue is there")
        for page in pages.values():
            reader = csv.DictReader(io.StringIO(page.text()), strict=True)
            try:
                rows = list(reader)
            except csv.Error as error:
                raise ParseError(f"{page.key}: not a CSV file ({error})", page=page.key) from error
            if not set(reader.fieldnames or ()) >= _COLUMNS or not rows or None in rows[-1].values():
                raise ParseError(
                    f"{page.key}: not the columns {sorted(_COLUMNS)}, empty or cut off", page=page.key
                )
            rows = [row for row in rows if row["InstanceType"] and row["AcceleratorName"]]
            named = page.key.partition("/")[0] if "/" in page.key else None
            cloud = named or cloud_of([row["InstanceType"] for row in rows])
            if cloud is None:
                raise ParseError(f"{page.key}: whose prices? name the page CLOUD/vms", page=page.key)
            yield from _once(
                read_rows(rows, partial(_row, page.key, key_of(cloud)), page=page.key, name="InstanceType")
            )


def _once(items: Iterable[RawOffer | Problem]) -> Iterator[RawOffer | Problem]:
    """Yield each price once; one that differs between zones of a region is no price of the region."""
    found: dict[tuple[object, ...], dict[Decimal, RawOffer]] = defaultdict(dict)
    for item in items:
        if isinstance(item, Problem):
            yield item
        else:
            key = (item.instance_type, item.gpu_count, item.gpu_fraction, item.region, item.tier)
            found[key].setdefault(item.price_per_hour, item)
    for offers in found.values():
        first = next(iter(offers.values()))
        if len(offers) == 1:
            yield first
        elif first.tier is not Tier.SPOT:
            why = f"{len(offers)} prices in {first.region}: {', '.join(map(str, offers))}"
            yield Problem(what=first.instance_type, why=why)


def _row(page: str, cloud: str, row: Mapping[str, str]) -> Iterator[RawOffer]:
    instance = name_of(row["InstanceType"], "InstanceType")
    machine = known_machine(cloud, instance)
    stated = float(row["AcceleratorCount"])
    count, fraction = (int(stated), None) if stated >= 1 else (1, stated)
    if machine is not None and (machine.gpu_fraction or machine.gpu_count) != stated:
        raise ValueError(f"says {stated:g} GPUs; {instance} has {machine.gpu_fraction or machine.gpu_count}")
    if stated <= 0 or (stated > 1 and stated != count):
        raise ValueError(f"AcceleratorCount is {row['AcceleratorCount']!r}")
    size = _MIB.search(row["GpuInfo"])
    memory = int(size[1]) / 1024 if size and int(size[1]) < _MAX_MIB else None
    for tier, field in ((Tier.ON_DEMAND, "Price"), (Tier.SPOT, "SpotPrice")):
        price = amount(row[field], field)
        if price is None:
            continue
        yield RawOffer(
            cloud=cloud,
            instance_type=instance,
            gpu=name_of(row["AcceleratorName"], "AcceleratorName"),
            canonical_gpu=machine.gpu if machine else None,
            gpu_count=count,
            gpu_fraction=fraction,
            memory_gb_per_gpu=memory if machine is None else None,
            form=form_in(instance) if machine is None else None,
            price_per_hour=price,
            page=page,
            raw=f"{field} {row[field]} USD/h",
            region=row["Region"] or None,
            tier=tier,
        )
