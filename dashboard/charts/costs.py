"""What the ways cost: over the months, and by hours of use."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from dashboard.charts.drawing import Drawing
from dashboard.charts.lines import as_rows, lines
from dashboard.rows.points import Line, Mark
from planner.answers.money import Money
from planner.compare import CostByHours, Crossing
from planner.supply.mixed import MixedFleet

if TYPE_CHECKING:
    from dashboard.sureness import Band


def crossing(found: Crossing, money: Money, band: "Band | None" = None) -> Drawing | None:
    """
    Show the money spent on each way, month by month, and where owning has cost as much as renting.

    Args:
        found: The lines.
        money: In which currency.
        band: Where the break-even lies in 80 % of draws; shaded and said.
    """
    ways = (
        ("rent", found.rent_name, found.rent_usd),
        ("own", found.own_name, found.own_usd),
        ("API", found.api_name, found.api_usd),
    )
    series = _series(ways, found.months, money)
    if not series:
        return None
    meets = found.break_even_months
    marks = _meeting(meets, found.months, found.rent_usd, money, "pays back after {:,.1f} months")
    names = _names(ways)
    end = "; ".join(f"{line.label} {line.points[-1][1]:,.0f} {money.currency}" for line in series)
    said = marks[0].text if marks else "owning does not pay back within the term"
    drawing = lines(
        series,
        x_title="months",
        y_title=money.currency,
        alt_text=f"{names}. Money spent after {found.months[-1]:,.0f} months: {end}. On this chart {said}.",
        marks=marks,
        span=None if band is None else band.span,
    )
    return replace(
        drawing,
        said="" if band is None else band.text,
        more_rows=() if band is None else band.rows,
        title=f"Money spent over {found.months[-1]:,.0f} months",
        names=names,
        key="crossing_chart",
        rows=as_rows(series, "months"),
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
    meets, rent = found.break_even_hours_per_day, found.rent_usd_per_month
    marks = _meeting(meets, found.hours_per_day, rent, money, "the same at {:,.1f} h a day")
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
        rows=as_rows(series, "hours a day"),
    )


def mixed(found: MixedFleet, money: Money) -> Drawing:
    """Show what a month costs by the number of machines owned, with the best number marked."""
    ways = {
        "together": [mix.usd_per_month for mix in found.tried],
        "own": [mix.own_usd_per_month for mix in found.tried],
        "rent": [mix.rent_usd_per_month for mix in found.tried],
    }
    counts = [float(mix.own_count) for mix in found.tried]
    series = [
        Line(label=label, points=[(x, money.amount(usd)) for x, usd in zip(counts, costs, strict=True)])
        for label, costs in ways.items()
    ]
    best, cost = found.best, money.amount(found.best.usd_per_month)
    said = f"The least is {cost:,.0f} {money.currency} a month with {best.own_count} owned"
    drawing = lines(
        series,
        x_title=f"{found.purchase.name}: number owned",
        y_title=f"{money.currency}/month",
        alt_text=f"Cost of a month by the number owned, 0 to {counts[-1]:.0f}, the rest rented. {said}.",
        marks=[Mark(x=float(best.own_count), y=cost, text=f"the least: {best.own_count}")],
        whole=True,
        height=280,
    )
    rows = [
        {
            "own_count": mix.own_count,
            "rent_count": mix.rent_count,
            "own": money.amount(mix.own_usd_per_month),
            "rent": money.amount(mix.rent_usd_per_month),
            "month": money.amount(mix.usd_per_month),
            "best": "yes" if mix is best else None,
        }
        for mix in found.tried
    ]
    names = f"own {found.purchase.name}; rent {found.rental.single_offer_text}"
    return replace(drawing, names=names, key="mixed_chart", rows=rows)


def _meeting(
    meets: float | None, x: Sequence[float], rent_usd: Sequence[float] | None, money: Money, words: str
) -> list[Mark]:
    """Return the mark where owning costs what renting does, said in `words`; none where they do not meet."""
    if meets is None or rent_usd is None:
        return []
    return [Mark(x=meets, y=money.amount(float(np.interp(meets, x, rent_usd))), text=words.format(meets))]


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
