"""Rented machines: for each provider and tier the cheapest that serves, and why others do not."""

from collections.abc import Mapping, Sequence
from datetime import UTC

from planner.assumptions import Assumptions
from planner.cost import token_prices
from planner.rates import RESERVED_TIERS, Billing, Rate, Tier
from planner.scenario import Scenario
from planner.supply.load import Shift
from planner.supply.market import Market, left_out
from planner.supply.operate import Fleet, OperatingPoint, Refusal, Refused
from planner.supply.options import Excluded, Kind, Option, PriceOrigin, RentBasis, names_text, per_gpu_text
from planner.supply.rent import WHOLE_MONTH, paid_hours_per_month, rent_of, steps_of
from planner.units import GB, HOURS_PER_MONTH, TOKENS_PER_PRICE

# English text: about 4.7 letters a word, 0.75 words a token, with blanks and punctuation about 5 bytes.
BYTES_PER_TOKEN = 5.0


def rent_options(
    scenario: Scenario, market: Market, fleet: Fleet, assumptions: Assumptions
) -> tuple[list[Option], list[Excluded]]:
    """
    Return for each provider and tier the cheapest machine that serves what is asked, and what was left out.

    A machine too slow to talk to stands only where its provider and tier have no faster one. What a host asks
    is for one machine, so it serves only where one is enough.
    """
    best: dict[tuple[str, Tier], tuple[bool, float, float, Rate, OperatingPoint]] = {}
    refused: dict[tuple[str, Tier], list[tuple[Rate, Refused]]] = {}
    too_many: dict[str, list[int]] = {}
    lost = assumptions["spot_lost_work_fraction"]
    for (provider, tier, gpu, count), (_, rate) in market.cheapest.items():
        point = fleet.outcome(gpu, count)
        if isinstance(point, Refused):
            refused.setdefault((provider, tier), []).append((rate, point))
            continue
        if rate.is_ask and point.replicas > 1:
            too_many.setdefault(rate.provider_title, []).append(point.replicas)
            continue
        cost = rent_of(rate, steps_of(point, scenario), scenario, lost).usd
        key = (point.is_too_slow, cost, -point.speed.aggregate_tokens_per_s)
        if (provider, tier) not in best or key < best[provider, tier][:3]:
            best[provider, tier] = (*key, rate, point)
    options = [rent_option(scenario, rate, point, assumptions) for *_, rate, point in best.values()]
    nowhere = [pair for key, pairs in refused.items() if key not in best for pair in pairs]
    return options, [
        *left_out(market, scenario),
        *_single_machines(too_many),
        *_without_machine(nowhere, best),
    ]


def rent_option(scenario: Scenario, rate: Rate, point: OperatingPoint, assumptions: Assumptions) -> Option:
    """Return the row of one rented machine."""
    replicas, lost = point.replicas, assumptions["spot_lost_work_fraction"]
    rent = rent_of(rate, steps_of(point, scenario), scenario, lost)
    rents = assumptions.rents.held(rate.held_months)
    weights_gb = point.sizing.memory.weights_bytes / GB
    storage = weights_gb * assumptions["storage_usd_per_gb_month"] * replicas
    egress = point.tokens_per_month * BYTES_PER_TOKEN / GB * assumptions["egress_usd_per_gb"]
    month = rent.usd + storage + egress
    work = point.sizing.workload
    uncapped = rent.uncapped_usd / replicas
    return Option(
        kind=Kind.RENT,
        name=f"{rate.gpu_count}x {rate.gpu}",
        provider=rate.provider,
        provider_title=rate.provider_title,
        instance_type=rate.instance_type,
        region=rate.region,
        tier=str(rate.tier),
        billing=None if rate.billing is None else str(rate.billing),
        gpu=rate.gpu,
        gpu_count=rate.gpu_count,
        vram_total_gb=point.machine.gpu.memory_gb_vendor * rate.gpu_count,
        replicas=replicas,
        fits=point.sizing.memory.fits,
        usd_per_hour=rate.usd_per_hour_text,
        usd_per_gpu_hour=per_gpu_text(rate.usd_per_hour_text, rate.gpu_count),
        usd_per_month=month,
        usd_per_month_over_term=rents.over_term(month, assumptions["term_years"]),
        token_prices=token_prices(
            month / point.tokens_per_month * TOKENS_PER_PRICE,
            aggregate_tokens_per_s=point.speed.aggregate_tokens_per_s,
            prefill_tokens_per_s=point.speed.prefill_tokens_per_s,
            input_tokens=work.input_tokens,
            output_tokens=work.output_tokens,
        ),
        tokens_per_month=point.tokens_per_month,
        point=point,
        price=PriceOrigin(
            seen_at=rate.seen_at.astimezone(UTC).isoformat().replace("+00:00", "Z"),
            age_hours=rate.age_hours,
            status=rate.status,
            source_url=rate.source_url,
            witnesses=rate.witnesses,
        ),
        deploy_url=rate.deploy_url,
        is_too_slow=point.is_too_slow,
        notes=tuple(_notes(rate, uncapped, scenario.hours_per_month, point.shifts)),
        basis=RentBasis(
            rate=rate,
            paid_hours_per_month=rent.paid_hours,
            hourly_usd_per_month=uncapped,
            is_capped=rent.usd < rent.uncapped_usd,
            storage_usd_per_month=storage,
            egress_usd_per_month=egress,
            lost_work_fraction=lost if rate.tier is Tier.SPOT else 0.0,
        ),
    )


def _notes(rate: Rate, uncapped_usd: float, hours: float, steps: Sequence[Shift]) -> list[str]:
    """Return what a person should know of this rental."""
    notes = [rate.note] if rate.note else []
    if len(steps) > 1 and paid_hours_per_month(rate, 0.0) == 0.0:
        least, most = steps[0].replicas, sum(step.replicas for step in steps)
        notes.append(f"its copies follow the load of the day: {least} to {most} of them run")
    if rate.tier is Tier.SPOT:
        notes.append("spot: it may be taken away at any time")
    if rate.tier in RESERVED_TIERS:
        term = f" for {rate.commitment_days} days" if rate.commitment_days else ""
        notes.append(
            f"reserved{term}: all {HOURS_PER_MONTH:g} h of the month are paid, {hours:,.1f} h are used"
        )
    elif rate.billing in WHOLE_MONTH:
        notes.append("billed by the month: all of it is paid")
    elif rate.billing is Billing.HOURLY:
        notes.append("billed by the hour: a started hour is paid in full")
    elif rate.billing is None:
        notes.append("the source does not say how time is rounded")
    if rate.usd_per_month_cap is not None and rate.usd_per_month_cap < uncapped_usd:
        notes.append(f"capped by the provider at {rate.usd_per_month_cap:,.2f} USD a month")
    return notes


def _single_machines(too_many: Mapping[str, Sequence[int]]) -> list[Excluded]:
    """Say which hosts' machines would have to be there several times, and how often."""
    excluded = []
    for title, copies in too_many.items():
        low, high = min(copies), max(copies)
        many = f"{low:,}" if low == high else f"{low:,} to {high:,}"
        machines = "1 machine" if len(copies) == 1 else f"{len(copies):,} machines"
        each = "one host's machine" if len(copies) == 1 else "one host's machine each"
        excluded.append(Excluded(what=f"{machines} at {title}", why=f"{each}; {many} would be needed"))
    return excluded


def _without_machine(
    nowhere: Sequence[tuple[Rate, Refused]],
    best: dict[tuple[str, Tier], tuple[bool, float, float, Rate, OperatingPoint]],
) -> list[Excluded]:
    """Say which providers have nothing that serves, and why their largest does not."""
    served = {provider for provider, _ in best}
    by_reason: dict[Refusal, dict[str, tuple[Rate, Refused]]] = {}
    for rate, outcome in nowhere:
        if rate.provider in served:
            continue
        of_reason = by_reason.setdefault(outcome.refusal, {})
        held = of_reason.get(rate.provider_title)
        if held is None or outcome.sizing.memory.usable_bytes > held[1].sizing.memory.usable_bytes:
            of_reason[rate.provider_title] = (rate, outcome)
    excluded = []
    for reason, largest in by_reason.items():
        rate, outcome = max(largest.values(), key=lambda pair: pair[1].sizing.memory.usable_bytes)
        why = f"no machine of theirs serves it; the largest is {rate.gpu_count}x {rate.gpu}: {outcome.why}"
        if reason is not Refusal.MEMORY:
            why = f"no machine of theirs serves it; {rate.gpu_count}x {rate.gpu}: {outcome.why}"
        excluded.append(Excluded(what=names_text(sorted(largest)), why=why))
    return excluded
