"""
A plan in the columns of FOCUS, the open cost and usage specification: plan and bill compare line by line.

One month of every option. Cash and amortised cost differ as they do on a bill: a purchase is billed in full
and costs its depreciation.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from planner.compare import Plan
from planner.cost import MONTHS_PER_YEAR
from planner.rates import RESERVED_TIERS, Tier
from planner.supply.options import ApiBasis, BuyBasis, Option, RentBasis

# FOCUS working draft: the mandatory columns, the recommended, and of the conditional those that a plan fills.
FOCUS_COLUMNS = (
    "BilledCost",
    "BillingAccountId",
    "BillingAccountName",
    "BillingCurrency",
    "BillingPeriodStart",
    "BillingPeriodEnd",
    "ChargeCategory",
    "ChargeClass",
    "ChargeDescription",
    "ChargeFrequency",
    "ChargePeriodStart",
    "ChargePeriodEnd",
    "ConsumedQuantity",
    "ConsumedUnit",
    "ContractedCost",
    "ContractedUnitPrice",
    "EffectiveCost",
    "InvoiceId",
    "InvoiceIssuer",
    "ListCost",
    "ListUnitPrice",
    "PricingCategory",
    "PricingQuantity",
    "PricingUnit",
    "Provider",
    "Publisher",
    "RegionId",
    "RegionName",
    "ResourceId",
    "ResourceName",
    "ResourceType",
    "ServiceCategory",
    "ServiceName",
    "ServiceSubcategory",
    "SkuId",
    "SubAccountId",
    "SubAccountName",
    "Tags",
)

_ACCOUNT = "breakeven-plan"
_OWNER = "own hardware"


def focus_rows(plan: Plan, time: datetime | None) -> list[dict[str, Any]]:
    """
    Return the charges of one month of every option.

    Args:
        plan: The plan.
        time: The month that is written as the billing period is that of this time.

    Returns:
        Rows by column name; `Tags` is a mapping. Effective costs of an option add up to its monthly cost.
    """
    start = (time or datetime(2000, 1, 1, tzinfo=UTC)).replace(
        day=1, hour=0, minute=0, second=0, microsecond=0
    )
    rows = []
    for number, option in enumerate(plan.options, start=1):
        if option.usd_per_month is None:
            continue
        common = _common(plan, number, option, start)
        basis = option.basis
        if isinstance(basis, RentBasis):
            charges = _rent(option, basis)
        elif isinstance(basis, BuyBasis):
            charges = _buy(option, basis, start)
        else:
            charges = _api(option, basis)
        rows += [{**common, **charge} for charge in charges]
    return rows


def month_after(start: datetime, months: int = 1) -> datetime:
    """Return the first day of a later month."""
    index = start.year * 12 + start.month - 1 + months
    return start.replace(year=index // 12, month=index % 12 + 1)


def _common(plan: Plan, number: int, option: Option, start: datetime) -> dict[str, Any]:
    """Return what all charges of an option share."""
    seller = option.provider_title or option.provider or _OWNER
    return {
        "BillingAccountId": _ACCOUNT,
        "BillingAccountName": f"plan for {plan.model.name}",
        "BillingCurrency": "USD",
        "BillingPeriodStart": _time(start),
        "BillingPeriodEnd": _time(month_after(start)),
        "ChargePeriodStart": _time(start),
        "ChargePeriodEnd": _time(month_after(start)),
        "ChargeCategory": "Usage",
        "ChargeFrequency": "Usage-Based",
        "InvoiceIssuer": seller,
        "Provider": seller,
        "Publisher": seller,
        "RegionId": option.region,
        "RegionName": option.region,
        "ResourceName": option.name,
        "SubAccountId": f"option-{number}",
        "SubAccountName": f"{number}. {option.kind} {option.name}",
        "Tags": {"x_plan": True, "x_option": number, "x_kind": str(option.kind), "x_model": plan.model.id},
    }


def _charge(
    description: str,
    billed: float,
    effective: float | None = None,
    list_cost: float | None = None,
    **more: Any,
) -> dict[str, Any]:
    """Return one charge; list and contracted cost are what is billed unless said otherwise."""
    return {
        "ChargeDescription": description,
        "BilledCost": billed,
        "EffectiveCost": billed if effective is None else effective,
        "ListCost": billed if list_cost is None else list_cost,
        "ContractedCost": billed,
        **more,
    }


def _rent(option: Option, basis: RentBasis) -> Iterator[dict[str, Any]]:
    """Charge the rent, and storage and traffic where they are priced."""
    rate = basis.rate
    gpu_hours = rate.gpu_count * option.replicas * basis.paid_hours_per_month
    extras = basis.storage_usd_per_month + basis.egress_usd_per_month
    billed = (option.usd_per_month or 0.0) - extras
    category = "Standard"
    if rate.tier is Tier.SPOT:
        category = "Dynamic"
    elif rate.tier in RESERVED_TIERS:
        category = "Committed"
    compute: dict[str, Any] = {
        "ServiceCategory": "Compute",
        "ServiceName": "GPU instances",
        "ServiceSubcategory": "Virtual Machines",
        "ResourceId": rate.instance_type,
        "ResourceType": "GPU instance",
        "SkuId": rate.offer_id,
    }
    yield _charge(
        f"{option.replicas} x {rate.instance_type}, {rate.tier}",
        billed,
        PricingCategory=category,
        PricingQuantity=gpu_hours,
        PricingUnit="GPU-Hours",
        ConsumedQuantity=gpu_hours,
        ConsumedUnit="GPU-Hours",
        ListUnitPrice=rate.usd_per_hour / rate.gpu_count,
        ContractedUnitPrice=rate.usd_per_hour / rate.gpu_count,
        list_cost=rate.usd_per_hour * basis.paid_hours_per_month * option.replicas,
        **compute,
    )
    for amount, name in (
        (basis.storage_usd_per_month, "Storage"),
        (basis.egress_usd_per_month, "Networking"),
    ):
        if amount:
            yield _charge(f"{name.lower()} of the service", amount, ServiceCategory=name, ServiceName=name)


def _api(option: Option, basis: ApiBasis) -> Iterator[dict[str, Any]]:
    """Charge input and output tokens."""
    prices = option.token_prices
    total = option.usd_per_month or 0.0
    output = basis.output_tokens_per_month * (prices.usd_per_million_output_tokens if prices else 0.0) / 1e6
    parts = (
        ("input", basis.input_tokens_per_month, total - output),
        ("output", basis.output_tokens_per_month, output),
    )
    for word, tokens, usd in parts:
        price = usd / tokens * 1e6 if tokens else 0.0
        yield _charge(
            f"{word} tokens of {basis.price.model_name}",
            usd,
            ServiceCategory="AI and Machine Learning",
            ServiceName="model API",
            ServiceSubcategory="Generative AI",
            PricingCategory="Standard",
            PricingQuantity=tokens / 1e6,
            PricingUnit="1M Tokens",
            ConsumedQuantity=tokens,
            ConsumedUnit="Tokens",
            ListUnitPrice=price,
            ContractedUnitPrice=price,
            SkuId=basis.price.model_name,
        )


def _buy(option: Option, basis: BuyBasis, start: datetime) -> Iterator[dict[str, Any]]:
    """Charge purchase and depreciation, energy, every other running cost, and the resale at the end."""
    cost = basis.cost
    compute: dict[str, Any] = {
        "ServiceCategory": "Compute",
        "ServiceName": "owned GPUs",
        "ResourceType": "owned machine",
    }
    if cost.capex_usd:
        yield _charge(
            f"purchase of {option.replicas} x {option.name}",
            float(cost.capex_usd),
            0.0,
            ChargeCategory="Purchase",
            ChargeFrequency="One-Time",
            **compute,
        )
    yield _charge(
        "depreciation: (price - resale) / term",
        0.0,
        float(cost.depreciation_usd) / MONTHS_PER_YEAR,
        ChargeFrequency="Recurring",
        **compute,
    )
    kwh = float(basis.ownership.energy_kwh_per_year) * float(basis.ownership.pue) / MONTHS_PER_YEAR
    yield _charge(
        "electricity and cooling",
        float(cost.energy_usd_per_month),
        ServiceCategory="Other",
        ServiceName="energy",
        PricingCategory="Standard",
        PricingQuantity=kwh,
        PricingUnit="kWh",
        ConsumedQuantity=kwh,
        ConsumedUnit="kWh",
        ListUnitPrice=float(basis.ownership.usd_per_kwh),
        ContractedUnitPrice=float(basis.ownership.usd_per_kwh),
    )
    others = (
        ("colocation", cost.colo_usd),
        ("support", cost.support_usd),
        ("staff", cost.staff_usd),
        ("insurance", cost.insurance_usd),
        ("failures beyond the warranty", cost.failures_usd),
        ("licences", cost.licence_usd),
        ("internet line", cost.bandwidth_usd),
    )
    for name, usd_per_year in others:
        if usd_per_year:
            monthly = float(usd_per_year) / MONTHS_PER_YEAR
            yield _charge(
                name, monthly, ServiceCategory="Other", ServiceName=name, ChargeFrequency="Recurring"
            )
    if cost.resale_usd:
        end = month_after(start, round(float(basis.ownership.term_years) * MONTHS_PER_YEAR))
        period: dict[str, Any] = {
            "BillingPeriodStart": _time(end),
            "BillingPeriodEnd": _time(month_after(end)),
        }
        moment: dict[str, Any] = {
            "ChargePeriodStart": _time(end),
            "ChargePeriodEnd": _time(end + timedelta(days=1)),
        }
        yield _charge(
            "resale at the end of the term",
            -float(cost.resale_usd),
            0.0,
            ChargeCategory="Credit",
            ChargeFrequency="One-Time",
            **compute,
            **period,
            **moment,
        )


def _time(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
