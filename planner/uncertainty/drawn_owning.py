"""Owning one machine, for arrays of inputs at once; and how many copies of a machine carry a demand."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from planner.assumptions import Assumptions
from planner.cost import (
    MONTHS_PER_YEAR,
    Amount,
    Ownership,
    energy_kwh_per_month,
    own_cost,
    resale_fraction,
)
from planner.scenario import Scenario
from planner.supply.operate import Demand, OperatingPoint
from planner.supply.options import Option
from planner.uncertainty.drawn_prices import growth_sum
from planner.uncertainty.uncertain import HOURS, OWN_SPEED, PRICE, Draws, basis_of

# Inputs that stand in an ownership under their own name.
_DIRECT = (
    "network_fraction",
    "support_fraction_per_year",
    "insurance_fraction_per_year",
    "staff_usd_per_fte_year",
    "pue",
)


@dataclass(frozen=True, slots=True)
class Owned:
    """What owning comes to in many draws; arrays of one value each."""

    months: Draws  # of the term
    usd_per_month: Draws  # over the term, the resale taken off
    capex_usd: Draws
    other_usd: Draws  # running cost that does not follow electricity [USD/month]
    energy_usd: Draws  # [USD/month]


class Owning:
    """Owning one machine, as a function of arrays of inputs."""

    def __init__(self, purchase: Option, scenario: Scenario, assumptions: Assumptions) -> None:
        self._purchase, self._basis, self._assumptions = purchase, basis_of(purchase), assumptions
        self._scenario = scenario
        self._peak = Demand.of(scenario).peak_tokens_per_s
        self._gpus = (purchase.gpu_count or 1) * purchase.replicas

    def outcome(self, drawn: Mapping[str, Draws], size: int) -> Owned:
        """Return what these values of the inputs come to; inputs that are not there stay at their base."""

        def get(name: str) -> Draws:
            return drawn[name] if name in drawn else np.full(size, self._assumptions[name])

        speed = drawn.get(OWN_SPEED)
        copies = copies_over_plan(self._purchase, speed, self._peak)
        term = get("term_years")
        cost = own_cost(self._ownership(drawn, copies, 1.0 if speed is None else speed, term))
        months = term * MONTHS_PER_YEAR
        energy = as_draws(cost.energy_usd, size) / MONTHS_PER_YEAR
        other = as_draws(cost.running_usd, size) / MONTHS_PER_YEAR - energy
        lost = as_draws(cost.capex_usd - cost.resale_usd, size)
        paid = energy * growth_sum(get("electricity_change_per_year"), months)
        return Owned(
            months=months,
            usd_per_month=(lost + other * months + paid) / months,
            capex_usd=as_draws(cost.capex_usd, size),
            other_usd=other,
            energy_usd=energy,
        )

    def _ownership(
        self, drawn: Mapping[str, Draws], copies: Draws | float, speed: Draws | float, term_years: Draws
    ) -> Ownership:
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
            self._hours_per_month(drawn),
            self._utilisation(copies, speed),
            drawn.get("idle_power_fraction", self._assumptions["idle_power_fraction"]),
            self._assumptions["on_outside_hours_fraction"],
        )
        floor, of_server = self._assumptions["staff_fte_minimum"], "staff_fte_per_server"
        of_server_fte = self._assumptions[of_server] * self._ratio(drawn, of_server)
        return replace(
            base,
            machine_usd=(devices * price + host) * copies,
            term_years=term_years,
            resale_fraction=self._resale(drawn, term_years),
            energy_kwh_per_year=kwh * copies * MONTHS_PER_YEAR,
            usd_per_kwh=drawn.get("electricity_usd_per_kwh", base.usd_per_kwh),
            rated_kw=base.rated_kw * power * copies,
            staff_fte=np.maximum(of_server_fte * self._servers(copies), floor),
            licence_usd_per_year=base.licence_usd_per_year * copies,
            **{name: drawn[name] for name in _DIRECT if name in drawn},  # type: ignore[arg-type]
        )

    def _servers(self, copies: Draws | float) -> Draws | float:
        """Return the computers to look after: modules share boards, any other machine is one."""
        shared, all_copies = self._basis.gpus_per_server, np.round(self._purchase.replicas * copies)
        servers: Draws | float = all_copies
        if shared is not None:
            servers = np.ceil(all_copies * (self._purchase.gpu_count or 1) / shared)
        return servers

    def _hours_per_month(self, drawn: Mapping[str, Draws]) -> Draws | float:
        """Return the hours of service, where hours a day are drawn those of them. [h/month]"""
        if HOURS not in drawn:
            return self._basis.hours_per_month
        hours, place = np.unique(drawn[HOURS], return_inverse=True)
        months: Draws = np.array([self._scenario.month_of(hour) for hour in hours.tolist()])[place]
        return months

    def _utilisation(self, copies: Draws | float, speed: Draws | float) -> Draws | float:
        """Return the share of its hours in which a machine works: the same work at another speed."""
        point = self._purchase.point
        if point is None or self._peak is None:
            return 1.0 if point is None else point.utilisation
        worked: Draws | float = np.minimum(point.utilisation / (copies * speed), 1.0)
        return worked

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


def needed_copies(option: Option, speed: Draws | None, peak_tokens_per_s: float | None) -> Draws | None:
    """Return how many copies of a machine carry the peak at this speed; None where that is no question."""
    point: OperatingPoint | None = option.point
    if speed is None or point is None or peak_tokens_per_s is None:
        return None
    return copies_of_load(peak_tokens_per_s, point.capacity_tokens_per_s * speed)


def copies_of_load(tokens_per_s: float, capacity_tokens_per_s: Draws) -> Draws:
    """Return how many copies of this capacity carry a load: one at least."""
    needed: Draws = np.maximum(np.ceil(tokens_per_s / capacity_tokens_per_s - 1e-9), 1.0)
    return needed


def copies_over_plan(option: Option, speed: Draws | None, peak_tokens_per_s: float | None) -> Draws | float:
    """Return the copies of a machine that carry the peak at this speed, over those of the plan."""
    needed = needed_copies(option, speed, peak_tokens_per_s)
    return 1.0 if needed is None else needed / option.replicas


def as_draws(amount: Amount, size: int) -> Draws:
    """Return an amount as one value for each draw."""
    return np.broadcast_to(np.asarray(amount, dtype=float), (size,))
