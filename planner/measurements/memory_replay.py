"""Published measurements of memory beside what the formulas say of each."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import isfinite
from typing import TypeAlias

from planner.catalogues.models import Model, all_models
from planner.catalogues.quants import find_quant
from planner.catalogues.results import Result, all_results
from planner.memory import (
    Weights,
    cache_layout,
    kv_cache_bytes,
    llama_cpp_runtime_bytes,
    serving_runtime_bytes,
    weights,
)
from planner.serving.constants import constants
from planner.serving.shape import shape_of
from planner.units import GIB
from planner.workload import Engine, KvDtype, Method

Run: TypeAlias = dict[str, Result]

# 16-bit copies of one layer at work that transformers keeps for each token of a prompt: three of its hidden
# width and three of its inner one.
TRANSFORMERS_COPIES_BYTES = 6.0
# The check of the caches that llama.cpp's logs state, which other calculators are asked about too.
CACHES = "cache in llama.cpp"
_CACHE_TYPES = {"f16": KvDtype.FP16, "q8_0": KvDtype.Q8_0}
# Formats of the runs of vLLM as their logs call them: the checkpoint, not the compute type.
_LOGGED_FORMATS = {
    "fp8-dynamic": "FP8",
    "FP8-dynamic": "FP8",
    "w8a8": "INT8",
    "w4a16": "GPTQ-4",
    "gpt-oss": "MXFP4",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One measurement of memory and its estimate, in the same unit."""

    quantity: str
    result: Result
    estimate: float

    @property
    def error(self) -> float:
        """Estimate over measurement, less 1."""
        return self.estimate / self.result.value - 1.0


def memory_checks() -> tuple[Check, ...]:
    """Return every measurement of memory that the formulas speak of, but those of training."""
    rows = [result for result in all_results() if result.kind == "memory" and result.model]
    return (
        *_file_checks(rows),
        *_pool_checks(rows),
        *_cache_checks(rows),
        *_buffer_checks(rows),
        *_whole_checks(rows),
    )


def _file_checks(rows: list[Result]) -> Iterator[Check]:
    """Sizes of GGUF files from the configuration alone; exotic mixes have no format of their own."""
    for result in rows:
        if result.metric in ("gguf_tensor_size", "gguf_file_size") and result.quant:
            model = all_models()[result.model]
            held = float(weights(model, find_quant(result.quant)).formula_bytes)
            files = held - shape_of(model).tower_params * 2.0  # a text model's file holds no tower
            known = "near formats" if result.is_nearest_quant else "formats of the catalogue"
            yield Check(quantity=f"GGUF files, {known}", result=result, estimate=files / GIB)


def _pool_checks(rows: list[Result]) -> Iterator[Check]:
    """Weights on a GPU and the cache pool that vLLM takes from what the other parts leave."""
    runs: dict[tuple[object, ...], Run] = {}
    for result in rows:
        if result.engine == "vllm" and result.engine_version == "0.19.0":
            key = (
                result.source_ref,
                result.model_name,
                result.quant_name,
                result.kv_dtype,
                result.tp,
                result.pp,
            )
            runs.setdefault(key, {})[result.metric] = result
    for run in runs.values():
        first = next(iter(run.values()))
        quant = _logged_format(first)
        if quant is None or first.pp != 1:
            continue
        model, ranks = all_models()[first.model], float(first.tp or 1)
        per_gpu = float(_logged_weights(model, quant).total_bytes) / ranks / GIB
        if "weights_per_gpu" in run:
            yield Check(quantity="weights in vLLM", result=run["weights_per_gpu"], estimate=per_gpu)
        if "kv_pool_per_gpu" in run:
            fraction, visible = _logged_memory(first)
            shape = shape_of(model)
            buffers = float(serving_runtime_bytes(shape, 1.0, ranks, visible * GIB)) / ranks / GIB
            buffers -= constants().memory.graphs_gib  # this version takes them after the pool
            pool = fraction * visible - per_gpu - buffers
            yield Check(quantity="cache pool of vLLM", result=run["kv_pool_per_gpu"], estimate=pool)


def _logged_format(result: Result) -> str | None:
    """Return the format of a checkpoint by its name; None where the log hides it."""
    for part, quant in _LOGGED_FORMATS.items():
        if part in result.model_name:
            return quant
    if result.quant_name.startswith(("BF16", "FP16")):
        return "BF16"
    return None


def _logged_weights(model: Model, quant: str) -> Weights:
    return weights(model, find_quant(quant))


def _logged_memory(result: Result) -> tuple[float, float]:
    """Return the memory fraction and the memory that the log reports. [1, GiB]"""
    words = result.notes.replace(";", "").split()
    return float(words[words.index("utilization") + 1]), float(words[words.index("total") + 1])


def _cache_checks(rows: list[Result]) -> Iterator[Check]:
    """Caches that llama.cpp and its fork allocate; other layouts of the fork are left out."""
    layout = cache_layout(Engine.LLAMA_CPP, Method.CALIBRATED)
    for result in rows:
        if result.metric != "kv_cache_alloc" or result.kv_dtype not in _CACHE_TYPES:
            continue
        shape = shape_of(all_models()[result.model])
        has_windows = any(isfinite(term.window_tokens) for term in shape.cache_terms)
        # the fork keeps latents as full heads in mode 0, twice in mode 1, and windows at full length
        if has_windows or (
            shape.is_latent and not any(f"mla mode {mode}" in result.notes for mode in (2, 3))
        ):
            continue
        bits = _CACHE_TYPES[result.kv_dtype].bytes_per_element
        held = kv_cache_bytes(shape, result.context_tokens or 0.0, 1.0, bits, 1.0, layout)
        yield Check(quantity=CACHES, result=result, estimate=float(held) / GIB)


def _buffer_checks(rows: list[Result]) -> Iterator[Check]:
    """Compute buffers; those of the fork with latent attention expand it and are apart."""
    usual = constants().memory.llama_cpp_ubatch_tokens
    for result in rows:
        if result.metric == "compute_buffer_max_gpu":
            shape = shape_of(all_models()[result.model])
            held = float(llama_cpp_runtime_bytes(shape, result.context_tokens or 0.0, 1.0))
            held *= (result.concurrency or usual) / usual
            kind = "latent attention, fork" if shape.is_latent else "plain attention"
            yield Check(quantity=f"compute buffer of llama.cpp, {kind}", result=result, estimate=held / GIB)


def _whole_checks(rows: list[Result]) -> Iterator[Check]:
    """Peaks of whole runs of transformers while it writes 2,048 tokens; its GB are GiB."""
    for result in rows:
        if result.metric != "total_peak" or result.engine != "transformers" or not result.quant:
            continue
        model, layout = all_models()[result.model], cache_layout(Engine.LLAMA_CPP, Method.SIMPLE)
        shape, tokens = shape_of(model), result.context_tokens or 0.0
        held = float(weights(model, find_quant(result.quant)).total_bytes)
        held += float(kv_cache_bytes(shape, tokens, 1.0, 2.0, 1.0, layout))
        width = shape.hidden_size + float(model.intermediate_size or 0)
        held += max(tokens - 2048.0, 1.0) * width * TRANSFORMERS_COPIES_BYTES
        yield Check(quantity="whole run of transformers", result=result, estimate=held / GIB)
