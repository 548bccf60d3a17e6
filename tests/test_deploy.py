"""The files in deploy/ hold commands that exist, settings that are read, and no secret."""

import configparser
import re
import shlex
import tomllib
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
# What a unit may not do.
CONFINING = ("NoNew", "Protect", "Private", "Restrict", "Lock", "SystemCall", "Capability", "UMask")


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


def test_a_run_of_the_timer_without_a_network_is_made_again() -> None:
    service = unit(DEPLOY / "breakeven-refresh.service")["Service"]
    assert service["Restart"] == ["on-failure"]
    assert service["RestartSec"] == ["2h"]


def test_the_files_that_the_page_on_operations_installs_are_there() -> None:
    page = (ROOT / "docs/operations.md").read_text()
    named = set(re.findall(r"breakeven-\w+\.(?:service|timer)|docker-compose\.yml|Dockerfile", page))
    assert named == {path.name for path in DEPLOY.glob("[!.]*")}
    program = unit(DEPLOY / "breakeven-schedule.service")["Service"]["ExecStart"][0].split()[0]
    assert f"python3 -m venv {Path(program).parents[1]}" in page


def test_the_units_are_confined_alike() -> None:
    first, *others = [
        {name: value for name, value in unit(path)["Service"].items() if name.startswith(CONFINING)}
        for path in UNITS
    ]
    assert all(other == first for other in others)
    assert first["ProtectSystem"] == ["strict"]
    assert first["SystemCallFilter"] == ["@system-service"]
    assert first["SystemCallErrorNumber"] == ["EPERM"]  # an error to handle; else the process is killed
    assert first["CapabilityBoundingSet"] == [""]


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


def test_the_containers_may_write_where_they_are_told_to() -> None:
    """An empty file system over a folder is root's, with its mode; Podman lets no other owner be named."""
    for name in ("dashboard", "scheduler"):
        service = compose()["services"][name]
        assert service["read_only"]
        assert service["tmpfs"] == ["/tmp", "/home/breakeven:mode=1777"]


def test_keys_are_given_only_to_what_asks_providers_and_are_not_committed() -> None:
    services = compose()["services"]
    (keys,) = [service["env_file"] for service in services.values() if "env_file" in service]
    assert services["scheduler"]["env_file"] is keys
    assert keys == [{"path": ".env", "required": False}]
    assert ".env" in (ROOT / ".gitignore").read_text().splitlines()


def test_volumes_and_containers_are_named_after_the_project_not_after_the_folder() -> None:
    assert compose()["name"] == "breakeven"


def test_every_setting_named_in_the_files_is_known() -> None:
    known = set(re.findall(r'"(BREAKEVEN_[A-Z_]+)"', (ROOT / "pricing/settings.py").read_text()))
    for path in DEPLOY.glob("[!.]*"):  # a `.env` holds keys
        named = set(re.findall(r"BREAKEVEN_[A-Z_]+", path.read_text()))
        assert named <= known | SUBSTITUTED, path.name


def test_the_timer_is_a_unit_file() -> None:
    timer = configparser.ConfigParser(interpolation=None, strict=False)
    timer.optionxform = str  # type: ignore[assignment]
    timer.read_string((DEPLOY / "breakeven-refresh.timer").read_text())
    assert timer["Install"]["WantedBy"] == "timers.target"


def dockerfile() -> str:
    """Lines that go on are joined, comments are gone."""
    text = (DEPLOY / "Dockerfile").read_text().replace("\\\n", " ")
    return "\n".join(line for line in text.splitlines() if not line.startswith("#"))


def test_what_the_image_is_made_of_is_there() -> None:
    copied = [line.split()[1:-1] for line in dockerfile().splitlines() if line.startswith("COPY")]
    own = [name for names in copied for name in names if not name.startswith("--from")]
    assert {"pyproject.toml", "constraints.txt", "pricing", "migrations"} <= set(own)
    for name in own:
        assert name.startswith("/") or (ROOT / name).exists(), name
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    wheel = project["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert set(wheel["packages"]) <= set(own)
    assert {Path(name).parts[0] for name in wheel["force-include"]} <= set(own)


def test_the_image_installs_extras_that_exist_on_a_python_that_is_supported() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    match = re.search(r"'\.\[([a-z,]+)\]'", dockerfile())
    assert match is not None
    assert set(match[1].split(",")) <= set(project["optional-dependencies"])
    images = set(re.findall(r"^FROM python:(\d+)\.(\d+)-slim", dockerfile(), re.MULTILINE))
    ((major, minor),) = images  # one, since the second stage takes over what the first one built
    least = re.search(r">=\s*(\d+)\.(\d+)", project["requires-python"])
    assert least is not None
    assert (int(major), int(minor)) >= (int(least[1]), int(least[2]))
    assert "breakeven" in project["scripts"]


def test_the_compose_file_names_what_it_defines() -> None:
    document = compose()
    services = document["services"]
    build = services["dashboard"]["build"]
    assert (DEPLOY / build["context"] / build["dockerfile"]).resolve() == DEPLOY / "Dockerfile"
    for name, service in services.items():
        assert set(service.get("depends_on", {})) <= set(services), name
        named = {volume.partition(":")[0] for volume in service.get("volumes", ())}
        assert named <= set(document["volumes"]), name
        assert "build" in service or service["image"] in {"breakeven", "postgres:17-alpine"}
        settings = service.get("environment", {})
        assert all(key.startswith(("BREAKEVEN_", "POSTGRES_")) for key in settings), name
    (cache,) = services["scheduler"]["volumes"]
    assert f"BREAKEVEN_CACHE_DIR={cache.partition(':')[2]}" in dockerfile()
