"""Measure what the documentation promises and write the figures into docs/benchmarks.md (`make bench`)."""

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

from bench.documents import write_block

ROOT = Path(__file__).resolve().parent.parent
DOCUMENT = ROOT / "docs" / "benchmarks.md"
PARTS = (
    "plan",
    "size",
    "rows",
    "grid",
    "decision",
    "dashboard",
    "load",
    "scale",
    "refresh",
    "crash",
    "faults",
)
RUNS = 7


def timed(command: list[str]) -> float:
    """Return the wall time of one whole process. [s]"""
    start = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, cwd=ROOT)
    return time.perf_counter() - start


def process_seconds(*arguments: str) -> dict[str, float]:
    """Return median and extremes of a warm `breakeven` process. [s]"""
    command = [sys.executable, "-m", "dashboard", *arguments]
    timed(command)
    seconds = sorted(timed(command) for _ in range(RUNS))
    return {"median_s": median(seconds), "min_s": seconds[0], "max_s": seconds[-1]}


def script(name: str) -> dict[str, object]:
    """Run one of the scripts beside this one; it prints a JSON document."""
    result = subprocess.run(
        [sys.executable, f"bench/{name}.py"], check=True, stdout=subprocess.PIPE, cwd=ROOT, text=True
    )
    document: dict[str, object] = json.loads(result.stdout)
    return document


def measure(part: str) -> dict[str, object]:
    """Run one part and return its figures."""
    if part == "plan":
        return dict(process_seconds("plan", "qwen3-coder-480b-a35b", "--json"))
    if part == "size":
        return dict(process_seconds("size", "qwen3-coder-480b-a35b", "--gpu", "H100 SXM", "--json"))
    return script(part)


def write(part: str, figures: dict[str, object]) -> None:
    """Replace the part's table in the document; what stands outside the markers is a person's."""
    stamp = f"{datetime.now(UTC):%Y-%m-%d}, {os.cpu_count()} cores, Python {platform.python_version()}"
    write_block(DOCUMENT, part, "\n".join([f"Measured {stamp}.", "", *rendered(figures)]))


def rendered(figures: dict[str, object]) -> list[str]:
    """Return the lines of the tables: one of all single figures, and one for each group of alike rows."""
    groups = {name: group for name, group in figures.items() if is_table(group)}
    lines: list[str] = []
    single = flat({name: value for name, value in figures.items() if name not in groups})
    if single:
        lines += ["| figure | value |", "| --- | ---: |"]
        lines += [f"| {name.replace('_', ' ')} | {value:,.3f} |" for name, value in single]
    for name, group in groups.items():
        columns = list(next(iter(group.values())))
        lines += ["", f"| {name} | {' | '.join(columns)} |", f"| --- |{' ---: |' * len(columns)}"]
        lines += [
            f"| {row} | {' | '.join(number(values[c]) for c in columns)} |" for row, values in group.items()
        ]
    return lines


def number(value: float) -> str:
    """Write a figure of a table: a count as it is, a share with two decimals."""
    return f"{value:,d}" if isinstance(value, int) else f"{value:,.2f}"


def is_table(group: object) -> bool:
    """Whether a group of figures is made of rows that all have the same columns of numbers."""
    rows = list(group.values()) if isinstance(group, dict) else []
    return len(rows) > 1 and all(
        isinstance(row, dict)
        and list(row) == list(rows[0])
        and not any(isinstance(v, dict) for v in row.values())
        for row in rows
    )


def flat(figures: dict[str, object], prefix: str = "") -> list[tuple[str, float]]:
    """Flatten nested figures to (name, number)."""
    rows: list[tuple[str, float]] = []
    for name, value in figures.items():
        if isinstance(value, dict):
            rows += flat(value, f"{prefix}{name} ")
        elif isinstance(value, int | float):
            rows.append((f"{prefix}{name}", float(value)))
    return rows


def main() -> int:
    """Measure the parts named, or all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}; default: all")
    chosen = parser.parse_args().parts or PARTS
    for part in chosen:
        if part not in PARTS:
            parser.error(f"no part {part!r}; there are {', '.join(PARTS)}")
        figures = measure(part)
        print(part, json.dumps(figures, indent=1))
        if figures:  # a part that lacks what it measures has said so
            write(part, figures)
    return 0


if __name__ == "__main__":
    sys.exit(main())
