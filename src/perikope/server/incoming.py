"""A request as it comes in: its head, and its body within limits."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from perikope.server.cache import JSON_TYPE
from perikope.server.gate import TARGET_HOST
from perikope.server.problems import Refusal
from perikope.server.routes import Route

Scope = Mapping[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]

SLOWEST_BODY = 1 << 16
"""Bytes of a body that earn a client one second more to send it."""
DISCARDING, MOST_DISCARDED = 0.25, 1 << 20
"""Seconds for which the body of a refused request is read, and the most bytes of it."""
_ONCE = (b"host", b"authorization", b"content-type", b"origin")
"""Headers that decide who may do what, and must not be ambiguous."""


class ClientGone(Exception):
    """The client has closed its connection."""


class BodyBudget:
    """The memory of all bodies that are received or wait at the moment."""

    def __init__(self, most: int) -> None:
        """Hold at most `most` bytes."""
        self.most, self.held = most, 0

    def take(self, count: int) -> None:
        """Hold further bytes. Raises `Refusal` if there are too many."""
        if self.held + count > self.most:
            raise Refusal(503, "too many large requests are waiting; try again later", {"Retry-After": "2", "connection": "close"})
        self.held += count


class IncomingRequest:
    """One request."""

    def __init__(self, scope: Scope, receive: Receive, budget: BodyBudget) -> None:
        self.method: str = scope["method"]
        self.path: str = scope["path"]
        self.scope, self._receive, self._budget = scope, receive, budget
        self.headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        self.route: Route | None = None
        self.token, self.origin, self.query, self.kept, self._held = "", "", "", b"", 0
        self._is_read = self.method in ("GET", "HEAD")

    def check_head(self, most_query: int) -> None:
        """Refuse a head that can be read in two ways, or has a query string that is too long or not UTF-8."""
        counts = Counter(name for name, _ in self.scope["headers"])
        if repeated := [name.decode() for name in _ONCE if counts[name] > 1]:
            raise Refusal(400, f"the header {repeated[0]} is given twice; send it once")
        if not counts[b"host"] and self.scope["http_version"] != "1.0":
            raise Refusal(400, "the request has no header Host; send the name of the server")
        text: bytes = self.scope["query_string"]
        if len(text) > most_query:
            raise Refusal(414, f"the query string has more than {most_query} bytes; use POST, or a shorter query")
        try:
            self.query = text.decode("utf-8")
        except UnicodeDecodeError:
            raise Refusal(400, "the query string is not UTF-8; percent-encode it") from None

    @property
    def hosts(self) -> list[str]:
        """The names of the server in the request: that of the header, and that of a whole address in its first line."""
        state: Mapping[str, Any] = self.scope.get("state", {})
        return [self.headers.get("host", ""), *([state[TARGET_HOST]] if TARGET_HOST in state else [])]

    async def body(self, most: int, seconds: float) -> bytes:
        """The body, read within limits of size and time. A GET request has none."""
        if self.method in ("GET", "HEAD"):
            return b""
        kind = self.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != JSON_TYPE:
            raise Refusal(415, "the body must be JSON; send the header Content-Type: application/json")
        if self.headers.get("content-encoding", "identity").strip().lower() != "identity":
            raise Refusal(415, "the body must not be compressed; send it without the header Content-Encoding")
        too_large = Refusal(413, f"the body has more than {most} bytes; send less at once", {"connection": "close"})
        length = self.headers.get("content-length", "")
        if length.isdigit() and int(length) > most:
            raise too_large
        pieces: list[bytes] = []
        began = asyncio.get_running_loop().time()
        try:
            async with asyncio.timeout(seconds) as limit:
                while True:
                    event = await self._receive()
                    if event["type"] != "http.request":
                        raise ClientGone
                    piece = event.get("body", b"")
                    self._budget.take(len(piece))
                    self._held += len(piece)
                    pieces.append(piece)
                    if self._held > most:
                        raise too_large
                    if not event.get("more_body"):
                        break
                    limit.reschedule(began + seconds + self._held / SLOWEST_BODY)
        except TimeoutError:
            raise Refusal(408, "the body came too slowly; send it faster, or less at once", {"connection": "close"}) from None
        self._is_read, self.kept = True, b"".join(pieces)
        return self.kept

    async def discard(self) -> None:
        """Read what comes of the body of a refused request for a moment, so that the client sees the answer.

        If a connection is closed while a client is still sending, the client may see an error instead.
        """
        if self._is_read:
            return
        read = 0
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(DISCARDING):
                while read < MOST_DISCARDED:
                    event = await self._receive()
                    read += len(event.get("body", b""))
                    if event["type"] != "http.request" or not event.get("more_body"):
                        break

    def release(self) -> None:
        """Give back the memory of the body, when the request is answered."""
        self._budget.held -= self._held
        self._held = 0

    async def gone(self) -> None:
        """Wait until the client has closed its connection."""
        while (await self._receive())["type"] != "http.disconnect":
            pass
