"""Bundled observations of past days, so that charts are not empty on the first day: never current."""

import csv
import gzip
import io
from datetime import UTC, datetime
from decimal import Decimal
from importlib.resources import files
from typing import NamedTuple

from planner.rates import Tier
from pricing.offer import Offer, Verdict

# Columns that say what is priced; a row that starts with blanks goes on with the series above it.
_SERIES = 12


class Past(NamedTuple):
    """A price that was observed from one day to another, and ended."""

    source: str
    first_seen_at: datetime
    last_seen_at: datetime
    closed_at: datetime
    closed_why: str  # changed, vanished, ended
    times_seen: int
    usd_per_hour: Decimal


def packed_history() -> bytes:
    """Return the bundled file as it is."""
    return files("pricing").joinpath("data", "history.csv.gz").read_bytes()


def past_prices() -> list[tuple[Offer, list[Past]]]:
    """
    Return what was observed, each series with its intervals.

    A series whose GPU name is ambiguous, or a price that is an error of its source, is not verified: it is
    kept and never ranked.
    """
    text = gzip.decompress(packed_history()).decode()
    rows = csv.reader(io.StringIO(text, newline=""))
    next(rows)
    days: dict[str, datetime] = {}
    found: list[tuple[Offer, list[Past]]] = []
    for row in rows:
        source, first, last, closed, why, times, usd = row[_SERIES:]
        for day in (first, last, closed):
            if day not in days:
                days[day] = datetime.fromisoformat(day).replace(tzinfo=UTC)
        past = Past(source, days[first], days[last], days[closed], why, int(times), Decimal(usd))
        if row[0]:
            found.append((_offer(row[:_SERIES], past), []))
        found[-1][1].append(past)
    return found


def _offer(row: list[str], past: Past) -> Offer:
    """Return the series as an offer at its first price."""
    provider, name, gpu, gpu_raw, count, fraction, memory, form, region, tier, gpu_only, reason = row
    return Offer(
        provider=provider,
        instance_type=name,
        gpu=gpu or None,
        gpu_raw=gpu_raw,
        gpu_count=int(count),
        gpu_fraction=float(fraction) if fraction else None,
        memory_gb_per_gpu=float(memory) if memory else None,
        form=form or None,
        region=region or None,
        tier=Tier(tier),
        commitment_days=None,
        usd_per_hour=past.usd_per_hour,
        usd_per_month_cap=None,
        currency="USD",
        price_original=past.usd_per_hour,
        fx_date=None,
        billing=None,
        available=None,
        vcpus=None,
        ram_gb=None,
        gpu_only=gpu_only == "1",
        source_url=past.source,
        seen_at=past.last_seen_at,
        raw="",
        verdict=Verdict.QUARANTINED if reason else Verdict.VERIFIED,
        reasons=(reason,) if reason else (),
    )
