import pytest

from planner.catalogues.tokens import TokenPrice, api_prices
from planner.supply.calling import api_usd_per_month, cheapest_of_each
from planner.supply.options import Kind
from tests.planner.plans import CODER, plan_of, rate


def token_price(**more: object) -> TokenPrice:
    fields: dict[str, object] = {
        "provider": "Acme",
        "model_name": "m",
        "model_id": CODER,
        "has_open_weights": True,
        "usd_per_mtok_input": 0.4,
        "usd_per_mtok_output": 1.6,
        "usd_per_mtok_cached_input": None,
        "as_of": "2026-11",
        "source": "s",
        "notes": "",
        "checked": "2026-11-30",
    }
    return TokenPrice(**{**fields, **more})  # type: ignore[arg-type]


def test_month_of_tokens() -> None:
    assert api_usd_per_month(8e6, 1e6, 0.4, 1.6) == pytest.approx(4.80)
    # Half of the input at a quarter of its price: 8 x (0.5 x 0.4 + 0.5 x 0.1) + 1.6
    cached = api_usd_per_month(8e6, 1e6, 0.4, 1.6, usd_per_mtok_cached_input=0.1, cached_input_fraction=0.5)
    assert cached == pytest.approx(3.60)
    # Without a price of its own, cached input costs what input costs.
    assert api_usd_per_month(8e6, 1e6, 0.4, 1.6, cached_input_fraction=0.5) == pytest.approx(4.80)


def test_only_providers_of_that_model_are_listed() -> None:
    found = plan_of([rate()], tokens_per_month=1e6)
    apis = {option.provider for option in found.options if option.kind is Kind.API}
    assert apis == {"fireworksai", "deepinfra", "openrouter"}
    deepinfra = next(option for option in found.options if option.provider == "deepinfra")
    assert deepinfra.usd_per_month == pytest.approx(4.80)  # 8 million in, 1 million out
    assert deepinfra.token_prices is not None
    assert deepinfra.token_prices.usd_per_million_tokens == pytest.approx(4.80)
    assert deepinfra.token_prices.usd_per_million_input_tokens == 0.4
    assert deepinfra.fits is None
    assert deepinfra.gpu is None


def test_newest_price_of_a_provider_counts_then_the_cheaper() -> None:
    prices = [
        token_price(as_of="2026-10", usd_per_mtok_output=1.0),
        token_price(as_of="2026-11", usd_per_mtok_output=3.0),
        token_price(as_of="2026-11", usd_per_mtok_output=2.0),
    ]
    assert [price.usd_per_mtok_output for price in cheapest_of_each(prices)] == [2.0]


def test_an_api_whose_price_is_younger_than_the_day_is_left_out_by_name() -> None:
    found = plan_of([rate()], as_of="2026-10-31")
    assert found.api is None
    (entry,) = (entry for entry in found.excluded if entry.what.startswith("API of"))
    assert entry.what == "API of DeepInfra, Fireworks AI, OpenRouter"
    assert entry.why == "no price of 2026-10-31 or before is known"
    assert plan_of([rate()], as_of="2026-11-01").api is not None  # its source speaks of the whole month


def test_presence_prices_the_tokens_of_the_machine_of_the_verdict_and_says_so() -> None:
    found = plan_of([rate()], gpu="B200", gpus=2)
    assert found.rental is not None
    assert found.api is not None
    assert found.api.tokens_per_month == pytest.approx(found.rental.tokens_per_month)
    assert any("APIs are priced for" in note for note in found.notes)


def test_without_any_machine_an_api_has_no_monthly_cost() -> None:
    found = plan_of([], gpu="H100 SXM", gpus=1)
    assert len(api_prices(CODER)) == len(found.options) == 3
    assert all(option.usd_per_month is None for option in found.options)
    assert "serves it at" in found.verdict


def test_filters_that_an_api_cannot_meet_leave_it_out() -> None:
    assert plan_of([rate()], tier=["on_demand"]).api is None
    assert plan_of([rate()], provider=["runpod"]).api is None
    assert plan_of([rate()], provider=["DeepInfra"]).api.provider == "deepinfra"  # type: ignore[union-attr]


def test_what_a_machine_need_not_compute_again_an_api_reads_from_its_cache() -> None:
    def month(**options: object) -> float:
        found = plan_of(
            [], "deepseek-v3.1", tokens_per_month=1e6, input_tokens=800, output_tokens=100, **options
        )
        (option,) = (each for each in found.options if each.provider == "deepinfra")
        return option.usd_per_month or 0.0

    # DeepInfra: 0.25 in, 0.13 cached, 0.95 out; 8 million in and one million out.
    assert month() == pytest.approx(8 * 0.25 + 0.95)
    assert month(cached_input=0.5) == pytest.approx(4 * 0.25 + 4 * 0.13 + 0.95)
    assert month(cached_input=0.5, set=["cached_input_fraction=0"]) == pytest.approx(8 * 0.25 + 0.95)
    assert month(set=["cached_input_fraction=0.25"]) == pytest.approx(6 * 0.25 + 2 * 0.13 + 0.95)


LATENCY = "its latency is not known and was not checked against the limit"


def test_an_api_leads_under_a_limit_of_latency_only_with_the_remark_that_its_own_is_not_known() -> None:
    asked = {"model": "qwen3-32b", "quant": "FP8", "tokens_per_month": 1e8, "gpu": "B200", "gpus": 1}
    limited = plan_of([rate(gpu_count=1)], **asked, max_ttft_ms=2000)
    open_to_all = plan_of([rate(gpu_count=1)], **asked)
    assert limited.verdict.startswith("Call the API of ")
    assert limited.verdict.endswith(f"; {LATENCY}.")
    (line,) = (line for line in limited.proof if line.startswith("API: "))
    assert line.endswith(f" Its{LATENCY.removeprefix('its')}.")
    assert any("of APIs none is known" in note for note in limited.notes)
    assert limited.api is not None
    assert limited.api.to_document()["ttft_ms"] is None
    said = (open_to_all.verdict, *open_to_all.proof, *open_to_all.notes)
    assert not any("atency" in text for text in said)


def test_a_limit_below_a_millisecond_is_not_written_as_none() -> None:
    found = plan_of([rate(gpu_count=1)], "qwen3-32b", quant="FP8", gpu="B200", gpus=1, max_tpot_ms=0.1)
    why = next(entry.why for entry in found.excluded if "a further token takes" in entry.why)
    assert why.endswith("above the limit of 0.1 ms")


def test_without_machine_and_demand_the_api_with_the_cheapest_tokens_is_named() -> None:
    found = plan_of([rate()], "llama-3.3-70b-instruct", max_tpot_ms=1)
    apis = [option for option in found.options if option.kind is Kind.API]
    assert {option.usd_per_month for option in apis} == {None}
    # 4,096 tokens in for 512 out, so DeepInfra at 0.10 in and 0.32 out comes to 8 x 0.10 + 0.32 = 1.12 USD.
    blends = [option.token_prices.usd_per_million_tokens for option in apis]  # type: ignore[union-attr]
    assert blends == sorted(blends)
    assert (apis[0].provider_title, blends[0]) == ("DeepInfra", pytest.approx(1.12))
    assert found.verdict.endswith(
        "; the API of DeepInfra serves it at 0.10 USD in and 0.32 USD out a million tokens."
    )


def test_no_api_is_called_with_a_context_that_its_model_does_not_take() -> None:
    most = plan_of([rate()], "llama-3.3-70b-instruct", context=131_072)
    assert most.api is not None
    beyond = plan_of([rate()], "llama-3.3-70b-instruct", context=131_073)
    assert beyond.api is None
    assert "Call the API" not in beyond.verdict
    (entry,) = (entry for entry in beyond.excluded if "APIs" in entry.what)
    assert entry.why == "a context of 131,073 tokens is above the model's maximum of 131,072"
