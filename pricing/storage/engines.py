"""Which database a URL means, connections to it, and its errors in one line with a remedy."""

import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, StatementError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.pool import NullPool, StaticPool

from pricing.errors import StoreError
from pricing.storage.sqlite_urls import sqlite_place

# Seconds that a writer waits for another one, and a program for the server.
TIMEOUT_S = 5.0
# Pages a reader may hold; SQLite's own 2 MB make a large market read pages twice. [KiB]
READ_CACHE_KIB = 32 * 1024
POSTGRESQL = "postgresql+psycopg"
_KNOWN = {
    "sqlite": "sqlite",
    "sqlite+pysqlite": "sqlite",
    "postgres": POSTGRESQL,
    "postgresql": POSTGRESQL,
    POSTGRESQL: POSTGRESQL,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A database: a file, a server, or memory."""

    url: URL
    path: Path | None  # of the SQLite file
    label: str  # for people, without the password
    is_opened_read_only: bool = False  # the URL says so

    @property
    def is_sqlite(self) -> bool:
        """Whether it is SQLite, on disk or in memory."""
        return self.url.get_backend_name() == "sqlite"

    @property
    def is_memory(self) -> bool:
        """Whether it ends with the process."""
        return self.is_sqlite and self.path is None

    @property
    def is_read_only(self) -> bool:
        """Whether URL, file, or the folder that its journal needs, allow no writing; also for root."""
        if self.is_opened_read_only:
            return True
        if self.path is None or not self.path.parent.exists():
            return False
        return not may_write(self.path.parent) or (self.path.exists() and not may_write(self.path))


def find_target(url: str) -> Target:
    """
    Read a database URL.

    Raises:
        StoreError: if it is not one, not of SQLite or PostgreSQL, or the driver is missing.
    """
    try:
        parsed = make_url(url)
        driver = _KNOWN[parsed.drivername]
    except (ArgumentError, KeyError, ValueError) as error:
        scheme = url.partition(":")[0] if ":" in url else url
        why = "not an address" if scheme in _KNOWN else "not a kind that is known"
        raise StoreError(
            f"database {scheme!r}: {why}; give sqlite:////folder/file.db or "
            "postgresql+psycopg://user:password@host:5432/name"
        ) from error
    parsed = parsed.set(drivername=driver)
    if driver == POSTGRESQL:
        if find_spec("psycopg") is None:
            raise StoreError("PostgreSQL needs a driver: pip install 'breakeven[postgresql]'")
        # Of a database that declares no encoding (SQL_ASCII), the driver would else give bytes for text.
        spoken = parsed.update_query_dict({"client_encoding": "utf8"})
        return Target(url=spoken, path=None, label=parsed.render_as_string(hide_password=True))
    try:
        place = sqlite_place(url)
    except ValueError as error:
        raise StoreError(f"database {parsed.drivername}: {error}") from error
    if place.path is None:
        return Target(url=parsed, path=None, label="a database in memory")
    path = place.path
    return Target(url=parsed, path=path, label=str(path), is_opened_read_only=place.is_opened_read_only)


def may_write(path: Path) -> bool:
    """Whether a file or folder may be written; one without any write bit is meant so, even by root."""
    return os.access(path, os.W_OK) and bool(path.stat().st_mode & 0o222)


def reading_engine(target: Target, timeout_s: float = TIMEOUT_S) -> Engine:
    """Return an engine whose transactions see one state of the database and change nothing."""
    if not target.is_sqlite:
        return _server_engine(target, timeout_s, isolation_level="REPEATABLE READ")
    return _sqlite_engine(target, timeout_s, begin="BEGIN", setup=_set_up_reading)


def writing_engine(target: Target, timeout_s: float = TIMEOUT_S) -> Engine:
    """Return an engine whose transactions are writers from their first statement on, one at a time."""
    if not target.is_sqlite:
        return _server_engine(target, timeout_s)
    return _sqlite_engine(target, timeout_s, begin="BEGIN IMMEDIATE", setup=_set_up_writing)


def migrating_engine(target: Target, timeout_s: float = TIMEOUT_S) -> Engine:
    """
    Return an engine for changes of the schema.

    It leaves foreign keys off: with them on, recreating a table empties those that refer to it.
    """
    if not target.is_sqlite:
        return _server_engine(target, timeout_s)
    return _sqlite_engine(target, timeout_s, begin="BEGIN IMMEDIATE", setup=_set_up_migrating)


def memory_engine() -> Engine:
    """Return an engine of a database in memory, which all its connections share."""
    target = find_target("sqlite://")
    return _sqlite_engine(target, TIMEOUT_S, begin="BEGIN IMMEDIATE", setup=_set_up_writing)


def open_sqlite(target: Target, timeout_s: float = TIMEOUT_S) -> sqlite3.Connection:
    """
    Open the file as far as it allows.

    A file that is closed to writing is opened for reading only; where its folder is too, SQLite cannot make
    the small files beside it that it needs to notice writers, and takes it as unchanging.
    """
    if target.path is None:
        return sqlite3.connect(":memory:", timeout=timeout_s, check_same_thread=False)
    mode = "mode=rwc"
    if target.is_read_only:
        log = target.path.with_name(f"{target.path.name}-wal")
        is_settled = not log.exists() or log.stat().st_size == 0
        mode = "mode=ro" if may_write(target.path.parent) or not is_settled else "mode=ro&immutable=1"
    return sqlite3.connect(
        f"{target.path.absolute().as_uri()}?{mode}", uri=True, timeout=timeout_s, check_same_thread=False
    )


@contextmanager
def transaction(engine: Engine) -> Iterator[Connection]:
    """Give one transaction on an engine that is not needed afterwards."""
    try:
        with engine.begin() as connection:
            yield connection
    finally:
        engine.dispose()


@contextmanager
def store_errors(target: Target, timeout_s: float = TIMEOUT_S) -> Iterator[None]:
    """Turn what a driver raises into a `StoreError` that says what to do."""
    try:
        yield
    except DBAPIError as error:
        raise StoreError(_explain(str(error.orig), target, timeout_s)) from error
    except StatementError as error:  # a value that no column holds
        raise StoreError(f"database {target.label}: cannot store this ({error.orig})") from error
    except PoolTimeout as error:
        raise StoreError(f"database {target.label}: too many questions at once; try again") from error
    except sqlite3.Error as error:
        raise StoreError(_explain(str(error), target, timeout_s)) from error


@contextmanager
def file_errors(target: Target) -> Iterator[None]:
    """Turn what the file system refuses into a `StoreError` that says what to do."""
    try:
        yield
    except OSError as error:
        raise StoreError(_explain(str(error), target, TIMEOUT_S)) from error


def _explain(message: str, target: Target, timeout_s: float) -> str:
    text = " ".join(message.split())
    where = f"database {target.label}"
    if not target.is_sqlite:
        if "permission denied" in text or "must be owner" in text:
            return f"{where}: its user may not do that ({text}); grant it the schema, or give another user"
        if any(word in text for word in ("connect", "resolve host", "authentication", "does not exist")):
            return f"{where}: cannot be reached ({text}); start the server or correct BREAKEVEN_DATABASE_URL"
        return f"{where}: {text}"
    if "no such table" in text:
        return f"{where}: its tables are gone, removed while in use? Run `breakeven db upgrade` for a new one"
    if "not a database" in text or "malformed" in text:
        return f"{where}: not a database, or a damaged one; move it away or set BREAKEVEN_DATABASE_URL"
    if "locked" in text or "busy" in text:
        return f"{where}: locked by another program for more than {timeout_s:g} s; wait or end that program"
    if "readonly" in text or "read-only" in text.lower():
        return f"{where}: is read-only; make it writable or set BREAKEVEN_DATABASE_URL to a file that is"
    if "disk is full" in text or "No space" in text:
        return f"{where}: the disk is full; free some space, nothing was lost"
    if "unable to open" in text or "Permission" in text or "directory" in text or "File exists" in text:
        return f"{where}: cannot be opened or created; check its folder or set BREAKEVEN_DATABASE_URL"
    return f"{where}: {text}"


def _server_engine(target: Target, timeout_s: float, *, isolation_level: str = "READ COMMITTED") -> Engine:
    options = {"connect_timeout": max(2, round(timeout_s)), "application_name": "breakeven"}
    return create_engine(
        target.url, pool_pre_ping=True, connect_args=options, isolation_level=isolation_level
    )


def _sqlite_engine(
    target: Target, timeout_s: float, *, begin: str, setup: Callable[[sqlite3.Connection, bool], None]
) -> Engine:
    # A file is opened for each use: it may be replaced, and no handle outlives its thread.
    pool = StaticPool if target.is_memory else NullPool

    def connect() -> sqlite3.Connection:
        connection = open_sqlite(target, timeout_s)
        # pysqlite would begin transactions by itself, and only at the first change.
        connection.isolation_level = None
        setup(connection, target.is_read_only or target.is_memory)
        return connection

    engine = create_engine("sqlite://", creator=connect, poolclass=pool)

    @event.listens_for(engine, "begin")
    def _begin(connection: Any) -> None:
        connection.exec_driver_sql(begin)

    return engine


def _set_up_reading(connection: sqlite3.Connection, is_fixed: bool) -> None:
    del is_fixed
    connection.execute("PRAGMA query_only=ON")
    connection.execute(f"PRAGMA cache_size=-{READ_CACHE_KIB}")


def _set_up_writing(connection: sqlite3.Connection, is_fixed: bool) -> None:
    if not is_fixed:
        _use_write_ahead_log(connection)
    connection.execute("PRAGMA synchronous=NORMAL")
    connection.execute("PRAGMA foreign_keys=ON")


def _set_up_migrating(connection: sqlite3.Connection, is_fixed: bool) -> None:
    if not is_fixed:
        _use_write_ahead_log(connection)
    connection.execute("PRAGMA foreign_keys=OFF")


def _use_write_ahead_log(connection: sqlite3.Connection) -> None:
    """Let readers go on beside a writer; this change does not honour the timeout, so it is tried again."""
    with closing(connection.execute("PRAGMA busy_timeout")) as cursor:
        tries = max(1, int(cursor.fetchone()[0]) // 50)
    for left in reversed(range(tries)):
        try:
            if connection.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
                connection.execute("PRAGMA journal_mode=WAL")
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or not left:
                raise
            time.sleep(0.05)
        else:
            return
