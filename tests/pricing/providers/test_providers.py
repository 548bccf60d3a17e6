"""Every provider reads its recording to the expected offers, and nothing else as if it were one."""

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import fields
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from pricing.errors import ParseError
from pricing.offer import RawOffer
from pricing.provider import Keys, Page, Provider, ProviderClass
from tests.pricing.providers.reading import Reading, as_page, providers, split

PAYLOADS = Path(__file__).parent.parent / "payloads"
PROVIDERS = providers()


@pytest.fixture(params=sorted(PROVIDERS))
def provider(request: pytest.FixtureRequest) -> Provider:
    return PROVIDERS[request.param]


def recording(provider: Provider) -> dict[str, Page]:
    folder = PAYLOADS / provider.name
    assert (folder / "meta.json").is_file(), f"{provider.name} has no recording in {folder}"
    meta = json.loads((folder / "meta.json").read_text())
    for page in meta["pages"].values():
        assert page.keys() == {"file", "url", "date", "how"}
    return {key: as_page(provider, key, folder / page["file"]) for key, page in meta["pages"].items()}


def document(reading: Reading) -> str:
    """One offer or problem a line, so that a person can read the difference."""
    defaults = {field.name: field.default for field in fields(RawOffer)}

    def line(item: object, names: list[str]) -> str:
        values = {name: getattr(item, name) for name in names}
        kept = {name: value for name, value in values.items() if value != defaults.get(name, "")}
        return json.dumps(kept, default=str, ensure_ascii=False)

    offers = [line(offer, list(defaults)) for offer in reading.offers]
    problems = [line(problem, ["what", "why", "raw"]) for problem in reading.problems]
    blocks = []
    for key, lines in (("offers", offers), ("problems", problems)):
        blocks.append(f'"{key}": [\n  ' + ",\n  ".join(lines) + "\n ]" if lines else f'"{key}": []')
    return "{\n " + ",\n ".join(blocks) + "\n}\n"


def test_recording_gives_the_expected_offers(provider: Provider, update_expected: bool) -> None:
    expected = PAYLOADS / provider.name / "expected.json"
    found = document(split(provider.parse(recording(provider))))
    json.loads(found)
    if update_expected:
        expected.write_text(found)
    assert found == expected.read_text()


def test_no_two_offers_of_a_recording_are_one_series(provider: Provider) -> None:
    key = ["cloud", "instance_type", "gpu", "canonical_gpu", "gpu_count", "gpu_fraction"]
    key += ["memory_gb_per_gpu", "form", "region", "tier", "commitment_days"]
    offers = split(provider.parse(recording(provider))).offers
    counted = Counter(tuple(getattr(offer, name) for name in key) for offer in offers)
    assert [series for series, n in counted.items() if n > 1] == []


def test_every_offer_is_pinned(provider: Provider) -> None:
    pages = recording(provider)
    for offer in split(provider.parse(pages)).offers:
        assert offer.page in pages
        assert offer.price_per_hour > 0
        assert offer.raw
        assert offer.currency in {"USD", "EUR"}
        assert offer.memory_gb_per_gpu is None or 1 <= offer.memory_gb_per_gpu <= 300
        assert (offer.cloud is not None) == (provider.kind is ProviderClass.WITNESS)
        assert Decimal("0.005") < offer.price_per_hour / offer.gpu_count < 60


def test_saved_answers_are_recognised_by_their_shape(provider: Provider) -> None:
    for key, page in recording(provider).items():
        assert provider.recognise(page) == key.partition("#")[0]


@pytest.mark.parametrize(
    "body",
    [b"", b"   ", b"<html><body>Log in</body></html>", b"{}", b"[]", b"null", b"\xff\xfe", b"Bad gateway"],
)
def test_another_document_is_no_price_list(provider: Provider, body: bytes) -> None:
    for key, page in recording(provider).items():
        stem = key.partition("#")[0]
        with pytest.raises(ParseError):
            list(provider.parse({stem: Page(key=stem, url=page.url, body=body)}))
        if len(provider.pages) > 1:
            assert provider.recognise(Page(key="?", url="", body=body)) is None


def test_a_page_that_was_cut_off_is_refused(provider: Provider) -> None:
    pages = recording(provider)
    for key, page in pages.items():
        cut = Page(key=key, url=page.url, body=page.body[: len(page.body) * 2 // 3])
        with pytest.raises(ParseError):
            list(provider.parse({**pages, key: cut}))


def broken(node: Any, values: tuple[object, ...]) -> Iterator[Any]:
    """Every way to put one of these values in the place of one part of a document."""
    yield from values
    items = node.items() if isinstance(node, dict) else enumerate(node[:4]) if isinstance(node, list) else ()
    for key, part in items:
        for other in broken(part, values):
            copy = dict(node) if isinstance(node, dict) else list(node)
            copy[key] = other
            yield copy


def test_part_of_another_kind_makes_a_problem_or_an_error_and_nothing_else(provider: Provider) -> None:
    pages = recording(provider)
    for key, page in pages.items():
        if page.body[:1] not in {b"{", b"["}:
            continue
        for document in broken(json.loads(page.body), (None, "x", -1)):
            other = Page(key=key, url=page.url, body=json.dumps(document).encode())
            with suppress(ParseError):
                found = split(provider.parse({**pages, key: other}))
                assert all(offer.price_per_hour > 0 for offer in found.offers)
            with suppress(ParseError):
                list(provider.follow(other, Keys(secret="a:b")))
            provider.recognise(other)


def test_no_page_at_all_is_refused(provider: Provider) -> None:
    with pytest.raises(ParseError):
        list(provider.parse({}))


def test_requests_name_allowed_hosts_and_hide_keys(provider: Provider) -> None:
    first = list(provider.requests(Keys(secret="sesame")))
    assert first
    for request in first:
        assert urlsplit(request.url).scheme == "https"
        assert urlsplit(request.url).hostname in provider.allowed_hosts()
        assert "sesame" not in repr(request.url)
    if not provider.requires_key:
        for request in provider.requests(Keys()):
            assert not any("None" in value for value in request.headers.values())


def test_provider_introduces_itself(provider: Provider) -> None:
    assert provider.name == provider.name.lower()
    assert provider.title
    assert provider.home.startswith("https://")
    assert provider.min_interval_s >= 0.5
    assert provider.key_help or not provider.requires_key


def test_provider_is_described_in_the_documents(provider: Provider) -> None:
    text = (Path(__file__).parents[3] / "docs" / "providers.md").read_text()
    row = next((line for line in text.splitlines() if line.startswith(f"| `{provider.name}` |")), None)
    assert row is not None, f"no row of `{provider.name}` in docs/providers.md, What is read"
    assert ("**key required**" in row) == provider.requires_key
