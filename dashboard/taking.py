"""Take what a table shows away as a file, with the address of the page, the time and the sources on top."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

import streamlit as st

from dashboard import address, data, frame
from dashboard.documents import DOWNLOADS
from planner.answers.money import Money
from planner.exports.documents import ESTIMATE_NOTE
from planner.exports.listing import LISTING_FORMATS, Rows, about

METHODOLOGY = ("docs/methodology.md",)  # sources of rows that are reckoned here


def offer(
    rows: Sequence[Mapping[str, Any]],
    columns: Mapping[str, Any],
    *,
    title: str,
    sources: Sequence[str] = (),
    money: Money | None = None,
) -> None:
    """
    Draw a menu of files that hold these rows as they are shown.

    Args:
        rows: One record each.
        columns: The columns of the table by field: those that are hidden are left out, titles have units.
        title: What the rows are.
        sources: Where the figures come from; the hosts that the rows name where none are given.
        money: In which currency amounts are, where there are any; its rate is noted.
    """
    shown = as_shown(rows, columns)
    if not shown:
        return
    named = sources or [host for row in rows if (host := urlsplit(str(row.get("source") or "")).netloc)]
    drawn = frame.current()
    permalink = address.link(drawn.scenario, drawn.page)
    notes = [
        ESTIMATE_NOTE if any("*" in key for key in shown[0]) else "figures are as their sources state them"
    ]
    if money is not None and money.rate_text is not None:
        notes.append(money.rate_text)
    file = re.sub(r"[^a-z0-9.]+", "-", title.lower()).strip("-")

    def written(name: str) -> Callable[[], bytes]:
        def write() -> bytes:
            return LISTING_FORMATS[name](shown, about(title, permalink, data.now(), named, *notes))

        return write

    with st.popover("Download", icon=":material/download:"):
        for name in LISTING_FORMATS:
            label, mime = DOWNLOADS[name]
            st.download_button(
                label,
                data=written(name),
                file_name=f"{file}.{name}",
                mime=mime,
                key=f"take_{file}_{name}",
                on_click="ignore",
            )


def as_shown(rows: Sequence[Mapping[str, Any]], columns: Mapping[str, Any]) -> Rows:
    """Return rows under the titles of their columns, without those that are hidden."""
    fields = dict.fromkeys(field for row in rows for field in row)
    titles = {field: _title(field, columns[field]) if field in columns else field for field in fields}
    return [{title: row.get(field) for field, title in titles.items() if title is not None} for row in rows]


def _title(field: str, column: Any) -> str | None:
    """Return the title of a column, None where it is hidden."""
    if column is None:
        return None
    return str(column) if isinstance(column, str) else str(column.get("label") or field)
