"""How prices live in the store: kept, extended, closed, superseded, and what counts on a day."""

import threading
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import pytest

from planner.rates import PriceStatus, Rate
from pricing.offer import Offer, Tier, Verdict
from pricing.storage.memory import Origin, ProviderResult, RunStatus
from pricing.storage.stored import StoredOffer
from pricing.store import Store
from pricing.verification.reviewing import Decision
from tests.conftest import NOW
from tests.pricing.samples import ACME, DAY, MORNING, failed, offer, problems, run, waiting


def lives(store: Store) -> list[tuple[str, str, int, int, int | None]]:
    """What is stored of the sample provider: price, verdict, first, last and closing day (0 is MORNING)."""

    def day(time: datetime) -> int:
        return (time - MORNING).days

    return [
        (
            str(one.usd_per_hour.normalize()),
            str(one.verdict),
            day(one.first_seen_at),
            day(one.seen_at),
            None if one.closed_at is None else day(one.closed_at),
        )
        for one in store.history(provider=ACME)
    ]


def rates(store: Store, at: datetime = MORNING, **options: object) -> list[Rate]:
    return store.rates(at, provider=ACME, **options)  # type: ignore[arg-type]


def only(items: list[StoredOffer]) -> StoredOffer:
    assert len(items) == 1
    return items[0]


# --- what goes in comes out


def test_an_offer_comes_back_as_it_was(store: Store) -> None:
    given = offer(
        "45.90",
        instance_type="p5.48xlarge",
        gpu_count=8,
        commitment_days=365,
        tier=Tier.RESERVED_1Y,
        usd_per_month_cap=Decimal("33500.10"),
        currency="EUR",
        price_original=Decimal("42.5012345678"),
        fx_date="2026-11-27",
        available=False,
        reasons=("confirmed by gpuhunt",),
        raw="42,50 €/h",
    )
    store.record(run(given))
    found = only(store.current_offers(provider=ACME))
    assert {name: getattr(found, name) for name in Offer.__slots__} == {
        name: getattr(given, name) for name in Offer.__slots__
    }
    assert found.id == given.id
    assert (found.first_seen_at, found.times_seen, found.closed_at) == (MORNING, 1, None)
    document = found.to_document()
    assert document["usd_per_hour"] == "45.90"
    assert document["price_original"] == "42.501235"
    assert (document["origin"], document["first_seen_at"]) == ("refresh", "2026-11-30T03:07:00Z")


def test_unknown_stays_unknown(store: Store) -> None:
    nothing = dict.fromkeys(
        ("memory_gb_per_gpu", "form", "region", "billing", "available", "vcpus", "ram_gb")
    )
    store.record(run(offer(**nothing)))
    found = only(store.current_offers(provider=ACME))
    assert {name: getattr(found, name) for name in nothing} == nothing


# --- intervals


def test_a_cap_of_the_month_that_moved_is_in_force_though_the_hour_costs_the_same(store: Store) -> None:
    for day, cap in enumerate(("1800", "1800", "2000", None)):
        at = MORNING + day * DAY
        given = None if cap is None else Decimal(cap)
        store.record(run(offer("2.69", at=at, usd_per_month_cap=given)))
        (rate,) = rates(store, at)
        assert rate.usd_per_month_cap == (None if cap is None else float(cap))
    assert [one[2:] for one in lives(store)] == [(0, 1, 2), (2, 2, 3), (3, 3, None)]
    (rate,) = rates(store, MORNING + DAY, as_of=MORNING + DAY)
    assert rate.usd_per_month_cap == 1800


def test_an_unchanged_price_extends_its_interval(store: Store) -> None:
    for number in range(3):
        report = store.record(run(offer(at=MORNING + number * DAY)))
    assert lives(store) == [("2.69", "verified", 0, 2, None)]
    assert only(store.current_offers(provider=ACME)).times_seen == 3
    assert (report.opened, report.extended, report.closed) == (0, 1, 0)


def test_a_changed_price_closes_the_old_interval_and_opens_one(store: Store) -> None:
    store.record(run(offer("2.69")))
    store.record(run(offer("2.69", at=MORNING + DAY)))
    report = store.record(run(offer("2.99", at=MORNING + 2 * DAY)))
    assert lives(store) == [("2.69", "verified", 0, 1, 2), ("2.99", "verified", 2, 2, None)]
    assert (report.opened, report.extended, report.closed) == (1, 0, 1)


def test_the_same_answer_twice_changes_nothing(store: Store) -> None:
    store.record(run(offer()))
    store.record(run(offer()))
    assert lives(store) == [("2.69", "verified", 0, 0, None)]
    assert only(store.current_offers(provider=ACME)).times_seen == 1


def test_a_new_price_in_quarantine_leaves_the_verified_one_in_force(store: Store) -> None:
    store.record(run(offer("2.69")))
    store.record(run(waiting("10.76", at=MORNING + DAY)))
    assert lives(store) == [("2.69", "verified", 0, 0, None), ("10.76", "quarantined", 1, 1, None)]
    (rate,) = rates(store, MORNING + DAY)
    assert rate.usd_per_hour_text == "2.69"
    assert rate.note == (
        "a newer price, 10.76 USD/h seen on 2026-12-01, waits in quarantine: "
        "a jump of 300 % against its own last price"
    )
    assert only(store.rejected(provider=ACME)).usd_per_hour == Decimal("10.76")


def test_a_confirmed_price_takes_over_from_the_day_it_was_first_seen(store: Store) -> None:
    store.record(run(offer("2.69")))
    store.record(run(waiting("10.76", at=MORNING + DAY)))
    store.record(run(offer("10.76", at=MORNING + 2 * DAY, reasons=("seen in two runs",))))
    assert lives(store) == [("2.69", "verified", 0, 0, 1), ("10.76", "verified", 1, 2, None)]
    found = only(store.current_offers(provider=ACME))
    assert (found.times_seen, found.reasons) == (2, ("seen in two runs",))
    assert store.rejected(provider=ACME) == []
    assert rates(store, MORNING + 2 * DAY)[0].note is None


def test_a_price_that_returns_resolves_what_waited(store: Store) -> None:
    store.record(run(offer("2.69")))
    store.record(run(waiting("10.76", at=MORNING + DAY)))
    store.record(run(offer("2.69", at=MORNING + 2 * DAY)))
    assert lives(store) == [("2.69", "verified", 0, 2, None), ("10.76", "quarantined", 1, 1, 2)]


def test_what_waits_and_moves_opens_another_interval(store: Store) -> None:
    store.record(run(waiting("10.76")))
    store.record(run(waiting("10.76", at=MORNING + DAY, reasons=("a new row",))))
    store.record(run(waiting("11.00", at=MORNING + 2 * DAY)))
    assert lives(store) == [("10.76", "quarantined", 0, 1, 2), ("11", "quarantined", 2, 2, None)]
    assert rates(store) == []


def test_a_rejected_price_is_kept_with_its_reason(store: Store) -> None:
    store.record(
        run(offer("0.0269", verdict=Verdict.REJECTED, reasons=("cents as dollars",), raw="2.69 c/h"))
    )
    found = only(store.rejected(provider=ACME))
    assert (found.verdict, found.reasons, found.raw) == (Verdict.REJECTED, ("cents as dollars",), "2.69 c/h")
    assert store.current_offers(provider=ACME) == []


def test_what_is_sold_out_ends_and_the_market_of_a_past_day_holds_what_could_be_had(store: Store) -> None:
    """In stock on days 0 and 1, sold out on 2 and 3, in stock again on 4; the price never moved."""
    stock = (True, None, False, False, True)
    for day, available in enumerate(stock):
        store.record(run(offer(at=MORNING + day * DAY, available=available)))
    assert lives(store) == [
        ("2.69", "verified", 0, 1, 2),
        ("2.69", "verified", 2, 3, 4),
        ("2.69", "verified", 4, 4, None),
    ]
    assert [one.closed_why for one in store.history(provider=ACME)] == ["sold out", "back", None]
    for day, available in enumerate(stock):
        (then,) = rates(store, MORNING + 5 * DAY, as_of=(MORNING + day * DAY).date())
        assert (then.available is False) is (available is False), day


def test_a_price_that_a_person_accepted_stays_accepted_when_it_is_sold_out(store: Store) -> None:
    store.record(run(waiting("9.00", available=True)))
    held = only(store.rejected(provider=ACME))
    store.decide(held.id, Decision.ACCEPT, reason="asked them", by="ann", now=MORNING)
    reasons = only(store.current_offers(provider=ACME)).reasons
    store.record(run(offer("9.00", at=MORNING + DAY, available=False)))
    assert only(store.current_offers(provider=ACME)).reasons == reasons


def test_a_vanished_offer_is_closed_and_stays_as_history(store: Store) -> None:
    store.record(run(offer(region="a"), offer(region="b")))
    store.record(run(offer(region="a", at=MORNING + DAY)))
    assert {(one.region, one.closed_why) for one in store.history(provider=ACME)} == {
        ("a", None),
        ("b", "vanished"),
    }
    store.record(run(offer(region="a", at=MORNING + 2 * DAY), offer(region="b", at=MORNING + 2 * DAY)))
    assert len(store.history(provider=ACME, region="b")) == 2
    assert len(store.current_offers(provider=ACME)) == 2


def test_a_truncated_answer_closes_nothing(store: Store) -> None:
    regions = [f"r{number}" for number in range(5)]
    store.record(run(*(offer(region=region) for region in regions)))
    report = store.record(run(*(offer(region=region, at=MORNING + DAY) for region in regions[:2])))
    assert len(store.current_offers(provider=ACME)) == 5
    assert report.notes == ("2 of 5 offers came again, so the others stay open",)


def test_a_page_that_was_not_read_closes_nothing_of_it(store: Store) -> None:
    metal = "https://acme.example/metal"
    store.record(run(offer(), offer(region="b", source_url=metal), offer(region="c", source_url=metal)))
    store.record(run(offer(at=MORNING + DAY)))
    assert len(store.current_offers(provider=ACME)) == 3


@pytest.mark.parametrize(
    ("before", "came", "closed"), [(10, 7, 3), (10, 6, 0), (2, 1, 1), (3, 1, 0), (4, 3, 1)]
)
def test_of_a_page_without_a_third_of_its_offers_nothing_is_closed(
    store: Store, before: int, came: int, closed: int
) -> None:
    store.record(run(*(offer(region=str(n)) for n in range(before))))
    report = store.record(run(*(offer(region=str(n), at=MORNING + DAY) for n in range(came))))
    assert report.closed == closed
    assert bool(report.notes) is not bool(closed)


def test_saved_answers_of_one_address_do_not_close_each_other(store: Store) -> None:
    store.record(run(offer(gpu="H100 SXM"), source="replay"))
    store.record(run(offer(gpu="B200", at=MORNING + DAY), source="replay"))
    assert len(store.current_offers(provider=ACME)) == 2


def test_a_failed_run_leaves_all_prices_as_they_are(store: Store) -> None:
    store.record(run(offer()))
    store.record(failed("HTTP 503 from acme.example; try again later", MORNING + DAY))
    assert lives(store) == [("2.69", "verified", 0, 0, None)]


def test_an_answer_replayed_late_becomes_history_only(store: Store) -> None:
    store.record(run(offer("2.69", at=MORNING + 2 * DAY)))
    store.record(run(offer("3.19"), source="replay"))
    store.record(run(offer("3.19"), source="replay"))
    assert lives(store) == [("3.19", "verified", 0, 0, 2), ("2.69", "verified", 2, 2, None)]
    assert [rate.usd_per_hour_text for rate in rates(store, MORNING + 2 * DAY)] == ["2.69"]
    assert [rate.usd_per_hour_text for rate in rates(store, as_of=MORNING + DAY)] == ["3.19"]


def test_the_same_offer_twice_in_one_answer_keeps_the_cheapest(store: Store) -> None:
    report = store.record(run(offer("3.00"), offer("2.50"), waiting("1.00")))
    assert report.duplicates == 2
    assert lives(store) == [("2.5", "verified", 0, 0, None)]


def test_a_price_abroad_moves_with_its_own_figure_not_with_the_rate(store: Store) -> None:
    euro = {"currency": "EUR", "price_original": Decimal("2.50")}
    store.record(run(offer("2.90", **euro)))
    store.record(run(offer("2.92", at=MORNING + DAY, **euro)))  # 0.7 % more by the rate alone
    assert lives(store) == [("2.9", "verified", 0, 1, None)]
    store.record(run(offer("2.95", at=MORNING + 2 * DAY, **euro)))  # 1.7 %
    assert lives(store) == [("2.9", "verified", 0, 1, 2), ("2.95", "verified", 2, 2, None)]


def test_series_are_kept_apart_by_all_that_makes_an_offer(store: Store) -> None:
    store.record(
        run(
            offer("1"),
            offer("2", tier=Tier.SPOT),
            offer("3", region="eu-west-1"),
            offer("4", gpu_count=2),
            offer("5", gpu_fraction=0.5),
            offer("6", instance_type="h100.1x-v2"),
            offer("7", tier=Tier.RESERVED_1Y, commitment_days=365),
            offer("8", gpu=None, gpu_raw="H100"),
        )
    )
    assert len(store.current_offers(provider=ACME)) == 8
    assert sorted(rate.usd_per_hour for rate in rates(store)) == [1, 2, 3, 4, 6, 7]


def test_a_witness_is_kept_apart_and_never_ranked(store: Store) -> None:
    said = offer("2.65", witness="gpuhunt")
    store.record(run(offer("2.69")))
    store.record(run(said, provider="gpuhunt"))
    assert [rate.usd_per_hour_text for rate in rates(store)] == ["2.69"]
    assert [price.usd_per_hour for price in store.known_prices(ACME)] == [Decimal("2.69")]
    assert [(price.witness, price.usd_per_hour) for price in store.witness_prices(ACME)] == [
        ("gpuhunt", Decimal("2.65"))
    ]


def test_what_a_price_is_worth_is_said_of_words_of_others_and_of_parts_too(store: Store) -> None:
    store.record(
        run(
            offer("2.69"),
            offer("1.35", instance_type="bare", gpu_only=True),
            offer("0.70", instance_type="slice", gpu_fraction=0.25),
            offer("2.50", instance_type="gone", available=False),
        )
    )
    store.record(run(offer("1.10", witness="skypilot"), provider="skypilot"))
    found = {one.usd_per_hour: one for one in store.current_offers(provider=ACME)}
    said = {f"{usd:.2f}": (one.standing(MORNING), one.why_never_ranked) for usd, one in found.items()}
    assert said == {
        "2.69": ("verified", None),
        "1.35": ("verified, GPU only", "CPU, memory and disk are billed beside it"),
        "0.70": ("verified", "a slice of a GPU"),
        "2.50": ("verified, sold out", None),
        "1.10": (
            "says skypilot",
            "skypilot says so of acme: a catalogue confirms prices and is none",
        ),
    }
    assert {one.said_by for one in found.values()} == {"acme", "acme, says skypilot"}
    documents = {f"{usd:.2f}": one.to_document(MORNING)["status"] for usd, one in found.items()}
    assert (documents["2.69"], documents["1.10"]) == ("verified", None)


# --- what counts today


def test_a_verified_price_is_fresh_then_stale_then_left_out(store: Store) -> None:
    store.record(run(offer()))
    statuses = {
        days: [rate.status for rate in rates(store, MORNING + days * DAY)] for days in (0, 2, 3, 14, 15)
    }
    assert statuses == {
        0: [PriceStatus.VERIFIED],
        2: [PriceStatus.VERIFIED],
        3: [PriceStatus.STALE],
        14: [PriceStatus.STALE],
        15: [],
    }
    assert store.left_out(MORNING + 15 * DAY, provider=ACME) == [
        ("acme: 1 price", "last seen 2026-11-30, over 14 days ago")
    ]
    assert [rate.age_hours for rate in rates(store, MORNING + 15 * DAY, max_age_days=20)] == [360.0]


def test_a_rate_carries_the_exact_price_its_age_and_its_source(store: Store) -> None:
    store.record(run(offer("11.96", gpu="B200", gpu_count=2, tier=Tier.COMMUNITY)))
    (rate,) = rates(store, MORNING + timedelta(hours=36))
    assert (rate.usd_per_hour, rate.usd_per_hour_text) == (11.96, "11.96")
    assert (rate.gpu, rate.gpu_count, rate.tier) == ("B200", 2, Tier.COMMUNITY)
    assert (rate.seen_at, rate.age_hours) == (MORNING, 36.0)
    assert rate.source_url == "https://acme.example/prices"
    assert rate.offer_id == only(store.current_offers(provider=ACME)).id


def test_the_bundled_prices_are_the_market_before_any_run(store: Store) -> None:
    found = store.rates(NOW)
    # 5,957 current rows less slices, gpu-only, ambiguous, witness and implausible ones.
    assert len(found) == 4679
    assert {rate.status for rate in found} == {PriceStatus.SNAPSHOT}
    assert found == sorted(found, key=lambda rate: rate.usd_per_hour)
    (cheapest,) = [r for r in found if (r.provider, r.gpu, r.gpu_count) == ("runpod", "B200", 2)]
    assert (cheapest.usd_per_hour_text, cheapest.tier, cheapest.provider_title) == (
        "11.96",
        "community",
        "RunPod",
    )
    assert f"{cheapest.seen_at:%Y-%m-%d}" == "2026-11-04"
    assert cheapest.deploy_url
    assert cheapest.deploy_url.startswith("https://")


def test_what_is_left_out_is_counted_with_its_reason(store: Store) -> None:
    found = dict(store.left_out(NOW))
    assert found["azure: 420 prices"] == "a slice of a GPU, not a whole one"
    assert found["cudo: 8 prices"] == "CPU, memory and disk are billed separately and are not in the price"
    assert found["shadeform: 17 prices"] == "a catalogue of others' prices: confirms, is never ranked"
    assert found["vastai of H200: 75 prices"] == (
        "ambiguous GPU name 'H200 141 GB': form not stated: H200 SXM or H200 NVL (both 141 GB)"
    )
    why = "bundled, but too far from the market or not what its source says"
    assert found["runpod: 1 price"] == found["vultr: 5 prices"] == why
    counted = sum(int(what.split(": ")[1].split()[0]) for what, _ in store.left_out(NOW))
    # Where a bundled price is held back and an older one of the same offer is sound, that one stands.
    ranked = {rate.offer_id for rate in store.rates(NOW)}
    held = [one for one in store.rejected() if one.id not in ranked]
    assert counted + len(store.rates(NOW)) == len(store.current_offers()) + len(held)


def test_what_is_held_back_of_the_bundled_prices_is_shown_and_can_be_accepted(store: Store) -> None:
    held = only(store.rejected(provider="runpod"))
    assert (held.gpu, held.tier, held.usd_per_hour) == ("Instinct MI300X", Tier.COMMUNITY, Decimal("0.5"))
    assert (held.origin, held.verdict, held.status(NOW)) == (Origin.SNAPSHOT, Verdict.QUARANTINED, None)
    assert "0.23 times the 2.19 that marketplaces ask" in held.reasons[0]
    assert held.id not in {one.id for one in store.current_offers()}
    assert held.id not in {rate.offer_id for rate in store.rates(NOW)}
    before = len(store.rates(NOW))
    store.decide(held.id, Decision.ACCEPT, reason="seen on the page", by="kim", now=NOW)
    assert store.rejected(provider="runpod") == []
    assert len(store.rates(NOW)) == before + 1  # and no other bundled price has gone


def test_a_bundled_price_is_told_from_one_that_a_run_verified(store: Store) -> None:
    store.record(run(offer("2.69", at=NOW)))
    documents = [one.to_document(NOW) for one in store.current_offers(provider=[ACME, "lambda"])]
    assert {(d["provider"], d.get("witness"), d["verdict"], d["status"]) for d in documents} == {
        (ACME, None, "verified", "verified"),
        ("lambda", None, "verified", "snapshot"),
        ("lambda", "shadeform", "verified", None),
    }


def test_a_waiting_price_without_a_verified_one_is_left_out_with_its_reason(store: Store) -> None:
    store.record(run(waiting("10.76")))
    assert store.left_out(MORNING, provider=ACME) == [
        ("acme: 1 price", "waits in quarantine until confirmed")
    ]


def test_a_refresh_supersedes_the_bundled_prices_of_that_provider(store: Store) -> None:
    others = len(store.rates(MORNING)) - len(store.rates(MORNING, provider="runpod"))
    store.record(run(offer(provider="runpod"), provider="runpod"))
    assert [(rate.status, rate.usd_per_hour_text) for rate in store.rates(MORNING, provider="runpod")] == [
        (PriceStatus.VERIFIED, "2.69")
    ]
    assert len(store.rates(MORNING)) == others + 1
    before = store.rates(MORNING, as_of=date(2026, 11, 29), provider="runpod")
    assert len(before) > 20
    assert {rate.status for rate in before} == {PriceStatus.SNAPSHOT}
    bundled = [one for one in store.history(provider="runpod") if one.origin == Origin.SNAPSHOT]
    assert len(bundled) == 460 + 1


def test_a_refresh_without_a_verified_price_leaves_the_bundled_ones(store: Store) -> None:
    before = store.rates(MORNING, provider="runpod")
    store.record(run(waiting("2.69", provider="runpod"), provider="runpod"))
    assert store.rates(MORNING, provider="runpod") == before


def test_an_old_saved_answer_leaves_newer_bundled_prices(store: Store) -> None:
    august = datetime(2026, 8, 22, tzinfo=UTC)
    saved = offer("9.99", provider="runpod", gpu="B200", gpu_count=2, tier=Tier.COMMUNITY, at=august)
    store.record(run(saved, provider="runpod", source="replay"))
    left = store.rates(MORNING, provider="runpod", gpus="B200")
    assert "11.96" in {rate.usd_per_hour_text for rate in left}


def test_the_market_of_a_past_day_is_told_from_the_bundled_dates(store: Store) -> None:
    def p5(day: date) -> list[str]:
        found = store.rates(NOW, as_of=day, provider="aws", gpus="H100 SXM")
        return sorted({r.usd_per_hour_text for r in found if r.region == "us-east-1" and r.gpu_count == 8})

    assert p5(date(2025, 4, 27)) == []
    assert "98.32" in p5(date(2025, 4, 28))
    assert p5(date(2026, 11, 30))[0] == "55.04"
    assert "98.32" not in p5(date(2026, 11, 30))
    old = store.rates(NOW, as_of=date(2025, 9, 1), provider="digitalocean", gpus="H100 SXM")
    assert [rate.usd_per_hour_text for rate in old] == ["23.92"]
    assert old[0].age_hours == pytest.approx(24 * 4)


def test_the_market_of_a_past_day_is_told_from_the_intervals(store: Store) -> None:
    store.record(run(offer("2.69")))
    store.record(run(offer("2.99", at=MORNING + 5 * DAY)))
    shown = {
        days: [rate.usd_per_hour_text for rate in rates(store, NOW, as_of=(MORNING + days * DAY).date())]
        for days in (-1, 0, 4, 5)
    }
    assert shown == {-1: [], 0: ["2.69"], 4: ["2.69"], 5: ["2.99"]}


# --- questions


def test_offers_are_found_by_every_filter(store: Store) -> None:
    store.record(
        run(
            offer("1", region="Washington, US", provider="vastai"),
            offer("2", region="DE", provider="vastai"),
            offer("3", region=None, provider="vastai", tier=Tier.SPOT, gpu="B200"),
            provider="vastai",
        )
    )

    def found(**filters: object) -> list[int]:
        return sorted(int(one.usd_per_hour) for one in store.current_offers(provider="vastai", **filters))  # type: ignore[arg-type]

    assert found() == [1, 2, 3]
    assert found(gpu="B200") == [3]
    assert found(gpu=["B200", "H100 SXM"]) == [1, 2, 3]
    assert found(tier="spot") == [3]
    assert found(region="us") == [1, 3]  # what is offered everywhere counts too
    assert found(region="Washington, US") == [1, 3]
    assert found(limit=2) == [1, 2] or len(found(limit=2)) == 2


def test_known_prices_are_the_last_of_each_series_and_what_waits_or_waited(store: Store) -> None:
    store.record(run(offer("2.69"), offer("5", region="b")))
    store.record(run(offer("2.79", at=MORNING + DAY), offer("5", region="b", at=MORNING + DAY)))
    store.record(run(waiting("10.76", at=MORNING + 2 * DAY)))
    store.record(run(waiting("11.00", at=MORNING + 3 * DAY)))
    known = store.known_prices(ACME)
    assert sorted((str(price.usd_per_hour.normalize()), str(price.verdict)) for price in known) == [
        ("10.76", "quarantined"),
        ("11", "quarantined"),
        ("2.69", "verified"),
        ("2.79", "verified"),
        ("5", "verified"),
    ]
    (price,) = [price for price in known if price.region == "b"]
    assert (price.times_seen, price.first_seen_at, price.origin) == (2, MORNING, Origin.REFRESH)
    assert price.series_id == offer("5", region="b").id


@pytest.mark.parametrize(
    ("provider", "tier", "expected"),
    [
        ("vastai", Tier.ON_DEMAND, [2.18, 2.19, 2.20, 2.21]),
        (ACME, Tier.SPOT, [2.18, 2.19, 2.20, 2.21]),
        (ACME, Tier.ON_DEMAND, [2 + (10 + day) / 100 for day in range(12)]),
    ],
)
def test_of_a_price_that_moves_every_day_the_last_ones_are_known_and_of_a_list_all_of_two_months(
    store: Store, provider: str, tier: Tier, expected: list[float]
) -> None:
    its: dict[str, Any] = {"provider": provider, "tier": tier}
    store.record(run(offer("1.00", at=MORNING - 61 * DAY, **its), provider=provider))
    for day in range(12):
        at = MORNING + (day - 11) * DAY
        store.record(run(offer(f"2.{10 + day}", at=at, **its), waiting("9", at=at, **its), provider=provider))
        store.record(run(waiting(f"9.{10 + day}", at=at + DAY / 2, **its), provider=provider))
    known = [one for one in store.known_prices(provider) if one.origin is Origin.REFRESH]
    verified = [price for price in known if price.verdict is Verdict.VERIFIED]
    assert sorted(float(price.usd_per_hour) for price in verified) == expected
    assert len(known) - len(verified) == 8


def test_a_page_that_was_replaced_is_known_as_long_as_it_is_served_again(store: Store) -> None:
    def served(*digests: str) -> None:
        for digest in digests:
            at = MORNING + len(days) * DAY
            days.append(digest)
            store.record(run(offer(at=at), page_digests={"prices": digest}))

    days: list[str] = []
    served("a", "a", "b")
    assert store.replaced_pages(ACME, {"prices": "a"}) == {"prices": MORNING + DAY}
    assert store.replaced_pages(ACME, {"prices": "b"}) == {}  # as in the last run
    assert store.replaced_pages(ACME, {"prices": "c", "more": "a"}) == {}
    served("a", "a")
    assert store.replaced_pages(ACME, {"prices": "a"}) == {"prices": MORNING + DAY}  # still the old one
    assert store.replaced_pages(ACME, {"prices": "b"}) == {"prices": MORNING + 2 * DAY}
    assert store.replaced_pages("other", {"prices": "b"}) == {}


def test_bundled_prices_are_remembered_after_a_refresh(store: Store) -> None:
    store.record(run(offer(provider="runpod"), provider="runpod"))
    known = store.known_prices("runpod")
    assert {price.origin for price in known} == {Origin.REFRESH, Origin.SNAPSHOT}
    assert len(store.known_prices()) > 6000


def test_the_revision_moves_with_every_write_only(store: Store) -> None:
    first = store.revision()
    store.rates(NOW)
    assert store.revision() == first
    store.record(run(offer()))
    assert store.revision() == first + 1
    store.record(failed("timeout", MORNING))
    assert store.revision() == first + 2


def test_statuses_tell_where_each_provider_stands(store: Store) -> None:
    store.record(run(offer(), offer(region="b"), waiting("9", region="c"), problems=problems(3)))
    store.record(failed("HTTP 503", MORNING + DAY))
    store.record(failed("HTTP 503 again", MORNING + 2 * DAY))
    by_name = {status.provider: status for status in store.statuses(MORNING + 2 * DAY)}
    acme = by_name[ACME]
    assert (acme.last_run_status, acme.last_run_reason) == (RunStatus.FAILED, "HTTP 503 again")
    assert (acme.last_success_at, acme.failures_since_success, acme.age_hours) == (MORNING, 2, 48.0)
    assert (acme.verified, acme.stale, acme.quarantined, acme.snapshot) == (2, 0, 1, 0)
    later = {status.provider: status for status in store.statuses(MORNING + 4 * DAY)}[ACME]
    assert (later.verified, later.stale) == (0, 2)
    runpod = by_name["runpod"]
    assert (runpod.last_run_at, runpod.verified, runpod.age_hours) == (None, 0, None)
    assert runpod.snapshot == 44
    assert runpod.snapshot_as_of == datetime(2026, 11, 9, tzinfo=UTC)
    assert acme.to_document()["last_success_at"] == "2026-11-30T03:07:00Z"


def test_statuses_go_by_the_time_of_a_run_and_not_by_the_order_of_recording(store: Store) -> None:
    at = MORNING + 3 * DAY
    store.record(run(offer(at=at)))
    store.record(failed("HTTP 503", MORNING + 2 * DAY))  # an older answer, replayed later
    store.record(run(offer("2.89", at=MORNING)))
    (acme,) = (status for status in store.statuses(at + DAY) if status.provider == ACME)
    assert (acme.last_run_at, acme.last_run_status, acme.last_success_at) == (at, RunStatus.OK, at)
    assert (acme.age_hours, acme.failures_since_success) == (24.0, 0)
    store.record(failed("HTTP 500", at + DAY))
    (acme,) = (status for status in store.statuses(at + DAY) if status.provider == ACME)
    assert (acme.last_run_reason, acme.last_success_at, acme.failures_since_success) == ("HTTP 500", at, 1)


def test_a_rate_tells_a_hosts_ask_from_a_list(store: Store) -> None:
    for provider in ("vastai", "runpod"):
        store.record(run(offer("2", provider=provider), provider=provider))
    found = {
        name: {one.is_ask for one in store.rates(MORNING, provider=name)} for name in ("vastai", "runpod")
    }
    assert found == {"vastai": {True}, "runpod": {False}}


def test_a_rate_tells_how_many_catalogues_agree(store: Store) -> None:
    store.record(run(offer("2.69", region=None), offer("9.00", region="x", gpu="B200")))
    for witness, changes in (
        ("gpuhunt", {"region": "us-east-1"}),
        ("gpuhunt", {"region": "us-west-1"}),  # one catalogue counts once
        ("skypilot", {"usd_per_hour": Decimal("2.90")}),  # 8 % off
        ("shadeform", {"usd_per_hour": Decimal("3.20")}),  # 19 % off
    ):
        said = offer("2.69", witness=witness, **changes)  # type: ignore[arg-type]
        store.record(run(said, provider=witness))
    for changes in ({"gpu": "B200", "region": "y"}, {"tier": Tier.SPOT}, {"gpu_count": 2}):
        store.record(run(offer("9.00", witness="another", **changes), provider="another"))  # type: ignore[arg-type]
    assert {rate.gpu: rate.witnesses for rate in rates(store)} == {"H100 SXM": 2, "B200": 0}


def test_a_catalogue_of_long_ago_agrees_with_nothing(store: Store) -> None:
    store.record(run(offer("2.69")))
    store.record(run(offer("2.69", witness="gpuhunt", at=MORNING - 91 * DAY), provider="gpuhunt"))
    assert [rate.witnesses for rate in rates(store)] == [0]
    store.record(run(offer("2.69", witness="gpuhunt", at=MORNING - 80 * DAY), provider="gpuhunt"))
    assert [rate.witnesses for rate in rates(store)] == [1]


# --- together


def test_a_reader_goes_on_while_a_run_is_written(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    from pricing.storage import writing

    store.record(run(offer("2.69")))
    is_inside, may_end, seen = threading.Event(), threading.Event(), []
    record = writing.record

    def slow(*arguments: object) -> object:
        report = record(*arguments)  # type: ignore[arg-type]
        is_inside.set()
        assert may_end.wait(20)
        return report

    monkeypatch.setattr(writing, "record", slow)
    writer = threading.Thread(target=store.record, args=[run(offer("2.99", at=MORNING + DAY))])
    writer.start()
    assert is_inside.wait(20)
    seen.append([rate.usd_per_hour_text for rate in rates(store, MORNING + DAY)])
    may_end.set()
    writer.join(20)
    seen.append([rate.usd_per_hour_text for rate in rates(store, MORNING + DAY)])
    assert seen == [["2.69"], ["2.99"]]


def test_writers_at_once_lose_nothing(database_url: str) -> None:
    errors = []

    def write(number: int) -> None:
        try:
            with Store.open(database_url, timeout_s=20) as store:
                name = f"acme-{number}"
                offers = [offer(provider=name, region=f"r{region}") for region in range(200)]
                store.record(run(*offers, provider=name))
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=write, args=[number]) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert errors == []
    with Store.open(database_url) as store:
        assert [len(store.current_offers(provider=f"acme-{number}")) for number in range(4)] == [200] * 4


def test_a_run_that_breaks_leaves_nothing_behind(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    from pricing.storage import writing

    def broken(*_: object) -> None:
        raise RuntimeError("pulled the plug")

    before = store.revision()
    monkeypatch.setattr(writing, "supersede_snapshot", broken)
    with pytest.raises(RuntimeError, match="pulled the plug"):
        store.record(run(offer()))
    assert store.history(provider=ACME) == []
    assert store.revision() == before
    assert ACME not in {status.provider for status in store.statuses(NOW)}


def test_a_trial_in_memory_has_the_bundled_prices_and_ends_with_it() -> None:
    with Store.in_memory() as store:
        assert len(store.rates(NOW)) == 4679
        store.record(run(offer()))
        assert len(store.rates(NOW)) == 4680
    with Store.open("sqlite://") as store:
        assert store.current_offers(provider=ACME) == []


def test_what_a_new_edition_of_a_catalogue_lacks_is_gone(store: Store) -> None:
    """gpuhunt names the day of each edition in its address; what it no longer lists confirms nothing."""

    def catalogue(day: int, *types: str) -> ProviderResult:
        url = f"https://catalogues.example/v3/aws/2026112{day}/catalog.zip"
        rows = [
            offer(
                provider="aws", witness="gpuhunt", instance_type=name, source_url=url, at=MORNING + day * DAY
            )
            for name in types
        ]
        return run(*rows, provider="gpuhunt")

    store.record(catalogue(0, "a", "b", "c", "d"))
    report = store.record(catalogue(1, "a", "b", "c"))
    assert (report.extended, report.closed, report.notes) == (3, 1, ())
    gone = [one for one in store.history(provider="aws") if one.closed_why == "vanished"]
    assert [one.instance_type for one in gone if one.witness] == ["d"]


def test_a_price_of_a_past_day_was_not_seen_after_it(store: Store) -> None:
    for day in (0, 2, 9):
        store.record(run(offer("2.69", at=MORNING + day * DAY)))
    then = MORNING + 2 * DAY
    (listed,) = store.current_offers(provider=ACME, as_of=then.date())
    (planned,) = store.rates(MORNING + 20 * DAY, as_of=then.date(), provider=ACME)
    end = datetime.combine(then.date(), time.max, tzinfo=UTC)
    assert listed.seen_at == planned.seen_at == end
    assert listed.status(end) == planned.status == PriceStatus.VERIFIED
    assert [one.seen_at for one in store.current_offers(provider=ACME)] == [MORNING + 9 * DAY]
