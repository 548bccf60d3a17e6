"""Providers read from a web page: the traps named in the collected facts, sections 5, 10 to 14, 19 and 21."""

import json
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest

from pricing.errors import ParseError
from pricing.offer import Billing, Tier
from pricing.provider import Keys, Page
from tests.pricing.providers.reading import Reading, providers

Recorded = Callable[[str, str], str]
ReadShared = Callable[..., Reading]


def prices(reading: Reading, **wanted: Any) -> set[tuple[str, int, str]]:
    return {(o.gpu, o.gpu_count, str(o.price_per_hour)) for o in reading.all(**wanted)}


# -- Crusoe ------------------------------------------------------------------------------------------


def test_crusoe_card_on_request_takes_no_price_from_its_neighbour(read_shared: ReadShared) -> None:
    found = read_shared("crusoe", pricing="crusoe_pricing.html")
    assert prices(found) == {
        ("NVIDIA H200", 1, "4.29"),
        ("NVIDIA H100", 1, "3.90"),
        ("NVIDIA A100", 1, "2.30"),
        ("AMD MI300X", 1, "3.45"),
    }
    assert found.why("NVIDIA GB200 186GB NVL72, on_demand") == "priced on request only"


def test_crusoe_two_cards_of_one_name_are_two_offers(read: Any, recorded: Recorded) -> None:
    found = read("crusoe", {"pricing": recorded("crusoe", "pricing.html")})
    assert {(o.form, str(o.price_per_hour)) for o in found.all(gpu="NVIDIA A100")} == {
        ("SXM", "2.30"),
        ("PCIe", "2.00"),
    }


def test_crusoe_spot_price_is_the_second_one(read: Any, recorded: Recorded) -> None:
    head, card = recorded("crusoe", "pricing.html").split("<p>$3.90/GPU-hr</p>")
    changed = card.replace('<p><a href="/contact-sales">Contact sales</a></p>', "<p>$1.60/GPU-hr</p>", 1)
    found = read("crusoe", {"pricing": f"{head}<p>$3.90/GPU-hr</p>{changed}"})
    assert str(found.only(gpu="NVIDIA H100", tier=Tier.SPOT).price_per_hour) == "1.60"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("$3.90/GPU-hr", "$3.90/hr"),  # for the instance?
        ("$3.90/GPU-hr", "$3.90"),
        (">Current spot<", ">1 year<"),
        (">On-demand</div>", ">Reserved</div>"),
        ("80GB", "80"),
    ],
)
def test_crusoe_changed_page_is_refused(read: Any, recorded: Recorded, old: str, new: str) -> None:
    page = recorded("crusoe", "pricing.html")
    assert old in page
    with pytest.raises(ParseError):
        read("crusoe", {"pricing": page.replace(old, new)})


# -- Hyperstack --------------------------------------------------------------------------------------


def test_hyperstack_heading_decides_the_tier_of_the_same_names(read: Any, recorded: Recorded) -> None:
    found = read("hyperstack", {"pricing": recorded("hyperstack", "pricing.html")})
    assert {(o.tier, str(o.price_per_hour)) for o in found.all(gpu="NVIDIA H100")} == {
        (Tier.ON_DEMAND, "2.50"),
        (Tier.SPOT, "2.00"),
    }
    assert found.all(tier=Tier.RESERVED_OTHER) == []  # "from $2.72" is a floor
    assert found.why("NVIDIA H100 SXM, reserved_other") == "no plain price"


def test_hyperstack_nvlink_is_the_pcie_card_with_a_bridge(read_shared: ReadShared) -> None:
    found = read_shared("hyperstack", pricing="hyperstack_gpu_pricing.html")
    assert found.only(gpu="NVIDIA H100 NVLink").canonical_gpu == "H100 PCIe"
    assert found.only(gpu="NVIDIA H100").canonical_gpu == "H100 PCIe"
    assert prices(found) == {
        ("NVIDIA H200 SXM", 1, "3.99"),
        ("NVIDIA H100 SXM", 1, "3.20"),
        ("NVIDIA H100 NVLink", 1, "2.60"),
        ("NVIDIA H100", 1, "2.50"),
        ("NVIDIA RTX Pro 6000 SE", 1, "1.85"),
        ("NVIDIA A100 NVLink", 1, "1.40"),  # with a non-breaking space before it
        ("NVIDIA A100", 1, "1.35"),
    }


def test_hyperstack_prose_that_names_a_gpu_is_no_offer(read: Any, recorded: Recorded) -> None:
    page = recorded("hyperstack", "pricing.html")
    assert "B300" in page
    assert not any("B300" in o.gpu for o in read("hyperstack", {"pricing": page}).offers)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Pricing Per Hour", "Pricing Per Month"),
        ("Pricing Per Hour", "Pricing Per Hour (1-year commitment)"),
        ("Pricing Per Hour", "Pricing Per Hour (8 GPUs)"),
        ("Pricing Per Hour", "Starting Per Hour"),  # of on demand that is a floor
        ("VRAM (GB)", "VRAM (GB) of 8 GPUs"),
        ("On-Demand GPU", "Your GPU"),
        ("On-Demand GPU", "On-Demand 8x GPU"),
        ("<span>141</span>", "<span>141 GB</span>"),
    ],
)
def test_hyperstack_changed_page_is_refused(read: Any, recorded: Recorded, old: str, new: str) -> None:
    with pytest.raises(ParseError):
        read("hyperstack", {"pricing": recorded("hyperstack", "pricing.html").replace(old, new)})


# -- CoreWeave ---------------------------------------------------------------------------------------


def test_coreweave_price_is_the_instance_s_and_its_count_has_a_footnote(read_shared: ReadShared) -> None:
    found = read_shared("coreweave", pricing="coreweave_pricing.html")
    assert prices(found, region="North America", tier=Tier.ON_DEMAND) == {
        ("NVIDIA GB200 NVL72", 4, "42.00"),
        ("NVIDIA HGX B200", 8, "68.80"),
        ("NVIDIA HGX H100", 8, "49.24"),
        ("NVIDIA L40S", 8, "18.00"),
        ("NVIDIA GH200", 1, "6.50"),
    }
    assert prices(found, tier=Tier.SPOT) == {
        ("NVIDIA HGX B200", 8, "34.11"),
        ("NVIDIA HGX H100", 8, "19.71"),
        ("NVIDIA L40S", 8, "7.88"),
    }
    assert prices(found, region="Europe") == {("NVIDIA GB200 NVL72", 4, "42.00")}
    assert found.only(gpu="NVIDIA HGX B200", tier=Tier.ON_DEMAND).ram_gb == 2048


def test_coreweave_inference_price_of_one_gpu_is_not_taken(read_shared: ReadShared) -> None:
    found = read_shared("coreweave", pricing="coreweave_pricing.html")
    assert not any(str(o.price_per_hour) in {"10.50", "8.60", "6.16", "2.25"} for o in found.offers)


def test_coreweave_spot_without_on_demand_stays_spot(read: Any, recorded: Recorded) -> None:
    found = read("coreweave", {"pricing": recorded("coreweave", "pricing.html")})
    assert prices(found, gpu="NVIDIA HGX B300") == {("NVIDIA HGX B300", 8, "35.84")}
    assert found.only(gpu="NVIDIA HGX B300").tier is Tier.SPOT
    assert "no on-demand" in found.why("NVIDIA HGX B300 in North America")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('<span class="item-value">$49.24</span> / Hour', '<span class="item-value">$59.24</span> / Hour'),
        ("/ Hour", "/ Month"),
        ("REGION: NORTH AMERICA", "NORTH AMERICA"),
        ("<div>GPU Count</div>", "<div>Nodes</div>"),
    ],
)
def test_coreweave_row_whose_copies_differ_is_refused(
    read: Any, recorded: Recorded, old: str, new: str
) -> None:
    page = recorded("coreweave", "pricing.html")
    assert old in page
    with pytest.raises(ParseError):
        read("coreweave", {"pricing": page.replace(old, new)})


# -- Nebius ------------------------------------------------------------------------------------------


def test_nebius_floors_dashes_and_requests_are_no_prices(read: Any, recorded: Recorded) -> None:
    found = read("nebius", {"pricing": recorded("nebius", "prices.html")})
    assert found.all(gpu="NVIDIA L40S (AMD)") == []
    assert found.all(gpu="NVIDIA GB200 NVL72") == []
    raws = {problem.raw for problem in found.problems}
    assert raws == {"from $1.55", "––", "[Contact us](#ai-contact-form)"}


def test_nebius_columns_are_found_by_their_headers(read: Any, recorded: Recorded) -> None:
    page = recorded("nebius", "prices.html")
    preemptible, on_demand = '\\"Preemptible, GPU-hour\\"', '\\"On-demand, GPU-hour\\"'
    assert f"{preemptible},{on_demand}" in page
    found = read(
        "nebius", {"pricing": page.replace(f"{preemptible},{on_demand}", f"{on_demand},{preemptible}")}
    )
    assert str(found.only(gpu="NVIDIA HGX H100", tier=Tier.ON_DEMAND).price_per_hour) == "2.15"


def test_nebius_collected_page(read_shared: ReadShared) -> None:
    found = read_shared("nebius", pricing="nebius_prices.html")
    assert prices(found, tier=Tier.ON_DEMAND) == {
        ("NVIDIA HGX B200", 1, "7.15"),
        ("NVIDIA HGX H200", 1, "4.50"),
        ("NVIDIA HGX H100", 1, "3.85"),
        ("NVIDIA RTX PRO 6000", 1, "1.80"),
    }
    assert ("NVIDIA HGX H100", 1, "2.15") in prices(found, tier=Tier.SPOT)
    assert all(o.memory_gb_per_gpu is None for o in found.offers)  # its RAM is the system's


@pytest.mark.parametrize(
    ("old", "new"), [("On-demand, GPU-hour", "On-demand, per month"), ("NVIDIA GPU Instances", "GPUs")]
)
def test_nebius_changed_page_is_refused(read: Any, recorded: Recorded, old: str, new: str) -> None:
    with pytest.raises(ParseError):
        read("nebius", {"pricing": recorded("nebius", "prices.html").replace(old, new)})


# -- Hot Aisle ---------------------------------------------------------------------------------------


def test_hotaisle_cards_count_and_prose_does_not(read: Any, recorded: Recorded) -> None:
    page = recorded("hotaisle", "pricing.html")
    assert "$1.99/GPU/hr" in page
    found = read("hotaisle", {"pricing": page})
    virtual = found.all(tier=Tier.ON_DEMAND)
    assert [(o.gpu_count, str(o.price_per_hour), o.memory_gb_per_gpu) for o in virtual] == [
        (1, "2.99", 192),
        (2, "5.98", 192),
        (4, "11.96", 192),
    ]
    assert [o.vcpus for o in virtual] == [None, 26, 52]  # "8 or 13" cores for one machine is a choice


def test_hotaisle_bare_metal_is_a_month_s_commitment(read_shared: ReadShared) -> None:
    offer = read_shared("hotaisle", pricing="hotaisle_pricing.html").only(gpu_count=8)
    assert (offer.tier, offer.commitment_days, offer.billing) == (Tier.RESERVED_OTHER, 30, Billing.MONTHLY)
    assert offer.price_per_hour == Decimal("27.12")


def test_hotaisle_card_that_differs_from_the_summary_is_refused(read: Any, recorded: Recorded) -> None:
    page = recorded("hotaisle", "pricing.html").replace('text-foreground">$2.99', 'text-foreground">$1.99')
    with pytest.raises(ParseError, match="summary"):
        read("hotaisle", {"pricing": page})


# -- Together ----------------------------------------------------------------------------------------


def test_together_clusters_and_endpoints_are_two_products(read_shared: ReadShared) -> None:
    found = read_shared("together", pricing="together_pricing.html")
    assert {(o.instance_type, str(o.price_per_hour)) for o in found.all(tier=Tier.ON_DEMAND)} == {
        ("NVIDIA HGX H100 gpu-cluster", "3.99"),
        ("NVIDIA HGX B200 gpu-cluster", "8.19"),
        ("NVIDIA HGX H100 dedicated-inference", "5.49"),
        ("NVIDIA HGX B200 dedicated-inference", "8.99"),
    }


def test_together_terms_are_days_and_a_leading_blank_does_not_matter(read_shared: ReadShared) -> None:
    found = read_shared("together", pricing="together_pricing.html")
    reserved = found.all(tier=Tier.RESERVED_OTHER, gpu="NVIDIA HGX H100")
    assert [(o.commitment_days, str(o.price_per_hour)) for o in reserved] == [
        (7, "3.69"),
        (31, "3.45"),
        (91, "3.19"),
    ]
    assert found.why("NVIDIA HGX H100 gpu-cluster 181+ days") == "no plain price"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("All prices are per GPU per hour.", "All prices are per node per hour."),
        ("7-30 days", "1 month"),
        ("<th>On-demand</th><th>Reserved</th>", "<th>Reserved</th><th>On-demand</th>"),
        ("</body>", '<table class="pricing_table is-gpu"></table></body>'),  # a third copy
    ],
)
def test_together_changed_page_is_refused(read: Any, recorded: Recorded, old: str, new: str) -> None:
    page = recorded("together", "pricing.html")
    assert old in page
    with pytest.raises(ParseError):
        read("together", {"pricing": page.replace(old, new)})


# -- Lambda ------------------------------------------------------------------------------------------


def test_lambda_each_size_has_its_own_price(read_shared: ReadShared) -> None:
    found = read_shared("lambda", pricing="lambda_pricing.html")
    assert prices(found, gpu="NVIDIA H100 SXM") == {
        ("NVIDIA H100 SXM", 8, "31.92"),
        ("NVIDIA H100 SXM", 4, "16.36"),
    }
    assert prices(found, gpu="NVIDIA Tesla V100") == {("NVIDIA Tesla V100", 8, "6.32")}  # not the A100's
    assert prices(found, gpu="NVIDIA A100 SXM", memory_gb_per_gpu=80.0) == {("NVIDIA A100 SXM", 8, "22.32")}


def test_lambda_clusters_and_the_copy_in_the_script_are_not_read(read_shared: ReadShared) -> None:
    found = read_shared("lambda", pricing="lambda_pricing.html")
    assert not any(o.gpu == "NVIDIA HGX B200" for o in found.offers)
    assert len(found.all(gpu="NVIDIA B200 SXM6", gpu_count=8)) == 1
    assert "not an instance" in found.why("NVIDIA HGX B200, 1-Click Clusters")


def test_lambda_cents_and_regions_of_the_interface(read_shared: ReadShared) -> None:
    found = read_shared("lambda", instance_types="lambda_instance_types.json")
    assert {(o.region, str(o.price_per_hour)) for o in found.all(instance_type="gpu_1x_a10")} == {
        ("us-east-1", "1.29"),
        ("us-west-1", "1.29"),
    }
    sold_out = found.only(instance_type="gpu_1x_a6000")
    assert (sold_out.region, sold_out.available) == (None, False)
    assert found.only(gpu_count=8).price_per_hour == Decimal("35.92")


def test_lambda_page_and_interface_meet_by_the_machine(read: Any, recorded: Recorded) -> None:
    contents = {
        "pricing": recorded("lambda", "pricing.html"),
        "instance_types": recorded("lambda", "instance_types.json"),
    }
    found = read("lambda", contents)
    assert found.only(price_per_hour=Decimal("22.32")).instance_type == "gpu_8x_a100_80gb_sxm4"
    assert found.only(gpu="NVIDIA H100 SXM", gpu_count=8).price_per_hour == Decimal("31.92")
    assert "$3.99" in found.why("gpu_8x_h100_sxm5gdr in us-south-2")


def test_lambda_entry_under_another_name_is_a_problem(read: Any, recorded: Recorded) -> None:
    types = json.loads(recorded("lambda", "instance_types.json"))
    types["data"]["gpu_1x_a10"]["instance_type"]["name"] = "gpu_1x_h100"
    found = read("lambda", {"instance_types": types})
    assert "gpu_1x_h100" in found.why("gpu_1x_a10")
    assert found.all(instance_type="gpu_1x_a10") == []


# -- Verda -------------------------------------------------------------------------------------------


def test_verda_collected_page(read_shared: ReadShared) -> None:
    found = read_shared("verda", pricing="verda_pricing.html")
    assert ("H100 SXM5 80GB", 1, "3.25") in prices(found, tier=Tier.ON_DEMAND)
    assert ("H100 SXM5 80GB", 1, "1.625") in prices(found, tier=Tier.SPOT)
    assert len(found.offers) == 16
    assert {o.currency for o in found.offers} == {"USD"}


def change_offer(page: str, **changes: Any) -> str:
    """The recorded page with the on-demand H100 offer changed."""
    start, end = page.index('{"@context"'), page.index("</script>")
    graph = json.loads(page[start:end])
    for row in graph["@graph"]:
        if row.get("name") == "1x H100 SXM5 80GB on-demand" and row.get("@id", "").endswith("offer-9"):
            for key, value in changes.items():
                (row["priceSpecification"] if key == "unitText" else row)[key] = value
    return page[:start] + json.dumps(graph) + page[end:]


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"unitText": "month"}, "not an hourly"),
        ({"description": "Hourly spot instance price"}, "not an hourly"),
        ({"price": 4.0}, "differ"),
        ({"priceCurrency": "EUR"}, "differ"),  # against its own specification
        ({"price": 0}, "not an hourly"),
    ],
)
def test_verda_offer_that_contradicts_itself_is_a_problem(
    read: Any, recorded: Recorded, changes: dict[str, Any], why: str
) -> None:
    found = read("verda", {"pricing": change_offer(recorded("verda", "pricing.html"), **changes)})
    assert why in found.why("1x H100 SXM5 80GB on-demand")


def test_verda_twin_rows_are_one_offer_and_differing_ones_none(read: Any, recorded: Recorded) -> None:
    page = recorded("verda", "pricing.html")
    assert page.count('"1x H100 SXM5 80GB on-demand"') == 2
    assert read("verda", {"pricing": page}).only(instance_type="1x H100 SXM5 80GB", tier=Tier.ON_DEMAND)
    specification = {"price": 4.0, "priceCurrency": "USD", "unitText": "hour"}
    changed = change_offer(page, price=4.0, priceSpecification=specification)
    found = read("verda", {"pricing": changed})
    assert found.all(instance_type="1x H100 SXM5 80GB", tier=Tier.ON_DEMAND) == []
    assert "several prices" in found.why("1x H100 SXM5 80GB on_demand")


def test_verda_currency_is_read_and_never_assumed(read: Any, recorded: Recorded) -> None:
    page = recorded("verda", "pricing.html").replace('"priceCurrency":"USD"', '"priceCurrency":"EUR"')
    assert {o.currency for o in read("verda", {"pricing": page}).offers} == {"EUR"}


def test_verda_count_leads_the_name_and_clusters_are_left_out(read: Any, recorded: Recorded) -> None:
    found = read("verda", {"pricing": recorded("verda", "pricing.html")})
    assert found.only(gpu_count=8).price_per_hour == Decimal(60)
    assert found.all(gpu_count=104) == []


def test_verda_interface_texts_memory_and_places(read_shared: ReadShared) -> None:
    files = {
        "instance_types": "verda_instance_types.json",
        "availability": "verda_instance_availability.json",
    }
    found = read_shared("verda", **files)
    a6000 = found.only(instance_type="2A6000.20V", tier=Tier.ON_DEMAND)
    assert (a6000.gpu_count, a6000.memory_gb_per_gpu, a6000.region, a6000.available) == (
        2,
        48,
        "FIN-01",
        True,
    )
    h100 = found.only(instance_type="1H100.80S.30V", tier=Tier.ON_DEMAND)
    assert (str(h100.price_per_hour), h100.region, h100.available) == ("3.95", None, False)
    assert found.only(instance_type="1H100.80S.30V", tier=Tier.SPOT).available is None  # its own list


def test_verda_empty_price_is_no_offer(read: Any, recorded: Recorded) -> None:
    types = json.loads(recorded("verda", "instance_types.json"))
    types[0]["spot_price"] = ""
    assert read("verda", {"instance_types": types}).all(instance_type="1H100.80S.30V", tier=Tier.SPOT) == []


def test_verda_key_buys_a_token_that_asks_for_the_lists() -> None:
    verda = providers()["verda"]
    assert [r.page for r in verda.requests(Keys())] == ["pricing"]
    token = list(verda.requests(Keys(secret="me:sesame")))[1]
    assert token.json_body == {
        "grant_type": "client_credentials",
        "client_id": "me",
        "client_secret": "sesame",
    }
    answer = Page(key="token", url=token.url, body=b'{"access_token": "abc", "expires_in": 3600}')
    further = list(verda.follow(answer, Keys(secret="me:sesame")))
    assert [r.page for r in further] == ["instance_types", "availability"]
    assert all(r.headers == {"Authorization": "Bearer abc"} for r in further)
