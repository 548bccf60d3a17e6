"""The loader: strict records, forgiving names, and for every data file sources and dates."""

from dataclasses import dataclass
from datetime import date
from enum import StrEnum

import pytest

from planner import catalogue
from planner.catalogue import build, close_matches, lookup_key, matching, read_lines, to_document, to_table

TOML_FILES = {"models.toml": "model", "gpus.toml": "gpu", "quants.toml": "quant"}
CSV_FILES = {
    "api_prices.csv": 180,
    "carbon.csv": 313,
    "countries.csv": 236,
    "electricity.csv": 568,
    "fx.csv": 32,
    "hosts.csv": 18,
    "purchases.csv": 365,
}


class Colour(StrEnum):
    RED = "red"


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Thing:
    name: str
    weight: float
    colour: Colour
    is_big: bool = False
    parts: tuple[Part, ...] = ()
    note: str | None
    checked: str


TABLE = {
    "name": "x",
    "weight": 2,
    "colour": "red",
    "parts": [{"size": 3}, {"size": 4}],
    "checked": date(2026, 11, 30),
}


def test_a_record_is_built_from_its_table():
    thing = build(Thing, TABLE)
    assert thing == Thing(
        name="x",
        weight=2.0,
        colour=Colour.RED,
        parts=(Part(size=3), Part(size=4)),
        note=None,
        checked="2026-11-30",
    )
    assert isinstance(thing.weight, float)


def test_a_record_makes_the_table_it_came_from_without_what_is_unknown_or_the_default():
    assert to_table(build(Thing, TABLE)) == {**TABLE, "checked": "2026-11-30"}


def test_a_record_as_json_has_every_field():
    assert to_document(build(Thing, TABLE)) == {
        "name": "x",
        "weight": 2.0,
        "colour": "red",
        "is_big": False,
        "parts": [{"size": 3}, {"size": 4}],
        "note": None,
        "checked": "2026-11-30",
    }


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"wieght": 1}, "Thing has no field wieght"),
        ({"weight": "2"}, "Thing.weight: '2' is not of type int or float"),
        ({"weight": True}, "Thing.weight: True is not of type int or float"),
        ({"is_big": 1}, "Thing.is_big: 1 is not of type bool"),
        ({"colour": "blue"}, "Thing.colour: 'blue' is not a valid Colour"),
        ({"parts": [{"size": 1.5}]}, "Thing.parts: Part.size: 1.5 is not of type int"),
        ({"parts": {"size": 1}}, "is not of type list"),
    ],
)
def test_a_wrong_table_is_refused(change, message):
    with pytest.raises(ValueError, match=message.replace(".", r"\.")):
        build(Thing, {**TABLE, **change})


def test_a_missing_field_is_refused():
    with pytest.raises(ValueError, match="Thing needs a weight"):
        build(Thing, {key: value for key, value in TABLE.items() if key != "weight"})


def test_names_are_compared_without_case_spaces_hyphens_and_underscores():
    assert lookup_key("RTX_4090 - D") == lookup_key("rtx4090d") == "rtx4090d"
    assert lookup_key("Qwen2.5") != lookup_key("Qwen25")


def test_close_matches_are_the_nearest_first_and_each_once():
    assert close_matches("h100 sxl", ["B200", "H100 NVL", "H100 SXM", "H100_SXM"]) == ["H100 SXM", "H100 NVL"]
    assert close_matches("zzz", ["B200"]) == []


def test_a_query_matches_whatever_the_spelling():
    assert matching("rtx-40", ["H100", "RTX 4090"])
    assert matching("", ["H100"])
    assert not matching("l40", ["H100"])


def test_lines_are_cells_between_bars():
    assert read_lines("\na | b b |c\n\nd\n") == [["a", "b b", "c"], ["d"]]


def test_a_ragged_row_is_refused(monkeypatch):
    monkeypatch.setattr(catalogue, "read_text", lambda name: "a,b\n1,2\n1\n")
    with pytest.raises(ValueError, match=r"x\.csv: record 3"):
        catalogue.read_csv("x.csv")


@pytest.mark.parametrize("value", ["2026", "2026-04", "2026-04-30", "2026-Q2"])
def test_a_day_month_quarter_or_year_is_a_date(value):
    assert catalogue.checked_day(value) == value


@pytest.mark.parametrize("value", ["", "26-04", "2026-13", "2026-00", "2026-Q5", "April 2026"])
def test_anything_else_is_not(value):
    with pytest.raises(ValueError, match="is not a day, month, quarter or year"):
        catalogue.checked_day(value)


@pytest.mark.parametrize(("file", "kind"), TOML_FILES.items())
def test_every_toml_record_has_sources_and_the_day_it_was_checked(file, kind):
    for table in catalogue.read_toml(file, kind):
        assert table["sources"], table
        assert all(len(source) > 5 for source in table["sources"]), table
        assert date(2026, 1, 1) <= table["checked"], table


@pytest.mark.parametrize(("file", "rows"), CSV_FILES.items())
def test_every_csv_record_has_a_source_and_the_day_it_was_checked(file, rows):
    records = catalogue.read_csv(file)
    assert len(records) >= rows
    for row in records:
        assert len(row["source"]) > 2, row
        assert date(2026, 1, 1) <= date.fromisoformat(row["checked"]), row
