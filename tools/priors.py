"""What each constant is expected to be before any measurement is seen: the file tools/priors.toml."""

import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from planner.serving.constants import constants

# Known families have priors of their own width: they were in the first fit.
KNOWN_FAMILIES = ("ampere", "hopper", "blackwell", "geforce", "workstation")


@dataclass(frozen=True, slots=True, kw_only=True)
class Prior:
    """What a constant is expected to be before any measurement is seen."""

    name: str
    value: float
    spread: float  # of the logarithm
    low: float
    high: float
    unit: str
    what: str


@cache
def priors(unseen: bool = False) -> tuple[Prior, ...]:
    """
    Return the priors of all constants.

    Args:
        unseen: Those that no measurement of this project has touched: `unseen` where a prior names one,
            factors of 1 for all families, and every spread half as wide again.
    """
    tables = tomllib.loads(Path(__file__).with_name("priors.toml").read_text(encoding="utf-8"))
    wider = 1.5 if unseen else 1.0
    found = [
        Prior(
            name=one["name"],
            value=one.get("unseen", one["value"]) if unseen else one["value"],
            spread=one["spread"] * wider,
            low=one["low"],
            high=one["high"],
            unit=one["unit"],
            what=one["what"],
        )
        for one in tables["parameter"]
    ]
    for one in tables["factor"]:
        for family in constants().families:
            is_known = family.key in KNOWN_FAMILIES
            found.append(
                Prior(
                    name=f"family.{family.key}.{one['name']}",
                    value=1.0 if unseen else one["values"].get(family.key, 1.0),
                    spread=(one["spread_known"] if is_known else one["spread"]) * wider,
                    low=one["low"],
                    high=one["high"],
                    unit="1",
                    what=f"{family.name}: {one['what']}",
                )
            )
    return tuple(found)
