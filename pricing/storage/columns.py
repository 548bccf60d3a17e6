"""Column types that keep money and time exact on SQLite and PostgreSQL; light, since reading needs them."""

from datetime import UTC, datetime
from decimal import ROUND_HALF_EVEN, Decimal
from typing import Any

from sqlalchemy import BigInteger, DateTime
from sqlalchemy.dialects.postgresql import TIMESTAMP
from sqlalchemy.engine import Dialect
from sqlalchemy.types import TypeDecorator, TypeEngine

from planner.units import MICRO_USD

# Largest value of the 64-bit integer columns that hold money.
MAX_MICROS = 2**63 - 1


def to_micros(amount: Decimal) -> int:
    """
    Return whole micro-dollars; a finer price is rounded half to even.

    Raises:
        TypeError: if it is not a Decimal: a float has lost the price already.
        ValueError: if it is not finite, or does not fit 64 bits.
    """
    if not isinstance(amount, Decimal):
        raise TypeError(f"money is a Decimal, got {type(amount).__name__} {amount!r}")
    if not amount.is_finite():
        raise ValueError(f"money must be finite, got {amount}")
    micros = int((amount * MICRO_USD).to_integral_value(rounding=ROUND_HALF_EVEN))
    if abs(micros) > MAX_MICROS:
        raise ValueError(f"money must fit 64 bits of micro-dollars, got {amount}")
    return micros


def from_micros(micros: int) -> Decimal:
    """Return the exact amount. [USD]"""
    return Decimal(micros).scaleb(-6)


def micros_text(micros: int) -> str:
    """Write micro-dollars as a plain decimal with two to six places."""
    sign = "-" if micros < 0 else ""
    whole, fraction = divmod(abs(micros), MICRO_USD)
    return f"{sign}{whole}.{f'{fraction:06d}'.rstrip('0').ljust(2, '0')}"


class Usd(TypeDecorator[Decimal]):
    """Money: a Decimal in Python, whole micro-dollars in the database; sorts and sums exactly."""

    impl = BigInteger
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Dialect) -> int | None:
        """Return micro-dollars."""
        return None if value is None else to_micros(value)

    def process_result_value(self, value: Any, dialect: Dialect) -> Decimal | None:
        """Return the amount."""
        return None if value is None else from_micros(value)


class UtcTime(TypeDecorator[datetime]):
    """An aware time: UTC without offset on SQLite, `timestamptz` on PostgreSQL; a naive one is refused."""

    impl = DateTime
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        """Return the database's own type."""
        if dialect.name == "postgresql":
            return dialect.type_descriptor(TIMESTAMP(timezone=True))
        return dialect.type_descriptor(DateTime())

    def process_bind_param(self, value: Any, dialect: Dialect) -> datetime | None:
        """Return the time in UTC, as the database wants it."""
        if value is None:
            return None
        if value.utcoffset() is None:
            raise ValueError(f"a time needs its offset, got {value!r}")
        utc: datetime = value.astimezone(UTC)
        return utc if dialect.name == "postgresql" else utc.replace(tzinfo=None)

    def process_result_value(self, value: Any, dialect: Dialect) -> datetime | None:
        """Return an aware time in UTC."""
        if value is None:
            return None
        result: datetime = value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
        return result
