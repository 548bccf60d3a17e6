import json
import math
import re
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.compare import Plan
from planner.errors import InvalidScenario, UnknownName
from planner.rates import PriceStatus, Tier
from planner.serving.speeds import SpeedSource
from planner.sizing import Sizing
from planner.supply import operate
from planner.supply.options import BuyBasis, Excluded, Kind, Option
from planner.workload import Machine, Workload
from tests.conftest import ROOT
from tests.planner.plans import CODER, SMALL, plan_of, rate, seed_rates

OPTION_KEYS = [
    "kind", "name", "provider", "instance_type", "region", "tier", "billing", "gpu", "gpu_count",
    "vram_total_gb", "replicas", "fits", "usd_per_hour", "usd_per_gpu_hour", "usd_per_month",
    "usd_per_million_tokens", "usd_per_million_input_tokens", "usd_per_million_output_tokens",
    "tokens_per_month", "decode_tokens_per_s", "aggregate_tokens_per_s", "speed_low", "speed_high",
    "ttft_ms", "tpot_ms", "speed_source", "price", "purchase_usd", "purchase_source", "power_w",
    "energy_usd_per_month", "break_even_months",
    "break_even_hours_per_day", "deploy_url",
    "kwh_per_million_tokens", "g_co2_per_million_tokens", "break_even_against",
    "aggregate_source", "usd_per_month_over_term", "notes", "carries_until_months", "is_too_slow",
    "passed_over", "break_even_tokens_per_month",
]  # fmt: skip


def rented(found: Plan) -> Option:
    return next(option for option in found.options if option.kind is Kind.RENT)


def test_document_has_the_keys_of_the_interface_and_is_json() -> None:
    document = plan_of(seed_rates(), own="8x H100 SXM").to_document()
    assert list(document)[:5] == ["schema", "scenario", "verdict", "options", "excluded"]
    assert document["schema"] == "breakeven.plan/1"
    kinds = set()
    for option in document["options"]:  # type: ignore[attr-defined]
        assert list(option) == OPTION_KEYS
        assert list(option["price"]) == ["seen_at", "age_hours", "status", "source_url", "witnesses"]
        kinds.add(option["kind"])
    assert kinds == {"rent", "buy", "api"}
    for entry in document["excluded"]:  # type: ignore[attr-defined]
        assert list(entry) == ["what", "why"]
    text = json.dumps(document, allow_nan=False)
    assert json.loads(text) == json.loads(json.dumps(document))


def test_stored_prices_are_decimal_strings_and_figures_are_numbers() -> None:
    option = rented(plan_of(seed_rates(), provider=["runpod"])).to_document()
    assert option["usd_per_hour"] == "11.96"
    assert option["usd_per_gpu_hour"] == "5.98"
    assert option["usd_per_month"] == pytest.approx(1454.336)
    assert option["vram_total_gb"] == 360
    assert option["tier"] == "community"
    assert option["billing"] == "per_second"
    assert option["price"]["seen_at"] == "2026-11-04T00:00:00Z"  # type: ignore[index]
    assert option["price"]["status"] == "snapshot"  # type: ignore[index]


def test_sizing_page_table_of_rents() -> None:
    found = plan_of(seed_rates())
    months = {option.provider: option.usd_per_month for option in found.options if option.kind is Kind.RENT}
    assert months["runpod"] == pytest.approx(1454.34, abs=0.005)
    assert months["vastai"] == pytest.approx(1824.49, abs=0.005)
    assert months["vultr"] == pytest.approx(2331.80, abs=0.005)
    assert months["digitalocean"] == pytest.approx(2519.55, abs=0.005)


def test_sizing_page_figures_come_out_of_one_call() -> None:
    found = plan_of(
        seed_rates(),
        provider=["runpod"],
        gpu="B200",
        gpus=2,
        method="simple",
        decode_tokens_per_s=3.4,
        owner="home",
        set=["purchase_usd=25000", "power_kw=0.7"],
    )
    rent = rented(found).to_document()
    buy = next(option for option in found.options if option.kind is Kind.BUY).to_document()
    assert rent["usd_per_month"] == pytest.approx(1454.34, abs=0.005)
    assert rent["usd_per_million_tokens"] == pytest.approx(977.12, abs=0.005)
    assert rent["decode_tokens_per_s"] == 3.4
    assert rent["speed_source"] == buy["speed_source"] == "measured"
    assert buy["energy_usd_per_month"] == pytest.approx(14.90, abs=0.005)
    assert buy["break_even_months"] == pytest.approx(17.4, abs=0.05)
    assert found.verdict.startswith(
        "Nothing found among what was asked for (2x B200, from runpod) gives a user 10 tokens a second"
    )


def test_options_are_ranked_by_the_month_and_too_slow_ones_last() -> None:
    found = plan_of([*seed_rates(), rate("slowco", "P40", 16, "0.10")])
    fast = [option.usd_per_month for option in found.options if not option.is_too_slow]
    assert fast == sorted(fast)  # type: ignore[type-var]
    is_slow = [option.is_too_slow for option in found.options]
    assert is_slow == sorted(is_slow)
    assert any(option.provider == "slowco" and option.is_too_slow for option in found.options)


def test_price_of_a_token_is_the_machines_own() -> None:
    for option in plan_of(seed_rates()).options:
        if option.kind is not Kind.RENT or option.point is None or option.token_prices is None:
            continue
        assert option.usd_per_hour is not None
        expected = float(option.usd_per_hour) / (option.point.speed.aggregate_tokens_per_s * 3600) * 1e6
        assert option.token_prices.usd_per_million_tokens == pytest.approx(expected)
        assert option.tokens_per_month == pytest.approx(
            option.point.speed.aggregate_tokens_per_s * 3600 * 121.6
        )


def test_measured_speed_is_that_of_its_machine_only() -> None:
    found = plan_of(
        [rate(), rate("lambda", gpu_count=4, usd_per_hour="20.00")],
        gpu="B200",
        decode_tokens_per_s=50.0,
        gpus=2,
    )
    assert {option.point.speed.source for option in found.options if option.point} == {SpeedSource.MEASURED}
    found = plan_of(
        [rate(), rate("lambda", gpu_count=4, usd_per_hour="20.00")], gpu="B200", decode_tokens_per_s=50.0
    )
    assert all(option.point.speed.source is SpeedSource.ESTIMATED for option in found.options if option.point)
    assert any("is not used" in note for note in found.notes)


def test_measured_speed_without_a_machine_is_refused() -> None:
    with pytest.raises(InvalidScenario, match="gpu and gpus"):
        plan_of([rate()], decode_tokens_per_s=50.0)


def test_machine_that_does_not_hold_the_model_is_an_answer() -> None:
    found = plan_of([rate("lambda", "H100 SXM", 1, "2.99")], gpu="H100 SXM", gpus=1)
    assert not any(option.kind is not Kind.API for option in found.options)
    assert "Nothing to rent or buy serves Qwen3 Coder 480B-A35B as Q4_K_M on 1x H100 SXM" in found.verdict
    assert any("about 4 of 80 GB would be needed" in entry.why for entry in found.excluded)


def test_a_market_of_old_prices_only_does_not_say_that_nothing_serves_it() -> None:
    """Two B200 hold the model; what is missing is a price of this fortnight."""
    found = plan_of([rate(age_hours=20 * 24.0)], provider=["runpod"])
    assert found.rental is None
    assert any(entry.why == "seen more than 14 days ago" for entry in found.excluded)
    assert "no rental that serves it has a price that counts" in found.verdict


def test_empty_market_is_an_answer() -> None:
    found = plan_of([])
    assert found.rental is None
    assert any("breakeven prices refresh" in note for note in found.notes)
    assert found.purchase is not None
    assert found.purchase.break_even_months is None


def test_list_of_what_was_left_out_stays_readable() -> None:
    found = plan_of([*seed_rates(), rate("small", "RTX 4090", 8, "3.00"), rate("tiny", "T4", 1, "0.35")])
    assert len(found.excluded) < 30
    assert all(len(entry.what) < 250 for entry in found.excluded)
    whole = next(entry for entry in found.excluded if entry.what == "Small, Tiny")
    assert "the largest is 8x RTX 4090" in whole.why


def test_what_the_caller_left_out_is_listed_too() -> None:
    from planner.compare import plan
    from planner.scenario import Scenario

    left_out = [Excluded(what="12 offers", why="a slice of a GPU")]
    assert left_out[0] in plan(Scenario(model=CODER), [rate()], left_out=left_out).excluded


@pytest.mark.parametrize("day", ["2024-01-01", "2025-06-15", "2026-03-31", "2026-11-04"])
def test_a_plan_of_a_past_day_uses_no_price_that_was_not_known_then(day: str) -> None:
    found = plan_of([rate(seen_at=datetime(2023, 1, 1, tzinfo=UTC))], as_of=day)
    dates = [option.price.seen_at[: len(day)] for option in found.options if option.price.seen_at]
    choices = [choice for choice in found.recommended.to_document().values() if choice]
    dates += [choice["as_of"] for choice in choices if choice["as_of"]]  # type: ignore[index]
    assert dates
    assert all(date <= day for date in dates)
    whys = {entry.why for entry in found.excluded}
    assert f"no purchase price of {day} or before is known" in whys


def test_a_plan_of_today_is_the_plan_of_now() -> None:
    now = plan_of(seed_rates()).to_document()
    today = plan_of(seed_rates(), as_of="2026-11-30").to_document()
    assert today["options"] == now["options"]
    assert today["recommended"] == now["recommended"]


def test_what_never_pays_is_told_from_what_cannot_be_compared() -> None:
    (never,) = (option for option in plan_of([rate(usd_per_hour="0.10")], gpu="B200", gpus=2).options
                if option.kind is Kind.BUY)  # fmt: skip
    assert never.break_even_months is None
    assert never.to_document()["break_even_against"] == "2x B200 from runpod, on_demand"
    alone = plan_of([], gpu="B200", gpus=2)
    place = next(n for n, option in enumerate(alone.options, 1) if option.kind is Kind.BUY)
    assert alone.options[place - 1].to_document()["break_even_against"] is None
    (figure,) = (figure for figure in alone.explain(place).figures if figure.name == "break-even")
    assert (figure.value, "nothing to compare with" in figure.numbers) == (None, True)


def test_presence_says_so_and_a_demand_says_the_peak() -> None:
    assert any("hours are presence" in note for note in plan_of([rate()]).notes)
    notes = plan_of([rate()], tokens_per_month=1e9, peak_factor=3.0).notes
    assert any("a peak of 3 times the mean" in note for note in notes)
    assert not any("presence" in note for note in notes)


def test_demand_is_carried_with_replicas_within_the_limits() -> None:
    found = plan_of(
        [rate(usd_per_hour="10.00")],
        tokens_per_month=2e9,
        hours_per_day=24.0,
        peak_factor=3.0,
        max_tpot_ms=50.0,
        max_ttft_ms=5000.0,
    )
    option = rented(found)
    assert option.point is not None
    speed = option.point.speed
    peak = 2e9 / (730 * 3600) * 3
    assert option.replicas * speed.aggregate_tokens_per_s >= peak * (1 - 1e-9)
    assert (option.replicas - 1) * speed.aggregate_tokens_per_s < peak
    assert speed.tpot_ms <= 50.0
    assert speed.ttft_ms <= 5000.0
    assert option.tokens_per_month == pytest.approx(2e9)
    assert option.usd_per_month == pytest.approx(10.0 * 730 * option.replicas)
    assert option.token_prices is not None
    assert option.token_prices.usd_per_million_tokens == pytest.approx(option.usd_per_month / 2000)  # type: ignore[operator]
    # In the mean a third of that: at the smallest batch that carries it, so the peak adds no energy.
    mean = peak / 3 / option.replicas
    rate_of_mean = next(each for each in option.point.rates_tokens_per_s if each >= mean)
    assert rate_of_mean < speed.aggregate_tokens_per_s
    assert option.point.utilisation == pytest.approx(mean / rate_of_mean)
    # A further batch would break a limit or is not needed.
    assert option.point.batch in operate.BATCHES


def test_a_higher_peak_makes_no_purchase_cheaper() -> None:
    options: dict[str, object] = {
        "gpu": "Instinct MI300X",
        "gpus": 2,
        "tokens_per_month": 5e8,
        "hours_per_day": 24,
    }
    costs = []
    for peak in (1.0, 1.4, 1.5, 2.0, 3.0, 6.0, 12.0):
        found = plan_of([], "llama-3.3-70b-instruct", **options, peak_factor=peak)
        assert found.purchase is not None
        costs.append(found.purchase.usd_per_month)
    assert costs == sorted(costs)


def test_requests_a_second_are_the_same_demand_as_their_tokens() -> None:
    tokens = 0.5 * 512 * 3600 * 121.6
    by_requests = plan_of([rate()], requests_per_s=0.5)
    by_tokens = plan_of([rate()], tokens_per_month=tokens)
    assert rented(by_requests).usd_per_month == rented(by_tokens).usd_per_month
    assert rented(by_requests).tokens_per_month == pytest.approx(tokens)


def test_machine_that_cannot_keep_a_limit_is_left_out_with_the_value() -> None:
    found = plan_of([rate()], max_ttft_ms=5000.0, tokens_per_month=1e6)
    assert not any("Mac Studio" in option.name for option in found.options)
    late = next(entry for entry in found.excluded if "the first token takes" in entry.why)
    assert late.why.endswith("at batch 1, above the limit of 5,000 ms")
    found = plan_of([rate()], max_tpot_ms=1.0)
    assert any("a further token takes" in entry.why for entry in found.excluded)
    assert found.rental is None


def test_verdict_is_one_short_sentence_and_the_figures_stand_below_it() -> None:
    found = plan_of(
        [rate(usd_per_hour="11.96", tier=Tier.COMMUNITY)], gpu="B200", gpus=2, provider=["runpod"]
    )
    assert found.verdict == (
        "Rent 2x B200 from Runpod: 1,454 USD a month at 4 h a day; buying 2x B200 does not pay "
        "back within its term of 48 months (after 202)."
    )
    rent, buy = found.proof
    assert rent == (
        "Rent: 2x B200 from Runpod (community) at 11.96 USD/h (seen 2026-11-30), 1,454 USD a month at 4 h a "
        "day."
    )
    assert buy.startswith("Buy: 2x B200 for ")
    assert "against that rent it" in buy


def test_verdict_buys_where_that_is_cheaper_and_says_from_which_month_it_pays() -> None:
    # 25,000 / (11.96 x 121.6 - 14.896) = 17.4 months
    found = plan_of(
        [rate(usd_per_hour="11.96")],
        gpu="B200",
        gpus=2,
        provider=["runpod"],
        owner="home",
        set=["purchase_usd=25000", "power_kw=0.7"],
    )
    assert found.verdict == (
        "Buy 2x B200 for 25,000 USD: 417 USD a month at 4 h a day, cheaper than renting from month 18 on."
    )
    assert "pays back after 17.4 months" in found.proof[1]


def test_without_a_demand_an_api_leads_where_it_is_cheaper_for_the_tokens_of_the_cheapest_machine() -> None:
    found = plan_of([rate(usd_per_hour="11.96")], gpu="B200", gpus=2)
    assert found.rental is not None
    assert found.api is not None
    assert found.api.tokens_per_month == found.rental.tokens_per_month
    assert found.api.usd_per_month < found.rental.usd_per_month  # type: ignore[operator]
    millions = found.rental.tokens_per_month / 1e6  # type: ignore[operator]
    assert found.api.usd_per_month == pytest.approx(3.40 * millions)
    assert found.verdict == (
        f"Call the API of OpenRouter: {3.40 * millions:.0f} USD a month for the {millions:.1f} million "
        "output tokens that a rented 2x B200 (1,454 USD a month) would write at 4 h a day; "
        "buying never pays against it."
    )
    line = found.proof[-1]
    assert line.startswith(
        "API: qwen/qwen3-coder at OpenRouter, 0.30 USD in and 1.00 USD out a million tokens"
    )
    # 1,454.34 USD a month at 3.40 USD for 1 million out and 8 million in
    assert "It costs less than a rented 2x B200 up to 427.7 million output tokens a month" in line


def test_a_machine_leads_where_it_is_cheaper_than_an_api_for_its_tokens() -> None:
    found = plan_of([rate(usd_per_hour="0.50")], gpu="B200", gpus=2)
    assert found.api is not None
    assert found.verdict.startswith("Rent 2x B200 from Runpod: 60.80 USD a month at 4 h a day")


def test_verdict_with_a_demand_takes_the_cheapest_way_of_all() -> None:
    found = plan_of([rate()], tokens_per_month=1e6)
    assert found.verdict.startswith(
        "Call the API of OpenRouter: 3.40 USD a month for 1.0 million output tokens, "
    )
    assert "against" in found.verdict
    assert found.verdict.endswith("; buying never pays against it.")


@pytest.mark.parametrize(
    "options", [{}, {"tokens_per_month": 1e8}, {"own": "4x B200"}, {"own": "1x RTX 4090"}]
)
@pytest.mark.parametrize("usd_per_hour", ["0.50", "12.00", "60.00"])
def test_verdict_is_short_whatever_is_asked(options: dict[str, object], usd_per_hour: str) -> None:
    found = plan_of([rate(usd_per_hour=usd_per_hour)], **options)
    assert len(found.verdict) < 250
    assert found.verdict.count(". ") == 0
    assert found.verdict.count(";") <= 2


def test_cheaper_rows_that_do_not_count_say_why() -> None:
    old = {"status": PriceStatus.SNAPSHOT, "seen_at": datetime(2026, 5, 8, tzinfo=UTC), "age_hours": 4956.0}
    new = {"status": PriceStatus.SNAPSHOT, "seen_at": datetime(2026, 11, 4, tzinfo=UTC), "age_hours": 636.0}
    rates = [
        rate("spot", usd_per_hour="1.00", tier=Tier.SPOT, **new),  # type: ignore[arg-type]
        rate("old", usd_per_hour="2.00", **old),  # type: ignore[arg-type]
        rate("slow", "P40", 16, "0.10", **new),  # type: ignore[arg-type]
        rate("new", usd_per_hour="8.00", **new),  # type: ignore[arg-type]
    ]
    found = plan_of(rates)
    why = {
        option.provider: reason
        for option, reason in zip(found.options, found.passed_over(), strict=True)
        if option.kind is Kind.RENT
    }
    assert why == {
        "spot": "spot, may be taken away",
        "old": "price before 2026-08-04",
        "slow": "too slow to talk to",
        "new": None,
    }
    assert found.rental is not None
    assert found.rental.provider == "new"
    note = next(note for note in found.notes if note.startswith("Cheaper, but not counted"))
    assert "1 (spot, may be taken away)" in note
    assert "1 (price before 2026-08-04)" in note
    assert "--tier spot" in note
    verified = plan_of([*rates, rate("checked", usd_per_hour="9.00")])
    assert "not verified, others are" in verified.passed_over()


def test_a_purchase_price_older_than_a_year_counts_only_where_there_is_no_newer_one() -> None:
    found = plan_of([rate()])
    why = dict(zip((option.name for option in found.options), found.passed_over(), strict=True))
    assert why["Mac Studio M3 Ultra 512GB"] == "price over a year old"  # of March 2025
    assert found.purchase is not None
    assert (found.purchase.price.seen_at or "") >= "2025-08"
    alone = plan_of([rate()], gpu="Mac Studio M3 Ultra 512GB")
    assert alone.purchase is not None
    assert alone.purchase.name == "Mac Studio M3 Ultra 512GB"
    assert "price of 2025-03-12" in next(line for line in alone.proof if line.startswith("Buy: "))


def test_spot_is_listed_and_not_recommended_unless_asked_for() -> None:
    rates = [rate("cheap", usd_per_hour="1.00", tier=Tier.SPOT), rate("good", usd_per_hour="9.00")]
    found = plan_of(rates)
    assert rented(found).provider == "cheap"
    assert found.rental is not None
    assert found.rental.provider == "good"
    assert any("spot" in note for note in found.notes)
    assert plan_of(rates, tier=["spot"]).rental.provider == "cheap"  # type: ignore[union-attr]


def test_verified_prices_win_over_cheaper_snapshots_and_old_snapshots_are_not_recommended() -> None:
    snapshot = PriceStatus.SNAPSHOT
    old = rate(
        "old",
        usd_per_hour="2.00",
        status=snapshot,
        seen_at=datetime(2026, 5, 8, tzinfo=UTC),
        age_hours=4956.0,
    )
    recent = rate(
        "recent",
        usd_per_hour="8.00",
        status=snapshot,
        seen_at=datetime(2026, 11, 4, tzinfo=UTC),
        age_hours=636.0,
    )
    found = plan_of([old, recent])
    assert found.rental.provider == "recent"  # type: ignore[union-attr]
    assert any("No verified price meets the limits" in note for note in found.notes)
    found = plan_of([old, recent, rate("checked", usd_per_hour="9.00")])
    assert found.rental.provider == "checked"  # type: ignore[union-attr]
    assert not any("No verified price" in note for note in found.notes)
    assert [option.provider for option in found.options if option.kind is Kind.RENT] == [
        "old",
        "recent",
        "checked",
    ]


def test_unlike_machines_are_named() -> None:
    assert any(note.startswith("Unlike machines") for note in plan_of([rate()]).notes)
    assert not any(note.startswith("Unlike machines") for note in plan_of([rate()], gpu="B200", gpus=2).notes)


def test_alias_of_a_gpu_is_understood_and_an_ambiguous_one_says_what_it_took() -> None:
    assert rented(plan_of([rate("l", "H100 SXM", 4, "8.00")], gpu="NVIDIA H100 80GB HBM3")).gpu == "H100 SXM"
    assert any("may also mean" in note for note in plan_of([rate()], SMALL, gpu="A100").notes)


def test_alias_of_a_quantised_copy_brings_its_format() -> None:
    from planner.catalogues.models import model_aliases

    alias = next(each for each in model_aliases().values() if each.model == SMALL and each.quant == "FP8")
    found = plan_of([rate()], alias.name)
    assert found.quant.name == "FP8"
    assert any("a copy in FP8" in note for note in found.notes)


@pytest.mark.parametrize(
    "options", [{"gpu": "B2000"}, {"own": "2x RTX 9999"}, {"quant": "Q9"}, {"electricity_region": "Atlantis"}]
)
def test_unknown_name_is_one_line_with_matches(options: dict[str, str]) -> None:
    with pytest.raises(UnknownName) as caught:
        plan_of([rate()], **options)
    assert "\n" not in str(caught.value)


def test_energy_and_co2_of_a_million_tokens() -> None:
    plain = plan_of([rate()], gpu="B200", gpus=2)
    place, purchase = next(
        (place, option) for place, option in enumerate(plain.options, 1) if option.kind is Kind.BUY
    )
    basis = purchase.basis
    assert isinstance(basis, BuyBasis)
    kwh = float(basis.ownership.energy_kwh_per_year) / 12 * 1.54
    assert purchase.kwh_per_million_tokens == pytest.approx(kwh / (purchase.tokens_per_month or 0.0) * 1e6)
    assert purchase.g_co2_per_million_tokens is None  # nobody said where the electricity comes from
    names = [figure.name for figure in plain.explain(place).figures]
    assert "energy of a million output tokens" in names
    assert "CO2 of a million output tokens" not in names
    german = plan_of([rate()], gpu="B200", gpus=2, electricity_region="DE")
    bought = next(option for option in german.options if option.kind is Kind.BUY)
    assert bought.g_co2_per_million_tokens == pytest.approx(380.95 * (bought.kwh_per_million_tokens or 0.0))
    assert any("CO2 of the electricity in Germany: 381 g/kWh (2023" in note for note in german.notes)
    own = plan_of([rate()], gpu="B200", gpus=2, set=["grid_g_co2_per_kwh=100"])
    assert next(o for o in own.options if o.kind is Kind.BUY).g_co2_per_million_tokens == pytest.approx(
        100 * (purchase.kwh_per_million_tokens or 0.0)
    )
    for option in german.options:
        if option.kind is not Kind.BUY:
            assert option.kwh_per_million_tokens is None
            assert option.g_co2_per_million_tokens is None


def test_region_sets_the_tariff_and_names_its_source() -> None:
    found = plan_of([rate()], electricity_region="DE")
    note = next(note for note in found.notes if note.startswith("Electricity in Germany"))
    assert "Eurostat" in note
    dear, cheap = found.purchase, plan_of([rate()]).purchase
    assert dear is not None
    assert cheap is not None
    assert dear.energy_usd_per_month > cheap.energy_usd_per_month  # type: ignore[operator]


def test_display_currency_reaches_words_and_leaves_the_dollar_fields() -> None:
    found = plan_of([rate()], gpu="B200", gpus=2, currency="EUR")
    assert rented(found).usd_per_month == pytest.approx(1454.336)
    assert "10.71 EUR/h" in found.proof[0]  # 11.96 / 1.1172
    assert any("1 EUR = 1.1172 USD" in note for note in found.notes)


def test_explanation_puts_the_numbers_in() -> None:
    found = plan_of(seed_rates(), gpu="B200", gpus=2, provider=["runpod"])
    number = found.options.index(rented(found)) + 1
    figures = {figure.name: figure for figure in found.explain(number).figures}
    assert figures["rent"].value == pytest.approx(1454.336)
    assert figures["rent"].numbers == "11.96 x 121.6 x 1"
    assert "Runpod" in figures["rent"].source
    buy = found.options.index(next(option for option in found.options if option.kind is Kind.BUY)) + 1
    names = [figure.name for figure in found.explain(buy).figures]
    for name in (
        "price",
        "depreciation",
        "energy",
        "staff",
        "cost of owning",
        "break-even",
        "break-even use",
    ):
        assert name in names
    document = found.explain(buy).to_document()
    assert document["schema"] == "breakeven.explanation/1"
    assert json.dumps(document, allow_nan=False)


def test_explained_lines_of_owning_add_up() -> None:
    found = plan_of([rate()], gpu="B200", gpus=2, owner="colo")
    buy = next(option for option in found.options if option.kind is Kind.BUY)
    figures = {
        figure.name: figure.value or 0.0 for figure in found.explain(found.options.index(buy) + 1).figures
    }
    lines = ("depreciation", "energy", "colocation", "support", "staff", "insurance")
    assert sum(figures[line] for line in lines) == pytest.approx(buy.usd_per_month)


@pytest.mark.parametrize("number", [0, -1, 1000])
def test_explaining_no_option_is_refused(number: int) -> None:
    with pytest.raises(InvalidScenario, match="1 to"):
        plan_of([rate()]).explain(number)


def test_crossing_is_where_the_break_even_says() -> None:
    found = plan_of(
        seed_rates(), gpu="B200", gpus=2, owner="home", set=["purchase_usd=25000", "power_kw=0.7"]
    )
    crossing = found.crossing()
    assert crossing.break_even_months == pytest.approx(17.37, abs=0.005)
    assert crossing.own_usd is not None
    assert crossing.rent_usd is not None
    assert crossing.own_usd[0] == 25_000
    assert crossing.rent_usd[0] == 0.0
    assert len(crossing.months) == 49
    month = math.ceil(crossing.break_even_months or 0.0)
    assert crossing.own_usd[month] < crossing.rent_usd[month]
    assert crossing.own_usd[month - 1] > crossing.rent_usd[month - 1]


def test_cost_by_hours_crosses_at_the_break_even_hours() -> None:
    found = plan_of([rate(usd_per_hour="40.00")], gpu="B200", gpus=2)
    lines = found.cost_by_hours()
    assert lines.own_usd_per_month is not None
    assert lines.rent_usd_per_month is not None
    assert lines.rent_usd_per_month[0] == 0.0
    hours = lines.break_even_hours_per_day
    assert hours is not None
    cheaper = [
        own < rent for own, rent in zip(lines.own_usd_per_month, lines.rent_usd_per_month, strict=True)
    ]
    assert cheaper == [hour > hours for hour in lines.hours_per_day]
    # At the hours asked for, the line is the option's own monthly cost.
    at = lines.hours_per_day.index(4.0)
    assert lines.own_usd_per_month[at] == pytest.approx(found.purchase.usd_per_month)  # type: ignore[union-attr]


def test_charts_of_an_empty_plan_are_empty() -> None:
    found = plan_of([], gpu="H100 SXM", gpus=1)
    assert found.crossing().rent_usd is None
    assert found.crossing().own_usd is None
    assert found.cost_by_hours().own_usd_per_month is None


def test_each_machine_is_sized_once(monkeypatch: pytest.MonkeyPatch) -> None:
    sized: list[tuple[str, int]] = []
    original = operate.size_machines

    def counted(workload: Workload, machines: Sequence[Machine], **more: object) -> list[Sizing]:
        sized.extend((machine.gpu.name, machine.gpu_count) for machine in machines)
        return original(workload, machines, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(operate, "size_machines", counted)
    plan_of([rate(f"p{n}", usd_per_hour=f"{10 + n}.00") for n in range(50)])
    assert len(sized) == len(set(sized))
    assert ("B200", 2) in sized


@settings(max_examples=15, deadline=None)
@given(hours=st.floats(0.1, 24.0), more=st.floats(0.1, 24.0), price=st.floats(0.05, 100.0))
def test_no_answer_is_negative_or_infinite_and_costs_grow_with_hours(
    hours: float, more: float, price: float
) -> None:
    less, longer = sorted((hours, more))
    rates = [rate(usd_per_hour=f"{price:.4f}")]
    first, second = (plan_of(rates, gpu="B200", hours_per_day=each) for each in (less, longer))
    for found in (first, second):
        for option in found.options:
            document = option.to_document()
            for name, value in document.items():
                if isinstance(value, float):
                    assert math.isfinite(value), name
                    assert value >= 0.0, name
    for kind in (Kind.RENT, Kind.BUY):
        low, high = (
            min(option.usd_per_month or 0.0 for option in found.options if option.kind is kind)
            for found in (first, second)
        )
        assert low <= high * (1 + 1e-9)


def test_planning_loads_no_table_library() -> None:
    code = (
        "import sys; from planner.compare import plan; from planner.scenario import Scenario; "
        "plan(Scenario(model='llama-3.1-8b-instruct'), []); "
        "print([name for name in ('pandas', 'pyarrow', 'openpyxl', 'streamlit') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)
    assert done.stdout.strip() == "[]"


def test_a_row_that_the_verdict_passes_over_says_why_in_the_document() -> None:
    found = plan_of([rate("spot", tier=Tier.SPOT, usd_per_hour="0.50"), rate("acme")])
    options = {option["provider"]: option for option in found.to_document()["options"]}  # type: ignore[attr-defined]
    assert options["spot"]["passed_over"] == "spot, may be taken away"
    assert (options["acme"]["passed_over"], options["acme"]["is_too_slow"]) == (None, False)


def test_where_every_machine_is_too_slow_the_other_reasons_are_given() -> None:
    old = datetime(2026, 1, 4, tzinfo=UTC)
    new = {"status": PriceStatus.SNAPSHOT, "seen_at": datetime(2026, 11, 4, tzinfo=UTC), "age_hours": 636.0}
    found = plan_of(
        [
            rate("old", usd_per_hour="2.00", **{**new, "seen_at": old}),  # type: ignore[arg-type]
            rate("new", usd_per_hour="8.00", **new),  # type: ignore[arg-type]
        ],
        gpu="B200",
        gpus=2,
        decode_tokens_per_s=3.4,
    )
    why = {option.provider: reason for option, reason in zip(found.options, found.passed_over(), strict=True)}
    assert why["old"] == "price before 2026-08-04"
    assert why["new"] is None
    assert all(option.is_too_slow for option in found.options if option.kind is not Kind.API)


def test_where_every_machine_is_too_slow_a_verified_price_goes_before_a_cheaper_bundled_one() -> None:
    bundled = {
        "status": PriceStatus.SNAPSHOT,
        "seen_at": datetime(2026, 11, 4, tzinfo=UTC),
        "age_hours": 636.0,
    }
    found = plan_of(
        [rate("bundled", usd_per_hour="2.00", **bundled), rate("checked", usd_per_hour="8.00")],  # type: ignore[arg-type]
        gpu="B200",
        gpus=2,
        decode_tokens_per_s=3.4,
    )
    assert all(option.is_too_slow for option in found.options if option.kind is not Kind.API)
    assert found.rental is not None
    assert found.rental.provider == "checked"
    assert found.proof[0].startswith("Rent: 2x B200 from Checked")
    why = {option.provider: reason for option, reason in zip(found.options, found.passed_over(), strict=True)}
    assert (why["bundled"], why["checked"]) == ("not verified, others are", None)
    bought = next(option for option in found.options if option.kind is Kind.BUY)
    assert bought.compared_with is found.rental or bought.compared_with.provider == "checked"  # type: ignore[union-attr]


def test_a_growing_demand_says_until_when_the_machines_of_today_carry_it() -> None:
    options: dict[str, object] = {"gpu": "RTX 4090", "gpus": 1, "tokens_per_month": 3e9, "hours_per_day": 24}
    rates = [rate("a", "RTX 4090", 1, "0.40")]
    found = plan_of(rates, SMALL, **options, set=["demand_growth_per_year=1"])
    document = next(each for each in found.to_document()["options"] if each["kind"] == "rent")  # type: ignore[attr-defined]
    point = rented(found).point
    assert point is not None
    # Doubling in a year: 12 x log2(what they carry / 3e9 / (730 x 3,600))
    spare = point.capacity_tokens_per_s * point.replicas / (3e9 / (730 * 3600))
    assert document["carries_until_months"] == pytest.approx(12 * math.log2(spare))
    assert rented(found).usd_per_month == rented(plan_of(rates, SMALL, **options)).usd_per_month
    flat = plan_of(rates, SMALL, **options)
    assert {each["carries_until_months"] for each in flat.to_document()["options"]} == {None}  # type: ignore[attr-defined]


def test_a_day_without_any_price_is_not_a_model_that_nothing_serves() -> None:
    found = plan_of([], SMALL, as_of="2020-01-01")
    assert found.verdict.startswith("No price of 2020-01-01 or before is known of a machine to rent or buy")
    assert not any("prices refresh" in note for note in found.notes)
    filtered = plan_of([rate()], SMALL, gpu="TPU v5e")
    assert filtered.verdict.startswith(
        "No price that counts is known of a machine to rent or buy among what was asked for (TPU v5e)"
    )


def test_the_recommended_machine_and_the_verdict_hold_purchase_prices_to_one_age() -> None:
    found = plan_of([rate()], "llama-3.3-70b-instruct", quant="BF16")
    value = found.recommended.best_value
    assert value is not None
    assert (value.as_of or "") >= "2025-08"  # 2x Gaudi 2, cheaper, has a price of June 2024
    assert found.purchase is not None
    assert (found.purchase.price.seen_at or "") >= "2025-08"
    by_then = plan_of([rate()], "llama-3.3-70b-instruct", quant="BF16", as_of="2024-12-31")
    assert by_then.recommended.best_value is not None
    assert by_then.recommended.best_value.gpu == "Gaudi 2"


def test_a_machine_is_recommended_by_the_speed_that_the_limit_applies_to() -> None:
    found = plan_of([rate()], "qwen3-32b", batch=8).recommended
    for choice in (found.best_single_gpu, found.best_multi_gpu, found.best_value):
        assert choice is not None
        assert choice.user_tokens_per_s is not None
        assert choice.user_tokens_per_s >= 10.0


def test_a_budget_that_excludes_every_purchase_is_named_in_the_verdict() -> None:
    asked = {"model": "qwen3-8b", "gpu": "B200", "gpus": 1}
    found = plan_of([rate(gpu_count=1, usd_per_hour="0.01")], **asked, budget_usd=1000)
    assert found.verdict.endswith("; nothing to buy within the budget of 1,000 USD serves it.")


def test_a_rent_that_flips_the_answer_is_that_of_all_machines_together() -> None:
    rates = [rate("runpod", "RTX 4090", 1, "0.40")]
    many = plan_of(rates, "llama-3.1-8b-instruct", gpu="RTX 4090", gpus=1, tokens_per_month=2e10)
    one = plan_of(rates, "llama-3.1-8b-instruct", gpu="RTX 4090", gpus=1)
    assert many.rental is not None
    assert many.rental.replicas > 1
    (said,) = (note for note in many.notes if note.startswith("Between owning and renting"))
    assert "rent if you find machines that serve it for under " in said
    assert "/h together; else own " in said
    (said,) = (note for note in one.notes if note.startswith("Between owning and renting"))
    assert "rent if you find a machine that serves it under " in said


def test_a_purchase_says_from_how_many_tokens_it_costs_less_than_the_api() -> None:
    found = plan_of(
        [rate(gpu_count=1)], "qwen3-32b", quant="FP8", gpu="B200", gpus=1, hours_per_day=24, batch=16
    )
    bought, api = found.purchase, found.api
    assert bought is not None
    assert api is not None
    assert api.token_prices is not None
    number = found.options.index(bought)
    enough = found.to_document()["options"][number]["break_even_tokens_per_month"]  # type: ignore[index]
    expected = bought.usd_per_month / api.token_prices.usd_per_million_tokens * 1e6  # type: ignore[operator]
    capacity = bought.point.capacity_tokens_per_s * 3600 * 730  # type: ignore[union-attr]
    assert expected < capacity
    assert enough == pytest.approx(expected)
    figures = {figure.name: figure for figure in found.explain(number + 1).figures}
    tokens = figures["break-even tokens against an API"]
    assert tokens.value == enough
    assert not tokens.is_never
    rented = next(each for each in found.to_document()["options"] if each["kind"] == "rent")  # type: ignore[attr-defined]
    assert rented["break_even_tokens_per_month"] is None


def test_more_tokens_than_the_machine_can_write_are_never() -> None:
    found = plan_of([rate(gpu_count=1)], "qwen3-32b", quant="FP8", gpu="B200", gpus=1, hours_per_day=0.5)
    assert found.purchase is not None
    number = found.options.index(found.purchase) + 1
    figures = {figure.name: figure for figure in found.explain(number).figures}
    tokens = figures["break-even tokens against an API"]
    assert tokens.value is None
    assert tokens.is_never
    assert figures["break-even utilisation"].is_never == (figures["break-even utilisation"].value is None)


def test_the_default_plan_says_why_it_differs_from_the_sizing_page() -> None:
    page = {"gpu": "B200", "gpus": 2, "set": ["purchase_usd=25000", "power_kw=0.7"]}
    (note,) = (note for note in plan_of(seed_rates()).notes if "sizing page" in note)
    assert all(part in note for part in ("17.4 months", "two B200", "3.4 tokens/s", "resale"))
    for other in (
        plan_of(seed_rates(), **page),  # the page's own inputs give its figures
        plan_of(seed_rates(), SMALL),
        plan_of(seed_rates(), tokens_per_month=1e6),
    ):
        assert not any("sizing page" in note for note in other.notes)


SLOW_BOX = {"budget_usd": 5000, "hours_per_day": 16, "owner": "home", "batch": 16}


def test_a_purchase_too_slow_to_talk_to_is_set_against_no_rental_that_is_fast_enough() -> None:
    # What 5,000 USD buys writes 2 to 6 tokens/s for each of 16 users: below 10.
    rates = [rate("acme", "GH200 96GB", 1, "2.29")]
    found = plan_of(rates, "glm-4.5-air", **SLOW_BOX)
    assert found.verdict == (
        "Rent 1x GH200 96GB from Acme: 1,114 USD a month at 16 h a day; nothing to buy within the budget of "
        "5,000 USD is fast enough."
    )
    slow = [option for option in found.options if option.kind is Kind.BUY]
    assert slow
    assert all(option.is_too_slow for option in slow)
    assert found.purchase is None
    assert {(each.compared_with, each.break_even_months, each.break_even_hours_per_day) for each in slow} == {
        (None, None, None)
    }
    told = " ".join([*found.notes, *found.proof])
    assert not any(words in told for words in ("Between owning", "same limits", "What would change", "Buy:"))
    assert found.sensitivity(draws=0) is None
    assert found.crossing().own_usd is None
    assert found.crossing(slow[0]).rent_usd is None
    assert found.cash_flow().own_usd is None
    assert found.cash_flow(slow[0]).rent_usd is None
    assert found.cost_by_hours(slow[0]).rent_usd_per_month is None
    reason = next(
        figure.numbers
        for figure in found.explain(found.options.index(slow[0]) + 1).figures
        if figure.name == "break-even"
    )
    assert reason == "too slow to talk to, so it is not compared with a rental that is not"


def test_where_every_machine_is_too_slow_the_verdict_and_what_stands_below_it_say_so() -> None:
    # No machine writes 100,000 tokens a second for one user.
    found = plan_of(
        [rate("acme", "B200", 2, "11.96")], "llama-3.3-70b-instruct", min_tokens_per_s_per_user=100_000
    )
    assert all(option.is_too_slow for option in found.options if option.kind is not Kind.API)
    assert "100000 tokens a second" in found.verdict
    ways = [line for line in found.proof if not line.startswith("API")]
    assert len(ways) == 2
    assert all("It is too slow to talk to." in line for line in ways)
    (between,) = (note for note in found.notes if note.startswith("Between owning and renting"))
    assert between.startswith("Between owning and renting, both too slow to talk to: ")
    (unlike,) = (note for note in found.notes if note.startswith("Unlike machines"))
    assert unlike.endswith("both are below the 100000 tokens/s asked for.")


def test_buying_that_pays_only_after_its_term_is_not_said_to_pay() -> None:
    found = plan_of(
        [rate("acme", "Instinct MI300X", 1, "2.39")],
        "glm-4.5-air",
        tokens_per_month=2e10,
        peak_factor=6,
        hours_per_day=24,
        owner="home",
        set=["term_years=1"],
    )
    assert found.verdict.startswith("Call the API of Z.ai: ")
    assert found.purchase is not None
    assert found.api is not None
    basis = found.purchase.basis
    assert isinstance(basis, BuyBasis)
    saved = found.api.usd_per_month - float(basis.cost.running_usd_per_month)  # type: ignore[operator]
    months = found.purchase.purchase_usd / saved  # type: ignore[operator]
    assert 12.0 < months < 240.0
    assert found.verdict.endswith(
        f"; buying does not pay against it within its term of 12 months (after {months:.0f})."
    )
    assert found.purchase.pays_after_its_term
    assert "buying pays" not in found.verdict
    (paths,) = (note for note in found.notes if note.startswith("Rents may move"))
    assert "flat not within its term of 12 months (after 13) (in use)" in paths


def test_machines_on_which_the_heads_do_not_divide_are_left_out_with_the_reason():
    rates = [rate(gpu="Instinct MI300X", gpu_count=count, usd_per_hour=f"{2 * count}.00") for count in (4, 8)]
    asked = {"quant": "BF16", "engine": "vllm", "batch": 64, "context": 131072}
    found = plan_of(rates, "qwen2.5-7b-instruct", **asked)
    counts = {option.gpu_count for option in found.options if option.gpu}
    assert 4 in counts
    assert not counts & {8}
    why = next(entry.why for entry in found.excluded if "8x Instinct MI300X" in entry.what)
    assert why == "vllm does not start so: 28 attention heads do not divide among 8 GPUs"


def test_one_of_a_thing_is_written_without_a_plural() -> None:
    found = plan_of([rate()], gpu="B200", gpus=2, requests_per_s=1, hours_per_day=24, set=["term_years=1"])
    told = " ".join([found.verdict, *found.proof, *found.notes])
    assert "for 1 request a second" in told
    assert " over 1 year for 1 request" in told
    assert not re.search(r"\b1 (requests|years)\b", told)
