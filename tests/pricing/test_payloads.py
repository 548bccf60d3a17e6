"""
Every collected payload, served over HTTP and read by a whole run, becomes the right offers.

Numbers of offers and prices are worked out by hand from the payloads, as the comments show; whether each is
verified is the matter of other tests.
"""

from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import NamedTuple

import pytest

from pricing.collect import refresh
from pricing.http import Client
from pricing.offer import Offer
from pricing.registry import providers
from pricing.settings import Settings
from pricing.storage.memory import ProviderResult, RunStatus
from pricing.store import Store
from tests.pricing.loopback import PAYLOADS, LoopbackServer

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
KEY = "client:secret-0123456789"


class Expected(NamedTuple):
    """How many offers, and the price of some: (instance or GPU, GPUs, tier, region or None) -> USD/h."""

    offers: int
    prices: dict[tuple[str, int, str, str | None], str]
    absent: tuple[str, ...] = ()  # instances, GPUs or tiers that no offer may have


EXPECTED = {
    # Nine prices per GPU (secure and community of B200, 4090, H100, H200, L40S; RTX 3070 community only, as 0
    # is no price), of which the interface with a key has two for the 4090: its 8 secure and 4 community sizes
    # stand for those. 8 in four sizes and one in four: B200 2, 3070 1, H100 2, H200 2, L40S 2 -> 9 x 4 + 12.
    "runpod": Expected(
        48,
        {
            ("B200", 2, "community", None): "11.96",  # 2 x 5.98
            ("B200", 8, "secure", None): "54.32",  # 8 x 6.79
            ("H100 SXM", 1, "secure", None): "3.29",
            ("H200 SXM", 4, "community", None): "14.36",  # 4 x 3.59
            ("RTX 3070", 1, "community", None): "0.13",
        },
        absent=("spot",),  # equal to on demand everywhere
    ),
    # Of the verified hosts: one with one H100 in the US, one with eight and one with four in Japan, one H200
    # NVL in Japan; spot only where the bid is below the price.
    "vastai": Expected(
        7,
        {
            ("H100 SXM", 1, "on_demand", "US"): "1.735556",
            ("H100 SXM", 8, "on_demand", "JP"): "35.159556",
            ("H200 NVL", 1, "on_demand", "JP"): "3.335556",
        },
    ),
    # 19 GPU plans in 9+4+6+3+9+5+5+9+1+7+1+1+2 = 62 places, 7 in none; two metal boxes with a spot price.
    "vultr": Expected(
        73,
        {
            ("vcg-a100-12c-120g-80vram", 1, "on_demand", "*"): "2.397",
            ("vcg-a16-96c-960g-256vram", 16, "on_demand", "atl"): "7.534",
            ("Instinct MI300X", 8, "on_demand", "ord"): "17.52",
            ("Instinct MI300X", 8, "spot", "ord"): "14.72",
            ("H100 SXM", 8, "spot", "sea"): "18.40",
        },
    ),
    # Eight rows on demand; the contract rows have no price, the two sizes of the interface another one.
    "digitalocean": Expected(
        8,
        {
            ("H100 SXM", 8, "on_demand", None): "35.28",
            ("Instinct MI300X", 1, "on_demand", None): "2.59",
            ("RTX 4000 Ada", 1, "on_demand", None): "0.76",
        },
        absent=("B300", "Instinct MI350X"),
    ),
    # Five rows of 8 and four of 4 on the page; by the interface the A10 in two regions, the A6000 in none.
    "lambda": Expected(
        12,
        {
            ("H100 SXM", 8, "on_demand", None): "31.92",  # 8 x 3.99
            ("H100 SXM", 4, "on_demand", None): "16.36",  # 4 x 4.09, never half of the eight
            ("B200", 8, "on_demand", None): "53.52",  # 8 x 6.69, not the cluster's 9.86
            ("gpu_1x_a10", 1, "on_demand", "us-east-1"): "1.29",  # 129 cents
        },
    ),
    # Four rows, of which one is the unused reservation of another.
    "aws": Expected(
        3,
        {
            ("p5.48xlarge", 8, "on_demand", "us-east-1"): "55.04",
            ("g6.12xlarge", 4, "on_demand", "us-east-1"): "4.6016",
            ("g5.48xlarge", 8, "on_demand", "us-east-1"): "16.288",
        },
    ),
    # Four sizes in two regions, each on demand and spot, and two terms of one.
    "azure": Expected(
        18,
        {
            ("Standard_NC24ads_A100_v4", 1, "on_demand", "eastus"): "3.673",
            ("Standard_NC24ads_A100_v4", 1, "spot", "westus3"): "1.116959",
            ("Standard_NC24ads_A100_v4", 1, "reserved_1y", "eastus"): "2.401027",  # 21033 / 8760
            ("Standard_NC24ads_A100_v4", 1, "reserved_3y", "eastus"): "1.363052",  # 35821 / 26280
            ("H100 NVL", 1, "on_demand", "eastus"): "6.98",
        },
    ),
    # 12 x 0.031611 + 85 x 0.004237 + 2.933908 = 3.673385; sizes up to eight are multiples; sixteen GPUs come
    # with 96 cores and 1,360 GB: 96 x 0.031611 + 1360 x 0.004237 + 16 x 2.933908 = 55.739504.
    "gcp": Expected(
        5,
        {
            ("a2-highgpu-1g", 1, "on_demand", "us-central1"): "3.673385",
            ("a2-highgpu-8g", 8, "on_demand", "us-central1"): "29.38708",
            ("a2-megagpu-16g", 16, "on_demand", "us-central1"): "55.739504",
        },
        absent=("spot",),
    ),
    # Per GPU: L40S 3.5 x 4, MI300X 6 x 8, H200 10 x 8, B200 14 x 8, A100 40 3.05 x 8, A100 80 4 x 8, A10 2 in
    # three shapes, H100 10 x 8; the license at 2.5 and the rows that are not per GPU hour are none.
    "oci": Expected(
        10,
        {
            ("H100 SXM", 8, "on_demand", None): "80",
            ("A100 40GB SXM", 8, "on_demand", None): "24.40",
            ("A10", 2, "on_demand", None): "4",
            ("L40S", 4, "on_demand", None): "14",
        },
    ),
    # Eight machines on the page, on demand and spot; two A6000 from the interface; its H100 is the page's.
    "verda": Expected(
        18,
        {
            ("H100 SXM", 1, "on_demand", None): "3.25",
            ("H100 SXM", 1, "spot", None): "1.625",
            ("GB300", 1, "on_demand", None): "8.62",
            ("2A6000.20V", 2, "spot", None): "0.70",
        },
    ),
    # Four GPUs with two prices; GB200 has dashes.
    "nebius": Expected(
        8,
        {("H100 SXM", 1, "on_demand", None): "3.85", ("H200 SXM", 1, "spot", None): "2.45"},
        absent=("GB200", "L40S"),
    ),
    # B200, H100 and L40S with spot, GB200 and GH200 without; GB200 in Europe too.
    "coreweave": Expected(
        9,
        {
            ("GB200", 4, "on_demand", "*"): "42.00",
            ("B200", 8, "spot", "*"): "34.11",
            ("H100 SXM", 8, "on_demand", "*"): "49.24",
            ("GH200 96GB", 1, "on_demand", "*"): "6.50",
        },
    ),
    "crusoe": Expected(
        4,
        {
            ("H200 SXM", 1, "on_demand", None): "4.29",
            ("Instinct MI300X", 1, "on_demand", None): "3.45",
            ("A100 80GB SXM", 1, "on_demand", None): "2.30",
        },
        absent=("GB200", "spot"),
    ),
    "hyperstack": Expected(
        7,
        {
            ("NVIDIA H100 NVLink", 1, "on_demand", None): "2.60",
            ("H100 SXM", 1, "on_demand", None): "3.20",
            ("NVIDIA A100", 1, "on_demand", None): "1.35",
        },
        absent=("H100 NVL",),
    ),
    # 1, 2, 4, 8 GPUs as far as max_count, 8 vCPU, 32 GB, 200 GB for each go: 5 + 3 + 3 + 3 + 2 + 3 + 7 + 2 +
    # 7 + 6 + 2 + 3 + 3 + 4 + 6 by location. 8 vCPU, 32 GB and 200 GB are 0.024 + 0.064 + 0.01 = 0.098.
    "tensordock": Expected(
        59,
        {
            ("H100 SXM", 1, "on_demand", "*"): "2.088",  # 1.99 + 0.098
            ("H100 SXM", 8, "on_demand", "*"): "16.704",
            ("geforcertx4090-pcie-24gb at 543179e3", 4, "on_demand", "*"): "1.792",  # 4 x (0.35 + 0.098)
        },
    ),
    # One row with all parts in three sizes, as 13 vCPU are the most: 0.05 + 8 x 0.0025 + 32 x 0.0038 +
    # 200 x 0.00013 = 0.2176 for each GPU and 0.0055 for the address; six without price of disk or address.
    "cudo": Expected(
        9,
        {
            ("cascade-lake nvidia-rtx-3080", 1, "on_demand", "br-saopaulo-1"): "0.2231",
            (
                "cascade-lake nvidia-rtx-3080",
                4,
                "on_demand",
                "br-saopaulo-1",
            ): "0.8759",  # 4 x 0.2176 + 0.0055
            ("epyc-genoa-a100-pcie nvidia-a100-pcie [gpu-only]", 1, "on_demand", "no-kristiansand-1"): "1.50",
        },
    ),
    # Euros at the bundled rate of 2026-10-30, 1.1172.
    "scaleway": Expected(
        7,
        {
            ("H100-1-80G", 1, "on_demand", "fr-par-2"): "3.202454",  # 2.8665
            ("B300", 8, "on_demand", "fr-par-2"): "67.032",  # 60
            ("L4", 1, "on_demand", "fr-par-2"): "0.879795",  # 0.7875
        },
    ),
    # Euros too: five by the hour and one by the month, 1940 / 730 = 2.657534 EUR.
    "ovhcloud": Expected(
        6,
        {
            ("h100-380", 1, "on_demand", None): "3.12816",  # 2.80
            ("h100-1520", 4, "on_demand", None): "12.51264",  # 11.20
            ("h100-380", 1, "reserved_other", None): "2.968997",
            ("l4-90", 1, "on_demand", None): "0.8379",  # 0.75
            ("a100-720", 4, "on_demand", None): "12.2892",  # 11.00
        },
    ),
    "hotaisle": Expected(
        4,
        {
            ("Instinct MI300X", 4, "on_demand", None): "11.96",  # 4 x 2.99
            ("Instinct MI300X", 8, "reserved_other", None): "27.12",  # 8 x 3.39, a month at least
        },
    ),
    # L4 as container and machine, four sizes, with spot: 16; A100 in three with spot: 6; RTX PRO 6000 in four
    # with spot: 8, and in four without: 4; one H100. The region that is not known is none.
    "jarvislabs": Expected(
        35,
        {
            ("L4 container", 8, "on_demand", "india-noida-01"): "3.52",  # 8 x 0.44
            ("L4 vm", 2, "spot", "india-noida-01"): "0.58",
            ("H100 vm", 1, "on_demand", "europe-01"): "2.99",
        },
    ),
    "hyperbolic": Expected(
        4,
        {
            ("H100 SXM", 8, "on_demand", "eu-north-4"): "25.52",  # 2552 cents
            ("H100 PCIe", 1, "on_demand", "ca-east-1"): "2.75",
        },
    ),
    "lium": Expected(
        5,
        {
            ("B300", 8, "secure", "US"): "63.76",  # 8 x 7.97
            ("H200 NVL", 1, "secure", "US"): "3.90",
        },
    ),
    # For each of two GPUs one cluster price and three terms, and one dedicated endpoint.
    "together": Expected(
        10,
        {
            ("NVIDIA HGX H100 gpu-cluster", 1, "on_demand", None): "3.99",
            ("NVIDIA HGX H100 dedicated-inference", 1, "on_demand", None): "5.49",
            ("NVIDIA HGX B200 dedicated-inference", 1, "on_demand", None): "8.99",
        },
    ),
    # A node of eight: 8 x 1.99 and 8 x 2.49.
    "voltagepark": Expected(
        2,
        {
            ("h100-sxm5-80gb ethernet at a3111bd4", 8, "on_demand", None): "15.92",
            ("h100-sxm5-80gb infiniband at a3111bd4", 8, "on_demand", None): "19.92",
        },
    ),
    "gpuhunt": Expected(4, {("p5.48xlarge", 8, "on_demand", "us-east-1"): "55.04"}),
    # AWS: nine machines on demand and the three whose zones agree on a spot price; Lambda: eighteen.
    "skypilot": Expected(
        30,
        {
            ("p5.48xlarge", 8, "on_demand", "us-east-1"): "98.32",  # of spring 2025: a stale witness
            ("gpu_8x_h100_sxm5", 8, "on_demand", "us-east-1"): "23.92",
        },
    ),
    # By regions: 2 + 1 + 1 + 3 + 3 + 2 + 1 + 1.
    "shadeform": Expected(
        14,
        {
            ("n3-H100-SXM5x8", 8, "on_demand", "houston-usa-3"): "25.60",  # 2560 cents
            ("a100-80gb-sxm-ib.8x", 8, "on_demand", "*"): "15.60",
        },
    ),
}


@pytest.fixture(scope="module")
def brought(shared: Path) -> Iterator[dict[str, ProviderResult]]:
    """What one run over all payloads brought, by source; every source has a key, and each is stored."""
    found: dict[str, ProviderResult] = {}
    with LoopbackServer() as server, Store.in_memory() as store:
        server.serve_payloads(shared / "data" / "prices" / "payloads")
        keys = {f"BREAKEVEN_{name.upper()}_API_KEY": KEY for name in PAYLOADS}
        settings = Settings.from_environ(server.environ(*PAYLOADS) | keys)
        record = store.record

        def remember(result: ProviderResult) -> object:
            found[result.provider] = result
            return record(result)

        store.record = remember  # type: ignore[method-assign, assignment]
        with Client(base_urls=settings.base_urls, secrets=settings.secrets, sleep=lambda _: None) as client:
            refresh(None, store, settings, client, NOW)
        yield found


def price_of(result: ProviderResult, name: str, count: int, tier: str, region: str | None) -> set[Decimal]:
    def fits(offer: Offer) -> bool:
        is_named = name in (offer.gpu, offer.instance_type) and offer.gpu_fraction is None
        return is_named and (offer.gpu_count, str(offer.tier)) == (count, tier)

    found = [offer for offer in result.offers if fits(offer) and (region == "*" or offer.region == region)]
    return {offer.usd_per_hour.quantize(Decimal("0.000001")) for offer in found}


def test_every_source_has_a_payload_and_an_expectation() -> None:
    assert set(EXPECTED) == set(PAYLOADS) == set(providers())


def test_every_payload_is_served(shared: Path) -> None:
    folder = shared / "data" / "prices" / "payloads"
    files = {path.name for path in folder.iterdir() if path.suffix != ".md"}
    served = {file for routes in PAYLOADS.values() for *_, file in routes}
    # The JSON form of the AWS file is for saved answers only; the other query of RunPod is asked by nobody.
    assert files - served == {"aws_ec2_offer_sample.json", "runpod_gputypes_lowestprice.json"}


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_a_payload_becomes_the_right_offers(brought: dict[str, ProviderResult], name: str) -> None:
    expected, result = EXPECTED[name], brought[name]
    assert (result.status, result.reason) == (RunStatus.OK, None)
    assert len(result.offers) == expected.offers == len({offer.id for offer in result.offers})
    for what, usd in expected.prices.items():
        assert price_of(result, *what) == {Decimal(usd)}, what
    told = {text for offer in result.offers for text in (offer.gpu, offer.instance_type, str(offer.tier))}
    assert not told & set(expected.absent)
    assert all(offer.seen_at == NOW for offer in result.offers)
    assert all(
        offer.witness == (name if name in {"gpuhunt", "skypilot", "shadeform"} else None)
        for offer in result.offers
    )


def test_no_key_and_no_host_of_a_person_is_kept(brought: dict[str, ProviderResult]) -> None:
    kept = "".join(str(result) for result in brought.values())
    for secret in (*KEY.split(":"), "for-an-hour", "203.0.113"):
        assert secret not in kept.replace("client_", "")
