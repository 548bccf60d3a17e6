"""Names of providers: each decides about money, so none is guessed."""

import csv
import json
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from planner.catalogues.currencies import FxRate, all_currencies, usd_per_unit
from planner.catalogues.gpus import DeviceClass, all_gpus, gpu_aliases
from pricing.errors import NormaliseError
from pricing.normalise import normalise
from pricing.offer import Offer, RawOffer, Tier, Verdict
from pricing.parsing.naming import identify
from pricing.provider import Page
from pricing.registry import find_provider
from pricing.running.gather import read
from pricing.storage.columns import to_micros

SEEN = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
URL = "https://acme.example/pricing"
PAYLOADS = Path(__file__).parent / "payloads"


def raw(**changes: Any) -> RawOffer:
    given: dict[str, Any] = {
        "instance_type": "x1",
        "gpu": "H100 SXM",
        "gpu_count": 1,
        "price_per_hour": Decimal("2.69"),
        "page": "pricing",
        "raw": "$2.69",
    }
    return RawOffer(**(given | changes))


def offer(**changes: Any) -> Offer:
    return normalise(raw(**changes), provider="acme", source_url=URL, seen_at=SEEN)


# All strings of docs/providers.md, "Names", and the spellings in the payloads: name, memory, form -> device.
NAMES: list[tuple[str, float | None, str | None, str | None]] = [
    ("NVIDIA H100 80GB HBM3", None, None, "H100 SXM"),
    ("NVIDIA H100 80GB HBM3", 80, None, "H100 SXM"),
    ("H100 SXM", None, None, "H100 SXM"),
    ("H100 SXM", 81559 / 1024, None, "H100 SXM"),
    ("H100 SXM5 80GB", None, None, "H100 SXM"),
    ("HGX H100", None, None, "H100 SXM"),
    ("gpu_8x_h100_sxm5", None, None, "H100 SXM"),
    ("H100-SXM", None, None, "H100 SXM"),
    ("H100SXM5", None, None, "H100 SXM"),
    ("8x NVIDIA H100 SXM", None, None, "H100 SXM"),
    ("H100 (80 GB SXM5)", None, None, "H100 SXM"),
    ("hgx-h100", None, None, "H100 SXM"),
    ("NVIDIA H100 80GB Mega", None, None, "H100 SXM"),
    ("nvidia_h100", None, None, None),  # SXM at DigitalOcean, PCIe elsewhere: its module says so
    ("NVIDIA H100", 80, None, None),
    ("NVIDIA H100", 80, "PCIe", "H100 PCIe"),
    ("NVIDIA H100", None, "SXM", "H100 SXM"),
    ("H100", 94, None, "H100 NVL"),
    ("NVIDIA H100 PCIe", None, None, "H100 PCIe"),
    ("H100-PCIe", 80, None, "H100 PCIe"),
    ("H100-1-80G", None, None, None),
    ("H100 NVLink", 80, None, None),  # cards with a bridge, or modules
    ("H100 NVLink", 80, "PCIe", "H100 PCIe"),
    ("NVIDIA H100 NVL", None, None, "H100 NVL"),
    ("H100_NVL", 94, None, "H100 NVL"),
    ("H100_nvl", None, None, "H100 NVL"),
    ("H100 NVL", 80, None, None),
    ("NVIDIA H200", None, None, "H200 SXM"),  # as the driver prints it
    ("H200", None, None, None),
    ("H200 SXM", 141, None, "H200 SXM"),
    ("HGX H200", None, None, "H200 SXM"),
    ("H200 NVL", 143, None, "H200 NVL"),
    ("H200 NVL", 143771 / 1024, None, "H200 NVL"),
    ("NVIDIA B200", None, None, "B200"),
    ("B200 SXM6", 180, None, "B200"),
    ("HGX B200", 179, None, "B200"),
    ("B200", 183, None, "B200"),
    ("B200", 192, None, "B200"),
    ("B200", 180, "NVL", None),  # there is no such card
    ("B200", 288, None, None),
    ("B300 SXM6 AC", None, None, "B300"),
    ("HGX B300", 270, None, "B300"),
    ("B300 SXM6 268GB", None, None, "B300"),
    ("B300", 262, None, "B300"),
    ("B300", 275040 / 1024, None, "B300"),
    ("GB200 NVL72", None, None, "GB200"),
    ("GB200", 186, "NVL72", "GB200"),
    ("GB300 NVL72", 279, None, "GB300"),
    ("GB300", 288, "SXM", "GB300"),
    ("GH200", 96, None, "GH200 96GB"),
    ("GH200", None, None, None),
    ("NVIDIA GH200 480GB", None, None, "GH200 96GB"),  # the driver counts the CPU's memory
    ("A100-SXM4-40GB", None, None, "A100 40GB SXM"),
    ("A100 80GB PCIe", None, None, "A100 80GB PCIe"),
    ("NVIDIA A100-SXM4-80GB", None, None, "A100 80GB SXM"),
    ("A100-80Gx8", None, None, None),
    ("A100-80Gx8", None, "SXM", "A100 80GB SXM"),
    ("A100 SXM4", None, None, None),
    ("A100 SXM4", 80, None, "A100 80GB SXM"),
    ("A100 PCIE", 40960 / 1024, None, "A100 40GB PCIe"),
    ("A100", None, None, None),
    ("A100", 80, None, None),
    ("A100", 80, "SXM", "A100 80GB SXM"),
    ("A100 40GB SXM", 80, None, None),
    ("RTX 6000 Ada Generation", None, None, "RTX 6000 Ada"),
    ("RTX6000 Ada", None, None, "RTX 6000 Ada"),
    ("RTX 6000Ada", 48, None, "RTX 6000 Ada"),
    ("nvidia_rtx6000_ada", None, None, "RTX 6000 Ada"),
    ("NVIDIA RTX 6000", None, None, None),
    ("RTX 6000", 24, None, "Quadro RTX 6000"),
    ("RTX 6000", 48, None, "RTX 6000 Ada"),
    ("RTX 6000 96GB", None, None, None),  # three boards
    ("RTX PRO 6000", 96, None, None),
    ("RTX PRO 6000 Blackwell Server Edition", None, None, "RTX PRO 6000 Blackwell Server"),
    ("RTX PRO 6000 Blackwell Workstation Edition", 96, None, "RTX PRO 6000 Blackwell Workstation"),
    ("NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition", 96, None, "RTX PRO 6000 Blackwell Max-Q"),
    ("RTX PRO Server 6000", 96, None, None),
    ("RTX PRO 6000 WS", None, None, "RTX PRO 6000 Blackwell Workstation"),
    ("RTX PRO 6000 S", None, None, "RTX PRO 6000 Blackwell Server"),
    ("RTXPRO6000", None, None, None),
    ("GB202", None, None, None),  # a chip, not a board
    ("RTX A6000", None, None, "RTX A6000"),
    ("A6000", None, None, "RTX A6000"),
    ("NVIDIA A6000", 48, None, "RTX A6000"),
    ("A6000 Ada", None, None, "RTX 6000 Ada"),
    ("RTX 4000 Ada", None, None, "RTX 4000 Ada"),
    ("NVIDIA RTX 4000", None, None, None),
    ("NVIDIA RTX 4000", 20, None, "RTX 4000 Ada"),
    ("RTX 4000", 8, None, "Quadro RTX 4000"),
    ("A10", 24, None, "A10"),
    ("A10G", None, None, "A10G"),
    ("A16", None, None, "A16"),
    ("L4", 22888 / 1024, None, "L4"),
    ("L4", 22, None, "L4"),
    ("L40", None, None, "L40"),
    ("L40S", None, None, "L40S"),
    ("L40s", None, None, "L40S"),
    ("NVIDIA L40S", 46068 / 1024, None, "L40S"),
    ("V100", 16, None, None),
    ("Tesla V100-SXM2-16GB", None, None, "V100 16GB SXM2"),
    ("Tesla V100", 32, "SXM", "V100 32GB SXM2"),
    ("V100S", None, None, "V100S PCIe 32GB"),
    ("AMD Instinct MI300X OAM", None, None, "Instinct MI300X"),
    ("amd_mi300x", 192, None, "Instinct MI300X"),
    ("MI300x", None, None, "Instinct MI300X"),
    ("MI300X", 256, None, None),
    ("MI325X", 256, "OAM", "Instinct MI325X"),
    ("MI350X", None, None, "Instinct MI350X"),
    ("AMD MI355X", 288, None, "Instinct MI355X"),
    ("MI300", 192, None, None),
    ("NVIDIA GeForce RTX 4090", 24, None, "RTX 4090"),
    ("RTX 4090", 24564 / 1024, None, "RTX 4090"),
    ("RTX 4090 D", 24, None, "RTX 4090 D"),
    ("RTX 4090 Laptop", 16, None, None),
    ("RTX 5090", 32, None, "RTX 5090"),
    ("RTX 3080", 10, None, "RTX 3080 10GB"),
    ("RTX 3080", None, None, None),
    ("RTX 4070S Ti", None, None, "RTX 4070 Ti SUPER"),
    ("Q RTX 8000", 48, None, "Quadro RTX 8000"),
    ("GTX 1080 Ti", 8, None, None),  # the card has 11 GB
    ("Radeon VII", None, None, "Radeon VII"),
    ("NVIDIA H100 80GB HBM3 MIG 1g.10gb", None, None, None),
    ("RTX PRO 6000 MIG 2g.48gb", None, None, None),
    ("H100 B200", None, None, None),
    ("H100X", None, None, None),
    ("unknown", None, None, None),
    ("", None, None, None),
    ("Tesla T4", 15, None, "T4"),
    ("T4G", None, None, "T4G"),
    ("H100 SXM", 81559, None, None),  # MiB in a field of GB
]


@pytest.mark.parametrize(("name", "memory", "form", "expected"), NAMES)
def test_a_name_means_one_device_or_none(
    name: str, memory: float | None, form: str | None, expected: str | None
) -> None:
    found = identify(name, memory_gb=memory, form=form)
    assert (found.gpu and found.gpu.name, found.reason is None) == (expected, expected is not None)


@pytest.mark.parametrize(
    ("longer", "shorter"),
    [
        ("GB200", "B200"),
        ("GB300", "B300"),
        ("L40S", "L40"),
        ("A100 80GB PCIe", "A10"),
        ("A10G", "A10"),
        ("GH200 96GB", "H200 SXM"),
        ("V100S PCIe 32GB", "V100 PCIe"),
        ("MI300X", "MI300"),
    ],
)
def test_a_shorter_name_is_not_found_in_a_longer_one(longer: str, shorter: str) -> None:
    found = identify(longer).gpu
    assert found is not None
    assert found.name != shorter


def test_every_device_that_is_rented_is_known_by_its_own_name() -> None:
    rented = {DeviceClass.DATACENTER, DeviceClass.WORKSTATION, DeviceClass.CONSUMER, DeviceClass.CLOUD_ONLY}
    for name, gpu in all_gpus().items():
        if gpu.device_class in rented and gpu.exists:
            assert identify(name).gpu == gpu, name


def test_no_alias_of_the_catalogue_is_taken_for_another_device() -> None:
    for alias in gpu_aliases().values():
        found = identify(alias.name).gpu
        assert found is None or found.name == alias.gpu, alias.name


@pytest.mark.parametrize(
    ("name", "memory", "reason"),
    [
        (
            "A100",
            None,
            "ambiguous: 'A100' may be A100 40GB PCIe, A100 40GB SXM, A100 80GB PCIe, A100 80GB SXM",
        ),
        ("Zeus 9", None, "unknown GPU 'Zeus 9'"),
        ("RTX 4090 Laptop", None, "unknown GPU 'RTX 4090 Laptop' (laptop is not understood)"),
        ("MI300X", 256, "contradictory: 'MI300X' with 256 GB, which is no Instinct MI300X"),
    ],
)
def test_the_reason_says_what_is_missing(name: str, memory: float | None, reason: str) -> None:
    assert identify(name, memory_gb=memory).reason == reason


def test_a_providers_own_table_pins_the_device() -> None:
    assert offer(gpu="nvidia_h100", canonical_gpu="H100 SXM").gpu == "H100 SXM"
    assert offer(gpu="nvidia_h100", canonical_gpu="H100 SXM", memory_gb_per_gpu=80.0).gpu == "H100 SXM"


@pytest.mark.parametrize(("canonical", "memory"), [("H100 SXM5", None), ("H100 SXM", 640.0)])
def test_a_table_is_checked(canonical: str, memory: float | None) -> None:
    found = offer(gpu="nvidia_h100", canonical_gpu=canonical, memory_gb_per_gpu=memory)
    assert found.gpu is None
    assert found.reasons


def test_what_the_source_leaves_out_is_taken_from_the_device() -> None:
    found = offer(gpu="B200")
    assert (found.gpu, found.memory_gb_per_gpu, found.form) == ("B200", 180, "SXM")
    assert (found.verdict, found.reasons) == (Verdict.QUARANTINED, ())


def test_memory_is_snapped_to_the_label() -> None:
    assert offer(memory_gb_per_gpu=81559 / 1024).memory_gb_per_gpu == 80
    assert offer(gpu="B300", memory_gb_per_gpu=262.0).memory_gb_per_gpu == 288


def test_an_unknown_gpu_keeps_what_was_said() -> None:
    found = offer(gpu="Zeus 9", memory_gb_per_gpu=77.0, form="OAM")
    assert (found.gpu, found.gpu_raw, found.memory_gb_per_gpu, found.form) == (None, "Zeus 9", 77.0, "OAM")
    assert found.reasons == ("unknown GPU 'Zeus 9'",)


def offered(provider: str) -> dict[str, str | None]:
    """The device of each name in a provider's recorded answer."""
    folder = PAYLOADS / provider
    pages = {
        key: Page(key=key, url=page["url"], body=(folder / page["file"]).read_bytes())
        for key, page in json.loads((folder / "meta.json").read_text())["pages"].items()
    }
    found = read(find_provider(provider), pages, seen_at=SEEN, fx=all_currencies())
    return {one.gpu_raw: one.gpu for one in found.offers}


@pytest.mark.parametrize(
    ("provider", "name", "gpu"),
    [
        ("nebius", "NVIDIA HGX H100", "H100 SXM"),  # a board for eight modules
        ("nebius", "NVIDIA HGX H200", "H200 SXM"),
        ("cudo", "nvidia-a100-pcie", "A100 80GB PCIe"),
        # These state a memory at most: no answer, page or document of the provider names the form.
        ("cudo", "nvidia-h100", None),
        ("ovhcloud", "H100", None),
        ("ovhcloud", "A100", None),
        ("jarvislabs", "H100", None),
        ("jarvislabs", "A100-80GB", None),
        ("nebius", "NVIDIA RTX PRO 6000", None),
    ],
)
def test_a_bare_name_is_a_device_only_where_the_provider_says_which(
    provider: str, name: str, gpu: str | None
) -> None:
    assert offered(provider)[name] == gpu


@pytest.mark.parametrize(
    ("gpu", "fraction", "stated", "memory"),
    [("A16", 0.125, 2.0, 2.0), ("A10", 1 / 6, 4.0, 4.0), ("A10", 0.5, 24.0, 12.0), ("A40", 0.25, None, 12.0)],
)
def test_a_slice_stays_a_slice(gpu: str, fraction: float, stated: float | None, memory: float) -> None:
    found = offer(gpu=gpu, gpu_fraction=fraction, memory_gb_per_gpu=stated)
    assert (found.gpu, found.gpu_count, found.gpu_fraction) == (gpu, 1, fraction)
    assert found.memory_gb_per_gpu == pytest.approx(memory)
    assert not found.is_rankable


def test_dollars_stay_as_they_are() -> None:
    found = offer(price_per_hour=Decimal("15.004"))
    assert (found.usd_per_hour, found.price_original, found.currency, found.fx_date) == (
        Decimal("15.004"),
        Decimal("15.004"),
        "USD",
        None,
    )


def test_another_currency_is_converted_and_kept() -> None:
    rate = FxRate(currency="EUR", usd_per_unit=1.1172, as_of="2026-10-30", source="test")
    found = normalise(
        raw(currency="eur", price_per_hour=Decimal("2.8665"), price_per_month_cap=Decimal("2092.545")),
        provider="scaleway",
        source_url=URL,
        seen_at=SEEN,
        fx={"EUR": rate},
    )
    assert found.usd_per_hour == Decimal("3.202454")  # 2.8665 x 1.1172 = 3.2024538
    assert found.usd_per_month_cap == Decimal("2337.791274")
    assert (found.price_original, found.currency, found.fx_date) == (Decimal("2.8665"), "EUR", "2026-10-30")


def test_the_bundled_rates_convert_too() -> None:
    found = normalise(
        raw(currency="EUR", price_per_hour=Decimal(1)),
        provider="ovhcloud",
        source_url=URL,
        seen_at=SEEN,
        fx={"EUR": usd_per_unit("EUR")},
    )
    assert found.usd_per_hour == Decimal("1.1172")


def test_a_currency_without_a_rate_is_an_error() -> None:
    with pytest.raises(NormaliseError, match="'EUR'"):
        offer(currency="EUR")


@pytest.mark.parametrize("price", ["1e13", "1e308", "1e999999", "-1e13"])
@pytest.mark.parametrize("field", ["price_per_hour", "price_per_month_cap"])
@pytest.mark.parametrize("currency", ["USD", "EUR"])
def test_what_no_column_can_hold_is_an_error(price: str, field: str, currency: str) -> None:
    one = raw(currency=currency, **{field: Decimal(price)})
    with pytest.raises(NormaliseError, match="USD is no price of a machine: more than can be stored"):
        normalise(one, provider="acme", source_url=URL, seen_at=SEEN, fx={"EUR": usd_per_unit("EUR")})


def test_the_largest_amount_that_is_let_through_can_be_stored() -> None:
    largest = offer(price_per_hour=Decimal(2**63 - 1).scaleb(-6)).usd_per_hour
    assert to_micros(largest) == 2**63 - 1


def test_a_witness_speaks_of_another_cloud() -> None:
    found = normalise(raw(cloud="aws", region="us-east-1"), provider="gpuhunt", source_url=URL, seen_at=SEEN)
    assert (found.provider, found.witness, found.is_rankable) == ("aws", "gpuhunt", False)


def test_regions_have_one_spelling() -> None:
    found = normalise(raw(region="Washington, US"), provider="vastai", source_url=URL, seen_at=SEEN)
    assert found.region == "US"
    assert offer(region="global").region is None


def test_everything_else_is_passed_on() -> None:
    found = offer(tier=Tier.RESERVED_1Y, commitment_days=365, vcpus=26.0, ram_gb=200.0, gpu_only=True)
    assert (found.tier, found.commitment_days, found.vcpus, found.ram_gb) == (Tier.RESERVED_1Y, 365, 26, 200)
    assert (found.gpu_only, found.raw, found.source_url, found.seen_at) == (True, "$2.69", URL, SEEN)


def test_names_of_the_snapshot_are_read_as_its_map_says(shared: Path) -> None:
    """Where the map names a device, we name the same or none; where it names none, we name none."""
    more_careful = set()
    with (shared / "data/prices/snapshot_gpu_map.csv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            memory = float(row["gpu_memory_gb"]) if row["gpu_memory_gb"] else None
            if "slice" in row["note"]:
                continue
            found = identify(row["gpu_model"], memory_gb=memory, form=row["form"] or None).gpu
            if found is None and row["canonical"]:
                more_careful.add((row["gpu_model"], row["gpu_memory_gb"]))
            else:
                assert (found.name if found else "") == row["canonical"], row
    assert more_careful == {("GTX 1080 Ti", "8.0")}
