"""Rented machines: what a month costs, and for each provider and tier the cheapest that serves."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC

from planner.assumptions import Assumptions
from planner.catalogue import close_matches
from planner.catalogues.regions import is_region
from planner.cost import token_prices
from planner.errors import UnknownName
from planner.rates import RESERVED_TIERS, Billing, PriceStatus, Rate, Tier
from planner.scenario import Scenario
from planner.supply.load import Shift
from planner.supply.operate import Fleet, MachineKey, OperatingPoint, Refusal, Refused
from planner.supply.options import Excluded, Kind, Option, PriceOrigin, RentBasis, names_text, per_gpu_text
from planner.units import GB, HOURS_PER_MONTH, TOKENS_PER_PRICE

# English text: about 4.7 letters a word, 0.75 words a token, with blanks and punctuation about 5 bytes.
BYTES_PER_TOKEN = 5.0

_WHOLE_MONTH = frozenset({Billing.MONTHLY, Billing.PER_TERM})
_AGED = frozenset({PriceStatus.VERIFIED, PriceStatus.STALE})


def paid_hours_per_month(rate: Rate, hours_per_month: float) -> float:
    """
    Hours that are paid: those of use, or the whole month where the machine is reserved. [h/month]

    Source:
        docs/methodology.md, "Renting".
    """
    if rate.tier in RESERVED_TIERS or rate.billing in _WHOLE_MONTH:
        return max(HOURS_PER_MONTH, hours_per_month)
    return hours_per_month


def rent_usd_per_month(rate: Rate, hours_per_month: float, lost_work_fraction: float = 0.0) -> float:
    """
    Rent of one machine for a month, up to the provider's monthly cap. [USD/month]

    Args:
        rate: The price.
        hours_per_month: Hours in which the service is there. [h/month]
        lost_work_fraction: On a spot machine, work that has to be done again. [fraction]

    Source:
        docs/methodology.md, "Renting".
    """
    cost = rate.usd_per_hour * paid_hours_per_month(rate, hours_per_month)
    if rate.tier is Tier.SPOT:
        cost /= 1.0 - lost_work_fraction
    return cost if rate.usd_per_month_cap is None else min(cost, rate.usd_per_month_cap)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rent:
    """A month's rent of all replicas."""

    usd: float
    uncapped_usd: float  # what it would be without the provider's cap
    paid_hours: float  # of one replica, the mean over all of them [h/month]


def steps_of(point: OperatingPoint, scenario: Scenario) -> tuple[Shift, ...]:
    """Return which copies of a machine run how long: all the time, or with the load of the day."""
    all_day = Shift(replicas=point.replicas, hours_per_day=scenario.service_hours_per_day)
    return point.shifts or (all_day,)


def rent_of_copy(
    rate: Rate, hours_per_day: float, scenario: Scenario, lost_work_fraction: float = 0.0
) -> float:
    """Rent of one machine for a month in which it runs so many hours of each day. [USD/month]"""
    paid = scenario.month_of(billed_hours_per_day(rate.billing, hours_per_day))
    return rent_usd_per_month(rate, paid, lost_work_fraction)


def billed_hours_per_day(billing: Billing | None, hours_per_day: float) -> float:
    """
    Return the hours of a day's session that are paid: a started one is whole where it is so billed. [h/d]

    Source:
        docs/methodology.md, "Renting".
    """
    return float(math.ceil(hours_per_day - 1e-9)) if billing is Billing.HOURLY else hours_per_day


def rent_of(rate: Rate, steps: Sequence[Shift], scenario: Scenario, lost_work_fraction: float) -> Rent:
    """
    Rent of all replicas for a month; those paid by use are started and stopped with the load of the day.

    Args:
        rate: The price of one machine.
        steps: How many of them run, and how long; at least one.
        scenario: Its days.
        lost_work_fraction: On a spot machine, work that has to be done again. [fraction]

    Source:
        docs/methodology.md, "Renting".
    """
    free = replace(rate, usd_per_month_cap=None)
    usd = uncapped_usd = paid_hours = 0.0
    for step in steps:
        hours = scenario.month_of(billed_hours_per_day(rate.billing, step.hours_per_day))
        usd += step.replicas * rent_usd_per_month(rate, hours, lost_work_fraction)
        uncapped_usd += step.replicas * rent_usd_per_month(free, hours, lost_work_fraction)
        paid_hours += step.replicas * paid_hours_per_month(rate, hours)
    replicas = sum(step.replicas for step in steps)
    return Rent(usd=usd, uncapped_usd=uncapped_usd, paid_hours=paid_hours / replicas)


@dataclass(slots=True, kw_only=True)
class Market:
    """The prices that may be used, the cheapest of each machine kept, and the count of those left out."""

    cheapest: dict[tuple[str, Tier, str, int], tuple[float, Rate]] = field(default_factory=dict)
    too_old: Counter[str] = field(default_factory=Counter)
    sold_out: Counter[str] = field(default_factory=Counter)
    unknown_gpu: Counter[str] = field(default_factory=Counter)
    filtered: int = 0
    used: int = 0

    @property
    def machines(self) -> list[MachineKey]:
        """Every machine on offer, each of them once."""
        return list(dict.fromkeys((gpu, count) for _, _, gpu, count in self.cheapest))


def read_market(
    scenario: Scenario,
    rates: Iterable[Rate],
    known_gpus: Iterable[str],
    gpu: str | None,
    assumptions: Assumptions,
) -> Market:
    """
    Return the prices that a scenario allows, the cheapest of each provider, tier and machine.

    Args:
        scenario: Its filters and its limit of age.
        rates: All prices.
        known_gpus: Names of the catalogue.
        gpu: Canonical name of the one device that is asked for, or None.
        assumptions: For work lost on spot machines.
    """
    market, known = Market(), frozenset(known_gpus)
    providers = frozenset(slug(name) for name in scenario.provider)
    tiers, regions = frozenset(scenario.tier), tuple(scenario.region)
    hours, limit_hours = scenario.service_hours_per_day, scenario.max_price_age * 24.0
    lost = assumptions["spot_lost_work_fraction"]
    for rate in rates:
        if (
            (gpu is not None and rate.gpu != gpu)
            or (scenario.gpus is not None and rate.gpu_count != scenario.gpus)
            or (providers and slug(rate.provider) not in providers)
            or (tiers and rate.tier not in tiers)
            or (regions and not is_in_region(rate.region, regions))
        ):
            market.filtered += 1
        elif rate.gpu not in known:
            market.unknown_gpu[rate.gpu] += 1
        elif rate.status in _AGED and rate.age_hours > limit_hours:
            market.too_old[rate.provider_title] += 1
        elif rate.available is False:
            market.sold_out[rate.provider_title] += 1
        else:
            market.used += 1
            key = (rate.provider, rate.tier, rate.gpu, rate.gpu_count)
            cost = rent_of_copy(rate, hours, scenario, lost)
            best = market.cheapest.get(key)
            if best is None or (cost, -rate.seen_at.timestamp()) < (best[0], -best[1].seen_at.timestamp()):
                market.cheapest[key] = (cost, rate)
    return market


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
    options = [_option(scenario, rate, point, assumptions) for *_, rate, point in best.values()]
    nowhere = [pair for key, pairs in refused.items() if key not in best for pair in pairs]
    return options, [
        *_left_out(market, scenario),
        *_single_machines(too_many),
        *_without_machine(nowhere, best),
    ]


def slug(provider: str) -> str:
    """Return a provider's name as a key: `vast.ai` and `Vast.ai` are `vastai`."""
    return "".join(letter for letter in provider.lower() if letter.isalnum())


def is_in_region(region: str | None, wanted: Sequence[str]) -> bool:
    """Whether a region is, or lies in, one of those wanted: `us` holds `us-east-1`."""
    if region is None:
        return False
    place = region.lower()
    return any(place == name or place.startswith((f"{name}-", f"{name}_", f"{name} ")) for name in wanted)


def check_regions(scenario: Scenario, rates: Iterable[Rate]) -> None:
    """
    Refuse a region in which no price lies and that is no country, EU, continent or the world.

    Raises:
        UnknownName: with close matches. Where no price names any region, nothing can be refused.
    """
    for name, matches in unknown_regions(scenario, rates):
        raise UnknownName("region", name, matches)


def unknown_regions(scenario: Scenario, rates: Iterable[Rate]) -> list[tuple[str, Sequence[str]]]:
    """Return the regions asked for that nobody offers and that are no place, each with close matches."""
    if not scenario.region:
        return []
    offered = sorted({rate.region.lower() for rate in rates if rate.region is not None})
    found: list[tuple[str, Sequence[str]]] = []
    for name in scenario.region if offered else ():
        is_offered = any(is_in_region(region, (name,)) for region in offered)
        if not is_offered and not is_region(name):
            longer = [region for region in offered if len(region) > 2 or len(name) <= 3]  # not every country
            found.append((name, close_matches(name, longer)))
    return found


def _option(scenario: Scenario, rate: Rate, point: OperatingPoint, assumptions: Assumptions) -> Option:
    """Return the row of one rented machine."""
    replicas, lost = point.replicas, assumptions["spot_lost_work_fraction"]
    rent = rent_of(rate, steps_of(point, scenario), scenario, lost)
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
        usd_per_month_over_term=assumptions.rents.over_term(month, assumptions["term_years"]),
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
    elif rate.billing in _WHOLE_MONTH:
        notes.append("billed by the month: all of it is paid")
    elif rate.billing is Billing.HOURLY:
        notes.append("billed by the hour: a started hour is paid in full")
    elif rate.billing is None:
        notes.append("the source does not say how time is rounded")
    if rate.usd_per_month_cap is not None and rate.usd_per_month_cap < uncapped_usd:
        notes.append(f"capped by the provider at {rate.usd_per_month_cap:,.2f} USD a month")
    return notes


def _left_out(market: Market, scenario: Scenario) -> list[Excluded]:
    """Say which prices were not used, by reason."""
    excluded = []
    if market.too_old:
        excluded.append(
            Excluded(
                what=_counted(market.too_old, "price"),
                why=f"seen more than {scenario.max_price_age:g} days ago",
            )
        )
    if market.sold_out:
        excluded.append(Excluded(what=_counted(market.sold_out, "offer"), why="sold out when last seen"))
    if market.unknown_gpu:
        excluded.append(
            Excluded(what=_counted(market.unknown_gpu, "offer"), why="the device is not in the catalogue")
        )
    if market.filtered and not market.used:
        excluded.append(
            Excluded(
                what=f"{market.filtered:,} prices", why="not of the provider, tier, region or GPU asked for"
            )
        )
    return excluded


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


def _counted(counts: Counter[str], noun: str) -> str:
    """Return how many, and of whom."""
    total = counts.total()
    names = names_text([name for name, _ in counts.most_common()])
    return f"{total:,} {noun}{'s' if total != 1 else ''} ({names})"
