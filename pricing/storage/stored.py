"""What the database gives back: offers with their life, where each provider stands, what is kept out."""

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import repeat
from operator import call
from typing import Any, NamedTuple

from planner.rates import PriceStatus
from pricing.offer import Offer, Verdict
from pricing.storage.memory import Origin, RunStatus

# A verified price counts as fresh this long after it was last seen.
FRESH = timedelta(days=2)
# Clocks of machines that share a database differ by less; what is dated later was seen by a wrong one.
# Source: own choice.
AHEAD = timedelta(hours=1)


class LeftOut(NamedTuple):
    """Prices that are known and stay out of the ranking."""

    what: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredOffer(Offer):
    """An offer as stored; `seen_at` is the last time, and one with `closed_at` is history."""

    price_id: int  # of this interval
    origin: Origin
    first_seen_at: datetime
    closed_at: datetime | None
    closed_why: str | None
    times_seen: int

    @classmethod
    def built(cls, of_series: Iterable[Any], of_price: Iterable[Any]) -> "StoredOffer":
        """
        Return the offer with these values of `SERIES_FIELDS` and of `PRICE_FIELDS`.

        Through the slots themselves, which takes half the time of the constructor: one GPU's history has
        thousands of rows. The values come from the database, where the constructor put them.
        """
        offer: StoredOffer = object.__new__(cls)
        _run(map(call, _SET_SERIES, repeat(offer), of_series))
        _run(map(call, _SET_PRICE, repeat(offer), of_price))
        return offer

    def as_seen_by(self, moment: datetime) -> "StoredOffer":
        """Return the offer as it was known at a moment: not seen after it."""
        return self if self.seen_at <= moment else replace(self, seen_at=moment)

    def status(self, now: datetime) -> PriceStatus | None:
        """
        Return how far the price can be trusted.

        None where it is in quarantine or rejected, and where a catalogue says it of another's offer: that
        confirms prices and is none itself.
        """
        if self.verdict != Verdict.VERIFIED or self.witness is not None:
            return None
        if self.origin in (Origin.SNAPSHOT, Origin.HISTORY):
            return PriceStatus.SNAPSHOT
        if self.origin == Origin.OWN:
            return PriceStatus.OWN
        return PriceStatus.VERIFIED if -AHEAD <= now - self.seen_at <= FRESH else PriceStatus.STALE

    def standing(self, now: datetime) -> str:
        """Say in a word or two what the price is worth: its status, whose word it is, what it lacks."""
        status = self.status(now)
        if status is None:
            return str(self.verdict) if self.witness is None else f"says {self.witness}"
        lacks = ("GPU only" if self.gpu_only else "", "sold out" if self.available is False else "")
        return ", ".join(word for word in (str(status), *lacks) if word)

    @property
    def said_by(self) -> str:
        """The provider, and whose word it is where a catalogue speaks of it."""
        return self.provider if self.witness is None else f"{self.provider}, says {self.witness}"

    @property
    def why_never_ranked(self) -> str | None:
        """Why no plan ever counts it, whatever its verdict; None where plans do."""
        if self.is_rankable:
            return None
        if self.witness is not None:
            return f"{self.witness} says so of {self.provider}: a catalogue confirms prices and is none"
        if self.gpu is None:
            return self.reasons[0] if self.reasons else "the GPU is not known"
        if self.gpu_fraction is not None:
            return "a slice of a GPU"
        return "CPU, memory and disk are billed beside it"

    def to_document(self, now: datetime | None = None) -> Mapping[str, object]:
        """
        Return the offer as in `breakeven.offers/1`, with its life.

        Args:
            now: The present, for the status: a bundled price passed the checks too, and is no verified one.
        """
        status = None if now is None else self.status(now)
        return {
            **Offer.to_document(self),
            **({} if now is None else {"status": None if status is None else str(status)}),
            "price_id": self.price_id,
            "origin": str(self.origin),
            "first_seen_at": _text(self.first_seen_at),
            "closed_at": None if self.closed_at is None else _text(self.closed_at),
            "closed_why": self.closed_why,
            "times_seen": self.times_seen,
        }


# What all prices of a series share, and what each has of its own.
SERIES_FIELDS = (
    *("provider", "witness", "instance_type", "gpu", "gpu_raw", "gpu_count", "gpu_fraction"),
    *("memory_gb_per_gpu", "form", "region", "tier", "commitment_days", "gpu_only", "billing", "vcpus"),
    "ram_gb",
)
PRICE_FIELDS = (
    *("source_url", "price_id", "origin", "verdict", "reasons", "usd_per_hour", "usd_per_month_cap"),
    *("currency", "price_original", "fx_date", "available", "first_seen_at", "seen_at", "closed_at"),
    *("closed_why", "times_seen", "raw"),
)
_SET_SERIES, _SET_PRICE = (
    tuple(getattr(StoredOffer, name).__set__ for name in names) for names in (SERIES_FIELDS, PRICE_FIELDS)
)
_run = deque[Any](maxlen=0).extend


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderStatus:
    """Where one provider's prices stand."""

    provider: str  # or witness
    last_run_at: datetime | None
    last_run_status: RunStatus | None
    last_run_reason: str | None
    last_run_problems: int  # rows that could not be read
    last_success_at: datetime | None
    failures_since_success: int
    age_hours: float | None  # of the newest verified price of an own run
    verified: int  # open prices, fresh
    stale: int
    quarantined: int
    rejected: int
    snapshot: int  # bundled prices that still count
    snapshot_as_of: datetime | None  # the newest of them

    def to_document(self) -> Mapping[str, object]:
        """Return the status for `prices status --json`."""
        return {
            "provider": self.provider,
            "last_run_at": None if self.last_run_at is None else _text(self.last_run_at),
            "last_run_status": None if self.last_run_status is None else str(self.last_run_status),
            "last_run_reason": self.last_run_reason,
            "last_run_problems": self.last_run_problems,
            "last_success_at": None if self.last_success_at is None else _text(self.last_success_at),
            "failures_since_success": self.failures_since_success,
            "age_hours": self.age_hours,
            "verified": self.verified,
            "stale": self.stale,
            "quarantined": self.quarantined,
            "rejected": self.rejected,
            "snapshot": self.snapshot,
            "snapshot_as_of": None if self.snapshot_as_of is None else _text(self.snapshot_as_of),
        }


def _text(time: datetime) -> str:
    return time.isoformat().replace("+00:00", "Z")
