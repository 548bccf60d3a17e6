"""What layers keep of each token; numbers are those of docs/models.md, "Traps"."""

from math import inf

import pytest

from planner.errors import UnreadableModel
from planner.serving.shape import shape_of
from tests.planner.reading.published import (
    command_a,
    deepseek_v3,
    deepseek_v4_flash,
    gemma3_4b,
    gemma4_31b,
    gemma4_e4b,
    glm_5,
    gpt_oss_20b,
    granite_h_small,
    growing,
    hunyuan_a13b,
    jamba,
    kimi_linear,
    kinds,
    lfm2_1_2b,
    llama4_scout,
    llama_8b,
    mimo_v2_flash,
    minimax_m3,
    mistral_7b,
    qwen2_5_7b,
    qwen3_0_6b,
    qwen3_5_35b_text,
    qwen3_next_80b,
    read,
    step_3_5,
    windowed,
    without,
)


def group(reading, kind):
    return next(group for group in reading.model.attention_groups if group.kind == kind)


def test_an_absent_head_dim_is_hidden_over_heads():
    """Trap 8: Llama 3.1 8B, 128 KiB a token at 16 bits."""
    for config in (llama_8b(), llama_8b(head_dim=None)):
        reading = read(config)
        assert reading.model.head_dim == 128
        assert growing(reading) * 2 == 128 * 1024


def test_a_stated_head_dim_is_never_computed():
    """Trap 8: Qwen3 0.6B has 16 heads of 128 on a hidden size of 1024."""
    reading = read(qwen3_0_6b())
    assert reading.model.head_dim == 128
    assert growing(reading) == 28 * 2 * 8 * 128
    assert reading.model.main_params == pytest.approx(596_049_920, rel=2e-5)


def test_heads_that_do_not_divide_the_hidden_size_need_a_stated_width():
    """Trap 8."""
    with pytest.raises(UnreadableModel, match="4096 with 30 heads"):
        read(llama_8b(num_attention_heads=30, num_key_value_heads=10))
    assert read(llama_8b(num_attention_heads=30, num_key_value_heads=10, head_dim=128)).model.head_dim == 128


@pytest.mark.parametrize("head_dim", [64, 192, 0, None])
def test_head_dim_means_nothing_under_latent_attention(head_dim):
    """Trap 9: GLM-5 says 64, GLM-5.3 192, its Flash 0; a key is 192 + 64 wide and a value 256."""
    reading = read(glm_5(head_dim=head_dim))
    assert reading.model.head_dim == 256
    assert group(reading, "mla").v_head_dim == 256
    assert growing(reading) == 78 * (512 + 64) + 78 * 128
    assert reading.model.main_params == pytest.approx(743_911_199_232, rel=1e-5)


def test_deepseek_v3_caches_one_latent_and_not_keys_and_values():
    """Trap 9, 10: hidden / heads would be 56; 61 x (512 + 64) elements are 68.6 KiB at 16 bits."""
    reading = read(deepseek_v3())
    assert reading.model.head_dim == 192
    assert growing(reading) == 35_136
    assert growing(reading) * 2 / 1024 == pytest.approx(68.6, abs=0.05)


def test_absent_key_value_heads_equal_the_heads():
    """Trap 10: old Llama, Falcon."""
    reading = read(without(llama_8b(), "num_key_value_heads"))
    assert reading.model.num_kv_heads == 32
    assert growing(reading) == 32 * 2 * 32 * 128


def test_the_latent_of_deepseek_v4_is_key_and_value_at_once():
    """Trap 10, 19: one 512-wide latent, kept whole in the window, compressed 4 or 128 times beyond it."""
    reading = read(deepseek_v4_flash())
    # 21 layers keep 512/4 and an index key of 128/4 a token, 20 layers 512/128.
    assert growing(reading) == 21 * (512 / 4 + 128 / 4) + 20 * 512 / 128
    assert windowed(reading) == {128.0: 43 * 512}
    assert reading.model.main_params == pytest.approx(284_332_230_231, rel=4e-3)


def test_keys_and_values_of_unlike_width_both_count():
    """Trap 11: MiMo-V2, 192 and 128."""
    reading = read(mimo_v2_flash())
    assert growing(reading) == 9 * 4 * (192 + 128)
    assert windowed(reading) == {128.0: 39 * 8 * (192 + 128)}


@pytest.mark.parametrize(
    ("config", "window"),
    [
        (mistral_7b(), 4096),
        (mistral_7b(sliding_window=None), None),
        (mistral_7b(sliding_window=0), None),
        (mistral_7b(sliding_window=32768), None),
        (mistral_7b(model_type="phi3", sliding_window=262144), None),
        (qwen2_5_7b(), None),
        (qwen2_5_7b(use_sliding_window=None), None),
        (qwen2_5_7b(use_sliding_window=True, sliding_window=4096, max_window_layers=0), 4096),
    ],
    ids=["v0.1", "null", "zero", "context", "phi", "switched-off", "class-default-off", "on"],
)
def test_a_window_counts_only_where_it_is_on(config, window):
    """Trap 12."""
    groups = read(config).model.attention_groups
    assert {each.window for each in groups} == {window}
    assert {str(each.kind) for each in groups} == {"sliding" if window else "full"}


def test_the_lower_layers_of_qwen2_are_full_where_the_upper_ones_slide():
    """Trap 12: max_window_layers counts the layers from below that do not slide."""
    config = qwen2_5_7b(use_sliding_window=True, sliding_window=4096, max_window_layers=20)
    assert kinds(read(config)) == {"full": 20, "sliding": 8}


SLIDING = ["sliding_attention"] * 31 + ["full_attention"]


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        (mistral_7b(layer_types=SLIDING), {"sliding": 31, "full": 1}),
        # The list wins over a pattern beside it.
        (mistral_7b(layer_types=SLIDING, sliding_window_pattern=2), {"sliding": 31, "full": 1}),
        (mistral_7b(sliding_window_pattern=4), {"sliding": 24, "full": 8}),
        (mistral_7b(_sliding_window_pattern=8), {"sliding": 28, "full": 4}),
        (mistral_7b(model_type="exaone4", sliding_window_pattern="LLLG"), {"sliding": 24, "full": 8}),
        (without(command_a(), "sliding_window_pattern"), {"sliding": 48, "full": 16}),
        (gemma3_4b(), {"sliding": 29, "full": 5}),
        (gpt_oss_20b(), {"sliding": 12, "full": 12}),
        (gemma4_31b(), {"sliding": 50, "full": 10}),
        (mimo_v2_flash(), {"sliding": 39, "full": 9}),
        (qwen3_5_35b_text(), {"gated_delta": 30, "full": 10}),
        (llama4_scout(), {"chunked": 36, "full": 12}),
        (llama4_scout(no_rope_layers=[1, 0] * 24), {"chunked": 24, "full": 24}),
        (llama4_scout(attention_chunk_size=None), {"full": 48}),
        (lfm2_1_2b(), {"short_conv": 10, "full": 6}),
    ],
)
def test_which_layers_slide_is_said_in_many_ways(config, expected):
    """Trap 13."""
    assert kinds(read(config)) == expected


def test_the_first_layer_of_gpt_oss_slides_and_the_last_of_gemma_4_is_full():
    """Trap 13: the order is that of first occurrence; 31 layers leave the rule a remainder."""
    assert [str(each.kind) for each in read(gpt_oss_20b()).model.attention_groups] == ["sliding", "full"]
    assert kinds(read(gemma4_31b(num_hidden_layers=31))) == {"sliding": 25, "full": 6}


def test_the_numbers_of_no_rope_layers_mark_the_chunked_ones():
    """Trap 13: 24,576 growing elements, 2,048 for each of 36 chunked layers up to 8,192 tokens."""
    reading = read(llama4_scout())
    assert growing(reading) == 12 * 2048
    assert windowed(reading) == {8192.0: 36 * 2048}


def test_sliding_layers_may_have_more_heads():
    """Trap 14: Step-3.5, 96 where it slides, 64 where it is full."""
    reading = read(step_3_5())
    assert (group(reading, "full").heads, group(reading, "sliding").heads) == (64, 96)
    assert reading.model.main_params == pytest.approx(196_955_734_016, rel=1e-4)


def test_full_layers_of_gemma_4_have_fewer_wider_heads():
    """Trap 14."""
    reading = read(gemma4_31b())
    full = group(reading, "full")
    assert (full.kv_heads, full.head_dim, group(reading, "sliding").kv_heads) == (4, 512, 16)
    assert growing(reading) == 10 * 4 * 2 * 512
    assert windowed(reading) == {1024.0: 50 * 16 * 2 * 256}


def test_one_projection_for_key_and_value_saves_weights_and_no_cache():
    """Trap 15."""
    shared, apart = read(gemma4_31b()), read(gemma4_31b(attention_k_eq_v=False, num_key_value_heads=4))
    assert group(shared, "full").shares_k_and_v_projection
    assert growing(shared) == growing(apart)
    # The text model: all but the tower of 575,741,232 elements.
    assert shared.model.main_params == pytest.approx(31_273_086_512 - 575_741_232, rel=5e-5)


def test_an_output_gate_doubles_the_query_projection():
    """Trap 16: Qwen3-Next and later, whether the field is there or left out."""
    reading = read(without(qwen3_next_80b(), "attn_output_gate"))
    assert group(reading, "full").has_output_gate
    assert reading.model.main_params == pytest.approx(79_674_391_296, rel=1e-5)
    ungated = read(qwen3_next_80b(attn_output_gate=False))
    assert reading.model.main_params - ungated.model.main_params == 12 * 2048 * 16 * 256


def test_the_gate_of_kimi_k3_is_as_wide_as_its_values_and_that_of_step_negligible():
    """Trap 16."""
    with_gate, without_gate = read(kimi_linear()), read(kimi_linear(mla_use_output_gate=False))
    gate = 24 * 96 * 128 * 7168
    assert with_gate.model.main_params - without_gate.model.main_params == gate
    small = (
        read(step_3_5()).model.main_params - read(step_3_5(use_head_wise_attn_gate=False)).model.main_params
    )
    assert small == 4096 * (12 * 64 + 33 * 96)


def test_layers_that_read_the_cache_of_others_own_none():
    """Trap 17: Gemma E4B, the last 18 of 42 layers."""
    reading = read(gemma4_e4b())
    assert group(reading, "full").kv_owner_layers == 4
    assert group(reading, "sliding").kv_owner_layers == 20
    assert growing(reading) == 4 * 2 * 2 * 512
    assert windowed(reading) == {512.0: 20 * 2 * 2 * 256}


def test_latents_shared_across_layers_count_once():
    """Trap 17: Mistral Large 4 (9 of 72 layers reuse one), DeepSeek V4.1 (4 owners)."""
    sources = [35 if index in range(36, 72, 4) else index for index in range(72)]
    large = glm_5(model_type="mistral_large4", num_hidden_layers=72, kv_source_layers=sources)
    reading = read(large)
    assert group(reading, "mla").kv_owner_layers == 63
    assert growing(reading) == 63 * 576 + 72 * 128
    ratios = [0, 0, *[2] * 18, *[1] * 20, 0, 0, 0]
    flash = deepseek_v4_flash(
        model_type="deepseek_v41",
        num_hidden_layers=40,
        compress_ratios=ratios,
        kv_source_layer_ids=[2, 8, 14, 20],
        index_source_layer_ids=[2, 8, 14, 20, 24, 28, 32, 36],
    )
    # Three layers keep 512 for two tokens, one 512 for each: 1,280; index keys 3 x 64 and 5 x 128.
    assert growing(read(flash)) == 1280 + 3 * 64 + 5 * 128


def test_a_share_factor_counts_only_where_sharing_is_on():
    """Trap 17: Hunyuan states a factor of 2 and does not use it."""
    assert growing(read(hunyuan_a13b())) == 32 * 2 * 8 * 128
    assert growing(read(hunyuan_a13b(use_cla=True))) == 16 * 2 * 8 * 128


def test_sparse_attention_reads_less_and_keeps_everything():
    """Trap 18: an index key of 128 comes on top of each token."""
    dense, sparse = (
        read(deepseek_v3()),
        read(deepseek_v3(index_n_heads=64, index_head_dim=128, index_topk=2048)),
    )
    assert growing(sparse) == growing(dense) + 61 * 128
    assert shape_of(sparse.model).cache_terms[0].read_budget_tokens == 2048
    assert shape_of(dense.model).cache_terms[0].read_budget_tokens == inf
    block = read(minimax_m3())
    assert growing(block) == 60 * (2 * 4 * 128 + 128)
    assert group(block, "full").sparse_index.budget_tokens == 16 * 128


def test_only_layers_with_an_indexer_of_their_own_keep_index_keys():
    """Trap 18: GLM-5.3, 21 of 78."""
    types = ["full" if index < 3 or (index - 2) % 4 == 0 else "shared" for index in range(78)]
    reading = read(glm_5(indexer_types=types))
    assert types.count("full") == 21
    assert group(reading, "mla").indexer_layers == 21
    assert growing(reading) == 78 * 576 + 21 * 128
    assert reading.model.main_params == pytest.approx(743_377_000_704, rel=1e-5)


def test_entries_beyond_the_layers_belong_to_draft_layers():
    """Trap 19: DeepSeek V4 has one ratio more than layers, Step three words."""
    config = deepseek_v4_flash()
    assert len(config["compress_ratios"]) == 44
    assert read(config).model.num_layers == 43
    assert len(step_3_5()["layer_types"]) == 48
    assert kinds(read(step_3_5())) == {"full": 12, "sliding": 33}
    with pytest.raises(UnreadableModel, match="compress_ratios is 42 long"):
        read(deepseek_v4_flash(compress_ratios=[4] * 42))


def test_lists_of_kimi_count_layers_from_1():
    """Trap 20."""
    reading = read(kimi_linear())
    assert kinds(reading) == {"kda": 69, "mla": 24}
    assert growing(reading) == 24 * 576
    zero_based = {
        **kimi_linear()["linear_attn_config"],
        "kda_layers": list(range(69)),
        "full_attn_layers": list(range(69, 93)),
    }
    with pytest.raises(UnreadableModel, match="the layers 1 to 93, each once"):
        read(kimi_linear(linear_attn_config=zero_based))


def test_jamba_counts_from_0():
    """Trap 20: attention in 4, 12, 20, 28, experts in the odd layers."""
    reading = read(jamba())
    assert kinds(reading) == {"mamba1": 28, "full": 4}
    assert [str(each.kind) for each in reading.model.attention_groups] == ["mamba1", "full"]
    assert reading.model.moe.moe_layers == 16
    assert growing(reading) == 4 * 2 * 8 * 128
    assert reading.model.main_params == pytest.approx(51_570_323_328, rel=1e-5)


def test_mamba_fields_make_no_mamba_layer():
    """Trap 21: Granite 4.0 Micro names only attention and still has all mamba fields."""
    micro = granite_h_small(
        hidden_size=2560,
        num_attention_heads=40,
        layer_types=["attention"] * 40,
        num_local_experts=0,
        num_experts_per_tok=0,
        intermediate_size=8192,
        shared_intermediate_size=8192,
    )
    reading = read(micro)
    assert kinds(reading) == {"full": 40}
    assert shape_of(reading.model).recurrent_elements == 0
    assert growing(reading) == 40 * 2 * 8 * 64
    # 3,402,836,480 elements: https://huggingface.co/ibm-granite/granite-4.0-micro
    assert reading.model.main_params == pytest.approx(3_402_836_480, rel=1e-4)


def test_fixed_states_are_those_of_the_published_shapes():
    """Elements of one sequence: of a layer, 32 x 128 x 128 and 3 x 8192; 8192 x 16; 128 x 64 x 128."""
    delta = shape_of(read(qwen3_5_35b_text()).model)
    assert (delta.recurrent_elements, delta.convolution_elements) == (30 * 524_288, 30 * 24_576)
    mamba1 = shape_of(read(jamba()).model)
    assert (mamba1.recurrent_elements, mamba1.convolution_elements) == (28 * 131_072, 28 * 24_576)
    mamba2 = shape_of(read(granite_h_small()).model)
    assert (mamba2.recurrent_elements, mamba2.convolution_elements) == (36 * 1_048_576, 36 * 3 * 8448)
    kda = shape_of(read(kimi_linear()).model)
    assert (kda.recurrent_elements, kda.convolution_elements) == (69 * 1_572_864, 69 * 110_592)
    conv = shape_of(read(lfm2_1_2b()).model)
    assert (conv.recurrent_elements, conv.convolution_elements) == (0, 10 * 2 * 2048)


def test_blocks_of_a_network_search_share_keys_and_values_by_group():
    """Llama-3.3-Nemotron-Super-49B: 64 heads in groups of 8; one block of three has no attention."""
    ffn = {"ffn_mult": 5.25, "no_op": False, "replace_with_linear": False}
    grouped, none = (
        {"n_heads_in_group": each, "no_op": each is None, "replace_with_linear": False} for each in (8, None)
    )
    config = {
        "model_type": "nemotron-nas",
        "hidden_size": 8192,
        "num_hidden_layers": 3,
        "num_attention_heads": 64,
        "num_key_value_heads": None,
        "vocab_size": 128256,
        "block_configs": [{"attention": attention, "ffn": ffn} for attention in (grouped, none, grouped)],
    }
    assert growing(read(config)) == 2 * 2 * 8 * 128
    other = {"num_key_value_heads": 4, "no_op": False}
    config["block_configs"][2] = {"attention": other, "ffn": ffn}
    assert growing(read(config)) == 2 * 128 * (8 + 4)
    grouped["n_heads_in_group"] = 7
    with pytest.raises(UnreadableModel, match="n_heads_in_group is 7; it must be a divisor of the 64"):
        read(config)
