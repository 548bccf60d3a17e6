"""
What the pages are made of: the frame with the inputs, messages, tables, charts.

Text from providers, catalogues and addresses is always shown as text (`plain`); there is no raw HTML.
"""

import logging
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import streamlit as st

from dashboard import address, state, tables
from dashboard.fields import with_controls
from dashboard.state import FIRST_DAY, LAST_DAY, Field, Kind
from planner.errors import PlannerError
from planner.scenario import Scenario
from pricing.errors import PricingError

if TYPE_CHECKING:
    from streamlit.delta_generator import DeltaGenerator

    from dashboard.charts import Drawing
    from dashboard.points import Cell

log = logging.getLogger(__name__)

_MARKUP = re.compile(r"([\\`*_{}\[\]()#$~:<>|!&@])")
_COMMAND = re.compile(r"\\`(breakeven[a-z -]*)\\`")
# Shades of one blue, light enough for dark words on every one of them: the word carries the meaning.
SHADES = ("#7fc4e8", "#b5dcf0", "#dcecf5", "#eeeeee")


@dataclass(frozen=True, slots=True)
class Frame:
    """What every page is given: the place of its one sentence, and the question."""

    head: "DeltaGenerator"
    scenario: Scenario


_frame: ContextVar[Frame] = ContextVar("frame")


def frame() -> Frame:
    """Return the frame of the page that is being drawn."""
    return _frame.get()


def plain(text: object) -> str:
    """Return a text so that Markdown shows it as it is."""
    return _MARKUP.sub(r"\\\1", " ".join(str(text).split()))


def note(text: str) -> str:
    """Return a sentence as Markdown shows it: options by their controls, commands in backticks as code."""
    return _COMMAND.sub(r"`\1`", plain(with_controls(text)))


def open_frame(page: str, open_fields: Sequence[str], pages: Mapping[str, Any]) -> Frame:
    """
    Draw the way to the other pages and the inputs, and read the question; stop where it cannot be asked.

    Every field is drawn on every page, most of them folded: the question is the same everywhere.

    Args:
        page: Name of the page.
        open_fields: Names of the fields that are not folded on this page.
        pages: All pages by name.
    """
    ways = st.container(horizontal=True, gap="small", key="pages")
    head, messages = st.container(), st.container()  # the sentence first, whatever else there is to say
    session = st.session_state
    address.read(page)
    with st.container(key="inputs"):
        _draw_inputs(open_fields)
    try:
        scenario = state.from_widgets(session)
    except PlannerError as error:
        _draw_ways(ways, pages, address.last())
        head.error(plain(error), icon=":material/error:")
        st.stop()
    _draw_ways(ways, pages, scenario)
    address.write(scenario, page)
    for complaint in address.complaints(scenario):
        messages.warning(f"In the address: {plain(complaint)}", icon=":material/link_off:")
    made = Frame(head, scenario)
    _frame.set(made)
    return made


def _draw_ways(place: "DeltaGenerator", pages: Mapping[str, Any], scenario: Scenario) -> None:
    """Draw the links between the pages; each takes the question along."""
    with place:
        for name, page in pages.items():
            st.page_link(page, query_params=address.of_page(scenario, name))


@contextmanager
def guarded() -> Iterator[None]:
    """Show one line in place of a traceback."""
    try:
        yield
    except (PlannerError, PricingError) as error:
        st.error(plain(error), icon=":material/error:")
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


def recommended(rows: Sequence[Mapping[str, object]]) -> None:
    """Show the hardware that holds a question, by kind."""
    if not rows:
        return
    st.subheader("Hardware that holds it", anchor=False)
    number = st.column_config.NumberColumn
    table(
        rows,
        alt="Recommended hardware by kind.",
        columns={
            "usd": number("to buy [USD]", format="accounting"),
            "usd_per_hour": "to rent [USD/h]",
            "vram": number("VRAM total [GB]", format="%.0f"),
            "decode": number("one user* [tok/s]", format="%.1f"),
            "as_of": "price of",
            "source": st.column_config.TextColumn("price from", width="large"),
        },
        key="recommended",
    )
    estimate_note()


def choose_any(key: str, label: str, options: Sequence[str], *, placeholder: str, width: int) -> list[str]:
    """
    Let a person choose any of a list; the choice is a filter of the page, kept in its address.

    What the address names and the list does not hold is dropped, and said.
    """
    session = st.session_state
    unknown = [value for value in session.get(key) or () if value not in options]
    if unknown:
        session[key] = [value for value in session[key] if value in options]
    with st.container(width=width, gap=None):
        chosen = st.multiselect(
            label, options, key=key, persist_state="session", placeholder=placeholder, width="stretch"
        )
        if unknown:
            st.caption(f"In the address: {plain(', '.join(unknown))} is not there, ignored.")
    return chosen


def choose_one(key: str, label: str, options: Sequence[str], default: str, *, width: int) -> str:
    """Let a person choose one of a list, as `choose_any` does."""
    session = st.session_state
    held = session.get(key)
    if held not in options:
        session[key] = default
    with st.container(width=width, gap=None):
        chosen = st.selectbox(label, options, key=key, persist_state="session", width="stretch")
        if held not in (None, state.DEFAULT_GPU, *options):
            st.caption(f"In the address: {plain(held)} is not there, {plain(default)} is shown.")
    return chosen or default


def tabs(key: str, bodies: Mapping[str, Callable[[], None]]) -> None:
    """
    Draw tabs, of which only the open one is filled; which one it is stands in the address.

    Args:
        key: Of the address; it holds the title in small letters, words joined by dashes.
        bodies: What fills each tab, by its title.
    """
    session, widget = st.session_state, f"{key}_widget"
    by_slug = {slug(title): title for title in bodies}
    first = next(iter(by_slug))
    held = session.get(key, first)
    if held not in by_slug:
        st.caption(f"In the address: {plain(held)} is no tab, {plain(by_slug[first])} is shown.")
    session[key] = held if held in by_slug else first
    session[widget] = by_slug[session[key]]

    def opened() -> None:
        session[key] = slug(session[widget])

    for tab, body in zip(st.tabs(list(bodies), key=widget, on_change=opened), bodies.values(), strict=True):
        if tab.open:
            with tab:
                body()


def slug(title: str) -> str:
    """Return a title as an address holds it."""
    return title.lower().replace(" ", "-")


def source_column() -> Any:
    """Return the column that links to the source of each price, by the name of its host."""
    host = r"https?://(?:www\.)?([^/]+)"
    return st.column_config.LinkColumn("source", display_text=host, width=130)


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


def links(entries: Iterable[tuple[str, str]]) -> None:
    """Show links in a row; only http and addresses of this server are linked."""
    shown = [f"[{plain(text)}]({address})" for text, address in entries if is_safe_address(address)]
    st.markdown(" · ".join(shown))


def is_safe_address(address: str) -> bool:
    """Whether a text may become a link."""
    return bool(re.fullmatch(r"(https?://|\./)[^\s()<>\"]*", address))


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


def _draw_inputs(open_fields: Sequence[str]) -> None:
    if open_fields:
        with st.container(horizontal=True, vertical_alignment="top", gap="small"):
            for name in open_fields:
                _widget(state.FIELDS[name], width=_WIDTHS.get(name, 165))
    label = "More assumptions" if open_fields else "The question: model, use, owning, prices"
    with st.expander(label, key="assumptions"):
        for title, fields in state.GROUPS.items():
            folded = [field for field in fields if field.name not in open_fields]
            if folded:
                st.markdown(f"**{title}**")
                with st.container(horizontal=True, gap="medium"):
                    for field in folded:
                        _widget(field, width=_WIDTHS.get(field.name, 220))


# Two to a row on a narrow screen, five on a wide one.
_WIDTHS = {"model": 280, "hours_per_day": 280, "set": 460, "own": 220, "provider": 300, "tier": 300}


def _widget(field: Field, *, width: int) -> None:
    """Draw one field; its key is its name in the address."""
    shared: dict[str, Any] = {
        "key": field.name,
        "help": plain(field.help) or None,
        "width": width,
    }
    match field.kind:
        case Kind.CHOICE:
            options = list(field.options())
            index = None if field.default is None else options.index(field.default)
            st.selectbox(
                field.label,
                options,
                index=index,
                placeholder="any",
                accept_new_options=field.accepts_new,
                **shared,
            )
        case Kind.MANY:
            st.multiselect(
                field.label,
                list(field.options()),
                accept_new_options=field.accepts_new,
                placeholder="all" if field.name != "set" else "NAME=VALUE",
                **shared,
            )
        case Kind.DAY:
            st.date_input(field.label, None, FIRST_DAY, LAST_DAY, format="YYYY-MM-DD", **shared)
        case Kind.TEXT:
            st.text_input(field.label, value=None, **shared)
        case Kind.SLIDER:
            st.slider(
                field.label, field.low, field.high, field.default, field.step, format=field.format, **shared
            )
        case Kind.NUMBER | Kind.COUNT:
            as_kind = int if field.kind is Kind.COUNT else float
            low, high, step = (None if x is None else as_kind(x) for x in (field.low, field.high, field.step))
            st.number_input(
                field.label,
                low,
                high,
                field.default,
                step,
                format=field.format,
                placeholder=field.placeholder,
                **shared,
            )
