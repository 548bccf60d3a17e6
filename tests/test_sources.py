"""Every source that code and documents name is in the repository or public."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import ROOT

TEXT = {".py", ".toml", ".md", ".mako", ".service", ".timer", ".yml"}
PARTS = ("planner", "pricing", "dashboard", "migrations", "docs", "deploy", "tools", "bench")
FILES = sorted(
    path
    for folder in (ROOT / part for part in PARTS)
    for path in folder.rglob("*")
    if path.suffix in TEXT and "__pycache__" not in path.parts
) + [
    ROOT / name
    for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "NOTICE", "Makefile", "pyproject.toml")
]
# Collections of facts and lists of work that lie beside some checkouts and in no clone.
ELSEWHERE = re.compile(
    r"\b(?:PROVIDERS|SIZING|MODELS|TCO|INTERFACE|UX|STYLE)(?:\.md|,? section|,? \d)|\bof INTERFACE\b"
    r"|(?<!aiconfigurator )\bissue \d"
    r"|\b(?:offers_snapshot|hardware|hardware_aliases|history_dev|fx_rates)\.csv\b"
)
# Tools that build the bundled files, or replay all of it, take them from such a collection, and say so.
BUILDERS = {"tools/build_snapshot.py", "tools/build_history.py", "bench/past.py"}
DOCUMENTS = {path.stem: path.read_text(encoding="utf-8") for path in (ROOT / "docs").glob("*.md")}


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def named_headings(path: Path) -> Iterator[tuple[str, str]]:
    """Yield document and heading of every `docs/x.md, "Heading"`, also where a line breaks in between."""
    text = re.sub(r"\s*\n\s*#?\s*", " ", path.read_text(encoding="utf-8"))
    for match in re.finditer(r'docs/(\w+)\.md((?:, "[^"]+")+)', text):
        for heading in re.findall(r'"([^"]+)"', match[2]):
            yield match[1], heading


RECORDINGS = sorted((ROOT / "tests").rglob("meta.json"))


@pytest.mark.parametrize("path", [*FILES, *RECORDINGS], ids=relative)
def test_no_source_is_a_document_that_a_clone_lacks(path: Path) -> None:
    if relative(path) in BUILDERS:
        return
    lines = path.read_text(encoding="utf-8").splitlines()
    assert not [f"{number}: {line}" for number, line in enumerate(lines, 1) if ELSEWHERE.search(line)]


# Parts of the patterns stand apart, so that this file does not hold what it looks for.
REGISTRY_OR_MACHINE = re.compile(
    r"\b(?:py"
    + r"pi|pythonhosted|npm"
    + r"js|conda-forge)\.(?:org|com)\b|(?<![\w.])/(?:ro"
    + r"ot|wo"
    + r"rk)/"
)


@pytest.mark.parametrize("path", [*FILES, *sorted((ROOT / "tests").rglob("*.py"))], ids=relative)
def test_no_file_names_a_package_registry_or_a_folder_of_one_machine(path: Path) -> None:
    lines = path.read_text(encoding="utf-8").splitlines()
    assert not [
        f"{number}: {line}" for number, line in enumerate(lines, 1) if REGISTRY_OR_MACHINE.search(line)
    ]


def test_what_is_kept_out_is_recognised() -> None:
    for line in ("# Source: PROVIDERS 0.5", "MODELS.md section 1", "see TCO, section 3", "fixed in issue 2"):
        assert ELSEWHERE.search(line), line
    for line in (
        "PROVIDERS = providers()",
        "gpuhunt#36",
        "planner/data/models.toml",
        "github.com/a/b/issues/7",
    ):
        assert not ELSEWHERE.search(line), line


def test_every_heading_that_is_named_stands_in_its_document() -> None:
    named = {pair for path in FILES for pair in named_headings(path) if pair[0] in DOCUMENTS}
    assert len(named) > 20
    missing = [
        (document, heading)
        for document, heading in sorted(named)
        if not re.search(
            rf"(?m)^#+ {re.escape(heading)}\s*$|\*\*{re.escape(heading)}[.:* ]", DOCUMENTS[document]
        )
    ]
    assert not missing
