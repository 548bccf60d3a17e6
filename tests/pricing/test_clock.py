"""Prices dated by a run whose clock was wrong: never fresh, reported, and put right by the next run."""

from datetime import UTC, datetime, timedelta

import pytest

from planner.rates import PriceStatus
from pricing.http import Client
from pricing.offer import Verdict
from pricing.running import runs
from pricing.running.health import health
from pricing.settings import Settings
from pricing.store import Store
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
