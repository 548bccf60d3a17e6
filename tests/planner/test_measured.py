from typing import Any

import pytest

from planner.compare import plan
from planner.errors import InvalidScenario, UnknownName
from planner.gpus import find_gpu
from planner.measured import Measurement, read_measurement
from planner.models import find_model
from planner.quants import find_quant
from planner.scenario import Scenario
from planner.sizing import size
from planner.workload import Machine
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
    assert remark is None


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
