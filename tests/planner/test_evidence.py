"""Measured configurations: how far they are from one that is asked for, and which is the same."""

from dataclasses import replace
from math import log

import pytest

from planner.catalogues.gpus import all_gpus
from planner.catalogues.models import all_models
from planner.catalogues.quants import find_quant
from planner.evidence import estimate_of, nearest, of_model, run_document, to_document
from planner.measurements.nearness import CONTEXT_FLOOR_TOKENS, CONTEXT_WEIGHT
from planner.measurements.replay import predictions, trials
from planner.measurements.runs import all_runs
from planner.sizing import size
from planner.workload import Engine, Machine, Workload

LLAMA_8B = all_models()["llama-3.1-8b-instruct"]


def on(name, count=1):
    return Machine(gpu=all_gpus()[name], gpu_count=count)


def test_the_very_configuration_is_found_and_named_as_such():
    asked = Workload(
        model=all_models()["llama-3.1-70b-instruct"],
        quant=find_quant("FP8"),
        engine=Engine.VLLM,
        batch=16,
        context_tokens=2048,
        input_tokens=1024,
        output_tokens=1024,
    )
    first, second = nearest(asked, on("H100 SXM", 4), 2)
    assert first.is_same
    assert 0 < first.distance < 0.03  # its lengths of 1,024 are the longest; their means are 921.6
    assert first.run.measured == {"tpot_ms": 13.1922, "ttft_ms": 121.413}
    assert not second.is_same
    assert second.distance > 0.1


def test_a_distance_is_made_of_ratios():
    # RTX 4090, Q4_K_M: 4,096 tokens in the middle of 8,192; Llama 3 and 3.1 have one shape
    near = nearest(Workload(model=LLAMA_8B, quant=find_quant("Q4_K_M")), on("RTX 4090"), 1)[0]
    assert near.differences == ("context 4,096 instead of 8,192 tokens",)
    expected = CONTEXT_WEIGHT * log((8192 + CONTEXT_FLOOR_TOKENS) / (4096 + CONTEXT_FLOOR_TOKENS))
    assert near.distance == pytest.approx(expected)
    assert near.run.measured == {"decode_tokens_per_s": 110.66}


def test_nearer_configurations_come_first_and_a_limit_changes_nothing_else():
    asked = Workload(model=LLAMA_8B, quant=find_quant("Q8_0"), batch=4)
    many = nearest(asked, on("RTX 5080"), 40)
    assert [near.distance for near in many] == sorted(near.distance for near in many)
    assert nearest(asked, on("RTX 5080"), 7) == many[:7]


@pytest.mark.parametrize(
    ("changes", "machine", "words"),
    [
        ({"quant": find_quant("Q5_K_M")}, on("RTX 4090"), "Q4_K_M instead of Q5_K_M"),
        ({}, on("RTX 4090", 8), None),
        ({}, on("RTX 4090", 3), "instead of 3 GPUs"),
        ({"batch": 2}, on("RTX 4090"), "batch 1 instead of 2"),
        ({"engine": Engine.VLLM}, on("RTX 4090"), "llama.cpp instead of vllm"),
        ({"offload_fraction": 0.5}, on("RTX 4090"), "all weights on the GPUs"),
        ({"model": all_models()["qwen3-8b"]}, on("RTX 4090"), "model Llama 3"),
        ({}, on("RTX 4070 Ti SUPER"), "RTX 4080 instead of RTX 4070 Ti SUPER"),
    ],
)
def test_differences_are_said_in_words(changes, machine, words):
    base = Workload(model=LLAMA_8B, quant=find_quant("Q4_K_M"), context_tokens=4096)
    near = nearest(replace(base, **changes), machine, 1)[0]
    if words is None:
        assert near.is_same
    else:
        assert any(words in difference for difference in near.differences), near.differences


def test_prompts_counted_as_output_are_taken_off():
    # 128 in, 128 out: half of the published rate is output
    run = next(run for run in all_runs() if run.first.row_id == "arg-0001")
    assert run.first.value == 371.93
    assert run.measured == {"aggregate_tokens_per_s": pytest.approx(185.965)}


def test_results_of_a_model_include_those_of_its_shape():
    runs = of_model(LLAMA_8B)
    assert {"llama-3.1-8b-instruct", "llama-3-8b-instruct"} <= {run.workload.model.id for run in runs}
    assert not any(run.workload.model.id == "qwen3-8b" for run in runs)
    cards = of_model(LLAMA_8B, all_gpus()["RTX 4090"])
    assert {run.machine.gpu.name for run in cards} == {"RTX 4090"}


def test_the_estimate_beside_a_measurement_is_that_of_its_own_configuration():
    run = next(run for run in all_runs() if run.first.row_id == "lmx-0050")
    speed = size(run.workload, run.machine).speed
    assert estimate_of(run) == {"decode_tokens_per_s": pytest.approx(speed.decode_tokens_per_s, rel=1e-6)}
    document = run_document(run)
    assert document["source"].startswith("localmaxxing.com")
    assert document["row_ids"] == ["lmx-0050"]


def test_prompts_are_taken_off_estimates_as_well():
    run = next(run for run in all_runs() if run.first.row_id == "arg-0001")
    predicted = float(predictions(trials(run.results, Engine.VLLM))[0])
    assert estimate_of(run) == {"aggregate_tokens_per_s": pytest.approx(predicted / 2)}


def test_documents_hold_distance_source_and_both_figures():
    near = nearest(Workload(model=LLAMA_8B, quant=find_quant("Q4_K_M")), on("RTX 4090"), 1)[0]
    document = to_document(near)
    assert document["distance"] == near.distance
    assert document["is_same"] is False
    assert document["measured"].keys() == document["estimated"].keys()
    assert document["source"]
    assert document["gpu"] == "RTX 4090"
