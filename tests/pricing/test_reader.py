"""A provider that loops, crashes or hangs fails alone, and soon."""

import io
import os
import pickle
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pytest

from pricing.collect import refresh
from pricing.errors import ParseError, PricingError
from pricing.offer import Billing, Tier, Verdict
from pricing.parsing.reader import Here, Readers, _dumped, _Records
from pricing.provider import Keys, Page, Provider, Request
from pricing.registry import providers
from pricing.settings import Settings
from pricing.storage.memory import ProviderResult, RunStatus
from pricing.store import Store
from pricing.web.asking import Answer, ask, ask_all
from tests.conftest import ROOT
from tests.pricing.samples import offer
from tests.pricing.unruly import (
    Calm,
    Crashing,
    Curious,
    Greedy,
    Leaving,
    Looping,
    Printing,
    Raising,
    Refusing,
    TakenOver,
)

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
PAGES = {"list": Page(key="list", url="https://calm.example/list", body=b"2.69")}


@pytest.fixture(scope="module")
def readers() -> Iterator[Readers]:
    with Readers(limit_s=60.0) as readers:
        yield readers


def read(readers: Readers | Here, provider: Provider) -> tuple[str, Decimal]:
    (offer,) = readers.read(provider, PAGES, seen_at=NOW, fx={}).offers
    return offer.instance_type, offer.usd_per_hour


def test_pages_are_read_in_a_process_that_is_used_again(readers: Readers) -> None:
    first, price = read(readers, Calm())
    assert first != f"process {os.getpid()}"
    assert price == Decimal("2.69")
    assert read(readers, Calm()) == (first, price)
    assert read(Here(), Calm())[0] == f"process {os.getpid()}"


def test_the_result_is_that_of_the_calling_process(readers: Readers) -> None:
    """A real page through both, with its problems, digests and exact amounts."""
    folder = ROOT / "tests/pricing/payloads/scaleway"
    from planner.catalogues.currencies import all_currencies
    from pricing.running.replay import _open

    scaleway = providers()["scaleway"]
    files = sorted(path for path in folder.iterdir() if path.name not in {"meta.json", "expected.json"})
    pages, _ = _open(scaleway, [f"fr-par-2/{path.stem.split('_')[-1]}={path}" for path in files])
    there = readers.read(scaleway, pages, seen_at=NOW, fx=all_currencies())
    here = Here().read(scaleway, pages, seen_at=NOW, fx=all_currencies())
    assert there == here
    assert there.offers


@pytest.mark.parametrize(
    ("provider", "message"),
    [
        (Crashing(), "a fault in its module: reading ended by SIGSEGV"),
        (Raising(), "a fault in its module: ZeroDivisionError: in line 7"),
        (Greedy(), "a fault in its module: MemoryError"),
        (Leaving(), "a fault in its module: reading ended with status 3"),
    ],
)
def test_a_module_that_ends_its_process_fails_alone(
    readers: Readers, provider: Provider, message: str
) -> None:
    with pytest.raises(PricingError) as caught:
        read(readers, provider)
    assert str(caught.value) == message
    assert read(readers, Calm())[1] == Decimal("2.69")


def test_a_page_that_is_not_understood_is_a_parse_error(readers: Readers) -> None:
    with pytest.raises(ParseError, match="list: a login page"):
        read(readers, Refusing())
    before = read(readers, Calm())
    with pytest.raises(ParseError, match="login"):
        read(readers, Refusing())
    assert read(readers, Calm()) == before  # the process went on


def test_what_a_module_prints_is_no_answer(readers: Readers) -> None:
    assert read(readers, Printing())[1] == Decimal("2.69")


def test_an_answer_is_offers_and_nothing_else() -> None:
    with Readers(workers=1) as readers:
        read(readers, TakenOver())  # from now on its process answers with a call of the system
        with pytest.raises(PricingError, match=r"^a fault in its module: it answered with posix\.system$"):
            read(readers, Calm())
        assert read(readers, Calm())[1] == Decimal("2.69")  # another process


def test_an_answer_is_taken_however_python_writes_enumerations(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python 3.11.2, which Debian 12 has, calls `getattr` for a member, and no answer may call anything."""
    for kind in (Tier, Billing, Verdict):
        monkeypatch.setattr(kind, "__reduce_ex__", lambda self, _: (getattr, (type(self), self.name)))
    given = offer(tier=Tier.SPOT, verdict=Verdict.QUARANTINED, reasons=("new",))
    assert b"getattr" in pickle.dumps(given)
    assert _Records(io.BytesIO(_dumped(("read", given)))).load() == ("read", given)


def test_no_key_is_where_pages_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BREAKEVEN_VULTR_API_KEY", "secret")
    with Readers(workers=1) as readers, pytest.raises(ParseError, match=r"^\[\]$"):
        read(readers, Curious())


def test_a_module_that_loops_is_ended_and_the_others_are_read_meanwhile() -> None:
    with Readers(workers=2, limit_s=3.0) as readers:
        ended: list[str] = []

        def loop() -> None:
            with pytest.raises(PricingError) as caught:
                read(readers, Looping())
            ended.append(str(caught.value))

        looping = threading.Thread(target=loop)
        looping.start()
        assert read(readers, Calm())[1] == Decimal("2.69")
        assert ended == []
        looping.join(60)
    assert ended == ["its pages could not be read within 3 s: a fault in its module"]


def test_no_process_is_left_behind() -> None:
    readers = Readers(workers=2)
    number = int(read(readers, Calm())[0].split()[1])
    readers.close()
    with pytest.raises(ProcessLookupError):
        os.kill(number, 0)


def test_a_worker_ends_with_the_process_that_began_it(tmp_path: Path) -> None:
    """Killed in the middle of a run, as by a power cut: the pipe closes, and the worker with it."""
    import subprocess
    import sys

    code = (
        "import os, sys, signal; sys.path.insert(0, sys.argv[1])\n"
        "from tests.pricing.test_reader import *\n"
        "print(read(Readers(), Calm())[0], flush=True); os.kill(os.getpid(), signal.SIGKILL)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code, str(ROOT)], stdout=subprocess.PIPE, text=True, check=False
    )
    worker = Path("/proc") / ran.stdout.split()[1]
    for _ in range(200):
        if not worker.exists() or "\nState:\tZ" in (worker / "status").read_text():
            return
        threading.Event().wait(0.05)
    pytest.fail("the worker is still there")


# -- one that hangs before there is a page ------------------------------------------------------------


def answer_of(provider: Provider) -> Answer:
    result = ProviderResult(
        provider=provider.name,
        status=RunStatus.OK,
        reason=None,
        offers=(),
        problems=(),
        started_at=NOW,
        finished_at=NOW,
    )
    return Answer(result, 0.0)


def test_one_that_hangs_is_left_behind_and_the_others_are_there_before() -> None:
    let_go = threading.Event()

    def ask_one(provider: Provider) -> Answer:
        if provider.name == "vultr":
            let_go.wait(60)
        return answer_of(provider)

    three = [providers()[name] for name in ("oci", "vultr", "crusoe")]
    found = [(provider.name, answer.result) for provider, answer in ask_all(three, ask_one, NOW, limit_s=1.0)]
    let_go.set()
    assert {name for name, result in found[:2]} == {"oci", "crusoe"}
    name, result = found[2]
    assert (name, result.status) == ("vultr", RunStatus.FAILED)
    assert result.reason == "Vultr was not done within 1 s, and was left behind"


class Hanging:
    """A connection that never gets anywhere, as a name server that does not answer."""

    def __init__(self) -> None:
        self.let_go = threading.Event()

    def fetch(self, request: Request, provider: Provider) -> Page:
        if provider.name == "vultr":
            self.let_go.wait(60)
        return Page(key=request.page, url=request.url, body=b"")

    def settle(self, provider: Provider, *, is_read: bool) -> None:
        pass


def test_a_run_goes_on_without_a_provider_that_hangs(file: Path) -> None:
    hanging = Hanging()
    with Store.open(f"sqlite:///{file}") as store:
        settings = Settings(database_url="sqlite://")
        report = refresh(["vultr", "oci"], store, settings, hanging, NOW, limit_s=1.0)
        hanging.let_go.set()
        (status,) = [one for one in store.statuses(NOW) if one.provider == "vultr"]
    reasons = {part.provider: part.reason for part in report.providers}
    assert "was left behind" in str(reasons["vultr"])
    assert "the answer is empty" in str(reasons["oci"])
    assert status.last_run_status is RunStatus.FAILED


def test_a_fault_in_a_module_is_a_reason(readers: Readers) -> None:
    class Given(Hanging):
        def fetch(self, request: Request, provider: Provider) -> Page:
            return PAGES["list"]

    for reader in (readers, Here()):
        answer = ask(Raising(), Given(), reader, Keys(), NOW, dict)
        assert answer.result.status is RunStatus.FAILED
        assert answer.result.reason == "a fault in its module: ZeroDivisionError: in line 7"
