"""Wrong prices that look plausible one by one, and what the rest of the answer or the provider says."""

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

from pricing.offer import Offer, Verdict
from pricing.storage.memory import KnownPrice
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
