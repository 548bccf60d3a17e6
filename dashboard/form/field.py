"""One input of the page: an option of a `Scenario` as a widget, and how what is typed is read."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from dashboard.form.typed import could_be_two, typed_number, unambiguous
from planner.assumptions import all_assumptions, split_settings
from planner.errors import InvalidScenario
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
    placeholder: str = ""  # of a number that is not set; its default where there is one

    @property
    def default(self) -> Any:
        """The value of the widget where the address says nothing."""
        return self.as_widget_value(getattr(_DEFAULTS, self.name))

    @property
    def most(self) -> float:
        """The largest number that can be meant."""
        return math.inf if self.high is None else self.high

    def as_widget_value(self, value: Any) -> Any:
        """Return a scenario's value in the form in which its widget holds it; numbers are typed as text."""
        if self.name == "set":
            return [f"{key}={setting_text(key, number)}" for key, number in value]
        if value is not None and self.kind in (Kind.NUMBER, Kind.COUNT):
            return unambiguous(f"{value:.15g}", self.most)
        return list(value) if isinstance(value, tuple) else value

    def as_scenario_value(self, held: Any) -> Any:
        """
        Return what a widget holds as a scenario takes it.

        Raises:
            InvalidScenario: if a number cannot be read, or is outside what the page offers.
        """
        if self.name == "set":
            _check_settings(self.label, held)
        if self.kind not in (Kind.NUMBER, Kind.COUNT):
            return held
        span = f" from {self.low:,.15g} to {self.high:,.15g}"
        allowed = ("a whole number" if self.kind is Kind.COUNT else "a number") + span
        read = typed_number(self.label, held, allowed, is_whole=self.kind is Kind.COUNT, most=self.most)
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


def most_of(name: str) -> float:
    """Return the largest number that an assumption can mean; 0 where it is never thousands."""
    record = all_assumptions().get(name)
    return 0.0 if record is None or record.high < 1000.0 else record.maximum


def setting_text(name: str, value: float) -> str:
    """Write the value of an assumption as it is typed behind `NAME=`."""
    return unambiguous(str(int(value) if float(value).is_integer() else value), most_of(name))


def _check_settings(label: str, texts: Sequence[str]) -> None:
    """Refuse a value of `NAME=VALUE` that could be two numbers; what else is wrong, the scenario says."""
    for setting in (part for text in texts for part in split_settings(text)):
        name, number = (part.strip() for part in setting.partition("=")[::2])
        if name in all_assumptions() and could_be_two(number, most_of(name)):
            typed_number(f"{label}, {name}", number, all_assumptions()[name].allowed, most=most_of(name))
