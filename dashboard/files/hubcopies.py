"""Copies of what the hub answered, in the user's cache: asked for again after a week, kept if that fails."""

import hashlib
import json
import os
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

# Configurations change rarely. Source: own choice.
FRESH_S = 7 * 24 * 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Copy:
    """An answer as it was kept."""

    body: bytes
    whole_bytes: int | None  # size of the whole file, where the body is a part of it
    is_absent: bool = False  # the hub has no such file
    is_fresh: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Copies:
    """
    A folder with one file for each answer.

    Args:
        folder: Made when something is kept.
        now_s: The time of the file system's stamps. [s]
    """

    folder: Path
    now_s: Callable[[], float] = time.time

    def get(self, address: str) -> Copy | None:
        """Return the answer that was kept for an address, None where there is none that is whole."""
        path = self._path(address)
        try:
            age_s = self.now_s() - path.stat().st_mtime
            head, _, body = path.read_bytes().partition(b"\n")
            about = json.loads(head)
        except (OSError, ValueError):
            return None
        if not isinstance(about, dict) or about.get("address") != address or about.get("bytes") != len(body):
            return None
        whole = about.get("whole_bytes")
        return Copy(
            body=body,
            whole_bytes=whole if isinstance(whole, int) else None,
            is_absent=bool(about.get("is_absent")),
            is_fresh=age_s < FRESH_S,
        )

    def keep(self, address: str, copy: Copy) -> None:
        """Keep an answer, whole or not at all; a folder that cannot be written is no reason to fail."""
        about = {
            "address": address,
            "bytes": len(copy.body),
            "whole_bytes": copy.whole_bytes,
            "is_absent": copy.is_absent,
        }
        with suppress(OSError):
            self.folder.mkdir(parents=True, exist_ok=True)
            handle, draft = tempfile.mkstemp(dir=self.folder, suffix=".part")
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(json.dumps(about).encode() + b"\n" + copy.body)
                Path(draft).replace(self._path(address))
            except OSError:
                Path(draft).unlink(missing_ok=True)
                raise

    def _path(self, address: str) -> Path:
        return self.folder / hashlib.sha256(address.encode()).hexdigest()[:32]


def default_folder() -> Path:
    """Return the folder in the user's cache."""
    from platformdirs import user_cache_path

    return user_cache_path("breakeven", appauthor=False) / "hf"
