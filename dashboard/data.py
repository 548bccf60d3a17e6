"""
What all pages ask, computed once for each question: the store, its prices, plans, cached.

A plan is kept by its question and the store's revision, so that any write - by this process or another -
makes the next page compute it anew.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import streamlit as st

from dashboard.files.ownresults import kept_results
from dashboard.state import permalink
from planner.answers.money import Money
from planner.catalogues.currencies import FxRate
from planner.catalogues.purchases import PricePoint
from planner.catalogues.results import Result
from planner.catalogues.tokens import TokenPrice
from planner.compare import Plan
from planner.compare import plan as make_plan
from planner.rates import Rate
from planner.scenario import Scenario
from planner.supply.market import unknown_regions
from planner.supply.options import Excluded
from pricing.settings import Settings
from pricing.store import Store

Key = tuple[str, str, int, int]  # question, database, its revision, own measurements
# Ages of prices are part of what is shown: it is computed anew after this time even if nothing was written.
KEEP_SECONDS = 600


def now() -> datetime:
    """Return the present."""
    return datetime.now(UTC)


def settings() -> Settings:
    """Return what the environment says."""
    return Settings.from_environ(os.environ)


def own_results() -> tuple[Result, ...]:
    """Return what `breakeven calibrate` has taken in."""
    return kept_results(os.environ)


def store() -> Store:
    """Return the store of this process; a new database gets the bundled prices."""
    return _open_store(settings().database_url)


@st.cache_resource(max_entries=4, show_spinner="Opening the database")
def _open_store(url: str) -> Store:
    return Store.open(url)


def plan(scenario: Scenario) -> Plan:
    """Return every way to serve it, priced and ranked; computed once for each question and set of prices."""
    opened, own = store(), own_results()
    return _plan(permalink(scenario), opened.label, opened.revision(), hash(own), scenario, opened, own)


def plan_of_all_machines(scenario: Scenario) -> Plan:
    """Return the plan whatever machine is looked at."""
    return plan(replace(scenario, gpu=None, gpus=None, decode_tokens_per_s=None))


@st.cache_resource(max_entries=128, ttl=KEEP_SECONDS, show_spinner=False)
def _plan(
    question: str,
    label: str,
    revision: int,
    own: int,
    _scenario: Scenario,
    _store: Store,
    _own_results: tuple[Result, ...],
) -> Plan:
    asked = _scenario.as_of, _scenario.max_price_age, _scenario.provider
    prices = _prices(*asked, bool(_scenario.region), label, revision, _store)
    return make_plan(
        _scenario,
        prices.rates,
        left_out=prices.left_out,
        quotes=prices.quotes,
        currencies=_rates(_scenario, _store),
        own_results=_own_results,
        token_prices=prices.token_prices,
    )


def with_known_regions(scenario: Scenario) -> tuple[Scenario, list[str]]:
    """Return the question without regions that nobody offers, and what is said of each of those."""
    if not scenario.region:
        return scenario, []
    opened = store()
    asked = scenario.as_of, scenario.max_price_age, scenario.provider
    unknown = unknown_regions(scenario, _prices(*asked, True, opened.label, opened.revision(), opened).rates)
    names = {name for name, _ in unknown}
    kept = tuple(name for name in scenario.region if name not in names)
    said = [
        f"region: {name!r} is offered by nobody and is no place; ignored"
        + (f". Close matches: {', '.join(matches)}" if matches else "")
        for name, matches in unknown
    ]
    return replace(scenario, region=kept), said


@dataclass(frozen=True, slots=True)
class Prices:
    """What the store offers a plan, and what it holds back."""

    rates: Sequence[Rate]
    left_out: Sequence[Excluded]
    quotes: Sequence[PricePoint]
    token_prices: Sequence[TokenPrice] = ()


@st.cache_resource(max_entries=8, ttl=KEEP_SECONDS, show_spinner="Reading the prices")
def _prices(
    as_of: date | None,
    max_age_days: float,
    providers: tuple[str, ...],
    by_region: bool,
    label: str,
    revision: int,
    _store: Store,
) -> Prices:
    market: dict[str, Any] = {
        "now": now(),
        "as_of": as_of,
        "max_age_days": max_age_days,
        "provider": providers or None,
    }
    left_out = [Excluded(what=what, why=why) for what, why in _store.left_out(**market)]
    rates = _store.rates(**market, cheapest=True, by_region=by_region)
    tokens = _store.token_prices(market["now"], as_of, max_age_days)
    return Prices(rates, left_out, _store.quotes(), tokens)


def question_key(scenario: Scenario) -> Key:
    """Return what an answer depends on: the question, the prices, and what the user has measured."""
    opened = store()
    return permalink(scenario), opened.label, opened.revision(), hash(own_results())


def money(scenario: Scenario) -> Money:
    """Return the currency in which amounts are shown, at the rate that the plan of the question takes."""
    return Money.of(scenario.currency, _rates(scenario, store()))


def _rates(scenario: Scenario, opened: Store) -> Mapping[str, FxRate] | None:
    """Return the rates of the day that is asked for; None for dollars, which need none."""
    return None if scenario.currency == "USD" else opened.exchange_rates(scenario.as_of)


def in_currency(money: Money, usd: Decimal | float | str | None) -> float | None:
    """Return an amount in the currency shown, also of a stored decimal; None where unknown."""
    return None if usd is None else money.amount(float(usd))
