"""
Size 100,000 configurations from a CSV file with `breakeven size --rows`, a process of its own each time.

Two files: ten models in one format, and every model in every format; devices, counts, contexts and batches
drawn at random. Prints seconds of the whole process and its largest memory.
"""

import csv
import json
import os
import random
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from planner.catalogues.gpus import all_gpus
from planner.catalogues.models import all_models
from planner.catalogues.quants import all_quants

COUNT = 100_000
RUNS = 3
SEED = 4
COLUMNS = ("model", "quant", "gpu", "gpus", "context", "batch", "input_tokens", "output_tokens")


def write(path: Path, models: list[str], quants: list[str]) -> None:
    """Write a file of random configurations."""
    draw = random.Random(SEED)
    gpus = [gpu.name for gpu in all_gpus().values()]
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        for _ in range(COUNT):
            row = (draw.choice(models), draw.choice(quants), draw.choice(gpus), draw.choice((1, 2, 4, 8)))
            sizes = (draw.choice((2048, 8192, 32768)), draw.choice((1, 8, 64)), draw.randint(16, 2000), 256)
            writer.writerow((*row, *sizes))


def whole_process(source: Path, target: Path) -> tuple[float, float, float]:
    """Return wall time, processor time and largest resident memory of one process. [s, s, MB]"""
    command = [sys.executable, "-m", "dashboard", "size", "--rows", str(source), "-o", str(target)]
    nowhere = [(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]
    start = time.perf_counter()
    process = os.posix_spawn(command[0], command, os.environ, file_actions=nowhere)
    _, status, used = os.wait4(process, 0)
    seconds = time.perf_counter() - start
    if status:
        raise SystemExit(f"breakeven size --rows ended with {os.waitstatus_to_exitcode(status)}")
    # kilobytes on Linux, bytes on macOS
    memory_mb = used.ru_maxrss / (1e6 if sys.platform == "darwin" else 1e3)
    return seconds, used.ru_utime + used.ru_stime, memory_mb


def measured(folder: Path, models: list[str], quants: list[str]) -> dict[str, float]:
    source, target = folder / "rows.csv", folder / "sized.csv"
    write(source, models, quants)
    whole_process(source, target)
    runs = [whole_process(source, target) for _ in range(RUNS)]
    with target.open(encoding="utf-8", newline="") as file:
        sized = [row for row in csv.DictReader(file) if not row["error"]]
    return {
        "rows": len(sized),
        "median s": median(seconds for seconds, _, _ in runs),
        "max s": max(seconds for seconds, _, _ in runs),
        "processor s": median(seconds for _, seconds, _ in runs),
        "memory MB": max(memory for _, _, memory in runs),
    }


def main() -> None:
    models = [model.id for model in all_models().values()]
    quants = [quant.name for quant in all_quants().values()]
    with tempfile.TemporaryDirectory() as folder:
        figures = {
            "ten models": measured(Path(folder), models[:10], ["Q4_K_M"]),
            "all models and formats": measured(Path(folder), models, quants),
        }
    print(json.dumps({"size --rows": figures}))


if __name__ == "__main__":
    main()
