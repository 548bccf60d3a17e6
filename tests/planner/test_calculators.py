"""Public calculators: their own figures come out of their own inputs, and the document names them all."""

from decimal import Decimal

import pytest

from bench.calculators import (
    DOCUMENT,
    FORMULAS,
    HOURS_PER_DAY,
    Inputs,
    answers_of,
    calculators,
    inputs_of,
    left_out_rows,
    planned,
    ways,
)
from planner.compare import Plan

PUBLISHED = [each for each in calculators() if each.published is not None]


@pytest.fixture(scope="module")
def plans() -> list[Plan]:
    return planned()


@pytest.mark.parametrize("calculator", PUBLISHED, ids=lambda each: each.name)
def test_the_figure_that_a_page_prints_comes_out_of_its_own_inputs(calculator) -> None:
    printed = Decimal(calculator.published)
    places = Decimal(1).scaleb(int(printed.as_tuple().exponent))
    assert Decimal(calculator.recomputed).quantize(places) == printed


def test_every_formula_is_used_and_every_calculator_has_a_source() -> None:
    assert {each.formula for each in calculators()} == set(FORMULAS)
    assert all("https://" in each.source or "public sizing page" in each.source for each in calculators())
    assert all(each.counts and each.leaves_out for each in calculators())


@pytest.mark.parametrize(
    ("formula", "given", "answer"),
    [
        # 385,000 / (14 x 730 - 8.064 x 0.175 x 730) = 385,000 / 9,189.82
        ("sizing_page", {"rent_usd_per_hour": 14.0}, 41.8940),
        # The same with cooling of 1.5: 385,000 / (10,220 - 1.5 x 1,030.176)
        ("lenovo", {"rent_usd_per_hour": 14.0, "pue": 1.5}, 44.3815),
        # (385,000 / 4 + 1.4112 x 8,760 + 36,000) / 8,760 / (2,000 x 3,600) x 1e6
        ("nvidia", {"aggregate_tokens_per_s": 2000.0}, 2.29287),
        # 385,000 / 4 + 12,362.11 = 108,612.11 a year; 512 / (1,024 / 16,384 + 512 / 4,096) = 2,730.67 a s
        ("inferecon", {"prefill_tokens_per_s": 16_384.0, "decode_tokens_per_s": 4096.0,
                       "input_tokens": 1024.0, "output_tokens": 512.0}, 1.26125),
        ("inferencex", {"aggregate_tokens_per_s": 2000.0}, 1.877778),  # 1.69 / (250 x 3,600) x 1e6
        # (385,000 + 3 x 12,362.11) / (3 x 8,760 x 8)
        ("cliffcenter", {}, 2.00763),
        ("deloitte", {"rent_usd_per_hour": 14.0, "own_usd_per_month": 10_220.0}, 1.0),
        # 1,000 tokens/s x 3,600 x 730 = 2,628 Mtok at 1 USD = 2,628; x (1 - 1e-4) / (4 ln 10)
        ("llmflation", {"aggregate_tokens_per_s": 1000.0, "api_usd_out": 1.0}, 285.302),
    ],
)  # fmt: skip
def test_formulas_worked_by_hand(formula: str, given: dict[str, float], answer: float) -> None:
    machine = {"purchase_usd": 385_000.0, "load_kw": 8.064, "usd_per_kwh": 0.175}
    assert FORMULAS[formula](Inputs(**{**machine, **given})) == pytest.approx(answer, rel=1e-4)


def test_the_calculators_get_what_the_plan_has(plans: list[Plan]) -> None:
    rental, purchase, _, basis = ways(plans[0])
    given = inputs_of(plans[0])
    assert (given.purchase_usd, given.load_kw) == (purchase.purchase_usd, basis.load_kw)
    assert given.rent_usd_per_hour == float(rental.usd_per_hour or 0.0)
    assert given.own_usd_per_month == purchase.usd_per_month


def test_a_machine_that_stands_idle_moves_our_answer_and_not_theirs(plans: list[Plan]) -> None:
    assert [found.scenario.hours_per_day for found in plans] == list(HOURS_PER_DAY)
    (nvidia,) = (each for each in calculators() if each.formula == "nvidia")
    (always, own, _), (part, own_part, _) = (answers_of(nvidia, found) for found in plans)
    assert always == part
    assert own != own_part


def test_left_out_cost_lowers_the_price_of_an_hour_and_left_out_resale_raises_it(plans: list[Plan]) -> None:
    rows = {row[0]: float(row[1]) for row in left_out_rows(plans[0])}
    assert rows["resale"] > rows["nothing"]
    assert all(
        rows[what] < rows["nothing"] for what in ("interest", "network", "support", "staff", "electricity")
    )


def test_the_document_names_every_calculator_with_its_address_and_holds_figures() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    for each in calculators():
        assert f"| {each.name} | " in text
        assert each.source in text or not each.source.startswith("https://")
    assert "| nothing | " in text
