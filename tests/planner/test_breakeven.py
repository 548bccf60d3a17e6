import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.breakeven import (
    MonthlyCosts,
    break_even_hours_per_day,
    break_even_months,
    break_even_months_moving,
    break_even_months_with_resale,
    break_even_rent_usd_per_hour,
    break_even_tokens_per_month,
    break_even_utilisation,
    first_crossing,
    net_present_value_usd,
)
from planner.errors import InvalidScenario
from planner.supply.paths import Moves

RENT, POWER = 11.96 * 4 * 30.4, 0.7 * 4 * 30.4 * 0.175


def test_sizing_page_break_even() -> None:
    assert break_even_months(25_000, RENT, POWER) == pytest.approx(17.37, abs=0.005)


@pytest.mark.parametrize(
    ("capex", "rent", "running", "expected"),
    [
        (1000.0, 100.0, 100.0, None),  # running costs what renting costs
        (1000.0, 100.0, 150.0, None),
        (0.0, 100.0, 50.0, 0.0),  # owned already
        (0.0, 100.0, 150.0, None),  # owned already, and still dearer to run
        (1000.0, 0.0, 0.0, None),
        (1e308, 1.0, 0.999999999999, None),  # never, instead of infinity
    ],
)
def test_edges_of_the_break_even(capex: float, rent: float, running: float, expected: float | None) -> None:
    assert break_even_months(capex, rent, running) == expected


@pytest.mark.parametrize("bad", [-1.0, math.nan, math.inf])
def test_amounts_that_are_none_are_refused(bad: float) -> None:
    with pytest.raises(InvalidScenario):
        break_even_months(bad, 1.0, 1.0)
    with pytest.raises(InvalidScenario):
        break_even_hours_per_day(1.0, bad, 1.0)
    with pytest.raises(InvalidScenario):
        break_even_utilisation(1.0, bad)
    with pytest.raises(InvalidScenario):
        break_even_tokens_per_month(bad, 1.0)
    with pytest.raises(InvalidScenario):
        break_even_rent_usd_per_hour(bad, 1.0)


def test_break_even_rent_without_hours_is_refused() -> None:
    with pytest.raises(InvalidScenario, match="hours above 0"):
        break_even_rent_usd_per_hour(100.0, 0.0)


def test_break_even_with_resale_by_the_curve() -> None:
    costs = MonthlyCosts(rent_usd=500.0, running_usd=100.0)
    months = break_even_months_with_resale(
        10_000.0, costs, machine_usd=10_000.0, resale_floor=0.15, resale_decay_per_year=0.6
    )
    assert months == pytest.approx(2.36, abs=0.005)
    never = break_even_months_with_resale(
        10_000.0,
        MonthlyCosts(rent_usd=90.0, running_usd=100.0),
        machine_usd=10_000.0,
        resale_floor=0.15,
        resale_decay_per_year=0.6,
    )
    assert never is None


def test_hours_a_day() -> None:
    assert break_even_hours_per_day(100.0, 0.5, 2.5) == pytest.approx(1.645, abs=0.001)
    assert break_even_hours_per_day(0.0, 0.5, 2.5) == 0.0
    assert break_even_hours_per_day(100.0, 2.5, 2.5) is None
    assert break_even_hours_per_day(24 * 30.4 * 2.0, 0.5, 2.5) == pytest.approx(24.0)  # exactly always on
    assert break_even_hours_per_day(24.1 * 30.4 * 2.0, 0.5, 2.5) is None


def test_tokens_a_month() -> None:
    cost = 1.59 * 730 * 0.30
    assert break_even_tokens_per_month(cost, 5.0) == pytest.approx(69.6e6, rel=1e-3)
    assert break_even_tokens_per_month(cost, 5.0, 5.0) is None


def test_falling_rents_move_the_break_even_out() -> None:
    flat = MonthlyCosts(rent_usd=RENT, running_usd=POWER, energy_usd=POWER)
    falling = MonthlyCosts(
        rent_usd=RENT, running_usd=POWER, energy_usd=POWER, rents=Moves(change_per_year=-0.2)
    )
    assert break_even_months_moving(25_000.0, flat) == break_even_months(25_000.0, RENT, POWER)
    assert break_even_months_moving(25_000.0, falling) == pytest.approx(20.79, abs=0.005)
    dear = MonthlyCosts(
        rent_usd=RENT, running_usd=POWER, energy_usd=POWER, electricity=Moves(change_per_year=5.0)
    )
    assert (break_even_months_moving(25_000.0, dear) or 0.0) > 17.37


def test_average_rent_over_four_years_of_decline() -> None:
    # 0.820, 0.668 and 0.541 of today's rent at 10, 20 and 30 % a year.
    for change, share in ((-0.1, 0.820), (-0.2, 0.668), (-0.3, 0.541)):
        paid = Moves(change_per_year=change).paid_usd(1.0, np.array([48.0]))
        assert paid[0] / 48 == pytest.approx(share, abs=0.0005)


def test_cumulative_cost_is_monotone_and_continuous_within_months() -> None:
    months = np.linspace(0.0, 24.0, 241)
    paid = Moves(change_per_year=0.3).paid_usd(100.0, months)
    assert np.all(np.diff(paid) > 0)
    assert np.max(np.diff(paid)) < 1.5 * 10.0 * 1.3**2


def test_first_crossing_interpolates() -> None:
    x = np.array([0.0, 1.0, 2.0])
    assert first_crossing(x, np.array([3.0, 3.0, 3.0]), np.array([0.0, 2.0, 4.0])) == pytest.approx(1.5)
    assert first_crossing(x, np.array([0.0, 3.0, 3.0]), np.array([0.0, 2.0, 4.0])) == 0.0
    assert first_crossing(x, np.array([9.0, 9.0, 9.0]), np.array([0.0, 2.0, 4.0])) is None


def test_net_present_value() -> None:
    cash = np.zeros(25)
    cash[[0, 12, 24]] = (-1000.0, 550.0, 550.0)
    assert net_present_value_usd(cash, 0.1) == pytest.approx(-45.45, abs=0.005)
    assert net_present_value_usd(cash, 0.0) == pytest.approx(100.0)


money = st.floats(min_value=0.01, max_value=1e6)


@given(capex=money, rent=money, running=money)
def test_costs_are_equal_at_the_break_even_month(capex: float, rent: float, running: float) -> None:
    months = break_even_months(capex, rent, running)
    if months is None:
        assert rent <= running
        return
    assert months >= 0.0
    assert math.isfinite(months)
    assert capex + running * months == pytest.approx(rent * months, rel=1e-6)


@given(fixed=st.floats(0.0, 1e4), share=st.floats(0.0, 0.99), rent=st.floats(0.01, 100.0))
def test_costs_are_equal_at_the_break_even_hours(fixed: float, share: float, rent: float) -> None:
    own = rent * share
    hours = break_even_hours_per_day(fixed, own, rent)
    if hours is None:
        assert fixed + own * 24 * 30.4 > rent * 24 * 30.4
        return
    assert 0.0 <= hours <= 24.0
    assert fixed + own * hours * 30.4 == pytest.approx(rent * hours * 30.4, rel=1e-6)


@given(capex=st.floats(100.0, 1e5), rent=st.floats(50.0, 5e3), change=st.floats(-0.4, 0.4))
def test_costs_are_equal_where_the_curves_cross(capex: float, rent: float, change: float) -> None:
    costs = MonthlyCosts(rent_usd=rent, running_usd=20.0, energy_usd=5.0, rents=Moves(change_per_year=change))
    months = break_even_months_moving(capex, costs)
    if months is None:
        end = np.array([240.0])
        assert costs.own(capex, end)[0] > costs.rent(end)[0]
        return
    at = np.array([months], dtype=float)
    assert costs.own(capex, at)[0] == pytest.approx(costs.rent(at)[0], rel=1e-6)
