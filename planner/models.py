"""The catalogue of models: shapes, parameter counts, names, each with its sources."""

from dataclasses import dataclass
from enum import StrEnum


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

    head_dim: int
    heads: int | None = None
    key_heads: int | None = None
    budget_tokens: int | None = None
    compress_ratio: float | None = None


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
    note: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MixtureOfExperts:
    """The routed and shared experts of a model."""

    routed_experts: int
    experts_per_token: int
    moe_intermediate_size: int | None = None
    shared_experts: int = 0
    shared_intermediate_size: int | None = None
    moe_layers: int
    dense_layers: int = 0
    dense_intermediate_size: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """
    One shape of model; counts are elements, not bytes.

    `main_params` is what is served: without draft layers and duplicates, vision tower and lookup tables
    included. `active_params` are read once per generated token, the input embedding left out.
    """

    id: str
    name: str
    family: str
    hf_repo: str | None
    model_type: str | None
    license: str | None
    release_date: str | None
    modality: tuple[str, ...]
    published_total_params: float | None  # the label, rounded by its publisher
    published_active_params: float | None
    total_params: int | None  # elements stored in the checkpoint
    main_params: int
    main_params_basis: str
    active_params: int
    active_params_with_embedding: int | None
    mtp_layers: int
    mtp_params: int | None
    vision_params: int | None
    audio_params: int | None
    ngram_table_params: int | None
    num_layers: int
    hidden_size: int
    num_attention_heads: int | None
    num_kv_heads: int | None
    head_dim: int | None
    attention_groups: tuple[AttentionGroup, ...]
    intermediate_size: int | None
    moe: MixtureOfExperts | None
    vocab_size: int
    tied_embeddings: bool
    max_position_embeddings: int | None
    advertised_context: int | None
    native_dtype: str | None
    native_expert_bits: float | None
    native_other_bits: float | None
    checkpoint_bytes: int | None
    checkpoint_bytes_basis: str | None
    gguf_repo: str | None
    min_vllm_version: str | None
    llama_cpp_support: str | None
    evidence: str  # config, model-card, listing or user
    notes: str
    sources: tuple[str, ...]
    checked: str  # ISO date
