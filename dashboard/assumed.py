"""
Assumptions as a table: value, range, source, and beside each a small chart of what it does to the answer.

A value is changed in its cell; it then stands in the address as with `--set` or the option of its own.
"""

from collections.abc import Mapping, MutableMapping, Sequence
from typing import Any

import streamlit as st

from dashboard import data, parts, state, what_if
from dashboard.form.field import most_of, setting_text
from dashboard.form.fields import FIELDS
from dashboard.form.typed import typed_number
from dashboard.what_if import Influence
from planner.assumptions import all_assumptions
from planner.errors import PlannerError
from planner.scenario import Scenario

NOW = "now"
_TURN, _REFUSED, _CHANGED = "_assumed_turn", "_assumed_refused", "_assumed_changed"
_ANEW = "_planned_anew"


def row(each: Influence) -> dict[str, Any]:
    """Return what one assumption does as a row of the table."""
    curve = each.gaps if len(each.gaps) > 2 else (each.gaps[0], each.gap_here, each.gaps[-1])
    return {
        "assumption": each.title,
        NOW: each.here,
        "effect": list(curve),
        "moves": each.swing,
        "turns": "yes" if each.flips else None,
        "low": each.values[0],
        "high": each.values[-1],
        "unit": each.unit,
        "source": each.source,
    }


def table(
    rows: Sequence[Mapping[str, Any]], names: Sequence[str], currency: str, *, alt: str, key: str
) -> None:
    """
    Show assumptions with their effects; the column of values can be changed.

    Args:
        rows: As `row` returns them, perhaps with more columns.
        names: The assumption of each row.
        currency: In which effects are shown.
        alt: What the table holds, in one sentence.
        key: Of the element.
    """
    import pandas as pd

    session = st.session_state
    turn = f"{key}_{session.get(_TURN, 0)}"  # another table after a change: its rows may stand elsewhere
    frame = pd.DataFrame([{**row, NOW: None if row[NOW] is None else f"{row[NOW]:.10g}"} for row in rows])
    st.data_editor(
        frame,
        hide_index=True,
        disabled=[column for column in frame.columns if column != NOW],
        column_config=_columns(currency),
        width="stretch",
        height="content" if len(rows) <= 12 else 640,
        row_height=parts.ROW_HEIGHT,
        key=turn,
        on_change=lambda: _take(session, turn, names),
        placeholder="",
        alt=alt,
    )
    refused = session.pop(_REFUSED, None)
    if refused:
        st.warning(parts.wrong(refused))


def others(scenario: Scenario) -> list[Influence]:
    """Return what the assumptions beyond those at hand do, once that is asked for: it takes some seconds."""
    session, question = st.session_state, data.question_key(scenario)
    if session.get(_ANEW, (None,))[0] != question:
        if not st.button("Work out the others too", key="by_influence", icon=":material/sort:"):
            return []
        bar = st.progress(0.0, "Planning at both ends of every other range; any other click stops it")
        session[_ANEW] = question, what_if.planned_anew(scenario, bar.progress)
        bar.empty()
    found: list[Influence] = session[_ANEW][1]
    if not found:
        st.info("No other assumption moves the answer.")
    return found


def _columns(currency: str) -> dict[str, Any]:
    number, text = st.column_config.NumberColumn, st.column_config.TextColumn
    return {
        "assumption": text(pinned=True, width=205),
        # As text: a cell for numbers drops a decimal comma, and makes 35 of 0,35.
        NOW: text("value", width=85, alignment="right", help="Type another; empty is the default"),
        "effect": st.column_config.LineChartColumn(
            "effect",
            width=110,
            help=f"What owning costs more than renting [{currency}/month], from the low to the high end",
        ),
        "moves": number(f"moves* [{currency}/month]", format="localized", width=140, step=1),
        "turns": text("turns it", width=75, help="Whether the other way becomes cheaper within the range"),
        "low": number("seen from", format="%.6g", width=80),
        "high": number("to", format="%.6g", width=80),
        "unit": text("unit", width=100),
        "source": text("source", width="large"),
        "origin": text("value from", width=90),
        "set_by": text("as an option", width=180),
        "checked": text("checked", width=90),
    }


def _take(session: MutableMapping[Any, Any], key: str, names: Sequence[str]) -> None:
    """Take over what was typed into the table, or say why not."""
    for place, cells in session[key]["edited_rows"].items():
        if NOW not in cells:
            continue
        name, typed = names[int(place)], cells[NOW]
        try:
            title = all_assumptions()[name].title if name in all_assumptions() else name
            most = FIELDS[name].most if name in FIELDS else most_of(name)
            value = None if typed in (None, "") else typed_number(title, typed, "a number", most=most)
            refused = change(session, name, value)
        except PlannerError as error:
            refused = str(error)
        if refused:
            session[_REFUSED] = refused
    session[_TURN] = session.get(_TURN, 0) + 1
    session[_CHANGED] = True


def was_changed() -> bool:
    """Whether a value was changed since this was last asked: what is drawn by itself has to draw all anew."""
    return bool(st.session_state.pop(_CHANGED, False))


def change(session: MutableMapping[Any, Any], name: str, value: float | None) -> str | None:
    """
    Give one assumption another value, or its default where that is None, in what the widgets hold.

    Returns:
        Why it cannot be done; nothing is changed then.
    """
    record = all_assumptions().get(name)
    if record is None:
        return f"{name.replace('_', ' ')} is what sources spread over, not a value: --set has no name for it"
    if record.option is not None:
        field = FIELDS[name]
        if name == what_if.HOURS and state.profile_hours(session) is not None:
            return f"{field.label}: {FIELDS['load_profile'].label!r} has hours of its own; change them there"
        taken = None if value is None else field.as_widget_value(state.clamped(field, float(value)))
        wanted = {name: field.default if taken is None else taken}
    else:
        held = dict(item.partition("=")[::2] for item in session.get("set") or ())
        held.pop(name, None)
        if value is not None:
            held[name] = setting_text(name, value)
        wanted = {"set": [f"{key}={text}" for key, text in held.items()]}
    try:
        state.from_widgets({**{key: session[key] for key in FIELDS if key in session}, **wanted})
    except PlannerError as error:
        return str(error)
    session.update(wanted)
    return None
