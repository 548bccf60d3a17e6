"""
How one option of a scenario is read: as text or as a value, strictly.

Each function returns a reader, which takes the option's name and what was given and returns the value, or
raises `InvalidScenario` with the name, the value and what is allowed.
"""

from collections.abc import Callable, Iterable
from datetime import date
from typing import Any

from planner.errors import InvalidScenario
from planner.numbers import parse_count, parse_number

Parse = Callable[[str, Any], Any]

# No GPU was rented before, and nothing is known of what comes after.
YEARS = (2000, 2099)


def number(
    allowed: str,
    *,
    above: float | None = None,
    at_least: float = 0.0,
    up_to: float = 1e15,
    below: float | None = None,
) -> Parse:
    """Read a finite number within limits."""

    def parse(name: str, value: Any) -> float:
        read = parse_number(name, value, allowed)
        if read > up_to:
            raise InvalidScenario(name, _shown(value), _with_limit(allowed, up_to))
        if read < at_least or (above is not None and read <= above):
            raise InvalidScenario(name, value, allowed)
        if below is not None and read >= below:
            raise InvalidScenario(name, read, allowed)
        return read

    return parse


def count(allowed: str, *, up_to: float = 1e12) -> Parse:
    """Read a whole number of at least 1."""

    def parse(name: str, value: Any) -> int:
        read = parse_count(name, value, allowed)
        if read > up_to:
            raise InvalidScenario(name, _shown(value), _with_limit(allowed, up_to))
        if read < 1:
            raise InvalidScenario(name, value, allowed)
        return read

    return parse


def choice(names: Iterable[str]) -> Parse:
    """Read one of these names."""
    allowed = tuple(str(name) for name in names)

    def parse(name: str, value: Any) -> str:
        if str(value) not in allowed:
            raise InvalidScenario(name, value, "one of " + ", ".join(allowed))
        return str(value)

    return parse


def words(allowed: str) -> Parse:
    """Read a text that is not blank."""

    def parse(name: str, value: Any) -> str:
        if not isinstance(value, str) or not value.strip():
            raise InvalidScenario(name, value, allowed)
        return value.strip()

    return parse


def name_list(allowed: str, choices: Iterable[str] = ()) -> Parse:
    """Read names as a list or apart by commas, in lower case; of these choices where there are any."""
    known = tuple(choices)

    def parse(name: str, value: Any) -> tuple[str, ...]:
        items = value.split(",") if isinstance(value, str) else list(value)
        cleaned = tuple(str(item).strip().lower() for item in items if str(item).strip())
        for item in cleaned:
            if known and item not in known:
                raise InvalidScenario(name, item, "one of " + ", ".join(known))
        if not cleaned and items:
            raise InvalidScenario(name, value, allowed)
        return cleaned

    return parse


def day(name: str, value: Any) -> date:
    """Read a day of this century; it is a reader itself."""
    try:
        read = value if type(value) is date else date.fromisoformat(str(value).strip())
    except ValueError:
        raise InvalidScenario(name, value, "a date such as 2026-11-04") from None
    if not YEARS[0] <= read.year <= YEARS[1]:
        raise InvalidScenario(name, str(value), f"a date of the years {YEARS[0]} to {YEARS[1]}")
    return read


def _shown(value: Any) -> Any:
    """Return a number as a person writes it: a large one without its thirty digits."""
    return f"{value:g}" if isinstance(value, int | float) and abs(value) >= 1e15 else value


def _with_limit(allowed: str, up_to: float) -> str:
    """Say what is allowed, the upper limit too."""
    limit = f"{up_to:,.0f}" if up_to <= 1e6 else f"{up_to:g}"
    return allowed if limit in allowed or f"{up_to:g}" in allowed else f"{allowed}, and up to {limit}"
