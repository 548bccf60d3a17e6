"""Vultr: the traps named in the collected facts, section 3 (4)."""

import json
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest

from pricing.errors import ParseError
from pricing.offer import Tier
from pricing.provider import Keys, Page
from tests.pricing.providers.reading import Reading, providers

A100 = {
    "id": "vcg-a100-12c-120g-80vram",
    "vcpu_count": 12,
    "ram": 122880,
    "monthly_cost": 1750,
    "hourly_cost": 2.397,
    "type": "vcg",
    "locations": ["nrt"],
    "gpu_brand": "NVIDIA",
    "gpu_type": "NVIDIA_A100",
    "gpu_vram_gb": 80,
    "gpu_count": "1",
    "deploy_ondemand": True,
}
METAL = {
    "id": "vbm-112c-2048gb-8-h100-gpu",
    "cpu_threads": 224,
    "ram": 2097152,
    "monthly_cost": 16074.24,
    "hourly_cost": 23.92,
    "locations": ["sea"],
}


def answer(key: str, *rows: dict[str, Any], total: int | None = None, following: str = "") -> dict[str, Any]:
    meta = {"total": len(rows) if total is None else total, "links": {"next": following, "prev": ""}}
    return {key: list(rows), "meta": meta}


@pytest.fixture
def plan(read: Callable[..., Reading]) -> Callable[..., Reading]:
    """Read the A100 plan with what the test changes; `...` takes a field away."""

    def run(**changes: Any) -> Reading:
        row = {key: value for key, value in {**A100, **changes}.items() if value is not ...}
        return read("vultr", {"plans": answer("plans", {**A100, "id": "vcg-other"}, row)})

    return run


@pytest.fixture
def metal(read: Callable[..., Reading]) -> Callable[..., Reading]:
    def run(**changes: Any) -> Reading:
        rows = [METAL, {**METAL, **changes}] if "id" in changes else [{**METAL, **changes}]
        return read("vultr", {"plans_metal": answer("plans_metal", *rows)})

    return run


@pytest.mark.parametrize(
    ("count", "total_gb", "gpu_type", "gpu_count", "fraction", "memory"),
    [
        ("1", 80, "NVIDIA_A100", 1, None, 80),
        ("4", 320, "NVIDIA_A100", 4, None, 80),
        ("1/20", 4, "NVIDIA_A100", 1, 0.05, 4),
        ("1/3", 16, "NVIDIA_A40", 1, 1 / 3, 16),
        (None, 1536, "NVIDIA_B200", 8, None, 192),
        (None, 1536, "AMD_MI325X", 6, None, 256),
        (None, 2304, "AMD_MI355X", 8, None, 288),
        (None, 256, "NVIDIA_A16", 16, None, 16),
    ],
)
def test_count_is_a_text_that_may_be_a_slice_and_memory_is_the_plans(
    plan: Any, count: str | None, total_gb: int, gpu_type: str, gpu_count: int, fraction: float, memory: float
) -> None:
    offer = plan(gpu_count=count or ..., gpu_vram_gb=total_gb, gpu_type=gpu_type).only(
        instance_type=A100["id"]
    )
    assert (offer.gpu_count, offer.gpu_fraction, offer.memory_gb_per_gpu) == (gpu_count, fraction, memory)


def test_dedicated_plan_without_gpu_fields_is_counted_by_its_id(plan: Any) -> None:
    name = "vcg-h100-216c-1914gb-640vram"
    offer = plan(id=name, type="vdm", gpu_count=..., gpu_type=..., gpu_vram_gb=...).only(instance_type=name)
    assert (offer.gpu, offer.gpu_count, offer.memory_gb_per_gpu) == ("H100", 8, 80)


@pytest.mark.parametrize("count", ["3/2", "0", "-1", "two", "8"])
def test_count_that_does_not_belong_to_the_memory_is_a_problem(plan: Any, count: str) -> None:
    found = plan(gpu_count=count)
    assert found.all(instance_type=A100["id"]) == []
    assert found.why(A100["id"])


def test_cpu_plan_is_none_though_it_names_a_gpu_brand(plan: Any) -> None:
    found = plan(id="vc2-2c-4gb", type="vc2", gpu_brand="none")
    assert len(found.offers) == 1
    assert found.problems == []


def test_plan_without_locations_is_listed_and_not_deployable(plan: Any) -> None:
    offer = plan(locations=[]).only(instance_type=A100["id"])
    assert (offer.region, offer.available) == (None, False)


def test_price_of_a_location_goes_before_the_plans(plan: Any) -> None:
    found = plan(locations=["nrt", "blr"], location_cost={"blr": {"hourly_cost": 2.6, "monthly_cost": 1900}})
    assert found.only(instance_type=A100["id"], region="nrt").price_per_hour == Decimal("2.397")
    dearer = found.only(instance_type=A100["id"], region="blr")
    assert (dearer.price_per_hour, dearer.price_per_month_cap) == (Decimal("2.6"), Decimal(1900))


@pytest.mark.parametrize(
    ("changes", "spot"),
    [
        (
            {"hourly_cost_preemptible": 1.2, "monthly_cost_preemptible": 876, "deploy_preemptible": True},
            "1.2",
        ),
        ({"hourly_cost_preemptible": 1.2, "deploy_preemptible": False}, None),
        ({"hourly_cost_preemptible": 1.2}, None),  # plans must say that it can be deployed
        ({"hourly_cost_preemptible": 2.397, "deploy_preemptible": True}, None),
        ({"hourly_cost_preemptible": 3.0, "deploy_preemptible": True}, None),
        ({"hourly_cost_preemptible": 0, "deploy_preemptible": True}, None),
    ],
)
def test_spot_only_where_deployable_and_cheaper(plan: Any, changes: dict[str, Any], spot: str | None) -> None:
    found = [str(o.price_per_hour) for o in plan(**changes).all(tier=Tier.SPOT)]
    assert found == ([] if spot is None else [spot])


def test_free_plan_is_not_a_price_of_zero(plan: Any) -> None:
    found = plan(hourly_cost=0, monthly_cost=0)
    assert found.all(instance_type=A100["id"]) == []
    assert "no price" in found.why(A100["id"])


def test_machine_that_exists_preemptible_only_is_spot_only(metal: Any) -> None:
    name = "vbm-112c-2048gb-8-a100-gpu"
    found = metal(
        id=name, hourly_cost=0, monthly_cost=0, hourly_cost_preemptible=9.6, monthly_cost_preemptible=6451
    )
    offer = found.only(instance_type=name)
    assert (offer.tier, offer.gpu, offer.form, offer.gpu_count) == (Tier.SPOT, "A100", "SXM", 8)


def test_metal_named_l40_holds_l40s(metal: Any) -> None:
    offer = metal(id="vbm-64c-2048gb-8-l40-gpu").only(instance_type="vbm-64c-2048gb-8-l40-gpu")
    assert (offer.gpu, offer.gpu_count, offer.memory_gb_per_gpu) == ("L40S", 8, 48)


def test_unknown_gpu_machine_is_not_guessed_and_cpu_machine_is_none_of_ours(metal: Any) -> None:
    assert "not in the table" in metal(id="vbm-256c-3072gb-8-b300-gpu").why("vbm-256c-3072gb-8-b300-gpu")
    assert metal(id="vbm-24c-256gb-amd").problems == []


@pytest.mark.parametrize(("monthly", "hours"), [(1750, 730), (1610.78, 672), (1783.37, 744)])
def test_month_is_a_cap_of_672_to_744_hours(plan: Any, monthly: float, hours: int) -> None:
    offer = plan(monthly_cost=monthly).only(instance_type=A100["id"])
    assert offer.price_per_month_cap is not None
    assert round(offer.price_per_month_cap / offer.price_per_hour) == hours


def test_month_and_hour_that_do_not_belong_together_are_a_problem(plan: Any) -> None:
    assert "do not belong together" in plan(hourly_cost=239.7).why(A100["id"])  # cents as dollars


def test_memory_is_in_megabytes(plan: Any) -> None:
    assert plan().only(instance_type=A100["id"]).ram_gb == 120


def test_pages_are_followed_to_the_end_and_counted() -> None:
    vultr = providers()["vultr"]
    first = answer("plans", A100, total=2, following="bmV4dA==")
    page = Page(key="plans", url=vultr.pages["plans"], body=json.dumps(first).encode())
    (request,) = vultr.follow(page, Keys())
    assert request.page == "plans#2"
    assert request.url == vultr.pages["plans"] + "&cursor=bmV4dA%3D%3D"
    with pytest.raises(ParseError, match="1 of 2 plans"):
        list(vultr.parse({"plans": page}))
    last = answer("plans", {**A100, "id": "vcg-a100-other"}, total=2)
    second = Page(key="plans#2", url=request.url, body=json.dumps(last).encode())
    assert len(list(vultr.parse({"plans": page, "plans#2": second}))) == 2
    assert list(vultr.follow(second, Keys())) == []


def test_collected_lists(read_shared: Callable[..., Reading]) -> None:
    found = read_shared("vultr", plans="vultr_plans.json", plans_metal="vultr_plans_metal.json")
    assert found.problems == []
    whole = {
        (o.gpu, o.gpu_count, str(o.price_per_hour)) for o in found.all(gpu_fraction=None, tier=Tier.ON_DEMAND)
    }
    assert {("A100", 1, "2.397"), ("A100", 4, "9.589"), ("L40S", 8, "13.368"), ("A16", 16, "7.534")} <= whole
    assert {("H100", 8, "23.92"), ("MI300X", 8, "17.52")} <= whole
    assert {str(o.price_per_hour) for o in found.all(tier=Tier.SPOT)} == {"14.72", "18.4"}
    assert all(o.available is False for o in found.all(gpu="L40S"))
    assert {o.gpu_fraction for o in found.all(gpu="A40") if o.gpu_fraction} == {
        1 / 24,
        1 / 12,
        1 / 6,
        1 / 4,
        1 / 3,
    }
