"""The document of the interface names everything that the command line understands."""

import re

import pytest

from dashboard.cli import build_parser
from planner.serving.rows import MEMORY_COLUMNS, SPEED_COLUMNS
from tests.conftest import ROOT
from tests.dashboard.test_cli_usage import COMMANDS

DOCUMENT = (ROOT / "docs" / "interface.md").read_text(encoding="utf-8")
# Named in general, not one by one.
COMMON = {"--help", "--json", "--output"}


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_every_command_is_named(words):
    assert re.search(rf"breakeven {' '.join(words)}\b", DOCUMENT)


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_every_option_is_named(words):
    missing = [name for name in COMMANDS[words].option_names() if not re.search(rf"{name}\b", DOCUMENT)]
    assert set(missing) <= COMMON


def test_global_options_are_named():
    assert {name for name in build_parser().option_names() if f"{name}" not in DOCUMENT} <= {"--help"}


def test_every_command_and_option_named_is_understood():
    known = {name for parser in COMMANDS.values() for name in parser.option_names()}
    assert set(re.findall(r"--[a-z][a-z-]*", DOCUMENT)) <= known | set(build_parser().option_names())
    called = re.findall(r"`breakeven ([a-z]+(?: [a-z]+)?)", DOCUMENT)
    assert called
    for name in called:
        first, _, second = name.partition(" ")
        assert (first,) in COMMANDS or (first, second) in COMMANDS, name


def test_every_setting_is_named():
    settings = (ROOT / "pricing" / "settings.py").read_text(encoding="utf-8")
    named = set(re.findall(r'"(BREAKEVEN_[A-Z_]+)"', settings))
    assert named
    for name in named | {"BREAKEVEN_<PROVIDER>_API_KEY", "BREAKEVEN_<PROVIDER>_BASE_URL", "BREAKEVEN_DEBUG"}:
        assert f"`{name}`" in DOCUMENT


def test_every_column_of_sized_rows_is_named():
    for name in (*MEMORY_COLUMNS, *SPEED_COLUMNS, "error"):
        assert f"`{name}`" in DOCUMENT


def test_every_schema_is_named():
    files = [file for part in ("dashboard", "planner", "pricing") for file in (ROOT / part).rglob("*.py")]
    written = {
        schema for file in files for schema in re.findall(r"breakeven\.[a-z-]+/1", file.read_text("utf-8"))
    }
    assert len(written) > 20
    assert not {schema for schema in written if schema not in DOCUMENT}
