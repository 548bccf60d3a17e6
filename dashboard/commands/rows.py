"""`size --rows`: a CSV file of configurations in, the same file with their sizes out."""

import argparse
import csv
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from dashboard import tables
from dashboard.commands.arguments import WORKLOAD_OPTIONS
from dashboard.commands.base import (
    DONE,
    DONE_IN_PART,
    NOTHING_DONE,
    Context,
    Output,
    UsageError,
    suggestion,
)
from dashboard.commands.files import write_file
from dashboard.commands.inputs import Found, model_named, stated_in
from dashboard.files.modelfiles import Stated, is_file_name
from dashboard.files.ownresults import kept_results
from planner.catalogues.gpus import find_gpu
from planner.catalogues.quants import QuantFormat, find_quant
from planner.catalogues.results import Result
from planner.errors import PlannerError
from planner.scenario import DEFAULT_QUANT, Scenario
from planner.serving.rows import MEMORY_COLUMNS, SPEED_COLUMNS, Rows, size_rows
from planner.workload import Engine, KvDtype, Method, engine_for
from pricing.errors import PricingError

OPTIONS = (
    "model",
    "gpu",
    "gpus",
    "quant",
    "context",
    "batch",
    "kv_dtype",
    "engine",
    "offload",
    "input_tokens",
    "output_tokens",
)
RESULTS = (*MEMORY_COLUMNS, *SPEED_COLUMNS, "error")
NUMBERS = ("gpus", "context", "batch", "input_tokens", "output_tokens", "offload")
_FIELDS = {option.name: option for option in fields(Scenario)}

Cell = tuple[Any, str | None]  # a value, or why there is none


@dataclass(frozen=True, slots=True)
class Table:
    """A file as read."""

    header: list[str]
    rows: list[list[str]]

    def column(self, name: str) -> list[str] | None:
        """Return the cells of a column, or None where there is no such column."""
        if name not in self.header:
            return None
        position = self.header.index(name)
        return [row[position].strip() if position < len(row) else "" for row in self.rows]


def run(arguments: argparse.Namespace, context: Context) -> Output:
    """Size every row of the file and write all of them."""
    if arguments.output is None:
        raise UsageError("--rows: say where the sized rows go: -o OUT.csv")
    if _is_same_file(arguments.rows, arguments.output):
        raise UsageError(f"-o: {arguments.output} is the file that --rows reads; name another")
    other = [
        name for name in WORKLOAD_OPTIONS if name not in (*OPTIONS, "method") and hasattr(arguments, name)
    ]
    if other:
        raise UsageError(f"--{other[0].replace('_', '-')}: not taken with --rows")
    table = _read(arguments.rows)
    warnings = _odd_columns(table)
    columns = {name: _cells(table, name, arguments, warnings) for name in OPTIONS}
    method = Method(getattr(arguments, "method", Method.CALIBRATED))
    results = _sized(columns, len(table.rows), method, kept_results(context.environ))
    _mark_long_rows(table, results)
    _write(arguments.output, table, results)
    bad = sum(1 for error in results["error"] if error)
    done = f"{tables.plural(len(table.rows), 'row')} sized into {arguments.output}"
    if bad:
        warnings.append(f"{tables.plural(bad, 'row')} could not be sized; the column error says why")
        done = f"{len(table.rows) - bad} of {done}; {bad} failed: the column error says why"
    document = {
        "schema": "breakeven.rows/1",
        "rows": len(table.rows),
        "errors": bad,
        "file": arguments.output,
    }
    is_nothing_sized = 0 < bad == len(table.rows)
    code = NOTHING_DONE if is_nothing_sized else DONE_IN_PART if bad else DONE
    return Output(document=document, text=done, warnings=tuple(warnings), exit_code=code)


def _is_same_file(one: str, other: str) -> bool:
    try:
        return Path(one).samefile(other) and Path(one).is_file()
    except (OSError, ValueError):  # not there, or a name that cannot be
        return False


def _read(name: str) -> Table:
    try:
        with Path(name).open(encoding="utf-8-sig", newline="") as file:
            rows = [row for row in csv.reader(file) if any(cell.strip() for cell in row)]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        why = {OSError: "", UnicodeDecodeError: "not UTF-8 text", csv.Error: f"not CSV ({error})"}
        reason = error.strerror if isinstance(error, OSError) else why[type(error)]
        raise UsageError(f"--rows: {name}: {reason}") from error
    if not rows:
        raise UsageError(f"--rows: {name}: the file is empty; give a header with the columns model and gpu")
    header = [cell.strip() for cell in rows[0]]
    if len(header) == 1 and ";" in header[0]:
        raise UsageError(f"--rows: {name}: cells are apart by semicolons; separate them by commas")
    twice = next((title for title in OPTIONS if header.count(title) > 1), None)
    if twice is not None:
        raise UsageError(f"--rows: {name}: the column {twice!r} stands there twice; keep one")
    return Table(header, rows[1:])


def _odd_columns(table: Table) -> list[str]:
    """Say which columns are repeated and not understood."""
    known = {*OPTIONS, *RESULTS}
    return [
        f"column {name!r} is an option that --rows does not take: it is only repeated"
        if name in WORKLOAD_OPTIONS
        else f"column {name!r} is no option and is only repeated{suggestion(name, OPTIONS)}"
        for name in table.header
        if name not in known
    ]


def _cells(table: Table, name: str, arguments: argparse.Namespace, warnings: list[str]) -> list[Cell]:
    """Return the values of a column; a blank cell takes the option of the command line, or its default."""
    given = getattr(arguments, name, None)
    texts = table.column(name)
    if texts is None and given is None and name in ("model", "gpu"):
        raise UsageError(
            f"--rows: {arguments.rows}: there is no column {name!r}, and no such option is given"
        )
    reader = _reader(name, given, stated_in(vars(arguments)), warnings)
    if texts is None:
        return [_checked(reader, "")] * len(table.rows)
    known = {text: _checked(reader, text) for text in set(texts)}
    return [known[text] for text in texts]


def _reader(name: str, given: Any, stated: Stated, warnings: list[str]) -> Callable[[str], Any]:
    """Return the function that reads a cell of this column."""
    parse = _FIELDS[name].metadata["parse"]
    default = {"gpus": 1}.get(name, _FIELDS[name].default) if given is None else given

    def read(text: str) -> Any:
        if not text and default in (None, MISSING):
            raise UsageError(f"{name}: the cell is blank, and no such option is given")
        value = parse(name, text or default)
        if name == "model":
            return model_named(value, stated if is_file_name(value) else None)
        if name == "gpu":
            match = find_gpu(value)
            remark = match.remark(value)
            if remark is not None:
                warnings.append(f"gpu {remark}")
            return match.gpu
        return value

    if name == "quant" and given is None:  # the model's name may imply one
        return lambda text: find_quant(text) if text else None
    return (lambda text: find_quant(text or default)) if name == "quant" else read


def _checked(read: Callable[[str], Any], text: str) -> Cell:
    try:
        return read(text), None
    except (PlannerError, PricingError, UsageError) as error:
        return None, str(error)


def _sized(
    columns: Mapping[str, Sequence[Cell]], count: int, method: Method, own_results: tuple[Result, ...]
) -> dict[str, list[Any]]:
    """Return the result columns; rows of one engine are sized together."""
    values = {name: [value for value, _ in cells] for name, cells in columns.items()}
    errors = _first_errors(columns, count)
    quants = [
        None if error is not None else _quant(match, quant)
        for match, quant, error in zip(values["model"], values["quant"], errors, strict=True)
    ]
    groups: dict[Engine, list[int]] = {}
    for position, (name, quant) in enumerate(zip(values["engine"], quants, strict=True)):
        if quant is not None:
            engine = _engine(name, values["model"][position], quant)
            groups.setdefault(engine, []).append(position)
    numbers = {name: np.array([value or 0 for value in values[name]], dtype=np.float64) for name in NUMBERS}
    results = {name: np.full(count, None, dtype=object) for name in RESULTS}
    for engine, positions in groups.items():
        index = np.array(positions)
        rows = Rows(
            engine=engine,
            method=method,
            models=[values["model"][position].model for position in positions],
            quants=[quant for quant in (quants[position] for position in positions) if quant is not None],
            kv_dtypes=[KvDtype(values["kv_dtype"][position]) for position in positions],
            gpus=[values["gpu"][position] for position in positions],
            gpu_count=numbers["gpus"][index],
            context_tokens=numbers["context"][index],
            batch=numbers["batch"][index],
            input_tokens=numbers["input_tokens"][index],
            output_tokens=numbers["output_tokens"][index],
            offload_fraction=numbers["offload"][index],
            own_results=own_results,
        )
        _enter(size_rows(rows), index, results)
    found = {name: column.tolist() for name, column in results.items()}
    found["error"] = errors
    return found


def _first_errors(columns: Mapping[str, Sequence[Cell]], count: int) -> list[str | None]:
    """Return for each row why its first bad cell cannot be used, None where all can."""
    errors: list[str | None] = [None] * count
    for cells in columns.values():
        different = {id(cell): cell for cell in cells}
        if all(why is None for _, why in different.values()):
            continue
        for position, (_, why) in enumerate(cells):
            if why is not None and errors[position] is None:
                errors[position] = why
    return errors


def _engine(name: str, found: Found, quant: QuantFormat) -> Engine:
    """Return the engine of the cell; a GGUF file is served by llama.cpp unless another is named."""
    return Engine.LLAMA_CPP if name == "auto" and found.is_gguf else engine_for(name, quant)


def _quant(match: Found, quant: QuantFormat | None) -> QuantFormat:
    """Return the format of the cell, or the one that the model's name implies, or the default."""
    return find_quant(match.quant or DEFAULT_QUANT) if quant is None else quant


def _enter(sized: Mapping[str, Any], index: Any, results: Mapping[str, Any]) -> None:
    """Put the figures of some rows into their places; NaN is unknown, and unknown is an empty cell."""
    for name, column in sized.items():
        known = column == column
        results[name][index[known]] = column[known].astype(object)
    results["fits"][index] = np.where(sized["fits"] == 1.0, "true", "false").astype(object)


def _mark_long_rows(table: Table, results: Mapping[str, list[Any]]) -> None:
    """A row with more cells than the header cannot be trusted: some comma stands where none should."""
    for position, row in enumerate(table.rows):
        if len(row) > len(table.header):
            for column in results.values():
                column[position] = None
            more = ", ".join(repr(cell) for cell in row[len(table.header) :] if cell.strip())
            extra = f"; those without one: {more}" if more else ""
            results["error"][position] = f"{len(row)} cells under {len(table.header)} headings{extra}"


def _write(name: str, table: Table, results: Mapping[str, Sequence[Any]]) -> None:
    """Write the rows as they came, each followed by its results."""
    kept = [position for position, title in enumerate(table.header) if title not in RESULTS]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*(table.header[position] for position in kept), *RESULTS])
    writer.writerows(_lines(table, kept, results))
    write_file(name, text.getvalue().encode(), "--output")


def _lines(
    table: Table, kept: Sequence[int], results: Mapping[str, Sequence[Any]]
) -> Iterable[Sequence[Any]]:
    for row, *sized in zip(table.rows, *(results[name] for name in RESULTS), strict=True):
        cells = row + [""] * (len(table.header) - len(row))
        yield [*(cells[position] for position in kept), *sized]
