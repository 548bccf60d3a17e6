"""Published measurements of speed and memory, as their sources state them: `planner/data/results.csv.gz`."""

import csv
import gzip
import io
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache
from importlib.resources import files


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """
    One published measurement; texts are empty and numbers None where the source does not say.

    `model`, `quant`, `engine` and `gpu` are the names of the catalogues, empty where they know no such thing;
    the fields that end in `_name` are as published.
    """

    row_id: str
    source: str
    source_ref: str  # path, record or address inside that source
    date: str  # of the measurement, else of its publication; may be a year or a month
    model: str
    model_name: str
    quant: str
    quant_name: str
    is_nearest_quant: bool  # no format of the catalogue; `quant` is the one whose blocks are nearest
    kv_dtype: str
    engine: str  # the kind that its formulas belong to
    engine_name: str
    engine_version: str
    gpu: str
    gpu_name: str
    gpu_count: int | None
    tp: int | None
    pp: int | None
    ep: int | None
    dp: int | None  # attention data parallelism
    concurrency: int | None  # requests in flight; None: all were queued at once
    requests: int | None  # of the whole run
    input_tokens: float | None  # of one request, means
    output_tokens: float | None
    context_tokens: (
        float | None
    )  # in the cache before the measured phase; of memory rows the allocated context
    ubatch: int | None  # llama.cpp's micro-batch, where it is not the default
    weights_bytes: float | None  # of the file, where published
    offload: str  # what lies in host memory: "experts" or "layers"
    offload_fraction: float | None  # the share of it that does
    host_gb_per_s: float | None  # peak of the host memory
    metric: str
    value: float
    unit: str
    kind: str
    notes: str


# Columns of the file.
COLUMNS = tuple(field.name for field in fields(Result))
_WHOLE = frozenset(("gpu_count", "tp", "pp", "ep", "dp", "concurrency", "requests", "ubatch"))
_REAL = frozenset(
    ("input_tokens", "output_tokens", "context_tokens", "weights_bytes", "offload_fraction", "host_gb_per_s")
)


def stated(values: Mapping[str, object]) -> Result:
    """Return a measurement of which only these fields are known."""
    nothing: dict[str, object] = {name: None if name in (*_WHOLE, *_REAL) else "" for name in COLUMNS}
    return Result(**{**nothing, "is_nearest_quant": False, **values})  # type: ignore[arg-type]


@cache
def all_results() -> tuple[Result, ...]:
    """Return all measurements, in the order of the file: speed first, then memory."""
    packed = files("planner").joinpath("data", "results.csv.gz").read_bytes()
    rows = csv.DictReader(io.StringIO(gzip.decompress(packed).decode("utf-8")))
    return tuple(_result(row) for row in rows)


def _result(row: dict[str, str]) -> Result:
    values: dict[str, object] = dict(row)
    for name in _WHOLE:
        values[name] = int(float(row[name])) if row[name] else None
    for name in _REAL:
        values[name] = float(row[name]) if row[name] else None
    values["value"] = float(row["value"])
    values["is_nearest_quant"] = row["is_nearest_quant"] == "1"
    return Result(**values)  # type: ignore[arg-type]
