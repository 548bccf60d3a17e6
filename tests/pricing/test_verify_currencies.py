"""Prices in euros, whose dollars move with the rate of exchange every night."""

from collections.abc import Sequence
from decimal import Decimal

import pytest

from pricing.offer import Offer, Verdict
from pricing.storage.memory import KnownPrice
from pricing.verify import verify
from tests.pricing.known import KINDS, known_as, offer

# In the order of the page. [EUR/h]
LIST = {"H200 SXM": "3.60", "H100 SXM": "2.90", "A100 80GB SXM": "1.80", "L40S": "1.40", "L4": "0.79"}


def rows(rate: str, **prices: str) -> list[Offer]:
    """The list at a rate, some of it at other prices."""
    eur = [Decimal(prices.get(gpu.replace(" ", "_"), price)) for gpu, price in LIST.items()]
    return [
        offer(amount * Decimal(rate), gpu=gpu, instance_type=gpu, currency="EUR", price_original=amount)
        for gpu, amount in zip(LIST, eur, strict=True)
    ]


def of(then: Sequence[Offer], days_ago: float, **more: object) -> list[KnownPrice]:
    return [
        known_as(one, days_ago=days_ago, currency="EUR", price_original=one.price_original, **more)
        for one in then
    ]


def judge(tonight: Sequence[Offer], remembered: Sequence[KnownPrice]) -> str:
    found = verify(tonight, remembered, kinds=KINDS, usd_per_unit={"EUR": 1.1172})
    return "".join(one.verdict.value[0] for one in found)


@pytest.mark.parametrize("rate", ["1.1100", "1.1172", "1.1250"])
def test_prices_that_were_exchanged_are_known_at_any_rate(rate: str) -> None:
    """By 1.24 and 1.29 times, so that each is plausible alone."""
    before = of(rows("1.1172"), days_ago=1)
    assert judge(rows(rate), before) == "vvvvv"
    assert judge(rows(rate, H200_SXM="2.90", H100_SXM="3.60"), before) == "qqvvv"


def test_an_old_page_is_known_at_another_rate() -> None:
    """L4 and L40S cost less in October, at 1.0700 dollars a euro, and are at the prices of then again."""
    then = of(rows("1.0700", L4="0.70", L40S="1.20"), days_ago=60)
    of_then = [one for one in then if one.gpu in ("L4", "L40S")]
    now = of(rows("1.1172"), days_ago=1)
    assert judge(rows("1.1200", L4="0.70", L40S="1.20"), [*of_then, *now]) == "vvvqq"
    assert judge(rows("1.1200", L4="0.71", L40S="1.22"), [*of_then, *now]) == "vvvvv"


def test_a_rate_far_from_the_last_is_left_for_the_rules_to_see() -> None:
    """A fifth off: all prices move by one factor, and none is believed."""
    before = of(rows("1.1172"), days_ago=1)
    assert judge(rows("1.3400"), before) == "qqqqq"


def test_dollars_beside_euros_stay_what_they_are() -> None:
    euros, dollars = rows("1.1250"), offer("2.00", gpu="A40", instance_type="a40", region="us")
    before = [*of(rows("1.1172"), days_ago=1), known_as(dollars, days_ago=1)]
    found = verify([*euros, dollars], before, kinds=KINDS)
    assert {one.verdict for one in found} == {Verdict.VERIFIED}


@pytest.mark.parametrize("rate", ["1.1085", "1.1172", "1.1250"])
def test_the_figure_of_euros_without_its_currency_is_known_at_any_rate(rate: str) -> None:
    """One row of the list, and a list of one row: 0.79 EUR, kept at the rate of last week, is 0.79 USD."""
    last = rows("1.1172")
    bare = offer("0.79", gpu="L4", instance_type="L4")
    for now, before in (([*rows(rate)[:4], bare], last), ([bare], last[4:])):
        (*_, found) = verify(now, of(before, days_ago=1), kinds=KINDS, usd_per_unit={"EUR": float(rate)})
        assert found.verdict is Verdict.QUARANTINED
        assert "by the exchange rate of EUR: another currency?" in "; ".join(found.reasons)
