"""Offers and known prices for tests, with everything filled in that a test does not care about."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from planner.rates import Tier
from pricing.offer import Offer, Verdict
from pricing.provider import ProviderClass
from pricing.storage.memory import KnownPrice, Origin

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
DAY = timedelta(days=1)
KINDS = {
    "acme": ProviderClass.NEOCLOUD,
    "other": ProviderClass.NEOCLOUD,
    "third": ProviderClass.NEOCLOUD,
    "bazaar": ProviderClass.MARKETPLACE,
    "giant": ProviderClass.HYPERSCALER,
    "vastai": ProviderClass.MARKETPLACE,
    "runpod": ProviderClass.MARKETPLACE,
    "aws": ProviderClass.HYPERSCALER,
    "azure": ProviderClass.HYPERSCALER,
}


def offer(price: str | Decimal, **changes: Any) -> Offer:
    """Return an offer of one H100 SXM on demand from acme, seen now."""
    given: dict[str, Any] = {
        "provider": "acme",
        "instance_type": "h100x1",
        "gpu": "H100 SXM",
        "gpu_raw": "H100 SXM",
        "gpu_count": 1,
        "gpu_fraction": None,
        "memory_gb_per_gpu": 80.0,
        "form": "SXM",
        "region": None,
        "tier": Tier.ON_DEMAND,
        "commitment_days": None,
        "usd_per_hour": Decimal(price),
        "usd_per_month_cap": None,
        "currency": "USD",
        "price_original": Decimal(price),
        "fx_date": None,
        "billing": None,
        "available": None,
        "vcpus": None,
        "ram_gb": None,
        "gpu_only": False,
        "source_url": "https://acme.example/pricing",
        "seen_at": NOW,
        "raw": f"${price}",
    }
    if "gpu_count" in changes and "instance_type" not in changes:
        given["instance_type"] = f"h100x{changes['gpu_count']}"
    return Offer(**(given | changes))


def known_as(one: Offer, *, days_ago: float = 1.0, **changes: Any) -> KnownPrice:
    """Return an offer as the database would remember it: verified by a run some days ago."""
    seen = NOW - days_ago * DAY
    given: dict[str, Any] = {
        "provider": one.provider,
        "instance_type": one.instance_type,
        "gpu": one.gpu,
        "gpu_count": one.gpu_count,
        "gpu_fraction": one.gpu_fraction,
        "memory_gb_per_gpu": one.memory_gb_per_gpu,
        "form": one.form,
        "region": one.region,
        "tier": one.tier,
        "usd_per_hour": one.usd_per_hour,
        "first_seen_at": seen,
        "last_seen_at": seen,
        "verdict": Verdict.VERIFIED,
        "origin": Origin.REFRESH,
        "times_seen": 1,
        "raw": one.raw,
        "series_id": one.id,
        "witness": one.witness,
        "gpu_only": one.gpu_only,
    }
    return KnownPrice(**(given | changes))


def known(price: str, *, days_ago: float = 1.0, **changes: Any) -> KnownPrice:
    """Return a known price of one H100 SXM from acme; `verdict` and `origin` concern the memory."""
    names = ("verdict", "origin", "witness_of", "last_seen_at", "times_seen")
    of_memory = {name: changes.pop(name) for name in names if name in changes}
    return known_as(offer(price, **changes), days_ago=days_ago, **of_memory)
