"""How a server is set up: groups of GPUs, cached prompts, drafts, memory that it fills."""

import json

import pytest

from planner.catalogues.gpus import all_gpus
from planner.catalogues.models import all_models
from planner.catalogues.quants import find_quant
from planner.errors import InvalidScenario
from planner.launch import launch
from planner.scenario import Scenario
from planner.serving.shape import shape_of
from planner.sizing import size
from planner.units import GIB
from planner.workload import Engine, Layout, Machine, Workload
from tests.planner.plans import plan_of, rate

LLAMA_70B = all_models()["llama-3.3-70b-instruct"]
DEEPSEEK = all_models()["deepseek-v3-0324"]


def sized(model, count, gpu="H200 SXM", **asked):
    work = Workload(model=model, quant=find_quant("FP8"), engine=Engine.VLLM, **asked)
    return size(work, Machine(gpu=all_gpus()[gpu], gpu_count=count))


def test_a_pipeline_shares_each_layer_among_fewer_gpus():
    together, staged = (sized(LLAMA_70B, 8, batch=32, layout=Layout(pipeline=stages)) for stages in (1, 4))
    # 8 KV heads: no copies on 8 ranks nor on 2
    assert staged.memory.kv_cache_bytes == together.memory.kv_cache_bytes
    # 1,024 sequences x 128,256 x 14.3 B: 0.55 of it in stages, with two ranks each; 2.07 in place of 2.17 GiB
    activation = 0.19 * GIB + 1024 * 128_256 * 14.3
    assert together.memory.runtime_bytes == pytest.approx(8 * (activation + (2.17 + 0.90) * GIB))
    assert staged.memory.runtime_bytes == pytest.approx(8 * (0.55 * activation + (2.07 + 0.90) * GIB))
    alone = sized(LLAMA_70B, 8, layout=Layout(pipeline=8))
    assert alone.memory.runtime_bytes == pytest.approx(8 * (0.55 * activation + (0.07 + 0.90) * GIB))
    # a single stream passes through one stage after the other
    one, four = (sized(LLAMA_70B, 8, layout=Layout(pipeline=stages)).speed for stages in (1, 4))
    assert four.decode_tokens_per_s < 0.7 * one.decode_tokens_per_s


def test_attention_groups_keep_a_latent_cache_once_and_their_weights_each():
    together, groups = (
        sized(DEEPSEEK, 8, batch=64, layout=Layout(attention_data=groups)) for groups in (1, 8)
    )
    assert groups.memory.kv_cache_bytes == pytest.approx(together.memory.kv_cache_bytes / 8)
    attention = shape_of(DEEPSEEK).mixer_params
    extra = groups.memory.weights_bytes - together.memory.weights_bytes
    assert extra == pytest.approx(7 * attention, rel=0.1)  # one byte each; the head's 16 bits are spread
    assert groups.memory.max_batch > 5 * together.memory.max_batch


def test_a_layout_that_does_not_divide_the_gpus_is_said_and_not_taken():
    plain = sized(LLAMA_70B, 6)
    found = sized(LLAMA_70B, 6, layout=Layout(pipeline=4))
    assert found.speed == plain.speed
    assert any("6 GPUs do not divide" in note for note in found.notes)
    gguf = Workload(model=LLAMA_70B, quant=find_quant("Q4_K_M"), layout=Layout(pipeline=2))
    notes = size(gguf, Machine(gpu=all_gpus()["H200 SXM"], gpu_count=2)).notes
    assert any("llama.cpp splits layers" in note for note in notes)


def test_a_cached_prompt_is_not_computed_again():
    plain, cached = (
        sized(LLAMA_70B, 4, batch=16, input_tokens=8000, context_tokens=8192, cached_input=share).speed
        for share in (0.0, 0.9)
    )
    assert cached.decode_tokens_per_s == plain.decode_tokens_per_s
    assert cached.ttft_ms < plain.ttft_ms / 3
    assert cached.tpot_ms < plain.tpot_ms
    assert cached.aggregate_tokens_per_s > plain.aggregate_tokens_per_s


def test_drafts_speed_up_a_stream_by_less_than_what_is_kept():
    plain, drafted = (
        sized(DEEPSEEK, 8, drafted_tokens=drafts, acceptance=acceptance)
        for drafts, acceptance in ((0, None), (2, 0.7))
    )
    gain = drafted.speed.decode_tokens_per_s / plain.speed.decode_tokens_per_s
    assert 1.3 < gain < 2.19
    assert drafted.speed.tpot_ms == pytest.approx(1e3 / drafted.speed.decode_tokens_per_s)
    # the mean layer of 61, with its experts
    layer = (drafted.memory.weights_bytes - plain.memory.weights_bytes) / plain.memory.weights_bytes
    assert layer == pytest.approx(1 / 61, rel=0.05)


def test_memory_that_a_server_fills_and_sequences_it_is_set_up_for():
    plain = sized(LLAMA_70B, 1, "H200 SXM").memory
    more = sized(LLAMA_70B, 1, "H200 SXM", memory_fraction=0.95).memory
    assert more.usable_bytes / plain.usable_bytes == pytest.approx(0.95 / 0.90)
    fewer = sized(LLAMA_70B, 1, "H200 SXM", most_sequences=256).memory
    assert plain.runtime_bytes - fewer.runtime_bytes == pytest.approx((1024 - 256) * 128_256 * 14.3)


def test_what_is_not_at_its_default_stands_in_the_document():
    layout = Layout(pipeline=2, expert_ranks=2, attention_data=2)
    found = sized(DEEPSEEK, 8, layout=layout, cached_input=0.5, drafted_tokens=1, acceptance=0.8)
    assert found.to_document()["serving"] == {
        "cached_input": 0.5,
        "draft_tokens": 1,
        "acceptance": 0.8,
        "pipeline": 2,
        "expert_ranks": 2,
        "attention_data": 2,
    }
    assert sized(DEEPSEEK, 8).to_document()["serving"] == {}


def test_commands_start_what_was_sized():
    layout = Layout(pipeline=2, expert_ranks=4, attention_data=2)
    asked = {"layout": layout, "drafted_tokens": 1, "acceptance": 0.8, "memory_fraction": 0.95}
    found = sized(DEEPSEEK, 8, **asked, most_sequences=64)
    vllm = launch(found).command.replace("\\\n ", "").split()
    for flag, value in (
        ("--tensor-parallel-size", "2"),
        ("--pipeline-parallel-size", "2"),
        ("--data-parallel-size", "2"),
        ("--gpu-memory-utilization", "0.95"),
        ("--max-num-seqs", "64"),
    ):
        assert vllm[vllm.index(flag) + 1] == value
    assert "--enable-expert-parallel" in vllm
    drafts = json.loads(vllm[vllm.index("--speculative-config") + 1].strip("'"))
    assert drafts == {"method": "mtp", "num_speculative_tokens": 1}
    sglang = launch(found, Engine.SGLANG).command.replace("\\\n ", "").split()
    for flag, value in (("--tp", "4"), ("--pp-size", "2"), ("--dp", "2"), ("--ep-size", "4")):
        assert sglang[sglang.index(flag) + 1] == value
    assert "--enable-dp-attention" in sglang
    assert any("without speculative decoding" in note for note in launch(found, Engine.SGLANG).notes)


@pytest.mark.parametrize(
    ("asked", "field"),
    [
        ({"cached_input": 1.0}, "cached_input"),
        ({"draft_tokens": 2}, "draft_tokens"),
        ({"acceptance": 0.5}, "acceptance"),
        ({"draft_tokens": 2, "acceptance": 1.0}, "acceptance"),
        ({"draft_tokens": 17, "acceptance": 0.5}, "draft_tokens"),
        ({"pipeline": 0}, "pipeline"),
        ({"attention_data": 5000}, "attention_data"),
        ({"memory_fraction": 0.0}, "memory_fraction"),
        ({"memory_fraction": 1.5}, "memory_fraction"),
        ({"max_sequences": 0}, "max_sequences"),
    ],
)
def test_settings_that_make_no_sense_are_refused_by_name(asked, field):
    with pytest.raises(InvalidScenario) as refused:
        Scenario(model="qwen3-8b", **asked)
    assert refused.value.field == field


@pytest.mark.parametrize(
    "asked",
    [
        {"cached_input": 1.0},
        {"drafted_tokens": 2},
        {"acceptance": 0.5},
        {"drafted_tokens": 99, "acceptance": 0.5},
        {"memory_fraction": 0.0},
        {"most_sequences": 0},
        {"most_sequences": 7, "batch": 8},
    ],
)
def test_a_workload_refuses_them_too(asked):
    with pytest.raises(InvalidScenario):
        Workload(model=LLAMA_70B, quant=find_quant("FP8"), **asked)


def test_a_scenario_carries_its_settings():
    asked = {"cached_input": 0.5, "draft_tokens": 2, "acceptance": 0.75, "pipeline": 2, "max_sequences": 64}
    work = Scenario(model="qwen3-8b", **asked).workload(LLAMA_70B, find_quant("FP8"))
    assert work.serving == asked
    scenario = Scenario(model="qwen3-8b", **asked)
    assert Scenario.from_toml(scenario.to_toml()) == scenario


def test_a_plan_over_machines_of_many_sizes_takes_groups_where_they_divide_them():
    asked = {"quant": "FP8", "pipeline": 2, "tokens_per_month": 1e9}
    rates = [rate("runpod", "H200 SXM", 4, "16.00"), rate("vastai", "H200 SXM", 8, "32.00")]
    found = plan_of(rates, "llama-3.3-70b-instruct", **asked)
    rented = {option.gpu_count: option for option in found.options if option.kind == "rent"}
    assert rented.keys() == {4, 8}
    for count, option in rented.items():
        assert option.point is not None
        alone = sized(LLAMA_70B, count, layout=Layout(pipeline=2), batch=option.point.sizing.workload.batch)
        assert option.point.sizing.memory.total_bytes == pytest.approx(alone.memory.total_bytes)


def test_a_server_takes_no_more_sequences_than_it_is_set_up_for() -> None:
    with pytest.raises(InvalidScenario, match="max_sequences: 2 is not allowed; give at least batch 8"):
        sized(LLAMA_70B, 8, "H100 SXM", batch=8, most_sequences=2)
    few = sized(LLAMA_70B, 8, "H100 SXM", batch=2, most_sequences=2)
    assert sized(LLAMA_70B, 8, "H100 SXM", batch=2).memory.max_batch > few.memory.max_batch == 2
    arguments = launch(few, Engine.VLLM).arguments
    assert arguments[arguments.index("--max-num-seqs") + 1] == "2"


@pytest.mark.parametrize(
    ("layout", "note"),
    [
        (Layout(), "the latent cache is kept on each of the 8 GPUs"),
        (Layout(attention_data=2), "the latent cache of a sequence is kept 4 times on the 8 GPUs"),
        (Layout(pipeline=4), "the latent cache of a sequence is kept 2 times on the 8 GPUs"),
        (Layout(attention_data=8), None),
        (Layout(pipeline=8), None),
    ],
)
def test_copies_of_the_latent_cache_are_those_of_the_layout(layout, note):
    assert [text for text in sized(DEEPSEEK, 8, layout=layout).notes if "latent cache" in text] == (
        [note] if note else []
    )


def test_heads_divide_among_the_gpus_of_a_group():
    assert any("KV heads on 16 GPUs" in text for text in sized(LLAMA_70B, 16).notes)
    staged = sized(LLAMA_70B, 16, layout=Layout(pipeline=2)).notes
    assert not any("KV heads" in text for text in staged)


@pytest.mark.parametrize(
    ("method", "engine", "asked", "note"),
    [
        (
            "simple",
            "vllm",
            {"draft_tokens": 3, "acceptance": 0.7},
            "the simple method does not use --draft-tokens, --acceptance",
        ),
        ("simple", "vllm", {"attention_data": 8}, "the simple method does not use --attention-data"),
        ("simple", "vllm", {"pipeline": 2}, "the simple method does not use --pipeline"),
        ("simple", "vllm", {"expert_ranks": 8}, "the simple method does not use --expert-ranks"),
        ("simple", "vllm", {"cached_input": 0.5}, "the simple method does not use --cached-input"),
        (
            "simple",
            "llama.cpp",
            {"memory_fraction": 0.5, "max_sequences": 10**6},
            "the simple method does not use --memory-fraction; "
            "the simple method takes --max-sequences as the largest batch only",
        ),
        ("calibrated", "llama.cpp", {"memory_fraction": 0.5}, "llama.cpp does not use --memory-fraction"),
        (
            "calibrated",
            "llama.cpp",
            {"max_sequences": 10**6},
            "llama.cpp takes --max-sequences as the largest batch only",
        ),
    ],
)
def test_a_setting_that_changes_nothing_is_named_as_such(method, engine, asked, note):
    bare = {"model": DEEPSEEK.id, "quant": "FP8", "method": method, "engine": engine}
    machine = Machine(gpu=all_gpus()["H200 SXM"], gpu_count=8)

    def found(**options):
        scenario = Scenario(**bare, **options)
        return size(scenario.workload(DEEPSEEK, find_quant("FP8")), machine)

    given, none = found(**asked), found()
    assert (given.memory, given.speed) == (none.memory, none.speed)
    assert [each for each in given.notes if each not in none.notes] == [note]
    planned = plan_of([rate("runpod", "H200 SXM", 8, "32.00")], **{**bare, **asked})
    assert f"{note[0].upper()}{note[1:]}." in planned.to_document()["notes"]


def test_a_setting_that_is_used_is_not_named():
    asked = {"cached_input": 0.5, "draft_tokens": 1, "acceptance": 0.8, "memory_fraction": 0.8, "pipeline": 2}
    notes = sized(DEEPSEEK, 8, cached_input=0.5, memory_fraction=0.8, most_sequences=64).notes
    assert not any("does not use" in note or "largest batch only" in note for note in notes)
    planned = plan_of([rate("runpod", "H200 SXM", 8, "32.00")], DEEPSEEK.id, quant="FP8", **asked)
    assert not any("does not use" in note for note in planned.notes)
