"""What catalogues of others say of a provider's prices: each says it of one machine."""

import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from typing import NamedTuple

from pricing.offer import Offer, Verdict
from pricing.parsing.regions import is_same_place
from pricing.parsing.witnessing import cloud_of
from pricing.storage.memory import KnownPrice
from pricing.verification.alike import is_same, place_of, plain_name
from pricing.verification.limits import WITNESS_AGE, WITNESS_RUNS, WITNESS_SHARE, WITNESS_SHARE_NEW
from pricing.verification.recall import INDEPENDENT_AFTER, Recollection


class _Word(NamedTuple):
    """What a catalogue said last of one machine, first seen when it came to say so."""

    price: KnownPrice
    place: str
    name: str
    form: str | None


class Witnesses:
    """
    The words of catalogues on the machines of one provider.

    Args:
        known: Prices of any providers and witnesses; verified ones of witnesses of this provider count.
        provider: Whose prices they speak of.
        names: Of the instances that the provider itself is known to sell.
    """

    def __init__(self, known: Iterable[KnownPrice], provider: str, names: Iterable[str]) -> None:
        self._names = {plain_name(name) for name in names}
        said: dict[tuple[object, ...], list[KnownPrice]] = defaultdict(list)
        for price in known:
            if price.witness is not None and price.provider == provider and price.verdict is Verdict.VERIFIED:
                said[price.witness, price.series_id, price.region, price.instance_type].append(price)
        self._words: dict[tuple[object, ...], list[_Word]] = defaultdict(list)
        for prices in said.values():
            last = _last_word(prices)
            place, name = place_of(last), plain_name(last.instance_type)
            self._words[_key(last)].append(_Word(last, place, name, _form(last.instance_type)))

    def of(self, offer: Offer) -> list[KnownPrice]:
        """
        Return what is said of this offer at about this time: of this very instance where anyone names it.

        Else of what may be it under another name: not of another instance that the provider sells, nor where
        both names are of one form, as those of AWS.
        """
        place, name = place_of(offer), plain_name(offer.instance_type)
        here = [
            word
            for word in self._words.get(_key(offer), ())
            if is_same_place(place, word.place)
            and abs(word.price.last_seen_at - offer.seen_at) <= WITNESS_AGE
        ]
        of_it = [word.price for word in here if word.name == name]
        if of_it:
            return of_it
        form = _form(offer.instance_type)
        return [
            word.price
            for word in here
            if word.name not in self._names and (form is None or word.form != form)
        ]

    def agreeing(self, offer: Offer, own: Recollection | None) -> int:
        """Return how many catalogues agree, and rather with this price than with the one before."""
        usd, before = float(offer.usd_per_hour), None if own is None else own.usd_per_hour
        share = WITNESS_SHARE_NEW if before is None else WITNESS_SHARE
        return len(
            {
                told.witness
                for told in self.of(offer)
                if (own is None or _is_later_word(told, own))
                and is_same(usd, told.usd_per_hour, share)
                and (before is None or _is_nearer(float(told.usd_per_hour), usd, before))
            }
        )

    def contradicting(self, offer: Offer) -> KnownPrice | None:
        """Return a catalogue's fresh word on this offer where none of them is near it."""
        fresh = self.of(offer)
        if any(is_same(offer.usd_per_hour, told.usd_per_hour, WITNESS_SHARE) for told in fresh):
            return None
        return max(fresh, key=lambda told: told.last_seen_at, default=None)

    def say(self, offer: Offer, usd_per_hour: float) -> bool:
        """Whether any of them says that this offer costs about so much."""
        return any(is_same(usd_per_hour, told.usd_per_hour, WITNESS_SHARE) for told in self.of(offer))


def _key(one: Offer | KnownPrice) -> tuple[object, ...]:
    """Return what a witness and a source have in common; places and instances may be spelled differently."""
    return (one.gpu, one.gpu_count, one.gpu_fraction, one.tier)


@cache
def _form(instance_type: str) -> str | None:
    """Return whose names of instances are of this form; None where it is nobody's."""
    return cloud_of([instance_type])


def _last_word(prices: Iterable[KnownPrice]) -> KnownPrice:
    """Return a catalogue's last word on a machine, since it says so: a row that came back is no new word."""
    *before, last = sorted(prices, key=lambda price: (price.first_seen_at, price.last_seen_at))
    for price in reversed(before):
        if not is_same(price.usd_per_hour, last.usd_per_hour):
            break
        times = last.times_seen + price.times_seen
        last = replace(last, first_seen_at=price.first_seen_at, times_seen=times)
    return last


def _is_nearer(told: float, now: float, before: float) -> bool:
    """Whether a price is at least as near to the present one as to the one before, in factors."""
    return abs(math.log(told / now)) <= abs(math.log(told / before))


def _is_later_word(told: KnownPrice, own: Recollection) -> bool:
    """
    Whether a catalogue came to say so after the provider's own last price was seen, in two independent runs.

    What it said before that is contradicted by the newer price: it lags behind, as an old edition does.
    """
    is_twice = told.last_seen_at >= told.first_seen_at + INDEPENDENT_AFTER
    return told.first_seen_at > own.seen_at and is_twice and told.times_seen >= WITNESS_RUNS
