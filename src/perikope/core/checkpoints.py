"""Checkpoints: places between the steps of a search where it can be timed or stopped.

The steps of a search, and loops over segments and batches inside them, call `checkpoint` with the name of the step that
begins. Nothing happens then, unless the caller runs the search inside `watched`. The function given there may raise an
error, which ends the search.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Watcher = Callable[[str], None]
"""Receives the name of the step that begins or continues."""

_watcher: ContextVar[Watcher | None] = ContextVar("watcher of a search", default=None)


@contextmanager
def watched(watcher: Watcher) -> Iterator[None]:
    """Inside the block, `checkpoint` calls `watcher`. Other threads are not affected."""
    token = _watcher.set(watcher)
    try:
        yield
    finally:
        _watcher.reset(token)


def checkpoint(step: str) -> None:
    """Tell the watcher, if there is one, that a step begins or continues."""
    if (watcher := _watcher.get()) is not None:
        watcher(step)
