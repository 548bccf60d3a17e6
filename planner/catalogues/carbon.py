"""How much CO2 a kilowatt-hour of grid electricity stands for, by region."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from types import MappingProxyType

from planner.catalogue import close_matches, read_csv
from planner.catalogues.regions import broader_regions, canonical_code
from planner.errors import UnknownName


@dataclass(frozen=True, slots=True, kw_only=True)
class CarbonIntensity:
    """The carbon intensity of the electricity of one region."""

    region_code: str  # ISO 3166 code, US-CA, a Nordic bidding zone, or gcp:us-east1
    region_name: str
    level: str  # country, state, bidding zone or cloud region
    g_co2_per_kwh: float
    as_of: str
    basis: str  # direct or lifecycle, location-based
    source: str
    note: str = ""
    checked: str

    def __post_init__(self) -> None:
        if not 0 <= self.g_co2_per_kwh < 2000:
            raise ValueError(f"{self.region_code}: {self.g_co2_per_kwh} g/kWh is not plausible")


@cache
def all_carbon_intensities() -> Mapping[str, CarbonIntensity]:
    """Return all intensities by region code, in the order of the catalogue."""
    by_code: dict[str, CarbonIntensity] = {}
    for row in read_csv("carbon.csv"):
        record = CarbonIntensity(
            region_code=row["region_code"],
            region_name=row["region_name"],
            level=row["level"],
            g_co2_per_kwh=float(row["g_co2_per_kwh"]),
            as_of=row["as_of"],
            basis=row["basis"],
            source=row["source"],
            note=row["notes"],
            checked=row["checked"],
        )
        if by_code.setdefault(record.region_code, record) is not record:
            raise ValueError(f"carbon.csv: region {record.region_code!r} occurs twice")
    return MappingProxyType(by_code)


def find_carbon_intensity(region: str) -> CarbonIntensity:
    """
    Return the carbon intensity of a region, or that of its country, with a note.

    Args:
        region: ISO 3166 code (`DE`, `US-CA`), English name of a country, Nordic bidding zone (`SE3`) or
            Google Cloud region (`gcp:us-east1`). A tariff's sector behind a colon is ignored.

    Raises:
        UnknownName: if neither is known; with close matches.
    """
    known = all_carbon_intensities()
    text = region.strip()
    if text.lower() in known:
        return known[text.lower()]
    code = canonical_code(text.partition(":")[0])
    for place in (code, *broader_regions(code)):
        if place in known:
            found = known[place]
            if place == code:
                return found
            note = f"no figure is known for {code}: that of {found.region_name} is taken"
            return replace(found, note="; ".join(filter(None, (found.note, note))))
    raise UnknownName("carbon region", region, close_matches(text, known))
