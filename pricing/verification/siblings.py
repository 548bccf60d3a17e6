"""Whether a price agrees with the others of the same answer."""

from collections.abc import Iterable
from decimal import Decimal

from planner.rates import RESERVED_TIERS, Tier
from pricing.offer import Offer
from pricing.provider import ProviderClass
from pricing.verification.alike import SAME_SHARE, is_same
from pricing.verification.case import Case, book_key, machine_key
from pricing.verification.limits import BOOK_MOVE, COMMUNITY_LOW, JUMP_LIST
from pricing.verification.market import usd_per_whole_gpu
from pricing.verification.recall import Recollection
from pricing.verification.words import dollars, known_text, times

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
    is_posted = case.kind is ProviderClass.MARKETPLACE and not case.is_of_asks
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
    if offer.tier is Tier.SPOT or offer.tier in RESERVED_TIERS:
        listed = _prices(case.listed(offer, Tier.ON_DEMAND))
        if listed and offer.usd_per_hour > max(listed):
            price, other = dollars(offer.usd_per_hour), dollars(max(listed))
            return f"{offer.tier} at {price} is above on-demand at {other} USD"
        # Asks of another day say little: the spot asks of a book lie up to a fifth above its earlier ones.
        in_force = None if case.is_of_asks else case.in_force(offer, Tier.ON_DEMAND)
        if in_force is not None and float(offer.usd_per_hour) > in_force.usd_per_hour * (1 + SAME_SHARE):
            price = dollars(offer.usd_per_hour)
            return f"{offer.tier} at {price} is above on-demand, {known_text(in_force)}"
        if in_force is not None and _is_new_there(offer, in_force, case):
            price = dollars(offer.usd_per_hour)
            return f"{offer.tier} at {price} is the price on demand, {known_text(in_force)}: exchanged?"
    if offer.tier is Tier.ON_DEMAND and not case.is_of_asks:
        spot = _prices(case.listed(offer, Tier.SPOT))
        if spot and offer.usd_per_hour < min(spot):
            price, other = dollars(offer.usd_per_hour), dollars(min(spot))
            return f"on-demand at {price} is below spot at {other} USD: exchanged?"
        return _at_spot_in_force(offer, case) or _at_a_term_in_force(offer, case)
    return None


def _is_new_there(offer: Offer, on_demand: Recollection, case: Case) -> bool:
    """Whether the price of a term, which was lower, has become that on demand; some sell spot so."""
    own = case.memory.at_level(offer, 1)
    if own is None or offer.tier not in RESERVED_TIERS:
        return False
    return own.usd_per_hour < on_demand.usd_per_hour * (1 - SAME_SHARE) <= float(offer.usd_per_hour)


def _at_spot_in_force(offer: Offer, case: Case) -> str | None:
    """Say so where an on-demand price takes the place that spot has, whatever the page shows of spot now."""
    spot, own = case.in_force(offer, Tier.SPOT), case.memory.at_level(offer, 1)
    if spot is None or float(offer.usd_per_hour) > spot.usd_per_hour * (1 + SAME_SHARE):
        return None
    if own is None and float(offer.usd_per_hour) >= spot.usd_per_hour:
        return None
    if own is not None and own.usd_per_hour <= spot.usd_per_hour * (1 + SAME_SHARE):
        return None  # some sell spot at the price on demand
    return f"on-demand at {dollars(offer.usd_per_hour)} is not above spot, {known_text(spot)}: exchanged?"


def _at_a_term_in_force(offer: Offer, case: Case) -> str | None:
    """
    Say so where it becomes just what a term cost, whatever the page shows of that now.

    Below that it may be: a price on demand that is cut by half leaves those of the terms behind for months.
    """
    own = case.memory.at_level(offer, 1)
    for listed in case.listed(offer, *RESERVED_TIERS):
        term = case.memory.at_level(listed, 1)
        if term is None or own is None or is_same(own.usd_per_hour, term.usd_per_hour):
            continue
        if is_same(offer.usd_per_hour, term.usd_per_hour):
            price = dollars(offer.usd_per_hour)
            return f"on-demand at {price} is what {listed.tier} costs, {known_text(term)}: exchanged?"
    return None


def community_is_real(offer: Offer, case: Case) -> str | None:
    """A community price far below the secure one is a placeholder, not an offer."""
    if offer.tier is not Tier.COMMUNITY:
        return None
    secure = _prices(case.listed(offer, Tier.SECURE))
    if not secure or float(offer.usd_per_hour) >= COMMUNITY_LOW * float(min(secure)):
        return None
    return (
        f"{dollars(offer.usd_per_hour)} beside {dollars(min(secure))} USD in the secure cloud: a placeholder?"
    )


def _prices(offers: Iterable[Offer]) -> list[Decimal]:
    return [offer.usd_per_hour for offer in offers]


def rows_are_paired(offer: Offer, case: Case) -> str | None:
    """Prices that several offers seem to have exchanged are names and prices out of step."""
    if id(offer) not in case.exchanged:
        return None
    return (
        f"{dollars(offer.usd_per_hour)} USD was another offer's price before: names and prices out of step?"
    )


def is_not_copied(offer: Offer, case: Case) -> str | None:
    """A price that becomes exactly that of another GPU or tier may have been read in its place."""
    if id(offer) not in case.copied or case.is_of_asks or id(offer) in case.mended:
        return None
    return f"{dollars(offer.usd_per_hour)} USD is what another row of the list costs: waits to be confirmed"


def answer_is_sound(offer: Offer, case: Case) -> str | None:
    """Of an answer whose other changes are mostly impossible no change is taken."""
    if case.doubt is None or case.list_ratio(offer) is None:
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
            return f"{dollars(each)} USD per GPU as in the size of {count}, whose price waits: so does this"
    return None


def book_moved(offer: Offer, case: Case) -> str | None:
    """Hosts set their prices one by one: the middle of a book moves far only where it was read wrong."""
    moved = case.middle_move
    if moved is None or not case.is_of_asks or 1 / BOOK_MOVE <= moved <= BOOK_MOVE:
        return None
    return f"in the middle all asks moved {times(moved)} what they were: waits until it has stayed for a week"


def mass_move(offer: Offer, case: Case) -> str | None:
    """Most prices of a list do not move in one night."""
    ratio = case.list_ratio(offer)
    if case.moved is None or case.is_of_asks or id(offer) in case.mended:
        return None
    if ratio is None or is_same(ratio, 1.0):
        return None
    return f"{case.moved[0]} of {case.moved[1]} prices of the list moved at once: waits to be confirmed"


def one_factor(offer: Offer, case: Case) -> str | None:
    """What moves most prices by one and the same factor is rather a unit, currency or tax than the market."""
    scaled = case.scaled if case.scaled is not None or case.is_of_asks else case.alike
    if scaled is None:
        return None
    ratio = case.list_ratio(offer)
    # Of a list, what did not move is the price it was; of asks, all of the answer are of one unit.
    if not case.is_of_asks and (ratio is None or is_same(ratio, 1.0) or id(offer) in case.mended):
        return None
    what = f"{scaled.moved} of {scaled.known} known {'asks' if case.is_of_asks else 'prices'} moved"
    if scaled.low == scaled.high:
        return f"{what} by one factor, {times(scaled.low)}: another unit, currency or tax?"
    return f"{what} one way, {scaled.low:.2f} to {times(scaled.high)}: another tax, term or tier?"
