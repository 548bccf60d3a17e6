"""Adapters of low rank: which matrices of a model carry them, and how wide those are."""

from enum import StrEnum

from planner.catalogues.models import AttentionGroup, AttentionKind, Model


class Targets(StrEnum):
    """Which matrices carry adapters; embeddings, head and towers never do."""

    ATTENTION = "attention"  # projections of attention and other mixers
    LINEAR = "linear"  # these, and dense and shared feed-forward parts
    EXPERTS = "experts"  # these, and all routed experts


def adapter_width(model: Model, targets: Targets = Targets.LINEAR) -> int:
    """Sum of inputs and outputs of the matrices that carry adapters: parameters of rank 1."""
    hidden = model.hidden_size
    width = sum(group.layers * _mixer_width(group, hidden) for group in model.attention_groups)
    if targets is not Targets.ATTENTION:
        width += _feed_forward_width(model)
    if targets is Targets.EXPERTS and model.moe is not None:
        moe = model.moe
        inner = (moe.expert_hidden_size or hidden) + (moe.moe_intermediate_size or 0)
        width += moe.moe_layers * moe.routed_experts * moe.ffn_matrices * inner
    return width


def _mixer_width(group: AttentionGroup, hidden: int) -> int:
    """Return inputs plus outputs of the projections of one mixer."""
    kind = group.kind
    if kind is AttentionKind.MLA:
        return _latent_width(group, hidden)
    if kind in (AttentionKind.FULL, AttentionKind.SLIDING, AttentionKind.CHUNKED):
        width = group.head_dim or 0
        value = group.v_head_dim or width
        queries = (group.heads or 0) * width * (2 if group.has_output_gate else 1)
        keys, values = (group.kv_heads or 0) * width, (group.kv_heads or 0) * value
        output = (group.heads or 0) * value
    elif kind is AttentionKind.COMPRESSED_LATENT:
        queries, keys, values = (group.heads or 0) * (group.head_dim or 0), group.head_dim or 0, 0
        output = queries
    elif kind is AttentionKind.GATED_DELTA:
        queries = keys = (group.key_heads or 0) * (group.key_head_dim or 0)
        output = (group.value_heads or 0) * (group.value_head_dim or 0)
        values = 2 * output  # with its gate
    elif kind is AttentionKind.KDA:
        queries = keys = (group.heads or 0) * (group.key_head_dim or 0)
        output = values = (group.heads or 0) * (group.value_head_dim or 0)
    elif kind is AttentionKind.MAMBA2:
        output = (group.heads or 0) * (group.head_dim or 0)
        queries, keys, values = output, output, 2 * (group.groups or 0) * (group.state_size or 0)
    elif kind is AttentionKind.MAMBA1:
        output = group.inner_dim or 0
        queries, keys, values = output, output, 0
    else:
        output = group.channels or 0
        queries = keys = values = output
    inputs = sum(1 for out in (queries, keys, values) if out) * hidden
    return inputs + queries + keys + values + output + hidden


def _latent_width(group: AttentionGroup, hidden: int) -> int:
    """Return inputs plus outputs of the projections of multi-head latent attention."""
    heads, rank = group.heads or 0, group.kv_lora_rank or 0
    nope, rope, value = group.qk_nope_head_dim or 0, group.qk_rope_head_dim or 0, group.v_head_dim or 0
    queries = heads * (nope + rope)
    into = (
        hidden + queries + 2 * (group.q_lora_rank or 0)
    )  # two matrices with a narrow middle where there is one
    latent = (hidden + rank + rope) + (rank + heads * (nope + value))
    return into + latent + heads * value + hidden


def _feed_forward_width(model: Model) -> int:
    """Return inputs plus outputs of dense and shared feed-forward matrices."""
    hidden, moe = model.hidden_size, model.moe
    if moe is None:
        return model.num_layers * 3 * (hidden + (model.intermediate_size or 0))
    dense = moe.dense_layers * 3 * (hidden + (moe.dense_intermediate_size or model.intermediate_size or 0))
    shared = moe.shared_intermediate_size or 0
    return dense + (moe.moe_layers * moe.ffn_matrices * (hidden + shared) if shared else 0)
