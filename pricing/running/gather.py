"""One provider, from its first request to offers with canonical names: nothing is judged or stored here."""

import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Protocol

from planner.catalogues.currencies import FxRate
from pricing.errors import Blocked, FetchError, NormaliseError, ParseError
from pricing.normalise import normalise
from pricing.offer import Offer, Problem
from pricing.provider import Keys, Page, Provider, Request, Site, page_digest
from pricing.storage.memory import ProviderResult, RunStatus
from pricing.web.addresses import public_url

__all__ = ["Fetcher", "Gathered", "fetch_pages", "read"]

# A provider whose pages go on for ever has changed its pagination.
MAX_REQUESTS = 400
# A provider that answers, but slowly, must not hold up a nightly run for ever. Source: own choice.
PROVIDER_LIMIT_S = 1800.0
# The status by which a server says that it is asked too often. Source: RFC 6585, 4.
TOO_MANY = 429


class Fetcher(Protocol):
    """What sends requests; `pricing.http.Client` is one."""

    def fetch(self, request: Request, provider: Site) -> Page:
        """Send one request and return its answer, or raise FetchError."""

    def settle(self, provider: Site, *, is_read: bool) -> None:
        """Be told that all pages of a provider came, and whether prices were found on them."""


@dataclass(slots=True)
class Gathered:
    """What a provider's pages gave."""

    offers: list[Offer] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    page_digests: dict[str, str] = field(default_factory=dict)
    missing: tuple[str, ...] = ()  # addresses of optional pages that did not come
    pages_unchanged: int = 0  # their source says so: they were not sent again

    def result(
        self, provider: Provider, started_at: datetime, finished_at: datetime, source: str = "refresh"
    ) -> ProviderResult:
        """Return what is to be judged and stored of it."""
        return ProviderResult(
            provider=provider.name,
            status=RunStatus.OK,
            reason=None,
            offers=tuple(self.offers),
            problems=tuple(self.problems),
            page_digests=self.page_digests,
            missing=self.missing,
            started_at=started_at,
            finished_at=finished_at,
            source=source,
        )


@dataclass(slots=True)
class Fetched:
    """The pages of a provider, and what of them did not come."""

    pages: dict[str, Page] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)  # addresses

    def miss(self, request: Request, why: str) -> None:
        """Note a page that did not come."""
        self.problems.append(Problem(what=f"page {request.page}", why=why))
        self.missing.append(public_url(request.url))


def fetch_pages(
    provider: Provider,
    fetcher: Fetcher,
    keys: Keys,
    told: Callable[[Page], None] = lambda page: None,
    clock: Callable[[], float] = time.monotonic,
) -> Fetched:
    """
    Fetch all pages of a provider, further ones as long as it names some.

    Args:
        provider: Says what to ask.
        fetcher: Sends it.
        keys: The credentials of this provider.
        told: Is told of every page that came.
        clock: Monotonic seconds. [s]

    Raises:
        FetchError: if a page that is needed did not come, or pages go on for ever. After an answer that it is
            asked too often, a provider is not asked for anything else in this run.
    """
    found = Fetched()
    waiting = deque(provider.requests(keys))
    sent, start = 0, clock()
    while waiting:
        request = waiting.popleft()
        sent += 1
        left_s = PROVIDER_LIMIT_S - (clock() - start)
        if left_s <= 0:
            message = f"{provider.title} was not done within {PROVIDER_LIMIT_S / 60:g} minutes"
            raise FetchError(message, provider=provider.name)
        if sent > MAX_REQUESTS:
            message = f"{provider.title} goes on after {MAX_REQUESTS} pages; its pagination has changed"
            raise FetchError(message, provider=provider.name, url=None)
        try:
            page = fetcher.fetch(replace(request, deadline_s=min(request.deadline_s, left_s)), provider)
            further = list(provider.follow(page, keys))
        except (FetchError, ParseError) as error:
            if not request.is_optional:
                raise
            found.miss(request, str(error))
            if isinstance(error, Blocked) and error.status == TOO_MANY:
                if not all(other.is_optional for other in waiting):
                    raise
                for other in waiting:
                    found.miss(other, "not asked: it was asked too often already")
                break
            continue
        if page.key in found.pages:
            raise ParseError(f"{provider.name} names the page {page.key!r} twice", provider=provider.name)
        found.pages[page.key] = page
        told(page)
        waiting.extend(further)
    return found


def read(
    provider: Provider, pages: Mapping[str, Page], *, seen_at: datetime, fx: Mapping[str, FxRate]
) -> Gathered:
    """
    Turn pages into offers with canonical names.

    Raises:
        ParseError: if a page is not of its known shape, or none of its rows is a price.
    """
    found = Gathered(page_digests={key: page_digest(page) for key, page in pages.items()})
    found.pages_unchanged = sum(page.is_unchanged for page in pages.values())
    for item in provider.parse({key: replace(page, seen_at=seen_at) for key, page in pages.items()}):
        if isinstance(item, Problem):
            found.problems.append(item)
            continue
        page = pages.get(item.page)
        try:
            offer = normalise(
                item,
                provider=provider.name,
                source_url=provider.home if page is None else page.url,
                seen_at=seen_at,
                fx=fx,
            )
        except NormaliseError as error:
            found.problems.append(Problem(what=item.instance_type, why=str(error), raw=item.raw))
        else:
            found.offers.append(offer)
    if not found.offers:
        why = (
            f"; the first of {len(found.problems)} problems: {found.problems[0].why}"
            if found.problems
            else ""
        )
        raise ParseError(f"no price was found on {_names(pages)}{why}", provider=provider.name)
    return found


def _names(pages: Iterable[str]) -> str:
    return f"the page {', '.join(sorted(pages))}" if pages else "no page at all"
