"""Every amount of every page follows the currency that is chosen, and says which it is."""

import json
import re
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from dashboard import app, data
from dashboard.rows import plan_rows
from planner.answers.figure import Figure
from planner.answers.money import Money
from planner.catalogues.currencies import all_currencies
from planner.scenario import Scenario
from tests.dashboard.pages import fresh_server, opened, texts, unescaped, words_table

__all__ = ["fresh_server"]  # used by every test here

EURO = Money(currency="EUR", usd_per_unit=1.25, as_of="2026-11-27", source="a bank")
TABS = [
    *(("market", {"market_tab": tab}) for tab in ("price-history", "held-back")),
    ("size", {"size_tab": "formulas"}),
]
# Where dollars stay: the rate itself, and beside the price shown the one that is kept.
STAYS = re.compile(r"= [\d.]+ USD \(|^USD/GPU-h$|US dollars")


def titles(test: AppTest) -> list[str]:
    """Return the titles of all columns of all tables."""
    found = []
    for table in test.dataframe:
        columns = json.loads(table.proto.columns)
        for name in table.value.columns:
            config = columns.get(name) or {}
            if not config.get("hidden"):
                found.append(str(config.get("label") or name))
    return found


@pytest.mark.parametrize(("page", "tab"), [*((name, {}) for name, _, _ in app.PAGES), *TABS])
def test_no_page_speaks_of_dollars_where_another_currency_is_chosen(database, page, tab):
    chosen = plan_rows.option_keys(data.plan(Scenario(model="qwen3-8b")))[5]
    more = {"chosen": chosen} if page == "decide" else {}
    test = opened(page, model="qwen3-8b", gpu="H100 SXM", currency="EUR", **tab, **more)
    assert [error.value for error in (*test.exception, *test.error)] == []
    figures = [f"{each.label} {each.value} {each.delta}" for each in test.metric]
    said = [*titles(test), *figures]
    said += [] if page == "method" else unescaped(texts(test)).splitlines()  # its examples stay as they are
    assert [text for text in said if "USD" in STAYS.sub("", text)] == []
    assert unescaped(texts(test)).count("Shown in EUR at the reference rate of") == 1


def column_of(test: AppTest, name: str) -> Any:
    return next(table.value for table in test.dataframe if name in table.value.columns)


def test_options_side_by_side_and_their_formulas_are_in_the_currency_that_is_shown(database):
    chosen = plan_rows.option_keys(data.plan(Scenario(model="qwen3-8b")))[5]
    dollars, euros = (
        opened(model="qwen3-8b", chosen=chosen, currency=currency) for currency in ("USD", "EUR")
    )
    rate = data.money(Scenario(model="qwen3-8b", currency="EUR")).usd_per_unit
    assert rate == pytest.approx(all_currencies()["EUR"].usd_per_unit)
    in_dollars, in_euros = (words_table(test, "figure").set_index("figure") for test in (dollars, euros))
    before, after = in_dollars.loc["rent [USD/month]"].iloc[0], in_euros.loc["rent [EUR/month]"].iloc[0]
    assert float(after) == pytest.approx(float(before) / rate, rel=1e-3)
    assert not any("USD" in name for name in in_euros.index)
    formulas = words_table(euros, "formula").set_index("figure")
    assert re.fullmatch(r"[\d.,]+ EUR/month", formulas.loc["rent", "value"])
    assert re.fullmatch(r".+; [\d.]+ USD / 1\.\d{4} USD per EUR", formulas.loc["rent", "numbers put in"])


def test_hourly_prices_and_the_price_of_hardware_are_in_the_currency_that_is_shown(database):
    dollars, euros = (opened("size", model="qwen3-8b", currency=currency) for currency in ("USD", "EUR"))
    rate = data.money(Scenario(model="qwen3-8b", currency="EUR")).usd_per_unit
    before, after = (words_table(test, "kind").set_index("kind") for test in (dollars, euros))
    for title, kind in (("to buy [{}]", "Best value"), ("to rent [{}/h]", "Cloud from")):
        usd, eur = (
            float(table.loc[kind, title.format(currency)].replace(",", ""))
            for table, currency in ((before, "USD"), (after, "EUR"))
        )
        assert eur == pytest.approx(usd / rate, rel=5e-2)  # both are rounded
    (price,) = (each for each in euros.metric if "tokens" in each.label and "M" in each.label)
    assert price.label == "EUR/M tokens"
    assert re.fullmatch(r"[\d.]+ EUR/h, .+", price.delta)


def test_market_prices_are_in_the_currency_that_is_shown_beside_those_that_are_kept(database):
    test = opened("market", show_gpu="B200", currency="EUR")
    rows = column_of(test, "per_gpu_hour")
    rate = data.money(Scenario(model="qwen3-8b", currency="EUR")).usd_per_unit
    assert rows["per_gpu_hour"].to_numpy() == pytest.approx(rows["usd_per_gpu_hour"].to_numpy() / rate)
    assert {"EUR/GPU-h", "EUR/h, whole machine", "USD/GPU-h"} <= set(titles(test))
    assert f"1 EUR = {rate:.4f} USD" in unescaped(texts(test))
    in_dollars = titles(opened("market", show_gpu="B200"))
    assert in_dollars.count("USD/GPU-h") == 2  # of the offers once, and of the figures behind the bars


def test_the_command_line_explains_an_option_in_the_currency_that_is_shown(database, cli):
    said = cli("plan", "qwen3-8b", "--currency", "EUR", "--explain", "1").out
    assert re.search(r"^rent: [\d.,]+ EUR/month$", said, re.MULTILINE)
    assert "USD per EUR" in said
    figures = cli("plan", "qwen3-8b", "--currency", "EUR", "--explain", "1", "--json").document["figures"]
    assert "USD/month" in {figure["unit"] for figure in figures}  # of scripts, which read one currency


def figure(value: float | None, unit: str, numbers: str = "2 x 5") -> Figure:
    return Figure(name="rent", value=value, unit=unit, formula="a x b", numbers=numbers, source="")


def test_a_figure_says_how_it_came_into_the_currency():
    shown = figure(10.0, "USD/month").shown_in(EURO)
    assert (shown.value, shown.unit) == (8.0, "EUR/month")
    assert shown.numbers == "2 x 5; 10.0000 USD / 1.2500 USD per EUR"
    assert figure(10.0, "USD", numbers="").shown_in(EURO).numbers == "10.0000 USD / 1.2500 USD per EUR"


@pytest.mark.parametrize(("value", "unit"), [(10.0, "GiB"), (10.0, "W"), (None, "USD/month")])
def test_what_is_no_amount_stays_as_it_is(value, unit):
    assert figure(value, unit).shown_in(EURO) == figure(value, unit)
    assert figure(10.0, "USD").shown_in(Money()) == figure(10.0, "USD")
