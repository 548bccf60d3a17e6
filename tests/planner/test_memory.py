from dataclasses import replace

import numpy as np
import pytest

from planner.catalogues.gpus import all_gpus
from planner.catalogues.models import all_models
from planner.catalogues.quants import all_quants, find_quant
from planner.errors import InvalidScenario
from planner.memory import (
    cache_layout,
    is_native,
    kept_expert_bits,
    kv_cache_bytes,
    largest_that_fits,
    llama_cpp_runtime_bytes,
    replicas_of_cache,
    serving_runtime_bytes,
    simple_usable_bytes,
    simple_weights,
    state_bytes,
    usable_bytes,
    visible_bytes,
    weights,
)
from planner.serving.shape import layers_by_kind, shape_of
from planner.units import GIB, MIB
from planner.workload import Engine, Machine, Method

KIB = 1024
SERVING = cache_layout(Engine.VLLM, Method.CALIBRATED)
LLAMA_CPP = cache_layout(Engine.LLAMA_CPP, Method.CALIBRATED)


def model(name):
    return all_models()[name]


def kv_per_token(name, bytes_per_element=2.0):
    """The growth of the cache with one more block of tokens, for each token of it."""
    shape = shape_of(model(name))
    at = [
        float(kv_cache_bytes(shape, tokens, 1, bytes_per_element, 1.0, SERVING)) for tokens in (65536, 65552)
    ]
    return (at[1] - at[0]) / 16


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("llama-3.1-8b-instruct", 128 * KIB),  # 2 x 32 layers x 8 heads x 128 x 2 B
        ("deepseek-v3-0324", 61 * 576 * 2),  # one latent of 512 + 64, 68.6 KiB
        ("qwen3.5-397b-a17b", 30 * KIB),  # 15 full layers of 60: 2 x 2 heads x 256 x 2 B
        ("qwen3-coder-480b-a35b", 2 * 62 * 8 * 128 * 2),
    ],
)
def test_cache_of_one_token_is_the_known_figure(name, expected):
    assert kv_per_token(name) == pytest.approx(expected, rel=1e-12)


def test_latent_cache_of_deepseek_v3_is_68_6_kib_a_token():
    assert kv_per_token("deepseek-v3-0324") / KIB == pytest.approx(68.6, abs=0.05)


def test_lfm3_cache_at_128k_is_1_6_gb():
    shape = shape_of(model("lfm3-1.7b"))
    cache = kv_cache_bytes(shape, 131072, 1, 2.0, 1.0, LLAMA_CPP)
    assert cache / 1e9 == pytest.approx(1.6, abs=0.05)


def test_state_of_qwen3_6_27b_is_149_6_mib_a_sequence():
    # 48 layers x (48 heads x 128 x 128 + 3 columns x (2 x 16 x 128 + 48 x 128)) x 4 B; the log says 149.6,
    # and 598.5 MiB for four sequences.
    shape = shape_of(model("qwen3.6-27b"))
    assert state_bytes(shape, 1, LLAMA_CPP) / MIB == pytest.approx(149.625)
    assert state_bytes(shape, 4, LLAMA_CPP) / MIB == pytest.approx(598.5)


def test_sliding_layers_hold_their_window_only():
    # Gemma 3 27B: 10 full layers of 62, 16 KV heads x 128; 52 layers keep 1,024 tokens and one block of 16.
    assert layers_by_kind(model("gemma-3-27b-it")) == {"full": 10, "sliding": 52}
    shape = shape_of(model("gemma-3-27b-it"))
    per_layer_and_token = 2 * 16 * 128 * 2
    expected = per_layer_and_token * (10 * 32768 + 52 * (1024 + 16))
    assert kv_cache_bytes(shape, 32768, 1, 2.0, 1.0, SERVING) == pytest.approx(expected)


def test_context_is_rounded_up_to_whole_blocks():
    shape = shape_of(model("llama-3.1-8b-instruct"))
    at = {tokens: float(kv_cache_bytes(shape, tokens, 1, 2.0, 1.0, SERVING)) for tokens in (1, 16, 17, 32)}
    assert at[1] == at[16] == 16 * 128 * KIB
    assert at[17] == at[32] == 32 * 128 * KIB


@pytest.mark.parametrize(
    ("kv_heads", "ranks", "copies"),
    [(8, 1, 1), (8, 8, 1), (4, 8, 2), (2, 8, 4), (10, 4, 1.2), (1, 8, 8), (1, 1, 1)],
)
def test_ranks_that_outnumber_kv_heads_keep_copies(kv_heads, ranks, copies):
    assert replicas_of_cache(kv_heads, float(ranks)) == pytest.approx(copies)


def test_a_latent_is_kept_on_every_tensor_rank_but_split_by_layers():
    shape = shape_of(model("deepseek-v3-0324"))
    one = kv_cache_bytes(shape, 8192, 1, 2.0, 1.0, SERVING)
    assert kv_cache_bytes(shape, 8192, 1, 2.0, 8.0, SERVING) == 8 * one
    assert kv_cache_bytes(shape, 8192, 1, 2.0, 8.0, LLAMA_CPP) == one


def test_weights_of_llama_3_1_8b_in_q4_k_m_as_worked_in_the_methodology():
    # 6,979,588,096 x 4.7985 bits + 1,050,673,152 x 5.53125 bits; the published file has 4.58 GiB.
    held = weights(model("llama-3.1-8b-instruct"), find_quant("Q4_K_M"))
    assert held.total_bytes == pytest.approx(4_912_886_169, rel=1e-9)
    assert held.total_bytes / GIB == pytest.approx(4.5755, abs=5e-5)
    assert held.dense_read_bytes == pytest.approx(4_549_665_177, rel=1e-9)  # without the input embedding
    assert not held.is_official


def test_published_checkpoint_counts_less_what_is_not_served():
    # 688.59 GB hold 684.49 billion elements with draft layers and scales, of which 671.03 are served.
    deepseek = model("deepseek-v3-0324")
    held = weights(deepseek, find_quant("FP8"))
    assert held.is_official
    assert held.total_bytes == pytest.approx(
        deepseek.checkpoint_bytes * deepseek.main_params / deepseek.total_params
    )
    assert held.total_bytes == pytest.approx(held.formula_bytes, rel=0.01)


@pytest.mark.parametrize(
    ("name", "quant", "native"),
    [
        ("llama-3.1-8b-instruct", "BF16", True),
        ("llama-3.1-8b-instruct", "FP8", False),
        ("deepseek-v3-0324", "FP8", True),
        ("deepseek-v3-0324", "BF16", False),
        ("gpt-oss-120b", "MXFP4", True),
    ],
)
def test_native_format(name, quant, native):
    assert is_native(model(name), find_quant(quant)) is native


def test_formats_of_experts_leave_other_matrices_alone():
    mixtral = model("mixtral-8x7b-instruct")
    held, shape = weights(mixtral, find_quant("MXFP4")), shape_of(mixtral)
    others = (shape.linear_params + shape.embedding_params) * 16
    assert held.total_bytes == pytest.approx((shape.routed_params * 4.25 + others) / 8)


@pytest.mark.parametrize(
    ("name", "quant", "gib", "within"),
    [
        # Sizes of bartowski/openai_gpt-oss-120b-GGUF and of the 20B in Q6_K, 12.04 GB, as published.
        ("gpt-oss-120b", "Q2_K", 58.27, 0.011),
        ("gpt-oss-120b", "Q4_K_M", 58.46, 0.011),
        ("gpt-oss-120b", "Q8_0", 59.03, 0.005),
        ("gpt-oss-20b", "Q6_K", 12.04e9 / GIB, 0.04),  # rows of 2,880 do not divide by 256: Q8_0 in the file
    ],
)
def test_gguf_files_of_gpt_oss_keep_their_experts_in_mxfp4(name, quant, gib, within):
    # 120B: (114.70e9 x 4.25 + 0.968e9 x bits + 1.158e9 x bits of embeddings) / 8
    held = weights(model(name), find_quant(quant))
    assert held.total_bytes / GIB == pytest.approx(gib, rel=within)
    assert held.routed_bytes == pytest.approx(shape_of(model(name)).routed_params * 4.25 / 8)


def test_a_16_bit_gguf_of_gpt_oss_is_what_was_measured():
    # strix-halo-testing, F16: 60.8675 GiB; experts as published, all else at 16 bits.
    shape = shape_of(model("gpt-oss-120b"))
    others = (shape.linear_params + shape.embedding_params) * 16
    assert (shape.routed_params * 4.25 + others) / 8 / GIB == pytest.approx(60.8675, rel=0.003)
    assert weights(model("gpt-oss-120b"), find_quant("MXFP4")).total_bytes / GIB == pytest.approx(
        60.8675, rel=0.003
    )


def test_a_16_bit_copy_of_gpt_oss_and_other_models_are_narrowed_whole():
    copy = replace(model("gpt-oss-120b"), native_dtype="bf16", native_expert_bits=16.0)
    assert weights(copy, find_quant("Q2_K")).total_bytes / GIB < 45
    assert kept_expert_bits(model("gpt-oss-120b"), find_quant("NVFP4")) is None
    assert kept_expert_bits(model("kimi-k3"), find_quant("Q2_K")) is None


@pytest.mark.parametrize("name", [name for name, one in all_models().items() if one.moe])
def test_routed_experts_follow_from_exact_counts(name):
    # Counted from the shape: experts x matrices x width x width; hyper-connections are 0.6 % of one model.
    one = model(name)
    moe = one.moe
    width = moe.expert_hidden_size or one.hidden_size
    counted = moe.moe_layers * moe.routed_experts * moe.ffn_matrices * width * moe.moe_intermediate_size
    assert shape_of(one).routed_params == pytest.approx(counted, rel=0.007)


@pytest.mark.parametrize("name", all_models())
def test_tensor_classes_add_up_to_the_served_parameters(name):
    shape = shape_of(model(name))
    parts = (
        shape.linear_params
        + shape.embedding_params
        + shape.routed_params
        + shape.tower_params
        + shape.table_params
    )
    assert parts == pytest.approx(shape.main_params, rel=1e-9)


@pytest.mark.parametrize("name", all_models())
def test_more_bits_weigh_more(name):
    order = ["UD-Q2_K_XL", "Q3_K_M", "IQ4_XS", "Q4_K_M", "Q5_K_M", "Q6_K", "Q8_0"]
    sizes = [float(weights(model(name), find_quant(quant)).formula_bytes) for quant in order]
    assert sizes == sorted(sizes)


def test_server_buffers_of_an_8b_model_on_one_h100_as_worked_in_the_methodology():
    # 0.19 GiB + 1,024 x 128,256 x 14.3 B = 1.9391; + 0.25 outside of torch + 0.90 for graphs.
    shape = shape_of(model("llama-3.1-8b-instruct"))
    one = serving_runtime_bytes(shape, 1.0, 1.0, 79.2 * GIB)
    assert one / GIB == pytest.approx(3.0891, abs=5e-5)
    two = serving_runtime_bytes(shape, 1.0, 2.0, 79.2 * GIB)
    assert two / GIB == pytest.approx(2 * (1.9391 + 2.07 + 0.90), abs=5e-4)


def test_server_buffers_grow_only_above_the_default_number_of_sequences():
    shape = shape_of(model("llama-3.1-8b-instruct"))
    at = [float(serving_runtime_bytes(shape, batch, 1.0, 79.2 * GIB)) for batch in (1.0, 1024.0, 1025.0)]
    assert at[0] == at[1] < at[2]
    assert serving_runtime_bytes(shape, 1.0, 1.0, 23.6 * GIB) < at[0]


def test_llama_cpp_buffer_as_worked_in_the_methodology():
    # 512 x (8 x 4,096 + 4 x 128,256) B, as a start-up log says: 0.2603 GiB
    shape = shape_of(model("llama-3.1-8b-instruct"))
    assert llama_cpp_runtime_bytes(shape, 8192.0, 1.0) == 279_445_504
    # a million tokens: the mask is wider than the logits
    assert llama_cpp_runtime_bytes(shape, 2.0**20, 2.0) == 2 * 512 * (8 * 4096 + 2 * 2**20)


@pytest.mark.parametrize(
    ("name", "engine", "gib"),
    [
        ("H100 SXM", Engine.VLLM, (81559 / 1024 - 0.45) * 0.90),
        ("H100 SXM", Engine.LLAMA_CPP, 81559 / 1024 - 0.45 - 0.45),
        ("RTX 4090", Engine.LLAMA_CPP, 24564 / 1024 - 0.45 - 0.45),
        ("Mac Studio M3 Ultra 512GB", Engine.LLAMA_CPP, 512 * 0.75 - 0.45 - 0.45),
    ],
)
def test_usable_memory(name, engine, gib):
    assert usable_bytes(visible_bytes(all_gpus()[name])[0], 1.0, engine) / GIB == pytest.approx(gib)


def test_usable_memory_of_the_page_is_95_percent_of_the_label():
    assert simple_usable_bytes(80.0, 1.0) / GIB == pytest.approx(76)


def test_unknown_and_unified_memory_is_explained():
    assert visible_bytes(all_gpus()["H100 SXM"])[1] is None
    assert "98.0 % of the 192 GB label" in visible_bytes(all_gpus()["Instinct MI300X"])[1]
    assert "about 75 %" in visible_bytes(all_gpus()["MacBook Pro M4 Max 128GB"])[1]


def test_simple_weights_are_labelled_parameters_times_bits():
    held = simple_weights(model("qwen3-coder-480b-a35b"), find_quant("Q4_K_M"))
    assert held.total_bytes == pytest.approx(480e9 * 4.8567 / 8, rel=1e-4)
    assert held.dense_read_bytes == pytest.approx(35e9 * 4.8567 / 8, rel=1e-4)


def test_search_finds_the_last_number_that_fits():
    limits = np.array([0.0, 1.0, 7.0, 8192.0, 1e9])
    assert largest_that_fits(lambda numbers: numbers <= limits, (5,)).tolist() == limits.tolist()


def test_arrays_give_what_numbers_give():
    shape = shape_of(model("gemma-3-27b-it"))
    contexts, ranks = np.array([100.0, 8192.0, 131072.0]), np.array([1.0, 2.0, 8.0])
    together = kv_cache_bytes(shape, contexts, 3.0, 1.0625, ranks, SERVING)
    apart = [
        kv_cache_bytes(shape, context, 3.0, 1.0625, rank, SERVING)
        for context, rank in zip(contexts, ranks, strict=True)
    ]
    assert together.tolist() == pytest.approx([float(one) for one in apart])
    visible = np.array([79.2, 23.6, 139.8]) * GIB
    buffers = serving_runtime_bytes(shape, 5.0, ranks, visible)
    singles = [
        serving_runtime_bytes(shape, 5.0, rank, seen) for rank, seen in zip(ranks, visible, strict=True)
    ]
    assert buffers.tolist() == pytest.approx([float(one) for one in singles])


def test_every_model_has_weights_in_every_format():
    for one in all_models().values():
        for quant in all_quants().values():
            held = weights(one, quant)
            bits = held.total_bytes * 8 / one.main_params
            assert 1.6 < bits < 17, (one.id, quant.name)
            assert 0 < held.dense_read_bytes + held.routed_bytes <= held.total_bytes * (1 + 1e-9)


def test_machines_without_gpus_cannot_be_built():
    with pytest.raises(InvalidScenario, match="gpus"):
        Machine(gpu=all_gpus()["H100 SXM"], gpu_count=0)
