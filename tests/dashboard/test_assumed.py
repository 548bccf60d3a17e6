"""Assumptions by influence: their small charts, and what typing another value into the table does."""

from collections.abc import Sequence

import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from dashboard import assumed, charts, data, documents, state, what_if
from planner.assumptions import all_assumptions
from planner.scenario import Scenario
from tests.dashboard.pages import fresh_server, opened, texts, unescaped

__all__ = ["fresh_server"]  # used by every test here

CODER = "qwen3-coder-480b-a35b"
YEARS = "Years of use"


def effects_table(test: AppTest, *, place: int = 0) -> pd.DataFrame:
    return [table.value for table in test.dataframe if "effect" in table.value.columns][place]


def by_name(found: Sequence[what_if.Influence]) -> dict[str, what_if.Influence]:
    return {each.name: each for each in found}


def test_the_strongest_come_first_and_their_ends_are_what_a_plan_says(database):
    base = data.plan(Scenario(model=CODER))
    found = what_if.at_hand(base)
    assert [each.swing for each in found] == sorted((each.swing for each in found), reverse=True)
    gap = base.purchase.usd_per_month - base.rental.usd_per_month
    years = by_name(found)["term_years"]
    at_three = data.plan(Scenario(model=CODER, set=(("term_years", 3.0),)))
    assert (years.values[0], years.values[-1], years.here) == (3.0, 6.0, 4.0)
    assert years.gap_here == pytest.approx(gap)
    assert years.gaps[0] == pytest.approx(at_three.purchase.usd_per_month - at_three.rental.usd_per_month)


def test_the_hours_are_among_them_and_turn_the_answer(database):
    hours = by_name(what_if.at_hand(data.plan(Scenario(model=CODER))))["hours_per_day"]
    assert (hours.values[0], hours.values[-1], hours.here) == (1.0, 24.0, 4.0)
    assert hours.flips  # owning pays from 7.9 h a day
    assert hours.gaps[3] == pytest.approx(hours.gap_here)  # at 4 h
    with_demand = data.plan(Scenario(model="qwen3-8b", tokens_per_month=1e9))
    assert "hours_per_day" not in by_name(what_if.at_hand(with_demand))


def test_amounts_are_in_the_currency_that_is_shown(database):
    usd, eur = (what_if.at_hand(data.plan(Scenario(model=CODER, currency=c))) for c in ("USD", "EUR"))
    rate = data.plan(Scenario(model=CODER, currency="EUR")).money.amount(1.0)
    assert eur[0].swing == pytest.approx(usd[0].swing * rate)


def test_the_others_are_planned_anew_and_say_how_far_they_are(database, monkeypatch):
    names = {"Discount rate": "discount_rate", "Set-up": "setup_usd", YEARS: "term_years"}
    monkeypatch.setattr(what_if, "movable", lambda scenario: names)
    told: list[float] = []
    question = Scenario(model=CODER)
    found = what_if.planned_anew(question, told.append)
    assert told == [0.5, 1.0]  # years of use are at hand already
    assert [each.name for each in found] == ["setup_usd"]  # nothing is financed by default
    most = all_assumptions()["setup_usd"].high
    at_most = data.plan(Scenario(model=CODER, set=(("setup_usd", most),)))
    assert found[0].gaps[1] == pytest.approx(at_most.purchase.usd_per_month - at_most.rental.usd_per_month)
    assert len(assumed.row(found[0])["effect"]) == 3


def test_without_something_to_rent_no_assumption_turns_the_answer(empty_database):
    question = Scenario(model="qwen3-8b")
    assert what_if.at_hand(data.plan(question)) == []
    assert what_if.planned_anew(question) == []
    assert charts.tornado([], "USD") is None


def test_the_tornado_shows_the_ten_strongest_and_the_table_all(database):
    found = what_if.at_hand(data.plan(Scenario(model=CODER)))
    chart = charts.tornado(found, "USD")
    bars = next(layer for layer in chart.chart.to_dict()["layer"] if layer["mark"]["type"] == "bar")
    assert len({row["name"] for row in bars["data"]["values"]}) == 10
    assert chart.alt.startswith("Owning costs ")
    assert f"{found[0].title} moves it most" in chart.alt
    rows = effects_table(opened())
    assert list(rows["assumption"]) == [each.title for each in found]
    assert [len(curve) for curve in rows["effect"]] == [len(each.gaps) for each in found]


def test_the_method_page_orders_all_and_works_the_others_out_on_request(database, monkeypatch):
    some = dict(list(what_if.movable(Scenario(model=CODER)).items())[:3])
    monkeypatch.setattr(what_if, "movable", lambda scenario: some)
    test = opened("method")
    before = effects_table(test)
    assert before["moves"].dropna().is_monotonic_decreasing
    test.button(key="by_influence").click().run()
    assert [error.value for error in (*test.exception, *test.error)] == []
    after = effects_table(test)
    assert after["moves"].notna().sum() > before["moves"].notna().sum()
    assert after["moves"].dropna().is_monotonic_decreasing


def test_no_name_of_the_tornado_is_cut_on_a_phone(database):
    found = what_if.at_hand(data.plan(Scenario(model="qwen3-coder-480b-a35b")))
    layers = charts.tornado(found, "USD").chart.to_dict()["layer"]
    upper, lower = (layer for layer in layers if layer["mark"]["type"] == "text")
    assert "limit" not in upper["mark"] | lower["mark"]
    rows = lower["data"]["values"]
    assert any(row["first"] for row in rows)
    for row in rows:
        assert f"{row['first']} {row['last']}".strip() == row["name"]
        assert max(len(row["first"]), len(row["last"])) <= 57  # letters of 12 px on 390 px


def test_a_name_of_two_lines_does_not_touch_the_bar_above(database):
    found = what_if.at_hand(data.plan(Scenario(model="qwen3-coder-480b-a35b")))
    chart = charts.tornado(found, "USD").chart.to_dict()
    upper = next(layer for layer in chart["layer"] if layer["mark"]["type"] == "text")
    rows = (chart["height"] - 120) / 10  # legend and axis take 120 px, seen in a browser
    name_top, bar_bottom = upper["mark"]["dy"] - 14, 6 - rows  # from the middle of the bar, downwards
    assert name_top - bar_bottom >= 5


def test_what_would_change_the_answer_stands_with_the_tornado(database):
    said = unescaped(texts(opened()))
    assert said.count("What would change the answer") == 1


@pytest.mark.parametrize(
    ("name", "value", "held"),
    [
        ("term_years", 5.0, {"set": ["pue=1.2", "term_years=5"]}),
        ("pue", 1.3, {"set": ["pue=1.3"]}),
        ("pue", None, {"set": []}),
        ("hours_per_day", 6.5, {"hours_per_day": 6.5}),
        ("hours_per_day", 99.0, {"hours_per_day": 24.0}),
        ("hours_per_day", None, {"hours_per_day": 4.0}),
        ("input_tokens", 512.0, {"input_tokens": "512"}),
    ],
)
def test_a_value_typed_into_the_table_is_the_option_of_that_name(name, value, held):
    session = {"model": "qwen3-8b", "set": ["pue=1.2"]}
    assert assumed.change(session, name, value) is None
    assert {key: session[key] for key in held} == held
    state.from_widgets(session)


@pytest.mark.parametrize(
    ("name", "value", "why"), [("pue", 0.5, "pue"), ("purchase_price", 1.1, "no name for it")]
)
def test_a_value_that_cannot_be_is_refused_and_changes_nothing(name, value, why):
    session = {"model": "qwen3-8b", "set": ["term_years=5"]}
    assert why in assumed.change(session, name, value)
    assert session == {"model": "qwen3-8b", "set": ["term_years=5"]}


def test_an_edit_reaches_the_question_and_the_next_table_begins_without_it():
    session = {
        "model": "qwen3-8b",
        "at_hand_0": {"edited_rows": {"1": {assumed.NOW: 5.0}, 0: {}}},
    }
    assumed._take(session, "at_hand_0", ["pue", "term_years"])
    assert session["set"] == ["term_years=5"]
    assert session["_assumed_turn"] == 1


@pytest.mark.parametrize(
    ("typed", "held", "refused"),
    [
        ("0,35", ["utilisation=0.35"], None),
        ("", [], None),
        ("1,234", ["pue=1.2"], "without a comma: 1234"),
        ("much", ["pue=1.2"], "a number"),
    ],
)
def test_a_comma_typed_into_the_table_is_a_decimal_sign_or_refused(typed, held, refused):
    session = {"model": "qwen3-8b", "set": [] if refused is None else ["pue=1.2"]}
    session["table"] = {"edited_rows": {"0": {assumed.NOW: typed}}}
    assumed._take(session, "table", ["utilisation"])
    assert session["set"] == held
    assert (refused or "") in session.get("_assumed_refused", "")
    assert ("_assumed_refused" in session) is (refused is not None)


@pytest.mark.parametrize(
    ("name", "typed", "held"),
    [
        ("purchase_usd", "25.000", {"_assumed_refused"}),
        ("input_tokens", "4.096", {"_assumed_refused"}),
        ("power_kw", "1.234", {"set"}),
        ("electricity_usd_per_kwh", "0.175", {"electricity_usd_per_kwh"}),
    ],
)
def test_a_point_typed_into_the_table_is_refused_where_thousands_can_be_meant(name, typed, held):
    session = {"table": {"edited_rows": {"0": {assumed.NOW: typed}}}}
    assumed._take(session, "table", [name])
    assert session.keys() & {"_assumed_refused", "set", name} == held


def test_with_a_load_of_the_day_neither_hours_nor_peak_are_moved_and_its_hours_are_shown():
    day = Scenario(model="qwen3-8b", tokens_per_month=1e9, load_profile="8-18=1")
    assert not {"hours_per_day", "peak_factor"} & set(what_if.movable(day).values())
    assert documents.options_as_assumptions(day)["hours_per_day"] == 10.0
    session = {"tokens_per_month": "1e9", "load_profile": "8-18=1"}
    assert "hours of its own" in assumed.change(session, "hours_per_day", 6.0)
    assert "hours_per_day" not in session


def test_electricity_is_moved_where_a_region_is_chosen_too(database):
    region = Scenario(model=CODER, electricity_region="DE")
    moved = what_if.effect(region, "electricity_usd_per_kwh")
    record = all_assumptions()["electricity_usd_per_kwh"]
    at_most = data.plan(Scenario(model=CODER, electricity_usd_per_kwh=record.high))
    assert moved.here is None
    assert moved.own[-1] == pytest.approx(at_most.purchase.usd_per_month)
