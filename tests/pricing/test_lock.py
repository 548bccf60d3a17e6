"""One refresh at a time: two real processes on one database, SQLite and PostgreSQL."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from pricing.errors import RunInProgress, StoreError
from pricing.running.lock import run_lock
from pricing.store import Store
from tests.conftest import NOW, ROOT

HOLD = """
import sys
from datetime import UTC, datetime
from pricing.running.lock import run_lock
from pricing.store import Store
now = datetime(2026, 11, 30, 3, 7, tzinfo=UTC)
with Store.open(sys.argv[1]) as store, run_lock(store, now, command="breakeven schedule"):
    print("held", flush=True)
    sys.stdin.read()
"""


@contextmanager
def another_process(url: str) -> Iterator["subprocess.Popen[str]"]:
    """Hold the lock in a process of its own until its stdin ends."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, url],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        text=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        try:
            yield process
        finally:
            process.kill()


def test_a_second_process_is_told_who_refreshes(database_url: str) -> None:
    with another_process(database_url) as other, Store.open(database_url) as store:
        with pytest.raises(RunInProgress) as caught, run_lock(store, NOW, command="x"):
            pytest.fail("two at once")
        text = str(caught.value)
        assert f"another refresh is running: breakeven schedule, process {other.pid} on " in text
        assert "since 2026-11-30T03:07:00Z" in text
        assert store.rates(NOW)  # readers are not held up
        store.note("anything", {})  # nor are short writes


def test_a_process_that_has_the_lock_but_has_not_said_so_yet_is_another_one_too(database_url: str) -> None:
    with another_process(database_url), Store.open(database_url) as store:
        store.note("run_holder", None)
        with pytest.raises(RunInProgress) as caught, run_lock(store, NOW, command="x"):
            pytest.fail("two at once")
        assert "another refresh is running; wait for it, or end that process" in str(caught.value)


def test_who_has_refreshed_is_not_named_for_who_does(database_url: str) -> None:
    with Store.open(database_url) as store:
        with run_lock(store, NOW, command="x"):
            assert store.noted("run_holder") is not None
        assert store.noted("run_holder") is None


def test_the_lock_is_free_when_its_process_ends(database_url: str) -> None:
    with another_process(database_url) as other, Store.open(database_url) as store:
        other.communicate("")
        assert other.returncode == 0
        with run_lock(store, NOW, command="x"):
            assert store.noted("run_holder")["pid"] == os.getpid()  # type: ignore[index]


def test_the_lock_of_a_killed_process_is_free(database_url: str) -> None:
    with another_process(database_url) as other, Store.open(database_url) as store:
        other.kill()
        other.wait()
        with run_lock(store, NOW, command="x", wait_s=20):  # a server takes a moment to notice
            pass


def test_one_may_wait_for_the_other(database_url: str) -> None:
    with another_process(database_url) as other, Store.open(database_url) as store:
        pauses: list[float] = []

        def pause(seconds: float) -> None:
            pauses.append(seconds)
            if len(pauses) == 3:
                other.communicate("")

        with run_lock(store, NOW, command="x", wait_s=60, pause=pause):
            assert len(pauses) >= 3


def test_waiting_has_an_end(database_url: str) -> None:
    with another_process(database_url), Store.open(database_url) as store:
        pauses: list[float] = []
        with pytest.raises(RunInProgress), run_lock(store, NOW, command="x", wait_s=1, pause=pauses.append):
            pytest.fail("two at once")
        assert pauses == [0.2] * 5


def test_an_error_lets_go(database_url: str) -> None:
    with Store.open(database_url) as store:
        with pytest.raises(StoreError, match="full"), run_lock(store, NOW, command="x"):
            raise StoreError("the disk is full")
        with run_lock(store, NOW, command="x"):
            pass


def test_a_note_leaves_readers_copies_good(database_url: str) -> None:
    with Store.open(database_url) as store:
        before = store.revision()
        store.note("schedule:one", {"at": "03:00"})
        store.note("schedule:two", None)
        assert store.revision() == before
        assert store.all_noted("schedule:") == {"schedule:one": {"at": "03:00"}}
        assert store.noted("nothing") is None
