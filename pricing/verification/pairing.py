"""What the changed prices of a run say together: names out of step, an old page, a whole list that moved."""

import statistics
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from pricing.offer import Offer
from pricing.parsing.regions import region_key
from pricing.verification.limits import (
    FX_SHARE,
    LATELY,
    MASS_ROWS,
    MASS_SHARE,
    OLD_PAGE_AFTER,
    RETURNED_SHARE,
)
from pricing.verification.recall import Memory, Recollection, is_same


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
        self._memory = memory
        own: dict[int, float] = {}  # id() of an offer and the factor by which it moved
        near: dict[int, float] = {}  # the same, also against other regions and names
        rows = [offer for offer in offers if offer.gpu is not None and is_price(offer)]
        last = [memory.nearest(offer) for offer in rows]
        self.is_renamed = _is_renamed(last)
        levels = {1, 2, 3} if self.is_renamed else {1, 3}
        for place, (offer, known) in enumerate(zip(rows, last, strict=True)):
            if known is None or known.level not in levels:
                self._rows.append((offer, None))
                continue
            self._rows.append((offer, known.usd_per_hour))
            factor = near[id(offer)] = float(offer.usd_per_hour) / known.usd_per_hour
            if known.level == 1:
                own[id(offer)] = factor
                if known.seen_at >= offer.seen_at - LATELY:
                    self._lately.append(factor)
            if not is_same(offer.usd_per_hour, known.usd_per_hour):
                change = Change(place, offer, known.usd_per_hour, known.seen_at, known.level == 1)
                self.changes.append(change)
        # id() of the offers of which the list-wide rules speak, and by which factor each moved.
        self.factors = near if self.is_renamed else own

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

    def returned(self) -> frozenset[int]:
        """
        Return the id() of offers that went back to an earlier price: all where half of all changes did, else
        those whose earlier price was last seen long ago.
        """
        own = [change.offer for change in self.changes if change.is_own]
        back = {id(offer): seen_at for offer in own if (seen_at := self._memory.had_before(offer))}
        if len(back) >= 2 and len(back) >= RETURNED_SHARE * len(own):
            return frozenset(back)
        old = [offer for offer in own if id(offer) in back]
        return frozenset(id(one) for one in old if one.seen_at - back[id(one)] >= OLD_PAGE_AFTER)

    def moved_at_once(self) -> tuple[int, int] | None:
        """Return how many prices moved and of how many, where that is most of a list; else None."""
        moved = sum(not is_same(factor, 1.0) for factor in self.factors.values())
        if len(self.factors) < MASS_ROWS or moved <= MASS_SHARE * len(self.factors):
            return None
        return moved, len(self.factors)

    def middle_move(self) -> float | None:
        """Return by which factor the prices seen lately moved in the middle; None where too few are known."""
        return statistics.median(self._lately) if len(self._lately) >= MASS_ROWS else None

    def by_one_factor(self) -> tuple[int, int, float] | None:
        """Return how many prices moved by one factor, of how many, and that, where most did; else None."""
        factors = [factor for factor in self.factors.values() if not is_same(factor, 1.0)]
        if len(self.factors) < MASS_ROWS or not factors:
            return None
        middle = statistics.median(factors)
        moved = sum(is_same(factor, middle, FX_SHARE) for factor in factors)
        return (moved, len(self.factors), middle) if moved > MASS_SHARE * len(self.factors) else None


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


def _device(offer: Offer) -> tuple[object, ...]:
    """Return what has one price per GPU on many lists, whatever the size and place."""
    return (offer.gpu, offer.tier)


def _product(offer: Offer) -> tuple[object, ...]:
    """Return what is sold and where."""
    place = region_key(offer.provider, offer.region)
    return (offer.gpu, offer.gpu_count, offer.gpu_fraction, offer.tier, place)
