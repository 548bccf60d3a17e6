"""
Own measurements correct the estimates of their device and engine, as far as other configurations are alike.

The logarithms of measured over estimated are taken as one random field: two configurations of one device and
engine have so much of it in common as was found in the published measurements (`likeness`), more the more
they share. A correction is the expectation of that field given what was measured, and what is left of its
variance narrows the range.
"""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from math import exp, log, sqrt
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from planner.catalogue import read_text
from planner.catalogues.models import Model, all_models
from planner.catalogues.results import Result
from planner.measurements.replay import Trials, predictions, trials
from planner.serving.shape import Shape, shape_of
from planner.workload import Engine

Column = NDArray[np.float64]

# What two configurations of one device and engine share, each level all of the ones before.
LEVELS = ("device", "model", "format", "load", "lengths")
# The same configuration, measured twice: all but the spread of runs is common.
REPEATED = 0.95
# Lengths that lie in one step of this size are the same; short ones always are.
LENGTH_STEP = 0.3
LENGTH_FLOOR_TOKENS = 1024.0
# A measurement further from its estimate than this factor is of another model, format or machine.
MOST_OFF = 5.0
# Quantities that a correction is learned from, by the metric of a result.
DECODE, PROMPT = "decode", "prompt"
QUANTITY = {"decode_tps": DECODE, "tpot_ms": DECODE, "prefill_tps": PROMPT, "ttft_ms": PROMPT}


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """What a correction depends on of a configuration."""

    gpu: str
    engine: Engine
    shape: Shape
    quant: str
    gpu_count: int
    batch: int
    context_step: int  # of the cache behind a decode step
    prompt_step: int

    def shared(self, other: "Case", quantity: str) -> int:
        """Return how many levels two configurations of one device and engine share beyond it."""
        if self.shape != other.shape:
            return 0
        if self.quant != other.quant:
            return 1
        if (self.gpu_count, self.batch) != (other.gpu_count, other.batch):
            return 2
        name = "context_step" if quantity == DECODE else "prompt_step"
        return 4 if getattr(self, name) == getattr(other, name) else 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What own measurements make of one quantity."""

    factor: float = 1.0  # on speeds
    doubt: float = 1.0  # what is left of the spread, 1: all of it


@dataclass(frozen=True, slots=True, kw_only=True)
class Correction:
    """What own measurements make of the speeds of one configuration."""

    decode: Change
    prompt: Change
    measurements: int  # of its device and engine


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """Own measurements of one quantity on one device with one engine."""

    cases: tuple[Case, ...]
    residuals: Column  # ln(measured speed / estimated speed)
    inverse: Column  # of their covariances


def case_of(
    *,
    model: Model,
    quant: str,
    engine: Engine,
    gpu: str,
    gpu_count: int,
    batch: int,
    context_tokens: float,
    prompt_tokens: float,
) -> Case:
    """Return what counts of a configuration."""
    return Case(
        gpu=gpu,
        engine=engine,
        shape=shape_key(model),
        quant=quant,
        gpu_count=gpu_count,
        batch=batch,
        context_step=_step(context_tokens),
        prompt_step=_step(prompt_tokens),
    )


def case_of_result(result: Result) -> Case:
    """Return what counts of a measured configuration; a decode step has seen half of the answer."""
    held, given, written = (
        value or 0.0 for value in (result.context_tokens, result.input_tokens, result.output_tokens)
    )
    return case_of(
        model=all_models()[result.model],
        quant=result.quant,
        engine=Engine(result.engine),
        gpu=result.gpu,
        gpu_count=result.gpu_count or 1,
        batch=result.concurrency or 1,
        context_tokens=held + given + written / 2,
        prompt_tokens=held + given,
    )


@lru_cache(maxsize=1024)
def shape_key(model: Model) -> Shape:
    """Return what two models share that differ in training only."""
    return replace(shape_of(model), tower_params=0.0)


def residuals_of(results: Sequence[Result]) -> list[float]:
    """Return ln(measured speed / estimated speed) of results of one kind of engine."""
    if not results:
        return []
    these = trials(results, Engine(results[0].engine))
    with np.errstate(invalid="ignore"):  # NaN of devices whose rates are not known
        off: list[float] = speed_residuals(these, predictions(these)).tolist()
    return off


def speed_residuals(these: Trials, predicted: Column) -> Column:
    """Return ln(measured speed / estimated speed) of each measurement."""
    off = np.log(these.measured / predicted)
    return np.where(these.is_time, -off, off)


def corrections(own: tuple[Result, ...], cases: Sequence[Case]) -> list[Correction | None]:
    """
    Return what own measurements make of configurations; None where nothing of their kind was measured.

    Args:
        own: Measurements whose model, format and device the catalogues know.
        cases: The configurations.

    Source:
        docs/methodology.md, "Own measurements".
    """
    known = _known(own)
    by_case: dict[Case, Correction | None] = {}
    for case in cases:
        if case not in by_case:
            by_case[case] = _correction(known, case)
    return [by_case[case] for case in cases]


def likeness(engine: Engine, quantity: str) -> Sequence[float]:
    """Return the share that two configurations have in common, by the levels that they share."""
    return _likeness()["llama" if engine is Engine.LLAMA_CPP else "server", quantity]


def _correction(known: Mapping[tuple[str, Engine, str], Measured], case: Case) -> Correction | None:
    measured = [known.get((case.gpu, case.engine, quantity)) for quantity in (DECODE, PROMPT)]
    if not any(measured):
        return None
    decode, prompt = (
        _change(each, case, quantity) for each, quantity in zip(measured, (DECODE, PROMPT), strict=True)
    )
    return Correction(
        decode=decode, prompt=prompt, measurements=sum(len(each.cases) for each in measured if each)
    )


def _change(measured: Measured | None, case: Case, quantity: str) -> Change:
    """Return the expected error of a quantity given what was measured, and what is left of its spread."""
    if measured is None:
        return Change()
    shares = likeness(case.engine, quantity)
    common = np.array([shares[case.shared(other, quantity)] for other in measured.cases])
    pull = common @ measured.inverse
    left = max(0.0, 1.0 - float(pull @ common))
    return Change(factor=exp(float(pull @ measured.residuals)), doubt=sqrt(left))


@lru_cache(maxsize=8)
def _known(own: tuple[Result, ...]) -> Mapping[tuple[str, Engine, str], Measured]:
    """Return the measurements by device, engine and quantity."""
    grouped: dict[tuple[str, Engine, str], list[Result]] = {}
    for result in own:
        if result.metric in QUANTITY:
            key = (result.gpu, Engine(result.engine), QUANTITY[result.metric])
            grouped.setdefault(key, []).append(result)
    return {key: _measured(results, key[1], key[2]) for key, results in grouped.items()}


def _measured(results: Sequence[Result], engine: Engine, quantity: str) -> Measured:
    shares = likeness(engine, quantity)
    cases = tuple(case_of_result(result) for result in results)
    covariance = np.array(
        [[1.0 if one is other else shares[one.shared(other, quantity)] for other in cases] for one in cases]
    )
    limit = log(MOST_OFF)
    return Measured(
        cases=cases,
        residuals=np.clip(residuals_of(results), -limit, limit),
        inverse=np.linalg.inv(covariance),
    )


def _step(tokens: float) -> int:
    return round(log(tokens + LENGTH_FLOOR_TOKENS) / LENGTH_STEP)


@cache
def _likeness() -> Mapping[tuple[str, str], Sequence[float]]:
    tables = tomllib.loads(read_text("fitted.toml"))["likeness"]
    return MappingProxyType(
        {
            (kind, quantity): tuple(table[quantity])
            for kind, table in tables.items()
            for quantity in (DECODE, PROMPT)
        }
    )
