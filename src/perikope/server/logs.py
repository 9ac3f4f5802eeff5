"""The log of a server: one line of JSON per event, on standard error.

Only the process that speaks HTTP writes to it. Texts of users are left out unless they are asked for.
"""

from __future__ import annotations

import logging
import sys
import time
import traceback
from collections.abc import Mapping
from typing import Any, TextIO

import orjson

from perikope.server.clients import Clients

LIBRARIES = ("uvicorn", "asyncio")
"""Packages that write to Python's log."""


class Log:
    """Writes events."""

    def __init__(
        self,
        *,
        access: bool = True,
        queries: bool = False,
        slow: float = 1.0,
        clients: Clients | None = None,
        stream: TextIO | None = None,
    ) -> None:
        """`access` writes a line per request, `queries` the texts of users, `slow` is in seconds.

        `clients` says what is written about the clients of requests.
        """
        self.access, self.queries, self.slow, self.clients = access, queries, slow, clients or Clients()
        self._stream = stream or sys.stderr

    def event(self, event: str, **facts: Any) -> None:
        """Write one event."""
        line = orjson.dumps({"time": round(time.time(), 3), "event": event, **facts}, default=str).decode()
        try:
            self._stream.write(line + "\n")
            self._stream.flush()
        except (OSError, ValueError):
            return  # nobody reads the log any more

    def request(self, seconds: float, scope: Mapping[str, Any], facts: Mapping[str, Any], asked: Mapping[str, Any]) -> None:
        """Write a request with its answer. `scope` has its connection and its headers, `asked` texts of the user."""
        is_slow = seconds >= self.slow
        if not (self.access or is_slow):
            return
        texts = dict(asked) if self.queries else {}
        client = self.clients.described(scope)
        known = {"client": client} if client else {}
        self.event("slow request" if is_slow else "request", ms=round(seconds * 1000, 2), **known, **facts, **texts)

    def incident(self, incident: Mapping[str, Any]) -> None:
        """Write an error that the operator must know. `incident` is from `incident_of`."""
        self.event("error", **{name: value for name, value in incident.items() if name != "text" or self.queries})

    def take_over(self) -> None:
        """Write what libraries say to Python's log, too."""
        for name in LIBRARIES:
            logger = logging.getLogger(name)
            logger.handlers, logger.propagate = [_LibraryHandler(self)], False


class _LibraryHandler(logging.Handler):
    """Writes records of Python's log as events."""

    def __init__(self, log: Log) -> None:
        super().__init__(logging.WARNING)
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        # The arguments of a message may be texts of users; its template is not.
        facts: dict[str, Any] = {"library": record.name, "message": str(record.msg).strip()}
        if record.exc_info and record.exc_info[1] is not None:
            facts |= incident_of(record.exc_info[1], "")
        self._log.incident(facts)


def incident_of(error: BaseException, number: str, *, has_text: bool = True) -> dict[str, Any]:
    """What the log says about an error. `has_text` is whether its message may contain text of a user."""
    known = {"incident": number} if number else {}
    message = {"text" if has_text else "message": str(error)[:1000]}
    return {**known, "error": type(error).__name__, **message, "trace": "".join(traceback.format_tb(error.__traceback__))}
