"""Which layers hold experts and how wide they are; numbers are those of docs/models.md, "Traps"."""

import pytest

from planner.errors import UnknownArchitecture, UnreadableModel
from tests.planner.reading.published import (
    deepseek_v3,
    gemma4_26b,
    granite_h_small,
    hunyuan_a13b,
    kimi_linear,
    lfm2_1_2b,
    llama4_scout,
    llama_8b,
    mimo_v2_flash,
    minimax_m3,
    mixtral_8x7b,
    nemotron_3_nano,
    nemotron_3_ultra,
    qwen3_5_35b_text,
    qwen3_30b_a3b,
    read,
    step_3_5,
    without,
)


def moe(config):
    return read(config).model.moe


def test_intermediate_size_is_the_width_of_an_expert_in_some_families():
    """Trap 22."""
    assert moe(mixtral_8x7b()).moe_intermediate_size == 14336
    assert moe(llama4_scout()).moe_intermediate_size == 8192
    assert moe(without(hunyuan_a13b(), "moe_intermediate_size")).moe_intermediate_size == 3072
    assert read(mixtral_8x7b()).model.main_params == 46_702_792_704


def test_intermediate_size_is_the_width_of_dense_layers_in_others():
    """Trap 22."""
    experts = moe(deepseek_v3())
    assert (experts.moe_intermediate_size, experts.dense_intermediate_size) == (2048, 18432)


def test_intermediate_size_is_unused_in_others_again():
    """Trap 22: every layer of Qwen3 30B-A3B has experts."""
    experts = moe(qwen3_30b_a3b())
    assert (experts.dense_layers, experts.dense_intermediate_size) == (0, None)
    assert read(qwen3_30b_a3b()).model.main_params == pytest.approx(30_532_122_624, rel=1e-6)
    assert (
        read(qwen3_30b_a3b(intermediate_size=1)).model.main_params == read(qwen3_30b_a3b()).model.main_params
    )


def test_an_unknown_family_must_state_the_width_of_its_experts():
    """Trap 22: it may mean either, so nothing is guessed."""
    config = mixtral_8x7b(model_type="brand_new", hidden_act="silu")
    with pytest.raises(UnknownArchitecture) as caught:
        read(config)
    assert caught.value.missing == ("moe_intermediate_size",)
    assert read(config, facts={"moe_intermediate_size": 14336}).model.main_params == 46_702_792_704


LFM2_MOE = {
    **without(lfm2_1_2b(), "block_ff_dim", "block_auto_adjust_ff_dim"),
    "model_type": "lfm2_moe",
    "intermediate_size": 7168,
    "moe_intermediate_size": 1792,
    "num_experts": 32,
    "num_experts_per_tok": 4,
    "num_dense_layers": 2,
}
ERNIE = {
    **llama_8b(model_type="ernie4_5_moe", num_hidden_layers=28),
    "moe_num_experts": 64,
    "moe_k": 6,
    "moe_intermediate_size": 1536,
    "moe_num_shared_experts": 2,
    "moe_layer_start_index": 1,
    "moe_layer_end_index": -1,
    "moe_layer_interval": 1,
}


@pytest.mark.parametrize(
    ("config", "moe_layers", "dense_layers"),
    [
        (deepseek_v3(), 58, 3),
        (LFM2_MOE, 14, 2),
        (deepseek_v3(first_k_dense_replace=None, mlp_layer_types=["dense"] * 5 + ["sparse"] * 56), 56, 5),
        (qwen3_30b_a3b(mlp_only_layers=[0, 7]), 46, 2),
        (qwen3_30b_a3b(decoder_sparse_step=2), 24, 24),
        (minimax_m3(), 57, 3),
        (mimo_v2_flash(), 47, 1),
        (deepseek_v3(moe_layer_freq=2, first_k_dense_replace=1), 30, 31),
        (llama4_scout(), 48, 0),
        (llama4_scout(interleave_moe_layer_step=2, num_local_experts=128), 24, 24),
        (llama4_scout(interleave_moe_layer_step=None, moe_layers=[1, 3, 5]), 3, 45),
        (ERNIE, 27, 1),
        ({**ERNIE, "moe_layer_start_index": 3, "moe_layer_end_index": 26}, 24, 4),
        (step_3_5(), 42, 3),
    ],
)
def test_which_layers_are_dense_is_said_in_many_ways(config, moe_layers, dense_layers):
    """Trap 23."""
    experts = moe(config)
    assert (experts.moe_layers, experts.dense_layers) == (moe_layers, dense_layers)


def test_dense_layers_of_llama_4_have_a_width_of_their_own():
    """Trap 23: Maverick, every second layer dense and 16384 wide."""
    experts = moe(llama4_scout(interleave_moe_layer_step=2, num_local_experts=128))
    assert (experts.moe_intermediate_size, experts.dense_intermediate_size) == (8192, 16384)
    maverick = read(llama4_scout(interleave_moe_layer_step=2, num_local_experts=128)).model
    assert maverick.main_params == pytest.approx(401_583_781_376 - 871_932_416, rel=1e-5)


def test_numbers_of_layers_that_are_no_numbers_are_refused():
    """Trap 23."""
    with pytest.raises(UnreadableModel, match="moe_layers_enum"):
        read(step_3_5(moe_layers_enum="3,4,x"))


@pytest.mark.parametrize(
    ("config", "shared", "width"),
    [
        (deepseek_v3(), 1, 2048),
        (deepseek_v3(n_shared_experts=2), 2, 4096),
        (deepseek_v3(n_shared_experts=0), 0, 0),
        (deepseek_v3(n_shared_experts=None), 0, 0),
        (kimi_linear(), 2, 6144),
        (qwen3_5_35b_text(), 1, 512),
        (granite_h_small(), 1, 1536),
        (minimax_m3(), 1, 3072),
        (step_3_5(), 1, 1280),
        (nemotron_3_nano(), 1, 3712),
        (mimo_v2_flash(), 0, 0),
        (llama4_scout(), 1, 8192),
    ],
)
def test_shared_experts_are_counted_or_have_a_width(config, shared, width):
    """Trap 24: 0 and null are none; Llama 4 has one that no field names."""
    experts = moe(config)
    assert (experts.shared_experts, experts.shared_intermediate_size) == (shared, width)


def test_experts_in_a_latent_are_latent_wide_not_hidden_wide():
    """Trap 25: ignoring it overstates Nemotron 3 Ultra four times."""
    ultra = read(nemotron_3_ultra()).model
    wide = read(without(nemotron_3_ultra(), "moe_latent_size")).model
    assert ultra.moe.expert_hidden_size == 2048
    assert ultra.main_params == pytest.approx(549_308_968_960, rel=1e-4)
    assert wide.main_params / ultra.main_params > 3.5
    # 48 layers, 512 experts of two matrices, and two projections into the latent and out of it.
    routed = 48 * 512 * 2 * 5120
    assert wide.main_params - ultra.main_params == routed * (8192 - 2048) - 48 * 2 * 8192 * 2048
    assert moe(kimi_linear()).expert_hidden_size == 3584


def test_an_expert_without_a_gate_has_two_matrices():
    """Trap 26."""
    nano = read(nemotron_3_nano()).model
    assert nano.moe.ffn_matrices == 2
    assert nano.main_params == pytest.approx(31_577_937_344, rel=1e-5)
    assert moe(mixtral_8x7b()).ffn_matrices == 3


def test_gemma_4_has_a_dense_block_beside_its_experts():
    """Trap 27: all but the tower of 572,792,112 elements."""
    model = read(gemma4_26b()).model
    assert model.moe.has_dense_mlp_in_every_layer
    assert (model.moe.shared_experts, model.moe.shared_intermediate_size) == (1, 2112)
    assert model.main_params == pytest.approx(25_805_933_872 - 572_792_112, rel=5e-5)
    assert read(gemma4_26b(enable_moe_block=False)).model.moe is None


@pytest.mark.parametrize(
    "field",
    [
        {"n_group": 1},
        {"topk_group": 1},
        {"topk_method": "greedy"},
        {"scoring_func": "softmax"},
        {"routed_scaling_factor": 16.0},
        {"norm_topk_prob": True},
    ],
    ids=lambda field: next(iter(field)),
)
def test_routing_changes_no_size(field):
    """Trap 28."""
    plain, routed = read(deepseek_v3()).model, read(deepseek_v3(**field)).model
    assert (plain.main_params, plain.active_params) == (routed.main_params, routed.active_params)
    assert plain.attention_groups == routed.attention_groups


def test_lists_that_say_the_same_for_each_layer_are_one_number():
    """Trap 29: Hunyuan."""
    model = read(hunyuan_a13b()).model
    assert (model.moe.experts_per_token, model.moe.shared_experts, model.moe.moe_intermediate_size) == (
        8,
        1,
        3072,
    )
    assert model.main_params == pytest.approx(80_393_183_232, rel=1e-5)


def test_lists_that_differ_from_layer_to_layer_are_refused_not_averaged():
    """Trap 29."""
    with pytest.raises(UnreadableModel, match="different from layer to layer"):
        read(hunyuan_a13b(moe_intermediate_size=[3072] * 31 + [1536]))


@pytest.mark.parametrize(
    ("field", "why"),
    [
        ({"num_experts_per_tok": 9}, "at most the 8 experts"),
        ({"num_experts_per_tok": 0}, "num_experts_per_tok is 0"),
        ({"num_experts_per_tok": None}, "num_experts_per_tok"),
        ({"num_local_experts": -8}, "num_local_experts is -8"),
        ({"num_local_experts": 10**6}, "num_local_experts"),
    ],
)
def test_absurd_numbers_of_experts_are_refused(field, why):
    with pytest.raises(UnreadableModel, match=why):
        read(mixtral_8x7b(**field))


def test_one_expert_is_none():
    assert read(mixtral_8x7b(num_local_experts=1, num_experts_per_tok=1)).model.moe is None
