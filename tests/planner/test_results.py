"""The bundled measurements: all of them, as published, with names that the catalogues know."""

import csv
import gzip
import importlib.resources
import importlib.util
import io

import pytest

from planner.catalogues.gpus import all_gpus
from planner.catalogues.models import all_models
from planner.catalogues.quants import all_quants
from planner.catalogues.results import COLUMNS, all_results
from planner.workload import Engine

OTHER_ENGINES = {"transformers", "peft", "litgpt"}


@pytest.fixture(scope="module")
def builder(request):
    path = request.config.rootpath / "tools" / "build_results.py"
    spec = importlib.util.spec_from_file_location("build_results", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_names_are_those_of_the_catalogues():
    for result in all_results():
        assert result.model in all_models() or not result.model
        assert result.quant in all_quants() or not result.quant
        assert result.gpu in all_gpus() or not result.gpu
        assert result.engine in {*Engine, *OTHER_ENGINES}
        assert result.source
        assert result.source_ref
        assert result.value > 0 or result.kind == "memory"  # one log states memory freed


def test_nearly_all_results_of_speed_are_of_models_and_devices_that_are_known():
    speeds = [result for result in all_results() if result.kind != "memory"]
    known = [result for result in speeds if result.model and result.gpu]
    assert len(speeds) == 2855
    assert len(known) / len(speeds) > 0.99


def test_the_bundled_file_is_what_the_collected_rows_give(builder, shared):
    bundled = gzip.decompress(
        (importlib.resources.files("planner") / "data" / "results.csv.gz").read_bytes()
    ).decode()
    rows = list(csv.DictReader(io.StringIO(bundled)))
    assert tuple(rows[0]) == COLUMNS
    assert rows == list(builder.rows_of(shared / "data" / "measured"))


def test_every_published_value_is_carried(shared):
    published = {}
    for name in ("throughput_dev.csv", "memory_dev.csv"):
        with (shared / "data" / "measured" / name).open(encoding="utf-8") as file:
            published.update({(name[0], row["row_id"]): float(row["value"]) for row in csv.DictReader(file)})
    carried = {
        ("m" if result.kind == "memory" else "t", result.row_id): result.value for result in all_results()
    }
    assert carried == published


@pytest.mark.parametrize(
    ("row_id", "expected"),
    [
        # 42 + 1 layers of 94 keep no experts on the GPU; eight channels of DDR5-4800 give 307.2 GB/s
        ("iko-0031", {"offload": "experts", "offload_fraction": 0.8511, "host_gb_per_s": 307.2}),
        # 14 of 48 layers
        ("iko-0001", {"offload": "experts", "offload_fraction": 0.2917, "host_gb_per_s": None}),
        # experts of layers 3 to 38 of 58 on the GPUs
        ("iko-0131", {"offload": "experts", "offload_fraction": 0.3793, "ubatch": None}),
        # up and down in host memory, gates of layers 3 to 19 of 58 as well
        ("iko-0111", {"offload": "experts", "offload_fraction": 0.7644}),
        ("lhl-0001", {"weights_bytes": 73028549632.0, "quant": "Q4_K_M", "is_nearest_quant": True}),
        # the prompt of the same record was in the cache
        ("lmx-0033", {"context_tokens": 16384.0}),
        ("sglc-0004", {"requests": 80}),
        # lengths between 0.8 and 1 of 1,024, ten requests for each of the 16 in flight
        ("sil-0310", {"requests": 160, "input_tokens": 921.6, "output_tokens": 921.6}),
        # attention data parallel with experts only, 3,000 requests of 1,000 + 1,000 tokens
        ("trt-0134", {"requests": 30000, "dp": 8, "ep": 8}),
        ("trt-0001", {"dp": None, "ep": None}),
    ],
)
def test_what_the_notes_say_in_words(row_id, expected):
    result = next(one for one in all_results() if one.row_id == row_id and one.kind != "memory")
    assert {name: getattr(result, name) for name in expected} == expected
