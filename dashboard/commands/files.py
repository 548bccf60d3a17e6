"""Files that options name: read as text, written whole or not at all."""

import errno
import os
from pathlib import Path

from dashboard.commands.base import NothingDone, UsageError

# The place is good and takes no more: nothing the user typed is wrong.
_FULL = {errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC), errno.EIO}


def read_text(name: str, option: str) -> str:
    """
    Return the text of a file that an option names.

    Raises:
        UsageError: if it cannot be read, or is no UTF-8 text.
    """
    try:
        return Path(name).read_text(encoding="utf-8-sig")
    except (OSError, ValueError) as error:  # UnicodeDecodeError, or a name that holds a null byte
        why = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        raise UsageError(f"{option}: {name}: {why}") from error


def write_file(name: str, content: bytes, option: str) -> None:
    """
    Write a file beside its place first, so that a failure leaves the old one as it was.

    A link is followed; a pipe or device is written to, never replaced.

    Raises:
        UsageError: if nothing can be written there.
        NothingDone: if the disk is full.
    """
    try:
        target = Path(name).resolve()
        if target.exists() and not target.is_file():
            with target.open("wb") as file:
                file.write(content)
            return
        _replace(target, content)
    except (OSError, ValueError) as error:
        why = (error.strerror if isinstance(error, OSError) else "not a file name") or str(error)
        if isinstance(error, OSError) and error.errno in _FULL:
            raise NothingDone(f"{option}: {name}: {why}; free some space, nothing was written") from error
        raise UsageError(f"{option}: {name}: {why}; name a file that can be written") from error


def _replace(target: Path, content: bytes) -> None:
    partial = target.with_name(f".{target.name}.{os.getpid()}.partial")
    try:
        partial.write_bytes(content)
        if target.exists():
            partial.chmod(target.stat().st_mode)
        partial.replace(target)
    except OSError:
        partial.unlink(missing_ok=True)
        raise
