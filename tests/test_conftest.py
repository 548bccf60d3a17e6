"""What every test rests on: in CI a skip is a failure, whatever asks for it."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.conftest import ROOT

SKIPS = {
    "test": "def test_a():\n    pytest.skip('no browser')\n",
    "fixture": "@pytest.fixture\ndef asked():\n    pytest.skip('none')\n\ndef test_a(asked):\n    pass\n",
    "mark": "@pytest.mark.skipif(True, reason='no disk')\ndef test_a():\n    pass\n",
    "file": "pytest.skip('no browser', allow_module_level=True)\n",
    "import": "yaml = pytest.importorskip('no_such_module')\n",
    "expected": "@pytest.mark.xfail\ndef test_a():\n    assert False\n",
}
LIVE = {"live": "@pytest.mark.live\ndef test_a():\n    pass\n\ndef test_b():\n    pass\n"}


def outcome_of(folder: Path, texts: Mapping[str, str], **environ: str) -> subprocess.CompletedProcess[str]:
    for name, text in texts.items():
        (folder / f"test_{name}.py").write_text(f"import pytest\n\n{text}", encoding="utf-8")
    options = ["-p", "tests.conftest", "-p", "no:cacheprovider", "--continue-on-collection-errors"]
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-c", os.devnull, *options, "--rootdir", str(folder), str(folder)],
        cwd=ROOT,
        env={**os.environ, **environ},
        capture_output=True,
        text=True,
    )


@pytest.mark.parametrize(
    ("ci", "code", "closing"), [("", 0, "5 skipped, 1 xfailed"), ("true", 1, "2 failed, 4 errors")]
)
def test_what_a_user_s_clone_may_skip_fails_in_ci(tmp_path: Path, ci: str, code: int, closing: str) -> None:
    ran = outcome_of(tmp_path, SKIPS, CI=ci)
    assert closing in ran.stdout
    assert ran.returncode == code


@pytest.mark.parametrize(("asked", "closing"), [("", "1 passed, 1 deselected"), ("1", "2 passed")])
def test_tests_of_real_providers_are_left_to_those_who_ask(tmp_path: Path, asked: str, closing: str) -> None:
    assert closing in outcome_of(tmp_path, LIVE, BREAKEVEN_LIVE=asked).stdout
