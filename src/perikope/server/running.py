"""Start a server, and end it in order."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import gc
import os
import signal
import socket
import stat
import time
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson
import uvicorn

from perikope.core.errors import PerikopeError, UsageError
from perikope.server import folders
from perikope.server.app import App
from perikope.server.commands import CommandSockets
from perikope.server.ends import ProcessEnd
from perikope.server.gate import Gate, allowed_hosts, read_tokens
from perikope.server.handler import STATUS, RequestLimits, RunCommand, handle_requests
from perikope.server.logs import Log
from perikope.server.opening import Opener
from perikope.server.pool import ReaderPool, end_fork_server
from perikope.server.problems import Refusal
from perikope.server.process_names import SERVER, WATCHER, name_process
from perikope.server.protocol import ConnectionLimits, limited_protocol
from perikope.server.served import EVERY, READABLE, PreparedIndex, ServedIndexes
from perikope.server.settings import ServerSettings
from perikope.server.writer import Writer

SIGNALS = (signal.SIGINT, signal.SIGTERM)
"""The signals that end a server in order."""
RELOAD: signal.Signals | None = getattr(signal, "SIGHUP", None)
"""The signal that lets a server read its file of tokens again; None if the system has no such signal."""
STARTING = "folders are read, and the first start on a computer compiles kernels for a minute; perikope warmup does it in advance"
SHUTDOWN = 30.0
"""Seconds that requests may take to finish after the server was told to end."""
STATUS_EVERY, STATUS_SECONDS = 2.0, 10.0
"""Seconds between two looks at a prepared index, and that one may take."""
NOT_READABLE = {READABLE: False}
"""The status of a prepared index of which nothing could be learned."""
KEEP_ALIVE = 30
"""Seconds that a connection may stay open without a request."""


def ignore_reload() -> None:
    """Ignore the signal to read tokens again until the server handles it, since it would end the program."""
    if RELOAD is not None:
        signal.signal(RELOAD, signal.SIG_IGN)


@contextlib.contextmanager
def listening_socket(settings: ServerSettings) -> Iterator[socket.socket]:
    """The socket that the server listens on. Raises `UsageError` if it cannot be opened.

    At the end, its file is removed, unless another server has replaced it. This one may have begun when the server no
    longer listened, but still answered.
    """
    listening = _unix_socket(Path(settings.socket)) if settings.socket else _port(settings)
    file = _identity(settings.socket)
    try:
        yield listening
    finally:
        listening.close()
        if file is not None and _identity(settings.socket) == file:
            Path(settings.socket).unlink(missing_ok=True)


def _identity(path: str) -> tuple[int, int, int] | None:
    """What tells a file from others that have the same path before or after it; None if there is none."""
    try:
        found = Path(path).lstat() if path else None
    except FileNotFoundError:
        return None
    # The number of a removed file is given to the next one.
    return found and (found.st_dev, found.st_ino, found.st_mtime_ns)


def _port(settings: ServerSettings) -> socket.socket:
    """A socket at an address and a port."""
    try:
        family = socket.getaddrinfo(settings.host, settings.port, type=socket.SOCK_STREAM)[0][0]
        listening = socket.socket(family, socket.SOCK_STREAM)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((settings.host, settings.port))
    except PermissionError:
        raise UsageError(f"port {settings.port} is reserved; choose one of 1024 or more with --port") from None
    except OSError as error:
        if settings.port and error.errno == errno.EADDRINUSE:
            raise UsageError(f"port {settings.port} is in use; choose another one with --port, or --port 0 for any free one") from None
        raise UsageError(f"cannot listen on {settings.host}: {error.strerror or error}") from None
    listening.setblocking(False)
    return listening


def _unix_socket(path: Path) -> socket.socket:
    """A socket at a path. A socket that a server has left behind is replaced; one that answers is in use."""
    try:
        if path.exists():
            if not stat.S_ISSOCK(path.stat().st_mode):
                raise UsageError(f"{path} exists and is no socket; choose another path with --socket")
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe, contextlib.suppress(ConnectionRefusedError):
                probe.connect(str(path))
                raise UsageError(f"{path} is in use by another server; choose another path with --socket")
            path.unlink()
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listening.bind(str(path))
        path.chmod(0o660)
    except OSError as error:
        raise UsageError(f"cannot listen on {path}: {error.strerror or error}") from None
    listening.setblocking(False)
    return listening


@dataclass(slots=True)
class Server:
    """A server with its settings and indexes."""

    settings: ServerSettings
    served: ServedIndexes
    listening: socket.socket
    address: str
    """The address under which the server is reached, for the log."""
    log: Log
    on_ready: Callable[[], None] = lambda: None
    """Called when requests can search."""
    run_command: RunCommand | None = None
    """Runs commands of the user of the server; None if it answers none."""
    opener: Opener | None = None
    """Opens the indexes if their files are not on this machine."""
    _stop: asyncio.Event = field(default_factory=asyncio.Event)
    _broken: dict[str, folders.BrokenFiles] = field(default_factory=dict)
    """By index, the files of its folder that could not be read."""

    def run(self) -> None:
        """Serve until a signal says to end."""
        runner: Any = asyncio.run
        with contextlib.suppress(ImportError):
            import uvloop

            runner = uvloop.run
        runner(self.serve())

    async def serve(self) -> None:
        """Serve until a signal comes, then finish what is running."""
        settings, served = self.settings, self.served
        limits = RequestLimits(settings.max_k, settings.max_batch)
        self.log.take_over()
        name_process(SERVER, keeps_command=True)
        connections = ConnectionLimits(settings.max_connections, settings.client_timeout, settings.max_query)
        arguments = served.folders, limits, served.originals(settings.originals), self.run_command, self.opener
        # A process of its own, so that it does not wait behind requests.
        watcher = ReaderPool(handle_requests, arguments, 1, len(served.prepared) + 1, self._log_end, WATCHER) if served.prepared else None
        pool = ReaderPool(handle_requests, arguments, settings.processes, settings.waiting, self._log_end)
        writer = Writer(served.folders, served.documents, settings.waiting, settings.write_timeout, self._log_end)
        app = App(settings, served, self.gate(), pool, writer, self.log, connections)
        commands = CommandSockets(served, pool, settings.timeout)
        self._handle_signals(app)
        try:
            async with self._assisting(app), self._listening(app, connections):
                self.log.event("starting", address=self.address, note=STARTING)
                if await self._started(pool, watcher):
                    if self.run_command is not None:
                        await commands.start()
                    await self._serve(app, writer, watcher)
                self.log.event("stopping", waiting=pool.waiting)
                app.is_stopping = True
        finally:
            await commands.close()
            await writer.close(SHUTDOWN)
            if watcher is not None:
                await watcher.close(0.0)
            await pool.close(SHUTDOWN)
        self.log.event("stopped")

    def _handle_signals(self, app: App) -> None:
        loop = asyncio.get_running_loop()
        for number in SIGNALS:
            loop.add_signal_handler(number, self._stop.set)
        if RELOAD is not None:
            loop.add_signal_handler(RELOAD, self._read_tokens, app)

    def _read_tokens(self, app: App) -> None:
        """Read the file of tokens again. If it cannot be read, the tokens stay as they are."""
        try:
            if not self.settings.tokens:
                raise UsageError("the server was started without --tokens")
            app.gate = self.gate()
        except PerikopeError as error:
            self.log.event("tokens not read", error=str(error))
        else:
            self.log.event("tokens read", tokens=len(app.gate.tokens))

    @contextlib.asynccontextmanager
    async def _listening(self, app: App, connections: ConnectionLimits) -> AsyncIterator[None]:
        """Answer requests in the block. At its end, take no new ones, and answer those that are there."""
        app.is_starting = True
        server = uvicorn_server(app, connections)
        serving = asyncio.create_task(server.serve([self.listening]))
        serving.add_done_callback(lambda _: self._stop.set())
        while not server.started and not serving.done():
            await asyncio.sleep(0.005)
        try:
            yield
        finally:
            server.should_exit = True
            await serving

    async def _started(self, *pools: ReaderPool | None) -> bool:
        """Read folders and start the processes; False if a signal to end came first."""
        starting, stopping = asyncio.create_task(self._prepare(*pools)), asyncio.create_task(self._wait())
        await asyncio.wait((starting, stopping), return_when=asyncio.FIRST_COMPLETED)
        if starting.done():
            stopping.cancel()
            await starting
            return True
        starting.cancel()
        with contextlib.suppress(asyncio.CancelledError, OSError):
            await starting
        end_fork_server()
        return False

    async def _prepare(self, *pools: ReaderPool | None) -> None:
        """Make the indexes of folders equal to them, then start the processes. The first start compiles kernels."""
        for index in self.served.by_name.values():
            if index.documents is not None:
                report = await folders.build_elsewhere(index.documents, index.folder)
                self._log_folder(index.name, report.documents, folders.problems_of(report))
        for pool in pools:
            if pool is not None:
                await pool.start()

    async def _serve(self, app: App, writer: Writer, watcher: ReaderPool | None) -> None:
        """Let requests search until a signal comes."""
        served = self.served
        served.look()
        app.is_starting = False
        gc.freeze()  # what was loaded stays, so the garbage collector need not look through it while requests wait
        tasks = [asyncio.create_task(self._look()), *(asyncio.create_task(self._watch(name, writer)) for name in served.documents)]
        if watcher is not None:
            tasks += [asyncio.create_task(self._follow(index, watcher)) for index in served.prepared]
        self.log.event("ready", workers=self.settings.processes, indexes=list(served.by_name), pid=os.getpid())
        self.on_ready()
        await self._wait()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    @contextlib.asynccontextmanager
    async def _assisting(self, app: App) -> AsyncIterator[None]:
        """The application answers assistants inside the block, if the settings say so."""
        if not self.settings.mcp:
            yield
            return
        from perikope.server.assistants import AssistantEndpoint

        app.assistants = AssistantEndpoint(app.served, app.pool, app.readable, self.settings.timeout)
        async with app.assistants.running():
            yield

    def gate(self) -> Gate:
        """Who may do what, by the settings."""
        settings = self.settings
        tokens, is_open = read_tokens(Path(settings.tokens), list(self.served.by_name)) if settings.tokens else ((), True)
        hosts = allowed_hosts(settings.host, settings.allow_host, is_socket=bool(settings.socket))
        return Gate(hosts, frozenset(settings.allow_origin), tokens, is_open)

    def _log_end(self, end: ProcessEnd) -> None:
        self.log.event("process ended", **end.facts())

    def _log_folder(self, name: str, documents: int, problems: list[tuple[str, str]]) -> None:
        """Write that a folder was read; a file that could not be read is named once, until it changes."""
        self.log.event("folder read", index=name, documents=documents, skipped=len(problems))
        for path, reason in self._broken.setdefault(name, folders.BrokenFiles()).new(problems):
            self.log.event("file not read", index=name, file=path, error=reason)

    async def _wait(self) -> None:
        await self._stop.wait()

    async def _look(self) -> None:
        """Notice commits of other programs."""
        while True:
            await asyncio.sleep(EVERY)
            self.served.look()

    async def _follow(self, index: PreparedIndex, watcher: ReaderPool) -> None:
        """Let commits of an index be prepared, and show them when they are; learn how the index is."""
        while True:
            shown, was_readable, number = index.generation, index.is_readable, index.newest
            meta = {"operation": STATUS, "index": index.name, "generation": number}
            try:
                facts, content = await watcher.ask(meta, b"", STATUS_SECONDS)
                index.learn(orjson.loads(content) if facts["status"] == 200 else NOT_READABLE, number)
            except Refusal:
                index.learn(NOT_READABLE, number)
            if index.is_readable != was_readable:
                self.log.event("index readable" if index.is_readable else "index not readable", index=index.name)
            if index.generation != shown:
                self.log.event("commit shown", index=index.name, commit=index.commit)
            ends = time.monotonic() + STATUS_EVERY
            await asyncio.sleep(EVERY)
            while not index.is_behind and time.monotonic() < ends:
                await asyncio.sleep(EVERY)

    async def _watch(self, name: str, writer: Writer) -> None:
        """Keep an index equal to its folder of documents."""
        index = self.served.by_name[name]
        assert index.documents is not None

        async def on_change() -> None:
            try:
                facts, content = await writer.sync(name)
                index.look()
                answer = orjson.loads(content)
                if facts["status"] == 200:
                    self._log_folder(name, answer["documents"], [(path, reason) for path, reason in answer["problems"]])
                else:
                    self.log.event("folder not read", index=name, error=answer["detail"])
            except Exception as error:
                self.log.event("folder not read", index=name, error=str(error))

        await folders.watch(index.documents, on_change, self._stop)


def uvicorn_server(app: App, limits: ConnectionLimits) -> uvicorn.Server:
    """The server that speaks HTTP. It leaves signals alone."""
    config = uvicorn.Config(
        app, http=limited_protocol(limits), ws="none", lifespan="off", log_config=None, access_log=False, server_header=False,
        date_header=True, proxy_headers=False, timeout_keep_alive=KEEP_ALIVE, timeout_graceful_shutdown=int(SHUTDOWN), backlog=1024,
    )  # fmt: skip
    server = uvicorn.Server(config)
    server.install_signal_handlers = lambda: None  # type: ignore[attr-defined]
    server.capture_signals = contextlib.nullcontext  # type: ignore[assignment, method-assign]
    return server
