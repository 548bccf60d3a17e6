"""What other calculators say of the measurements, beside ours: a table of docs/accuracy.md."""

import csv
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

FOLDER = Path(__file__).resolve().parent
ESTIMATES = FOLDER / "peers.csv"
FACTS = FOLDER / "peers.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Own:
    """A measurement and what our estimate of it is off by, its source left out."""

    quantity: str
    measured: float
    error: float  # estimate over measurement, less 1


def peer_table(speeds: Mapping[str, Own], caches: Mapping[str, Own]) -> str:
    """
    Return two tables: errors by peer and quantity on the rows that it answers, and times.

    Args:
        speeds: Ours by row of speed.
        caches: Ours by row of memory; the names of the two overlap.
    """
    if not ESTIMATES.exists():
        return "Not run: `make peers` asks them."
    facts = json.loads(FACTS.read_text(encoding="utf-8"))
    pairs: dict[tuple[str, str], list[tuple[float, float]]] = {}
    with ESTIMATES.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            own = (caches if facts[row["peer"]]["about"] == "memory" else speeds)[row["row_id"]]
            error = float(row["estimate"]) / own.measured - 1.0
            pairs.setdefault((row["peer"], own.quantity), []).append((error, own.error))
    lines = [
        "| peer | quantity | rows answered | peer: median, p90 | ours, left out: median, p90 | ahead |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for (name, quantity), both in pairs.items():
        theirs, ours = np.abs(np.array(both)).T
        ahead = "ours" if np.median(ours) <= np.median(theirs) else "**theirs**"
        lines.append(
            f"| {name} | {quantity} | {len(both):,} | {_middle_and_far(theirs)} | {_middle_and_far(ours)} | "
            f"{ahead} |"
        )
    return "\n".join([*lines, "", *_times(facts)])


def _middle_and_far(errors: NDArray[np.float64]) -> str:
    return f"{np.median(errors) * 100:.1f} %, {np.quantile(errors, 0.9) * 100:.0f} %"


def _times(facts: Mapping[str, Mapping[str, object]]) -> list[str]:
    lines = ["| calculator | rows asked | configurations answered | seconds for each |"]
    lines.append("| --- | --- | --- | --- |")
    for name, fact in facts.items():
        if name != "breakeven":
            lines.append(
                f"| {name} ({fact['package']}) | {fact['rows_asked']:,} | "
                f"{fact['configurations_answered']:,} | {fact['seconds_per_configuration']:.2g} |"
            )
    own = facts["breakeven"]
    read, formulas = own["seconds_per_configuration"], own["seconds_of_formulas"]
    lines.append(f"| ours, each row read by itself | | | {read:.2g} |")
    lines.append(f"| ours, the formulas alone, all rows together | | | {formulas:.2g} |")
    return lines
