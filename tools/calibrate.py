"""
Fit the constants of the speed estimates to the bundled measurements and write `planner/data/fitted.toml`.

    python -m tools.calibrate [OUT]

Constants are positive and move in their logarithm between bounds, held by the priors of `tools/priors.toml`.
A residual is ln(estimate / measured) under a soft L1 loss, so that a row that is far off pulls as hard as
one that is somewhat off. Rows of one source and metric share its bias: a group of n rows counts as the
square root of n. Times to a first token scatter more and are given twice the spread. Every source is left
out once and predicted from the others; the ranges hold 80 % of these left-out predictions.
"""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from planner.catalogues.gpus import all_gpus
from planner.catalogues.results import all_results
from planner.measurements.corrections import DECODE, LEVELS, PROMPT
from planner.measurements.replay import Trials, predictions, trials
from planner.serving.bounds import is_impossible
from planner.serving.devices import range_factor
from planner.workload import Engine
from tools.fit import QUANTITIES, Fit, Values, fit_kind, left_out, quantity_rows
from tools.likeness import likeness_of
from tools.priors import priors

ROOT = Path(__file__).resolve().parent.parent
OUT = ROOT / "planner" / "data" / "fitted.toml"
KINDS = {"server": Engine.VLLM, "llama": Engine.LLAMA_CPP}
# Where a kind of engine has no rows of a quantity, the range of the one that stands for it; a time stands for
# a speed, and a speed for a time, by its reciprocal.
STAND_INS = {
    ("llama", "aggregate"): ("server", "aggregate"),
    ("llama", "ttft"): ("llama", "prefill"),
    ("llama", "tpot"): ("llama", "decode"),
    ("server", "prefill"): ("server", "ttft"),
}
TIMES = ("ttft", "tpot")
COVERAGE = 0.80


def range_ends(these: Trials, predicted: Values, quantity: str) -> tuple[float, float] | None:
    """Return the shares of an estimate between which 80 % of the left-out rows lie, None without rows."""
    which = quantity_rows(these, quantity) & ~is_impossible(these)
    if not which.any():
        return None
    widening = np.array([range_factor(all_gpus()[result.gpu], these.engine) for result in these.results])
    off = (np.log(these.measured / predicted) / widening)[which]
    low, high = np.quantile(off, [(1.0 - COVERAGE) / 2.0, (1.0 + COVERAGE) / 2.0])
    return float(np.exp(min(low, -0.02))), float(np.exp(max(high, 0.02)))


def stand_in(
    rows: Mapping[str, Trials], outside: Mapping[str, Values], kind: str, quantity: str
) -> tuple[float, float]:
    """Return the ends of a quantity of which a kind of engine has no rows, by the one that stands for it."""
    other, known = STAND_INS[kind, quantity]
    ends = range_ends(rows[other], outside[other], known)
    assert ends is not None
    is_inverse = (known in TIMES) is not (quantity in TIMES)
    return (1.0 / ends[1], 1.0 / ends[0]) if is_inverse else ends


def calibrated() -> tuple[dict[str, Trials], Mapping[str, float], dict[str, Fit], dict[str, Values]]:
    """Return measurements, all constants, the fit of each kind, and the left-out predictions."""
    known = priors()
    values: Mapping[str, float] = {prior.name: prior.value for prior in known}
    rows = {kind: trials(all_results(), engine) for kind, engine in KINDS.items()}
    fits: dict[str, Fit] = {}
    outside: dict[str, Values] = {}
    for kind, these in rows.items():
        outside[kind] = left_out(kind, these, values, known)
        fits[kind] = fit_kind(kind, these, values, known)
        values = fits[kind].parameters
    return rows, values, fits, outside


def document(
    rows: Mapping[str, Trials],
    values: Mapping[str, float],
    fits: Mapping[str, Fit],
    outside: Mapping[str, Values],
) -> str:
    """Return the file of constants."""
    moved = {name for one in fits.values() for name in one.moved}
    lines = [
        "# Written by tools/calibrate.py (`make calibrate`); not edited by hand.",
        "# Method: docs/methodology.md, Calibration. How well it does: docs/accuracy.md.",
        "# What each constant is, its prior and its bounds: tools/priors.toml.",
        "",
        "[provenance]",
        f"measurements = {sum(len(these.results) for these in rows.values())}",
        "sources = [",
    ]
    sources = sorted({result.source for these in rows.values() for result in these.results})
    lines += [f'  "{source}",' for source in sources]
    lines += ["]", f"constants = {len(values)}", f"constants_moved = {len(moved)}", ""]
    for kind, these in rows.items():
        by_quantity = {name: range_ends(these, outside[kind], name) for name in QUANTITIES}
        lines += [
            "# From an estimate to the ends between which 80 % of the left-out measurements lie.",
            f"[ranges.{kind}]",
        ]
        for name, ends in by_quantity.items():
            if ends is None:
                ends = stand_in(rows, outside, kind, name)
            lines.append(f"{name} = [{ends[0]:.4f}, {ends[1]:.4f}]")
        lines.append("")
    for kind, these in rows.items():
        lines += [
            "# What two residuals of one device and engine have in common, by what they share:",
            f"# {', '.join(LEVELS)}.",
            f"[likeness.{kind}]",
        ]
        for quantity in (DECODE, PROMPT):
            lines.append(f"{quantity} = {likeness_of(these, outside[kind], kind, quantity)}")
        lines.append("")
    lines += ["# Constants that no measurement told of keep their prior and are marked.", "[parameters]"]
    for name, value in values.items():
        lines.append(f'"{name}" = {value:.6g}{"" if name in moved else "  # prior"}')
    return "\n".join(lines) + "\n"


def main(arguments: Sequence[str]) -> None:
    """Fit and write."""
    rows, values, fits, outside = calibrated()
    target = Path(arguments[0]) if arguments else OUT
    target.write_text(document(rows, values, fits, outside), encoding="utf-8")
    for kind, these in rows.items():
        inside = predictions(these, values)
        for quantity in QUANTITIES:
            which = quantity_rows(these, quantity)
            if which.any():
                off = [np.abs(one[which] / these.measured[which] - 1.0) for one in (inside, outside[kind])]
                print(
                    f"{kind} {quantity}: {which.sum()} rows, median error {np.median(off[0]):.3f} in sample, "
                    f"{np.median(off[1]):.3f} left out"
                )


if __name__ == "__main__":
    main(sys.argv[1:])
