"""The plan in one sentence - rent, buy or call an API, for how much, until when - and the lines behind it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from planner.answers.choice import cheapest_api, cheapest_purchase, cheapest_rental
from planner.answers.money import Money
from planner.breakeven import MAX_MONTHS, break_even_months
from planner.rates import PriceStatus
from planner.scenario import Owned, Scenario
from planner.supply.mixed import MixedFleet
from planner.supply.options import BuyBasis, Excluded, Kind, Option

# Words in the reason that stands in brackets where nothing serves, the first of them that is found.
_DECISIVE = ((" cluster ",), (" memory", " ms"))

# Price lists of APIs state no latency, so nothing is held against a limit of it.
API_LATENCY = "its latency is not known and was not checked against the limit"

_TIERS = {
    "on_demand": "on demand",
    "reserved_1y": "reserved for a year",
    "reserved_3y": "reserved for three years",
    "reserved_other": "reserved",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Ways:
    """The cheapest way of each kind that counts, and the hardware that is there already."""

    scenario: Scenario
    money: Money
    rental: Option | None
    purchase: Option | None  # the cheapest to own: bought, or there already
    own: Option | None
    api: Option | None  # at the demand, or at the tokens that the cheapest machine could write
    is_slow: bool  # no machine is fast enough to talk to
    mixed: MixedFleet | None = None  # owned base load and rented peaks, where the day is known

    @property
    def cheapest_mix(self) -> MixedFleet | None:
        """The mix of owned and rented machines, where it costs less than every single way."""
        mixed, best = self.mixed, self.best
        if mixed is None or not mixed.is_mixed or best is None:
            return None
        return mixed if self._mix_usd(mixed) < (best.usd_per_month_compared or math.inf) else None

    def _mix_usd(self, mixed: MixedFleet) -> float:
        """Return what a mix costs a month, its rent as the mean over the term. [USD/month]"""
        get = self.scenario.assumptions
        rent = mixed.best.rent_usd_per_month
        over_term = get.rents.over_term(rent, get["term_years"])
        return mixed.best.own_usd_per_month + (rent if over_term is None else over_term)

    @property
    def machine(self) -> Option | None:
        """The cheapest machine."""
        found = [option for option in (self.rental, self.purchase) if option is not None]
        return min(found, key=lambda option: option.rank_key[1:], default=None)

    @property
    def best(self) -> Option | None:
        """The cheapest of all for the same tokens."""
        machine, api = self.machine, self.api
        if machine is None or api is None or api.usd_per_month is None:
            return machine
        return min(machine, api, key=lambda option: option.rank_key[1:])


def ways(
    scenario: Scenario, options: Sequence[Option], money: Money, mixed: MixedFleet | None = None
) -> Ways:
    """
    Return what a verdict chooses from.

    Args:
        scenario: What was asked.
        options: Ranked.
        money: In which currency amounts are written.
        mixed: Owned base load and rented peaks, where the day is known.
    """
    slow = not any(not option.is_too_slow for option in options if option.kind is not Kind.API)
    return Ways(
        scenario=scenario,
        money=money,
        rental=cheapest_rental(options, scenario, may_be_slow=slow),
        purchase=cheapest_purchase(options, scenario, may_be_slow=slow),
        own=next((option for option in options if option.is_own), None),
        api=cheapest_api(options) or next((each for each in options if each.kind is Kind.API), None),
        is_slow=slow,
        mixed=mixed,
    )


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
    if found.is_slow and best.kind is not Kind.API:
        floor = found.scenario.min_tokens_per_s_per_user
        return (
            f"Nothing found{_asked_text(found.scenario)} gives a user {floor:g} tokens a second; "
            f"the cheapest that serves at all: {text}"
        )
    return text


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


def rental_text(option: Option, money: Money) -> str:
    """Name a rental: machine, provider, tier, hourly price and its date."""
    tier = _TIERS.get(option.tier or "", option.tier or "")
    hour = money.exact(float(option.usd_per_hour or 0.0))
    return f"{option.times_text} from {_provider(option)} ({tier}) at {hour}/h ({price_date_text(option)})"


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
        running = float(basis.cost.running_usd_per_month)
        if running < (basis.against.usd_per_month or 0.0):
            return "never pays back, since rents fall faster than it saves them"
        return f"never pays back, since running it alone costs {money.text(running)} a month"
    if months <= term:
        return f"pays back after {months:,.1f} months" if months > 0.0 else "pays at once"
    after = f"after {months:,.0f} months" if months <= MAX_MONTHS else "never"
    if with_resale is not None and with_resale <= term:
        return f"pays back after {with_resale:,.1f} months if it is sold then, {after} if it is kept"
    return f"does not pay back within its term of {term:,.0f} months" + (
        f" ({after})" if months <= MAX_MONTHS else ""
    )


def _rent(option: Option, found: Ways) -> str:
    """Say that renting is the answer."""
    month, use, buying = _month(option, found), use_text(found.scenario), found.purchase
    lead = f"Rent {option.times_text} from {_provider(option)}: {month} {use}"
    if buying is None:
        budget = found.scenario.budget_usd
        if budget is None:
            return f"{lead}; nothing to buy serves it"
        return f"{lead}; nothing to buy within the budget of {found.money.text(budget)} serves it"
    if buying.is_own:
        return lead
    return f"{lead}; buying {buying.times_text} {_pays_from(buying)}"


def _pays_from(option: Option) -> str:
    """Say shortly from when a purchase pays against renting."""
    basis, months = option.basis, option.break_even_months
    if months is None or months > MAX_MONTHS or not isinstance(basis, BuyBasis):
        return "never pays back"
    if months > float(basis.ownership.term_years) * 12.0:
        return f"would take {months:,.0f} months to pay back"
    return f"pays back after {months:,.0f} months"


def _buy(option: Option, found: Ways) -> str:
    """Say that owning is the answer."""
    month, use = _month(option, found), use_text(found.scenario)
    if option.is_own:
        lead = f"Use your own {_bare(option)}: {month} to run {use}"
        return lead if found.rental is None else f"{lead}, against {_month(found.rental, found)} to rent"
    lead = f"Buy {option.times_text} for {found.money.text(option.purchase_usd or 0.0)}: {month} {use}"
    if found.rental is None:
        return f"{lead}; no rental that serves it has a price that counts"
    basis, months = option.basis, option.break_even_months
    if not isinstance(basis, BuyBasis):
        return lead
    term, with_resale = float(basis.ownership.term_years) * 12.0, basis.months_with_resale
    if months is not None and months <= term:
        return f"{lead}, cheaper than renting from month {math.ceil(months):,} on"
    if with_resale is not None and with_resale <= term:
        return f"{lead}, cheaper than renting from month {math.ceil(with_resale):,} on if it is sold then"
    return f"{lead}, against {_month(found.rental, found)} to rent"


def _mix(mixed: MixedFleet, next_best: Option, found: Ways) -> str:
    """Say that machines of one's own with rented ones beside them are the answer, and what comes next."""
    best, rental, money = mixed.best, mixed.rental, found.money
    owned = _copies(best.own_count, mixed.purchase)
    price = f" for {money.text(mixed.purchase_usd)}"
    lead = f"Use your own {owned}" if mixed.purchase.is_own else f"Buy {owned}{price}"
    on = f"the API of {_provider(next_best)}" if next_best.kind is Kind.API else _on(next_best)
    return (
        f"{lead} and rent up to {_copies(best.rent_count, rental)} from {_provider(rental)} at the peaks: "
        f"{money.text(best.usd_per_month)} a month {use_text(found.scenario)}, against "
        f"{_month(next_best, found)} on {on}"
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
    lead = f"Call the API of {_provider(option)}: {_month(option, found)}"
    machine = found.machine
    if found.scenario.has_demand or machine is None:
        lead = f"{lead} {use_text(found.scenario)}"
        lead = lead if machine is None else f"{lead}, against {_month(machine, found)} on {_on(machine)}"
    else:
        tokens, month = tokens_text(option.tokens_per_month or 0.0), _month(machine, found)
        work = f"the {tokens} output tokens that {_on(machine)} ({month}) would write"
        lead = f"{lead} for {work} {use_text(found.scenario)}"
    buying = found.purchase
    if buying is None or buying.is_own:
        return lead
    months = _months_against_api(buying, option)
    pays = "never pays against it" if months is None else f"pays after {months:,.0f} months"
    return f"{lead}; buying {pays}"


def _months_against_api(buying: Option, api: Option) -> float | None:
    """Return after how many months a purchase has cost less than an API, None where it never does."""
    basis = buying.basis
    if not isinstance(basis, BuyBasis) or api.usd_per_month is None:
        return None
    running = float(basis.cost.running_usd_per_month)
    months = break_even_months(buying.purchase_usd or 0.0, api.usd_per_month, running)
    return months if months is not None and months <= MAX_MONTHS else None


def _on(machine: Option) -> str:
    """Name the cheapest machine, with the way it is had."""
    if machine.is_own:
        return f"your own {_bare(machine)}"
    way = "rented" if machine.kind is Kind.RENT else "bought"
    return f"a {way} {machine.times_text}"


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
    return f"your own {_bare(own)} costs {_month(own, found)} to run{slow}"


def _rent_line(option: Option, found: Ways) -> str:
    use = use_text(found.scenario)
    return f"Rent: {rental_text(option, found.money)}, {_month(option, found)} {use}."


def _own_line(option: Option, found: Ways) -> str:
    month, money = _month(option, found), found.money
    slow = " It is too slow to talk to." if option.is_too_slow and not found.is_slow else ""
    if option.is_own:
        return f"Own: your {_bare(option)} costs {month} to run {use_text(found.scenario)}.{slow}"
    basis = option.basis
    years = float(basis.ownership.term_years) if isinstance(basis, BuyBasis) else 0.0
    price = money.text(option.purchase_usd or 0.0)
    hours = option.break_even_hours_per_day
    today = "" if found.scenario.assumptions.rents.is_flat else " at the rent of today"
    from_hours = f", and owning costs less from {hours:,.1f} h a day{today}" if hours else ""
    text = (
        f"Buy: {option.times_text} for {price} ({price_date_text(option)}), {month} over {years:g} years "
        f"{use_text(found.scenario)}"
    )
    if found.rental is None:
        return f"{text}.{slow}"
    return f"{text}; against that rent it {payback_text(option, money)}{from_hours}.{slow}"


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
        return f"API: {option.name} at {_provider(option)} ({price_date_text(option)})."
    usd_in, usd_out = prices.usd_per_million_input_tokens, prices.usd_per_million_output_tokens
    text = (
        f"API: {option.name} at {_provider(option)}, {money.exact(usd_in)} in and {money.exact(usd_out)} out "
        f"a million tokens ({price_date_text(option)})"
    )
    if option.usd_per_month is None:
        return f"{text}."
    tokens = tokens_text(option.tokens_per_month or 0.0)
    per_request = f"{found.scenario.input_tokens:,} in for {found.scenario.output_tokens:,} out"
    text = f"{text}, {_month(option, found)} for {tokens} output tokens ({per_request})."
    machine = found.machine
    per_million = prices.usd_per_million_tokens
    if machine is None or not per_million or found.scenario.has_demand:
        return text
    enough = (machine.usd_per_month or 0.0) / per_million * 1e6
    written = tokens_text(machine.tokens_per_month or 0.0)
    return (
        f"{text} It costs less than {_on(machine)} up to {tokens_text(enough)} output tokens a month; that "
        f"machine could write {written} at batch {found.scenario.batch}."
    )


def _month(option: Option, found: Ways) -> str:
    month, over_term = (
        f"{found.money.text(option.usd_per_month or 0.0)} a month",
        option.usd_per_month_over_term,
    )
    if over_term is None:
        return month
    return f"{month} now and {found.money.text(over_term)} on average over the term"


def _bare(option: Option) -> str:
    return option.times_text.replace(" (own)", "")


def _provider(option: Option) -> str:
    return option.provider_title or option.provider or ""


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
    usd = found.money.exact(api.token_prices.usd_per_million_output_tokens)
    return f"; the API of {_provider(api)} serves it at {usd} a million output tokens"


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
