"""The database as a whole: from nothing to ready, upgrades that keep every row, one line for each mishap."""

import json
import shutil
import socket
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, text

from pricing.errors import StoreError
from pricing.running.lock import run_lock
from pricing.settings import default_database_url
from pricing.storage import database, engines
from pricing.storage.engines import find_target, reading_engine, transaction, writing_engine
from pricing.store import Store
from tests.conftest import NOW, ROOT
from tests.pricing.samples import ACME, offer, run

# Tables and rows of a database that has seen nothing but the bundled prices.
READY = {"series": 7367, "price": 20421, "provider_run": 0, "review": 0}


def count(url: str, table: str) -> int:
    with transaction(reading_engine(find_target(url))) as connection:
        return int(connection.execute(text(f"SELECT count(*) FROM {table}")).scalar_one())


def message(caught: pytest.ExceptionInfo[StoreError]) -> str:
    """The error's text, which is one line and names the remedy's variable or command."""
    said = str(caught.value)
    assert "\n" not in said
    return said


def alembic(url: str, action: Callable[..., Any], *arguments: str) -> None:
    """Run an Alembic command on a database through our own env.py."""
    with transaction(engines.migrating_engine(find_target(url))) as connection:
        config = Config()
        config.set_main_option("script_location", str(ROOT / "migrations"))
        config.attributes["connection"] = connection
        action(config, *arguments)


# --- from nothing to ready


def test_a_new_database_is_created_upgraded_and_filled(new_url: str) -> None:
    database.ensure(new_url)
    report = database.check(new_url)
    assert report.is_ok
    assert report.revision == report.head == "0005"
    assert {name: report.counts[name] for name in READY} == READY
    assert report.snapshot_is_current


def test_being_ready_again_changes_nothing_and_needs_no_alembic(database_url: str) -> None:
    with Store.open(database_url) as store:
        before = store.revision()
    code = (
        "import sys; from pricing.store import Store; from datetime import UTC, datetime\n"
        f"store = Store.open({database_url!r}); store.rates(datetime(2026, 11, 30, tzinfo=UTC))\n"
        "heavy = {'alembic', 'sqlmodel', 'pandas', 'httpx', 'streamlit'} & set(sys.modules)\n"
        "print(sorted(heavy), store.revision())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)
    assert done.stdout.split() == ["[]", str(before)]
    assert count(database_url, "price") == 20421


def test_the_schema_is_what_the_tables_say(database_url: str) -> None:
    alembic(database_url, command.check)


def test_the_head_is_alembics_head() -> None:
    from alembic.script import ScriptDirectory

    script = ScriptDirectory(str(ROOT / "migrations"))
    assert script.get_heads() == [database.head_revision()]
    assert sorted(one.revision for one in script.walk_revisions()) == list(database.known_revisions())


def test_down_and_up_again(database_url: str) -> None:
    alembic(database_url, command.downgrade, "base")
    database.ensure(database_url)
    assert database.check(database_url).counts["price"] == 20421


def test_two_first_runs_at_once_both_succeed(new_url: str) -> None:
    code = f"from pricing.storage.database import ensure; ensure({new_url!r})"
    runs = [
        subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stderr=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    errors = [one.communicate(timeout=60)[1] for one in runs]
    assert errors == ["", ""]
    assert count(new_url, "price") == 20421


def test_another_edition_of_the_bundled_prices_takes_the_place_of_the_old(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pricing.storage import snapshot

    with Store.open(database_url) as store:
        store.record(run(offer(provider="runpod"), offer(provider="runpod", region="b"), provider="runpod"))
    offers = snapshot.snapshot_offers()
    monkeypatch.setattr(snapshot, "snapshot_offers", lambda: offers[:-4])
    monkeypatch.setattr(database, "snapshot_digest", lambda: "another")
    with Store.open(database_url) as store:
        assert database.check(database_url).counts["price"] == 20417 + 2
        assert len(store.rates(NOW, provider="runpod")) == 2
        assert len(store.rates(NOW, provider="vultr")) > 10


# --- upgrades


@pytest.fixture
def next_revision(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A program of the future: its next revision recreates both tables that others refer to."""
    folder = tmp_path / "migrations"
    shutil.copytree(ROOT / "migrations", folder, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "versions" / "0006_next.py").write_text(
        "import sqlalchemy as sa\nfrom alembic import op\n"
        "revision, down_revision, branch_labels, depends_on = '0006', '0005', None, None\n"
        "def upgrade():\n"
        "    recreate = 'always' if op.get_bind().dialect.name == 'sqlite' else 'auto'\n"
        "    for table in ('series', 'provider_run'):\n"
        "        with op.batch_alter_table(table, recreate=recreate) as batch:\n"
        "            batch.add_column(sa.Column('remark', sa.String()))\n"
        "def downgrade():\n    pass\n",
        encoding="utf-8",
    )
    files = database.files
    monkeypatch.setattr(database, "files", lambda name: folder if name == "migrations" else files(name))
    database.known_revisions.cache_clear()
    yield
    database.known_revisions.cache_clear()


@pytest.mark.usefixtures("next_revision")
def test_an_upgrade_keeps_every_row_and_leaves_a_copy(database_url: str) -> None:
    with closing(Store(find_target(database_url))) as store:
        store.record(run(offer(), offer(region="b")))
    report = database.upgrade(database_url)
    assert (report.from_revision, report.to_revision, report.changed) == ("0005", "0006", True)
    state = database.check(database_url)
    assert state.is_ok
    assert state.counts["price"] == 20423
    with Store.open(database_url) as store:
        assert len(store.history(provider=ACME)) == 2
    # With foreign keys on, recreating provider_run would have emptied these.
    assert count(database_url, "price WHERE run_id IS NOT NULL") == 2
    if report.backup is None:
        assert report.note == "no backup was made: on PostgreSQL, pg_dump is the way"
    else:
        assert report.backup.name == "breakeven.db.before-0006"
        with closing(sqlite3.connect(report.backup)) as copy:
            assert copy.execute("SELECT version_num FROM alembic_version").fetchone() == ("0005",)
            assert copy.execute("SELECT count(*) FROM price").fetchone() == (20423,)


def test_an_upgrade_without_work_makes_no_copy(file: Path) -> None:
    report = database.upgrade(f"sqlite:///{file}")
    assert (report.changed, report.backup) == (False, None)
    assert [path.name for path in file.parent.iterdir()] == ["breakeven.db"]


def test_an_upgrade_that_breaks_leaves_the_old_state(
    file: Path, next_revision: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    del next_revision

    def refuse(*_: object) -> None:
        raise StoreError("the upgrade would leave rows without what they refer to")

    monkeypatch.setattr(database, "_check_foreign_keys", refuse)
    with pytest.raises(StoreError, match="would leave rows"):
        database.upgrade(f"sqlite:///{file}")
    with closing(sqlite3.connect(file)) as connection:
        assert connection.execute("SELECT version_num FROM alembic_version").fetchone() == ("0005",)
        assert "remark" not in str(connection.execute("SELECT sql FROM sqlite_master").fetchall())


def test_broken_references_are_found(file: Path) -> None:
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("DELETE FROM source WHERE url = 'sizing page of 2026-11-04'")
        connection.commit()
    report = database.check(f"sqlite:///{file}")
    assert (report.foreign_key_errors, report.is_ok) == (4, False)
    target = find_target(f"sqlite:///{file}")
    with (
        pytest.raises(StoreError, match="it was undone"),
        transaction(engines.migrating_engine(target)) as connection,
    ):
        database._check_foreign_keys(target, connection)


def test_a_database_of_a_newer_version_is_refused(database_url: str) -> None:
    with transaction(writing_engine(find_target(database_url))) as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '0099'"))
    for attempt in (database.ensure, database.upgrade, database.check, Store.open):
        with pytest.raises(StoreError) as caught:
            attempt(database_url)
        assert "is at revision 0099, newer than this breakeven knows (0005); upgrade breakeven" in message(
            caught
        )


# --- copies and questions


def test_a_copy_is_whole_also_while_others_write(file: Path, tmp_path: Path) -> None:
    url = f"sqlite:///{file}"
    with Store.open(url) as store:
        store.record(run(offer()))
        database.backup(url, tmp_path / "copy.db")
        store.record(run(offer(region="b")))
    assert database.check(f"sqlite:///{tmp_path / 'copy.db'}").counts["price"] == 20422


def test_a_copy_never_overwrites(file: Path, tmp_path: Path) -> None:
    there = tmp_path / "copy.db"
    there.write_text("precious")
    with pytest.raises(StoreError, match="exists already; give another name, nothing was overwritten"):
        database.backup(f"sqlite:///{file}", there)
    assert there.read_text() == "precious"
    with pytest.raises(StoreError, match="its folder does not exist; create it first"):
        database.backup(f"sqlite:///{file}", tmp_path / "nowhere" / "copy.db")
    with pytest.raises(StoreError, match="so there is nothing to copy"):
        database.backup(f"sqlite:///{tmp_path / 'none.db'}", tmp_path / "copy2.db")


def test_a_check_is_a_document(file: Path) -> None:
    document = json.loads(json.dumps(database.check(f"sqlite:///{file}").to_document()))
    assert document["schema"] == "breakeven.db/1"
    assert (document["database"], document["integrity"], document["is_ok"]) == (str(file), "ok", True)
    assert document["counts"]["price"] == 20421


def test_the_location_never_shows_a_password() -> None:
    assert database.location("sqlite:////data/breakeven.db") == "/data/breakeven.db"
    assert database.location("postgresql://me:pa55word@db.example/prices") == (
        "postgresql+psycopg://me:***@db.example/prices"
    )


# --- mishaps


def test_a_file_that_is_not_a_database(tmp_path: Path) -> None:
    file = tmp_path / "breakeven.db"
    file.write_text("These are my notes, not a database. " * 50)
    for attempt in (database.ensure, database.upgrade, database.check, Store.open):
        with pytest.raises(StoreError) as caught:
            attempt(f"sqlite:///{file}")
        assert "not a database, or a damaged one; move it away or set BREAKEVEN_DATABASE_URL" in message(
            caught
        )
    assert file.read_text().startswith("These are my notes")


def test_a_database_of_another_program_is_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "places.sqlite"
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("CREATE TABLE bookmarks (id INTEGER)")
    before = file.read_bytes()
    for attempt in (database.ensure, database.upgrade, database.check):
        with pytest.raises(StoreError) as caught:
            attempt(f"sqlite:///{file}")
        assert "belongs to another program" in message(caught)
    assert file.read_bytes() == before


def test_a_read_only_file_can_be_read_and_not_written(file: Path, chmod: Callable[[Path, int], None]) -> None:
    chmod(file, 0o444)
    with Store.open(f"sqlite:///{file}") as store:
        assert store.is_read_only
        assert len(store.rates(NOW)) == 4679
        with pytest.raises(StoreError) as caught:
            store.record(run(offer()))
    assert "is read-only; make it writable or set BREAKEVEN_DATABASE_URL" in message(caught)


def test_a_read_only_folder_can_be_read(file: Path, chmod: Callable[[Path, int], None]) -> None:
    chmod(file.parent, 0o555)
    with Store.open(f"sqlite:///{file}") as store:
        assert store.is_read_only
        assert len(store.rates(NOW)) == 4679
    assert [path.name for path in file.parent.iterdir()] == ["breakeven.db"]


def test_a_read_only_file_that_needs_an_upgrade_says_so(
    file: Path, next_revision: None, chmod: Callable[[Path, int], None]
) -> None:
    del next_revision
    chmod(file, 0o444)
    with pytest.raises(StoreError) as caught:
        Store.open(f"sqlite:///{file}")
    assert (
        "is read-only and not at the newest revision; make it writable and run `breakeven db upgrade`"
        in message(caught)
    )


def test_a_folder_closed_to_writing_gets_no_database(
    tmp_path: Path, chmod: Callable[[Path, int], None]
) -> None:
    folder = tmp_path / "closed"
    folder.mkdir()
    chmod(folder, 0o555)
    with pytest.raises(StoreError) as caught:
        database.ensure(f"sqlite:///{folder / 'breakeven.db'}")
    assert "is read-only; make the file and its folder writable" in message(caught)
    assert list(folder.iterdir()) == []


def test_a_path_that_cannot_be(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError) as caught:
        database.ensure(f"sqlite:///{tmp_path / 'file' / 'breakeven.db'}")
    assert "cannot be opened or created; check its folder or set BREAKEVEN_DATABASE_URL" in message(caught)


def test_a_folder_in_place_of_the_file(tmp_path: Path) -> None:
    with pytest.raises(StoreError) as caught:
        database.ensure(f"sqlite:///{tmp_path}")
    assert "cannot be opened or created" in message(caught)


def test_a_database_locked_for_too_long(file: Path) -> None:
    with closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with Store.open(f"sqlite:///{file}", timeout_s=0.1) as store:
            assert len(store.rates(NOW, provider="runpod")) > 20  # readers are not held up
            with pytest.raises(StoreError) as caught:
                store.record(run(offer()))
    assert "locked by another program for more than 0.1 s; wait or end that program" in message(caught)


@pytest.mark.parametrize("url", ["mysql://host/name", "oracle+x://host", "breakeven.db", "", "://"])
def test_an_unknown_kind_of_database(url: str) -> None:
    with pytest.raises(StoreError) as caught:
        Store.open(url)
    assert "not a kind that is known; give sqlite:////folder/file.db or postgresql+psycopg://" in message(
        caught
    )


def test_a_server_that_does_not_answer() -> None:
    with pytest.raises(StoreError) as caught:
        Store.open("postgresql://me:pa55word@127.0.0.1:1/prices", timeout_s=1)
    said = message(caught)
    assert "cannot be reached" in said
    assert "start the server or correct BREAKEVEN_DATABASE_URL" in said
    assert "pa55word" not in said


def test_a_server_whose_name_is_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> Any:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", fail)
    with pytest.raises(StoreError) as caught:
        Store.open("postgresql://me:pa55word@database.invalid/prices", timeout_s=1)
    said = message(caught)
    assert "cannot be reached" in said
    assert "'database.invalid'" in said
    assert "start the server or correct BREAKEVEN_DATABASE_URL" in said


@pytest.mark.postgresql
def test_a_database_that_the_server_does_not_have(postgresql_server: Any) -> None:
    url = postgresql_server.ready.replace("/test_", "/missing_")
    with pytest.raises(StoreError) as caught:
        Store.open(url)
    assert "does not exist" in message(caught)


def test_a_missing_driver_names_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "find_spec", lambda name: None)
    with pytest.raises(StoreError, match=r"pip install 'breakeven\[postgresql\]'"):
        find_target("postgresql://host/name")


def test_a_server_is_copied_by_its_own_tool(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="pg_dump"):
        database.backup("postgresql://me@127.0.0.1/prices", tmp_path / "copy.db")


def test_permissions_count_for_root_too(file: Path, chmod: Callable[[Path, int], None]) -> None:
    assert engines.may_write(file)
    chmod(file, 0o444)
    assert not engines.may_write(file)
    assert file.stat().st_mode & 0o777 == 0o444


@pytest.mark.postgresql
def test_a_database_that_declares_no_encoding_holds_text_all_the_same(postgresql_server: Any) -> None:
    """So is every database of a server whose cluster was made where no language is set."""
    url = postgresql_server.create("template0 ENCODING 'SQL_ASCII' LC_COLLATE 'C' LC_CTYPE 'C'")
    database.ensure(url)
    with Store.open(url) as store, run_lock(store, NOW, command="x"):
        store.record(run(offer(region="São Paulo")))
        assert "São Paulo" in {rate.region for rate in store.rates(NOW)}
    postgresql_server.drop(url)


@pytest.mark.postgresql
def test_a_user_who_may_not_create_tables_is_told_so(postgresql_server: Any) -> None:
    url = postgresql_server.create()
    postgresql_server.admin("CREATE ROLE visitor LOGIN")
    with pytest.raises(StoreError) as caught:
        database.ensure(url.replace("postgres:@", "visitor@").replace("postgres@", "visitor@"))
    assert "its user may not do that" in message(caught)
    postgresql_server.drop(url)


def test_a_path_with_odd_characters(tmp_path: Path) -> None:
    file = tmp_path / "50 % & more #1" / "bréak even.db"
    file.parent.mkdir()
    database.ensure(f"sqlite:///{file}")
    assert file.is_file()
    assert database.check(f"sqlite:///{file}").is_ok


def test_writers_that_read_first_wait_for_each_other(file: Path) -> None:
    engine = writing_engine(find_target(f"sqlite:///{file}"), timeout_s=20)
    errors = []

    def count_up() -> None:
        query = text("SELECT value FROM store_value WHERE name = 'revision'")
        change = text("UPDATE store_value SET value = :value WHERE name = 'revision'")
        try:
            for _ in range(25):
                with engine.begin() as connection:
                    value = int(connection.execute(query).scalar_one())
                    connection.execute(change, {"value": str(value + 1)})
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=count_up) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert errors == []
    with Store.open(f"sqlite:///{file}") as store:
        assert store.revision() == 1 + 3 * 25


# --- from one revision to the next


def test_an_old_database_is_upgraded_with_its_rows(new_url: str) -> None:
    """0001 to 0005 on filled tables: reviews keep their word and gain a name; quotes, rates are new."""
    with transaction(engines.migrating_engine(find_target(_with_folder(new_url)))) as connection:
        _migrate_to(connection, "0001")
        for statement in (
            "INSERT INTO source (url) VALUES ('https://acme.example/prices')",
            "INSERT INTO series (offer_id, collector, provider, instance_type, gpu, gpu_raw, gpu_count, "
            "region_key, tier, gpu_only) "
            "VALUES ('abc', 'acme', 'acme', 'h100', 'H100 SXM', 'H100', 1, '', 'on_demand', false)",
            "INSERT INTO price (series_id, source_id, origin, verdict, usd_per_hour, currency, "
            "first_seen_at, last_seen_at, times_seen) VALUES (1, 1, 'refresh', 'rejected', 2690000, 'USD', "
            "'2026-11-01 03:00:00', '2026-11-01 03:00:00', 1)",
            "INSERT INTO review (price_id, decision, reason, decided_at) "
            "VALUES (1, 'reject', 'cents', '2026-11-02 08:00:00')",
        ):
            connection.execute(text(statement))
    report = database.upgrade(new_url)
    assert (report.from_revision, report.to_revision) == ("0001", "0005")
    assert database.check(new_url).is_ok
    assert count(new_url, "review WHERE reason = 'cents' AND decided_by IS NULL") == 1
    assert count(new_url, "price WHERE origin = 'refresh'") == 1
    assert count(new_url, "quote") == 0
    assert count(new_url, "exchange_rate") == 0
    assert count(new_url, "token_price") == 0


def _with_folder(url: str) -> str:
    path = find_target(url).path
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
    return url


def _migrate_to(connection: Connection, revision: str) -> None:
    config = Config()
    config.set_main_option("script_location", str(ROOT / "migrations"))
    config.attributes["connection"] = connection
    command.upgrade(config, revision)


def test_a_database_removed_while_in_use_says_what_to_do(tmp_path: Path) -> None:
    file = tmp_path / "prices.db"
    database.upgrade(f"sqlite:///{file}")
    with Store.open(f"sqlite:///{file}") as store:
        for one in tmp_path.glob("prices.db*"):
            one.unlink()
        with pytest.raises(StoreError, match=r"its tables are gone.*breakeven db upgrade"):
            store.revision()


def test_a_folder_that_is_not_there_is_named_and_not_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A slip in an address must not leave folders behind, and a second, empty market."""
    folder = tmp_path / "nope" / "x"
    for use in (database.ensure, database.upgrade):
        with pytest.raises(StoreError) as caught:
            use(f"sqlite:///{folder / 'y.db'}")
        assert str(caught.value) == (
            f"database {folder / 'y.db'}: its folder does not exist; create {folder} first"
        )
    assert not (tmp_path / "nope").exists()
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    database.ensure(default_database_url())
    assert (tmp_path / "data" / "breakeven" / "breakeven.db").exists()
