"""
The address bar as state: what a query means, what of it cannot be used, and the query of a question.

It turns addresses and what the widgets hold into a `Scenario` and back; it draws nothing, without Streamlit.
"""

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any
from urllib.parse import urlencode

from dashboard.form.fields import FIELDS, GROUPS, Field, Kind
from planner.assumptions import split_settings
from planner.catalogues.gpus import find_gpu
from planner.catalogues.models import find_model
from planner.catalogues.quants import find_quant
from planner.errors import InvalidScenario, PlannerError, UnknownName
from planner.rates import Tier
from planner.scenario import DEFAULT_MODEL, SCENARIO_VERSION, Owned, Scenario
from planner.supply.load import LoadProfile
from pricing.errors import PricingError

__all__ = [
    "DEFAULT_GPU",
    "FIELDS",
    "FIRST_DAY",
    "GROUPS",
    "LAST_DAY",
    "MOST_RESERVE_GB",
    "PAGE_KEYS",
    "Field",
    "Kind",
    "as_address",
    "clamped",
    "from_widgets",
    "permalink",
    "profile_hours",
    "read_address",
    "read_page_keys",
]

# Where no device is chosen, pages start from the one that most pages about sizing use.
DEFAULT_GPU = "H100 SXM"
# What only the command line can read: a file of the user's own machine.
NOT_IN_THE_ADDRESS = ("sizing",)
# Filters, open tabs and chosen rows of single pages, with what they hold when nothing is asked. They are no
# part of the question.
PAGE_KEYS: Mapping[str, Mapping[str, Any]] = {
    "decide": {"chosen": []},
    "market": {
        "market_tab": "offers",
        "show_gpu": [],
        "show_provider": [],
        "show_tier": [],
        "show_status": [],
        "show_unranked": False,
        "history_gpu": DEFAULT_GPU,
        "history_provider": [],
    },
    "size": {"size_tab": "formats", "reserve_gb": 0.0},
    "compare": {"show_models": [], "show_gpus": []},
}
MOST_RESERVE_GB = 100_000.0  # room for caches that the capacity screen takes
_SINGLE = {"v", *(name for name, field in FIELDS.items() if field.kind is not Kind.MANY)}
_ALL_PAGE_KEYS = {name for keys in PAGE_KEYS.values() for name in keys}
_DEFAULTS = Scenario(model=DEFAULT_MODEL)
# The widget of a day offers this span; outside of it no prices are known.
FIRST_DAY, LAST_DAY = date(2015, 1, 1), date(2099, 12, 31)


def read_address(params: Mapping[str, Any]) -> tuple[Scenario, list[str]]:
    """
    Return the scenario of an address, and what of it could not be used, in words.

    Names are made canonical, so that each value is one that its widget offers. Of several values that are
    given together only the bad ones are dropped. A file is never read: what names one is refused.

    Args:
        params: Query parameters; a repeated key may be a list.
    """
    asked = {name: value for name, value in params.items() if name not in _ALL_PAGE_KEYS}
    given = {name: _single(value) for name, value in asked.items() if name not in NOT_IN_THE_ADDRESS}
    complaints = [f"{name}: only the command line reads files, ignored" for name in asked.keys() - given]
    for name in [name for name, value in given.items() if isinstance(value, list) and name in _SINGLE]:
        values = ", ".join(map(str, given.pop(name)))
        complaints.append(f"{name}: given more than once ({values}); the default is used")
    for name, splits in _LISTS.items():
        if name in given:
            given[name], more = _usable_items(name, given[name], splits)
            complaints += more
    scenario, more = Scenario.from_query(given)
    complaints += more
    values = dict(scenario.changed())
    for name in ("model", "quant", "gpu", "own", "electricity_region"):
        if values.get(name) is None:
            continue
        try:
            canonical, said = _canonical(name, values[name], has_quant="quant" in given)
            values.update(canonical)
            complaints += said
        except (UnknownName, InvalidScenario) as error:
            complaints.append(f"{_about(name, error)}; the default is used")
            values.pop(name)
    for name, value in list(values.items()):
        usable = clamped(FIELDS[name], value)
        if usable != value:
            complaints.append(
                f"{name}: {_shown(value)} is outside what the page offers; {_shown(usable)} is used"
            )
            values[name] = usable
    values.setdefault("model", DEFAULT_MODEL)
    try:
        return Scenario.from_mapping(values), complaints
    except InvalidScenario as error:
        return Scenario(model=values["model"]), [*complaints, f"{error}; the defaults are used"]


def read_page_keys(params: Mapping[str, Sequence[str]], page: str) -> tuple[dict[str, Any], list[str]]:
    """
    Return what the filters of a page hold by an address, and what of them could not be used, in words.

    What the address does not name is at its default. Whether an entry of a list exists, its widget says.
    """
    held: dict[str, Any] = {}
    complaints = [
        f"{name}: a filter of another page, ignored"
        for name in params
        if name in _ALL_PAGE_KEYS and name not in PAGE_KEYS.get(page, {})
    ]
    for name, default in PAGE_KEYS.get(page, {}).items():
        given = [text for text in params.get(name, ()) if text]
        match default:
            case list():
                held[name] = given
                continue
            case bool():
                held[name] = given[-1:] == ["true"]
            case float():
                held[name] = _number_within(given[-1:], default)
            case _:
                held[name] = given[-1] if given else default
        if given and not _means(given[-1], held[name]):
            complaints.append(f"{name}: {given[-1]!r} cannot be used; {_text(held[name])} is used")
    return held, complaints


def _means(text: str, value: Any) -> bool:
    """Whether a text of an address stands for this value."""
    if isinstance(value, float):
        try:
            return float(text) == value
        except ValueError:
            return False
    return text == _text(value)


def _number_within(given: Sequence[str], default: float) -> float:
    """Return a number of an address, brought into the range of its widget; the default where it is none."""
    try:
        number = float(given[0]) if given else default
    except ValueError:
        return default
    return min(max(number, 0.0), MOST_RESERVE_GB) if number == number else default


def as_address(
    scenario: Scenario, page: str = "", held: Mapping[str, Any] | None = None
) -> dict[str, list[str]]:
    """
    Return the query parameters of a question: a list is repeated, defaults are left out, the version is last.

    Args:
        scenario: The question.
        page: Whose filters belong to the address.
        held: What its filters hold, by name.
    """
    query = scenario.to_query()
    defaults = _DEFAULTS.to_query()
    address = {}
    for name, value in scenario.changed().items():
        if name not in FIELDS or query[name] == defaults.get(name):
            continue
        shown = FIELDS[name].as_widget_value(value)
        address[name] = [str(item) for item in shown] if isinstance(shown, list) else [query[name]]
    for name, default in PAGE_KEYS.get(page, {}).items():
        value = (held or {}).get(name, default)
        if value is not None and value != default:
            address[name] = [str(item) for item in value] if isinstance(value, list) else [_text(value)]
    return {**address, "v": [str(SCENARIO_VERSION)]}


def from_widgets(session: Mapping[str, Any]) -> Scenario:
    """
    Return the scenario that the widgets hold.

    Raises:
        InvalidScenario, UnknownName: if a value, or two together, cannot be used.
    """
    values: dict[str, Any] = {}
    for name, field in FIELDS.items():
        value = session.get(name, field.default)
        if value is None or value == "" or value == []:
            continue
        values[name] = field.as_scenario_value(value)
    if "load_profile" in values:  # its hours count; those of the slider wait until it is taken away
        values.pop("hours_per_day", None)
    return Scenario.from_mapping(values)


def profile_hours(session: Mapping[str, Any]) -> float | None:
    """Return the hours of the load of the day that the widgets hold, None where there is none. [h/d]"""
    try:
        return float(LoadProfile.parse(session.get("load_profile") or "").service_hours_per_day)
    except InvalidScenario:
        return None


def permalink(scenario: Scenario) -> str:
    """Return the address of a scenario on this server; what is at its default is left out."""
    return f"/?{urlencode(scenario.to_query())}"


def _single(value: Any) -> Any:
    """Return the one value of a list that holds one, be it several times."""
    return value[0] if isinstance(value, list | tuple) and len(set(value)) == 1 else value


def _about(name: str, error: Exception) -> str:
    """Return what is wrong, with the name of the option in front."""
    text = str(error)
    return text if text.startswith(name) else f"{name}: {text}"


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:.15g}" if isinstance(value, float) else str(value)


def _shown(value: Any) -> str:
    return value.isoformat() if isinstance(value, date) else f"{value:,.15g}"


def _names(text: str) -> list[str]:
    return [item.strip() for item in text.split(",") if item.strip()]


# Options that hold several values, and how one text is taken apart.
_LISTS = {"set": split_settings, "provider": _names, "tier": _names}


def _usable_items(name: str, given: Any, splits: Any) -> tuple[list[str], list[str]]:
    """Return the values of a list that can be used, and what is said of the others."""
    kept, complaints = [], []
    for text in [given] if isinstance(given, str) else given:
        for item in splits(text):
            try:
                kept.append(_usable_item(name, item))
            except (PlannerError, PricingError) as error:
                complaints.append(f"{_about(name, error)}; ignored")
    return kept, complaints


def _usable_item(name: str, item: str) -> str:
    if name == "provider":
        from pricing.registry import provider_info

        return provider_info(item).name
    if name == "tier" and item.lower() not in set(Tier):
        raise InvalidScenario(name, item, "one of " + ", ".join(Tier))
    if name == "set":
        Scenario(model=DEFAULT_MODEL, set=(item,))  # type: ignore[arg-type]
    return item


def _canonical(name: str, value: str, *, has_quant: bool) -> tuple[dict[str, str], list[str]]:
    """Return what a name stands for, and what to say of it."""
    if name == "model":
        match = find_model(value)
        implied = {"quant": match.quant} if match.quant and not has_quant else {}
        return {"model": match.model.id, **implied}, []
    if name == "quant":
        return {"quant": find_quant(value).name}, []
    if name == "gpu":
        gpu, said = _device(name, value)
        return {"gpu": gpu}, said
    if name == "own":
        owned = Owned.parse(value)
        gpu, said = _device(name, owned.gpu)
        return {"own": f"{owned.gpu_count}x {gpu}"}, said
    from planner.catalogues.tariffs import find_tariff

    find_tariff(value)
    return {name: value}, []


def _device(name: str, value: str) -> tuple[str, list[str]]:
    """Return the canonical name of a device, and what it could mean as well."""
    match = find_gpu(value)
    if not match.ambiguous_with:
        return match.gpu.name, []
    others = ", ".join(match.ambiguous_with)
    return match.gpu.name, [f"{name}: {value!r} may also mean {others}; {match.gpu.name} is taken"]


def clamped(field: Field, value: Any) -> Any:
    """Return a value brought into the range of its widget."""
    if isinstance(value, date):
        return min(max(value, FIRST_DAY), LAST_DAY)
    if not isinstance(value, int | float):
        return value
    low = value if field.low is None else max(value, field.low)
    return low if field.high is None else min(low, field.high)
