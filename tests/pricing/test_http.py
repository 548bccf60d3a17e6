"""The client against a real server on this machine that misbehaves in every way we know."""

import gzip
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise
from typing import ClassVar

import httpx
import pytest

from pricing.errors import Blocked, FetchError, ParseError, SettingsError, TooLarge
from pricing.http import Client, user_agent
from pricing.offer import Problem, RawOffer
from pricing.provider import Page, Provider, ProviderClass, Request
from pricing.web.addresses import public_url
from pricing.web.body import SPOOL_BYTES
from tests.pricing.loopback import Handler, LoopbackServer

SECRET = "s3cr3t-key-0123456789"


class Acme(Provider):
    name = "acme"
    title = "Acme"
    kind = ProviderClass.NEOCLOUD
    home = "https://acme.example/"
    pages: ClassVar = {"list": "https://api.acme.example/v1/list"}
    hosts = frozenset({"docs.acme.example"})

    def parse(self, pages: Mapping[str, Page]) -> list[RawOffer | Problem]:
        return []


ACME = Acme()
LIST = Request(page="list", url="https://api.acme.example/v1/list?page=1")


class Time:
    """A clock that moves when somebody sleeps."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.slept: list[float] = []

    def clock(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


@pytest.fixture
def server() -> Iterator[LoopbackServer]:
    with LoopbackServer() as running:
        yield running


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture
def client(server: LoopbackServer, time: Time) -> Iterator[Client]:
    with Client(
        base_urls=server.base_urls("acme"),
        secrets=[SECRET],
        clock=time.clock,
        sleep=time.sleep,
        jitter=lambda: 0.5,
        wall_clock=lambda: datetime(2026, 11, 30, 12, 0, tzinfo=UTC),
    ) as running:
        yield running


def test_a_page_is_fetched_from_the_mirror_and_keeps_its_own_address(
    server: LoopbackServer, client: Client
) -> None:
    server.add("/acme/v1/list", {"a": 1}, query={"page": "1"})
    page = client.fetch(LIST, ACME)
    assert (page.key, page.url, page.json()) == ("list", LIST.url, {"a": 1})
    assert server.received[0].headers["User-Agent"] == user_agent()
    assert server.received[0].headers["Accept-Encoding"] == "gzip, deflate"


def test_the_user_agent_names_us_and_whom_to_write_to(server: LoopbackServer) -> None:
    server.add("/acme/v1/list", b"x")
    with Client(base_urls=server.base_urls("acme"), contact="prices@example.com") as client:
        client.fetch(LIST, ACME)
    assert server.received[0].headers["User-Agent"].startswith("breakeven/")
    assert "contact: prices@example.com)" in server.received[0].headers["User-Agent"]
    assert "BREAKEVEN_CONTACT" in user_agent()


def test_a_post_carries_its_body(server: LoopbackServer, client: Client) -> None:
    server.add("/acme/graphql", {"data": 1}, method="POST", contains="gpuTypes")
    request = Request(
        page="q", url="https://api.acme.example/graphql", method="POST", json_body={"query": "{gpuTypes}"}
    )
    assert client.fetch(request, ACME).json() == {"data": 1}


@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
def test_compressed_answers_are_read(server: LoopbackServer, client: Client, encoding: str) -> None:
    server.add("/acme/v1/list", "x" * 300_000, encoding=encoding)
    assert client.fetch(LIST, ACME).body == b"x" * 300_000


def test_a_sieve_lets_through_what_is_wanted_and_the_limit_is_of_the_whole(
    server: LoopbackServer, client: Client
) -> None:
    def every_second(pieces: Iterable[bytes]) -> Iterator[bytes]:
        for piece in pieces:
            yield piece[::2]

    server.add("/acme/v1/list", "ab" * 500, encoding="gzip")
    wanted = Request(page="list", url=LIST.url, sieve=every_second, max_bytes=1000)
    assert client.fetch(wanted, ACME).body == b"a" * 500
    with pytest.raises(TooLarge):
        client.fetch(replace(wanted, max_bytes=999), ACME)


def test_a_gzip_body_of_several_members_is_read_whole(server: LoopbackServer, client: Client) -> None:
    body = gzip.compress(b"one ") + gzip.compress(b"two")
    server.add("/acme/v1/list", body, headers={"Content-Encoding": "gzip"})
    assert client.fetch(LIST, ACME).body == b"one two"


def test_a_bomb_is_stopped_at_the_cap(server: LoopbackServer, client: Client) -> None:
    server.add("/acme/v1/list", b"\0" * 200_000_000, encoding="gzip")
    with pytest.raises(TooLarge, match="over the 16777216 bytes"):
        client.fetch(LIST, ACME)


@pytest.mark.parametrize(
    ("body", "encoding"),
    [
        (b"x", "br"),
        (b"x", "zstd"),
        (gzip.compress(gzip.compress(b"x")), "gzip, gzip"),
        (b"not gzip", "gzip"),
        (gzip.compress(b"x" * 1000)[:-12], "gzip"),
        (zlib.compress(b"x" * 1000)[:-4], "deflate"),
        (gzip.compress(b"x") + b"rubbish", "gzip"),
    ],
    ids=["brotli", "zstd", "twice", "no gzip", "cut gzip", "cut deflate", "rubbish after it"],
)
def test_what_cannot_be_inflated_is_refused(
    server: LoopbackServer, client: Client, body: bytes, encoding: str
) -> None:
    server.add("/acme/v1/list", body, headers={"Content-Encoding": encoding})
    with pytest.raises(FetchError, match="cannot be decoded"):
        client.fetch(LIST, ACME)


@pytest.mark.parametrize("with_length", [True, False])
def test_a_huge_body_is_refused(server: LoopbackServer, client: Client, with_length: bool) -> None:
    def endless(handler: Handler) -> None:
        handler.send_response(200)
        if with_length:
            handler.send_header("Content-Length", "1000000000000")
        else:
            handler.send_header("Connection", "close")
        handler.end_headers()
        while handler.wait(0):
            handler.wfile.write(b"x" * 65536)

    server.add("/acme/v1/list", answer=endless)
    with pytest.raises(TooLarge):
        client.fetch(LIST, ACME)


def test_a_large_body_goes_to_a_file_that_ends_with_the_client(server: LoopbackServer, time: Time) -> None:
    body = b"0123456789" * (SPOOL_BYTES // 10 + 1000)
    server.add("/acme/v1/list", body)
    with Client(base_urls=server.base_urls("acme"), sleep=time.sleep) as client:
        page = client.fetch(LIST, ACME)
        assert page.body == b""
        assert page.file is not None
        assert page.file.read_bytes() == body
    assert not page.file.exists()


def test_a_dripping_server_is_cut_at_the_deadline(server: LoopbackServer) -> None:
    def drip(handler: Handler) -> None:
        handler.send_response(200)
        handler.send_header("Connection", "close")
        handler.end_headers()
        while handler.wait(0.02):
            handler.wfile.write(b".")
            handler.wfile.flush()

    server.add("/acme/v1/list", answer=drip)
    with (
        Client(base_urls=server.base_urls("acme")) as client,
        pytest.raises(FetchError, match=r"not done within 0\.3 s"),
    ):
        client.fetch(Request(page="list", url=LIST.url, deadline_s=0.3), ACME)
    assert len(server.received) == 1


@pytest.mark.parametrize("first", [b"", b"HTTP/1.1 200 OK\r\nX-Slow: "])
def test_a_server_that_never_finishes_its_headers_is_cut_too(server: LoopbackServer, first: bytes) -> None:
    def drip(handler: Handler) -> None:
        handler.wfile.write(first)
        while handler.wait(0.05):
            if first:
                handler.wfile.write(b"x")
        handler.close_connection = True

    server.add("/acme/v1/list", answer=drip)
    with (
        Client(base_urls=server.base_urls("acme")) as client,
        pytest.raises(FetchError, match=r"not done within 0\.3 s"),
    ):
        client.fetch(Request(page="list", url=LIST.url, deadline_s=0.3), ACME)


def test_a_busy_server_is_asked_again(server: LoopbackServer, client: Client, time: Time) -> None:
    server.add("/acme/v1/list", b"busy", status=503)
    server.add("/acme/v1/list", b"busy", status=502)
    server.add("/acme/v1/list", b"here")
    assert client.fetch(LIST, ACME).body == b"here"
    assert time.slept == [1.0, 2.0]  # doubled; jitter is 0.5, and so its factor 1


def test_it_is_asked_three_times_at_most(server: LoopbackServer, client: Client) -> None:
    server.add("/acme/v1/list", b"", status=504)
    with pytest.raises(FetchError, match="answered 504 Gateway Timeout: try again later"):
        client.fetch(LIST, ACME)
    assert len(server.received) == 3


@pytest.mark.parametrize(
    ("retry_after", "pause"),
    [("7", 7.0), ("Mon, 30 Nov 2026 12:00:09 GMT", 9.0), ("soon", 1.0), ("", 1.0)],
)
def test_retry_after_is_honoured(
    server: LoopbackServer, client: Client, time: Time, retry_after: str, pause: float
) -> None:
    server.add("/acme/v1/list", b"", status=429, headers={"Retry-After": retry_after})
    server.add("/acme/v1/list", b"here")
    assert client.fetch(LIST, ACME).body == b"here"
    assert time.slept == [pause]


@pytest.mark.parametrize("retry_after", ["31", "99999999999", "Tue, 01 Dec 2026 12:00:00 GMT"])
def test_a_long_retry_after_is_left_to_the_next_run(
    server: LoopbackServer, client: Client, time: Time, retry_after: str
) -> None:
    server.add("/acme/v1/list", b"", status=429, headers={"Retry-After": retry_after})
    with pytest.raises(Blocked, match="429"):
        client.fetch(LIST, ACME)
    assert time.slept == []


def test_pauses_end_at_the_deadline(server: LoopbackServer, client: Client, time: Time) -> None:
    server.add("/acme/v1/list", b"", status=503, headers={"Retry-After": "20"})
    with pytest.raises(FetchError, match="503"):
        client.fetch(Request(page="list", url=LIST.url, deadline_s=30.0), ACME)
    assert time.slept == [20.0]


@pytest.mark.parametrize("status", [401, 403])
def test_a_refusal_is_final(server: LoopbackServer, client: Client, status: int) -> None:
    server.add("/acme/v1/list", b"", status=status)
    with pytest.raises(
        Blocked, match=rf"^http://127.0.0.1:\d+ \(for api.acme.example/\S+\) answered {status}"
    ):
        client.fetch(LIST, ACME)
    assert len(server.received) == 1


@pytest.mark.parametrize("status", [204, 206, 304, 400, 404, 500])
def test_any_other_status_is_an_error(server: LoopbackServer, client: Client, status: int) -> None:
    server.add("/acme/v1/list", b"", status=status)
    with pytest.raises(FetchError, match=f"answered {status}"):
        client.fetch(LIST, ACME)
    assert len(server.received) == 1


def test_an_answer_without_use_does_not_cost_the_connection(server: LoopbackServer, client: Client) -> None:
    ports = []

    def refuse(handler: Handler) -> None:
        ports.append(handler.client_address[1])
        handler.reply(404, b"not here")

    server.add("/acme/v1/list", answer=refuse)
    for _ in range(3):
        with pytest.raises(FetchError):
            client.fetch(LIST, ACME)
    assert len(ports) == 3
    assert len(set(ports)) == 1


@pytest.mark.parametrize(("is_safe", "tries"), [(False, 1), (True, 3)])
def test_a_post_is_repeated_only_where_it_is_declared_safe(
    server: LoopbackServer, client: Client, is_safe: bool, tries: int
) -> None:
    server.add("/acme/graphql", b"", method="POST", status=503)
    request = Request(
        page="q", url="https://api.acme.example/graphql", method="POST", json_body={}, is_safe=is_safe
    )
    with pytest.raises(FetchError):
        client.fetch(request, ACME)
    assert len(server.received) == tries


def test_a_body_that_breaks_off_is_asked_for_again(server: LoopbackServer, client: Client) -> None:
    def short(handler: Handler) -> None:
        handler.reply(200, b"half", {"Content-Length": "8"})
        handler.close_connection = True

    server.add("/acme/v1/list", answer=short)
    server.add("/acme/v1/list", b"the whole")
    assert client.fetch(LIST, ACME).body == b"the whole"
    assert len(server.received) == 2


def test_a_body_that_always_breaks_off_is_an_error(server: LoopbackServer, client: Client) -> None:
    def short(handler: Handler) -> None:
        handler.reply(200, b"half", {"Content-Length": "8"})
        handler.close_connection = True

    server.add("/acme/v1/list", answer=short)
    with pytest.raises(FetchError, match="broke off"):
        client.fetch(LIST, ACME)


def test_a_server_that_is_not_there_is_an_error_with_advice(time: Time) -> None:
    with LoopbackServer() as gone:
        base_urls = gone.base_urls("acme")
    with (
        Client(base_urls=base_urls, clock=time.clock, sleep=time.sleep) as client,
        pytest.raises(FetchError, match=r"cannot be reached .*HTTPS_PROXY"),
    ):
        client.fetch(LIST, ACME)


# -- where a request may go -------------------------------------------------------------------------


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_within_the_provider_is_followed(
    server: LoopbackServer, client: Client, status: int
) -> None:
    location = "https://docs.acme.example/new?page=1"
    server.add("/acme/v1/list", status=status, headers={"Location": location})
    server.add("/acme/new", b"here")
    request = Request(page="list", url=LIST.url, headers={"Authorization": f"Bearer {SECRET}"})
    assert client.fetch(request, ACME).body == b"here"  # still from the mirror


@pytest.mark.parametrize(
    "location",
    [
        "http://169.254.169.254/latest/meta-data/",
        "https://169.254.169.254/",
        "https://evil.example/",
        "http://api.acme.example/v1/list",
        "https://api.acme.example:8443/v1/list",
        "https://user:pass@api.acme.example/",
        "file:///etc/passwd",
        "https://api.acme.example.evil.example/",
        "//evil.example/",
        "https://[::1/",
        "http://127.0.0.1:1/",
    ],
)
def test_a_redirect_to_anywhere_else_is_refused(
    server: LoopbackServer, client: Client, location: str
) -> None:
    server.add("/acme/v1/list", status=302, headers={"Location": location})
    with pytest.raises(FetchError, match=r"none of this provider's hosts|Invalid URL"):
        client.fetch(LIST, ACME)


def test_redirects_end_after_three(server: LoopbackServer, client: Client) -> None:
    server.add("/acme/v1/list", status=302, headers={"Location": "/acme/v1/list?page=1"})
    with pytest.raises(FetchError, match="redirected more than 3 times"):
        client.fetch(LIST, ACME)
    assert len(server.received) == 4


def test_a_redirect_to_nowhere_is_an_error(server: LoopbackServer, client: Client) -> None:
    server.add("/acme/v1/list", status=302)
    with pytest.raises(FetchError, match="redirected to nowhere"):
        client.fetch(LIST, ACME)


def test_a_post_does_not_follow_a_plain_redirect(server: LoopbackServer, client: Client) -> None:
    server.add("/acme/q", method="POST", status=302, headers={"Location": "/acme/v1/list"})
    with pytest.raises(FetchError, match="a POST does not follow"):
        client.fetch(
            Request(page="q", url="https://api.acme.example/q", method="POST", json_body={"a": 1}), ACME
        )


def test_a_key_is_not_carried_to_another_host() -> None:
    seen: list[tuple[str, str | None]] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append((request.url.host, request.headers.get("authorization")))
        if request.url.host == "api.acme.example":
            return httpx.Response(302, headers={"location": "https://docs.acme.example/x"})
        return httpx.Response(200, stream=httpx.ByteStream(b"here"))

    with Client(transport=httpx.MockTransport(answer)) as client:
        request = Request(page="list", url=LIST.url, headers={"Authorization": f"Bearer {SECRET}"})
        assert client.fetch(request, ACME).body == b"here"
    assert seen == [("api.acme.example", f"Bearer {SECRET}"), ("docs.acme.example", None)]


@pytest.mark.parametrize(
    "url",
    [
        "https://elsewhere.example/",
        "http://api.acme.example/",
        "ftp://api.acme.example/",
        "https:///v1",
        "not an address",
        "https://api.acme.example:x/",
        "https://api.acme.example\x00/",
    ],
)
def test_a_request_to_a_host_that_is_not_listed_is_never_sent(url: str) -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        raise AssertionError(f"sent to {request.url}")

    with Client(transport=httpx.MockTransport(answer)) as client, pytest.raises(FetchError):
        client.fetch(Request(page="list", url=url), ACME)


@pytest.mark.parametrize(
    "url",
    [
        "http://mirror.example",
        "http://192.0.2.1:8000",
        "ftp://127.0.0.1",
        "127.0.0.1:8000",
        "https://",
        "https://mirror.example/?x=1",
        "http://127.0.0.1:port",
        "http://localhost.example/",
    ],
)
def test_a_mirror_must_be_https_or_on_this_machine(url: str) -> None:
    with pytest.raises(SettingsError, match="BREAKEVEN_ACME_BASE_URL"):
        Client(base_urls={"acme": url})


def test_a_mirror_may_have_a_path(server: LoopbackServer, time: Time) -> None:
    server.add("/a/b/v1/list", b"here", query={"page": "1"})
    with Client(base_urls={"acme": f"{server.url}/a/b/"}, sleep=time.sleep) as client:
        assert client.fetch(LIST, ACME).body == b"here"


# -- manners ----------------------------------------------------------------------------------------


def test_requests_to_one_provider_keep_their_distance(time: Time) -> None:
    moments = []

    def answer(request: httpx.Request) -> httpx.Response:
        moments.append(time.now)
        return httpx.Response(200, stream=httpx.ByteStream(b"x"))

    with Client(transport=httpx.MockTransport(answer), clock=time.clock, sleep=time.sleep) as client:
        for _ in range(3):
            client.fetch(LIST, ACME)
    assert [later - earlier for earlier, later in pairwise(moments)] == [1.0, 1.0]


def test_a_mirror_on_this_machine_is_not_made_to_wait(
    server: LoopbackServer, client: Client, time: Time
) -> None:
    server.add("/acme/v1/list", b"x")
    for _ in range(3):
        client.fetch(LIST, ACME)
    assert time.slept == []


def test_the_proxy_of_the_environment_is_used(
    server: LoopbackServer, time: Time, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", server.url)  # answers CONNECT with 501
    with (
        Client(clock=time.clock, sleep=time.sleep) as client,
        pytest.raises(FetchError, match=r"through the proxy .*HTTPS_PROXY"),
    ):
        client.fetch(LIST, ACME)


def test_a_mirror_on_this_machine_needs_no_proxy(
    server: LoopbackServer, time: Time, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    server.add("/acme/v1/list", b"here")
    with Client(base_urls=server.base_urls("acme"), clock=time.clock, sleep=time.sleep) as client:
        assert client.fetch(LIST, ACME).body == b"here"


@pytest.mark.parametrize(
    ("name", "value"), [("SSL_CERT_FILE", "/does/not/exist.pem"), ("HTTPS_PROXY", "gopher://proxy:1")]
)
def test_a_setting_that_cannot_be_used_is_one_line(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)
    with Client() as client, pytest.raises(FetchError, match=f"^no connection .*{name}"):
        client.fetch(LIST, ACME)


# -- texts ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [403, 404, 429, 503])
def test_no_key_in_messages_or_addresses(server: LoopbackServer, client: Client, status: int) -> None:
    server.add("/acme/v1/list", status=status)
    server.add(f"/acme/{SECRET}/list", status=status)
    headers = {"Authorization": f"Bearer {SECRET}"}
    for url in (f"https://api.acme.example/v1/list?key={SECRET}", f"https://api.acme.example/{SECRET}/list"):
        with pytest.raises(FetchError) as caught:
            client.fetch(Request(page="list", url=url, headers=headers), ACME)
        assert SECRET not in f"{caught.value} {caught.value!r} {caught.value.url} {caught.value.__cause__!r}"


def test_no_key_in_the_address_of_a_page(server: LoopbackServer, client: Client) -> None:
    server.add("/acme/v1/list", b"x")
    url = f"https://api.acme.example/v1/list?key=other&page=1&x={SECRET}"
    assert client.fetch(Request(page="list", url=url), ACME).url == (
        "https://api.acme.example/v1/list?page=1&x=***"
    )


def test_a_key_with_a_line_break_is_an_error_without_it(server: LoopbackServer, client: Client) -> None:
    request = Request(page="list", url=LIST.url, headers={"Authorization": f"Bearer {SECRET}\n"})
    with pytest.raises(FetchError, match="line break") as caught:
        client.fetch(request, ACME)
    assert SECRET not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


def test_public_url_drops_credentials() -> None:
    assert public_url("https://u:p@x.example/a?API_KEY=1&b=2&token=3#f") == "https://x.example/a?b=2"
    assert (
        public_url("https://x.example/a?q=%7B%22a%22%3A+1%7D") == "https://x.example/a?q=%7B%22a%22%3A+1%7D"
    )


@pytest.mark.parametrize(
    ("body", "content_type", "text"),
    [
        ("3 €".encode(), "text/html", "3 €"),
        ("3 €".encode(), "text/html; charset=UTF-8", "3 €"),
        ("3 £".encode("latin-1"), "text/html; charset=ISO-8859-1", "3 £"),
        ("3 €".encode("cp1252"), 'text/html; charset="windows-1252"', "3 €"),
        (b"\xef\xbb\xbfbom", "text/plain", "bom"),
    ],
)
def test_the_declared_character_set_is_used(
    server: LoopbackServer, client: Client, body: bytes, content_type: str, text: str
) -> None:
    server.add("/acme/v1/list", body, headers={"Content-Type": content_type})
    assert client.fetch(LIST, ACME).text() == text


def test_a_body_in_another_character_set_than_declared_is_refused(
    server: LoopbackServer, client: Client
) -> None:
    server.add("/acme/v1/list", b"\xff\xfe", headers={"Content-Type": "text/html; charset=shift_jis"})
    with pytest.raises(FetchError, match="cannot be decoded"):
        client.fetch(LIST, ACME)


def test_a_body_that_is_not_utf8_is_refused_when_read(server: LoopbackServer, client: Client) -> None:
    server.add("/acme/v1/list", b"\xff\xfe", headers={"Content-Type": "text/html"})
    page = client.fetch(LIST, ACME)
    with pytest.raises(ParseError, match="not UTF-8"):
        page.text()


def test_a_failure_names_the_mirror_that_was_asked_and_none_of_its_keys() -> None:
    base = {"acme": "https://kim:word@mirror.example/t0ken-in-the-path"}

    def refuse(request: httpx.Request) -> httpx.Response:
        return httpx.Response(404, stream=httpx.ByteStream(b""))

    with (
        Client(base_urls=base, transport=httpx.MockTransport(refuse), sleep=lambda _: None) as client,
        pytest.raises(FetchError) as caught,
    ):
        client.fetch(Request(page="prices", url="https://api.acme.example/prices?key=s3cret&page=2"), ACME)
    assert str(caught.value) == "https://mirror.example (for api.acme.example/prices) answered 404 Not Found"
