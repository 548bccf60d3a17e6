"""
Build `pricing/data/snapshot.csv.gz` from the collected price table and its GPU map.

    python tools/build_snapshot.py FOLDER [OUT]

FOLDER holds `offers_snapshot.csv` and `snapshot_gpu_map.csv`. The result has one row for each row of the
table in our form: canonical GPU names, slices with count 1 and a fraction, our provider keys, exact decimals.
A row that is not what its source says, or is too far from the market of all rows, has its `doubt`: it is kept
as history and never ranked.
"""

import csv
import gzip
import io
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from planner.rates import Tier
from pricing.provider import ProviderClass
from pricing.registry import kinds
from pricing.storage.memory import Origin, remembered
from pricing.storage.snapshot import parse
from pricing.verification.market import Market
from pricing.verify import why_implausible

COLUMNS = (
    "provider",
    "witness",
    "as_of",
    "instance_type",
    "gpu",
    "gpu_raw",
    "gpu_count",
    "gpu_fraction",
    "memory_gb_per_gpu",
    "form",
    "region",
    "tier",
    "usd_per_hour",
    "billing",
    "vcpus",
    "ram_gb",
    "gpu_only",
    "source",
    "note",
    "doubt",
)
PROVIDERS = {"vast.ai": "vastai"}
BILLING = {"per_hour": "hourly"}
# A catalogue of other clouds' prices; its instance types are written "cloud:type".
WITNESSES = {"shadeform"}
CLOUDS = {"lambdalabs": "lambda"}
# "[gpu-only]" and "[gpu-only, serverless]": CPU, memory and disk are not in the price.
GPU_ONLY = re.compile(r" *\[gpu-only\b.*?\]")
# The table that the sizing page showed on 2026-11-04, as told with the task of this project.
SIZING_PAGE = (
    ("runpod", "2x B200", "B200", "2", "180", "SXM", "community", "11.96", "per_second", ""),
    ("vastai", "2x B200", "B200", "2", "180", "SXM", "on_demand", "15.004", "per_second", "verified host"),
    ("vultr", "8x A100 80GB SXM", "A100 80GB SXM", "8", "80", "SXM", "on_demand", "19.176", "hourly", ""),
    (
        "digitalocean",
        "8x MI300X",
        "Instinct MI300X",
        "8",
        "192",
        "OAM",
        "on_demand",
        "20.72",
        "per_second",
        "",
    ),
)

# Vultr's marketing page states "from" prices of its hosts of eight: a third below the on-demand price of its
# own interface (8x H100 15.92 beside 23.92), for a commitment whose length the table does not tell.
# Source: tardellirs/gpu-pricing, pricing.md, "bundle 8x" and "starting at"; Vultr's plans-metal.
COMMITTED = {"HGX H100 8x", "HGX B200 8x", "MI300X 8x", "MI325X 8x", "MI355X 8x"}
COMMITMENT_UNKNOWN = "a 'from' price of the marketing page, for a commitment of unknown length"

Row = Mapping[str, str]


def number(text: str) -> str:
    """Drop the decimals of a whole number: 80.0 -> 80."""
    return text[:-2] if text.endswith(".0") else text


def convert(row: Row, gpu_map: Mapping[tuple[str, str, str], Row]) -> Row:
    """Return one row of the table in our form."""
    device = gpu_map[row["gpu_model"], row["gpu_memory_gb"], row["interconnect_or_form"]]
    count = float(row["gpu_count"])
    gpu, fraction = device["canonical"], ""
    if count < 1:
        fraction, count = row["gpu_count"], 1.0
        # The map says so: half an 80 GB card has the memory of the 40 GB card and is not one.
        if row["gpu_model"] == "A100":
            gpu = "A100 80GB PCIe"
    elif count % 1:
        raise ValueError(f"{row['instance_type']}: {row['gpu_count']} GPUs are neither whole nor one slice")
    provider, instance_type, witness = row["provider"], row["instance_type"], ""
    is_committed = provider == "vultr" and instance_type in COMMITTED
    if provider in WITNESSES:
        witness = provider
        provider, instance_type = instance_type.split(":", 1)
    return {
        "provider": PROVIDERS.get(provider, CLOUDS.get(provider, provider)),
        "witness": witness,
        "as_of": row["as_of_date"],
        "instance_type": GPU_ONLY.sub("", instance_type),
        "gpu": gpu,
        "gpu_raw": row["gpu_model"],
        "gpu_count": str(int(count)),
        "gpu_fraction": fraction,
        "memory_gb_per_gpu": number(row["gpu_memory_gb"]),
        "form": row["interconnect_or_form"],
        "region": row["region"],
        "tier": str(Tier.RESERVED_OTHER) if is_committed else row["tier"],
        "usd_per_hour": row["price_usd_per_hour"],
        "billing": BILLING.get(row["billing_granularity"], row["billing_granularity"]),
        "vcpus": number(row["vcpus"]),
        "ram_gb": number(row["ram_gb"]),
        "gpu_only": "1" if GPU_ONLY.search(row["instance_type"]) else "",
        "source": row["source_url_or_repo_path"],
        "note": "" if gpu else re.split(r"; |\. ", device["note"])[0],  # the reason, without the guess
        "doubt": COMMITMENT_UNKNOWN if is_committed else "",
    }


def sizing_page() -> Iterator[Row]:
    """Yield the four rows of the sizing page."""
    for provider, instance_type, gpu, count, memory, form, tier, usd, billing, note in SIZING_PAGE:
        row = dict.fromkeys(COLUMNS, "")
        row.update(provider=provider, as_of="2026-11-04", instance_type=instance_type, gpu=gpu, gpu_raw=gpu)
        row.update(gpu_count=count, memory_gb_per_gpu=memory, form=form, tier=tier, usd_per_hour=usd)
        row.update(billing=billing, source="sizing page of 2026-11-04", note=note)
        yield row


def doubts(rows: Sequence[Row]) -> list[str]:
    """
    Return for each row why it cannot be leant on, blank where it can.

    What is found too far from the market leaves the market too, until nothing further is found.
    """
    found = [row["doubt"] for row in rows]
    classes: Mapping[str, ProviderClass] = kinds()
    while True:
        offers = [parse(dict(row, doubt=doubt)) for row, doubt in zip(rows, found, strict=True)]
        market = Market([remembered(offer, Origin.SNAPSHOT) for offer in offers], classes)
        new = {
            place: why
            for place, offer in enumerate(offers)
            if not found[place] and offer.is_rankable and (why := why_implausible(offer, market, classes))
        }
        if not new:
            return found
        for place, why in new.items():
            found[place] = why


def build(folder: Path) -> bytes:
    """Return the table in our form, as CSV."""
    with (folder / "snapshot_gpu_map.csv").open(encoding="utf-8", newline="") as file:
        gpu_map = {(row["gpu_model"], row["gpu_memory_gb"], row["form"]): row for row in csv.DictReader(file)}
    with (folder / "offers_snapshot.csv").open(encoding="utf-8", newline="") as file:
        rows = [*(convert(row, gpu_map) for row in csv.DictReader(file)), *sizing_page()]
    out = io.StringIO(newline="")
    writer = csv.DictWriter(out, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(dict(row, doubt=doubt) for row, doubt in zip(rows, doubts(rows), strict=True))
    return out.getvalue().encode()


def main() -> None:
    """Write the file; the same input gives the same bytes."""
    default = Path(__file__).resolve().parent.parent / "pricing" / "data" / "snapshot.csv.gz"
    out = Path(sys.argv[2]) if len(sys.argv) > 2 else default
    out.write_bytes(gzip.compress(build(Path(sys.argv[1])), compresslevel=9, mtime=0))


if __name__ == "__main__":
    main()
