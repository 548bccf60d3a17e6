"""What can be bought: devices with a known price, in the numbers that make sense, with their computer."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from enum import StrEnum
from functools import cache

from planner.assumptions import Assumptions
from planner.catalogues.gpus import DeviceClass, Gpu
from planner.catalogues.purchases import (
    PricePoint,
    Purchase,
    all_purchase_points,
    default_purchase,
    quoted_purchase,
)
from planner.cost import MONTHS_PER_YEAR
from planner.scenario import Scenario
from planner.supply.operate import MachineKey
from planner.supply.options import Excluded, names_text

# Tensor-parallel ranks share heads evenly: engines take powers of two.
GPU_COUNTS = (1, 2, 4, 8, 16)

# Hardware prices moved by half within 2026 (`max_purchase_age_years` of the assumptions): a launch price of
# the year before says little of what a shop asks.
RECENT_PURCHASE_YEARS = 1.0

# HGX and OAM boards carry eight.
MODULES_PER_SERVER = 8


class Housing(StrEnum):
    """What a device needs around it to be a machine."""

    COMPLETE = "complete"  # it is a whole computer
    CARD = "card"  # goes into a workstation, whose price is added
    MODULE = "module"  # SXM, OAM: sits on a board of a server, whose price is added
    SERVER = "server"  # sold as a whole server or rack


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A device that could be bought, and in which numbers."""

    gpu: Gpu
    housing: Housing
    purchase: Purchase | None  # None: owned, or its price was set
    counts: tuple[int, ...]
    is_own: bool = False

    @property
    def keys(self) -> list[MachineKey]:
        """The machines to size."""
        return [(self.gpu.name, count) for count in self.counts]


@dataclass(slots=True, kw_only=True)
class Shop:
    """What could be bought, and what could not, by reason."""

    candidates: list[Candidate] = field(default_factory=list)
    without_price: list[str] = field(default_factory=list)
    old_price: dict[str, str] = field(default_factory=dict)  # and when it was seen
    never_sold: list[str] = field(default_factory=list)
    cloud_only: list[str] = field(default_factory=list)
    without_power: list[str] = field(default_factory=list)
    as_of: date | None = None  # prices as they stood then; None: now


def housing_of(gpu: Gpu, what: str | None = None) -> Housing:
    """Return what a device needs around it, from the way it is sold or from its form."""
    if what in ("mac", "laptop", "mini-pc", "workstation"):
        return Housing.COMPLETE
    if what in ("server 8x", "rack"):
        return Housing.SERVER
    if gpu.is_unified_memory or gpu.device_class in (DeviceClass.UNIFIED, DeviceClass.DESKTOP_SYSTEM):
        return Housing.COMPLETE
    form = (gpu.form_factor or "").lower()
    is_module = any(word in form for word in ("sxm", "oam", "module", "superchip")) and "pcie" not in form
    return Housing.MODULE if what == "module" or is_module else Housing.CARD


def read_shop(
    scenario: Scenario,
    gpus: Mapping[str, Gpu],
    gpu: str | None,
    own: MachineKey | None,
    assumptions: Assumptions,
    quotes: Sequence[PricePoint] = (),
) -> Shop:
    """
    Return what could be bought: every device with a known price, in the numbers that make sense.

    Args:
        scenario: Its filter of GPUs per machine, and the day whose prices count.
        gpus: The catalogue.
        gpu: Canonical name of the one device that is asked for, or None.
        own: Hardware that is there already.
        assumptions: A price or power that was set.
        quotes: Own quotes: they go before the prices of the catalogue.
    """
    day = scenario.as_of
    shop = Shop(as_of=day)
    if own is not None:
        device = gpus[own[0]]
        shop.candidates.append(
            Candidate(gpu=device, housing=housing_of(device), purchase=None, counts=(own[1],), is_own=True)
        )
    is_price_set = assumptions.is_set("purchase_usd")
    oldest = newest_purchase_year(day) - assumptions["max_purchase_age_years"]
    for device in gpus.values() if gpu is None else [gpus[gpu]]:
        purchase = quoted_purchase(device.name, quotes, day) or _purchase(device.name, day)
        if not device.exists:
            shop.never_sold.append(device.name)
        elif device.device_class is DeviceClass.CLOUD_ONLY:
            shop.cloud_only.append(device.name)
        elif purchase is None and not (is_price_set and gpu is not None):
            shop.without_price.append(device.name)
        elif not is_price_set and purchase is not None and year_of(purchase.as_of) < oldest:
            shop.old_price[device.name] = purchase.as_of or "undated"
        else:
            housing = housing_of(device, purchase.what if purchase else None)
            candidate = Candidate(
                gpu=device,
                housing=housing,
                purchase=purchase,
                counts=_counts(device, housing, purchase, scenario.gpus),
            )
            if (
                device.tdp_w is None
                and housing is not Housing.COMPLETE
                and not assumptions.is_set("power_kw")
            ):
                shop.without_power.append(device.name)
            elif candidate.counts:
                shop.candidates.append(candidate)
    return shop


@cache
def newest_purchase_year(known_by: date | None = None) -> float:
    """Return the time of the newest purchase price known on a day, from which others are aged. [years]"""
    known = (point for point in all_purchase_points() if point.is_known_by(known_by))
    return max((year_of(point.as_of) for point in known), default=0.0)


def is_recent_price(as_of: str | None, known_by: date | None = None) -> bool:
    """Whether a purchase price is at most a year older than the newest that is known of any device."""
    return newest_purchase_year(known_by) - year_of(as_of) <= RECENT_PURCHASE_YEARS


def year_of(as_of: str | None) -> float:
    """Return a day, month, quarter or year as a number of years; an undated one is old."""
    if not as_of:
        return 0.0
    year, _, rest = as_of.partition("-")
    quarters = {"Q1": 1, "Q2": 4, "Q3": 7, "Q4": 10, "H1": 1, "H2": 7}
    month = quarters.get(rest, int(rest[:2]) if rest[:2].isdigit() else 1)
    return int(year) + (month - 1) / MONTHS_PER_YEAR


@cache
def _purchase(gpu: str, known_by: date | None) -> Purchase | None:
    """Return what a device costs: new, else refurbished, else used."""
    conditions = ("new", "refurbished", "used")
    found = (default_purchase(gpu, condition, known_by) for condition in conditions)
    return next((purchase for purchase in found if purchase is not None), None)


def _counts(gpu: Gpu, housing: Housing, purchase: Purchase | None, asked: int | None) -> tuple[int, ...]:
    """Return in which numbers a device can be bought."""
    if housing is Housing.COMPLETE:
        possible: tuple[int, ...] = (1,)
    elif housing is Housing.SERVER and purchase is not None:
        possible = (purchase.units,)
    elif asked is not None:
        return (asked,)
    else:
        possible = tuple(count for count in GPU_COUNTS if count <= (gpu.max_gpus_per_node or 1))
    return tuple(count for count in possible if asked is None or count == asked)


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineParts:
    """What the price of one machine is made of."""

    devices_usd: float  # or the whole, where it is sold so or was set
    host_usd: float = 0.0  # the computer around them
    host_assumption: str | None = None  # that says what it costs


def machine_parts(candidate: Candidate, count: int, assumptions: Assumptions) -> MachineParts:
    """
    Return what the price of one machine is made of.

    Source:
        docs/methodology.md, "Owning".
    """
    if candidate.is_own:
        return MachineParts(devices_usd=0.0)
    if assumptions.is_set("purchase_usd"):
        return MachineParts(devices_usd=assumptions["purchase_usd"])
    if candidate.purchase is None:
        raise ValueError(f"{candidate.gpu.name} has no price")
    devices = candidate.purchase.usd_per_gpu * count
    if candidate.housing not in (Housing.CARD, Housing.MODULE):
        return MachineParts(devices_usd=devices)
    host = max(assumptions["host_usd"] * count / assumptions["host_gpus"], assumptions["host_minimum_usd"])
    source = "host_usd"
    share = devices * assumptions["server_over_modules_fraction"]
    if candidate.housing is Housing.MODULE and share > host:
        host, source = share, "server_over_modules_fraction"
    return MachineParts(devices_usd=devices, host_usd=host, host_assumption=source)


def machine_price(candidate: Candidate, count: int, assumptions: Assumptions) -> tuple[float, str]:
    """
    Return the price of one machine with its host, and how it came about. [USD]

    Source:
        docs/methodology.md, "Owning".
    """
    parts, purchase = machine_parts(candidate, count, assumptions), candidate.purchase
    if candidate.is_own:
        return 0.0, "owned already: its price is spent"
    if purchase is None or assumptions.is_set("purchase_usd"):
        return parts.devices_usd, assumptions.source("purchase_usd")
    units = count // purchase.units
    dated = f"{purchase.condition}, {purchase.as_of or 'undated'}, {purchase.source}"
    text = f"{units} x {purchase.usd:,.0f} USD a {purchase.what} ({dated})"
    if purchase.usd_low < purchase.usd_high:
        text += f"; middle of {purchase.usd_low:,.0f} to {purchase.usd_high:,.0f}"
    if parts.host_assumption is None:
        return parts.devices_usd, text
    source = assumptions.source(parts.host_assumption)
    return (
        parts.devices_usd + parts.host_usd,
        f"{text}; plus {parts.host_usd:,.0f} USD for the computer around it ({source})",
    )


def not_sold(shop: Shop) -> list[Excluded]:
    """Say which devices cannot be bought, by reason."""
    then = "" if shop.as_of is None else f" of {shop.as_of} or before"
    reasons = (
        (shop.without_price, f"no purchase price{then} is known"),
        (
            [f"{name} ({day})" for name, day in shop.old_price.items()],
            "the newest purchase price known is too old; --set max_purchase_age_years=6 takes more",
        ),
        (shop.never_sold, "announced or rumoured, never sold"),
        (shop.cloud_only, "rented only, not sold"),
        (shop.without_power, "its power draw is not known; give it with --set power_kw"),
    )
    return [
        Excluded(what=f"{len(names)} to buy: {names_text(names)}", why=why) for names, why in reasons if names
    ]


def machine_keys(candidates: Iterable[Candidate]) -> list[MachineKey]:
    """Return every machine of what may be bought, to size it."""
    return [key for candidate in candidates for key in candidate.keys]
