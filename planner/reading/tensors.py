"""The tensors that the files of a model hold: elements, bytes, and what each is for."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

from planner.catalogues.models import Model
from planner.catalogues.stored import StoredWeights


class TensorClass(StrEnum):
    """What a tensor is for."""

    EMBEDDING = "embedding"
    HEAD = "head"
    ATTENTION = "attention"
    ROUTED_EXPERTS = "routed_experts"
    FEED_FORWARD = "feed_forward"
    TOWER = "tower"
    DRAFT = "draft"
    TABLE = "table"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Tensor:
    """One stored tensor."""

    name: str
    shape: tuple[int, ...]
    dtype: str  # as the file names it
    elements: int  # as stored: packed formats hold several weights in one
    size_bytes: int


@dataclass(frozen=True)
class TensorTable:
    """All tensors of a model."""

    tensors: tuple[Tensor, ...]
    is_packed: bool = False  # whether elements are not weights, as in packed 4-bit formats

    @cached_property
    def total_bytes(self) -> int:
        """Bytes of all tensors, without headers and padding. [B]"""
        return sum(tensor.size_bytes for tensor in self.tensors)

    @cached_property
    def elements(self) -> int | None:
        """Stored elements; None where they are not weights."""
        return None if self.is_packed else sum(tensor.elements for tensor in self.tensors)

    @cached_property
    def is_tied(self) -> bool | None:
        """Whether there is an input embedding and no output head; None where there is neither."""
        kinds = {class_of(tensor.name) for tensor in self.tensors if layer_of(tensor.name) is None}
        if TensorClass.HEAD in kinds:
            return False
        return True if TensorClass.EMBEDDING in kinds else None

    @cached_property
    def bytes_by_class(self) -> dict[TensorClass, int]:
        """Bytes for each use. [B]"""
        sums = dict.fromkeys(TensorClass, 0)
        for tensor in self.tensors:
            sums[class_of(tensor.name)] += tensor.size_bytes
        return sums

    @cached_property
    def elements_by_tower(self) -> tuple[int, int]:
        """Elements of the encoders of images and of sound."""
        towers = [tensor for tensor in self.tensors if class_of(tensor.name) is TensorClass.TOWER]
        heard = sum(tensor.elements for tensor in towers if _AUDIO.search(tensor.name))
        return sum(tensor.elements for tensor in towers) - heard, heard

    def stored(self, model: Model) -> StoredWeights:
        """Return the bytes by what they are for; of what is served, all but the total."""
        sums = dict.fromkeys(TensorClass, 0)
        layers = [0] * model.num_layers
        for tensor in self.tensors:
            if is_loaded(tensor.name, model):
                kind, number = class_of(tensor.name), layer_of(tensor.name)
                sums[kind] += tensor.size_bytes
                if number is not None and kind is not TensorClass.TOWER:
                    layers[number] += tensor.size_bytes
        return StoredWeights(
            total_bytes=self.total_bytes,
            served_bytes=sum(sums.values()),
            routed_bytes=sums[TensorClass.ROUTED_EXPERTS],
            embedding_bytes=sums[TensorClass.EMBEDDING],
            head_bytes=sums[TensorClass.HEAD],
            tower_bytes=sums[TensorClass.TOWER],
            table_bytes=sums[TensorClass.TABLE],
            layer_bytes=tuple(layers),
        )

    def served_elements(self, model: Model) -> int | None:
        """
        Return the elements that are served, None where elements are not weights.

        Draft layers are left out, and an output head that is stored although it is tied.
        """
        if self.is_packed:
            return None
        return sum(tensor.elements for tensor in self.tensors if is_served(tensor.name, model))


# Block scales of 8-bit formats are stored as tensors and are no parameters.
_SCALE = re.compile(r"_scale(_inv|_2)?$|\.scales?$|_zero_point$|input_scale|[kv]_scale$")
_LAYER = re.compile(r"(?:^|\.)(?:layers|blk|h|blocks)\.(\d{1,5})\.")
_AUDIO = re.compile(r"audio|^a\.")
_TOWER = re.compile(r"vision|visual|audio|multi_modal_projector|mm_projector|^v\.|^mm\.|^a\.|embed_audio")
_CLASSES = (
    (re.compile(r"(^|\.)mtp|nextn|eh_proj|draft"), TensorClass.DRAFT),
    (re.compile(r"engram|ngram|per_layer_token_embd|embed_tokens_per_layer"), TensorClass.TABLE),
    (
        re.compile(r"embed_tokens|token_embd|word_embeddings|wte\.|embed_in\.|tok_embeddings"),
        TensorClass.EMBEDDING,
    ),
    (re.compile(r"lm_head|(^|\.)output\.weight|embed_out|output_layer"), TensorClass.HEAD),
    (re.compile(r"shared_?expert|share_expert|shexp"), TensorClass.FEED_FORWARD),
    (
        re.compile(r"experts?\.|_exps\.|experts_|\.moe\.(gate|up|down)_proj|sparse_moe\.(in|out)put_linear"),
        TensorClass.ROUTED_EXPERTS,
    ),
    (re.compile(r"attn|attention|mixer|ssm|shortconv|\.conv|indexer"), TensorClass.ATTENTION),
    (re.compile(r"mlp|ffn|feed_forward|gate_inp"), TensorClass.FEED_FORWARD),
)


def class_of(name: str) -> TensorClass:
    """Return what a tensor is for, by the name that its format gives it."""
    if _TOWER.search(name):
        return TensorClass.TOWER
    for pattern, kind in _CLASSES:
        if pattern.search(name):
            return kind
    return TensorClass.OTHER


def layer_of(name: str) -> int | None:
    """Return the layer that a tensor belongs to, counted from 0; None outside of layers."""
    match = _LAYER.search(name)
    return int(match[1]) if match else None


def is_loaded(name: str, model: Model) -> bool:
    """Whether a tensor is needed to serve: no draft layer, no second copy of a tied matrix."""
    kind, number = class_of(name), layer_of(name)
    is_extra_layer = kind is not TensorClass.TOWER and number is not None and number >= model.num_layers
    is_double = kind is TensorClass.HEAD and model.tied_embeddings
    return kind is not TensorClass.DRAFT and not is_extra_layer and not is_double


def is_served(name: str, model: Model) -> bool:
    """Whether a tensor's elements are served parameters: loaded, and no scale of others."""
    return is_loaded(name, model) and not _SCALE.search(name)


def joined(tables: Iterable[TensorTable]) -> TensorTable:
    """Return the tensors of several files as one table."""
    parts = list(tables)
    tensors = tuple(tensor for part in parts for tensor in part.tensors)
    return TensorTable(tensors, is_packed=any(part.is_packed for part in parts))
