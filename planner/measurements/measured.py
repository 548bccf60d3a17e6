"""A speed measured or estimated elsewhere, of one machine: `--decode-tokens-per-s` and `--sizing FILE`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from planner.catalogues.gpus import all_gpus, find_gpu
from planner.errors import InvalidScenario
from planner.measurements.belonging import (
    batch_of,
    check_batch,
    check_cache,
    check_machine,
    check_model,
    check_offload,
    distance,
)
from planner.measurements.benchmarks import is_without_gpu
from planner.measurements.names import devices_of
from planner.numbers import parse_count, parse_number
from planner.scenario import Scenario
from planner.serving.ceiling import check_possible
from planner.workload import Machine, Workload

_KNOWN_FORMS = "the output of `breakeven size --json`, `llama-bench -o json` or vLLM `bench serve`"
# Sources of a speed: of llama-bench it is that of one sequence without drafts.
_LLAMA_BENCH = "llama-bench"
_OPTION = "decode_tokens_per_s"


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """The decode speed of one machine."""

    gpu: str  # canonical name
    gpu_count: int
    decode_tokens_per_s: float
    source: str
    is_count_given: bool = True  # False: the number of GPUs is the default, so it proves not that it fits
    estimated_range: tuple[float, float] | None = None  # of an estimate, which stays one; None: measured

    @property
    def is_estimate(self) -> bool:
        """Whether somebody estimated it."""
        return self.estimated_range is not None

    @property
    def proves_it_fits(self) -> bool:
        """Whether the model has run on that very machine."""
        return self.is_count_given and not self.is_estimate

    @property
    def key(self) -> tuple[str, int]:
        """The machine that was measured, and no other."""
        return self.gpu, self.gpu_count


def measurement_of(scenario: Scenario) -> Measurement | None:
    """
    Return the measured speed that a scenario's options state: that of the machine named by `gpu` and `gpus`.

    Raises:
        InvalidScenario: if a speed is given and no machine is named.
        UnknownName: if the GPU is unknown.
    """
    if scenario.decode_tokens_per_s is None:
        return None
    if scenario.gpu is None:
        raise InvalidScenario(
            "decode_tokens_per_s",
            scenario.decode_tokens_per_s,
            "the machine that was measured with it: gpu and gpus",
        )
    return Measurement(
        gpu=find_gpu(scenario.gpu).gpu.name,
        gpu_count=scenario.gpus or 1,
        decode_tokens_per_s=scenario.decode_tokens_per_s,
        source=_OPTION,
        is_count_given=scenario.gpus is not None,
    )


def check_speed(measured: Measurement, work: Workload) -> None:
    """
    Refuse a speed that its machine cannot have.

    Args:
        measured: Machine and speed.
        work: What was served on it.

    Raises:
        InvalidScenario: if it is beyond the bandwidth of the GPUs.
    """
    check_possible(
        measured.decode_tokens_per_s,
        work,
        Machine(gpu=all_gpus()[measured.gpu], gpu_count=measured.gpu_count),
        field=_OPTION if measured.source == _OPTION else "sizing",
        may_draft=measured.source != _LLAMA_BENCH,
    )


def read_measurement(
    document: Any,
    *,
    gpu: str | None = None,
    gpu_count: int | None = None,
    asked: Scenario | None = None,
    work: Workload | None = None,
) -> tuple[Measurement, str | None]:
    """
    Read a sizing or a measurement made elsewhere; an estimate stays one, with its range.

    Args:
        document: The parsed JSON.
        gpu: The machine, where the document does not name it.
        gpu_count: Its GPUs, where the document does not say.
        asked: The question; what the file names of another model, format, device or load is refused.
        work: What it asks of one replica; a benchmark with another share of it in host memory is refused.

    Returns:
        The measured machine and speed, and a remark where one of them was taken from the options.

    Raises:
        InvalidScenario: if the form is not known, or it names no machine, another model,
            format, device, offload or batch, or no usable speed.
        UnknownName: if the GPU is unknown.
    """
    if isinstance(document, Sequence) and not isinstance(document, str):
        return _from_llama_bench(document, gpu, gpu_count, asked, work)
    if not isinstance(document, Mapping):
        raise InvalidScenario("sizing", type(document).__name__, _KNOWN_FORMS)
    if document.get("schema") == "breakeven.size/1":
        return _from_size(document, asked)
    if "median_tpot_ms" in document or "mean_tpot_ms" in document:
        tpot_ms = document.get("median_tpot_ms", document.get("mean_tpot_ms"))
        milliseconds = parse_number("sizing", tpot_ms, "a time between tokens above 0 ms")
        if milliseconds <= 0.0:
            raise InvalidScenario("sizing", tpot_ms, "a time between tokens above 0 ms")
        remark = "vLLM bench serve does not name its machine: gpu and gpus are taken"
        if asked is not None:
            model = check_model(str(document.get("model_id") or ""), "", asked)
            remark = _joined(remark, model, check_batch(batch_of(document), asked)) or remark
        return _measurement(gpu, gpu_count or 1, 1000.0 / milliseconds, "vLLM bench serve", remark)
    raise InvalidScenario("sizing", ", ".join(sorted(map(str, document))[:5]), _KNOWN_FORMS)


def _from_size(document: Mapping[str, Any], asked: Scenario | None) -> tuple[Measurement, str | None]:
    """Read `breakeven size --json`, of this version or an older one."""
    remark = None if asked is None else _difference(document, asked)
    speed = document.get("speed")
    speed = speed if isinstance(speed, Mapping) else {}
    found, ambiguity = _measurement(
        document.get("gpu"), document.get("gpu_count"), speed.get("decode_tokens_per_s"), "size", None
    )
    if speed.get("source") != "measured":
        ends = (speed.get("decode_low"), speed.get("decode_high"))
        low, high = (
            found.decode_tokens_per_s if end is None else parse_number("sizing", end, "a range of the speed")
            for end in ends
        )
        if not 0.0 < low <= found.decode_tokens_per_s <= high:
            raise InvalidScenario("sizing", f"{low:g} to {high:g}", "a range that holds its decode speed")
        found = replace(found, estimated_range=(low, high))
    return found, _joined(ambiguity, remark)


def _joined(*remarks: str | None) -> str | None:
    return "; ".join(remark for remark in remarks if remark) or None


def _difference(document: Mapping[str, Any], asked: Scenario) -> str | None:
    """Refuse a sizing of another model or format; say which settings differ from the question's."""
    model = document.get("model")
    name = model.get("id") if isinstance(model, Mapping) else model
    if isinstance(name, str) and name != asked.model:
        raise InvalidScenario("sizing", name, f"a sizing of the model that is asked for, {asked.model}")
    quant = document.get("quant")
    if isinstance(quant, str) and quant != asked.quant:
        raise InvalidScenario("sizing", quant, f"a sizing in {asked.quant}, or quant {quant}")
    pairs: dict[str, object] = {"context_tokens": asked.context, "batch": asked.batch}
    pairs |= {"kv_dtype": asked.kv_dtype, "offload_fraction": asked.offload}
    other = [
        f"{key.removesuffix('_tokens').removesuffix('_fraction')} {document[key]} (asked: {value})"
        for key, value in pairs.items()
        if document.get(key) is not None and document[key] != value
    ]
    return f"it was made for {', '.join(other)}" if other else None


def _from_llama_bench(
    rows: Sequence[Any],
    gpu: str | None,
    gpu_count: int | None,
    asked: Scenario | None,
    work: Workload | None,
) -> tuple[Measurement, str | None]:
    """Read `llama-bench -o json`: rows with n_gen and no prompt hold the decode speed."""
    decode = [
        row for row in rows if isinstance(row, Mapping) and row.get("n_gen") and not row.get("n_prompt")
    ]
    if not decode:
        raise InvalidScenario("sizing", f"{len(rows)} rows", f"{_KNOWN_FORMS}: with a row of n_gen tokens")
    row, remark = decode[-1], None
    if asked is not None and work is not None:
        row = min(reversed(decode), key=lambda each: distance(each, asked, work))
    if asked is not None:
        remark = check_model(str(row.get("model_filename") or ""), str(row.get("model_type") or ""), asked)
        check_batch(1, asked)
    if row.get("n_gpu_layers") in (0, "0") or is_without_gpu(row):
        raise InvalidScenario("sizing", "layers in host memory", "a measurement on GPUs")
    if asked is not None and work is not None:
        try:
            remark = _joined(remark, check_cache(row, asked), check_offload(row, work))
        except InvalidScenario as error:  # of a field that is no number
            raise InvalidScenario("sizing", error.value, error.allowed) from error
    devices = devices_of(row)
    named = gpu or (devices[0] if devices else None)
    if named is not None:
        remark = _joined(remark, check_machine(devices, named, gpu_count))
    return _measurement(named, gpu_count or len(devices) or 1, row.get("avg_ts"), _LLAMA_BENCH, remark)


def _measurement(
    gpu: Any, gpu_count: Any, tokens_per_s: Any, source: str, remark: str | None
) -> tuple[Measurement, str | None]:
    if not isinstance(gpu, str) or not gpu:
        raise InvalidScenario("sizing", gpu, "a file that names its machine, or gpu and gpus with it")
    if tokens_per_s is None:
        raise InvalidScenario("sizing", None, "a sizing with a decode speed: this machine does not hold it")
    speed = parse_number("sizing", tokens_per_s, "a decode speed above 0 tokens/s")
    count = parse_count("sizing", gpu_count, "1 GPU or more")
    if speed <= 0.0 or count < 1:
        raise InvalidScenario("sizing", tokens_per_s, "a decode speed above 0 tokens/s, of 1 GPU or more")
    match = find_gpu(gpu)
    remark = _joined(remark, match.remark(gpu))
    return (
        Measurement(gpu=match.gpu.name, gpu_count=count, decode_tokens_per_s=speed, source=source),
        remark,
    )
