"""What no engine can beat: measurements that the peaks of their hardware do not allow as they are stated."""

import numpy as np
from numpy.typing import NDArray

from planner.measurements.replay import Trials
from planner.serving.devices import Column
from planner.serving.work import experts_read_share


def best_possible(these: Trials) -> Column:
    """
    Return the bound of each measurement in its own unit: rates stay below it, times above.

    At the peaks of bandwidth and computing, all GPUs busy with nothing else, no fixed cost: a step reads the
    weights outside of experts once, the experts of one token, and for each sequence its cache; a token takes
    two operations for each parameter that is active. Where all requests are queued, how many are in flight
    is not known, and only their caches count. NaN where a peak is not known.

    Source:
        docs/methodology.md, "Calibration".
    """
    work, hardware = these.work, these.hardware
    gpus = hardware.sharing * hardware.stages
    bandwidth, peak = gpus * hardware.bandwidth_bytes_per_s, gpus * hardware.peak_flops
    on_gpu = 1.0 - np.maximum(these.offload.dense, these.offload.experts)
    experts = work.routed_bytes * experts_read_share(work.routed_share, 1.0, 1.0)
    weights_s = (work.dense_read_bytes + experts) * on_gpu / bandwidth
    in_flight = np.array([float(result.concurrency or np.inf) for result in these.results])
    cache_s = _cache_bytes(these) / bandwidth
    params = work.dense_params + work.expert_params
    token_s = 2.0 * params / peak
    prompt_s = 2.0 * (params - work.head_params) * work.prompt_tokens / peak
    step_s = np.maximum(weights_s + cache_s, token_s)  # of one sequence: no batch is faster
    written = work.output_tokens
    # of all that one request takes, its share where the others are served beside it
    request_s = np.maximum(written * (weights_s / in_flight + cache_s), prompt_s + written * token_s)
    by_metric = (
        1.0 / step_s,
        work.prompt_tokens / prompt_s,
        written / request_s,
        (work.prompt_tokens + written) / request_s,
        written / np.maximum(written * step_s, prompt_s + written * token_s),
        prompt_s * 1e3,
        step_s * 1e3,
    )
    chosen: Column = np.choose(these.metric, [np.asarray(figures) for figures in by_metric])
    return chosen


def is_impossible(these: Trials) -> NDArray[np.bool_]:
    """Return which measurements are beyond what their hardware allows."""
    bound = best_possible(these)
    return np.where(these.is_time, these.measured < bound, these.measured > bound)


def _cache_bytes(these: Trials) -> Column:
    """Return what one sequence keeps of its prompt: the least that each of its steps reads. [B]"""
    held = np.array([result.context_tokens or 0.0 for result in these.results])
    written = np.array([result.output_tokens or 0.0 for result in these.results])
    given = np.array([result.input_tokens or 0.0 for result in these.results])
    middle = np.maximum(1.0, held + given + written / 2.0)
    least: Column = these.work.cache_bytes * np.minimum(1.0, (held + given) / middle)
    return least
