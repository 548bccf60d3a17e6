"""Where what is known of a model comes from, and what is not known of it."""

from collections.abc import Mapping
from dataclasses import dataclass

from planner.catalogues.models import Model
from planner.serving.shape import layers_by_kind


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """The record behind a sizing: figures with their basis, sources, and what is open."""

    evidence: str  # config, model-card, listing or user
    shape_from: str | None  # how directly the shape was read
    params_basis: str
    stored_params: int | None  # draft layers and doubles included
    stored_basis: str | None
    checkpoint_bytes: int | None  # None: sizes are computed from the shape
    checkpoint_basis: str | None
    layers: Mapping[str, int]  # by what they keep
    layers_without_mixer: int
    layer_bytes: tuple[int, ...] | None  # as stored, where its tensors were read
    unknown: tuple[str, ...]
    doubts: tuple[str, ...]
    sources: tuple[str, ...]
    checked: str | None

    def to_document(self) -> Mapping[str, object]:
        """Return it as plain JSON values."""
        return {
            "evidence": self.evidence,
            "shape_from": self.shape_from,
            "params_basis": self.params_basis,
            "stored_params": self.stored_params,
            "stored_basis": self.stored_basis,
            "checkpoint_bytes": self.checkpoint_bytes,
            "checkpoint_basis": self.checkpoint_basis,
            "layers": dict(self.layers),
            "layers_without_mixer": self.layers_without_mixer,
            "layer_bytes": None if self.layer_bytes is None else list(self.layer_bytes),
            "unknown": list(self.unknown),
            "doubts": list(self.doubts),
            "sources": list(self.sources),
            "checked": self.checked,
        }


def provenance(model: Model) -> Provenance:
    """Return where what is known of a model comes from."""
    return Provenance(
        evidence=model.evidence,
        shape_from=model.config_source,
        params_basis=model.main_params_basis,
        stored_params=model.total_params,
        stored_basis=model.total_params_basis,
        checkpoint_bytes=model.checkpoint_bytes,
        checkpoint_basis=model.checkpoint_bytes_basis,
        layers=layers_by_kind(model),
        layers_without_mixer=model.attention_free_layers,
        layer_bytes=model.stored.layer_bytes if model.stored is not None else None,
        unknown=_unknown(model),
        doubts=model.doubts,
        sources=model.sources,
        checked=model.checked or None,
    )


def _unknown(model: Model) -> tuple[str, ...]:
    """Name the facts that nothing states; they are not guessed."""
    facts = {
        "the context that it is made for": model.context_tokens is None,
        "the format of its published weights": model.native_other_bits is None,
        "the size of its draft layers": bool(model.mtp_layers) and not (model.mtp_params or model.stored),
        "the size of its vision tower": model.vision is not None and model.vision_params is None,
    }
    return tuple(fact for fact, is_open in facts.items() if is_open)
