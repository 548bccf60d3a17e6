"""Which price sources there are: modules that read them, found by themselves, and what is said of each."""

import importlib
import inspect
import pkgutil
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from types import MappingProxyType, ModuleType

from planner.catalogue import close_matches
from pricing.errors import PricingError, UnknownProvider
from pricing.provider import Provider, ProviderClass, shows_asks

__all__ = [
    "ProviderInfo",
    "discover",
    "find_provider",
    "is_of_asks",
    "is_witness",
    "kinds",
    "provider_info",
    "provider_infos",
    "providers",
]

_FOLDER = "pricing.providers"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderInfo:
    """What is said of a provider, whether or not a module reads its prices."""

    name: str  # the key used everywhere
    title: str  # for people
    kind: ProviderClass
    home: str | None = None  # where a person deploys
    sources: tuple[str, ...] = ()  # what a refresh asks
    has_scraper: bool = False  # without one its prices come from the bundled collection

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", self.name):
            raise ValueError(f"{self.name!r} is not the key of a provider")


@cache
def providers() -> Mapping[str, Provider]:
    """
    Return every provider that has a module, by name.

    Raises:
        PricingError: if a module holds not exactly one provider, or two have one name.
    """
    return MappingProxyType(discover(importlib.import_module(_FOLDER)))


def discover(package: ModuleType) -> dict[str, Provider]:
    """
    Return the providers of a package, one for each of its modules, by name.

    Raises:
        PricingError: if a module holds not exactly one, or a name is missing or taken.
    """
    found: dict[str, Provider] = {}
    for entry in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
        module = importlib.import_module(entry.name)
        classes = [
            value
            for value in vars(module).values()
            if inspect.isclass(value) and issubclass(value, Provider) and value.__module__ == module.__name__
        ]
        if len(classes) != 1:
            raise PricingError(f"{entry.name}: holds {len(classes)} providers instead of one")
        (kind,) = classes
        missing = [field for field in ("name", "title", "kind", "home") if not getattr(kind, field, None)]
        if missing or inspect.isabstract(kind):
            raise PricingError(f"{entry.name}: {kind.__name__} lacks {', '.join(missing) or 'a method'}")
        if kind.name in found:
            other = type(found[kind.name]).__module__
            raise PricingError(f"{entry.name}: the name {kind.name!r} is taken by {other}")
        found[kind.name] = kind()
    return found


def find_provider(name: str) -> Provider:
    """
    Return the provider whose prices a module reads.

    Raises:
        UnknownProvider: if there is none; with close matches.
    """
    found = providers().get(_key(name))
    if found is not None:
        return found
    if _key(name) in provider_infos():
        raise UnknownProvider(name, (), "its prices are only in the bundled collection, nothing reads them")
    raise UnknownProvider(name, close_matches(name, providers()))


def provider_info(name: str) -> ProviderInfo:
    """
    Return what is said of a provider, also of one without a module.

    Raises:
        UnknownProvider: if nobody knows it; with close matches.
    """
    found = provider_infos().get(_key(name))
    if found is None:
        raise UnknownProvider(name, close_matches(name, provider_infos()))
    return found


@cache
def provider_infos() -> Mapping[str, ProviderInfo]:
    """
    Return all providers by name, in the order of the data file; modules that it does not name come after.

    No module is loaded for those of the file: a plan asks for their titles, and must not wait.
    """
    text = files("pricing").joinpath("data", "providers.toml").read_text(encoding="utf-8")
    modules = {entry.name.rstrip("_") for entry in pkgutil.iter_modules(_folder_path())}
    found: dict[str, ProviderInfo] = {}
    for record in tomllib.loads(text)["provider"]:
        info = ProviderInfo(
            name=record["name"],
            title=record["title"],
            kind=ProviderClass(record["kind"]),
            home=record.get("home"),
            sources=tuple(record.get("sources", ())),
            has_scraper=record["name"] in modules,
        )
        if found.setdefault(info.name, info) is not info:
            raise PricingError(f"providers.toml: {info.name!r} occurs twice")
    if modules - found.keys():
        for name, provider in providers().items():
            found.setdefault(name, _info(provider))
    return MappingProxyType(found)


@cache
def kinds() -> Mapping[str, ProviderClass]:
    """Return the class of every provider, by name."""
    return MappingProxyType({name: info.kind for name, info in provider_infos().items()})


def is_of_asks(name: str) -> bool:
    """Whether a provider, by name, shows what single hosts ask; one that is not known posts a list."""
    return shows_asks(kinds().get(name), name)


def is_witness(name: str) -> bool:
    """Whether a source, by name, is a catalogue of others' prices: it confirms them and brings none."""
    return kinds().get(name) is ProviderClass.WITNESS


def _info(provider: Provider) -> ProviderInfo:
    return ProviderInfo(
        name=provider.name,
        title=provider.title,
        kind=provider.kind,
        home=provider.home,
        sources=tuple(provider.pages.values()),
        has_scraper=True,
    )


def _folder_path() -> list[str]:
    return list(importlib.import_module(_FOLDER).__path__)


def _key(name: str) -> str:
    """Return the key behind a spelling: "Vast.ai" is "vastai", "Genesis Cloud" is "genesis-cloud"."""
    text = name.strip().lower()
    if text in provider_infos():
        return text
    bare = re.sub(r"[^a-z0-9]", "", text)
    return next((key for key in provider_infos() if key.replace("-", "") == bare), text)
