"""One workload on some machines as columns: what the formulas of memory and speed take."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from planner.devices import devices, simple_peak_flops
from planner.estimate import Question
from planner.memory import Weights, simple_active_params, simple_weights, weights
from planner.reached import blocks_of
from planner.shape import shape_of
from planner.speed import host_bytes_per_s
from planner.workload import Engine, Machine, Method, Workload


def weights_of(workload: Workload) -> Weights:
    """Return the weights of a workload by its method."""
    by_method = simple_weights if workload.method is Method.SIMPLE else weights
    return by_method(workload.model, workload.quant)


def question_of(
    workload: Workload, held: Weights, machines: Sequence[Machine], *, batch: NDArray[np.float64]
) -> Question:
    """Return the columns that the formulas take for these machines."""
    columns = devices([machine.gpu for machine in machines], workload.engine)
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
        gpu_count=np.array([float(machine.gpu_count) for machine in machines]),
    )


def offloads_experts_first(engine: Engine, method: Method) -> bool:
    """Whether experts go to host memory before the rest: in llama.cpp (`--n-cpu-moe`), not in servers."""
    return engine is Engine.LLAMA_CPP and method is Method.CALIBRATED
