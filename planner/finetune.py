"""Memory of fine-tuning: QLoRA, LoRA and full, by the sizing page's arithmetic and by a physical estimate."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from planner.constants import constants
from planner.errors import InvalidScenario
from planner.gpus import Gpu, all_gpus
from planner.memory import simple_usable_bytes, simple_weights, visible_bytes, weights
from planner.models import AttentionGroup, AttentionKind, Model
from planner.quants import find_quant
from planner.shape import shape_of
from planner.units import GB, GIB

FINETUNE_SCHEMA = "breakeven.finetune/1"

# Counts that one machine of the catalogue may have.
_COUNTS = (1, 2, 4, 8)


class Tuning(StrEnum):
    """What is trained."""

    QLORA = "qlora"  # adapters over a base in 4 bit
    LORA = "lora"  # adapters over a base in 16 bit
    FULL = "full"  # every parameter


class Optimizer(StrEnum):
    """How optimizer states are kept."""

    MIXED = "adamw-mixed"  # 32-bit copy and moments
    PURE_BF16 = "adamw-bf16"
    EIGHT_BIT = "adamw-8bit"


@dataclass(frozen=True, slots=True, kw_only=True)
class Training:
    """How a model is trained; the defaults are those of common examples, not of a measurement."""

    sequence_tokens: int = 2048
    batch: int = 1  # sequences of one step on one GPU
    rank: int = 16
    optimizer: Optimizer = Optimizer.MIXED
    is_checkpointed: bool = True  # activations are computed again in the backward pass
    gpu_count: int = 1  # among which weights, gradients and optimizer states are sharded

    def __post_init__(self) -> None:
        # By the names of the options; far beyond what anybody trains, so that figures stay readable.
        for name, value, most in (
            ("sequence_tokens", self.sequence_tokens, 10**9),
            ("batch", self.batch, 10**6),
            ("rank", self.rank, 10**5),
            ("gpus", self.gpu_count, 10**5),
        ):
            if not 1 <= value <= most:
                raise InvalidScenario(
                    name, f"{value:g}", f"a whole number from 1 to {most:,}".replace(",", "")
                )


@dataclass(frozen=True, slots=True, kw_only=True)
class TuningMemory:
    """What training takes, all GPUs together; bytes."""

    tuning: Tuning
    trained_params: float
    weights_bytes: float  # as stored while training
    training_bytes: float  # gradients, optimizer states, copies
    activation_bytes: float  # activations, logits, buffers

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
class Holder:
    """The fewest GPUs of one kind that hold a training run."""

    gpu: str
    gpu_count: int
    usable_bytes: float
    needed_bytes: float


def simple_memory(model: Model, tuning: Tuning) -> TuningMemory:
    """
    The sizing page's arithmetic: no sequence length, no batch, no rank.

    Full: 3.10 x 16-bit weights for gradients and states, and 2.69 GiB. LoRA: 0.1 % of the parameters x 16 B
    over 16-bit weights, and 1.52 GiB. QLoRA: 0.1 % x 10.2 B over Q4_K_M weights, and 1.14 GiB. The page adds
    decimal GB of adapters to GiB, and so does this.

    Source:
        docs/methodology.md, "Fine-tuning", simple method.
    """
    known = constants().simple
    params = float(model.published_total_params or model.main_params)
    base_format = find_quant("Q4_K_M" if tuning is Tuning.QLORA else "BF16")
    base = float(simple_weights(model, base_format).total_bytes)
    if tuning is Tuning.FULL:
        return TuningMemory(
            tuning=tuning,
            trained_params=params,
            weights_bytes=base,
            training_bytes=base * known.full_factor,
            activation_bytes=known.full_buffers_gib * GIB,
        )
    is_quantised = tuning is Tuning.QLORA
    trained = params * known.lora_trained_share
    per_param = known.qlora_bytes_per_trained if is_quantised else known.lora_bytes_per_trained
    return TuningMemory(
        tuning=tuning,
        trained_params=trained,
        weights_bytes=base,
        training_bytes=trained * per_param / GB * GIB,
        activation_bytes=(known.qlora_buffers_gib if is_quantised else known.lora_buffers_gib) * GIB,
    )


def memory(model: Model, tuning: Tuning, training: Training | None = None) -> TuningMemory:
    """
    A physical estimate: base, trained parameters with gradients and states, activations, logits, buffers.

    Weights, gradients and states are sharded among the GPUs; activations, logits and buffers are on each.
    Routed experts are trained in full fine-tuning and carry no adapters.

    Args:
        model: What is trained.
        tuning: Which parameters of it.
        training: Sequence, batch, rank and the like; the defaults where None.

    Source:
        docs/methodology.md, "Fine-tuning"; constants in planner/data/speed.toml.
    """
    how, known = training or Training(), constants().finetune
    shape = shape_of(model)
    if tuning is Tuning.FULL:
        per_param = {
            Optimizer.MIXED: known.mixed_bytes_per_param,
            Optimizer.PURE_BF16: known.pure_bf16_bytes_per_param,
            Optimizer.EIGHT_BIT: known.adam_8bit_bytes_per_param,
        }[how.optimizer]
        trained, base = shape.main_params, 2.0 * shape.main_params
        states = trained * per_param - base
    else:
        trained = how.rank * float(adapter_width(model))
        base = _base_bytes(model, tuning)
        states = trained * known.adapter_bytes_per_param
    each = activation_bytes(model, how) + known.framework_gib * GIB
    if tuning is Tuning.QLORA:
        each += 2.0 * _largest_matrix(model)  # the layer at work, back in 16 bit
    return TuningMemory(
        tuning=tuning,
        trained_params=trained,
        weights_bytes=base,
        training_bytes=states,
        activation_bytes=each * how.gpu_count,
    )


def activation_bytes(model: Model, training: Training) -> float:
    """
    Activations and logits of one GPU. [B]

    With checkpointing 2 s b H L + 34 s b H, without 34 s b H L; logits 10 s b V.

    Source:
        docs/methodology.md, "Fine-tuning".
    """
    known, shape = constants().finetune, shape_of(model)
    tokens = float(training.sequence_tokens * training.batch)
    block = known.activation_bytes_per_token_and_width * shape.hidden_size
    kept = known.checkpoint_bytes_per_token_and_width * shape.hidden_size * shape.blocks
    layers = kept + block if training.is_checkpointed else block * shape.blocks
    return tokens * (layers + known.logits_bytes_per_word * shape.vocab_size)


def adapter_width(model: Model) -> int:
    """
    Sum of inputs and outputs of the matrices that carry adapters: parameters of rank 1.

    All linear layers of attention, dense and shared feed-forward parts; routed experts, embeddings, head and
    towers are left alone.
    """
    hidden = model.hidden_size
    mixers = sum(group.layers * _mixer_width(group, hidden) for group in model.attention_groups)
    return mixers + _feed_forward_width(model)


def _mixer_width(group: AttentionGroup, hidden: int) -> int:
    """Return inputs plus outputs of the projections of one mixer."""
    kind = group.kind
    if kind is AttentionKind.MLA:
        return _latent_width(group, hidden)
    if kind in (AttentionKind.FULL, AttentionKind.SLIDING, AttentionKind.CHUNKED):
        width = group.head_dim or 0
        value = group.v_head_dim or width
        queries = (group.heads or 0) * width * (2 if group.has_output_gate else 1)
        keys, values = (group.kv_heads or 0) * width, (group.kv_heads or 0) * value
        output = (group.heads or 0) * value
    elif kind is AttentionKind.COMPRESSED_LATENT:
        queries, keys, values = (group.heads or 0) * (group.head_dim or 0), group.head_dim or 0, 0
        output = queries
    elif kind is AttentionKind.GATED_DELTA:
        queries = keys = (group.key_heads or 0) * (group.key_head_dim or 0)
        output = (group.value_heads or 0) * (group.value_head_dim or 0)
        values = 2 * output  # with its gate
    elif kind is AttentionKind.KDA:
        queries = keys = (group.heads or 0) * (group.key_head_dim or 0)
        output = values = (group.heads or 0) * (group.value_head_dim or 0)
    elif kind is AttentionKind.MAMBA2:
        output = (group.heads or 0) * (group.head_dim or 0)
        queries, keys, values = output, output, 2 * (group.groups or 0) * (group.state_size or 0)
    elif kind is AttentionKind.MAMBA1:
        output = group.inner_dim or 0
        queries, keys, values = output, output, 0
    else:
        output = group.channels or 0
        queries = keys = values = output
    inputs = sum(1 for out in (queries, keys, values) if out) * hidden
    return inputs + queries + keys + values + output + hidden


def _latent_width(group: AttentionGroup, hidden: int) -> int:
    """Return inputs plus outputs of the projections of multi-head latent attention."""
    heads, rank = group.heads or 0, group.kv_lora_rank or 0
    nope, rope, value = group.qk_nope_head_dim or 0, group.qk_rope_head_dim or 0, group.v_head_dim or 0
    queries = heads * (nope + rope)
    into = (
        hidden + queries + 2 * (group.q_lora_rank or 0)
    )  # two matrices with a narrow middle where there is one
    latent = (hidden + rank + rope) + (rank + heads * (nope + value))
    return into + latent + heads * value + hidden


def _feed_forward_width(model: Model) -> int:
    """Return inputs plus outputs of dense and shared feed-forward matrices."""
    hidden, moe = model.hidden_size, model.moe
    if moe is None:
        return model.num_layers * 3 * (hidden + (model.intermediate_size or 0))
    dense = moe.dense_layers * 3 * (hidden + (moe.dense_intermediate_size or model.intermediate_size or 0))
    shared = moe.shared_intermediate_size or 0
    return dense + (moe.moe_layers * moe.ffn_matrices * (hidden + shared) if shared else 0)


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


def holders(
    model: Model,
    tuning: Tuning,
    training: Training | None = None,
    *,
    is_simple: bool = False,
    gpus: Sequence[Gpu] | None = None,
) -> list[Holder]:
    """
    Return for each device the fewest of 1, 2, 4 or 8 that hold a training run, those that do, fewest first.

    Devices that train are those with a 16-bit rate; among as many the ones with the least memory come first.

    Args:
        model: What is trained.
        tuning: Which parameters of it.
        training: Its `gpu_count` gives way.
        is_simple: By the sizing page's arithmetic, against 95 % of the labels.
        gpus: Devices; all that were ever sold where None.
    """
    how = training or Training()
    needs = {
        count: (
            simple_memory(model, tuning)
            if is_simple
            else memory(model, tuning, replace(how, gpu_count=count))
        ).total_bytes
        for count in _COUNTS
    }
    found = []
    for gpu in all_gpus().values() if gpus is None else gpus:
        if not gpu.exists or (gpu.bf16_dense_tflops is None and gpu.fp16_dense_tflops is None):
            continue
        for count in _COUNTS:
            usable = (
                float(simple_usable_bytes(gpu.memory_gb_vendor, float(count)))
                if is_simple
                else visible_bytes(gpu)[0] * count
            )
            if count <= (gpu.max_gpus_per_node or max(_COUNTS)) and needs[count] <= usable:
                found.append(
                    Holder(gpu=gpu.name, gpu_count=count, usable_bytes=usable, needed_bytes=needs[count])
                )
                break
    return sorted(found, key=lambda holder: (holder.gpu_count, holder.usable_bytes))


def to_document(model: Model, training: Training | None = None) -> Mapping[str, object]:
    """Return all three kinds by both methods, with the machines that hold them, as `breakeven.finetune/1`."""
    how = training or Training()
    return {
        "schema": FINETUNE_SCHEMA,
        "model": {"id": model.id, "name": model.name},
        "training": {
            "sequence_tokens": how.sequence_tokens,
            "batch": how.batch,
            "rank": how.rank,
            "optimizer": str(how.optimizer),
            "checkpointing": how.is_checkpointed,
            "gpu_count": how.gpu_count,
        },
        "rows": [
            {
                "tuning": str(tuning),
                "simple": {
                    **simple_memory(model, tuning).to_document(),
                    "machines": _machines(holders(model, tuning, how, is_simple=True)),
                },
                "physical": {
                    **memory(model, tuning, how).to_document(),
                    "machines": _machines(holders(model, tuning, how)),
                },
            }
            for tuning in Tuning
        ],
        "notes": [
            "simple: the sizing page's arithmetic, independent of sequence length, batch and rank",
            f"physical: {how.sequence_tokens:,} tokens x {how.batch} on each GPU, "
            f"adapters of rank {how.rank} on all linear layers but routed experts",
        ],
    }


def _machines(found: Sequence[Holder]) -> list[Mapping[str, object]]:
    return [
        {
            "gpu": holder.gpu,
            "gpu_count": holder.gpu_count,
            "usable_gib": holder.usable_bytes / GIB,
            "utilization": holder.needed_bytes / holder.usable_bytes,
        }
        for holder in found
    ]
