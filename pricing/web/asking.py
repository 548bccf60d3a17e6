"""Providers are asked side by side: what goes wrong with one is its reason, and no other waits for it."""

import logging
import queue
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Generic, TypeVar

from planner.catalogues.currencies import FxRate
from pricing.errors import PricingError
from pricing.offer import Offer, Problem
from pricing.parsing.reader import LIMIT_S, Reader
from pricing.provider import Keys, Page, Provider
from pricing.running.gather import PROVIDER_LIMIT_S, Fetcher, Gathered, fetch_pages
from pricing.storage.memory import ProviderResult, RunStatus
from pricing.web.addresses import LONG_SECRET, without_secrets

__all__ = ["ASKING_LIMIT_S", "Answer", "Aside", "ask", "ask_all", "one_line"]

logger = logging.getLogger(__name__)

# Fetching and reading have limits of their own. This one is for what they cannot end, such as a look-up of a
# name that hangs in the system: then the thread is left behind.
ASKING_LIMIT_S = PROVIDER_LIMIT_S + 5 * LIMIT_S
# Longer reasons are texts of other programs. Source: own choice.
MAX_REASON = 400
T = TypeVar("T", Offer, Problem)
Brought = TypeVar("Brought")


@dataclass(frozen=True, slots=True)
class Answer:
    """What one provider brought, how long it took, and what a person may like to know of it."""

    result: ProviderResult
    seconds: float
    notes: tuple[str, ...] = ()


def ask(
    provider: Provider,
    client: Fetcher,
    reader: Reader,
    keys: Keys,
    now: datetime,
    fx: Callable[[], Mapping[str, FxRate]],
) -> Answer:
    """
    Fetch and read one provider.

    Args:
        provider: Whom.
        client: Sends the requests.
        reader: Reads what they bring.
        keys: The credentials of this provider.
        now: The time that the prices are seen.
        fx: Returns the exchange rates by currency; asked once the pages are there.
    """
    found = Gathered()
    reason: str | None = None
    begun = time.monotonic()
    try:
        fetched = fetch_pages(provider, client, keys)
        pages = {key: _without_keys(page, keys) for key, page in fetched.pages.items()}
        try:
            found = reader.read(provider, pages, seen_at=now, fx=fx())
        finally:
            client.settle(provider, is_read=bool(found.offers))
        found.problems += fetched.problems
        _mask(found, keys)
        found.missing = tuple(fetched.missing)
    except PricingError as error:
        reason = str(error)
    except Exception as error:  # the guard of a run: a fault in one module must not stop the others
        logger.debug("%s: a fault in its module", provider.name, exc_info=True)
        reason = f"a fault in its module: {type(error).__name__}: {error}"
    seconds = time.monotonic() - begun
    if reason is not None:
        return Answer(_failed(provider, one_line(reason, keys), now, seconds), seconds)
    result = found.result(provider, now, now + timedelta(seconds=seconds))
    return Answer(result, seconds, tuple(_notes(found)))


class Aside(Generic[Brought]):
    """
    A list of a run that is asked for in a thread, beside the providers.

    Args:
        what: Is asked for.
        asked: Fetches and reads it.
        limit_s: After so long the thread is left behind. [s]
        late: The reason where nothing has come by then.
    """

    def __init__(self, what: str, asked: Callable[[], Brought], limit_s: float, late: str) -> None:
        self._what, self._asked = what, asked
        self._found: tuple[Brought | None, str | None] = None, late
        self._until = time.monotonic() + limit_s
        self._thread = threading.Thread(target=self._ask, name=what, daemon=True)
        self._thread.start()

    def found(self) -> tuple[Brought | None, str | None]:
        """Return what came, or why nothing, once it has or its time is over."""
        self._thread.join(max(0.0, self._until - time.monotonic()))
        return self._found

    def _ask(self) -> None:
        """No fault in one list of a run ends the run."""
        try:
            self._found = self._asked(), None
        except PricingError as error:
            self._found = None, error.line
        except Exception as error:
            logger.debug("%s: a fault in its module", self._what, exc_info=True)
            self._found = None, one_line(f"a fault in its module: {type(error).__name__}: {error}", Keys())


def ask_all(
    providers: Sequence[Provider],
    ask_one: Callable[[Provider], Answer],
    now: datetime,
    limit_s: float = ASKING_LIMIT_S,
) -> Iterator[tuple[Provider, Answer]]:
    """
    Yield each provider's answer as it comes, each asked in a thread of its own.

    One that has none at the limit has failed; its thread is left behind and ends with the process.
    """
    answers: queue.SimpleQueue[tuple[Provider, Answer]] = queue.SimpleQueue()
    begun = time.monotonic()
    for provider in providers:

        def run(provider: Provider = provider) -> None:
            answers.put((provider, ask_one(provider)))

        threading.Thread(target=run, name=f"provider {provider.name}", daemon=True).start()
    waiting = {provider.name: provider for provider in providers}
    while waiting:
        left_s = limit_s - (time.monotonic() - begun)
        try:
            provider, answer = answers.get(timeout=max(0.0, left_s))
        except queue.Empty:
            break
        del waiting[provider.name]
        yield provider, answer
    for provider in waiting.values():
        reason = f"{provider.title} was not done within {limit_s:g} s, and was left behind"
        yield provider, Answer(_failed(provider, reason, now, limit_s), limit_s)


def _failed(provider: Provider, reason: str, now: datetime, seconds: float) -> ProviderResult:
    return ProviderResult(
        provider=provider.name,
        status=RunStatus.FAILED,
        reason=reason,
        offers=(),
        problems=(),
        started_at=now,
        finished_at=now + timedelta(seconds=seconds),
    )


def _notes(found: Gathered) -> Iterator[str]:
    total, same = len(found.page_digests), found.pages_unchanged
    if same:
        yield f"{same} of {total} {'page has' if total == 1 else 'pages have'} not changed since the last run"


def _without_keys(page: Page, keys: Keys) -> Page:
    """Return a page without the keys that a source may send back; of what is on disk the texts are masked."""
    body = page.body
    for secret in _parts(keys):
        if len(secret) >= LONG_SECRET:  # a shorter one may be a word of the source
            body = body.replace(secret.encode(), b"***")
    return page if body is page.body else replace(page, body=body)


def _mask(found: Gathered, keys: Keys) -> None:
    """Take the keys out of what was read: of what did not come, too, the reason is stored."""
    secrets = _parts(keys)
    if not secrets:
        return
    found.problems = [_without(problem, secrets) for problem in found.problems]
    long = [secret for secret in secrets if len(secret) >= LONG_SECRET]
    found.offers = [_without(offer, long) for offer in found.offers]


def _without(record: T, secrets: Sequence[str]) -> T:
    """Return a record without keys in its texts; itself where there is none."""
    texts = {name: getattr(record, name) for name in record.__slots__}
    shown: dict[str, Any] = {
        name: without_secrets(text, secrets)
        for name, text in texts.items()
        if type(text) is str and any(secret in text for secret in secrets)
    }
    return replace(record, **shown) if shown else record


def _parts(keys: Keys) -> list[str]:
    """Return the key, and each half of one that has two."""
    secret = keys.secret or ""
    return [part for part in (secret, *secret.split(":", 1)) if part]


def one_line(reason: str, keys: Keys) -> str:
    """Return a reason that fits a table and holds no key."""
    text = without_secrets(" ".join(reason.split()), _parts(keys))
    return text if len(text) <= MAX_REASON else f"{text[:MAX_REASON]} ..."
