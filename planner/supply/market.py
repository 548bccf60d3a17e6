"""Which rental prices a question may use: by age, stock, device, provider, tier and region."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from planner.assumptions import Assumptions
from planner.catalogue import close_matches
from planner.catalogues.regions import is_region
from planner.errors import UnknownName
from planner.rates import PriceStatus, Rate, Tier
from planner.scenario import Scenario
from planner.supply.operate import MachineKey
from planner.supply.options import Excluded, names_text
from planner.supply.rent import rent_of_copy

_AGED = frozenset({PriceStatus.VERIFIED, PriceStatus.STALE})


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


def left_out(market: Market, scenario: Scenario) -> list[Excluded]:
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


def _counted(counts: Counter[str], noun: str) -> str:
    """Return how many, and of whom."""
    total = counts.total()
    names = names_text([name for name, _ in counts.most_common()])
    return f"{total:,} {noun}{'s' if total != 1 else ''} ({names})"
