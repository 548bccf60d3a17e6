"""The figures of docs/verification.md, "Exchange rates", come from a replay of the bank's history."""

from datetime import date
from decimal import Decimal
from pathlib import Path

import pytest

from tools import rates

# In the form of the bank's file: newest first, a comma at each end, what is gone; figures made up.
HISTORY = """Date,USD,GBP,DKK,HKD,EEK,
2026-01-09,1.1000,0.9000,7.46,8.6200,N/A,
2026-01-08,1.1000,0.9000,7.46,8.6200,N/A,
2026-01-07,1.1000,0.9000,7.46,8.6200,15.6466,
2026-01-06,1.1000,0.8000,7.46,8.6200,15.6466,
2026-01-05,1.1110,0.8000,7.46,8.7100,15.6466,
2026-01-02,1.1000,0.8000,7.46,8.6200,15.6466,
2026-01-01,N/A,N/A,N/A,N/A,15.6466,
"""


@pytest.fixture
def pages(tmp_path: Path) -> list[rates.Page]:
    file = tmp_path / "eurofxref-hist.csv"
    file.write_text(HISTORY, encoding="utf-8")
    return rates.read(file)


def test_the_file_is_read_oldest_first_and_without_what_is_gone(pages: list[rates.Page]) -> None:
    assert [day for day, _ in pages] == [date(2026, 1, day) for day in (2, 5, 6, 7, 8, 9)]
    assert pages[0][1] == {
        "USD": Decimal("1.1000"),
        "GBP": Decimal("0.8000"),
        "DKK": Decimal("7.46"),
        "HKD": Decimal("8.6200"),
    }


def test_the_largest_move_lies_within_the_days(pages: list[rates.Page]) -> None:
    assert rates.largest_move(pages, "GBP", 1) == Decimal("1.125")
    assert rates.largest_move(pages, "USD", 1) == Decimal("1.01")  # 1.111 on the 5th, 1.1 on the 6th
    assert rates.largest_move(pages[:2], "USD", 2) == 1  # three days apart
    assert rates.largest_move(pages[:2], "USD", 3) == Decimal("1.01")


def test_what_waits_is_counted_by_currency_and_rule(pages: list[rates.Page]) -> None:
    total, held = rates.waiting(pages)
    assert total == 24
    # All are new for two days; the pound's 1.125 waits on the 7th and 8th and is taken on the 9th.
    assert held == {
        **{(name, "first-sight"): 2 for name in ("USD", "GBP", "DKK", "HKD")},
        ("GBP", "move"): 2,
    }


def test_each_fault_is_put_and_what_is_true_is_taken(pages: list[rates.Page]) -> None:
    days, found = rates.caught(pages, 1)
    assert days == 1  # each fifth of six that has a day after it
    # 8.71 / (1.111 x 1.02) = 7.686, above 7.75 / 1.015 = 7.635: too little to be told from the truth.
    assert {fault for fault, number in found.items() if not number} == {"no fault", "dollar 2 % too high"}
    lines = list(rates.report(pages))
    assert lines[0] == "6 days, 2026-01-02 to 2026-01-09"
    assert "Hong Kong dollars to the dollar: 7.836 to 7.840" in lines
    assert lines[-1].startswith("0 days against those 31 days before")
