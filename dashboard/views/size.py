"""Size: does the model fit on this machine, how fast is it, and is that fast enough to talk to?"""

from functools import partial

import streamlit as st

from dashboard import charts, frame, model_tabs, parts, state, tables, workbench
from dashboard.commands.sizing_text import machine_name, sentence
from dashboard.form import choices, upload
from dashboard.rows import plan_rows, size_rows
from planner.answers.money import Money
from planner.serving import usability
from planner.serving.fitting import remedies
from planner.serving.speeds import SpeedSource
from planner.sizing import Sizing
from planner.supply.options import Option
from planner.units import GIB


def show() -> None:
    """Draw the page."""
    drawn = frame.current()
    own = upload.uploaded()
    sizing = size_rows.sizing(drawn.scenario, own.workload(drawn.scenario) if own else None)
    with drawn.head, st.container(key="answer"):
        st.subheader(parts.plain(sentence(sizing)), anchor=False)
        st.markdown(_talk(sizing))
        if drawn.scenario.gpu is None:
            st.caption(f"No GPU is chosen: {parts.plain(state.DEFAULT_GPU)} is taken.")
    _figures(sizing, None if own else size_rows.rental_of(drawn.scenario), drawn.money)
    memory = charts.memory(sizing)
    parts.draw(memory, key="memory_chart", rows=memory.rows)
    _serving(sizing)
    for note in sizing.notes:
        st.caption(parts.note(note))
    _remedies(sizing, has_own_format=own is not None and own.reading.quant is not None)
    if own is None:
        parts.recommended(plan_rows.recommendations(drawn.scenario), drawn.scenario.currency)
    choices.tabs("size_tab", {title: partial(body, sizing) for title, body in TABS.items()})


def _talk(sizing: Sizing) -> str:
    """Say whether what fits can also be talked to."""
    if sizing.speed is None:
        return "Nothing can be said about its speed on this machine."
    found = usability.verdict(sizing.speed)
    reason = found.reason[:1].upper() + found.reason[1:]
    return f"Good for: **{parts.plain(found.usability)}**. {parts.plain(reason)}."


def _figures(sizing: Sizing, rental: Option | None, money: Money) -> None:
    memory, speed = sizing.memory.to_document(), sizing.speed
    figures = [
        ("Needed [GiB]", tables.gib(memory["total_gib"]), f"{tables.number(memory['total_gb'], 1)} GB"),
        ("Usable [GiB]", tables.gib(memory["usable_gib"]), machine_name(sizing)),
        ("Headroom [GiB]", tables.gib(memory["headroom_gib"]), f"{tables.share(memory['utilization'])} used"),
    ]
    if speed is not None:
        step, whole = (one is SpeedSource.ESTIMATED for one in (speed.source, speed.aggregate_source))
        decode, everyone = _fast(speed.decode_tokens_per_s, step), _fast(speed.aggregate_tokens_per_s, whole)
        wait = tables.starred(tables.number(speed.ttft_ms))
        figures += [
            ("Decode [tok/s]", decode, _between(speed.ends("decode"))),
            ("All sequences [tok/s]", everyone, _between(speed.ends("aggregate"))),
            ("Prefill [tok/s]", _fast(speed.prefill_tokens_per_s, True), f"first token {wait} ms"),
        ]
    if rental is not None and rental.token_prices is not None:
        price = tables.starred(tables.money(money.amount(rental.token_prices.usd_per_million_tokens)))
        hour = "" if rental.usd_per_hour is None else f"{money.exact(float(rental.usd_per_hour))}/h, "
        figures.append((f"{money.currency}/M tokens", price, f"{hour}{rental.provider_title}"))
    parts.figures(figures)
    if speed is not None:
        parts.estimate_note(f"Decoding is limited by {speed.bound}.")


def _serving(sizing: Sizing) -> None:
    """Say which settings of serving are not at their default."""
    settings = [f"{state.FIELDS[name].label} {value:g}" for name, value in sizing.workload.serving.items()]
    if settings:
        st.caption(f"Serving in detail: {parts.plain('; '.join(settings))}.")


def _remedies(sizing: Sizing, *, has_own_format: bool) -> None:
    """Offer the settings with which it would fit, the least change of service first."""
    found = [each for each in remedies(sizing) if not (has_own_format and "quant" in each.options)]
    if not found:
        return
    st.markdown("**It would fit with any of these**; a click sets it:")
    with st.container(horizontal=True, gap="small", key="remedies"):
        for number, remedy in enumerate(found):
            settings = "; ".join(
                f"{state.FIELDS[name].label}: {value}" for name, value in remedy.options.items()
            )
            spare = tables.gib(remedy.headroom_bytes / GIB)
            st.button(
                f"{parts.plain(settings)} ({spare} GiB to spare)",
                key=f"remedy_{number}",
                on_click=st.session_state.update,
                args=({n: state.FIELDS[n].as_widget_value(value) for n, value in remedy.options.items()},),
            )


def _fast(value: float, mark: bool) -> str | None:
    return tables.starred(tables.tokens_per_s(value), mark)


def _between(ends: tuple[float, float] | None) -> str | None:
    if ends is None:
        return None
    low, high = ends
    return f"{tables.tokens_per_s(low)} to {tables.tokens_per_s(high)}"


TABS = {
    "Formats": workbench.formats,
    "Context": workbench.contexts,
    "Fine-tuning": workbench.finetuning,
    "Launch": workbench.launch,
    "Formulas": workbench.formulas,
    "Capacity screen": model_tabs.capacity_screen,
    "Model record": model_tabs.record,
    "How it feels": model_tabs.how_it_feels,
}
show()
