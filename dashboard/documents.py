"""What is read or taken away whole: the methodology, the plan as a file, assumptions in words."""

from collections.abc import Callable, Mapping
from importlib.resources import files
from pathlib import Path

from planner.assumptions import all_assumptions
from planner.compare import Plan
from planner.scenario import Scenario

METHODOLOGY = "methodology.md"
# Formats of `planner.export` that the page offers: label and type.
DOWNLOADS: Mapping[str, tuple[str, str]] = {
    "csv": ("CSV", "text/csv"),
    "xlsx": ("Excel", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"),
    "json": ("JSON", "application/json"),
    "md": ("Markdown", "text/markdown"),
    "html": ("HTML", "text/html"),
}


def export(found: Plan, name: str, permalink: str | None = None) -> Callable[[], bytes]:
    """
    Return what writes a plan in a format of `planner.export`; called when a person asks for the file.

    Args:
        found: The plan.
        name: Of the format.
        permalink: Address of the page that shows it; without a host where None.
    """

    def written() -> bytes:
        from planner.export import FORMATS

        return FORMATS[name](found, permalink)

    return written


def methodology() -> str | None:
    """Return the document with every formula; None where the installation lacks it."""
    packaged = files("dashboard").joinpath(METHODOLOGY)
    beside = Path(__file__).resolve().parent.parent / "docs" / METHODOLOGY  # a checkout
    for place in (packaged, beside):
        if place.is_file():
            return place.read_text(encoding="utf-8")
    return None


def options_as_assumptions(scenario: Scenario) -> dict[str, float]:
    """Return the assumptions that options of the question set, where they are not at their default."""
    changed = scenario.changed()
    if scenario.load_profile is not None:
        changed["hours_per_day"] = scenario.service_hours_per_day
    return {
        name: float(changed[name]) for name in all_assumptions() if isinstance(changed.get(name), int | float)
    }
