"""Rates of exchange: fetched once a run, judged, kept by day, and the bundled ones where nothing newer is."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from sqlalchemy import Connection, insert, select

from planner.catalogues.currencies import all_currencies
from pricing.errors import NothingToDecide
from pricing.money.currencies import Rates, merged, of_the_bank, rates_in, rows_of
from pricing.money.ecb import BANK, DEADLINE_S, SOURCE, read_rates
from pricing.money.rateverdicts import HeldRate, JudgedRates, KnownRate, judge
from pricing.provider import Provider
from pricing.running.gather import Fetcher
from pricing.running.reports import ExchangeReport
from pricing.storage.rows import HELD_RATES, RATE, bump_revision, drop_value, get_value, set_value
from pricing.web.asking import Aside

__all__ = ["Exchange", "RateState", "accept", "keep", "state_of"]

# The request has a limit of its own; what it cannot end, such as a look-up of a name, is left behind. [s]
LIMIT_S = 2 * DEADLINE_S


def _bundled() -> dict[str, KnownRate]:
    """Return what one euro is worth by the bundled rates of the bank."""
    rates = all_currencies()
    euro = rates["EUR"]
    return {
        currency: KnownRate(
            # The digits of the bank, out of the quotient of two floats.
            units=Decimal(f"{euro.usd_per_unit / rates[currency].usd_per_unit:.10g}"),
            as_of=date.fromisoformat(rates[currency].as_of),
        )
        for currency in of_the_bank()
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class RateState:
    """What is known before a run: the rates in force, and what waits."""

    rates: Rates = field(default_factory=all_currencies)
    known: Mapping[str, KnownRate] = field(default_factory=_bundled)  # those of the bank, per euro
    waiting: Mapping[str, HeldRate] = field(default_factory=dict)


class Exchange:
    """
    The rates of one run: asked for in a thread while the providers are asked, needed when they are read.

    Args:
        state: What is known so far.
        client: Sends the request.
        now: The time of the run.
    """

    def __init__(self, state: RateState, client: Fetcher, now: datetime) -> None:
        self._state = state
        self._now = now
        late = "the bank has not answered"
        self._aside = Aside("rates of exchange", lambda: self._asked(client), LIMIT_S, late)

    def rates_for(self, provider: Provider) -> Rates:
        """Return the rates for a provider: only one whose prices need them waits for the bank."""
        return self.rates() if provider.currencies else self._state.rates

    def rates(self) -> Rates:
        """Return the rates to convert with, once the bank has answered or its time is over."""
        day = self.brought
        if day is None or not day.taken:
            return self._state.rates
        return merged(self._state.rates, day.taken, day.as_of.isoformat(), SOURCE)

    @property
    def brought(self) -> JudgedRates | None:
        """What is to be kept."""
        return self._aside.found()[0]

    def report(self) -> ExchangeReport:
        """Return what the run converted with."""
        euro = self.rates()["EUR"]
        day, reason = self._aside.found()
        if day is not None and not day.taken:
            reason = next((one.line for one in day.held if one.currency == "USD"), None)
        return ExchangeReport(
            as_of=euro.as_of,
            source=euro.source,
            reason=reason,
            odd=day.odd if day else (),
            held=len(day.held) if day else 0,
        )

    def _asked(self, client: Fetcher) -> JudgedRates:
        day = read_rates(client.fetch(BANK.request(), BANK), self._now.date())
        judged = judge(day, self._state.known, self._state.waiting)
        client.settle(BANK, is_read=True)
        return judged


def state_of(connection: Connection) -> RateState:
    """Return what is known of rates of exchange."""
    known = _bundled()
    rows = rows_of(connection)
    for row in rows:
        as_of = date.fromisoformat(row.as_of)
        if row.currency not in known or as_of >= known[row.currency].as_of:
            known[row.currency] = KnownRate(units=Decimal(row.units_per_euro), as_of=as_of)
    _, held = _held_page(connection)
    return RateState(rates=rates_in(rows), known=known, waiting={one.currency: one for one in held})


def keep(connection: Connection, brought: JudgedRates, now: datetime) -> int:
    """Add the rates of a day that were taken, once, and what waits; return how many were new."""
    added, known = _add(connection, brought.as_of, brought.taken, SOURCE, now)
    held = [one for one in brought.held if one.currency not in known]
    _hold(connection, brought.stated, held)
    if added:
        bump_revision(connection)
    return added


def accept(connection: Connection, currency: str, reason: str, by: str, now: datetime) -> HeldRate:
    """
    Take a rate that is held back, on the word of a person; with the dollar the others of its day come.

    Raises:
        NothingToDecide: if it is not held back, or the dollar of its day is.
    """
    stated, held = _held_page(connection)
    waiting = {one.currency: one for one in held}
    one = waiting.pop(currency, None)
    if one is None:
        raise NothingToDecide(f"ecb:{currency}", "is not held back; `breakeven prices status` names what is")
    if "USD" in waiting:
        raise NothingToDecide(f"ecb:{currency}", "counts with the dollar of its day; accept ecb:USD first")
    day = one.days[-1]
    source = f"{SOURCE}, accepted by {by} on {now:%Y-%m-%d}: {reason}"
    _add(connection, day, {currency: one.units}, source, now)
    if currency == "USD":
        rest = {name: units for name, units in stated.items() if name not in waiting}
        _add(connection, day, rest, SOURCE, now)
    _hold(connection, stated, list(waiting.values()))
    bump_revision(connection)
    return one


def _add(
    connection: Connection, day: date, units_per_euro: Mapping[str, Decimal], source: str, now: datetime
) -> tuple[int, set[str]]:
    """Add rates of a day that are not there; return how many, and which were there."""
    as_of = day.isoformat()
    known = set(connection.execute(select(RATE.c.currency).where(RATE.c.as_of == as_of)).scalars())
    rows = [
        {
            "as_of": as_of,
            "currency": currency,
            "units_per_euro": f"{units:f}",
            "source": source,
            "fetched_at": now,
        }
        for currency, units in units_per_euro.items()
        if currency not in known
    ]
    if rows:
        connection.execute(insert(RATE), rows)
    return len(rows), known


def _held_page(connection: Connection) -> tuple[dict[str, Decimal], list[HeldRate]]:
    """Return the last page of which something is held back, and what."""
    text = get_value(connection, HELD_RATES)
    found: dict[str, Any] = json.loads(text) if text else {"stated": {}, "held": []}
    stated = {name: Decimal(units) for name, units in found["stated"].items()}
    return stated, [HeldRate.of(one) for one in found["held"]]


def _hold(connection: Connection, stated: Mapping[str, Decimal], held: list[HeldRate]) -> None:
    """Keep what is held back of a page; nothing of the page where nothing is."""
    if not held:
        drop_value(connection, HELD_RATES)
        return
    page = {name: f"{units:f}" for name, units in stated.items()}
    set_value(
        connection, HELD_RATES, json.dumps({"stated": page, "held": [one.to_document() for one in held]})
    )
