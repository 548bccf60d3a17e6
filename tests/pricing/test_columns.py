"""Money stays exact and time keeps its zone, on both databases."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal

import pytest
from sqlalchemy import Column, Connection, Integer, MetaData, Table, func, insert, select
from sqlalchemy.exc import StatementError

from pricing.storage.columns import Usd, UtcTime, from_micros, micros_text, to_micros
from pricing.storage.engines import find_target, transaction, writing_engine

SAMPLE = Table(
    "sample", MetaData(), Column("id", Integer, primary_key=True), Column("usd", Usd), Column("at", UtcTime)
)


@pytest.fixture
def connection(new_url: str) -> Iterator[Connection]:
    target = find_target(new_url)
    with transaction(writing_engine(target)) as connection:
        SAMPLE.create(connection)
        yield connection


def test_money_comes_back_exact_and_sums_without_error(connection: Connection) -> None:
    amounts = [Decimal(text) for text in ("0.1", "0.2", "0.000001", "216.32", "9999999.999999")]
    connection.execute(insert(SAMPLE), [{"usd": amount} for amount in amounts])
    assert connection.execute(select(SAMPLE.c.usd).order_by(SAMPLE.c.id)).scalars().all() == amounts
    assert connection.execute(select(func.min(SAMPLE.c.usd))).scalar() == Decimal("0.000001")
    total = connection.execute(select(func.sum(SAMPLE.c.usd))).scalar_one()
    assert Decimal(total) == Decimal("10000216.620000")


def test_money_can_be_searched_for(connection: Connection) -> None:
    connection.execute(insert(SAMPLE), [{"usd": Decimal("11.96")}, {"usd": Decimal("15.004")}])
    query = select(SAMPLE.c.usd).where(SAMPLE.c.usd > Decimal("11.96"))
    assert connection.execute(query).scalars().all() == [Decimal("15.004")]


@pytest.mark.parametrize("wrong", [2.69, 3, "2.69", Decimal("NaN"), Decimal("Infinity"), Decimal("1e13")])
def test_what_is_not_exact_money_is_refused(connection: Connection, wrong: object) -> None:
    with pytest.raises(StatementError, match="money"):
        connection.execute(insert(SAMPLE).values(usd=wrong))


def test_time_comes_back_in_utc(connection: Connection) -> None:
    berlin = timezone(timedelta(hours=1))
    connection.execute(insert(SAMPLE).values(at=datetime(2026, 11, 30, 12, 30, 0, 250, tzinfo=berlin)))
    found = connection.execute(select(SAMPLE.c.at)).scalar_one()
    assert found == datetime(2026, 11, 30, 11, 30, 0, 250, tzinfo=UTC)
    assert found.utcoffset() == timedelta(0)


def test_a_time_without_zone_is_refused(connection: Connection) -> None:
    with pytest.raises(StatementError, match="a time needs its offset"):
        connection.execute(insert(SAMPLE).values(at=datetime(2026, 11, 30)))  # noqa: DTZ001


@pytest.mark.parametrize(
    ("text", "micros"),
    [
        ("11.96", 11_960_000),
        ("0.0000005", 0),  # half to even
        ("0.0000015", 2),
        ("2.6900004", 2_690_000),
        ("-0.25", -250_000),
    ],
)
def test_a_price_is_rounded_to_whole_micro_dollars(text: str, micros: int) -> None:
    assert to_micros(Decimal(text)) == micros


@pytest.mark.parametrize(
    ("micros", "text"),
    [
        (11_960_000, "11.96"),
        (15_004_000, "15.004"),
        (2_000_000, "2.00"),
        (1, "0.000001"),
        (-250_000, "-0.25"),
    ],
)
def test_micro_dollars_are_written_as_a_plain_decimal(micros: int, text: str) -> None:
    assert micros_text(micros) == text
    assert from_micros(micros) == Decimal(text)
