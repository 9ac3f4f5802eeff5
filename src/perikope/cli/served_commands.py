"""Run commands inside a process of a server, for `perikope.cli.forwarding`."""

from __future__ import annotations

import io
import os
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from typing import TYPE_CHECKING, Any

from perikope.cli import execute
from perikope.cli.opening import opened_as
from perikope.core.command_socket import is_forwarded

if TYPE_CHECKING:
    from perikope.search.facade import Index

_SILENT = (DeprecationWarning, PendingDeprecationWarning, ImportWarning, ResourceWarning)
"""Warnings that Python does not show by default."""


class _Recorder(io.RawIOBase):
    """A stream that keeps what is written to it, in one list with other streams."""

    def __init__(self, number: int, written: list[tuple[int, bytes]], is_terminal: bool) -> None:
        self._number, self._written, self._is_terminal = number, written, is_terminal

    def writable(self) -> bool:
        return True

    def isatty(self) -> bool:
        return self._is_terminal

    def write(self, data: Any, /) -> int:
        self._written.append((self._number, bytes(data)))
        return len(data)


def run_search(index: Index, arguments: Sequence[str], terminals: Sequence[bool], columns: int) -> dict[str, Any]:
    """Run `perikope search` on an open index, whose path is the first of the arguments.

    `terminals` says whether the standard output and error of the user are terminals, and `columns` how wide they are.
    Returns the exit code, the number of the commit and what was written: pairs of a stream (1 or 2) and a text.
    """
    if not is_forwarded(arguments):
        return {"code": 2, "generation": 0, "written": []}
    written: list[tuple[int, bytes]] = []
    streams = [
        io.TextIOWrapper(_Recorder(number, written, terminal), "utf-8", "replace", write_through=True)  # type: ignore[type-var]
        for number, terminal in zip((1, 2), terminals, strict=True)
    ]
    with opened_as(arguments[0], index), _columns(columns), _shown_warnings(), redirect_stdout(streams[0]), redirect_stderr(streams[1]):
        code = execute(["search", *arguments])
    texts = [(number, data.decode("utf-8")) for number, data in written]
    return {"code": code, "generation": index.snapshot.manifest.generation, "written": texts}


@contextmanager
def _columns(columns: int) -> Iterator[None]:
    """Inside the block, programs take a terminal to be this wide."""
    before = os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = str(columns)
    try:
        yield
    finally:
        if before is None:
            del os.environ["COLUMNS"]
        else:
            os.environ["COLUMNS"] = before


@contextmanager
def _shown_warnings() -> Iterator[None]:
    """Inside the block, warnings are shown as in a new program."""
    with warnings.catch_warnings():
        warnings.resetwarnings()
        warnings.simplefilter("default")
        for kind in _SILENT:
            warnings.simplefilter("ignore", kind)
        yield
