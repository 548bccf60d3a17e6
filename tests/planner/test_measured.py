from typing import Any

import pytest

from planner.catalogues.gpus import find_gpu
from planner.catalogues.models import find_model
from planner.catalogues.quants import find_quant
from planner.compare import plan
from planner.errors import InvalidScenario, UnknownName
from planner.measurements.belonging import batch_of
from planner.measurements.measured import Measurement, read_measurement
from planner.scenario import Scenario
from planner.serving.ceiling import check_possible
from planner.sizing import size
from planner.workload import Machine, Method
from tests.planner.plans import CODER, SMALL, rate

LLAMA_BENCH = [
    {"gpu_info": "NVIDIA GeForce RTX 4090", "n_prompt": 512, "n_gen": 0, "avg_ts": 11000.0},
    {"gpu_info": "NVIDIA GeForce RTX 4090", "n_prompt": 0, "n_gen": 128, "avg_ts": 128.5},
]


def test_own_sizing_is_read_back() -> None:
    workload = Scenario(model=SMALL).workload(find_model(SMALL).model, find_quant("Q4_K_M"))
    sizing = size(workload, Machine(gpu=find_gpu("RTX 4090").gpu))
    found, remark = read_measurement(sizing.to_document())
    assert sizing.speed is not None
    assert (found.gpu, found.gpu_count) == ("RTX 4090", 1)
    assert found.decode_tokens_per_s == sizing.speed.decode_tokens_per_s
    assert found.estimated_range == (sizing.speed.decode_low, sizing.speed.decode_high)
    assert remark is None


def size_document(**speed: Any) -> dict[str, Any]:
    return {
        "schema": "breakeven.size/1",
        "model": {"id": SMALL},
        "gpu": "RTX 4090",
        "gpu_count": 1,
        "quant": "Q4_K_M",
        "context_tokens": 8192,
        "batch": 1,
        "speed": {"decode_tokens_per_s": 100.0, "decode_low": 80.0, "decode_high": 130.0, **speed},
    }


def test_an_estimate_stays_an_estimate_with_its_range() -> None:
    found, _ = read_measurement(size_document(source="estimated"))
    assert found.is_estimate
    assert not found.proves_it_fits
    rates = [rate("runpod", "RTX 4090", 1, "0.34")]
    planned = plan(Scenario(model=SMALL), rates, measurement=found)
    (rented,) = (option for option in planned.options if option.kind == "rent")
    document = rented.to_document()
    assert (document["decode_tokens_per_s"], document["speed_source"]) == (100.0, "estimated")
    assert (document["speed_low"], document["speed_high"]) == (80.0, 130.0)
    (decode,) = (f for f in planned.explain(planned.options.index(rented) + 1).figures if "decode" in f.name)
    assert decode.is_estimate
    assert decode.source == "estimate of the sizing that was given"
    assert any("The speed of 1x RTX 4090 is the estimate of size" in note for note in planned.notes)


def test_a_measured_sizing_is_read_back_as_measured() -> None:
    found, _ = read_measurement(size_document(source="measured", decode_low=100.0, decode_high=100.0))
    assert found.estimated_range is None
    assert found.proves_it_fits


def test_an_estimate_proves_not_that_the_model_fits() -> None:
    spilled = {**size_document(), "model": {"id": CODER}, "gpu_count": 1}
    found, _ = read_measurement(spilled)
    planned = plan(Scenario(model=CODER), [rate("runpod", "RTX 4090", 1, "0.34")], measurement=found)
    assert not any(option.kind == "rent" for option in planned.options)


def test_a_sizing_of_another_model_is_refused_and_other_settings_are_named() -> None:
    with pytest.raises(InvalidScenario, match=CODER):
        read_measurement(size_document(), asked=Scenario(model=CODER))
    with pytest.raises(InvalidScenario, match="'Q4_K_M' is not allowed; give a sizing in BF16"):
        read_measurement(size_document(), asked=Scenario(model=SMALL, quant="BF16"))
    _, remark = read_measurement(size_document(), asked=Scenario(model=SMALL, batch=4, context=4096))
    assert remark == "it was made for context 8192 (asked: 4096), batch 1 (asked: 4)"
    _, spilled = read_measurement(
        {**size_document(), "offload_fraction": 0.0}, asked=Scenario(model=SMALL, offload=0.5)
    )
    assert spilled == "it was made for offload 0.0 (asked: 0.5)"
    assert read_measurement(size_document(), asked=Scenario(model=SMALL))[1] is None


QWEN_BENCH = [
    {**row, "model_filename": "/m/Qwen3-8B-Q4_K_M.gguf", "model_type": "qwen3 8B Q4_K - Medium"}
    for row in LLAMA_BENCH
]


@pytest.mark.parametrize(
    ("scenario", "message"),
    [
        (Scenario(model="llama-3.3-70b-instruct"), "'qwen3-8b' .* that is asked for, llama-3.3-70b-instruct"),
        (Scenario(model="qwen3-8b", quant="BF16"), "'Q4_K_M' .* in BF16, or quant Q4_K_M"),
        (Scenario(model="qwen3-8b", gpu="H100 SXM"), "'NVIDIA GeForce RTX 4090' .* on H100 SXM, or that gpu"),
        (Scenario(model="qwen3-8b", gpus=2), "'1x RTX 4090' .* on 2x, or gpus 1"),
        (
            Scenario(model="qwen3-8b", batch=8),
            "'measured at batch 1' .* batch 1, or a measurement at batch 8",
        ),
    ],
    ids=["model", "format", "device", "count", "batch"],
)
def test_a_benchmark_of_something_else_is_refused(scenario: Scenario, message: str) -> None:
    with pytest.raises(InvalidScenario, match=message):
        read_measurement(QWEN_BENCH, gpu=scenario.gpu, gpu_count=scenario.gpus, asked=scenario)


def test_a_benchmark_of_what_is_asked_for_is_taken_without_a_word() -> None:
    scenario = Scenario(model="qwen3-8b", gpu="RTX 4090", gpus=1)
    found, remark = read_measurement(QWEN_BENCH, gpu="RTX 4090", gpu_count=1, asked=scenario)
    assert (found.key, found.decode_tokens_per_s, remark) == (("RTX 4090", 1), 128.5, None)
    unknown = [{**row, "model_filename": "mine.gguf", "model_type": ""} for row in QWEN_BENCH]
    assert read_measurement(unknown, asked=scenario)[1] == "model qwen3-8b is taken for 'mine'"
    with pytest.raises(InvalidScenario, match="layers in host memory"):
        read_measurement([{**QWEN_BENCH[1], "n_gpu_layers": 0}], asked=scenario)


def taken(offload: float, model: str = "qwen3-8b", **ran: object) -> str | None:
    """Return the remark on a benchmark that ran so, for a question with that offload."""
    asked = Scenario(model=model, gpu="RTX 4090", offload=offload)
    work = asked.workload(find_model(model).model, find_quant("Q4_K_M"))
    rows = [{**LLAMA_BENCH[1], **ran}]
    found, remark = read_measurement(rows, gpu="RTX 4090", gpu_count=1, asked=asked, work=work)
    assert found.decode_tokens_per_s == 128.5
    return remark


@pytest.mark.parametrize("layers", [99, "99", 36, 37, -1])
def test_a_benchmark_with_all_layers_on_the_gpu_is_taken_for_just_that(layers: object) -> None:
    assert taken(0.0, n_gpu_layers=layers) is None
    with pytest.raises(
        InvalidScenario, match=r"'0 of 36 layers in host memory' .* at offload 0.4, or offload 0.00"
    ):
        taken(0.4, n_gpu_layers=layers)


def test_a_benchmark_with_part_of_the_layers_is_taken_for_the_same_offload_only() -> None:
    """20 of 36 layers on the GPU leave 16, 44.4 % of the weights, in host memory; one layer is 2.8 %."""
    with pytest.raises(
        InvalidScenario,
        match=r"'16 of 36 layers in host memory' .* a measurement with all of it on the GPU, or offload 0.44",
    ):
        taken(0.0, n_gpu_layers=20)
    for offload in (0.42, 0.44, 0.47):
        assert taken(offload, n_gpu_layers=20) is None
    for offload in (0.41, 0.48, 1.0):
        with pytest.raises(InvalidScenario, match=r"or offload 0.44"):
            taken(offload, n_gpu_layers=20)
    with pytest.raises(InvalidScenario, match=r"or offload 0.03"):
        taken(0.0, n_gpu_layers=35)  # less than a layer apart, and still not all of it
    with pytest.raises(InvalidScenario, match=r"^sizing: .n_gpu_layers 'many'. .* as a whole number"):
        taken(0.0, n_gpu_layers="many")


def test_a_benchmark_with_experts_in_host_memory_is_taken_for_the_same_offload_only() -> None:
    """All 48 layers have experts, 94.7 % of the weights: of 24 they are 47 %, and 12 whole ones 25 % more."""
    moe = "qwen3-30b-a3b"
    for offload, ran in ((0.47, {"n_cpu_moe": 24}), (0.72, {"n_cpu_moe": 24 + 12, "n_gpu_layers": 36})):
        assert taken(offload, moe, **{"n_gpu_layers": 99, **ran}) is None
    with pytest.raises(
        InvalidScenario, match=r"'experts of 24 of 48 layers in host memory' .* or offload 0.47"
    ):
        taken(0.0, moe, n_gpu_layers=99, n_cpu_moe=24)
    by_name = {"n_gpu_layers": 99, "tensor_buft_overrides": "exps=CPU"}
    with pytest.raises(InvalidScenario, match="'tensors placed by name'"):
        taken(0.0, moe, **by_name)
    said = "it does not say how much lay in host memory: offload 0.5 is taken"
    assert taken(0.5, moe, **by_name) == taken(0.5) == said
    assert taken(0.0) is None


def test_a_benchmark_with_another_cache_says_so() -> None:
    deep = "it was made for context 0 to 128 (asked: 8192)"
    assert taken(0.0, n_depth=0) == deep
    assert (
        taken(0.0, n_depth=8192) == taken(0.0, n_depth=8100, type_k="f16") == taken(0.0, n_depth="") is None
    )
    assert taken(0.0, n_depth=0, type_k="q8_0") == f"{deep}, kv_dtype q8_0 (asked: fp16)"
    assert taken(0.0, type_k="iq4_nl") == "it was made for kv_dtype iq4_nl (asked: fp16)"
    with pytest.raises(InvalidScenario, match=r"^sizing: .n_depth 'deep'. .* as a whole number"):
        taken(0.0, n_depth="deep")


def test_of_several_benchmarks_the_one_of_what_is_asked_for_is_taken() -> None:
    runs = [
        {**LLAMA_BENCH[1], "n_gpu_layers": layers, "n_depth": depth, "avg_ts": speed}
        for layers, depth, speed in (
            (20, 4096, 30.0),
            (99, 4096, 120.0),
            (99, 16384, 90.0),
            (20, 16384, 20.0),
        )
    ]
    for options, speed in (
        ({"context": 4096}, 120.0),
        ({"context": 16384}, 90.0),
        ({"context": 4096, "offload": 0.44}, 30.0),
        ({"context": 32768, "offload": 0.44}, 20.0),
    ):
        asked = Scenario(model="qwen3-8b", gpu="RTX 4090", **options)  # type: ignore[arg-type]
        work = asked.workload(find_model("qwen3-8b").model, find_quant("Q4_K_M"))
        assert read_measurement(runs, asked=asked, work=work)[0].decode_tokens_per_s == speed
    assert read_measurement([*runs, *LLAMA_BENCH], asked=None)[0].decode_tokens_per_s == 128.5  # the last one


def test_a_speed_beyond_the_bandwidth_is_refused() -> None:
    """4.6 GB of weights at 1,008 GB/s: 219 tokens/s at most, and five times that where a server drafts."""
    work = Scenario(model="qwen3-8b").workload(find_model("qwen3-8b").model, find_quant("Q4_K_M"))

    def check(tokens_per_s: float, gpu_count: int, *, may_draft: bool) -> None:
        machine = Machine(gpu=find_gpu("RTX 4090").gpu, gpu_count=gpu_count)
        check_possible(tokens_per_s, work, machine, field="sizing", may_draft=may_draft)

    check(215.0, 1, may_draft=False)
    check(430.0, 2, may_draft=False)
    check(1000.0, 1, may_draft=True)
    for tokens_per_s, may_draft in ((225.0, False), (1150.0, True)):
        with pytest.raises(InvalidScenario, match="the bandwidth of 1x RTX 4090 allows"):
            check(tokens_per_s, 1, may_draft=may_draft)


def test_a_stated_speed_beyond_the_bandwidth_is_refused_by_plan_and_size() -> None:
    """Five tokens a step of 4.6 GB at 1,008 GB/s: 1,096 tokens/s; 16 drafted ones make it 17 a step."""
    asked: dict[str, Any] = {"model": "qwen3-8b", "gpu": "RTX 4090", "gpus": 1}
    rates = [rate("runpod", "RTX 4090", 1, "0.34")]
    message = (
        "^decode_tokens_per_s: 1200.0 is not allowed; give what the bandwidth of 1x RTX 4090 allows: up to "
    )
    with pytest.raises(InvalidScenario, match=message):
        plan(Scenario(**asked, decode_tokens_per_s=1200.0), rates)
    with pytest.raises(
        InvalidScenario, match="1x RTX 4090"
    ):  # nobody offers it, and it is no speed all the same
        plan(Scenario(**asked, decode_tokens_per_s=1200.0), [])
    plan(Scenario(**asked, decode_tokens_per_s=1050.0), rates)
    plan(Scenario(**asked, decode_tokens_per_s=1200.0, draft_tokens=16, acceptance=0.9), rates)
    work = Scenario(**asked).workload(find_model("qwen3-8b").model, find_quant("Q4_K_M"))
    machine = Machine(gpu=find_gpu("RTX 4090").gpu)
    with pytest.raises(InvalidScenario, match=message):
        size(work, machine, measured_decode_tokens_per_s=1200.0)
    assert size(work, machine, measured_decode_tokens_per_s=1050.0).speed is not None


def test_a_served_benchmark_counts_at_its_own_batch_only() -> None:
    document = {"median_tpot_ms": 20.0, "max_concurrency": 64, "model_id": "Qwen/Qwen3-8B"}
    assert batch_of(document) == 64
    with pytest.raises(
        InvalidScenario, match=r"'measured at batch 64' .* batch 64, or a measurement at batch 1"
    ):
        read_measurement(document, gpu="RTX 4090", asked=Scenario(model="qwen3-8b"))
    found, _ = read_measurement(document, gpu="RTX 4090", asked=Scenario(model="qwen3-8b", batch=64))
    assert found.decode_tokens_per_s == 50.0
    with pytest.raises(InvalidScenario, match="'qwen3-8b'"):
        read_measurement(document, gpu="RTX 4090", asked=Scenario(model=SMALL, batch=64))
    _, remark = read_measurement({"median_tpot_ms": 20.0}, gpu="RTX 4090", asked=Scenario(model=SMALL))
    assert remark is not None
    assert remark.endswith("how many requests were in flight: batch 1 is taken")


def test_llama_bench_names_its_machine() -> None:
    found, _ = read_measurement(LLAMA_BENCH)
    assert (found.gpu, found.gpu_count, found.decode_tokens_per_s) == ("RTX 4090", 1, 128.5)
    two = [{**row, "gpu_info": "NVIDIA GeForce RTX 4090, NVIDIA GeForce RTX 4090"} for row in LLAMA_BENCH]
    assert read_measurement(two)[0].gpu_count == 2


def test_vllm_bench_takes_the_machine_from_the_options() -> None:
    document = {"median_tpot_ms": 20.0, "mean_tpot_ms": 22.0, "request_throughput": 3.0}
    found, remark = read_measurement(document, gpu="H100 SXM", gpu_count=2)
    assert (found.key, found.decode_tokens_per_s) == (("H100 SXM", 2), 50.0)
    assert remark is not None


@pytest.mark.parametrize(
    "document",
    [
        None,
        17,
        "text",
        [],
        {},
        [{"n_prompt": 512, "n_gen": 0}],
        [1, 2],
        {
            "schema": "breakeven.size/1",
            "gpu": "RTX 4090",
            "gpu_count": 1,
            "speed": {"decode_tokens_per_s": None},
        },
        {"schema": "breakeven.size/1", "gpu": None, "gpu_count": 1, "speed": {"decode_tokens_per_s": 3.0}},
        {
            "schema": "breakeven.size/1",
            "gpu": "RTX 4090",
            "gpu_count": 0,
            "speed": {"decode_tokens_per_s": 3.0},
        },
        {
            "schema": "breakeven.size/1",
            "gpu": "RTX 4090",
            "gpu_count": 1,
            "speed": {"decode_tokens_per_s": -3.0},
        },
        size_document(decode_low=110.0),
        size_document(decode_high="fast"),
        {**size_document(), "speed": [3.0]},
        {"median_tpot_ms": 0},
        {"median_tpot_ms": "fast"},
        {"median_tpot_ms": None},
        {"median_tpot_ms": 20.0},  # and no machine is named
    ],
)
def test_file_of_another_form_is_refused_in_one_line(document: Any) -> None:
    with pytest.raises(InvalidScenario) as caught:
        read_measurement(document)
    assert "\n" not in str(caught.value)


def test_unknown_device_is_refused() -> None:
    with pytest.raises(UnknownName):
        read_measurement([{**LLAMA_BENCH[1], "gpu_info": "Voodoo 2"}])


def test_measurement_of_one_machine_leaves_the_others_estimated() -> None:
    measured = Measurement(gpu="B200", gpu_count=2, decode_tokens_per_s=20.0, source="a test")
    rates = [rate(), rate("lambda", "H200 SXM", 8, "20.00")]
    found = plan(Scenario(model=CODER), rates, measurement=measured)
    speeds = {
        (option.gpu, option.gpu_count): (
            option.point.speed.decode_tokens_per_s,
            str(option.point.speed.source),
        )
        for option in found.options
        if option.kind == "rent" and option.point
    }
    assert speeds["B200", 2] == (20.0, "measured")
    assert speeds["H200 SXM", 8][1] == "estimated"


def test_what_a_measured_step_leaves_open_stays_an_estimate() -> None:
    rates = [rate("runpod", "RTX 4090", 1, "0.34")]
    stated = Measurement(gpu="RTX 4090", gpu_count=1, decode_tokens_per_s=100.0, source="a bench of its own")
    calibrated, simple = (
        next(
            option.to_document()
            for option in plan(Scenario(model=SMALL, method=method), rates, measurement=stated).options
            if option.kind == "rent"
        )
        for method in (Method.CALIBRATED, Method.SIMPLE)
    )
    assert calibrated["speed_source"] == simple["speed_source"] == "measured"
    assert calibrated["aggregate_source"] == "estimated"  # prompts stand between the tokens
    assert simple["aggregate_source"] == "measured"  # the step itself, times a batch of 1
    assert simple["aggregate_tokens_per_s"] == 100.0
