"""What the rules look at beside an offer: what is known, and the other offers of the run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from enum import IntEnum
from typing import NamedTuple

from planner.rates import Tier
from pricing.offer import Offer
from pricing.provider import ProviderClass, shows_asks
from pricing.verification.alike import SAME_SHARE, is_leap, is_same, place_of
from pricing.verification.limits import (
    LATELY,
    LONG_RUNS,
    LONG_SPAN,
    SEEN_SHARE_ASK,
    SIZES_SAME,
    WEEK_SPAN,
)
from pricing.verification.market import Level, Market, usd_per_whole_gpu
from pricing.verification.pairing import Scaled
from pricing.verification.recall import Memory, Recollection
from pricing.verification.told import Witnesses


class Confirmation(IntEnum):
    """What shows that the world changed and not our reading."""

    NOTHING = -1  # a person neither
    PERSON = 0  # only a person's word, which serves for all that follow too
    WITNESS = 1  # a catalogue of others agrees
    WEEK = 2  # or the price was seen in several earlier runs over a week
    LONG = 3  # or over days
    ONCE = 4  # or in one earlier, independent run


class Book(NamedTuple):
    """All asks for one GPU in an answer."""

    middle: float  # of one GPU's hour [USD/h]
    asks: int


class Doubt(NamedTuple):
    """How much of what an answer changes is impossible or out of step."""

    wrong: int
    changed: int  # known prices that moved
    is_of_all: bool  # most of all known prices, so that nothing new is believed either


@dataclass(slots=True, kw_only=True)
class Case:
    """Everything that the rules look at beside the offer: what is known, and the other offers of the run."""

    kind: ProviderClass
    memory: Memory
    market: Market
    usd_per_unit: Mapping[str, float]  # of other currencies
    witnesses: Witnesses
    sizes: Mapping[tuple[object, ...], Mapping[int, tuple[float, float]]] = field(default_factory=dict)
    beside: Mapping[tuple[object, ...], Mapping[Tier, list[Offer]]] = field(default_factory=dict)
    counts: Mapping[tuple[object, ...], set[int]] = field(default_factory=dict)
    twice: Mapping[str, set[Decimal]] = field(default_factory=dict)
    exchanged: frozenset[int] = frozenset()  # id() of offers whose prices look mis-paired
    returned: frozenset[int] = frozenset()  # id() of offers that an old page would show so
    copied: frozenset[int] = frozenset()  # id() of offers that took exactly the price of another
    mended: frozenset[int] = frozenset()  # id() of offers that an error of a night or two had hit
    factors: Mapping[int, float] = field(default_factory=dict)  # id() of an offer of a list, and its move
    moved: tuple[int, int] | None = None  # of how many of a list most moved at once
    scaled: Scaled | None = None  # of how many prices most moved by one factor
    alike: Scaled | None = None  # of how many most moved one way by similar factors
    middle_move: float | None = None  # by which factor what was seen lately moved in the middle
    old_page: str | None = None  # what is known of the page, where it was served before
    books: Mapping[tuple[object, ...], Book] = field(default_factory=dict)
    doubt: Doubt | None = None  # of the whole answer
    # Sizes that were held back as impossible: by GPU and tier, their counts and prices per GPU [USD/h].
    held_sizes: Mapping[tuple[object, ...], Sequence[tuple[int, float]]] = field(default_factory=dict)

    def level(self, offer: Offer) -> Level | None:
        """Return the market level of the offer's GPU."""
        return None if offer.gpu is None else self.market.level(offer.gpu, offer.tier, self.kind)

    @property
    def is_of_asks(self) -> bool:
        """Whether the prices are what hosts ask, and not those of a posted list."""
        return shows_asks(self.kind, self.memory.provider)

    def is_restless(self, offer: Offer) -> bool:
        """Whether the price is one that moves from day to day: an ask, or on the spot market."""
        return self.is_of_asks or offer.tier is Tier.SPOT

    def is_remembered(self, offer: Offer, limit: float) -> bool:
        """Whether the provider's own earlier price of these GPUs is within a factor."""
        known = self.memory.nearest(offer)
        if known is None or known.level > 3:
            return False
        return 1 / limit <= usd_per_whole_gpu(offer) / known.usd_per_gpu_hour <= limit

    def listed(self, offer: Offer, *tiers: Tier) -> list[Offer]:
        """Return what the answer states of this instance in other tiers."""
        found = self.beside.get(instance_key(offer), {})
        return [one for tier in tiers for one in found.get(tier, ())]

    def in_force(self, offer: Offer, tier: Tier) -> Recollection | None:
        """Return this instance's last verified price of another tier, where it is listed or was lately."""
        asked = replace(offer, tier=tier, commitment_days=None)
        known = self.memory.at_level(asked, 1)
        if known is None or not (self.listed(offer, tier) or known.seen_at >= offer.seen_at - LATELY):
            return None
        return known

    def own_ratio(self, offer: Offer) -> float | None:
        """Return by which factor the offer's own last price moved, None where there is none."""
        known = self.memory.at_level(offer, 1)
        return None if known is None else usd_per_whole_gpu(offer) / known.usd_per_gpu_hour

    def list_ratio(self, offer: Offer) -> float | None:
        """Return the same where the list goes by new names or places against its last price under another."""
        ratio = self.own_ratio(offer)
        return self.factors.get(id(offer)) if ratio is None else ratio

    def is_own_price(self, offer: Offer) -> bool:
        """Whether this very offer was verified at this price before."""
        known = self.memory.at_level(offer, 1) if offer.gpu else None
        return known is not None and is_same(offer.usd_per_hour, known.usd_per_hour)

    def is_accepted(self, offer: Offer) -> bool:
        """Whether a person accepted this very offer at this price."""
        known = self.memory.accepted(offer)
        return known is not None and is_same(offer.usd_per_hour, known)

    def confirmed(self, offer: Offer) -> Confirmation | None:
        """Return the hardest confirmation that a price has; it serves where an easier one is asked too."""
        if self.witnesses.agreeing(offer, self.memory.at_level(offer, 1)):
            return Confirmation.WITNESS
        if self.is_doubted(offer):
            return None
        seen = self.memory.sightings(offer, SEEN_SHARE_ASK if self.is_of_asks else SAME_SHARE)
        if seen.runs >= LONG_RUNS and seen.span >= LONG_SPAN:
            return Confirmation.WEEK if seen.span >= WEEK_SPAN else Confirmation.LONG
        return Confirmation.ONCE if seen.runs else None

    def is_doubted(self, offer: Offer) -> bool:
        """Whether the answer is in doubt, so that seeing it again confirms nothing of this offer."""
        if self.doubt is None:
            return False
        return self.doubt.is_of_all or self.memory.nearest(offer) is not None

    def is_return(self, offer: Offer) -> bool:
        """
        Whether a price came back, on two days, from one that no true move leads to.

        The price in force may have been read wrong. It was not where a catalogue says the same, or it stood
        for as long as the one before. Against a person's word, and against what stood for a week itself, the
        price must stay for a week: an old page may be served for days.
        """
        known = self.memory.at_level(offer, 1)
        if known is None or self.witnesses.say(offer, known.usd_per_hour):
            return False
        if not self.memory.came_back(offer, known):
            return self._outlasts(offer, known)
        seen, accepted = self.memory.sightings(offer), self.memory.accepted(offer)
        # Of this price or of one from which it came by a plain move.
        is_accepted = accepted is not None and not is_leap(float(accepted) / known.usd_per_hour)
        if is_accepted or self.memory.stood_for(offer, known.usd_per_hour) >= WEEK_SPAN:
            return seen.runs >= LONG_RUNS and seen.span >= WEEK_SPAN
        return (
            self.old_page is None
            and seen.runs > 0
            and (offer.seen_at - seen.span).date() < offer.seen_at.date()
        )

    def _outlasts(self, offer: Offer, known: Recollection) -> bool:
        """
        Whether a price, for which the market speaks, stayed for longer than one that nothing speaks for.

        That one was verified for being seen again, as the first of its offer: perhaps a page read wrong.
        """
        seen, level = self.memory.sightings(offer), self.level(offer)
        is_long = seen.runs >= LONG_RUNS and seen.span >= max(
            WEEK_SPAN, self.memory.stood_for(offer, known.usd_per_hour)
        )
        if level is None or not is_long or not self.memory.is_unproved(offer, known):
            return False
        now, then = (
            usd / level.usd_per_gpu_hour for usd in (usd_per_whole_gpu(offer), known.usd_per_gpu_hour)
        )
        return is_leap(then) and not is_leap(now)

    def agrees_with_a_size(self, offer: Offer) -> bool:
        """Whether another size of the same machine costs about the same per GPU in this answer."""
        price = usd_per_whole_gpu(offer)
        others = [span for n, span in self.sizes.get(machine_key(offer), {}).items() if n != offer.gpu_count]
        return any(span[0] / SIZES_SAME <= price <= span[1] * SIZES_SAME for span in others)


def machine_key(offer: Offer) -> tuple[object, ...]:
    """Return what is the same machine in several sizes."""
    place = place_of(offer)
    return (offer.gpu, offer.tier, place, offer.gpu_only, offer.commitment_days)


def book_key(offer: Offer) -> tuple[object, ...]:
    """Return whose asks are compared: those for one GPU in one tier, whatever the size and place."""
    return (offer.gpu, offer.tier, offer.gpu_only)


def instance_key(offer: Offer) -> tuple[object, ...]:
    """Return what is one instance under several tiers."""
    place = place_of(offer)
    return (offer.instance_type, offer.gpu, offer.gpu_count, offer.gpu_fraction, place, offer.gpu_only)


def name_key(offer: Offer) -> tuple[object, ...]:
    """Return what sells one name in one place."""
    return (offer.instance_type, offer.tier, place_of(offer))
