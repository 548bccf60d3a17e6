"""`calibrate`: own measurements that correct the estimates of their device and engine."""

import argparse
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dashboard import tables
from dashboard.commands.arguments import count
from dashboard.commands.base import NOTHING_DONE, Commands, Context, Output, UsageError

if TYPE_CHECKING:
    from planner.catalogues.results import Result


def register(commands: Commands) -> None:
    """Add `calibrate`."""
    parser = commands.add(
        "calibrate",
        calibrate,
        help="own measurements that correct the estimates of their device and engine",
        example="breakeven calibrate llama-bench.json",
        more="Files of `llama-bench -o json`, `jsonl` or `csv`, and of vLLM or SGLang `bench serve`. "
        "What a file does not name, the options say.",
    )
    parser.add_argument("files", metavar="FILE", nargs="*", help="results of a benchmark")
    parser.add_argument("--model", metavar="NAME", help="the model, where the file's name does not tell it")
    parser.add_argument("--quant", metavar="NAME", help="the weight format")
    parser.add_argument("--gpu", metavar="NAME", help="the device")
    parser.add_argument("--gpus", metavar="N", type=count, help="how many of them")
    parser.add_argument(
        "--engine", choices=("vllm", "sglang", "llama.cpp", "tensorrt-llm"), help="the serving engine"
    )
    parser.add_argument("--list", action="store_true", help="show what was taken in, and change nothing")
    parser.add_argument("--forget", action="store_true", help="forget all, or with --gpu that of one device")


def calibrate(arguments: argparse.Namespace, context: Context) -> Output:
    """Take in, show or forget own measurements."""
    from dashboard.files.ownresults import kept_results, results_file

    if arguments.list or arguments.forget:
        if arguments.files or (arguments.list and arguments.forget):
            raise UsageError("--list, --forget: one of them, and no FILE with it")
    elif not arguments.files:
        raise UsageError("give a FILE of a benchmark, --list or --forget (see `breakeven calibrate -h`)")
    file = results_file(context.environ)
    kept = kept_results(context.environ)
    if arguments.list:
        return _shown(kept, str(file), [])
    if arguments.forget:
        return _forgotten(kept, arguments.gpu, str(file))
    return _taken_in(arguments, kept, str(file))


def _taken_in(arguments: argparse.Namespace, kept: "tuple[Result, ...]", file: str) -> Output:
    from dashboard.commands.files import read_text
    from dashboard.files.ownresults import merged
    from planner.errors import InvalidScenario
    from planner.measurements.benchmarks import Setup, read_benchmark

    setup = Setup(
        model=arguments.model,
        quant=arguments.quant,
        engine=arguments.engine,
        gpu=arguments.gpu,
        gpus=arguments.gpus,
    )
    new: list[Result] = []
    remarks: list[str] = []
    for name in arguments.files:
        try:
            reading = read_benchmark(read_text(name, "FILE"), Path(name).name, setup)
        except InvalidScenario as error:
            if error.field != "file":
                raise
            raise UsageError(f"{name}: {error.value!r} is not allowed; give {error.allowed}") from error
        new += reading.results
        remarks += [f"{name}: {remark}" for remark in reading.remarks]
    good, doubts = _plausible(merged((), new))
    remarks += [*doubts, *_repeated(kept, new)]
    if good:
        _write(file, merged(kept, good))
    return _shown(good, file, remarks, is_taking=True)


def _repeated(kept: "Sequence[Result]", new: "Sequence[Result]") -> list[str]:
    """Say which content was taken in before, or comes twice, under another name: it counts once."""
    first: dict[str, str] = {}
    said: dict[str, int] = {}
    for result in (*kept, *new):
        before = first.setdefault(result.source_ref or result.source, result.source)
        if before != result.source:
            said[f"{result.source} has the content of {before}: it counts once"] = 0
    return list(said)


def _plausible(results: "Sequence[Result]") -> "tuple[list[Result], list[str]]":
    """Return the measurements that may be what they claim, and what speaks against the others."""
    from planner.measurements.corrections import MOST_OFF, residuals_of

    good, doubts = [], []
    for result in results:
        (off,) = residuals_of([result])
        if math.isnan(off):
            doubts.append(f"not taken: the rates of {result.gpu} are not known, so nothing can be estimated")
        elif (beyond := _beyond(result)) is not None:
            doubts.append(f"not taken: {_what(result)} {result.value:,.4g} {result.unit} is beyond {beyond}")
        elif abs(off) > math.log(MOST_OFF):
            doubts.append(
                f"not taken: {_what(result)} {result.value:,.4g} {result.unit} is {math.exp(off):.3g} times "
                "the estimated speed; is it the model, format and machine that were named?"
            )
        else:
            good.append(result)
    return good, doubts


def _beyond(result: "Result") -> str | None:
    """Return what a decode speed has to be where it is beyond the bandwidth of its machine, else None."""
    from planner.errors import InvalidScenario
    from planner.measurements.runs import runs_of
    from planner.serving.ceiling import check_possible

    speed = {"decode_tps": result.value, "tpot_ms": 1e3 / result.value}.get(result.metric)
    if speed is None:
        return None
    (run,) = runs_of([result])
    is_server = result.metric == "tpot_ms"  # which may draft
    try:
        check_possible(speed, run.workload, run.machine, field="file", may_draft=is_server)
    except InvalidScenario as error:
        return error.allowed
    return None


def _forgotten(kept: "tuple[Result, ...]", gpu: str | None, file: str) -> Output:
    from planner.catalogues.gpus import find_gpu

    name = None if gpu is None else find_gpu(gpu).gpu.name
    left = [result for result in kept if name is not None and result.gpu != name]
    gone = len(kept) - len(left)
    if gone:
        _write(file, left)
    return Output(
        document={"schema": "breakeven.calibrate/1", "file": file, "forgotten": gone, "kept": len(left)},
        text=f"{tables.plural(gone, 'own measurement')} forgotten, {len(left)} kept",
    )


def _shown(
    results: "Sequence[Result]", file: str, remarks: Sequence[str], *, is_taking: bool = False
) -> Output:
    """Return measurements beside their estimates."""
    rows = _rows(results)
    document: dict[str, Any] = {"schema": "breakeven.calibrate/1", "file": file, "measurements": rows}
    return Output(
        document=document,
        text=lambda: _text(rows, file) if rows or not is_taking else "Nothing was taken in.",
        warnings=tuple(remarks),
        exit_code=NOTHING_DONE if is_taking and not results else 0,
    )


def _rows(results: "Sequence[Result]") -> list[dict[str, Any]]:
    from planner.measurements.corrections import QUANTITY, residuals_of
    from planner.measurements.replay import TIMES

    rows = []
    for result in results:
        (off,) = residuals_of([result])
        is_time = result.metric in TIMES
        rows.append(
            {
                "model": result.model,
                "quant": result.quant,
                "gpu": result.gpu,
                "gpu_count": result.gpu_count,
                "engine": result.engine,
                "batch": result.concurrency,
                "input_tokens": result.input_tokens,
                "output_tokens": result.output_tokens,
                "held_tokens": result.context_tokens,
                "metric": result.metric,
                "unit": result.unit,
                "measured": result.value,
                "estimated": result.value * math.exp(off if is_time else -off),
                "speed_ratio": math.exp(off),
                "corrects": QUANTITY.get(result.metric),
                "date": result.date or None,
                "source": result.source,
            }
        )
    return rows


def _text(rows: Sequence[dict[str, Any]], file: str) -> str:
    if not rows:
        return "There are no own measurements. `breakeven calibrate FILE` takes in those of a benchmark."
    cells = [
        (
            row["model"],
            row["quant"],
            f"{row['gpu_count']}x {row['gpu']}",
            row["engine"],
            row["batch"],
            f"{row['input_tokens'] or 0:,.0f} + {row['output_tokens'] or 0:,.0f}",
            row["metric"],
            tables.tokens_per_s(row["measured"]),
            tables.starred(tables.tokens_per_s(row["estimated"])),
            f"{row['speed_ratio']:.2f}",
        )
        for row in rows
    ]
    headers = (
        "model",
        "format",
        "machine",
        "engine",
        "batch",
        "tokens",
        "figure",
        "measured",
        "estimate",
        "speed ratio",
    )
    return tables.paragraphs(
        tables.table(headers, cells, left=(0, 1, 2, 3, 5, 6)),
        f"Kept in {file}. `size`, `matrix`, `plan` and `launch` correct their estimates of these devices and "
        "engines, most where model and format are the same; `size` says by how much.",
        f"{tables.ESTIMATE_NOTE}, before any correction.",
    )


def _what(result: "Result") -> str:
    return f"{result.model} {result.quant} on {result.gpu_count}x {result.gpu}, {result.metric}"


def _write(file: str, results: "Sequence[Result]") -> None:
    from dashboard.commands.files import write_file
    from dashboard.files.ownresults import document_of

    Path(file).parent.mkdir(parents=True, exist_ok=True)
    write_file(file, (json.dumps(document_of(results), indent=1) + "\n").encode(), "calibrate")
