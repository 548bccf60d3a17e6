"""Tabs of the Size page on the model: capacity screen, what is recorded of it, how it feels."""

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

import streamlit as st

from dashboard import frame, parts, simulator, state, tables
from dashboard.form.field import Field, Kind
from dashboard.rows import size_rows
from planner.errors import PlannerError
from planner.serving import capacity
from planner.sizing import Sizing

if TYPE_CHECKING:
    from streamlit.delta_generator import DeltaGenerator

RESERVE = "reserve_gb"  # room of the capacity screen; of the address
_REFUSED = "_reserve_refused"
_ROOM = Field(
    name=RESERVE,
    label="Room for caches, workspace and buffers of all requests [GB]",
    kind=Kind.NUMBER,
    low=0.0,
    high=state.MOST_RESERVE_GB,
)


def capacity_screen(sizing: Sizing) -> None:
    """Show how many GPUs hold the bare weights, with a reserve."""
    st.markdown(
        "Would the weights fit at all, before anything is known of engine and cache? Labelled parameters at "
        "one precision throughout, and 15 % of each GPU kept free. It can reject a machine, not promise one."
    )
    budget = _reserve_gb()
    gpu = sizing.machine.gpu
    document = capacity.to_document(sizing.workload.model, gpu, budget)
    number = st.column_config.NumberColumn
    parts.table(
        document["rows"],  # type: ignore[arg-type]
        alt=f"GPUs of the kind {gpu.name} needed at 16, 8 and 4 bits.",
        columns={
            "bits": number("bits throughout", format="%d"),
            "weights_gb": number("weights, at least [GB]", format="%.1f"),
            "needed_gb": number("with that room [GB]", format="%.1f"),
            "per_gpu_gb": number(f"offered by one {gpu.name} [GB]", format="%.1f"),
            "gpu_count": number(f"{gpu.name} needed", format="%d"),
        },
        key="capacity",
    )


def _reserve_gb() -> float:
    """Ask for the room that is kept beside the weights; of what cannot be read the last one stays."""
    session, widget = st.session_state, f"{RESERVE}_widget"
    session[widget] = _ROOM.as_widget_value(session[RESERVE])

    def take() -> None:
        try:
            session[RESERVE] = _ROOM.as_scenario_value(session[widget] or 0.0)
        except PlannerError as error:
            session[_REFUSED] = str(error)

    st.text_input(_ROOM.label, key=widget, on_change=take, width=420)
    refused = session.pop(_REFUSED, None)
    if refused is not None:
        st.warning(parts.plain(refused))
    return float(session[RESERVE])


def record(sizing: Sizing) -> None:
    """Show what is recorded of the model, and what is not known."""
    model = sizing.workload.model
    found = capacity.layer_evidence(model)
    layers = ", ".join(f"{count} {kind.replace('_', ' ')}" for kind, count in found.by_kind.items())
    moe = model.moe
    facts = {
        "Checkpoint": model.hf_repo,
        "Architecture": model.architecture,
        "Parameters": tables.number(model.main_params),
        "Read for each token": tables.number(model.active_params),
        "Checkpoint size [GB]": size_rows.gigabytes(model.checkpoint_bytes),
        "Layers": f"{model.num_layers}: {layers}",
        "Hidden width": tables.number(model.hidden_size),
        "Attention / KV heads": _pair(model.num_attention_heads, model.num_kv_heads),
        "Head dimension": tables.number(model.head_dim),
        "Routed / chosen experts": _pair(moe.routed_experts, moe.experts_per_token) if moe else None,
        "Longest context [tokens]": tables.number(model.context_tokens),
        "Inputs": ", ".join(model.modality),
        "Published as": model.native_dtype,
        "Licence": model.license,
        "Released": model.release_date,
        "Known from": model.evidence,
        "Checked on": model.checked,
    }
    known = [{"what": what, "value": value} for what, value in facts.items() if value]
    parts.table(known, alt=f"What is recorded of {model.name}.", columns={"what": "fact"}, key="record")
    unknown = [what for what, value in facts.items() if not value]
    if unknown:
        st.caption(f"Not known: {parts.plain(', '.join(unknown))}.")
    if model.notes:
        st.caption(parts.plain(model.notes))
    st.caption("Sources: " + "; ".join(parts.plain(source) for source in model.sources))


def _pair(first: int | None, second: int | None) -> str | None:
    return None if first is None or second is None else f"{first:,} / {second:,}"


def how_it_feels(sizing: Sizing) -> None:
    """Write text at the predicted speed."""
    if sizing.speed is None:
        st.info("It does not fit on this machine, so there is no speed to show.")
        return
    _stream(size_rows.paces(frame.current().scenario, sizing))


@st.fragment
def _stream(paces: Sequence[simulator.Pace]) -> None:
    """Write at the predicted speed, beside a second machine; any click ends what is running."""
    with parts.guarded():
        mine, others = paces[0], {pace.name: pace for pace in paces[1:]}
        beside = st.selectbox(
            "Beside it", list(others), index=None, placeholder="no other", key="beside", width=320
        )
        shown = [mine, others[beside]] if beside in others else [mine]
        with st.container(horizontal=True):
            started = st.button("Start", key="start_stream", icon=":material/play_arrow:")
            st.button("Stop", key="stop_stream", icon=":material/stop:")
        lanes = []
        for pace, column in zip(shown, st.columns(len(shown)), strict=True):
            with column:
                rate, wait = tables.tokens_per_s(pace.tokens_per_s), tables.number(pace.ttft_s * 1000.0)
                st.markdown(f"**{parts.plain(pace.name)}**")
                st.caption(parts.plain(f"{rate}* tokens/s, first token after {wait}* ms"))
                lanes.append(st.empty())
        if started:
            _write(shown, lanes)


def _write(paces: Sequence[simulator.Pace], lanes: Sequence["DeltaGenerator"]) -> None:
    written = ["" for _ in paces]
    for turn in simulator.race(paces):
        time.sleep(turn.pause_s)
        written[turn.lane] += turn.text
        lanes[turn.lane].markdown(parts.plain(written[turn.lane]))
