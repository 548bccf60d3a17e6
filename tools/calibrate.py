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
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares

from planner.catalogues.gpus import all_gpus
from planner.catalogues.results import all_results
from planner.measurements.corrections import DECODE, LEVELS, PROMPT, REPEATED, case_of_result, speed_residuals
from planner.measurements.replay import METRICS, Trials, predictions, trials
from planner.serving.bounds import is_impossible
from planner.serving.constants import constants
from planner.serving.devices import range_factor
from planner.workload import Engine

ROOT = Path(__file__).resolve().parent.parent
OUT = ROOT / "planner" / "data" / "fitted.toml"
KINDS = {"server": Engine.VLLM, "llama": Engine.LLAMA_CPP}
# Constants that only rows of llama.cpp and its kin tell of; the others are fitted to servers first and then
# kept.
LLAMA = ("llama.", "no_flash.", "of_2024.unpack", "run.untuned", "run.exllama", "run.fork")
# Known families have priors of their own width: they were in the first fit.
KNOWN_FAMILIES = ("ampere", "hopper", "blackwell", "geforce", "workstation")
# A row of a lone source is trusted to within 8 %; beyond 0.3 in the logarithm its pull grows no more.
ROW_SPREAD = 0.08
# First tokens scatter about twice as far as other quantities of servers under load (docs/accuracy.md, in
# sample): on how requests arrive and wait, which few sources say. They must not move what a step costs.
FIRST_TOKEN_SPREAD = 2.0 * ROW_SPREAD
SOFT_L1_SCALE = 0.3
# Quantities by the metrics that measure them.
QUANTITIES = {
    "decode": ("decode_tps", "e2e_output_tps"),
    "aggregate": ("agg_output_tps", "agg_total_tps"),
    "prefill": ("prefill_tps",),
    "ttft": ("ttft_ms",),
    "tpot": ("tpot_ms",),
}
# Where a kind of engine has no rows of a quantity, the range of the one that stands for it.
STAND_INS = {
    ("llama", "aggregate"): ("server", "aggregate"),
    ("llama", "ttft"): ("llama", "prefill"),
    ("llama", "tpot"): ("llama", "decode"),
    ("server", "prefill"): ("server", "ttft"),
}
COVERAGE = 0.80
# What own measurements are learned from, and how far one row may count.
LIKENESS_METRICS = {
    ("llama", DECODE): "decode_tps",
    ("llama", PROMPT): "prefill_tps",
    ("server", DECODE): "tpot_ms",
    ("server", PROMPT): "ttft_ms",
}
MOST_ALIKE = 0.7

Values = NDArray[np.float64]


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """The constants of one fit."""

    parameters: Mapping[str, float]
    moved: tuple[str, ...]  # those that some measurement told of


@cache
def priors(unseen: bool = False) -> tuple[Prior, ...]:
    """
    Return the priors of all constants.

    Args:
        unseen: Those that no measurement of this project has touched: `unseen` where a prior names one,
            factors of 1 for all families, and every spread half as wide again.
    """
    tables = tomllib.loads((ROOT / "tools" / "priors.toml").read_text(encoding="utf-8"))
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


def replace_measured(these: Trials, measured: Values) -> Trials:
    """Return the same configurations with other measurements."""
    return replace(these, measured=measured)


def is_of_llama(name: str) -> bool:
    """Whether only llama.cpp and its kin tell of a constant."""
    return name.startswith(LLAMA) or (name.startswith("family.") and ".llama_" in name)


def groups(these: Trials) -> list[str]:
    """Return the group of each row: its source and metric."""
    return [f"{result.source} | {result.metric}" for result in these.results]


def row_weights(these: Trials) -> Values:
    """Return 1 / spread of each row: groups of n rows of a metric weigh as the square root of n."""
    names = groups(these)
    sizes = {name: names.count(name) for name in set(names)}
    shared = np.array([sizes[name] ** 0.25 for name in names])
    spread = np.where(quantity_rows(these, "ttft"), FIRST_TOKEN_SPREAD, ROW_SPREAD)
    return 1.0 / (spread * shared)


def soft_l1(residuals: Values) -> Values:
    """Return residuals whose squares are a soft L1 loss."""
    scaled = residuals / SOFT_L1_SCALE
    return np.sqrt(2.0 * (np.sqrt(1.0 + np.square(scaled)) - 1.0)) * SOFT_L1_SCALE


def fit(
    these: Trials,
    held: Mapping[str, float],
    names: Sequence[str],
    known: Sequence[Prior],
    start: Mapping[str, float] | None = None,
) -> Fit:
    """
    Fit some constants to some measurements.

    Args:
        these: The measurements; those that their hardware does not allow as stated are left aside.
        held: Values of all constants that do not move.
        names: The constants that may move; those that no measurement tells of keep their prior.
        known: The priors of all constants.
        start: Where the search begins, the priors where None; saves time and changes nothing else.
    """
    these = these.chosen(~is_impossible(these))
    by_name = {prior.name: prior for prior in known}
    values = {**held, **{name: by_name[name].value for name in names}}
    weights, goal = row_weights(these), np.log(these.measured)

    def errors(changed: Mapping[str, float]) -> Values:
        return np.log(predictions(these, {**values, **changed})) - goal

    plain = errors({})
    moving = [
        name for name in names if not np.allclose(errors({name: values[name] * 1.05}), plain, atol=1e-12)
    ]
    centre = np.log([by_name[name].value for name in moving])
    spread = np.array([by_name[name].spread for name in moving])
    bounds = (np.log([by_name[name].low for name in moving]), np.log([by_name[name].high for name in moving]))

    def residuals(point: Values) -> Values:
        changed = dict(zip(moving, np.exp(point).tolist(), strict=True))
        return np.concatenate([weights * soft_l1(errors(changed)), (point - centre) / spread])

    begin = centre if start is None else np.log([start[name] for name in moving])
    begin = np.clip(begin, bounds[0] + 1e-6, bounds[1] - 1e-6)
    found = least_squares(residuals, begin, bounds=bounds, max_nfev=60, ftol=1e-5).x
    return Fit(
        parameters={**values, **dict(zip(moving, np.exp(found).tolist(), strict=True))}, moved=tuple(moving)
    )


def fit_kind(
    kind: str,
    these: Trials,
    held: Mapping[str, float],
    known: Sequence[Prior],
    start: Mapping[str, float] | None = None,
) -> Fit:
    """Fit the constants that one kind of engine tells of."""
    names = [prior.name for prior in known if is_of_llama(prior.name) is (kind == "llama")]
    return fit(these, held, names, known, start)


def left_out(
    kind: str,
    these: Trials,
    held: Mapping[str, float],
    known: Sequence[Prior],
    group_of: Callable[[int], str] | None = None,
) -> Values:
    """Return the prediction of each row by a fit to the rows of all other sources, or of all other groups."""
    names = np.array(
        [result.source if group_of is None else group_of(row) for row, result in enumerate(these.results)]
    )
    predicted = np.empty(len(names))
    whole = fit_kind(kind, these, held, known).parameters
    for name in sorted(set(names.tolist())):
        others = fit_kind(kind, these.chosen(names != name), held, known, whole)
        predicted[names == name] = predictions(these.chosen(names == name), others.parameters)
    return predicted


def quantity_rows(these: Trials, quantity: str) -> NDArray[np.bool_]:
    """Return which rows measure a quantity."""
    return np.isin(these.metric, [METRICS.index(metric) for metric in QUANTITIES[quantity]])


def range_ends(these: Trials, predicted: Values, quantity: str) -> tuple[float, float] | None:
    """Return the shares of an estimate between which 80 % of the left-out rows lie, None without rows."""
    which = quantity_rows(these, quantity) & ~is_impossible(these)
    if not which.any():
        return None
    widening = np.array([range_factor(all_gpus()[result.gpu], these.engine) for result in these.results])
    off = (np.log(these.measured / predicted) / widening)[which]
    low, high = np.quantile(off, [(1.0 - COVERAGE) / 2.0, (1.0 + COVERAGE) / 2.0])
    return float(np.exp(min(low, -0.02))), float(np.exp(max(high, 0.02)))


def own_groups(these: Trials, metric: str) -> Mapping[tuple[str, str, str], list[int]]:
    """Return the rows of a metric that one user could have measured: one source, device and engine."""
    found: dict[tuple[str, str, str], list[int]] = {}
    for row, result in enumerate(these.results):
        if result.metric == metric:
            found.setdefault((result.source, result.gpu, result.engine_name), []).append(row)
    return found


def likeness_of(these: Trials, predicted: Values, kind: str, quantity: str) -> list[float]:
    """
    Return the share of a left-out residual that two rows of one source, device and engine have in common.

    Mean product over mean square, by the levels that two configurations share; a group of n rows weighs as n.
    """
    off = np.clip(speed_residuals(these, predicted), -MOST_ALIKE, MOST_ALIKE)
    cases = [case_of_result(result) for result in these.results]
    sums = np.zeros((len(LEVELS), 2))
    for rows in own_groups(these, LIKENESS_METRICS[kind, quantity]).values():
        for place, one in enumerate(rows):
            for other in rows[:place]:
                level = cases[one].shared(cases[other], quantity)
                square = (off[one] ** 2 + off[other] ** 2) / 2.0
                sums[level] += np.array([off[one] * off[other], square]) / len(rows)
    shares = np.divide(sums[:, 0], sums[:, 1], out=np.zeros(len(LEVELS)), where=sums[:, 1] > 0.0)
    grown = np.maximum.accumulate(np.clip(shares[:-1], 0.0, REPEATED))
    return [*(round(float(share), 2) for share in grown), REPEATED]


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
                other, quantity = STAND_INS[kind, name]
                ends = range_ends(rows[other], outside[other], quantity)
            assert ends is not None
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
