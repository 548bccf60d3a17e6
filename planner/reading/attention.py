"""From the kinds of layers to groups of equal ones, with the shapes that cache and parameters follow from."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from planner.catalogues.models import AttentionGroup, AttentionKind
from planner.reading.fields import MOST_HEADS, MOST_LAYERS, MOST_TOKENS, Config
from planner.reading.indexers import block_index
from planner.reading.latents import compressed_latent, multi_head_latent
from planner.reading.layers import LayerKind, window_tokens
from planner.reading.mixers import Mixer
from planner.reading.recurrent import recurrent, short_convolution

_BIASES = ("attention_bias", "qkv_bias", "add_qkv_bias", "use_qkv_bias", "use_bias")


def attention_groups(config: Config, kinds: Sequence[LayerKind]) -> tuple[AttentionGroup, ...]:
    """
    Return equal layers as one group each, in the order in which they first occur.

    Raises:
        UnreadableModel: if a shape cannot be.
        UnknownArchitecture: if a shape is not stated.
    """
    merged: dict[AttentionGroup, list[Mixer]] = {}
    owners = _cache_owners(config, kinds)
    for index, kind in _each(kinds):
        if kind is not LayerKind.NONE:
            mixer = _mixer(config.at_layer(index), kind, index)
            mixer = replace(mixer, owns_cache=mixer.owns_cache and index in owners)
            merged.setdefault(mixer.group, []).append(mixer)
    return tuple(_group(group, mixers) for group, mixers in merged.items())


def _each(kinds: Sequence[LayerKind]) -> Iterator[tuple[int, LayerKind]]:
    """Yield each mixer with its layer, of which some have two."""
    for index, kind in enumerate(kinds):
        if kind is LayerKind.PARALLEL:
            yield index, LayerKind.FULL
            yield index, LayerKind.LINEAR
        else:
            yield index, kind


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
    crossing = config.counts("cross_attention_layers", up_to=MOST_LAYERS)
    if crossing is not None:  # they attend to images, and keep nothing of the text
        return {index for index in layers if index not in set(crossing)}
    shared = config.count("num_kv_shared_layers", up_to=len(kinds), at_least=0) or 0
    if shared:
        return set(layers[: len(kinds) - shared])
    if config.flag("use_cla"):
        factor = config.need("cla_share_factor", up_to=MOST_LAYERS)
        return {index for index in layers if index % factor == 0}
    return set(layers)


def _mixer(config: Config, kind: LayerKind, index: int) -> Mixer:
    if kind is LayerKind.CONV:
        return Mixer(group=short_convolution(config))
    if kind is LayerKind.LINEAR:
        return Mixer(group=recurrent(config))
    if kind is LayerKind.FULL and config.has("compress_ratios", "compress_rates"):
        return compressed_latent(config, index)
    if config.has("kv_lora_rank") and config.raw("use_mla") is not False:
        return multi_head_latent(config, index)
    has_latent = config.has("qk_nope_head_dim") and config.raw("use_mla") is not False
    if has_latent and not config.states("kv_lora_rank"):
        what = (
            "qk_nope_head_dim is stated, which attention over a latent has, and not the width of the latent"
        )
        raise config.missing("kv_lora_rank", what=f"{what}: kv_lora_rank, 0 for none")
    return _plain(config, kind, index)


def _plain(config: Config, kind: LayerKind, index: int) -> Mixer:
    """Read grouped-query attention, whose sliding layers may have other heads and full ones other widths."""
    slides = kind is LayerKind.SLIDING
    family = config.family
    heads, kv_heads = head_counts(config, slides)
    width = _head_dim(config, heads, slides)
    value_width = (config.count("swa_v_head_dim") if slides else None) or config.count("v_head_dim") or width
    sparse = block_index(config, index)
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
    own = None if blocks is None else blocks.count("num_key_value_heads", up_to=MOST_HEADS)
    if own is not None:
        return own
    names = (
        "num_key_value_heads",
        "num_attention_groups",
        "multi_query_group_num",
        "num_kv_heads",
        "n_head_kv",
        "kv_n_heads",
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
