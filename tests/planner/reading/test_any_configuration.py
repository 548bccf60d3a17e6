"""Any JSON gives a model or one of our errors: never another exception, never a figure that cannot be."""

import contextlib
import copy
import json
import math

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from planner.catalogues.gpus import find_gpu
from planner.catalogues.quants import all_quants
from planner.configs import read_config, read_config_text
from planner.errors import PlannerError, UnreadableModel
from planner.serving.shape import shape_of
from planner.sizing import size
from planner.workload import Machine, Workload
from tests.planner.reading import published

# Deterministic: the same examples in every run, so that a failure is one of the change and not of the day.
FEW = settings(
    max_examples=120,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
    database=None,
)
SAMPLES = [
    published.llama_8b(),
    published.qwen2_5_7b(),
    published.qwen3_5_35b(),
    published.deepseek_v3(),
    published.deepseek_v4_flash(),
    published.glm_5(),
    published.kimi_linear(),
    published.gpt_oss_20b(),
    published.gemma3_4b(),
    published.gemma4_26b(),
    published.gemma4_e4b(),
    published.llama4_scout(),
    published.nemotron_3_nano(),
    published.nemotron_3_ultra(),
    published.jamba(),
    published.granite_h_small(),
    published.step_3_5(),
    published.mimo_v2_flash(),
    published.hunyuan_a13b(),
    published.lfm2_1_2b(),
    published.chatglm_6b(),
    published.minimax_m3(),
]
NAMES = sorted(
    {name for sample in SAMPLES for name in sample} | {"block_configs", "per_layer_config", "attention"}
)
NUMBERS = st.one_of(
    st.integers(-3, 200),
    st.integers(),
    st.sampled_from([0, -1, 2**31, 2**63, 10**30, 10**400, 1e308, -0.0, 0.5]),
    st.floats(allow_nan=True, allow_infinity=True),
)
LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    NUMBERS,
    st.sampled_from(
        ["", "full_attention", "mamba", "silu", "auto", "M*E-", "1,2,x", "fp8", "bfloat16", "\x00", "é"]
    ),
    st.text(max_size=12),
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=5),
        st.dictionaries(st.one_of(st.sampled_from(NAMES), st.text(max_size=6)), inner, max_size=5),
    ),
    max_leaves=20,
)


def check(config):
    """Read, and size what comes out of it."""
    refusal = None
    try:
        model = read_config(config, name="test/any").model
    except PlannerError as error:
        refusal = str(error)
    if refusal is not None:
        assert refusal
        assert "\n" not in refusal
        assert len(refusal) < 1000
        return
    assert 0 < model.active_params <= model.main_params < 10**16
    assert (
        sum(group.layers for group in model.attention_groups) + model.attention_free_layers
        == model.num_layers
    )
    shape = shape_of(model)
    assert all(0 < term.elements_per_token < math.inf for term in shape.cache_terms)
    sizing = size(Workload(model=model, quant=all_quants()["BF16"]), Machine(gpu=find_gpu("H100 SXM").gpu))
    json.dumps(sizing.to_document(), allow_nan=False)


@FEW
@given(st.dictionaries(st.one_of(st.sampled_from(NAMES), st.text(max_size=8)), VALUES, max_size=12))
@example({})
@example({"model_type": "llama", "text_config": {"text_config": {}}})
@example({"architectures": [None], "model_type": ["llama"], "hidden_size": {}, "num_hidden_layers": []})
def test_any_object_is_read_or_refused(config):
    check(config)


@settings(FEW, max_examples=400)
@given(st.sampled_from(SAMPLES), st.lists(st.tuples(st.sampled_from(NAMES), VALUES), min_size=1, max_size=4))
def test_a_true_configuration_with_fields_gone_wrong_is_read_or_refused(sample, changes):
    config = copy.deepcopy(sample)
    for name, value in changes:
        inner = config.get("text_config")
        (inner if isinstance(inner, dict) else config)[name] = value
    check(config)


@settings(FEW, max_examples=200)
@given(
    st.sampled_from(SAMPLES),
    st.sampled_from([-1, 0, 2, 3, 7, 1e3, 0.5, 10**9, 10**40, "x", None, [], {}, True]),
    st.data(),
)
def test_each_field_alone_may_be_absurd(sample, value, data):
    name = data.draw(st.sampled_from(sorted(sample)))
    old = sample[name]
    is_number = isinstance(old, int) and not isinstance(old, bool) and isinstance(value, int | float)
    changed = old * value if is_number and value not in (True,) and abs(value) < 1e6 else value
    check({**sample, name: changed})


@FEW
@given(st.one_of(st.text(max_size=60), VALUES.map(lambda value: json.dumps(value))))
def test_any_text_is_read_or_refused(text):
    config = None
    with contextlib.suppress(UnreadableModel):
        config = read_config_text(text)
    if config is not None:
        check(config)


@settings(FEW, max_examples=100)
@given(
    st.dictionaries(
        st.sampled_from(
            [
                "quant_method",
                "quant_algo",
                "bits",
                "format",
                "config_groups",
                "ignore",
                "quantized_layers",
                "group_size",
                "load_in_4bit",
                "modules_to_not_convert",
                "kv_cache_scheme",
            ]
        ),
        VALUES,
        max_size=6,
    )
)
@example({"config_groups": {"group_0": None}, "quant_method": "fp8"})
def test_any_quantisation_block_is_read_or_said_to_be_unknown(block):
    check(published.llama_8b(quantization_config=block))
    check(published.mixtral_8x7b(quantization_config=block))


@settings(FEW, max_examples=100)
@given(
    st.sampled_from(["vision_config", "audio_config", "vision_tower_config"]),
    VALUES,
    st.sampled_from(["qwen3_5_moe", "pixtral", "glm4v", "llama4", "step3p7", "gemma4", "minimax_m3_vl"]),
)
def test_any_tower_is_counted_or_said_to_be_uncounted(name, value, kind):
    if isinstance(value, dict):
        value = {"model_type": kind, "depth": 2, "hidden_size": 64, **value}
    check(published.qwen3_5_35b(**{name: value}))


@pytest.mark.parametrize("depth", [10, 500, 5000])
def test_nesting_is_no_danger(depth):
    inner: dict[str, object] = {}
    for _ in range(depth):
        inner = {"text_config": inner}
    check(
        {**published.llama_8b(), "text_config": inner, "vision_config": inner, "quantization_config": inner}
    )
