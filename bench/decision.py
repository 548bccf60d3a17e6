"""Plan one model over the whole bundled market, and draw every assumption 10,000 times for all options."""

import json
import time
from datetime import UTC, datetime
from statistics import median

from planner.compare import plan
from planner.scenario import Scenario
from planner.supply.options import Kind
from pricing.store import Store

RUNS = 5
# A day after the newest bundled price, so that the figures do not depend on the day of the measurement.
NOW = datetime(2026, 11, 30, tzinfo=UTC)


def main() -> None:
    with Store.in_memory() as store:
        rates = store.rates(NOW, cheapest=True)
    scenario = Scenario(model="qwen3-coder-480b-a35b", hours_per_day=12)
    found = plan(scenario, rates)  # catalogues and caches
    purchases = [option for option in found.options if option.kind is Kind.BUY and option.compared_with]
    found.sensitivity(purchases[0])
    found.spread()
    plans, draws, spreads = [], [], []
    for _ in range(RUNS):
        start = time.perf_counter()
        plan(scenario, rates)
        plans.append(time.perf_counter() - start)
        start = time.perf_counter()
        for purchase in purchases:
            found.sensitivity(purchase)
        draws.append(time.perf_counter() - start)
        start = time.perf_counter()
        drawn = found.spread()
        spreads.append(time.perf_counter() - start)
    figures = {
        "rental_prices": len(rates),
        "options": len(found.options),
        "purchases_drawn": len(purchases),
        "plan_median_s": median(plans),
        "draws_of_purchases_median_s": median(draws),
        "options_drawn": len(drawn.options),
        "draws_of_all_options_median_s": median(spreads),
        "draws_of_both_median_s": median(draws) + median(spreads),
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
