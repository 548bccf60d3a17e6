"""
Charts as Altair objects, made from plain records: nothing here reads a database or a page.

Each has direct labels, dash as well as colour, and a sentence for those who cannot see it (`Drawing.alt`).
"""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import altair as alt
import numpy as np
from altair.utils import schemapi

from dashboard.what_if import Effect, Influence
from planner.compare import CostByHours, Crossing
from planner.money import Money
from planner.sizing import Sizing
from planner.units import GIB
from pricing.stored import StoredOffer

# Checking each part of a chart while it is built takes most of the time of a page; the tests check the whole.
schemapi.disable_debug_mode()

# Okabe and Ito (2008), "Color Universal Design": told apart by all kinds of colour vision. Yellow and black
# are left out: they vanish on one of the two themes.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
BLUE_ON_DARK = "#3D9BDC"  # the first of them is too dark there for words: 3.5:1; this one is 5.7:1
TEXT_COLOURS = ("#31333f", "#e6e6e6")  # on light and on dark, both above 10:1
DASHES = ((1, 0), (6, 3), (2, 2), (8, 3, 2, 3), (10, 4), (1, 3))
GREY = "#7f7f7f"
TEXT_SIZE = 13
AXIS_HEIGHT = 70  # title, labels and the word above the plot


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One named series; points are (x, y), in order of x."""

    label: str
    points: Sequence[tuple[float, float]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """A point worth naming."""

    x: float
    y: float
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One piece of a stack, in the order in which they are piled up."""

    label: str
    size: float
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Dot:
    """One named point of a cloud; those on the front are marked."""

    x: float
    y: float
    label: str
    kind: str
    is_front: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    """A chart and the sentence that stands for it."""

    chart: Any
    alt: str
    title: str = ""
    names: str = ""  # what the short labels stand for
    key: str | None = None
    rows: Sequence[Mapping[str, object]] = ()  # the figures behind it

    def to_spec(self, *, is_dark: bool) -> dict[str, Any]:
        """
        Return the chart as the browser draws it, words in the colour of the page's text.

        The theme's own colour is too pale to read. The specification is not checked against its schema again:
        that takes longer than all the rest, and the tests do it.

        Args:
            is_dark: Whether the page is dark.
        """
        spec: dict[str, Any] = self.chart.to_dict(validate=False)
        if is_dark:
            spec = json.loads(json.dumps(spec).replace(COLOURS[0], BLUE_ON_DARK))
        text = TEXT_COLOURS[is_dark]
        axis = {"labelColor": text, "titleColor": text, "labelFontSize": 12, "titleFontSize": 13}
        legend = {"labelColor": text, "labelFontSize": 12}
        return spec | {"config": {"axis": axis, "legend": legend, "text": {"color": text}}}


def crossing(found: Crossing, money: Money) -> Drawing | None:
    """Show the money spent on each way, month by month, and where owning has cost as much as renting."""
    ways = (
        ("rent", found.rent_name, found.rent_usd),
        ("own", found.own_name, found.own_usd),
        ("API", found.api_name, found.api_usd),
    )
    series = _series(ways, found.months, money)
    if not series:
        return None
    marks = []
    meets = found.break_even_months
    if meets is not None and found.rent_usd is not None:
        spent = money.amount(float(np.interp(meets, found.months, found.rent_usd)))
        marks.append(Mark(x=meets, y=spent, text=f"pays back after {meets:,.1f} months"))
    names = _names(ways)
    end = "; ".join(f"{line.label} {line.points[-1][1]:,.0f} {money.currency}" for line in series)
    said = marks[0].text if marks else "owning does not pay back within the term"
    drawing = lines(
        series,
        x_title="months",
        y_title=money.currency,
        alt_text=f"{names}. Money spent after {found.months[-1]:,.0f} months: {end}. On this chart {said}.",
        marks=marks,
    )
    return replace(
        drawing,
        title=f"Money spent over {found.months[-1]:,.0f} months",
        names=names,
        key="crossing_chart",
        rows=_as_rows(series, "months"),
    )


def cost_by_hours(found: CostByHours, money: Money, here: float) -> Drawing | None:
    """Show the cost of a month against the hours of use a day, with the present hours marked."""
    ways = (
        ("rent", found.rent_name, found.rent_usd_per_month),
        ("own", found.own_name, found.own_usd_per_month),
    )
    series = _series(ways, found.hours_per_day, money)
    if not series:
        return None
    marks = []
    meets = found.break_even_hours_per_day
    if meets is not None and found.rent_usd_per_month is not None:
        cost = money.amount(float(np.interp(meets, found.hours_per_day, found.rent_usd_per_month)))
        marks.append(Mark(x=meets, y=cost, text=f"the same at {meets:,.1f} h a day"))
    said = f"They cost {marks[0].text}." if marks else "They do not meet within 24 hours a day."
    names = _names(ways)
    drawing = lines(
        series,
        x_title="hours a day; dotted: now",
        y_title=f"{money.currency}/month",
        alt_text=f"{names}. Cost of a month against hours a day. {said} Now it is {here:g} hours.",
        marks=marks,
        here=here,
    )
    return replace(
        drawing,
        title="Cost of a month by hours of use",
        names=names,
        key="hours_chart",
        rows=_as_rows(series, "hours a day"),
    )


def lines(
    series: Sequence[Line],
    *,
    x_title: str,
    y_title: str,
    alt_text: str,
    marks: Sequence[Mark] = (),
    here: float | None = None,
    step: bool = False,
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
        here: Present value of x, shown as a vertical rule.
        step: Whether a value holds until the next point.
        height: Of the chart. [px]
    """
    values = [{"x": x, "y": y, "line": line.label} for line in series for x, y in line.points]
    top = max((value["y"] for value in values), default=1.0)
    labels = [line.label for line in series]
    colour = alt.Color("line:N", legend=None, scale=alt.Scale(domain=labels, range=_cycle(COLOURS, labels)))
    dash = alt.StrokeDash("line:N", legend=None, scale=alt.Scale(domain=labels, range=_cycle(DASHES, labels)))
    x_axis = alt.X("x:Q", title=x_title, axis=alt.Axis(grid=False))
    y_axis = alt.Y("y:Q", title=y_title, axis=alt.Axis(format="~s", tickCount=6))
    tips = [
        alt.Tooltip("line:N", title="option"),
        alt.Tooltip("x:Q", title=x_title, format=",.1f"),
        alt.Tooltip("y:Q", title=y_title, format=",.2f"),
    ]
    layers: list[Any] = [
        alt.Chart(alt.Data(values=values))
        .mark_line(strokeWidth=2.5, interpolate="step-after" if step else "linear")
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
        is_left = mark.x < 0.5 * max((value["x"] for value in values), default=0.0)
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
        color=alt.Color("row:N", legend=None, scale=alt.Scale(domain=names, range=_cycle(COLOURS, names))),
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
    verdict = "It fits" if sizing.memory.fits else "It does not fit"
    return stack(
        parts,
        limit=usable,
        limit_text=f"usable {usable:,.1f} GiB",
        x_title="GiB, all GPUs together",
        alt_text=f"{verdict}: {listed}; together {total:,.2f} of {usable:,.2f} GiB usable.",
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


def history(gpu: str, offers: Sequence[StoredOffer]) -> Drawing:
    """Show prices of one GPU over time: each as long as it was seen, nothing in between."""
    providers = [name for name, _ in Counter(offer.provider for offer in offers).most_common(len(COLOURS))]
    values = [
        {
            "from": offer.first_seen_at.isoformat(),
            "to": offer.seen_at.isoformat(),
            "usd": float(offer.usd_per_gpu_hour),
            "provider": offer.provider if offer.provider in providers else "others",
            "what": f"{offer.gpu_count}x, {offer.tier}, {offer.region or 'any region'}",
        }
        for offer in offers
    ]
    names = [*providers, *(["others"] if any(v["provider"] == "others" for v in values) else [])]
    colour = alt.Color(
        "provider:N",
        scale=alt.Scale(domain=names, range=[*_cycle(COLOURS, providers), GREY][: len(names)]),
        legend=alt.Legend(title=None, orient="top", columns=4),
    )
    base = alt.Chart(alt.Data(values=values)).encode(
        x=alt.X("from:T", title="seen", axis=alt.Axis(format="%Y-%m-%d", tickCount=8)),
        y=alt.Y("usd:Q", title="USD/GPU-h", scale=alt.Scale(zero=False)),
        color=colour,
        tooltip=[
            "provider:N",
            alt.Tooltip("what:N", title="offer"),
            alt.Tooltip("usd:Q", title="USD/GPU-h", format=".3f"),
            alt.Tooltip("from:T", title="from", format="%Y-%m-%d"),
            alt.Tooltip("to:T", title="to", format="%Y-%m-%d"),
        ],
    )
    shapes = ["circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "stroke"]
    shape = alt.Shape("provider:N", scale=alt.Scale(domain=names, range=_cycle(shapes, names)), legend=None)
    spans = base.mark_rule(strokeWidth=2).encode(x2="to:T")
    starts = base.mark_point(size=26, filled=True).encode(shape=shape)
    first, last = min(v["from"] for v in values)[:10], max(v["to"] for v in values)[:10]
    cheapest = min(v["usd"] for v in values)
    return Drawing(
        chart=(spans + starts).properties(height=360),
        alt=f"{len(values)} prices of {gpu} from {first} to {last}; "
        f"the lowest was {cheapest:.3f} USD per GPU-hour.",
    )


def price_bars(rows: Sequence[Mapping[str, Any]], most: int = 20) -> Drawing:
    """Show the cheapest price per GPU-hour of each GPU among these offers; of those offered most often."""
    often = {gpu for gpu, _ in Counter(row["gpu"] for row in rows).most_common(most)}
    cheapest: dict[str, Mapping[str, Any]] = {}
    for row in sorted(rows, key=lambda row: row["usd_per_gpu_hour"]):
        if row["gpu"] in often:
            cheapest.setdefault(row["gpu"], row)
    values = [
        {
            "gpu": gpu,
            "usd": row["usd_per_gpu_hour"],
            "text": f"{row['usd_per_gpu_hour']:.2f}  {row['provider']}, {row['tier']}, "
            f"{row['seen_at']:%Y-%m-%d}",
        }
        for gpu, row in cheapest.items()
    ]
    names = [value["gpu"] for value in values]
    base = alt.Chart(alt.Data(values=values)).encode(
        x=alt.X("usd:Q", title="USD/GPU-h", scale=alt.Scale(domain=[0, 1.6 * max(v["usd"] for v in values)])),
        y=alt.Y("gpu:N", sort=names, title=None, axis=alt.Axis(labelLimit=220)),
        tooltip=["gpu:N", alt.Tooltip("text:N", title="cheapest")],
    )
    bars = base.mark_bar(color=COLOURS[0], height=14)
    words = base.mark_text(align="left", dx=6, fontSize=12).encode(text=alt.Text("text:N"))
    said = ", ".join(f"{value['gpu']} {value['usd']:.2f}" for value in values[:5])
    return Drawing(
        chart=(bars + words).properties(height=24 * len(values) + AXIS_HEIGHT),
        alt=f"Cheapest price of each GPU in USD per GPU-hour: {said} and so on.",
        title=f"The cheapest of each, for the {len(values)} GPUs that are offered most often"
        if len(values) > 1
        else "The cheapest of these",
    )


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
        scale=alt.Scale(domain=kinds, range=_cycle(COLOURS, kinds)),
        legend=alt.Legend(title=None, orient="top"),
    )
    base = alt.Chart(alt.Data(values=values))
    points = base.mark_point(size=80, filled=True, opacity=0.85).encode(
        x=x_axis,
        y=y_axis,
        color=colour,
        shape=alt.Shape("kind:N", scale=alt.Scale(domain=kinds, range=_cycle(shapes, kinds))),
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


def effect(found: Effect) -> Drawing | None:
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
    return replace(drawing, rows=_as_rows(series, found.title))


def tornado(found: Sequence[Influence], currency: str, most: int = 12) -> Drawing | None:
    """Show how far each assumption moves what owning costs more than renting, the strongest on top."""
    if not found:
        return None
    values: list[dict[str, object]] = []
    for each in found[:most]:
        name = f"{each.title} ({each.low:g} to {each.high:g} {each.unit})"
        for end, gap in ((each.low, each.gap_low), (each.high, each.gap_high)):
            side = "low end" if end == each.low else "high end"
            values.append({"name": name, "from": each.gap_here, "to": gap, "side": side, "at": f"{end:g}"})
    names = list(dict.fromkeys(value["name"] for value in values))
    sides = ["low end", "high end"]
    title = f"owning less renting [{currency}/month]; dotted: now"
    y_axis = alt.Y("name:N", sort=names, title=None, axis=None)
    base = alt.Chart(alt.Data(values=values))
    # Names stand above their bars: beside them a narrow screen would have no room for the bars.
    words = alt.Chart(alt.Data(values=[{"name": name} for name in names]))
    words = words.mark_text(align="left", baseline="bottom", dy=-8, fontSize=12).encode(
        x=alt.XValue(0), y=y_axis, text=alt.Text("name:N")
    )
    bars = base.mark_bar(height=12).encode(
        x=alt.X("from:Q", title=title, axis=alt.Axis(format="~s", tickCount=6)),
        x2=alt.X2("to:Q"),
        y=y_axis,
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
    strongest = (
        f"{first.title} moves it most: {first.gap_low:,.0f} to {first.gap_high:,.0f} {currency} a month"
    )
    rows = [
        {
            "assumption": each.title,
            "unit": each.unit,
            "now": each.here,
            "low": each.low,
            "high": each.high,
            "owning less renting": [each.gap_low, each.gap_here, each.gap_high],
            "moves it by": each.swing,
            "turns the answer": "yes" if each.flips else None,
            "source": each.source,
        }
        for each in found
    ]
    return Drawing(
        chart=alt.layer(bars, zero, now, words).properties(height=42 * len(names) + AXIS_HEIGHT),
        alt=f"Owning costs {first.gap_here:,.0f} {currency} a month more than renting. {strongest}.",
        rows=rows,
    )


def _series(
    ways: Sequence[tuple[str, str | None, Sequence[float] | None]], x: Sequence[float], money: Money
) -> list[Line]:
    """Return a line for each way that there is, in the currency that is shown."""
    return [
        Line(label=label, points=[(at, money.amount(usd)) for at, usd in zip(x, amounts, strict=True)])
        for label, _, amounts in ways
        if amounts is not None
    ]


def _names(ways: Sequence[tuple[str, str | None, Sequence[float] | None]]) -> str:
    """Say what the short labels stand for."""
    return "; ".join(name for _, name, amounts in ways if name is not None and amounts is not None)


def _as_rows(series: Sequence[Line], x_name: str) -> list[dict[str, object]]:
    """Return lines over the same x as a table, a column for each."""
    rows: dict[float, dict[str, object]] = {}
    for line in series:
        for x, y in line.points:
            rows.setdefault(x, {x_name: x})[line.label] = y
    return list(rows.values())


def _cycle(choices: Sequence[Any], names: Sequence[str]) -> list[Any]:
    return [choices[index % len(choices)] for index in range(len(names))]


def _end_labels(series: Sequence[Line], gap: float) -> list[Mapping[str, object]]:
    """Place each name beside the end of its line, at least `gap` apart so that none covers another."""
    ends = sorted((line.points[-1][1], line.points[-1][0], line.label) for line in series if line.points)
    placed, below = [], float("-inf")
    for y, x, label in ends:
        below = max(y, below + gap)
        placed.append({"x": x, "y": below, "line": label})
    return placed
