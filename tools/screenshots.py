"""
Take the pictures of the documents: each page at two widths, light and dark, from the bundled prices.

    python tools/screenshots.py [PAGE...]

Needs Chromium and the test tools; writes docs/images/PAGE-WIDTH-SCHEME.png.
"""

import sys
import tempfile
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.dashboard.chromium import running_browser, running_server  # noqa: E402

if TYPE_CHECKING:
    from playwright.sync_api import Page

IMAGES = ROOT / "docs" / "images"
PAGES = {
    "decide": "",
    "size": "size?model=qwen3-coder-480b-a35b&gpu=B200&gpus=2",
    "market": "market?show_gpu=H100+SXM",
    "compare": "compare",
    "method": "method",
}
SIZES = {1280: 800, 390: 844}
SCHEMES = ("light", "dark")
COLOURS = 128  # enough for flat pages, and a third of the bytes


def main(names: list[str]) -> None:
    """Take the pictures of these pages, or of all."""
    from playwright.sync_api import sync_playwright

    with (
        tempfile.TemporaryDirectory() as folder,
        running_server(Path(folder) / "breakeven.db") as url,
        sync_playwright() as playwright,
        running_browser(playwright) as browser,
    ):
        for width, height in SIZES.items():
            for scheme in SCHEMES:
                context = browser.new_context(
                    viewport={"width": width, "height": height},
                    color_scheme="dark" if scheme == "dark" else "light",
                )
                page = context.new_page()
                for name in names or PAGES:
                    page.goto(f"{url}/{PAGES[name]}")
                    _settle(page)
                    _save(page.screenshot(), IMAGES / f"{name}-{width}-{scheme}.png")
                context.close()


def _settle(page: "Page") -> None:
    """Wait until everything is drawn."""
    page.locator("canvas").first.wait_for(timeout=120_000)
    page.locator('[data-testid="stApp"][data-test-script-state="notRunning"]').wait_for(timeout=120_000)
    page.wait_for_function(
        "document.querySelectorAll('[data-testid=stSkeleton]').length === 0", timeout=120_000
    )
    page.evaluate("document.fonts.ready")
    page.wait_for_timeout(1500)  # charts come in softly


def _save(shot: bytes, file: Path) -> None:
    from PIL import Image

    picture = Image.open(BytesIO(shot)).convert("RGB").quantize(COLOURS)
    picture.save(file, optimize=True)
    print(f"{file.relative_to(ROOT)}: {file.stat().st_size / 1000:.0f} kB")  # noqa: T201


if __name__ == "__main__":
    main(sys.argv[1:])
