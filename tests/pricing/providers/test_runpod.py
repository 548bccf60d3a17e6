"""RunPod: the traps named in the collected facts, section 1 (4)."""

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest

from pricing.errors import ParseError
from pricing.offer import Tier
from pricing.provider import Keys
from tests.pricing.providers.reading import Reading, providers

H100 = {
    "id": "NVIDIA H100 80GB HBM3",
    "displayName": "H100 SXM",
    "memoryInGb": 80,
    "secureCloud": True,
    "communityCloud": True,
    "securePrice": 3.29,
    "communityPrice": 2.69,
    "maxGpuCount": 8,
}


@pytest.fixture
def one(read: Callable[..., Reading]) -> Callable[..., Reading]:
    """Read one GPU type; the H100 with what the test changes. `None` stays null, `...` takes a field away."""

    def run(**changes: Any) -> Reading:
        row = {key: value for key, value in {**H100, **changes}.items() if value is not ...}
        return read("runpod", {"gpu_types": {"data": {"gpuTypes": [H100, {**row, "id": row["id"] + "*"}]}}})

    return run


def test_price_is_per_gpu_and_multiplied_up_to_the_largest_count_of_the_cloud(one: Any) -> None:
    found = one(maxGpuCountSecureCloud=8, maxGpuCountCommunityCloud=2, communityPrice=5.98)
    community = found.all(tier=Tier.COMMUNITY, instance_type="NVIDIA H100 80GB HBM3*")
    assert [(o.gpu_count, o.price_per_hour) for o in community] == [
        (1, Decimal("5.98")),
        (2, Decimal("11.96")),
    ]
    assert len(found.all(tier=Tier.SECURE, instance_type="NVIDIA H100 80GB HBM3*")) == 8


def test_largest_count_not_stated_gives_the_usual_sizes_without_a_word_on_stock(one: Any) -> None:
    found = one(maxGpuCount=...).all(tier=Tier.SECURE, instance_type="NVIDIA H100 80GB HBM3*")
    assert [(o.gpu_count, o.available) for o in found] == [(1, None), (2, None), (4, None), (8, None)]


def test_spot_that_equals_on_demand_is_no_spot_offer(one: Any) -> None:
    assert one(secureSpotPrice=3.29, communitySpotPrice=2.69).all(tier=Tier.SPOT) == []


def test_spot_below_on_demand_is_kept_apart_for_each_cloud(one: Any) -> None:
    found = one(secureSpotPrice=2.0, communitySpotPrice=1.5).all(tier=Tier.SPOT, gpu_count=1)
    assert {(o.instance_type, o.price_per_hour) for o in found} == {
        ("NVIDIA H100 80GB HBM3* (secure cloud)", Decimal("2.0")),
        ("NVIDIA H100 80GB HBM3* (community cloud)", Decimal("1.5")),
    }


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"communityCloud": False}, "communityCloud is False"),
        ({"communityPrice": 0.5}, "secure price 3.29"),  # flag true, yet a sixth of secure
        ({"communityPrice": 0.5, "communityCloud": ...}, "secure price 3.29"),
        ({"communityPrice": 1, "communityCloud": ..., "securePrice": 0}, "secure price none"),
    ],
)
def test_placeholder_is_a_problem_and_never_an_offer(one: Any, changes: dict[str, Any], why: str) -> None:
    found = one(**changes)
    assert found.all(tier=Tier.COMMUNITY, instance_type="NVIDIA H100 80GB HBM3*") == []
    assert why in found.why("NVIDIA H100 80GB HBM3*")


@pytest.mark.parametrize("nothing", [0, None])
def test_zero_and_null_mean_not_offered(one: Any, nothing: object) -> None:
    found = one(securePrice=nothing)
    assert found.all(tier=Tier.SECURE, instance_type="NVIDIA H100 80GB HBM3*") == []
    assert found.problems == []


@pytest.mark.parametrize("bad", [-1, True, "about 3", "NaN", [3.29], {"usd": 3.29}])
def test_amount_of_another_form_is_a_problem(one: Any, bad: object) -> None:
    found = one(securePrice=bad)
    assert found.all(instance_type="NVIDIA H100 80GB HBM3*") == []
    assert "securePrice" in found.why("NVIDIA H100 80GB HBM3*")


def test_numeric_text_is_read_exactly(one: Any) -> None:
    offer = one(securePrice="3.290001").only(
        tier=Tier.SECURE, instance_type="NVIDIA H100 80GB HBM3*", gpu_count=1
    )
    assert offer.price_per_hour == Decimal("3.290001")


@pytest.mark.parametrize(("memory", "slice_", "fraction"), [(24, "1g.24gb", 0.25), (48, "2g.48gb", 0.5)])
def test_slice_is_a_fraction_and_not_multiplied(one: Any, memory: int, slice_: str, fraction: float) -> None:
    name = f"NVIDIA RTX PRO 6000 Blackwell Server Edition MIG {slice_}"
    offer = one(id=name, memoryInGb=memory, communityPrice=0).only(instance_type=name + "*")
    assert (offer.gpu_count, offer.gpu_fraction, offer.memory_gb_per_gpu) == (1, fraction, memory)


def test_slice_of_an_unknown_board_is_not_guessed(one: Any) -> None:
    assert "slice" in one(id="NVIDIA X MIG 1g.10gb", memoryInGb=10).why("NVIDIA X MIG 1g.10gb*")


def test_gpu_named_unknown_is_a_problem(read: Callable[..., Reading]) -> None:
    found = read("runpod", {"gpu_types": {"data": {"gpuTypes": [H100, {**H100, "id": "unknown"}]}}})
    assert "does not say" in found.why("unknown")
    assert found.all(gpu="unknown") == []


def test_stock_says_whether_it_is_available(one: Any) -> None:
    found = one(secureStock={"stockStatus": "Low"}, communityStock={"stockStatus": None})
    name = "NVIDIA H100 80GB HBM3*"
    assert found.only(tier=Tier.SECURE, gpu_count=1, instance_type=name).available is True
    assert found.only(tier=Tier.COMMUNITY, gpu_count=1, instance_type=name).available is False


def test_error_of_the_interface_is_told(read: Callable[..., Reading]) -> None:
    with pytest.raises(ParseError, match="Cannot query field"):
        read("runpod", {"gpu_types": {"errors": [{"message": "Cannot query field securePrice"}]}})


def test_renamed_price_field_stops_the_whole_page(read: Callable[..., Reading]) -> None:
    row = {**{k: v for k, v in H100.items() if k != "securePrice"}, "price": 3.29}
    with pytest.raises(ParseError, match=r"no row could be read.*securePrice"):
        read("runpod", {"gpu_types": {"data": {"gpuTypes": [row, row]}}})


def test_catalog_needs_a_key_and_comes_first(read_shared: Callable[..., Reading]) -> None:
    assert [r.page for r in providers()["runpod"].requests(Keys())] == ["gpu_types"]
    with_key = {r.page: r for r in providers()["runpod"].requests(Keys(secret="sesame"))}
    assert with_key["catalog"].headers == {"Authorization": "Bearer sesame"}
    found = read_shared("runpod", gpu_types="runpod_gputypes.json", catalog="runpod_v2_catalog_gpus.json")
    offer = found.only(gpu="NVIDIA GeForce RTX 4090", tier=Tier.SECURE, gpu_count=1)
    assert (offer.price_per_hour, offer.page) == (Decimal("0.44"), "catalog")  # 0.74 in the GraphQL answer


def test_collected_answer_of_2026_08_22(read_shared: Callable[..., Reading]) -> None:
    found = read_shared("runpod", gpu_types="runpod_gputypes.json")
    singles = {(o.gpu, o.tier, str(o.price_per_hour)) for o in found.all(gpu_count=1)}
    assert singles == {
        ("NVIDIA B200", "secure", "6.79"),
        ("NVIDIA B200", "community", "5.98"),
        ("NVIDIA GeForce RTX 3070", "community", "0.13"),
        ("NVIDIA GeForce RTX 4090", "secure", "0.74"),
        ("NVIDIA GeForce RTX 4090", "community", "0.34"),
        ("NVIDIA H100 80GB HBM3", "secure", "3.29"),
        ("NVIDIA H100 80GB HBM3", "community", "2.69"),
        ("NVIDIA H200", "secure", "4.59"),
        ("NVIDIA H200", "community", "3.59"),
        ("NVIDIA L40S", "secure", "0.99"),
        ("NVIDIA L40S", "community", "0.79"),
    }
    assert found.only(gpu="NVIDIA B200", tier=Tier.COMMUNITY, gpu_count=2).price_per_hour == Decimal("11.96")
    assert found.problems == []


def test_lowest_price_keeps_a_cloud_that_is_not_stated_apart(read_shared: Callable[..., Reading]) -> None:
    found = read_shared("runpod", gpu_types="runpod_gputypes_lowestprice.json")
    prices = {(o.gpu, o.tier, o.gpu_count, str(o.price_per_hour)) for o in found.offers}
    assert prices == {
        ("NVIDIA GeForce RTX 3090", "community", 1, "0.3"),
        ("NVIDIA RTX A4000", "on_demand", 1, "0.35"),
        ("NVIDIA RTX A4000", "on_demand", 2, "0.70"),
        ("NVIDIA RTX A4000", "on_demand", 4, "1.40"),
    }
