"""
What owning costs, and what a token costs: levelised, by the year and by the month.

The functions take numbers or numpy arrays; money is USD.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from planner.units import HOURS_PER_MONTH, HOURS_PER_YEAR, TOKENS_PER_PRICE

Amount = float | NDArray[np.float64]

MONTHS_PER_YEAR = 12.0
SECONDS_PER_HOUR = 3600.0


def resale_fraction(years: Amount, floor: Amount, decay_per_year: Amount) -> Amount:
    """
    Share of its price that a machine sells for after some years: it falls towards a floor.

    Args:
        years: Age. [years]
        floor: Share to which it falls. [fraction]
        decay_per_year: Speed of the fall. [1/year]

    Source:
        docs/methodology.md, "Resale".
    """
    return floor + (1.0 - floor) * np.exp(-decay_per_year * years)


def capital_usd_per_year(
    capex_usd: Amount, resale_usd: Amount, term_years: Amount, discount_rate: Amount
) -> Amount:
    """
    Yearly charge that pays capex less discounted resale, with interest, over the term.

    Without interest it is the straight line (capex - resale) / term.

    Args:
        capex_usd: Paid at the start. [USD]
        resale_usd: Received at the end. [USD]
        term_years: [years]
        discount_rate: Cost of capital. [fraction/year]

    Source:
        docs/methodology.md, "Capital".
    """
    left = np.power(1.0 + np.asarray(discount_rate, dtype=float), -np.asarray(term_years, dtype=float))
    with np.errstate(divide="ignore", invalid="ignore"):
        factor = np.where(np.equal(discount_rate, 0.0), 1.0 / term_years, discount_rate / (1.0 - left))
    charge = (capex_usd - resale_usd * left) * factor
    return float(charge) if np.ndim(charge) == 0 else charge


def energy_kwh_per_month(
    load_kw: Amount,
    service_hours_per_month: Amount,
    utilisation: Amount,
    idle_fraction: Amount,
    on_outside_hours_fraction: Amount,
) -> Amount:
    """
    Energy drawn in a month, before PUE: from idle to load in the hours of service, idle in the others.

    Args:
        load_kw: Power of all replicas under load. [kW]
        service_hours_per_month: Hours in which the service is there. [h/month]
        utilisation: Share of them under load. [fraction]
        idle_fraction: Power while idle over power under load. [fraction]
        on_outside_hours_fraction: Share of the other hours in which it stays switched on. [fraction]

    Source:
        docs/methodology.md, "Energy".
    """
    other_hours = np.maximum(HOURS_PER_MONTH - service_hours_per_month, 0.0)
    in_service = service_hours_per_month * (utilisation + (1.0 - utilisation) * idle_fraction)
    kwh = load_kw * (in_service + other_hours * on_outside_hours_fraction * idle_fraction)
    return float(kwh) if np.ndim(kwh) == 0 else kwh


def usd_per_million_tokens(usd_per_hour: Amount, tokens_per_s: Amount) -> Amount:
    """
    Price of a million tokens at full use of the hours. [USD/Mtok]

    Source:
        docs/methodology.md, "Price of a token".
    """
    return usd_per_hour / (tokens_per_s * SECONDS_PER_HOUR) * TOKENS_PER_PRICE


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenPrices:
    """Prices of a million tokens; input and output share the cost by the time that each takes."""

    usd_per_million_output_tokens: float
    usd_per_million_input_tokens: float
    usd_per_million_tokens: float  # everything on the output tokens
    prefill_time_fraction: float


def token_prices(
    usd_per_million_tokens: float,
    *,
    aggregate_tokens_per_s: float,
    prefill_tokens_per_s: float,
    input_tokens: float,
    output_tokens: float,
) -> TokenPrices:
    """
    Split a price per million output tokens between input and output, by the share of time of each.

    A machine that writes A output tokens a second reads A x in / out input tokens meanwhile; at its prefill
    speed that takes the share A x in / (out x prefill) of its time.

    Args:
        usd_per_million_tokens: All cost over the output tokens. [USD/Mtok]
        aggregate_tokens_per_s: Output tokens of all requests, prompts included in the time. [tokens/s]
        prefill_tokens_per_s: Input tokens while it does nothing else. [tokens/s]
        input_tokens: Of one request. [tokens]
        output_tokens: Of one request. [tokens]

    Source:
        docs/methodology.md, "Price of a token".
    """
    input_per_output = input_tokens / output_tokens
    share = min(1.0, aggregate_tokens_per_s * input_per_output / prefill_tokens_per_s)
    return TokenPrices(
        usd_per_million_tokens=usd_per_million_tokens,
        usd_per_million_output_tokens=usd_per_million_tokens * (1.0 - share),
        usd_per_million_input_tokens=usd_per_million_tokens * share / input_per_output,
        prefill_time_fraction=share,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Ownership:
    """A machine and how it is housed and run: everything that its cost depends on."""

    machine_usd: Amount  # what is bought and later sold: devices and their host
    is_sunk: bool = False  # already paid: neither capital nor resale counts
    network_fraction: Amount = 0.0  # of machine_usd
    spares_fraction: Amount = 0.0  # of machine_usd
    setup_usd: Amount = 0.0
    term_years: Amount
    discount_rate: Amount
    resale_fraction: Amount  # of machine_usd, at the end of the term
    energy_kwh_per_year: Amount  # before PUE
    pue: Amount
    usd_per_kwh: Amount
    rated_kw: Amount  # what a colocation contract counts
    colo_usd_per_kw_month: Amount = 0.0
    colo_includes_energy: Amount = 0.0  # 1: the price per kW, where there is one, pays the energy too
    support_fraction_per_year: Amount = 0.0  # of machine_usd
    staff_fte: Amount = 0.0
    staff_usd_per_fte_year: Amount = 0.0
    insurance_fraction_per_year: Amount = 0.0  # of machine_usd
    failure_fraction_per_year: Amount = 0.0  # of machine_usd, lost beyond the warranty
    licence_usd_per_year: Amount = 0.0
    bandwidth_usd_per_year: Amount = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnCost:
    """What owning costs, line by line; USD a year unless named otherwise."""

    capex_usd: Amount
    resale_usd: Amount
    term_years: Amount
    capital_usd: Amount  # with interest
    energy_usd: Amount
    colo_usd: Amount
    support_usd: Amount
    staff_usd: Amount
    insurance_usd: Amount
    failures_usd: Amount
    licence_usd: Amount
    bandwidth_usd: Amount

    @property
    def running_usd(self) -> Amount:
        """Everything but capital. [USD/year]"""
        housing = self.energy_usd + self.colo_usd + self.bandwidth_usd
        care = self.support_usd + self.staff_usd + self.insurance_usd + self.failures_usd
        return housing + care + self.licence_usd

    @property
    def depreciation_usd(self) -> Amount:
        """Straight line, without interest. [USD/year]"""
        return (self.capex_usd - self.resale_usd) / self.term_years

    @property
    def total_usd(self) -> Amount:
        """Capital with interest, and running. [USD/year]"""
        return self.capital_usd + self.running_usd

    @property
    def running_usd_per_month(self) -> Amount:
        """Everything but capital. [USD/month]"""
        return self.running_usd / MONTHS_PER_YEAR

    @property
    def energy_usd_per_month(self) -> Amount:
        """Electricity and cooling. [USD/month]"""
        return self.energy_usd / MONTHS_PER_YEAR

    @property
    def usd_per_month(self) -> Amount:
        """The monthly figure of a plan: (capex - resale) / term + running cost. [USD/month]"""
        return (self.depreciation_usd + self.running_usd) / MONTHS_PER_YEAR


def metered_fraction(colo_usd_per_kw_month: Amount, colo_includes_energy: Amount) -> Amount:
    """
    Share of the energy that is paid by the meter: all of it where no space is rented. [fraction]

    Args:
        colo_usd_per_kw_month: Of the space; 0: none is rented. [USD/kW-month]
        colo_includes_energy: 1 where that price holds the energy.

    Source:
        docs/methodology.md, "Owning".
    """
    return 1.0 - colo_includes_energy * np.sign(colo_usd_per_kw_month)


def own_cost(ownership: Ownership) -> OwnCost:
    """
    Return what owning this machine costs.

    Source:
        docs/methodology.md, "Owning".
    """
    price = ownership.machine_usd
    counts = 0.0 if ownership.is_sunk else 1.0
    extras = price * (ownership.network_fraction + ownership.spares_fraction) + ownership.setup_usd
    capex = (price + extras) * counts
    resale = price * ownership.resale_fraction * counts
    metered = metered_fraction(ownership.colo_usd_per_kw_month, ownership.colo_includes_energy)
    return OwnCost(
        capex_usd=capex,
        resale_usd=resale,
        term_years=ownership.term_years,
        capital_usd=capital_usd_per_year(capex, resale, ownership.term_years, ownership.discount_rate),
        energy_usd=ownership.energy_kwh_per_year * ownership.pue * ownership.usd_per_kwh * metered,
        colo_usd=ownership.colo_usd_per_kw_month * ownership.rated_kw * MONTHS_PER_YEAR,
        support_usd=price * ownership.support_fraction_per_year,
        staff_usd=ownership.staff_fte * ownership.staff_usd_per_fte_year,
        insurance_usd=price * ownership.insurance_fraction_per_year,
        failures_usd=price * ownership.failure_fraction_per_year,
        licence_usd=ownership.licence_usd_per_year,
        bandwidth_usd=ownership.bandwidth_usd_per_year,
    )


def usd_per_available_gpu_hour(usd_per_year: Amount, gpu_count: int, availability: Amount) -> Amount:
    """
    Levelised cost of an hour in which an owned GPU works. [USD/GPU-h]

    Source:
        docs/methodology.md, "Owning".
    """
    return usd_per_year / (gpu_count * HOURS_PER_YEAR * availability)
