"""One request from start to end, as an ASGI application."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from perikope.server.frames import Message
from perikope.server.gate import Gate
from perikope.server.logs import Log
from perikope.server.metrics import TYPE as METRICS_TYPE
from perikope.server.metrics import Metrics
from perikope.server.openapi import openapi_document
from perikope.server.pool import ReaderPool
from perikope.server.problems import TYPE as PROBLEM_TYPE
from perikope.server.problems import Refusal
from perikope.server.protocol import ConnectionLimits
from perikope.server.routes import Route, find_route
from perikope.server.served import ServedIndexes
from perikope.server.settings import ServerSettings
from perikope.server.writer import Writer
from perikope.service.operations import WRITE, load_operations

Scope = Mapping[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]

JSON_TYPE = "application/json"
SECURITY_HEADERS = {
    "x-content-type-options": "nosniff",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
"""Headers of every answer."""


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
    """Answers that are sent again if the same request comes before the index changes. The oldest ones are dropped."""

    def __init__(self, most: int) -> None:
        """Keep at most `most` bytes."""
        self._most, self.bytes = most, 0
        self._kept: OrderedDict[tuple[Any, ...], Answer] = OrderedDict()

    def get(self, key: tuple[Any, ...]) -> Answer | None:
        """The answer to a request; None if it is not kept."""
        answer = self._kept.get(key)
        if answer is not None:
            self._kept.move_to_end(key)
        return answer

    def put(self, key: tuple[Any, ...], answer: Answer) -> None:
        """Keep an answer."""
        size = len(answer.body) + 1000
        if size > self._most // 8 or key in self._kept:
            return
        self._kept[key] = answer
        self.bytes += size
        while self.bytes > self._most:
            _, dropped = self._kept.popitem(last=False)
            self.bytes -= len(dropped.body) + 1000


class App:
    """The application of a server."""

    def __init__(
        self,
        settings: ServerSettings,
        served: ServedIndexes,
        gate: Gate,
        pool: ReaderPool,
        writer: Writer,
        log: Log,
        limits: ConnectionLimits,
    ) -> None:
        self.settings, self.served, self.gate, self.pool, self.writer, self.log, self.limits = (
            settings, served, gate, pool, writer, log, limits,
        )  # fmt: skip
        self.operations = load_operations()
        self.metrics, self.cache = Metrics(), AnswerCache(settings.cache)
        self.is_stopping = False
        self._openapi: bytes | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            if scope["type"] == "websocket":
                await send({"type": "websocket.close", "code": 1000})
            return
        began = time.perf_counter()
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        request = _Request(scope, headers, receive)
        try:
            answer = await self._answer(request)
        except Refusal as refusal:
            answer = Answer(refusal.status, refusal.body, PROBLEM_TYPE, refusal.headers)
        except asyncio.CancelledError:
            raise
        except _ClientGone:
            self._observe(request, Answer(499, b""), time.perf_counter() - began)
            return
        with contextlib.suppress(OSError):
            await _send(send, answer, request)
        self._observe(request, answer, time.perf_counter() - began)

    async def _answer(self, request: _Request) -> Answer:
        self.gate.check_host(request.headers.get("host", ""))
        request.origin = self.gate.check_origin(request.headers)
        if request.method == "OPTIONS" and request.origin:
            return Answer(204, b"", headers={"access-control-allow-methods": "GET, POST", "access-control-allow-headers": "content-type"})
        route = request.route = find_route(request.method, request.path, self.operations, self.served.by_name)
        if route.path:
            return await self._own(route, request)
        token = self.gate.check_permission(request.headers.get("authorization", ""), route.permission, route.index)
        request.token = token
        limit = self.settings.max_body if route.permission == WRITE else self.settings.max_query
        if len(request.query) > self.settings.max_query:
            raise Refusal(414, f"the query string has more than {self.settings.max_query} bytes; use POST, or a shorter query")
        body = await request.body(limit, self.settings.client_timeout)
        if route.permission == WRITE:
            return await self._write(route, request, body)
        return await self._read(route, request, body)

    async def _read(self, route: Route, request: _Request, body: bytes) -> Answer:
        index = self.served.by_name[route.index]
        method = "GET" if request.method == "HEAD" else request.method
        key = (route.index, index.generation, route.operation, method, request.query, body)
        if self.settings.cache and (kept := self.cache.get(key)) is not None:
            self.metrics.cached.labels("yes").inc()
            return kept
        meta = {
            "operation": route.operation,
            "index": route.index,
            "generation": index.generation,
            "method": method,
            "query": request.query,
        }
        facts, content = await self._unless_gone(self.pool.ask(meta, body, self.settings.timeout), request)
        answer = _from_message((facts, content))
        self.metrics.cached.labels("no").inc()
        self.metrics.observe_answer(facts, str(facts.get("model", "")))
        if answer.status == 200 and self.settings.cache:
            self.cache.put(key, Answer(answer.status, answer.body, headers=answer.headers, cached=True))
            self.metrics.cache_bytes.set(self.cache.bytes)
        return answer

    async def _unless_gone(self, asked: Awaitable[Message], request: _Request) -> Message:
        """The answer of a process. If it has to wait and the client goes away, the request is withdrawn."""
        if not self.pool.waiting:
            return await asked
        answering, gone = asyncio.ensure_future(asked), asyncio.ensure_future(request.gone())
        try:
            await asyncio.wait((answering, gone), return_when=asyncio.FIRST_COMPLETED)
            if answering.done():
                return answering.result()
            raise _ClientGone
        finally:
            for task in (answering, gone):
                if not task.done():
                    task.cancel()
                    with contextlib.suppress(asyncio.CancelledError, Refusal):
                        await task

    async def _write(self, route: Route, request: _Request, body: bytes) -> Answer:
        index = self.served.by_name[route.index]
        if index.documents is not None:
            raise Refusal(409, "this index is kept equal to a folder of files; change the files instead")
        meta = {"operation": route.operation, "method": request.method, "query": request.query}
        answer = _from_message(await self.writer.ask(route.index, meta, body))
        index.look()
        return answer

    async def _own(self, route: Route, request: _Request) -> Answer:
        """An answer of the server itself."""
        authorization = request.headers.get("authorization", "")
        match route.path:
            case "/health":
                return Answer(200, b'{"status":"ok"}')
            case "/ready":
                return self._ready()
            case "/openapi.json":
                if self._openapi is None:
                    self._openapi = orjson.dumps(openapi_document(self.operations, list(self.served.by_name)))
                return Answer(200, self._openapi)
            case "/metrics":
                self.gate.check_permission(authorization, "read", "")
                return Answer(200, self._measured(), METRICS_TYPE)
            case _:
                names = [name for name in self.served.by_name if self.gate.may_read(authorization, name)]
                if not names:
                    self.gate.check_permission(authorization, "read", "")
                return Answer(200, orjson.dumps({"indexes": names}))

    def _ready(self) -> Answer:
        broken = [name for name, index in self.served.by_name.items() if not index.is_readable]
        if self.is_stopping or not self.pool.is_ready or broken:
            why = "the server is shutting down" if self.is_stopping else "an index cannot be read" if broken else "no process is ready"
            raise Refusal(503, why, {"Retry-After": "1"})
        return Answer(200, b'{"status":"ready"}')

    def _measured(self) -> bytes:
        metrics, pool = self.metrics, self.pool
        metrics.waiting.set(pool.waiting)
        metrics.writes_waiting.set(self.writer.waiting)
        metrics.refused.set(pool.counts.refused)
        metrics.killed.set(pool.counts.killed)
        metrics.restarts.labels("reader").set(pool.counts.restarts)
        metrics.restarts.labels("writer").set(self.writer.restarts)
        metrics.connections.set(self.limits.open)
        for name, index in self.served.by_name.items():
            metrics.commits.labels(name).set(index.generation)
        import os

        pids = {"server": os.getpid(), **{f"reader {i}": pid for i, pid in enumerate(pool.pids)}}
        metrics.observe_processes({**pids, "writer": self.writer.pid} if self.writer.pid else pids)
        return metrics.text()

    def _observe(self, request: _Request, answer: Answer, seconds: float) -> None:
        """Count and log an answer."""
        route = request.route
        operation = (route.operation or route.path.strip("/") or "index") if route is not None else "unknown"
        self.metrics.requests.labels(operation, str(answer.status)).inc()
        self.metrics.seconds.labels(operation).observe(seconds)
        facts: dict[str, Any] = {"method": request.method, "operation": operation, "status": answer.status, "bytes": len(answer.body)}
        if route is not None and route.index:
            facts["index"] = route.index
        if request.token:
            facts["token"] = request.token
        if answer.cached:
            facts["cached"] = True
        for name in ("commit", "model", "waited", "stages"):
            if answer.facts.get(name):
                facts[name] = answer.facts[name]
        self.log.request(seconds, facts, {"path": request.path, "query": request.query, "body": request.kept.decode("utf-8", "replace")})


class _ClientGone(Exception):
    """The client has closed its connection."""


class _Request:
    """A request as it comes in."""

    def __init__(self, scope: Scope, headers: dict[str, str], receive: Receive) -> None:
        self.method: str = scope["method"]
        self.path: str = scope["path"]
        self.query: str = scope["query_string"].decode("latin-1")
        self.headers, self._receive = headers, receive
        self.route: Route | None = None
        self.token, self.origin, self.kept = "", "", b""

    async def body(self, most: int, seconds: float) -> bytes:
        """The body, read within limits of size and time."""
        if self.method in ("GET", "HEAD"):
            return b""
        kind = self.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != JSON_TYPE:
            raise Refusal(415, "the body must be JSON; send the header Content-Type: application/json")
        length = self.headers.get("content-length", "")
        if length.isdigit() and int(length) > most:
            raise Refusal(413, f"the body has more than {most} bytes; send less at once", {"connection": "close"})
        pieces, size = [], 0
        try:
            async with asyncio.timeout(seconds):
                while True:
                    event = await self._receive()
                    if event["type"] != "http.request":
                        raise _ClientGone
                    pieces.append(event.get("body", b""))
                    size += len(pieces[-1])
                    if size > most:
                        raise Refusal(413, f"the body has more than {most} bytes; send less at once", {"connection": "close"})
                    if not event.get("more_body"):
                        break
        except TimeoutError:
            raise Refusal(408, "the body came too slowly; send it faster, or less at once", {"connection": "close"}) from None
        self.kept = b"".join(pieces)
        return self.kept

    async def gone(self) -> None:
        """Wait until the client has closed its connection."""
        while (await self._receive())["type"] != "http.disconnect":
            pass


def _from_message(message: Message) -> Answer:
    facts, content = message
    status = int(facts["status"])
    headers = dict(facts.get("headers") or {})
    if "commit" in facts:
        headers["perikope-generation"] = str(facts["commit"])
    return Answer(status, content, JSON_TYPE if status == 200 else PROBLEM_TYPE, headers, facts)


async def _send(send: Send, answer: Answer, request: _Request) -> None:
    headers = {**SECURITY_HEADERS, "content-type": answer.type, "content-length": str(len(answer.body)), **answer.headers}
    if request.origin:
        headers |= {"access-control-allow-origin": request.origin, "vary": "origin", "cross-origin-resource-policy": "cross-origin"}
    encoded = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": answer.status, "headers": encoded})
    await send({"type": "http.response.body", "body": b"" if request.method == "HEAD" else answer.body})
