"""What is known of prices in other currencies, in dollars at the rate of the answer that is judged."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal

from pricing.offer import MICRO, Offer, Verdict
from pricing.storage.memory import KnownPrice
from pricing.verification.alike import SAME_SHARE, is_same


def at_todays_rate(
    known: Sequence[KnownPrice], offers: Sequence[Offer], usd_per_unit: Mapping[str, float]
) -> Sequence[KnownPrice]:
    """
    Return what is known, with the prices in another currency in dollars at the answer's rate of exchange.

    Rates move from night to night, and some rules ask whether a price is exactly that of another row or day,
    or moved by exactly a rate. Where the rate itself is another than that of the last price, by more than
    rates move, all stays as it is: it may be wrong, and the rules are to see that.

    Args:
        known: Of any providers and witnesses.
        offers: Of one run, and so at one rate for each currency.
        usd_per_unit: Rates of currencies that the answer may not state any more.
    """
    keys = {_key(one) for one in known if one.currency != "USD"}
    if not keys:
        return known
    abroad = [one for one in offers if one.currency != "USD" and one.price_original > 0 < one.usd_per_hour]
    rates = {key: Decimal(str(usd_per_unit[key[2]])) for key in keys if key[2] in usd_per_unit}
    for offer in sorted(abroad, key=lambda one: one.price_original):  # the largest is rounded least
        rates[_key(offer)] = offer.usd_per_hour / offer.price_original
    for key, rate in list(rates.items()):
        own = [one for one in known if _key(one) == key and one.verdict == Verdict.VERIFIED]
        last = max(own, key=lambda one: one.last_seen_at, default=None)
        if last is None or not is_same(last.usd_per_hour, _original(last) * rate, SAME_SHARE):
            del rates[key]
    exactly = {(_key(offer), offer.price_original): offer.usd_per_hour for offer in abroad}
    return [
        replace(one, usd_per_hour=exactly.get((_key(one), _original(one)), _usd(one, rates[_key(one)])))
        if _key(one) in rates
        else one
        for one in known
    ]


def _usd(one: KnownPrice, rate: Decimal) -> Decimal:
    return (_original(one) * rate).quantize(MICRO)


def _key(one: Offer | KnownPrice) -> tuple[str, str | None, str]:
    return one.provider, one.witness, one.currency


def _original(one: KnownPrice) -> Decimal:
    return one.usd_per_hour if one.price_original is None else one.price_original
