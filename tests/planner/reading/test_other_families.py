"""
Families beyond the catalogue: parameters as counted from their classes, and what their layers keep.

Source of the counts: models built from these fields by transformers 5.24.0, without weights.
"""

import pytest

from planner.catalogues.gpus import find_gpu
from planner.catalogues.quants import find_quant
from planner.errors import UnknownArchitecture, UnreadableModel
from planner.serving.shape import shape_of
from planner.sizing import size
from planner.workload import Machine, Workload
from tests.planner.reading.published import growing, kinds, llama_8b, qwen2_5_7b, read, without

BAMBA = {
    "model_type": "bamba",
    "hidden_size": 4096,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "intermediate_size": 14336,
    "attn_layer_indices": [9, 18, 27],
    "mamba_n_heads": 128,
    "mamba_d_head": 64,
    "mamba_d_state": 256,
    "mamba_n_groups": 1,
    "mamba_d_conv": 4,
    "mamba_expand": 2,
    "vocab_size": 128256,
}
FALCON_H1 = {
    "model_type": "falcon_h1",
    "hidden_size": 3072,
    "num_hidden_layers": 44,
    "num_attention_heads": 12,
    "num_key_value_heads": 2,
    "head_dim": 128,
    "intermediate_size": 12288,
    "mamba_d_ssm": 3072,
    "mamba_n_heads": 24,
    "mamba_d_head": 128,
    "mamba_d_state": 256,
    "mamba_n_groups": 1,
    "mamba_d_conv": 4,
    "vocab_size": 130048,
}
MAMBA2 = {
    "model_type": "mamba2",
    "hidden_size": 4096,
    "num_hidden_layers": 64,
    "num_heads": 128,
    "head_dim": 64,
    "n_groups": 8,
    "state_size": 128,
    "conv_kernel": 4,
    "expand": 2,
    "vocab_size": 32768,
}
MAMBA = {
    "model_type": "mamba",
    "hidden_size": 768,
    "num_hidden_layers": 32,
    "intermediate_size": 1536,
    "state_size": 16,
    "time_step_rank": 48,
    "conv_kernel": 4,
    "vocab_size": 50280,
}
OLMO_HYBRID = {
    "model_type": "olmo_hybrid",
    "hidden_size": 3840,
    "num_hidden_layers": 32,
    "layer_types": (["linear_attention"] * 3 + ["full_attention"]) * 8,
    "num_attention_heads": 30,
    "num_key_value_heads": 30,
    "intermediate_size": 11008,
    "linear_num_key_heads": 30,
    "linear_num_value_heads": 30,
    "linear_key_head_dim": 96,
    "linear_value_head_dim": 192,
    "linear_conv_kernel_dim": 4,
    "vocab_size": 100352,
}
OPT_6_7B = {
    "model_type": "opt",
    "hidden_size": 4096,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "ffn_dim": 16384,
    "activation_function": "relu",
    "max_position_embeddings": 2048,
    "vocab_size": 50272,
}
STARCODER = {
    "model_type": "gpt_bigcode",
    "n_embd": 6144,
    "n_head": 48,
    "n_layer": 40,
    "n_inner": 24576,
    "n_positions": 8192,
    "multi_query": True,
    "vocab_size": 49152,
}
GPT_J = {
    "model_type": "gptj",
    "n_embd": 4096,
    "n_head": 16,
    "n_layer": 28,
    "n_positions": 2048,
    "vocab_size": 50400,
}
MPT = {
    "model_type": "mpt",
    "d_model": 2048,
    "n_heads": 16,
    "n_layers": 24,
    "expansion_ratio": 4,
    "max_seq_len": 2048,
    "vocab_size": 50368,
    "attn_config": {"alibi": True},
}
# databricks/dbrx-instruct, 131,596,523,520 elements
DBRX = {
    "model_type": "dbrx",
    "d_model": 6144,
    "n_heads": 48,
    "n_layers": 40,
    "max_seq_len": 32768,
    "vocab_size": 100352,
    "attn_config": {"kv_n_heads": 8, "clip_qkv": 8, "model_type": ""},
    "ffn_config": {"ffn_hidden_size": 10752, "moe_num_experts": 16, "moe_top_k": 4},
}


GEMMA_3N = {
    "model_type": "gemma3n_text",
    "hidden_size": 2048,
    "num_hidden_layers": 35,
    "layer_types": (["sliding_attention"] * 4 + ["full_attention"]) * 7,
    "sliding_window": 512,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "head_dim": 256,
    "num_kv_shared_layers": 15,
    "intermediate_size": [16384] * 35,
    "hidden_size_per_layer_input": 256,
    "vocab_size_per_layer_input": 262144,
    "vocab_size": 262400,
    "altup_num_inputs": 4,
    "max_position_embeddings": 32768,
}
LLAMA_3_2_VISION = {
    **llama_8b(model_type="mllama_text_model", num_hidden_layers=40),
    "cross_attention_layers": [3, 8, 13, 18, 23, 28, 33, 38],
}


@pytest.mark.parametrize(
    ("config", "params", "off"),
    [
        # What mixes its four copies of the activations is left out.
        (GEMMA_3N, 6_835_235_568, 6e-3),
        # Keys and values of the layers that look at images are left out.
        (LLAMA_3_2_VISION, 9_775_192_080, 8e-3),
        (BAMBA, 9_810_681_216, 1e-5),
        (FALCON_H1, 7_585_513_568, 1e-4),
        (MAMBA2, 7_285_403_648, 1e-5),
        (MAMBA, 159_308_544, 1e-5),
        (OLMO_HYBRID, 7_430_870_688, 1e-4),
        # Learned positions and biases are left out.
        (OPT_6_7B, 6_658_473_984, 2e-3),
        (STARCODER, 15_517_456_384, 4e-3),
        (GPT_J, 6_050_882_784, 2e-4),
        (MPT, 1_311_213_568, 1e-5),
        (DBRX, 131_596_523_520, 1e-4),
    ],
    ids=lambda value: value["model_type"] if isinstance(value, dict) else "",
)
def test_parameters_are_those_of_the_class(config, params, off):
    assert read(config).model.main_params == pytest.approx(params, rel=off)


@pytest.mark.parametrize(
    ("config", "expected", "elements"),
    [
        (BAMBA, {"mamba2": 29, "full": 3}, 3 * 2 * 8 * 128),
        (FALCON_H1, {"full": 44, "mamba2": 44}, 44 * 2 * 2 * 128),
        (MAMBA2, {"mamba2": 64}, 0),
        (MAMBA, {"mamba1": 32}, 0),
        (OLMO_HYBRID, {"gated_delta": 24, "full": 8}, 8 * 2 * 30 * 128),
        (STARCODER, {"full": 40}, 40 * 2 * 128),
        (DBRX, {"full": 40}, 40 * 2 * 8 * 128),
        (GEMMA_3N, {"sliding": 28, "full": 7}, 4 * 2 * 2 * 256),
        (LLAMA_3_2_VISION, {"full": 40}, 32 * 2 * 8 * 128),
    ],
    ids=lambda value: value.get("model_type", "") if isinstance(value, dict) else "",
)
def test_layers_keep_what_their_class_keeps(config, expected, elements):
    reading = read(config)
    assert kinds(reading) == expected
    assert growing(reading) == elements


def test_states_of_recurrent_layers_are_fixed():
    assert shape_of(read(MAMBA2).model).recurrent_elements == 64 * 128 * 64 * 128
    assert shape_of(read(MAMBA).model).recurrent_elements == 32 * 1536 * 16
    assert shape_of(read(FALCON_H1).model).recurrent_elements == 44 * 24 * 128 * 256


@pytest.mark.parametrize(
    "config", [MAMBA2, FALCON_H1, BAMBA, DBRX, GPT_J], ids=lambda config: config["model_type"]
)
def test_such_a_model_is_sized(config):
    model = read(config).model
    sizing = size(
        Workload(model=model, quant=find_quant("BF16")), Machine(gpu=find_gpu("B200").gpu, gpu_count=8)
    )
    assert sizing.memory.fits
    assert sizing.speed is not None
    assert shape_of(model).blocks == model.num_layers


def test_a_hybrid_that_does_not_say_which_layers_attend_is_refused():
    """All of them as attention would be a guess, many times too large."""
    with pytest.raises(UnknownArchitecture) as caught:
        read(without(BAMBA, "attn_layer_indices"))
    assert caught.value.missing == ("layer_types",)
    words = ["mamba"] * 31 + ["full_attention"]
    assert kinds(read(without(BAMBA, "attn_layer_indices"), facts={"layer_types": words})) == {
        "mamba2": 31,
        "full": 1,
    }


def test_the_part_that_understands_is_read_of_a_model_that_speaks():
    """Qwen2.5-Omni-7B: text of Qwen2.5 7B, an encoder like Whisper's of 32 layers and 1280."""
    thinker = {
        "text_config": qwen2_5_7b(model_type="qwen2_5_omni_text"),
        "audio_config": {
            "model_type": "qwen2_5_omni_audio_encoder",
            "d_model": 1280,
            "encoder_layers": 32,
            "encoder_ffn_dim": 5120,
            "num_mel_bins": 128,
            "output_dim": 3584,
        },
    }
    reading = read({"model_type": "qwen2_5_omni", "thinker_config": thinker, "talker_config": {"x": 1}})
    # 32 x (4 x 1280^2 + 2 x 1280 x 5120), two convolutions of 3, and the way out.
    sound = 32 * 19_660_800 + 3 * 1280 * (1280 + 128) + 1280 * 3584
    assert reading.model.audio_params == sound
    assert reading.model.main_params == 7_615_616_512 + sound
    assert reading.model.modality == ("text", "audio")


def test_layers_that_look_at_images_are_said_to_keep_more():
    assert (
        "layers of cross attention keep keys and values of images, which are not counted"
        in read(LLAMA_3_2_VISION).notes
    )


def test_a_width_for_each_layer_must_be_there_for_each():
    assert read({**GEMMA_3N, "intermediate_size": [16384] * 20 + [8192] * 15}).model.mlp_widths
    with pytest.raises(UnreadableModel, match="a width above 0 for each layer"):
        read({**GEMMA_3N, "intermediate_size": [16384] * 34})


def test_llama_is_still_llama_beside_blocks_of_others():
    assert read(llama_8b(attn_config={"kv_n_heads": 1})).model.num_kv_heads == 8
