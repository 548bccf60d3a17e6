"""`evidence`: what was measured of a model, nearest to a configuration first."""

import argparse
from collections.abc import Mapping, Sequence
from typing import Any

from dashboard import tables
from dashboard.commands.arguments import count, workload_parent
from dashboard.commands.base import Commands, Context, Output, UsageError

SHOWN = 10
FIGURES = (
    ("decode_tokens_per_s", "decode"),
    ("aggregate_tokens_per_s", "all"),
    ("prefill_tokens_per_s", "prefill"),
    ("tpot_ms", "TPOT"),
    ("ttft_ms", "TTFT"),
)


def register(commands: Commands) -> None:
    """Add `evidence`."""
    parser = commands.add(
        "evidence",
        evidence,
        help="published measurements nearest to a configuration, with distance and source",
        example='breakeven evidence llama-3.1-8b-instruct --gpu "RTX 4090"',
        parents=[workload_parent()],
        more="Without --gpu, everything that was measured of the model or of one of its shape.",
    )
    parser.add_argument("model", metavar="MODEL", nargs="?", help="id or alias (`breakeven models`)")
    parser.add_argument("--limit", metavar="N", type=count, default=SHOWN, help=f"how many ({SHOWN})")


def evidence(arguments: argparse.Namespace, context: Context) -> Output:
    """List measurements, nearest first where a machine is named."""
    from dashboard.commands.inputs import asked
    from planner import evidence as measured

    if arguments.limit < 1:
        raise UsageError(f"--limit: {arguments.limit} is not allowed; give 1 or more")
    question = asked(arguments, context.environ)
    work = question.workload
    document: dict[str, Any] = {
        "schema": measured.EVIDENCE_SCHEMA,
        "model": {"id": work.model.id, "name": work.model.name},
    }
    if question.machine is None:
        runs = measured.of_model(work.model, own=work.own_results)
        rows: list[Mapping[str, object]] = [measured.run_document(run) for run in runs[: arguments.limit]]
        found = len(runs)
        document["asked"] = None
    else:
        near = measured.nearest(work, question.machine, arguments.limit)
        rows = [measured.to_document(one) for one in near]
        found = len(rows)
        document["asked"] = {
            "gpu": question.machine.gpu.name,
            "gpu_count": question.machine.gpu_count,
            "quant": work.quant.name,
            "engine": str(work.engine),
            "batch": work.batch,
            "context_tokens": work.context_tokens,
            "input_tokens": work.input_tokens,
            "output_tokens": work.output_tokens,
        }
    document["found"] = found
    document["results"] = rows
    return Output(document=document, text=lambda: _text(document), warnings=question.warnings)


def results_table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return measurements as a table: what, where, the figures with the estimate beside them, the source."""
    with_distance = bool(rows) and "distance" in rows[0]
    headers = (
        *(("distance",) if with_distance else ()),
        "model",
        "format",
        "machine",
        "engine",
        "batch",
        "tokens",
        "measured",
        "estimate",
        "date",
        "source",
    )
    cells = [
        (
            *((tables.number(row["distance"], 2),) if with_distance else ()),
            row["model"],
            row["quant_published"] or row["quant"],
            f"{row['gpu_count']}x {row['gpu']}",
            row["engine_published"],
            tables.number(row["batch"]) or "queued",
            _tokens(row),
            _figures(row["measured"]),
            tables.starred(_figures(row["estimated"]) or None),
            row["date"],
            tables.shortened(row["source"], 40),
        )
        for row in rows
    ]
    texts = (0, 1, 2, 3, 5, 6, 7, 8, 9)
    return tables.table(headers, cells, left=[place + with_distance for place in texts])


def differences_list(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return in what each measurement that is not of the very configuration differs from it."""
    return tables.bullets(
        f"{tables.number(row['distance'], 2)}: {'; '.join(row['differences'])}"
        for row in rows
        if row.get("differences")
    )


def _text(document: Mapping[str, Any]) -> str:
    rows = document["results"]
    name = document["model"]["name"]
    if not rows:
        return (
            f"Nothing was measured of {name} or of a model of its shape. "
            "Name a machine with --gpu for what is nearest to it."
        )
    title = f"Measured nearest to {name}" if document["asked"] else f"Measured: {name}"
    rest = document["found"] - len(rows)
    more = f"{tables.plural(rest, 'further measurement')}: raise --limit" if rest > 0 else ""
    legend = (
        "tokens: prompt + answer, @ what the cache held before; "
        "decode, all, prefill in tokens/s, TPOT and TTFT in ms"
    )
    same = "the very configuration was measured" if any(row.get("is_same") for row in rows) else ""
    return tables.paragraphs(
        f"{title}{f': {same}' if same else ''}",
        results_table(rows),
        differences_list(rows),
        more,
        f"{legend}; {tables.ESTIMATE_NOTE}",
    )


def _tokens(row: Mapping[str, Any]) -> str:
    lengths = f"{row['input_tokens'] or 0:,.0f} + {row['output_tokens'] or 0:,.0f}"
    return f"{lengths} @ {row['held_tokens']:,.0f}" if row["held_tokens"] else lengths


def _figures(values: Mapping[str, float]) -> str:
    return ", ".join(
        f"{title} {tables.tokens_per_s(values[name])}"
        for name, title in FIGURES
        if values.get(name) is not None
    )
