"""Measurements as the formulas see them: the conditions of each, and the same figure as a user's estimate."""

import numpy as np
import pytest

from planner.catalogues.gpus import all_gpus
from planner.catalogues.models import all_models
from planner.catalogues.quants import find_quant
from planner.catalogues.results import all_results
from planner.measurements.replay import METRICS, predictions, trials
from planner.serving.reached import fitted
from planner.sizing import size
from planner.workload import Engine, Machine, Workload


def some(*row_ids):
    wanted = set(row_ids)
    return [result for result in all_results() if result.row_id in wanted and result.kind != "memory"]


@pytest.fixture(scope="module")
def both():
    return {engine: trials(all_results(), engine) for engine in (Engine.LLAMA_CPP, Engine.VLLM)}


def test_nearly_every_measurement_of_speed_is_answered(both):
    speeds = [result for result in all_results() if result.metric in METRICS]
    answered = sum(np.isfinite(predictions(these)).sum() for these in both.values())
    assert answered / len(speeds) >= 0.99
    for these in both.values():
        assert (predictions(these) > 0).all()


def test_rows_taken_apart_give_the_same(both):
    these = both[Engine.LLAMA_CPP]
    which = np.arange(len(these.results)) % 7 == 3
    assert predictions(these.chosen(which)).tolist() == pytest.approx(predictions(these)[which].tolist())


def test_a_measurement_of_today_is_estimated_as_a_user_would_be_told():
    # FP8 on four H100 in vLLM, 16 requests of 921.6 + 921.6 tokens, half of the answer in the cache
    these = trials(some("sil-0310"), Engine.VLLM)
    result = these.results[0]
    assert result.model == "llama-3.1-70b-instruct"
    asked = Workload(
        model=all_models()[result.model],
        quant=find_quant(result.quant),
        engine=Engine(result.engine),
        context_tokens=round(result.input_tokens + result.output_tokens / 2),
        batch=result.concurrency,
        input_tokens=round(result.input_tokens),
        output_tokens=round(result.output_tokens),
    )
    speed = size(asked, Machine(gpu=all_gpus()[result.gpu], gpu_count=result.gpu_count)).speed
    name = {"tpot_ms": "tpot_ms", "ttft_ms": "ttft_ms"}[result.metric]
    assert predictions(these)[0] == pytest.approx(getattr(speed, name), rel=1e-3)  # lengths are whole there


def test_old_engines_and_missing_kernels_are_conditions_of_their_rows(both):
    by_id = {result.row_id: place for place, result in enumerate(both[Engine.VLLM].results)}
    conditions = both[Engine.VLLM].place.conditions
    assert conditions.engine_of_2024[by_id["arg-0001"]] == 1
    assert conditions.no_server[by_id["arg-0001"]] == 1
    assert conditions.offline[by_id["trt-0001"]] == 1
    assert conditions.engine_of_2024[by_id["trt-0001"]] == 0
    local = both[Engine.LLAMA_CPP]
    rows = {result.row_id: place for place, result in enumerate(local.results)}
    assert local.place.conditions.no_flash_attention[rows["xd-0001"]] == 1
    assert local.place.conditions.is_fork[rows["iko-0011"]] == 1
    assert local.offload.experts[rows["iko-0001"]] == pytest.approx(14 / 48, abs=1e-3)
    assert local.offload.dense[rows["iko-0001"]] == 0


def test_batches_are_held_to_what_memory_allows(both):
    these = both[Engine.VLLM]
    offline = [
        (result, batch)
        for result, batch in zip(these.results, these.batch, strict=True)
        if result.kind == "offline_max"
    ]
    assert len(offline) == 328
    assert all(1 <= batch <= 2048 for _, batch in offline)
    # 70B in FP8 on one H200: 20,000-token prompts leave room for few, 128-token prompts for many
    by_lengths = {
        (result.input_tokens, result.output_tokens): batch
        for result, batch in offline
        if result.model == "llama-3.3-70b-instruct" and result.gpu == "H200 SXM"
    }
    assert by_lengths[20000.0, 2000.0] < 30 < by_lengths[128.0, 128.0]


def test_other_constants_give_other_figures(both):
    these = both[Engine.LLAMA_CPP]
    slower = {**fitted(), "llama.efficiency": fitted()["llama.efficiency"] / 2}
    changed = predictions(these, slower)[these.metric == METRICS.index("decode_tps")]
    assert (changed < predictions(these)[these.metric == METRICS.index("decode_tps")]).all()
