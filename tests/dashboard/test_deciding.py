"""What the Market page changes: decisions about prices, and a refresh that is watched and stopped."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import datetime
from decimal import Decimal
from pathlib import Path

import pytest
import streamlit as st

from dashboard import data, refreshing
from dashboard.rows import market_rows
from planner.answers.money import Money
from pricing.money.ecb import DayRates
from pricing.money.rateverdicts import judge
from pricing.running.reports import ProviderReport
from pricing.settings import Settings
from pricing.storage.memory import RunStatus
from pricing.store import Store
from pricing.tokens.litellm import ListedPrice
from pricing.tokens.tokenprices import Brought
from pricing.verification.reviewing import Decision
from tests.dashboard.pages import opened, texts, unescaped
from tests.pricing.loopback import LoopbackServer


@pytest.fixture(autouse=True)
def _fresh_server(monkeypatch: pytest.MonkeyPatch, now: datetime) -> Iterator[None]:
    """Nothing cached or running from the test before, and a fixed present."""
    st.cache_resource.clear()
    monkeypatch.setattr(data, "now", lambda: now)
    monkeypatch.setattr(refreshing, "_current", None)
    yield
    job = refreshing.current()
    if job is not None and job.thread is not None:
        job.thread.join(timeout=30)


def held(test) -> list[str]:
    return list(next(table.value for table in test.dataframe if "raw" in table.value.columns)["id"])


def reviews(database: Path) -> list[tuple[str, str, str, str]]:
    with closing(sqlite3.connect(database)) as connection:
        query = "SELECT decision, reason, decided_by, decided_at FROM review"
        return connection.execute(query).fetchall()


def test_a_price_held_back_shows_its_raw_value_and_source(stale_database):
    test = opened("market", market_tab="held-back")
    row = next(table.value for table in test.dataframe if "raw" in table.value.columns).iloc[0]
    assert row["raw"] == "0.02"
    assert row["source"] == "https://example.com/prices"
    assert row["why"] == "below a tenth of the market"


def test_a_rate_of_exchange_and_a_token_price_that_wait_are_listed_too(stale_database, now):
    store = data.store()
    state = store.exchange_state()
    page = {currency: rate.units for currency, rate in state.known.items()} | {"GBP": Decimal("1.0100")}
    store.keep_exchange_rates(judge(DayRates(as_of=now.date(), units_per_euro=page), state.known, {}), now)
    usd = Decimal("0.4"), Decimal(16)
    price = ListedPrice(
        provider="DeepInfra",
        model="Qwen/Qwen3-Coder-480B-A35B-Instruct",
        usd_per_mtok_input=usd[0],
        usd_per_mtok_output=usd[1],
    )
    store.keep_token_prices(Brought(prices=(price,)), now)
    test = opened("market", market_tab="held-back")
    assert not test.exception
    found = next(
        table.value for table in test.dataframe if list(table.value.columns) == ["what", "why", "seen"]
    )
    assert list(found["what"]) == [
        "rate of exchange, GBP",
        "API tokens, Qwen/Qwen3-Coder-480B-A35B-Instruct at DeepInfra",
    ]
    assert "after 0.8338 on 2026-10-30" in found["why"][0]
    assert "more than 2 times" in found["why"][1]
    assert len(held(test)) == 1  # the rents stand above as before


@pytest.mark.parametrize(("button", "verdict"), [("accept", "verified"), ("reject", "rejected")])
def test_a_decision_is_in_force_at_once_and_kept_with_time_name_and_reason(stale_database, button, verdict):
    test = opened("market", market_tab="held-back")
    (waiting,) = held(test)
    test.multiselect(key="decide_on").set_value([test.multiselect(key="decide_on").options[0]])
    test.text_input(key="decide_why").set_value("seen on  their page")
    test.text_input(key="decide_by").set_value("Ada")
    test.button(key=button).click().run()
    assert [error.value for error in (*test.exception, *test.error)] == []
    (offer,) = data.store().history(offer_id=waiting)
    assert str(offer.verdict) == verdict
    assert offer.reasons[-1] == f"{button}ed by Ada on 2026-11-30: seen on their page"
    ((decision, reason, by, at),) = reviews(stale_database)
    assert (decision, reason, by) == (button, "seen on their page", "Ada")
    assert str(at).startswith("2026-11-30")


def test_what_another_decided_meanwhile_is_said_and_nothing_is_changed(stale_database, now):
    test = opened("market", market_tab="held-back")
    (waiting,) = held(test)
    data.store().decide(waiting, Decision.ACCEPT, reason="seen", by="Kim", now=now)
    test.multiselect(key="decide_on").set_value([test.multiselect(key="decide_on").options[0]])
    test.text_input(key="decide_why").set_value("a term total")
    test.button(key="accept").click().run()
    assert [error.value for error in (*test.exception, *test.error)] == []
    assert [by for _, _, by, _ in reviews(stale_database)] == ["Kim"]


def test_a_price_to_decide_on_says_what_it_is_of(stale_database):
    (choice,) = opened("market", market_tab="held-back").multiselect(key="decide_on").options
    assert choice.endswith(": 1x H100 SXM from runpod (1x H100 SXM), 0.020000 USD/h")


def test_no_entry_chooses_all_prices_for_one_reason(stale_database):
    assert not opened("market", market_tab="held-back").multiselect(key="decide_on").proto.select_all


def test_a_decision_without_a_reason_is_not_taken(stale_database):
    test = opened("market", market_tab="held-back")
    test.multiselect(key="decide_on").set_value([test.multiselect(key="decide_on").options[0]])
    test.button(key="accept").click().run()
    assert "say why" in test.warning[-1].value
    assert reviews(stale_database) == []


def test_a_server_that_is_read_only_offers_neither_refresh_nor_decision(stale_database, monkeypatch):
    monkeypatch.setenv("BREAKEVEN_READ_ONLY", "1")
    test = opened("market", market_tab="held-back")
    assert {button.key for button in test.button} == set()
    assert "This server is read-only" in texts(test)
    assert len(held(test)) == 1
    test = opened("market", market_tab="providers")
    assert {button.key for button in test.button} == set()
    assert "This server is read-only" in texts(test)


def test_a_refresh_from_the_page_asks_the_chosen_sources_and_says_how_it_went(database, monkeypatch):
    with LoopbackServer() as server:
        server.serve_recordings("vultr")
        for name, value in server.environ("vultr").items():
            monkeypatch.setenv(name, value)
        test = opened("market", market_tab="providers")
        test.multiselect(key="refresh_sources").set_value(["vultr"])
        test.button(key="refresh").click().run()
        job = refreshing.current()
        assert job is not None
        assert job.thread is not None
        job.thread.join(timeout=60)
    test = test.run()
    assert [error.value for error in (*test.exception, *test.error)] == []
    assert job.state is refreshing.State.DONE
    assert "Refresh of 2026-11-30 12:00 UTC done: 1 of 1 source, " in unescaped(test.success[0].value)
    verified = [
        row
        for row in market_rows.market(Money())
        if row["provider"] == "vultr" and row["status"].startswith("verified")  # sold out ones too
    ]
    assert f"{len(verified)} prices verified" in unescaped(test.success[0].value)
    assert len(verified) > 0


def report(name: str, status: RunStatus = RunStatus.OK) -> ProviderReport:
    return ProviderReport(provider=name, title=name.title(), status=status, reason=None)


def started(monkeypatch, work, names=("a", "b", "c")) -> refreshing.Refresh:
    """Start a refresh whose run is replaced, and wait for its end."""
    monkeypatch.setattr("pricing.running.runs.run", work)
    job = refreshing.start(names, data.store(), Settings(database_url="sqlite://"), data.now())
    assert job.thread is not None
    job.thread.join(timeout=30)
    return job


def test_a_refresh_can_be_stopped_between_two_sources(database, monkeypatch):
    def work(names, store, settings, client, now, progress, *, command):
        progress(report("a"))
        refreshing.current().stop()
        progress(report("b"))
        progress(report("c"))

    job = started(monkeypatch, work)
    assert job.state is refreshing.State.STOPPED
    assert [part.provider for part in job.reports] == ["a", "b"]
    assert job.share == pytest.approx(2 / 3)


def test_only_one_refresh_runs_at_a_time(database, monkeypatch):
    seen = []

    def work(names, store, settings, client, now, progress, *, command):
        second = refreshing.start(["x"], store, settings, now)
        seen.append(second is refreshing.current())

    job = started(monkeypatch, work)
    assert seen == [True]
    assert job.total == 3


def test_what_goes_wrong_in_a_refresh_stands_on_the_page(database, monkeypatch):
    def work(*arguments, **options):
        raise ZeroDivisionError("of a provider")

    job = started(monkeypatch, work)
    assert (job.state, job.error) == (refreshing.State.FAILED, "ZeroDivisionError: of a provider")
    assert "ZeroDivisionError: of a provider" in unescaped(texts(opened("market", market_tab="providers")))


def test_the_lock_of_another_process_is_one_line_on_the_page(database, monkeypatch):
    from pricing.running.lock import run_lock

    with (
        Store.open(f"sqlite:///{database}") as store,
        run_lock(store, data.now(), command="breakeven schedule"),
    ):
        job = refreshing.start(["vultr"], data.store(), Settings(database_url="sqlite://"), data.now())
        assert job.thread is not None
        job.thread.join(timeout=30)
    assert job.state is refreshing.State.FAILED
    assert "another refresh is running: breakeven schedule" in (job.error or "")
