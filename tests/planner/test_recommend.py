import pytest

from planner.answers.recommend import Choice, Recommended, recommend
from planner.catalogues.models import find_model
from planner.catalogues.quants import find_quant
from planner.rates import Tier
from planner.scenario import Scenario
from tests.planner.plans import CODER, SMALL, plan_of, rate, seed_rates


def recommended(model: str, quant: str = "Q4_K_M", *, floor: float = 0.0, **options: object) -> Recommended:
    scenario = Scenario.from_mapping({"model": model, "quant": quant, **options})
    workload = scenario.workload(find_model(model).model, find_quant(quant))
    return recommend(workload, rates=seed_rates(), min_tokens_per_s=floor)


def test_hardware_for_the_sizing_page() -> None:
    found = recommended(CODER, method="simple")
    assert found.best_single_gpu is None  # several GPUs are required
    assert found.unified_memory is not None
    assert found.unified_memory.name == "Mac Studio M3 Ultra 512GB"
    assert found.unified_memory.usd == 9499
    assert found.cheapest_cloud is not None
    assert (found.cheapest_cloud.name, found.cheapest_cloud.usd_per_hour) == ("2x B200", "11.96")
    assert found.best_value == found.best_multi_gpu


def test_single_gpu_is_the_cheapest_that_holds_it() -> None:
    found = recommended(CODER, "UD-Q2_K_XL", method="simple")
    assert found.best_single_gpu is not None
    assert found.best_single_gpu.gpu == "Instinct MI300X"


def test_machines_below_the_speed_are_passed_over() -> None:
    slow = recommended(CODER)
    fast = recommended(CODER, floor=20.0)
    assert slow.best_value is not None
    assert fast.best_value is not None
    assert slow.best_value.is_slower_than(20.0)
    assert not fast.best_value.is_slower_than(20.0)
    assert fast.best_value.usd > slow.best_value.usd  # type: ignore[operator]


def test_spot_and_sold_out_machines_are_no_recommendation() -> None:
    workload = Scenario(model=SMALL).workload(find_model(SMALL).model, find_quant("Q4_K_M"))
    rates = [
        rate("a", "RTX 4090", 1, "0.10", tier=Tier.SPOT),
        rate("b", "RTX 4090", 1, "0.20", available=False),
        rate("c", "RTX 4090", 1, "0.30"),
        rate("d", "no such device", 1, "0.01"),
    ]
    found = recommend(workload, rates=rates)
    assert found.cheapest_cloud is not None
    assert found.cheapest_cloud.provider == "c"


def test_plan_recommends_the_same_way() -> None:
    found = plan_of(seed_rates()).recommended
    assert found.cheapest_cloud is not None
    assert found.cheapest_cloud.name == "2x B200"
    document = found.to_document()
    assert list(document) == [
        "best_single_gpu",
        "best_multi_gpu",
        "best_value",
        "unified_memory",
        "cheapest_cloud",
    ]


def test_a_plan_recommends_what_keeps_its_limits_at_its_prices_and_its_speeds() -> None:
    asked = {"quant": "FP8", "tokens_per_month": 3e8, "max_ttft_ms": 2000, "max_tpot_ms": 60}
    found = plan_of(seed_rates(), "llama-3.3-70b-instruct", **asked)
    rows = {(each.gpu, each.gpu_count): each for each in found.options if each.kind == "buy"}
    chosen = [each for each in vars_of(found.recommended) if each.usd is not None]
    assert chosen
    for choice in chosen:
        # The same machine asked for alone stands in the ranking, within the limits.
        row = rows.get((choice.gpu, choice.gpu_count))
        if row is None:
            alone = plan_of([], "llama-3.3-70b-instruct", **asked, gpu=choice.gpu, gpus=choice.gpu_count)
            row = next(each for each in alone.options if each.kind == "buy")
        assert row.point is not None
        assert row.point.speed.ttft_ms <= 2000
        assert row.point.speed.tpot_ms <= 60
        assert choice.decode_tokens_per_s == row.point.speed.decode_tokens_per_s
        if row.replicas == 1:
            assert choice.usd == row.purchase_usd  # network and set-up included


def vars_of(found: Recommended) -> list[Choice]:
    every = (found.best_single_gpu, found.best_multi_gpu, found.best_value, found.unified_memory)
    return [choice for choice in every if choice is not None]


def test_no_device_without_a_speed_is_recommended() -> None:
    for found in (recommended(SMALL), recommended(CODER), plan_of([], SMALL).recommended):
        assert all(choice.decode_tokens_per_s is not None for choice in vars_of(found))


@pytest.mark.parametrize("of", ["a plan", "a workload"])
def test_several_gpus_are_the_cheapest_that_serve_and_no_rack_where_one_would_do(of: str) -> None:
    found = plan_of([], SMALL).recommended if of == "a plan" else recommended(SMALL)
    several, single, best = found.best_multi_gpu, found.best_single_gpu, found.best_value
    assert several is not None
    assert single is not None
    assert best is not None
    assert several.gpu_count == 2
    # Two cards with their computer, faster than one: far below a rack of 72 at 3,300,000 USD.
    assert several.usd is not None
    assert several.usd < 10_000
    assert several.user_tokens_per_s > single.user_tokens_per_s  # type: ignore[operator]
    assert not several.is_slower_than(10.0)
    assert best.usd == min(several.usd, single.usd)  # type: ignore[type-var]
