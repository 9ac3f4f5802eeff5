"""One request from start to end, as an ASGI application."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

import orjson

from perikope.page import page_files
from perikope.server.cache import JSON_TYPE, Answer, AnswerCache
from perikope.server.cluster_metrics import ClusterMetrics
from perikope.server.frames import Message
from perikope.server.gate import Gate
from perikope.server.handler import MISSING
from perikope.server.incoming import BodyBudget, ClientGone, IncomingRequest, Receive, Scope
from perikope.server.logs import Log, incident_of
from perikope.server.metrics import TYPE as METRICS_TYPE
from perikope.server.metrics import Metrics
from perikope.server.openapi import openapi_document
from perikope.server.pool import ReaderPool
from perikope.server.problems import PAGE_POLICY, SECURITY_HEADERS, Refusal
from perikope.server.problems import TYPE as PROBLEM_TYPE
from perikope.server.process_names import READER, SERVER, WRITER
from perikope.server.protocol import ConnectionLimits
from perikope.server.routes import MCP, PAGE, STATES, Route, find_route
from perikope.server.served import DAMAGED, ServedIndex, ServedIndexes
from perikope.server.settings import ServerSettings
from perikope.server.writer import Writer
from perikope.service.operations import READ, WRITE, load_operations

if TYPE_CHECKING:
    from perikope.server.assistants import AssistantEndpoint

Send = Callable[[dict[str, Any]], Awaitable[None]]

MOST_UNSENT = 1 << 28
"""The most bytes of answers that wait for clients to read them. Further requests are refused meanwhile."""
BODIES = 4
"""How many of the largest bodies may be in memory at a time."""
MOST_BODIES = 1 << 26
"""The bytes of bodies that may always be in memory at a time."""
LOGGED = 2000
"""The most characters of a query in the log. Documents that are added are never in it."""


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
        self.assistants: AssistantEndpoint | None = None
        self.pages = page_files()
        self.metrics, self.cache = Metrics(), AnswerCache(settings.cache)
        self.bodies = BodyBudget(max(BODIES * settings.max_body, MOST_BODIES))
        self.is_starting = self.is_stopping = False
        self._openapi: dict[tuple[str, ...], bytes] = {}
        self.cluster_metrics = ClusterMetrics(self.metrics.registry) if served.prepared else None
        self._count_processes()

    def _count_processes(self) -> None:
        """Let `/metrics` have what the pool and the writer count."""
        count, pool, writer = self.metrics.count, self.pool, self.writer
        count("perikope_refused", "Requests that were refused because the queue was full.", lambda: {"": pool.counts.refused})
        count("perikope_process_killed", "Readers that were ended because a request took too long.", lambda: {"": pool.counts.killed})
        restarts = "Processes that ended and were replaced."
        count("perikope_process_restarts", restarts, lambda: {READER: pool.counts.restarts, WRITER: writer.restarts}, "kind")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            if scope["type"] == "websocket":
                await send({"type": "websocket.close", "code": 1000})
            return
        began = time.perf_counter()
        request = IncomingRequest(scope, receive, self.bodies)
        try:
            answer = await self._answer(request, scope)
        except Refusal as refusal:
            answer = Answer(refusal.status, refusal.body, PROBLEM_TYPE, refusal.headers)
            await request.discard()
        except ClientGone:
            self._observe(request, Answer(499, b""), time.perf_counter() - began)
            return
        except Exception as error:
            answer = self._failed(error)
        finally:
            request.release()
        with contextlib.suppress(OSError):
            await _send(send, answer, request)
        self._observe(request, answer, time.perf_counter() - began)

    def _failed(self, error: Exception) -> Answer:
        """The answer if the server itself has a defect."""
        number = secrets.token_hex(4)
        self.log.incident(incident_of(error, number))
        refusal = Refusal(500, f"the server failed; tell the operator the number of the incident: {number}")
        return Answer(500, refusal.body, PROBLEM_TYPE)

    async def _answer(self, request: IncomingRequest, scope: Scope) -> Answer:
        request.check_head(self.settings.max_query)
        self.gate.check_host(*request.hosts)
        request.origin = self.gate.check_origin(request.headers)
        if request.method == "OPTIONS" and request.origin:
            return Answer(204, b"", headers={"access-control-allow-methods": "GET, POST", "access-control-allow-headers": "content-type"})
        known = self.pages if self.assistants is None else {*self.pages, MCP}
        route = request.route = find_route(request.method, request.path, self.operations, known)
        if self.is_starting and route.path not in (*STATES, PAGE):
            raise Refusal(503, "the server is starting; try again later", {"Retry-After": "2"})
        if route.path == MCP and self.assistants is not None:
            return await self._assist(request, scope, self.assistants)
        if route.path:
            return await self._own(route, request)
        # Without the permission, a client does not learn which indexes there are.
        request.token = self.gate.check_permission(request.headers.get("authorization", ""), route.permission, route.index)
        if route.index not in self.served.by_name:
            request.route = None
            raise Refusal(404, "there is no such index; /indexes lists them")
        if self.limits.sending and self.limits.unsent > MOST_UNSENT:
            raise Refusal(503, "clients read their answers too slowly; try again later", {"Retry-After": "2"})
        limit = self.settings.max_body if route.permission == WRITE else self.settings.max_query
        body = await request.body(limit, self.settings.client_timeout)
        if route.permission == WRITE:
            return await self._write(route, request, body)
        return await self._read(route, request, body)

    async def _assist(self, request: IncomingRequest, scope: Scope, assistants: AssistantEndpoint) -> Answer:
        """The answer to an assistant. One that may read no index is refused."""
        authorization = request.headers.get("authorization", "")
        if not self.readable(authorization):
            self.gate.check_permission(authorization, READ, "")
        return await assistants.answer(scope, request, await request.body(self.settings.max_query, self.settings.client_timeout))

    async def _read(self, route: Route, request: IncomingRequest, body: bytes) -> Answer:
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
        self._note(index, facts)
        answer = _from_message((facts, content))
        self.metrics.cached.labels("no").inc()
        if self.cluster_metrics is not None:
            self.cluster_metrics.count(index.name, facts)
        self.metrics.observe_answer(facts, str(facts.get("model", "")))
        if answer.status == 200 and self.settings.cache and MISSING not in facts:
            self.cache.put(key, Answer(answer.status, answer.body, headers=answer.headers, cached=True))
            self.metrics.cache_bytes.set(self.cache.bytes)
        return answer

    async def _unless_gone(self, asked: Awaitable[Message], request: IncomingRequest) -> Message:
        """The answer of a process. If it has to wait and the client goes away, the request is withdrawn."""
        if not self.pool.must_wait:
            return await asked
        answering, gone = asyncio.ensure_future(asked), asyncio.ensure_future(request.gone())
        try:
            await asyncio.wait((answering, gone), return_when=asyncio.FIRST_COMPLETED)
            if answering.done():
                return answering.result()
            raise ClientGone
        finally:
            for task in (answering, gone):
                if not task.done():
                    task.cancel()
                    with contextlib.suppress(asyncio.CancelledError, Refusal):
                        await task

    async def _write(self, route: Route, request: IncomingRequest, body: bytes) -> Answer:
        index = self.served.by_name[route.index]
        if index.documents is not None:
            raise Refusal(409, "this index is kept equal to a folder of files; change the files instead")
        meta = {"operation": route.operation, "method": request.method, "query": request.query}
        facts, content = await self.writer.ask(route.index, meta, body)
        self._note(index, facts)
        answer = _from_message((facts, content))
        index.look()
        return answer

    async def _own(self, route: Route, request: IncomingRequest) -> Answer:
        """An answer of the server itself."""
        authorization = request.headers.get("authorization", "")
        match route.path:
            case _ if route.path == PAGE:
                return self._page(request)
            case "/health":
                return Answer(200, b'{"status":"ok"}')
            case "/ready":
                return self._ready(authorization)
            case "/openapi.json":
                return Answer(200, self._described(tuple(self.readable(authorization))))
            case "/metrics":
                self.gate.check_permission(authorization, READ, "")
                return Answer(200, self._measured(), METRICS_TYPE)
            case _:
                names = self.readable(authorization)
                if not names:
                    self.gate.check_permission(authorization, READ, "")
                return Answer(200, orjson.dumps({"indexes": names}))

    def _page(self, request: IncomingRequest) -> Answer:
        """A file of the page. A browser asks whether its copy is still right, so a new version is seen at once."""
        file = self.pages[request.path]
        headers = {"content-security-policy": PAGE_POLICY, "cache-control": "no-cache", "etag": file.tag, "vary": "accept-encoding"}
        if request.headers.get("if-none-match") == file.tag:
            return Answer(304, b"", file.type, headers)
        if "gzip" in request.headers.get("accept-encoding", ""):
            return Answer(200, file.packed, file.type, {**headers, "content-encoding": "gzip"})
        return Answer(200, file.data, file.type, headers)

    def readable(self, authorization: str) -> list[str]:
        """The names of the indexes that a request may read."""
        return [name for name in self.served.by_name if self.gate.may_read(authorization, name)]

    def _described(self, names: tuple[str, ...]) -> bytes:
        """The OpenAPI document for indexes."""
        if names not in self._openapi:
            self._openapi[names] = orjson.dumps(openapi_document(self.operations, names))
        return self._openapi[names]

    def _note(self, index: ServedIndex, facts: Mapping[str, Any]) -> None:
        if index.note(facts):
            self.log.event("index damaged", index=index.name, file=facts[DAMAGED] or "unknown")

    def _ready(self, authorization: str) -> Answer:
        broken = [name for name, index in self.served.by_name.items() if not index.is_readable]
        named = [name for name in broken if self.gate.may_read(authorization, name)]
        reasons = {
            "the server is shutting down": self.is_stopping,
            "the server is starting": self.is_starting,
            f"{'these indexes' if named else 'an index'} cannot be read{': ' * bool(named)}{', '.join(named)}": bool(broken),
            "no process is ready": not self.pool.is_ready,
        }
        for reason, holds in reasons.items():
            if holds:
                raise Refusal(503, reason, {"Retry-After": "1"})
        return Answer(200, b'{"status":"ready"}')

    def _measured(self) -> bytes:
        metrics, pool = self.metrics, self.pool
        metrics.waiting.set(pool.waiting)
        metrics.writes_waiting.set(self.writer.waiting)
        metrics.connections.set(self.limits.open)
        self.served.look()
        for name, index in self.served.by_name.items():
            metrics.commits.labels(name).set(index.commit)
            metrics.readable.labels(name).set(index.is_readable)
        if self.cluster_metrics is not None:
            for prepared in self.served.prepared:
                self.cluster_metrics.observe(prepared)
        pids = {SERVER: os.getpid(), **{f"{READER} {number}": pid for number, pid in pool.pids.items()}}
        metrics.observe_processes({**pids, WRITER: self.writer.pid} if self.writer.pid else pids)
        return metrics.text()

    def _observe(self, request: IncomingRequest, answer: Answer, seconds: float) -> None:
        """Count and log an answer."""
        route = request.route
        operation = (route.operation or route.path.strip("/") or "index") if route is not None else "unknown"
        self.metrics.requests.labels(operation, str(answer.status)).inc()
        self.metrics.seconds.labels(operation).observe(seconds)
        facts: dict[str, Any] = {"method": request.method, "operation": operation, "status": answer.status, "bytes": len(answer.body)}
        if route is not None and route.index in self.served.by_name:  # any other name is text of the user
            facts["index"] = route.index
        if request.token:
            facts["token"] = request.token
        if answer.cached:
            facts["cached"] = True
        if incident := answer.facts.get("incident"):
            self.log.incident(incident)
        for name in ("commit", "model", MISSING, "waited", "stages"):
            if answer.facts.get(name):
                facts[name] = answer.facts[name]
        asked = {"path": request.path, "query": request.query[:LOGGED]}
        if route is not None and route.permission != WRITE:
            asked["body"] = request.kept[:LOGGED].decode("utf-8", "replace")
        self.log.request(seconds, request.scope, facts, asked)


def _from_message(message: Message) -> Answer:
    facts, content = message
    status = int(facts["status"])
    headers = dict(facts.get("headers") or {})
    if "commit" in facts:
        headers["perikope-generation"] = str(facts["commit"])
    if facts.get(MISSING):
        headers["perikope-missing-shards"] = ",".join(map(str, facts[MISSING]))
    return Answer(status, content, JSON_TYPE if status == 200 else PROBLEM_TYPE, headers, facts)


async def _send(send: Send, answer: Answer, request: IncomingRequest) -> None:
    headers = {**SECURITY_HEADERS, "content-type": answer.type, "content-length": str(len(answer.body)), **answer.headers}
    if answer.status in (204, 304):
        del headers["content-type"], headers["content-length"]
    if request.origin:
        headers |= {"access-control-allow-origin": request.origin, "vary": "origin", "cross-origin-resource-policy": "cross-origin"}
    encoded = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": answer.status, "headers": encoded})
    await send({"type": "http.response.body", "body": b"" if request.method == "HEAD" else answer.body})
