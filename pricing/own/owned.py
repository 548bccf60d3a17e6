"""The user's own contract prices and hardware quotes, kept with their source."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, delete, insert, select

from pricing.own.ownfile import OwnFile, OwnQuote
from pricing.storage.intervals import plain
from pricing.storage.memory import Origin
from pricing.storage.rows import (
    PRICE,
    QUOTE,
    SERIES,
    SOURCE,
    bump_revision,
    price_row,
    series_ids,
    source_ids,
    update_prices,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportReport:
    """What an import changed."""

    sources: Sequence[str]
    new: int
    changed: int
    unchanged: int
    ended: int  # what a source of the file no longer names
    quotes: int

    def to_document(self) -> Mapping[str, object]:
        """Return the report as `breakeven.import/1`."""
        counts = {name: getattr(self, name) for name in ("new", "changed", "unchanged", "ended", "quotes")}
        return {"schema": "breakeven.import/1", "sources": list(self.sources), **counts}


def store(connection: Connection, file: OwnFile, now: datetime) -> ImportReport:
    """Keep what a file says within the given transaction; each source of it replaces what it said before."""
    wanted = {offer.id: offer for offer in file.offers}
    series = series_ids(connection, wanted) if wanted else {}
    sources = source_ids(connection, file.sources)
    open_prices = {row.series_id: row for row in _open(connection, file.sources)}
    rows, changed, unchanged = [], 0, 0
    for offer_id, offer in wanted.items():
        before = open_prices.pop(series[offer_id], None)
        if before is not None:
            if before.usd_per_hour == offer.usd_per_hour:
                unchanged += 1
                continue
            changed += 1
            _close(connection, before, offer.seen_at, "changed")
        rows.append(price_row(offer, series[offer_id], sources[offer.source_url], Origin.OWN, None))
    for gone in open_prices.values():
        _close(connection, gone, now, "vanished")
    if rows:
        connection.execute(insert(PRICE), rows)
    connection.execute(delete(QUOTE).where(QUOTE.c.source.in_(file.sources)))
    if file.quotes:
        connection.execute(insert(QUOTE), [_quote_row(quote, now) for quote in file.quotes])
    bump_revision(connection)
    return ImportReport(
        sources=file.sources,
        new=len(rows) - changed,
        changed=changed,
        unchanged=unchanged,
        ended=len(open_prices),
        quotes=len(file.quotes),
    )


def _open(connection: Connection, sources: Sequence[str]) -> Sequence[Any]:
    query = (
        select(PRICE.c.id, PRICE.c.series_id, PRICE.c.usd_per_hour, PRICE.c.first_seen_at)
        .join(SERIES, SERIES.c.id == PRICE.c.series_id)
        .join(SOURCE, SOURCE.c.id == PRICE.c.source_id)
        .where(PRICE.c.origin == Origin.OWN, PRICE.c.closed_at.is_(None), SOURCE.c.url.in_(sources))
    )
    return connection.execute(query).all()


def _close(connection: Connection, before: Any, at: datetime, why: str) -> None:
    values = {"closed_at": max(at, before.first_seen_at), "closed_why": why}
    update_prices(connection, [before.id], values)


def _quote_row(quote: OwnQuote, now: datetime) -> dict[str, Any]:
    point = quote.point
    return {
        "gpu": point.gpu,
        "what": point.what,
        "condition": str(point.condition),
        "usd": quote.usd,
        "currency": point.currency_original,
        "price_original": plain(quote.price_original),
        "fx_date": quote.fx_date,
        "as_of": point.as_of,
        "seller": point.seller,
        "source": point.source,
        "notes": point.notes,
        "imported_at": now,
    }
