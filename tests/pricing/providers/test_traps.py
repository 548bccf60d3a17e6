"""Traps of single sources that no other test of theirs holds."""

import json
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from pricing.errors import ParseError
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


def test_vultr_plan_that_is_not_for_sale_on_demand_has_no_on_demand_price(
    read: Read, recorded: Recorded
) -> None:
    """A box of eight A100 could be had preemptibly only, though its hourly price stood beside."""
    answer = json.loads(recorded("vultr", "plans_2.json"))
    plan = answer["plans"][0] | {"deploy_ondemand": False, "deploy_preemptible": True}
    plan |= {"hourly_cost_preemptible": 7.2, "monthly_cost_preemptible": 4838.4}
    answer |= {"plans": [plan], "meta": {"total": 1, "links": {"next": ""}}}
    (offer,) = read("vultr", {"plans": answer}).offers
    assert (offer.tier, offer.price_per_hour) == (Tier.SPOT, Decimal("7.2"))


def test_digitalocean_memory_in_another_unit_is_refused(read: Read, recorded: Recorded) -> None:
    answer = json.loads(recorded("digitalocean", "sizes.json"))
    size = next(size for size in answer["sizes"] if "gpu_info" in size)
    size["gpu_info"]["vram"] = {"amount": 655360, "unit": "mib"}
    found = read("digitalocean", {"sizes": answer})
    assert found.all(instance_type=size["slug"]) == []
    assert "mib" in found.why(size["slug"])


@pytest.mark.parametrize("state", ["UnusedCapacityReservation", "AllocatedCapacityReservation"])
def test_aws_reservation_in_the_json_file_is_not_the_price_of_the_instance(
    read: Read, shared: Path, state: str
) -> None:
    """The other form of the file holds the same rows: capacity that is reserved, at 0 or a second time."""
    answer = json.loads((shared / "data/prices/payloads/aws_ec2_offer_sample.json").read_text())
    before = read("aws", {"index": answer})
    sku, product = next(iter(answer["products"].items()))
    reserved = product["attributes"] | {"capacitystatus": state}
    answer["products"]["RESERVED"] = product | {"sku": "RESERVED", "attributes": reserved}
    text = json.dumps(answer["terms"]["OnDemand"][sku]).replace("55.0400000000", "0.0000000000")
    answer["terms"]["OnDemand"]["RESERVED"] = json.loads(text)
    assert "0.0000000000" in text
    assert read("aws", {"index": answer}) == before


def test_aws_price_that_is_not_of_an_hour_is_a_problem(read: Read, recorded: Recorded) -> None:
    text = recorded("aws", "index.csv")
    before = read("aws", {"index": text})
    offer = before.offers[0]
    (line,) = (line for line in text.splitlines() if f'"{offer.price_per_hour:f}' in line and "Used" in line)
    found = read("aws", {"index": text.replace(line, line.replace('"Hrs"', '"Quantity"'))})
    assert [one.instance_type for one in found.offers] == [one.instance_type for one in before.offers[1:]]
    assert "Quantity: not a price of an hour" in found.why(offer.instance_type)


def test_verda_euros_of_the_interface_are_not_dollars(read: Read, recorded: Recorded) -> None:
    kinds = json.loads(recorded("verda", "instance_types.json"))
    euros = [kind | {"currency": "eur"} for kind in kinds]
    found = read("verda", {"instance_types": euros})
    assert found.offers
    assert {offer.currency for offer in found.offers} == {"EUR"}


def test_hyperstack_table_under_another_heading_is_not_read(read: Read, recorded: Recorded) -> None:
    page = recorded("hyperstack", "pricing.html")
    before = read("hyperstack", {"pricing": page}).offers
    start = page.index('<div class="page-price_card_main')
    table = page[start : page.index("<h3>", start)]
    other = page.replace("</body>", f"<h3>Contracts of three years</h3>{table}</body>")
    assert other != page
    assert read("hyperstack", {"pricing": other}).offers == before


def test_hotaisle_bare_metal_without_its_term_stops_the_page(read: Read, recorded: Recorded) -> None:
    page = recorded("hotaisle", "pricing.html")
    assert page.count("One-month minimum") == 1
    with pytest.raises(ParseError, match="the term of bare metal"):
        read("hotaisle", {"pricing": page.replace("One-month minimum", "No minimum")})


def test_jarvislabs_spot_that_is_not_cheaper_is_none(read: Read, recorded: Recorded) -> None:
    answer = json.loads(recorded("jarvislabs", "server_meta.json"))
    row = answer["server_meta"][0]
    for spot in (row["price_per_hour"], row["price_per_hour"] * 2):
        found = read("jarvislabs", {"server_meta": {"server_meta": [row | {"spot_price": spot}]}})
        assert {offer.tier for offer in found.offers} == {Tier.ON_DEMAND}


def test_hyperbolic_cluster_is_no_machine(read: Read, recorded: Recorded) -> None:
    (option, *_) = json.loads(recorded("hyperbolic", "options.json"))
    nodes = [option["nodes"][0] | {"gpuCount": 8}] * 2
    found = read("hyperbolic", {"options": [option | {"nodes": nodes, "gpuCount": 16}]})
    assert found.offers == []
    assert [problem.why for problem in found.problems] == ["a cluster of 2 machines"]
