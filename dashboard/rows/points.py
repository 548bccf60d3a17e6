"""What charts and grids are made of: plain records, without a library that draws."""

from collections.abc import Sequence
from dataclasses import dataclass


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
class Span:
    """A stretch of x worth naming; without an end it goes on beyond the chart."""

    start: float
    end: float | None
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
class Cell:
    """One cell of a grid: `level` 0 is good, higher is worse; `word` says it without colour."""

    row: str
    column: str
    word: str
    level: int
    detail: str = ""
