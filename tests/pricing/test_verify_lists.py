"""What a whole list does at once, whatever its rows are called and however many there are."""

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal

import pytest

from planner.rates import Tier
from pricing.offer import Offer, Verdict
from pricing.storage.memory import KnownPrice
from pricing.verify import verify
from tests.pricing.known import DAY, KINDS, NOW, known_as, offer

# As a neocloud lists them, of which the last are cheap. [USD/h]
LIST = {
    "H200 SXM": "3.99",
    "H100 SXM": "3.20",
    "A100 80GB SXM": "1.60",
    "A100 80GB PCIe": "1.35",
    "L40": "1.00",
    "RTX A6000": "0.50",
    "RTX A4000": "0.15",
}
RATES = {"EUR": 1.1172}
CENT = Decimal("0.01")


def rows(name: str = "NVIDIA {}", region: str | None = "North America") -> list[Offer]:
    return [
        offer(price, gpu=gpu, instance_type=name.format(gpu), region=region) for gpu, price in LIST.items()
    ]


def by(factor: str, offers: Sequence[Offer]) -> list[Offer]:
    return [replace(row, usd_per_hour=row.usd_per_hour * Decimal(factor)) for row in offers]


def judge(offers: Sequence[Offer], *remembered: KnownPrice, days_ago: float = 9) -> list[Offer]:
    before = [known_as(row, days_ago=days_ago) for row in rows()]
    return verify(offers, [*before, *remembered], kinds=KINDS, usd_per_unit=RATES)


@pytest.mark.parametrize(
    ("name", "region"),
    [
        ("Nvidia {}", "North America"),
        ("NVIDIA  {}", "North America"),
        ("NVIDIA {}", "United States"),
        ("GPU {}", "North America"),
    ],
)
@pytest.mark.parametrize("factor", ["1.19", "1.45", "0.68", "0.8951"])
def test_a_list_that_is_renamed_hides_no_factor(name: str, region: str, factor: str) -> None:
    """In capitals, in spaces, in its region, or altogether: with tax, in euros, at the price of a term."""
    renamed = rows(name, region)
    assert {one.verdict for one in judge(renamed)} == {Verdict.VERIFIED}
    found = judge(by(factor, renamed))
    assert {one.verdict for one in found} == {Verdict.QUARANTINED}
    assert all("moved by one factor" in " ".join(one.reasons) for one in found)


def test_a_new_place_beside_the_old_list_is_no_new_name() -> None:
    """A region that is dearer by a tenth opens: the list stands, and so does what is new."""
    found = judge([*rows(), *by("1.1", rows(region="Europe")[:3])])
    assert {one.verdict for one in found} == {Verdict.VERIFIED}


def rounded(factor: str, offers: Sequence[Offer]) -> list[Offer]:
    return [replace(row, usd_per_hour=row.usd_per_hour.quantize(CENT)) for row in by(factor, offers)]


def after(nights: int, *offers: Offer) -> list[KnownPrice]:
    """These prices, waiting since a number of nights."""
    return [
        known_as(row, days_ago=nights, verdict=Verdict.QUARANTINED, last_seen_at=NOW - DAY, times_seen=nights)
        for row in offers
    ]


@pytest.mark.parametrize(("nights", "expected"), [(0, False), (1, False), (2, False), (3, True)])
@pytest.mark.parametrize("factor", ["1.19", "1.45", "0.8951"])
def test_a_factor_is_seen_through_the_rounding_to_cents(factor: str, nights: int, expected: bool) -> None:
    """0.15 with 19 % tax is 0.1785, on the page 0.18: 1.2 times."""
    moved = rounded(factor, rows())
    found = judge(moved, *after(nights, *moved))
    assert all((one.verdict is Verdict.VERIFIED) is expected for one in found)
    if not expected:
        assert f"7 of 7 known prices moved by one factor, {float(factor):.2f}" in " ".join(found[-1].reasons)


@pytest.mark.parametrize(("nights", "expected"), [(1, False), (3, True)])
def test_a_list_that_moves_one_way_by_similar_factors_waits_as_long(nights: int, expected: bool) -> None:
    """The prices of a term in the place of those without, 15 to 30 % below."""
    discounts = ["0.85", "0.82", "0.79", "0.76", "0.73", "0.70", "0.85"]
    moved = [
        replace(row, usd_per_hour=(row.usd_per_hour * Decimal(less)).quantize(CENT))
        for row, less in zip(rows(), discounts, strict=True)
    ]
    found = judge(moved, *after(nights, *moved))
    assert all((one.verdict is Verdict.VERIFIED) is expected for one in found)
    if not expected:
        reason = "7 of 7 known prices moved one way, 0.70 to 0.87 times: another tax, term or tier?"
        assert all(reason in one.reasons for one in found)


@pytest.mark.parametrize("provider", ["acme", "bazaar"])
@pytest.mark.parametrize("count", [2, 3, 4])
@pytest.mark.parametrize("factor", ["1.2", "1.45", "0.67", "1.85", "0.54"])
def test_all_of_a_short_list_at_one_factor_wait_for_days(provider: str, count: int, factor: str) -> None:
    before = [replace(row, provider=provider) for row in rows()[:count]]
    moved = rounded(factor, before)
    known = [known_as(row, days_ago=9) for row in before]
    for nights, expected in ((0, False), (1, False), (3, True)):
        found = verify(moved, [*known, *after(nights, *moved)], kinds=KINDS)
        assert all((one.verdict is Verdict.VERIFIED) is expected for one in found), nights


@pytest.mark.parametrize(
    ("factors", "nights"),
    [(["1.20", "1.31", "1.44"], 3), (["0.78", "0.70", "0.75", "0.80"], 3), (["1.20", "0.80", "1.30"], 1)],
)
def test_all_of_three_or_four_that_move_one_way_wait_for_days_and_otherwise_for_a_night(
    factors: list[str], nights: int
) -> None:
    before = rows()[: len(factors)]
    moved = [
        replace(row, usd_per_hour=row.usd_per_hour * Decimal(factor))
        for row, factor in zip(before, factors, strict=True)
    ]
    known = [known_as(row, days_ago=9) for row in before]
    for seen in range(4):
        found = verify(moved, [*known, *after(seen, *moved)], kinds=KINDS)
        assert all((one.verdict is Verdict.VERIFIED) is (seen >= nights) for one in found), seen


def test_a_short_list_of_which_one_price_stands_moves_at_once() -> None:
    before = rows()[:3]
    moved = [*rounded("1.2", before[:2]), before[2]]
    found = verify(moved, [known_as(row, days_ago=9) for row in before], kinds=KINDS)
    assert {one.verdict for one in found} == {Verdict.VERIFIED}


def test_one_price_alone_is_no_list() -> None:
    before = rows()[:1]
    found = verify(rounded("1.2", before), [known_as(before[0], days_ago=9)], kinds=KINDS)
    assert found[0].verdict is Verdict.VERIFIED


@pytest.mark.parametrize(
    ("nights", "stood", "expected"), [(1, 30, True), (2, 30, True), (4, 30, False), (1, 3, False)]
)
@pytest.mark.parametrize("count", [2, 5, 7])
def test_what_one_or_two_wrong_nights_showed_is_mended_at_once(
    count: int, nights: int, stood: int, expected: bool
) -> None:
    """The page with tax was verified; the next one shows what stood for weeks."""
    right = rows()
    since = nights + 0.5
    before = [known_as(row, days_ago=stood, last_seen_at=NOW - since * DAY) for row in right]
    wrong = [known_as(row, days_ago=nights, last_seen_at=NOW - DAY) for row in by("1.1", right[:count])]
    found = verify(right, [*before, *wrong], kinds=KINDS, usd_per_unit=RATES)
    assert all((one.verdict is Verdict.VERIFIED) is expected for one in found[:count])


def test_where_another_price_goes_back_further_the_page_is_an_old_one() -> None:
    right = rows()
    before = [known_as(row, days_ago=30, last_seen_at=NOW - 1.5 * DAY) for row in right[:5]]
    older = [known_as(row, days_ago=60, last_seen_at=NOW - 30 * DAY) for row in right[5:]]
    now = [*before, *older, *(known_as(row) for row in by("1.1", right[:2]))]
    now += [known_as(row, days_ago=30, last_seen_at=NOW - DAY) for row in by("1.1", right[5:])]
    found = verify(right, now, kinds=KINDS)
    assert [one.verdict is Verdict.VERIFIED for one in found] == [False] * 2 + [True] * 3 + [False] * 2


@pytest.mark.parametrize(
    ("gpu", "price", "expected"),
    [
        ("H100 SXM", "3.99", False),  # as H200 SXM
        ("A100 80GB PCIe", "1.60", False),  # as A100 80GB SXM
        ("A100 80GB PCIe", "1.61", True),
    ],
)
def test_a_price_that_becomes_that_of_another_row_is_seen_twice(gpu: str, price: str, expected: bool) -> None:
    now = [replace(row, usd_per_hour=Decimal(price)) if row.gpu == gpu else row for row in rows()]
    row = next(one for one in now if one.gpu == gpu)
    (found,) = [one for one in judge(now) if one.gpu == gpu]
    assert (found.verdict is Verdict.VERIFIED) is expected
    assert expected or found.reasons == (
        f"{price} USD is what another row of the list costs: waits to be confirmed",
    )
    (again,) = [one for one in judge(now, *after(1, row)) if one.gpu == gpu]
    assert again.verdict is Verdict.VERIFIED


def test_sizes_of_one_gpu_and_prices_that_move_together_are_no_copies() -> None:
    sizes = [offer(f"{3 * count}", gpu_count=count) for count in (1, 2, 4)]
    before = [
        known_as(row, days_ago=9) for row in (*sizes[:2], replace(sizes[2], usd_per_hour=Decimal("12.60")))
    ]
    assert {one.verdict for one in verify(sizes, before, kinds=KINDS)} == {Verdict.VERIFIED}
    both = [
        replace(row, usd_per_hour=Decimal("3.60")) if row.gpu in {"H200 SXM", "H100 SXM"} else row
        for row in rows()
    ]
    assert {one.verdict for one in judge(both)} == {Verdict.VERIFIED}


def test_a_new_name_at_the_price_of_one_of_several_has_not_moved() -> None:
    """Each GPU was known under three names, the middle of them at 0.8 of the price that the new name has."""
    renamed = rows("GPU {}")
    before = [
        known_as(replace(row, instance_type=f"{number} {row.instance_type}"), days_ago=9)
        for number, factor in enumerate(("0.8", "0.8", "1"))
        for row in by(factor, renamed)
    ]
    assert {one.verdict for one in verify(renamed, before, kinds=KINDS)} == {Verdict.VERIFIED}
    moved = by("0.9", renamed)
    assert {one.verdict for one in verify(moved, before, kinds=KINDS)} == {Verdict.QUARANTINED}


def in_steps(*steps: str, nights: int = 1, first: float = 20) -> list[KnownPrice]:
    """What a price of 3.00, which stood for some days, became night after night."""
    seen = [
        known_as(offer("3.00"), days_ago=len(steps) * nights + 1, last_seen_at=NOW - (len(steps) + 1) * DAY)
    ]
    seen[0] = replace(seen[0], first_seen_at=NOW - first * DAY)
    return seen + [known_as(offer(step), days_ago=len(steps) - place) for place, step in enumerate(steps)]


@pytest.mark.parametrize(
    ("steps", "now", "expected"),
    [
        (["4.20"], "5.60", True),  # 1.87 times 3.00
        (["4.20"], "5.80", False),  # 1.38 times the last, 1.93 times what stood
        (["2.10"], "1.50", False),
        (["3.60", "4.30", "5.10", "5.60"], "5.80", False),
    ],
)
def test_no_posted_price_nearly_doubles_in_steps_either(steps: list[str], now: str, expected: bool) -> None:
    (found,) = verify([offer(now)], in_steps(*steps), kinds=KINDS)
    assert (found.verdict is Verdict.VERIFIED) == expected, found.reasons
    if not expected:
        assert "its own price before (3.00 USD" in " ".join(found.reasons)


def test_what_was_confirmed_or_is_long_ago_does_not_hold_later_moves() -> None:
    """6.00 after 3.00 was confirmed; 3.00 was last seen more than two months ago."""
    (found,) = verify([offer("6.30")], in_steps("6.00"), kinds=KINDS)
    assert found.verdict is Verdict.VERIFIED
    old = [replace(one, last_seen_at=NOW - 61 * DAY) for one in in_steps("4.20", first=90)[:1]]
    (found,) = verify([offer("5.80")], [*old, *in_steps("4.20")[1:]], kinds=KINDS)
    assert found.verdict is Verdict.VERIFIED


def test_a_wrong_night_does_not_hold_what_moves_away_from_it() -> None:
    """5.40 was read for a night; 3.00 stood before and after, and becomes 2.70: half of 5.40."""
    back = known_as(offer("3.00"), days_ago=1)
    (found,) = verify([offer("2.70")], [*in_steps("5.40", "5.40")[:2], back], kinds=KINDS)
    assert found.verdict is Verdict.VERIFIED


@pytest.mark.parametrize(
    ("price", "nights", "verdict"), [("2.20", 0, "q"), ("2.20", 1, "v"), ("2.21", 0, "v")]
)
def test_a_price_that_becomes_that_of_another_tier_is_seen_twice(
    price: str, nights: int, verdict: str
) -> None:
    """The secure cloud at the price of the community."""
    before = [offer("2.69", tier=Tier.SECURE), offer("2.20", tier=Tier.COMMUNITY)]
    now = [replace(before[0], usd_per_hour=Decimal(price)), before[1]]
    known = [known_as(row, days_ago=9) for row in before]
    found = verify(now, [*known, *after(nights, now[0])], kinds=KINDS)
    assert [one.verdict.value[0] for one in found] == [verdict, "v"], found[0].reasons
