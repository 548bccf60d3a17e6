"""How it is explained when an owned machine pays: months, hours, utilisation, rent, value today."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from planner.answers.figure import Figure
from planner.answers.words import price_date_text
from planner.assumptions import Assumptions
from planner.breakeven import (
    MonthlyCosts,
    break_even_rent_usd_per_hour,
    break_even_tokens_per_month,
    break_even_utilisation,
    net_present_value_usd,
)
from planner.cost import SECONDS_PER_HOUR, OwnCost, usd_per_available_gpu_hour
from planner.supply.options import BuyBasis, Option
from planner.supply.owning import monthly_costs
from planner.supply.paths import term_months


def paying(option: Option, basis: BuyBasis, assumptions: Assumptions) -> Iterator[Figure]:
    """Explain when an owned machine pays, by each measure, and what its hours cost with interest."""
    yield from _months(option, basis, assumptions)
    yield from _use(option, basis)
    per_hour = _levelised(option, basis, assumptions)
    yield per_hour
    yield from _shares(option, basis, assumptions, per_hour.value or 0.0)


def _months(option: Option, basis: BuyBasis, assumptions: Assumptions) -> Iterator[Figure]:
    """Explain after how many months it has paid."""
    cost, against = basis.cost, basis.against
    running = float(cost.running_usd_per_month)
    costs = monthly_costs(cost, against, assumptions)
    is_flat = costs is None or costs.is_flat
    if against is not None:
        rented = f"{against.name} from {against.provider_title}, {price_date_text(against)}"
        never = "" if option.break_even_months is not None else "; it never pays back"
        yield Figure(
            name="break-even",
            value=option.break_even_months,
            unit="months",
            formula="price / (rent - running cost)"
            if is_flat
            else "first month in which price + running cost so far <= rent so far",
            numbers=f"{cost.capex_usd:,.0f} / ({against.usd_per_month:,.2f} - {running:,.2f}){never}"
            if is_flat
            else f"{cost.capex_usd:,.0f}; {running:,.2f} against {against.usd_per_month:,.2f} in the first "
            f"month, rents {assumptions.rents.held(against.held_months).words}, electricity "
            f"{assumptions['electricity_change_per_year']:+.0%} a year{never}",
            source=f"against {rented}",
            is_estimate=True,
            is_never=option.break_even_months is None,
        )
        yield Figure(
            name="break-even with resale",
            value=basis.months_with_resale,
            unit="months",
            formula="first month in which price + running cost - resale then <= rent so far",
            numbers=f"resale by the curve, {rented}",
            source=assumptions.source("resale_floor"),
            is_estimate=True,
            is_never=basis.months_with_resale is None,
        )
    else:
        yield Figure(
            name="break-even",
            value=None,
            unit="months",
            formula="price / (rent - running cost)",
            numbers="too slow to talk to, so it is not compared with a rental that is not"
            if option.is_too_slow
            else "no rental is known that meets the same limits, so there is nothing to compare with",
            source='docs/methodology.md, "Break-even"',
        )


def _use(option: Option, basis: BuyBasis) -> Iterator[Figure]:
    """Explain from how many hours a day it pays, where they are a question."""
    hourly = basis.against_hourly if basis.is_by_hours else None
    if hourly is not None and hourly.usd_per_hour is not None:
        rent = float(hourly.usd_per_hour) * hourly.replicas
        yield Figure(
            name="break-even use",
            value=option.break_even_hours_per_day,
            unit="h/d",
            formula="fixed cost of owning / ((rent an hour - energy an hour) x days)",
            numbers=(
                f"{basis.own_fixed_usd_per_month:,.2f} / (({rent:,.4f} - {basis.own_usd_per_hour:,.4f}) x "
                f"{basis.days_per_month:g})"
                + ("" if option.break_even_hours_per_day is not None else "; above 24 h a day: never")
            ),
            source=f"against {hourly.name} from {hourly.provider_title}",
            is_estimate=True,
            is_never=option.break_even_hours_per_day is None,
        )


def break_even_tokens(option: Option, api: Option | None) -> float | None:
    """
    Return from how many output tokens a month a machine of one's own costs less than an API; None: never.

    It is never, too, where the machines could not write so many in their hours.
    """
    basis, point = option.basis, option.point
    if not isinstance(basis, BuyBasis) or point is None or api is None or api.token_prices is None:
        return None
    per_million = api.token_prices.usd_per_million_tokens or 0.0
    enough = break_even_tokens_per_month(option.usd_per_month or 0.0, per_million)
    most = point.capacity_tokens_per_s * option.replicas * SECONDS_PER_HOUR * basis.hours_per_month
    return enough if enough is not None and enough <= most * (1.0 + 1e-9) else None


def tokens_figure(option: Option, api: Option) -> Figure:
    """Explain from how many tokens a month owning costs less than an API."""
    value, prices = break_even_tokens(option, api), api.token_prices
    per_million = (prices.usd_per_million_tokens if prices else 0.0) or 0.0
    never = "; never: more than the machines could write in their hours" if value is None else ""
    return Figure(
        name="break-even tokens against an API",
        value=value,
        unit="output tokens/month",
        formula="cost of owning a month / price of a million output tokens with their input x 1e6",
        numbers=f"{option.usd_per_month or 0.0:,.2f} / {per_million:,.4f} x 1e6{never}",
        source=f"against {api.name} at {api.provider_title}, {price_date_text(api)}",
        is_estimate=True,
        is_never=value is None,
    )


def _levelised(option: Option, basis: BuyBasis, assumptions: Assumptions) -> Figure:
    """Explain what an hour costs with interest."""
    cost, gpus = basis.cost, (option.gpu_count or 1) * option.replicas
    per_hour = float(usd_per_available_gpu_hour(cost.total_usd, gpus, assumptions["availability"]))
    return Figure(
        name="levelised cost of an available GPU-hour",
        value=per_hour,
        unit="USD/GPU-h",
        formula="(capital with interest + running cost) / (GPUs x 8,760 x availability)",
        numbers=(
            f"({cost.capital_usd:,.2f} + {float(cost.running_usd):,.2f}) / ({gpus} x 8,760 x "
            f"{assumptions['availability']:g}); {per_hour / assumptions['utilisation']:,.4f} of a useful one "
            f"at {assumptions['utilisation']:.0%}"
        ),
        source=assumptions.source("discount_rate"),
        is_estimate=True,
    )


def _shares(option: Option, basis: BuyBasis, assumptions: Assumptions, per_hour: float) -> Iterator[Figure]:
    """Explain the utilisation and the rent at which the answer flips, and the value today."""
    hourly = basis.against_hourly
    gpus = (option.gpu_count or 1) * option.replicas
    if hourly is not None and hourly.usd_per_hour is not None:
        rent, own = float(hourly.usd_per_hour) * hourly.replicas, per_hour * gpus
        share = break_even_utilisation(own, rent)
        yield Figure(
            name="break-even utilisation",
            value=share,
            unit="fraction",
            formula="levelised cost of an available hour / rent an hour, all machines that serve the same",
            numbers=f"{own:,.4f} / {rent:,.4f}" + ("" if share is not None else "; above 1: never"),
            source=f"against {hourly.name} from {hourly.provider_title}",
            is_estimate=True,
            is_never=share is None,
        )
    if option.usd_per_month is not None:
        yield Figure(
            name="rent at which the answer flips",
            value=break_even_rent_usd_per_hour(option.usd_per_month, basis.hours_per_month),
            unit="USD/h",
            formula="cost of owning a month / hours a month; below it renting is cheaper",
            numbers=f"{option.usd_per_month:,.2f} / {basis.hours_per_month:,.1f}",
            source='docs/methodology.md, "Break-even"',
            is_estimate=True,
        )
    saved = _saved(basis, assumptions)
    if saved is not None:
        interest = assumptions["discount_rate"]
        yield Figure(
            name="net present value of buying instead of renting",
            value=net_present_value_usd(saved, interest),
            unit="USD",
            formula="sum of (rent - price - running cost + resale) of month m / (1 + interest)^(m / 12)",
            numbers=(
                f"{saved[0]:,.0f} at the start, {saved[1]:,.0f} in the first month, {saved[-1]:,.0f} in "
                f"month {saved.size - 1} with the resale; {interest:.1%} a year"
            ),
            source=assumptions.source("discount_rate"),
            is_estimate=True,
        )


def value_today_usd(basis: BuyBasis, assumptions: Assumptions) -> float | None:
    """Return the net present value of buying instead of renting; None where nothing is rented. [USD]"""
    saved = _saved(basis, assumptions)
    return None if saved is None else net_present_value_usd(saved, assumptions["discount_rate"])


def _saved(basis: BuyBasis, assumptions: Assumptions) -> NDArray[np.float64] | None:
    costs = monthly_costs(basis.cost, basis.against, assumptions)
    return None if costs is None else saved_usd(basis.cost, costs)


def saved_usd(cost: OwnCost, costs: MonthlyCosts) -> NDArray[np.float64]:
    """
    Return what buying saves in each month against renting, the price at the start and the resale at the end.

    Returns:
        Cash of months 0, 1, 2, ... to the end of the term, saved positive, shape (n,). [USD]
    """
    times = term_months(float(cost.term_years))
    apart = costs.rent(times) - costs.own(float(cost.capex_usd), times)
    saved: NDArray[np.float64] = np.diff(apart, prepend=0.0)
    saved[-1] += float(cost.resale_usd)
    return saved
