"""Tariffs and carbon intensities: plausible, found by region, from the nearest broader one where missing."""

import csv

import pytest

from planner.catalogues.carbon import all_carbon_intensities, find_carbon_intensity
from planner.catalogues.regions import all_countries, broader_regions, canonical_code
from planner.catalogues.tariffs import all_tariffs, find_tariff
from planner.errors import UnknownName


def test_every_tariff_is_plausible():
    for tariff in all_tariffs():
        assert 0.003 <= tariff.usd_per_kwh <= 0.6, tariff
        assert tariff.region_name
        assert tariff.as_of[:2] == "20"
        assert tariff.source


def test_every_region_and_sector_has_one_preferred_tariff():
    kinds = {(tariff.region_code, tariff.sector) for tariff in all_tariffs()}
    preferred = [(tariff.region_code, tariff.sector) for tariff in all_tariffs() if tariff.is_preferred]
    assert len(preferred) == len(set(preferred)) == len(kinds)


@pytest.mark.parametrize(
    ("region", "code", "sector", "usd_per_kwh"),
    [
        ("US-CA:commercial", "US-CA", "commercial", 0.2946),
        ("us-ca", "US-CA", "commercial", 0.2946),
        ("California", "US-CA", "commercial", 0.2946),
        ("US-CA:industrial", "US-CA", "industrial", 0.2531),
        ("US", "US", "commercial", 0.146),
        # 0.2359 EUR x 1.1172
        ("DE", "DE", "commercial", 0.26354748),
        ("Germany:residential", "DE", "residential", 0.4284462),
        ("EL", "GR", "commercial", None),
        ("UK", "GB", "commercial", None),
        ("CH", "CH", "residential", None),
        ("WORLD", "WORLD", "business", 0.161),
    ],
)
def test_a_tariff_is_found_by_region_and_sector(region, code, sector, usd_per_kwh):
    tariff = find_tariff(region)
    assert (tariff.region_code, tariff.sector) == (code, sector)
    assert usd_per_kwh is None or tariff.usd_per_kwh == pytest.approx(usd_per_kwh)


@pytest.mark.parametrize(
    ("region", "code", "usd_per_kwh", "note"),
    [
        ("US-PR", "US", 0.146, "no tariff of US-PR is known: that of United States is taken"),
        ("AU-NSW", "AU", None, "no tariff of AU-NSW is known: that of Australia is taken"),
        ("IN", "ASIA", 0.107, "no tariff of IN is known: that of Asia is taken"),
        ("Namibia", "AFRICA", 0.123, "no tariff of NA is known: that of Africa is taken"),
        ("PE", "SAMERICA", 0.2, "no tariff of PE is known: that of South America is taken"),
    ],
)
def test_the_nearest_broader_region_stands_in_and_the_note_says_so(region, code, usd_per_kwh, note):
    tariff = find_tariff(region)
    assert tariff.region_code == code
    assert note in tariff.note
    assert usd_per_kwh is None or tariff.usd_per_kwh == pytest.approx(usd_per_kwh)


def test_another_sector_stands_in_and_the_note_says_so():
    tariff = find_tariff("US-CA:business")
    assert tariff.sector == "commercial"
    assert "no comparable business tariff is known there: the commercial one is taken" in tariff.note


def test_a_converted_tariff_names_its_original_and_the_day_of_the_rate():
    tariff = find_tariff("DE")
    assert (tariff.price, tariff.currency) == (0.2359, "EUR")
    assert "0.2359 EUR, converted at the rate of 2026-10-30" in tariff.note


@pytest.mark.parametrize("region", ["XX", "", "germny", "12", "QQ-CA"])
def test_an_unknown_region_is_an_error(region):
    with pytest.raises(UnknownName, match=f"unknown electricity region '{region}'"):
        find_tariff(region)


def test_a_misspelt_region_names_the_code_meant():
    with pytest.raises(UnknownName) as caught:
        find_tariff("germny")
    assert caught.value.matches[0] == "DE"


def test_an_unknown_sector_is_an_error_that_names_the_sectors():
    with pytest.raises(
        UnknownName, match="unknown electricity sector 'foo'; close matches: business, commercial"
    ):
        find_tariff("DE:foo")


def test_regions_go_from_part_to_country_to_continent_to_world():
    assert broader_regions("DE-BY") == ("DE", "EU", "EUROPE", "WORLD")
    assert broader_regions("US-CA") == ("US", "NAMERICA", "WORLD")
    assert broader_regions("KE") == ("AFRICA", "WORLD")
    assert broader_regions("QQ") == ()


def test_countries_answer_to_their_names_and_old_codes():
    assert canonical_code("united states") == "US"
    assert canonical_code("USA") == "US"
    assert canonical_code("uk") == "GB"
    assert canonical_code("us-tx") == "US-TX"


def test_every_country_is_of_a_continent_and_the_eu_has_27():
    continents = {country.continent for country in all_countries().values()}
    assert continents == {"AFRICA", "ASIA", "EUROPE", "NAMERICA", "OCEANIA", "SAMERICA"}
    assert sum(country.is_eu_member for country in all_countries().values()) == 27


def test_every_carbon_intensity_is_plausible():
    for record in all_carbon_intensities().values():
        assert 0 <= record.g_co2_per_kwh <= 1400, record  # Turkmenistan burns gas in old plants: 1,306
        assert record.level in {"country", "state", "bidding zone", "cloud region"}
        assert record.source
        assert record.basis


@pytest.mark.parametrize(
    ("region", "code", "g_co2_per_kwh"),
    [
        ("US", "US", 369.473),
        ("US-CA:commercial", "US-CA", 205.3),
        ("gcp:US-east1", "gcp:us-east1", 560.0),
        ("gcp:me-central1", "gcp:me-central1", 575.0),
        ("SE3", "SE3", 18.0),
        ("Namibia", "NA", 59.259),
        ("IN-MH", "IN", 713.441),
    ],
)
def test_a_carbon_intensity_is_found_by_region(region, code, g_co2_per_kwh):
    record = find_carbon_intensity(region)
    assert (record.region_code, record.g_co2_per_kwh) == (code, g_co2_per_kwh)


def test_the_country_stands_in_for_its_part_and_the_note_says_so():
    assert find_carbon_intensity("IN-MH").note == "no figure is known for IN-MH: that of India is taken"
    assert find_carbon_intensity("IN").note == ""


def test_an_unknown_carbon_region_is_an_error():
    with pytest.raises(UnknownName, match="unknown carbon region 'qqq'"):
        find_carbon_intensity("qqq")


def test_all_tariffs_of_the_facts_are_carried_but_missing_values_and_foreign_rows(shared):
    with (shared / "data" / "electricity_rates.csv").open(encoding="utf-8", newline="") as file:
        facts = {
            (row["region_code"], row["sector"], row["as_of"], float(row["price"]), row["currency"])
            for row in csv.DictReader(file)
        }
    ours = {
        (tariff.region_code, tariff.sector, tariff.as_of, tariff.price, tariff.currency)
        for tariff in all_tariffs()
    }
    left_out = facts - ours
    # A missing value published as 0, the planner's own default, and four prices without a reference rate.
    assert sorted((code, currency) for code, _, _, _, currency in left_out) == [
        ("EG", "EGP"),
        ("GE", "EUR"),
        ("KE", "KES"),
        ("MA", "MAD"),
        ("NG", "NGN"),
        ("SEED", "USD"),
    ]


def test_all_carbon_intensities_of_the_facts_are_carried_but_the_old_national_one(shared):
    with (shared / "data" / "carbon_intensity.csv").open(encoding="utf-8", newline="") as file:
        facts = [
            (row["region_name"], row["level"], float(row["gco2_per_kwh"])) for row in csv.DictReader(file)
        ]
    ours = {(r.region_name, r.level, r.g_co2_per_kwh) for r in all_carbon_intensities().values()}
    assert [fact for fact in facts if fact not in ours] == [("Usa", "state", 452.9)]
