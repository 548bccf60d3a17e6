"""`prices history --chart`: how prices moved, drawn with letters, since a terminal may show nothing else."""

import math
import shutil
import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from dashboard import tables

if TYPE_CHECKING:
    from pricing.storage.stored import StoredOffer

HEIGHT = 13
LEAST_WIDTH = 24
LABEL = len("USD/GPU-h")
LETTERS = "abcdefghi"
# How a price ends that another one follows; after any other end there is a gap.
HOLDS = frozenset({"changed", "newer", "resolved", "back", "sold out"})
BOXES, ASCII = "┤│─└┴", "||-++"  # of the axis, down, along, corner, tick
HELD, SEVERAL = "?", "*"


@dataclass(frozen=True, slots=True)
class Span:
    """A price per GPU-hour, from and to."""

    start: datetime
    end: datetime
    usd: float
    is_held: bool


@dataclass(frozen=True, slots=True)
class Line:
    """What is drawn with one letter: a GPU of a provider's tier, at its cheapest."""

    name: str
    offers: Sequence[Sequence[Span]]  # of each offer, oldest first

    @property
    def spans(self) -> Sequence[Span]:
        """Those of all offers."""
        return [span for spans in self.offers for span in spans]

    @property
    def counted(self) -> Sequence[Span]:
        """Those that plans went by."""
        return [span for span in self.spans if not span.is_held]

    @property
    def days(self) -> timedelta:
        """How long it was watched."""
        return max(span.end for span in self.spans) - min(span.start for span in self.spans)


def chart(offers: Iterable["StoredOffer"], since: datetime | None) -> str:
    """Draw the prices in the width and with the signs of this terminal; nothing where there are none."""
    try:
        BOXES.encode(sys.stdout.encoding or "ascii")
        signs = BOXES
    except (UnicodeEncodeError, LookupError):
        signs = ASCII
    return drawn(lines_of(offers, since), shutil.get_terminal_size().columns, signs)


def lines_of(offers: Iterable["StoredOffer"], since: datetime | None) -> list[Line]:
    """Return the lines, whole GPUs only, the longest watched first."""
    found: dict[str, dict[str, list[Span]]] = defaultdict(lambda: defaultdict(list))
    for offer in offers:
        holds = offer.closed_at is not None and offer.closed_why in HOLDS and offer.verdict == "verified"
        end = offer.closed_at if holds and offer.closed_at is not None else offer.seen_at
        start = offer.first_seen_at if since is None else max(offer.first_seen_at, since)
        if offer.gpu_fraction is not None or offer.gpu is None or end < start:
            continue
        said_by = f" (by {offer.witness})" if offer.witness else ""
        name = f"{offer.gpu}, {offer.provider} {offer.tier}{said_by}"
        span = Span(start, end, float(offer.usd_per_gpu_hour), offer.verdict != "verified")
        found[name][offer.id].append(span)
    lines = [Line(name, list(spans.values())) for name, spans in found.items()]
    return sorted(lines, key=lambda line: (not line.counted, -line.days, line.name))


def drawn(lines: Sequence[Line], width: int, signs: str) -> str:
    """
    Return the chart: a price holds until it changes, and where it was gone there is a gap.

    Args:
        lines: Those beyond the letters are counted below.
        width: Of the terminal. [columns]
        signs: `BOXES`, or `ASCII` where the terminal cannot show these.
    """
    shown = lines[: len(LETTERS)]
    spans = [span for line in shown for span in line.spans]
    if not spans:
        return ""
    start, end = min(span.start for span in spans), max(span.end for span in spans)
    columns = max(LEAST_WIDTH, width - LABEL - len(" │"))
    step = max(end - start, timedelta(days=1)) / columns
    cells = [_cells(line, start, step, columns) for line in shown]
    prices = [usd for row in cells for usd in row if usd is not None] or [span.usd for span in spans]
    low, high = min(prices), max(prices)
    pad = 0.0 if high > low else high * 0.05
    low, high = low - pad, high + pad

    def row_of(usd: float) -> int:
        return min(HEIGHT - 1, max(0, round((high - usd) / (high - low) * (HEIGHT - 1))))

    grid = [[" "] * columns for _ in range(HEIGHT)]
    marks = signs[2] if len(shown) == 1 else LETTERS
    for mark, prices_of in zip(marks, cells, strict=False):
        _draw(grid, [None if usd is None else row_of(usd) for usd in prices_of], mark, signs[1])
    for span in spans:
        row, column = row_of(span.usd), min(columns - 1, math.floor((span.start - start) / step))
        if span.is_held and grid[row][column] in (" ", signs[1]):
            grid[row][column] = HELD
    axis = []
    for row, line in enumerate(grid):
        label = "" if row % 2 else tables.money(high - (high - low) * row / (HEIGHT - 1))
        axis.append(f"{label:>{LABEL}} {signs[1 if row % 2 else 0]}{''.join(line)}")
    foot = [
        f"{'':>{LABEL}} {signs[3]}{signs[2] * columns}",
        f"{'':>{LABEL}}  {start:%Y-%m-%d}{f'{end:%Y-%m-%d}':>{columns - 10}}",
    ]
    legend = [_said(mark, line, row) for mark, line, row in zip(marks, shown, cells, strict=False)]
    text = ["USD/GPU-h", *axis, *foot, "", *legend, *_signs(grid, len(lines) - len(shown))]
    return "\n".join(part.rstrip() for part in text)


def _cells(line: Line, start: datetime, step: timedelta, columns: int) -> list[float | None]:
    """Return the price of each column: of an offer the last within it, of all the lowest; None for a gap."""
    lowest: list[float | None] = [None] * columns
    for spans in line.offers:
        last: dict[int, float] = {}
        for span in spans:
            if not span.is_held:
                first = min(columns - 1, math.floor((span.start - start) / step))
                end = min(columns - 1, max(first, math.ceil((span.end - start) / step) - 1))
                last |= dict.fromkeys(range(first, end + 1), span.usd)
        for column, usd in last.items():
            known = lowest[column]
            lowest[column] = usd if known is None else min(known, usd)
    return lowest


def _draw(grid: list[list[str]], rows: Sequence[int | None], mark: str, down: str) -> None:
    """Draw one line, and the steps between its prices where nothing else stands."""
    before = None
    for column, row in enumerate(rows):
        if row is not None:
            grid[row][column] = mark if grid[row][column] in (" ", down) else SEVERAL
            between = () if before is None else range(min(before, row) + 1, max(before, row))
            for step in between:
                if grid[step][column] == " ":
                    grid[step][column] = down
        before = row


def _said(mark: str, line: Line, cells: Sequence[float | None]) -> str:
    """Return what a letter stands for."""
    prices = [usd for usd in cells if usd is not None]
    if not prices:
        return f"{mark}  {line.name}: none was verified"
    low, high, last = (tables.money(usd) for usd in (min(prices), max(prices), prices[-1]))
    newest = max(span.end for span in line.counted)
    of = f", the cheapest of {len(line.offers)} offers" if len(line.offers) > 1 else ""
    moved = f"{low} to {high}, {last}" if low != high else last
    return f"{mark}  {line.name}: {moved} on {newest:%Y-%m-%d}{of}"


def _signs(grid: Sequence[Sequence[str]], hidden: int) -> list[str]:
    """Return what the other signs stand for, and how many lines are not drawn."""
    there = {cell for row in grid for cell in row}
    return [
        *([f"{SEVERAL}  several of them"] if SEVERAL in there else []),
        *([f"{HELD}  waits or was rejected; beyond the scale at its edge"] if HELD in there else []),
        *([f"{hidden} more: --provider, --tier or --region draw fewer"] if hidden > 0 else []),
    ]
