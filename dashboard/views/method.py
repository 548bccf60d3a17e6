"""Method: every assumption with its value, unit, range and source; every formula with a worked example."""

import streamlit as st

from dashboard import documents, parts
from planner.assumptions import assumptions_document


def show() -> None:
    """Draw the page."""
    frame = parts.frame()
    scenario = frame.scenario
    with frame.head, st.container(key="answer"):
        st.subheader("Every number that is assumed, and every formula.", anchor=False)
        st.markdown(
            "Nothing here is hidden: change a value with *Other assumptions* below, and every page follows. "
            f"The values are those of the owner profile **{parts.plain(scenario.owner)}**."
        )
    document = assumptions_document(
        scenario.owner, dict(scenario.set), documents.options_as_assumptions(scenario)
    )
    number, text = st.column_config.NumberColumn, st.column_config.TextColumn
    parts.table(
        [{field: row[field] for field in COLUMNS} for row in document["assumptions"]],  # type: ignore[attr-defined]
        alt="Every assumption with its value, unit, range and source.",
        columns={
            "title": text("assumption", pinned=True, width="medium"),
            "value": number("value", format="%.6g"),
            "unit": text("unit"),
            "low": number("seen from", format="%.6g"),
            "high": number("to", format="%.6g"),
            "origin": text("value from"),
            "set_by": text("changed by"),
            "source": text("source", width="large"),
            "checked": text("checked"),
        },
        key="assumption_table",
        height=640,
    )
    st.caption("An empty value is taken from a catalogue, machine by machine.")
    text_of_method = documents.methodology()
    if text_of_method is not None:
        st.divider()
        parts.document(text_of_method)


COLUMNS = ("title", "value", "unit", "low", "high", "origin", "set_by", "source", "checked")

show()
