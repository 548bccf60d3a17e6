"""How sure an answer is: the base is the plan's own, each end is what a plan with that value says."""

import json
from typing import Any

import numpy as np
import pytest

from planner.breakeven import MonthlyCosts, break_even_months_moving
from planner.compare import Plan
from planner.rates import Billing
from planner.sensitivity import Sensitivity, change_text
from planner.supply.options import Kind, Option
from planner.supply.paths import Moves
from planner.uncertainty.comparison import Comparison, Outcome
from planner.uncertainty.uncertain import Uncertain
from tests.planner.plans import CODER, SMALL, plan_of, rate

B200 = {"gpu": "B200", "gpus": 2, "hours_per_day": 12}


def sure(found: Plan, **options: Any) -> Sensitivity:
    sensitivity = found.sensitivity(**options)
    assert sensitivity is not None
    return sensitivity


def uncertain(base: float, low: float, high: float) -> Uncertain:
    return Uncertain(name="x", title="X", unit="ratio", base=base, low=low, high=high, source="")


@pytest.mark.parametrize(
    ("asked", "quantile", "value"),
    [
        (uncertain(10.0, 4.0, 20.0), 0.0, 4.0),
        (uncertain(10.0, 4.0, 20.0), 0.125, 7.0),
        (uncertain(10.0, 4.0, 20.0), 0.5, 10.0),
        (uncertain(10.0, 4.0, 20.0), 0.875, 15.0),
        (uncertain(10.0, 4.0, 20.0), 1.0, 20.0),
        (uncertain(0.0, -0.3, 0.4), 0.5, 0.0),
        (uncertain(0.02, 0.01, 0.5), 0.875, 0.1),  # by factors: 0.02 x 25^(1/2)
        (uncertain(0.02, 0.01, 0.5), 1.0, 0.5),
    ],
)
def test_the_base_is_the_median_and_the_ends_are_the_range(
    asked: Uncertain, quantile: float, value: float
) -> None:
    assert asked.at(np.array([quantile]))[0] == pytest.approx(value)


@pytest.mark.parametrize(
    ("model", "options"),
    [
        (CODER, B200),
        (CODER, {**B200, "owner": "colo"}),
        (SMALL, {"gpu": "RTX 4090", "gpus": 1, "owner": "home"}),
        (SMALL, {"gpu": "RTX 4090", "gpus": 1, "tokens_per_month": 3e9}),
        (SMALL, {"gpu": "RTX 4090", "gpus": 1, "tokens_per_month": 3e9, "load_profile": "8-18=1,18-23=0.3"}),
    ],
)
def test_at_all_base_values_it_is_the_plan(model: str, options: dict[str, Any]) -> None:
    rates = [rate(), rate("runpod", "RTX 4090", 1, "0.40")]
    found = plan_of(rates, model, **options)
    sensitivity = sure(found)
    purchase, rental = sensitivity.purchase, sensitivity.rental
    assert sensitivity.saving_usd_per_month == pytest.approx(
        (rental.usd_per_month or 0.0) - (purchase.usd_per_month or 0.0)
    )


@pytest.mark.parametrize("name", ["term_years", "pue", "staff_fte_per_server", "resale_floor", "host_usd",
                                  "card_power_factor", "load_fraction", "idle_power_fraction"])  # fmt: skip
@pytest.mark.parametrize("end", ["low", "high"])
def test_each_end_is_what_a_plan_with_that_value_says(name: str, end: str) -> None:
    rates, asked = (
        [rate("runpod", "RTX 4090", 1, "0.40")],
        {"gpu": "RTX 4090", "gpus": 1, "hours_per_day": 10},
    )
    (swing,) = (each for each in sure(plan_of(rates, SMALL, **asked)).swings if each.input.name == name)
    value = getattr(swing.input, end)
    changed = sure(plan_of(rates, SMALL, **asked, set=[f"{name}={value!r}"]))
    assert changed.saving_usd_per_month == pytest.approx(getattr(swing, f"saving_at_{end}"))
    assert name not in {each.input.name for each in changed.swings}  # what is set is known


def test_swings_are_ordered_by_effect_and_say_where_the_answer_flips() -> None:
    sensitivity = sure(plan_of([rate()], **B200))
    effects = [swing.effect_usd_per_month for swing in sensitivity.swings]
    assert effects == sorted(effects, reverse=True)
    for swing in sensitivity.swings:
        assert swing.input.low <= swing.input.base <= swing.input.high
        assert swing.flips == ((swing.saving_at_low > 0) != (swing.saving_at_high > 0))
        assert swing.input.source


def test_what_a_question_states_does_not_vary() -> None:
    names = {swing.input.name for swing in sure(plan_of([rate()], **B200)).swings}
    assert {"rent_change_per_year", "electricity_usd_per_kwh", "server_over_modules_fraction"} <= names
    assert not names & {"colo_usd_per_kw_month", "speed_owned", "card_power_factor"}
    fixed = plan_of([rate()], **B200, electricity_region="DE", set=["purchase_usd=90000", "power_kw=2"])
    names = {swing.input.name for swing in sure(fixed).swings}
    assert not names & {"electricity_usd_per_kwh", "purchase_price", "host_usd", "load_fraction",
                        "server_over_modules_fraction", "server_power_factor"}  # fmt: skip


def test_speed_varies_with_a_demand_and_once_where_both_machines_are_the_same() -> None:
    options: dict[str, Any] = {"gpu": "RTX 4090", "gpus": 1, "tokens_per_month": 3e9}
    same = {
        swing.input.name
        for swing in sure(plan_of([rate("a", "RTX 4090", 1, "0.40")], SMALL, **options)).swings
    }
    assert "speed_owned" in same
    assert "speed_rented" not in same
    unlike = plan_of([rate("a", "L4", 1, "0.40")], SMALL, tokens_per_month=3e9, own="1x RTX 5090")
    owned = next((option for option in unlike.options if option.kind is Kind.BUY), None)
    assert owned is not None
    names = {swing.input.name for swing in sure(unlike, purchase=owned).swings}
    assert {"speed_owned", "speed_rented"} <= names


def test_what_one_host_asks_is_never_multiplied_and_the_answer_says_where_one_is_too_few() -> None:
    # One L4 just carries the demand; slower, as its range allows, two would be needed.
    one = plan_of(
        [rate("a", "L4", 1, "0.40")], SMALL, gpu="L4", gpus=1, tokens_per_month=1e9, hours_per_day=24
    )
    point = next(option.point for option in one.options if option.kind is Kind.RENT)
    assert point is not None
    demand = point.capacity_tokens_per_s * 0.99 * 730 * 3600
    options: dict[str, Any] = {"tokens_per_month": demand, "hours_per_day": 24, "own": "1x RTX 5090"}

    def swing_of(**price: Any) -> tuple[Plan, Any]:
        found = plan_of([rate("a", "L4", 1, "0.40", **price)], SMALL, **options)
        owned = next(option for option in found.options if option.kind is Kind.BUY and option.is_own)
        (swing,) = (each for each in sure(found, purchase=owned).swings if each.input.name == "speed_rented")
        return found, swing

    listed_plan, listed = swing_of()
    asked_plan, asked = swing_of(is_ask=True)
    assert next(o.replicas for o in listed_plan.options if o.kind is Kind.RENT) == 1
    assert listed.saving_at_low - listed.saving_at_high == pytest.approx(0.40 * 730)  # a second machine
    assert asked.saving_at_low == asked.saving_at_high
    assert (listed.is_short, asked.is_short) == (False, True)
    owned = next(option for option in asked_plan.options if option.is_own)
    drawn = sure(asked_plan, purchase=owned)
    assert 0.0 < (drawn.short_fraction or 0.0) < 1.0
    said = change_text(drawn, asked_plan.money)
    assert "one 1x L4 would not carry the demand" in said
    assert "a second has another price, which is not counted" in said
    plain = next(option for option in listed_plan.options if option.is_own)
    assert "one host's machine" not in change_text(sure(listed_plan, purchase=plain), listed_plan.money)


def test_the_same_question_gives_the_same_draws() -> None:
    found = plan_of([rate()], **B200)
    assert sure(found).to_document() == sure(found).to_document()


@pytest.mark.parametrize(("usd_per_hour", "probability"), [("0.10", 0.0), ("500", 1.0)])
def test_what_is_clear_is_certain(usd_per_hour: str, probability: float) -> None:
    sensitivity = sure(plan_of([rate(usd_per_hour=usd_per_hour)], **B200))
    assert sensitivity.probability_buying_is_cheaper == probability
    months = sensitivity.break_even_months
    assert months == (None, None, None) if probability == 0.0 else all(months)


def test_quantiles_rise_and_hold_the_plan_s_break_even_near_the_middle() -> None:
    sensitivity = sure(plan_of([rate(usd_per_hour="40")], **B200))
    low, middle, high = sensitivity.break_even_months
    assert low is not None
    assert middle is not None
    assert high is not None
    assert low < middle < high
    assert middle == pytest.approx(sensitivity.purchase.break_even_months, rel=0.2)


def comparison(found: Plan) -> Comparison:
    own = found.purchase
    assert own is not None
    assert own.compared_with is not None
    return Comparison(own, own.compared_with, found.scenario, found.assumptions)


def outcome(capex: float, other: float, energy: float, rent: float, change: float, power: float) -> Outcome:
    one = np.ones(1)
    return Outcome(
        saving=one,
        capex_usd=capex * one,
        other_usd=other * one,
        energy_usd=energy * one,
        rent_usd=rent * one,
        rent_change=change * one,
        energy_change=power * one,
        is_short=np.zeros(1, dtype=bool),
    )


@pytest.mark.parametrize("change", [-0.3, -0.1, 0.0, 0.2])
@pytest.mark.parametrize("power", [0.0, 0.05])
@pytest.mark.parametrize(
    ("capex", "rent"), [(1000.0, 300.0), (25_000.0, 1454.34), (1e5, 1500.0), (5e6, 10.0)]
)
def test_break_even_of_a_draw_is_that_of_one_calculation(
    change: float, power: float, capex: float, rent: float
) -> None:
    compounding = comparison(plan_of([rate()], **B200, set=["rent_change_per_year=-0.1"]))
    months = compounding.break_even_months(outcome(capex, 40.0, 14.9, rent, change, power))[0]
    costs = MonthlyCosts(
        rent_usd=rent,
        running_usd=54.9,
        energy_usd=14.9,
        rents=Moves(change_per_year=change),
        electricity=Moves(change_per_year=power),
    )
    expected = break_even_months_moving(capex, costs)
    if expected is None or expected > 240:
        assert months == np.inf
    else:
        assert months == pytest.approx(expected, rel=1e-9)


def test_a_rise_of_rents_lasts_a_year_and_stays_and_a_fall_goes_on() -> None:
    moving = comparison(plan_of([rate()], **B200))
    first_year = 100 * 0.4 / (1.4 ** (1 / 12) - 1)  # 1,406.66
    # A price that the rent of 24 months just pays: a year of the rise, a year of 140.
    capex = first_year + 12 * 140.0
    assert moving.break_even_months(outcome(capex, 0, 0, 100, 0.4, 0))[0] == pytest.approx(24.0)
    # Falling by half a year: 12 months of 100 x (0.5 - 1) / (0.5^(1/12) - 1), then half as much.
    falling = 100 * (0.5 - 1) / (0.5 ** (1 / 12) - 1)
    assert moving.break_even_months(outcome(falling * 1.5, 0, 0, 100, -0.5, 0))[0] == pytest.approx(24.0)


def test_the_sentence_names_what_flips_or_what_moves_most() -> None:
    clear = plan_of([rate(usd_per_hour="500")], **B200).notes[-1]
    assert clear.startswith("What would change the answer (buying saves ")
    assert "no single assumption within the range seen" in clear
    plans = [plan_of([rate(usd_per_hour=usd)], **B200) for usd in ("14", "18", "22", "26", "30")]
    sentences = [note for found in plans for note in found.notes if note.startswith("What would change")]
    close = next(sentence for sentence in sentences if " instead of " in sentence)
    assert close.endswith(".")


def test_nothing_to_compare_is_none() -> None:
    assert plan_of([], **B200).sensitivity() is None
    assert not any(note.startswith("What would change") for note in plan_of([], **B200).notes)


def test_the_document_is_json() -> None:
    document = sure(plan_of([rate()], **B200)).to_document()
    assert json.loads(json.dumps(document, allow_nan=False))["schema"] == "breakeven.sensitivity/1"
    assert list(document["break_even_months"]) == ["p10", "p50", "p90"]  # type: ignore[call-overload]


def test_an_option_of_another_kind_is_refused() -> None:
    found = plan_of([rate()], **B200)
    rental: Option = next(option for option in found.options if option.kind is Kind.RENT)
    with pytest.raises(TypeError, match="no purchase"):
        Comparison(rental, rental, found.scenario, found.assumptions)


def test_a_slower_machine_is_sized_by_the_rule_of_the_plan() -> None:
    # 238.4 tokens/s by day, 71.5 in the evening; at 0.51 of 291.9 two copies by day and one in the evening.
    found = plan_of(
        [rate("runpod", "Instinct MI300X", 1, "2.39")],
        "llama-3.3-70b-instruct",
        quant="FP8",
        tokens_per_month=3e8,
        load_profile="8-18=1,18-23=0.3",
        max_ttft_ms=2000,
        max_tpot_ms=60,
        gpu="Instinct MI300X",
        gpus=1,
    )
    assert found.purchase is not None
    assert found.purchase.replicas == 1
    slow = next(swing for swing in sure(found, draws=0).swings if swing.input.name == "speed_owned")
    model = Comparison(found.purchase, found.rental, found.scenario, found.assumptions)  # type: ignore[arg-type]
    outcome = model.outcome({"speed_owned": np.array([slow.input.low])}, 1)
    assert outcome.rent_usd[0] == pytest.approx(2.39 * (2 * 304 + 152))  # 1,816.40
    # Both stand on one board, so the staff is that of one; all else but energy is paid twice, and of the
    # energy the idle half of the second: the work is the same.
    own, basis = found.purchase.usd_per_month, found.purchase.basis
    assert own is not None
    staff = float(basis.ownership.staff_fte) * float(basis.ownership.staff_usd_per_fte_year) / 12  # type: ignore[union-attr]
    energy = float(basis.cost.energy_usd_per_month)  # type: ignore[union-attr]
    busy = found.purchase.point.utilisation  # type: ignore[union-attr]
    kwh = [copies * (456 * (use + (1 - use) * 0.12) + 274 * 0.12)
           for copies, use in ((1, busy), (2, busy / (2 * slow.input.low)))]  # fmt: skip
    twice = 2 * (own - staff - energy) + staff + energy * kwh[1] / kwh[0]
    assert outcome.rent_usd[0] - outcome.saving[0] == pytest.approx(twice)


@pytest.mark.parametrize("speed", [0.6, 0.45, 1.4])
def test_rent_at_another_speed_is_that_of_a_plan_whose_load_is_so_much_larger(speed: float) -> None:
    asked: dict[str, Any] = {"gpu": "RTX 4090", "gpus": 1, "load_profile": "8-18=1,18-23=0.3"}
    rates = [rate("runpod", "RTX 4090", 1, "0.40")]
    base = plan_of(rates, SMALL, tokens_per_month=3e9, **asked)
    larger = plan_of(rates, SMALL, tokens_per_month=3e9 / speed, **asked)
    assert base.purchase is not None
    assert larger.rental is not None
    model = Comparison(base.purchase, base.rental, base.scenario, base.assumptions)  # type: ignore[arg-type]
    outcome = model.outcome({"speed_owned": np.array([speed])}, 1)
    assert outcome.rent_usd[0] == pytest.approx(larger.rental.usd_per_month)


@pytest.mark.parametrize("more", [{}, {"billing": Billing.MONTHLY}, {"usd_per_month_cap": 900.0}])
def test_hours_of_presence_are_a_swing_whose_ends_are_the_plans_with_those_hours(
    more: dict[str, Any],
) -> None:
    rates = [rate("runpod", "RTX 4090", 1, "0.60", **more)]
    asked: dict[str, Any] = {"gpu": "RTX 4090", "gpus": 1}
    found = plan_of(rates, SMALL, **asked, hours_per_day=4)
    swing = next(swing for swing in sure(found, draws=0).swings if swing.input.name == "hours_per_day")
    assert (swing.input.low, swing.input.base, swing.input.high) == (1.0, 4.0, 24.0)
    for hours, saving in ((1.0, swing.saving_at_low), (24.0, swing.saving_at_high)):
        then = plan_of(rates, SMALL, **asked, hours_per_day=hours)
        assert then.purchase is not None
        assert then.rental is not None
        assert saving == pytest.approx(then.rental.usd_per_month - then.purchase.usd_per_month)  # type: ignore[operator]


def test_where_hours_alone_change_the_answer_the_sentence_names_them() -> None:
    found = plan_of([rate("runpod", "RTX 4090", 1, "0.95")], SMALL, gpu="RTX 4090", gpus=1, hours_per_day=2)
    swing = next(swing for swing in sure(found, draws=0).swings if swing.input.name == "hours_per_day")
    assert swing.flips
    (note,) = (note for note in found.notes if note.startswith("What would change the answer"))
    assert "hours a day in which the service is there at 24 h/d instead of 2" in note
    with_demand = plan_of(
        [rate("runpod", "RTX 4090", 1, "0.95")], SMALL, gpu="RTX 4090", tokens_per_month=1e9
    )
    assert not any(swing.input.name == "hours_per_day" for swing in sure(with_demand, draws=0).swings)
