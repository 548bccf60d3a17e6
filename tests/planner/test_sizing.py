import json
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.catalogues.gpus import all_gpus
from planner.catalogues.models import all_models
from planner.catalogues.quants import all_quants, find_quant
from planner.errors import InvalidScenario
from planner.serving.fitting import remedies
from planner.serving.speeds import Bound, SpeedSource
from planner.sizing import size, size_machines
from planner.units import GB, GIB
from planner.workload import Engine, KvDtype, Layout, Machine, Method, Workload, engine_for

QWEN_480B = all_models()["qwen3-coder-480b-a35b"]
LLAMA_8B = all_models()["llama-3.1-8b-instruct"]
H100 = all_gpus()["H100 SXM"]


def work(model, quant="Q4_K_M", **settings):
    chosen = find_quant(quant)
    return Workload(model=model, quant=chosen, **{"engine": engine_for("auto", chosen), **settings})


def on(name, count=1):
    return Machine(gpu=all_gpus()[name], gpu_count=count)


def page(quant="Q4_K_M", **settings):
    """The sizing page's own case."""
    return size(work(QWEN_480B, quant, method=Method.SIMPLE, **settings), Machine(gpu=H100))


# The figures of the sizing page ------------------------------------------------------


@pytest.mark.parametrize(
    ("quant", "weights_gib", "total_gib", "decode"),
    [
        ("BF16", 894.07, 896.58, 0.9),
        ("Q8_0", 474.97, 477.48, 1.7),
        ("Q6_K", 366.57, 369.08, 2.4),
        ("Q5_K_M", 318.14, 320.65, 2.8),
        ("Q4_K_M", 271.39, 273.90, 3.4),
        ("IQ4_XS", 237.76, 240.27, 4.1),
        ("Q3_K_M", 218.73, 221.24, 4.6),
        ("UD-Q2_K_XL", 154.05, 156.56, 8.2),
    ],
)
def test_simple_method_gives_the_page_for_every_format(quant, weights_gib, total_gib, decode):
    sizing = page(quant)
    memory = sizing.memory.to_document()
    assert memory["weights_gib"] == pytest.approx(weights_gib, abs=0.005)
    assert memory["total_gib"] == pytest.approx(total_gib, abs=0.006)
    assert memory["fits"] is False
    assert sizing.speed.decode_tokens_per_s == pytest.approx(decode, rel=0.10)
    assert sizing.speed.bound is Bound.HOST


def test_simple_method_gives_the_page_for_its_own_case():
    sizing = page()
    memory, speed = sizing.memory.to_document(), sizing.speed
    assert memory["kv_cache_gib"] == pytest.approx(1.94, abs=0.005)
    assert memory["runtime_gib"] == pytest.approx(0.57)
    assert memory["total_gib"] == pytest.approx(273.90, abs=0.005)
    assert memory["total_gb"] == pytest.approx(294.1, abs=0.05)
    assert memory["usable_gib"] == pytest.approx(76)
    assert memory["headroom_gib"] == pytest.approx(-197.9, abs=0.05)
    assert memory["offloaded_gib"] == pytest.approx(197.9, abs=0.05)  # 273.90 - 76: what spills
    assert round(speed.prefill_tokens_per_s) == 7347
    assert round(speed.ttft_ms) == 558
    assert speed.aggregate_tokens_per_s == speed.decode_tokens_per_s


@pytest.mark.parametrize(
    ("context", "kv_dtype", "gib"),
    [(32768, "fp16", 7.75), (32768, "fp8", 3.875), (32768, "q8_0", 3.875), (8192, "fp8", 0.96875)],
)
def test_simple_cache_of_the_page(context, kv_dtype, gib):
    sizing = page(context_tokens=context, kv_dtype=KvDtype(kv_dtype))
    assert sizing.memory.to_document()["kv_cache_gib"] == pytest.approx(gib)


def test_simple_total_at_32k_and_with_an_8_bit_cache():
    assert page(context_tokens=32768).memory.to_document()["total_gib"] == pytest.approx(279.71, abs=0.006)
    eight = page(context_tokens=32768, kv_dtype=KvDtype.FP8).memory.to_document()["total_gib"]
    assert eight == pytest.approx(275.84, abs=0.006)


def test_simple_basis_is_official_only_in_the_published_format():
    assert page("BF16").memory.basis == "official-size"
    assert page("Q4_K_M").memory.basis == "config-formula"


def test_simple_host_bandwidth_can_be_given():
    fast = page(host_gb_per_s=108.0).speed.decode_tokens_per_s
    assert page().speed.decode_tokens_per_s < fast < 2 * page().speed.decode_tokens_per_s


# The calibrated method --------------------------------------------------------------


def test_llama_3_1_8b_on_an_rtx_4090_as_worked_in_the_methodology():
    sizing = size(work(LLAMA_8B), on("RTX 4090"))
    memory = sizing.memory.to_document()
    assert memory["weights_gib"] == pytest.approx(4.5755, abs=5e-5)
    assert memory["kv_cache_gib"] == 1.0
    assert memory["runtime_gib"] == pytest.approx(0.2603, abs=5e-5)
    assert memory["total_gib"] == pytest.approx(5.8357, abs=5e-5)
    assert memory["usable_gib"] == pytest.approx(23.0883, abs=5e-5)
    assert memory["max_context_tokens"] == 149_504
    assert memory["max_batch"] == 18
    # 110.7 tokens/s were measured at 4,096 tokens
    assert 90 < sizing.speed.decode_tokens_per_s < 120
    assert sizing.speed.bound is Bound.MEMORY


def test_published_checkpoint_and_formula_are_both_named():
    sizing = size(work(LLAMA_8B, "BF16"), on("H100 SXM"))
    assert sizing.memory.basis == "official-size"
    assert any("16.06 GB" in note and "the formula gives 16.06 GB" in note for note in sizing.notes)


def test_state_of_linear_layers_is_apart_from_the_cache():
    model = all_models()["qwen3.6-27b"]
    short, long = (
        size(work(model, context_tokens=tokens), on("RTX 5090")).memory for tokens in (4096, 65536)
    )
    assert short.state_bytes / 2**20 == pytest.approx(149.625)
    assert long.state_bytes == short.state_bytes
    assert long.kv_cache_bytes == 16 * short.kv_cache_bytes


@pytest.mark.parametrize(
    ("name", "quant", "machine"),
    [
        ("llama-3.1-8b-instruct", "Q4_K_M", ("RTX 4090", 1)),
        ("llama-3.3-70b-instruct", "FP8", ("H100 SXM", 2)),
        ("qwen3.5-35b-a3b", "NVFP4", ("B200", 1)),
        ("deepseek-v3-0324", "FP8", ("H200 SXM", 8)),
        ("gemma-3-27b-it", "Q4_K_M", ("RTX 3090", 2)),
        ("nemotron-3-nano-30b-a3b", "Q4_K_M", ("Mac Studio M4 Max 128GB", 1)),
    ],
)
@pytest.mark.parametrize("method", list(Method))
def test_the_largest_context_and_batch_are_the_last_that_fit(name, quant, machine, method):
    base = work(all_models()[name], quant, batch=2, method=method)
    memory = size(base, on(*machine)).memory
    context, batch = memory.max_context_tokens, memory.max_batch
    for held, changed in (
        (True, replace(base, context_tokens=context)),
        (False, replace(base, context_tokens=context + 1)),
        (True, replace(base, batch=batch)),
        (False, replace(base, batch=batch + 1)),
    ):
        assert size(changed, on(*machine)).memory.fits is held


def test_what_does_not_fit_has_no_largest_context_and_no_speed():
    sizing = size(work(QWEN_480B), on("H100 SXM"))
    assert sizing.speed is None
    assert sizing.memory.max_context_tokens is None
    assert sizing.memory.max_batch == 0
    assert set(sizing.to_document()["speed"].values()) == {None}
    assert any("does not fit" in note and "--offload 0.72" in note for note in sizing.notes)


def test_the_offload_that_is_named_makes_it_fit_and_no_less():
    for offload, held in ((0.71, False), (0.72, True)):
        sizing = size(work(QWEN_480B, offload_fraction=offload), on("H100 SXM"))
        assert sizing.memory.fits is held
    assert sizing.speed.bound is Bound.HOST
    assert sizing.memory.offloaded_bytes == pytest.approx(0.72 * sizing.memory.weights_bytes)


def test_faster_host_memory_makes_an_offloaded_model_faster():
    slow, fast = (
        size(work(QWEN_480B, offload_fraction=0.75, host_gb_per_s=rate), on("H100 SXM")).speed
        for rate in (None, 200.0)
    )
    assert fast.decode_tokens_per_s > 1.4 * slow.decode_tokens_per_s


def test_alone_the_time_between_tokens_is_the_decode_step():
    for quant, machine in (("Q4_K_M", on("RTX 4090")), ("FP8", on("H100 SXM"))):
        speed = size(work(LLAMA_8B, quant), machine).speed
        assert speed.tpot_ms == 1000 / speed.decode_tokens_per_s


def test_requests_in_flight_obey_littles_law():
    asked = work(LLAMA_8B, "FP8", batch=16, input_tokens=2048, output_tokens=256)
    speed = size(asked, on("H100 SXM")).speed
    request_s = (speed.ttft_ms + 255 * speed.tpot_ms) / 1000
    assert speed.aggregate_tokens_per_s == pytest.approx(16 * 256 / request_s)
    assert speed.tpot_ms > 1000 / speed.decode_tokens_per_s
    assert speed.aggregate_tokens_per_s < 16 * speed.decode_tokens_per_s


def test_ranges_hold_the_estimate_and_widen_with_thin_evidence():
    good, thin = (size(work(LLAMA_8B), on(name)).speed for name in ("RTX 4090", "Arc A770 16GB"))
    for speed in (good, thin):
        assert speed.decode_low < speed.decode_tokens_per_s < speed.decode_high
        assert speed.aggregate_low < speed.aggregate_tokens_per_s < speed.aggregate_high
    assert thin.decode_high / thin.decode_low > good.decode_high / good.decode_low


def test_a_measured_speed_wins_and_is_marked():
    asked = work(LLAMA_8B, "FP8", batch=8)
    estimate = size(asked, on("H100 SXM")).speed
    speed = size(asked, on("H100 SXM"), measured_decode_tokens_per_s=40.0).speed
    assert speed.source is SpeedSource.MEASURED
    assert speed.decode_tokens_per_s == speed.decode_low == speed.decode_high == 40.0
    # 25 ms for each token, and the stall of the others' prompts as before
    assert speed.tpot_ms - 25 == pytest.approx(estimate.tpot_ms - 1000 / estimate.decode_tokens_per_s)
    assert speed.ttft_ms == pytest.approx(estimate.ttft_ms)
    assert speed.aggregate_tokens_per_s < estimate.aggregate_tokens_per_s


def test_the_simple_method_has_no_range():
    asked = work(LLAMA_8B, method=Method.SIMPLE)
    document = size(asked, on("RTX 4090")).to_document()["speed"]
    ends = [f"{name}_{end}" for name in ("decode", "aggregate", "prefill", "ttft", "tpot") for end in ENDS]
    assert [document[name] for name in ends] == [None] * 10
    assert document["decode_tokens_per_s"] > 0
    # what is stated is known, and what was estimated elsewhere has that range
    stated = size(asked, on("RTX 4090"), measured_decode_tokens_per_s=100.0).to_document()["speed"]
    assert [stated[f"decode_{end}"] for end in ENDS] == [100.0, 100.0]
    assert [stated[f"tpot_{end}"] for end in ENDS] == [10.0, 10.0]
    assert [stated[f"prefill_{end}"] for end in ENDS] == [None, None]
    settings = {"measured_decode_tokens_per_s": 100.0, "estimated_range": (80.0, 125.0)}
    other = size(asked, on("RTX 4090"), **settings).to_document()["speed"]
    assert [other[f"decode_{end}"] for end in ENDS] == [80.0, 125.0]
    assert [other[f"aggregate_{end}"] for end in ENDS] == [None, None]


ENDS = ("low", "high")


def test_a_stated_speed_has_a_stated_time_per_token():
    alone = size(work(LLAMA_8B), on("RTX 4090"), measured_decode_tokens_per_s=100.0).speed
    assert (alone.tpot_low, alone.tpot_ms, alone.tpot_high) == (10.0, 10.0, 10.0)
    ranged = size(
        work(LLAMA_8B), on("RTX 4090"), measured_decode_tokens_per_s=100.0, estimated_range=(80.0, 125.0)
    ).speed
    assert (ranged.tpot_low, ranged.tpot_ms, ranged.tpot_high) == (8.0, 10.0, 12.5)
    # with others, what their prompts add is an estimate still
    asked = work(LLAMA_8B, "FP8", batch=8)
    estimate = size(asked, on("H100 SXM")).speed
    speed = size(asked, on("H100 SXM"), measured_decode_tokens_per_s=40.0).speed
    others_ms = estimate.tpot_ms - 1000 / estimate.decode_tokens_per_s
    assert speed.tpot_low == pytest.approx(25 + others_ms * estimate.tpot_low / estimate.tpot_ms)
    assert speed.tpot_high == pytest.approx(25 + others_ms * estimate.tpot_high / estimate.tpot_ms)


def test_a_measured_speed_is_the_pages_aggregate():
    sizing = size(work(QWEN_480B, method=Method.SIMPLE), Machine(gpu=H100), measured_decode_tokens_per_s=3.4)
    assert sizing.speed.aggregate_tokens_per_s == 3.4
    usd_per_million = 11.96 / (sizing.speed.aggregate_tokens_per_s * 3600) * 1e6
    assert usd_per_million == pytest.approx(977.12, abs=0.005)


@pytest.mark.parametrize("speed", [0.0, -1.0, float("nan"), float("inf")])
def test_a_measured_speed_has_to_be_one(speed):
    with pytest.raises(InvalidScenario, match="decode_tokens_per_s"):
        size(work(LLAMA_8B), on("RTX 4090"), measured_decode_tokens_per_s=speed)


def test_devices_without_rates_have_memory_and_no_speed():
    sizing = size(work(LLAMA_8B), on("MacBook Pro M5 Max 128GB"))
    assert sizing.memory.fits
    assert sizing.speed is None
    assert any("compute rate" in note and "not known" in note for note in sizing.notes)


@pytest.mark.parametrize(
    ("settings", "machine", "words"),
    [
        ({"context_tokens": 200_000}, ("RTX 4090", 1), "above the model's maximum of 131,072"),
        ({"context_tokens": 2048}, ("RTX 4090", 1), "longer than the context of 2,048"),
        ({"engine": Engine.VLLM}, ("RTX 4090", 1), "Q4_K_M is a GGUF format"),
        ({"quant": "FP8", "engine": Engine.LLAMA_CPP}, ("H100 SXM", 1), "llama.cpp reads GGUF files"),
        ({"quant": "FP8"}, ("A100 80GB SXM", 1), "does not multiply in fp8"),
        ({"kv_dtype": KvDtype.FP8}, ("RTX 4090", 1), "llama.cpp has no fp8 cache"),
        ({"quant": "FP8", "kv_dtype": KvDtype.Q8_0}, ("H100 SXM", 1), "vllm has no q8_0 cache"),
        ({"quant": "FP8"}, ("Mac Studio M4 Max 128GB", 1), "vllm does not run on Apple"),
        ({}, ("RTX 4090", 2), "splits layers"),
        ({"quant": "FP8"}, ("H100 SXM", 16), "one node holds 8x H100 SXM"),
        ({}, ("Arc A770 16GB", 1), "no measurements"),
        ({}, ("Mac Studio M4 Ultra 256GB", 1), "never sold"),
    ],
)
def test_notes(settings, machine, words):
    quant = settings.pop("quant", "Q4_K_M")
    sizing = size(work(LLAMA_8B, quant, **settings), on(*machine))
    assert any(words in note for note in sizing.notes), sizing.notes


@pytest.mark.parametrize(
    ("name", "quant", "count", "words"),
    [
        ("deepseek-v3-0324", "FP8", 8, "latent cache is kept on each of the 8 GPUs"),
        ("qwen3.5-35b-a3b", "FP8", 4, "2 KV heads on 4 GPUs"),
        ("phi-4", "FP8", 4, "10 KV heads on 4 GPUs"),
        ("deepseek-v3-0324", "BF16", 8, "published as fp8"),
        ("gemma-3-27b-it", "BF16", 1, "windowed layers hold their window only"),
        (
            "gpt-oss-120b",
            "Q2_K",
            1,
            "keeps its experts in MXFP4 (4.25 bits): Q2_K is the format of the other 2 %",
        ),
    ],
)
def test_notes_on_models(name, quant, count, words):
    sizing = size(work(all_models()[name], quant, context_tokens=32768), on("H200 SXM", count))
    assert any(words in note for note in sizing.notes), sizing.notes


@pytest.mark.parametrize(
    ("name", "count", "settings", "why"),
    [
        ("qwen2.5-7b-instruct", 8, {}, "28 attention heads do not divide among 8 GPUs"),
        ("llama-3.1-8b-instruct", 33, {}, "32 attention heads do not divide among 33 GPUs"),
        ("llama-3.1-8b-instruct", 64, {}, "32 attention heads do not divide among 64 GPUs"),
        ("glm-4.7-flash", 8, {}, "20 attention heads do not divide among 8 GPUs"),
        ("qwen2.5-7b-instruct", 8, {"layout": Layout(pipeline=3)}, "among 8 GPUs"),  # 8 have no 3 stages
        ("qwen2.5-7b-instruct", 4, {}, None),
        ("qwen2.5-7b-instruct", 8, {"layout": Layout(pipeline=2)}, None),
        ("qwen2.5-7b-instruct", 8, {"layout": Layout(attention_data=8)}, None),
        ("qwen2.5-7b-instruct", 8, {"engine": Engine.LLAMA_CPP}, None),
        ("qwen2.5-7b-instruct", 8, {"method": Method.SIMPLE}, None),
    ],
)
def test_a_server_starts_only_where_the_heads_divide(name, count, settings, why):
    sizing = size(work(all_models()[name], "BF16", **settings), on("H100 SXM", count))
    assert sizing.memory.fits is (why is None)
    assert (sizing.speed is None) is (why is not None)
    if why is None:
        assert sizing.refusal is None
    else:
        assert why in sizing.refusal
        assert any(f"{why}" in note and "does not run so" in note for note in sizing.notes)
        assert sizing.memory.usable_bytes > sizing.memory.total_bytes


@pytest.mark.parametrize(
    ("layout", "count", "advice"),
    [
        (Layout(), 17, "use --gpus 12 or --pipeline 17"),  # 24 heads: 24, 12, 8 and less; 17 is prime
        (Layout(), 18, "use --gpus 12 or --pipeline 3"),  # 2 stages of 9, 3 of 6
        (Layout(pipeline=2), 17, "use --gpus 16"),  # no 2 stages; 16 have 2 of 8
        (Layout(pipeline=2), 18, "use --gpus 16"),
        (Layout(pipeline=3), 23, "use --gpus 18"),  # 22, 20 and 19 have no 3 stages, 21 have 3 of 7
        (Layout(attention_data=2), 17, "use --gpus 16"),
    ],
)
def test_the_number_of_gpus_that_is_advised_is_the_most_by_the_layout(layout, count, advice):
    sizing = size(work(all_models()["qwen3.8-flash-next"], "BF16", layout=layout), on("H100 SXM", count))
    (note,) = (note for note in sizing.notes if note.startswith("does not run so"))
    assert note.endswith(f"vllm refuses that; {advice}")
    fewer = [remedy.options["gpus"] for remedy in remedies(sizing) if "gpus" in remedy.options]
    assert fewer == [int(advice.split()[2])]


def test_the_bits_of_lookup_tables_are_said():
    # 196.6B elements: 184 GiB apart between 8 and 16 bits.
    known = all_models()["deepseek-v4.1-flash"]
    unknown = replace(known, native_dtype=None, native_other_bits=None, native_expert_bits=None)
    for one, words in (
        (known, "at 8 bits, as published,"),
        (unknown, "at 16 bits (their own are not known)"),
    ):
        notes = size(work(one, "BF16"), on("H200 SXM", 8)).notes
        assert any(f"196.6B parameters are counted {words} on the GPUs" in note for note in notes), notes
    assert any(
        "parameters are counted on the GPUs" in note for note in size(work(known), on("H200 SXM")).notes
    )


def test_a_machine_on_which_it_was_measured_runs():
    asked, machine = work(all_models()["qwen2.5-7b-instruct"], "BF16"), on("H100 SXM", 8)
    assert size(asked, machine, measured_decode_tokens_per_s=100.0).speed is not None


def test_document_is_json_without_nan_and_adds_up():
    for machine in (on("H100 SXM"), on("Mac Studio M4 Ultra 256GB"), on("H100 SXM", 8)):
        document = size(work(QWEN_480B), machine).to_document()
        memory = json.loads(json.dumps(document, allow_nan=False))["memory"]
        parts = ("weights_gib", "kv_cache_gib", "state_gib", "runtime_gib")
        assert memory["total_gib"] == pytest.approx(
            sum(memory[part] for part in parts) - memory["offloaded_gib"]
        )
        assert memory["total_gb"] == pytest.approx(memory["total_gib"] * GIB / GB)
        assert memory["headroom_gib"] == pytest.approx(memory["usable_gib"] - memory["total_gib"])
        assert memory["fits"] is (memory["headroom_gib"] >= 0)


def test_many_machines_give_what_each_alone_gives():
    machines = [
        on(name, count) for name in ("RTX 4090", "H100 SXM", "Instinct MI300X") for count in (1, 2, 8)
    ]
    asked = work(all_models()["qwen3.5-35b-a3b"], "FP8", batch=4)
    batches = list(range(1, 10))
    together = size_machines(asked, machines, batch=batches)
    for sizing, machine, batch in zip(together, machines, batches, strict=True):
        alone = size(replace(asked, batch=batch), machine)
        assert sizing.memory.to_document() == pytest.approx(alone.memory.to_document())
        assert sizing.notes == alone.notes
        assert (sizing.speed is None) is (alone.speed is None)
        if alone.speed is not None:
            assert sizing.speed.to_document() == pytest.approx(alone.speed.to_document())


def test_no_machines_give_no_sizings():
    assert size_machines(work(LLAMA_8B), []) == []


def test_as_many_batches_as_machines():
    with pytest.raises(InvalidScenario, match="one batch for each of the 1 machines"):
        size_machines(work(LLAMA_8B), [on("RTX 4090")], batch=[1, 2])


def test_every_model_is_sized_in_every_format():
    names = (
        "RTX 3060 12GB",
        "H100 SXM",
        "Mac Studio M3 Ultra 512GB",
        "MTT S4000 48GB",
        "Kunlunxin P800 64GB",
    )
    machines = [on(name, count) for name in names for count in (1, 8)]
    for model in all_models().values():
        for quant in all_quants().values():
            for sizing in size_machines(work(model, quant.name, batch=3), machines):
                assert sizing.memory.total_bytes > 0
                if sizing.speed is not None:
                    assert 0 < sizing.speed.decode_tokens_per_s < 5000
                    assert 0 < sizing.speed.ttft_ms < 1e8


machines = st.builds(
    on,
    st.sampled_from(["RTX 4090", "H100 SXM", "Instinct MI300X", "Ryzen AI Max+ 395 128GB"]),
    st.integers(1, 8),
)
workloads = st.builds(
    work,
    st.sampled_from(
        [all_models()[name] for name in ("llama-3.1-8b-instruct", "qwen3.5-35b-a3b", "gemma-3-27b-it")]
    ),
    st.sampled_from(["Q4_K_M", "FP8", "BF16"]),
    context_tokens=st.integers(1, 200_000),
    batch=st.integers(1, 64),
    kv_dtype=st.sampled_from(list(KvDtype)),
    method=st.sampled_from(list(Method)),
    offload_fraction=st.sampled_from([0.0, 0.3, 1.0]),
)


@settings(max_examples=60, deadline=None)
@given(asked=workloads, machine=machines, more=st.integers(1, 50_000))
def test_memory_grows_with_context_batch_and_bits(asked, machine, more):
    total = size(asked, machine).memory.total_bytes
    assert (
        size(replace(asked, context_tokens=asked.context_tokens + more), machine).memory.total_bytes >= total
    )
    assert size(replace(asked, batch=asked.batch + more), machine).memory.total_bytes > total
    if asked.offload_fraction < 1 and asked.quant.name != "BF16":
        wider = replace(asked, quant=find_quant("BF16"))
        assert size(wider, machine).memory.total_bytes > total


@settings(max_examples=60, deadline=None)
@given(asked=workloads, machine=machines)
def test_speeds_are_finite_and_hang_together(asked, machine):
    speed = size(asked, machine).speed
    if speed is None:
        return
    assert speed.decode_low <= speed.decode_tokens_per_s <= speed.decode_high
    assert speed.tpot_ms >= 1000 / speed.decode_tokens_per_s * (1 - 1e-9)
    assert 0 < speed.aggregate_tokens_per_s <= asked.batch * speed.decode_tokens_per_s * (1 + 1e-9)
    assert speed.ttft_ms >= asked.input_tokens / speed.prefill_tokens_per_s * 1000 * (1 - 1e-9)
