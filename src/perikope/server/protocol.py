"""Limits that uvicorn does not have: on the number of connections, and on the time that a client takes to send a head.

Without them, a client could hold connections open by sending one byte at a time.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol


class ConnectionLimits:
    """Counts connections."""

    def __init__(self, most: int, seconds: float) -> None:
        """At most `most` connections, each with `seconds` to send the head of a request."""
        self.most, self.seconds, self.open = most, seconds, 0


def limited_protocol(limits: ConnectionLimits) -> type[asyncio.Protocol]:
    """The protocol of uvicorn with limits."""

    class LimitedProtocol(HttpToolsProtocol):
        _timer: asyncio.TimerHandle | None = None

        def connection_made(self, transport: Any) -> None:
            limits.open += 1
            super().connection_made(transport)
            if limits.open > limits.most:
                transport.write(b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
                transport.close()
            else:
                self._begin()

        def connection_lost(self, exc: Exception | None) -> None:
            limits.open -= 1
            self._end()
            super().connection_lost(exc)

        def data_received(self, data: bytes) -> None:
            if self._timer is None and (self.cycle is None or self.cycle.response_complete):
                self._begin()
            super().data_received(data)

        def on_headers_complete(self) -> None:
            self._end()
            super().on_headers_complete()

        def _begin(self) -> None:
            self._timer = self.loop.call_later(limits.seconds, self._too_slow)

        def _end(self) -> None:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None

        def _too_slow(self) -> None:
            self._timer = None
            if not self.transport.is_closing():
                self.transport.write(b"HTTP/1.1 408 Request Timeout\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
                self.transport.close()

    return LimitedProtocol
