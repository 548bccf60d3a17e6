"""The nightly refresh: when it is due, and a process that runs it until it is told to end."""

import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
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
from apscheduler.schedulers.background import BackgroundScheduler
from apscheduler.triggers.cron import CronTrigger

from pricing.errors import RunInProgress, StoreError
from pricing.running.runs import RECENT, SCHEDULES, last_good_run
from pricing.store import Store

JOB = "refresh"
INTERVAL = timedelta(days=1)
# A machine that sleeps through the hour runs when it wakes; the default of a second would skip the night.
MISFIRE_GRACE_S = 6 * 3600
# Where a run brought nothing, or another process was at it, a look is taken so much later, and twice that
# after each: the network may be back, or the other one gone. Then the next night is the next chance.
AGAIN = timedelta(hours=1)
LOOKS = 3
LOOK_AGAIN = "look again"
# A scheduler that never came back after its planned time is forgotten.
FORGET_AFTER = timedelta(days=7)
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


def is_due(last: datetime | None, now: datetime, interval: timedelta = INTERVAL) -> bool:
    """Whether a run was missed: none has succeeded within the interval."""
    return last is None or now - last > interval


class Nightly:
    """
    A scheduler that runs one job a day in a thread, while the calling one waits to be told to end.

    The calling thread waits for a bell that the system rings at every signal, whichever thread it reaches and
    whatever is being done: one that comes while the schedule begins is not lost, and a handler takes no lock.

    Args:
        store: Of the database; what is planned is noted in it.
        timetable: When.
        job: Does the work; it reports and handles its own errors, but raises RunInProgress.
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
        self._name = f"{SCHEDULES}{socket.gethostname()}:{os.getpid()}"
        self._looks = 0
        self._idle = threading.Event()
        self._idle.set()
        self._is_told_to_end = False
        self._bell: socket.socket | None = None
        self._scheduler = BackgroundScheduler(
            timezone="UTC",
            job_defaults={"coalesce": True, "max_instances": 1, "misfire_grace_time": MISFIRE_GRACE_S},
        )
        is_missed = is_due(last_good_run(store, clock()), clock())
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
        door, self._bell = socket.socketpair()
        with door, self._bell as bell:
            bell.setblocking(False)
            with _signals(self._on_signal, bell):
                self._scheduler.start()
                while not self._is_told_to_end:
                    door.recv(1)  # whatever it is that rings
                # A second signal, as `timeout` sends it, must not cut this off.
                self._scheduler.shutdown(wait=False)
                is_done = self._idle.wait(grace_s)
                self._forget_plan()
        return is_done

    def stop(self) -> None:
        """End the schedule from another thread; `serve` returns."""
        self._is_told_to_end = True
        if self._bell is not None:
            with suppress(OSError):  # it has ended meanwhile
                self._bell.send(b"!")

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        # Between any two steps of the main thread, so nothing here may wait for a lock that it holds.
        del number, frame
        self._is_told_to_end = True

    def _run(self) -> None:
        self._idle.clear()
        try:
            if self._is_told_to_end:  # `serve` may have found nothing under way a moment ago
                return
            if not self._is_done():
                try:
                    self._job()
                except RunInProgress as error:
                    self._told(str(error))
            if self._is_done():
                self._looks = 0
            else:
                self._look_again()
            self._note_plan()
        finally:
            self._idle.set()

    def _is_done(self) -> bool:
        """Whether a run of this night has brought something, here or elsewhere."""
        last = last_good_run(self._store, self._clock())
        return last is not None and self._clock() - last < RECENT

    def _look_again(self) -> None:
        if not self._scheduler.running or self._looks >= LOOKS:  # told to end, or looked often enough
            self._looks = 0
            return
        at = datetime.now(UTC) + AGAIN * 2**self._looks  # by the scheduler's own clock
        self._looks += 1
        self._scheduler.add_job(self._run, "date", run_date=at, id=LOOK_AGAIN, replace_existing=True)
        self._told(f"no run has brought prices yet; looking again at {at:%H:%M} UTC")

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
            self._store.note(self._name, plan)
            for name, other in self._store.all_noted(SCHEDULES).items():
                if name != self._name and self._is_gone(other):
                    self._store.note(name, None)
        except StoreError as error:
            self._told(f"the next run could not be noted: {error}")

    def _is_gone(self, plan: Mapping[str, Any]) -> bool:
        """Whether a scheduler that noted its plan is not there any more."""
        planned = plan.get("next_run_at")
        if planned is not None and self._clock() - datetime.fromisoformat(planned) > FORGET_AFTER:
            return True
        return plan.get("host") == socket.gethostname() and not _is_running(int(plan["pid"]))

    def _forget_plan(self) -> None:
        try:
            self._store.note(self._name, None)
        except StoreError as error:
            self._told(f"the end of the schedule could not be noted: {error}")

    def _tell(self, event: Any) -> None:
        if event.code == EVENT_JOB_MISSED:
            self._told(f"the run planned for {event.scheduled_run_time:%Y-%m-%d %H:%M %Z} was missed")
        elif event.code == EVENT_JOB_MAX_INSTANCES:
            self._told("the last run is still under way, so this one was left out")
        else:
            self._told(f"the run failed: {type(event.exception).__name__}: {event.exception}")


@contextmanager
def _signals(handler: Callable[[int, FrameType | None], None], bell: socket.socket) -> Iterator[None]:
    """Let SIGTERM and SIGINT call a handler, and every signal ring a bell, within the block."""
    before = {number: signal.signal(number, handler) for number in (signal.SIGTERM, signal.SIGINT)}
    rung_before = signal.set_wakeup_fd(bell.fileno(), warn_on_full_buffer=False)
    try:
        yield
    finally:
        signal.set_wakeup_fd(rung_before)
        for number, former in before.items():
            signal.signal(number, former)


def _is_running(pid: int) -> bool:
    """Whether a process of this machine has this number."""
    if os.name != "posix":  # there a signal of 0 would end it
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True
