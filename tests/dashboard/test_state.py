"""The address bar as state: what a query means, what of it is refused, and the way back."""

from urllib.parse import parse_qsl, urlsplit

import pytest

from dashboard import state
from dashboard.form.fields import with_labels
from planner.errors import InvalidScenario, PlannerError
from planner.scenario import Scenario


def test_every_option_of_a_scenario_is_a_field_but_the_file_that_only_the_command_line_reads():
    of_files = {"sizing", "params", "fact"}
    assert set(state.FIELDS) == set(Scenario.option_names()) - of_files


def test_an_empty_address_is_the_default_question():
    scenario, complaints = state.read_address({})
    assert scenario == Scenario(model="qwen3-coder-480b-a35b")
    assert complaints == []


def test_options_of_the_address_are_read_by_their_names():
    scenario, complaints = state.read_address(
        {
            "model": ["qwen3-8b"],
            "hours_per_day": ["8"],
            "provider": ["runpod", "vastai"],
            "as_of": ["2026-11-04"],
        }
    )
    assert (scenario.model, scenario.hours_per_day) == ("qwen3-8b", 8.0)
    assert scenario.provider == ("runpod", "vastai")
    assert f"{scenario.as_of:%d.%m.%Y}" == "04.11.2026"
    assert complaints == []


def test_a_repository_name_stands_for_its_model_and_names_become_canonical():
    scenario, complaints = state.read_address(
        {"model": "Qwen/Qwen3-Coder-480B-A35B-Instruct", "gpu": "h100-sxm", "quant": "q4_k_m"}
    )
    assert (scenario.model, scenario.gpu, scenario.quant) == ("qwen3-coder-480b-a35b", "H100 SXM", "Q4_K_M")
    assert complaints == []


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("hours_per_day", "-1", "hours_per_day: '-1' is not allowed"),
        ("hours_per_day", "nan", "hours_per_day"),
        ("context", "abc", "context: 'abc' is not allowed"),
        ("budget_usd", "0", "budget_usd"),
        ("model", "qwen3-coder-480", "unknown model"),
        ("gpu", "H1000", "unknown GPU"),
        ("quant", "Q9", "unknown quant"),
        ("bogus", "1", "bogus: not an option, ignored"),
        ("sizing", "/etc/hostname", "sizing: only the command line reads files, ignored"),
        ("set", "purchase_usd=-1", "purchase_usd"),
        ("set", "foo=1", "set: unknown assumption 'foo'"),
        ("set", "pue", "set: 'pue' is not allowed; give NAME=VALUE"),
        ("own", "junk", "own: unknown GPU 'junk'"),
        ("own", "0x B200", "own: '0x B200' is not allowed"),
        ("provider", "nope", "provider: unknown provider 'nope'"),
        ("tier", "cheap", "tier: 'cheap' is not allowed; give one of on_demand"),
        ("currency", "XXX", "unknown currency 'XXX'"),
        ("v", "2", "v: '2' is a form of address that this version does not know"),
    ],
)
def test_a_bad_value_falls_back_to_the_default_and_is_reported(name, value, said):
    scenario, complaints = state.read_address({name: value, "batch": "4"})
    assert scenario == Scenario(model="qwen3-coder-480b-a35b", batch=4)
    assert len(complaints) == 1
    assert said in complaints[0]


def test_an_option_given_more_than_once_is_said_and_not_chosen_from():
    scenario, complaints = state.read_address(
        {"hours_per_day": ["8", "9"], "v": ["1", "2"], "bogus": ["1", "2"]}
    )
    assert scenario == Scenario(model="qwen3-coder-480b-a35b")
    assert complaints == [
        "hours_per_day: given more than once (8, 9); the default is used",
        "v: given more than once (1, 2); the default is used",
        "bogus: not an option, ignored",
    ]
    assert state.read_address({"hours_per_day": ["8", "8"]}) == (
        Scenario(model="qwen3-coder-480b-a35b", hours_per_day=8.0),
        [],
    )


def test_a_value_outside_the_range_of_its_widget_is_brought_into_it_and_reported():
    scenario, complaints = state.read_address({"budget_usd": "1e12"})
    assert scenario.budget_usd == 1e9
    assert complaints == [
        "budget_usd: 1,000,000,000,000 is outside what the page offers; 1,000,000,000 is used"
    ]


def test_values_that_exclude_each_other_are_reported_and_one_of_them_is_dropped():
    scenario, complaints = state.read_address({"electricity_region": "DE", "electricity_usd_per_kwh": "0.3"})
    assert (scenario.electricity_region, scenario.electricity_usd_per_kwh) == (None, 0.3)
    assert "either a region or electricity_usd_per_kwh" in complaints[0]


def test_of_several_values_only_the_bad_ones_are_dropped():
    scenario, complaints = state.read_address(
        {"set": ["foo=1", "pue=1.2,term_years=3"], "provider": ["Vast.ai", "nope"]}
    )
    assert dict(scenario.set) == {"pue": 1.2, "term_years": 3.0}
    assert scenario.provider == ("vastai",)
    assert [text.partition(":")[0] for text in complaints] == ["set", "provider"]


@pytest.mark.parametrize(
    ("name", "value", "taken"),
    [("gpu", "A100", "A100 40GB SXM"), ("own", "2x A100", "2x A100 40GB SXM")],
)
def test_a_name_that_may_mean_several_devices_says_which_one_was_taken(name, value, taken):
    scenario, complaints = state.read_address({name: value})
    assert getattr(scenario, name) == taken
    assert len(complaints) == 1
    assert complaints[0].startswith(f"{name}: 'A100' may also mean A100 40GB PCIe")
    assert complaints[0].endswith("A100 40GB SXM is taken")


def test_a_day_outside_of_the_calendar_is_brought_into_it():
    scenario, complaints = state.read_address({"as_of": "2001-01-01"})
    assert f"{scenario.as_of:%Y-%m-%d}" == "2015-01-01"
    assert complaints == ["as_of: 2001-01-01 is outside what the page offers; 2015-01-01 is used"]


def test_the_version_of_this_form_is_no_complaint():
    assert state.read_address({"v": ["1"]}) == (Scenario(model="qwen3-coder-480b-a35b"), [])


def test_filters_of_a_single_page_are_no_part_of_the_question():
    assert state.read_address({"show_gpu": "B200", "history_gpu": "B200"}) == state.read_address({})


QUESTIONS = [
    {},
    {"model": "qwen3-8b", "hours_per_day": 8.5, "budget_usd": 30000.0},
    {"provider": ("runpod", "vastai"), "tier": ("spot",), "set": (("purchase_usd", 25000.0), ("pue", 1.2))},
    {"gpu": "H100 SXM", "gpus": 8, "kv_dtype": "fp8", "as_of": "2026-11-04", "currency": "EUR"},
    {"requests_per_s": 1.234, "budget_usd": 2.5, "set": (("purchase_usd", 25.125), ("power_kw", 1.234))},
    {"tokens_per_month": 3e9, "peak_factor": 2.5, "max_ttft_ms": 800.0, "own": "2x RTX 4090"},
]


@pytest.mark.parametrize("options", QUESTIONS)
def test_a_question_survives_the_way_through_the_address(options):
    scenario = Scenario.from_mapping({"model": "qwen3-coder-480b-a35b", **options})
    query = dict(parse_qsl(urlsplit(state.permalink(scenario)).query))
    assert state.read_address(query) == (scenario, [])


@pytest.mark.parametrize("options", QUESTIONS)
def test_a_question_survives_the_way_through_the_widgets(options):
    scenario = Scenario.from_mapping({"model": "qwen3-coder-480b-a35b", **options})
    session = {name: field.as_widget_value(getattr(scenario, name)) for name, field in state.FIELDS.items()}
    assert state.from_widgets(session) == scenario


def test_widgets_that_were_not_drawn_stand_at_their_defaults():
    assert state.from_widgets({}) == Scenario(model="qwen3-coder-480b-a35b")


def test_the_canonical_address_repeats_lists_and_leaves_defaults_out():
    wanted = Scenario(model="qwen3-8b", provider=("runpod", "vastai"), hours_per_day=8.0, set=(("pue", 1.2),))
    assert state.as_address(wanted) == {
        "model": ["qwen3-8b"],
        "provider": ["runpod", "vastai"],
        "hours_per_day": ["8"],
        "set": ["pue=1.2"],
        "v": ["1"],
    }
    assert state.as_address(Scenario(model="qwen3-coder-480b-a35b")) == {"v": ["1"]}


def test_filters_are_in_the_address_of_their_own_page_only():
    held = {"show_gpu": ["B200"], "show_unranked": True, "show_tier": [], "history_gpu": "H100 SXM"}
    question = Scenario(model="qwen3-8b")
    of_market = {"model": ["qwen3-8b"], "show_gpu": ["B200"], "show_unranked": ["true"], "v": ["1"]}
    assert state.as_address(question, "market", held) == of_market
    assert state.as_address(question, "size", held) == {"model": ["qwen3-8b"], "v": ["1"]}
    read, complaints = state.read_page_keys(of_market, "market")
    assert complaints == []
    assert {name: read[name] for name in held} == held


@pytest.mark.parametrize(
    ("text", "held", "said"),
    [
        ("40", 40.0, 0),
        ("40.0", 40.0, 0),
        ("-1", 0.0, 1),
        ("1e9", 100_000.0, 1),
        ("nan", 0.0, 1),
        ("much", 0.0, 1),
    ],
)
def test_the_room_of_the_capacity_screen_is_read_from_the_address(text, held, said):
    read, complaints = state.read_page_keys({"reserve_gb": [text]}, "size")
    assert read == {"size_tab": "formats", "reserve_gb": held}
    assert len(complaints) == said
    assert all(text in complaint for complaint in complaints)
    assert state.as_address(Scenario(model="qwen3-8b"), "size", {"reserve_gb": 40.0})["reserve_gb"] == ["40"]


def test_a_filter_of_another_page_is_said():
    assert state.read_page_keys({"show_gpu": ["B200"]}, "size") == (
        {"size_tab": "formats", "reserve_gb": 0.0},
        ["show_gpu: a filter of another page, ignored"],
    )


def test_large_numbers_of_other_assumptions_keep_all_their_digits():
    question = Scenario(model="qwen3-8b", set=(("purchase_usd", 1234567.0), ("power_kw", 0.1234567)))
    assert state.as_address(question)["set"] == ["power_kw=0.1234567", "purchase_usd=1234567"]


def test_widgets_that_exclude_each_other_raise():
    with pytest.raises(InvalidScenario, match="either a region"):
        state.from_widgets({"electricity_region": "DE", "electricity_usd_per_kwh": 0.3})


@pytest.mark.parametrize("field", state.FIELDS.values(), ids=lambda field: field.name)
def test_a_field_offers_its_default_and_says_what_it_means(field):
    options = field.options()
    if field.kind is state.Kind.CHOICE and field.default is not None:
        assert field.default in options
    if field.low is not None and field.default is not None:
        assert field.low <= field.as_scenario_value(field.default) <= field.high
    assert field.help


@pytest.mark.parametrize(
    ("name", "typed", "read"),
    [
        ("electricity_usd_per_kwh", "0,35", 0.35),
        ("electricity_usd_per_kwh", " 0.35 ", 0.35),
        ("electricity_usd_per_kwh", ",35", 0.35),
        ("electricity_usd_per_kwh", "12,5", 12.5),
        ("electricity_usd_per_kwh", "0.125", 0.125),
        ("electricity_usd_per_kwh", "1.234", 1.234),  # 1,234 USD/kWh cannot be meant
        ("days_per_month", "30.417", 30.417),
        ("budget_usd", "12.0", 12.0),
        ("budget_usd", "1234.567", 1234.567),
        ("requests_per_s", "0.125", 0.125),
        ("requests_per_s", "1.2340", 1.234),
        ("tokens_per_month", "1e8", 1e8),
        ("tokens_per_month", "1234,567", 1234.567),
        ("context", "8192", 8192),
        ("context", "8192,0", 8192),
    ],
)
def test_a_number_is_typed_with_a_decimal_point_or_a_comma(name, typed, read):
    assert getattr(state.from_widgets({"model": "qwen3-8b", name: typed}), name) == read


@pytest.mark.parametrize(
    ("name", "typed", "hint"),
    [
        ("tokens_per_month", "1,234", "without a comma: 1234"),  # one thousand, or one and a bit
        ("tokens_per_month", "1.234,5", "a number from 1 to"),
        ("tokens_per_month", "1,234,567", "without a comma: 1234567"),
        ("context", "8,192", "without a comma: 8192"),
        ("context", "8.192", "without a point: 8192$"),
        ("context", "8.000", "without a point: 8000, or 8$"),
        ("budget_usd", "12.000", "without a point: 12000, or 12.0 with decimals"),
        ("tokens_per_month", "1.000", "without a point: 1000, or 1.0 with decimals"),
        ("requests_per_s", "1.234", "without a point: 1234, or 1.2340 with decimals"),
        ("decode_tokens_per_s", "45.120", "without a point: 45120, or 45.12 with decimals"),
        ("budget_usd", "12,000", "without a comma: 12000, or 12.0 with decimals"),
        ("context", "0", "from 1 to 10,000,000"),
        ("electricity_usd_per_kwh", "135", "from 0 to 100"),
        ("electricity_usd_per_kwh", "cheap", "a number"),
        ("electricity_usd_per_kwh", "nan", "a number"),
    ],
)
def test_a_number_that_could_be_two_or_none_is_refused_and_never_guessed(name, typed, hint):
    with pytest.raises(InvalidScenario, match=hint) as refused:
        state.from_widgets({"model": "qwen3-8b", name: typed})
    assert str(refused.value).startswith(state.FIELDS[name].label)


@pytest.mark.parametrize(
    ("typed", "hint"),
    [
        ("purchase_usd=25.000", "without a point: 25000, or 25.0 with decimals"),
        ("pue=1.2,staff_usd_per_fte_year=90.000", "without a point: 90000"),
        ("purchase_usd=25,000", "without a comma: 25000"),
    ],
)
def test_a_value_of_another_assumption_that_could_be_two_is_refused(typed, hint):
    with pytest.raises(InvalidScenario, match=hint):
        state.from_widgets({"model": "qwen3-8b", "set": [typed]})


def test_three_decimals_are_read_where_thousands_cannot_be_meant():
    scenario = state.from_widgets({"model": "qwen3-8b", "set": ["power_kw=1.234", "pue=1.125"]})
    assert dict(scenario.set) == {"power_kw": 1.234, "pue": 1.125}


@pytest.mark.parametrize("hours", [4.0, 4.1, 8.0])
def test_with_a_load_of_the_day_the_hours_of_the_slider_do_not_enter_the_question(hours):
    session = {"model": "qwen3-8b", "tokens_per_month": "1e9", "hours_per_day": hours}
    scenario = state.from_widgets({**session, "load_profile": "8-18=1"})
    assert scenario.service_hours_per_day == 10.0
    assert state.as_address(scenario).keys() == {"model", "tokens_per_month", "load_profile", "v"}
    assert state.from_widgets({**session, "load_profile": ""}).hours_per_day == hours


@pytest.mark.parametrize(
    ("text", "hours"), [("8-18=1,18-23=0.3", 15.0), ("22-6", 8.0), ("", None), (None, None), ("noon", None)]
)
def test_the_hours_of_a_load_of_the_day_are_those_with_load(text, hours):
    assert state.profile_hours({"load_profile": text}) == hours


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            {"tokens_per_month": "1e9", "requests_per_s": "2"},
            'Demand [requests/s]: 2.0 is not allowed; give either "Demand [requests/s]" or '
            '"Demand [output tokens/month]", not both',
        ),
        (
            {"electricity_region": "DE", "electricity_usd_per_kwh": "0.3"},
            "Electricity region: 'DE' is not allowed; give either a region or "
            '"Electricity [USD/kWh]", not both',
        ),
        (
            {"set": ["pue=50"]},
            "Other assumptions, pue: 50.0 is not allowed; give a number from 1 to 5 ratio",
        ),
        (
            {"set": ["hours_per_day=4"]},
            "Other assumptions: 'hours_per_day' is not allowed; give its own option instead: "
            '"Hours a day [h]"',
        ),
        (
            {"rent_path": "shock", "set": ["rent_shock_fraction=0"]},
            "Rents in the months to come: 'shock' is not allowed; give decline or flat with "
            'rent_shock_fraction=0 under "Other assumptions": there is no shock',
        ),
        ({"set": ["pux=1"]}, "unknown assumption 'pux'; close matches: pue"),
    ],
)
def test_what_is_wrong_is_said_with_the_labels_of_the_page(options, said):
    with pytest.raises(PlannerError) as refused:
        state.from_widgets({"model": "qwen3-8b", **options})
    assert with_labels(str(refused.value)) == said


def test_what_is_wrong_in_an_address_has_its_name_behind_the_label():
    _, (complaint,) = state.read_address({"peak_factor": "2"})
    assert with_labels(complaint, is_of_address=True) == (
        'Peak over mean load (peak_factor): 2.0 is not allowed; give "Demand [output tokens/month]" or '
        '"Demand [requests/s]" with it: the mean; the default is used'
    )
    assert with_labels("bogus: not an option, ignored", is_of_address=True) == "bogus: not an option, ignored"
