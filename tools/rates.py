"""
Measure the rules for rates of exchange on the European Central Bank's own history.

    python -m tools.rates FILE

FILE is eurofxref-hist.csv or eurofxref-hist.zip of https://www.ecb.europa.eu/stats/eurofxref/. Told are the
largest moves within so many days, how many true rates wait when the days pass one by one, and which share of
the days into which a fault is put is not taken.
"""

import csv
import io
import sys
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date
from decimal import Decimal, InvalidOperation
from pathlib import Path

from pricing.money.currencies import of_the_bank
from pricing.money.ecb import DayRates
from pricing.money.rateverdicts import LIMITS, HeldRate, KnownRate, judge

Rates = dict[str, Decimal]
Page = tuple[date, Rates]
# Krone and Hong Kong dollar, by which a page is checked, are both stated without a gap from then on.
FAULTS_SINCE = date(2009, 1, 1)
EVERY = 5  # of the days a fault is put into each fifth
GAPS_DAYS = (1, 31)


def read(file: Path) -> list[Page]:
    """Return what the bank stated on each day, oldest first, of the currencies that it states today."""
    if file.suffix == ".zip":
        with zipfile.ZipFile(file) as packed:
            text = packed.read(packed.namelist()[0]).decode()
    else:
        text = file.read_text(encoding="utf-8")
    names = of_the_bank()
    pages = [
        (date.fromisoformat(row["Date"]), _rates({name: row[name] for name in row if name in names}))
        for row in csv.DictReader(io.StringIO(text), skipinitialspace=True)
    ]
    return sorted(page for page in pages if page[1])


def _rates(texts: Mapping[str, str]) -> Rates:
    found = {}
    for name, text in texts.items():
        try:
            found[name] = Decimal(text)
        except InvalidOperation:  # N/A
            continue
    return found


def largest_move(pages: Sequence[Page], currency: str, days: int) -> Decimal:
    """Return the largest factor between two rates of a currency that are so many days apart or less."""
    rates = [(day, rates[currency]) for day, rates in pages if currency in rates]
    largest, first = Decimal(1), 0
    for number, (day, rate) in enumerate(rates):
        while (day - rates[first][0]).days > days:
            first += 1
        lately = [other for _, other in rates[first:number]]
        if lately:
            largest = max(largest, rate / min(lately), max(lately) / rate)
    return largest


def waiting(pages: Sequence[Page]) -> tuple[int, Counter[tuple[str, str]]]:
    """Return how many rates there were, and how many of them were held back by currency and rule."""
    known: dict[str, KnownRate] = {}
    held: Mapping[str, HeldRate] = {}
    total, found = 0, Counter[tuple[str, str]]()
    for day, rates in pages:
        total += len(rates)
        judged = judge(DayRates(as_of=day, units_per_euro=rates), known, held)
        found.update((one.currency, one.rule) for one in judged.held)
        held = {one.currency: one for one in judged.held}
        known |= {name: KnownRate(units=units, as_of=day) for name, units in judged.taken.items()}
    return total, found


def _times(currency: str | None, factor: str) -> Callable[[Rates], Rates]:
    by = Decimal(factor)
    return lambda rates: {
        name: units * by if currency in (None, name) else units for name, units in rates.items()
    }


def _inverse(currency: str) -> Callable[[Rates], Rates]:
    return lambda rates: rates | {currency: 1 / rates[currency]}


def _exchanged(one: str, other: str) -> Callable[[Rates], Rates]:
    return lambda rates: rates | {one: rates[other], other: rates[one]}


def _per(currency: str) -> Callable[[Rates], Rates]:
    return lambda rates: {name: units / rates[currency] for name, units in rates.items()}


# Each fault with the currency whose rate must not be taken.
FAULTS: Mapping[str, tuple[str, Callable[[Rates], Rates]]] = {
    "no fault": ("USD", lambda rates: rates),
    "dollar 24 % too high": ("USD", _times("USD", "1.24")),
    "dollar 24 % too low": ("USD", _times("USD", "0.76")),
    "dollar 3 % too high": ("USD", _times("USD", "1.03")),
    "dollar 3 % too low": ("USD", _times("USD", "0.97")),
    "dollar 2 % too high": ("USD", _times("USD", "1.02")),
    "dollar upside down": ("USD", _inverse("USD")),
    "dollar and pound exchanged": ("USD", _exchanged("USD", "GBP")),
    "all per pound": ("USD", _per("GBP")),
    "all 3 % too high": ("USD", _times(None, "1.03")),
    "pound upside down": ("GBP", _inverse("GBP")),
    "pound 24 % too high": ("GBP", _times("GBP", "1.24")),
    "pound 24 % too low": ("GBP", _times("GBP", "0.76")),
}


def caught(pages: Sequence[Page], gap_days: int) -> tuple[int, Counter[str]]:
    """Return into how many days faults were put, and how many were not taken by the rates so long before."""
    lately = [page for page in pages if page[0] >= FAULTS_SINCE]
    total, found = 0, Counter[str]()
    for number in range(0, len(lately), EVERY):
        before, rates = lately[number]
        later = next((page for page in lately[number + 1 :] if (page[0] - before).days >= gap_days), None)
        if later is None:
            break
        known = {name: KnownRate(units=units, as_of=before) for name, units in rates.items()}
        total += 1
        for fault, (currency, put) in FAULTS.items():
            judged = judge(DayRates(as_of=later[0], units_per_euro=put(later[1])), known, {})
            found[fault] += currency not in judged.taken
    return total, found


def report(pages: Sequence[Page]) -> Iterator[str]:
    """Yield the lines of the report."""
    yield f"{len(pages)} days, {pages[0][0]} to {pages[-1][0]}"
    for days, factor in LIMITS:
        moves = ", ".join(f"{name} {largest_move(pages, name, days):.3f}" for name in ("USD", "GBP"))
        yield f"within {days} days: {moves}; the limit is {factor}"
    ratios = [rates["HKD"] / rates["USD"] for _, rates in pages if {"HKD", "USD"} <= rates.keys()]
    if ratios:
        yield f"Hong Kong dollars to the dollar: {min(ratios):.3f} to {max(ratios):.3f}"
    kroner = [rates["DKK"] for _, rates in pages if "DKK" in rates]
    if kroner:
        yield f"kroner to the euro: {min(kroner)} to {max(kroner)}"
    total, held = waiting(pages)
    by_rule = sorted((rule, currency, number) for (currency, rule), number in held.items())
    told = ", ".join(f"{rule} {currency} {number}" for rule, currency, number in by_rule)
    yield f"{total} true rates, held back: {told or 'none'}"
    for gap in GAPS_DAYS:
        days, found = caught(pages, gap)
        shares = ", ".join(f"{fault} {100 * found[fault] / max(1, days):.1f} %" for fault in FAULTS)
        yield f"{days} days against those {gap} days before, not taken: {shares}"


def main() -> int:
    """Print the report."""
    if len(sys.argv) != 2:
        sys.stderr.write("usage: python -m tools.rates FILE (eurofxref-hist.csv or .zip)\n")
        return 2
    for line in report(read(Path(sys.argv[1]))):
        sys.stdout.write(f"{line}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
