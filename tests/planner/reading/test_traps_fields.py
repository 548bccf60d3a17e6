"""Where the fields of a configuration are; numbers are those of docs/models.md, "Traps"."""

import json
import time

import pytest

from planner.configs import read_config, read_config_text
from planner.errors import UnknownArchitecture, UnreadableModel
from tests.planner.reading.published import (
    chatglm_6b,
    command_a,
    deepseek_v3,
    gemma3_4b,
    growing,
    kinds,
    llama_8b,
    nemotron_3_ultra,
    qwen3_5_35b,
    qwen3_5_35b_text,
    read,
    windowed,
    without,
)


@pytest.mark.parametrize("level", ["text_config", "language_config", "llm_config"])
def test_the_text_model_is_found_inside_a_wrapper_and_flat(level):
    """Trap 1: the same family is published nested and flat."""
    nested = read({"model_type": "qwen3_5_moe", level: qwen3_5_35b_text(), "tie_word_embeddings": False})
    flat = read(qwen3_5_35b_text())
    assert nested.model.attention_groups == flat.model.attention_groups
    assert nested.model.main_params == flat.model.main_params
    assert flat.model.main_params == pytest.approx(35_107_181_936 - 446_571_248, rel=2e-5)


def test_the_text_level_wins_where_levels_disagree():
    """Trap 1: a wrapper repeats fields of its own that are not those of its text model."""
    text = llama_8b(dtype="bfloat16", tie_word_embeddings=False)
    del text["torch_dtype"]
    wrapper = {"model_type": "llava", "dtype": "float32", "tie_word_embeddings": True, "vocab_size": 7}
    model = read({**wrapper, "hidden_size": 1, "text_config": text}).model
    assert (model.native_dtype, model.tied_embeddings, model.vocab_size) == ("bf16", False, 128256)
    assert model.main_params == 8_030_261_248


def test_a_block_of_text_fields_that_is_empty_or_no_block_is_passed_over():
    """Trap 1."""
    for junk in ({}, None, [], "text"):
        assert read(llama_8b(text_config=junk)).model.main_params == 8_030_261_248


@pytest.mark.parametrize("inside", [True, False])
def test_quantisation_is_found_at_either_level(inside):
    """Trap 2: Kimi K2.5 states it inside; read at the top only, a 4-bit model becomes a 16-bit one."""
    weights = {"num_bits": 4, "type": "int", "group_size": 32, "strategy": "group"}
    block = {
        "quant_method": "compressed-tensors",
        "format": "pack-quantized",
        "config_groups": {"group_0": {"weights": weights, "targets": ["Linear"]}},
        "ignore": [
            "re:.*self_attn.*",
            "re:.*shared_experts.*",
            "re:.*mlp\\.(gate|up|down)_proj.*",
            "lm_head",
        ],
    }
    text = {**deepseek_v3(model_type="kimi_k2"), "quantization_config": block if inside else None}
    outer = {} if inside else {"quantization_config": block}
    reading = read({"model_type": "kimi_k25", "text_config": text, **outer})
    # 4 bits and a 16-bit scale for each 32 weights.
    assert reading.model.native_expert_bits == 4.5
    assert reading.model.native_other_bits == 16.0
    assert reading.quant == "GPTQ-4"


def test_what_a_publisher_leaves_out_comes_from_the_class():
    """Trap 3: Gemma 3 4B states neither words nor heads nor context nor which layers slide."""
    reading = read(gemma3_4b())
    model = reading.model
    assert kinds(reading) == {"sliding": 29, "full": 5}
    assert (model.vocab_size, model.num_attention_heads, model.num_kv_heads, model.head_dim) == (
        262208,
        8,
        4,
        256,
    )
    assert (model.max_position_embeddings, model.tied_embeddings) == (131072, True)
    assert model.main_params == pytest.approx(4_300_079_472, rel=1e-3)
    assert any(note.startswith("not stated, taken from the class: ") for note in reading.notes)
    assert "vocab_size" in " ".join(reading.notes)


@pytest.mark.parametrize(
    ("config", "tied"),
    [
        (without(command_a(), "tie_word_embeddings"), True),
        (without(llama_8b(), "tie_word_embeddings"), False),
        (command_a(tie_word_embeddings=False), False),
        (
            {
                "model_type": "mistral3",
                "tie_word_embeddings": True,
                "text_config": without(llama_8b(model_type="mistral"), "tie_word_embeddings"),
            },
            False,
        ),
    ],
    ids=["cohere", "llama", "stated", "wrapper-of-mistral"],
)
def test_tied_embeddings_default_by_class(config, tied):
    """Trap 3: true for Cohere, false for Llama, and a wrapper's own default is not its text model's."""
    assert read(config).model.tied_embeddings is tied


def test_command_a_recounts_with_its_silent_defaults():
    """Trap 3."""
    assert read(command_a()).model.main_params == pytest.approx(111_057_580_032, rel=1e-5)


def test_layers_are_counted_where_no_number_is_stated():
    """Trap 4: Nemotron 3 Ultra lists its layers and has no num_hidden_layers."""
    config = nemotron_3_ultra()
    assert "num_hidden_layers" not in config
    reading = read(config)
    assert reading.model.num_layers == 108
    assert reading.model.attention_free_layers == 48
    assert kinds(reading) == {"mamba2": 48, "full": 12}
    assert reading.model.main_params == pytest.approx(549_308_968_960, rel=1e-4)


def test_chatglm_names_everything_differently():
    """Trap 4."""
    model = read(chatglm_6b()).model
    assert (model.num_layers, model.num_kv_heads, model.head_dim) == (40, 2, 128)
    assert (model.vocab_size, model.intermediate_size) == (151552, 13696)
    # 9,399,951,360 elements: https://huggingface.co/zai-org/glm-4-9b-chat
    assert model.main_params == pytest.approx(9_399_951_360, rel=1e-4)


def test_infinity_is_read_as_its_writers_write_it():
    """Trap 5: Nemotron's time_step_limit; strict parsers refuse the whole file."""
    text = json.dumps(nemotron_3_ultra(time_step_limit=[0.0, float("inf")]))
    assert "Infinity" in text
    config = read_config_text(text)
    assert config["time_step_limit"][1] == float("inf")
    assert read(config).model.num_layers == 108


def test_infinity_where_a_number_is_needed_is_refused():
    """Trap 5."""
    with pytest.raises(UnreadableModel, match=r"hidden_size is inf; it must be a whole number"):
        read(llama_8b(hidden_size=float("inf")))


def test_a_copy_without_its_tower_says_so():
    """Trap 6: the architecture promises images, and the copy holds no vision_config."""
    whole, trimmed = read(qwen3_5_35b()), read(without(qwen3_5_35b(), "vision_config"))
    assert whole.model.main_params == pytest.approx(35_107_181_936, rel=1e-4)
    assert whole.model.vision_params == pytest.approx(446_571_248, rel=2e-3)
    assert trimmed.model.vision_params is None
    assert trimmed.notes == ("no vision_config: if there is a vision tower, it is not counted",)


def test_a_copy_without_dtype_knows_no_bits():
    """Trap 6: nothing is guessed where neither dtype nor a quantisation block says it."""
    model = read(without(llama_8b(), "torch_dtype")).model
    assert (model.native_dtype, model.native_other_bits) == (None, None)


def test_a_list_of_every_module_is_read_in_no_time():
    """Trap 7: per-module lists make files of megabytes."""
    modules = {
        f"model.language_model.layers.{layer}.mlp.experts.{expert}.{matrix}_proj": {
            "quant_algo": "NVFP4",
            "group_size": 16,
        }
        for layer in range(40)
        for expert in range(256)
        for matrix in ("gate", "up", "down")
    }
    block = {"quant_method": "modelopt", "quant_algo": "MIXED_PRECISION", "quantized_layers": modules}
    text = json.dumps(qwen3_5_35b(quantization_config=block))
    assert len(text) > 3_000_000
    start = time.process_time()
    reading = read(read_config_text(text))
    assert time.process_time() - start < 3.0
    assert reading.quant == "NVFP4"
    assert (reading.model.native_expert_bits, reading.model.native_other_bits) == (4.5, 16.0)


def test_a_text_larger_than_any_configuration_is_refused_unread():
    """Trap 7."""
    with pytest.raises(UnreadableModel, match=r"too many for a config\.json"):
        read_config_text(" " * (32 * 2**20 + 1))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "not JSON"),
        ("<!DOCTYPE html>", "not JSON"),
        ("[1, 2]", "no JSON object"),
        ("null", "no JSON object"),
        ("[" * 100_000, "nested too deeply"),
        ('{"a":' * 100_000, "nested too deeply"),
    ],
)
def test_a_text_that_is_no_configuration_is_refused_in_one_line(text, why):
    with pytest.raises(UnreadableModel, match=why) as caught:
        read_config_text(text, "here.json")
    assert str(caught.value).startswith("here.json: ")
    assert "\n" not in str(caught.value)


def test_another_json_file_is_no_configuration():
    with pytest.raises(UnreadableModel, match="no configuration of a language model"):
        read({"version": "1.0", "truncation": None, "added_tokens": []})


def test_every_missing_fact_is_named_at_once_and_accepted_as_an_option():
    config = {
        "model_type": "brand_new",
        "num_hidden_layers": 2,
        "intermediate_size": 64,
        "hidden_act": "silu",
    }
    with pytest.raises(UnknownArchitecture) as caught:
        read(config)
    assert caught.value.missing == ("hidden_size", "vocab_size", "num_attention_heads")
    assert "--fact hidden_size=VALUE --fact vocab_size=VALUE" in str(caught.value)
    reading = read(config, facts={"hidden_size": 32, "vocab_size": 100, "num_attention_heads": 4})
    # 2 x 100 x 32 words, 2 layers of 4 x 32 x 32 attention, 3 x 32 x 64 MLP, two norms, and a last norm.
    assert reading.model.main_params == 6400 + 2 * (4096 + 6144 + 64) + 32
    assert "stated by the user: hidden_size=32, num_attention_heads=4, vocab_size=100" in reading.notes


def test_an_unknown_type_that_does_not_say_whether_its_embeddings_are_tied_is_marked():
    reading = read(without(llama_8b(model_type="brand_new", hidden_act="silu"), "tie_word_embeddings"))
    assert (
        "tie_word_embeddings is not stated: embedding and head are counted as two matrices" in reading.notes
    )
    assert not reading.model.tied_embeddings


def test_an_unknown_type_with_familiar_fields_is_read_and_marked():
    reading = read(llama_8b(model_type="brand_new", hidden_act="silu"))
    assert reading.model.main_params == 8_030_261_248
    assert growing(reading) == 65_536
    assert reading.notes == ("model_type 'brand_new' is not known: read as plain grouped-query attention",)


@pytest.mark.parametrize(
    "field",
    [
        {"kv_lora_rank": 512},
        {"mamba_d_state": 16},
        {"linear_num_key_heads": 16},
        {"compress_ratios": [4, 4]},
        {"layers_block_type": ["mamba"]},
        {"conv_L_cache": 3},
        {"full_attention_interval": 4},
        {"index_topk": 2048},
        {"block_types": ["recurrent", "recurrent", "attention"]},
        {"lru_width": 2560},
        {"attention_window_size": 2048},
        {"kv_share_layers": 4},
        {"decoder_retention_heads": 8},
        {"state_size": 16},
    ],
    ids=lambda field: next(iter(field)),
)
def test_an_unknown_type_with_fields_of_another_kind_is_refused_not_guessed(field):
    with pytest.raises(UnknownArchitecture, match=r"model_type 'brand_new' is not known and has") as caught:
        read(llama_8b(model_type="brand_new", hidden_act="silu", **field))
    assert caught.value.missing == ("model_type",)


@pytest.mark.parametrize(
    "kind",
    ["bert", "distilbert", "xlm-roberta", "modernbert", "t5", "mt5", "clip_text_model", "whisper", "bart"],
)
def test_encoders_are_refused_and_get_no_speed(kind):
    with pytest.raises(UnreadableModel, match=f"model_type '{kind}' is an encoder") as caught:
        read(llama_8b(model_type=kind, hidden_act="silu"))
    assert "\n" not in str(caught.value)


def test_a_pair_of_encoder_and_decoder_is_refused_whatever_it_is_called():
    with pytest.raises(UnreadableModel, match="a pair of encoder and decoder"):
        read(llama_8b(model_type="brand_new", hidden_act="silu", is_encoder_decoder=True))
    assert read(llama_8b(is_encoder_decoder=False)).model.num_layers == 32


@pytest.mark.parametrize("kind", ["rwkv", "rwkv7", "recurrent_gemma", "retnet", "xlstm"])
def test_recurrences_that_are_not_known_are_refused_with_heads_and_gate_too(kind):
    with pytest.raises(
        UnknownArchitecture, match=f"model_type '{kind}' is not known and keeps a recurrent state"
    ) as caught:
        read(llama_8b(model_type=kind, hidden_act="silu"))
    assert caught.value.missing == ("model_type",)
    # a stated type that is built alike wins
    alike = read_config(llama_8b(model_type=kind), name="x", facts={"model_type": "llama"})
    assert alike.model.num_layers == 32


@pytest.mark.parametrize(
    "name", ["kv_lora_rank", "n_routed_experts", "first_k_dense_replace", "n_shared_experts"]
)
def test_a_fact_that_other_fields_speak_of_is_asked_for(name):
    """DeepSeek V3 without it was read as full attention, as a dense model, with experts in every layer."""
    left = without(deepseek_v3(), name)
    with pytest.raises(UnknownArchitecture, match=name) as caught:
        read(left)
    assert caught.value.missing == (name,)
    reading = read_config(left, name="x", facts={name: deepseek_v3()[name]})
    assert growing(reading) == 35_136
    assert reading.model.main_params == pytest.approx(671_026_404_352, rel=1e-6)


def test_null_says_that_a_model_has_none():
    assert read(deepseek_v3(n_shared_experts=None)).model.moe.shared_experts == 0
    assert read(deepseek_v3(n_routed_experts=None)).model.moe is None


def test_an_unknown_type_is_read_as_the_one_it_is_built_like():
    config = deepseek_v3(model_type="brand_new")
    reading = read_config(config, name="x", facts={"model_type": "deepseek_v3"})
    assert growing(reading) == 35_136
    assert reading.model.main_params == pytest.approx(671_026_404_352, rel=1e-6)


def test_an_unknown_activation_leaves_open_whether_there_is_a_gate():
    with pytest.raises(UnknownArchitecture, match="ffn_matrices"):
        read(llama_8b(model_type="brand_new"))
    # A stated total decides it: with two matrices a layer has 4096 x 14336 elements less.
    for params in (8_030_000_000, 8_030_000_000 - 32 * 4096 * 14336):
        assert read(llama_8b(model_type="brand_new"), params=params).model.main_params == params
    assert read(llama_8b(model_type="brand_new"), params=8_030_000_000).model.mlp_matrices == 3
    assert read(llama_8b(model_type="brand_new"), params=6_151_000_000).model.mlp_matrices == 2


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("num_hidden_layers", 0),
        ("num_hidden_layers", -32),
        ("num_hidden_layers", 10**9),
        ("num_hidden_layers", "32"),
        ("num_hidden_layers", True),
        ("num_hidden_layers", 32.5),
        ("hidden_size", float("nan")),
        ("hidden_size", 10**400),
        ("vocab_size", -1),
        ("num_attention_heads", 33),
        ("num_key_value_heads", 5),
        ("num_key_value_heads", 0),
        ("intermediate_size", [14336] * 31),
        ("max_position_embeddings", -1),
        ("layer_types", ["full_attention"] * 31),
        ("layer_types", ["full_attention"] * 31 + ["quantum_attention"]),
        ("layer_types", [None] * 32),
        ("layer_types", {"0": "full_attention"}),
    ],
)
def test_a_value_that_cannot_be_is_refused_with_its_name(field, value):
    with pytest.raises(UnreadableModel, match=field.split("_")[0]) as caught:
        read(llama_8b(**{field: value}))
    assert len(str(caught.value)) < 400
    assert "\n" not in str(caught.value)


def test_a_whole_number_written_with_a_point_is_one():
    assert read(llama_8b(hidden_size=4096.0)).model.main_params == 8_030_261_248


def test_windows_of_the_sample_are_what_they_say():
    assert windowed(read(gemma3_4b())) == {1024.0: 29 * 4 * 512}
