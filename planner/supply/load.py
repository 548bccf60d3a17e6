"""The shape of a day's load: 24 hours, and how many copies of a machine each of them needs."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from planner.errors import InvalidScenario
from planner.numbers import parse_number

HOURS = 24
ALLOWED = "spans of hours such as 8-18=1,18-23=0.3, or 24 numbers, one for each hour"
# What a replica may carry beyond its speed before another one is started: rounding, no load.
_ROUNDING = 1e-9

_SPAN = re.compile(r"(\d{1,2})\s*-\s*(\d{1,2})(?:\s*=\s*(\S+))?")


@dataclass(frozen=True, slots=True)
class Shift:
    """Copies of a machine that run together, and how long."""

    replicas: int
    hours_per_day: float


@dataclass(frozen=True, slots=True)
class LoadProfile:
    """Relative load of each hour of a day, from midnight on; hours without load need no service."""

    weights: tuple[float, ...]

    @staticmethod
    @lru_cache(maxsize=256)  # a plan asks for its day some thousand times
    def parse(text: str, field: str = "load_profile") -> "LoadProfile":
        """
        Read `8-18=1,18-23=0.3` (the load of spans of hours, 1 where none is given), or 24 numbers.

        A span may pass midnight: `22-6`.

        Raises:
            InvalidScenario: if it is neither, spans overlap, a load is negative, or there is none.
        """
        parts = [part.strip() for part in text.split(",") if part.strip()]
        if any(_SPAN.fullmatch(part) for part in parts):
            weights = _from_spans(parts, text, field)
        elif len(parts) == HOURS:
            weights = [_load(part, text, field) for part in parts]
        else:
            raise InvalidScenario(field, text, ALLOWED)
        if not any(weights):
            raise InvalidScenario(field, text, f"{ALLOWED}: some load above 0")
        return LoadProfile(tuple(weights))

    @property
    def service_hours_per_day(self) -> int:
        """Hours in which there is any load. [h/d]"""
        return sum(weight > 0.0 for weight in self.weights)

    @property
    def peak_factor(self) -> float:
        """Load of the busiest hour over the mean of the hours with load."""
        return max(self.weights) * self.service_hours_per_day / sum(self.weights)

    def loads(self, mean: float) -> tuple[float, ...]:
        """
        Return the load of each hour.

        Args:
            mean: Over the hours with load, in any unit.
        """
        scale = mean * self.service_hours_per_day / sum(self.weights)
        return tuple(weight * scale for weight in self.weights)


def shifts(loads: Sequence[float], capacity: float) -> tuple[Shift, ...]:
    """
    Return in which steps copies of a machine run so that each hour's load is carried.

    Args:
        loads: Of each hour, in the unit of the capacity.
        capacity: Of one copy.

    Returns:
        Steps of copies that are started and stopped together, those that run longest first.

    Source:
        docs/methodology.md, "Plan".
    """
    needed = [math.ceil(load / capacity - _ROUNDING) if load > 0.0 else 0 for load in loads]
    steps, below = [], 0
    for level in sorted({count for count in needed if count}):
        hours = sum(count >= level for count in needed)
        steps.append(Shift(replicas=level - below, hours_per_day=float(hours)))
        below = level
    return tuple(steps)


def _from_spans(parts: Sequence[str], text: str, field: str) -> list[float]:
    weights: list[float | None] = [None] * HOURS
    for part in parts:
        match = _SPAN.fullmatch(part)
        if match is None:
            raise InvalidScenario(field, text, ALLOWED)
        start, end = int(match[1]), int(match[2])
        if start >= HOURS or end > HOURS or start == end:
            raise InvalidScenario(field, part, "hours from 0 to 24, such as 8-18")
        load = 1.0 if match[3] is None else _load(match[3], text, field)
        for hour in range(start, end if end > start else end + HOURS):
            if weights[hour % HOURS] is not None:
                raise InvalidScenario(
                    field, text, f"spans that do not overlap: hour {hour % HOURS} is in two"
                )
            weights[hour % HOURS] = load
    return [weight or 0.0 for weight in weights]


def _load(part: str, text: str, field: str) -> float:
    load = parse_number(field, part, ALLOWED)
    if not 0.0 <= load <= 1e12:
        raise InvalidScenario(field, text, f"{ALLOWED}: loads from 0 to 1e12")
    return load
