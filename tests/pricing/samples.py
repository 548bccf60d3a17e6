"""Offers and runs for tests: one plain case, changed where a test needs it."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from pricing.offer import Billing, Offer, Problem, Tier, Verdict
from pricing.storage.memory import ProviderResult, RunStatus

# A provider that the bundled prices do not hold.
ACME = "acme"
MORNING = datetime(2026, 11, 30, 3, 7, tzinfo=UTC)
DAY = timedelta(days=1)


def offer(usd: str = "2.69", *, at: datetime = MORNING, **changes: Any) -> Offer:
    fields: dict[str, Any] = {
        "provider": ACME,
        "instance_type": "h100.1x",
        "gpu": "H100 SXM",
        "gpu_raw": "NVIDIA H100 80GB HBM3",
        "gpu_count": 1,
        "gpu_fraction": None,
        "memory_gb_per_gpu": 80.0,
        "form": "SXM",
        "region": "us-east-1",
        "tier": Tier.ON_DEMAND,
        "commitment_days": None,
        "usd_per_hour": Decimal(usd),
        "usd_per_month_cap": None,
        "currency": "USD",
        "price_original": Decimal(usd),
        "fx_date": None,
        "billing": Billing.PER_SECOND,
        "available": True,
        "vcpus": 16.0,
        "ram_gb": 200.0,
        "gpu_only": False,
        "source_url": "https://acme.example/prices",
        "seen_at": at,
        "raw": f"{usd} USD/h",
        "verdict": Verdict.VERIFIED,
    }
    return Offer(**(fields | changes))


def waiting(usd: str, *, at: datetime = MORNING, **changes: Any) -> Offer:
    reasons = changes.pop("reasons", ("a jump of 300 % against its own last price",))
    return offer(usd, at=at, verdict=Verdict.QUARANTINED, reasons=reasons, **changes)


def run(*offers: Offer, **changes: Any) -> ProviderResult:
    at = max((one.seen_at for one in offers), default=MORNING)
    fields: dict[str, Any] = {
        "provider": ACME,
        "status": RunStatus.OK,
        "reason": None,
        "offers": offers,
        "problems": (),
        "started_at": at,
        "finished_at": at,
        "page_digests": {"prices": "ab" * 32},
    }
    return ProviderResult(**(fields | changes))


def failed(reason: str, at: datetime) -> ProviderResult:
    return run(status=RunStatus.FAILED, reason=reason, started_at=at, finished_at=at, page_digests={})


def problems(count: int) -> Iterable[Problem]:
    return tuple(Problem(what=f"row {number}", why="no price", raw="-") for number in range(count))
