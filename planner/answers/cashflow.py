"""Cash month by month: what each way costs when it is due, for whoever plans the money."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from planner.assumptions import Assumptions
from planner.exports.table import Column, Table
from planner.supply.options import BuyBasis, Option
from planner.supply.owning import monthly_costs
from planner.supply.paths import Moves, term_months

CASH_COLUMNS: tuple[Column, ...] = (
    Column("month", float),
    *(
        Column(f"{way}_usd{suffix}", float)
        for way in ("rent", "own", "api")
        for suffix in ("", "_cumulative")
    ),
)

Line = tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CashFlow:
    """What is paid in each month of the term; month 0 is the start. None where a way is not there."""

    months: Line
    rent_usd: Line | None
    own_usd: Line | None  # the price in month 0, the resale taken off in the last
    api_usd: Line | None
    rent_name: str | None
    own_name: str | None
    api_name: str | None

    def to_document(self) -> dict[str, object]:
        """Return it as a part of `breakeven.plan/1`."""
        return {
            "months": list(self.months),
            "rent": self.rent_name,
            "rent_usd": None if self.rent_usd is None else list(self.rent_usd),
            "own": self.own_name,
            "own_usd": None if self.own_usd is None else list(self.own_usd),
            "api": self.api_name,
            "api_usd": None if self.api_usd is None else list(self.api_usd),
        }

    def to_table(self) -> Table:
        """Return table (n_months, 7), one row per month, columns CASH_COLUMNS; sums so far beside each."""
        columns: list[list[float | None]] = [list(self.months)]
        for line in (self.rent_usd, self.own_usd, self.api_usd):
            if line is None:
                columns += [[None] * len(self.months)] * 2
            else:
                columns += [list(line), np.cumsum(line).tolist()]
        return Table(columns=CASH_COLUMNS, rows=tuple(zip(*columns, strict=True)))


def cash_flow(
    rental: Option | None, purchase: Option | None, api: Option | None, assumptions: Assumptions
) -> CashFlow:
    """
    Return what renting, owning and calling an API cost in each month of the term.

    Args:
        rental: To rent.
        purchase: To buy, or owned already.
        api: To call.
        assumptions: The values in use.

    Source:
        docs/methodology.md, "Price paths".
    """
    basis = purchase.basis if purchase is not None and isinstance(purchase.basis, BuyBasis) else None
    years = float(basis.ownership.term_years) if basis else assumptions["term_years"]
    times = term_months(years)
    own = None
    if basis is not None and purchase is not None:
        costs = monthly_costs(basis.cost, rental or purchase, assumptions)
        if costs is not None:
            own = np.diff(costs.own(float(basis.cost.capex_usd), times), prepend=0.0)
            own[-1] -= float(basis.cost.resale_usd)
    rents = assumptions.rents if rental is None else assumptions.rents.held(rental.held_months)
    return CashFlow(
        months=tuple(times.tolist()),
        rent_usd=_paid(rental, times, rents),
        own_usd=None if own is None else tuple(own.tolist()),
        api_usd=_paid(api, times, assumptions.api_prices),
        rent_name=None if rental is None else rental.offer_text,
        own_name=None if purchase is None else purchase.times_text,
        api_name=None if api is None else f"{api.name} at {api.provider_title}",
    )


def _paid(option: Option | None, times: NDArray[np.float64], moves: Moves) -> Line | None:
    """Return what is paid from month to month at a price that moves."""
    if option is None or option.usd_per_month is None:
        return None
    paid = moves.paid_usd(option.usd_per_month, times)
    return tuple(np.diff(paid, prepend=0.0).tolist())
