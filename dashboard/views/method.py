"""Method: every assumption with value, range, source and effect; every formula with a worked example."""

from typing import Any

import streamlit as st

from dashboard import assumed, data, documents, frame, parts, what_if
from planner.assumptions import assumptions_document
from planner.scenario import Scenario


def show() -> None:
    """Draw the page."""
    drawn = frame.current()
    scenario = drawn.scenario
    with drawn.head, st.container(key="answer"):
        st.subheader("Every number that is assumed, and every formula.", anchor=False)
        st.markdown(
            "Nothing here is hidden. Type another value into the table, and every page follows. "
            f"The values are those of the owner profile **{parts.plain(scenario.owner)}**."
        )
    with st.container(key="assumptions_by_influence"):
        _assumptions(scenario)
    text_of_method = documents.methodology()
    if text_of_method is not None:
        st.divider()
        parts.document(text_of_method)


def _assumptions(scenario: Scenario) -> None:
    """Show every assumption, those that move the answer most first."""
    place, more = st.container(), st.container()
    known = what_if.at_hand(data.plan(scenario))
    with more:
        known = [*known, *(assumed.others(scenario) if known else ())]
    effects = {each.name: assumed.row(each) for each in known}
    swings = {each.name: each.swing for each in known}
    rows = sorted(_records(scenario), key=lambda row: -swings.get(row["name"], 0.0))
    with place:
        assumed.table(
            [effects.get(row["name"], _without_effect(row)) | _fields(row) for row in rows],
            [row["name"] for row in rows],
            scenario.currency,
            alt="Every assumption with value, range, source and effect, the strongest first.",
            key="assumption_table",
        )
        st.caption(
            "An empty value is taken from a catalogue, machine by machine. An effect is empty where the "
            "assumption does not count between these two machines, or needs plans of its own."
        )


def _records(scenario: Scenario) -> list[dict[str, Any]]:
    given = documents.options_as_assumptions(scenario)
    records: list[dict[str, Any]] = assumptions_document(scenario.owner, dict(scenario.set), given)[
        "assumptions"
    ]  # type: ignore[assignment]
    return records


def _without_effect(row: dict[str, Any]) -> dict[str, Any]:
    return {
        "assumption": row["title"],
        assumed.NOW: row["value"],
        "effect": None,
        "moves": None,
        "turns": None,
    }


def _fields(row: dict[str, Any]) -> dict[str, Any]:
    return {name: row[name] for name in ("low", "high", "unit", "source", "origin", "set_by", "checked")}


show()
