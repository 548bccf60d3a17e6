"""Strict reading of pages: what is expected, or an error that says what was found."""

from decimal import Decimal

import pytest

from pricing.errors import ParseError
from pricing.html import attribute, document, every, one, table_rows, text, under_heading, usd
from pricing.provider import Page

PAGE = """<!doctype html><html><body>
<h2 id="a">On-demand</h2><div class="x"><table><thead><tr><th>GPU</th><th>Price</th></tr></thead>
<tr><td>NVIDIA&nbsp;H100<sup>1</sup></td><td>$4.41 per hour</td></tr>
<tr><td>NVIDIA H100 (8x)</td><td>$35.28 per hour</td></tr></table></div>
<h3 id="a2">Billing</h3><p>per second</p>
<h2 id="b">Contract</h2>
<table><thead><tr><th>GPU</th><th>Price</th></tr></thead><tr><td>B300</td><td>ask</td></tr></table>
<a href="/x" download>x</a></body></html>"""


def test_one_returns_the_only_match() -> None:
    assert text(one(document(PAGE), "h3")) == "Billing"


@pytest.mark.parametrize("css", ["h4", "h2"])
def test_one_refuses_none_and_several(css: str) -> None:
    with pytest.raises(ParseError, match="exactly one"):
        one(document(PAGE), css)


def test_a_node_does_not_find_itself() -> None:
    outer = one(document("<div id=o><div id=i>x</div></div>"), "#o")
    assert [attribute(node, "id") for node in every(outer, "div")] == ["i"]


def test_every_counts() -> None:
    assert len(every(document(PAGE), "td", at_least=6)) == 6
    with pytest.raises(ParseError, match="at least 7 of 'td', found 6"):
        every(document(PAGE), "td", at_least=7)


def test_a_bad_selector_is_a_mistake_of_ours() -> None:
    with pytest.raises(ValueError, match="not a CSS selector"):
        every(document(PAGE), "a[")


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("<p>H100&nbsp;SXM<sup>1</sup></p>", "H100 SXM"),
        ("<p> H100 <b>SXM</b>\n 80&#8239;GB</p>", "H100 SXM 80 GB"),
        ("<p>A<!-- hidden --><script>x()</script><style>p{}</style>B</p>", "A B"),
        ("<p></p>", ""),
    ],
)
def test_text_is_what_a_reader_sees(source: str, expected: str) -> None:
    assert text(one(document(source), "p")) == expected


def test_text_leaves_the_page_as_it_was() -> None:
    page = document("<p>4<sup>1</sup></p>")
    assert text(one(page, "p")) == text(one(page, "p")) == "4"
    assert text(one(page, "sup")) == "1"


@pytest.mark.parametrize(
    "price",
    [
        "$4<sup>.29</sup>/hr",
        "$4<sup>29</sup>/hr",
        "$4.<sup>29</sup>",
        "$4.2<sup>9</sup>",
        "$<b>4</b><sup>29</sup>",
        "$ 1,204 <sup><small>29</small></sup>",
        "<span>$</span><span>4</span><span><sup>29</sup></span>",
        "$4.29<sup>.5</sup>",
        "$4<sub>29</sub>",
        "$4<sup>1</sup>",  # a footnote or a cent: not to be told
    ],
)
def test_raised_digits_behind_an_amount_are_never_dropped(price: str) -> None:
    with pytest.raises(ParseError, match="expected an amount"):
        usd(text(one(document(f"<p>{price}</p>"), "p")))


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("$4.29<sup>1</sup>/hr", "$4.29 /hr"),
        ("$4.29<sup>*</sup>", "$4.29"),
        ("$4<sup>*</sup>", "$4"),
        ("H100<sup>1</sup>", "H100"),
        ("8<sup>1</sup> GPUs", "8 GPUs"),
        ("On-demand<sup>2</sup> $4", "On-demand $4"),
    ],
)
def test_footnote_marks_are_left_out(source: str, expected: str) -> None:
    assert text(one(document(f"<p>{source}</p>"), "p")) == expected


def test_attribute_must_have_a_value() -> None:
    link = one(document(PAGE), "a")
    assert attribute(link, "href") == "/x"
    for name in ("download", "title"):
        with pytest.raises(ParseError, match=name):
            attribute(link, name)


def test_under_heading_ends_at_the_next_of_its_level() -> None:
    page = document(PAGE)
    (first,) = under_heading(page, "h2#a", "table")
    assert [[text(cell) for cell in row] for row in table_rows(first, ["GPU", "Price"])] == [
        ["NVIDIA H100", "$4.41 per hour"],
        ["NVIDIA H100 (8x)", "$35.28 per hour"],
    ]
    assert under_heading(page, "h3#a2", "table") == []
    with pytest.raises(ParseError):
        under_heading(page, "h2#c", "table")
    with pytest.raises(ParseError, match="not a heading"):
        under_heading(page, "p", "table")


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("<thead><tr><th>Price</th><th>GPU</th></tr></thead><tr><td>1</td><td>2</td></tr>", "columns"),
        ("<thead><tr><th>GPU</th><th>Price</th></tr></thead><tr><td>1</td></tr>", "1 cells"),
        ("<thead><tr><th>GPU</th><th>Price</th></tr></thead>", "tbody tr"),
    ],
)
def test_a_table_of_another_shape_is_an_error(table: str, message: str) -> None:
    with pytest.raises(ParseError, match=message):
        table_rows(one(document(f"<table>{table}</table>"), "table"), ["GPU", "Price"])


@pytest.mark.parametrize("source", ["", "  ", "{}", "plain words", "<p>\ufffd</p>"])
def test_what_is_no_page_is_refused(source: str) -> None:
    with pytest.raises(ParseError):
        document(source)


def test_a_page_in_another_encoding_is_refused() -> None:
    with pytest.raises(ParseError, match="UTF-8"):
        document(Page(key="pricing", url="https://x.example/", body="<p>£ 3</p>".encode("latin-1")))


@pytest.mark.parametrize(
    ("amount", "unit", "expected"),
    [
        ("$35.28 per hour", None, "35.28"),
        ("$1,234.50", None, "1234.50"),
        ("$2.59/hr", None, "2.59"),
        ("$ 3.29", None, "3.29"),
        ("US$3.29 USD hourly", None, "3.29"),
        ("$0.76 per\xa0hour", "hour", "0.76"),
        ("$3/h", "hour", "3"),
        ("$2.10 / GPU-hour", "gpu-hour", "2.10"),
        ("$2.10 per GPU per hour", "gpu-hour", "2.10"),
        ("$2.10/GPU/hr", "gpu-hour", "2.10"),
        ("$2.10 / hour / GPU", "gpu-hour", "2.10"),
        ("$2.10 per GPU hour", "gpu-hour", "2.10"),
        ("$11,773.44/mo", "month", "11773.44"),
        ("$1750 monthly", "month", "1750"),
    ],
)
def test_amounts_are_exact(amount: str, unit: str | None, expected: str) -> None:
    assert usd(amount, unit) == Decimal(expected)


@pytest.mark.parametrize(
    ("amount", "unit"),
    [
        ("35.28", None),
        ("€35.28", None),
        ("$35,28", None),
        ("$1.234,50", None),
        ("$12,34.50", None),
        ("$-3", None),
        ("-$3", None),
        ("$", None),
        ("", None),
        ("—", None),
        ("Contact sales", None),
        ("from $3.29", None),
        ("$3.29 - $4.29", None),
        ("$3.29*", None),
        ("$3.29 per month", None),
        ("$3.29 per GPU hour", None),
        ("$1e3", None),
        ("$NaN", None),
        ("$3.29", "hour"),
        ("$3.29 per hour", "gpu-hour"),
        ("$3.29 per GPU hour", "hour"),
        ("$3.29 per hour", "month"),
        ("$٣.29", None),
    ],
)
def test_other_units_currencies_and_forms_are_refused(amount: str, unit: str | None) -> None:
    with pytest.raises(ParseError, match="expected an amount"):
        usd(amount, unit)
