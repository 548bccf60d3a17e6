"""What would make a configuration fit that does not: settings of the engine, the cache, the requests."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from planner.catalogues.quants import all_quants
from planner.serving.constants import is_tensor_parallel
from planner.serving.heads import fewest_stages, refusal
from planner.sizing import Sizing, size
from planner.units import GIB
from planner.workload import KvDtype, Layout, Machine, Method, Workload

# Of vLLM's users, and the most that its documentation shows; above it nothing is left for other processes.
MORE_MEMORY = 0.95
# GPUs in machines that are sold.
MACHINE_SIZES = (2, 4, 8)
# Sequences that a server is set up for where it has few users.
FEWER_SEQUENCES = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Remedy:
    """Options by their names, and what is left in GPU memory with them."""

    options: Mapping[str, Any]
    headroom_bytes: float

    def to_document(self) -> Mapping[str, object]:
        """Return it as part of `breakeven.size/1`."""
        return {"options": dict(self.options), "headroom_gib": self.headroom_bytes / GIB}

    @property
    def text(self) -> str:
        """The options as they stand on a command line."""
        return " ".join(f"--{name.replace('_', '-')} {value}" for name, value in self.options.items())


def remedies(sizing: Sizing) -> list[Remedy]:
    """
    Return settings with which a configuration that does not fit would, the least change of service first.

    None where it fits, or where what spills is part of the method.
    """
    work, machine = sizing.workload, sizing.machine
    if sizing.memory.fits or work.method is Method.SIMPLE:
        return []
    found: list[Remedy] = []
    for options, changed in _candidates(sizing):
        if not any(remedy.options.items() <= options.items() for remedy in found):
            found += _fitting(options, changed, machine)
    formats = (_fitting(options, changed, machine) for options, changed in _smaller_formats(work))
    machines = (_fitting(options, work, other) for options, other in _more_gpus(machine))
    fewer = (_fitting(options, work, other) for options, other in _fewer_gpus(sizing))
    for searched in (formats, machines, fewer):
        found += next((fitting for fitting in searched if fitting), [])
    return found


def _fitting(options: Mapping[str, Any], work: Workload, machine: Machine) -> list[Remedy]:
    memory = size(work, machine).memory
    headroom = memory.usable_bytes - memory.total_bytes
    return [Remedy(options=options, headroom_bytes=headroom)] if memory.fits else []


def _smaller_formats(work: Workload) -> Iterator[tuple[dict[str, Any], Workload]]:
    """Return the formats of the same family with fewer bits, most bits first."""
    family = [quant for quant in all_quants().values() if quant.family is work.quant.family]
    for quant in sorted(family, key=lambda quant: -quant.bits_per_weight):
        if quant.bits_per_weight < work.quant.bits_per_weight:
            yield {"quant": quant.name}, replace(work, quant=quant)


def _more_gpus(machine: Machine) -> Iterator[tuple[dict[str, Any], Machine]]:
    """Return machines with more GPUs of the kind, as they are sold."""
    for count in MACHINE_SIZES:
        if count > machine.gpu_count and count <= (machine.gpu.max_gpus_per_node or MACHINE_SIZES[-1]):
            yield {"gpus": count}, replace(machine, gpu_count=count)


def _fewer_gpus(sizing: Sizing) -> Iterator[tuple[dict[str, Any], Machine]]:
    """Return machines with fewer GPUs, most of them first, where the engine does not start on so many."""
    if sizing.refusal is not None:
        for count in range(sizing.machine.gpu_count - 1, 0, -1):
            if refusal(sizing.workload, count) is None:
                yield {"gpus": count}, replace(sizing.machine, gpu_count=count)


def _candidates(sizing: Sizing) -> Iterator[tuple[dict[str, Any], Workload]]:
    """Return options and the workload that they make, single ones before several together."""
    work, machine, memory = sizing.workload, sizing.machine, sizing.memory
    yield from _of_engine(work, machine)
    if 0 < memory.max_batch < work.batch:
        yield {"batch": memory.max_batch}, replace(work, batch=memory.max_batch)
    request = work.input_tokens + work.output_tokens  # a shorter context holds no request
    if memory.max_context_tokens and request <= memory.max_context_tokens < work.context_tokens:
        tokens = memory.max_context_tokens
        yield {"context": tokens}, replace(work, context_tokens=tokens)


def _of_engine(work: Workload, machine: Machine) -> Iterator[tuple[dict[str, Any], Workload]]:
    is_server = is_tensor_parallel(work.engine)
    narrow = [KvDtype.FP8] if is_server else [KvDtype.Q8_0, KvDtype.Q4_0]
    narrow = [dtype for dtype in narrow if dtype.bytes_per_element < work.kv_dtype.bytes_per_element]
    if is_server:
        few = max(work.batch, FEWER_SEQUENCES)
        fewer: dict[str, Any] = {"max_sequences": few}
        more: dict[str, Any] = {"memory_fraction": MORE_MEMORY}
        yield fewer, replace(work, most_sequences=few)
        yield more, replace(work, memory_fraction=MORE_MEMORY)
        both = replace(work, most_sequences=few, memory_fraction=MORE_MEMORY)
        yield {**fewer, **more}, both
        if work.layout == Layout() and machine.gpu_count > 1:
            groups = machine.gpu_count
            yield {"attention_data": groups}, replace(work, layout=Layout(attention_data=groups))
            yield from _of_stages(work, machine)
        yield from (({"kv_dtype": str(dtype)}, replace(work, kv_dtype=dtype)) for dtype in narrow)
        for dtype in narrow:
            yield {**fewer, **more, "kv_dtype": str(dtype)}, replace(both, kv_dtype=dtype)
        return
    yield from (({"kv_dtype": str(dtype)}, replace(work, kv_dtype=dtype)) for dtype in narrow)


def _of_stages(work: Workload, machine: Machine) -> Iterator[tuple[dict[str, Any], Workload]]:
    """Return the fewest stages with which an engine starts that does not start without."""
    count = machine.gpu_count
    stages = None if refusal(work, count) is None else fewest_stages(work, count)
    if stages is not None:
        yield {"pipeline": stages}, replace(work, layout=Layout(pipeline=stages))
