"""Settings that make a configuration fit: each does, and none is named where a part of it is enough."""

import pytest

from planner.catalogues.gpus import all_gpus
from planner.catalogues.models import all_models
from planner.catalogues.quants import find_quant
from planner.scenario import Scenario
from planner.serving.fitting import remedies
from planner.sizing import size
from planner.workload import Engine, Machine, Method, Workload, engine_for

ASKED = [
    ("llama-3.3-70b-instruct", "FP8", "H100 SXM", 1, {}),
    ("deepseek-v3-0324", "FP8", "H200 SXM", 8, {"batch": 100, "context": 16384}),
    ("qwen3-32b", "Q4_K_M", "RTX 4090", 1, {"context": 32768}),
    ("qwen3-32b", "Q6_K", "RTX 4090", 1, {}),
    ("llama-3.1-8b-instruct", "BF16", "RTX 4090", 1, {"context": 65536}),
]


def sizing_of(name, quant, gpu, gpus, **asked):
    chosen = find_quant(quant)
    scenario = Scenario(model=name, quant=quant, gpu=gpu, gpus=gpus, **asked)
    return size(scenario.workload(all_models()[name], chosen), Machine(gpu=all_gpus()[gpu], gpu_count=gpus))


@pytest.mark.parametrize(("name", "quant", "gpu", "gpus", "asked"), ASKED)
def test_each_remedy_makes_it_fit_with_what_it_says_to_spare(name, quant, gpu, gpus, asked):
    sizing = sizing_of(name, quant, gpu, gpus, **asked)
    assert not sizing.memory.fits
    found = remedies(sizing)
    assert found
    for remedy in found:
        options = {"quant": quant, "gpus": gpus, **asked, **remedy.options}
        memory = sizing_of(name, options.pop("quant"), gpu, options.pop("gpus"), **options).memory
        assert memory.fits
        assert memory.usable_bytes - memory.total_bytes == pytest.approx(remedy.headroom_bytes)
        assert not any(one is not remedy and one.options.items() <= remedy.options.items() for one in found)


def test_one_h100_holds_70b_in_8_bits_by_filling_more_of_it():
    texts = [remedy.text for remedy in remedies(sizing_of("llama-3.3-70b-instruct", "FP8", "H100 SXM", 1))]
    # 73.27 GiB are needed of 79.20: 0.925 of it
    assert texts[0] == "--memory-fraction 0.95"
    assert "--gpus 2" in texts
    assert not any("kv-dtype" in text for text in texts)


def test_a_latent_cache_that_every_rank_keeps_is_split_by_groups():
    found = remedies(sizing_of("deepseek-v3-0324", "FP8", "H200 SXM", 8, batch=100, context=16384))
    assert {"attention_data": 8} in [dict(remedy.options) for remedy in found]
    batch = next(remedy.options["batch"] for remedy in found if "batch" in remedy.options)
    assert not sizing_of("deepseek-v3-0324", "FP8", "H200 SXM", 8, batch=batch + 1, context=16384).memory.fits


def test_llama_cpp_has_narrow_caches_and_smaller_formats():
    texts = [remedy.text for remedy in remedies(sizing_of("qwen3-32b", "Q6_K", "RTX 4090", 1))]
    assert not any("memory-fraction" in text for text in texts)
    # the most bits that fit: Q5_K_S takes 21.2 GiB, cache and buffers 2.3, of 23.09
    assert "--quant Q4_K_M" in texts


def test_what_fits_needs_none_and_the_simple_method_spills():
    assert remedies(sizing_of("qwen3-8b", "Q4_K_M", "RTX 4090", 1)) == []
    quant = find_quant("Q4_K_M")
    work = Workload(
        model=all_models()["llama-3.3-70b-instruct"],
        quant=quant,
        engine=engine_for("auto", quant),
        method=Method.SIMPLE,
    )
    assert work.engine is Engine.LLAMA_CPP
    assert remedies(size(work, Machine(gpu=all_gpus()["RTX 4090"]))) == []


def test_a_context_that_holds_no_request_is_no_remedy():
    """1,648 tokens fit on the card, and a request has 4,096 + 512."""
    asked = {"context": 131072}
    short = sizing_of("llama-3.3-70b-instruct", "FP8", "H100 SXM", 1, **asked)
    assert 0 < short.memory.max_context_tokens < 4096
    assert not any("context" in remedy.options for remedy in remedies(short))
    small = {**asked, "input_tokens": 1000, "output_tokens": 100}
    held = remedies(sizing_of("llama-3.3-70b-instruct", "FP8", "H100 SXM", 1, **small))
    assert any(remedy.options.get("context") == short.memory.max_context_tokens for remedy in held)


def test_heads_that_do_not_divide_are_met_by_fewer_gpus_or_by_stages():
    # 28 heads: 7, 4, 2 or 1 ranks of up to 8.
    found = [
        dict(remedy.options) for remedy in remedies(sizing_of("qwen2.5-7b-instruct", "BF16", "H100 SXM", 8))
    ]
    assert found == [{"attention_data": 8}, {"pipeline": 2}, {"gpus": 7}]


def test_no_number_of_gpus_is_offered_on_which_the_heads_do_not_divide():
    # 64 sequences of 131,072 tokens: 56 KiB a token, 448 GiB; four H100 hold 285, eight would hold it.
    asked = {"context": 131072, "batch": 64}
    texts = [
        remedy.text for remedy in remedies(sizing_of("qwen2.5-7b-instruct", "BF16", "H100 SXM", 4, **asked))
    ]
    assert texts
    assert not any("--gpus" in text for text in texts)
