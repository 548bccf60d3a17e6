"""What the tests of command line and web views share: a way to run commands in this process."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from dashboard.cli import main

GOLDEN = Path(__file__).parent / "golden"


@dataclass(frozen=True, slots=True)
class Ran:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """The one JSON document on stdout."""
        return json.loads(self.out)


Cli = Callable[..., Ran]


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str], now: datetime, monkeypatch: pytest.MonkeyPatch) -> Cli:
    """Run one command in this process at a fixed time; an unexpected error fails with its traceback."""
    monkeypatch.setenv("BREAKEVEN_DEBUG", "1")

    def run(*arguments: object) -> Ran:
        capsys.readouterr()
        code = main([str(argument) for argument in arguments], clock=lambda: now)
        captured = capsys.readouterr()
        return Ran(code, captured.out, captured.err)

    return run


@pytest.fixture
def golden(update_expected: bool) -> Callable[[str, str], None]:
    """Compare a text with the file of that name in `golden/`, or rewrite the file."""

    def check(name: str, text: str) -> None:
        path = GOLDEN / f"{name}.txt"
        if update_expected:
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
        assert path.is_file(), f"run pytest --update-expected to write {path.name}"
        assert text == path.read_text(encoding="utf-8")

    return check
