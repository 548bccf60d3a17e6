"""
Fifty people at once: sessions that speak the browser's protocol to one server and change inputs, as JSON.

Each opens the start page, then moves the hours or takes another model every few seconds, and waits for the
answer before it goes on. Errors on the page, lost connections and answers that never come are counted.
"""

import asyncio
import json
import os
import random
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
sys.path.remove(str(ROOT / "bench"))  # a file of it is called like the package

from streamlit.proto.BackMsg_pb2 import BackMsg  # noqa: E402
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg  # noqa: E402
from websockets.asyncio.client import ClientConnection, connect  # noqa: E402

from tests.dashboard.chromium import running_server  # noqa: E402

SESSIONS = int(os.environ.get("LOAD_SESSIONS", "50"))
SECONDS = float(os.environ.get("LOAD_SECONDS", "120"))
THINKING_S = (4.0, 8.0)  # between an answer and the next change
ANSWER_WITHIN_S = 60.0
# Of one session without a pause: those that fill the caches, and those over which the memory must stay flat.
WARMING, STEADY = int(os.environ.get("LOAD_WARMING", "200")), int(os.environ.get("LOAD_STEADY", "1000"))
TOLD_EVERY = 100  # changes of that session, on stderr
MODELS = ("qwen3-8b", "qwen3-32b", "gpt-oss-120b", "glm-4.5-air", "qwen3-coder-480b-a35b")


@dataclass
class Counts:
    """What all sessions saw."""

    first_s: list[float] = field(default_factory=list)  # from opening to the end of the first page
    verdict_s: list[float] = field(default_factory=list)  # from a change to the new verdict
    answer_s: list[float] = field(default_factory=list)  # from a change to the end of the page
    errors: list[str] = field(default_factory=list)


class Session:
    """One browser window."""

    def __init__(self, connection: ClientConnection, counts: Counts, seed: int) -> None:
        self.connection = connection
        self.counts = counts
        self.random = random.Random(seed)
        self.ids: dict[str, str] = {}  # of widgets, by label
        self.query, self.page = "", ""

    async def ask(self, widget: str = "", value: float | str = "", wanted: str = "") -> tuple[float, float]:
        """Run the page, with one widget changed; return the time to the wanted words and to the end. [s]"""
        message = BackMsg()
        message.rerun_script.query_string = self.query
        message.rerun_script.page_script_hash = self.page
        if widget:
            state = message.rerun_script.widget_states.widgets.add()
            state.id = self.ids[widget]
            if isinstance(value, float):
                state.double_array_value.data.append(value)
            else:
                state.string_value = value
        start = time.perf_counter()
        await self.connection.send(message.SerializeToString())
        seen = None
        async with asyncio.timeout(ANSWER_WITHIN_S):
            while True:
                answer = ForwardMsg()
                raw = await self.connection.recv()
                answer.ParseFromString(raw if isinstance(raw, bytes) else raw.encode())
                kind = answer.WhichOneof("type")
                if kind == "delta":
                    self._note(answer)
                    if seen is None and wanted and wanted in str(answer.delta.new_element.markdown.body):
                        seen = time.perf_counter() - start
                elif kind == "page_info_changed":
                    self.query = answer.page_info_changed.query_string
                elif kind == "new_session":
                    self.page = answer.new_session.page_script_hash
                elif kind == "script_finished":
                    ended = time.perf_counter() - start
                    if wanted and seen is None:
                        self.counts.errors.append(f"no verdict with {wanted!r}")
                    return (ended if seen is None else seen), ended

    def _note(self, answer: ForwardMsg) -> None:
        """Keep the ids of widgets; count what the page calls an error."""
        element = answer.delta.new_element
        kind = element.WhichOneof("type")
        if kind == "slider":
            self.ids[element.slider.label] = element.slider.id
        elif kind == "selectbox":
            self.ids[element.selectbox.label] = element.selectbox.id
        elif kind == "exception":
            self.counts.errors.append(element.exception.message[:200])
        elif kind == "alert" and element.alert.format == element.alert.ERROR:
            self.counts.errors.append(element.alert.body[:200])

    async def use(self, until: float) -> None:
        """Change inputs until the time is over."""
        while time.perf_counter() < until:
            await asyncio.sleep(self.random.uniform(*THINKING_S))
            await self.change()

    async def change(self) -> None:
        """Move the hours, or now and then take another model."""
        if self.random.random() < 0.2:
            _, answer_s = await self.ask("Model", self.random.choice(MODELS))
        else:
            hours = round(self.random.uniform(0.5, 23.5), 1)
            verdict_s, answer_s = await self.ask("Hours a day [h]", hours, f"{hours:g} h a day")
            self.counts.verdict_s.append(verdict_s)
        self.counts.answer_s.append(answer_s)


async def one(url: str, counts: Counts, seed: int, until: float) -> None:
    """Live through one session."""
    try:
        await asyncio.sleep(0.2 * seed)  # people do not come in the same second
        async with connect(url, subprotocols=["streamlit"], max_size=None) as connection:  # type: ignore[list-item]
            session = Session(connection, counts, seed)
            _, ended = await session.ask()
            counts.first_s.append(ended)
            await session.use(until)
    except Exception as error:  # whatever ends a session is what this script counts
        counts.errors.append(f"session {seed}: {type(error).__name__}: {error}")


async def crowd(url: str, pid: int) -> dict[str, float]:
    """Let all sessions live, and watch the server's memory."""
    crowded = Counts()
    address = url.replace("http", "ws", 1) + "/_stcore/stream"
    await one(address, Counts(), 0, 0.0)  # what everybody shares is loaded by the first one
    alone_mib = resident_mib(pid)
    until, cpu = time.perf_counter() + SECONDS, cpu_seconds(pid)
    people = asyncio.gather(*(one(address, crowded, seed, until) for seed in range(1, SESSIONS + 1)))
    await asyncio.sleep(SECONDS)
    end_mib = resident_mib(pid)
    await people
    cpu = cpu_seconds(pid) - cpu
    for error in crowded.errors[:5]:
        print(error, file=sys.stderr)
    figures = {
        **waits(crowded),
        "server_cpu_for_each_page_s": cpu / max(1, len(crowded.answer_s) + SESSIONS),
        "memory_one_session_mib": alone_mib,
        "memory_end_mib": end_mib,
        "memory_for_each_session_mib": (end_mib - alone_mib) / SESSIONS,
    }
    print(json.dumps(figures), file=sys.stderr)  # they stand, whatever becomes of what follows
    alone = Counts()
    growth_mib = await steady(address, alone, pid)
    for error in alone.errors[:5]:
        print(error, file=sys.stderr)
    return figures | {
        "errors": len(crowded.errors) + len(alone.errors),
        "steady_interactions": STEADY,
        "memory_growth_in_them_mib": growth_mib,
    }


def waits(counts: Counts) -> dict[str, float]:
    """Return how often and how long people waited."""
    answers, verdicts = sorted(counts.answer_s), sorted(counts.verdict_s)
    return {
        "sessions": SESSIONS,
        "seconds": SECONDS,
        "interactions": len(answers),
        "errors": len(counts.errors),
        "first_page_median_s": median(counts.first_s),
        "verdict_median_s": median(verdicts),
        "verdict_p95_s": verdicts[int(0.95 * (len(verdicts) - 1))],
        "whole_page_median_s": median(answers),
        "whole_page_p95_s": answers[int(0.95 * (len(answers) - 1))],
    }


async def steady(url: str, counts: Counts, pid: int) -> float:
    """Change inputs in one session without a pause; return by how much the server's memory grew. [MiB]"""
    async with connect(url, subprotocols=["streamlit"], max_size=None) as connection:  # type: ignore[list-item]
        session = Session(connection, counts, 1)
        await session.ask()
        for _ in range(WARMING):
            await session.change()
        before = resident_mib(pid)
        for number in range(1, STEADY + 1):
            await session.change()
            if number % TOLD_EVERY == 0:
                grown_mib = resident_mib(pid) - before
                print(f"{number} of {STEADY} steady changes, {grown_mib:+.1f} MiB", file=sys.stderr)
        return resident_mib(pid) - before


def cpu_seconds(pid: int) -> float:
    """Return the processor time that a process has used. [s]"""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident_mib(pid: int) -> float:
    """Return the memory that a process holds. [MiB]"""
    text = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    line = next(line for line in text.splitlines() if line.startswith("VmRSS:"))
    return int(line.split()[1]) / 1024


def server_pid(url: str) -> int:
    """Return the process that was started with the port of this address."""
    port = url.rpartition(":")[2]
    for entry in Path("/proc").iterdir():
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if b"dashboard" in words and port.encode() in words:
            return int(entry.name)
    raise RuntimeError(f"no process serves {url}")


def main() -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as folder:
        database = Path(folder) / "breakeven.db"
        with running_server(database) as url:
            print(json.dumps(asyncio.run(crowd(url, server_pid(url)))))


if __name__ == "__main__":
    main()
