"""Cash month by month: due when it is due, and in all what the plan says."""

import io

import openpyxl
import pytest

from planner.compare import Plan
from planner.export import FORMATS
from planner.supply.options import BuyBasis, Kind
from tests.planner.plans import plan_of, rate

STATED = ["purchase_usd=25000", "power_kw=0.7", "resale_fraction=0.2", "term_years=2.5"]


def planned(**options: object) -> Plan:
    fields = {"gpu": "B200", "gpus": 2, "owner": "home", "hours_per_day": 4, "set": STATED}
    return plan_of([rate(usd_per_hour="11.96")], **{**fields, **options})


def test_the_price_is_due_at_the_start_and_the_resale_comes_at_the_end() -> None:
    cash = planned().cash_flow()
    assert cash.months[:3] == (0.0, 1.0, 2.0)
    assert cash.months[-1] == 30.0
    assert cash.own_usd is not None
    assert cash.rent_usd is not None
    # 0.7 kW x 121.6 h x 0.175 USD/kWh a month; a fifth of the price back at the end
    assert cash.own_usd[:2] == pytest.approx((25_000.0, 14.896))
    assert cash.own_usd[-1] == pytest.approx(14.896 - 5_000.0)
    assert cash.rent_usd[:2] == pytest.approx((0.0, 1454.336))


def test_the_months_add_up_to_the_plan() -> None:
    for path in ("flat", "decline", "shock"):
        found = planned(rent_path=path)
        cash, rental = found.cash_flow(), found.rental
        assert cash.rent_usd is not None
        assert cash.own_usd is not None
        assert rental is not None
        assert sum(cash.rent_usd) / 30.0 == pytest.approx(rental.usd_per_month_compared)
        own = next(option for option in found.options if option.kind is Kind.BUY)
        assert isinstance(own.basis, BuyBasis)
        assert sum(cash.own_usd) / 30.0 == pytest.approx(own.usd_per_month)


def test_a_term_that_ends_within_a_month_pays_a_part_of_it() -> None:
    cash = planned(set=[*STATED[:3], "term_years=0.29"]).cash_flow()
    assert cash.months == pytest.approx((0.0, 1.0, 2.0, 3.0, 3.48))
    assert cash.rent_usd is not None
    assert cash.rent_usd[-1] == pytest.approx(0.48 * 1454.336)


def test_the_workbook_has_a_sheet_of_it_with_sums() -> None:
    found = planned()
    sheet = openpyxl.load_workbook(io.BytesIO(FORMATS["xlsx"](found, None)))["Cash"]
    lines = [[cell.value for cell in line] for line in sheet.iter_rows()]
    assert lines[0][:2] == ["rent", "2x B200 from runpod, on_demand"]
    header = lines[3]
    assert header[:3] == ["month", "rent_usd", "rent_usd_cumulative"]
    last = dict(zip(header, lines[-1], strict=True))
    assert last["month"] == 30.0
    assert last["rent_usd_cumulative"] == pytest.approx(30 * 1454.336)


def test_a_way_that_is_not_there_is_unknown() -> None:
    document = plan_of([], "phi-4-mini-instruct", gpu="RTX 4090", gpus=1).to_document()["cash"]
    assert isinstance(document, dict)
    assert (document["rent_usd"], document["api_usd"]) == (None, None)
    assert document["own_usd"] is not None
