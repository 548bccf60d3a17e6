"""The transactions in which a database is read and written, and the connections behind them."""

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Self

from sqlalchemy import Connection, Engine, text

from pricing.errors import StoreError
from pricing.storage.engines import TIMEOUT_S, Target, reading_engine, store_errors, writing_engine

# A writer on PostgreSQL waits for the one before it, as SQLite does by itself. The letters "brkw".
WRITE_LOCK = 0x62726B77


class Sessions:
    """
    Transactions of one database, made one by one.

    May be shared by threads: each use opens and closes its own. Every failure is a `StoreError` in one line.

    Args:
        target: Which database.
        timeout_s: How long to wait for another program that holds it. [s]
        memory: Where it is in memory, what holds it.
    """

    def __init__(self, target: Target, *, timeout_s: float = TIMEOUT_S, memory: Engine | None = None) -> None:
        self._target = target
        self._timeout_s = timeout_s
        self._memory = memory
        # A database in memory is one connection: threads take turns on it, and none closes it under another.
        # One in a file has a connection for each use, one on a server a pool of them.
        self._turn: AbstractContextManager[object] = nullcontext() if memory is None else threading.RLock()
        self._making = threading.Lock()
        self._engines: dict[Callable[[Target, float], Engine], Engine] = {}

    def close(self) -> None:
        """Let go of all connections."""
        with self._making:
            for engine in self._engines.values():
                engine.dispose()
            self._engines.clear()
        if self._memory is not None:
            with self._turn:
                self._memory.dispose()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    @property
    def label(self) -> str:
        """Where it is: a path, or an address without password."""
        return self._target.label

    @property
    def is_read_only(self) -> bool:
        """Whether nothing can be added."""
        return self._target.is_read_only

    @property
    def target(self) -> Target:
        """Which database it is."""
        return self._target

    @contextmanager
    def _reading(self) -> Iterator[Connection]:
        with (
            self._turn,
            store_errors(self._target, self._timeout_s),
            self._engine(reading_engine).begin() as connection,
        ):
            yield connection

    @contextmanager
    def _writing(self) -> Iterator[Connection]:
        if self.is_read_only:
            raise StoreError(
                f"database {self.label}: is read-only; make it writable or set BREAKEVEN_DATABASE_URL"
            )
        with (
            self._turn,
            store_errors(self._target, self._timeout_s),
            self._engine(writing_engine).begin() as connection,
        ):
            if not self._target.is_sqlite:
                connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": WRITE_LOCK})
            yield connection

    def _engine(self, make: Callable[[Target, float], Engine]) -> Engine:
        """Return the engine for reading or writing, made once also where several threads ask for it first."""
        if self._memory is not None:
            return self._memory
        with self._making:
            if make not in self._engines:
                self._engines[make] = make(self._target, self._timeout_s)
            return self._engines[make]
