"""
The named rules by which a price is believed or not, each with a reason that a person understands.

Every rule, its threshold and a worked example: docs/verification.md.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from decimal import Decimal

from planner.rates import RESERVED_TIERS, Tier
from pricing.market import Level, Market, dollars, tier_group, usd_per_whole_gpu
from pricing.memory import KnownPrice
from pricing.offer import Offer, Verdict
from pricing.provider import ProviderClass
from pricing.recall import SAME_SHARE, Memory, Recollection, is_same
from pricing.regions import region_key

# Limits of any GPU's hour, and of a slice scaled up. Source: docs/providers.md, "Plausible prices". [USD/h]
HARD_LOW, HARD_HIGH = 0.01, 40.0
# Racks list at up to 54.08 (Azure GB200, Brazil South, 2026-06-18). Source: the bundled snapshot.
HARD_HIGH_OF = {"GB200": 60.0, "GB300": 70.0}
# Against the middle of the own class: 1 % of 6,335 true rows of the snapshot lie outside. Source:
# docs/verification.md.
BAND_LOW, BAND_HIGH = 0.3, 3.0
# Where the class has too few prices and all classes are taken together. Source: own choice.
WIDE_BAND_LOW, WIDE_BAND_HIGH = 0.2, 5.0
# So far from the middle a price is no price but a mistake. Source: docs/providers.md, "Plausible prices".
ABSURD_LOW, ABSURD_HIGH = 0.1, 10.0
# Largest move that needs no confirmation, as a factor: 0.4 % of 15,894 successive pairs of list prices move
# by more than 1.5, 1.4 % of 7,007 pairs of Vast.ai by more than 2.5, which still catches every factor of 3.
# Source: the bundled history, counted; docs/verification.md.
JUMP_LIST, JUMP_SPOT, JUMP_MARKETPLACE = 1.5, 2.0, 2.5
# Between sizes of one machine, per GPU, against the cheapest and the dearest other size. Per GPU for per
# instance is a factor of 2 at least. Discounts reach 7 % (Lambda); hosts of hyperscalers differ (Azure, one
# T4 0.526, four 4.352); on a marketplace sizes are different machines (Vast.ai, 1x 1.74, 8x 4.39 per GPU).
# Source: docs/providers.md, "Lambda"; the bundled history; a book of Vast.ai.
SIZES = {
    ProviderClass.NEOCLOUD: (0.55, 1.8),
    ProviderClass.HYPERSCALER: (0.4, 2.5),
    ProviderClass.MARKETPLACE: (0.3, 3.3),
    ProviderClass.WITNESS: (0.3, 3.3),
}
SIZES_SAME = 1.25
# True community prices lie above 0.45 of the secure one, placeholders at 0.21.
# Source: docs/providers.md, "RunPod".
COMMUNITY_LOW = 0.3
# How closely a ratio must match a confusion of units to be called one.
UNIT_SHARE = 0.03
# Hours of a day, of a month as providers count it, of a year; cents. Source: docs/providers.md, "Units".
UNIT_FACTORS = {
    24.0: "a day",
    672.0: "a month",
    730.0: "a month",
    744.0: "a month",
    8760.0: "a year",
}
# Exchange rates move within this. Source: own choice; reference rates differ by 0.2 % from day to day.
FX_SHARE = 0.004
# An own price this much older than a dearer one of the same GPUs may be a page served again. Source:
# docs/providers.md, "DigitalOcean": 8x H100 at 23.92 of 2025 beside 35.28 of 2026.
OUTDATED_AFTER, OUTDATED_SHARE = timedelta(days=30), 0.8
# A witness that is older than the source confirms it within this; it never overrules.
# Source: docs/providers.md, "Witnesses".
WITNESS_SHARE = 0.15
# On a marketplace the book has moved between two runs; half of its daily moves are smaller. Source:
# the bundled history, Vast.ai, medians of 0.133 to 0.223.
SEEN_SHARE_MARKETPLACE = 0.2
# Earlier prices within this tell which offers changed, and which took over the price of another.
LATELY = timedelta(days=14)
_TO_BE_SEEN_AGAIN = "waits to be seen again"


@dataclass(frozen=True, slots=True)
class Rule:
    """One check: its name, what failing it means, and what makes up for it."""

    name: str
    verdict: Verdict
    check: Callable[[Offer, "Case"], str | None]
    # Seen again in a later run, confirmed by a witness: then it is the world that changed, not our reading.
    is_confirmable: bool = False
    # This very price was verified before, by a run, by a person, or stands in the collection: it is known.
    yields_to_own_price: bool = True
    # Nothing else is worth saying: no price, no device, or an absurd price.
    is_final: bool = False


@dataclass(slots=True, kw_only=True)
class Case:
    """Everything that the rules look at beside the offer: what is known, and the other offers of the run."""

    kind: ProviderClass
    memory: Memory
    market: Market
    usd_per_unit: Mapping[str, float]  # of other currencies
    witnesses: Mapping[tuple[object, ...], list[KnownPrice]]
    sizes: Mapping[tuple[object, ...], Mapping[int, tuple[float, float]]] = field(default_factory=dict)
    beside: Mapping[tuple[object, ...], Mapping[Tier, list[Decimal]]] = field(default_factory=dict)
    counts: Mapping[str, set[int]] = field(default_factory=dict)
    twice: Mapping[str, set[Decimal]] = field(default_factory=dict)
    exchanged: frozenset[int] = frozenset()  # id() of offers whose prices look mis-paired

    def level(self, offer: Offer) -> Level | None:
        """Return the market level of the offer's GPU."""
        return None if offer.gpu is None else self.market.level(offer.gpu, offer.tier, self.kind)

    def jump_limit(self, offer: Offer) -> float:
        """Return the largest factor by which a price of this kind moves unnoticed."""
        if self.kind is ProviderClass.MARKETPLACE and offer.tier is not Tier.SECURE:
            return JUMP_MARKETPLACE
        return JUMP_SPOT if offer.tier is Tier.SPOT else JUMP_LIST

    def is_remembered(self, offer: Offer, limit: float) -> bool:
        """Whether the provider's own earlier price of these GPUs is within a factor."""
        known = self.memory.nearest(offer)
        if known is None or known.level > 3:
            return False
        return 1 / limit <= usd_per_whole_gpu(offer) / known.usd_per_gpu_hour <= limit

    def is_own_price(self, offer: Offer) -> bool:
        """Whether this very offer was verified at this price before."""
        known = self.memory.at_level(offer, 1) if offer.gpu else None
        return known is not None and is_same(offer.usd_per_hour, known.usd_per_hour)

    def is_confirmed(self, offer: Offer) -> bool:
        """Whether the price was seen in an earlier independent run, or a witness agrees."""
        share = SEEN_SHARE_MARKETPLACE if self.kind is ProviderClass.MARKETPLACE else SAME_SHARE
        if self.memory.was_seen_before(offer, share):
            return True
        told = self.witnesses.get(told_key(offer), [])
        return any(is_same(offer.usd_per_hour, price.usd_per_hour, WITNESS_SHARE) for price in told)

    def agrees_with_a_size(self, offer: Offer) -> bool:
        """Whether another size of the same machine costs about the same per GPU in this answer."""
        price = usd_per_whole_gpu(offer)
        others = [span for n, span in self.sizes.get(machine_key(offer), {}).items() if n != offer.gpu_count]
        return any(span[0] / SIZES_SAME <= price <= span[1] * SIZES_SAME for span in others)


# -- the rules ----------------------------------------------------------------------------------------


def identity(offer: Offer, case: Case) -> str | None:
    """The device is one of the catalogue, and the instance has a name."""
    del case
    if offer.gpu is None:
        return offer.reasons[0] if offer.reasons else f"unknown GPU {offer.gpu_raw!r}"
    return None if offer.instance_type.strip() else "the instance has no name"


def price_is_positive(offer: Offer, case: Case) -> str | None:
    """A price is a finite number above 0; 0 means that it is not offered."""
    del case
    if not offer.usd_per_hour.is_finite() or offer.usd_per_hour <= 0:
        return f"a price of {offer.usd_per_hour} is no price"
    return None


def hard_limits(offer: Offer | KnownPrice, case: Case | None) -> str | None:
    """No GPU's hour costs less than a cent or more than 40 USD (racks: 60 to 70)."""
    del case
    price = usd_per_whole_gpu(offer)
    high = HARD_HIGH_OF.get(offer.gpu or "", HARD_HIGH)
    if HARD_LOW <= price <= high:
        return None
    return f"{dollars(price)} USD per GPU-hour is outside {HARD_LOW:g} to {high:g}"


def absurd(offer: Offer, case: Case) -> str | None:
    """A price that is ten times off the market is a mistake."""
    return off_level(offer, case.level(offer), case.kind, (ABSURD_LOW, ABSURD_HIGH), "no price but a mistake")


def band(offer: Offer, case: Case) -> str | None:
    """A price is near what its class of sellers asked lately for this GPU."""
    level = case.level(offer)
    return off_level(offer, level, case.kind, _band_of(level), "too far from the market")


def _band_of(level: Level | None) -> tuple[float, float]:
    if level is None or level.is_own_class:
        return BAND_LOW, BAND_HIGH
    return WIDE_BAND_LOW, WIDE_BAND_HIGH


def off_level(
    one: Offer | KnownPrice,
    level: Level | None,
    kind: ProviderClass,
    limits: tuple[float, float],
    verdict: str,
) -> str | None:
    """Return by how much a price is off the level of the market, where that is beyond the limits."""
    if level is None:
        return None
    price = usd_per_whole_gpu(one)
    factor = price / level.usd_per_gpu_hour
    if limits[0] <= factor <= limits[1]:
        return None
    who = f"{kind}s" if level.is_own_class else "sellers of any class"
    return (
        f"{dollars(price)} USD per GPU-hour is {_times(factor)} the {dollars(level.usd_per_gpu_hour)} that "
        f"{who} ask ({level.observations} {tier_group(one.tier)} prices): {verdict}"
    )


def named_twice(offer: Offer, case: Case) -> str | None:
    """One offer has one price in an answer."""
    prices = sorted(case.twice.get(offer.id, set()))
    if not prices:
        return None
    return f"listed twice at different prices: {', '.join(dollars(price) for price in prices)} USD"


def sizes_agree(offer: Offer, case: Case) -> str | None:
    """Per GPU, sizes of one machine cost about the same: else per GPU and per instance were confused."""
    if offer.gpu_fraction is not None:
        return None
    others = {n: span for n, span in case.sizes.get(machine_key(offer), {}).items() if n != offer.gpu_count}
    if not others:
        return None
    low, high = SIZES[case.kind]
    cheapest = min(span[0] for span in others.values())
    dearest = max(span[1] for span in others.values())
    price = usd_per_whole_gpu(offer)
    if low * cheapest <= price <= high * dearest or case.is_remembered(offer, JUMP_LIST):
        return None
    around = dollars(cheapest) if is_same(cheapest, dearest) else f"{dollars(cheapest)} to {dollars(dearest)}"
    return (
        f"{dollars(price)} USD per GPU with {offer.gpu_count} GPUs, {around} in other sizes: "
        "per GPU or per instance?"
    )


def cheaper_with_commitment(offer: Offer, case: Case) -> str | None:
    """Spot and reserved prices are not above the on-demand price of the same instance."""
    prices = case.beside.get(instance_key(offer), {})
    if offer.tier is Tier.SPOT or offer.tier in RESERVED_TIERS:
        listed = prices.get(Tier.ON_DEMAND, [])
        if listed and offer.usd_per_hour > max(listed):
            price, other = dollars(offer.usd_per_hour), dollars(max(listed))
            return f"{offer.tier} at {price} is above on-demand at {other} USD"
    if offer.tier is Tier.ON_DEMAND and case.kind is not ProviderClass.MARKETPLACE:
        spot = prices.get(Tier.SPOT, [])
        if spot and offer.usd_per_hour < min(spot):
            price, other = dollars(offer.usd_per_hour), dollars(min(spot))
            return f"on-demand at {price} is below spot at {other} USD: exchanged?"
    return None


def community_is_real(offer: Offer, case: Case) -> str | None:
    """A community price far below the secure one is a placeholder, not an offer."""
    if offer.tier is not Tier.COMMUNITY:
        return None
    secure = case.beside.get(instance_key(offer), {}).get(Tier.SECURE, [])
    if not secure or float(offer.usd_per_hour) >= COMMUNITY_LOW * float(min(secure)):
        return None
    return (
        f"{dollars(offer.usd_per_hour)} beside {dollars(min(secure))} USD in the secure cloud: a placeholder?"
    )


def count_is_known(offer: Offer, case: Case) -> str | None:
    """An instance keeps its number of GPUs."""
    known = case.memory.counts_of(offer.instance_type)
    if len(known) != 1 or known <= case.counts.get(offer.instance_type, set()):
        return None  # a name that is sold in several sizes says nothing about them
    return f"{offer.instance_type} has {offer.gpu_count} GPUs here and had {next(iter(known))} before"


def rows_are_paired(offer: Offer, case: Case) -> str | None:
    """Prices that several offers seem to have exchanged are names and prices out of step."""
    if id(offer) not in case.exchanged:
        return None
    return (
        f"{dollars(offer.usd_per_hour)} USD was another offer's price before: names and prices out of step?"
    )


def unit_is_unchanged(offer: Offer, case: Case) -> str | None:
    """A price that moves by exactly its GPU count, by 100, or by the hours of a month changed its unit."""
    known = case.memory.nearest(offer)
    if known is None or known.level not in {1, 3}:  # other regions and sizes differ by such factors anyway
        return None
    ratio = usd_per_whole_gpu(offer) / known.usd_per_gpu_hour
    if 1 / case.jump_limit(offer) <= ratio <= case.jump_limit(offer) or case.agrees_with_a_size(offer):
        return None
    factors = {n: f"{text} for an hour" for n, text in UNIT_FACTORS.items()}
    factors[100.0] = "cents for dollars"
    if offer.gpu_count > 1:
        factors[float(offer.gpu_count)] = "per GPU for per instance"
    for factor, text in factors.items():
        if is_same(ratio, factor, UNIT_SHARE) or is_same(ratio, 1 / factor, UNIT_SHARE):
            return f"{_times(ratio)} {_what(known)}: {text}, or the reverse?"
    return None


def currency_is_unchanged(offer: Offer, case: Case) -> str | None:
    """A list price that moves by exactly an exchange rate may be in another currency."""
    known = case.memory.nearest(offer)
    if known is None or known.level > 1 or case.kind is ProviderClass.MARKETPLACE:
        return None
    ratio = usd_per_whole_gpu(offer) / known.usd_per_gpu_hour
    for currency, rate in case.usd_per_unit.items():
        if is_same(ratio, rate, FX_SHARE) or is_same(ratio, 1 / rate, FX_SHARE):
            return f"moved from {_what(known)} by the exchange rate of {currency}: another currency?"
    return None


def jump(offer: Offer, case: Case) -> str | None:
    """A large move waits until it is seen again, confirmed by a witness or accepted."""
    known = case.memory.nearest(offer)
    if known is None:
        return None
    ratio = usd_per_whole_gpu(offer) / known.usd_per_gpu_hour
    if abs(math.log(ratio)) <= math.log(case.jump_limit(offer)) or unit_is_unchanged(offer, case):
        return None
    return f"{_times(ratio)} {_what(known)}: waits to be confirmed"


def outdated(offer: Offer, case: Case) -> str | None:
    """An old price below a newer one of the same GPUs may come from a page that nobody updates."""
    if case.kind is not ProviderClass.NEOCLOUD:  # books and sixty regions move apart all the time
        return None
    own, same = case.memory.at_level(offer, 1), case.memory.at_level(offer, 3)
    if own is None or same is None or own.seen_at > same.seen_at - OUTDATED_AFTER:
        return None
    if float(offer.usd_per_hour) >= OUTDATED_SHARE * same.usd_per_hour or not case.is_own_price(offer):
        return None
    newer = f"{dollars(same.usd_per_hour)} USD were seen on {same.seen_at:%Y-%m-%d}"
    return f"as in {own.seen_at:%Y-%m}, and {newer}: an old list?"


def first_sight(offer: Offer, case: Case) -> str | None:
    """What nobody has seen before waits to be seen again."""
    if case.memory.nearest(offer) is not None:
        return None
    return f"first {offer.tier} price of this provider for this GPU: {_TO_BE_SEEN_AGAIN}"


def is_first_sight(offer: Offer) -> bool:
    """Whether a judged offer waits for nothing but to be seen again."""
    return len(offer.reasons) == 1 and offer.reasons[0].endswith(_TO_BE_SEEN_AGAIN)


# -- words and keys -----------------------------------------------------------------------------------


def machine_key(offer: Offer) -> tuple[object, ...]:
    """Return what is the same machine in several sizes."""
    place = region_key(offer.provider, offer.region)
    return (offer.gpu, offer.tier, place, offer.gpu_only, offer.commitment_days)


def instance_key(offer: Offer) -> tuple[object, ...]:
    """Return what is one instance under several tiers."""
    place = region_key(offer.provider, offer.region)
    return (offer.instance_type, offer.gpu, offer.gpu_count, offer.gpu_fraction, place, offer.gpu_only)


def told_key(one: Offer | KnownPrice) -> tuple[object, ...]:
    """Return what a witness and a source have in common; instances are spelled differently."""
    return (one.gpu, one.gpu_count, one.gpu_fraction, one.tier, region_key(one.provider, one.region))


def _times(factor: float) -> str:
    return f"{factor:.2f} times" if 0.1 <= factor < 10 else f"{factor:.3g} times"


def _what(known: Recollection) -> str:
    each = "" if known.level == 1 else " per GPU"
    price = known.usd_per_hour if known.level == 1 else known.usd_per_gpu_hour
    return f"{known.what} ({dollars(price)} USD{each} on {known.seen_at:%Y-%m-%d})"


def is_plausible(price: KnownPrice, market: Market, kinds: Mapping[str, ProviderClass]) -> bool:
    """Whether a price that people collected is near enough to the market to be leant on."""
    return price.gpu is not None and why_implausible(price, market, kinds) is None


def why_implausible(
    price: Offer | KnownPrice, market: Market, kinds: Mapping[str, ProviderClass]
) -> str | None:
    """Return why a price that people collected cannot be leant on; None where it can."""
    kind = kinds.get(price.provider, ProviderClass.NEOCLOUD)
    level = None if price.gpu is None else market.level(price.gpu, price.tier, kind)
    return hard_limits(price, None) or off_level(
        price, level, kind, _band_of(level), "too far from the market"
    )


RULES: Sequence[Rule] = (
    Rule("price", Verdict.REJECTED, price_is_positive, is_final=True, yields_to_own_price=False),
    Rule("hard-limits", Verdict.REJECTED, hard_limits, is_final=True),
    Rule("identity", Verdict.QUARANTINED, identity, is_final=True, yields_to_own_price=False),
    Rule("absurd", Verdict.REJECTED, absurd, is_final=True),
    Rule("band", Verdict.QUARANTINED, band),
    Rule("named-twice", Verdict.QUARANTINED, named_twice),
    Rule("sizes", Verdict.QUARANTINED, sizes_agree),
    Rule("commitment", Verdict.QUARANTINED, cheaper_with_commitment),
    Rule("community", Verdict.QUARANTINED, community_is_real, yields_to_own_price=False),
    Rule("count", Verdict.QUARANTINED, count_is_known),
    Rule("pairing", Verdict.QUARANTINED, rows_are_paired),
    Rule("unit", Verdict.QUARANTINED, unit_is_unchanged),
    Rule("currency", Verdict.QUARANTINED, currency_is_unchanged, is_confirmable=True),
    Rule("jump", Verdict.QUARANTINED, jump, is_confirmable=True),
    Rule("outdated", Verdict.QUARANTINED, outdated, is_confirmable=True, yields_to_own_price=False),
    Rule("first-sight", Verdict.QUARANTINED, first_sight, is_confirmable=True),
)
