"""Vast.ai: a book of hosts' asks, published as one robust figure per GPU, count and country."""

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any, ClassVar
from urllib.parse import parse_qs, urlencode, urlsplit

from pricing.errors import ParseError
from pricing.offer import Billing, Problem, RawOffer, Tier
from pricing.parsing.reading import amount, is_json_with, lower_quartile, name_of, next_key, number, whole
from pricing.provider import Keys, Page, Provider, ProviderClass, Request

# Names as Vast.ai writes them, in books near its page limit.
# Source: planner/data/gpus.toml, names seen at Vast.ai.
_BOOKS: Mapping[str, tuple[str, ...]] = {
    "h100_sxm": ("H100 SXM",),
    "h100_pcie": ("H100 NVL", "H100 PCIE"),
    "h200": ("H200", "H200 NVL"),
    "blackwell": ("B200", "B300"),
    "a100": ("A100 SXM4", "A100 PCIE"),
    "l40": ("L40S", "L40", "A40", "L4"),
    "rtx_pro": ("RTX PRO 6000 S", "RTX PRO 6000 WS"),
    "rtx_6000": ("RTX 6000Ada", "RTX A6000", "RTX 5000Ada", "RTX A5000"),
    "rtx_5090": ("RTX 5090",),
    "rtx_4090": ("RTX 4090",),
    "rtx_3090": ("RTX 3090", "RTX 3090 Ti"),
    "amd": ("MI300X", "MI325X", "MI355X"),
}
# Vast.ai writes "H200 NVL" for the card. Source: planner/data/gpus.toml, names seen at Vast.ai.
_CANONICAL: Mapping[str, str] = {"H200": "H200 SXM"}
# Offers in one answer, whatever limit is asked for: a book this long may be cut off.
# Source: docs/providers.md, "Vast.ai".
_PAGE_LIMIT = 64


class VastAi(Provider):
    """
    A marketplace of single machines: the figure is the lower quartile of verified ones, never one ask.

    A machine lists slices of 1, 2, 4 ... GPUs; for each count it is taken once, at its lowest ask.
    Asks include the 8 to 10 GB of disk that they are made with; weights need more.
    """

    name = "vastai"
    title = "Vast.ai"
    kind = ProviderClass.MARKETPLACE
    home = "https://cloud.vast.ai/create/"
    pages: ClassVar = {"bundles": "https://console.vast.ai/api/v0/bundles/"}
    min_interval_s = 6.0  # documented: 10 searches a minute
    names_hosts = True

    def requests(self, keys: Keys) -> Iterable[Request]:
        """Ask each book from its cheap end."""
        del keys
        first = next(iter(_BOOKS))
        return [
            Request(page=book, url=self._url(names, "asc"), is_optional=book != first)
            for book, names in _BOOKS.items()
        ]

    def follow(self, page: Page, keys: Keys) -> Iterable[Request]:
        """Ask a book that may have been cut off from its dear end too: large machines stand there."""
        del keys
        asked = parse_qs(urlsplit(page.url).query).get("q")
        query = json.loads(asked[0]) if asked else None
        if query and query["order"][0][1] == "asc" and len(_offers_of(page)) >= _PAGE_LIMIT:
            url = self._url(query["gpu_name"]["in"], "desc")
            yield Request(page=next_key(page.key), url=url, is_optional=True)

    def _url(self, names: Sequence[str], order: str) -> str:
        query = {
            "gpu_name": {"in": list(names)},
            "rentable": {"eq": True},
            "external": {"eq": False},
            "type": "on-demand",
            "order": [["dph_total", order]],
            "limit": 1000,
        }
        return f"{self.pages['bundles']}?{urlencode({'q': json.dumps(query, separators=(',', ':'))})}"

    def recognise(self, page: Page) -> str | None:
        """Know a book by its `offers`."""
        return "bundles" if is_json_with(page, "offers") else None

    def parse(self, pages: Mapping[str, Page]) -> Iterable[RawOffer | Problem]:
        """Pool all books; an empty one is normal, all of them empty is not."""
        if not pages:
            raise ParseError("vastai: no book of offers is there")
        left_out: Counter[tuple[str, str]] = Counter()
        book: dict[_Key, dict[str, dict[Tier, Decimal]]] = defaultdict(lambda: defaultdict(dict))
        found: dict[_Key, tuple[str, float]] = {}  # page and memory of one GPU [MiB]
        for page in pages.values():
            for row in _offers_of(page):
                why = _why_left_out(row)
                if why is None:
                    try:
                        key, memory_mib, machine, prices = _ask(row)
                    except (KeyError, TypeError, ValueError) as error:
                        why = f"an offer that could not be read: {error}"
                if why is not None:
                    left_out[str(row.get("gpu_name")) if isinstance(row, dict) else "?", why] += 1
                    continue
                known_page, known_mib = found.get(key, (page.key, memory_mib))
                found[key] = (known_page, max(known_mib, memory_mib))
                for tier, price in prices.items():
                    known = book[key][machine].get(tier, price)
                    book[key][machine][tier] = min(price, known)
        broken = [why for _, why in left_out if "could not be read" in why]
        if broken and not book:
            raise ParseError(f"bundles: no verified offer could be read; {broken[0]}", page="bundles")
        if not book and not left_out:
            yield Problem(what="bundles", why="no offer in any book: sold out, or the search changed")
        yield from (Problem(what=gpu, why=why, raw=f"{n} offers") for (gpu, why), n in left_out.items())
        for key, machines in book.items():
            yield from _figures(key, list(machines.values()), *found[key])


# GPU as named, GPUs, memory in steps of 8 GiB (drivers report 46068 and 49140 MiB for one card), country.
_Key = tuple[str, int, int, str | None]


def _offers_of(page: Page) -> list[Any]:
    document = page.json()
    offers = document.get("offers") if isinstance(document, dict) else None
    if isinstance(offers, dict):  # the documented example; live answers hold a list
        return [offers]
    if not isinstance(offers, list):
        raise ParseError(f"{page.key}: no list 'offers': the answer changed", page=page.key)
    return offers


def _why_left_out(row: Any) -> str | None:
    """Say why an ask is none of ours; the boolean `verified` is null in answers, the text is what counts."""
    if not isinstance(row, dict):
        return "not an offer"
    if row.get("verification") != "verified":
        return f"{row.get('verification') or 'unknown'} host: only verified machines count"
    if row.get("rentable") is not True or row.get("rented") or row.get("is_bid"):
        return "cannot be rented now"
    return None


def _ask(row: Mapping[str, Any]) -> tuple[_Key, float, str, dict[Tier, Decimal]]:
    """Read an ask: key, MiB of one GPU, machine, and price of the offer with disk; interruptible if lower."""
    count = whole(row["num_gpus"], "num_gpus")
    total = amount(row["dph_total"], "dph_total")
    base = amount(row["dph_base"], "dph_base")
    memory_mib = number(row["gpu_ram"], "gpu_ram")
    if total is None or base is None or total < base or memory_mib is None:
        raise ValueError(f"dph_total {total}, dph_base {base}, gpu_ram {memory_mib}")
    prices = {Tier.ON_DEMAND: total}
    bid = amount(row.get("min_bid"), "min_bid")
    if bid is not None and bid + (total - base) < total:
        prices[Tier.SPOT] = bid + (total - base)
    country = str(row.get("geolocation") or "").rpartition(",")[2].strip() or None
    key = (name_of(row["gpu_name"], "gpu_name"), count, round(memory_mib / 8192), country)
    return key, memory_mib, str(row["machine_id"]), prices


def _figures(
    key: _Key, machines: Sequence[Mapping[Tier, Decimal]], page: str, memory_mib: float
) -> Iterator[RawOffer]:
    gpu, count, _, country = key
    for tier in (Tier.ON_DEMAND, Tier.SPOT):
        prices = sorted(machine[tier] for machine in machines if tier in machine)
        if not prices:
            continue
        what = "machines" if tier is Tier.ON_DEMAND else "machines' lowest bids"
        yield RawOffer(
            instance_type=f"{count}x {gpu}, p25 of verified machines",
            gpu=gpu,
            canonical_gpu=_CANONICAL.get(gpu),
            gpu_count=count,
            price_per_hour=lower_quartile(prices),
            page=page,
            raw=f"p25 of {len(prices)} {what}, {prices[0]} to {prices[-1]} USD/h per offer with its disk",
            memory_gb_per_gpu=memory_mib / 1024,
            region=country,
            tier=tier,
            billing=Billing.PER_SECOND,
            available=True,
        )
