"""Measured configurations: how far they are from one that is asked for, and which is the same."""

import math
from dataclasses import replace
from math import log

import pytest

from planner.catalogues.gpus import all_gpus
from planner.catalogues.models import all_models
from planner.catalogues.quants import find_quant
from planner.evidence import estimate_of, nearest, of_model, run_document, to_document
from planner.measurements.nearness import CONTEXT_FLOOR_TOKENS, CONTEXT_WEIGHT, compared
from planner.measurements.replay import predictions, trials
from planner.measurements.runs import all_runs
from planner.sizing import size
from planner.workload import Engine, KvDtype, Layout, Machine, Workload

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


@pytest.mark.parametrize(
    ("changes", "distance", "words"),
    [
        # bytes of an element 0.5625 against 2: 0.15 x ln 3.556
        ({"kv_dtype": KvDtype.Q4_0}, 0.1903, "cache in fp16 instead of q4_0"),
        ({"kv_dtype": KvDtype.BF16}, 0.0, None),
        # (1 - 0.9^5) / (1 - 0.9) = 4.0951 tokens a step
        ({"drafted_tokens": 4, "acceptance": 0.9}, 1.4098, "no draft instead of 4 drafted tokens"),
        ({"cached_input": 0.5}, 0.1040, "no cached prompt instead of 50% of each"),  # 0.15 x ln 2
    ],
)
def test_settings_that_the_run_did_not_have_make_another_configuration(changes, distance, words):
    base = Workload(model=LLAMA_8B, quant=find_quant("Q4_K_M"), context_tokens=4096)
    run = nearest(base, on("RTX 4090"), 1)[0]
    assert run.is_same
    near = compared(replace(base, **changes), on("RTX 4090"), run.run, math.inf)
    assert near.distance - run.distance == pytest.approx(distance, abs=0.0001)
    assert near.differences == ((words,) if words else ())


@pytest.mark.parametrize(
    ("layout", "words"),
    [
        (Layout(expert_ranks=4, attention_data=2), None),
        (Layout(), "laid out TP2 DP2 EP4 instead of TP4"),
        (Layout(pipeline=4), "laid out TP2 DP2 EP4 instead of TP1 PP4"),
        (Layout(expert_ranks=4), "laid out TP2 DP2 EP4 instead of TP4 EP4"),
    ],
)
def test_another_layout_over_the_gpus_makes_another_configuration(layout, words):
    asked = Workload(
        model=all_models()["minimax-m2.5"],
        quant=find_quant("FP8"),
        engine=Engine.VLLM,
        batch=8,
        context_tokens=1843,
        input_tokens=922,
        output_tokens=922,
        layout=layout,
    )
    run = next(
        run
        for run in all_runs()
        if run.machine == on("B200", 4) and run.first.dp == 2 and run.workload.model == asked.model
        if run.first.concurrency == 8 and run.workload.input_tokens == 922
    )
    assert compared(asked, on("B200", 4), run, math.inf).differences == ((words,) if words else ())


def test_another_share_in_host_memory_makes_another_configuration():
    # the experts of 14 of 48 layers; routed experts are 94.5 % of these weights
    asked = Workload(
        model=all_models()["qwen3-30b-a3b"],
        quant=find_quant("IQ4_XS"),
        context_tokens=4096,
        offload_fraction=0.9,
    )
    card = on("RTX 4080")
    assert not any(one.is_same for one in nearest(asked, card, 40))
    run = next(run for run in all_runs() if run.first.row_id == "iko-0003")
    assert run.measured == {"decode_tokens_per_s": 63.15}
    assert run.workload.offload_fraction == pytest.approx(0.2917 * 0.945, abs=0.001)
    far, near, none = (
        compared(replace(asked, offload_fraction=share), card, run, math.inf) for share in (0.9, 0.29, 0.0)
    )
    assert far.differences == ("28% instead of 90% of the weights in host memory",)
    assert near.is_same
    assert far.distance - near.distance == pytest.approx(log(0.9 / 0.2756), abs=0.001)
    assert none.differences == ("28% of the weights in host memory",)


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
