"""
A web server on this machine that stands in for providers, for tests and benchmarks.

Everything goes through the real HTTP client:

    with LoopbackServer() as server:
        server.add("/vultr/v2/plans", file=payloads / "vultr_plans.json")
        client = Client(base_urls=server.base_urls("vultr"))

or, with the collected payloads of `shared/data/prices/payloads`, for whole runs and for the command line:

    with LoopbackServer(delay_s=0.3) as server:
        server.serve_payloads(shared / "data/prices/payloads", ["runpod", "vultr"])
        subprocess.run([...], env={**os.environ, **server.environ("runpod", "vultr")})

The recordings beside this file serve any provider that has them: `server.serve_recordings("crusoe", "oci")`.
Each provider lives under a path of its own (`http://127.0.0.1:PORT/vultr`), as behind a mirror.
"""

import gzip
import io
import json
import threading
import zipfile
import zlib
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Self
from urllib.parse import parse_qs, urlsplit

from pricing.money.ecb import BANK
from pricing.registry import providers
from pricing.tokens.litellm import LITELLM

RECORDINGS = Path(__file__).parent / "payloads"

Answer = Callable[["Handler"], None]

# Where each provider's pages live under its own prefix, and the collected payload that answers there:
# method, path, query that must be there, text that the request body must hold, file.
_SKYPILOT = "/skypilot-org/skypilot-catalog/master/catalogs/v8"
PAYLOADS: Mapping[str, list[tuple[str, str, dict[str, str], str, str]]] = {
    "runpod": [
        ("POST", "/graphql", {}, "gpuTypes", "runpod_gputypes.json"),
        ("GET", "/v2/catalog/gpus", {}, "", "runpod_v2_catalog_gpus.json"),
    ],
    "vastai": [
        ("GET", "/api/v0/bundles/", {}, "", "vast_bundles.json"),
        ("POST", "/api/v0/bundles/", {}, "", "vast_bundles.json"),
    ],
    "vultr": [
        ("GET", "/v2/plans", {}, "", "vultr_plans.json"),
        ("GET", "/v2/plans-metal", {}, "", "vultr_plans_metal.json"),
    ],
    "digitalocean": [
        ("GET", "/products/droplets/details/pricing/", {}, "", "digitalocean_droplets_pricing.html"),
        ("GET", "/v2/sizes", {}, "", "digitalocean_sizes.json"),
    ],
    "lambda": [
        ("GET", "/pricing", {}, "", "lambda_pricing.html"),
        ("GET", "/api/v1/instance-types", {}, "", "lambda_instance_types.json"),
    ],
    "aws": [
        (
            "GET",
            "/offers/v1.0/aws/AmazonEC2/current/us-east-1/index.csv",
            {},
            "",
            "aws_ec2_offer_sample.csv",
        )
    ],
    "azure": [("GET", "/api/retail/prices", {}, "", "azure_retail.json")],
    "gcp": [("GET", "/v1/services/6F81-5844-456A/skus", {}, "", "gcp_skus.json")],
    "oci": [("GET", "/pls/apex/cetools/api/v1/products/", {}, "", "oci_products.json")],
    "verda": [
        ("GET", "/pricing", {}, "", "verda_pricing.html"),
        ("GET", "/v1/instance-types", {}, "", "verda_instance_types.json"),
        ("GET", "/v1/instance-availability", {}, "", "verda_instance_availability.json"),
    ],
    "nebius": [("GET", "/prices", {}, "", "nebius_prices.html")],
    "coreweave": [("GET", "/pricing", {}, "", "coreweave_pricing.html")],
    "crusoe": [("GET", "/cloud/pricing", {}, "", "crusoe_pricing.html")],
    "hyperstack": [("GET", "/gpu-pricing", {}, "", "hyperstack_gpu_pricing.html")],
    "tensordock": [("GET", "/api/v2/locations", {}, "", "tensordock_locations.json")],
    "cudo": [("GET", "/v1/vms/machine-types", {}, "", "cudo_machine_types.json")],
    "scaleway": [
        ("GET", "/instance/v1/zones/fr-par-2/products/servers", {}, "", "scaleway_servers.json"),
        (
            "GET",
            "/instance/v1/zones/fr-par-2/products/servers/availability",
            {},
            "",
            "scaleway_availability.json",
        ),
    ],
    "ovhcloud": [("GET", "/1.0/order/catalog/public/cloud", {"ovhSubsidiary": "FR"}, "", "ovh_catalog.json")],
    "hotaisle": [("GET", "/pricing", {}, "", "hotaisle_pricing.html")],
    "jarvislabs": [("GET", "/misc/server_meta", {}, "", "jarvislabs_server_meta.json")],
    "hyperbolic": [("GET", "/v2/alpha/on-demand/rental-options", {}, "", "hyperbolic_rental_options.json")],
    "lium": [("GET", "/api/executors", {}, "", "lium_executors.json")],
    "together": [("GET", "/pricing", {}, "", "together_pricing.html")],
    "voltagepark": [("GET", "/api/v1/bare-metal/locations", {}, "", "voltagepark_locations.json")],
    "shadeform": [("GET", "/v1/instances/types", {}, "", "shadeform_instance_types.json")],
    "skypilot": [
        ("GET", f"{_SKYPILOT}/aws/vms.csv", {}, "", "skypilot_catalog_vms_aws.csv"),
        ("GET", f"{_SKYPILOT}/lambda/vms.csv", {}, "", "skypilot_catalog_vms_lambda.csv"),
    ],
    "gpuhunt": [("GET", "/v3/aws/20260720/catalog.zip", {}, "", "gpuhunt_catalog_aws.csv")],
}


@dataclass(frozen=True, slots=True)
class Received:
    """A request as it came."""

    method: str
    path: str
    query: Mapping[str, list[str]]
    headers: Mapping[str, str]
    body: bytes


@dataclass(slots=True)
class _Route:
    method: str
    path: str
    query: Mapping[str, str]
    contains: str
    answers: list[Answer] = field(default_factory=list)

    def fits(self, received: Received) -> bool:
        return (
            received.method == self.method
            and received.path == self.path
            and all(value in received.query.get(name, []) for name, value in self.query.items())
            and self.contains.encode() in received.body
        )


class Handler(BaseHTTPRequestHandler):
    """Answers from the routes of its server; an `Answer` gets it and may write whatever it likes."""

    protocol_version = "HTTP/1.1"
    server: "_Server"

    def _serve(self) -> None:
        url = urlsplit(self.path)
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        received = Received(self.command, url.path, parse_qs(url.query), dict(self.headers), body)
        with suppress(ConnectionError):
            self.server.owner._answer(self, received)

    do_GET = do_POST = _serve

    def log_message(self, format: str, *args: object) -> None:
        pass

    def reply(self, status: int, body: bytes = b"", headers: Mapping[str, str] | None = None) -> None:
        """Send a whole answer; a Content-Length given by hand is sent as given."""
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def wait(self, seconds: float) -> bool:
        """Wait, but no longer than the server lives; tell whether it still does."""
        return not self.server.owner.stopping.wait(seconds)


def nowhere() -> dict[str, str]:
    """Return the environment variables that let every source be refused at once, on this machine."""
    names = (*providers(), BANK.name, LITELLM.name)
    return {f"BREAKEVEN_{name.upper()}_BASE_URL": "http://127.0.0.1:9" for name in names}


def zipped(name: str, content: bytes) -> bytes:
    """Pack one file."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, content)
    return packed.getvalue()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 64
    owner: "LoopbackServer"


class LoopbackServer:
    """
    Serves what was added, 404 for all else, and remembers every request in `received`.

    Args:
        delay_s: Time before every answer, as of a distant server. [s]
    """

    def __init__(self, delay_s: float = 0.0) -> None:
        self.received: list[Received] = []
        self.stopping = threading.Event()
        self._delay_s = delay_s
        self._routes: list[_Route] = []
        self._lock = threading.Lock()
        self._server = _Server(("127.0.0.1", 0), Handler)
        self._server.owner = self
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stopping.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @property
    def url(self) -> str:
        """The address of its root, without a slash at the end."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def base_urls(self, *names: str) -> dict[str, str]:
        """Return what `Client(base_urls=...)` takes."""
        return {name: f"{self.url}/{name}" for name in names}

    def environ(self, *names: str) -> dict[str, str]:
        """Return the environment variables that point these providers here."""
        return {f"BREAKEVEN_{name.upper()}_BASE_URL": url for name, url in self.base_urls(*names).items()}

    def add(
        self,
        path: str,
        body: bytes | str | object = b"",
        *,
        file: Path | None = None,
        method: str = "GET",
        query: Mapping[str, str] | None = None,
        contains: str = "",
        status: int = 200,
        headers: Mapping[str, str] | None = None,
        encoding: str | None = None,
        answer: Answer | None = None,
    ) -> None:
        """
        Add an answer; several for one route are given in turn, the last one for ever.

        Args:
            path: As asked for, with the provider's prefix.
            body: Bytes, text, or anything that becomes JSON.
            file: Holds the body instead.
            method: GET or POST.
            query: Parameters that must be there.
            contains: Text that the request's body must hold, as of a GraphQL query.
            status: Of the answer.
            headers: Of the answer.
            encoding: `gzip` or `deflate`.
            answer: Writes the answer itself, for servers that misbehave.
        """
        data = file.read_bytes() if file else body
        if not isinstance(data, bytes):
            data = (data if isinstance(data, str) else json.dumps(data)).encode()
        more = dict(headers or {})
        if encoding is not None:
            data = gzip.compress(data) if encoding == "gzip" else zlib.compress(data)
            more["Content-Encoding"] = encoding
        content = data

        def whole(handler: Handler) -> None:
            handler.reply(status, content, more)

        wanted = _Route(method, path, query or {}, contains)
        key = (wanted.method, wanted.path, wanted.query, wanted.contains)
        for route in self._routes:
            if (route.method, route.path, route.query, route.contains) == key:
                route.answers.append(answer or whole)
                return
        wanted.answers.append(answer or whole)
        self._routes.append(wanted)

    def replace(self, path: str, body: object, *, method: str = "GET") -> None:
        """Let a route give this from now on."""
        self._routes = [route for route in self._routes if (route.method, route.path) != (method, path)]
        self.add(path, body, method=method)

    def serve_payloads(self, folder: Path, names: Collection[str] = tuple(PAYLOADS)) -> None:
        """Serve the collected payloads of these providers, each under its prefix."""
        for name in names:
            for method, path, query, contains, file in PAYLOADS[name]:
                body = (folder / file).read_bytes()
                if path.endswith(".zip"):
                    body = zipped(file.removeprefix("gpuhunt_catalog_"), body)
                self.add(f"/{name}{path}", body, method=method, query=query, contains=contains)
        if "gpuhunt" in names:
            self.add("/gpuhunt/v3/aws/version", "20260720")
        if "verda" in names:
            self.add("/verda/v1/oauth2/token", {"access_token": "for-an-hour"}, method="POST")

    def serve_recordings(self, *names: str, folder: Path = RECORDINGS) -> None:
        """Serve the recorded pages of providers, each at the path that its `meta.json` names."""
        for name in names:
            pages = json.loads((folder / name / "meta.json").read_text())["pages"]
            # Further pages first: their addresses hold a cursor, those of the first pages do not.
            for key, page in sorted(pages.items(), key=lambda item: "#" not in item[0]):
                url = urlsplit(page["url"])
                cursor = {} if "#" not in key else {k: v[-1] for k, v in parse_qs(url.query).items()}
                if "#" in key and not cursor:
                    continue  # another answer to the same question
                for method in ("GET", "POST"):
                    self.add(
                        f"/{name}{url.path}", file=folder / name / page["file"], method=method, query=cursor
                    )

    def _answer(self, handler: Handler, received: Received) -> None:
        with self._lock:
            self.received.append(received)
            route = next((route for route in self._routes if route.fits(received)), None)
            answer = None
            if route is not None:
                answer = route.answers.pop(0) if len(route.answers) > 1 else route.answers[0]
        if self._delay_s:
            handler.wait(self._delay_s)
        if answer is None:
            handler.reply(404, b"not here")
        else:
            answer(handler)
