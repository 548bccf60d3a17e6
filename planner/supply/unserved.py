"""Devices that serve in no number on offer, and why; and numbers of them on which no engine starts."""

from collections.abc import Iterable, Mapping, Sequence

from planner.supply.market import Market
from planner.supply.operate import Fleet, MachineKey, Refusal, Refused, gpus_needed, limit_text
from planner.supply.options import Excluded, names_text
from planner.supply.shop import Shop, machine_keys

# Machines on offer end at 16 GPUs; what would need more is counted, not listed.
MOST_GPUS_NAMED = 16


def unserved(market: Market, shop: Shop, fleet: Fleet) -> list[Excluded]:
    """Say which devices serve in no number on offer, those of one memory size and one reason together."""
    tried: dict[str, int] = {}
    keys = [*market.machines, *machine_keys(each for each in shop.candidates if not each.is_own)]
    for gpu, count in keys:
        tried[gpu] = max(count, tried.get(gpu, 0))
    serving = {gpu for gpu, count in keys if not isinstance(fleet.outcome(gpu, count), Refused)}
    by_memory: dict[float, list[tuple[str, int | None]]] = {}
    limits: dict[Refusal, list[tuple[str, Refused]]] = {}
    for gpu, count in tried.items():
        outcome = fleet.outcome(gpu, count)
        if gpu in serving or not isinstance(outcome, Refused) or outcome.refusal is Refusal.HEADS:
            continue
        if outcome.refusal is Refusal.MEMORY:
            size_gb = fleet.gpus[gpu].memory_gb_vendor
            by_memory.setdefault(size_gb, []).append((gpu, gpus_needed(outcome.sizing)))
        else:
            limits.setdefault(outcome.refusal, []).append((f"{count}x {gpu}", outcome))
    kept_out = [
        Excluded(
            what=names_text([name for name, _ in refused]),
            why=limit_text(reason, [each for _, each in refused]),
        )
        for reason, refused in limits.items()
    ]
    return [*_not_starting(keys, fleet), *kept_out, *_too_small(by_memory)]


def _not_starting(keys: Iterable[MachineKey], fleet: Fleet) -> list[Excluded]:
    """Say on which machines the engine does not start, those of one number of GPUs together."""
    by_count: dict[int, list[tuple[str, Refused]]] = {}
    for gpu, count in dict.fromkeys(keys):
        outcome = fleet.outcome(gpu, count)
        if isinstance(outcome, Refused) and outcome.refusal is Refusal.HEADS:
            by_count.setdefault(count, []).append((f"{count}x {gpu}", outcome))
    return [
        Excluded(
            what=names_text([name for name, _ in refused]),
            why=limit_text(Refusal.HEADS, [each for _, each in refused]),
        )
        for _, refused in sorted(by_count.items())
    ]


def _too_small(by_memory: Mapping[float, Sequence[tuple[str, int | None]]]) -> list[Excluded]:
    """Say which devices have too little memory, and how many of them would have enough."""
    excluded: list[Excluded] = []
    hopeless: list[str] = []
    for size_gb, devices in sorted(by_memory.items(), reverse=True):
        near = [(gpu, needed) for gpu, needed in devices if needed is not None and needed <= MOST_GPUS_NAMED]
        hopeless += [gpu for gpu, needed in devices if needed is None or needed > MOST_GPUS_NAMED]
        if near:
            counts = sorted({needed for _, needed in near})
            many = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
            why = f"too little memory: about {many} of {size_gb:g} GB would be needed"
            excluded.append(Excluded(what=names_text([gpu for gpu, _ in near]), why=why))
    if hopeless:
        why = f"too little memory: more than {MOST_GPUS_NAMED} of them would be needed"
        excluded.append(Excluded(what=names_text(hopeless), why=why))
    return excluded
