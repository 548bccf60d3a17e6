"""A run: several providers side by side, each stored as a whole, none in the way of another."""

import hashlib
import logging
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING, Protocol

from planner.catalogues.currencies import FxRate, all_currencies
from pricing.errors import StoreError
from pricing.money.currencies import Rates
from pricing.offer import Offer, Problem, Verdict
from pricing.parsing.reader import Here, Reader
from pricing.provider import Keys, Provider, ProviderClass
from pricing.registry import find_provider, is_of_asks, kinds, providers
from pricing.running.gather import Fetcher
from pricing.running.reports import ProviderReport, RunReport
from pricing.settings import Settings
from pricing.storage.memory import KnownPrice, ProviderResult, RunStatus
from pricing.verification.limits import OLD_PAGE_AFTER
from pricing.verification.market import Market
from pricing.verify import is_first_sight, verify
from pricing.web.asking import ASKING_LIMIT_S, Answer, ask, ask_all, one_line

if TYPE_CHECKING:
    from pricing.storage.writing import RecordReport

__all__ = [
    "ProviderReport",
    "RunReport",
    "Shelf",
    "find_old_page",
    "judge",
    "known_of",
    "refresh",
    "source_names",
    "why_unverified",
    "with_digest",
]

logger = logging.getLogger(__name__)

# A page that never changes may be one that nobody updates; list prices stay for weeks. Source: own choice.
STALE_AFTER = timedelta(days=30)
# The name under which the prices of an answer as a whole are remembered beside the pages they stood on.
CONTENT = "(all prices)"
# Currencies whose prices are met unlabelled. Source: docs/providers.md, "Scaleway", "OVHcloud".
_CONFUSED = ("EUR", "GBP")


class Shelf(Protocol):
    """What a run needs of the store; `pricing.store.Store` is one."""

    def known_prices(self, provider: str | None = None) -> list[KnownPrice]:
        """Return what new prices are compared with."""

    def witness_prices(self, provider: str | None = None) -> list[KnownPrice]:
        """Return what catalogues of others say."""

    def unchanged_since(self, provider: str, digests: Mapping[str, str]) -> Mapping[str, datetime]:
        """Return since when each page has had this content in every run."""

    def exchange_rates(self, day: date | None = None) -> Rates:
        """Return the newest rate of each currency, or as they stood on a day."""

    def replaced_pages(self, provider: str, digests: Mapping[str, str]) -> Mapping[str, datetime]:
        """Return when each page that has been replaced since was last seen with this content."""

    def record(self, result: ProviderResult) -> "RecordReport":
        """Store one provider's result in one transaction."""


def source_names(names: Iterable[str] | None = None) -> list[str]:
    """
    Return the keys of the sources to ask: those named, or all.

    Raises:
        UnknownProvider: if there is no such source; with close matches.
    """
    chosen = [find_provider(name).name for name in names or ()]
    return list(dict.fromkeys(chosen)) or sorted(providers(), key=_witnesses_first)


def refresh(
    names: Sequence[str] | None,
    store: Shelf,
    settings: Settings,
    client: Fetcher,
    now: datetime,
    progress: Callable[[ProviderReport], None] = lambda report: None,
    *,
    fx: Rates | Callable[[Provider], Rates] | None = None,
    reader: Reader | None = None,
    limit_s: float = ASKING_LIMIT_S,
) -> RunReport:
    """
    Ask providers for their prices, judge and store them.

    Fetching and reading run side by side, judging and storing in the calling thread, one short transaction
    for each provider. A provider that fails leaves the results of the others and all stored prices intact.

    Args:
        names: Provider keys; None or empty for all.
        store: Where prices are kept.
        settings: Keys of the providers that need one.
        client: Sends the requests.
        now: The time that the prices are seen.
        progress: Is told of each provider as it is done.
        fx: Exchange rates by currency, or what returns those for a provider once it has answered; the bundled
            ones where left out.
        reader: Reads the pages; the calling process itself, without a limit, where left out.
        limit_s: After which a provider that hangs is left behind. [s]

    Raises:
        UnknownProvider: if a name is not that of a source.
        StoreError: if the database cannot be read at all.
    """
    chosen = [find_provider(name) for name in source_names(names)]
    rates = fx if callable(fx) else lambda provider: all_currencies() if fx is None else fx
    market = Market(store.known_prices(), kinds())
    start = time.monotonic()
    reports: dict[str, ProviderReport] = {}

    def done(report: ProviderReport) -> None:
        reports[report.provider] = report
        logger.info("%s: %s, %d offers, %s", report.provider, report.status, report.offers, report.reason)
        progress(report)

    def ask_one(provider: Provider) -> Answer:
        keys = settings.key_of(provider.name)
        return ask(provider, client, reader or Here(), keys, now, lambda: rates(provider))

    asked = []
    for provider in chosen:
        if provider.requires_key and not settings.key_of(provider.name):
            done(_skip(provider, store, now))
        else:
            asked.append(provider)
    for provider, answer in ask_all(asked, ask_one, now, limit_s):
        done(_settle(provider, answer, store, rates(provider), market))
    ordered = tuple(reports[provider.name] for provider in chosen)
    finished = now + timedelta(seconds=time.monotonic() - start)
    return RunReport(started_at=now, finished_at=finished, providers=ordered)


def judge(
    offers: Sequence[Offer],
    known: Sequence[KnownPrice],
    market: Market,
    fx: Mapping[str, FxRate],
    old_page: str | None = None,
) -> tuple[Offer, ...]:
    """
    Return the offers of one source with their verdicts.

    Args:
        offers: All that one run brought.
        known: What is stored of their provider, and what witnesses say of it.
        market: The levels of all providers.
        fx: Exchange rates by currency.
        old_page: What is known of a page that was replaced and is served again; None where none was.
    """
    usd_per_unit = {currency: fx[currency].usd_per_unit for currency in _CONFUSED if currency in fx}
    return tuple(
        verify(offers, known, kinds=kinds(), market=market, usd_per_unit=usd_per_unit, old_page=old_page)
    )


def why_unverified(offers: Sequence[Offer]) -> str | None:
    """
    Return why a run that brought offers and verified none has failed; None where it has not.

    Its offers are kept for review and to be confirmed, nothing is closed, earlier prices stand. Where most of
    those whose GPU is known are seen for the first time nothing can be verified yet: that is no failure.
    """
    if not offers or any(offer.verdict is Verdict.VERIFIED for offer in offers):
        return None
    rejected = sum(offer.verdict is Verdict.REJECTED for offer in offers)
    named = [offer for offer in offers if offer.gpu is not None]
    is_ask = is_of_asks(offers[0].provider)
    if 2 * sum(is_first_sight(offer, is_ask=is_ask) for offer in named) > len(named):
        return None
    # Not the first reason of each alone: a move states figures of its own, and only another is common to all.
    why, number = Counter(reason for offer in offers for reason in offer.reasons).most_common(1)[0]
    return (
        f"none of {len(offers)} prices could be verified ({rejected} rejected), so earlier ones stand; "
        f"of {number}: {why}"
    )


def known_of(provider: Provider, store: Shelf) -> list[KnownPrice]:
    """Return what new prices of a source are compared with; those of a witness stand for themselves."""
    if provider.kind is ProviderClass.WITNESS:
        return []
    return [*store.known_prices(provider.name), *store.witness_prices(provider.name)]


def _settle(
    provider: Provider, answer: Answer, store: Shelf, fx: Mapping[str, FxRate], market: Market
) -> ProviderReport:
    """Judge and store what one provider brought; whatever goes wrong here fails this provider only."""
    result = answer.result
    try:
        known = known_of(provider, store) if result.offers else []
        result = with_digest(result)
        offers = judge(result.offers, known, market, fx, find_old_page(result, store))
        problems = (*result.problems, *_stale_pages(result, store))
        result = replace(result, offers=offers, problems=problems)
        doubt = why_unverified(offers)
        if doubt is not None and result.status is RunStatus.OK:
            result = replace(result, status=RunStatus.FAILED, reason=doubt)
        stored = store.record(result)
    except StoreError as error:
        return _unsettled(provider, result, store, f"not stored: {error}", answer.seconds)
    except Exception as error:  # the guard of a run: one odd offer must not stop the others
        logger.debug("%s: a fault in judging its offers", provider.name, exc_info=True)
        reason = f"not judged, a fault: {type(error).__name__}: {error}"
        return _unsettled(provider, result, store, one_line(reason, Keys()), answer.seconds)
    verdicts = Counter(offer.verdict for offer in offers)
    known_ids = {price.series_id for price in known}
    new = len({offer.id for offer in offers} - known_ids)
    return ProviderReport(
        provider=provider.name,
        title=provider.title,
        status=result.status,
        reason=result.reason,
        offers=len(offers),
        verified=verdicts[Verdict.VERIFIED],
        quarantined=verdicts[Verdict.QUARANTINED],
        rejected=verdicts[Verdict.REJECTED],
        problems=len(problems),
        new=new,
        changed=max(0, stored.opened - new),
        unchanged=stored.extended,
        closed=stored.closed,
        seconds=answer.seconds,
        notes=(*stored.notes, *answer.notes),
    )


def _unsettled(
    provider: Provider, result: ProviderResult, store: Shelf, reason: str, seconds: float
) -> ProviderReport:
    """Note, where the database still can, that nothing of this result was kept, and report it as failed."""
    try:
        store.record(replace(result, status=RunStatus.FAILED, reason=reason, offers=(), page_digests={}))
    except StoreError:
        logger.warning("%s: that it failed could not be noted", provider.name)
    return ProviderReport(
        provider=provider.name,
        title=provider.title,
        status=RunStatus.FAILED,
        reason=reason,
        offers=len(result.offers),
        seconds=seconds,
    )


def _stale_pages(result: ProviderResult, store: Shelf) -> Iterator[Problem]:
    """Yield a problem for each page that has not changed by a byte for a long time."""
    if result.status is not RunStatus.OK:
        return
    pages = {page: digest for page, digest in result.page_digests.items() if page != CONTENT}
    for page, since in store.unchanged_since(result.provider, pages).items():
        age = result.started_at - since
        if age >= STALE_AFTER:
            text = f"not a byte has changed since {since:%Y-%m-%d} ({age.days} days): is it still updated?"
            yield Problem(what=f"page {page}", why=text)


def with_digest(result: ProviderResult) -> ProviderResult:
    """Add what identifies all prices of an answer together, whatever else its pages say."""
    if not result.offers:
        return result
    return replace(result, page_digests={**result.page_digests, CONTENT: content_digest(result.offers)})


def content_digest(offers: Iterable[Offer]) -> str:
    """Return the SHA-256 of what is offered at what price, as the source states it and in any order."""
    lines = sorted(f"{offer.id} {offer.price_original.normalize()} {offer.currency}" for offer in offers)
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def find_old_page(result: ProviderResult, store: Shelf) -> str | None:
    """Return what to say of a page that is byte or price for price one which was replaced long ago."""
    found = store.replaced_pages(result.provider, result.page_digests)
    for page, seen_at in sorted(found.items(), key=lambda item: (item[0] == CONTENT, item)):
        if result.started_at - seen_at >= OLD_PAGE_AFTER:
            what = "all prices are those" if page == CONTENT else f"page {page} is byte for byte that"
            return f"{what} of {seen_at:%Y-%m-%d}, replaced since: an old page?"
    return None


def _skip(provider: Provider, store: Shelf, now: datetime) -> ProviderReport:
    variable = f"BREAKEVEN_{provider.name.upper()}_API_KEY"
    reason = f"needs a key: set {variable}{f' ({provider.key_help})' if provider.key_help else ''}"
    result = ProviderResult(
        provider=provider.name,
        status=RunStatus.SKIPPED,
        reason=reason,
        offers=(),
        problems=(),
        started_at=now,
        finished_at=now,
    )
    try:
        store.record(result)
    except StoreError:
        logger.warning("%s: that it was skipped could not be noted", provider.name)
    return ProviderReport(
        provider=provider.name, title=provider.title, status=RunStatus.SKIPPED, reason=reason
    )


def _witnesses_first(name: str) -> tuple[bool, str]:
    """Order sources so that witnesses are there when the prices they confirm are judged."""
    return providers()[name].kind is not ProviderClass.WITNESS, name
