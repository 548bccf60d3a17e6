"""The bundled history: real observations of past days, never the market of today."""

import csv
import gzip
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest

from planner.rates import PriceStatus
from pricing.offer import Verdict
from pricing.registry import provider_infos
from pricing.storage.memory import Origin
from pricing.storage.past import packed_history, past_prices
from pricing.store import Store
from tests.conftest import NOW
from tools.build_history import build, intervals_of

DAY0 = date(2026, 5, 1)


def run_of(*prices: tuple[str, str]) -> dict[tuple[str, ...], dict[str, str]]:
    return {(name,): {"usd_per_hour": usd, "source": "acme/prices@1"} for name, usd in prices}


def lives(
    days: list[dict[tuple[str, ...], dict[str, str]]], name: str
) -> list[tuple[str, int, int, str, int]]:
    found = intervals_of({DAY0 + timedelta(days=number): rows for number, rows in enumerate(days)})
    return [
        (one.usd_per_hour, (one.first_seen - DAY0).days, (one.closed - DAY0).days, one.why, one.times_seen)
        for one in found[(name,)]
    ]


def test_an_unchanged_price_is_one_interval_that_ends_after_the_last_run() -> None:
    assert lives([run_of(("a", "2.50")), run_of(("a", "2.5")), run_of(("a", "2.50"))], "a") == [
        ("2.5", 0, 3, "ended", 3)
    ]


def test_a_changed_price_opens_the_next_interval() -> None:
    assert lives([run_of(("a", "2")), run_of(("a", "3"))], "a") == [
        ("2", 0, 1, "changed", 1),
        ("3", 1, 2, "ended", 1),
    ]


def test_what_a_whole_run_lacks_has_ended_and_may_come_back() -> None:
    others = [(name, "1") for name in "bcd"]
    days = [run_of(("a", "2"), *others), run_of(*others), run_of(("a", "2"), *others)]
    assert lives(days, "a") == [("2", 0, 1, "vanished", 1), ("2", 2, 3, "ended", 1)]


def test_a_truncated_run_ends_nothing() -> None:
    others = [(name, "1") for name in "bcd"]
    days = [run_of(("a", "2"), *others), run_of(("b", "1")), run_of(("a", "2"), *others)]
    assert lives(days, "a") == [("2", 0, 3, "ended", 2)]


def test_the_file_is_what_the_observations_give(shared: Path) -> None:
    assert gzip.decompress(packed_history()) == build(shared / "data")


def test_every_observed_price_is_told_on_its_day(shared: Path) -> None:
    """Each of the 32,258 observations lies in an interval of its price, but doubled spellings of one."""
    spans: dict[tuple[str, ...], list[tuple[date, date, Decimal]]] = {}
    for one, intervals in past_prices():
        fraction = "" if one.gpu_fraction is None else f"{one.gpu_fraction:g}"
        name = (one.provider, one.instance_type, one.gpu_raw, one.region or "", str(one.tier), fraction)
        spans.setdefault(name, []).extend(
            (past.first_seen_at.date(), past.last_seen_at.date(), past.usd_per_hour) for past in intervals
        )
    missing = 0
    with (shared / "data/prices/history_dev.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            fraction = f"{float(row['gpu_count']):g}" if float(row["gpu_count"]) < 1 else ""
            provider = row["provider"].replace("vast.ai", "vastai")
            name = (provider, row["instance_type"], row["gpu_model"], row["region"], row["tier"], fraction)
            day, usd = date.fromisoformat(row["observed_on"]), Decimal(row["usd_per_hour"])
            missing += not any(first <= day <= last and price == usd for first, last, price in spans[name])
    assert missing <= 32


def test_the_file_is_small() -> None:
    assert len(packed_history()) < 100_000


def test_all_sellers_are_described() -> None:
    assert {offer.provider for offer, _ in past_prices()} <= provider_infos().keys()


def test_it_is_history_and_never_the_market_of_today(store: Store) -> None:
    past = [one for one in store.history() if one.origin is Origin.HISTORY]
    assert len(past) == 12_065
    assert all(one.closed_at for one in past)
    # An error of its source has no status: it is kept, and nobody may trust it.
    assert {one.status(NOW) for one in past if one.verdict is Verdict.VERIFIED} == {PriceStatus.SNAPSHOT}
    assert {one.status(NOW) for one in past if one.verdict is not Verdict.VERIFIED} == {None}
    assert not [one for one in store.current_offers() if one.origin is Origin.HISTORY]
    assert not [one for one in store.known_prices() if one.origin is Origin.HISTORY]


def test_the_market_of_a_past_day_comes_from_it(store: Store) -> None:
    def cheapest(day: date) -> list[str]:
        found = store.rates(NOW, as_of=day, provider="vastai", gpus="H100 SXM")
        return [rate.usd_per_hour_text for rate in found if (rate.gpu_count, rate.region) == (1, "US")]

    # vast.ai, H100_SXM x1, US, on demand and spot, by the tracker.
    assert cheapest(date(2026, 5, 7)) == []
    assert len(cheapest(date(2026, 6, 1))) >= 1


def test_the_cut_of_azure_is_told(store: Store) -> None:
    """MI300X in eastus2: 88.488 USD/h in the table of 2024-12-13, 48 in that of 2025-05-16."""

    def told(day: date) -> list[tuple[str, str]]:
        found = store.rates(NOW, as_of=day, provider="azure", gpus="Instinct MI300X")
        return [
            (rate.usd_per_hour_text, str(rate.status))
            for rate in found
            if rate.region == "eastus2" and rate.tier == "on_demand" and rate.gpu_count == 8
        ]

    assert ("88.488", "snapshot") in told(date(2025, 5, 15))
    assert ("48.00", "snapshot") in told(date(2025, 5, 16))
    assert ("88.488", "snapshot") not in told(date(2025, 5, 16))


@pytest.mark.parametrize(("day", "usd"), [(date(2025, 5, 31), "98.32"), (date(2025, 6, 1), "55.04")])
def test_the_cut_of_aws_is_told_from_the_reports(store: Store, day: date, usd: str) -> None:
    found = store.rates(NOW, as_of=day, provider="aws", gpus="H100 SXM")
    assert usd in {rate.usd_per_hour_text for rate in found if rate.region is None and rate.gpu_count == 8}


def test_an_error_of_a_source_is_kept_and_never_ranked(store: Store) -> None:
    moment = datetime(2025, 7, 1, tzinfo=UTC)
    found = [
        one
        for one in store.history(provider="azure")
        if one.instance_type == "Standard_ND96ams_A100_v4" and one.region == "polandcentral"
    ]
    (wrong,) = [one for one in found if one.usd_per_hour == Decimal("7.692")]
    assert wrong.reasons == ("an error of its source: 46.86 before and 46.89 USD/h after it",)
    ranked = store.rates(NOW, as_of=moment, provider="azure", gpus=wrong.gpu)
    assert [r for r in ranked if (r.instance_type, r.region) == (wrong.instance_type, wrong.region)] == []
