"""How a sizing reads: one sentence, memory, speed, notes."""

from collections.abc import Mapping, Sequence
from typing import Any

from dashboard import tables
from dashboard.commands.evidence import differences_list, results_table
from planner.catalogues.models import Model
from planner.catalogues.provenance import provenance
from planner.evidence import NEAR_DISTANCE
from planner.serving.fitting import Remedy
from planner.serving.speeds import SpeedSource
from planner.serving.usability import verdict
from planner.sizing import Sizing
from planner.units import GB, GIB

DEFINITIONS = (
    "decode: one sequence in a pure decode step; "
    "the other speeds: the whole batch always in flight, prompts included"
)


def machine_name(sizing: Sizing) -> str:
    """Return `2x H100 SXM`."""
    return f"{sizing.machine.gpu_count}x {sizing.machine.gpu.name}"


def sentence(sizing: Sizing) -> str:
    """Say in one sentence whether it fits, and how fast it is."""
    memory, work = sizing.memory.to_document(), sizing.workload
    what = f"{work.model.name} in {work.quant.name}"
    where = machine_name(sizing)
    needed, usable = tables.gib(memory["total_gib"]), tables.gib(memory["usable_gib"])
    if sizing.refusal is not None:
        return f"{what} does not run on {where}: {sizing.refusal}."
    if not sizing.memory.fits:
        spilled = "" if sizing.speed is None else f"; spilling it makes {_speed(sizing)}"
        return f"{what} does not fit on {where}: {needed} GiB needed, {usable} GiB usable{spilled}."
    fits = f"{what} fits on {where}: {needed} of {usable} GiB usable"
    return f"{fits}." if sizing.speed is None else f"{fits}, {_speed(sizing)} for one sequence."


def details(sizing: Sizing, near: Sequence[Mapping[str, Any]] = (), would_fit: Sequence[Remedy] = ()) -> str:
    """Return the tables of memory and speed, what was measured nearest, the notes and the footnotes."""
    speed = "" if sizing.speed is None else _speed_table(sizing)
    notes = tables.bullets(sizing.notes)
    parts = (
        _setting(sizing),
        _memory_table(sizing),
        _remedies(would_fit),
        speed,
        _evidence(near),
        _model(sizing.workload.model),
        notes,
    )
    return tables.paragraphs(*parts, _footnote([sizing]))


def _remedies(would_fit: Sequence[Remedy]) -> str:
    if not would_fit:
        return ""
    lines = [
        f"{remedy.text} ({tables.gib(remedy.headroom_bytes / GIB)} GiB to spare)" for remedy in would_fit
    ]
    return f"it would fit with any of:\n{tables.bullets(lines)}"


def _model(model: Model) -> str:
    """Say what is known of the model, from where, and what is not."""
    known = provenance(model)
    kinds = ", ".join(f"{count} {kind}" for kind, count in known.layers.items())
    if known.layers_without_mixer:
        kinds += f", {known.layers_without_mixer} without a mixer"
    active = "" if model.moe is None else f", {tables.params(model.active_params)} active"
    size = "not known, computed from its shape"
    if known.checkpoint_bytes is not None:
        size = f"{known.checkpoint_bytes / GB:.2f} GB ({known.checkpoint_basis or 'published'})"
    lines = [
        f"model: {model.name}, {tables.params(model.main_params)} parameters{active} ({known.params_basis})",
        f"layers: {kinds} (known from: {known.shape_from or known.evidence})",
        f"its files: {size}",
        f"not known: {', '.join(known.unknown)}" if known.unknown else "",
        f"source: {known.sources[0]}" if known.sources else "",
    ]
    return "\n".join(line for line in lines if line)


def _evidence(near: Sequence[Mapping[str, Any]]) -> str:
    """Return the measurements that are near; the very configuration's own comes first and is named so."""
    if not near:
        return ""
    near = [one for one in near if one["distance"] <= NEAR_DISTANCE]
    if not near:
        return "nothing near it was measured; `breakeven evidence` lists what is nearest"
    same = "measured, this very configuration and its neighbours:"
    title = same if any(one["is_same"] for one in near) else "measured nearest to it (`breakeven evidence`):"
    return tables.paragraphs(f"{title}\n{results_table(near)}", differences_list(near))


def rows_table(sizings: Sequence[Sizing], first: str, labels: Sequence[str]) -> str:
    """Return one line a sizing: memory, whether it fits, speed."""
    headers = (
        first,
        "weights GiB",
        "KV GiB",
        "total GiB",
        "usable GiB",
        "fits",
        "decode tok/s",
        "aggregate tok/s",
        "TTFT ms",
        "bound",
    )
    rows = [
        (label, *_memory_cells(sizing), *_speed_cells(sizing))
        for label, sizing in zip(labels, sizings, strict=True)
    ]
    refused = {f"{each.workload.engine} does not start: {each.refusal}" for each in sizings if each.refusal}
    return tables.paragraphs(
        tables.table(headers, rows, left=(0, 9)), "; ".join(sorted(refused)), _footnote(sizings)
    )


def _memory_cells(sizing: Sizing) -> tuple[str | None, ...]:
    memory = sizing.memory.to_document()
    amounts = (memory[name] for name in ("weights_gib", "kv_cache_gib", "total_gib", "usable_gib"))
    return (*map(tables.gib, amounts), tables.yes_no(sizing.memory.fits))


def _speed_cells(sizing: Sizing) -> tuple[str | None, ...]:
    speed = sizing.speed
    if speed is None:
        return (None, None, None, None)
    step, whole = (one is SpeedSource.ESTIMATED for one in (speed.source, speed.aggregate_source))
    return (
        tables.starred(tables.tokens_per_s(speed.decode_tokens_per_s), step),
        tables.starred(tables.tokens_per_s(speed.aggregate_tokens_per_s), whole),
        tables.starred(tables.number(speed.ttft_ms)),
        str(speed.bound),
    )


def _setting(sizing: Sizing) -> str:
    work = sizing.workload
    offload = f", {tables.share(work.offload_fraction)} of the weights offloaded" * bool(
        work.offload_fraction
    )
    serving = "".join(f", {name.replace('_', ' ')} {value:g}" for name, value in work.serving.items())
    return (
        f"context {work.context_tokens:,} tokens, batch {work.batch}, KV cache {work.kv_dtype}, "
        f"engine {work.engine}, method {work.method}{offload}{serving}"
    )


def _memory_table(sizing: Sizing) -> str:
    memory = sizing.memory.to_document()
    parts = (
        ("weights", "weights_gib"),
        ("of them spilling to host" if sizing.memory.spilled_bytes else "offloaded to host", "offloaded_gib"),
        ("KV cache", "kv_cache_gib"),
        ("fixed state", "state_gib"),
        ("runtime", "runtime_gib"),
        ("total needed" if sizing.memory.spilled_bytes else "total on GPU", "total_gib"),
        ("usable", "usable_gib"),
        ("headroom", "headroom_gib"),
    )
    optional = {"offloaded_gib", "state_gib"}
    rows = [(title, tables.gib(memory[key])) for title, key in parts if memory[key] or key not in optional]
    context, batch = sizing.memory.max_context_tokens, sizing.memory.max_batch
    most = f"largest batch: {tables.number(batch)}" if batch else "not even batch 1 fits at this context"
    limits = f"largest context that fits: {tables.number(context)} tokens; {most}" if context else ""
    return tables.paragraphs(tables.table(("memory", "GiB"), rows), limits)


def _speed_table(sizing: Sizing) -> str:
    speed = sizing.speed
    assert speed is not None
    step, whole = (one is SpeedSource.ESTIMATED for one in (speed.source, speed.aggregate_source))
    figures = (
        ("decode, one sequence, tok/s", step, speed.decode_tokens_per_s, "decode"),
        ("all sequences, output tok/s", whole, speed.aggregate_tokens_per_s, "aggregate"),
        ("prefill, one prompt, tok/s", True, speed.prefill_tokens_per_s, "prefill"),
        ("time to first token, ms", True, speed.ttft_ms, "ttft"),
        ("time per further token, ms", whole, speed.tpot_ms, "tpot"),
    )
    show = tables.tokens_per_s  # one decimal below 100 suits milliseconds as well

    def between(quantity: str) -> str:
        low, high = speed.ends(quantity) or (0.0, 0.0)
        return "" if low == high else f"{show(low)} - {show(high)}"

    rows = [
        (title, tables.starred(show(value), mark), between(quantity))
        for title, mark, value, quantity in figures
    ]
    none = "" if speed.has_ranges else "range: none; how far the simple method is off was not measured\n"
    good_for = verdict(speed)
    limit = f"limited by: {speed.bound} ({speed.source})\ngood for: {good_for.usability} ({good_for.reason})"
    return tables.paragraphs(tables.table(("speed", "", "range"), rows), none + limit)


def _speed(sizing: Sizing) -> str:
    speed = sizing.speed
    assert speed is not None
    mark = speed.source is SpeedSource.ESTIMATED
    return f"{tables.starred(tables.tokens_per_s(speed.decode_tokens_per_s), mark)} tok/s"


def _footnote(sizings: Sequence[Sizing]) -> str:
    if all(sizing.speed is None for sizing in sizings):
        return ""
    return f"{tables.ESTIMATE_NOTE}; {DEFINITIONS}"
