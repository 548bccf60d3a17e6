"""What a person states about a model beside its files: a number of parameters, fields that are missing."""

import json
import re
from collections.abc import Iterable
from typing import Any

from planner.errors import InvalidScenario

_PARAMS = "a number of parameters such as 32b, 480e9 or 35b-a3b (all, and those read for a token)"
_FACT = "NAME=VALUE, such as num_key_value_heads=8"
_FACTORS = {"": 1, "k": 10**3, "m": 10**6, "b": 10**9, "t": 10**12}
_NUMBER = re.compile(r"(\d{1,18}(?:\.\d{1,9})?(?:e\d{1,2})?)\s*([kmbt]?)", re.ASCII)
# More than any model has, by a factor of 100.
_MOST_PARAMS = 10**15


def parse_params(text: str) -> tuple[int, int | None]:
    """
    Return all parameters and, where it is stated, those read for a token.

    Raises:
        InvalidScenario: if it is no such number.
    """
    total, dash, active = text.strip().lower().partition("-a")
    if not dash:
        return _number(text, total), None
    all_params, read = _number(text, total), _number(text, active)
    if read > all_params:
        raise InvalidScenario("params", text, "no more active parameters than there are")
    return all_params, read


def _number(text: str, part: str) -> int:
    match = _NUMBER.fullmatch(part.strip().replace("_", ""))
    number = float(match[1]) * _FACTORS[match[2]] if match else 0.0
    if not 1 <= number <= _MOST_PARAMS:
        raise InvalidScenario("params", text, _PARAMS)
    return round(number)


def parse_facts(texts: Iterable[str]) -> dict[str, Any]:
    """
    Read `NAME=VALUE`, fields that a configuration lacks.

    Numbers, true and false are understood, and lists in the form of JSON.

    Raises:
        InvalidScenario: if a text is not of that form.
    """
    facts: dict[str, Any] = {}
    for text in texts:
        name, is_there, value = text.partition("=")
        if not is_there or not re.fullmatch(r"[A-Za-z_]\w{0,63}", name.strip()) or not value.strip():
            raise InvalidScenario("fact", text, _FACT)
        facts[name.strip()] = _value(text, value.strip())
    return facts


def _value(text: str, value: str) -> Any:
    if value[0] in "[{":
        try:
            return json.loads(value)
        except (ValueError, RecursionError) as error:
            raise InvalidScenario("fact", text, "a list in the form of JSON: [1, 2]") from error
    if value.lower() in ("true", "false"):
        return value.lower() == "true"
    if re.fullmatch(r"-?\d{1,18}", value, re.ASCII):
        return int(value)
    try:
        return float(value)
    except ValueError:
        return value
