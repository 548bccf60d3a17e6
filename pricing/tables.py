"""The tables: what was offered (`Series`), at which price from when to when (`Price`), and by which run."""

from datetime import datetime
from decimal import Decimal

from sqlalchemy import Text, text
from sqlmodel import Field, Index, SQLModel

from pricing.storage.columns import Usd, UtcTime

# Batch migrations can only drop what has a name; set before the first table class.
SQLModel.metadata.naming_convention = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
    "pk": "pk_%(table_name)s",
}
METADATA = SQLModel.metadata
IS_OPEN = text("closed_at IS NULL")
IS_UNVERIFIED = text("verdict <> 'verified'")


class StoreValue(SQLModel, table=True):
    """A named value about the database itself: counter of writes, digest of the loaded snapshot."""

    __tablename__ = "store_value"

    name: str = Field(primary_key=True)
    value: str


class Source(SQLModel, table=True):
    """Where prices were read: one row for each URL or repository path, since thousands of prices share it."""

    __tablename__ = "source"

    id: int | None = Field(default=None, primary_key=True)
    url: str = Field(unique=True)


class ProviderRun(SQLModel, table=True):
    """What one provider brought in one run; failed and skipped ones too."""

    __tablename__ = "provider_run"
    __table_args__ = (Index(None, "provider", "finished_at"),)

    id: int | None = Field(default=None, primary_key=True)
    provider: str
    source: str  # refresh or replay
    status: str  # ok, failed, skipped
    reason: str | None = None
    started_at: datetime = Field(sa_type=UtcTime)
    finished_at: datetime = Field(sa_type=UtcTime)
    newest_seen_at: datetime | None = Field(default=None, sa_type=UtcTime)  # of its observations
    verified_count: int = 0
    quarantined_count: int = 0
    rejected_count: int = 0
    opened_count: int = 0  # intervals
    closed_count: int = 0
    problem_count: int = 0
    problems: str | None = Field(default=None, sa_type=Text)  # JSON, the first ones
    page_digests: str | None = Field(default=None, sa_type=Text)  # JSON, page key -> SHA-256


class Series(SQLModel, table=True):
    """One thing that is offered; its prices over time are rows of `Price`."""

    __tablename__ = "series"
    __table_args__ = (
        # In the order in which a plan looks for the cheapest of each machine.
        Index(None, "gpu", "provider", "gpu_count", "tier", "billing"),
        Index(None, "provider", "gpu"),
    )

    id: int | None = Field(default=None, primary_key=True)
    offer_id: str = Field(unique=True)  # `Offer.id`
    collector: str = Field(index=True)  # whose run keeps it: the provider, or the witness
    provider: str
    witness: str | None = None
    instance_type: str
    gpu: str | None = None  # canonical name
    gpu_raw: str
    gpu_count: int
    gpu_fraction: float | None = None
    memory_gb_per_gpu: float | None = None
    form: str | None = None
    region: str | None = None
    region_key: str = ""  # one spelling; blank where not bound to a place
    tier: str
    commitment_days: int | None = None
    gpu_only: bool = False
    billing: str | None = None
    vcpus: float | None = None
    ram_gb: float | None = None


class Price(SQLModel, table=True):
    """
    One price of a series, from the first to the last time it was seen.

    An unchanged price moves `last_seen_at`; a changed, vanished or superseded one gets `closed_at` and stays.
    A series has at most one open verified price, and beside it at most one that waits or was rejected.
    """

    __tablename__ = "price"
    __table_args__ = (
        Index(None, "series_id", "first_seen_at"),
        # All that a plan compares of the current market: with 284,000 prices that halves the time.
        Index(
            "ix_price_open",
            *("series_id", "verdict", "usd_per_hour", "last_seen_at", "available", "usd_per_month_cap"),
            *("origin", "id"),
            sqlite_where=IS_OPEN,
            postgresql_where=IS_OPEN,
        ),
        Index(
            "ix_price_unverified", "last_seen_at", sqlite_where=IS_UNVERIFIED, postgresql_where=IS_UNVERIFIED
        ),
    )

    id: int | None = Field(default=None, primary_key=True)
    series_id: int = Field(foreign_key="series.id")
    source_id: int = Field(foreign_key="source.id")
    # The run that saw it last.
    run_id: int | None = Field(default=None, foreign_key="provider_run.id", ondelete="SET NULL")
    origin: str  # refresh, snapshot, history, own
    verdict: str  # verified, quarantined, rejected
    reasons: str | None = Field(default=None, sa_type=Text)  # JSON list
    usd_per_hour: Decimal = Field(sa_type=Usd)  # whole instance
    usd_per_month_cap: Decimal | None = Field(default=None, sa_type=Usd)
    currency: str = "USD"
    price_original: str | None = None  # exact decimal in `currency`; None where it is usd_per_hour itself
    fx_date: str | None = None
    available: bool | None = None  # when last seen
    first_seen_at: datetime = Field(sa_type=UtcTime)
    last_seen_at: datetime = Field(sa_type=UtcTime)
    closed_at: datetime | None = Field(default=None, sa_type=UtcTime)
    closed_why: str | None = None  # changed, sold out, back, vanished, ...
    times_seen: int = 1  # in runs at different times
    raw: str | None = None  # the value as the source wrote it, when first seen


class Review(SQLModel, table=True):
    """A person's word on a price that waited: accepted or rejected, when and why."""

    __tablename__ = "review"

    id: int | None = Field(default=None, primary_key=True)
    price_id: int = Field(foreign_key="price.id", index=True)
    decision: str  # accept, reject
    reason: str
    decided_at: datetime = Field(sa_type=UtcTime)
    decided_by: str | None = None  # user of the operating system; unknown for old ones


class ExchangeRate(SQLModel, table=True):
    """What one euro was worth in a currency, as its central bank published it for a day."""

    __tablename__ = "exchange_rate"

    as_of: str = Field(primary_key=True)  # day
    currency: str = Field(primary_key=True)
    units_per_euro: str  # exact decimal
    source: str
    fetched_at: datetime = Field(sa_type=UtcTime)


class TokenPrice(SQLModel, table=True):
    """
    What a list says that an API charges for a model's tokens, from the first to the last time it was seen.

    A provider and model have at most one open price in force, and beside it at most one that waits.
    """

    __tablename__ = "token_price"
    __table_args__ = (Index(None, "provider", "model"),)

    id: int | None = Field(default=None, primary_key=True)
    provider: str
    model: str  # as the provider writes it
    model_id: str  # of the catalogue
    usd_per_mtok_input: str  # exact decimals
    usd_per_mtok_output: str
    usd_per_mtok_cached_input: str | None = None
    notes: str
    verdict: str  # verified, quarantined, rejected
    reason: str | None = None
    source: str
    first_seen_at: datetime = Field(sa_type=UtcTime)
    last_seen_at: datetime = Field(sa_type=UtcTime)
    verified_at: datetime | None = Field(default=None, sa_type=UtcTime)  # in force from then on
    closed_at: datetime | None = Field(default=None, sa_type=UtcTime)
    closed_why: str | None = None  # changed, resolved, gone
    times_seen: int = 1


class Quote(SQLModel, table=True):
    """An own quote for hardware, as imported from a file."""

    __tablename__ = "quote"

    id: int | None = Field(default=None, primary_key=True)
    gpu: str = Field(index=True)  # canonical name
    what: str  # card, module, server 8x, ..., as in the planner's catalogue
    condition: str
    usd: Decimal = Field(sa_type=Usd)  # for the whole thing
    currency: str
    price_original: str  # exact decimal in `currency`
    fx_date: str | None = None
    as_of: str  # day of the quote
    seller: str
    source: str
    notes: str
    imported_at: datetime = Field(sa_type=UtcTime)
