"""The speed of one replica: estimated, stated by a user, or corrected by own measurements."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from planner.measurements.corrections import Correction
from planner.workload import Method, Workload


class Bound(StrEnum):
    """What limits the decode step."""

    MEMORY = "memory"
    COMPUTE = "compute"
    INTERCONNECT = "interconnect"
    HOST = "host"


class SpeedSource(StrEnum):
    """Where a speed comes from."""

    ESTIMATED = "estimated"
    MEASURED = "measured"


@dataclass(frozen=True, slots=True, kw_only=True)
class Speed:
    """
    Speed of one replica; the definitions are those of docs/interface.md.

    `source` is that of a decode step, `aggregate_source` that of all sequences and of the time between
    tokens. Prompts and the first token are always estimated.
    """

    decode_tokens_per_s: float
    decode_low: float
    decode_high: float
    aggregate_tokens_per_s: float
    aggregate_low: float
    aggregate_high: float
    prefill_tokens_per_s: float
    prefill_low: float
    prefill_high: float
    ttft_ms: float
    ttft_low: float
    ttft_high: float
    tpot_ms: float
    tpot_low: float
    tpot_high: float
    bound: Bound
    source: SpeedSource = SpeedSource.ESTIMATED
    aggregate_source: SpeedSource = SpeedSource.ESTIMATED
    has_ranges: bool = True  # False: nobody measured the errors of the method; ends are values

    def ends(self, quantity: str) -> tuple[float, float] | None:
        """Return the ends of the range of `decode`, `aggregate`, `prefill`, `ttft` or `tpot`, or None."""
        low, high = getattr(self, f"{quantity}_low"), getattr(self, f"{quantity}_high")
        is_of_steps = quantity in ("decode", "aggregate", "tpot")
        is_stated = is_of_steps and self.source is SpeedSource.MEASURED
        return (low, high) if self.has_ranges or is_stated or low < high else None

    def to_document(self) -> Mapping[str, object]:
        """Return the `speed` part of `breakeven.size/1`; ends of ranges are null where there are none."""
        figures = {
            "decode": "decode_tokens_per_s",
            "aggregate": "aggregate_tokens_per_s",
            "prefill": "prefill_tokens_per_s",
            "ttft": "ttft_ms",
            "tpot": "tpot_ms",
        }
        values: dict[str, object] = {}
        for quantity, name in figures.items():
            low, high = self.ends(quantity) or (None, None)
            values |= {name: getattr(self, name), f"{quantity}_low": low, f"{quantity}_high": high}
        return {
            **values,
            "bound": str(self.bound),
            "source": str(self.source),
            "aggregate_source": str(self.aggregate_source),
        }


def request_ms(ttft_ms: float, tpot_ms: float, output_tokens: float) -> float:
    """Return the time from sending a request to its last token. [ms]"""
    return ttft_ms + (output_tokens - 1) * tpot_ms


def stated(
    work: Workload, speed: Speed, decode_tokens_per_s: float, estimated_range: tuple[float, float] | None
) -> Speed:
    """
    Return a speed in which a decode step measured, or estimated, elsewhere takes the place of ours.

    What the prompts of others add to the time between tokens stays, with its range, and so does the time to
    the first: these are estimates still, and with them what all sequences get. Where no prompt is reckoned
    with, that is the stated step times the batch.
    """
    low, high = estimated_range or (decode_tokens_per_s, decode_tokens_per_s)
    others_ms = max(0.0, speed.tpot_ms - 1e3 / speed.decode_tokens_per_s)
    tpot_ms = 1e3 / decode_tokens_per_s + others_ms
    aggregate = decode_tokens_per_s * work.batch
    if work.method is Method.CALIBRATED:
        request_s = request_ms(speed.ttft_ms, tpot_ms, work.output_tokens) / 1e3
        aggregate = work.batch * work.output_tokens / request_s
    source = SpeedSource.ESTIMATED if estimated_range else SpeedSource.MEASURED
    is_step_only = work.method is not Method.CALIBRATED
    change = aggregate / speed.aggregate_tokens_per_s
    return replace(
        speed,
        decode_tokens_per_s=decode_tokens_per_s,
        decode_low=low,
        decode_high=high,
        aggregate_tokens_per_s=aggregate,
        aggregate_low=speed.aggregate_low * change,
        aggregate_high=speed.aggregate_high * change,
        tpot_ms=tpot_ms,
        tpot_low=1e3 / high + others_ms * speed.tpot_low / speed.tpot_ms,
        tpot_high=1e3 / low + others_ms * speed.tpot_high / speed.tpot_ms,
        source=source,
        aggregate_source=source if is_step_only else SpeedSource.ESTIMATED,
    )


def corrected(work: Workload, speed: Speed, correction: Correction) -> Speed:
    """
    Return a speed after own measurements: every figure by its factor, every range by the doubt that is left.

    Tokens of all follow from the corrected times of a request.
    """
    decode, prompt = correction.decode, correction.prompt
    changed = replace(
        speed,
        **_scaled(speed, "decode", "tokens_per_s", decode.factor, decode.doubt),
        **_scaled(speed, "prefill", "tokens_per_s", prompt.factor, prompt.doubt),
        **_scaled(speed, "tpot", "ms", 1.0 / decode.factor, decode.doubt),
        **_scaled(speed, "ttft", "ms", 1.0 / prompt.factor, prompt.doubt),
    )
    before, after = (request_ms(one.ttft_ms, one.tpot_ms, work.output_tokens) for one in (speed, changed))
    doubt = max(decode.doubt, prompt.doubt)
    return replace(changed, **_scaled(speed, "aggregate", "tokens_per_s", before / after, doubt))


def _scaled(speed: Speed, quantity: str, unit: str, factor: float, doubt: float) -> dict[str, Any]:
    """Return one figure and the ends of its range."""
    value: float = getattr(speed, f"{quantity}_{unit}")
    ends = {
        f"{quantity}_{end}": value * factor * (getattr(speed, f"{quantity}_{end}") / value) ** doubt
        for end in ("low", "high")
    }
    return {f"{quantity}_{unit}": value * factor, **ends}
