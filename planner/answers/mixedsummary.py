"""Machines owned with rented ones beside them, in one sentence."""

from planner.answers.money import Money
from planner.supply.mixed import MixedFleet


def mixed_text(mixed: MixedFleet, money: Money) -> str:
    """Say how many machines to own and to rent, what that costs, and what the pure ways cost."""
    best, rental = mixed.best, mixed.rental
    name = mixed.purchase.name
    none, most = mixed.tried[0], mixed.tried[-1]
    others = f"all rented {money.text(none.usd_per_month)}"
    if most.rent_count == 0:
        others += f", all owned {money.text(most.usd_per_month)}"
    lead = "Owned base load, rented peaks"
    if not mixed.is_mixed:
        way = "owning all" if best.own_count else "renting all"
        return f"{lead}: no mix of {name} and rentals beats {way} ({others} a month)."
    return (
        f"{lead}: {best.own_count} x ({name}) owned and up to {best.rent_count} x ({rental.name}) from "
        f"{rental.provider_title or rental.provider} cost {money.text(best.usd_per_month)} a month "
        f"({others}); {mixed.rented_share:.0%} of the tokens are rented."
    )


def singles_text(mixed: MixedFleet, money: Money) -> str:
    """Say, where a mix is the answer, that what is compared with each other are the ways beside it."""
    return (
        "The answer is a mix: what is compared below are the cheapest single rental and the cheapest single "
        f"purchase; the mix costs {money.text(mixed.best.usd_per_month)} a month."
    )
