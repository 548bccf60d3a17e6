"""
Parameters counted from the shape of a model, matrix by matrix.

Matrices, convolutions, biases and the norms of hidden width count; norms inside a layer and other short
vectors do not: together they are below 0.01 % of a model.

Source:
    docs/models.md, "Counting"; the element counts of published checkpoints in planner/data/models.toml.
"""

from dataclasses import dataclass

from planner.catalogues.models import AttentionGroup, AttentionKind, LatentAttention, MixtureOfExperts, Model


@dataclass(frozen=True, slots=True, kw_only=True)
class ParameterCount:
    """Elements of a model by what they are for; draft layers are not among them."""

    embedding: int  # input embedding and output head, one matrix where tied
    mixers: int  # attention, linear attention, state space, convolution
    routed_experts: int
    feed_forward: int  # dense blocks, shared experts, routers
    other: int  # norms, per-layer projections, mixing of hyper-connections
    towers: int  # vision and audio, with their projectors
    tables: int  # looked up, never multiplied

    @property
    def total(self) -> int:
        """All that is served."""
        blocks = self.mixers + self.routed_experts + self.feed_forward + self.other
        return self.embedding + blocks + self.towers + self.tables


def count_parameters(model: Model) -> ParameterCount:
    """Count what a model serves from its shape, and from its own counts of towers and tables."""
    latent = model.latent_attention
    return ParameterCount(
        embedding=model.vocab_size * model.hidden_size * (1 if model.tied_embeddings else 2),
        mixers=sum(mixer_params(group, model.hidden_size, latent) for group in model.attention_groups),
        routed_experts=0 if model.moe is None else _routed(model.moe, model.hidden_size),
        feed_forward=_feed_forward(model),
        other=_other(model),
        towers=(model.vision_params or 0) + (model.audio_params or 0),
        tables=model.ngram_table_params or 0,
    )


def count_active(model: Model, count: ParameterCount) -> int:
    """
    Parameters read for one generated token.

    All but what lies idle: the experts that the token is not sent to, towers, tables, and the input embedding
    where the output head is a matrix of its own.
    """
    active = count.total - count.towers - count.tables
    if not model.tied_embeddings:
        active -= model.vocab_size * model.hidden_size
    if model.moe is not None:
        each = count.routed_experts // model.moe.routed_experts
        active -= each * (model.moe.routed_experts - model.moe.experts_per_token)
    return active


def mixer_params(group: AttentionGroup, hidden: int, latent: LatentAttention | None = None) -> int:
    """Count the mixers of one group of layers."""
    match group.kind:
        case AttentionKind.FULL | AttentionKind.SLIDING | AttentionKind.CHUNKED:
            return _plain(group, hidden) + _index(group, hidden)
        case AttentionKind.MLA:
            return _multi_head_latent(group, hidden) + _index(group, hidden)
        case AttentionKind.COMPRESSED_LATENT:
            return _compressed_latent(group, hidden, _given_latent(latent))
        case AttentionKind.GATED_DELTA:
            return group.layers * _gated_delta(group, hidden)
        case AttentionKind.KDA:
            return group.layers * _kimi_delta(group, hidden)
        case AttentionKind.MAMBA2:
            return group.layers * _mamba2(group, hidden)
        case AttentionKind.MAMBA1:
            return group.layers * _mamba1(group, hidden)
        case AttentionKind.SHORT_CONV:
            channels = _given(group.channels)
            return group.layers * channels * (4 * hidden + _given(group.conv_kernel))


def _plain(group: AttentionGroup, hidden: int) -> int:
    """Count query, key, value and output; layers that share a cache have no key and value of their own."""
    heads, kv_heads, width = _given(group.heads), _given(group.kv_heads), _given(group.head_dim)
    value_width = group.v_head_dim or width
    query, key, value = heads * width, kv_heads * width, kv_heads * value_width
    out = heads * value_width
    gate = heads if group.has_head_gate else query if group.has_output_gate else 0
    made = key + (0 if group.shares_k_and_v_projection else value)
    owners = group.layers if group.kv_owner_layers is None else group.kv_owner_layers
    biases = group.layers * query + owners * (key + value) if group.has_qkv_bias else 0
    sinks = heads * group.layers if group.has_sinks else 0
    return hidden * (group.layers * (query + gate + out) + owners * made) + biases + sinks


def _multi_head_latent(group: AttentionGroup, hidden: int) -> int:
    """Count the low-rank paths of MLA; layers that share a latent still expand it themselves."""
    heads, rank, rope = _given(group.heads), _given(group.kv_lora_rank), group.qk_rope_head_dim or 0
    nope, value = _given(group.qk_nope_head_dim), _given(group.v_head_dim)
    owners = group.layers if group.kv_owner_layers is None else group.kv_owner_layers
    query = heads * (nope + rope)
    query_params = group.q_lora_rank * (hidden + query) if group.q_lora_rank else hidden * query
    gate = hidden * heads * value if group.has_output_gate else 0
    each = query_params + rank * heads * (nope + value) + heads * value * hidden + gate
    return group.layers * each + owners * hidden * (rank + rope)


def _index(group: AttentionGroup, hidden: int) -> int:
    """Count the indexers: queries, one key, a weight per head; where keys are pooled, a gate."""
    index = group.sparse_index
    if index is None:
        return 0
    layers = group.layers if group.indexer_layers is None else group.indexer_layers
    heads = index.heads or 1
    query_from = hidden if index.query_from_hidden or not group.q_lora_rank else group.q_lora_rank
    each = query_from * heads * index.head_dim + hidden * (index.key_heads or 1) * index.head_dim
    if group.kind is AttentionKind.MLA:  # other indexers add the scores of their heads without weights
        each += hidden * heads
    if index.pool_tokens:
        each += hidden * index.head_dim
    return layers * each


def _compressed_latent(group: AttentionGroup, hidden: int, latent: LatentAttention) -> int:
    """
    Count attention over one latent with grouped low-rank output, its compressors and indexers.

    A compressor of ratio 4 or less overlaps two windows: its key and its gate are twice as wide.
    """
    heads, width, ratio = _given(group.heads), _given(group.head_dim), group.compress_ratio or 0
    query = latent.q_lora_rank * (hidden + heads * width)
    out = latent.o_lora_rank * (heads * width + latent.o_groups * hidden)
    params = group.layers * (query + out + hidden * width + heads)
    if not ratio:
        return params
    owners = group.layers if group.kv_owner_layers is None else group.kv_owner_layers
    overlap = 2 if 1 < ratio <= 4 else 1
    # Ratio 1 keeps every latent as it is: nothing is compressed.
    if ratio > 1:
        params += owners * 2 * overlap * width * (hidden + int(ratio) // 2)
    index_owners = group.index_owner_layers or 0
    each = latent.index_heads * (latent.q_lora_rank * latent.index_head_dim + hidden)
    key = latent.index_head_dim * hidden
    each += 2 * overlap * key if ratio > 1 else key
    return params + index_owners * each


def _gated_delta(group: AttentionGroup, hidden: int) -> int:
    keys = _given(group.key_heads) * _given(group.key_head_dim)
    heads = _given(group.value_heads)
    values = heads * _given(group.value_head_dim)
    projections = hidden * (2 * keys + 3 * values + 2 * heads)
    return projections + _given(group.conv_kernel) * (2 * keys + values) + 2 * heads


def _kimi_delta(group: AttentionGroup, hidden: int) -> int:
    heads, key, value = _given(group.heads), _given(group.key_head_dim), _given(group.value_head_dim)
    channels = heads * (2 * key + value)
    decay = key * (hidden + heads * key)
    gate = hidden * heads * value if group.has_full_rank_output_gate else value * (hidden + heads * value)
    projections = hidden * (channels + heads + heads * value)
    return projections + decay + gate + _given(group.conv_kernel) * channels + heads * (key + 1)


def _mamba2(group: AttentionGroup, hidden: int) -> int:
    heads = _given(group.heads)
    inner = heads * _given(group.head_dim)
    channels = inner + 2 * _given(group.groups) * _given(group.state_size)
    projections = hidden * (inner + channels + heads) + inner * hidden
    return projections + channels * (_given(group.conv_kernel) + 1) + 3 * heads + inner


def _mamba1(group: AttentionGroup, hidden: int) -> int:
    inner, state, rank = _given(group.inner_dim), _given(group.state_size), _given(group.dt_rank)
    projections = 3 * hidden * inner + inner * (rank + 2 * state) + rank * inner
    return projections + inner * (_given(group.conv_kernel) + 1 + state + 2)


def _routed(moe: MixtureOfExperts, hidden: int) -> int:
    inner, width = moe.expert_hidden_size or hidden, _given(moe.moe_intermediate_size)
    biases = (moe.ffn_matrices - 1) * width + inner if moe.has_expert_bias else 0
    return moe.moe_layers * moe.routed_experts * (moe.ffn_matrices * inner * width + biases)


def _feed_forward(model: Model) -> int:
    """Count dense blocks, shared experts, routers and the projections into a latent of experts."""
    hidden, matrices = model.hidden_size, model.mlp_matrices
    moe = model.moe
    if moe is None:
        if model.mlp_layers == 0:
            return 0
        if model.mlp_widths:
            return sum(matrices * hidden * mlp.width * mlp.blocks for mlp in model.mlp_widths)
        return model.num_layers * matrices * hidden * _given(model.intermediate_size)
    router = moe.routed_experts * (hidden + (1 if moe.has_expert_bias else 0))
    shared = moe.ffn_matrices * hidden * (moe.shared_intermediate_size or 0)
    latent = 2 * hidden * moe.expert_hidden_size if moe.expert_hidden_size else 0
    dense = moe.dense_layers * matrices * hidden * (moe.dense_intermediate_size or 0)
    return moe.moe_layers * (router + shared + latent) + dense


def _other(model: Model) -> int:
    """Count norms of hidden width, what adds per-layer embeddings, and what mixes widened activations."""
    hidden = model.hidden_size
    mixers = sum(group.layers for group in model.attention_groups)
    blocks = model.moe.moe_layers + model.moe.dense_layers if model.moe is not None else model.num_layers
    if model.mlp_widths:
        blocks = sum(mlp.blocks for mlp in model.mlp_widths)
    if model.mlp_layers == 0:
        blocks = 0
    params = hidden * (mixers + blocks + 1)
    each = model.per_layer_embedding_size
    if each:
        # One projection of the token for all layers; in and out of each layer.
        params += hidden * each * model.num_layers * 3
    width = model.hyper_connections
    if width:
        params += 2 * model.num_layers * _hyper_connection(hidden, width, model.hyper_connection_rank)
    return params


def _hyper_connection(hidden: int, width: int, rank: int | None) -> int:
    """Count one mixing of `width` copies of the hidden state: by a low rank, else all at once."""
    if rank:
        return width * hidden * (2 * rank + width)
    return width * hidden * (2 * width + width * width)


def _given(value: int | None) -> int:
    """Return a field that its kind of layer cannot do without."""
    if value is None:
        raise ValueError("a model lacks a field that its kind of layer needs")
    return value


def _given_latent(latent: LatentAttention | None) -> LatentAttention:
    if latent is None:
        raise ValueError("layers with compressed latents need the model's latent attention")
    return latent
