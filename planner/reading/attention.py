"""From the kinds of layers to groups of equal ones, with the shapes that cache and parameters follow from."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from planner.models import AttentionGroup, AttentionKind, LatentAttention, SparseIndex
from planner.reading.fields import MOST_HEADS, MOST_LAYERS, MOST_TOKENS, Config
from planner.reading.layers import LayerKind, window_tokens

# A latent compressed by this ratio is read through an indexer; one compressed further is read whole.
# Source: transformers 5.24.0, models/deepseek_v4: compressed sparse attention 4, heavily compressed 128.
INDEXED_RATIO = 4
_BIASES = ("attention_bias", "qkv_bias", "add_qkv_bias", "use_qkv_bias", "use_bias")


@dataclass(frozen=True, slots=True, kw_only=True)
class Mixer:
    """One layer's mixer: its shape as a group of one layer, and what it owns."""

    group: AttentionGroup
    owns_cache: bool = True
    has_indexer: bool = False
    owns_index: bool = False


def attention_groups(config: Config, kinds: Sequence[LayerKind]) -> tuple[AttentionGroup, ...]:
    """
    Return equal layers as one group each, in the order in which they first occur.

    Raises:
        UnreadableModel: if a shape cannot be.
        UnknownArchitecture: if a shape is not stated.
    """
    merged: dict[AttentionGroup, list[Mixer]] = {}
    owners = _cache_owners(config, kinds)
    for index, kind in enumerate(kinds):
        if kind is not LayerKind.NONE:
            mixer = _mixer(config.at_layer(index), kind, index)
            mixer = replace(mixer, owns_cache=mixer.owns_cache and index in owners)
            merged.setdefault(mixer.group, []).append(mixer)
    return tuple(_group(group, mixers) for group, mixers in merged.items())


def _group(group: AttentionGroup, mixers: Sequence[Mixer]) -> AttentionGroup:
    """Return the group with its layers counted; owners only where they are fewer."""
    owners = sum(mixer.owns_cache for mixer in mixers)
    is_latent = group.kind is AttentionKind.COMPRESSED_LATENT
    shares = bool(group.compress_ratio) if is_latent else owners < len(mixers)
    return replace(
        group,
        layers=len(mixers),
        kv_owner_layers=owners if shares else None,
        indexer_layers=sum(mixer.has_indexer for mixer in mixers) if group.sparse_index else None,
        index_owner_layers=sum(mixer.owns_index for mixer in mixers) or None if is_latent else None,
    )


def _cache_owners(config: Config, kinds: Sequence[LayerKind]) -> set[int]:
    """Return the layers that keep a cache of their own, counted from 0."""
    layers = range(len(kinds))
    sources = config.counts("kv_source_layers", up_to=MOST_LAYERS)
    if sources is not None and len(sources) >= len(kinds):
        return {index for index in layers if sources[index] == index}
    shared = config.count("num_kv_shared_layers", up_to=len(kinds), at_least=0) or 0
    if shared:
        return set(layers[: len(kinds) - shared])
    if config.flag("use_cla"):
        factor = config.need("cla_share_factor", up_to=MOST_LAYERS)
        return {index for index in layers if index % factor == 0}
    return set(layers)


def _mixer(config: Config, kind: LayerKind, index: int) -> Mixer:
    if kind is LayerKind.CONV:
        return Mixer(group=_short_convolution(config))
    if kind is LayerKind.LINEAR:
        return Mixer(group=_recurrent(config))
    if kind is LayerKind.FULL and config.has("compress_ratios", "compress_rates"):
        return _compressed_latent(config, index)
    if config.has("kv_lora_rank") and config.raw("use_mla") is not False:
        return _multi_head_latent(config, index)
    return _plain(config, kind, index)


def _plain(config: Config, kind: LayerKind, index: int) -> Mixer:
    """Read grouped-query attention, whose sliding layers may have other heads and full ones other widths."""
    slides = kind is LayerKind.SLIDING
    family = config.family
    heads, kv_heads = head_counts(config, slides)
    width = _head_dim(config, heads, slides)
    value_width = (config.count("swa_v_head_dim") if slides else None) or config.count("v_head_dim") or width
    sparse = _block_index(config, index)
    is_sinking = family is not None and family.has_sinks
    stated = config.raw("add_swa_attention_sink_bias" if slides else "add_full_attention_sink_bias")
    return Mixer(
        group=AttentionGroup(
            kind=AttentionKind(str(kind)),
            layers=1,
            heads=heads,
            kv_heads=kv_heads,
            head_dim=width,
            v_head_dim=value_width,
            window=_reach(config, kind),
            sparse_index=sparse,
            has_output_gate=config.flag(
                "attn_output_gate",
                "attention_output_gate",
                default=family is not None and family.has_output_gate,
            )
            or _has_head_gate(config),
            has_head_gate=_has_head_gate(config),
            has_qkv_bias=_has_bias(config),
            has_sinks=is_sinking and stated is not False,
            shares_k_and_v_projection=not slides and config.flag("attention_k_eq_v"),
        ),
        has_indexer=sparse is not None,
    )


def _reach(config: Config, kind: LayerKind) -> int | None:
    """Return the tokens that a layer looks back at, where that is not the whole context."""
    if kind is LayerKind.SLIDING:
        return window_tokens(config)
    return config.need("attention_chunk_size", up_to=MOST_TOKENS) if kind is LayerKind.CHUNKED else None


def head_counts(config: Config, slides: bool = False) -> tuple[int, int]:
    """
    Return query heads and key-value heads; key-value heads that are not stated equal the query heads.

    Raises:
        UnreadableModel: if query heads do not divide among the key-value heads.
    """
    other = config.part("attention_other_setting") if slides else None
    heads = kv_heads = None
    if other is not None:
        heads = other.count("num_attention_heads", up_to=MOST_HEADS)
        kv_heads = other.count("num_attention_groups", "num_key_value_heads", up_to=MOST_HEADS)
    elif slides:
        heads = config.count("swa_num_attention_heads", "num_sliding_attention_heads", up_to=MOST_HEADS)
        kv_heads = config.count("swa_num_key_value_heads", up_to=MOST_HEADS)
    elif config.flag("attention_k_eq_v"):
        kv_heads = config.count("num_global_key_value_heads", up_to=MOST_HEADS)
    if heads is None:
        heads = config.need("num_attention_heads", "num_heads", "n_head", "n_heads", up_to=MOST_HEADS)
    if kv_heads is None:
        kv_heads = _kv_heads(config, heads)
    if heads % kv_heads:
        raise config.wrong("num_key_value_heads", kv_heads, f"a divisor of the {heads} attention heads")
    return heads, kv_heads


def _kv_heads(config: Config, heads: int) -> int:
    if config.raw("multi_query_attention") is False:  # ChatGLM states groups that are not used
        return heads
    if config.flag("multi_query") and not config.flag("new_decoder_architecture"):  # Falcon 7B
        return 1
    blocks = config.part("attention")  # of one block of a network search
    per_group = blocks.count("n_heads_in_group", up_to=MOST_HEADS) if blocks is not None else None
    if per_group is not None:
        if heads % per_group:
            raise config.wrong("n_heads_in_group", per_group, f"a divisor of the {heads} attention heads")
        return heads // per_group
    names = (
        "num_key_value_heads",
        "num_attention_groups",
        "multi_query_group_num",
        "num_kv_heads",
        "n_head_kv",
    )
    return config.count(*names, up_to=MOST_HEADS) or heads


def _head_dim(config: Config, heads: int, slides: bool) -> int:
    """Return the width of a head: stated, else the hidden width divided by the heads; 0 counts as absent."""
    if slides:
        stated = config.count("swa_head_dim")
    else:
        stated = None if config.layer.get("head_dim") else config.count("global_head_dim")
    if stated is None:
        stated = config.count("head_dim", "attention_head_dim", "kv_channels", "d_head", at_least=0)
    if stated:
        return stated
    hidden = config.need("hidden_size", "n_embd", "d_model")
    if hidden % heads:
        raise config.wrong(
            "hidden_size", f"{hidden} with {heads} heads", "divisible by them, or head_dim stated"
        )
    return hidden // heads


def _has_bias(config: Config) -> bool:
    family = config.family
    if family is not None and family.has_qkv_bias:
        return True
    return config.flag(*_BIASES, default=family is not None and family.has_qkv_bias_by_default)


def _has_head_gate(config: Config) -> bool:
    default = config.family is not None and config.family.has_head_gate
    return config.flag("use_head_wise_attn_gate", "use_attention_gate", default=default)


def _multi_head_latent(config: Config, index: int) -> Mixer:
    """Read MLA, in which head_dim and key-value heads mean nothing for the cache."""
    sparse = None
    if config.has("index_topk", "index_n_heads"):
        sparse = SparseIndex(
            kind="DSA",
            head_dim=config.need("index_head_dim"),
            heads=config.need("index_n_heads", up_to=MOST_HEADS),
            budget_tokens=config.count("index_topk", up_to=MOST_TOKENS),
            pool_tokens=config.count("index_kpool", up_to=MOST_TOKENS),
            query_from_hidden=config.family is not None and config.family.index_query_from_hidden,
        )
    types = config.words("indexer_types")
    group = AttentionGroup(
        kind=AttentionKind.MLA,
        layers=1,
        heads=config.need("num_attention_heads", up_to=MOST_HEADS),
        kv_lora_rank=config.need("kv_lora_rank"),
        q_lora_rank=config.count("q_lora_rank", at_least=0) or None,
        qk_nope_head_dim=config.need("qk_nope_head_dim"),
        qk_rope_head_dim=_rope_width(config),
        v_head_dim=config.need("v_head_dim"),
        sparse_index=sparse,
        has_output_gate=config.flag("mla_use_output_gate"),
    )
    owns = sparse is not None and (types is None or index >= len(types) or types[index] == "full")
    return Mixer(group=group, has_indexer=owns)


def _rope_width(config: Config) -> int:
    """Return the rotated width of a key, which may be 0 and must be stated."""
    width = config.count("qk_rope_head_dim", at_least=0)
    if width is None:
        raise config.missing("qk_rope_head_dim")
    return width


def _block_index(config: Config, index: int) -> SparseIndex | None:
    """Read the block-sparse index of MiniMax M3 and the index of Qwen 3.8: both keep all keys and values."""
    block = config.part("sparse_attention_config")
    if block is not None and block.flag("use_sparse_attention", default=True):
        marks = block.counts("sparse_attention_freq")
        if marks is not None and index < len(marks) and not marks[index]:
            return None
        tokens, blocks = block.count("sparse_block_size"), block.count("sparse_topk_blocks")
        return SparseIndex(
            kind="MSA",
            head_dim=block.need("sparse_index_dim"),
            heads=block.count("sparse_num_index_heads", up_to=MOST_HEADS),
            block_tokens=tokens,
            budget_tokens=tokens * blocks if tokens and blocks else None,
        )
    words = config.words("layer_types")
    if words is not None and index < len(words) and words[index] != "indexed_attention":
        return None
    if config.has("indexer_head_dim"):
        return SparseIndex(
            kind="QSA",
            head_dim=config.need("indexer_head_dim"),
            heads=config.count("indexer_n_heads", up_to=MOST_HEADS),
            key_heads=config.count("indexer_kv_heads", up_to=MOST_HEADS),
            budget_tokens=config.count("indexer_budget", up_to=MOST_TOKENS),
            compress_ratio=config.count("indexer_compress_ratio"),
        )
    if words is not None and config.has("index_head_dim"):
        tokens, blocks = config.count("index_block_size"), config.count("index_topk_blocks")
        return SparseIndex(
            kind="MSA",
            head_dim=config.need("index_head_dim"),
            heads=config.count("index_n_heads", up_to=MOST_HEADS),
            block_tokens=tokens,
            budget_tokens=tokens * blocks if tokens and blocks else None,
        )
    return None


def compress_ratio(config: Config, index: int) -> int:
    """Return how many tokens a layer keeps as one latent; 0 where it has its window only."""
    ratios = config.counts("compress_ratios", up_to=MOST_TOKENS)
    if ratios is not None:
        if index >= len(ratios):
            raise config.wrong("compress_ratios", f"{len(ratios)} long", "as long as the layers")
        return ratios[index]
    rates, words = config.part("compress_rates"), config.words("layer_types")
    if rates is None or words is None or index >= len(words):
        raise config.missing("compress_ratios")
    return 0 if words[index] == "sliding_attention" else rates.need(words[index], up_to=MOST_TOKENS)


def _compressed_latent(config: Config, index: int) -> Mixer:
    """Read one latent that is key and value at once: a window of it, compressed ones where a ratio is set."""
    ratio = compress_ratio(config, index)
    owners = config.counts("kv_source_layer_ids", up_to=MOST_LAYERS)
    index_owners = config.counts("index_source_layer_ids", up_to=MOST_LAYERS)
    is_indexed = 0 < ratio <= INDEXED_RATIO
    group = AttentionGroup(
        kind=AttentionKind.COMPRESSED_LATENT,
        layers=1,
        heads=config.need("num_attention_heads", up_to=MOST_HEADS),
        head_dim=config.need("head_dim"),
        qk_rope_head_dim=config.count("qk_rope_head_dim", at_least=0),
        window=config.need("sliding_window", up_to=MOST_TOKENS),
        compress_ratio=ratio,
    )
    return Mixer(
        group=group,
        owns_cache=bool(ratio) and (owners is None or index in owners),
        owns_index=is_indexed and (index_owners is None or index in index_owners),
    )


def latent_attention(config: Config) -> LatentAttention | None:
    """Return what layers with compressed latents share across the model, None where there are none."""
    if not config.has("compress_ratios", "compress_rates"):
        return None
    return LatentAttention(
        q_lora_rank=config.need("q_lora_rank"),
        o_lora_rank=config.need("o_lora_rank"),
        o_groups=config.need("o_groups"),
        index_heads=config.need("index_n_heads", up_to=MOST_HEADS),
        index_head_dim=config.need("index_head_dim"),
        index_topk=config.need("index_topk", up_to=MOST_TOKENS),
        kv_source_layer_ids=tuple(config.counts("kv_source_layer_ids", up_to=MOST_LAYERS) or ()),
        index_source_layer_ids=tuple(config.counts("index_source_layer_ids", up_to=MOST_LAYERS) or ()),
        candidate_topk_blocks=config.count("candidate_topk_blocks"),
        candidate_block_size=config.count("candidate_block_size"),
    )


def _recurrent(config: Config) -> AttentionGroup:
    """Read a layer with a fixed state, of the recurrence that the family has."""
    recurrence = config.family.linear if config.family is not None else None
    match recurrence:
        case "gated_delta":
            return _gated_delta(config)
        case "kda":
            return _kimi_delta(config)
        case "mamba2":
            return _mamba2(config)
        case "mamba1":
            return _mamba1(config)
    raise config.missing("model_type", what="linear or state-space layers of an unknown recurrence")


def _gated_delta(config: Config) -> AttentionGroup:
    return AttentionGroup(
        kind=AttentionKind.GATED_DELTA,
        layers=1,
        key_heads=config.need("linear_num_key_heads", up_to=MOST_HEADS),
        value_heads=config.need("linear_num_value_heads", up_to=MOST_HEADS),
        key_head_dim=config.need("linear_key_head_dim"),
        value_head_dim=config.need("linear_value_head_dim"),
        conv_kernel=config.need("linear_conv_kernel_dim"),
    )


def _kimi_delta(config: Config) -> AttentionGroup:
    block = config.part("linear_attn_config") or config
    width = block.need("head_dim") if block is not config else config.need("linear_head_dim")
    return AttentionGroup(
        kind=AttentionKind.KDA,
        layers=1,
        heads=block.need("num_heads", "linear_num_heads", up_to=MOST_HEADS),
        key_head_dim=width,
        value_head_dim=width,
        conv_kernel=block.need("short_conv_kernel_size", "linear_conv_kernel_dim"),
        has_full_rank_output_gate=block.flag("use_full_rank_gate"),
    )


def _mamba2(config: Config) -> AttentionGroup:
    heads = config.need("mamba_num_heads", "mamba_n_heads", up_to=MOST_HEADS)
    width = config.raw("mamba_head_dim", "mamba_d_head")
    if width in (None, "auto"):
        inner = config.need("mamba_expand", "expand") * config.need("hidden_size")
        if inner % heads:
            raise config.wrong("mamba_n_heads", heads, f"a divisor of the inner width {inner}")
        width = inner // heads
    return AttentionGroup(
        kind=AttentionKind.MAMBA2,
        layers=1,
        heads=heads,
        head_dim=config.checked("mamba_d_head", width, MOST_HEADS, 1),
        state_size=config.need("ssm_state_size", "mamba_d_state"),
        groups=config.need("n_groups", "mamba_n_groups"),
        conv_kernel=config.need("conv_kernel", "mamba_d_conv"),
    )


def _mamba1(config: Config) -> AttentionGroup:
    hidden = config.need("hidden_size")
    rank = config.raw("mamba_dt_rank")
    if rank in (None, "auto"):
        rank = -(-hidden // 16)  # the class's own rule for "auto"
    return AttentionGroup(
        kind=AttentionKind.MAMBA1,
        layers=1,
        inner_dim=config.need("mamba_expand") * hidden,
        state_size=config.need("mamba_d_state"),
        dt_rank=config.checked("mamba_dt_rank", rank, MOST_HEADS, 1),
        conv_kernel=config.need("mamba_d_conv"),
    )


def _short_convolution(config: Config) -> AttentionGroup:
    return AttentionGroup(
        kind=AttentionKind.SHORT_CONV,
        layers=1,
        channels=config.count("conv_dim") or config.need("hidden_size"),
        conv_kernel=config.need("conv_L_cache"),
    )
