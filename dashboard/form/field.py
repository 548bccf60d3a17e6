"""One input of the page: an option of a `Scenario` as a widget. Nothing draws here."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from planner.assumptions import all_assumptions
from planner.scenario import DEFAULT_MODEL, Scenario

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
    placeholder: str = "not set"

    @property
    def default(self) -> Any:
        """The value of the widget where the address says nothing."""
        return as_widget_value(self.name, getattr(_DEFAULTS, self.name))

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


def as_widget_value(name: str, value: Any) -> Any:
    """Return a scenario's value in the form in which its widget holds it."""
    if name == "set":
        return [f"{key}={int(number) if number.is_integer() else number}" for key, number in value]
    return list(value) if isinstance(value, tuple) else value
