"""A catalogue's word counts for the machine of which it was said, and from when on it was said."""

from typing import Any

import pytest

from pricing.offer import Verdict
from pricing.storage.memory import KnownPrice
from pricing.verify import verify
from tests.pricing.known import DAY, KINDS, NOW, known, known_as, offer

AWS: dict[str, Any] = {"provider": "aws", "gpu": "A10G", "region": "us-east-1"}


def told(name: str, price: str, days_ago: float = 0.5, **changes: Any) -> KnownPrice:
    row = offer(price, witness="gpuhunt", instance_type=name, **AWS)
    return known_as(row, days_ago=days_ago, **({"times_seen": 3, "last_seen_at": NOW} | changes))


def verdict(name: str, price: str, *remembered: KnownPrice) -> Verdict:
    row = offer(price, instance_type=name, **AWS)
    return verify([row], remembered, kinds=KINDS)[0].verdict


def own(name: str, price: str, days_ago: float = 4.0) -> KnownPrice:
    return known(price, instance_type=name, days_ago=days_ago, **AWS)


def test_a_word_on_another_size_with_the_same_gpu_confirms_nothing() -> None:
    """AWS's g5.xlarge takes the price of g5.16xlarge, which the catalogue lists anew that night."""
    before = [own("g5.xlarge", "1.006"), told("g5.16xlarge", "4.096")]
    assert verdict("g5.xlarge", "4.096", *before) is Verdict.QUARANTINED
    assert verdict("g5.xlarge", "4.096", *before, told("g5.xlarge", "1.006", 9)) is Verdict.QUARANTINED
    assert verdict("g5.xlarge", "4.096", *before, told("g5.xlarge", "4.096")) is Verdict.VERIFIED


def test_a_word_on_another_instance_of_the_provider_confirms_nothing_whatever_the_names_look_like() -> None:
    before = [own("small host", "1.00"), own("large host", "4.00"), told("large host", "4.00")]
    assert verdict("small host", "4.00", *before) is Verdict.QUARANTINED
    assert verdict("small host", "4.00", *before, told("A10G x1", "4.00")) is Verdict.VERIFIED


def test_a_word_on_this_instance_outweighs_those_that_name_none() -> None:
    before = [own("g5.xlarge", "1.006"), told("g5.xlarge", "1.006", 9)]
    other = told("1x A10G", "4.096", witness="other")
    assert verdict("g5.xlarge", "4.096", before[0], other) is Verdict.VERIFIED
    assert verdict("g5.xlarge", "4.096", *before, other) is Verdict.QUARANTINED


@pytest.mark.parametrize(("between", "expected"), [(None, False), ("4.096", False), ("1.006", True)])
def test_a_row_of_a_catalogue_that_came_back_is_no_later_word(between: str | None, expected: bool) -> None:
    """It said 4.096 already before the provider said 1.006; a day without it, or with it, is no new word."""
    words = [told("g5.xlarge", "4.096", 20), told("g5.xlarge", "4.096", 1)]
    if between is not None:
        words.append(told("g5.xlarge", between, 10))
    found = verdict("g5.xlarge", "4.096", own("g5.xlarge", "1.006"), *words)
    assert (found is Verdict.VERIFIED) is expected


@pytest.mark.parametrize(("hours", "expected"), [(1, False), (11, False), (12, True)])
def test_two_runs_of_one_half_day_are_one_word(hours: float, expected: bool) -> None:
    word = told("g5.xlarge", "4.096", days_ago=hours / 24, times_seen=2)
    assert (verdict("g5.xlarge", "4.096", own("g5.xlarge", "1.006"), word) is Verdict.VERIFIED) is expected


@pytest.mark.parametrize(("days_ago", "confirms"), [(89, True), (91, False)])
def test_a_catalogue_that_was_last_read_long_ago_neither_confirms_nor_bars(
    days_ago: float, *, confirms: bool
) -> None:
    """It says 1.006, of an offer that is new, and of one that was read wrong and is back at 2.012."""
    word = told("g5.xlarge", "1.006", 200, last_seen_at=NOW - days_ago * DAY)
    assert (verdict("g5.xlarge", "1.006", word) is Verdict.VERIFIED) is confirms
    stood = known_as(
        offer("2.012", instance_type="g5.xlarge", **AWS), days_ago=40, last_seen_at=NOW - 4 * DAY
    )
    row = offer("2.012", instance_type="g5.xlarge", **AWS)
    back = known_as(row, days_ago=1, verdict=Verdict.QUARANTINED)
    before = [stood, own("g5.xlarge", "1.006", 3), back]
    assert verdict("g5.xlarge", "2.012", *before) is Verdict.VERIFIED
    assert (verdict("g5.xlarge", "2.012", *before, word) is Verdict.QUARANTINED) is confirms
