"""Whether a benchmark is of what is asked for: the model, format, machine and load that its file names."""

from collections.abc import Mapping, Sequence
from typing import Any

from planner.catalogues.gpus import find_gpu
from planner.errors import InvalidScenario, UnknownName
from planner.measurements.benchmarks import (
    cache_dtype,
    held_tokens,
    host_expert_layers,
    host_layers,
    in_flight,
    is_placed_by_hand,
)
from planner.measurements.names import file_stem, find_published, gguf_format
from planner.scenario import Scenario
from planner.serving.hosting import HostLayers, host_share
from planner.workload import Workload

# An offload that is given as the message writes it, with two places, is the same.
_ROUNDED = 0.005


def batch_of(document: Any) -> int | None:
    """Return the requests in flight of a benchmark; None where its file does not say."""
    if isinstance(document, Sequence) and not isinstance(document, str):
        rows = [row for row in document if isinstance(row, Mapping)]
        return 1 if any("avg_ts" in row for row in rows) else None
    if not isinstance(document, Mapping) or "schema" in document:
        return None
    try:
        return in_flight(document)
    except InvalidScenario as error:
        raise InvalidScenario("sizing", error.value, error.allowed) from error


def check_model(file: str, type_text: str, asked: Scenario) -> str | None:
    """
    Compare the model and format that a benchmark names with those that are asked for.

    Returns:
        A remark where the model's name is not known, so that it cannot be compared.

    Raises:
        InvalidScenario: if it is of another model or format.
    """
    name = file_stem(file)
    if not name and not type_text:
        return None
    measured, wanted = find_published(name), find_published(file_stem(asked.model))
    if measured is not None and wanted is not None and measured.model.id != wanted.model.id:
        allowed = f"a measurement of the model that is asked for, {asked.model}"
        raise InvalidScenario("sizing", measured.model.id, allowed)
    quant = None if measured is None else measured.quant
    if type_text or file.endswith(".gguf"):
        try:
            quant = gguf_format(None if measured is None else measured.model, type_text, file)
        except InvalidScenario:
            quant = None  # the file does not name it
    if quant is not None and quant != asked.quant:
        raise InvalidScenario("sizing", quant, f"a measurement in {asked.quant}, or quant {quant}")
    if name and (measured is None or wanted is None) and name != file_stem(asked.model):
        return f"model {asked.model} is taken for {name!r}"
    return None


def check_machine(devices: Sequence[str], gpu: str, gpu_count: int | None) -> str | None:
    """
    Compare the devices that a benchmark names with the machine that is asked for.

    Raises:
        InvalidScenario: if it ran on another device, or on another number of them.
    """
    if not devices:
        return None
    if len(set(devices)) > 1:
        raise InvalidScenario("sizing", ", ".join(devices), "a measurement on GPUs of one kind")
    try:
        match = find_gpu(devices[0])
    except UnknownName:
        return f"gpu {gpu} is taken for {devices[0]!r}"
    wanted = find_gpu(gpu)
    if not match.may_be(wanted):
        raise InvalidScenario("sizing", devices[0], f"a measurement on {wanted.gpu.name}, or that gpu")
    if gpu_count is not None and gpu_count != len(devices):
        of = f"{len(devices)}x {wanted.gpu.name}"
        raise InvalidScenario("sizing", of, f"a measurement on {gpu_count}x, or gpus {len(devices)}")
    return None


def check_batch(measured: int | None, asked: Scenario) -> str | None:
    """
    Compare the load of a benchmark with the batch that is asked for.

    Raises:
        InvalidScenario: if it was measured at another batch.
    """
    if measured is None:
        return f"it does not say how many requests were in flight: batch {asked.batch} is taken"
    if measured != asked.batch:
        allowed = f"batch {measured}, or a measurement at batch {asked.batch}"
        raise InvalidScenario("sizing", f"measured at batch {measured}", allowed)
    return None


def check_offload(row: Mapping[str, Any], work: Workload) -> str | None:
    """
    Compare what of the model a row of llama-bench had in host memory with the offload that is asked for.

    Returns:
        A remark where the row does not say it, so that it cannot be compared.

    Raises:
        InvalidScenario: if another share of the weights lay there, by more than a layer.
    """
    asked, model = work.offload_fraction, work.model
    layers, expert_layers = host_layers(row, model), host_expert_layers(row)
    if is_placed_by_hand(row) or (layers is None and not expert_layers):
        if is_placed_by_hand(row) and not asked:
            allowed = "a measurement with all of the model on the GPU, or the offload that it ran with"
            raise InvalidScenario("sizing", "tensors placed by name", allowed)
        return f"it does not say how much lay in host memory: offload {asked:g} is taken" if asked else None
    held = HostLayers(whole=layers or 0, experts=expert_layers)
    share = host_share(model, work.quant, held)
    if (share > 0.0) is (asked > 0.0) and abs(share - asked) <= 1.0 / model.num_layers + _ROUNDED:
        return None
    allowed = f"a measurement at offload {asked:g}" if asked else "a measurement with all of it on the GPU"
    found = f"{held.whole} of {model.num_layers} layers in host memory"
    if expert_layers > held.whole:
        found = f"experts of {expert_layers} of {model.num_layers} layers in host memory"
    raise InvalidScenario("sizing", found, f"{allowed}, or offload {share:.2f}")


def distance(row: Mapping[str, Any], asked: Scenario, work: Workload) -> tuple[bool, int]:
    """Return whether a row of llama-bench is of another offload, and its distance in tokens of the cache."""
    try:
        check_offload(row, work)
        first, last = held_tokens(row) or (asked.context, asked.context)
    except InvalidScenario:
        return True, 0
    return False, max(first - asked.context, asked.context - last, 0)


def check_cache(row: Mapping[str, Any], asked: Scenario) -> str | None:
    """Say where the cache of a row of llama-bench was not the one asked for: its tokens, or their type."""
    other, held, dtype = [], held_tokens(row), cache_dtype(row)
    if held is not None and not held[0] <= asked.context <= held[1]:
        other.append(f"context {held[0]} to {held[1]} (asked: {asked.context})")
    if dtype != asked.kv_dtype:
        other.append(f"kv_dtype {dtype or row.get('type_k')} (asked: {asked.kv_dtype})")
    return f"it was made for {', '.join(other)}" if other else None
