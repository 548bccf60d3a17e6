"""What is believed in the first refresh there is, of which only bundled prices and catalogues are known."""

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from planner.rates import Tier
from pricing.offer import Offer, Verdict
from pricing.storage.memory import KnownPrice, Origin
from pricing.verify import verify
from tests.pricing.known import DAY, KINDS, NOW, known, known_as, offer

# Three sellers of the class at about 3 USD.
MARKET = [known("3.2", provider="other"), known("2.8", provider="third"), known("3.1", provider="fourth")]


def bundled(price: str, *, days_ago: float = 30, **changes: Any) -> KnownPrice:
    return known(price, days_ago=days_ago, origin=Origin.SNAPSHOT, **changes)


def verdict(one: Offer, *remembered: KnownPrice) -> tuple[Verdict, str]:
    (found,) = verify([one], [*MARKET, *remembered], kinds=KINDS)
    return found.verdict, "; ".join(found.reasons)


def waiting(one: Offer, nights: int) -> KnownPrice:
    seen = {"last_seen_at": NOW - DAY, "times_seen": nights}
    return known_as(one, days_ago=nights, verdict=Verdict.QUARANTINED, **seen)


@pytest.mark.parametrize("price", ["2.685", "3.35", "2.24", "3.30"])
def test_what_the_bundled_price_of_an_offer_contradicts_waits_for_days(price: str) -> None:
    """3.00 in euros, dollars as euros, in pounds, or truly a tenth dearer: nobody can tell yet."""
    row, before = offer(price), bundled("3.00")
    found, why = verdict(row, before)
    assert found is Verdict.QUARANTINED
    assert "its own last price (3.00 USD on 2026-10-31), no own run knows it yet" in why
    assert verdict(row, before, waiting(row, 1))[0] is Verdict.QUARANTINED
    assert verdict(row, before, waiting(row, 3))[0] is Verdict.VERIFIED


def test_what_the_bundled_price_says_is_verified_at_once_and_moves_freely_then() -> None:
    assert verdict(offer("3.05"), bundled("3.00"))[0] is Verdict.VERIFIED
    assert verdict(offer("3.30"), bundled("3.00"), known("3.00"))[0] is Verdict.VERIFIED


def test_a_later_bundled_price_of_the_same_gpus_in_the_place_under_another_name_counts() -> None:
    """RunPod's H100: 3.29 in August under its own name, 3.99 in November under a short one."""
    old, new = bundled("3.29", days_ago=100), bundled("3.99", days_ago=20, instance_type="H100")
    assert verdict(offer("3.99"), old, new)[0] is Verdict.VERIFIED
    assert (
        verdict(
            offer("3.29"), bundled("3.99", days_ago=20), bundled("3.29", days_ago=100, instance_type="H")
        )[0]
        is Verdict.QUARANTINED
    )
    elsewhere = bundled("3.99", days_ago=20, instance_type="H100", region="eu")
    assert verdict(offer("3.99", region="us"), replace(old, region="us"), elsewhere)[0] is Verdict.QUARANTINED


@pytest.mark.parametrize(
    ("before", "price", "expected"),
    [
        ([bundled("3.00", region="eu")], "3.02", True),
        ([bundled("3.00", region="eu")], "2.685", False),
        ([bundled("24.00", gpu_count=8)], "3.00", True),
        ([bundled("24.00", gpu_count=8)], "3.35", False),
        # A price of May is no word for what costs 3.30 in August.
        ([bundled("2.70", days_ago=180, gpu_count=4), bundled("26.40", gpu_count=8)], "0.675", False),
        # Sizes that own runs verified days ago vouch as they always do; those of yesterday do not yet.
        ([bundled("24.00", gpu_count=8), known("6.00", gpu_count=2, days_ago=5)], "3.35", True),
        ([bundled("24.00", gpu_count=8), known("6.00", gpu_count=2, days_ago=1)], "3.35", False),
        # Sold out or gone between, it is known since it was first seen at that price.
        (
            [
                bundled("24.00", gpu_count=8),
                known("6.00", gpu_count=2, days_ago=5, last_seen_at=NOW - 3 * DAY),
                known("6.00", gpu_count=2, days_ago=1),
            ],
            "3.35",
            True,
        ),
    ],
)
def test_a_new_offer_costs_what_bundled_ones_of_its_gpu_do(
    before: Sequence[KnownPrice], price: str, expected: bool
) -> None:
    assert (verdict(offer(price, region="us"), *before)[0] is Verdict.VERIFIED) is expected


def test_of_asks_a_tenth_is_no_contradiction() -> None:
    before = bundled("3.00", provider="bazaar")
    for price, expected in (("2.75", True), ("3.25", True), ("2.685", False), ("3.36", False)):
        found = verdict(offer(price, provider="bazaar"), before)[0]
        assert (found is Verdict.VERIFIED) is expected, price


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        ({}, True),  # this very offer
        ({"region": "eu"}, True),  # the same machine elsewhere
        ({"instance_type": "another host"}, False),
        ({"gpu_count": 2, "instance_type": "another host"}, False),
    ],
)
def test_asks_of_other_hosts_say_nothing_of_this_one(before: dict[str, Any], expected: bool) -> None:
    usd = str(3 * before.get("gpu_count", 1))
    row = offer("3.00", provider="bazaar", region="us")
    collected_one = bundled(usd, provider="bazaar", **({"region": "us"} | before))
    assert (verdict(row, collected_one)[0] is Verdict.VERIFIED) is expected


def test_halfway_between_two_collected_prices_is_no_price() -> None:
    """Verda's B200, 4.89 and 6.11: 6.11 in euros is 5.47, and 5.50 lies between the two."""
    two = [bundled("4.89", instance_type="old"), bundled("6.11", days_ago=20, instance_type="new")]
    for price, expected in (("5.47", False), ("6.11", True), ("4.85", True)):
        assert (verdict(offer(price), *two)[0] is Verdict.VERIFIED) is expected, price


def test_rows_of_yesterday_in_other_regions_do_not_vouch_for_another_price() -> None:
    """Hyperbolic's H100 in the first run: one place as collected, the other in euros, night after night."""
    collected_one = bundled("3.19", instance_type="H100")
    elsewhere = known("3.19", region="us")
    row = offer("2.855", region="eu")
    assert verdict(row, collected_one, elsewhere, waiting(row, 1))[0] is Verdict.QUARANTINED
    assert verdict(offer("3.19", region="eu"), collected_one, elsewhere)[0] is Verdict.VERIFIED


def test_a_first_price_near_the_market_waits_for_a_night() -> None:
    row = offer("2.00")
    assert verdict(row)[1] == "first on_demand price of this provider for this GPU: waits to be seen again"
    assert verdict(row, waiting(row, 1))[0] is Verdict.VERIFIED


@pytest.mark.parametrize("price", ["1.10", "8.00"])
def test_a_first_price_at_half_or_twice_the_market_waits_for_days(price: str) -> None:
    row = offer(price)
    assert "of the market: waits until it has stayed for days" in verdict(row)[1]
    assert verdict(row, waiting(row, 1))[0] is Verdict.QUARANTINED
    assert verdict(row, waiting(row, 3))[0] is Verdict.VERIFIED


def test_a_first_price_without_a_market_waits_for_a_night() -> None:
    row = offer("3.00", tier=Tier.SPOT)
    assert verdict(row)[0] is Verdict.QUARANTINED
    assert verdict(row, waiting(row, 1))[0] is Verdict.VERIFIED


def test_a_first_price_that_a_fresh_catalogue_contradicts_waits_for_days() -> None:
    row = offer("2.00")
    told = known_as(offer("3.00", witness="gpuhunt", instance_type="w"))
    assert "gpuhunt says 3.00 USD" in verdict(row, told)[1]
    assert verdict(row, told, waiting(row, 1))[0] is Verdict.QUARANTINED
    old = replace(told, first_seen_at=NOW - 100 * DAY, last_seen_at=NOW - 100 * DAY)
    assert verdict(row, old, waiting(row, 1))[0] is Verdict.VERIFIED  # its word is too old to count


def test_a_catalogue_confirms_a_first_price_only_nearer_than_an_exchange_rate() -> None:
    told = known_as(offer("3.00", witness="gpuhunt", instance_type="w"))
    assert verdict(offer("3.10"), told)[0] is Verdict.VERIFIED
    assert verdict(offer("2.685"), told)[0] is Verdict.QUARANTINED


def test_a_change_of_unit_is_noticed_before_the_first_price_was_verified() -> None:
    """Eight GPUs at 24.00 wait since yesterday, and at 3.00 for many nights since: per GPU?"""
    whole = known_as(offer("24.00", gpu_count=8, tier=Tier.SPOT), days_ago=9, verdict=Verdict.QUARANTINED)
    row = offer("3.00", gpu_count=8, tier=Tier.SPOT)
    found, why = verdict(row, whole, waiting(row, 5))
    assert found is Verdict.QUARANTINED
    assert "per GPU for per instance" in why
    other = replace(row, usd_per_hour=Decimal("20.00"))
    assert verdict(other, whole, waiting(other, 5))[0] is Verdict.VERIFIED


@pytest.mark.parametrize(("price", "nights", "expected"), [("3.10", 0, True), ("6.20", 30, False)])
def test_a_new_name_is_compared_with_what_cost_in_the_same_place(
    price: str, nights: int, expected: bool
) -> None:
    """In Virginia 3.00 under another name; 6.20 is what Sao Paulo costs, and no leap from the middle."""
    of_list: dict[str, Any] = {"provider": "giant", "instance_type": "old"}
    here = known("3.00", days_ago=40, region="us-east-1", last_seen_at=NOW - DAY, **of_list)
    there = known("6.00", days_ago=40, region="sa-east-1", last_seen_at=NOW - DAY, **of_list)
    row = offer(price, provider="giant", instance_type="new", region="us-east-1")
    (found,) = verify([row], [here, there, *([waiting(row, nights)] if nights else [])], kinds=KINDS)
    assert (found.verdict is Verdict.VERIFIED) is expected, found.reasons
