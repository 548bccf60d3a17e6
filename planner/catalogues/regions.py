"""Countries and what they are part of, to find the nearest broader region where a figure is missing."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType

from planner.catalogue import lookup_key, read_csv

WORLD = "WORLD"
EU = "EU"
# Codes in wide use that ISO 3166-1 does not assign; the European Commission writes UK and EL.
_OTHER_CODES = {"UK": "GB", "EL": "GR", "USA": "US"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Country:
    """A country of ISO 3166-1, or a territory with a code of its own."""

    code: str  # two letters
    name: str
    continent: str  # AFRICA, ASIA, EUROPE, NAMERICA, OCEANIA or SAMERICA
    is_eu_member: bool
    source: str
    checked: str


@cache
def all_countries() -> Mapping[str, Country]:
    """Return all countries by code."""
    rows = read_csv("countries.csv")
    countries = {
        row["code"]: Country(
            code=row["code"],
            name=row["name"],
            continent=row["continent"],
            is_eu_member=row["is_eu_member"] == "yes",
            source=row["source"],
            checked=row["checked"],
        )
        for row in rows
    }
    if len(countries) != len(rows):
        raise ValueError("countries.csv: a code occurs twice")
    return MappingProxyType(countries)


def canonical_code(text: str) -> str:
    """Return a region as a code in capitals; the English name of a country is understood too."""
    code = text.strip().upper()
    code = _OTHER_CODES.get(code, code)
    return code if code in all_countries() else _codes_by_name().get(lookup_key(text), code)


def is_region(text: str) -> bool:
    """Whether this is a country, or something that countries are part of: the EU, a continent, the world."""
    code = canonical_code(text)
    countries = all_countries()
    return code in countries or code in {WORLD, EU, *(country.continent for country in countries.values())}


def broader_regions(code: str) -> tuple[str, ...]:
    """
    Return the regions that contain this one, the nearest first: country, EU, continent, world.

    Args:
        code: ISO 3166 code of a country or a part of it (`US-CA`).

    Returns:
        Codes; empty where the code is of no country.
    """
    head, _, part = code.partition("-")
    country = all_countries().get(head)
    if country is None:
        return ()
    eu = (EU,) if country.is_eu_member else ()
    return ((head,) if part else ()) + eu + (country.continent, WORLD)


@cache
def _codes_by_name() -> Mapping[str, str]:
    return {lookup_key(country.name): code for code, country in all_countries().items()}
