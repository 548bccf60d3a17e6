"""Numbers as a person types them: a decimal point or a comma, and nothing that could be two numbers."""

import math
import re

from planner.errors import InvalidScenario
from planner.numbers import parse_count, parse_number

# A comma that can only be a decimal sign: 0,35 and 12,5, and not 1,234.
_DECIMAL_COMMA = re.compile(r"[+-]?\d*,\d+")
# A sign that may part thousands as well as decimals: 12.000 and 1,234, and not 0.175.
_ONE_GROUP = re.compile(r"([+-]?[1-9]\d{0,2})([.,])(\d{3})")


def typed_number(
    field: str, text: str | float, allowed: str, *, is_whole: bool = False, most: float = math.inf
) -> float:
    """
    Return the number that a person typed, with a decimal point or a comma.

    A field for numbers of the browser would drop the comma, and make 35 of 0,35. One that may as well part
    thousands is not guessed at: a comma before three digits nowhere, a point where thousands can be meant.

    Args:
        field: Its label, for the message.
        text: What was typed; a number is taken as it is.
        allowed: What can be used, in words.
        is_whole: Whether it counts things.
        most: The largest number that can be meant.

    Raises:
        InvalidScenario: if it is no number, or could be two.
    """
    shown = str(text).strip()
    if isinstance(text, str) and could_be_two(shown, most):
        raise InvalidScenario(field, shown, f"{allowed}, {_both(shown, is_whole=is_whole)}")
    if _DECIMAL_COMMA.fullmatch(shown):
        shown = shown.replace(",", ".")
    return (parse_count if is_whole else parse_number)(field, shown, allowed)


def could_be_two(text: str, most: float = math.inf) -> bool:
    """Whether a text may be thousands as well as a number with three decimals."""
    group = _ONE_GROUP.fullmatch(text)
    return group is not None and (group[2] == "," or abs(float(group[1] + group[3])) <= most)


def unambiguous(number: str, most: float = math.inf) -> str:
    """Return a number so that it reads back: three decimals that look like thousands get a fourth."""
    return f"{number}0" if could_be_two(number, most) else number


def _both(text: str, *, is_whole: bool) -> str:
    """Say how to write each of the two numbers that a text could be."""
    whole, sign, rest = _ONE_GROUP.fullmatch(text).groups()  # type: ignore[union-attr]
    name = "comma" if sign == "," else "point"
    without = f"without a {name}: {whole}{rest}"
    if is_whole:
        return without if rest != "000" else f"{without}, or {whole}"
    decimals = f"{rest.rstrip('0') or '0'}" if rest.endswith("0") else f"{rest}0"
    return f"{without}, or {whole}.{decimals} with decimals"
