"""Which kind of mixer each layer has, by the many ways in which configurations say it."""

from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import TypeVar

from planner.reading.fields import MOST_LAYERS, MOST_TOKENS, Config

Kinds = list["LayerKind"]
Item = TypeVar("Item")


class LayerKind(StrEnum):
    """What a layer mixes tokens with, before shapes are looked at."""

    FULL = "full"
    SLIDING = "sliding"
    CHUNKED = "chunked"
    LINEAR = "linear"  # recurrent: which recurrence is a matter of the family
    CONV = "conv"
    PARALLEL = "parallel"  # attention and a recurrence side by side
    NONE = "none"  # a feed-forward block only


# Words of `layer_types` and `layers_block_type`. Any other is refused: a guess would size the cache wrongly.
WORDS = {
    "full_attention": LayerKind.FULL,
    "full": LayerKind.FULL,
    "attention": LayerKind.FULL,
    "global_attention": LayerKind.FULL,
    "indexed_attention": LayerKind.FULL,  # sparse attention keeps the whole cache
    "deepseek_sparse_attention": LayerKind.FULL,
    "sliding_attention": LayerKind.SLIDING,
    "local_attention": LayerKind.SLIDING,
    "chunked_attention": LayerKind.CHUNKED,
    "linear_attention": LayerKind.LINEAR,
    "mamba": LayerKind.LINEAR,
    "conv": LayerKind.CONV,
    "short_conv": LayerKind.CONV,
    "moe": LayerKind.NONE,
    "mlp": LayerKind.NONE,
}
# Letters of `hybrid_override_pattern`. Source: Nemotron-H configurations.
LETTERS = {"M": "mamba", "*": "attention", "E": "moe", "-": "mlp"}


def layer_count(config: Config) -> int:
    """Return the number of layers; where it is not stated, the length of a list with one entry for each."""
    stated = config.count("num_hidden_layers", "num_layers", "n_layer", "n_layers", up_to=MOST_LAYERS)
    if stated is not None:
        return stated
    for name in ("layers_block_type", "hybrid_override_pattern", "block_configs"):
        value = config.raw(name)
        if isinstance(value, list | str) and 0 < len(value) <= MOST_LAYERS:
            return len(value)
    raise config.missing("num_hidden_layers")


def context_tokens(config: Config) -> int | None:
    """Return the number of positions that the configuration states. [tokens]"""
    names = (
        "max_position_embeddings",
        "max_seq_len",
        "seq_length",
        "n_ctx",
        "max_sequence_length",
        "n_positions",
    )
    return config.count(*names, up_to=MOST_TOKENS)


def window_tokens(config: Config) -> int | None:
    """
    Return the sliding window, None where it is off.

    Off is null or 0, `use_sliding_window` false, and a window that reaches beyond the context.
    """
    window = config.count("sliding_window", "sliding_window_size", up_to=MOST_TOKENS, at_least=0)
    needs_word = config.family is not None and config.family.needs_use_sliding_window
    context = context_tokens(config)
    is_off = not config.flag("use_sliding_window", default=not needs_word)
    if not window or is_off or (context is not None and window >= context):
        return None
    return window


def layer_kinds(config: Config) -> tuple[LayerKind, ...]:
    """
    Return the kind of each layer.

    The first of these that is stated decides: a letter or word for each layer, lists of layer numbers,
    periods, the rule of the family.

    Raises:
        UnreadableModel: if a list is too short or holds a word that is not known.
        UnknownArchitecture: if nothing says which layers slide.
    """
    layers = layer_count(config)
    for rule in _RULES:
        kinds = rule(config, layers)
        if kinds is not None:
            break
    else:
        kinds = [LayerKind.FULL] * layers
        if (config.family is not None and config.family.linear is not None) or config.has("conv_L_cache"):
            what = (
                f"model_type {config.model_type!r}: which layers attend and which are recurrent is not stated"
            )
            raise config.missing("layer_types", what=what)
    if window_tokens(config) is None:
        kinds = [LayerKind.FULL if kind is LayerKind.SLIDING else kind for kind in kinds]
    if not config.has("attention_chunk_size"):
        kinds = [LayerKind.FULL if kind is LayerKind.CHUNKED else kind for kind in kinds]
    return tuple(kinds)


def block_words(config: Config, layers: int) -> list[str] | None:
    """Return what each layer of a hybrid holds, where letters or `layers_block_type` say it."""
    letters = config.raw("hybrid_override_pattern")
    if letters:
        if not isinstance(letters, str) or set(letters) - set(LETTERS):
            raise config.wrong("hybrid_override_pattern", letters, f"made of {' '.join(LETTERS)}")
        return _one_each(config, "hybrid_override_pattern", [LETTERS[letter] for letter in letters], layers)
    words = config.words("layers_block_type")
    return None if words is None else _one_each(config, "layers_block_type", words, layers)


def _from_family(config: Config, layers: int) -> Kinds | None:
    """Families whose layers are all alike."""
    family = config.family
    if family is not None and (family.is_all_linear or family.is_parallel):
        return [LayerKind.LINEAR if family.is_all_linear else LayerKind.PARALLEL] * layers
    return None


def _from_blocks(config: Config, layers: int) -> Kinds | None:
    words = block_words(config, layers)
    return None if words is None else _kinds(config, "layers_block_type", words)


def _from_pruned_blocks(config: Config, layers: int) -> Kinds | None:
    """Read `block_configs` of a network search: blocks whose attention was removed."""
    blocks = config.raw("block_configs")
    if not isinstance(blocks, list) or not blocks:
        return None
    kinds = []
    for block in _one_each(config, "block_configs", blocks, layers):
        attention = block.get("attention") if isinstance(block, dict) else None
        if not isinstance(attention, dict):
            raise config.wrong("block_configs", "without attention in a block", "one block for each layer")
        if attention.get("replace_with_linear"):
            raise config.wrong("replace_with_linear", "true", "false: such blocks are not modelled")
        kinds.append(LayerKind.NONE if attention.get("no_op") else LayerKind.FULL)
    return kinds


def _from_linear_lists(config: Config, layers: int) -> Kinds | None:
    """Read `kda_layers` and `full_attn_layers`, which count layers from 1."""
    lists = config.part("linear_attn_config")
    if lists is None or lists.counts("kda_layers", "full_attn_layers") is None:
        return None
    linear = set(lists.counts("kda_layers", up_to=MOST_LAYERS) or ())
    full = set(lists.counts("full_attn_layers", up_to=MOST_LAYERS) or ())
    if linear & full or linear | full != set(range(1, layers + 1)):
        what = f"{len(linear)} and {len(full)} layers"
        raise config.wrong("kda_layers, full_attn_layers", what, f"the layers 1 to {layers}, each once")
    return [LayerKind.LINEAR if number in linear else LayerKind.FULL for number in range(1, layers + 1)]


def _from_period(config: Config, layers: int) -> Kinds | None:
    """Read Jamba's period: attention where `i % period == offset`, from 0, else Mamba."""
    period = config.count("attn_layer_period", up_to=MOST_LAYERS)
    if period is None:
        return None
    offset = config.count("attn_layer_offset", up_to=MOST_LAYERS, at_least=0) or 0
    return [LayerKind.FULL if i % period == offset else LayerKind.LINEAR for i in range(layers)]


def _from_latents(config: Config, layers: int) -> Kinds | None:
    """Layers with compressed latents differ in their ratio only."""
    return [LayerKind.FULL] * layers if config.has("compress_ratios", "compress_rates") else None


def _from_layer_types(config: Config, layers: int) -> Kinds | None:
    """Read the list of words; entries beyond the layers belong to draft layers."""
    word = config.raw("layer_types")
    words = [word] * layers if isinstance(word, str) else config.words("layer_types")
    return (
        None
        if words is None
        else _kinds(config, "layer_types", _one_each(config, "layer_types", words, layers))
    )


def _from_hybrid_pattern(config: Config, layers: int) -> Kinds | None:
    """Read MiMo's list of numbers: 1 slides."""
    marks = config.counts("hybrid_layer_pattern")
    if marks is None:
        return None
    marks = _one_each(config, "hybrid_layer_pattern", marks, layers)
    return [LayerKind.SLIDING if mark else LayerKind.FULL for mark in marks]


def _from_attention_numbers(config: Config, layers: int) -> Kinds | None:
    """Read the layers that have attention, from 0; the others are convolutions (LFM) or Mamba (Bamba)."""
    numbers = config.counts("full_attn_idxs", "attn_layer_indices", up_to=MOST_LAYERS)
    if numbers is None:
        return None
    is_linear = config.family is not None and config.family.linear is not None
    other = LayerKind.LINEAR if is_linear else LayerKind.CONV
    return [LayerKind.FULL if i in set(numbers) else other for i in range(layers)]


def _from_interval(config: Config, layers: int) -> Kinds | None:
    """Every so many-th layer is full, the others are linear."""
    every = config.count("full_attention_interval", up_to=MOST_LAYERS)
    if every is None or config.family is None or config.family.linear is None:
        return None
    return [LayerKind.LINEAR if (i + 1) % every else LayerKind.FULL for i in range(layers)]


def _from_chunks(config: Config, layers: int) -> Kinds | None:
    """Read Llama 4: layers without rotation are full, the others see their chunk."""
    if config.family is None or not config.family.is_chunked:
        return None
    rotates = config.counts("no_rope_layers")
    if rotates is None:
        every = config.need("nope_layer_interval", "no_rope_layer_interval", up_to=MOST_LAYERS)
        rotates = [(i + 1) % every for i in range(layers)]
    rotates = _one_each(config, "no_rope_layers", rotates, layers)
    return [LayerKind.CHUNKED if mark else LayerKind.FULL for mark in rotates]


def _from_window(config: Config, layers: int) -> Kinds | None:
    """Read a period of sliding layers, the family's where none is stated; without one, all layers slide."""
    if window_tokens(config) is None:
        return None
    pattern = config.raw("sliding_window_pattern", "_sliding_window_pattern")
    if isinstance(pattern, str) and pattern and not set(pattern) - {"L", "G"}:
        return [
            LayerKind.SLIDING if pattern[i % len(pattern)] == "L" else LayerKind.FULL for i in range(layers)
        ]
    every = config.count("sliding_window_pattern", "_sliding_window_pattern", up_to=MOST_LAYERS)
    family = config.family
    if every is None and family is not None:
        every = family.full_every
    if every is None:
        if family is None:
            raise config.missing(
                "layer_types", what="sliding_window is set, and which layers slide is not stated"
            )
        first = config.count("max_window_layers", up_to=MOST_LAYERS, at_least=0) or 0
        return [LayerKind.SLIDING if i >= first else LayerKind.FULL for i in range(layers)]
    kinds = [LayerKind.SLIDING if (i + 1) % every else LayerKind.FULL for i in range(layers)]
    if family is not None and family.last_is_full:
        kinds[-1] = LayerKind.FULL
    return kinds


_RULES: tuple[Callable[[Config, int], Kinds | None], ...] = (
    _from_family,
    _from_blocks,
    _from_pruned_blocks,
    _from_linear_lists,
    _from_period,
    _from_latents,
    _from_layer_types,
    _from_hybrid_pattern,
    _from_attention_numbers,
    _from_interval,
    _from_chunks,
    _from_window,
)


def _kinds(config: Config, name: str, words: Sequence[str]) -> Kinds:
    """Return the kinds that words stand for; an unknown one is refused."""
    for word in words:
        if word not in WORDS:
            raise config.wrong(name, f"{word!r} for a layer", "one of " + ", ".join(WORDS))
    return [WORDS[word] for word in words]


def _one_each(config: Config, name: str, items: list[Item], layers: int) -> list[Item]:
    """Return one item for each layer; more belong to draft layers, fewer are refused."""
    if len(items) < layers:
        raise config.wrong(name, f"{len(items)} long", f"{layers} long, one entry for each layer")
    return items[:layers]
