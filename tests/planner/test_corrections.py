"""Own measurements: how far they correct an estimate, and how much of its range they leave."""

from dataclasses import replace
from math import exp, log, sqrt

import numpy as np
import pytest

from planner.catalogues.gpus import all_gpus
from planner.catalogues.models import all_models
from planner.catalogues.quants import find_quant
from planner.catalogues.results import stated
from planner.measurements.corrections import REPEATED, case_of, corrections, likeness, residuals_of
from planner.serving.rows import Rows, size_rows
from planner.sizing import size
from planner.workload import Engine, KvDtype, Machine, Method, Workload

MODEL = all_models()["qwen3-8b"]
GPU = all_gpus()["RTX 4090"]
DECODE = {
    "model": "qwen3-8b",
    "quant": "Q4_K_M",
    "engine": "llama.cpp",
    "engine_name": "llama.cpp",
    "gpu": "RTX 4090",
    "gpu_count": 1,
    "concurrency": 1,
    "input_tokens": 0.0,
    "output_tokens": 128.0,
    "context_tokens": 8192.0,
    "metric": "decode_tps",
    "unit": "tokens/s",
    "kind": "single_stream",
}


def measured(times, **changed):
    """Return a measurement that is so many times as fast as its estimate."""
    plain = stated({**DECODE, **changed, "value": 1.0})
    (off,) = residuals_of([plain])
    sign = -1.0 if plain.metric in ("tpot_ms", "ttft_ms") else 1.0
    return replace(plain, value=exp(sign * (log(times) - off)))


def case(model="qwen3-8b", quant="Q4_K_M", **changed):
    given = {"engine": Engine.LLAMA_CPP, "gpu": "RTX 4090", "gpu_count": 1, "batch": 1}
    lengths = {"context_tokens": 8192, "prompt_tokens": 4096}
    return case_of(model=all_models()[model], quant=quant, **{**given, **lengths, **changed})


def change(own, **asked):
    (found,) = corrections(tuple(own), [case(**asked)])
    return found


def test_one_measurement_counts_by_what_it_shares_with_the_question():
    own = [measured(0.8)]
    shares = likeness(Engine.LLAMA_CPP, "decode")
    assert list(shares) == sorted(shares)
    for share, asked in (
        (shares[0], {"model": "qwen3-14b"}),
        (shares[1], {"quant": "Q8_0"}),
        (shares[2], {"batch": 4}),
        (shares[3], {"context_tokens": 65536}),
        (REPEATED, {}),
    ):
        found = change(own, **asked)
        assert found.decode.factor == pytest.approx(0.8**share)
        assert found.decode.doubt == pytest.approx(sqrt(1.0 - share**2))
        assert found.prompt.factor == found.prompt.doubt == 1.0  # nothing was measured of prompts


def test_measurements_of_other_models_add_up_to_trust_in_what_they_have_in_common():
    share = likeness(Engine.LLAMA_CPP, "decode")[0]
    one, many = (
        [measured(0.8, model=name) for name in names] for names in (["qwen3-8b"], ["qwen3-8b", "phi-4"])
    )
    # two that agree: 2 c / (1 + c) of the residual in place of c
    assert change(one, model="qwen3-14b").decode.factor == pytest.approx(0.8**share)
    expected = 2.0 * share / (1.0 + share)
    assert change(many, model="qwen3-14b").decode.factor == pytest.approx(0.8**expected)


def test_a_measurement_repeated_with_another_outcome_is_averaged():
    found = change([measured(0.8), measured(1.0, notes="again")])
    pull = REPEATED / (1.0 + REPEATED)  # of each
    assert found.decode.factor == pytest.approx(0.8**pull)


@pytest.mark.parametrize("asked", [{"gpu": "RTX 3090"}, {"engine": Engine.VLLM}])
def test_another_device_or_engine_is_not_touched(asked):
    assert change([measured(0.5)], **asked) is None


def test_times_correct_the_other_way_round():
    server = {
        "engine": "vllm",
        "engine_name": "vllm",
        "quant": "FP8",
        "concurrency": 8,
        "output_tokens": 256.0,
        "input_tokens": 1024.0,
    }
    own = [measured(0.5, **server, metric="tpot_ms", unit="ms", kind="serving", context_tokens=None)]
    found = change(own, engine=Engine.VLLM, quant="FP8", batch=8, context_tokens=1152)
    assert found.decode.factor == pytest.approx(0.5**REPEATED)


def work(*own, batch=1):
    return Workload(model=MODEL, quant=find_quant("Q4_K_M"), batch=batch, own_results=tuple(own))


def test_a_sizing_is_corrected_and_its_range_narrows():
    own = [measured(0.8), measured(1.3, metric="prefill_tps", input_tokens=4096.0, context_tokens=0.0)]
    plain, better = (size(one, Machine(gpu=GPU)) for one in (work(), work(*own)))
    before, after = plain.speed, better.speed
    decode, prompt = 0.8**REPEATED, 1.3**REPEATED
    assert after.decode_tokens_per_s == pytest.approx(before.decode_tokens_per_s * decode)
    assert after.tpot_ms == pytest.approx(1e3 / after.decode_tokens_per_s)
    assert after.prefill_tokens_per_s == pytest.approx(before.prefill_tokens_per_s * prompt)
    assert after.ttft_ms == pytest.approx(before.ttft_ms / prompt)
    request_s = (after.ttft_ms + 511 * after.tpot_ms) / 1e3
    alone_s = (before.ttft_ms + 511 * before.tpot_ms) / 1e3
    assert after.aggregate_tokens_per_s == pytest.approx(before.aggregate_tokens_per_s * alone_s / request_s)
    doubt = sqrt(1.0 - REPEATED**2)
    assert after.decode_low / after.decode_tokens_per_s == pytest.approx(
        (before.decode_low / before.decode_tokens_per_s) ** doubt
    )
    assert better.memory == plain.memory
    assert better.notes[0] == (
        "corrected by 2 own measurements of this device and engine: decode x 0.81, prompts x 1.28"
    )
    assert not any("own measurement" in note for note in plain.notes)


def test_the_simple_method_stays_as_it_is():
    plain, own = (replace(one, method=Method.SIMPLE) for one in (work(), work(measured(0.8))))
    assert size(own, Machine(gpu=GPU)).speed == size(plain, Machine(gpu=GPU)).speed


def test_rows_are_corrected_like_single_machines():
    own = (measured(0.8), measured(1.3, metric="prefill_tps", input_tokens=4096.0, context_tokens=0.0))
    gpus = [GPU, all_gpus()["RTX 3090"]]
    two = np.ones(2)
    rows = Rows(
        engine=Engine.LLAMA_CPP,
        method=Method.CALIBRATED,
        models=[MODEL] * 2,
        quants=[find_quant("Q4_K_M")] * 2,
        kv_dtypes=[KvDtype.FP16] * 2,
        gpus=gpus,
        gpu_count=two,
        context_tokens=two * 8192,
        batch=two * 4,
        input_tokens=two * 4096,
        output_tokens=two * 512,
        offload_fraction=two * 0,
        own_results=own,
    )
    sized = size_rows(rows)
    for place, gpu in enumerate(gpus):
        speed = size(work(*own, batch=4), Machine(gpu=gpu)).speed
        for name in (
            "decode_tokens_per_s",
            "aggregate_tokens_per_s",
            "prefill_tokens_per_s",
            "ttft_ms",
            "tpot_ms",
        ):
            assert sized[name][place] == pytest.approx(getattr(speed, name)), name
