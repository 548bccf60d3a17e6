"""What all tests share: no network, the shared facts where they are, a fixed clock."""

import os
import socket
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


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave tests that talk to real providers to those who ask for them."""
    for item in items:
        if item.get_closest_marker("live") and not os.environ.get("BREAKEVEN_LIVE"):
            item.add_marker(pytest.mark.skip(reason="talks to a real provider; set BREAKEVEN_LIVE=1"))


@pytest.fixture
def update_expected(request: pytest.FixtureRequest) -> bool:
    """Whether expected results are to be rewritten."""
    return bool(request.config.getoption("--update-expected"))


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of collected facts; its tests skip in a user's clone and fail in CI without it."""
    folder = shared_folder()
    if folder is None:
        if IN_CI:
            pytest.fail("the shared facts are missing, and in CI nothing may be skipped for want of them")
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
