"""Tabs of the Size page on the machine: formats, contexts, fine-tuning, launch commands, formulas."""

from collections.abc import Mapping, Sequence

import streamlit as st

from dashboard import charts, frame, parts, taking
from dashboard.commands.sizing_text import machine_name
from dashboard.rows import size_rows
from planner import matrix
from planner.answers.sizing_figures import sizing_figures
from planner.catalogues.models import all_models
from planner.errors import InvalidScenario
from planner.launch import launches
from planner.sizing import Sizing


def _row(sizing: Sizing) -> dict[str, object]:
    """Return one sizing as a row of numbers."""
    memory = sizing.memory.to_document()
    return {
        "weights": memory["weights_gib"],
        "kv": memory["kv_cache_gib"],
        "total": memory["total_gib"],
        "total_gb": memory["total_gb"],
        "fits": size_rows.FIT_WORDS[sizing.memory.fits],
        **size_rows.speeds(sizing),
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


def formats(sizing: Sizing) -> None:
    """Show every weight format on the machine."""
    sized = matrix.with_given(matrix.over_quants(sizing.workload, sizing.machine), sizing)
    engine = frame.current().scenario.engine
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
    together: dict[str, list[str]] = {}
    for each, note in zip(sized, known, strict=True):
        together.setdefault(note, []).append(each.workload.quant.name)
    said = [{"format": ", ".join(names), "to know": note} for note, names in together.items() if note]
    if said:
        with st.expander("What to know of these formats"):
            parts.words(said, alt="What to know of each weight format on this machine.")
    _offer(rows, f"{sizing.workload.model.name} on {where}, by format")


def contexts(sizing: Sizing) -> None:
    """Show every context length on the machine."""
    sized = matrix.with_given(matrix.over_contexts(sizing.workload, sizing.machine), sizing)
    rows = [{"context": each.workload.context_tokens} | _row(each) for each in sized]
    parts.draw(charts.context(sized), key="context_chart")
    where = machine_name(sizing)
    parts.table(
        rows, alt=f"Memory and speed at each context length on {where}.", columns=_columns(), key="contexts"
    )
    parts.estimate_note()
    _offer(rows, f"{sizing.workload.model.name} on {where}, by context")


def _offer(rows: Sequence[Mapping[str, object]], title: str) -> None:
    taking.offer(rows, _columns(), title=title, sources=taking.METHODOLOGY)


def finetuning(sizing: Sizing) -> None:
    """Show what training the model takes."""
    document = size_rows.finetuning_of(sizing.workload.model)
    number = st.column_config.NumberColumn
    parts.table(
        document.rows,
        alt=f"Memory for fine-tuning {sizing.workload.model.name}, by three ways and two methods.",
        columns={
            "tuning": "what is trained",
            "method": "estimate",
            "weights_gib": number("weights* [GiB]", format="%.2f"),
            "gradients_optimizer_gib": number("gradients, optimizer* [GiB]", format="%.2f"),
            "activations_gib": number("activations, buffers* [GiB]", format="%.2f"),
            "total_gib": number("total* [GiB]", format="%.2f"),
            "smallest": st.column_config.TextColumn("smallest machine", width="medium"),
        },
        key="finetuning",
    )
    parts.estimate_note()
    for note in document.notes:
        st.caption(parts.plain(note))


def launch(sizing: Sizing) -> None:
    """Show the commands that deploy it."""
    try:
        ways = launches(sizing)
    except InvalidScenario as error:
        st.info(parts.note(f"Nothing is started with {sizing.workload.engine}: {error}."))
        return
    if not sizing.memory.fits:
        st.info("It does not fit on this machine. The commands are those for a machine that holds it.")
    for found in ways:
        st.markdown(f"**{parts.plain(found.engine)}**")
        # No colours: those of shell code are too faint to read on either theme.
        st.code(found.command, language=None, wrap_lines=True)
        if found.compose is not None:
            with st.expander(f"The same as a file for docker compose ({parts.plain(found.engine)})"):
                st.code(found.compose, language=None)
        for note in found.notes:
            st.caption(parts.note(note))


def formulas(sizing: Sizing) -> None:
    """Show every figure with its formula and the numbers of this configuration put in."""
    rental = None
    if sizing.workload.model.id in all_models():
        rental = size_rows.rental_of(frame.current().scenario)
    usd_per_hour = None if rental is None or rental.usd_per_hour is None else float(rental.usd_per_hour)
    parts.explained(
        sizing_figures(sizing, usd_per_hour),
        frame.current().money,
        alt="Formula, numbers and source of every figure of this configuration.",
    )
    parts.estimate_note()
    st.caption("The page Method derives each of them, with worked examples.")
