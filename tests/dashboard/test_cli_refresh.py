"""`prices refresh` where a provider's answer holds what no price can be."""

import json
from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from pricing import collect
from pricing.store import Store
from tests.conftest import NOW
from tests.pricing.loopback import LoopbackServer

PAIR = ("runpod", "vultr")
# Of which the bundled prices know both clouds.
KNOWN = ("NVIDIA H100 80GB HBM3", "NVIDIA L40S")


def runpod_with(payloads: Path, price: object) -> bytes:
    """RunPod's recorded answer with another price of its B200."""
    document = json.loads((payloads / "runpod_gputypes.json").read_text())
    for row in document["data"]["gpuTypes"]:
        if row["id"] == "NVIDIA B200":
            row["securePrice"] = "HERE"
    return json.dumps(document).replace('"HERE"', str(price)).encode()


@pytest.fixture
def payloads(shared: Path) -> Path:
    return shared / "data/prices/payloads"


@pytest.fixture
def serve(payloads: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    with LoopbackServer() as server:
        server.serve_payloads(payloads, ["vultr"])
        for name, value in server.environ(*PAIR).items():
            monkeypatch.setenv(name, value)
        yield server


@pytest.mark.parametrize("price", ["1e308", "1e15", "5e12", "1e400", "1e999999", "1e-400", "9e18"])
def test_one_absurd_price_costs_only_its_own_row(
    cli: Callable[..., Any], database: Path, payloads: Path, serve: LoopbackServer, price: str
) -> None:
    serve.add("/runpod/graphql", runpod_with(payloads, price), method="POST")
    ran = cli("prices", "refresh", *PAIR, "--json")
    assert ran.code == 0, ran.err
    parts = {part["provider"]: part for part in ran.document["providers"]}
    assert {name: part["status"] for name, part in parts.items()} == {"runpod": "ok", "vultr": "ok"}
    assert parts["runpod"]["rejected"] + parts["runpod"]["problems"] > 0
    assert parts["runpod"]["verified"] > 25
    with Store.open(f"sqlite:///{database}") as store:
        ours = store.current_offers(provider="runpod")
        assert {one.usd_per_hour for one in ours if one.gpu == "H100 SXM" and one.gpu_count == 1} == {
            Decimal("3.29"),
            Decimal("2.69"),
        }
        assert all(one.usd_per_gpu_hour < 20 for one in ours)
        assert all(rate.usd_per_hour < 1000 for rate in store.rates(NOW))


def test_a_fault_in_judging_one_provider_leaves_the_report_and_the_others(
    cli: Callable[..., Any],
    database: Path,
    payloads: Path,
    serve: LoopbackServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def judge(offers: Any, *rest: Any) -> Any:
        if offers and offers[0].provider == "runpod":
            raise OverflowError("cannot convert float infinity to integer")
        return verdicts(offers, *rest)

    verdicts = collect.judge
    monkeypatch.setattr(collect, "judge", judge)
    serve.add("/runpod/graphql", runpod_with(payloads, 6.79), method="POST")
    ran = cli("prices", "refresh", *PAIR, "--json")
    assert ran.code == 1
    parts = {part["provider"]: part for part in ran.document["providers"]}
    assert parts["vultr"]["status"] == "ok"
    assert (parts["runpod"]["status"], parts["runpod"]["reason"]) == (
        "failed",
        "not judged, a fault: OverflowError: cannot convert float infinity to integer",
    )
    status = {one["provider"]: one for one in cli("prices", "status", "--json").document["providers"]}
    assert status["runpod"]["last_run_status"] == "failed"
    assert "OverflowError" in status["runpod"]["last_run_reason"]


@pytest.mark.parametrize(("factor", "verdict"), [(100, "rejected"), (4, "quarantined")])
def test_a_run_that_verifies_nothing_has_failed_and_earlier_prices_stand(
    cli: Callable[..., Any],
    database: Path,
    payloads: Path,
    serve: LoopbackServer,
    factor: int,
    verdict: str,
) -> None:
    document = json.loads((payloads / "runpod_gputypes.json").read_text())
    rows = [row for row in document["data"]["gpuTypes"] if row["id"] in KNOWN]
    assert len(rows) == len(KNOWN)
    serve.add("/runpod/graphql", {"data": {"gpuTypes": rows}}, method="POST")
    assert cli("prices", "refresh", "runpod").code == 0
    with Store.open(f"sqlite:///{database}") as store:
        before = {one.id: one.usd_per_hour for one in store.current_offers(provider="runpod")}
        for row in rows:
            for name in [name for name in row if name.endswith("Price") and isinstance(row[name], float)]:
                row[name] *= factor
        serve.replace("/runpod/graphql", {"data": {"gpuTypes": rows}}, method="POST")
        ran = cli("prices", "refresh", *PAIR, "--json", at=NOW + timedelta(hours=1))
        assert ran.code == 1
        part = ran.document["providers"][0]
        assert (part["status"], part["verified"], part[verdict]) == ("failed", 0, part["offers"])
        assert part["reason"].startswith(f"none of {part['offers']} prices could be verified (")
        assert {one.id: one.usd_per_hour for one in store.current_offers(provider="runpod")} == before
        held = store.rejected(provider="runpod")
        assert {str(one.verdict) for one in held} == {verdict}
    status = {one["provider"]: one for one in cli("prices", "status", "--json").document["providers"]}
    assert (status["runpod"]["last_run_status"], status["runpod"]["failures_since_success"]) == ("failed", 1)
    assert status["runpod"]["last_run_reason"] == part["reason"]
    assert status["vultr"]["last_run_status"] == "ok"


def test_one_source_alone_that_verifies_nothing_is_done_in_part(
    cli: Callable[..., Any], database: Path, payloads: Path, serve: LoopbackServer
) -> None:
    document = json.loads((payloads / "runpod_gputypes.json").read_text())
    for row in document["data"]["gpuTypes"]:
        for name in [name for name in row if name.endswith("Price") and isinstance(row[name], float)]:
            row[name] *= 1000
    serve.add("/runpod/graphql", document, method="POST")
    ran = cli("prices", "refresh", "runpod")
    assert ran.code == 1
    assert ran.err.endswith("1 of 1 source failed, stored prices are as before\n")
    assert ran.out.count("RunPod: none of") == 1
    ran = cli("prices", "refresh", "runpod", "--json")
    assert "stored prices are as before (RunPod: none of" in ran.err


def test_saved_answers_that_verify_nothing_are_a_failed_run_too(
    cli: Callable[..., Any], database: Path, payloads: Path, tmp_path: Path
) -> None:
    document = json.loads((payloads / "vultr_plans_metal.json").read_text())
    for row in document["plans_metal"]:
        for name in [name for name in row if "cost" in name and isinstance(row[name], int | float)]:
            row[name] *= 1000
    file = tmp_path / "metal.json"
    file.write_text(json.dumps(document))
    assert cli("prices", "replay", "vultr", file, "--dry-run").code == 0
    ran = cli("prices", "replay", "vultr", file)
    assert ran.code == 1
    assert "prices could be verified" in ran.err
    status = {one["provider"]: one for one in cli("prices", "status", "--json").document["providers"]}
    assert status["vultr"]["last_run_status"] == "failed"
