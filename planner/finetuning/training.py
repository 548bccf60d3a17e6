"""Memory of a training run: base, trained parameters with gradients and states, activations, buffers."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from planner.catalogues.models import Model
from planner.catalogues.quants import find_quant
from planner.errors import InvalidScenario
from planner.finetuning.adapters import Targets, adapter_width
from planner.memory import weights
from planner.serving.constants import StateBytes, constants
from planner.serving.shape import shape_of
from planner.units import GB, GIB
from planner.workload import MOST_GPUS


class Tuning(StrEnum):
    """What is trained."""

    QLORA = "qlora"  # adapters over a base in 4 bit
    LORA = "lora"  # adapters over a base in 16 bit
    FULL = "full"  # every parameter


class Optimizer(StrEnum):
    """How optimizer states are kept in full fine-tuning; adapters are trained in 32 bit."""

    MIXED = "adamw-mixed"  # 32-bit copy and moments
    PURE_BF16 = "adamw-bf16"
    EIGHT_BIT = "adamw-8bit"


class Sharding(StrEnum):
    """What the GPUs share out instead of each holding all of it; each includes the ones before."""

    NONE = "none"  # data parallel
    OPTIMIZER = "optimizer"  # ZeRO-1
    GRADIENTS = "gradients"  # ZeRO-2
    FULL = "full"  # ZeRO-3, FSDP: weights too


@dataclass(frozen=True, slots=True, kw_only=True)
class Training:
    """How a model is trained; the defaults are those of common examples, not of a measurement."""

    sequence_tokens: int = 2048
    batch: int = 1  # sequences of one step on one GPU
    rank: int = 16
    targets: Targets = Targets.LINEAR
    trains_embeddings: bool = False  # embeddings and head whole, beside adapters
    optimizer: Optimizer = Optimizer.MIXED
    is_fused: bool = True  # the optimizer's step is one kernel and keeps no intermediates
    is_checkpointed: bool = True  # activations are computed again in the backward pass
    gpu_count: int = 1
    sharding: Sharding = Sharding.FULL

    def __post_init__(self) -> None:
        # By the names of the options; far beyond what anybody trains, so that figures stay readable.
        for name, value, most in (
            ("sequence_tokens", self.sequence_tokens, 10**9),
            ("batch", self.batch, 10**6),
            ("rank", self.rank, 10**5),
            ("gpus", self.gpu_count, MOST_GPUS),
        ):
            if not 1 <= value <= most:
                raise InvalidScenario(
                    name, f"{value:g}", f"a whole number from 1 to {most:,}".replace(",", "")
                )

    def shares(self, part: Sharding) -> int:
        """Return among how many GPUs a part is shared out: optimizer states, gradients or weights."""
        order = list(Sharding)
        return self.gpu_count if order.index(self.sharding) >= order.index(part) else 1

    def check(self, model: Model) -> None:
        """
        Refuse what cannot be trained of a model.

        Raises:
            InvalidScenario: if adapters are to be on experts that it has not, or of a rank above the width of
                the model, which every matrix has on one side.
        """
        if self.targets is Targets.EXPERTS and model.moe is None:
            allowed = f"attention or linear: {model.name} has no routed experts"
            raise InvalidScenario("targets", str(self.targets), allowed)
        if self.rank > model.hidden_size:
            allowed = f"up to {model.hidden_size}, the width of {model.name}: no matrix has a higher rank"
            raise InvalidScenario("rank", self.rank, allowed)


@dataclass(frozen=True, slots=True, kw_only=True)
class TuningMemory:
    """What training takes, all GPUs together; bytes."""

    tuning: Tuning
    trained_params: float
    weights_bytes: float  # as stored while training
    training_bytes: float  # gradients, optimizer states, copies
    activation_bytes: float  # activations and logits, or what the optimizer's step takes; buffers

    @property
    def total_bytes(self) -> float:
        """All of it. [B]"""
        return self.weights_bytes + self.training_bytes + self.activation_bytes

    def to_document(self) -> Mapping[str, object]:
        """Return the figures in GiB."""
        return {
            "trained_params": self.trained_params,
            "weights_gib": self.weights_bytes / GIB,
            "gradients_optimizer_gib": self.training_bytes / GIB,
            "activations_gib": self.activation_bytes / GIB,
            "total_gib": self.total_bytes / GIB,
            "total_gb": self.total_bytes / GB,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class _Trained:
    """Parameters that are trained in one way."""

    params: float
    each: StateBytes
    is_base: bool = False  # their weights are those of the base


def memory(model: Model, tuning: Tuning, training: Training | None = None) -> TuningMemory:
    """
    A physical estimate: base, trained parameters with gradients and states, activations, logits, buffers.

    Activations, and what the optimizer needs for its step, are never there at once: the larger counts.

    Args:
        model: What is trained.
        tuning: Which parameters of it.
        training: Sequence, batch, rank and the like; the defaults where None.

    Source:
        docs/methodology.md, "Fine-tuning"; constants in planner/data/speed.toml.
    """
    how, known = training or Training(), constants().finetune
    trained = _trained(model, tuning, how)
    base = 2.0 * shape_of(model).main_params if tuning is Tuning.FULL else _base_bytes(model, tuning)
    copies = sum(part.params * part.each.weight for part in trained if not part.is_base)
    gradients = sum(part.params * part.each.gradient for part in trained)
    states = sum(part.params * part.each.state for part in trained)
    step = 0.0 if how.is_fused else sum(part.params * part.each.step for part in trained)
    passes = activation_bytes(model, how)
    if tuning is Tuning.QLORA:
        passes += 2.0 * _largest_matrix(model)  # the layer at work, back in 16 bit
    on_each = how.gpu_count
    return TuningMemory(
        tuning=tuning,
        trained_params=sum(part.params for part in trained),
        weights_bytes=base / how.shares(Sharding.FULL) * on_each,
        training_bytes=(
            copies / how.shares(Sharding.FULL)
            + gradients / how.shares(Sharding.GRADIENTS)
            + states / how.shares(Sharding.OPTIMIZER)
        )
        * on_each,
        activation_bytes=(max(passes, step / how.shares(Sharding.OPTIMIZER)) + known.framework_gib * GIB)
        * on_each,
    )


def _trained(model: Model, tuning: Tuning, how: Training) -> list[_Trained]:
    known, shape = constants().finetune, shape_of(model)
    if tuning is Tuning.FULL:
        by_optimizer = {
            Optimizer.MIXED: known.mixed,
            Optimizer.PURE_BF16: known.pure_bf16,
            Optimizer.EIGHT_BIT: known.adam_8bit,
        }
        return [_Trained(params=shape.main_params, each=by_optimizer[how.optimizer], is_base=True)]
    adapters = how.rank * float(adapter_width(model, how.targets))
    trained = [_Trained(params=adapters, each=known.adapter)]
    if how.trains_embeddings:
        trained.append(_Trained(params=shape.embedding_params, each=known.pure_bf16))
    return trained


def activation_bytes(model: Model, training: Training) -> float:
    """
    Activations and logits of one GPU. [B]

    With checkpointing 2 s b H L and one block, without L blocks; a block is 34 s b H, with experts 4 k s b H
    more; logits 10 s b V.

    Source:
        docs/methodology.md, "Fine-tuning".
    """
    known, shape = constants().finetune, shape_of(model)
    tokens = float(training.sequence_tokens * training.batch)
    copies = (
        0.0 if model.moe is None else known.expert_bytes_per_token_and_width * model.moe.experts_per_token
    )
    block = (known.activation_bytes_per_token_and_width + copies) * shape.hidden_size
    kept = known.checkpoint_bytes_per_token_and_width * shape.hidden_size * shape.blocks
    layers = kept + block if training.is_checkpointed else block * shape.blocks
    return tokens * (layers + known.logits_bytes_per_word * shape.vocab_size)


def _base_bytes(model: Model, tuning: Tuning) -> float:
    """Return the frozen base: 16 bit, or 4-bit matrices with 16-bit embeddings and towers."""
    shape = shape_of(model)
    if tuning is Tuning.LORA:
        return float(weights(model, find_quant("BF16")).formula_bytes)
    matrices = shape.linear_params + shape.routed_params
    return matrices * constants().finetune.nf4_bits / 8 + (shape.main_params - matrices) * 2.0


def _largest_matrix(model: Model) -> float:
    """Return the elements of the largest matrix of one layer."""
    widths = [model.intermediate_size or 0]
    if model.moe is not None:
        widths += [model.moe.dense_intermediate_size or 0, model.moe.shared_intermediate_size or 0]
        widths += [model.moe.moe_intermediate_size or 0]
    return float(max(widths)) * model.hidden_size
