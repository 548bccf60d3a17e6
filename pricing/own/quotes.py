"""The user's own quotes for hardware, as the planner reads price points."""

from sqlalchemy import Connection

from planner.catalogues.purchases import Condition, PricePoint
from pricing.storage.columns import from_micros
from pricing.storage.queries import fetch

_QUOTES = (
    "SELECT gpu, what, condition, usd, currency, as_of, seller, source, notes FROM quote "
    "ORDER BY gpu, as_of, id"
)


def quotes(connection: Connection) -> list[PricePoint]:
    """Return all quotes, by device and day."""
    return [
        PricePoint(
            gpu=row.gpu,
            what=row.what,
            condition=Condition(row.condition),
            usd_low=float(from_micros(row.usd)),
            usd_high=float(from_micros(row.usd)),
            currency_original=row.currency,
            as_of=row.as_of,
            seller=row.seller,
            source=row.source,
            notes=row.notes,
            checked=row.as_of,
        )
        for row in fetch(connection, _QUOTES)
    ]
