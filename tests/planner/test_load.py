"""The shape of a day: read strictly, sized for the busiest hour, rented hour by hour."""

import math

import pytest

from planner.errors import InvalidScenario
from planner.exports.focus import focus_rows
from planner.rates import Billing, Tier
from planner.scenario import Scenario
from planner.supply.load import LoadProfile, Shift, shifts
from planner.supply.options import Kind, Option, RentBasis
from tests.planner.plans import SMALL, plan_of, rate

DAY = "8-18=1,18-23=0.3"  # 10 hours of 1 and 5 of 0.3: 11.5 in all


def rented(option_of: list[Option], tier: str = "on_demand") -> Option:
    return next(option for option in option_of if option.kind is Kind.RENT and option.tier == tier)


def test_spans_of_hours() -> None:
    profile = LoadProfile.parse(DAY)
    assert profile.service_hours_per_day == 15
    assert profile.peak_factor == pytest.approx(15 / 11.5)
    loads = profile.loads(115.0)
    assert loads[7:9] == pytest.approx((0.0, 150.0))
    assert loads[17:19] == pytest.approx((150.0, 45.0))
    assert sum(loads) == pytest.approx(115.0 * 15)


@pytest.mark.parametrize(
    ("text", "hours", "peak"),
    [
        ("8-18", 10, 1.0),
        ("22-6", 8, 1.0),  # past midnight
        ("0-24=3", 24, 1.0),
        ("0-12 = 1, 12-24 = 3", 24, 1.5),
        (",".join(["0"] * 12 + ["2"] * 12), 12, 1.0),
    ],
)
def test_other_ways_to_write_a_day(text: str, hours: int, peak: float) -> None:
    profile = LoadProfile.parse(text)
    assert profile.service_hours_per_day == hours
    assert profile.peak_factor == pytest.approx(peak)


@pytest.mark.parametrize(
    "text",
    [
        *("", "8", "8-", "18-8-9", "8-25", "24-3", "8-8", "8-12=1,11-13=2", "8-12=x", "8-12=-1", "8-12=nan"),
        *("8-12=0", "1,2,3", ",".join(["1"] * 25), ",".join(["0"] * 24), "8-12=1,5", "8-12=1e300"),
    ],
)
def test_what_is_no_day_is_refused(text: str) -> None:
    with pytest.raises(InvalidScenario) as caught:
        Scenario(model=SMALL, tokens_per_month=1e6, load_profile=text)
    assert caught.value.field == "load_profile"


def test_steps_of_copies_carry_each_hour_and_none_is_one_too_many() -> None:
    loads = LoadProfile.parse(DAY).loads(115.0)
    steps = shifts(loads, 100.0)
    assert steps == (Shift(1, 15.0), Shift(1, 10.0))
    assert shifts(loads, 150.0) == (Shift(1, 15.0),)
    assert shifts(loads, 40.0) == (Shift(2, 15.0), Shift(2, 10.0))  # 4 by day, 2 in the evening
    assert shifts((0.0,) * 24, 100.0) == ()
    assert shifts((1e12,), 1.0) == (Shift(10**12, 1.0),)  # steps, not a list of copies


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"load_profile": DAY}, "load_profile"),  # no demand whose shape it could be
        ({"load_profile": DAY, "tokens_per_month": 1e9, "peak_factor": 2.0}, "load_profile"),
        ({"load_profile": DAY, "tokens_per_month": 1e9, "hours_per_day": 8.0}, "hours_per_day"),
    ],
)
def test_what_contradicts_a_profile_is_refused(options: dict[str, object], field: str) -> None:
    with pytest.raises(InvalidScenario) as caught:
        Scenario.from_mapping({"model": SMALL, **options})
    assert caught.value.field == field


def test_a_profile_sets_the_hours_and_reads_back() -> None:
    scenario = Scenario(model=SMALL, tokens_per_month=1e9, load_profile=DAY, hours_per_day=15)
    assert scenario.hours_per_month == pytest.approx(15 * 30.4)
    assert Scenario.from_toml(scenario.to_toml()) == scenario
    assert Scenario.from_query(scenario.to_query()) == (scenario, [])
    assert Scenario(model=SMALL, tokens_per_month=1e9, load_profile="0-24").hours_per_month == 730.0


def test_rentals_by_use_follow_the_day_and_reserved_ones_stay() -> None:
    rates = [
        rate("runpod", "RTX 4090", 1, "0.40"),
        rate("runpod", "RTX 4090", 1, "0.30", tier=Tier.RESERVED_1Y, billing=Billing.PER_TERM),
    ]
    found = plan_of(
        rates, SMALL, tokens_per_month=3e9, load_profile="8-18=1,18-23=0.2", gpu="RTX 4090", gpus=1
    )
    by_use, reserved = rented(list(found.options)), rented(list(found.options), "reserved_1y")
    assert by_use.point is not None
    steps = by_use.point.shifts
    assert len(steps) == 2
    assert sum(step.replicas for step in steps) == by_use.replicas > steps[0].replicas
    replica_hours = sum(step.replicas * step.hours_per_day for step in steps) * 30.4
    assert by_use.usd_per_month == pytest.approx(0.40 * replica_hours)
    assert reserved.usd_per_month == pytest.approx(0.30 * 730 * reserved.replicas)
    assert isinstance(by_use.basis, RentBasis)
    assert by_use.basis.paid_hours_per_month * by_use.replicas == pytest.approx(replica_hours)
    assert any("follow the load of the day" in note for note in by_use.notes)
    assert not any("follow the load" in note for note in reserved.notes)
    purchase = next(option for option in found.options if option.kind is Kind.BUY)
    assert purchase.replicas == by_use.replicas
    assert purchase.break_even_hours_per_day is None
    assert any("the busiest hour of the day" in note for note in found.notes)
    billed = [
        row for row in focus_rows(found, None) if row["ChargeDescription"].startswith(f"{by_use.replicas} x ")
    ]
    assert any(math.isclose(row["BilledCost"], by_use.usd_per_month or 0.0) for row in billed)


def test_a_cap_holds_for_each_copy() -> None:
    rates = [rate("vultr", "RTX 4090", 1, "0.40", usd_per_month_cap=150.0)]
    found = plan_of(
        rates, SMALL, tokens_per_month=3e9, load_profile="8-18=1,18-23=0.2", gpu="RTX 4090", gpus=1
    )
    option = rented(list(found.options))
    assert option.point is not None
    first, second = option.point.shifts
    # 15 h a day would cost 182.40 and are capped, 10 h cost 121.60.
    assert option.usd_per_month == pytest.approx(first.replicas * 150.0 + second.replicas * 121.60)


def test_an_even_day_is_the_plan_without_a_profile() -> None:
    rates = [rate("runpod", "RTX 4090", 1, "0.40")]
    even = plan_of(rates, SMALL, tokens_per_month=3e9, load_profile="0-24", gpu="RTX 4090", gpus=1)
    plain = plan_of(rates, SMALL, tokens_per_month=3e9, hours_per_day=24, gpu="RTX 4090", gpus=1)
    costs = [
        {(o.kind, o.name, o.provider): o.usd_per_month for o in found.options} for found in (even, plain)
    ]
    assert costs[0] == pytest.approx(costs[1])
