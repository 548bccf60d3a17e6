"""A model from its own files: the record that its `config.json` and its tensors describe."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

from planner.catalogues.models import Model
from planner.errors import UnknownArchitecture, UnreadableModel
from planner.reading.counting import count_parameters
from planner.reading.experts import EXPERTS, FeedForward, feed_forward
from planner.reading.fields import MOST_CONFIG_BYTES, MOST_LAYERS, Config, open_config, parse_config
from planner.reading.figures import Known, reading_notes, with_figures
from planner.reading.layers import layer_count, layer_kinds
from planner.reading.quantisation import read_native
from planner.reading.safetensors import SafetensorsIndex
from planner.reading.shaping import layers_by_part, model_of
from planner.reading.tensors import TensorTable
from planner.reading.towers import Towers, read_towers

__all__ = ["ModelReading", "model_from_config", "printable", "read_config", "read_config_text"]

# Longer names are cut. Source: own choice, twice the longest repository name of the catalogue.
MOST_NAME_LETTERS = 120
# Fields of other kinds than plain attention; in a model_type that is not known they make the cache unknown.
# Source: docs/models.md, "Unknown architectures"; the configuration classes of transformers 5.24.0.
_OTHER_KINDS = re.compile(
    r"(kv_lora_rank|q_lora_rank|o_lora_rank|qk_(nope|rope)_head_dim|mamba_|ssm_|linear_(num|key|value|attn|conv)"
    r"|compress_r|layers_block_type|hybrid_|conv_L_cache|kda_|attn_type_list|attn_layer_|full_attention_interval"
    r"|index_(topk|n_heads|head_dim)|indexer_|block_configs|lightning|rwkv|altup_|laurel_|time_mix|retention"
    r"|sparse_attention_config|attention_chunk_size|hidden_size_per_layer_input|num_kv_shared_layers|cla_"
    r"|cross_attention_layers|moe_hidden_size|n_recurrent|recurrent_|[A-Za-z]+_cycles|num_loops"
    r"|block_types|lru_|attention_window_size|kv_shar|shared_kv|state_size|\w*(retention|recurrent|wkv))"
)
# Models that generate no text token by token, and recurrences that are not modelled, by model_type.
# Source: transformers 5.24.0, the configuration classes of these names; fla-org/flash-linear-attention.
_ENCODERS = re.compile(
    r"\w*(bert|electra|clip|siglip|dinov\d|wav2vec)\w*|(deberta|xlm|vit)([-_]\w+)*|nomic\w*|mpnet"
    r"|(m|um|long|switch_|flan-)?t5\w*|(m|led_)?bart|marian|pegasus|whisper|esm|layoutlm\w*|xlnet|funnel"
)
_RECURRENCES = re.compile(r"rwkv\w*|recurrent_gemma|griffin|retnet|xlstm|hgrn\d?|gla|gsa|based|ttt|delta_net")


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelReading:
    """What the files of a model say."""

    model: Model
    quant: str | None  # entry of the catalogue in whose format the files hold the weights; None: as published
    notes: tuple[str, ...] = ()
    tensors: TensorTable | None = None
    is_gguf: bool = False  # served by llama.cpp

    def noted(self, *notes: str) -> Self:
        """Return the same with further notes on what is not known."""
        every = (*self.notes, *notes)
        return replace(self, model=replace(self.model, doubts=every, notes="; ".join(every)), notes=every)


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
    repository: str | None = None,
    params: int | None = None,
    active_params: int | None = None,
    facts: Mapping[str, Any] | None = None,
    quantisation: Mapping[str, Any] | None = None,
    index: SafetensorsIndex | None = None,
    tensors: TensorTable | None = None,
) -> ModelReading:
    """
    Read a Hugging Face configuration.

    Args:
        config: Content of `config.json`.
        name: Of the model, for people.
        where: File or address, for messages and as the source.
        repository: On the Hugging Face hub, where it comes from there.
        params: Total parameters, where a person states them; they win over the count.
        active_params: Parameters read for one token, likewise.
        facts: Fields that the configuration lacks, by their names; they win over it.
        quantisation: Content of `hf_quant_config.json` beside it.
        index: Of the files beside it, where only that is there.
        tensors: Of the files beside it: exact elements and bytes.

    Raises:
        UnreadableModel: if it is no configuration of a language model, or a field cannot be.
        UnknownArchitecture: if it leaves open what memory and speed depend on; names the missing facts.
    """
    opened = open_config(config, where, facts)
    _refuse_unknown_kinds(opened)
    _require(opened)
    kinds = layer_kinds(opened)
    model = model_of(opened, printable(name), kinds, _blocks(opened, params))
    native = read_native(opened, layers_by_part(model), quantisation)
    towers = read_towers(opened, model.hidden_size)
    model = replace(
        model,
        id=model.id if repository is None else f"hf:{repository}",
        hf_repo=repository,
        vision=towers.vision,
        vision_params=towers.vision_params,
        audio_params=towers.audio_params,
        modality=_modality(towers),
    )
    known = Known(tensors=tensors, index=index, params=params, active_params=active_params)
    model, doubts = with_figures(model, native, known)
    notes = (*reading_notes([*native.notes, *_reading_notes(opened)], towers.notes, known), *doubts)
    return ModelReading(model=model, quant=native.quant, tensors=tensors).noted(*notes)


def _refuse_unknown_kinds(config: Config) -> None:
    """Refuse a `model_type` that is not known and has fields of another kind than plain attention."""
    if config.family is not None:
        return
    kind = config.model_type
    if _ENCODERS.fullmatch(kind) or config.top.get("is_encoder_decoder") is True:
        what = f"model_type {kind!r} is an encoder, or a pair of encoder and decoder: no language model that"
        raise UnreadableModel(
            config.where, f"{what} writes on token by token, so neither cache nor speed are known"
        )
    if _RECURRENCES.fullmatch(kind):
        what = f"model_type {kind!r} is not known and keeps a recurrent state"
        raise UnknownArchitecture(config.where, f"{what}; name a type that is built alike", ("model_type",))
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
    ]
    if config.family is None or not config.family.is_all_linear:
        groups.append(("num_attention_heads", "num_heads", "n_head", "n_heads"))
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
        tries, key=lambda blocks: abs(count_parameters(model_of(config, "-", kinds, blocks)).total - params)
    )


def _modality(towers: Towers) -> tuple[str, ...]:
    seen = ("image",) if towers.vision is not None else ()
    heard = ("audio",) if towers.audio_params is not None else ()
    return ("text", *seen, *heard)


def _reading_notes(config: Config) -> list[str]:
    notes = []
    if config.family is None:
        notes.append(f"model_type {config.model_type!r} is not known: read as plain grouped-query attention")
        if config.raw("tie_word_embeddings") is None and config.top.get("tie_word_embeddings") is None:
            notes.append("tie_word_embeddings is not stated: embedding and head are counted as two matrices")
    if config.counts("cross_attention_layers", up_to=MOST_LAYERS):
        notes.append("layers of cross attention keep keys and values of images, which are not counted")
    if config.defaulted:
        notes.append(f"not stated, taken from the class: {', '.join(sorted(config.defaulted))}")
    if config.facts:
        stated = ", ".join(f"{name}={value}" for name, value in sorted(config.facts.items()))
        notes.append(f"stated by the user: {stated}")
    return notes


def printable(name: str) -> str:
    """Return a name that a terminal can show: a file may call itself anything."""
    shown = "".join(letter if letter.isprintable() else " " for letter in name[:MOST_NAME_LETTERS])
    return " ".join(shown.split()) or "model"
