"""What passes between collecting, verifying and storing: what is already known, and what a run brought."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from enum import StrEnum

from planner.rates import Tier
from pricing.offer import Offer, Problem, Verdict

__all__ = ["KnownPrice", "Origin", "ProviderResult", "RunStatus", "remembered"]


class Origin(StrEnum):
    """How a price came into the database."""

    REFRESH = "refresh"
    SNAPSHOT = "snapshot"  # the bundled, dated collection
    HISTORY = "history"  # bundled observations of past days: never current, no memory of verification
    OWN = "own"  # the user's own contract


class RunStatus(StrEnum):
    """How one provider's part of a run ended."""

    OK = "ok"
    FAILED = "failed"
    SKIPPED = "skipped"  # for instance: no key


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownPrice:
    """A price that the database already holds, as verification needs it."""

    provider: str
    instance_type: str
    gpu: str | None  # canonical name, None where unknown or ambiguous
    gpu_count: int
    gpu_fraction: float | None
    memory_gb_per_gpu: float | None
    form: str | None
    region: str | None
    tier: Tier
    usd_per_hour: Decimal  # whole instance
    first_seen_at: datetime
    last_seen_at: datetime
    verdict: Verdict
    origin: Origin
    times_seen: int
    raw: str
    series_id: str = ""  # `Offer.id` of the same series
    witness: str | None = None  # set where a catalogue speaks of another cloud's price
    gpu_only: bool = False
    reasons: tuple[str, ...] = ()
    currency: str = "USD"  # in which the source stated it
    price_original: Decimal | None = None  # in that; None where it is the one in dollars


def remembered(offer: Offer, origin: Origin) -> KnownPrice:
    """Return an offer as the database would remember it after it was seen once."""
    return KnownPrice(
        provider=offer.provider,
        instance_type=offer.instance_type,
        gpu=offer.gpu,
        gpu_count=offer.gpu_count,
        gpu_fraction=offer.gpu_fraction,
        memory_gb_per_gpu=offer.memory_gb_per_gpu,
        form=offer.form,
        region=offer.region,
        tier=offer.tier,
        usd_per_hour=offer.usd_per_hour,
        first_seen_at=offer.seen_at,
        last_seen_at=offer.seen_at,
        verdict=offer.verdict,
        origin=origin,
        times_seen=1,
        raw=offer.raw,
        series_id=offer.id,
        witness=offer.witness,
        gpu_only=offer.gpu_only,
        reasons=offer.reasons,
        currency=offer.currency,
        price_original=offer.price_original,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderResult:
    """What one provider brought in one run: stored as a whole or not at all."""

    provider: str
    status: RunStatus
    reason: str | None  # why it failed or was skipped
    offers: tuple[Offer, ...]
    problems: tuple[Problem, ...]
    started_at: datetime
    finished_at: datetime
    page_digests: Mapping[str, str] = field(default_factory=dict)  # page key -> SHA-256 of the body
    source: str = "refresh"  # or "replay"
    missing: tuple[str, ...] = ()  # addresses that did not answer: what they list is not gone

    def __post_init__(self) -> None:
        if self.finished_at < self.started_at:
            raise ValueError(f"a run cannot end ({self.finished_at}) before it starts ({self.started_at})")
