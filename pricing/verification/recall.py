"""What a provider's own earlier prices say of a new one, at the nearest level that exists."""

import math
import statistics
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal
from typing import NamedTuple

from pricing.offer import Offer, Verdict
from pricing.storage.memory import KnownPrice, Origin
from pricing.verification.alike import (
    LEVELS,
    SAME_SHARE,
    Key,
    device_of,
    is_beside,
    is_leap,
    is_same,
    level_key,
    machine_of,
    place_of,
    plain_name,
    series_of,
)
from pricing.verification.limits import LATELY, LEAP_WITHIN, LONG_SPAN, MEND_STOOD, MEND_WITHIN
from pricing.verification.market import WINDOW, usd_per_whole_gpu

# A second sight counts only after this time: a disturbance may last for hours, and a page is kept for hours
# by those between it and us. Source: own choice.
INDEPENDENT_AFTER = timedelta(hours=12)
# How the reason begins that a person's word leaves on a price.
ACCEPTED = "accepted by "


@dataclass(frozen=True, slots=True, kw_only=True)
class Recollection:
    """The earlier price that a new one is compared with."""

    level: int  # 1: this very offer .. 4: the same GPU in other sizes
    what: str  # for people
    usd_per_gpu_hour: float
    usd_per_hour: float  # of an instance of this size
    seen_at: datetime
    is_collected: bool  # bundled: own runs have not known anything there for days
    span: tuple[float, float]  # the cheapest and the dearest behind the middle [USD/GPU-hour]
    is_asked: bool  # somewhere: no middle between two prices that differ


class Sightings(NamedTuple):
    """How often a price was seen that waits."""

    runs: int
    span: timedelta


class Memory:
    """
    The known prices of one provider.

    Args:
        known: Prices of any providers; those of others and of witnesses are left out.
        provider: Whose.
        before: Nothing that was first seen later is remembered: for saved answers replayed late.
        is_plausible: Whether a bundled price may be leant on; those that people collected hold mistakes too.
        is_of_asks: Whether each price is what another host asks, wherever that stands.
    """

    def __init__(
        self,
        known: Iterable[KnownPrice],
        provider: str,
        before: datetime,
        is_plausible: Callable[[KnownPrice], bool] = lambda price: True,
        *,
        is_of_asks: bool = False,
    ) -> None:
        self._verified: dict[Key, dict[Key, KnownPrice]] = defaultdict(dict)
        self._waiting: dict[Key, list[KnownPrice]] = defaultdict(list)
        self._counts: dict[str, set[int]] = defaultdict(set)
        self._bundled: dict[Key, list[KnownPrice]] = defaultdict(list)
        self._collected: set[Key] = set()
        self._stood: dict[Key, list[KnownPrice]] = defaultdict(list)
        self._accepted: dict[Key, KnownPrice] = {}
        self._middles: dict[Key, tuple[_Middle, bool]] = {}
        self.provider = provider
        self._before = before
        self._by_place = not is_of_asks
        for price in known:
            if price.provider != provider or price.witness is not None or price.first_seen_at > before:
                continue
            if price.gpu is None or price.usd_per_hour <= 0:
                continue
            if price.verdict == Verdict.QUARANTINED:
                if price.origin == Origin.SNAPSHOT:
                    continue  # what the collection holds back confirms nothing
                self._waiting[series_of(price)].append(price)
            elif price.verdict == Verdict.VERIFIED and (
                price.origin != Origin.SNAPSHOT or is_plausible(price)
            ):
                self._remember(price)

    def _remember(self, price: KnownPrice) -> None:
        self._counts[plain_name(price.instance_type)].add(price.gpu_count)
        own = series_of(price)
        if price.origin == Origin.SNAPSHOT:
            self._bundled[machine_of(price)].append(price)
            self._collected.add(device_of(price))
        else:
            self._stood[own].append(price)
        if is_accepted(price.reasons) and (
            own not in self._accepted or _is_newer(price, self._accepted[own])
        ):
            self._accepted[own] = price
        for number in range(1, len(LEVELS) + 1):
            of_level = self._verified[level_key(number, price)]
            before = of_level.get(own)
            if before is None or _is_newer(price, before):
                of_level[own] = price if before is None else _since(price, before)

    def nearest(self, offer: Offer) -> Recollection | None:
        """Return what is remembered at the first level that exists."""
        for number in range(1, len(LEVELS) + 1):
            found = self.at_level(offer, number)
            if found is not None:
                return found
        return None

    def at_level(self, offer: Offer, number: int) -> Recollection | None:
        """
        Return what is remembered at one level: the middle of the newest price of each series.

        On a list of the same GPUs under another name those in the same place, where there are any.
        """
        key = level_key(number, offer)
        if key not in self._verified:
            return None
        is_by_place = number == 3 and self._by_place
        here = (*key, place_of(offer)) if is_by_place else key
        if here not in self._middles:
            prices: Collection[KnownPrice] = self._verified[key].values()
            if is_by_place:
                prices = [price for price in prices if is_beside(price, offer)] or prices
            self._middles[here] = _middle(prices), self._is_collected(number, offer, prices)
        middle, is_collected = self._middles[here]
        return Recollection(
            level=number,
            what=LEVELS[number - 1][0],
            usd_per_gpu_hour=middle.usd,
            usd_per_hour=middle.usd * offer.gpu_count * (offer.gpu_fraction or 1.0),
            seen_at=middle.seen_at,
            is_collected=is_collected,
            span=middle.span,
            is_asked=middle.is_asked,
        )

    def shows(self, offer: Offer, known: Recollection) -> bool:
        """Whether a late price of that level is this one, per GPU, or a later one of these GPUs there."""
        of_level, of_gpus = (
            self._verified.get(level_key(number, offer), {}).values() for number in (known.level, 3)
        )
        late = [one for one in of_level if one.last_seen_at >= known.seen_at - LATELY]
        late += [one for one in of_gpus if one.last_seen_at >= known.seen_at and is_beside(one, offer)]
        return any(is_same(usd_per_whole_gpu(offer), usd_per_whole_gpu(price)) for price in late)

    def _is_collected(self, number: int, offer: Offer, prices: Collection[KnownPrice]) -> bool:
        """Whether only bundled prices, and of other offers own ones of days at most, are known of the GPU."""
        since = self._before - (LONG_SPAN if number > 1 else timedelta(0))
        own = [price.first_seen_at for price in prices if price.origin != Origin.SNAPSHOT]
        return device_of(offer) in self._collected and all(first_seen_at > since for first_seen_at in own)

    def waited(self, offer: Offer) -> Recollection | None:
        """Return the last other price of this very offer that waits; asked where none was ever verified."""
        others = [
            price
            for price in self._waiting.get(series_of(offer), [])
            if not is_same(price.usd_per_hour, offer.usd_per_hour) and price.last_seen_at < offer.seen_at
        ]
        if not others:
            return None
        return _alone(max(others, key=lambda price: price.last_seen_at), "the price that waited before")

    def sightings(self, offer: Offer, share: float = SAME_SHARE) -> Sightings:
        """Return how often and since when this price waits in quarantine, the last word on it."""
        newest = self._last_verified(offer)
        found = [
            price
            for price in self._waiting.get(series_of(offer), [])
            if is_same(price.usd_per_hour, offer.usd_per_hour, share)
            and price.first_seen_at <= offer.seen_at - INDEPENDENT_AFTER
            and (newest is None or price.last_seen_at >= newest)
        ]
        since = min((price.first_seen_at for price in found), default=offer.seen_at)
        return Sightings(sum(price.times_seen for price in found), offer.seen_at - since)

    def had_before(self, offer: Offer) -> datetime | None:
        """Return when this very offer was last seen at exactly this price before its last verified one."""
        own, newest = series_of(offer), self._last_verified(offer)
        stood = [price for price in self._stood.get(own, ()) if price.usd_per_hour == offer.usd_per_hour]
        waited = [
            price
            for price in self._waiting.get(own, ())
            if newest is not None and price.usd_per_hour == offer.usd_per_hour and price.last_seen_at < newest
        ]
        return max((price.last_seen_at for price in (*stood, *waited)), default=None)

    def is_mend(self, offer: Offer) -> bool:
        """Whether this very offer goes back to what stood just before its last price, of a night or two."""
        prices = sorted(
            self._stood.get(series_of(offer), ()), key=lambda one: (one.last_seen_at, one.first_seen_at)
        )
        before = [one for one in prices if one.usd_per_hour != prices[-1].usd_per_hour]
        if not before or before[-1].usd_per_hour != offer.usd_per_hour:
            return False
        # It was between: where runs are rare, one sight of a price says nothing of how long it stood.
        is_short = before[-1].last_seen_at >= offer.seen_at - MEND_WITHIN
        return is_short and self.stood_for(offer, offer.usd_per_hour) >= MEND_STOOD

    def furthest(self, offer: Offer, now: Recollection) -> Recollection | None:
        """
        Return what this very offer cost lately that is furthest from its price; None where no run knows it.

        Of what stood for days, where anything did. What is itself a leap from the present price is left out:
        that leap was confirmed.
        """
        since = offer.seen_at - LEAP_WITHIN
        late = [
            price
            for price in self._stood.get(series_of(offer), ())
            if price.last_seen_at >= since and not is_leap(usd_per_whole_gpu(price) / now.usd_per_gpu_hour)
        ]
        settled = [price for price in late if price.last_seen_at - price.first_seen_at >= LONG_SPAN] or late
        if not settled:
            return None
        usd = usd_per_whole_gpu(offer)
        return _alone(
            max(settled, key=lambda one: abs(math.log(usd_per_whole_gpu(one) / usd))), "its own price before"
        )

    def came_back(self, offer: Offer, now: Recollection) -> bool:
        """Whether a price, a leap away, is an earlier one: bundled, or of longer standing than this."""
        ratio = usd_per_whole_gpu(offer) / now.usd_per_gpu_hour
        if not is_leap(ratio):  # an exchange rate or a tax may meet an earlier price by chance
            return False
        bundled = self._bundled.get(machine_of(offer), ())
        if any(
            is_beside(price, offer) and is_same(offer.usd_per_hour, price.usd_per_hour) for price in bundled
        ):
            return True
        return self.stood_for(offer, offer.usd_per_hour) > self.stood_for(offer, now.usd_per_hour)

    def is_unproved(self, offer: Offer, now: Recollection) -> bool:
        """Whether this offer never had another price, and neither a person nor the collection knows it."""
        stood = self._stood.get(series_of(offer), ())
        is_first = all(is_same(price.usd_per_hour, now.usd_per_hour) for price in stood)
        return is_first and machine_of(offer) not in self._bundled and self.accepted(offer) is None

    def stood_for(self, offer: Offer, usd_per_hour: Decimal | float) -> timedelta:
        """Return how long this very offer cost so much, all times together."""
        prices = self._stood.get(series_of(offer), ())
        stood = [one for one in prices if is_same(one.usd_per_hour, usd_per_hour)]
        return sum((one.last_seen_at - one.first_seen_at for one in stood), timedelta(0))

    def _last_verified(self, offer: Offer) -> datetime | None:
        own = self._verified.get(level_key(1, offer), {})
        return max((price.last_seen_at for price in own.values()), default=None)

    def accepted(self, offer: Offer) -> Decimal | None:
        """Return the last price of this very offer that a person accepted. [USD/h]"""
        price = self._accepted.get(series_of(offer))
        return None if price is None else price.usd_per_hour

    def instance_types(self) -> Collection[str]:
        """Return the names of all instances that are known."""
        return self._counts.keys()

    def counts_of(self, offer: Offer) -> set[int]:
        """Return the numbers of GPUs with which an instance of this name is known."""
        return self._counts.get(plain_name(offer.instance_type), set())


def _alone(price: KnownPrice, what: str) -> Recollection:
    """Return one price of this very offer as what is remembered."""
    each = usd_per_whole_gpu(price)
    return Recollection(
        level=1,
        what=what,
        usd_per_gpu_hour=each,
        usd_per_hour=float(price.usd_per_hour),
        seen_at=price.last_seen_at,
        is_collected=False,
        span=(each, each),
        is_asked=True,
    )


class _Middle(NamedTuple):
    """The median of the newest prices of a level [USD/GPU-hour]."""

    usd: float
    seen_at: datetime  # the last of them
    span: tuple[float, float]
    is_asked: bool


def _middle(prices: Collection[KnownPrice]) -> _Middle:
    newest = max(price.last_seen_at for price in prices)
    recent = [usd_per_whole_gpu(price) for price in prices if price.last_seen_at >= newest - WINDOW]
    is_asked = is_same(statistics.median_low(recent), statistics.median_high(recent))
    return _Middle(statistics.median(recent), newest, (min(recent), max(recent)), is_asked)


def is_accepted(reasons: Iterable[str]) -> bool:
    """Whether one of these says that a person accepted the price."""
    return any(reason.startswith(ACCEPTED) for reason in reasons)


def _since(price: KnownPrice, before: KnownPrice) -> KnownPrice:
    """Return a price as known since it was first seen, sold out or gone between or not."""
    is_again = price.usd_per_hour == before.usd_per_hour and price.origin == before.origin
    return replace(price, first_seen_at=before.first_seen_at) if is_again else price


def _is_newer(one: KnownPrice, other: KnownPrice) -> bool:
    return (one.last_seen_at, one.first_seen_at) > (other.last_seen_at, other.first_seen_at)
