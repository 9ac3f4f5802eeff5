"""Which shards of a cluster do not answer, as far as a coordinator knows."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable

DEADLINE = 30.0
"""Seconds until a shard that has not answered is missing."""
PROBED_EVERY = 1.0
"""Seconds between two looks whether a missing shard answers again."""


class MissingShards:
    """The shards that gave no answer. Whoever asks for partial answers leaves them out until they answer again."""

    def __init__(self, answers: Callable[[int], bool]) -> None:
        """`answers` says, without waiting, whether a shard has answered since it was last asked about it."""
        self._answers = answers
        self._next_look: dict[int, float] = {}
        self._lock = threading.Lock()

    def note(self, shards: Iterable[int]) -> None:
        """Note that shards gave no answer."""
        with self._lock:
            for shard in shards:
                self._next_look.setdefault(shard, time.monotonic())

    def known(self) -> frozenset[int]:
        """The numbers of the shards that do not answer."""
        if not self._next_look:
            return frozenset()
        now = time.monotonic()
        with self._lock:
            for shard, due in [*self._next_look.items()]:
                if now < due:
                    continue
                self._next_look[shard] = now + PROBED_EVERY
                if self._answers(shard):
                    del self._next_look[shard]
            return frozenset(self._next_look)
