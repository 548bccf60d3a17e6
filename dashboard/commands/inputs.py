"""From arguments to records: the scenario, its model, format and machine, with what a person should know."""

import argparse
import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from dashboard.commands.base import UsageError, one_line
from dashboard.commands.files import read_text
from planner.measured import Measurement, measurement_of, read_measurement
from planner.models import Model, ModelMatch, find_model
from planner.quants import QuantFormat, find_quant
from planner.scenario import DEFAULT_QUANT, Scenario
from planner.workload import Machine, Workload

NOT_YET = "a catalogue id or alias is understood (`breakeven models`), no file and no address"


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What was asked: every option, and the records that its names stand for."""

    scenario: Scenario
    model: Model
    quant: QuantFormat
    machine: Machine | None  # where a GPU is named
    measured: Measurement | None = None  # a decode speed measured elsewhere, of one machine
    warnings: tuple[str, ...] = field(default=())

    @property
    def workload(self) -> Workload:
        """What is asked of one replica."""
        return self.scenario.workload(self.model, self.quant)


def asked(arguments: argparse.Namespace, **defaults: Any) -> Asked:
    """
    Read the options of a command, those of its scenario file below them.

    Args:
        arguments: Options that were not given are absent.
        defaults: Options of this command that take another default.
    """
    options = {**defaults, **_from_file(arguments), **_given(arguments)}
    if "model" not in options:
        raise UsageError(f"give a MODEL (see `{arguments.parser.prog} -h`; `breakeven models` lists them)")
    match = model_named(str(options["model"]))
    warnings = []
    if match.quant is not None and "quant" not in options:
        options["quant"] = match.quant
        warnings.append(f"{match.matched} is a copy in {match.quant}: --quant {match.quant} is taken")
    options["model"] = match.model.id
    if options.get("provider"):
        options["provider"] = _provider_keys(options["provider"])
    quant = find_quant(str(options.get("quant", DEFAULT_QUANT)))
    scenario = Scenario.from_mapping({**options, "quant": quant.name})
    machine = None
    if scenario.gpu is not None:
        machine = machine_named(scenario.gpu, scenario.gpus or 1, warnings)
        scenario = replace(scenario, gpu=machine.gpu.name)
    return Asked(
        scenario=scenario,
        model=match.model,
        quant=quant,
        machine=machine,
        measured=_measured(scenario, warnings),
        warnings=(*warnings, *scenario.warnings),
    )


def model_named(name: str) -> ModelMatch:
    """Return the model of this name; say so where a file or an address was meant."""
    looks_like_a_file = name.endswith((".json", ".gguf")) or _exists(name)
    if name.startswith("hf:") or looks_like_a_file:
        raise UsageError(f"MODEL: {name!r}: {NOT_YET}")
    return find_model(name)


def _exists(name: str) -> bool:
    try:
        return Path(name).exists()
    except OSError:  # too long for a file name
        return False


def machine_named(name: str, count: int, warnings: list[str]) -> Machine:
    """Return the machine; an ambiguous name warns and says what it took."""
    from planner.gpus import find_gpu

    match = find_gpu(name)
    if match.ambiguous_with:
        others = ", ".join(match.ambiguous_with)
        warnings.append(f"{name!r} may also mean {others}: {match.gpu.name} is taken")
    return Machine(gpu=match.gpu, gpu_count=count)


def _provider_keys(names: str | Sequence[str]) -> tuple[str, ...]:
    """Return the keys of providers however they are spelled."""
    from pricing.registry import provider_info

    listed = names.split(",") if isinstance(names, str) else names
    return tuple(provider_info(name).name for name in listed if name.strip())


def _measured(scenario: Scenario, warnings: list[str]) -> Measurement | None:
    """Return the speed that an option states, or the file of `--sizing`."""
    if scenario.sizing is None:
        return measurement_of(scenario)
    text = read_text(scenario.sizing, "--sizing")
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        why = "it is nested too deeply" if isinstance(error, RecursionError) else one_line(str(error))
        raise UsageError(f"--sizing: {scenario.sizing} is not JSON ({why})") from error
    measured, remark = read_measurement(document, gpu=scenario.gpu, gpu_count=scenario.gpus, asked=scenario)
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
        if isinstance(value, list) and name != "set":
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
