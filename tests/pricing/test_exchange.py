"""Rates of exchange: read strictly, kept by day, used with their day, and the bundled ones without them."""

import threading
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from planner.answers.money import Money
from planner.catalogues.currencies import all_currencies
from pricing.errors import FetchError, ParseError
from pricing.http import Client
from pricing.money.ecb import BANK, DayRates, read_rates
from pricing.money.exchange import Exchange, RateState
from pricing.money.rateverdicts import JudgedRates
from pricing.provider import Page, Request, Site
from pricing.registry import providers
from pricing.running import runs
from pricing.running.reports import RunReport
from pricing.settings import Settings
from pricing.storage.memory import RunStatus
from pricing.store import Store
from pricing.tokens import tokenprices
from pricing.tokens.tokenprices import Brought
from tests.pricing.loopback import LoopbackServer

NOW = datetime(2026, 11, 30, 18, 0, tzinfo=UTC)
DAY = timedelta(days=1)
TODAY = NOW.date()
PATH = "/ecb/stats/eurofxref/eurofxref-daily.xml"
# Composed in the bank's own form; the day is made up, so that it differs from the bundled one of 2026-10-30.
# The dollar of Hong Kong moves with the dollar: 9.0230 / 1.1500 = 7.846.
RATES = {
    **{currency: f"{rate.units:f}" for currency, rate in RateState().known.items()},
    **{"USD": "1.1500", "HKD": "9.0230", "JPY": "180.5", "GBP": "0.84125", "CHF": "0.92"},
}


def daily(rates: Mapping[str, str] = RATES, day: str = "2026-11-30", more: str = "") -> str:
    cubes = "\n".join(f"\t\t\t<Cube currency='{name}' rate='{rate}'/>" for name, rate in rates.items())
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        '<gesmes:Envelope xmlns:gesmes="http://www.gesmes.org/xml/2002-08-01" '
        'xmlns="http://www.ecb.int/vocabulary/2002-08-01/eurofxref">\n'
        "\t<gesmes:subject>Reference rates</gesmes:subject>\n"
        "\t<gesmes:Sender>\n\t\t<gesmes:name>European Central Bank</gesmes:name>\n\t</gesmes:Sender>\n"
        f"\t<Cube>\n\t\t<Cube time='{day}'>\n{cubes}\n\t\t</Cube>\n{more}\t</Cube>\n</gesmes:Envelope>\n"
    )


def page(text: str) -> Page:
    return Page(key="rates", url=BANK.pages["rates"], body=text.encode())


def read(text: str) -> DayRates:
    return read_rates(page(text), TODAY)


# -- reading ------------------------------------------------------------------------------------------


def test_the_rates_of_a_day_are_read_exactly() -> None:
    found = read(daily())
    assert found.as_of == date(2026, 11, 30)
    assert found.units_per_euro == {name: Decimal(rate) for name, rate in RATES.items()}


BOMB = (
    '<!DOCTYPE lolz [<!ENTITY lol "lol"><!ENTITY lol2 "&lol;&lol;&lol;&lol;">]>'
    "<gesmes:Envelope xmlns:gesmes='x'>&lol2;</gesmes:Envelope>"
)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ("<html><body>Sorry</body></html>", "0 days instead of one"),
        ("<html><p>Sorry</html>", "not well-formed XML"),
        (daily()[:-40], "not well-formed XML"),
        (BOMB, "declares a type of document"),
        ('<!DOCTYPE x SYSTEM "file:///etc/passwd"><x/>', "declares a type of document"),
        (daily(day="2026-02-30"), "'2026-02-30' is not a day"),
        (daily(day="2026-12-02"), "they are of 2026-12-02, which is to come"),
        (daily(more="\t\t<Cube time='2026-11-27'/>\n"), "2 days instead of one"),
        (daily({}), "no rate of the dollar"),
        (daily({"JPY": "180.5"}), "no rate of the dollar"),
        (daily(RATES | {"GBP": "0"}), "GBP at '0' is not a rate above 0"),
        (daily(RATES | {"GBP": "-0.84"}), "GBP at '-0.84'"),
        (daily(RATES | {"GBP": "0,84"}), "GBP at '0,84'"),
        (daily(RATES | {"GBP": "NaN"}), "GBP at 'NaN'"),
        (daily(RATES | {"GBP": "1e3"}), "GBP at '1e3'"),
        (daily(RATES | {"GBP": ""}), "GBP at ''"),
        (daily(RATES | {"Pound": "0.84"}), "is no rate, or a second one"),
        (daily(RATES).replace("'JPY'", "'USD'"), "is no rate, or a second one"),
        (daily(RATES | {"EUR": "1.1887"}), "the euro at 1.1887: they are not per euro"),
        (daily().replace("Cube currency='USD'", "Rate currency='USD'"), "is no rate, or a second one"),
        (daily().encode("utf-16").decode("latin-1"), "not well-formed"),
    ],
)
def test_anything_else_is_refused(text: str, message: str) -> None:
    with pytest.raises(ParseError, match=message):
        read(text)


# -- keeping ------------------------------------------------------------------------------------------


def brought(day: str, **units: str) -> JudgedRates:
    rates = {name: Decimal(rate) for name, rate in (RATES | units).items()}
    return JudgedRates(as_of=date.fromisoformat(day), stated=rates, taken=rates)


def test_without_any_the_bundled_rates_count(store: Store) -> None:
    assert store.exchange_rates() == all_currencies()
    assert store.exchange_rates()["EUR"].as_of == "2026-10-30"


def test_kept_rates_count_with_their_day_and_the_rest_stays_bundled(store: Store) -> None:
    before = store.revision()
    assert store.keep_exchange_rates(brought("2026-11-30"), NOW) == len(RATES)
    assert store.revision() > before
    rates = store.exchange_rates()
    euro, pound, riyal = rates["EUR"], rates["GBP"], rates["SAR"]
    assert (euro.usd_per_unit, euro.as_of) == (1.15, "2026-11-30")
    assert euro.source == "European Central Bank euro foreign exchange reference rates"
    assert pound.usd_per_unit == pytest.approx(1.15 / 0.84125, rel=1e-12)
    assert rates["USD"].usd_per_unit == 1.0
    assert riyal == all_currencies()["SAR"]  # not stated by the bank


def test_a_day_is_kept_once_and_every_day_stays(store: Store) -> None:
    store.keep_exchange_rates(brought("2026-11-27", USD="1.14"), NOW - 3 * DAY)
    revision = store.revision()
    assert store.keep_exchange_rates(brought("2026-11-27", USD="1.99"), NOW) == 0
    assert store.revision() == revision
    store.keep_exchange_rates(brought("2026-11-30"), NOW)
    euro = {day: store.exchange_rates(date.fromisoformat(day))["EUR"] for day in ("2026-11-29", "2026-11-30")}
    assert (euro["2026-11-29"].usd_per_unit, euro["2026-11-29"].as_of) == (1.14, "2026-11-27")
    assert euro["2026-11-30"].usd_per_unit == 1.15
    assert (
        store.exchange_rates(date(2026, 11, 26))["EUR"].as_of == "2026-10-30"
    )  # before all of them: bundled


def test_a_past_day_has_its_own_rates_and_not_bundled_ones_of_later(store: Store) -> None:
    store.keep_exchange_rates(brought("2026-10-14", USD="1.1000"), NOW)
    euro, pound = (store.exchange_rates(date(2026, 10, 15))[name] for name in ("EUR", "GBP"))
    assert (euro.usd_per_unit, euro.as_of) == (1.1, "2026-10-14")
    assert (pound.usd_per_unit, pound.as_of) == (pytest.approx(1.1 / 0.84125), "2026-10-14")
    assert store.exchange_rates(date(2026, 11, 15))["EUR"].as_of == "2026-10-30"


def test_bundled_rates_that_are_newer_win(store: Store) -> None:
    store.keep_exchange_rates(brought("2026-10-01"), NOW)
    assert store.exchange_rates() == all_currencies()


# -- a run --------------------------------------------------------------------------------------------

SERVER = {
    "ncpus": 24,
    "ram": 257698037760,
    "gpu": 1,
    "gpu_info": {"gpu_manufacturer": "NVIDIA", "gpu_name": "H100-PCIe", "gpu_memory": 85899345920},
    "mig_profile": None,
    "monthly_price": 2092.545,
    "hourly_price": 2.8665,
    "end_of_service": False,
}


@pytest.fixture
def server() -> Iterator[LoopbackServer]:
    with LoopbackServer() as running:
        base = "/scaleway/instance/v1/zones/{}/products/servers"
        for zone in ("fr-par-1", "fr-par-2", "nl-ams-1", "pl-waw-2"):
            running.add(base.format(zone), {"servers": {"H100-1-80G": SERVER}})
            running.add(
                f"{base.format(zone)}/availability",
                {"servers": {"H100-1-80G": {"availability": "available"}}},
            )
        yield running


Refresh = Callable[..., RunReport]


@pytest.fixture
def refresh(server: LoopbackServer, file: Path) -> Iterator[tuple[Store, Refresh]]:
    with Store.open(f"sqlite:///{file}") as store:
        settings = Settings(
            database_url=f"sqlite:///{file}", base_urls=server.base_urls("scaleway", "vultr", "ecb")
        )

        def run(*names: str, now: datetime = NOW) -> RunReport:
            with Client(base_urls=settings.base_urls, sleep=lambda seconds: None) as client:
                return runs.run(names, store, settings, client, now)

        yield store, run


def price_of(store: Store) -> Any:
    (found,) = {
        (one.usd_per_hour, one.price_original, one.currency, one.fx_date)
        for one in store.current_offers(provider="scaleway", gpu="H100 PCIe")
        + store.rejected(provider="scaleway")
        if one.origin == "refresh" and one.closed_at is None
    }
    return found


def test_a_run_fetches_the_rates_converts_with_them_and_keeps_them(
    server: LoopbackServer, refresh: tuple[Store, Refresh]
) -> None:
    store, run = refresh
    server.add(PATH, daily())
    report = run("scaleway")
    assert report.providers[0].status is RunStatus.OK
    # 2.8665 EUR x 1.15 = 3.296475 USD
    assert price_of(store) == (Decimal("3.296475"), Decimal("2.8665"), "EUR", "2026-11-30")
    assert report.to_document()["exchange_rates"] == {
        "as_of": "2026-11-30",
        "source": "European Central Bank euro foreign exchange reference rates",
        "reason": None,
        "odd": [],
    }
    assert store.exchange_rates()["EUR"].usd_per_unit == 1.15


@pytest.mark.parametrize(
    "answer",
    [
        {"status": 503},
        {"body": "<html>"},
        {"body": daily(RATES | {"USD": "1.3853"})},  # 24 % more
        {"body": daily(day="2026-10-28")},
    ],
)
def test_without_new_rates_the_last_ones_serve_and_the_run_says_so(
    server: LoopbackServer, refresh: tuple[Store, Refresh], answer: dict[str, Any]
) -> None:
    store, run = refresh
    server.add(PATH, **answer)
    report = run("scaleway")
    assert report.exit_code == 0
    # 2.8665 EUR x 1.1172 = 3.2024538 USD, kept as whole micro-dollars
    assert price_of(store) == (Decimal("3.202454"), Decimal("2.8665"), "EUR", "2026-10-30")
    assert report.exchange is not None
    assert report.exchange.line.startswith("no new rates of exchange (")
    assert report.exchange.line.endswith("those of 2026-10-30 were used")


def test_a_run_says_which_rate_it_did_not_take_and_the_next_is_compared_with_the_last_good_one(
    server: LoopbackServer, refresh: tuple[Store, Refresh]
) -> None:
    store, run = refresh
    server.add(PATH, daily(RATES | {"GBP": "84.125"}))
    report = run("scaleway")
    assert price_of(store)[0] == Decimal("3.296475")  # the dollar is believed
    assert report.exchange is not None
    (odd,) = report.exchange.odd
    assert odd.startswith("GBP 84.125 per euro, after 0.8338 on 2026-10-30: more than 2 times: not taken")
    assert report.exchange.line.endswith(f"reference rates); {odd}")
    assert store.exchange_rates()["GBP"] == all_currencies()["GBP"]


def test_the_rates_of_the_last_run_serve_where_the_bank_fails_later(
    server: LoopbackServer, refresh: tuple[Store, Refresh]
) -> None:
    store, run = refresh
    server.add(PATH, daily())
    server.add(PATH, status=404)
    run("scaleway")
    report = run("scaleway", now=NOW + DAY)
    assert price_of(store)[3] == "2026-11-30"
    assert report.exchange is not None
    assert report.exchange.as_of == "2026-11-30"


def test_a_run_in_dollars_does_not_ask_the_bank(
    server: LoopbackServer, refresh: tuple[Store, Refresh]
) -> None:
    _, run = refresh
    report = run("vultr")
    assert report.exchange is None
    assert report.to_document()["exchange_rates"] is None
    assert not [one for one in server.received if one.path == PATH]


def test_a_bank_that_hangs_holds_up_nobody_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    let_go = threading.Event()

    class Hanging:
        def fetch(self, request: Request, provider: Site) -> Page:
            let_go.wait(60)
            return Page(key="rates", url="")

        def settle(self, provider: Site, *, is_read: bool) -> None:
            pass

    monkeypatch.setattr("pricing.money.exchange.LIMIT_S", 0.2)
    exchange = Exchange(RateState(), Hanging(), NOW)
    assert exchange.rates_for(providers()["vultr"]) == all_currencies()  # in dollars: does not wait at all
    assert exchange.rates_for(providers()["scaleway"]) == all_currencies()
    assert exchange.report().line == (
        "no new rates of exchange (the bank has not answered); those of 2026-10-30 were used"
    )
    let_go.set()


def test_an_error_of_several_lines_is_told_in_one() -> None:
    class Refusing:
        def fetch(self, request: Request, provider: Site) -> Page:
            raise FetchError("said\n  503 \r\n later")

        def settle(self, provider: Site, *, is_read: bool) -> None:
            pytest.fail("nothing was read")

    assert Exchange(RateState(), Refusing(), NOW).report().reason == "said 503 later"
    assert tokenprices.Asking(Refusing()).brought() == Brought(reason="said 503 later")


def test_a_fault_in_reading_rates_is_a_reason_and_no_end_of_the_run() -> None:
    class Broken:
        def fetch(self, request: Request, provider: Site) -> Page:
            raise RuntimeError("the client\nis closed")

        def settle(self, provider: Site, *, is_read: bool) -> None:
            pytest.fail("nothing was read")

    reason = "a fault in its module: RuntimeError: the client is closed"
    assert Exchange(RateState(), Broken(), NOW).report().reason == reason


# -- what a person sees -------------------------------------------------------------------------------


def test_amounts_are_shown_at_the_kept_rate_with_its_day(store: Store) -> None:
    store.keep_exchange_rates(brought("2026-11-30"), NOW)
    money = Money.of("EUR", store.exchange_rates())
    assert (money.amount(11.5), money.as_of) == (pytest.approx(10.0), "2026-11-30")
    assert Money.of("EUR").as_of == "2026-10-30"


def test_a_plan_states_the_rate_that_it_is_shown_at(store: Store) -> None:
    from planner.compare import plan
    from planner.scenario import Scenario

    store.keep_exchange_rates(brought("2026-11-30"), NOW)
    scenario = Scenario(model="qwen3.5-35b-a3b", currency="EUR")
    made = plan(scenario, store.rates(NOW, cheapest=True), currencies=store.exchange_rates())
    said = " ".join(str(made.to_document()).split())
    assert "1 EUR = 1.1500 USD" in said
    assert "2026-11-30" in said


def test_own_prices_are_converted_at_the_kept_rate(store: Store) -> None:
    from pricing.own import ownfile

    store.keep_exchange_rates(brought("2026-11-30"), NOW)
    text = "kind,provider,gpu,gpus,price,currency\nrent,Acme,H100 SXM,1,2.00,EUR\n"
    (offer,) = ownfile.read(text, TODAY, "contract", store.exchange_rates()).offers
    assert (offer.usd_per_hour, offer.price_original, offer.fx_date) == (
        Decimal("2.3"),
        Decimal(2),
        "2026-11-30",
    )
