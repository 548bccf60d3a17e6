"""Vultr: cloud GPU plans, dedicated GPU plans and GPU bare metal, per location, from its public lists."""

import re
from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from functools import partial
from typing import Any, ClassVar
from urllib.parse import quote

from pricing.errors import ParseError
from pricing.offer import Billing, Problem, RawOffer, Tier
from pricing.parsing.reading import (
    amount,
    dig,
    is_json_with,
    month_cap,
    name_of,
    next_key,
    number,
    of_kind,
    read_rows,
    rows_at,
)
from pricing.provider import Keys, Page, Provider, ProviderClass, Request

# GB of one card and its form, by the card's part of `gpu_type` and of plan ids.
# Source: docs/providers.md, "Vultr"; form of the A100 plans: the bundled snapshot, vultr rows.
_CARDS: Mapping[str, tuple[int, str | None]] = {
    "A16": (16, "PCIe"),
    "A40": (48, "PCIe"),
    "A100": (80, "PCIe"),
    "A100_PCIE": (80, "PCIe"),
    "A100_SXM": (80, "SXM"),
    "L40S": (48, "PCIe"),
    "H100": (80, "SXM"),
    "B200": (192, "SXM"),
    "GH200": (96, None),
    "MI300X": (192, "OAM"),
    "MI325X": (256, "OAM"),
    "MI355X": (288, "OAM"),
}
# Bare metal says its GPUs only in the id; "l40" there is an L40S. GPUs, card, form (None: not stated).
# Source: docs/providers.md, "Vultr".
_METAL: Mapping[str, tuple[int, str, str | None]] = {
    "vbm-48c-1024gb-4-a100-gpu": (4, "A100", None),
    "vbm-112c-2048gb-8-h100-gpu": (8, "H100", "SXM"),
    "vbm-112c-2048gb-8-a100-gpu": (8, "A100", "SXM"),
    "vbm-64c-2048gb-8-l40-gpu": (8, "L40S", "PCIe"),
    "vbm-72c-480gb-gh200-gpu": (1, "GH200", None),
    "vbm-256c-2048gb-8-mi300x-gpu": (8, "MI300X", "OAM"),
}
# How far a plan's memory may be from count x card: labels say 180 or 192 GB for one B200.
# Source: docs/providers.md, "Names".
_MEMORY_TOLERANCE = 0.095


class Vultr(Provider):
    """Plans per location; a plan without locations is listed and cannot be deployed."""

    name = "vultr"
    title = "Vultr"
    kind = ProviderClass.NEOCLOUD
    home = "https://console.vultr.com/deploy/cloud-gpu/"
    pages: ClassVar = {
        "plans": "https://api.vultr.com/v2/plans?type=all&per_page=500",
        "plans_metal": "https://api.vultr.com/v2/plans-metal?per_page=500",
    }

    def follow(self, page: Page, keys: Keys) -> Iterable[Request]:
        """Ask for the next page while the answer names one."""
        del keys
        cursor = dig(_meta(page), "links", "next")
        if cursor:
            key = next_key(page.key)
            url = f"{self.pages[page.key.partition('#')[0]]}&cursor={quote(str(cursor), safe='')}"
            yield Request(page=key, url=url)

    def recognise(self, page: Page) -> str | None:
        """Tell the two lists by their wire keys."""
        return next((key for key in self.pages if is_json_with(page, key)), None)

    def parse(self, pages: Mapping[str, Page]) -> Iterable[RawOffer | Problem]:
        """Read all pages of both lists, and check that none is missing."""
        if not any(of_kind(pages, key) for key in self.pages):
            raise ParseError("vultr: neither of the lists 'plans' and 'plans_metal' is there")
        for key, read in (("plans", _plan), ("plans_metal", _metal)):
            count = 0
            for page in of_kind(pages, key):
                rows = rows_at(page, key)
                count += len(rows)
                yield from read_rows(rows, partial(read, page.key), page=page.key, name="id")
            for page in of_kind(pages, key)[:1]:
                if count != _meta(page)["total"]:
                    raise ParseError(
                        f"{key}: {count} of {_meta(page)['total']} plans: pages are missing", page=key
                    )


def _meta(page: Page) -> Mapping[str, Any]:
    meta = dig(page.json(), "meta")
    if not isinstance(meta, dict) or "total" not in meta:
        raise ParseError(f"{page.key}: no 'meta' with a total: the answer changed", page=page.key)
    return meta


def _plan(page: str, row: dict[str, Any]) -> Iterator[RawOffer | Problem]:
    """Read a cloud GPU (vcg) or dedicated GPU (vdm) plan; CPU plans hold no price for us."""
    if row["type"] not in {"vcg", "vdm"}:
        return
    card = name_of(row.get("gpu_type") or row["id"].split("-")[1].upper(), "gpu_type").removeprefix("NVIDIA_")
    card = card.removeprefix("AMD_")
    card_gb, form = _CARDS.get(card, (None, None))
    total_gb = number(row["gpu_vram_gb"], "gpu_vram_gb") if "gpu_vram_gb" in row else _gb_in(row["id"])
    if row.get("gpu_count"):
        count = Fraction(str(row["gpu_count"]))
    elif card_gb and total_gb:
        count = Fraction(int(total_gb), card_gb)
    else:
        raise ValueError(f"no gpu_count, and the memory of a {card} is not known here")
    if count <= 0 or (count > 1 and count.denominator != 1):
        raise ValueError(f"gpu_count is {row.get('gpu_count')!r}: neither whole cards nor a slice of one")
    if card_gb and total_gb and abs(total_gb / (card_gb * count) - 1) > _MEMORY_TOLERANCE:
        raise ValueError(f"{total_gb:g} GB do not belong to {count} x {card} of {card_gb} GB")
    yield from _offers(page, row, card, form, count, total_gb)


def _metal(page: str, row: dict[str, Any]) -> Iterator[RawOffer | Problem]:
    """Read a bare metal plan; one whose id speaks of a GPU and is not in the table is never guessed."""
    plan = name_of(row["id"], "id")
    if "gpu" not in plan:
        return
    if plan not in _METAL:
        raise ValueError("a GPU machine that is not in the table of this module: add it there")
    count, card, form = _METAL[plan]
    yield from _offers(page, row, card, form, Fraction(count), float(_CARDS[card][0] * count))


def _gb_in(plan: str) -> float | None:
    match = re.search(r"-(\d+)vram$", plan)
    return float(match[1]) if match else None


def _offers(
    page: str, row: dict[str, Any], card: str, form: str | None, count: Fraction, total_gb: float | None
) -> Iterator[RawOffer | Problem]:
    """Yield the plan once per location: on demand and, where deployable and cheaper, preemptible."""
    whole = max(1, int(count))
    ram_mb = number(row.get("ram"), "ram")
    vcpus = number(row.get("vcpu_count", row.get("cpu_threads")), "vcpu_count")
    is_metal = "vcpu_count" not in row  # metal has no deploy flags; plans repeat a price that is not for sale
    has_spot = row.get("deploy_preemptible", is_metal) is True
    for location in row["locations"] or [None]:
        costs = {**row, **row.get("location_cost", {}).get(location, {})} if location else row
        on_demand = amount(costs.get("hourly_cost"), "hourly_cost")
        spot = amount(costs.get("hourly_cost_preemptible"), "hourly_cost_preemptible")
        prices = []
        if on_demand is not None and row.get("deploy_ondemand") is not False:
            prices.append((Tier.ON_DEMAND, on_demand, ""))
        if has_spot and spot is not None and (on_demand is None or spot < on_demand):
            prices.append((Tier.SPOT, spot, "_preemptible"))
        if not prices:
            yield Problem(
                what=row["id"], why="no price at which it can be deployed", raw=f"{on_demand}, {spot}"
            )
            return
        for tier, price, suffix in prices:
            yield RawOffer(
                instance_type=row["id"],
                gpu=card,
                gpu_count=whole,
                gpu_fraction=float(count) if count < 1 else None,
                price_per_hour=price,
                price_per_month_cap=month_cap(
                    amount(costs.get(f"monthly_cost{suffix}"), "monthly_cost"), price
                ),
                page=page,
                raw=f"hourly_cost{suffix} {price} USD/h per plan",
                memory_gb_per_gpu=total_gb / whole if total_gb else None,
                form=form,
                region=location,
                tier=tier,
                billing=Billing.HOURLY,
                available=bool(location),
                vcpus=vcpus,
                ram_gb=ram_mb / 1024 if ram_mb else None,
            )
