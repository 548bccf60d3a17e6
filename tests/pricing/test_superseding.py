"""When a bundled price gives way: once the same offer is verified, or is gone from a whole answer."""

from datetime import datetime
from typing import Any

import pytest

from pricing.offer import Offer, Tier, decimal_text
from pricing.storage.memory import Origin
from pricing.store import Store
from tests.conftest import NOW
from tests.pricing.samples import DAY, MORNING, offer, run, waiting


def secure(usd: str, *, at: datetime = MORNING, **changes: Any) -> Offer:
    return offer(usd, at=at, provider="runpod", region=None, tier=Tier.SECURE, **changes)


def h100(store: Store, day: int = 0) -> list[tuple[str, str, str | None]]:
    found = store.rates(MORNING + day * DAY, provider="runpod", gpus="H100 SXM")
    of_one = [one for one in found if (one.gpu_count, one.tier) == (1, Tier.SECURE)]
    return [(one.usd_per_hour_text, str(one.status), one.note) for one in of_one]


def test_a_bundled_price_stays_in_force_while_the_new_one_waits_and_plans_say_so(store: Store) -> None:
    held = waiting("6.40", provider="runpod", region=None, tier=Tier.SECURE, reasons=("doubled",))
    store.record(run(held, secure("6.79", gpu="B200"), provider="runpod"))
    note = "a newer price, 6.40 USD/h seen on 2026-11-30, waits in quarantine: doubled"
    assert h100(store) == [("3.99", "snapshot", note)]
    shown = store.current_offers(provider="runpod", gpu="H100 SXM", tier="secure")
    assert [(decimal_text(one.usd_per_hour), one.origin) for one in shown] == [("3.99", Origin.SNAPSHOT)]
    again = secure("6.40", at=MORNING + DAY)
    store.record(run(again, secure("6.79", gpu="B200", at=MORNING + DAY), provider="runpod"))
    assert h100(store, 1) == [("6.40", "verified", None)]
    # It counts from when it was first seen, and the bundled one ended then: never two at once.
    then = store.rates(NOW, as_of=MORNING, provider="runpod", gpus="H100 SXM")
    assert [one.usd_per_hour_text for one in then if (one.gpu_count, one.tier) == (1, Tier.SECURE)] == [
        "6.40"
    ]


def test_a_listed_price_at_twice_the_bundled_one_hides_it_only_once_it_has_stood_for_a_week(
    store: Store,
) -> None:
    """Whichever of the two is wrong can be seen and put right."""
    for day in range(8):
        store.record(run(secure("8.40", at=MORNING + day * DAY), provider="runpod"))
        shown = [(usd, status) for usd, status, _ in h100(store, day)]
        both = [("3.99", "snapshot"), ("8.40", "verified")]
        assert shown == (both if day < 7 else both[1:]), day


@pytest.mark.parametrize(
    ("said", "stays"),
    [
        ("accepted by ada on 2026-11-30: see their page", False),
        ("2.10 times its own last price: not yet accepted by anybody", True),
    ],
)
def test_only_the_word_of_a_person_lets_it_hide_the_bundled_one_at_once(
    store: Store, said: str, stays: bool
) -> None:
    far = "2.11 times its own last price (3.99 USD on 2026-08-01): no posted price ever moved so far"
    store.record(run(secure("8.40", reasons=(far, said)), provider="runpod"))
    assert [usd for usd, _, _ in h100(store)] == (["3.99"] if stays else []) + ["8.40"]


def test_a_bundled_price_of_another_spelling_of_the_place_gives_way_too(store: Store) -> None:
    # Bundled: "EU (Nordic)" of August; the interface says FIN-01.
    taken = offer("3.10", provider="verda", region="FIN-01")
    store.record(run(taken, provider="verda"))
    found = store.rates(MORNING, provider="verda", gpus="H100 SXM")
    assert [one.usd_per_hour_text for one in found if (one.gpu_count, one.tier) == (1, "on_demand")] == [
        "3.10"
    ]


def l4(store: Store, region: str) -> dict[str, str]:
    """The cheapest names of AWS's single L4 in a region: status and price."""
    found = store.rates(MORNING, provider="aws", gpus="L4")
    return {
        one.instance_type: f"{one.status} {one.usd_per_hour_text}"
        for one in found
        if (one.gpu_count, one.tier, one.region) == (1, "on_demand", region)
        and one.instance_type in ("g6.xlarge", "g6.2xlarge")
    }


def test_an_instance_or_place_that_the_run_names_is_no_other_spelling(store: Store) -> None:
    gov = {"g6.xlarge": "snapshot 1.0144", "g6.2xlarge": "snapshot 1.2322"}
    east = {"g6.xlarge": "snapshot 0.8048", "g6.2xlarge": "snapshot 0.9776"}
    assert (l4(store, "us-gov-east-1"), l4(store, "us-east-1")) == (gov, east)
    one = {"provider": "aws", "gpu": "L4", "instance_type": "g6.xlarge"}
    two = one | {"instance_type": "g6.2xlarge"}
    rows = [
        offer("0.80", **one),
        waiting("1.9", **two),
        waiting("1.9", region="us-gov-east-1", **one),
        offer("1.23", region="us-gov-east-1", **two),
    ]
    store.record(run(*rows, provider="aws"))
    assert l4(store, "us-east-1") == {"g6.xlarge": "verified 0.80", "g6.2xlarge": "snapshot 0.9776"}
    assert l4(store, "us-gov-east-1") == {"g6.xlarge": "snapshot 1.0144", "g6.2xlarge": "verified 1.23"}
    assert l4(store, "us-gov-west-1") == {}  # a place that the run does not name may be any of these
    notes = {
        one.usd_per_hour_text: (one.note or "").partition(" USD/h")[0]
        for one in store.rates(MORNING, provider="aws", gpus="L4")
        if (one.gpu_count, one.tier) == (1, "on_demand")
    }
    assert notes["1.0144"] == notes["0.9776"] == "a newer price, 1.90"
    assert notes["0.80"] == ""


def test_a_part_of_an_answer_ends_no_bundled_price_of_other_offers(store: Store) -> None:
    bundled = store.rates(MORNING, provider="runpod", gpus="B200")
    missing = ("https://acme.example/more",)
    store.record(run(secure("3.99"), provider="runpod", missing=missing))
    assert h100(store) == [("3.99", "verified", None)]
    assert store.rates(MORNING, provider="runpod", gpus="B200") == bundled
    store.record(run(secure("3.99", at=MORNING + DAY), provider="runpod"))
    assert store.rates(MORNING + DAY, provider="runpod", gpus="B200") == []
    then = store.history(provider="runpod", gpu="B200", since=bundled[0].seen_at)
    assert MORNING + DAY in {one.closed_at for one in then if one.closed_why == "vanished"}
