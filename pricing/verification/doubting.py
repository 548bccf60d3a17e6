"""When what an answer got wrong speaks against the rest of it."""

from collections import defaultdict
from collections.abc import Iterable, Sequence

from planner.rates import Tier
from pricing.offer import Offer
from pricing.verification.alike import is_same
from pricing.verification.case import Case, Doubt, book_key
from pricing.verification.limits import DOUBT_ROWS, DOUBT_SHARE
from pricing.verification.market import usd_per_whole_gpu
from pricing.verification.pairing import is_price
from pricing.verification.rules import Rule


def find_held_sizes(
    judged: Iterable[tuple[Offer, Sequence[Rule]]],
) -> dict[tuple[object, ...], list[tuple[int, float]]]:
    """Return the counts and prices per GPU of what was held back as impossible, by GPU and tier."""
    held: dict[tuple[object, ...], list[tuple[int, float]]] = defaultdict(list)
    for offer, failed in judged:
        if offer.gpu is None or offer.gpu_fraction is not None or not is_price(offer):
            continue
        if _is_grave(failed):
            held[book_key(offer)].append((offer.gpu_count, usd_per_whole_gpu(offer)))
    return held


def find_doubt(judged: Sequence[tuple[Offer, Sequence[Rule]]], case: Case) -> Doubt | None:
    """
    Return why an answer is in doubt; None where it is not.

    It is where most of the known prices that it changes are impossible or out of step: rows read wrong have
    neighbours that were read wrong too, and some of those look plausible. Spot prices may move as far as
    they like, so where most of all listed ones are impossible these speak for them.

    Args:
        judged: Each offer of a run with the rules that it fails.
        case: What is known.
    """
    found = _counted(judged, case)
    if found is not None or case.is_of_asks:
        return found
    found = _counted([one for one in judged if one[0].tier is not Tier.SPOT], case)
    return found if found is not None and found.is_of_all else None


def _counted(judged: Iterable[tuple[Offer, Sequence[Rule]]], case: Case) -> Doubt | None:
    known = changed = wrong = 0
    for offer, failed in judged:
        if offer.gpu is None or not is_price(offer):
            continue
        before = case.memory.nearest(offer)
        if before is None:
            continue
        known += 1
        if is_same(usd_per_whole_gpu(offer), before.usd_per_gpu_hour):
            continue
        changed += 1
        wrong += _is_grave(failed)
    if wrong < DOUBT_ROWS or wrong <= DOUBT_SHARE * changed:
        return None
    return Doubt(wrong, changed, is_of_all=wrong > DOUBT_SHARE * known)


def _is_grave(failed: Iterable[Rule]) -> bool:
    """Whether a price was read wrong by the rules that it fails."""
    return any(rule.is_grave for rule in failed)
