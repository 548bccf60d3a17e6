"""What a GPU may cost of which nobody else's price is known."""

from typing import Any

import pytest

from planner.rates import Tier
from pricing.offer import Verdict
from pricing.storage.memory import KnownPrice
from pricing.verify import verify
from tests.pricing.known import DAY, KINDS, NOW, known, known_as, offer

# Five devices, each at one dollar for a terabyte per second of its memory. Source: planner/data/gpus.toml.
BANDWIDTH_TB_PER_S = {"H100 SXM": 3.35, "H200 SXM": 4.8, "A100 80GB SXM": 2.039, "L40S": 0.864, "L40": 0.864}
SELLERS = ("other", "third", "fourth")
# 8 TB/s: 8.00 USD, of which 1/7 is 1.14 and four times 32.
NEW: dict[str, Any] = {"gpu": "Instinct MI355X", "instance_type": "MI355X"}


def market(tier: Tier = Tier.ON_DEMAND, dollar: float = 1.0) -> list[KnownPrice]:
    return [
        known(f"{usd * dollar}", gpu=gpu, provider=seller, tier=tier)
        for gpu, usd in BANDWIDTH_TB_PER_S.items()
        for seller in SELLERS
    ]


def seen(price: str, nights: int, *remembered: KnownPrice, **changes: Any) -> tuple[Verdict, str]:
    row = offer(price, **(NEW | changes))
    waits = known_as(
        row, days_ago=nights, verdict=Verdict.QUARANTINED, last_seen_at=NOW - DAY, times_seen=nights
    )
    (found,) = verify([row], [*market(), waits, *remembered], kinds=KINDS)
    return found.verdict, "; ".join(found.reasons)


@pytest.mark.parametrize("price", ["0.01", "1.12", "32.5", "38"])
def test_a_new_gpu_far_from_what_bandwidth_costs_waits_however_often_it_is_seen(price: str) -> None:
    found, why = seen(price, 30)
    assert found is Verdict.QUARANTINED
    assert "the 8.00 USD of its memory bandwidth in 5 other GPUs" in why


@pytest.mark.parametrize("price", ["1.16", "4.40", "8.60", "31.5"])
def test_a_new_gpu_near_it_is_verified_when_seen_again(price: str) -> None:
    assert seen(price, 1)[0] is Verdict.VERIFIED


def test_a_catalogue_and_the_price_that_it_had_make_up_for_it() -> None:
    told = known_as(offer("1.00", witness="gpuhunt", **NEW), times_seen=2)
    assert seen("1.00", 1, told)[0] is Verdict.VERIFIED
    assert seen("1.00", 1, known("1.05", days_ago=40, **NEW))[0] is Verdict.VERIFIED
    assert seen("0.50", 30, known("1.05", days_ago=40, **NEW))[0] is Verdict.QUARANTINED


@pytest.mark.parametrize("tier", [Tier.ON_DEMAND, Tier.SPOT])
def test_a_price_does_not_go_far_from_it_in_steps(tier: Tier) -> None:
    """31.00 and 1.20 are within, 33.00 and 1.10 are not, and each is a small step."""
    for before, now in (("31.00", "33.00"), ("1.20", "1.10")):
        own = known(before, tier=tier, **NEW)
        assert seen(before, 0, own, tier=tier)[0] is Verdict.VERIFIED
        assert seen(now, 30, own, tier=tier)[0] is Verdict.QUARANTINED


@pytest.mark.parametrize(("price", "expected"), [("0.47", False), ("0.49", True), ("5.00", True)])
def test_a_first_spot_price_is_measured_by_list_prices_too(price: str, expected: bool) -> None:
    """H100 at 3.35 on demand: 1/7 is 0.479, 1.5 times 5.03. No spot price of any GPU is known."""
    spot: dict[str, Any] = {"gpu": "H100 SXM", "tier": Tier.SPOT}
    assert (seen(price, 4, **spot)[0] is Verdict.VERIFIED) is expected
    if not expected:
        assert "the 3.35 asked on demand: waits for a catalogue or a person" in seen(price, 4, **spot)[1]


@pytest.mark.parametrize(("price", "expected"), [("0.45", False), ("0.47", True)])
def test_spot_prices_are_measured_by_spot_prices(price: str, expected: bool) -> None:
    """At 0.40 USD for a TB/s 8 TB/s cost 3.20, of which 1/7 is 0.457."""
    found = seen(price, 4, *market(Tier.SPOT, 0.4), tier=Tier.SPOT)
    assert (found[0] is Verdict.VERIFIED) is expected


def test_four_devices_are_no_measure() -> None:
    row = offer("0.02", **NEW)
    few = [price for price in market() if price.gpu != "L40"]
    waits = known_as(row, days_ago=1, verdict=Verdict.QUARANTINED)
    assert verify([row], [*few, waits], kinds=KINDS)[0].verdict is Verdict.VERIFIED
