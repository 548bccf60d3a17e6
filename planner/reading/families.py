"""What a family of models leaves out of its configurations: class defaults and habits, by `model_type`."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from types import MappingProxyType
from typing import Any

from planner.catalogue import build, read_toml


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """Models that are read alike; what a configuration says itself wins over all of it."""

    model_types: tuple[str, ...]  # of the text model, and of a wrapper whose text part has none
    tied: bool = False  # class default of tie_word_embeddings
    ignores_outer_tie: bool = False  # the wrapper's default says tied where the text model is not
    matrices: int = 3  # in a dense feed-forward block; 2 without a gate
    linear: str | None = None  # kind of the layers that are called linear or mamba
    is_all_linear: bool = False  # every layer is one of these, and has no feed-forward block
    is_parallel: bool = False  # every layer has both, attention and one of these
    inner_blocks: tuple[str, ...] = ()  # blocks whose fields are those of the model
    full_every: int | None = None  # every so many-th layer is full, the others slide
    last_is_full: bool = False
    is_chunked: bool = False  # layers that rotate positions see their chunk only
    needs_use_sliding_window: bool = False  # a window counts only where use_sliding_window is true
    expert_width: str | None = None  # field with the width of an expert, where not moe_intermediate_size
    dense_width: str | None = None  # field with the width of dense layers, where not intermediate_size
    width_multiple: int | None = None  # dense width over hidden width, where it is not stated
    has_implicit_shared_expert: bool = False
    states_expert_layers: bool = (
        False  # which layers hold experts, and shared ones: the class defaults differ
    )
    has_output_gate: bool = False
    has_head_gate: bool = False
    has_qkv_bias: bool = False
    has_qkv_bias_by_default: bool = False
    has_sinks: bool = False
    has_expert_bias: bool = False
    index_query_from_hidden: bool = False
    stores_no_draft: bool = False  # draft layers may be declared and are not in the files
    defaults: Mapping[str, Any] | None = None
    nested_defaults: Mapping[str, Any] | None = None  # inside a wrapper's text_config only
    sources: tuple[str, ...]
    checked: str  # ISO date


def family_of(model_type: str) -> Family | None:
    """Return the family of a `model_type`, None where it is not known."""
    return _families().get(model_type)


@cache
def _families() -> Mapping[str, Family]:
    by_type: dict[str, Family] = {}
    for table in read_toml("architectures.toml", "architecture"):
        defaults = MappingProxyType(table.pop("defaults", {}))
        nested = MappingProxyType(table.pop("nested_defaults", {}))
        family = replace(build(Family, table), defaults=defaults, nested_defaults=nested)
        for name in family.model_types:
            if by_type.setdefault(name, family) is not family:
                raise ValueError(f"architectures.toml: {name!r} belongs to two families")
    return MappingProxyType(by_type)
