"""Feed-forward blocks: which layers hold experts, how wide they and the dense ones are."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from planner.catalogues.models import MixtureOfExperts, MlpWidth
from planner.reading.fields import MOST_HEADS, MOST_LAYERS, Config
from planner.reading.layers import block_words, layer_count

EXPERTS = ("num_experts", "n_routed_experts", "num_local_experts", "moe_num_experts")
EXPERTS_PER_TOKEN = (
    "num_experts_per_tok",
    "num_experts_per_token",
    "moe_topk",
    "moe_top_k",
    "moe_k",
    "top_k_experts",
    "experts_per_token",
    "num_selected_experts",
)
EXPERT_WIDTH = ("moe_intermediate_size", "expert_intermediate_size", "moe_ffn_hidden_size")
SHARED_COUNT = ("n_shared_experts", "num_shared_experts", "moe_num_shared_experts", "num_shared_expert")
# Widths of all shared experts together; they win over a count.
SHARED_WIDTH = (
    "shared_expert_intermediate_size",
    "moe_shared_expert_intermediate_size",
    "shared_intermediate_size",
    "share_expert_dim",
)
FIRST_DENSE = (
    "first_k_dense_replace",
    "num_dense_layers",
    "moe_layer_num_skipped",
    "moe_layer_start_index",
)
DENSE_WIDTH = ("intermediate_size", "ffn_hidden_size", "block_ff_dim", "ffn_dim", "n_inner", "d_ff")
# Activations of two matrices whose first is a gate. Source: the SwiGLU class in every family that names them.
GATED = frozenset({"silu", "swiglu", "swigluoai", "swish", "situ"})
_SPARSE = {"sparse": True, "moe": True, "hash_moe": True, "dense": False}
# Widths of a pruned network are rounded up to this. Source: its configuration class, in models.toml.
_PRUNED_MULTIPLE = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedForward:
    """What a model computes between its mixers."""

    matrices: int
    intermediate_size: int | None
    moe: MixtureOfExperts | None = None
    mlp_layers: int | None = None
    mlp_widths: tuple[MlpWidth, ...] = ()


def feed_forward(config: Config) -> FeedForward:
    """
    Read the feed-forward blocks.

    Raises:
        UnreadableModel: if a width or a list cannot be, or differs in a way that is not modelled.
        UnknownArchitecture: if one is not stated.
    """
    layers = layer_count(config)
    if config.family is not None and config.family.is_all_linear:
        return FeedForward(matrices=config.family.matrices, intermediate_size=None, mlp_layers=0)
    if config.raw("block_configs"):
        return _pruned(config)
    words = block_words(config, layers)
    if expert_count(config) is not None:
        return _with_experts(config, layers, words)
    blocks = layers if words is None else words.count("mlp")
    widths = _dense_widths(
        config, [index for index in range(layers) if words is None or words[index] == "mlp"]
    )
    is_even = len(widths) == 1 and blocks == layers
    return FeedForward(
        matrices=matrices(config),
        intermediate_size=max(widths),
        mlp_layers=None if blocks == layers else blocks,
        mlp_widths=() if is_even else tuple(MlpWidth(width=width, blocks=n) for width, n in widths.items()),
    )


def expert_count(config: Config) -> int | None:
    """Return the number of routed experts, None where there are none: absent, null, 0, 1, or switched off."""
    if config.raw("enable_moe_block") is False:
        return None
    experts = _same(config, *EXPERTS, up_to=MOST_HEADS, at_least=0)
    is_unstated = experts is None and not config.states(*EXPERTS)
    if is_unstated and config.has(*EXPERTS_PER_TOKEN) and config.has(*EXPERT_WIDTH):
        what = "experts of a token and their width are stated, and not how many there are"
        raise config.missing("n_routed_experts", what=f"{what}: n_routed_experts, 0 for none")
    return experts if experts and experts > 1 else None


def matrices(config: Config) -> int:
    """
    Return the matrices of a feed-forward block: 3 with a gate, 2 without.

    Raises:
        UnknownArchitecture: if neither the family nor the activation says it.
    """
    stated = config.count("ffn_matrices", up_to=3, at_least=2)
    if stated is not None:
        return stated
    if config.family is not None:
        return config.family.matrices
    if config.word("hidden_act", "hidden_activation", "activation_function") in GATED:
        return 3
    what = f"model_type {config.model_type!r} is not known, nor whether its feed-forward blocks have a gate"
    raise config.missing("ffn_matrices", what=what)


def _with_experts(config: Config, layers: int, words: list[str] | None) -> FeedForward:
    experts = expert_count(config) or 0
    per_token = _same(config, *EXPERTS_PER_TOKEN, up_to=MOST_HEADS)
    if per_token is None:
        raise config.missing(EXPERTS_PER_TOKEN[0])
    if per_token > experts:
        raise config.wrong(EXPERTS_PER_TOKEN[0], per_token, f"at most the {experts} experts")
    sparse = [index for index, is_sparse in enumerate(sparse_layers(config, layers, words)) if is_sparse]
    dense = [index for index in range(layers) if index not in set(sparse)]
    if words is not None:
        dense = [index for index in dense if words[index] == "mlp"]
    width = expert_width(config)
    shared, shared_width = _shared(config, width)
    has_dense = config.flag("enable_moe_block")
    dense_width = max(_dense_widths(config, dense)) if dense else None
    if has_dense:  # Gemma 4: a dense block beside the experts of every layer counts as a shared expert
        shared, shared_width = 1, max(_dense_widths(config, sparse))
    family = config.family
    moe = MixtureOfExperts(
        routed_experts=experts,
        experts_per_token=per_token,
        moe_intermediate_size=width,
        shared_experts=shared,
        shared_intermediate_size=shared_width,
        moe_layers=len(sparse),
        dense_layers=len(dense),
        dense_intermediate_size=dense_width,
        ffn_matrices=matrices(config),
        expert_hidden_size=config.count("moe_latent_size", "routed_expert_hidden_size"),
        has_dense_mlp_in_every_layer=has_dense,
        has_expert_bias=family is not None and family.has_expert_bias,
        hash_routed_layers=config.count("num_hash_layers", up_to=MOST_LAYERS, at_least=0) or 0,
        expert_groups=config.count("n_group", "num_expert_group", at_least=0) or None,
        groups_per_token=config.count("topk_group", at_least=0) or None,
    )
    return FeedForward(matrices=matrices(config), intermediate_size=dense_width or shared_width, moe=moe)


def expert_width(config: Config) -> int:
    """
    Return the width of one routed expert.

    `intermediate_size` is that of an expert in some families, that of a dense layer in others, and unused in
    others again: the family decides.
    """
    width = _same(config, *EXPERT_WIDTH)
    if width is not None:
        return width
    if config.family is not None and config.family.expert_width is not None:
        return config.need(config.family.expert_width)
    raise config.missing(EXPERT_WIDTH[0])


def _shared(config: Config, width: int) -> tuple[int, int]:
    """Return the number of shared experts and their width together."""
    stated = _same(config, *SHARED_WIDTH, at_least=0)
    count = _same(config, *SHARED_COUNT, up_to=MOST_HEADS, at_least=0)
    if config.raw("use_mixed_mlp_moe") is False:
        return 0, 0
    if stated:
        return (count or 1, stated) if count != 0 else (0, 0)
    if config.family is not None and config.family.has_implicit_shared_expert:
        return 1, width
    if count is None:
        _need_stated(config, SHARED_COUNT, "how many experts are shared")
    return count or 0, (count or 0) * width


def sparse_layers(config: Config, layers: int, words: list[str] | None = None) -> list[bool]:
    """Return for each layer whether it holds experts; lists win over periods, periods over counts."""
    if words is not None:
        return [word == "moe" for word in words]
    for rule in _SPARSE_RULES:
        marks = rule(config, layers)
        if marks is not None:
            if not any(marks):
                raise config.wrong("the layers with experts", "none", "some, where experts are stated")
            return marks
    _need_stated(config, FIRST_DENSE, "how many layers at the start hold no experts")
    return [True] * layers


def _need_stated(config: Config, names: tuple[str, ...], what: str) -> None:
    """
    Refuse what a family states and this configuration does not; `null` states that there are none.

    Raises:
        UnknownArchitecture: if it is not there.
    """
    family = config.family
    if family is not None and family.states_expert_layers and not config.states(*names):
        raise config.missing(
            names[0], what=f"model_type {config.model_type!r}: {what} is not stated: {names[0]}, 0 for none"
        )


def _by_words(config: Config, layers: int) -> list[bool] | None:
    words = config.words("mlp_layer_types")
    if words is None:
        return None
    unknown = set(words) - set(_SPARSE)
    if unknown or len(words) < layers:
        what = f"{sorted(unknown)[0]!r} for a layer" if unknown else f"{len(words)} long"
        raise config.wrong("mlp_layer_types", what, f"{layers} times one of " + ", ".join(_SPARSE))
    return [_SPARSE[word] for word in words[:layers]]


def _by_marks(config: Config, layers: int) -> list[bool] | None:
    marks = config.counts("moe_layer_freq")
    if marks is None:
        return None
    if len(marks) < layers:
        raise config.wrong("moe_layer_freq", f"{len(marks)} long", f"{layers} long, one entry for each layer")
    return [bool(mark) for mark in marks[:layers]]


def _by_numbers(config: Config, layers: int) -> list[bool] | None:
    """Read the layers with experts as a list or as numbers in a text, from 0."""
    text = config.raw("moe_layers_enum")
    if isinstance(text, str) and text:
        cells = [cell.strip() for cell in text.split(",")]
        if not all(cell.isascii() and cell.isdigit() and len(cell) < 6 for cell in cells):
            raise config.wrong("moe_layers_enum", repr(text[:40]), "layer numbers with commas between them")
        numbers: list[int] | None = [int(cell) for cell in cells]
    else:
        numbers = config.counts("moe_layers_enum", "moe_layers", up_to=MOST_LAYERS)
    return None if numbers is None else [index in set(numbers) for index in range(layers)]


def _by_period(config: Config, layers: int) -> list[bool] | None:
    every = config.count("expert_layer_period", up_to=MOST_LAYERS)
    if every is not None:
        offset = config.count("expert_layer_offset", up_to=MOST_LAYERS, at_least=0) or 0
        return [index % every == offset for index in range(layers)]
    every = config.count("interleave_moe_layer_step", up_to=MOST_LAYERS)
    if every is not None:
        return [(index + 1) % every == 0 for index in range(layers)]
    every = config.count("decoder_sparse_step", up_to=MOST_LAYERS)
    if every is not None:
        dense = set(config.counts("mlp_only_layers", up_to=MOST_LAYERS) or ())
        return [index not in dense and (index + 1) % every == 0 for index in range(layers)]
    return None


def _by_first(config: Config, layers: int) -> list[bool] | None:
    """Read the number of dense layers at the start, with a period or an end after them."""
    first = config.count(*FIRST_DENSE, up_to=MOST_LAYERS, at_least=0)
    if first is None:
        return None
    every = config.count("moe_layer_freq", "moe_layer_interval", up_to=MOST_LAYERS) or 1
    last = config.raw("moe_layer_end_index")
    end = last if isinstance(last, int) and 0 <= last < layers else layers - 1
    shift = 1 if config.raw("moe_layer_interval") is not None else 0
    return [first <= index <= end and (index + shift) % every == 0 for index in range(layers)]


_SPARSE_RULES: tuple[Callable[[Config, int], list[bool] | None], ...] = (
    _by_words,
    _by_marks,
    _by_numbers,
    _by_period,
    _by_first,
)


def _dense_widths(config: Config, indexes: list[int]) -> Counter[int]:
    """Return how many of these layers have a dense block of which width."""
    shared = config.count("num_kv_shared_layers", up_to=MOST_LAYERS, at_least=0) or 0
    layers = layer_count(config)
    is_double = config.flag("use_double_wide_mlp")
    widths: Counter[int] = Counter()
    for index in indexes:
        width = _dense_width(config.at_layer(index), index)
        widths[2 * width if is_double and index >= layers - shared else width] += 1
    if not widths:
        raise config.wrong("the feed-forward layers", "none", "some")
    return widths


def _dense_width(config: Config, index: int) -> int:
    """Return the width of a dense block; LFM2 states one that is cut to two thirds and rounded up."""
    each = config.counts(*DENSE_WIDTH)
    if each is not None:
        if index >= len(each) or not each[index]:
            raise config.wrong(DENSE_WIDTH[0], f"{len(each)} long", "a width above 0 for each layer")
        return each[index]
    family = config.family
    own = (family.dense_width,) if family is not None and family.dense_width is not None else ()
    width = config.count(*own) if own else None
    if width is None:
        width = config.count(*DENSE_WIDTH)
    if width is None:
        if family is not None and family.width_multiple is not None:
            return family.width_multiple * config.need("hidden_size", "n_embd", "d_model")
        raise config.missing(DENSE_WIDTH[0])
    if not config.flag("block_auto_adjust_ff_dim"):
        return width
    factor = config.raw("block_ffn_dim_multiplier")
    width = int(2 * width / 3)
    if isinstance(factor, int | float) and 0 < factor < 100:
        width = int(factor * width)
    multiple = config.need("block_multiple_of")
    return -(-width // multiple) * multiple


def _pruned(config: Config) -> FeedForward:
    """Read the blocks of a network search, each with a width of its own or none."""
    hidden = config.need("hidden_size")
    widths: Counter[int] = Counter()
    blocks = config.raw("block_configs")
    for block in blocks if isinstance(blocks, list) else []:
        ffn = block.get("ffn") if isinstance(block, dict) else None
        if not isinstance(ffn, dict) or ffn.get("replace_with_linear"):
            raise config.wrong("block_configs", "a block without ffn or with a linear one", "blocks with ffn")
        if not ffn.get("no_op"):
            widths[_pruned_width(config, ffn, hidden)] += 1
    if not widths:
        raise config.wrong("block_configs", "without a feed-forward block", "some with one")
    return FeedForward(
        matrices=matrices(config),
        intermediate_size=max(widths),
        mlp_layers=widths.total(),
        mlp_widths=tuple(MlpWidth(width=width, blocks=n) for width, n in widths.items()),
    )


def _pruned_width(config: Config, ffn: dict[str, Any], hidden: int) -> int:
    stated = ffn.get("intermediate_size")
    if stated is not None:
        return config.checked("intermediate_size", stated, 2**22, 1)
    factor = ffn.get("ffn_mult")
    if isinstance(factor, bool) or not isinstance(factor, int | float) or not 0 < factor < 1000:
        raise config.wrong("ffn_mult", repr(factor), "a number above 0")
    return -(-int(2 * factor * hidden / 3) // _PRUNED_MULTIPLE) * _PRUNED_MULTIPLE


def _same(config: Config, *names: str, up_to: int = 2**20, at_least: int = 1) -> int | None:
    """Return a number that may be listed for each layer, if it is the same in all."""
    value = config.raw(*names)
    if isinstance(value, list):
        numbers = set(config.counts(*names, up_to=up_to) or ())
        if len(numbers) > 1:
            raise config.wrong(
                names[0], "different from layer to layer", "the same in all (others are not modelled)"
            )
        return next(iter(numbers), None)
    return config.count(*names, up_to=up_to, at_least=at_least)
