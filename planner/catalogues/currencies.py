"""Reference exchange rates, dated and bundled: what one unit of a currency is worth in US dollars."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType

from planner.catalogue import checked_day, close_matches, read_csv
from planner.errors import UnknownName


@dataclass(frozen=True, slots=True, kw_only=True)
class FxRate:
    """One currency against the US dollar."""

    currency: str  # ISO 4217
    usd_per_unit: float
    as_of: str
    source: str

    def __post_init__(self) -> None:
        if not 0 < self.usd_per_unit < float("inf"):
            raise ValueError(f"{self.currency}: usd_per_unit must be above 0, got {self.usd_per_unit}")


@cache
def all_currencies() -> Mapping[str, FxRate]:
    """Return all rates by currency code, in the order of the catalogue."""
    rows = read_csv("fx.csv")
    usd_per_base = {"USD": 1.0}
    # The European Central Bank quotes units for one euro, so the euro comes from its dollar rate.
    usd_per_base["EUR"] = next(float(row["units_per_base"]) for row in rows if row["currency"] == "USD")
    rates: dict[str, FxRate] = {}
    for row in rows:
        rate = FxRate(
            currency=row["currency"],
            usd_per_unit=usd_per_base[row["base"]] / float(row["units_per_base"]),
            as_of=checked_day(row["as_of"]),
            source=row["source"],
        )
        if rates.setdefault(rate.currency, rate) is not rate:
            raise ValueError(f"fx.csv: currency {rate.currency!r} occurs twice")
    return MappingProxyType(rates)


def usd_per_unit(currency: str, rates: Mapping[str, FxRate] | None = None) -> FxRate:
    """
    Return the reference rate of a currency.

    Args:
        currency: ISO 4217 code, in any case.
        rates: By currency; the bundled ones where None.

    Raises:
        UnknownName: if there is no rate of it; with close matches.
    """
    known = all_currencies() if rates is None else rates
    rate = known.get(currency.strip().upper())
    if rate is None:
        raise UnknownName("currency", currency, close_matches(currency, known))
    return rate
