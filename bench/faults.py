"""
Which faults verification catches: faults put into real prices, and real successive prices replayed.

Prints one JSON document. Shares are in percent of the rows that a fault made wrong by more than 2 %, as they
ended after the run that brought it, and after a second, independent run that brought it again.
"""

import json
import random
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from past import ended, faulty, faulty_books, percent, real_moves, replayed, reserved_again, switched  # noqa: E402
from shelf import Shelf  # noqa: E402

from planner.catalogues.currencies import all_currencies  # noqa: E402
from planner.rates import Tier  # noqa: E402
from pricing.collect import judge  # noqa: E402
from pricing.errors import NormaliseError, PricingError  # noqa: E402
from pricing.normalise import normalise  # noqa: E402
from pricing.offer import Offer, Problem, RawOffer, Verdict  # noqa: E402
from pricing.provider import Page, Provider, ProviderClass  # noqa: E402
from pricing.registry import kinds, providers  # noqa: E402
from pricing.running.gather import read  # noqa: E402
from pricing.storage.memory import KnownPrice, Origin, ProviderResult, RunStatus, remembered  # noqa: E402
from pricing.storage.snapshot import snapshot_offers, superseded_at  # noqa: E402
from pricing.store import Store  # noqa: E402
from pricing.verification.market import Market  # noqa: E402
from pricing.verification.recall import Memory  # noqa: E402
from pricing.verify import is_plausible  # noqa: E402
from tests.conftest import shared_folder  # noqa: E402

NOW = datetime(2026, 11, 30, 3, 7, tzinfo=UTC)
DAY = timedelta(days=1)
# One row in this many of each provider is made wrong, and never all of a page.
ONE_IN = 20
# Each kind of fault is put into a short page this often, each time at other random rows; into recorded ones,
# which are few, more often; into a long page once.
ROUNDS, RECORDED_ROUNDS, LONG_PAGE = 4, 20, 400
SAME_SHARE = 0.02
RATES = all_currencies()
RECORDINGS = ROOT / "tests" / "pricing" / "payloads"
EUR, GBP = Decimal("1.1172"), Decimal("1.3399")
LOGIN = b"<!doctype html><html><head><title>Log in</title></head><body><form>Log in</form></body></html>"

Rows = Sequence[Offer]
# What a fault makes of rows of a page: the changed rows by their place.
Fault = Callable[[Rows, random.Random], Mapping[int, Offer | None]]


def each(change: Callable[[Offer], Offer | None]) -> Fault:
    """Return the fault that changes some random rows, one by one; None leaves a row alone."""

    def fault(rows: Rows, choice: random.Random) -> Mapping[int, Offer | None]:
        able = [place for place, row in enumerate(rows) if change(row) is not row]
        picked = choice.sample(able, min(len(able), max(1, len(rows) // ONE_IN)))
        return {place: change(rows[place]) for place in picked}

    return fault


def times(factor: Decimal | int | str) -> Fault:
    """Return the fault that multiplies prices."""
    return each(lambda row: priced(row, row.usd_per_hour * Decimal(factor)))


def whole(factor: Decimal) -> Fault:
    """Return the fault that multiplies all prices of a page."""
    return lambda rows, _: {n: priced(row, row.usd_per_hour * factor) for n, row in enumerate(rows)}


def priced(row: Offer, usd: Decimal) -> Offer:
    """Return a row at another price."""
    return replace(row, usd_per_hour=usd, price_original=usd)


def read_again(row: Offer, **changes: object) -> Offer | None:
    """Return what becomes of a row that the source states otherwise; None where it is no price any more."""
    given: dict[str, object] = {
        "instance_type": row.instance_type,
        "gpu": row.gpu or row.gpu_raw,
        "gpu_count": row.gpu_count,
        "price_per_hour": row.usd_per_hour,
        "page": "prices",
        "raw": row.raw,
        "memory_gb_per_gpu": row.memory_gb_per_gpu,
        "form": row.form,
        "region": row.region,
        "tier": row.tier,
    }
    try:
        raw = RawOffer(**(given | changes))  # type: ignore[arg-type]
        return normalise(raw, provider=row.provider, source_url=row.source_url, seen_at=row.seen_at)
    except (TypeError, ValueError, AttributeError, NormaliseError):
        return None


def of_many(change: Callable[[Offer], Offer]) -> Fault:
    """Return a fault of machines with several GPUs."""
    return each(lambda row: change(row) if row.gpu_count > 1 else row)


def shifted(rows: Rows, choice: random.Random) -> Mapping[int, Offer | None]:
    """Give every row the price of the one above it."""
    del choice
    return {n: priced(rows[n], rows[n - 1].usd_per_hour) for n in range(1, len(rows))}


def exchanged(rows: Rows, choice: random.Random) -> Mapping[int, Offer | None]:
    """Exchange the prices of two neighbours."""
    first = choice.randrange(len(rows) - 1)
    one, other = rows[first], rows[first + 1]
    return {first: priced(one, other.usd_per_hour), first + 1: priced(other, one.usd_per_hour)}


def tiers_swapped(rows: Rows, choice: random.Random) -> Mapping[int, Offer | None]:
    """Exchange spot and on-demand prices of some instances."""
    by_instance: dict[tuple[object, ...], dict[Tier, int]] = defaultdict(dict)
    for place, row in enumerate(rows):
        by_instance[row.instance_type, row.gpu_count, row.region][row.tier] = place
    pairs = [(p[Tier.ON_DEMAND], p[Tier.SPOT]) for p in by_instance.values() if {*p} >= SWAPPED]
    wrong: dict[int, Offer | None] = {}
    for one, other in choice.sample(pairs, min(len(pairs), max(1, len(rows) // ONE_IN))):
        wrong |= {one: priced(rows[one], rows[other].usd_per_hour)}
        wrong |= {other: priced(rows[other], rows[one].usd_per_hour)}
    return wrong


SWAPPED = {Tier.ON_DEMAND, Tier.SPOT}
# What is put into prices that move meanwhile.
MOVING: Mapping[str, Callable[[Offer], Decimal]] = {
    "twice": lambda row: row.usd_per_hour * 2,
    "half": lambda row: row.usd_per_hour / 2,
    "three times": lambda row: row.usd_per_hour * 3,
    "a third": lambda row: row.usd_per_hour / 3,
    "euros as dollars": lambda row: row.usd_per_hour / EUR,
}
# What makes all prices of a page wrong at once.
WHOLE: Mapping[str, Fault] = {
    f"whole list, {what}": whole(factor)
    for what, factor in {
        "euros as dollars": 1 / EUR,
        "pounds as dollars": 1 / GBP,
        "with 19 % tax": Decimal("1.19"),
        "half": Decimal("0.5"),
    }.items()
}
BESIDE = "rows beside them"
FAULTS: Mapping[str, Fault] = {
    "cents as dollars": times(100),
    "dollars as cents": times("0.01"),
    "per GPU for per instance": of_many(lambda row: priced(row, row.usd_per_hour / row.gpu_count)),
    "per instance for per GPU": of_many(lambda row: priced(row, row.usd_per_hour * row.gpu_count)),
    "count lost": of_many(lambda row: replace(row, gpu_count=1)),
    "month as an hour": times(730),
    "term total as an hour": times(8760),
    "zero": times(0),
    "null": each(lambda row: read_again(row, price_per_hour=None)),
    "negative": times(-1),
    "NaN": each(lambda row: read_again(row, price_per_hour=Decimal("NaN"))),
    "euros as dollars": times(1 / EUR),
    "dollars as euros": times(EUR),
    "pounds as dollars": times(1 / GBP),
    "spot and on-demand swapped": tiers_swapped,
    "prices one row down": shifted,
    "two prices exchanged": exchanged,
    "memory in MiB as GB": each(
        lambda row: (
            read_again(row, memory_gb_per_gpu=1024 * row.memory_gb_per_gpu, gpu=row.gpu_raw)
            if row.memory_gb_per_gpu
            else row
        )
    ),
    "unknown GPU name": each(lambda row: read_again(row, gpu="NVIDIA Z9000", form=None)),
    "twice": times(2),
    "half": times("0.5"),
    "three times": times(3),
    "a third": times(1 / Decimal(3)),
    "four times": times(4),
    "a quarter": times("0.25"),
    **WHOLE,
}


def bundled() -> tuple[list[KnownPrice], Mapping[str, list[Offer]]]:
    """Return all bundled prices as known, and the current ones of whole machines by provider."""
    offers = snapshot_offers()
    known = [remembered(one, Origin.SNAPSHOT) for one in offers]
    groups: dict[str, list[Offer]] = defaultdict(list)
    for one, end in zip(offers, superseded_at(offers), strict=True):
        if end is None and one.is_rankable and one.verdict is Verdict.VERIFIED:
            groups[one.provider].append(replace(one, seen_at=NOW))
    return known, groups


def is_wrong(now: Offer | None, true: Offer) -> bool:
    """Whether a row says something else than it should."""
    if now is None or now.gpu != true.gpu or now.gpu_count != true.gpu_count:
        return True
    return not abs(now.usd_per_hour - true.usd_per_hour) <= Decimal(SAME_SHARE) * true.usd_per_hour


class Trial:
    """Runs of one provider with a fault in them."""

    def __init__(self, known: Sequence[KnownPrice], market: Market, rows: Rows) -> None:
        self.market, self.rows, self.known = market, rows, known

    def after_two_runs(self, wrong: Mapping[int, Offer | None]) -> Iterator[list[Offer | None]]:
        """Yield how the rows of the first and of the second run ended, None for one that was not read."""
        shelf = Shelf(self.known)
        for number in range(2):
            rows = [wrong.get(place, row) for place, row in enumerate(self.rows)]
            seen = [None if row is None else replace(row, seen_at=NOW + number * DAY) for row in rows]
            found = judge([row for row in seen if row is not None], shelf.known(), self.market, RATES)
            shelf.record(found)
            ended_ones = iter(found)
            yield [None if row is None else next(ended_ones) for row in seen]


def injected(
    groups: Mapping[str, Rows],
    known: Mapping[str, Sequence[KnownPrice]],
    market: Market,
    table_of: Callable[[Offer], str],
    rounds: int = ROUNDS,
) -> dict[str, object]:
    """Put every fault into every provider's rows and count how they ended, in the table of each row."""
    counts: dict[str, Counter[tuple[str, str]]] = defaultdict(Counter)
    for kind, fault in FAULTS.items():
        is_whole = fault is shifted or kind in WHOLE
        for provider, rows in groups.items():
            if len(rows) < 2:
                continue
            trial = Trial(known[provider], market, rows)
            tables = [table_of(row) for row in rows]
            choice = random.Random(f"{kind} {provider}")
            for _ in range(1 if is_whole or len(rows) > LONG_PAGE else rounds):
                wrong = fault(rows, choice)
                for when, found in enumerate(trial.after_two_runs(wrong), start=1):
                    for place, row in enumerate(found):
                        name = kind if place in wrong else "" if is_whole else BESIDE
                        if name and (name is BESIDE or is_wrong(wrong[place], rows[place])):
                            counts[tables[place]][f"{name} {when}", "rows"] += 1
                            counts[tables[place]][f"{name} {when}", "verified"] += is_verified(row)
        print(kind, *(ended(counted, kind) for counted in counts.values()), file=sys.stderr)
    return {
        name: {kind: ended(counted, kind) for kind in (*FAULTS, BESIDE)} for name, counted in counts.items()
    }


def is_verified(row: Offer | None) -> bool:
    return row is not None and row.verdict is Verdict.VERIFIED


def with_history(known: Sequence[KnownPrice], groups: Mapping[str, Rows]) -> dict[str, object]:
    """Faults in the bundled prices, all of which a true run of the day before has verified."""
    own = {
        provider: [remembered(replace(row, seen_at=NOW - DAY), Origin.REFRESH) for row in rows]
        for provider, rows in groups.items()
    }
    bundled_ones = of_providers(known)
    memory = {name: [*bundled_ones[name], *own[name]] for name in groups}
    return injected(groups, memory, Market(known, kinds()), lambda _: "fault, in rows with a history")


def without_history(known: Sequence[KnownPrice]) -> dict[str, object]:
    """Faults in recorded answers of which only the bundled prices are known: the first refresh there is."""
    market, bundled_ones = Market(known, kinds()), of_providers(known)
    groups: dict[str, Rows] = {}
    for provider in providers().values():
        if provider.kind is ProviderClass.WITNESS:
            continue
        rows = judge(recorded(provider), bundled_ones[provider.name], market, RATES)
        groups[provider.name] = [row for row in rows if row.gpu is not None and row.is_rankable]
    remembers = {
        name: Memory(
            bundled_ones[name], name, before=NOW, is_plausible=lambda one: is_plausible(one, market, kinds())
        )
        for name in groups
    }

    def table_of(row: Offer) -> str:
        is_remembered = remembers[row.provider].nearest(row) is not None
        what = "a bundled price of the provider for the GPU" if is_remembered else "nothing to compare with"
        return f"fault, first refresh, {what}"

    return injected(groups, bundled_ones, market, table_of, RECORDED_ROUNDS)


def other_currency() -> dict[str, object]:
    """Let the recorded answers that name a currency name the euro, and count what is still taken for USD."""
    named = rows = taken = 0
    for provider in providers().values():
        pages = recorded_pages(provider)
        changed = {key: replace(page, body=in_euros(page.body)) for key, page in pages.items()}
        if provider.kind is ProviderClass.WITNESS or changed == pages:
            continue
        named += 1
        offers = read(provider, pages, seen_at=NOW, fx=RATES).offers
        rows += len(offers)
        try:
            found = read(provider, changed, seen_at=NOW, fx=RATES).offers
        except PricingError:
            continue
        before = {one.id: one.usd_per_hour for one in offers}
        taken += sum(one.currency == "USD" and one.usd_per_hour == before.get(one.id) for one in found)
    return {
        "providers whose answers name a currency": named,
        "rows": rows,
        "taken for dollars percent": percent(taken, rows),
    }


def in_euros(body: bytes) -> bytes:
    """Return an answer with the euro in the place of the dollar wherever it names it."""
    for dollar, euro in ((b"USD", b"EUR"), (b'"usd"', b'"eur"'), (b"$", "\u20ac".encode())):
        body = body.replace(dollar, euro)
    return body


def of_providers(known: Sequence[KnownPrice]) -> Mapping[str, list[KnownPrice]]:
    """Return the bundled prices that verification leans on, by provider."""
    found: dict[str, list[KnownPrice]] = defaultdict(list)
    for one in known:
        if one.verdict is Verdict.VERIFIED and one.witness is None:
            found[one.provider].append(one)
    return found


def recorded(provider: Provider) -> list[Offer]:
    """Return the offers of a provider's recorded answers."""
    return read(provider, recorded_pages(provider), seen_at=NOW, fx=RATES).offers


def recorded_pages(provider: Provider) -> dict[str, Page]:
    """Return a provider's recorded answers."""
    folder = RECORDINGS / provider.name
    pages = json.loads((folder / "meta.json").read_text(encoding="utf-8"))["pages"]
    return {
        key: Page(key=key, url=page["url"], body=(folder / page["file"]).read_bytes())
        for key, page in pages.items()
    }


def rows_missing(groups: Mapping[str, Rows]) -> dict[str, object]:
    """Take half of each page away and count which of the missing were closed."""
    choice = random.Random(1)
    missing = closed = 0
    for provider, rows in groups.items():
        with Store.in_memory(snapshot=False) as store:
            half = choice.sample(rows, len(rows) // 2)
            for number, part in enumerate((rows, half)):
                offers = tuple(replace(row, seen_at=NOW + number * DAY) for row in part)
                at = NOW + number * DAY
                result = ProviderResult(
                    provider=provider, status=RunStatus.OK, reason=None, offers=offers, problems=(),
                    started_at=at, finished_at=at,
                )  # fmt: skip
                report = store.record(result)
            closed += report.closed
            missing += len({row.id for row in rows} - {row.id for row in half})
    return {"missing": missing, "closed percent": percent(closed, missing)}


def login_pages() -> dict[str, object]:
    """Give every provider a login page in the place of each of its pages."""
    read = 0
    for provider in providers().values():
        pages = {key: Page(key=key, url=url, body=LOGIN) for key, url in provider.pages.items()}
        try:
            read += any(not isinstance(item, Problem) for item in provider.parse(pages))
        except PricingError:
            continue
    return {"providers": len(providers()), "read as prices percent": percent(read, len(providers()))}


def main() -> int:
    folder = shared_folder()
    if folder is None:
        print(
            "faults: skipped, the collected prices (../shared) are not beside this checkout", file=sys.stderr
        )
        print("{}")
        return 0
    known, groups = bundled()
    moving = faulty(folder, MOVING)
    figures: dict[str, object] = {
        **with_history(known, groups),
        **without_history(known),
        "page of 60 days ago": reserved_again(folder),
        "fault, in list prices as they move": moving["list prices"],
        "fault, in asks as they move": moving["asks"],
        "fault, in one ask of twenty, and the median of its book": faulty_books(folder, MOVING),
        "real history": replayed(folder),
        "real move": real_moves(folder),
        "half of the rows missing": rows_missing(groups),
        "login page": login_pages(),
        "page in euros": other_currency(),
        "unit switch": switched(folder),
    }
    print(json.dumps(figures, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
