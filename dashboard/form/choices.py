"""Choices of a page that its address holds: filters and tabs."""

from collections.abc import Callable, Mapping, Sequence

import streamlit as st

from dashboard import state
from dashboard.parts import plain


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
