"""Vast.ai: the traps named in the collected facts, section 2 (4)."""

import json
from collections.abc import Callable
from decimal import Decimal
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from pricing.errors import ParseError
from pricing.offer import Tier
from pricing.parsing.naming import identify
from pricing.provider import Keys, Page
from tests.pricing.providers.reading import Reading, providers


def ask(machine: int, total: float, **changes: Any) -> dict[str, Any]:
    row = {
        "machine_id": machine,
        "gpu_name": "H100 SXM",
        "num_gpus": 1,
        "gpu_ram": 81559,
        "dph_total": total,
        "dph_base": round(total - 0.01, 6),
        "min_bid": total,
        "verification": "verified",
        "verified": None,
        "rentable": True,
        "rented": False,
        "is_bid": False,
        "geolocation": "Texas, US",
        "cpu_cores": None,
    }
    return {**row, **changes}


@pytest.fixture
def book(read: Callable[..., Reading]) -> Callable[..., Reading]:
    return lambda *asks: read("vastai", {"bundles": {"offers": list(asks)}})


def test_figure_is_the_lower_quartile_and_never_the_cheapest_ask(book: Any) -> None:
    # sorted 1, 2, 3, 4, 5: a quarter of the way over four steps is the second.
    found = book(*(ask(machine, price) for machine, price in enumerate([5.0, 1.0, 3.0, 2.0, 4.0])))
    assert found.only(tier=Tier.ON_DEMAND).price_per_hour == Decimal("2.0")
    # of two, a quarter of the way from 1 to 3
    assert book(ask(1, 1.0), ask(2, 3.0)).only(tier=Tier.ON_DEMAND).price_per_hour == Decimal("1.5")


def test_series_keeps_its_name_when_machines_come_and_go(book: Any) -> None:
    few, many = book(ask(1, 2.0)), book(ask(1, 2.0), ask(2, 3.0), ask(3, 4.0))
    assert few.offers[0].instance_type == many.offers[0].instance_type
    assert "p25 of 3 machines" in many.offers[0].raw


def test_machine_counts_once_for_each_number_of_gpus(book: Any) -> None:
    found = book(ask(1, 9.0), ask(1, 2.0), ask(1, 4.0, num_gpus=2), ask(2, 4.0))
    assert found.only(gpu_count=1, tier=Tier.ON_DEMAND).price_per_hour == Decimal("2.5")  # 2 and 4, not 9
    assert found.only(gpu_count=2, tier=Tier.ON_DEMAND).price_per_hour == Decimal("4.0")  # whole offer


def test_the_same_ask_from_both_ends_of_a_book_counts_once(read: Any) -> None:
    pages = {"h100_sxm": {"offers": [ask(1, 1.0), ask(2, 3.0)]}, "h100_sxm#2": {"offers": [ask(2, 3.0)]}}
    assert "2 machines" in read("vastai", pages).only(tier=Tier.ON_DEMAND).raw


def test_only_the_text_verified_counts_and_hosts_left_out_are_counted(book: Any) -> None:
    found = book(
        ask(1, 2.0),
        ask(2, 1.0, verification="unverified", verified=True),
        ask(3, 1.0, verification="unverified"),
        ask(4, 1.0, verification="deverified"),
    )
    assert found.only(tier=Tier.ON_DEMAND).price_per_hour == Decimal("2.0")
    assert {(p.what, p.raw) for p in found.problems} == {("H100 SXM", "2 offers"), ("H100 SXM", "1 offers")}


@pytest.mark.parametrize("state", [{"rentable": False}, {"rented": True}, {"is_bid": True}])
def test_what_cannot_be_rented_now_is_left_out(book: Any, state: dict[str, bool]) -> None:
    found = book(ask(1, 1.0, **state), ask(2, 2.0))
    assert found.only(tier=Tier.ON_DEMAND).price_per_hour == Decimal("2.0")
    assert found.why("H100 SXM") == "cannot be rented now"


def test_disk_is_in_both_prices(book: Any) -> None:
    found = book(ask(1, 1.61, dph_base=1.6, min_bid=0.28))
    assert found.only(tier=Tier.ON_DEMAND).price_per_hour == Decimal("1.61")
    assert found.only(tier=Tier.SPOT).price_per_hour == Decimal("0.29")


def test_bid_above_the_ask_is_no_spot_offer(book: Any) -> None:
    assert book(ask(1, 15.47, min_bid=19.2)).all(tier=Tier.SPOT) == []


@pytest.mark.parametrize(
    ("place", "country"), [("Washington, US", "US"), (", US", "US"), ("US", "US"), ("", None), (None, None)]
)
def test_country_stands_after_the_last_comma(book: Any, place: str | None, country: str | None) -> None:
    assert book(ask(1, 2.0, geolocation=place)).only(tier=Tier.ON_DEMAND).region == country


@pytest.mark.parametrize(("name", "device"), [("H200", "H200 SXM"), ("H200 NVL", "H200 NVL")])
def test_h200_without_a_word_is_the_module(book: Any, name: str, device: str) -> None:
    found = book(ask(1, 3.0, gpu_name=name, gpu_ram=143771)).only(tier=Tier.ON_DEMAND)
    gpu = identify(found.gpu, memory_gb=found.memory_gb_per_gpu, canonical=found.canonical_gpu).gpu
    assert gpu is not None
    assert gpu.name == device


def test_countries_memories_and_counts_are_kept_apart(book: Any) -> None:
    found = book(
        ask(1, 2.0),
        ask(2, 1.0, geolocation="Osaka, JP"),
        ask(3, 0.9, gpu_name="A100 SXM4", gpu_ram=40960),
        ask(4, 1.2, gpu_name="A100 SXM4", gpu_ram=81920),
        ask(5, 0.8, gpu_name="RTX A6000", gpu_ram=46068),  # ECC on
        ask(6, 0.6, gpu_name="RTX A6000", gpu_ram=49140),
    )
    assert len(found.all(gpu="H100 SXM")) == 2
    assert sorted(o.memory_gb_per_gpu or 0 for o in found.all(gpu="A100 SXM4")) == [40, 80]
    assert found.only(gpu="RTX A6000").price_per_hour == Decimal("0.65")


def test_host_without_cpu_figures_is_read(book: Any) -> None:
    assert book(ask(1, 2.0, cpu_cores=None, driver_version=None)).only(tier=Tier.ON_DEMAND)


def test_address_of_a_host_reaches_no_offer(book: Any) -> None:
    assert "203.0.113.10" not in repr(book(ask(1, 2.0, public_ipaddr="203.0.113.10")))


def test_broken_ask_spoils_no_other_but_a_broken_book_does(book: Any) -> None:
    found = book(ask(1, 2.0), ask(2, -1.0), ask(3, 2.0, num_gpus=0))
    assert found.only(tier=Tier.ON_DEMAND).price_per_hour == Decimal("2.0")
    assert len(found.problems) == 2
    with pytest.raises(ParseError, match="no verified offer could be read"):
        book(ask(1, 2.0, dph_total=None))


def test_documented_single_offer_is_read_and_no_offer_is_a_problem(read: Any) -> None:
    assert read("vastai", {"bundles": {"offers": ask(1, 2.0)}}).only(tier=Tier.ON_DEMAND)
    assert "no offer in any book" in read("vastai", {"bundles": {"offers": []}}).why("bundles")


def test_long_book_is_asked_from_its_dear_end_too() -> None:
    vast = providers()["vastai"]
    request = next(iter(vast.requests(Keys())))
    query = json.loads(parse_qs(urlsplit(request.url).query)["q"][0])
    assert "verified" not in query
    assert query["order"] == [["dph_total", "asc"]]
    body = json.dumps({"offers": [ask(n, 2.0) for n in range(64)]}).encode()
    (further,) = vast.follow(Page(key=request.page, url=request.url, body=body), Keys())
    assert further.page == f"{request.page}#2"
    assert json.loads(parse_qs(urlsplit(further.url).query)["q"][0])["order"] == [["dph_total", "desc"]]
    assert list(vast.follow(Page(key=further.page, url=further.url, body=body), Keys())) == []
    short = Page(key=request.page, url=request.url, body=b'{"offers": []}')
    assert list(vast.follow(short, Keys())) == []


def test_searches_keep_to_ten_a_minute() -> None:
    assert providers()["vastai"].min_interval_s >= 6


def test_collected_book_of_2026_08_22(read_shared: Callable[..., Reading]) -> None:
    found = read_shared("vastai", bundles="vast_bundles.json")
    on_demand = {
        (o.gpu, o.gpu_count, o.region, f"{o.price_per_hour:.6f}") for o in found.all(tier=Tier.ON_DEMAND)
    }
    assert on_demand == {
        ("H100 SXM", 1, "US", "1.735556"),
        ("H100 SXM", 4, "JP", "17.580889"),
        ("H100 SXM", 8, "JP", "35.159556"),
        ("H200 NVL", 1, "JP", "3.335556"),
    }
