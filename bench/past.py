"""Real successive prices, replayed run by run from nothing, as verification would have met them."""

import csv
import random
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from statistics import median
from typing import NamedTuple

from shelf import Shelf

from planner.catalogues.currencies import all_currencies
from planner.rates import Tier
from pricing.collect import content_digest, judge
from pricing.offer import Offer, Verdict
from pricing.parsing.naming import identify
from pricing.registry import kinds
from pricing.storage.memory import Origin, remembered
from pricing.storage.snapshot import snapshot_offers
from pricing.verification.limits import OLD_PAGE_AFTER
from pricing.verification.market import Market
from pricing.verify import is_first_sight

# What a name without memory or form means in these tables; only prices of one series are compared.
MEANT = {
    "A100": "A100 80GB SXM",
    "H100": "H100 SXM",
    "H200": "H200 SXM",
    "V100": "V100 16GB SXM2",
    "RTX PRO 6000": "RTX PRO 6000 Blackwell Server",
}
MARKETPLACE = "vastai"
# Errors of these sources, by provider and price of one GPU: held back rightly.
ERRORS = {
    ("runpod", "0.5"),
    ("azure", "0.9615"),
}
# Asks that make a book.
BOOK_OF = 8
# Faults are put into one run of so many.
FAULTY_ONE_IN = 4
SAME = Decimal("0.02")
# A median of some asks moves to its neighbour when one of them is wrong; asks move by more in a day.
BOOK_SAME = Decimal("0.1")
# Whether the page of then was read when it was new.
MET, NEVER_MET = "met by a run of then", "met by no run"


class Run(NamedTuple):
    """All that one source said of one provider on one day."""

    day: datetime
    source: str
    provider: str


def runs(folder: Path) -> dict[Run, list[Offer]]:
    """Return the observations run by run, in the order of time."""
    table = folder / "data" / "prices" / "snapshot_gpu_map.csv"
    with table.open(encoding="utf-8", newline="") as file:
        names = {
            (r["gpu_model"], r["gpu_memory_gb"], r["form"]): r["canonical"] for r in csv.DictReader(file)
        }
    found: dict[Run, list[Offer]] = defaultdict(list)
    with (folder / "data" / "prices" / "history_dev.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            memory = float(row["memory_gb"]) if row["memory_gb"] else None
            model = row["gpu_model"]
            gpu = names.get((model, "" if memory is None else str(memory), row["form"])) or named(
                model, memory
            )
            provider = MARKETPLACE if row["provider"] == "vast.ai" else row["provider"]
            day = datetime.fromisoformat(row["observed_on"]).replace(tzinfo=UTC)
            one = observed(
                provider,
                row["instance_type"],
                gpu,
                float(row["gpu_count"]),
                row["usd_per_hour"],
                day,
                tier=Tier(row["tier"]),
                region=row["region"] or None,
            )
            found[Run(day, re.sub(r"@\w+", "", row["source"]), provider)].append(one)
    return dict(sorted(found.items()))


def named(model: str, memory_gb: float | None) -> str | None:
    """Return the device that a name means here."""
    gpu = identify(model.replace("_", " "), memory_gb=memory_gb).gpu
    return gpu.name if gpu else MEANT.get(model)


def observed(
    provider: str,
    name: str,
    gpu: str | None,
    count: float,
    usd: str,
    day: datetime,
    *,
    tier: Tier,
    region: str | None = None,
) -> Offer:
    """Return an observation as an offer."""
    return Offer(
        provider=provider,
        instance_type=name,
        gpu=gpu,
        gpu_raw=name,
        gpu_count=max(1, int(count)),
        gpu_fraction=count if count < 1 else None,
        memory_gb_per_gpu=None,
        form=None,
        region=region,
        tier=tier,
        commitment_days=None,
        usd_per_hour=Decimal(usd),
        usd_per_month_cap=None,
        currency="USD",
        price_original=Decimal(usd),
        fx_date=None,
        billing=None,
        available=None,
        vcpus=None,
        ram_gb=None,
        gpu_only=False,
        source_url="history",
        seen_at=day,
        raw=usd,
    )


class World:
    """All sources' shelves, and the market of them all."""

    def __init__(self) -> None:
        self.shelves: dict[tuple[str, str], Shelf] = defaultdict(Shelf)
        self.contents: dict[tuple[str, str], list[tuple[datetime, str]]] = defaultdict(list)

    def market(self) -> Market:
        return Market([one for shelf in self.shelves.values() for one in shelf.known()], kinds())

    def judged(self, run: Run, offers: Sequence[Offer]) -> list[Offer]:
        known = self.shelves[run.source, run.provider].known()
        return list(judge(offers, known, self.market(), all_currencies(), self.old_page(run, offers)))

    def old_page(self, run: Run, offers: Sequence[Offer]) -> str | None:
        """Return what is said of an answer whose prices are all those of one that was replaced long ago."""
        digest, is_replaced = content_digest(offers), False
        for day, met in reversed(self.contents[run.source, run.provider]):
            if met == digest and is_replaced:
                is_old = offers[0].seen_at - day >= OLD_PAGE_AFTER
                return f"all prices are those of {day:%Y-%m-%d}" if is_old else None
            is_replaced |= met != digest
        return None

    def take(self, run: Run, judged: Sequence[Offer]) -> None:
        self.shelves[run.source, run.provider].record(judged)
        self.contents[run.source, run.provider].append((run.day, content_digest(judged)))


def replayed(folder: Path, told: list[tuple[Run, Offer]] | None = None) -> dict[str, object]:
    """Replay every run and count what was held back, by why; `told` gets what waits for no second sight."""
    world, books = World(), World()
    total: Counter[str] = Counter()
    for run, offers in runs(folder).items():
        judged = world.judged(run, offers)
        world.take(run, judged)
        _count(total, "ask" if run.provider == MARKETPLACE else "list", run, judged, told)
        if run.provider == MARKETPLACE and (medians := book_medians(offers)):
            judged = books.judged(run, medians)
            books.take(run, judged)
            _count(total, "book", run, judged)
    figures: dict[str, object] = {}
    for what, name in (("list", "list prices"), ("book", "medians of books"), ("ask", "single asks")):
        figures[name] = {
            "rows": total[what],
            "first seen percent": percent(total[f"{what} first"], total[what]),
            "errors of the source held percent": percent(total[f"{what} error"], total[what]),
            "held percent": percent(total[f"{what} held"], total[what]),
        }
    return figures


def _count(
    total: Counter[str],
    what: str,
    run: Run,
    judged: Sequence[Offer],
    told: list[tuple[Run, Offer]] | None = None,
) -> None:
    for offer in judged:
        total[what] += 1
        if offer.verdict is Verdict.VERIFIED:
            continue
        if is_first_sight(offer):
            total[f"{what} first"] += 1
        elif (run.provider, str(offer.usd_per_gpu_hour)) in ERRORS:
            total[f"{what} error"] += 1
        else:
            total[f"{what} held"] += 1
            if told is not None:
                told.append((run, offer))


def book_medians(offers: Sequence[Offer]) -> list[Offer]:
    """Return the median of a day's asks for each GPU and tier, per GPU, where there are enough of them."""
    found = []
    for asks in book_asks(offers).values():
        usd = Decimal(str(median(float(one.usd_per_gpu_hour) for one in asks)))
        book = replace(asks[0], instance_type=f"book of {asks[0].gpu}", gpu_count=1, region=None)
        found.append(replace(book, usd_per_hour=usd, price_original=usd))
    return found


def book_asks(offers: Sequence[Offer]) -> Mapping[tuple[object, ...], list[Offer]]:
    """Return a day's asks by GPU and tier, where there are enough of them."""
    books: dict[tuple[object, ...], list[Offer]] = defaultdict(list)
    for offer in offers:
        if offer.gpu is not None:
            books[offer.gpu, offer.tier].append(offer)
    return {key: asks for key, asks in books.items() if len(asks) >= BOOK_OF}


def faulty(folder: Path, faults: Mapping[str, Callable[[Offer], Decimal]]) -> dict[str, object]:
    """
    Replay, and make a few rows wrong for two runs in a row, on top of what moved truly in them.

    Counted are rows whose own price was known, that the fault puts more than 2 % off.
    """
    world, every = World(), list(runs(folder).items())
    later: dict[tuple[str, str], list[tuple[Run, list[Offer]]]] = defaultdict(list)
    for run, offers in every:
        later[run.source, run.provider].append((run, offers))
    counts: Counter[tuple[str, str]] = Counter()
    for number, (run, offers) in enumerate(every):
        own = later[run.source, run.provider]
        own.pop(0)
        shelf = world.shelves[run.source, run.provider]
        known = {one.series_id for one in shelf.known() if one.verdict is Verdict.VERIFIED}
        able = [one.id for one in offers if one.id in known]
        if own and len(able) >= 5 and number % FAULTY_ONE_IN == 0:
            market = world.market()
            for kind, change in faults.items():
                choice = random.Random(f"{kind} {number}")
                wrong = set(choice.sample(able, max(1, len(able) // 20)))
                trial = shelf.copy()
                for when, (at, rows) in enumerate(((run, offers), own[0]), start=1):
                    made = [_priced(one, change(one)) if one.id in wrong else one for one in rows]
                    judged = list(judge(made, trial.known(), market, all_currencies()))
                    trial.record(judged)
                    what = "asks" if at.provider == MARKETPLACE else "list prices"
                    for true, one in zip(rows, judged, strict=True):
                        if one.id in wrong and abs(one.usd_per_hour / true.usd_per_hour - 1) > SAME:
                            counts[f"{what} {kind} {when}", "rows"] += 1
                            counts[f"{what} {kind} {when}", "verified"] += one.verdict is Verdict.VERIFIED
        world.take(run, world.judged(run, offers))
    return {
        what: {kind: ended(counts, f"{what} {kind}") for kind in faults} for what in ("list prices", "asks")
    }


def faulty_books(folder: Path, faults: Mapping[str, Callable[[Offer], Decimal]]) -> dict[str, object]:
    """
    Replay the books of asks, and make one ask in twenty of each wrong, one at least, for two runs in a row.

    Counted are books whose median is known; as verified a median that was verified more than a tenth off.
    """
    books = World()
    every = [(run, asks) for run, asks in runs(folder).items() if run.provider == MARKETPLACE]
    counts: Counter[tuple[str, str]] = Counter()
    for number, (run, asks) in enumerate(every):
        shelf = books.shelves[run.source, run.provider]
        known = {one.series_id for one in shelf.known() if one.verdict is Verdict.VERIFIED}
        market = books.market()
        for kind, change in faults.items():
            choice, trial = random.Random(f"{kind} {number}"), shelf.copy()
            wrong: set[str] = set()
            for own in book_asks(asks).values():
                wrong |= {one.id for one in choice.sample(own, max(1, len(own) // 20))}
            for when, (_, rows) in enumerate(every[number : number + 2], start=1):
                true = {one.id: one.usd_per_hour for one in book_medians(rows)}
                made = [_priced(one, change(one)) if one.id in wrong else one for one in rows]
                judged = judge(book_medians(made), trial.known(), market, all_currencies())
                trial.record(judged)
                for one in judged:
                    if one.id in known and one.id in true:
                        is_off = abs(one.usd_per_hour / true[one.id] - 1) > BOOK_SAME
                        counts[f"{kind} {when}", "rows"] += 1
                        counts[f"{kind} {when}", "verified"] += is_off and one.verdict is Verdict.VERIFIED
        medians = book_medians(asks)
        if medians:
            books.take(run, books.judged(run, medians))
    return {kind: ended(counts, kind) for kind in faults}


def _priced(offer: Offer, usd: Decimal) -> Offer:
    return replace(offer, usd_per_hour=usd, price_original=usd)


def percent(part: int, whole: int) -> float:
    return 100 * part / whole if whole else 0.0


def real_moves(folder: Path) -> dict[str, object]:
    """
    Judge the great cuts that are known to be true, all earlier prices of the provider known as verified.

    Azure's MI300X, by 46 %, between its tables of 2024-12-13 and 2025-05-16; AWS's p5, by 44 %, between those
    of 2025-04-28 and 2025-07-07.
    """
    azure = [offers for run, offers in runs(folder).items() if run.provider == "azure"]
    tables = {one[0].seen_at.date().isoformat(): one for one in azure}
    aws: dict[str, list[Offer]] = defaultdict(list)
    for one in snapshot_offers():
        if one.provider == "aws":
            aws[one.seen_at.date().isoformat()].append(one)
    return {
        "Azure MI300X": _moved(tables["2024-12-13"], tables["2025-05-16"], "Instinct MI300X"),
        "AWS p5": _moved(aws["2025-04-28"], aws["2025-07-07"], "H100 SXM"),
    }


def _moved(before: Sequence[Offer], after: Sequence[Offer], gpu: str) -> dict[str, object]:
    known = [remembered(replace(one, verdict=Verdict.VERIFIED), Origin.REFRESH) for one in before]
    was = {one.id: one.usd_per_hour for one in before}
    market, shelf = Market(known, kinds()), Shelf(known)
    counts: Counter[tuple[str, str]] = Counter()
    for when in (1, 2):
        rows = [_at(one, one.seen_at + timedelta(days=when)) for one in after]
        judged = list(judge(rows, shelf.known(), market, all_currencies()))
        shelf.record(judged)
        for one in judged:
            if one.gpu == gpu and one.usd_per_hour < Decimal("0.7") * was.get(one.id, Decimal(0)):
                counts[f"moved {when}", "rows"] += 1
                counts[f"moved {when}", "verified"] += one.verdict is Verdict.VERIFIED
    return ended(counts, "moved")


def reserved_again(folder: Path, age: timedelta = timedelta(days=60)) -> dict[str, object]:
    """
    Replay, and at every run serve the provider's page of 60 days before again, twice.

    Once as a page that a run has met, whose prices are known as a whole from then, once as one that none has
    met. Counted are rows whose price of now was verified, and which the old page states otherwise.
    """
    world = World()
    every = runs(folder)
    before: dict[tuple[str, str], list[Run]] = defaultdict(list)
    counts: Counter[tuple[str, str]] = Counter()
    for run, offers in every.items():
        own = before[run.source, run.provider]
        earlier = [one for one in own if one.day <= run.day - age]
        if earlier:
            newest = world.shelves[run.source, run.provider].sound(every[own[-1]])
            what = "asks" if run.provider == MARKETPLACE else "list prices"
            market = world.market()
            met = world.old_page(run, [_at(one, run.day) for one in every[earlier[-1]]])
            for name, old_page in ((MET, met), (NEVER_MET, None)):
                shelf = world.shelves[run.source, run.provider].copy()
                for when in (1, 2):
                    again = [_at(one, run.day + timedelta(days=when - 1)) for one in every[earlier[-1]]]
                    judged = list(judge(again, shelf.known(), market, all_currencies(), old_page))
                    shelf.record(judged)
                    key = f"{what}, {name} {when}"
                    for one in judged:
                        true = newest.get(one.id)
                        if true is not None and abs(one.usd_per_hour / true - 1) > SAME:
                            counts[key, "rows"] += 1
                            counts[key, "verified"] += one.verdict is Verdict.VERIFIED
        world.take(run, world.judged(run, offers))
        own.append(run)
    return {
        what: ended(counts, what)
        for what in (
            f"list prices, {MET}",
            f"list prices, {NEVER_MET}",
            f"asks, {MET}",
            f"asks, {NEVER_MET}",
        )
    }


def ended(counts: Mapping[tuple[str, str], int], what: str) -> dict[str, object]:
    """Return how wrong rows ended after the run that brought them, and after a second one."""
    once, twice = (
        percent(counts.get((f"{what} {when}", "verified"), 0), counts.get((f"{what} {when}", "rows"), 0))
        for when in (1, 2)
    )
    rows = counts.get((f"{what} 1", "rows"), 0)
    return {"rows": rows, "verified at once percent": once, "verified after two runs percent": twice}


def _at(offer: Offer, day: datetime) -> Offer:
    return replace(offer, seen_at=day)


def switched(folder: Path) -> dict[str, object]:
    """Replay an aggregator that changed from prices of a machine to prices of a GPU overnight."""
    every: dict[tuple[datetime, str], list[Offer]] = defaultdict(list)
    with (folder / "data" / "prices" / "history_unit_switch.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            gpu = named(row["gpu_model_raw"].replace("_", " "), None)
            day = datetime.fromisoformat(row["observed_on"]).replace(tzinfo=UTC)
            count = float(row["gpu_count"])
            name = f"{row['gpu_model_raw']} x{int(count)}"
            one = observed(
                row["provider"], name, gpu, count, row["price_as_published"], day, tier=Tier(row["tier"])
            )
            every[day, row["provider"]].append(one)
    shelves: dict[str, Shelf] = defaultdict(Shelf)
    before: dict[str, Decimal] = {}
    wrong = verified = 0
    collection = [remembered(one, Origin.SNAPSHOT) for one in snapshot_offers()]
    for (_, provider), offers in sorted(every.items(), key=lambda item: item[0]):
        known = [one for shelf in shelves.values() for one in shelf.known()]
        market = Market([*collection, *known], kinds())
        judged = list(judge(offers, shelves[provider].known(), market, all_currencies()))
        for one in judged:
            if one.gpu_count > 1 and one.id in before and one.usd_per_hour < Decimal("0.6") * before[one.id]:
                wrong += 1
                verified += one.verdict is Verdict.VERIFIED
            else:
                before.setdefault(one.id, one.usd_per_hour)
        shelves[provider].record(judged)
    return {"rows": wrong, "verified percent": 100 * verified / wrong}
