"""
Build `pricing/data/history.csv.gz` from the collected observations of past days.

    python tools/build_history.py FOLDER [OUT]

FOLDER is the folder of collected facts: `prices/history_dev.csv`, `prices/snapshot_gpu_map.csv` and
`rental_price_history.csv` in it. Observations become intervals as runs would have left them: an unchanged
price goes on, a changed one opens the next, what a whole run no longer shows has ended. None stays open.
"""

import csv
import gzip
import io
import re
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import NamedTuple

COLUMNS = (
    "provider",
    "instance_type",
    "gpu",
    "gpu_raw",
    "gpu_count",
    "gpu_fraction",
    "memory_gb_per_gpu",
    "form",
    "region",
    "tier",
    "gpu_only",
    "reason",
    "source",
    "first_seen",
    "last_seen",
    "closed",
    "why",
    "times_seen",
    "usd_per_hour",
)
SERIES_COLUMNS = COLUMNS[:12]
PROVIDERS = {"vast.ai": "vastai"}
# A run with fewer rows than this share of the fullest lately is a part: what it lacks may still be there.
WHOLE_RUN_SHARE = 0.7
# Reports that name one provider and one price. Whole machines by what the provider sells under that name.
REPORTED = {
    "AWS p3.2xlarge": ("aws", "p3.2xlarge", 1),
    "AWS p4d.24xlarge": ("aws", "p4d.24xlarge", 8),
    "AWS p5.48xlarge": ("aws", "p5.48xlarge", 8),
    "Azure NC6s_v3": ("azure", "Standard_NC6s_v3", 1),
    "Crusoe": ("crusoe", "", 1),
    "DataCrunch (Verda)": ("verda", "", 1),
    "Google Cloud": ("gcp", "", 1),
    "Lambda": ("lambda", "", 1),
    "RunPod": ("runpod", "", 1),
    "TensorWave": ("tensorwave", "", 1),
    "Vultr": ("vultr", "", 1),
}
REPORTED_TIERS = {"on-demand": "on_demand", "spot": "spot"}

# Published prices that are errors of their source, by history.README.md: kept, never ranked.
DOUBTFUL = {
    ("azure", "Standard_ND96ams_A100_v4", "polandcentral", "7.692"): "46.86 before and 46.89 USD/h after it",
    ("runpod", "H200 x1", "", "0.5"): "3.59 USD/h before it and three weeks later",
    ("runpod", "H200 x2", "", "1"): "7.18 USD/h before it and three weeks later",
    ("runpod", "H200 x8", "", "4"): "28.72 USD/h before it and three weeks later",
}

Row = Mapping[str, str]
Series = tuple[str, ...]


class Interval(NamedTuple):
    """A price of a series, as long as it was seen."""

    source: str
    first_seen: date
    last_seen: date
    closed: date
    why: str
    times_seen: int
    usd_per_hour: str


def series_of(row: Row, gpu_map: Mapping[tuple[str, str, str], Row]) -> Series:
    """Return what a row of the table is a price of, in our form."""
    device = gpu_map[row["gpu_model"], number(row["memory_gb"]), row["form"]]
    count, fraction = float(row["gpu_count"]), ""
    if count < 1:
        count, fraction = 1.0, row["gpu_count"]
    gpu, provider = device["canonical"], PROVIDERS.get(row["provider"], row["provider"])
    note = "" if gpu else re.split(r"; |\. ", device["note"])[0]
    label = " ".join(part for part in (row["gpu_model"], f"{row['memory_gb']} GB", row["form"]) if part)
    reason = "" if gpu else f"ambiguous GPU name {label!r}: {note}"
    place = (row["memory_gb"], row["form"], row["region"], row["tier"])
    return (
        provider,
        row["instance_type"],
        gpu,
        row["gpu_model"],
        str(int(count)),
        fraction,
        *place,
        "",
        reason,
    )


def observed(folder: Path) -> Iterator[tuple[Series, list[Interval]]]:
    """Yield each series of the table with its intervals."""
    with (folder / "prices" / "snapshot_gpu_map.csv").open(encoding="utf-8", newline="") as file:
        gpu_map = {(r["gpu_model"], number(r["gpu_memory_gb"]), r["form"]): r for r in csv.DictReader(file)}
    runs: dict[tuple[str, str], dict[date, dict[Series, Row]]] = defaultdict(lambda: defaultdict(dict))
    with (folder / "prices" / "history_dev.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            collection = re.sub(r"@\w+", "", row["source"]), row["provider"]
            series = series_of(row, gpu_map)
            of_day = runs[collection][date.fromisoformat(row["observed_on"])]
            before = of_day.get(series)  # two spellings of one form: the lower price, as in the table
            if before is None or Decimal(row["usd_per_hour"]) < Decimal(before["usd_per_hour"]):
                of_day[series] = row
    for days in runs.values():
        yield from intervals_of(days).items()


def intervals_of(days: Mapping[date, Mapping[Series, Row]]) -> dict[Series, list[Interval]]:
    """Return what the runs of one provider leave, by series."""
    found: dict[Series, list[Interval]] = defaultdict(list)
    running: dict[Series, Interval] = {}
    fullest = 0.0
    for day, rows in sorted(days.items()):
        fullest = max(len(rows), fullest * 0.9)  # forgotten slowly: a provider may offer less for good
        for series, row in rows.items():
            usd, now = plain(row["usd_per_hour"]), running.get(series)
            if now is not None and now.usd_per_hour == usd:
                running[series] = now._replace(last_seen=day, times_seen=now.times_seen + 1)
                continue
            if now is not None:
                found[series].append(now._replace(closed=day, why="changed"))
            running[series] = Interval(f"github:{row['source']}", day, day, day, "", 1, usd)
        if len(rows) >= WHOLE_RUN_SHARE * fullest:
            for series in [series for series in running if series not in rows]:
                found[series].append(running.pop(series)._replace(closed=day, why="vanished"))
    end = max(days) + timedelta(days=1)
    for series, now in running.items():
        found[series].append(now._replace(closed=end, why="ended"))
    return found


def reported(folder: Path) -> Iterator[tuple[Series, list[Interval]]]:
    """Yield what reports say of one provider's price in a month; ranges and indexes are no offers."""
    found: dict[Series, list[tuple[Row, Interval]]] = defaultdict(list)
    with (folder / "rental_price_history.csv").open(encoding="utf-8", newline="") as file:
        rows = sorted(csv.DictReader(file), key=lambda row: row["date"])
    for row in rows:
        is_dated = re.fullmatch(r"\d{4}-\d{2}", row["date"])
        tier = REPORTED_TIERS.get(row["kind"])
        if not is_dated or tier is None or row["provider"] not in REPORTED:
            continue
        if row["price_low"] != row["price_high"]:
            continue
        provider, instance_type, count = REPORTED[row["provider"]]
        total = re.match(r"([\d.]+)/(\d+)\b", row["notes"])  # "98.32/8 = 12.29"
        usd = plain(total[1] if total else str(Decimal(row["price_low"]) * count))
        first = date.fromisoformat(f"{row['date']}-01")
        end = (first + timedelta(days=31)).replace(day=1)
        only = "1" if provider == "gcp" else ""  # sells CPU and memory apart
        name = instance_type or f"{row['gpu']} x1"
        series = (provider, name, row["gpu"], row["gpu"], str(count), "", "", "", "", tier, only, "")
        interval = Interval(row["source"], first, first, end, "ended", 1, usd)
        if found[series] and "until" in found[series][-1][0]["notes"]:
            earlier, before = found[series].pop()
            before = before._replace(last_seen=first - timedelta(days=1), closed=first, why="changed")
            found[series].append((earlier, before))
        found[series].append((row, interval))
    for series, pairs in found.items():
        yield series, [interval for _, interval in pairs]


def number(text: str) -> str:
    """Drop the decimals of a whole number: 80.0 -> 80."""
    return text[:-2] if text.endswith(".0") else text


def plain(text: str) -> str:
    """Write a price without needless zeros."""
    return f"{Decimal(text).normalize():f}"


def build(folder: Path) -> bytes:
    """Return all intervals as CSV; a row that starts with blanks goes on with the series above it."""
    out = io.StringIO(newline="")
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for series, intervals in sorted([*observed(folder), *reported(folder)]):
        head, blank = series, ("",) * len(SERIES_COLUMNS)
        for interval in sorted(intervals, key=lambda one: one.first_seen):
            doubt = DOUBTFUL.get((series[0], series[1], series[8], interval.usd_per_hour))
            if doubt:
                writer.writerow((*series[:-1], f"an error of its source: {doubt}", *interval))
                head = series
                continue
            writer.writerow((*head, *interval))
            head = blank
    return out.getvalue().encode()


def main() -> None:
    """Write the file; the same input gives the same bytes."""
    default = Path(__file__).resolve().parent.parent / "pricing" / "data" / "history.csv.gz"
    out = Path(sys.argv[2]) if len(sys.argv) > 2 else default
    out.write_bytes(gzip.compress(build(Path(sys.argv[1])), compresslevel=9, mtime=0))


if __name__ == "__main__":
    main()
