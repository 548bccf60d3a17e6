"""
Pages are read in processes of their own: one that loops, crashes or eats memory takes nothing with it.

What reads HTML is native code, and a page that nobody has seen yet may send it anywhere; a thread that hangs
there could not be ended. So each page set goes through a pipe to a worker, which is killed at its time limit.
"""

import contextlib
import io
import os
import pickle
import queue
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from enum import Enum
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Protocol, Self

from planner.catalogues.currencies import FxRate
from pricing.errors import ParseError, PricingError
from pricing.provider import Page, Provider
from pricing.running.gather import Gathered, read

__all__ = ["Here", "Reader", "Readers", "ReadingFailed"]

# The largest price list, half a gigabyte, is read within seconds. Source: own choice. [s]
LIMIT_S = 120.0
# One that hangs leaves the other to everybody else. Source: own choice.
WORKERS = 2
# What reading may take; all recorded pages, and the offer file of AWS, need a tenth. Source: own choice.
MEMORY_BYTES = 2**30
# A worker whose caller is gone ends itself this long after its limit. [s]
_GRACE_S = 10
_LENGTH_BYTES = 8
# What an answer consists of.
_ANSWERS: Mapping[str, frozenset[str]] = {
    "pricing.running.gather": frozenset({"Gathered"}),
    "pricing.offer": frozenset({"Offer", "Problem", "Verdict"}),
    "planner.rates": frozenset({"Billing", "Tier"}),
    "decimal": frozenset({"Decimal"}),
    "datetime": frozenset({"datetime", "timedelta", "timezone"}),
}
_CODE = """import sys
if {root!r} not in sys.path:
    sys.path.insert(0, {root!r})
from pricing.parsing.reader import serve
serve()"""


class ReadingFailed(PricingError):
    """A fault in a provider's module: it looped, crashed, or raised what it should not."""


class Reader(Protocol):
    """What turns pages into offers."""

    def read(
        self, provider: Provider, pages: Mapping[str, Page], *, seen_at: datetime, fx: Mapping[str, FxRate]
    ) -> Gathered:
        """Return what the pages give, or raise ParseError."""


class Here:
    """Reads in the calling thread, without a limit: for saved answers and tests."""

    def read(
        self, provider: Provider, pages: Mapping[str, Page], *, seen_at: datetime, fx: Mapping[str, FxRate]
    ) -> Gathered:
        """Return what the pages give, or raise ParseError."""
        return read(provider, pages, seen_at=seen_at, fx=fx)


class Readers:
    """
    Reads in a few processes, which end with it.

    May be used from many threads; each waits for a worker that is free.

    Args:
        workers: How many there are at most.
        limit_s: For the pages of one provider. [s]
    """

    def __init__(self, workers: int = WORKERS, limit_s: float = LIMIT_S) -> None:
        self._limit_s = limit_s
        self._free: queue.LifoQueue[_Worker | None] = queue.LifoQueue()
        for _ in range(workers - 1):
            self._free.put(None)  # begun when it is needed
        self._free.put(_Worker())
        self._all = workers
        self._is_closed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the workers that are free; one at work ends when its caller gives it back."""
        self._is_closed = True
        for _ in range(self._all):
            with contextlib.suppress(queue.Empty):
                worker = self._free.get_nowait()
                if worker is not None:
                    worker.end()

    def read(
        self, provider: Provider, pages: Mapping[str, Page], *, seen_at: datetime, fx: Mapping[str, FxRate]
    ) -> Gathered:
        """
        Return what the pages give.

        Raises:
            ParseError: if they are not of their known shape, as the provider's module says.
            ReadingFailed: if that module did not come to an end.
        """
        job = pickle.dumps((provider, dict(pages), seen_at, dict(fx), self._limit_s))
        with self._worker() as worker:
            kind, content = worker.do(job, self._limit_s)
        if kind == "refused":
            raise ParseError(str(content), provider=provider.name)
        found: Gathered = content
        return found

    @contextmanager
    def _worker(self) -> Iterator["_Worker"]:
        worker = self._free.get() or _Worker()
        try:
            yield worker
        finally:
            if worker.is_alive and not self._is_closed:
                self._free.put(worker)
            else:
                worker.end()
                self._free.put(None)


class _Worker:
    """One process and the pipes to it."""

    def __init__(self) -> None:
        root = str(Path(__file__).resolve().parent.parent.parent)
        # No key is needed to read a page, so none is there.
        environ = {name: value for name, value in os.environ.items() if not name.startswith("BREAKEVEN_")}
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed by end()
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", _CODE.format(root=root)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env=environ,
        )
        self._is_late = False

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    def do(self, job: bytes, limit_s: float) -> tuple[str, Any]:
        """Give it a job and wait for the answer, but not for ever."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        timer = threading.Timer(limit_s, self._kill)
        timer.daemon = True
        timer.start()
        try:
            _send(self._process.stdin, job)
            kind, content = _Records(io.BytesIO(_receive(self._process.stdout))).load()
        except (OSError, EOFError) as error:
            raise ReadingFailed(self._why(limit_s)) from error
        except pickle.UnpicklingError as error:
            self._process.kill()
            self._process.wait()
            raise ReadingFailed(f"a fault in its module: {error}") from error
        finally:
            timer.cancel()
        return kind, content

    def end(self) -> None:
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout, self._errors):
            if pipe is not None:
                with contextlib.suppress(OSError):  # what was not sent any more
                    pipe.close()

    def _kill(self) -> None:
        self._is_late = True
        self._process.kill()

    def _why(self, limit_s: float) -> str:
        """Say how the process ended, with the last line of what it wrote about it."""
        status = self._process.wait()
        if self._is_late:
            return f"its pages could not be read within {limit_s:g} s: a fault in its module"
        if status < 0:
            return f"a fault in its module: reading ended by {signal.Signals(-status).name}"
        self._errors.seek(0)
        lines = self._errors.read().decode("utf-8", "replace").strip().splitlines()
        return f"a fault in its module: {lines[-1] if lines else f'reading ended with status {status}'}"


class _Answer(pickle.Pickler):
    """Writes a member of an enumeration as its class and value; by itself Python 3.11.2 names `getattr`."""

    def reducer_override(self, value: Any) -> Any:
        """Return how a value is made again, where it is such a member."""
        if isinstance(value, Enum):
            return type(value), (value.value,)
        return NotImplemented


class _Records(pickle.Unpickler):
    """
    Takes nothing but the records of an answer.

    Whoever a page has taken over its reader must not reach the process that holds the keys.
    """

    def find_class(self, module: str, name: str) -> Any:
        """Return a class that an answer may hold."""
        if name not in _ANSWERS.get(module, ()):
            raise pickle.UnpicklingError(f"it answered with {module}.{name}")
        return super().find_class(module, name)


def serve() -> None:
    """Read what comes through the pipe until it closes: the other end of `_Worker`."""
    for number in (signal.SIGINT, signal.SIGTERM):  # who began it ends it
        signal.signal(number, signal.SIG_IGN)
    _bound_memory()
    jobs, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever is printed is no answer
    while True:
        try:
            job = _receive(jobs)
        except EOFError:
            return
        provider, pages, seen_at, fx, limit_s = pickle.loads(job)
        _alarm(int(limit_s) + _GRACE_S)
        try:
            answer: tuple[str, Any] = ("read", read(provider, pages, seen_at=seen_at, fx=fx))
        except PricingError as error:
            answer = ("refused", str(error))
        _alarm(0)
        _send(answers, _dumped(answer))


def _dumped(answer: tuple[str, Any]) -> bytes:
    buffer = io.BytesIO()
    _Answer(buffer).dump(answer)
    return buffer.getvalue()


def _bound_memory() -> None:
    """Let a module that asks for ever more memory fail before the machine does."""
    with contextlib.suppress(ImportError, ValueError, OSError):  # where the system has no such limit
        import resource

        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, hard))


def _alarm(seconds: int) -> None:
    """End this process after so long, whatever it is at; who began it may not be there to do so."""
    if hasattr(signal, "alarm"):
        signal.alarm(seconds)


def _send(pipe: IO[bytes], message: bytes) -> None:
    pipe.write(len(message).to_bytes(_LENGTH_BYTES, "big"))
    pipe.write(message)
    pipe.flush()


def _receive(pipe: IO[bytes]) -> bytes:
    """
    Read one message.

    Raises:
        EOFError: if the other end is gone.
    """
    length = pipe.read(_LENGTH_BYTES)
    if len(length) < _LENGTH_BYTES:
        raise EOFError
    message = pipe.read(int.from_bytes(length, "big"))
    if len(message) < int.from_bytes(length, "big"):
        raise EOFError
    return message
