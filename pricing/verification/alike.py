"""Which prices are of one kind: of the same offer, instance, GPUs or device; and which cost the same."""

from collections.abc import Callable, Sequence
from decimal import Decimal

from planner.rates import RESERVED_TIERS
from pricing.offer import Offer
from pricing.parsing.regions import is_same_place, region_key
from pricing.storage.memory import KnownPrice
from pricing.verification.limits import LEAP

# Two prices within this share are one: rounding, exchange rates. Source: own choice; docs/providers.md.
SAME_SHARE = 0.02

Key = tuple[object, ...]

# Nearest first. A slice is only compared with slices, and what bills the CPU apart only with its like.
LEVELS: Sequence[tuple[str, Callable[[Offer | KnownPrice], Key]]] = (
    (
        "its own last price",
        lambda one: (plain_name(one.instance_type), one.gpu_count, place_of(one), _term(one)),
    ),
    ("the same instance in other regions", lambda one: (plain_name(one.instance_type), one.gpu_count)),
    ("the same GPUs under another name", lambda one: (one.gpu_count,)),
    ("the same GPU in other sizes", lambda one: ()),
)


def is_same(one: Decimal | float, other: Decimal | float, share: float = SAME_SHARE) -> bool:
    """Whether two prices differ by no more than a share of the second."""
    return abs(float(one) - float(other)) <= share * float(other)


def is_leap(factor: float) -> bool:
    """Whether a price is so far from another that no list price ever truly moved so far."""
    return not 1 / LEAP < factor < LEAP


def level_key(number: int, one: Offer | KnownPrice) -> Key:
    """Return what is compared at a level."""
    return (number, *device_of(one), *LEVELS[number - 1][1](one))


def device_of(one: Offer | KnownPrice) -> Key:
    """Return what is the same GPU in one tier, whatever the size, name and place."""
    return (one.gpu, one.tier, one.gpu_fraction is not None, one.gpu_only)


def _slice(one: Offer | KnownPrice) -> float | None:
    return None if one.gpu_fraction is None else round(one.gpu_fraction, 3)


def machine_of(one: Offer | KnownPrice) -> Key:
    """Return what is the same instance wherever it stands."""
    return (plain_name(one.instance_type), one.gpu, one.gpu_count, _slice(one), one.tier, one.gpu_only)


def plain_name(instance_type: str) -> str:
    """Return an instance's name so that capitals and spaces make no other one of it."""
    return " ".join(instance_type.casefold().split())


def place_of(one: Offer | KnownPrice) -> str:
    """Return a region however it is spelled."""
    return region_key(one.provider, one.region)


def is_beside(one: KnownPrice, offer: Offer) -> bool:
    """Whether a known price may be of the same place."""
    return is_same_place(place_of(one), place_of(offer))


def _term(one: Offer | KnownPrice) -> str:
    """Tell commitments of different length apart: the identifier of a series holds it."""
    if one.tier not in RESERVED_TIERS:
        return ""
    return one.id if isinstance(one, Offer) else one.series_id


def series_of(one: Offer | KnownPrice) -> Key:
    """Return what is this very offer."""
    return (*machine_of(one), place_of(one), _term(one))
