"""
Measure how well the estimates agree with the bundled measurements and write `docs/accuracy.md`.

    python -m tools.accuracy [OUT]

Prose stands in `tools/accuracy.md.in`; every `{{name}}` in it is a table or a figure of this run. The
left-out predictions go to `tools/left_out.csv`, so that tests can check the ranges without fitting again.
"""

import csv
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from planner.catalogues.gpus import all_gpus
from planner.catalogues.results import Result, all_results
from planner.measurements.corrections import DECODE, PROMPT, case_of_result, likeness, speed_residuals
from planner.measurements.memory_replay import CACHES, memory_checks
from planner.measurements.replay import METRICS, Trials, predictions
from planner.measurements.training_replay import training_checks
from planner.serving.bounds import best_possible, is_impossible
from planner.serving.ranges import span_of
from tools.calibrate import KINDS, ROOT
from tools.fit import QUANTITIES, Values, fit_kind, left_out, quantity_rows
from tools.likeness import LIKENESS_METRICS, own_groups
from tools.peer_table import Own, peer_table
from tools.priors import priors

OUT = ROOT / "docs" / "accuracy.md"
TEXT = ROOT / "tools" / "accuracy.md.in"
LEFT_OUT = ROOT / "tools" / "left_out.csv"
WORST = 5
# Own measurements that are tried, drawn at random from a group so many times.
OWN_COUNTS = (1, 3, 10)
OWN_DRAWS = 50
# Names and targets of the classes: median error of what is left out.
CLASSES = {
    "decode": ("single-stream decode", 0.10),
    "aggregate": ("aggregate serving throughput", 0.18),
    "tpot": ("time per token under load", 0.20),
    "ttft": ("time to first token under load", 0.30),
    "prefill": ("prefill", 0.25),
}
MEMORY_TARGETS = {
    "GGUF files, formats of the catalogue": 0.05,
    "GGUF files, near formats": 0.05,
    "weights in vLLM": 0.05,
    "cache pool of vLLM": 0.005,
    CACHES: None,
    "compute buffer of llama.cpp, plain attention": 0.05,
    "compute buffer of llama.cpp, latent attention, fork": 0.05,
    "whole run of transformers": None,
    "training, LoRA": None,
    "training, LoRA (emb)": None,
    "training, Q-LoRA": None,
    "training, full": None,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Measurements of one kind of engine and what three fits say of them."""

    kind: str
    these: Trials
    inside: Values  # the fit to all
    outside: Values  # each source by a fit to the others
    unseen: Values  # the same with priors that no measurement has touched


def compared() -> tuple[Comparison, ...]:
    """Fit three times and return what each fit says."""
    from planner.measurements.replay import trials
    from planner.serving.reached import fitted

    found = []
    for kind, engine in KINDS.items():
        these = trials(all_results(), engine)
        by_prior = []
        for known in (priors(), priors(unseen=True)):
            held: Mapping[str, float] = {prior.name: prior.value for prior in known}
            if kind == "llama":  # the constants of servers that both use are fitted first
                held = fit_kind("server", found[0].these, held, known).parameters
            by_prior.append(left_out(kind, these, held, known))
        found.append(
            Comparison(
                kind=kind,
                these=these,
                inside=predictions(these, fitted()),
                outside=by_prior[0],
                unseen=by_prior[1],
            )
        )
    return tuple(found)


def main(arguments: Sequence[str]) -> None:
    """Write the document and the left-out predictions."""
    all_compared = compared()
    impossible, without = _possible(all_compared)
    values = {
        "summary": _summary(all_compared),
        "speed_by_source": _by_source(all_compared),
        "worst": _worst(all_compared),
        "memory": _memory(),
        "answered": _answered(all_compared),
        "rows": f"{sum(len(one.these.results) for one in all_compared):,}",
        "own": _own(all_compared),
        "peers": _peers(all_compared),
        "impossible": impossible,
        "without_impossible": without,
    }
    text = TEXT.read_text(encoding="utf-8")
    for name, value in values.items():
        text = text.replace("{{" + name + "}}", value)
    if "{{" in text:
        raise SystemExit(f"{TEXT.name}: a name in it is not known: {text[text.index('{{') :][:40]}")
    target = Path(arguments[0]) if arguments else OUT
    target.write_text(text, encoding="utf-8")
    _write_left_out(all_compared)


def _errors(values: Values, these: Trials, which: NDArray[np.bool_]) -> Values:
    return values[which] / these.measured[which] - 1.0


def _median(errors: Values) -> str:
    return f"{np.median(np.abs(errors)) * 100:.1f} %" if len(errors) else "-"


def _p90(errors: Values) -> str:
    return f"{np.quantile(np.abs(errors), 0.9) * 100:.0f} %" if len(errors) else "-"


def held(one: Comparison, quantity: str, which: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return which of some rows lie within the range around their left-out prediction."""
    inside = []
    for place in np.flatnonzero(which):
        span = span_of(all_gpus()[one.these.results[place].gpu], one.these.engine, quantity)
        ratio = one.these.measured[place] / one.outside[place]
        inside.append(span.low <= ratio <= span.high)
    return np.array(inside, dtype=np.bool_)


def _summary(all_compared: Sequence[Comparison]) -> str:
    lines = [
        "| quantity | rows | sources | in sample: median, p90 | left out: median, p90 | "
        "left out, unseen priors | target | | range holds |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for quantity, (title, target) in CLASSES.items():
        parts = [(one, quantity_rows(one.these, quantity)) for one in all_compared]
        inside, outside, unseen = (
            np.concatenate([_errors(getattr(one, name), one.these, which) for one, which in parts])
            for name in ("inside", "outside", "unseen")
        )
        sources = {one.these.results[row].source for one, which in parts for row in np.flatnonzero(which)}
        within = np.concatenate([held(one, quantity, which) for one, which in parts])
        met = "met" if np.median(np.abs(outside)) <= target else "missed"
        lines.append(
            f"| {title} | {len(inside):,} | {len(sources)} | {_median(inside)}, {_p90(inside)} | "
            f"**{_median(outside)}**, {_p90(outside)} | {_median(unseen)} | {target * 100:.0f} % | {met} | "
            f"{np.mean(within) * 100:.0f} % |"
        )
    return "\n".join(lines)


def _by_source(all_compared: Sequence[Comparison]) -> str:
    lines = [
        "| quantity | engines | source | rows | in sample | left out | bias left out | range holds |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for quantity, (title, _) in CLASSES.items():
        for one in all_compared:
            rows = quantity_rows(one.these, quantity)
            names = np.array([result.source for result in one.these.results])
            for source in sorted(set(names[rows].tolist())):
                which = rows & (names == source)
                outside = _errors(one.outside, one.these, which)
                engines = "llama.cpp" if one.kind == "llama" else "servers"
                lines.append(
                    f"| {title} | {engines} | {source} | {which.sum()} | "
                    f"{_median(_errors(one.inside, one.these, which))} | {_median(outside)} | "
                    f"{np.median(outside) * 100:+.0f} % | {np.mean(held(one, quantity, which)) * 100:.0f} % |"
                )
    return "\n".join(lines)


def _worst(all_compared: Sequence[Comparison]) -> str:
    lines = [
        "| quantity | row | configuration | measured | left out |",
        "| --- | --- | --- | --- | --- |",
    ]
    for quantity, (title, _) in CLASSES.items():
        candidates = []
        for one in all_compared:
            for place in np.flatnonzero(quantity_rows(one.these, quantity)):
                off = abs(np.log(one.outside[place] / one.these.measured[place]))
                candidates.append((off, one, place))
        for _, one, place in sorted(candidates, key=lambda item: -item[0])[:WORST]:
            result = one.these.results[place]
            lines.append(
                f"| {title} | {result.row_id} | {_configuration(result)} | "
                f"{result.value:,.4g} {result.unit} | {one.outside[place]:,.4g} |"
            )
    return "\n".join(lines)


def _memory() -> str:
    lines = [
        "| quantity | rows | median | p90 | bias | target | |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    found: dict[str, list[float]] = {}
    for check in (*memory_checks(), *training_checks()):
        found.setdefault(check.quantity, []).append(check.error)
    for quantity, target in MEMORY_TARGETS.items():
        errors = np.array(found[quantity])
        middle = float(np.median(np.abs(errors)))
        met = "" if target is None else ("met" if middle <= target else "missed")
        far = float(np.quantile(np.abs(errors), 0.9))
        lines.append(
            f"| {quantity} | {len(errors)} | {middle * 100:.2f} % | {far * 100:.1f} % | "
            f"{np.median(errors) * 100:+.2f} % | {'-' if target is None else f'{target * 100:g} %'} | {met} |"
        )
    return "\n".join(lines)


def _own(all_compared: Sequence[Comparison]) -> str:
    """Return what some rows of a source, taken as own measurements, make of its other rows."""
    lines = [
        "| quantity | engines | own measurements | median error before | after | "
        "same model and format: before, after |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    random = np.random.default_rng(0)
    for one in all_compared:
        for quantity in (DECODE, PROMPT):
            metric = LIKENESS_METRICS[one.kind, quantity]
            for count in OWN_COUNTS:
                trial = _own_trial(one, quantity, metric, count, random)
                before, after, near_before, near_after = (
                    f"{np.median(np.abs(np.expm1(-part))) * 100:.1f} %" for part in trial
                )
                lines.append(
                    f"| {metric} | {'llama.cpp' if one.kind == 'llama' else 'servers'} | {count} | "
                    f"{before} | {after} | {near_before}, {near_after} |"
                )
    return "\n".join(lines)


def _own_trial(
    one: Comparison, quantity: str, metric: str, count: int, random: np.random.Generator
) -> tuple[Values, Values, Values, Values]:
    """
    Correct the left-out predictions of a group's other rows by some of its rows, drawn at random.

    Returns:
        Residuals before and after, of all rows and of those whose model and format were among the drawn.
    """
    off = speed_residuals(one.these, one.outside)
    cases = [case_of_result(result) for result in one.these.results]
    shares = np.array(likeness(one.these.engine, quantity))
    before, after, is_near = [], [], []
    for rows in own_groups(one.these, metric).values():
        if len(rows) < count + 2:
            continue
        levels = np.array([[cases[a].shared(cases[b], quantity) for a in rows] for b in rows])
        covariances = np.where(np.eye(len(rows)) > 0, 1.0, shares[levels])
        for _ in range(OWN_DRAWS):
            order = random.permutation(len(rows))
            own, others = order[:count], order[count:]
            pull = np.linalg.solve(covariances[np.ix_(own, own)], covariances[np.ix_(own, others)])
            residuals = off[np.array(rows)]
            before.append(residuals[others])
            after.append(residuals[others] - residuals[own] @ pull)
            is_near.append((levels[np.ix_(own, others)] >= 2).any(axis=0))
    first, second, near = (np.concatenate(part) for part in (before, after, is_near))
    return first, second, first[near], second[near]


def _answered(all_compared: Sequence[Comparison]) -> str:
    asked = [result for result in all_results() if result.metric in METRICS]
    answered = sum(int(np.isfinite(one.inside).sum()) for one in all_compared)
    missing = {result.model_name for result in asked if not result.model}
    return (
        f"{answered:,} of {len(asked):,} ({answered / len(asked) * 100:.1f} %); not in the catalogue: "
        + ", ".join(sorted(missing))
    )


def _possible(all_compared: Sequence[Comparison]) -> tuple[str, str]:
    """Return which rows their hardware does not allow as stated, and the figures without them."""
    lines = [
        "| row | configuration | measured | at most |",
        "| --- | --- | --- | --- |",
    ]
    for one in all_compared:
        bound = best_possible(one.these)
        for place in np.flatnonzero(is_impossible(one.these)):
            result = one.these.results[place]
            lines.append(
                f"| {result.row_id} | {_configuration(result)} | {result.value:,.4g} {result.unit} | "
                f"{bound[place]:,.4g} |"
            )
    without = []
    for quantity, (title, _) in CLASSES.items():
        errors = [
            _errors(one.outside, one.these, quantity_rows(one.these, quantity) & ~is_impossible(one.these))
            for one in all_compared
        ]
        without.append(f"{title} {_median(np.concatenate(errors))}, {_p90(np.concatenate(errors))}")
    return "\n".join(lines), "; ".join(without)


def _configuration(result: Result) -> str:
    lengths = f"{result.input_tokens or 0:,.0f} + {result.output_tokens or 0:,.0f}"
    quant = result.quant_name or "(format not stated)"
    return (
        f"{result.model} {quant}, {result.gpu_count}x {result.gpu}, "
        f"{result.engine_name}, batch {result.concurrency or 'queued'}, {lengths}"
    )


def _peers(all_compared: Sequence[Comparison]) -> str:
    """Return what other calculators say of the same rows."""
    ours = {
        one.these.results[place].row_id: Own(
            quantity=title,
            measured=float(one.these.measured[place]),
            error=float(one.outside[place] / one.these.measured[place] - 1.0),
        )
        for one in all_compared
        for quantity, (title, _) in CLASSES.items()
        for place in np.flatnonzero(quantity_rows(one.these, quantity))
    }
    caches = {
        check.result.row_id: Own(quantity=CACHES, measured=check.result.value, error=check.error)
        for check in memory_checks()
        if check.quantity == CACHES
    }
    return peer_table(ours, caches)


def _write_left_out(all_compared: Sequence[Comparison]) -> None:
    with LEFT_OUT.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("row_id", "quantity", "measured", "estimate", "left_out"))
        for one in all_compared:
            for quantity in QUANTITIES:
                for place in np.flatnonzero(quantity_rows(one.these, quantity)):
                    result = one.these.results[place]
                    numbers = (one.these.measured[place], one.inside[place], one.outside[place])
                    writer.writerow((result.row_id, quantity, *(f"{number:.5g}" for number in numbers)))


if __name__ == "__main__":
    main(sys.argv[1:])
