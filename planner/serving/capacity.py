"""The capacity screen: would uniform weights fit, before anything is known of engine, cache or quality."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from planner.catalogues.gpus import Gpu
from planner.catalogues.models import Model
from planner.errors import InvalidScenario
from planner.serving.shape import layers_by_kind
from planner.units import GB

CAPACITY_SCHEMA = "breakeven.capacity/1"

# A published capacity screen keeps 15 % of each GPU unused (AI Infra Interviews, checked 2026-09-13).
FREE_SHARE = 0.15
# The uniform precisions that it lists.
UNIFORM_BITS = (16, 8, 4)

# Kinds of layers that keep a fixed state and no growing cache, in the words of model cards.
_LINEAR_KINDS = frozenset({"gated_delta", "kda", "mamba1", "mamba2", "short_conv"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Capacity:
    """How many devices of one kind hold uniform weights and a budget."""

    bits: int
    weights_bytes: float
    budget_bytes: float
    per_gpu_bytes: float  # what a device offers after the free share
    gpu_count: int

    @property
    def needed_bytes(self) -> float:
        """Weights and budget together. [B]"""
        return self.weights_bytes + self.budget_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerEvidence:
    """How many layers keep what, as the model's configuration says."""

    by_kind: Mapping[str, int]
    linear_layers: int  # fixed state
    attention_layers: int  # a cache that grows, up to a window where there is one
    full_layers: int
    evidence: str  # config, model-card, listing or user
    sources: tuple[str, ...]


def weight_floor_bytes(model: Model, bits: float) -> float:
    """Labelled parameters at one uniform precision: a floor, without scales, cache or buffers. [B]"""
    return (model.published_total_params or model.main_params) * bits / 8


def screen(model: Model, gpu: Gpu, *, bits: int = 16, budget_gb: float = 0.0) -> Capacity:
    """
    Return how many devices hold uniform weights and a budget for everything else.

    n = ceil((labelled parameters x bits / 8 + budget) / (label x (1 - 15 %))), in decimal GB.

    Args:
        model: What is to be held.
        gpu: Of which device.
        bits: Of every parameter.
        budget_gb: For the cache or state of all requests, workspace and buffers of the replica. [GB]

    Raises:
        InvalidScenario: if the bits or the budget cannot be used.

    Source:
        docs/methodology.md, "Capacity screen".
    """
    if not 0 < bits <= 32:
        raise InvalidScenario("bits", bits, "bits per parameter above 0 and up to 32")
    if not 0 <= budget_gb <= 1e9:
        raise InvalidScenario("budget_gb", budget_gb, "a budget of 0 GB or more, and up to 1e9")
    weights, budget = weight_floor_bytes(model, bits), budget_gb * GB
    per_gpu = gpu.memory_gb_vendor * GB * (1 - FREE_SHARE)
    return Capacity(
        bits=bits,
        weights_bytes=weights,
        budget_bytes=budget,
        per_gpu_bytes=per_gpu,
        gpu_count=math.ceil((weights + budget) / per_gpu),
    )


def layer_evidence(model: Model) -> LayerEvidence:
    """Return a model's layers by kind, with where that is known from."""
    by_kind = layers_by_kind(model)
    linear = sum(count for kind, count in by_kind.items() if kind in _LINEAR_KINDS)
    return LayerEvidence(
        by_kind=by_kind,
        linear_layers=linear,
        attention_layers=sum(by_kind.values()) - linear,
        full_layers=by_kind.get("full", 0) + by_kind.get("mla", 0),
        evidence=model.evidence,
        sources=model.sources,
    )


def to_document(model: Model, gpu: Gpu, budget_gb: float = 0.0) -> Mapping[str, object]:
    """Return the screen at 16, 8 and 4 bits with the layers of the model as `breakeven.capacity/1`."""
    layers = layer_evidence(model)
    rows = [screen(model, gpu, bits=bits, budget_gb=budget_gb) for bits in UNIFORM_BITS]
    return {
        "schema": CAPACITY_SCHEMA,
        "model": model.id,
        "gpu": gpu.name,
        "free_share": FREE_SHARE,
        "budget_gb": budget_gb,
        "rows": [
            {
                "bits": row.bits,
                "weights_gb": row.weights_bytes / GB,
                "needed_gb": row.needed_bytes / GB,
                "per_gpu_gb": row.per_gpu_bytes / GB,
                "gpu_count": row.gpu_count,
            }
            for row in rows
        ],
        "layers": {
            "by_kind": dict(layers.by_kind),
            "linear": layers.linear_layers,
            "attention": layers.attention_layers,
            "full": layers.full_layers,
            "evidence": layers.evidence,
            "sources": list(layers.sources),
        },
    }
