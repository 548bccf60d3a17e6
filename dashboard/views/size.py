"""Size: does the model fit on this machine, how fast is it, and is that fast enough to talk to?"""

import time
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import streamlit as st

from dashboard import charts, parts, plan_rows, simulator, size_rows, state, tables, taking, upload
from dashboard.commands.sizing_text import machine_name, sentence
from planner import capacity, matrix, usability
from planner.fitting import remedies
from planner.launch import launches
from planner.models import all_models
from planner.options import Option
from planner.sizing import Sizing
from planner.sizing_figures import sizing_figures
from planner.speeds import SpeedSource
from planner.units import GIB

if TYPE_CHECKING:
    from streamlit.delta_generator import DeltaGenerator

FIT_WORDS = {True: "fits", False: "does not fit"}


def show() -> None:
    """Draw the page."""
    frame = parts.frame()
    own = upload.uploaded()
    sizing = size_rows.sizing(frame.scenario, own.workload(frame.scenario) if own else None)
    with frame.head, st.container(key="answer"):
        st.subheader(parts.plain(sentence(sizing)), anchor=False)
        st.markdown(_talk(sizing))
        if frame.scenario.gpu is None:
            st.caption(f"No GPU is chosen: {parts.plain(state.DEFAULT_GPU)} is taken.")
    _figures(sizing, None if own else size_rows.rental_of(frame.scenario))
    memory = charts.memory(sizing)
    parts.draw(memory, key="memory_chart", rows=memory.rows)
    _serving(sizing)
    for note in sizing.notes:
        st.caption(parts.note(note))
    _remedies(sizing, has_own_format=own is not None and own.reading.quant is not None)
    if own is None:
        parts.recommended(plan_rows.recommendations(frame.scenario))
    parts.tabs("size_tab", {title: partial(body, sizing) for title, body in TABS.items()})


def _talk(sizing: Sizing) -> str:
    """Say whether what fits can also be talked to."""
    if sizing.speed is None:
        return "Nothing can be said about its speed on this machine."
    found = usability.verdict(sizing.speed)
    reason = found.reason[:1].upper() + found.reason[1:]
    return f"Good for: **{parts.plain(found.usability)}**. {parts.plain(reason)}."


def _figures(sizing: Sizing, rental: Option | None) -> None:
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
            ("Decode [tok/s]", decode, _between(speed.decode_low, speed.decode_high)),
            ("All sequences [tok/s]", everyone, _between(speed.aggregate_low, speed.aggregate_high)),
            ("Prefill [tok/s]", _fast(speed.prefill_tokens_per_s, True), f"first token {wait} ms"),
        ]
    if rental is not None and rental.token_prices is not None:
        price = tables.starred(tables.money(rental.token_prices.usd_per_million_tokens))
        figures.append(("USD/M tokens", price, f"{rental.usd_per_hour} USD/h, {rental.provider_title}"))
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
                args=(dict(remedy.options),),
            )


def _fast(value: float, mark: bool) -> str | None:
    return tables.starred(tables.tokens_per_s(value), mark)


def _between(low: float, high: float) -> str:
    return f"{tables.tokens_per_s(low)} to {tables.tokens_per_s(high)}"


def _row(sizing: Sizing) -> dict[str, object]:
    """Return one sizing as a row of numbers."""
    memory, speed = sizing.memory.to_document(), sizing.speed
    return {
        "weights": memory["weights_gib"],
        "kv": memory["kv_cache_gib"],
        "total": memory["total_gib"],
        "total_gb": memory["total_gb"],
        "fits": FIT_WORDS[sizing.memory.fits],
        "decode": speed.decode_tokens_per_s if speed else None,
        "aggregate": speed.aggregate_tokens_per_s if speed else None,
        "ttft": speed.ttft_ms if speed else None,
        "basis": memory["basis"],
    }


def _columns() -> dict[str, object]:
    number = st.column_config.NumberColumn
    return {
        "format": st.column_config.TextColumn("format", pinned=True),
        "bits": number("bits per weight", format="%.2f"),
        "context": number("context [tokens]", format="localized"),
        "weights": number("weights [GiB]", format="%.2f"),
        "kv": number("KV cache [GiB]", format="%.2f"),
        "total": number("total [GiB]", format="%.2f"),
        "total_gb": number("total [GB]", format="%.1f"),
        "fits": "on this machine",
        "decode": number("decode* [tok/s]", format="%.1f"),
        "aggregate": number("all sequences* [tok/s]", format="%.0f"),
        "ttft": number("first token* [ms]", format="%.0f"),
        "basis": "weights from",
        "smallest": st.column_config.TextColumn("smallest common machine", width="medium"),
        "engine": "runs in",
        "known": st.column_config.TextColumn("to know", width="large"),
    }


def _formats(sizing: Sizing) -> None:
    sized = matrix.over_quants(sizing.workload, sizing.machine)
    engine = parts.frame().scenario.engine
    smallest, known = size_rows.smallest_machines(sized, engine), size_rows.notes_of_formats(sized)
    rows = [
        {"format": each.workload.quant.name, "bits": each.workload.quant.bits_per_weight}
        | _row(each)
        | {"smallest": holds, "engine": str(each.workload.engine), "known": note or None}
        for each, holds, note in zip(sized, smallest, known, strict=True)
    ]
    where = machine_name(sizing)
    parts.table(
        rows, alt=f"Memory and speed in every weight format on {where}.", columns=_columns(), key="formats"
    )
    parts.estimate_note("An empty cell is not known, or the format does not fit.")
    _offer(rows, f"{sizing.workload.model.name} on {where}, by format")


def _contexts(sizing: Sizing) -> None:
    sized = matrix.over_contexts(sizing.workload, sizing.machine)
    rows = [{"context": each.workload.context_tokens} | _row(each) for each in sized]
    parts.draw(charts.context(sized), key="context_chart")
    where = machine_name(sizing)
    parts.table(
        rows, alt=f"Memory and speed at each context length on {where}.", columns=_columns(), key="contexts"
    )
    parts.estimate_note()
    _offer(rows, f"{sizing.workload.model.name} on {where}, by context")


def _offer(rows: Sequence[Mapping[str, object]], title: str) -> None:
    scenario = parts.frame().scenario
    named = ["docs/methodology.md"]
    taking.offer(rows, _columns(), scenario, page="size", title=title, sources=named)


def _finetuning(sizing: Sizing) -> None:
    document = size_rows.finetuning_of(sizing.workload.model)
    number = st.column_config.NumberColumn
    parts.table(
        document.rows,
        alt=f"Memory for fine-tuning {sizing.workload.model.name}, by three ways and two methods.",
        columns={
            "tuning": "what is trained",
            "method": "estimate",
            "weights_gib": number("weights [GiB]", format="%.2f"),
            "gradients_optimizer_gib": number("gradients, optimizer [GiB]", format="%.2f"),
            "activations_gib": number("activations, buffers [GiB]", format="%.2f"),
            "total_gib": number("total [GiB]", format="%.2f"),
            "smallest": st.column_config.TextColumn("smallest machine", width="medium"),
        },
        key="finetuning",
    )
    for note in document.notes:
        st.caption(parts.plain(note))


def _launch(sizing: Sizing) -> None:
    if not sizing.memory.fits:
        st.info("It does not fit on this machine. The commands are those for a machine that holds it.")
    for found in launches(sizing):
        st.markdown(f"**{parts.plain(found.engine)}**")
        # No colours: those of shell code are too faint to read on either theme.
        st.code(found.command, language=None, wrap_lines=True)
        if found.compose is not None:
            with st.expander(f"The same as a file for docker compose ({parts.plain(found.engine)})"):
                st.code(found.compose, language=None)
        for note in found.notes:
            st.caption(parts.note(note))


def _capacity(sizing: Sizing) -> None:
    st.markdown(
        "Would the weights fit at all, before anything is known of engine and cache? Labelled parameters at "
        "one precision throughout, and 15 % of each GPU kept free. It can reject a machine, not promise one."
    )
    budget = st.number_input(
        "Room for caches, workspace and buffers of all requests [GB]",
        0.0,
        state.MOST_RESERVE_GB,
        0.0,
        5.0,
        key="reserve_gb",
        persist_state="session",
        width=420,
    )
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


def _record(sizing: Sizing) -> None:
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


def _formulas(sizing: Sizing) -> None:
    """Show every figure with its formula and the numbers of this configuration put in."""
    rental = None
    if sizing.workload.model.id in all_models():
        rental = size_rows.rental_of(parts.frame().scenario)
    usd_per_hour = None if rental is None or rental.usd_per_hour is None else float(rental.usd_per_hour)
    parts.table(
        [figure.to_document() for figure in sizing_figures(sizing, usd_per_hour)],
        alt="Formula, numbers and source of every figure of this configuration.",
        columns={
            "name": st.column_config.TextColumn("figure", pinned=True, width=180),
            "value": st.column_config.NumberColumn("value", format="%.6g"),
            "formula": st.column_config.TextColumn("formula", width=330),
            "numbers": st.column_config.TextColumn("numbers put in", width="large"),
            "is_estimate": "estimated",
        },
        key="formulas",
    )
    st.caption("The page Method derives each of them, with worked examples.")


def _simulator(sizing: Sizing) -> None:
    if sizing.speed is None:
        st.info("It does not fit on this machine, so there is no speed to show.")
        return
    _stream(size_rows.paces(parts.frame().scenario, sizing))


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


TABS = {
    "Formats": _formats,
    "Context": _contexts,
    "Fine-tuning": _finetuning,
    "Launch": _launch,
    "Formulas": _formulas,
    "Capacity screen": _capacity,
    "Model record": _record,
    "How it feels": _simulator,
}
show()
