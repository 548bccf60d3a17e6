"""The shape of the code: one arrow between packages, each library behind one door, no stray output."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from importlinter.api import use_cases  # type: ignore[import-untyped]

from tests.conftest import ROOT

PACKAGES = ("planner", "pricing", "dashboard", "migrations")

# Each library has its door: a change of library is a change of one file.
DOORS = {
    "httpx": {"pricing/http.py"},
    "selectolax": {"pricing/html.py"},
    "sqlmodel": {"pricing/tables.py", "pricing/store.py", "pricing/storage/database.py"},
    "apscheduler": {"pricing/schedule.py"},
    "apprise": {"pricing/notify.py"},
    "filelock": {"pricing/running/lock.py"},
    "protego": {"pricing/web/robots.py"},
    "streamlit": {"dashboard/"},
    "altair": {"dashboard/charts/"},
    "tabulate": {"dashboard/tables.py"},
}


def sources() -> list[Path]:
    return [path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))]


def imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            yield node.module


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def test_import_contracts_of_the_project_hold(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)
    kept = use_cases.lint_imports(config_filename="pyproject.toml", cache_dir=None)
    assert kept, capsys.readouterr().out


@pytest.mark.parametrize("library", sorted(DOORS))
def test_library_is_imported_behind_its_door_only(library: str) -> None:
    allowed = DOORS[library]
    strays = [
        relative(path)
        for path in sources()
        if any(name.split(".")[0] == library for name in imports(path))
        and not any(relative(path).startswith(door) for door in allowed)
    ]
    assert strays == []


def test_a_revision_never_imports_the_application() -> None:
    revisions = sorted((ROOT / "migrations" / "versions").glob("[0-9a-f]*.py"))
    assert revisions
    for path in revisions:
        assert not {name.split(".")[0] for name in imports(path)} & {
            "planner",
            "pricing",
            "dashboard",
            "sqlmodel",
        }


def test_only_the_guards_of_a_run_a_command_and_a_page_catch_everything() -> None:
    catching = {
        relative(path)
        for path in sources()
        if re.search(r"except (Exception|BaseException)\b|except:", path.read_text(encoding="utf-8"))
    }
    assert catching <= {
        "pricing/web/asking.py",
        "pricing/collect.py",
        "dashboard/cli.py",
        "dashboard/parts.py",
        "dashboard/refreshing.py",
    }


def test_nothing_is_left_for_later_in_the_code() -> None:
    words = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b|NotImplementedError")
    assert [relative(path) for path in sources() if words.search(path.read_text(encoding="utf-8"))] == []
