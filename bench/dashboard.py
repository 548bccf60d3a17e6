"""Time to the verdict in a real browser - after start, new, after a change - and page sizes; as JSON."""

import json
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
sys.path.remove(str(ROOT / "bench"))  # this file is called like the package

from tests.dashboard.chromium import running_browser, running_server  # noqa: E402

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

NEW_BROWSERS = 7
SLIDER_STEPS = 30
VERDICT = ".st-key-verdict"
PAGES = {"decide": "", "size": "size", "market": "market", "compare": "compare", "method": "method"}
SHOWS_A_VERDICT = f"document.querySelector({VERDICT!r})?.innerText.trim().length > 20"


def main() -> None:
    """Measure and print."""
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        database = Path(folder) / "breakeven.db"
        started = time.perf_counter()
        with running_server(database) as url, running_browser(playwright) as browser:
            answers_after = time.perf_counter() - started
            first = to_verdict(browser, url)
            new = sorted(to_verdict(browser, url) for _ in range(NEW_BROWSERS))
            steps = sorted(slider_steps(browser, url))
            sizes = {name: page_size(browser, f"{url}/{path}") for name, path in PAGES.items()}
    figures = {
        "server_answers_s": answers_after,
        "first_visit_s": first,
        "new_browser_median_s": median(new),
        "new_browser_max_s": new[-1],
        "slider_median_s": median(steps),
        "slider_p95_s": steps[int(0.95 * (len(steps) - 1))],
        "slider_max_s": steps[-1],
        "files_of_a_new_browser_mb": sizes["decide"][0] / 1e6,
        **{f"{name}_page_kb": messages / 1e3 for name, (_, messages) in sizes.items()},
    }
    print(json.dumps(figures))


def to_verdict(browser: "Browser", url: str) -> float:
    """Return the time from asking for the page to reading its verdict, with nothing cached. [s]"""
    context = browser.new_context()
    page = context.new_page()
    start = time.perf_counter()
    page.goto(url, wait_until="commit")
    page.wait_for_function(SHOWS_A_VERDICT, polling=10)
    seconds = time.perf_counter() - start
    context.close()
    return seconds


def page_size(browser: "Browser", url: str) -> tuple[int, int]:
    """Return what a new browser fetches as files, compressed, and what the page itself sends. [B]"""
    context = browser.new_context()
    page = context.new_page()
    files: list[int] = []
    messages: list[int] = []
    devtools = context.new_cdp_session(page)
    devtools.send("Network.enable")
    devtools.on("Network.loadingFinished", lambda event: files.append(int(event["encodedDataLength"])))
    page.on("websocket", lambda socket: socket.on("framereceived", lambda data: messages.append(len(data))))
    page.goto(url)
    page.locator("canvas").first.wait_for()
    settle(page)
    context.close()
    return sum(files), sum(messages)


def slider_steps(browser: "Browser", url: str) -> list[float]:
    """Return the times from pressing a key on the slider to reading the new verdict. [s]"""
    context = browser.new_context()
    page = context.new_page()
    page.goto(url)
    page.wait_for_function(SHOWS_A_VERDICT, polling=10)
    slider = page.locator(".st-key-hours_per_day").get_by_role("slider")
    slider.focus()
    times = []
    for step in range(SLIDER_STEPS):
        settle(page)
        hours = f"{4 + 0.1 * (step + 1):.1f}".removesuffix(".0")
        start = time.perf_counter()
        page.keyboard.press("ArrowRight")
        wanted = f"document.querySelector({VERDICT!r})?.innerText.includes(' {hours} h a day')"
        page.wait_for_function(wanted, polling=10)
        times.append(time.perf_counter() - start)
    context.close()
    return times


def settle(page: "Page") -> None:
    """Wait until the page is drawn to its end, as a person would before the next change."""
    page.locator('[data-testid="stApp"][data-test-script-state="notRunning"]').wait_for()
    page.wait_for_timeout(300)


if __name__ == "__main__":
    main()
