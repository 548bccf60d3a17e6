"""What the environment may say, and what is said where it is wrong."""

from pathlib import Path

import pytest

from pricing.errors import SettingsError
from pricing.settings import Settings, default_database_url
from pricing.storage.sqlite_urls import sqlite_place


def test_nothing_set_means_a_file_in_the_users_data_folder() -> None:
    settings = Settings.from_environ({})
    assert settings.database_url == default_database_url()
    assert settings.database_url.startswith("sqlite:///")
    assert settings.database_url.endswith("/breakeven/breakeven.db")
    assert not settings.keys
    assert not settings.base_urls
    assert settings.notify_url is None
    assert settings.read_only is False


def test_everything_set() -> None:
    settings = Settings.from_environ(
        {
            "BREAKEVEN_DATABASE_URL": "postgresql+psycopg://me:secret@db.example/prices",
            "BREAKEVEN_DIGITALOCEAN_API_KEY": " dop_v1_abc ",
            "BREAKEVEN_RUNPOD_BASE_URL": "http://127.0.0.1:8080/runpod",
            "BREAKEVEN_VULTR_BASE_URL": "https://mirror.example",
            "BREAKEVEN_NOTIFY_URL": "mailto://me:secret@mail.example",
            "BREAKEVEN_READ_ONLY": "1",
            "HOME": "/home/me",
        }
    )
    assert settings.database_url == "postgresql+psycopg://me:secret@db.example/prices"
    assert settings.key_of("digitalocean").secret == "dop_v1_abc"
    assert not settings.key_of("runpod")
    assert settings.base_url_of("runpod") == "http://127.0.0.1:8080/runpod"
    assert settings.base_url_of("vultr") == "https://mirror.example"
    assert settings.base_url_of("vastai") is None
    assert settings.read_only is True


def test_a_blank_variable_counts_as_unset() -> None:
    blank = {"BREAKEVEN_DATABASE_URL": " ", "BREAKEVEN_VULTR_API_KEY": "", "BREAKEVEN_READ_ONLY": ""}
    assert Settings.from_environ(blank) == Settings.from_environ({})


def test_no_secret_shows_in_the_text_of_the_settings() -> None:
    settings = Settings.from_environ(
        {
            "BREAKEVEN_DATABASE_URL": "postgresql://me:pa55word@db.example/prices",
            "BREAKEVEN_VERDA_API_KEY": "identifier:pa55word",
            "BREAKEVEN_NOTIFY_URL": "discord://1234/pa55word",
        }
    )
    assert "pa55word" not in repr(settings)


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("BREAKEVEN_DATABASE_URL", "mysql://me:pa55word@host/db", "mysql:... is not a database"),
        ("BREAKEVEN_DATABASE_URL", "/data/breakeven.db", "'/data/breakeven.db' is not a database"),
        ("BREAKEVEN_DATABASE_URL", "sqlite:breakeven.db", "give sqlite:////folder/file.db"),
        ("BREAKEVEN_DATABASE_URL", "sqlite://prices.db", "names a host, 'prices.db'; give three slashes"),
        ("BREAKEVEN_DATABASE_URL", "sqlite:///prices.db?timeout=3", "timeout is not understood"),
        ("BREAKEVEN_DATABASE_URL", "sqlite:///prices.db?mode=ro", "mode is not understood"),
        ("BREAKEVEN_DATABASE_URL", "sqlite:///prices.db?uri=true", "goes with a file: address"),
        (
            "BREAKEVEN_DATABASE_URL",
            "sqlite:///file:a.db?uri=perhaps",
            "uri=perhaps goes with a file: address",
        ),
        (
            "BREAKEVEN_DATABASE_URL",
            "sqlite:///file:a.db?mode=memory&uri=true",
            "mode=memory is not understood",
        ),
        ("BREAKEVEN_DATABASE_URL", "sqlite:///file:a.db?immutable=1&uri=true", "immutable is not understood"),
        ("BREAKEVEN_DATABASE_URL", "sqlite:///file://server/a.db", "names a host, 'server'"),
        ("BREAKEVEN_DATABASE_URL", "sqlite:///file:?mode=ro&uri=true", "names no file"),
        ("BREAKEVEN_READ_ONLY", "perhaps", "'perhaps' is neither yes nor no; give 0 or 1"),
        ("BREAKEVEN_RUNPOD_BASE_URL", "http://mirror.example", "plain http is only for a loopback address"),
        (
            "BREAKEVEN_RUNPOD_BASE_URL",
            "http://127.0.0.1.example",
            "plain http is only for a loopback address",
        ),
        ("BREAKEVEN_RUNPOD_BASE_URL", "ftp://mirror.example", "'ftp://mirror.example' is not an address"),
        ("BREAKEVEN_RUNPOD_BASE_URL", "https://me:pa55word@mirror.example", "holds a user name or password"),
        ("BREAKEVEN_VULTR_API_KEY", "pa55word and more", "copy the key again"),
        ("BREAKEVEN_VULTR_API_KEY", "pa55word\nX-Other: 1", "copy the key again"),
        ("BREAKEVEN_NOTIFY_URL", "pa55word", "not an address"),
    ],
)
def test_a_bad_value_is_one_line_with_the_variable_and_the_remedy(name: str, value: str, said: str) -> None:
    with pytest.raises(SettingsError) as caught:
        Settings.from_environ({name: value})
    message = str(caught.value)
    assert message.startswith(f"{name}: ")
    assert said in message
    assert "\n" not in message
    assert "pa55word" not in message


@pytest.mark.parametrize(
    ("url", "path", "is_read_only"),
    [
        ("sqlite:////data/a.db", "/data/a.db", False),
        ("sqlite:///a.db", "a.db", False),
        ("sqlite:///file:/data/a.db?uri=true", "/data/a.db", False),
        ("sqlite:///file:/data/a.db?mode=ro&uri=true", "/data/a.db", True),
        ("sqlite:///file:///data/a.db?mode=ro&uri=true", "/data/a.db", True),
        ("sqlite:///file:/data/my%20prices.db?mode=ro", "/data/my prices.db", True),
        ("sqlite:///file:a.db?mode=rwc&uri=true", "a.db", False),
    ],
)
def test_which_file_a_sqlite_url_means(url: str, path: str, is_read_only: bool) -> None:
    place = sqlite_place(url)
    assert place.path == Path(path)
    assert place.is_opened_read_only is is_read_only
    assert Settings.from_environ({"BREAKEVEN_DATABASE_URL": url}).database_url == url


@pytest.mark.parametrize("url", ["sqlite://", "sqlite:///", "sqlite:///:memory:"])
def test_a_sqlite_url_without_a_file_is_memory(url: str) -> None:
    assert sqlite_place(url).path is None


@pytest.mark.parametrize("contact", ["prices@example.com", "https://example.com/contact?x=1"])
def test_a_contact_is_an_address(contact: str) -> None:
    assert Settings.from_environ({"BREAKEVEN_CONTACT": f" {contact} "}).contact == contact


@pytest.mark.parametrize(
    "contact", ["me", "a@b) Mozilla/5.0", "ü@example.com", "a@b\nHost: x", "https://", "x@" * 99]
)
def test_a_contact_that_fits_no_header_is_refused(contact: str) -> None:
    with pytest.raises(SettingsError, match=r"BREAKEVEN_CONTACT: .* is not an address"):
        Settings.from_environ({"BREAKEVEN_CONTACT": contact})


def test_both_halves_of_a_key_are_secrets() -> None:
    keys = {"BREAKEVEN_VERDA_API_KEY": "client-7:secret", "BREAKEVEN_GCP_API_KEY": "abc"}
    assert set(Settings.from_environ(keys).secrets) == {"client-7:secret", "client-7", "secret", "abc"}
    short = Settings.from_environ({"BREAKEVEN_VERDA_API_KEY": "a:secret"})
    assert set(short.secrets) == {"a:secret", "secret"}  # every "a" would be blacked out


def test_the_cache_is_in_the_users_folder_unless_another_is_named() -> None:
    assert Settings.from_environ({}).cache_folder.name == "breakeven"
    assert Settings.from_environ({"BREAKEVEN_CACHE_DIR": "/srv/cache"}).cache_folder == Path("/srv/cache")
