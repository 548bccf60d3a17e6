"""Prices dated by a run whose clock was wrong: never fresh, reported, and put right by the next run."""

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pytest

from planner.rates import PriceStatus
from pricing.http import Client
from pricing.money.ecb import DayRates
from pricing.money.rateverdicts import judge
from pricing.offer import Verdict
from pricing.running import runs
from pricing.running.health import health
from pricing.settings import Settings
from pricing.store import Store
from pricing.tokens.litellm import ListedPrice
from pricing.tokens.tokenprices import Brought
from tests.pricing.loopback import LoopbackServer
from tests.pricing.samples import ACME, DAY, MORNING, offer, run, waiting

WRONG = datetime(2030, 1, 1, 3, 7, tzinfo=UTC)
NOW = MORNING + 2 * DAY


@pytest.fixture
def misdated(store: Store) -> Store:
    """Read twice; then by a clock of 2030, when the H100 had moved, the L40 had gone and the T4 waited."""
    dear, gone = offer("2.69"), offer("1.00", instance_type="l40.1x", gpu="L40")
    same = offer("4.00", instance_type="h200.1x", gpu="H200 SXM")
    rest = [offer("5.00", instance_type=f"b200.{n}x", gpu="B200", gpu_count=n) for n in (1, 2, 4)]
    store.record(run(dear, gone, same, *rest))
    odd = waiting("9.00", at=WRONG, instance_type="t4.1x", gpu="T4")
    late = [
        offer(
            str(one.usd_per_hour),
            at=WRONG,
            instance_type=one.instance_type,
            gpu=one.gpu,
            gpu_count=one.gpu_count,
        )
        for one in (same, *rest)
    ]
    store.record(run(offer("2.89", at=WRONG), odd, *late))
    return store


def statuses_of(store: Store, now: datetime) -> set[PriceStatus]:
    return {rate.status for rate in store.rates(now, provider=ACME)}


def test_a_price_seen_after_now_is_never_fresh_and_its_date_is_told(misdated: Store) -> None:
    assert statuses_of(misdated, NOW) == {PriceStatus.STALE}
    assert {rate.note for rate in misdated.rates(NOW, provider=ACME)} == {
        "dated 2030-01-01, ahead of the clock"
    }
    assert {one.status(NOW) for one in misdated.current_offers(provider=ACME)} == {PriceStatus.STALE}
    (status,) = [one for one in misdated.statuses(NOW) if one.provider == ACME]
    assert (status.verified, status.stale) == (0, 5)
    noted = {"started_at": f"{WRONG:%Y-%m-%dT%H:%M:%SZ}", "exit_code": 0}
    state = health([status], noted, noted, (), NOW)
    assert state.warnings == [
        "acme: the newest price is dated 2030-01-01, ahead of the clock; `breakeven prices refresh acme` "
        "puts it right"
    ]
    assert "the last good run is dated 2030-01-01T03:07:00Z, ahead of the clock" in state.line
    assert statuses_of(misdated, WRONG - timedelta(minutes=30)) == {PriceStatus.VERIFIED}  # clocks differ


def test_the_next_run_puts_the_times_right_and_says_so(misdated: Store) -> None:
    assert misdated.mend_clock(NOW) == [
        "acme: 6 prices were dated 2030-01-01 by a run with a wrong clock; they count as seen on 2026-11-30"
    ]
    found = {
        (one.instance_type, str(one.usd_per_hour.normalize())): one for one in misdated.history(provider=ACME)
    }
    old, new = found["h100.1x", "2.69"], found["h100.1x", "2.89"]
    assert (old.closed_at, new.first_seen_at, new.seen_at) == (MORNING, MORNING, MORNING)
    assert found["l40.1x", "1"].closed_at == MORNING
    held = found["t4.1x", "9"]
    assert (held.verdict, held.first_seen_at, held.seen_at) == (Verdict.QUARANTINED, NOW, NOW)
    assert all(one.seen_at <= NOW for one in found.values())
    assert misdated.mend_clock(NOW) == []
    misdated.record(run(offer("3.05", at=NOW)))
    (current,) = [one for one in misdated.current_offers(provider=ACME) if one.instance_type == "h100.1x"]
    assert (str(current.usd_per_hour.normalize()), current.first_seen_at) == ("3.05", NOW)
    assert current.status(NOW) is PriceStatus.VERIFIED


def test_a_clock_that_is_behind_changes_nothing(misdated: Store) -> None:
    before = misdated.history(provider=ACME)
    (told,) = misdated.mend_clock(datetime(2020, 1, 1, tzinfo=UTC))
    assert "ahead of this clock (2020-01-01): is it right? Nothing of them was changed" in told
    for day in range(12):
        misdated.record(run(offer("2.89", at=WRONG + day * DAY)))
    (told,) = misdated.mend_clock(NOW)
    assert "is it right?" in told
    assert misdated.mend_clock(WRONG - DAY) == []  # a day ahead: that passes
    assert {one.price_id for one in misdated.history(provider=ACME)} == {one.price_id for one in before}


def test_a_run_says_what_it_put_right_in_one_line_for_each_source(misdated: Store) -> None:
    with LoopbackServer() as server:
        server.serve_recordings("vultr")
        settings = Settings.from_environ(server.environ("vultr"))
        with Client(base_urls=settings.base_urls, sleep=lambda _: None) as client:
            report = runs.run(["vultr"], misdated, settings, client, NOW)
            again = runs.run(["vultr"], misdated, settings, client, NOW + DAY)
    (line,) = report.notes
    assert line.startswith("acme: 6 prices were dated 2030-01-01 by a run with a wrong clock")
    assert report.to_document()["notes"] == [line]
    assert again.notes == ()


# -- what a wrong clock confirmed ---------------------------------------------------------------------


def prices_of(store: Store, name: str = "h100.1x") -> list[tuple[str, Verdict, str | None]]:
    return [
        (f"{one.usd_per_hour:.2f}", one.verdict, one.closed_why)
        for one in store.history(provider=ACME)
        if one.instance_type == name
    ]


def test_a_price_that_a_wrong_clock_confirmed_waits_again_and_the_last_one_counts(store: Store) -> None:
    store.record(run(offer("2.69")))
    store.record(run(waiting("5.90", at=MORNING + DAY)))
    store.record(run(offer("5.90", at=WRONG)))  # seen again after three years, as that clock has it
    confirmed = [("2.69", Verdict.VERIFIED, "changed"), ("5.90", Verdict.VERIFIED, None)]
    assert prices_of(store) == confirmed
    store.mend_clock(NOW)
    assert prices_of(store) == [("2.69", Verdict.VERIFIED, None), ("5.90", Verdict.QUARANTINED, None)]
    (held,) = store.rejected(provider=ACME)
    assert held.reasons == ("it was confirmed by a run with a wrong clock",)
    assert (held.first_seen_at, held.seen_at) == (MORNING + DAY, NOW)
    store.record(run(offer("5.90", at=NOW + DAY)))  # what a right clock confirms stays so
    store.mend_clock(NOW + DAY)
    assert prices_of(store) == confirmed


def test_what_was_first_seen_by_the_wrong_clock_too_waits_from_now_on(store: Store) -> None:
    store.record(run(offer("2.69")))
    store.record(run(waiting("5.90", at=WRONG)))
    store.record(run(offer("5.90", at=WRONG + DAY)))
    store.record(run(waiting("9.90", at=WRONG + 2 * DAY)))  # waits beside it
    store.mend_clock(NOW)
    assert prices_of(store) == [
        ("2.69", Verdict.VERIFIED, None),
        ("5.90", Verdict.QUARANTINED, None),
        ("9.90", Verdict.QUARANTINED, "changed"),
    ]
    (held,) = store.rejected(provider=ACME)
    assert held.first_seen_at == NOW


def test_what_a_right_clock_confirmed_stays(store: Store) -> None:
    store.record(run(waiting("5.90")))
    store.record(run(offer("5.90", at=MORNING + DAY)))
    store.record(run(offer("5.90", at=WRONG)))
    store.mend_clock(NOW)
    assert prices_of(store) == [("5.90", Verdict.VERIFIED, None)]


# -- prices of tokens and rates of exchange -----------------------------------------------------------

MODEL = ("DeepInfra", "Qwen/Qwen3-Coder-480B-A35B-Instruct")


def see_tokens(store: Store, usd_out: str, at: datetime) -> None:
    """Keep a list with one price: bundled 0.40 and 1.60, so that ten times that waits for a week."""
    price = ListedPrice(
        provider=MODEL[0],
        model=MODEL[1],
        usd_per_mtok_input=Decimal("0.4"),
        usd_per_mtok_output=Decimal(usd_out),
    )
    store.keep_token_prices(Brought(prices=(price,)), at)


def tokens_of(store: Store, now: datetime) -> list[tuple[float | None, str]]:
    return [(one.usd_per_mtok_output, one.as_of) for one in store.token_prices(now)]


def test_token_prices_of_a_wrong_clock_are_put_back_to_the_run_before(store: Store) -> None:
    see_tokens(store, "1.60", MORNING)
    see_tokens(store, "1.70", WRONG)
    assert tokens_of(store, NOW) == [(1.6, "2026-11-30")]
    assert store.mend_clock(NOW) == [
        "prices of API tokens: 2 were dated 2030-01-01 by a run with a wrong clock; they count as seen on "
        "2026-11-30"
    ]
    assert tokens_of(store, NOW) == [(1.7, "2026-11-30")]
    assert store.mend_clock(NOW) == []
    see_tokens(store, "1.80", NOW)
    assert tokens_of(store, NOW) == [(1.8, f"{NOW:%Y-%m-%d}")]


def test_a_token_price_that_a_wrong_clock_confirmed_waits_again(store: Store) -> None:
    see_tokens(store, "1.60", MORNING)
    see_tokens(store, "16.00", MORNING + DAY)
    see_tokens(store, "16.00", WRONG)
    see_tokens(store, "160.00", WRONG + DAY)
    assert tokens_of(store, WRONG + DAY) == [(16.0, "2030-01-01")]
    store.mend_clock(NOW)
    assert tokens_of(store, NOW) == [(1.6, "2026-11-30")]
    (held,) = store.held_token_prices()
    assert (held["usd_per_mtok_output"], held["reason"]) == (
        "16.00",
        "it was confirmed by a run with a wrong clock",
    )
    assert (held["first_seen_at"], held["last_seen_at"]) == (MORNING + DAY, NOW)
    see_tokens(store, "16.00", MORNING + 7 * DAY)
    assert tokens_of(store, MORNING + 7 * DAY) == [(1.6, "2026-11-30")]
    see_tokens(store, "16.00", MORNING + 8 * DAY)  # a week by a right clock
    assert tokens_of(store, MORNING + 8 * DAY) == [(16.0, "2026-12-08")]


def test_a_token_price_first_seen_by_a_wrong_clock_waits_from_now_on(store: Store) -> None:
    see_tokens(store, "16.00", WRONG)
    store.mend_clock(NOW)
    (held,) = store.held_token_prices()
    assert (held["first_seen_at"], held["last_seen_at"]) == (NOW, NOW)


def see_rates(store: Store, day: str, usd: str, at: datetime) -> None:
    units = {name: rate.units for name, rate in store.exchange_state().known.items()}
    stated = units | {"USD": Decimal(usd), "HKD": Decimal(usd) * Decimal("7.84")}
    page = DayRates(as_of=date.fromisoformat(day), units_per_euro=stated)
    state = store.exchange_state()
    store.keep_exchange_rates(judge(page, state.known, state.waiting), at)


def test_rates_of_days_to_come_are_removed_and_true_ones_stay(store: Store) -> None:
    see_rates(store, "2026-11-27", "1.1300", MORNING)
    see_rates(store, "2026-11-30", "1.1400", WRONG)  # the bank's own day is right, whatever the clock says
    see_rates(store, "2029-12-31", "1.1500", WRONG)
    see_rates(store, "2030-01-01", "1.5000", WRONG)
    assert store.exchange_state().waiting
    assert store.exchange_rates()["EUR"].as_of == "2029-12-31"
    (line,) = store.mend_clock(NOW)
    days = len(store.exchange_state().known)
    assert line == (
        f"rates of exchange: {days} of days to come, taken by a run with a wrong clock, were removed"
    )
    euro = store.exchange_rates()["EUR"]
    assert (euro.usd_per_unit, euro.as_of) == (1.14, "2026-11-30")
    assert store.exchange_state().waiting == {}
    assert store.mend_clock(NOW) == []


def test_by_a_clock_that_is_behind_neither_is_changed(misdated: Store) -> None:
    see_tokens(misdated, "1.60", WRONG)
    see_rates(misdated, "2030-01-01", "1.1500", WRONG)
    for day in range(12):
        misdated.record(run(offer("2.89", at=WRONG + day * DAY)))
    told = misdated.mend_clock(NOW)
    assert len(told) == 3
    assert all("is it right? Nothing of them was changed" in line for line in told)
    assert misdated.exchange_rates()["EUR"].as_of == "2030-01-01"
    assert tokens_of(misdated, WRONG) == [(1.6, "2030-01-01")]
