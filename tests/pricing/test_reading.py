"""Strict reading of JSON answers and of sizes on pages."""

from decimal import Decimal
from typing import Any

import pytest

from pricing.errors import ParseError
from pricing.offer import Problem, RawOffer
from pricing.parsing.reading import (
    amount,
    beginning,
    dig,
    lower_quartile,
    merged,
    month_cap,
    next_key,
    of_kind,
    read_rows,
    rows_at,
    text_number,
    whole,
)
from pricing.provider import Page


def page(body: str, key: str = "list") -> Page:
    return Page(key=key, url="https://example.com/", body=body.encode())


def offer(name: str, price: str, **changes: Any) -> RawOffer:
    fields: dict[str, Any] = {"instance_type": name, "gpu": "H100", "gpu_count": 1, "page": "p", "raw": price}
    return RawOffer(**(fields | {"price_per_hour": Decimal(price)} | changes))


@pytest.mark.parametrize(
    ("value", "price"),
    [
        (None, None),
        ("", None),
        (0, None),
        ("0", None),
        (Decimal("0.000"), None),
        (3, Decimal(3)),
        (Decimal("3.29"), Decimal("3.29")),
        ("3.2900000000", Decimal("3.29")),
        (" 1.99 ", Decimal("1.99")),
    ],
)
def test_amount_is_exact_and_nothing_is_not_zero(value: object, price: Decimal | None) -> None:
    assert amount(value, "price") == price


@pytest.mark.parametrize(
    "value",
    [True, False, -1, Decimal("-0.01"), Decimal("NaN"), "NaN", "1e3", "$3", "3,29", "about 3", [], {}, 3.29],
)
def test_amount_of_another_form_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match="price is"):
        amount(value, "price")


@pytest.mark.parametrize("value", [0, -1, True, None, "", "1/4", "8x", Decimal(8), "٣"])
def test_count_is_never_guessed(value: object) -> None:
    with pytest.raises(ValueError, match="not a count"):
        whole(value, "count")


def test_count_may_be_a_text() -> None:
    assert (whole("8", "count"), whole(8, "count")) == (8, 8)


@pytest.mark.parametrize(
    ("text", "unit", "number"),
    [("208", "", 208), ("2,048", "", 2048), ("1800 GiB", "GiB", 1800), ("61.44", "", 61.44)],
)
def test_size_on_a_page(text: str, unit: str, number: float) -> None:
    assert text_number(text, unit) == number


@pytest.mark.parametrize(
    ("text", "unit"), [("80", "GB"), ("80 GB", ""), ("1,80", ""), ("", ""), ("8 or 13", "")]
)
def test_size_in_another_unit_is_refused(text: str, unit: str) -> None:
    with pytest.raises(ParseError, match="page changed"):
        text_number(text, unit)


@pytest.mark.parametrize(
    ("prices", "quartile"),
    [((7,), 7), ((1, 3), "1.5"), ((1, 2, 3), "1.5"), ((5, 1, 4, 2, 3), 2), ((1, 2, 3, 100), "1.75")],
)
def test_lower_quartile(prices: tuple[int, ...], quartile: int | str) -> None:
    assert lower_quartile([Decimal(price) for price in prices]) == Decimal(quartile)


@pytest.mark.parametrize("hours", [672, 730, 744])
def test_monthly_cap_belongs_to_the_hourly_price(hours: int) -> None:
    assert month_cap(Decimal(2) * hours, Decimal(2)) == 2 * hours


@pytest.mark.parametrize("month", [2, 48, 17520])
def test_monthly_cap_of_another_unit_is_refused(month: int) -> None:
    with pytest.raises(ValueError, match="do not belong together"):
        month_cap(Decimal(month), Decimal(2))


def test_pages_of_one_kind_are_in_order() -> None:
    pages = {key: page("", key) for key in ("plans#10", "other", "plans", "plans#2")}
    assert [found.key for found in of_kind(pages, "plans")] == ["plans", "plans#2", "plans#10"]
    assert [next_key(key) for key in ("plans", "plans#2", "fr/plans#9")] == [
        "plans#2",
        "plans#3",
        "fr/plans#10",
    ]


def test_what_stands_deep_is_none_where_the_way_is_broken() -> None:
    assert dig({"a": {"b": 1}}, "a", "b") == 1
    assert [dig(node, "a", "b") for node in ({}, {"a": None}, {"a": [1]}, None, "a")] == [None] * 5


def test_beginning_is_read_from_memory_and_disk(tmp_path: Any) -> None:
    path = tmp_path / "page"
    path.write_bytes(b"abcdef")
    assert beginning(Page(key="p", url="", file=path), 3) == beginning(page("abcdef"), 3) == b"abc"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ('{"errors": [{"message": "no such field"}]}', "no such field"),
        ('{"data": {}}', "no 'data.rows'"),
        ('{"data": {"rows": {}}}', "not a list"),
        ('{"data": {"rows": []}}', "is empty"),
        ("<html></html>", "HTML came"),
        ('{"data": {"rows": [', "not valid JSON"),
        ('{"data": {"rows": [NaN]}}', "not valid JSON"),
        ('{"data": {"rows": ' + "[" * 100_000 + "]" * 100_000 + "}}", "nested too deeply"),
    ],
)
def test_answer_of_another_shape_says_what_came(body: str, message: str) -> None:
    with pytest.raises(ParseError, match=message):
        rows_at(page(body), "data", "rows")


def test_row_that_cannot_be_read_spoils_no_other() -> None:
    def read(row: dict[str, str]) -> list[RawOffer]:
        return [offer(row["id"], row["price"])]

    rows = [{"id": "a", "price": "1"}, {"id": "b"}, {"id": "c", "price": "x"}, None]
    found = list(read_rows(rows, read, page="list", name="id"))
    assert [item.instance_type for item in found if isinstance(item, RawOffer)] == ["a"]
    assert [item.what for item in found if isinstance(item, Problem)] == ["b", "c", "None"]
    with pytest.raises(ParseError, match="no row could be read; b: no 'price' in the row"):
        list(read_rows(rows[1:], read, page="list", name="id"))
    assert list(read_rows([], read, page="list", name="id")) == []


def test_page_decides_the_price_and_the_interface_adds_what_it_knows() -> None:
    listed = [offer("8x H100", "16"), offer("1x H100", "2"), offer("1x A10", "1")]
    detailed = [
        offer("gpu_8x", "16", region="us-1"),
        offer("gpu_8x", "16", region="us-2"),
        offer("gpu_1x", "3", region="us-1"),
        offer("gpu_4x", "9", region="us-1"),
    ]
    size = {"8x H100": 8, "gpu_8x": 8, "1x H100": 1, "gpu_1x": 1, "gpu_4x": 4, "1x A10": "A10"}
    found = list(merged(listed, detailed, lambda one: size[one.instance_type]))
    kept = [(item.instance_type, item.region) for item in found if isinstance(item, RawOffer)]
    assert kept == [
        ("gpu_8x", "us-1"),
        ("gpu_8x", "us-2"),
        ("gpu_4x", "us-1"),
        ("1x H100", None),
        ("1x A10", None),
    ]
    assert [item.what for item in found if isinstance(item, Problem)] == ["gpu_1x in us-1"]
