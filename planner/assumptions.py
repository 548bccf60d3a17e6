"""Every assumption of the decision: value, unit, range and source; by owner, and overridden by name."""

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from types import MappingProxyType

from planner.catalogue import build, close_matches, read_toml, unique
from planner.errors import InvalidScenario, UnknownName
from planner.numbers import parse_number
from planner.supply.paths import Moves, RentPath

# The comma before a further NAME=; the one of a decimal comma is left for the number to refuse.
_NEXT_SETTING = re.compile(r",(?=\s*[A-Za-z_]+\s*=|\s*$)")
ASSUMPTIONS_SCHEMA = "breakeven.assumptions/1"


class Owner(StrEnum):
    """Who would own the machine: sets the defaults of owning."""

    HOME = "home"  # no staff cost, PUE 1.0
    OFFICE = "office"
    COLO = "colo"


class Origin(StrEnum):
    """Where a value in use comes from."""

    DEFAULT = "default"
    OWNER = "owner profile"
    PATH = "rent path"
    SET = "set"
    OPTION = "option"  # set by an option of its own
    CATALOGUE = "catalogue"  # no value here: taken from a catalogue for each machine


@dataclass(frozen=True, slots=True, kw_only=True)
class Assumption:
    """One number that is assumed, with the range seen and where it comes from."""

    name: str
    title: str
    value: float | None = None  # None: taken from a catalogue, machine by machine
    unit: str
    low: float  # the range seen
    high: float
    minimum: float  # what is accepted at all
    maximum: float
    home: float | None
    office: float | None
    colo: float | None
    decline: float | None = None  # under a path of rents, where that says so
    shock: float | None = None
    option: str | None  # it has a command-line option of its own
    source: str
    checked: str  # ISO date

    def __post_init__(self) -> None:
        stated = (self.value, self.home, self.office, self.colo, self.decline, self.shock)
        values = [value for value in stated if value is not None]
        if not self.minimum <= self.low <= self.high <= self.maximum:
            raise ValueError(f"{self.name}: the range seen must lie within what is accepted")
        if not all(self.minimum <= value <= self.maximum for value in values):
            raise ValueError(f"{self.name}: a default lies outside {self.minimum:g} to {self.maximum:g}")

    def by_owner(self, owner: Owner) -> float | None:
        """Return the value under this owner profile, None where a catalogue gives it."""
        own = {Owner.HOME: self.home, Owner.OFFICE: self.office, Owner.COLO: self.colo}[owner]
        return self.value if own is None else own

    def by_path(self, path: RentPath) -> float | None:
        """Return what a path of rents says, None where it says nothing."""
        return {RentPath.DECLINE: self.decline, RentPath.SHOCK: self.shock}.get(path)

    @property
    def allowed(self) -> str:
        """What is accepted, in words."""
        return f"a number from {self.minimum:g} to {self.maximum:g} {self.unit}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Assumptions:
    """The values in use: defaults of an owner profile and of a path of rents, and what the user set."""

    owner: Owner
    overrides: Mapping[str, float] = field(default_factory=dict)
    path: RentPath = RentPath.FLAT

    def __post_init__(self) -> None:
        for name, value in self.overrides.items():
            _check(_settable(name), value)

    def get(self, name: str) -> float | None:
        """Return a value in use, None where a catalogue gives it machine by machine."""
        if name in self.overrides:
            return self.overrides[name]
        record = all_assumptions()[name]
        chosen = record.by_path(self.path)
        return record.by_owner(self.owner) if chosen is None else chosen

    def __getitem__(self, name: str) -> float:
        value = self.get(name)
        if value is None:
            raise KeyError(f"{name} has no value of its own")
        return value

    def is_set(self, name: str) -> bool:
        """Whether the user gave this value, by name or by a path of rents."""
        return name in self.overrides or all_assumptions()[name].by_path(self.path) is not None

    def origin(self, name: str) -> Origin:
        """Return where the value in use comes from."""
        if name in self.overrides:
            return Origin.SET
        record = all_assumptions()[name]
        if record.by_path(self.path) is not None:
            return Origin.PATH
        value = record.by_owner(self.owner)
        if value is None:
            return Origin.CATALOGUE
        return Origin.DEFAULT if value == record.value else Origin.OWNER

    def source(self, name: str) -> str:
        """Return where the value in use comes from, in words."""
        if name in self.overrides:
            return f"--set {name}={self.overrides[name]:g}"
        if all_assumptions()[name].by_path(self.path) is not None:
            return f"--rent-path {self.path}: {all_assumptions()[name].source}"
        return f"assumption {name}: {all_assumptions()[name].source}"

    @property
    def rents(self) -> Moves:
        """How rents move."""
        return Moves(
            change_per_year=self["rent_change_per_year"],
            shock_fraction=self["rent_shock_fraction"],
            shock_months=self["rent_shock_months"],
        )

    @property
    def api_prices(self) -> Moves:
        """How the prices of APIs move."""
        return Moves(change_per_year=self["api_change_per_year"])

    @property
    def electricity(self) -> Moves:
        """How the price of electricity moves."""
        return Moves(change_per_year=self["electricity_change_per_year"])


@cache
def all_assumptions() -> Mapping[str, Assumption]:
    """Return every assumption by name, in the order of the catalogue."""
    records = [build(Assumption, table) for table in read_toml("assumptions.toml", "assumption")]
    return MappingProxyType(unique(records, "name", "assumptions.toml"))


def split_settings(text: str) -> list[str]:
    """Return the single settings of `NAME=VALUE,NAME=VALUE`."""
    return [part for part in _NEXT_SETTING.split(text) if part.strip()]


def parse_settings(settings: Iterable[str]) -> dict[str, float]:
    """
    Return the values given as `NAME=VALUE`, several apart by commas; of the same name the last counts.

    Raises:
        InvalidScenario: if one is not of that form, or its value is not allowed.
        UnknownName: if no assumption is called so; with close matches.
    """
    values: dict[str, float] = {}
    for setting in (part for text in settings for part in split_settings(text)):
        name, equals, text = setting.partition("=")
        if not equals or not name.strip():
            raise InvalidScenario("set", setting, "NAME=VALUE, for instance purchase_usd=25000")
        record = _settable(name.strip())
        value = parse_number(f"set {record.name}", text.strip(), record.allowed)
        values[record.name] = _check(record, value)
    return values


def assumptions_document(
    owner: str | Owner = Owner.OFFICE,
    overrides: Mapping[str, float] | None = None,
    options: Mapping[str, float] | None = None,
    path: RentPath = RentPath.FLAT,
) -> Mapping[str, object]:
    """
    Return every assumption as `breakeven.assumptions/1`.

    Args:
        owner: The owner profile.
        overrides: Values given by `--set`.
        options: Values given by options of their own, by assumption name.
        path: How rents move.
    """
    in_use = Assumptions(owner=Owner(owner), overrides=overrides or {}, path=path)
    given = options or {}
    return {
        "schema": ASSUMPTIONS_SCHEMA,
        "owner": str(in_use.owner),
        "assumptions": [
            {
                "name": record.name,
                "title": record.title,
                "value": given.get(record.name, in_use.get(record.name)),
                "unit": record.unit,
                "low": record.low,
                "high": record.high,
                "minimum": record.minimum,
                "maximum": record.maximum,
                "by_owner": {str(owner): record.by_owner(owner) for owner in Owner},
                "by_rent_path": {
                    str(path): record.by_owner(in_use.owner) if chosen is None else chosen
                    for path in RentPath
                    for chosen in (record.by_path(path),)
                }
                if record.decline is not None or record.shock is not None
                else None,
                "origin": str(Origin.OPTION if record.name in given else in_use.origin(record.name)),
                "set_by": record.option or f"--set {record.name}=VALUE",
                "source": record.source,
                "checked": record.checked,
            }
            for record in all_assumptions().values()
        ],
    }


def _settable(name: str) -> Assumption:
    """Return the assumption of this name that `--set` may change."""
    record = all_assumptions().get(name)
    if record is None:
        names = [each.name for each in all_assumptions().values() if each.option is None]
        raise UnknownName("assumption", name, close_matches(name, names))
    if record.option is not None:
        raise InvalidScenario("set", name, f"its own option instead: {record.option}")
    return record


def _check(record: Assumption, value: float) -> float:
    """Return the value once it lies in what is accepted."""
    if not math.isfinite(value) or not record.minimum <= value <= record.maximum:
        raise InvalidScenario(f"set {record.name}", value, record.allowed)
    return float(value)
