"""One workload on some machines as columns: what the formulas take, and how it is made."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from planner.memory import CacheLayout, Weights, cache_layout, simple_active_params, simple_weights, weights
from planner.serving.constants import is_tensor_parallel
from planner.serving.devices import Column, Devices, devices, simple_peak_flops
from planner.serving.reached import NOW, Conditions, Index, blocks_of
from planner.serving.shape import Shape, shape_of
from planner.speed import host_bytes_per_s
from planner.units import Numbers
from planner.workload import Engine, KvDtype, Layout, Machine, Method, Workload


@dataclass(frozen=True, slots=True, kw_only=True)
class Parallel:
    """How GPUs share a model where that is not the engine's default; numbers or arrays."""

    tensor: Numbers | None = None  # ranks that share each layer; None: what stages leave
    stages: Numbers | None = None  # groups with layers of their own
    experts: Numbers = 1.0  # ranks among which whole experts are shared out
    attention: Numbers = 1.0  # groups that hold attention and sequences of their own


BY_ENGINE = Parallel()


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One model asked of many machines; numbers or arrays that broadcast against the columns."""

    shape: Shape
    weights: Weights
    simple_active_params: Numbers
    engine: Engine
    method: Method
    kv_dtype: KvDtype | Sequence[KvDtype]  # one, or one for each row
    context_tokens: Numbers
    batch: Numbers
    input_tokens: Numbers
    output_tokens: Numbers
    offload_fraction: Numbers
    host_bytes_per_s: Numbers
    columns: Devices
    peak_flops: Column
    precision: Index  # what the products run in, into planner.serving.reached.PRECISIONS
    blocks: Index  # of the format, into planner.serving.reached.BLOCKS
    gpu_count: Numbers
    parallel: Parallel = BY_ENGINE
    offloads_experts_first: bool = False
    cached_tokens: Numbers = 0.0  # of each prompt, found in a cache of prefixes
    drafted_tokens: Numbers = 0.0  # proposed by a draft of one layer and verified in one step
    acceptance: Numbers = 0.0  # of each of them
    memory_fraction: float | None = None  # of a server; None: the engine's own
    most_sequences: float | None = None  # that a server is set up for; None: the engine's own
    conditions: Conditions = NOW

    @property
    def sharing(self) -> Numbers:
        """GPUs that work on one layer together: all with tensor parallelism, 1 where layers are split."""
        if self.parallel.tensor is not None:
            return self.parallel.tensor
        if not is_tensor_parallel(self.engine):
            return 1.0
        return self.gpu_count / (1.0 if self.parallel.stages is None else self.parallel.stages)

    @property
    def stages(self) -> Numbers:
        """Groups of GPUs that hold layers of their own."""
        return self.gpu_count / self.sharing

    @property
    def ranks(self) -> Numbers:
        """Tensor-parallel ranks that hold the cache of one sequence."""
        return self.sharing / self.parallel.attention if self.layout.is_replicated else 1.0

    @property
    def layout(self) -> CacheLayout:
        """How the engine lays out its cache."""
        return cache_layout(self.engine, self.method)

    @property
    def kv_bytes_per_element(self) -> Numbers:
        """Bytes of a cached element; the sizing page rounds 8 and 4 bit down to whole bits."""
        if isinstance(self.kv_dtype, KvDtype):
            return _cached_bytes(self.kv_dtype, self.method)
        by_dtype = {dtype: _cached_bytes(dtype, self.method) for dtype in KvDtype}
        return np.array([by_dtype[dtype] for dtype in self.kv_dtype])


def _cached_bytes(dtype: KvDtype, method: Method) -> float:
    exact = dtype.bytes_per_element
    if method is Method.CALIBRATED:
        return exact
    return {KvDtype.Q8_0: 1.0, KvDtype.Q4_0: 0.5}.get(dtype, exact)


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
