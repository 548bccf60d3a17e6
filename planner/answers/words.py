"""Words that answers share: prices with their dates, amounts a month, use, machines and providers."""

import math

from planner.answers.money import Money
from planner.rates import PriceStatus
from planner.scenario import Scenario
from planner.supply.options import Kind, Option

# Price lists of APIs state no latency, so nothing is held against a limit of it.
API_LATENCY = "its latency is not known and was not checked against the limit"


def price_date_text(option: Option) -> str:
    """Say when a price was seen, and what it is."""
    day = (option.price.seen_at or "")[:10] or "undated"
    if option.kind is not Kind.RENT and option.price.status is PriceStatus.SNAPSHOT:
        return f"price of {day}"
    words = {
        PriceStatus.VERIFIED: f"seen {day}",
        PriceStatus.STALE: f"last seen {day}",
        PriceStatus.SNAPSHOT: f"snapshot of {day}",
        PriceStatus.OWN: f"your own price of {day}" if option.price.seen_at else "your own price",
    }
    return words[option.price.status]


def use_text(scenario: Scenario) -> str:
    """Say how long, or how much, the service is used."""
    if scenario.tokens_per_month is not None:
        return f"for {tokens_text(scenario.tokens_per_month)} output tokens"
    if scenario.requests_per_s is not None:
        requests = "request" if scenario.requests_per_s == 1.0 else "requests"
        return f"for {scenario.requests_per_s:g} {requests} a second"
    return f"at {scenario.hours_per_day:g} h a day"


def tokens_text(tokens: float) -> str:
    """Write a number of tokens shortly."""
    for size, word in ((1e12, "trillion"), (1e9, "billion"), (1e6, "million")):
        if round(tokens / size, 4) >= 1.0:  # 999.96 million would be written as 1,000.0
            return f"{tokens / size:,.1f} {word}"
    return f"{tokens:,.0f}"


def machine_text(machine: Option) -> str:
    """Name a machine with the way it is had."""
    if machine.is_own:
        return f"your own {bare_text(machine)}"
    way = "rented" if machine.kind is Kind.RENT else "bought"
    return f"a {way} {machine.times_text}"


def month_text(option: Option, money: Money) -> str:
    """Say what a month costs now, and over the term where prices move."""
    month, over_term = f"{money.text(option.usd_per_month or 0.0)} a month", option.usd_per_month_over_term
    if over_term is None:
        return month
    return f"{month} now and {money.text(over_term)} on average over the term"


def years_text(years: float) -> str:
    """Write a number of years."""
    return f"{years:g} year{'' if years == 1.0 else 's'}"


def past_term_text(months: float, term_months: float) -> str:
    """Say that something pays only after the term, and when."""
    late = max(round(months), math.floor(term_months) + 1)  # never rounded into the term
    return f"within its term of {term_months:,.0f} months (after {late:,})"


def bare_text(option: Option) -> str:
    """Name a machine without the mark that it is there already."""
    return option.times_text.replace(" (own)", "")


def provider_text(option: Option) -> str:
    """Name who offers it, in the words of the public where they are known."""
    return option.provider_title or option.provider or ""
