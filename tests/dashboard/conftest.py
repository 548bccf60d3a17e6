"""What the tests of command line and web views share: a way to run commands in this process."""

import json
import shutil
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from dashboard.cli import main
from planner.rates import Billing, Tier
from pricing.offer import Offer, Verdict
from pricing.storage.memory import ProviderResult, RunStatus
from pricing.store import Store

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
    """Run one command in this process, at a fixed or a given time; an error comes with its traceback."""
    monkeypatch.setenv("BREAKEVEN_DEBUG", "1")

    def run(*arguments: object, at: datetime = now) -> Ran:
        capsys.readouterr()
        code = main([str(argument) for argument in arguments], clock=lambda: at)
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


@pytest.fixture(scope="session")
def bundled_database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with the bundled prices, built once; take `database` for a copy that may be changed."""
    file = tmp_path_factory.mktemp("bundled") / "breakeven.db"
    Store.open(f"sqlite:///{file}").close()
    return file


@pytest.fixture
def database(bundled_database: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The environment names a database with the bundled prices, as after the first start."""
    file = tmp_path / "breakeven.db"
    shutil.copyfile(bundled_database, file)
    monkeypatch.setenv("BREAKEVEN_DATABASE_URL", f"sqlite:///{file}")
    return file


@pytest.fixture
def empty_database(database: Path) -> Path:
    """The same without a single price."""
    with sqlite3.connect(database) as connection:
        for table in ("price", "series", "source"):
            connection.execute(f"DELETE FROM {table}")
        connection.execute("UPDATE store_value SET value = value + 1 WHERE name = 'revision'")
    connection.close()
    return database


@pytest.fixture
def stale_database(empty_database: Path, now: datetime) -> Path:
    """One provider, read for the last time ten days ago; one of its prices waits in quarantine."""
    seen_at = now - timedelta(days=10)
    result = ProviderResult(
        provider="runpod",
        status=RunStatus.OK,
        reason=None,
        offers=(
            _offer("8x B200", "B200", 8, "47.84", seen_at),
            _offer("8x H200 SXM", "H200 SXM", 8, "31.92", seen_at),
            _offer("1x H100 SXM", "H100 SXM", 1, "0.02", seen_at, "below a tenth of the market"),
        ),
        problems=(),
        started_at=seen_at,
        finished_at=seen_at,
    )
    with Store.open(f"sqlite:///{empty_database}") as store:
        store.record(result)
    return empty_database


def _offer(
    instance: str, gpu: str, count: int, usd: str, seen_at: datetime, doubt: str | None = None
) -> Offer:
    return Offer(
        provider="runpod",
        instance_type=instance,
        gpu=gpu,
        gpu_raw=gpu,
        gpu_count=count,
        gpu_fraction=None,
        memory_gb_per_gpu=None,
        form=None,
        region=None,
        tier=Tier.ON_DEMAND,
        commitment_days=None,
        usd_per_hour=Decimal(usd),
        usd_per_month_cap=None,
        currency="USD",
        price_original=Decimal(usd),
        fx_date=None,
        billing=Billing.PER_SECOND,
        available=True,
        vcpus=None,
        ram_gb=None,
        gpu_only=False,
        source_url="https://example.com/prices",
        seen_at=seen_at,
        raw=usd,
        verdict=Verdict.QUARANTINED if doubt else Verdict.VERIFIED,
        reasons=(doubt,) if doubt else (),
    )
