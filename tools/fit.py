"""The fit of constants to measurements: its loss, the weight of a row, what is predicted without a source."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares

from planner.measurements.replay import METRICS, Trials, predictions
from planner.serving.bounds import is_impossible
from tools.priors import Prior

# Constants that only rows of llama.cpp and its kin tell of; the others are fitted to servers first and then
# kept.
LLAMA = ("llama.", "no_flash.", "of_2024.unpack", "run.untuned", "run.exllama", "run.fork")
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
Values = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """The constants of one fit."""

    parameters: Mapping[str, float]
    moved: tuple[str, ...]  # those that some measurement told of


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
