"""Owning one machine against renting another, for arrays of inputs at once."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from planner.assumptions import Assumptions
from planner.breakeven import MAX_MONTHS
from planner.cost import (
    MONTHS_PER_YEAR,
    Amount,
    Ownership,
    energy_kwh_per_month,
    own_cost,
    resale_fraction,
)
from planner.operate import Demand, OperatingPoint
from planner.options import Option, RentBasis
from planner.scenario import Scenario
from planner.uncertain import OWN_SPEED, PRICE, RENT_SPEED, Draws, basis_of, is_same_machine

# Inputs that stand in an ownership under their own name.
_DIRECT = (
    "network_fraction",
    "support_fraction_per_year",
    "insurance_fraction_per_year",
    "staff_usd_per_fte_year",
    "pue",
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What many draws come to; arrays of one value each."""

    saving: Draws  # of buying, a month over the term [USD/month]
    capex_usd: Draws
    other_usd: Draws  # running cost that does not follow electricity [USD/month]
    energy_usd: Draws  # [USD/month]
    rent_usd: Draws  # in the first month [USD/month]
    rent_change: Draws
    energy_change: Draws
    is_short: NDArray[np.bool_]  # the one machine of a host that is rented does not carry the demand


class _Price:
    """Monthly prices that move, for many draws."""

    def __init__(self, usd: Draws, change: Draws, compounds: bool = True) -> None:
        self._usd, self._change = usd, change
        # After a year a rise stays, since none has been seen to go on.
        self._stays = np.zeros(usd.shape, dtype=bool) if compounds else change > 0.0
        self._first = usd * _growth_sum(change, np.full_like(change, 12.0))

    def of_year(self, year: int) -> Draws:
        """Return what is paid in a year, shape (n,). [USD]"""
        if year == 0:
            return self._first
        factor = (1.0 + self._change) ** year
        return np.where(self._stays, 12.0 * self._usd * (1.0 + self._change), self._first * factor)

    def by_month(self, year: int, rows: NDArray[np.intp]) -> Draws:
        """Return what these draws pay in each month of a year, shape (12, rows). [USD]"""
        change = self._change[rows]
        months = np.exp(np.log1p(change) * (year + np.arange(12.0)[:, np.newaxis] / 12.0))
        if year > 0:
            months = np.where(self._stays[rows], 1.0 + change, months)
        paid: Draws = self._usd[rows] * months
        return paid


class _ShockedPrice:
    """
    The same after a shock: within some months it rises to its height, and the change begins there.

    What the change draws is the same as without a shock; only the first months are known.
    """

    def __init__(self, usd: Draws, change: Draws, compounds: bool, shock: tuple[float, float]) -> None:
        self._usd, self._change = usd, change
        self._stays = np.zeros(usd.shape, dtype=bool) if compounds else change > 0.0
        self._height, self._months = shock

    def month(self, month: float, rows: NDArray[np.intp] | slice = slice(None)) -> Draws:
        """Return what is paid in one month, the first being 0. [USD]"""
        rise = math.exp(math.log1p(self._height) * min(month, self._months) / self._months)
        years = max(month - self._months, 0.0) / 12.0
        change = self._change[rows]
        moved = np.exp(np.log1p(change) * np.where(self._stays[rows], min(years, 1.0), years))
        paid: Draws = self._usd[rows] * rise * moved
        return paid

    def of_year(self, year: int) -> Draws:
        """Return what is paid in a year, shape (n,). [USD]"""
        paid: Draws = np.sum([self.month(12.0 * year + each) for each in range(12)], axis=0)
        return paid

    def by_month(self, year: int, rows: NDArray[np.intp]) -> Draws:
        """Return what these draws pay in each month of a year, shape (12, rows). [USD]"""
        return np.stack([self.month(12.0 * year + each, rows) for each in range(12)])

    def over(self, months: Draws) -> Draws:
        """Return what is paid in so many months, the last of them in part. [USD]"""
        last = int(np.ceil(np.max(months)))
        paid: Draws = np.sum(
            [self.month(float(each)) * np.clip(months - each, 0.0, 1.0) for each in range(last)], axis=0
        )
        return paid


class Comparison:
    """Owning one machine against renting another, as functions of arrays of inputs."""

    def __init__(
        self, purchase: Option, rental: Option, scenario: Scenario, assumptions: Assumptions
    ) -> None:
        self._purchase, self._rental = purchase, rental
        self._basis, self._assumptions = basis_of(purchase), assumptions
        self._peak = Demand.of(scenario).peak_tokens_per_s
        self._gpus = (purchase.gpu_count or 1) * purchase.replicas
        self._compounds = assumptions.is_set("rent_change_per_year")
        self._shock = assumptions["rent_shock_fraction"], assumptions["rent_shock_months"]

    def outcome(self, drawn: Mapping[str, Draws], size: int) -> Outcome:
        """Return what these values of the inputs come to; inputs that are not there stay at their base."""

        def get(name: str) -> Draws:
            return drawn[name] if name in drawn else np.full(size, self._assumptions[name])

        own_copies = self._copies(self._purchase, drawn.get(OWN_SPEED))
        same = is_same_machine(self._purchase, self._rental)
        rent_speed = drawn.get(OWN_SPEED if same else RENT_SPEED)
        rent_copies = self._copies(self._rental, rent_speed)
        needed = self._needed(self._rental, rent_speed) if is_single(self._rental) else None
        term = get("term_years")
        cost = own_cost(self._ownership(drawn, own_copies, term))
        months = term * MONTHS_PER_YEAR
        rent, rent_change = (self._rental.usd_per_month or 0.0) * rent_copies, get("rent_change_per_year")
        energy_change = get("electricity_change_per_year")
        energy = _array(cost.energy_usd, size) / MONTHS_PER_YEAR
        other = _array(cost.running_usd, size) / MONTHS_PER_YEAR - energy
        owned = (
            _array(cost.capex_usd - cost.resale_usd, size)
            + other * months
            + energy * _growth_sum(energy_change, months)
        )
        rented = self._rented(_array(rent, size), rent_change, months)
        return Outcome(
            saving=(rented - owned) / months,
            capex_usd=_array(cost.capex_usd, size),
            other_usd=other,
            energy_usd=energy,
            rent_usd=_array(rent, size),
            rent_change=rent_change,
            energy_change=energy_change,
            is_short=np.zeros(size, dtype=bool) if needed is None else needed > 1.0,
        )

    def break_even_months(self, outcome: Outcome) -> Draws:
        """Return when each draw has paid back without a sale; infinite where not within twenty years."""
        energy = _Price(outcome.energy_usd, outcome.energy_change)
        rent = self._rent_price(outcome.rent_usd, outcome.rent_change)
        gap = outcome.capex_usd.copy()  # what owning has cost beyond renting
        months = np.where((gap <= 0.0) & (outcome.saving >= 0.0), 0.0, np.inf)
        is_open = gap > 0.0
        for year in range(MAX_MONTHS // 12):
            after = gap + 12.0 * outcome.other_usd + energy.of_year(year) - rent.of_year(year)
            crossing = np.flatnonzero(is_open & (after <= 0.0))
            if crossing.size:
                months[crossing] = 12.0 * year + self._within_the_year(
                    gap[crossing],
                    outcome.other_usd[crossing],
                    energy.by_month(year, crossing) - rent.by_month(year, crossing),
                )
                is_open[crossing] = False
            gap = after
        return months

    def _within_the_year(self, gap: Draws, other_usd: Draws, by_month: Draws) -> Draws:
        """
        Return the month in which a gap closes, between months by a straight line.

        Args:
            gap: At the beginning of the year, shape (n,). [USD]
            other_usd: What it grows by every month, shape (n,). [USD]
            by_month: What else it grows by, shape (12, n). [USD]
        """
        gaps = gap + np.cumsum(other_usd + by_month, axis=0)
        first = np.argmax(gaps <= 0.0, axis=0)
        rows = np.arange(gap.size)
        before = np.where(first == 0, gap, gaps[first - 1, rows])
        crossed: Draws = first + before / (before - gaps[first, rows])
        return crossed

    def _rent_price(self, usd: Draws, change: Draws) -> "_Price | _ShockedPrice":
        """Return how the rents of all draws move."""
        if self._shock[0] == 0.0:
            return _Price(usd, change, self._compounds)
        return _ShockedPrice(usd, change, self._compounds, self._shock)

    def _rented(self, usd: Draws, change: Draws, months: Draws) -> Draws:
        """Return the rent of so many months. [USD]"""
        if self._shock[0] == 0.0:
            return usd * self._rent_sum(change, months)
        return _ShockedPrice(usd, change, self._compounds, self._shock).over(months)

    def _rent_sum(self, change: Draws, months: Draws) -> Draws:
        """
        Return the rent of these months over that of the first one, without a shock.

        A fall goes on year after year; a rise, seen once, lasts a year and stays, unless it was set.
        """
        rising = _growth_sum(change, np.minimum(months, 12.0)) + np.maximum(months - 12.0, 0.0) * (
            1.0 + change
        )
        falling = _growth_sum(change, months)
        return falling if self._compounds else np.where(change > 0.0, rising, falling)

    def _needed(self, option: Option, speed: Draws | None) -> Draws | None:
        """Return how many copies of a machine carry the peak at this speed; None: that is no question."""
        point: OperatingPoint | None = option.point
        if speed is None or point is None or self._peak is None:
            return None
        needed: Draws = np.maximum(np.ceil(self._peak / (point.capacity_tokens_per_s * speed) - 1e-9), 1.0)
        return needed

    def _copies(self, option: Option, speed: Draws | None) -> Draws | float:
        """
        Return the copies of a machine that carry the peak at this speed, over those of the plan.

        What a host asks is for one machine: there is no second at that price.
        """
        needed = self._needed(option, speed)
        if needed is None or is_single(option):
            return 1.0
        return needed / option.replicas

    def _ownership(self, drawn: Mapping[str, Draws], copies: Draws | float, term_years: Draws) -> Ownership:
        """Return how the machines are housed and run, with arrays in place of numbers."""
        basis, base = self._basis, self._basis.ownership
        price: Draws | float = drawn.get(PRICE, 1.0)
        host: Draws | float = basis.host_usd
        devices = float(base.machine_usd) - basis.host_usd
        if basis.host_assumption == "server_over_modules_fraction":  # a share of the devices
            of_cards = self._assumptions["host_usd"] / self._assumptions["host_gpus"] * self._gpus
            host = np.maximum(host * price * self._ratio(drawn, basis.host_assumption), of_cards)
        elif basis.host_assumption is not None:
            least = self._assumptions["host_minimum_usd"] * self._purchase.replicas
            host = np.maximum(host * self._ratio(drawn, basis.host_assumption), least)
        power = 1.0 if basis.power_assumption is None else self._ratio(drawn, basis.power_assumption)
        kwh = energy_kwh_per_month(
            basis.load_kw * power * self._ratio(drawn, "load_fraction"),
            basis.hours_per_month,
            self._purchase.point.utilisation if self._purchase.point else 1.0,
            drawn.get("idle_power_fraction", self._assumptions["idle_power_fraction"]),
            self._assumptions["on_outside_hours_fraction"],
        )
        floor = self._assumptions["staff_fte_minimum"]
        return replace(
            base,
            machine_usd=(devices * price + host) * copies,
            term_years=term_years,
            resale_fraction=self._resale(drawn, term_years),
            energy_kwh_per_year=kwh * copies * MONTHS_PER_YEAR,
            usd_per_kwh=drawn.get("electricity_usd_per_kwh", base.usd_per_kwh),
            rated_kw=base.rated_kw * power * copies,
            staff_fte=np.maximum(base.staff_fte * self._ratio(drawn, "staff_fte_per_server") * copies, floor),
            **{name: drawn[name] for name in _DIRECT if name in drawn},  # type: ignore[arg-type]
        )

    def _resale(self, drawn: Mapping[str, Draws], term_years: Draws) -> Amount:
        given = self._assumptions.get("resale_fraction")
        if given is not None:
            return given
        floor, decay = "resale_floor", "resale_decay_per_year"
        return resale_fraction(
            term_years,
            drawn.get(floor, self._assumptions[floor]),
            drawn.get(decay, self._assumptions[decay]),
        )

    def _ratio(self, drawn: Mapping[str, Draws], name: str) -> Draws | float:
        """Return an input over its base."""
        return drawn[name] / self._assumptions[name] if name in drawn else 1.0


def is_single(option: Option) -> bool:
    """Whether it is what a host asks for a machine of its own, of which there is one."""
    return isinstance(option.basis, RentBasis) and option.basis.rate.is_ask


def _growth_sum(change_per_year: Draws, months: Draws) -> Draws:
    """Return the sum of a price that moves month by month, over that of the first month."""
    growth = np.log1p(change_per_year) / MONTHS_PER_YEAR
    step = np.expm1(growth)
    whole = np.floor(months)
    with np.errstate(divide="ignore", invalid="ignore"):
        paid = np.where(np.abs(step) < 1e-12, whole, np.expm1(growth * whole) / step)
    summed: Draws = paid + (months - whole) * np.exp(growth * whole)
    return summed


def _array(amount: Amount, size: int) -> Draws:
    return np.broadcast_to(np.asarray(amount, dtype=float), (size,))
