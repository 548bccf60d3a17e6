"""Rates of exchange as they are known: fetched and kept by day, or bundled where nothing newer is."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from decimal import Decimal
from types import MappingProxyType
from typing import Any

from sqlalchemy import Connection

from planner.catalogues.currencies import FxRate, all_currencies
from pricing.storage.queries import Where, fetch

__all__ = ["Rates", "merged", "of_the_bank", "rates_in", "rates_of", "rows_of"]

Rates = Mapping[str, FxRate]
_SQL = (
    "SELECT r.as_of, r.currency, r.units_per_euro, r.source, d.units_per_euro AS usd_per_euro "
    "FROM exchange_rate r JOIN exchange_rate d ON d.as_of = r.as_of AND d.currency = 'USD' "
)


def rates_of(connection: Connection, day: date | None = None) -> Rates:
    """
    Return the rate of each currency: of the newest day on which it was taken, or bundled where that is newer.

    Args:
        connection: In a transaction.
        day: As they stood then; the newest where None. A day before all that were fetched has the bundled
            ones.
    """
    return rates_in(rows_of(connection, day), day)


def rates_in(rows: Iterable[Any], day: date | None = None) -> Rates:
    """Return the rates of kept rows, as `rows_of` gives them, and the bundled ones where those are newer."""
    found = dict(all_currencies())
    for row in rows:
        bundled_on = found[row.currency].as_of if row.currency in found else ""
        if row.as_of >= bundled_on or (day is not None and bundled_on > day.isoformat()):
            usd = (
                1.0
                if row.currency == "USD"
                else float(Decimal(row.usd_per_euro) / Decimal(row.units_per_euro))
            )
            found[row.currency] = FxRate(
                currency=row.currency, usd_per_unit=usd, as_of=row.as_of, source=row.source
            )
            if row.currency == "USD":
                euro = float(Decimal(row.usd_per_euro))
                found["EUR"] = FxRate(currency="EUR", usd_per_unit=euro, as_of=row.as_of, source=row.source)
    return MappingProxyType(found)


def rows_of(connection: Connection, day: date | None = None) -> Sequence[Any]:
    """Return the newest kept row of each currency, with what a dollar was worth on its day."""
    until = Where().add("currency = 'USD'")
    if day is not None:
        until.add("as_of <= :day", day=day.isoformat())
    newest = fetch(connection, f"{_SQL}WHERE r.as_of = (SELECT max(as_of) FROM exchange_rate {until})", until)
    if not newest:
        return []
    there = {row.currency for row in newest}
    rest = Where().add("as_of < :newest", newest=newest[0].as_of)
    # Two questions, since the second one reads all days and is needed where a rate is missing or waits.
    if of_the_bank() <= there:
        return newest
    last = f"SELECT currency, max(as_of) AS as_of FROM exchange_rate {rest} GROUP BY currency"
    older = fetch(connection, f"{_SQL}JOIN ({last}) n ON n.as_of = r.as_of AND n.currency = r.currency", rest)
    return [*newest, *(row for row in older if row.currency not in there)]


def of_the_bank() -> frozenset[str]:
    """Return the currencies that the bank states, of those that are bundled."""
    bundled = all_currencies()
    source = bundled["EUR"].source
    return frozenset(name for name, rate in bundled.items() if rate.source == source) - {"EUR"}


def merged(known: Rates, units_per_euro: Mapping[str, Decimal], as_of: str, source: str) -> Rates:
    """Return the known rates with those of a day in their place, unless they are newer themselves."""
    if as_of < known["EUR"].as_of:
        return known
    usd_per_euro = units_per_euro["USD"]
    found = dict(known)
    for currency, units in {"EUR": Decimal(1), **units_per_euro}.items():
        usd = 1.0 if currency == "USD" else float(usd_per_euro / units)
        found[currency] = FxRate(currency=currency, usd_per_unit=usd, as_of=as_of, source=source)
    return MappingProxyType(found)
