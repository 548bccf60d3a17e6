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
from pricing.verification.plausibility import absurd, any_class, band, hard_limits, in_its_book, likeness
from pricing.verification.siblings import (
    answer_is_sound,
    book_moved,
    cheaper_with_commitment,
    community_is_real,
    is_not_copied,
    mass_move,
    named_twice,
    one_factor,
    rows_are_paired,
    size_is_free,
    sizes_agree,
)


@dataclass(frozen=True, slots=True)
class Rule:
    """One check: its name, what makes up for failing it, and what failing it means."""

    name: str
    check: Callable[[Offer, Case], str | None]
    confirmation: Confirmation = Confirmation.PERSON
    verdict: Verdict = Verdict.QUARANTINED
    # Nothing else is worth saying: no price, no device, or an absurd price.
    is_final: bool = False
    # The price was read wrong; it does not only have to be seen again. So its neighbours may be wrong too.
    is_grave: bool = False
    # This very price was verified before, by a run, by a person, or stands in the collection: it is known.
    yields_to_own_price: bool = True
    # It does not count against a price that came back to what it was.
    yields_to_return: bool = False
    # Witnesses are never ranked; they need to be read right, not to be confirmed.
    is_for_witnesses: bool = False


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
        price_is_positive,
        Confirmation.NOTHING,
        verdict=Verdict.REJECTED,
        is_final=True,
        is_for_witnesses=True,
        yields_to_own_price=False,
    ),
    Rule(
        "hard-limits",
        hard_limits,
        verdict=Verdict.REJECTED,
        is_final=True,
        is_grave=True,
        is_for_witnesses=True,
    ),
    Rule(
        "identity",
        identity,
        Confirmation.NOTHING,
        is_final=True,
        is_for_witnesses=True,
        yields_to_own_price=False,
    ),
    Rule("absurd", absurd, verdict=Verdict.REJECTED, is_final=True, is_grave=True, is_for_witnesses=True),
    Rule("band", band, is_grave=True, is_for_witnesses=True),
    Rule("any-class", any_class, Confirmation.WITNESS, is_for_witnesses=True),
    Rule("likeness", likeness, Confirmation.WITNESS, is_for_witnesses=True),
    Rule("book", in_its_book, is_grave=True),
    Rule("named-twice", named_twice, is_for_witnesses=True),
    Rule("sizes", sizes_agree, is_grave=True),
    Rule("commitment", cheaper_with_commitment),
    Rule("community", community_is_real, yields_to_own_price=False),
    Rule("count", count_is_known),
    Rule("pairing", rows_are_paired, is_grave=True),
    Rule("suspect-answer", answer_is_sound, Confirmation.WITNESS, yields_to_return=True),
    Rule("held-size", size_is_free, Confirmation.WITNESS, yields_to_return=True),
    Rule("unit", unit_is_unchanged, Confirmation.WITNESS, is_grave=True, yields_to_return=True),
    Rule("leap", leap, Confirmation.WITNESS, is_grave=True, yields_to_return=True),
    Rule("swing", swing, Confirmation.LONG, yields_to_return=True),
    Rule("currency", currency_is_unchanged, Confirmation.LONG, is_grave=True, yields_to_return=True),
    Rule("one-factor", one_factor, Confirmation.LONG, is_grave=True, yields_to_return=True),
    Rule("book-moved", book_moved, Confirmation.WEEK),
    Rule("jump", jump, Confirmation.ONCE),
    Rule("copied", is_not_copied, Confirmation.ONCE),
    Rule("stale-source", is_of_now, Confirmation.WEEK, yields_to_return=True),
    Rule("mass-move", mass_move, Confirmation.ONCE, yields_to_return=True),
    Rule("outdated", outdated, Confirmation.ONCE, yields_to_own_price=False),
    Rule("collected", not_collected, Confirmation.LONG),
    Rule("alone", alone, Confirmation.LONG),
    Rule("first-sight", first_sight, Confirmation.ONCE),
)
