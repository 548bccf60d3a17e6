"""How the reasons of the rules put figures into words."""

from decimal import Decimal

from pricing.verification.recall import Recollection

TO_HAVE_STAYED = "waits until it has stayed for days"
UNHEARD = "waits for a catalogue or a person"


def dollars(amount: float | Decimal) -> str:
    """Write a price for people, to the cent, finer where it is small, short where it is absurd."""
    if amount >= 1e6:
        return f"{amount:.3g}"
    return f"{amount:.2f}" if amount >= 1 else f"{amount:.3g}"


def times(factor: float) -> str:
    """Write by which factor a price is another."""
    return f"{factor:.2f} times" if 0.1 <= factor < 10 else f"{factor:.3g} times"


def known_text(known: Recollection) -> str:
    """Write what a price is compared with, and when that was seen."""
    each = "" if known.level == 1 else " per GPU"
    price = known.usd_per_hour if known.level == 1 else known.usd_per_gpu_hour
    return f"{known.what} ({dollars(price)} USD{each} on {known.seen_at:%Y-%m-%d})"
