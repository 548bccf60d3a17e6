"""What residuals of one source, device and engine have in common: own measurements are learned from by it."""

from collections.abc import Mapping

import numpy as np

from planner.measurements.corrections import DECODE, LEVELS, PROMPT, REPEATED, case_of_result, speed_residuals
from planner.measurements.replay import Trials
from tools.fit import Values

# What own measurements are learned from, and how far one row may count.
LIKENESS_METRICS = {
    ("llama", DECODE): "decode_tps",
    ("llama", PROMPT): "prefill_tps",
    ("server", DECODE): "tpot_ms",
    ("server", PROMPT): "ttft_ms",
}
MOST_ALIKE = 0.7


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
