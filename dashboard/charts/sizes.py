"""What fills the memory of a machine, and how that grows with the context."""

from collections.abc import Sequence
from dataclasses import replace

import altair as alt

from dashboard.charts.drawing import AXIS_HEIGHT, COLOURS, TEXT_SIZE, Drawing, cycle
from dashboard.charts.lines import lines
from dashboard.rows.points import Line, Part
from planner.sizing import Sizing
from planner.units import GB, GIB


def stack(parts: Sequence[Part], *, limit: float, limit_text: str, x_title: str, alt_text: str) -> Drawing:
    """Show pieces piled up, one row each, against a limit; the last row is the whole pile."""
    rows, start = [], 0.0
    for part in parts:
        rows.append({"row": part.label, "from": start, "to": start + part.size, "text": part.text})
        start += part.size
    names = [part.label for part in parts]
    over = start > limit
    y_axis = alt.Y("row:N", sort=names, title=None, axis=alt.Axis(labelLimit=220, labelFontSize=TEXT_SIZE))
    base = alt.Chart(alt.Data(values=rows))
    bars = base.mark_bar(height=18, cornerRadius=2).encode(
        x=alt.X("from:Q", title=x_title, scale=alt.Scale(domain=[0, 1.18 * max(start, limit)])),
        x2=alt.X2("to:Q"),
        y=y_axis,
        color=alt.Color("row:N", legend=None, scale=alt.Scale(domain=names, range=cycle(COLOURS, names))),
        tooltip=[alt.Tooltip("row:N", title="part"), alt.Tooltip("text:N", title="size")],
    )
    texts = base.mark_text(align="left", dx=6, fontSize=TEXT_SIZE).encode(
        x=alt.X("to:Q"), y=y_axis, text=alt.Text("text:N")
    )
    mark = alt.Chart(alt.Data(values=[{"limit": limit, "text": limit_text}]))
    rule = mark.mark_rule(
        strokeWidth=2.5, strokeDash=[6, 3], color=COLOURS[1] if over else COLOURS[2]
    ).encode(x=alt.X("limit:Q"))
    is_left = limit < 0.5 * max(start, limit)  # write towards the middle: the edge would cut the word off
    align, shift = ("left", 6) if is_left else ("right", -6)
    word = mark.mark_text(
        align=align, dx=shift, baseline="bottom", fontSize=TEXT_SIZE, fontWeight="bold"
    ).encode(x=alt.X("limit:Q"), y=alt.YValue(-4), text=alt.Text("text:N"))
    chart = alt.layer(bars, texts, rule, word).properties(height=30 * len(parts) + AXIS_HEIGHT)
    return Drawing(chart=chart, alt=alt_text)


def memory(sizing: Sizing) -> Drawing:
    """Show what fills the GPU memory of one configuration against what is usable."""
    document = sizing.memory.to_document()
    on_gpu = {
        "Weights": "weights_gib",
        "KV cache": "kv_cache_gib",
        "State": "state_gib",
        "Runtime": "runtime_gib",
    }
    sizes = {label: float(str(document[field])) for label, field in on_gpu.items()}
    sizes["Weights"] -= sizing.memory.offloaded_bytes / GIB  # what spills by itself is still in the total
    usable, total = float(str(document["usable_gib"])), float(str(document["total_gib"]))
    parts = [Part(label=k, size=v, text=f"{v:,.2f} GiB") for k, v in sizes.items() if v > 0 or k != "State"]
    listed = ", ".join(f"{part.label.lower()} {part.text}" for part in parts)
    verdict = "It fits" if sizing.memory.fits else "It does not run" if sizing.refusal else "It does not fit"
    drawing = stack(
        parts,
        limit=usable,
        limit_text=f"usable {usable:,.1f} GiB",
        x_title="GiB, all GPUs together",
        alt_text=f"{verdict}: {listed}; together {total:,.2f} of {usable:,.2f} GiB usable.",
    )
    amounts = [*((part.label, part.size) for part in parts), ("Needed", total), ("Usable", usable)]
    return replace(
        drawing, rows=[{"memory": name, "GiB": size, "GB": size * GIB / GB} for name, size in amounts]
    )


def context(sizings: Sequence[Sizing]) -> Drawing:
    """Show how the memory needed grows with the context, against what is usable."""
    rows = [(each.workload.context_tokens, each.memory.to_document()) for each in sizings]
    needed = [(float(tokens), float(str(memory["total_gib"]))) for tokens, memory in rows]
    usable = [(float(tokens), float(str(memory["usable_gib"]))) for tokens, memory in rows]
    said = ", ".join(f"{total:,.1f} GiB at {tokens:,.0f}" for tokens, total in needed)
    return lines(
        [Line(label="needed", points=needed), Line(label="usable", points=usable)],
        x_title="context [tokens]",
        y_title="GiB",
        alt_text=f"Memory needed by context length: {said} tokens; {usable[0][1]:,.1f} GiB are usable.",
        height=260,
    )
