"""The lines of the charts: cumulative cost month by month, and monthly cost by hours of use."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from planner.assumptions import Assumptions
from planner.breakeven import first_crossing
from planner.supply.options import BuyBasis, Option, RentBasis
from planner.supply.owning import monthly_costs
from planner.supply.rent import billed_hours_per_day

Line = tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Crossing:
    """Cumulative cost of the ways to serve, month by month, for the crossing chart."""

    months: Line
    rent_usd: Line | None
    own_usd: Line | None
    api_usd: Line | None
    rent_name: str | None
    own_name: str | None
    api_name: str | None
    break_even_months: float | None  # None: never within the chart


@dataclass(frozen=True, slots=True, kw_only=True)
class CostByHours:
    """Monthly cost against daily use, rented by the hour and owned."""

    hours_per_day: Line
    rent_usd_per_month: Line | None
    own_usd_per_month: Line | None
    rent_name: str | None
    own_name: str | None
    break_even_hours_per_day: float | None


def crossing(
    purchase: Option | None, rental: Option | None, api: Option | None, assumptions: Assumptions
) -> Crossing:
    """Return the cumulative cost of each way up to the end of the term; None where a way is not there."""
    basis = purchase.basis if purchase is not None and isinstance(purchase.basis, BuyBasis) else None
    term = float(basis.ownership.term_years) if basis else assumptions["term_years"]
    months = np.arange(int(np.ceil(term * 12.0)) + 1, dtype=float)
    rent_usd = own_usd = api_usd = None
    if rental is not None and rental.usd_per_month is not None:
        rent_usd = assumptions.rents.held(rental.held_months).paid_usd(rental.usd_per_month, months)
    if purchase is not None and basis is not None:
        costs = monthly_costs(basis.cost, rental or purchase, assumptions)
        own_usd = None if costs is None else costs.own(float(basis.cost.capex_usd), months)
    if api is not None and api.usd_per_month is not None:
        api_usd = assumptions.api_prices.paid_usd(api.usd_per_month, months)
    meets = None
    if own_usd is not None and rent_usd is not None:
        meets = first_crossing(months, own_usd, rent_usd)
    return Crossing(
        months=tuple(months.tolist()),
        rent_usd=_line(rent_usd),
        own_usd=_line(own_usd),
        api_usd=_line(api_usd),
        rent_name=_rent_name(rental),
        own_name=_own_name(purchase),
        api_name=None if api is None else f"API ({api.provider_title})",
        break_even_months=meets,
    )


def cost_by_hours(purchase: Option | None, rental: Option | None, days_per_month: float) -> CostByHours:
    """Return what a month costs at 0 to 24 hours a day, by half hours; None where a way is not there."""
    hours = np.linspace(0.0, 24.0, 49)
    used = hours * days_per_month
    rent_usd = own_usd = None
    if rental is not None and rental.usd_per_hour is not None:
        billing = rental.basis.rate.billing if isinstance(rental.basis, RentBasis) else None
        billed = np.array([billed_hours_per_day(billing, hour) for hour in hours.tolist()])
        rent_usd = float(rental.usd_per_hour) * rental.replicas * billed * days_per_month
        cap = rental.basis.rate.usd_per_month_cap if isinstance(rental.basis, RentBasis) else None
        if cap is not None:
            rent_usd = np.minimum(rent_usd, cap * rental.replicas)
    if purchase is not None and isinstance(purchase.basis, BuyBasis):
        own_usd = purchase.basis.own_fixed_usd_per_month + purchase.basis.own_usd_per_hour * used
    return CostByHours(
        hours_per_day=tuple(hours.tolist()),
        rent_usd_per_month=_line(rent_usd),
        own_usd_per_month=_line(own_usd),
        rent_name=_rent_name(rental),
        own_name=_own_name(purchase),
        break_even_hours_per_day=None if purchase is None else purchase.break_even_hours_per_day,
    )


def _line(values: NDArray[np.float64] | None) -> Line | None:
    return None if values is None else tuple(values.tolist())


def _rent_name(rental: Option | None) -> str | None:
    return None if rental is None else f"rent {rental.times_text} ({rental.provider_title})"


def _own_name(purchase: Option | None) -> str | None:
    return None if purchase is None else f"{'use' if purchase.is_own else 'buy'} {purchase.times_text}"
