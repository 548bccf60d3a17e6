"""One price: as the page states it (`RawOffer`), and with names made canonical and a verdict (`Offer`)."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from enum import StrEnum

from planner.rates import Billing, Tier

__all__ = ["MICRO", "Billing", "Offer", "Problem", "RawOffer", "Tier", "Verdict"]

# As the database keeps amounts. [USD]
MICRO = Decimal("0.000001")


class Verdict(StrEnum):
    """What verification said of a price."""

    VERIFIED = "verified"
    QUARANTINED = "quarantined"  # kept out of every plan until confirmed
    REJECTED = "rejected"


@dataclass(frozen=True, slots=True, kw_only=True)
class RawOffer:
    """One price as the page states it, before any name is made canonical."""

    instance_type: str  # the provider's own name or identifier of what is rented
    gpu: str  # as in the source
    gpu_count: int
    price_per_hour: Decimal  # for the whole instance, in `currency`
    page: str  # key of the page it was read from
    raw: str  # the value as the source wrote it, with its unit
    gpu_fraction: float | None = None  # a slice of one GPU: gpu_count 1 and for instance 0.25
    memory_gb_per_gpu: float | None = None
    form: str | None = None  # SXM, PCIe, NVL, OAM, NVL72
    canonical_gpu: str | None = None  # only where the provider's own table pins the device
    region: str | None = None
    tier: Tier = Tier.ON_DEMAND
    commitment_days: int | None = None
    currency: str = "USD"
    price_per_month_cap: Decimal | None = None
    billing: Billing | None = None
    available: bool | None = None
    vcpus: float | None = None
    ram_gb: float | None = None
    gpu_only: bool = False  # CPU, memory and disk are billed separately and are not in the price
    cloud: str | None = None  # a witness speaks of this provider's offer

    def __post_init__(self) -> None:
        if self.gpu_count < 1:
            raise ValueError(f"gpu_count must be at least 1, got {self.gpu_count}")
        if self.gpu_fraction is not None and not (0 < self.gpu_fraction < 1 and self.gpu_count == 1):
            raise ValueError(f"a slice has gpu_count 1 and a fraction below 1, got {self.gpu_fraction}")
        if not self.price_per_hour.is_finite():
            raise ValueError(f"price_per_hour must be finite, got {self.price_per_hour}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """A row that was seen and could not be read as a price: counted and shown, never silently dropped."""

    what: str  # instance, GPU name or row
    why: str
    raw: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """A price with canonical names, in USD, with its verdict; amounts are exact decimals."""

    provider: str
    instance_type: str
    gpu: str | None  # canonical name, or None where unknown or ambiguous
    gpu_raw: str
    gpu_count: int
    gpu_fraction: float | None
    memory_gb_per_gpu: float | None
    form: str | None
    region: str | None
    tier: Tier
    commitment_days: int | None
    usd_per_hour: Decimal
    usd_per_month_cap: Decimal | None
    currency: str
    price_original: Decimal
    fx_date: str | None
    billing: Billing | None
    available: bool | None
    vcpus: float | None
    ram_gb: float | None
    gpu_only: bool
    source_url: str
    seen_at: datetime
    raw: str
    witness: str | None = None
    verdict: Verdict = Verdict.QUARANTINED
    reasons: tuple[str, ...] = field(default=())

    @property
    def usd_per_gpu_hour(self) -> Decimal:
        """Price of one whole GPU's hour; of the slice, for a slice. [USD/h]"""
        return self.usd_per_hour / self.gpu_count

    @property
    def is_rankable(self) -> bool:
        """Whether it may stand among whole machines: known GPU, no slice, nothing billed beside it."""
        return (
            self.gpu is not None and self.gpu_fraction is None and not self.gpu_only and self.witness is None
        )

    @property
    def series_key(self) -> tuple[str, ...]:
        """What makes two prices the same offer at different times."""
        return (
            self.witness or "",
            self.provider,
            self.instance_type,
            self.gpu or f"?{self.gpu_raw}",
            str(self.gpu_count),
            "" if self.gpu_fraction is None else f"{self.gpu_fraction:.4f}",
            "" if self.memory_gb_per_gpu is None else f"{self.memory_gb_per_gpu:g}",
            self.form or "",
            (self.region or "").lower(),
            str(self.tier),
            str(self.commitment_days or ""),
        )

    @property
    def id(self) -> str:
        """Short stable identifier of the series."""
        return hashlib.sha256("\x1f".join(self.series_key).encode()).hexdigest()[:12]

    def to_document(self) -> Mapping[str, object]:
        """
        Return the offer as in `breakeven.offers/1`; prices are decimal strings.

        Source:
            docs/interface.md, "An offer".
        """
        document: dict[str, object] = {
            "id": self.id,
            "provider": self.provider,
            "instance_type": self.instance_type,
            "gpu": self.gpu,
            "gpu_raw": self.gpu_raw,
            "gpu_count": self.gpu_count,
            "gpu_fraction": self.gpu_fraction,
            "memory_gb_per_gpu": self.memory_gb_per_gpu,
            "form": self.form,
            "region": self.region,
            "tier": str(self.tier),
            "commitment_days": self.commitment_days,
            "usd_per_hour": decimal_text(self.usd_per_hour),
            "usd_per_gpu_hour": decimal_text(self.usd_per_gpu_hour),
            "usd_per_month_cap": None
            if self.usd_per_month_cap is None
            else decimal_text(self.usd_per_month_cap),
            "currency": self.currency,
            "price_original": decimal_text(self.price_original),
            "fx_date": self.fx_date,
            "billing": None if self.billing is None else str(self.billing),
            "available": self.available,
            "vcpus": self.vcpus,
            "ram_gb": self.ram_gb,
            "gpu_only": self.gpu_only,
            "source_url": self.source_url,
            "seen_at": self.seen_at.isoformat().replace("+00:00", "Z"),
            "verdict": str(self.verdict),
            "reasons": list(self.reasons),
        }
        if self.witness is not None:
            document["witness"] = self.witness
        return document


def decimal_text(amount: Decimal) -> str:
    """Write a price as a plain decimal: at least two places, at most six, no exponent."""
    quantised = amount.quantize(MICRO).normalize()
    exponent = quantised.as_tuple().exponent
    if not isinstance(exponent, int) or exponent > -2:
        quantised = quantised.quantize(Decimal("0.01"))
    return f"{quantised:f}"
