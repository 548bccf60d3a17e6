"""
A plan as a file: CSV, Excel, Parquet, JSON, Markdown, HTML, or FOCUS cost rows.

The same plan gives the same bytes, whoever asks and whenever: the time on top is that of the newest price
used, and ages count from it.
"""

import csv
import io
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

from planner.answers.explain import is_estimate
from planner.compare import Plan
from planner.errors import InvalidScenario
from planner.exports.documents import ESTIMATE_NOTE, markdown, page
from planner.exports.focus import FOCUS_COLUMNS, focus_rows
from planner.exports.table import Column, Table, parquet_bytes, xlsx_bytes
from planner.supply.options import Option

LICENCE_NOTE = (
    "made with breakeven (Apache-2.0); prices and measurements belong to their sources, named with each "
    "(see NOTICE); prices are without VAT and without warranty"
)

# A spreadsheet takes a text that starts so for a formula.
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")
_FORMULA_AFTER_COMMA = re.compile(r"([,;])(?=[=+@-])")

OPTION_COLUMNS: tuple[Column, ...] = (
    Column("rank", int),
    Column("kind", str),
    Column("name", str),
    Column("provider", str),
    Column("instance_type", str),
    Column("region", str),
    Column("tier", str),
    Column("billing", str),
    Column("gpu", str),
    Column("gpu_count", int),
    Column("vram_per_gpu_gb", float),
    Column("vram_total_gb", float),
    Column("replicas", int),
    Column("fits", bool),
    Column("usd_per_hour", float),
    Column("usd_per_gpu_hour", float),
    Column("usd_per_month", float),
    Column("usd_per_month_over_term", float),
    Column("estimate", str),
    Column("usd_per_million_tokens", float),
    Column("usd_per_million_input_tokens", float),
    Column("usd_per_million_output_tokens", float),
    Column("tokens_per_month", float),
    Column("decode_tokens_per_s", float),
    Column("aggregate_tokens_per_s", float),
    Column("speed_low", float),
    Column("speed_high", float),
    Column("ttft_ms", float),
    Column("tpot_ms", float),
    Column("speed_source", str),
    Column("too_slow", bool),
    Column("passed_over", str),
    Column("purchase_usd", float),
    Column("purchase_source", str),
    Column("power_w", float),
    Column("energy_usd_per_month", float),
    Column("kwh_per_million_tokens", float),
    Column("g_co2_per_million_tokens", float),
    Column("break_even_months", float),
    Column("break_even_hours_per_day", float),
    Column("break_even_against", str),
    Column("price_seen_at", str),
    Column("price_status", str),
    Column("price_witnesses", int),
    Column("price_source", str),
    Column("deploy_url", str),
    Column("notes", str),
)


def export_plan(
    plan: Plan, target: str | Path, *, as_format: str | None = None, permalink: str | None = None
) -> bytes:
    """
    Return a plan as the bytes of a file.

    Args:
        plan: The plan.
        target: Name of a file, whose ending says the format, or the name of a format.
        as_format: The format, whatever the ending.
        permalink: Address of the plan; that of a dashboard's start page where None.

    Raises:
        InvalidScenario: if no format is called so.
    """
    return FORMATS[format_of(target, as_format)](plan, permalink)


def format_of(target: str | Path, as_format: str | None = None) -> str:
    """
    Return the key in `FORMATS` that a file's ending, or the name of a format, stands for.

    Raises:
        InvalidScenario: if no format is called so.
    """
    name = (as_format or Path(target).suffix.removeprefix(".") or str(target)).lower()
    name = {"markdown": "md", "htm": "html"}.get(name, name)
    if name not in FORMATS:
        if as_format:
            raise InvalidScenario("as", as_format, "one of " + ", ".join(FORMATS))
        raise InvalidScenario("output", str(target), "a name that ends in ." + ", .".join(FORMATS))
    return name


def relative_permalink(plan: Plan) -> str:
    """Return the address of a plan on any dashboard's start page."""
    return f"/?{urlencode(plan.scenario.to_query())}"


def newest_price(plan: Plan) -> datetime | None:
    """Return the time of the newest price used; the start of it where only a month or a year is known."""
    times = [
        time
        for option in plan.options
        if option.price.seen_at and (time := start_of(option.price.seen_at)) is not None
    ]
    return max(times, default=None)


def start_of(text: str) -> datetime | None:
    """Return the start of a time, day, month, quarter or year; None where it is none of these."""
    quarter = re.fullmatch(r"(\d{4})-(?:Q([1-4])|H([12]))", text)
    if quarter:
        month = (int(quarter[2]) - 1) * 3 + 1 if quarter[2] else (int(quarter[3]) - 1) * 6 + 1
        return datetime(int(quarter[1]), month, 1, tzinfo=UTC)
    padded = f"{text}-01-01"[:10] if len(text) == 4 else f"{text}-01" if len(text) == 7 else text
    try:
        time = datetime.fromisoformat(padded)
    except ValueError:
        return None
    return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)


def preamble(plan: Plan, permalink: str | None) -> list[tuple[str, str]]:
    """Return what stands on top of every export: name and text of each line."""
    time = newest_price(plan)
    scenario = "; ".join(f"{name}={_shown(value)}" for name, value in plan.scenario.changed().items())
    sources = dict.fromkeys(_source_name(option) for option in plan.options)
    lines = [
        ("verdict", plan.verdict),
        *(("proof", line) for line in plan.proof),
        ("permalink", permalink or relative_permalink(plan)),
        ("newest price used", time.strftime("%Y-%m-%dT%H:%M:%SZ") if time else "none"),
        ("model", f"{plan.model.name} ({plan.model.id}), {plan.quant.name}"),
        ("scenario", scenario),
        ("estimates", ESTIMATE_NOTE),
        ("sources", ", ".join(name for name in sources if name) or "none"),
        ("version", version_text()),
        ("licence", LICENCE_NOTE),
    ]
    return [*lines, *(("note", note) for note in plan.notes)]


def option_table(plan: Plan) -> Table:
    """
    Return the ranked options.

    Returns:
        Table (n_options, 47), one row per option, cheapest first, columns OPTION_COLUMNS; one column more
        with the monthly cost in the display currency where that is not the dollar.
    """
    ranked = enumerate(zip(plan.options, plan.passed_over(), strict=True), start=1)
    columns, rows = OPTION_COLUMNS, [_row(rank, option, why_not) for rank, (option, why_not) in ranked]
    if plan.money.currency != "USD":
        name = f"{plan.money.currency.lower()}_per_month"
        columns = (*columns, Column(name, float))
        for row, option in zip(rows, plan.options, strict=True):
            month = option.usd_per_month
            row[name] = None if month is None else plan.money.amount(month)
    return Table(columns=columns, rows=tuple(tuple(row[column.name] for column in columns) for row in rows))


def to_csv(plan: Plan, permalink: str | None = None) -> bytes:
    """Return the options as CSV; the lines on top start with `#`."""
    table = option_table(plan)
    lines = [f"# {name}: {text}" for name, text in preamble(plan, permalink)]
    lines += [f"# left out: {entry.what}: {entry.why}" for entry in plan.excluded]
    return csv_bytes(lines, table.names, table.rows)


def to_focus(plan: Plan, permalink: str | None = None) -> bytes:
    """Return the charges of one month of every option in the columns of FOCUS, as CSV."""
    rows = focus_rows(plan, newest_price(plan))
    tagged = [
        {**row, "Tags": json.dumps({**row["Tags"], "x_permalink": permalink or relative_permalink(plan)})}
        for row in rows
    ]
    return csv_bytes([], FOCUS_COLUMNS, [tuple(row.get(name) for name in FOCUS_COLUMNS) for row in tagged])


def to_xlsx(plan: Plan, permalink: str | None = None) -> bytes:
    """Return the options, the cash of every month of the term and what was left out as a workbook."""
    left_out = Table(
        columns=(Column("what", str), Column("why", str)),
        rows=tuple((entry.what, entry.why) for entry in plan.excluded),
    )
    cash = plan.cash_flow()
    ways = (("rent", cash.rent_name), ("own", cash.own_name), ("api", cash.api_name))
    named = [(way, name or "none") for way, name in ways]
    sheets = {
        "Options": (preamble(plan, permalink), option_table(plan)),
        "Cash": (named, cash.to_table()),
        "Left out": ([], left_out),
    }
    return xlsx_bytes(sheets, newest_price(plan) or datetime(2000, 1, 1, tzinfo=UTC))


def to_parquet(plan: Plan, permalink: str | None = None) -> bytes:
    """Return the options as Parquet; the lines on top are in the metadata of the file, under `breakeven`."""
    lines = [{"name": name, "text": text} for name, text in preamble(plan, permalink)]
    lines += [{"name": "left out", "text": f"{entry.what}: {entry.why}"} for entry in plan.excluded]
    return parquet_bytes(option_table(plan), {"breakeven": json.dumps(lines)})


def to_json(plan: Plan, permalink: str | None = None) -> bytes:
    """Return the plan's document, with what stands on top of the other formats under `export`."""
    document: dict[str, Any] = plan.to_document()
    newest = newest_price(plan)
    for option in document["options"]:
        price = option["price"]
        seen = start_of(price["seen_at"]) if price["seen_at"] and price["age_hours"] is not None else None
        # Ages count from the newest price used: the same plan gives the same bytes an hour later.
        price["age_hours"] = (newest - seen).total_seconds() / 3600.0 if newest and seen else None
    document["export"] = {
        "permalink": permalink or relative_permalink(plan),
        "newest_price_used": newest.strftime("%Y-%m-%dT%H:%M:%SZ") if newest else None,
        "version": version_text(),
        "licence": LICENCE_NOTE,
    }
    return (json.dumps(document, indent=1, ensure_ascii=False) + "\n").encode()


def to_markdown(plan: Plan, permalink: str | None = None) -> bytes:
    """Return the plan as Markdown: verdict, table, what was left out."""
    return markdown(plan, preamble(plan, permalink)[1:])


def to_html(plan: Plan, permalink: str | None = None) -> bytes:
    """Return the plan as one HTML page that needs nothing else."""
    return page(plan, preamble(plan, permalink)[1:])


# Name of each format, which is the ending of its file except for `focus`, and what writes it.
FORMATS: Mapping[str, Callable[[Plan, str | None], bytes]] = {
    "csv": to_csv,
    "xlsx": to_xlsx,
    "parquet": to_parquet,
    "json": to_json,
    "md": to_markdown,
    "html": to_html,
    "focus": to_focus,
}


def _row(rank: int, option: Option, passed_over: str | None) -> dict[str, Any]:
    """Return one option's cells by column name."""
    document: dict[str, Any] = option.to_document()
    count, total = option.gpu_count, option.vram_total_gb
    cells = {
        **document,
        "rank": rank,
        "vram_per_gpu_gb": None if count is None or total is None else total / count,
        "usd_per_hour": _float(option.usd_per_hour),
        "usd_per_gpu_hour": _float(option.usd_per_gpu_hour),
        "estimate": "*" if is_estimate(option) else None,
        "too_slow": option.is_too_slow,
        "passed_over": passed_over,
        "price_seen_at": option.price.seen_at,
        "price_status": str(option.price.status),
        "price_witnesses": option.price.witnesses,
        "price_source": option.price.source_url,
        "notes": "; ".join(option.notes) or None,
    }
    return {column.name: cells[column.name] for column in OPTION_COLUMNS}


def csv_bytes(lines: Iterable[str], header: Sequence[str], rows: Iterable[Sequence[object]]) -> bytes:
    """Return lines on top, a header and rows as CSV."""
    text = io.StringIO()
    for line in lines:  # not quoted, so that readers which skip lines starting with `#` do skip them
        plain = " ".join(line.split()).replace('"', "'")
        text.write(_FORMULA_AFTER_COMMA.sub(r"\1 ", plain) + "\n")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    for row in rows:
        writer.writerow([_safe(cell) for cell in row])
    return text.getvalue().encode()


def _safe(cell: object) -> object:
    """Return a cell that no spreadsheet takes for a formula: such a text gets an apostrophe in front."""
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if isinstance(cell, str) and cell.startswith(_FORMULA_STARTS):
        return f"'{cell}"
    return cell


def _source_name(option: Option) -> str:
    """Name the source of an option's price."""
    url = option.price.source_url or ""
    host = urlsplit(url).netloc if url.startswith("http") else url.split("@")[0]
    who = option.provider_title or option.provider or ""
    return f"{who} ({host})" if who and host else who or host


def _shown(value: Any) -> str:
    """Write an option's value in one line."""
    if isinstance(value, tuple):
        return ",".join(
            "=".join(str(part) for part in item) if isinstance(item, tuple) else str(item) for item in value
        )
    return str(value)


def _float(text: str | None) -> float | None:
    return None if text is None else float(text)


def version_text() -> str:
    """Name the program and its version."""
    try:
        return f"breakeven {version('breakeven')}"
    except PackageNotFoundError:
        return "breakeven"
