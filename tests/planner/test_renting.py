import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.errors import UnknownName
from planner.rates import Billing, PriceStatus, Tier
from planner.supply.market import is_in_region, slug
from planner.supply.options import Kind
from planner.supply.rent import paid_hours_per_month, rent_usd_per_month
from tests.planner.plans import CODER, SMALL, plan_of, rate


@pytest.mark.parametrize(
    ("price", "hours", "more", "lost", "expected"),
    [
        ("11.96", 121.6, {}, 0.0, 1454.336),
        ("5.452207", 121.6, {"tier": Tier.RESERVED_3Y}, 0.0, 3980.11111),
        ("5.452207", 730.0, {"tier": Tier.RESERVED_3Y}, 0.0, 3980.11111),
        ("2.00", 121.6, {"billing": Billing.MONTHLY}, 0.0, 1460.0),
        ("2.00", 121.6, {"billing": Billing.PER_TERM}, 0.0, 1460.0),
        ("2.00", 730.0, {"usd_per_month_cap": 1000.0}, 0.0, 1000.0),
        ("2.00", 121.6, {"usd_per_month_cap": 1000.0}, 0.0, 243.2),
        ("5.25", 121.6, {"tier": Tier.SPOT}, 0.1, 709.3333),
        ("5.25", 121.6, {}, 0.1, 638.4),  # lost work is a spot machine's
        ("19.176", 121.6, {"billing": Billing.HOURLY}, 0.0, 2331.8016),
    ],
)
def test_monthly_rent(
    price: str, hours: float, more: dict[str, object], lost: float, expected: float
) -> None:
    assert rent_usd_per_month(rate(usd_per_hour=price, **more), hours, lost) == pytest.approx(expected)  # type: ignore[arg-type]


def test_always_on_pays_no_more_than_its_hours() -> None:
    assert paid_hours_per_month(rate(tier=Tier.RESERVED_1Y), 744.0) == 744.0


@given(first=st.floats(0.1, 24.0), second=st.floats(0.1, 24.0), cap=st.none() | st.floats(1.0, 5000.0))
def test_rent_never_falls_with_hours(first: float, second: float, cap: float | None) -> None:
    less, more = sorted((first * 30.4, second * 30.4))
    machine = rate(usd_per_month_cap=cap)
    assert rent_usd_per_month(machine, less) <= rent_usd_per_month(machine, more)


@pytest.mark.parametrize(
    ("region", "wanted", "expected"),
    [
        ("us-east-1", ["us"], True),
        ("us-east-1", ["us-east-1"], True),
        ("US-EAST-1", ["us-east-1"], True),
        ("us", ["us-east-1"], False),
        ("australiaeast", ["au"], False),
        ("EU North", ["eu"], True),
        (None, ["us"], False),
    ],
)
def test_region_filter(region: str | None, wanted: list[str], expected: bool) -> None:
    assert is_in_region(region, wanted) is expected


def test_provider_names_are_forgiving() -> None:
    assert slug("Vast.ai") == slug("vastai") == "vastai"


def test_cheapest_machine_of_each_provider_and_tier_is_listed() -> None:
    found = plan_of(
        [
            rate("runpod", "B200", 2, "11.96", tier=Tier.COMMUNITY),
            rate("runpod", "B200", 4, "20.00", tier=Tier.COMMUNITY),
            rate("runpod", "H200 SXM", 8, "28.72", tier=Tier.SECURE),
            rate("vultr", "A100 80GB SXM", 8, "19.176"),
            rate("vultr", "A100 80GB SXM", 8, "18.00", region="fra"),
        ]
    )
    rented = [
        (option.provider, option.tier, option.name) for option in found.options if option.kind == "rent"
    ]
    assert rented == [
        ("runpod", "community", "2x B200"),
        ("vultr", "on_demand", "8x A100 80GB SXM"),
        ("runpod", "secure", "8x H200 SXM"),
    ]
    assert next(option for option in found.options if option.provider == "vultr").region == "fra"


def test_machine_too_slow_to_talk_to_gives_way_to_a_dearer_one_of_the_same_provider() -> None:
    slow, fast = rate("acme", "P40", 16, "0.50"), rate("acme", "B200", 2, "11.96")
    assert plan_of([slow, fast]).rental.gpu == "B200"  # type: ignore[union-attr]
    alone = plan_of([slow])
    rented = next(option for option in alone.options if option.kind == "rent")
    assert (rented.gpu, rented.is_too_slow) == ("P40", True)
    assert not any(option.is_too_slow for option in alone.options[: alone.options.index(rented) - 1])


def test_prices_that_are_too_old_sold_out_or_unknown_are_left_out_and_counted() -> None:
    found = plan_of(
        [
            rate("runpod", age_hours=14 * 24),
            rate("oldco", age_hours=14 * 24 + 1, status=PriceStatus.STALE),
            rate("goneco", available=False),
            rate("oddco", gpu="B2000"),
        ]
    )
    assert {option.provider for option in found.options if option.kind == "rent"} == {"runpod"}
    why = {entry.what: entry.why for entry in found.excluded}
    assert why["1 price (Oldco)"] == "seen more than 14 days ago"
    assert why["1 offer (Goneco)"] == "sold out when last seen"
    assert why["1 offer (B2000)"] == "the device is not in the catalogue"


def test_snapshot_prices_stay_whatever_their_age() -> None:
    found = plan_of([rate(age_hours=5000.0, status=PriceStatus.SNAPSHOT)])
    assert found.rental is not None


def test_filters_of_provider_tier_region_and_count() -> None:
    rates = [
        rate("vastai", tier=Tier.SPOT, usd_per_hour="5.00", region="us-east"),
        rate("vastai", usd_per_hour="6.00", region="eu-west"),
        rate("runpod", usd_per_hour="7.00", region="us-west"),
        rate("runpod", usd_per_hour="14.00", gpu_count=4, region="us-west"),
    ]

    def hourly(**options: object) -> list[str | None]:
        found = plan_of(rates, CODER, **options)
        return [option.usd_per_hour for option in found.options if option.kind == "rent"]

    assert hourly(provider=["vast.ai"]) == ["5.00", "6.00"]
    assert hourly(tier=["spot"]) == ["5.00"]
    assert hourly(region=["us"]) == ["5.00", "7.00"]
    assert hourly(gpus=4) == ["14.00"]
    assert hourly(provider=["nobody"]) == []


def test_storage_and_traffic_are_added_where_they_are_priced() -> None:
    plain = plan_of([rate()]).rental
    priced = plan_of([rate()], set=["storage_usd_per_gb_month=0.07", "egress_usd_per_gb=0.09"]).rental
    assert plain is not None
    assert priced is not None
    assert plain.usd_per_month == pytest.approx(1454.336)
    assert plain.point is not None
    weights_gb = plain.point.sizing.memory.weights_bytes / 1e9
    traffic_gb = plain.point.tokens_per_month * 5 / 1e9
    assert priced.usd_per_month == pytest.approx(1454.336 + weights_gb * 0.07 + traffic_gb * 0.09)


def test_notes_say_what_is_special_about_a_rental() -> None:
    found = plan_of(
        [
            rate("a", tier=Tier.SPOT),
            rate("b", tier=Tier.RESERVED_1Y, commitment_days=365),
            rate("c", billing=Billing.HOURLY, note="a newer price waits in quarantine"),
            rate("d", billing=None),
            rate("e", usd_per_month_cap=10.0),
        ]
    )
    notes = {option.provider: " ".join(option.notes) for option in found.options if option.kind == "rent"}
    assert "taken away" in notes["a"]
    assert "730 h" in notes["b"]
    assert "365 days" in notes["b"]
    assert "started hour" in notes["c"]
    assert "quarantine" in notes["c"]
    assert "does not say" in notes["d"]
    assert "capped" in notes["e"]


def test_plan_says_that_a_price_counts_though_a_newer_one_waits() -> None:
    waits = "a newer price, 1.65 USD/h seen on 2026-11-30, waits in quarantine: half of it"
    found = plan_of(
        [
            rate("a", usd_per_hour="3.29", note=waits),
            rate("b", usd_per_hour="4.00"),
            rate("c", usd_per_hour="5.00", note=waits),
        ]
    )
    (said,) = (note for note in found.notes if note.startswith("Rental prices:"))
    assert said.endswith(
        "Of 2 a newer price waits in quarantine, and the last verified one counts until it is confirmed. "
        f"So it is with 2x B200 from a, on_demand: {waits}."
    )
    options = {option["provider"]: option for option in found.to_document()["options"]}  # type: ignore[attr-defined]
    assert waits in options["a"]["notes"]
    assert not any("newer" in note for note in options["b"]["notes"])

    found = plan_of([rate("a", usd_per_hour="3.29"), rate("b", usd_per_hour="4.00", note=waits)])
    (said,) = (note for note in found.notes if note.startswith("Rental prices:"))
    assert "Of 1 a newer price waits" in said
    assert "So it is with" not in said
    (said,) = (note for note in plan_of([rate("a")]).notes if note.startswith("Rental prices:"))
    assert "newer" not in said


def test_a_hosts_ask_is_one_machine_and_serves_only_where_one_is_enough() -> None:
    asks = [
        rate("vastai", "B200", 2, "1.00", is_ask=True),
        rate("vastai", "B200", 8, "90.00", is_ask=True),
        rate("listed", "B200", 2, "11.96"),
    ]
    one = plan_of(asks)
    assert one.rental is not None
    assert (one.rental.provider, one.rental.replicas) == ("vastai", 1)
    many = plan_of(asks, tokens_per_month=5e9)
    rented = {option.provider: option.replicas for option in many.options if option.kind == "rent"}
    assert list(rented) == ["listed"]
    copies = rented["listed"]
    assert copies > 1
    why = {entry.what: entry.why for entry in many.excluded}["2 machines at Vastai"]
    assert why.startswith("one host's machine each; ")
    needed = [int(number) for number in re.findall(r"\d+", why.partition("each; ")[2])]
    assert copies in needed
    assert min(needed) > 1


def test_more_gpus_than_any_cluster_has_are_no_option_and_a_large_order_is_called_one() -> None:
    rates = [rate("listed", "B200", 8, "40.00")]
    found = plan_of(rates, SMALL, tokens_per_month=1e15)
    assert not [option for option in found.options if option.kind != "api"]
    assert any(
        "above the 200,000 GPUs of a cluster of the largest kind" in entry.why for entry in found.excluded
    )
    assert any("ask for a quote" in note for note in found.notes)
    assert "above the 200,000 GPUs of a cluster of the largest kind" in found.verdict
    large = plan_of(rates, CODER, tokens_per_month=1e11)
    assert large.rental is not None
    gpus = large.rental.replicas * 8
    assert 64 < gpus <= 200_000
    assert any(f"takes {gpus:,} GPUs at the list price of one machine" in note for note in large.notes)
    assert not any("GPUs at the list price" in note for note in plan_of(rates, CODER).notes)


def test_a_region_that_nobody_knows_is_refused_with_what_it_may_mean() -> None:
    rates = [rate("vastai", region="us-east-1"), rate("runpod", region="eu-west")]
    with pytest.raises(UnknownName, match=r"unknown region 'us-est-1'; close matches: us-east-1"):
        plan_of(rates, CODER, region=["us-est-1"])
    with pytest.raises(UnknownName, match="unknown region 'mars'"):
        plan_of(rates, CODER, region=["us", "Mars"])
    for known in ("us", "DE", "Germany", "eu", "EUROPE"):  # with or without an offer there
        plan_of(rates, CODER, region=[known])
    plan_of([rate(region=None)], CODER, region=["mars"])  # no price names any region: nothing is known


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"region": ["us"]}, "a price of tokens names no region, and only us was asked for"),
        ({"tier": ["spot"]}, "a price of tokens names no tier, and only spot was asked for"),
    ],
)
def test_apis_that_a_region_or_a_tier_leaves_out_are_listed(options: dict[str, object], why: str) -> None:
    asked = {"model": "qwen3-32b", "quant": "FP8", "gpu": "B200", "gpus": 2}
    open_to_all = plan_of([rate(region="us-west", tier=Tier.SPOT)], **asked)
    found = plan_of([rate(region="us-west", tier=Tier.SPOT)], **asked, **options)
    assert open_to_all.api is not None
    assert found.api is None
    (entry,) = (entry for entry in found.excluded if "API" in entry.what)
    assert entry.why == why
    assert (open_to_all.api.provider_title or "") in entry.what or " more" in entry.what


@pytest.mark.parametrize(
    ("billing", "hours", "usd"),
    [
        (Billing.HOURLY, 4.5, 2914.752),  # 19.176 x 5 x 30.4
        (Billing.PER_SECOND, 4.5, 2623.2768),  # 19.176 x 4.5 x 30.4
        (None, 4.5, 2623.2768),  # nobody says that it is rounded
        (Billing.HOURLY, 4.0, 2331.8016),
        (Billing.HOURLY, 23.2, 13998.48),  # always on: 730 h
    ],
)
def test_a_started_hour_of_each_day_is_paid_where_it_is_so_billed(
    billing: Billing | None, hours: float, usd: float
) -> None:
    found = plan_of([rate(usd_per_hour="19.176", billing=billing)], hours_per_day=hours)
    assert found.rental is not None
    assert found.rental.usd_per_month == pytest.approx(usd)
    lines = found.cost_by_hours()
    assert lines.rent_usd_per_month is not None
    at_nine = lines.rent_usd_per_month[9]  # at 4.5 h a day
    assert at_nine == pytest.approx(2914.752 if billing is Billing.HOURLY else 2623.2768)


def test_the_cheaper_of_two_prices_is_that_of_the_hours_paid() -> None:
    by_hour = rate("a", usd_per_hour="10.00", billing=Billing.HOURLY)
    by_second = rate("a", usd_per_hour="11.00")
    found = plan_of([by_hour, by_second], hours_per_day=4.5)  # 50.00 a day against 49.50
    assert found.rental is not None
    assert found.rental.usd_per_hour == "11.00"


def test_of_two_rentals_at_one_price_every_part_of_the_plan_names_the_same() -> None:
    # The market lists them the other way round than the ranking, which goes by name at the same price.
    rates = [rate("zeta", usd_per_hour="11.96"), rate("acme", usd_per_hour="11.96")]
    found = plan_of(rates, gpu="B200", gpus=2)
    bought = next(option for option in found.options if option.kind is Kind.BUY)
    assert found.rental is not None
    assert bought.compared_with is not None
    first = next(option for option in found.options if option.kind is Kind.RENT)
    names = {found.rental.provider, bought.compared_with.provider, first.provider}
    assert names == {"acme"}
    assert found.crossing().rent_name == f"rent {found.rental.times_text} (Acme)"
    assert found.cost_by_hours().rent_name == f"rent {found.rental.times_text} (Acme)"
    assert found.recommended.cheapest_cloud is not None
    assert found.recommended.cheapest_cloud.provider == "acme"
