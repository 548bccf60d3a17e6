"""What electricity costs: dated tariffs by region and sector."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from types import MappingProxyType

from planner.catalogue import close_matches, lookup_key, read_csv
from planner.catalogues.currencies import all_currencies
from planner.catalogues.regions import all_countries, broader_regions, canonical_code
from planner.errors import UnknownName

# The sectors tried where none is named: a firm's ordinary tariff first, a household's last.
_DEFAULT_SECTORS = ("commercial", "business", "industrial", "commercial-small", "residential")


@dataclass(frozen=True, slots=True, kw_only=True)
class Tariff:
    """The price of electricity for one sector of one region."""

    region_code: str  # ISO 3166 code, US-CA, EU, or a continent
    region_name: str
    sector: str
    usd_per_kwh: float
    price: float  # per kWh, as published
    currency: str  # as published
    as_of: str  # as precise as the source allows
    source: str
    note: str = ""
    is_preferred: bool = True  # the one to take where a region and sector has several
    checked: str

    def __post_init__(self) -> None:
        if not 0 < self.usd_per_kwh < float("inf"):
            raise ValueError(f"{self.region_code}: usd_per_kwh must be above 0, got {self.usd_per_kwh}")


@cache
def all_tariffs() -> tuple[Tariff, ...]:
    """
    Return all tariffs whose currency has a reference rate, in the order of the catalogue.

    The few others cannot be compared with anything and are left out.
    """
    rates = all_currencies()
    return tuple(
        Tariff(
            region_code=row["region_code"],
            region_name=row["region_name"],
            sector=row["sector"],
            usd_per_kwh=float(row["price_per_kwh"]) * rates[row["currency"]].usd_per_unit,
            price=float(row["price_per_kwh"]),
            currency=row["currency"],
            as_of=row["as_of"],
            source=row["source"],
            note=row["notes"],
            is_preferred=row["preferred"] == "yes",
            checked=row["checked"],
        )
        for row in read_csv("electricity.csv")
        if row["currency"] in rates
    )


def find_tariff(region: str) -> Tariff:
    """
    Return the tariff of a region, in US dollars at the bundled reference rate.

    Without a sector the commercial tariff is taken, else business, industrial, small business, household.
    A region without a tariff gets the one of the nearest broader region; the note says so.

    Args:
        region: `CODE` or `CODE:SECTOR`, as in `DE`, `US-CA:commercial`, `GB:residential`.

    Raises:
        UnknownName: if the region or the sector is not known; with close matches.
    """
    code_text, _, sector_text = region.partition(":")
    code, sector = canonical_code(code_text), sector_text.strip().lower()
    if code not in _by_region() and not broader_regions(code):
        code = _codes_by_name().get(lookup_key(code_text), code)
    if sector and sector not in _sectors():
        sectors = sorted(_sectors())
        raise UnknownName("electricity sector", sector, close_matches(sector, sectors) or sectors)
    for place in (code, *broader_regions(code)):
        here = _by_region().get(place)
        if here:
            return _with_notes(_of_sector(here, sector), code, sector)
    raise UnknownName("electricity region", code_text, _close(code_text))


def _of_sector(here: Mapping[str, Tariff], sector: str) -> Tariff:
    """Return the tariff of the sector, else that of the first default sector, else any."""
    return next(here[name] for name in (sector, *_DEFAULT_SECTORS, *here) if name in here)


def _with_notes(tariff: Tariff, code: str, sector: str) -> Tariff:
    """Say what was taken in place of what was asked for."""
    notes = [tariff.note] if tariff.note else []
    if tariff.region_code != code:
        notes.append(f"no tariff of {code} is known: that of {tariff.region_name} is taken")
    if sector and tariff.sector != sector:
        notes.append(f"no comparable {sector} tariff is known there: the {tariff.sector} one is taken")
    if tariff.currency != "USD":
        rate = all_currencies()[tariff.currency]
        notes.append(f"{tariff.price:g} {tariff.currency}, converted at the rate of {rate.as_of}")
    return replace(tariff, note="; ".join(notes))


def _close(text: str) -> list[str]:
    """Return codes that look like the text, or whose names do."""
    codes = {tariff.region_name: tariff.region_code for tariff in all_tariffs()}
    codes |= {country.name: code for code, country in all_countries().items()}
    codes |= {code: code for code in codes.values()}
    return list(dict.fromkeys(codes[name] for name in close_matches(text, codes)))


@cache
def _by_region() -> Mapping[str, Mapping[str, Tariff]]:
    """Return the preferred tariffs by region and sector."""
    by_region: dict[str, dict[str, Tariff]] = {}
    for tariff in all_tariffs():
        if tariff.is_preferred:
            here = by_region.setdefault(tariff.region_code, {})
            if here.setdefault(tariff.sector, tariff) is not tariff:
                raise ValueError(
                    f"electricity.csv: two preferred {tariff.sector} rows of {tariff.region_code}"
                )
    return MappingProxyType(by_region)


@cache
def _codes_by_name() -> Mapping[str, str]:
    return {lookup_key(tariff.region_name): tariff.region_code for tariff in all_tariffs()}


@cache
def _sectors() -> frozenset[str]:
    return frozenset(tariff.sector for tariff in all_tariffs())
