"""What the changed prices of a run say together: names out of step, an old page, a whole list that moved."""

import statistics
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import NamedTuple

from pricing.offer import Offer
from pricing.verification.alike import is_same, place_of, plain_name
from pricing.verification.limits import (
    ALIKE,
    FEW_ROWS,
    FX_SHARE,
    HALF_A_CENT,
    LATELY,
    MASS_ROWS,
    MASS_SHARE,
    NO_PRICE_USD,
    OLD_PAGE_AFTER,
    RETURNED_SHARE,
    SHORT_ROWS,
)
from pricing.verification.recall import Memory, Recollection


class Step(NamedTuple):
    """An offer beside its last price."""

    offer: Offer
    before: float  # [USD/h]

    @property
    def factor(self) -> float:
        """By which it moved."""
        return float(self.offer.usd_per_hour) / self.before


class Scaled(NamedTuple):
    """How many prices of a list moved together."""

    moved: int
    known: int
    low: float  # the smallest and the largest factor
    high: float


@dataclass(frozen=True, slots=True)
class Change:
    """An offer whose price is another than its last one."""

    place: int  # in the run
    offer: Offer
    before: float  # [USD/h]
    seen_at: datetime  # when that was seen
    is_own: bool  # its own last price, not one of the same GPUs under another name or elsewhere


class Together:
    """
    The prices of one provider's run, each beside its last one.

    Args:
        offers: In the order of the page.
        memory: Of the provider.
    """

    def __init__(self, offers: Sequence[Offer], memory: Memory) -> None:
        self._rows: list[tuple[Offer, float | None]] = []  # each beside its last price
        self.changes: list[Change] = []
        self._lately: list[float] = []  # by which factor each of these seen lately moved, 1 for most
        own: list[Step] = []  # from its own last price
        near: list[Step] = []  # also from those in other regions and under other names
        rows = [offer for offer in offers if offer.gpu is not None and is_price(offer)]
        last = [memory.nearest(offer) for offer in rows]
        self.is_renamed = _is_renamed(last)
        levels = {1, 2, 3} if self.is_renamed else {1, 3}
        for place, (offer, known) in enumerate(zip(rows, last, strict=True)):
            if known is None or known.level not in levels:
                self._rows.append((offer, None))
                continue
            self._rows.append((offer, known.usd_per_hour))
            # Of several under other names or elsewhere one may cost just this: then it stands.
            is_there = known.level > 1 and memory.shows(offer, known)
            step = Step(offer, float(offer.usd_per_hour) if is_there else known.usd_per_hour)
            near.append(step)
            if known.level == 1:
                own.append(step)
                if known.seen_at >= offer.seen_at - LATELY:
                    self._lately.append(step.factor)
            if not is_same(offer.usd_per_hour, known.usd_per_hour):
                change = Change(place, offer, known.usd_per_hour, known.seen_at, known.level == 1)
                self.changes.append(change)
        self._lists = [own, near] if self.is_renamed else [own]
        # id() of the offers of which the list-wide rules speak, and by which factor each moved.
        self.factors = {id(step.offer): step.factor for step in self._lists[-1]}
        # id() of the offers that went back to a price that stood before, and when that was last seen.
        changed = [change.offer for change in self.changes if change.is_own]
        self._back = {id(offer): seen_at for offer in changed if (seen_at := memory.had_before(offer))}
        # Of these, where each mends a price of a night or two; none where another one went back to something
        # older: then the page is an old one, and not the one between.
        are_mends = all(memory.is_mend(offer) for offer in changed if id(offer) in self._back)
        self.mended = frozenset(self._back) if are_mends else frozenset()

    def mispaired(self) -> frozenset[int]:
        """
        Return the id() of offers whose prices look mis-paired.

        Where two took over each other's last price; where two rows, and a third of all that changed, took
        over that of the row above or below; or, among prices seen lately, as many that of any changed row.
        """
        found: set[int] = set()
        stepped: set[int] = set()
        taken: set[int] = set()
        for is_per_gpu in (False, True):
            owners: dict[float, list[Change]] = defaultdict(list)
            for change in self.changes:
                owners[_exact(_per(change.offer, change.before, is_per_gpu))].append(change)
            for change in self.changes:
                self._compare(change, owners, found, stepped, taken, is_per_gpu=is_per_gpu)
        for group in (stepped, taken):
            if len(group) >= 2 and len(group) * 3 >= len(self.changes):
                found |= group
        return frozenset(found)

    def _compare(
        self,
        change: Change,
        owners: Mapping[float, Sequence[Change]],
        found: set[int],
        stepped: set[int],
        taken: set[int],
        *,
        is_per_gpu: bool,
    ) -> None:
        """
        Note whose last price a changed one took over.

        Per GPU too: on a list of prices per GPU a shift is not seen in those of machines of other sizes.
        """
        now = _exact(_per(change.offer, float(change.offer.usd_per_hour), is_per_gpu))
        what = _device if is_per_gpu else _product
        others = [one for one in owners.get(now, ()) if what(one.offer) != what(change.offer)]
        for one in others:
            theirs = _exact(_per(one.offer, float(one.offer.usd_per_hour), is_per_gpu))
            if theirs == _exact(_per(change.offer, change.before, is_per_gpu)):
                found.add(id(change.offer))
            if one.seen_at >= change.offer.seen_at - LATELY:
                taken.add(id(change.offer))
        beside = (
            *self._rows[max(0, change.place - 1) : change.place],
            *self._rows[change.place + 1 : change.place + 2],
        )
        for neighbour, before in beside:
            if before is None or (is_per_gpu and _device(neighbour) == _device(change.offer)):
                continue
            if now == _exact(_per(neighbour, before, is_per_gpu)):
                stepped.add(id(change.offer))

    def copied(self) -> frozenset[int]:
        """Return the id() of offers that took exactly the price of another row of the list, which stands."""
        changed = {id(change.offer) for change in self.changes}
        standing: dict[tuple[object, ...], set[object]] = defaultdict(set)
        for offer, before in self._rows:
            if before is not None and id(offer) not in changed:
                for key, what in _prices(offer):
                    standing[key].add(what)
        own = [change.offer for change in self.changes if change.is_own]
        return frozenset(id(one) for one in own if any(standing[key] - {what} for key, what in _prices(one)))

    def returned(self) -> frozenset[int]:
        """
        Return the id() of offers that went back to an earlier price: all where half of all changes did, else
        those whose earlier price was last seen long ago. None where all are mends of an error.
        """
        back = self._back
        if back.keys() <= self.mended:
            return frozenset()
        own = [change.offer for change in self.changes if change.is_own]
        if len(back) >= 2 and len(back) >= RETURNED_SHARE * len(own):
            return frozenset(back)
        old = [offer for offer in own if id(offer) in back]
        return frozenset(id(one) for one in old if one.seen_at - back[id(one)] >= OLD_PAGE_AFTER)

    def moved_at_once(self) -> tuple[int, int] | None:
        """Return how many prices moved and of how many, where that is most of a list; else None."""
        moved = sum(not is_same(factor, 1.0) for factor in self.factors.values())
        return (moved, len(self.factors)) if _is_most(moved, len(self.factors), FEW_ROWS) else None

    def middle_move(self) -> float | None:
        """Return by which factor the prices seen lately moved in the middle; None where too few are known."""
        return statistics.median(self._lately) if len(self._lately) >= MASS_ROWS else None

    def by_one_factor(self) -> Scaled | None:
        """Return how many prices moved by one factor, of how many, and that, where most did; else None."""
        return next((found for steps in self._lists if (found := _by_one_factor(steps))), None)

    def alike(self) -> Scaled | None:
        """Return the same of prices that moved one way by similar factors."""
        factors = sorted(self.factors.values())
        found = Scaled(0, len(factors), 1.0, 1.0)
        for side in ([one for one in factors if one < 1], [one for one in factors if one > 1]):
            moved = [one for one in side if not is_same(one, 1.0)]
            for start, low in enumerate(moved):
                end = bisect_right(moved, low * ALIKE)
                if end - start > found.moved:
                    found = Scaled(end - start, len(factors), low, moved[end - 1])
        return found if _is_most(found.moved, len(factors), FEW_ROWS) else None


def _by_one_factor(steps: Sequence[Step]) -> Scaled | None:
    """
    Return the factor that explains most steps, where it explains most of a list, or all of a short one.

    Prices of whole cents may be rounded, of each GPU where the list states it so.
    """
    ends: list[tuple[float, int]] = []
    for step in steps:
        if not is_same(step.factor, 1.0):
            half_a_cent = _half_a_cent(step.offer) / step.before
            ends += [
                ((step.factor - half_a_cent) * (1 - FX_SHARE), -1),
                ((step.factor + half_a_cent) * (1 + FX_SHARE), 1),
            ]
    most = inside = 0
    low = high = 1.0
    ends.sort()
    for place, (factor, end) in enumerate(ends):
        inside -= end
        if inside > most:
            most, low, high = inside, factor, ends[place + 1][0]
    if not _is_most(most, len(steps), SHORT_ROWS):
        return None
    return Scaled(most, len(steps), (low + high) / 2, (low + high) / 2)


def _is_most(moved: int, rows: int, fewest: int) -> bool:
    """Whether so many prices are most of a list, or all of a short one that is not too short to say so."""
    return moved >= fewest and moved > (MASS_SHARE * rows if rows >= MASS_ROWS else rows - 1)


def _half_a_cent(offer: Offer) -> float:
    """Return by how much a price may be off that is rounded to the cent; 0 where it is not. [USD/h]"""
    for count in (offer.gpu_count, 1):
        if offer.usd_per_hour < NO_PRICE_USD and offer.usd_per_hour * 100 % count == 0:
            return HALF_A_CENT * count
    return 0.0


def _is_renamed(last: Sequence[Recollection | None]) -> bool:
    """
    Whether the rows of a list go by new names or places: most of those known are known from others.

    So are they where few own last prices are known, of which nothing list-wide could be said.
    """
    near = [known for known in last if known is not None and known.level <= 3]
    own = sum(known.level == 1 for known in near)
    return own < MASS_ROWS or own <= MASS_SHARE * len(near)


def is_price(offer: Offer) -> bool:
    """Whether the amount can be compared at all."""
    return offer.usd_per_hour.is_finite() and offer.usd_per_hour > 0


def _exact(usd: Decimal | float) -> float:
    """Return an amount so that equal ones are equal."""
    return round(float(usd), 6)


def _per(offer: Offer, usd: float, is_per_gpu: bool) -> float:
    """Return an amount as it stands, or for one whole GPU."""
    return usd / offer.gpu_count / (offer.gpu_fraction or 1.0) if is_per_gpu else usd


def _prices(offer: Offer) -> list[tuple[tuple[object, ...], object]]:
    """Return the price of a machine, its tiers and one GPU, each with what would cost the same anyway."""
    usd, place = float(offer.usd_per_hour), place_of(offer)
    instance = plain_name(offer.instance_type), offer.gpu, offer.gpu_count, offer.gpu_fraction
    return [
        ((*instance, place, _exact(usd)), (offer.tier, offer.commitment_days)),
        ((offer.tier, place, _exact(usd)), (offer.gpu, offer.gpu_count)),
        ((offer.tier, place, _exact(_per(offer, usd, is_per_gpu=True)), "each"), offer.gpu),
    ]


def _device(offer: Offer) -> tuple[object, ...]:
    """Return what has one price per GPU on many lists, whatever the size and place."""
    return (offer.gpu, offer.tier)


def _product(offer: Offer) -> tuple[object, ...]:
    """Return what is sold and where."""
    place = place_of(offer)
    return (offer.gpu, offer.gpu_count, offer.gpu_fraction, offer.tier, place)
