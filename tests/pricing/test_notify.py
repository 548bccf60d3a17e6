"""What is announced of a run, and that it arrives."""

import json
import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from pricing import notify
from pricing.running.reports import ExchangeReport, ProviderReport, RunReport
from pricing.storage.memory import RunStatus
from pricing.store import Store
from pricing.tokens.tokenprices import TokenReport
from pricing.verification.moves import Move
from tests.pricing.samples import ACME, DAY, MORNING, offer, run


def report(*parts: ProviderReport) -> RunReport:
    return RunReport(started_at=MORNING, finished_at=MORNING + timedelta(seconds=90), providers=parts)


def part(name: str = "vultr", **changes: Any) -> ProviderReport:
    fields: dict[str, Any] = {"provider": name, "title": name.title(), "status": RunStatus.OK, "reason": None}
    return ProviderReport(**(fields | changes))


def move(old: str, new: str, provider: str = "vultr") -> Move:
    return Move(
        provider=provider,
        gpu="H100 SXM",
        gpu_count=8,
        region="ewr",
        tier="on_demand",
        old_usd_per_hour=Decimal(old),
        new_usd_per_hour=Decimal(new),
    )


def test_a_quiet_run_is_not_announced() -> None:
    assert notify.announcement(report(part(), part("lambda", status=RunStatus.SKIPPED)), [], 20) is None


def test_failures_held_back_prices_and_moves_are() -> None:
    failed = part(status=RunStatus.FAILED, reason="HTTP 503 from api.vultr.com")
    held = part("runpod", quarantined=3, rejected=1)
    moves = [move("23.92", "35.88"), move("20.00", "21.00")]
    assert notify.announcement(report(failed, held, part("aws")), moves, 20) == (
        "breakeven: 1 of 3 sources failed, 3 prices in quarantine, 1 rejected, 1 list price moved",
        "failed: Vultr: HTTP 503 from api.vultr.com\n"
        "held back: Runpod: 3 in quarantine, 1 rejected\n"
        "moved: Vultr 8x H100 SXM (on_demand, ewr): 23.92 to 35.88 USD/h (+50 %)\n"
        "`breakeven prices rejected` says why prices are held back.\n"
        "Run of 2026-11-30 03:07 UTC.",
    )


def test_rates_of_exchange_that_are_held_back_are_told_and_what_a_page_lacks_is_not() -> None:
    def rates(**fields: Any) -> RunReport:
        exchange = ExchangeReport(as_of="2026-10-30", source="the bank", **({"reason": None} | fields))
        return replace(report(part()), exchange=exchange)

    assert notify.announcement(rates(odd=("not on the page: CHF",)), [], 20) is None
    assert notify.announcement(rates(reason="HTTP 503"), [], 20) == (
        "breakeven: rates of exchange not taken",
        "no new rates of exchange (HTTP 503); those of 2026-10-30 were used\nRun of 2026-11-30 03:07 UTC.",
    )
    told = notify.announcement(rates(odd=("GBP 85 per euro",), held=1), [], 20)
    assert told is not None
    assert told[1].startswith("rates of exchange of 2026-10-30 (the bank); GBP 85 per euro")


def test_a_list_of_token_prices_that_did_not_come_is_told() -> None:
    made = replace(report(part()), token_prices=TokenReport(verified=12, quarantined=3))
    assert notify.announcement(made, [], 20) is None
    assert notify.announcement(replace(made, token_prices=TokenReport(reason="cut short")), [], 20) == (
        "breakeven: no prices of API tokens",
        "no new prices of API tokens (cut short); the last ones stand\nRun of 2026-11-30 03:07 UTC.",
    )


@pytest.mark.parametrize(
    ("old", "new", "is_told"), [("10", "12", True), ("10", "11.9", False), ("10", "8", True)]
)
def test_a_move_is_told_from_the_threshold_on(old: str, new: str, is_told: bool) -> None:
    assert (notify.announcement(report(part()), [move(old, new)], 20) is not None) is is_told
    assert notify.announcement(report(part()), [move(old, new)], 0) is None


@pytest.mark.parametrize(("provider", "is_told"), [("vastai", False), ("lium", False), ("runpod", True)])
def test_asks_of_hosts_are_not_told_and_the_list_of_a_marketplace_is(provider: str, is_told: bool) -> None:
    assert (notify.announcement(report(part()), [move("1", "3", provider)], 20) is not None) is is_told


def test_a_long_list_is_cut_and_counted() -> None:
    failed = [part(f"p{number}", status=RunStatus.FAILED, reason="x" * 400) for number in range(8)]
    told = notify.announcement(report(*failed), [], 20)
    assert told is not None
    lines = told[1].splitlines()
    assert lines[5] == "and 3 more"
    assert max(map(len, lines)) == 160


def test_the_moves_of_a_run_are_found(store: Store) -> None:
    second = MORNING + DAY
    store.record(run(offer("2.00"), offer("5.00", region="b"), offer("7.00", region="c")))
    prices = [("3.00", "us-east-1"), ("4.00", "b"), ("7.00", "c"), ("1.00", "new")]
    store.record(run(*(offer(usd, region=region, at=second) for usd, region in prices)))
    assert [(one.provider, one.region, round(one.percent)) for one in store.moves(second)] == [
        (ACME, "us-east-1", 50),
        (ACME, "b", -20),
    ]
    assert store.moves(MORNING) == []


# --- through apprise


class Receiver(ThreadingHTTPServer):
    """A place on this machine that takes announcements as JSON."""

    def __init__(self) -> None:
        self.got: list[dict[str, Any]] = []
        self.code = 200
        super().__init__(("127.0.0.1", 0), _Handler)
        self.thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.01})
        self.thread.start()

    @property
    def url(self) -> str:
        return f"json://user:pa55word@127.0.0.1:{self.server_port}/prices"


class _Handler(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        self.server.got.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.send_response(self.server.code)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    server = Receiver()
    yield server
    server.shutdown()
    server.server_close()
    server.thread.join()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of the libraries behind apprise
def test_an_announcement_arrives(receiver: Receiver) -> None:
    assert notify.send(receiver.url, "breakeven: 1 of 3 sources failed", "failed: Vultr")
    assert [(one["title"], one["message"]) for one in receiver.got] == [
        ("breakeven: 1 of 3 sources failed", "failed: Vultr")
    ]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("url", ["nothing://at-all", "refused"])
def test_what_cannot_be_sent_is_logged_without_the_address(
    receiver: Receiver, url: str, caplog: pytest.LogCaptureFixture
) -> None:
    receiver.code = 500
    assert not notify.send(receiver.url if url == "refused" else url, "title", "text")
    assert "BREAKEVEN_NOTIFY_URL" in caplog.text
    assert "pa55word" not in caplog.text


def test_without_apprise_a_line_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(notify, "find_spec", lambda name: None)
    assert not notify.send("json://127.0.0.1/", "title", "text")
    assert "pip install 'breakeven[notify]'" in caplog.text
