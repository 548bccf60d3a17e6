"""
Send a provider's requests: bounded in time, size, tries, and in where they may go.

The only module that imports httpx. Whatever goes wrong becomes a `FetchError` whose text holds no key.
"""

import random
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import urljoin, urlsplit

import httpx

from pricing.addresses import asked_at, destination, is_loopback, mirror, public_url, without_secrets
from pricing.body import Sink, Undecodable, inflated
from pricing.errors import Blocked, FetchError, NotThere, TooLarge
from pricing.kept import Damaged, Kept, KeptPages, checked
from pricing.provider import Page, Request, Site
from pricing.robots import PRODUCT, Robots, Unreachable, ask, rules_of
from pricing.settings import Settings

__all__ = ["Client", "user_agent"]

try:
    _VERSION = version("breakeven")
except PackageNotFoundError:  # run from a checkout that is not installed
    _VERSION = "0"
# Whom to write to where nobody is named: whoever reads this in a log can find the text below by it.
_NO_CONTACT = "its user, who set no BREAKEVEN_CONTACT"
# A server that is there answers a connection at once. Source: own choice.
CONNECT_TIMEOUT_S = 10.0
# Slow price lists think for some seconds before the first byte. Source: own choice.
READ_TIMEOUT_S = 30.0
# Few, so that a server in trouble is left alone; with their pauses they stay within the deadline.
# Source: own choice.
MAX_TRIES = 3
FIRST_PAUSE_S = 1.0  # doubled with every try, times 0.5 to 1.5
# A longer wish of a server is an answer for the next run. Source: own choice.
MAX_RETRY_AFTER_S = 30.0
# A price page moves once at most, over one more address for the language. Source: own choice.
MAX_REDIRECTS = 3
# A new connection costs more than reading so much. Source: own choice.
DRAINED_BYTES = 64 * 1024
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_TRY_AGAIN = frozenset({429, 502, 503, 504})


def user_agent(contact: str | None = None) -> str:
    """Say who asks and whom to write to; bare library agents are refused by some sites."""
    return f"{PRODUCT}/{_VERSION} (GPU prices, read once a night; contact: {contact or _NO_CONTACT})"


class _Again(Exception):
    """A failure after which the same request may be sent once more."""

    def __init__(self, error: FetchError, after_s: float | None = None) -> None:
        self.error = error
        self.after_s = after_s
        super().__init__(str(error))


class _Lost(_Again):
    """What was kept of an answer cannot be read any more."""


class Client:
    """
    Fetches for all providers of a run; closed at its end, which removes spooled files.

    Different providers may be fetched from different threads, one provider from one thread at a time.

    Args:
        base_urls: Provider name to a mirror or proxy that stands in for all of its hosts.
        secrets: Texts that must not appear in any message or address.
        contact: Whom a site may write to; part of the User-Agent.
        kept: Answers of earlier runs; a source that has not changed need not send them again.
        transport: Stands in for the network in tests.
        clock: Monotonic seconds. [s]
        sleep: Waits the given seconds.
        jitter: Returns numbers between 0 and 1.
        wall_clock: For a `Retry-After` that is a date.
    """

    def __init__(
        self,
        *,
        base_urls: Mapping[str, str] | None = None,
        secrets: Iterable[str] = (),
        contact: str | None = None,
        kept: KeptPages | None = None,
        transport: httpx.BaseTransport | None = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
        jitter: Callable[[], float] = random.random,
        wall_clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._base_urls = {name: mirror(name, url) for name, url in (base_urls or {}).items() if url}
        self._secrets = tuple(secrets)
        self._user_agent = user_agent(contact)
        self._kept = kept
        self._transport = transport
        self._clock = clock
        self._sleep = sleep
        self._jitter = jitter
        self._wall_clock = wall_clock
        self._lines: dict[str, _Line] = {}
        self._lock = threading.Lock()
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    @classmethod
    def of(cls, settings: Settings) -> Self:
        """Return the client of a run as the environment wants it."""
        return cls(
            base_urls=settings.base_urls,
            secrets=settings.secrets,
            contact=settings.contact,
            kept=KeptPages(settings.cache_folder / "pages"),
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End all connections and remove spooled files."""
        with self._lock:
            for line in self._lines.values():
                line.httpx.close()
            self._lines.clear()
            if self._folder is not None:
                self._folder.cleanup()
                self._folder = None

    def fetch(self, request: Request, provider: Site) -> Page:
        """
        Send one request of a provider and return its answer.

        Raises:
            Blocked: on 401 and 403, on 429 that lasts, and where robots.txt keeps a page from programs.
            TooLarge: if the inflated body is over `request.max_bytes`.
            FetchError: for anything else; the text holds no key.
        """
        deadline = self._clock() + request.deadline_s
        line = self._line(provider)
        self._heed_robots(line, request.url, request, provider)
        kept = None if self._kept is None else self._kept.find(request, provider)
        tries = MAX_TRIES if request.method == "GET" or request.is_safe else 1
        for number in range(1, tries + 1):
            self._pace(line, provider, request, deadline)
            try:
                return self._send(line, request, provider, deadline, kept)
            except _Again as failure:
                kept = None if isinstance(failure, _Lost) else kept
                pause = failure.after_s
                if pause is None:
                    pause = FIRST_PAUSE_S * 2 ** (number - 1) * (0.5 + self._jitter())
                is_last = number == tries or pause > MAX_RETRY_AFTER_S
                if is_last or self._clock() + pause >= deadline:
                    raise failure.error from failure.__cause__
            self._sleep(pause)
        raise AssertionError("unreachable: the last try returns or raises")

    def settle(self, provider: Site, *, is_read: bool) -> None:
        """Be told that all pages of a provider came, and whether prices were found on them."""
        if self._kept is not None:
            self._kept.settle(provider, is_read=is_read)

    # -- one try ------------------------------------------------------------------------------------

    def _send(
        self, line: "_Line", request: Request, provider: Site, deadline: float, kept: Kept | None
    ) -> Page:
        """Send once, following redirects within the provider's own hosts."""
        url, method, headers = request.url, request.method, dict(request.headers)
        body, ranged = request.json_body, _range_header(request)
        for _ in range(MAX_REDIRECTS + 1):
            target = self._target(url, provider, request)
            if self._clock() >= deadline:
                raise self._late(request, provider)
            conditions = kept.conditions if kept is not None and kept.answered_by == target else {}
            with line.watched(deadline - self._clock()) as watch, self._wrapped(request, provider, watch):
                message = self._message(line, method, target, {**headers, **conditions, **ranged}, body)
                with line.stream(message) as response:
                    if response.status_code not in {200, 206}:
                        _drain(response)
                    if response.status_code == 304 and kept is not None and conditions:
                        return self._unchanged(kept, request, provider)
                    if response.status_code not in _REDIRECTS:
                        self._check_status(response, request, provider)
                        page = self._read(response, request, provider, deadline, watch)
                        if self._kept is not None:
                            self._kept.keep(request, provider, page, response.headers, target)
                        return page
                    location = response.headers.get("location")
            if not location:
                raise self._error(request, provider, "was redirected to nowhere")
            if body is not None and response.status_code in {301, 302}:
                raise self._error(request, provider, "was redirected, and a POST does not follow that")
            try:
                url = urljoin(target, location)
                is_same_host = urlsplit(url).hostname == urlsplit(target).hostname
            except ValueError as error:
                raise self._error(request, provider, "was redirected to no usable address") from error
            if not is_same_host:
                headers = {}  # a key is for the host it was meant for
            if response.status_code == 303:
                method, body = "GET", None
            self._heed_robots(line, url, request, provider)
        raise self._error(request, provider, f"was redirected more than {MAX_REDIRECTS} times")

    def _message(
        self, line: "_Line", method: str, url: str, headers: Mapping[str, str], body: Mapping[str, Any] | None
    ) -> httpx.Request:
        return line.httpx.build_request(
            method,
            url,
            headers={
                "Accept": "*/*",
                "Accept-Encoding": "gzip, deflate",
                **headers,
                "User-Agent": self._user_agent,
            },
            json=body,
            extensions={"trace": line.trace},
        )

    def _check_status(self, response: httpx.Response, request: Request, provider: Site) -> None:
        status = response.status_code
        if status == (200 if request.byte_range is None else 206):
            return
        if status == 200:
            raise self._error(request, provider, "sent all of a file of which a part was asked for")
        answer = f"answered {status} {response.reason_phrase}".rstrip()
        if status in {401, 403}:
            variable = f"BREAKEVEN_{provider.name.upper()}_API_KEY"
            needs_key = bool(provider.requires_key or request.headers)
            hint = f"check {variable}" if needs_key else "it does not want to be read by us"
            raise self._error(request, provider, f"{answer}: {hint}", Blocked, status)
        if status == 429:
            late = f"{answer}: asked too often, wait for the next run"
            error = self._error(request, provider, late, Blocked, status)
            raise _Again(error, self._retry_after(response))
        if status in _TRY_AGAIN:
            error = self._error(request, provider, f"{answer}: try again later", status=status)
            raise _Again(error, self._retry_after(response))
        kind = NotThere if status in {404, 410} else FetchError
        raise self._error(request, provider, answer, kind, status)

    def _read(
        self,
        response: httpx.Response,
        request: Request,
        provider: Site,
        deadline: float,
        watch: "_Watch",
    ) -> Page:
        """Read the body, inflating no more than is allowed, and into a file where it is large."""
        declared = response.headers.get("content-length", "")
        if declared.isdecimal() and int(declared) > request.max_bytes:
            raise self._too_large(request, provider)
        sink = Sink(self._spool_folder)
        pieces = inflated(response.iter_raw(), response.headers.get("content-encoding", ""))
        bounded = self._bounded(pieces, request, provider, deadline)
        try:
            for piece in bounded if request.sieve is None else request.sieve(bounded):
                sink.write(piece)
            if watch.has_cut:  # without a declared length a cut connection looks like an end
                raise self._late(request, provider)
            if request.byte_range is not None:
                whole = _whole_bytes(response.headers.get("content-range", ""))
                return replace(sink.page(request.page, self._public(request.url), "utf-8"), whole_bytes=whole)
            charset = (response.charset_encoding or "utf-8").lower()
            return sink.page(request.page, self._public(request.url), charset)
        except (Undecodable, UnicodeError, LookupError) as error:
            raise self._error(request, provider, f"sent a body that cannot be decoded: {error}") from error
        finally:
            sink.close()

    def _bounded(
        self, pieces: Iterable[bytes], request: Request, provider: Site, deadline: float
    ) -> Iterator[bytes]:
        """Yield the pieces of a body as long as it is within its size and its time."""
        size = 0
        for piece in pieces:
            size += len(piece)
            if size > request.max_bytes:
                raise self._too_large(request, provider)
            if self._clock() > deadline:
                raise self._late(request, provider)
            yield piece

    def _unchanged(self, kept: Kept, request: Request, provider: Site) -> Page:
        """Return the answer of an earlier run; one that is damaged is asked for again, without conditions."""
        assert self._kept is not None
        sink = Sink(self._spool_folder)
        try:
            pieces = inflated(self._kept.packed(kept, provider), "gzip")
            for piece in checked(pieces, kept.digest):
                sink.write(piece)
                if sink.size > request.max_bytes:
                    raise self._too_large(request, provider)
            page = sink.page(request.page, self._public(request.url), "utf-8")
        except (Damaged, Undecodable, OSError) as error:
            text = f"has not changed, and what was kept of it is lost: {error}"
            raise _Lost(self._error(request, provider, text), 0.0) from error
        finally:
            sink.close()
        self._kept.use(request, provider, kept)
        return replace(page, is_unchanged=True)

    @contextmanager
    def _wrapped(self, request: Request, provider: Site, watch: "_Watch") -> Iterator[None]:
        """Turn whatever httpx raises into our errors."""
        try:
            yield
        except OSError as error:  # httpx wraps those of the network
            text = f"could not be kept in the temporary folder ({error.strerror}): make room there"
            raise self._error(request, provider, text) from error
        except httpx.TransportError as error:
            if watch.has_cut:
                raise self._late(request, provider) from error
            failure = self._error(request, provider, _describe(error))
            if isinstance(error, httpx.LocalProtocolError):  # its text may quote a header, and so a key
                raise failure from None
            if isinstance(error, httpx.UnsupportedProtocol | httpx.ProxyError) or "certificate" in str(error):
                raise failure from error
            raise _Again(failure) from error
        except (
            httpx.HTTPError,
            httpx.InvalidURL,
            httpx.StreamError,
            UnicodeError,
            ValueError,
            TypeError,
        ) as error:
            raise self._error(request, provider, f"could not be sent: {type(error).__name__}") from None

    # -- where a request may go -----------------------------------------------------------------------

    def _target(self, url: str, provider: Site, request: Request) -> str:
        """Return the address to ask: checked, and on the mirror where one is set."""
        try:
            return destination(url, provider.allowed_hosts(), self._base_urls.get(provider.name))
        except ValueError as error:
            raise self._error(request, provider, str(error)) from error

    def _heed_robots(self, line: "_Line", url: str, request: Request, provider: Site) -> None:
        """Raise where the host of a page keeps it from programs; each host is asked once a run."""
        if not request.is_page:
            return
        where, page = rules_of(url, self._base_urls.get(provider.name))
        if where not in line.robots:
            try:
                line.robots[where] = ask(where, lambda robots: self.fetch(robots, provider))
            except Unreachable as error:
                text = f"is left alone, since what its host lets programs read is not known: {error}"
                raise self._error(request, provider, text) from error
        rules = line.robots[where]
        if not rules.allows(page):
            text = self._redact(
                f"{page.partition('?')[0]} is kept from programs by {where}: nothing was read"
            )
            raise Blocked(text, provider=provider.name, url=self._public(request.url))
        line.pause_s = max(line.pause_s, rules.delay_s)

    # -- pauses ---------------------------------------------------------------------------------------

    def _pace(self, line: "_Line", provider: Site, request: Request, deadline: float) -> None:
        """Keep the provider's own distance between two requests; a mirror on this machine needs none."""
        base = self._base_urls.get(provider.name)
        if line.last_sent is not None and not (base and base.hostname and is_loopback(base.hostname)):
            wait = line.last_sent + max(provider.min_interval_s, line.pause_s) - self._clock()
            if wait > 0:
                if self._clock() + wait >= deadline:
                    text = f"wants {wait:.0f} s of pause, more than is left of {request.deadline_s:g} s"
                    raise self._error(request, provider, text)
                self._sleep(wait)
        line.last_sent = self._clock()

    def _retry_after(self, response: httpx.Response) -> float | None:
        """Return the pause that the server asks for. [s]"""
        wish = response.headers.get("retry-after", "").strip()
        if wish.isdecimal():
            return float(wish)
        try:
            moment = parsedate_to_datetime(wish)
        except (TypeError, ValueError):
            return None
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        return max(0.0, (moment - self._wall_clock()).total_seconds())

    # -- texts ----------------------------------------------------------------------------------------

    def _error(
        self,
        request: Request,
        provider: Site,
        what: str,
        kind: type[FetchError] = FetchError,
        status: int | None = None,
    ) -> FetchError:
        url = self._public(request.url)
        where = asked_at(url, self._base_urls.get(provider.name))
        return kind(self._redact(f"{where} {what}"), provider=provider.name, url=url, status=status)

    def _late(self, request: Request, provider: Site) -> FetchError:
        return self._error(request, provider, f"was not done within {request.deadline_s:g} s")

    def _too_large(self, request: Request, provider: Site) -> FetchError:
        return self._error(request, provider, f"is over the {request.max_bytes} bytes allowed", TooLarge)

    def _public(self, url: str) -> str:
        return self._redact(public_url(url))

    def _redact(self, text: str) -> str:
        return without_secrets(text, self._secrets)

    # -- connections ----------------------------------------------------------------------------------

    def _line(self, provider: Site) -> "_Line":
        with self._lock:
            if provider.name not in self._lines:
                try:
                    self._lines[provider.name] = _Line(self._transport)
                except (OSError, ValueError, ImportError, httpx.InvalidURL):
                    text = "no connection can be set up with these HTTPS_PROXY and SSL_CERT_FILE: check both"
                    raise FetchError(text, provider=provider.name) from None
            return self._lines[provider.name]

    def _spool_folder(self) -> Path:
        with self._lock:
            if self._folder is None:
                self._folder = tempfile.TemporaryDirectory(prefix="breakeven-")
            return Path(self._folder.name)


def _range_header(request: Request) -> dict[str, str]:
    """Return what asks for a part of a file, as it is: a part of a packed file could not be unpacked."""
    if request.byte_range is None:
        return {}
    first, last = request.byte_range
    return {"Range": f"bytes={first}-{last}", "Accept-Encoding": "identity"}


def _whole_bytes(content_range: str) -> int | None:
    """Return the size of the whole file from `bytes 0-7/1234`, None where it is not stated."""
    size = content_range.rpartition("/")[2].strip()
    return int(size) if size.isascii() and size.isdecimal() and len(size) < 19 else None


class _Line:
    """The one connection to a provider, and the means to cut it."""

    def __init__(self, transport: httpx.BaseTransport | None) -> None:
        # `trust_env` honours HTTPS_PROXY and SSL_CERT_FILE; httpx 0.28 reads no netrc unless told to.
        # Plain http is for loopback only and needs no proxy.
        self.httpx = httpx.Client(
            transport=transport,
            trust_env=True,
            follow_redirects=False,
            timeout=httpx.Timeout(READ_TIMEOUT_S, connect=CONNECT_TIMEOUT_S),
            limits=httpx.Limits(max_connections=1, max_keepalive_connections=1),
            mounts={"http://": None, "all://localhost": None, "all://127.0.0.1": None},
        )
        self.last_sent: float | None = None
        self.robots: dict[str, Robots] = {}  # by address
        self.pause_s = 0.0  # asked for by them
        self._network: Any = None
        self._watch: _Watch | None = None

    def trace(self, event: str, info: Mapping[str, Any]) -> None:
        """Keep hold of the connection in use; called by httpx."""
        if event.endswith(("connect_tcp.complete", "start_tls.complete")):
            self._network = info["return_value"]
            if self._watch is not None and self._watch.has_cut:  # the deadline struck while connecting
                self._cut()

    @contextmanager
    def stream(self, message: httpx.Request) -> Iterator[httpx.Response]:
        """Send, and close the answer whatever happens."""
        response = self.httpx.send(message, stream=True)
        try:
            yield response
        finally:
            response.close()

    @contextmanager
    def watched(self, seconds: float) -> Iterator["_Watch"]:
        """Cut the connection after so long, however busily it drips: httpx only bounds each single read."""
        watch = self._watch = _Watch(self._cut)
        timer = threading.Timer(max(0.0, seconds), watch.cut)
        timer.daemon = True
        timer.start()
        try:
            yield watch
        finally:
            timer.cancel()

    def _cut(self) -> None:
        network = self._network
        connection = network.get_extra_info("socket") if network is not None else None
        if connection is not None:
            with suppress(OSError):  # closed already
                connection.shutdown(socket.SHUT_RDWR)  # wakes a waiting read, which closing would not


class _Watch:
    """Whether the deadline struck while a request was under way."""

    def __init__(self, cut: Callable[[], None]) -> None:
        self.has_cut = False
        self._cut = cut

    def cut(self) -> None:
        self.has_cut = True
        self._cut()


def _drain(response: httpx.Response) -> None:
    """Read a short body that is of no use, so that the connection can be used again."""
    declared = response.headers.get("content-length", "")
    if declared.isdecimal() and int(declared) <= DRAINED_BYTES:
        for _ in response.iter_raw():
            pass


def _describe(error: Exception) -> str:
    """Say in a few words what went wrong on the way."""
    match error:
        case httpx.ConnectTimeout():
            return f"took no connection within {CONNECT_TIMEOUT_S:g} s"
        case httpx.TimeoutException():
            return f"sent nothing for {READ_TIMEOUT_S:g} s"
        case httpx.LocalProtocolError():
            return "could not be asked: the request is not valid HTTP (is there a line break in a key?)"
        case httpx.ProxyError():
            return f"cannot be reached through the proxy ({error}): check HTTPS_PROXY"
        case httpx.ConnectError() if "certificate" in str(error).lower():
            return f"has no certificate that we trust ({error}): behind a proxy set SSL_CERT_FILE"
        case httpx.ConnectError():
            return f"cannot be reached ({error}): check the network, or set HTTPS_PROXY"
        case httpx.RemoteProtocolError() | httpx.ReadError():
            return f"broke off ({error})"
        case _:
            return f"failed ({type(error).__name__})"
