"""Whether a price is near what sellers ask on the market; whether one that people collected is."""

from collections.abc import Mapping

from planner.rates import Tier
from pricing.offer import Offer
from pricing.provider import ProviderClass
from pricing.storage.memory import KnownPrice
from pricing.verification.case import Case, book_key
from pricing.verification.limits import (
    ABSURD_HIGH,
    ABSURD_LOW,
    BAND_HIGH,
    BAND_LOW,
    BOOK_ASKS,
    BOOK_HIGH,
    BOOK_LOW,
    HARD_HIGH,
    HARD_HIGH_OF,
    HARD_LOW,
    LEAP,
    LIKE_HIGH,
    LIKE_LOW,
    SPOT_HIGH,
    SPOT_LOW,
    WIDE_BAND_HIGH,
    WIDE_BAND_LOW,
)
from pricing.verification.market import Level, Market, tier_group, usd_per_whole_gpu
from pricing.verification.words import UNHEARD, dollars, times


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
    return off_level(offer, level, case.kind, (WIDE_BAND_LOW, WIDE_BAND_HIGH), UNHEARD)


def likeness(offer: Offer, case: Case) -> str | None:
    """Where nobody's price of a GPU is known, it costs about what others do for their memory bandwidth."""
    if offer.gpu is None or case.level(offer) is not None:
        return None
    why = _unlike(offer, usd_per_whole_gpu(offer), case)
    known = case.memory.nearest(offer)
    # Some are so cheap. Where the last price was not, the first step away may be that of many.
    if why and known is not None and case.is_remembered(offer, LEAP):
        return why if _unlike(offer, known.usd_per_gpu_hour, case) is None else None
    return why


def _unlike(offer: Offer, price: float, case: Case) -> str | None:
    """Return how unlike a price of the offer's GPU is to others, where it is. [USD/h]"""
    gpu = offer.gpu or ""
    listed = case.market.level(gpu, Tier.ON_DEMAND, case.kind) if offer.tier is Tier.SPOT else None
    if listed is not None and listed.is_own_class:
        factor = price / listed.usd_per_gpu_hour
        if not SPOT_LOW <= factor <= SPOT_HIGH:
            return (
                f"spot at {times(factor)} the {dollars(listed.usd_per_gpu_hour)} asked on demand: {UNHEARD}"
            )
    like = case.market.likeness(gpu, offer.tier, case.kind)
    if like is None or LIKE_LOW <= price / like.usd_per_gpu_hour <= LIKE_HIGH:
        return None
    usual = f"the {dollars(like.usd_per_gpu_hour)} USD of its memory bandwidth in {like.devices} other GPUs"
    return f"{times(price / like.usd_per_gpu_hour)} {usual}, and it has no market: {UNHEARD}"


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
        f"{dollars(price)} USD per GPU-hour is {times(factor)} the {dollars(level.usd_per_gpu_hour)} that "
        f"{who} ask ({level.observations} {tier_group(one.tier)} prices): {verdict}"
    )


def in_its_book(offer: Offer, case: Case) -> str | None:
    """An ask is near the middle of all asks for this GPU in the same answer."""
    book = case.books.get(book_key(offer))
    if book is None or book.asks < BOOK_ASKS or not case.is_of_asks:
        return None
    factor = usd_per_whole_gpu(offer) / book.middle
    if BOOK_LOW <= factor <= BOOK_HIGH:
        return None
    middle = dollars(book.middle)
    return (
        f"{times(factor)} the {middle} USD per GPU-hour in the middle of {book.asks} asks: nobody pays that"
    )


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
