"""The bundled, dated collection of prices: works before any refresh, stays as history after it."""

import csv
import gzip
import hashlib
import io
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

from planner.rates import Billing, Tier
from pricing.offer import Offer, Verdict
from pricing.parsing.regions import region_key
from pricing.storage.past import packed_history, past_prices

if TYPE_CHECKING:
    from sqlalchemy.engine import Connection

# Days in a year of a reservation, as providers sell it.
DAYS_OF_TIER = {Tier.RESERVED_1Y: 365, Tier.RESERVED_3Y: 1095}


@cache
def snapshot_digest() -> str:
    """Return what identifies the bundled collection and history: the start of their SHA-256."""
    return hashlib.sha256(_packed() + packed_history()).hexdigest()[:16]


def snapshot_offers() -> list[Offer]:
    """
    Read the bundled collection, each row with its own date and source.

    A row whose GPU name is ambiguous has no GPU and the reason; one that is not what it says, or is too far
    from the market, is quarantined with the reason. Both are kept and never ranked.
    """
    text = gzip.decompress(_packed()).decode()
    return [parse(row) for row in csv.DictReader(io.StringIO(text, newline=""))]


def superseded_at(offers: Sequence[Offer]) -> list[datetime | None]:
    """
    Return for each row the day on which a newer row took its place, None where it is current.

    Two rows speak of the same thing where provider, GPU, count, tier and region agree, however the instance
    is spelled. A row without a region holds everywhere: it replaces older rows of any region, and any newer
    row replaces it. (DigitalOcean's 8x H100 at 23.92 of 2025 names `nyc1`, its 35.28 of 2026 no region.) What
    is held back replaces only what is held back.
    """
    days = _days([offer for offer in offers if not _is_held_back(offer)])
    held_days = _days(offers)
    return [_next((held_days if _is_held_back(o) else days)[_thing(o)][_place(o)], o.seen_at) for o in offers]


def _is_held_back(offer: Offer) -> bool:
    """Whether a row of a known GPU is kept out of every plan."""
    return offer.gpu is not None and offer.verdict is not Verdict.VERIFIED


def _days(offers: Sequence[Offer]) -> Mapping[tuple[object, ...], Mapping[str, Sequence[datetime]]]:
    """Return the days on which a thing was seen in a place or everywhere; of everywhere, in any place."""
    found: dict[tuple[object, ...], dict[str, list[datetime]]] = defaultdict(lambda: defaultdict(list))
    for offer in offers:
        found[_thing(offer)][_place(offer)].append(offer.seen_at)
    for places in found.values():
        anywhere = sorted({day for days in places.values() for day in days})
        everywhere = places.pop("", [])
        for place, days in places.items():
            places[place] = sorted({*days, *everywhere})
        places[""] = anywhere
    return found


def _place(offer: Offer) -> str:
    return region_key(offer.provider, offer.region)


def load(connection: "Connection") -> int:
    """
    Write the bundled collection and history within the given transaction; return the rows of the former.

    They take the place of older editions.

    Providers that a refresh has read keep it as history only.
    """
    from pricing.storage.writing import replace_history, replace_snapshot

    offers = snapshot_offers()
    replace_snapshot(connection, offers, superseded_at(offers))
    replace_history(connection, past_prices())  # it states less of a series, so it comes after
    return len(offers)


def _packed() -> bytes:
    return files("pricing").joinpath("data", "snapshot.csv.gz").read_bytes()


def _next(days: Sequence[datetime], day: datetime) -> datetime | None:
    position = bisect_right(days, day)
    return days[position] if position < len(days) else None


def _thing(offer: Offer) -> tuple[object, ...]:
    """Return what is offered, region aside; a canonical GPU implies its memory and form."""
    device = (offer.gpu,) if offer.gpu else (None, offer.gpu_raw, offer.memory_gb_per_gpu, offer.form)
    terms = (offer.tier, offer.commitment_days, offer.gpu_only)
    return (offer.witness, offer.provider, *device, offer.gpu_count, offer.gpu_fraction, *terms)


def parse(row: Mapping[str, str]) -> Offer:
    """Return one row of the collection as an offer."""
    usd = Decimal(row["usd_per_hour"])
    tier = Tier(row["tier"])
    gpu = row["gpu"] or None
    note = row["note"]
    doubt = row["doubt"] if gpu else f"ambiguous GPU name {_label(row)!r}: {note}"
    return Offer(
        provider=row["provider"],
        witness=row["witness"] or None,
        instance_type=row["instance_type"],
        gpu=gpu,
        gpu_raw=row["gpu_raw"],
        gpu_count=int(row["gpu_count"]),
        gpu_fraction=_number(row["gpu_fraction"]),
        memory_gb_per_gpu=_number(row["memory_gb_per_gpu"]),
        form=row["form"] or None,
        region=row["region"] or None,
        tier=tier,
        commitment_days=DAYS_OF_TIER.get(tier),
        usd_per_hour=usd,
        usd_per_month_cap=None,
        currency="USD",
        price_original=usd,
        fx_date=None,
        billing=Billing(row["billing"]) if row["billing"] else None,
        available=None,
        vcpus=_number(row["vcpus"]),
        ram_gb=_number(row["ram_gb"]),
        gpu_only=row["gpu_only"] == "1",
        source_url=row["source"],
        seen_at=datetime.fromisoformat(row["as_of"]).replace(tzinfo=UTC),
        raw=f"{usd} USD/h" + (f" ({note})" if gpu and note else ""),
        verdict=Verdict.QUARANTINED if doubt else Verdict.VERIFIED,
        reasons=(doubt,) if doubt else (),
    )


def _label(row: Mapping[str, str]) -> str:
    memory = row["memory_gb_per_gpu"]
    return " ".join(part for part in (row["gpu_raw"], memory and f"{memory} GB", row["form"]) if part)


def _number(text: str) -> float | None:
    return float(text) if text else None
