"""What hardware costs to buy: dated price points, and the one a plan starts from."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from enum import StrEnum
from functools import cache
from types import MappingProxyType

from planner.catalogue import checked_day, is_known_by, read_csv


class Condition(StrEnum):
    """In which state the thing is sold."""

    NEW = "new"
    USED = "used"
    REFURBISHED = "refurbished"
    UNSTATED = "unstated"  # marketplace listings that do not say


# GPUs in the thing bought. NVIDIA HGX and DGX servers hold 8, a GB200 or GB300 NVL72 rack 72.
_UNITS = {
    "card": 1,
    "module": 1,
    "workstation": 1,
    "mac": 1,
    "laptop": 1,
    "mini-pc": 1,
    "server 8x": 8,
    "rack": 72,
}
_WITHOUT_HOST = frozenset({"card", "module"})


@dataclass(frozen=True, slots=True, kw_only=True)
class PricePoint:
    """One statement of one source about a price; nothing is averaged."""

    gpu: str | None  # canonical; None where the source does not say which variant
    what: str  # card, module, server 8x, rack, workstation, mac, laptop, mini-pc
    condition: Condition
    usd_low: float  # for the whole thing; equal to usd_high where the source gives one figure
    usd_high: float
    currency_original: str
    as_of: str | None  # day, month, quarter or year; None where the page is undated
    seller: str
    source: str
    notes: str
    checked: str

    def __post_init__(self) -> None:
        if not 0 < self.usd_low <= self.usd_high < float("inf"):
            raise ValueError(f"{self.gpu}: {self.usd_low} to {self.usd_high} USD is not a price range")
        if self.what not in _UNITS:
            raise ValueError(f"{self.gpu}: {self.what!r} is not one of {', '.join(_UNITS)}")

    @property
    def month(self) -> str:
        """First month of the time it speaks of, as `2026-04`; empty where undated."""
        if not self.as_of:
            return ""
        year, _, rest = self.as_of.partition("-")
        quarter_start = {"Q1": "01", "Q2": "04", "Q3": "07", "Q4": "10"}
        return f"{year}-{quarter_start.get(rest, rest[:2] or '01')}"

    def is_known_by(self, day: date | None) -> bool:
        """Whether it was known on that day; None is now."""
        return is_known_by(self.as_of, self.checked, day)


@dataclass(frozen=True, slots=True, kw_only=True)
class Purchase:
    """What a device costs by the newest known prices."""

    gpu: str
    what: str
    units: int  # GPUs in the thing bought
    usd: float  # for the whole thing: the middle of the range
    usd_low: float
    usd_high: float
    condition: Condition
    as_of: str | None
    source: str
    notes: str
    is_own: bool = False  # an own quote rather than a price of the catalogue

    @property
    def usd_per_gpu(self) -> float:
        """The price of one of its GPUs. [USD]"""
        return self.usd / self.units

    @property
    def includes_host(self) -> bool:
        """Whether the rest of the computer comes with it."""
        return self.what not in _WITHOUT_HOST


@dataclass(frozen=True, slots=True, kw_only=True)
class HostPoint:
    """The price of a computer without GPUs, of a part of it, or of what connects it."""

    item: str
    gpus: int | None  # GPUs it is for
    usd_low: float
    usd_high: float
    currency_original: str
    as_of: str | None
    seller: str
    source: str
    notes: str
    checked: str


@cache
def all_purchase_points() -> tuple[PricePoint, ...]:
    """Return all price points, in the order of the catalogue."""
    return tuple(
        PricePoint(
            gpu=row["gpu"] or None,
            what=row["what"],
            condition=Condition(row["condition"] or "unstated"),
            usd_low=float(row["usd_low"]),
            usd_high=float(row["usd_high"]),
            currency_original=row["currency_original"],
            as_of=checked_day(row["as_of"]) if row["as_of"] else None,
            seller=row["seller"],
            source=row["source"],
            notes=row["notes"],
            checked=row["checked"],
        )
        for row in read_csv("purchases.csv")
    )


def purchase_points(gpu: str) -> tuple[PricePoint, ...]:
    """Return the price points of a device, by its canonical name."""
    return _by_gpu().get(gpu, ())


def default_purchase(gpu: str, condition: str = "new", known_by: date | None = None) -> Purchase | None:
    """
    Return what a device costs by the newest price points of a condition.

    All points of the newest month for the same kind of thing form the range; its middle is the price. Undated
    points count only where no dated one is known, laptops only where nothing else is. Where no dated new
    price is known, listings that do not state the condition stand in, and the result says so.

    Args:
        gpu: Canonical name of the device.
        condition: `new`, `used` or `refurbished`.
        known_by: Only points known on that day count; None: all.

    Returns:
        The price [USD], or None where none is known.
    """
    wanted = Condition(condition)
    points = [point for point in purchase_points(gpu) if point.is_known_by(known_by)]
    kinds = (wanted, Condition.UNSTATED) if wanted is Condition.NEW else (wanted,)
    by_kind = [[point for point in points if point.condition is kind] for kind in kinds]
    known = [matching for matching in by_kind if matching]
    dated = [matching for matching in known if any(point.as_of for point in matching)]
    chosen = next(iter(dated or known), None)
    return None if chosen is None else _summarised(_newest(chosen))


def quoted_purchase(gpu: str, quotes: Iterable[PricePoint], known_by: date | None = None) -> Purchase | None:
    """
    Return what a device costs by the newest of one's own quotes; None where there is none.

    Args:
        gpu: Canonical name of the device.
        quotes: Own quotes, of any devices. Of one day, the cheapest for each GPU counts.
        known_by: Only quotes known on that day count; None: all.
    """
    ours = [quote for quote in quotes if quote.gpu == gpu and quote.is_known_by(known_by)]
    if not ours:
        return None
    newest = max(quote.as_of or "" for quote in ours)
    best = min(
        (quote for quote in ours if (quote.as_of or "") == newest),
        key=lambda quote: quote.usd_low / _UNITS[quote.what],
    )
    return replace(_summarised([best]), is_own=True)


@cache
def host_points() -> tuple[HostPoint, ...]:
    """Return the price points of hosts, parts, switches and cables, in the order of the catalogue."""
    return tuple(
        HostPoint(
            item=row["item"],
            gpus=int(row["gpus"]) if row["gpus"] else None,
            usd_low=float(row["usd_low"]),
            usd_high=float(row["usd_high"]),
            currency_original=row["currency_original"],
            as_of=checked_day(row["as_of"]) if row["as_of"] else None,
            seller=row["seller"],
            source=row["source"],
            notes=row["notes"],
            checked=row["checked"],
        )
        for row in read_csv("hosts.csv")
    )


def _newest(points: Sequence[PricePoint]) -> list[PricePoint]:
    """Return the points of the newest month that are for the same kind of thing."""
    best = max(points, key=lambda point: (point.what != "laptop", point.month))
    return [point for point in points if (point.what, point.month) == (best.what, best.month)]


def _summarised(points: Sequence[PricePoint]) -> Purchase:
    """Return one purchase for points of one device, condition, kind and month."""
    first = points[0]
    low = min(point.usd_low for point in points)
    high = max(point.usd_high for point in points)
    return Purchase(
        gpu=first.gpu or "",
        what=first.what,
        units=_UNITS[first.what],
        usd=(low + high) / 2,
        usd_low=low,
        usd_high=high,
        condition=first.condition,
        as_of=max((point.as_of for point in points if point.as_of), default=None),
        source="; ".join(dict.fromkeys(f"{point.seller} ({point.source})" for point in points)),
        notes="; ".join(dict.fromkeys(point.notes for point in points if point.notes)),
    )


@cache
def _by_gpu() -> Mapping[str, tuple[PricePoint, ...]]:
    by_gpu: dict[str, list[PricePoint]] = {}
    for point in all_purchase_points():
        if point.gpu:
            by_gpu.setdefault(point.gpu, []).append(point)
    return MappingProxyType({gpu: tuple(points) for gpu, points in by_gpu.items()})
