"""Providers whose modules are at fault, for a reader in another process: it must be able to import them."""

import os
import re
import signal
import sys
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import ClassVar

from pricing.errors import ParseError
from pricing.offer import Problem, RawOffer
from pricing.provider import Page, Provider, ProviderClass


class Calm(Provider):
    """Reads one price, and tells which process did."""

    name = "calm"
    title = "Calm"
    kind = ProviderClass.NEOCLOUD
    home = "https://calm.example/"
    pages: ClassVar = {"list": "https://calm.example/list"}

    def parse(self, pages: Mapping[str, Page]) -> Iterable[RawOffer | Problem]:
        yield RawOffer(
            instance_type=f"process {os.getpid()}",
            gpu="NVIDIA H100 80GB HBM3",
            gpu_count=1,
            price_per_hour=Decimal(pages["list"].text()),
            page="list",
            raw="",
        )


class Looping(Calm):
    """Never ends, within native code that no thread can be called back from."""

    def parse(self, pages: Mapping[str, Page]) -> Iterable[RawOffer | Problem]:
        re.match(r"(a+)+$", "a" * 64 + "b")
        return []


class Crashing(Calm):
    """Ends its process as a fault in native code does."""

    def parse(self, pages: Mapping[str, Page]) -> Iterable[RawOffer | Problem]:
        os.kill(os.getpid(), signal.SIGSEGV)
        return []


class Raising(Calm):
    """Raises what no module should."""

    def parse(self, pages: Mapping[str, Page]) -> Iterable[RawOffer | Problem]:
        raise ZeroDivisionError("in line 7")


class Leaving(Calm):
    """Ends its process."""

    def parse(self, pages: Mapping[str, Page]) -> Iterable[RawOffer | Problem]:
        sys.exit(3)


class Greedy(Calm):
    """Asks for more memory than a machine has to spare."""

    def parse(self, pages: Mapping[str, Page]) -> Iterable[RawOffer | Problem]:
        return list(bytes(2**31)[:0])


class Refusing(Calm):
    """Finds another page than it knows."""

    def parse(self, pages: Mapping[str, Page]) -> Iterable[RawOffer | Problem]:
        raise ParseError("list: a login page", page="list")


class Printing(Calm):
    """Writes where answers go."""

    def parse(self, pages: Mapping[str, Page]) -> Iterable[RawOffer | Problem]:
        sys.stdout.write("debugging")
        sys.stdout.flush()
        os.write(1, b"more of it")
        return super().parse(pages)


class _Order:
    """Becomes a call where it is taken out of its packing."""

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return (os.system, ("true",))


class TakenOver(Calm):
    """Its process answers with an order instead of offers."""

    def parse(self, pages: Mapping[str, Page]) -> Iterable[RawOffer | Problem]:
        from pricing.parsing import reader

        reader.read = lambda *_, **__: _Order()  # type: ignore[attr-defined]
        return super().parse(pages)


class Curious(Calm):
    """Looks for keys."""

    def parse(self, pages: Mapping[str, Page]) -> Iterable[RawOffer | Problem]:
        raise ParseError(
            f"{sorted(name for name in os.environ if name.startswith('BREAKEVEN'))}", page="list"
        )
