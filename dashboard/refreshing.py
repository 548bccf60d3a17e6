"""A refresh started from the page: one at a time in this process, watched by every page, and stoppable."""

import logging
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING

from planner.errors import PlannerError
from pricing.errors import PricingError
from pricing.registry import provider_infos
from pricing.settings import Settings
from pricing.store import Store

if TYPE_CHECKING:
    from pricing.running.reports import ProviderReport

COMMAND = "the dashboard"  # for whoever finds the lock of the database taken

log = logging.getLogger(__name__)


class State(StrEnum):
    """Where a refresh is."""

    RUNNING = "running"
    DONE = "done"
    STOPPED = "stopped"
    FAILED = "failed"


class _Stopped(Exception):
    """Somebody asked for it."""


@dataclass(slots=True)
class Refresh:
    """One refresh, as the pages see it."""

    total: int  # sources to ask
    started_at: datetime
    reports: "list[ProviderReport]" = field(default_factory=list)  # of the sources that are done
    state: State = State.RUNNING
    error: str | None = None
    is_stopping: bool = False
    thread: threading.Thread | None = None

    @property
    def share(self) -> float:
        """How much of it is done, 0 to 1."""
        return min(1.0, len(self.reports) / max(1, self.total))

    def stop(self) -> None:
        """End it after the source that is being stored; what is stored stays."""
        self.is_stopping = True


_lock = threading.Lock()
_current: Refresh | None = None


def sources() -> list[str]:
    """Return the sources that a refresh can ask."""
    return [info.name for info in provider_infos().values() if info.has_scraper]


def current() -> Refresh | None:
    """Return the refresh of this process: the one that runs, else the last one."""
    return _current


def start(names: Sequence[str], store: Store, settings: Settings, now: datetime) -> Refresh:
    """
    Start a refresh in the background; one that runs already is returned instead.

    Args:
        names: Sources; empty for all.
        store: Where prices are kept.
        settings: Keys and mirrors of providers.
        now: The time that the prices are seen.
    """
    global _current
    with _lock:
        if _current is not None and _current.state is State.RUNNING:
            return _current
        job = Refresh(total=len(names) or len(sources()), started_at=now)
        job.thread = threading.Thread(
            target=_work, args=(job, list(names), store, settings), name="refresh", daemon=True
        )
        _current = job
        job.thread.start()
        return job


def _work(job: Refresh, names: list[str], store: Store, settings: Settings) -> None:
    """Ask the sources; whatever ends it becomes the state of the job."""
    from pricing.http import Client
    from pricing.running.runs import run

    def progress(report: "ProviderReport") -> None:
        job.reports.append(report)
        if job.is_stopping:
            raise _Stopped

    try:
        with Client.of(settings) as client:
            run(names or None, store, settings, client, job.started_at, progress, command=COMMAND)
        job.state = State.DONE
    except _Stopped:
        job.state = State.STOPPED
    except (PlannerError, PricingError) as error:
        job.error, job.state = str(error), State.FAILED
    except Exception as error:  # the thread must not end without a word on the page
        log.exception("the refresh failed")
        job.error, job.state = f"{type(error).__name__}: {error}"[:300], State.FAILED
