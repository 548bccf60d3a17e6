"""How far estimates may be off: what 80 % of the measurements left out of the fit were within."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType

from planner.catalogue import read_text
from planner.catalogues.gpus import Gpu
from planner.serving.devices import range_factor
from planner.workload import Engine

QUANTITIES = ("decode", "aggregate", "prefill", "ttft", "tpot")


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """From an estimate to the ends of its range."""

    low: float  # the low end, as a share of the estimate
    high: float

    def widened(self, factor: float) -> "Span":
        """Return the span of thinner evidence: both ends further away, as ratios."""
        return Span(low=self.low**factor, high=self.high**factor)


NO_SPAN = Span(low=1.0, high=1.0)


@cache
def spans() -> Mapping[tuple[str, str], Span]:
    """Return the spans by kind of engine (`server`, `llama`) and quantity."""
    tables = tomllib.loads(read_text("fitted.toml"))["ranges"]
    found = {
        (kind, quantity): Span(low=float(table[quantity][0]), high=float(table[quantity][1]))
        for kind, table in tables.items()
        for quantity in QUANTITIES
    }
    return MappingProxyType(found)


def span_of(gpu: Gpu, engine: Engine, quantity: str) -> Span:
    """Return the span of one quantity on one device, wider where the evidence is thin."""
    kind = "llama" if engine is Engine.LLAMA_CPP else "server"
    return spans()[kind, quantity].widened(range_factor(gpu, engine))


def decode_span_of(gpu: Gpu, engine: Engine, batch: int) -> Span:
    """
    Return the span of a decode speed: that of single streams, or of many in servers.

    Of many, only the time per token was measured; its reciprocal is the speed.
    """
    if batch == 1 or engine is Engine.LLAMA_CPP:
        return span_of(gpu, engine, "decode")
    times = span_of(gpu, engine, "tpot")
    return Span(low=1.0 / times.high, high=1.0 / times.low)
