"""Oracle Cloud: its price list per GPU, multiplied up to the machines that hold the GPU."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar

from pricing.offer import Problem, RawOffer
from pricing.parsing.reading import amount, is_json_with, name_of, needed, read_rows, rows_at
from pricing.provider import Page, Provider, ProviderClass

# Part number: a word that its name must hold (names as E3 or V2 say nothing by themselves), the device, and
# the shapes with their GPUs. Source: docs/providers.md, "Oracle"; planner/data/gpus.toml.
_Part = tuple[str, str, Mapping[str, int]]
_PARTS: Mapping[str, _Part] = {
    "B95909": ("A10", "A10", {"VM.GPU.A10.1": 1, "VM.GPU.A10.2": 2, "BM.GPU.A10.4": 4}),
    "B92740": ("E3", "A100 40GB SXM", {"BM.GPU4.8": 8}),
    "B95907": ("A100", "A100 80GB SXM", {"BM.GPU.A100-v2.8": 8}),
    "B98415": ("H100", "H100 SXM", {"BM.GPU.H100.8": 8}),
    "B110519": ("H200", "H200 SXM", {"BM.GPU.H200.8": 8}),
    "B110978": ("B200", "B200", {"BM.GPU.B200.8": 8}),
    "B112237": ("B300", "B300", {"BM.GPU.B300.8": 8}),
    "B110979": ("GB200", "GB200", {"BM.GPU.GB200.4": 4}),
    "B112140": ("GB300", "GB300", {"BM.GPU.GB300.4": 4}),
    "B109479": ("L40S", "L40S", {"BM.GPU.L40S.4": 4}),
    "B109485": ("MI300X", "Instinct MI300X", {"BM.GPU.MI300X.8": 8}),
    "B111758": ("MI355X", "Instinct MI355X", {"BM.GPU.MI355X.8": 8}),
    "B112613": ("RTX", "RTX PRO 6000 Blackwell Server", {"BM.GPU.RTXPRO.8": 8}),
    "B89734": ("V2", "V100 16GB SXM2", {"VM.GPU3.1": 1, "VM.GPU3.2": 2, "VM.GPU3.4": 4, "BM.GPU3.8": 8}),
    "B88517": ("X7", "P100 16GB", {"BM.GPU2.2": 2}),
    "B88518": ("X7", "P100 16GB", {"VM.GPU2.1": 1}),
}


class Oci(Provider):
    """One price for all regions. Licences, VMware and edge devices look alike: three fields are pinned."""

    name = "oci"
    title = "Oracle Cloud"
    kind = ProviderClass.HYPERSCALER
    home = "https://cloud.oracle.com/compute/instances"
    pages: ClassVar = {
        "products": "https://apexapps.oracle.com/pls/apex/cetools/api/v1/products/?currencyCode=USD"
    }

    def recognise(self, page: Page) -> str | None:
        """Know the list by its items and its date."""
        return "products" if is_json_with(page, "items", "lastUpdated") else None

    def parse(self, pages: Mapping[str, Page]) -> Iterable[RawOffer | Problem]:
        """Read the parts that are sold per GPU and hour."""
        rows = rows_at(needed(pages, "products"), "items")
        yield from read_rows(rows, _part, page="products", name="partNumber")


def _part(row: dict[str, Any]) -> Iterator[RawOffer | Problem]:
    label = " ".join(name_of(row["displayName"], "displayName").split())
    if row["metricName"] != "GPU Per Hour" or row["serviceCategory"] != "Compute - GPU":
        return
    if "AI Enterprise" in label:  # a licence for a GPU, not the GPU
        return
    part = name_of(row["partNumber"], "partNumber")
    if part not in _PARTS:
        yield Problem(
            what=part, why=f"{label!r}: a part that is not in the table of this module", raw=str(row)
        )
        return
    word, canonical, shapes = _PARTS[part]
    if word not in label.replace("-", " ").split():
        raise ValueError(f"{label!r} does not speak of {word}")
    prices = [
        price["value"]
        for localization in row["currencyCodeLocalizations"]
        if localization["currencyCode"] == "USD"
        for price in localization["prices"]
        if price["model"] == "PAY_AS_YOU_GO"
    ]
    if len(prices) != 1 or (per_gpu := amount(prices[0], "value")) is None:
        raise ValueError(f"{len(prices)} prices in USD, pay as you go: {prices}")
    for shape, count in shapes.items():
        yield RawOffer(
            instance_type=shape,
            gpu=label,
            canonical_gpu=canonical,
            gpu_count=count,
            price_per_hour=per_gpu * count,
            page="products",
            raw=f"{part} {label}: {per_gpu} USD, GPU Per Hour",
            region="global",
        )
