"""Decide: where to run the model, for how much a month, and when buying would pay."""

from collections.abc import Sequence
from typing import Any
from zlib import crc32

import streamlit as st

from dashboard import address, assumed, data, documents, parts, plan_rows, state, sureness, tables, what_if
from planner.compare import Plan
from planner.scenario import Scenario

CHOSEN = "chosen"  # rows of the table, by name; of the address
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
    frame = parts.frame()
    found = data.plan(frame.scenario)
    with frame.head:
        with st.container(key="verdict"):
            st.markdown(f"#### {parts.plain(found.verdict)}")
        _below_the_verdict(found)
    _charts(found)
    _mixed(found)
    with st.container(key="options"):
        _options(found)
    _left_out(found)
    _hangs_on(found)
    parts.recommended(plan_rows.recommendations(found.scenario))
    with st.expander("What if one assumption were different?"):
        _effect(found.scenario)
    with st.expander("What to know about these figures"):
        for note in plan_rows.other_notes(found):
            st.markdown(f"- {parts.note(note)}")
    st.caption("Start from an example:")
    parts.links((title, _preset(options)) for title, options in PRESETS)


def _preset(options: dict[str, Any]) -> str:
    return state.permalink(Scenario.from_mapping(options), "./")


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
        st.warning(parts.note(warning), icon=":material/warning:")


def _charts(found: Plan) -> None:
    from dashboard import charts  # loads the chart library: after the verdict is on its way

    band = sureness.band(found)
    crossing = charts.crossing(found.crossing(), found.money, band)
    hours = None
    if not found.scenario.has_demand:
        hours = charts.cost_by_hours(found.cost_by_hours(), found.money, found.scenario.hours_per_day)
    shown = [drawing for drawing in (crossing, hours) if drawing is not None]
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


def _options(found: Plan) -> None:
    st.subheader("Every way to serve it, cheapest first", anchor=False)
    _proof(found)
    if not found.options:
        st.info("Nothing serves it. Loosen a limit, choose a smaller format, or see below what was left out.")
        return
    currency = found.money.currency
    rows = plan_rows.option_rows(found)
    keys = plan_rows.option_keys(found)
    chosen = [place for place, key in enumerate(keys) if key in st.session_state.get(CHOSEN, ())]

    def choose(places: Sequence[int]) -> None:
        st.session_state[CHOSEN] = [keys[place] for place in places]

    # Another table where rows stand elsewhere, or where the address says which are chosen.
    turn = f"{crc32(chr(10).join(keys).encode()):08x}_{address.times_read()}"
    parts.table(
        rows,
        alt=f"{len(rows)} ways to serve {found.model.name}, cheapest by the month first.",
        columns=_columns(currency),
        key=f"options_table_{turn}",
        height=520,
        on_select=choose,
        selected=chosen,
    )
    gone = [key for key in st.session_state.get(CHOSEN, ()) if key not in keys]
    if gone:
        st.caption(f"Chosen, and not among the options: {parts.plain(', '.join(gone))}.")
    parts.estimate_note("Prices are without VAT. Choose rows to see how their figures come about.")
    _downloads(found)
    _chosen(found, chosen)


def _proof(found: Plan) -> None:
    """Show the cheapest of each way, how its cost comes about, and how far the prices can be trusted."""
    money = found.money
    best = (
        ("Cheapest to rent", found.rental),
        ("Cheapest to own", found.purchase),
        ("Cheapest API", found.api),
    )
    parts.figures(
        [
            (title, f"{money.text(option.usd_per_month)} a month", plan_rows.option_name(option))
            for title, option in best
            if option is not None and option.usd_per_month is not None
        ],
        width=330,
    )
    with st.container(key="proof"):
        ways = (line.partition(": ") for line in found.proof)
        st.markdown("\n".join(f"- **{parts.plain(way)}**: {parts.plain(text)}" for way, _, text in ways))
        st.markdown(" ".join(parts.note(note) for note in plan_rows.trust(found)))


def _columns(currency: str) -> dict[str, Any]:
    number, text = st.column_config.NumberColumn, st.column_config.TextColumn
    link = st.column_config.LinkColumn
    # What decides comes first: on a screen of 1,280 px everything up to the source, on 390 px name and month.
    return {
        "option": text("option", pinned=True, width=205),
        "month": number(f"{currency}/month", format="accounting", width=90),
        "provider": text("from", width=105),
        "mtok": number(f"{currency}/M tokens*", format="%.2f", width=105),
        "decode": number("one user* [tok/s]", format="%.1f", width=115),
        "counts": text("counts", width=165, help="Whether the verdict counts it, or why it passes over it"),
        "seen": text("price seen", width=90),
        "source": parts.source_column(),
        "rank": number("#", format="%d", width=40),
        "tier": text("tier", width=90),
        "status": text("price is", width=80),
        "usd_per_hour": number("USD/h, whole machine", format="%.2f"),
        "usd_per_gpu_hour": number("USD/GPU-h", format="%.2f"),
        "aggregate": number("all together* [tok/s]", format="%.0f"),
        "pays_back": number("pays back [months]", format="%.1f"),
        "no_payback": text("if not, why", width=145),
        "purchase": number(f"to buy [{currency}]", format="accounting"),
        "vram": number("VRAM total [GB]", format="%.0f"),
        "deploy": link("deploy", display_text="open"),
        "product": text("product"),
        "region": text("region"),
        "billing": text("billed"),
        "stated": text("source in words", width="medium"),
        "why": text("note"),
    }


def _downloads(found: Plan) -> None:
    with st.container(horizontal=True, gap="small"):
        for name, (label, mime) in documents.DOWNLOADS.items():
            st.download_button(
                label,
                data=documents.export(found, name),
                file_name=f"plan.{name}",
                mime=mime,
                key=f"download_{name}",
                on_click="ignore",
                icon=":material/download:",
            )
        st.download_button(
            "Scenario",
            data=found.scenario.to_toml(),
            file_name="scenario.toml",
            mime="application/toml",
            key="download_scenario",
            on_click="ignore",
            help="A file that the command line reads: breakeven plan --scenario scenario.toml",
        )


def _chosen(found: Plan, numbers: Sequence[int]) -> None:
    """Show the chosen options side by side, and each figure with its formula and the numbers put in."""
    if not numbers:
        return
    st.subheader("The chosen ones side by side", anchor=False)
    explained = [found.explain(number + 1) for number in numbers if number < len(found.options)]
    parts.table(
        plan_rows.side_by_side(explained),
        alt="Figures of the chosen options side by side.",
        key="side_by_side",
    )
    for each in explained:
        with st.expander(
            f"{each.number}. {parts.plain(plan_rows.option_name(each.option))}: how it comes about"
        ):
            parts.table(
                [figure.to_document() for figure in each.figures],
                alt=f"Formula, numbers and source of every figure of {each.option.name}.",
                columns={
                    "value": st.column_config.NumberColumn("value", format="%.6g"),
                    "numbers": st.column_config.TextColumn("numbers put in", width="large"),
                    "formula": st.column_config.TextColumn("formula", width="medium"),
                    "is_estimate": "estimated",
                },
            )
            for note in each.option.notes:
                st.caption(parts.note(note))


def _left_out(found: Plan) -> None:
    if not found.excluded:
        return
    with st.expander(
        f"Left out, and why: {tables.plural(len(found.excluded), 'entry').replace('entrys', 'entries')}"
    ):
        parts.table(
            plan_rows.left_out(found),
            alt="What is not in the table, and why.",
            columns={
                "what": st.column_config.TextColumn("what", width="medium"),
                "why": st.column_config.TextColumn("why", width="large"),
            },
            key="left_out",
        )


show()
