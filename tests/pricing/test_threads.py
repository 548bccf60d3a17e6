"""One store and many threads: none sees another's transaction, and none closes a connection under another."""

import sqlite3
import threading
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from pricing.errors import StoreError
from pricing.store import Store
from tests.pricing.samples import MORNING, offer, run

THREADS, ROUNDS = 8, 12


def together(*tasks: Callable[[], None]) -> list[BaseException]:
    """Run tasks at the same time; return what went wrong."""
    start = threading.Barrier(len(tasks))
    wrong: list[BaseException] = []

    def begin(task: Callable[[], None]) -> None:
        start.wait()
        try:
            task()
        except (StoreError, sqlite3.Error, RuntimeError) as error:
            wrong.append(error)

    threads = [threading.Thread(target=begin, args=(task,)) for task in tasks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert not any(thread.is_alive() for thread in threads)
    return wrong


def work(store: Store, number: int) -> Callable[[], None]:
    """Write under an own provider's name, and read what is there, again and again."""

    def task() -> None:
        for turn in range(ROUNDS):
            at = MORNING + timedelta(hours=turn)
            name = f"acme-{number}"
            store.record(run(offer("2.5", at=at, provider=name), provider=name))
            (found,) = store.current_offers(provider=name)
            assert (found.times_seen, found.seen_at) == (turn + 1, at)
            store.note(f"note-{number}", {"turn": turn})
            assert store.noted(f"note-{number}") == {"turn": turn}

    return task


def check(store: Store) -> None:
    before = store.revision()
    assert together(*(work(store, number) for number in range(THREADS))) == []
    assert store.revision() == before + THREADS * ROUNDS


def test_threads_share_a_store(store: Store) -> None:
    check(store)


def test_threads_take_turns_in_memory() -> None:
    with Store.in_memory(snapshot=False) as store:
        check(store)


def test_a_store_in_memory_is_not_closed_under_a_reader() -> None:
    """Without turns this ends the interpreter with a segmentation fault."""
    store = Store.in_memory(snapshot=False)
    store.record(run(*(offer("2.5", region=f"region-{number}") for number in range(200))))
    read = [lambda: [store.current_offers() for _ in range(ROUNDS)] and None for _ in range(THREADS)]
    wrong = together(*read, store.close)
    assert all(isinstance(error, StoreError) for error in wrong)  # who comes after the end finds nothing


def test_each_use_of_a_file_has_a_connection_of_its_own(file: Path) -> None:
    """No SQLite handle passes from one thread to another, which may crash the interpreter."""
    used: dict[int, set[int]] = {}
    with Store.open(f"sqlite:///{file}") as store:

        def look() -> None:
            for _ in range(ROUNDS):
                with store._reading() as connection:
                    handle = connection.connection.driver_connection
                    used.setdefault(id(handle), set()).add(threading.get_ident())
                    handles.append(handle)

        handles: list[object] = []
        assert together(*(look for _ in range(THREADS))) == []
    assert len(used) == len(handles) == THREADS * ROUNDS
    assert all(len(threads) == 1 for threads in used.values())


def test_an_engine_is_made_once(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from pricing.storage import sessions as module

    made: list[object] = []
    real = module.reading_engine

    def counted(*arguments: object) -> object:
        made.append(arguments)
        return real(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(module, "reading_engine", counted)
    with Store.open(f"sqlite:///{file}") as store:
        assert together(*(store.revision for _ in range(THREADS))) == []  # type: ignore[arg-type]
    assert len(made) == 1
