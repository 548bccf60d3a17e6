"""On how many GPUs a server starts a model at all: attention heads are whole, and each rank has as many."""

from dataclasses import replace
from functools import lru_cache
from math import gcd

import numpy as np
from numpy.typing import NDArray

from planner.catalogues.models import AttentionKind, Model
from planner.serving.constants import is_tensor_parallel
from planner.units import Numbers
from planner.workload import Engine, Layout, Method, Workload

_WITH_HEADS = frozenset(
    {
        AttentionKind.FULL,
        AttentionKind.SLIDING,
        AttentionKind.CHUNKED,
        AttentionKind.MLA,
        AttentionKind.COMPRESSED_LATENT,
    }
)


@lru_cache(maxsize=1024)
def attention_heads(model: Model) -> int:
    """Return the largest number of ranks among which the heads of every layer divide; 0 without heads."""
    heads = [group.heads for group in model.attention_groups if group.kind in _WITH_HEADS and group.heads]
    return gcd(*heads) if heads else 0


def starts(heads: Numbers, ranks: Numbers, engine: Engine, method: Method) -> NDArray[np.bool_]:
    """
    Whether an engine starts with the heads of each layer shared by so many ranks.

    Those with tensor parallelism refuse heads that do not divide, more ranks than heads among them; llama.cpp
    splits layers, and the simple method knows no ranks.

    Source:
        github.com/vllm-project/vllm, vllm/config/model.py, verify_with_parallel_config: "Total number of
        attention heads (28) must be divisible by tensor parallel size (8)"; issues 2652 and 414.
    """
    if method is Method.SIMPLE or not is_tensor_parallel(engine):
        return np.array(True)
    return np.equal(np.remainder(heads, ranks), 0)


def attention_ranks(work: Workload, gpu_count: int) -> int:
    """Return how many GPUs share the attention of a layer, by the layout that is taken."""
    return work.layout.taken(gpu_count).attention_ranks(gpu_count)


def refusal(work: Workload, gpu_count: int) -> str | None:
    """Say why the engine does not start on so many GPUs, whatever memory they have; None where it does."""
    heads, ranks = attention_heads(work.model), attention_ranks(work, gpu_count)
    if starts(heads, ranks, work.engine, work.method):
        return None
    return f"{heads} attention heads do not divide among {ranks} GPUs"


def most_gpus(work: Workload, gpu_count: int) -> int:
    """Return the most GPUs up to a number on which the engine starts; on one it always does."""
    return next(count for count in range(gpu_count, 0, -1) if refusal(work, count) is None)


def fewest_stages(work: Workload, gpu_count: int) -> int | None:
    """Return the fewest stages with which the engine starts on so many GPUs; None where none help."""
    whole = (stages for stages in range(2, gpu_count + 1) if gpu_count % stages == 0)
    staged = ((stages, replace(work, layout=Layout(pipeline=stages))) for stages in whole)
    return next((stages for stages, other in staged if refusal(other, gpu_count) is None), None)
