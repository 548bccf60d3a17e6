"""Own measurements from the files of benchmarks: llama-bench, and `bench serve` of vLLM or SGLang."""

import csv
import hashlib
import io
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from planner.catalogues.gpus import GpuMatch, find_gpu
from planner.catalogues.models import Model, find_model
from planner.catalogues.quants import find_quant
from planner.catalogues.results import Result, stated
from planner.errors import InvalidScenario, UnknownName
from planner.measurements.names import devices_of, file_stem, find_published, gguf_format
from planner.workload import Engine, KvDtype

KNOWN_FORMS = "the output of `llama-bench -o json`, `jsonl` or `csv`, or of vLLM or SGLang `bench serve`"
# llama.cpp's default micro-batch (n_ubatch in common/arg.cpp).
DEFAULT_UBATCH = 512
_CACHES = {"f16": KvDtype.FP16, "bf16": KvDtype.BF16, "q8_0": KvDtype.Q8_0, "q4_0": KvDtype.Q4_0}
_OFF = (False, 0, "0", "false", "False")


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """What the user says of a measurement; it wins over the file, which may not say it."""

    model: str | None = None
    quant: str | None = None
    engine: str | None = None
    gpu: str | None = None
    gpus: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What a file holds."""

    results: tuple[Result, ...]
    remarks: tuple[str, ...]  # what was assumed, and which rows were not taken and why


class _NotTaken(Exception):
    """Why a row is no measurement that an estimate can be held against."""


def read_benchmark(text: str, name: str, setup: Setup) -> Reading:
    """
    Read the measurements in a file.

    Args:
        text: Its content.
        name: How the file is called; it becomes the source of its measurements.
        setup: What the user says beside it.

    Raises:
        InvalidScenario: if the form is not known, or model, format or machine are not named anywhere.
        UnknownName: if one of them is not in the catalogues.
    """
    results: list[Result] = []
    remarks: dict[str, int] = {}
    for row in _rows(text):
        read = _of_llama_bench if "avg_ts" in row else _of_server if _is_of_server(row) else None
        if read is None:
            raise InvalidScenario("file", ", ".join(sorted(map(str, row))[:5]) or "nothing", KNOWN_FORMS)
        try:
            results += read(row, name, setup, remarks)
        except _NotTaken as why:
            remarks[f"not taken: {why}"] = remarks.get(f"not taken: {why}", 0) + 1
    told = [f"{remark}{f' ({count} rows)' if count > 1 else ''}" for remark, count in remarks.items()]
    return Reading(results=tuple(results), remarks=tuple(told))


def same_measurement(result: Result) -> tuple[object, ...]:
    """Return what two results share that measure the same; the later one replaces the earlier."""
    own = {"row_id", "source", "source_ref", "date", "value", "notes", "engine_version", "kind"}
    own |= {"quant_name", "gpu_name", "engine_name"}  # how the same is spelled
    return tuple(getattr(result, field.name) for field in fields(result) if field.name not in own)


def _rows(text: str) -> list[Mapping[str, Any]]:
    """Return the records of a file, whatever its form."""
    try:
        document = json.loads(text)
    except RecursionError as error:
        raise InvalidScenario("file", "JSON nested too deeply", KNOWN_FORMS) from error
    except ValueError as error:
        if not text.strip() or text.lstrip().startswith("["):
            what = f"no JSON ({error})" if text.strip() else "an empty file, which is no JSON"
            raise InvalidScenario("file", what, KNOWN_FORMS) from error
        document = _lines(text)
        if not document:
            raise InvalidScenario("file", "text that is no JSON and no CSV", KNOWN_FORMS) from error
    rows = document if isinstance(document, list) else [document]
    if not rows or not all(isinstance(row, Mapping) for row in rows):
        raise InvalidScenario("file", "JSON without a record" if rows else "an empty list", KNOWN_FORMS)
    return rows


def _lines(text: str) -> list[Any]:
    lines = [line for line in text.splitlines() if line.strip()]
    if lines and lines[0].lstrip().startswith("{"):
        try:
            return [json.loads(line) for line in lines]
        except (ValueError, RecursionError) as error:
            raise InvalidScenario("file", f"a line that is no JSON ({error})", KNOWN_FORMS) from error
    return list(csv.DictReader(io.StringIO("\n".join(lines))))


def _is_of_server(row: Mapping[str, Any]) -> bool:
    return any(f"{mean}_tpot_ms" in row for mean in ("median", "mean"))


def _of_llama_bench(row: Mapping[str, Any], name: str, setup: Setup, remarks: dict[str, int]) -> list[Result]:
    """Return the one figure of a row of llama-bench."""
    given, written, held = (_count(row, field) for field in ("n_prompt", "n_gen", "n_depth"))
    if bool(given) is bool(written):
        raise _NotTaken("prompt and answer in one figure")
    file, type_text = str(row.get("model_filename") or ""), str(row.get("model_type") or "")
    model = _model(setup.model, [file_stem(file)], "a file whose name says its model, or --model")
    _check_all_on_gpus(row, model)
    devices = devices_of(row)
    ubatch = _count(row, "n_ubatch") or DEFAULT_UBATCH
    cache = cache_dtype(row)
    if cache is None:
        raise _NotTaken(f"a cache in {row.get('type_k')}")
    values = {
        **_common(row, name, setup, model, remarks),
        "quant": _gguf_quant(model, type_text, file, setup, remarks),
        "quant_name": type_text or file,
        "kv_dtype": str(cache),
        "engine": str(Engine.LLAMA_CPP),
        "engine_name": "llama.cpp",
        "engine_version": str(row.get("build_number") or ""),
        **_machine(devices, setup, remarks),
        "concurrency": 1,
        "input_tokens": float(given),
        "output_tokens": float(written),
        "context_tokens": float(held),
        "ubatch": None if ubatch == DEFAULT_UBATCH else ubatch,
        "weights_bytes": float(_count(row, "model_size")) or None,
        "metric": "decode_tps" if written else "prefill_tps",
        "value": _number(row, "avg_ts"),
        "unit": "tokens/s",
        "kind": "single_stream",
        "notes": "no flash attention" if row.get("flash_attn") in _OFF else "",
    }
    return [stated(values)]


def _gguf_quant(model: Model, type_text: str, file: str, setup: Setup, remarks: dict[str, int]) -> str:
    """Return the format by the option, or by the file; say where they differ."""
    if setup.quant is None:
        return gguf_format(model, type_text, file)
    given = find_quant(setup.quant).name
    try:
        written = gguf_format(model, type_text, file)
    except InvalidScenario:  # the file does not name it
        return given
    if written != given:
        remarks.setdefault(f"--quant {given} is taken for {type_text or file!r}", 0)
    return given


def _check_all_on_gpus(row: Mapping[str, Any], model: Model) -> None:
    """Refuse what was not computed on GPUs alone, or split in a way that is not estimated."""
    if host_layers(row, model) or is_without_gpu(row):
        raise _NotTaken("layers in host memory")
    if host_expert_layers(row) or is_placed_by_hand(row):
        raise _NotTaken("experts in host memory")
    if str(row.get("split_mode") or "layer") == "row" and "," in str(row.get("gpu_info") or ""):
        raise _NotTaken("rows of matrices split over GPUs")


def is_without_gpu(row: Mapping[str, Any]) -> bool:
    """Whether a row of llama-bench ran with a backend that computes on the CPU alone."""
    return str(row.get("backends") or "") in ("CPU", "BLAS")


def host_layers(row: Mapping[str, Any], model: Model) -> int | None:
    """Return the layers that a row of llama-bench had in host memory; None where it does not say."""
    layers = row.get("n_gpu_layers")
    if layers in (None, "", "null"):
        return None
    try:
        on_gpus = int(float(str(layers)))
    except (ValueError, OverflowError) as error:
        allowed = "n_gpu_layers as a whole number"
        raise InvalidScenario("file", f"n_gpu_layers {layers!r}", allowed) from error
    return 0 if on_gpus < 0 else max(0, model.num_layers - on_gpus)


def host_expert_layers(row: Mapping[str, Any]) -> int:
    """Return of how many layers, the first ones, a row of llama-bench had the experts in host memory."""
    return _count(row, "n_cpu_moe")


def is_placed_by_hand(row: Mapping[str, Any]) -> bool:
    """Whether a row of llama-bench ran with tensors put somewhere by their names (`-ot`)."""
    return str(row.get("tensor_buft_overrides") or "none") not in ("none", "")


def cache_dtype(row: Mapping[str, Any]) -> KvDtype | None:
    """Return the type of the cache of a row of llama-bench; None where the catalogue has none like it."""
    return _CACHES.get(str(row.get("type_k") or "f16").lower())


def held_tokens(row: Mapping[str, Any]) -> tuple[int, int] | None:
    """Return the tokens in the cache before and after a row of llama-bench; None where it does not say."""
    if row.get("n_depth") in (None, "", "null"):
        return None
    depth = _count(row, "n_depth")
    return depth, depth + _count(row, "n_gen")


def _of_server(row: Mapping[str, Any], name: str, setup: Setup, remarks: dict[str, int]) -> list[Result]:
    """Return times and throughput of one run of requests."""
    model = _model(setup.model, [str(row.get("model_id") or "")], "a file with model_id, or --model")
    if setup.quant is None:
        raise InvalidScenario("quant", None, "the format that was served: the file does not name it")
    if setup.gpu is None:
        raise InvalidScenario("gpu", None, "the GPU that served: the file does not name it")
    requests = _count(row, "completed") or _count(row, "num_prompts")
    if not requests:
        raise _NotTaken("no completed requests")
    backend = setup.engine or ("sglang" if "sglang" in str(row.get("backend")) else "vllm")
    values = {
        **_common(row, name, setup, model, remarks),
        "quant": find_quant(setup.quant).name,
        "quant_name": setup.quant,
        "engine": str(Engine(backend)),
        "engine_name": backend,
        **_machine([], setup, remarks),
        "concurrency": in_flight(row),
        "requests": requests,
        "input_tokens": _number(row, "total_input_tokens") / requests,
        "output_tokens": _number(row, "total_output_tokens") / requests,
        "kind": "serving",
    }
    found = []
    for metric, field in (("tpot_ms", "tpot_ms"), ("ttft_ms", "ttft_ms")):
        mean = "median" if row.get(f"median_{field}") is not None else "mean"
        if row.get(f"{mean}_{field}") is not None:
            figures = {"metric": metric, "value": _number(row, f"{mean}_{field}"), "unit": "ms"}
            found.append(stated({**values, **figures, "notes": mean}))
    if row.get("output_throughput") is not None:
        total = {"metric": "agg_output_tps", "value": _number(row, "output_throughput"), "unit": "tokens/s"}
        found.append(stated({**values, **total}))
    return found


def in_flight(row: Mapping[str, Any]) -> int | None:
    """Return the requests in flight: the limit, all of them, by Little's law; None where nothing says."""
    requests, limit = _count(row, "completed") or _count(row, "num_prompts"), _count(row, "max_concurrency")
    if limit or not requests:
        return min(limit, requests or limit) or None
    rate = str(row.get("request_rate") or "inf")
    if rate == "inf" or row.get("request_throughput") is None:
        return requests
    answer = _number(row, "total_output_tokens") / requests
    seconds = (_number(row, "mean_ttft_ms") + (answer - 1.0) * _number(row, "mean_tpot_ms")) / 1e3
    return max(1, min(requests, round(_number(row, "request_throughput") * seconds)))


def _common(
    row: Mapping[str, Any], name: str, setup: Setup, model: Model, remarks: dict[str, int]
) -> dict[str, Any]:
    if setup.engine is not None and ("avg_ts" in row) is not (setup.engine == Engine.LLAMA_CPP):
        raise InvalidScenario("engine", setup.engine, "the engine that the file is of, or none")
    published = file_stem(str(row.get("model_filename") or row.get("model_id") or ""))
    if setup.model is not None and published:
        remarks.setdefault(f"--model {model.id} is taken for {published!r}", 0)
    when = re.match(r"(\d{4})-?(\d{2})-?(\d{2})", str(row.get("test_time") or row.get("date") or ""))
    return {
        "source": f"own measurement: {name}",
        "source_ref": _digest(row),
        "date": "-".join(when.groups()) if when else "",
        "model": model.id,
        "model_name": published or model.name,
    }


def _digest(row: Mapping[str, Any]) -> str:
    """Return a digest of a row's content, whatever file and form it came in."""
    content = sorted((field, _plain(value)) for field, value in row.items())
    return f"sha256:{hashlib.sha256(json.dumps(content).encode()).hexdigest()}"


def _plain(value: object) -> str:
    """Return a value as all forms write it: numbers alike, nothing as nothing."""
    text = "" if value is None else str(value)
    try:
        return repr(float(text))
    except ValueError:
        return {"true": "1.0", "false": "0.0"}.get(text.casefold(), text)


def _machine(devices: Sequence[str], setup: Setup, remarks: dict[str, int]) -> dict[str, Any]:
    """Return the device and how many, by the options or by the file."""
    if setup.gpu is None and len(set(devices)) != 1:
        allowed = "GPUs of one kind" if devices else "a file that names its GPU, or --gpu"
        raise InvalidScenario("gpu", ", ".join(devices) or None, allowed)
    name = setup.gpu or devices[0]
    match = find_gpu(name)
    remark = match.remark(name)
    if remark is not None:
        remarks.setdefault(remark, 0)
    if setup.gpu is not None and devices and not _may_be(devices[0], match):
        remarks.setdefault(f"--gpu {match.gpu.name} is taken for {', '.join(devices)!r}", 0)
    count = setup.gpus or len(devices) or 1
    if devices and count != len(devices):
        remarks.setdefault(f"--gpus {count} is taken for the {len(devices)} that the file names", 0)
    return {
        "gpu": match.gpu.name,
        "gpu_name": devices[0] if devices else name,
        "gpu_count": count,
        "tp": count,
    }


def _may_be(device: str, match: GpuMatch) -> bool:
    """Whether a device's name in a file may mean the one that was asked for."""
    try:
        found = find_gpu(device)
    except UnknownName:
        return False
    return found.may_be(match)


def _model(given: str | None, names: Sequence[str], allowed: str) -> Model:
    if given is not None:
        return find_model(given).model
    for name in names:
        match = find_published(name)
        if match is not None:
            return match.model
    if names and names[0]:
        raise UnknownName("model", names[0])
    raise InvalidScenario("model", None, allowed)


def _count(row: Mapping[str, Any], field: str) -> int:
    """Return a whole number of a row, 0 where there is none."""
    value = row.get(field)
    if value in (None, "", "null"):
        return 0
    try:
        number = float(str(value))
    except ValueError:
        number = math.nan
    if not (math.isfinite(number) and number >= 0.0):
        raise InvalidScenario("file", f"{field} {value!r}", f"{field} as a whole number from 0 up")
    return int(number)


def _number(row: Mapping[str, Any], field: str) -> float:
    try:
        number = float(str(row.get(field)))
    except ValueError:
        number = math.nan
    if not 0.0 < number < math.inf:
        raise InvalidScenario("file", f"{field} {row.get(field)!r}", f"{field} above 0")
    return number
