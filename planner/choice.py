"""Which of the priced options a verdict speaks of, and which rental a purchase is compared with."""

from collections.abc import Iterable, Sequence
from datetime import date

from planner.options import Kind, Option
from planner.rates import Billing, Tier
from planner.scenario import Scenario

# A quarter: list prices change in 1-3 % of daily observations, so older ones say little of today.
RECENT_DAYS = 92

_PAID_WHOLE = frozenset({str(Billing.MONTHLY), str(Billing.PER_TERM)})


def dependable(rentals: Iterable[Option], scenario: Scenario) -> list[Option]:
    """
    Return the rentals that a service can rest on: verified prices where there are any, and no spot machines.

    A spot machine may be taken away at any time, so it keeps no hours; it counts where `tier` asks for it.
    Where no price is verified, the snapshot prices of the newest quarter stand in.
    """
    wants_spot = Tier.SPOT in scenario.tier
    lasting = [
        option for option in rentals if option.kind is Kind.RENT and (wants_spot or not option.is_spot)
    ]
    current = [option for option in lasting if option.is_current and not option.is_too_slow]
    return current or _recent(lasting)


def _recent(rentals: list[Option]) -> list[Option]:
    """Leave out what is a quarter older than the newest."""
    dated = [(option, date.fromisoformat((option.price.seen_at or "0001-01-01")[:10])) for option in rentals]
    days = [day for option, day in dated if not option.is_too_slow] or [day for _, day in dated]
    if not days:
        return []
    first = max(days).toordinal() - RECENT_DAYS
    return [option for option, day in dated if day.toordinal() >= first]


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
        for option in dependable(rentals, scenario)
        if (may_be_slow or not option.is_too_slow) and not (by_use and is_paid_whole(option))
    ]
    return min(usable, key=lambda option: option.usd_per_month or 0.0, default=None)


def is_paid_whole(option: Option) -> bool:
    """Whether the whole month is paid, used or not."""
    return option.is_reserved or option.billing in _PAID_WHOLE


def cheapest(options: Sequence[Option], kind: Kind, *, may_be_slow: bool = False) -> Option | None:
    """Return the cheapest option of a kind by the month."""
    usable = [
        option
        for option in options
        if option.kind is kind
        and option.usd_per_month is not None
        and (may_be_slow or not option.is_too_slow)
    ]
    return min(usable, key=lambda option: option.rank_key, default=None)


def best_machine(options: Sequence[Option], scenario: Scenario) -> Option | None:
    """Return the cheapest machine, rented or owned; one too slow to talk to only where there is no other."""
    for may_be_slow in (False, True):
        rental = cheapest_rental(options, scenario, may_be_slow=may_be_slow)
        purchase = cheapest(options, Kind.BUY, may_be_slow=may_be_slow)
        found = [option for option in (rental, purchase) if option is not None]
        if found:
            return min(found, key=lambda option: option.rank_key)
    return None
