"""What is counted, stored and read; numbers are those of docs/models.md, "Traps"."""

import json

import pytest

from planner.catalogues.quants import find_quant
from planner.memory import cache_layout, is_native, state_bytes, weights
from planner.reading.safetensors import parse_index
from planner.reading.tensors import TensorClass, class_of
from planner.serving.shape import shape_of
from planner.workload import Engine, Method
from tests.planner.reading.published import (
    chatglm_6b,
    deepseek_v3,
    deepseek_v4_flash,
    gemma3_4b,
    gemma4_e4b,
    glm_5,
    gpt_oss_20b,
    granite_h_small,
    growing,
    jamba,
    lfm2_1_2b,
    llama_8b,
    mistral_7b,
    mixtral_8x7b,
    nemotron_3_nano,
    qwen2_5_7b,
    qwen3_0_6b,
    qwen3_5_35b,
    qwen3_5_tower,
    qwen3_30b_a3b,
    qwen3_next_80b,
    read,
    step_3_5,
    without,
)
from tests.planner.reading.tensorfiles import header_table


def test_draft_layers_are_stored_and_not_served():
    """Trap 30."""
    with_draft, without_draft = read(deepseek_v3()).model, read(deepseek_v3(num_nextn_predict_layers=0)).model
    assert (with_draft.mtp_layers, without_draft.mtp_layers) == (1, 0)
    assert with_draft.main_params == without_draft.main_params == pytest.approx(671_026_404_352, rel=1e-6)


def test_draft_layers_that_are_declared_and_not_stored_are_none():
    """Trap 30: MiniMax M2.5 declares three modules."""
    config = mixtral_8x7b(model_type="minimax_m2", num_mtp_modules=3, use_mtp=True)
    assert read(config).model.mtp_layers == 0


def test_draft_tensors_of_a_file_are_no_served_elements():
    """Trap 30: an extra layer behind the last one."""
    table = header_table(
        {
            "model.embed_tokens.weight": ("BF16", (100, 8)),
            "model.layers.0.mlp.up_proj.weight": ("BF16", (16, 8)),
            "model.layers.1.mlp.up_proj.weight": ("BF16", (16, 8)),
            "model.layers.1.eh_proj.weight": ("BF16", (8, 16)),
            "mtp.fc.weight": ("BF16", (8, 16)),
        }
    )
    config = llama_8b(
        num_hidden_layers=1, hidden_size=8, num_attention_heads=2, num_key_value_heads=2, vocab_size=100
    )
    reading = read(config, tensors=table)
    assert reading.model.main_params == 800 + 128
    assert reading.model.total_params == 800 + 4 * 128
    assert reading.model.main_params_basis == "exact: elements of its tensors"


def test_tied_embeddings_are_one_matrix_even_where_two_are_stored():
    """Trap 31: Qwen3 0.6B, 596.0M served and 751.6M stored."""
    model = read(qwen3_0_6b()).model
    apart = read(qwen3_0_6b(tie_word_embeddings=False)).model
    assert apart.main_params - model.main_params == 151936 * 1024
    table = header_table(
        {
            "model.embed_tokens.weight": ("BF16", (100, 8)),
            "lm_head.weight": ("BF16", (100, 8)),
            "model.norm.weight": ("BF16", (8,)),
        }
    )
    small = {
        "num_hidden_layers": 1,
        "hidden_size": 8,
        "num_attention_heads": 2,
        "num_key_value_heads": 2,
        "vocab_size": 100,
    }
    tied = read(qwen3_0_6b(**small, head_dim=4), tensors=table)
    assert (tied.model.main_params, tied.model.total_params) == (808, 1608)
    assert read(llama_8b(**small), tensors=table).model.main_params == 1608


def test_block_scales_are_no_parameters():
    """Trap 32: FP8 checkpoints list them as tensors."""
    table = header_table(
        {
            "model.layers.0.mlp.up_proj.weight": ("F8_E4M3", (256, 256)),
            "model.layers.0.mlp.up_proj.weight_scale_inv": ("F32", (2, 2)),
        }
    )
    reading = read(llama_8b(num_hidden_layers=1), tensors=table)
    assert reading.model.main_params == 65536
    assert reading.model.checkpoint_bytes == 65536 + 16


def test_packed_formats_are_counted_in_bytes_and_not_in_elements():
    """Trap 32: two 4-bit weights in a byte make half the elements."""
    table = header_table(
        {
            "model.layers.0.mlp.experts.0.up_proj.weight_packed": ("U8", (256, 128)),
            "model.layers.0.mlp.experts.0.up_proj.weight_scale": ("F8_E4M3", (256, 16)),
        }
    )
    assert table.is_packed
    reading = read(mixtral_8x7b(), tensors=table)
    assert reading.model.main_params == 46_702_792_704  # counted from the shape
    assert reading.model.total_params is None
    assert reading.model.checkpoint_bytes == 256 * 128 + 256 * 16


@pytest.mark.parametrize(
    ("config", "params", "off"),
    [
        (qwen3_5_35b(), 446_571_248, 2e-3),
        (gemma3_4b(), 419_816_304, 2e-3),
        # Pixtral of Mistral Small 3.2, with its merger of 2 x 2 patches.
        (
            {
                "model_type": "mistral3",
                "spatial_merge_size": 2,
                "text_config": llama_8b(
                    model_type="mistral",
                    hidden_size=5120,
                    head_dim=128,
                    num_attention_heads=32,
                    num_hidden_layers=40,
                    intermediate_size=32768,
                    vocab_size=131072,
                ),
                "vision_config": {
                    "model_type": "pixtral",
                    "hidden_size": 1024,
                    "intermediate_size": 4096,
                    "num_hidden_layers": 24,
                    "num_attention_heads": 16,
                    "head_dim": 64,
                    "image_size": 1540,
                    "patch_size": 14,
                },
            },
            438_958_080,
            2e-3,
        ),
    ],
    ids=["qwen3.5", "gemma3", "pixtral"],
)
def test_a_vision_tower_is_counted_with_its_projector(config, params, off):
    """Trap 33."""
    model = read(config).model
    assert model.vision_params == pytest.approx(params, rel=off)
    assert model.modality == ("text", "image")


def test_a_tower_of_another_family_is_counted_and_marked():
    """Trap 33."""
    reading = read(
        qwen3_5_35b(model_type="x", vision_config={**qwen3_5_tower(2048), "model_type": "x_vision"})
    )
    assert reading.model.vision_params > 400_000_000
    assert reading.notes == ("a vision tower of type x_vision: counted like most encoders",)


def test_a_tower_without_its_sizes_is_said_to_be_uncounted():
    """Trap 33."""
    tower = without(qwen3_5_tower(2048), "depth")
    reading = read(qwen3_5_35b(vision_config=tower))
    assert reading.model.vision_params is None
    assert "the vision tower is not counted: vision_config lacks its layers or widths" in reading.notes


def test_lookup_tables_are_counted_apart():
    """Trap 34: rows of 256 for each of 42 layers of Gemma E4B, never multiplied."""
    model = read(gemma4_e4b()).model
    assert model.ngram_table_params == 262144 * 256 * 42
    assert model.main_params == pytest.approx(7_941_100_832 - 169_330_688 - 308_756_768, rel=1e-4)
    assert model.active_params == pytest.approx(4_643_880_960, rel=1e-3)


def test_engram_tables_are_counted_apart():
    """Trap 34: two tables of DeepSeek V4.1, rows of 256."""
    fields = {"engram_num_embeddings": [384_011_425, 384_011_425], "engram_head_dim": 256}
    plain, tabled = read(deepseek_v4_flash()).model, read(deepseek_v4_flash(**fields)).model
    assert tabled.ngram_table_params == 2 * 384_011_425 * 256
    assert tabled.main_params - plain.main_params == tabled.ngram_table_params
    assert tabled.active_params == plain.active_params


@pytest.mark.parametrize(
    ("config", "active"),
    [
        (mixtral_8x7b(), 12_748_587_008),
        (qwen3_30b_a3b(), 3_041_656_832),
        (qwen3_next_80b(), 3_563_552_768),
        (gpt_oss_20b(), 3_607_265_280),
        (deepseek_v3(), 36_624_596_992),
        (glm_5(), 40_831_942_656),
        (nemotron_3_nano(), 3_227_369_472),
        (jamba(), 11_841_142_784),
        (granite_h_small(), 8_802_177_024),
        (step_3_5(), 11_458_969_600),
        (llama_8b(), 7_504_658_432),
    ],
)
def test_active_parameters_are_computed_and_not_taken_from_a_label(config, active):
    """Trap 35: layers, the experts of one token, and the output head; no input embedding."""
    assert read(config).model.active_params == pytest.approx(active, rel=5e-4)


def test_an_index_counts_no_file_that_it_does_not_name():
    """Trap 36: the same weights lie beside it in other formats."""
    index = parse_index(
        json.dumps(
            {
                "metadata": {"total_size": 13_761_264_768},
                "weight_map": {
                    "a": "model-00001-of-00002.safetensors",
                    "b": "model-00002-of-00002.safetensors",
                },
            }
        ),
        "index",
    )
    assert index.files == ("model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors")
    assert index.total_bytes == 13_761_264_768


@pytest.mark.parametrize(
    ("config", "dtype", "expert_bits", "other_bits"),
    [
        (llama_8b(), "bf16", None, 16.0),
        (without(llama_8b(dtype="float16"), "torch_dtype"), "fp16", None, 16.0),
        (llama_8b(torch_dtype="torch.float16"), "fp16", None, 16.0),
        (llama_8b(model_type="olmo2", torch_dtype="float32"), "fp32", None, 32.0),
        (llama_8b(torch_dtype="auto"), None, None, None),
        (deepseek_v3(), "fp8", 8.0, 8.0),
        (deepseek_v3(quantization_config=None), "bf16", 16.0, 16.0),
        (deepseek_v4_flash(), "fp8+fp4-experts", 4.25, 8.0),
        (gpt_oss_20b(), "mxfp4-experts+bf16", 4.25, 16.0),
        (
            llama_8b(quantization_config={"quant_method": "awq", "bits": 4, "group_size": 128}),
            "AWQ",
            None,
            4.25,
        ),
        (llama_8b(quantization_config={"quant_method": "gptq", "bits": 8}), "INT8", None, 8.25),
        (
            llama_8b(quantization_config={"quant_method": "bitsandbytes", "load_in_4bit": True}),
            "NF4",
            None,
            4.127,
        ),
        (llama_8b(quantization_config={"quant_method": "modelopt", "quant_algo": "FP8"}), "fp8", None, 8.0),
    ],
)
def test_the_stored_format_is_that_of_the_quantisation_and_else_the_dtype(
    config, dtype, expert_bits, other_bits
):
    """Trap 37."""
    model = read(config).model
    assert (model.native_dtype, model.native_expert_bits, model.native_other_bits) == (
        dtype,
        expert_bits,
        other_bits,
    )


def test_a_file_beside_the_configuration_may_state_the_format():
    """Trap 37: NVIDIA's copies keep it in hf_quant_config.json."""
    beside = {
        "producer": {"name": "modelopt"},
        "quantization": {"quant_algo": "NVFP4", "exclude_modules": ["lm_head"]},
    }
    reading = read(llama_8b(), quantisation=beside)
    assert (reading.quant, reading.model.native_other_bits) == ("NVFP4", 4.5)


def test_a_format_that_is_not_known_is_said_and_not_guessed():
    """Trap 37."""
    reading = read(llama_8b(quantization_config={"quant_method": "exl3", "bits": 3.0}))
    assert (reading.quant, reading.model.native_other_bits) == (None, None)
    assert (
        "quantization_config: the format 'exl3' is not known, nor the bits that are stored" in reading.notes
    )


def test_hyper_connections_widen_activations_and_hardly_add_parameters():
    """Trap 38."""
    wide, narrow = read(deepseek_v4_flash()).model, read(deepseek_v4_flash(hc_mult=None)).model
    assert (wide.hyper_connections, narrow.hyper_connections) == (4, None)
    assert 1.0 < wide.main_params / narrow.main_params < 1.001


@pytest.mark.parametrize("dtype", ["float32", None])
def test_the_recurrent_state_is_kept_in_32_bits_whatever_the_weights_are(dtype):
    """Trap 39: 30 layers x 524,288 elements x 4 bytes, and 24,576 x 2 of convolutions."""
    text = {**qwen3_5_35b()["text_config"], "mamba_ssm_dtype": dtype}
    block = {"quant_method": "fp8", "weight_block_size": [128, 128]}
    model = read(qwen3_5_35b(text_config=text, quantization_config=block)).model
    assert model.native_expert_bits == 8.0
    held = state_bytes(shape_of(model), 1.0, cache_layout(Engine.VLLM, Method.CALIBRATED))
    assert held == 30 * (524_288 * 4 + 24_576 * 2)


def test_lfm2_cuts_its_stated_width_to_two_thirds():
    """Trap 40: 12288 x 2/3 = 8192; 1,170,340,608 elements: https://huggingface.co/LiquidAI/LFM2-1.2B."""
    model = read(lfm2_1_2b()).model
    assert model.intermediate_size == 8192
    assert model.main_params == pytest.approx(1_170_340_608, rel=1e-4)
    # 10000 x 2/3 = 6666, rounded up to a multiple of 256.
    assert read(lfm2_1_2b(block_ff_dim=10000)).model.intermediate_size == 6912
    assert read(lfm2_1_2b(block_auto_adjust_ff_dim=False)).model.intermediate_size == 12288
    conv = next(group for group in model.attention_groups if group.kind == "short_conv")
    assert (conv.conv_kernel, conv.channels) == (3, 2048)


@pytest.mark.parametrize(
    ("config", "tokens"),
    [
        (llama_8b(), 131072),
        (chatglm_6b(), 131072),
        (step_3_5(), 262144),
        (without(jamba(n_ctx=262144), "max_position_embeddings"), 262144),
        (without(llama_8b(), "max_position_embeddings"), None),
    ],
)
def test_the_context_has_several_names_and_may_be_unknown(config, tokens):
    """Trap 41: the advertised context is on the card and not in the file."""
    model = read(config).model
    assert (model.max_position_embeddings, model.advertised_context) == (tokens, None)


@pytest.mark.parametrize(
    "rope",
    [
        {"rope_scaling": {"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768}},
        {"rope_parameters": {"rope_type": "default", "rope_theta": 1e6}},
        {
            "rope_parameters": {
                "full_attention": {"rope_theta": 1e6},
                "sliding_attention": {"rope_theta": 1e4},
            }
        },
    ],
)
def test_how_positions_are_rotated_takes_no_memory(rope):
    """Trap 42."""
    plain, rotated = read(mistral_7b()), read(mistral_7b(**rope))
    assert plain.model == rotated.model


@pytest.mark.parametrize(("kv_heads", "heads"), [(10, 40), (4, 28), (4, 12)])
def test_key_value_heads_need_not_divide_among_gpus(kv_heads, heads):
    """Trap 43: Phi-4, Qwen2.5-7B, Falcon 3; whether they do is a matter of the machine."""
    config = llama_8b(hidden_size=128 * heads, num_attention_heads=heads, num_key_value_heads=kv_heads)
    reading = read(config)
    assert shape_of(reading.model).cache_terms[0].kv_heads == kv_heads
    assert growing(reading) == 32 * 2 * kv_heads * 128


def test_the_published_format_takes_the_exact_bytes_of_its_tensors():
    table = header_table({"model.layers.0.mlp.up_proj.weight": ("BF16", (14336, 4096))})
    model = read(llama_8b(), tensors=table).model
    assert is_native(model, find_quant("BF16"))
    assert weights(model, find_quant("BF16")).total_bytes == 14336 * 4096 * 2


def test_bytes_are_told_apart_by_what_tensors_are_for():
    table = header_table(
        {
            "model.embed_tokens.weight": ("BF16", (10, 4)),
            "lm_head.weight": ("BF16", (10, 4)),
            "model.layers.0.self_attn.q_proj.weight": ("BF16", (4, 4)),
            "model.layers.0.mlp.experts.3.up_proj.weight": ("BF16", (4, 4)),
            "model.layers.0.mlp.shared_experts.up_proj.weight": ("BF16", (4, 4)),
            "model.layers.1.mlp.up_proj.weight": ("BF16", (4, 4)),
            "model.layers.1.input_layernorm.weight": ("BF16", (4,)),
            "model.visual.blocks.0.attn.qkv.weight": ("BF16", (4, 4)),
        }
    )
    sums = table.bytes_by_class
    assert sums[TensorClass.EMBEDDING] == sums[TensorClass.HEAD] == 80
    assert sums[TensorClass.ATTENTION] == sums[TensorClass.ROUTED_EXPERTS] == sums[TensorClass.TOWER] == 32
    assert sums[TensorClass.FEED_FORWARD] == 64
    assert sums[TensorClass.OTHER] == 8
    assert sum(sums.values()) == table.total_bytes
    stored = table.stored(read(llama_8b(num_hidden_layers=2)).model)
    assert stored.layer_bytes == (96, 40)
    assert (stored.routed_bytes, stored.tower_bytes) == (32, 32)
    assert (stored.embedding_bytes, stored.head_bytes) == (80, 80)
    # Read for every token: the head, attention, both MLPs and the norm; one row of the embedding only.
    assert stored.read_bytes == 80 + 32 + 64 + 8


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("model.layers.0.mlp.experts.gate_up_proj_blocks", TensorClass.ROUTED_EXPERTS),
        ("model.layers.0.block_sparse_moe.experts.7.w1.weight", TensorClass.ROUTED_EXPERTS),
        ("model.layers.0.block_sparse_moe.input_linear.weight", TensorClass.ROUTED_EXPERTS),
        ("model.layers.3.moe.up_proj.weight", TensorClass.ROUTED_EXPERTS),
        ("backbone.layers.1.mixer.experts.0.up_proj.weight", TensorClass.ROUTED_EXPERTS),
        ("blk.3.ffn_down_exps.weight", TensorClass.ROUTED_EXPERTS),
        ("model.layers.3.share_expert.up_proj.weight", TensorClass.FEED_FORWARD),
        ("model.layers.0.shared_mlp.input_linear.weight", TensorClass.FEED_FORWARD),
        ("blk.3.ffn_up_shexp.weight", TensorClass.FEED_FORWARD),
        ("blk.3.ffn_gate_inp.weight", TensorClass.FEED_FORWARD),
        ("backbone.layers.0.mixer.in_proj.weight", TensorClass.ATTENTION),
        ("blk.0.ssm_out.weight", TensorClass.ATTENTION),
        ("output.weight", TensorClass.HEAD),
        ("output_norm.weight", TensorClass.OTHER),
        ("per_layer_token_embd.weight", TensorClass.TABLE),
        ("mtp.layers.0.mlp.experts.1.up_proj.weight", TensorClass.DRAFT),
        ("blk.92.nextn.eh_proj.weight", TensorClass.DRAFT),
        ("model.visual.blocks.3.mlp.fc1.weight", TensorClass.TOWER),
        ("multi_modal_projector.linear_1.weight", TensorClass.TOWER),
    ],
)
def test_what_a_tensor_is_for_is_told_by_its_name(name, kind):
    assert class_of(name) is kind


def test_experts_under_names_that_are_not_known_are_not_read_as_if_all_were_active():
    table = header_table({"model.layers.0.clever.w.weight": ("BF16", (100, 100))})
    model = read(mixtral_8x7b(), tensors=table).model
    assert (model.stored, model.checkpoint_bytes) == (None, 20_000)


def test_qwen2_has_biases_that_no_field_names():
    assert read(qwen2_5_7b()).model.main_params == pytest.approx(7_615_616_512, rel=1e-9)


def _index(layers, total_bytes=16_060_522_496):
    names = [f"model.layers.{layer}.mlp.up_proj.weight" for layer in layers]
    weight_map = dict.fromkeys(["model.embed_tokens.weight", *names], "model.safetensors")
    return parse_index(
        json.dumps({"metadata": {"total_size": total_bytes}, "weight_map": weight_map}), "index"
    )


@pytest.mark.parametrize(
    ("layers", "words"),
    [
        ([*range(7), *range(8, 32)], "its files hold nothing of layer 7, of 32 stated"),
        (range(26), "nothing of layer 26, 27, 28, 29 and 2 more, of 32 stated"),
        (range(40), "its files hold layer 32, 33, 34, 35 and 4 more, and 32 layers are stated"),
    ],
)
def test_layers_that_files_lack_or_have_too_many_are_said(layers, words):
    assert any(words in note for note in read(llama_8b(), index=_index(layers)).notes)


def test_files_with_the_layers_that_are_stated_leave_no_doubt():
    assert read(llama_8b(), index=_index(range(32))).notes == ()
    drafting = read(deepseek_v3(), index=_index(range(62), 688_586_727_753)).notes
    assert not any("files hold" in note for note in drafting)  # one draft layer is declared
    assert read(llama_8b()).notes == ()


def test_layers_of_tensors_are_held_against_the_configuration():
    tensors = {"model.embed_tokens.weight": ("BF16", (100, 8))}
    tensors |= {f"model.layers.{layer}.mlp.up_proj.weight": ("BF16", (16, 8)) for layer in (0, 2)}
    reading = read(llama_8b(num_hidden_layers=3), tensors=header_table(tensors))
    assert any("nothing of layer 1, of 3 stated" in note for note in reading.notes)


@pytest.mark.parametrize(
    ("total_bytes", "words"),
    [(10**15, "states 1,000,000.00 GB, 996,"), (10**8, "states 0.10 GB, 0.1 bits a parameter")],
)
def test_an_index_whose_total_cannot_be_is_doubted(total_bytes, words):
    notes = read(llama_8b(), index=_index(range(32), total_bytes)).notes
    assert any(words in note and "not the size of this model" in note for note in notes)


@pytest.mark.parametrize("block", ["fp8", ["fp8"], 8])
def test_a_quantisation_block_that_is_none_is_said(block):
    reading = read(llama_8b(quantization_config=block))
    assert reading.model.native_dtype == "bf16"
    assert any("quantization_config is no object" in note for note in reading.notes)
    assert read(llama_8b(quantization_config={})).notes == ()
