"""How an answer's sureness reads: how often buying is cheaper, when it pays, and what moves it most."""

from dashboard import tables
from planner.answers.money import Money
from planner.sensitivity import QUANTILES, Sensitivity, Swing, change_text
from planner.supply.options import Kind
from planner.uncertainty.spread import Spread

OPTIONS_SHOWN = 12
_WAYS = {Kind.RENT: "renting", Kind.BUY: "owning", Kind.API: "an API"}


def headline(found: Sensitivity) -> str:
    """Say how often buying is cheaper, and when it pays back."""
    share = found.probability_buying_is_cheaper or 0.0
    months = ", ".join(
        f"{quantile:.0%} {'never' if each is None else f'{each:,.1f}'}"
        for quantile, each in zip(QUANTILES, found.break_even_months, strict=True)
    )
    return (
        f"Buying {found.purchase.times_text} is cheaper than renting {found.rental.offer_text} over its term "
        "in "
        f"{share:.0%} of {found.draws:,} draws; months to break-even: {months}."
    )


def text(found: Sensitivity, money: Money, options: str, singles: str | None) -> str:
    """
    Return what each input does alone, the largest effect first, and what all options cost.

    Args:
        found: What each input does.
        money: In which currency.
        options: What all options cost in the same draws.
        singles: What is said where the answer is a mix, which is not compared here.
    """
    headers = ("assumption", "unit", "low", "base", "high", *_money_headers(money), "flips", "source")
    rows = [_row(swing, money) for swing in found.swings]
    return tables.paragraphs(
        tables.table(headers, rows, left=(0, 1, 8, 9)),
        singles or "",
        change_text(found, money, is_mixed=singles is not None),
        options,
        f"Savings are those of buying, a month over the term: {money.text(found.saving_usd_per_month)} at "
        f"all base values. Draws are seeded ({found.seed}): the same question gives the same figures.",
        tables.ESTIMATE_NOTE,
    )


def options_text(found: Spread, money: Money) -> str:
    """Return what the options cost in the same draws, and how often each way is the cheapest."""
    ways = ", ".join(f"{_WAYS[kind]} in {share:.0%}" for kind, share in found.cheapest.items())
    currency = money.currency
    headers = ("option", "from", "tier", *(f"{currency}/month {each:.0%}" for each in QUANTILES), "cheapest")
    rows = [
        (
            f"{'buy ' if each.option.kind is Kind.BUY and not each.option.is_own else ''}{each.option.name}",
            each.option.provider or "",
            each.option.tier or "",
            *(f"{tables.money(money.amount(usd))}*" for usd in each.usd_per_month),
            "does not count" if each.cheapest_fraction is None else f"{each.cheapest_fraction:.0%}",
        )
        for each in found.options[:OPTIONS_SHOWN]
    ]
    more = len(found.options) - len(rows)
    return tables.paragraphs(
        f"Of all options that count the cheapest over the term in {found.draws:,} draws: {ways}.",
        tables.table(headers, rows, left=(0, 1, 2)) if rows else "",
        f"{more} more in the JSON" if more > 0 else "",
    )


def _money_headers(money: Money) -> tuple[str, str, str]:
    currency = money.currency
    return f"{currency}/month at low", f"{currency}/month at high", f"effect {currency}/month"


def _row(swing: Swing, money: Money) -> tuple[object, ...]:
    known = swing.input
    figures = (swing.saving_at_low, swing.saving_at_high, swing.effect_usd_per_month)
    return (
        tables.shortened(known.title, 48),
        known.unit,
        *(tables.significant(each, 3) for each in (known.low, known.base, known.high)),
        *(f"{tables.money(money.amount(each))}*" for each in figures),
        tables.yes_no(swing.flips),
        tables.shortened(known.source, 44),
    )
