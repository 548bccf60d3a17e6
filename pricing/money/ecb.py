"""The European Central Bank's euro reference rates of the day: asked, and read strictly."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal, InvalidOperation
from typing import ClassVar
from xml.etree import ElementTree

from pricing.errors import ParseError
from pricing.provider import Page, Request, Site

SOURCE = "European Central Bank euro foreign exchange reference rates"
# Some 3 kB. Source: own choice.
MAX_BYTES = 256 * 1024
DEADLINE_S = 30.0
_CUBE = "{http://www.ecb.int/vocabulary/2002-08-01/eurofxref}Cube"


@dataclass(frozen=True, slots=True, kw_only=True)
class DayRates:
    """What one euro was worth on one day."""

    as_of: date
    units_per_euro: Mapping[str, Decimal]


class EuropeanCentralBank(Site):
    """Published about 16:00 CET on working days; reading is free of charge and of keys."""

    name = "ecb"
    title = "European Central Bank"
    pages: ClassVar = {"rates": "https://www.ecb.europa.eu/stats/eurofxref/eurofxref-daily.xml"}

    def request(self) -> Request:
        """Ask for the rates of the last working day."""
        return Request(page="rates", url=self.pages["rates"], max_bytes=MAX_BYTES, deadline_s=DEADLINE_S)


BANK = EuropeanCentralBank()


def read_rates(page: Page, today: date) -> DayRates:
    """
    Read the rates of a day.

    Args:
        page: The answer.
        today: A day after tomorrow's is not believed.

    Raises:
        ParseError: if the page is anything else, or without a dollar.
    """
    day, rates = _read(page)
    if day > today + timedelta(days=1):
        raise ParseError(f"rates: they are of {day}, which is to come", page=page.key)
    if "EUR" in rates:
        raise ParseError(f"rates: the euro at {rates['EUR']}: they are not per euro", page=page.key)
    if "USD" not in rates:
        raise ParseError("rates: no rate of the dollar", page=page.key)
    return DayRates(as_of=day, units_per_euro=rates)


def _read(page: Page) -> tuple[date, dict[str, Decimal]]:
    """Read the day and the rates; a document that declares anything of its own is refused unread."""
    text = page.text()
    if "<!DOCTYPE" in text or "<!ENTITY" in text:
        raise ParseError("rates: declares a type of document, which rates of exchange do not", page=page.key)
    try:
        root = ElementTree.fromstring(text)
    except ElementTree.ParseError as error:
        raise ParseError(f"rates: not well-formed XML ({error})", page=page.key) from error
    days = [cube for cube in root.iter(_CUBE) if "time" in cube.attrib]
    if len(days) != 1:
        raise ParseError(f"rates: {len(days)} days instead of one: the page changed", page=page.key)
    rates: dict[str, Decimal] = {}
    for cube in days[0]:
        currency, value = cube.attrib.get("currency", ""), cube.attrib.get("rate", "")
        if cube.tag != _CUBE or not re.fullmatch(r"[A-Z]{3}", currency) or currency in rates:
            raise ParseError(f"rates: {cube.attrib} is no rate, or a second one", page=page.key)
        rates[currency] = _positive(value, currency, page)
    try:
        return date.fromisoformat(days[0].attrib["time"]), rates
    except ValueError as error:
        raise ParseError(f"rates: {days[0].attrib['time']!r} is not a day", page=page.key) from error


def _positive(value: str, currency: str, page: Page) -> Decimal:
    try:
        rate = Decimal(value) if re.fullmatch(r"\d+(\.\d+)?", value, re.ASCII) else Decimal(0)
    except InvalidOperation:
        rate = Decimal(0)
    if rate <= 0:
        raise ParseError(f"rates: {currency} at {value!r} is not a rate above 0", page=page.key)
    return rate
