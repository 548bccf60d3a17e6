"""The nightly refresh: when it is due, and a process that runs it until it is told to end."""

import os
import signal
import socket
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from types import FrameType
from typing import Any
from zoneinfo import ZoneInfo

from apscheduler.events import (
    EVENT_JOB_ERROR,
    EVENT_JOB_MAX_INSTANCES,
    EVENT_JOB_MISSED,
    EVENT_SCHEDULER_STARTED,
)
from apscheduler.schedulers.blocking import BlockingScheduler
from apscheduler.triggers.cron import CronTrigger

from pricing.errors import StoreError
from pricing.runs import LAST_GOOD_RUN, SCHEDULES
from pricing.store import Store

JOB = "refresh"
INTERVAL = timedelta(days=1)
# A run that another machine finished this short a time ago is not done again; clocks and jitter differ.
RECENT = timedelta(hours=12)
# A machine that sleeps through the hour runs when it wakes; the default of a second would skip the night.
MISFIRE_GRACE_S = 6 * 3600
# A signal to end lets a running refresh finish this long; Docker kills after 10 s. [s]
STOP_GRACE_S = 8.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Timetable:
    """When the prices are refreshed."""

    at: time
    zone: ZoneInfo
    jitter_s: int = 300  # spreads the load on the providers

    @property
    def trigger(self) -> CronTrigger:
        """The same time every day, in the zone."""
        return CronTrigger(
            hour=self.at.hour, minute=self.at.minute, timezone=self.zone, jitter=self.jitter_s or None
        )

    def next_after(self, now: datetime) -> datetime:
        """Return the next time without jitter, in UTC."""
        trigger = CronTrigger(hour=self.at.hour, minute=self.at.minute, timezone=self.zone)
        found: datetime | None = trigger.get_next_fire_time(None, now)
        assert found is not None
        return found.astimezone(UTC)


def last_good_run(store: Store) -> datetime | None:
    """Return when the last run over all sources began in which at least one answered."""
    noted = store.noted(LAST_GOOD_RUN)
    return None if noted is None else datetime.fromisoformat(noted["started_at"])


def is_due(last: datetime | None, now: datetime, interval: timedelta = INTERVAL) -> bool:
    """Whether a run was missed: none has succeeded within the interval."""
    return last is None or now - last > interval


class Nightly:
    """
    A scheduler in the calling thread, which runs one job a day in another until it is told to end.

    Args:
        store: Of the database; what is planned is noted in it.
        timetable: When.
        job: Does the work; it reports and handles its own errors.
        clock: The present.
        told: Is told what goes wrong with the schedule itself.
    """

    def __init__(
        self,
        store: Store,
        timetable: Timetable,
        job: Callable[[], None],
        clock: Callable[[], datetime],
        told: Callable[[str], None],
    ) -> None:
        self._store = store
        self._timetable = timetable
        self._job = job
        self._clock = clock
        self._told = told
        self._idle = threading.Event()
        self._idle.set()
        self._scheduler = BlockingScheduler(
            timezone="UTC",
            job_defaults={"coalesce": True, "max_instances": 1, "misfire_grace_time": MISFIRE_GRACE_S},
        )
        is_missed = is_due(last_good_run(store), clock())
        first = {"next_run_time": datetime.now(UTC)} if is_missed else {}  # by the scheduler's own clock
        self._scheduler.add_job(self._run, timetable.trigger, id=JOB, name="refresh of all prices", **first)
        self._scheduler.add_listener(self._note_plan, EVENT_SCHEDULER_STARTED)
        wrong = EVENT_JOB_ERROR | EVENT_JOB_MISSED | EVENT_JOB_MAX_INSTANCES
        self._scheduler.add_listener(self._tell, wrong)

    @property
    def next_run_at(self) -> datetime | None:
        """When the job runs next; None before the start."""
        job = self._scheduler.get_job(JOB)
        found: datetime | None = getattr(job, "next_run_time", None)
        return None if found is None else found.astimezone(UTC)

    def serve(self, grace_s: float = STOP_GRACE_S) -> bool:
        """
        Run until SIGTERM, SIGINT or `stop`; return whether a run that was under way could finish.

        One that does not finish in time is abandoned by the caller ending the process: what a provider
        brought is stored as a whole or not at all, and the lock ends with the process.
        """
        before = {
            number: signal.signal(number, self._on_signal) for number in (signal.SIGTERM, signal.SIGINT)
        }
        try:
            self._scheduler.start()
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
        is_done = self._idle.wait(grace_s)
        self._forget_plan()
        return is_done

    def stop(self) -> None:
        """End the schedule; `serve` returns."""
        if self._scheduler.running:
            self._scheduler.shutdown(wait=False)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        del number, frame
        self.stop()

    def _run(self) -> None:
        self._idle.clear()
        try:
            last, now = last_good_run(self._store), self._clock()
            if last is None or now - last >= RECENT:
                self._job()
            self._note_plan()
        finally:
            self._idle.set()

    def _note_plan(self, event: Any = None) -> None:
        del event
        if not self._scheduler.running:  # told to end
            return
        planned = self.next_run_at
        plan: Mapping[str, Any] = {
            "host": socket.gethostname(),
            "pid": os.getpid(),
            "at": f"{self._timetable.at:%H:%M}",
            "timezone": self._timetable.zone.key,
            "next_run_at": None if planned is None else f"{planned:%Y-%m-%dT%H:%M:%SZ}",
        }
        try:
            self._store.note(SCHEDULES + socket.gethostname(), plan)
        except StoreError as error:
            self._told(f"the next run could not be noted: {error}")

    def _forget_plan(self) -> None:
        try:
            self._store.note(SCHEDULES + socket.gethostname(), None)
        except StoreError as error:
            self._told(f"the end of the schedule could not be noted: {error}")

    def _tell(self, event: Any) -> None:
        if event.code == EVENT_JOB_MISSED:
            self._told(f"the run planned for {event.scheduled_run_time:%Y-%m-%d %H:%M %Z} was missed")
        elif event.code == EVENT_JOB_MAX_INSTANCES:
            self._told("the last run is still under way, so this one was left out")
        else:
            self._told(f"the run failed: {type(event.exception).__name__}: {event.exception}")
