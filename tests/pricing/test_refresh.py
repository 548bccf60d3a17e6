"""From a loopback server to the database: one provider's trouble is never another's."""

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from planner.catalogues.currencies import all_currencies
from pricing.collect import ProviderReport, RunReport, judge, refresh
from pricing.errors import FetchError, ParseError, PricingError, StoreError, UnknownProvider
from pricing.http import Client
from pricing.offer import Offer, Tier, Verdict
from pricing.provider import Keys, Page, Provider, Request
from pricing.registry import kinds, providers
from pricing.running.gather import fetch_pages
from pricing.running.replay import replay
from pricing.settings import Settings
from pricing.storage.memory import ProviderResult, RunStatus
from pricing.store import Store
from pricing.verification.market import Market
from tests.pricing.loopback import PAYLOADS, Handler, LoopbackServer
from tests.pricing.samples import offer as sample
from tests.pricing.samples import run as run_of

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
DAY = timedelta(days=1)
FOUR = ("runpod", "vastai", "vultr", "digitalocean")
SECRET = "s3cr3t-key-0123456789"


@dataclass
class Bench:
    """A store and a server, and a run between them."""

    store: Store
    server: LoopbackServer
    told: list[str] = field(default_factory=list)
    keys: dict[str, str] = field(default_factory=dict)

    def run(self, *names: str, now: datetime = NOW) -> RunReport:
        settings = Settings(
            database_url="sqlite://", keys={name: Keys(secret=key) for name, key in self.keys.items()}
        )
        with Client(
            base_urls=self.server.base_urls(*providers()),
            secrets=self.keys.values(),
            sleep=lambda seconds: None,
        ) as client:
            return refresh(
                names, self.store, settings, client, now, lambda one: self.told.append(one.provider)
            )

    def prices(self, provider: str) -> dict[tuple[str, int, str], Decimal]:
        return {
            (one.gpu or one.gpu_raw, one.gpu_count, str(one.tier)): one.usd_per_hour
            for one in self.store.current_offers(provider=provider)
            if one.gpu_fraction is None
        }


@pytest.fixture
def server() -> Iterator[LoopbackServer]:
    with LoopbackServer() as running:
        yield running


@pytest.fixture
def bench(server: LoopbackServer, file: Path) -> Iterator[Bench]:
    with Store.open(f"sqlite:///{file}") as store:
        yield Bench(store, server)


@pytest.fixture
def payloads(shared: Path) -> Path:
    return shared / "data/prices/payloads"


def part(report: RunReport, name: str) -> ProviderReport:
    return next(one for one in report.providers if one.provider == name)


def metal(price: float = 23.92, monthly: float = 16074.24, **changes: Any) -> dict[str, Any]:
    """An answer of Vultr with one machine of eight H100."""
    plan = {
        "id": "vbm-112c-2048gb-8-h100-gpu",
        "cpu_threads": 224,
        "ram": 2097152,
        "monthly_cost": monthly,
        "hourly_cost": price,
        "locations": ["sea"],
    }
    return {"plans_metal": [plan | changes], "meta": {"total": 1, "links": {"next": ""}}}


def serve_vultr(server: LoopbackServer, *answers: dict[str, Any]) -> None:
    """Let Vultr give these lists of metal, one for each run, and no plans that we read."""
    cpu = {"id": "vc2", "type": "vc2", "locations": ["ewr"]}
    server.add("/vultr/v2/plans", {"plans": [cpu], "meta": {"total": 1, "links": {"next": ""}}})
    for answer in answers:
        server.add("/vultr/v2/plans-metal", answer)


# -- the four providers of the first issue ------------------------------------------------------------


def test_four_providers_refresh_from_their_payloads(bench: Bench, payloads: Path) -> None:
    bench.server.serve_payloads(payloads, FOUR)
    report = bench.run(*FOUR)
    assert {one.provider: one.status for one in report.providers} == dict.fromkeys(FOUR, RunStatus.OK)
    assert report.exit_code == 0
    assert sorted(bench.told) == sorted(FOUR)
    runpod = bench.prices("runpod")
    assert runpod["B200", 2, "community"] == Decimal("11.96")
    assert runpod["H100 SXM", 1, "secure"] == Decimal("3.29")
    assert bench.prices("vultr")["H100 SXM", 8, "on_demand"] == Decimal("23.92")
    assert bench.prices("vultr")["H100 SXM", 8, "spot"] == Decimal("18.4")
    assert bench.prices("digitalocean")["Instinct MI300X", 8, "on_demand"] == Decimal("20.72")
    # The collected one: what a host asks who was never seen before waits for days.
    assert bench.prices("vastai")["H100 SXM", 1, "on_demand"] == Decimal("2.227900")
    for days in (1, 2, 3):
        bench.run(*FOUR, now=NOW + days * DAY)
    assert bench.prices("vastai")["H100 SXM", 1, "on_demand"] == Decimal("1.735556")


def test_true_prices_come_out_verified_and_new_ones_wait(bench: Bench, payloads: Path) -> None:
    bench.server.serve_payloads(payloads, FOUR)
    report = bench.run(*FOUR)
    counts = {one.provider: (one.verified, one.quarantined, one.rejected) for one in report.providers}
    # Four sizes of the RTX 3070, which nobody had seen there, and three of the L40S, at less than was known.
    assert counts["runpod"] == (37, 7, 0)
    assert counts["vultr"] == (73, 0, 0)
    assert counts["digitalocean"] == (8, 0, 0)
    assert counts["vastai"] == (0, 7, 0)  # asks of hosts that the collection does not name
    held = bench.store.rejected(provider=FOUR)
    assert {one.provider for one in held} == {"runpod", "vastai"}
    whys = {(one.provider, one.gpu, str(one.tier)): one.reasons[0] for one in held}
    assert "first community price" in whys["runpod", "RTX 3070", "community"]
    assert "0.95 times the same GPU in other sizes (1.04 USD per GPU" in whys["runpod", "L40S", "secure"]
    assert "1.06 times the same GPUs under another name" in whys["vastai", "H200 NVL", "on_demand"]


def test_later_runs_confirm_and_change_nothing(bench: Bench, payloads: Path) -> None:
    bench.server.serve_payloads(payloads, FOUR)
    bench.run(*FOUR)
    again = bench.run(*FOUR, now=NOW + DAY)
    assert {(one.new, one.changed, one.closed) for one in again.providers} == {(0, 0, 0)}
    assert {one.provider: one.quarantined for one in again.providers if one.quarantined} == {"vastai": 7}
    assert bench.prices("runpod")["RTX 3070", 1, "community"] == Decimal("0.13")
    for days in (2, 3):
        again = bench.run(*FOUR, now=NOW + days * DAY)
    assert {one.quarantined for one in again.providers} == {0}
    assert bench.store.rejected(provider=FOUR) == []


def test_the_planner_sees_what_a_run_brought(bench: Bench, payloads: Path) -> None:
    bench.server.serve_payloads(payloads, ["vultr"])
    bench.run("vultr")
    rates = bench.store.rates(NOW + timedelta(hours=3), provider="vultr", gpus="H100 SXM")
    assert {(rate.usd_per_hour_text, str(rate.status), rate.age_hours) for rate in rates} == {
        ("23.92", "verified", 3.0),
        ("18.40", "verified", 3.0),
    }


def test_providers_are_asked_side_by_side(bench: Bench, payloads: Path) -> None:
    both = threading.Barrier(2, timeout=10)

    def meet(file: str) -> Callable[[Handler], None]:
        body = (payloads / file).read_bytes()

        def answer(handler: Handler) -> None:
            both.wait()  # until the other provider is asked too
            handler.reply(200, body)

        return answer

    bench.server.add("/runpod/graphql", method="POST", answer=meet("runpod_gputypes.json"))
    page = "/digitalocean/products/droplets/details/pricing/"
    bench.server.add(page, answer=meet("digitalocean_droplets_pricing.html"))
    assert bench.run("runpod", "digitalocean").exit_code == 0


# Those whose requests a server of plain files can answer; the others name further files or zip theirs.
PLAIN = sorted({"coreweave", "crusoe", "cudo", "hotaisle", "hyperbolic", "hyperstack", "jarvislabs", "lium"})
PLAIN += sorted({"nebius", "oci", "ovhcloud", "tensordock", "together", "voltagepark", "vultr", "gcp"})
PLAIN += sorted({"digitalocean", "lambda", "shadeform", "vastai", "runpod", "verda"})


def test_recorded_pages_come_through_the_client_too(bench: Bench) -> None:
    bench.server.serve_recordings(*PLAIN)
    bench.keys |= dict.fromkeys(("gcp", "jarvislabs", "shadeform"), SECRET)
    report = bench.run(*PLAIN)
    assert {one.provider: one.reason for one in report.providers if one.status != RunStatus.OK} == {}
    assert SECRET not in str(report.to_document())
    stored = str(bench.store.current_offers()) + str(bench.store.rejected())
    assert SECRET not in stored  # Google's key is part of the address that it is asked with


# -- one that fails -----------------------------------------------------------------------------------

TROUBLES: dict[str, tuple[dict[str, Any], str]] = {
    "server error": ({"status": 500}, "answered 500"),
    "busy for ever": ({"status": 503}, "answered 503"),
    "refused": ({"status": 403}, "answered 403"),
    "login page": ({"body": "<html><body>Log in</body></html>"}, "HTML came where JSON was expected"),
    "empty": ({"body": b""}, "the answer is empty"),
    "truncated": ({"body": '{"plans_metal": [{"id": '}, "not valid JSON"),
    "another shape": ({"body": {"machines": []}}, "no 'meta'"),
    "nothing on it": ({"body": {"plans_metal": [], "meta": {"total": 0}}}, "'plans_metal' is empty"),
    "redirected away": (
        {"status": 302, "headers": {"Location": "https://login.example/"}},
        "none of this provider's hosts",
    ),
}


@pytest.mark.parametrize("trouble", TROUBLES)
def test_one_failing_provider_leaves_the_others_and_all_prices_intact(
    bench: Bench, payloads: Path, trouble: str
) -> None:
    answer, reason = TROUBLES[trouble]
    bench.server.serve_payloads(payloads, ["runpod"])
    serve_vultr(bench.server, metal())
    bench.run("vultr")
    before = bench.prices("vultr")
    bench.server.add("/vultr/v2/plans-metal", **answer)  # from the next run on
    bench.run("vultr", now=NOW + DAY)
    report = bench.run("runpod", "vultr", now=NOW + 2 * DAY)
    assert part(report, "runpod").status == RunStatus.OK
    failed = part(report, "vultr")
    assert failed.status == RunStatus.FAILED
    assert reason in (failed.reason or "")
    assert "\n" not in (failed.reason or "")
    assert report.exit_code == 1
    assert bench.prices("vultr") == before
    (status,) = [one for one in bench.store.statuses(NOW + 2 * DAY) if one.provider == "vultr"]
    assert (status.last_run_status, status.failures_since_success) == (RunStatus.FAILED, 1)


def test_a_fault_in_a_module_is_a_reason_and_no_crash(
    bench: Bench, payloads: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(pages: Mapping[str, Page]) -> list[Offer]:
        raise ZeroDivisionError(f"at\nline 7 with {SECRET}")

    bench.keys["vultr"] = SECRET
    bench.server.serve_payloads(payloads, ["runpod", "vultr"])
    monkeypatch.setattr(providers()["vultr"], "parse", broken, raising=True)
    report = bench.run("runpod", "vultr")
    assert part(report, "vultr").reason == "a fault in its module: ZeroDivisionError: at line 7 with ***"
    assert part(report, "runpod").status == RunStatus.OK


def test_when_all_fail_nothing_could_be_done(bench: Bench) -> None:
    report = bench.run("runpod", "vultr")  # the server knows neither
    assert report.exit_code == 3
    assert all("answered 404" in (one.reason or "") for one in report.providers)


def test_a_missing_key_is_skipped_with_the_way_to_get_one(bench: Bench) -> None:
    report = bench.run("jarvislabs")
    (only,) = report.providers
    assert only.status == RunStatus.SKIPPED
    assert (only.reason or "").startswith("needs a key: set BREAKEVEN_JARVISLABS_API_KEY (https://")
    assert report.exit_code == 0
    assert bench.server.received == []


def test_an_optional_page_that_fails_is_a_problem_only(bench: Bench, payloads: Path) -> None:
    bench.keys["digitalocean"] = SECRET
    page = "/digitalocean/products/droplets/details/pricing/"
    bench.server.add(page, file=payloads / "digitalocean_droplets_pricing.html")
    bench.server.add("/digitalocean/v2/sizes", status=401)
    report = part(bench.run("digitalocean"), "digitalocean")
    assert (report.status, report.verified) == (RunStatus.OK, 8)
    assert bench.server.received[-1].headers["Authorization"] == f"Bearer {SECRET}"
    assert SECRET not in f"{report}"


def in_region(region: str, price: float) -> dict[str, Any]:
    """Azure's answer for one region, with one machine."""
    row = {
        "armSkuName": "Standard_NC40ads_H100_v5",
        "armRegionName": region,
        "productName": "Virtual Machines NCadsH100v5 Series",
        "skuName": "NC40adsH100v5",
        "meterName": "NC40adsH100v5",
        "type": "Consumption",
        "isPrimaryMeterRegion": True,
        "retailPrice": price,
        "currencyCode": "USD",
        "unitOfMeasure": "1 Hour",
        "tierMinimumUnits": 0,
        "effectiveStartDate": "2026-01-01T00:00:00Z",
    }
    return {"BillingCurrency": "USD", "Items": [row], "NextPageLink": None, "Count": 1}


def asked_for(region: str) -> dict[str, str]:
    where = f"serviceName eq 'Virtual Machines' and armRegionName eq '{region}'"
    return {"$filter": f"{where} and contains(armSkuName,'Standard_N')"}


def test_what_a_page_lists_that_did_not_come_is_not_gone(bench: Bench) -> None:
    """The regions of Azure differ in the query only: one that fails is no region that sells nothing."""
    path = "/azure/api/retail/prices"
    for region, price in (("eastus", 6.98), ("uksouth", 8.725)):
        bench.server.add(path, in_region(region, price), query=asked_for(region))
    bench.server.add(path, status=500, query=asked_for("uksouth"))  # from the second run on
    bench.run("azure")
    report = part(bench.run("azure", now=NOW + DAY), "azure")
    assert (report.status, report.closed) == (RunStatus.OK, 0)
    assert any("did not come, so its other offers stay open" in note for note in report.notes)
    seen = {one.region: one.seen_at for one in bench.store.current_offers("azure") if one.seen_at >= NOW}
    assert seen == {"eastus": NOW + DAY, "uksouth": NOW}


def test_what_a_page_that_came_does_not_list_any_more_is_gone(bench: Bench) -> None:
    serve_vultr(bench.server, metal(), metal(locations=["ewr"]))
    bench.run("vultr")
    assert part(bench.run("vultr", now=NOW + DAY), "vultr").closed == 1


def test_after_too_many_requests_nothing_more_is_asked(bench: Bench, payloads: Path) -> None:
    path = "/vastai/api/v0/bundles/"
    bench.server.add(path, file=payloads / "vast_bundles.json")
    bench.server.add(path, status=429, headers={"Retry-After": "3600"})
    report = part(bench.run("vastai"), "vastai")
    assert report.status == RunStatus.OK
    assert report.quarantined
    assert len(bench.server.received) == 2
    assert report.problems >= 11  # the books that did not come


def test_a_database_that_refuses_one_provider_fails_that_one(
    bench: Bench, payloads: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.server.serve_payloads(payloads, ["runpod", "vultr"])
    record = bench.store.record

    def locked(result: ProviderResult) -> Any:
        if result.provider == "runpod":
            raise StoreError("database prices.db: locked by another program")
        return record(result)

    monkeypatch.setattr(bench.store, "record", locked)
    report = bench.run("runpod", "vultr")
    assert part(report, "runpod").reason == "not stored: database prices.db: locked by another program"
    assert part(report, "vultr").verified == 73
    assert report.exit_code == 1


def test_an_unknown_provider_is_an_error_before_anything_is_asked(bench: Bench) -> None:
    with pytest.raises(UnknownProvider, match="close matches: vultr"):
        bench.run("runpod", "vultrr")
    assert bench.server.received == []


# -- what changes -------------------------------------------------------------------------------------


def test_a_changed_price_never_overwrites_the_old_one(bench: Bench) -> None:
    serve_vultr(bench.server, metal(23.92), metal(25.00, 16800), metal(25.00, 16800))
    bench.run("vultr")
    report = part(bench.run("vultr", now=NOW + DAY), "vultr")
    assert (report.new, report.changed, report.unchanged) == (0, 1, 0)
    rows = bench.store.history(provider="vultr", gpu="H100 SXM", region="sea", tier="on_demand")
    ours = [row for row in rows if row.seen_at >= NOW]
    assert [(row.usd_per_hour, row.first_seen_at) for row in ours] == [
        (Decimal("23.92"), NOW),
        (Decimal("25"), NOW + DAY),
    ]


def test_a_great_move_waits_while_the_last_price_stands(bench: Bench) -> None:
    serve_vultr(bench.server, metal(23.92), metal(13.00, 8736))
    bench.run("vultr")
    report = part(bench.run("vultr", now=NOW + DAY), "vultr")
    assert (report.verified, report.quarantined) == (0, 1)
    assert bench.prices("vultr")["H100 SXM", 8, "on_demand"] == Decimal("23.92")
    report = part(bench.run("vultr", now=NOW + 2 * DAY), "vultr")
    assert (report.verified, report.quarantined) == (1, 0)
    assert bench.prices("vultr")["H100 SXM", 8, "on_demand"] == Decimal("13")


@pytest.mark.parametrize("provider", ["vastai", "runpod"])
def test_what_doubles_and_moves_on_is_verified_on_the_fourth_night_on_a_book_only(
    bench: Bench, provider: str
) -> None:
    def night(number: int, usd: str) -> str:
        one = sample(usd, provider=provider, at=NOW + number * DAY, tier=Tier.SPOT, region=None)
        known = bench.store.known_prices(provider)
        market = Market(bench.store.known_prices(), kinds())
        (judged,) = judge([one], known, market, all_currencies())
        bench.store.record(run_of(judged, provider=provider))
        return str(judged.verdict)

    first = [night(n, "1.40") for n in range(4)]
    assert first[-1] == "verified"
    later = [night(4 + n, usd) for n, usd in enumerate(["2.80", "2.95", "2.85", "3.00", "3.05"])]
    expected = ["quarantined"] * 3 + ["verified"] * 2 if provider == "vastai" else ["quarantined"] * 5
    assert later == expected


def test_a_page_of_sixty_days_ago_changes_nothing(bench: Bench) -> None:
    """The price moved by a tenth since: plausible, but not from these very bytes."""
    old, new = metal(23.92), metal(26.00, 17472)
    serve_vultr(bench.server, old, new, new, old)
    for days in (0, 30, 60):
        bench.run("vultr", now=NOW + days * DAY)
    assert bench.prices("vultr")["H100 SXM", 8, "on_demand"] == Decimal("26")
    report = part(bench.run("vultr", now=NOW + 61 * DAY), "vultr")
    assert (report.verified, report.quarantined, report.status) == (0, 1, RunStatus.FAILED)
    assert "byte for byte that of 2026-11-30, replaced since: an old page?" in (report.reason or "")
    assert bench.prices("vultr")["H100 SXM", 8, "on_demand"] == Decimal("26")


def test_prices_of_sixty_days_ago_change_nothing_in_whatever_bytes_they_come(bench: Bench) -> None:
    old, new = metal(23.92), metal(26.00, 17472)
    serve_vultr(bench.server, old, new, new, old | {"generated": "today"})
    for days in (0, 30, 60):
        bench.run("vultr", now=NOW + days * DAY)
    report = part(bench.run("vultr", now=NOW + 61 * DAY), "vultr")
    assert (report.verified, report.quarantined, report.status) == (0, 1, RunStatus.FAILED)
    assert "all prices are those of 2026-11-30, replaced since: an old page?" in (report.reason or "")
    assert bench.prices("vultr")["H100 SXM", 8, "on_demand"] == Decimal("26")


def test_a_saved_answer_that_was_replaced_long_ago_is_an_old_page_too(bench: Bench, tmp_path: Path) -> None:
    """In its bytes and in its prices, where nobody says when it was received."""
    old, new = metal(23.92), metal(26.00, 17472)
    serve_vultr(bench.server, old, new)
    for days in (0, 30):
        bench.run("vultr", now=NOW + days * DAY)
    saved = tmp_path / "metal.json"
    saved.write_text(json.dumps(old | {"generated": "then"}), encoding="utf-8")
    (late,) = replay("vultr", [str(saved)], bench.store, NOW + 60 * DAY).offers
    assert (late.verdict, late.usd_per_hour) == (Verdict.QUARANTINED, Decimal("23.92"))
    assert "all prices are those of 2026-11-30, replaced since: an old page?" in late.reasons
    (of_then,) = replay("vultr", [str(saved)], bench.store, NOW + DAY, is_dry_run=True).offers
    assert of_then.verdict is Verdict.VERIFIED


def test_prices_that_stay_for_months_on_a_page_that_changes_are_no_problem(bench: Bench) -> None:
    serve_vultr(bench.server, *(metal(23.92) | {"generated": day} for day in range(4)))
    reports = [part(bench.run("vultr", now=NOW + days * DAY), "vultr") for days in (0, 20, 40, 60)]
    # What is said from the thirtieth day on is of the other page, which is the same to the byte.
    assert [(report.verified, report.problems) for report in reports] == [(1, 0), (1, 0), (1, 1), (1, 1)]


def test_a_page_that_flips_within_days_is_no_old_page(bench: Bench) -> None:
    old, new = metal(23.92), metal(26.00, 17472)
    serve_vultr(bench.server, old, new, old)
    for days in (0, 1):
        bench.run("vultr", now=NOW + days * DAY)
    assert part(bench.run("vultr", now=NOW + 2 * DAY), "vultr").verified == 1


def test_two_runs_within_minutes_confirm_nothing(bench: Bench) -> None:
    serve_vultr(bench.server, metal(23.92), metal(13.00, 8736))
    bench.run("vultr")
    bench.run("vultr", now=NOW + DAY)
    report = part(bench.run("vultr", now=NOW + DAY + timedelta(minutes=5)), "vultr")
    assert (report.verified, report.quarantined) == (0, 1)


def test_cents_for_dollars_never_reach_the_plan(bench: Bench) -> None:
    serve_vultr(bench.server, metal(23.92), metal(2392, 1607424))
    bench.run("vultr")
    for days in range(1, 4):
        report = part(bench.run("vultr", now=NOW + days * DAY), "vultr")
        assert (report.verified, report.rejected) == (0, 1)
    rates = bench.store.rates(NOW + 3 * DAY, provider="vultr", gpus="H100 SXM")
    assert {rate.usd_per_hour_text for rate in rates} == {"23.92"}


def test_further_pages_are_followed_to_the_end(bench: Bench) -> None:
    first, second = metal(), metal(id="vbm-64c-2048gb-8-l40-gpu", hourly_cost=13.4, monthly_cost=9005)
    for answer in (first, second):
        answer["meta"]["total"] = 2
    first["meta"]["links"]["next"] = "bmV4dA=="
    serve_vultr(bench.server)
    bench.server.add("/vultr/v2/plans-metal", second, query={"cursor": "bmV4dA=="})
    bench.server.add("/vultr/v2/plans-metal", first)
    assert part(bench.run("vultr"), "vultr").offers == 2


def test_a_page_that_never_changes_is_reported(bench: Bench) -> None:
    serve_vultr(bench.server, metal())
    found = [part(bench.run("vultr", now=NOW + days * DAY), "vultr").problems for days in (0, 29, 31)]
    assert found == [0, 0, 2]
    (status,) = [one for one in bench.store.statuses(NOW + 31 * DAY) if one.provider == "vultr"]
    assert status.last_run_problems == 2


def test_the_report_is_a_document(bench: Bench) -> None:
    serve_vultr(bench.server, metal())
    document = bench.run("vultr").to_document()
    assert document["schema"] == "breakeven.refresh/1"
    assert document["run_id"] == "20261130T120000Z"
    assert document["started_at"] == "2026-11-30T12:00:00Z"
    (one,) = document["providers"]  # type: ignore[misc]
    assert {
        name: one[name] for name in ("provider", "status", "reason", "offers", "verified", "problems")
    } == {
        "provider": "vultr",
        "status": "ok",
        "reason": None,
        "offers": 1,
        "verified": 1,
        "problems": 0,
    }


@pytest.mark.parametrize(
    ("statuses", "code"),
    [("oo", 0), ("os", 0), ("s", 0), ("of", 1), ("ofs", 1), ("f", 3), ("fs", 3), ("", 0)],
)
def test_exit_codes(statuses: str, code: int) -> None:
    of = {"o": RunStatus.OK, "f": RunStatus.FAILED, "s": RunStatus.SKIPPED}
    parts = tuple(ProviderReport(provider=s, title=s, status=of[s], reason=None) for s in statuses)
    assert RunReport(started_at=NOW, finished_at=NOW, providers=parts).exit_code == code


# -- fetching one provider ----------------------------------------------------------------------------


class Endless:
    """Answers everything at once."""

    def fetch(self, request: Request, provider: Provider) -> Page:
        return Page(key=request.page, url=request.url, body=b"{}")


def _following(name: str) -> Provider:
    crusoe = providers()["crusoe"]  # it has one page

    class Following(type(crusoe)):  # type: ignore[misc]
        def follow(self, page: Page, keys: Keys) -> list[Request]:
            number = int(page.key.partition("#")[2] or 1)
            key = f"pricing#{number + 1}" if name == "on" else "pricing"
            return [Request(page=key, url=self.pages["pricing"])]

    return Following()


def test_a_pagination_that_never_ends_is_cut() -> None:
    with pytest.raises(FetchError, match="goes on after 400 pages"):
        fetch_pages(_following("on"), Endless(), Keys())


def test_a_page_that_is_named_twice_is_an_error() -> None:
    with pytest.raises(ParseError, match="twice"):
        fetch_pages(_following("same"), Endless(), Keys())


def test_a_provider_that_answers_for_ever_slowly_is_cut() -> None:
    times = iter(range(0, 100_000, 1000))
    with pytest.raises(FetchError, match="not done within 30 minutes"):
        fetch_pages(_following("on"), Endless(), Keys(), clock=lambda: float(next(times)))


# -- saved responses ----------------------------------------------------------------------------------


def test_saved_responses_come_in_any_order(bench: Bench, payloads: Path) -> None:
    files = [str(payloads / name) for name in ("vultr_plans_metal.json", "vultr_plans.json")]
    one = replay("vultr", files, bench.store, NOW, is_dry_run=True)
    other = replay("vultr", files[::-1], bench.store, NOW, is_dry_run=True)
    assert {offer.id for offer in one.offers} == {offer.id for offer in other.offers}
    assert set(one.pages) == {"plans", "plans_metal"}


def test_an_absent_page_is_allowed_and_a_page_may_be_named(bench: Bench, payloads: Path) -> None:
    found = replay(
        "vultr", [f"plans_metal={payloads / 'vultr_plans_metal.json'}"], bench.store, NOW, is_dry_run=True
    )
    prices = {(offer.gpu, offer.tier): offer.usd_per_hour for offer in found.offers}
    assert prices["H100 SXM", Tier.ON_DEMAND] == Decimal("23.92")
    assert {offer.verdict for offer in found.offers} == {Verdict.VERIFIED}
    assert {offer.source_url for offer in found.offers} == {
        "https://api.vultr.com/v2/plans-metal?per_page=500"
    }


def test_a_dry_run_stores_nothing(bench: Bench, payloads: Path) -> None:
    before = bench.store.revision()
    found = replay("runpod", [str(payloads / "runpod_gputypes.json")], bench.store, NOW, is_dry_run=True)
    assert found.offers
    assert bench.store.revision() == before


def test_a_replay_counts_as_a_run_of_its_time(bench: Bench, payloads: Path) -> None:
    files = [str(payloads / "runpod_gputypes.json")]
    replay("runpod", files, bench.store, NOW - 2 * DAY)
    assert len(bench.store.rejected(provider="runpod")) == 7
    found = replay("runpod", files, bench.store, NOW - DAY)
    assert {offer.verdict for offer in found.offers} == {Verdict.VERIFIED}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (
            b"<html><body>Log in</body></html>",
            "is not a known page of Vultr; its pages are plans, plans_metal",
        ),
        (b'{"plans": [{"id": "vcg-', "is not a known page"),
        (b'{"else": 1}', "is not a known page"),
        (b"\xff\xfe\x00", "is not a known page"),
    ],
)
def test_a_file_that_is_no_page_is_one_line(
    bench: Bench, tmp_path: Path, content: bytes, message: str
) -> None:
    saved = tmp_path / "answer.json"
    saved.write_bytes(content)
    with pytest.raises(PricingError) as caught:
        replay("vultr", [str(saved)], bench.store, NOW, is_dry_run=True)
    assert str(saved) in str(caught.value)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_file_is_one_line(bench: Bench, tmp_path: Path) -> None:
    with pytest.raises(PricingError, match="cannot be read"):
        replay("vultr", [str(tmp_path / "none.json")], bench.store, NOW, is_dry_run=True)


def test_every_collected_payload_is_recognised_and_read(bench: Bench, payloads: Path) -> None:
    """Whatever a provider's module makes of it, nothing absurd comes out verified."""
    for name in FOUR:
        files = [str(payloads / file) for *_, file in PAYLOADS[name]]
        found = replay(name, list(dict.fromkeys(files)), bench.store, NOW, is_dry_run=True)
        verified = [offer for offer in found.offers if offer.verdict == Verdict.VERIFIED]
        assert verified or name == "vastai"
        assert all(Decimal("0.02") < offer.usd_per_gpu_hour < 15 for offer in verified)
