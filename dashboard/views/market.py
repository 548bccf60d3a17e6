"""Market: what is offered, how fresh each price is, how each provider does, and what is kept out and why."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import streamlit as st

from dashboard import charts, deciding, frame, parts, state, tables, taking
from dashboard.form import choices
from dashboard.rows import market_rows
from planner.answers.money import Money
from planner.rates import PriceStatus

REFRESH = "breakeven prices refresh"


def show() -> None:
    """Draw the page."""
    drawn = frame.current()
    money = drawn.money
    rows = market_rows.market(money)
    with drawn.head, st.container(key="answer"):
        _headline(rows)
    bodies = {
        "Offers": partial(_offers, rows, money),
        "Price history": partial(_history, rows, money),
        "Providers": _providers,
        "Held back": partial(deciding.held_back, money),
    }
    choices.tabs("market_tab", bodies)


def _headline(rows: Sequence[Mapping[str, Any]]) -> None:
    if not rows:
        st.subheader("No prices yet.", anchor=False)
        st.markdown("This command fetches them:")
        st.code(REFRESH, language=None)
        return
    by_status = market_rows.counted(row["status"] for row in rows)
    newest = max(row["seen_at"] for row in rows)
    providers = len({row["provider"] for row in rows})
    st.subheader(
        f"{tables.plural(len(rows), 'offer')} of {tables.plural(providers, 'provider')}, "
        f"the newest seen on {newest:%Y-%m-%d}.",
        anchor=False,
    )
    said = {status: status.replace("says ", "as said by ", 1) for status in by_status}
    counts = [f"{count:,} {parts.plain(said[status])}" for status, count in by_status.items()]
    st.markdown("; ".join(counts) + ".")
    how = ", and so does the button under Providers" if market_rows.may_write() else ""
    if not by_status.get(PriceStatus.VERIFIED) and not by_status.get(PriceStatus.STALE):
        st.info(
            "All of them are bundled with the program, each with its own date. "
            f"`{REFRESH}` fetches today's and verifies them{how}.",
            icon=":material/update:",
        )
    elif not by_status.get(PriceStatus.VERIFIED):
        st.warning(
            f"None of the fetched prices is younger than two days. `{REFRESH}` fetches new ones{how}.",
            icon=":material/update:",
        )


def _offers(rows: Sequence[Mapping[str, Any]], money: Money) -> None:
    chosen: dict[str, list[str]] = {}
    with st.container(horizontal=True, gap="small"):
        for field, title in (
            ("gpu", "GPU"),
            ("provider", "Provider"),
            ("tier", "Tier"),
            ("status", "Status"),
        ):
            names = sorted({str(row[field]) for row in rows})
            chosen[field] = choices.choose_any(f"show_{field}", title, names, placeholder="all", width=240)
        everything = st.checkbox(
            "Also what is never ranked",
            key="show_unranked",
            persist_state="session",
            help="Slices of a GPU, prices without CPU and memory, and names that may mean several GPUs.",
        )
    wanted = [row for row in rows if all(not v or str(row[f]) in v for f, v in chosen.items())]
    shown = [row for row in wanted if everything or row["is_ranked"]]
    hidden = len(wanted) - len(shown)
    more = f"; {hidden:,} that are never ranked are hidden" if hidden else ""
    kept = "" if money.currency == "USD" else " Prices are kept and verified in US dollars."
    st.caption(f"{len(shown):,} of {len(rows):,} offers{more}.{kept}")
    if shown:
        ordered, columns = (
            sorted(shown, key=lambda row: row["per_gpu_hour"]),
            _columns(everything, money.currency),
        )
        with st.container(key="offers"):
            parts.table(
                ordered,
                alt="Offers, cheapest per GPU-hour first.",
                columns=columns,
                key="market_table",
                height=560,
            )
        taking.offer(ordered, columns, title="Offers", money=money)
        bars = charts.price_bars(shown, money.currency)
        st.markdown(f"**{parts.plain(bars.title)}**")
        parts.draw(bars, key="price_bars", rows=bars.rows)


def _columns(everything: bool, currency: str) -> dict[str, Any]:
    number, text = st.column_config.NumberColumn, st.column_config.TextColumn
    # Price, place, age and source come first: they fit on a screen of 1,280 px, GPU and price on 390 px.
    return {
        "gpu": text("GPU", pinned=True, width=205),
        "per_gpu_hour": number(f"{currency}/GPU-h", format="%.3f", width=90),
        "provider": text("provider", width=110),
        "tier": text("tier", width=100),
        "region": text("region", width=130),
        "status": text("status", width=95),
        "seen_at": st.column_config.DatetimeColumn("seen [UTC]", format="YYYY-MM-DD HH:mm", width=140),
        "source": parts.source_column(),
        "gpu_count": number("GPUs", format="%d"),
        "per_hour": number(f"{currency}/h, whole machine", format="%.2f"),
        "usd_per_gpu_hour": None if currency == "USD" else number("USD/GPU-h", format="%.3f"),
        "gpu_fraction": number("slice", format="%.2f") if everything else None,
        "memory_gb_per_gpu": number("VRAM per GPU [GB]", format="%.0f"),
        "form": text("form"),
        "instance_type": text("instance"),
        "billing": text("billed"),
        "is_ranked": None,
        "why_not": text("why never ranked") if everything else None,
    }


def _history(rows: Sequence[Mapping[str, Any]], money: Money) -> None:
    gpus = sorted({row["gpu"] for row in rows if row["is_ranked"]})
    if not gpus:
        st.info(f"Tracking starts with the first `{REFRESH}`.")
        return
    with st.container(horizontal=True):
        default = state.DEFAULT_GPU if state.DEFAULT_GPU in gpus else gpus[0]
        gpu = choices.choose_one("history_gpu", "GPU", gpus, default, width=240)
        names = sorted({row["provider"] for row in rows if row["gpu"] == gpu})
        chosen = choices.choose_any("history_provider", "Providers", names, placeholder="all", width=320)
    seen = market_rows.history(gpu, chosen)
    offers = [offer for offer in seen if offer.is_rankable and offer.verdict == "verified"]
    if not offers:
        st.info("No price of it is known.")
        return
    drawing = charts.history(gpu, offers, money)
    parts.draw(drawing, key="history_chart", rows=drawing.rows)
    st.caption(
        "Each line is one offer for as long as it was seen at that price; where nothing was seen is a gap."
        + ("" if money.currency == "USD" else " One rate holds for all days: a step is one of the price.")
    )
    taking.offer(drawing.rows, {}, title=f"Price history of {gpu}", money=money)


def _providers() -> None:
    deciding.refresh()
    found = [
        {
            "provider": status.provider,
            "last_run": status.last_run_at,
            "result": None if status.last_run_status is None else str(status.last_run_status),
            "why": status.last_run_reason,
            "failures": status.failures_since_success or None,
            "fresh": status.verified,
            "stale": status.stale,
            "snapshot": status.snapshot,
            "snapshot_as_of": status.snapshot_as_of,
            "quarantined": status.quarantined,
            "rejected": status.rejected,
        }
        for status in market_rows.provider_statuses()
    ]
    if not found:
        st.info(f"No provider has been asked yet: `{REFRESH}`.")
        return
    date = st.column_config.DatetimeColumn
    parts.table(
        found,
        alt="Where each provider's prices stand.",
        columns={
            "provider": st.column_config.TextColumn("provider", pinned=True),
            "last_run": date("last run [UTC]", format="YYYY-MM-DD HH:mm"),
            "failures": "failed since",
            "snapshot": "bundled",
            "snapshot_as_of": date("bundled, newest", format="YYYY-MM-DD"),
        },
        key="provider_table",
        height=520,
    )


show()
