"""
Whether a price can be believed: the rules of `pricing.verification.rules` over all offers of a run.

Pure: the same code runs in production, in tests and in benchmarks.
"""

import statistics
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal

from planner.rates import Tier
from pricing.offer import Offer, Verdict
from pricing.provider import ProviderClass, shows_asks
from pricing.storage.memory import KnownPrice
from pricing.verification.case import (
    Book,
    Case,
    Confirmation,
    book_key,
    instance_key,
    machine_key,
    name_key,
)
from pricing.verification.doubting import find_doubt, find_held_sizes
from pricing.verification.exchanged import at_todays_rate
from pricing.verification.history import is_first_sight
from pricing.verification.market import Market, usd_per_whole_gpu
from pricing.verification.pairing import Together, is_price
from pricing.verification.plausibility import is_plausible, why_implausible
from pricing.verification.recall import Memory
from pricing.verification.rules import RULES, Rule
from pricing.verification.told import Witnesses

__all__ = ["RULES", "Rule", "is_first_sight", "is_plausible", "verify", "why_implausible"]


def verify(
    offers: Sequence[Offer],
    known: Sequence[KnownPrice],
    *,
    kinds: Mapping[str, ProviderClass],
    market: Market | None = None,
    usd_per_unit: Mapping[str, float] | None = None,
    old_page: str | None = None,
) -> list[Offer]:
    """
    Return the offers of one run with their verdicts, in the same order.

    The verdict is the worst of all rules that an offer fails. A rule does not count where the very same price
    was verified before, where the price has the confirmation that the rule asks for, or a person accepted it.

    Args:
        offers: All of one provider's run: they are compared with each other too.
        known: What the database holds of this provider, and of witnesses that speak of it.
        kinds: Class of each provider.
        market: Levels of all providers' prices; made of `known` where it is left out.
        usd_per_unit: Exchange rates by currency, to notice a price in the wrong one.
        old_page: What is known of a page that was replaced and is served again; None where none was.
    """
    market = Market(known, kinds) if market is None else market
    known = at_todays_rate(known, offers, usd_per_unit or {})
    groups: dict[tuple[str, str | None], list[Offer]] = defaultdict(list)
    for offer in offers:
        groups[offer.provider, offer.witness].append(offer)
    judged: dict[int, Offer] = {}
    for (provider, witness), group in groups.items():
        case = _case(provider, group, known, kinds, market, usd_per_unit or {}, old_page)
        rules = RULES if witness is None else [rule for rule in RULES if rule.is_for_witnesses]
        judged.update(_judged(group, case, rules))
    return [judged[id(offer)] for offer in offers]


def _judged(group: Sequence[Offer], case: Case, rules: Sequence[Rule]) -> dict[int, Offer]:
    """Judge the offers of a run, and once more those that others which fail speak against."""
    found = {id(offer): _judge(offer, case, rules) for offer in group}
    failures = [(offer, found[id(offer)][1]) for offer in group]
    case.doubt = find_doubt(failures, case)
    case.held_sizes = find_held_sizes(failures)
    for offer in group:
        if case.doubt is not None or book_key(offer) in case.held_sizes:
            found[id(offer)] = _judge(offer, case, rules)
    return {key: judged for key, (judged, _) in found.items()}


def _judge(offer: Offer, case: Case, rules: Sequence[Rule]) -> tuple[Offer, list[Rule]]:
    """Return the offer with its verdict, and the rules that it fails."""
    reasons: list[str] = []
    failed: list[Rule] = []
    for rule in rules:
        reason = rule.check(offer, case)
        if reason is None or _makes_up(rule, offer, case):
            continue
        reasons.append(reason)
        failed.append(rule)
        if rule.is_final:
            break
    verdict = failed[-1].verdict if failed else Verdict.VERIFIED
    return replace(offer, verdict=verdict, reasons=tuple(reasons)), failed


def _makes_up(rule: Rule, offer: Offer, case: Case) -> bool:
    """Whether what is known of a price makes up for the rule that it fails."""
    if rule.confirmation is Confirmation.NOTHING:
        return False
    if case.is_accepted(offer) or (rule.yields_to_own_price and case.is_own_price(offer)):
        return True
    if rule.yields_to_return and case.is_return(offer):
        return True
    if rule.confirmation is Confirmation.PERSON:
        return False
    confirmed = case.confirmed(offer)
    return confirmed is not None and confirmed <= rule.confirmation


def _case(
    provider: str,
    offers: Sequence[Offer],
    known: Sequence[KnownPrice],
    kinds: Mapping[str, ProviderClass],
    market: Market,
    usd_per_unit: Mapping[str, float],
    old_page: str | None,
) -> Case:
    """Gather what is known and what the offers of a run say about each other."""
    memory = Memory(
        known,
        provider,
        before=max(offer.seen_at for offer in offers),
        is_plausible=lambda price: is_plausible(price, market, kinds),
        is_of_asks=shows_asks(kinds.get(provider), provider),
    )
    names = {*memory.instance_types(), *(offer.instance_type for offer in offers)}
    sizes: dict[tuple[object, ...], dict[int, tuple[float, float]]] = defaultdict(dict)
    beside: dict[tuple[object, ...], dict[Tier, list[Offer]]] = defaultdict(lambda: defaultdict(list))
    prices: dict[str, set[Decimal]] = defaultdict(set)
    counts: dict[tuple[object, ...], set[int]] = defaultdict(set)
    books: dict[tuple[object, ...], list[float]] = defaultdict(list)
    for offer in offers:
        if offer.gpu is None or not is_price(offer):
            continue
        prices[offer.id].add(offer.usd_per_hour)
        beside[instance_key(offer)][offer.tier].append(offer)
        counts[name_key(offer)].add(offer.gpu_count)
        if offer.gpu_fraction is None:
            each = usd_per_whole_gpu(offer)
            books[book_key(offer)].append(each)
            low, high = sizes[machine_key(offer)].get(offer.gpu_count, (each, each))
            sizes[machine_key(offer)][offer.gpu_count] = (min(low, each), max(high, each))
    together = Together(offers, memory)
    return Case(
        kind=kinds.get(provider, ProviderClass.NEOCLOUD),
        memory=memory,
        market=market,
        usd_per_unit=usd_per_unit,
        witnesses=Witnesses(known, provider, names),
        sizes=sizes,
        beside=beside,
        counts=counts,
        twice={key: found for key, found in prices.items() if len(found) > 1},
        exchanged=together.mispaired(),
        copied=together.copied(),
        returned=together.returned(),
        mended=together.mended,
        factors=together.factors,
        moved=together.moved_at_once(),
        scaled=together.by_one_factor(),
        alike=together.alike(),
        middle_move=together.middle_move(),
        old_page=old_page,
        books={key: Book(statistics.median(asks), len(asks)) for key, asks in books.items()},
    )
