"""What one assumption does to the answer, and which does most."""

from collections.abc import Sequence
from dataclasses import replace
from textwrap import wrap
from typing import TYPE_CHECKING

import altair as alt

from dashboard.charts.drawing import AXIS_HEIGHT, COLOURS, GREY, Drawing
from dashboard.charts.lines import as_rows, lines
from dashboard.rows.points import Line

if TYPE_CHECKING:
    from dashboard.what_if import Effect, Influence

ROW_HEIGHT = 48  # a bar of 12 px, two lines of 14 px above it, and air up to the bar before
LEGEND_HEIGHT = 50
LETTERS_ON_A_PHONE = 57  # of 12 px in a line of a screen of 390 px


def effect(found: "Effect") -> Drawing | None:
    """Show what a month costs as a function of one assumption, with its present value marked."""
    ways = (("rent", found.rent), ("own", found.own))
    series = [
        Line(
            label=label, points=[(x, y) for x, y in zip(found.values, amounts, strict=True) if y is not None]
        )
        for label, amounts in ways
    ]
    series = [line for line in series if line.points]
    if not series:
        return None
    ends = "; ".join(
        f"{line.label} {line.points[0][1]:,.0f} to {line.points[-1][1]:,.0f} {found.currency} a month"
        for line in series
    )
    drawing = lines(
        series,
        x_title=f"{found.title} [{found.unit}]" + ("; dotted: now" if found.here is not None else ""),
        y_title=f"{found.currency}/month",
        alt_text=f"{found.title} from {found.values[0]:g} to {found.values[-1]:g} {found.unit}: {ends}.",
        here=found.here,
        height=260,
    )
    return replace(drawing, rows=as_rows(series, found.title))


def tornado(found: Sequence["Influence"], currency: str, most: int = 10) -> Drawing | None:
    """Show how far each assumption moves what owning costs more than renting, the strongest on top."""
    if not found:
        return None
    sides = ["low end, thin", "high end, thick"]  # told apart without colour too
    values: list[dict[str, object]] = []
    for each in found[:most]:
        low, high = each.values[0], each.values[-1]
        name = f"{each.title} ({low:g} to {high:g} {each.unit})"
        for side, end, gap in zip(sides, (low, high), (each.gaps[0], each.gaps[-1]), strict=True):
            values.append({"name": name, "from": each.gap_here, "to": gap, "side": side, "at": f"{end:g}"})
    names = list(dict.fromkeys(value["name"] for value in values))
    title = f"owning less renting [{currency}/month]; dotted: now"
    y_axis = alt.Y("name:N", sort=names, title=None, axis=None)
    base = alt.Chart(alt.Data(values=values))
    bars = base.mark_bar().encode(
        x=alt.X("from:Q", title=title, axis=alt.Axis(format="~s", tickCount=6)),
        x2=alt.X2("to:Q"),
        y=y_axis,
        size=alt.Size("side:N", scale=alt.Scale(domain=sides, range=[6, 12]), legend=None),
        color=alt.Color(
            "side:N",
            scale=alt.Scale(domain=sides, range=list(COLOURS[:2])),
            legend=alt.Legend(title=None, orient="top"),
        ),
        tooltip=[
            alt.Tooltip("name:N", title="assumption"),
            alt.Tooltip("at:N", title="at"),
            alt.Tooltip("to:Q", title=title, format=",.0f"),
        ],
    )
    zero = (
        alt.Chart(alt.Data(values=[{"x": 0.0}])).mark_rule(strokeWidth=1.5, color=GREY).encode(x=alt.X("x:Q"))
    )
    now = alt.Chart(alt.Data(values=[{"x": found[0].gap_here}]))
    now = now.mark_rule(strokeWidth=1.5, strokeDash=[2, 3], color=GREY).encode(x=alt.X("x:Q"))
    first = found[0]
    gaps = f"{first.gaps[0]:,.0f} to {first.gaps[-1]:,.0f} {currency} a month"
    gap, word = abs(first.gap_here), "more" if first.gap_here >= 0.0 else "less"
    return Drawing(
        chart=alt.layer(bars, zero, now, *_names_above(names, y_axis)).properties(
            height=ROW_HEIGHT * len(names) + AXIS_HEIGHT + LEGEND_HEIGHT
        ),
        alt=f"Owning costs {gap:,.0f} {currency} a month {word} than renting. "
        f"{first.title} moves it most: from {gaps}.",
    )


def _names_above(names: Sequence[str], y_axis: alt.Y) -> list[alt.Chart]:
    """
    Write names above their bars, in two lines on a phone: beside the bars there is no room for them.

    Vega lets further lines grow downwards, into the bar, so that each line is a layer of its own.
    """
    lines = [wrap(name, LETTERS_ON_A_PHONE, max_lines=2) for name in names]
    values = [
        {"name": name, "first": parts[0] if len(parts) > 1 else "", "last": parts[-1]}
        for name, parts in zip(names, lines, strict=True)
    ]
    base = alt.Chart(alt.Data(values=values)).transform_calculate(
        upper="width < 500 ? datum.first : ''", lower="width < 500 ? datum.last : datum.name"
    )
    return [
        base.mark_text(align="left", baseline="bottom", dy=shift, fontSize=12).encode(
            x=alt.XValue(0), y=y_axis, text=alt.Text(f"{field}:N")
        )
        for field, shift in (("upper", -22), ("lower", -8))
    ]
