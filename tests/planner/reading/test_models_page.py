"""docs/models.md against the reader and its tests."""

import re

from planner.catalogues.models import AttentionKind
from tests.conftest import ROOT

PAGE = (ROOT / "docs" / "models.md").read_text(encoding="utf-8")


def test_every_trap_of_the_page_has_a_test_and_every_test_a_trap():
    listed = [int(number) for number in re.findall(r"^\| (\d+) \|", PAGE, re.MULTILINE)]
    assert listed == list(range(1, 44))
    tested = set()
    for path in (ROOT / "tests" / "planner" / "reading").glob("test_traps_*.py"):
        for found in re.findall(r'"""Trap ([\d, ]+)', path.read_text(encoding="utf-8")):
            tested |= {int(number) for number in re.findall(r"\d+", found)}
    assert tested == set(listed)


def test_every_kind_of_layer_is_on_the_page():
    assert [kind for kind in AttentionKind if f"`{kind}`" not in PAGE] == []
