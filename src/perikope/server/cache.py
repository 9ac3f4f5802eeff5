"""Answers that are sent again if the same request comes before the index changes."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

JSON_TYPE = "application/json"
_BESIDES = 1000
"""Bytes of an entry besides its texts, roughly."""

CacheKey = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer to a request."""

    status: int
    body: bytes
    type: str = JSON_TYPE
    headers: Mapping[str, str] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)
    """What a process said about the answer: the commit, the model, the times of the steps."""
    cached: bool = False


class AnswerCache:
    """Answers by request. The oldest ones are dropped."""

    def __init__(self, most: int) -> None:
        """Keep at most `most` bytes."""
        self._most, self.bytes = most, 0
        self._kept: OrderedDict[CacheKey, Answer] = OrderedDict()

    def get(self, key: CacheKey) -> Answer | None:
        """The answer to a request; None if it is not kept."""
        answer = self._kept.get(key)
        if answer is not None:
            self._kept.move_to_end(key)
        return answer

    def put(self, key: CacheKey, answer: Answer) -> None:
        """Keep an answer."""
        size = _size(key, answer)
        if size > self._most // 8 or key in self._kept:
            return
        self._kept[key] = answer
        self.bytes += size
        while self.bytes > self._most:
            self.bytes -= _size(*self._kept.popitem(last=False))


def _size(key: CacheKey, answer: Answer) -> int:
    """Bytes of an entry. A key contains texts of a request, which may be longer than its answer."""
    return len(answer.body) + sum(len(part) for part in key if isinstance(part, (str, bytes))) + _BESIDES
