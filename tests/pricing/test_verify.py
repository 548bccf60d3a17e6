"""A wrong price shown as verified is the worst bug: every way we know for a price to be wrong."""

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from planner.rates import Tier
from pricing.offer import Offer, Verdict
from pricing.provider import ProviderClass
from pricing.storage.memory import KnownPrice, Origin
from pricing.storage.snapshot import snapshot_offers, superseded_at
from pricing.verification.market import Market
from pricing.verification.recall import Memory
from pricing.verify import RULES, is_plausible, verify
from tests.pricing.known import DAY, KINDS, NOW, known, known_as, offer

ROOT = Path(__file__).resolve().parents[2]
# Three sellers of the class at about 3 USD, and acme's own history at 3.00.
MARKET = [known("3.2", provider="other"), known("2.8", provider="third"), known("3.1", provider="fourth")]
OWN = [known("3.00"), known("24.00", gpu_count=8)]


def judge(offers: Sequence[Offer], remembered: Sequence[KnownPrice] = (), **more: Any) -> list[Offer]:
    return verify(offers, list(remembered), kinds=KINDS, **more)


def verdict(one: Offer, *remembered: KnownPrice, **more: Any) -> tuple[Verdict, str]:
    (found,) = judge([one], [*MARKET, *remembered], **more)
    return found.verdict, "; ".join(found.reasons)


# -- what is right ------------------------------------------------------------------------------------


def test_an_unchanged_price_is_verified() -> None:
    assert verdict(offer("3.00"), *OWN) == (Verdict.VERIFIED, "")


@pytest.mark.parametrize("price", ["2.10", "2.70", "3.30", "4.40"])
def test_a_small_move_is_verified(price: str) -> None:
    assert verdict(offer(price), *OWN)[0] == Verdict.VERIFIED


def test_the_order_of_the_offers_is_kept() -> None:
    offers = [offer("24.00", gpu_count=8), offer("3.00"), offer("0")]
    found = judge(offers, [*MARKET, *OWN])
    assert [one.usd_per_hour for one in found] == [one.usd_per_hour for one in offers]
    assert [one.verdict for one in found] == [Verdict.VERIFIED, Verdict.VERIFIED, Verdict.REJECTED]


@pytest.mark.parametrize("price", ["1e15", "1e308", "1e400", "NaN", "Infinity", "-1", "1e-400"])
def test_no_price_however_absurd_keeps_the_others_from_being_judged(price: str) -> None:
    wrong, right = judge([offer(price), offer("24.00", gpu_count=8)], [*MARKET, *OWN])
    assert (wrong.verdict, right.verdict) == (Verdict.REJECTED, Verdict.VERIFIED)
    assert all(len(reason) < 120 for reason in wrong.reasons)


def test_no_offers_no_verdicts() -> None:
    assert judge([]) == []


def test_volume_discounts_are_no_fault() -> None:
    """Lambda, H100 SXM: 8x 3.99, 4x 4.09, 2x 4.19, 1x 4.29 per GPU."""
    prices = {8: "31.92", 4: "16.36", 2: "8.38", 1: "4.29"}
    offers = [offer(price, gpu_count=count) for count, price in prices.items()]
    assert {one.verdict for one in judge(offers, [*MARKET, known("4.29")])} == {Verdict.VERIFIED}


# -- single wrong prices ------------------------------------------------------------------------------

WRONG: list[tuple[str, str, Verdict, str]] = [
    ("cents as dollars", "300", Verdict.REJECTED, "outside 0.01 to 40"),
    ("dollars as cents", "0.03", Verdict.REJECTED, "no price but a mistake"),
    ("a month as an hour", "2190", Verdict.REJECTED, "outside 0.01 to 40"),
    ("zero", "0", Verdict.REJECTED, "no price"),
    ("negative", "-3", Verdict.REJECTED, "no price"),
    ("not a number", "NaN", Verdict.REJECTED, "no price"),
    ("infinite", "Infinity", Verdict.REJECTED, "no price"),
    ("ten times", "31", Verdict.REJECTED, "no price but a mistake"),
    ("four times", "12", Verdict.QUARANTINED, "too far from the market"),
    ("a fifth", "0.6", Verdict.QUARANTINED, "too far from the market"),
    ("twice", "6", Verdict.QUARANTINED, "2.00 times its own last price (3.00 USD on 2026-11-29)"),
    ("half", "1.5", Verdict.QUARANTINED, "0.50 times its own last price"),
]


@pytest.mark.parametrize(("what", "price", "expected", "reason"), WRONG, ids=[row[0] for row in WRONG])
def test_a_wrong_price_is_not_verified(what: str, price: str, expected: Verdict, reason: str) -> None:
    found, why = verdict(offer(price), *OWN)
    assert found == expected, what
    assert reason in why


@pytest.mark.parametrize(("gpu", "price", "expected"), [("GB200", "216.32", True), ("GB200", "260", False)])
def test_racks_may_cost_more_than_forty(gpu: str, price: str, expected: bool) -> None:
    """Azure, 4 GB200 in Brazil South: 54.08 per GPU is its list price."""
    rows = [offer(price, provider="azure", gpu=gpu, gpu_count=4, region="brazilsouth")]
    remembered = [
        known("128", provider="azure", gpu=gpu, gpu_count=4, region=region) for region in ("a", "b", "c")
    ]
    (found,) = judge(rows, [*remembered, known_as(offer("216.32", **_azure(gpu)))])
    assert (found.verdict == Verdict.VERIFIED) is expected


def _azure(gpu: str) -> dict[str, Any]:
    return {"provider": "azure", "gpu": gpu, "gpu_count": 4, "region": "brazilsouth"}


def test_a_slice_is_measured_as_the_card_it_is_of() -> None:
    part = offer("0.375", gpu_fraction=0.125, instance_type="h100-eighth")  # 3.00 for the card
    assert verdict(part, known_as(part))[0] == Verdict.VERIFIED
    dear = replace(part, usd_per_hour=Decimal(6))  # 48 for the card
    assert verdict(dear, known_as(part)) == (Verdict.REJECTED, "48.00 USD per GPU-hour is outside 0.01 to 40")


def test_a_slice_does_not_vouch_for_a_card() -> None:
    part = known_as(offer("3.00", gpu_fraction=0.5, instance_type="half"))
    found, why = verdict(offer("3.00"), part)
    assert found == Verdict.QUARANTINED
    assert "first on_demand price" in why


# -- identity -----------------------------------------------------------------------------------------


def test_an_ambiguous_gpu_is_never_verified() -> None:
    reason = "ambiguous: 'A100' may be A100 40GB SXM, A100 80GB SXM"
    row = offer("1.5", gpu=None, gpu_raw="A100", reasons=(reason,))
    same = known_as(row)
    for remembered in ([], [same], [replace(same, verdict=Verdict.QUARANTINED)]):
        assert verdict(row, *remembered) == (Verdict.QUARANTINED, reason)


def test_a_nameless_instance_is_not_verified() -> None:
    assert verdict(offer("3", instance_type=" "), *OWN)[1] == "the instance has no name"


# -- memory and repetition ----------------------------------------------------------------------------


def test_what_nobody_has_seen_waits() -> None:
    found, why = verdict(offer("3.00"))
    assert (found, why) == (
        Verdict.QUARANTINED,
        "first on_demand price of this provider for this GPU: waits to be seen again",
    )


def test_a_second_independent_sight_verifies() -> None:
    waiting = known("3.00", days_ago=1, verdict=Verdict.QUARANTINED)
    assert verdict(offer("3.00"), waiting)[0] == Verdict.VERIFIED


@pytest.mark.parametrize(("hours", "expected"), [(1 / 6, False), (1.1, False), (11, False), (12, True)])
def test_a_second_sight_of_the_same_half_day_does_not(hours: float, expected: bool) -> None:
    waiting = known("3.00", days_ago=hours / 24, verdict=Verdict.QUARANTINED)
    assert (verdict(offer("3.00"), waiting)[0] == Verdict.VERIFIED) is expected


def test_a_second_sight_at_another_price_does_not() -> None:
    waiting = known("3.00", days_ago=1, verdict=Verdict.QUARANTINED)
    assert verdict(offer("3.30"), waiting)[0] == Verdict.QUARANTINED


def test_what_was_rejected_is_no_second_sight() -> None:
    assert verdict(offer("3.00"), known("3.00", verdict=Verdict.REJECTED))[0] == Verdict.QUARANTINED


def test_a_large_move_is_verified_when_seen_again() -> None:
    waiting = known("1.70", days_ago=1, verdict=Verdict.QUARANTINED)
    assert verdict(offer("1.70"), known("3.00", days_ago=2), waiting)[0] == Verdict.VERIFIED


def test_a_large_move_that_was_taken_back_starts_anew() -> None:
    waiting = known("1.70", days_ago=3, verdict=Verdict.QUARANTINED)
    assert verdict(offer("1.70"), known("3.00", days_ago=2), waiting)[0] == Verdict.QUARANTINED


def test_repetition_does_not_lift_a_price_off_the_market() -> None:
    waiting = known("0.50", days_ago=1, verdict=Verdict.QUARANTINED)
    assert verdict(offer("0.50"), known("3.00", days_ago=2), waiting)[0] == Verdict.QUARANTINED


def test_a_person_can() -> None:
    assert verdict(offer("0.50"), known("0.50"))[0] == Verdict.VERIFIED


@pytest.mark.parametrize("price", ["0.50", "6.00", "250"])
def test_what_a_person_accepted_stays_accepted_whatever_rule_it_breaks(price: str) -> None:
    """Placeholder or not: community at 0.50 beside secure at 3.00; a leap; an absurd price."""
    rows = [offer(price, tier=Tier.COMMUNITY), offer("3.00", tier=Tier.SECURE)]
    before = [known("3.00", tier=tier, days_ago=9) for tier in (Tier.COMMUNITY, Tier.SECURE)]
    assert judge(rows, [*MARKET, *before])[0].verdict is not Verdict.VERIFIED
    word = known_as(rows[0], reasons=("a placeholder?", "accepted by kim on 2026-11-29: I rent it"))
    assert judge(rows, [*MARKET, *before, word])[0].verdict is Verdict.VERIFIED
    assert judge([offer("0.40", tier=Tier.COMMUNITY), rows[1]], [*MARKET, *before, word])[0].reasons


def test_nobody_can_accept_what_is_no_price_or_no_device() -> None:
    for row in (offer("0"), offer("3.00", gpu=None)):
        word = known_as(row, reasons=("accepted by kim on 2026-11-29: why not",))
        assert judge([row], [word])[0].verdict is not Verdict.VERIFIED


def test_the_collection_is_not_leant_on_where_it_is_off_the_market() -> None:
    """RunPod's community H200 at 0.50 was a placeholder, and stands in such collections."""
    row = offer("0.50")
    assert verdict(row, known("0.50", origin=Origin.SNAPSHOT))[0] == Verdict.QUARANTINED


@pytest.mark.parametrize(
    ("remembered", "price", "expected"),
    [
        (known("3.00", region="eu"), "3.10", True),  # the same instance elsewhere
        (known("3.00", region="eu"), "4.60", False),
        (known("3.00", instance_type="H100 80GB"), "3.10", True),  # the same GPUs under another name
        (known("24.00", gpu_count=8), "3.10", True),  # the same GPU in another size
        (known("24.00", gpu_count=8), "4.60", False),
        (known("3.00", tier=Tier.SPOT), "3.00", False),  # another tier is another price
        (known("3.00", gpu="H100 PCIe"), "3.00", False),
        (known("3.00", provider="other"), "3.00", False),
        (known("3.00", gpu_only=True), "3.00", False),  # the CPU is billed apart there
    ],
)
def test_memory_is_asked_from_near_to_far(remembered: KnownPrice, price: str, expected: bool) -> None:
    assert (verdict(offer(price, region="us"), remembered)[0] == Verdict.VERIFIED) is expected


def test_the_nearest_level_decides() -> None:
    far = [known("24.00", gpu_count=8), known("3.00", region="eu")]
    found, why = verdict(offer("3.00", region="us"), known("1.50", region="us"), *far)
    assert found == Verdict.QUARANTINED
    assert "its own last price (1.50" in why


def test_the_newest_own_price_counts() -> None:
    older = known("1.00", days_ago=400)
    assert verdict(offer("3.00"), older, known("2.90", days_ago=1))[0] == Verdict.VERIFIED


def test_prices_of_the_future_are_not_remembered() -> None:
    memory = Memory([known("3.00")], "acme", before=NOW - timedelta(days=30))
    assert memory.nearest(offer("3.00")) is None


def test_terms_of_different_length_are_different_prices() -> None:
    month = offer("2.70", tier=Tier.RESERVED_OTHER, commitment_days=30)
    half = offer("1.50", tier=Tier.RESERVED_OTHER, commitment_days=180)
    found = judge([month, half], [*MARKET, known_as(month), known_as(half)])
    assert {one.verdict for one in found} == {Verdict.VERIFIED}


def test_an_old_price_below_a_newer_one_is_not_trusted() -> None:
    """DigitalOcean: 8x H100 at 23.92 in its interface of 2025, 35.28 on its page of 2026."""
    old = known("23.92", gpu_count=8, instance_type="gpu-h100x8", region="nyc1", days_ago=450)
    new = known("35.28", gpu_count=8, instance_type="NVIDIA H100 (8x)", days_ago=100)
    row = offer("23.92", gpu_count=8, instance_type="gpu-h100x8", region="nyc1")
    found, why = verdict(row, old, new)
    assert found == Verdict.QUARANTINED
    assert "35.28 USD were seen on 2026-08-22: an old list?" in why
    dearer = known("15.92", gpu_count=8, instance_type="HGX H100 8x", days_ago=100)
    assert verdict(row, old, dearer)[0] == Verdict.VERIFIED  # a teaser with a term does not outweigh it


# -- classes of sellers -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("provider", "tier", "price", "expected"),
    [
        ("acme", Tier.ON_DEMAND, "4.60", False),
        ("bazaar", Tier.ON_DEMAND, "4.60", True),
        ("bazaar", Tier.ON_DEMAND, "5.60", True),
        ("bazaar", Tier.ON_DEMAND, "5.80", False),
        ("giant", Tier.SPOT, "4.40", True),
        ("giant", Tier.SPOT, "4.60", False),
        ("runpod", Tier.SECURE, "4.60", False),
        ("runpod", Tier.COMMUNITY, "4.80", False),  # a marketplace with a list of its own
        ("runpod", Tier.COMMUNITY, "4.40", True),
    ],
)
def test_asks_move_more_than_lists(provider: str, tier: Tier, price: str, expected: bool) -> None:
    row = offer(price, provider=provider, tier=tier)
    remembered = known("3.00", provider=provider, tier=tier)
    assert (judge([row], [remembered])[0].verdict == Verdict.VERIFIED) is expected


def test_hyperscalers_are_judged_among_themselves() -> None:
    remembered = [known("12", provider="giant", region=str(n)) for n in range(3)]
    row = offer("11", provider="giant", region="new")
    assert judge([row], [*MARKET, *remembered])[0].verdict == Verdict.VERIFIED
    cheap = offer("3", provider="giant", region="new")
    assert "hyperscalers ask" in judge([cheap], [*MARKET, *remembered])[0].reasons[0]


def test_too_few_prices_make_no_market() -> None:
    market = Market([known("3", provider="other"), known("3", provider="third")], KINDS)
    assert market.level("H100 SXM", Tier.ON_DEMAND, ProviderClass.NEOCLOUD) is None


def test_each_seller_counts_once() -> None:
    many = [known("12", provider="other", region=str(n)) for n in range(60)]
    market = Market([*many, known("3", provider="third"), known("3.2", provider="fourth")], KINDS)
    level = market.level("H100 SXM", Tier.ON_DEMAND, ProviderClass.NEOCLOUD)
    assert level is not None
    assert level.usd_per_gpu_hour == pytest.approx(3.2)


def test_all_classes_stand_in_where_one_has_too_few() -> None:
    level = Market(MARKET, KINDS).level("H100 SXM", Tier.ON_DEMAND, ProviderClass.MARKETPLACE)
    assert level is not None
    assert (level.usd_per_gpu_hour, level.is_own_class) == (pytest.approx(3.1), False)


@pytest.mark.parametrize(
    "changes",
    [
        {"days_ago": 122},
        {"verdict": Verdict.QUARANTINED},
        {"gpu_only": True},
        {"gpu_fraction": 0.5},
        {"witness": "gpuhunt"},
        {"tier": Tier.SPOT},
    ],
)
def test_what_is_no_recent_whole_verified_price_does_not_make_the_market(changes: dict[str, Any]) -> None:
    recent = [known("3", provider="other"), known("3", provider="third")]
    odd = known("30", provider="fourth", **changes)
    assert Market([*recent, odd], KINDS).level("H100 SXM", Tier.ON_DEMAND, ProviderClass.NEOCLOUD) is None


def test_reserved_prices_have_a_level_of_their_own() -> None:
    terms = [known("1.5", provider=name, tier=Tier.RESERVED_3Y) for name in ("other", "third", "fourth")]
    level = Market([*MARKET, *terms], KINDS).level("H100 SXM", Tier.RESERVED_1Y, ProviderClass.NEOCLOUD)
    assert level is not None
    assert level.usd_per_gpu_hour == pytest.approx(1.5)


# -- offers of one run against each other -------------------------------------------------------------


@pytest.mark.parametrize("provider", ["acme", "bazaar"])
@pytest.mark.parametrize(
    ("price", "count"), [("3.00", 8), ("192.00", 8), ("3.00", 4)], ids=["per GPU", "squared", "of four"]
)
def test_per_gpu_for_per_instance_is_noticed_without_any_history(
    provider: str, price: str, count: int
) -> None:
    right = [offer("3.00", provider=provider), offer("6.00", provider=provider, gpu_count=2)]
    found = judge([*right, offer(price, provider=provider, gpu_count=count)])
    assert found[2].verdict != Verdict.VERIFIED
    assert "first on_demand" not in found[2].reasons[0]


def test_of_two_sizes_the_one_that_memory_knows_is_right() -> None:
    found = judge([offer("3.00"), offer("3.00", gpu_count=8)], [*MARKET, known("3.00")])
    assert [one.verdict for one in found] == [Verdict.VERIFIED, Verdict.QUARANTINED]
    assert "per GPU or per instance?" in " ".join(found[1].reasons)


def test_hosts_of_hyperscalers_differ() -> None:
    """Azure, T4: one GPU 0.526, four GPUs in a large host 4.352."""
    rows = [
        offer("0.526", provider="azure", gpu="T4", instance_type="NC4as"),
        offer("4.352", provider="azure", gpu="T4", gpu_count=4, instance_type="NC64as"),
    ]
    found = judge(rows, again(rows, 3))
    assert {one.verdict for one in found} == {Verdict.VERIFIED}


def test_a_lost_count_is_noticed() -> None:
    remembered = known("24.00", gpu_count=8, instance_type="hgx")
    found, why = verdict(offer("24.00", instance_type="hgx"), remembered)
    assert found != Verdict.VERIFIED
    cheap = known("4.00", gpu_count=8, instance_type="hgx", gpu="L40S")
    (found_cheap,) = judge([offer("4.00", gpu_count=4, instance_type="hgx", gpu="L40S")], [cheap])
    assert "hgx has 4 GPUs here and had 8 before" in found_cheap.reasons
    assert why


def test_a_name_that_is_sold_in_several_sizes_says_nothing_about_the_count() -> None:
    rows = [offer("3.00", instance_type="H100"), offer("6.00", instance_type="H100", gpu_count=2)]
    found = judge(rows, [*MARKET, known("3.00", instance_type="H100")])
    assert {one.verdict for one in found} == {Verdict.VERIFIED}


def test_spot_and_on_demand_exchanged_are_both_held_back() -> None:
    rows = [offer("2.50"), offer("3.00", tier=Tier.SPOT)]
    found = judge(rows, [*MARKET, known("3.00"), known("2.50", tier=Tier.SPOT)])
    assert {one.verdict for one in found} == {Verdict.QUARANTINED}


def test_spot_above_on_demand_leaves_an_unchanged_on_demand_price_alone() -> None:
    rows = [offer("3.00"), offer("3.20", tier=Tier.SPOT)]
    found = judge(rows, [*MARKET, known("3.00"), known("2.80", tier=Tier.SPOT)])
    assert [one.verdict for one in found] == [Verdict.VERIFIED, Verdict.QUARANTINED]
    assert found[1].reasons == ("spot at 3.20 is above on-demand at 3.00 USD",)


@pytest.mark.parametrize("beside", [[], ["1.60"]], ids=["no spot prices any more", "spot lower too"])
@pytest.mark.parametrize(("price", "expected"), [("2.00", False), ("1.95", False), ("2.30", True)])
def test_an_on_demand_price_at_the_spot_price_in_force_is_held_back(
    price: str, expected: bool, beside: list[str]
) -> None:
    """The list on demand shows the prices of spot."""
    rows = [offer(price), *(offer(usd, tier=Tier.SPOT) for usd in beside)]
    for nights in (0, 5):
        before = [known("2.50", days_ago=6), known("2.00", tier=Tier.SPOT, days_ago=6)]
        found = judge(rows, [*MARKET, *before, *again(rows[:1], nights)])[0]
        assert (found.verdict is Verdict.VERIFIED) is expected
        assert expected or "not above spot, its own last price (2.00" in found.reasons[0]


def test_where_spot_cost_the_same_or_is_of_long_ago_it_holds_nothing_back() -> None:
    rows = [offer("1.90"), offer("1.84", tier=Tier.SPOT)]
    same = [known("2.00"), known("2.00", tier=Tier.SPOT)]
    assert judge(rows, [*MARKET, *same])[0].verdict is Verdict.VERIFIED
    old = [known("2.50"), known("2.00", tier=Tier.SPOT, days_ago=30)]
    assert judge([offer("2.00")], [*MARKET, *old])[0].verdict is Verdict.VERIFIED


@pytest.mark.parametrize("nights", [0, 5])
@pytest.mark.parametrize(
    ("price", "term", "expected"),
    [
        ("2.00", "1.90", "qv"),  # the price of the term, for that without
        ("1.99", "1.95", "qv"),
        ("2.00", "2.50", "qq"),  # exchanged, and 2.50 was 2.55
        ("1.90", "2.00", "vv"),  # cut below a term, which nobody takes then
        ("2.55", "2.55", "vq"),
        ("2.20", "1.90", "vv"),
        ("2.55", "1.80", "vv"),
    ],
)
def test_a_price_on_demand_and_that_of_a_term_do_not_take_each_others_place(
    price: str, term: str, expected: str, nights: int
) -> None:
    more: dict[str, Any] = {"tier": Tier.RESERVED_1Y, "commitment_days": 365}
    before = [known("2.55", days_ago=6), known("2.00", days_ago=6, **more)]
    rows = [offer(price), offer(term, **more)]
    found = judge(rows, [*MARKET, *before, *again(rows, nights)])
    assert "".join(one.verdict.value[0] for one in found) == expected, [one.reasons for one in found]


def test_where_the_term_cost_as_much_the_price_on_demand_is_free() -> None:
    more: dict[str, Any] = {"tier": Tier.RESERVED_1Y, "commitment_days": 365}
    before = [known("2.00", days_ago=6), known("2.00", days_ago=6, **more)]
    found = judge([offer("1.90"), offer("2.00", **more)], [*MARKET, *before])
    assert found[0].verdict is Verdict.VERIFIED


def test_a_term_that_costs_more_than_none_is_held_back() -> None:
    rows = [offer("3.00"), offer("3.20", tier=Tier.RESERVED_1Y, commitment_days=365)]
    found = judge(rows, [*MARKET, known("3.00")])
    assert "reserved_1y at 3.20 is above on-demand at 3.00 USD" in found[1].reasons


@pytest.mark.parametrize(
    ("community", "expected"), [("0.50", Verdict.QUARANTINED), ("1.10", Verdict.VERIFIED)]
)
def test_a_community_price_far_below_secure_is_a_placeholder(community: str, expected: Verdict) -> None:
    """RunPod, MI300X: community 0.50 beside secure 2.39 while the cloud flag is false."""
    more = {"provider": "runpod", "gpu": "Instinct MI300X", "instance_type": "MI300X"}
    rows = [
        offer("2.39", tier=Tier.SECURE, **more),
        offer(community, tier=Tier.COMMUNITY, **more),
    ]
    remembered = [known_as(row) for row in rows]  # even if it stood there before
    assert judge(rows, remembered)[1].verdict == expected


def test_one_offer_at_two_prices_is_held_back_whole() -> None:
    found = judge([offer("3.00"), offer("3.40")], [*MARKET, known("3.20")])
    assert {one.verdict for one in found} == {Verdict.QUARANTINED}
    assert found[0].reasons == ("listed twice at different prices: 3.00, 3.40 USD",)


def test_one_offer_twice_at_one_price_is_no_fault() -> None:
    found = judge([offer("3.00"), offer("3.00")], [*MARKET, known("3.00")])
    assert {one.verdict for one in found} == {Verdict.VERIFIED}


def test_of_two_prices_the_known_one_stands() -> None:
    found = judge([offer("3.00"), offer("3.40")], [*MARKET, known("3.00")])
    assert [one.verdict for one in found] == [Verdict.VERIFIED, Verdict.QUARANTINED]


LIST = {"H100 SXM": "3.00", "H200 SXM": "3.50", "L40S": "1.10", "B200": "4.20", "A40": "0.90"}


def test_names_and_prices_out_of_step_are_held_back() -> None:
    """Each price is plausible for the next GPU too; only the exchange gives it away."""
    names, prices = list(LIST), list(LIST.values())
    remembered = [known(price, gpu=name, instance_type=name) for name, price in LIST.items()]
    shifted = [
        offer(price, gpu=name, instance_type=name)
        for name, price in zip(names, [*prices[1:], prices[0]], strict=True)
    ]
    assert {one.verdict for one in judge(shifted, remembered)} == {Verdict.QUARANTINED}


def test_two_exchanged_prices_are_held_back_and_no_others() -> None:
    remembered = [known(price, gpu=name, instance_type=name) for name, price in LIST.items()]
    prices = {**LIST, "H100 SXM": "3.50", "H200 SXM": "3.00"}
    found = judge([offer(p, gpu=name, instance_type=name) for name, p in prices.items()], remembered)
    held = {one.gpu for one in found if one.verdict == Verdict.QUARANTINED}
    assert held == {"H100 SXM", "H200 SXM"}


def test_one_price_that_happens_to_be_anothers_old_one_is_no_exchange() -> None:
    remembered = [known(price, gpu=name, instance_type=name) for name, price in LIST.items()]
    prices = {**LIST, "H100 SXM": "3.50", "H200 SXM": "3.90"}
    found = judge([offer(p, gpu=name, instance_type=name) for name, p in prices.items()], remembered)
    assert {one.verdict for one in found} == {Verdict.VERIFIED}


@pytest.mark.parametrize("count", [2, 4, 8])
def test_a_change_of_unit_is_caught_and_stays_caught(count: int) -> None:
    """An aggregator went from per instance to per GPU overnight; single-GPU prices stayed."""
    remembered = [*MARKET, known("3.00"), known(str(3 * count), gpu_count=count)]
    rows = [offer("3.00"), offer("3.00", gpu_count=count)]
    first = judge(rows, remembered)
    assert [one.verdict for one in first] == [Verdict.VERIFIED, Verdict.QUARANTINED]
    waiting = known_as(rows[1], days_ago=0.5, verdict=Verdict.QUARANTINED)
    again = judge(rows, [*remembered, waiting])
    assert again[1].verdict == Verdict.QUARANTINED


def again(rows: Sequence[Offer], days: int) -> list[KnownPrice]:
    """The same prices, waiting since a number of nights."""
    return [
        known_as(row, days_ago=days, verdict=Verdict.QUARANTINED, last_seen_at=NOW - DAY, times_seen=days)
        for row in rows
    ]


@pytest.mark.parametrize("factor", ["0.5", "2", "3", "0.333333", "4", "1.92", "0.52"])
@pytest.mark.parametrize("nights", [0, 1, 30])
def test_no_posted_price_leaps_however_often_it_is_seen(factor: str, nights: int) -> None:
    """Both sizes together, so that no confusion of per GPU and per instance explains it."""
    remembered = [*MARKET, known("3.00", days_ago=40), known("6.00", gpu_count=2, days_ago=40)]
    rows = [offer(Decimal(3) * Decimal(factor)), offer(Decimal(6) * Decimal(factor), gpu_count=2)]
    found = judge(rows, [*remembered, *again(rows, nights)])
    assert Verdict.VERIFIED not in {one.verdict for one in found}
    if 0.3 < float(factor) < 3:
        assert "no posted price ever moved so far" in " ".join(found[0].reasons)


@pytest.mark.parametrize("tier", [Tier.COMMUNITY, Tier.SECURE])
@pytest.mark.parametrize("factor", ["2", "0.5"])
def test_a_list_of_a_marketplace_is_a_list(tier: Tier, factor: str) -> None:
    rows = [offer(Decimal(3) * Decimal(factor), provider="runpod", tier=tier)]
    own = known("3.00", provider="runpod", tier=tier, days_ago=10)
    assert judge(rows, [own])[0].verdict is Verdict.QUARANTINED
    assert judge(rows, [own, *again(rows, 5)])[0].verdict is Verdict.QUARANTINED
    small = offer("4.80", provider="runpod", tier=tier)  # 1.6 times
    assert judge([small], [own])[0].verdict is Verdict.QUARANTINED
    assert judge([small], [own, *again([small], 1)])[0].verdict is Verdict.VERIFIED


@pytest.mark.parametrize(("old", "new"), [("88.488", "48"), ("98.32", "55.04")])
def test_the_great_cuts_of_azure_and_aws_are_verified_when_seen_again(old: str, new: str) -> None:
    """Azure's MI300X in 2025, 0.54 times, and AWS's p5 in 2025, 0.56 times."""
    this: dict[str, Any] = {"provider": "azure", "gpu_count": 8}
    others = [known("60", provider=name, gpu_count=8) for name in ("azure", "giant")]
    remembered = [*others, known(old, days_ago=30, region="eastus", **this)]
    row = offer(new, region="eastus", **this)
    assert judge([row], remembered)[0].verdict is Verdict.QUARANTINED
    assert judge([row], [*remembered, *again([row], 1)])[0].verdict is Verdict.VERIFIED
    said = offer(new, region="eastus", witness="gpuhunt", instance_type="w", **this)
    told = known_as(said, times_seen=2, last_seen_at=NOW)
    assert judge([row], [*remembered, told])[0].verdict is Verdict.VERIFIED


@pytest.mark.parametrize("provider", ["vastai", "bazaar"])
@pytest.mark.parametrize("factor", ["2", "0.5", "2.5"])
def test_an_ask_that_doubles_waits_for_days_and_no_longer(provider: str, factor: str) -> None:
    row = offer(Decimal(3) * Decimal(factor), provider=provider)
    own = known("3.00", provider=provider, days_ago=10)
    for nights, expected in ((0, False), (1, False), (2, False), (3, True)):
        found = judge([row], [own, *again([row], nights)])[0]
        assert (found.verdict is Verdict.VERIFIED) is expected, nights


def test_an_ask_far_from_the_book_is_not_verified() -> None:
    """One RTX 5090 in Ukraine at 53.34, all others at 0.6."""
    book = [offer(f"{2 + n / 10}", provider="bazaar", instance_type=f"host {n}") for n in range(5)]
    far = offer("5.60", provider="bazaar", instance_type="host 9")  # the middle of six is 2.25
    remembered = [known(f"{2 + n / 10}", provider="bazaar", instance_type=f"host {n}") for n in range(5)]
    found = judge([*book, far], [*remembered, *again([far], 9)])
    assert [one.verdict for one in found] == [Verdict.VERIFIED] * 5 + [Verdict.QUARANTINED]
    assert found[5].reasons == (
        "2.49 times the 2.25 USD per GPU-hour in the middle of 6 asks: nobody pays that",
    )


def test_a_machine_of_four_read_per_gpu_is_noticed_where_only_the_collection_is_there() -> None:
    """Vast.ai, 4x H100 at 7.80, in another country."""
    name = "4x H100 SXM, p25"
    bundled = [
        known(
            "7.80", provider="vastai", gpu_count=4, instance_type=name, region=place, origin=Origin.SNAPSHOT
        )
        for place in ("US", "CA", "NL")
    ]
    row = offer("1.95", provider="vastai", gpu_count=4, instance_type=name, region="JP")
    assert judge([row], bundled)[0].verdict is Verdict.QUARANTINED
    assert judge([replace(row, usd_per_hour=Decimal("8.50"))], bundled)[0].verdict is Verdict.VERIFIED


def test_a_count_lost_in_one_region_is_noticed_beside_the_others() -> None:
    eight = {"gpu_count": 8, "instance_type": "nd96", "provider": "azure"}
    regions = [offer("24.00", region=name, **eight) for name in ("eastus", "westus")]
    remembered = [known_as(one) for one in regions]
    lost = replace(regions[1], gpu_count=1)
    found = judge([regions[0], lost], remembered)
    assert found[0].verdict is Verdict.VERIFIED
    assert "nd96 has 1 GPUs here and had 8 before" in found[1].reasons


RATES = {"EUR": 1.1172, "GBP": 1.3399}


@pytest.mark.parametrize("provider", ["acme", "runpod", "bazaar", "azure"])
def test_euros_taken_for_dollars_are_noticed_everywhere(provider: str) -> None:
    own = known("3.00", provider=provider, days_ago=10)
    row = offer("2.685", provider=provider)  # 3.00 / 1.1172
    found = judge([row], [own], usd_per_unit=RATES)[0]
    assert found.verdict is Verdict.QUARANTINED
    assert "exchange rate of EUR" in found.reasons[0]
    (other,) = judge([offer("2.60", provider=provider)], [own], usd_per_unit=RATES)
    assert other.verdict is Verdict.VERIFIED
    (twice,) = judge([row], [own, *again([row], 1)], usd_per_unit=RATES)
    assert twice.verdict is Verdict.QUARANTINED
    (lasting,) = judge([row], [own, *again([row], 3)], usd_per_unit=RATES)
    assert lasting.verdict is Verdict.VERIFIED


def test_a_witness_of_the_price_before_confirms_no_exchange_rate() -> None:
    """2.685 is within 15 % of the witness's 3.00, but that is what the price was."""
    own = known("3.00", days_ago=10)
    assert judge([offer("2.685")], [own, _witness("3.00")], usd_per_unit=RATES)[0].verdict is (
        Verdict.QUARANTINED
    )
    assert judge([offer("2.685")], [own, _witness("2.70")], usd_per_unit=RATES)[0].verdict is Verdict.VERIFIED


@pytest.mark.parametrize("days_ago", [1, 200])
def test_an_exchanged_pair_is_noticed_however_old_the_memory_is(days_ago: int) -> None:
    names = ("H100 SXM", "H200 SXM", "A100 80GB SXM")
    prices = {"H100 SXM": "3.00", "H200 SXM": "3.50", "A100 80GB SXM": "2.00"}
    remembered = [known(prices[name], gpu=name, instance_type=name, days_ago=days_ago) for name in names]
    prices |= {"H100 SXM": "3.50", "H200 SXM": "3.00"}
    found = judge([offer(prices[name], gpu=name, instance_type=name) for name in names], remembered)
    assert [one.verdict for one in found] == [Verdict.QUARANTINED] * 2 + [Verdict.VERIFIED]
    assert "out of step" in found[0].reasons[0]


def test_prices_one_row_down_are_noticed_however_old_the_memory_is() -> None:
    prices = ["3.00", "3.40", "3.80", "4.20"]
    rows = [offer(price, instance_type=f"h100 {n}") for n, price in enumerate(prices)]
    remembered = [known_as(row, days_ago=200) for row in rows]
    down = [rows[0], *(replace(rows[n], usd_per_hour=rows[n - 1].usd_per_hour) for n in (1, 2, 3))]
    found = judge(down, [*remembered, *again(down[1:], 9)])
    assert [one.verdict for one in found] == [Verdict.VERIFIED] + [Verdict.QUARANTINED] * 3


# -- whole runs ---------------------------------------------------------------------------------------


def listed(*prices: str) -> list[Offer]:
    return [offer(price, instance_type=f"h100 {n}", region=f"region {n}") for n, price in enumerate(prices)]


def test_a_list_of_which_most_moves_at_once_waits_for_a_night() -> None:
    rows = listed("3.00", "3.10", "3.20", "3.30", "3.40", "3.50")
    remembered = [known_as(row, days_ago=2) for row in rows]
    moved = listed("3.31", "2.80", "3.53", "2.90", "3.40", "3.50")  # four of six, up and down
    found = judge(moved, remembered)
    assert [one.verdict for one in found] == [Verdict.QUARANTINED] * 4 + [Verdict.VERIFIED] * 2
    assert found[0].reasons == ("4 of 6 prices of the list moved at once: waits to be confirmed",)
    twice = judge(moved, [*remembered, *again(moved[:4], 1)])
    assert {one.verdict for one in twice} == {Verdict.VERIFIED}
    half = [*moved[:3], *rows[3:]]
    assert {one.verdict for one in judge(half, remembered)} == {Verdict.VERIFIED}


def test_a_short_list_or_a_book_may_move_as_a_whole() -> None:
    short = listed("3.00", "3.10")
    assert {one.verdict for one in judge(listed("3.30", "3.60"), [known_as(row) for row in short])} == {
        Verdict.VERIFIED
    }
    asks = [replace(row, provider="bazaar") for row in listed("3.00", "3.10", "3.20", "3.30", "3.40")]
    factors = ("1.2", "1.1", "0.9", "1.2", "1.3")
    moved = [
        replace(row, usd_per_hour=row.usd_per_hour * Decimal(by))
        for row, by in zip(asks, factors, strict=True)
    ]
    assert {one.verdict for one in judge(moved, [known_as(ask) for ask in asks])} == {Verdict.VERIFIED}


@pytest.mark.parametrize("factor", ["1.19", "0.8", "1.38"])
def test_asks_that_all_move_by_one_factor_wait_for_days_and_the_new_one_with_them(factor: str) -> None:
    """A tax, a currency or a unit: hosts set their prices one by one."""
    asks = [replace(row, provider="bazaar") for row in listed("3.00", "3.10", "3.20", "3.30", "3.40")]
    remembered = [known_as(ask, days_ago=10) for ask in asks]
    scaled = [replace(row, usd_per_hour=row.usd_per_hour * Decimal(factor)) for row in asks]
    new = offer("3.00", provider="bazaar", instance_type="h100 9", region="region 9")
    found = judge([*scaled, new], remembered)
    assert {one.verdict for one in found} == {Verdict.QUARANTINED}
    assert found[5].reasons == (
        f"5 of 5 known asks moved by one factor, {float(factor):.2f} times: another unit, currency or tax?",
    )
    for nights, expected in ((1, False), (3, True)):
        later = judge([*scaled, new], [*remembered, *again([*scaled, new], nights)])
        assert all((one.verdict is Verdict.VERIFIED) is expected for one in later), nights
    half = judge([*scaled[:2], *asks[2:]], remembered)
    assert [one.verdict for one in half[2:]] == [Verdict.VERIFIED] * 3


def test_a_page_of_then_is_noticed_by_the_prices_that_went_back() -> None:
    """Two of five prices moved in October; the page of September shows both as they were."""
    then = listed("3.00", "3.10", "3.20", "3.30", "3.40")
    now = listed("3.30", "3.45", "3.20", "3.30", "3.40")
    remembered = [known_as(row, days_ago=60) for row in then] + [known_as(row) for row in now]
    found = judge(then, remembered)
    assert [one.verdict for one in found] == [Verdict.QUARANTINED] * 2 + [Verdict.VERIFIED] * 3
    assert found[0].reasons == ("back at an earlier 3.00 USD: an old page?",)
    assert judge(then, [*remembered, *again(then[:2], 1)])[0].verdict is Verdict.QUARANTINED
    assert judge(then, [*remembered, *again(then[:2], 6)])[0].verdict is Verdict.QUARANTINED
    assert judge(then, [*remembered, *again(then[:2], 7)])[0].verdict is Verdict.VERIFIED


def test_one_price_may_go_back_to_what_it_was_days_ago_and_waits_for_days_where_that_was_long_ago() -> None:
    then, now = listed("3.00", "3.10"), listed("3.30", "3.10")

    def seen(days_ago: int) -> list[KnownPrice]:
        return [known_as(row, days_ago=days_ago) for row in then] + [known_as(row) for row in now]

    assert {one.verdict for one in judge(then, seen(6))} == {Verdict.VERIFIED}
    found = judge(then, seen(60))
    assert [one.verdict for one in found] == [Verdict.QUARANTINED, Verdict.VERIFIED]
    assert found[0].reasons == ("back at an earlier 3.00 USD: an old page?",)
    for nights, expected in ((6, Verdict.QUARANTINED), (7, Verdict.VERIFIED)):
        assert judge(then, [*seen(60), *again(then[:1], nights)])[0].verdict is expected


@pytest.mark.parametrize("factor", ["0.8951", "1.19", "0.6"])
def test_a_list_of_which_most_moves_by_one_factor_waits_for_days(factor: str) -> None:
    """In euros, with tax, less a tenth: the page says so for days, a catalogue does, or a person."""
    rows = listed("3.00", "3.10", "3.20", "3.30", "3.40", "3.50")
    remembered = [known_as(row, days_ago=9) for row in rows]
    moved = [replace(row, usd_per_hour=row.usd_per_hour * Decimal(factor)) for row in rows[:4]] + rows[4:]
    found = judge(moved, remembered)
    assert [one.verdict for one in found] == [Verdict.QUARANTINED] * 4 + [Verdict.VERIFIED] * 2
    reason = (
        f"4 of 6 known prices moved by one factor, {float(factor):.2f} times: another unit, currency or tax?"
    )
    assert reason in found[0].reasons
    for nights, expected in ((1, Verdict.QUARANTINED), (3, Verdict.VERIFIED)):
        later = judge(moved, [*remembered, *again(moved[:4], nights)])
        assert {one.verdict for one in later[:4]} == {expected}, nights
    said = replace(moved[0], witness="gpuhunt", instance_type="w")
    told = known_as(said, times_seen=2, last_seen_at=NOW)
    assert judge(moved, [*remembered, told])[0].verdict is Verdict.VERIFIED


def test_no_changed_price_of_a_page_that_was_replaced_is_verified() -> None:
    rows = listed("3.00", "3.30")
    remembered = [known_as(rows[0]), known_as(listed("3.00", "3.10")[1])]
    found = judge(rows, remembered, old_page="page prices is that of 2026-10-01")
    assert [one.verdict for one in found] == [Verdict.VERIFIED, Verdict.QUARANTINED]
    assert found[1].reasons == ("page prices is that of 2026-10-01",)


# -- witnesses ----------------------------------------------------------------------------------------


def _witness(price: str, **changes: Any) -> KnownPrice:
    told = offer(price, witness="gpuhunt", instance_type="w", **changes)
    return known_as(told, days_ago=0.5, times_seen=2, last_seen_at=NOW)


def test_a_witness_confirms_what_is_new() -> None:
    assert verdict(offer("3.00"), _witness("3.00"))[0] == Verdict.VERIFIED
    assert verdict(offer("1.70"), known("3.00"), _witness("1.75"))[0] == Verdict.VERIFIED


@pytest.mark.parametrize(
    "other",
    [_witness("2.00"), _witness("3.00", region="eu"), _witness("3.00", region="us", tier=Tier.SPOT)],
)
def test_a_witness_of_something_else_does_not(other: KnownPrice) -> None:
    assert verdict(offer("3.00", region="us"), other)[0] == Verdict.QUARANTINED


def test_a_witness_may_name_a_place_where_the_list_names_none() -> None:
    assert verdict(offer("3.00"), _witness("3.00", region="eu"))[0] == Verdict.VERIFIED
    assert verdict(offer("3.00", region="eu"), _witness("3.00"))[0] == Verdict.VERIFIED


@pytest.mark.parametrize("nights", [0, 1, 3, 30])
@pytest.mark.parametrize(
    ("price", "expected"), [("0.74", False), ("0.76", True), ("11.90", True), ("12.10", False)]
)
def test_where_a_class_is_unknown_what_others_ask_is_a_wide_limit(
    price: str, expected: bool, nights: int
) -> None:
    """Four times what all others ask, or a quarter, is believed when a catalogue says so, or a person."""
    others = [known("3.00", provider=name) for name in ("giant", "azure", "bazaar")]
    row = offer(price)
    market = Market(others, KINDS)
    (found,) = judge([row], [*others, *again([row], nights)], market=market)
    assert (found.verdict is Verdict.VERIFIED) is (expected and nights >= 3)
    assert expected or "the 3.00 that sellers of any class ask" in found.reasons[0]
    (told,) = judge([row], [*others, _witness(price)], market=market)
    assert told.verdict is Verdict.VERIFIED
    (absurd,) = judge([offer("0.20")], [*others, *again([offer("0.20")], 9)], market=market)
    assert absurd.verdict is Verdict.REJECTED


def test_reservations_that_nobody_else_sells_are_measured_by_list_prices() -> None:
    row = offer("0.03", tier=Tier.RESERVED_OTHER)
    (found,) = judge([row], [*MARKET, *again([row], 9)])
    assert (found.verdict, "that sellers of any class ask" in found.reasons[0]) == (Verdict.REJECTED, True)


@pytest.mark.parametrize(("nights", "expected"), [(0, False), (1, False), (3, True)])
def test_a_new_spot_price_at_twice_of_what_is_known_waits_for_days(nights: int, expected: bool) -> None:
    elsewhere = [known("3.00", provider="giant", region=name, tier=Tier.SPOT) for name in ("a", "b", "c")]
    row = offer("6.00", provider="giant", region="d", tier=Tier.SPOT)
    (found,) = judge([row], [*elsewhere, *again([row], nights)])
    assert (found.verdict is Verdict.VERIFIED) is expected


def test_a_witness_never_overrules() -> None:
    assert verdict(offer("3.00"), known("3.00"), _witness("9.00"))[0] == Verdict.VERIFIED
    assert verdict(offer("0.50"), known("3.00"), _witness("0.50"))[0] == Verdict.QUARANTINED


def test_what_a_witness_says_is_only_checked_for_sense() -> None:
    rows = [offer("3.00", witness="gpuhunt"), offer("300", witness="gpuhunt", region="eu")]
    assert [one.verdict for one in judge(rows, MARKET)] == [Verdict.VERIFIED, Verdict.REJECTED]


def test_what_a_witness_says_is_no_history_of_the_provider() -> None:
    found, why = verdict(offer("3.60"), _witness("3.00"))
    assert (found, "first on_demand" in why) == (Verdict.QUARANTINED, True)


# -- the collection, and every fault in it ------------------------------------------------------------


@pytest.fixture(scope="module")
def collection() -> tuple[list[Offer], list[KnownPrice], Market]:
    """What is current in the bundled collection, as if verified yesterday, and what is known of it."""
    offers = snapshot_offers()
    current = [
        replace(one, seen_at=NOW)
        for one, end in zip(offers, superseded_at(offers), strict=True)
        if end is None and one.gpu and one.witness is None and not one.gpu_only
    ]
    bundled = [
        known_as(one, first_seen_at=one.seen_at, last_seen_at=one.seen_at, origin=Origin.SNAPSHOT)
        for one in offers
        if one.gpu and one.witness is None
    ]
    market = Market(bundled, SELLERS)
    plausible = [one for one in current if is_plausible(known_as(one), market, SELLERS)]
    return plausible, [*bundled, *(known_as(one) for one in plausible)], market


SELLERS = {
    **dict.fromkeys(("aws", "azure", "gcp", "oci"), ProviderClass.HYPERSCALER),
    **dict.fromkeys(("runpod", "vastai", "tensordock", "akash", "salad"), ProviderClass.MARKETPLACE),
}
Collection = tuple[list[Offer], list[KnownPrice], Market]


def _by_provider(offers: Sequence[Offer]) -> dict[str, list[Offer]]:
    groups: dict[str, list[Offer]] = {}
    for one in offers:
        groups.setdefault(one.provider, []).append(one)
    return groups


def test_true_prices_are_verified(collection: Collection) -> None:
    offers, remembered, market = collection
    held = []
    for name, group in _by_provider(offers).items():
        mine = [price for price in remembered if price.provider == name]
        found = verify(group, mine, kinds=SELLERS, market=market)
        held += [one for one in found if one.verdict != Verdict.VERIFIED]
    # Two location ids of TensorDock in one city give two prices for one GPU.
    assert {one.provider for one in held} <= {"tensordock"}
    assert len(offers) > 5000
    assert len(held) <= 5


FAULTS: dict[str, Callable[[Offer], Decimal]] = {
    "cents as dollars": lambda one: one.usd_per_hour * 100,
    "dollars as cents": lambda one: one.usd_per_hour / 100,
    "a month as an hour": lambda one: one.usd_per_hour * 730,
    "twice": lambda one: one.usd_per_hour * 2,
    "half": lambda one: one.usd_per_hour / 2,
    "euros as dollars": lambda one: one.usd_per_hour / Decimal("1.1172"),
    "three times": lambda one: one.usd_per_hour * 3,
    "a third": lambda one: one.usd_per_hour / 3,
    "zero": lambda one: Decimal(0),
    "negative": lambda one: -one.usd_per_hour,
    "NaN": lambda one: Decimal("NaN"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_no_wrong_price_is_verified_where_there_is_a_history(collection: Collection, fault: str) -> None:
    offers, remembered, market = collection
    choice = random.Random(11)
    for name, group in _by_provider(offers).items():
        mine = [price for price in remembered if price.provider == name]
        wrong = set(choice.sample(range(len(group)), max(1, len(group) // 20)))
        rows = [
            replace(one, usd_per_hour=FAULTS[fault](one)) if number in wrong else one
            for number, one in enumerate(group)
        ]
        found = verify(rows, mine, kinds=SELLERS, market=market, usd_per_unit=RATES)
        missed = [found[number] for number in wrong if found[number].verdict == Verdict.VERIFIED]
        assert not missed, (name, missed[0].instance_type, missed[0].usd_per_hour)


# -- the rules themselves -----------------------------------------------------------------------------


def test_every_rule_is_documented() -> None:
    text = (ROOT / "docs/verification.md").read_text(encoding="utf-8")
    for rule in RULES:
        assert f"### {rule.name}\n" in text, rule.name
        assert rule.check.__doc__


def test_names_of_rules_are_unique() -> None:
    assert len({rule.name for rule in RULES}) == len(RULES)
