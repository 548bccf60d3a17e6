"""The break-even's band: the same draws as the command's, in the sentence, on the chart and in the table."""

import pytest

from dashboard import charts, data, sureness
from planner.answers.money import Money
from planner.compare import Crossing
from planner.scenario import Scenario
from tests.dashboard.test_charts import CROSSING, drawn, layers_of

PAYS = {"model": "qwen3-coder-480b-a35b", "hours_per_day": 24.0}


def band(*months: float | None, base: float | None = 12.0) -> sureness.Band:
    return sureness.Band(
        base_months=base,
        months=months,  # type: ignore[arg-type]
        term_months=24.0,
        share_cheaper=0.64,
        draws=10_000,
        purchase="2x B200",
        rental="2x B200 from runpod, secure",
    )


def test_the_band_is_shaded_between_its_ends_and_said():
    drawing = charts.crossing(CROSSING, Money(), band(9.0, 13.0, 18.0))
    shade = layers_of(drawing, "rect")[0]
    assert shade["data"]["values"] == [{"from": 9.0, "until": 18.0, "text": "80 % of draws: 9 to 18 months"}]
    assert {"edge": 18.0} in drawn(drawing)
    assert drawing.said == (
        "Buying 2x B200 instead of renting 2x B200 from runpod, secure pays back after 12.0 months at the "
        "values taken; in 80 % of 10,000 seeded draws of what is not known* after 9 to 18 months, half of "
        "them by 13. Over the term buying is cheaper in 64% of them."
    )
    assert [row["months*"] for row in drawing.more_rows] == ["12.0", "9.0", "13.0", "18.0"]


def test_a_band_that_goes_on_is_shaded_to_the_end_of_the_chart():
    drawing = charts.crossing(CROSSING, Money(), band(20.0, None, None, base=None))
    shade = layers_of(drawing, "rect")[0]["data"]["values"][0]
    assert (shade["from"], shade["until"]) == (20.0, 24.0)
    assert {"edge": 24.0} not in drawn(drawing)
    assert "20 months to never" in drawing.said
    assert [row["months*"] for row in drawing.more_rows] == [
        sureness.NEVER,
        "20.0",
        sureness.NEVER,
        sureness.NEVER,
    ]


@pytest.mark.parametrize("months", [(30.0, 40.0, 50.0), (None, None, None)])
def test_a_band_beyond_the_chart_is_only_said(months):
    drawing = charts.crossing(CROSSING, Money(), band(*months))
    assert layers_of(drawing, "rect") == []
    assert "80 % of 10,000" in drawing.said or "more than 90 %" in drawing.said


def test_a_short_band_has_tenths_of_a_month():
    text = band(3.84, 4.12, 4.4, base=3.8).text
    assert "after 3.8 to 4.4 months, half of them by 4.1" in text


def test_a_short_band_of_one_month_names_it_once():
    assert (
        "in 80 % of 10,000 seeded draws of what is not known* after 1.8 months, half"
        in band(1.78, 1.8, 1.82).text
    )


def test_a_break_even_behind_the_term_is_not_said_to_pay_back():
    text = band(20.0, 30.0, 40.0, base=29.2).text
    assert "does not pay back within its term of 24 months (after 29) at the values taken" in text


def test_the_band_is_that_of_the_same_draws_as_on_the_command_line(database):
    found = data.plan(Scenario(**PAYS))
    sure = found.sensitivity()
    made = sureness.band(found)
    assert made.months == sure.break_even_months
    assert made.base_months == found.purchase.break_even_months
    low, middle, high = made.months
    assert low < middle < high
    chart: Crossing = found.crossing()
    assert charts.crossing(chart, found.money, made).said == made.text


def test_hardware_that_is_there_has_nothing_to_pay_back(database):
    found = data.plan(Scenario(model="qwen3-8b", own="1x RTX 4090"))
    assert found.purchase.is_own
    assert sureness.band(found) is None


def test_own_measurements_are_part_of_what_an_answer_depends_on(database, monkeypatch):
    question = Scenario(model="qwen3-8b")
    before = data.question_key(question)
    assert data.question_key(question) == before
    monkeypatch.setattr(data, "own_results", lambda: ("a measurement",))
    assert data.question_key(question) != before
