"""A shelf of prices in memory, kept as the database keeps them, for runs by the hundred."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal

from planner.rates import Tier
from pricing.offer import Offer, Verdict
from pricing.registry import is_of_asks
from pricing.storage.memory import KnownPrice, Origin, remembered
from pricing.storage.queries import EARLIER_KEPT, WAITING_KEPT
from pricing.verification.limits import LEAP_WITHIN


@dataclass(slots=True)
class Series:
    """What is known of one offer: verified prices and those that wait or waited, the newest last."""

    verified: list[KnownPrice] = field(default_factory=list)
    held: list[KnownPrice] = field(default_factory=list)
    is_waiting: bool = False  # since the last verified one


class Shelf:
    """The prices of one provider, run after run."""

    def __init__(self, known: Iterable[KnownPrice] = ()) -> None:
        self._series: dict[str, Series] = defaultdict(Series)
        for price in sorted(known, key=lambda one: one.last_seen_at):
            self._series[price.series_id].verified.append(price)

    def known(self) -> list[KnownPrice]:
        """Return what new prices are compared with."""
        found: list[KnownPrice] = []
        for series in self._series.values():
            found += [*_kept(series.verified), *series.held[-WAITING_KEPT:]]
        return found

    def copy(self) -> "Shelf":
        """Return another one with the same prices."""
        other = Shelf()
        for name, series in self._series.items():
            other._series[name] = Series(list(series.verified), list(series.held), series.is_waiting)
        return other

    def sound(self, offers: Sequence[Offer]) -> dict[str, Decimal]:
        """Return the prices among these that are the last verified ones of their series."""
        return {
            offer.id: offer.usd_per_hour
            for offer in offers
            if (series := self._series.get(offer.id)) is not None
            and series.verified
            and series.verified[-1].usd_per_hour == offer.usd_per_hour
        }

    def record(self, judged: Sequence[Offer]) -> None:
        """Keep a judged run: the same price goes on, another one opens."""
        for offer in judged:
            series = self._series[offer.id]
            if offer.verdict is not Verdict.VERIFIED:
                _keep(series.held, offer, goes_on=series.is_waiting)
                series.is_waiting = True
                continue
            waiting = series.held[-1] if series.is_waiting else None
            if waiting is not None and waiting.usd_per_hour == offer.usd_per_hour:
                series.verified.append(replace(_again(waiting, offer), verdict=Verdict.VERIFIED))
                series.held.pop()
            else:
                _keep(series.verified, offer)
            series.is_waiting = False


def _kept(verified: Sequence[KnownPrice]) -> Sequence[KnownPrice]:
    """Return the last few, and of lists all of the last weeks."""
    few, last = verified[-EARLIER_KEPT:], verified[-1] if verified else None
    if last is None or last.tier is Tier.SPOT or is_of_asks(last.provider):
        return few
    late = [one for one in verified if one.last_seen_at >= last.last_seen_at - LEAP_WITHIN]
    return max(few, late, key=len)


def _keep(prices: list[KnownPrice], offer: Offer, *, goes_on: bool = True) -> None:
    last = prices[-1] if prices else None
    is_same = last is not None and (last.verdict, last.usd_per_hour, last.origin) == (
        offer.verdict,
        offer.usd_per_hour,
        Origin.REFRESH,
    )
    if last is not None and is_same and goes_on:
        prices[-1] = _again(last, offer)
    else:
        prices.append(remembered(offer, Origin.REFRESH))


def _again(price: KnownPrice, offer: Offer) -> KnownPrice:
    return replace(price, last_seen_at=offer.seen_at, times_seen=price.times_seen + 1)
