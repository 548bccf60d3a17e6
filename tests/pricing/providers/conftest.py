"""Fixtures that let a provider read answers given as text, objects or files."""

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from tests.pricing.providers.reading import Reading, as_page, providers, split

Read = Callable[[str, Mapping[str, object]], Reading]


@pytest.fixture
def read() -> Read:
    """A function that lets a provider read pages: `read("vultr", {"plans": {...}})`."""

    def run(name: str, contents: Mapping[str, object]) -> Reading:
        provider = providers()[name]
        pages = {key: as_page(provider, key, content) for key, content in contents.items()}
        return split(provider.parse(pages))

    return run


@pytest.fixture
def read_shared(read: Read, shared: Path) -> Callable[..., Reading]:
    """The same for the collected payloads: `read_shared("vultr", plans="vultr_plans.json")`."""

    def run(name: str, **files: str) -> Reading:
        folder = shared / "data" / "prices" / "payloads"
        return read(name, {key: folder / file for key, file in files.items()})

    return run


@pytest.fixture
def recorded() -> Callable[..., str]:
    """The text of a recorded page, for a test to change: `recorded("crusoe", "pricing.html")`."""
    folder = Path(__file__).parent.parent / "payloads"
    return lambda name, file: (folder / name / file).read_text()
