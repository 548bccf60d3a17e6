"""Prices over time, and the cheapest of each GPU."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import altair as alt

from dashboard import tables
from dashboard.charts.drawing import AXIS_HEIGHT, COLOURS, GREY, Drawing, cycle
from planner.answers.money import Money

if TYPE_CHECKING:
    from pricing.storage.stored import StoredOffer


def history(gpu: str, offers: Sequence["StoredOffer"], money: Money) -> Drawing:
    """Show prices of one GPU over time: each as long as it was seen, nothing in between."""
    unit = f"{money.currency}/GPU-h"
    providers = [name for name, _ in Counter(offer.provider for offer in offers).most_common(len(COLOURS))]
    values = [
        {
            "from": offer.first_seen_at.isoformat(),
            "to": offer.seen_at.isoformat(),
            "price": money.amount(float(offer.usd_per_gpu_hour)),
            "provider": offer.provider if offer.provider in providers else "others",
            "what": f"{offer.gpu_count}x, {offer.tier}, {offer.region or 'any region'}",
        }
        for offer in offers
    ]
    rows = [
        {
            "from": offer.first_seen_at,
            "to": offer.seen_at,
            unit: money.amount(float(offer.usd_per_gpu_hour)),
            "provider": offer.provider,
            "GPUs": offer.gpu_count,
            "tier": str(offer.tier),
            "region": offer.region,
            "source": tables.address_of(offer.source_url),
        }
        for offer in offers
    ]
    names = [*providers, *(["others"] if any(v["provider"] == "others" for v in values) else [])]
    colour = alt.Color(
        "provider:N",
        scale=alt.Scale(domain=names, range=[*cycle(COLOURS, providers), GREY][: len(names)]),
        legend=alt.Legend(title=None, orient="top", columns=4),
    )
    base = alt.Chart(alt.Data(values=values)).encode(
        x=alt.X("from:T", title="seen", axis=alt.Axis(format="%Y-%m-%d", tickCount=8)),
        y=alt.Y("price:Q", title=unit, scale=alt.Scale(zero=False)),
        color=colour,
        tooltip=[
            "provider:N",
            alt.Tooltip("what:N", title="offer"),
            alt.Tooltip("price:Q", title=unit, format=".3f"),
            alt.Tooltip("from:T", title="from", format="%Y-%m-%d"),
            alt.Tooltip("to:T", title="to", format="%Y-%m-%d"),
        ],
    )
    shapes = ["circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "stroke"]
    shape = alt.Shape("provider:N", scale=alt.Scale(domain=names, range=cycle(shapes, names)), legend=None)
    spans = base.mark_rule(strokeWidth=2).encode(x2="to:T")
    starts = base.mark_point(size=26, filled=True).encode(shape=shape)
    first, last = min(v["from"] for v in values)[:10], max(v["to"] for v in values)[:10]
    cheapest = min(v["price"] for v in values)
    return Drawing(
        chart=(spans + starts).properties(height=360),
        alt=f"{len(values)} prices of {gpu} from {first} to {last}; "
        f"the lowest was {cheapest:.3f} {money.currency} per GPU-hour.",
        rows=rows,
    )


def price_bars(rows: Sequence[Mapping[str, Any]], currency: str, most: int = 20) -> Drawing:
    """Show the cheapest price per GPU-hour of each GPU among these offers; of those offered most often."""
    unit = f"{currency}/GPU-h"
    often = {gpu for gpu, _ in Counter(row["gpu"] for row in rows).most_common(most)}
    cheapest: dict[str, Mapping[str, Any]] = {}
    for row in sorted(rows, key=lambda row: row["per_gpu_hour"]):
        if row["gpu"] in often:
            cheapest.setdefault(row["gpu"], row)
    values = [
        {
            "gpu": gpu,
            "price": row["per_gpu_hour"],
            "text": f"{row['per_gpu_hour']:.2f}  {row['provider']}, {row['tier']}, {row['seen_at']:%Y-%m-%d}",
        }
        for gpu, row in cheapest.items()
    ]
    names = [value["gpu"] for value in values]
    base = alt.Chart(alt.Data(values=values)).encode(
        x=alt.X("price:Q", title=unit, scale=alt.Scale(domain=[0, 1.6 * max(v["price"] for v in values)])),
        y=alt.Y("gpu:N", sort=names, title=None, axis=alt.Axis(labelLimit=220)),
        tooltip=["gpu:N", alt.Tooltip("text:N", title="cheapest")],
    )
    bars = base.mark_bar(color=COLOURS[0], height=14)
    words = base.mark_text(align="left", dx=6, fontSize=12).encode(text=alt.Text("text:N"))
    said = ", ".join(f"{value['gpu']} {value['price']:.2f}" for value in values[:5])
    return Drawing(
        chart=(bars + words).properties(height=24 * len(values) + AXIS_HEIGHT),
        rows=[
            {
                "GPU": gpu,
                unit: row["per_gpu_hour"],
                "provider": row["provider"],
                "tier": row["tier"],
                "seen": row["seen_at"],
                "source": row["source"],
            }
            for gpu, row in cheapest.items()
        ],
        alt=f"Cheapest price of each GPU in {currency} per GPU-hour: {said} and so on.",
        title=f"The cheapest of each, for the {len(values)} GPUs that are offered most often"
        if len(values) > 1
        else "The cheapest of these",
    )
