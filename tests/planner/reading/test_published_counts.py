"""Parameters counted from shapes and from published configurations against the exact totals."""

from math import inf
from pathlib import Path

import pytest

from planner.catalogues.models import all_models
from planner.configs import read_config, read_config_text
from planner.reading.counting import count_active, count_parameters
from planner.serving.shape import shape_of

MODELS = list(all_models().values())

# Published configurations: the model of the catalogue that they are of (None: it has none), served
# parameters, elements that each further token adds to the cache, and what is fixed for a sequence: state and
# convolutions. The figures are those of the notes beside the files.
PUBLISHED = {
    "llama-3.1-8b": ("llama-3.1-8b-instruct", 8_030_261_248, 65_536, 0),
    "qwen2.5-72b": ("qwen2.5-72b-instruct", 72_706_203_648, 163_840, 0),
    "qwen3-0.6b": ("qwen3-0.6b", 596_049_920, 57_344, 0),
    "qwen3-8b": ("qwen3-8b", 8_190_735_360, 73_728, 0),
    "qwen3-30b-a3b": ("qwen3-30b-a3b", 30_532_122_624, 49_152, 0),
    "qwen3.5-397b-a17b": ("qwen3.5-397b-a17b", 396_802_360_816, 15_360, 45 * (1_048_576 + 36_864)),
    "qwen3.6-35b-a3b-nvfp4": ("qwen3.6-35b-a3b", 35_107_181_936, 10_240, 30 * (524_288 + 24_576)),
    "deepseek-v3": ("deepseek-v3-0324", 671_026_404_352, 35_136, 0),
    "deepseek-v4.1-flash-exl3": ("deepseek-v4.1-flash", 748_200_000_000, 1_280 + 3 * 64 + 5 * 128, 0),
    "gpt-oss-20b": ("gpt-oss-20b", 20_914_757_184, 12_288, 0),
    "gemma-3-27b-it": ("gemma-3-27b-it", 27_432_406_640, 40_960, 0),
    "gemma-4-31b-it-nvfp4": ("gemma-4-31b-it", 31_273_086_512, 40_960, 0),
    "llama-4-scout-text": ("llama-4-scout", 107_769_861_120, 24_576, 0),
    "glm-5.3": ("glm-5.3", 743_377_000_704, 44_928 + 21 * 128, 0),
    "glm-4.7": ("glm-4.7", 352_797_814_784, 188_416, 0),
    "kimi-k3": ("kimi-k3", 2_779_500_000_000, 13_824, 69 * (1_572_864 + 110_592)),
    "minimax-m2.5": ("minimax-m2.5", 228_689_748_992, 126_976, 0),
    "mixtral-8x7b": ("mixtral-8x7b-instruct", 46_702_792_704, 65_536, 0),
    "nemotron-3-nano-30b-a3b": ("nemotron-3-nano-30b-a3b", 31_577_937_344, 3_072, 23 * (524_288 + 18_432)),
    "nemotron-3-super-120b-a12b-fp8": (
        "nemotron-3-super-120b-a12b",
        120_668_687_360,
        4_096,
        40 * (1_048_576 + 30_720),
    ),
    "phi-4": ("phi-4", 14_659_507_200, 102_400, 0),
    "phi-3.5-mini": ("phi-3.5-mini", 3_821_079_552, 196_608, 0),
    "mistral-7b-instruct-v0.3": ("mistral-7b-instruct-v0.3", 7_248_023_552, 65_536, 0),
    "jamba-v0.1": ("jamba-mini-1.7", 51_570_323_328, 8_192, 28 * (131_072 + 24_576)),
    "granite-3.0-3b-a800m-instruct": (None, 3_298_793_472, 32_768, 0),
    "mimo-v2-flash": (None, None, 11_520, 0),
}
# The copy has no vision_config; the catalogue's total has the tower.
WITHOUT_ITS_TOWER = {"llama-4-scout-text": 871_932_416}


def opened(shared: Path, name: str):
    text = (shared / "data" / "configs" / f"{name}.json").read_text(encoding="utf-8")
    return read_config(read_config_text(text, name), name=name).model


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.id)
def test_every_model_of_the_catalogue_recounts_from_its_shape(model):
    """Within 0.04 % of all and 0.3 % of the active ones."""
    count = count_parameters(model)
    assert count.total == pytest.approx(model.main_params, rel=4e-4)
    assert count_active(model, count) == pytest.approx(model.active_params, rel=3e-3)


def test_every_published_file_is_known_here(shared):
    assert {path.stem for path in (shared / "data" / "configs").glob("*.json")} == set(PUBLISHED)


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_published_configuration_recounts_within_a_percent(shared, name):
    model = opened(shared, name)
    catalogue_id, params, _, _ = PUBLISHED[name]
    if params is not None:
        assert model.main_params == pytest.approx(params, rel=1e-3)
    if catalogue_id is not None:
        exact = all_models()[catalogue_id].main_params - WITHOUT_ITS_TOWER.get(name, 0)
        assert model.main_params == pytest.approx(exact, rel=0.01)
        assert model.active_params == pytest.approx(all_models()[catalogue_id].active_params, rel=0.01)


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_published_configuration_keeps_what_its_layers_keep(shared, name):
    model = opened(shared, name)
    catalogue_id, _, growing, fixed = PUBLISHED[name]
    shape = shape_of(model)
    assert sum(t.elements_per_token for t in shape.cache_terms if t.window_tokens == inf) == growing
    assert shape.recurrent_elements + shape.convolution_elements == fixed
    if catalogue_id is not None:
        known = shape_of(all_models()[catalogue_id])
        assert sorted(map(repr, shape.cache_terms)) == sorted(map(repr, known.cache_terms))
