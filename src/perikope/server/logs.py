"""The log of a server: one line of JSON per event, on standard error."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from typing import Any, TextIO

import orjson


class Log:
    """Writes events. Texts of users are left out unless they are asked for."""

    def __init__(self, *, access: bool = True, queries: bool = False, slow: float = 1.0, stream: TextIO | None = None) -> None:
        """`access` writes a line per request, `queries` the texts of users, `slow` is in seconds."""
        self.access, self.queries, self.slow = access, queries, slow
        self._stream = stream or sys.stderr

    def event(self, event: str, **facts: Any) -> None:
        """Write one event."""
        line = orjson.dumps({"time": round(time.time(), 3), "event": event, **facts}, default=str).decode()
        try:
            self._stream.write(line + "\n")
            self._stream.flush()
        except (OSError, ValueError):
            return  # nobody reads the log any more

    def request(self, seconds: float, facts: Mapping[str, Any], asked: Mapping[str, Any]) -> None:
        """Write a request with its answer. `asked` holds texts of the user."""
        is_slow = seconds >= self.slow
        if not (self.access or is_slow):
            return
        texts = dict(asked) if self.queries else {}
        self.event("slow request" if is_slow else "request", ms=round(seconds * 1000, 2), **facts, **texts)
