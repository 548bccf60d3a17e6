"""Small curves of every input: they begin and end where the sensitivity says, and go through the plan."""

import pytest

from planner.compare import Plan
from planner.uncertainty.effects import InputEffect, input_effects
from tests.planner.plans import SMALL, plan_of, rate

OWNED = {"gpu": "RTX 4090", "gpus": 1, "hours_per_day": 12}


def effects(found: Plan) -> dict[str, InputEffect]:
    assert found.purchase is not None
    assert found.purchase.compared_with is not None
    made = input_effects(found.purchase, found.purchase.compared_with, found.scenario, found.assumptions)
    return {each.input.name: each for each in made}


def asked(**options: object) -> Plan:
    return plan_of([rate("runpod", "RTX 4090", 1, "0.40")], SMALL, **{**OWNED, **options})


def test_curves_end_where_the_sensitivity_says() -> None:
    found = asked()
    sure = found.sensitivity(draws=0)
    assert sure is not None
    curves = effects(found)
    swings = [swing for swing in sure.swings if swing.input.name != "hours_per_day"]  # drawn by the hour
    assert {swing.input.name for swing in swings} == curves.keys()
    for swing in swings:
        curve = curves[swing.input.name]
        assert (curve.values[0], curve.values[-1]) == pytest.approx((swing.input.low, swing.input.high))
        ends = (curve.extra_usd_per_month[0], curve.extra_usd_per_month[-1])
        assert ends == pytest.approx((-swing.saving_at_low, -swing.saving_at_high))
        assert curve.base_usd_per_month == pytest.approx(-sure.saving_usd_per_month)


def test_a_stated_value_stays_a_curve_with_that_value_as_its_base() -> None:
    stated = asked(set=(("term_years", 5.0),), electricity_usd_per_kwh=0.3)
    curves = effects(stated)
    sure = stated.sensitivity(draws=0)
    assert sure is not None
    known = {swing.input.name for swing in sure.swings}
    assert not {"term_years", "electricity_usd_per_kwh"} & known
    assert curves["term_years"].input.base == 5.0
    assert curves["electricity_usd_per_kwh"].input.base == 0.3
    assert curves["term_years"].base_usd_per_month == pytest.approx(-sure.saving_usd_per_month)
    three = curves["term_years"].extra_usd_per_month[curves["term_years"].values.index(3.0)]
    planned = asked(set=(("term_years", 3.0),), electricity_usd_per_kwh=0.3)
    assert planned.purchase is not None
    assert planned.rental is not None
    assert planned.purchase.usd_per_month is not None
    assert planned.rental.usd_per_month is not None
    assert three == pytest.approx(planned.purchase.usd_per_month - planned.rental.usd_per_month)


def test_the_tariff_of_a_region_is_known() -> None:
    assert "electricity_usd_per_kwh" not in effects(asked(electricity_region="DE"))
