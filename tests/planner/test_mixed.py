"""Owned base load and rented peaks: the best number is found, and it is the best."""

import itertools
import math
from collections.abc import Sequence

import pytest

from planner.answers.choice import counted_purchases
from planner.compare import Plan
from planner.rates import Billing, Rate, Tier
from planner.supply.mixed import _numbers
from tests.planner.plans import SMALL, plan_of, rate

PEAKED = "8-18=1,18-8=0.3"
GPU = {"gpu": "RTX 4090", "gpus": 1, "owner": "home"}


def planned(rates: Sequence[Rate], profile: str = PEAKED, **options: object) -> Plan:
    asked = {"tokens_per_month": 3e9, "load_profile": profile, **GPU, **options}
    return plan_of(rates, SMALL, **asked)


def test_every_number_is_tried_and_the_cheapest_is_the_answer() -> None:
    mixed = planned([rate("runpod", "RTX 4090", 1, "0.40")]).mixed
    assert mixed is not None
    assert [mix.own_count for mix in mixed.tried] == list(range(len(mixed.tried)))
    assert mixed.tried[-1].rent_count == 0
    assert mixed.best.usd_per_month == min(mix.usd_per_month for mix in mixed.tried)
    assert mixed.best.usd_per_month <= mixed.tried[0].usd_per_month
    assert all(one.rent_count > two.rent_count for one, two in itertools.pairwise(mixed.tried))


def test_the_ends_are_the_plan_s_own_options() -> None:
    found = planned([rate("runpod", "RTX 4090", 1, "0.40")])
    mixed = found.mixed
    assert mixed is not None
    assert found.rental is not None
    assert found.purchase is not None
    assert mixed.tried[0].usd_per_month == pytest.approx(found.rental.usd_per_month)
    assert (mixed.tried[0].own_count, mixed.tried[0].rent_count) == (0, found.rental.replicas)
    assert mixed.tried[-1].own_count == found.purchase.replicas
    assert mixed.tried[-1].own_usd_per_month == pytest.approx(found.purchase.usd_per_month, rel=1e-6)


def test_rents_by_hand() -> None:
    mixed = planned([rate("runpod", "RTX 4090", 1, "0.40")]).mixed
    assert mixed is not None
    capacity = mixed.rental.point.capacity_tokens_per_s  # type: ignore[union-attr]
    mean = 3e9 / (730 * 3600)
    day, evening = (mean * 24 / (10 + 14 * 0.3) * weight for weight in (1.0, 0.3))
    for mix in mixed.tried:
        by_day = math.ceil(max(day - mix.own_count * capacity, 0.0) / capacity - 1e-9)
        at_night = math.ceil(max(evening - mix.own_count * capacity, 0.0) / capacity - 1e-9)
        hours = at_night * 730 + (by_day - at_night) * 10 * 30.4
        assert mix.rent_usd_per_month == pytest.approx(0.40 * hours)
        assert mix.rent_count == by_day


@pytest.mark.parametrize(("usd_per_hour", "way"), [("0.02", "rent"), ("0.16", "mix"), ("5.00", "own")])
def test_cheap_rents_own_none_dear_ones_all_and_between_them_a_mix(usd_per_hour: str, way: str) -> None:
    found = planned([rate("runpod", "RTX 4090", 1, usd_per_hour)])
    mixed = found.mixed
    assert mixed is not None
    assert mixed.is_mixed == (way == "mix")
    assert (mixed.best.own_count == 0) == (way == "rent")
    assert (mixed.best.rent_count == 0) == (way == "own")
    (note,) = (note for note in found.notes if note.startswith("Owned base load"))
    assert {"rent": "beats renting all", "mix": "from Runpod cost", "own": "beats owning all"}[way] in note
    said = [note for note in found.notes if note.startswith("The answer is a mix: what is compared below")]
    (change,) = (note for note in found.notes if note.startswith("What would change"))
    assert change.startswith(f"What would change the {'cheaper of the two' if way == 'mix' else 'answer'} (")
    if way == "mix":
        usd = f"{mixed.best.usd_per_month:,.0f} USD a month"
        assert usd in found.verdict
        assert said == [found.singles_text]
        assert said[0].endswith(f"; the mix costs {usd}.")
    else:
        assert (said, found.singles_text) == ([], None)
    if way == "mix":
        assert 0.0 < mixed.rented_share < 1.0
        assert mixed.purchase_usd > 0.0


def test_a_budget_limits_what_is_owned() -> None:
    free = planned([rate("runpod", "RTX 4090", 1, "5.00")]).mixed
    tight = planned([rate("runpod", "RTX 4090", 1, "5.00")], budget_usd=7000).mixed
    assert free is not None
    assert tight is not None
    assert free.purchase_usd > 7000 >= tight.purchase_usd > 0.0
    assert tight.best.usd_per_month > free.best.usd_per_month


def test_hardware_that_is_there_carries_the_base_load_and_no_more_of_it_is_imagined() -> None:
    found = planned([rate("runpod", "RTX 4090", 1, "0.40")], own="1x RTX 4090")
    mixed = found.mixed
    assert mixed is not None
    owned = next(entry for entry in found.excluded if "your own" in entry.what)
    assert "of them, and one is there" in owned.why
    assert not any(option.is_own for option in found.options)
    if mixed.purchase.is_own:
        assert mixed.best.own_count == 1


@pytest.mark.parametrize(
    "options",
    [
        {"load_profile": None},  # the shape of the day is not known
        {"load_profile": None, "peak_factor": 2.0},
    ],
)
def test_without_a_day_there_is_no_mix(options: dict[str, object]) -> None:
    assert planned([rate("runpod", "RTX 4090", 1, "0.40")], **options).mixed is None


def test_without_a_rental_by_use_there_is_no_mix() -> None:
    assert planned([]).mixed is None
    reserved = rate("runpod", "RTX 4090", 1, "0.30", tier=Tier.RESERVED_1Y, billing=Billing.PER_TERM)
    assert planned([reserved]).mixed is None


def test_of_many_machines_the_numbers_that_matter_are_tried() -> None:
    loads = [1000.0] * 10 + [555.5] * 14
    assert _numbers(loads, 1.0, None) == [0, 555, 556, 1000]
    assert _numbers(loads, 100.0, None) == list(range(11))
    assert _numbers(loads, 100.0, 3) == [0, 1, 2, 3]


def test_the_document_is_plain() -> None:
    document = planned([rate("runpod", "RTX 4090", 1, "0.16")]).to_document()["mixed"]
    assert isinstance(document, dict)
    assert document["rent"] == "1x RTX 4090 from runpod, on_demand"
    assert document["usd_per_month"] == pytest.approx(
        document["own_usd_per_month"] + document["rent_usd_per_month"]
    )
    assert document["tried"][0]["own_count"] == 0


def test_owning_all_is_never_dearer_than_the_purchase_of_the_plan() -> None:
    # What is cheapest for all that it could carry stands half idle here: another carries this load for less.
    found = plan_of(
        [rate("runpod", "B300", 1, "6.94")],
        "gpt-oss-120b",
        quant="MXFP4",
        tokens_per_month=2e9,
        load_profile="8-18=1,18-23=0.3",
    )
    assert found.mixed is not None
    assert found.purchase is not None
    assert found.mixed.best.usd_per_month <= found.purchase.usd_per_month + 1e-6


OFFICE_HOURS = "8-18=1,18-23=0.3"
MI300X = [rate("runpod", "Instinct MI300X", 1, "2.49"), rate("lambda", "GH200 96GB", 1, "2.29")]


@pytest.mark.parametrize(
    ("model", "options"),
    [
        (  # an old price of a Gaudi 3 led here
            "llama-3.3-70b-instruct",
            {"quant": "FP8", "tokens_per_month": 3e8, "max_ttft_ms": 2000, "max_tpot_ms": 60},
        ),
        ("qwen3-32b", {"quant": "FP8", "requests_per_s": 5, "max_ttft_ms": 1500, "max_tpot_ms": 40}),
        ("qwen3-8b", {"quant": "BF16", "requests_per_s": 5, "owner": "home"}),
        ("qwen3-32b", {"quant": "FP8", "requests_per_s": 5, "budget_usd": 60000}),
    ],
)
def test_a_mix_rests_on_prices_that_count_and_is_never_dearer_than_what_the_verdict_names(
    model: str, options: dict[str, object]
) -> None:
    found = plan_of(MI300X, model, load_profile=OFFICE_HOURS, **options)
    mixed = found.mixed
    assert mixed is not None
    bought = counted_purchases([mixed.purchase], found.options, found.scenario)
    assert bought == [mixed.purchase]
    for option in (found.rental, found.purchase):
        if option is not None:
            assert mixed.best.usd_per_month <= (option.usd_per_month or 0.0) * (1 + 1e-9)


def test_a_rental_by_the_month_carries_the_rest_where_it_is_cheaper() -> None:
    whole = rate("hetzner", "RTX 4090", 1, "0.02", billing=Billing.MONTHLY)
    found = planned([rate("runpod", "RTX 4090", 1, "0.40"), whole])
    assert found.mixed is not None
    assert found.rental is not None
    assert found.rental.provider == "hetzner"
    assert found.mixed.best.usd_per_month <= found.rental.usd_per_month  # type: ignore[operator]


def test_a_mix_that_costs_less_than_every_single_way_is_the_verdict() -> None:
    found = planned([rate("runpod", "RTX 4090", 1, "0.16")])
    assert found.mixed is not None
    assert found.mixed.is_mixed
    count = found.mixed.best.own_count
    assert found.verdict.startswith(f"Buy {count} x (1x RTX 4090) for ")
    assert " from Runpod at the peaks: " in found.verdict
    assert f"{found.mixed.best.usd_per_month:,.0f} USD a month for 3.0 billion output tokens" in found.verdict
