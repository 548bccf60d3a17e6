"""The published measurements nearest to a configuration, how far they are from it, and what they measured."""

from bisect import insort
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import inf

from planner.catalogues.gpus import Gpu
from planner.catalogues.models import Model
from planner.catalogues.results import Result
from planner.measurements.corrections import shape_key
from planner.measurements.nearness import Neighbour, compared
from planner.measurements.replay import predictions, trials
from planner.measurements.runs import FIGURES, Run, all_runs, figure_of, runs_of
from planner.workload import Machine, Workload

EVIDENCE_SCHEMA = "breakeven.evidence/1"
# How many results stand beside an estimate.
NEAREST = 5
# Farther away a measurement says little of the configuration: e^1 = 2.7 times the bytes, or another model,
# device and engine together. Source: own choice, from the steps of `planner.measurements.nearness`.
NEAR_DISTANCE = 1.0


def nearest(workload: Workload, machine: Machine, limit: int = NEAREST) -> tuple[Neighbour, ...]:
    """
    Return the measured configurations nearest to one, nearest first; own ones go before published ones.

    Args:
        workload: What is asked for.
        machine: On what.
        limit: How many at most.

    Source:
        docs/methodology.md, "Evidence".
    """
    found: list[Neighbour] = []
    for run in (*runs_of(workload.own_results), *all_runs()):
        farthest = found[-1].distance if len(found) == limit else inf
        near = compared(workload, machine, run, farthest)
        if near is not None:
            insort(found, near, key=lambda one: one.distance)
            del found[limit:]
    return tuple(found)


def of_model(model: Model, gpu: Gpu | None = None, own: Sequence[Result] = ()) -> tuple[Run, ...]:
    """
    Return what was measured of a model, or of one of the same shape.

    Args:
        model: The model.
        gpu: Only on this device.
        own: The user's own measurements, which come first.
    """
    shape = shape_key(model)
    return tuple(
        run
        for run in (*runs_of(own), *all_runs())
        if shape_key(run.workload.model) == shape and (gpu is None or run.machine.gpu == gpu)
    )


def estimate_of(run: Run) -> Mapping[str, float]:
    """Return the estimates of what a run measured, under its own conditions: old engines and the like."""
    estimates = predictions(trials(run.results, run.workload.engine)).tolist()
    figures = (
        replace(result, value=estimate) for result, estimate in zip(run.results, estimates, strict=True)
    )
    return {FIGURES[result.metric]: figure_of(result) for result in figures}


def to_document(near: Neighbour) -> Mapping[str, object]:
    """Return one neighbour as part of `breakeven.evidence/1` and `breakeven.size/1`."""
    return {
        "distance": near.distance,
        "is_same": near.is_same,
        "differences": list(near.differences),
        **run_document(near.run),
    }


def run_document(run: Run) -> Mapping[str, object]:
    """Return what was measured, and what the estimate says of the same configuration."""
    first, work = run.first, run.workload
    return {
        "model": work.model.id,
        "model_published": first.model_name,
        "quant": work.quant.name,
        "quant_published": first.quant_name,
        "kv_dtype": first.kv_dtype or None,
        "engine": str(work.engine),
        "engine_published": " ".join(part for part in (first.engine_name, first.engine_version) if part),
        "gpu": run.machine.gpu.name,
        "gpu_count": run.machine.gpu_count,
        "batch": first.concurrency,
        "context_tokens": work.context_tokens,
        "input_tokens": first.input_tokens,
        "output_tokens": first.output_tokens,
        "held_tokens": first.context_tokens,
        "measured": dict(run.measured),
        "estimated": dict(estimate_of(run)),
        "date": first.date or None,
        "source": first.source,
        "source_ref": first.source_ref,
        "row_ids": [result.row_id for result in run.results],
        "notes": first.notes,
    }
