"""The same purchase against the same rental under each path of rents, beside each other."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from planner.answers.money import Money
from planner.answers.words import past_term_text
from planner.assumptions import Assumptions
from planner.breakeven import MAX_MONTHS
from planner.supply.options import BuyBasis, Option
from planner.supply.owning import monthly_costs, months_kept, months_sold
from planner.supply.paths import Moves, RentPath, term_months

_MOVED = ("rent_change_per_year", "rent_shock_fraction", "rent_shock_months")


@dataclass(frozen=True, slots=True, kw_only=True)
class PathResult:
    """What one path of rents comes to."""

    path: str  # flat, decline, shock, or `set` where --set says something else
    moves: Moves
    is_in_use: bool
    rent_usd_per_month: float  # the mean over the term
    saving_usd_per_month: float  # of buying, over the term
    break_even_months: float | None  # without a sale
    break_even_months_with_resale: float | None
    rent_usd: tuple[float, ...]  # paid after months 0, 1, 2, ... of the term

    def to_document(self) -> dict[str, object]:
        """Return it as in `breakeven.plan/1`; the curve is left to the charts."""
        return {
            "path": self.path,
            "is_in_use": self.is_in_use,
            "change_per_year": self.moves.change_per_year,
            "shock_fraction": self.moves.shock_fraction,
            "shock_months": self.moves.shock_months if self.moves.shock_fraction else None,
            "rent_usd_per_month": self.rent_usd_per_month,
            "saving_usd_per_month": self.saving_usd_per_month,
            "break_even_months": self.break_even_months,
            "break_even_months_with_resale": self.break_even_months_with_resale,
        }


def rent_paths(purchase: Option | None, rental: Option | None, terms: Assumptions) -> tuple[PathResult, ...]:
    """
    Return every path of rents, the one in use among them; empty where nothing is compared.

    Args:
        purchase: To buy.
        rental: What it is compared with.
        terms: The assumptions in use.

    Source:
        docs/methodology.md, "Price paths".
    """
    if purchase is None or rental is None or not isinstance(purchase.basis, BuyBasis):
        return ()
    basis = purchase.basis
    free = {name: value for name, value in terms.overrides.items() if name not in _MOVED}
    standard = [replace(terms, overrides=free, path=path) for path in RentPath]
    used = _moves(terms)
    results = [
        _result(str(each.path), basis, rental, each, is_in_use=_moves(each) == used) for each in standard
    ]
    if not any(result.is_in_use for result in results):
        results.append(_result("set", basis, rental, terms, is_in_use=True))
    return tuple(results)


def _moves(terms: Assumptions) -> tuple[float, ...]:
    """Return what the path does; within how many months counts only where there is a shock."""
    moves = terms.rents
    change, shock = moves.change_per_year, moves.shock_fraction
    return (change, shock, moves.shock_months) if shock else (change,)


def _result(path: str, basis: BuyBasis, rental: Option, terms: Assumptions, *, is_in_use: bool) -> PathResult:
    costs = monthly_costs(basis.cost, rental, terms)
    if costs is None:
        raise ValueError(f"{rental.name} has no monthly rent")
    months = term_months(float(basis.ownership.term_years))
    term = float(months[-1])
    rent, own = costs.rent(months), costs.own(float(basis.cost.capex_usd), months)
    spent = float(own[-1]) - float(basis.cost.resale_usd)
    return PathResult(
        path=path,
        moves=terms.rents,
        is_in_use=is_in_use,
        rent_usd_per_month=float(rent[-1]) / term,
        saving_usd_per_month=(float(rent[-1]) - spent) / term,
        break_even_months=months_kept(basis.cost, costs),
        break_even_months_with_resale=months_sold(
            basis.cost, float(basis.ownership.machine_usd), costs, terms
        ),
        rent_usd=tuple(rent.tolist()),
    )


def paths_text(results: Sequence[PathResult], purchase: Option, money: Money) -> str:
    """Say in one sentence when a purchase pays under each path."""
    term = purchase.term_months or 0.0
    parts = [
        f"{each.moves.words} {_months(each, term)}{' (in use)' if each.is_in_use else ''}" for each in results
    ]
    least, *_, most = sorted(results, key=lambda each: each.saving_usd_per_month)
    return (
        f"Rents may move; buying {purchase.name} pays back with them {'; '.join(parts)}. Over the term it is "
        f"{_apart(least, money)} to {_apart(most, money)} than renting."
    )


def _months(result: PathResult, term_months: float) -> str:
    months = result.break_even_months
    if months is None or months > MAX_MONTHS:
        return "never"
    if months > term_months:
        return f"not {past_term_text(months, term_months)}"
    return f"after {months:,.0f} months"


def _apart(result: PathResult, money: Money) -> str:
    word = "cheaper" if result.saving_usd_per_month >= 0.0 else "dearer"
    return f"{money.text(abs(result.saving_usd_per_month))} a month {word}"
