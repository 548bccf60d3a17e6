"""What the environment says: where the database is, keys and mirrors of providers, who is told."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from urllib.parse import urlsplit

from pricing.errors import SettingsError
from pricing.provider import Keys
from pricing.storage.sqlite_urls import sqlite_place
from pricing.web.addresses import mirror

PREFIX = "BREAKEVEN_"
KEY_SUFFIX = "_API_KEY"
BASE_URL_SUFFIX = "_BASE_URL"
DATABASE_SCHEMES = ("sqlite", "sqlite+pysqlite", "postgresql", "postgresql+psycopg", "postgres")
# Verification compares with the market of the last months. Source: pricing/verification/market.py, WINDOW.
MIN_RETENTION_DAYS = 180
# Longer headers are cut or refused. Source: own choice.
MAX_CONTACT = 200
# A shorter part of a key is no secret, and blacking it out would spoil every text. Source: own choice.
MIN_SECRET = 6
FLAGS = {"": False, "0": False, "false": False, "no": False, "1": True, "true": True, "yes": True}


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings of one process; text that may hold a password or a key is never shown."""

    database_url: str = field(repr=False)
    keys: Mapping[str, Keys] = field(default_factory=lambda: MappingProxyType({}))  # by provider
    base_urls: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))  # by provider
    contact: str | None = None  # whom a site that is read may write to: part of the User-Agent
    cache_folder: Path = field(default_factory=lambda: default_cache_folder())  # may be lost at any time
    notify_url: str | None = field(default=None, repr=False)
    notify_move_percent: float = 20.0  # a list price that moved more is announced; 0: none
    retention_days: int | None = None  # ended prices older than this are removed; None: kept for ever
    read_only: bool = False  # the dashboard shows and exports; it refreshes and decides nothing

    @classmethod
    def from_environ(cls, environ: Mapping[str, str]) -> "Settings":
        """
        Read the variables `BREAKEVEN_*`; a blank one counts as unset.

        Raises:
            SettingsError: in one line, with the variable, its value (never that of a key) and the remedy.
        """
        given = {name: value.strip() for name, value in environ.items() if name.startswith(PREFIX)}
        given = {name: value for name, value in given.items() if value}
        url = given.get("BREAKEVEN_DATABASE_URL")
        return cls(
            database_url=_database_url(url) if url else default_database_url(),
            keys=_keys(given),
            base_urls=_base_urls(given),
            contact=_contact(given.get("BREAKEVEN_CONTACT")),
            cache_folder=Path(given["BREAKEVEN_CACHE_DIR"]).expanduser()
            if "BREAKEVEN_CACHE_DIR" in given
            else default_cache_folder(),
            notify_url=_notify_url(given.get("BREAKEVEN_NOTIFY_URL")),
            notify_move_percent=_number(given, "BREAKEVEN_NOTIFY_MOVE_PERCENT", 20.0),
            retention_days=_days(given),
            read_only=_flag("BREAKEVEN_READ_ONLY", given.get("BREAKEVEN_READ_ONLY", "")),
        )

    def key_of(self, provider: str) -> Keys:
        """Return a provider's credentials; they are false where none are set."""
        return self.keys.get(provider, Keys())

    @property
    def secrets(self) -> tuple[str, ...]:
        """Every text that must not be shown: keys, and both parts of those that have two."""
        keys = [key.secret for key in self.keys.values() if key.secret]
        parts = [part for key in keys for part in key.split(":", 1) if len(part) >= MIN_SECRET]
        return tuple(dict.fromkeys((*keys, *parts)))

    def base_url_of(self, provider: str) -> str | None:
        """Return the mirror or proxy that stands in for a provider's own address."""
        return self.base_urls.get(provider)


def default_database_url() -> str:
    """Return the SQLite file in the user's data folder."""
    from platformdirs import user_data_path

    return f"sqlite:///{(user_data_path('breakeven', appauthor=False) / 'breakeven.db').as_posix()}"


def default_cache_folder() -> Path:
    """Return the folder of what can be fetched again."""
    from platformdirs import user_cache_path

    return user_cache_path("breakeven", appauthor=False)


def _providers(given: Mapping[str, str], suffix: str) -> dict[str, str]:
    """Return the values of `BREAKEVEN_<PROVIDER><suffix>` by provider."""
    return {
        name[len(PREFIX) : -len(suffix)].lower(): value
        for name, value in given.items()
        if name.endswith(suffix) and len(name) > len(PREFIX) + len(suffix)
    }


def _keys(given: Mapping[str, str]) -> Mapping[str, Keys]:
    keys = _providers(given, KEY_SUFFIX)
    for provider, value in keys.items():
        if not (value.isascii() and value.isprintable()) or " " in value:
            raise SettingsError(
                f"{PREFIX}{provider.upper()}{KEY_SUFFIX}: holds a space, a line break or what no key "
                "holds (its value is not shown); copy the key again"
            )
    return MappingProxyType({provider: Keys(secret=value) for provider, value in keys.items()})


def _base_urls(given: Mapping[str, str]) -> Mapping[str, str]:
    urls = _providers(given, BASE_URL_SUFFIX)
    for provider, url in urls.items():
        if "@" in url:
            raise SettingsError(
                f"{PREFIX}{provider.upper()}{BASE_URL_SUFFIX}: holds a user name or password (its value is "
                "not shown); give https://host/path"
            )
        mirror(provider, url)
    return MappingProxyType(urls)


def _database_url(url: str) -> str:
    scheme, separator, _ = url.partition(":")
    if separator and scheme in DATABASE_SCHEMES and "://" in url:
        if scheme.startswith("sqlite"):
            try:
                sqlite_place(url)
            except ValueError as error:
                raise SettingsError(f"BREAKEVEN_DATABASE_URL: {error}") from error
        return url
    shown = f"{scheme}:..." if separator else repr(url)  # the rest may hold a password
    raise SettingsError(
        f"BREAKEVEN_DATABASE_URL: {shown} is not a database that is known; give sqlite:////folder/file.db or "
        "postgresql+psycopg://user:password@host/name"
    )


def _notify_url(url: str | None) -> str | None:
    if url is not None and (not urlsplit(url).scheme or "://" not in url):
        raise SettingsError(
            "BREAKEVEN_NOTIFY_URL: not an address (its value is not shown); give one such as "
            "mailto://user:password@host or https://host/path"
        )
    return url


def _contact(text: str | None) -> str | None:
    """Return a mail or web address that fits into a header."""
    if text is None:
        return None
    is_address = re.fullmatch(r"[^@\s()]+@[^@\s()]+|https?://[^\s()]+", text) is not None
    if not is_address or not text.isascii() or len(text) > MAX_CONTACT:
        raise SettingsError(
            f"BREAKEVEN_CONTACT: {text!r} is not an address; give one such as prices@example.com or "
            "https://example.com/contact"
        )
    return text


def _number(given: Mapping[str, str], name: str, default: float) -> float:
    text = given.get(name)
    try:
        value = default if text is None else float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < float("inf"):
        raise SettingsError(f"{name}: {text!r} is not a number from 0 up; give one such as 20")
    return value


def _days(given: Mapping[str, str]) -> int | None:
    text = given.get("BREAKEVEN_RETENTION_DAYS")
    if text is None:
        return None
    if not text.isascii() or not text.isdigit() or int(text) < MIN_RETENTION_DAYS:
        raise SettingsError(
            f"BREAKEVEN_RETENTION_DAYS: {text!r} is not a number of days from {MIN_RETENTION_DAYS} up; "
            "give one such as 1095, or leave it unset to keep all"
        )
    return int(text)


def _flag(name: str, value: str) -> bool:
    try:
        return FLAGS[value.lower()]
    except KeyError as error:
        raise SettingsError(f"{name}: {value!r} is neither yes nor no; give 0 or 1") from error
