"""Every page on an empty, a normal and a stale database: it answers, and never shows a traceback."""

import dataclasses
import json
import re
import sqlite3
import tomllib
from collections.abc import Iterator
from typing import Any

import pandas as pd
import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from dashboard import address, app, data, documents, parts, simulator, state, tables, what_if
from dashboard.commands.web import SETTINGS
from dashboard.form.fields import with_controls
from dashboard.rows import market_rows, plan_rows
from planner.export import FORMATS
from planner.scenario import Scenario
from tests.dashboard.pages import APP, fresh_server, opened, texts, unescaped, words_table

PAGES = [name for name, _, _ in app.PAGES]
DATABASES = ["database", "empty_database", "stale_database"]

__all__ = ["fresh_server"]  # used by every test here


TABS = [
    *(("market", {"market_tab": tab}) for tab in ("price-history", "providers", "held-back")),
    *(("size", {"size_tab": tab}) for tab in ("context", "fine-tuning", "launch", "formulas")),
    *(("size", {"size_tab": tab}) for tab in ("capacity-screen", "model-record", "how-it-feels")),
]


@pytest.mark.parametrize(("page", "tab"), [*((page, {}) for page in PAGES), *TABS])
@pytest.mark.parametrize("prices", DATABASES)
def test_every_page_and_tab_answers_on_every_database(request, page, tab, prices):
    request.getfixturevalue(prices)
    test = opened(page, **tab)
    assert [error.value for error in test.exception] == []
    assert [error.value for error in test.error] == []
    assert test.subheader[0].value


@pytest.mark.parametrize("page", PAGES)
def test_the_question_is_drawn_on_every_page_and_survives_the_way_between_them(database, page):
    test = opened(page, model="qwen3-8b", hours_per_day="8", context="4096")
    assert test.selectbox(key="model").value == "qwen3-8b"
    assert test.slider(key="hours_per_day").value == 8.0
    assert test.text_input(key="context").value == "4096"
    back = test.switch_page("views/decide.py").run()
    assert back.selectbox(key="model").value == "qwen3-8b"


QUESTION = {
    "model": "qwen3-8b",
    "context": "4096",
    "hours_per_day": "8",
    "owner": "home",
    "own": "1x RTX 4090",
    "provider": ["runpod", "vastai"],
    "set": ["purchase_usd=1234567", "pue=1.2"],
}


def test_the_address_keeps_the_question_on_every_page_and_says_its_version(database):
    test = opened(**QUESTION)
    for page in [*PAGES[1:], PAGES[0]]:
        assert test.query_params == {**QUESTION, "set": sorted(QUESTION["set"]), "v": "1"}
        test = test.switch_page(f"views/{page}.py").run()
        again = opened(page, **test.query_params)  # reloaded, or opened by somebody else
        for name in ("model", "hours_per_day", "context", "own", "provider"):
            assert again.session_state[name] == test.session_state[name]


def test_the_address_follows_every_change_and_leaves_defaults_out(database):
    test = opened("size", model="qwen3-8b")
    test.text_input(key="context").set_value("16384").run()
    assert test.query_params == {"model": "qwen3-8b", "context": "16384", "v": "1"}
    test.text_input(key="context").set_value("8192").run()
    assert test.query_params == {"model": "qwen3-8b", "v": "1"}


def test_going_back_shows_the_question_of_that_address(database, monkeypatch):
    test = opened(model="qwen3-8b", hours_per_day="8")
    test.slider(key="hours_per_day").set_value(20.0).run()
    assert test.query_params["hours_per_day"] == "20"
    monkeypatch.setattr(address, "went_through_history", lambda: True)
    test.query_params = {"model": "qwen3-8b", "hours_per_day": "8", "v": "1"}
    test.run()
    assert test.slider(key="hours_per_day").value == 8.0
    assert "8 h a day" in unescaped(test.markdown[0].value)


def test_streamlit_still_tells_a_run_after_back_or_forward_from_others():
    """`dashboard.address.went_through_history` rests on it, and Streamlit has no public name for it."""
    from streamlit.proto.ClientState_pb2 import ClientState
    from streamlit.runtime.scriptrunner_utils.script_run_context import ScriptRunContext

    told = "is_history_navigation"
    lost = f"Streamlit {st.__version__} has no {told} any more: Back and Forward need another way"
    assert told in ClientState.DESCRIPTOR.fields_by_name, lost
    assert told in {field.name for field in dataclasses.fields(ScriptRunContext)}, lost
    assert ClientState().is_history_navigation is False


def test_a_filter_is_in_the_address_of_its_page_and_comes_back_with_it(database):
    test = opened("market", model="qwen3-8b", show_gpu="B200")
    assert test.query_params == {"model": "qwen3-8b", "show_gpu": "B200", "v": "1"}
    test = test.switch_page("views/size.py").run()
    assert test.query_params == {"model": "qwen3-8b", "v": "1"}
    test = test.switch_page("views/market.py").run()
    assert test.multiselect(key="show_gpu").value == ["B200"]
    assert test.query_params == {"model": "qwen3-8b", "show_gpu": "B200", "v": "1"}


def test_a_filter_that_nothing_answers_to_is_dropped_and_said(database):
    test = opened("market", show_gpu="B2000")
    assert "In the address: B2000 is not there, ignored." in unescaped(texts(test))
    assert test.query_params == {"v": "1"}
    test = opened("market", market_tab="price-history", history_gpu="H1000")
    assert "In the address: H1000 is not there, H100 SXM is shown." in unescaped(texts(test))
    assert test.query_params == {"market_tab": "price-history", "v": "1"}
    test = opened("market", market_tab="gossip")
    assert "In the address: gossip is no tab, Offers is shown." in unescaped(texts(test))
    assert test.query_params == {"v": "1"}


@pytest.mark.parametrize(
    ("page", "key", "titles"),
    [("size", "size_tab", ["Fine-tuning", "How it feels"]), ("market", "market_tab", ["Held back"])],
)
def test_the_open_tab_is_in_the_address_of_its_page_and_alone_is_filled(database, page, key, titles):
    for title in titles:
        slug = title.lower().replace(" ", "-")
        test = opened(page, **{key: slug})
        assert test.query_params == {key: slug, "v": "1"}
        assert [tab.label for tab in test.tabs if len(tab.children)] == [title]
        away = test.switch_page("views/decide.py").run()
        assert away.query_params == {"v": "1"}
        back = away.switch_page(f"views/{page}.py").run()
        assert back.query_params == {key: slug, "v": "1"}


def test_chosen_rows_are_in_the_address_and_shown_side_by_side(database):
    keys = plan_rows.option_keys(data.plan(Scenario(model="qwen3-8b")))
    chosen = [keys[4], keys[1]]
    test = opened(model="qwen3-8b", chosen=chosen)
    assert test.query_params == {"model": "qwen3-8b", "chosen": chosen, "v": "1"}
    table = words_table(test, "figure")
    assert [title.partition(".")[0] for title in table.columns[1:]] == ["2", "5"]
    test.slider(key="hours_per_day").set_value(20.0).run()  # ranks move, the rows stay chosen
    found = data.plan(Scenario(model="qwen3-8b", hours_per_day=20.0))
    places = sorted(str(plan_rows.option_keys(found).index(key) + 1) for key in chosen)
    table = words_table(test, "figure")
    assert sorted(title.partition(".")[0] for title in table.columns[1:]) == places


def test_a_chosen_row_is_read_in_full_beside_the_short_words_of_the_table(database):
    found = data.plan(Scenario(model="qwen3-8b"))
    keys, reasons = plan_rows.option_keys(found), found.passed_over()
    place = reasons.index("spot, may be taken away")
    test = opened(model="qwen3-8b", chosen=keys[place])
    assert set(options_table(test)["counts"]) <= {"yes", "no: spot", "no: old price", "no: too slow"}
    (name,) = words_table(test, "figure").columns[1:]
    assert name == f"{place + 1}. {plan_rows.option_name(found.options[place])}"
    said = words_table(test, "figure").set_index("figure")[name]
    assert said["counts"] == "no: spot, may be taken away"
    assert said["price"].startswith("snapshot 20")
    bought = next(
        place for place, option in enumerate(found.options) if option.is_own or option.kind == "buy"
    )
    both = words_table(opened(model="qwen3-8b", chosen=[keys[place], keys[bought]]), "figure")
    assert both.set_index("figure").loc["cost of owning [USD/month]", name] == ""  # never nan


def test_a_chosen_row_that_is_not_there_is_said(database):
    test = opened(model="qwen3-8b", chosen="rent:nobody:1x H100 SXM")
    assert "Chosen, and not among the options: rent:nobody:1x H100 SXM." in unescaped(texts(test))


def test_names_of_options_are_different(database):
    keys = plan_rows.option_keys(data.plan(Scenario(model="qwen3-8b")))
    assert len(set(keys)) == len(keys) > 50


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("set", "foo=1"),
        ("own", "junk"),
        ("provider", "nope"),
        ("gpu", "A100"),
        ("tier", "cheap"),
        ("as_of", "1999-01-01"),
        ("hours_per_day", "nan"),
        ("v", "7"),
    ],
)
def test_what_the_address_has_wrong_is_said_and_leaves_no_page_blank(database, page, name, value):
    test = opened(page, **{name: value})
    assert [error.value for error in (*test.exception, *test.error)] == []
    said = [unescaped(warning.value) for warning in test.warning]
    label = f"{state.FIELDS[name].label} ({name})" if name in state.FIELDS else name
    assert any(text.startswith(f"In the address: {label}: ") for text in said)
    assert test.subheader


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
    test.text_input(key="electricity_usd_per_kwh").set_value("0.3")
    test.selectbox(key="electricity_region").set_value("DE").run()
    assert [error.value for error in test.exception] == []
    assert unescaped(test.error[0].value).startswith("Electricity region: 'DE' is not allowed")


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


def test_what_would_make_it_fit_is_offered_and_a_click_sets_it(database):
    asked = {"model": "llama-3.3-70b-instruct", "quant": "FP8", "gpu": "H100 SXM", "gpus": "2"}
    test = opened("size", **asked, context="65536", batch="4")
    assert "does not fit" in test.subheader[0].value
    offered = {button.key: unescaped(button.label) for button in test.button if "remedy" in str(button.key)}
    assert offered
    said = unescaped(texts(test))
    assert "--offload" not in said
    assert '"Weights in system RAM [fraction]"' in said
    for key, label in offered.items():
        again = opened("size", **asked, context="65536", batch="4")
        assert re.fullmatch(r".+: .+ \([\d.]+ GiB to spare\)", label)
        again.button(key=key).click().run()
        assert " fits on " in again.subheader[0].value
        assert again.query_params != test.query_params


def test_settings_of_serving_are_in_the_address_said_and_folded(database):
    asked = {
        "model": "deepseek-v3.2",
        "quant": "FP8",
        "gpu": "H200 SXM",
        "gpus": "16",
        "pipeline": "2",
        "expert_ranks": "8",
        "attention_data": "8",
        "draft_tokens": "3",
        "acceptance": "0.7",
        "cached_input": "0.5",
        "memory_fraction": "0.95",
        "max_sequences": "256",
    }
    test = opened("size", **asked)
    assert [error.value for error in (*test.exception, *test.error)] == []
    assert test.query_params == {**asked, "v": "1"}
    (said,) = [caption.value for caption in test.caption if caption.value.startswith("Serving in detail")]
    for words in ("Pipeline stages 2", "Drafted tokens 3", "Prompt found in the cache [fraction] 0.5"):
        assert words in unescaped(said)
    names = {each.key for each in test.expander if each.key} or {each.label for each in test.expander}
    assert names & {"assumptions", "More assumptions"}


def test_options_in_sentences_are_named_by_their_control_and_commands_stay():
    said = parts.note("more with --offload 0.72 or --limit 0; see `breakeven plan --assumptions`")
    assert unescaped(said) == (
        'more with 0.72 under "Weights in system RAM [fraction]" or --limit 0; '
        "see `breakeven plan --assumptions`"
    )
    assert "`breakeven plan --assumptions`" in said


@pytest.mark.parametrize(
    ("sentence", "said"),
    [
        ("; --tier spot plans with spot machines", '; spot under "Tiers" plans with spot machines'),
        (
            "Not in the rents: set-up; --set adds it.",
            'Not in the rents: set-up; "Other assumptions" adds it.',
        ),
        (
            "too old; --set max_purchase_age_years=6 takes more",
            'too old; max_purchase_age_years=6 under "Other assumptions" takes more',
        ),
        ("Give --tokens-per-month or more", 'Give "Demand [output tokens/month]" or more'),
        ("use --kv-dtype q8_0", 'use q8_0 under "Precision of the cache"'),
    ],
)
def test_a_value_stands_before_its_control(sentence, said):
    assert with_controls(sentence) == said


def test_a_purchase_without_a_break_even_says_why(database, monkeypatch):
    rows = options_table(opened("decide", model="qwen3-8b"))
    bought = rows[rows["option"].str.startswith("buy ")]
    assert (bought["pays_back"].isna() == bought["no_payback"].notna()).all()
    assert "never" in set(bought["no_payback"])
    assert rows[~rows["option"].str.startswith("buy ")]["no_payback"].isna().all()


def test_a_purchase_with_nothing_to_rent_says_so(empty_database):
    rows = options_table(opened("decide", model="qwen3-8b"))
    bought = rows[rows["option"].str.startswith("buy ")]
    assert len(bought) > 0
    assert set(bought["no_payback"]) == {"no rental to compare"}


def test_the_capacity_screen_keeps_15_percent_free(database):
    test = opened("size", model="qwen3.5-35b-a3b", gpu="H100 SXM", size_tab="capacity-screen")
    rows = next(table.value for table in test.dataframe if "needed_gb" in table.value.columns)
    assert list(rows["weights_gb"]) == [70.0, 35.0, 17.5]
    assert list(rows["per_gpu_gb"]) == [68.0, 68.0, 68.0]
    assert list(rows["gpu_count"]) == [2, 1, 1]
    test.text_input(key="reserve_gb_widget").set_value("40").run()
    rows = next(table.value for table in test.dataframe if "needed_gb" in table.value.columns)
    assert list(rows["gpu_count"]) == [2, 2, 1]
    assert test.query_params["reserve_gb"] == "40"
    again = opened("size", **test.query_params)
    assert again.text_input(key="reserve_gb_widget").value == "40"


def test_the_market_counts_what_it_hides(database):
    test = opened("market")
    assert "that are never ranked are hidden" in texts(test)
    test.multiselect(key="show_gpu").set_value(["B200"]).run()
    shown = test.dataframe[0].value
    assert set(shown["gpu"]) == {"B200"}
    assert list(shown["per_gpu_hour"]) == sorted(shown["per_gpu_hour"])


@pytest.mark.parametrize(
    ("prices", "wanted"),
    [
        ("database", "rent snapshot, 20"),
        ("stale_database", "rent stale, "),
        ("empty_database", "No rental price counts for this"),
    ],
)
def test_the_answer_says_how_old_its_prices_are(request, prices, wanted):
    request.getfixturevalue(prices)
    said = [caption.value for caption in opened("decide", model="qwen3-8b").caption]
    assert len([text for text in said if wanted in text]) == 1, said


def test_the_market_calls_quarantined_only_what_is_held_back(database):
    test = opened("market")
    test.checkbox(key="show_unranked").set_value(True).run()
    shown = test.dataframe[0].value
    unclear = shown[shown["status"] == market_rows.UNCLEAR]
    assert unclear["why_not"].str.startswith("ambiguous GPU name").all()
    assert f"{len(unclear):,} {market_rows.UNCLEAR}" in texts(test)
    assert "quarantined" not in texts(test)


def test_an_empty_market_names_the_command_that_fills_it(empty_database):
    test = opened("market")
    assert test.subheader[0].value == "No prices yet."
    assert test.code[0].value == "breakeven prices refresh"


def test_a_stale_market_is_marked_and_shows_what_is_held_back(stale_database):
    said = texts(opened("market"))
    assert "2 stale" in said
    assert "None of the fetched prices is younger than two days" in said
    test = opened("market", market_tab="held-back")
    held = [table.value for table in test.dataframe if "why" in table.value.columns]
    assert "below a tenth of the market" in str(held[-1].values)


def test_tables_of_a_document_are_told_from_its_text():
    text = "Before.\n\n| a | b |\n| --- | --: |\n| 1 | - |\n\nAfter."
    assert tables.split_markdown(text) == ["Before.\n", [["a", "b"], ["1", "-"]], "\nAfter."]
    code = "Before.\n```sh\nls | wc\n| x |\n```\nAfter."
    assert tables.split_markdown(code) == ["Before.", tables.Code("ls | wc\n| x |", "sh"), "\nAfter."]


def test_a_counted_noun_stands_in_its_plural():
    counted = [(1, "entry"), (2, "entry"), (2, "day"), (0, "price"), (1200, "source")]
    said = ["1 entry", "2 entries", "2 days", "0 prices", "1,200 sources"]
    assert [tables.plural(*each) for each in counted] == said


def test_the_grid_answers_in_words(database):
    test = opened("compare", show_models="qwen3-coder-480b-a35b", show_gpus="H200 SXM")
    rows = test.dataframe[0].value
    assert list(rows["H200 SXM"]) == ["2 GPUs"]


def test_models_are_compared_on_the_machine_of_the_question(database):
    test = opened("compare", show_models=["qwen3-8b", "qwen3-coder-480b-a35b"], gpu="RTX 4090")
    rows = next(table.value for table in test.dataframe if "fits" in table.value.columns)
    assert list(rows["model"]) == ["qwen3-8b", "qwen3-coder-480b-a35b"]
    assert list(rows["fits"]) == ["fits", "does not fit"]
    assert rows["decode"].notna().tolist() == [True, False]
    assert "Models on 1x RTX 4090" in [subheader.value for subheader in test.subheader]


def test_every_format_says_which_machine_holds_it_what_runs_it_and_what_to_know(database):
    test = opened("size", model="llama-3.3-70b-instruct", gpu="A100 80GB SXM", gpus="2")
    rows = next(table.value for table in test.dataframe if "format" in table.value.columns)
    rows = rows.set_index("format")
    assert rows.loc["Q4_K_M", "smallest"] == "1x L40S"  # 48 GB hold 40 GiB and the cache
    assert rows.loc["BF16", "smallest"] == "1x B200"  # 131 GiB
    assert (rows.loc["Q4_K_M", "engine"], rows.loc["FP8", "engine"]) == ("llama.cpp", "vllm")
    assert "A100" in rows.loc["FP8", "known"]  # it has no units for that format
    full = words_table(test, "to know").set_index("format")["to know"]
    assert full["FP8"] == rows.loc["FP8", "known"]
    assert not rows["known"].dropna().str.contains("--").any()


def test_formulas_stand_with_the_numbers_of_this_configuration(database):
    test = opened("size", model="qwen3-8b", gpu="RTX 4090", size_tab="formulas")
    rows = words_table(test, "numbers put in")
    assert {"weights", "attention cache", "usable", "decode, one sequence"} <= set(rows["figure"])
    assert rows["figure"].iloc[-1] == "a million output tokens at full use"
    assert rows["source"].str.startswith("docs/methodology.md").all()


def test_figures_of_fine_tuning_carry_the_mark_of_an_estimate(database):
    test = opened("size", model="qwen3-8b", size_tab="fine-tuning")
    table = next(table for table in test.dataframe if "total_gib" in table.value.columns)
    titles = {name: column.get("label") for name, column in json.loads(table.proto.columns).items()}
    assert all("* [GiB]" in titles[name] for name in table.value.columns if name.endswith("_gib"))
    assert "* estimated, not measured." in unescaped(texts(test))


def test_the_method_page_lists_every_assumption_with_its_source(database):
    from planner.assumptions import all_assumptions

    rows = opened("method").dataframe[0].value
    assert sorted(rows["assumption"]) == sorted(record.title for record in all_assumptions().values())
    assert all(rows["source"])


def test_the_first_page_answers_with_the_verdict_of_the_plan(database):
    test = opened(model="qwen3-coder-480b-a35b", hours_per_day="8")
    found = data.plan(Scenario(model="qwen3-coder-480b-a35b", hours_per_day=8.0))
    assert unescaped(test.markdown[0].value) == f"#### {found.verdict}"
    assert "8 h a day" in found.verdict
    assert len(options_table(test)) == len(found.options)


def test_options_show_price_age_source_and_an_empty_cell_for_what_is_unknown(database):
    rows = options_table(opened())
    rented = rows[rows["per_hour"].notna()]
    assert set(rented["status"]) == {"snapshot"}
    assert rented["seen"].str.fullmatch(r"20\d\d-\d\d-\d\d").all()
    assert rented["source"].dropna().str.startswith("https://").all()
    assert list(rows["rank"]) == list(range(1, len(rows) + 1))
    called = rows[rows["provider"] == "OpenRouter"]
    assert called["per_hour"].isna().all()
    assert called["decode"].isna().all()


def test_every_way_stands_below_the_verdict_and_the_first_row_that_counts_is_the_cheapest(database):
    test = opened(own="1x RTX 4090")
    found = data.plan(Scenario(model="qwen3-coder-480b-a35b", own="1x RTX 4090"))
    said = unescaped(texts(test))
    for way in ("Rent", "Buy", "Your own 1x RTX 4090", "API"):
        assert f"- **{way}**: " in said
    assert "your own 1x RTX 4090 does not serve it" in unescaped(test.markdown[0].value)
    rows = options_table(test)
    rented = rows[rows["per_hour"].notna()]
    assert rented[rented["counts"] == "yes"]["month"].min() == found.rental.usd_per_month
    cheaper = rented[rented["month"] < found.rental.usd_per_month]
    assert len(cheaper) > 0
    assert not (cheaper["counts"] == "yes").any()
    assert "Cheaper, but not counted" in said


def test_changing_the_hours_changes_the_verdict(database):
    test = opened()
    before = test.markdown[0].value
    test.slider(key="hours_per_day").set_value(20.0).run()
    assert test.markdown[0].value != before
    assert "20 h a day" in test.markdown[0].value


def test_a_demand_takes_the_place_of_the_hours(database):
    test = opened(model="gpt-oss-120b", tokens_per_month="1e8")
    assert "100.0 million output tokens" in unescaped(test.markdown[0].value)


def test_a_load_of_the_day_takes_the_slider_over_and_gives_it_back(database):
    test = opened(model="qwen3-8b", tokens_per_month="1e9", hours_per_day="8")
    test.text_input(key="load_profile").set_value("8-18=1").run()
    assert [error.value for error in (*test.exception, *test.error)] == []
    (slider,) = test.slider
    assert (slider.disabled, slider.value) == (True, 10.0)
    assert "hours_per_day" not in test.query_params
    assert test.query_params["load_profile"] == "8-18=1"
    test.text_input(key="load_profile").set_value("8-20=1").run()
    assert test.slider[0].value == 12.0
    test.text_input(key="load_profile").set_value("").run()
    (slider,) = test.slider
    assert (slider.disabled, slider.value) == (False, 8.0)
    assert (slider.proto.set_value, list(slider.proto.value)) == (True, [8.0])  # what the browser is told
    assert test.query_params["hours_per_day"] == "8"


def test_with_a_load_of_the_day_the_best_number_to_own_is_said_drawn_and_listed(database):
    asked = {
        "model": "gpt-oss-120b",
        "quant": "MXFP4",
        "tokens_per_month": "2e10",
        "load_profile": "0-11=1,11-13=5,13-24=1",
    }
    test = opened(**asked)
    assert [error.value for error in (*test.exception, *test.error)] == []
    found = data.plan(Scenario.from_query(asked)[0])
    assert found.mixed.is_mixed
    assert unescaped(texts(test)).count("Owned base load, rented peaks: ") == 1
    assert unescaped(texts(test)).count(found.singles_text) == 2  # above the charts, and what it hangs on
    rows = next(table.value for table in test.dataframe if "own_count" in table.value.columns)
    assert list(rows["own_count"]) == list(range(len(found.mixed.tried)))
    least = rows.loc[rows["month"].idxmin()]
    assert (least["own_count"], least["best"]) == (found.mixed.best.own_count, "yes")
    assert least["own"] + least["rent"] == pytest.approx(least["month"])
    without = texts(opened(model="gpt-oss-120b", tokens_per_month="2e10"))
    assert "Owned base load" not in without


def test_a_stale_price_is_marked_in_the_verdict_and_in_the_table(stale_database):
    test = opened(model="qwen3-coder-480b-a35b", hours_per_day="1")
    assert "last seen 2026-11-20" in unescaped(texts(test))
    rows = options_table(test)
    assert list(rows[rows["provider"] == "RunPod"]["status"]) == ["stale"]
    assert list(rows[rows["provider"] == "RunPod"]["seen"]) == ["10 d ago"]


def test_a_price_above_the_age_limit_is_left_out_and_counted(stale_database):
    test = opened(model="qwen3-coder-480b-a35b", max_price_age="5")
    assert "RunPod" not in set(options_table(test)["provider"])
    left_out = next(table.value for table in test.dataframe if list(table.value.columns) == ["what", "why"])
    assert "5 days" in " ".join(left_out["why"])


def test_without_prices_the_first_page_names_the_command_that_fetches_them(empty_database):
    said = texts(opened())
    assert "`breakeven prices refresh`" in said


def test_the_download_is_what_the_exporter_writes(database):
    found = data.plan(Scenario(model="qwen3-8b"))
    for name in documents.DOWNLOADS:
        assert documents.export(found, name)() == FORMATS[name](found, None)
    assert b"# permalink: /?model=qwen3-8b&v=1\n" in documents.export(found, "csv")()


def test_a_plan_is_computed_once_for_a_question_and_anew_after_a_write(database, stale_database):
    question = Scenario(model="qwen3-8b")
    first = data.plan(question)
    assert data.plan(Scenario(model="qwen3-8b")) is first
    with sqlite3.connect(database) as connection:
        connection.execute("UPDATE store_value SET value = value + 1 WHERE name = 'revision'")
    connection.close()
    assert data.plan(question) is not first


@pytest.mark.parametrize("number", range(6))
def test_an_example_is_asked_in_place_and_stands_in_the_address(database, number):
    test = opened(model="qwen3-8b", context="4096", chosen="rent:nobody:1x H100 SXM")
    assert len([button for button in test.button if str(button.key).startswith("preset_")]) == 6
    test.button(key=f"preset_{number}").click().run()
    assert [error.value for error in (*test.exception, *test.error, *test.warning)] == []
    asked, complaints = state.read_address(dict(test.query_params))
    assert complaints == []
    assert {"context", "chosen"}.isdisjoint(test.query_params)  # nothing of the question before is left
    assert unescaped(test.markdown[0].value) == f"#### {data.plan(asked).verdict}"
    assert asked.model == test.selectbox(key="model").value != "qwen3-8b"


def test_an_unexpected_error_is_one_line_without_a_traceback(database, monkeypatch):
    def broken(scenario: Scenario) -> None:
        raise ZeroDivisionError(f"of {scenario.model}")

    monkeypatch.setattr(data, "plan", broken)
    test = opened()
    assert [error.value for error in test.exception] == []
    assert "This page could not be drawn" in test.error[0].value
    assert "Traceback" not in test.error[0].value


@pytest.mark.parametrize(
    "text",
    [
        "1. one",
        "- two",
        "-36,286",
        "*bold* _it_ `code`",
        "[a](javascript:alert(1))",
        "<b>x</b>",
        "$x^2$ :red[no] #1",
        "a|b ~c~",
    ],
)
def test_text_of_others_is_shown_as_text(text):
    shown = parts.plain(text)
    assert unescaped(shown) == text
    assert not re.search(r"(?<!\\)[*_`\[\]()<>$:#|~]", shown)
    assert not re.match(r"\d*[-+.] ", shown)  # it would be a list


@pytest.mark.parametrize(
    ("source", "address"),
    [
        ("https://www.runpod.io/pricing", "https://www.runpod.io/pricing"),
        ("github:a/b@1234:dir/f.csv", "https://github.com/a/b/blob/1234/dir/f.csv"),
        ("github:a/b", "https://github.com/a/b"),
        ("genai-prices 0.2.3", "https://github.com/pydantic/genai-prices"),
        ("litellm model price file (release 1.110.2)", "https://github.com/BerriAI/litellm"),
        ("javascript:alert(1)", None),
        ("http://example.com", None),
        (None, None),
    ],
)
def test_a_source_becomes_an_address_only_where_a_browser_should_open_it(source, address):
    assert tables.address_of(source) == address


def test_the_simulator_types_at_the_speed_it_names():
    pieces = list(simulator.pieces(13.0, 0.5, ["word"] * 100))
    assert pieces[0].pause_s == 0.5
    # 99 words of 1.3 tokens at 13 tokens a second follow the first one.
    assert sum(piece.pause_s for piece in pieces[1:]) == pytest.approx(9.9)
    assert "".join(piece.text for piece in pieces).split() == ["word"] * 100
    fast = list(simulator.pieces(520.0, 0.1, ["word"] * 100))
    assert len(fast) == 5  # 20 words every 0.05 s


def test_two_machines_write_at_the_same_time_each_at_its_own_speed():
    fast, slow = simulator.Pace("fast", 520.0, 0.1), simulator.Pace("slow", 0.9, 2.0)
    at, ends = 0.0, {}
    written = ["", ""]
    for turn in simulator.race([fast, slow], ["word"] * 100):
        assert turn.pause_s >= 0.0
        at += turn.pause_s
        ends[turn.lane] = at
        written[turn.lane] += turn.text
    assert [text.split() for text in written] == [["word"] * 100] * 2
    # 5 pieces of 20 words, 0.05 s apart; 99 words of 1.3 tokens at 0.9 tokens/s
    assert ends[0] == pytest.approx(0.1 + 4 * 0.05)
    assert ends[1] == pytest.approx(2.0 + 99 * 1.3 / 0.9)


def test_the_simulator_sets_the_machine_beside_one_of_the_plan(database, monkeypatch):
    slept: list[float] = []
    monkeypatch.setattr("time.sleep", slept.append)
    test = opened("size", model="qwen3-8b", gpu="RTX 4090", size_tab="how-it-feels")
    other = test.selectbox(key="beside").options[0]
    assert other != "1x RTX 4090"
    test.selectbox(key="beside").set_value(other)
    test.button(key="start_stream").click().run()
    assert [error.value for error in (*test.exception, *test.error)] == []
    said = unescaped(texts(test))
    assert f"**{other}**" in said
    assert "**1x RTX 4090**" in said
    assert said.count("all of them together much more.") == 2
    assert sum(slept) > 1.0


def test_one_assumption_is_moved_over_its_range_with_all_others_held(database):
    question = Scenario(model="qwen3-coder-480b-a35b")
    assert what_if.movable(question)["Years of use"] == "term_years"
    effect = what_if.effect(question, "term_years")
    assert (effect.values[0], effect.values[-1], effect.here) == (3.0, 6.0, 4.0)
    assert len(set(effect.rent)) == 1
    assert effect.own[0] > effect.own[-1]
    at_three = data.plan(Scenario(model="qwen3-coder-480b-a35b", set=(("term_years", 3.0),)))
    assert effect.own[0] == at_three.purchase.usd_per_month


def test_a_peak_can_be_moved_only_where_there_is_a_demand():
    peak = "Peak load over mean load in the hours of service"
    assert peak not in what_if.movable(Scenario(model="qwen3-8b"))
    assert peak in what_if.movable(Scenario(model="qwen3-8b", tokens_per_month=1e9))


@pytest.mark.parametrize("options", [{}, {"owner": "colo"}])
def test_every_assumption_offered_can_be_moved(empty_database, options, monkeypatch):
    monkeypatch.setattr(what_if, "EFFECT_POINTS", 2)  # the ends of each range
    question = Scenario(model="qwen3-8b", **options)
    for name in what_if.movable(question).values():
        assert len(what_if.effect(question, name).values) > 1


def test_the_effect_of_an_assumption_is_drawn_when_it_is_asked_for(database):
    test = opened()
    test.selectbox(key="effect_of").set_value("Years of use").run()
    assert [error.value for error in test.exception] == []
    assert "Years of use from 3 to 6 years" in unescaped(texts(test))


def test_a_checkout_is_served_with_the_settings_of_the_command():
    with (APP.parent.parent / ".streamlit" / "config.toml").open("rb") as file:
        written = dict(flat(tomllib.load(file)))
    assert written == SETTINGS


def flat(table: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    for name, value in table.items():
        if isinstance(value, dict):
            yield from flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", str(value).lower() if isinstance(value, bool) else str(value)


def options_table(test: AppTest) -> pd.DataFrame:
    return next(table.value for table in test.dataframe if "rank" in table.value.columns)


def test_a_region_that_nobody_offers_is_said_and_left_out_of_the_question(database):
    test = opened(model="qwen3-8b", region="xyz", hours_per_day="8")
    assert [error.value for error in test.error] == []
    assert any("'xyz' is offered by nobody" in warning.value for warning in test.warning)
    assert test.query_params == {"model": "qwen3-8b", "hours_per_day": "8", "v": "1"}
    assert test.subheader[0].value == opened(model="qwen3-8b", hours_per_day="8").subheader[0].value


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"gpu": "Mac Studio M4 Max 128GB", "engine": "vllm"}, "vllm does not run on Apple devices"),
        ({"gpu": "H100 SXM", "context": "1000000"}, "up to 131,072 tokens, the model's maximum"),
    ],
)
def test_a_launch_that_cannot_start_is_said_in_words(database, asked, said):
    test = opened("size", model="llama-3.1-8b-instruct", quant="BF16", size_tab="launch", **asked)
    assert [error.value for error in test.exception] == []
    assert any(said in unescaped(info.value) for info in test.info), [info.value for info in test.info]
