"""Rows of unlike models, formats, devices and requests, sized together as each alone."""

import random

import numpy as np
import pytest

from planner.catalogues.gpus import all_gpus
from planner.catalogues.models import all_models
from planner.catalogues.quants import all_quants
from planner.serving.rows import MEMORY_COLUMNS, SPEED_COLUMNS, Rows, size_rows
from planner.serving.shape import shape_of, stacked
from planner.serving.work import attention_flops_of_prompt, cache_read_bytes
from planner.sizing import size
from planner.units import GIB
from planner.workload import Engine, KvDtype, Machine, Method, Workload


@pytest.mark.parametrize("engine", [Engine.LLAMA_CPP, Engine.SGLANG])
@pytest.mark.parametrize("method", list(Method))
def test_rows_give_what_each_alone_gives(engine, method):
    chance = random.Random(20261130)
    count = 150
    models, gpus, quants = (
        [chance.choice(list(all_().values())) for _ in range(count)]
        for all_ in (all_models, all_gpus, all_quants)
    )
    dtypes = [chance.choice(list(KvDtype)) for _ in range(count)]
    numbers = {
        name: [chance.choice(values) for _ in range(count)]
        for name, values in {
            "gpu_count": (1, 2, 4, 8),
            "context_tokens": (512, 8192, 100_000),
            "batch": (1, 7, 64),
            "input_tokens": (128, 4096),
            "output_tokens": (1, 512),
            "offload_fraction": (0.0, 0.5),
        }.items()
    }
    together = size_rows(
        Rows(
            engine=engine,
            method=method,
            models=models,
            quants=quants,
            kv_dtypes=dtypes,
            gpus=gpus,
            **{name: np.array(values, dtype=np.float64) for name, values in numbers.items()},
        )
    )
    assert set(together) == {*MEMORY_COLUMNS, *SPEED_COLUMNS}
    for place in range(count):
        work = Workload(
            model=models[place],
            quant=quants[place],
            kv_dtype=dtypes[place],
            engine=engine,
            method=method,
            **{name: values[place] for name, values in numbers.items() if name != "gpu_count"},
        )
        alone = size(work, Machine(gpu=gpus[place], gpu_count=numbers["gpu_count"][place]))
        assert together["total_gib"][place] == pytest.approx(alone.memory.total_bytes / GIB, rel=1e-12)
        assert bool(together["fits"][place]) is bool(alone.memory.fits)
        for name in SPEED_COLUMNS:
            if alone.speed is None:
                assert np.isnan(together[name][place])
            else:
                assert together[name][place] == pytest.approx(getattr(alone.speed, name), rel=1e-9)


def test_stacked_shapes_are_the_shapes():
    models = [all_models()[name] for name in ("llama-3.1-8b-instruct", "gemma-3-27b-it", "deepseek-v3.2")]
    index = np.array([2, 0, 1, 0])
    together = stacked([shape_of(model) for model in models], index)
    for place, model in enumerate(models[one] for one in index):
        alone = shape_of(model)
        assert together.active_params[place] == alone.active_params
        assert cache_read_bytes(together, 70_000.0, 2.0, 4.0)[place] == cache_read_bytes(
            alone, 70_000.0, 2.0, 4.0
        )
        assert attention_flops_of_prompt(together, 9000.0)[place] == attention_flops_of_prompt(alone, 9000.0)
