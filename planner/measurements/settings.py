"""How far a run is from a question by its settings: cache, drafts, cached prompts, layout, host memory."""

from collections.abc import Iterable
from math import log

from planner.measurements.runs import Run
from planner.serving.constants import is_tensor_parallel
from planner.speed import kept_tokens
from planner.workload import KvDtype, Layout, Machine, Workload

Part = tuple[float, str | None]  # of a distance, with words where it makes another configuration

# Steps and weights as in `planner.measurements.nearness`. Source: own choice; a cache of half the bytes
# counts as half the context.
CACHE_WEIGHT = 0.15
LAYOUT_WEIGHT = 0.2
OFFLOAD_STEP = 1.0  # weights in host memory against none
# Shares in host memory that are this far apart are the same: about a layer of most models.
SAME_OFFLOAD = 0.03
# Those that a source means where it does not say; they take the same bytes.
_DEFAULT_CACHES = (KvDtype.FP16, KvDtype.BF16)


def settings_parts(workload: Workload, machine: Machine, run: Run) -> Iterable[Part]:
    """Return what settings add to a distance; published runs have neither drafts nor cached prompts."""
    yield from _of_cache(workload, run)
    yield from _of_layout(workload, machine, run)
    yield from _of_offload(workload.offload_fraction, run)
    if workload.drafted_tokens:
        kept = kept_tokens(workload.drafted_tokens, workload.acceptance or 0.0)
        yield log(float(kept)), f"no draft instead of {workload.drafted_tokens} drafted tokens"
    if workload.cached_input:
        share = workload.cached_input
        yield CACHE_WEIGHT * -log(1.0 - share), f"no cached prompt instead of {share:.0%} of each"


def _of_cache(workload: Workload, run: Run) -> Iterable[Part]:
    asked, stated = workload.kv_dtype, run.first.kv_dtype
    measured = KvDtype.FP16 if stated == "f16" else KvDtype(stated or run.workload.kv_dtype)
    if asked is measured or (asked in _DEFAULT_CACHES and (measured in _DEFAULT_CACHES or not stated)):
        return
    words = f"cache in {measured} instead of {asked}"
    yield CACHE_WEIGHT * abs(log(measured.bytes_per_element / asked.bytes_per_element)), words


def _of_layout(workload: Workload, machine: Machine, run: Run) -> Iterable[Part]:
    """Return what another division among the GPUs makes; engines that split layers divide in one way only."""
    if not (is_tensor_parallel(workload.engine) and is_tensor_parallel(run.workload.engine)):
        return
    count, measured = machine.gpu_count, run.workload.layout
    asked = workload.layout.taken(count)
    if asked == measured:
        return
    ratios = [getattr(measured, name) / getattr(asked, name) for name in Layout.__dataclass_fields__]
    there, here = _layout_name(measured, run.machine.gpu_count), _layout_name(asked, count)
    yield LAYOUT_WEIGHT * sum(abs(log(ratio)) for ratio in ratios), f"laid out {there} instead of {here}"


def _layout_name(layout: Layout, gpu_count: int) -> str:
    """Return a layout as servers name it: TP ranks that share attention, PP, DP and EP groups."""
    ranks = max(1, layout.attention_ranks(gpu_count))
    groups = {"PP": layout.pipeline, "DP": layout.attention_data, "EP": layout.expert_ranks}
    return " ".join([f"TP{ranks}", *(f"{name}{size}" for name, size in groups.items() if size > 1)])


def _of_offload(asked: float, run: Run) -> Iterable[Part]:
    measured = run.workload.offload_fraction
    if bool(measured) is not bool(asked):
        where = f"{measured:.0%} of the weights in host memory" if measured else "all weights on the GPUs"
        yield OFFLOAD_STEP, where
    elif abs(measured - asked) > SAME_OFFLOAD:
        yield (
            abs(log(measured / asked)),
            f"{measured:.0%} instead of {asked:.0%} of the weights in host memory",
        )
