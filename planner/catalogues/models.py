"""The catalogue of models: shapes, parameter counts, names, each with its sources."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from types import MappingProxyType
from typing import Any

from planner.catalogue import build, close_matches, flat, lookup_key, read_lines, read_toml, unique
from planner.catalogues.quants import find_quant
from planner.catalogues.stored import StoredWeights
from planner.errors import UnknownName


class AttentionKind(StrEnum):
    """What a layer keeps between tokens."""

    FULL = "full"
    SLIDING = "sliding"
    CHUNKED = "chunked"
    MLA = "mla"
    COMPRESSED_LATENT = "compressed_latent"
    GATED_DELTA = "gated_delta"
    KDA = "kda"
    MAMBA1 = "mamba1"
    MAMBA2 = "mamba2"
    SHORT_CONV = "short_conv"


@dataclass(frozen=True, slots=True, kw_only=True)
class SparseIndex:
    """An indexer that chooses which tokens are read; it keeps a key per token of its own."""

    kind: str | None = None  # the publisher's name: DSA, MSA, QSA
    head_dim: int  # of the key kept for each token
    heads: int | None = None
    key_heads: int | None = None  # 1 where not stated
    budget_tokens: int | None = None  # tokens chosen for each query
    block_tokens: int | None = None  # tokens are chosen in blocks of this size
    pool_tokens: int | None = None  # keys are pooled over this many tokens for the choice
    compress_ratio: float | None = None
    query_from_hidden: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionGroup:
    """Layers of one kind and shape; fields that its kind does not use are None."""

    kind: AttentionKind
    layers: int
    heads: int | None = None
    kv_heads: int | None = None
    head_dim: int | None = None
    v_head_dim: int | None = None
    window: int | None = None  # tokens; also the chunk size of chunked layers
    kv_owner_layers: int | None = None  # layers that own a cache, where some share
    indexer_layers: int | None = None
    index_owner_layers: int | None = None
    sparse_index: SparseIndex | None = None
    kv_lora_rank: int | None = None
    q_lora_rank: int | None = None
    qk_nope_head_dim: int | None = None
    qk_rope_head_dim: int | None = None
    compress_ratio: float | None = None
    key_heads: int | None = None
    value_heads: int | None = None
    key_head_dim: int | None = None
    value_head_dim: int | None = None
    conv_kernel: int | None = None
    state_size: int | None = None
    groups: int | None = None
    channels: int | None = None
    inner_dim: int | None = None
    dt_rank: int | None = None
    has_output_gate: bool = False
    has_head_gate: bool = False  # the output gate has one value a head: its size is negligible
    has_full_rank_output_gate: bool | None = None  # of KDA layers
    has_qkv_bias: bool = False
    has_sinks: bool = False
    shares_k_and_v_projection: bool = False  # saves weights; both are cached
    note: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MixtureOfExperts:
    """The routed and shared experts of a model."""

    routed_experts: int
    experts_per_token: int
    moe_intermediate_size: int | None = None
    shared_experts: int = 0
    shared_intermediate_size: int | None = None  # of all shared experts together
    moe_layers: int
    dense_layers: int = 0
    dense_intermediate_size: int | None = None
    ffn_matrices: int = 3  # in each expert; 2 without a gate
    expert_hidden_size: int | None = None  # width of latent experts; the hidden size where None
    has_dense_mlp_in_every_layer: bool = False
    has_expert_bias: bool = False
    hash_routed_layers: int = 0
    expert_groups: int | None = None  # routing only; changes no size
    groups_per_token: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class VisionTower:
    """The encoder of images; its parameters are part of `main_params`."""

    layers: int
    hidden_size: int
    params: int | None = None
    note: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LatentAttention:
    """What layers with compressed latents share across the model; layer numbers count from 0."""

    q_lora_rank: int
    o_lora_rank: int
    o_groups: int
    index_heads: int
    index_head_dim: int
    index_topk: int
    kv_source_layer_ids: tuple[int, ...] = ()
    index_source_layer_ids: tuple[int, ...] = ()
    candidate_topk_blocks: int | None = None
    candidate_block_size: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MlpWidth:
    """A number of feed-forward blocks of one width, in models where they differ."""

    width: int
    blocks: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """
    One shape of model; counts are elements, not bytes.

    `main_params` is what is served: without draft layers and duplicates, vision tower and lookup tables
    included. `active_params` are read once per generated token: all layers, the routed experts of one token,
    the shared experts and the output head; input embedding, draft layers and vision tower left out.
    """

    id: str
    name: str
    family: str
    hf_repo: str | None
    architecture: str | None = None
    model_type: str | None
    modality: tuple[str, ...]
    license: str | None
    release_date: str | None
    release_date_basis: str | None = None
    published_total_params: int | None  # the label, rounded by its publisher
    published_active_params: int | None
    total_params: int | None  # elements stored in the checkpoint
    total_params_basis: str | None = None
    main_params: int
    main_params_basis: str
    active_params: int
    active_params_with_embedding: int | None
    mtp_layers: int | None  # draft layers for multi-token prediction; None: not known
    mtp_params: int | None
    draft: str | None = None  # a separate draft model that comes with it
    vision_params: int | None
    audio_params: int | None
    duplicate_stored_params: int | None = None  # stored twice, served once
    ngram_table_params: int | None  # looked up, a few rows per token; may lie in host memory
    ngram_table_note: str | None = None
    num_layers: int
    attention_free_layers: int = 0  # counted in num_layers, with a feed-forward block only
    hidden_size: int
    num_attention_heads: int | None
    num_kv_heads: int | None
    head_dim: int | None
    attention_groups: tuple[AttentionGroup, ...]
    latent_attention: LatentAttention | None = None
    hyper_connections: int | None = None  # activations are this many times as wide
    hyper_connection_rank: int | None = None
    intermediate_size: int | None
    mlp_layers: int | None = None
    mlp_widths: tuple[MlpWidth, ...] = ()
    mlp_matrices: int = 3  # in each dense feed-forward block; 2 without a gate
    per_layer_embedding_size: int | None = None  # of the rows that each layer looks up for a token
    moe: MixtureOfExperts | None
    vision: VisionTower | None = None
    vocab_size: int
    tied_embeddings: bool
    max_position_embeddings: int | None
    advertised_context: int | None
    native_dtype: str | None
    native_expert_bits: float | None
    native_other_bits: float | None
    checkpoint_bytes: int | None
    checkpoint_bytes_basis: str | None
    stored: StoredWeights | None = None  # where its own files were read, in its native format
    gguf_repo: str | None
    min_vllm_version: str | None
    min_vllm_basis: str | None = None
    min_sglang_version: str | None = None
    min_sglang_basis: str | None = None
    min_transformers_version: str | None = None
    llama_cpp_support: str | None
    evidence: str  # config, model-card, listing or user
    config_source: str | None = None  # how directly the shape was read: a copy, a sibling, class defaults ...
    notes: str
    doubts: tuple[str, ...] = ()  # what its own file leaves open, where it was read from one
    sources: tuple[str, ...]
    checked: str  # ISO date

    def __post_init__(self) -> None:
        for field in ("main_params", "active_params", "num_layers", "hidden_size", "vocab_size"):
            if getattr(self, field) < 1:
                raise ValueError(f"{self.id}: {field} must be above 0, got {getattr(self, field)}")
        if not self.attention_groups:
            raise ValueError(f"{self.id}: a model needs at least one attention group")

    @property
    def context_tokens(self) -> int | None:
        """The context its publisher advertises, else the one of its configuration. [tokens]"""
        return self.advertised_context or self.max_position_embeddings


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelAlias:
    """Another name of a model: a repository, a quantised copy, a tag, a file."""

    name: str
    model: str  # id
    label: str | None  # the weight format as the alias writes it; None: as published
    quant: str | None  # the format of the catalogue that the label means; None for a folder of GGUF files
    kind: str  # name, mirror, quantised, variant, fine-tune, tag or file
    seen_in: str
    max_position_embeddings: int | None = None  # where it differs from the model's


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelMatch:
    """A model found by one of its names."""

    model: Model
    quant: str | None  # canonical weight format that the name implies
    matched: str  # the name as the catalogue writes it


@cache
def all_models() -> Mapping[str, Model]:
    """Return all models by id, in the order of the catalogue."""
    return _catalogue()[0]


@cache
def model_aliases() -> Mapping[str, ModelAlias]:
    """Return all other names of models, by name; their ids, names and repositories are not repeated."""
    return _catalogue()[1]


def aliases_of(model_id: str) -> tuple[ModelAlias, ...]:
    """Return the other names of one model."""
    return tuple(alias for alias in model_aliases().values() if alias.model == model_id)


def find_model(name: str) -> ModelMatch:
    """
    Return the model of this id, name, repository or alias.

    The exact spelling wins; then case, spaces, hyphens and underscores are ignored; then the part of a
    repository name behind the slash is enough where only one model has it. A weight format may follow after
    a colon, as in `unsloth/Qwen3-8B-GGUF:Q4_K_M`.

    Raises:
        UnknownName: if no model is called so, or the weight format is unknown; with close matches.
    """
    wanted = name.strip()
    match = known_model(wanted)
    if match is None and ":" in wanted:
        base, _, tag = wanted.rpartition(":")
        of_base = known_model(base)
        if of_base is not None:
            match = ModelMatch(model=of_base.model, quant=find_quant(tag).name, matched=of_base.matched)
    if match is None:
        raise UnknownName("model", name, _close(wanted))
    return match


def _close(name: str) -> list[str]:
    """Return ids that look like the name, or whose other names do."""
    by_name = {other: match.model.id for other, match in _by_name().items()}
    return list(dict.fromkeys(by_name[near] for near in close_matches(name, by_name, n=6)))[:3]


def known_model(name: str) -> ModelMatch | None:
    """Return what `find_model` does of a whole name, without a search for close matches; None if unknown."""
    key = lookup_key(name)
    return _by_name().get(name) or _by_key().get(key) or _by_basename().get(key)


@cache
def _by_name() -> Mapping[str, ModelMatch]:
    """Return every name as written, ids first."""
    models, aliases = _catalogue()
    by_name: dict[str, ModelMatch] = {}
    for model in models.values():
        for name in (model.id, model.name, model.hf_repo):
            if name:
                _claim(by_name, name, ModelMatch(model=model, quant=None, matched=name))
    for alias in aliases.values():
        match = ModelMatch(model=models[alias.model], quant=alias.quant, matched=alias.name)
        _claim(by_name, alias.name, match)
    return by_name


@cache
def _by_key() -> Mapping[str, ModelMatch]:
    """Return every name in its forgiving form."""
    by_key: dict[str, ModelMatch] = {}
    for name, match in _by_name().items():
        _claim(by_key, lookup_key(name), match)
    return by_key


@cache
def _by_basename() -> Mapping[str, ModelMatch]:
    """Return what stands behind the slash of a repository name, where all that share it mean the same."""
    groups: dict[str, list[ModelMatch]] = {}
    for name, match in _by_name().items():
        if "/" in name:
            groups.setdefault(lookup_key(name.rpartition("/")[2]), []).append(match)
    return {
        key: matches[0]
        for key, matches in groups.items()
        if len({(match.model.id, match.quant) for match in matches}) == 1
    }


def _claim(by_name: dict[str, ModelMatch], name: str, match: ModelMatch) -> None:
    """Enter a name; the first entry stays, and a second model with it is refused."""
    known = by_name.setdefault(name, match)
    if known.model.id != match.model.id:
        raise ValueError(f"models.toml: {name!r} names both {known.model.id} and {match.model.id}")


@cache
def _catalogue() -> tuple[Mapping[str, Model], Mapping[str, ModelAlias]]:
    tables = read_toml("models.toml", "model")
    blocks = [(table["id"], table.pop("aliases", "")) for table in tables]
    models = unique([build(Model, table) for table in tables], "id", "models.toml")
    aliases = unique(flat(_read_aliases(*block) for block in blocks), "name", "models.toml")
    return MappingProxyType(models), MappingProxyType(aliases)


def _read_aliases(model_id: str, block: str) -> Iterable[ModelAlias]:
    """Read lines of `name | weight format or - | kind | seen in [| context]`."""
    for name, label, kind, seen_in, *context in read_lines(block):
        values: dict[str, Any] = {"name": name, "model": model_id, "kind": kind, "seen_in": seen_in}
        values["label"] = None if label == "-" else label
        values["quant"] = None if label in ("-", "GGUF") else find_quant(label).name
        values["max_position_embeddings"] = int(context[0]) if context else None
        yield ModelAlias(**values)
