"""The bundled prices: complete, true to their source, and none that was overtaken is current."""

import csv
import gzip
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from decimal import Decimal
from functools import cache
from pathlib import Path

import pytest

from planner.catalogues.gpus import find_gpu
from pricing.offer import Offer, Tier, Verdict, decimal_text
from pricing.registry import kinds
from pricing.storage.memory import Origin, remembered
from pricing.storage.snapshot import snapshot_offers, superseded_at
from pricing.verification.market import Market
from pricing.verify import why_implausible
from tests.conftest import ROOT
from tests.pricing.samples import DAY, MORNING, offer
from tools.build_snapshot import build

PACKED = ROOT / "pricing" / "data" / "snapshot.csv.gz"


@cache
def bundled() -> Sequence[Offer]:
    return snapshot_offers()


@cache
def current() -> Sequence[Offer]:
    ends = superseded_at(bundled())
    return [one for one, end in zip(bundled(), ends, strict=True) if end is None]


def prices(provider: str, gpu: str, count: int, tier: Tier = Tier.ON_DEMAND) -> list[tuple[str, str]]:
    """Current whole machines: region and price."""
    return sorted(
        (one.region or "", decimal_text(one.usd_per_hour))
        for one in current()
        if (one.provider, one.gpu, one.gpu_count, one.tier) == (provider, gpu, count, tier)
        and one.gpu_fraction is None
    )


def test_every_row_of_the_table_and_of_the_sizing_page_is_there() -> None:
    assert len(bundled()) == 8352 + 4


def test_rows_that_are_never_ranked_are_kept_and_counted() -> None:
    # By provider, as in the table: aws 10, azure 3 x 140, gcp 3 x 79, vultr 12 of A100, 27 of A16, 19 of A40.
    slices = Counter(one.provider for one in bundled() if one.gpu_fraction is not None)
    assert slices == {"aws": 10, "azure": 420, "gcp": 237, "vultr": 58}
    gpu_only = Counter(one.provider for one in bundled() if one.gpu_only)
    assert gpu_only == {"cudo": 8, "modal": 10, "tensordock": 40}
    ambiguous = Counter(one.gpu_raw for one in bundled() if one.gpu is None)
    assert ambiguous == {"RTX PRO 6000": 377, "H200": 280, "A100": 11, "H100": 8, "V100": 6, "B200": 1}
    witnesses = [one for one in bundled() if one.witness]
    assert {one.witness for one in witnesses} == {"shadeform"}
    assert len(witnesses) == 17
    assert "lambda" in {one.provider for one in witnesses}
    assert not any(one.is_rankable for one in (*witnesses, *(o for o in bundled() if o.gpu is None)))


def test_a_slice_has_one_gpu_and_its_fraction() -> None:
    slices = [one for one in bundled() if one.gpu_fraction is not None]
    assert {one.gpu_count for one in slices} == {1}
    assert min(one.gpu_fraction or 0 for one in slices) == pytest.approx(0.041667)
    # Half an 80 GB card has 40 GB and is not the 40 GB card.
    (half,) = [one for one in slices if one.instance_type == "vcg-a100-6c-60g-40vram"]
    assert (half.gpu, half.gpu_fraction, half.memory_gb_per_gpu) == ("A100 80GB PCIe", 0.5, 40.0)


def test_an_ambiguous_name_is_quarantined_with_its_reason() -> None:
    ambiguous = [one for one in bundled() if one.gpu is None]
    assert {one.verdict for one in ambiguous} == {Verdict.QUARANTINED}
    assert all("not stated" in one.reasons[0] or "contradictory" in one.reasons[0] for one in ambiguous)
    reasons = {one.reasons[0] for one in ambiguous if one.gpu_raw == "A100"}
    assert "ambiguous GPU name 'A100 80 GB': form not stated: A100 80GB SXM or A100 80GB PCIe" in reasons


def test_every_name_is_in_the_catalogue_of_devices() -> None:
    for name in {one.gpu for one in bundled() if one.gpu is not None}:
        assert find_gpu(name).gpu.name == name


def test_every_row_has_its_own_date_and_source() -> None:
    assert min(one.seen_at for one in bundled()) == datetime(2025, 1, 8, tzinfo=UTC)
    assert max(one.seen_at for one in bundled()) == datetime(2026, 11, 9, tzinfo=UTC)
    assert all(one.source_url for one in bundled())
    assert all(0 < one.usd_per_hour < 1000 for one in bundled())
    assert not any(one.provider == "vast.ai" for one in bundled())
    assert {str(one.billing) for one in bundled() if one.provider == "vultr"} == {"hourly"}


def test_the_sizing_page_is_in_it_with_its_date() -> None:
    rows = [one for one in current() if one.source_url == "sizing page of 2026-11-04"]
    assert {one.seen_at for one in rows} == {datetime(2026, 11, 4, tzinfo=UTC)}
    assert {
        (one.provider, one.gpu, one.gpu_count, str(one.usd_per_hour), str(one.billing)) for one in rows
    } == {
        ("runpod", "B200", 2, "11.96", "per_second"),
        ("vastai", "B200", 2, "15.004", "per_second"),
        ("vultr", "A100 80GB SXM", 8, "19.176", "hourly"),
        ("digitalocean", "Instinct MI300X", 8, "20.72", "per_second"),
    }


def test_an_old_spelling_does_not_undercut_the_true_price() -> None:
    # 23.92 of 2025 names nyc1 and another instance; the page of 2026 names no region.
    assert prices("digitalocean", "H100 SXM", 8) == [("", "35.28")]
    # 1.99 does not state the form, 2.59 does; a canonical name implies it.
    assert prices("digitalocean", "Instinct MI300X", 1) == [("", "2.59")]
    # 14.80 of 2026 asks for a commitment; on demand it is still the 17.52 of 2025.
    assert prices("vultr", "Instinct MI300X", 8) == [("ord", "17.52")]
    # 22.40 of May, 19.176 of the sizing page.
    assert prices("vultr", "A100 80GB SXM", 8) == [("", "19.176")]
    # 2.29 of May without a region, 3.25 of August in one: the other way round.
    assert prices("verda", "H100 SXM", 1) == [("EU (Nordic)", "3.25")]


def held_back() -> list[Offer]:
    """Rows of a known GPU that are kept and never ranked for a doubt."""
    return [one for one in bundled() if one.gpu and one.verdict is not Verdict.VERIFIED]


def test_no_current_row_of_a_whole_machine_is_off_the_market() -> None:
    known = [remembered(one, Origin.SNAPSHOT) for one in bundled()]
    market = Market(known, kinds())
    ranked = [one for one in current() if one.is_rankable and one.verdict is Verdict.VERIFIED]
    assert [one for one in ranked if why_implausible(one, market, kinds()) is not None] == []
    assert len(ranked) == 4679


def test_what_is_off_the_market_is_kept_with_its_reason() -> None:
    assert len(held_back()) == 86
    assert {one.verdict for one in held_back()} == {Verdict.QUARANTINED}
    reasons = {
        (one.provider, one.gpu, one.gpu_count, str(one.usd_per_hour)): one.reasons[0] for one in held_back()
    }
    assert reasons["runpod", "Instinct MI300X", 1, "0.5"] == (
        "0.5 USD per GPU-hour is 0.23 times the 2.19 that marketplaces ask (3 list prices): "
        "too far from the market"
    )
    assert reasons["vastai", "RTX 5090", 1, "53.3437"] == "53.34 USD per GPU-hour is outside 0.01 to 40"
    assert "14.9 times the 0.628" in reasons["vastai", "RTX 5090", 1, "9.3356"]


def test_prices_with_a_commitment_of_unknown_length_are_no_list_prices() -> None:
    committed = [one for one in bundled() if one.tier is Tier.RESERVED_OTHER]
    assert {(one.provider, one.gpu, decimal_text(one.usd_per_hour)) for one in committed} == {
        ("vultr", "B200", "15.92"),
        ("vultr", "H100 SXM", "15.92"),
        ("vultr", "Instinct MI300X", "14.80"),
        ("vultr", "Instinct MI325X", "16.00"),
        ("vultr", "Instinct MI355X", "20.72"),
    }
    assert {one.verdict for one in committed} == {Verdict.QUARANTINED}
    assert prices("vultr", "H100 SXM", 8) == [("sea", "23.92")]


def test_what_is_held_back_replaces_no_sound_row() -> None:
    sound, held = offer("3"), offer("30", at=MORNING + DAY, verdict=Verdict.QUARANTINED)
    again = offer("31", at=MORNING + 2 * DAY, verdict=Verdict.QUARANTINED)
    assert superseded_at([sound, held, again]) == [None, MORNING + 2 * DAY, None]
    assert superseded_at([held, offer("3", at=MORNING + 2 * DAY)]) == [MORNING + 2 * DAY, None]


def test_blank_and_global_are_one_region() -> None:
    # "global" in the tracker and blank in another table; the newest of both are the current ones.
    assert prices("runpod", "H100 SXM", 1, Tier.SECURE) == [("global", "3.99")]
    assert prices("runpod", "H100 SXM", 1, Tier.COMMUNITY) == [("global", "2.69")]
    assert prices("runpod", "B200", 1, Tier.SECURE) == [("global", "6.79")]


def test_a_marketplace_keeps_the_newest_asks_of_each_country() -> None:
    # US asks of July 20 and before give way to those of August 22, wherever in the US.
    american = [one for one in prices("vastai", "H100 SXM", 1) if one[0].endswith("US")]
    assert american == [("US", "1.386741"), ("US", "1.492889"), ("Washington, US", "1.735556")]
    # The sizing page names no country: it stands for all older ones.
    assert prices("vastai", "B200", 2) == [("", "15.004")]


def test_a_list_price_of_a_hyperscaler_is_the_newest_of_its_region() -> None:
    # AWS p5.48xlarge: 98.32 of April 2025 was cut to 55.04.
    assert prices("aws", "H100 SXM", 8)[0] == ("us-east-1", "55.04")


def test_prices_of_different_tiers_never_replace_each_other() -> None:
    old, new = offer("4.40"), offer("4.00", at=MORNING + DAY, tier=Tier.SPOT)
    assert superseded_at([old, new]) == [None, None]


def test_all_rows_of_the_newest_day_stay() -> None:
    rows = [offer("3", instance_type="a"), offer("2", instance_type="b", at=MORNING + DAY)]
    rows.append(offer("4", instance_type="c", at=MORNING + DAY))
    assert superseded_at(rows) == [MORNING + DAY, None, None]


def test_a_row_ends_where_the_next_one_starts() -> None:
    rows = [offer("3"), offer("2", at=MORNING + 2 * DAY), offer("1", at=MORNING + DAY)]
    assert superseded_at(rows) == [MORNING + DAY, None, MORNING + 2 * DAY]


def test_other_regions_are_left_alone() -> None:
    rows = [offer("3", region="nyc1"), offer("2", region="sfo3", at=MORNING + DAY)]
    assert superseded_at(rows) == [None, None]


def test_the_file_is_what_the_shared_table_gives(shared: Path) -> None:
    assert gzip.decompress(PACKED.read_bytes()) == build(shared / "data" / "prices")


def test_every_price_of_the_shared_table_is_in_it(shared: Path) -> None:
    with (shared / "data" / "prices" / "offers_snapshot.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    stated = Counter((row["as_of_date"], Decimal(row["price_usd_per_hour"])) for row in rows)
    ours = Counter(
        (f"{one.seen_at:%Y-%m-%d}", one.usd_per_hour)
        for one in bundled()
        if one.source_url != "sizing page of 2026-11-04"
    )
    assert ours == stated


def test_the_file_is_small() -> None:
    assert PACKED.stat().st_size < 100_000


@pytest.mark.parametrize("file", ["README.md", "CHANGELOG.md", "docs/database.md"])
def test_documents_say_how_many_providers_are_bundled(file):
    text = " ".join((ROOT / file).read_text(encoding="utf-8").split())
    providers = len({one.provider for one in current()})
    assert f"of {providers} providers" in text
    if file == "docs/database.md":
        assert f"{len(bundled()):,} prices of {providers} providers" in text
