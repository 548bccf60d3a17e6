"""A real browser and a real server, for tests and for measuring: the page as a person meets it."""

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page, Playwright

ROOT = Path(__file__).resolve().parents[2]
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
ARGUMENTS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
SECONDS_TO_START = 60.0


def find_chromium() -> str | None:
    """Return the browser of this machine."""
    return next((path for path in map(shutil.which, NAMES) if path), None)


def free_port() -> int:
    """Return a port that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def running_server(database: Path, *, base_path: str = "", **environ: str) -> Iterator[str]:
    """Run `breakeven dashboard` on a free port and give its address, once it answers."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    command = [sys.executable, "-m", "dashboard", "dashboard", "--port", str(port)]
    if base_path:
        url, command = f"{url}/{base_path}", [*command, "--base-path", base_path]
    known = {name: value for name, value in os.environ.items() if not name.startswith("BREAKEVEN_")}
    # A file, for nobody reads while it runs: a pipe that is full would hold the server up.
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as said:
        server = subprocess.Popen(
            command,
            cwd=ROOT,
            env={**known, "BREAKEVEN_DATABASE_URL": f"sqlite:///{database}", **environ},
            stdout=subprocess.DEVNULL,
            stderr=said,
        )
        try:
            _wait_until_it_answers(server, f"{url}/_stcore/health", said)
            yield url
        finally:
            server.terminate()
            try:
                server.wait(timeout=15)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait()


@contextmanager
def running_browser(playwright: "Playwright") -> Iterator["Browser"]:
    """Run the browser of this machine."""
    browser = playwright.chromium.launch(executable_path=find_chromium(), args=list(ARGUMENTS))
    try:
        yield browser
    finally:
        browser.close()


@dataclass(slots=True)
class Watched:
    """A page, and everything that should not have happened on it."""

    page: "Page"
    foreign: list[str] = field(default_factory=list)  # requests to another host
    errors: list[str] = field(default_factory=list)  # of the browser's console and of scripts


def watch(context: "BrowserContext", url: str) -> Watched:
    """Open an empty page that notes requests to other hosts and errors."""
    watched = Watched(context.new_page())
    page, own = watched.page, (url, "data:", "blob:", url.replace("http", "ws", 1))
    page.on("request", lambda r: None if r.url.startswith(own) else watched.foreign.append(r.url))
    page.on("websocket", lambda w: None if w.url.startswith(own) else watched.foreign.append(w.url))
    page.on("console", lambda m: watched.errors.append(m.text) if m.type == "error" else None)
    page.on("pageerror", lambda error: watched.errors.append(str(error)))
    return watched


def _wait_until_it_answers(server: subprocess.Popen[bytes], url: str, said: IO[str]) -> None:
    pause = threading.Event()
    for _ in range(int(SECONDS_TO_START / 0.05)):
        if server.poll() is not None:
            said.seek(0)
            raise RuntimeError(f"the server ended with {server.returncode}: {said.read().strip()}")
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except (urllib.error.URLError, OSError):
            pause.wait(0.05)
    raise RuntimeError(f"the server did not answer within {SECONDS_TO_START:g} s")
