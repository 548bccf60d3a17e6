"""Sources are found by themselves, exactly one for each module, and each is described."""

import csv
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from urllib.parse import urlsplit

import pytest

from planner.errors import UnknownName
from pricing.errors import PricingError, UnknownProvider
from pricing.provider import ProviderClass, shows_asks
from pricing.registry import (
    discover,
    find_provider,
    kinds,
    provider_info,
    provider_infos,
    providers,
)
from pricing.storage.snapshot import snapshot_offers

MODULE = """
from pricing.provider import Provider, ProviderClass
class {cls}(Provider):
    name = "{name}"
    title = "Acme"
    kind = ProviderClass.NEOCLOUD
    home = "https://acme.example/"
    def parse(self, pages): return []
"""


@pytest.fixture
def package(tmp_path: Path) -> Iterator[ModuleType]:
    module = ModuleType("stray_providers")
    module.__path__ = [str(tmp_path)]
    sys.modules["stray_providers"] = module
    yield module
    for name in [name for name in sys.modules if name.startswith("stray_providers")]:
        del sys.modules[name]


def test_a_new_module_is_found_by_itself(package: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "acme.py").write_text(MODULE.format(cls="Acme", name="acme"))
    assert list(discover(package)) == ["acme"]


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"a": "x = 1"}, "holds 0 providers instead of one"),
        ({"a": MODULE.format(cls="A", name="a") + MODULE.format(cls="B", name="b")}, "holds 2 providers"),
        (
            {"a": MODULE.format(cls="A", name="same"), "b": MODULE.format(cls="B", name="same")},
            "'same' is taken",
        ),
        ({"a": MODULE.format(cls="A", name="")}, "lacks name"),
        ({"a": MODULE.format(cls="A", name="a").replace("    title", "    other")}, "lacks title"),
        ({"a": MODULE.format(cls="A", name="a").replace("def parse", "def read")}, "lacks a method"),
    ],
)
def test_a_module_that_is_not_one_provider_is_an_error(
    package: ModuleType, tmp_path: Path, files: dict[str, str], message: str
) -> None:
    for name, source in files.items():
        (tmp_path / f"{name}.py").write_text(source)
    with pytest.raises(PricingError, match=message):
        discover(package)


def test_what_is_said_of_a_provider_agrees_with_its_module() -> None:
    for name, provider in providers().items():
        info = provider_info(name)
        said = (info.title, info.kind, info.home, info.has_scraper)
        assert said == (provider.title, provider.kind, provider.home, True), name


def test_every_host_that_is_asked_is_named() -> None:
    """Nothing is sent anywhere but to the sources named by `breakeven providers`."""
    for name, provider in providers().items():
        named = {urlsplit(url).hostname for url in provider_info(name).sources}
        assert provider.allowed_hosts() <= named, name


def test_hosts_ask_where_no_list_is_posted() -> None:
    asking = {name for name, info in provider_infos().items() if shows_asks(info.kind, name)}
    assert asking >= {"vastai", "tensordock", "lium", "hyperbolic", "akash", "spheron"}
    assert not asking & {"runpod", "cudo", "salad", "novita", "packet-ai", "gpuhub", "nebius", "aws"}
    assert not shows_asks(None, "nobody")


def test_all_keys_of_the_interface_are_described(shared: Path) -> None:
    text = (shared / "INTERFACE.md").read_text(encoding="utf-8")
    section = text.partition("## Provider keys")[2].partition("##")[0]
    keys = {key for line in re.findall(r"`([a-z ]+)`", section) for key in line.split()} - {"witness"}
    assert len(keys) == 27
    assert keys <= provider_infos().keys()


def test_all_providers_of_the_collection_are_described(shared: Path) -> None:
    with (shared / "data/prices/offers_snapshot.csv").open(encoding="utf-8") as file:
        names = {row["provider"] for row in csv.DictReader(file)}
    assert len(names) == 39
    for name in names:
        assert provider_info(name).title


def test_all_sellers_of_the_bundled_collection_are_described() -> None:
    for offer in snapshot_offers():
        assert offer.provider in provider_infos()
        assert offer.witness is None or kinds()[offer.witness] is ProviderClass.WITNESS


@pytest.mark.parametrize(
    ("spelling", "name"),
    [
        ("vast.ai", "vastai"),
        ("Vast.ai", "vastai"),
        ("RunPod", "runpod"),
        ("hot aisle", "hotaisle"),
        ("Genesis Cloud", "genesis-cloud"),
        ("packetai", "packet-ai"),
        (" aws ", "aws"),
    ],
)
def test_names_are_found_however_they_are_spelled(spelling: str, name: str) -> None:
    assert provider_info(spelling).name == name


@pytest.mark.parametrize("find", [find_provider, provider_info])
def test_an_unknown_name_comes_with_close_matches(find: object) -> None:
    assert callable(find)
    with pytest.raises(UnknownProvider, match="unknown provider 'runpodd'; close matches: runpod") as caught:
        find("runpodd")
    assert isinstance(caught.value, PricingError)
    assert isinstance(caught.value, UnknownName)
    assert caught.value.matches == ("runpod",)


def test_a_provider_that_nothing_reads_is_told_apart_from_a_typing_error() -> None:
    assert not provider_info("akash").has_scraper
    with pytest.raises(UnknownProvider, match="only in the bundled collection"):
        find_provider("akash")


def test_titles_cost_no_module() -> None:
    """A plan asks for titles; loading two dozen modules and an HTML parser takes longer than that."""
    code = (
        "import sys; from pricing.registry import provider_info; provider_info('runpod'); "
        "sys.exit(any(m.startswith(('pricing.providers.', 'selectolax', 'httpx')) for m in sys.modules))"
    )
    root = Path(__file__).resolve().parents[2]
    assert subprocess.run([sys.executable, "-c", code], cwd=root, check=False).returncode == 0


def test_every_description_is_complete() -> None:
    for name, info in provider_infos().items():
        assert info.title
        for url in (*info.sources, *([info.home] if info.home else [])):
            assert url.startswith("https://"), (name, url)
        assert info.has_scraper <= bool(info.sources), name
