"""Which layers llama.cpp keeps in host memory for a share of the weights, and which share some layers are."""

import math
from dataclasses import dataclass

from planner.catalogues.models import Model
from planner.catalogues.quants import QuantFormat
from planner.memory import weights
from planner.serving.question import offloads_experts_first
from planner.workload import Workload


@dataclass(frozen=True, slots=True, kw_only=True)
class HostLayers:
    """The first layers of a model that lie in host memory: whole, or their routed experts only."""

    whole: int
    experts: (
        int  # of so many layers, those that lie there whole among them; 0: experts lie where their layer does
    )


def layers_to_host(work: Workload) -> HostLayers:
    """
    Return the layers in host memory that take at least the share that is offloaded.

    Args:
        work: Of which so much is offloaded; a mixture of experts by its routed experts first.

    Source:
        docs/methodology.md, "Speed".
    """
    model, share = work.model, work.offload_fraction
    routed = _routed_share(model, work.quant)
    if not routed or not share or not offloads_experts_first(work.engine, work.method):
        return HostLayers(whole=_whole(model.num_layers * share), experts=0)
    if share > routed:
        rest = (share - routed) / (1.0 - routed)
        return HostLayers(whole=_whole(model.num_layers * rest), experts=model.num_layers)
    dense, holding = _dense_first(model), model.num_layers - _dense_first(model)
    return HostLayers(whole=0, experts=dense + _whole(holding * share / routed))


def host_share(model: Model, quant: QuantFormat, held: HostLayers) -> float:
    """Return the share of the weights that such layers are; what is no routed expert is spread evenly."""
    routed, whole = _routed_share(model, quant), min(held.whole, model.num_layers)
    experts = _experts_before(model, max(whole, held.experts))
    return (1.0 - routed) * whole / model.num_layers + routed * experts


def _whole(layers: float) -> int:
    return math.ceil(layers - 1e-9)


def _routed_share(model: Model, quant: QuantFormat) -> float:
    held = weights(model, quant)
    return float(held.routed_bytes / held.total_bytes)


def _experts_before(model: Model, layers: int) -> float:
    """Return the share of all routed experts that the first layers hold."""
    dense = _dense_first(model)
    return min(1.0, max(0, layers - dense) / (model.num_layers - dense))


def _dense_first(model: Model) -> int:
    """Return the layers without experts at the start; those that alternate with others are spread evenly."""
    moe = model.moe
    if moe is None or moe.dense_layers >= moe.moe_layers:
        return 0
    return moe.dense_layers if moe.dense_layers + moe.moe_layers == model.num_layers else 0
