"""Formulas of speed, with round constants where a value is worked by hand."""

from dataclasses import fields, replace
from itertools import pairwise

import numpy as np
import pytest

from planner.catalogues.gpus import all_gpus
from planner.catalogues.models import all_models
from planner.catalogues.quants import all_quants, find_quant
from planner.memory import cache_layout, weights
from planner.serving.constants import constants, family_of
from planner.serving.devices import compute_flops, devices, link_for, range_factor, simple_peak_flops
from planner.serving.estimate import offload_of
from planner.serving.question import question_of
from planner.serving.ranges import QUANTITIES, Span, decode_span_of, span_of, spans
from planner.serving.reached import (
    BLOCKS,
    ENGINES,
    MOST_EFFICIENT,
    PRECISIONS,
    Conditions,
    Place,
    Reached,
    blocks_of,
    fitted,
    reached,
)
from planner.serving.shape import shape_of
from planner.serving.work import (
    attention_flops_of_prompt,
    cache_read_bytes,
    experts_read_share,
    weights_read_bytes,
    work_of,
)
from planner.sizing import size
from planner.speed import (
    Hardware,
    Offload,
    Step,
    all_reduce_s,
    decode_step,
    host_bytes_per_s,
    prompt_among_others_s,
    prompt_step,
    simple_decode_s,
    simple_prefill_tokens_per_s,
    speculative_s,
    steady_state,
)
from planner.workload import Engine, Machine, Method, Workload

LLAMA_8B = all_models()["llama-3.1-8b-instruct"]
LLAMA_70B = all_models()["llama-3.3-70b-instruct"]
QWEN_480B = all_models()["qwen3-coder-480b-a35b"]
DEEPSEEK = all_models()["deepseek-v3-0324"]

# Round constants, those of the worked examples in docs/methodology.md.
ROUND = Reached(
    efficiency=0.9,
    cache_efficiency=0.6,
    expert_efficiency=0.8,
    expert_exponent=0.9,
    compute_share=0.5,
    prompt_share=1.0,
    attention_share=0.5,
    power_weight=0.0,
    expert_rows=20.0,
    shard_columns=300.0,
    layer_s=50e-6,
    expert_layer_s=10e-6,
    latent_layer_s=30e-6,
    step_s=0.4e-3,
    sequence_s=10e-6,
    prompt_layer_s=0.4e-3,
    prompt_expert_layer_s=0.2e-3,
    prompt_latent_layer_s=0.3e-3,
    prompt_chunk_tokens=8192.0,
    unpack_passes=0.0,
    fast_link_s=5e-6,
    slow_link_s=20e-6,
    link_efficiency=0.8,
    hop_s=0.3e-3,
    host_layer_s=0.4e-3,
    prompt_host_efficiency=0.8,
    pipeline_share=0.7,
    first_token_s=0.03,
    waiting_steps=1.0,
    queue_share=0.1,
    run_share=1.0,
)
SMALL_CHUNKS = replace(ROUND, prompt_chunk_tokens=512.0)


def hardware(name, engine, count=1, precision="bf16"):
    columns = devices([all_gpus()[name]], engine)
    link, kind = link_for(columns, float(count))
    is_split = engine is Engine.LLAMA_CPP
    return Hardware(
        sharing=1.0 if is_split else float(count),
        stages=float(count) if is_split else 1.0,
        expert_ranks=1.0,
        attention_groups=1.0,
        micro_batches=1.0,
        bandwidth_bytes_per_s=float(columns.bandwidth_bytes_per_s[0]),
        peak_flops=float(columns.peak_flops(precision)[0]),
        flops_per_watt=float(columns.flops_per_watt[0]),
        link_bytes_per_s=float(link[0]),
        link_kind=float(kind[0]),
        group_link_bytes_per_s=float(link[0]),
        group_link_kind=float(kind[0]),
        host_bytes_per_s=54e9,
        host_stream_bytes_per_s=54e9,
    )


def task(model, quant="Q4_K_M", *, context=8192.0, given=4096.0, written=512.0, held=0.0, ranks=1.0):
    return work_of(
        shape_of(model),
        weights(model, find_quant(quant)),
        cache_layout(Engine.VLLM, Method.CALIBRATED),
        context_tokens=context,
        input_tokens=given,
        output_tokens=written,
        cached_tokens=held,
        bytes_per_element=2.0,
        ranks=ranks,
    )


def decode(model, quant, machine, known=ROUND, batch=1.0, context=8192.0, offload=0.0):
    work = task(model, quant, context=context, ranks=machine.sharing)
    both = Offload(dense=offload, experts=offload)
    return decode_step(work, machine, known, batch=batch, offload=both)


def prompt(model, quant, machine, known=ROUND, offload=0.0, **lengths):
    both = Offload(dense=offload, experts=offload)
    return prompt_step(task(model, quant, **lengths), machine, known, offload=both)


def test_decode_step_of_llama_3_1_8b_on_an_rtx_4090_as_worked_in_the_methodology():
    step = decode(LLAMA_8B, "Q4_K_M", hardware("RTX 4090", Engine.VLLM))
    # 4.5497 GB / (1,008 GB/s x 0.9) + 1.0737 GB / (1,008 GB/s x 0.6)
    assert step.memory_s * 1e3 == pytest.approx(5.0150 + 1.7754, abs=2e-4)
    # (2 x 7.50466e9 + 524,288 x 8,192) / (165.2e12 x 0.5)
    assert step.compute_s * 1e3 == pytest.approx(0.2337, abs=5e-5)
    # 32 layers x 50 us + 0.4 ms + 10 us
    assert step.overhead_s * 1e3 == pytest.approx(2.01)
    assert step.interconnect_s == step.host_s == 0
    assert 1 / step.total_s == pytest.approx(113.58, abs=0.01)


def test_prompt_of_llama_3_1_8b_on_an_rtx_4090_as_worked_in_the_methodology():
    step = prompt(LLAMA_8B, "Q4_K_M", hardware("RTX 4090", Engine.VLLM), SMALL_CHUNKS)
    # (2 x 6.97932e9 x 4,096 + 524,288 x 4,096^2 / 2 / 0.5) / (165.2e12 x 0.5)
    assert step.compute_s * 1e3 == pytest.approx(798.67, abs=0.01)
    # 8 chunks of 512 tokens, each reading 4.5497 GB and launching 32 layers
    assert step.memory_s * 1e3 == pytest.approx(8 * 5.0150, abs=0.01)
    assert step.overhead_s * 1e3 == pytest.approx(8 * 12.8)
    assert 4096 / step.total_s == pytest.approx(4540.6, abs=0.1)


def test_all_reduce_of_llama_3_3_70b_on_two_h100_as_worked_in_the_methodology():
    # 2 x 80 x [5 us x log2 2 + 2 x 1/2 x 32 x 8,192 x 2 B / (450 GB/s x 0.8)]
    seconds = all_reduce_s(task(LLAMA_70B), hardware("H100 SXM", Engine.VLLM, 2), ROUND, 32.0, 1.0)
    assert seconds * 1e3 == pytest.approx(1.0330, abs=1e-4)


def test_one_gpu_has_nothing_to_exchange():
    assert all_reduce_s(task(LLAMA_70B), hardware("H100 SXM", Engine.VLLM), ROUND, 32.0, 1.0) == 0


def test_links_differ_in_latency():
    by_kind = [
        all_reduce_s(
            task(LLAMA_70B), replace(hardware("H100 SXM", Engine.VLLM, 2), link_kind=kind), ROUND, 0.0, 1.0
        )
        for kind in (0.0, 1.0, 2.0)
    ]
    # 160 exchanges of 5, 20 and 40 us
    assert [seconds * 1e3 for seconds in by_kind] == pytest.approx([0.8, 3.2, 6.4])


@pytest.mark.parametrize(("tokens", "share"), [(1, 8 / 160), (4, 0.1636), (32, 0.6867), (100000, 1.0)])
def test_share_of_experts_that_a_step_reads(tokens, share):
    # 1 - (1 - 8/160)^(tokens^0.9)
    assert experts_read_share(8 / 160, float(tokens), 0.9) == pytest.approx(share, abs=1e-4)


def test_dense_models_read_all_weights():
    assert experts_read_share(1.0, 1.0, 0.9) == 1.0
    shape, held = shape_of(LLAMA_8B), weights(LLAMA_8B, find_quant("Q4_K_M"))
    assert weights_read_bytes(shape, held, 7.0) == held.dense_read_bytes + held.routed_bytes


def test_few_tokens_and_narrow_slices_leave_an_expert_badly_filled():
    # Qwen3 Coder: 8 of 160 experts of 2,560 columns. One token: one row; 20 rows fill half, so 21 times the
    # work; on 8 ranks 320 columns each, of which 300 more would fill as well: 1 + 300 / 320.
    one = decode(QWEN_480B, "FP8", hardware("H200 SXM", Engine.VLLM, 1, "fp8"))
    work = task(QWEN_480B, "FP8")
    expected = 2 * (work.dense_params + work.expert_params * 21 * (1 + 300 / 2560)) + work.attention_flops
    assert one.compute_s == pytest.approx(expected / (1979e12 * 0.5), rel=1e-3)
    eight = hardware("H200 SXM", Engine.VLLM, 8, "fp8")
    split = decode(QWEN_480B, "FP8", eight).compute_s
    whole = decode(QWEN_480B, "FP8", replace(eight, expert_ranks=8.0)).compute_s
    ratio = (work.dense_params + work.expert_params * 21 * (1 + 300 / 320)) / (
        work.dense_params + work.expert_params * 21 * (1 + 300 / 2560)
    )
    assert split / whole == pytest.approx(ratio, rel=0.02)


def test_layers_split_over_gpus_make_no_stream_faster():
    one, four = (
        decode(LLAMA_70B, "Q4_K_M", hardware("RTX 4090", Engine.LLAMA_CPP, count)) for count in (1, 4)
    )
    assert four.memory_s == one.memory_s
    assert (four.total_s - one.total_s) * 1e3 == pytest.approx(3 * 0.3)


def test_layers_split_over_gpus_work_on_several_chunks_of_a_prompt():
    one, four = (
        prompt(LLAMA_70B, "Q4_K_M", hardware("RTX 4090", Engine.LLAMA_CPP, count), SMALL_CHUNKS)
        for count in (1, 4)
    )
    # four chunks in flight on four GPUs: at most 4 x 4 / 7 times as fast, of which 0.7 is gained
    assert one.compute_s / four.compute_s == pytest.approx(1 + (16 / 7 - 1) * 0.7)
    short = [
        prompt(LLAMA_70B, "Q4_K_M", hardware("RTX 4090", Engine.LLAMA_CPP, count), SMALL_CHUNKS, given=512.0)
        for count in (1, 4)
    ]
    assert short[0].compute_s == short[1].compute_s


def test_tensor_parallel_gpus_read_together():
    one, four = (
        decode(LLAMA_70B, "FP8", hardware("H100 SXM", Engine.VLLM, count, "fp8")) for count in (1, 4)
    )
    assert four.memory_s == pytest.approx(one.memory_s / 4)
    assert four.interconnect_s > 0
    assert one.total_s / 4 < four.total_s < one.total_s


def test_weights_in_host_memory_cross_the_link():
    machine = hardware("H100 SXM", Engine.LLAMA_CPP)
    step = decode(QWEN_480B, "Q4_K_M", machine, offload=0.75)
    # 0.75 x (6.7652 GB + 280.7633 GB x 8/160) / 54 GB/s, and 0.75 of 62 layers at 0.4 ms
    bytes_ms = 0.75 * (6.7652 + 280.7633 / 20) / 54 * 1e3
    assert step.host_s * 1e3 == pytest.approx(bytes_ms + 0.75 * 62 * 0.4, abs=0.01)
    twice = decode(QWEN_480B, "Q4_K_M", replace(machine, host_bytes_per_s=108e9), offload=0.75)
    assert (step.host_s - twice.host_s) * 1e3 == pytest.approx(bytes_ms / 2, abs=0.01)


def test_llama_cpp_puts_experts_into_host_memory_first():
    def offloaded(model, quant, share, engine=Engine.LLAMA_CPP):
        work = Workload(model=model, quant=find_quant(quant), offload_fraction=share, engine=engine)
        held = weights(model, work.quant)
        question = question_of(work, held, [Machine(gpu=all_gpus()["RTX 4090"])], batch=np.ones(1))
        return offload_of(question), held

    half, held = offloaded(QWEN_480B, "Q4_K_M", 0.5)
    assert half.dense == 0
    assert half.experts == pytest.approx(0.5 * held.total_bytes / held.routed_bytes)
    whole, _ = offloaded(QWEN_480B, "Q4_K_M", 1.0)
    assert whole.dense == pytest.approx(1.0)
    assert whole.experts == pytest.approx(1.0)
    dense, _ = offloaded(LLAMA_70B, "Q4_K_M", 0.5)
    assert dense.dense == pytest.approx(0.5)
    server, _ = offloaded(QWEN_480B, "FP8", 0.5, Engine.VLLM)
    assert (server.dense, server.experts) == (0.5, 0.5)


def test_prompts_stream_offloaded_weights_however_fast_the_host_memory_is():
    slow, fast, coherent = (
        size(
            Workload(
                model=QWEN_480B, quant=find_quant("Q4_K_M"), offload_fraction=0.8, host_gb_per_s=bandwidth
            ),
            Machine(gpu=all_gpus()[name]),
        ).speed
        for name, bandwidth in (("H100 SXM", 64.0), ("H100 SXM", 400.0), ("GH200 96GB", 400.0))
    )
    assert fast.prefill_tokens_per_s == slow.prefill_tokens_per_s
    assert fast.decode_tokens_per_s > 2 * slow.decode_tokens_per_s
    assert coherent.prefill_tokens_per_s > 3 * slow.prefill_tokens_per_s


@pytest.mark.parametrize("engine", [Engine.LLAMA_CPP, Engine.VLLM])
@pytest.mark.parametrize("model", [LLAMA_8B, QWEN_480B, DEEPSEEK])
def test_more_sequences_or_context_never_make_a_step_shorter(engine, model):
    machine = hardware("H200 SXM", engine, 8)
    by_batch = [decode(model, "FP8", machine, batch=float(n)).total_s for n in (1, 2, 8, 64, 512)]
    by_context = [decode(model, "FP8", machine, context=float(n)).total_s for n in (1, 4096, 131072)]
    assert by_batch == sorted(by_batch)
    assert by_context == sorted(by_context)


@pytest.mark.parametrize("model", [LLAMA_8B, QWEN_480B, DEEPSEEK])
def test_longer_prompts_take_longer_and_cached_ones_less(model):
    machine = hardware("H200 SXM", Engine.VLLM, 8)
    seconds = [
        prompt(model, "FP8", machine, given=float(n)).total_s for n in (1, 128, 4096, 8192, 8193, 65536)
    ]
    assert seconds == sorted(seconds)
    cached = [prompt(model, "FP8", machine, held=float(n)).total_s for n in (4096, 4000, 2048, 0)]
    assert cached == sorted(cached)


def test_of_a_prompt_found_in_a_cache_only_the_rest_is_computed():
    # 4,096 tokens of which 3,072 are held: 1,024 tokens, each looking back at all before it
    work = task(LLAMA_8B, held=3072.0)
    assert work.prompt_tokens == 1024
    assert work.prompt_attention_flops == 524288 * (4096**2 - 3072**2) / 2
    assert task(LLAMA_8B, held=5000.0).prompt_tokens == 1  # the last one gives the first answer


def test_sparse_attention_reads_its_budget_and_all_index_keys():
    shape = shape_of(all_models()["deepseek-v3.2"])
    # 61 layers x (576 of at most 2,048 tokens + 128 of all tokens) x 2 B
    assert cache_read_bytes(shape, 65536.0, 2.0, 1.0) == 61 * 2 * (576 * 2048 + 128 * 65536)


def test_attention_over_a_prompt_is_half_a_square_and_a_band_for_windows():
    llama = shape_of(LLAMA_8B)
    assert attention_flops_of_prompt(llama, 4096.0) == 524288 * 4096**2 / 2
    gemma = shape_of(all_models()["gemma-3-27b-it"])
    full, windowed = (
        next(work for work in gemma.attention if np.isinf(work.window_tokens) == is_full)
        for is_full in (True, False)
    )
    expected = full.flops_per_pair * 8192**2 / 2 + windowed.flops_per_pair * 1024 * (8192 - 512)
    assert attention_flops_of_prompt(gemma, 8192.0) == expected


def test_alone_a_request_is_slowed_by_nothing():
    steady = steady_state(
        decode_s=0.01, prompt_s=0.5, other_prompt_s=0.4, batch=1.0, output_tokens=512.0, reached=ROUND
    )
    assert steady.tpot_s == 0.01
    assert steady.ttft_s == pytest.approx(0.03 + 0.5)
    assert steady.aggregate_tokens_per_s == pytest.approx(512 / (0.53 + 511 * 0.01))


def test_steady_state_as_worked_in_the_methodology():
    # 32 requests: 31 prompts of 0.1 s stall each, 10 % of 3.1 s before the first token, the rest in 1,023
    # gaps; 31/32 of a step before the prompt is taken up
    steady = steady_state(
        decode_s=0.02, prompt_s=0.12, other_prompt_s=0.1, batch=32.0, output_tokens=1024.0, reached=ROUND
    )
    assert steady.ttft_s == pytest.approx(0.03 + 0.12 + 0.019375 + 0.31)
    assert steady.tpot_s == pytest.approx(0.02 + 2.79 / 1023)
    assert steady.aggregate_tokens_per_s == pytest.approx(32 * 1024 / (0.479375 + 2.79 + 20.46))
    assert steady.aggregate_tokens_per_s == pytest.approx(1380.9, abs=0.1)


def test_requests_that_are_not_taken_up_wait_for_the_others():
    known = {"decode_s": 0.02, "prompt_s": 0.12, "other_prompt_s": 0.1, "batch": 32.0}
    served = steady_state(**known, output_tokens=1024.0, reached=ROUND)
    for asking in (8.0, 32.0):
        assert steady_state(**known, output_tokens=1024.0, reached=ROUND, asking=asking) == served
    # half as many again stand outside for half the time of a request, 0.479 + 1,023 x 0.02273 s
    crowded = steady_state(**known, output_tokens=1024.0, reached=ROUND, asking=48.0)
    assert crowded.ttft_s == pytest.approx(served.ttft_s + (0.479375 + 2.79 + 20.46) / 2)
    assert crowded.aggregate_tokens_per_s == served.aggregate_tokens_per_s


def test_prompts_alone_limit_how_many_requests_are_served():
    # Short answers: never more requests than prompts can be read.
    for output in (1.0, 2.0, 16.0):
        steady = steady_state(
            decode_s=0.02, prompt_s=0.5, other_prompt_s=0.5, batch=64.0, output_tokens=output, reached=ROUND
        )
        assert steady.aggregate_tokens_per_s / output <= 1 / 0.5


def test_prompts_in_company_share_chunks_and_leave_the_weights_to_the_steps():
    machine, known = hardware("H100 SXM", Engine.VLLM), ROUND
    work = task(LLAMA_8B, "BF16", given=1024.0)
    none = Offload()
    alone = prompt_step(work, machine, known, offload=none)
    two = prompt_among_others_s(work, machine, known, batch=2.0, offload=none)
    many = prompt_among_others_s(work, machine, known, batch=64.0, offload=none)
    # eight prompts of 1,024 tokens fill a chunk: each bears an eighth of its 32 x 0.4 ms
    assert two == pytest.approx(alone.compute_s + 12.8e-3)
    assert many == pytest.approx(alone.compute_s + 1.6e-3)
    staged = prompt_among_others_s(work, replace(machine, micro_batches=4.0), known, batch=64.0, offload=none)
    assert staged == pytest.approx(many / 4)


def grouped(groups, tokens):
    """DeepSeek V3 on eight H200 in so many groups with attention of their own."""
    machine = replace(hardware("H200 SXM", Engine.VLLM, 8), attention_groups=float(groups))
    work = task(DEEPSEEK, "FP8")
    return all_reduce_s(work, machine, ROUND, tokens, 1.0)


def test_groups_with_attention_of_their_own_send_tokens_to_their_experts():
    vectors = 64 * 7168 * 2
    sent = 2 * 5e-6 + 2 * 8 / 8 * vectors / 360e9
    assert grouped(8, 64.0) == pytest.approx(61 * sent)
    assert grouped(8, 64.0) == pytest.approx(0.9209e-3, abs=1e-7)
    together = 2 * 61 * (15e-6 + 2 * 7 / 8 * vectors / 360e9)
    assert grouped(1, 64.0) == pytest.approx(together)
    assert together == pytest.approx(2.3741e-3, abs=1e-7)
    # two groups of four: each reduces half of the tokens; with few tokens a second all-reduce would take more
    attention = 2 * 5e-6 + 2 * 3 / 4 * vectors / 2 / 360e9
    reduced = 15e-6 + 2 * 7 / 8 * vectors / 360e9
    assert grouped(2, 64.0) == pytest.approx(61 * (attention + min(sent, reduced)))


def test_groups_read_attention_once_each():
    work = task(DEEPSEEK, "FP8")
    machine = hardware("H200 SXM", Engine.VLLM, 8, "fp8")
    none = Offload()
    alone, four = (
        decode_step(work, replace(machine, attention_groups=groups), ROUND, batch=1.0, offload=none).memory_s
        for groups in (1.0, 4.0)
    )
    more = 3 * work.mixer_read_bytes / (8 * 4800e9 * 0.9)
    assert four - alone == pytest.approx(more)
    # 61 x (q 7168 x 1536 + 1536 x 24576, kv 7168 x 576 + 512 x 32768, o 16384 x 7168), norms beside
    matrices = 61 * (7168 * 1536 + 1536 * 24576 + 7168 * 576 + 512 * 32768 + 16384 * 7168)
    assert shape_of(DEEPSEEK).mixer_params == pytest.approx(matrices, rel=1e-3)


def test_a_draft_saves_steps_and_costs_one_layer_a_token():
    plain, verifying = (
        Step(memory_s=time, compute_s=0.0, interconnect_s=0.0, host_s=0.0, overhead_s=0.0)
        for time in (0.020, 0.024)
    )
    assert speculative_s(plain, verifying, 61.0, 2.0, 0.7) == pytest.approx(0.011258, abs=1e-6)
    # nothing is ever kept: one token a step, and its drafts for nothing
    assert speculative_s(plain, verifying, 61.0, 2.0, 0.0) == pytest.approx(0.024 + 0.04 / 61)


def test_verified_tokens_share_the_cache_and_add_work():
    work, machine = task(LLAMA_8B, "BF16"), hardware("H100 SXM", Engine.VLLM)
    one, three = (
        decode_step(work, machine, ROUND, batch=4.0, offload=Offload(), tokens_each=each)
        for each in (1.0, 3.0)
    )
    assert three.memory_s == pytest.approx(one.memory_s)
    assert three.compute_s == pytest.approx(3 * one.compute_s)
    assert three.overhead_s == pytest.approx(one.overhead_s)


def test_arrays_give_what_numbers_give():
    gpus = [all_gpus()[name] for name in ("RTX 4090", "H100 SXM", "MacBook Pro M4 Max 128GB")]
    machines = [hardware(gpu.name, Engine.LLAMA_CPP, 2) for gpu in gpus]
    together = Hardware(
        **{
            field.name: np.array([getattr(machine, field.name) for machine in machines])
            for field in fields(Hardware)
        }
    )
    step = decode(QWEN_480B, "Q4_K_M", together, batch=7.0, offload=0.25)
    singles = [decode(QWEN_480B, "Q4_K_M", machine, batch=7.0, offload=0.25).total_s for machine in machines]
    assert step.total_s.tolist() == pytest.approx(singles)


# What is reached --------------------------------------------------------------------


def at(gpu, engine, blocks="k", precision="bf16", conditions=None):
    return Place(
        family=constants().families.index(family_of(all_gpus()[gpu])),
        engine=ENGINES.index(engine),
        blocks=BLOCKS.index(blocks),
        precision=PRECISIONS.index(precision),
        conditions=conditions or Conditions(),
    )


def test_efficiencies_are_products_of_engine_family_and_blocks():
    known = {
        **fitted(),
        "llama.efficiency": 0.8,
        "family.geforce.llama_efficiency": 1.1,
        "llama.blocks_k": 0.9,
    }
    found = reached(Engine.LLAMA_CPP, at("RTX 4090", Engine.LLAMA_CPP), known)
    assert found.efficiency == pytest.approx(0.8 * 1.1 * 0.9)
    known["family.geforce.llama_efficiency"] = 1.4
    capped = reached(Engine.LLAMA_CPP, at("RTX 4090", Engine.LLAMA_CPP, "plain"), known)
    assert capped.efficiency == MOST_EFFICIENT


def test_conditions_of_the_past_change_nothing_for_today():
    old = Conditions(engine_of_2024=1.0)
    now, then = (reached(Engine.VLLM, at("H100 SXM", Engine.VLLM, conditions=when)) for when in (None, old))
    assert then.layer_s > now.layer_s
    assert then.step_s > now.step_s
    assert now == reached(Engine.VLLM, at("H100 SXM", Engine.VLLM, conditions=Conditions()))


@pytest.mark.parametrize(
    ("quant", "blocks"),
    [
        ("BF16", "plain"),
        ("Q8_0", "q8"),
        ("FP8", "q8"),
        ("Q4_0", "q4"),
        ("MXFP4", "q4"),
        ("Q4_K_M", "k"),
        ("UD-Q2_K_XL", "k"),
        ("IQ3_XXS", "lattice"),
        ("IQ4_NL", "lattice"),
    ],
)
def test_kinds_of_blocks(quant, blocks):
    assert BLOCKS[blocks_of(find_quant(quant))] == blocks


def test_every_format_and_device_has_a_place():
    for engine in (Engine.VLLM, Engine.LLAMA_CPP):
        for gpu in all_gpus():
            for quant in all_quants().values():
                found = reached(engine, at(gpu, engine, BLOCKS[blocks_of(quant)], quant.compute_dtype))
                assert 0 < found.efficiency <= MOST_EFFICIENT
                assert 0 < found.compute_share <= 1.2
                assert found.layer_s > 0


def test_cards_whose_peak_outruns_their_power_clock_down_in_prompts():
    # RTX 6000 Ada and RTX 4090 are one chip; 364 against 330 TFLOPS in 16 bit, at 300 against 450 W
    columns = devices([all_gpus()[name] for name in ("RTX 6000 Ada", "RTX 4090")], Engine.LLAMA_CPP)
    assert columns.flops_per_watt.tolist() == pytest.approx([364.2 / 300, 330.3 / 450], rel=0.01)
    assert devices([all_gpus()["RTX 4090"]], Engine.VLLM).flops_per_watt.tolist() == [0.0]


# Ranges -----------------------------------------------------------------------------


def test_ranges_hold_the_estimate():
    assert set(spans()) == {(kind, quantity) for kind in ("server", "llama") for quantity in QUANTITIES}
    for span in spans().values():
        assert 0 < span.low < 1 < span.high


def test_thin_evidence_widens_a_span_at_both_ends():
    assert Span(low=0.5, high=2.0).widened(2.0) == Span(low=0.25, high=4.0)
    good, thin = (
        span_of(all_gpus()[name], Engine.LLAMA_CPP, "decode") for name in ("RTX 4090", "Arc B580 12GB")
    )
    assert thin.low < good.low
    assert thin.high > good.high


@pytest.mark.parametrize(
    ("kind", "time", "speed"),
    [("llama", "tpot", "decode"), ("llama", "ttft", "prefill"), ("server", "ttft", "prefill")],
)
def test_a_range_of_times_that_stands_for_speeds_is_their_reciprocal(kind, time, speed):
    times, speeds = spans()[kind, time], spans()[kind, speed]
    assert times.low == pytest.approx(1 / speeds.high, abs=1e-4)
    assert times.high == pytest.approx(1 / speeds.low, abs=3e-4)


def test_the_speed_of_many_streams_is_the_reciprocal_of_their_time():
    gpu = all_gpus()["H100 SXM"]
    times, speeds = span_of(gpu, Engine.VLLM, "tpot"), decode_span_of(gpu, Engine.VLLM, 8)
    assert speeds.low == pytest.approx(1 / times.high)
    assert speeds.high == pytest.approx(1 / times.low)
    assert decode_span_of(gpu, Engine.VLLM, 1) == span_of(gpu, Engine.VLLM, "decode")


# The sizing page's arithmetic -------------------------------------------------------


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


def test_host_memory_is_reached_over_a_slot_or_by_the_cpu_of_a_desktop_unless_said_otherwise():
    for engine, method, expected in (
        (Engine.LLAMA_CPP, Method.SIMPLE, 54e9),
        (Engine.VLLM, Method.CALIBRATED, 54e9),
        (Engine.LLAMA_CPP, Method.CALIBRATED, 80e9),
    ):
        assert host_bytes_per_s(None, engine, method) == expected
        assert host_bytes_per_s(250.0, engine, method) == 250e9


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
    eight, kinds = link_for(columns, 8.0)
    sixteen, network = link_for(columns, 16.0)
    # NVLink 900 GB/s both ways; a bridge joins two; PCIe x16: 4.0 31.5, 5.0 63.0; a network port 25
    assert pair.tolist() == pytest.approx([450e9, 300e9, 31.52e9, 31.52e9])
    assert eight.tolist() == pytest.approx([450e9, 63.04e9, 31.52e9, 31.52e9])
    assert kinds.tolist() == [0, 1, 1, 1]
    assert sixteen.tolist() == pytest.approx([25e9] * 4)
    assert network.tolist() == [2] * 4


@pytest.mark.parametrize(
    ("name", "family"),
    [
        ("H100 SXM", "NVIDIA data-centre, Hopper"),
        ("B200", "NVIDIA data-centre, Blackwell"),
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
    keys = [family.key for family in constants().families]
    assert len(keys) == len(set(keys))
    for family in constants().families:
        assert {family.server_grade, family.llama_cpp_grade} <= {"A", "B", "C"}
