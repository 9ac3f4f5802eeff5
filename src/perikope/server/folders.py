"""A folder of documents that is served: its index in the cache, and changes of its files."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Awaitable, Callable
from pathlib import Path

from perikope.build.indexing import BuildOptions, BuildReport, build
from perikope.core.errors import UsageError
from perikope.core.files import MANIFEST_FILE
from perikope.core.user_cache import user_caches

QUIET = 200
"""Milliseconds without a change after which the changes of files are read."""


def is_index(path: Path) -> bool:
    """Whether a folder is an index. An index has a manifest."""
    return (path / MANIFEST_FILE).is_file()


def cached_index(folder: Path) -> Path:
    """The folder of the index of a folder of documents, in the user's cache."""
    if not (caches := user_caches()):
        raise UsageError("there is no folder for the index, since this user has no home; set PERIKOPE_CACHE to a folder")
    digest = hashlib.sha256(os.fsencode(folder.resolve())).hexdigest()[:16]
    return caches[0] / "served" / f"{folder.resolve().name[:40]}-{digest}"


def build_index(folder: Path, index: Path) -> BuildReport:
    """Make the index of a folder, or make it equal to the folder. Raises `UsageError` if nothing in it can be read."""
    if not folder.is_dir():
        raise UsageError(f"{folder} is neither an index nor a folder of documents; give a folder that exists")
    try:
        index.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(
            f"the index of {folder} cannot be made in {index.parent}: {error.strerror}; set PERIKOPE_CACHE to a folder that can be "
            "written to, or make the index yourself: perikope index FOLDER --to INDEX"
        ) from None
    return build(str(index), [str(folder)], BuildOptions(sync=True))


async def watch(folder: Path, on_change: Callable[[], Awaitable[None]], stop: asyncio.Event) -> None:
    """Call `on_change` after files of a folder have changed, until `stop` is set."""
    from watchfiles import awatch

    async for _ in awatch(folder, debounce=QUIET, step=50, stop_event=stop, recursive=True, ignore_permission_denied=True):
        await on_change()
