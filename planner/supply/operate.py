"""How a machine would be run: at which batch, how many replicas, whether within the limits."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from planner.catalogues.gpus import Gpu
from planner.measurements.measured import Measurement
from planner.scenario import Scenario
from planner.serving.speeds import Speed
from planner.sizing import Sizing, size, size_machines
from planner.supply.load import Shift, shifts
from planner.units import GIB
from planner.workload import Machine, Workload

# What is tried to carry a demand: sequences at once, each twice the last.
BATCHES = tuple(2**power for power in range(10))

# More GPUs than a cluster of the largest kind are on nobody's list: xAI's Colossus has 200,000. Source:
# tweaktown.com/news/101365; newsbytesapp.com, 2025-10-06.
MOST_GPUS = 200_000

MachineKey = tuple[str, int]


class Refusal(StrEnum):
    """Why a machine cannot serve what is asked."""

    MEMORY = "memory"
    HEADS = "heads that do not divide"
    SPEED_UNKNOWN = "speed unknown"
    TTFT = "time to first token"
    TPOT = "time between tokens"
    COPIES = "more copies than there are"


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """What has to be carried, and how fast; without tokens the hours are presence."""

    hours_per_month: float
    tokens_per_month: float | None  # output tokens
    mean_tokens_per_s: float | None
    peak_tokens_per_s: float | None
    max_ttft_ms: float | None
    max_tpot_ms: float | None
    min_tokens_per_s_per_user: float
    loads_tokens_per_s: tuple[float, ...] = ()  # of each hour of a day, where its shape is known

    @classmethod
    def of(cls, scenario: Scenario) -> "Demand":
        """Return the demand that a scenario states, by its profile or spread evenly over its hours."""
        hours, profile = scenario.hours_per_month, scenario.profile
        peak_factor = scenario.peak_factor or (1.0 if profile is None else profile.peak_factor)
        mean = None
        if scenario.requests_per_s is not None:
            mean = scenario.requests_per_s * scenario.output_tokens
        elif scenario.tokens_per_month is not None:
            mean = scenario.tokens_per_month / (hours * 3600.0)
        return cls(
            hours_per_month=hours,
            tokens_per_month=None if mean is None else mean * hours * 3600.0,
            mean_tokens_per_s=mean,
            peak_tokens_per_s=None if mean is None else mean * peak_factor,
            max_ttft_ms=scenario.max_ttft_ms,
            max_tpot_ms=scenario.max_tpot_ms,
            min_tokens_per_s_per_user=scenario.min_tokens_per_s_per_user,
            loads_tokens_per_s=() if profile is None or mean is None else profile.loads(mean),
        )

    def times(self, factor: float) -> "Demand":
        """Return a demand of the same shape and limits, so many times as large."""
        if self.mean_tokens_per_s is None or self.peak_tokens_per_s is None:
            return self
        return replace(
            self,
            tokens_per_month=(self.tokens_per_month or 0.0) * factor,
            mean_tokens_per_s=self.mean_tokens_per_s * factor,
            peak_tokens_per_s=self.peak_tokens_per_s * factor,
            loads_tokens_per_s=tuple(load * factor for load in self.loads_tokens_per_s),
        )

    def broken_limit(self, speed: Speed) -> Refusal | None:
        """Return the limit that this speed does not keep."""
        if self.max_ttft_ms is not None and speed.ttft_ms > self.max_ttft_ms:
            return Refusal.TTFT
        if self.max_tpot_ms is not None and speed.tpot_ms > self.max_tpot_ms:
            return Refusal.TPOT
        return None

    def is_too_slow(self, speed: Speed) -> bool:
        """Whether one user gets fewer tokens a second than can be talked to."""
        return 1000.0 / speed.tpot_ms < self.min_tokens_per_s_per_user


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatingPoint:
    """A machine run at one batch, in as many copies as the load needs."""

    sizing: Sizing
    speed: Speed  # of one replica
    replicas: int
    utilisation: float  # share of the hours under load
    tokens_per_month: float  # output tokens, all replicas
    is_too_slow: bool
    shifts: tuple[Shift, ...] = ()  # how its copies follow the load of a day; empty: all run all the time
    rates_tokens_per_s: tuple[float, ...]  # of one copy at each batch within the limits, smallest batch first

    @property
    def capacity_tokens_per_s(self) -> float:
        """What one copy can carry within the limits, at its best batch. [tokens/s]"""
        return max(self.rates_tokens_per_s)

    def busy_share(self, tokens_per_s: float) -> float:
        """
        Return the share of its hours in which a copy with this mean load works. [fraction]

        It works at the smallest batch that carries the mean; the peak decides only how many copies there are.
        """
        return _busy_share(tokens_per_s, self.rates_tokens_per_s)

    @property
    def batch(self) -> int:
        """Sequences at once, on each replica."""
        return self.sizing.workload.batch

    @property
    def machine(self) -> Machine:
        """The machine of one replica."""
        return self.sizing.machine


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """A machine that cannot serve what is asked, and why."""

    sizing: Sizing
    refusal: Refusal
    value_ms: float = 0.0  # of the time that is too long
    limit_ms: float = 0.0
    replicas: int = 0  # where so many are nowhere to be had

    @property
    def why(self) -> str:
        """Why, in words."""
        if self.refusal is Refusal.MEMORY:
            return memory_text(self.sizing)
        return limit_text(self.refusal, [self])


@dataclass(slots=True, kw_only=True)
class Fleet:
    """Sizes machines, each of them once and all of them together, and remembers the outcome."""

    workload: Workload
    demand: Demand
    gpus: Mapping[str, Gpu]
    measurement: Measurement | None = None
    _sizings: dict[MachineKey, Sizing] = field(default_factory=dict)
    _tried: dict[MachineKey, list[Sizing]] = field(default_factory=dict)  # at every batch; empty: as asked
    _outcomes: dict[MachineKey, OperatingPoint | Refused] = field(default_factory=dict)

    def prepare(self, keys: Iterable[MachineKey]) -> None:
        """Size all machines that are new, in one pass."""
        new = [key for key in dict.fromkeys(keys) if key not in self._sizings]
        machines = [Machine(gpu=self.gpus[gpu], gpu_count=count) for gpu, count in new]
        for key, sizing in zip(new, size_machines(self.workload, machines), strict=True):
            self._sizings[key] = self._measured(key, sizing)
        by_batch = self._by_batch(new) if self.demand.mean_tokens_per_s is not None else {}
        self._tried.update((key, by_batch.get(key, [])) for key in new)

    def outcome(self, gpu: str, gpu_count: int) -> OperatingPoint | Refused:
        """Return how a machine would be run, or why it cannot be."""
        key = (gpu, gpu_count)
        if key not in self._outcomes:
            self.prepare([key])
            self._outcomes[key] = self._decide(self._sizings[key], self._tried[key])
        return self._outcomes[key]

    def under(self, demand: Demand) -> "Fleet":
        """Return the same machines under another demand; none of them is sized again."""
        return replace(self, demand=demand, _outcomes={})

    def _measured(self, key: MachineKey, sizing: Sizing) -> Sizing:
        if self.measurement is None or self.measurement.key != key:
            return sizing
        return size(
            self.workload,
            sizing.machine,
            measured_decode_tokens_per_s=self.measurement.decode_tokens_per_s,
            estimated_range=self.measurement.estimated_range,
        )

    def _by_batch(self, keys: Sequence[MachineKey]) -> dict[MachineKey, list[Sizing]]:
        """Return each machine at every batch that its memory holds; a measured one only as measured."""
        plain = self.measurement.key if self.measurement else None
        tried = [
            (key, batch)
            for key in keys
            if key != plain
            for batch in BATCHES
            if batch <= self._sizings[key].memory.max_batch
        ]
        machines = [self._sizings[key].machine for key, _ in tried]
        sized = size_machines(self.workload, machines, batch=[batch for _, batch in tried])
        by_batch: dict[MachineKey, list[Sizing]] = {}
        for (key, _), sizing in zip(tried, sized, strict=True):
            by_batch.setdefault(key, []).append(sizing)
        if plain in self._sizings and plain in keys:
            by_batch[plain] = [self._sizings[plain]]
        return by_batch

    def _decide(self, asked: Sizing, by_batch: Sequence[Sizing]) -> OperatingPoint | Refused:
        """Return how to run one machine."""
        tried = by_batch or [asked]
        key = (asked.machine.gpu.name, asked.machine.gpu_count)
        measured = self.measurement
        has_run = measured is not None and measured.key == key and measured.proves_it_fits
        runs = [sizing for sizing in tried if sizing.memory.fits or (has_run and sizing.speed)]
        if not runs and asked.refusal is not None:
            return Refused(sizing=asked, refusal=Refusal.HEADS)
        if not runs:
            return Refused(sizing=asked, refusal=Refusal.MEMORY)
        timed = [(sizing, sizing.speed) for sizing in runs if sizing.speed is not None]
        if not timed:
            return Refused(sizing=asked, refusal=Refusal.SPEED_UNKNOWN)
        kept = [pair for pair in timed if self.demand.broken_limit(pair[1]) is None]
        if not kept:
            return self._refused_by_limit(timed)
        return self._point(kept)

    def _refused_by_limit(self, timed: Sequence[tuple[Sizing, Speed]]) -> Refused:
        sizing, speed = timed[0]
        refusal = self.demand.broken_limit(speed) or Refusal.TPOT
        is_ttft = refusal is Refusal.TTFT
        value = speed.ttft_ms if is_ttft else speed.tpot_ms
        limit = (self.demand.max_ttft_ms if is_ttft else self.demand.max_tpot_ms) or 0.0
        return Refused(sizing=sizing, refusal=refusal, value_ms=value, limit_ms=limit)

    def _point(self, kept: Sequence[tuple[Sizing, Speed]]) -> OperatingPoint | Refused:
        """Return the smallest batch that carries the load with the fewest replicas, if so many exist."""
        demand = self.demand
        good = [pair for pair in kept if not demand.is_too_slow(pair[1])]
        usable = good or kept
        if demand.peak_tokens_per_s is None or demand.mean_tokens_per_s is None:
            sizing, speed = usable[0]
            tokens = speed.aggregate_tokens_per_s * 3600.0 * demand.hours_per_month
            return OperatingPoint(
                sizing=sizing,
                speed=speed,
                replicas=1,
                utilisation=1.0,
                tokens_per_month=tokens,
                is_too_slow=not good,
                rates_tokens_per_s=(speed.aggregate_tokens_per_s,),
            )
        rates = tuple(speed.aggregate_tokens_per_s for _, speed in usable)
        best = max(rates)
        replicas = max(1, math.ceil(demand.peak_tokens_per_s / best - 1e-9))
        if replicas * usable[0][0].machine.gpu_count > MOST_GPUS:
            return Refused(sizing=usable[0][0], refusal=Refusal.COPIES, replicas=replicas)
        share = demand.peak_tokens_per_s / replicas
        sizing, speed = next(
            (pair for pair in usable if pair[1].aggregate_tokens_per_s >= share * (1.0 - 1e-9)), usable[-1]
        )
        return OperatingPoint(
            sizing=sizing,
            speed=speed,
            replicas=replicas,
            utilisation=_busy_share(demand.mean_tokens_per_s / replicas, rates),
            tokens_per_month=demand.tokens_per_month or 0.0,
            is_too_slow=not good,
            shifts=shifts(demand.loads_tokens_per_s, best),
            rates_tokens_per_s=rates,
        )


def _busy_share(tokens_per_s: float, rates: Sequence[float]) -> float:
    """Return a mean load over what the smallest batch that carries it writes. [fraction]"""
    rate = next((each for each in rates if each >= tokens_per_s * (1.0 - 1e-9)), max(rates))
    return min(1.0, tokens_per_s / rate)


def gpus_needed(sizing: Sizing) -> int | None:
    """
    Return about how many GPUs of this kind would hold the model; None where no number does.

    What is shared out - weights, cache, state - over what one GPU leaves free beside its own buffers.
    """
    count = sizing.machine.gpu_count
    memory = sizing.memory
    shared_bytes = memory.total_bytes - memory.runtime_bytes
    free_bytes_per_gpu = (memory.usable_bytes - memory.runtime_bytes) / count
    return math.ceil(shared_bytes / free_bytes_per_gpu) if free_bytes_per_gpu > 0.0 else None


def limit_text(refusal: Refusal, refused: Sequence[Refused]) -> str:
    """Say which limit these machines do not keep, and by how much."""
    if refusal is Refusal.SPEED_UNKNOWN:
        return "the bandwidth or the compute rate of the device is not known"
    if refusal is Refusal.HEADS:
        reasons = dict.fromkeys(each.sizing.refusal for each in refused if each.sizing.refusal)
        return f"{refused[0].sizing.workload.engine} does not start so: {'; '.join(reasons)}"
    if refusal is Refusal.COPIES:
        fewest, most = min(each.replicas for each in refused), max(each.replicas for each in refused)
        many = f"{fewest:,}" if fewest == most else f"{fewest:,} to {most:,}"
        return (
            f"the demand takes {many} of them, above the {MOST_GPUS:,} GPUs of a cluster of the largest kind"
        )
    what = "the first token takes" if refusal is Refusal.TTFT else "a further token takes"
    low, high = min(each.value_ms for each in refused), max(each.value_ms for each in refused)
    took = f"{_ms_text(low)} ms" if high - low < 0.5 else f"{_ms_text(low)} to {_ms_text(high)} ms"
    batches = {each.sizing.workload.batch for each in refused}
    return f"{what} {took} at batch {min(batches)}, above the limit of {_ms_text(refused[0].limit_ms)} ms"


def _ms_text(milliseconds: float) -> str:
    """Write a time without places, a short one with two digits that count: a limit of 0.1 is no 0."""
    return f"{milliseconds:,.0f}" if milliseconds >= 10.0 else f"{milliseconds:.2g}"


def memory_text(sizing: Sizing) -> str:
    """Say how much memory is missing, and about how many GPUs would have it."""
    memory, count = sizing.memory, sizing.machine.gpu_count
    needed = gpus_needed(sizing)
    text = f"{memory.total_bytes / GIB:,.1f} GiB are needed and {count} hold {memory.usable_bytes / GIB:,.1f}"
    return f"{text}; about {needed} would be needed" if needed else text
