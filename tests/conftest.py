"""What all tests share: no network, the shared facts where they are, a fixed clock."""

import os
import socket
from collections.abc import Generator
from datetime import UTC, datetime
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
IN_CI = os.environ.get("CI", "").lower() in {"1", "true"}
LOOPBACK = ("127.", "::1", "localhost")


def shared_folder() -> Path | None:
    """Return the folder of collected facts beside the checkout, or None in a user's clone."""
    folder = Path(os.environ.get("BREAKEVEN_SHARED", ROOT.parent / "shared"))
    return folder if (folder / "INTERFACE.md").is_file() else None


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let a person rewrite expected results of recordings and golden texts, and read the difference."""
    parser.addoption("--update-expected", action="store_true", help="rewrite expected.json and golden files")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave tests that talk to real providers to those who ask for them with BREAKEVEN_LIVE=1."""
    if os.environ.get("BREAKEVEN_LIVE"):
        return
    live = [item for item in items if item.get_closest_marker("live")]
    if live:
        config.hook.pytest_deselected(items=live)
        items[:] = [item for item in items if item not in live]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """See that a test which is skipped in CI has failed."""
    report = yield
    _refuse_a_skip(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """See that a file which is skipped in CI has failed."""
    report = yield
    _refuse_a_skip(report)
    return report


def _refuse_a_skip(report: pytest.TestReport | pytest.CollectReport) -> None:
    """Turn a skip, or an expected failure, into a failure where all that a test needs must be there."""
    if IN_CI and report.outcome == "skipped":
        why = report.longrepr[2] if isinstance(report.longrepr, tuple) else "an expected failure"
        vars(report).pop("wasxfail", None)  # by this pytest would still count it as expected
        report.outcome = "failed"
        report.longrepr = f"{report.nodeid}: in CI nothing may be skipped ({why})"


@pytest.fixture
def update_expected(request: pytest.FixtureRequest) -> bool:
    """Whether expected results are to be rewritten."""
    return bool(request.config.getoption("--update-expected"))


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of collected facts; its tests skip in a user's clone."""
    folder = shared_folder()
    if folder is None:
        pytest.skip("the shared facts are not beside this checkout")
    return folder


@pytest.fixture
def now() -> datetime:
    """A fixed present."""
    return NOW


@pytest.fixture(autouse=True)
def _no_network(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Fail a test that leaves this machine, and keep the user's own settings and data out of it."""
    connect = socket.socket.connect

    def guarded(self: socket.socket, address: object) -> None:
        if isinstance(address, tuple) and not str(address[0]).startswith(LOOPBACK):
            raise RuntimeError(f"a test tried to reach {address[0]}")
        connect(self, address)  # type: ignore[arg-type]

    monkeypatch.setattr(socket.socket, "connect", guarded)
    for name in [name for name in os.environ if name.startswith("BREAKEVEN_") and name != "BREAKEVEN_SHARED"]:
        monkeypatch.delenv(name)
    database = tmp_path_factory.mktemp("data") / "breakeven.db"
    monkeypatch.setenv("BREAKEVEN_DATABASE_URL", f"sqlite:///{database}")
    monkeypatch.setenv("XDG_CACHE_HOME", str(database.with_name("cache")))
