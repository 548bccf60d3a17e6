"""What a plan reads is the cheapest of each machine, and the plan is the same as from all prices."""

import dataclasses
import random
from collections import defaultdict
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from planner.compare import plan
from planner.rates import Rate
from planner.scenario import Scenario
from pricing.offer import Billing, Offer, Tier
from pricing.storage.stored import PRICE_FIELDS, SERIES_FIELDS, StoredOffer
from pricing.store import Store
from tests.pricing.samples import offer, run

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
DAY = timedelta(days=1)


def market(seed: int) -> list[list[Offer]]:
    """Three runs with many equal prices: in other regions, sold out, with a cap, seen on other days."""
    draw = random.Random(seed)
    runs = []
    for days in (3, 1, 0):
        at = NOW - days * DAY
        found: dict[str, Offer] = {}
        for _ in range(120):
            gpu, gpu_raw = draw.choice([("H100 SXM", "H100"), ("B200", "B200"), ("L40S", "L40S")])
            count = draw.choice([1, 2, 8])
            usd = str(draw.choice([2, 2, 3]) * count)
            one = offer(
                usd,
                at=at,
                gpu=gpu,
                gpu_raw=gpu_raw,
                gpu_count=count,
                form=None,
                instance_type=f"{gpu}.{count}x.{draw.randrange(3)}",
                region=f"region-{draw.randrange(6)}",
                tier=draw.choice([Tier.ON_DEMAND, Tier.SPOT]),
                billing=draw.choice([Billing.HOURLY, Billing.PER_SECOND, None]),
                available=draw.choice([True, None, None, False]),
                usd_per_month_cap=draw.choice([None, None, Decimal(usd) * 500]),
                provider=draw.choice(["acme", "ajax"]),
            )
            found.setdefault(one.id, one)
        runs.append(list(found.values()))
    return runs


def fill(store: Store, seed: int) -> None:
    for offers in market(seed):
        for provider in ("acme", "ajax"):
            some = [one for one in offers if one.provider == provider]
            # Half of a run, so that the prices of the run before stay open beside those of this one.
            store.record(run(*some, provider=provider, missing=("https://acme.example/prices",)))


def machine(rate: Rate, *, by_region: bool) -> tuple[Any, ...]:
    place = (rate.region,) if by_region else ()
    terms = (rate.tier, rate.billing, rate.usd_per_month_cap)
    return (rate.provider, rate.gpu, rate.gpu_count, *terms, *place)


def order(rate: Rate) -> tuple[Any, ...]:
    return (rate.usd_per_hour, -rate.seen_at.timestamp(), rate.offer_id)


@pytest.mark.parametrize("by_region", [False, True])
def test_the_cheapest_of_each_machine_is_there_and_every_sold_out_one(store: Store, by_region: bool) -> None:
    fill(store, seed=7)
    names = ["acme", "ajax"]
    of_all: dict[tuple[Any, ...], list[Rate]] = defaultdict(list)
    sold_out = set()
    for rate in store.rates(NOW, provider=names):
        if rate.available is False:
            sold_out.add(rate)
        else:
            of_all[machine(rate, by_region=by_region)].append(rate)
    assert sold_out
    assert max(map(len, of_all.values())) > 1
    assert len({rate.seen_at for rates in of_all.values() for rate in rates}) > 1
    found = store.rates(NOW, provider=names, cheapest=True, by_region=by_region)
    assert {min(rates, key=order) for rates in of_all.values()} <= set(found)
    assert sold_out <= set(found)
    assert set(found) <= {rate for rates in of_all.values() for rate in rates} | sold_out
    assert by_region or len(found) < sum(map(len, of_all.values())) + len(sold_out)


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("region", [(), ("region-2",)])
def test_a_plan_of_the_cheapest_is_the_plan_of_all(store: Store, seed: int, region: tuple[str, ...]) -> None:
    fill(store, seed)
    scenario = Scenario(model="qwen3.5-35b-a3b", provider=("acme", "ajax"), region=region)
    names = ["acme", "ajax"]
    whole = plan(scenario, store.rates(NOW, provider=names)).to_document()
    quick = plan(scenario, store.rates(NOW, provider=names, cheapest=True, by_region=bool(region)))
    assert whole["options"]
    assert quick.to_document()["options"] == whole["options"]


def test_the_fast_way_sets_every_field_once() -> None:
    assert len(SERIES_FIELDS) + len(PRICE_FIELDS) == len({*SERIES_FIELDS, *PRICE_FIELDS})
    assert {*SERIES_FIELDS, *PRICE_FIELDS} == {field.name for field in dataclasses.fields(StoredOffer)}


def test_a_stored_offer_is_what_was_recorded(store: Store) -> None:
    one = offer(
        "3.5",
        at=NOW,
        usd_per_month_cap=Decimal("2000"),
        currency="EUR",
        price_original=Decimal("3.1"),
        fx_date="2026-11-27",
        billing=Billing.PER_MINUTE,
        available=False,
        vcpus=16.0,
        ram_gb=200.0,
        raw="3.10 EUR",
    )
    store.record(run(one))
    (found,) = store.current_offers(provider="acme")
    assert {name: getattr(found, name) for name in Offer.__slots__} == {
        name: getattr(one, name) for name in Offer.__slots__
    }
    assert (found.first_seen_at, found.closed_at, found.times_seen) == (NOW, None, 1)
    twin = StoredOffer(**{field.name: getattr(found, field.name) for field in dataclasses.fields(found)})
    assert twin == found
    assert hash(twin) == hash(found)
