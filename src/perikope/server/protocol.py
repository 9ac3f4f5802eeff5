"""Limits on connections that uvicorn does not have.

    number      at most so many connections are open
    head        its size, and the time that a client takes to send it
    answer      the time that a client takes to read it

Without them, a client could hold connections and memory by sending or reading one byte at a time.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from typing import Any, ClassVar

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from perikope.server.gate import TARGET_HOST
from perikope.server.problems import Refusal

SLOWEST = 4096
"""The fewest bytes of an answer that a client must read per second."""
BESIDES_QUERY = 1 << 15
"""The most bytes of a head without its query string."""


def _host_of(address: bytes) -> str:
    """The host of a whole address, as a `Host` header has it; empty if the address is not of HTTP, or names a user."""
    parts = httptools.parse_url(address)
    if (parts.schema or b"").lower() not in (b"http", b"https") or parts.userinfo:
        return ""
    name = parts.host.decode("latin-1")
    return f"[{name}]" if ":" in name else name


class ConnectionLimits:
    """Limits of connections, and what they use at the moment."""

    def __init__(self, most: int, seconds: float, most_query: int) -> None:
        """At most `most` connections. A head may take `seconds`, and its query string have `most_query` bytes."""
        self.most, self.seconds, self.head, self.open = most, seconds, most_query + BESIDES_QUERY, 0
        self.sending: set[asyncio.Transport] = set()
        """Connections with a part of an answer that was not sent yet, since the client does not read it."""

    @property
    def unsent(self) -> int:
        """Bytes of answers that wait for clients to read them."""
        return sum(transport.get_write_buffer_size() for transport in self.sending)


class _Parser(httptools.HttpRequestParser):
    """A parser that reads a request with `Upgrade` to its end.

    httptools stops after the head of such a request: it takes the body for the next request.
    """

    def __init__(self, protocol: LimitedProtocol) -> None:
        """Tell this protocol what is read."""
        super().__init__(protocol)
        self._protocol = protocol

    def feed_data(self, data: bytes) -> None:  # type: ignore[override]
        """Read what a client sends."""
        try:
            super().feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            self._protocol.read_on(data[upgrade.args[0] :])


class LimitedProtocol(HttpToolsProtocol):
    """The protocol of uvicorn with limits. `limited_protocol` gives it its limits."""

    limits: ClassVar[ConnectionLimits]
    _head_timer: asyncio.TimerHandle | None = None
    _send_timer: asyncio.TimerHandle | None = None
    _in_head, _head_bytes, _answers = True, 0, 0
    _head_again = False
    """The head that is read now repeats that of a request whose body follows."""

    def __init__(self, *args: Any, **keywords: Any) -> None:
        """Read requests with a parser that ignores `Upgrade`."""
        super().__init__(*args, **keywords)
        self.parser = _Parser(self)

    def connection_made(self, transport: Any) -> None:
        """Count the connection, and wait for the head of a request."""
        self.limits.open += 1
        super().connection_made(transport)
        if self.limits.open > self.limits.most:
            self._refuse(Refusal(503, "too many connections are open; try again later", {"Retry-After": "1"}))
        else:
            self._begin_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self.limits.open -= 1
        self._end_head()
        if self._send_timer is not None:
            self._send_timer.cancel()
        self.limits.sending.discard(self.transport)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Read what the client sends, within the limits of a head."""
        if self.transport.is_closing():
            return
        if self._head_timer is None and (self.cycle is None or self.cycle.response_complete):
            self._begin_head()
        super().data_received(data)
        if self._in_head:
            self._head_bytes += len(data)
            if self._head_bytes > self.limits.head and not self.transport.is_closing():
                self._refuse(Refusal(431, f"the head of the request has more than {self.limits.head} bytes; use POST"))

    def on_message_begin(self) -> None:
        """A request begins."""
        self._in_head, self._head_bytes = True, 0
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """The head of a request is complete. uvicorn leaves out the host of an address such as `http://name/path`."""
        self._in_head = False
        self._end_head()
        if self._head_again:
            return
        if not self.url.startswith((b"/", b"*")):
            self.scope["state"][TARGET_HOST] = _host_of(self.url)
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """A request is complete, unless its body is read by the next parser."""
        if not (self.parser.should_upgrade() and self._body_headers()):
            super().on_message_complete()

    def read_on(self, rest: bytes) -> None:
        """Read the rest of the data after the head of a request with `Upgrade`: its body, if it has one, and more."""
        headers = self._body_headers()
        if headers:
            self.parser = _Parser(self)
            self._head_again = True
            self.parser.feed_data(b"POST / HTTP/1.1\r\n" + headers + b"\r\n")
            self._head_again = False
        if rest:
            self.parser.feed_data(rest)

    def _body_headers(self) -> bytes:
        """The lines of the head that say how long the body is; empty if there is no body."""
        return b"".join(
            b"%b: %b\r\n" % (name, value)
            for name, value in self.headers
            if name == b"transfer-encoding" or (name == b"content-length" and value.strip(b"0"))
        )

    def on_response_complete(self) -> None:
        """An answer is complete; the client must read it."""
        self._answers += 1
        super().on_response_complete()
        self._watch_answer()

    def send_400_response(self, msg: str) -> None:
        """Answer what is not HTTP."""
        self._refuse(Refusal(400, "the request is not HTTP/1.1, or its address has 64 KB or more; send a long query with POST"))

    def _unsupported_upgrade_warning(self) -> None:
        """Say nothing: the request is answered as if it had not asked for another protocol."""

    def _begin_head(self) -> None:
        self._head_timer = self.loop.call_later(self.limits.seconds, self._too_slow)

    def _end_head(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _too_slow(self) -> None:
        self._head_timer = None
        if not self.transport.is_closing():
            self._refuse(Refusal(408, "the head of the request came too slowly"))

    def _refuse(self, refusal: Refusal) -> None:
        """Answer at once, and end the connection."""
        if self.cycle is None or self.cycle.response_complete:
            self.transport.write(refusal.message)
        elif self._reads_body():
            self.cycle.disconnected = True
            self.cycle.message_event.set()
            self.transport.write(refusal.message)
        self.transport.close()
        self._watch_answer()

    def _reads_body(self) -> bool:
        """Whether the data that comes is the body of the only request that was not answered."""
        return self.cycle.more_body and not self.cycle.response_started and not self.pipeline

    def _watch_answer(self) -> None:
        """End the connection if its client does not read the answer."""
        unsent = self.transport.get_write_buffer_size()
        if unsent and self._send_timer is None:
            self.limits.sending.add(self.transport)
            self._send_timer = self.loop.call_later(self.limits.seconds, self._check_answer, unsent, self._answers)

    def _check_answer(self, unsent: int, answers: int) -> None:
        self._send_timer = None
        self.limits.sending.discard(self.transport)
        read = unsent - self.transport.get_write_buffer_size()
        # If there is a further answer, the client has read the one before it.
        if self.transport.get_write_buffer_size() and answers == self._answers and read < SLOWEST * self.limits.seconds:
            # The system forgets what it has not sent, too.
            self.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.transport.abort()
        else:
            self._watch_answer()


def limited_protocol(limits: ConnectionLimits) -> type[asyncio.Protocol]:
    """The protocol of uvicorn with these limits. uvicorn makes one object of the class per connection."""
    return type("LimitedProtocol", (LimitedProtocol,), {"limits": limits})
