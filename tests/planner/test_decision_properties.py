"""What holds of every decision: dearer is never cheaper, equal at the break-even, never is a word."""

import json
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from planner.compare import Plan
from planner.export import FORMATS
from planner.supply.options import BuyBasis, Kind, Option
from planner.supply.owning import monthly_costs
from tests.planner.plans import plan_of, rate

FEW = settings(max_examples=25, deadline=None)
PATHS = st.sampled_from(["flat", "decline", "shock"])
OWNERS = st.sampled_from(["home", "office", "colo"])
PRICES = st.floats(0.02, 400.0)  # of two B200 an hour [USD/h]


def asked(usd_per_hour: float, **options: Any) -> Plan:
    fields: dict[str, Any] = {"gpu": "B200", "gpus": 2, "hours_per_day": 12}
    return plan_of([rate(usd_per_hour=f"{usd_per_hour:.6f}")], **{**fields, **options})


def of(found: Plan, kind: Kind) -> Option:
    return next(option for option in found.options if option.kind is kind)


def month(found: Plan, kind: Kind) -> float:
    option = of(found, kind)
    assert option.usd_per_month is not None
    return option.usd_per_month


def numbers(value: Any, where: str = "") -> Iterator[tuple[str, float]]:
    """Yield every number of a document with its place."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from numbers(inner, f"{where}.{name}")
    elif isinstance(value, list | tuple):
        for number, inner in enumerate(value):
            yield from numbers(inner, f"{where}[{number}]")
    elif isinstance(value, float):
        yield where, value


# -- dearer is never cheaper ----------------------------------------------------------------------------


@FEW
@given(hours=st.tuples(st.floats(0.1, 24.0), st.floats(0.1, 24.0)), owner=OWNERS)
def test_both_cost_more_with_more_hours(hours: tuple[float, float], owner: str) -> None:
    low, high = sorted(hours)
    assume(high > 1.01 * low)
    less, more = (asked(12.0, hours_per_day=each, owner=owner) for each in (low, high))
    assert month(less, Kind.RENT) < month(more, Kind.RENT)
    assert month(less, Kind.BUY) < month(more, Kind.BUY)


@FEW
@given(prices=st.tuples(PRICES, PRICES), path=PATHS)
def test_renting_costs_more_at_a_higher_price_and_buying_pays_back_sooner(
    prices: tuple[float, float], path: str
) -> None:
    low, high = sorted(prices)
    assume(high > 1.01 * low)
    less, more = (asked(each, rent_path=path) for each in (low, high))
    assert month(less, Kind.RENT) < month(more, Kind.RENT)
    assert month(less, Kind.BUY) == month(more, Kind.BUY)
    late, soon = (of(found, Kind.BUY).break_even_months for found in (less, more))
    assert soon is not None or late is None
    assert late is None or soon is None or soon <= late + 1e-9


@FEW
@given(prices=st.tuples(st.floats(100.0, 1e6), st.floats(100.0, 1e6)), owner=OWNERS)
def test_buying_costs_more_at_a_higher_price_and_pays_back_later(
    prices: tuple[float, float], owner: str
) -> None:
    low, high = sorted(prices)
    assume(high > 1.01 * low)
    less, more = (asked(40.0, owner=owner, set=[f"purchase_usd={each!r}"]) for each in (low, high))
    assert month(less, Kind.BUY) < month(more, Kind.BUY)
    assert month(less, Kind.RENT) == month(more, Kind.RENT)
    soon, late = (of(found, Kind.BUY).break_even_months for found in (less, more))
    assert late is None or (soon is not None and soon < late)


@FEW
@given(tariffs=st.tuples(st.floats(0.001, 5.0), st.floats(0.001, 5.0)), owner=OWNERS)
def test_buying_costs_more_at_a_higher_tariff_and_renting_does_not(
    tariffs: tuple[float, float], owner: str
) -> None:
    low, high = sorted(tariffs)
    assume(high > 1.01 * low)
    less, more = (asked(12.0, electricity_usd_per_kwh=each, owner=owner) for each in (low, high))
    assert month(less, Kind.BUY) < month(more, Kind.BUY)
    assert month(less, Kind.RENT) == month(more, Kind.RENT)


# -- at the break-even both cost the same ---------------------------------------------------------------


@FEW
@given(price=PRICES, path=PATHS, owner=OWNERS)
def test_the_cumulative_costs_are_the_same_at_the_break_even_month(
    price: float, path: str, owner: str
) -> None:
    found = asked(price, rent_path=path, owner=owner)
    bought = of(found, Kind.BUY)
    months, basis = bought.break_even_months, bought.basis
    assume(months is not None and months > 0.0)
    assert isinstance(basis, BuyBasis)
    costs = monthly_costs(basis.cost, bought.compared_with, found.assumptions)
    assert costs is not None
    at = np.array([months], dtype=float)
    own, rent = costs.own(float(basis.cost.capex_usd), at)[0], costs.rent(at)[0]
    assert own == pytest.approx(rent, rel=1e-6)
    before, after = np.array([0.9 * float(at[0])]), np.array([1.1 * float(at[0])])
    assert costs.own(float(basis.cost.capex_usd), before)[0] > costs.rent(before)[0]
    if path == "flat":
        assert costs.own(float(basis.cost.capex_usd), after)[0] < costs.rent(after)[0]


@FEW
@given(price=st.floats(8.0, 400.0), owner=OWNERS)
def test_a_month_costs_the_same_at_the_break_even_hours(price: float, owner: str) -> None:
    hours = of(asked(price, owner=owner), Kind.BUY).break_even_hours_per_day
    assume(hours is not None and 0.0 < hours < 24.0)
    there = asked(price, owner=owner, hours_per_day=hours)
    assert month(there, Kind.BUY) == pytest.approx(month(there, Kind.RENT), rel=1e-6)


@FEW
@given(owner=OWNERS, hours=st.floats(1.0, 24.0))
def test_at_the_rent_at_which_the_answer_flips_both_cost_the_same(owner: str, hours: float) -> None:
    found = asked(12.0, owner=owner, hours_per_day=hours)
    place = found.options.index(of(found, Kind.BUY)) + 1
    flip = {each.name: each.value for each in found.explain(place).figures}["rent at which the answer flips"]
    assert flip is not None
    there = asked(flip, owner=owner, hours_per_day=hours)
    assert month(there, Kind.RENT) == pytest.approx(month(there, Kind.BUY), rel=1e-5)
    dearer = asked(flip * 1.01, owner=owner, hours_per_day=hours)
    machines = [option for option in dearer.options if option.kind is not Kind.API]
    assert machines[0].kind is Kind.BUY


# -- what is shown --------------------------------------------------------------------------------------

# Differences and cash received, which may well be below 0.
SAVINGS = ("saving", "effect", "net present value", ".cash.own_usd")


@FEW
@given(
    price=st.floats(0.0001, 1e5),
    hours=st.floats(0.01, 24.0),
    path=PATHS,
    owner=OWNERS,
    purchase=st.none() | st.floats(1.0, 1e9),
    tokens=st.none() | st.floats(1.0, 1e12),
)
def test_no_answer_is_negative_or_infinite_and_never_is_a_word(
    price: float, hours: float, path: str, owner: str, purchase: float | None, tokens: float | None
) -> None:
    given_price = [] if purchase is None else [f"purchase_usd={purchase!r}"]
    found = asked(
        price, hours_per_day=hours, rent_path=path, owner=owner, set=given_price, tokens_per_month=tokens
    )
    document = json.loads(json.dumps(found.to_document(), allow_nan=False))
    document.pop("scenario")
    for where, value in numbers(document):
        assert math.isfinite(value), where
        assert value >= 0.0 or any(word in where for word in (*SAVINGS, "change_per_year")), where
    for place in range(1, len(found.options) + 1):
        for figure in found.explain(place).figures:
            assert figure.value is None or math.isfinite(figure.value), figure.name
            assert figure.value is None or figure.value >= 0.0 or figure.name.startswith(SAVINGS), figure.name
    sure = found.sensitivity(draws=200)
    if sure is not None:
        json.dumps(sure.to_document(), allow_nan=False)
        assert all(months is None or 0.0 <= months <= 240.0 for months in sure.break_even_months)
    shown = "\n".join([found.verdict, *found.proof, *found.notes, FORMATS["md"](found, None).decode()])
    words = shown.replace("inf.", "").split()
    assert not {"inf", "-inf", "nan", "None"} & {word.strip(".,;()*|") for word in words}
    for option in found.options:
        basis = option.basis
        if not isinstance(basis, BuyBasis) or basis.against is None or option is not found.purchase:
            continue
        line = next((line for line in found.proof if line.startswith("Buy")), "")
        if option.break_even_months is None:
            assert "never pays back" in line
        elif option.break_even_months > 48.0:
            assert "if it is sold then" in line or "does not pay back within its term" in line
        else:
            assert "pays back after" in line or "pays at once" in line
