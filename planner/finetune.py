"""Memory of fine-tuning: QLoRA, LoRA and full, by the sizing page's arithmetic and by a physical estimate."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from planner.catalogues.gpus import Gpu, all_gpus
from planner.catalogues.models import Model
from planner.catalogues.quants import find_quant
from planner.finetuning.adapters import Targets
from planner.finetuning.training import Optimizer, Training, Tuning, TuningMemory, memory
from planner.memory import simple_usable_bytes, simple_weights, visible_bytes
from planner.serving.constants import constants
from planner.serving.notes import model_context
from planner.units import GB, GIB

FINETUNE_SCHEMA = "breakeven.finetune/1"

_TARGETS = {
    Targets.ATTENTION: "the projections of attention",
    Targets.LINEAR: "all linear layers but routed experts",
    Targets.EXPERTS: "all linear layers, each routed expert among them",
}
# What measured runs took over the estimate, in the middle of 54. Source: docs/accuracy.md.
MEASURED_SHARE = 1.06
# Counts that one machine of the catalogue may have.
_COUNTS = (1, 2, 4, 8)


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


def holders(
    model: Model,
    tuning: Tuning,
    training: Training | None = None,
    *,
    is_simple: bool = False,
    gpus: Sequence[Gpu] | None = None,
    counts: Sequence[int] = _COUNTS,
) -> list[Holder]:
    """
    Return for each device the fewest of some counts that hold a training run, those that do, fewest first.

    Devices that train are those with a 16-bit rate; among as many the ones with the least memory come first.
    By the physical estimate they leave room for what measured runs took more than it.

    Args:
        model: What is trained.
        tuning: Which parameters of it.
        training: Its `gpu_count` gives way.
        is_simple: By the sizing page's arithmetic, against 95 % of the labels.
        gpus: Devices; all that were ever sold where None.
        counts: GPUs that may train together, fewest first; more than one node holds are whole nodes.
    """
    how = training or Training()
    needs = {
        count: (
            simple_memory(model, tuning)
            if is_simple
            else memory(model, tuning, replace(how, gpu_count=count))
        ).total_bytes
        for count in counts
    }
    margin = 1.0 if is_simple else MEASURED_SHARE
    found = []
    for gpu in all_gpus().values() if gpus is None else gpus:
        if not gpu.exists or (gpu.bf16_dense_tflops is None and gpu.fp16_dense_tflops is None):
            continue
        for count in counts:
            usable = (
                float(simple_usable_bytes(gpu.memory_gb_vendor, float(count)))
                if is_simple
                else visible_bytes(gpu)[0] * count
            )
            if _is_sold(gpu, count) and needs[count] * margin <= usable:
                found.append(
                    Holder(gpu=gpu.name, gpu_count=count, usable_bytes=usable, needed_bytes=needs[count])
                )
                break
    return sorted(found, key=lambda holder: (holder.gpu_count, holder.usable_bytes))


def _is_sold(gpu: Gpu, count: int) -> bool:
    """Whether a machine has so many of the device, or several of the largest machines have."""
    largest = max(_COUNTS)
    node = gpu.max_gpus_per_node or largest
    return count <= node or (node >= largest and count % node == 0)


def to_document(model: Model, training: Training | None = None) -> Mapping[str, object]:
    """
    Return all three kinds by both methods, with the machines that hold them, as `breakeven.finetune/1`.

    Raises:
        InvalidScenario: if the model cannot be trained so.
    """
    how = training or Training()
    how.check(model)
    counts = _COUNTS if how.gpu_count == 1 else (how.gpu_count,)  # a number that was asked for is kept to
    return {
        "schema": FINETUNE_SCHEMA,
        "model": {"id": model.id, "name": model.name},
        "training": {
            "sequence_tokens": how.sequence_tokens,
            "batch": how.batch,
            "rank": how.rank,
            "targets": str(how.targets),
            "embeddings": how.trains_embeddings,
            "optimizer": str(how.optimizer),
            "fused": how.is_fused,
            "checkpointing": how.is_checkpointed,
            "gpu_count": how.gpu_count,
            "sharding": str(how.sharding),
        },
        "rows": [
            {
                "tuning": str(tuning),
                "simple": {
                    **simple_memory(model, tuning).to_document(),
                    "machines": _machines(holders(model, tuning, how, is_simple=True, counts=counts)),
                },
                "physical": {
                    **memory(model, tuning, how).to_document(),
                    "machines": _machines(holders(model, tuning, how, counts=counts)),
                },
            }
            for tuning in Tuning
        ],
        "notes": _notes(model, how),
    }


def training_warnings(model: Model, training: Training) -> tuple[str, ...]:
    """Return what makes little sense of how a model is to be trained."""
    limit, tokens = model_context(model), training.sequence_tokens
    if limit is None or tokens <= limit:
        return ()
    return (f"sequence-tokens: {tokens:,} tokens are above the model's maximum of {limit:,}",)


def _notes(model: Model, how: Training) -> list[str]:
    more = f"{100.0 * (MEASURED_SHARE - 1.0):.0f} %"
    notes = [
        "simple: the sizing page's arithmetic, independent of sequence length, batch and rank",
        f"physical: {how.sequence_tokens:,} tokens x {how.batch} on each GPU, "
        f"adapters of rank {how.rank} on {_TARGETS[how.targets]}",
        f"measured runs took {more} more in the middle, up to a quarter (docs/accuracy.md); the machines of "
        f"the physical estimate leave room for the {more}",
    ]
    if how.optimizer is not Optimizer.MIXED:
        notes.append(
            f"--optimizer {how.optimizer} changes full fine-tuning only: adapters are trained in 32 bit"
        )
    return [*notes, *training_warnings(model, how)]


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
