"""Assistants over HTTP: the Model Context Protocol at `/mcp`, as one request and one answer each.

The protocol package answers one request at a time, without sessions and streams. So the limits of hosts, bodies, time
and connections are those of all other requests, and every process of the pool can answer. What a client may read is
decided per index and per request, by its token.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import orjson
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings

from perikope.core.errors import NotFound, UsageError
from perikope.server.cache import JSON_TYPE, Answer
from perikope.server.frames import Message
from perikope.server.incoming import IncomingRequest, Scope
from perikope.server.pool import ReaderPool
from perikope.server.problems import Refusal
from perikope.server.served import ServedIndexes
from perikope.service.assistant import Assistant
from perikope.service.mcp_protocol import mcp_server

Readable = Callable[[str], list[str]]
"""The names of the indexes that a request may read, by its header `Authorization`."""


class AssistantEndpoint:
    """Answers requests of assistants with the processes of a pool."""

    def __init__(self, served: ServedIndexes, pool: ReaderPool, readable: Readable, timeout: float) -> None:
        self._served, self._pool, self._readable, self._timeout = served, pool, readable, timeout
        # The server has its own checks of hosts and origins.
        security = TransportSecuritySettings(enable_dns_rebinding_protection=False)
        self._manager = StreamableHTTPSessionManager(
            mcp_server(self._assistant_for), json_response=True, stateless=True, security_settings=security
        )  # fmt: skip

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Requests can be answered inside the block."""
        async with self._manager.run():
            yield

    async def answer(self, scope: Scope, request: IncomingRequest, body: bytes) -> Answer:
        """The answer to a request whose body was read."""
        events = [{"type": "http.request", "body": body, "more_body": False}]
        sent: list[dict[str, Any]] = []

        async def receive() -> dict[str, Any]:
            if events:
                return events.pop()
            await request.gone()
            return {"type": "http.disconnect"}

        async def send(event: Any) -> None:
            sent.append(event)

        await self._manager.handle_request(dict(scope), receive, send)  # type: ignore[arg-type]
        start = next(event for event in sent if event["type"] == "http.response.start")
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in start["headers"]}
        content = b"".join(event.get("body", b"") for event in sent if event["type"] == "http.response.body")
        kept = {name: value for name, value in headers.items() if name.startswith("mcp-") or name == "allow"}
        return Answer(int(start["status"]), content, headers.get("content-type", JSON_TYPE), kept)

    def _assistant_for(self, context: Any) -> Assistant:
        """The tools for the indexes that a request may read."""
        headers: Mapping[str, str] = context.request.headers if context.request is not None else {}
        return Assistant(self._readable(headers.get("authorization", "")), self._ask)

    async def _ask(self, index: str, operation: str, values: Mapping[str, Any]) -> Any:
        meta = {"operation": operation, "index": index, "generation": self._served.by_name[index].generation, "method": "POST", "query": ""}
        try:
            facts, content = await self._pool.ask(meta, orjson.dumps(dict(values)), self._timeout)
        except Refusal as refusal:
            raise UsageError(refusal.detail) from None
        self._served.by_name[index].note(facts)
        return _checked((facts, content))


def _checked(message: Message) -> Any:
    """The answer of an operation. Raises `UsageError` if the operation was refused."""
    facts, content = message
    values = orjson.loads(content)
    if int(facts["status"]) != 200:
        raise (NotFound if int(facts["status"]) == 404 else UsageError)(values["detail"])
    return values
