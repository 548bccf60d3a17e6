"""One answer for a monitor: healthy, or why not."""

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from pricing.money.rateverdicts import HeldRate
from pricing.running.health import Health, health
from pricing.storage.memory import RunStatus
from pricing.storage.stored import ProviderStatus
from tests.conftest import NOW


def status(**changes: Any) -> ProviderStatus:
    fields: dict[str, Any] = dict.fromkeys(ProviderStatus.__slots__, None)
    fields |= dict.fromkeys(("verified", "stale", "quarantined", "rejected", "snapshot"), 0)
    fields |= {"provider": "acme", "failures_since_success": 0, "last_run_problems": 0, "verified": 12}
    return ProviderStatus(**(fields | changes))


def noted(hours_ago: float, exit_code: int = 0) -> dict[str, Any]:
    return {"started_at": f"{NOW - timedelta(hours=hours_ago):%Y-%m-%dT%H:%M:%SZ}", "exit_code": exit_code}


def judged(good: float | None = 9, last: dict[str, Any] | None = None, **more: Any) -> Health:
    good_run = None if good is None else noted(good)
    statuses, schedules = more.pop("statuses", [status()]), more.pop("schedules", [])
    return health(statuses, good_run, last or good_run, schedules, NOW, **more)


def test_a_recent_run_is_healthy() -> None:
    state = judged(schedules=[{"host": "a", "next_run_at": "2026-12-01T02:00:00Z"}])
    assert state.is_healthy
    assert state.line == "healthy: refreshed 9.0 h ago, 12 fresh prices, next run 2026-12-01T02:00:00Z"
    document = state.to_document()
    assert document["schema"] == "breakeven.health/1"
    assert (document["healthy"], document["age_hours"]) == (True, 9.0)


def test_no_run_so_far_is_not() -> None:
    assert judged(None).line == (
        "unhealthy: no run over all sources has succeeded yet; `breakeven schedule --once` makes one"
    )


@pytest.mark.parametrize(("hours", "healthy"), [(36, True), (36.1, False)])
def test_a_missed_night_is_not(hours: float, healthy: bool) -> None:
    assert judged(hours).is_healthy is healthy
    assert judged(hours, max_age_hours=48).is_healthy


def test_a_run_in_which_every_source_failed_is_not() -> None:
    assert judged(9, noted(1, exit_code=3)).problems == [
        "the last run of 2026-11-30T11:00:00Z brought nothing: every source failed"
    ]


def test_what_came_neither_from_the_bank_nor_from_the_list_of_tokens_is_a_warning() -> None:
    last = noted(1) | {"exchange_rates": {"reason": "HTTP 503"}, "token_prices": {"reason": "cut short"}}
    state = judged(1, last)
    assert state.is_healthy
    assert state.warnings == [
        "no new rates of exchange in the last run: HTTP 503",
        "no new prices of API tokens in the last run: cut short",
    ]
    assert judged(1, last | {"exchange_rates": None, "token_prices": {"reason": None}}).warnings == []


@pytest.mark.parametrize(("as_of", "is_old"), [("2026-11-23", False), ("2026-11-22", True)])
def test_a_page_of_the_bank_that_stays_the_same_is_a_warning(as_of: str, is_old: bool) -> None:
    state = judged(1, noted(1) | {"exchange_rates": {"reason": None, "as_of": as_of}})
    told = "the bank's rates of exchange are of 2026-11-22, 8 days before the last run: an old page?"
    assert state.warnings == ([told] if is_old else [])


def test_a_rate_of_exchange_that_waits_is_told_once() -> None:
    dollar = HeldRate(currency="USD", units=Decimal(2), rule="far", why="USD 2", days=(NOW.date(),))
    told = [f"rate of exchange: {dollar.line}"]
    assert judged(held_rates=[dollar]).warnings == told
    assert (
        judged(1, noted(1) | {"exchange_rates": {"reason": dollar.line}}, held_rates=[dollar]).warnings
        == told
    )


def test_some_failed_sources_are_no_alarm() -> None:
    assert judged(9, noted(1, exit_code=1)).is_healthy


@pytest.mark.parametrize(("planned", "healthy"), [("11:01", True), ("10:59", False)])
def test_a_scheduler_that_let_its_time_pass_is_not(planned: str, healthy: bool) -> None:
    state = judged(schedules=[{"host": "a", "next_run_at": f"2026-11-30T{planned}:00Z"}])
    assert state.is_healthy is healthy
    assert healthy or "the scheduler on a planned a run for 2026-11-30T10:59:00Z" in state.line


def test_one_of_two_schedulers_may_be_gone_while_the_other_makes_the_runs() -> None:
    """As a container that was replaced: its plan stays behind, and the prices are kept up."""
    gone = {"host": "old", "next_run_at": "2026-11-30T03:04:00Z"}
    here = {"host": "new", "next_run_at": "2026-12-01T03:01:00Z"}
    state = judged(9, schedules=[gone, here])  # a run at 03:00
    assert state.is_healthy
    assert state.next_run_at == "2026-12-01T03:01:00Z"
    (warning,) = state.warnings
    assert warning.startswith("the scheduler on old planned a run for 2026-11-30T03:04:00Z and made none")
    assert warning.endswith(": another one did; is it running?")
    assert not judged(20, schedules=[gone, here]).is_healthy  # no run since the evening before


def test_a_source_that_fails_night_after_night_is_a_warning() -> None:
    failing = status(failures_since_success=3, last_run_status=RunStatus.FAILED, last_run_reason="HTTP 403")
    state = judged(statuses=[failing])
    assert state.is_healthy
    assert state.warnings == ["acme failed 3 times in a row: HTTP 403"]


def test_what_catalogues_say_of_others_is_no_fresh_price() -> None:
    state = judged(statuses=[status(), status(provider="skypilot", verified=24, quarantined=6)])
    assert state.line.endswith(", 12 fresh prices")
    assert state.counts["quarantined"] == 0
