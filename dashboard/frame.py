"""The frame of every page: the ways to the others, its one sentence, the inputs, messages."""

from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import streamlit as st

from dashboard import address, data, state
from dashboard.form.inputs import draw_inputs
from dashboard.parts import plain, wrong
from planner.errors import PlannerError
from planner.scenario import Scenario

if TYPE_CHECKING:
    from streamlit.delta_generator import DeltaGenerator

    from planner.answers.money import Money


@dataclass(frozen=True, slots=True)
class Frame:
    """What every page is given: its name, the place of its one sentence, and the question."""

    page: str
    head: "DeltaGenerator"
    scenario: Scenario
    money: "Money"  # in the currency that is shown


_frame: ContextVar[Frame] = ContextVar("frame")


def current() -> Frame:
    """Return the frame of the page that is being drawn."""
    return _frame.get()


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
        draw_inputs(open_fields)
    try:
        scenario = state.from_widgets(session)
    except PlannerError as error:
        _draw_ways(ways, pages, address.last())
        head.error(wrong(error), icon=":material/error:")
        st.stop()
    complaints = address.complaints(scenario)
    scenario, said = data.with_known_regions(scenario)
    for complaint in said:
        messages.warning(wrong(complaint), icon=":material/warning:")
    _draw_ways(ways, pages, scenario)
    address.write(scenario, page)
    for complaint in complaints:
        messages.warning(
            f"In the address: {wrong(complaint, is_of_address=True)}", icon=":material/link_off:"
        )
    money = data.money(scenario)
    if money.rate_text is not None:
        messages.caption(plain(money.rate_text))
    made = Frame(page, head, scenario, money)
    _frame.set(made)
    return made


def _draw_ways(place: "DeltaGenerator", pages: Mapping[str, Any], scenario: Scenario) -> None:
    """Draw the links between the pages; each takes the question along."""
    with place:
        for name, page in pages.items():
            st.page_link(page, query_params=address.of_page(scenario, name))
