"""
The named rules by which a price is believed or not, each with a reason that a person understands.

Every rule, its threshold and a worked example: docs/verification.md.
"""

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from decimal import Decimal
from enum import IntEnum

from planner.rates import RESERVED_TIERS, Tier
from pricing.market import Level, Market, dollars, tier_group, usd_per_whole_gpu
from pricing.memory import KnownPrice
from pricing.offer import Offer, Verdict
from pricing.provider import ProviderClass
from pricing.recall import SAME_SHARE, Memory, Recollection, is_same
from pricing.regions import region_key

# Limits of any GPU's hour, and of a slice scaled up: the cheapest known price is 0.01 (a GTX 1050 Ti), the
# dearest of a card 23.33 (an H100 of Azure's in South Africa). Source: docs/verification.md, "hard-limits".
# [USD/h]
HARD_LOW, HARD_HIGH = 0.01, 40.0
# Racks list at up to 54.08: Azure GB200, Brazil South, 2026-06-18. Source: prices.azure.com,
# ND128isr_NDR_GB200_v6.
HARD_HIGH_OF = {"GB200": 60.0, "GB300": 70.0}
# Against the middle of the own class: 1.3 % of the bundled prices lie outside. Source: docs/verification.md,
# "band".
BAND_LOW, BAND_HIGH = 0.3, 3.0
# Where the class has too few prices and all classes are taken together. Source: own choice.
WIDE_BAND_LOW, WIDE_BAND_HIGH = 0.2, 5.0
# So far from the middle a price is no price but a mistake. Source: own choice.
ABSURD_LOW, ABSURD_HIGH = 0.1, 10.0
# Marketplaces that post a list; the others show their hosts' asks. Source: docs/verification.md, "Lists and
# asks".
POSTED_LISTS = frozenset({"runpod", "cudo", "novita", "packet-ai", "salad", "gpuhub"})
# Largest move that needs no confirmation, as a factor: 0.4 % of 16,781 successive pairs of list and spot
# prices move further, 5.7 % of 13,372 pairs of asks. Source: docs/verification.md, "jump".
JUMP_LIST, JUMP_ASK = 1.5, 1.9
# The largest true move of a list price in these pairs is 1.86, the smallest confusion of units is 2; the
# seven list prices that moved further were errors of their source. Source: docs/verification.md, "leap".
LEAP = 1.9
# Asks of one GPU and tier lie within this of their median: 98 % of 12,904. Source: docs/verification.md,
# "book".
BOOK_LOW, BOOK_HIGH = 0.38, 2.38
# With fewer asks there is no middle to speak of. Source: own choice.
BOOK_ASKS = 5
# Between sizes of one machine, per GPU, against the cheapest and the dearest other size. Per GPU for per
# instance is a factor of 2 at least. Discounts reach 7 % (Lambda); hosts of hyperscalers differ (Azure, one
# T4 0.526, four 4.352); asks of other sizes are other machines (Vast.ai, 1x 1.74, 8x 4.39 per GPU).
# Source: docs/verification.md, "sizes".
SIZES = {
    ProviderClass.NEOCLOUD: (0.55, 1.8),
    ProviderClass.HYPERSCALER: (0.4, 2.5),
    ProviderClass.MARKETPLACE: (0.3, 3.3),
    ProviderClass.WITNESS: (0.3, 3.3),
}
SIZES_SAME = 1.25
# True community prices lie above 0.45 of the secure one, placeholders at 0.21. Source: docs/verification.md,
# "community".
COMMUNITY_LOW = 0.3
# How closely a ratio must match a confusion of units to be called one. Source: own choice.
UNIT_SHARE = 0.03
# Hours of a day, of a month as providers count it, of a year. Source: Vultr's and DigitalOcean's monthly
# prices are 672 to 744 hourly ones.
UNIT_FACTORS = {
    24.0: "a day",
    672.0: "a month",
    730.0: "a month",
    744.0: "a month",
    8760.0: "a year",
}
# Exchange rates move by about this much from one day to the next. Source: the European Central Bank's daily
# reference rates.
FX_SHARE = 0.002
# An own price this much older than a dearer one of the same GPUs may be a page served again: DigitalOcean, 8x
# H100 at 23.92 of 2025 beside 35.28 of 2026. Source: docs/verification.md, "outdated".
OUTDATED_AFTER, OUTDATED_SHARE = timedelta(days=30), 0.8
# A witness that is older than the source confirms it within this, if it is not nearer to the price before; it
# never overrules. Source: own choice.
WITNESS_SHARE = 0.15
# So often and so long a price must have been seen where one repetition proves nothing. Source: own choice;
# see docs/verification.md, "Confirmation".
LONG_RUNS, LONG_SPAN = 3, timedelta(days=3)
# Between two runs an ask has moved: half of the daily moves are smaller. Source: docs/verification.md,
# "jump".
SEEN_SHARE_ASK = 0.2
# Earlier prices within this tell which offers took over the price of another. Source: own choice.
LATELY = timedelta(days=14)
_TO_BE_SEEN_AGAIN = "waits to be seen again"


class Confirmation(IntEnum):
    """What shows that the world changed and not our reading, beside a person's word."""

    PERSON = 0  # nothing else
    WITNESS = 1  # a catalogue of others agrees
    LONG = 2  # or the price was seen in several earlier runs over days
    ONCE = 3  # or in one earlier, independent run


@dataclass(frozen=True, slots=True)
class Rule:
    """One check: its name, what failing it means, and what makes up for it."""

    name: str
    verdict: Verdict
    check: Callable[[Offer, "Case"], str | None]
    confirmation: Confirmation = Confirmation.PERSON
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
    counts: Mapping[tuple[object, ...], set[int]] = field(default_factory=dict)
    twice: Mapping[str, set[Decimal]] = field(default_factory=dict)
    exchanged: frozenset[int] = frozenset()  # id() of offers whose prices look mis-paired
    books: Mapping[tuple[object, ...], Sequence[float]] = field(default_factory=dict)  # asks per GPU [USD/h]
    moved: str | None = None  # why all changed prices of this run wait

    def level(self, offer: Offer) -> Level | None:
        """Return the market level of the offer's GPU."""
        return None if offer.gpu is None else self.market.level(offer.gpu, offer.tier, self.kind)

    def is_ask(self, offer: Offer) -> bool:
        """Whether the price is one that hosts ask, not one of a posted list."""
        return self.kind is ProviderClass.MARKETPLACE and offer.provider not in POSTED_LISTS

    def jump_limit(self, offer: Offer) -> float:
        """Return the largest factor by which a price of this kind moves unnoticed."""
        return JUMP_ASK if self.is_ask(offer) else JUMP_LIST

    def is_remembered(self, offer: Offer, limit: float) -> bool:
        """Whether the provider's own earlier price of these GPUs is within a factor."""
        known = self.memory.nearest(offer)
        if known is None or known.level > 3:
            return False
        return 1 / limit <= usd_per_whole_gpu(offer) / known.usd_per_gpu_hour <= limit

    def own_ratio(self, offer: Offer) -> float | None:
        """Return by which factor the offer's own last price moved, None where there is none."""
        known = self.memory.at_level(offer, 1)
        return None if known is None else usd_per_whole_gpu(offer) / known.usd_per_gpu_hour

    def is_own_price(self, offer: Offer) -> bool:
        """Whether this very offer was verified at this price before."""
        known = self.memory.at_level(offer, 1) if offer.gpu else None
        return known is not None and is_same(offer.usd_per_hour, known.usd_per_hour)

    def confirmed(self, offer: Offer) -> Confirmation | None:
        """Return the hardest confirmation that a price has; it serves where an easier one is asked too."""
        if self.witnesses_of(offer):
            return Confirmation.WITNESS
        seen = self.memory.sightings(offer, SEEN_SHARE_ASK if self.is_ask(offer) else SAME_SHARE)
        if seen.runs >= LONG_RUNS and seen.span >= LONG_SPAN:
            return Confirmation.LONG
        return Confirmation.ONCE if seen.runs else None

    def witnesses_of(self, offer: Offer) -> int:
        """Return how many catalogues of others agree, and rather with this price than with the one before."""
        usd, ratio = float(offer.usd_per_hour), self.own_ratio(offer)
        agreeing = set()
        for told in self.witnesses.get(told_key(offer), []):
            is_near = is_same(usd, told.usd_per_hour, WITNESS_SHARE)
            if is_near and (ratio is None or _is_nearer(float(told.usd_per_hour), usd, usd / ratio)):
                agreeing.add(told.witness)
        return len(agreeing)

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
    is_posted = case.kind is ProviderClass.MARKETPLACE and not case.is_ask(offer)
    low, high = SIZES[ProviderClass.NEOCLOUD if is_posted else case.kind]
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
    if offer.tier is Tier.ON_DEMAND and not case.is_ask(offer):
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
    here = case.counts.get(name_key(offer), set())
    if len(known) != 1 or known <= here:
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
    if case.is_ask(offer) and known.level > 1:  # other hosts
        return None
    ratio = usd_per_whole_gpu(offer) / known.usd_per_gpu_hour
    if 1 / JUMP_LIST <= ratio <= JUMP_LIST or case.agrees_with_a_size(offer):
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
    """A price that moves by exactly an exchange rate may be in another currency."""
    ratio = case.own_ratio(offer)
    if ratio is None:
        return None
    for currency, rate in case.usd_per_unit.items():
        if is_same(ratio, rate, FX_SHARE) or is_same(ratio, 1 / rate, FX_SHARE):
            known = case.memory.at_level(offer, 1)
            assert known is not None
            return f"moved from {_what(known)} by the exchange rate of {currency}: another currency?"
    return None


def leap(offer: Offer, case: Case) -> str | None:
    """No posted price nearly doubles or halves: not one of 16,781 true ones did."""
    if case.is_ask(offer) or offer.tier is Tier.SPOT:
        return None
    return _leapt(offer, case, "no posted price ever moved so far")


def swing(offer: Offer, case: Case) -> str | None:
    """An ask or a spot price that doubles or halves waits until it has stayed for days."""
    if not case.is_ask(offer) and offer.tier is not Tier.SPOT:
        return None
    return _leapt(offer, case, "waits until it has stayed for days")


def _leapt(offer: Offer, case: Case, what: str) -> str | None:
    ratio = case.own_ratio(offer)
    if ratio is None or 1 / LEAP < ratio < LEAP or unit_is_unchanged(offer, case):
        return None
    known = case.memory.at_level(offer, 1)
    assert known is not None
    return f"{_times(ratio)} {_what(known)}: {what}"


def jump(offer: Offer, case: Case) -> str | None:
    """A large move waits until it is seen again, confirmed by a witness or accepted."""
    known = case.memory.nearest(offer)
    if known is None:
        return None
    ratio = usd_per_whole_gpu(offer) / known.usd_per_gpu_hour
    limit = LEAP if known.level == 1 else math.inf  # beyond it is a leap
    if abs(math.log(ratio)) <= math.log(case.jump_limit(offer)) or unit_is_unchanged(offer, case):
        return None
    if not 1 / limit < ratio < limit:
        return None
    return f"{_times(ratio)} {_what(known)}: waits to be confirmed"


def in_its_book(offer: Offer, case: Case) -> str | None:
    """An ask is near the middle of all asks for this GPU in the same answer."""
    asks = case.books.get(book_key(offer), ())
    if not case.is_ask(offer) or len(asks) < BOOK_ASKS:
        return None
    factor = usd_per_whole_gpu(offer) / statistics.median(asks)
    if BOOK_LOW <= factor <= BOOK_HIGH:
        return None
    middle = dollars(statistics.median(asks))
    return (
        f"{_times(factor)} the {middle} USD per GPU-hour in the middle of {len(asks)} asks: nobody pays that"
    )


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


def book_key(offer: Offer) -> tuple[object, ...]:
    """Return whose asks are compared: those for one GPU in one tier, whatever the size and place."""
    return (offer.gpu, offer.tier, offer.gpu_only)


def instance_key(offer: Offer) -> tuple[object, ...]:
    """Return what is one instance under several tiers."""
    place = region_key(offer.provider, offer.region)
    return (offer.instance_type, offer.gpu, offer.gpu_count, offer.gpu_fraction, place, offer.gpu_only)


def name_key(offer: Offer) -> tuple[object, ...]:
    """Return what sells one name in one place."""
    return (offer.instance_type, offer.tier, region_key(offer.provider, offer.region))


def told_key(one: Offer | KnownPrice) -> tuple[object, ...]:
    """Return what a witness and a source have in common; instances are spelled differently."""
    return (one.gpu, one.gpu_count, one.gpu_fraction, one.tier, region_key(one.provider, one.region))


def _is_nearer(told: float, now: float, before: float) -> bool:
    """Whether a price is at least as near to the present one as to the one before, in factors."""
    return abs(math.log(told / now)) <= abs(math.log(told / before))


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
    Rule("book", Verdict.QUARANTINED, in_its_book),
    Rule("named-twice", Verdict.QUARANTINED, named_twice),
    Rule("sizes", Verdict.QUARANTINED, sizes_agree),
    Rule("commitment", Verdict.QUARANTINED, cheaper_with_commitment),
    Rule("community", Verdict.QUARANTINED, community_is_real, yields_to_own_price=False),
    Rule("count", Verdict.QUARANTINED, count_is_known),
    Rule("pairing", Verdict.QUARANTINED, rows_are_paired),
    Rule("unit", Verdict.QUARANTINED, unit_is_unchanged, Confirmation.WITNESS),
    Rule("leap", Verdict.QUARANTINED, leap, Confirmation.WITNESS),
    Rule("swing", Verdict.QUARANTINED, swing, Confirmation.LONG),
    Rule("currency", Verdict.QUARANTINED, currency_is_unchanged, Confirmation.LONG),
    Rule("jump", Verdict.QUARANTINED, jump, Confirmation.ONCE),
    Rule("outdated", Verdict.QUARANTINED, outdated, Confirmation.ONCE, yields_to_own_price=False),
    Rule("first-sight", Verdict.QUARANTINED, first_sight, Confirmation.ONCE),
)
