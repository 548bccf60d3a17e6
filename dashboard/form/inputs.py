"""The inputs as widgets: those of the page open, all others folded."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import streamlit as st

from dashboard import state
from dashboard.parts import plain
from dashboard.state import FIRST_DAY, LAST_DAY, Field, Kind
from planner.errors import PlannerError

# Two to a row on a narrow screen, five on a wide one.
_WIDTHS = {"model": 280, "hours_per_day": 280, "set": 460, "own": 220, "provider": 300, "tier": 300}


def draw_inputs(open_fields: Sequence[str]) -> None:
    """Draw every input; those that are not open on the page are folded, by group."""
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
            _slider(field, **shared)
        case Kind.NUMBER | Kind.COUNT:
            st.text_input(
                field.label,
                value=field.default,
                placeholder=field.placeholder or field.default or "not set",
                on_change=_tidy,
                args=(field,),
                **shared,
            )


def _slider(field: Field, **shared: Any) -> None:
    """Draw the hours of use; with a load of the day they are its own, and stand there to be read only."""
    session, hours = st.session_state, state.profile_hours(st.session_state)
    of_profile = f"{field.name}_of_profile"
    if hours is not None:
        session[field.name] = session.get(field.name, field.default)  # stays, though its widget is not drawn
        session[of_profile] = hours
        shared["key"] = of_profile
        shared["help"] = (
            f'The hours with load of "{state.FIELDS["load_profile"].label}", which count in place.'
        )
    elif session.pop(of_profile, None) is not None:
        session[field.name] = session[field.name]  # the browser begins the slider anew, and has to be told
    st.slider(
        field.label,
        field.low,
        field.high,
        field.default,
        field.step,
        format=field.format,
        disabled=hours is not None,
        **shared,
    )


def _tidy(field: Field) -> None:
    """Write a number as it was read; what cannot be read stays, and the page says so."""
    held = st.session_state[field.name]
    if held:
        with suppress(PlannerError):
            st.session_state[field.name] = field.as_widget_value(field.as_scenario_value(held))
