"""Providers read from lists in JSON: the traps named in the collected facts, sections 9, 15 to 18 and 23."""

import json
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest

from pricing.errors import ParseError
from pricing.offer import Tier
from pricing.provider import Keys, Page
from tests.pricing.providers.reading import Reading, providers

ReadShared = Callable[..., Reading]


@pytest.fixture
def rows(recorded: Any) -> Callable[[str, str], Any]:
    """A recorded list as objects, for a test to change."""
    return lambda name, file: json.loads(recorded(name, file))


# -- Oracle Cloud ------------------------------------------------------------------------------------


def product(**changes: Any) -> dict[str, Any]:
    row = {
        "partNumber": "B98415",
        "displayName": "Oracle Cloud Infrastructure - Compute - GPU - H100",
        "metricName": "GPU Per Hour",
        "serviceCategory": "Compute - GPU",
        "currencyCodeLocalizations": [
            {"currencyCode": "USD", "prices": [{"model": "PAY_AS_YOU_GO", "value": 10}]}
        ],
    }
    return {**row, **changes}


@pytest.fixture
def oci(read: Any) -> Callable[..., Reading]:
    other = product(partNumber="B95909", displayName="Compute  - GPU - A10")
    return lambda **changes: read(
        "oci", {"products": {"lastUpdated": "", "items": [other, product(**changes)]}}
    )


def test_oci_price_per_gpu_becomes_that_of_the_machine(oci: Any) -> None:
    offer = oci().only(canonical_gpu="H100 SXM")
    assert (offer.instance_type, offer.gpu_count, offer.price_per_hour) == ("BM.GPU.H100.8", 8, Decimal(80))


@pytest.mark.parametrize(
    "changes",
    [
        {"metricName": "Node Per Hour", "serviceCategory": "Compute - VMware"},
        {"displayName": "OCI - NVIDIA AI Enterprise - H100"},
        {"serviceCategory": "Compute - GPU - Other", "displayName": "OCI- Compute - GPU - H100T"},
        {"serviceCategory": "Exadata Cloud@Customer"},
        {"metricName": "Each Per Day"},
    ],
)
def test_oci_what_looks_like_a_gpu_price_is_none(oci: Any, changes: dict[str, str]) -> None:
    found = oci(**changes)
    assert found.all(canonical_gpu="H100 SXM") == []
    assert found.problems == []


def test_oci_unknown_part_and_contradicting_name_are_problems(oci: Any) -> None:
    assert "not in the table" in oci(partNumber="B93544", displayName="Compute - GPU - E4").why("B93544")
    assert "does not speak of H100" in oci(displayName="OCI - Compute - GPU - H100T").why("B98415")


@pytest.mark.parametrize(
    "localizations",
    [
        [{"currencyCode": "EUR", "prices": [{"model": "PAY_AS_YOU_GO", "value": 9}]}],
        [{"currencyCode": "USD", "prices": [{"model": "MONTHLY_COMMIT", "value": 9}]}],
        [{"currencyCode": "USD", "prices": [{"model": "PAY_AS_YOU_GO", "value": 0}]}],
        [],
    ],
)
def test_oci_other_currency_model_or_nothing_is_a_problem(oci: Any, localizations: list[Any]) -> None:
    found = oci(currencyCodeLocalizations=localizations)
    assert found.all(canonical_gpu="H100 SXM") == []
    assert "pay as you go" in found.why("B98415")


def test_oci_names_that_say_nothing_are_known_by_their_part(read_shared: ReadShared) -> None:
    found = read_shared("oci", products="oci_products.json")
    per_gpu = {o.canonical_gpu: o.price_per_hour / o.gpu_count for o in found.offers}
    assert per_gpu == {
        "L40S": Decimal("3.5"),
        "Instinct MI300X": 6,
        "H200 SXM": 10,
        "B200": 14,
        "A100 40GB SXM": Decimal("3.05"),  # B92740 "E3"
        "A100 80GB SXM": 4,
        "A10": 2,
        "H100 SXM": 10,
    }


# -- Scaleway ----------------------------------------------------------------------------------------


def test_scaleway_is_in_euros_bytes_and_by_instance(read_shared: ReadShared) -> None:
    found = read_shared(
        "scaleway", servers="scaleway_servers.json", availability="scaleway_availability.json"
    )
    pairs = {(o.instance_type, o.gpu_count, str(o.price_per_hour), o.available) for o in found.offers}
    assert pairs == {
        ("B300-SXM-2-288G", 2, "18.96", False),
        ("B300-SXM-8-288G", 8, "60.0", False),
        ("H100-1-80G", 1, "2.8665", True),
        ("H100-2-80G", 2, "5.733", False),
        ("H100-SXM-2-80G", 2, "6.6198", True),
        ("L4-1-24G", 1, "0.7875", True),
        ("L40S-1-48G", 1, "1.469916", True),
    }
    assert {o.currency for o in found.offers} == {"EUR"}
    assert found.only(instance_type="H100-2-80G").memory_gb_per_gpu == 80
    assert found.only(instance_type="H100-2-80G").ram_gb == 480


def test_scaleway_zones_are_named_by_their_pages(read: Any, rows: Any) -> None:
    servers = rows("scaleway", "servers.json")
    stock = {"servers": {"L4-1-24G": {"availability": "shortage"}}}
    found = read(
        "scaleway",
        {
            "fr-par-2/servers": servers,
            "pl-waw-2/servers": servers,
            "pl-waw-2/availability": stock,
            "servers": servers,
        },
    )
    l4 = {o.region: o.available for o in found.all(instance_type="L4-1-24G")}
    assert l4 == {"fr-par-2": None, "pl-waw-2": False, None: None}


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"mig_profile": "1g.10gb"}, "a slice"),
        ({"end_of_service": True}, "end of its service"),
        ({"ram": 240}, "in bytes"),
        ({"hourly_price": 0}, "not a price"),
    ],
)
def test_scaleway_strange_server_is_a_problem(
    read: Any, rows: Any, changes: dict[str, Any], what: str
) -> None:
    servers = rows("scaleway", "servers.json")
    servers["servers"]["H100-1-80G"].update(changes)
    found = read("scaleway", {"servers": servers})
    assert what in found.why("H100-1-80G")
    assert found.all(instance_type="H100-1-80G") == []


def test_scaleway_full_page_asks_for_the_next() -> None:
    provider = providers()["scaleway"]
    first = next(iter(provider.requests(Keys())))
    assert first.page == "fr-par-2/servers"
    full = json.dumps({"servers": {f"S{n}": {"gpu": 0} for n in range(100)}}).encode()
    (further,) = provider.follow(Page(key=first.page, url=first.url, body=full), Keys())
    assert (further.page, further.url) == ("fr-par-2/servers#2", first.url.replace("?page=1", "?page=2"))
    last = json.dumps({"servers": {"S": {"gpu": 0}}}).encode()
    assert list(provider.follow(Page(key=further.page, url=further.url, body=last), Keys())) == []


# -- OVHcloud ----------------------------------------------------------------------------------------


def test_ovh_prices_are_hundred_millionths_and_months_a_commitment(read_shared: ReadShared) -> None:
    found = read_shared("ovhcloud", catalog="ovh_catalog.json")
    hourly = {(o.instance_type, o.gpu_count): o.price_per_hour for o in found.all(tier=Tier.ON_DEMAND)}
    assert hourly == {
        ("h100-380", 1): Decimal("2.80"),
        ("h100-760", 2): Decimal("5.60"),
        ("h100-1520", 4): Decimal("11.20"),
        ("l4-90", 1): Decimal("0.75"),
        ("a100-720", 4): Decimal("11.00"),
    }
    month = found.only(tier=Tier.RESERVED_OTHER)
    assert (month.commitment_days, round(month.price_per_hour * 730, 6)) == (30, Decimal(1940))
    assert {o.currency for o in found.offers} == {"EUR"}


def test_ovh_managed_service_by_the_minute_is_none_of_ours(read: Any, rows: Any) -> None:
    catalog = rows("ovhcloud", "catalog_fr.json")
    assert any(row["planCode"].startswith("ai-") for row in catalog["addons"])
    assert not any(o.instance_type.startswith("ai-") for o in read("ovhcloud", {"catalog": catalog}).offers)


def test_ovh_windows_and_legacy_twins_are_problems_and_us_rows_say_none(read: Any, rows: Any) -> None:
    found = read("ovhcloud", {"catalog_us": rows("ovhcloud", "catalog_us.json")})
    assert [(o.instance_type, o.currency, o.price_per_hour) for o in found.offers] == [
        ("t2-45", "USD", Decimal("0.88"))
    ]
    assert "Windows" in found.why("win-t2-45.consumption")
    assert "legacy" in found.why("t2-le-45.consumption")


def change_addon(catalog: Any, **changes: Any) -> Any:
    for row in catalog["addons"]:
        if row["planCode"] == "l4-90.consumption":
            if "tags" in changes:
                row["blobs"]["tags"] = changes["tags"]
            row["pricings"][0].update({key: value for key, value in changes.items() if key != "tags"})
    return catalog


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"price": 7500000000}, "shown is '0.75 €'"),
        ({"formattedPrice": "1.25 €"}, "shown is"),
        ({"formattedPrice": "free"}, "shown 'free'"),
        ({"price": 0}, "price 0"),
        ({"intervalUnit": "month"}, "billed per month"),
        ({"tags": ["coming_soon"]}, "not for sale"),
    ],
)
def test_ovh_row_that_contradicts_itself_is_a_problem(
    read: Any, rows: Any, changes: dict[str, Any], why: str
) -> None:
    found = read("ovhcloud", {"catalog": change_addon(rows("ovhcloud", "catalog_fr.json"), **changes)})
    assert why in found.why("l4-90.consumption")
    assert found.all(instance_type="l4-90") == []


def test_ovh_price_shown_in_rounded_cents_is_the_same_price(read: Any, rows: Any) -> None:
    changed = change_addon(rows("ovhcloud", "catalog_fr.json"), price=74600000)
    assert read("ovhcloud", {"catalog": changed}).only(instance_type="l4-90").price_per_hour == Decimal(
        "0.746"
    )


def test_ovh_catalogue_of_another_company_is_refused(read: Any, rows: Any) -> None:
    with pytest.raises(ParseError, match="US"):
        read("ovhcloud", {"catalog": rows("ovhcloud", "catalog_us.json")})
    assert (
        providers()["ovhcloud"].recognise(
            Page(
                key="?",
                url="",
                body=json.dumps({"locale": {"subsidiary": "FR", "currencyCode": "USD"}}).encode(),
            )
        )
        is None
    )


# -- TensorDock and Cudo -----------------------------------------------------------------------------


def test_tensordock_price_is_the_sum_of_the_parts(read_shared: ReadShared) -> None:
    found = read_shared("tensordock", locations="tensordock_locations.json")
    rtx4090 = found.only(instance_type="geforcertx4090-pcie-24gb at 8dd95ff0", gpu_count=2)
    # 2 x (0.396667 + 8 x 0.003 + 32 x 0.002 + 200 x 0.00005) = 2 x 0.494667
    assert rtx4090.price_per_hour == Decimal("0.989334")
    assert (rtx4090.vcpus, rtx4090.ram_gb, rtx4090.gpu_only) == (16, 64, False)


def test_tensordock_two_locations_of_one_city_stay_two(read_shared: ReadShared) -> None:
    found = read_shared("tensordock", locations="tensordock_locations.json")
    dallas = found.all(region="Dallas, Texas, United States", gpu_count=1)
    assert len({o.instance_type for o in dallas}) == 2
    assert {str(o.price_per_hour) for o in dallas} == {"0.306462", "0.31800"}


def test_tensordock_location_without_cpus_is_a_problem(read_shared: ReadShared) -> None:
    found = read_shared("tensordock", locations="tensordock_locations.json")
    place = "Chubbuck, Idaho, United States"
    assert "'max_vcpus': 0" in found.why(f"rtxa6000-pcie-48gb in {place}")
    assert found.all(gpu="NVIDIA RTX A6000 PCIe", region=place) == []


def test_tensordock_counts_end_at_the_largest_machine(read_shared: ReadShared) -> None:
    found = read_shared("tensordock", locations="tensordock_locations.json")
    three = found.all(instance_type="geforcertx4090-pcie-24gb at 8dd95ff0")
    assert [o.gpu_count for o in three] == [1, 2]  # max_count 3, 16 vCPU
    v100 = found.all(instance_type="v100-sxm3-32gb at d6a3c52e")
    assert [o.gpu_count for o in v100] == [1, 2, 4, 8]  # "1546793 GB" of memory is no hindrance


def test_cudo_price_is_the_sum_and_without_all_parts_the_gpu_s_only(read_shared: ReadShared) -> None:
    found = read_shared("cudo", machine_types="cudo_machine_types.json")
    whole = found.only(region="br-saopaulo-1", gpu_count=2)
    # 2 x (0.05 + 8 x 0.0025 + 32 x 0.0038 + 200 x 0.00013) + 0.0055
    assert (whole.price_per_hour, whole.gpu_only) == (Decimal("0.4407"), False)
    part = found.only(gpu="nvidia-h100")
    assert (str(part.price_per_hour), part.gpu_only) == ("1.79", True)
    assert part.instance_type.endswith("[gpu-only]")


def test_cudo_nothing_free_is_listed_and_not_available(read_shared: ReadShared) -> None:
    found = read_shared("cudo", machine_types="cudo_machine_types.json")
    assert found.only(gpu="nvidia-h100").available is False
    assert {o.gpu_count for o in found.all(region="br-saopaulo-1")} == {1, 2, 4}  # 5 free


# -- Hyperbolic, Lium, JarvisLabs, Voltage Park ------------------------------------------------------


def test_hyperbolic_cents_are_the_whole_option_s(read_shared: ReadShared) -> None:
    found = read_shared("hyperbolic", options="hyperbolic_rental_options.json")
    assert {(o.gpu, o.form, o.gpu_count, o.region, str(o.price_per_hour)) for o in found.offers} == {
        ("h100", "SXM", 1, "us-east-1", "3.19"),
        ("h200", "SXM", 1, "us-east-2", "3.99"),
        ("h100", "PCIe", 1, "ca-east-1", "2.75"),
        ("h100", "SXM", 8, "eu-north-4", "25.52"),
    }
    assert {o.region: o.available for o in found.offers}["ca-east-1"] is True
    assert {o.region: o.available for o in found.offers}["us-east-1"] is None


def test_hyperbolic_supplier_s_share_is_not_the_price_and_a_new_price_stops_the_list(
    read: Any, rows: Any
) -> None:
    options = rows("hyperbolic", "options.json")
    options[0]["providerCostPerHourCents"] = 100
    assert read("hyperbolic", {"options": options}).only(region="us-east-1").price_per_hour == Decimal("3.19")
    options[0]["spotCostPerHourCents"] = 100
    with pytest.raises(ParseError, match="spotCostPerHourCents"):
        read("hyperbolic", {"options": options})


@pytest.mark.parametrize("changes", [{"enabled": False}, {"gpuCount": 2}, {"costPerHourCents": 0}])
def test_hyperbolic_option_that_cannot_be_is_a_problem(read: Any, rows: Any, changes: dict[str, Any]) -> None:
    options = rows("hyperbolic", "options.json")
    options[0].update(changes)
    found = read("hyperbolic", {"options": options})
    assert found.all(region="us-east-1") == []
    assert len(found.problems) == 1


def host(**changes: Any) -> dict[str, Any]:
    row = {
        "machine_name": "NVIDIA H100 80GB HBM3",
        "price_per_gpu": 2.0,
        "gpu_count": 8,
        "available_gpu_count": 8,
        "specs": {"is_spot": False},
        "active": None,
        "location": {"country": "Finland", "country_code": "FI"},
        "tier": "secure",
    }
    return {**row, **changes}


@pytest.fixture
def lium(read: Any) -> Callable[..., Reading]:
    return lambda *hosts: read("lium", {"executors": list(hosts)})


def test_lium_price_is_per_gpu_and_the_figure_a_lower_quartile(lium: Any) -> None:
    found = lium(host(), host(price_per_gpu=4.0))  # a quarter of the way from 16 to 32
    assert found.only().price_per_hour == Decimal(20)
    assert "p25 of 2 hosts" in found.only().raw


def test_lium_tiers_countries_and_free_counts_are_kept_apart(lium: Any) -> None:
    found = lium(
        host(),
        host(specs={"is_spot": True}, price_per_gpu=1.0),
        host(tier="community", price_per_gpu=1.5),
        host(available_gpu_count=2, price_per_gpu=1.75),
        host(location={"country": "", "country_code": ""}, price_per_gpu=1.0),
    )
    assert {(o.tier, o.gpu_count, o.region, str(o.price_per_hour)) for o in found.offers} == {
        (Tier.SECURE, 8, "FI", "16.0"),
        (Tier.SPOT, 8, "FI", "8.0"),
        (Tier.COMMUNITY, 8, "FI", "12.0"),
        (Tier.SECURE, 2, "FI", "3.50"),
        (Tier.SECURE, 8, None, "8.0"),
    }


@pytest.mark.parametrize(
    "changes",
    [
        {"available_gpu_count": 0},
        {"active": False},
        {"price_per_gpu": 0},
        {"tier": "gold"},
        {"available_gpu_count": 9},
    ],
)
def test_lium_host_that_is_none_is_counted_as_left_out(lium: Any, changes: dict[str, Any]) -> None:
    found = lium(host(), host(**changes))
    assert len(found.offers) == 1
    assert found.problems[0].raw == "1 hosts"


def test_jarvislabs_kinds_of_workload_and_spellings_are_kept_apart(read_shared: ReadShared) -> None:
    found = read_shared("jarvislabs", server_meta="jarvislabs_server_meta.json")
    kinds = {(o.instance_type, o.region) for o in found.offers}
    assert {("L4 container", "india-noida-01"), ("L4 vm", "india-noida-01")} <= kinds
    assert ("H100 vm", "europe-01") in kinds  # its workload is null
    assert "unknown-region" in found.why("H100 vm")


def test_jarvislabs_count_ends_at_the_machine_and_stock_says_what_is_free(read_shared: ReadShared) -> None:
    found = read_shared("jarvislabs", server_meta="jarvislabs_server_meta.json")
    a100 = found.all(gpu="A100-80GB", tier=Tier.ON_DEMAND)
    assert [(o.gpu_count, str(o.price_per_hour), o.available) for o in a100] == [
        (1, "1.49", True),
        (2, "2.98", False),
        (4, "5.96", False),
    ]
    assert [o.gpu_count for o in found.all(gpu="H100")] == [1]  # no num_gpus
    assert found.all(gpu="RTX PRO 6000", tier=Tier.SPOT) == []  # null


def test_jarvislabs_is_skipped_without_a_key() -> None:
    assert providers()["jarvislabs"].requires_key


def test_voltagepark_texts_are_per_gpu_and_the_machine_is_rented(read_shared: ReadShared) -> None:
    found = read_shared("voltagepark", locations="voltagepark_locations.json")
    assert {(o.instance_type.split()[1], o.gpu_count, str(o.price_per_hour)) for o in found.offers} == {
        ("ethernet", 8, "15.92"),
        ("infiniband", 8, "19.92"),
    }
    assert all(o.available is False for o in found.offers)  # count 0: sold out, and not a price of 0


@pytest.mark.parametrize("changes", [{"has_next": True}, {"total_result_count": 2}])
def test_voltagepark_answer_that_is_not_whole_is_refused(
    read: Any, rows: Any, changes: dict[str, Any]
) -> None:
    with pytest.raises(ParseError, match="pages are missing"):
        read("voltagepark", {"locations": {**rows("voltagepark", "locations.json"), **changes}})
