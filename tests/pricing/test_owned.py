"""Own contract prices and quotes: read strictly, kept with their source, ranked in plans."""

from datetime import date
from decimal import Decimal

import pytest

from planner.catalogues.purchases import quoted_purchase
from planner.compare import plan
from planner.rates import PriceStatus
from planner.scenario import Scenario
from pricing.own.doubts import doubts
from pricing.own.ownfile import ImportRefused, OwnFile, read, template
from pricing.registry import kinds
from pricing.store import Store
from pricing.verification.market import Market
from tests.conftest import NOW

TODAY = date(2026, 11, 30)
HEAD = "kind,provider,gpu,gpus,price,currency,per,as_of,source,region"


def taken(*rows: str, head: str = HEAD, source: str | None = "contract 1") -> OwnFile:
    return read("\n".join((head, *rows)), TODAY, source)


def refused(*rows: str, head: str = HEAD, source: str | None = "contract 1") -> str:
    with pytest.raises(ImportRefused) as caught:
        taken(*rows, head=head, source=source)
    return str(caught.value)


def test_the_template_is_taken_as_it_is() -> None:
    file = read(template(), TODAY)
    assert [(one.provider, one.gpu_count, str(one.usd_per_hour)) for one in file.offers] == [
        ("acme-cloud", 8, "15.200000")
    ]
    assert [(one.point.seller, one.point.gpu) for one in file.quotes] == [
        ("Example Systems", "RTX PRO 6000 Blackwell Workstation")
    ]
    assert file.sources == ["contract 4711", "quote 2026-118"]


@pytest.mark.parametrize(
    ("price", "per", "usd_per_hour"),
    [("16", "hour", "16"), ("2", "gpu_hour", "16"), ("11680", "month", "16")],  # 730 h a month
)
def test_a_price_is_of_the_whole_machine_and_hour(price: str, per: str, usd_per_hour: str) -> None:
    (one,) = taken(f"rent,Acme,H100 SXM,8,{price},,{per},2026-11-01,,").offers
    assert one.usd_per_hour == Decimal(usd_per_hour)
    assert (one.provider, one.instance_type, one.source_url) == ("acme", "8x H100 SXM", "contract 1")


def test_a_semicolon_between_cells_and_a_known_provider_are_understood() -> None:
    (one,) = taken("rent;Vast.ai;RTX 4090;1;0.35", head="kind;provider;gpu;gpus;price").offers
    assert (one.provider, one.seen_at.date()) == ("vastai", TODAY)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("lease,Acme,H100 SXM,8,16,,,,,", "kind: 'lease' is not one of rent, buy"),
        ("rent,,H100 SXM,8,16,,,,,", "provider is blank; give who rents it out or sells it"),
        ("rent,Acme,H1000,8,16,,,,,", "unknown GPU 'H1000'"),
        ("rent,Acme,A100,8,16,,,,,", "gpu: 'A100' may mean "),
        ("rent,Acme,H100 SXM,8.5,16,,,,,", "gpus: '8.5' is not a whole number"),
        ('rent,Acme,H100 SXM,8,"15,20",,,,,', "price: '15,20' has a decimal comma; write 15.20"),
        ('rent,Acme,H100 SXM,8,"1,520",,month,,,', "write 1520 for thousands, or 1.520 where the comma is"),
        ('rent,Acme,H100 SXM,8,"1,152,000",,month,,,', "price: '1,152,000' has a comma; write 1152000"),
        ('rent,Acme,H100 SXM,8,"0,520",,,,,', "price: '0,520' has a decimal comma; write 0.520"),
        ("rent,Acme,H100 SXM,8,11000,,hour,,,", "11000 USD per hour for 8 GPUs: 1375.00 USD per GPU-hour is"),
        ("rent,Acme,H100 SXM,8,0.02,,hour,,,", "0.0025 USD per GPU-hour is outside 0.01 to 40"),
        ("rent,Acme,H100 SXM,8,-3,,,,,", "price: '-3' is not an amount above 0"),
        ("rent,Acme,H100 SXM,8,16,XXX,,,,", "unknown currency 'XXX'"),
        ("rent,Acme,H100 SXM,8,16,,day,,,", "per: 'day' is not one of hour, gpu_hour, month"),
        ("rent,Acme,H100 SXM,8,16,,,1.11.2026,,", "as_of: '1.11.2026' is not a date"),
        ("rent,Acme,H100 SXM,8,16,,,2026-12-01,,", "as_of: 2026-12-01 is in the future"),
        ("rent,Acme,H100 SXM,8,16,,,,,,x", "has more cells than the header"),
    ],
)
def test_a_bad_row_is_named_with_its_number(row: str, message: str) -> None:
    text = refused("rent,Acme,H200 SXM,8,20,,,,,", row)
    assert "row 3: " in text
    assert message in text


def test_all_bad_rows_are_told_at_once() -> None:
    text = refused(*(f"rent,Acme,H100 SXM,8,{usd},,,,," for usd in ("x", "1", "y")))
    assert text.startswith("2 of 3 rows cannot be taken, so nothing was kept: row 2: price: 'x'")
    assert "row 4: price: 'y'" in text


@pytest.mark.parametrize(
    ("head", "message"),
    [
        ("kind,provider,gpu,prize", "has no column 'price'"),
        (f"{HEAD},regoin", "has a column 'regoin' that nothing reads; close matches: region"),
    ],
)
def test_an_odd_header_is_told(head: str, message: str) -> None:
    assert message in refused("rent,Acme,H100 SXM,16", head=head)


def test_a_source_must_be_named() -> None:
    assert "source is blank" in refused("rent,Acme,H100 SXM,8,16,,,,,", source=None)


def test_the_same_machine_twice_is_refused() -> None:
    row = "rent,Acme,H100 SXM,8,16,,,,,"
    assert "row 3: names the same machine as a row above it" in refused(row, row)


# --- against the market


def test_prices_far_from_what_others_ask_are_named_one_by_one(store: Store) -> None:
    file = taken(
        "rent,Acme,H100 SXM,8,16,,,,,",
        "rent,Acme,L40,1,9,,,,,",
        "buy,Acme,H100 SXM,,0.25,,,,,",
        "buy,Acme,RTX 4090,,1900,,,,,",
    )
    rented, bought = doubts(file, Market(store.known_prices(), kinds()))
    assert rented.startswith("1x L40 from acme: 9.00 USD per GPU-hour is ")
    assert rented.endswith("too far from the market; is it per GPU, of a month or in another currency?")
    assert bought.startswith("card H100 SXM from Acme: 0.25 USD is ")
    assert bought.endswith("; is it the price of one, in full?")


def test_an_own_contract_says_nothing_of_public_prices(store: Store) -> None:
    before, of_hyperstack = store.known_prices(), store.known_prices("hyperstack")
    names = ("acme", "bolt", "core", "hyperstack")
    store.import_own(taken(*(f"rent,{name},L40,1,7,,,,," for name in names)), NOW)
    assert store.known_prices() == before
    assert store.known_prices("hyperstack") == of_hyperstack


# --- kept


def test_an_own_price_is_ranked_as_own(store: Store) -> None:
    store.import_own(taken("rent,Acme,H100 SXM,8,15.20,EUR,,2026-11-01,,de"), NOW)
    (rate,) = store.rates(NOW, provider="acme")
    assert (rate.status, rate.gpu_count, rate.source_url) == (PriceStatus.OWN, 8, "contract 1")
    assert rate.usd_per_hour > 15.20
    # It never gets stale: a contract holds.
    assert store.rates(NOW, provider="acme", cheapest=True, max_age_days=1) == [rate]


def test_a_source_imported_again_replaces_what_it_said(store: Store) -> None:
    first = "rent,Acme,H100 SXM,8,16,,,2026-11-01,,"
    store.import_own(taken(first, "rent,Acme,B200,8,30,,,2026-11-01,,"), NOW)
    store.import_own(taken(first.replace("SXM,8", "SXM,4"), source="contract 2"), NOW)
    report = store.import_own(taken(first.replace("8,16", "8,14").replace("11-01", "11-20")), NOW)
    counts = (report.new, report.changed, report.unchanged, report.ended)
    assert counts == (0, 1, 0, 1)
    assert [(r.gpu, r.gpu_count, r.usd_per_hour_text) for r in store.rates(NOW, provider="acme")] == [
        ("H100 SXM", 8, "14.00"),
        ("H100 SXM", 4, "16.00"),
    ]
    before = store.rates(NOW, as_of=date(2026, 11, 10), provider="acme", gpus="H100 SXM")
    assert sorted(rate.usd_per_hour_text for rate in before) == ["16.00", "16.00"]


def test_a_quote_goes_before_the_catalogue(store: Store) -> None:
    head = "kind,provider,gpu,price,source,as_of"
    store.import_own(taken("buy,Example,RTX 4090,1234,quote 1,2026-11-20", head=head), NOW)
    (quote,) = store.quotes()
    purchase = quoted_purchase("RTX 4090", [quote])
    assert purchase is not None
    assert (purchase.usd, purchase.is_own, purchase.as_of) == (1234.0, True, "2026-11-20")
    found = plan(Scenario(model="qwen3.5-35b-a3b", gpu="RTX 4090", gpus=1), [], quotes=[quote])
    (bought,) = [option for option in found.options if option.kind == "buy"]
    assert bought.price.status is PriceStatus.OWN
    assert bought.purchase_source is not None
    assert "quote 1" in bought.purchase_source


def test_a_quote_imported_again_is_there_once(store: Store) -> None:
    file = taken("buy,Example,RTX 4090,1234", head="kind,provider,gpu,price")
    for _ in range(2):
        store.import_own(file, NOW)
    assert len(store.quotes()) == 1
