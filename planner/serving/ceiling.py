"""The fastest that a machine can write: at which speed its bandwidth could not read the weights any more."""

from planner.errors import InvalidScenario
from planner.serving.question import weights_of
from planner.serving.shape import shape_of
from planner.serving.work import weights_read_bytes
from planner.units import GB
from planner.workload import Machine, Workload

# Tokens of one step where a server may draft ahead and nothing says how many. Source: own choice.
MOST_TOKENS_A_STEP = 5.0


def most_tokens_per_s(work: Workload, machine: Machine, *, may_draft: bool) -> float | None:
    """
    Return the decode speed of one sequence at which every byte of bandwidth reads weights. [tokens/s]

    Args:
        work: What is served; of a mixture of experts a step reads those of one token.
        machine: On what; all of its GPUs read at once.
        may_draft: Whether a step may give several tokens.

    Returns:
        None where the bandwidth is not known, or the GPUs hold no weights.

    Source:
        docs/methodology.md, "Plan".
    """
    gpu = machine.gpu
    of_a_token = float(weights_read_bytes(shape_of(work.model), weights_of(work), 1.0))
    read_bytes = of_a_token * (1.0 - work.offload_fraction)
    if gpu.bandwidth_gb_per_s is None or read_bytes <= 0.0:
        return None
    tokens_a_step = max(MOST_TOKENS_A_STEP, work.drafted_tokens + 1.0) if may_draft else 1.0
    return gpu.bandwidth_gb_per_s * GB * machine.gpu_count / read_bytes * tokens_a_step


def check_possible(
    tokens_per_s: float, work: Workload, machine: Machine, *, field: str, may_draft: bool
) -> None:
    """
    Refuse a decode speed that no machine of this kind can have.

    Args:
        tokens_per_s: Of one sequence. [tokens/s]
        work: What was served.
        machine: On what.
        field: Name of the option that states it.
        may_draft: Whether a step may give several tokens.

    Raises:
        InvalidScenario: if it is beyond the bandwidth of the GPUs.
    """
    most = most_tokens_per_s(work, machine, may_draft=may_draft)
    if most is not None and tokens_per_s > most:
        name = f"{machine.gpu_count}x {machine.gpu.name}"
        limit = f"{most:,.0f}" if most >= 100.0 else f"{most:.3g}"
        allowed = f"what the bandwidth of {name} allows: up to {limit} tokens/s of this model and format"
        raise InvalidScenario(field, tokens_per_s, allowed)
