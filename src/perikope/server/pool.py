"""The processes that read, and the queue in front of them.

A request goes to a process that has nothing to do, or waits. Requests are served in the order of their arrival. If too
many wait, a new one is refused at once. A process answers one request at a time. If it does not answer in time, it is
ended and another one takes its place; so a request keeps a process busy for at most its time and a grace period.

If a process ends by itself, its request goes to another one, at most twice, since the request may have ended it. The
other process is asked first whether it lives: a request is not to blame for a process that was killed before. Processes
that end while they have nothing to do are replaced, and so is the fork server.
"""

from __future__ import annotations

import asyncio
import contextlib
import multiprocessing
import os
import signal
import socket
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing import forkserver
from multiprocessing.context import BaseContext
from multiprocessing.process import BaseProcess
from typing import Any

from perikope.core.errors import PerikopeError
from perikope.server.ends import NO_REQUEST, REPEATED, OnEnd, ProcessEnd, answered_with, ignore_end
from perikope.server.frames import Message, packed, receive_async
from perikope.server.handler import DEADLINE, GRACE, PING, PREPARED
from perikope.server.problems import Refusal
from perikope.server.process_names import READER, name_process

STARTING = 120.0
"""Seconds that a process may take to start."""
TRIES = 3
"""How many processes a request may end, before it is refused."""
EVERY = 0.25
"""Seconds between two looks at the processes and at the queue."""
_UNKNOWN = 255
"""The exit status of a process whose fork server has ended before it could say."""
FORK_SERVER, PRELOADED = "perikope.server.fork_server", "perikope.server.preload"
"""The modules that the fork server imports before it forks processes: its own settings, and what the processes need."""


def process_context() -> BaseContext:
    """How processes are started: forked from a process that has loaded everything and has one thread, if possible.

    Such a process starts in milliseconds and shares its memory with the others.
    """
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    # A new process imports the main program, which takes long unless the fork server has imported it before.
    context.set_forkserver_preload([FORK_SERVER, PRELOADED, "__main__"])
    return context


def end_fork_server() -> None:
    """End the fork server at once. Before the first process, it may compile for a minute, and all that wait for it too.

    The standard library has no function for this.
    """
    pid = getattr(getattr(forkserver, "_forkserver", None), "_forkserver_pid", None)
    if isinstance(pid, int):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


Main = Callable[..., None]
"""The main function of a process; its first argument is its connection."""


def _run(kind: str, number: int | None, main: Main, *arguments: Any) -> None:
    """What a process does from its start to its end."""
    name_process(kind, number)
    main(*arguments)


class Process:
    """A process that answers requests, and the connection to it."""

    def __init__(self, process: BaseProcess, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._process, self._reader, self._writer = process, reader, writer

    @classmethod
    async def start(cls, context: BaseContext, main: Main, arguments: tuple[Any, ...], kind: str, number: int | None = None) -> Process:
        """Start a process and wait until it is ready. `kind` and `number` are its name, as `ps` shows it."""
        ours, theirs = socket.socketpair()
        with theirs:
            process: BaseProcess = context.Process(  # type: ignore[attr-defined]
                target=_run, args=(kind, number, main, theirs, *arguments), daemon=True
            )  # fmt: skip
            await asyncio.to_thread(process.start)
        ours.setblocking(False)
        reader, writer = await asyncio.open_connection(sock=ours, limit=1 << 26)
        started = cls(process, reader, writer)
        try:
            async with asyncio.timeout(STARTING):
                await receive_async(reader)
        except BaseException:
            await started.kill()
            raise
        return started

    @property
    def pid(self) -> int:
        """The id of the process."""
        return self._process.pid or 0

    @property
    def has_ended(self) -> bool:
        """Whether the process has ended, as far as is known."""
        return self._reader.at_eof() or self._reader.exception() is not None

    async def is_well(self) -> bool:
        """Whether the process answers. It must have nothing else to do."""
        try:
            async with asyncio.timeout(GRACE):
                await self.ask({PING: True, "seconds": GRACE}, b"")
        except (ConnectionError, TimeoutError):
            return False
        return True

    async def ask(self, meta: dict[str, Any], body: bytes, on_prepared: Callable[[Message], None] | None = None) -> Message:
        """Send a request and wait for the answer; raises `ConnectionError` if the process ends.

        `on_prepared` gets the message that a process may send before its answer.
        """
        try:
            self._writer.write(packed(meta, body))
            await self._writer.drain()
            message = await receive_async(self._reader)
            if on_prepared is not None and PREPARED in message[0]:
                on_prepared(message)
                message = await receive_async(self._reader)
            return message
        except (asyncio.IncompleteReadError, OSError):
            raise ConnectionError from None

    async def kill(self) -> None:
        """End the process at once."""
        with contextlib.suppress(ProcessLookupError, AttributeError, ValueError):
            self._process.kill()
        await self._end()

    async def ended(self, kind: str, request: str) -> ProcessEnd:
        """End the process unless it has ended; returns how it ended. `request` says what became of its request."""
        await self.kill()
        code = self._process.exitcode
        return ProcessEnd(kind, self.pid, None if code == _UNKNOWN else code, request)

    async def close(self, seconds: float) -> None:
        """Let the process end after what it is doing, and end it if it takes longer."""
        self._writer.close()
        deadline = time.monotonic() + seconds
        while self._process.is_alive() and time.monotonic() < deadline:
            await asyncio.sleep(0.01)
        await self.kill()

    async def _end(self) -> None:
        self._writer.close()
        with contextlib.suppress(OSError):
            await self._writer.wait_closed()
        await asyncio.to_thread(self._process.join, 5)


@dataclass(slots=True, eq=False)
class QueuedRequest:
    """One request in the pool."""

    meta: dict[str, Any]
    body: bytes
    ends: float
    """The time at which the request must be answered, by `time.monotonic`."""
    answer: asyncio.Future[Message]
    came: float = field(default_factory=time.monotonic)
    tries: int = 0
    is_queued: bool = True
    """Whether the request is in the queue, so that nobody has to search it."""


@dataclass(slots=True)
class PoolCounts:
    """What a pool has done since it was started."""

    restarts: int = 0
    """Processes that ended and were replaced."""
    killed: int = 0
    """Processes that were ended, because a request took too long."""
    refused: int = 0
    """Requests that were refused, because too many were waiting."""


class ReaderPool:
    """Processes that answer requests, and a queue."""

    def __init__(
        self, main: Main, arguments: tuple[Any, ...], size: int, waiting: int, on_end: OnEnd = ignore_end, kind: str = READER
    ) -> None:
        """A pool of `size` processes with the main function `main`; at most `waiting` requests wait.

        `on_end` is called for each process that ends before the pool is closed. `kind` is the name of the processes.
        """
        self._kind = kind
        self._main, self._arguments, self.size, self._most, self._on_end = main, arguments, size, waiting, on_end
        self._context = process_context()
        self._jobs: deque[QueuedRequest] = deque()
        self._tasks: list[asyncio.Task[None]] = []
        self._watcher: asyncio.Task[None] | None = None
        self._processes: dict[int, Process] = {}
        self._idle: dict[int, asyncio.Future[None]] = {}
        """Set to let the process with this number look for requests."""
        self._seconds_per_job = 0.01
        self._closing = False
        self.counts = PoolCounts()

    async def start(self) -> None:
        """Start all processes and wait until they are ready."""
        started = await asyncio.gather(*(self._started(number) for number in range(self.size)))
        if not all(started):
            raise PerikopeError("the processes that search could not be started; the machine may lack memory or processes")
        self._tasks = [asyncio.create_task(self._serve(number)) for number in range(self.size)]
        self._watcher = asyncio.create_task(self._watch())

    @property
    def waiting(self) -> int:
        """The number of requests that wait for a process."""
        return max(len(self._jobs) - len(self._idle), 0)

    @property
    def pids(self) -> dict[int, int]:
        """The ids of the processes, by their numbers."""
        return {number: process.pid for number, process in sorted(self._processes.items())}

    @property
    def is_ready(self) -> bool:
        """Whether at least one process can answer."""
        return bool(self._processes) and not self._closing

    @property
    def must_wait(self) -> bool:
        """Whether a request that comes now has to wait."""
        return len(self._jobs) >= len(self._idle)

    def retry_after(self) -> int:
        """Seconds after which the requests that wait now will have been answered, rounded up."""
        return int(len(self._jobs) * self._seconds_per_job / self.size) + 1

    async def ask(self, meta: dict[str, Any], body: bytes, seconds: float) -> Message:
        """The answer to a request; raises `Refusal` if the queue is full or the time is over."""
        if self._closing:
            raise Refusal(503, "the server is shutting down; try again later", {"Retry-After": "5"})
        if self.waiting >= self._most:
            self.counts.refused += 1
            raise Refusal(503, "too many requests are waiting; try again later", {"Retry-After": str(self.retry_after())})
        job = QueuedRequest(meta, body, time.monotonic() + seconds, asyncio.get_running_loop().create_future())
        self._jobs.append(job)
        self._wake()
        try:
            return await job.answer
        finally:
            job.answer.cancel()
            if job.is_queued:  # its client has gone
                self._jobs.remove(job)

    def _wake(self) -> None:
        """Let a process that has nothing to do look for requests."""
        for waiter in self._idle.values():
            if not waiter.done():
                waiter.set_result(None)
                return

    async def _serve(self, number: int) -> None:
        """Give requests to one process, one after another, for ever."""
        while True:
            job = await self._next(number)
            if job is None:
                await self._restart(number, NO_REQUEST)
                continue
            try:
                await self._run(number, job)
            except asyncio.CancelledError:
                raise
            except Exception as error:
                if not job.answer.done():
                    job.answer.set_exception(error)

    async def _next(self, number: int) -> QueuedRequest | None:
        """The next request for a process; None if the process has ended."""
        while True:
            if number not in self._processes or self._processes[number].has_ended:
                if self._jobs:
                    self._wake()
                return None
            if self._jobs:
                return self._taken()
            waiter = self._idle[number] = asyncio.get_running_loop().create_future()
            try:
                await waiter
            finally:
                del self._idle[number]

    def _taken(self) -> QueuedRequest:
        """The request that has waited longest, which leaves the queue."""
        job = self._jobs.popleft()
        job.is_queued = False
        return job

    async def _watch(self) -> None:
        """Replace processes that ended while they had nothing to do, and refuse requests whose time is over."""
        while True:
            await asyncio.sleep(EVERY)
            for number, waiter in self._idle.items():
                if self._processes[number].has_ended and not waiter.done():
                    waiter.set_result(None)
            while self._jobs and self._jobs[0].ends < time.monotonic():
                self._refuse_late(self._taken())
            if self._context.get_start_method() == "forkserver":
                with contextlib.suppress(OSError):
                    await asyncio.to_thread(forkserver.ensure_running)

    def _refuse_late(self, job: QueuedRequest) -> None:
        if not job.answer.done():
            retry = {"Retry-After": str(self.retry_after())}
            job.answer.set_exception(Refusal(504, "the request waited too long; try again later", retry))

    async def _run(self, number: int, job: QueuedRequest) -> None:
        """Let a process answer a request."""
        if job.tries and not await self._processes[number].is_well():
            self._again(job)
            await self._restart(number, NO_REQUEST)
            return
        left = job.ends - time.monotonic()
        if left <= 0:
            self._refuse_late(job)
            return
        began, job.tries = time.monotonic(), job.tries + 1
        try:
            async with asyncio.timeout(left + GRACE):
                message = await self._processes[number].ask({**job.meta, "seconds": left}, job.body)
        except TimeoutError:
            self.counts.killed += 1
            # The client need not wait for the new process.
            if not job.answer.done():
                job.answer.set_exception(Refusal(504, DEADLINE))
            await self._restart(number, answered_with(504))
            return
        except ConnectionError:
            is_last = job.tries >= TRIES
            if not is_last:
                self._again(job)
            elif not job.answer.done():
                job.answer.set_exception(Refusal(500, f"the request ended {TRIES} processes of the server; tell the operator"))
            await self._restart(number, answered_with(500) if is_last else REPEATED)
            return
        took = time.monotonic() - began
        self._seconds_per_job += 0.05 * (took - self._seconds_per_job)
        message[0]["waited"] = began - job.came
        if not job.answer.done():
            job.answer.set_result(message)

    def _again(self, job: QueuedRequest) -> None:
        """Give a request to another process."""
        if not job.answer.done():
            job.is_queued = True
            self._jobs.appendleft(job)
            self._wake()

    async def _restart(self, number: int, request: str) -> None:
        """Replace a process, whose request became `request`. If that fails, try again, ever more slowly."""
        self.counts.restarts += 1
        if (old := self._processes.pop(number, None)) is not None:
            self._on_end(await old.ended(self._kind, request))
        pause = 0.05
        while not self._closing and not await self._started(number):
            await asyncio.sleep(pause)
            pause = min(2 * pause, 5.0)

    async def _started(self, number: int) -> bool:
        try:
            self._processes[number] = await Process.start(self._context, self._main, self._arguments, self._kind, number)
        except (OSError, EOFError, TimeoutError):
            return False
        return True

    async def close(self, seconds: float) -> None:
        """Answer what is running and waiting, but take nothing new; then end all processes."""
        self._closing = True
        deadline = time.monotonic() + seconds
        while (self._jobs or len(self._idle) < len(self._tasks)) and time.monotonic() < deadline:
            await asyncio.sleep(0.01)
        tasks = [*self._tasks, *([self._watcher] if self._watcher is not None else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.gather(*(process.close(1.0) for process in self._processes.values()))
        for job in self._jobs:
            if not job.answer.done():
                job.answer.set_exception(Refusal(503, "the server is shutting down; try again later", {"Retry-After": "5"}))
