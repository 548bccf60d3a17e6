"""A run over providers, through the real HTTP client against a server on this machine."""

import json
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from pricing.collect import RunReport, refresh, source_names, why_unverified
from pricing.errors import ParseError, UnknownProvider
from pricing.http import Client
from pricing.offer import Verdict
from pricing.running.replay import ReplayError, replay
from pricing.settings import Settings
from pricing.storage.memory import ProviderResult, RunStatus
from pricing.store import Store
from pricing.web.addresses import without_secrets
from tests.conftest import ROOT
from tests.pricing.known import offer
from tests.pricing.loopback import LoopbackServer

RECORDINGS = ROOT / "tests" / "pricing" / "payloads"
FOUR = ("runpod", "vastai", "vultr", "digitalocean")
KEY = "dop_v1_secret"


@pytest.fixture
def server() -> Iterator[LoopbackServer]:
    with LoopbackServer() as server:
        yield server


@pytest.fixture
def market() -> Iterator[Store]:
    """A store in memory with the bundled prices."""
    with Store.in_memory() as store:
        yield store


def gpu_types(**prices: object) -> dict[str, object]:
    """RunPod's answer for one type of GPU, an H100 at the price of the day."""
    row = {
        "id": "NVIDIA H100 80GB HBM3",
        "displayName": "H100 SXM",
        "memoryInGb": 80,
        "secureCloud": True,
        "communityCloud": True,
        "securePrice": 3.99,
        "communityPrice": 2.69,
        "maxGpuCount": 1,
    }
    return {"data": {"gpuTypes": [row | prices]}}


def run(
    store: Store, server: LoopbackServer, names: tuple[str, ...], now: datetime, **more: str
) -> RunReport:
    settings = Settings.from_environ(server.environ(*names) | more)
    with Client(base_urls=settings.base_urls, secrets=[KEY], sleep=lambda _: None) as client:
        return refresh(names, store, settings, client, now)


def rented(store: Store, now: datetime, provider: str) -> dict[tuple[str, int, str], tuple[str, str]]:
    return {
        (rate.gpu, rate.gpu_count, str(rate.tier)): (rate.usd_per_hour_text, str(rate.status))
        for rate in store.rates(now, provider=provider)
    }


def test_the_collected_payloads_of_four_providers_become_verified_prices(
    shared: Path, market: Store, server: LoopbackServer, now: datetime
) -> None:
    server.serve_payloads(shared / "data" / "prices" / "payloads", FOUR)
    report = run(market, server, FOUR, now, BREAKEVEN_DIGITALOCEAN_API_KEY=KEY)
    assert report.exit_code == 0
    assert {part.provider: part.status for part in report.providers} == dict.fromkeys(FOUR, RunStatus.OK)
    # Of Vast.ai's hosts none is known by name: the asks wait for days, and the collected ones stand.
    assert {part.provider for part in report.providers if part.verified} == {*FOUR} - {"vastai"}
    assert rented(market, now, "runpod")["B200", 2, "community"] == ("11.96", "verified")
    assert rented(market, now, "digitalocean")["H100 SXM", 8, "on_demand"] == ("35.28", "verified")
    assert rented(market, now, "digitalocean")["Instinct MI300X", 8, "on_demand"] == ("20.72", "verified")


def test_a_refresh_supersedes_the_bundled_prices_of_that_provider_only(
    market: Store, server: LoopbackServer, now: datetime
) -> None:
    others = len(market.rates(now, provider="vultr"))
    server.add("/runpod/graphql", gpu_types(), method="POST")
    run(market, server, ("runpod",), now)
    assert {status for _, status in rented(market, now, "runpod").values()} == {"verified"}
    assert len(market.rates(now, provider="vultr")) == others
    assert {rate.status for rate in market.rates(now, provider="vultr")} == {"snapshot"}


def test_one_provider_that_fails_leaves_the_others_and_all_stored_prices(
    market: Store, server: LoopbackServer, now: datetime
) -> None:
    server.add("/runpod/graphql", gpu_types(), method="POST")
    server.add("/vultr/v2/plans", b"<html><body>Sign in</body></html>")
    server.add("/vultr/v2/plans-metal", b"<html><body>Sign in</body></html>")
    before = market.rates(now, provider="vultr")
    report = run(market, server, ("runpod", "vultr"), now)
    parts = {part.provider: part for part in report.providers}
    assert report.exit_code == 1
    assert parts["runpod"].status is RunStatus.OK
    assert parts["vultr"].status is RunStatus.FAILED
    assert "HTML came where JSON was expected" in str(parts["vultr"].reason)
    assert market.rates(now, provider="vultr") == before


def test_nothing_reachable_is_exit_3_and_nothing_is_lost(market: Store, now: datetime) -> None:
    before = market.rates(now)
    settings = Settings.from_environ({"BREAKEVEN_RUNPOD_BASE_URL": "http://127.0.0.1:9"})
    with Client(base_urls=settings.base_urls, sleep=lambda _: None) as client:
        report = refresh(["runpod"], market, settings, client, now)
    assert report.exit_code == 3
    assert report.providers[0].status is RunStatus.FAILED
    assert market.rates(now) == before


def test_a_missing_key_is_skipped_with_the_variable_that_sets_it(
    market: Store, server: LoopbackServer, now: datetime
) -> None:
    report = run(market, server, ("shadeform",), now)
    assert report.providers[0].status is RunStatus.SKIPPED
    assert "BREAKEVEN_SHADEFORM_API_KEY" in str(report.providers[0].reason)
    assert server.received == []


def test_a_changed_price_closes_the_old_one_and_keeps_it(
    market: Store, server: LoopbackServer, now: datetime
) -> None:
    server.add("/runpod/graphql", gpu_types(), method="POST")
    server.add("/runpod/graphql", gpu_types(securePrice=4.19), method="POST")
    run(market, server, ("runpod",), now)
    later = now + timedelta(days=1)
    run(market, server, ("runpod",), later)
    assert rented(market, later, "runpod")["H100 SXM", 1, "secure"] == ("4.19", "verified")
    prices = [
        (str(offer.usd_per_hour), offer.closed_at is None)
        for offer in market.history(gpu="H100 SXM", provider="runpod", tier="secure")
        if offer.origin == "refresh"
    ]
    assert [(price.rstrip("0"), is_open) for price, is_open in prices] == [("3.99", False), ("4.19", True)]


def test_a_great_move_waits_and_the_last_verified_one_stays(
    market: Store, server: LoopbackServer, now: datetime
) -> None:
    server.add("/runpod/graphql", gpu_types(), method="POST")
    server.add("/runpod/graphql", gpu_types(securePrice=9.9), method="POST")
    run(market, server, ("runpod",), now)
    later = now + timedelta(days=1)
    report = run(market, server, ("runpod",), later)
    assert report.providers[0].quarantined + report.providers[0].rejected == 1
    assert rented(market, later, "runpod")["H100 SXM", 1, "secure"] == ("3.99", "verified")
    note = next(r.note for r in market.rates(later, provider="runpod") if r.tier == "secure")
    assert note is not None
    assert "9.9" in note


def test_a_run_that_verifies_nothing_says_what_most_of_its_prices_wait_for() -> None:
    """Two new prices have the same words; five that doubled have each their own, and one in common."""
    new = [offer("0.13", reasons=("first community price",), verdict=Verdict.QUARANTINED)] * 2
    moved = [
        offer(
            price,
            reasons=(f"2.00 times {price} USD", "5 of 5 prices moved at once"),
            verdict=Verdict.QUARANTINED,
        )
        for price in ("2", "3", "4", "5", "6")
    ]
    assert why_unverified([*new, *moved]) == (
        "none of 7 prices could be verified (0 rejected), so earlier ones stand; "
        "of 5: 5 of 5 prices moved at once"
    )


def test_a_fault_in_a_module_is_a_failure_of_that_provider(
    market: Store, server: LoopbackServer, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("boom")

    monkeypatch.setattr("pricing.providers.vultr.Vultr.parse", broken)
    server.add("/runpod/graphql", gpu_types(), method="POST")
    server.add("/vultr/v2/plans", {"plans": [], "meta": {"total": 0, "links": {"next": ""}}})
    server.add("/vultr/v2/plans-metal", {"plans_metal": [], "meta": {"total": 0, "links": {"next": ""}}})
    report = run(market, server, ("runpod", "vultr"), now)
    assert report.exit_code == 1
    assert "RuntimeError: boom" in str(report.providers[1].reason)


def test_keys_never_reach_a_report(market: Store, server: LoopbackServer, now: datetime) -> None:
    server.add("/digitalocean/v2/sizes", b"no", status=401)
    page = (RECORDINGS / "digitalocean" / "pricing.html").read_text()
    server.add("/digitalocean/products/droplets/details/pricing/", page)
    report = run(market, server, ("digitalocean",), now, BREAKEVEN_DIGITALOCEAN_API_KEY=KEY)
    assert any(KEY in value for request in server.received for value in request.headers.values())
    assert KEY not in json.dumps(report.to_document())


def test_keys_that_a_source_sends_back_are_never_stored(
    market: Store, server: LoopbackServer, now: datetime
) -> None:
    sizes = json.loads((RECORDINGS / "digitalocean" / "sizes.json").read_text())
    sizes["sizes"].append({"slug": f"gpu {KEY}", "gpu_info": {"count": "none", "model": f"model {KEY}"}})
    sizes["meta"]["total"] = len(sizes["sizes"])
    server.add("/digitalocean/v2/sizes", sizes)
    page = (RECORDINGS / "digitalocean" / "pricing.html").read_text()
    page = page.replace("NVIDIA H100 (8x)", f"NVIDIA H100 {KEY} (8x)", 1)
    server.add("/digitalocean/products/droplets/details/pricing/", page)
    answers: list[ProviderResult] = []

    class Listening:
        def __getattr__(self, name: str) -> Any:
            return getattr(market, name)

        def record(self, result: ProviderResult) -> Any:
            answers.append(result)
            return market.record(result)

    settings = Settings.from_environ(server.environ("digitalocean") | {"BREAKEVEN_DIGITALOCEAN_API_KEY": KEY})
    with Client(base_urls=settings.base_urls, secrets=[], sleep=lambda _: None) as client:
        refresh(("digitalocean",), Listening(), settings, client, now)
    (result,) = answers
    text = repr(result)
    assert KEY not in text, text[text.index(KEY) - 300 : text.index(KEY) + 60]
    assert "NVIDIA H100 *** (8x)" in {offer.instance_type for offer in result.offers}
    assert "gpu ***" in {problem.what for problem in result.problems}


def test_one_letter_typed_for_a_key_does_not_blank_that_letter(
    market: Store, server: LoopbackServer, now: datetime
) -> None:
    server.add("/digitalocean/v2/sizes", b"no", status=401)
    server.add("/digitalocean/products/droplets/details/pricing/", b"no", status=500)
    report = run(market, server, ("digitalocean",), now, BREAKEVEN_DIGITALOCEAN_API_KEY="e")
    (part,) = report.providers
    assert part.reason is not None
    assert "*" not in part.reason
    assert "digitalocean" in part.reason


@pytest.mark.parametrize(
    ("secrets", "text", "shown"),
    [
        (["s3cr3t-key-0123"], "x?key=s3cr3t-key-0123&y", "x?key=***&y"),
        (["longsecret"], "mylongsecretword", "my***word"),  # masked wherever it stands
        (["e"], "the key e was refused", "the key *** was refused"),
        (["id", "id:pa55", "pa55"], "no id:pa55 here, no pa55, no idea", "no *** here, no ***, no idea"),
        (["", "a.b"], "aXb a.b", "aXb ***"),
    ],
)
def test_secrets_are_masked(secrets: list[str], text: str, shown: str) -> None:
    assert without_secrets(text, secrets) == shown


def test_an_unknown_source_names_close_ones() -> None:
    with pytest.raises(UnknownProvider, match="close matches: runpod"):
        source_names(["runpodd"])
    with pytest.raises(UnknownProvider, match="only in the bundled collection"):
        source_names(["salad"])


# -- saved responses --------------------------------------------------------------------------------


def test_saved_responses_are_recognised_in_any_order(market: Store, now: datetime) -> None:
    files = sorted(str(path) for path in (RECORDINGS / "vultr").glob("plans*.json"))
    assert len(files) == 3
    forth = replay("vultr", files, market, now, is_dry_run=True)
    back = replay("vultr", files[::-1], market, now, is_dry_run=True)
    assert {offer.id for offer in forth.offers} == {offer.id for offer in back.offers}
    assert set(forth.pages) == {"plans", "plans#2", "plans_metal"}


def test_a_dry_run_stores_nothing(market: Store, now: datetime) -> None:
    before = market.revision()
    (file,) = (RECORDINGS / "runpod").glob("gpu_types*.json")
    found = replay("runpod", [str(file)], market, now, is_dry_run=True)
    assert any(offer.verdict is Verdict.VERIFIED for offer in found.offers)
    assert market.revision() == before
    replay("runpod", [str(file)], market, now)
    assert market.revision() > before


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", "is empty"),
        (b"<html><body>Sign in</body></html>", "is not a known page of Vultr"),
        (b'{"plans": [{"id": "vcg-a16', "is not a known page of Vultr"),
        (b'{"other": 1}', "is not a known page of Vultr"),
    ],
)
def test_a_file_that_is_no_answer_is_refused_in_one_line(
    content: bytes, expected: str, tmp_path: Path, market: Store, now: datetime
) -> None:
    file = tmp_path / "saved.json"
    file.write_bytes(content)
    with pytest.raises(ReplayError, match=expected) as caught:
        replay("vultr", [str(file)], market, now)
    assert "\n" not in str(caught.value)


def test_a_named_page_that_is_cut_off_is_refused(tmp_path: Path, market: Store, now: datetime) -> None:
    file = tmp_path / "saved.json"
    file.write_bytes(b'{"plans": [{"id": "vcg-a16')
    with pytest.raises(ParseError, match="not valid JSON"):
        replay("vultr", [f"plans={file}"], market, now)
