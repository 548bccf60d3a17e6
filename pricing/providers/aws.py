"""AWS: EC2 instances with GPUs, on demand, streamed from the public offer file of each region."""

import csv
import io
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import IO, Any, ClassVar

from pricing.errors import ParseError
from pricing.offer import Billing, Problem, RawOffer
from pricing.parsing.machines import machines
from pricing.parsing.reading import amount, beginning, name_of, read_rows
from pricing.provider import Keys, Page, Provider, ProviderClass, Request

_BASE = "https://pricing.us-east-1.amazonaws.com/offers/v1.0/aws/AmazonEC2/current"
# Half a gigabyte each; more regions cost time and traffic every night.
_REGIONS = ("us-east-1", "eu-central-1")
# The file of us-east-1 had 482 MB as JSON on 2026-09-07. Source: docs/providers.md, "AWS".
_MAX_BYTES = 2 * 2**30
# What a row must say, by column of the CSV and attribute of the JSON. Capacity blocks, unused reservations,
# Windows and licensed software are other rows of the same instance. Source: docs/providers.md, "AWS".
_WANTED = {
    ("TermType", None): {"OnDemand"},
    ("Tenancy", "tenancy"): {"Shared"},
    ("Operating System", "operatingSystem"): {"Linux"},
    ("CapacityStatus", "capacitystatus"): {"Used"},
    ("MarketOption", "marketoption"): {"OnDemand"},
    ("Pre Installed S/W", "preInstalledSw"): {"NA", ""},
}
_FIELDS = {
    "Instance Type": "instanceType",
    "vCPU": "vcpu",
    "Memory": "memory",
    "Region Code": "regionCode",
    "Instance Family": "instanceFamily",
}
_PRICE = ("SKU", "Unit", "PricePerUnit", "Currency")


class Aws(Provider):
    """The GPUs that the file states are wrong or missing for many instances: our own table has them."""

    name = "aws"
    title = "Amazon Web Services"
    kind = ProviderClass.HYPERSCALER
    home = "https://console.aws.amazon.com/ec2/"
    pages: ClassVar = {"index": f"{_BASE}/us-east-1/index.csv"}

    def requests(self, keys: Keys) -> Iterable[Request]:
        """Ask for the file of each region."""
        del keys
        for region in _REGIONS:
            yield Request(
                page=region,
                url=f"{_BASE}/{region}/index.csv",
                is_optional=region != _REGIONS[0],
                max_bytes=_MAX_BYTES,
                sieve=_possible_lines,
                deadline_s=900.0,
            )

    def recognise(self, page: Page) -> str | None:
        """Know a file, CSV or JSON, by its beginning."""
        head = beginning(page, 4096)
        return "index" if b'"AmazonEC2"' in head and re.search(rb'"formatVersion"', head, re.I) else None

    def parse(self, pages: Mapping[str, Page]) -> Iterable[RawOffer | Problem]:
        """Read the files one after the other, keeping only rows of GPU instances."""
        if not pages:
            raise ParseError("aws: no offer file is there")
        for page in pages.values():
            with _opened(page) as file:
                start = file.read(1)
                file.seek(0)
                rows = _json_rows(file, page) if start == b"{" else _csv_rows(file, page)
                found: dict[str, RawOffer] = {}
                for item in read_rows(rows, _reader(page.key), page=page.key, name="Instance Type"):
                    if isinstance(item, Problem):
                        yield item
                        continue
                    known = found.setdefault(item.instance_type, item)
                    if known.price_per_hour != item.price_per_hour:
                        why = f"listed at {known.price_per_hour} and at {item.price_per_hour}"
                        raise ParseError(f"{page.key}: {item.instance_type} is {why}", page=page.key)
                if not found:
                    raise ParseError(f"{page.key}: no GPU instance in the file: it changed", page=page.key)
                yield from found.values()


def _possible_lines(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """
    Let through the head, every line that can be a wanted price, and the last line, which shows a cut.

    Of half a gigabyte three megabytes are left: nothing of it is ever on disk.
    """
    rest, place = b"", None  # of the term's type among the cells, once the header has come
    for piece in pieces:
        lines = (rest + piece).split(b"\n")
        rest = lines.pop()
        found = []
        while place is None and lines:
            found.append(lines.pop(0))
            if found[-1].startswith(b'"SKU"'):
                cells = found[-1].strip(b'\r"').split(b'","')
                place = cells.index(b"TermType") if b"TermType" in cells else 0
        found += [line for line in lines if _is_possible(line, place or 0)]
        if found:
            yield b"\n".join(found) + b"\n"
    yield rest


def _is_possible(line: bytes, place: int) -> bool:
    """Whether a line holds the words of a wanted price; nine in ten others are reserved terms of the same."""
    is_one = b'"Linux"' in line and b'"Shared"' in line and b'"Used"' in line
    return is_one and b"OnDemand" in line.split(b'","', place + 1)[place]


@contextmanager
def _opened(page: Page) -> Iterator[IO[bytes]]:
    file = io.BytesIO(page.body) if page.file is None else page.file.open("rb")
    try:
        yield file
    finally:
        file.close()


def _is_gpu_family(instance: str) -> bool:
    """Whether the name is of a family with GPUs: p5, g6e, gr6f; not of Trainium or of CPUs."""
    return re.match(r"(?:p\d|g\d|gr\d)", instance) is not None


def _csv_rows(file: IO[bytes], page: Page) -> Iterator[Mapping[str, str]]:
    """Yield the wanted rows; a line that cannot be one is skipped before it is taken apart."""
    lines = io.TextIOWrapper(file, encoding="utf-8-sig", newline="")
    last = ""

    def plausible() -> Iterator[str]:
        nonlocal last
        for line in lines:
            last = line
            if '"OnDemand"' in line and '"Linux"' in line and '"Shared"' in line and '"Used"' in line:
                yield line

    try:
        header = next((line for line in lines if line.startswith('"SKU"')), "")
        columns = next(csv.reader([header]), [])
        needed = {*_PRICE, *_FIELDS, *(column for column, _ in _WANTED)}
        if not needed <= set(columns):
            raise ParseError(f"{page.key}: no columns {sorted(needed - set(columns))}: the file changed")
        place = {column: columns.index(column) for column in needed}
        for cells in csv.reader(plausible(), strict=True):
            if len(cells) != len(columns):
                raise ParseError(f"{page.key}: {len(cells)} cells under {len(columns)} columns: cut off?")
            row = {column: cells[index] for column, index in place.items()}
            if all(row[column] in wanted for (column, _), wanted in _WANTED.items()):
                yield row
        if len(next(csv.reader([last or header]))) != len(columns):
            raise ParseError(f"{page.key}: the last line is cut off", page=page.key)
    except (csv.Error, UnicodeDecodeError) as error:
        raise ParseError(f"{page.key}: not a CSV file ({error})", page=page.key) from error
    finally:
        lines.close()


def _json_rows(file: IO[bytes], page: Page) -> Iterator[Mapping[str, str]]:
    """Yield the same from the JSON form: first the products, then the on-demand terms of those."""
    import ijson  # type: ignore[import-untyped]  # for saved answers only: a refresh asks for the CSV

    try:
        products: dict[str, Mapping[str, Any]] = {}
        for sku, product in ijson.kvitems(file, "products", use_float=False):
            attributes = product.get("attributes", {})
            if all(attributes.get(key, "") in wanted for (_, key), wanted in _WANTED.items() if key):
                products[sku] = attributes
        file.seek(0)
        missing = set(products)
        for sku, terms in ijson.kvitems(file, "terms.OnDemand", use_float=False):
            if sku not in products:
                continue
            missing.discard(sku)
            for term in terms.values():
                for price in term["priceDimensions"].values():
                    fields = {column: str(products[sku].get(key, "")) for column, key in _FIELDS.items()}
                    for currency, per_unit in price["pricePerUnit"].items():
                        rest = {"SKU": sku, "Unit": price["unit"], "PricePerUnit": per_unit}
                        yield {**fields, **rest, "Currency": currency}
            if not missing:
                break  # the reserved terms behind are most of the file; the first pass saw its end
    except (ijson.JSONError, KeyError, AttributeError) as error:
        raise ParseError(f"{page.key}: not the offer file that is known ({error})", page=page.key) from error


def _reader(page: str) -> Any:
    def read(row: Mapping[str, str]) -> Iterator[RawOffer | Problem]:
        instance = row["Instance Type"]
        machine = machines("aws").get(instance)
        if machine is None:
            if _is_gpu_family(instance) and row["Instance Family"] == "GPU instance":
                yield Problem(what=instance, why="an instance that is not in pricing/data/machines.toml")
            return
        if row["Currency"] != "USD":  # the Chinese regions are in CNY
            return
        price = amount(row["PricePerUnit"], "PricePerUnit")
        if row["Unit"] != "Hrs" or price is None:
            raise ValueError(f"{row['PricePerUnit']} per {row['Unit']}: not a price of an hour")
        yield RawOffer(
            instance_type=instance,
            gpu=machine.gpu,
            canonical_gpu=machine.gpu,
            gpu_count=machine.gpu_count,
            gpu_fraction=machine.gpu_fraction,
            price_per_hour=price,
            page=page,
            raw=f"{row['PricePerUnit']} USD per Hrs, SKU {row['SKU']}",
            region=name_of(row["Region Code"], "Region Code"),
            billing=Billing.PER_SECOND,
            vcpus=float(row["vCPU"]),
            ram_gb=float(row["Memory"].removesuffix(" GiB").replace(",", "")),
        )

    return read
