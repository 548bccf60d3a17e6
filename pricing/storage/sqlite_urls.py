"""Which file a SQLite URL means, and whether it only reads; what would be taken wrongly is refused."""

from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qsl, unquote

READ_ONLY = "mode=ro&uri=true"
_MEMORY = frozenset({"", ":memory:"})
_URI_FLAG = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}


@dataclass(frozen=True, slots=True)
class SqlitePlace:
    """A SQLite file, or memory."""

    path: Path | None  # None: in memory
    is_opened_read_only: bool = False


def sqlite_place(url: str) -> SqlitePlace:
    """
    Read a URL such as `sqlite:////folder/file.db` or `sqlite:///file:/folder/file.db?mode=ro&uri=true`.

    Raises:
        ValueError: in words, if it has a host or an option that is not understood; SQLite would ignore it, or
            make a file of that name.

    Source:
        https://www.sqlite.org/uri.html; https://docs.sqlalchemy.org/en/20/dialects/sqlite.html
    """
    rest, _, query = url.partition("://")[2].partition("?")
    host, _, name = rest.partition("/")
    if host:
        shown = host.rpartition("@")[2]  # what stands before it may be a password
        raise ValueError(f"names a host, {shown!r}; give three slashes before the file: sqlite:///file.db")
    options = dict(parse_qsl(query, keep_blank_values=True))
    is_uri = name.startswith("file:")
    flag = options.pop("uri", "true" if is_uri else "false").lower()
    if _URI_FLAG.get(flag) is not is_uri:
        raise ValueError(
            f"uri={flag} goes with a file: address, as in sqlite:///file:/folder/file.db?{READ_ONLY}"
        )
    mode = options.pop("mode", "rwc") if is_uri else "rwc"
    if mode not in ("ro", "rwc") or options:
        named = ", ".join(sorted(options)) or f"mode={mode}"
        raise ValueError(f"{named} is not understood; give ?{READ_ONLY} after a file: address, or no option")
    if is_uri:
        name = _path_of_uri(name)
    if name in _MEMORY:
        if is_uri:
            raise ValueError("names no file; give sqlite:////folder/file.db")
        return SqlitePlace(None)
    return SqlitePlace(Path(name).expanduser(), mode == "ro")


def _path_of_uri(uri: str) -> str:
    """Return the path of `file:name`, `file:/folder/name` or `file:///folder/name`."""
    path = unquote(uri.removeprefix("file:"))
    if path.startswith("//"):
        host, slash, path = path.removeprefix("//").partition("/")
        if host not in ("", "localhost"):
            raise ValueError(f"names a host, {host!r}; give file:/folder/file.db")
        path = slash + path
    return path
