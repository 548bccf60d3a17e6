"""`db`: where the database is, and that it is whole and up to date."""

import argparse
from pathlib import Path

from dashboard import tables
from dashboard.commands.base import DONE, NOTHING_DONE, Commands, Context, Output

SCHEMA = "breakeven.db/1"


def register(commands: Commands) -> None:
    """Add `db` and what stands under it."""
    group = commands.group("db", help="look after the database", example="breakeven db check")
    group.add(
        "upgrade",
        upgrade,
        help="bring the database to this version",
        example="breakeven db upgrade",
        more="An older one is first copied to a backup beside it. The bundled prices are loaded once.",
    )
    group.add(
        "check", check, help="whether the database is whole and up to date", example="breakeven db check"
    )
    group.add("path", path, help="where the database is", example="breakeven db path")
    copy = group.add(
        "backup", backup, help="make a consistent copy", example="breakeven db backup prices-2026-11-30.db"
    )
    copy.add_argument("file", metavar="FILE", help="the copy; it must not exist yet")


def upgrade(arguments: argparse.Namespace, context: Context) -> Output:
    """Upgrade the database and say what changed."""
    del arguments
    from pricing.storage import database

    report = database.upgrade(_url(context))
    what = "is up to date" if not report.changed else f"is now at revision {report.to_revision}"
    lines = [f"database {report.label} {what}"]
    if report.backup is not None:
        lines.append(f"the state before is kept in {report.backup}")
    document = {
        "schema": SCHEMA,
        "database": report.label,
        "from_revision": report.from_revision,
        "to_revision": report.to_revision,
        "changed": report.changed,
        "backup": None if report.backup is None else str(report.backup),
    }
    notes = () if report.note is None else (report.note,)
    return Output(document=document, text="\n".join(lines), warnings=notes)


def check(arguments: argparse.Namespace, context: Context) -> Output:
    """Look the database over without changing it."""
    del arguments
    from pricing.storage import database

    report = database.check(_url(context))
    rows = [
        ("database", report.label),
        ("revision", f"{report.revision or 'none'} of {report.head}"),
        ("integrity", report.integrity),
        ("broken references", report.foreign_key_errors),
        ("bundled prices", "loaded" if report.snapshot_is_current else "not loaded yet"),
        ("read-only", tables.yes_no(report.is_read_only)),
        *((f"rows of {name}", tables.number(count)) for name, count in report.counts.items()),
    ]
    problem = (
        ""
        if report.is_ok
        else "the database needs attention: run `breakeven db upgrade`, or restore a backup"
    )
    return Output(
        document={**report.to_document(), "schema": SCHEMA},
        text=tables.pairs(rows),
        warnings=(problem,) if problem else (),
        exit_code=DONE if report.is_ok else NOTHING_DONE,
    )


def path(arguments: argparse.Namespace, context: Context) -> Output:
    """Say where the database is."""
    del arguments
    from pricing.storage import database

    where = database.location(_url(context))
    return Output(document={"schema": SCHEMA, "database": where}, text=where)


def backup(arguments: argparse.Namespace, context: Context) -> Output:
    """Copy the database."""
    from pricing.storage import database

    file = Path(arguments.file)
    where = database.location(_url(context))
    database.backup(_url(context), file)
    return Output(
        document={"schema": SCHEMA, "database": where, "backup": str(file)},
        text=f"database {where} copied to {file}",
    )


def _url(context: Context) -> str:
    from pricing.settings import Settings

    return Settings.from_environ(context.environ).database_url
