"""The ranking of the start page: cheapest ways, table, downloads, chosen rows, what was left out."""

from collections.abc import Sequence
from typing import Any
from zlib import crc32

import streamlit as st

from dashboard import address, documents, parts, tables
from dashboard.rows import plan_rows
from planner.compare import Plan

CHOSEN = "chosen"  # rows of the table, by name; of the address


def options(found: Plan) -> None:
    """Show the cheapest of each way, every option, downloads, and the chosen ones side by side."""
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
    parts.estimate_note(
        "Prices are without VAT. Choose rows to read all of them, and to see how their figures come about."
    )
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
        "option": text("option", pinned=True, width=222),
        "month": number(f"{currency}/month", format="accounting", width=90),
        "provider": text("from", width=145),
        "mtok": number(f"{currency}/M tokens*", format="%.2f", width=105),
        "decode": number("one user* [tok/s]", format="%.1f", width=115),
        "counts": text("counts", width=105, help="Whether the verdict counts it, or why it passes over it"),
        "seen": text("price seen", width=90),
        "source": parts.source_column(),
        "rank": number("#", format="%d", width=40),
        "tier": text("tier", width=90),
        "status": text("price is", width=80),
        "per_hour": number(f"{currency}/h, whole machine", format="%.2f"),
        "per_gpu_hour": number(f"{currency}/GPU-h", format="%.2f"),
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
    permalink = address.link(found.scenario, "decide")
    with st.container(horizontal=True, gap="small"):
        for name, (label, mime) in documents.DOWNLOADS.items():
            st.download_button(
                label,
                data=documents.export(found, name, permalink),
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
    passed = found.passed_over()
    why_not = [passed[each.number - 1] for each in explained]
    parts.words(
        plan_rows.side_by_side(explained, why_not, found.money),
        alt="The chosen options side by side, in words and figures.",
    )
    for each in explained:
        with st.expander(
            f"{each.number}. {parts.plain(plan_rows.option_name(each.option))}: how it comes about"
        ):
            parts.explained(
                each.figures,
                found.money,
                alt=f"Formula, numbers and source of every figure of {each.option.name}.",
            )
            for note in each.option.notes:
                st.caption(parts.note(note))


def left_out(found: Plan) -> None:
    """Show what is not in the table, and why."""
    if not found.excluded:
        return
    with st.expander(f"Left out, and why: {tables.plural(len(found.excluded), 'entry')}"):
        parts.table(
            plan_rows.left_out(found),
            alt="What is not in the table, and why.",
            columns={
                "what": st.column_config.TextColumn("what", width="medium"),
                "why": st.column_config.TextColumn("why", width="large"),
            },
            key="left_out",
            is_wrapped=True,
        )
