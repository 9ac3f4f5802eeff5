"""A folder of documents that is served: its index in the cache, and changes of its files."""

from __future__ import annotations

import asyncio
import hashlib
import multiprocessing
import os
import signal
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path

from perikope.build.indexing import BuildOptions, BuildReport, build
from perikope.core.errors import PerikopeError, UsageError
from perikope.core.files import MANIFEST_FILE, identity_of
from perikope.core.user_cache import user_caches
from perikope.server.process_names import FOLDER_READER, name_process

POLLING = 0.05
"""Seconds between two looks at a process that reads a folder."""
FIRST_LOOK = 500
"""Milliseconds after which the files are read once, if nothing has changed since watching began."""
QUIET = 200
"""Milliseconds without a change after which the changes of files are read."""


def is_index(path: Path) -> bool:
    """Whether a folder is an index. An index has a manifest."""
    return (path / MANIFEST_FILE).is_file()


def cached_index(folder: Path) -> Path:
    """The folder of the index of a folder of documents, in the cache. Raises `UsageError` if `folder` is no folder."""
    if not folder.is_dir():
        raise UsageError(f"{folder} is neither an index nor a folder of documents; give a folder that exists")
    if not (caches := user_caches()):
        raise UsageError("there is no folder for the index, since this user has no home; set PERIKOPE_CACHE to a folder")
    digest = hashlib.sha256(os.fsencode(folder.resolve())).hexdigest()[:16]
    return caches[0] / "served" / f"{folder.resolve().name[:40]}-{digest}"


def build_index(folder: Path, index: Path, workers: int | None = None, wait: float = 0.0) -> BuildReport:
    """Make the index of a folder, or make it equal to the folder. Raises `PerikopeError` if nothing in it can be read.

    A broken file does not stop the others: what the index has of it stays. See `BuildOptions` for the other parameters.
    """
    try:
        index.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(
            f"the index of {folder} cannot be made in {index.parent}: {error.strerror}; set PERIKOPE_CACHE to a folder that can be "
            "written to, or make the index yourself: perikope index FOLDER --to INDEX"
        ) from None
    return build(str(index), [str(folder)], BuildOptions(sync=True, skip_broken=True, workers=workers, wait=wait))


def problems_of(report: BuildReport) -> list[tuple[str, str]]:
    """The paths of the files of a folder that could not be read completely, each with the reason."""
    return [(str(problem.path), f"line {problem.line}: {problem.reason}" if problem.line else problem.reason) for problem in report.skipped]


@dataclass(slots=True)
class BrokenFiles:
    """The files of a folder that could not be read, as far as the log has reported them."""

    _reported: dict[tuple[str, str], tuple[int, ...]] = field(default_factory=dict)
    """By path and reason, the identity of the file at that time."""

    def new(self, problems: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
        """The problems that were not reported, or whose file has changed since. Other files are forgotten."""
        now = {(path, reason): identity_of(Path(path)) for path, reason in problems}
        before, self._reported = self._reported, now
        return [problem for problem, identity in now.items() if before.get(problem) != identity]


async def build_elsewhere(folder: Path, index: Path) -> BuildReport:
    """Do the same as `build_index` in a process of its own, so that this one can answer requests meanwhile."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_build_and_send, args=(theirs, folder, index))
    try:
        process.start()
        theirs.close()
        while process.is_alive() and not ours.poll():
            await asyncio.sleep(POLLING)
        outcome: BuildReport | PerikopeError = ours.recv() if ours.poll() else PerikopeError(
            f"the process that read {folder} ended with status {process.exitcode}; the machine may lack memory"
        )  # fmt: skip
    except EOFError:
        outcome = PerikopeError(f"the process that read {folder} ended before it was done; the machine may lack memory")
    finally:
        process.kill()
        await asyncio.to_thread(process.join)
        ours.close()
    if isinstance(outcome, PerikopeError):
        raise outcome
    return outcome


def _build_and_send(connection: Connection, folder: Path, index: Path) -> None:
    """The main function of the process that reads a folder."""
    name_process(FOLDER_READER)
    for name in ("SIGINT", "SIGHUP"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_IGN)  # the server ends this process
    try:
        report: BuildReport | PerikopeError = build_index(folder, index)
    except PerikopeError as error:
        report = error.with_traceback(None)
    connection.send(report)
    connection.close()


async def watch(folder: Path, on_change: Callable[[], Awaitable[None]], stop: asyncio.Event) -> None:
    """Call `on_change` once when the folder is watched, and whenever files of it have changed, until `stop` is set.

    The first call comes after watching has begun, so that no change before or after it is missed.
    """
    from watchfiles import awatch

    is_first = True
    async for changes in awatch(
        folder, debounce=QUIET, step=50, stop_event=stop, recursive=True, ignore_permission_denied=True,
        rust_timeout=FIRST_LOOK, yield_on_timeout=True,
    ):  # fmt: skip
        if changes or is_first:
            is_first = False
            await on_change()
