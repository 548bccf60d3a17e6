"""What one layer mixes tokens with, before equal layers are put together."""

from dataclasses import dataclass

from planner.catalogues.models import AttentionGroup


@dataclass(frozen=True, slots=True, kw_only=True)
class Mixer:
    """One layer's mixer: its shape as a group of one layer, and what it owns."""

    group: AttentionGroup
    owns_cache: bool = True
    has_indexer: bool = False
    owns_index: bool = False
