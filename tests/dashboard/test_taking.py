"""Tables as files: what is shown, under the titles that are shown, with page, time and sources on top."""

import csv
import io
import json
from datetime import UTC, datetime

import pytest
import streamlit as st
from openpyxl import load_workbook

from dashboard import taking
from planner.exports.listing import LISTING_FORMATS, about
from tests.dashboard.pages import fresh_server, opened

__all__ = ["fresh_server"]  # used by every test here

ROWS = [
    {"GPU": "H100 | SXM", "USD/GPU-h": 2.5, "seen": datetime(2026, 11, 4, 9, 30, tzinfo=UTC), "why": None},
    {"GPU": "=B200", "USD/GPU-h": None, "seen": None, "why": "a slice"},
]
TIME = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
LINES = about("Offers", "/market?show_gpu=B200&v=1", TIME, ["a.example", "b.example", "a.example"], "no VAT")


def test_the_lines_on_top_say_page_time_and_sources_once_each():
    top = dict(LINES)
    assert top["permalink"] == "/market?show_gpu=B200&v=1"
    assert top["as of"] == "2026-11-30T12:00:00Z"
    assert top["sources"] == "a.example, b.example"


def test_csv_is_read_back_and_holds_no_formula():
    text = LISTING_FORMATS["csv"](ROWS, LINES).decode()
    assert "# permalink: /market?show_gpu=B200&v=1\n" in text
    body = [line for line in text.splitlines() if not line.startswith("#")]
    rows = list(csv.DictReader(body))
    assert rows[0] == {"GPU": "H100 | SXM", "USD/GPU-h": "2.5", "seen": "2026-11-04T09:30:00Z", "why": ""}
    assert rows[1]["GPU"] == "'=B200"


def test_a_workbook_keeps_numbers_and_is_the_same_each_time():
    made = LISTING_FORMATS["xlsx"](ROWS, LINES)
    assert made == LISTING_FORMATS["xlsx"](ROWS, LINES)
    cells = [list(row) for row in load_workbook(io.BytesIO(made))["Listing"].iter_rows(values_only=True)]
    head = next(place for place, row in enumerate(cells) if row[0] == "GPU")
    assert ["permalink", "/market?show_gpu=B200&v=1"] in [row[:2] for row in cells[:head]]
    assert cells[head + 1] == ["H100 | SXM", 2.5, "2026-11-04T09:30:00Z", None]


def test_json_holds_null_for_what_is_not_known():
    document = json.loads(LISTING_FORMATS["json"](ROWS, LINES))
    assert document["schema"] == "breakeven.listing/1"
    assert document["rows"][1] == {"GPU": "=B200", "USD/GPU-h": None, "seen": None, "why": "a slice"}
    assert {"name": "as of", "text": "2026-11-30T12:00:00Z"} in document["about"]


def test_markdown_shows_text_as_text():
    lines = LISTING_FORMATS["md"](ROWS, LINES).decode().splitlines()
    assert lines[0] == "# Offers"
    assert lines[2] == "| GPU | USD/GPU-h | seen | why |"
    assert lines[4] == r"| H100 \| SXM | 2.5 | 2026-11-04T09:30:00Z |  |"


def test_rows_are_taken_under_the_titles_shown_without_what_is_hidden():
    rows = [{"gpu": "B200", "usd": 5.98, "is_ranked": True, "note": None}]
    columns = {"gpu": "GPU", "usd": st.column_config.NumberColumn("USD/GPU-h"), "is_ranked": None}
    assert taking.as_shown(rows, columns) == [{"GPU": "B200", "USD/GPU-h": 5.98, "note": None}]


@pytest.mark.parametrize(
    ("page", "query", "files"),
    [
        ("market", {"show_gpu": "B200"}, ["offers"]),
        ("market", {"market_tab": "price-history"}, ["price-history-of-h100-sxm"]),
        ("size", {"model": "qwen3-8b"}, ["qwen3-8b-on-1x-h100-sxm-by-format"]),
        ("compare", {"model": "qwen3-8b"}, ["machines-for-qwen3-8b"]),
    ],
)
def test_tables_are_offered_as_files(database, page, query, files):
    test = opened(page, **query)
    assert [error.value for error in (*test.exception, *test.error)] == []
    keys = {button.key for button in test.get("download_button")}
    assert {f"take_{file}_{name}" for file in files for name in LISTING_FORMATS} <= keys


def test_nothing_shown_is_no_file(empty_database):
    assert not opened("market").get("download_button")
