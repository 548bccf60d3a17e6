"""Every page on an empty, a normal and a stale database: it answers, and never shows a traceback."""

from datetime import datetime
from pathlib import Path

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from dashboard import app, data

APP = Path(app.__file__)
PAGES = [name for name, _, _ in app.PAGES]
DATABASES = ["database", "empty_database", "stale_database"]


@pytest.fixture(autouse=True)
def _fresh_server(monkeypatch: pytest.MonkeyPatch, now: datetime) -> None:
    """Nothing cached by the test before, and a fixed present."""
    st.cache_resource.clear()
    st.cache_data.clear()
    monkeypatch.setattr(data, "now", lambda: now)


def opened(page: str = "decide", **query: str) -> AppTest:
    """Open a page as a browser would."""
    test = AppTest.from_file(str(APP), default_timeout=60)
    for name, value in query.items():
        test.query_params[name] = value
    test.run()
    return test if page == "decide" else test.switch_page(f"views/{page}.py").run()


def texts(test: AppTest) -> str:
    """Return all words of a page but those in tables and charts."""
    kinds = (test.subheader, test.markdown, test.caption, test.info, test.warning, test.error)
    return "\n".join(str(element.value) for kind in kinds for element in kind)


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize("prices", DATABASES)
def test_every_page_answers_on_every_database(request, page, prices):
    request.getfixturevalue(prices)
    test = opened(page)
    assert [error.value for error in test.exception] == []
    assert [error.value for error in test.error] == []
    assert test.subheader[0].value


@pytest.mark.parametrize("page", PAGES)
def test_the_question_is_drawn_on_every_page_and_survives_the_way_between_them(database, page):
    test = opened(page, model="qwen3-8b", hours_per_day="8", context="4096")
    assert test.selectbox(key="model").value == "qwen3-8b"
    assert test.slider(key="hours_per_day").value == 8.0
    assert test.number_input(key="context").value == 4096
    back = test.switch_page("views/decide.py").run()
    assert back.selectbox(key="model").value == "qwen3-8b"


def test_bad_values_in_the_address_are_reported_in_words(database):
    test = opened("size", model="nope", hours_per_day="-1", bogus="1")
    said = texts(test)
    for word in ("unknown model", "hours\\_per\\_day", "bogus"):
        assert word in said
    assert test.selectbox(key="model").value == "qwen3-coder-480b-a35b"


def test_an_alias_in_the_address_chooses_its_model(database):
    test = opened("size", model="Qwen/Qwen3-8B", provider="runpod,vastai")
    assert test.selectbox(key="model").value == "qwen3-8b"
    assert test.multiselect(key="provider").value == ["runpod", "vastai"]


def test_options_that_exclude_each_other_are_one_line_and_not_a_traceback(database):
    test = opened("size")
    test.number_input(key="electricity_usd_per_kwh").set_value(0.3)
    test.selectbox(key="electricity_region").set_value("DE").run()
    assert [error.value for error in test.exception] == []
    assert "either a region" in test.error[0].value


def test_a_database_that_cannot_be_used_is_one_line(tmp_path, monkeypatch):
    file = tmp_path / "not-a-database.db"
    file.write_text("this is a letter, not a database", encoding="utf-8")
    monkeypatch.setenv("BREAKEVEN_DATABASE_URL", f"sqlite:///{file}")
    test = opened("market")
    assert [error.value for error in test.exception] == []
    assert "database" in test.error[0].value


def test_the_size_page_says_that_fitting_is_not_enough(database):
    test = opened("size", model="qwen3-coder-480b-a35b", gpu="Mac Studio M3 Ultra 512GB")
    said = texts(test)
    assert "fits on 1x Mac Studio M3 Ultra 512GB" in said
    assert "Good for" in said
    assert "batch only" in said


def test_the_size_page_says_that_it_does_not_fit(database):
    test = opened("size", model="qwen3-coder-480b-a35b", gpu="H100 SXM")
    assert "does not fit on 1x H100 SXM" in test.subheader[0].value


def test_the_capacity_screen_keeps_15_percent_free(database):
    test = opened("size", model="qwen3.5-35b-a3b", gpu="H100 SXM")
    rows = next(table.value for table in test.dataframe if "needed_gb" in table.value.columns)
    assert list(rows["weights_gb"]) == [70.0, 35.0, 17.5]
    assert list(rows["per_gpu_gb"]) == [68.0, 68.0, 68.0]
    assert list(rows["gpu_count"]) == [2, 1, 1]
    test.number_input(key="reserve_gb").set_value(40.0).run()
    rows = next(table.value for table in test.dataframe if "needed_gb" in table.value.columns)
    assert list(rows["gpu_count"]) == [2, 2, 1]


def test_the_market_counts_what_it_hides(database):
    test = opened("market")
    assert "that are never ranked are hidden" in texts(test)
    test.multiselect(key="show_gpu").set_value(["B200"]).run()
    shown = test.dataframe[0].value
    assert set(shown["gpu"]) == {"B200"}
    assert list(shown["usd_per_gpu_hour"]) == sorted(shown["usd_per_gpu_hour"])


def test_an_empty_market_names_the_command_that_fills_it(empty_database):
    test = opened("market")
    assert test.subheader[0].value == "No prices yet."
    assert test.code[0].value == "breakeven prices refresh"


def test_a_stale_market_is_marked_and_shows_what_is_held_back(stale_database):
    said = texts(opened("market"))
    assert "2 stale" in said
    assert "None of the fetched prices is younger than two days" in said
    held = [table.value for table in opened("market").dataframe if "why" in table.value.columns]
    assert "below a tenth of the market" in str(held[-1].values)


def test_the_grid_answers_in_words(database):
    test = opened("compare", show_models="qwen3-coder-480b-a35b", show_gpus="H200 SXM")
    rows = test.dataframe[0].value
    assert list(rows["H200 SXM"]) == ["2 GPUs"]


def test_the_method_page_lists_every_assumption_with_its_source(database):
    from planner.assumptions import all_assumptions

    rows = opened("method").dataframe[0].value
    assert len(rows) == len(all_assumptions())
    assert all(rows["source"])
