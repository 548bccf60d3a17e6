"""The answer in one sentence: rent, buy or call an API, for how much a month, and from when buying pays."""

import math
from collections.abc import Sequence

from planner.answers.ways import Ways
from planner.answers.words import (
    API_LATENCY,
    bare_text,
    machine_text,
    month_text,
    past_term_text,
    provider_text,
    tokens_text,
    use_text,
)
from planner.breakeven import MAX_MONTHS, break_even_months
from planner.scenario import Owned, Scenario
from planner.supply.mixed import MixedFleet
from planner.supply.options import BuyBasis, Excluded, Kind, Option

# Words in the reason that stands in brackets where nothing serves, the first of them that is found.
_DECISIVE = ((" cluster ",), (" memory", " ms"))


def verdict(found: Ways, model_name: str, excluded: Sequence[Excluded], *, has_prices: bool = True) -> str:
    """
    Return the answer in one sentence: what to do, for how much a month, and from when buying pays.

    The cheapest way leads. Without a demand an API is priced for the tokens that the cheapest machine could
    write in the hours asked for, so that both cost the same work.

    Args:
        found: What there is to choose from.
        model_name: Of the model.
        excluded: What was left out, for the case that nothing serves.
        has_prices: Whether the price of any machine was there to be tried.
    """
    best = found.best
    if best is None:
        return _nothing(found, model_name, excluded) if has_prices else _no_price(found, model_name)
    mixed = found.cheapest_mix
    if mixed is not None:
        return f"{_mix(mixed, best, found)}."
    lead = {Kind.RENT: _rent, Kind.BUY: _buy, Kind.API: _call}[best.kind](best, found)
    own = _own_clause(best, found)
    text = f"{lead}{'; ' if own else ''}{own}."
    if not found.is_slow:
        return text
    asked, rate = _asked_text(found.scenario), f"{found.scenario.min_tokens_per_s_per_user:g} tokens a second"
    if best.kind is Kind.API:
        return f"{text[:-1]}; no machine found{asked} gives a user {rate}, those named here are slower."
    return f"Nothing found{asked} gives a user {rate}; the cheapest that serves at all: {text}"


def _rent(option: Option, found: Ways) -> str:
    """Say that renting is the answer."""
    month, use, buying = month_text(option, found.money), use_text(found.scenario), found.purchase
    lead = f"Rent {option.times_text} from {provider_text(option)}: {month} {use}"
    if buying is None:
        budget = found.scenario.budget_usd
        within = "" if budget is None else f" within the budget of {found.money.text(budget)}"
        fails = "is fast enough" if Kind.BUY in found.slow_kinds else "serves it"
        return f"{lead}; nothing to buy{within} {fails}"
    if buying.is_own:
        return lead
    return f"{lead}; buying {buying.times_text} {_pays_from(buying)}"


def _pays_from(option: Option) -> str:
    """Say shortly from when a purchase pays against renting."""
    months = option.break_even_months
    if months is None or months > MAX_MONTHS:
        return "never pays back"
    if option.pays_after_its_term:
        return f"does not pay back {past_term_text(months, option.term_months or 0.0)}"
    return f"pays back after {months:,.0f} months"


def _buy(option: Option, found: Ways) -> str:
    """Say that owning is the answer."""
    month, use = month_text(option, found.money), use_text(found.scenario)
    if option.is_own:
        lead = f"Use your own {bare_text(option)}: {month} to run {use}"
        return (
            lead
            if found.rental is None
            else f"{lead}, against {month_text(found.rental, found.money)} to rent"
        )
    lead = f"Buy {option.times_text} for {found.money.text(option.purchase_usd or 0.0)}: {month} {use}"
    if found.rental is None:
        fast = " fast enough" if Kind.RENT in found.slow_kinds else ""
        return f"{lead}; no rental that serves it{fast} has a price that counts"
    basis, months = option.basis, option.break_even_months
    if not isinstance(basis, BuyBasis):
        return lead
    term, with_resale = float(basis.ownership.term_years) * 12.0, basis.months_with_resale
    if months is not None and months <= term:
        return f"{lead}, cheaper than renting from month {math.ceil(months):,} on"
    if with_resale is not None and with_resale <= term:
        return f"{lead}, cheaper than renting from month {math.ceil(with_resale):,} on if it is sold then"
    return f"{lead}, against {month_text(found.rental, found.money)} to rent"


def _mix(mixed: MixedFleet, next_best: Option, found: Ways) -> str:
    """Say that machines of one's own with rented ones beside them are the answer, and what comes next."""
    best, rental, money = mixed.best, mixed.rental, found.money
    owned = _copies(best.own_count, mixed.purchase)
    price = f" for {money.text(mixed.purchase_usd)}"
    lead = f"Use your own {owned}" if mixed.purchase.is_own else f"Buy {owned}{price}"
    on = f"the API of {provider_text(next_best)}" if next_best.kind is Kind.API else machine_text(next_best)
    return (
        f"{lead} and rent up to {_copies(best.rent_count, rental)} from {provider_text(rental)} "
        f"at the peaks: {money.text(best.usd_per_month)} a month {use_text(found.scenario)}, against "
        f"{month_text(next_best, found.money)} on {on}"
    )


def _copies(count: int, option: Option) -> str:
    """Name so many copies of a machine."""
    name = option.name.replace(" (own)", "")
    return name if count == 1 else f"{count} x ({name})"


def _call(option: Option, found: Ways) -> str:
    """Say that an API is the answer, and where latency is limited that its own is not known."""
    lead = _call_cost(option, found)
    return f"{lead}; {API_LATENCY}" if found.scenario.limits_latency else lead


def _call_cost(option: Option, found: Ways) -> str:
    """Say what an API costs, and whether buying pays against it."""
    lead = f"Call the API of {provider_text(option)}: {month_text(option, found.money)}"
    machine = found.machine
    if found.scenario.has_demand or machine is None:
        lead = f"{lead} {use_text(found.scenario)}"
        lead = (
            lead
            if machine is None
            else f"{lead}, against {month_text(machine, found.money)} on {machine_text(machine)}"
        )
    else:
        tokens, month = tokens_text(option.tokens_per_month or 0.0), month_text(machine, found.money)
        work = f"the {tokens} output tokens that {machine_text(machine)} ({month}) would write"
        lead = f"{lead} for {work} {use_text(found.scenario)}"
    buying = found.purchase
    if buying is None or buying.is_own:
        return lead
    months, term = _months_against_api(buying, option), buying.term_months or 0.0
    if months is None:
        return f"{lead}; buying never pays against it"
    if months > term:
        return f"{lead}; buying does not pay against it {past_term_text(months, term)}"
    return f"{lead}; buying pays after {months:,.0f} months"


def _months_against_api(buying: Option, api: Option) -> float | None:
    """Return after how many months a purchase has cost less than an API, None where it never does."""
    basis = buying.basis
    if not isinstance(basis, BuyBasis) or api.usd_per_month is None:
        return None
    running = float(basis.cost.running_usd_per_month)
    months = break_even_months(buying.purchase_usd or 0.0, api.usd_per_month, running)
    return months if months is not None and months <= MAX_MONTHS else None


def _own_clause(best: Option, found: Ways) -> str:
    """Say what the hardware that is there already can do, where the sentence has not said it."""
    own, scenario = found.own, found.scenario
    if scenario.own is None or best is own:
        return ""
    if own is None:
        name = Owned.parse(scenario.own)
        return f"your own {name.gpu_count}x {name.gpu} does not serve it"
    if best.kind is Kind.API and found.machine is own:
        return ""
    slow = ", too slow to talk to" if own.is_too_slow else ""
    return f"your own {bare_text(own)} costs {month_text(own, found.money)} to run{slow}"


def _asked_text(scenario: Scenario) -> str:
    """Name the filters, since what they leave out may serve; nothing where there are none."""
    machine = scenario.gpu or ""
    if scenario.gpus is not None:
        machine = f"{scenario.gpus}x {scenario.gpu}" if scenario.gpu else f"machines of {scenario.gpus} GPUs"
    parts = [machine] if machine else []
    for word, names in (("from", scenario.provider), ("tier", scenario.tier), ("region", scenario.region)):
        parts += [f"{word} {' or '.join(names)}"] if names else []
    return f" among what was asked for ({', '.join(parts)})" if parts else ""


def _no_price(found: Ways, model_name: str) -> str:
    """Say that no price is known by which anything could be planned, and what serves all the same."""
    scenario, api = found.scenario, found.api
    day = "that counts" if scenario.as_of is None else f"of {scenario.as_of} or before"
    text = (
        f"No price {day} is known of a machine to rent or buy{_asked_text(scenario)}, so nothing says what "
        f"serving {model_name} as {scenario.quant} costs"
    )
    return f"{text}{_api_clause(api, found)}."


def _api_clause(api: Option | None, found: Ways) -> str:
    """Say which API serves it where no machine does."""
    if api is None or api.token_prices is None:
        return ""
    usd_in = found.money.exact(api.token_prices.usd_per_million_input_tokens)
    usd_out = found.money.exact(api.token_prices.usd_per_million_output_tokens)
    return f"; the API of {provider_text(api)} serves it at {usd_in} in and {usd_out} out a million tokens"


def _nothing(found: Ways, model_name: str, excluded: Sequence[Excluded]) -> str:
    """Say that no machine serves it, why, and what does."""
    scenario = found.scenario
    machine = f" on {scenario.gpus or 1}x {scenario.gpu}" if scenario.gpu else ""
    reason = next(
        (entry for words in _DECISIVE for entry in excluded if any(word in entry.why for word in words)), None
    )
    why = f" ({reason.what}: {reason.why})" if reason is not None else ""
    text = f"Nothing to rent or buy serves {model_name} as {scenario.quant}{machine}{why}"
    return f"{text}{_api_clause(found.api, found)}."
