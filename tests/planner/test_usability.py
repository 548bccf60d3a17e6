from dataclasses import replace

import pytest

from planner.catalogues.gpus import all_gpus
from planner.catalogues.models import all_models
from planner.errors import InvalidScenario
from planner.serving.capacity import layer_evidence, screen, to_document, weight_floor_bytes
from planner.serving.speeds import Bound, Speed
from planner.serving.usability import Thresholds, Usability, verdict

QWEN_35B = all_models()["qwen3.5-35b-a3b"]
H100 = all_gpus()["H100 SXM"]


def speed(tokens_per_s, ttft_ms):
    return Speed(
        decode_tokens_per_s=tokens_per_s,
        decode_low=tokens_per_s,
        decode_high=tokens_per_s,
        aggregate_tokens_per_s=tokens_per_s,
        aggregate_low=tokens_per_s,
        aggregate_high=tokens_per_s,
        prefill_tokens_per_s=1000.0,
        prefill_low=1000.0,
        prefill_high=1000.0,
        ttft_ms=ttft_ms,
        ttft_low=ttft_ms,
        ttft_high=ttft_ms,
        tpot_ms=1000 / tokens_per_s,
        tpot_low=1000 / tokens_per_s,
        tpot_high=1000 / tokens_per_s,
        bound=Bound.MEMORY,
    )


@pytest.mark.parametrize(
    ("tokens_per_s", "ttft_ms", "expected"),
    [
        (0.9, 100, Usability.TOO_SLOW),
        (3.4, 558, Usability.BATCH_ONLY),  # the sizing page's case
        (50, 10_001, Usability.BATCH_ONLY),
        (10, 9_999, Usability.CHAT),
        (29.9, 100, Usability.CHAT),
        (100, 2_001, Usability.CHAT),
        (30.1, 1_999, Usability.SMOOTH_CHAT),
        (200, 501, Usability.SMOOTH_CHAT),
        (200, 499, Usability.VOICE),
    ],
)
def test_what_a_speed_is_good_for(tokens_per_s, ttft_ms, expected):
    assert verdict(speed(tokens_per_s, ttft_ms)).usability is expected


def test_the_reason_names_the_next_step_and_what_is_missing():
    assert verdict(speed(3.4, 558)).reason == "chat needs 10 tokens/s, here 3.4"
    assert verdict(speed(50, 12_000)).reason == "chat needs a first token within 10,000 ms, here 12,000"


def test_tokens_between_prompts_of_others_count():
    crowded = replace(speed(40, 300), tpot_ms=200.0)  # 5 tokens/s for each of them
    assert verdict(crowded).usability is Usability.BATCH_ONLY


def test_no_speed_no_verdict():
    assert verdict(None).usability is Usability.UNKNOWN


@pytest.mark.parametrize(("bits", "floor_gb"), [(16, 70.0), (8, 35.0), (4, 17.5)])
def test_weight_floor_of_qwen3_5_35b(bits, floor_gb):
    assert weight_floor_bytes(QWEN_35B, bits) / 1e9 == pytest.approx(floor_gb)


def test_layers_of_qwen3_5_35b():
    layers = layer_evidence(QWEN_35B)
    assert (layers.linear_layers, layers.full_layers) == (30, 10)
    assert layers.evidence == "config"
    assert layers.sources


@pytest.mark.parametrize(
    ("bits", "budget_gb", "count"),
    [
        (16, 0, 2),  # 70 GB of 68 free GB
        (8, 0, 1),
        (8, 33.0, 1),  # exactly 68
        (8, 33.1, 2),
        (16, 66.1, 3),
    ],
)
def test_screen_keeps_15_percent_of_each_gpu_free(bits, budget_gb, count):
    capacity = screen(QWEN_35B, H100, bits=bits, budget_gb=budget_gb)
    assert capacity.per_gpu_bytes == pytest.approx(68e9)
    assert capacity.gpu_count == count


@pytest.mark.parametrize("budget", [-1.0, float("nan"), float("inf")])
def test_screen_refuses_budgets_that_are_none(budget):
    with pytest.raises(InvalidScenario, match="budget_gb"):
        screen(QWEN_35B, H100, budget_gb=budget)


def test_capacity_document():
    document = to_document(QWEN_35B, H100, 10.0)
    assert [row["weights_gb"] for row in document["rows"]] == [70.0, 35.0, 17.5]
    assert [row["gpu_count"] for row in document["rows"]] == [2, 1, 1]
    assert document["layers"]["by_kind"] == {"gated_delta": 30, "full": 10}


def test_every_models_layers_are_counted():
    for model in all_models().values():
        layers = layer_evidence(model)
        assert layers.linear_layers + layers.attention_layers == sum(layers.by_kind.values())


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"smooth_tokens_per_s": 5.0}, "smooth_tokens_per_s: 5.0 .*at least the 10 of chat_tokens_per_s"),
        ({"chat_tokens_per_s": 50.0}, "chat_tokens_per_s: 50.0 .*at most the 30 of smooth_tokens_per_s"),
        ({"batch_tokens_per_s": 20.0}, "batch_tokens_per_s: 20.0 .*at most the 10 of chat_tokens_per_s"),
        ({"voice_ttft_ms": 3000.0}, "voice_ttft_ms: 3000.0 .*at most the 2000 of smooth_ttft_ms"),
        ({"chat_ttft_ms": 100.0}, "chat_ttft_ms: 100.0 .*at least the 2000 of smooth_ttft_ms"),
    ],
)
def test_thresholds_out_of_order_are_refused_by_the_name_of_the_one_that_was_set(
    changed: dict[str, float], says: str
) -> None:
    with pytest.raises(InvalidScenario, match=says):
        Thresholds(**changed)
