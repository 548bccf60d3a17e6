"""What a whole list does at once, whatever its rows are called and however many there are."""

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal

import pytest

from pricing.offer import Offer, Verdict
from pricing.storage.memory import KnownPrice
from pricing.verify import verify
from tests.pricing.known import KINDS, known_as, offer

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
