"""From fields, layers and blocks to the record of a model whose parameters are not counted yet."""

import re
from collections.abc import Mapping

from planner.catalogues.models import AttentionKind, Model
from planner.errors import UnreadableModel
from planner.reading.attention import attention_groups
from planner.reading.experts import FeedForward
from planner.reading.fields import MOST_WORDS, Config
from planner.reading.latents import latent_attention
from planner.reading.layers import LayerKind, context_tokens
from planner.reading.quantisation import Part


def model_of(config: Config, name: str, kinds: tuple[LayerKind, ...], blocks: FeedForward) -> Model:
    """
    Return the record with all but what is counted or stored.

    Raises:
        UnreadableModel, UnknownArchitecture: if a shape cannot be, or is not stated.
    """
    groups = attention_groups(config, kinds)
    widest = next((group for group in groups if group.heads is not None), groups[0] if groups else None)
    if widest is None:
        raise UnreadableModel(config.where, "no layer mixes tokens")
    is_latent = widest.kind is AttentionKind.MLA
    key_width = (widest.qk_nope_head_dim or 0) + (widest.qk_rope_head_dim or 0)
    table, table_note = _tables(config, len(kinds))
    per_layer = config.count("hidden_size_per_layer_input", at_least=0) or None
    drafts = config.count(
        "num_nextn_predict_layers", "mtp_num_hidden_layers", "num_mtp_modules", up_to=64, at_least=0
    )
    stores_none = config.family is not None and config.family.stores_no_draft
    architectures = config.top.get("architectures")
    return Model(
        id=model_id(name),
        name=name,
        family=config.model_type,
        hf_repo=None,
        architecture=str(architectures[0]) if isinstance(architectures, list) and architectures else None,
        model_type=config.model_type or None,
        modality=("text",),
        license=None,
        release_date=None,
        published_total_params=None,
        published_active_params=None,
        total_params=None,
        main_params=1,
        main_params_basis="not counted yet",
        active_params=1,
        active_params_with_embedding=None,
        mtp_layers=0 if stores_none else drafts,
        mtp_params=None,
        vision_params=None,
        audio_params=None,
        ngram_table_params=table,
        ngram_table_note=table_note,
        num_layers=len(kinds),
        attention_free_layers=sum(kind is LayerKind.NONE for kind in kinds),
        hidden_size=config.need("hidden_size", "n_embd", "d_model"),
        num_attention_heads=widest.heads,
        num_kv_heads=widest.heads if is_latent else widest.kv_heads,
        head_dim=key_width if is_latent else widest.head_dim,
        attention_groups=groups,
        latent_attention=latent_attention(config),
        hyper_connections=config.count("hc_mult", "hc_count", up_to=64),
        hyper_connection_rank=config.count("hc_lowrank") if config.has("hc_count") else None,
        intermediate_size=blocks.intermediate_size,
        mlp_layers=blocks.mlp_layers,
        mlp_widths=blocks.mlp_widths,
        mlp_matrices=blocks.matrices,
        per_layer_embedding_size=per_layer,
        moe=blocks.moe,
        vocab_size=config.need("vocab_size", "padded_vocab_size", up_to=MOST_WORDS),
        tied_embeddings=is_tied(config),
        max_position_embeddings=context_tokens(config),
        advertised_context=None,
        native_dtype=None,
        native_expert_bits=None,
        native_other_bits=None,
        checkpoint_bytes=None,
        checkpoint_bytes_basis=None,
        gguf_repo=None,
        min_vllm_version=None,
        llama_cpp_support=None,
        evidence="config",
        config_source="its own config.json",
        notes="",
        sources=(config.where,),
        checked="",
    )


def is_tied(config: Config) -> bool:
    """
    Return whether input embedding and output head are one matrix.

    The text level says it, else the top, else the default of the class, which differs by family. A wrapper's
    `true` that is only its own default does not make the text model tied.
    """
    for level in (config.facts, config.text):
        value = level.get("tie_word_embeddings")
        if value is not None:
            return bool(value)
    family = config.family
    outer = config.top.get("tie_word_embeddings")
    if outer is not None and not (outer and family is not None and family.ignores_outer_tie):
        return bool(outer)
    return family is not None and family.tied


def _tables(config: Config, layers: int) -> tuple[int | None, str | None]:
    """Return the elements of tables that are looked up and never multiplied."""
    rows = config.counts("engram_num_embeddings", up_to=2**40)
    if rows is not None:
        return sum(rows) * config.need("engram_head_dim"), "Engram tables: looked up, can live in host memory"
    ngram = config.counts("ple_layer_ids", up_to=layers)
    if ngram is not None:
        base = config.need("ngram_vocab_size_base", up_to=2**40)
        return (
            len(ngram) * base * config.need("ple_embed_dim", up_to=2**20),
            "n-gram tables: looked up, can live in host memory",
        )
    width = config.count("hidden_size_per_layer_input", at_least=0)
    if width:
        words = config.need("vocab_size_per_layer_input", "vocab_size", up_to=MOST_WORDS)
        return words * width * layers, "embeddings of each layer: looked up, can live in host memory"
    return None, None


def layers_by_part(model: Model) -> Mapping[Part, int]:
    """Return how many layers have each class of tensors."""
    mixers = sum(group.layers for group in model.attention_groups)
    if model.moe is None:
        return {
            Part.ATTENTION: mixers,
            Part.DENSE: model.mlp_layers or model.num_layers,
            Part.SHARED: 0,
            Part.EXPERTS: 0,
        }
    return {
        Part.ATTENTION: mixers,
        Part.DENSE: model.moe.dense_layers,
        Part.SHARED: model.moe.moe_layers,
        Part.EXPERTS: model.moe.moe_layers,
    }


def model_id(name: str) -> str:
    """Return the id of a model that is in no catalogue; none of the catalogue looks like it."""
    return f"file:{re.sub(r'[^a-z0-9.]+', '-', name.lower()).strip('-') or 'model'}"
