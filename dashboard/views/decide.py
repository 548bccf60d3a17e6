"""Decide: where to run the model, for how much a month, and when buying would pay."""

from collections.abc import Sequence

import streamlit as st

from dashboard import address, assumed, data, frame, parts, state, sureness, what_if
from dashboard.rows import plan_rows, ranking
from planner.compare import Plan
from planner.scenario import Scenario

PRESETS = (
    ("One GPU for a 70B chat", {"model": "llama-3.3-70b-instruct", "hours_per_day": 8.0}),
    (
        "A coding model for a team",
        {"model": "qwen3-coder-480b-a35b", "quant": "FP8", "batch": 16, "hours_per_day": 10.0},
    ),
    ("A card at home", {"model": "qwen3-30b-a3b", "owner": "home", "own": "1x RTX 4090"}),
    ("100 million tokens a month", {"model": "gpt-oss-120b", "quant": "MXFP4", "tokens_per_month": 1e8}),
    (
        "A rush at noon",
        {
            "model": "gpt-oss-120b",
            "quant": "MXFP4",
            "tokens_per_month": 2e10,
            "load_profile": "0-11=1,11-13=5,13-24=1",
        },
    ),
    ("Always on", {"model": "qwen3.5-35b-a3b", "hours_per_day": 24.0}),
)


def show() -> None:
    """Draw the page."""
    assumed.was_changed()  # all of it is drawn anew
    drawn = frame.current()
    found = data.plan(drawn.scenario)
    with drawn.head:
        with st.container(key="verdict"):
            st.markdown(f"#### {parts.plain(found.verdict)}")
        _below_the_verdict(found)
    _charts(found)
    _mixed(found)
    with st.container(key="options"):
        ranking.options(found)
    ranking.left_out(found)
    _hangs_on(found)
    parts.recommended(plan_rows.recommendations(found.scenario), found.money.currency)
    with st.expander("What if one assumption were different?"):
        _effect(found.scenario)
    with st.expander("What to know about these figures"):
        for note in plan_rows.other_notes(found):
            st.markdown(f"- {parts.note(note)}")
    _presets()


def _presets() -> None:
    """Offer examples; a click asks one in place, and the address follows."""
    st.caption("Start from an example:")
    with st.container(horizontal=True, gap="small", key="presets"):
        for number, (title, options) in enumerate(PRESETS):
            if st.button(
                title,
                key=f"preset_{number}",
                on_click=address.ask,
                args=(Scenario.from_mapping(options), "decide"),
            ):
                st.toast(f"{title}: the answer is at the top.")


@st.fragment
def _effect(scenario: Scenario) -> None:
    """Show the answer as a function of one assumption, all others held."""
    if assumed.was_changed():
        st.rerun()
    with parts.guarded():
        names = what_if.movable(scenario)
        title = st.selectbox(
            "Assumption",
            list(names),
            index=None,
            placeholder="choose one",
            key="effect_of",
            persist_state="page",
            width=460,
        )
        if title is None:
            st.caption(
                "It is moved over the range that is seen, all others held, and planned anew at each value."
            )
            found = assumed.others(scenario)
            if found:
                _assumed(found, scenario.currency, key="planned_anew")
            return
        from dashboard import charts

        with st.spinner("Planning for each value"):
            effect = what_if.effect(scenario, names[title])
        drawing = charts.effect(effect)
        if drawing is None:
            st.info("Nothing to rent or buy serves it at any value.")
            return
        parts.draw(drawing, key="effect_chart", rows=drawing.rows)
        st.caption(f"{parts.plain(drawing.alt)} Source of the range: {parts.plain(effect.source)}.")


def _hangs_on(found: Plan) -> None:
    """Show which assumptions move the answer most, and each with its small chart and a value to change."""
    known = what_if.at_hand(found)
    from dashboard import charts

    drawing = charts.tornado(known, found.money.currency)
    if drawing is None:
        return
    st.subheader("What the answer hangs on", anchor=False)
    st.markdown(" ".join(parts.plain(note) for note in plan_rows.changes(found)))
    parts.draw(drawing, key="tornado")
    st.caption(
        f"{parts.plain(drawing.alt)} The two machines stay the same; the ranges are those that are seen."
    )
    _assumed([*known], found.money.currency, key="at_hand")


def _assumed(known: Sequence[what_if.Influence], currency: str, *, key: str) -> None:
    assumed.table(
        [assumed.row(each) for each in known],
        [each.name for each in known],
        currency,
        alt="Assumptions that move the answer, with the effect of each over its range, the strongest first.",
        key=key,
    )


def _below_the_verdict(found: Plan) -> None:
    threshold = plan_rows.threshold(found)
    if threshold is not None:
        st.markdown(parts.note(threshold))
    prices = plan_rows.prices_of_verdict(found)
    if prices is not None:
        st.caption(parts.note(prices))
    narrowed = [
        name for name in ("gpu", "gpus", "provider", "tier", "region") if getattr(found.scenario, name)
    ]
    if narrowed:
        words = ", ".join(f"{state.FIELDS[name].label}" for name in narrowed)
        st.caption(f"Only a part of the market is considered: {parts.plain(words)} under More assumptions.")
    for warning in found.scenario.warnings:
        st.warning(parts.wrong(warning), icon=":material/warning:")


def _charts(found: Plan) -> None:
    from dashboard import charts  # loads the chart library: after the verdict is on its way

    band = sureness.band(found)
    crossing = charts.crossing(found.crossing(), found.money, band)
    hours = None
    if not found.scenario.has_demand:
        hours = charts.cost_by_hours(found.cost_by_hours(), found.money, found.scenario.hours_per_day)
    shown = [drawing for drawing in (crossing, hours) if drawing is not None]
    if shown and found.singles_text is not None:
        st.caption(parts.note(found.singles_text))
    for column, drawing in zip(st.columns(len(shown) or 1), shown, strict=False):
        with column:
            st.markdown(f"**{parts.plain(drawing.title)}**")
            st.caption(parts.plain(drawing.names))
            parts.draw(drawing, key=drawing.key, rows=drawing.rows)


def _mixed(found: Plan) -> None:
    """Show the best number of machines to own beside rented peaks, where the shape of the day is known."""
    if found.mixed is None:
        return
    from dashboard import charts

    st.subheader("How many to own, and how many to rent for the peaks", anchor=False)
    st.markdown(" ".join(parts.plain(note) for note in plan_rows.mixed(found)))
    drawing = charts.mixed(found.mixed, found.money)
    st.caption(parts.plain(drawing.names))
    parts.draw(drawing, key=drawing.key)
    number, currency = st.column_config.NumberColumn, found.money.currency
    with st.expander("The figures as a table"):
        parts.table(
            drawing.rows,
            alt=drawing.alt,
            columns={
                "own_count": number("owned", format="%d"),
                "rent_count": number("rented in the busiest hour", format="%d"),
                "own": number(f"owned [{currency}/month]", format="accounting"),
                "rent": number(f"rented [{currency}/month]", format="accounting"),
                "month": number(f"together* [{currency}/month]", format="accounting"),
                "best": "the least",
            },
            key="mixed_table",
        )


show()
