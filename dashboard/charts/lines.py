"""Lines that may cross, each named at its end."""

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt

from dashboard.charts.drawing import COLOURS, DASHES, GREY, TEXT_SIZE, Drawing, cycle
from dashboard.rows.points import Line, Mark, Span


def lines(
    series: Sequence[Line],
    *,
    x_title: str,
    y_title: str,
    alt_text: str,
    marks: Sequence[Mark] = (),
    span: Span | None = None,
    here: float | None = None,
    whole: bool = False,
    height: int = 320,
) -> Drawing:
    """
    Lines that may cross, each named at its end.

    Args:
        series: The lines.
        x_title: With its unit.
        y_title: With its unit.
        alt_text: What the chart says.
        marks: Crossings and other named points.
        span: A stretch of x, shaded; left out where it begins beyond the lines.
        here: Present value of x, shown as a vertical rule.
        whole: Whether x counts things.
        height: Of the chart. [px]
    """
    values = [{"x": x, "y": y, "line": line.label} for line in series for x, y in line.points]
    top = max((value["y"] for value in values), default=1.0)
    labels = [line.label for line in series]
    colour = alt.Color("line:N", legend=None, scale=alt.Scale(domain=labels, range=cycle(COLOURS, labels)))
    dash = alt.StrokeDash("line:N", legend=None, scale=alt.Scale(domain=labels, range=cycle(DASHES, labels)))
    x_axis = alt.X("x:Q", title=x_title, axis=alt.Axis(grid=False, **({"tickMinStep": 1} if whole else {})))
    y_axis = alt.Y("y:Q", title=y_title, axis=alt.Axis(format="~s", tickCount=6))
    tips = [
        alt.Tooltip("line:N", title="option"),
        alt.Tooltip("x:Q", title=x_title, format=",.1f"),
        alt.Tooltip("y:Q", title=y_title, format=",.2f"),
    ]
    last = max((value["x"] for value in values), default=0.0)
    layers: list[Any] = [
        *([] if span is None or span.start >= last else _shaded(span, last)),
        alt.Chart(alt.Data(values=values))
        .mark_line(strokeWidth=2.5)
        .encode(x=x_axis, y=y_axis, color=colour, strokeDash=dash, tooltip=tips),
        alt.Chart(alt.Data(values=_end_labels(series, gap=top * TEXT_SIZE * 1.3 / height)))
        .mark_text(align="left", dx=6, fontSize=TEXT_SIZE, fontWeight="bold", limit=220)
        .encode(x=alt.X("x:Q"), y=alt.Y("y:Q"), text=alt.Text("line:N"), color=colour),
    ]
    if here is not None:
        layers.append(
            alt.Chart(alt.Data(values=[{"x": here}]))
            .mark_rule(color=GREY, strokeDash=[2, 3])
            .encode(x=alt.X("x:Q"))
        )
    for mark in marks:
        # Two rising lines leave room to the lower right of where they cross, and to the upper left.
        is_left = mark.x < 0.5 * last
        align, dx, dy = ("left", 8, 18) if is_left else ("right", -8, -16)
        point = alt.Chart(alt.Data(values=[{"x": mark.x, "y": mark.y, "text": mark.text}]))
        layers += [
            point.mark_point(size=110, filled=False, strokeWidth=2.5, color=GREY).encode(
                x=alt.X("x:Q"), y=alt.Y("y:Q")
            ),
            point.mark_text(align=align, dx=dx, dy=dy, fontSize=TEXT_SIZE).encode(
                x=alt.X("x:Q"), y=alt.Y("y:Q"), text=alt.Text("text:N")
            ),
        ]
    chart = alt.layer(*layers).properties(height=height)
    return Drawing(chart=chart, alt=alt_text)


def _shaded(span: Span, last: float) -> list[Any]:
    """Shade a stretch of x up to the end of the chart at most, with its name above and dashes at its ends."""
    end = last if span.end is None else min(span.end, last)
    area = alt.Chart(alt.Data(values=[{"from": span.start, "until": end, "text": span.text}]))
    edges = [span.start] if end == last else [span.start, end]
    rules = alt.Chart(alt.Data(values=[{"edge": edge} for edge in edges]))
    is_left = span.start + end < last  # write towards the middle: the edge of the chart would cut words off
    align, at = ("left", "from:Q") if is_left else ("right", "until:Q")
    return [
        area.mark_rect(color=GREY, opacity=0.16).encode(x=alt.X("from:Q"), x2=alt.X2("until:Q")),
        rules.mark_rule(color=GREY, strokeDash=[4, 3]).encode(x=alt.X("edge:Q")),
        area.mark_text(align=align, baseline="bottom", fontSize=12).encode(
            x=alt.X(at), y=alt.YValue(-4), text=alt.Text("text:N")
        ),
    ]


def as_rows(series: Sequence[Line], x_name: str) -> list[dict[str, object]]:
    """Return lines over the same x as a table, a column for each."""
    rows: dict[float, dict[str, object]] = {}
    for line in series:
        for x, y in line.points:
            rows.setdefault(x, {x_name: x})[line.label] = y
    return list(rows.values())


def _end_labels(series: Sequence[Line], gap: float) -> list[Mapping[str, object]]:
    """Place each name beside the end of its line, at least `gap` apart so that none covers another."""
    ends = sorted((line.points[-1][1], line.points[-1][0], line.label) for line in series if line.points)
    placed, below = [], float("-inf")
    for y, x, label in ends:
        below = max(y, below + gap)
        placed.append({"x": x, "y": below, "line": label})
    return placed
