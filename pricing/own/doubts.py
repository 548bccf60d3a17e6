"""What of an own file a person should look at again: prices far from what others ask, kept all the same."""

from collections.abc import Iterator

from planner.catalogues.purchases import default_purchase, quoted_purchase
from pricing.own.ownfile import OwnFile, OwnQuote
from pricing.registry import kinds
from pricing.verification.limits import WIDE_BAND_HIGH, WIDE_BAND_LOW
from pricing.verification.market import Market
from pricing.verification.plausibility import why_implausible
from pricing.verification.words import times


def doubts(file: OwnFile, market: Market) -> Iterator[str]:
    """
    Yield one line for each price that is far from the market.

    Args:
        file: As read; what is outside the hard limits was refused there.
        market: What others ask.
    """
    of_classes = kinds()
    for offer in file.offers:
        why = why_implausible(offer, market, of_classes)
        if why is not None:
            asked = "is it per GPU, of a month or in another currency?"
            yield f"{offer.instance_type} from {offer.provider}: {why}; {asked}"
    for quote in file.quotes:
        doubt = _far_quote(quote)
        if doubt is not None:
            yield doubt


def _far_quote(quote: OwnQuote) -> str | None:
    """Return by how much a quote is off what the catalogue knows of the device, where that is far."""
    gpu = quote.point.gpu or ""
    known, own = default_purchase(gpu), quoted_purchase(gpu, [quote.point])
    if known is None or own is None:
        return None
    factor = own.usd_per_gpu / known.usd_per_gpu
    if WIDE_BAND_LOW <= factor <= WIDE_BAND_HIGH:
        return None
    return (
        f"{quote.point.what} {gpu} from {quote.point.seller}: {quote.usd:,.2f} USD is {times(factor)} the "
        f"{known.usd_per_gpu:,.0f} per GPU of the catalogue ({known.as_of or 'undated'}); is it "
        "the price of one, in full?"
    )
