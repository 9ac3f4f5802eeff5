"""Searches that an asyncio program awaits: they run in threads, so that the event loop is never blocked."""

from __future__ import annotations

import contextvars
import os
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from perikope.core.cores import usable_cores

if TYPE_CHECKING:
    import asyncio

T = TypeVar("T")
R = TypeVar("R")


class SearchThreads:
    """A small pool of threads, one per usable core, which start when they are first needed.

    The pool is apart from the default pool of the event loop, which other code may keep busy. A forked process makes
    a pool of its own, since threads do not survive a fork. The threads end with the object.
    """

    def __init__(self) -> None:
        self._pool: tuple[int, ThreadPoolExecutor] | None = None

    async def run(self, work: Callable[[], R]) -> R:
        """Await the result of a function that runs in one of the threads.

        If the await is cancelled, a function that has not begun never runs; one that has begun runs to its end, and its
        result is dropped.
        """
        # Imported here, since most programs do not use it, and importing it takes as long as a short search.
        import asyncio

        context = contextvars.copy_context()
        return await asyncio.get_running_loop().run_in_executor(self._threads(), partial(context.run, work))

    async def map(self, work: Callable[[T], R], items: Iterable[T]) -> AsyncIterator[tuple[T, R]]:
        """Yield pairs of an item and `work(item)`, in the order of the items.

        At most about two items per thread are computed ahead. When the iteration ends early, the others are cancelled.
        """
        import asyncio

        waiting: deque[tuple[T, asyncio.Task[R]]] = deque()
        try:
            for item in items:
                waiting.append((item, asyncio.create_task(self.run(partial(work, item)))))
                if len(waiting) > 2 * usable_cores():
                    done, task = waiting.popleft()
                    yield done, await task
            while waiting:
                done, task = waiting.popleft()
                yield done, await task
        finally:
            for _, task in waiting:
                task.cancel()
            await asyncio.gather(*(task for _, task in waiting), return_exceptions=True)

    def close(self) -> None:
        """End the threads when their work is done. Work that has not begun is cancelled."""
        if self._pool is not None and self._pool[0] == os.getpid():
            self._pool[1].shutdown(wait=False, cancel_futures=True)
        self._pool = None

    def _threads(self) -> ThreadPoolExecutor:
        # Only the thread of the event loop comes here, so no lock is needed.
        if self._pool is None or self._pool[0] != os.getpid():
            self._pool = os.getpid(), ThreadPoolExecutor(usable_cores(), "perikope-search")
        return self._pool[1]
