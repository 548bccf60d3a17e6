"""Wrong prices that look plausible one by one, and what the rest of the answer or the provider says."""

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

MARKET = [known("3.2", provider="other"), known("2.8", provider="third"), known("3.1", provider="fourth")]


def judge(offers: Sequence[Offer], remembered: Sequence[KnownPrice] = (), **more: Any) -> list[Offer]:
    return verify(offers, [*MARKET, *remembered], kinds=KINDS, **more)


def again(offers: Sequence[Offer], nights: int) -> list[KnownPrice]:
    """What waits since so many nights."""
    seen = {"last_seen_at": NOW - DAY, "times_seen": nights}
    return [known_as(one, days_ago=nights, verdict=Verdict.QUARANTINED, **seen) for one in offers]


def verdicts(found: Sequence[Offer]) -> str:
    return "".join(str(one.verdict)[0] for one in found)


def machines(*rows: tuple[str, int, str]) -> list[Offer]:
    return [offer(price, gpu=gpu, gpu_count=count, instance_type=gpu) for gpu, count, price in rows]


# -- the rest of the answer ---------------------------------------------------------------------------


def test_prices_per_gpu_one_row_down_are_out_of_step_whatever_the_sizes() -> None:
    """Per GPU 3.50, 6.00, 10.00, 4.00; one row up, times the GPUs of the row, no total is that of another."""
    gpus = [("L40S", 4), ("H100 SXM", 8), ("H200 SXM", 2), ("A100 80GB SXM", 16)]
    each = ["3.50", "4.40", "5.50", "4.00"]
    rows = [(*one, str(Decimal(usd) * one[1])) for one, usd in zip(gpus, each, strict=True)]
    before = [known_as(row, days_ago=2) for row in machines(*rows)]
    moved = [(*one, str(Decimal(usd) * one[1])) for one, usd in zip(gpus, each[1:] + each[:1], strict=True)]
    wrong = machines(*moved)
    for nights in (0, 1, 30):
        found = judge(wrong, [*before, *again(wrong, nights)] if nights else before)
        assert verdicts(found) == "qqqq", nights
        assert "out of step" in found[0].reasons[0]


def _half_impossible() -> tuple[list[KnownPrice], list[Offer]]:
    """Of five known prices three moved by 2 or more and two by 1.2 to 1.6; one is new."""
    names = ["a", "b", "c", "d", "e"]
    before = [known_as(offer("3.00", instance_type=name, region=name), days_ago=9) for name in names]
    prices = zip(names, ["6.10", "6.30", "1.40", "4.70", "3.50"], strict=True)
    wrong = [offer(price, instance_type=name, region=name) for name, price in prices]
    return before, [*wrong, offer("2.80", gpu="H200 SXM", instance_type="new")]


def test_where_most_changes_are_impossible_the_plausible_ones_and_the_new_are_not_lifted_by_nights() -> None:
    before, wrong = _half_impossible()
    for nights in (1, 30):
        found = judge(wrong, [*before, *again(wrong, nights)])
        assert verdicts(found) == "qqqqqq", nights
        said = "3 of 5 changed prices of this answer are impossible or out of step: so may this be"
        assert said in found[3].reasons
        assert said in found[4].reasons


def test_a_catalogue_or_a_person_confirms_a_price_of_a_suspect_answer() -> None:
    before, wrong = _half_impossible()
    word = known_as(wrong[4], reasons=("accepted by kim on 2026-11-29: I rent it",))
    assert verdicts(judge(wrong, [*before, *again(wrong[:4], 1), word])) == "qqqqvq"


def test_where_few_changes_are_impossible_the_others_are_lifted_as_ever() -> None:
    before, wrong = _half_impossible()
    some = [wrong[0], *(replace(one, usd_per_hour=Decimal("3.00")) for one in wrong[1:3]), *wrong[3:]]
    assert verdicts(judge(some, [*before, *again(some, 1)])) == "qvvvvv"


# -- the provider's own other prices ------------------------------------------------------------------

BUNDLED: dict[str, Any] = {"origin": Origin.SNAPSHOT, "days_ago": 30}


@pytest.mark.parametrize("factor", ["3", "0.34"])
def test_a_list_far_from_the_bundled_prices_under_other_names_is_lifted_by_no_nights(factor: str) -> None:
    """A whole list in another unit on a new database, where the collection calls its machines otherwise."""
    collected = [
        known("3.00", instance_type="NVIDIA H100", **BUNDLED),
        known("24.80", gpu_count=8, instance_type="NVIDIA H100", **BUNDLED),
    ]
    wrong = [
        offer(str(Decimal("3.00") * Decimal(factor)), instance_type="h100-1x"),
        offer(str(Decimal("24.80") * Decimal(factor)), instance_type="h100-8x", gpu_count=8),
        offer(str(Decimal("12.20") * Decimal(factor)), instance_type="h100-4x", gpu_count=4),
    ]
    market = [known("9.1", provider="other"), known("2.0", provider="third"), known("3.1", provider="fourth")]
    for nights in (1, 4, 30):
        found = verify(wrong, [*market, *collected, *again(wrong, nights)], kinds=KINDS)
        assert verdicts(found) == "qqq", nights
        assert "the same GPUs under another name" in "; ".join(found[0].reasons)
        assert "the same GPU in other sizes" in "; ".join(found[2].reasons)


def test_within_what_the_provider_asks_for_its_sizes_a_new_one_waits_for_days_only() -> None:
    """Azure: one T4 at 0.526, four at 4.352; two at 2.00 are twice the one and nothing new per GPU."""
    own = [
        known("0.526", provider="azure", gpu="T4", days_ago=9),
        known("4.352", provider="azure", gpu="T4", gpu_count=4, days_ago=9),
        known("0.55", provider="azure", gpu="T4", gpu_count=3, instance_type="t4 3", days_ago=9),
    ]
    row = offer("2.00", provider="azure", gpu="T4", gpu_count=2)
    assert verdicts(judge([row], own[:2])) == "v"
    assert verdicts(judge([row], own)) == "q"
    assert verdicts(judge([row], [*own, *again([row], 3)])) == "v"


@pytest.mark.parametrize("provider", ["giant", "acme"])
@pytest.mark.parametrize(("usd", "expected"), [("6.00", "v"), ("8.60", "q"), ("1.50", "q")])
def test_a_new_region_is_within_1_9_of_all_others(provider: str, usd: str, expected: str) -> None:
    """From 3.00 to 4.50 elsewhere, so 1.58 to 8.55: no nights lift what is beyond, whoever sells it."""
    prices = {"a": "3.00", "b": "3.00", "c": "4.50"}
    own = [known(price, provider=provider, region=name) for name, price in prices.items()]
    row = offer(usd, provider=provider, region="d")
    assert verdicts(judge([row], [*own, *again([row], 9)])) == expected


def test_prices_of_terms_of_a_new_place_are_not_all_half_of_those_elsewhere() -> None:
    """One may be of a longer term and is taken after days; that all of them are by one factor is none."""
    gpus = ("H100 SXM", "H200 SXM", "B200")
    rows = [offer("3.00", gpu=gpu, tier=Tier.RESERVED_OTHER, instance_type=gpu) for gpu in gpus]
    before = [known_as(row, days_ago=9) for row in rows]
    half = [replace(row, usd_per_hour=Decimal("1.50"), region="elsewhere") for row in rows]
    found = judge(half, [*before, *again(half, 9)])
    assert verdicts(found) == "qqq"
    assert "too far from this provider's own" in "; ".join(found[0].reasons)
    assert verdicts(judge([*rows, half[0]], [*before, *again(half[:1], 9)])) == "vvvv"


def test_sizes_that_are_multiples_of_one_that_waits_wait_with_it() -> None:
    """The size of four is known from elsewhere at a price between, so that it alone looks plausible."""
    own = [known("3.00"), known("8.00", gpu_count=4, region="eu"), known("8.00", gpu_count=4, region="us")]
    wrong = [offer("1.50"), offer("6.00", gpu_count=4, region="asia")]
    found = judge(wrong, [*own, *again(wrong, 30)])
    assert verdicts(found) == "qq"
    assert found[1].reasons == ("1.50 USD per GPU as in the size of 1, whose price waits: so does this",)
    assert verdicts(judge([offer("3.00"), wrong[1]], [*own, *again(wrong[1:], 30)])) == "vv"


def test_spot_prices_are_not_believed_where_the_list_beside_them_is_impossible() -> None:
    """Verda's whole page times three: on-demand prices never move so far, spot prices may."""
    tiers = (Tier.ON_DEMAND, Tier.SPOT)
    gpus = ("H100 SXM", "H200 SXM", "B200")
    rows = [offer("3.00", gpu=gpu, tier=tier, instance_type=gpu) for gpu in gpus for tier in tiers]
    before = [known_as(row, days_ago=9) for row in rows]
    wrong = [replace(row, usd_per_hour=row.usd_per_hour * Decimal("2.1")) for row in rows]
    assert verdicts(judge(wrong, [*before, *again(wrong, 30)])) == "qqqqqq"
    spot = [row if row.tier is Tier.ON_DEMAND else one for row, one in zip(rows, wrong, strict=True)]
    cheap = [replace(row, usd_per_hour=Decimal("1.40")) if row.tier is Tier.SPOT else row for row in spot]
    assert verdicts(judge(cheap, [*before, *again(cheap, 30)])) == "vvvvvv"


@pytest.mark.parametrize("listed", ["8.62", "25.86"])
def test_a_spot_price_is_not_above_the_on_demand_price_in_force_though_the_page_shows_another(
    listed: str,
) -> None:
    rows = [offer(listed), offer("12.93", tier=Tier.SPOT)]
    before = [known("8.62", days_ago=9), known("8.00", tier=Tier.SPOT, days_ago=9)]
    market = [known(price, provider=name) for name, price in (("other", "8"), ("third", "9"), ("b", "9.5"))]
    found = verify(rows, [*market, *before, *again(rows, 9)], kinds=KINDS)
    assert found[1].verdict is Verdict.QUARANTINED
    assert "is above on-demand" in "; ".join(found[1].reasons)


def test_a_spot_ask_may_lie_above_the_on_demand_ask_of_another_day() -> None:
    """Asks of Vast.ai swing by more in a day than spot lies below on demand."""
    rows = [offer("2.16", provider="vastai", tier=Tier.SPOT)]
    before = [
        known("2.00", provider="vastai", days_ago=1),
        known("1.90", provider="vastai", tier=Tier.SPOT, days_ago=1),
    ]
    assert verify(rows, before, kinds=KINDS)[0].verdict is Verdict.VERIFIED


# -- catalogues that lag behind -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("days_ago", "runs", "expected"),
    [
        (2, 1, "q"),  # first seen once, after the own price: of what edition, nobody can tell
        (2, 2, "v"),
        (3, 9, "q"),  # it said so when the provider's own list said otherwise
        (90, 90, "q"),
    ],
)
def test_a_catalogue_confirms_a_move_only_if_it_moved_after_the_provider(
    days_ago: float, runs: int, expected: str
) -> None:
    """AWS's 8x H100 cost 98.32, costs 55.04 since, and SkyPilot's list still said 98.32."""
    shape: dict[str, Any] = {"provider": "giant", "gpu_count": 8, "instance_type": "p5.48xlarge"}
    row = offer("98.32", **shape)
    said = replace(row, witness="skypilot", instance_type="w")
    told = known_as(said, days_ago=days_ago, times_seen=runs, last_seen_at=NOW - DAY)
    assert verdicts(judge([row], [known("55.04", days_ago=3, **shape), told])) == expected


# -- the way back -------------------------------------------------------------------------------------


def _once_waited(row: Offer, hours: float) -> KnownPrice:
    return known_as(row, days_ago=hours / 24, verdict=Verdict.QUARANTINED)


def test_the_true_price_comes_back_on_the_second_day_after_a_wrong_one_was_verified() -> None:
    """A third of 3.00 was verified; the collection knows 3.00."""
    row, wrong = offer("3.00"), known("1.00", days_ago=2)
    remembered = [known("3.00", **BUNDLED), wrong]
    assert verdicts(judge([row], remembered)) == "q"
    assert verdicts(judge([row], [*remembered, _once_waited(row, 2)])) == "q"  # of the same day
    assert verdicts(judge([row], [*remembered, _once_waited(row, 24)])) == "v"
    other = offer("2.20")
    assert verdicts(judge([other], [*remembered, _once_waited(other, 24)])) == "q"  # no earlier price


def test_a_wrong_price_does_not_come_back_so_nor_does_one_before_what_is_confirmed() -> None:
    """The wrong one stood for four days and the true one for five."""
    row = offer("1.40")
    was_wrong = known("1.40", days_ago=11, last_seen_at=NOW - 7 * DAY)
    is_true = known("3.00", days_ago=6, last_seen_at=NOW - DAY)
    waits = _once_waited(row, 24)
    assert verdicts(judge([row], [was_wrong, is_true, waits])) == "q"
    long_before = replace(was_wrong, first_seen_at=NOW - 300 * DAY)
    assert verdicts(judge([row], [long_before, is_true, waits])) == "v"
    accepted = replace(is_true, reasons=("accepted by kim on 2026-11-20: the new price",))
    assert verdicts(judge([row], [long_before, accepted, waits])) == "q"
    told = known_as(offer("3.00", witness="gpuhunt", instance_type="w"))
    assert verdicts(judge([row], [long_before, is_true, waits, told])) == "q"


@pytest.mark.parametrize(("nights", "days", "expected"), [(1, 1, "q"), (2, 7, "q"), (6, 6, "q"), (3, 7, "v")])
@pytest.mark.parametrize("is_bundled", [True, False])
def test_what_own_runs_saw_for_weeks_gives_way_to_an_earlier_price_after_a_week_only(
    nights: int, days: int, expected: str, *, is_bundled: bool
) -> None:
    """3.00 of a year ago, 1.40 for sixty days since: a page of then may be served for some nights."""
    row = offer("3.00")
    of_then = known("3.00", days_ago=300, last_seen_at=NOW - 70 * DAY)
    before = known("3.00", **BUNDLED) if is_bundled else of_then
    own = known("1.40", days_ago=68, last_seen_at=NOW - days * DAY - DAY)
    waits = known_as(row, days_ago=days, verdict=Verdict.QUARANTINED, times_seen=nights)
    assert verdicts(judge([row], [before, own, waits])) == expected


@pytest.mark.parametrize(
    ("nights", "days", "expected"), [(1, 1, "q"), (6, 6, "q"), (2, 7, "q"), (3, 7, "v"), (8, 8, "v")]
)
def test_what_stood_before_a_mistaken_acceptance_comes_back_after_a_week(
    nights: int, days: int, expected: str
) -> None:
    """A person accepted 3.00 for 1.00; the page says 1.00 since, and is the one of then."""
    row = offer("1.00")
    stood = known("1.00", days_ago=40, last_seen_at=NOW - 12 * DAY)
    word = known_as(
        offer("3.00"), days_ago=11, last_seen_at=NOW - 11 * DAY, reasons=("accepted by kim on 2026-11-19: x",)
    )
    waits = known_as(row, days_ago=days, verdict=Verdict.QUARANTINED, times_seen=nights)
    moved = known("3.30", days_ago=10, last_seen_at=NOW - 10 * DAY)  # by a tenth since that was accepted
    assert verdicts(judge([row], [stood, word, moved, waits])) == expected
    page = "page pricing is byte for byte that of 2026-11-18, replaced since: an old page?"
    for old_page in (None, page):
        assert verdicts(judge([row], [stood, word, waits], old_page=old_page)) == expected
    told = known_as(offer("3.00", witness="gpuhunt", instance_type="w"))
    assert verdicts(judge([row], [stood, word, waits, told])) == "q"


# -- a book that moved --------------------------------------------------------------------------------


@pytest.mark.parametrize(("move", "expected"), [("0.50", "qqqqqqqv"), ("0.93", "vvvvvvvv")])
def test_asks_of_which_the_middle_moves_far_wait_for_a_week(move: str, expected: str) -> None:
    """Prices of GPUs are halved and what is added to each stays, so that no factor is that of another."""
    added = ["0.30", "0.40", "0.50", "0.60", "0.70", "0.80"]
    asks = [
        offer(str(3 + Decimal(more)), provider="bazaar", instance_type=more, region=more) for more in added
    ]
    before = [known_as(ask, days_ago=2) for ask in asks]
    moved = [
        replace(ask, usd_per_hour=3 * Decimal(move) + Decimal(more))
        for ask, more in zip(asks, added, strict=True)
    ]
    new = offer("2.00", provider="bazaar", instance_type="new", region="new")
    same = offer("3.20", provider="bazaar", instance_type="same", region="same")
    rows = [*moved, new, same]
    known_all = [*before, known_as(same, days_ago=2)]
    if expected[0] == "q":
        reasons = judge(rows, known_all)[0].reasons
        assert any(reason.startswith("in the middle all asks moved 0.5") for reason in reasons)
        assert verdicts(judge(rows, [*known_all, *again(rows[:7], 7)])) == "vvvvvvvv"
    assert verdicts(judge(rows, [*known_all, *again(rows[:7], 4)])) == expected


def test_another_slice_or_another_product_at_that_price_is_no_return() -> None:
    """A list one row down takes prices that the collection knows of other slices and names."""
    part: dict[str, Any] = {"gpu_fraction": 0.25, "instance_type": "quarter"}
    own = known("0.60", days_ago=2, **part)
    other = known("1.40", gpu_fraction=0.5, instance_type="half", **BUNDLED)
    row = offer("1.40", **part)
    assert verdicts(judge([row], [own, other, _once_waited(row, 24)])) == "q"
    near = known("1.90", instance_type="NVIDIA H100 low power", **BUNDLED)
    row = offer("1.90")
    assert verdicts(judge([row], [known("3.00", days_ago=2), near, again([row], 1)[0]])) == "v"  # a jump
    swapped = [offer("3.50"), offer("3.00", gpu="H200 SXM", instance_type="h200")]
    before = [known("3.00"), known("3.50", gpu="H200 SXM", instance_type="h200")]
    collected = [known("3.50", days_ago=40, origin=Origin.SNAPSHOT)]
    assert verdicts(judge(swapped, [*before, *collected, *again(swapped, 9)])) == "qq"


@pytest.mark.parametrize(
    ("now", "then", "nights", "days", "expected"),
    [
        ("3.00", "1.50", 8, 8, "v"),  # half the market for six days, and the truth for eight
        ("3.00", "1.50", 6, 6, "q"),
        ("3.00", "1.50", 2, 8, "q"),
        ("3.00", "6.00", 8, 8, "v"),
        ("1.50", "3.00", 30, 30, "q"),  # the market speaks for the first
        ("3.20", "1.65", 8, 8, "q"),  # 1.65 is within 1.9 of it too
        ("6.00", "1.50", 30, 30, "q"),
    ],
)
def test_a_first_price_that_nothing_speaks_for_gives_way_to_one_that_outlasts_it(
    now: str, then: str, nights: int, days: int, expected: str
) -> None:
    """The very first pages were read wrong, and so there is no earlier price to go back to."""
    market = [
        known("3.1", provider="other"),
        known("2.8", provider="third"),
        known("3.05", provider="fourth"),
    ]
    row = offer(now)
    first = known(then, days_ago=days + 7, last_seen_at=NOW - (days + 1) * DAY)
    waits = known_as(row, days_ago=days, verdict=Verdict.QUARANTINED, times_seen=nights)
    assert verdicts(judge([row], [*market, first, waits])) == expected
    if expected == "v":
        longer = replace(first, first_seen_at=NOW - 30 * DAY)
        accepted = replace(first, reasons=("accepted by kim on 2026-11-19: x",))
        earlier = known("1.51" if then == "6.00" else "6.01", days_ago=60, last_seen_at=NOW - 50 * DAY)
        told = known_as(offer(then, witness="gpuhunt", instance_type="w"))
        bundled = known(then, **BUNDLED)
        for more in ([longer], [accepted], [first, earlier], [first, told], [first, bundled]):
            assert verdicts(judge([row], [*market, *more, waits])) == "q", more
