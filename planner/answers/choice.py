"""Which of the priced options a verdict counts, why it passes over others, what purchases are set against."""

from collections.abc import Iterable, Sequence
from datetime import date

from planner.rates import Billing, PriceStatus, Tier
from planner.scenario import Scenario
from planner.supply.options import Kind, Option
from planner.supply.shop import is_recent_price

# A quarter: list prices change in 1-3 % of daily observations, so older ones say little of today.
RECENT_DAYS = 92

_PAID_WHOLE = frozenset({str(Billing.MONTHLY), str(Billing.PER_TERM)})


def dependable(rentals: Iterable[Option], scenario: Scenario, *, may_be_slow: bool = False) -> list[Option]:
    """
    Return the rentals that a service can rest on: verified prices where there are any, and no spot machines.

    A spot machine may be taken away at any time, so it keeps no hours; it counts where `tier` asks for it.
    Where no price is verified, the snapshot prices of the newest quarter stand in.

    Args:
        rentals: All options.
        scenario: Whether spot machines count.
        may_be_slow: Also those too slow to talk to; a verified one of them goes before any snapshot.
    """
    usable = _lasting(rentals, scenario, may_be_slow=may_be_slow)
    return [option for option in usable if option.is_current] or _recent(usable)


def _lasting(rentals: Iterable[Option], scenario: Scenario, *, may_be_slow: bool) -> list[Option]:
    """Leave out spot machines, unless they are asked for, and what is too slow to talk to."""
    wants_spot = Tier.SPOT in scenario.tier
    return [
        option
        for option in rentals
        if option.kind is Kind.RENT
        and (wants_spot or not option.is_spot)
        and (may_be_slow or not option.is_too_slow)
    ]


def _recent(rentals: list[Option]) -> list[Option]:
    """Leave out what is a quarter older than the newest."""
    first = _first_recent_day(rentals)
    return [option for option in rentals if _day(option) >= first]


def _first_recent_day(rentals: list[Option]) -> date:
    """Return the day from which a snapshot price counts: a quarter before the newest that is fast enough."""
    days = [_day(option) for option in rentals if not option.is_too_slow] or [_day(each) for each in rentals]
    newest = max(days, default=date.min)
    return date.fromordinal(max(newest.toordinal() - RECENT_DAYS, 1))


def _day(option: Option) -> date:
    return date.fromisoformat((option.price.seen_at or "0001-01-01")[:10])


def cheapest_rental(
    rentals: Iterable[Option], scenario: Scenario, *, may_be_slow: bool = False, by_use: bool = False
) -> Option | None:
    """
    Return the cheapest rental that meets the limits.

    Args:
        rentals: All rented options.
        scenario: Whether spot machines count.
        may_be_slow: Also those too slow to talk to.
        by_use: Only those paid for the hours of use.
    """
    usable = [
        option
        for option in dependable(rentals, scenario, may_be_slow=may_be_slow)
        if not (by_use and is_paid_whole(option))
    ]
    return min(usable, key=lambda option: option.rank_key, default=None)


def is_paid_whole(option: Option) -> bool:
    """Whether the whole month is paid, used or not."""
    return option.is_reserved or option.billing in _PAID_WHOLE


def cheapest_api(options: Sequence[Option]) -> Option | None:
    """Return the cheapest API by the month."""
    priced = [each for each in options if each.kind is Kind.API and each.usd_per_month is not None]
    return min(priced, key=lambda option: option.rank_key, default=None)


def cheapest_purchase(
    options: Sequence[Option], scenario: Scenario, *, may_be_slow: bool = False
) -> Option | None:
    """
    Return the cheapest machine to buy, or owned already.

    Prices of the newest year count where there are any; where there are none, older ones stand in.
    """
    usable = [
        option for option in options if option.kind is Kind.BUY and (may_be_slow or not option.is_too_slow)
    ]
    recent = [option for option in usable if _is_recent_purchase(option, scenario)]
    return min(recent or usable, key=lambda option: option.rank_key, default=None)


def are_too_slow(options: Iterable[Option]) -> bool:
    """Whether no machine, rented or owned, is fast enough to talk to: only then do slow ones count."""
    return all(option.is_too_slow for option in options if option.kind is not Kind.API)


def chosen_rental(options: Sequence[Option], scenario: Scenario) -> Option | None:
    """Return the cheapest rental that a service can rest on; one too slow only where all machines are."""
    return cheapest_rental(options, scenario, may_be_slow=are_too_slow(options))


def chosen_purchase(options: Sequence[Option], scenario: Scenario) -> Option | None:
    """Return the cheapest machine to buy, or owned already; one too slow only where all machines are."""
    return cheapest_purchase(options, scenario, may_be_slow=are_too_slow(options))


def counted_purchases(
    purchases: Iterable[Option], known: Sequence[Option], scenario: Scenario
) -> list[Option]:
    """
    Return the machines to buy, or owned already, that a verdict may rest on.

    Args:
        purchases: What is asked about.
        known: The purchases of the plan; where no price of them is recent, older ones stand in.
        scenario: The day that is asked about.
    """
    if not any(_is_recent_purchase(each, scenario) for each in known if not each.is_too_slow):
        return list(purchases)
    return [option for option in purchases if _is_recent_purchase(option, scenario)]


def _is_recent_purchase(option: Option, scenario: Scenario) -> bool:
    """Whether the price is one's own, or at most a year older than the newest that is known of any device."""
    if option.is_own or option.price.status is PriceStatus.OWN:
        return True
    return is_recent_price(option.price.seen_at, scenario.as_of)


def passed_over(options: Sequence[Option], scenario: Scenario) -> list[str | None]:
    """
    Say for each option why the verdict passes over it, None where it counts.

    It follows the rules of `cheapest_rental` and `cheapest_purchase`, so that a cheaper row of the table that
    is not the answer always says why. Where every machine is too slow, that is no reason.
    """
    may_be_slow = are_too_slow(options)
    wants_spot = Tier.SPOT in scenario.tier
    lasting = _lasting(options, scenario, may_be_slow=may_be_slow)
    counted = dependable(options, scenario, may_be_slow=may_be_slow)
    is_verified = any(option.is_current for option in lasting)
    first = _first_recent_day(lasting)
    recent_purchase = any(
        each.kind is Kind.BUY
        and (may_be_slow or not each.is_too_slow)
        and _is_recent_purchase(each, scenario)
        for each in options
    )
    reasons: list[str | None] = []
    for option in options:
        if option.is_too_slow and not may_be_slow:
            reasons.append("too slow to talk to")
        elif option.kind is Kind.BUY and recent_purchase and not _is_recent_purchase(option, scenario):
            reasons.append("price over a year old")
        elif option.kind is not Kind.RENT or any(option is each for each in counted):
            reasons.append(None)
        elif option.is_spot and not wants_spot:
            reasons.append("spot, may be taken away")
        elif is_verified:
            reasons.append("not verified, others are")
        else:
            reasons.append(f"price before {first}")
    return reasons


def best_machine(options: Sequence[Option], scenario: Scenario) -> Option | None:
    """Return the cheapest machine, rented or owned; one too slow to talk to only where there is no other."""
    ways = (chosen_rental(options, scenario), chosen_purchase(options, scenario))
    return min((each for each in ways if each is not None), key=lambda option: option.rank_key, default=None)
