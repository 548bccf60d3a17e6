"""Offers as rows of the tables: series, sources and prices, added where they are new."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from sqlalchemy import Connection, delete, insert, select, update

from pricing.offer import Offer
from pricing.parsing.regions import region_key
from pricing.storage.intervals import Row, plain
from pricing.storage.memory import Origin
from pricing.tables import METADATA

# SQLite takes at most 999 parameters in a statement on old systems.
CHUNK = 500
# What a later answer may state anew about a series.
STATED = ("region", "billing", "vcpus", "ram_gb")
T = TypeVar("T")


TABLES = METADATA.tables
VALUE, SOURCE, RUN = TABLES["store_value"], TABLES["source"], TABLES["provider_run"]
SERIES, PRICE, REVIEW, QUOTE = TABLES["series"], TABLES["price"], TABLES["review"], TABLES["quote"]
RATE = TABLES["exchange_rate"]
# Name of the value that holds the last page of rates of exchange of which something is held back.
HELD_RATES = "exchange_held"


def series_ids(connection: Connection, wanted: Mapping[str, Offer]) -> dict[str, int]:
    """Return the row of each series by `Offer.id`, adding new ones and what is newly stated of others."""
    collectors = {_collector(offer) for offer in wanted.values()}
    known = _known_series(connection, collectors)
    for offer_id in wanted.keys() & known.keys():
        _update_stated(connection, wanted[offer_id], *known[offer_id])
    new = [_series_row(offer_id, offer) for offer_id, offer in wanted.items() if offer_id not in known]
    if new:
        connection.execute(insert(SERIES), new)
        known = _known_series(connection, collectors)
    return {offer_id: known[offer_id][0] for offer_id in wanted}


def source_ids(connection: Connection, urls: Iterable[str]) -> dict[str, int]:
    """Return the row of each source, adding new ones."""
    wanted = sorted(set(urls))
    found = _known_sources(connection, wanted)
    new = [{"url": url} for url in wanted if url not in found]
    if new:
        connection.execute(insert(SOURCE), new)
        found = _known_sources(connection, wanted)
    return found


def price_row(offer: Offer, series_id: int, source_id: int, origin: Origin, run_id: int | None) -> Row:
    """Return a new open interval that starts and ends with this observation."""
    is_plain = offer.currency == "USD" and offer.price_original == offer.usd_per_hour
    return {
        "series_id": series_id,
        "source_id": source_id,
        "run_id": run_id,
        "origin": str(origin),
        "verdict": str(offer.verdict),
        "reasons": json.dumps(list(offer.reasons), ensure_ascii=False) if offer.reasons else None,
        "usd_per_hour": offer.usd_per_hour,
        "usd_per_month_cap": offer.usd_per_month_cap,
        "currency": offer.currency,
        "price_original": None if is_plain else plain(offer.price_original),
        "fx_date": offer.fx_date,
        "available": offer.available,
        "first_seen_at": offer.seen_at,
        "last_seen_at": offer.seen_at,
        "closed_at": None,
        "closed_why": None,
        "times_seen": 1,
        "raw": offer.raw or None,
    }


def update_prices(connection: Connection, ids: Sequence[int], values: Mapping[str, Any]) -> None:
    """Set the same values in several prices."""
    for chunk in chunks(ids):
        connection.execute(update(PRICE).where(PRICE.c.id.in_(chunk)).values(values))


def get_value(connection: Connection, name: str) -> str | None:
    """Return a named value about the database itself."""
    value: str | None = connection.execute(select(VALUE.c.value).where(VALUE.c.name == name)).scalar()
    return value


def set_value(connection: Connection, name: str, value: str) -> None:
    """Keep a named value about the database itself."""
    if not connection.execute(update(VALUE).where(VALUE.c.name == name).values(value=value)).rowcount:
        connection.execute(insert(VALUE).values(name=name, value=value))


def drop_value(connection: Connection, name: str) -> None:
    """Forget a named value."""
    connection.execute(delete(VALUE).where(VALUE.c.name == name))


def bump_revision(connection: Connection) -> None:
    """Count a write, so that readers know when what they hold is old."""
    set_value(connection, "revision", str(int(get_value(connection, "revision") or 0) + 1))


def chunks(items: Sequence[T]) -> Iterator[Sequence[T]]:
    """Yield the items in portions that one statement can name."""
    for start in range(0, len(items), CHUNK):
        yield items[start : start + CHUNK]


def _known_series(connection: Connection, collectors: Iterable[str]) -> dict[str, tuple[Any, ...]]:
    columns = [SERIES.c.id, *(SERIES.c[name] for name in STATED)]
    query = select(SERIES.c.offer_id, *columns).where(SERIES.c.collector.in_(list(collectors)))
    return {offer_id: tuple(rest) for offer_id, *rest in connection.execute(query)}


def _update_stated(connection: Connection, offer: Offer, series_id: int, *before: Any) -> None:
    now = (offer.region, None if offer.billing is None else str(offer.billing), offer.vcpus, offer.ram_gb)
    merged = tuple(old if new is None else new for new, old in zip(now, before, strict=True))
    if merged != before:
        values = dict(zip(STATED, merged, strict=True))
        connection.execute(update(SERIES).where(SERIES.c.id == series_id).values(values))


def _known_sources(connection: Connection, urls: Sequence[str]) -> dict[str, int]:
    found: dict[str, int] = {}
    for chunk in chunks(urls):
        query = select(SOURCE.c.url, SOURCE.c.id).where(SOURCE.c.url.in_(chunk))
        found |= {row.url: row.id for row in connection.execute(query)}
    return found


def _series_row(offer_id: str, offer: Offer) -> Row:
    return {
        "offer_id": offer_id,
        "collector": _collector(offer),
        "provider": offer.provider,
        "witness": offer.witness,
        "instance_type": offer.instance_type,
        "gpu": offer.gpu,
        "gpu_raw": offer.gpu_raw,
        "gpu_count": offer.gpu_count,
        "gpu_fraction": offer.gpu_fraction,
        "memory_gb_per_gpu": offer.memory_gb_per_gpu,
        "form": offer.form,
        "region": offer.region,
        "region_key": region_key(offer.provider, offer.region),
        "tier": str(offer.tier),
        "commitment_days": offer.commitment_days,
        "gpu_only": offer.gpu_only,
        "billing": None if offer.billing is None else str(offer.billing),
        "vcpus": offer.vcpus,
        "ram_gb": offer.ram_gb,
    }


def _collector(offer: Offer) -> str:
    return offer.witness or offer.provider
