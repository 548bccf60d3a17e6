"""Read the bundled data files: strict records from TOML and CSV, names that forgive spelling."""

import csv
import difflib
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from datetime import date
from enum import Enum
from functools import cache
from importlib.resources import files
from itertools import chain
from types import NoneType, UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

Record = TypeVar("Record")

_SEPARATORS = re.compile(r"[\s_-]+")


def read_text(name: str) -> str:
    """Return a file of `planner/data`."""
    return files("planner").joinpath("data", name).read_text(encoding="utf-8")


def read_toml(name: str, kind: str) -> list[dict[str, Any]]:
    """Return the `[[kind]]` tables of a file of `planner/data`."""
    tables: list[dict[str, Any]] = tomllib.loads(read_text(name))[kind]
    return tables


def read_csv(name: str) -> list[dict[str, str]]:
    """
    Return the rows of a CSV file of `planner/data`.

    Raises:
        ValueError: if a row has more or fewer cells than the header.
    """
    rows = list(csv.DictReader(read_text(name).splitlines(), restkey="", strict=True))
    for number, row in enumerate(rows, start=2):
        if "" in row or None in row.values():
            raise ValueError(f"{name}: record {number} does not have as many cells as the header")
    return rows


def read_lines(text: str) -> list[list[str]]:
    """Return the cells of a block with one record a line, cells apart by ` | `; blank lines are skipped."""
    return [[cell.strip() for cell in line.split("|")] for line in text.splitlines() if line.strip()]


def lookup_key(name: str) -> str:
    """Return a name without case, spaces, hyphens and underscores."""
    return _SEPARATORS.sub("", name.casefold())


def close_matches(name: str, names: Iterable[str], n: int = 3) -> list[str]:
    """Return up to `n` names that look like `name`, the closest first, each of them once."""
    by_key: dict[str, str] = {}
    for candidate in names:
        by_key.setdefault(lookup_key(candidate), candidate)
    return [by_key[key] for key in difflib.get_close_matches(lookup_key(name), by_key, n=n, cutoff=0.5)]


def build(cls: type[Record], table: Mapping[str, Any]) -> Record:
    """
    Return the record that a table of a data file describes.

    A field that may be None is None where the table leaves it out; a field with a default takes it.

    Args:
        cls: A dataclass; nested dataclasses, tuples and enumerations are built too.
        table: Field names and values, as read from TOML or JSON.

    Raises:
        ValueError: if a field is unknown, missing, or of the wrong type.
    """
    record_type: Any = cls  # mypy: a class is hashable
    plan = _fields(record_type)
    unknown = table.keys() - plan.keys()
    if unknown:
        raise ValueError(f"{cls.__name__} has no field {', '.join(sorted(unknown))}")
    values: dict[str, Any] = {}
    for name, (convert, is_optional, has_default) in plan.items():
        if name in table:
            try:
                values[name] = convert(table[name])
            except ValueError as error:
                raise ValueError(f"{cls.__name__}.{name}: {error}") from error
        elif not has_default:
            if not is_optional:
                raise ValueError(f"{cls.__name__} needs a {name}")
            values[name] = None
    return cls(**values)


def to_table(record: object) -> dict[str, Any]:
    """Return the table that `build` turns into this record again; what is None or the default is left out."""
    table: dict[str, Any] = {}
    for field in fields(record):  # type: ignore[arg-type]
        value = getattr(record, field.name)
        if value is not None and (field.default is MISSING or value != field.default):
            table[field.name] = _plain(value)
    return table


def to_document(record: object) -> dict[str, Any]:
    """Return a record as a JSON object with every field; unknown ones are null."""
    return {field.name: _jsonable(getattr(record, field.name)) for field in fields(record)}  # type: ignore[arg-type]


def matching(query: str, names: Iterable[str]) -> bool:
    """Whether one of the names contains the query, whatever the spelling; an empty query matches all."""
    key = lookup_key(query)
    return any(key in lookup_key(name) for name in names)


def unique(records: Sequence[Record], key: str, file: str) -> dict[str, Record]:
    """
    Return records by the value of a field.

    Raises:
        ValueError: if two records share it.
    """
    by_key: dict[str, Record] = {}
    for record in records:
        value = getattr(record, key)
        if value in by_key:
            raise ValueError(f"{file}: {key} {value!r} occurs twice")
        by_key[value] = record
    return by_key


def optional_float(cell: str) -> float | None:
    """Return the number in a cell, None where it is empty."""
    return float(cell) if cell else None


def checked_day(value: str) -> str:
    """
    Return a day, month, quarter or year as given, once it is one.

    Raises:
        ValueError: if it is none of these.
    """
    if not re.fullmatch(r"\d{4}(-(0[1-9]|1[0-2])(-(0[1-9]|[12]\d|3[01]))?|-Q[1-4]|-H[12])?", value):
        raise ValueError(f"{value!r} is not a day, month, quarter or year")
    return value


def is_known_by(as_of: str | None, checked: str, day: date | None) -> bool:
    """
    Whether a figure of the catalogue was known on a day.

    A figure of a month counts for every day of that month, since its source speaks of the whole of it. One of
    a longer time counts from its end on, and an undated one from the day on which it was read.

    Args:
        as_of: The time it speaks of: a day, month, quarter, half-year or year; None where undated.
        checked: The day on which it was read, ISO.
        day: The day that is asked for; None: now.
    """
    if day is None or day.isoformat() >= checked:
        return True
    if not as_of:
        return False
    year, _, rest = as_of.partition("-")
    if not rest:
        return int(year) < day.year
    if rest[0] in "QH":
        months = 3 if rest[0] == "Q" else 6
        return (int(year), int(rest[1]) * months) < (day.year, day.month)
    return as_of <= day.isoformat()


@cache
def _fields(cls: Any) -> dict[str, tuple[Callable[[Any], Any], bool, bool]]:
    """Return for each field its converter, whether it may be None and whether it has a default."""
    hints = get_type_hints(cls)
    plan: dict[str, tuple[Callable[[Any], Any], bool, bool]] = {}
    for field in fields(cls):
        hint = hints[field.name]
        is_optional = get_origin(hint) in (Union, UnionType) and NoneType in get_args(hint)
        if is_optional:
            (hint,) = (part for part in get_args(hint) if part is not NoneType)
        plan[field.name] = (_converter(hint), is_optional, field.default is not MISSING)
    return plan


def _converter(hint: Any) -> Callable[[Any], Any]:
    """Return the function that turns a TOML value into a value of this type, or refuses it."""
    if get_origin(hint) is tuple:
        convert = _converter(get_args(hint)[0])
        return lambda value: tuple(convert(item) for item in _of_type(value, list))
    if isinstance(hint, type) and is_dataclass(hint):
        return lambda value: build(hint, _of_type(value, dict))
    if isinstance(hint, type) and issubclass(hint, Enum):
        return hint
    if hint is float:
        return lambda value: float(_of_type(value, int, float))
    if hint is str:
        return lambda value: value.isoformat() if isinstance(value, date) else _of_type(value, str)
    return lambda value: _of_type(value, hint)


def _of_type(value: Any, *types: type) -> Any:
    """Return the value if it is of one of these types; True is no number."""
    if (isinstance(value, bool) and bool not in types) or not isinstance(value, types):
        raise ValueError(f"{value!r} is not of type {' or '.join(kind.__name__ for kind in types)}")
    return value


def _plain(value: Any) -> Any:
    if is_dataclass(value):
        return to_table(value)
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return value.value if isinstance(value, Enum) else value


def _jsonable(value: Any) -> Any:
    if is_dataclass(value):
        return to_document(value)
    if isinstance(value, tuple):
        return [_jsonable(item) for item in value]
    return value.value if isinstance(value, Enum) else value


def flat(groups: Iterable[Iterable[Record]]) -> list[Record]:
    """Return the items of all groups in one list."""
    return list(chain.from_iterable(groups))
