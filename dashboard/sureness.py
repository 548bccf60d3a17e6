"""How sure the break-even is: the band in which most draws of what is not known put it, in words and rows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import streamlit as st

from dashboard import data
from dashboard.rows.points import Span
from planner.answers.words import past_term_text
from planner.breakeven import MAX_MONTHS
from planner.compare import Plan
from planner.sensitivity import QUANTILES, Sensitivity

NEVER = f"not within {MAX_MONTHS // 12} years"
TENTHS_BELOW_MONTHS = 6.0


@dataclass(frozen=True, slots=True)
class Band:
    """When buying pays back: at the values taken, and in the middle 80 % of draws."""

    base_months: float | None  # None: not within twenty years
    months: tuple[float | None, ...]  # at QUANTILES
    term_months: float
    share_cheaper: float  # draws in which buying costs less over the term
    draws: int
    purchase: str
    rental: str

    @property
    def span(self) -> Span | None:
        """The stretch of months to shade, None where even the lowest tenth of draws never pays back."""
        low, _, high = self.months
        if low is None:
            return None
        return Span(start=low, end=high, text=f"80 % of draws: {_between(low, high)}")

    @property
    def text(self) -> str:
        """The band in one sentence."""
        low, middle, high = self.months
        never = f"does not pay back within {MAX_MONTHS // 12} years"
        base = never if self.base_months is None else f"pays back after {self.base_months:,.1f} months"
        if self.base_months is not None and self.base_months > self.term_months:
            base = f"does not pay back {past_term_text(self.base_months, self.term_months)}"
        drawn = f"{self.draws:,} seeded draws of what is not known*"
        lead = f"Buying {self.purchase} instead of renting {self.rental} {base} at the values taken"
        if low is None:
            band = f"in more than 90 % of {drawn} it does not within {MAX_MONTHS // 12} years"
        else:
            half = "" if middle is None else f", half of them by {_month(middle)}"
            band = f"in 80 % of {drawn} after {_between(low, high)}{half}"
        return f"{lead}; {band}. Over the term buying is cheaper in {self.share_cheaper:.0%} of them."

    @property
    def rows(self) -> Sequence[Mapping[str, object]]:
        """The same as a table."""
        at = {"at the values taken": self.base_months}
        at |= {
            f"{quantile:.0%} of draws have paid back by": months
            for quantile, months in zip(QUANTILES, self.months, strict=True)
        }
        return [
            {"break-even of buying": name, "months*": NEVER if months is None else f"{months:,.1f}"}
            for name, months in at.items()
        ]


def band(found: Plan) -> Band | None:
    """Return when buying pays back; None where there is nothing to compare, or nothing to pay back."""
    purchase = found.purchase
    sure = None if purchase is None or purchase.is_own else _drawn(data.question_key(found.scenario), found)
    if sure is None or purchase is None or sure.probability_buying_is_cheaper is None:
        return None
    base = purchase.break_even_months
    return Band(
        base_months=None if base is None or base > MAX_MONTHS else base,
        months=sure.break_even_months,
        term_months=purchase.term_months or 0.0,
        share_cheaper=sure.probability_buying_is_cheaper,
        draws=sure.draws,
        purchase=purchase.times_text,
        rental=sure.rental.offer_text,
    )


@st.cache_resource(max_entries=128, ttl=data.KEEP_SECONDS, show_spinner=False)
def _drawn(question: data.Key, _found: Plan) -> Sensitivity | None:
    return _found.sensitivity()


def _between(low: float, high: float | None) -> str:
    """Write a span of months; both ends alike are one month."""
    if high is None:
        return f"{_month(low)} months to never"
    ends = dict.fromkeys((_month(low), _month(high)))
    return f"{' to '.join(ends)} months"


def _month(months: float) -> str:
    """Write a month; in a short span a tenth of it counts."""
    return f"{months:,.1f}" if months < TENTHS_BELOW_MONTHS else f"{months:,.0f}"
