"""Traps of single sources that no other test of theirs holds."""

import json
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from pricing.offer import Tier
from pricing.parsing.naming import identify
from pricing.provider import Keys
from tests.pricing.providers.reading import Reading, providers

Read = Callable[[str, dict[str, Any]], Reading]
ReadShared = Callable[..., Reading]
Recorded = Callable[[str, str], str]


def test_vastai_search_leaves_nothing_out_that_may_be_rented() -> None:
    """A filter by `verified` dropped hosts silently, one by CUDA hid whole generations of GPUs."""
    for request in providers()["vastai"].requests(Keys()):
        (query,) = parse_qs(urlsplit(request.url).query)["q"]
        assert set(json.loads(query)) == {"gpu_name", "rentable", "external", "type", "order", "limit"}


def test_vultr_cpu_plan_that_needs_a_volume_is_none_of_ours(read: Read, recorded: Recorded) -> None:
    answer = json.loads(recorded("vultr", "plans_2.json"))
    answer["meta"]["total"] = len(answer["plans"])
    before = read("vultr", {"plans": answer}).offers
    plan = {
        "id": "vx1-g-4c-16g-bs",
        "vcpu_count": 4,
        "ram": 16384,
        "disk": 0,
        "monthly_cost": 87.6,
        "hourly_cost": 0.12,
        "type": "vx1",
        "locations": ["ewr"],
        "gpu_brand": "none",
        "storage_type": "block_storage",
    }
    answer["plans"].append(plan)
    answer["meta"]["total"] += 1
    found = read("vultr", {"plans": answer})
    assert found.offers == before
    assert "vx1-g-4c-16g-bs" not in {problem.what for problem in found.problems}


def test_lambda_rtx_6000_is_the_card_of_2018() -> None:
    """Lambda's "RTX 6000" has 24 GB: Turing, neither Ada nor Blackwell."""
    found = identify("RTX 6000", memory_gb=24.0)
    assert found.gpu is not None
    assert found.gpu.name == "Quadro RTX 6000"


def test_azure_promotion_is_no_price_of_the_size(read: Read, recorded: Recorded) -> None:
    answer = json.loads(recorded("azure", "prices.json"))
    before = read("azure", {"prices": answer}).offers
    row = next(row for row in answer["Items"] if row["type"] == "Consumption")
    promotion = {"armSkuName": "Standard_NC24rs_v3_Promo", "retailPrice": 0.9, "skuName": "NC24rs v3 Promo"}
    answer["Items"].append(row | promotion)
    answer["Count"] += 1
    found = read("azure", {"prices": answer})
    assert found.offers == before
    assert "not in pricing/data/machines.toml" in found.why("Standard_NC24rs_v3_Promo")


def test_gcp_tensor_processors_are_no_gpus(read: Read, recorded: Recorded) -> None:
    answer = json.loads(recorded("gcp", "skus.json")) | {"nextPageToken": ""}
    before = read("gcp", {"skus": answer})
    sku = next(sku for sku in answer["skus"] if "GPU" in sku["description"])
    for description in ("Cloud TPU v5e running in Iowa", "TpuV4 Pod Accelerator running in Americas"):
        answer["skus"].append(sku | {"skuId": description, "description": description})
    assert read("gcp", {"skus": answer}) == before


def test_oci_device_that_is_billed_by_the_day_is_no_offer(read: Read, recorded: Recorded) -> None:
    answer = json.loads(recorded("oci", "products.json"))
    before = read("oci", {"products": answer})
    row = {
        "partNumber": "B93555",
        "displayName": "Roving Edge Device - GPU - H100",
        "metricName": "Each Per Day",
        "serviceCategory": "Compute - Roving Edge Infrastructure",
        "currencyCodeLocalizations": [
            {"currencyCode": "USD", "prices": [{"model": "PAY_AS_YOU_GO", "value": 160}]}
        ],
    }
    answer["items"].append(row)
    assert read("oci", {"products": answer}) == before


def test_verda_confidential_computing_stays_an_offer_of_its_own(read: Read, recorded: Recorded) -> None:
    """At 2 % more: neither the price of the plain machine nor a contradiction of it."""
    page = recorded("verda", "pricing.html")
    plain = '"name":"1x H100 SXM5 80GB on-demand"'
    start = page.rindex("{", 0, page.index(plain))
    depth, end = 0, start
    while depth or end == start:  # to the brace that closes the offer
        depth += {"{": 1, "}": -1}.get(page[end], 0)
        end += 1
    twin = page[start:end].replace("80GB on-demand", "80GB CC on-demand").replace("3.25", "3.315")
    found = read("verda", {"pricing": page[:end] + "," + twin + page[end:]})
    prices = {offer.instance_type: offer.price_per_hour for offer in found.all(tier=Tier.ON_DEMAND)}
    assert prices["1x H100 SXM5 80GB"] == Decimal("3.25")
    assert prices["1x H100 SXM5 80GB CC"] == Decimal("3.315")


def test_coreweave_thousands_are_numbers_and_the_other_list_is_not_read(
    read: Read, read_shared: ReadShared, shared: Path
) -> None:
    found = read_shared("coreweave", pricing="coreweave_pricing.html")
    assert {offer.ram_gb for offer in found.all(gpu="NVIDIA HGX B200")} == {2048.0}
    classic = (
        '<h5>REGION: CLASSIC</h5><div class="classic-gpu-pricing"><h3 class="table-model-name">H100 PCIe</h3>'
        '<span class="instance-price">On-Demand Price: $4.25 / Hour</span></div></body>'
    )
    page = (shared / "data/prices/payloads/coreweave_pricing.html").read_text().replace("</body>", classic)
    assert "classic-gpu-pricing" in page
    assert read("coreweave", {"pricing": page}).offers == found.offers


def test_hyperstack_price_behind_a_hard_space_is_read(read_shared: ReadShared, shared: Path) -> None:
    page = (shared / "data/prices/payloads/hyperstack_gpu_pricing.html").read_text()
    assert page.count("&nbsp;$1.40") == 1
    found = read_shared("hyperstack", pricing="hyperstack_gpu_pricing.html")
    assert found.only(instance_type="NVIDIA A100 NVLink").price_per_hour == Decimal("1.40")


def test_tensordock_memory_that_cannot_be_is_no_size_of_the_machine(read_shared: ReadShared) -> None:
    """A location states 1,546,793 GB; what is rented has 32 GB for each GPU."""
    found = read_shared("tensordock", locations="tensordock_locations.json")
    odd = [offer for offer in found.offers if offer.instance_type.startswith("v100-sxm3-32gb")]
    assert [offer.gpu_count for offer in odd] == [1, 2, 4, 8]
    assert all(offer.ram_gb == 32.0 * offer.gpu_count for offer in found.offers)


def test_cudo_sizes_stay_few(read_shared: ReadShared) -> None:
    """Seven rows with ranges of CPU and memory are no list of thousands."""
    found = read_shared("cudo", machine_types="cudo_machine_types.json")
    assert len({(offer.instance_type, offer.region) for offer in found.offers}) == 7
    assert max(offer.gpu_count for offer in found.offers) <= 8


def test_scaleway_type_without_gpu_is_none_of_ours(read: Read, recorded: Recorded) -> None:
    servers = json.loads(recorded("scaleway", "servers.json"))
    before = read("scaleway", {"servers": servers})
    plain = {"ncpus": 4, "ram": 17179869184, "gpu": 0, "gpu_info": None, "mig_profile": None}
    servers["servers"]["PRO2-XS"] = plain | {
        "monthly_price": 40.15,
        "hourly_price": 0.055,
        "end_of_service": False,
    }
    assert read("scaleway", {"servers": servers}) == before


def test_shadeform_region_that_is_none_gives_no_second_price(read_shared: ReadShared) -> None:
    """ "canada-2" is no place of Hyperstack; it stays what it is called, and confirms no other region."""
    found = read_shared("shadeform", types="shadeform_instance_types.json")
    regions = [offer.region for offer in found.all(instance_type="n3-H100-SXM5x8")]
    assert len(regions) == len(set(regions)) == 3
    assert any(str(region).lower() == "canada-2" for region in regions)
