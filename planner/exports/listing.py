"""Any table of a page as a file - CSV, Excel, JSON, Markdown - with what it is on top."""

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime
from typing import Any

from planner.export import LICENCE_NOTE, csv_bytes, version_text
from planner.exports.documents import Lines, plain
from planner.exports.table import Column, Table, xlsx_bytes

LISTING_SCHEMA = "breakeven.listing/1"

Rows = Sequence[Mapping[str, Any]]


def about(title: str, permalink: str, time: datetime, sources: Sequence[str], *more: str) -> Lines:
    """
    Return what stands on top of a listing: name and text of each line.

    Args:
        title: What it lists.
        permalink: Address of the page that shows it.
        time: As of when.
        sources: Where its figures come from.
        more: Further remarks.
    """
    return [
        ("listing", title),
        ("permalink", permalink),
        ("as of", time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")),
        ("sources", ", ".join(dict.fromkeys(sources)) or "none"),
        ("version", version_text()),
        ("licence", LICENCE_NOTE),
        *(("note", note) for note in more),
    ]


def to_csv(rows: Rows, lines: Lines) -> bytes:
    """Return rows as CSV; the lines on top start with `#`."""
    names = _names(rows)
    top = [f"# {name}: {text}" for name, text in lines]
    return csv_bytes(top, names, [[_cell(row.get(name)) for name in names] for row in rows])


def to_xlsx(rows: Rows, lines: Lines) -> bytes:
    """Return rows as a workbook."""
    names = _names(rows)
    table = Table(
        columns=[Column(name, str) for name in names],
        rows=[[_cell(row.get(name)) for name in names] for row in rows],
    )
    time = datetime.fromisoformat(dict(lines)["as of"])
    return xlsx_bytes({"Listing": (lines, table)}, time)


def to_json(rows: Rows, lines: Lines) -> bytes:
    """Return rows as `breakeven.listing/1`; unknown is null."""
    listed = [{name: _plain_value(value) for name, value in row.items()} for row in rows]
    top = [{"name": name, "text": text} for name, text in lines]
    document = {"schema": LISTING_SCHEMA, "about": top, "rows": listed}
    return (json.dumps(document, indent=1, ensure_ascii=False) + "\n").encode()


def to_markdown(rows: Rows, lines: Lines) -> bytes:
    """Return rows as a Markdown table, and what it is below it."""
    names = _names(rows)
    text = [f"# {plain(dict(lines)['listing'])}", ""]
    text += [f"| {' | '.join(plain(name) for name in names)} |", f"|{'|'.join('---' for _ in names)}|"]
    for row in rows:
        cells = [_cell(row.get(name)) for name in names]
        text.append(f"| {' | '.join('' if cell is None else plain(str(cell)) for cell in cells)} |")
    text += ["", "## About", "", *(f"- {name}: {plain(value)}" for name, value in lines[1:])]
    return ("\n".join(text) + "\n").encode()


LISTING_FORMATS: Mapping[str, Callable[[Rows, Lines], bytes]] = {
    "csv": to_csv,
    "xlsx": to_xlsx,
    "json": to_json,
    "md": to_markdown,
}


def _names(rows: Rows) -> list[str]:
    return list(dict.fromkeys(name for row in rows for name in row))


def _plain_value(value: Any) -> Any:
    """Return a value as JSON holds it."""
    if isinstance(value, datetime):
        return value.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, list | tuple):
        return [_plain_value(each) for each in value]
    return value if value is None or isinstance(value, bool | int | float) else str(value)


def _cell(value: Any) -> Any:
    """Return a value as one cell holds it."""
    plain_value = _plain_value(value)
    return " ".join(str(each) for each in plain_value) if isinstance(plain_value, list) else plain_value
