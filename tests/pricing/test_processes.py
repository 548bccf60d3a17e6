"""Real processes on one database: of two schedules one makes the run, and both end when they are told to."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from sqlalchemy import text

from pricing.running import runs
from pricing.store import Store
from tests.conftest import ROOT
from tests.pricing.loopback import Handler, LoopbackServer, nowhere

SERVED = ("runpod", "vastai", "vultr", "digitalocean")
WAIT_S = 120.0


class Schedule:
    """A process of `breakeven schedule`, and what it said."""

    def __init__(self, environ: dict[str, str]) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "dashboard", "schedule"],
            cwd=ROOT,
            env={**os.environ, **environ, "PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.said = ""
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.said += line

    def end(self) -> int:
        """Tell it to end; return its exit code."""
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(WAIT_S)
        self._reader.join(WAIT_S)
        assert self.process.stdout is not None
        self.process.stdout.close()
        return code


@pytest.fixture
def begin(database_url: str, shared: Path) -> Iterator[Callable[..., list[Schedule]]]:
    """Begin schedules on one database, with a server for four sources; the others are refused at once."""
    begun: list[Schedule] = []
    with LoopbackServer() as server:

        def run(number: int, hanging: str | None = None) -> list[Schedule]:
            served = [name for name in SERVED if name != hanging]
            server.serve_payloads(shared / "data/prices/payloads", served)
            if hanging is not None:
                for path in ("plans", "plans-metal"):
                    server.add(f"/{hanging}/v2/{path}", answer=hang)
            environ = {**nowhere(), **server.environ(*SERVED), "BREAKEVEN_DATABASE_URL": database_url}
            begun.extend(Schedule(environ) for _ in range(number))
            return begun

        yield run
        for schedule in begun:
            if schedule.process.poll() is None:
                schedule.process.kill()
                schedule.process.wait()


def hang(handler: Handler) -> None:
    handler.wait(WAIT_S)


def until(what: Callable[[], bool], schedules: list[Schedule]) -> None:
    for _ in range(round(WAIT_S / 0.2)):
        if what():
            return
        assert all(one.process.poll() is None for one in schedules), [one.said for one in schedules]
        threading.Event().wait(0.2)
    pytest.fail(f"nothing happened: {[one.said for one in schedules]}")


def count_of_runs(store: Store) -> dict[str, int]:
    with store._reading() as connection:
        query = text("SELECT provider, count(*) FROM provider_run GROUP BY provider")
        return {str(name): int(number) for name, number in connection.execute(query).all()}


@pytest.mark.parametrize("backend", ["sqlite"])
def test_a_source_that_hangs_holds_up_neither_the_others_nor_the_end(
    begin: Callable[..., list[Schedule]], database_url: str
) -> None:
    (one,) = begin(1, hanging="vultr")
    others = set(SERVED) - {"vultr"}
    with Store.open(database_url) as store:
        until(lambda: count_of_runs(store).keys() >= others, [one])
        one.process.send_signal(signal.SIGTERM)
        threading.Event().wait(0.5)  # of the 8 s in which the run may finish
        assert one.end() == 0  # told twice, as by `timeout` and by impatient people
        assert store.all_noted(runs.SCHEDULES) == {}
        assert "ended; the run under way was abandoned, what was stored is whole" in one.said
        assert "vultr" not in count_of_runs(store)
        assert all(store.rates(datetime.now(UTC), provider=name) for name in SERVED)
        assert store.noted(runs.LAST_GOOD_RUN) is None  # so that the next start makes it good


def test_of_two_schedules_begun_at_once_one_makes_the_run(
    begin: Callable[..., list[Schedule]], database_url: str
) -> None:
    two = begin(2)
    with Store.open(database_url) as store:
        until(lambda: store.noted(runs.LAST_GOOD_RUN) is not None, two)
        until(lambda: len(store.all_noted(runs.SCHEDULES)) == 2, two)
        counts = count_of_runs(store)
        assert set(counts.values()) == {1}
        assert counts.keys() >= set(SERVED)
        assert store.current_offers(provider="runpod")
        assert [one.end() for one in two] == [0, 0]
        assert store.all_noted(runs.SCHEDULES) == {}
        assert count_of_runs(store) == counts
    said = [one.said for one in two]
    assert sum("sources read" in words for words in said) == 1, said
    assert all(words.rstrip().endswith("ended") for words in said), said
    assert not any("Traceback" in words for words in said), "\n".join(said)
