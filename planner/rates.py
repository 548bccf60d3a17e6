"""Rental prices as the planner sees them: one `Rate` for each rentable machine."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class Tier(StrEnum):
    """How a machine is rented; prices of different tiers are never merged."""

    ON_DEMAND = "on_demand"
    SPOT = "spot"
    COMMUNITY = "community"
    SECURE = "secure"
    RESERVED_1Y = "reserved_1y"
    RESERVED_3Y = "reserved_3y"
    RESERVED_OTHER = "reserved_other"


class Billing(StrEnum):
    """The smallest time that is charged."""

    PER_SECOND = "per_second"
    PER_MINUTE = "per_minute"
    PER_10_MINUTES = "per_10_minutes"
    HOURLY = "hourly"
    MONTHLY = "monthly"
    PER_TERM = "per_term"


class PriceStatus(StrEnum):
    """How far a price can be trusted today."""

    VERIFIED = "verified"
    STALE = "stale"  # verified, but last seen more than two days ago
    SNAPSHOT = "snapshot"  # from the bundled, dated collection
    OWN = "own"  # the user's own contract


RESERVED_TIERS = frozenset({Tier.RESERVED_1Y, Tier.RESERVED_3Y, Tier.RESERVED_OTHER})
DAYS_PER_YEAR = 365.0
# How the note of a price begins beside which another one waits to be confirmed.
NEWER_WAITS = "a newer price"
_TERMS_MONTHS = {Tier.RESERVED_1Y: 12.0, Tier.RESERVED_3Y: 36.0}


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """The price of one rentable machine, whole GPUs only, with its origin."""

    offer_id: str
    provider: str
    provider_title: str
    instance_type: str
    gpu: str  # canonical name
    gpu_count: int
    memory_gb_per_gpu: float | None
    region: str | None
    tier: Tier
    billing: Billing | None
    usd_per_hour: float  # whole machine; converted once, from usd_per_hour_text
    usd_per_hour_text: str  # the exact decimal, as stored
    seen_at: datetime
    age_hours: float
    status: PriceStatus
    source_url: str
    witnesses: int = 0
    note: str | None = None  # for instance: a newer price waits in quarantine
    usd_per_month_cap: float | None = None
    commitment_days: int | None = None
    available: bool | None = None
    vcpus: float | None = None
    ram_gb: float | None = None
    deploy_url: str | None = None
    is_ask: bool = False  # one host's machine: nothing says that there is a second at this price

    def __post_init__(self) -> None:
        if self.gpu_count < 1:
            raise ValueError(f"gpu_count must be at least 1, got {self.gpu_count}")
        if not 0 < self.usd_per_hour < float("inf"):
            raise ValueError(f"usd_per_hour must be finite and above 0, got {self.usd_per_hour}")

    @property
    def held_months(self) -> float:
        """How long the price is agreed for, whatever the market does; 0: not at all. [months]"""
        if self.tier not in RESERVED_TIERS:
            return 0.0
        if self.commitment_days is not None:
            return max(1.0, float(round(self.commitment_days * 12.0 / DAYS_PER_YEAR)))
        return _TERMS_MONTHS.get(self.tier, 0.0)
