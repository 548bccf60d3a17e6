"""A model as numbers: parameters by tensor class, cache terms, attention work."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from functools import lru_cache
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from planner.catalogues.models import AttentionGroup, AttentionKind, Model

# DeepSeek V3.2, V4, V4.1 and GLM 5 all declare index_head_dim 128; used where a record names no width.
INDEX_KEY_ELEMENTS = 128


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheTerm:
    """What some layers keep of each token."""

    elements_per_token: float  # summed over those layers
    window_tokens: float = inf  # of so many tokens at most
    kv_heads: float = 1.0  # over which tensor ranks share it; a latent is one, which every rank keeps
    read_budget_tokens: float = inf  # sparse attention reads at most so many of them


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionWork:
    """Multiplications of attention scores: per token of the prompt and token looked back at."""

    flops_per_pair: float
    window_tokens: float = inf


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """
    One model as numbers; parameters are elements. `stacked` gives the same record with arrays over models.

    `linear_params` is what is neither embedding, head, routed expert, tower nor lookup table.
    """

    main_params: float
    active_params: float
    embedding_params: float  # input embedding and output head together, one matrix where tied
    head_params: float  # read for each generated token
    is_tied: bool
    routed_params: float
    linear_params: float
    mixer_params: float  # of these, of attention and other mixers
    tower_params: float  # vision and audio encoders
    table_params: float  # n-gram and per-layer embedding tables: looked up, never multiplied
    routed_share: float  # of the routed experts, used by one token
    experts_per_token: float  # routed ones; 0 without
    is_moe: bool
    is_latent: bool  # attention over a latent
    expert_columns: float  # width of one expert, infinite without experts
    hidden_size: float
    vocab_size: float
    blocks: float  # one mixer and one feed-forward part each
    cache_terms: tuple[CacheTerm, ...]
    recurrent_elements: float  # per sequence, kept in 32 bit
    convolution_elements: float  # per sequence
    attention: tuple[AttentionWork, ...]
    recurrent_flops_per_token: float


@lru_cache(maxsize=1024)  # all of the catalogue, and files that people bring to a server that runs for long
def shape_of(model: Model) -> Shape:
    """
    Return the numbers of a model.

    The routed experts follow from the two exact counts: all of them are stored and a share k/E is active,
    so R = (main - active - input embedding - towers - tables) / (1 - k/E), the embedding only where untied.

    Source:
        docs/methodology.md, "Memory"; shapes by kind as in the attention groups of planner/data/models.toml.
    """
    matrix = float(model.vocab_size * model.hidden_size)
    embedding = matrix if model.tied_embeddings else 2 * matrix
    tower = float((model.vision_params or 0) + (model.audio_params or 0))
    table = float(model.ngram_table_params or 0)
    routed, share = 0.0, 1.0
    if model.moe is not None:
        share = model.moe.experts_per_token / model.moe.routed_experts
        idle = model.main_params - model.active_params - (embedding - matrix) - tower - table
        routed = max(0.0, idle / (1 - share)) if share < 1 else 0.0
    groups = model.attention_groups
    linear = max(0.0, model.main_params - embedding - routed - tower - table)
    return Shape(
        main_params=float(model.main_params),
        active_params=float(model.active_params),
        embedding_params=embedding,
        head_params=matrix,
        is_tied=model.tied_embeddings,
        routed_params=routed,
        linear_params=linear,
        mixer_params=max(0.0, linear - _feed_forward_params(model)),
        tower_params=tower,
        table_params=table,
        routed_share=share,
        experts_per_token=0.0 if model.moe is None else float(model.moe.experts_per_token),
        is_moe=model.moe is not None,
        is_latent=any(group.kind in (AttentionKind.MLA, AttentionKind.COMPRESSED_LATENT) for group in groups),
        expert_columns=_expert_columns(model),
        hidden_size=float(model.hidden_size),
        vocab_size=float(model.vocab_size),
        blocks=_blocks(model),
        cache_terms=_merged(term for group in groups for term in _cache_terms(group)),
        recurrent_elements=float(sum(_recurrent_elements(group) for group in groups)),
        convolution_elements=float(sum(_convolution_elements(group) for group in groups)),
        attention=tuple(work for group in groups if (work := _attention_work(group)) is not None),
        # Update and read-out of a state: two multiply-adds for each of its elements.
        recurrent_flops_per_token=4.0 * sum(_recurrent_elements(group) for group in groups),
    )


def _feed_forward_params(model: Model) -> float:
    """Return the parameters of dense and shared feed-forward parts and of routers."""
    moe, matrices = model.moe, model.mlp_matrices
    if moe is None:
        columns = sum(part.width * part.blocks for part in model.mlp_widths)
        columns = columns or (model.mlp_layers or model.num_layers) * (model.intermediate_size or 0)
        return float(matrices * columns * model.hidden_size)
    dense = moe.dense_layers * matrices * (moe.dense_intermediate_size or model.intermediate_size or 0)
    shared = moe.moe_layers * moe.ffn_matrices * (moe.shared_intermediate_size or 0)
    return float((dense + shared + moe.moe_layers * moe.routed_experts) * model.hidden_size)


def _expert_columns(model: Model) -> float:
    """Return the width of one routed expert; an expert without a record of it is as wide as the layer."""
    if model.moe is None:
        return float("inf")
    return float(model.moe.moe_intermediate_size or model.intermediate_size or model.hidden_size)


def stacked(shapes: Sequence[Shape], index: NDArray[np.int64]) -> Shape:
    """
    Return one record whose numbers are arrays: for each place of `index` those of the shape it names.

    Models with fewer kinds of layers have terms of nothing: formulas loop over the same terms for all.
    """
    values: dict[str, Any] = {
        field.name: np.array([float(getattr(shape, field.name)) for shape in shapes])[index]
        for field in fields(Shape)
        if field.name not in ("cache_terms", "attention")
    }
    terms = _table([shape.cache_terms for shape in shapes], CacheTerm(elements_per_token=0.0), index)
    works = _table([shape.attention for shape in shapes], AttentionWork(flops_per_pair=0.0), index)
    return Shape(**values, cache_terms=terms, attention=works)


def _table(rows: Sequence[tuple[Any, ...]], nothing: Any, index: NDArray[np.int64]) -> tuple[Any, ...]:
    """Return records of arrays, one for each place in the longest row; shorter rows are filled up."""
    longest = max((len(row) for row in rows), default=0)
    filled = [row + (nothing,) * (longest - len(row)) for row in rows]
    kind, names = type(nothing), [field.name for field in fields(nothing)]
    return tuple(
        kind(**{name: np.array([getattr(row[place], name) for row in filled])[index] for name in names})
        for place in range(longest)
    )


def layers_by_kind(model: Model) -> dict[str, int]:
    """Return how many layers of each kind a model has, in the order of its record."""
    counts: dict[str, int] = {}
    for group in model.attention_groups:
        counts[str(group.kind)] = counts.get(str(group.kind), 0) + group.layers
    return counts


def _blocks(model: Model) -> float:
    """
    Return pairs of mixer and feed-forward part.

    Some hybrids count each of the two as a layer, others have two mixers side by side in one.
    """
    mixers = sum(group.layers for group in model.attention_groups)
    return float(model.num_layers if mixers >= model.num_layers else model.num_layers / 2)


def _cache_terms(group: AttentionGroup) -> list[CacheTerm]:
    """Return the growing and bounded cache of one group; the table is in docs/models.md."""
    kind = group.kind
    if kind in (AttentionKind.FULL, AttentionKind.SLIDING, AttentionKind.CHUNKED):
        heads, width = _need(group.kv_heads), _need(group.head_dim)
        per_token = _owners(group) * heads * (width + (group.v_head_dim or width))
        window = inf if kind is AttentionKind.FULL else float(_need(group.window))
        main = CacheTerm(
            elements_per_token=per_token,
            window_tokens=window,
            kv_heads=float(heads),
            read_budget_tokens=_budget(group),
        )
        return [main, *_index_terms(group)]
    if kind is AttentionKind.MLA:
        per_token = _owners(group) * (_need(group.kv_lora_rank) + (group.qk_rope_head_dim or 0))
        return [
            CacheTerm(elements_per_token=per_token, read_budget_tokens=_budget(group)),
            *_index_terms(group),
        ]
    if kind is AttentionKind.COMPRESSED_LATENT:
        width = _need(group.head_dim)
        terms = [CacheTerm(elements_per_token=group.layers * width, window_tokens=float(_need(group.window)))]
        if group.compress_ratio:
            terms.append(
                CacheTerm(
                    elements_per_token=_owners(group) * width / group.compress_ratio,
                    read_budget_tokens=_budget(group),
                )
            )
            keys = (group.index_owner_layers or 0) * _index_width(group)
            terms.append(CacheTerm(elements_per_token=keys / group.compress_ratio))
        return terms
    return []


def _index_terms(group: AttentionGroup) -> list[CacheTerm]:
    """Return the index keys of sparse attention: small, read in full, and kept on every rank."""
    if group.sparse_index is None:
        return []
    layers = group.layers if group.indexer_layers is None else group.indexer_layers
    return [CacheTerm(elements_per_token=layers * _index_width(group))]


def _index_width(group: AttentionGroup) -> int:
    return group.sparse_index.head_dim if group.sparse_index else INDEX_KEY_ELEMENTS


def _budget(group: AttentionGroup) -> float:
    budget = group.sparse_index.budget_tokens if group.sparse_index else None
    return inf if budget is None else float(budget)


def _owners(group: AttentionGroup) -> int:
    return group.layers if group.kv_owner_layers is None else group.kv_owner_layers


def _recurrent_elements(group: AttentionGroup) -> int:
    """Return the elements of the recurrent state of one sequence."""
    match group.kind:
        case AttentionKind.GATED_DELTA:
            each = _need(group.value_heads) * _need(group.key_head_dim) * _need(group.value_head_dim)
        case AttentionKind.KDA:
            each = _need(group.heads) * _need(group.key_head_dim) * _need(group.value_head_dim)
        case AttentionKind.MAMBA2:
            each = _need(group.heads) * _need(group.head_dim) * _need(group.state_size)
        case AttentionKind.MAMBA1:
            each = _need(group.inner_dim) * _need(group.state_size)
        case _:
            each = 0
    return group.layers * each


def _convolution_elements(group: AttentionGroup) -> int:
    """Return the elements that short convolutions keep of one sequence: kernel - 1 columns per channel."""
    match group.kind:
        case AttentionKind.GATED_DELTA:
            keys = 2 * _need(group.key_heads) * _need(group.key_head_dim)
            channels = keys + _need(group.value_heads) * _need(group.value_head_dim)
        case AttentionKind.KDA:
            channels = _need(group.heads) * (2 * _need(group.key_head_dim) + _need(group.value_head_dim))
        case AttentionKind.MAMBA2:
            inner = _need(group.heads) * _need(group.head_dim)
            channels = inner + 2 * _need(group.groups) * _need(group.state_size)
        case AttentionKind.MAMBA1:
            channels = _need(group.inner_dim)
        case AttentionKind.SHORT_CONV:
            channels = _need(group.channels)
        case _:
            return 0
    return group.layers * (_need(group.conv_kernel) - 1) * channels


def _attention_work(group: AttentionGroup) -> AttentionWork | None:
    """Return scores and weighted sums of one group: 2 operations per multiply-add, keys and values."""
    match group.kind:
        case AttentionKind.FULL | AttentionKind.SLIDING | AttentionKind.CHUNKED:
            width = _need(group.head_dim)
            pair = _need(group.heads) * (width + (group.v_head_dim or width))
        case AttentionKind.MLA:
            key = _need(group.qk_nope_head_dim) + (group.qk_rope_head_dim or 0)
            pair = _need(group.heads) * (key + _need(group.v_head_dim))
        case AttentionKind.COMPRESSED_LATENT:
            return _compressed_work(group)
        case _:
            return None
    window = float(group.window) if group.window else inf
    return AttentionWork(flops_per_pair=2.0 * group.layers * pair, window_tokens=min(window, _budget(group)))


def _compressed_work(group: AttentionGroup) -> AttentionWork:
    """Return the work on one latent for each `compress_ratio` tokens, or on the window alone."""
    pair = 2.0 * group.layers * _need(group.heads) * 2 * _need(group.head_dim)
    if group.compress_ratio:
        return AttentionWork(flops_per_pair=pair / group.compress_ratio)
    return AttentionWork(flops_per_pair=pair, window_tokens=float(_need(group.window)))


def _merged(terms: Iterable[CacheTerm]) -> tuple[CacheTerm, ...]:
    """Return the terms with those of the same kind added up, so that formulas loop over few."""
    sums: dict[tuple[float, float, float], float] = {}
    for term in terms:
        key = (term.window_tokens, term.kv_heads, term.read_budget_tokens)
        sums[key] = sums.get(key, 0.0) + term.elements_per_token
    return tuple(
        CacheTerm(elements_per_token=total, window_tokens=key[0], kv_heads=key[1], read_budget_tokens=key[2])
        for key, total in sums.items()
        if total > 0
    )


def _need(value: int | None) -> int:
    """Return a field that its kind of layer cannot do without."""
    if value is None:
        raise ValueError("an attention group lacks a field that its kind needs")
    return value
