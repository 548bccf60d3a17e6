"""The documents: every file and picture that they name is there."""

import re

import pytest

from tests.conftest import ROOT

DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_what_a_document_links_to_is_there(document):
    targets = re.findall(r"\]\(([^)#\s]+)[^)]*\)", document.read_text(encoding="utf-8"))
    local = [target for target in targets if "://" not in target and not target.startswith("mailto:")]
    assert [target for target in local if not (document.parent / target).exists()] == []


def test_every_picture_stands_in_a_document():
    text = "".join(path.read_text(encoding="utf-8") for path in DOCUMENTS)
    assert [path.name for path in (ROOT / "docs" / "images").iterdir() if path.name not in text] == []
