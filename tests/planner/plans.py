"""Prices and plans for the tests of the decision."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from planner.compare import Plan, plan
from planner.rates import Billing, PriceStatus, Rate, Tier
from planner.scenario import Scenario

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
CODER = "qwen3-coder-480b-a35b"
SMALL = "llama-3.1-8b-instruct"


def rate(
    provider: str = "runpod",
    gpu: str = "B200",
    gpu_count: int = 2,
    usd_per_hour: str = "11.96",
    *,
    age_hours: float = 3.0,
    **more: Any,
) -> Rate:
    """Return a verified price by the second, seen three hours ago, unless said otherwise."""
    fields: dict[str, Any] = {
        "offer_id": f"{provider}-{gpu}-{gpu_count}-{more.get('tier', 'on_demand')}-{usd_per_hour}",
        "provider": provider,
        "provider_title": provider.title(),
        "instance_type": f"{gpu_count}x {gpu}",
        "gpu": gpu,
        "gpu_count": gpu_count,
        "memory_gb_per_gpu": None,
        "region": None,
        "tier": Tier.ON_DEMAND,
        "billing": Billing.PER_SECOND,
        "usd_per_hour": float(usd_per_hour),
        "usd_per_hour_text": usd_per_hour,
        "seen_at": NOW - timedelta(hours=age_hours),
        "age_hours": age_hours,
        "status": PriceStatus.VERIFIED,
        "source_url": f"https://{provider}.example/pricing",
    }
    return Rate(**{**fields, **more})


def seed_rates() -> list[Rate]:
    """Return the sizing page's table of 2026-11-04, as the snapshot holds it."""
    rows = (
        ("runpod", "B200", 2, "11.96", Tier.COMMUNITY, Billing.PER_SECOND),
        ("vastai", "B200", 2, "15.004", Tier.ON_DEMAND, Billing.PER_SECOND),
        ("vultr", "A100 80GB SXM", 8, "19.176", Tier.ON_DEMAND, Billing.HOURLY),
        ("digitalocean", "Instinct MI300X", 8, "20.72", Tier.ON_DEMAND, Billing.PER_SECOND),
    )
    seen = datetime(2026, 11, 4, tzinfo=UTC)
    return [
        rate(
            provider,
            gpu,
            count,
            price,
            tier=tier,
            billing=billing,
            seen_at=seen,
            age_hours=(NOW - seen).total_seconds() / 3600,
            status=PriceStatus.SNAPSHOT,
        )
        for provider, gpu, count, price, tier, billing in rows
    ]


def plan_of(rates: Sequence[Rate], model: str = CODER, **options: Any) -> Plan:
    """Return the plan of a scenario with these options."""
    return plan(Scenario(model=model, **options), rates)
