import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.errors import InvalidScenario
from planner.supply.depreciation import Way, schedule
from planner.supply.options import Kind
from tests.planner.plans import plan_of, rate


def test_the_reference_machine_by_both_ways() -> None:
    straight = schedule(330_000, 45_000, 4, Way.STRAIGHT_LINE)
    assert [year.depreciation_usd for year in straight] == pytest.approx([71_250] * 4)
    declining = schedule(330_000, 45_000, 4, Way.DECLINING)
    assert [year.depreciation_usd for year in declining] == pytest.approx([165_000, 82_500, 37_500, 0])
    assert [year.book_usd for year in declining] == pytest.approx([165_000, 82_500, 45_000, 45_000])


def test_it_turns_to_the_straight_line_where_that_takes_more() -> None:
    years = schedule(100_000, 0, 5, Way.DECLINING)  # 40 % a year; from the fourth on 10,800 a year
    assert [year.depreciation_usd for year in years] == pytest.approx(
        [40_000, 24_000, 14_400, 10_800, 10_800]
    )
    slow = schedule(100_000, 0, 4, Way.DECLINING, rate=0.1)
    assert [year.depreciation_usd for year in slow] == pytest.approx([25_000] * 4)


def test_a_broken_last_year_takes_its_share() -> None:
    years = schedule(100_000, 0, 2.5, Way.STRAIGHT_LINE)
    assert [year.years for year in years] == [1.0, 2.0, 2.5]
    assert [year.depreciation_usd for year in years] == pytest.approx([40_000, 40_000, 20_000])


def test_market_and_books_side_by_side() -> None:
    first, *_ = schedule(100, 20, 4, Way.STRAIGHT_LINE, market_usd=lambda years: 62.0)
    assert first.book_usd == 80
    assert first.unrealised_usd == -18
    assert schedule(100, 20, 4, Way.STRAIGHT_LINE)[0].unrealised_usd is None


@given(
    capex=st.floats(1.0, 1e7),
    left=st.floats(0.0, 1.0),
    term=st.floats(0.25, 20.0),
    way=st.sampled_from(list(Way)),
    rate=st.one_of(st.none(), st.floats(0.01, 3.0)),
)
def test_books_fall_to_the_resale_value_and_never_below(
    capex: float, left: float, term: float, way: Way, rate: float | None
) -> None:
    years = schedule(capex, capex * left, term, way, rate=rate)
    books = [capex, *(year.book_usd for year in years)]
    assert books == sorted(books, reverse=True)
    assert years[-1].years == pytest.approx(term)
    assert years[-1].book_usd == pytest.approx(capex * left, rel=1e-6, abs=1e-6 * capex)
    assert sum(year.depreciation_usd for year in years) == pytest.approx(capex * (1 - left), abs=1e-6 * capex)


@pytest.mark.parametrize(
    ("capex", "resale", "term", "rate", "field"),
    [
        (100, 120, 4, None, "resale_usd"),
        (100, -1, 4, None, "resale_usd"),
        (100, 20, 0, None, "term_years"),
        (100, 20, float("nan"), None, "term_years"),
        (100, 20, 4, 0.0, "rate"),
    ],
)
def test_what_cannot_be_is_refused(
    capex: float, resale: float, term: float, rate: float | None, field: str
) -> None:
    with pytest.raises(InvalidScenario) as caught:
        schedule(capex, resale, term, Way.DECLINING, rate=rate)
    assert caught.value.field == field


def test_an_explanation_shows_books_and_market() -> None:
    found = plan_of([rate()], gpu="B200", gpus=2)
    place, option = next((n, each) for n, each in enumerate(found.options, 1) if each.kind is Kind.BUY)
    (figure,) = (each for each in found.explain(place).figures if "declining" in each.name)
    capex = option.purchase_usd or 0.0
    assert figure.value == pytest.approx(capex / 2 / 12)  # half of it in the first of four years
    assert f"{capex / 2:,.0f}" in figure.numbers
    assert "sold then" in figure.numbers
    own = plan_of([rate()], gpu="B200", gpus=2, own="2x B200")
    there = next(n for n, each in enumerate(own.options, 1) if each.is_own)
    assert not any("declining" in each.name for each in own.explain(there).figures)
