"""What can go wrong between a provider's page and a stored price."""

from collections.abc import Sequence

from planner.errors import PlannerError, UnknownName


class PricingError(Exception):
    """Base of all pricing errors."""

    @property
    def line(self) -> str:
        """What it says, without line breaks."""
        return " ".join(str(self).split())


class FetchError(PricingError):
    """Network, status or deadline; try again later."""

    def __init__(
        self,
        message: str,
        *,
        provider: str | None = None,
        url: str | None = None,
        status: int | None = None,
    ) -> None:
        self.provider = provider
        self.url = url
        self.status = status  # of the answer, where one came
        super().__init__(message)


class Blocked(FetchError):
    """401, 403, 429 or robots.txt: do not try again in this run."""


class NotThere(FetchError):
    """404 or 410: there is nothing at this address."""


class TooLarge(FetchError):
    """The body is over the cap."""


class ParseError(PricingError):
    """The page is not what it was: a person must look."""

    def __init__(self, message: str, *, provider: str | None = None, page: str | None = None) -> None:
        self.provider = provider
        self.page = page
        super().__init__(message)


class UnknownProvider(PricingError, UnknownName):
    """A provider that nobody describes, or whose prices no module reads."""

    def __init__(self, name: str, matches: Sequence[str] = (), why: str | None = None) -> None:
        UnknownName.__init__(self, "provider", name, matches)
        if why is not None:
            self.args = (f"provider {name!r}: {why}",)


class NothingToDecide(PricingError, UnknownName):
    """An offer about whose price a person has nothing to decide."""

    def __init__(self, offer_id: str, why: str) -> None:
        UnknownName.__init__(self, "offer", offer_id)
        self.args = (f"offer {offer_id!r} {why}",)


class UnclearDecision(PricingError, PlannerError):
    """A decision that may be meant of several prices of an offer, or of one that it does not have."""


class NormaliseError(PricingError):
    """Unknown or ambiguous GPU, unit or currency."""


class StoreError(PricingError):
    """The database is missing, locked, read-only, of another version, or not a database."""


class RunInProgress(StoreError):
    """Another process refreshes the prices of this database."""


class RunMade(RunInProgress):
    """Another process has refreshed them a short time ago."""


class SettingsError(PricingError):
    """An environment variable that cannot be used."""
