"""Schedule, reviews, own prices and the state of the refresh, through the command line."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from pricing.money.ecb import DayRates
from pricing.money.rateverdicts import judge
from pricing.running import runs
from pricing.store import Store
from tests.conftest import NOW, ROOT
from tests.pricing.loopback import LoopbackServer, nowhere
from tests.pricing.samples import offer, run, waiting

DAY = timedelta(days=1)


@pytest.fixture
def store(database: Path) -> Any:
    with Store.open(f"sqlite:///{database}") as store:
        yield store


def held(store: Store) -> str:
    store.record(run(offer("2.69", at=NOW - DAY)))
    one = waiting("10.76", at=NOW - timedelta(hours=1))
    store.record(run(one))
    return one.id


def test_accepting_a_price_says_what_was_done(cli: Callable[..., Any], store: Store) -> None:
    name = held(store)
    ran = cli("prices", "accept", name, "--reason", "seen on the page", "--json")
    assert ran.code == 0, ran.err
    document = json.loads(ran.out)
    assert document["schema"] == "breakeven.review/1"
    (review,) = document["reviews"]
    assert (review["decision"], review["id"], review["reason"]) == ("accept", name, "seen on the page")
    assert review["decided_by"]
    assert document["offers"][0]["verdict"] == "verified"
    assert [one.usd_per_hour for one in store.current_offers(provider="acme")] == [Decimal("10.76")]


def test_rejecting_needs_a_reason_and_a_known_price(cli: Callable[..., Any], store: Store) -> None:
    name = held(store)
    assert cli("prices", "reject", name).code == 2
    assert cli("prices", "reject", name, "--reason", " ").code == 2
    ran = cli("prices", "reject", "0000000000", "--reason", "x")
    assert (ran.code, ran.out) == (2, "")
    assert "unknown offer '0000000000'" in ran.err
    ran = cli("prices", "reject", name, "--reason", "a term total")
    assert (ran.code, ran.out) == (0, "rejected: acme h100.1x, 10.76 USD/h\n")


def test_an_acceptance_is_taken_back_with_its_price(cli: Callable[..., Any], store: Store) -> None:
    name = held(store)
    assert cli("prices", "accept", name, "--reason", "a mistake").code == 0
    store.record(run(waiting("2.69", at=NOW)))
    ran = cli("prices", "reject", name, "--reason", "back")
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert "10.76 USD/h (accepted, in force) and 2.69 USD/h (waits)" in ran.err
    assert "--price 10.76" in ran.err
    ran = cli("prices", "reject", name, "--reason", "back", "--price", "10.76")
    assert (ran.code, ran.out) == (0, "rejected: acme h100.1x, 10.76 USD/h\n")
    assert [one.usd_per_hour for one in store.current_offers(provider="acme")] == [Decimal("2.69")]


def test_one_unknown_offer_decides_nothing(cli: Callable[..., Any], store: Store) -> None:
    name = held(store)
    ran = cli("prices", "accept", name, "ffffffffffff", "--reason", "x")
    assert (ran.code, ran.out) == (2, "")
    assert "unknown offer 'ffffffffffff'" in ran.err
    assert "none of the 2 was accepted" in ran.err
    assert [one.usd_per_hour for one in store.current_offers(provider="acme")] == [Decimal("2.69")]
    assert "one ID at a time" in cli("prices", "accept", name, "ff", "--reason", "x", "--price", "3").err


def test_the_state_is_an_exit_code_and_a_document(cli: Callable[..., Any], store: Store) -> None:
    ran = cli("prices", "status", "--check", "--json")
    assert ran.code == 1
    assert json.loads(ran.out)["healthy"] is False
    started = f"{NOW - timedelta(hours=9):%Y-%m-%dT%H:%M:%SZ}"
    for note in (runs.LAST_RUN, runs.LAST_GOOD_RUN):
        store.note(note, {"started_at": started, "exit_code": 0})
    ran = cli("prices", "status", "--check")
    assert (ran.code, ran.out.startswith("healthy: refreshed 9.0 h ago")) == (0, True)
    assert cli("prices", "status", "--check", "--max-age", "8").code == 1
    document = json.loads(cli("prices", "status", "--json").out)
    assert document["health"]["last_good_run"]["started_at"] == started


def test_a_rate_of_exchange_that_waits_is_named_and_a_person_takes_it(
    cli: Callable[..., Any], store: Store
) -> None:
    state = store.exchange_state()
    page = {currency: rate.units for currency, rate in state.known.items()} | {"GBP": Decimal("1.0100")}
    day = DayRates(as_of=date(2026, 11, 30), units_per_euro=page)
    store.keep_exchange_rates(judge(day, state.known, state.waiting), NOW)
    shown = cli("prices", "status")
    assert "rate of exchange: GBP 1.0100 per euro, after 0.8338 on 2026-10-30" in shown.out
    (held,) = cli("prices", "status", "--json").document["exchange_rates"]["held"]
    assert (held["currency"], held["units_per_euro"], held["rule"], held["days"]) == (
        *("GBP", "1.0100", "move"),
        ["2026-11-30"],
    )
    ran = cli("prices", "accept", "ecb:gbp", "--reason", "seen at the bank")
    assert (ran.code, ran.out) == (0, "accepted: GBP 1.0100 per euro of 2026-11-30\n")
    assert store.exchange_rates()["GBP"].as_of == "2026-11-30"
    assert cli("prices", "status", "--json").document["exchange_rates"]["held"] == []
    again = cli("prices", "accept", "ecb:GBP", "--reason", "again")
    assert again.code == 2
    assert "'ecb:GBP' is not held back" in again.err
    for odd in (
        ("reject", "ecb:GBP"),
        ("accept", "ecb:GBP", "ecb:USD"),
        ("accept", "ecb:GBP", "--price", "1"),
    ):
        assert cli("prices", *odd, "--reason", "no").code == 2


def test_importing_own_prices(cli: Callable[..., Any], store: Store, tmp_path: Path) -> None:
    ran = cli("import", "--template")
    file = tmp_path / "own.csv"
    file.write_text(ran.out, encoding="utf-8")
    ran = cli("import", str(file), "--json")
    assert ran.code == 0, ran.err
    assert json.loads(ran.out) == {
        "schema": "breakeven.import/1",
        "sources": ["contract 4711", "quote 2026-118"],
        "new": 1,
        "changed": 0,
        "unchanged": 0,
        "ended": 0,
        "quotes": 1,
    }
    assert ran.err == ""
    assert [str(rate.status) for rate in store.rates(NOW, provider="acme-cloud")] == ["own"]
    file.write_text("kind,provider,gpu,price\nbuy,Acme,H100 SXM,0.25\n", encoding="utf-8")
    ran = cli("import", str(file), "--source", "a quote")
    assert (ran.code, ran.err.count("\n")) == (0, 1)
    assert "card H100 SXM from Acme: 0.25 USD is" in ran.err


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"kind,provider,gpu,price\nrent,A,H1000,2\n", "row 2: unknown GPU 'H1000'"),
        (b"\xff\xfe", "is not UTF-8 text"),
        (b"", "holds no row"),
    ],
)
def test_a_file_that_cannot_be_taken_is_one_line(
    cli: Callable[..., Any], database: Path, tmp_path: Path, content: bytes, message: str
) -> None:
    file = tmp_path / "own.csv"
    file.write_bytes(content)
    ran = cli("import", str(file), "--source", "x")
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert message in ran.err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--at", "25:00"), "--at: '25:00' is not a time such as 03:00"),
        (("--timezone", "Europe/Berln"), "close matches: Europe/Berlin"),
        (("--jitter", "-1"), "--jitter: -1 is not allowed"),
    ],
)
def test_an_odd_schedule_is_refused(
    cli: Callable[..., Any], database: Path, options: tuple[str, ...], message: str
) -> None:
    ran = cli("schedule", *options)
    assert ran.code == 2
    assert message in ran.err


def process(*arguments: str, environ: dict[str, str]) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "dashboard", *arguments],
        cwd=ROOT,
        env={**os.environ, **environ, "PYTHONPATH": str(ROOT)},
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def test_a_night_that_another_has_just_made_is_not_made_again(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dashboard.commands import schedule
    from dashboard.commands.base import Context
    from pricing.errors import RunMade
    from pricing.settings import Settings

    def refreshed(*arguments: object) -> None:
        pytest.fail("a second whole run")

    monkeypatch.setattr(runs, "_refreshed", refreshed)
    store.note(runs.LAST_GOOD_RUN, {"started_at": f"{NOW - timedelta(minutes=5):%Y-%m-%dT%H:%M:%SZ}"})
    context = Context(clock=lambda: NOW, environ={}, tell=print, show=print)
    with pytest.raises(RunMade):
        schedule._night(store, Settings(database_url=store.label), context)


def test_a_run_in_which_only_a_catalogue_of_others_answered_has_brought_no_prices(
    cli: Callable[..., Any], store: Store, shared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with LoopbackServer() as server:
        server.serve_payloads(shared / "data/prices/payloads", ["skypilot"])
        for name, value in {**nowhere(), **server.environ("skypilot")}.items():
            monkeypatch.setenv(name, value)
        assert cli("schedule", "--once").code == 1
        assert store.noted(runs.LAST_RUN)["sources"]["ok"] == 1  # type: ignore[index]
        assert store.noted(runs.LAST_GOOD_RUN) is None
        ran = cli("prices", "status", "--check")
        assert (ran.code, ran.out[:9]) == (1, "unhealthy")
        server.serve_payloads(shared / "data/prices/payloads", ["vultr"])
        monkeypatch.setenv("BREAKEVEN_VULTR_BASE_URL", f"{server.url}/vultr")
        assert cli("schedule", "--once").code == 1
    assert cli("prices", "status", "--check").code == 0
    listed = cli("prices", "list", "--provider", "aws", "--limit", 0).out.splitlines()
    assert any(" says skypilot " in line for line in listed)
    assert not any(" verified " in line for line in listed)


def test_a_schedule_catches_up_and_ends_on_sigterm(database: Path, shared: Path) -> None:
    """A real process: all providers but the four of the server are refused at once on this machine."""
    served = ("runpod", "vastai", "vultr", "digitalocean")
    with LoopbackServer() as server:
        server.serve_payloads(shared / "data/prices/payloads", list(served))
        environ = {**nowhere(), **server.environ(*served), "BREAKEVEN_DATABASE_URL": f"sqlite:///{database}"}
        with process("schedule", "--json", environ=environ) as running:
            assert running.stdout is not None
            text = ""
            while not text.rstrip().endswith("\n}"):  # the report of the run that was due
                line = running.stdout.readline()
                assert line, running.stderr.read() if running.stderr else ""
                text += line
            running.send_signal(signal.SIGTERM)
            _, errors = running.communicate(timeout=60)
    assert running.returncode == 0, errors
    assert "ended" in errors
    document = json.loads(text)
    assert {part["provider"] for part in document["providers"] if part["status"] == "ok"} >= {
        "vultr",
        "vastai",
    }
    with Store.open(f"sqlite:///{database}") as store:
        noted = store.noted(runs.LAST_GOOD_RUN)
        assert noted is not None
        assert noted["command"] == "breakeven schedule"
        assert store.all_noted(runs.SCHEDULES) == {}


def test_the_history_tells_a_price_that_never_counted_from_one_that_did(
    cli: Callable[..., Any], store: Store
) -> None:
    def states() -> list[str]:
        lines = cli("prices", "history", "--gpu", "H100 SXM", "--limit", 10_000).out.splitlines()
        return [line.split("  ")[-1].strip() for line in lines if " acme " in line]

    held(store)
    assert states() == ["current", "quarantined"]
    store.record(run(offer("2.69", at=NOW)))
    assert states() == ["current", "quarantined, resolved"]
