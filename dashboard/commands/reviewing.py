"""`prices accept` and `prices reject`: a person decides about a price, in force at once."""

import argparse
import getpass
from collections.abc import Sequence
from decimal import Decimal
from typing import TYPE_CHECKING

from dashboard import tables
from dashboard.commands.arguments import number
from dashboard.commands.base import Commands, Context, Output, UsageError
from planner.errors import UnknownName
from pricing.errors import UnclearDecision

if TYPE_CHECKING:
    from pricing.verification.reviewing import Review

MAX_REASON = 500
# What stands before the currency where a rate of exchange is meant.
RATE = "ecb:"


def register_under_prices(group: Commands) -> None:
    """Add the two commands to the group `prices`."""
    for name, run, text, more in (
        (
            "accept",
            accept,
            "take a price that is held back as verified",
            "It counts from when it was first seen.",
        ),
        (
            "reject",
            reject,
            "keep a price out of every plan as long as its provider shows it",
            "A verified price that it had replaced is back; so an acceptance is taken back.",
        ),
    ):
        parser = group.add(
            name,
            run,
            help=text,
            example=f'breakeven prices {name} 3f9a1c20b7e4 --reason "seen on the page"',
            more=more,
        )
        parser.add_argument(
            "ids",
            metavar="ID",
            nargs="+",
            help="of the offer, as `prices rejected` lists it"
            + ("; ecb:USD: the rate of exchange that `prices status` names" if name == "accept" else ""),
        )
        parser.add_argument(
            "--reason", metavar="TEXT", required=True, help="why; kept with your name and the time"
        )
        parser.add_argument(
            "--price",
            metavar="USD",
            type=number,
            help="which price of the offer is meant, per hour, where it has several",
        )


def accept(arguments: argparse.Namespace, context: Context) -> Output:
    """Accept prices."""
    return _decide("accept", arguments, context)


def reject(arguments: argparse.Namespace, context: Context) -> Output:
    """Reject prices."""
    return _decide("reject", arguments, context)


def _decide(what: str, arguments: argparse.Namespace, context: Context) -> Output:
    from dashboard.commands.storage import open_store
    from pricing.verification.reviewing import Decision

    reason = " ".join(arguments.reason.split())
    if not reason or len(reason) > MAX_REASON:
        raise UsageError(f"--reason: {len(reason)} letters are not allowed; give 1 to {MAX_REASON}")
    chosen = list(dict.fromkeys(arguments.ids))
    if arguments.price is not None and len(chosen) > 1:
        raise UsageError(f"--price: {len(chosen)} offers are named; give it with one ID at a time")
    price = None if arguments.price is None else Decimal(repr(arguments.price))
    if any(one.startswith(RATE) for one in chosen):
        return _accept_rate(what, chosen, price, reason, context)
    with open_store(context) as store:
        try:
            reviews = store.decide_all(
                [(one, price) for one in chosen],
                Decision(what),
                reason=reason,
                by=user_name(),
                now=context.clock(),
            )
        except (UnknownName, UnclearDecision) as error:
            if len(chosen) == 1:
                raise
            raise UsageError(f"{error}; none of the {len(chosen)} was {what}ed") from error
        offers = [
            offer
            for review in reviews
            for offer in store.history(offer_id=review.offer_id)
            if offer.price_id == review.price_id
        ]
    never = sum(not offer.is_rankable for offer in offers)
    return Output(
        document={
            "schema": "breakeven.review/1",
            "reviews": [_document(review) for review in reviews],
            "offers": [offer.to_document() for offer in offers],
        },
        text="\n".join(
            f"{what}ed: {offer.provider} {offer.instance_type}, {tables.money(offer.usd_per_hour)} USD/h"
            for offer in offers
        ),
        warnings=(
            f"{tables.plural(never, 'price')} that no plan ever counts: of a slice, without parts billed "
            "beside it, or what a catalogue says of another's",
        )
        if never and what == "accept"
        else (),
    )


def _accept_rate(
    what: str, chosen: Sequence[str], price: Decimal | None, reason: str, context: Context
) -> Output:
    """Accept one rate of exchange; nothing else can be decided about these."""
    from dashboard.commands.storage import open_store

    if what == "reject":
        raise UsageError(f"{chosen[0]}: a rate of exchange that waits counts nowhere; nothing is to reject")
    if price is not None or len(chosen) > 1:
        raise UsageError(f"{', '.join(chosen)}: a rate of exchange is accepted by itself, without --price")
    by, now = user_name(), context.clock()
    with open_store(context) as store:
        one = store.accept_exchange_rate(chosen[0].removeprefix(RATE).upper(), reason=reason, by=by, now=now)
    review = {
        "decision": what,
        "id": chosen[0],
        "price_id": None,
        "reason": reason,
        "decided_at": f"{now:%Y-%m-%dT%H:%M:%SZ}",
        "decided_by": by,
        "replaced_price_id": None,
    }
    return Output(
        document={"schema": "breakeven.review/1", "reviews": [review], "offers": []},
        text=f"accepted: {one.currency} {one.units:f} per euro of {one.days[-1]}",
    )


def user_name() -> str:
    """Return who decides: the user of the operating system."""
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):  # a container with a bare number for a user
        return "unknown"


def _document(review: "Review") -> dict[str, object]:
    return {
        "decision": str(review.decision),
        "id": review.offer_id,
        "price_id": review.price_id,
        "reason": review.reason,
        "decided_at": f"{review.decided_at:%Y-%m-%dT%H:%M:%SZ}",
        "decided_by": review.decided_by,
        "replaced_price_id": review.replaced_price_id,
    }
