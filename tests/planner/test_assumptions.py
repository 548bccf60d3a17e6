import pytest

from planner.assumptions import (
    Assumptions,
    Origin,
    Owner,
    all_assumptions,
    assumptions_document,
    parse_settings,
)
from planner.catalogues.purchases import host_points
from planner.errors import InvalidScenario, UnknownName


@pytest.mark.parametrize("name", sorted(all_assumptions()))
def test_every_assumption_has_range_unit_source_and_date(name: str) -> None:
    record = all_assumptions()[name]
    assert record.unit
    assert len(record.source) > 10
    assert record.checked >= "2026-01-01"
    assert record.minimum <= record.low <= record.high <= record.maximum
    if record.value is not None:
        values = [record.by_owner(owner) for owner in Owner]
        assert all(value is not None and record.minimum <= value <= record.maximum for value in values)


def test_owner_profiles_set_the_defaults_of_owning() -> None:
    home, office, colo = (Assumptions(owner=owner) for owner in Owner)
    assert [each["pue"] for each in (home, office, colo)] == [1.0, 1.54, 1.4]
    assert [each["staff_fte_per_server"] for each in (home, office, colo)] == [0.0, 0.02, 0.015]
    assert [each["colo_usd_per_kw_month"] for each in (home, office, colo)] == [0.0, 0.0, 184.06]
    for name in ("on_outside_hours_fraction", "network_fraction", "support_fraction_per_year"):
        assert home[name] == 0.0
    assert home.origin("pue") is Origin.OWNER
    assert office.origin("pue") is Origin.DEFAULT
    assert office.origin("purchase_usd") is Origin.CATALOGUE


def test_setting_wins_and_says_so() -> None:
    in_use = Assumptions(owner=Owner.OFFICE, overrides=parse_settings(["pue=1.2", "pue=1.3"]))
    assert in_use["pue"] == 1.3
    assert in_use.origin("pue") is Origin.SET
    assert in_use.source("pue") == "--set pue=1.3"
    assert "Uptime" in Assumptions(owner=Owner.OFFICE).source("pue")


@pytest.mark.parametrize("setting", ["pue", "=1", "pue=", "pue=x", "pue=0.9", "pue=nan", "term_years=-1"])
def test_bad_setting_is_refused(setting: str) -> None:
    with pytest.raises(InvalidScenario):
        parse_settings([setting])


def test_several_settings_may_stand_in_one_text() -> None:
    assert parse_settings(["term_years=2, pue=1.1", "pue=1.2,"]) == {"term_years": 2.0, "pue": 1.2}
    with pytest.raises(InvalidScenario, match=r"with a decimal point: 1\.2"):
        parse_settings(["term_years=2,pue=1,2"])


def test_unknown_setting_has_close_matches() -> None:
    with pytest.raises(UnknownName, match="term_years"):
        parse_settings(["term_year=4"])


def test_document_lists_every_assumption() -> None:
    document = assumptions_document("home", {"pue": 1.1}, {"hours_per_day": 8.0})
    assert document["schema"] == "breakeven.assumptions/1"
    rows = {row["name"]: row for row in document["assumptions"]}  # type: ignore[attr-defined]
    assert list(rows) == list(all_assumptions())
    assert rows["pue"]["value"] == 1.1
    assert rows["pue"]["origin"] == "set"
    assert rows["hours_per_day"]["value"] == 8.0
    assert rows["hours_per_day"]["origin"] == "option"
    assert rows["purchase_usd"]["value"] is None
    assert rows["staff_fte_per_server"]["by_owner"] == {"home": 0.0, "office": 0.02, "colo": 0.015}


def test_host_prices_are_those_of_the_catalogue() -> None:
    hosts = {point.usd_low for point in host_points() if point.item.startswith("host without GPUs")}
    record = all_assumptions()["host_usd"]
    assert {record.value, record.home, all_assumptions()["host_minimum_usd"].value} == hosts
