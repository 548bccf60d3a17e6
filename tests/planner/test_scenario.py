from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.errors import InvalidScenario, PlannerError, UnknownName
from planner.scenario import Owned, Scenario

MODEL = "qwen3-coder-480b-a35b"


def test_defaults_are_those_of_the_interface() -> None:
    scenario = Scenario(model=MODEL)
    assert (scenario.quant, scenario.context, scenario.batch, scenario.kv_dtype) == (
        "Q4_K_M",
        8192,
        1,
        "fp16",
    )
    assert (scenario.engine, scenario.method, scenario.offload) == ("auto", "calibrated", 0.0)
    assert (scenario.input_tokens, scenario.output_tokens) == (4096, 512)
    assert (scenario.hours_per_day, scenario.days_per_month) == (4.0, 30.4)
    assert (scenario.electricity_usd_per_kwh, scenario.owner, scenario.currency) == (0.175, "office", "USD")
    assert (scenario.min_tokens_per_s_per_user, scenario.max_price_age) == (10.0, 14.0)
    assert scenario.gpu is scenario.gpus is scenario.budget_usd is scenario.as_of is None


@pytest.mark.parametrize(
    ("option", "value", "says"),
    [
        ("hours_per_day", 0, "0 is not allowed"),
        ("hours_per_day", -1, "-1 is not allowed"),
        ("hours_per_day", 24.1, "up to 24"),
        ("hours_per_day", float("nan"), "'nan' is not allowed"),
        ("hours_per_day", "inf", "'inf' is not allowed"),
        ("hours_per_day", "four", "'four' is not allowed"),
        ("hours_per_day", True, "True is not allowed"),
        ("days_per_month", 32, "up to 31"),
        ("electricity_usd_per_kwh", "0,175", "with a decimal point: 0.175"),
        ("electricity_usd_per_kwh", -0.1, "from 0"),
        ("budget_usd", "25,000", "without a comma: 25000"),
        ("budget_usd", "1,234,567.5", "without a comma: 1234567.5"),
        ("budget_usd", 0, "above 0"),
        ("budget_usd", float("-inf"), "above 0"),
        ("tokens_per_month", 0, "above 0"),
        ("requests_per_s", "nan", "above 0"),
        ("max_ttft_ms", 0, "above 0"),
        ("max_tpot_ms", -5, "above 0"),
        ("max_price_age", -1, "at least 0 days"),
        ("min_tokens_per_s_per_user", -1, "at least 0"),
        ("decode_tokens_per_s", 0, "above 0"),
        ("gpus", 0, "1 to 1024"),
        ("gpus", 1.5, "a whole number"),
        ("context", 0, "at least 1 token"),
        ("batch", -2, "at least 1 sequence"),
        ("offload", 1.1, "0 to 1"),
        ("kv_dtype", "fp4", "one of fp16, bf16, fp8, q8_0, q4_0"),
        ("engine", "ollama", "one of auto, vllm"),
        ("method", "magic", "one of calibrated, simple"),
        ("decode_tokens_per_s", 1e9, "and up to 1,000,000"),
        ("owner", "bank", "one of home, office, colo"),
        ("tier", "preemptible", "one of on_demand, spot"),
        ("as_of", "04.11.2026", "a date such as 2026-11-04"),
        ("own", "0x RTX 4090", '"2x RTX 4090"'),
        ("own", "  ", '"2x RTX 4090"'),
        ("set", "purchase_usd", "NAME=VALUE"),
        ("set", "resale_fraction=1.2", "from 0 to 1"),
        ("set", "term_years=0", "from 0.25 to 20"),
        ("set", "pue=1,4", "with a decimal point: 1.4"),
        ("set", "hours_per_day=8", "--hours-per-day"),
        ("gpu", "", "breakeven gpus"),
    ],
)
def test_bad_value_names_the_option_the_value_and_what_is_allowed(
    option: str, value: object, says: str
) -> None:
    with pytest.raises(InvalidScenario) as caught:
        Scenario.from_mapping({"model": MODEL, option: value})
    assert option in caught.value.field
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_missing_model_is_named() -> None:
    with pytest.raises(InvalidScenario, match="model"):
        Scenario.from_mapping({"hours_per_day": 4})


def test_unknown_option_and_assumption_and_currency_have_close_matches() -> None:
    with pytest.raises(UnknownName, match="hours_per_day"):
        Scenario.from_mapping({"model": MODEL, "hours_a_day": 4})
    with pytest.raises(UnknownName, match="resale_fraction"):
        Scenario(model=MODEL, set=["resale_fracton=0"])  # type: ignore[arg-type]
    with pytest.raises(UnknownName, match="EUR"):
        Scenario(model=MODEL, currency="EURO")


def test_contradicting_options_are_refused() -> None:
    with pytest.raises(InvalidScenario, match="not both"):
        Scenario(model=MODEL, tokens_per_month=1e6, requests_per_s=1.0)
    with pytest.raises(InvalidScenario, match="not both"):
        Scenario(model=MODEL, electricity_region="DE", electricity_usd_per_kwh=0.3)
    with pytest.raises(InvalidScenario, match="the mean"):
        Scenario(model=MODEL, peak_factor=3.0)


def test_tariff_in_cents_is_doubted_aloud() -> None:
    assert "0.175" in Scenario(model=MODEL, electricity_usd_per_kwh=17.5).warnings[0]
    assert Scenario(model=MODEL, electricity_usd_per_kwh=2.0).warnings == ()
    assert "no energy" in Scenario(model=MODEL, electricity_usd_per_kwh=0.0).warnings[0]


def test_request_longer_than_the_context_is_doubted_aloud() -> None:
    assert "do not hold a request" in Scenario(model=MODEL, context=4096).warnings[0]


@pytest.mark.parametrize(
    ("hours", "days", "expected"),
    [(4.0, 30.4, 121.6), (24.0, 30.4, 730.0), (24.0, 22.0, 528.0), (8.0, 22.0, 176.0)],
)
def test_hours_per_month(hours: float, days: float, expected: float) -> None:
    scenario = Scenario(model=MODEL, hours_per_day=hours, days_per_month=days)
    assert scenario.hours_per_month == pytest.approx(expected)


@pytest.mark.parametrize(
    ("text", "gpu", "count"),
    [
        ("2x RTX 4090", "RTX 4090", 2),
        ("2xRTX 4090", "RTX 4090", 2),
        ("2 × H100 SXM", "H100 SXM", 2),
        ("16X V100 SXM2", "V100 SXM2", 16),
        ("RTX 4090", "RTX 4090", 1),
        ("DGX Spark", "DGX Spark", 1),
    ],
)
def test_owned_hardware_is_read(text: str, gpu: str, count: int) -> None:
    assert Owned.parse(text) == Owned(gpu, count)


FULL = {
    "model": MODEL,
    "gpu": "B200",
    "gpus": 2,
    "hours_per_day": 8.5,
    "electricity_region": "US-CA:commercial",
    "owner": "colo",
    "own": "2x RTX 4090",
    "requests_per_s": 0.25,
    "peak_factor": 3.0,
    "provider": ["runpod", "vastai"],
    "tier": ["spot"],
    "as_of": "2026-11-04",
    "currency": "eur",
    "set": ["purchase_usd=25000", "power_kw=0.7"],
}


def test_toml_round_trip_leaves_defaults_out() -> None:
    scenario = Scenario.from_mapping(FULL)
    text = scenario.to_toml()
    assert Scenario.from_toml(text) == scenario
    assert "context" not in text
    assert "v = 1" in text
    assert Scenario.from_toml(Scenario(model=MODEL).to_toml()) == Scenario(model=MODEL)


def test_query_round_trip_leaves_defaults_out() -> None:
    scenario = Scenario.from_mapping(FULL)
    query = scenario.to_query()
    assert query["hours_per_day"] == "8.5"
    assert query["gpus"] == "2"
    assert query["set"] == "power_kw=0.7,purchase_usd=25000.0"
    assert "context" not in query
    assert Scenario.from_query(query) == (scenario, [])
    assert Scenario(model=MODEL).to_query() == {"model": MODEL, "v": "1"}


@given(
    hours=st.floats(min_value=0.001, max_value=24.0),
    budget=st.none() | st.floats(min_value=0.01, max_value=1e9),
    batch=st.integers(min_value=1, max_value=10_000),
)
def test_any_scenario_survives_address_and_file(hours: float, budget: float | None, batch: int) -> None:
    scenario = Scenario(model=MODEL, hours_per_day=hours, budget_usd=budget, batch=batch)
    assert Scenario.from_query(scenario.to_query()) == (scenario, [])
    assert Scenario.from_toml(scenario.to_toml()) == scenario


def test_address_falls_back_and_says_so() -> None:
    scenario, complaints = Scenario.from_query(
        {"model": MODEL, "hours_per_day": "99", "colour": "red", "currency": "XXX", "batch": "8", "v": "2"}
    )
    assert scenario == Scenario(model=MODEL, batch=8)
    assert len(complaints) == 4
    assert any("colour" in complaint for complaint in complaints)
    assert any("99" in complaint for complaint in complaints)


def test_address_without_a_model_takes_the_default_one() -> None:
    assert Scenario.from_query({"hours_per_day": "8"})[0].model == MODEL
    assert Scenario.from_query({}, default_model="gpt-oss-20b")[0].model == "gpt-oss-20b"


def test_contradiction_in_an_address_falls_back() -> None:
    scenario, complaints = Scenario.from_query(
        {"model": MODEL, "tokens_per_month": "1e6", "requests_per_s": "1"}
    )
    assert scenario == Scenario(model=MODEL, tokens_per_month=1e6)
    assert len(complaints) == 1


@pytest.mark.parametrize(
    ("name", "value", "other"),
    [("acceptance", 0.0, "draft_tokens with it"), ("draft_tokens", 3, "acceptance with it")],
)
def test_half_of_what_drafts_take_is_refused_with_what_lacks(name: str, value: float, other: str) -> None:
    with pytest.raises(InvalidScenario, match=f"{name}: {value} is not allowed; give {other}"):
        Scenario(model=MODEL, **{name: value})  # type: ignore[arg-type]
    scenario, complaints = Scenario.from_query({name: str(value), "hours_per_day": "8"})
    assert (scenario.hours_per_day, getattr(scenario, name)) == (8.0, None)  # the rest of the address stands
    assert [complaint.partition(":")[0] for complaint in complaints] == [name]


@given(
    st.dictionaries(st.sampled_from([*Scenario.option_names(), "v", "x"]), st.text(max_size=12), max_size=6)
)
def test_no_address_breaks_the_page(params: dict[str, str]) -> None:
    scenario, _ = Scenario.from_query(params)
    assert isinstance(scenario, Scenario)


@pytest.mark.parametrize(
    "text", ["hours_per_day = ", "v = 2\nmodel = 'x'", "model = 'x'\ncolour = 'red'", "model = ''"]
)
def test_bad_scenario_file_is_one_line(text: str) -> None:
    with pytest.raises(PlannerError) as caught:
        Scenario.from_toml(text)
    assert "\n" not in str(caught.value)


def test_document_holds_every_option_as_plain_values() -> None:
    document = Scenario.from_mapping(FULL).to_document()
    assert list(document) == list(Scenario.option_names())
    assert document["as_of"] == "2026-11-04"
    assert document["set"] == {"power_kw": 0.7, "purchase_usd": 25000.0}
    assert document["provider"] == ["runpod", "vastai"]
    assert Scenario.from_mapping(FULL).as_of == date(2026, 11, 4)


@pytest.mark.parametrize(
    ("path", "setting", "why"),
    [
        ("decline", "rent_change_per_year=0.1", "rents do not fall"),
        ("decline", "rent_change_per_year=0", "rents do not fall"),
        ("shock", "rent_shock_fraction=0", "there is no shock"),
    ],
)
def test_a_path_of_rents_and_a_setting_that_contradict_each_other_are_refused(
    path: str, setting: str, why: str
) -> None:
    with pytest.raises(InvalidScenario, match=why):
        Scenario(model=MODEL, rent_path=path, set=[setting])
    assert Scenario(model=MODEL, rent_path="decline", set=["rent_change_per_year=-0.1"]).assumptions.rents
    assert Scenario(model=MODEL, set=[setting]).assumptions.rents
