"""Helps a test to let a provider read answers given as text, objects or files."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from pricing.offer import Problem, RawOffer
from pricing.provider import Page, Provider
from pricing.registry import providers

__all__ = ["Reading", "as_page", "providers", "split"]


class Reading(NamedTuple):
    """What a provider made of its pages."""

    offers: list[RawOffer]
    problems: list[Problem]

    def only(self, **wanted: Any) -> RawOffer:
        """Return the one offer that has these values."""
        found = self.all(**wanted)
        assert len(found) == 1, f"{len(found)} offers have {wanted}: {found}"
        return found[0]

    def all(self, **wanted: Any) -> list[RawOffer]:
        """Return the offers that have these values."""
        return [o for o in self.offers if all(getattr(o, key) == value for key, value in wanted.items())]

    def why(self, what: str) -> str:
        """Return the reason of the one problem about this."""
        found = [problem.why for problem in self.problems if problem.what == what]
        assert len(found) == 1, f"{len(found)} problems about {what}: {self.problems}"
        return found[0]


def as_page(provider: Provider, key: str, content: object) -> Page:
    """Make a page from bytes, text, a file, or an object that is written as JSON."""
    url = provider.pages.get(key.partition("#")[0], f"https://{provider.name}.example/{key}")
    if isinstance(content, Path):
        return Page(key=key, url=url, body=content.read_bytes())
    if isinstance(content, bytes):
        return Page(key=key, url=url, body=content)
    body = content if isinstance(content, str) else json.dumps(content)
    return Page(key=key, url=url, body=body.encode())


def split(items: Iterable[RawOffer | Problem]) -> Reading:
    """Part offers from problems."""
    found = list(items)
    offers = [item for item in found if isinstance(item, RawOffer)]
    return Reading(offers, [item for item in found if isinstance(item, Problem)])
