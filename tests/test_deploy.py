"""The files in deploy/ hold commands that exist, settings that are read, and no secret."""

import configparser
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from dashboard.cli import build_parser
from pricing.settings import Settings
from tests.conftest import ROOT

DEPLOY = ROOT / "deploy"
UNITS = sorted(DEPLOY.glob("*.service"))
# Read by `Settings`, or by this file's own substitution in the compose file.
SUBSTITUTED = {"BREAKEVEN_DATABASE_PASSWORD", "BREAKEVEN_TIMEZONE"}


def unit(path: Path) -> dict[str, dict[str, list[str]]]:
    """Read a unit: every key may occur several times."""
    found: dict[str, dict[str, list[str]]] = {}
    section: dict[str, list[str]] = {}
    for line in path.read_text().splitlines():
        if line.startswith("["):
            section = found.setdefault(line.strip("[]"), {})
        elif line and not line.startswith("#"):
            name, _, value = line.partition("=")
            section.setdefault(name, []).append(value)
    return found


def compose() -> dict[str, Any]:
    yaml = pytest.importorskip("yaml")  # comes with apprise, which the development extra holds
    document: dict[str, Any] = yaml.safe_load((DEPLOY / "docker-compose.yml").read_text())
    return document


def is_understood(command: list[str]) -> bool:
    program, *arguments = command
    assert program.rpartition("/")[2] == "breakeven"
    parsed, unknown = build_parser().parse_known_args(arguments)
    return not unknown and hasattr(parsed, "run")


@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.name)
def test_a_unit_runs_a_command_that_exists_with_settings_that_are_read(path: Path) -> None:
    service = unit(path)["Service"]
    (command,) = service["ExecStart"]
    assert is_understood(shlex.split(command))
    environ = dict(one.split("=", 1) for one in service["Environment"])
    settings = Settings.from_environ(environ)
    state = Path("/var/lib") / service["StateDirectory"][0]
    assert settings.database_url == f"sqlite:///{state / 'breakeven.db'}"
    assert settings.cache_folder == Path("/var/cache") / service["CacheDirectory"][0]
    assert settings.read_only == (path.name == "breakeven-dashboard.service")
    assert service["User"] == ["breakeven"]  # one for all, so that they share the database


def test_a_run_in_part_is_a_success_of_the_timer() -> None:
    assert unit(DEPLOY / "breakeven-refresh.service")["Service"]["SuccessExitStatus"] == ["1"]
    assert unit(DEPLOY / "breakeven-refresh.timer")["Timer"]["Persistent"] == ["true"]


def test_what_the_containers_run_is_understood() -> None:
    services = compose()["services"]
    command = [part.replace("${BREAKEVEN_TIMEZONE:-UTC}", "UTC") for part in services["scheduler"]["command"]]
    assert is_understood(command)
    kind, *check = services["scheduler"]["healthcheck"]["test"]
    assert kind == "CMD"
    assert is_understood(check)
    match = re.search(r"^CMD (\[.*\])$", (DEPLOY / "Dockerfile").read_text(), re.MULTILINE)
    assert match is not None
    assert is_understood(re.findall(r'"([^"]*)"', match[1]))


def test_the_containers_share_the_database_and_only_the_scheduler_writes_prices() -> None:
    services = compose()["services"]
    urls = {services[name]["environment"]["BREAKEVEN_DATABASE_URL"] for name in ("dashboard", "scheduler")}
    (url,) = urls
    assert Settings.from_environ({"BREAKEVEN_DATABASE_URL": url}).database_url == url
    assert services["dashboard"]["environment"]["BREAKEVEN_READ_ONLY"] == "1"
    assert "BREAKEVEN_READ_ONLY" not in services["scheduler"]["environment"]
    assert services["dashboard"]["ports"] == ["127.0.0.1:8501:8501"]  # the page has no log-in


def test_every_setting_named_in_the_files_is_known() -> None:
    known = set(re.findall(r'"(BREAKEVEN_[A-Z_]+)"', (ROOT / "pricing/settings.py").read_text()))
    for path in DEPLOY.iterdir():
        named = set(re.findall(r"BREAKEVEN_[A-Z_]+", path.read_text()))
        assert named <= known | SUBSTITUTED, path.name


def test_the_timer_is_a_unit_file() -> None:
    timer = configparser.ConfigParser(interpolation=None, strict=False)
    timer.optionxform = str  # type: ignore[assignment]
    timer.read_string((DEPLOY / "breakeven-refresh.timer").read_text())
    assert timer["Install"]["WantedBy"] == "timers.target"
