"""The main path in a real browser: open, read the verdict, change the question, take the figures away."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest

from tests.dashboard.chromium import ROOT, Watched, find_chromium, running_browser, running_server, watch

pytestmark = pytest.mark.browser

if find_chromium() is None:
    pytest.skip("no Chromium on this machine (apt-get install chromium)", allow_module_level=True)

AXE = "axe_playwright_python.base"
VERDICT, OPTIONS = ".st-key-verdict", ".st-key-options"


@pytest.fixture(scope="module")
def server_database(bundled_database: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("server") / "breakeven.db"
    file.write_bytes(bundled_database.read_bytes())
    return file


@pytest.fixture(scope="module")
def url(server_database: Path) -> Iterator[str]:
    with running_server(server_database) as address:
        yield address


@pytest.fixture(scope="module")
def browser() -> Iterator[object]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright, running_browser(playwright) as browser:
        yield browser


@pytest.fixture
def watched(browser, url: str) -> Iterator[Watched]:
    context = browser.new_context(viewport={"width": 1280, "height": 900}, accept_downloads=True)
    context.set_default_timeout(30_000)
    yield watch(context, url)
    context.close()


def verdict(watched: Watched) -> str:
    return watched.page.locator(VERDICT).inner_text()


def wait_for_another_verdict(watched: Watched, before: str) -> str:
    watched.page.wait_for_function(
        "([selector, before]) => { const found = document.querySelector(selector);"
        " return found && found.innerText.trim() && found.innerText !== before; }",
        arg=[VERDICT, before],
    )
    return verdict(watched)


def query(watched: Watched) -> dict[str, list[str]]:
    return parse_qs(urlsplit(watched.page.url).query)


def wait_for_query(watched: Watched, **wanted: str) -> None:
    """Wait until the address says exactly this, in whatever order."""
    watched.page.wait_for_function(
        "wanted => { const found = new URLSearchParams(location.search); found.sort();"
        " const asked = new URLSearchParams(wanted); asked.sort();"
        " return found.toString() === asked.toString(); }",
        arg=wanted,
    )


def choose(watched: Watched, key: str, option: str) -> None:
    box = watched.page.locator(f".st-key-{key} input").first
    box.click()
    box.fill(option)
    watched.page.get_by_role("option", name=option, exact=True).click()


def settled(watched: Watched) -> None:
    watched.page.locator('[data-testid="stApp"][data-test-script-state="notRunning"]').wait_for()


def test_the_main_path(watched, url, server_database, tmp_path):
    page = watched.page
    page.goto(url)
    page.locator(f"{OPTIONS} canvas").first.wait_for()
    first = verdict(watched)
    assert "4 h a day" in first
    wait_for_query(watched, v="1")

    choose(watched, "model", "qwen3-8b")
    second = wait_for_another_verdict(watched, first)
    settled(watched)
    wait_for_query(watched, model="qwen3-8b", v="1")

    slider = page.locator(".st-key-hours_per_day").get_by_role("slider")
    slider.focus()
    slider.press("ArrowRight")
    third = wait_for_another_verdict(watched, second)
    settled(watched)
    assert "4.1 h a day" in third
    wait_for_query(watched, model="qwen3-8b", hours_per_day="4.1", v="1")

    page.reload()
    page.locator(f"{OPTIONS} canvas").first.wait_for()
    assert verdict(watched) == third

    with page.expect_download() as waiting:
        page.locator(".st-key-download_csv button").click()
    page_file = tmp_path / "page.csv"
    waiting.value.save_as(page_file)
    command_file = tmp_path / "command.csv"
    options = ["qwen3-8b", "--hours-per-day", "4.1", "-o", str(command_file)]
    subprocess.run(
        [sys.executable, "-m", "dashboard", "export", *options],
        cwd=ROOT,
        env={**os.environ, "BREAKEVEN_DATABASE_URL": f"sqlite:///{server_database}"},
        check=True,
        capture_output=True,
    )
    taken, written = (file.read_text(encoding="utf-8").splitlines() for file in (page_file, command_file))
    permalink = next(place for place, line in enumerate(written) if line.startswith("# permalink: "))
    assert taken.pop(permalink) == f"# permalink: {url}/?model=qwen3-8b&hours_per_day=4.1&v=1"
    assert written.pop(permalink) == "# permalink: /?model=qwen3-8b&hours_per_day=4.1&v=1"
    assert taken == written  # all but the address, of which the command knows no host

    assert watched.foreign == []
    assert watched.errors == []


def test_an_address_opens_the_page_in_that_state(watched, url):
    page = watched.page
    page.goto(f"{url}/?model=qwen3-8b&hours_per_day=8&quant=FP8")
    page.locator(VERDICT).get_by_text("8 h a day").wait_for()
    assert page.locator(".st-key-model input").first.input_value() == "qwen3-8b"
    assert watched.errors == []


def test_a_decimal_comma_is_read_as_one_and_a_doubtful_comma_is_refused(watched, url):
    page = watched.page
    page.goto(f"{url}/?model=qwen3-8b")
    page.locator(f"{OPTIONS} canvas").first.wait_for()
    field = page.locator(".st-key-electricity_usd_per_kwh input")
    field.fill("0,35")
    field.press("Enter")
    wait_for_query(watched, model="qwen3-8b", electricity_usd_per_kwh="0.35", v="1")
    settled(watched)
    assert field.input_value() == "0.35"
    budget = page.locator(".st-key-budget_usd input")
    budget.fill("1,234")
    budget.press("Enter")
    page.locator("[data-testid=stAlert]", has_text="without a comma: 1234").wait_for()
    budget.fill("1234,50")
    budget.press("Enter")
    wait_for_query(watched, model="qwen3-8b", electricity_usd_per_kwh="0.35", budget_usd="1234.5", v="1")


def test_an_address_with_an_alias_and_bad_values_becomes_the_canonical_one(watched, url):
    page = watched.page
    page.goto(f"{url}/?model=Qwen/Qwen3-8B&hours_per_day=99&provider=runpod,vastai")
    page.get_by_text("In the address").first.wait_for()
    settled(watched)
    page.wait_for_function("() => location.search.includes('model=qwen3-8b')")
    assert query(watched) == {"model": ["qwen3-8b"], "provider": ["runpod", "vastai"], "v": ["1"]}
    assert "hours_per_day" in page.locator("[data-testid=stAlert]").all_inner_texts()[0]


def test_the_question_survives_the_way_over_all_pages_a_reload_and_another_browser(watched, browser, url):
    page = watched.page
    asked = {"model": "qwen3-8b", "hours_per_day": "8", "context": "4096", "owner": "home", "set": "pue=1.2"}
    page.goto(f"{url}/?{urlencode(asked)}")
    page.locator(f"{OPTIONS} canvas").first.wait_for()
    settled(watched)
    first = verdict(watched)
    for name in ("Size", "Market", "Compare", "Method", "Decide"):
        page.get_by_role("link", name=name, exact=True).click()
        path = "/" if name == "Decide" else f"/{name.lower()}"
        page.wait_for_url(lambda address, path=path: urlsplit(address).path == path)
        page.locator(VERDICT if name == "Decide" else ".st-key-answer").wait_for()
        settled(watched)
        wait_for_query(watched, **asked, v="1")
    assert verdict(watched) == first
    page.reload()
    page.locator(f"{OPTIONS} canvas").first.wait_for()
    assert verdict(watched) == first
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    other = watch(context, url)
    other.page.goto(page.url)
    other.page.locator(f"{OPTIONS} canvas").first.wait_for()
    assert verdict(other) == first
    context.close()


def test_back_and_forward_show_the_question_of_their_address(watched, url):
    page = watched.page
    page.goto(f"{url}/?model=qwen3-8b&context=4096&owner=home&v=1")
    page.locator(f"{OPTIONS} canvas").first.wait_for()
    settled(watched)
    first = verdict(watched)
    slider = page.locator(".st-key-hours_per_day").get_by_role("slider")
    slider.focus()
    slider.press("End")
    second = wait_for_another_verdict(watched, first)
    asked = {"model": "qwen3-8b", "context": "4096", "owner": "home", "v": "1"}
    wait_for_query(watched, **asked, hours_per_day="24")
    settled(watched)
    page.get_by_role("link", name="Size", exact=True).click()
    page.locator(".st-key-answer").wait_for()
    settled(watched)
    wait_for_query(watched, **asked, hours_per_day="24")
    page.get_by_role("tab", name="Launch").click()
    wait_for_query(watched, **asked, hours_per_day="24", size_tab="launch")
    settled(watched)
    page.go_back()
    page.locator("[role=tab][aria-selected=true]").get_by_text("Formats").wait_for()
    wait_for_query(watched, **asked, hours_per_day="24")
    page.go_back()
    page.locator(VERDICT).wait_for()
    settled(watched)
    assert verdict(watched) == second
    page.go_back()
    assert wait_for_another_verdict(watched, second) == first
    wait_for_query(watched, **asked)
    page.go_forward()
    assert wait_for_another_verdict(watched, first) == second
    wait_for_query(watched, **asked, hours_per_day="24")


@pytest.mark.parametrize("path", ["size", "market", "compare", "method"])
def test_every_page_answers_at_a_path_of_its_own_and_asks_no_other_host(watched, url, path):
    page = watched.page
    page.goto(f"{url}/{path}")
    page.locator(".st-key-answer").wait_for()
    settled(watched)
    assert watched.foreign == []
    # Streamlit looks for its server below the path of the page first; the browser notes that it is not there.
    unexpected = [error for error in watched.errors if not re.search(r"status of 404", error)]
    assert unexpected == []


def test_a_table_is_taken_with_the_address_at_which_the_reader_sees_it(watched, url, tmp_path):
    page = watched.page
    page.goto(f"{url}/market?show_gpu=B200&currency=EUR")
    page.get_by_role("button", name="Download").first.click()
    with page.expect_download() as waiting:
        page.locator(".st-key-take_offers_csv button").click()
    waiting.value.save_as(tmp_path / "offers.csv")
    top = [line for line in (tmp_path / "offers.csv").read_text("utf-8").splitlines() if line[0] == "#"]
    assert f"# permalink: {url}/market?currency=EUR&show_gpu=B200&v=1" in top
    assert len([line for line in top if line.startswith("# note: Shown in EUR at the reference rate")]) == 1


def test_the_pages_work_below_a_path(browser, server_database):
    with running_server(server_database, base_path="tools/gpu") as address:
        context = browser.new_context(viewport={"width": 1280, "height": 900})
        watched = watch(context, address.removesuffix("/tools/gpu"))
        page = watched.page
        page.goto(f"{address}/?model=qwen3-8b")
        page.locator(f"{OPTIONS} canvas").first.wait_for()
        first = verdict(watched)
        page.get_by_role("link", name="Size", exact=True).click()
        page.locator(".st-key-answer").wait_for()
        settled(watched)
        assert urlsplit(page.url).path == "/tools/gpu/size"
        wait_for_query(watched, model="qwen3-8b", v="1")
        page.reload()
        page.locator(".st-key-answer").wait_for()
        page.get_by_role("link", name="Decide", exact=True).click()
        page.locator(f"{OPTIONS} canvas").first.wait_for()
        assert verdict(watched) == first
        assert urlsplit(page.url).path == "/tools/gpu/"
        assert watched.foreign == []
        page.get_by_role("button", name="Always on").click()
        wait_for_query(watched, model="qwen3.5-35b-a3b", hours_per_day="24", v="1")
        assert "24 h a day" in wait_for_another_verdict(watched, first)
        assert urlsplit(page.url).path == "/tools/gpu/"
        assert len(context.pages) == 1  # no other window was opened
        context.close()


def columns_in_sight(watched: Watched, key: str) -> list[str]:
    """Return the titles of the columns of a table that stand on the screen in full, without scrolling."""
    grid = watched.page.locator(f".st-key-{key}").first
    grid.locator("canvas").first.wait_for()
    titles = grid.locator("[role=columnheader]")  # of the table that a screen reader is given: what is drawn
    titles.first.wait_for(state="attached")
    return [title for title in titles.all_inner_texts() if title][:-1]  # the last one may be cut


def test_what_decides_is_in_sight_without_scrolling_on_a_laptop(browser, url):
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    watched = watch(context, url)
    watched.page.goto(url)
    seen = columns_in_sight(watched, "options")
    wanted = [
        "option",
        "USD/month",
        "from",
        "USD/M tokens*",
        "one user* [tok/s]",
        "counts",
        "price seen",
        "source",
    ]
    assert seen[: len(wanted)] == wanted
    watched.page.goto(f"{url}/market")
    seen = columns_in_sight(watched, "offers")
    assert seen[:8] == ["GPU", "USD/GPU-h", "provider", "tier", "region", "status", "seen [UTC]", "source"]
    context.close()


@pytest.fixture
def narrow(browser, url: str) -> Iterator[Watched]:
    context = browser.new_context(viewport={"width": 390, "height": 844})
    yield watch(context, url)
    context.close()


@pytest.mark.parametrize("path", ["", "size", "market", "compare", "method"])
def test_a_narrow_screen_or_a_large_zoom_needs_no_sideways_scrolling(narrow, url, path):
    narrow.page.goto(f"{url}/{path}")
    narrow.page.locator("canvas").first.wait_for()
    settled(narrow)
    for width in (390, 640):  # a phone; a laptop of 1,280 px at a zoom of 200 %
        narrow.page.set_viewport_size({"width": width, "height": 844})
        for wide in ("document.documentElement", "document.querySelector('[data-testid=stMain]')"):
            assert narrow.page.evaluate(f"{wide}.scrollWidth <= window.innerWidth"), (width, wide)


@pytest.mark.parametrize(
    ("path", "key", "titles"),
    [("", "options", ["option", "USD/month"]), ("market", "offers", ["GPU", "USD/GPU-h"])],
)
def test_a_narrow_screen_shows_what_it_is_and_what_it_costs(narrow, url, path, key, titles):
    narrow.page.goto(f"{url}/{path}")
    assert columns_in_sight(narrow, key)[:2] == titles


@pytest.mark.parametrize("width", [390, 1280])
def test_formulas_and_hardware_are_wrapped_and_not_cut(narrow, url, width):
    narrow.page.set_viewport_size({"width": width, "height": 844})
    narrow.page.goto(f"{url}/size?model=qwen3-8b&size_tab=formulas")
    narrow.page.locator("td", has_text="methodology").first.wait_for()
    cells = narrow.page.locator("[data-testid=stTable] td [data-testid=stMarkdownContainer]")
    assert cells.count() > 40
    is_cut = "cells => cells.filter(cell => cell.scrollWidth > cell.clientWidth).map(cell => cell.innerText)"
    assert cells.evaluate_all(is_cut) == []


def serious(watched: Watched, script: str) -> list[tuple[str, list[str]]]:
    """Return what axe-core calls serious or critical on the page as it stands."""
    watched.page.evaluate(f"window.axe ?? eval({json.dumps(script)})")
    result = watched.page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    return [
        (violation["id"], [node["html"][:200] for node in violation["nodes"]])
        for violation in result["violations"]
        if violation["impact"] in ("serious", "critical")
    ]


@pytest.mark.parametrize("path", ["", "size", "market", "compare", "method"])
def test_an_accessibility_scan_finds_nothing_serious(watched, url, path):
    axe = pytest.importorskip(AXE)
    page = watched.page
    page.goto(f"{url}/{path}")
    page.locator("canvas").first.wait_for()
    settled(watched)
    for folded in page.locator("[data-testid=stExpander] summary:visible").all():
        folded.click()
    for tab in page.get_by_role("tab").all() or [None]:
        if tab is not None:
            tab.click()
            page.locator("[role=tabpanel]:visible [data-testid=stElementContainer]").first.wait_for()
        settled(watched)
        assert serious(watched, axe.AXE_SCRIPT) == [], tab
    light = page.locator("[data-testid=stApp]").evaluate("app => getComputedStyle(app).backgroundColor")
    page.emulate_media(color_scheme="dark")
    page.wait_for_function(
        "light => getComputedStyle(document.querySelector('[data-testid=stApp]')).backgroundColor !== light",
        arg=light,
    )
    settled(watched)
    assert serious(watched, axe.AXE_SCRIPT) == [], "dark"
    page.set_viewport_size({"width": 390, "height": 844})
    settled(watched)
    assert serious(watched, axe.AXE_SCRIPT) == [], "dark and narrow"
