"""AWS, Azure and Google Cloud: the traps named in the collected facts, sections 6 to 8."""

import csv
import io
import json
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from planner.catalogues.gpus import all_gpus
from pricing.errors import ParseError
from pricing.offer import Billing, Problem, RawOffer, Tier
from pricing.parsing.machines import machines, summed_machines
from pricing.provider import Keys, Page
from pricing.running import gather
from pricing.running.gather import Gathered
from tests.pricing.providers.reading import Reading, as_page, providers

ReadShared = Callable[..., Reading]

# -- the tables of machines --------------------------------------------------------------------------


@pytest.mark.parametrize("provider", ["aws", "azure"])
def test_every_machine_names_a_known_gpu_and_a_plausible_count(provider: str) -> None:
    for name, machine in machines(provider).items():
        assert machine.gpu in all_gpus(), name
        assert machine.gpu_count in {1, 2, 4, 8}, name
        assert machine.gpu_fraction is None or (machine.gpu_count == 1 and 0 < machine.gpu_fraction < 1), name


def test_every_summed_machine_is_plausible() -> None:
    for name, machine in summed_machines().items():
        assert machine.machine.gpu in all_gpus(), name
        assert 1 <= machine.gpus <= 16 or machine.machine.gpu_fraction == float(machine.gpus), name
        assert 4 <= machine.vcpus <= 400, name
        assert 1 <= machine.ram_gib / machine.vcpus <= 15, name
        assert machine.regions, name


def test_machines_agree_with_the_collected_prices(shared: Path) -> None:
    tables: dict[str, Any] = {"aws": machines("aws"), "azure": machines("azure")}
    tables["gcp"] = {name: machine.machine for name, machine in summed_machines().items()}
    with (shared / "data" / "prices" / "offers_snapshot.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["provider"] in tables]
    for row in rows:
        machine = tables[row["provider"]][row["instance_type"]]
        share = machine.gpu_fraction or machine.gpu_count
        assert share == pytest.approx(float(row["gpu_count"]), abs=1e-4), row["instance_type"]
        assert all_gpus()[machine.gpu].memory_gb_vendor * min(1, share) == pytest.approx(
            float(row["gpu_memory_gb"]), rel=0.01
        ), row["instance_type"]
    assert {row["instance_type"] for row in rows if row["provider"] == "gcp"} == set(summed_machines())


# -- AWS ---------------------------------------------------------------------------------------------


@pytest.fixture
def aws_file(recorded: Any) -> Callable[..., str]:
    """The recorded file, with one more row: that of p5.48xlarge, changed."""

    def build(**changes: str) -> str:
        text = recorded("aws", "index.csv")
        lines = text.splitlines()
        columns = next(csv.reader([lines[5]]))
        row = dict(zip(columns, next(csv.reader([lines[6]])), strict=True)) | changes
        out = io.StringIO()
        csv.writer(out, quoting=csv.QUOTE_ALL, lineterminator="\n").writerow(row[c] for c in columns)
        return text + out.getvalue()

    return build


def test_aws_both_forms_of_the_file_are_read(read_shared: ReadShared) -> None:
    by_csv = read_shared("aws", index="aws_ec2_offer_sample.csv")
    assert {
        (o.instance_type, o.canonical_gpu, o.gpu_count, float(o.price_per_hour)) for o in by_csv.offers
    } == {
        ("p5.48xlarge", "H100 SXM", 8, 55.04),
        ("g6.12xlarge", "L4", 4, 4.6016),
        ("g5.48xlarge", "A10G", 8, 16.288),
    }
    by_json = read_shared("aws", index="aws_ec2_offer_sample.json")
    assert {
        (o.instance_type, o.canonical_gpu, o.gpu_count, float(o.price_per_hour)) for o in by_json.offers
    } == {
        ("p5.48xlarge", "H100 SXM", 8, 55.04),
        ("p4d.24xlarge", "A100 40GB SXM", 8, 21.957642),
        ("g6e.xlarge", "L40S", 1, 1.861),
        ("g5.12xlarge", "A10G", 4, 5.672),
    }


@pytest.mark.parametrize(
    "changes",
    [
        {"TermType": "Reserved"},
        {"Tenancy": "Dedicated"},
        {"Operating System": "Windows"},
        {"Operating System": "RHEL"},
        {"Pre Installed S/W": "SQL Web"},
        {"CapacityStatus": "UnusedCapacityReservation"},
        {"CapacityStatus": "AllocatedCapacityReservation", "PricePerUnit": "0.0000000000"},
        {"MarketOption": "CapacityBlock", "PricePerUnit": "0.0000000000"},
        {"Currency": "CNY"},
    ],
)
def test_aws_other_rows_of_an_instance_are_not_its_price(
    read: Any, aws_file: Any, changes: dict[str, str]
) -> None:
    found = read("aws", {"index": aws_file(**{"PricePerUnit": "1.0000000000", **changes})})
    assert found.only(instance_type="p5.48xlarge").price_per_hour == Decimal("55.04")
    assert found.problems == []


@pytest.mark.parametrize("size", [1, 7, 64, 1000, 10**6])
@pytest.mark.parametrize("end", ["", "\n"])
def test_aws_what_is_let_through_gives_the_same_prices_however_it_arrives(
    read: Any, recorded: Any, size: int, end: str
) -> None:
    (request, *_) = providers()["aws"].requests(Keys())
    assert request.sieve is not None
    text = recorded("aws", "index.csv").rstrip("\n")
    reserved = text.splitlines()[-1].replace('"OnDemand"', '"Reserved"')
    whole = (text + f"\n{reserved}" * 50 + end).encode()
    passed = b"".join(request.sieve(whole[i : i + size] for i in range(0, len(whole), size)))
    assert passed.count(reserved.encode()) == (0 if end else 1)  # the last line, whatever it is
    assert read("aws", {"index": passed.decode()}).offers == read("aws", {"index": whole.decode()}).offers


def test_aws_a_file_that_is_cut_off_is_refused_behind_the_sieve_too(read: Any, recorded: Any) -> None:
    (request, *_) = providers()["aws"].requests(Keys())
    assert request.sieve is not None
    cut = recorded("aws", "index.csv").encode()[:-100]
    with pytest.raises(ParseError, match="the last line is cut off"):
        read("aws", {"index": b"".join(request.sieve([cut])).decode()})


def test_aws_row_at_zero_is_a_problem(read: Any, aws_file: Any) -> None:
    found = read(
        "aws", {"index": aws_file(**{"Instance Type": "p4de.24xlarge", "PricePerUnit": "0.0000000000"})}
    )
    assert "not a price" in found.why("p4de.24xlarge")
    assert found.all(instance_type="p4de.24xlarge") == []


def test_aws_two_prices_of_one_instance_stop_the_file(read: Any, aws_file: Any) -> None:
    with pytest.raises(ParseError, match=r"p5.48xlarge is listed at 55.0400000000 and at 98.3200000000"):
        read("aws", {"index": aws_file(PricePerUnit="98.3200000000")})


@pytest.mark.parametrize(
    ("instance", "gpu", "count", "fraction"),
    [
        ("p5en.48xlarge", "H200 SXM", 8, None),  # stated without GPU or as H100
        ("g7e.2xlarge", "RTX PRO 6000 Blackwell Server", 1, None),  # stated as GB202
        ("g6e.12xlarge", "L40S", 4, None),
        ("p3.16xlarge", "V100 16GB SXM2", 8, None),  # stated with 16 GPUs
        ("gr6f.4xlarge", "L4", 1, 0.5),  # stated with 0 GPUs
    ],
)
def test_aws_gpus_come_from_our_table(
    read: Any, aws_file: Any, instance: str, gpu: str, count: int, fraction: float | None
) -> None:
    offer = read("aws", {"index": aws_file(**{"Instance Type": instance, "GPU": "0"})}).only(
        instance_type=instance
    )
    assert (offer.canonical_gpu, offer.gpu_count, offer.gpu_fraction) == (gpu, count, fraction)


def test_aws_new_gpu_instance_is_a_problem_and_a_cpu_instance_none_of_ours(read: Any, aws_file: Any) -> None:
    assert "machines.toml" in read("aws", {"index": aws_file(**{"Instance Type": "p7.48xlarge"})}).why(
        "p7.48xlarge"
    )
    other = {"Instance Type": "trn2.48xlarge", "Instance Family": "Machine Learning ASIC Instances"}
    assert read("aws", {"index": aws_file(**other)}).problems == []


def test_aws_column_that_is_gone_stops_the_file(read: Any, recorded: Any) -> None:
    with pytest.raises(ParseError, match="CapacityStatus"):
        read("aws", {"index": recorded("aws", "index.csv").replace('"CapacityStatus"', '"Capacity"')})


def test_aws_file_on_disk_is_streamed(tmp_path: Path, recorded: Any) -> None:
    text = recorded("aws", "index.csv")
    windows = next(line for line in text.splitlines() if '"Windows"' in line)
    path = tmp_path / "index.csv"
    path.write_text(text + (windows + "\n") * 40_000)
    size = path.stat().st_size
    aws = providers()["aws"]
    tracemalloc.start()
    found = list(aws.parse({"us-east-1": Page(key="us-east-1", url=aws.pages["index"], file=path)}))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert size > 15e6
    assert peak < 2e6
    assert len(found) == 6


def test_aws_json_cut_off_behind_the_last_price_is_noticed(read: Any, shared: Path) -> None:
    text = (shared / "data/prices/payloads/aws_ec2_offer_sample.json").read_text()
    with pytest.raises(ParseError):
        read("aws", {"index": text.rstrip()[:-2]})


# -- Azure -------------------------------------------------------------------------------------------


@pytest.fixture
def azure(read: Any, recorded: Any) -> Callable[..., Reading]:
    """The recorded answer with one more row: the on-demand H100 NVL, changed."""

    def run(**changes: Any) -> Reading:
        answer = json.loads(recorded("azure", "prices.json"))
        rows = answer["Items"]
        row = next(r for r in rows if r["skuName"] == "NC40adsH100v5" and r["type"] == "Consumption")
        rows.append(row | changes)
        answer["Count"] = len(rows)
        return read("azure", {"prices": answer})

    return run


def only_h100(found: Reading) -> RawOffer:
    return found.only(instance_type="Standard_NC40ads_H100_v5", tier=Tier.ON_DEMAND)


@pytest.mark.parametrize(
    "changes",
    [
        {"productName": "Virtual Machines NCadsH100v5 Series Windows"},
        {"productName": "NCadsH100v5 Series Cloud Services"},
        {"skuName": "NC40adsH100v5 Low Priority", "meterName": "NC40adsH100v5 Low Priority"},
        {"type": "DevTestConsumption"},
        {"isPrimaryMeterRegion": False},
    ],
)
def test_azure_other_rows_of_a_size_are_not_its_price(azure: Any, changes: dict[str, Any]) -> None:
    found = azure(retailPrice=1.0, effectiveStartDate="2026-06-01T00:00:00Z", **changes)
    assert str(only_h100(found).price_per_hour) == "6.98"


def test_azure_reservation_is_the_price_of_its_term(read_shared: ReadShared) -> None:
    found = read_shared("azure", prices="azure_retail.json")
    a100 = {o.tier: o for o in found.all(instance_type="Standard_NC24ads_A100_v4", region="eastus")}
    assert str(a100[Tier.ON_DEMAND].price_per_hour) == "3.673"
    assert str(a100[Tier.SPOT].price_per_hour) == "0.736436"
    assert round(a100[Tier.RESERVED_1Y].price_per_hour, 3) == Decimal("2.401")  # 21033 / 8760
    assert round(a100[Tier.RESERVED_3Y].price_per_hour, 3) == Decimal("1.363")  # 35821 / 26280
    assert (a100[Tier.RESERVED_3Y].commitment_days, a100[Tier.RESERVED_3Y].billing) == (
        1095,
        Billing.PER_TERM,
    )


def test_azure_five_years_are_another_term(read: Any, recorded: Any) -> None:
    found = read("azure", {"prices": recorded("azure", "prices.json")})
    five = found.only(instance_type="Standard_ND96isr_H100_v5", tier=Tier.RESERVED_OTHER)
    assert (five.commitment_days, round(five.price_per_hour, 2)) == (1825, Decimal("39.33"))


def test_azure_repeated_row_counts_once_and_the_newest_price_counts(azure: Any) -> None:
    assert str(only_h100(azure()).price_per_hour) == "6.98"
    found = azure(retailPrice=5.5, effectiveStartDate="2026-06-01T00:00:00Z")
    assert str(only_h100(found).price_per_hour) == "5.5"
    found = azure(retailPrice=5.5, effectiveStartDate="2020-01-01T00:00:00Z")
    assert str(only_h100(found).price_per_hour) == "6.98"


def test_azure_price_of_a_later_day_waits_for_it(recorded: Any) -> None:
    answer = json.loads(recorded("azure", "prices.json"))
    row = next(r for r in answer["Items"] if r["skuName"] == "NC40adsH100v5" and r["type"] == "Consumption")
    answer["Items"].append(row | {"retailPrice": 9.074, "effectiveStartDate": "2027-06-01T00:00:00Z"})
    answer["Count"] = len(answer["Items"])
    page = Page(key="prices", url="https://prices.azure.com/", body=json.dumps(answer).encode())

    def seen(*at: int) -> Gathered:
        return gather.read(providers()["azure"], {"prices": page}, seen_at=datetime(*at, tzinfo=UTC), fx={})

    before, after = seen(2027, 5, 31, 23, 59), seen(2027, 6, 1)
    for found, expected in ((before, "6.98"), (after, "9.074")):
        of_size = [o for o in found.offers if o.instance_type == "Standard_NC40ads_H100_v5"]
        (listed,) = [o for o in of_size if o.tier is Tier.ON_DEMAND]
        assert listed.usd_per_hour == Decimal(expected)
    assert "a price that is in force only from 2027-06-01" in [problem.why for problem in before.problems]
    assert len(after.problems) == len(before.problems) - 1


@pytest.mark.parametrize(
    "changes",
    [{"retailPrice": 0}, {"currencyCode": "EUR"}, {"unitOfMeasure": "100 Hours"}, {"tierMinimumUnits": 10}],
)
def test_azure_row_in_another_unit_is_a_problem(azure: Any, changes: dict[str, Any]) -> None:
    found = azure(armRegionName="westeurope", **changes)
    assert found.all(region="westeurope") == []
    assert len(found.problems) == 1


@pytest.mark.parametrize(
    ("sku", "count", "fraction"),
    [
        ("Standard_NC80adis_H100_v5", 2, None),  # not 8
        ("Standard_NV6ads_A10_v5", 1, 1 / 6),
        ("Standard_NV72ads_A10_v5", 2, None),
        ("Standard_ND128isr_NDR_GB200_v6", 4, None),
    ],
)
def test_azure_gpus_come_from_our_table(azure: Any, sku: str, count: int, fraction: float | None) -> None:
    offer = azure(armSkuName=sku).only(instance_type=sku)
    assert (offer.gpu_count, offer.gpu_fraction) == (count, fraction)


def test_azure_size_without_an_established_count_is_one_problem(azure: Any) -> None:
    name = "Standard_NC128ds_xl_RTXPRO6000BSE_v6"
    assert "machines.toml" in azure(armSkuName=name).why(name)
    assert azure(armSkuName="Standard_D4s_v5").problems == []


def test_azure_count_must_match_and_pages_are_followed(read: Any, recorded: Any) -> None:
    answer = json.loads(recorded("azure", "prices.json"))
    with pytest.raises(ParseError, match="items"):
        read("azure", {"prices": {**answer, "Count": 1000}})
    azure = providers()["azure"]
    first = next(iter(azure.requests(Keys())))
    assert "armRegionName%20eq%20%27eastus%27" in first.url
    link = "https://prices.azure.com:443/api/retail/prices?$skip=1000"
    page = Page(key=first.page, url=first.url, body=json.dumps({**answer, "NextPageLink": link}).encode())
    (further,) = azure.follow(page, Keys())
    assert (further.page, further.url) == ("eastus#2", link)


# -- Google Cloud ------------------------------------------------------------------------------------


def sku(
    description: str, dollars: float, unit: str = "h", usage: str = "OnDemand", **changes: Any
) -> dict[str, Any]:
    units, nanos = divmod(round(dollars * 10**9), 10**9)
    price = {"currencyCode": "USD", "units": str(units), "nanos": nanos} | changes
    expression = {"usageUnit": unit, "tieredRates": [{"startUsageAmount": 0, "unitPrice": price}]}
    return {
        "description": description,
        "category": {"resourceFamily": "Compute", "resourceGroup": "X", "usageType": usage},
        "serviceRegions": ["us-central1"],
        "pricingInfo": [{"pricingExpression": expression}],
    }


A2 = [
    sku("A2 Instance Core running in Americas", 0.031611),
    sku("A2 Instance Ram running in Americas", 0.004237, "GiBy.h"),
    sku("Nvidia Tesla A100 GPU running in Americas", 2.933908),
]


@pytest.fixture
def gcp(read: Any) -> Callable[..., Reading]:
    return lambda *skus: read("gcp", {"skus": {"skus": list(skus), "nextPageToken": ""}})


def test_gcp_machine_is_the_sum_of_its_parts(read_shared: ReadShared, gcp: Any) -> None:
    # 12 x 0.031611 + 85 x 0.004237 + 2.933908
    assert gcp(*A2).only(instance_type="a2-highgpu-1g").price_per_hour == Decimal("3.673385")
    found = read_shared("gcp", skus="gcp_skus.json")
    assert found.only(instance_type="a2-highgpu-1g").price_per_hour == Decimal("3.673385")
    assert found.only(instance_type="a2-megagpu-16g").price_per_hour == Decimal("55.739504")


def test_gcp_sums_agree_with_the_published_prices(read: Any, recorded: Any, shared: Path) -> None:
    contents = {"skus": recorded("gcp", "skus.json"), "skus#2": recorded("gcp", "skus_2.json")}
    with (shared / "data" / "prices" / "offers_snapshot.csv").open(newline="") as file:
        published = {
            row["instance_type"]: Decimal(row["price_usd_per_hour"])
            for row in csv.DictReader(file)
            if (row["provider"], row["region"], row["tier"]) == ("gcp", "us-central1", "on_demand")
        }
    offers = read("gcp", contents).offers
    assert len(offers) == 9
    for offer in offers:
        assert round(offer.price_per_hour, 4) == round(published[offer.instance_type], 4)


def test_gcp_newest_price_in_force_counts_in_whatever_order(gcp: Any) -> None:
    core, *others = A2
    (now,) = core["pricingInfo"]
    dear = sku(core["description"], 9.0)["pricingInfo"][0]

    def total(*prices: tuple[str, Any]) -> Decimal:
        listed = [price | {"effectiveTime": f"{day}T00:00:00Z"} for day, price in prices]
        pages = {
            "skus": as_page(providers()["gcp"], "skus", {"skus": [core | {"pricingInfo": listed}, *others]})
        }
        found = gather.read(providers()["gcp"], pages, seen_at=datetime(2026, 11, 30, tzinfo=UTC), fx={})
        return next(o for o in found.offers if o.instance_type == "a2-highgpu-1g").usd_per_hour

    assert total(("2026-06-01", now), ("2027-01-01", dear)) == Decimal("3.673385")
    assert total(("2026-06-01", now), ("2025-06-01", dear)) == Decimal("3.673385")
    assert total(("2026-11-30", dear), ("2026-06-01", now)) > 100
    later = core | {"pricingInfo": [now | {"effectiveTime": "2027-01-01T00:00:00Z"}]}
    pages = {"skus": as_page(providers()["gcp"], "skus", {"skus": [later, *others]})}
    (item,) = [
        item
        for item in providers()["gcp"].parse(
            {key: replace(page, seen_at=datetime(2026, 11, 30, tzinfo=UTC)) for key, page in pages.items()}
        )
        if isinstance(item, Problem) and item.what == core["description"]
    ]
    assert "in force only from 2027-01-01" in item.why


def test_gcp_local_disk_that_comes_along_is_in_the_sum(gcp: Any) -> None:
    parts = [*A2, sku("Nvidia Tesla A100 80GB GPU running in Americas", 3.92808)]
    without = gcp(*parts)
    assert without.all(instance_type="a2-ultragpu-1g") == []
    assert "no price of ssd" in without.why("a2-ultragpu-1g, on_demand")
    found = gcp(*parts, sku("SSD backed Local Storage", 0.08, "GiBy.mo"))
    # 12 x 0.031611 + 170 x 0.004237 + 3.92808 + 375 x 0.08 / 730
    assert round(found.only(instance_type="a2-ultragpu-1g").price_per_hour, 6) == Decimal("5.068798")


def test_gcp_accelerator_without_its_host_is_no_offer(gcp: Any) -> None:
    found = gcp(*A2, sku("RTX 6000 96GB running in Americas", 1.09565))
    assert found.all(instance_type="g4-standard-48") == []
    assert "no price of core, ram" in found.why("g4-standard-48, on_demand")


def test_gcp_preview_at_zero_is_a_problem(gcp: Any) -> None:
    found = gcp(*A2, sku("RTX 6000 96GB running in Americas", 0))
    assert "listed at 0" in found.why("RTX 6000 96GB running in Americas")


def test_gcp_spot_is_the_sum_of_spot_parts_and_never_mixed(gcp: Any) -> None:
    spot_gpu = sku(
        "Nvidia Tesla A100 GPU attached to Spot Preemptible VMs running in Americas", 1.0, usage="Preemptible"
    )
    assert gcp(*A2, spot_gpu).all(tier=Tier.SPOT) == []
    found = gcp(
        *A2,
        spot_gpu,
        sku("Spot Preemptible A2 Instance Core running in Americas", 0.01, usage="Preemptible"),
        sku("Spot Preemptible A2 Instance Ram running in Americas", 0.001, "GiBy.h", usage="Preemptible"),
    )
    # 12 x 0.01 + 85 x 0.001 + 1
    assert found.only(instance_type="a2-highgpu-1g", tier=Tier.SPOT).price_per_hour == Decimal("1.205")


def test_gcp_commitments_and_other_families_are_not_taken_for_parts(gcp: Any) -> None:
    found = gcp(
        *A2,
        sku("Commitment v1: Nvidia Tesla A100 GPU running in Americas for 1 Year", 1.0, usage="Commit1Yr"),
        sku("N2 Instance Core running in Americas", 0.01),
        sku(
            "Nvidia Tesla A100 GPU attached to Spot Preemptible VMs running in Americas",
            0.5,
            usage="Preemptible",
        ),
    )
    assert found.only(instance_type="a2-highgpu-1g").price_per_hour == Decimal("3.673385")


@pytest.mark.parametrize("word", ["Mega", "Plus"])
def test_gcp_renamed_part_is_still_found(gcp: Any, word: str) -> None:
    parts = [
        sku("A3Plus Instance Core running in Americas", 0.03),
        sku("A3Plus Instance Ram running in Americas", 0.003, "GiBy.h"),
        sku(f"Nvidia H100 80GB {word} GPU running in Americas", 9.0),
        sku("SSD backed Local Storage", 0.08, "GiBy.mo"),
    ]
    found = gcp(*({**part, "serviceRegions": ["us-east4"]} for part in parts))
    # 208 x 0.03 + 1872 x 0.003 + 8 x 9 + 6000 x 0.08 / 730
    assert round(found.only(instance_type="a3-megagpu-8g").price_per_hour, 6) == Decimal("84.513534")


def test_gcp_small_a3_machines_are_sold_as_spot_only(gcp: Any) -> None:
    on_demand = [
        sku("A3 Instance Core running in Americas", 0.03),
        sku("A3 Instance Ram running in Americas", 0.003, "GiBy.h"),
        sku("Nvidia H100 80GB GPU running in Americas", 9.0),
        sku("SSD backed Local Storage", 0.08, "GiBy.mo"),
    ]
    assert {o.instance_type for o in gcp(*on_demand).all(canonical_gpu="H100 SXM")} == {"a3-highgpu-8g"}


def test_gcp_region_without_the_machine_gets_no_offer(gcp: Any) -> None:
    elsewhere = [{**row, "serviceRegions": ["us-central1", "us-south1"]} for row in A2]
    assert {o.region for o in gcp(*elsewhere).offers} == {"us-central1"}


def test_gcp_twin_parts_count_once_and_differing_ones_none(gcp: Any) -> None:
    assert gcp(*A2, A2[2]).only(instance_type="a2-highgpu-1g").price_per_hour == Decimal("3.673385")
    found = gcp(*A2, sku("Nvidia Tesla A100 GPU running in Americas", 1.0))
    assert found.all(instance_type="a2-highgpu-1g") == []
    assert "several prices" in found.why("Nvidia Tesla A100 GPU in us-central1, on_demand")


@pytest.mark.parametrize("changes", [{"currencyCode": "EUR"}])
def test_gcp_part_in_another_currency_is_a_problem(gcp: Any, changes: dict[str, Any]) -> None:
    found = gcp(A2[0], A2[1], sku("Nvidia Tesla A100 GPU running in Americas", 2.9, **changes))
    assert found.all(instance_type="a2-highgpu-1g") == []
    assert "EUR" in found.why("Nvidia Tesla A100 GPU running in Americas")


def test_gcp_key_travels_in_a_header_and_pages_are_followed(read: Any, recorded: Any) -> None:
    gcp = providers()["gcp"]
    assert gcp.requires_key
    (first,) = gcp.requests(Keys(secret="sesame"))
    assert first.headers == {"X-Goog-Api-Key": "sesame"}
    assert "sesame" not in first.url
    page = Page(key="skus", url=first.url, body=recorded("gcp", "skus.json").encode())
    (further,) = gcp.follow(page, Keys(secret="sesame"))
    assert further.page == "skus#2"
    assert further.url.endswith("&pageToken=bmV4dA%3D%3D")
    with pytest.raises(ParseError, match="last"):
        read("gcp", {"skus": recorded("gcp", "skus.json")})
