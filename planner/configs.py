"""A model from its own files: the record that its `config.json` and its tensors describe."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from planner.errors import UnknownArchitecture, UnreadableModel
from planner.models import AttentionKind, Model
from planner.reading.attention import attention_groups, latent_attention
from planner.reading.counting import ParameterCount, count_active, count_parameters
from planner.reading.experts import EXPERTS, FeedForward, feed_forward
from planner.reading.families import known_types
from planner.reading.fields import MOST_CONFIG_BYTES, MOST_WORDS, Config, open_config, parse_config
from planner.reading.layers import LayerKind, context_tokens, layer_count, layer_kinds
from planner.reading.quantisation import Native, Part, read_native
from planner.reading.tensors import TensorTable
from planner.reading.towers import Towers, read_towers

__all__ = ["ModelReading", "model_from_config", "read_config", "read_config_text"]

# More than any model has, by a factor of 100: what lies above is a misread or a joke.
MOST_PARAMS = 10**15
# A total that a person states and a count that differ by more are reported. Source: own choice.
DOUBTFUL_SHARE = 0.1
# Fields of other kinds than plain attention; in a model_type that is not known they make the cache unknown.
# Source: docs/models.md, "Unknown architectures"; the configuration classes of transformers 5.24.0.
_OTHER_KINDS = re.compile(
    r"(kv_lora_rank|q_lora_rank|o_lora_rank|qk_(nope|rope)_head_dim|mamba_|ssm_|linear_(num|key|value|attn|conv)"
    r"|compress_r|layers_block_type|hybrid_|conv_L_cache|kda_|attn_type_list|attn_layer_|full_attention_interval"
    r"|index_(topk|n_heads|head_dim)|indexer_|block_configs|lightning|rwkv|altup_|laurel_|time_mix|retention"
    r"|sparse_attention_config|attention_chunk_size|hidden_size_per_layer_input|num_kv_shared_layers|cla_"
    r"|cross_attention_layers|moe_hidden_size|n_recurrent|recurrent_|[A-Za-z]+_cycles|num_loops)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelReading:
    """What the files of a model say."""

    model: Model
    quant: str | None  # entry of the catalogue in whose format the files hold the weights; None: as published
    notes: tuple[str, ...] = ()
    tensors: TensorTable | None = None


def read_config_text(text: str, where: str = "config.json") -> dict[str, Any]:
    """
    Return the object in a `config.json`.

    Raises:
        UnreadableModel: if it is none, or larger than any configuration.
    """
    if len(text) > MOST_CONFIG_BYTES:
        raise UnreadableModel(where, f"{len(text):,} characters are too many for a config.json")
    return parse_config(text, where)


def model_from_config(config: Mapping[str, Any], *, name: str, params: int | None = None) -> Model:
    """Return the model that a configuration describes; `read_config` says more about it."""
    return read_config(config, name=name, params=params).model


def read_config(
    config: Mapping[str, Any],
    *,
    name: str,
    where: str = "config.json",
    params: int | None = None,
    active_params: int | None = None,
    facts: Mapping[str, Any] | None = None,
    quantisation: Mapping[str, Any] | None = None,
    tensors: TensorTable | None = None,
) -> ModelReading:
    """
    Read a Hugging Face configuration.

    Args:
        config: Content of `config.json`.
        name: Of the model, for people.
        where: File or address, for messages and as the source.
        params: Total parameters, where a person states them; they win over the count.
        active_params: Parameters read for one token, likewise.
        facts: Fields that the configuration lacks, by their names; they win over it.
        quantisation: Content of `hf_quant_config.json` beside it.
        tensors: Of the files beside it: exact elements and bytes.

    Raises:
        UnreadableModel: if it is no configuration of a language model, or a field cannot be.
        UnknownArchitecture: if it leaves open what memory and speed depend on; names the missing facts.
    """
    opened = open_config(config, where, facts)
    _refuse_unknown_kinds(opened)
    _require(opened)
    kinds = layer_kinds(opened)
    blocks = _blocks(opened, params)
    model = _shape(opened, name, kinds, blocks)
    native = read_native(opened, _layers_by_part(model), quantisation)
    towers = read_towers(opened, model.hidden_size)
    model = replace(
        model,
        vision=towers.vision,
        vision_params=towers.vision_params,
        audio_params=towers.audio_params,
        modality=_modality(towers),
    )
    count = count_parameters(model)
    notes = _reading_notes(opened, native, towers)
    model, more = _with_counts(model, count, tensors, params, active_params)
    model = _with_native(model, native, count, tensors)
    notes = (*notes, *more)
    return ModelReading(
        model=replace(model, notes="; ".join(notes)), quant=native.quant, notes=notes, tensors=tensors
    )


def _refuse_unknown_kinds(config: Config) -> None:
    """Refuse a `model_type` that is not known and has fields of another kind than plain attention."""
    if config.family is not None:
        return
    other = sorted(name for name in config.text if _OTHER_KINDS.match(name) and config.has(name))
    if other and "layer_types" not in config.facts:
        what = (
            f"model_type {config.model_type!r} is not known and has {', '.join(other[:4])}: what its layers"
            " keep of each token is not known; name a type that is built alike"
        )
        raise UnknownArchitecture(config.where, what, ("model_type",))


def _require(config: Config) -> None:
    """Refuse a configuration without the facts that nothing else can tell, naming all of them at once."""
    groups = [
        ("hidden_size", "n_embd", "d_model"),
        ("vocab_size", "padded_vocab_size"),
        ("num_attention_heads", "num_heads", "n_head", "n_heads"),
    ]
    missing = [names[0] for names in groups if config.raw(*names) is None]
    try:
        layer_count(config)
    except UnknownArchitecture:
        missing.insert(0, "num_hidden_layers")
    if missing:
        kind = config.model_type or "unknown"
        raise config.missing(
            *missing, what=f"model_type {kind!r}: {', '.join(missing)} not stated and not known"
        )


def _blocks(config: Config, params: int | None) -> FeedForward:
    """Read the feed-forward blocks; where the family does not say, the stated total tells of a gate."""
    try:
        return feed_forward(config)
    except UnknownArchitecture as error:
        if error.missing != ("ffn_matrices",) or params is None or config.has(*EXPERTS):
            raise
    kinds = layer_kinds(config)
    tries = [
        feed_forward(replace(config, facts={**config.facts, "ffn_matrices": matrices})) for matrices in (2, 3)
    ]
    return min(
        tries, key=lambda blocks: abs(count_parameters(_shape(config, "-", kinds, blocks)).total - params)
    )


def _shape(config: Config, name: str, kinds: tuple[LayerKind, ...], blocks: FeedForward) -> Model:
    """Return the record with all but what is counted, named or stored."""
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
        id=_slug(name),
        name=name,
        family=config.model_type,
        hf_repo=name if re.fullmatch(r"[\w.-]+/[\w.-]+", name) else None,
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
        config_source="read from its own file",
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


def _layers_by_part(model: Model) -> Mapping[Part, int]:
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


def _modality(towers: Towers) -> tuple[str, ...]:
    seen = ("image",) if towers.vision is not None else ()
    heard = ("audio",) if towers.audio_params is not None else ()
    return ("text", *seen, *heard)


def _with_counts(
    model: Model, count: ParameterCount, tensors: TensorTable | None, params: int | None, active: int | None
) -> tuple[Model, tuple[str, ...]]:
    """
    Return the model with its parameters, and what is doubtful about them.

    A person's figure wins, then elements counted from unquantised tensors, then the count from the shape.
    """
    counted_active = count_active(model, count)
    total, basis = count.total, "counted from the architecture in its config"
    notes: list[str] = []
    stored = tensors.served_elements(model) if tensors is not None else None
    if stored is not None:
        total, basis = stored, "exact: elements of its tensors"
    if params is not None:
        total, basis = params, "stated by the user"
    if not 0 < count.total <= MOST_PARAMS or not 0 < total <= MOST_PARAMS:
        raise UnreadableModel(model.sources[0], f"{max(total, count.total):,} parameters cannot be")
    off = count.total / total - 1
    if abs(off) > (DOUBTFUL_SHARE if params is not None else 0.01):
        notes.append(
            f"the configuration counts {count.total:,} parameters, {off:+.1%} from the {total:,} {basis}"
        )
    scaled = min(total, round(counted_active * total / count.total))
    if active is not None:
        scaled = active
        if active > total:
            raise UnreadableModel(model.sources[0], f"{active:,} active parameters of {total:,} cannot be")
    embedding = 0 if model.tied_embeddings else model.vocab_size * model.hidden_size
    return (
        replace(
            model,
            main_params=total,
            main_params_basis=basis,
            active_params=scaled,
            active_params_with_embedding=min(total, scaled + embedding),
            total_params=None if tensors is None else tensors.elements,
            total_params_basis=None if tensors is None else "elements of its tensors",
            evidence="config" if params is None and active is None else "user",
        ),
        tuple(notes),
    )


def _with_native(model: Model, native: Native, count: ParameterCount, tensors: TensorTable | None) -> Model:
    """Return the model with the bits that its files hold, and their bytes where these are known."""
    bits = native.bits
    other = None
    if bits is not None:
        shared = model.moe.shared_intermediate_size or 0 if model.moe is not None else 0
        matrices = model.moe.ffn_matrices if model.moe is not None else 0
        shared_params = (
            (model.moe.moe_layers if model.moe is not None else 0) * matrices * shared * model.hidden_size
        )
        dense_params = max(0, count.feed_forward - shared_params)
        weighed = (
            count.mixers * bits[Part.ATTENTION]
            + shared_params * bits[Part.SHARED]
            + dense_params * bits[Part.DENSE]
        )
        other = weighed / max(1, count.mixers + shared_params + dense_params)
    return replace(
        model,
        native_dtype=native.dtype,
        native_expert_bits=bits[Part.EXPERTS] if bits is not None and model.moe is not None else None,
        native_other_bits=other,
        checkpoint_bytes=None if tensors is None else tensors.total_bytes,
        checkpoint_bytes_basis=None if tensors is None else "bytes of its tensors",
    )


def _reading_notes(config: Config, native: Native, towers: Towers) -> tuple[str, ...]:
    notes = [*native.notes, *towers.notes]
    if config.family is None:
        notes.append(f"model_type {config.model_type!r} is not known: read as plain grouped-query attention")
    if config.defaulted:
        notes.append(f"not stated, taken from the class: {', '.join(sorted(config.defaulted))}")
    if config.facts:
        stated = ", ".join(f"{name}={value}" for name, value in sorted(config.facts.items()))
        notes.append(f"stated by the user: {stated}")
    return tuple(notes)


def _slug(name: str) -> str:
    return re.sub(r"[^a-z0-9.]+", "-", name.lower()).strip("-") or "model"


def readable_types() -> tuple[str, ...]:
    """Return every `model_type` that is read without further facts."""
    return known_types()
