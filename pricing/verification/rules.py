"""
The named rules by which a price is believed or not, each with a reason that a person understands.

Every rule, its threshold and a worked example: docs/verification.md.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from planner.rates import RESERVED_TIERS, Tier
from pricing.offer import Offer, Verdict
from pricing.provider import ProviderClass
from pricing.storage.memory import KnownPrice
from pricing.verification.case import Case, Confirmation, book_key, instance_key, machine_key, name_key
from pricing.verification.limits import (
    ABSURD_HIGH,
    ABSURD_LOW,
    BAND_HIGH,
    BAND_LOW,
    BOOK_ASKS,
    BOOK_HIGH,
    BOOK_LOW,
    BOOK_MOVE,
    COLLECTED_SHARE_ASK,
    COMMUNITY_LOW,
    FX_SHARE,
    HARD_HIGH,
    HARD_HIGH_OF,
    HARD_LOW,
    JUMP_LIST,
    LEAP,
    OUTDATED_AFTER,
    OUTDATED_SHARE,
    UNIT_FACTORS,
    UNIT_SHARE,
    WIDE_BAND_HIGH,
    WIDE_BAND_LOW,
)
from pricing.verification.market import Level, Market, dollars, tier_group, usd_per_whole_gpu
from pricing.verification.recall import SAME_SHARE, Recollection, is_same

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
_FIRST = "first"
_TO_HAVE_STAYED = "waits until it has stayed for days"


@dataclass(frozen=True, slots=True)
class Rule:
    """One check: its name, what failing it means, and what makes up for it."""

    name: str
    verdict: Verdict
    check: Callable[[Offer, Case], str | None]
    confirmation: Confirmation = Confirmation.PERSON
    # This very price was verified before, by a run, by a person, or stands in the collection: it is known.
    yields_to_own_price: bool = True
    # Nothing else is worth saying: no price, no device, or an absurd price.
    is_final: bool = False


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
    if level is None or not level.is_own_class:
        return None
    return off_level(offer, level, case.kind, (BAND_LOW, BAND_HIGH), "too far from the market")


def any_class(offer: Offer, case: Case) -> str | None:
    """Where its class has too few prices, a price is within wide limits of what all classes ask."""
    level = case.level(offer)
    if level is None or level.is_own_class:
        return None
    limits = WIDE_BAND_LOW, WIDE_BAND_HIGH
    return off_level(offer, level, case.kind, limits, "waits until it has stayed for days")


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
        # Asks of another day say little: the spot asks of a book lie up to a fifth above its earlier ones.
        in_force = None if case.is_ask(offer) else case.on_demand_in_force(offer)
        if in_force is not None and float(offer.usd_per_hour) > in_force.usd_per_hour * (1 + SAME_SHARE):
            price = dollars(offer.usd_per_hour)
            return f"{offer.tier} at {price} is above on-demand, {_what(in_force)}"
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


def answer_is_sound(offer: Offer, case: Case) -> str | None:
    """Of an answer whose other changes are mostly impossible no change is taken."""
    if case.doubt is None or case.own_ratio(offer) is None:
        return None
    wrong, changed, _ = case.doubt
    return f"{wrong} of {changed} changed prices of this answer are impossible or out of step: so may this be"


def size_is_free(offer: Offer, case: Case) -> str | None:
    """A size that is a plain multiple of one that waits waits with it."""
    if offer.gpu_fraction is not None or case.is_restless(offer):
        return None
    each = usd_per_whole_gpu(offer)
    for count, other in case.held_sizes.get(book_key(offer), ()):
        if count != offer.gpu_count and is_same(each, other):
            return f"{dollars(each)} USD per GPU as {count} of them, whose price waits: it waits with that"
    return None


def unit_is_unchanged(offer: Offer, case: Case) -> str | None:
    """A price that moves by exactly its GPU count, by 100, or by the hours of a month changed its unit."""
    known = case.memory.nearest(offer) or case.memory.waited(offer)
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
    """No posted price nearly doubles or halves, nor is a new one so far from all others of the provider."""
    if case.is_ask(offer) or offer.tier is Tier.SPOT:
        return None
    known = case.memory.nearest(offer)
    if known is None or known.level == 1:
        return _leapt(offer, case, "no posted price ever moved so far")
    if offer.tier is Tier.RESERVED_OTHER:  # terms of any length
        return None
    if known.level == 2 and case.kind is ProviderClass.HYPERSCALER:  # sixty regions
        return None
    price = usd_per_whole_gpu(offer)
    if known.span[0] / LEAP < price < known.span[1] * LEAP or unit_is_unchanged(offer, case):
        return None
    return f"{_times(price / known.usd_per_gpu_hour)} {_what(known)}: too far from this provider's own"


def swing(offer: Offer, case: Case) -> str | None:
    """An ask, a spot price or a new offer at twice or half of what is known waits for days."""
    known = case.memory.nearest(offer)
    if known is not None and known.level > 1:
        ratio = usd_per_whole_gpu(offer) / known.usd_per_gpu_hour
        is_said = unit_is_unchanged(offer, case) or leap(offer, case)
        is_far = not 1 / LEAP < ratio < LEAP and not is_said
        return f"{_times(ratio)} {_what(known)}: waits until it has stayed for days" if is_far else None
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
    limit = case.jump_limit(offer)
    if 1 / limit <= ratio <= limit or not 1 / LEAP < ratio < LEAP or unit_is_unchanged(offer, case):
        return None
    return f"{_times(ratio)} {_what(known)}: waits to be confirmed"


def in_its_book(offer: Offer, case: Case) -> str | None:
    """An ask is near the middle of all asks for this GPU in the same answer."""
    book = case.books.get(book_key(offer))
    if book is None or book.asks < BOOK_ASKS or not case.is_ask(offer):
        return None
    factor = usd_per_whole_gpu(offer) / book.middle
    if BOOK_LOW <= factor <= BOOK_HIGH:
        return None
    middle = dollars(book.middle)
    return (
        f"{_times(factor)} the {middle} USD per GPU-hour in the middle of {book.asks} asks: nobody pays that"
    )


def book_moved(offer: Offer, case: Case) -> str | None:
    """Hosts set their prices one by one: the middle of a book moves far only where it was read wrong."""
    moved = case.middle_move
    if moved is None or not case.is_ask(offer) or 1 / BOOK_MOVE <= moved <= BOOK_MOVE:
        return None
    return (
        f"in the middle all asks moved {_times(moved)} what they were: waits until it has stayed for a week"
    )


def is_of_now(offer: Offer, case: Case) -> str | None:
    """What goes back to a price of long ago, or with most others, comes from a page that was replaced."""
    if case.old_page is not None and not case.is_own_price(offer):
        return case.old_page
    if id(offer) not in case.returned or case.is_ask(offer):
        return None
    return f"back at an earlier {dollars(offer.usd_per_hour)} USD: an old page?"


def mass_move(offer: Offer, case: Case) -> str | None:
    """Most prices of a list do not move in one night."""
    ratio = case.own_ratio(offer)
    if case.moved is None or case.is_ask(offer) or ratio is None or is_same(ratio, 1.0):
        return None
    return f"{case.moved[0]} of {case.moved[1]} prices of the list moved at once: waits to be confirmed"


def one_factor(offer: Offer, case: Case) -> str | None:
    """What moves most prices by one and the same factor is rather a unit, currency or tax than the market."""
    if case.scaled is None:
        return None
    moved, known, factor = case.scaled
    ratio = case.own_ratio(offer)
    # Of a list, what did not move is the price it was; of asks, all of the answer are of one unit.
    if not case.is_ask(offer) and (ratio is None or is_same(ratio, 1.0)):
        return None
    what = "asks" if case.is_ask(offer) else "prices"
    return (
        f"{moved} of {known} known {what} moved by one factor, {_times(factor)}: "
        "another unit, currency or tax?"
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


def not_collected(offer: Offer, case: Case) -> str | None:
    """Until own runs have known an offer, it costs what the bundled prices say, or waits for days."""
    known = case.memory.nearest(offer)
    if known is None or not known.is_collected:
        return None
    ratio = usd_per_whole_gpu(offer) / known.usd_per_gpu_hour
    if not 1 / LEAP < ratio < LEAP:
        return None  # leap, swing or unit says so
    share = COLLECTED_SHARE_ASK if case.is_restless(offer) else SAME_SHARE
    if is_same(ratio, 1.0, share) or case.memory.shows(offer, known):
        return None
    return f"{_times(ratio)} {_what(known)}, no own run knows it yet: {_TO_HAVE_STAYED}"


def alone(offer: Offer, case: Case) -> str | None:
    """A first price waits for days where something speaks against it: the market or a catalogue."""
    if case.memory.nearest(offer) is not None:
        return None
    told = case.contradicting(offer)
    if told is not None:
        word = f"{told.witness} says {dollars(told.usd_per_hour)} USD"
        return f"{_first(offer)}, and {word}: {_TO_HAVE_STAYED}"
    level = case.level(offer)
    if level is None:
        return None
    factor = usd_per_whole_gpu(offer) / level.usd_per_gpu_hour
    if 1 / LEAP < factor < LEAP:
        return None
    market = f"{_times(factor)} the {dollars(level.usd_per_gpu_hour)} of the market"
    return f"{_first(offer)}, and {market}: {_TO_HAVE_STAYED}"


def first_sight(offer: Offer, case: Case) -> str | None:
    """What nobody has seen before waits to be seen again."""
    if case.memory.nearest(offer) is not None or alone(offer, case) is not None:
        return None
    return f"{_first(offer)}: waits to be seen again"


def _first(offer: Offer) -> str:
    return f"{_FIRST} {offer.tier} price of this provider for this GPU"


def is_first_sight(offer: Offer) -> bool:
    """Whether a judged offer waits for nothing but to be seen again."""
    return len(offer.reasons) == 1 and offer.reasons[0].startswith(f"{_FIRST} ")


# -- words ---------------------------------------------------------------------------------------------


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
    if level is not None and not level.is_own_class:
        level = None  # of a V100, neoclouds ask a twentieth of what hyperscalers do
    limits = BAND_LOW, BAND_HIGH
    return hard_limits(price, None) or off_level(price, level, kind, limits, "too far from the market")


RULES: Sequence[Rule] = (
    Rule(
        "price",
        Verdict.REJECTED,
        price_is_positive,
        Confirmation.NOTHING,
        is_final=True,
        yields_to_own_price=False,
    ),
    Rule("hard-limits", Verdict.REJECTED, hard_limits, is_final=True),
    Rule(
        "identity",
        Verdict.QUARANTINED,
        identity,
        Confirmation.NOTHING,
        is_final=True,
        yields_to_own_price=False,
    ),
    Rule("absurd", Verdict.REJECTED, absurd, is_final=True),
    Rule("band", Verdict.QUARANTINED, band),
    Rule("any-class", Verdict.QUARANTINED, any_class, Confirmation.LONG),
    Rule("book", Verdict.QUARANTINED, in_its_book),
    Rule("named-twice", Verdict.QUARANTINED, named_twice),
    Rule("sizes", Verdict.QUARANTINED, sizes_agree),
    Rule("commitment", Verdict.QUARANTINED, cheaper_with_commitment),
    Rule("community", Verdict.QUARANTINED, community_is_real, yields_to_own_price=False),
    Rule("count", Verdict.QUARANTINED, count_is_known),
    Rule("pairing", Verdict.QUARANTINED, rows_are_paired),
    Rule("suspect-answer", Verdict.QUARANTINED, answer_is_sound, Confirmation.WITNESS),
    Rule("held-size", Verdict.QUARANTINED, size_is_free, Confirmation.WITNESS),
    Rule("unit", Verdict.QUARANTINED, unit_is_unchanged, Confirmation.WITNESS),
    Rule("leap", Verdict.QUARANTINED, leap, Confirmation.WITNESS),
    Rule("swing", Verdict.QUARANTINED, swing, Confirmation.LONG),
    Rule("currency", Verdict.QUARANTINED, currency_is_unchanged, Confirmation.LONG),
    Rule("one-factor", Verdict.QUARANTINED, one_factor, Confirmation.LONG),
    Rule("book-moved", Verdict.QUARANTINED, book_moved, Confirmation.WEEK),
    Rule("jump", Verdict.QUARANTINED, jump, Confirmation.ONCE),
    Rule("stale-source", Verdict.QUARANTINED, is_of_now, Confirmation.WEEK),
    Rule("mass-move", Verdict.QUARANTINED, mass_move, Confirmation.ONCE),
    Rule("outdated", Verdict.QUARANTINED, outdated, Confirmation.ONCE, yields_to_own_price=False),
    Rule("collected", Verdict.QUARANTINED, not_collected, Confirmation.LONG),
    Rule("alone", Verdict.QUARANTINED, alone, Confirmation.LONG),
    Rule("first-sight", Verdict.QUARANTINED, first_sight, Confirmation.ONCE),
)
