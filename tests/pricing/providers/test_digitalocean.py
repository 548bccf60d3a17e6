"""DigitalOcean: the traps named in the collected facts, section 4 (4)."""

import json
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest

from pricing.errors import ParseError
from pricing.offer import Billing, Tier
from pricing.provider import Keys, Page
from tests.pricing.providers.reading import Reading, providers

SIZE = {
    "slug": "gpu-h100x8-640gb",
    "memory": 1966080,
    "vcpus": 160,
    "price_monthly": 17796.48,
    "price_hourly": 23.92,
    "regions": ["nyc1"],
    "available": True,
    "gpu_info": {"count": 8, "vram": {"amount": 640, "unit": "gib"}, "model": "nvidia_h100"},
}


def table(*rows: tuple[str, str]) -> str:
    cells = "".join(f"<tr><td>{gpu}</td><td>{price}</td></tr>" for gpu, price in rows)
    return f"<table><thead><tr><th>GPU</th><th>Price</th></tr></thead><tbody>{cells}</tbody></table>"


def page(on_demand: str, spot: str = "", contract: str = "") -> str:
    parts = {"on-demand": on_demand, "spot": spot, "contract": contract}
    sections = (f'<h2 id="{key}-gpu-droplet-pricing">{key}</h2>{body}' for key, body in parts.items() if body)
    return f"<html><body><main>{''.join(sections)}<h2 id='end'>End</h2></main></body></html>"


@pytest.fixture
def rows(read: Callable[..., Reading]) -> Callable[..., Reading]:
    return lambda *labels: read("digitalocean", {"pricing": page(table(*labels))})


@pytest.fixture
def sizes(read: Callable[..., Reading]) -> Callable[..., Reading]:
    def run(*changed: dict[str, Any], pricing: str | None = None) -> Reading:
        body = {
            "sizes": [{**SIZE, **change} for change in changed],
            "links": {},
            "meta": {"total": len(changed)},
        }
        return read("digitalocean", {"sizes": body} | ({"pricing": pricing} if pricing else {}))

    return run


def test_count_at_the_end_of_the_label_and_one_without(rows: Any) -> None:
    found = rows(("NVIDIA H100", "$4.41 per hour"), ("NVIDIA H100 (8x)", "$35.28 per hour"))
    assert [(o.gpu, o.gpu_count, str(o.price_per_hour)) for o in found.offers] == [
        ("NVIDIA H100", 1, "4.41"),
        ("NVIDIA H100", 8, "35.28"),
    ]


@pytest.mark.parametrize(
    "label", ["NVIDIA H100 (8x) air-cooled", "8x NVIDIA H100", "NVIDIA H100 x8", "NVIDIA H100 (8)"]
)
def test_count_elsewhere_in_the_label_is_not_taken_as_one(rows: Any, label: str) -> None:
    found = rows(("AMD MI300X", "$2.59 per hour"), (label, "$35.28 per hour"))
    assert [o.instance_type for o in found.offers] == ["AMD MI300X"]
    assert "at the end" in found.why(label)


@pytest.mark.parametrize(
    ("label", "canonical"),
    [
        ("NVIDIA RTX 4000", "RTX 4000 Ada"),
        ("NVIDIA RTX 6000", "RTX 6000 Ada"),
        ("NVIDIA H100", "H100 SXM"),
        ("NVIDIA L40s", None),
    ],
)
def test_labels_have_digitalocean_s_own_meaning(rows: Any, label: str, canonical: str | None) -> None:
    assert rows((label, "$1.57 per hour")).only(gpu=label).canonical_gpu == canonical


def test_spot_and_contract_are_tiers_of_their_own(read: Any) -> None:
    body = page(
        table(("NVIDIA H200", "$4.47 per hour")),
        table(
            ("NVIDIA B300, air-cooled", "$11.19 per hour"), ("NVIDIA B300, liquid-cooled", "$11.19 per hour")
        ),
        table(("NVIDIA B300", "Per contract after contacting sales"), ("AMD MI350X", "$3.00 per hour")),
    )
    found = read("digitalocean", {"pricing": body})
    assert [(o.gpu, o.tier) for o in found.offers] == [
        ("NVIDIA H200", Tier.ON_DEMAND),
        ("NVIDIA B300", Tier.SPOT),
        ("NVIDIA B300", Tier.SPOT),
        ("AMD MI350X", Tier.RESERVED_OTHER),
    ]
    assert found.only(gpu="AMD MI350X").billing is Billing.PER_TERM
    assert found.why("NVIDIA B300") == "priced by contract only"


@pytest.mark.parametrize(
    "price", ["$3.00 per month", "3.00 per hour", "from $3.00 per hour", "€3.00 per hour", ""]
)
def test_price_in_another_unit_stops_the_page(rows: Any, price: str) -> None:
    with pytest.raises(ParseError):
        rows(("NVIDIA H100", price))


def test_each_section_has_exactly_one_table_of_known_columns(read: Any) -> None:
    row = table(("NVIDIA H100", "$4.41 per hour"))
    with pytest.raises(ParseError, match="2 tables"):
        read("digitalocean", {"pricing": page(row + row)})
    with pytest.raises(ParseError, match="0 tables"):
        read("digitalocean", {"pricing": page("<p>Ask us</p>")})
    with pytest.raises(ParseError, match="columns"):
        read("digitalocean", {"pricing": page(row.replace("Price", "12-month price"))})


def test_memory_of_a_size_is_the_droplets(sizes: Any) -> None:
    offer = sizes({}).only()
    assert (offer.gpu_count, offer.memory_gb_per_gpu, offer.ram_gb) == (8, 80, 1920)
    assert offer.price_per_month_cap == Decimal("17796.48")  # 744 h


@pytest.mark.parametrize("change", [{"regions": []}, {"available": False}])
def test_size_that_cannot_be_deployed_says_so(sizes: Any, change: dict[str, Any]) -> None:
    assert sizes(change).only().available is False


def test_cpu_size_is_none_of_ours(sizes: Any) -> None:
    cpu = {key: value for key, value in SIZE.items() if key != "gpu_info"}
    body = {"sizes": [cpu, SIZE], "meta": {"total": 2}}
    provider = providers()["digitalocean"]
    found = list(provider.parse({"sizes": Page(key="sizes", url="", body=json.dumps(body).encode())}))
    assert len(found) == 1


def test_where_page_and_interface_agree_there_is_one_offer_with_slug_and_region(sizes: Any) -> None:
    pricing = page(table(("NVIDIA H100 (8x)", "$23.92 per hour"), ("NVIDIA H100", "$3.00 per hour")))
    found = sizes({}, pricing=pricing)
    offer = found.only(gpu_count=8)
    assert (offer.instance_type, offer.region) == ("gpu-h100x8-640gb", "nyc1")
    assert found.only(gpu_count=1).instance_type == "NVIDIA H100"
    assert found.problems == []


def test_where_they_differ_the_page_s_price_stands(sizes: Any) -> None:
    found = sizes({}, pricing=page(table(("NVIDIA H100 (8x)", "$35.28 per hour"))))
    offer = found.only()
    assert (str(offer.price_per_hour), offer.region) == ("35.28", None)
    assert "$35.28" in found.why("gpu-h100x8-640gb in nyc1")


def test_spot_price_of_the_page_never_meets_an_on_demand_size(sizes: Any) -> None:
    pricing = page(table(("AMD MI300X", "$2.59 per hour")), table(("NVIDIA H100 (8x)", "$23.92 per hour")))
    found = sizes({}, pricing=pricing)
    assert {(o.tier, o.instance_type) for o in found.all(gpu_count=8)} == {
        (Tier.ON_DEMAND, "gpu-h100x8-640gb"),
        (Tier.SPOT, "NVIDIA H100 (8x)"),
    }


def test_ada_model_of_the_interface_meets_the_page_s_label(sizes: Any) -> None:
    ada = {
        "slug": "gpu-6000adax1-48gb",
        "price_hourly": 1.57,
        "price_monthly": 1168.08,
        "gpu_info": {"count": 1, "vram": {"amount": 48, "unit": "gib"}, "model": "nvidia_rtx6000_ada"},
    }
    found = sizes(ada, pricing=page(table(("NVIDIA RTX 6000", "$1.57 per hour"))))
    assert found.only().instance_type == "gpu-6000adax1-48gb"


def test_token_goes_to_the_interface_only_and_pages_are_followed() -> None:
    provider = providers()["digitalocean"]
    assert [r.page for r in provider.requests(Keys())] == ["pricing"]
    pricing, sizes = provider.requests(Keys(secret="sesame"))
    assert pricing.headers == {}
    assert pricing.is_page
    assert sizes.headers == {"Authorization": "Bearer sesame"}
    url = "https://api.digitalocean.com/v2/sizes?page=2&per_page=200"
    body = json.dumps({"sizes": [SIZE], "links": {"pages": {"next": url}}, "meta": {"total": 2}}).encode()
    (further,) = provider.follow(Page(key="sizes", url=sizes.url, body=body), Keys(secret="sesame"))
    assert (further.page, further.url) == ("sizes#2", url)


def test_collected_page_and_sizes(read_shared: Callable[..., Reading]) -> None:
    files = {"pricing": "digitalocean_droplets_pricing.html", "sizes": "digitalocean_sizes.json"}
    found = read_shared("digitalocean", **files)
    assert {(o.gpu, o.gpu_count, str(o.price_per_hour)) for o in found.offers} == {
        ("AMD MI300X", 1, "2.59"),
        ("AMD MI300X", 8, "20.72"),
        ("AMD MI325X", 1, "3.80"),
        ("AMD MI325X", 8, "30.40"),
        ("NVIDIA H100", 1, "4.41"),
        ("NVIDIA H100", 8, "35.28"),
        ("NVIDIA L40s", 1, "1.57"),
        ("NVIDIA RTX 4000", 1, "0.76"),
    }
    assert "3 of 147" in found.why("sizes")
