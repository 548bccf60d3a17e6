"""`prices history --chart`: steps, gaps, what waits, and the signs that a terminal can show."""

import io
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from dashboard.commands.history_text import ASCII, BOXES, Line, Span, chart, drawn
from pricing.store import Store
from tests.conftest import NOW
from tests.pricing.samples import offer, run, waiting

START = datetime(2026, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)
WIDTH = 11 + 30  # 30 columns of a day each


def span(first: int, last: int, usd: float, is_held: bool = False) -> Span:
    return Span(START + first * DAY, START + last * DAY, usd, is_held)


def line(*spans: Span, name: str = "H100 SXM, acme on_demand", others: tuple[Span, ...] = ()) -> Line:
    return Line(name, [spans, *([other] for other in others)])


def rows(text: str) -> list[str]:
    """Return what stands right of the axis, from the highest price to the lowest."""
    return [row[11:] for row in text.splitlines()[1:14]]


def test_a_price_holds_until_it_changes_and_a_gap_is_a_gap() -> None:
    text = drawn([line(span(0, 10, 3.0), span(10, 15, 2.4), span(20, 30, 1.8))], WIDTH, BOXES)
    assert text.splitlines()[0] == "USD/GPU-h"
    # 1.2 USD on 13 rows are 0.10 a row: 2.4 stands on the seventh.
    assert [row[:11].strip() for row in text.splitlines()[1:14:6]] == ["3.00 ┤", "2.40 ┤", "1.80 ┤"]
    found = rows(text)
    assert found[0] == "─" * 10
    assert found[6] == " " * 10 + "─" * 5
    assert found[12] == " " * 20 + "─" * 10
    assert found[1:6] == [" " * 10 + "│"] * 5
    assert found[7:12] == [""] * 5  # nothing leads over the gap
    assert text.splitlines()[14:16] == [
        " " * 10 + "└" + "─" * 30,
        " " * 11 + "2026-01-01" + " " * 10 + "2026-01-31",
    ]
    assert text.splitlines()[-1] == "─  H100 SXM, acme on_demand: 1.80 to 3.00, 1.80 on 2026-01-31"


def test_several_lines_have_letters_and_cross_in_a_star() -> None:
    text = drawn(
        [
            line(span(0, 30, 3.0), name="a", others=(span(0, 9, 3.0), span(20, 29, 3.0))),
            line(span(0, 10, 3.0), span(10, 30, 1.8), name="b"),
        ],
        WIDTH,
        ASCII,
    )
    assert text.isascii()
    assert rows(text)[0] == "*" * 10 + "a" * 20
    assert rows(text)[12] == " " * 10 + "b" * 20
    assert text.splitlines()[-3:] == [
        "a  a: 3.00 on 2026-01-31, the cheapest of 3 offers",
        "b  b: 1.80 to 3.00, 1.80 on 2026-01-31",
        "*  several of them",
    ]


def test_the_cheapest_counts_and_what_waits_is_marked_and_moves_no_scale() -> None:
    text = drawn(
        [line(span(0, 30, 3.0), others=(span(0, 15, 2.4), span(20, 21, 0.03, is_held=True)))], WIDTH, BOXES
    )
    found = rows(text)
    assert found[12] == "─" * 15 + " " * 5 + "?"  # 0.03 at the edge; the scale ends at 2.40
    assert found[0] == " " * 15 + "─" * 15
    assert "?  waits or was rejected; beyond the scale at its edge" in text


def test_one_moment_one_price_and_nothing_at_all_are_drawn_too() -> None:
    text = drawn([line(span(0, 0, 2.0))], 10, BOXES)
    assert rows(text)[6] == "─"
    assert text.splitlines()[7].startswith("     2.00 ┤")
    assert max(map(len, text.splitlines()[:16])) == 11 + 24  # the least width
    assert drawn([], 80, BOXES) == ""
    assert "none was verified" in drawn([line(span(0, 5, 2.0, is_held=True))], 80, BOXES)


def test_more_lines_than_letters_are_counted() -> None:
    many = [line(span(0, 9, 1.0 + number), name=str(number)) for number in range(11)]
    assert drawn(many, 80, BOXES).splitlines()[-1] == "2 more: --provider, --tier or --region draw fewer"


# -- the command --------------------------------------------------------------------------------------


def test_the_first_day_has_a_chart_of_bundled_prices_in_the_width_of_the_terminal(
    cli: Callable[..., Any], database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "70")
    chosen = ("prices", "history", "--gpu", "H100 SXM", "--provider", "aws", "--tier", "on_demand")
    ran = cli(*chosen, "--chart", "--limit", "1")
    lines = ran.out.splitlines()
    assert ran.code == 0
    assert max(map(len, lines[:16])) == 70
    assert lines[1].startswith("    12.29 ┤──────")  # 98.32 USD for eight
    assert lines[17].startswith("─  H100 SXM, aws on_demand: 6.88 to 12.29, 6.88 on 2026-07-20")
    assert "\x1b" not in ran.out
    assert cli(*chosen, "--limit", "1").out in ran.out  # the table stands below, cut or not
    assert cli(*chosen, "--chart", "--json").document == cli(*chosen, "--json").document


def test_a_chart_needs_one_device(cli: Callable[..., Any], database: Path) -> None:
    ran = cli("prices", "history", "--chart")
    assert (ran.code, ran.err) == (
        2,
        "breakeven: --chart: prices of different devices are no chart; name one by --gpu\n",
    )


def test_what_was_stored_is_drawn_with_what_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(WIDTH))
    with Store.in_memory(snapshot=False) as store:
        store.record(run(offer("2.69", at=NOW - 10 * DAY)))
        store.record(run(offer("2.99", at=NOW - 4 * DAY)))
        store.record(run(waiting("10.76", at=NOW - 2 * DAY)))
        text = chart(store.history(), None)
        later = chart(store.history(), NOW - 7 * DAY)
    assert "H100 SXM, acme on_demand: 2.69 to 2.99, 2.99 on 2026-11-26" in text
    # Six of the eight days are 22.5 columns of 30; in the one of the change the later price counts.
    assert rows(text)[12].replace("-", "─") == "─" * 22
    assert rows(text)[0].replace("-", "─") == " " * 22 + "─" + " " * 6 + "?"
    assert "2026-11-20" in text
    assert "2026-11-23" in later


def test_a_terminal_without_boxes_gets_ascii(monkeypatch: pytest.MonkeyPatch) -> None:
    for encoding, sign in (("ascii", "|"), ("cp1252", "|"), ("utf-8", "┤"), ("cp437", "┤")):
        monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), encoding=encoding))
        with Store.in_memory(snapshot=False) as store:
            store.record(run(offer("2.69", at=NOW)))
            text = chart(store.history(), None)
        assert sign in text
        assert text.isascii() is (sign == "|")
