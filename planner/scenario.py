"""
What a user asks: every option of a plan in one record.

Field names are those of the command line's options, of the query keys and of the widgets.
"""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import date
from typing import Any

import tomli_w

from planner.assumptions import Assumptions, Owner, parse_settings
from planner.catalogue import close_matches
from planner.catalogues.models import Model
from planner.catalogues.quants import QuantFormat
from planner.errors import InvalidScenario, UnknownName
from planner.fields import choice, count, day, name_list, number, words
from planner.rates import Tier
from planner.reading.facts import parse_facts, parse_params
from planner.supply.load import ALLOWED, LoadProfile
from planner.supply.paths import RentPath
from planner.units import DAYS_PER_MONTH, HOURS_PER_MONTH
from planner.workload import MOST_DRAFTED, MOST_GPUS, Engine, KvDtype, Layout, Method, Workload, engine_for

SCENARIO_VERSION = 1
DEFAULT_MODEL = "qwen3-coder-480b-a35b"
DEFAULT_QUANT = "Q4_K_M"
# The sizing page's example.
DEFAULT_HOURS_PER_DAY = 4.0
# The sizing page's tariff; --electricity-region takes a dated one.
DEFAULT_USD_PER_KWH = 0.175
# Of one sequence: the smallest model of the catalogue on eight B200 has its ceiling at 980,558 tokens/s
# (`planner.serving.ceiling`).
MOST_TOKENS_PER_S = 1e6
# Retail tariffs of the catalogue end at about 0.5 USD/kWh; above 2 somebody probably typed cents.
DOUBTFUL_USD_PER_KWH = 2.0

_NEXT_FACT = re.compile(r",(?=\s*[A-Za-z_]\w*\s*=)")
_OWNED = re.compile(r"(?:([+-]?\d+)\s*[x×]\s*)?(.*\S)", re.IGNORECASE)


def _owned(name: str, value: Any) -> str:
    text = words('hardware such as "2x RTX 4090"')(name, value)
    Owned.parse(text)
    return str(text)


def _load_profile(name: str, value: Any) -> str:
    text = str(words(ALLOWED)(name, value))
    LoadProfile.parse(text, name)
    return text


def _params(name: str, value: Any) -> str | None:
    if value is None:
        return None
    text = f"{value:.0f}" if isinstance(value, float) and value.is_integer() else str(value).strip()
    parse_params(text)
    return text


def _facts(name: str, value: Any) -> tuple[str, ...]:
    if isinstance(value, str):
        value = [item for item in _NEXT_FACT.split(value) if item.strip()]
    texts = [str(item).strip() for item in value]
    parse_facts(texts)
    return tuple(sorted(texts))


def _settings(name: str, value: Any) -> tuple[tuple[str, float], ...]:
    if isinstance(value, str):
        value = [value]
    if isinstance(value, Mapping):
        value = list(value.items())
    texts = [item if isinstance(item, str) else f"{item[0]}={item[1]}" for item in value]
    return tuple(sorted(parse_settings(texts).items()))


@dataclass(frozen=True, slots=True)
class Owned:
    """Hardware that is there already."""

    gpu: str  # as typed
    gpu_count: int

    @staticmethod
    def parse(text: str) -> "Owned":
        """
        Read `2x RTX 4090`; without a number it is one.

        Raises:
            InvalidScenario: if there is no name, or none of the hardware.
        """
        match = _OWNED.fullmatch(text.strip())
        if match is None or match[2].lower() in {"x", "×"}:
            raise InvalidScenario("own", text, 'hardware such as "2x RTX 4090"')
        if not 1 <= int(match[1] or 1) <= MOST_GPUS:
            raise InvalidScenario("own", text, f'hardware such as "2x RTX 4090", 1 to {MOST_GPUS} of it')
        return Owned(gpu=match[2].strip(), gpu_count=int(match[1] or 1))


_MONEY = "an amount above 0"
_TOKENS = "at least 1 token"
_LIMIT_MS = "a time above 0 ms"
_GROUPS = f"1 to {MOST_GPUS} groups of GPUs"


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """One question. A value that cannot be used raises `InvalidScenario`, which names the option."""

    model: str = field(metadata={"parse": words("a model (`breakeven models`), or a file of one")})
    params: str | None = field(default=None, metadata={"parse": _params})  # of a model in a file
    fact: tuple[str, ...] = field(default=(), metadata={"parse": _facts})  # fields that its file lacks
    gpu: str | None = field(default=None, metadata={"parse": words("a GPU (`breakeven gpus`)")})
    gpus: int | None = field(
        default=None, metadata={"parse": count(f"1 to {MOST_GPUS} GPUs", up_to=MOST_GPUS)}
    )
    quant: str = field(default=DEFAULT_QUANT, metadata={"parse": words("a format (`breakeven quants`)")})
    context: int = field(default=8192, metadata={"parse": count(_TOKENS)})
    batch: int = field(default=1, metadata={"parse": count("at least 1 sequence")})
    kv_dtype: str = field(default="fp16", metadata={"parse": choice(KvDtype)})
    engine: str = field(default="auto", metadata={"parse": choice(["auto", *Engine])})
    method: str = field(default="calibrated", metadata={"parse": choice(Method)})
    offload: float = field(default=0.0, metadata={"parse": number("a fraction from 0 to 1", up_to=1.0)})
    host_gb_per_s: float | None = field(
        default=None, metadata={"parse": number("a bandwidth above 0 GB/s", above=0.0)}
    )
    input_tokens: int = field(default=4096, metadata={"parse": count(_TOKENS)})
    output_tokens: int = field(default=512, metadata={"parse": count(_TOKENS)})
    cached_input: float = field(
        default=0.0, metadata={"parse": number("a fraction from 0 up, below 1", up_to=1.0, below=1.0)}
    )
    draft_tokens: int | None = field(
        default=None, metadata={"parse": count(f"1 to {MOST_DRAFTED} tokens", up_to=MOST_DRAFTED)}
    )
    acceptance: float | None = field(
        default=None, metadata={"parse": number("a probability from 0 up, below 1", up_to=1.0, below=1.0)}
    )
    pipeline: int = field(default=1, metadata={"parse": count(_GROUPS, up_to=MOST_GPUS)})
    expert_ranks: int = field(default=1, metadata={"parse": count(_GROUPS, up_to=MOST_GPUS)})
    attention_data: int = field(default=1, metadata={"parse": count(_GROUPS, up_to=MOST_GPUS)})
    memory_fraction: float | None = field(
        default=None, metadata={"parse": number("a fraction above 0 and up to 1", above=0.0, up_to=1.0)}
    )
    max_sequences: int | None = field(default=None, metadata={"parse": count("at least 1 sequence")})
    sizing: str | None = field(default=None, metadata={"parse": words("a file made by size or a benchmark")})
    decode_tokens_per_s: float | None = field(
        default=None,
        metadata={"parse": number("a speed above 0 tokens/s", above=0.0, up_to=MOST_TOKENS_PER_S)},
    )
    hours_per_day: float = field(
        default=DEFAULT_HOURS_PER_DAY,
        metadata={"parse": number("hours above 0 and up to 24", above=0.0, up_to=24.0)},
    )
    days_per_month: float = field(
        default=DAYS_PER_MONTH, metadata={"parse": number("days above 0 and up to 31", above=0.0, up_to=31)}
    )
    electricity_usd_per_kwh: float = field(  # the region's where one is named
        default=DEFAULT_USD_PER_KWH,
        metadata={"parse": number("USD/kWh from 0 to 100", up_to=100.0)},
    )
    electricity_region: str | None = field(
        default=None, metadata={"parse": words("a region such as DE or US-CA:commercial")}
    )
    rent_path: str = field(default="flat", metadata={"parse": choice(RentPath)})
    budget_usd: float | None = field(default=None, metadata={"parse": number(_MONEY, above=0.0)})
    owner: str = field(default="office", metadata={"parse": choice(Owner)})
    own: str | None = field(default=None, metadata={"parse": _owned})
    tokens_per_month: float | None = field(
        default=None, metadata={"parse": number("output tokens above 0", above=0.0)}
    )
    requests_per_s: float | None = field(
        default=None, metadata={"parse": number("requests above 0", above=0.0, up_to=1e9)}
    )
    peak_factor: float | None = field(
        default=None, metadata={"parse": number("a factor from 1 to 1000", at_least=1.0, up_to=1000.0)}
    )
    load_profile: str | None = field(default=None, metadata={"parse": _load_profile})
    max_ttft_ms: float | None = field(default=None, metadata={"parse": number(_LIMIT_MS, above=0.0)})
    max_tpot_ms: float | None = field(default=None, metadata={"parse": number(_LIMIT_MS, above=0.0)})
    min_tokens_per_s_per_user: float = field(
        default=10.0, metadata={"parse": number("a speed of at least 0 tokens/s", up_to=MOST_TOKENS_PER_S)}
    )
    provider: tuple[str, ...] = field(default=(), metadata={"parse": name_list("names of providers")})
    tier: tuple[str, ...] = field(default=(), metadata={"parse": name_list("names of tiers", Tier)})
    region: tuple[str, ...] = field(default=(), metadata={"parse": name_list("names of regions")})
    max_price_age: float = field(
        default=14.0, metadata={"parse": number("an age of at least 0 days", up_to=36500.0)}
    )
    as_of: date | None = field(default=None, metadata={"parse": day})
    currency: str = field(default="USD", metadata={"parse": words("a currency code such as EUR")})
    set: tuple[tuple[str, float], ...] = field(default=(), metadata={"parse": _settings})

    def __post_init__(self) -> None:
        for option in fields(self):
            value = getattr(self, option.name)
            if value is not None or option.default is not None:
                object.__setattr__(self, option.name, option.metadata["parse"](option.name, value))
        object.__setattr__(self, "currency", self.currency.upper())
        self._check_together()

    def _check_together(self) -> None:
        if self.draft_tokens is not None and self.acceptance is None:
            allowed = "acceptance with it: the probability that a drafted token is kept"
            raise InvalidScenario("draft_tokens", self.draft_tokens, allowed)
        if self.acceptance is not None and self.draft_tokens is None:
            allowed = f"draft_tokens with it: how many a step verifies, 1 to {MOST_DRAFTED}"
            raise InvalidScenario("acceptance", self.acceptance, allowed)
        if self.currency != "USD":
            from planner.catalogues.currencies import usd_per_unit

            usd_per_unit(self.currency)
        if self.electricity_region is not None and self.electricity_usd_per_kwh != DEFAULT_USD_PER_KWH:
            raise InvalidScenario(
                "electricity_region",
                self.electricity_region,
                "either a region or electricity_usd_per_kwh, not both",
            )
        self._check_path()
        if self.tokens_per_month is not None and self.requests_per_s is not None:
            raise InvalidScenario(
                "requests_per_s", self.requests_per_s, "either requests_per_s or tokens_per_month, not both"
            )
        if self.peak_factor is not None and not self.has_demand:
            raise InvalidScenario(
                "peak_factor", self.peak_factor, "tokens_per_month or requests_per_s with it: the mean"
            )
        if self.load_profile is not None:
            self._check_profile(self.load_profile)

    def _check_path(self) -> None:
        """Refuse a path of rents that a value of --set turns into another."""
        given = dict(self.set)
        if self.rent_path == RentPath.DECLINE and given.get("rent_change_per_year", -1.0) >= 0.0:
            raise InvalidScenario(
                "rent_path",
                self.rent_path,
                "flat with --set rent_change_per_year of 0 or more: rents do not fall",
            )
        if self.rent_path == RentPath.SHOCK and given.get("rent_shock_fraction", 1.0) == 0.0:
            raise InvalidScenario(
                "rent_path",
                self.rent_path,
                "decline or flat with --set rent_shock_fraction=0: there is no shock",
            )

    def _check_profile(self, text: str) -> None:
        hours = LoadProfile.parse(text).service_hours_per_day
        if not self.has_demand:
            raise InvalidScenario(
                "load_profile", text, "tokens_per_month or requests_per_s with it: the mean"
            )
        if self.peak_factor is not None:
            raise InvalidScenario("load_profile", text, "either load_profile or peak_factor, not both")
        if self.hours_per_day not in (DEFAULT_HOURS_PER_DAY, float(hours)):
            raise InvalidScenario(
                "hours_per_day", self.hours_per_day, f"none, or the {hours} hours that load_profile has"
            )

    @property
    def limits_latency(self) -> bool:
        """Whether the time to the first or to a further token is limited."""
        return self.max_ttft_ms is not None or self.max_tpot_ms is not None

    @property
    def profile(self) -> LoadProfile | None:
        """The shape of a day's load, where one is given."""
        return None if self.load_profile is None else LoadProfile.parse(self.load_profile)

    @property
    def service_hours_per_day(self) -> float:
        """Hours in which the service is there: those of the profile, where one is given. [h/d]"""
        profile = self.profile
        return self.hours_per_day if profile is None else float(profile.service_hours_per_day)

    @property
    def has_demand(self) -> bool:
        """Whether it says how much is to be served; else its hours are presence."""
        return self.tokens_per_month is not None or self.requests_per_s is not None

    @property
    def hours_per_month(self) -> float:
        """Hours in which the service is there; always on is 730. [h/month]"""
        return self.month_of(self.service_hours_per_day)

    def month_of(self, hours_per_day: float) -> float:
        """Return the hours of a month for hours a day; always on is 730. [h/month]"""
        if hours_per_day == 24.0 and self.days_per_month == DAYS_PER_MONTH:
            return HOURS_PER_MONTH
        return hours_per_day * self.days_per_month

    @property
    def assumptions(self) -> Assumptions:
        """The assumptions in use: those of the owner profile and the path of rents, and what `--set` says."""
        return Assumptions(owner=Owner(self.owner), overrides=dict(self.set), path=RentPath(self.rent_path))

    @property
    def warnings(self) -> tuple[str, ...]:
        """What is allowed and probably not meant."""
        warnings = []
        tariff = self.electricity_usd_per_kwh
        if tariff > DOUBTFUL_USD_PER_KWH:
            warnings.append(
                f"electricity_usd_per_kwh: {tariff:g} USD/kWh is far above any retail tariff; "
                f"were cents meant, that is {tariff / 100:g}?"
            )
        if tariff == 0.0:
            warnings.append("electricity_usd_per_kwh: 0 USD/kWh, so no energy of an owned machine is counted")
        if self.context < self.input_tokens + self.output_tokens:
            warnings.append(
                f"context: {self.context:,} tokens do not hold a request of {self.input_tokens:,} in and "
                f"{self.output_tokens:,} out"
            )
        return tuple(warnings)

    def workload(self, model: Model, quant: QuantFormat) -> Workload:
        """Return what is asked of one replica."""
        return Workload(
            model=model,
            quant=quant,
            context_tokens=self.context,
            batch=self.batch,
            kv_dtype=KvDtype(self.kv_dtype),
            engine=engine_for(self.engine, quant),
            method=Method(self.method),
            offload_fraction=self.offload,
            host_gb_per_s=self.host_gb_per_s,
            input_tokens=self.input_tokens,
            output_tokens=self.output_tokens,
            cached_input=self.cached_input,
            drafted_tokens=self.draft_tokens or 0,
            acceptance=self.acceptance,
            layout=Layout(
                pipeline=self.pipeline, expert_ranks=self.expert_ranks, attention_data=self.attention_data
            ),
            memory_fraction=self.memory_fraction,
            most_sequences=self.max_sequences,
        )

    @classmethod
    def option_names(cls) -> tuple[str, ...]:
        """Return the names of all options, in their order."""
        return tuple(option.name for option in fields(cls))

    @classmethod
    def from_mapping(cls, options: Mapping[str, Any]) -> "Scenario":
        """
        Return the scenario with these options, as text or values; None and absent ones take the default.

        Raises:
            UnknownName: if an option is unknown.
            InvalidScenario: if a value cannot be used, or no model is named.
        """
        for name in options:
            if name not in cls.option_names():
                raise UnknownName("option", name, close_matches(name, cls.option_names()))
        given = {name: value for name, value in options.items() if value is not None}
        if "model" not in given:
            raise InvalidScenario("model", None, "a model (`breakeven models`)")
        return cls(**given)

    @classmethod
    def from_query(
        cls, params: Mapping[str, Any], default_model: str = DEFAULT_MODEL
    ) -> tuple["Scenario", list[str]]:
        """
        Return the scenario that an address stands for, and complaints about what could not be used.

        Unknown keys and bad values fall back to the default, and are reported.

        Args:
            params: Query parameters; a repeated key may be a list.
            default_model: The model where the address names none.
        """
        complaints: list[str] = []
        known: dict[str, Any] = {"model": default_model}
        for name, value in params.items():
            if name == "v":
                if str(value) != str(SCENARIO_VERSION):
                    complaints.append(f"v: {value!r} is a form of address that this version does not know")
            elif name not in cls.option_names():
                complaints.append(f"{name}: not an option, ignored")
            elif value not in ("", None, [], ()):
                known[name] = value if not isinstance(value, list) or len(value) > 1 else value[0]
        while True:
            try:
                return cls(**known), complaints
            except InvalidScenario as error:
                name = error.field if error.field in known else "set"
                complaint = f"{error}; the default is used"
            except UnknownName as error:
                name = "currency" if error.kind == "currency" else "set"
                complaint = f"{error}; the default is used"
            complaints.append(complaint)
            if known.pop(name, None) is None:
                return cls(model=default_model), complaints
            known.setdefault("model", default_model)

    @classmethod
    def from_toml(cls, text: str) -> "Scenario":
        """
        Return the scenario saved in a file.

        Raises:
            InvalidScenario, UnknownName: if it is no TOML, of another version, or holds a bad option.
        """
        try:
            table = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise InvalidScenario("scenario", str(error), "a TOML file as --scenario saves it") from error
        version = table.pop("v", SCENARIO_VERSION)
        if version != SCENARIO_VERSION:
            raise InvalidScenario("v", version, f"a scenario of version {SCENARIO_VERSION}")
        return cls.from_mapping(table)

    def changed(self) -> dict[str, Any]:
        """Return the options that are not at their default, the model first."""
        return {
            option.name: getattr(self, option.name)
            for option in fields(self)
            if option.name == "model" or getattr(self, option.name) != option.default
        }

    def to_query(self) -> dict[str, str]:
        """Return the query parameters that stand for this scenario; defaults are left out."""
        query = {name: _query_text(value) for name, value in self.changed().items()}
        return {**query, "v": str(SCENARIO_VERSION)}

    def to_toml(self) -> str:
        """Return the text of a scenario file; defaults are left out."""
        table = {
            name: dict(value) if name == "set" else list(value) if isinstance(value, tuple) else value
            for name, value in self.changed().items()
        }
        return tomli_w.dumps({"v": SCENARIO_VERSION, **table})

    def to_document(self) -> dict[str, object]:
        """Return every option as plain JSON values."""
        document: dict[str, object] = {}
        for name in self.option_names():
            value = getattr(self, name)
            if name == "set":
                value = dict(value)
            elif isinstance(value, tuple):
                value = list(value)
            document[name] = value.isoformat() if isinstance(value, date) else value
        return document


def _query_text(value: Any) -> str:
    """Write one option as text that reads back to the same value."""
    if isinstance(value, tuple):
        return ",".join(f"{item[0]}={item[1]!r}" if isinstance(item, tuple) else item for item in value)
    if isinstance(value, float):
        return repr(int(value)) if value == int(value) and abs(value) < 1e15 else repr(value)
    return str(value)
