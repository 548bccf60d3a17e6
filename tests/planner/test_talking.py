"""Fit to talk to: the four answers, the verdict with its thresholds, and three models side by side."""

import json
from typing import Any

import pytest

from bench.talking import DOCUMENT, cases, models, rendered
from planner.catalogues.gpus import find_gpu
from planner.catalogues.models import find_model
from planner.catalogues.quants import find_quant
from planner.errors import InvalidScenario
from planner.serving.usability import Thresholds, Usability
from planner.sizing import Sizing, size
from planner.talking import Speech, talk
from planner.workload import Engine, Machine, Workload


def sizing(model: str = "llama-3.1-8b-instruct", gpu: str = "H100 SXM", **more: Any) -> Sizing:
    fields: dict[str, Any] = {"quant": find_quant("FP8"), "engine": Engine.VLLM, "output_tokens": 256}
    work = Workload(model=find_model(model).model, **{**fields, **more})
    return size(work, Machine(gpu=find_gpu(gpu).gpu, gpu_count=1))


def test_the_parts_of_a_turn_add_up() -> None:
    found = talk(sizing())
    speed = found.sizing.speed
    assert speed is not None
    # 5 s / 12.4 = 403.2 ms; 20 / 3.3 / 35 s = 173.2 ms
    assert found.speech.recognition_ms == pytest.approx(403.226, abs=1e-3)
    assert found.speech.synthesis_ms == pytest.approx(173.160, abs=1e-3)
    assert found.gap_ms == pytest.approx(403.226 + speed.ttft_ms + 19 * speed.tpot_ms + 173.160, abs=1e-2)
    assert found.answer_ms == pytest.approx(speed.ttft_ms + 255 * speed.tpot_ms)


def test_work_of_a_token_follows_active_parameters() -> None:
    mixture, dense, small = models().values()
    assert mixture.main_params == pytest.approx(dense.main_params, rel=0.01)
    by_model = {name: found.gflop_per_token for (name, _, _), found in cases().items()}
    assert [round(value, 1) for value in by_model.values()] == [5.9, 70.0, 15.0]
    assert 2 * small.active_params / 1e9 > by_model["35B-A3B mixture (Qwen3.5 35B-A3B)"]


def test_a_voice_needs_room_for_its_ears_and_tongue() -> None:
    found = talk(sizing("qwen3.5-35b-a3b", quant=find_quant("BF16"), context_tokens=2048))
    assert (found.verdict.usability, found.fits_with_speech) == (Usability.SMOOTH_CHAT, False)
    assert found.verdict.reason.startswith("speech in and out takes 5.2 GiB, ")
    elsewhere = talk(found.sizing, speech=Speech(recognition_gib=0.0, synthesis_gib=0.0))
    assert elsewhere.verdict.usability is Usability.VOICE
    assert talk(sizing("qwen3.5-35b-a3b")).verdict.usability is Usability.VOICE


@pytest.mark.parametrize(
    ("thresholds", "expected"),
    [
        (
            {"batch_tokens_per_s": 1e4, "chat_tokens_per_s": 1e4, "smooth_tokens_per_s": 1e4},
            Usability.TOO_SLOW,
        ),
        ({"chat_tokens_per_s": 1e4, "smooth_tokens_per_s": 1e4}, Usability.BATCH_ONLY),
        ({"smooth_tokens_per_s": 1e4}, Usability.CHAT),
        ({"voice_ttft_ms": 1.0}, Usability.SMOOTH_CHAT),
        ({}, Usability.VOICE),
    ],
)
def test_every_threshold_can_be_set(thresholds: dict[str, float], expected: Usability) -> None:
    assert talk(sizing(), Thresholds(**thresholds)).verdict.usability is expected


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (Thresholds, {"chat_tokens_per_s": 50.0}),  # above that of a smooth chat
        (Thresholds, {"voice_ttft_ms": 3000.0}),
        (Thresholds, {"chat_tokens_per_s": 0.0}),
        (Thresholds, {"chat_ttft_ms": float("nan")}),
        (Speech, {"utterance_s": 0.0}),
        (Speech, {"recognition_gib": -1.0}),
        (Speech, {"synthesis_times_real_time": float("inf")}),
    ],
)
def test_thresholds_that_contradict_are_refused(kind: Any, values: dict[str, float]) -> None:
    with pytest.raises(InvalidScenario):
        kind(**values)


def test_what_does_not_fit_has_no_times_and_no_verdict() -> None:
    found = talk(sizing("llama-3.3-70b-instruct", quant=find_quant("BF16")))
    assert (found.answer_ms, found.gap_ms, found.fits_with_speech) == (None, None, False)
    assert found.verdict.usability is Usability.UNKNOWN
    document = json.loads(json.dumps(found.to_document(), allow_nan=False))
    assert (document["schema"], document["fits"], document["answer_ms"]) == ("breakeven.talk/1", False, None)


def test_three_models_on_one_80_gb_gpu() -> None:
    found = {key: each.verdict.usability for key, each in cases().items()}
    mixture, dense, small = models()
    assert found[mixture, "BF16", 1] is Usability.SMOOTH_CHAT  # nothing is left for speech
    assert found[mixture, "FP8", 16] is Usability.VOICE
    assert found[dense, "BF16", 1] is Usability.UNKNOWN  # 65 GiB of weights alone
    assert found[dense, "FP8", 1] is Usability.VOICE
    assert found[dense, "FP8", 16] is Usability.UNKNOWN  # 40 GiB of cache
    assert {found[small, quant, batch] for quant in ("BF16", "FP8") for batch in (1, 4, 16)} == {
        Usability.VOICE
    }


def test_the_document_has_a_row_for_every_case() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    for line in rendered(cases()).splitlines():
        assert (
            " | ".join(line.split(" | ")[:3]) in text
        )  # model, format, number at once: speeds are fitted anew
