"""Measured configurations, each with all the figures that its source gives of it."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache

from planner.catalogues.gpus import all_gpus
from planner.catalogues.models import all_models
from planner.catalogues.quants import find_quant
from planner.catalogues.results import Result, all_results
from planner.measurements.replay import cache_dtype, layout_of, offload_fraction
from planner.workload import Engine, Machine, Workload

# Names of the figures in `breakeven.size/1`, by the metric of a result.
FIGURES = {
    "decode_tps": "decode_tokens_per_s",
    "prefill_tps": "prefill_tokens_per_s",
    "agg_output_tps": "aggregate_tokens_per_s",
    "agg_total_tps": "aggregate_tokens_per_s",
    "e2e_output_tps": "aggregate_tokens_per_s",
    "ttft_ms": "ttft_ms",
    "tpot_ms": "tpot_ms",
}
_OF_ONE_FIGURE = re.compile(r"(^|; )(mean|median|column)\b[^;]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One measured configuration, with all figures that its source gives of it."""

    results: tuple[Result, ...]
    workload: Workload
    machine: Machine

    @property
    def first(self) -> Result:
        """What all its results have in common, and one of its figures."""
        return self.results[0]

    @property
    def measured(self) -> Mapping[str, float]:
        """The figures by their names in `breakeven.size/1`."""
        return {FIGURES[result.metric]: figure_of(result) for result in self.results}


def figure_of(result: Result) -> float:
    """Return a result in the unit of its figure: output tokens where a source counts prompts too."""
    if result.metric != "agg_total_tps":
        return result.value
    given, written = result.input_tokens or 0.0, result.output_tokens or 0.0
    return result.value * written / (given + written)


@cache
def all_runs() -> tuple[Run, ...]:
    """Return every published configuration of speed whose model, format and device the catalogues know."""
    return runs_of(all_results())


def runs_of(results: Iterable[Result]) -> tuple[Run, ...]:
    """Return measured configurations of speed, each with all its figures."""
    grouped: dict[tuple[object, ...], list[Result]] = {}
    for result in results:
        if result.kind != "memory" and result.model and result.quant and result.gpu:
            grouped.setdefault(_run_key(result), []).append(result)
    return tuple(
        Run(results=tuple(results), workload=_workload(results[0]), machine=_machine(results[0]))
        for results in grouped.values()
    )


def _run_key(result: Result) -> tuple[object, ...]:
    return (
        result.source,
        result.source_ref,
        result.model_name,
        result.quant_name,
        result.kv_dtype,
        result.engine_name,
        result.engine_version,
        result.gpu_name,
        result.gpu_count,
        result.tp,
        result.pp,
        result.ep,
        result.concurrency,
        result.input_tokens,
        result.output_tokens,
        result.context_tokens,
        _OF_ONE_FIGURE.sub("", result.notes),
        # a benchmark that repeats a figure is another run
        result.value if result.kind == "single_stream" else None,
    )


def _workload(result: Result) -> Workload:
    """Return what a result measured; a stream has written half of its answer on average."""
    given, written = result.input_tokens or 0.0, result.output_tokens or 0.0
    answer = written / 2 if result.kind == "single_stream" else written
    context = (result.context_tokens or 0.0) + given + answer
    model, quant = all_models()[result.model], find_quant(result.quant)
    return Workload(
        model=model,
        quant=quant,
        engine=Engine(result.engine),
        kv_dtype=cache_dtype(result, quant),
        layout=layout_of(result),
        offload_fraction=offload_fraction(result, model, quant),
        context_tokens=max(1, round(context)),
        batch=result.concurrency or 1,
        input_tokens=max(1, round(given)),
        output_tokens=max(1, round(written)),
    )


def _machine(result: Result) -> Machine:
    return Machine(gpu=all_gpus()[result.gpu], gpu_count=result.gpu_count or 1)
