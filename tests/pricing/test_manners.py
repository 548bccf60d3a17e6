"""How sources are asked: as their robots.txt wants it, and no faster than they document."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

import pytest

from pricing.errors import Blocked, FetchError
from pricing.http import Client
from pricing.offer import Problem, RawOffer
from pricing.provider import Page, Provider, ProviderClass, Request
from pricing.web.robots import Robots, rules_of
from tests.pricing.loopback import Handler, LoopbackServer


class Acme(Provider):
    name = "acme"
    title = "Acme"
    kind = ProviderClass.NEOCLOUD
    home = "https://acme.example/"
    pages: ClassVar = {"pricing": "https://acme.example/pricing"}

    def parse(self, pages: Mapping[str, Page]) -> list[RawOffer | Problem]:
        return []


ACME = Acme()
PAGE = Request(page="pricing", url="https://acme.example/pricing", is_page=True)
API = Request(page="list", url="https://acme.example/pricing")


class Time:
    def __init__(self) -> None:
        self.now = 100.0
        self.slept: list[float] = []

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


@pytest.fixture
def server() -> Iterator[LoopbackServer]:
    with LoopbackServer() as running:
        running.add("/acme/pricing", b"2.69 per hour")
        yield running


@pytest.fixture
def client(server: LoopbackServer) -> Iterator[Client]:
    time = Time()
    with Client(
        base_urls=server.base_urls("acme"), clock=lambda: time.now, sleep=time.sleep, jitter=lambda: 0.5
    ) as running:
        yield running


def asked(server: LoopbackServer) -> list[str]:
    return [one.path for one in server.received]


@pytest.mark.parametrize(
    "rules",
    [
        "User-agent: *\nDisallow: /pricing",
        "User-agent: breakeven\nDisallow: /\n\nUser-agent: *\nAllow: /",
        "User-agent: *\nDisallow: /p*ing$",
        "\ufeffuser-agent:*\r\ndisallow:/",
    ],
)
def test_a_page_that_is_kept_from_programs_is_never_asked_for(
    server: LoopbackServer, client: Client, rules: str
) -> None:
    server.add("/acme/robots.txt", rules)
    with pytest.raises(Blocked, match=r"^https://acme.example/pricing is kept from programs by"):
        client.fetch(PAGE, ACME)
    assert asked(server) == ["/acme/robots.txt"]


@pytest.mark.parametrize(
    "rules",
    [
        "",
        "User-agent: *\nDisallow:",
        "User-agent: *\nDisallow: /admin",
        "User-agent: other\nDisallow: /",
        "User-agent: *\nDisallow: /\n\nUser-agent: breakeven\nAllow: /pricing",
        "<html><body>There is no such page, but we say so with 200</body></html>",
    ],
)
def test_a_page_that_is_open_to_programs_is_read(server: LoopbackServer, client: Client, rules: str) -> None:
    server.add("/acme/robots.txt", rules)
    assert client.fetch(PAGE, ACME).body == b"2.69 per hour"


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410])
def test_a_host_without_rules_keeps_nothing_back(server: LoopbackServer, client: Client, status: int) -> None:
    server.add("/acme/robots.txt", status=status)
    assert client.fetch(PAGE, ACME).body == b"2.69 per hour"


@pytest.mark.parametrize(
    "answer",
    [
        {"status": 500},
        {"status": 503},
        {"status": 429},
        {"status": 302, "headers": {"Location": "https://elsewhere.example/"}},
        {"body": b"#" * (512 * 1024 + 1)},
    ],
)
def test_where_the_rules_cannot_be_read_the_page_is_left_alone(
    server: LoopbackServer, client: Client, answer: dict[str, Any]
) -> None:
    server.add("/acme/robots.txt", **answer)
    with pytest.raises(FetchError, match="is left alone"):
        client.fetch(PAGE, ACME)
    assert "/acme/pricing" not in asked(server)


def test_the_rules_are_asked_once_a_run(server: LoopbackServer, client: Client) -> None:
    for _ in range(3):
        client.fetch(PAGE, ACME)
    assert asked(server).count("/acme/robots.txt") == 1


def test_an_interface_is_asked_without_them(server: LoopbackServer, client: Client) -> None:
    server.add("/acme/robots.txt", "User-agent: *\nDisallow: /")
    assert client.fetch(API, ACME).body == b"2.69 per hour"
    assert asked(server) == ["/acme/pricing"]


def test_a_redirect_leads_to_a_page_that_must_be_open_too(server: LoopbackServer, client: Client) -> None:
    server.add("/acme/robots.txt", "User-agent: *\nDisallow: /hidden")
    server.add("/acme/open", status=302, headers={"Location": "/acme/hidden"})
    server.add("/acme/hidden", b"no")
    request = Request(page="pricing", url="https://acme.example/open", is_page=True)
    with pytest.raises(Blocked, match="kept from programs"):
        client.fetch(request, ACME)
    assert "/acme/hidden" not in asked(server)


def test_the_pause_that_a_host_asks_for_is_kept() -> None:
    assert Robots("User-agent: *\nCrawl-delay: 5").delay_s == 5.0
    assert Robots("User-agent: *\nRequest-rate: 1/20").delay_s == 20.0
    assert Robots("User-agent: *\nDisallow: /x").delay_s == 0.0
    assert Robots("User-agent: *\nCrawl-delay: soon").delay_s == 0.0


@pytest.mark.parametrize(("delay", "slept"), [("7", [7.0]), ("0.5", [1.0])])
def test_a_page_waits_for_the_longer_of_both_pauses(
    delay: str, slept: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    time = Time()

    def never(host: str) -> bool:
        return False

    with LoopbackServer() as server:
        server.add("/acme/robots.txt", f"User-agent: *\nCrawl-delay: {delay}")
        server.add("/acme/pricing", b"here")
        with Client(base_urls=server.base_urls("acme"), clock=lambda: time.now, sleep=time.sleep) as client:
            monkeypatch.setattr("pricing.web.manners.is_loopback", never)  # as if it were far away
            client.fetch(PAGE, ACME)
    assert time.slept == slept


def test_a_pause_that_no_run_can_wait_for_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    time = Time()
    with LoopbackServer() as server:
        server.add("/acme/robots.txt", "User-agent: *\nCrawl-delay: 3600")
        with Client(base_urls=server.base_urls("acme"), clock=lambda: time.now, sleep=time.sleep) as client:
            monkeypatch.setattr("pricing.web.manners.is_loopback", lambda host: False)
            with pytest.raises(FetchError, match="wants 3600 s of pause, more than is left of 60 s"):
                client.fetch(PAGE, ACME)
    assert time.slept == []


def test_a_mirror_has_the_rules_under_its_own_path() -> None:
    from urllib.parse import urlsplit

    base = urlsplit("https://mirror.example/a/")
    assert rules_of("https://acme.example/x?y=1", base) == (
        "https://acme.example/robots.txt",
        "https://acme.example/x?y=1",
    )
    assert rules_of("https://mirror.example/a/x", base) == (
        "https://mirror.example/a/robots.txt",
        "https://mirror.example/x",
    )


def test_every_web_page_among_the_sources_is_declared_one() -> None:
    """A module that reads HTML asks for a page; one that reads an interface does not."""
    import pricing.providers
    from pricing.provider import Keys
    from pricing.registry import providers

    folder = Path(pricing.providers.__file__).parent
    readers = {
        path.stem.rstrip("_")
        for path in folder.glob("*.py")
        if "from pricing.html" in path.read_text("utf-8")
    }
    pages = {
        name
        for name, provider in providers().items()
        if any(request.is_page for request in provider.requests(Keys()))
    }
    assert pages == readers
    assert {"crusoe", "digitalocean", "lambda"} <= pages
    assert not {"runpod", "vastai", "vultr"} & pages


def test_a_hanging_robots_file_ends_at_the_deadline(server: LoopbackServer) -> None:
    hung: list[Handler] = []

    def hang(handler: Handler) -> None:
        hung.append(handler)
        handler.wait(30.0)

    server.add("/acme/robots.txt", answer=hang)
    with (
        Client(base_urls=server.base_urls("acme"), sleep=lambda _: None) as client,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setattr("pricing.web.robots.DEADLINE_S", 0.2)
        with pytest.raises(FetchError, match="is left alone"):
            client.fetch(PAGE, ACME)
    assert hung


# What each documents, as the shortest pause between two requests. [s]
DOCUMENTED_S = {"vastai": 60 / 10, "lambda": 1.0, "digitalocean": 3600 / 5000}


def test_no_source_is_asked_faster_than_it_documents_and_none_faster_than_once_a_second() -> None:
    from pricing.registry import providers

    for name, provider in providers().items():
        assert provider.min_interval_s >= max(1.0, DOCUMENTED_S.get(name, 0.0))
