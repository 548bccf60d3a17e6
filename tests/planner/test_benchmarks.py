"""Files of llama-bench and of `bench serve`: what they measured, and what is not taken and why."""

import csv
import io
import json

import pytest

from planner.errors import InvalidScenario, UnknownName
from planner.measurements.benchmarks import Setup, read_benchmark, same_measurement

ROW = {
    "build_number": 6000,
    "gpu_info": "NVIDIA GeForce RTX 4090, NVIDIA GeForce RTX 4090",
    "backends": "CUDA",
    "model_filename": "/models/Qwen3-8B-Q4_K_M.gguf",
    "model_type": "qwen3 8B Q4_K - Medium",
    "model_size": 5020000000,
    "n_ubatch": 512,
    "type_k": "q8_0",
    "n_gpu_layers": 99,
    "split_mode": "layer",
    "flash_attn": True,
    "n_prompt": 0,
    "n_gen": 128,
    "n_depth": 4096,
    "test_time": "2026-01-05T10:00:00Z",
    "avg_ts": 108.2,
}
SERVED = {
    "date": "20260105-101500",
    "backend": "vllm",
    "model_id": "Qwen/Qwen3-8B",
    "num_prompts": 200,
    "completed": 200,
    "max_concurrency": 16,
    "request_rate": "inf",
    "request_throughput": 4.0,
    "total_input_tokens": 204800,
    "total_output_tokens": 51200,
    "output_throughput": 1010.5,
    "mean_ttft_ms": 99.0,
    "median_ttft_ms": 90.0,
    "mean_tpot_ms": 15.0,
    "median_tpot_ms": 14.0,
}
NOTHING = Setup()
H100 = Setup(gpu="H100 SXM", quant="FP8")


def read(*rows, setup=NOTHING):
    return read_benchmark(json.dumps(list(rows)), "bench.json", setup)


def one(row, setup=NOTHING):
    (result,) = read(row, setup=setup).results
    return result


def test_a_decode_row():
    result = one(ROW)
    assert (result.model, result.quant, result.kv_dtype) == ("qwen3-8b", "Q4_K_M", "q8_0")
    assert (result.engine, result.gpu, result.gpu_count) == ("llama.cpp", "RTX 4090", 2)
    assert (result.metric, result.value, result.unit) == ("decode_tps", 108.2, "tokens/s")
    assert (result.input_tokens, result.output_tokens, result.context_tokens) == (0.0, 128.0, 4096.0)
    assert (result.date, result.source) == ("2026-01-05", "own measurement: bench.json")
    assert (result.weights_bytes, result.ubatch, result.notes) == (5.02e9, None, "")


def test_a_prompt_row_of_another_micro_batch_without_flash_attention():
    result = one({**ROW, "n_prompt": 2048, "n_gen": 0, "n_ubatch": 1024, "flash_attn": 0})
    assert (result.metric, result.input_tokens, result.ubatch) == ("prefill_tps", 2048.0, 1024)
    assert result.notes == "no flash attention"


@pytest.mark.parametrize("form", ["json", "jsonl", "csv"])
def test_all_forms_say_the_same(form):
    if form == "json":
        text = json.dumps([ROW])
    elif form == "jsonl":
        text = json.dumps(ROW) + "\n"
    else:
        file = io.StringIO()
        writer = csv.DictWriter(file, list(ROW), quoting=csv.QUOTE_ALL)
        writer.writeheader()
        writer.writerow({**ROW, "flash_attn": "1"})
        text = file.getvalue()
    (result,) = read_benchmark(text, "bench.json", Setup()).results
    assert result == one(ROW)


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"n_prompt": 512}, "prompt and answer in one figure"),
        ({"n_gpu_layers": 20}, "layers in host memory"),
        ({"n_gpu_layers": 0}, "layers in host memory"),
        ({"backends": "CPU"}, "layers in host memory"),
        ({"n_cpu_moe": 4}, "experts in host memory"),
        ({"tensor_buft_overrides": "exps=CPU"}, "experts in host memory"),
        ({"split_mode": "row"}, "rows of matrices split over GPUs"),
        ({"type_k": "q5_1"}, "a cache in q5_1"),
    ],
)
def test_what_no_estimate_is_for_is_not_taken(changed, why):
    reading = read({**ROW, **changed}, {**ROW, **changed})
    assert reading.results == ()
    assert reading.remarks == (f"not taken: {why} (2 rows)",)


@pytest.mark.parametrize("layers", [-1, 36, 37, 99, None])
def test_all_layers_on_gpus(layers):
    assert one({**ROW, "n_gpu_layers": layers}).model == "qwen3-8b"  # it has 36


@pytest.mark.parametrize(
    ("file", "kind", "format_"),
    [
        ("Qwen3-8B-Q4_K_M.gguf", "qwen3 8B Q4_K - Medium", "Q4_K_M"),
        ("Qwen3-8B.gguf", "qwen3 8B Q4_K - Small", "Q4_K_S"),
        ("Qwen3-8B.gguf", "qwen3 8B Q2_K - Medium", "Q2_K"),
        ("Qwen3-8B.gguf", "qwen3 8B Q8_0", "Q8_0"),
        ("Qwen3-8B.gguf", "qwen3 8B IQ4_XS - 4.25 bpw", "IQ4_XS"),
        ("Qwen3-8B.gguf", "qwen3 8B F16", "FP16"),
        ("Qwen3-8B-BF16-00001-of-00002.gguf", "qwen3 8B BF16", "BF16"),
        ("gpt-oss-20b-F16.gguf", "gpt-oss 20B F16", "MXFP4"),
    ],
)
def test_formats_as_llama_cpp_writes_them(file, kind, format_):
    assert one({**ROW, "model_filename": file, "model_type": kind}).quant == format_


def test_options_win_and_are_said():
    reading = read(ROW, setup=Setup(model="qwen3-14b", quant="Q5_K_M", gpu="RTX 3090", gpus=1))
    (result,) = reading.results
    assert (result.model, result.quant, result.gpu, result.gpu_count) == (
        "qwen3-14b",
        "Q5_K_M",
        "RTX 3090",
        1,
    )
    assert reading.remarks == (
        "--model qwen3-14b is taken for 'Qwen3-8B-Q4_K_M'",
        "--quant Q5_K_M is taken for 'qwen3 8B Q4_K - Medium'",
        f"--gpu RTX 3090 is taken for {ROW['gpu_info']!r}",
        "--gpus 1 is taken for the 2 that the file names",
    )


def test_options_that_say_what_the_file_says_are_not_remarked_on():
    two = ROW["gpu_info"].split(",")[0].removeprefix("NVIDIA ")
    assert read(ROW, setup=Setup(quant="Q4_K_M", gpu=two)).remarks == ()


def test_a_run_of_a_server():
    reading = read_benchmark(json.dumps(SERVED), "served.json", H100)
    by_metric = {result.metric: result for result in reading.results}
    assert {metric: result.value for metric, result in by_metric.items()} == {
        "tpot_ms": 14.0,
        "ttft_ms": 90.0,
        "agg_output_tps": 1010.5,
    }
    first = by_metric["tpot_ms"]
    assert (first.model, first.engine, first.gpu, first.quant) == ("qwen3-8b", "vllm", "H100 SXM", "FP8")
    assert (first.concurrency, first.requests, first.input_tokens, first.output_tokens) == (
        16,
        200,
        1024,
        256,
    )
    assert first.date == "2026-01-05"


@pytest.mark.parametrize(
    ("changed", "in_flight"),
    [
        ({}, 16),
        ({"max_concurrency": None}, 200),  # all at once
        # Little: 4 requests a second x (0.099 + 255 x 0.015) s = 15.7
        ({"max_concurrency": None, "request_rate": 4.0}, 16),
        ({"max_concurrency": 1000}, 200),
    ],
)
def test_requests_in_flight(changed, in_flight):
    reading = read_benchmark(json.dumps({**SERVED, **changed}), "served.json", H100)
    assert {result.concurrency for result in reading.results} == {in_flight}


def test_sglang_names_itself():
    reading = read_benchmark(json.dumps({**SERVED, "backend": "sglang"}), "served.jsonl", H100)
    assert {result.engine for result in reading.results} == {"sglang"}


@pytest.mark.parametrize(
    ("row", "setup", "field"),
    [
        (SERVED, Setup(gpu="H100 SXM"), "quant"),
        (SERVED, Setup(quant="FP8"), "gpu"),
        ({**ROW, "gpu_info": ""}, Setup(), "gpu"),
        ({**ROW, "gpu_info": "NVIDIA GeForce RTX 4090, NVIDIA GeForce RTX 3090"}, Setup(), "gpu"),
        ({**ROW, "model_filename": ""}, Setup(), "model"),
        ({**ROW, "model_type": "qwen3 8B", "model_filename": "Qwen3-8B.gguf"}, Setup(), "quant"),
        ({**ROW, "avg_ts": 0}, Setup(), "file"),
        ({**ROW, "avg_ts": "fast"}, Setup(), "file"),
        ({**ROW, "n_depth": "-1"}, Setup(), "file"),
        ({**SERVED, "median_tpot_ms": "nan"}, H100, "file"),
        ({"speed": 1}, Setup(), "file"),
        (ROW, Setup(engine="vllm"), "engine"),
        (SERVED, Setup(engine="llama.cpp", gpu="H100 SXM", quant="FP8"), "engine"),
    ],
)
def test_what_is_missing_is_asked_for(row, setup, field):
    with pytest.raises(InvalidScenario) as refused:
        read(row, setup=setup)
    assert refused.value.field == field


@pytest.mark.parametrize("text", ["", "[]", "3", "model,size\nx,1\n", '{"avg_ts": 1}\nnot json'])
def test_no_benchmark_at_all(text):
    with pytest.raises(InvalidScenario, match="llama-bench"):
        read_benchmark(text, "x", Setup())


def test_an_unknown_model_or_device_is_named():
    with pytest.raises(UnknownName):
        read({**ROW, "model_filename": "mystery-3b-Q4_K_M.gguf"})
    with pytest.raises(UnknownName):
        read({**ROW, "gpu_info": "Voodoo 2"})


def test_the_same_measurement_made_again_replaces_the_first():
    again = one({**ROW, "avg_ts": 110.0, "test_time": "2026-02-01T00:00:00Z"})
    assert same_measurement(again) == same_measurement(one(ROW))
    assert same_measurement(one({**ROW, "n_depth": 0})) != same_measurement(one(ROW))
    # however device and format are spelled
    spelled = [read(SERVED, setup=Setup(gpu=gpu, quant=quant)).results[0] for gpu, quant in SPELLINGS]
    assert spelled[0].gpu_name != spelled[1].gpu_name
    assert same_measurement(spelled[0]) == same_measurement(spelled[1])


SPELLINGS = [("H100 SXM", "FP8"), ("NVIDIA H100 80GB HBM3", "fp8")]
