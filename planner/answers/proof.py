"""The figures behind a verdict: one line for each way, with price, date and break-even."""

from collections.abc import Sequence

from planner.answers.money import Money
from planner.answers.ways import Ways
from planner.answers.words import (
    API_LATENCY,
    bare_text,
    machine_text,
    month_text,
    past_term_text,
    price_date_text,
    provider_text,
    tokens_text,
    use_text,
    years_text,
)
from planner.breakeven import MAX_MONTHS, break_even_tokens_per_month
from planner.supply.options import BuyBasis, Excluded, Option

_TIERS = {
    "on_demand": "on demand",
    "reserved_1y": "reserved for a year",
    "reserved_3y": "reserved for three years",
    "reserved_other": "reserved",
}


def proof(found: Ways, excluded: Sequence[Excluded]) -> list[str]:
    """Return the figures behind the verdict: one line for each way, with price, date and break-even."""
    lines = []
    if found.rental is not None:
        lines.append(_rent_line(found.rental, found))
    if found.purchase is not None:
        lines.append(_own_line(found.purchase, found))
    if found.own is not None and found.own is not found.purchase:
        lines.append(_own_line(found.own, found))
    elif found.own is None and found.scenario.own is not None:
        entry = next((each for each in excluded if each.what.endswith("your own")), None)
        if entry is not None:
            lines.append(f"Your own {entry.what.removesuffix(', your own')}: {entry.why}.")
    if found.api is not None:
        lines.append(_api_line(found.api, found))
    return lines


def _rental_text(option: Option, money: Money) -> str:
    """Name a rental: machine, provider, tier, hourly price and its date."""
    tier = _TIERS.get(option.tier or "", option.tier or "")
    hour = money.exact(float(option.usd_per_hour or 0.0))
    return (
        f"{option.times_text} from {provider_text(option)} ({tier}) at {hour}/h ({price_date_text(option)})"
    )


def _payback_text(option: Option, money: Money) -> str:
    """Say when a purchase pays against renting, or that it does not."""
    basis = option.basis
    if not isinstance(basis, BuyBasis) or basis.against is None:
        return "with nothing to rent it cannot be compared"
    months, with_resale = option.break_even_months, basis.months_with_resale
    term = float(basis.ownership.term_years) * 12.0
    if months is None:
        running = float(basis.cost.running_usd_per_month)
        if running < (basis.against.usd_per_month or 0.0):
            return "never pays back, since rents fall faster than it saves them"
        return f"never pays back, since running it alone costs {money.text(running)} a month"
    if months <= term:
        return f"pays back after {months:,.1f} months" if months > 0.0 else "pays at once"
    after = f"after {months:,.0f} months" if months <= MAX_MONTHS else "never"
    if with_resale is not None and with_resale <= term:
        return f"pays back after {with_resale:,.1f} months if it is sold then, {after} if it is kept"
    if months <= MAX_MONTHS:
        return f"does not pay back {past_term_text(months, term)}"
    return f"does not pay back within its term of {term:,.0f} months"


def _rent_line(option: Option, found: Ways) -> str:
    use = use_text(found.scenario)
    return (
        f"Rent: {_rental_text(option, found.money)}, {month_text(option, found.money)} {use}.{_slow(option)}"
    )


def _slow(option: Option) -> str:
    return " It is too slow to talk to." if option.is_too_slow else ""


def _own_line(option: Option, found: Ways) -> str:
    month, money = month_text(option, found.money), found.money
    slow = _slow(option)
    if option.is_own:
        return f"Own: your {bare_text(option)} costs {month} to run {use_text(found.scenario)}.{slow}"
    basis = option.basis
    years = float(basis.ownership.term_years) if isinstance(basis, BuyBasis) else 0.0
    price = money.text(option.purchase_usd or 0.0)
    hours = option.break_even_hours_per_day
    today = "" if found.scenario.assumptions.rents.is_flat else " at the rent of today"
    from_hours = f", and owning costs less from {hours:,.1f} h a day{today}" if hours else ""
    text = (
        f"Buy: {option.times_text} for {price} ({price_date_text(option)}), {month} over {years_text(years)} "
        f"{use_text(found.scenario)}"
    )
    if found.rental is None:
        return f"{text}.{slow}"
    return f"{text}; against that rent it {_payback_text(option, money)}{from_hours}.{slow}"


def _api_line(option: Option, found: Ways) -> str:
    """Give the line of an API, with what is not known of it."""
    line = _api_figures(option, found)
    if not found.scenario.limits_latency:
        return line
    return f"{line} {API_LATENCY[0].upper()}{API_LATENCY[1:]}."


def _api_figures(option: Option, found: Ways) -> str:
    """Give the API's prices, what they come to, and from how many tokens on a machine would cost less."""
    money, prices = found.money, option.token_prices
    if prices is None:
        return f"API: {option.name} at {provider_text(option)} ({price_date_text(option)})."
    usd_in, usd_out = prices.usd_per_million_input_tokens, prices.usd_per_million_output_tokens
    text = (
        f"API: {option.name} at {provider_text(option)}, {money.exact(usd_in)} in and {money.exact(usd_out)} "
        f"out a million tokens ({price_date_text(option)})"
    )
    if option.usd_per_month is None:
        return f"{text}."
    tokens = tokens_text(option.tokens_per_month or 0.0)
    per_request = f"{found.scenario.input_tokens:,} in for {found.scenario.output_tokens:,} out"
    text = f"{text}, {month_text(option, found.money)} for {tokens} output tokens ({per_request})."
    machine = found.machine
    per_million = prices.usd_per_million_tokens
    if machine is None or not per_million or found.scenario.has_demand:
        return text
    enough = break_even_tokens_per_month(machine.usd_per_month or 0.0, per_million) or 0.0
    written = tokens_text(machine.tokens_per_month or 0.0)
    return (
        f"{text} It costs less than {machine_text(machine)} up to {tokens_text(enough)} output tokens a "
        f"month; that machine could write {written} at batch {found.scenario.batch}."
    )
