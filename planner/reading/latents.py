"""Attention over latents: MLA, and one latent that is key and value at once, compressed or not."""

from planner.catalogues.models import AttentionGroup, AttentionKind, LatentAttention
from planner.reading.fields import MOST_HEADS, MOST_LAYERS, MOST_TOKENS, Config
from planner.reading.indexers import latent_index
from planner.reading.mixers import Mixer

# A latent compressed by this ratio is read through an indexer; one compressed further is read whole.
# Source: transformers 5.24.0, models/deepseek_v4: compressed sparse attention 4, heavily compressed 128.
INDEXED_RATIO = 4


def multi_head_latent(config: Config, index: int) -> Mixer:
    """Read MLA, in which head_dim and key-value heads mean nothing for the cache."""
    sparse = latent_index(config)
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


def compressed_latent(config: Config, index: int) -> Mixer:
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
