"""How a host is treated: its robots.txt heeded, its pauses kept, its wish to be asked later respected."""

from collections.abc import Callable
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from urllib.parse import SplitResult

from pricing.errors import Blocked
from pricing.provider import Page, Request, Site
from pricing.web.addresses import is_loopback
from pricing.web.failures import Failures
from pricing.web.robots import Robots, Unreachable, ask, rules_of

# Doubled with every try, times 0.5 to 1.5. Source: own choice.
FIRST_PAUSE_S = 1.0
# A longer wish of a server is an answer for the next run. Source: own choice.
MAX_RETRY_AFTER_S = 30.0


class Manners:
    """
    What is known of one provider's hosts within a run.

    Args:
        provider: Whom.
        base: The mirror that stands in for it, if any.
        failures: Makes the errors.
        clock: Monotonic seconds. [s]
        sleep: Waits the given seconds.
    """

    def __init__(
        self,
        provider: Site,
        base: SplitResult | None,
        failures: Failures,
        clock: Callable[[], float],
        sleep: Callable[[float], None],
    ) -> None:
        self._provider = provider
        self._base = base
        self._failures = failures
        self._clock = clock
        self._sleep = sleep
        self._last_sent: float | None = None
        self._robots: dict[str, Robots] = {}  # by address
        self._pause_s = 0.0  # asked for by them

    def heed_robots(self, url: str, request: Request, fetch: Callable[[Request], Page]) -> None:
        """
        Raise where the host of a page keeps it from programs; each host is asked once a run.

        Raises:
            Blocked: if it does.
            FetchError: if what it allows cannot be known.
        """
        if not request.is_page:
            return
        where, page = rules_of(url, self._base)
        if where not in self._robots:
            try:
                self._robots[where] = ask(where, fetch)
            except Unreachable as error:
                text = f"is left alone, since what its host lets programs read is not known: {error}"
                raise self._failures.error(request, self._provider, text) from error
        rules = self._robots[where]
        if not rules.allows(page):
            text = f"{page.partition('?')[0]} is kept from programs by {where}: nothing was read"
            url = self._failures.public(request.url)
            raise Blocked(self._failures.redact(text), provider=self._provider.name, url=url)
        self._pause_s = max(self._pause_s, rules.delay_s)

    def pace(self, request: Request, deadline: float) -> None:
        """Keep the provider's own distance between two requests; a mirror on this machine needs none."""
        base = self._base
        if self._last_sent is not None and not (base and base.hostname and is_loopback(base.hostname)):
            wait = self._last_sent + max(self._provider.min_interval_s, self._pause_s) - self._clock()
            if wait > 0:
                if self._clock() + wait >= deadline:
                    text = f"wants {wait:.0f} s of pause, more than is left of {request.deadline_s:g} s"
                    raise self._failures.error(request, self._provider, text)
                self._sleep(wait)
        self._last_sent = self._clock()


def pause_before(number: int, wish_s: float | None, chance: float) -> float | None:
    """
    Return how long to wait before the try after this one, None where that is for the next run. [s]

    Args:
        number: Of the try that failed, from 1.
        wish_s: What the server asked for, if anything. [s]
        chance: Between 0 and 1, so that not all who failed at once come back at once.
    """
    if wish_s is None:
        return FIRST_PAUSE_S * float(2 ** (number - 1)) * (0.5 + chance)
    return None if wish_s > MAX_RETRY_AFTER_S else wish_s


def retry_after(wish: str, now: datetime) -> float | None:
    """Return the pause that a `Retry-After` asks for; None where it is neither a number nor a date. [s]"""
    wish = wish.strip()
    if wish.isdecimal():
        return float(wish)
    try:
        moment = parsedate_to_datetime(wish)
    except (TypeError, ValueError):
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max(0.0, (moment - now).total_seconds())
