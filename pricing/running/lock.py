"""One refresh at a time on one database, whichever process or machine starts it."""

import os
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime

from filelock import FileLock, Timeout
from sqlalchemy import create_engine, text
from sqlalchemy.pool import NullPool

from pricing.errors import RunInProgress, StoreError
from pricing.storage.engines import Target, file_errors, store_errors
from pricing.store import Store

# Key of the lock that a run holds on PostgreSQL. The letters "brkr".
RUN_LOCK = 0x6272_6B72
# Name under which the store keeps who holds it.
HOLDER = "run_holder"
# Between two tries while waiting. [s]
PAUSE_S = 0.2

Try = Callable[[], bool]


@contextmanager
def run_lock(
    store: Store,
    now: datetime,
    *,
    command: str,
    wait_s: float = 0.0,
    pause: Callable[[float], None] = time.sleep,
) -> Iterator[None]:
    """
    Hold the right to refresh while the block runs; a process that dies lets go of it.

    On SQLite by a lock file beside the database, on PostgreSQL by an advisory lock of the session.

    Args:
        store: Of the database.
        now: Written down as the beginning.
        command: What holds it, for people.
        wait_s: How long to wait for another run. [s]
        pause: Sleeps.

    Raises:
        RunInProgress: if another process holds it that long; says which.
    """
    target = store.target
    if target.is_memory:
        yield
        return
    with _file_lock(target) if target.is_sqlite else _server_lock(target) as attempt:
        tries = 1 + round(wait_s / PAUSE_S)
        while not attempt():
            tries -= 1
            if tries <= 0:
                raise RunInProgress(_busy(store))
            pause(PAUSE_S)
        host, pid = socket.gethostname(), os.getpid()
        store.note(
            HOLDER, {"host": host, "pid": pid, "command": command, "since": f"{now:%Y-%m-%dT%H:%M:%SZ}"}
        )
        try:
            yield
        finally:
            with suppress(StoreError):  # what the block raises says more
                store.note(HOLDER, None)


@contextmanager
def _file_lock(target: Target) -> Iterator[Try]:
    assert target.path is not None
    lock = FileLock(target.path.with_name(f"{target.path.name}.lock"), thread_local=False)

    def attempt() -> bool:
        with file_errors(target):
            try:
                lock.acquire(blocking=False)
            except Timeout:  # an OSError too, so it must not leave this block
                return False
        return True

    try:
        yield attempt
    finally:
        lock.release()


@contextmanager
def _server_lock(target: Target) -> Iterator[Try]:
    """Use a session of its own: the lock ends with it, also when the process is killed."""
    engine = create_engine(target.url, poolclass=NullPool, isolation_level="AUTOCOMMIT")
    with store_errors(target), engine.connect() as connection:
        connection.execute(text("SET application_name = 'breakeven run'"))

        def attempt() -> bool:
            query = text("SELECT pg_try_advisory_lock(:key)")
            return bool(connection.execute(query, {"key": RUN_LOCK}).scalar())

        yield attempt


def _busy(store: Store) -> str:
    holder = store.noted(HOLDER)  # none in the moment between the lock and the note
    who = ""
    if holder is not None:
        who = f": {holder['command']}, process {holder['pid']} on {holder['host']}, since {holder['since']}"
    return f"database {store.label}: another refresh is running{who}; wait for it, or end that process"
