from planner.answers.recommend import Recommended, recommend
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
