"""One way to serve a model, priced: what stands in a row of a plan, and what was left out."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum

from planner.catalogues.purchases import Purchase
from planner.catalogues.tokens import TokenPrice
from planner.cost import OwnCost, Ownership, TokenPrices
from planner.rates import NEWER_WAITS, RESERVED_TIERS, PriceStatus, Rate, Tier
from planner.supply.operate import OperatingPoint


class Kind(StrEnum):
    """How a model is served."""

    RENT = "rent"
    BUY = "buy"
    API = "api"


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceOrigin:
    """When and where a price was seen, and how far it can be trusted."""

    seen_at: str | None  # ISO 8601; as precise as the source allows
    age_hours: float | None
    status: PriceStatus
    source_url: str | None
    witnesses: int = 0

    def to_document(self) -> dict[str, object]:
        """Return the `price` part of an option."""
        return {
            "seen_at": self.seen_at,
            "age_hours": self.age_hours,
            "status": str(self.status),
            "source_url": self.source_url,
            "witnesses": self.witnesses,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class RentBasis:
    """What a rental's monthly cost is made of."""

    rate: Rate
    paid_hours_per_month: float
    hourly_usd_per_month: float  # of one replica, before a cap
    is_capped: bool
    storage_usd_per_month: float  # of all replicas
    egress_usd_per_month: float
    lost_work_fraction: float


@dataclass(frozen=True, slots=True, kw_only=True)
class BuyBasis:
    """What a purchase's monthly cost and break-even are made of; all replicas together."""

    ownership: Ownership
    cost: OwnCost
    purchase: Purchase | None  # None: already owned, or the price was set
    machine_text: str  # how the price of the machine came about
    host_usd: float  # the part of it for the computers around the devices
    host_assumption: str | None  # that says what those cost
    replicas: int
    power_assumption: str | None  # that says what the machine draws beyond its devices
    load_kw: float
    power_text: str  # how its power came about
    hours_per_month: float
    days_per_month: float
    own_usd_per_hour: float  # energy of a further hour of service
    own_fixed_usd_per_month: float  # due even when idle
    gpus_per_server: int | None = None  # modules that share a computer; None: every machine is one
    against: "Option | None" = None  # the rental that it is compared with
    against_hourly: "Option | None" = None  # the same among those billed by use
    is_by_hours: bool = (
        True  # the hours of use are a question: with a demand, fewer of them take more machines
    )
    months_with_resale: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiBasis:
    """What an API's monthly cost is made of."""

    price: TokenPrice
    input_tokens_per_month: float
    output_tokens_per_month: float
    cached_input_fraction: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One way to serve the model; money is USD, unknown is None."""

    kind: Kind
    name: str
    provider: str | None = None
    provider_title: str | None = None
    instance_type: str | None = None
    region: str | None = None
    tier: str | None = None
    billing: str | None = None
    gpu: str | None = None
    gpu_count: int | None = None
    vram_total_gb: float | None = None
    replicas: int = 1
    fits: bool | None = None  # None: no machine of one's own
    usd_per_hour: str | None = None  # the stored decimal
    usd_per_gpu_hour: str | None = None
    usd_per_month: float | None
    usd_per_month_over_term: float | None = None  # the mean, where its price moves by a path that was chosen
    token_prices: TokenPrices | None
    tokens_per_month: float | None  # output tokens
    point: OperatingPoint | None = None
    price: PriceOrigin
    purchase_usd: float | None = None
    purchase_source: str | None = None
    power_w: float | None = None
    energy_usd_per_month: float | None = None
    kwh_per_million_tokens: float | None = None  # output tokens, cooling included
    g_co2_per_million_tokens: float | None = None
    break_even_months: float | None = None
    break_even_hours_per_day: float | None = None
    deploy_url: str | None = None
    is_too_slow: bool = False
    is_own: bool = False  # hardware that is there already
    notes: tuple[str, ...] = ()
    basis: RentBasis | BuyBasis | ApiBasis

    @property
    def usd_per_month_compared(self) -> float | None:
        """What ranks it: a month's cost, where its price moves the mean over the term. [USD/month]"""
        over_term = self.usd_per_month_over_term
        return self.usd_per_month if over_term is None else over_term

    @property
    def rank_key(self) -> tuple[bool, bool, float, str, str]:
        """
        Cheapest first; too slow to talk to last; without a monthly cost behind those that have one.

        Those without a monthly cost go by the price of a million output tokens with their input.
        """
        month, per_million = self.usd_per_month_compared, None
        if month is None and self.token_prices is not None:
            per_million = self.token_prices.usd_per_million_tokens
        return (
            self.is_too_slow,
            month is None,
            (math.inf if per_million is None else per_million) if month is None else month,
            self.name,
            self.provider or "",
        )

    @property
    def times_text(self) -> str:
        """The machine, with the number of its copies."""
        return self.name if self.replicas in (None, 1) else f"{self.replicas} x ({self.name})"

    @property
    def offer_text(self) -> str:
        """Machines, provider and tier of a rental in a few words."""
        return self._from(self.times_text)

    @property
    def single_offer_text(self) -> str:
        """The same of one of its copies."""
        return self._from(self.name)

    def _from(self, machines: str) -> str:
        return ", ".join(part for part in (f"{machines} from {self.provider}", self.tier) if part)

    @property
    def is_spot(self) -> bool:
        """Whether it may be taken away at any time."""
        return self.tier == Tier.SPOT

    @property
    def is_reserved(self) -> bool:
        """Whether it is paid for the whole month, used or not."""
        return self.tier in RESERVED_TIERS

    @property
    def held_months(self) -> float:
        """How long a rental's price is agreed for at a time; 0: it is that of the day. [months]"""
        return self.basis.rate.held_months if isinstance(self.basis, RentBasis) else 0.0

    @property
    def compared_with(self) -> "Option | None":
        """The rental that a purchase is compared with; None: there is none, so nothing says when it pays."""
        return self.basis.against if isinstance(self.basis, BuyBasis) else None

    @property
    def term_months(self) -> float | None:
        """Over which a machine of one's own is written off; None for what is not owned. [months]"""
        return float(self.basis.ownership.term_years) * 12.0 if isinstance(self.basis, BuyBasis) else None

    @property
    def pays_after_its_term(self) -> bool:
        """Whether a purchase pays back only when its term is over."""
        months, term = self.break_even_months, self.term_months
        return months is not None and term is not None and months > term

    @property
    def waiting(self) -> str | None:
        """What is said of a newer price that waits to be confirmed; None where none does."""
        return next((note for note in self.notes if NEWER_WAITS in note), None)

    @property
    def is_current(self) -> bool:
        """Whether its price was verified by this installation, or is the user's own."""
        return self.price.status is not PriceStatus.SNAPSHOT

    def to_document(self) -> dict[str, object]:
        """Return the option as in `breakeven.plan/1`."""
        speed = self.point.speed if self.point else None
        ends = speed.ends("decode") if speed else None
        prices = self.token_prices
        return {
            "kind": str(self.kind),
            "name": self.name,
            "provider": self.provider,
            "instance_type": self.instance_type,
            "region": self.region,
            "tier": self.tier,
            "billing": self.billing,
            "gpu": self.gpu,
            "gpu_count": self.gpu_count,
            "vram_total_gb": self.vram_total_gb,
            "replicas": self.replicas,
            "fits": self.fits,
            "usd_per_hour": self.usd_per_hour,
            "usd_per_gpu_hour": self.usd_per_gpu_hour,
            "usd_per_month": self.usd_per_month,
            "usd_per_million_tokens": prices.usd_per_million_tokens if prices else None,
            "usd_per_million_input_tokens": prices.usd_per_million_input_tokens if prices else None,
            "usd_per_million_output_tokens": prices.usd_per_million_output_tokens if prices else None,
            "tokens_per_month": self.tokens_per_month,
            "decode_tokens_per_s": speed.decode_tokens_per_s if speed else None,
            "aggregate_tokens_per_s": speed.aggregate_tokens_per_s if speed else None,
            "speed_low": ends[0] if ends else None,
            "speed_high": ends[1] if ends else None,
            "ttft_ms": speed.ttft_ms if speed else None,
            "tpot_ms": speed.tpot_ms if speed else None,
            "speed_source": str(speed.source) if speed else None,
            "price": self.price.to_document(),
            "purchase_usd": self.purchase_usd,
            "purchase_source": self.purchase_source,
            "power_w": self.power_w,
            "energy_usd_per_month": self.energy_usd_per_month,
            "break_even_months": self.break_even_months,
            "break_even_hours_per_day": self.break_even_hours_per_day,
            "deploy_url": self.deploy_url,
            "kwh_per_million_tokens": self.kwh_per_million_tokens,
            "g_co2_per_million_tokens": self.g_co2_per_million_tokens,
            "break_even_against": None if self.compared_with is None else self.compared_with.offer_text,
            "aggregate_source": str(speed.aggregate_source) if speed else None,
            "usd_per_month_over_term": self.usd_per_month_over_term,
            "notes": list(self.notes),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Excluded:
    """Something that is not in the ranking, and why."""

    what: str
    why: str

    def to_document(self) -> dict[str, object]:
        """Return it as in `breakeven.plan/1`."""
        return {"what": self.what, "why": self.why}


def ranked(options: Sequence[Option]) -> tuple[Option, ...]:
    """Return options cheapest first, those too slow to talk to last."""
    return tuple(sorted(options, key=lambda option: option.rank_key))


def decimal_text(amount: Decimal) -> str:
    """Write a price as a plain decimal: at least two places, at most six, no exponent."""
    text = f"{amount.quantize(Decimal('0.000001')):f}".rstrip("0")
    whole, _, places = text.partition(".")
    return f"{whole}.{places:0<2}"


def per_gpu_text(usd_per_hour: str, gpu_count: int) -> str:
    """Return the price of one GPU's hour as a decimal. [USD/h]"""
    return decimal_text(Decimal(usd_per_hour) / gpu_count)


def names_text(names: Sequence[str], most: int = 6) -> str:
    """Write names in a row, the first ones and how many more there are."""
    unique = list(dict.fromkeys(names))
    if len(unique) <= most:
        return ", ".join(unique)
    return f"{', '.join(unique[: most - 1])} and {len(unique) - most + 1} more"
