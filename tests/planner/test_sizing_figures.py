"""Each figure of a sizing: worked out again from the numbers that it says were put in."""

import re

import pytest

from planner.answers.sizing_figures import sizing_figures
from planner.catalogues.gpus import all_gpus
from planner.catalogues.models import all_models
from planner.catalogues.quants import find_quant
from planner.scenario import Scenario
from planner.sizing import Sizing, size
from planner.units import GIB
from planner.workload import Machine


def sized(model: str, gpu: str, count: int, **options: object) -> Sizing:
    scenario = Scenario(model=model, **options)  # type: ignore[arg-type]
    work = scenario.workload(all_models()[model], find_quant(scenario.quant))
    return size(work, Machine(gpu=all_gpus()[gpu], gpu_count=count))


def worked_out(numbers: str) -> float:
    """Compute what a text of numbers comes to, in bytes where it says B, in GiB where it says GiB."""
    text = re.sub(r"\(a window\)|(?<=\d),(?=\d{3})", "", numbers)
    is_bytes = " GiB" not in text
    text = re.sub(r"\b(GiB|B)\b", "", text).replace(" x ", " * ")
    assert re.fullmatch(r"[\d.e+*/()\s,max-]+", text), text
    value = float(eval(text))
    return value / GIB if is_bytes else value


CASES = [
    ("qwen3-coder-480b-a35b", "H100 SXM", 1, {}),
    ("qwen3-coder-480b-a35b", "H100 SXM", 1, {"method": "simple"}),
    ("llama-3.3-70b-instruct", "H100 SXM", 8, {"quant": "FP8", "batch": 16}),
    ("deepseek-v3.2", "H200 SXM", 8, {"quant": "FP8", "kv_dtype": "fp8", "attention_data": 4}),
    ("gpt-oss-120b", "B200", 1, {"quant": "MXFP4", "context": 131072, "memory_fraction": 0.8}),
    ("gemma-3-27b-it", "RTX 4090", 1, {"context": 32768, "kv_dtype": "q8_0"}),
    ("qwen3.5-35b-a3b", "H100 SXM", 1, {"batch": 8}),
]


@pytest.mark.parametrize(("model", "gpu", "count", "options"), CASES)
def test_the_numbers_put_in_come_to_the_figure(
    model: str, gpu: str, count: int, options: dict[str, object]
) -> None:
    sizing = sized(model, gpu, count, **options)
    figures = {figure.name: figure for figure in sizing_figures(sizing)}
    for name in ("weights", "attention cache", "buffers", "needed", "usable"):
        figure = figures[name]
        assert figure.value is not None
        assert worked_out(figure.numbers) == pytest.approx(figure.value, rel=2e-4), name
    memory = sizing.memory
    assert figures["needed"].value == pytest.approx(memory.total_bytes / GIB)
    assert figures["usable"].value == pytest.approx(memory.usable_bytes / GIB)
    assert ("fixed state" in figures) is bool(memory.state_bytes)
    if memory.state_bytes:
        assert worked_out(figures["fixed state"].numbers) == pytest.approx(memory.state_bytes / GIB)


def test_the_cache_of_the_sizing_page_by_hand() -> None:
    figures = sizing_figures(sized("qwen3-coder-480b-a35b", "H100 SXM", 1))
    cache = next(figure for figure in figures if figure.name == "attention cache")
    # 62 layers x 8 heads x (128 + 128) elements, 8,192 tokens
    assert cache.numbers == "1 x 2 B x (126,976 x 8,192)"
    assert cache.value == pytest.approx(1.9375)


def test_the_price_of_tokens_is_that_of_this_machine() -> None:
    sizing = sized("qwen3-8b", "RTX 4090", 1)
    assert sizing.speed is not None
    priced = sizing_figures(sizing, 0.36)[-1]
    assert priced.value == pytest.approx(0.36 / (sizing.speed.aggregate_tokens_per_s * 3600) * 1e6)
    assert priced.is_estimate
    assert "a million" not in sizing_figures(sizing)[-1].name


def test_what_does_not_fit_has_no_speed() -> None:
    names = [figure.name for figure in sizing_figures(sized("qwen3-coder-480b-a35b", "RTX 4090", 1), 1.0)]
    assert names == ["weights", "attention cache", "buffers", "needed", "usable"]
