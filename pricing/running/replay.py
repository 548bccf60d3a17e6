"""The same path from saved responses: recognised by their shape, in any order."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from planner.catalogues.currencies import FxRate
from pricing.collect import Shelf, find_old_page, judge, known_of, why_unverified, with_digest
from pricing.errors import PricingError
from pricing.offer import Offer, Problem
from pricing.parsing.reading import next_key
from pricing.provider import Page, Provider
from pricing.registry import find_provider, kinds
from pricing.running.gather import read
from pricing.storage.memory import RunStatus
from pricing.verification.market import Market

__all__ = ["Replay", "ReplayError", "replay"]

# Larger ones are left on the disk and read as a stream.
IN_MEMORY_BYTES = 16 * 2**20


class ReplayError(PricingError):
    """A file that is not there, or not a page of the provider."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """What saved responses gave."""

    provider: str
    pages: Mapping[str, str]  # page key -> file
    offers: tuple[Offer, ...]
    problems: tuple[Problem, ...]
    notes: tuple[str, ...] = ()
    reason: str | None = None  # why what was stored counts as a failed run


def replay(
    name: str,
    files: Sequence[str],
    store: Shelf,
    seen_at: datetime,
    *,
    is_dry_run: bool = False,
    fx: Mapping[str, FxRate] | None = None,
) -> Replay:
    """
    Read saved responses of a provider, judge and, unless it is a dry run, store them.

    Args:
        name: Key of the provider.
        files: Paths, each recognised by its shape, or `PAGE=PATH` where the shape does not tell.
        store: What prices are compared with, and where they go.
        seen_at: When the responses were received, UTC.
        is_dry_run: Store nothing.
        fx: Exchange rates by currency; where left out those that were known on that day.

    Raises:
        UnknownProvider: if there is no such source; with close matches.
        ReplayError: if a file is not there, or not one of the provider's pages.
        ParseError: if a page cannot be read.
    """
    provider = find_provider(name)
    pages, origins = _open(provider, files)
    rates = store.exchange_rates(seen_at.date()) if fx is None else fx
    found = read(provider, pages, seen_at=seen_at, fx=rates)
    market = Market(store.known_prices(), kinds())
    result = with_digest(found.result(provider, seen_at, seen_at, source="replay"))
    old_page = find_old_page(result, store)
    offers = judge(found.offers, known_of(provider, store), market, rates, old_page)
    notes: tuple[str, ...] = ()
    reason = None if is_dry_run else why_unverified(offers)
    if not is_dry_run:
        status = RunStatus.OK if reason is None else RunStatus.FAILED
        notes = store.record(replace(result, status=status, reason=reason, offers=offers)).notes
    return Replay(
        provider=provider.name,
        pages=origins,
        offers=offers,
        problems=tuple(found.problems),
        notes=notes,
        reason=reason,
    )


def _open(provider: Provider, files: Sequence[str]) -> tuple[dict[str, Page], dict[str, str]]:
    pages: dict[str, Page] = {}
    origins: dict[str, str] = {}
    for text in files:
        named, path = _split(text)
        page = _page(provider, named or "", path)
        key = named or provider.recognise(page)
        if key is None:
            if page.file is None and not page.body.strip():
                raise ReplayError(f"{path}: is empty; name a saved response")
            known = ", ".join(sorted(provider.pages)) or "none with a fixed name"
            raise ReplayError(
                f"{path}: is not a known page of {provider.title}; its pages are {known}; "
                "where the shape does not tell, write PAGE=FILE"
            )
        while key in pages:
            key = next_key(key)
        pages[key] = _page(provider, key, path)
        origins[key] = str(path)
    return pages, origins


def _split(text: str) -> tuple[str | None, Path]:
    """Return the page named before `=`, if any, and the file."""
    if not Path(text).exists() and "=" in text:
        key, _, rest = text.partition("=")
        return key, Path(rest)
    return None, Path(text)


def _page(provider: Provider, key: str, path: Path) -> Page:
    url = provider.pages.get(key.partition("#")[0], provider.home)
    try:
        if path.stat().st_size > IN_MEMORY_BYTES:
            return Page(key=key, url=url, file=path)
        return Page(key=key, url=url, body=path.read_bytes())
    except OSError as error:
        raise ReplayError(
            f"{path}: cannot be read ({error.strerror or error}); name a saved response"
        ) from error
