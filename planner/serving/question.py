"""One workload on some machines as columns: what the formulas of memory and speed take."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from planner.memory import Weights, simple_active_params, simple_weights, weights
from planner.serving.constants import is_tensor_parallel
from planner.serving.devices import devices, simple_peak_flops
from planner.serving.estimate import BY_ENGINE, Parallel, Question
from planner.serving.reached import blocks_of
from planner.serving.shape import shape_of
from planner.speed import host_bytes_per_s
from planner.workload import Engine, Layout, Machine, Method, Workload


def weights_of(workload: Workload) -> Weights:
    """Return the weights of a workload by its method."""
    by_method = simple_weights if workload.method is Method.SIMPLE else weights
    return by_method(workload.model, workload.quant)


def question_of(
    workload: Workload, held: Weights, machines: Sequence[Machine], *, batch: NDArray[np.float64]
) -> Question:
    """Return the columns that the formulas take for these machines."""
    columns = devices([machine.gpu for machine in machines], workload.engine)
    counts = np.array([float(machine.gpu_count) for machine in machines])
    simple = workload.method is Method.SIMPLE
    model = workload.model
    return Question(
        shape=shape_of(model),
        weights=held,
        simple_active_params=simple_active_params(model),
        engine=workload.engine,
        method=workload.method,
        kv_dtype=workload.kv_dtype,
        context_tokens=float(workload.context_tokens),
        batch=batch,
        input_tokens=float(workload.input_tokens),
        output_tokens=float(workload.output_tokens),
        offload_fraction=workload.offload_fraction,
        offloads_experts_first=offloads_experts_first(workload.engine, workload.method),
        host_bytes_per_s=host_bytes_per_s(workload.host_gb_per_s, workload.engine, workload.method),
        columns=columns,
        peak_flops=simple_peak_flops(columns) if simple else columns.peak_flops(workload.quant.compute_dtype),
        precision=columns.precision(workload.quant.compute_dtype),
        blocks=blocks_of(workload.quant),
        gpu_count=counts,
        parallel=parallel_of(workload, counts),
        cached_tokens=workload.cached_input * workload.input_tokens,
        drafted_tokens=0.0 if simple else float(workload.drafted_tokens),
        acceptance=workload.acceptance or 0.0,
        memory_fraction=workload.memory_fraction,
        most_sequences=workload.most_sequences,
    )


def parallel_of(workload: Workload, counts: NDArray[np.float64]) -> Parallel:
    """
    Return how each machine shares the model.

    A layout that does not divide its GPUs is not taken, nor any by the simple method, which knows no ranks.
    """
    layout, simple = workload.layout, workload.method is Method.SIMPLE
    if simple or layout == Layout() or not is_tensor_parallel(workload.engine):
        return BY_ENGINE
    fits = np.array([layout.divides(count) for count in counts.tolist()])
    return Parallel(
        stages=np.where(fits, layout.pipeline, 1.0),
        experts=np.where(fits, layout.expert_ranks, 1.0),
        attention=np.where(fits, layout.attention_data, 1.0),
    )


def offloads_experts_first(engine: Engine, method: Method) -> bool:
    """Whether experts go to host memory before the rest: in llama.cpp (`--n-cpu-moe`), not in servers."""
    return engine is Engine.LLAMA_CPP and method is Method.CALIBRATED
