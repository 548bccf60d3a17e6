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

ROOT = Path(__file__).resolve().parent.parent
DOCUMENT = ROOT / "docs" / "benchmarks.md"
PARTS = ("plan", "size", "grid", "dashboard", "scale", "refresh", "crash")
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
    begin, end = f"<!-- figures: {part} -->", f"<!-- end: {part} -->"
    rows = [f"| {name.replace('_', ' ')} | {value:,.3f} |" for name, value in flat(figures)]
    stamp = f"{datetime.now(UTC):%Y-%m-%d}, {os.cpu_count()} cores, Python {platform.python_version()}"
    block = "\n".join([begin, f"Measured {stamp}.", "", "| figure | value |", "| --- | ---: |", *rows, end])
    text = DOCUMENT.read_text(encoding="utf-8")
    if begin not in text:
        text += f"\n## {part}\n\n{begin}\n{end}\n"
    head, rest = text.split(begin, 1)
    DOCUMENT.write_text(head + block + rest.split(end, 1)[1], encoding="utf-8")


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
        write(part, figures)
    return 0


if __name__ == "__main__":
    sys.exit(main())
