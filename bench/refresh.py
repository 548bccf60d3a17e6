"""
A refresh of all sources from a server that answers after 300 ms, with an AWS offer file of half a gigabyte.

Prints one JSON document. The server is a process of its own; every run is one too, through the real client,
readers and store, on a new SQLite file. Memory is that of a run and of both its readers together.
"""

import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import IO, Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
sys.path.remove(str(ROOT / "bench"))  # a file beside this one is called like a package of the project

DELAY_S = 0.3
FILE_BYTES = 480_000_000
START = datetime(2026, 11, 30, 3, tzinfo=UTC)
KEY = "id-9876543210:secret-0123456789"
OFFERS = "/offers/v1.0/aws/AmazonEC2/current/us-east-1"

# What makes the offer file of a region so large: every instance with each tenancy, system, licence and state
# of capacity on demand, and the used ones with twelve reserved terms. Source: the columns of the file itself.
TENANCIES = ("Shared", "Dedicated", "Host")
SYSTEMS = (
    *(("Linux", software) for software in ("NA", "SQL Web", "SQL Std", "SQL Ent")),
    *(("Windows", software) for software in ("NA", "SQL Web", "SQL Std", "SQL Ent")),
    *((system, "NA") for system in ("RHEL", "SUSE", "Ubuntu Pro", "Red Hat Enterprise Linux with HA")),
)
STATES = ("Used", "UnusedCapacityReservation", "AllocatedCapacityReservation")
TERMS = tuple(
    (years, payment, kind)
    for years in ("1yr", "3yr")
    for payment in ("No Upfront", "Partial Upfront", "All Upfront")
    for kind in ("standard", "convertible")
)


def payloads() -> Path:
    shared = Path(os.environ.get("BREAKEVEN_SHARED", ROOT.parent / "shared"))
    return shared / "data" / "prices" / "payloads"


# -- the offer file -----------------------------------------------------------------------------------


def rows(columns: Sequence[str], number: int) -> Iterator[dict[str, str]]:
    """Yield the rows of one instance type that is not among ours."""
    instance = f"c{7 + number % 3}{'aginz'[number % 5]}.{number}xlarge"
    for tenancy in TENANCIES:
        for system, software in SYSTEMS:
            for state in STATES:
                places = TENANCIES.index(tenancy), SYSTEMS.index((system, software)), STATES.index(state)
                sku = f"{number:06d}{''.join(f'{place:02d}' for place in places)}"
                price = f"{(number % 400 + 1) * 0.0425:.10f}"
                row = dict.fromkeys(columns, "")
                row |= {
                    "SKU": f"{sku:0>16}",
                    "OfferTermCode": "JRTCKXETXF",
                    "RateCode": f"{sku:0>16}.JRTCKXETXF.6YS6EN2CT7",
                    "TermType": "OnDemand",
                    "PriceDescription": f"${price} per On Demand {system} {instance} Instance Hour",
                    "EffectiveDate": "2026-07-01",
                    "StartingRange": "0",
                    "EndingRange": "Inf",
                    "Unit": "Hrs",
                    "PricePerUnit": price,
                    "Currency": "USD",
                    "Product Family": "Compute Instance",
                    "serviceCode": "AmazonEC2",
                    "Location": "US East (N. Virginia)",
                    "Location Type": "AWS Region",
                    "Instance Type": instance,
                    "Current Generation": "Yes",
                    "Instance Family": "Compute optimized",
                    "vCPU": str(4 * (number % 48 + 1)),
                    "Memory": f"{8 * (number % 48 + 1)} GiB",
                    "Tenancy": tenancy,
                    "Operating System": system,
                    "License Model": "No License required",
                    "usageType": f"BoxUsage:{instance}",
                    "operation": "RunInstances:0010",
                    "CapacityStatus": state,
                    "Pre Installed S/W": software,
                    "Region Code": "us-east-1",
                    "serviceName": "Amazon Elastic Compute Cloud",
                    "MarketOption": "OnDemand",
                }
                yield row
                if state != "Used":
                    continue
                for term in TERMS:
                    years, payment, kind = term
                    code = f"RESERVED{TERMS.index(term):02d}"
                    text = f"{system} ({payment}), {instance}, {kind} reserved instance applied"
                    yield row | {
                        "OfferTermCode": code,
                        "RateCode": f"{row['SKU']}.{code}.6YS6EN2CT7",
                        "TermType": "Reserved",
                        "PriceDescription": f"{text} for {years}",
                    }


def write_csv(file: IO[bytes]) -> None:
    """Write the collected file, blown up with other instances to the size of the real one."""
    written = file.write((payloads() / "aws_ec2_offer_sample.csv").read_bytes())
    columns = csv_columns()
    for number in range(1, 10**6):
        lines = ('"' + '","'.join(row.values()) + '"\n' for row in rows(columns, number))
        written += file.write("".join(lines).encode())
        if written >= FILE_BYTES:
            return


def csv_columns() -> list[str]:
    text = (payloads() / "aws_ec2_offer_sample.csv").read_text()
    header = next(line for line in text.splitlines() if line.startswith('"SKU"'))
    return header.strip('"').split('","')


def write_json(file: IO[bytes]) -> None:
    """Write the same in its other form: all products, then their terms on demand, then the reserved ones."""
    sample = json.loads((payloads() / "aws_ec2_offer_sample.json").read_text())
    one = list(rows(csv_columns(), 1))
    size = sum(len(dumped(entry)) for entry in (*products(one).items(), *terms(one, "OnDemand").items()))
    size += sum(len(dumped(entry)) for entry in terms(one, "Reserved").items())
    instances = range(1, FILE_BYTES // size + 1)
    head = {key: value for key, value in sample.items() if key not in {"products", "terms"}}
    file.write(dumped(head)[:-1] + b', "products": ')
    write_object(file, sample["products"], (products(rows(csv_columns(), n)) for n in instances))
    file.write(b', "terms": {"OnDemand": ')
    write_object(
        file, sample["terms"]["OnDemand"], (terms(rows(csv_columns(), n), "OnDemand") for n in instances)
    )
    file.write(b', "Reserved": ')
    write_object(file, {}, (terms(rows(csv_columns(), n), "Reserved") for n in instances))
    file.write(b"}}")


def dumped(value: object) -> bytes:
    return json.dumps(value, indent=1).encode()


def write_object(file: IO[bytes], first: dict[str, Any], more: Iterator[dict[str, Any]]) -> None:
    """Write one JSON object in pieces."""
    file.write(b"{")
    is_first = True
    for part in chain([first], more):
        if part:
            file.write((b"" if is_first else b",") + dumped(part)[1:-1])
            is_first = False
    file.write(b"}")


def products(found: Iterable[dict[str, str]]) -> dict[str, Any]:
    names = {
        "Instance Type": "instanceType",
        "vCPU": "vcpu",
        "Memory": "memory",
        "Region Code": "regionCode",
        "Instance Family": "instanceFamily",
        "Tenancy": "tenancy",
        "Operating System": "operatingSystem",
        "CapacityStatus": "capacitystatus",
        "MarketOption": "marketoption",
        "Pre Installed S/W": "preInstalledSw",
        "Location": "location",
        "License Model": "licenseModel",
        "usageType": "usagetype",
        "operation": "operation",
        "serviceName": "servicename",
    }
    return {
        row["SKU"]: {
            "sku": row["SKU"],
            "productFamily": row["Product Family"],
            "attributes": {name: row[column] for column, name in names.items()},
        }
        for row in found
        if row["TermType"] == "OnDemand"
    }


def terms(found: Iterable[dict[str, str]], kind: str) -> dict[str, Any]:
    by_sku: dict[str, Any] = {}
    for row in found:
        if row["TermType"] == kind:
            dimension = {
                "rateCode": row["RateCode"],
                "description": row["PriceDescription"],
                "beginRange": "0",
                "endRange": "Inf",
                "unit": row["Unit"],
                "pricePerUnit": {"USD": row["PricePerUnit"]},
                "appliesTo": [],
            }
            by_sku.setdefault(row["SKU"], {})[f"{row['SKU']}.{row['OfferTermCode']}"] = {
                "offerTermCode": row["OfferTermCode"],
                "sku": row["SKU"],
                "effectiveDate": "2026-07-01T00:00:00Z",
                "priceDimensions": {row["RateCode"]: dimension},
                "termAttributes": {},
            }
    return by_sku


# -- the server ---------------------------------------------------------------------------------------


def serve(file: str) -> None:
    """Answer for all sources until the input closes; tell their addresses first."""
    from pricing.tokens.litellm import LITELLM
    from tests.pricing.loopback import PAYLOADS, Handler, LoopbackServer

    def offer_file(handler: Handler) -> None:
        with Path(file).open("rb") as body:
            handler.send_response(200)
            handler.send_header("Content-Length", str(Path(file).stat().st_size))
            handler.end_headers()
            handler.connection.sendfile(body)

    with LoopbackServer(delay_s=DELAY_S) as server:
        if file:
            server.add(f"/aws{OFFERS}/index.csv", answer=offer_file)
        server.serve_payloads(payloads(), [name for name in PAYLOADS if not file or name != "aws"])
        server.add("/ecb/stats/eurofxref/eurofxref-daily.xml", RATES)
        server.add(f"/{LITELLM.name}/BerriAI/litellm/main/model_prices_and_context_window.json", token_list())
        print(json.dumps(server.environ(*PAYLOADS, "ecb", LITELLM.name)), flush=True)
        sys.stdin.read()


def token_list() -> dict[str, Any]:
    """Return the recorded prices of API tokens, filled up to the least number of entries of the list."""
    from pricing.tokens.litellm import FEWEST_ENTRIES

    file = ROOT / "tests" / "pricing" / "litellm" / "model_prices.json"
    fill = {"mode": "image_generation", "litellm_provider": "painter"}
    recorded: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return recorded | {f"painter/picture-{number}": fill for number in range(FEWEST_ENTRIES)}


RATES = """<?xml version="1.0" encoding="UTF-8"?>
<gesmes:Envelope xmlns:gesmes="http://www.gesmes.org/xml/2002-08-01"
 xmlns="http://www.ecb.int/vocabulary/2002-08-01/eurofxref">
<Cube><Cube time='2026-11-27'><Cube currency='USD' rate='1.1500'/><Cube currency='HKD' rate='9.0230'/>
<Cube currency='DKK' rate='7.4700'/></Cube></Cube></gesmes:Envelope>"""


# -- a run --------------------------------------------------------------------------------------------


def once(names: list[str]) -> dict[str, Any]:
    """Refresh these sources, or all, in this process; tell how long it took and what memory it needed."""
    from pricing.http import Client
    from pricing.running.runs import run
    from pricing.settings import Settings
    from pricing.store import Store

    settings = Settings.from_environ(os.environ)
    memory = Memory()
    with Store.open(settings.database_url) as store, Client.of(settings) as client:
        start = time.perf_counter()
        report = run(names or None, store, settings, client, START)
        wall_s = time.perf_counter() - start
    return {
        "wall_s": wall_s,
        "seconds": {part.provider: part.seconds for part in report.providers},
        "failed": [f"{part.provider}: {part.reason}" for part in report.providers if part.status != "ok"],
        "cpu_s": cpu_s(),
        "memory_mb": memory.peak_mb(),
    }


def replay_json(file: str) -> dict[str, Any]:
    """Read a saved offer file in its other form, in this process."""
    from pricing.running.replay import replay
    from pricing.store import Store

    memory = Memory()
    with Store.in_memory() as store:
        start = time.perf_counter()
        found = replay("aws", [file], store, START, is_dry_run=True)
        seconds = time.perf_counter() - start
    return {"seconds": seconds, "offers": len(found.offers), "memory_mb": memory.peak_mb()}


def cpu_s() -> float:
    """Return the time that processors worked for this process and those that it began. [s]"""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


class Memory:
    """
    The largest memory of this process and of all that it begins, added up though they need not coincide.

    The system's own figure for children is that of the parent at the time of the fork.
    """

    def __init__(self) -> None:
        self._peaks: dict[str, int] = {}
        self._is_done = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def peak_mb(self) -> float:
        """Return it. [MB]"""
        self._is_done.set()
        self._thread.join()
        return sum(self._peaks.values()) * 1024 / 1e6

    def _watch(self) -> None:
        while not self._is_done.wait(0.02):
            threads = Path("/proc/self/task").iterdir()
            children = [number for thread in threads for number in _text(thread / "children").split()]
            for number in ("self", *children):
                for line in _text(Path("/proc") / number / "status").splitlines():
                    if line.startswith("VmHWM:"):
                        self._peaks[number] = int(line.split()[1])


def _text(file: Path) -> str:
    try:
        return file.read_text()
    except OSError:  # it has ended
        return ""


# -- the measurement ----------------------------------------------------------------------------------


def child(folder: Path, environ: dict[str, str], *arguments: str) -> dict[str, Any]:
    """Run this script in a mode, on a database of its own."""
    file = folder / f"{len(list(folder.iterdir()))}.db"
    shutil.copy(folder / "ready.db", file)
    keys = {name.replace("_BASE_URL", "_API_KEY"): KEY for name in environ}
    ran = subprocess.run(
        [sys.executable, __file__, *arguments],
        env={
            **os.environ,
            **environ,
            **keys,
            "BREAKEVEN_DATABASE_URL": f"sqlite:///{file}",
            "BREAKEVEN_CACHE_DIR": str(folder / f"{file.stem}.cache"),
        },
        stdout=subprocess.PIPE,
        check=True,
        text=True,
    )
    found: dict[str, Any] = json.loads(ran.stdout)
    return found


def measure(folder: Path, file: str) -> dict[str, Any]:
    """Measure all sources together and each alone."""
    from pricing.registry import providers

    with subprocess.Popen(
        [sys.executable, __file__, "serve", file], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        environ = json.loads(server.stdout.readline())
        together = child(folder, environ, "once")
        if together["failed"]:
            raise SystemExit(f"not all sources answered: {together['failed']}")
        slow = sorted(together["seconds"], key=together["seconds"].__getitem__)[-5:]
        runs = {name: child(folder, environ, "once", name) for name in {*slow, "aws"}}
        alone = {name: found["wall_s"] for name, found in runs.items()}
        server.stdin.close()
    slowest = max(alone, key=alone.__getitem__)
    return {
        "sources": len(providers()),
        "all_s": together["wall_s"],
        "slowest": slowest,
        "slowest_alone_s": alone[slowest],
        "ratio": together["wall_s"] / alone[slowest],
        "peak_memory_mb": together["memory_mb"],
        "all_cpu_s": together["cpu_s"],
        "aws_alone_s": alone["aws"],
        "aws_alone_cpu_s": runs["aws"]["cpu_s"],
    }


def main() -> int:
    """Measure without the large file and with it."""
    modes = {"once": once, "serve": lambda names: serve(*names), "json": lambda names: replay_json(*names)}
    if sys.argv[1:]:
        found = modes[sys.argv[1]](sys.argv[2:])
        if found is not None:
            print(json.dumps(found))
        return 0
    from pricing.storage import database

    figures: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        database.ensure(f"sqlite:///{folder / 'ready.db'}")
        figures["small_files"] = measure(folder, "")
        large = folder / "index.csv"
        with large.open("wb") as file:
            write_csv(file)
        figures["with_offer_file"] = measure(folder, str(large))
        size_mb = large.stat().st_size / 1e6
        speed = size_mb / figures["with_offer_file"]["aws_alone_s"]
        more_cpu_s = figures["with_offer_file"]["aws_alone_cpu_s"] - figures["small_files"]["aws_alone_cpu_s"]
        figures["with_offer_file"] |= {
            "offer_file_mb": size_mb,
            "offer_file_mb_per_s": speed,
            "offer_file_mb_per_cpu_s": size_mb / more_cpu_s,
        }
        large.unlink()
        saved = folder / "index.json"
        with saved.open("wb") as file:
            write_json(file)
        replayed = child(folder, {}, "json", str(saved))
        size_mb = saved.stat().st_size / 1e6
        figures["saved_json"] = {**replayed, "mb": size_mb, "mb_per_s": size_mb / replayed["seconds"]}
    print(json.dumps(figures, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
