"""The process that writes, and how changes reach it.

One process writes to all indexes of a server. It holds the lock of an index only while it makes a commit. Changes that
wait are given to it together, and share a commit. Each change is all or nothing: one that fails leaves nothing behind,
and the others are made. Every answer is sent after the commit is on disk.

Before a commit, the process says what it will answer. If it ends then, the manifest tells whether the commit was made
(`settled`): if so, this is the answer; if not, the changes are made again. A change is never counted twice.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import orjson

from perikope.core.access import files_forbidden
from perikope.core.errors import PerikopeError
from perikope.index import manifest as manifests
from perikope.search.facade import Index
from perikope.server.ends import NO_REQUEST, REPEATED, OnEnd, answered_with, ignore_end
from perikope.server.folders import build_index, problems_of
from perikope.server.frames import Message, packed, receive
from perikope.server.handler import PREPARED, encode, ended_after, prepare_process, refused
from perikope.server.pool import Process, process_context
from perikope.server.problems import Refusal
from perikope.server.process_names import WRITER
from perikope.service.answers import Written
from perikope.service.operations import load_operations
from perikope.service.requests import read_body, read_query_string

AT_ONCE = 64
"""The most changes that share a commit."""
BYTES_AT_ONCE = 1 << 26
"""The most bytes of changes that share a commit, unless the first one alone has more."""
TRIES = 3
"""How often a change is tried if the process that writes ends meanwhile."""
LOCK_WAIT = 5.0
"""Seconds to wait for another program that writes to the same index."""
SYNC = "sync"
"""The operation that makes an index equal to its folder of documents."""


class Writing:
    """Makes changes, in the process that writes."""

    def __init__(self, folders: Mapping[str, str], documents: Mapping[str, str]) -> None:
        """Write to indexes, by name with their folders. `documents` are the folders of documents, by index."""
        self.folders, self.documents, self.operations = dict(folders), dict(documents), load_operations()

    def make(
        self,
        index_name: str,
        changes: Sequence[Mapping[str, Any]],
        bodies: Sequence[bytes],
        on_prepared: Callable[[bytes], None] = lambda message: None,
    ) -> list[Message]:
        """Make changes of one index in one commit, and answer each.

        Just before the commit, `on_prepared` gets the answers and what tells whether the commit was made, as a message.
        """
        try:
            index = Index.open(self.folders[index_name], wait=LOCK_WAIT)
        except (PerikopeError, OSError) as error:
            return [refused(error, self.folders)] * len(changes)
        try:
            answers = [self._change(index, change, body) for change, body in zip(changes, bodies, strict=True)]
            if any(isinstance(answer, Written) for answer in answers):
                if (pending := index.pending_commit) is not None:
                    known = {PREPARED: pending.generation, "stamp": pending.stamp}
                    on_prepared(_packed(_sent(answers, 0, 0), known))
                index.commit()
        except Exception as error:
            return [refused(error, self.folders)] * len(changes)
        finally:
            with contextlib.suppress(PerikopeError, OSError):
                index.rollback()
        generation, documents = index.snapshot.manifest.generation, len(index)
        index.close()
        return _sent(answers, documents, generation)

    def _change(self, index: Index, change: Mapping[str, Any], body: bytes) -> Written | Message:
        """Make one change without a commit. One that fails changes nothing."""
        try:
            operation = self.operations[change["operation"]]
            given = read_query_string(operation, change["query"]) if change["method"] == "DELETE" else read_body(operation, body)
            answer: Written = operation.run(index, given)
            return answer
        except Exception as error:
            return refused(error, self.folders)

    def sync(self, index_name: str) -> Message:
        """Make an index equal to its folder of documents."""
        try:
            folder = Path(self.folders[index_name])
            report = build_index(Path(self.documents[index_name]), folder, workers=1, wait=60.0)
            content = {"documents": report.documents, "problems": problems_of(report)}
            return {"status": 200, "commit": manifests.load(folder).generation}, orjson.dumps(content)
        except Exception as error:
            return refused(error, self.folders)


def _sent(answers: Sequence[Written | Message], documents: int, generation: int) -> list[Message]:
    """The answers to changes as messages, with the number of documents and of the commit after the changes."""
    return [
        ({"status": 200, "commit": generation}, encode(replace(answer, documents=documents, generation=generation)))
        if isinstance(answer, Written)
        else answer
        for answer in answers
    ]


def handle_changes(connection: socket.socket, folders: Mapping[str, str], documents: Mapping[str, str]) -> None:
    """The main function of the process that writes: makes changes until the other side ends."""
    prepare_process()
    writing = Writing(folders, documents)
    with contextlib.suppress(OSError):
        connection.sendall(packed({"ready": True}))
        while (message := receive(connection)) is not None:
            with ended_after(message[0]):
                connection.sendall(_made(writing, *message, connection.sendall))


def _made(writing: Writing, meta: Mapping[str, Any], body: bytes, on_prepared: Callable[[bytes], None]) -> bytes:
    """Make changes, and return the answers as one message."""
    if meta["operation"] == SYNC:
        answers = [writing.sync(meta["index"])]
    else:
        with files_forbidden():
            answers = writing.make(meta["index"], meta["changes"], _divided(body, meta["lengths"]), on_prepared)
    return _packed(answers, {})


def _packed(answers: Sequence[Message], more: Mapping[str, Any]) -> bytes:
    """Answers as one message, with what else it says."""
    head = {"answers": [facts for facts, _ in answers], "lengths": [len(content) for _, content in answers], **more}
    return packed(head, b"".join(content for _, content in answers))


def _unpacked(message: Message) -> list[Message]:
    """The answers in a message."""
    head, content = message
    return list(zip(head["answers"], _divided(content, head["lengths"]), strict=True))


def _divided(body: bytes, lengths: Sequence[int]) -> list[bytes]:
    pieces, start = [], 0
    for length in lengths:
        pieces.append(body[start : start + length])
        start += length
    return pieces


def settled(prepared: Message, folder: Path) -> list[Message] | None:
    """The answers to changes whose process ended after it had prepared them; None if the commit was not made.

    Raises `Refusal` if this cannot be known: there is another commit, which names no file of this one.
    """
    head, _ = prepared
    try:
        manifest = manifests.load(folder)
    except PerikopeError:
        raise _uncertain() from None
    if manifest.generation == head[PREPARED]:
        return None
    if not manifests.has_file_of(manifest, head["stamp"]):
        raise _uncertain()
    known = {"documents": manifest.documents, "generation": manifest.generation}
    return [
        ({**facts, "commit": manifest.generation}, orjson.dumps({**orjson.loads(content), **known}))
        if facts["status"] == 200
        else (facts, content)
        for facts, content in _unpacked(prepared)
    ]


def _uncertain() -> Refusal:
    return Refusal(503, "the change may have been made: the process that writes ended during its commit; look before you repeat it")


@dataclass(slots=True, eq=False)
class _Change:
    index: str
    meta: dict[str, Any]
    body: bytes
    answer: asyncio.Future[Message]


class Writer:
    """Gives changes to the process that writes, several at once. The process is started with the first change."""

    def __init__(
        self, folders: Mapping[str, str], documents: Mapping[str, str], waiting: int, seconds: float, on_end: OnEnd = ignore_end
    ) -> None:
        """`waiting` is the largest number of changes that wait, and `seconds` the time that a commit may take.

        `on_end` is called for each process that ends before the writer is closed.
        """
        self._arguments, self._most, self._seconds, self._on_end = (dict(folders), dict(documents)), waiting, seconds, on_end
        self._changes: list[_Change] = []
        self._has_changes = asyncio.Event()
        self._process: Process | None = None
        self._busy = False
        self._task = asyncio.create_task(self._serve())
        self._closing = False
        self.restarts = 0

    @property
    def waiting(self) -> int:
        """The number of changes that wait for a commit."""
        return len(self._changes)

    @property
    def pid(self) -> int:
        """The id of the process; 0 if none was needed so far."""
        return 0 if self._process is None else self._process.pid

    async def ask(self, index: str, meta: dict[str, Any], body: bytes) -> Message:
        """The answer to a change, after it is on disk."""
        if self._closing:
            raise Refusal(503, "the server is shutting down; try again later", {"Retry-After": "5"})
        if len(self._changes) >= self._most:
            raise Refusal(503, "too many changes are waiting; try again later", {"Retry-After": "2"})
        change = _Change(index, meta, body, asyncio.get_running_loop().create_future())
        change.answer.add_done_callback(lambda answer: answer.cancelled() or answer.exception())  # its client may have gone
        self._changes.append(change)
        self._has_changes.set()
        # A change is made even if its client has gone: it may be in a commit already.
        return await asyncio.shield(change.answer)

    async def sync(self, index: str) -> Message:
        """Make an index equal to its folder of documents."""
        return await self.ask(index, {"operation": SYNC}, b"")

    def _next(self) -> list[_Change]:
        """The next changes that share a commit: the first, and further ones of the same index."""
        first = self._changes[0]
        if first.meta["operation"] == SYNC:
            # Changes of files that come meanwhile are seen by the same sync.
            chosen = [change for change in self._changes if change.index == first.index and change.meta["operation"] == SYNC]
        else:
            chosen, size = [], 0
            for change in self._changes:
                size += len(change.body)
                if change.index != first.index or change.meta["operation"] == SYNC or len(chosen) >= AT_ONCE:
                    break
                if chosen and size > BYTES_AT_ONCE:
                    break
                chosen.append(change)
        self._changes = [change for change in self._changes if change not in chosen]
        return chosen

    async def _serve(self) -> None:
        while True:
            await self._has_changes.wait()
            self._busy = True
            while self._changes:
                await self._commit(self._next())
            self._busy = False
            self._has_changes.clear()

    async def _commit(self, changes: list[_Change]) -> None:
        try:
            answers = await self._answers(changes)
        except asyncio.CancelledError:
            raise
        except Exception as error:
            for change in changes:
                if not change.answer.done():
                    change.answer.set_exception(error)
            return
        for change, answer in zip(changes, answers, strict=True):
            if not change.answer.done():
                change.answer.set_result(answer)

    async def _answers(self, changes: list[_Change]) -> list[Message]:
        first = changes[0]
        meta: dict[str, Any] = {"operation": first.meta["operation"], "index": first.index, "seconds": self._seconds}
        body = b""
        if meta["operation"] != SYNC:
            meta |= {"changes": [change.meta for change in changes], "lengths": [len(change.body) for change in changes]}
            body = b"".join(change.body for change in changes)
        for tried in range(1, TRIES + 1):
            prepared: list[Message] = []
            try:
                process = await self._started()
                async with asyncio.timeout(self._seconds):
                    answers = _unpacked(await process.ask(meta, body, prepared.append))
            except TimeoutError:
                await self._end(answered_with(504))
                raise Refusal(504, "the change took longer than the server allows; it was not made, or is complete") from None
            except (OSError, EOFError):
                known = await self._after_end(first.index, prepared, is_last=tried == TRIES)
                if known is None:
                    continue
                return known
            return answers * len(changes) if meta["operation"] == SYNC else answers
        what = f"the process that writes ended {TRIES} times; the change was not made. Try again, or tell the operator"
        raise Refusal(503, what, {"Retry-After": "2"})

    async def _after_end(self, index: str, prepared: Sequence[Message], *, is_last: bool) -> list[Message] | None:
        """The answers to changes whose process has ended; None if they were not made. Raises `Refusal` if unknown."""
        try:
            known = settled(prepared[0], Path(self._arguments[0][index])) if prepared else None
        except Refusal as refusal:
            await self._end(answered_with(refusal.status))
            raise
        await self._end(answered_with(200) if known is not None else answered_with(503) if is_last else REPEATED)
        return known

    async def _started(self) -> Process:
        if self._process is not None and self._process.has_ended:
            await self._end(NO_REQUEST)
        if self._process is None:
            self._process = await Process.start(process_context(), handle_changes, self._arguments, WRITER)
        return self._process

    async def _end(self, request: str) -> None:
        """End the process, whose changes became `request`."""
        if self._process is not None:
            self.restarts += 1
            self._on_end(await self._process.ended(WRITER, request))
            self._process = None

    async def close(self, seconds: float) -> None:
        """Make the changes that wait, but take no new ones; then end the process."""
        self._closing = True
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while self._changes or self._busy:
                    await asyncio.sleep(0.01)
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        if self._process is not None:
            await self._process.close(seconds)
