"""The user's own measurements: a file beside the database, or in the user's data folder."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from functools import lru_cache
from pathlib import Path
from typing import Any

from planner.catalogues.gpus import find_gpu
from planner.catalogues.models import find_model
from planner.catalogues.quants import find_quant
from planner.catalogues.results import Result, stated
from planner.errors import InvalidScenario, PlannerError
from planner.measurements.benchmarks import same_measurement
from planner.workload import Engine

SCHEMA = "breakeven.calibration/1"
FILE = "calibration.json"
_SQLITE = ("sqlite:///", "sqlite+pysqlite:///")


def results_file(environ: Mapping[str, str]) -> Path:
    """Return where own measurements are kept: beside the database file, else in the user's data folder."""
    url = environ.get("BREAKEVEN_DATABASE_URL", "").strip()
    for scheme in _SQLITE:
        file = url.removeprefix(scheme).partition("?")[0]
        if url.startswith(scheme) and file not in ("", ":memory:"):
            return Path(file).with_name(FILE)
    from platformdirs import user_data_path

    return user_data_path("breakeven", appauthor=False) / FILE


def kept_results(environ: Mapping[str, str]) -> tuple[Result, ...]:
    """
    Return own measurements; none where none were taken in.

    Raises:
        InvalidScenario: if the file cannot be read.
    """
    file = results_file(environ)
    try:
        stamp = file.stat().st_mtime_ns
    except OSError:
        return ()
    return _read(file, stamp)


@lru_cache(maxsize=4)
def _read(file: Path, stamp: int) -> tuple[Result, ...]:
    del stamp  # of the file, so that a change is seen
    allowed = f"a file that `breakeven calibrate` wrote; move {file} away to go on without it"
    try:
        document = json.loads(file.read_text(encoding="utf-8"))
        if document["schema"] != SCHEMA:
            raise InvalidScenario("calibration", document["schema"], allowed)
        return tuple(_known(row) for row in document["measurements"])
    except (OSError, ValueError, KeyError, TypeError, PlannerError) as error:
        raise InvalidScenario("calibration", str(error), allowed) from error


def _known(row: Mapping[str, Any]) -> Result:
    """Return a measurement under the names of this version's catalogues."""
    names = {
        "model": find_model(row["model"]).model.id,
        "quant": find_quant(row["quant"]).name,
        "gpu": find_gpu(row["gpu"]).gpu.name,
        "engine": str(Engine(row["engine"])),
    }
    return stated({**row, **names})


def merged(kept: Iterable[Result], new: Iterable[Result]) -> tuple[Result, ...]:
    """
    Return measurements of both; of the same configuration and figure the new one counts.

    So it does of the same content, which `source_ref` holds as a digest, whatever file it came in.
    """
    by_key = {same_measurement(result): result for result in (*kept, *new)}
    by_content = {(result.source_ref or id(result), result.metric): result for result in by_key.values()}
    return tuple(by_content.values())


def document_of(results: Iterable[Result]) -> dict[str, object]:
    """Return the content of the file; what a measurement does not say is left out."""
    rows = [
        {name: value for name, value in asdict(result).items() if value not in ("", None)}
        for result in results
    ]
    return {"schema": SCHEMA, "measurements": rows}
