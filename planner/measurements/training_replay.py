"""Published peaks of training runs beside what the formulas say of each."""

from collections.abc import Iterator

from planner.catalogues.models import all_models
from planner.catalogues.results import all_results
from planner.finetuning.training import Training, Tuning, memory
from planner.measurements.memory_replay import Check
from planner.units import GIB

# Rank and matrices of the adapters, and the optimizer (adamw_torch), are those of QwenLM/Qwen's finetune.py.
RANK = 64
_TUNINGS = {
    "full": (Tuning.FULL, False),
    "LoRA": (Tuning.LORA, False),
    "LoRA (emb)": (Tuning.LORA, True),
    "Q-LoRA": (Tuning.QLORA, False),
}


def training_checks() -> Iterator[Check]:
    """Return the runs whose sequence length is stated; their "G" are taken for GiB."""
    for result in all_results():
        kind = result.notes.partition(";")[0]
        if result.metric != "finetune_peak_per_gpu" or not result.model or kind not in _TUNINGS:
            continue
        tuning, embeddings = _TUNINGS[kind]
        how = Training(
            sequence_tokens=round(result.context_tokens or 0.0),
            batch=result.concurrency or 1,
            rank=RANK,
            trains_embeddings=embeddings,
            is_fused=False,
        )
        held = memory(all_models()[result.model], tuning, how).total_bytes
        yield Check(quantity=f"training, {kind}", result=result, estimate=held / GIB)
