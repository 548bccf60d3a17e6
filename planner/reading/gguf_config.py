"""
From a GGUF header to the configuration that it would have as a Hugging Face model.

Its fields give the widths, its tensors the rest: which layers attend, which hold experts, whether a block has
a gate. So one reader serves both kinds of file.
"""

from collections.abc import Mapping
from typing import Any

from planner.errors import UnknownArchitecture, UnreadableModel
from planner.reading.families import family_of
from planner.reading.fields import MOST_LAYERS
from planner.reading.gguf import GgufHeader
from planner.reading.tensors import Tensor, layer_of

# llama.cpp's names of architectures, and the model_type that is built alike; equal names are left out.
# Source: ggml-org/llama.cpp gguf-py 0.19.0 gguf/constants.py, MODEL_ARCH_NAMES.
MODEL_TYPES = {
    "qwen2moe": "qwen2_moe",
    "qwen2vl": "qwen2_vl",
    "qwen3moe": "qwen3_moe",
    "qwen3vl": "qwen3_vl",
    "qwen3vlmoe": "qwen3_vl_moe",
    "qwen3next": "qwen3_next",
    "qwen35": "qwen3_5_text",
    "qwen35moe": "qwen3_5_moe_text",
    "gemma3": "gemma3_text",
    "gemma4": "gemma4_text",
    "phi2": "phi",
    "deepseek2": "deepseek_v3",
    "glm4moe": "glm4_moe",
    "glm-dsa": "glm_moe_dsa",
    "gpt-oss": "gpt_oss",
    "command-r": "cohere",
    "gptneox": "gpt_neox",
    "granitehybrid": "granitemoehybrid",
    "lfm2moe": "lfm2_moe",
    "nemotron_h_moe": "nemotron_h",
    "mistral3": "ministral3",
    "minimax-m2": "minimax_m2",
    "ernie4_5-moe": "ernie4_5_moe",
    "hunyuan-moe": "hunyuan_v1_moe",
    "hunyuan-dense": "hunyuan_v1_dense",
    "mimo2": "mimo_v2_flash",
    "step35": "step3p5",
    "kimi-linear": "kimi_linear",
}
# Groups of fields that plain attention does not have.
_OTHER_GROUPS = frozenset({"altup", "wkv", "posnet", "convnext", "time_mix_extra_dim", "token_shift_count"})
# Architectures whose recurrent layers llama.cpp describes by the `ssm` fields, and how they are meant.
_GATED_DELTA = frozenset({"qwen3next", "qwen35", "qwen35moe"})
_MAMBA2 = frozenset({"nemotron_h", "nemotron_h_moe", "granitehybrid", "mamba2"})


def config_from_gguf(header: GgufHeader) -> dict[str, Any]:
    """
    Return the fields of a configuration.

    Raises:
        UnreadableModel: if the header is of no language model, or its layers cannot be.
    """
    if not header.architecture:
        raise UnreadableModel(header.where, "the header has no general.architecture")
    if header.architecture == "clip":
        what = "the encoder of images alone (mmproj); name the file of the language model"
        raise UnreadableModel(header.where, what)
    by_layer = _by_layer(header)
    config: dict[str, Any] = {
        "model_type": MODEL_TYPES.get(header.architecture, header.architecture),
        "architectures": [header.architecture],
        "num_hidden_layers": len(by_layer),
        "hidden_size": header.value("embedding_length"),
        "vocab_size": _vocabulary(header),
        "max_position_embeddings": header.value("context_length"),
        "tie_word_embeddings": not any(tensor.name == "output.weight" for tensor in header.table.tensors),
        "num_nextn_predict_layers": header.value("nextn_predict_layers"),
    }
    for name in header.fields:
        group = name.removeprefix(f"{header.architecture}.").split(".")[0]
        if group in _OTHER_GROUPS and name.startswith(header.architecture):
            config[f"recurrent_{group}"] = True  # no Hugging Face name: refused where the type is not known
    _attention(header, config, by_layer)
    _latents(header, config)
    _recurrent(header, config)
    _blocks(header, config, by_layer)
    return {name: value for name, value in config.items() if value is not None}


def _by_layer(header: GgufHeader) -> list[dict[str, Tensor]]:
    """Return the tensors of each layer by the rest of their names; draft layers are left out."""
    count = header.value("block_count")
    drafts = header.value("nextn_predict_layers") or 0
    if not _is_count(count) or not _is_count(drafts, least=0) or not 1 <= count - drafts <= MOST_LAYERS:
        raise UnknownArchitecture(
            header.where,
            f"{header.architecture}.block_count is {count!r}; 1 to {MOST_LAYERS} layers are possible",
        )
    layers: list[dict[str, Tensor]] = [{} for _ in range(count - drafts)]
    for tensor in header.table.tensors:
        number = layer_of(tensor.name)
        if number is None or not tensor.name.startswith("blk."):
            continue
        if number >= count:
            what = f"block_count is {count}, and its tensors go up to block {number}; convert the model again"
            raise UnreadableModel(header.where, what)
        if number < len(layers):
            layers[number][tensor.name.split(".", 2)[2]] = tensor
    empty = [number for number, layer in enumerate(layers) if not layer]
    if empty:
        what = f"tensors are missing: none of block {empty[0]}, block_count is {count}; fetch the whole file"
        raise UnreadableModel(header.where, what)
    return layers


def _is_count(value: Any, least: int = 1) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def _vocabulary(header: GgufHeader) -> Any:
    """Return the rows of the embedding, which padding may make more than the tokens."""
    for tensor in header.table.tensors:
        if tensor.name == "token_embd.weight" and len(tensor.shape) == 2:
            return tensor.shape[1]
    return header.lengths.get("tokenizer.ggml.tokens") or header.value("vocab_size")


def _attention(header: GgufHeader, config: dict[str, Any], layers: list[dict[str, Tensor]]) -> None:
    """Add heads, widths, kinds of layers and windows; what differs by layer goes to per_layer_config."""
    heads, kv_heads = header.value("attention.head_count"), header.value("attention.head_count_kv")
    per_layer: dict[str, dict[str, Any]] = {}
    for name, value in (("num_attention_heads", heads), ("num_key_value_heads", kv_heads)):
        if isinstance(value, list):
            stated = [item for item in value if item]
            config[name] = max(stated, default=None)
            for index, item in enumerate(value[: len(layers)]):
                if item:
                    per_layer.setdefault(str(index), {})[name] = item
        else:
            config[name] = value
    config["head_dim"] = header.value("attention.key_length")
    if config["head_dim"] == 0:
        raise UnreadableModel(header.where, "attention.key_length is 0; a head has at least 1 dimension")
    width = header.value("attention.value_length")
    config["v_head_dim"] = width if width != config["head_dim"] else None
    words = _words(header, layers)
    _check_widths(header, layers, words)
    for index, word in enumerate(words):
        if word == "sliding_attention":
            for name, key in (
                ("head_dim", "attention.key_length_swa"),
                ("v_head_dim", "attention.value_length_swa"),
            ):
                if header.value(key) is not None:
                    per_layer.setdefault(str(index), {})[name] = header.value(key)
    config["sliding_window"] = header.value("attention.sliding_window")
    config["num_kv_shared_layers"] = header.value("attention.shared_kv_layers")
    if per_layer:
        config["per_layer_config"] = per_layer
    if "moe" in words or "mlp" in words:
        if config["model_type"] != "nemotron_h":
            bare = next(number for number, word in enumerate(words) if word in ("moe", "mlp"))
            what = (
                f"block {bare} has no tensors of attention: they are missing, or {header.architecture!r} is "
                "built in a way that is not modelled"
            )
            raise UnknownArchitecture(header.where, what)
        config["layers_block_type"] = ["attention" if word == "full_attention" else word for word in words]
    elif _are_telling(header, config["model_type"], words):
        config["layer_types"] = words
    every = header.value("attention.sliding_window_pattern")
    if _is_count(every):
        config["sliding_window_pattern"] = every
    if any("attn_q.bias" in layer or "attn_qkv.bias" in layer for layer in layers):
        config["attention_bias"] = True


def _check_widths(header: GgufHeader, layers: list[dict[str, Tensor]], words: list[str]) -> None:
    """
    Refuse fields that the tensors deny: the width of the embedding, and heads times their width.

    Raises:
        UnreadableModel: if they are not the same.
    """
    hidden, heads = header.value("embedding_length"), header.value("attention.head_count")
    embedding = next((each for each in header.table.tensors if each.name == "token_embd.weight"), None)
    if embedding is not None and _is_count(hidden) and embedding.shape[0] != hidden:
        what = f"embedding_length is {hidden:,}, and its embedding is {embedding.shape[0]:,} wide"
        raise UnreadableModel(header.where, what)
    for index, layer in enumerate(layers):
        if any(name.startswith("ssm_") for name in layer):
            continue
        own, of_query = (
            value[index] if isinstance(value, list) and index < len(value) else value
            for value in (header.value("attention.head_count_kv"), heads)
        )
        kv_heads = of_query if own is None else own
        for tensor, length in (("attn_k.weight", "key_length"), ("attn_v.weight", "value_length")):
            width = header.value(f"attention.{length}")
            if words[index] == "sliding_attention":
                width = header.value(f"attention.{length}_swa") or width
            if width is None and _is_count(hidden) and _is_count(of_query):
                width = hidden // of_query
            held = layer.get(tensor)
            if held is None or len(held.shape) != 2 or not _is_count(kv_heads) or not _is_count(width):
                continue
            is_shared_evenly = not _is_count(of_query) or of_query % kv_heads == 0  # else said elsewhere
            if held.shape[1] != kv_heads * width and is_shared_evenly:
                what = f"{kv_heads} KV heads of {width} are {kv_heads * width:,} wide"
                raise UnreadableModel(
                    header.where, f"{what}, and {tensor} of block {index} is {held.shape[1]:,}"
                )


def _are_telling(header: GgufHeader, model_type: str, words: list[str]) -> bool:
    """Whether the words say more than that tensors of full and of sliding layers look alike."""
    family = family_of(model_type)
    is_hybrid = family is not None and family.linear is not None
    has_marks = isinstance(header.value("attention.sliding_window_pattern"), list)
    return is_hybrid or has_marks or set(words) != {"full_attention"}


def _words(header: GgufHeader, layers: list[dict[str, Tensor]]) -> list[str]:
    """Return for each layer what its tensors show it to be."""
    slides = header.value("attention.sliding_window_pattern")
    words = []
    for index, layer in enumerate(layers):
        if any(name.startswith("shortconv.") for name in layer):
            word = "conv"
        elif any(name.startswith("ssm_") for name in layer):
            word = (
                "mamba"
                if header.architecture in _MAMBA2 or header.architecture == "jamba"
                else "linear_attention"
            )
        elif any(name.startswith("attn_") and not name.startswith("attn_norm") for name in layer):
            is_sliding = isinstance(slides, list) and index < len(slides) and bool(slides[index])
            word = "sliding_attention" if is_sliding else "full_attention"
        elif "ffn_gate_inp.weight" in layer:
            word = "moe"
        else:
            word = "mlp"
        words.append(word)
    return words


def _latents(header: GgufHeader, config: dict[str, Any]) -> None:
    """Add MLA: newer headers state the latent as key and value, and the widths of heads apart."""
    rank = header.value("attention.kv_lora_rank")
    if not rank:
        return
    rope = header.value("rope.dimension_count") or 0
    key = header.value("attention.key_length_mla") or header.value("attention.key_length")
    value = header.value("attention.value_length_mla") or header.value("attention.value_length")
    if not _is_count(key) or not _is_count(rope, least=0) or key <= rope:
        raise UnreadableModel(header.where, f"key length {key!r} with {rope!r} rotated dimensions cannot be")
    config.update(
        kv_lora_rank=rank,
        q_lora_rank=header.value("attention.q_lora_rank"),
        qk_rope_head_dim=rope,
        qk_nope_head_dim=key - rope,
        v_head_dim=value,
        num_key_value_heads=None,
        head_dim=None,
        index_n_heads=header.value("attention.indexer.head_count"),
        index_head_dim=header.value("attention.indexer.key_length"),
        index_topk=header.value("attention.indexer.top_k"),
    )


def _recurrent(header: GgufHeader, config: dict[str, Any]) -> None:
    """Add state-space and linear layers, all of which llama.cpp describes by the same fields."""
    config["conv_L_cache"] = header.value("shortconv.l_cache")
    inner, state = header.value("ssm.inner_size"), header.value("ssm.state_size")
    rank, kernel = header.value("ssm.time_step_rank"), header.value("ssm.conv_kernel")
    groups, width = header.value("ssm.group_count"), header.value("kda.head_dim")
    if width is not None:
        config["linear_attn_config"] = {
            "head_dim": width,
            "num_heads": config.get("num_attention_heads"),
            "short_conv_kernel_size": kernel,
        }
        return
    if inner is None:
        return
    if header.architecture == "jamba":
        hidden = header.value("embedding_length")
        expand = inner // hidden if _is_count(inner) and _is_count(hidden) else None
        config.update(mamba_expand=expand, mamba_d_state=state, mamba_dt_rank=rank, mamba_d_conv=kernel)
        return
    if not _is_count(rank) or not _is_count(inner) or inner % rank:
        raise UnreadableModel(header.where, f"ssm.inner_size {inner!r} with {rank!r} heads cannot be")
    if header.architecture in _GATED_DELTA:
        config.update(
            linear_num_key_heads=groups,
            linear_num_value_heads=rank,
            linear_key_head_dim=state,
            linear_value_head_dim=inner // rank,
            linear_conv_kernel_dim=kernel,
        )
    else:
        config.update(
            mamba_num_heads=rank,
            mamba_head_dim=inner // rank,
            n_groups=groups or 1,
            ssm_state_size=state,
            conv_kernel=kernel,
        )


def _blocks(header: GgufHeader, config: dict[str, Any], layers: list[dict[str, Tensor]]) -> None:
    """Add feed-forward blocks: which hold experts, how wide, with a gate or not, all from their tensors."""
    width = header.value("feed_forward_length")
    if isinstance(width, list):
        per_layer = config.setdefault("per_layer_config", {})
        for index, item in enumerate(width[: len(layers)]):
            if item:
                per_layer.setdefault(str(index), {})["intermediate_size"] = item
        width = max(width, default=None)
    config["intermediate_size"] = width or None
    config["ffn_matrices"] = _matrices(layers, width)
    config["hidden_size_per_layer_input"] = header.value("embedding_length_per_layer_input")
    sparse = [
        layer for layer in layers if "ffn_up_exps.weight" in layer or "ffn_gate_up_exps.weight" in layer
    ]
    if not sparse:
        if header.value("expert_count"):
            what = "a file whose experts are single tensors, of an older form; convert the model again"
            raise UnreadableModel(header.where, what)
        return
    first = sparse[0]
    up = first.get("ffn_up_exps.weight")
    fused = first.get("ffn_gate_up_exps.weight")
    wide = up if up is not None else fused
    if wide is None or len(wide.shape) != 3:
        raise UnreadableModel(header.where, "tensors of experts without three dimensions")
    inner, expert_width, experts = wide.shape
    config.update(
        num_experts=experts,
        num_experts_per_tok=header.value("expert_used_count"),
        moe_intermediate_size=expert_width if up is not None else expert_width // 2,
        moe_latent_size=inner if inner != header.value("embedding_length") else None,
        n_group=header.value("expert_group_count"),
        topk_group=header.value("expert_group_used_count"),
    )
    shared = first.get("ffn_up_shexp.weight")
    if shared is not None and len(shared.shape) == 2:
        config["shared_expert_intermediate_size"] = shared.shape[1]
        config["n_shared_experts"] = header.value("expert_shared_count") or 1
    else:
        config["n_shared_experts"] = 0
    if header.architecture == "gemma4":
        config.update(enable_moe_block=True, n_shared_experts=None)
    if "layers_block_type" not in config:
        config["mlp_layer_types"] = ["sparse" if layer in sparse else "dense" for layer in layers]


def _matrices(layers: list[dict[str, Tensor]], width: Any) -> int | None:
    """Return 3 where a gate is there, as a tensor of its own or as the other half of a wider one."""
    names = {name for layer in layers for name in layer if name.startswith("ffn_")}
    if any(name.startswith(("ffn_gate.", "ffn_gate_exps.", "ffn_gate_up_exps.")) for name in names):
        return 3
    ups: Mapping[str, Tensor] = next((layer for layer in layers if "ffn_up.weight" in layer), {})
    if "ffn_up.weight" in ups and len(ups["ffn_up.weight"].shape) == 2 and _is_count(width):
        return 3 if ups["ffn_up.weight"].shape[1] == 2 * width else 2
    return 2 if any(name.startswith("ffn_up_exps.") for name in names) else None
