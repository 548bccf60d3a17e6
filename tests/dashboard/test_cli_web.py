"""`breakeven dashboard`: its settings, its address, its end."""

import json
import os
import signal
import subprocess
import sys
import urllib.request

import pytest

from dashboard.commands import web
from tests.dashboard.chromium import free_port


def settings(host: str, *allowed: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for flag in web.streamlit_flags(host, 8501, allowed):
        name, _, value = flag.removeprefix("--").partition("=")
        found.setdefault(name, []).append(value)
    return found


def test_every_setting_travels_as_a_flag():
    given = settings("127.0.0.1")
    assert given["browser.gatherUsageStats"] == ["false"]
    assert given["server.address"] == ["127.0.0.1"]
    assert given["server.headless"] == ["true"]
    assert given["client.showErrorDetails"] == ["none"]
    assert given["server.fileWatcherType"] == ["none"]
    assert given["logger.hideWelcomeMessage"] == ["true"]


def test_every_setting_is_one_that_streamlit_knows():
    from streamlit import config

    known = config.get_config_options()
    assert set(settings("127.0.0.1")) <= set(known)


def test_on_this_machine_only_its_own_names_and_those_of_a_proxy_are_answered():
    assert settings("127.0.0.1")["server.allowedHosts"] == ["127.0.0.1", "localhost", "[::1]"]
    assert settings("127.0.0.1", "plans.example.com")["server.allowedHosts"][-1] == "plans.example.com"
    assert "server.allowedHosts" not in settings("0.0.0.0")


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGTERM to send")
@pytest.mark.parametrize("stop", [signal.SIGTERM, signal.SIGINT])
def test_it_prints_its_address_once_it_answers_and_ends_cleanly(database, stop):
    port = free_port()
    process = subprocess.Popen(
        [sys.executable, "-m", "dashboard", "dashboard", "--port", str(port), "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ},
    )
    try:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(4)]
        document = json.loads("".join(lines))
        assert document == {"schema": "breakeven.dashboard/1", "url": f"http://127.0.0.1:{port}"}
        with urllib.request.urlopen(f"{document['url']}/_stcore/health", timeout=10) as answer:
            assert answer.status == 200
        process.send_signal(stop)
        out, err = process.communicate(timeout=20)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 0
    assert out == ""
    assert "Traceback" not in err
