"""gpuhunt: the catalogue of dstack, which lists prices of other clouds; a witness, never ranked."""

import csv
import io
import re
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import ClassVar

from pricing.errors import ParseError
from pricing.offer import Problem, RawOffer, Tier
from pricing.parsing.reading import amount, beginning, name_of, read_rows, whole
from pricing.parsing.witnessing import cloud_of, form_in, key_of, known_machine
from pricing.provider import Keys, Page, Provider, ProviderClass, Request

_BASE = "https://dstack-gpu-pricing.s3.eu-west-1.amazonaws.com/v3"
# Clouds whose rows mean what ours mean. Left out: those with known errors (slices of Vultr as whole GPUs,
# total memory of DigitalOcean) and RunPod, whose secure and community cloud it does not tell apart.
# Source: docs/providers.md, "Witnesses".
_CLOUDS = ("aws", "azure", "gcp", "lambda", "oci", "nebius", "verda")
_COLUMNS = frozenset({"instance_name", "location", "price", "gpu_count", "gpu_name", "gpu_memory", "spot"})
# A catalogue has some megabytes; what inflates to more is not one.
_MAX_BYTES = 64 * 2**20


class GpuHunt(Provider):
    """Its offers exist only where capacity was at the time; what is missing there contradicts nothing."""

    name = "gpuhunt"
    title = "gpuhunt catalogue (dstack)"
    kind = ProviderClass.WITNESS
    home = "https://github.com/dstackai/gpuhunt"
    pages: ClassVar = {"catalog": f"{_BASE}/aws/version"}

    def requests(self, keys: Keys) -> Iterable[Request]:
        """Ask which version of each cloud's catalogue is current."""
        del keys
        for cloud in _CLOUDS:
            url = f"{_BASE}/{cloud}/version"
            yield Request(page=f"{cloud}/version", url=url, is_optional=cloud != _CLOUDS[0])

    def follow(self, page: Page, keys: Keys) -> Iterable[Request]:
        """Ask for that catalogue."""
        del keys
        cloud, _, kind = page.key.partition("/")
        if kind == "version":
            version = page.text().strip()
            if not re.fullmatch(r"[\w.-]{1,40}", version):
                raise ParseError(f"{page.key}: {version[:40]!r} is not a version", page=page.key)
            url = f"{_BASE}/{cloud}/{version}/catalog.zip"
            yield Request(page=f"{cloud}/catalog", url=url, is_optional=True)

    def recognise(self, page: Page) -> str | None:
        """Know a catalogue, packed or not, by its beginning."""
        return "catalog" if beginning(page, 14).startswith((b"PK\x03\x04", b"instance_name,")) else None

    def parse(self, pages: Mapping[str, Page]) -> Iterable[RawOffer | Problem]:
        """Read every catalogue; its cloud is that of its key, its file, or the form of its instances."""
        catalogs = [page for key, page in pages.items() if key.partition("#")[0].endswith("catalog")]
        if not catalogs:
            raise ParseError(f"gpuhunt: no catalogue is there, only {sorted(pages) or 'nothing'}")
        for page in catalogs:
            cloud, text = _unpacked(page)
            reader = csv.DictReader(io.StringIO(text), strict=True)
            try:
                rows = list(reader)
            except csv.Error as error:
                raise ParseError(f"{page.key}: not a CSV file ({error})", page=page.key) from error
            if not set(reader.fieldnames or ()) >= _COLUMNS or not rows or None in rows[-1].values():
                raise ParseError(
                    f"{page.key}: not the columns {sorted(_COLUMNS)}, empty or cut off", page=page.key
                )
            cloud = cloud or cloud_of([row["instance_name"] for row in rows])
            if cloud is None:
                raise ParseError(f"{page.key}: whose prices? name the page CLOUD/catalog", page=page.key)
            yield from read_rows(
                rows, partial(_row, page.key, key_of(cloud)), page=page.key, name="instance_name"
            )


def _unpacked(page: Page) -> tuple[str | None, str]:
    """Return the cloud, where key or file say it, and the catalogue as text."""
    named = page.key.partition("/")[0] if "/" in page.key else None
    data = page.body if page.file is None else page.file.read_bytes()
    if data[:4] != b"PK\x03\x04":
        return named, page.text()
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = [info for info in archive.infolist() if info.filename.endswith(".csv")]
            if len(members) != 1 or members[0].file_size > _MAX_BYTES:
                raise ParseError(f"{page.key}: {len(members)} catalogues, or too large a one", page=page.key)
            text = archive.read(members[0]).decode()
    except (zipfile.BadZipFile, UnicodeDecodeError, OSError) as error:
        raise ParseError(f"{page.key}: not a packed catalogue ({error})", page=page.key) from error
    return named or members[0].filename.rpartition("/")[2].removesuffix(".csv"), text


def _row(page: str, cloud: str, row: Mapping[str, str]) -> Iterator[RawOffer]:
    if row["gpu_count"] in {"", "0"}:  # a CPU instance
        return
    instance = name_of(row["instance_name"], "instance_name")
    price = amount(row["price"], "price")
    machine = known_machine(cloud, instance)
    if price is None or row["spot"] not in {"True", "False"}:
        raise ValueError(f"price {row['price']!r}, spot {row['spot']!r}")
    count = whole(row["gpu_count"], "gpu_count")
    if machine is not None and machine.gpu_count != count:
        raise ValueError(f"says {count} GPUs; {instance} has {machine.gpu_count}")
    yield RawOffer(
        cloud=cloud,
        instance_type=instance,
        gpu=name_of(row["gpu_name"], "gpu_name"),
        canonical_gpu=machine.gpu if machine else None,
        gpu_count=count,
        gpu_fraction=machine.gpu_fraction if machine else None,
        memory_gb_per_gpu=float(row["gpu_memory"]) if row["gpu_memory"] and machine is None else None,
        form=form_in(instance) if machine is None else None,
        price_per_hour=price,
        page=page,
        raw=f"{row['price']} USD/h",
        region=row["location"] or None,
        tier=Tier.SPOT if row["spot"] == "True" else Tier.ON_DEMAND,
    )
