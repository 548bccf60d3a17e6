"""One input of the page: an option of a `Scenario` as a widget, and how what is typed is read."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from planner.assumptions import all_assumptions
from planner.errors import InvalidScenario
from planner.numbers import parse_count, parse_number
from planner.scenario import DEFAULT_MODEL, Scenario

# A comma that can only be a decimal sign: 0,35 and 12,5, and not 1,234.
_DECIMAL_COMMA = re.compile(r"(?![+-]?[1-9]\d{0,2},\d{3}$)[+-]?\d*,\d+")
_DEFAULTS = Scenario(model=DEFAULT_MODEL)


class Kind(StrEnum):
    """The widget of a field."""

    CHOICE = "choice"  # one of a list, or nothing where the default is None
    MANY = "many"  # any of a list
    NUMBER = "number"
    COUNT = "count"
    SLIDER = "slider"
    DAY = "day"
    TEXT = "text"


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One option as a widget. Its range never changes while the page is open: that would reset the value."""

    name: str
    label: str  # with its unit
    kind: Kind
    hint: str = ""  # what an empty field means, or what a newcomer asks
    options: Callable[[], Sequence[str]] = tuple
    low: float | None = None
    high: float | None = None
    step: float | None = None
    accepts_new: bool = False
    format: str | None = None  # of a number, as in printf
    placeholder: str = ""  # of a number that is not set; its default where there is one

    @property
    def default(self) -> Any:
        """The value of the widget where the address says nothing."""
        return self.as_widget_value(getattr(_DEFAULTS, self.name))

    def as_widget_value(self, value: Any) -> Any:
        """Return a scenario's value in the form in which its widget holds it; numbers are typed as text."""
        if self.name == "set":
            return [f"{key}={int(number) if number.is_integer() else number}" for key, number in value]
        if value is not None and self.kind in (Kind.NUMBER, Kind.COUNT):
            return f"{value:.15g}"
        return list(value) if isinstance(value, tuple) else value

    def as_scenario_value(self, held: Any) -> Any:
        """
        Return what a widget holds as a scenario takes it.

        Raises:
            InvalidScenario: if a number cannot be read, or is outside what the page offers.
        """
        if self.kind not in (Kind.NUMBER, Kind.COUNT):
            return held
        span = f" from {self.low:,.15g} to {self.high:,.15g}"
        allowed = ("a whole number" if self.kind is Kind.COUNT else "a number") + span
        read = typed_number(self.label, held, allowed, is_whole=self.kind is Kind.COUNT)
        if (self.low is not None and read < self.low) or (self.high is not None and read > self.high):
            raise InvalidScenario(self.label, held, allowed)
        return read

    @property
    def help(self) -> str:
        """What stands behind the question mark: meaning, default, range seen and source."""
        record = all_assumptions().get(self.name)
        parts = [self.hint] if self.hint else []
        if record is not None:
            if record.value is not None:
                parts.append(
                    f"Default {record.value:g} {record.unit}; seen {record.low:g} to {record.high:g}."
                )
            parts.append(f"Source: {record.source}.")
        return " ".join(parts)


def typed_number(field: str, text: str | float, allowed: str, *, is_whole: bool = False) -> float:
    """
    Return the number that a person typed, with a decimal point or a comma.

    A field for numbers of the browser would drop the comma, and make 35 of 0,35. One that may as well part
    thousands is not guessed at.

    Raises:
        InvalidScenario: if it is no number, or could be two.
    """
    shown = str(text).strip()
    if _DECIMAL_COMMA.fullmatch(shown):
        shown = shown.replace(",", ".")
    return (parse_count if is_whole else parse_number)(field, shown, allowed)
