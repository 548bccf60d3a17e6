"""What a machine is worth in the books, by straight line or declining balance, and on the market."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from planner.errors import InvalidScenario


class Way(StrEnum):
    """How a price is spread over the years of use."""

    STRAIGHT_LINE = "straight line"
    DECLINING = "declining balance"


@dataclass(frozen=True, slots=True, kw_only=True)
class BookYear:
    """One year of use, the last one perhaps broken."""

    years: float  # since the purchase, at its end
    depreciation_usd: float  # in this year
    book_usd: float  # at its end
    market_usd: float | None  # at its end, where a resale curve is given

    @property
    def unrealised_usd(self) -> float | None:
        """What a sale at its end would bring beyond the books; below 0 it is a loss. [USD]"""
        return None if self.market_usd is None else self.market_usd - self.book_usd


def schedule(
    capex_usd: float,
    resale_usd: float,
    term_years: float,
    way: Way,
    *,
    rate: float | None = None,
    market_usd: Callable[[float], float] | None = None,
) -> tuple[BookYear, ...]:
    """
    Return book value and depreciation year by year; both ways end at the resale value.

    Args:
        capex_usd: Paid at the start. [USD]
        resale_usd: What is left at the end of the term. [USD]
        term_years: [years]
        way: Straight line, or declining balance, which turns to the straight line where that takes more.
        rate: Of the declining balance; twice the straight line where None. [1/year]
        market_usd: What it would sell for after so many years. [USD]

    Raises:
        InvalidScenario: if the term or the rate is not above 0, or the resale value is above the price.

    Source:
        docs/methodology.md, "Depreciation".
    """
    yearly = 2.0 / term_years if rate is None and term_years > 0.0 else rate
    if not 0.0 < term_years < math.inf:
        raise InvalidScenario("term_years", term_years, "years above 0")
    if yearly is None or not 0.0 < yearly < math.inf:
        raise InvalidScenario("rate", rate, "a rate above 0")
    if not 0.0 <= resale_usd <= capex_usd < math.inf:
        raise InvalidScenario("resale_usd", resale_usd, f"an amount from 0 to the price, {capex_usd:g}")
    years, book, found = 0.0, capex_usd, []
    while years < term_years - 1e-9:
        length = min(1.0, term_years - years)
        straight = (book - resale_usd) / (term_years - years) * length
        taken = straight
        if way is Way.DECLINING:
            taken = min(max(book * min(1.0, yearly * length), straight), book - resale_usd)
        years, book = years + length, max(book - taken, resale_usd)
        found.append(
            BookYear(
                years=years,
                depreciation_usd=taken,
                book_usd=book,
                market_usd=None if market_usd is None else market_usd(years),
            )
        )
    return tuple(found)
