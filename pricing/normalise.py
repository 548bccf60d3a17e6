"""From a price as the page states it to an offer with canonical names, in US dollars."""

from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal

from planner.catalogues.currencies import FxRate
from planner.catalogues.gpus import Gpu
from pricing.errors import NormaliseError
from pricing.offer import MICRO, Offer, RawOffer, Verdict
from pricing.parsing.naming import form_of, identify
from pricing.parsing.regions import normalise_region
from pricing.storage.columns import MAX_MICROS

__all__ = ["normalise", "normalise_region"]

# What is larger does not fit the 64 bits of a money column, and is no price of anything.
_MAX_USD = Decimal(MAX_MICROS) * MICRO


def normalise(
    raw: RawOffer,
    *,
    provider: str,
    source_url: str,
    seen_at: datetime,
    fx: Mapping[str, FxRate] | None = None,
) -> Offer:
    """
    Return the offer with canonical names; it waits in quarantine until `pricing.verify` has judged it.

    A GPU that is unknown, ambiguous or contradicted by its memory or form is None, with the reason. Memory
    and form that the source leaves out are those of the device.

    Args:
        raw: One price of a page.
        provider: Whose page it is; of a witness, which speaks of another cloud.
        source_url: Of the page, without any key.
        seen_at: When it was fetched, UTC.
        fx: US dollars per unit, by currency; needed only for prices in another one.

    Raises:
        NormaliseError: if the price is in a currency without a rate, or beyond what can be stored.
    """
    rate = _rate(raw.currency, fx or {})
    identity = identify(
        raw.gpu,
        memory_gb=raw.memory_gb_per_gpu,
        form=raw.form,
        canonical=raw.canonical_gpu,
        fraction=raw.gpu_fraction,
    )
    gpu = identity.gpu
    seller = raw.cloud or provider
    cap = raw.price_per_month_cap
    return Offer(
        provider=seller,
        witness=provider if raw.cloud else None,
        instance_type=raw.instance_type,
        gpu=None if gpu is None else gpu.name,
        gpu_raw=raw.gpu,
        gpu_count=raw.gpu_count,
        gpu_fraction=raw.gpu_fraction,
        memory_gb_per_gpu=_memory_gb(raw, gpu),
        form=(form_of(gpu) or raw.form) if gpu is not None else raw.form,
        region=normalise_region(seller, raw.region),
        tier=raw.tier,
        commitment_days=raw.commitment_days,
        usd_per_hour=_usd(raw.price_per_hour, rate),
        usd_per_month_cap=None if cap is None else _usd(cap, rate),
        currency=raw.currency.upper(),
        price_original=raw.price_per_hour,
        fx_date=None if rate is None else rate.as_of,
        billing=raw.billing,
        available=raw.available,
        vcpus=raw.vcpus,
        ram_gb=raw.ram_gb,
        gpu_only=raw.gpu_only,
        source_url=source_url,
        seen_at=seen_at,
        raw=raw.raw,
        verdict=Verdict.QUARANTINED,
        reasons=() if identity.reason is None else (identity.reason,),
    )


def _rate(currency: str, fx: Mapping[str, FxRate]) -> FxRate | None:
    """Return the rate of a currency, None for the dollar itself."""
    code = currency.upper()
    if code == "USD":
        return None
    if code not in fx:
        raise NormaliseError(f"no exchange rate for {currency!r}: a price in it cannot be compared")
    return fx[code]


def _usd(price: Decimal, rate: FxRate | None) -> Decimal:
    usd = price if rate is None else price * Decimal(str(rate.usd_per_unit))
    if abs(usd) > _MAX_USD:
        raise NormaliseError(f"{usd:.4g} USD is no price of a machine: more than can be stored")
    return usd if rate is None else usd.quantize(MICRO)


def _memory_gb(raw: RawOffer, gpu: Gpu | None) -> float | None:
    """Return the label of a whole card; of a slice what the source says, else its share of the card. [GB]"""
    if gpu is None:
        return raw.memory_gb_per_gpu
    if raw.gpu_fraction is None:
        return gpu.memory_gb_vendor
    share = gpu.memory_gb_vendor * raw.gpu_fraction
    stated = raw.memory_gb_per_gpu
    return share if stated is None or stated > share * 1.2 else stated
