"""Read numbers that a person typed: strict, with a hint where another notation was meant."""

import math
import re

from planner.errors import InvalidScenario

# One comma with other than three digits after it, or a comma after a zero: meant as a decimal sign.
_DECIMAL_COMMA = re.compile(r"[+-]?\d*,\d+")
_THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2}(,\d{3})+(\.\d+)?")


def parse_number(field: str, value: str | float, allowed: str) -> float:
    """
    Return the finite number that was given.

    Raises:
        InvalidScenario: if it is none; a comma is refused with a hint, never guessed at.
    """
    if isinstance(value, bool):
        raise InvalidScenario(field, value, allowed)
    text = str(value).strip()
    if _THOUSANDS.fullmatch(text):
        raise InvalidScenario(field, text, f"{allowed}, without a comma: {text.replace(',', '')}")
    if _DECIMAL_COMMA.fullmatch(text):
        raise InvalidScenario(field, text, f"{allowed}, with a decimal point: {text.replace(',', '.')}")
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise InvalidScenario(field, value, allowed) from None
    if not math.isfinite(number) or "_" in text:
        raise InvalidScenario(field, text, allowed)
    return number


def parse_count(field: str, value: str | float, allowed: str) -> int:
    """
    Return the whole number that was given.

    Raises:
        InvalidScenario: if it is none.
    """
    number = parse_number(field, value, allowed)
    if number != int(number):
        raise InvalidScenario(field, value, f"{allowed}, a whole number")
    return int(number)
