"""From arguments to records: the scenario, its model, format and machine, with what a person should know."""

import argparse
import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from dashboard.commands.base import UsageError, one_line
from dashboard.commands.files import read_text
from dashboard.files.modelfiles import Stated, is_file_name, open_model
from dashboard.files.ownresults import kept_results
from planner.catalogues.gpus import find_gpu
from planner.catalogues.models import Model, find_model
from planner.catalogues.quants import QuantFormat, find_quant
from planner.catalogues.results import Result
from planner.errors import UnknownName
from planner.measurements.belonging import batch_of
from planner.measurements.measured import Measurement, check_speed, measurement_of, read_measurement
from planner.scenario import DEFAULT_QUANT, Scenario
from planner.serving.notes import model_context
from planner.workload import Engine, Machine, Workload

_REPOSITORY = re.compile(r"[\w.-]+/[\w.-]+", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What was asked: every option, and the records that its names stand for."""

    scenario: Scenario
    model: Model
    quant: QuantFormat
    machine: Machine | None  # where a GPU is named
    is_file: bool = False  # whether the model was read from its own files
    measured: Measurement | None = None  # a decode speed measured elsewhere, of one machine
    own_results: tuple[Result, ...] = ()  # what `breakeven calibrate` has taken in
    warnings: tuple[str, ...] = field(default=())

    @property
    def workload(self) -> Workload:
        """What is asked of one replica."""
        return replace(self.scenario.workload(self.model, self.quant), own_results=self.own_results)


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A model, and what its name or its files imply."""

    model: Model
    quant: str | None  # format of the catalogue in which this copy holds its weights
    matched: str  # as the catalogue writes it, or the file as given
    is_file: bool = False
    is_gguf: bool = False


def asked(arguments: argparse.Namespace, environ: Mapping[str, str], **defaults: Any) -> Asked:
    """
    Read the options of a command, those of its scenario file below them.

    Args:
        arguments: Options that were not given are absent.
        environ: Says where own measurements are kept.
        defaults: Options of this command that take another default.
    """
    options = {**defaults, **_from_file(arguments), **_given(arguments)}
    if "model" not in options:
        raise UsageError(f"give a MODEL (see `{arguments.parser.prog} -h`; `breakeven models` lists them)")
    found = model_named(str(options["model"]), stated_in(options))
    warnings = []
    if found.quant is not None and "quant" not in options:
        options["quant"] = found.quant
        kind = "holds its weights" if found.is_file else "is a copy"
        warnings.append(f"{found.matched} {kind} in {found.quant}: --quant {found.quant} is taken")
    if found.is_gguf:
        options.setdefault("engine", Engine.LLAMA_CPP)
    options["model"] = found.matched if found.is_file else found.model.id
    if options.get("provider"):
        options["provider"] = _provider_keys(options["provider"])
    quant = find_quant(str(options.get("quant", DEFAULT_QUANT)))
    document = _sizing_document(options.get("sizing"))
    at_batch = batch_of(document)
    if at_batch not in (None, 1) and "batch" not in options:
        options["batch"] = at_batch
        warnings.append(f"--sizing: it was measured at batch {at_batch}: --batch {at_batch} is taken")
    scenario = Scenario.from_mapping({**options, "quant": quant.name})
    machine = None
    if scenario.gpu is not None:
        machine = machine_named(scenario.gpu, scenario.gpus or 1, warnings)
        scenario = replace(scenario, gpu=machine.gpu.name)
    work = scenario.workload(found.model, quant)
    measured = _measured(scenario, work, document, warnings)
    if measured is not None:
        check_speed(measured, work)
    return Asked(
        scenario=scenario,
        model=found.model,
        quant=quant,
        machine=machine,
        is_file=found.is_file,
        measured=measured,
        own_results=kept_results(environ),
        warnings=(*warnings, *scenario.warnings, *_context_warning(scenario, found.model)),
    )


def stated_in(options: Mapping[str, Any]) -> Stated:
    """Return what the options `--params` and `--fact` say of a model in a file."""
    facts = options.get("fact") or ()
    params = options.get("params")
    return Stated.parse(None if params is None else str(params), [facts] if isinstance(facts, str) else facts)


def model_named(name: str, stated: Stated | None = None) -> Found:
    """
    Return the model of this name: of the catalogue, else of a file, a folder or the hub.

    Raises:
        UsageError: if the name is empty, or something is stated of a model of the catalogue.
        UnknownName: if it is neither a name nor a file.
        PlannerError, PricingError: if a file cannot be read or fetched.
    """
    stated = stated or Stated()
    if not name.strip():
        raise UsageError(f"MODEL: {name!r} is empty; give an id, an alias, or a path (. is this folder)")
    if not is_file_name(name):
        try:
            match = find_model(name)
        except UnknownName as error:
            if not _exists(name):
                if not _REPOSITORY.fullmatch(name):
                    raise
                raise UsageError(f"{error}; hf:{name} asks the Hugging Face hub") from error
        else:
            if stated != Stated():
                what = f"{name} is in the catalogue, which knows its parameters and layers"
                raise UsageError(f"--params, --fact: {what}; both are for a model in a file")
            return Found(model=match.model, quant=match.quant, matched=match.matched)
    reading = open_model(name, stated)
    return Found(
        model=reading.model, quant=reading.quant, matched=name, is_file=True, is_gguf=reading.is_gguf
    )


def _context_warning(scenario: Scenario, model: Model) -> list[str]:
    limit = model_context(model)
    if limit is None or scenario.context <= limit:
        return []
    return [f"context: {scenario.context:,} tokens are above the model's maximum of {limit:,}"]


def _exists(name: str) -> bool:
    try:
        return Path(name).exists()
    except OSError:  # too long for a file name
        return False


def machine_named(name: str, count: int, warnings: list[str]) -> Machine:
    """Return the machine; an ambiguous name warns and says what it took."""
    match = find_gpu(name)
    remark = match.remark(name)
    if remark is not None:
        warnings.append(remark)
    return Machine(gpu=match.gpu, gpu_count=count)


def _provider_keys(names: str | Sequence[str]) -> tuple[str, ...]:
    """Return the keys of providers however they are spelled."""
    from pricing.registry import provider_info

    listed = names.split(",") if isinstance(names, str) else names
    return tuple(provider_info(name).name for name in listed if name.strip())


def _sizing_document(name: object) -> Any:
    """Return what the file of `--sizing` holds; None without one."""
    if name is None:
        return None
    text = read_text(str(name), "--sizing")
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        why = "it is nested too deeply" if isinstance(error, RecursionError) else one_line(str(error))
        raise UsageError(f"--sizing: {name} is not JSON ({why})") from error
    return () if document is None else document  # `null` is of no known form either


def _measured(scenario: Scenario, work: Workload, document: Any, warnings: list[str]) -> Measurement | None:
    """Return the speed that an option states, or the file of `--sizing`."""
    if document is None:
        return measurement_of(scenario)
    measured, remark = read_measurement(
        document, gpu=scenario.gpu, gpu_count=scenario.gpus, asked=scenario, work=work
    )
    if remark is not None:
        warnings.append(f"--sizing: {remark}")
    return measured


def _given(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the options that stand on the command line; repeated ones as one list."""
    given = {}
    for name in Scenario.option_names():
        value = getattr(arguments, name, None)
        if value is None:
            continue
        if isinstance(value, list) and name not in ("set", "fact"):
            value = ",".join(value)
        given[name] = value
    return given


def _from_file(arguments: argparse.Namespace) -> Mapping[str, Any]:
    """Return the options of the scenario file; the model may be left to the command line."""
    name = getattr(arguments, "scenario", None)
    if name is None:
        return {}
    text = read_text(name, "--scenario")
    try:
        table = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        why = "it is nested too deeply" if isinstance(error, RecursionError) else one_line(str(error))
        raise UsageError(f"--scenario: {name} is not TOML ({why})") from error
    if "model" not in table and getattr(arguments, "model", None) is not None:
        table_text = f'model = "{arguments.model}"\n{text}'
    else:
        table_text = text
    return Scenario.from_toml(table_text).changed()
