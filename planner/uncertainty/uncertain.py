"""What is not known of a comparison: each input with its base value and the range seen."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from planner.assumptions import Assumptions, all_assumptions
from planner.scenario import DEFAULT_USD_PER_KWH, Scenario
from planner.supply.options import BuyBasis, Option

# Assumptions whose true value nobody knows beforehand. What is 0 is counted only where it is set, and what a
# question states (hours, demand, a value of --set) is known; none of these varies.
UNCERTAIN = (
    "rent_change_per_year",
    "electricity_usd_per_kwh",
    "electricity_change_per_year",
    "term_years",
    "resale_floor",
    "resale_decay_per_year",
    "network_fraction",
    "host_usd",
    "server_over_modules_fraction",
    "server_power_factor",
    "card_power_factor",
    "unified_power_kw",
    "load_fraction",
    "idle_power_fraction",
    "pue",
    "support_fraction_per_year",
    "staff_fte_per_server",
    "staff_usd_per_fte_year",
    "insurance_fraction_per_year",
)
# These stand at 0 and vary all the same: nobody knows how prices move.
_MOVES = frozenset({"rent_change_per_year", "electricity_change_per_year"})
PRICE = "purchase_price"
HOURS = "hours_per_day"
OWN_SPEED, RENT_SPEED = "speed_owned", "speed_rented"

# A range wider than this is one of orders of magnitude.
WIDE = 10.0

Draws = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Uncertain:
    """One input that is not known exactly: base value and the range seen."""

    name: str
    title: str
    unit: str
    base: float
    low: float
    high: float
    source: str

    def at(self, quantile: Draws) -> Draws:
        """
        Return its value at these quantiles: the base is the median, and the ends are least likely.

        Where the range spans more than a factor of ten, it is walked by factors and not by differences.

        Source:
            docs/methodology.md, "Uncertainty".
        """
        down = 1.0 - np.sqrt(np.minimum(2.0 * quantile, 1.0))  # 0 at the base, 1 at the low end
        up = 1.0 - np.sqrt(np.minimum(2.0 - 2.0 * quantile, 1.0))
        if self.low > 0.0 and self.high > WIDE * self.low:
            return self.base * (self.low / self.base) ** down * (self.high / self.base) ** up
        return self.base - (self.base - self.low) * down + (self.high - self.base) * up


def uncertain_inputs(
    purchase: Option,
    rental: Option,
    scenario: Scenario,
    assumptions: Assumptions,
    *,
    with_stated: bool = False,
) -> list[Uncertain]:
    """
    Return what is not known of this comparison, each with its range.

    Args:
        purchase: To buy.
        rental: What it is compared with.
        scenario: The question.
        assumptions: The values in use.
        with_stated: Whether what the question states is among them, with that value as base.
    """
    inputs = uncertain_of_purchase(purchase, scenario, assumptions, with_stated=with_stated)
    rented = None if is_same_machine(purchase, rental) else speed_input(RENT_SPEED, rental, scenario)
    return inputs if rented is None else [*inputs, rented]


def uncertain_of_purchase(
    purchase: Option, scenario: Scenario, assumptions: Assumptions, *, with_stated: bool = False
) -> list[Uncertain]:
    """Return what is not known of owning a machine, rents among it, each with its range."""
    basis = basis_of(purchase)
    inputs = [
        assumed(name, _base(name, basis, assumptions))
        for name in UNCERTAIN
        if _counts(name, basis, scenario, assumptions)
        and (with_stated or not _is_stated(name, scenario, assumptions))
    ]
    bought = basis.purchase
    if bought is not None and bought.usd_low < bought.usd_high:
        low, high = bought.usd_low / bought.usd, bought.usd_high / bought.usd
        title = "Price of the device over the middle of what its sources say"
        inputs.append(_ratio(PRICE, title, low, high, bought.source))
    speed = speed_input(OWN_SPEED, purchase, scenario)
    return inputs if speed is None else [*inputs, speed]


def hours_input(scenario: Scenario) -> Uncertain | None:
    """Return the hours of use with their range; None with a demand, where they are no presence."""
    if scenario.has_demand:
        return None
    return assumed(HOURS, scenario.hours_per_day)


def speed_input(name: str, option: Option, scenario: Scenario) -> Uncertain | None:
    """
    Return the speed of a machine over its estimate.

    None without a demand, where it sizes nothing, and where nothing says how far the estimate may be off.
    """
    if not scenario.has_demand or option.point is None or option.point.speed.ends("aggregate") is None:
        return None
    speed = option.point.speed
    low = speed.aggregate_low / speed.aggregate_tokens_per_s
    high = speed.aggregate_high / speed.aggregate_tokens_per_s
    word = "owned" if name == OWN_SPEED else "rented"
    title = f"Speed of the machine {word} over its estimate"
    return _ratio(name, title, low, high, 'docs/methodology.md, "Speed"')


def basis_of(purchase: Option) -> BuyBasis:
    """Return what a purchase's cost is made of."""
    if not isinstance(purchase.basis, BuyBasis):
        raise TypeError(f"{purchase.name} is no purchase")
    return purchase.basis


def _least_host_usd(basis: BuyBasis, assumptions: Assumptions) -> float:
    """Return what the computers around all cards cost at least: there no other price of theirs counts."""
    return assumptions["host_minimum_usd"] * basis.replicas


def is_same_machine(purchase: Option, rental: Option) -> bool:
    """Whether the machine owned is the one rented: then its speed is right or wrong for both."""
    return (purchase.gpu, purchase.gpu_count) == (rental.gpu, rental.gpu_count)


def assumed(name: str, base: float) -> Uncertain:
    """Return an assumption with its range, which reaches to the base where that lies outside."""
    record = all_assumptions()[name]
    return Uncertain(
        name=name,
        title=record.title,
        unit=record.unit,
        base=base,
        low=min(record.low, base),
        high=max(record.high, base),
        source=record.source,
    )


def _base(name: str, basis: BuyBasis, assumptions: Assumptions) -> float:
    """Return the value in use; that of electricity is an option of its own."""
    return float(basis.ownership.usd_per_kwh) if name == "electricity_usd_per_kwh" else assumptions[name]


def _ratio(name: str, title: str, low: float, high: float, source: str) -> Uncertain:
    return Uncertain(name=name, title=title, unit="ratio", base=1.0, low=low, high=high, source=source)


def _is_stated(name: str, scenario: Scenario, assumptions: Assumptions) -> bool:
    """Whether the question gives its value."""
    is_priced = name == "electricity_usd_per_kwh" and scenario.electricity_usd_per_kwh != DEFAULT_USD_PER_KWH
    return is_priced or assumptions.is_set(name)


def _counts(name: str, basis: BuyBasis, scenario: Scenario, assumptions: Assumptions) -> bool:
    """Whether an assumption counts in this comparison."""
    value = assumptions.get(name)
    if value is None or (value == 0.0 and name not in _MOVES):
        return False
    own = basis.ownership
    counts: dict[str, bool] = {
        "electricity_usd_per_kwh": scenario.electricity_region is None,
        # Where the least staff of the whole fleet counts, that of a server does not.
        "staff_fte_per_server": float(own.staff_fte) > assumptions["staff_fte_minimum"],
        "resale_floor": not assumptions.is_set("resale_fraction"),
        "resale_decay_per_year": not assumptions.is_set("resale_fraction"),
        "network_fraction": own.network_fraction != 0.0,
        "support_fraction_per_year": own.support_fraction_per_year != 0.0,
        "load_fraction": not assumptions.is_set("power_kw"),
        "host_usd": basis.host_assumption == name and basis.host_usd > _least_host_usd(basis, assumptions),
        "server_over_modules_fraction": basis.host_assumption == name,
        "server_power_factor": basis.power_assumption == name,
        "card_power_factor": basis.power_assumption == name,
        "unified_power_kw": basis.power_assumption == name,
    }
    return counts.get(name, True)
