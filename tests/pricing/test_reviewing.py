"""What a person decides about a price, and what it does to plans at once and in later runs."""

from decimal import Decimal

import pytest

from planner.errors import UnknownName
from pricing.errors import UnclearDecision
from pricing.offer import Tier, Verdict
from pricing.storage.memory import ProviderResult
from pricing.store import Store
from pricing.verification.reviewing import Decision, Review
from tests.pricing.samples import ACME, DAY, MORNING, offer, run, waiting


def decide(
    store: Store,
    what: str,
    offer_id: str | None = None,
    reason: str = "seen on the page",
    price: str | None = None,
) -> Review:
    found, usd = offer_id or offer().id, None if price is None else Decimal(price)
    return store.decide(found, Decision(what), reason=reason, by="kim", now=MORNING + 2 * DAY, price=usd)


def prices(store: Store, day: int = 2) -> list[str]:
    return [rate.usd_per_hour_text for rate in store.rates(MORNING + day * DAY, provider=ACME)]


@pytest.fixture
def doubted(store: Store) -> Store:
    """A verified price of 2.69, and since the next day one of 10.76 in quarantine."""
    store.record(run(offer("2.69")))
    store.record(run(waiting("10.76", at=MORNING + DAY)))
    return store


def test_an_accepted_price_counts_at_once_and_from_when_it_was_first_seen(doubted: Store) -> None:
    assert prices(doubted) == ["2.69"]
    before = doubted.revision()
    review = decide(doubted, "accept")
    assert prices(doubted) == ["10.76"]
    assert doubted.rejected(provider=ACME) == []
    assert doubted.revision() > before  # what pages hold is old now
    old, new = doubted.history(provider=ACME)
    assert (old.closed_at, old.closed_why, review.replaced_price_id) == (
        MORNING + DAY,
        "changed",
        old.price_id,
    )
    assert new.reasons == (
        "a jump of 300 % against its own last price",
        "accepted by kim on 2026-12-02: seen on the page",
    )
    assert (new.verdict, new.first_seen_at) == (Verdict.VERIFIED, MORNING + DAY)


def test_an_accepted_price_takes_the_place_of_the_bundled_ones_of_the_same_offer(store: Store) -> None:
    held = waiting("3.49", provider="runpod", tier=Tier.SECURE, region=None)
    store.record(run(held, provider="runpod"))

    def secure(gpu: str) -> list[str]:
        found = store.rates(MORNING, provider="runpod", gpus=gpu)
        return [rate.usd_per_hour_text for rate in found if (rate.tier, rate.gpu_count) == (Tier.SECURE, 1)]

    assert secure("H100 SXM") == ["3.99"]
    others = secure("B200")
    decide(store, "accept", held.id)
    assert secure("H100 SXM") == ["3.49"]
    assert secure("B200") == others == ["6.79"]


def test_a_rejected_price_is_held_back_and_the_verified_one_stays(doubted: Store) -> None:
    decide(doubted, "reject", reason="a term total")
    assert prices(doubted) == ["2.69"]
    (held,) = doubted.rejected(provider=ACME)
    assert held.verdict == Verdict.REJECTED
    assert held.reasons[-1] == "rejected by kim on 2026-12-02: a term total"
    assert doubted.rates(MORNING + 2 * DAY, provider=ACME)[0].note is None


@pytest.mark.parametrize("verdict", [Verdict.QUARANTINED, Verdict.VERIFIED])
def test_a_rejection_holds_as_long_as_the_provider_shows_the_price(doubted: Store, verdict: Verdict) -> None:
    decide(doubted, "reject")
    for day in (3, 4):
        doubted.record(run(offer("10.76", at=MORNING + day * DAY, verdict=verdict)))
    assert prices(doubted, 4) == ["2.69"]
    (held,) = doubted.rejected(provider=ACME)
    assert (held.usd_per_hour, held.seen_at) == (Decimal("10.76"), MORNING + 4 * DAY)


def test_another_price_ends_a_rejection(doubted: Store) -> None:
    decide(doubted, "reject")
    doubted.record(run(offer("2.89", at=MORNING + 3 * DAY)))
    assert prices(doubted, 3) == ["2.89"]
    assert doubted.rejected(provider=ACME) == []


def test_rejecting_a_verified_price_brings_back_the_one_it_replaced(store: Store) -> None:
    store.record(run(offer("2.69")))
    store.record(run(offer("0.27", at=MORNING + DAY)))
    review = decide(store, "reject", reason="cents lost")
    assert prices(store) == ["2.69"]
    (back,) = store.current_offers(provider=ACME)
    assert (back.price_id, back.closed_at, back.seen_at) == (review.replaced_price_id, None, MORNING)


def test_rejecting_the_only_price_leaves_none(store: Store) -> None:
    store.record(run(offer("2.69")))
    assert decide(store, "reject").replaced_price_id is None
    assert prices(store) == []
    assert decide(store, "accept").decision is Decision.ACCEPT
    assert prices(store) == ["2.69"]


def test_the_beginning_of_an_identifier_is_enough(doubted: Store) -> None:
    assert decide(doubted, "accept", offer().id[:6].upper()).offer_id == offer().id


@pytest.mark.parametrize(
    ("what", "offer_id", "message"),
    [
        ("accept", "nothing-like-it", "unknown offer 'nothing-like-it'"),
        ("accept", "abc", "unknown offer 'abc'"),  # too short for a beginning
    ],
)
def test_an_unknown_offer_is_refused(doubted: Store, what: str, offer_id: str, message: str) -> None:
    with pytest.raises(UnknownName, match=message):
        decide(doubted, what, offer_id)


def test_an_almost_right_identifier_is_answered_with_the_close_one(doubted: Store) -> None:
    name = offer().id
    with pytest.raises(UnknownName, match=f"close matches: {name}"):
        decide(doubted, "accept", name[:-1] + ("0" if name[-1] != "0" else "1"))


def test_a_price_of_a_gpu_that_is_not_known_can_be_accepted_by_nobody(store: Store) -> None:
    one = waiting("12.29", gpu=None, gpu_raw="A100")
    store.record(run(one))
    with pytest.raises(UnknownName, match="names no GPU that is known, only 'A100'"):
        decide(store, "accept", one.id)
    assert [held.verdict for held in store.rejected(provider=ACME)] == [Verdict.QUARANTINED]
    decide(store, "reject", one.id)
    assert [held.verdict for held in store.rejected(provider=ACME)] == [Verdict.REJECTED]


def test_what_is_decided_already_is_said(doubted: Store) -> None:
    decide(doubted, "accept")
    with pytest.raises(UnknownName, match="is verified already; there is nothing to accept"):
        decide(doubted, "accept")


@pytest.fixture
def mistaken(doubted: Store) -> Store:
    """10.76 was accepted by mistake; since the next day the page says 2.69 again, which waits."""
    decide(doubted, "accept")
    doubted.record(run(waiting("2.69", at=MORNING + 3 * DAY)))
    return doubted


def test_an_acceptance_is_taken_back_by_its_price(mistaken: Store) -> None:
    review = decide(mistaken, "reject", price="10.76")
    first, wrong, waits = mistaken.history(provider=ACME)
    assert review.replaced_price_id == first.price_id
    assert prices(mistaken, 3) == ["2.69"]
    assert (first.closed_at, first.verdict) == (None, Verdict.VERIFIED)
    assert (wrong.verdict, wrong.closed_why) == (Verdict.REJECTED, "changed")
    assert (waits.closed_at, waits.verdict) == (None, Verdict.QUARANTINED)
    mistaken.record(run(offer("2.69", at=MORNING + 4 * DAY)))  # the next run knows the price
    assert prices(mistaken, 4) == ["2.69"]
    assert mistaken.rejected(provider=ACME) == []
    assert [one.usd_per_hour for one in mistaken.current_offers(provider=ACME)] == [Decimal("2.69")]


def test_rejecting_where_an_accepted_and_a_waiting_price_may_be_meant_is_refused(mistaken: Store) -> None:
    both = r"two prices, 10\.76 USD/h \(accepted, in force\) and 2\.69 USD/h \(waits\).* --price 10\.76"
    with pytest.raises(UnclearDecision, match=both):
        decide(mistaken, "reject")
    assert prices(mistaken, 3) == ["10.76"]
    decide(mistaken, "reject", price="2.69")
    assert prices(mistaken, 3) == ["10.76"]
    assert [held.verdict for held in mistaken.rejected(provider=ACME)] == [Verdict.REJECTED]


def test_the_price_in_force_is_not_rejected_by_saying_the_same_twice(doubted: Store) -> None:
    decide(doubted, "reject")
    with pytest.raises(UnclearDecision, match="--price"):
        decide(doubted, "reject")
    assert prices(doubted) == ["2.69"]


@pytest.mark.parametrize("what", ["accept", "reject"])
def test_a_price_that_the_offer_does_not_have_is_refused(doubted: Store, what: str) -> None:
    with pytest.raises(UnclearDecision, match=rf"no price of 9.99 USD/h to {what}.*in force.*waits"):
        decide(doubted, what, price="9.99")
    with pytest.raises(UnknownName, match="unknown offer"):
        decide(doubted, what, "nothing-like-it", price="9.99")


def test_accepting_the_price_in_force_is_said_to_be_needless(doubted: Store) -> None:
    with pytest.raises(UnknownName, match=r"at 2\.69 USD/h is verified already"):
        decide(doubted, "accept", price="2.69")
    assert decide(doubted, "accept", price="10.760").decision is Decision.ACCEPT


def test_a_bundled_price_is_back_where_the_accepted_one_that_took_its_place_is_rejected(store: Store) -> None:
    held = waiting("3.49", provider="runpod", tier=Tier.SECURE, region=None)
    store.record(run(held, provider="runpod"))

    def bundled() -> list[tuple[object, ...]]:
        found = store.rates(MORNING, provider="runpod")
        return sorted((rate.gpu, rate.gpu_count, rate.tier, rate.usd_per_hour_text) for rate in found)

    before = bundled()
    decide(store, "accept", held.id)
    assert bundled() != before
    decide(store, "reject", held.id, price="3.49")
    assert bundled() == before


def test_several_offers_are_decided_or_none(doubted: Store) -> None:
    chosen = [(offer().id, None), ("nothing-like-it", None)]
    with pytest.raises(UnknownName, match="nothing-like-it"):
        doubted.decide_all(chosen, Decision.ACCEPT, reason="seen", by="kim", now=MORNING + 2 * DAY)
    assert prices(doubted) == ["2.69"]
    assert [held.verdict for held in doubted.rejected(provider=ACME)] == [Verdict.QUARANTINED]


def euros(usd: str, original: str, day: int) -> ProviderResult:
    return run(offer(usd, at=MORNING + day * DAY, currency="EUR", price_original=Decimal(original)))


def test_a_rejected_price_in_euros_stays_out_while_its_rate_moves(store: Store) -> None:
    # 2.50 EUR at 1.16; 3.30 EUR at 1.16, then at 1.18 and 1.22: 1.7 and 5.2 % more in dollars.
    store.record(euros("2.90", "2.50", 0))
    store.record(euros("3.828", "3.30", 1))
    decide(store, "reject")
    for usd, day in (("3.828", 2), ("3.894", 5), ("4.026", 12)):
        store.record(euros(usd, "3.30", day))
        assert prices(store, day) == ["2.90"]
    # A dollar at 1.45 was no rate: the figure in euros says nothing of what was rejected.
    store.record(euros("4.785", "3.30", 13))
    assert prices(store, 13) == ["4.785"]


def test_to_reject_a_price_in_euros_brings_none_back_that_is_the_same_in_euros(store: Store) -> None:
    store.record(euros("2.90", "2.50", 0))
    for usd, day in (("3.828", 1), ("3.894", 5), ("3.96", 9)):  # 3.30 EUR at 1.16, 1.18 and 1.20
        store.record(euros(usd, "3.30", day))
    review = decide(store, "reject")
    assert prices(store, 9) == ["2.90"]
    assert review.replaced_price_id == next(
        one.price_id for one in store.history(provider=ACME) if one.usd_per_hour == Decimal("2.90")
    )
    verified = [one.usd_per_hour for one in store.known_prices(ACME) if one.verdict is Verdict.VERIFIED]
    assert verified == [Decimal("2.90")]  # nothing else is remembered as its own price
