"""Real successive prices, replayed run by run from nothing, as verification would have met them."""

import csv
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from statistics import median
from typing import NamedTuple

from shelf import Shelf

from planner.currencies import all_currencies
from planner.rates import Tier
from pricing.collect import judge
from pricing.market import Market
from pricing.memory import Origin, remembered
from pricing.naming import identify
from pricing.offer import Offer, Verdict
from pricing.registry import kinds
from pricing.rules import is_first_sight
from pricing.snapshot import snapshot_offers

# What a name without memory or form means in these tables; only prices of one series are compared.
MEANT = {
    "A100": "A100 80GB SXM",
    "H100": "H100 SXM",
    "H200": "H200 SXM",
    "V100": "V100 16GB SXM2",
    "RTX PRO 6000": "RTX PRO 6000 Blackwell Server",
}
MARKETPLACE = "vastai"


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

    def market(self) -> Market:
        return Market([one for shelf in self.shelves.values() for one in shelf.known()], kinds())

    def judged(self, run: Run, offers: Sequence[Offer]) -> list[Offer]:
        known = self.shelves[run.source, run.provider].known()
        return list(judge(offers, known, self.market(), all_currencies()))

    def take(self, run: Run, judged: Sequence[Offer]) -> None:
        self.shelves[run.source, run.provider].record(judged)


def replayed(folder: Path, told: list[tuple[Run, Offer]] | None = None) -> dict[str, object]:
    """Replay every run and count what was held back, by why."""
    world = World()
    total: Counter[str] = Counter()
    book: dict[tuple[str, str], list[bool]] = defaultdict(list)
    moves = Moves()
    for run, offers in runs(folder).items():
        judged = world.judged(run, offers)
        world.take(run, judged)
        moves.see(judged)
        where = "marketplace" if run.provider == MARKETPLACE else "list"
        for offer in judged:
            total[f"{where} rows"] += 1
            if offer.verdict is not Verdict.VERIFIED:
                why = "first sight" if is_first_sight(offer) else "held"
                total[f"{where} {why}"] += 1
                if told is not None and why == "held":
                    told.append((run, offer))
        if where == "marketplace":
            for key, is_held in books(judged):
                book[key].append(is_held)
    kept = [is_held for days in book.values() for is_held in days]
    lists, asks = total["list rows"], total["marketplace rows"]
    return {
        "list rows": lists,
        "list rows first seen percent": 100 * total["list first sight"] / lists,
        "list rows held percent": 100 * total["list held"] / lists,
        "asks of Vast.ai": asks,
        "asks held percent": 100 * (total["marketplace held"] + total["marketplace first sight"]) / asks,
        "books of Vast.ai": len(kept),
        "books off by 15 percent or held percent": 100 * sum(kept) / len(kept),
        **moves.figures(),
    }


def books(judged: Sequence[Offer]) -> Iterator[tuple[tuple[str, str], bool]]:
    """Yield for each GPU and tier of a day whether what was held back moves the median of its asks."""
    asks: dict[tuple[str, str], list[Offer]] = defaultdict(list)
    for offer in judged:
        if offer.gpu is not None:
            asks[offer.gpu, str(offer.tier)].append(offer)
    for key, offers in asks.items():
        if len(offers) < 3:
            continue
        sound = [float(one.usd_per_gpu_hour) for one in offers if one.verdict is Verdict.VERIFIED]
        whole = median(float(one.usd_per_gpu_hour) for one in offers)
        yield key, not sound or abs(median(sound) / whole - 1) > 0.15


class Moves:
    """The known real moves: Azure's MI300X, cut by 46 %, and how many runs until it was verified."""

    def __init__(self) -> None:
        self._before: dict[str, Decimal] = {}
        self._waits: dict[str, int] = {}
        self._done: dict[str, int] = {}

    def see(self, judged: Sequence[Offer]) -> None:
        for one in judged:
            if one.provider != "azure" or one.gpu != "Instinct MI300X" or one.gpu_count != 8:
                continue
            old = self._before.get(one.id)
            if old is not None and one.usd_per_hour < Decimal("0.7") * old:
                self._waits[one.id] = self._waits.get(one.id, 0) + 1
                if one.verdict is Verdict.VERIFIED:
                    self._done.setdefault(one.id, self._waits[one.id])
            elif old is None:
                self._before[one.id] = one.usd_per_hour

    def figures(self) -> dict[str, object]:
        return {
            "Azure MI300X prices cut by 46 percent": len(self._waits),
            "of them verified within two runs": sum(runs <= 2 for runs in self._done.values()),
        }


def reserved_again(folder: Path, age: timedelta = timedelta(days=60)) -> dict[str, object]:
    """Replay, and at every run serve the provider's page of 60 days before again, twice."""
    world = World()
    every = runs(folder)
    by_source: dict[tuple[str, str], list[Run]] = defaultdict(list)
    counts: Counter[str] = Counter()
    for run, offers in every.items():
        earlier = [one for one in by_source[run.source, run.provider] if one.day <= run.day - age]
        if earlier:
            old = every[earlier[-1]]
            newest = {one.id: one for one in every[by_source[run.source, run.provider][-1]]}
            shelf = world.shelves[run.source, run.provider].copy()
            for number in range(2):
                again = [_at(one, run.day + timedelta(days=number)) for one in old]
                judged = list(judge(again, shelf.known(), world.market(), all_currencies()))
                shelf.record(judged)
                for one in judged:
                    true = newest.get(one.id)
                    if true is None or abs(one.usd_per_hour / true.usd_per_hour - 1) <= Decimal("0.02"):
                        continue
                    where = "asks" if run.provider == MARKETPLACE else "list rows"
                    counts[f"{where} {number}"] += 1
                    counts[f"{where} verified {number}"] += one.verdict is Verdict.VERIFIED
        world.take(run, world.judged(run, offers))
        by_source[run.source, run.provider].append(run)
    return {
        f"{where} {what}": 100 * counts[f"{where} verified {number}"] / max(1, counts[f"{where} {number}"])
        for where in ("list rows", "asks")
        for number, what in enumerate(("verified at once percent", "verified after two runs percent"))
    } | {"list rows": counts["list rows 0"], "asks": counts["asks 0"]}


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
