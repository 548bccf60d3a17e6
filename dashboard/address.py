"""
The address of the browser and the session kept alike: the address is the state of every page.

It is read when a session begins and when the browser goes back or forward, and written once the inputs are
known. Streamlit could bind each widget to the query itself; it then forgets those that stand elsewhere on the
next page, so that a copied link would give another answer. Here one place writes the whole query.
"""

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlencode, urlsplit, urlunsplit

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from dashboard import state
from planner.scenario import DEFAULT_MODEL, Scenario

_LAST = "_last_question"
_ASKED = "_asked"
_COMPLAINTS = "_complaints"
_READS = "_reads"


def read(page: str) -> None:
    """
    Give the widgets what the address says, where the address is newer than they are.

    Args:
        page: Name of the page; its filters are read too.
    """
    session = st.session_state
    if _ASKED in session and not went_through_history():
        return
    params = {name: st.query_params.get_all(name) for name in st.query_params}
    scenario, said = state.read_address(params)
    held, more = state.read_page_keys(params, page)
    _take(scenario, held, [*said, *more])


def ask(scenario: Scenario, page: str) -> None:
    """Give the widgets another question, with the filters of the page at rest; the address follows."""
    held, _ = state.read_page_keys({}, page)
    _take(scenario, held, [])


def _take(scenario: Scenario, held: Mapping[str, Any], complaints: Sequence[str]) -> None:
    session = st.session_state
    for name, field in state.FIELDS.items():
        session[name] = field.as_widget_value(getattr(scenario, name))
    for name, value in held.items():
        session[name] = value
    session[_ASKED], session[_COMPLAINTS], session[_READS] = scenario, complaints, times_read() + 1


def went_through_history() -> bool:
    """
    Whether this run shows an address that the browser went back or forward to.

    Streamlit has no public name for it. Comparing the address with the one written last would not do: between
    two quick changes the browser still sends the one before. A test notices when the attribute is gone.
    """
    context = get_script_run_ctx()
    return context is not None and bool(context.is_history_navigation)


def times_read() -> int:
    """Return how often the address was read: what keeps a choice of its own begins anew with each."""
    return int(st.session_state.get(_READS, 0))


def write(scenario: Scenario, page: str) -> None:
    """Write the question and the filters of a page into the address, where it says something else."""
    st.session_state[_LAST] = scenario
    wanted = of_page(scenario, page)
    if {name: st.query_params.get_all(name) for name in st.query_params} != wanted:
        st.query_params.from_dict(wanted)


def of_page(scenario: Scenario, page: str) -> dict[str, list[str]]:
    """Return the query of a question on one of the pages."""
    held: dict[str, Any] = {name: st.session_state[name] for name in _held(page)}
    return state.as_address(scenario, page, held)


def link(scenario: Scenario, page: str) -> str:
    """
    Return the address of a question for somebody else: on this server, as the reader reaches it.

    Without the host where the browser does not say it.
    """
    here = urlsplit(st.context.url or f"/{page}")
    query = urlencode(of_page(scenario, page), doseq=True)
    return urlunsplit((here.scheme, here.netloc, here.path or "/", query, ""))


def last() -> Scenario:
    """Return the last question that could be asked."""
    return st.session_state.get(_LAST) or Scenario(model=DEFAULT_MODEL)


def complaints(scenario: Scenario) -> Sequence[str]:
    """Return what of the address could not be used, until the first change of the question."""
    session = st.session_state
    return session[_COMPLAINTS] if scenario == session[_ASKED] else ()


def _held(page: str) -> list[str]:
    return [name for name in state.PAGE_KEYS.get(page, {}) if name in st.session_state]
