"""One model sized across formats, context lengths or devices."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from planner.catalogues.gpus import Gpu, all_gpus
from planner.catalogues.quants import QuantFormat, all_quants
from planner.serving.notes import model_context
from planner.sizing import Sizing, size, size_machines
from planner.workload import Machine, Workload, engine_for

MATRIX_SCHEMA = "breakeven.matrix/1"

# Doublings from 4K to 128K, as on sizing pages.
CONTEXTS = (4096, 8192, 16384, 32768, 65536, 131072)


def over_quants(
    workload: Workload, machine: Machine, quants: Sequence[QuantFormat] | None = None
) -> list[Sizing]:
    """
    Return the workload in each format on one machine.

    Where the workload's engine is the usual one of its format, each other format is served by its own usual
    engine; an engine chosen on purpose stays.

    Args:
        workload: What is served; its format gives way.
        machine: On what.
        quants: Formats in order; all of the catalogue where None.
    """
    chosen = list(all_quants().values()) if quants is None else list(quants)
    is_usual = workload.engine is engine_for("auto", workload.quant)
    return [
        size(
            replace(
                workload,
                quant=quant,
                engine=engine_for("auto", quant) if is_usual else workload.engine,
            ),
            machine,
        )
        for quant in chosen
    ]


def over_contexts(workload: Workload, machine: Machine, contexts: Sequence[int] = CONTEXTS) -> list[Sizing]:
    """
    Return the workload at each context length on one machine.

    Lengths above the model's maximum are left out, as far as any remains.

    Args:
        workload: What is served; its context gives way.
        machine: On what.
        contexts: Tokens of each sequence, in order. [tokens]
    """
    limit = model_context(workload.model)
    within = [tokens for tokens in contexts if limit is None or tokens <= limit]
    return [size(replace(workload, context_tokens=tokens), machine) for tokens in within or contexts[:1]]


def over_gpus(workload: Workload, gpu_count: int = 1, gpus: Sequence[Gpu] | None = None) -> list[Sizing]:
    """
    Return the workload on so many of each device.

    Args:
        workload: What is served.
        gpu_count: GPUs of each machine.
        gpus: Devices in order; all that were ever sold where None.
    """
    chosen = [gpu for gpu in all_gpus().values() if gpu.exists] if gpus is None else list(gpus)
    return size_machines(workload, [Machine(gpu=gpu, gpu_count=gpu_count) for gpu in chosen])


def with_given(rows: Sequence[Sizing], given: Sizing) -> list[Sizing]:
    """
    Return the rows with a sizing whose speed was measured, or stated, in place of the same configuration.

    Args:
        rows: Sizings of one model.
        given: The one that is known better; it stands in no other row.
    """
    return [given if (row.machine, row.workload) == (given.machine, given.workload) else row for row in rows]


def to_document(over: str, sizings: Sequence[Sizing]) -> Mapping[str, object]:
    """
    Return sizings of one model as `breakeven.matrix/1`.

    Args:
        over: What changes from row to row: quant, context or gpu.
        sizings: The rows.
    """
    documents = [dict(sizing.to_document()) for sizing in sizings]
    for document in documents:
        del document["schema"]
    return {
        "schema": MATRIX_SCHEMA,
        "over": over,
        "model": documents[0]["model"] if documents else None,
        "rows": documents,
    }
