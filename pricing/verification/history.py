"""Whether a price agrees with what the provider itself asked before."""

from planner.rates import Tier
from pricing.offer import Offer
from pricing.provider import ProviderClass
from pricing.verification.alike import SAME_SHARE, is_leap, is_same
from pricing.verification.case import Case, name_key
from pricing.verification.limits import (
    COLLECTED_SHARE_ASK,
    FX_SHARE,
    JUMP_ASK,
    JUMP_LIST,
    LEAP,
    OUTDATED_AFTER,
    OUTDATED_SHARE,
    UNIT_FACTORS,
    UNIT_SHARE,
)
from pricing.verification.market import usd_per_whole_gpu
from pricing.verification.recall import Recollection
from pricing.verification.words import TO_HAVE_STAYED, dollars, known_text, times

_FIRST, _UNKNOWN = "first", "no own run knows it yet"


def count_is_known(offer: Offer, case: Case) -> str | None:
    """An instance keeps its number of GPUs."""
    known = case.memory.counts_of(offer)
    here = case.counts.get(name_key(offer), set())
    if len(known) != 1 or known <= here:
        return None  # a name that is sold in several sizes says nothing about them
    return f"{offer.instance_type} has {offer.gpu_count} GPUs here and had {next(iter(known))} before"


def unit_is_unchanged(offer: Offer, case: Case) -> str | None:
    """A price that moves by exactly its GPU count, by 100, or by the hours of a month changed its unit."""
    known = case.memory.nearest(offer) or case.memory.waited(offer)
    if known is None or known.level not in {1, 3}:  # other regions and sizes differ by such factors anyway
        return None
    if case.is_of_asks and known.level > 1:  # other hosts
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
            return f"{times(ratio)} {known_text(known)}: {text}, or the reverse?"
    return None


def currency_is_unchanged(offer: Offer, case: Case) -> str | None:
    """A price that moves by exactly an exchange rate may be in another currency."""
    ratio = case.own_ratio(offer) if case.is_of_asks else case.list_ratio(offer)
    known = case.memory.nearest(offer)
    if ratio is None or known is None or id(offer) in case.mended:
        return None
    for currency, rate in case.usd_per_unit.items():
        if is_same(ratio, rate, FX_SHARE) or is_same(ratio, 1 / rate, FX_SHARE):
            return f"moved from {known_text(known)} by the exchange rate of {currency}: another currency?"
    return None


def leap(offer: Offer, case: Case) -> str | None:
    """No posted price nearly doubles or halves, in steps neither; nor is a new one so far from all others."""
    known = case.memory.nearest(offer)
    if known is None or case.is_restless(offer):
        return None
    if known.level == 1 and not is_leap(usd_per_whole_gpu(offer) / known.usd_per_gpu_hour):
        known = case.memory.furthest(offer, known) or known  # it may have gone there in steps
    price = usd_per_whole_gpu(offer)
    ratio = price / known.usd_per_gpu_hour
    if known.level == 1:
        is_far, why = is_leap(ratio), "no posted price ever moved so far"
    else:
        is_beyond = not known.span[0] / LEAP < price < known.span[1] * LEAP
        # Terms may be of any length.
        is_far = (is_beyond and offer.tier is not Tier.RESERVED_OTHER) or _moved_with_all(offer, case)
        why = "too far from this provider's own"
    if not is_far or unit_is_unchanged(offer, case):
        return None
    return f"{times(ratio)} {known_text(known)}: {why}"


def _moved_with_all(offer: Offer, case: Case) -> bool:
    """Whether most of the list moved so far by one factor, and this with it: then it is none of a kind."""
    ratio = case.list_ratio(offer)
    return case.scaled is not None and is_leap(case.scaled.low) and ratio is not None and is_leap(ratio)


def swing(offer: Offer, case: Case) -> str | None:
    """What is far from what is known waits for days, where neither `unit` nor `leap` says more."""
    known = case.memory.nearest(offer)
    if known is None:
        return None
    ratio = usd_per_whole_gpu(offer) / known.usd_per_gpu_hour
    if not is_leap(ratio) or unit_is_unchanged(offer, case) or leap(offer, case):
        return None
    return f"{times(ratio)} {known_text(known)}: {TO_HAVE_STAYED}"


def jump(offer: Offer, case: Case) -> str | None:
    """A large move waits until it is seen again, confirmed by a witness or accepted; `leap` has more."""
    known = case.memory.nearest(offer)
    if known is None:
        return None
    ratio = usd_per_whole_gpu(offer) / known.usd_per_gpu_hour
    limit = JUMP_ASK if case.is_of_asks else JUMP_LIST
    if 1 / limit <= ratio <= limit or is_leap(ratio):
        return None
    return f"{times(ratio)} {known_text(known)}: waits to be confirmed"


def is_of_now(offer: Offer, case: Case) -> str | None:
    """What goes back to a price of long ago, or with most others, comes from a page that was replaced."""
    if case.old_page is not None and not case.is_own_price(offer):
        return case.old_page
    if id(offer) not in case.returned or case.is_of_asks:
        return None
    return f"back at an earlier {dollars(offer.usd_per_hour)} USD: an old page?"


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
    if is_leap(ratio):
        return None  # leap, swing or unit says so
    if (known.level <= 2 or not case.is_of_asks) and _is_collected_price(offer, known, case):
        return None
    return f"{times(ratio)} {known_text(known)}, {_UNKNOWN}: {TO_HAVE_STAYED}"


def _is_collected_price(offer: Offer, known: Recollection, case: Case) -> bool:
    """Whether a price is the middle of what is collected, if that is asked anywhere, or a late one of it."""
    share = COLLECTED_SHARE_ASK if case.is_restless(offer) and known.level <= 2 else SAME_SHARE
    is_middle = known.is_asked and is_same(usd_per_whole_gpu(offer), known.usd_per_gpu_hour, share)
    return is_middle or case.memory.shows(offer, known)


def alone(offer: Offer, case: Case) -> str | None:
    """A first price waits for days where something speaks against it: the market or a catalogue."""
    if case.memory.nearest(offer) is not None:
        return None
    told = case.witnesses.contradicting(offer)
    if told is not None:
        word = f"{told.witness} says {dollars(told.usd_per_hour)} USD"
        return f"{_first(offer)}, and {word}: {TO_HAVE_STAYED}"
    level = case.level(offer)
    if level is None:
        return None
    factor = usd_per_whole_gpu(offer) / level.usd_per_gpu_hour
    if not is_leap(factor):
        return None
    market = f"{times(factor)} the {dollars(level.usd_per_gpu_hour)} of the market"
    return f"{_first(offer)}, and {market}: {TO_HAVE_STAYED}"


def first_sight(offer: Offer, case: Case) -> str | None:
    """What nobody has seen before waits to be seen again."""
    if case.memory.nearest(offer) is not None or alone(offer, case) is not None:
        return None
    return f"{_first(offer)}: waits to be seen again"


def _first(offer: Offer) -> str:
    return f"{_FIRST} {offer.tier} price of this provider for this GPU"


def is_first_sight(offer: Offer, *, is_ask: bool = False) -> bool:
    """Whether a judged offer waits for nothing but to be seen again, an ask also beside collected ones."""
    if len(offer.reasons) != 1:
        return False
    return offer.reasons[0].startswith(f"{_FIRST} ") or (is_ask and _UNKNOWN in offer.reasons[0])
