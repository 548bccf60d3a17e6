from dataclasses import fields, replace
from itertools import pairwise

import numpy as np
import pytest

from planner.constants import constants, family_of
from planner.devices import compute_flops, devices, link_for, range_factor, simple_peak_flops
from planner.gpus import all_gpus
from planner.memory import weights
from planner.models import all_models
from planner.quants import find_quant
from planner.shape import shape_of
from planner.sizing import size
from planner.speed import (
    Hardware,
    all_reduce_s,
    attention_flops_of_prompt,
    attention_flops_per_token,
    cache_read_bytes,
    decode_step,
    experts_read_share,
    host_bytes_per_s,
    prefill_step,
    simple_decode_s,
    simple_prefill_tokens_per_s,
    steady_state,
)
from planner.workload import Engine, Machine, Workload

LLAMA_8B = all_models()["llama-3.1-8b-instruct"]
LLAMA_70B = all_models()["llama-3.3-70b-instruct"]
QWEN_480B = all_models()["qwen3-coder-480b-a35b"]
LLAMA_CPP = constants().engine(Engine.LLAMA_CPP)
SERVING = constants().engine(Engine.VLLM)


def hardware(name, engine, count=1, precision="bf16"):
    gpu = all_gpus()[name]
    columns = devices([gpu], engine)
    link, latency = link_for(columns, float(count))
    return Hardware(
        gpu_count=float(count),
        sharing=1.0 if engine is Engine.LLAMA_CPP else float(count),
        bandwidth_bytes_per_s=float(columns.bandwidth_bytes_per_s[0]),
        peak_flops=float(columns.peak_flops(precision)[0]),
        efficiency=float(columns.efficiency[0]),
        cache_efficiency=float(columns.cache_efficiency[0]),
        layer_overhead_s=float(columns.layer_overhead_s[0]),
        compute_share=float(columns.compute_share[0]),
        link_bytes_per_s=float(link[0]),
        link_latency_s=float(latency[0]),
        host_bytes_per_s=54e9,
        host_stream_bytes_per_s=54e9,
    )


def decode(model, quant, machine, engine, batch=1.0, context=8192.0, offload=0.0):
    shape = shape_of(model)
    return decode_step(
        shape,
        weights(model, find_quant(quant)),
        machine,
        engine,
        batch=batch,
        cache_bytes=cache_read_bytes(shape, context, batch, 2.0, machine.sharing),
        attention_flops=attention_flops_per_token(shape, context) * batch,
        offload_fraction=offload,
    )


def test_decode_step_of_llama_3_1_8b_on_an_rtx_4090_as_worked_in_the_methodology():
    step = decode(LLAMA_8B, "Q4_K_M", hardware("RTX 4090", Engine.LLAMA_CPP), LLAMA_CPP)
    # 4.5497 GB / (1,008 GB/s x 0.91) + 1.0737 GB / (1,008 GB/s x 0.80)
    assert step.memory_s * 1e3 == pytest.approx(4.9599 + 1.3315, abs=2e-4)
    # (2 x 7.50466e9 + 524,288 x 8,192) / (165.2e12 x 0.72)
    assert step.compute_s * 1e3 == pytest.approx(0.1623, abs=5e-5)
    # 32 layers x 100 us + 7 us
    assert step.overhead_s * 1e3 == pytest.approx(3.207)
    assert step.interconnect_s == step.host_s == 0
    assert 1 / step.total_s == pytest.approx(105.26, abs=0.01)


def test_prompt_of_llama_3_1_8b_on_an_rtx_4090_as_worked_in_the_methodology():
    step = prefill_step(
        shape_of(LLAMA_8B),
        weights(LLAMA_8B, find_quant("Q4_K_M")),
        hardware("RTX 4090", Engine.LLAMA_CPP),
        LLAMA_CPP,
        tokens=4096.0,
        offload_fraction=0.0,
    )
    # (2 x 6.97932e9 x 4,096 + 524,288 x 4,096^2 / 2) / (165.2e12 x 0.72)
    assert step.compute_s * 1e3 == pytest.approx(517.66, abs=0.01)
    # 8 chunks of 512 tokens, each reading 4.5497 GB and launching 32 layers
    assert step.memory_s * 1e3 == pytest.approx(8 * 4.9599, abs=0.01)
    assert step.overhead_s * 1e3 == pytest.approx(8 * 3.2)
    assert 4096 / step.total_s == pytest.approx(7518.6, abs=0.1)


def test_all_reduce_of_llama_3_3_70b_on_two_h100_as_worked_in_the_methodology():
    # 2 x 80 x [10 us x log2 2 + 2 x 1/2 x 32 x 8,192 x 2 B / (450 GB/s x 0.6)]
    seconds = all_reduce_s(shape_of(LLAMA_70B), 32.0, 1.0, hardware("H100 SXM", Engine.VLLM, 2))
    assert seconds * 1e3 == pytest.approx(1.9107, abs=1e-4)


def test_one_gpu_has_nothing_to_exchange():
    assert all_reduce_s(shape_of(LLAMA_70B), 32.0, 1.0, hardware("H100 SXM", Engine.VLLM)) == 0


@pytest.mark.parametrize(("tokens", "share"), [(1, 8 / 160), (4, 0.1535), (32, 0.6232), (100000, 1.0)])
def test_share_of_experts_that_a_step_reads(tokens, share):
    # 1 - (1 - 8/160)^(tokens^0.85)
    assert experts_read_share(8 / 160, float(tokens)) == pytest.approx(share, abs=1e-4)


def test_dense_models_read_all_weights():
    assert experts_read_share(1.0, 1.0) == 1.0


def test_layers_split_over_gpus_make_no_stream_faster():
    one, four = (
        decode(LLAMA_70B, "Q4_K_M", hardware("RTX 4090", Engine.LLAMA_CPP, count), LLAMA_CPP)
        for count in (1, 4)
    )
    assert four.memory_s == one.memory_s
    assert (four.total_s - one.total_s) * 1e3 == pytest.approx(3 * 0.3)


def test_tensor_parallel_gpus_read_together():
    one, four = (
        decode(LLAMA_70B, "FP8", hardware("H100 SXM", Engine.VLLM, count, "fp8"), SERVING) for count in (1, 4)
    )
    assert four.memory_s == pytest.approx(one.memory_s / 4)
    assert four.interconnect_s > 0
    assert one.total_s / 4 < four.total_s < one.total_s


def test_weights_in_host_memory_cross_the_link():
    machine = hardware("H100 SXM", Engine.LLAMA_CPP)
    step = decode(QWEN_480B, "Q4_K_M", machine, LLAMA_CPP, offload=0.75)
    # 0.75 x (6.7652 GB + 280.7633 GB x 8/160) / 54 GB/s
    assert step.host_s * 1e3 == pytest.approx(0.75 * (6.7652 + 280.7633 / 20) / 54 * 1e3, abs=0.01)
    twice = decode(QWEN_480B, "Q4_K_M", replace(machine, host_bytes_per_s=108e9), LLAMA_CPP, offload=0.75)
    assert twice.host_s == pytest.approx(step.host_s / 2)


def test_prompts_stream_offloaded_weights_however_fast_the_host_memory_is():
    slow, fast, coherent = (
        size(
            Workload(
                model=QWEN_480B, quant=find_quant("Q4_K_M"), offload_fraction=0.8, host_gb_per_s=bandwidth
            ),
            Machine(gpu=all_gpus()[name]),
        ).speed
        for name, bandwidth in (("H100 SXM", 54.0), ("H100 SXM", 400.0), ("GH200 96GB", 400.0))
    )
    assert fast.prefill_tokens_per_s == slow.prefill_tokens_per_s
    assert fast.decode_tokens_per_s > 3 * slow.decode_tokens_per_s
    assert coherent.prefill_tokens_per_s > 3 * slow.prefill_tokens_per_s


@pytest.mark.parametrize("engine", [LLAMA_CPP, SERVING])
@pytest.mark.parametrize("model", [LLAMA_8B, QWEN_480B, all_models()["deepseek-v3-0324"]])
def test_more_sequences_or_context_never_make_a_step_shorter(engine, model):
    machine = hardware("H200 SXM", Engine.VLLM, 8)
    by_batch = [decode(model, "FP8", machine, engine, batch=float(n)).total_s for n in (1, 2, 8, 64, 512)]
    by_context = [decode(model, "FP8", machine, engine, context=float(n)).total_s for n in (1, 4096, 131072)]
    assert by_batch == sorted(by_batch)
    assert by_context == sorted(by_context)


def test_sparse_attention_reads_its_budget_and_all_index_keys():
    shape = shape_of(all_models()["deepseek-v3.2"])
    # 61 layers x (576 of at most 2,048 tokens + 128 of all tokens) x 2 B
    assert cache_read_bytes(shape, 65536.0, 1.0, 2.0, 1.0) == 61 * 2 * (576 * 2048 + 128 * 65536)


def test_attention_over_a_prompt_is_half_a_square_and_a_band_for_windows():
    llama = shape_of(LLAMA_8B)
    assert attention_flops_of_prompt(llama, 4096.0) == 524288 * 4096**2 / 2
    gemma = shape_of(all_models()["gemma-3-27b-it"])
    full, windowed = (
        next(work for work in gemma.attention if (work.window_tokens is None) is is_full)
        for is_full in (True, False)
    )
    expected = full.flops_per_pair * 8192**2 / 2 + windowed.flops_per_pair * 1024 * (8192 - 512)
    assert attention_flops_of_prompt(gemma, 8192.0) == expected


def test_alone_a_request_is_slowed_by_nothing():
    steady = steady_state(decode_s=0.01, prompt_s=0.5, batch=1.0, output_tokens=512.0, engine=LLAMA_CPP)
    assert steady.tpot_s == 0.01
    assert steady.ttft_s == pytest.approx(0.02 + 0.5)
    assert steady.aggregate_tokens_per_s == pytest.approx(512 / (0.52 + 511 * 0.01))


def test_steady_state_as_worked_in_the_methodology():
    # 32 requests: 31 prompts of 0.1 s stall each; 8 % of 3.1 s before the first token, the rest in 1,023 gaps
    steady = steady_state(decode_s=0.02, prompt_s=0.1, batch=32.0, output_tokens=1024.0, engine=SERVING)
    assert steady.ttft_s == pytest.approx(0.08 + 0.1 + 0.08 * 3.1)
    assert steady.tpot_s == pytest.approx(0.02 + 0.92 * 3.1 / 1023)
    assert steady.aggregate_tokens_per_s == pytest.approx(32 * 1024 / (0.08 + 0.1 + 3.1 + 1023 * 0.02))
    assert steady.aggregate_tokens_per_s == pytest.approx(1380.286, abs=0.01)


def test_prompts_alone_limit_how_many_requests_are_served():
    # Short answers: never more requests than prompts can be read.
    for output in (1.0, 2.0, 16.0):
        steady = steady_state(decode_s=0.02, prompt_s=0.5, batch=64.0, output_tokens=output, engine=SERVING)
        assert steady.aggregate_tokens_per_s / output <= 1 / 0.5


def test_arrays_give_what_numbers_give():
    gpus = [all_gpus()[name] for name in ("RTX 4090", "H100 SXM", "MacBook Pro M4 Max 128GB")]
    machines = [hardware(gpu.name, Engine.LLAMA_CPP, 2) for gpu in gpus]
    together = Hardware(
        **{
            field.name: np.array([getattr(machine, field.name) for machine in machines])
            for field in fields(Hardware)
        }
    )
    step = decode(QWEN_480B, "Q4_K_M", together, LLAMA_CPP, batch=7.0, offload=0.25)
    singles = [
        decode(QWEN_480B, "Q4_K_M", machine, LLAMA_CPP, batch=7.0, offload=0.25).total_s
        for machine in machines
    ]
    assert step.total_s.tolist() == pytest.approx(singles)


@pytest.mark.parametrize(
    ("quant", "bits", "published"),
    [
        ("BF16", 16, 0.9),
        ("Q8_0", 8.5, 1.7),
        ("Q6_K", 6.56, 2.4),
        ("Q5_K_M", 5.6933, 2.8),
        ("Q4_K_M", 4.8567, 3.4),
        ("IQ4_XS", 4.2549, 4.1),
        ("Q3_K_M", 3.9143, 4.6),
        ("UD-Q2_K_XL", 2.7568, 8.2),
    ],
)
def test_simple_decode_over_two_paths_is_within_10_percent_of_the_page(quant, bits, published):
    gib = 2**30
    total = 480e9 * bits / 8
    spilled = (total + 1.9375 * gib + 0.57 * gib - 76 * gib) / total
    seconds, host = simple_decode_s(
        active_bytes=35e9 * bits / 8,
        spilled_fraction=spilled,
        bandwidth_bytes_per_s=3350e9,
        host_bytes_per_s=54e9,
        compute_s=0.0,
    )
    assert 1 / seconds == pytest.approx(published, rel=0.10)
    assert host > seconds / 2


def test_simple_prompt_is_0_52_of_the_peak():
    rate = simple_prefill_tokens_per_s(35e9, 989e12)
    assert rate == pytest.approx(7346.857, abs=0.001)
    assert round(4096 / rate * 1000) == 558


def test_the_page_labels_peaks_with_three_digits():
    columns = devices([all_gpus()[name] for name in ("H100 SXM", "RTX 4090")], Engine.VLLM)
    assert simple_peak_flops(columns).tolist() == pytest.approx([989e12, 165e12])


def test_host_memory_is_reached_at_54_gb_per_s_unless_said_otherwise():
    assert host_bytes_per_s(None) == 54e9
    assert host_bytes_per_s(250.0) == 250e9


def test_hardware_without_a_precision_computes_in_16_bit():
    a100, h100 = all_gpus()["A100 80GB SXM"], all_gpus()["H100 SXM"]
    assert compute_flops(a100, "fp8") == compute_flops(a100) == 312e12
    assert compute_flops(h100, "fp8") == pytest.approx(1978.9e12, rel=1e-3)
    assert compute_flops(h100, "fp4") == compute_flops(h100)
    assert compute_flops(all_gpus()["MacBook Pro M5 Max 128GB"]) is None


def test_links_are_bridges_switches_slots_and_networks():
    names = ["H100 SXM", "H100 NVL", "RTX 4090", "RTX 3090"]
    columns = devices([all_gpus()[name] for name in names], Engine.VLLM)
    pair, _ = link_for(columns, 2.0)
    eight, latency = link_for(columns, 8.0)
    sixteen, _ = link_for(columns, 16.0)
    # NVLink 900 GB/s both ways; a bridge joins two; PCIe x16: 4.0 31.5, 5.0 63.0; a network port 25
    assert pair.tolist() == pytest.approx([450e9, 300e9, 31.52e9, 31.52e9])
    assert eight.tolist() == pytest.approx([450e9, 63.04e9, 31.52e9, 31.52e9])
    assert latency.tolist() == pytest.approx([10e-6, 21e-6, 21e-6, 21e-6])
    assert sixteen.tolist() == pytest.approx([25e9] * 4)


@pytest.mark.parametrize(
    ("name", "family"),
    [
        ("H100 SXM", "NVIDIA data-centre, Hopper and Blackwell"),
        ("A100 80GB SXM", "NVIDIA data-centre, Ampere"),
        ("V100 16GB SXM2", "NVIDIA data-centre, Volta"),
        ("RTX 4090", "NVIDIA GeForce and TITAN"),
        ("L40S", "NVIDIA workstation and server cards (GDDR)"),
        ("DGX Spark (GB10)", "NVIDIA unified (GB10)"),
        ("P40", "NVIDIA, before tensor cores"),
        ("Mac Studio M3 Ultra 512GB", "Apple silicon"),
        ("Ryzen AI Max+ 395 128GB", "AMD unified (Strix Halo)"),
        ("Instinct MI300X", "AMD Instinct"),
        ("Radeon RX 7900 XTX", "AMD Radeon"),
        ("Arc B580 12GB", "Intel Arc"),
        ("Gaudi 3 128GB", "Intel Gaudi"),
        ("Ascend 910B 64GB", "Huawei Ascend"),
        ("TPU v5e", "other accelerators"),
    ],
)
def test_families_of_devices(name, family):
    assert family_of(all_gpus()[name]).name == family


def test_thin_evidence_widens_the_range():
    def width(name):
        return range_factor(all_gpus()[name], Engine.LLAMA_CPP)

    assert width("RTX 4090") == 1.0
    assert width("RTX 4090") < width("Radeon RX 7900 XTX") < width("Arc B580 12GB")


def test_every_constant_has_a_source_beside_it(request):
    text = (request.config.rootpath / "planner" / "data" / "speed.toml").read_text(encoding="utf-8")
    lines = text.splitlines()
    undocumented = [
        line for before, line in pairwise(lines) if line[:1].isalpha() and "=" in line and not before.strip()
    ]
    assert undocumented == []
    for family in constants().families:
        assert family.source
        assert {family.serving.grade, family.llama_cpp.grade} <= {"A", "B", "C"}
        for reached in (family.serving, family.llama_cpp):
            assert 0 < reached.efficiency <= 1
            assert 0 < reached.cache_efficiency <= 1
            assert 0 < reached.compute_share <= 1
