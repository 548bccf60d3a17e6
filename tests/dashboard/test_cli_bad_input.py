"""Bad input of every kind: one line that says what and what to do, the documented exit code, nothing lost."""

import functools
import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from pricing.http import Client
from pricing.store import Store
from tests.conftest import ROOT
from tests.pricing.loopback import LoopbackServer

MODEL = "qwen3-coder-480b-a35b"
RECORDINGS = ROOT / "tests" / "pricing" / "payloads"
FOUR = ("runpod", "vastai", "vultr", "digitalocean")


def assert_one_line(ran, code, *expected):
    assert ran.code == code, ran.err
    assert ran.out == ""
    assert ran.err.startswith("breakeven: ")
    assert ran.err.count("\n") == 1, ran.err
    assert "Traceback" not in ran.err
    assert "unexpected error" not in ran.err
    for text in expected:
        assert text in ran.err


def prices(database: Path) -> list[tuple[object, ...]]:
    connection = sqlite3.connect(database)
    try:
        return connection.execute("SELECT * FROM price ORDER BY id").fetchall()
    finally:
        connection.close()


@pytest.mark.parametrize("command", ["size", "plan", "launch", "matrix", "finetune"])
def test_unknown_model_names_close_matches(cli, command):
    expected = ("unknown model 'qwen3-codr-480b'", "close matches: ", MODEL)
    assert_one_line(cli(command, "qwen3-codr-480b", "--json"), 2, *expected)


@pytest.mark.parametrize("command", ["size", "plan", "launch", "finetune", "capacity"])
@pytest.mark.parametrize("name", ["", " "])
def test_an_empty_model_is_no_folder(cli, monkeypatch, tmp_path, command, name):
    (tmp_path / "config.json").write_text("{}", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    machine = () if command == "finetune" else ("--gpu", "B200")
    assert_one_line(cli(command, name, *machine), 2, f"MODEL: {name!r} is empty; give an id, an alias")


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (("size", "zzzzzz", "--gpu", "H100 SXM"), "unknown model 'zzzzzz'; `breakeven models` lists them"),
        (("size", MODEL, "--gpu", "zzzzzz"), "unknown GPU 'zzzzzz'; `breakeven gpus` lists them"),
        (("plan", MODEL, "--currency", "XXX"), "unknown currency 'XXX'; give an ISO 4217 code such as EUR"),
        (
            ("plan", MODEL, "--electricity-region", "QQQQ"),
            "unknown electricity region 'QQQQ'; give a code such as DE or US-CA:commercial",
        ),
        (("prices", "accept", "000000", "--reason", "x"), "`breakeven prices rejected` lists those"),
    ],
)
def test_a_name_close_to_none_says_where_the_names_are(cli, database, command, expected):
    assert_one_line(cli(*command), 2, expected)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (("--gpu", "H1000 SXM"), ("unknown GPU 'H1000 SXM'", "H100 SXM")),
        (("--gpu", "H100 SXM", "--quant", "Q4_K_X"), ("unknown quant 'Q4_K_X'", "Q4_K_M")),
        (("--gpu", "H100 SXM", "--gpus", "0"), ("--gpus: 0", "1 to 1024")),
        (("--gpu", "H100 SXM", "--batch", "-1"), ("--batch: -1", "at least 1")),
        (("--gpu", "H100 SXM", "--offload", "1.5"), ("--offload: 1.5", "0 to 1")),
        (("--gpu", "H100 SXM", "--engine", "vlm"), ("'vlm' is not one of", "vllm")),
        (("--gpu", "H100 SXM", "--decode-tokens-per-s", "0"), ("--decode-tokens-per-s: 0",)),
        ((), ("--gpu: name a device",)),
        (("--sizing", "/nowhere.json"), ("--sizing: /nowhere.json", "No such file")),
        (("--scenario", "/nowhere.toml"), ("--scenario: /nowhere.toml", "No such file")),
    ],
)
def test_bad_options_of_size(cli, options, expected):
    assert_one_line(cli("size", MODEL, *options, "--json"), 2, *expected)


@pytest.mark.parametrize(
    ("option", "value", "expected"),
    [
        ("--hours-per-day", "0", "hours above 0 and up to 24"),
        ("--hours-per-day", "-4", "hours above 0 and up to 24"),
        ("--hours-per-day", "25", "hours above 0 and up to 24"),
        ("--hours-per-day", "nan", "'nan' is not allowed"),
        ("--hours-per-day", "-inf", "'-inf' is not allowed; give a finite number"),
        ("--hours-per-day", "-1e3", "-1000.0 is not allowed"),
        ("--hours-per-day", "4,5", "with a decimal point: 4.5"),
        ("--days-per-month", "32", "days above 0 and up to 31"),
        ("--budget-usd", "0", "an amount above 0"),
        ("--budget-usd", "-100", "an amount above 0"),
        ("--budget-usd", "inf", "'inf' is not allowed"),
        ("--budget-usd", "1e308", "'1e+308' is not allowed; give an amount above 0, and up to 1e+15"),
        ("--context", "1e26", "'1e+26' is not allowed; give at least 1 token, and up to 1e+12"),
        ("--gpus", "2000", "2000 is not allowed; give 1 to 1024 GPUs"),
        ("--max-tpot-ms", "1e99", "give a time above 0 ms, and up to 1e+15"),
        ("--min-tokens-per-s-per-user", "1e9", "give a speed of at least 0 tokens/s, and up to 1,000,000"),
        ("--limit", "-1", "--limit: -1 is not allowed; give 1 or more, or 0 for all"),
        ("--explain", "-1", "--explain: -1 is not allowed"),
        ("--electricity-usd-per-kwh", "-0.1", "USD/kWh"),
        ("--electricity-usd-per-kwh", "0,175", "with a decimal point: 0.175"),
        ("--electricity-region", "Atlantis", "unknown electricity region 'Atlantis'"),
        ("--tokens-per-month", "0", "above 0"),
        ("--requests-per-s", "-1", "above 0"),
        ("--max-price-age", "-1", "at least 0 days"),
        ("--as-of", "yesterday", "a date such as"),
        ("--as-of", "0001-01-01", "a date of the years 2000 to 2099"),
        ("--as-of", "2026-12-02", "is in the future"),
        ("--currency", "XXX", "unknown currency 'XXX'"),
        ("--owner", "me", "'me' is not one of home, office, colo"),
        ("--own", "0x RTX 4090", "hardware such as"),
        ("--own", "-1x RTX 4090", 'hardware such as "2x RTX 4090", 1 to 1024 of it'),
        ("--own", "1000000x RTX 4090", "1 to 1024 of it"),
        ("--own", "2x RTX 9999", "unknown GPU 'RTX 9999'"),
        ("--provider", "runpd", "unknown provider 'runpd'; close matches: runpod"),
        ("--tier", "spott", "one of on_demand, spot"),
        ("--set", "power=1", "unknown assumption 'power'"),
        ("--set", "power_kw", "NAME=VALUE"),
        ("--set", "power_kw=-1", "set power_kw"),
    ],
)
def test_bad_terms_of_a_plan(cli, database, option, value, expected):
    assert_one_line(cli("plan", MODEL, option, value, "--json"), 2, expected)


def test_options_that_contradict_each_other(cli, database):
    both = ("--electricity-region", "DE", "--electricity-usd-per-kwh", "0.2")
    assert_one_line(cli("plan", MODEL, *both), 2, "--electricity-region", "not both")
    assert_one_line(cli("plan", MODEL, "--peak-factor", "2"), 2, "--peak-factor")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("model.gguf", "model.gguf: No such file"),
        ("config.json", "config.json: No such file"),
        ("hf:Qwen", "'hf:Qwen' is not hf:owner/name"),
        ("http://127.0.0.1/config.json", "addresses are not fetched"),
        ("Qwen/Qwen-1000", "hf:Qwen/Qwen-1000 asks the Hugging Face hub"),
    ],
)
def test_what_is_no_model_is_refused_in_one_line(cli, name, expected):
    assert_one_line(cli("size", name, "--gpu", "H100 SXM", "--json"), 2, expected)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("hours_per_day = ", "not TOML"),
        ("hours_per_dya = 3\n", "unknown option 'hours_per_dya'; close matches: hours_per_day"),
        ("hours_per_day = -3\n", "--hours-per-day: -3"),
        ("v = 99\n", "a scenario of version 1"),
        ('hours_per_day = "4,5"\n', "with a decimal point: 4.5"),
    ],
)
def test_bad_scenario_files(cli, database, tmp_path, text, expected):
    file = tmp_path / "scenario.toml"
    file.write_text(text, encoding="utf-8")
    assert_one_line(cli("plan", MODEL, "--scenario", file), 2, expected)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "not JSON"),
        ("<html>", "not JSON"),
        ("[]", "n_gen"),
        ('{"a": 1}', "breakeven size --json"),
        (
            '{"schema": "breakeven.size/1", "gpu": "H100 SXM", "gpu_count": 1, "speed": {}}',
            "does not hold it",
        ),
        (
            '{"schema": "breakeven.size/1", "gpu": "H1O0", "gpu_count": 1, '
            '"speed": {"decode_tokens_per_s": 3}}',
            "unknown GPU 'H1O0'",
        ),
    ],
)
def test_bad_sizing_files(cli, tmp_path, text, expected):
    file = tmp_path / "sizing.json"
    file.write_text(text, encoding="utf-8")
    assert_one_line(cli("size", MODEL, "--sizing", file), 2, expected)


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (("capacity", MODEL, "--gpu", "B200", "--budget-gb", "1e300"), ("--budget-gb: 1e+300", "up to 1e9")),
        (("finetune", MODEL, "--rank", "1e30"), ("--rank: '1e+30'", "1 to 100000")),
        (("finetune", MODEL, "--gpus", "0"), ("--gpus: '0'", "1 to 1024")),
        (("prices", "status", "--max-age", "-5"), ("--max-age: -5", "at least 0")),
        (("prices", "refresh", "runpod", "--wait", "-3"), ("--wait: -3", "0 or more seconds")),
        (("prices", "list", "--as-of", "2026-12-02"), ("--as-of: 2026-12-02", "in the future")),
        (("prices", "history", "--since", "0001-01-01"), ("--since: '0001-01-01'", "2000 to 2099")),
        (("dashboard", "--host", "192.0.2.1"), ("--host: '192.0.2.1'", "not an address of this machine")),
        (("size", "x" * 400, "--gpu", "H100 SXM"), ("unknown model",)),
    ],
    ids=lambda value: " ".join(map(str, value))[:40],
)
def test_bad_values_of_other_commands(cli, database, command, expected):
    assert_one_line(cli(*command), 2, *expected)


DEEP = "[" * 100_000 + "]" * 100_000


def test_files_nested_without_end(cli, database, tmp_path):
    saved, scenario = tmp_path / "deep.json", tmp_path / "deep.toml"
    saved.write_text('{"data": ' + DEEP + "}", encoding="utf-8")
    scenario.write_text(f"a = {DEEP}\n", encoding="utf-8")
    assert_one_line(cli("size", MODEL, "--sizing", saved), 2, "--sizing: ", "nested too deeply")
    assert_one_line(cli("plan", MODEL, "--scenario", scenario), 2, "--scenario: ", "nested too deeply")
    assert_one_line(cli("prices", "replay", "runpod", saved), 2, str(saved), "not a known page")
    named = f"gpu_types={saved}"
    assert_one_line(cli("prices", "replay", "runpod", named), 2, "gpu_types", "nested too deeply")


# -- Files to write

WRITERS = {
    "export": ("export", MODEL, "--as", "csv", "-o"),
    "scenario": ("plan", MODEL, "--save-scenario"),
    "launch": ("launch", MODEL, "--gpu", "B200", "--gpus", 2, "-o"),
    "rows": ("size", "--rows", "in.csv", "-o"),
}


@pytest.fixture
def rows_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in.csv").write_text("model,gpu\nllama-3.1-8b-instruct,RTX 4090\n", encoding="utf-8")


@pytest.mark.parametrize("command", WRITERS.values(), ids=WRITERS)
def test_where_nothing_can_be_written_nothing_is_left(cli, database, rows_file, tmp_path, command):
    before = sorted(path.name for path in tmp_path.iterdir())
    (tmp_path / "folder").mkdir()
    assert_one_line(cli(*command, tmp_path / "none" / "a.csv"), 2, "No such file", "can be written")
    assert_one_line(cli(*command, tmp_path / "folder"), 2, "Is a directory", "can be written")
    (tmp_path / "folder").rmdir()
    assert sorted(path.name for path in tmp_path.iterdir()) == before


@pytest.mark.skipif(
    not Path("/dev/full").is_char_device(), reason="only Linux has a disk that is always full"
)
@pytest.mark.parametrize("command", WRITERS.values(), ids=WRITERS)
def test_a_full_disk_is_one_line_and_a_device_is_never_replaced(cli, database, rows_file, command):
    assert_one_line(cli(*command, "/dev/full"), 3, "/dev/full", "No space left", "nothing was written")
    assert Path("/dev/full").is_char_device()
    assert cli(*command, "/dev/null").code == 0
    assert Path("/dev/null").is_char_device()


def test_a_link_is_followed_and_a_file_that_is_replaced_keeps_its_mode(cli, database, tmp_path):
    real, link = tmp_path / "real.csv", tmp_path / "link.csv"
    real.write_text("old", encoding="utf-8")
    real.chmod(0o600)
    link.symlink_to(real)
    assert cli("export", MODEL, "-o", link).code == 0
    assert link.is_symlink()
    assert real.read_text(encoding="utf-8").startswith("#")
    assert real.stat().st_mode & 0o777 == 0o600


@pytest.mark.skipif(
    not Path("/dev/full").is_char_device(), reason="only Linux has a disk that is always full"
)
@pytest.mark.parametrize("options", [(), ("--json",)])
def test_an_answer_that_cannot_be_written_is_one_line(options):
    with Path("/dev/full").open("wb") as full:
        ran = subprocess.run(
            [sys.executable, "-m", "dashboard", "quants", *options],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
        )
    assert ran.returncode == 3
    assert ran.stderr.count("\n") == 1
    assert "could not be written to stdout: No space left" in ran.stderr


# -- Databases


@pytest.mark.parametrize(
    "command", [("plan", MODEL), ("prices", "list"), ("prices", "refresh", "runpod"), ("db", "upgrade")]
)
def test_a_file_that_is_no_database(cli, database, command):
    database.write_text("this is a letter, not a database\n" * 40, encoding="utf-8")
    assert_one_line(cli(*command), 3, str(database), "BREAKEVEN_DATABASE_URL")
    assert database.read_text(encoding="utf-8").startswith("this is a letter")


@pytest.mark.parametrize("command", [("plan", MODEL), ("prices", "list"), ("db", "upgrade")])
def test_a_database_of_a_newer_version(cli, database, command):
    before = prices(database)
    with sqlite3.connect(database) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    connection.close()
    assert_one_line(cli(*command), 3, "9999", "newer", "upgrade breakeven")
    assert prices(database) == before


def test_a_database_of_another_program(cli, database):
    database.unlink()
    with sqlite3.connect(database) as connection:
        connection.execute("CREATE TABLE letters (id INTEGER)")
    connection.close()
    assert_one_line(cli("plan", MODEL), 3, "another program")


@pytest.fixture
def read_only(database):
    """The database can only be read, nor can anything be put beside it."""
    folder = database.parent / "read-only"
    folder.mkdir()
    file = folder / database.name
    shutil.move(database, file)
    file.chmod(0o444)
    folder.chmod(0o555)
    yield file
    folder.chmod(0o755)
    file.chmod(0o644)


def test_a_read_only_database_is_read_and_not_written(cli, read_only, monkeypatch):
    monkeypatch.setenv("BREAKEVEN_DATABASE_URL", f"sqlite:///{read_only}")
    before = prices_of_read_only(read_only)
    assert cli("plan", MODEL, "--json").code == 0
    assert cli("prices", "list", "--limit", 1).code == 0
    assert_one_line(cli("prices", "refresh", "runpod"), 3, "read-only", "BREAKEVEN_DATABASE_URL")
    recording = RECORDINGS / "runpod" / "gpu_types.json"
    assert_one_line(cli("prices", "replay", "runpod", recording), 3, "read-only")
    assert prices_of_read_only(read_only) == before


def prices_of_read_only(file: Path) -> bytes:
    return file.read_bytes()


def test_a_url_that_opens_for_reading_only(cli, database, tmp_path, monkeypatch):
    def use(file):
        monkeypatch.setenv("BREAKEVEN_DATABASE_URL", f"sqlite:///file:{file}?mode=ro&uri=true")

    monkeypatch.chdir(tmp_path)
    use(database)
    before = prices(database)
    assert cli("prices", "list", "--limit", 1).code == 0
    assert cli("db", "check", "--json").document["is_read_only"] is True
    assert_one_line(cli("prices", "refresh", "runpod"), 3, str(database), "read-only")
    recording = RECORDINGS / "runpod" / "gpu_types.json"
    assert_one_line(cli("prices", "replay", "runpod", recording), 3, str(database), "read-only")
    assert prices(database) == before
    use(tmp_path / "none" / "prices.db")
    assert_one_line(cli("plan", MODEL), 3, "does not exist", "mode=ro")
    assert {path.name.partition(".")[0] for path in tmp_path.iterdir()} == {"breakeven"}  # no folder file:


@pytest.mark.parametrize("kind", ["truncated", "folder", "locked"])
def test_a_file_that_cannot_be_used_is_told_apart_and_kept(cli, database, impatient, kind):
    whole = database.read_bytes()
    holder = None
    if kind == "truncated":
        database.write_bytes(whole[: len(whole) // 2])
        said = ("damaged one", "BREAKEVEN_DATABASE_URL")
    elif kind == "folder":
        database.unlink()
        database.mkdir()
        said = ("cannot be opened or created", "BREAKEVEN_DATABASE_URL")
    else:
        holder = sqlite3.connect(database, isolation_level=None)
        holder.execute("PRAGMA journal_mode=DELETE")
        holder.execute("BEGIN EXCLUSIVE")
        said = ("locked by another program", "wait or end that program")
    for command in (("plan", MODEL), ("prices", "list"), ("prices", "status")):
        assert_one_line(cli(*command), 3, str(database), *said)
    if holder is not None:
        holder.execute("ROLLBACK")
        holder.close()
        assert cli("prices", "list", "--limit", 1).code == 0
    assert database.is_dir() or len(database.read_bytes()) in {len(whole), len(whole) // 2}


@pytest.fixture
def impatient(monkeypatch):
    """Do not wait for another writer."""
    opened = Store.open.__func__
    monkeypatch.setattr(Store, "open", classmethod(functools.partial(opened, timeout_s=0.05)))


def test_a_locked_database_can_be_read_and_says_who_is_in_the_way(cli, database, impatient):
    before = prices(database)
    recording = RECORDINGS / "runpod" / "gpu_types.json"
    holder = sqlite3.connect(database, isolation_level=None)
    try:
        holder.execute("BEGIN IMMEDIATE")
        assert_one_line(cli("prices", "replay", "runpod", recording), 3, str(database), "lock")
        assert cli("plan", MODEL, "--json").code == 0
        holder.execute("ROLLBACK")
    finally:
        holder.close()
    assert prices(database) == before
    assert cli("prices", "replay", "runpod", recording).code == 0


@pytest.mark.parametrize(
    "url", ["mysql://me:secret@host/db", "prices.db", "sqlite:prices.db", "sqlite://prices.db"]
)
def test_a_database_url_that_is_none(cli, monkeypatch, url):
    monkeypatch.setenv("BREAKEVEN_DATABASE_URL", url)
    ran = cli("plan", MODEL)
    assert_one_line(ran, 2, "BREAKEVEN_DATABASE_URL")
    assert "secret" not in ran.err


def test_a_backup_overwrites_nothing(cli, database, tmp_path):
    file = tmp_path / "copy.db"
    assert cli("db", "backup", file, "--json").document["backup"] == str(file)
    assert prices(file) == prices(database)
    assert_one_line(cli("db", "backup", file), 3, "exists already")
    assert_one_line(cli("db", "backup", tmp_path / "none" / "copy.db"), 3, "folder does not exist")


# -- Saved answers


def page_of(provider: str) -> Path:
    files = {
        "runpod": "gpu_types.json",
        "vastai": "bundles.json",
        "vultr": "plans.json",
        "digitalocean": "pricing.html",
    }
    return RECORDINGS / provider / files[provider]


@pytest.mark.parametrize("provider", FOUR)
@pytest.mark.parametrize("kind", ["empty", "truncated", "html", "other shape", "binary", "missing", "folder"])
def test_a_bad_payload_is_refused_and_nothing_is_lost(cli, database, tmp_path, provider, kind):
    file = tmp_path / "saved"
    content = {
        "empty": b"",
        "truncated": page_of(provider).read_bytes()[:400],
        "html": b"<!doctype html><html><body><h1>Sign in</h1></body></html>",
        "other shape": b'{"unexpected": [1, 2, 3]}',
        "binary": bytes(range(256)),
        "missing": None,
        "folder": None,
    }[kind]
    if content is not None:
        file.write_bytes(content)
    elif kind == "folder":
        file.mkdir()
    before = prices(database)
    for options in ((), ("--dry-run", "--json")):
        assert_one_line(
            cli("prices", "replay", provider, file, *options), 2, str(file) if kind == "missing" else ""
        )
    assert prices(database) == before


def test_bad_arguments_of_replay(cli, database):
    recording = page_of("runpod")
    assert_one_line(cli("prices", "replay", "runpd", recording), 2, "unknown provider 'runpd'; close matches")
    assert_one_line(cli("prices", "replay", "akash", recording), 2, "bundled")
    assert_one_line(cli("prices", "replay", "runpod"), 2, "required: FILE")
    when = ("--seen-at", "2027-01-01")
    assert_one_line(cli("prices", "replay", "runpod", recording, *when), 2, "in the future")
    assert_one_line(cli("prices", "replay", "runpod", recording, "--seen-at", "noon"), 2, "--seen-at: 'noon'")
    for early in ("0001-01-01", "0001-01-01T00:00+14:00", "1999-12-31"):
        ran = cli("prices", "replay", "runpod", recording, "--seen-at", early)
        assert_one_line(ran, 2, f"--seen-at: '{early}' is before 2000")


# -- The network


@pytest.fixture
def hasty(monkeypatch):
    """Retry without waiting."""
    patient = Client.__init__
    monkeypatch.setattr(Client, "__init__", functools.partialmethod(patient, sleep=lambda _seconds: None))


def test_no_network_on_refresh_leaves_all_prices(cli, database, hasty, monkeypatch):
    monkeypatch.setenv("BREAKEVEN_RUNPOD_BASE_URL", "http://127.0.0.1:9")  # nobody listens there
    before = prices(database)
    ran = cli("prices", "refresh", "runpod", "--json")
    assert ran.code == 3
    assert ran.err.count("\n") == 1
    assert "1 of 1 source failed, stored prices are as before (RunPod: " in ran.err
    (report,) = ran.document["providers"]
    assert (report["status"], report["offers"]) == ("failed", 0)
    assert report["reason"]
    assert prices(database) == before
    assert cli("plan", MODEL, "--json").code == 0


def test_one_failing_provider_leaves_the_others_and_ends_with_1(cli, shared, database, hasty, monkeypatch):
    with LoopbackServer() as server:
        server.serve_payloads(shared / "data" / "prices" / "payloads", FOUR)
        server.add("/vultr/v2/plans-metal", status=503)
        for name, value in server.environ(*FOUR).items():
            monkeypatch.setenv(name, value)
        monkeypatch.setenv("BREAKEVEN_VULTR_BASE_URL", f"{server.url}/nowhere")
        ran = cli("prices", "refresh", *FOUR, "--json")
    assert ran.code == 1
    assert ran.document["schema"] == "breakeven.refresh/1"
    statuses = {part["provider"]: part["status"] for part in ran.document["providers"]}
    assert statuses == {"runpod": "ok", "vastai": "ok", "vultr": "failed", "digitalocean": "ok"}
    listed = cli("prices", "list", "--provider", "runpod", "--gpu", "B200", "--json").document["offers"]
    assert {(offer["gpu_count"], offer["usd_per_hour"]) for offer in listed} >= {(2, "11.96")}
    assert {offer["verdict"] for offer in listed} == {"verified"}


def test_a_bad_key_or_mirror_in_the_environment(cli, database, monkeypatch):
    monkeypatch.setenv("BREAKEVEN_RUNPOD_BASE_URL", "http://example.com/mirror")
    assert_one_line(cli("prices", "refresh", "runpod"), 2, "BREAKEVEN_RUNPOD_BASE_URL")
    monkeypatch.delenv("BREAKEVEN_RUNPOD_BASE_URL")
    monkeypatch.setenv("BREAKEVEN_VULTR_API_KEY", "two words")
    ran = cli("prices", "refresh", "vultr")
    assert_one_line(ran, 2, "BREAKEVEN_VULTR_API_KEY")
    assert "two words" not in ran.err


# -- Files of rows


def test_a_bad_row_fills_its_error_and_spoils_no_other(cli, tmp_path):
    source, target = tmp_path / "in.csv", tmp_path / "out.csv"
    source.write_text(
        "id,model,gpu,gpus,quant,context\n"
        f"1,{MODEL},H100 SXM,8,,\n"
        f"2,{MODEL},H100 SXM,8,Q4_K_X,\n"
        f"3,nobody-knows,H100 SXM,8,,\n"
        f'4,{MODEL},H100 SXM,8,,"8,5"\n'
        f"5,{MODEL},H100 SXM\n"
        f"6,{MODEL},H100 SXM,8,,8192,,a note\n"
        "7,,H100 SXM,8,,\n"
        f"8,{MODEL},,8,,\n",
        encoding="utf-8",
    )
    ran = cli("size", "--rows", source, "-o", target, "--json")
    assert ran.code == 1  # done in part
    assert "6 rows could not be sized; the column error says why" in ran.err
    assert ran.document == {"schema": "breakeven.rows/1", "rows": 8, "errors": 6, "file": str(target)}
    line = f"2 of 8 rows sized into {target}; 6 failed: the column error says why"
    assert cli("size", "--rows", source, "-o", target).out.strip() == line
    import csv

    with target.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["id"] for row in rows] == ["1", "2", "3", "4", "5", "6", "7", "8"]
    errors = [row["error"] for row in rows]
    assert (errors[0], errors[4]) == ("", "")
    assert "unknown quant 'Q4_K_X'" in errors[1]
    assert "unknown model 'nobody-knows'" in errors[2]
    assert "with a decimal point: 8.5" in errors[3]
    assert errors[5] == "8 cells under 6 headings; those without one: 'a note'"
    assert errors[6:] == [
        f"{name}: the cell is blank, and no such option is given" for name in ("model", "gpu")
    ]
    alone = cli("size", MODEL, "--gpu", "H100 SXM", "--gpus", 8, "--json").document
    for name in ("weights_gib", "kv_cache_gib", "runtime_gib", "total_gib", "usable_gib"):
        assert float(rows[0][name]) == pytest.approx(alone["memory"][name], rel=1e-12)
    for name in (
        "decode_tokens_per_s",
        "aggregate_tokens_per_s",
        "prefill_tokens_per_s",
        "ttft_ms",
        "tpot_ms",
    ):
        assert float(rows[0][name]) == pytest.approx(alone["speed"][name], rel=1e-12)
    assert (rows[0]["fits"], rows[4]["fits"], rows[4]["decode_tokens_per_s"]) == ("true", "false", "")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "is empty"),
        ("model;gpu\na;b\n", "semicolons"),
        ("gpu\nH100 SXM\n", "no column 'model'"),
        ("model\nx\n", "no column 'gpu'"),
        (f"model,gpu,gpu\n{MODEL},RTX 4090,B200\n", "the column 'gpu' stands there twice; keep one"),
    ],
)
def test_a_file_of_rows_that_cannot_be_read(cli, tmp_path, text, expected):
    source = tmp_path / "in.csv"
    source.write_text(text, encoding="utf-8")
    assert_one_line(cli("size", "--rows", source, "-o", tmp_path / "out.csv"), 2, expected)
    assert not (tmp_path / "out.csv").exists()


def test_rows_of_which_none_can_be_sized_and_rows_that_all_can(cli, tmp_path):
    source, target = tmp_path / "in.csv", tmp_path / "out.csv"
    source.write_text("model,gpu\nnobody-knows,B200\n", encoding="utf-8")
    assert cli("size", "--rows", source, "-o", target).code == 3
    source.write_text(f"model,gpu,pipeline,gpsu\n{MODEL},B200,2,1\n", encoding="utf-8")
    ran = cli("size", "--rows", source, "-o", target)
    assert (ran.code, ran.out.strip()) == (0, f"1 row sized into {target}")
    assert "column 'pipeline' is an option that --rows does not take: it is only repeated" in ran.err
    assert "column 'gpsu' is no option and is only repeated; close matches: gpu, gpus" in ran.err


def test_rows_need_a_place_to_go(cli, tmp_path):
    source = tmp_path / "in.csv"
    source.write_text(f"model,gpu\n{MODEL},H100 SXM\n", encoding="utf-8")
    assert_one_line(cli("size", "--rows", source), 2, "-o OUT.csv")
    assert_one_line(cli("size", "--rows", source, "-o", tmp_path / "none" / "out.csv"), 2, "No such file")
    assert_one_line(
        cli("size", "--rows", tmp_path / "none.csv", "-o", tmp_path / "out.csv"), 2, "No such file"
    )


# -- The web interface


def test_a_port_that_is_taken_is_one_line_with_the_remedy(cli, database):
    with LoopbackServer() as server:
        port = int(server.url.rpartition(":")[2])
        remedy = f"--port {port + 1}, or make dashboard PORT={port + 1}"
        assert_one_line(cli("dashboard", "--port", port), 3, f"port {port}", "is taken", remedy)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (("--port", "0"), "1 to 65535"),
        (("--port", "99999"), "1 to 65535"),
        (("--base-path", "a b"), "'a b' is not a path"),
        (("--base-path", "../x"), "'../x' is not a path"),
        (("--host", "no such host"), "--host: 'no such host' is not an address of this machine"),
        (("--host", "192.0.2.7"), "--host: '192.0.2.7' is not an address of this machine"),  # RFC 5737
    ],
)
def test_bad_addresses_of_the_web_interface(cli, database, options, expected):
    ran = cli("dashboard", *options)
    assert_one_line(ran, 2, expected)
    assert "give another" not in ran.err  # the port is not at fault


def test_an_error_in_a_whole_process_is_one_line_too():
    environ = {name: value for name, value in os.environ.items() if name != "BREAKEVEN_DEBUG"}
    ran = subprocess.run(
        [sys.executable, "-m", "dashboard", "size", "nothing-like-it"],
        capture_output=True,
        text=True,
        check=False,
        env=environ,
    )
    assert ran.returncode == 2
    assert ran.stdout == ""
    assert ran.stderr.count("\n") == 1


def test_sized_rows_never_replace_the_file_they_come_from(cli, rows_file, tmp_path):
    source, link = tmp_path / "in.csv", tmp_path / "link.csv"
    before = source.read_bytes()
    link.symlink_to(source)
    for target in (source, link):
        assert_one_line(cli("size", "--rows", source, "-o", target), 2, "-o: ", "the file that --rows reads")
    assert source.read_bytes() == before
