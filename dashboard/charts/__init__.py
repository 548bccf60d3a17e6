"""
Charts as Altair objects, made from plain records: nothing here reads a database or a page.

Each has direct labels, dash as well as colour, and a sentence for those who cannot see it (`Drawing.alt`).
"""

from dashboard.charts.cloud import cloud
from dashboard.charts.costs import cost_by_hours, crossing, mixed
from dashboard.charts.drawing import Drawing
from dashboard.charts.effects import effect, tornado
from dashboard.charts.lines import lines
from dashboard.charts.prices import history, price_bars
from dashboard.charts.sizes import context, memory, stack

__all__ = [
    "Drawing",
    "cloud",
    "context",
    "cost_by_hours",
    "crossing",
    "effect",
    "history",
    "lines",
    "memory",
    "mixed",
    "price_bars",
    "stack",
    "tornado",
]
