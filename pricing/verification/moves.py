"""Which list prices a run moved, so that people can be told."""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from sqlalchemy import Connection

from pricing.storage.columns import from_micros
from pricing.storage.queries import RANKABLE, Where, fetch

_MOVES = (
    "SELECT s.provider, s.gpu, s.gpu_count, s.region, s.tier, o.usd_per_hour AS old, p.usd_per_hour AS new "
    "FROM price p JOIN price o ON o.series_id = p.series_id JOIN series s ON s.id = p.series_id "
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """One verified price that took the place of another."""

    provider: str
    gpu: str
    gpu_count: int
    region: str | None
    tier: str
    old_usd_per_hour: Decimal
    new_usd_per_hour: Decimal

    @property
    def percent(self) -> float:
        """By how much it moved; above 0 it became dearer. [%]"""
        return float(100 * (self.new_usd_per_hour - self.old_usd_per_hour) / self.old_usd_per_hour)


def moves(connection: Connection, seen_at: datetime) -> list[Move]:
    """Return the changes that the run at a time verified at once, the largest first."""
    where = Where().add(RANKABLE).add("p.closed_at IS NULL AND p.verdict = 'verified'")
    where.add("p.first_seen_at = :seen_at AND o.closed_at = :seen_at", seen_at=seen_at)
    where.add("o.closed_why = 'changed' AND o.verdict = 'verified' AND o.origin = 'refresh'")
    found = [
        Move(
            provider=row.provider,
            gpu=row.gpu,
            gpu_count=row.gpu_count,
            region=row.region,
            tier=row.tier,
            old_usd_per_hour=from_micros(row.old),
            new_usd_per_hour=from_micros(row.new),
        )
        for row in fetch(connection, f"{_MOVES}{where}", where)
        if row.old
    ]
    return sorted(found, key=lambda move: (-abs(move.percent), move.provider, move.gpu, move.region or ""))
