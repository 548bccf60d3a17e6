"""Hardware for a workload: the best single device, the best value, unified memory, the cheapest cloud."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date

from planner.assumptions import Assumptions, Owner
from planner.catalogues.gpus import all_gpus
from planner.rates import Rate, Tier
from planner.scenario import Scenario
from planner.serving.speeds import Speed
from planner.sizing import Sizing, size_machines
from planner.supply.operate import Fleet, MachineKey, Refused
from planner.supply.options import Kind
from planner.supply.owning import Terms, owned_cost
from planner.supply.shop import Candidate, Housing, is_recent_price, machine_keys, machine_price, read_shop
from planner.workload import Machine, Workload


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """One machine that holds the workload."""

    name: str
    gpu: str
    gpu_count: int
    vram_total_gb: float
    usd: float | None = None  # to buy, host included; None where no price is known
    usd_per_hour: str | None = None  # to rent, the stored decimal
    provider: str | None = None
    source: str | None = None
    as_of: str | None = None
    decode_tokens_per_s: float | None = None
    speed_source: str | None = None  # estimated or measured
    user_tokens_per_s: float | None = None  # with the prompts of others in between

    def is_slower_than(self, tokens_per_s: float) -> bool:
        """Whether one user gets fewer tokens a second, as far as the speed is known."""
        return self.user_tokens_per_s is not None and self.user_tokens_per_s < tokens_per_s

    def to_document(self) -> dict[str, object]:
        """Return it as plain JSON values."""
        return {
            "name": self.name,
            "gpu": self.gpu,
            "gpu_count": self.gpu_count,
            "vram_total_gb": self.vram_total_gb,
            "usd": self.usd,
            "usd_per_hour": self.usd_per_hour,
            "provider": self.provider,
            "source": self.source,
            "as_of": self.as_of,
            "decode_tokens_per_s": self.decode_tokens_per_s,
            "speed_source": self.speed_source,
            "user_tokens_per_s": self.user_tokens_per_s,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Recommended:
    """Hardware by kind; None where none of that kind holds the workload."""

    best_single_gpu: Choice | None  # cheapest, then smallest, single GPU
    best_multi_gpu: (
        Choice | None
    )  # cheapest of several GPUs in one machine that beats the one in price or speed
    best_value: Choice | None  # cheapest of both
    unified_memory: Choice | None
    cheapest_cloud: Choice | None

    def to_document(self) -> dict[str, object]:
        """Return it as plain JSON values."""
        return {
            name: choice.to_document() if choice else None
            for name, choice in (
                ("best_single_gpu", self.best_single_gpu),
                ("best_multi_gpu", self.best_multi_gpu),
                ("best_value", self.best_value),
                ("unified_memory", self.unified_memory),
                ("cheapest_cloud", self.cheapest_cloud),
            )
        }


def recommend(
    workload: Workload,
    *,
    rates: Sequence[Rate] = (),
    assumptions: Assumptions | None = None,
    min_tokens_per_s: float = 0.0,
) -> Recommended:
    """
    Return the hardware recommended for a workload.

    Args:
        workload: What is served.
        rates: Rental prices, for the cheapest cloud.
        assumptions: For the price of hosts.
        min_tokens_per_s: Slower machines are passed over where a faster one is known. [tokens/s]
    """
    terms = assumptions or Assumptions(owner=Owner.OFFICE)
    candidates = candidates_to_buy(terms)
    keys = [
        *machine_keys(candidates),
        *((rate.gpu, rate.gpu_count) for rate in rates if rate.gpu in all_gpus()),
    ]
    unique = list(dict.fromkeys(keys))
    machines = [Machine(gpu=all_gpus()[gpu], gpu_count=count) for gpu, count in unique]
    sizings = dict(zip(unique, size_machines(workload, machines), strict=True))
    priced = replace(terms, overrides=_without_price(terms.overrides))

    def choice_of(candidate: Candidate, count: int) -> Choice | None:
        sizing = sizings.get((candidate.gpu.name, count))
        if sizing is None or not sizing.memory.fits or sizing.speed is None:
            return None
        usd = source = None
        if candidate.purchase is not None:
            usd, source = machine_price(candidate, count, priced)
        return _choice(candidate, count, sizing.speed, usd, source)

    return Recommended(
        **_to_buy(candidates, choice_of, min_tokens_per_s),
        cheapest_cloud=_cheapest_rate(rates, sizings, min_tokens_per_s),
    )


def recommend_from(fleet: Fleet, terms: Terms, candidates: Sequence[Candidate]) -> Recommended:
    """
    Return the same as a plan runs and prices them: within its limits, at its batch, with all that is paid.

    Args:
        fleet: How one machine of each kind is run.
        terms: What purchases share, the rental that the plan chose among it.
        candidates: Of `candidates_to_buy`.
    """
    free = _without_price(terms.assumptions.overrides)
    priced = replace(terms, assumptions=replace(terms.assumptions, overrides=free))

    def choice_of(candidate: Candidate, count: int) -> Choice | None:
        point = fleet.outcome(candidate.gpu.name, count)
        if isinstance(point, Refused):
            return None
        usd = source = None
        if candidate.purchase is not None:
            _, cost = owned_cost(candidate, replace(point, replicas=1, shifts=()), priced)
            usd, source = float(cost.capex_usd), machine_price(candidate, count, priced.assumptions)[1]
        return _choice(candidate, count, point.speed, usd, source)

    scenario, rental = terms.scenario, terms.rental or terms.slow_rental
    cloud = None
    if rental is not None and rental.kind is Kind.RENT and rental.gpu and rental.gpu_count:
        cloud = Choice(
            name=rental.name,
            gpu=rental.gpu,
            gpu_count=rental.gpu_count,
            vram_total_gb=rental.vram_total_gb or 0.0,
            usd_per_hour=rental.usd_per_hour,
            provider=rental.provider,
            source=rental.price.source_url,
            as_of=rental.price.seen_at,
            decode_tokens_per_s=rental.point.speed.decode_tokens_per_s if rental.point else None,
            speed_source=str(rental.point.speed.source) if rental.point else None,
            user_tokens_per_s=1000.0 / rental.point.speed.tpot_ms if rental.point else None,
        )
    floor = scenario.min_tokens_per_s_per_user
    return Recommended(**_to_buy(candidates, choice_of, floor, scenario.as_of), cheapest_cloud=cloud)


def candidates_to_buy(assumptions: Assumptions, as_of: date | None = None) -> list[Candidate]:
    """Return every device that exists and can be bought, those without a price known on that day too."""
    priced = replace(assumptions, overrides=_without_price(assumptions.overrides))
    shop = read_shop(Scenario(model="any", as_of=as_of), all_gpus(), None, None, priced)
    unpriced = [
        Candidate(gpu=all_gpus()[name], housing=Housing.MODULE, purchase=None, counts=(1,))
        for name in (*shop.without_price, *shop.old_price)
        if not all_gpus()[name].is_unified_memory
    ]
    return [*shop.candidates, *unpriced]


def _without_price(overrides: Mapping[str, float]) -> dict[str, float]:
    """Leave out what speaks of one machine only."""
    return {name: value for name, value in overrides.items() if name != "purchase_usd"}


def _to_buy(
    candidates: Iterable[Candidate],
    choice_of: Callable[[Candidate, int], Choice | None],
    min_tokens_per_s: float,
    as_of: date | None = None,
) -> dict[str, Choice | None]:
    """
    Return the recommended machines to buy, by kind: of each device one, and the smallest number that serves.

    Several of a device that serves alone count as well where they are cheaper or faster than the best single
    one; or only what is sold as a rack would be left of them.
    """
    single: list[Choice] = []
    multi: list[Choice] = []
    unified: list[Choice] = []
    for candidate in candidates:
        ones = tuple(count for count in candidate.counts if count == 1)
        many = tuple(count for count in candidate.counts if count > 1)
        is_complete = candidate.housing is Housing.COMPLETE
        for counts, kind in ((ones, single), (many, multi)):
            found = (choice_of(candidate, count) for count in counts)
            choice = next((each for each in found if each is not None), None)
            if choice is not None:
                (unified if is_complete else kind).append(choice)
    one = _best(single, min_tokens_per_s, as_of)
    multi = [choice for choice in multi if one is None or _is_worth(choice, one)]
    valued = [choice for choice in (*single, *multi) if choice.usd is not None]
    kinds = {
        "best_single_gpu": single,
        "best_multi_gpu": multi,
        "best_value": valued,
        "unified_memory": unified,
    }
    return {name: _best(choices, min_tokens_per_s, as_of) for name, choices in kinds.items()}


def _is_worth(several: Choice, one: Choice) -> bool:
    """Whether a machine of several GPUs is cheaper than one of a single GPU, or faster for a user."""
    is_cheaper = several.usd is not None and (one.usd is None or several.usd < one.usd)
    speed = one.user_tokens_per_s or 0.0
    return is_cheaper or (several.user_tokens_per_s or 0.0) > speed


def _best(choices: Iterable[Choice], min_tokens_per_s: float, as_of: date | None) -> Choice | None:
    """
    Return the cheapest of those that are fast enough, else the cheapest.

    As in the verdict, prices of the newest year count where there are any.
    """
    return min(
        choices,
        key=lambda choice: (choice.is_slower_than(min_tokens_per_s), _order(choice, as_of)),
        default=None,
    )


def _choice(candidate: Candidate, count: int, speed: Speed, usd: float | None, source: str | None) -> Choice:
    """Return one machine to buy."""
    gpu = candidate.gpu
    return Choice(
        name=gpu.name if candidate.housing is Housing.COMPLETE else f"{count}x {gpu.name}",
        gpu=gpu.name,
        gpu_count=count,
        vram_total_gb=gpu.memory_gb_vendor * count,
        usd=usd,
        source=source,
        as_of=candidate.purchase.as_of if candidate.purchase else None,
        decode_tokens_per_s=speed.decode_tokens_per_s,
        speed_source=str(speed.source),
        user_tokens_per_s=1000.0 / speed.tpot_ms,
    )


def _order(choice: Choice, as_of: date | None) -> tuple[bool, bool, float, float, str]:
    """Sort by price, the recent ones first; those without one after the others, by memory."""
    is_old = choice.usd is not None and not is_recent_price(choice.as_of, as_of)
    return (choice.usd is None, is_old, choice.usd or 0.0, choice.vram_total_gb, choice.name)


def _cheapest_rate(
    rates: Sequence[Rate], sizings: Mapping[MachineKey, Sizing], min_tokens_per_s: float
) -> Choice | None:
    """Return the cheapest machine to rent by the hour that holds the workload; no spot machine."""
    usable = [
        (rate, sizings[rate.gpu, rate.gpu_count])
        for rate in rates
        if (rate.gpu, rate.gpu_count) in sizings
        and rate.tier is not Tier.SPOT
        and rate.available is not False
    ]
    fitting = [(rate, sizing) for rate, sizing in usable if sizing.memory.fits]
    if not fitting:
        return None
    rate, sizing = min(
        fitting,
        key=lambda pair: (_is_slow(pair[1], min_tokens_per_s), pair[0].usd_per_hour, pair[0].offer_id),
    )
    return Choice(
        name=f"{rate.gpu_count}x {rate.gpu}",
        gpu=rate.gpu,
        gpu_count=rate.gpu_count,
        vram_total_gb=sizing.machine.gpu.memory_gb_vendor * rate.gpu_count,
        usd_per_hour=rate.usd_per_hour_text,
        provider=rate.provider,
        source=rate.source_url,
        as_of=rate.seen_at.date().isoformat(),
        decode_tokens_per_s=sizing.speed.decode_tokens_per_s if sizing.speed else None,
        speed_source=str(sizing.speed.source) if sizing.speed else None,
        user_tokens_per_s=1000.0 / sizing.speed.tpot_ms if sizing.speed else None,
    )


def _is_slow(sizing: Sizing, min_tokens_per_s: float) -> bool:
    """Whether one user gets fewer tokens a second than that, or nobody knows."""
    return sizing.speed is None or 1000.0 / sizing.speed.tpot_ms < min_tokens_per_s
