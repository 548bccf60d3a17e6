"""The database as a whole: created, upgraded, checked, copied. Alembic is loaded only where it has work."""

import re
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from functools import cache
from importlib.resources import as_file, files
from pathlib import Path

from sqlalchemy import Connection, Engine, text

from pricing.errors import StoreError
from pricing.settings import default_database_url
from pricing.storage.engines import (
    TIMEOUT_S,
    Target,
    file_errors,
    find_target,
    memory_engine,
    migrating_engine,
    open_sqlite,
    reading_engine,
    store_errors,
    transaction,
)
from pricing.storage.snapshot import load, snapshot_digest

# Key of the lock under which one process at a time changes the schema on PostgreSQL. The letters "brkd".
UPGRADE_LOCK = 0x62726B64
# Another process may be creating the database and loading the bundled prices. [s]
UPGRADE_TIMEOUT_S = 60.0
COUNTED = ("series", "price", "source", "provider_run", "review")
_LIST_TABLES = {
    "sqlite": "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'",
    "postgresql": "SELECT tablename FROM pg_tables WHERE schemaname = current_schema()",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class UpgradeReport:
    """What `upgrade` did."""

    label: str
    from_revision: str | None  # None: the database was new
    to_revision: str
    backup: Path | None
    note: str | None  # where no backup was made, why

    @property
    def changed(self) -> bool:
        """Whether there was anything to do."""
        return self.from_revision != self.to_revision


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckReport:
    """The state of a database."""

    label: str
    revision: str | None
    head: str
    integrity: str  # ok, or the first thing found broken
    foreign_key_errors: int
    counts: Mapping[str, int]
    snapshot_is_current: bool
    is_read_only: bool

    @property
    def is_ok(self) -> bool:
        """Whether nothing has to be done."""
        return self.revision == self.head and self.integrity == "ok" and not self.foreign_key_errors

    def to_document(self) -> Mapping[str, object]:
        """Return the report for `db check --json`."""
        return {
            "schema": "breakeven.db/1",
            "database": self.label,
            "revision": self.revision,
            "head": self.head,
            "integrity": self.integrity,
            "foreign_key_errors": self.foreign_key_errors,
            "counts": dict(self.counts),
            "snapshot_is_current": self.snapshot_is_current,
            "is_read_only": self.is_read_only,
            "is_ok": self.is_ok,
        }


@dataclass(frozen=True, slots=True)
class _State:
    tables: frozenset[str]
    revision: str | None
    digest: str | None

    @property
    def is_ready(self) -> bool:
        return self.revision == head_revision() and self.digest == snapshot_digest()


@cache
def known_revisions() -> tuple[str, ...]:
    """Return the revisions of the schema, oldest first; their files are named `0001_what.py`."""
    names = (entry.name for entry in files("migrations").joinpath("versions").iterdir())
    found = (re.match(r"(\d{4})_\w+\.py$", name) for name in names)
    return tuple(sorted(match[1] for match in found if match))


def head_revision() -> str:
    """Return the newest revision that this program knows."""
    return known_revisions()[-1]


def ensure(url: str, *, timeout_s: float = TIMEOUT_S) -> None:
    """
    Make a database ready: created, at the newest revision, with the bundled prices; quick where it is.

    Raises:
        StoreError: in one line with the remedy, if it cannot be.
    """
    target = find_target(url)
    if target.is_memory or _is_ready(target, timeout_s):
        return
    _bring_to_head(target)


def upgrade(url: str) -> UpgradeReport:
    """
    Bring a database to the newest revision, with a copy of the old state beside it.

    Raises:
        StoreError: if it cannot be, or was written by a newer version.
    """
    target = find_target(url)
    if target.path is not None and target.path.exists():
        _is_ready(target, TIMEOUT_S)  # refuses what is not ours before anything is changed
    return _bring_to_head(target)


def check(url: str, *, timeout_s: float = TIMEOUT_S) -> CheckReport:
    """
    Look over a database without changing it.

    Raises:
        StoreError: if it is missing or not ours.
    """
    target = find_target(url)
    if target.path is not None and not target.path.exists():
        raise StoreError(f"database {target.label}: does not exist yet; run `breakeven db upgrade`")
    with store_errors(target, timeout_s), transaction(reading_engine(target, timeout_s)) as connection:
        state = _state(connection)
        _refuse_foreign(target, state)
        integrity, foreign = "ok", 0
        if target.is_sqlite:
            integrity = str(connection.execute(text("PRAGMA integrity_check(1)")).scalar())
            foreign = len(connection.execute(text("PRAGMA foreign_key_check")).all())
        counted = [name for name in COUNTED if name in state.tables]
        counts = {name: connection.execute(text(f"SELECT count(*) FROM {name}")).scalar() for name in counted}
        return CheckReport(
            label=target.label,
            revision=state.revision,
            head=head_revision(),
            integrity=integrity,
            foreign_key_errors=foreign,
            counts={name: int(count or 0) for name, count in counts.items()},
            snapshot_is_current=state.digest == snapshot_digest(),
            is_read_only=target.is_read_only,
        )


def location(url: str) -> str:
    """Return where the database is: the path of the file, or the URL without its password."""
    return find_target(url).label


def backup(url: str, file: Path) -> None:
    """
    Copy a SQLite database as it stands, also while others write to it.

    Raises:
        StoreError: if there is nothing to copy, the file exists, or it is on a server.
    """
    target = find_target(url)
    if not target.is_sqlite:
        raise StoreError(
            f"database {target.label}: is copied by PostgreSQL's own pg_dump, not by this command"
        )
    if target.path is None or not target.path.exists():
        raise StoreError(f"database {target.label}: does not exist, so there is nothing to copy")
    if file.exists():
        raise StoreError(f"{file}: exists already; give another name, nothing was overwritten")
    if not file.absolute().parent.is_dir():
        raise StoreError(f"{file}: its folder does not exist; create it first")
    with store_errors(target), file_errors(target):
        _copy(target, file)


def new_memory_engine(*, snapshot: bool = True) -> Engine:
    """Return an engine on a new database in memory, with the bundled prices unless told otherwise."""
    from pricing.storage.rows import set_value
    from pricing.tables import METADATA

    engine = memory_engine()
    METADATA.create_all(engine)
    if snapshot:
        with engine.begin() as connection:
            load(connection)
            set_value(connection, "snapshot", snapshot_digest())
    return engine


def _is_ready(target: Target, timeout_s: float) -> bool:
    """Whether there is nothing to do; asks without writing and without Alembic."""
    if target.path is not None and not target.path.exists():
        return False
    with store_errors(target, timeout_s), transaction(reading_engine(target, timeout_s)) as connection:
        state = _state(connection)
    _refuse_foreign(target, state)
    if not state.is_ready and target.is_read_only:
        raise StoreError(
            f"database {target.label}: is read-only and not at the newest revision; make it writable and run "
            "`breakeven db upgrade`"
        )
    return state.is_ready


def _bring_to_head(target: Target) -> UpgradeReport:
    """Upgrade and load under one lock, so that of two processes at once the second finds all done."""
    if target.is_memory:
        raise StoreError("a database in memory has nothing to upgrade")
    _make_folder(target)
    copy: Path | None = None
    with (
        store_errors(target, UPGRADE_TIMEOUT_S),
        transaction(migrating_engine(target, UPGRADE_TIMEOUT_S)) as connection,
    ):
        if not target.is_sqlite:
            connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": UPGRADE_LOCK})
        state = _state(connection)
        _refuse_foreign(target, state)
        if state.revision != head_revision():
            copy = _copy_aside(target, state.revision)
            _migrate(connection)
            _check_foreign_keys(target, connection)
        if state.digest != snapshot_digest():
            _load_snapshot(connection)
    is_old_server = not target.is_sqlite and state.revision not in (None, head_revision())
    return UpgradeReport(
        label=target.label,
        from_revision=state.revision,
        to_revision=head_revision(),
        backup=copy,
        note="no backup was made: on PostgreSQL, pg_dump is the way" if is_old_server else None,
    )


def _make_folder(target: Target) -> None:
    if target.path is None:
        return
    if target.is_opened_read_only and not target.path.exists():
        raise StoreError(
            f"database {target.label}: does not exist, and mode=ro makes none; leave that out of its URL"
        )
    folder = target.path.absolute().parent
    with file_errors(target):
        if (
            not folder.exists() and folder != _default_folder()
        ):  # a slip in an address leaves no folders behind
            raise StoreError(f"database {target.label}: its folder does not exist; create {folder} first")
        folder.mkdir(parents=True, exist_ok=True)
    if target.is_read_only:
        raise StoreError(
            f"database {target.label}: is read-only; make the file and its folder writable, or set "
            "BREAKEVEN_DATABASE_URL to another"
        )


def _default_folder() -> Path:
    """Return the folder of the user's data, the only one that is made unasked."""
    path = find_target(default_database_url()).path
    assert path is not None
    return path.absolute().parent


def _state(connection: Connection) -> _State:
    listed = connection.execute(text(_LIST_TABLES[connection.dialect.name])).scalars()
    tables = frozenset(str(name) for name in listed)
    revision = digest = None
    if "alembic_version" in tables:
        revision = connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
    if "store_value" in tables:
        digest = connection.execute(text("SELECT value FROM store_value WHERE name = 'snapshot'")).scalar()
    return _State(tables, revision, digest)


def _refuse_foreign(target: Target, state: _State) -> None:
    """Raise where the database is of another program, or of a version to come."""
    if state.revision is None and state.tables - {"alembic_version"}:
        raise StoreError(
            f"database {target.label}: belongs to another program; set BREAKEVEN_DATABASE_URL to another"
        )
    if state.revision is not None and state.revision not in known_revisions():
        raise StoreError(
            f"database {target.label}: is at revision {state.revision}, newer than this breakeven knows "
            f"({head_revision()}); upgrade breakeven, or set BREAKEVEN_DATABASE_URL to another database"
        )


def _migrate(connection: Connection) -> None:
    from alembic import command
    from alembic.config import Config

    with as_file(files("migrations")) as folder:
        config = Config()
        config.set_main_option("script_location", str(folder).replace("%", "%%"))
        config.attributes["connection"] = connection
        command.upgrade(config, "head")


def _check_foreign_keys(target: Target, connection: Connection) -> None:
    if target.is_sqlite and connection.execute(text("PRAGMA foreign_key_check")).first() is not None:
        raise StoreError(
            f"database {target.label}: the upgrade would leave rows without what they refer to; it was "
            "undone, please report this with the output of `breakeven db check`"
        )


def _load_snapshot(connection: Connection) -> None:
    from pricing.storage.rows import set_value

    load(connection)
    set_value(connection, "snapshot", snapshot_digest())


def _copy_aside(target: Target, revision: str | None) -> Path | None:
    """Copy the state before an upgrade to a new file beside it; a new database has none."""
    if target.path is None or revision is None:
        return None
    number = 0
    while True:
        suffix = f".{number}" if number else ""
        copy = target.path.with_name(f"{target.path.name}.before-{head_revision()}{suffix}")
        if not copy.exists():
            with file_errors(target):
                _copy(target, copy)
            return copy
        number += 1


def _copy(target: Target, file: Path) -> None:
    """Copy to a temporary name first, so that a copy under its name is whole."""
    partial = file.with_name(f"{file.name}.partial")
    partial.unlink(missing_ok=True)
    with closing(open_sqlite(target)) as source, closing(sqlite3.connect(partial)) as copy:
        source.backup(copy)
    partial.rename(file)
