"""The nightly refresh: when it is due, what is planned, how it ends. No test waits for a clock."""

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, time, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from apscheduler.events import (
    EVENT_JOB_ADDED,
    EVENT_JOB_ERROR,
    EVENT_JOB_EXECUTED,
    EVENT_SCHEDULER_STARTED,
)
from sqlalchemy import text

from pricing.errors import FetchError, RunInProgress, RunMade
from pricing.provider import Page, Request, Site
from pricing.running import runs
from pricing.running.runs import last_good_run
from pricing.schedule import LOOK_AGAIN, Nightly, Timetable, is_due
from pricing.settings import Settings
from pricing.store import Store

BERLIN = Timetable(at=time(3), zone=ZoneInfo("Europe/Berlin"), jitter_s=0)
NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)
WAIT_S = 20.0


@pytest.fixture
def store(file: Path) -> Iterator[Store]:
    with Store.open(f"sqlite:///{file}") as store:  # a file: two threads use it, as in production
        yield store


def good_run(store: Store, at: datetime) -> None:
    store.note(runs.LAST_GOOD_RUN, {"started_at": f"{at:%Y-%m-%dT%H:%M:%SZ}"})


@pytest.mark.parametrize(
    ("now", "planned"),
    [
        ("2026-11-30T12:00", "2026-12-01T02:00"),  # winter: UTC + 1
        ("2026-11-30T01:59", "2026-11-30T02:00"),
        ("2026-07-01T12:00", "2026-07-02T01:00"),  # summer: UTC + 2
        ("2026-03-28T12:00", "2026-03-29T01:00"),  # the clocks go forward in that night, from 2 to 3
        ("2026-10-24T12:00", "2026-10-25T02:00"),  # and back, from 3 to 2
    ],
)
def test_the_hour_is_that_of_the_zone(now: str, planned: str) -> None:
    found = BERLIN.next_after(datetime.fromisoformat(f"{now}+00:00"))
    assert f"{found:%Y-%m-%dT%H:%M}" == planned


@pytest.mark.parametrize(
    ("hours", "due"), [(None, True), (0, False), (23, False), (24, False), (24.1, True), (500, True)]
)
def test_a_run_is_due_where_a_night_was_missed(hours: float | None, due: bool) -> None:
    last = None if hours is None else NOON - timedelta(hours=hours)
    assert is_due(last, NOON) is due


class Served:
    """A schedule that serves in the test's own thread, as signals need, and is stopped from another."""

    def __init__(self, store: Store, job: Callable[[], None]) -> None:
        self.told: list[str] = []
        self.started = threading.Event()
        self.nightly = Nightly(store, BERLIN, job, lambda: NOON, self.told.append)
        self.on(EVENT_SCHEDULER_STARTED, lambda event: self.started.set())

    def on(self, event: int, react: Callable[[Any], None]) -> None:
        self.nightly._scheduler.add_listener(react, event)

    def until(self, happened: threading.Event, grace_s: float = WAIT_S) -> bool:
        def stop() -> None:
            happened.wait(WAIT_S)
            self.nightly.stop()

        stopper = threading.Thread(target=stop)
        stopper.start()
        try:
            return self.nightly.serve(grace_s)
        finally:
            stopper.join()
            assert happened.is_set()


def test_what_was_missed_is_caught_up_at_the_start(store: Store) -> None:
    good_run(store, NOON - timedelta(days=3))
    ran = threading.Event()
    assert Served(store, ran.set).until(ran)


def test_without_a_run_so_far_the_first_is_at_once(store: Store) -> None:
    ran = threading.Event()
    assert Served(store, ran.set).until(ran)


def test_a_recent_run_is_not_repeated_at_the_start(store: Store) -> None:
    good_run(store, NOON - timedelta(hours=10))
    ran = threading.Event()
    served = Served(store, ran.set)
    served.until(served.started)
    assert not ran.is_set()


def test_what_another_machine_has_just_done_is_not_done_again(store: Store) -> None:
    ran: list[int] = []
    nightly = Nightly(store, BERLIN, lambda: ran.append(1), lambda: NOON, lambda text: None)
    good_run(store, NOON - timedelta(minutes=5))
    nightly._run()
    assert ran == []
    good_run(store, NOON - timedelta(hours=20))
    nightly._run()
    assert ran == [1]


class Refusing:
    """A client that reaches nobody."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def fetch(self, request: Request, site: Site) -> Page:
        self.asked.append(request.url)
        raise FetchError("no network")

    def settle(self, site: Site, *, is_read: bool) -> None:
        raise AssertionError("nothing was read")


def test_what_was_done_while_the_lock_was_waited_for_is_not_done_again(store: Store) -> None:
    """Of two that looked at once, the second gets the lock when the first has ended."""
    client = Refusing()
    good_run(store, NOON - timedelta(minutes=5))

    def run(since: datetime | None, names: list[str] | None = None) -> None:
        settings = Settings(database_url="sqlite://")
        runs.run(names, store, settings, client, NOON, unless_since=since)

    with pytest.raises(RunMade, match=r"the run of 2026-11-30 11:55 UTC has brought prices; nothing to do"):
        run(NOON - runs.RECENT)
    with store._reading() as connection:
        assert connection.execute(text("SELECT count(*) FROM provider_run")).scalar() == 0
    assert client.asked == []
    good_run(store, NOON - runs.RECENT)  # long enough ago
    run(NOON - runs.RECENT, ["litellm"])
    good_run(store, NOON)
    run(None, ["litellm"])  # a person wants it
    assert len(client.asked) == 2


def test_a_run_that_comes_up_after_the_end_is_not_begun(store: Store) -> None:
    ran: list[int] = []
    nightly = Nightly(store, BERLIN, lambda: ran.append(1), lambda: NOON, lambda text: None)
    nightly.stop()
    nightly._run()
    assert ran == []
    assert nightly._idle.is_set()


def test_another_run_under_way_is_looked_at_again(store: Store) -> None:
    def busy() -> None:
        raise RunInProgress("another refresh is running")

    served = Served(store, busy)
    tried = threading.Event()
    served.on(EVENT_JOB_EXECUTED, lambda event: tried.set())
    looks: list[datetime] = []
    served.on(
        EVENT_JOB_ADDED,
        lambda event: looks.append(_next_look(served)) if event.job_id == LOOK_AGAIN else None,
    )
    assert served.until(tried)
    assert served.told[0] == "another refresh is running"
    assert served.told[1].startswith("no run has brought prices yet; looking again at ")
    (look,) = looks
    assert timedelta(minutes=59) < look - datetime.now(UTC) <= timedelta(hours=1)


def _next_look(served: "Served") -> datetime:
    found: datetime = served.nightly._scheduler.get_job(LOOK_AGAIN).trigger.run_date
    return found


def test_it_looks_again_later_and_later_and_then_waits_for_the_night(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    nightly = Nightly(store, BERLIN, lambda: None, lambda: NOON, told.append)
    added: list[timedelta] = []

    def add_job(function: object, trigger: str, run_date: datetime, **more: object) -> None:
        assert (trigger, more["id"]) == ("date", LOOK_AGAIN)
        added.append(run_date - datetime.now(UTC))

    monkeypatch.setattr(type(nightly._scheduler), "running", property(lambda scheduler: True))
    monkeypatch.setattr(nightly._scheduler, "add_job", add_job)
    for _ in range(5):  # a run in which every source failed notes no good one
        nightly._run()
    hours = [round(after / timedelta(hours=1)) for after in added]
    assert hours == [1, 2, 4, 1]  # the fourth waits for the night; the fifth is of that night
    good_run(store, NOON)
    nightly._run()
    assert len(added) == 4


def test_the_plans_of_schedulers_that_are_gone_are_forgotten(store: Store) -> None:
    plan = {"host": socket.gethostname(), "pid": os.getpid(), "next_run_at": "2026-12-01T03:00:00Z"}
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    store.note(f"{runs.SCHEDULES}dead", plan | {"pid": gone.pid})
    store.note(f"{runs.SCHEDULES}other machine", plan | {"host": "elsewhere", "pid": 1})
    store.note(
        f"{runs.SCHEDULES}long ago", plan | {"host": "elsewhere", "next_run_at": "2026-11-20T03:00:00Z"}
    )
    good_run(store, NOON - timedelta(hours=1))
    served = Served(store, lambda: None)
    noted: list[str] = []
    looked = threading.Event()

    def look(event: object) -> None:
        noted.extend(store.all_noted(runs.SCHEDULES))
        looked.set()

    served.on(EVENT_SCHEDULER_STARTED, look)
    served.until(looked)
    own = f"{runs.SCHEDULES}{socket.gethostname()}:{os.getpid()}"
    assert sorted(noted) == sorted([own, f"{runs.SCHEDULES}other machine"])


def test_the_plan_is_noted_while_the_schedule_runs(store: Store) -> None:
    good_run(store, NOON - timedelta(hours=10))
    noted: list[dict[str, Any]] = []
    looked = threading.Event()
    served = Served(store, lambda: None)

    def look(event: object) -> None:
        noted.extend(dict(plan) for plan in store.all_noted(runs.SCHEDULES).values())
        looked.set()

    served.on(EVENT_SCHEDULER_STARTED, look)
    served.until(looked)
    assert [(plan["at"], plan["timezone"]) for plan in noted] == [("03:00", "Europe/Berlin")]
    assert noted[0]["next_run_at"].endswith(("T02:00:00Z", "T01:00:00Z"))
    assert store.all_noted(runs.SCHEDULES) == {}


def test_a_run_that_hangs_is_abandoned_when_told_to_end(store: Store) -> None:
    begun, let_go = threading.Event(), threading.Event()

    def hang() -> None:
        begun.set()
        let_go.wait(WAIT_S)

    served = Served(store, hang)
    try:
        assert served.until(begun, grace_s=0.05) is False
    finally:
        let_go.set()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_while_the_schedule_begins_is_not_lost(store: Store, number: int) -> None:
    good_run(store, NOON - timedelta(hours=10))
    served = Served(store, lambda: None)
    served.on(EVENT_SCHEDULER_STARTED, lambda event: os.kill(os.getpid(), number))
    before = signal.getsignal(number)
    assert served.nightly.serve()
    assert signal.getsignal(number) is before
    assert signal.set_wakeup_fd(-1) == -1


def test_told_to_end_before_it_begins_it_ends_at_once(store: Store) -> None:
    served = Served(store, lambda: None)
    served.nightly.stop()
    served.nightly.serve()
    assert store.all_noted(runs.SCHEDULES) == {}


def test_a_fault_of_the_job_is_told_and_the_schedule_goes_on(store: Store) -> None:
    def fault() -> None:
        raise ZeroDivisionError("division by zero")

    told = threading.Event()
    served = Served(store, fault)
    served.on(EVENT_JOB_ERROR, lambda event: told.set())
    served.until(told)
    assert served.told == ["the run failed: ZeroDivisionError: division by zero"]


def test_runs_never_overlap_and_wait_for_a_sleeping_machine(store: Store) -> None:
    defaults = Nightly(store, BERLIN, lambda: None, lambda: NOON, print)._scheduler._job_defaults
    assert (defaults["coalesce"], defaults["max_instances"]) == (True, 1)
    assert defaults["misfire_grace_time"] == 6 * 3600


def test_the_last_good_run_is_read_from_the_store(store: Store) -> None:
    assert last_good_run(store, NOON) is None
    good_run(store, NOON)
    assert last_good_run(store, NOON) == NOON
    assert last_good_run(store, NOON - timedelta(days=1)) is None  # noted by a wrong clock
