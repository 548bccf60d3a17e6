"""What all options cost in the same draws: the base is the plan, shares add up, machines share their luck."""

import json
from typing import Any

import numpy as np
import pytest

from planner.compare import Plan
from planner.rates import Tier
from planner.supply.options import Kind
from planner.uncertainty.spread import OptionSpread, Spread
from tests.planner.plans import SMALL, plan_of, rate

B200: dict[str, Any] = {"gpu": "B200", "gpus": 2, "hours_per_day": 12}
# What an owner cannot know and what moves, all of it stated.
STATED = [
    *("rent_change_per_year=0", "api_change_per_year=0", "electricity_change_per_year=0", "term_years=4"),
    *("resale_fraction=0.2", "purchase_usd=90000", "power_kw=2", "idle_power_fraction=0.1", "pue=1.5"),
    *("staff_fte_per_server=0.02", "staff_usd_per_fte_year=180000", "insurance_fraction_per_year=0.005"),
    "support_fraction_per_year=0.05",
]


def of(found: Spread, kind: Kind) -> OptionSpread:
    return next(each for each in found.options if each.option.kind is kind)


def planned(*, usd_per_hour: str = "12", **options: Any) -> Plan:
    return plan_of([rate(usd_per_hour=usd_per_hour)], **{**B200, **options})


def test_where_all_is_known_every_draw_is_the_plan() -> None:
    found = planned(set=STATED, electricity_region="DE").spread(draws=100)
    assert {each.option.kind for each in found.options} == set(Kind)
    for each in found.options:
        assert each.usd_per_month == pytest.approx([each.option.usd_per_month] * 3), each.option.name


def test_the_middle_lies_at_the_plan_and_the_ends_around_it() -> None:
    for each in planned().spread().options:
        low, middle, high = each.usd_per_month
        assert low <= middle <= high
        if each.option.kind is Kind.RENT:
            assert middle == pytest.approx(each.option.usd_per_month, rel=0.02)
            assert low < 0.85 * middle < 1.15 * middle < high
        if each.option.kind is Kind.API:  # prices of APIs fall or stay
            assert high == pytest.approx(each.option.usd_per_month)


def test_shares_add_up_and_what_the_verdict_passes_over_wins_nothing() -> None:
    rates = [rate("spot", tier=Tier.SPOT, usd_per_hour="0.01"), rate(usd_per_hour="12")]
    found = plan_of(rates, **B200).spread(draws=500)
    assert sum(found.cheapest.values()) == pytest.approx(1.0)
    fractions = {each.option.provider: each.cheapest_fraction for each in found.options}
    assert fractions["spot"] is None
    counted = sum(each.cheapest_fraction or 0.0 for each in found.options)
    assert counted == pytest.approx(1.0)


@pytest.mark.parametrize(("usd_per_hour", "cheapest"), [("0.0001", Kind.RENT), ("500", Kind.BUY)])
def test_what_is_clear_is_certain(usd_per_hour: str, cheapest: Kind) -> None:
    found = plan_of([rate("a", "RTX 4090", 1, usd_per_hour)], "phi-4-mini-instruct", gpu="RTX 4090", gpus=1)
    assert not [option for option in found.options if option.kind is Kind.API]
    assert found.spread(draws=500).cheapest == {Kind.RENT: 0.0, Kind.BUY: 0.0, Kind.API: 0.0, cheapest: 1.0}


def test_the_chance_of_buying_is_that_of_the_comparison_of_the_two() -> None:
    found = planned(usd_per_hour="14")
    sure = found.sensitivity()
    assert sure is not None
    bought, rented = of(found.spread(), Kind.BUY), of(found.spread(), Kind.RENT)
    # Medians of the two tell which is the likelier; the comparison counts the draws themselves.
    is_buying = bought.usd_per_month[1] < rented.usd_per_month[1]
    assert is_buying == ((sure.probability_buying_is_cheaper or 0.0) > 0.5)


def test_a_machine_has_one_speed_whoever_offers_it() -> None:
    options: dict[str, Any] = {"gpu": "RTX 4090", "gpus": 1, "tokens_per_month": 3e9, "hours_per_day": 24}
    rates = [rate("a", "RTX 4090", 1, "0.40"), rate("b", "RTX 4090", 1, "0.80")]
    found = plan_of(rates, SMALL, **options, set=["rent_change_per_year=0"]).spread(draws=300)
    first, second = (each for each in found.options if each.option.kind is Kind.RENT)
    assert np.divide(second.usd_per_month, first.usd_per_month) == pytest.approx([2.0] * 3)
    assert first.usd_per_month[0] < first.usd_per_month[2]  # slower, it takes more of them
    asked = plan_of([rate("a", "L4", 1, "0.40", is_ask=True)], SMALL, gpu="L4", gpus=1, hours_per_day=24,
                    tokens_per_month=1e8, set=["rent_change_per_year=0"]).spread(draws=300)  # fmt: skip
    assert len(set(of(asked, Kind.RENT).usd_per_month)) == 1  # one ask is one machine


def test_the_same_question_gives_the_same_draws_and_json() -> None:
    found = planned()
    document = found.spread(draws=200).to_document()
    assert document == found.spread(draws=200).to_document()
    assert json.loads(json.dumps(document, allow_nan=False))["cheapest"].keys() == {"rent", "buy", "api"}


def test_an_empty_plan_has_nothing_to_draw() -> None:
    found = plan_of([], "phi-4-mini-instruct", gpu="TPU v5e").spread(draws=10)
    assert (found.options, set(found.cheapest.values())) == ((), {0.0})
