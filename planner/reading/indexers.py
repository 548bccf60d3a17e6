"""Indexers of sparse attention: they choose what is read, keep a key of each token, and drop nothing."""

from planner.catalogues.models import SparseIndex
from planner.reading.fields import MOST_HEADS, MOST_TOKENS, Config


def latent_index(config: Config) -> SparseIndex | None:
    """Read the index over latents, DeepSeek's sparse attention; None where there is none."""
    if not config.has("index_topk", "index_n_heads"):
        return None
    return SparseIndex(
        kind="DSA",
        head_dim=config.need("index_head_dim"),
        heads=config.need("index_n_heads", up_to=MOST_HEADS),
        budget_tokens=config.count("index_topk", up_to=MOST_TOKENS),
        pool_tokens=config.count("index_kpool", up_to=MOST_TOKENS),
        query_from_hidden=config.family is not None and config.family.index_query_from_hidden,
    )


def block_index(config: Config, index: int) -> SparseIndex | None:
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
