"""
The named rules by which a price is believed or not, each with a reason that a person understands.

Every rule, its threshold and a worked example: docs/verification.md.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pricing.offer import Offer, Verdict
from pricing.verification.case import Case, Confirmation
from pricing.verification.history import (
    alone,
    count_is_known,
    currency_is_unchanged,
    first_sight,
    is_of_now,
    jump,
    leap,
    not_collected,
    outdated,
    swing,
    unit_is_unchanged,
)
from pricing.verification.plausibility import absurd, any_class, band, hard_limits, in_its_book
from pricing.verification.siblings import (
    answer_is_sound,
    book_moved,
    cheaper_with_commitment,
    community_is_real,
    mass_move,
    named_twice,
    one_factor,
    rows_are_paired,
    size_is_free,
    sizes_agree,
)


@dataclass(frozen=True, slots=True)
class Rule:
    """One check: its name, what failing it means, and what makes up for it."""

    name: str
    verdict: Verdict
    check: Callable[[Offer, Case], str | None]
    confirmation: Confirmation = Confirmation.PERSON
    # This very price was verified before, by a run, by a person, or stands in the collection: it is known.
    yields_to_own_price: bool = True
    # Nothing else is worth saying: no price, no device, or an absurd price.
    is_final: bool = False


def identity(offer: Offer, case: Case) -> str | None:
    """The device is one of the catalogue, and the instance has a name."""
    del case
    if offer.gpu is None:
        return offer.reasons[0] if offer.reasons else f"unknown GPU {offer.gpu_raw!r}"
    return None if offer.instance_type.strip() else "the instance has no name"


def price_is_positive(offer: Offer, case: Case) -> str | None:
    """A price is a finite number above 0; 0 means that it is not offered."""
    del case
    if not offer.usd_per_hour.is_finite() or offer.usd_per_hour <= 0:
        return f"a price of {offer.usd_per_hour} is no price"
    return None


RULES: Sequence[Rule] = (
    Rule(
        "price",
        Verdict.REJECTED,
        price_is_positive,
        Confirmation.NOTHING,
        is_final=True,
        yields_to_own_price=False,
    ),
    Rule("hard-limits", Verdict.REJECTED, hard_limits, is_final=True),
    Rule(
        "identity",
        Verdict.QUARANTINED,
        identity,
        Confirmation.NOTHING,
        is_final=True,
        yields_to_own_price=False,
    ),
    Rule("absurd", Verdict.REJECTED, absurd, is_final=True),
    Rule("band", Verdict.QUARANTINED, band),
    Rule("any-class", Verdict.QUARANTINED, any_class, Confirmation.LONG),
    Rule("book", Verdict.QUARANTINED, in_its_book),
    Rule("named-twice", Verdict.QUARANTINED, named_twice),
    Rule("sizes", Verdict.QUARANTINED, sizes_agree),
    Rule("commitment", Verdict.QUARANTINED, cheaper_with_commitment),
    Rule("community", Verdict.QUARANTINED, community_is_real, yields_to_own_price=False),
    Rule("count", Verdict.QUARANTINED, count_is_known),
    Rule("pairing", Verdict.QUARANTINED, rows_are_paired),
    Rule("suspect-answer", Verdict.QUARANTINED, answer_is_sound, Confirmation.WITNESS),
    Rule("held-size", Verdict.QUARANTINED, size_is_free, Confirmation.WITNESS),
    Rule("unit", Verdict.QUARANTINED, unit_is_unchanged, Confirmation.WITNESS),
    Rule("leap", Verdict.QUARANTINED, leap, Confirmation.WITNESS),
    Rule("swing", Verdict.QUARANTINED, swing, Confirmation.LONG),
    Rule("currency", Verdict.QUARANTINED, currency_is_unchanged, Confirmation.LONG),
    Rule("one-factor", Verdict.QUARANTINED, one_factor, Confirmation.LONG),
    Rule("book-moved", Verdict.QUARANTINED, book_moved, Confirmation.WEEK),
    Rule("jump", Verdict.QUARANTINED, jump, Confirmation.ONCE),
    Rule("stale-source", Verdict.QUARANTINED, is_of_now, Confirmation.WEEK),
    Rule("mass-move", Verdict.QUARANTINED, mass_move, Confirmation.ONCE),
    Rule("outdated", Verdict.QUARANTINED, outdated, Confirmation.ONCE, yields_to_own_price=False),
    Rule("collected", Verdict.QUARANTINED, not_collected, Confirmation.LONG),
    Rule("alone", Verdict.QUARANTINED, alone, Confirmation.LONG),
    Rule("first-sight", Verdict.QUARANTINED, first_sight, Confirmation.ONCE),
)
