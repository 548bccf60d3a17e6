"""A source that has not changed need not send its answer again, and nothing goes wrong by that."""

import gzip
import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, ClassVar

import pytest

from pricing.collect import refresh
from pricing.errors import FetchError, TooLarge
from pricing.http import Client
from pricing.offer import Problem, RawOffer
from pricing.provider import Page, Provider, ProviderClass, Request
from pricing.registry import providers
from pricing.settings import Settings
from pricing.storage.kept import KeptPages
from pricing.storage.memory import RunStatus
from pricing.store import Store
from pricing.web.body import SPOOL_BYTES
from tests.pricing.loopback import Handler, LoopbackServer

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
DAY = timedelta(days=1)


class Acme(Provider):
    name = "acme"
    title = "Acme"
    kind = ProviderClass.NEOCLOUD
    home = "https://acme.example/"
    pages: ClassVar = {"list": "https://acme.example/list"}

    def parse(self, pages: Mapping[str, Page]) -> list[RawOffer | Problem]:
        return []


class Hosts(Acme):
    names_hosts = True


ACME = Acme()
LIST = Request(page="list", url="https://acme.example/list")


class Source:
    """An answer with validators, as a well-behaved server gives it."""

    def __init__(self, server: LoopbackServer, path: str, body: bytes, **headers: str) -> None:
        self.body = body
        self.headers = (
            {"ETag": '"1"'} if not headers else {k.replace("_", "-"): v for k, v in headers.items()}
        )
        self.sent: list[int] = []
        server.add(path, answer=self.answer)

    def change(self, body: bytes, etag: str) -> None:
        self.body, self.headers = body, {"ETag": etag}

    def answer(self, handler: Handler) -> None:
        etag, date = self.headers.get("ETag"), self.headers.get("Last-Modified")
        same = (etag and handler.headers["If-None-Match"] == etag) or (
            not etag and date and handler.headers["If-Modified-Since"] == date
        )
        self.sent.append(304 if same else 200)
        handler.reply(self.sent[-1], b"" if same else self.body, self.headers)


@pytest.fixture
def server() -> Iterator[LoopbackServer]:
    with LoopbackServer() as running:
        yield running


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "kept"


class Runs:
    """Runs one after the other, each with a client of its own."""

    def __init__(self, server: LoopbackServer, folder: Path) -> None:
        self.server, self.folder = server, folder

    def fetch(self, request: Request = LIST, provider: Provider = ACME, *, is_read: bool = True) -> Page:
        with self.client() as client:
            page = client.fetch(request, provider)
            if page.file is not None:  # it ends with the client
                page = Page(
                    key=page.key, url=page.url, body=page.file.read_bytes(), is_unchanged=page.is_unchanged
                )
            client.settle(provider, is_read=is_read)
            return page

    def client(self) -> Client:
        return Client(
            base_urls=self.server.base_urls("acme", *providers()),
            kept=KeptPages(self.folder),
            sleep=lambda seconds: None,
        )

    @property
    def files(self) -> list[Path]:
        return sorted(path for path in self.folder.rglob("*") if path.is_file())


@pytest.fixture
def runs(server: LoopbackServer, folder: Path) -> Runs:
    return Runs(server, folder)


@pytest.mark.parametrize("size", [12, SPOOL_BYTES + 1])
def test_an_unchanged_answer_is_not_sent_again_and_is_the_same(
    server: LoopbackServer, runs: Runs, size: int
) -> None:
    source = Source(server, "/acme/list", b"x" * size)
    first, second, third = runs.fetch(), runs.fetch(), runs.fetch()
    assert source.sent == [200, 304, 304]
    assert first.body == second.body == third.body == b"x" * size
    assert [page.is_unchanged for page in (first, second, third)] == [False, True, True]
    assert second.url == first.url == LIST.url


def test_a_changed_answer_takes_the_place_of_the_old_one(server: LoopbackServer, runs: Runs) -> None:
    source = Source(server, "/acme/list", b"old")
    runs.fetch()
    source.change(b"new", '"2"')
    assert runs.fetch().body == b"new"
    assert runs.fetch().body == b"new"
    assert source.sent == [200, 200, 304]
    assert len(runs.files) == 2  # its note and its body


def test_a_date_serves_where_there_is_no_tag(server: LoopbackServer, runs: Runs) -> None:
    source = Source(server, "/acme/list", b"x", Last_Modified="Sun, 29 Nov 2020 00:00:00 GMT")
    assert [runs.fetch().body, runs.fetch().body] == [b"x", b"x"]
    assert source.sent == [200, 304]


@pytest.mark.parametrize(
    "headers",
    [
        {"X-None": "1"},
        {"ETag": ""},
        {"ETag": '"1"', "Cache-Control": "private, no-store"},
        {"Last-Modified": "Mon, 30 Nov 2026 11:59:30 GMT", "Date": "Mon, 30 Nov 2026 12:00:00 GMT"},
        {"Last-Modified": "yesterday", "Date": "Mon, 30 Nov 2026 12:00:00 GMT"},
    ],
)
def test_what_does_not_tell_contents_apart_is_not_relied_on(
    server: LoopbackServer, runs: Runs, headers: dict[str, str]
) -> None:
    def answer(handler: Handler) -> None:
        assert "If-None-Match" not in handler.headers
        assert "If-Modified-Since" not in handler.headers
        handler.send_response_only(200)
        for name, value in {**headers, "Content-Length": "1"}.items():
            handler.send_header(name, value)
        handler.end_headers()
        handler.wfile.write(b"x")

    server.add("/acme/list", answer=answer)
    assert [runs.fetch().body, runs.fetch().body] == [b"x", b"x"]
    assert runs.files == []


@pytest.mark.parametrize(
    ("request_", "provider"),
    [
        (Request(page="list", url=LIST.url, headers={"Authorization": "Bearer key"}), ACME),
        (Request(page="list", url=f"{LIST.url}?api_key=secret"), ACME),
        (LIST, Hosts()),
    ],
)
def test_what_came_for_a_key_or_names_private_hosts_is_never_kept(
    server: LoopbackServer, runs: Runs, request_: Request, provider: Provider
) -> None:
    source = Source(server, "/acme/list", b"x")
    runs.fetch(request_, provider)
    runs.fetch(request_, provider)
    assert source.sent == [200, 200]
    assert runs.files == []


def test_the_marketplaces_that_list_hosts_are_marked() -> None:
    assert {name for name, provider in providers().items() if provider.names_hosts} == {"vastai", "lium"}


def damage_body(path: Path) -> None:
    path.write_bytes(gzip.compress(b"another price"))


def cut_body(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-5])


@pytest.mark.parametrize("harm", [damage_body, cut_body, Path.unlink])
def test_a_damaged_copy_is_asked_for_again(server: LoopbackServer, runs: Runs, harm: Any) -> None:
    source = Source(server, "/acme/list", b"price")
    runs.fetch()
    (body,) = [path for path in runs.files if path.suffix == ".gz"]
    harm(body)
    assert runs.fetch().body == b"price"
    assert source.sent == [200, 304, 200]
    assert runs.fetch().body == b"price"
    assert source.sent[-1] == 304


@pytest.mark.parametrize("note", ["", "{", "[]", '{"etag": "x"}', "null"])
def test_a_damaged_note_is_none(server: LoopbackServer, runs: Runs, note: str) -> None:
    source = Source(server, "/acme/list", b"price")
    runs.fetch()
    (file,) = [path for path in runs.files if path.suffix == ".json"]
    file.write_text(note)
    assert runs.fetch().body == b"price"
    assert source.sent == [200, 200]


def test_a_copy_inflates_to_no_more_than_is_allowed(server: LoopbackServer, runs: Runs) -> None:
    Source(server, "/acme/list", b"x" * 5000)
    runs.fetch()
    with pytest.raises(TooLarge):
        runs.fetch(Request(page="list", url=LIST.url, max_bytes=4999))


def test_a_page_that_could_not_be_read_is_forgotten(server: LoopbackServer, runs: Runs) -> None:
    source = Source(server, "/acme/list", b"please log in")
    runs.fetch(is_read=False)
    assert runs.files == []
    runs.fetch()
    assert source.sent == [200, 200]


def test_what_is_not_asked_for_any_more_is_removed(server: LoopbackServer, runs: Runs) -> None:
    for number in range(3):
        Source(server, f"/acme/v{number}/catalog", b"%d" % number)
        runs.fetch(Request(page="list", url=f"https://acme.example/v{number}/catalog"))
    assert len(runs.files) == 2


def test_a_folder_that_cannot_be_written_only_costs_traffic(server: LoopbackServer, tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    runs = Runs(server, blocked / "kept")
    source = Source(server, "/acme/list", b"x")
    assert [runs.fetch().body, runs.fetch().body] == [b"x", b"x"]
    assert source.sent == [200, 200]


def test_a_redirect_to_another_place_is_not_asked_with_the_tag_of_the_first(
    server: LoopbackServer, runs: Runs
) -> None:
    server.add("/acme/list", status=302, headers={"Location": "/acme/one"})
    server.add("/acme/list", status=302, headers={"Location": "/acme/two"})
    one, two = Source(server, "/acme/one", b"one"), Source(server, "/acme/two", b"two")
    assert [runs.fetch().body, runs.fetch().body, runs.fetch().body] == [b"one", b"two", b"two"]
    assert (one.sent, two.sent) == ([200], [200, 304])


def test_an_unasked_304_is_an_error(server: LoopbackServer, runs: Runs) -> None:
    server.add("/acme/list", status=304)
    with pytest.raises(FetchError, match="answered 304"):
        runs.fetch()


def test_an_unchanged_page_extends_its_prices(server: LoopbackServer, runs: Runs, file: Path) -> None:
    """Through a whole run: seen again means seen again, without a byte of the page being sent."""
    plan = {
        "id": "vbm-112c-2048gb-8-h100-gpu",
        "cpu_threads": 224,
        "ram": 2097152,
        "monthly_cost": 16074.24,
        "hourly_cost": 23.92,
        "locations": ["sea"],
    }
    end = {"total": 1, "links": {"next": ""}}
    cpu = {"id": "vc2", "type": "vc2", "locations": ["ewr"]}
    plans = Source(server, "/vultr/v2/plans", json.dumps({"plans": [cpu], "meta": end}).encode())
    metal = Source(server, "/vultr/v2/plans-metal", json.dumps({"plans_metal": [plan], "meta": end}).encode())
    with Store.open(f"sqlite:///{file}") as store:
        for days in (0, 1):
            with runs.client() as client:
                settings = Settings(database_url="sqlite://")
                report = refresh(["vultr"], store, settings, client, NOW + days * DAY)
            assert report.providers[0].status is RunStatus.OK
        (price,) = [
            one for one in store.current_offers(provider="vultr", gpu="H100 SXM") if one.origin == "refresh"
        ]
    assert (plans.sent, metal.sent) == ([200, 304], [200, 304])
    assert (price.first_seen_at, price.seen_at, price.times_seen) == (NOW, NOW + DAY, 2)
    assert report.providers[0].notes == ("2 of 2 pages have not changed since the last run",)
