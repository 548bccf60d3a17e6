"""Rates of exchange: fetched once a run, kept by day, and the bundled ones where nothing newer is known."""

import threading
import time
from datetime import date, datetime
from decimal import Decimal

from sqlalchemy import Connection, insert, select

from pricing.errors import PricingError
from pricing.money.currencies import Rates, merged
from pricing.money.ecb import BANK, DEADLINE_S, SOURCE, DayRates, read_rates
from pricing.provider import Provider
from pricing.running.gather import Fetcher
from pricing.running.reports import ExchangeReport
from pricing.storage.rows import RATE, bump_revision

__all__ = ["Exchange", "keep"]

# The request has a limit of its own; what it cannot end, such as a look-up of a name, is left behind. [s]
LIMIT_S = 2 * DEADLINE_S


class Exchange:
    """
    The rates of one run: asked for in a thread while the providers are asked, needed when they are read.

    Args:
        known: The newest rates so far.
        client: Sends the request.
        now: The time of the run.
    """

    def __init__(self, known: Rates, client: Fetcher, now: datetime) -> None:
        self._known = known
        self._now = now
        self._brought: DayRates | None = None
        self._reason: str | None = "the bank has not answered"
        self._until = time.monotonic() + LIMIT_S
        self._thread = threading.Thread(target=self._ask, args=(client,), name="exchange", daemon=True)
        self._thread.start()

    def rates_for(self, provider: Provider) -> Rates:
        """Return the rates for a provider: only one whose prices need them waits for the bank."""
        return self.rates() if provider.currencies else self._known

    def rates(self) -> Rates:
        """Return the rates to convert with, once the bank has answered or its time is over."""
        self._thread.join(max(0.0, self._until - time.monotonic()))
        if self._brought is None:
            return self._known
        day = self._brought
        return merged(self._known, day.units_per_euro, day.as_of.isoformat(), SOURCE)

    @property
    def brought(self) -> DayRates | None:
        """What is to be kept."""
        self.rates()
        return self._brought

    def report(self) -> ExchangeReport:
        """Return what the run converted with."""
        euro = self.rates()["EUR"]
        odd = self._brought.odd if self._brought else ()
        return ExchangeReport(as_of=euro.as_of, source=euro.source, reason=self._reason, odd=odd)

    def _ask(self, client: Fetcher) -> None:
        try:
            page = client.fetch(BANK.request(), BANK)
            brought = read_rates(page, _per_euro(self._known), self._now.date())
        except PricingError as error:
            self._reason = error.line
            return
        client.settle(BANK, is_read=True)
        self._brought, self._reason = brought, None


def keep(connection: Connection, brought: DayRates, now: datetime) -> int:
    """Add the rates of a day, once; return how many were new."""
    as_of = brought.as_of.isoformat()
    query = select(RATE.c.currency).where(RATE.c.as_of == as_of)
    known = set(connection.execute(query).scalars())
    rows = [
        {
            "as_of": as_of,
            "currency": currency,
            "units_per_euro": f"{units:f}",
            "source": SOURCE,
            "fetched_at": now,
        }
        for currency, units in brought.units_per_euro.items()
        if currency not in known
    ]
    if rows:
        connection.execute(insert(RATE), rows)
        bump_revision(connection)
    return len(rows)


def _per_euro(known: Rates) -> dict[str, tuple[date, Decimal]]:
    """Return the day of each rate and what one euro was worth in it."""
    euro = known["EUR"]
    return {
        currency: (date.fromisoformat(rate.as_of), Decimal(repr(euro.usd_per_unit / rate.usd_per_unit)))
        for currency, rate in known.items()
        if rate.as_of == euro.as_of
    }
