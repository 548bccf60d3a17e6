"""How prices move: flat, by the year, a shock first; and what a plan says of each beside the others."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.answers.paying import saved_usd
from planner.assumptions import Assumptions, Origin, Owner
from planner.breakeven import MonthlyCosts, break_even_months_moving, net_present_value_usd
from planner.compare import Plan
from planner.rates import Tier
from planner.supply.options import BuyBasis, Kind, Option
from planner.supply.owning import monthly_costs
from planner.supply.paths import Moves, RentPath
from planner.uncertainty.comparison import Comparison
from tests.planner.plans import plan_of, rate

B200: dict[str, Any] = {"gpu": "B200", "gpus": 2, "hours_per_day": 24}
SHOCK = Moves(change_per_year=-0.2, shock_fraction=0.4, shock_months=5.0)


def test_a_shock_rises_by_equal_factors_and_then_falls_by_the_year() -> None:
    prices = 100.0 * SHOCK.factors(np.array([0.0, 1.0, 4.0, 5.0, 6.0, 17.0]))
    assert prices == pytest.approx([100.0, 106.961, 130.889, 140.0, 137.421, 112.0], abs=5e-4)


def test_what_is_paid_on_each_path() -> None:
    def paid(months: float, moves: Moves) -> float:
        return float(moves.paid_usd(100.0, np.array([months]))[0])

    assert paid(6.0, SHOCK) == pytest.approx(714.627, abs=1e-3)
    assert paid(6.5, SHOCK) == pytest.approx(714.627 + 0.5 * 137.421, abs=1e-3)
    assert paid(0.0, SHOCK) == 0.0
    assert paid(48.0, Moves(change_per_year=-0.2)) == pytest.approx(3204.608, abs=1e-3)
    assert SHOCK.mean_usd_per_month(100.0, 4.0) == pytest.approx(99.1209, abs=1e-4)
    # The average rent over 48 months at 20 and 10 % down a year, over that of today.
    assert Moves(change_per_year=-0.2).mean_usd_per_month(1.0, 4.0) == pytest.approx(0.668, abs=5e-4)
    assert Moves(change_per_year=-0.1).mean_usd_per_month(1.0, 4.0) == pytest.approx(0.820, abs=5e-4)


@given(
    change=st.floats(-0.9, 3.0),
    months=st.floats(0.0, 240.0),
    shock=st.floats(-0.5, 2.0),
    within=st.floats(1.0, 24.0),
)
def test_a_shock_over_a_year_s_change_is_the_sum_of_its_months(
    change: float, months: float, shock: float, within: float
) -> None:
    moves = Moves(change_per_year=change, shock_fraction=shock, shock_months=within)
    paid = float(moves.paid_usd(100.0, np.array([months]))[0])
    total, whole = 0.0, int(months)
    for month in range(whole + 1):
        after = month - within if shock else month
        price = 100.0 * (1 + shock) ** (min(month, within) / within) * (1 + change) ** (max(after, 0.0) / 12)
        total += price * (1.0 if month < whole else months - whole)
    assert paid == pytest.approx(total, rel=1e-9, abs=1e-9)


def test_a_path_sets_its_assumptions_and_set_wins() -> None:
    flat, decline, shock = (Assumptions(owner=Owner.OFFICE, path=path) for path in RentPath)
    assert (flat.rents, flat.rents.is_flat) == (Moves(shock_months=5.0), True)
    assert (decline.rents.change_per_year, decline.rents.shock_fraction) == (-0.2, 0.0)
    assert shock.rents == SHOCK
    assert shock.origin("rent_shock_fraction") is Origin.PATH
    assert shock.source("rent_change_per_year").startswith("--rent-path shock: ")
    assert (shock.is_set("rent_change_per_year"), flat.is_set("rent_change_per_year")) == (True, False)
    mine = Assumptions(owner=Owner.OFFICE, path=RentPath.SHOCK, overrides={"rent_shock_fraction": 0.89})
    assert (mine["rent_shock_fraction"], mine["rent_change_per_year"]) == (0.89, -0.2)
    assert mine.origin("rent_shock_fraction") is Origin.SET


def buying(found: Plan) -> tuple[Option, BuyBasis]:
    own = found.purchase
    assert own is not None
    assert isinstance(own.basis, BuyBasis)
    return own, own.basis


@pytest.mark.parametrize("path", list(RentPath))
def test_each_path_beside_the_others_is_what_a_plan_on_it_says(path: RentPath) -> None:
    rates = [rate(usd_per_hour="9.00")]
    beside = {each.path: each for each in plan_of(rates, **B200).rent_paths()}[str(path)]
    found = plan_of(rates, **B200, rent_path=str(path))
    own, basis = buying(found)
    assert beside.break_even_months == own.break_even_months
    assert beside.break_even_months_with_resale == basis.months_with_resale
    assert {each.path: each.is_in_use for each in found.rent_paths()} == {
        str(each): each is path for each in RentPath
    }
    sure = found.sensitivity(draws=0)
    assert sure is not None
    assert sure.saving_usd_per_month == pytest.approx(beside.saving_usd_per_month)
    rental = found.rental
    assert rental is not None
    assert beside.rent_usd_per_month == pytest.approx(rental.usd_per_month_compared)


def test_the_three_paths_differ_in_their_order() -> None:
    flat, decline, shock = plan_of([rate(usd_per_hour="9.00")], **B200).rent_paths()
    assert decline.rent_usd_per_month < shock.rent_usd_per_month < flat.rent_usd_per_month
    assert decline.saving_usd_per_month < shock.saving_usd_per_month < flat.saving_usd_per_month


def test_a_change_that_was_set_stands_beside_the_paths() -> None:
    results = plan_of([rate()], **B200, set=["rent_change_per_year=-0.1"]).rent_paths()
    assert [(each.path, each.is_in_use) for each in results] == [
        ("flat", False), ("decline", False), ("shock", False), ("set", True),
    ]  # fmt: skip
    assert results[-1].moves.change_per_year == -0.1


def test_on_a_path_a_rental_is_ranked_by_the_mean_over_the_term_and_says_what_it_costs_now() -> None:
    rates = [rate(usd_per_hour="6.00")]
    flat, falling = plan_of(rates, **B200), plan_of(rates, **B200, rent_path="decline")
    now = flat.rental
    later = falling.rental
    assert now is not None
    assert later is not None
    assert now.usd_per_month_over_term is None
    assert later.usd_per_month == now.usd_per_month
    assert later.usd_per_month_over_term == pytest.approx(0.667627 * (now.usd_per_month or 0.0), rel=1e-5)
    assert "on average over the term" in falling.proof[0]
    own, _ = buying(falling)
    between = (
        f"{((own.usd_per_month or 0.0) / 730.0 / 0.8):.4f}"  # dearer than owning now, cheaper on average
    )
    first = next(
        option
        for option in plan_of([rate(usd_per_hour=between)], **B200).options
        if option.kind is not Kind.API
    )
    assert first.kind is Kind.BUY
    falls = plan_of([rate(usd_per_hour=between)], **B200, rent_path="decline")
    assert next(option for option in falls.options if option.kind is not Kind.API).kind is Kind.RENT


def test_where_rents_fall_below_the_running_cost_the_reason_is_not_the_running_cost_of_today() -> None:
    found = plan_of([rate(usd_per_hour="5.00")], **B200, set=["rent_change_per_year=-0.9"])
    line = next(line for line in found.proof if line.startswith("Buy"))
    assert "never pays back, since rents fall faster than it saves them" in line


@pytest.mark.parametrize("change", [-0.3, -0.2, 0.0])
@pytest.mark.parametrize(("capex", "rent"), [(1000.0, 300.0), (25_000.0, 1454.34), (1e5, 1500.0)])
def test_break_even_of_a_draw_after_a_shock_is_that_of_one_calculation(
    change: float, capex: float, rent: float
) -> None:
    found = plan_of([rate()], **B200, set=[f"rent_change_per_year={change}", "rent_shock_fraction=0.4"])
    own, _ = buying(found)
    assert own.compared_with is not None
    compared = Comparison(own, own.compared_with, found.scenario, found.assumptions)
    one = np.ones(1)
    outcome = compared.outcome({}, 1)
    months = compared.break_even_months(
        type(outcome)(
            saving=one,
            capex_usd=capex * one,
            other_usd=40.0 * one,
            energy_usd=14.9 * one,
            rent_usd=rent * one,
            rent_change=change * one,
            energy_change=0.0 * one,
            is_short=outcome.is_short,
        )
    )[0]
    costs = MonthlyCosts(
        rent_usd=rent,
        running_usd=54.9,
        energy_usd=14.9,
        rents=Moves(change_per_year=change, shock_fraction=0.4, shock_months=5.0),
    )
    expected = break_even_months_moving(capex, costs)
    assert months == (np.inf if expected is None else pytest.approx(expected, rel=1e-9))


def test_the_value_today_without_interest_is_what_is_saved_in_all() -> None:
    found = plan_of([rate(usd_per_hour="9.00")], **B200, rent_path="shock", set=["term_years=2.5"])
    own, basis = buying(found)
    costs = monthly_costs(basis.cost, own.compared_with, found.assumptions)
    assert costs is not None
    saved = saved_usd(basis.cost, costs)
    assert saved.size == 31
    assert saved[0] == -float(basis.cost.capex_usd)
    (result,) = (each for each in found.rent_paths() if each.is_in_use)
    assert net_present_value_usd(saved, 0.0) == pytest.approx(result.saving_usd_per_month * 30.0)


def test_explained_answers_name_the_path_the_utilisation_and_the_value_today() -> None:
    found = plan_of([rate(usd_per_hour="9.00")], **B200, rent_path="decline")
    own, _ = buying(found)
    figures = {each.name: each for each in found.explain(found.options.index(own) + 1).figures}
    assert figures["break-even"].value == own.break_even_months
    assert "rents -20% a year" in figures["break-even"].numbers
    hour = figures["levelised cost of an available GPU-hour"].value or 0.0
    assert figures["break-even utilisation"].value == pytest.approx(2 * hour / 9.0)
    assert figures["rent at which the answer flips"].value == pytest.approx((own.usd_per_month or 0) / 730.0)
    assert figures["net present value of buying instead of renting"].value is not None
    assert found.rental is not None
    rented = {each.name for each in found.explain(found.options.index(found.rental) + 1).figures}
    assert "a month on average over the term" in rented


@pytest.mark.parametrize(
    ("tier", "days", "usd"),
    [
        (Tier.ON_DEMAND, None, 3204.61),
        (Tier.RESERVED_1Y, None, 3542.40),
        (Tier.RESERVED_1Y, 365, 3542.40),
        (Tier.RESERVED_3Y, None, 4214.40),
        (Tier.RESERVED_OTHER, 30, 3204.61),
        (Tier.RESERVED_OTHER, 1460, None),  # agreed for the whole term: it does not move
    ],
)
def test_a_reserved_price_keeps_for_its_term_and_then_is_that_of_the_day(
    tier: Tier, days: int | None, usd: float | None
) -> None:
    """Where rents fall by a fifth a year: paid over four years for 100 USD in the first month."""
    offer = rate(tier=tier, commitment_days=days)
    falling = ["term_years=4", "rent_change_per_year=-0.2"]
    found = plan_of([offer], **B200, rent_path="decline", set=falling)
    rental = next(each for each in found.options if each.kind is Kind.RENT)
    assert rental.usd_per_month is not None
    expected = None if usd is None else pytest.approx(usd / 4800.0 * rental.usd_per_month, rel=1e-4)
    assert rental.usd_per_month_over_term == expected
    cash = found.cash_flow().rent_usd
    assert cash is not None
    assert sum(cash) / 48 == pytest.approx(rental.usd_per_month_compared)
    if tier is Tier.RESERVED_1Y:
        assert cash[12] == pytest.approx(cash[1])
        assert cash[13] == pytest.approx(0.8 * cash[12])


def test_draws_hold_a_reserved_price_as_the_plan_does() -> None:
    settings = ["rent_change_per_year=-0.3", "term_years=3"]
    found = plan_of([rate(usd_per_hour="19.00", tier=Tier.RESERVED_1Y)], **B200, set=settings)
    own, _ = buying(found)
    assert own.compared_with is not None
    compared = Comparison(own, own.compared_with, found.scenario, found.assumptions)
    outcome = compared.outcome({}, 1)
    (result,) = (each for each in found.rent_paths() if each.is_in_use)
    assert result.rent_usd_per_month == pytest.approx(own.compared_with.usd_per_month_compared)
    assert outcome.saving[0] == pytest.approx(result.saving_usd_per_month)
    assert result.break_even_months is not None
    assert compared.break_even_months(outcome)[0] == pytest.approx(result.break_even_months)
    (rented,) = (each for each in found.spread(draws=20).options if each.option.kind is Kind.RENT)
    assert rented.usd_per_month == pytest.approx([result.rent_usd_per_month] * 3)
