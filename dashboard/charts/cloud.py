"""Machines by speed and price, with those that nothing beats."""

from collections.abc import Sequence

import altair as alt

from dashboard.charts.drawing import COLOURS, GREY, Drawing, cycle
from dashboard.rows.points import Dot


def cloud(dots: Sequence[Dot], *, x_title: str, y_title: str, alt_text: str, height: int = 380) -> Drawing:
    """Show points on two logarithmic axes; those on the front are joined and named."""
    kinds = list(dict.fromkeys(dot.kind for dot in dots))
    shapes = ["circle", "square", "triangle-up", "diamond", "cross"]
    values = [
        {"x": d.x, "y": d.y, "label": d.label, "kind": d.kind, "front": d.is_front}
        for d in dots
        if d.x > 0 and d.y > 0
    ]
    scale, axis = alt.Scale(type="log", nice=False, padding=20), alt.Axis(grid=False, format="~g")
    x_axis = alt.X("x:Q", title=x_title, scale=scale, axis=axis)
    y_axis = alt.Y("y:Q", title=y_title, scale=scale, axis=axis)
    colour = alt.Color(
        "kind:N",
        scale=alt.Scale(domain=kinds, range=cycle(COLOURS, kinds)),
        legend=alt.Legend(title=None, orient="top"),
    )
    base = alt.Chart(alt.Data(values=values))
    points = base.mark_point(size=80, filled=True, opacity=0.85).encode(
        x=x_axis,
        y=y_axis,
        color=colour,
        shape=alt.Shape("kind:N", scale=alt.Scale(domain=kinds, range=cycle(shapes, kinds))),
        tooltip=[
            alt.Tooltip("label:N", title="option"),
            alt.Tooltip("x:Q", title=x_title, format=",.1f"),
            alt.Tooltip("y:Q", title=y_title, format=",.2f"),
        ],
    )
    front = alt.Chart(alt.Data(values=sorted((v for v in values if v["front"]), key=lambda v: v["x"])))
    path = front.mark_line(color=GREY, strokeDash=[4, 3]).encode(x=x_axis, y=y_axis, order=alt.Order("x:Q"))
    # A narrow screen has no room for names: they stand in the caption and in the table.
    named = front.transform_calculate(shown="width < 500 ? '' : datum.label")
    names = named.mark_text(align="left", dx=8, dy=-8, fontSize=12, limit=200).encode(
        x=x_axis, y=y_axis, text=alt.Text("shown:N")
    )
    chart = (path + points + names).properties(height=height)
    ordered = sorted(values, key=lambda value: (not value["front"], value["y"]))
    rows = [{"option": v["label"], x_title: v["x"], y_title: v["y"], "kind": v["kind"]} for v in ordered]
    return Drawing(chart=chart, alt=alt_text, rows=rows)
