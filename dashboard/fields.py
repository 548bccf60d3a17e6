"""The inputs of the page: one field for each option of a `Scenario`, by the same name. Nothing draws here."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from planner.assumptions import Owner, all_assumptions
from planner.gpus import all_gpus
from planner.models import all_models
from planner.paths import RentPath
from planner.quants import all_quants
from planner.rates import Tier
from planner.scenario import DEFAULT_MODEL, Scenario
from planner.workload import MOST_DRAFTED, MOST_GPUS, Engine, KvDtype, Method


class Kind(StrEnum):
    """The widget of a field."""

    CHOICE = "choice"  # one of a list, or nothing where the default is None
    MANY = "many"  # any of a list
    NUMBER = "number"
    COUNT = "count"
    SLIDER = "slider"
    DAY = "day"
    TEXT = "text"


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One option as a widget. Its range never changes while the page is open: that would reset the value."""

    name: str
    label: str  # with its unit
    kind: Kind
    hint: str = ""  # what an empty field means, or what a newcomer asks
    options: Callable[[], Sequence[str]] = tuple
    low: float | None = None
    high: float | None = None
    step: float | None = None
    accepts_new: bool = False
    format: str | None = None  # of a number, as in printf
    placeholder: str = "not set"

    @property
    def default(self) -> Any:
        """The value of the widget where the address says nothing."""
        return as_widget_value(self.name, getattr(_DEFAULTS, self.name))

    @property
    def help(self) -> str:
        """What stands behind the question mark: meaning, default, range seen and source."""
        record = all_assumptions().get(self.name)
        parts = [self.hint] if self.hint else []
        if record is not None:
            if record.value is not None:
                parts.append(
                    f"Default {record.value:g} {record.unit}; seen {record.low:g} to {record.high:g}."
                )
            parts.append(f"Source: {record.source}.")
        return " ".join(parts)


_DEFAULTS = Scenario(model=DEFAULT_MODEL)


def _sellable_gpus() -> Sequence[str]:
    return tuple(gpu.name for gpu in all_gpus().values() if gpu.exists)


def _currencies() -> Sequence[str]:
    from planner.currencies import all_currencies

    return tuple(all_currencies())


def _regions() -> Sequence[str]:
    from planner.tariffs import all_tariffs

    return tuple(dict.fromkeys(tariff.region_code for tariff in all_tariffs() if tariff.is_preferred))


def _providers() -> Sequence[str]:
    from pricing.registry import provider_infos

    return tuple(provider_infos())


def _settable() -> Sequence[str]:
    """Return every assumption that `--set` may change, as it would be written at its default."""
    return tuple(
        f"{record.name}={record.value:g}"
        for record in all_assumptions().values()
        if record.option is None and record.value is not None
    )


REQUESTS = (
    Field(
        name="model",
        label="Model",
        kind=Kind.CHOICE,
        options=lambda: tuple(all_models()),
        hint="Type to search. An address may also name the Hugging Face repository.",
    ),
    Field(
        name="quant",
        label="Weight format",
        kind=Kind.CHOICE,
        options=lambda: tuple(all_quants()),
        hint="Fewer bits need less memory and lose some quality; Q4_K_M is the usual compromise.",
    ),
    Field(
        name="context",
        label="Context [tokens]",
        kind=Kind.COUNT,
        low=1,
        high=10_000_000,
        step=1024,
        hint="Of one sequence: prompt and answer together, for which room is kept in memory.",
    ),
    Field(
        name="batch",
        label="Sequences at once",
        kind=Kind.COUNT,
        low=1,
        high=100_000,
        step=1,
        hint="Requests served at the same time by one replica. 1 is a single user.",
    ),
    Field(
        name="input_tokens", label="Tokens in a request", kind=Kind.COUNT, low=1, high=10_000_000, step=256
    ),
    Field(
        name="output_tokens",
        label="Tokens out of a request",
        kind=Kind.COUNT,
        low=1,
        high=10_000_000,
        step=128,
    ),
    Field(
        name="kv_dtype",
        label="Precision of the cache",
        kind=Kind.CHOICE,
        options=lambda: tuple(KvDtype),
        hint="8 bits halve the attention cache.",
    ),
    Field(
        name="engine",
        label="Serving engine",
        kind=Kind.CHOICE,
        options=lambda: ("auto", *Engine),
        hint="auto: llama.cpp for GGUF formats, else vLLM.",
    ),
    Field(
        name="method",
        label="Estimate",
        kind=Kind.CHOICE,
        options=lambda: tuple(Method),
        hint="simple repeats the arithmetic of common sizing pages: nominal parameters and peak bandwidth.",
    ),
    Field(
        name="offload",
        label="Weights in system RAM [fraction]",
        kind=Kind.NUMBER,
        low=0.0,
        high=1.0,
        step=0.05,
        hint="0.3 keeps 30 % of the weights outside the GPU, read over a slow path for every token.",
    ),
    Field(
        name="host_gb_per_s",
        label="Bandwidth of that RAM [GB/s]",
        kind=Kind.NUMBER,
        low=0.1,
        high=100_000.0,
        step=10.0,
        hint="As the GPU sees it. Two channels of DDR5 give about 60, PCIe 5.0 x16 about 54.",
    ),
)
SERVING = (
    Field(
        name="cached_input",
        label="Prompt found in the cache [fraction]",
        kind=Kind.NUMBER,
        low=0.0,
        high=0.99,
        step=0.05,
        hint="Of each request, already computed for an earlier one: a shared system prompt, a conversation.",
    ),
    Field(
        name="draft_tokens",
        label="Drafted tokens",
        kind=Kind.COUNT,
        low=1,
        high=MOST_DRAFTED,
        step=1,
        hint="Proposed by a draft of one layer (MTP, EAGLE) and verified in one step; needs an acceptance.",
    ),
    Field(
        name="acceptance",
        label="Acceptance of a drafted token",
        kind=Kind.NUMBER,
        low=0.0,
        high=0.99,
        step=0.05,
        hint="The probability that a drafted token is kept; 0.6 to 0.9 is usual.",
    ),
    Field(
        name="pipeline",
        label="Pipeline stages",
        kind=Kind.COUNT,
        low=1,
        high=MOST_GPUS,
        step=1,
        hint="Groups of GPUs with layers of their own, in servers.",
    ),
    Field(
        name="expert_ranks",
        label="Ranks with whole experts",
        kind=Kind.COUNT,
        low=1,
        high=MOST_GPUS,
        step=1,
        hint="Expert parallelism; 1: each expert is split among all GPUs.",
    ),
    Field(
        name="attention_data",
        label="Attention groups",
        kind=Kind.COUNT,
        low=1,
        high=MOST_GPUS,
        step=1,
        hint="Data-parallel attention: each group holds all of its weights, and sequences of its own.",
    ),
    Field(
        name="memory_fraction",
        label="Memory that the server fills [fraction]",
        kind=Kind.NUMBER,
        low=0.05,
        high=1.0,
        step=0.01,
        hint="Empty: the engine's own, 0.90.",
    ),
    Field(
        name="max_sequences",
        label="Sequences the server is set up for",
        kind=Kind.COUNT,
        low=1,
        high=100_000,
        step=1,
        hint="Empty: the engine's own; fewer leave more memory to the cache.",
    ),
)
MACHINE = (
    Field(
        name="gpu",
        label="GPU",
        kind=Kind.CHOICE,
        options=_sellable_gpus,
        hint="Empty: the plan looks at all of them. Chosen: only this one.",
    ),
    Field(
        name="gpus",
        label="GPUs per replica",
        kind=Kind.COUNT,
        low=1,
        high=1024,
        step=1,
        hint="Empty: the smallest number that holds the model.",
    ),
    Field(
        name="decode_tokens_per_s",
        label="Measured speed [tokens/s]",
        kind=Kind.NUMBER,
        low=0.01,
        high=1e6,
        step=1.0,
        hint="Your own measurement on the chosen GPU; it wins over the estimate for that machine only.",
    ),
)
USE = (
    Field(
        name="hours_per_day",
        label="Hours a day [h]",
        kind=Kind.SLIDER,
        low=0.1,
        high=24.0,
        step=0.1,
        format="%.1f",
        hint="Hours in which the service is there, not hours of load.",
    ),
    Field(
        name="days_per_month",
        label="Days a month",
        kind=Kind.NUMBER,
        low=0.1,
        high=31.0,
        step=1.0,
    ),
    Field(
        name="tokens_per_month",
        label="Demand [output tokens/month]",
        kind=Kind.NUMBER,
        low=1.0,
        high=1e15,
        step=1e6,
        hint="Empty: hours are presence, and the tokens of options differ. Given: each is sized to carry it.",
    ),
    Field(
        name="requests_per_s",
        label="Demand [requests/s]",
        kind=Kind.NUMBER,
        low=0.0001,
        high=1e9,
        step=0.1,
        hint="In place of tokens a month.",
    ),
    Field(
        name="peak_factor",
        label="Peak over mean load",
        kind=Kind.NUMBER,
        low=1.0,
        high=1000.0,
        step=0.5,
        hint="Only with a demand.",
    ),
    Field(
        name="load_profile",
        label="Load of the day",
        kind=Kind.TEXT,
        hint="Only with a demand: 8-18=1,18-23=0.3, or 24 numbers. In place of the peak; its hours count.",
    ),
    Field(
        name="max_ttft_ms",
        label="Longest wait for the first token [ms]",
        kind=Kind.NUMBER,
        low=1.0,
        high=1e9,
        step=100.0,
        hint="Empty: no limit. Slower machines are left out.",
    ),
    Field(
        name="max_tpot_ms",
        label="Longest wait between tokens [ms]",
        kind=Kind.NUMBER,
        low=0.01,
        high=1e9,
        step=10.0,
        hint="Empty: no limit. Slower machines are left out; 100 ms are 10 tokens/s.",
    ),
    Field(
        name="min_tokens_per_s_per_user",
        label="Slowest useful speed [tokens/s]",
        kind=Kind.NUMBER,
        low=0.0,
        high=1e6,
        step=1.0,
        hint="Slower options rank last, as too slow to talk to.",
    ),
)
OWNING = (
    Field(
        name="rent_path",
        label="Rents in the months to come",
        kind=Kind.CHOICE,
        options=lambda: tuple(RentPath),
        hint="flat; decline: down 20 % a year; shock: up 40 % within five months, then down. The break-even "
        "of all three stands below the answer.",
    ),
    Field(
        name="budget_usd",
        label="Hardware budget [USD]",
        kind=Kind.NUMBER,
        low=1.0,
        high=1e9,
        step=1000.0,
        placeholder="no limit",
        hint="Empty: no limit.",
    ),
    Field(
        name="electricity_usd_per_kwh",
        label="Electricity [USD/kWh]",
        kind=Kind.NUMBER,
        low=0.0001,
        high=100.0,
        step=0.01,
        format="%.3f",
        hint="Leave it as it is where a region is chosen below: its dated tariff counts then.",
    ),
    Field(
        name="electricity_region",
        label="Electricity region",
        kind=Kind.CHOICE,
        options=_regions,
        accepts_new=True,
        hint="A dated tariff, in place of a price of your own. US-CA:industrial names the sector too.",
    ),
    Field(
        name="owner",
        label="Who owns",
        kind=Kind.CHOICE,
        options=lambda: tuple(Owner),
        hint="Sets the defaults of owning. home: no staff cost, no cooling overhead.",
    ),
    Field(
        name="own",
        label="Hardware already there",
        kind=Kind.TEXT,
        hint="For instance 2x RTX 4090: only its running cost counts.",
    ),
    Field(
        name="set",
        label="Other assumptions",
        kind=Kind.MANY,
        options=_settable,
        accepts_new=True,
        hint="NAME=VALUE, for instance purchase_usd=25000. The page Method lists every one with its source.",
    ),
)
PRICES = (
    Field(name="provider", label="Providers", kind=Kind.MANY, options=_providers, hint="Empty: all."),
    Field(name="tier", label="Tiers", kind=Kind.MANY, options=lambda: tuple(Tier), hint="Empty: all."),
    Field(
        name="region",
        label="Regions",
        kind=Kind.MANY,
        accepts_new=True,
        hint="Empty: all. Type the region as the provider calls it.",
    ),
    Field(
        name="max_price_age",
        label="Oldest verified price [days]",
        kind=Kind.NUMBER,
        low=0.0,
        high=36500.0,
        step=1.0,
    ),
    Field(name="as_of", label="Prices as they stood on", kind=Kind.DAY, hint="Empty: now."),
    Field(
        name="currency",
        label="Currency shown",
        kind=Kind.CHOICE,
        options=_currencies,
        hint="At a dated reference rate; prices are without VAT.",
    ),
)
GROUPS: Mapping[str, Sequence[Field]] = {
    "Model and requests": REQUESTS,
    "Machine": MACHINE,
    "Serving in detail": SERVING,
    "Use and demand": USE,
    "Owning": OWNING,
    "Prices": PRICES,
}
FIELDS: Mapping[str, Field] = {field.name: field for group in GROUPS.values() for field in group}


def as_widget_value(name: str, value: Any) -> Any:
    """Return a scenario's value in the form in which its widget holds it."""
    if name == "set":
        return [f"{key}={int(number) if number.is_integer() else number}" for key, number in value]
    return list(value) if isinstance(value, tuple) else value


_CODE = re.compile(r"(`[^`]*`)")
_OPTION = re.compile(r"(?<![\w-])--([a-z][a-z-]*)")


def with_controls(text: str) -> str:
    """Return a sentence of the command line with the page's controls in place of options; commands stay."""
    parts = _CODE.split(text)
    return "".join(part if number % 2 else _OPTION.sub(_control, part) for number, part in enumerate(parts))


def _control(option: "re.Match[str]") -> str:
    field = FIELDS.get(option[1].replace("-", "_"))
    return option[0] if field is None else f'"{field.label}"'
