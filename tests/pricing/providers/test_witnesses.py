"""Catalogues of other clouds' prices: the traps named in the collected facts, sections 22 and 24."""

import io
import json
import zipfile
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest

from pricing.errors import ParseError
from pricing.offer import Tier
from pricing.parsing.witnessing import cloud_of, form_in, key_of
from pricing.provider import Keys, Page
from tests.pricing.providers.reading import Reading, providers

ReadShared = Callable[..., Reading]
GPUHUNT = "instance_name,location,price,cpu,memory,gpu_count,gpu_name,gpu_memory,spot,disk_size\n"
SKYPILOT = "InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,Price,SpotPrice,Region,GpuInfo\n"


def packed(name: str, text: str) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, text)
    return out.getvalue()


@pytest.mark.parametrize(
    ("names", "cloud"),
    [
        (["p5.48xlarge", "p6-b200.48xlarge", "g4dn.metal"], "aws"),
        (["Standard_NC24ads_A100_v4"], "azure"),
        (["a2-highgpu-1g", "g2-standard-4"], "gcp"),
        (["gpu_8x_h100_sxm5"], "lambda"),
        (["BM.GPU.H100.8", "VM.GPU.A10.1"], "oci"),
        (["p5.48xlarge", "gpu_8x_v100"], None),
        (["H100 SXM"], None),
        ([], None),
    ],
)
def test_cloud_is_known_by_the_form_of_all_names(names: list[str], cloud: str | None) -> None:
    assert cloud_of(names) == cloud


def test_clouds_and_forms_are_named_as_ours() -> None:
    assert [key_of(name) for name in ("datacrunch", "lambdalabs", "Crusoe")] == ["verda", "lambda", "crusoe"]
    assert [form_in(name) for name in ("gpu_8x_h100_sxm5", "n3-H100x8-NVLink", "h100-nvl", "gpu_1x_a10")] == [
        "SXM",
        None,
        "NVL",
        None,
    ]


# -- gpuhunt -----------------------------------------------------------------------------------------


def test_gpuhunt_packed_catalogue_names_its_cloud(read: Any) -> None:
    text = GPUHUNT + "gpu_8x_h100_sxm5,us-east-1,23.92,208,1800.0,8,H100,80.0,False,\n"
    (offer,) = read("gpuhunt", {"catalog": packed("lambda.csv", text)}).offers
    assert (offer.cloud, offer.gpu_count, offer.form, str(offer.price_per_hour)) == (
        "lambda",
        8,
        "SXM",
        "23.92",
    )


def test_gpuhunt_key_of_the_page_names_the_cloud(read: Any) -> None:
    text = GPUHUNT + "1H100.80S.30V,FIN-01,3.25,30,120.0,1,H100,80.0,False,\n"
    assert read("gpuhunt", {"datacrunch/catalog": text}).only().cloud == "verda"
    with pytest.raises(ParseError, match="CLOUD/catalog"):
        read("gpuhunt", {"catalog": text})


def test_gpuhunt_count_that_our_table_contradicts_is_a_problem(read: Any) -> None:
    text = GPUHUNT + (
        "p5.48xlarge,us-east-1,55.04,192,2048.0,1,H100,80.0,False,\n"
        "p4d.24xlarge,us-east-1,21.957642,96,1152.0,8,A100,40.0,True,\n"
        "m5.large,us-east-1,0.096,2,8.0,0,,,False,\n"
    )
    found = read("gpuhunt", {"catalog": text})
    assert "p5.48xlarge has 8" in found.why("p5.48xlarge")
    assert found.only().tier is Tier.SPOT


@pytest.mark.parametrize(
    "body",
    [
        b"PK\x03\x04 broken",
        packed("aws.csv", "another,header\n1,2\n"),
        packed("readme.txt", "no catalogue"),
        GPUHUNT.encode(),
    ],
)
def test_gpuhunt_broken_catalogue_is_refused(read: Any, body: bytes) -> None:
    with pytest.raises(ParseError):
        read("gpuhunt", {"aws/catalog": body})


def test_gpuhunt_archive_that_inflates_too_far_is_refused(read: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pricing.providers.gpuhunt._MAX_BYTES", 1000)
    text = GPUHUNT + "p5.48xlarge,us-east-1,55.04,192,2048.0,8,H100,80.0,False,\n" * 100
    with pytest.raises(ParseError, match="too large"):
        read("gpuhunt", {"catalog": packed("aws.csv", text)})


def test_gpuhunt_asks_for_the_current_version_first() -> None:
    gpuhunt = providers()["gpuhunt"]
    first = next(iter(gpuhunt.requests(Keys())))
    assert first.page == "aws/version"
    (further,) = gpuhunt.follow(Page(key=first.page, url=first.url, body=b"20260720\n"), Keys())
    assert (further.page, further.url.rpartition("/v3/")[2]) == ("aws/catalog", "aws/20260720/catalog.zip")
    with pytest.raises(ParseError, match="not a version"):
        list(gpuhunt.follow(Page(key=first.page, url=first.url, body=b"<html>no</html>"), Keys()))


# -- SkyPilot ----------------------------------------------------------------------------------------


def test_skypilot_zones_count_once_and_differing_spot_prices_none(read_shared: ReadShared) -> None:
    found = read_shared("skypilot", vms="skypilot_catalog_vms_aws.csv")
    p5 = found.only(instance_type="p5.48xlarge")
    assert (p5.cloud, p5.tier, str(p5.price_per_hour)) == (
        "aws",
        Tier.ON_DEMAND,
        "98.32",
    )  # stale: it is 55.04
    p4de = found.only(instance_type="p4de.24xlarge", tier=Tier.ON_DEMAND)  # as A100 and as A100-80GB
    assert (p4de.canonical_gpu, p4de.gpu_count) == ("A100 80GB SXM", 8)


def test_skypilot_memory_is_of_one_gpu(read_shared: ReadShared) -> None:
    found = read_shared("skypilot", vms="skypilot_catalog_vms_lambda.csv")
    assert found.only(instance_type="gpu_8x_a100_80gb_sxm4").memory_gb_per_gpu == 80
    assert {o.cloud for o in found.offers} == {"lambda"}


def test_skypilot_system_memory_in_the_gpu_s_place_is_not_taken(read: Any) -> None:
    info = "\"{'Gpus': [{'Name': 'X', 'MemoryInfo': {'SizeInMiB': 1638400}}]}\""
    text = SKYPILOT + f"gpu-h100-sxm_8gpu,H100,8,128,1600,30.8,,eu-north1,{info}\n"
    assert read("skypilot", {"nebius/vms": text}).only().memory_gb_per_gpu is None


def test_skypilot_accelerator_without_instance_is_no_machine(read: Any) -> None:
    info = "\"{'Gpus': []}\""
    text = SKYPILOT + (
        f",A100,1,,,2.933908,,us-central1,{info}\n"
        f"g4-standard-12,RTX PRO 6000,0.25,12,45,1.12,,us-central1,{info}\n"
        f"g4-standard-48,RTX PRO 6000,2,48,180,4.5,,us-central1,{info}\n"
        f"a3-highgpu-8g,H100,8,208,1872,NaN,,us-central1,{info}\n"
    )
    found = read("skypilot", {"vms": text})
    assert found.only().gpu_fraction == 0.25
    assert "has 1" in found.why("g4-standard-48")
    assert "NaN" in found.why("a3-highgpu-8g")


def test_skypilot_two_list_prices_of_one_instance_are_none(read: Any) -> None:
    rows = "".join(f"gpu_1x_a10,A10,1,30,200,{price},,us-east-1,{{}}\n" for price in (0.75, 1.29))
    text = SKYPILOT + rows + "gpu_1x_a6000,A6000,1,14,100,0.8,,us-east-1,{}\n"
    found = read("skypilot", {"vms": text})
    assert found.all(instance_type="gpu_1x_a10") == []
    assert "2 prices" in found.why("gpu_1x_a10")


def test_skypilot_asks_only_for_the_newest_schema() -> None:
    urls = [request.url for request in providers()["skypilot"].requests(Keys())]
    assert all("/catalogs/v8/" in url for url in urls)
    assert not any("runpod" in url for url in urls)


# -- Shadeform ---------------------------------------------------------------------------------------


def test_shadeform_cents_are_the_instance_s_and_name_the_cloud(read_shared: ReadShared) -> None:
    found = read_shared("shadeform", types="shadeform_instance_types.json")
    offer = found.only(cloud="hyperstack", instance_type="n3-H100-SXM5x8", region="montreal-canada-2")
    assert (offer.gpu_count, str(offer.price_per_hour), offer.form, offer.available) == (
        8,
        "25.6",
        "SXM",
        True,
    )


def test_shadeform_name_goes_before_the_interconnect(read_shared: ReadShared) -> None:
    found = read_shared("shadeform", types="shadeform_instance_types.json")
    assert found.only(cloud="crusoe").form == "SXM"  # "pcie" beside a100-80gb-sxm-ib.8x
    assert found.only(instance_type="n3-H100x8-NVLink").form == "PCIe"  # cards with a bridge


def test_shadeform_instance_under_two_names_counts_once(read: Any, recorded: Any) -> None:
    types = json.loads(recorded("shadeform", "types.json"))
    assert [row["cloud"] for row in types["instance_types"]].count("crusoe") == 2
    assert len(read("shadeform", {"types": types}).all(cloud="crusoe")) == 1


def test_shadeform_price_of_a_region_is_in_dollars(read: Any, recorded: Any) -> None:
    types = json.loads(recorded("shadeform", "types.json"))
    row = types["instance_types"][0]
    row["availability"][0]["hourly_price"] = "4.10"
    found = read("shadeform", {"types": types})
    assert found.only(region=row["availability"][0]["region"]).price_per_hour == Decimal("4.10")
    assert found.only(region=row["availability"][1]["region"]).price_per_hour == Decimal("3.92")
