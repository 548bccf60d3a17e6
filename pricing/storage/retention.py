"""How long ended prices are kept; the last price of an offer is kept for ever."""

from datetime import datetime

from sqlalchemy import Connection

from pricing.storage.queries import Where, fetch
from pricing.storage.rows import PRICE, RUN, bump_revision, chunks

# Rows removed in one transaction, so that other writers get their turn.
PORTION = 5000
# Bundled prices are not the user's to lose: they would come back with the next edition. What a person has
# decided is kept with its reason.
_ENDED = (
    "SELECT p.id FROM price p WHERE p.closed_at < :before AND p.origin IN ('refresh', 'own') "
    "AND EXISTS (SELECT 1 FROM price n WHERE n.series_id = p.series_id AND n.id <> p.id "
    "AND (n.verdict = 'verified' OR p.verdict <> 'verified') "
    "AND (n.last_seen_at > p.last_seen_at OR (n.last_seen_at = p.last_seen_at AND n.id > p.id))) "
    "AND NOT EXISTS (SELECT 1 FROM review r WHERE r.price_id = p.id) "
    f"ORDER BY p.id LIMIT {PORTION}"
)
_RUNS = (
    "SELECT r.id FROM provider_run r WHERE r.finished_at < :before "
    "AND EXISTS (SELECT 1 FROM provider_run n WHERE n.provider = r.provider AND n.id > r.id "
    "AND (n.status = 'ok' OR r.status <> 'ok')) "
    f"ORDER BY r.id LIMIT {PORTION}"
)


def remove_ended(connection: Connection, before: datetime) -> int:
    """
    Remove a portion of the prices that ended before a time, and of older runs; return how many prices.

    The last verified price of every offer stays, as do its last one of any verdict and the last run of every
    provider.
    """
    where = Where(values={"before": before})
    prices = [row.id for row in fetch(connection, _ENDED, where)]
    for part in chunks(prices):
        connection.execute(PRICE.delete().where(PRICE.c.id.in_(part)))
    if prices:
        bump_revision(connection)
        return len(prices)
    runs = [row.id for row in fetch(connection, _RUNS, where)]
    for part in chunks(runs):
        connection.execute(RUN.delete().where(RUN.c.id.in_(part)))
    return 0
