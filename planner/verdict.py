"""The plan in one sentence: what to do, what it costs, from when on the other way would pay."""

from collections.abc import Sequence

from planner.breakeven import MAX_MONTHS
from planner.choice import cheapest, cheapest_rental
from planner.money import Money
from planner.options import BuyBasis, Excluded, Kind, Option
from planner.rates import PriceStatus
from planner.scenario import Scenario

_TIERS = {
    "on_demand": "on demand",
    "reserved_1y": "reserved for a year",
    "reserved_3y": "reserved for three years",
    "reserved_other": "reserved",
}


def verdict(
    scenario: Scenario,
    model_name: str,
    options: Sequence[Option],
    excluded: Sequence[Excluded],
    money: Money,
) -> str:
    """
    Return the verdict.

    Without a demand it chooses between renting and owning and names the API's price for the same tokens; with
    one it takes the cheapest way of all.

    Args:
        scenario: What was asked.
        model_name: Of the model.
        options: Ranked.
        excluded: What was left out, for the case that nothing serves.
        money: In which currency amounts are written.
    """
    slow = not any(not option.is_too_slow for option in options if option.kind is not Kind.API)
    rental = cheapest_rental(options, scenario, may_be_slow=slow)
    purchase = cheapest(options, Kind.BUY, may_be_slow=slow)
    api = cheapest(options, Kind.API) or next((each for each in options if each.kind is Kind.API), None)
    machines = [option for option in (rental, purchase) if option is not None]
    choices = [*machines, api] if scenario.has_demand and api is not None else machines
    if not choices:
        return _nothing(scenario, model_name, api, excluded, money)
    if api is not None and api.usd_per_month is None:
        choices = machines
    best = min(choices, key=lambda option: option.rank_key[1:])
    clauses = [_lead(best, scenario, money), *_others(best, rental, purchase, api, scenario, money)]
    text = "; ".join(clauses) + "."
    if slow and best.kind is not Kind.API:
        floor = scenario.min_tokens_per_s_per_user
        return (
            f"Nothing found gives a user {floor:g} tokens a second; the cheapest that serves at all: {text}"
        )
    return text


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


def times_text(option: Option) -> str:
    """Name a machine, with the number of its copies."""
    return option.name if option.replicas == 1 else f"{option.replicas} x ({option.name})"


def rental_text(option: Option, money: Money) -> str:
    """Name a rental: machine, provider, tier, hourly price and its date."""
    tier = _TIERS.get(option.tier or "", option.tier or "")
    hour = money.exact(float(option.usd_per_hour or 0.0))
    provider = option.provider_title or option.provider
    return f"{times_text(option)} from {provider} ({tier}) at {hour}/h ({price_date_text(option)})"


def use_text(scenario: Scenario) -> str:
    """Say how long, or how much, the service is used."""
    if scenario.tokens_per_month is not None:
        return f"for {tokens_text(scenario.tokens_per_month)} output tokens"
    if scenario.requests_per_s is not None:
        return f"for {scenario.requests_per_s:g} requests a second"
    return f"at {scenario.hours_per_day:g} h a day"


def tokens_text(tokens: float) -> str:
    """Write a number of tokens shortly."""
    for size, word in ((1e12, "trillion"), (1e9, "billion"), (1e6, "million")):
        if tokens >= size:
            return f"{tokens / size:,.1f} {word}"
    return f"{tokens:,.0f}"


def payback_text(option: Option, money: Money) -> str:
    """Say when a purchase pays against renting, or that it does not."""
    basis = option.basis
    if not isinstance(basis, BuyBasis) or basis.against is None:
        return "with nothing to rent it cannot be compared"
    months, with_resale = option.break_even_months, basis.months_with_resale
    term = float(basis.ownership.term_years) * 12.0
    if months is None:
        running = money.text(float(basis.cost.running_usd_per_month))
        return f"never pays back, since running it alone costs {running} a month"
    if months <= term:
        return f"pays back after {months:,.1f} months" if months > 0.0 else "pays at once"
    after = f"after {months:,.0f} months" if months <= MAX_MONTHS else "never"
    if with_resale is not None and with_resale <= term:
        return f"pays back after {with_resale:,.1f} months if it is sold then, {after} if it is kept"
    return f"does not pay back within its term of {term:,.0f} months" + (
        f" ({after})" if months <= MAX_MONTHS else ""
    )


def _lead(option: Option, scenario: Scenario, money: Money) -> str:
    """Say what to do and what it costs."""
    month = money.text(option.usd_per_month or 0.0)
    use = use_text(scenario)
    if option.kind is Kind.RENT:
        return f"Rent {rental_text(option, money)}: {month} a month {use}"
    if option.kind is Kind.API:
        provider = option.provider_title or option.provider
        prices = option.token_prices
        each = ""
        if prices is not None:
            usd_in, usd_out = prices.usd_per_million_input_tokens, prices.usd_per_million_output_tokens
            each = f" at {money.exact(usd_in)} in and {money.exact(usd_out)} out a million tokens"
        return f"Call {option.name} at {provider}{each} ({price_date_text(option)}): {month} a month {use}"
    if option.is_own:
        own = times_text(option).removesuffix(" (own)")
        return f"Use your own {own}: it costs {month} a month to run {use}"
    basis = option.basis
    years = float(basis.ownership.term_years) if isinstance(basis, BuyBasis) else 0.0
    price = money.text(option.purchase_usd or 0.0)
    return (
        f"Buy {times_text(option)} for {price} ({price_date_text(option)}): {month} a month over {years:g} "
        f"years {use}"
    )


def _others(
    best: Option,
    rental: Option | None,
    purchase: Option | None,
    api: Option | None,
    scenario: Scenario,
    money: Money,
) -> list[str]:
    """Set the other ways against the best one."""
    clauses = []
    if rental is not None and best is not rental:
        clauses.append(
            f"renting {rental_text(rental, money)} costs {money.text(rental.usd_per_month or 0.0)} a month"
        )
    if purchase is not None and best.kind is Kind.API:
        verb = "using your own" if purchase.is_own else "buying"
        name = times_text(purchase).removesuffix(" (own)")
        clauses.append(f"{verb} {name} costs {money.text(purchase.usd_per_month or 0.0)} a month")
    elif purchase is not None and not (best is purchase and purchase.is_own):
        payback = payback_text(purchase, money)
        if best is purchase:
            hours = purchase.break_even_hours_per_day
            from_hours = f", and owning costs less from {hours:,.1f} h a day" if hours else ""
            clauses.append(f"against that buying {payback}{from_hours}" if rental is not None else payback)
        else:
            price = "" if purchase.is_own else f" for {money.text(purchase.purchase_usd or 0.0)}"
            verb = "using your own" if purchase.is_own else "buying"
            name = times_text(purchase).removesuffix(" (own)")
            clauses.append(f"{verb} {name}{price} {payback}")
    if api is not None and best is not api and api.usd_per_month is not None:
        provider = api.provider_title or api.provider
        tokens = f"the {tokens_text(api.tokens_per_month or 0.0)} output tokens that it could write"
        if scenario.has_demand:
            tokens = "the same tokens"
        clauses.append(f"the API of {provider} takes {money.text(api.usd_per_month)} for {tokens}")
    return clauses


def _nothing(
    scenario: Scenario, model_name: str, api: Option | None, excluded: Sequence[Excluded], money: Money
) -> str:
    """Say that no machine serves it, why, and what does."""
    machine = f" on {scenario.gpus or 1}x {scenario.gpu}" if scenario.gpu else ""
    reason = next((entry for entry in excluded if " memory" in entry.why or " ms" in entry.why), None)
    why = f" ({reason.what}: {reason.why})" if reason is not None else ""
    text = f"Nothing to rent or buy serves {model_name} as {scenario.quant}{machine}{why}"
    if api is not None:
        provider = api.provider_title or api.provider
        prices = api.token_prices
        if prices is not None:
            usd = money.exact(prices.usd_per_million_output_tokens)
            text += f"; the API of {provider} serves it at {usd} a million output tokens"
    return f"{text}."
