"""The folders in which this user's programs keep what can be made again."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path


def user_caches() -> list[Path]:
    """The folders for the cache of this program, the preferred one first; they need not exist.

    `PERIKOPE_CACHE` and `XDG_CACHE_HOME` are preferred to the folder `.cache` of the user, who may have no home.
    """
    base = os.environ.get("PERIKOPE_CACHE") or os.environ.get("XDG_CACHE_HOME")
    folders = [Path(base) / "perikope"] if base else []
    with contextlib.suppress(RuntimeError):  # no home folder
        folders.append(Path.home() / ".cache" / "perikope")
    return folders
