"""How sure an answer is: one assumption at a time, and all of them at once by seeded draws."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from planner.answers.money import Money
from planner.assumptions import Assumptions
from planner.scenario import Scenario
from planner.supply.options import Option
from planner.uncertainty.comparison import Comparison
from planner.uncertainty.uncertain import HOURS, Draws, Uncertain, hours_input, uncertain_inputs

SENSITIVITY_SCHEMA = "breakeven.sensitivity/1"
DRAWS = 10_000
SEED = 20261130
QUANTILES = (0.1, 0.5, 0.9)
# In the sentence; the table has them all.
FLIPS_NAMED = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Swing:
    """What one input does to the answer while all others stay at their base."""

    input: Uncertain
    saving_at_low: float  # [USD/month]
    saving_at_high: float
    is_short: bool = False  # at an end the one machine of a host does not carry the demand

    @property
    def effect_usd_per_month(self) -> float:
        """How far the answer moves over the range. [USD/month]"""
        return abs(self.saving_at_high - self.saving_at_low)

    @property
    def flips(self) -> bool:
        """Whether buying is cheaper at one end and dearer at the other."""
        return (self.saving_at_low > 0.0) != (self.saving_at_high > 0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sensitivity:
    """How sure it is that buying one machine is cheaper than renting another."""

    purchase: Option
    rental: Option
    saving_usd_per_month: float  # of buying, over the term, at all base values
    swings: tuple[Swing, ...]  # by effect, the largest first
    draws: int
    seed: int
    probability_buying_is_cheaper: float | None  # None: nothing was drawn
    break_even_months: tuple[float | None, ...]  # at QUANTILES; None: not within twenty years
    short_fraction: float | None = None  # of the draws in which the one machine of a host does not carry it

    def to_document(self) -> dict[str, object]:
        """Return it as `breakeven.sensitivity/1`."""
        return {
            "schema": SENSITIVITY_SCHEMA,
            "buy": self.purchase.times_text,
            "rent": self.rental.offer_text,
            "saving_usd_per_month": self.saving_usd_per_month,
            "draws": self.draws,
            "seed": self.seed,
            "probability_buying_is_cheaper": self.probability_buying_is_cheaper,
            "short_fraction": self.short_fraction,
            "break_even_months": {
                f"p{quantile * 100:.0f}": months
                for quantile, months in zip(QUANTILES, self.break_even_months, strict=True)
            },
            "swings": [
                {
                    "name": swing.input.name,
                    "title": swing.input.title,
                    "unit": swing.input.unit,
                    "base": swing.input.base,
                    "low": swing.input.low,
                    "high": swing.input.high,
                    "saving_at_low": swing.saving_at_low,
                    "saving_at_high": swing.saving_at_high,
                    "effect_usd_per_month": swing.effect_usd_per_month,
                    "flips": swing.flips,
                    "source": swing.input.source,
                }
                for swing in self.swings
            ],
        }


def sensitivity(
    purchase: Option,
    rental: Option,
    scenario: Scenario,
    assumptions: Assumptions,
    *,
    draws: int = DRAWS,
    seed: int = SEED,
) -> Sensitivity:
    """
    Return how the comparison of a purchase with a rental moves with what is not known.

    Args:
        purchase: To buy.
        rental: What it is compared with.
        scenario: The question.
        assumptions: The values in use.
        draws: Of all inputs at once; 0 leaves them out.
        seed: The same seed gives the same draws.

    Source:
        docs/methodology.md, "Uncertainty".
    """
    model = Comparison(purchase, rental, scenario, assumptions)
    inputs = uncertain_inputs(purchase, rental, scenario, assumptions)
    hours = hours_input(scenario)  # stated, so not drawn: but what an answer turns on first
    swings, base = _swings(model, inputs if hours is None else [*inputs, hours])
    if not draws:
        return Sensitivity(
            purchase=purchase,
            rental=rental,
            saving_usd_per_month=base,
            swings=swings,
            draws=0,
            seed=seed,
            probability_buying_is_cheaper=None,
            break_even_months=(None,) * len(QUANTILES),
        )
    quantiles = np.random.default_rng(seed).random((len(inputs), draws))
    drawn = {each.name: each.at(quantile) for each, quantile in zip(inputs, quantiles, strict=True)}
    outcome = model.outcome(drawn, draws)
    return Sensitivity(
        purchase=purchase,
        rental=rental,
        saving_usd_per_month=base,
        swings=swings,
        draws=draws,
        seed=seed,
        probability_buying_is_cheaper=float(np.mean(outcome.saving > 0.0)),
        break_even_months=_quantiles(model.break_even_months(outcome)),
        short_fraction=float(np.mean(outcome.is_short)),
    )


def _swings(model: Comparison, inputs: Sequence[Uncertain]) -> tuple[tuple[Swing, ...], float]:
    """Return what each input does alone, by effect, and the answer at all base values."""
    size = 1 + 2 * len(inputs)
    drawn = {each.name: np.full(size, each.base) for each in inputs}
    for place, each in enumerate(inputs):
        drawn[each.name][1 + 2 * place], drawn[each.name][2 + 2 * place] = each.low, each.high
    outcome = model.outcome(drawn, size)
    saving, short = outcome.saving, outcome.is_short
    swings = [
        Swing(
            input=each,
            saving_at_low=float(saving[1 + 2 * place]),
            saving_at_high=float(saving[2 + 2 * place]),
            is_short=bool(short[1 + 2 * place] or short[2 + 2 * place]),
        )
        for place, each in enumerate(inputs)
    ]
    swings.sort(key=lambda swing: (-swing.effect_usd_per_month, swing.input.name))
    return tuple(swings), float(saving[0])


def _quantiles(months: Draws) -> tuple[float | None, ...]:
    """Return the quantiles of QUANTILES; None where that many draws never pay back."""
    found = np.quantile(months, QUANTILES, method="inverted_cdf")
    return tuple(float(each) if np.isfinite(each) else None for each in found)


def change_text(found: Sensitivity, money: Money, *, is_mixed: bool = False) -> str:
    """
    Say in one sentence what would change the answer.

    Args:
        found: What each input does.
        money: In which currency.
        is_mixed: The answer is a mix of owned and rented machines, and this between all of one of them.
    """
    word = "buying" if found.saving_usd_per_month > 0.0 else "renting"
    what = "the cheaper of the two" if is_mixed else "the answer"
    lead = f"What would change {what} ({word} saves {money.text(abs(found.saving_usd_per_month))} a month)"
    flips = [swing for swing in found.swings if swing.flips]
    flips.sort(key=lambda swing: swing.input.name != HOURS)  # the one that a reader can choose
    if flips:
        named = "; ".join(_flip_text(swing, found.saving_usd_per_month) for swing in flips[:FLIPS_NAMED])
        more = f"; and {len(flips) - FLIPS_NAMED} more" if len(flips) > FLIPS_NAMED else ""
        return f"{lead}: {named}{more}.{short_text(found)}"
    if not found.swings:
        return f"{lead}: nothing that is not stated counts here."
    largest = found.swings[0]
    return (
        f"{lead}: no single assumption within the range seen; the most moves {_title(largest)}, by "
        f"{money.text(largest.effect_usd_per_month)} a month over its range.{short_text(found)}"
    )


def short_text(found: Sensitivity) -> str:
    """Say where the rental is one host's machine, and slower than estimated would not carry the demand."""
    if not any(swing.is_short for swing in found.swings):
        return ""
    many = f" ({found.short_fraction:.0%} of the draws)" if found.short_fraction else ""
    rental = found.rental
    return (
        f" If it is slower than estimated, one {rental.name} would not carry the demand{many}, and what "
        f"{rental.provider_title or rental.provider} lists is one host's machine: a second has another "
        "price, which is not counted."
    )


def _flip_text(swing: Swing, saving_usd_per_month: float) -> str:
    """Name the end of the range at which the answer is another one."""
    at_low = (swing.saving_at_low > 0.0) != (saving_usd_per_month > 0.0)
    end = swing.input.low if at_low else swing.input.high
    return f"{_title(swing)} at {end:g} {swing.input.unit} instead of {swing.input.base:g}"


def _title(swing: Swing) -> str:
    title = swing.input.title
    return title[0].lower() + title[1:]
