"""
Send a provider's requests: bounded in time, size, tries, and in where they may go.

The only module that imports httpx. Whatever goes wrong becomes a `FetchError` whose text holds no key.
"""

import random
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import urljoin, urlsplit

import httpx

from pricing.errors import FetchError
from pricing.provider import Page, Request, Site
from pricing.settings import Settings
from pricing.storage.kept import Kept, KeptPages
from pricing.web.addresses import destination, mirror
from pricing.web.answers import Answers
from pricing.web.failures import Again, Failures, Lost
from pricing.web.line import Line, Watch
from pricing.web.manners import Manners, pause_before
from pricing.web.robots import PRODUCT

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
# A price page moves once at most, over one more address for the language. Source: own choice.
MAX_REDIRECTS = 3
# A new connection costs more than reading so much. Source: own choice.
DRAINED_BYTES = 64 * 1024
_REDIRECTS = frozenset({301, 302, 303, 307, 308})


def user_agent(contact: str | None = None) -> str:
    """Say who asks and whom to write to; bare library agents are refused by some sites."""
    return f"{PRODUCT}/{_VERSION} (GPU prices, read once a night; contact: {contact or _NO_CONTACT})"


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
        self._failures = Failures(self._base_urls, secrets)
        self._answers = Answers(self._failures, self._spool_folder, clock, wall_clock)
        self._user_agent = user_agent(contact)
        self._kept = kept
        self._transport = transport
        self._clock = clock
        self._sleep = sleep
        self._jitter = jitter
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
            line.manners.pace(request, deadline)
            try:
                return self._send(line, request, provider, deadline, kept)
            except Again as failure:
                kept = None if isinstance(failure, Lost) else kept
                pause = pause_before(number, failure.after_s, self._jitter())
                if number == tries or pause is None or self._clock() + pause >= deadline:
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
                raise self._failures.late(request, provider)
            conditions = kept.conditions if kept is not None and kept.answered_by == target else {}
            with line.watched(deadline - self._clock()) as watch, self._wrapped(request, provider, watch):
                message = self._message(line, method, target, {**headers, **conditions, **ranged}, body)
                with line.stream(message) as response:
                    if response.status_code not in {200, 206}:
                        _drain(response)
                    if response.status_code == 304 and self._kept and kept is not None and conditions:
                        return self._answers.unchanged(kept, self._kept, request, provider)
                    if response.status_code not in _REDIRECTS:
                        self._answers.check_status(response, request, provider)
                        page = self._answers.read(response, request, provider, deadline, watch)
                        if self._kept is not None:
                            self._kept.keep(request, provider, page, response.headers, target)
                        return page
                    location = response.headers.get("location")
            if not location:
                raise self._failures.error(request, provider, "was redirected to nowhere")
            if body is not None and response.status_code in {301, 302}:
                raise self._failures.error(
                    request, provider, "was redirected, and a POST does not follow that"
                )
            try:
                url = urljoin(target, location)
                is_same_host = urlsplit(url).hostname == urlsplit(target).hostname
            except ValueError as error:
                raise self._failures.error(
                    request, provider, "was redirected to no usable address"
                ) from error
            if not is_same_host:
                headers = {}  # a key is for the host it was meant for
            if response.status_code == 303:
                method, body = "GET", None
            self._heed_robots(line, url, request, provider)
        raise self._failures.error(request, provider, f"was redirected more than {MAX_REDIRECTS} times")

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

    @contextmanager
    def _wrapped(self, request: Request, provider: Site, watch: Watch) -> Iterator[None]:
        """Turn whatever httpx raises into our errors."""
        try:
            yield
        except OSError as error:  # httpx wraps those of the network
            text = f"could not be kept in the temporary folder ({error.strerror}): make room there"
            raise self._failures.error(request, provider, text) from error
        except httpx.TransportError as error:
            if watch.has_cut:
                raise self._failures.late(request, provider) from error
            failure = self._failures.error(request, provider, _describe(error))
            if isinstance(error, httpx.LocalProtocolError):  # its text may quote a header, and so a key
                raise failure from None
            if isinstance(error, httpx.UnsupportedProtocol | httpx.ProxyError) or "certificate" in str(error):
                raise failure from error
            raise Again(failure) from error
        except (
            httpx.HTTPError,
            httpx.InvalidURL,
            httpx.StreamError,
            UnicodeError,
            ValueError,
            TypeError,
        ) as error:
            raise self._failures.error(
                request, provider, f"could not be sent: {type(error).__name__}"
            ) from None

    # -- where a request may go -----------------------------------------------------------------------

    def _heed_robots(self, line: "_Line", url: str, request: Request, provider: Site) -> None:
        line.manners.heed_robots(url, request, lambda robots: self.fetch(robots, provider))

    def _target(self, url: str, provider: Site, request: Request) -> str:
        """Return the address to ask: checked, and on the mirror where one is set."""
        try:
            return destination(url, provider.allowed_hosts(), self._base_urls.get(provider.name))
        except ValueError as error:
            raise self._failures.error(request, provider, str(error)) from error

    # -- connections ----------------------------------------------------------------------------------

    def _line(self, provider: Site) -> "_Line":
        with self._lock:
            if provider.name not in self._lines:
                try:
                    base = self._base_urls.get(provider.name)
                    manners = Manners(provider, base, self._failures, self._clock, self._sleep)
                    self._lines[provider.name] = _Line(self._transport, manners)
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


class _Line(Line):
    """The line with httpx at its end."""

    def __init__(self, transport: httpx.BaseTransport | None, manners: Manners) -> None:
        super().__init__(manners)
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

    @contextmanager
    def stream(self, message: httpx.Request) -> Iterator[httpx.Response]:
        """Send, and close the answer whatever happens."""
        response = self.httpx.send(message, stream=True)
        try:
            yield response
        finally:
            response.close()


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
