"""Compare: models against GPUs in words, and machines against each other for one model."""

from collections.abc import Sequence
from typing import Any

import streamlit as st

from dashboard import charts, data, frame, parts, tables, taking
from dashboard.commands.sizing_text import machine_name
from dashboard.form import choices
from dashboard.rows import plan_rows, points, size_rows
from planner import matrix
from planner.catalogues.gpus import all_gpus
from planner.catalogues.models import all_models

# A first look: open models of every size that people ask for.
MODELS = (
    "qwen3-8b",
    "gpt-oss-20b",
    "qwen3-32b",
    "qwen3.5-35b-a3b",
    "llama-3.3-70b-instruct",
    "gpt-oss-120b",
    "glm-4.5-air",
    "qwen3-235b-a22b-2507",
    "qwen3-coder-480b-a35b",
    "deepseek-v3.2",
    "kimi-k2-instruct",
)


def show() -> None:
    """Draw the page."""
    drawn = frame.current()
    scenario = drawn.scenario
    with drawn.head, st.container(key="answer"):
        st.subheader("Which machine holds which model?", anchor=False)
        st.markdown(
            parts.plain(
                f"In {scenario.quant}, {scenario.context:,} tokens of context for each of "
                f"{tables.plural(scenario.batch, 'sequence')}: the smallest number of GPUs that holds it."
            )
        )
    with st.container(horizontal=True):
        first = "a first selection; choose your own"
        models = choices.choose_any("show_models", "Models", list(all_models()), placeholder=first, width=540)
        gpus = choices.choose_any("show_gpus", "GPUs", list(all_gpus()), placeholder=first, width=540)
    cells = size_rows.fit_cells(scenario, models or MODELS, gpus or size_rows.COMMON_GPUS)
    parts.grid(cells, corner="model", alt=_said(cells), key="fit_grid")
    with st.expander("How fast each is for one user"):
        parts.table(
            size_rows.cells_as_rows(cells), alt="The smallest machine that holds each model, and its speed."
        )
        parts.estimate_note()
    _price_and_speed()
    _machines()
    _models(models or MODELS)


def _price_and_speed() -> None:
    found = data.plan(frame.current().scenario)
    dots = plan_rows.price_and_speed(found)
    if not dots:
        return
    st.subheader(f"Price and speed for {parts.plain(found.model.name)}", anchor=False)
    front = [dot.label for dot in dots if dot.is_front]
    best = ", ".join(front)
    drawing = charts.cloud(
        dots,
        x_title="speed for one user* [tok/s]",
        y_title=f"{found.money.currency}/M tokens*",
        alt_text=f"{len(dots)} machines by speed and price of tokens. None beats these in both: {best}.",
    )
    parts.draw(drawing, key="price_and_speed", rows=drawing.rows)
    joined = "The dashed line joins the machines that no other beats" if len(front) > 1 else "No other beats"
    st.caption(f"{joined} in both: {parts.plain(best)}.")


def _said(cells: list[points.Cell]) -> str:
    said = "; ".join(f"{cell.row} on {cell.column}: {cell.word}" for cell in cells[:6])
    return f"How many GPUs hold each model. {said}; and so on, see the table."


def _models(names: Sequence[str]) -> None:
    """Show models against each other on the machine of the question."""
    scenario = frame.current().scenario
    place = size_rows.machine(scenario)
    where = f"{place.gpu_count}x {place.gpu.name}"
    st.subheader(f"Models on {parts.plain(where)}", anchor=False)
    st.caption("The models chosen above; GPU and number are those of the question.")
    parts.table(
        size_rows.models_on(scenario, names),
        alt=f"Models on {where}, fastest first.",
        columns={"model": st.column_config.TextColumn("model", pinned=True), "fits": "here", **_columns()},
        key="models_on",
    )
    parts.estimate_note(f"In {scenario.quant}; an empty speed: it does not fit.")


def _machines() -> None:
    scenario = frame.current().scenario
    st.subheader(f"Machines for {parts.plain(scenario.model)}", anchor=False)
    count = scenario.gpus or 1
    work = size_rows.workload(scenario)
    sized = [each for each in matrix.over_gpus(work, count) if each.speed is not None]
    if not sized:
        st.info(
            f"No device holds it with {tables.plural(count, 'GPU')}. Set GPUs per replica to a higher number."
        )
        return
    rows = [{"machine": machine_name(each), **size_rows.comparable(each)} for each in sized]
    ordered = sorted(rows, key=lambda row: -float(str(row["decode"])))
    columns = {"machine": st.column_config.TextColumn("machine", pinned=True), **_columns()}
    alt = f"Machines that hold {scenario.model}, fastest first."
    parts.table(ordered, alt=alt, columns=columns, key="machines")
    parts.estimate_note(f"{tables.plural(count, 'GPU')} each; devices that do not hold it are left out.")
    taking.offer(ordered, columns, title=f"Machines for {scenario.model}", sources=taking.METHODOLOGY)


def _columns() -> dict[str, Any]:
    number = st.column_config.NumberColumn
    return {
        "total": number("needed [GiB]", format="%.1f"),
        "usable": number("usable [GiB]", format="%.1f"),
        "decode": number("decode* [tok/s]", format="%.1f"),
        "aggregate": number("all sequences* [tok/s]", format="%.0f"),
        "ttft": number("first token* [ms]", format="%.0f"),
        "bound": "limited by",
        "max_context": number("longest context [tokens]", format="localized"),
        "max_batch": number("most sequences", format="localized"),
    }


show()
