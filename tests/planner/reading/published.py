"""
Configurations of public models, composed for the tests: their true values, only the fields that count.

Sources: the repositories named beside each; the exact element counts are those of the catalogue.
"""

from math import inf
from typing import Any

from planner.configs import ModelReading, read_config
from planner.serving.shape import shape_of

Fields = dict[str, Any]


def read(config: Fields, **more: Any) -> ModelReading:
    """Read a configuration as one of a model that has no other name."""
    return read_config(config, name="test/model", **more)


def growing(reading: ModelReading) -> float:
    """Cached elements that each further token adds, while no window limits them."""
    return sum(t.elements_per_token for t in shape_of(reading.model).cache_terms if t.window_tokens == inf)


def windowed(reading: ModelReading) -> dict[float, float]:
    """Cached elements of a token by the window that limits them."""
    terms = shape_of(reading.model).cache_terms
    return {t.window_tokens: t.elements_per_token for t in terms if t.window_tokens < inf}


def kinds(reading: ModelReading) -> dict[str, int]:
    """Layers by what they keep."""
    return {str(group.kind): group.layers for group in reading.model.attention_groups}


def llama_8b(**more: Any) -> Fields:
    """meta-llama/Llama-3.1-8B: no head_dim, 4096 / 32 = 128."""
    return {
        "model_type": "llama",
        "hidden_size": 4096,
        "num_hidden_layers": 32,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "intermediate_size": 14336,
        "vocab_size": 128256,
        "max_position_embeddings": 131072,
        "tie_word_embeddings": False,
        "torch_dtype": "bfloat16",
        **more,
    }


def mistral_7b(**more: Any) -> Fields:
    """mistralai/Mistral-7B-v0.1: every layer slides over 4096 tokens."""
    fields = llama_8b(model_type="mistral", vocab_size=32000, max_position_embeddings=32768)
    return {**fields, "sliding_window": 4096, **more}


def mixtral_8x7b(**more: Any) -> Fields:
    """mistralai/Mixtral-8x7B-v0.1."""
    moe = {"num_local_experts": 8, "num_experts_per_tok": 2}
    return {**mistral_7b(model_type="mixtral", sliding_window=None), **moe, **more}


def qwen2_5_7b(**more: Any) -> Fields:
    """Qwen/Qwen2.5-7B: biases that no field names, a window that is switched off."""
    return {
        "model_type": "qwen2",
        "hidden_size": 3584,
        "num_hidden_layers": 28,
        "num_attention_heads": 28,
        "num_key_value_heads": 4,
        "intermediate_size": 18944,
        "vocab_size": 152064,
        "max_position_embeddings": 32768,
        "sliding_window": 131072,
        "use_sliding_window": False,
        "max_window_layers": 28,
        "tie_word_embeddings": False,
        **more,
    }


def qwen3_0_6b(**more: Any) -> Fields:
    """Qwen/Qwen3-0.6B: heads x head_dim is twice the hidden size; one matrix in and out."""
    return {
        "model_type": "qwen3",
        "hidden_size": 1024,
        "num_hidden_layers": 28,
        "num_attention_heads": 16,
        "num_key_value_heads": 8,
        "head_dim": 128,
        "intermediate_size": 3072,
        "vocab_size": 151936,
        "max_position_embeddings": 40960,
        "tie_word_embeddings": True,
        "torch_dtype": "bfloat16",
        **more,
    }


def qwen3_30b_a3b(**more: Any) -> Fields:
    """Qwen/Qwen3-30B-A3B: intermediate_size is stated and used nowhere."""
    return {
        "model_type": "qwen3_moe",
        "hidden_size": 2048,
        "num_hidden_layers": 48,
        "num_attention_heads": 32,
        "num_key_value_heads": 4,
        "head_dim": 128,
        "intermediate_size": 6144,
        "moe_intermediate_size": 768,
        "num_experts": 128,
        "num_experts_per_tok": 8,
        "decoder_sparse_step": 1,
        "mlp_only_layers": [],
        "norm_topk_prob": True,
        "vocab_size": 151936,
        "max_position_embeddings": 40960,
        "tie_word_embeddings": False,
        **more,
    }


def qwen3_5_35b_text(**more: Any) -> Fields:
    """Text part of Qwen/Qwen3.5-35B-A3B: 30 linear layers, 10 full ones."""
    return {
        "model_type": "qwen3_5_moe_text",
        "hidden_size": 2048,
        "num_hidden_layers": 40,
        "num_attention_heads": 16,
        "num_key_value_heads": 2,
        "head_dim": 256,
        "full_attention_interval": 4,
        "linear_num_key_heads": 16,
        "linear_num_value_heads": 32,
        "linear_key_head_dim": 128,
        "linear_value_head_dim": 128,
        "linear_conv_kernel_dim": 4,
        "attn_output_gate": True,
        "num_experts": 256,
        "num_experts_per_tok": 8,
        "moe_intermediate_size": 512,
        "shared_expert_intermediate_size": 512,
        "mtp_num_hidden_layers": 1,
        "mamba_ssm_dtype": "float32",
        "vocab_size": 248320,
        "max_position_embeddings": 262144,
        "dtype": "bfloat16",
        **more,
    }


def qwen3_5_tower(hidden: int) -> Fields:
    """Vision tower of the Qwen3.5 family, which projects into the width of its language model."""
    return {
        "model_type": "qwen3_5_moe",
        "depth": 27,
        "hidden_size": 1152,
        "intermediate_size": 4304,
        "num_heads": 16,
        "num_position_embeddings": 2304,
        "out_hidden_size": hidden,
        "patch_size": 16,
        "spatial_merge_size": 2,
        "temporal_patch_size": 2,
        "deepstack_visual_indexes": [],
    }


def qwen3_5_35b(**more: Any) -> Fields:
    """Qwen/Qwen3.5-35B-A3B with its vision tower."""
    return {
        "model_type": "qwen3_5_moe",
        "architectures": ["Qwen3_5MoeForConditionalGeneration"],
        "text_config": qwen3_5_35b_text(),
        "vision_config": qwen3_5_tower(2048),
        "tie_word_embeddings": False,
        **more,
    }


def qwen3_next_80b(**more: Any) -> Fields:
    """Qwen/Qwen3-Next-80B-A3B-Instruct."""
    fields = qwen3_5_35b_text(model_type="qwen3_next", num_hidden_layers=48, num_experts=512)
    return {**fields, "num_experts_per_tok": 10, "vocab_size": 151936, **more}


def deepseek_v3(**more: Any) -> Fields:
    """deepseek-ai/DeepSeek-V3."""
    return {
        "model_type": "deepseek_v3",
        "hidden_size": 7168,
        "num_hidden_layers": 61,
        "num_attention_heads": 128,
        "num_key_value_heads": 128,
        "kv_lora_rank": 512,
        "q_lora_rank": 1536,
        "qk_nope_head_dim": 128,
        "qk_rope_head_dim": 64,
        "v_head_dim": 128,
        "intermediate_size": 18432,
        "moe_intermediate_size": 2048,
        "n_routed_experts": 256,
        "n_shared_experts": 1,
        "num_experts_per_tok": 8,
        "first_k_dense_replace": 3,
        "moe_layer_freq": 1,
        "n_group": 8,
        "topk_group": 4,
        "topk_method": "noaux_tc",
        "scoring_func": "sigmoid",
        "num_nextn_predict_layers": 1,
        "vocab_size": 129280,
        "max_position_embeddings": 163840,
        "tie_word_embeddings": False,
        "torch_dtype": "bfloat16",
        "quantization_config": {"quant_method": "fp8", "fmt": "e4m3", "weight_block_size": [128, 128]},
        **more,
    }


def deepseek_v4_flash(**more: Any) -> Fields:
    """deepseek-ai/DeepSeek-V4-Flash: one latent is key and value at once, compressed in most layers."""
    return {
        "model_type": "deepseek_v4",
        "hidden_size": 4096,
        "num_hidden_layers": 43,
        "num_attention_heads": 64,
        "num_key_value_heads": 1,
        "head_dim": 512,
        "qk_rope_head_dim": 64,
        "q_lora_rank": 1024,
        "o_lora_rank": 1024,
        "o_groups": 8,
        "compress_ratios": [0, 0, *[4, 128] * 20, 4, 0],  # the last one is the draft layer's
        "sliding_window": 128,
        "index_n_heads": 64,
        "index_head_dim": 128,
        "index_topk": 512,
        "n_routed_experts": 256,
        "n_shared_experts": 1,
        "num_experts_per_tok": 6,
        "moe_intermediate_size": 2048,
        "num_hash_layers": 3,
        "num_nextn_predict_layers": 1,
        "hc_mult": 4,
        "vocab_size": 129280,
        "max_position_embeddings": 1048576,
        "expert_dtype": "fp4",
        "quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]},
        **more,
    }


def glm_5(**more: Any) -> Fields:
    """zai-org/GLM-5: head_dim says 64, keys are 256 wide and values too."""
    return {
        **deepseek_v3(model_type="glm_moe_dsa", hidden_size=6144, num_hidden_layers=78),
        "num_attention_heads": 64,
        "num_key_value_heads": 64,
        "head_dim": 64,
        "q_lora_rank": 2048,
        "qk_nope_head_dim": 192,
        "v_head_dim": 256,
        "index_n_heads": 32,
        "index_head_dim": 128,
        "index_topk": 2048,
        "intermediate_size": 12288,
        "vocab_size": 154880,
        "max_position_embeddings": 202752,
        "quantization_config": None,
        **more,
    }


def kimi_linear(**more: Any) -> Fields:
    """The shape of moonshotai/Kimi-K3's text part; its layer lists count from 1."""
    full = [*range(4, 94, 4), 93]
    return {
        **deepseek_v3(model_type="kimi_linear", num_hidden_layers=93, quantization_config=None),
        "num_attention_heads": 96,
        "num_key_value_heads": 96,
        "n_routed_experts": None,
        "n_shared_experts": None,
        "num_experts_per_tok": None,
        "num_experts": 896,
        "num_experts_per_token": 16,
        "num_shared_experts": 2,
        "moe_intermediate_size": 3072,
        "routed_expert_hidden_size": 3584,
        "intermediate_size": 33792,
        "first_k_dense_replace": 1,
        "num_nextn_predict_layers": 0,
        "mla_use_output_gate": True,
        "linear_attn_config": {
            "kda_layers": [number for number in range(1, 94) if number not in full],
            "full_attn_layers": full,
            "num_heads": 96,
            "head_dim": 128,
            "short_conv_kernel_size": 4,
            "use_full_rank_gate": True,
        },
        "vocab_size": 163840,
        **more,
    }


def gpt_oss_20b(**more: Any) -> Fields:
    """openai/gpt-oss-20b: heads of 64, layers slide in turns, the first one does."""
    return {
        "model_type": "gpt_oss",
        "hidden_size": 2880,
        "num_hidden_layers": 24,
        "num_attention_heads": 64,
        "num_key_value_heads": 8,
        "head_dim": 64,
        "sliding_window": 128,
        "intermediate_size": 2880,
        "num_local_experts": 32,
        "num_experts_per_tok": 4,
        "vocab_size": 201088,
        "max_position_embeddings": 131072,
        "tie_word_embeddings": False,
        "quantization_config": {
            "quant_method": "mxfp4",
            "modules_to_not_convert": ["model.layers.*.self_attn", "model.layers.*.mlp.router", "lm_head"],
        },
        **more,
    }


def gemma3_4b(**more: Any) -> Fields:
    """google/gemma-3-4b-it as published: words, heads, context and pattern are defaults of its class."""
    return {
        "model_type": "gemma3",
        "architectures": ["Gemma3ForConditionalGeneration"],
        "text_config": {
            "model_type": "gemma3_text",
            "hidden_size": 2560,
            "intermediate_size": 10240,
            "num_hidden_layers": 34,
            "sliding_window": 1024,
        },
        "vision_config": {
            "model_type": "siglip_vision_model",
            "hidden_size": 1152,
            "image_size": 896,
            "intermediate_size": 4304,
            "num_attention_heads": 16,
            "num_hidden_layers": 27,
            "patch_size": 14,
        },
        "torch_dtype": "bfloat16",
        **more,
    }


def gemma4_31b(**more: Any) -> Fields:
    """Text part of google/gemma-4-31b-it: full layers have fewer, wider heads and one projection for both."""
    return {
        "model_type": "gemma4_text",
        "hidden_size": 5376,
        "num_hidden_layers": 60,
        "num_attention_heads": 32,
        "num_key_value_heads": 16,
        "head_dim": 256,
        "num_global_key_value_heads": 4,
        "global_head_dim": 512,
        "attention_k_eq_v": True,
        "sliding_window": 1024,
        "intermediate_size": 21504,
        "vocab_size": 262144,
        "max_position_embeddings": 262144,
        "hidden_size_per_layer_input": 0,
        **more,
    }


def gemma4_26b(**more: Any) -> Fields:
    """Text part of google/gemma-4-26b-a4b-it: experts beside a dense block in every layer."""
    fields = gemma4_31b(hidden_size=2816, num_hidden_layers=30, num_attention_heads=16)
    return {
        **fields,
        "num_key_value_heads": 8,
        "num_global_key_value_heads": 2,
        "intermediate_size": 2112,
        "moe_intermediate_size": 704,
        "num_experts": 128,
        "top_k_experts": 8,
        "enable_moe_block": True,
        **more,
    }


def gemma4_e4b(**more: Any) -> Fields:
    """Text part of google/gemma-4-e4b-it: the last 18 layers read the cache of earlier ones."""
    fields = gemma4_31b(hidden_size=2560, num_hidden_layers=42, num_attention_heads=8)
    return {
        **fields,
        "num_key_value_heads": 2,
        "num_global_key_value_heads": None,
        "attention_k_eq_v": False,
        "sliding_window": 512,
        "num_kv_shared_layers": 18,
        "intermediate_size": 10240,
        "max_position_embeddings": 131072,
        "hidden_size_per_layer_input": 256,
        "vocab_size_per_layer_input": 262144,
        **more,
    }


def llama4_scout(**more: Any) -> Fields:
    """meta-llama/Llama-4-Scout-17B-16E: three layers see their chunk, the fourth sees all."""
    return {
        "model_type": "llama4_text",
        "hidden_size": 5120,
        "num_hidden_layers": 48,
        "num_attention_heads": 40,
        "num_key_value_heads": 8,
        "head_dim": 128,
        "attention_chunk_size": 8192,
        "intermediate_size": 8192,
        "intermediate_size_mlp": 16384,
        "num_local_experts": 16,
        "num_experts_per_tok": 1,
        "interleave_moe_layer_step": 1,
        "vocab_size": 202048,
        "max_position_embeddings": 10485760,
        "tie_word_embeddings": False,
        **more,
    }


def nemotron_3_nano(**more: Any) -> Fields:
    """nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B: a layer is a mixer or experts, never both."""
    return {
        "model_type": "nemotron_h",
        "hidden_size": 2688,
        "num_hidden_layers": 52,
        "hybrid_override_pattern": "MEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEMEM*EMEMEMEME",
        "num_attention_heads": 32,
        "num_key_value_heads": 2,
        "head_dim": 128,
        "mamba_num_heads": 64,
        "mamba_head_dim": 64,
        "ssm_state_size": 128,
        "n_groups": 8,
        "conv_kernel": 4,
        "n_routed_experts": 128,
        "num_experts_per_tok": 6,
        "moe_intermediate_size": 1856,
        "n_shared_experts": 1,
        "moe_shared_expert_intermediate_size": 3712,
        "intermediate_size": 1856,
        "mlp_hidden_act": "relu2",
        "vocab_size": 131072,
        "max_position_embeddings": 262144,
        "tie_word_embeddings": False,
        "torch_dtype": "bfloat16",
        **more,
    }


def nemotron_3_ultra(**more: Any) -> Fields:
    """nvidia/NVIDIA-Nemotron-3-Ultra-550B-A55B: words in place of a count of layers, experts in a latent."""
    words = ["mamba", "moe"] * 48
    for place in range(12):
        words.insert(9 * place + 8, "attention")
    fields = nemotron_3_nano(hidden_size=8192, layers_block_type=words, num_attention_heads=64)
    for name in ("num_hidden_layers", "hybrid_override_pattern"):
        del fields[name]
    return {
        **fields,
        "mamba_num_heads": 256,
        "n_routed_experts": 512,
        "num_experts_per_tok": 22,
        "moe_intermediate_size": 5120,
        "moe_latent_size": 2048,
        "moe_shared_expert_intermediate_size": 10240,
        "num_nextn_predict_layers": 1,
        **more,
    }


def jamba(**more: Any) -> Fields:
    """ai21labs/Jamba-v0.1: attention in layers 4, 12, 20, 28, experts in the odd ones, counted from 0."""
    return {
        "model_type": "jamba",
        "hidden_size": 4096,
        "num_hidden_layers": 32,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "attn_layer_period": 8,
        "attn_layer_offset": 4,
        "expert_layer_period": 2,
        "expert_layer_offset": 1,
        "intermediate_size": 14336,
        "num_experts": 16,
        "num_experts_per_tok": 2,
        "mamba_d_conv": 4,
        "mamba_d_state": 16,
        "mamba_dt_rank": 256,
        "mamba_expand": 2,
        "vocab_size": 65536,
        "max_position_embeddings": 262144,
        "tie_word_embeddings": False,
        **more,
    }


def granite_h_small(**more: Any) -> Fields:
    """ibm-granite/granite-4.0-h-small: 36 Mamba-2 layers, 4 with attention."""
    words = ["mamba"] * 40
    for place in (5, 15, 25, 35):
        words[place] = "attention"
    return {
        "model_type": "granitemoehybrid",
        "hidden_size": 4096,
        "num_hidden_layers": 40,
        "layer_types": words,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "mamba_n_heads": 128,
        "mamba_d_head": 64,
        "mamba_d_state": 128,
        "mamba_n_groups": 1,
        "mamba_d_conv": 4,
        "mamba_expand": 2,
        "num_local_experts": 72,
        "num_experts_per_tok": 10,
        "intermediate_size": 768,
        "shared_intermediate_size": 1536,
        "vocab_size": 100352,
        "max_position_embeddings": 131072,
        "tie_word_embeddings": True,
        **more,
    }


def step_3_5(**more: Any) -> Fields:
    """stepfun-ai/Step-3.5-Flash: lists padded for draft layers, more heads where it slides."""
    words = ["full_attention", *["sliding_attention"] * 3] * 12
    return {
        "model_type": "step3p5",
        "hidden_size": 4096,
        "num_hidden_layers": 45,
        "num_attention_heads": 64,
        "num_attention_groups": 8,
        "head_dim": 128,
        "layer_types": words,
        "sliding_window": 512,
        "attention_other_setting": {"num_attention_heads": 96, "num_attention_groups": 8, "head_dim": 128},
        "use_head_wise_attn_gate": True,
        "intermediate_size": 11264,
        "moe_num_experts": 288,
        "moe_top_k": 8,
        "moe_intermediate_size": 1280,
        "share_expert_dim": 1280,
        "moe_layers_enum": ",".join(str(number) for number in range(3, 45)),
        "num_nextn_predict_layers": 3,
        "vocab_size": 128896,
        "max_seq_len": 262144,
        "tie_word_embeddings": False,
        **more,
    }


def mimo_v2_flash(**more: Any) -> Fields:
    """XiaomiMiMo/MiMo-V2-Flash: keys of 192, values of 128, twice the heads where it slides."""
    return {
        "model_type": "mimo_v2_flash",
        "hidden_size": 4096,
        "num_hidden_layers": 48,
        "num_attention_heads": 64,
        "num_key_value_heads": 4,
        "head_dim": 192,
        "v_head_dim": 128,
        "swa_num_attention_heads": 64,
        "swa_num_key_value_heads": 8,
        "swa_head_dim": 192,
        "swa_v_head_dim": 128,
        "sliding_window": 128,
        "attention_chunk_size": 128,
        "hybrid_layer_pattern": [0, *[1, 1, 1, 1, 0] + [1, 1, 1, 1, 1, 0] * 7],
        "moe_layer_freq": [0] + [1] * 47,
        "intermediate_size": 16384,
        "moe_intermediate_size": 2048,
        "n_routed_experts": 256,
        "n_shared_experts": None,
        "num_experts_per_tok": 8,
        "vocab_size": 152576,
        "max_position_embeddings": 262144,
        "tie_word_embeddings": False,
        **more,
    }


def hunyuan_a13b(**more: Any) -> Fields:
    """tencent/Hunyuan-A13B-Instruct: lists that say the same for each layer; sharing that is switched off."""
    return {
        "model_type": "hunyuan_v1_moe",
        "hidden_size": 4096,
        "num_hidden_layers": 32,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "attention_head_dim": 128,
        "use_cla": False,
        "cla_share_factor": 2,
        "use_mla": False,
        "intermediate_size": 3072,
        "num_experts": 64,
        "moe_topk": [8] * 32,
        "num_shared_expert": [1] * 32,
        "moe_intermediate_size": [3072] * 32,
        "use_mixed_mlp_moe": True,
        "vocab_size": 128167,
        "max_position_embeddings": 32768,
        "tie_word_embeddings": True,
        **more,
    }


def lfm2_1_2b(**more: Any) -> Fields:
    """LiquidAI/LFM2-1.2B: a stated width that is cut to two thirds, a list of the layers with attention."""
    return {
        "model_type": "lfm2",
        "hidden_size": 2048,
        "num_hidden_layers": 16,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "full_attn_idxs": [2, 5, 8, 10, 12, 14],
        "conv_L_cache": 3,
        "conv_dim": 2048,
        "block_ff_dim": 12288,
        "block_auto_adjust_ff_dim": True,
        "block_ffn_dim_multiplier": 1.0,
        "block_multiple_of": 256,
        "vocab_size": 65536,
        "max_position_embeddings": 128000,
        **more,
    }


def command_a(**more: Any) -> Fields:
    """CohereLabs/c4ai-command-a-03-2025: tied without saying so, three layers slide, the fourth is full."""
    return {
        "model_type": "cohere2",
        "hidden_size": 12288,
        "num_hidden_layers": 64,
        "num_attention_heads": 96,
        "num_key_value_heads": 8,
        "head_dim": 128,
        "intermediate_size": 36864,
        "sliding_window": 4096,
        "sliding_window_pattern": 4,
        "vocab_size": 256000,
        "max_position_embeddings": 131072,
        **more,
    }


def chatglm_6b(**more: Any) -> Fields:
    """THUDM/glm-4-9b-chat: hardly a name like those of others."""
    return {
        "model_type": "chatglm",
        "hidden_size": 4096,
        "num_layers": 40,
        "num_attention_heads": 32,
        "multi_query_attention": True,
        "multi_query_group_num": 2,
        "kv_channels": 128,
        "ffn_hidden_size": 13696,
        "padded_vocab_size": 151552,
        "seq_length": 131072,
        "add_qkv_bias": True,
        "torch_dtype": "bfloat16",
        **more,
    }


def minimax_m3(**more: Any) -> Fields:
    """Text part of MiniMaxAI/MiniMax-M3: block-sparse reads, and still the whole cache."""
    return {
        "model_type": "minimax_m3",
        "hidden_size": 6144,
        "num_hidden_layers": 60,
        "num_attention_heads": 64,
        "num_key_value_heads": 4,
        "head_dim": 128,
        "sparse_attention_config": {
            "use_sparse_attention": True,
            "sparse_num_index_heads": 4,
            "sparse_index_dim": 128,
            "sparse_block_size": 128,
            "sparse_topk_blocks": 16,
        },
        "intermediate_size": 3072,
        "dense_intermediate_size": 12288,
        "shared_intermediate_size": 3072,
        "n_shared_experts": 1,
        "num_local_experts": 128,
        "num_experts_per_tok": 4,
        "moe_layer_freq": [0, 0, 0] + [1] * 57,
        "vocab_size": 200064,
        "max_position_embeddings": 524288,
        "tie_word_embeddings": False,
        **more,
    }


def without(fields: Fields, *names: str) -> Fields:
    """Return a configuration in which these fields are absent."""
    return {name: value for name, value in fields.items() if name not in names}
