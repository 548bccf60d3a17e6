import random

import numpy as np
import pytest

from planner.catalogues.gpus import all_gpus
from planner.catalogues.models import all_models
from planner.catalogues.quants import all_quants
from planner.serving.estimate import BOUNDS
from planner.serving.grid import size_grid
from planner.sizing import size
from planner.workload import KvDtype, Machine, Method, Workload, engine_for

MODELS, GPUS, QUANTS = (list(all_().values()) for all_ in (all_models, all_gpus, all_quants))
COUNTS = (1, 2, 4, 8)


@pytest.mark.parametrize(
    ("method", "batch", "kv_dtype"), [(Method.CALIBRATED, 16, KvDtype.FP8), (Method.SIMPLE, 1, KvDtype.FP16)]
)
def test_grid_gives_what_each_configuration_alone_gives(method, batch, kv_dtype):
    chance = random.Random(20261130)
    models, gpus = chance.sample(MODELS, 12), chance.sample(GPUS, 20)
    grid = size_grid(
        models, gpus, QUANTS, COUNTS, context_tokens=4096, batch=batch, kv_dtype=kv_dtype, method=method
    )
    for _ in range(400):
        place = tuple(chance.randrange(length) for length in grid.fits.shape)
        model, gpu, quant, count = (
            axis[index] for axis, index in zip((models, gpus, QUANTS, COUNTS), place, strict=True)
        )
        work = Workload(
            model=model,
            quant=quant,
            engine=engine_for("auto", quant),
            context_tokens=4096,
            batch=batch,
            kv_dtype=kv_dtype,
            method=method,
        )
        alone = size(work, Machine(gpu=gpu, gpu_count=count))
        assert grid.total_bytes[place] == pytest.approx(alone.memory.total_bytes, rel=1e-12)
        assert grid.usable_bytes[place] == pytest.approx(alone.memory.usable_bytes, rel=1e-12)
        assert grid.fits[place] == alone.memory.fits
        if alone.speed is None:
            assert np.isnan(grid.decode_tokens_per_s[place])
            assert np.isnan(grid.aggregate_tokens_per_s[place])
        else:
            speed = alone.speed
            assert grid.decode_tokens_per_s[place] == pytest.approx(speed.decode_tokens_per_s, rel=1e-12)
            assert grid.aggregate_tokens_per_s[place] == pytest.approx(
                speed.aggregate_tokens_per_s, rel=1e-12
            )
            assert BOUNDS[grid.bound[place]] == speed.bound


def test_whole_catalogue_is_sized():
    grid = size_grid(MODELS, GPUS, QUANTS, COUNTS)
    assert grid.configurations == len(MODELS) * len(GPUS) * len(QUANTS) * len(COUNTS) > 1_900_000
    assert np.isfinite(grid.total_bytes).all()
    assert (grid.total_bytes > 0).all()
    assert (grid.usable_bytes >= 0).all()
    has_speed = np.isfinite(grid.decode_tokens_per_s)
    assert not (has_speed & ~grid.fits).any()
    assert 0.2 < grid.fits.mean() < 0.8
    # what fits and has no speed is on devices whose rates are not known
    silent = {grid.gpus[index] for index in np.argwhere(grid.fits & ~has_speed)[:, 1]}
    assert silent == {gpu.name for gpu in GPUS if has_no_rates(gpu)}


def has_no_rates(gpu):
    rates = (gpu.bf16_dense_tflops, gpu.fp16_dense_tflops, gpu.fp32_tflops)
    return gpu.bandwidth_gb_per_s is None or all(rate is None for rate in rates)


def test_more_gpus_hold_more():
    grid = size_grid(MODELS[:20], GPUS, QUANTS, COUNTS)
    assert (np.diff(grid.usable_bytes, axis=3) >= 0).all()


def test_names_stand_in_the_order_of_the_axes():
    grid = size_grid(MODELS[3:5], GPUS[7:9], QUANTS[:3], (2,))
    assert grid.fits.shape == (2, 2, 3, 1)
    assert grid.models == (MODELS[3].id, MODELS[4].id)
    assert grid.gpus == (GPUS[7].name, GPUS[8].name)
    assert grid.quants == ("BF16", "FP16", "FP8")
    assert grid.gpu_counts == (2,)


def test_grid_knows_on_how_many_gpus_a_server_starts():
    models = [all_models()["qwen2.5-7b-instruct"]]
    quants = [all_quants()[name] for name in ("BF16", "Q4_K_M")]
    grid = size_grid(models, [all_gpus()["H100 SXM"]], quants, (1, 2, 4, 7, 8))
    assert grid.fits[0, 0, 0].tolist() == [True, True, True, True, False]  # 28 heads
    assert grid.fits[0, 0, 1].tolist() == [True] * 5  # layers are split
    assert np.isnan(grid.decode_tokens_per_s[0, 0, 0, 4])
