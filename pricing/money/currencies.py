"""Rates of exchange as they are known: fetched and kept by day, or bundled where nothing newer is."""

from collections.abc import Mapping
from datetime import date
from decimal import Decimal
from types import MappingProxyType

from sqlalchemy import Connection

from planner.catalogues.currencies import FxRate, all_currencies
from pricing.storage.queries import Where, fetch

__all__ = ["Rates", "merged", "rates_of"]

Rates = Mapping[str, FxRate]


def rates_of(connection: Connection, day: date | None = None) -> Rates:
    """
    Return the rate of each currency: of the newest day that was fetched, or bundled where that is newer.

    Args:
        connection: In a transaction.
        day: As they stood then; the newest where None. A day before all that were fetched has the bundled
            ones.
    """
    where = Where().add("currency = 'USD'")
    if day is not None:
        where.add("as_of <= :day", day=day.isoformat())
    sql = (
        "SELECT as_of, currency, units_per_euro, source FROM exchange_rate "
        f"WHERE as_of = (SELECT max(as_of) FROM exchange_rate {where})"
    )
    rows = fetch(connection, sql, where)
    if not rows:
        return all_currencies()
    units = {row.currency: Decimal(row.units_per_euro) for row in rows}
    return merged(all_currencies(), units, rows[0].as_of, rows[0].source)


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
