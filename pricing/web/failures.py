"""What is said when a request fails: the address that was asked, what it did, and no key."""

from collections.abc import Iterable, Mapping
from urllib.parse import SplitResult

from pricing.errors import FetchError, TooLarge
from pricing.provider import Request, Site
from pricing.web.addresses import asked_at, public_url, without_secrets


class Again(Exception):
    """A failure after which the same request may be sent once more."""

    def __init__(self, error: FetchError, after_s: float | None = None) -> None:
        self.error = error
        self.after_s = after_s  # as the server wishes
        super().__init__(str(error))


class Lost(Again):
    """What was kept of an answer cannot be read any more."""


class Failures:
    """
    Makes the errors of a run.

    Args:
        base_urls: Provider name to the mirror that stands in for it.
        secrets: Texts that must not appear in any message or address.
    """

    def __init__(self, base_urls: Mapping[str, SplitResult], secrets: Iterable[str]) -> None:
        self._base_urls = base_urls
        self._secrets = tuple(secrets)

    def error(
        self,
        request: Request,
        provider: Site,
        what: str,
        kind: type[FetchError] = FetchError,
        status: int | None = None,
    ) -> FetchError:
        """Return the error of a request: the address that was asked, then these words."""
        url = self.public(request.url)
        where = asked_at(url, self._base_urls.get(provider.name))
        return kind(self.redact(f"{where} {what}"), provider=provider.name, url=url, status=status)

    def late(self, request: Request, provider: Site) -> FetchError:
        """Return the error of a request that took longer than it may."""
        return self.error(request, provider, f"was not done within {request.deadline_s:g} s")

    def too_large(self, request: Request, provider: Site) -> FetchError:
        """Return the error of an answer that is larger than it may be."""
        return self.error(request, provider, f"is over the {request.max_bytes} bytes allowed", TooLarge)

    def public(self, url: str) -> str:
        """Return an address as it may be shown and stored."""
        return self.redact(public_url(url))

    def redact(self, text: str) -> str:
        """Return a text without keys."""
        return without_secrets(text, self._secrets)
