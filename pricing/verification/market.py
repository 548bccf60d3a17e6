"""What a GPU costs on the market: the middle of recent prices, by model, class of seller and kind of tier."""

import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from planner.catalogues.gpus import all_gpus
from planner.rates import RESERVED_TIERS, Tier
from pricing.offer import Offer, Verdict
from pricing.provider import ProviderClass
from pricing.storage.memory import KnownPrice

# Prices of one GPU and class are compared within this time before the newest of them. Source: own choice.
WINDOW = timedelta(days=120)
# With fewer observations there is no middle to speak of. Source: own choice.
MIN_OBSERVATIONS = 3
MIN_SELLERS = 3
# So many devices with a level show what memory bandwidth costs. Source: own choice.
MIN_DEVICES = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """The middle of what is known."""

    usd_per_gpu_hour: float
    observations: int
    is_own_class: bool  # False: of all classes of sellers, since this one has too few


@dataclass(frozen=True, slots=True, kw_only=True)
class Likeness:
    """What a GPU without a level would cost as others do for their memory bandwidth."""

    usd_per_gpu_hour: float
    devices: int


def tier_group(tier: Tier) -> str:
    """Return the kind of tier whose prices move together: list, spot or reserved."""
    if tier is Tier.SPOT:
        return "spot"
    return "reserved" if tier in RESERVED_TIERS else "list"


def usd_per_whole_gpu(offer: Offer | KnownPrice) -> float:
    """Return the price of one whole GPU's hour; a slice is scaled up to the card. [USD/h]"""
    return float(offer.usd_per_hour) / offer.gpu_count / (offer.gpu_fraction or 1.0)


class Market:
    """
    The levels of all known prices.

    Args:
        known: Prices of all providers; only verified ones of whole machines count, the newest of each series.
        kinds: Class of each provider; one that is not named counts as a neocloud.
    """

    def __init__(self, known: Iterable[KnownPrice], kinds: Mapping[str, ProviderClass]) -> None:
        newest: dict[tuple[object, ...], KnownPrice] = {}
        for price in known:
            is_usable = price.verdict == Verdict.VERIFIED and price.witness is None and price.usd_per_hour > 0
            if price.gpu is None or price.gpu_only or price.gpu_fraction is not None or not is_usable:
                continue
            key = (price.provider, price.instance_type, price.gpu, price.gpu_count, price.region, price.tier)
            if key not in newest or price.last_seen_at > newest[key].last_seen_at:
                newest[key] = price
        by_class: dict[tuple[str, str, ProviderClass | None], list[KnownPrice]] = defaultdict(list)
        for price in newest.values():
            gpu, group = str(price.gpu), tier_group(price.tier)
            by_class[gpu, group, kinds.get(price.provider, ProviderClass.NEOCLOUD)].append(price)
            by_class[gpu, group, None].append(price)
        self._levels = {
            key: _middle(prices, min_sellers=1 if key[2] is not None else MIN_SELLERS)
            for key, prices in by_class.items()
        }
        self._per_bandwidth = self._priced_by_bandwidth()

    def level(self, gpu: str, tier: Tier, kind: ProviderClass) -> Level | None:
        """
        Return the level of this class of sellers, else that of all; None where too little is known.

        Where nobody's reservations are known, list prices of all stand in.
        """
        group = tier_group(tier)
        searched = [(group, kind), (group, None)]
        if group == "reserved":
            searched.append(("list", None))
        for of_group, of_class in searched:
            found = self._levels.get((gpu, of_group, of_class))
            if found is not None:
                middle, count, _ = found
                return Level(usd_per_gpu_hour=middle, observations=count, is_own_class=of_class is not None)
        return None

    def likeness(self, gpu: str, tier: Tier, kind: ProviderClass) -> Likeness | None:
        """Return what this GPU's memory bandwidth costs with this class of sellers, else with all."""
        bandwidth = _bandwidth_tb_per_s(gpu)
        groups = ("spot", "list") if tier is Tier.SPOT else ("list",)
        for key in [(group, of_class) for group in groups for of_class in (kind, None)]:
            found = self._per_bandwidth.get(key, [])
            if bandwidth is not None and len(found) >= MIN_DEVICES:
                return Likeness(usd_per_gpu_hour=statistics.median(found) * bandwidth, devices=len(found))
        return None

    def _priced_by_bandwidth(self) -> Mapping[tuple[str, ProviderClass | None], list[float]]:
        """Return what each device with a recent level costs, by its memory bandwidth. [USD/h per TB/s]"""
        levels = {key: level for key, level in self._levels.items() if level is not None}
        since = max((newest for _, _, newest in levels.values()), default=None)
        found: dict[tuple[str, ProviderClass | None], list[float]] = defaultdict(list)
        for (gpu, group, kind), (middle, _, newest) in levels.items():
            bandwidth = _bandwidth_tb_per_s(gpu)
            if bandwidth is not None and since is not None and newest >= since - WINDOW:
                found[group, kind].append(middle / bandwidth)
        return found


def _bandwidth_tb_per_s(gpu: str) -> float | None:
    device = all_gpus().get(gpu)
    return None if device is None or device.bandwidth_gb_per_s is None else device.bandwidth_gb_per_s / 1000


def _middle(prices: list[KnownPrice], min_sellers: int) -> tuple[float, int, datetime] | None:
    """
    Return the middle of the newest prices, their number and when the last was seen; None where too few are.

    Where three sellers or more are known, each counts once, by its own median: one that lists a price for
    each of sixty regions is no market. [USD/h]
    """
    newest = max(price.last_seen_at for price in prices)
    recent = [price for price in prices if price.last_seen_at >= newest - WINDOW]
    by_seller: dict[str, list[float]] = defaultdict(list)
    for price in recent:
        by_seller[price.provider].append(usd_per_whole_gpu(price))
    if len(recent) < MIN_OBSERVATIONS or len(by_seller) < min_sellers:
        return None
    if len(by_seller) < MIN_SELLERS:
        middle = statistics.median(usd_per_whole_gpu(price) for price in recent)
    else:
        middle = statistics.median(statistics.median(found) for found in by_seller.values())
    return middle, len(recent), newest
