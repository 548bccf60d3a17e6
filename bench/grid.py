"""Size every model on every device in every format on 1, 2, 4 and 8 GPUs; print configurations per second."""

import json
import time
from statistics import median

from planner.catalogues.gpus import all_gpus
from planner.catalogues.models import all_models
from planner.catalogues.quants import all_quants
from planner.serving.grid import size_grid

RUNS = 5


def main() -> None:
    models, gpus, quants = (list(all_().values()) for all_ in (all_models, all_gpus, all_quants))
    size_grid(models[:1], gpus[:1], quants)  # imports and caches
    seconds = []
    for _ in range(RUNS):
        start = time.perf_counter()
        grid = size_grid(models, gpus, quants)
        seconds.append(time.perf_counter() - start)
    figures = {
        "models": len(models),
        "devices": len(gpus),
        "formats": len(quants),
        "configurations": grid.configurations,
        "median_s": median(seconds),
        "configurations_per_s": grid.configurations / median(seconds),
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
