"""`prices` and `db`: from saved answers to lists, history, status and review, through the command line."""

import sqlite3

import pytest

from tests.conftest import ROOT

RUNPOD = ROOT / "tests" / "pricing" / "payloads" / "runpod" / "gpu_types.json"
OFFER_KEYS = {
    *("id", "provider", "instance_type", "gpu", "gpu_count", "gpu_fraction", "memory_gb_per_gpu", "form"),
    *("region", "tier", "commitment_days", "usd_per_hour", "usd_per_gpu_hour", "usd_per_month_cap"),
    *("currency", "price_original", "fx_date", "billing", "available", "vcpus", "ram_gb", "source_url"),
    *("seen_at", "verdict", "reasons"),
}


def test_a_dry_run_shows_verdicts_and_stores_nothing(cli, database):
    before = database.read_bytes()
    ran = cli("prices", "replay", "runpod", RUNPOD, "--dry-run", "--json")
    assert ran.code == 0
    assert ran.document.keys() == {"schema", "offers", "problems"}
    assert ran.document["schema"] == "breakeven.offers/1"
    assert ran.document["offers"]
    for offer in ran.document["offers"]:
        assert offer.keys() >= OFFER_KEYS
        assert isinstance(offer["usd_per_hour"], str)
        assert offer["verdict"] in {"verified", "quarantined", "rejected"}
    assert database.read_bytes() == before


def test_a_dry_run_makes_no_database(cli, tmp_path, monkeypatch):
    file = tmp_path / "none.db"
    monkeypatch.setenv("BREAKEVEN_DATABASE_URL", f"sqlite:///{file}")
    assert cli("prices", "replay", "runpod", RUNPOD, "--dry-run").code == 0
    assert not file.exists()


def test_replayed_prices_supersede_the_snapshot_and_stay_in_the_history(cli, database):
    chosen = ("--provider", "runpod", "--gpu", "H100 SXM", "--json")
    bundled = cli("prices", "list", *chosen).document["offers"]
    assert {offer["origin"] for offer in bundled} == {"snapshot"}
    assert cli("prices", "replay", "runpod", RUNPOD).code == 0
    own = cli("prices", "list", *chosen).document["offers"]
    machines = {origin: set() for origin in ("refresh", "snapshot")}
    for offer in own:
        machines[offer["origin"]].add((offer["gpu_count"], offer["tier"]))
    assert machines["refresh"]
    assert not machines["refresh"] & machines["snapshot"]  # what the saved answer lacks stays, with its date
    assert {offer["seen_at"] for offer in own if offer["origin"] == "refresh"} == {"2026-11-30T12:00:00Z"}
    history = cli("prices", "history", *chosen).document["history"]
    assert {offer["price_id"] for offer in history} >= {offer["price_id"] for offer in [*bundled, *own]}


def test_the_market_of_a_past_day(cli, database):
    then = cli("prices", "list", "--provider", "runpod", "--gpu", "B200", "--as-of", "2026-11-04", "--json")
    assert ("11.96", 2) in {(o["usd_per_hour"], o["gpu_count"]) for o in then.document["offers"]}
    before = cli("prices", "list", "--provider", "runpod", "--as-of", "2020-01-01", "--json")
    assert (before.code, before.document["offers"]) == (0, [])


def test_a_name_of_several_devices_lists_all_of_them(cli, database):
    offers = cli("prices", "list", "--gpu", "H100", "--json").document["offers"]
    assert {offer["gpu"] for offer in offers} == {"H100 SXM", "H100 PCIe", "H100 NVL"}


def test_offers_are_listed_by_price_of_a_gpu_hour(cli, database):
    offers = cli("prices", "list", "--gpu", "B200", "--limit", 20, "--json").document["offers"]
    paid = [float(offer["usd_per_gpu_hour"]) for offer in offers]
    assert paid == sorted(paid)
    assert len(offers) == 20


def test_no_limit_is_zero_as_in_a_plan(cli, database):
    every = cli("prices", "list", "--json").document["offers"]
    assert cli("prices", "list", "--limit", 0, "--json").document["offers"] == every
    few, all_rows = (
        cli("prices", "list", "--provider", "vultr", *limit).out.splitlines()
        for limit in ((), ("--limit", 0))
    )
    assert len(all_rows) > len(few)
    assert "more: --limit N shows so many (0: all), --json has all" in few[-1]
    assert "more:" not in all_rows[-1]


def test_filters_by_tier_region_and_limit(cli, database):
    spot = cli("prices", "list", "--tier", "spot", "--limit", 5, "--json").document["offers"]
    assert [offer["tier"] for offer in spot] == ["spot"] * 5
    assert cli("prices", "list", "--tier", "sport").code == 2
    assert cli("prices", "list", "--limit", "-1").code == 2
    assert cli("prices", "list", "--as-of", "soon").code == 2


def test_status_and_rejected_of_a_database_that_has_grown_old(cli, stale_database):
    statuses = {row["provider"]: row for row in cli("prices", "status", "--json").document["providers"]}
    assert (statuses["runpod"]["stale"], statuses["runpod"]["quarantined"]) == (2, 1)
    assert statuses["runpod"]["age_hours"] == pytest.approx(240.0)
    rejected = cli("prices", "rejected", "--json").document
    assert rejected["schema"] == "breakeven.rejected/1"
    (offer,) = rejected["offers"]
    assert (offer["verdict"], offer["reasons"]) == ("quarantined", ["below a tenth of the market"])
    assert offer["raw"] == "0.02"
    listed = cli("prices", "list", "--json").document["offers"]
    everything = cli("prices", "list", "--all", "--json").document["offers"]
    assert len(everything) == len(listed) + 1
    assert {offer["status"] for offer in listed} == {"stale"}
    assert [offer["status"] for offer in everything if offer["verdict"] == "quarantined"] == [None]


def test_a_bundled_price_is_never_listed_as_verified_today(cli, database):
    offers = cli("prices", "list", "--gpu", "A10", "--json").document["offers"]
    assert {(offer["origin"], offer["status"]) for offer in offers} == {("snapshot", "snapshot")}
    is_slice = [offer["gpu_fraction"] is not None for offer in offers]
    assert True in is_slice
    assert is_slice == sorted(is_slice)  # a slice is no bargain of the whole


def test_nothing_known_names_the_command_that_helps(cli, empty_database):
    ran = cli("prices", "list")
    assert (ran.code, ran.out) == (0, "")
    assert "`breakeven prices refresh`" in ran.err


def test_the_database_from_nothing_to_a_backup(cli, tmp_path, monkeypatch):
    file = tmp_path / "new" / "breakeven.db"
    file.parent.mkdir()
    monkeypatch.setenv("BREAKEVEN_DATABASE_URL", f"sqlite:///{file}")
    assert cli("db", "path").out == f"{file}\n"
    missing = cli("db", "check")
    assert (missing.code, missing.err.count("\n")) == (3, 1)
    assert "`breakeven db upgrade`" in missing.err
    upgraded = cli("db", "upgrade", "--json")
    assert upgraded.code == 0
    assert upgraded.document["schema"] == "breakeven.db/1"
    assert upgraded.document["changed"] is True
    assert cli("db", "upgrade", "--json").document["changed"] is False
    checked = cli("db", "check", "--json")
    assert checked.code == 0
    assert (checked.document["is_ok"], checked.document["snapshot_is_current"]) == (True, True)
    assert checked.document["counts"]["price"] > 8000


def test_a_damaged_database_is_told_by_check(cli, database):
    with sqlite3.connect(database) as connection:
        connection.execute("PRAGMA foreign_keys = OFF")
        connection.execute("DELETE FROM source WHERE id IN (SELECT source_id FROM price LIMIT 1)")
    connection.close()
    ran = cli("db", "check", "--json")
    assert ran.code == 3
    assert ran.document["foreign_key_errors"] > 0
    assert ran.err.count("\n") == 1


def test_the_market_of_a_past_day_is_listed_as_it_was_known_then(cli, database):
    for day in ("2026-11-10", "2026-11-24"):
        assert cli("prices", "replay", "runpod", RUNPOD, "--seen-at", f"{day}T03:00:00Z").code == 0
    listed = cli("prices", "list", "--provider", "runpod", "--as-of", "2026-11-12", "--json").document
    own = [offer for offer in listed["offers"] if offer["origin"] == "refresh"]
    assert own
    assert {offer["seen_at"][:10] for offer in own} == {"2026-11-12"}
    assert {offer["status"] for offer in own} == {"verified"}


def test_providers_name_the_keys_that_are_needed_and_those_that_add_something(cli, database, monkeypatch):
    monkeypatch.setenv("BREAKEVEN_VERDA_API_KEY", "id:secret")
    lines = {line.split()[0]: line for line in cli("providers").out.splitlines() if line.strip()}
    assert "needed: BREAKEVEN_GCP_API_KEY" in lines["gcp"]
    assert "optional: BREAKEVEN_LAMBDA_API_KEY" in lines["lambda"]
    assert " set " in lines["verda"]
    assert "secret" not in lines["verda"]
    assert "BREAKEVEN" not in lines["vastai"]
