"""Hardware, token and exchange rates: plausible, dated, and the default price by its rule."""

import csv
from collections import Counter
from datetime import date

import pytest

from planner.catalogues import purchases
from planner.catalogues.currencies import all_currencies, usd_per_unit
from planner.catalogues.gpus import all_gpus
from planner.catalogues.models import all_models
from planner.catalogues.purchases import (
    Condition,
    PricePoint,
    all_purchase_points,
    default_purchase,
    host_points,
    purchase_points,
)
from planner.catalogues.tokens import all_token_prices, api_prices
from planner.errors import UnknownName


def point(low, high=None, *, as_of, condition="new", what="card", seller="shop"):
    return PricePoint(
        gpu="X",
        what=what,
        condition=Condition(condition),
        usd_low=low,
        usd_high=high or low,
        currency_original="USD",
        as_of=as_of,
        seller=seller,
        source=f"https://{seller}.example",
        notes="",
        checked="2026-11-30",
    )


@pytest.fixture
def points(monkeypatch):
    """Give the device X these price points."""

    def put(*given):
        monkeypatch.setattr(purchases, "purchase_points", lambda gpu: given if gpu == "X" else ())

    return put


def test_the_newest_point_of_the_condition_is_the_default(points):
    points(
        point(100, as_of="2025-01"),
        point(130, as_of="2026-02-01"),
        point(70, as_of="2026-03", condition="used"),
    )
    assert default_purchase("X").usd == 130
    assert default_purchase("X", "used").usd == 70
    assert default_purchase("X", "refurbished") is None


def test_points_of_the_newest_month_make_a_range_with_its_middle(points):
    points(
        point(90, as_of="2026-01"),
        point(100, 120, as_of="2026-02-03", seller="a"),
        point(150, as_of="2026-02", seller="b"),
    )
    purchase = default_purchase("X")
    assert (purchase.usd_low, purchase.usd, purchase.usd_high) == (100, 125, 150)
    assert purchase.as_of == "2026-02-03"
    assert purchase.source == "a (https://a.example); b (https://b.example)"


def test_a_whole_server_is_not_mixed_with_a_module(points):
    points(point(30_000, as_of="2026-02", what="module"), point(300_000, as_of="2026-02", what="server 8x"))
    purchase = default_purchase("X")
    assert purchase.usd_low == purchase.usd_high
    assert purchase.usd_per_gpu in {30_000, 37_500}


def test_undated_points_count_only_where_no_dated_one_is_known(points):
    points(point(50, as_of=None), point(100, as_of="2024"))
    assert default_purchase("X").usd == 100
    points(point(50, as_of=None))
    assert default_purchase("X").usd == 50
    assert default_purchase("X").as_of is None


def test_a_laptop_counts_only_where_nothing_else_is_known(points):
    points(point(4500, as_of="2026-08", what="laptop"), point(2000, as_of="2026-06", what="mini-pc"))
    assert default_purchase("X").what == "mini-pc"
    points(point(4500, as_of="2026-08", what="laptop"))
    assert default_purchase("X").usd == 4500


def test_listings_of_unstated_condition_stand_in_for_a_new_price_only(points):
    points(point(80, as_of="2026-06", condition="unstated"))
    assert default_purchase("X").condition is Condition.UNSTATED
    assert default_purchase("X", "used") is None
    points(point(80, as_of="2026-06", condition="unstated"), point(100, as_of="2024-01"))
    assert default_purchase("X").condition is Condition.NEW


@pytest.mark.parametrize(
    ("as_of", "day", "is_known"),
    [
        ("2026-02-03", "2026-02-03", True),
        ("2026-02-03", "2026-02-02", False),
        ("2026-02", "2026-02-01", True),  # its source speaks of the whole month
        ("2026-02", "2026-01-31", False),
        ("2026-Q2", "2026-06-30", False),  # from the end of the quarter on
        ("2026-Q2", "2026-07-01", True),
        ("2025-H2", "2025-12-31", False),
        ("2025-H2", "2026-01-01", True),
        ("2025", "2025-12-31", False),
        ("2025", "2026-01-01", True),
        ("2026", "2026-11-29", False),
        ("2026", "2026-11-30", True),  # the day on which it was read
        (None, "2026-11-29", False),
        (None, "2026-11-30", True),
        ("2026-11", None, True),
    ],
)
def test_what_was_known_on_a_day(as_of, day, is_known):
    wanted = None if day is None else date.fromisoformat(day)
    assert point(100, as_of=as_of).is_known_by(wanted) is is_known


def test_the_price_of_a_past_day_comes_from_what_was_known_then(points):
    points(point(100, as_of="2025-01"), point(130, as_of="2026-02-01"), point(50, as_of=None))
    assert default_purchase("X", known_by=date(2026, 2, 1)).usd == 130
    assert default_purchase("X", known_by=date(2026, 1, 31)).usd == 100
    assert default_purchase("X", known_by=date(2024, 12, 31)) is None


def test_a_dated_listing_goes_before_an_undated_new_price(points):
    points(point(750, as_of=None), point(700, as_of="2025-08", condition="unstated"))
    assert (default_purchase("X").usd, default_purchase("X").as_of) == (700, "2025-08")


def test_nothing_known_is_none_and_not_zero(points):
    points()
    assert default_purchase("X") is None
    assert default_purchase("no such device") is None


@pytest.mark.parametrize(
    ("as_of", "month"),
    [
        ("2026-04-30", "2026-04"),
        ("2026-04", "2026-04"),
        ("2026-Q2", "2026-04"),
        ("2026", "2026-01"),
        (None, ""),
    ],
)
def test_a_loose_date_counts_from_its_first_month(as_of, month):
    assert point(1, as_of=as_of).month == month


@pytest.mark.parametrize(
    "change", [{"low": 0}, {"low": -1}, {"low": float("nan")}, {"low": float("inf")}, {"low": 2, "high": 1}]
)
def test_an_impossible_price_cannot_be_built(change):
    with pytest.raises(ValueError, match="is not a price range"):
        point(**change, as_of="2026")


def test_a_thing_of_unknown_kind_cannot_be_built():
    with pytest.raises(ValueError, match="'boat' is not one of card"):
        point(1, as_of="2026", what="boat")


@pytest.mark.parametrize(
    ("gpu", "what", "units", "low", "usd", "high", "includes_host"),
    [
        # aiintelreport.com 35,000 to 40,000 and aiinframap.com 30,000, both June 2026.
        ("H100 SXM", "module", 1, 30_000, 35_000, 40_000, False),
        ("GB200", "rack", 72, 3_100_000, 3_100_000, 3_100_000, True),
        ("A100 40GB SXM", "server 8x", 8, 199_000, 199_000, 199_000, True),
        ("RTX 4090", "card", 1, 1_800, 1_900, 2_000, False),
        ("Mac Studio M3 Ultra 96GB", "mac", 1, 5_299, 5_299, 5_299, True),
    ],
)
def test_default_prices_of_known_devices(gpu, what, units, low, usd, high, includes_host):
    purchase = default_purchase(gpu)
    assert (purchase.what, purchase.units) == (what, units)
    assert (purchase.usd_low, purchase.usd, purchase.usd_high) == (low, usd, high)
    assert purchase.includes_host is includes_host
    assert purchase.usd_per_gpu == usd / units
    assert purchase.as_of
    assert purchase.source


def test_every_price_point_is_of_a_known_device_and_plausible_per_gpu():
    units = {"server 8x": 8, "rack": 72}
    for price in all_purchase_points():
        assert price.gpu is None or price.gpu in all_gpus()
        assert 30 <= price.usd_low / units.get(price.what, 1) <= 65_000, price
        assert price.usd_high / price.usd_low < 5, price
        assert price.seller
    assert sum(price.gpu is None for price in all_purchase_points()) == 5


def test_every_device_with_a_point_has_a_default_or_is_only_sold_used():
    for gpu in {price.gpu for price in all_purchase_points() if price.gpu}:
        assert default_purchase(gpu) or default_purchase(gpu, "used")
        assert purchase_points(gpu)


def test_every_host_point_is_plausible():
    for host in host_points():
        assert 100 <= host.usd_low <= host.usd_high <= 100_000
        assert host.item
        assert host.seller


def test_every_token_price_is_plausible_and_of_a_known_model():
    for price in all_token_prices():
        assert price.model_id is None or price.model_id in all_models()
        assert 0.005 <= price.usd_per_mtok_input <= 200
        assert price.usd_per_mtok_input / 2 <= price.usd_per_mtok_output <= 1000
        cached = price.usd_per_mtok_cached_input
        assert cached is None or 0 < cached <= price.usd_per_mtok_input


def test_prices_of_one_model_are_found():
    prices = api_prices("qwen3-coder-480b-a35b")
    assert len(prices) == 3
    assert {price.model_id for price in prices} == {"qwen3-coder-480b-a35b"}
    assert api_prices("no-such-model") == ()


def test_the_euro_and_currencies_quoted_against_it():
    assert usd_per_unit("EUR").usd_per_unit == pytest.approx(1.1172)
    assert usd_per_unit("usd").usd_per_unit == 1.0
    # 1.1172 / 0.8338
    assert usd_per_unit("GBP").usd_per_unit == pytest.approx(1.33988966, abs=1e-8)
    assert usd_per_unit("GBP").as_of == "2026-10-30"
    assert "European Central Bank" in usd_per_unit("GBP").source


def test_pegged_currencies_keep_their_peg():
    assert usd_per_unit("SAR").usd_per_unit == pytest.approx(1 / 3.75)


def test_an_unknown_currency_is_an_error_with_close_matches():
    with pytest.raises(UnknownName, match="unknown currency 'EURO'; close matches: EUR"):
        usd_per_unit("EURO")


def test_all_rates_of_the_facts_are_carried(shared):
    with (shared / "data" / "fx_rates.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            expected = float(row["usd_per_unit"])
            assert all_currencies()[row["currency"]].usd_per_unit == pytest.approx(expected, rel=1e-3)


def test_all_price_points_of_the_facts_are_carried(shared):
    with (shared / "data" / "purchase_prices.csv").open(encoding="utf-8", newline="") as file:
        facts = Counter(
            (
                row["canonical"] or None,
                row["what"],
                row["condition"] or "unstated",
                float(row["price_usd_low"]),
                float(row["price_usd_high"]),
                row["as_of"] or None,
                row["seller_or_source"],
            )
            for row in csv.DictReader(file)
        )
    ours = Counter(
        (
            price.gpu,
            price.what,
            str(price.condition),
            price.usd_low,
            price.usd_high,
            price.as_of,
            price.seller,
        )
        for price in all_purchase_points()
    )
    assert facts <= ours
    assert (ours - facts).total() == 20  # price columns of the table of devices


def test_all_token_and_host_prices_of_the_facts_are_carried(shared):
    with (shared / "data" / "api_token_prices.csv").open(encoding="utf-8", newline="") as file:
        facts = [
            (row["provider"], row["model"], float(row["output_usd_per_mtok"]), row["catalogue_id"] or None)
            for row in csv.DictReader(file)
        ]
    ours = [
        (price.provider, price.model_name, price.usd_per_mtok_output, price.model_id)
        for price in all_token_prices()
    ]
    assert ours[: len(facts)] == facts
    with (shared / "data" / "host_prices.csv").open(encoding="utf-8", newline="") as file:
        hosts = [(row["item"], float(row["price_usd_low"])) for row in csv.DictReader(file)]
    assert [(host.item, host.usd_low) for host in host_points()][: len(hosts)] == hosts
