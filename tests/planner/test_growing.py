"""A demand that grows: machines are added when they are needed, and each way is paid month by month."""

import math
from typing import Any

import pytest

from planner.answers.growing import Growing, GrownWay
from planner.compare import Plan
from planner.supply.options import Kind
from tests.planner.plans import SMALL, plan_of, rate

NO_EXTRAS = ["storage_usd_per_gb_month=0", "egress_usd_per_gb=0", "term_years=2"]


def planned(growth: float, *more: str, **options: Any) -> Plan:
    """Return a plan for 3e9 tokens a month on RTX 4090s, rented at 0.40 USD/h or bought."""
    fields: dict[str, Any] = {"gpu": "RTX 4090", "gpus": 1, "tokens_per_month": 3e9, "hours_per_day": 24}
    settings = [*NO_EXTRAS, f"demand_growth_per_year={growth!r}", *more]
    return plan_of([rate("a", "RTX 4090", 1, "0.40")], SMALL, **{**fields, **options}, set=settings)


def grown(found: Plan) -> Growing:
    assert found.growth is not None
    return found.growth


def way(found: Plan, kind: Kind) -> GrownWay:
    return next(each for each in grown(found).ways if each.option.kind is kind)


def needed(found: Plan, growth: float, months: int) -> list[int]:
    """Return the copies of each month: a peak that grows by equal factors over what one copy carries."""
    point = way(found, Kind.RENT).option.point
    assert point is not None
    peak = 3e9 / (730 * 3600)
    return [
        math.ceil(peak * (1 + growth) ** (month / 12) / point.capacity_tokens_per_s)
        for month in range(months)
    ]


def test_rented_machines_are_added_in_the_month_that_needs_them() -> None:
    found = planned(1.0)
    copies = needed(found, 1.0, 24)
    assert copies[-1] >= 3 * copies[0]
    rented = way(found, Kind.RENT)
    assert list(rented.copies) == copies
    assert rented.paid_usd[0] == 0.0
    assert rented.paid_usd[1:] == pytest.approx([0.40 * 730 * count for count in copies])
    assert rented.text == f"{copies[0]} to {copies[-1]} x (1x RTX 4090) from A"


def test_rents_that_fall_are_paid_as_they_are_in_that_month() -> None:
    found = planned(1.0, "rent_change_per_year=-0.5")
    copies = needed(found, 1.0, 24)
    paid = [0.40 * 730 * count * 0.5 ** (month / 12) for month, count in enumerate(copies)]
    assert way(found, Kind.RENT).paid_usd[1:] == pytest.approx(paid)


def test_machines_are_bought_when_they_are_needed_and_sold_at_their_age() -> None:
    stated = ["purchase_usd=3000", "power_kw=0.4", "resale_floor=0", "resale_decay_per_year=0.5"]
    stated += ["staff_fte_per_server=0", "staff_fte_minimum=0"]
    found = planned(1.0, *stated, owner="home", electricity_usd_per_kwh=1e-9)
    copies = needed(found, 1.0, 24)
    owned = way(found, Kind.BUY)
    assert list(owned.copies) == copies
    added = [count - before for count, before in zip(copies, [0, *copies[:-1]], strict=True)]
    assert owned.paid_usd[:24] == pytest.approx([3000 * count for count in added], abs=1e-3)
    sold = sum(3000 * n * math.exp(-0.5 * (24 - month) / 12) for month, n in enumerate(added))
    assert owned.paid_usd[24] == pytest.approx(-sold, abs=1e-3)


def test_energy_follows_the_tokens_and_its_price() -> None:
    stated = ["purchase_usd=3000", "power_kw=0.4", "resale_fraction=0", "idle_power_fraction=0"]
    stated += ["staff_fte_per_server=0", "staff_fte_minimum=0", "pue=1", "electricity_change_per_year=0.1"]
    measured = {"batch": 16, "decode_tokens_per_s": 50.0}  # a speed that is given holds at one batch
    found = planned(1.0, *stated, owner="home", electricity_usd_per_kwh=0.5, **measured)
    owned = way(found, Kind.BUY)
    point = owned.option.point
    assert point is not None
    assert point.utilisation < 0.99
    added = [n - before for n, before in zip(owned.copies, [0, *owned.copies[:-1]], strict=True)]
    energy = [paid - 3000 * more for paid, more in zip(owned.paid_usd[1:], [*added[1:], 0], strict=True)]
    first = 0.4 * 730 * 0.5 * point.utilisation * owned.copies[0]
    assert energy[0] == pytest.approx(first)
    assert energy[12] == pytest.approx(2 * 1.1 * first)  # idle machines draw nothing here


def test_calling_an_api_costs_by_the_token() -> None:
    found = planned(1.0)
    called = way(found, Kind.API)
    month = called.option.usd_per_month
    assert month is not None
    assert called.paid_usd[1:] == pytest.approx([month * 2 ** (index / 12) for index in range(24)])
    assert called.copies == ()


@pytest.mark.parametrize("kind", list(Kind))
def test_hardly_any_growth_costs_what_the_plan_says(kind: Kind) -> None:
    found = planned(1e-9)
    found_way = way(found, kind)
    assert found_way.option.usd_per_month is not None
    assert found_way.usd_over_term == pytest.approx(24 * found_way.option.usd_per_month, rel=1e-6)
    assert found_way.option is {Kind.RENT: found.rental, Kind.BUY: found.purchase, Kind.API: found.api}[kind]


def test_what_is_owned_stays_where_the_demand_falls() -> None:
    found = planned(-0.9)
    rented, owned = way(found, Kind.RENT), way(found, Kind.BUY)
    assert rented.copies[-1] < rented.copies[0]
    assert set(owned.copies) == {owned.copies[0]}
    assert owned.paid_usd[12] < owned.paid_usd[1]  # idle machines draw less


def test_the_document_the_cash_and_the_sentence_say_the_same() -> None:
    found = planned(1.0)
    document, cash = found.to_document(), found.cash_flow()
    part = document["growth"]
    assert isinstance(part, dict)
    assert (part["growth_per_year"], part["term_months"]) == (1.0, 24.0)
    totals = {each["kind"]: each["usd_over_term"] for each in part["ways"]}
    assert list(totals.values()) == sorted(totals.values())
    lines = {"rent": cash.rent_usd, "buy": cash.own_usd, "api": cash.api_usd}
    for kind, line in lines.items():
        assert line is not None
        assert sum(line) == pytest.approx(totals[kind])
    note = found.proof[-1]
    assert note.startswith(
        "The demand changes by +100% a year; the ranking, and when buying pays, are for that"
    )
    assert "Over the 24 months of the term" in note
    assert f"renting {way(found, Kind.RENT).text} {totals['rent']:,.0f} USD" in note


def test_without_growth_or_demand_there_is_nothing_to_say() -> None:
    assert planned(0.0).growth is None
    assert planned(0.0).to_document()["growth"] is None
    asked = planned(0.5, tokens_per_month=None)
    assert asked.growth is None
    assert any("no demand is given that could grow" in note for note in asked.notes)


def test_a_purchase_beyond_the_budget_later_on_is_no_way() -> None:
    first = planned(1.0)
    copies, price = way(first, Kind.BUY).copies, first.purchase
    assert price is not None
    assert price.purchase_usd is not None
    held = planned(1.0, budget_usd=price.purchase_usd * 1.5)
    assert copies[-1] > 1.5 * copies[0]
    assert held.purchase is not None
    assert all(each.option.kind is not Kind.BUY for each in grown(held).ways)


def test_hardware_that_is_there_carries_no_more_than_there_is() -> None:
    found = planned(1.0, own="1x RTX 4090", tokens_per_month=1e8)
    assert any(option.is_own for option in found.options)
    assert all(not each.option.is_own or set(each.copies) == {1} for each in grown(found).ways)
