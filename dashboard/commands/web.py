"""`dashboard`: the web interface, on this machine only unless told otherwise."""

import argparse
import contextlib
import errno
import http.client
import re
import socket
import sys
import threading
from collections.abc import Sequence
from importlib.resources import as_file, files
from ipaddress import ip_address

from dashboard.commands.arguments import count
from dashboard.commands.base import Commands, Context, NothingDone, Output, UsageError

# An installed package has no .streamlit/config.toml beside it, so every setting travels as a flag.
SETTINGS = {
    "server.headless": "true",  # opens no browser and asks for no address
    "browser.gatherUsageStats": "false",
    "logger.hideWelcomeMessage": "true",  # its text would ask another host for this machine's address
    "logger.level": "warning",
    "server.fileWatcherType": "none",
    "server.runOnSave": "false",
    "server.enableXsrfProtection": "true",
    "server.enableCORS": "true",
    "server.enableStaticServing": "false",
    "server.maxUploadSize": "16",
    "client.toolbarMode": "minimal",
    "client.showErrorDetails": "none",
    "client.showErrorLinks": "false",
    "runner.magicEnabled": "false",
    "global.disableWidgetStateDuplicationWarning": "true",  # widgets take their values from the address
    # Okabe and Ito's blue. A plain theme.primaryColor would make one light theme for everybody.
    "theme.light.primaryColor": "#0072B2",
    "theme.light.textColor": "#111111",  # captions are drawn in 60 % of it, and must be read as well
    "theme.dark.primaryColor": "#2389C9",  # the same, light enough for words on the dark ground
}
LOOPBACK_NAMES = ("127.0.0.1", "localhost", "[::1]")
SECONDS_TO_ANSWER = 60
_TAKEN = {errno.EADDRINUSE, getattr(errno, "WSAEADDRINUSE", None)}


def register(commands: Commands) -> None:
    """Add `dashboard`."""
    parser = commands.add(
        "dashboard",
        serve,
        help="open the web interface",
        example="breakeven dashboard --port 8600",
        more="It upgrades the database, loads the bundled prices once and prints its address.",
    )
    parser.add_argument(
        "--host", metavar="ADDRESS", default="127.0.0.1", help="address to listen on (127.0.0.1)"
    )
    parser.add_argument("--port", metavar="N", type=count, default=8501, help="port to listen on (8501)")
    parser.add_argument(
        "--allow-host",
        metavar="NAME",
        action="append",
        default=[],
        help="a name under which a proxy passes the page on; may be repeated",
    )
    parser.add_argument(
        "--base-path",
        metavar="PATH",
        type=_base_path,
        help="path under which a proxy passes the page on: tools/gpu for https://host/tools/gpu/",
    )


def _base_path(text: str) -> str:
    """Read the path under which a proxy passes the page on."""
    path = text.strip().strip("/")
    if not re.fullmatch(r"[\w.~-]+(/[\w.~-]+)*", path, re.ASCII) or {".", ".."} & set(path.split("/")):
        raise argparse.ArgumentTypeError(f"{text!r} is not a path; give letters and digits such as tools/gpu")
    return path


def serve(arguments: argparse.Namespace, context: Context) -> None:
    """Serve the pages until interrupted."""
    host, port = arguments.host, arguments.port
    _check_free(host, port)
    _prepare_database(context)
    if not _is_loopback(host):
        context.tell(f"warning: {host} can be reached from other machines, and the page has no log-in")
    base = f"/{arguments.base_path}" if arguments.base_path else ""
    url = f"http://{_shown_host(host)}:{port}{base}"
    threading.Thread(target=_announce, args=(host, port, base, url, context), daemon=True).start()
    flags = streamlit_flags(host, port, arguments.allow_host, arguments.base_path or "")
    with as_file(files("dashboard").joinpath("app.py")) as app:
        _run_streamlit(["run", str(app), *flags])


def streamlit_flags(
    host: str, port: int, allowed_hosts: Sequence[str] = (), base_path: str = ""
) -> list[str]:
    """Return every setting as a flag."""
    settings = [*SETTINGS.items(), ("server.address", host), ("server.port", str(port))]
    if base_path:
        settings.append(("server.baseUrlPath", base_path))
    if _is_loopback(host):  # no other site's page may reach this server under a name of its own
        settings += [("server.allowedHosts", name) for name in (*LOOPBACK_NAMES, *allowed_hosts)]
    return [f"--{name}={value}" for name, value in settings]


def _run_streamlit(flags: list[str]) -> None:
    from streamlit.web.cli import main

    with contextlib.redirect_stdout(sys.stderr):  # stdout is for the address
        try:
            main(flags, standalone_mode=False)
        except SystemExit as stop:
            if stop.code:
                raise NothingDone("the web server could not start; is the port taken?") from stop


def _prepare_database(context: Context) -> None:
    from dashboard.commands.storage import open_store

    open_store(context).close()


def _check_free(host: str, port: int) -> None:
    if not 1 <= port <= 65535:
        raise UsageError(f"--port: {port} is not a port; give one from 1 to 65535")
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except OSError as error:
        raise _not_here(host, error) from error
    with socket.socket(family, kind, protocol) as probe:
        if sys.platform != "win32":  # there the option would allow a second listener
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(address)
        except PermissionError as error:
            raise NothingDone(f"port {port} needs special rights; {_another(8501)} or higher") from error
        except OSError as error:
            if error.errno not in _TAKEN:
                raise _not_here(host, error) from error
            what = f"port {port} on {host} is taken; stop what uses it, or give another one"
            raise NothingDone(f"{what}: {_another(port % 65535 + 1)}") from error


def _another(port: int) -> str:
    """Say how another port is given, to the command and to make."""
    return f"--port {port}, or make dashboard PORT={port}"


def _not_here(host: str, error: OSError) -> UsageError:
    return UsageError(
        f"--host: {host!r} is not an address of this machine ({error.strerror}); give 127.0.0.1 for this "
        "machine alone, or 0.0.0.0 for all of its addresses"
    )


def _announce(host: str, port: int, base: str, url: str, context: Context) -> None:
    """Show the address once the server answers."""
    pause = threading.Event()
    for _ in range(SECONDS_TO_ANSWER * 10):
        if _answers(_reachable(host), port, f"{base}/_stcore/health"):
            text = f"breakeven is at {url} (Ctrl-C ends it)"
            with contextlib.suppress(OSError):
                context.show(Output(document={"schema": "breakeven.dashboard/1", "url": url}, text=text))
            return
        pause.wait(0.1)


def _answers(host: str, port: int, path: str) -> bool:
    connection = http.client.HTTPConnection(host, port, timeout=5)
    try:
        connection.request("GET", path)
        return connection.getresponse().status == http.client.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _reachable(host: str) -> str:
    """Return an address at which this machine reaches a server that listens on all."""
    return {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)


def _shown_host(host: str) -> str:
    reachable = _reachable(host)
    return f"[{reachable}]" if ":" in reachable else reachable
