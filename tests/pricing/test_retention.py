"""What is removed with time, and what never is."""

from datetime import timedelta

from pricing.store import Store
from pricing.verification.reviewing import Decision
from tests.pricing.samples import ACME, DAY, MORNING, offer, run, waiting

LATER = MORNING + 400 * DAY


def kept(store: Store) -> list[tuple[str, str]]:
    return [(f"{one.usd_per_hour:.2f}", str(one.verdict)) for one in store.history(provider=ACME)]


def test_ended_prices_go_and_the_last_one_of_an_offer_stays(store: Store) -> None:
    for day, usd in enumerate(("1.00", "2.00", "3.00")):
        store.record(run(offer(usd, at=MORNING + day * DAY), offer("5", region="b", at=MORNING + day * DAY)))
    store.record(run(offer("5", region="b", at=MORNING + 3 * DAY)))  # the first one has vanished
    bundled = len(store.history()) - len(store.history(provider=ACME))
    assert store.remove_ended(LATER) == 2
    assert kept(store) == [("5.00", "verified"), ("3.00", "verified")]
    assert store.remove_ended(LATER) == 0
    assert len(store.history()) - 2 == bundled  # bundled prices are none of the user's


def test_what_ended_lately_stays(store: Store) -> None:
    store.record(run(offer("1.00")))
    store.record(run(offer("2.00", at=MORNING + DAY)))
    assert store.remove_ended(MORNING + DAY) == 0
    assert store.remove_ended(MORNING + DAY + timedelta(seconds=1)) == 1


def test_the_last_verified_price_outlives_later_ones_that_were_held_back(store: Store) -> None:
    store.record(run(offer("1.00")))
    store.record(run(offer("9.00", region="b", at=MORNING + DAY)))  # the first one has vanished
    store.record(run(waiting("3.00", at=MORNING + 2 * DAY), offer("9.00", region="b", at=MORNING + 2 * DAY)))
    store.remove_ended(LATER)
    assert ("1.00", "verified") in kept(store)


def test_what_a_person_decided_is_kept(store: Store) -> None:
    store.record(run(waiting("1.00")))
    store.decide(offer().id, Decision.REJECT, reason="cents", by="kim", now=MORNING)
    store.record(run(offer("2.00", at=MORNING + DAY)))
    assert store.remove_ended(LATER) == 0
    assert kept(store) == [("1.00", "rejected"), ("2.00", "verified")]


def test_old_runs_go_and_the_last_of_each_provider_stays(store: Store) -> None:
    for day in range(3):
        store.record(run(offer(at=MORNING + day * DAY)))
    store.remove_ended(LATER)
    (status,) = [one for one in store.statuses(LATER) if one.provider == ACME]
    assert status.last_success_at == MORNING + 2 * DAY
    # The price that the removed runs saw is whole.
    assert kept(store) == [("2.69", "verified")]
