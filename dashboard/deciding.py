"""What the Market page changes: prices that are held back and decided on, and a refresh that is watched."""

from collections.abc import Mapping, Sequence

import streamlit as st

from dashboard import data, parts, refreshing, tables
from dashboard.rows import market_rows
from planner.answers.money import Money
from planner.errors import UnknownName
from pricing.errors import UnclearDecision
from pricing.storage.memory import RunStatus
from pricing.storage.stored import StoredOffer

READ_ONLY = "This server is read-only: prices are refreshed and decided on elsewhere."


def held_back(money: Money) -> None:
    """Show what verification holds back, with prices in the currency shown, and let a person decide."""
    offers, beside = market_rows.held_back(), market_rows.held_beside()
    if not offers and not beside:
        st.info("Verification holds nothing back.")
    if offers:
        _held_rents(offers, money)
    if beside:
        _held_beside(beside)


def _held_rents(offers: Sequence[StoredOffer], money: Money) -> None:
    st.markdown(
        "These prices, fetched or bundled, stay out of every plan until a later run or a person "
        "confirms them."
    )
    parts.table(
        [
            {
                "what": _machine(offer),
                "per_hour": data.in_currency(money, offer.usd_per_hour),
                "why": "; ".join(offer.reasons),
                "provider": offer.said_by,
                "raw": offer.raw,
                "verdict": str(offer.verdict),
                "id": offer.id,
                "source": tables.address_of(offer.source_url),
                "seen_at": offer.seen_at,
                "instance": offer.instance_type,
                "tier": str(offer.tier),
            }
            for offer in offers
        ],
        alt="Prices that verification holds back, with the reasons, the value as it was read and the source.",
        columns={
            "what": st.column_config.TextColumn("machine", width=150),
            "per_hour": st.column_config.NumberColumn(f"{money.currency}/h", format="%.3f", width=80),
            "why": st.column_config.TextColumn("why", width=330),
            "provider": st.column_config.TextColumn("provider", width=100),
            "verdict": st.column_config.TextColumn("verdict", width=100),
            "id": st.column_config.TextColumn("id", width=120),
            "raw": st.column_config.TextColumn("as read", width=120),
            "source": parts.source_column(),
            "seen_at": st.column_config.DatetimeColumn("seen [UTC]", format="YYYY-MM-DD HH:mm"),
        },
        key="held_back_table",
        is_wrapped=True,
    )
    if market_rows.may_write():
        _decide(offers, money)
    else:
        st.caption(READ_ONLY)


def _held_beside(rows: Sequence[Mapping[str, object]]) -> None:
    """Show what else waits; it is confirmed by time, or on the command line."""
    st.markdown("These are held back too; the last ones that were believed stay in force.")
    parts.table(
        rows,
        alt="Rates of exchange and prices of API tokens that are held back, with the reasons.",
        columns={
            "what": st.column_config.TextColumn("what", width=260),
            "why": st.column_config.TextColumn("why", width=600),
        },
        key="held_beside_table",
        is_wrapped=True,
    )


def _machine(offer: StoredOffer) -> str:
    return f"{offer.gpu_count}x {offer.gpu or offer.gpu_raw}"


def _hourly(offer: StoredOffer, money: Money) -> str:
    """Write the price of an hour; the stored one as it is."""
    stored = f"{offer.usd_per_hour:f} USD/h"
    return stored if money.currency == "USD" else f"{money.exact(float(offer.usd_per_hour))}/h ({stored})"


def _decide(offers: Sequence[StoredOffer], money: Money) -> None:
    """Let a person accept or reject some of them; the reason is asked for and kept."""
    names = {
        f"{offer.id}: {_machine(offer)} from {offer.provider} ({offer.instance_type}), "
        f"{_hourly(offer, money)}": offer
        for offer in offers
    }
    with st.form("decide", clear_on_submit=True):
        chosen = st.multiselect(
            "Prices to decide on",
            list(names),
            key="decide_on",
            placeholder="choose",
            select_all=False,  # one reason is not true of all: each price is looked at by itself
        )
        reason = st.text_input("Why", key="decide_why", max_chars=500, placeholder="seen on the page today")
        by = st.text_input("Your name", key="decide_by", max_chars=60, placeholder="kept with the decision")
        with st.container(horizontal=True):
            accept = st.form_submit_button("Accept", icon=":material/check:", key="accept")
            reject = st.form_submit_button("Reject", icon=":material/close:", key="reject")
    if not (accept or reject):
        return
    if not chosen or not reason.strip():
        st.warning("Choose at least one price and say why: the reason is kept with the decision.")
        return
    what = "accept" if accept else "reject"
    prices = [names[name] for name in chosen]
    try:
        market_rows.decide(prices, what, reason=" ".join(reason.split()), by=by.strip() or "dashboard")
    except (UnknownName, UnclearDecision) as error:  # decided elsewhere, or another price by now
        st.warning(f"Nothing was {what}ed: {parts.plain(str(error))}.")
        return
    st.toast(f"{what}ed: {tables.plural(len(chosen), 'price')}")
    st.rerun()


def refresh() -> None:
    """Let a person ask the providers for today's prices, and show how that goes."""
    if not market_rows.may_write():
        st.caption(READ_ONLY)
        return
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        names = st.multiselect(
            "Sources", refreshing.sources(), key="refresh_sources", placeholder="all", width=320
        )
        if st.button("Refresh prices now", key="refresh", icon=":material/refresh:"):
            refreshing.start(names, data.store(), data.settings(), data.now())
    job = refreshing.current()
    if job is not None:
        is_running = job.state is refreshing.State.RUNNING
        st.fragment(_watch, run_every=1.0 if is_running else None)()


def _watch() -> None:
    """Show how far the refresh is; once it has ended the whole page is drawn anew."""
    job = refreshing.current()
    if job is None:
        return
    done = f"{len(job.reports)} of {tables.plural(job.total, 'source')}"
    if job.state is refreshing.State.RUNNING:
        words = "stopping after the source that is being stored" if job.is_stopping else "asking"
        st.progress(job.share, f"{words}: {done} done")
        if st.button("Stop", key="stop_refresh", icon=":material/stop:"):
            job.stop()
        st.session_state["_watched"] = True
        return
    if st.session_state.pop("_watched", False):
        st.rerun()
    failed = [part for part in job.reports if part.status is RunStatus.FAILED]
    verified = sum(part.verified for part in job.reports)
    held = sum(part.quarantined + part.rejected for part in job.reports)
    text = f"Refresh of {job.started_at:%Y-%m-%d %H:%M} UTC {job.state}: {done}, {verified:,} prices verified"
    text += f", {held:,} held back" if held else ""
    text += f"; {job.error}" if job.error else ""
    show = st.success if job.state is refreshing.State.DONE and not failed else st.warning
    show(parts.plain(text) + ".")
    for part in failed:
        st.caption(parts.plain(f"{part.title}: {part.reason}"))
