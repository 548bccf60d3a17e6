"""
Build `planner/data/results.csv.gz` from the collected published measurements.

    python tools/build_results.py FOLDER [OUT]

FOLDER holds `throughput_dev.csv` and `memory_dev.csv`. Every row is kept with its source and as published;
beside that stand the names of the catalogues where they know the model, the format and the device, and what
the notes say in words: bytes of the weights, what was offloaded, attention data parallelism, requests.
"""

import csv
import gzip
import io
import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from planner.catalogues.gpus import all_gpus, find_gpu
from planner.catalogues.models import Model, find_model
from planner.catalogues.quants import find_quant
from planner.catalogues.results import COLUMNS
from planner.errors import PlannerError
from planner.units import GIB, MIB

Row = Mapping[str, str]

# Formats that are no format of the catalogue: the one whose blocks are nearest. The bytes of the file go
# beside it where they are published.
NEAREST_FORMATS = {
    "IQ1_S_R4": "IQ1_S",
    "IQ2_K_R4": "IQ2_S",
    "IQ3_K mix": "Q3_K_M",
    "IQ4_KS_R4": "IQ4_XS",
    "IQ6_K mix": "Q6_K",
    "Q2_K-size, about 40 GiB": "Q2_K",
    "UD-Q3_K_XL": "Q3_K_M",
    "UD-Q4_K_XL-QAT": "Q4_K_M",
    "UD-Q6_K_XL": "Q6_K",
    "INT4 weights, bfloat16 compute": "GPTQ-4",
    "IQ1_S_R4 - 1.5 bpw": "IQ1_S",
    "IQ2_K_R4 - 2.375 bpw": "IQ2_S",
    "IQ3_K - 3.4325 bpw": "Q3_K_M",
    "IQ3_K_R4 - 3.4325 bpw": "Q3_K_M",
    "IQ3_S - 3.4375 bpw": "IQ3_S",
    "IQ3_XXS - 3.0625 bpw": "IQ3_XXS",
    "IQ4_K - 4.5 bpw": "IQ4_NL",
    "IQ4_KSS - 4.0 bpw": "IQ4_XS",
    "IQ4_KS_R4 - 4.25 bpw": "IQ4_XS",
    "IQ4_K_R4 - 4.5 bpw": "IQ4_NL",
    "IQ4_XS - 4.25 bpw": "IQ4_XS",
    "Q2_K - Medium": "Q2_K",
    "Q3_K - Medium": "Q3_K_M",
    "Q4_K - Medium": "Q4_K_M",
    "Q4_K_R4": "Q4_K_M",
    "Q5_K - Medium": "Q5_K_M",
    "Q5_K - Small": "Q5_K_S",
    "Q8_0_R8 - 8.5 bpw": "Q8_0",
    "bnb.nf4": "NF4",
    "bnb.nf4-dq": "NF4",
    "compressed-tensors (BF16)": "FP8",
    "compressed-tensors (FP16)": "FP8",
    "fp8 (BF16)": "FP8",
    "gptq_marlin (FP16)": "GPTQ-4",
    "mxfp4 (BF16)": "MXFP4",
}
# "4-bit (engine native group quantization)", by engine.
NATIVE_4_BIT = {"Llama.cpp": "Q4_0", "vLLM": "AWQ"}
EXACT_FORMATS = ("Medium", "Small", "Q8_0_R8", "IQ4_XS - ", "IQ3_S - ", "IQ3_XXS - ", "bnb", "mxfp4", "fp8 (")

# Kinds of engines, by the name that the source uses.
ENGINES = {
    "llama.cpp": "llama.cpp",
    "ik_llama.cpp": "llama.cpp",
    "ollama": "llama.cpp",
    "exllama": "llama.cpp",  # splits layers as well
    "exllama v2": "llama.cpp",
    "vllm": "vllm",
    "vllm ascend": "vllm",
    "mlc llm": "vllm",  # compiled kernels, tensor parallel
    "optimum habana / pytorch": "vllm",
    "sglang": "sglang",
    "trtllm": "tensorrt-llm",
    "tensorrt-llm": "tensorrt-llm",
    "transformers": "transformers",
    "transformers + peft": "peft",
    "litgpt": "litgpt",
}
# Devices whose records name no core count, as the catalogue's record of that memory size, or the nearest.
DEVICES = {
    "M4 Pro 24GB": "Apple M4 Pro (20-core GPU) 48GB",
    "M4 Pro 48GB": "Apple M4 Pro (20-core GPU) 48GB",
}
# Host memory that the notes describe. [GB/s]
HOST_CHANNELS = re.compile(r"(\d+)(?:ch|x\d+ GB) DDR5(?:-| at about )(\d{4})")


# What sources say of all their runs elsewhere than beside the numbers.
# InferenceX draws lengths evenly between 0.8 and 1 of the nominal ones and sends ten requests for each in
# flight: github.com/SemiAnalysisAI/InferenceX, benchmarks/ (`--random-range-ratio`, `--num-prompts`).
INFERENCEX = "InferenceX/InferenceMAX"
INFERENCEX_MEAN_LENGTH = 0.9
INFERENCEX_ROUNDS = 10
INFERENCEX_ROUNDS_OF = {("zai-org/GLM-5", "H200 SXM"): 5}
# Its recipes for these models on Blackwell let SGLang look for new requests only every 10 steps, every 30
# from 16 requests in flight on (`--scheduler-recv-interval` in dsr1_* and qwen3.5_* of the same folder).
INFERENCEX_POLLING = ("deepseek-ai/", "Qwen/Qwen3.5")
BLACKWELL = ("B200", "B300", "GB200")
# TensorRT-LLM's overview runs mixtures of experts with attention data parallel (`enable_attention_dp`) and
# expert parallel (`--ep`, of a degree that it does not give: all ranks here), and sends so many requests of
# a prompt and an answer: docs/source/performance/perf-overview.md, "Reproducing Benchmarked Results".
TENSORRT = "NVIDIA/TensorRT-LLM performance overview"
TENSORRT_REQUESTS = {
    (128, 128): 30000,
    (128, 2048): 3000,
    (128, 4096): 1500,
    (500, 2000): 3000,
    (1000, 1000): 3000,
    (1000, 2000): 1500,
    (2048, 128): 3000,
    (2048, 2048): 1500,
    (5000, 500): 1500,
    (20000, 2000): 1000,
}


def rows_of(folder: Path) -> Iterable[dict[str, str]]:
    """Return all rows in the columns of the file, those of speed first."""
    sizes = _file_sizes(folder)
    speeds = _read(folder / "throughput_dev.csv")
    prompts = {_record(row): row["isl"] for row in speeds if row["metric"] == "prefill_tps"}
    for row in speeds:
        depth = row["depth"]
        if row["metric"] == "decode_tps" and "falls with the prompt size of the record" in row["notes"]:
            depth = prompts[_record(row)]
        yield _result({**row, "depth": depth}, sizes)
    for row in _read(folder / "memory_dev.csv"):
        yield _result({**row, "metric": row["component"], "kind": "memory", "depth": row["context"]}, {})


def _record(row: Row) -> str:
    """Return the record that a row of the community list belongs to."""
    return _group(r"community record (\w+)", row["notes"])


def _read(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _result(row: Row, sizes: Mapping[tuple[str, str], float]) -> dict[str, str]:
    model = _model(row["model"])
    gpu = _gpu(row)
    quant, is_nearest = _format(model, row)
    notes = row["notes"].strip()
    offload = _offload(notes, model)
    size = _weights_bytes(notes) or sizes.get((row["model"], row["quant"]))
    values = {
        "row_id": row["row_id"],
        "source": row["source"],
        "source_ref": row["source_ref"],
        "date": row["date"],
        "model": "" if model is None else model.id,
        "model_name": row["model"],
        "quant": quant,
        "quant_name": row["quant"],
        "is_nearest_quant": "1" if is_nearest else "",
        "kv_dtype": row["kv_dtype"],
        "engine": ENGINES.get(row["engine"].casefold(), ""),
        "engine_name": row["engine"],
        "engine_version": row["engine_version"],
        "gpu": gpu,
        "gpu_name": row["gpu"],
        "gpu_count": _number(row["gpu_count"]),
        "tp": _number(row.get("tp", "")),
        "pp": _number(row.get("pp", "")),
        "ep": _number(row.get("ep", "")),
        "dp": _data_parallel(notes),
        "concurrency": _number(row.get("concurrency", row.get("batch", ""))),
        "requests": _group(r"(\d+) (?:requests|prompts)", notes),
        "input_tokens": _number(row.get("isl", "")),
        "output_tokens": _number(row.get("osl", "")),
        "context_tokens": _number(row["depth"]),
        "ubatch": _group(r"ubatch (\d+)", notes),
        "weights_bytes": "" if size is None else f"{size:.0f}",
        "offload": offload[0],
        "offload_fraction": offload[1],
        "host_gb_per_s": _host(notes),
        "metric": row["metric"],
        "value": row["value"],
        "unit": row["unit"],
        "kind": row["kind"],
        "notes": notes,
    }
    return {name: values[name] for name in COLUMNS} | _said_elsewhere(row, model)


def _said_elsewhere(row: Row, model: Model | None) -> dict[str, str]:
    """Return the fields of which a source says more than beside the number."""
    if row["source"].startswith(INFERENCEX):
        in_flight, notes = float(row["concurrency"]), row["notes"].strip()
        is_polled = row["engine"].casefold() == "sglang" and row["hardware"] in BLACKWELL
        if is_polled and row["model"].startswith(INFERENCEX_POLLING):
            notes += f"; requests polled every {30 if in_flight >= 16 else 10} steps"
        rounds = INFERENCEX_ROUNDS_OF.get((row["model"], row["hardware"]), INFERENCEX_ROUNDS)
        return {
            "requests": _number(str(rounds * in_flight)),
            "input_tokens": _number(str(INFERENCEX_MEAN_LENGTH * float(row["isl"]))),
            "output_tokens": _number(str(INFERENCEX_MEAN_LENGTH * float(row["osl"]))),
            "notes": notes,
        }
    if row["source"].startswith(TENSORRT):
        shared = model is not None and model.moe is not None and float(row["tp"] or 1) > 1
        return {
            "requests": str(TENSORRT_REQUESTS[int(float(row["isl"])), int(float(row["osl"]))]),
            "dp": _number(row["tp"]) if shared else "",
            "ep": _number(row["tp"]) if shared else "",
        }
    return {}


def _model(name: str) -> Model | None:
    try:
        return find_model(name).model
    except PlannerError:
        return None


def _gpu(row: Row) -> str:
    if row["hardware"] in all_gpus():
        return row["hardware"]
    if not row["gpu"]:
        return ""
    try:
        return find_gpu(DEVICES.get(row["gpu"], row["gpu"])).gpu.name
    except PlannerError:
        return ""


def _format(model: Model | None, row: Row) -> tuple[str, bool]:
    """Return the format of the catalogue, and whether it is only the nearest."""
    name = row["quant"]
    if not name or name in ("None", "FP32"):
        return "", False
    native = "" if model is None else model.native_dtype or ""
    if native.startswith("mxfp4") and name in ("F16", "BF16", "Q4_K_M", "Q8_0"):
        return "MXFP4", False  # GGUF files of gpt-oss keep its experts in their four bits, whatever the name
    if name.startswith("4-bit (engine"):
        return NATIVE_4_BIT.get(row["engine"], "GPTQ-4"), False
    if name in NEAREST_FORMATS:
        return NEAREST_FORMATS[name], not any(part in name for part in EXACT_FORMATS)
    return find_quant(name).name, name.startswith("UD-")


def _weights_bytes(notes: str) -> float | None:
    """Return the bytes of the weights that a note states."""
    if match := re.search(r"model size (\d+) B", notes):
        return float(match[1])
    if match := re.search(r"CPU buffer (\d+) MiB, CUDA0? buffers? (\d+)(?:\+(\d+))? MiB", notes):
        return sum(float(part) for part in match.groups() if part) * MIB
    return None


def _file_sizes(folder: Path) -> dict[tuple[str, str], float]:
    """Return the bytes of named files; the names of speed and memory rows differ in a suffix."""
    sizes: dict[tuple[str, str], float] = {}
    for row in _read(folder / "memory_dev.csv"):
        if row["component"] in ("gguf_tensor_size", "gguf_file_size") and "_R4" in row["quant"]:
            sizes.setdefault((row["model"], row["quant"].split(" - ")[0]), float(row["value"]) * GIB)
    sizes["meta-llama/Llama-4-Scout-17B-16E-Instruct", "Q2_K-size, about 40 GiB"] = 40 * GIB
    return sizes


def _offload(notes: str, model: Model | None) -> tuple[str, str]:
    """Return what lies in host memory, "experts" or "layers", and the share of it that does."""
    if "offload=" not in notes or model is None:
        return "", ""
    if match := re.search(r"offload=(\d+)% CPU", notes):
        return "layers", f"{int(match[1]) / 100:g}"
    layers = model.moe.moe_layers if model.moe is not None else model.num_layers
    dense = model.num_layers - layers  # come first and hold no experts
    if match := re.search(r"experts of (\d+) of (\d+) layers on CPU", notes):
        on_host = int(match[1]) / int(match[2])
    elif match := re.search(r"ffn of blk (\d+)-(\d+) of (\d+) on CPU", notes):
        on_host = (int(match[2]) - int(match[1]) + 1) / int(match[3])
    elif match := re.search(r"ffn of blk (\d+)-(\d+) on (?:GPU|2 GPUs)", notes):
        on_host = 1 - (int(match[2]) - max(int(match[1]), dense) + 1) / layers
    elif match := re.search(r"ffn_up and ffn_gate of blk (\d+)-(\d+) on GPU", notes):
        on_host = 1 - 2 / 3 * (int(match[2]) - int(match[1]) + 1) / layers
    elif match := re.search(r"gate experts on CPU for blk (\d+)-(\d+) only", notes):
        on_host = (2 + (int(match[2]) - max(int(match[1]), dense) + 1) / layers) / 3
    elif re.search(r"exps=CPU|all routed experts on CPU", notes):
        on_host = 1.0
    else:
        raise SystemExit(f"not understood: {notes}")
    return "experts", f"{on_host:.4g}"


def _host(notes: str) -> str:
    """Return the peak of the host memory, stated or from channels and rate, 8 bytes a channel. [GB/s]"""
    if match := re.search(r"about (\d+) GB/s", notes):
        return match[1]
    if match := HOST_CHANNELS.search(notes):
        return f"{int(match[1]) * int(match[2]) * 8 / 1000:g}"
    if match := re.search(r"Threadripper PRO 7975WX, 768 GB at (\d{4}) MT/s", notes):
        return f"{8 * int(match[1]) * 8 / 1000:g}"  # that processor has eight channels
    return ""


def _data_parallel(notes: str) -> str:
    return _group(r"attention dp=(\d+)", notes) or _group(r"--dp (\d+)", notes)


def _group(pattern: str, text: str) -> str:
    match = re.search(pattern, text)
    return match[1] if match else ""


def _number(text: str) -> str:
    return f"{float(text):g}" if text else ""


def main(arguments: list[str]) -> None:
    """Write the file; the same rows give the same bytes."""
    if len(arguments) not in (1, 2):
        raise SystemExit(__doc__)
    out = Path(arguments[1] if len(arguments) == 2 else "planner/data/results.csv.gz")
    out.write_bytes(packed(Path(arguments[0])))


def packed(folder: Path) -> bytes:
    """Return the file as bytes."""
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows_of(folder))
    return gzip.compress(text.getvalue().encode(), compresslevel=9, mtime=0)


if __name__ == "__main__":
    main(sys.argv[1:])
