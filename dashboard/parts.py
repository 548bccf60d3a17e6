"""
What the pages are made of: the frame with the inputs, messages, tables, charts.

Text from providers, catalogues and addresses is always shown as text (`plain`); there is no raw HTML.
"""

import logging
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import streamlit as st

from dashboard import tables
from dashboard.form.fields import with_controls, with_labels
from planner.errors import PlannerError
from pricing.errors import PricingError

if TYPE_CHECKING:
    from dashboard.charts import Drawing
    from dashboard.rows.points import Cell
    from planner.answers.figure import Figure
    from planner.answers.money import Money

log = logging.getLogger(__name__)

_MARKUP = re.compile(r"([\\`*_{}\[\]()#$~:<>|!&@])")
_LIST = re.compile(r"^(\d*)([-+.])(?= )")
_COMMAND = re.compile(r"\\`(breakeven[a-z -]*)\\`")
ROW_HEIGHT = 66  # text is wrapped in rows above 64 px, so that none of it is cut
# Shades of one blue, light enough for dark words on every one of them: the word carries the meaning.
SHADES = ("#7fc4e8", "#b5dcf0", "#dcecf5", "#eeeeee")


def plain(text: object) -> str:
    """Return a text so that Markdown shows it as it is."""
    return _LIST.sub(r"\1\\\2", _MARKUP.sub(r"\\\1", " ".join(str(text).split())))


def note(text: str) -> str:
    """Return a sentence as Markdown shows it: options by their controls, commands in backticks as code."""
    return _COMMAND.sub(r"`\1`", plain(with_controls(text)))


def wrong(error: object, *, is_of_address: bool = False) -> str:
    """Return what is wrong as Markdown shows it, options by the labels of their fields."""
    return plain(with_labels(str(error), is_of_address=is_of_address))


@contextmanager
def guarded() -> Iterator[None]:
    """Show one line in place of a traceback."""
    try:
        yield
    except (PlannerError, PricingError) as error:
        st.error(wrong(error), icon=":material/error:")
    except Exception as error:
        log.exception("the page failed")
        what = plain(f"{type(error).__name__}: {error}"[:300])
        st.error(f"This page could not be drawn ({what}). The log of the server has the details.")


def estimate_note(more: str = "") -> None:
    """Explain the mark of an estimate."""
    st.caption(f"\\* estimated, not measured. {plain(more)}")


def figures(entries: Sequence[tuple[str, str | None, str | None]], width: int = 165) -> None:
    """Show figures in a row that wraps: title with its unit, value, a word on it."""
    with st.container(horizontal=True, gap="small"):
        for title, value, word in entries:
            st.metric(title, value, word, delta_color="off", delta_arrow="off", width=width)


def recommended(rows: Sequence[Mapping[str, Any]], currency: str) -> None:
    """Show the hardware that holds a question, by kind, with its price in the currency shown."""
    if not rows:
        return
    st.subheader("Hardware that holds it", anchor=False)
    words(
        [
            {
                "kind": row["kind"],
                "machine": row["machine"],
                f"to buy [{currency}]": tables.number(row["purchase"]),
                f"to rent [{currency}/h]": tables.money(row["per_hour"]),
                "VRAM total [GB]": tables.number(row["vram"]),
                "one user* [tok/s]": tables.tokens_per_s(row["decode"]),
                "price of": row["as_of"],
                "price from": row["source"],
            }
            for row in rows
        ],
        alt="Recommended hardware by kind.",
    )
    estimate_note()


def explained(figures: "Iterable[Figure]", money: "Money", *, alt: str) -> None:
    """Show figures with formula, numbers and source as text that is wrapped, so that none of it is cut."""
    words(
        [
            {
                "figure": figure.name,
                "value": _amount(figure),
                "formula": figure.formula,
                "numbers put in": figure.numbers,
                "source": figure.source,
            }
            for figure in (each.shown_in(money) for each in figures)
        ],
        alt=alt,
    )


def _amount(figure: "Figure") -> str | None:
    """Write a figure with mark and unit; nothing where it is not known."""
    value = tables.starred(tables.significant(figure.value, 6), figure.is_estimate)
    return ("never" if figure.is_never else None) if value is None else f"{value} {figure.unit}"


def words(rows: Sequence[Mapping[str, object]], *, alt: str) -> None:
    """Show records of words as a table whose cells are wrapped; None is an empty cell."""
    import pandas as pd

    names = dict.fromkeys(name for row in rows for name in row)
    shown = [{plain(n): "" if row.get(n) is None else plain(row[n]) for n in names} for row in rows]
    # A column as narrow as its longest word may be a fraction of a pixel too narrow: its cell would scroll.
    width = {"selector": "td", "props": [("min-width", "6.5rem"), ("overflow-wrap", "anywhere")]}
    styled = pd.DataFrame(shown).style.set_table_styles([width])
    st.table(styled, hide_index=True, alt=alt)


def source_column() -> Any:
    """Return the column that links to the source of each price, by the name of its host."""
    host = r"https?://(?:www\.)?([^/]+)"
    return st.column_config.LinkColumn("source", display_text=host, width=152)


def document(text: str) -> None:
    """Show a Markdown document of ours; on a narrow screen its tables scroll and its code is wrapped."""
    import pandas as pd

    for block in tables.split_markdown(text):
        if isinstance(block, str):
            st.markdown(block)
        elif isinstance(block, tables.Code):
            st.code(block.text, language=block.language, wrap_lines=True)
        else:
            header, *rows = [[r"\-" if cell == "-" else cell for cell in row] for row in block]
            st.table(pd.DataFrame(rows, columns=header), hide_index=True)


def draw(drawing: "Drawing", *, key: str, rows: Sequence[Mapping[str, object]] = ()) -> None:
    """Show a chart, with its figures folded below it."""
    spec = drawing.to_spec(is_dark=st.context.theme.type == "dark")
    st.vega_lite_chart(spec=spec, width="stretch", alt=drawing.alt, key=key)
    if drawing.said:
        st.caption(plain(drawing.said))
    if rows:
        with st.expander("The figures as a table"):
            if drawing.more_rows:
                table(drawing.more_rows, alt=drawing.said)
            table(rows, alt=drawing.alt)


def table(
    rows: Sequence[Mapping[str, object]],
    *,
    alt: str,
    columns: Mapping[str, Any] | None = None,
    key: str | None = None,
    height: int | None = None,
    is_wrapped: bool = False,
    on_select: Callable[[Sequence[int]], None] | None = None,
    selected: Sequence[int] = (),
) -> None:
    """
    Show records as a table that can be sorted, searched and narrowed to chosen columns.

    Args:
        rows: One record each; None is shown as an empty cell.
        alt: What the table holds, in one sentence.
        columns: Titles with units and formats, by field.
        key: Of the element.
        height: In pixels; by the number of rows where None.
        is_wrapped: Whether rows are high enough for text of three lines.
        on_select: Is told the places of the chosen rows, from 0, when that changes; the key is needed.
        selected: Places of the rows that are chosen at first.
    """
    import pandas as pd

    st.dataframe(
        pd.DataFrame(list(rows)),
        hide_index=True,
        column_config=dict(columns or {}),
        width="stretch",
        height="auto" if height is None else height,
        row_height=ROW_HEIGHT if is_wrapped else None,
        placeholder="",
        alt=alt,
        key=key,
        on_select="ignore" if on_select is None else lambda: on_select(st.session_state[key].selection.rows),
        selection_mode="multi-row",
        selection_default={"selection": {"rows": list(selected)}} if selected else None,
    )


def grid(cells: "Sequence[Cell]", *, corner: str, alt: str, key: str) -> None:
    """
    Show words in a grid, shaded by how good they are; on a narrow screen it scrolls beside the row's name.

    Args:
        cells: In any order of rows and columns.
        corner: Title of the column of names.
        alt: What the grid says, in one sentence.
        key: Of the element.
    """
    import pandas as pd

    rows, columns = (
        list(dict.fromkeys(names)) for names in zip(*((c.row, c.column) for c in cells), strict=True)
    )
    words = pd.DataFrame("", index=rows, columns=columns)
    styles = words.copy()
    for cell in cells:
        words.loc[cell.row, cell.column] = cell.word
        styles.loc[cell.row, cell.column] = f"background-color: {SHADES[cell.level]}; color: #1a1a1a"
    for frame in (words, styles):
        frame.insert(0, corner, rows if frame is words else "")
    shown = words.style.apply(lambda _: styles, axis=None)
    text = st.column_config.TextColumn
    st.dataframe(
        shown,
        hide_index=True,
        column_config={corner: text(pinned=True, width=180)},
        width="stretch",
        height="content",
        alt=alt,
        key=key,
    )
