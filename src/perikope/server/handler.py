"""A process that runs operations: it receives requests one by one, and sends answers.

The system ends the process if a request takes longer than its time and two grace periods, whatever the process does and
whether the process that speaks HTTP still lives.
"""

from __future__ import annotations

import contextlib
import errno
import gc
import json
import secrets
import signal
import socket
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, is_dataclass
from pathlib import Path
from typing import Any

import orjson

from perikope.core.access import files_forbidden
from perikope.core.checkpoints import watched
from perikope.core.errors import (
    IndexFormatError,
    InputError,
    LockedError,
    MissingExtra,
    NotFound,
    PerikopeError,
    ShardError,
    UnreadableQuery,
)
from perikope.index.reader import Snapshot
from perikope.search.facade import Index
from perikope.search.options import OPTIONS
from perikope.search.recipes import load_recipe
from perikope.server.frames import Message, packed, receive
from perikope.server.logs import incident_of
from perikope.server.opening import FolderOpener, Opener
from perikope.server.problems import Refusal
from perikope.server.served import DAMAGED
from perikope.service.answers import PartialAnswer
from perikope.service.operations import GivenOptions, Operation, load_operations
from perikope.service.originals import originals_in
from perikope.service.requests import naming_options, read_body, read_query_string

DEADLINE = "the request took longer than the server allows; ask for fewer documents, or a simpler query"
GRACE = 0.5
"""Seconds after the end of its time that a request may take to notice it, before its process is ended."""
LEFT_TO_SERVER = ("SIGINT", "SIGTERM", "SIGHUP")
"""Signals that only the process that speaks HTTP acts on. A terminal sends some of them to all processes."""
PING = "ping"
"""What a process is asked to find out whether it lives."""
STATUS = "status"
"""The operation that prepares a commit and tells how an index is; no HTTP request can ask for it."""
COMMAND = "command line"
"""The operation that runs a command of the user of the server; no HTTP request can ask for it."""
MISSING = "missing_shards"
"""The key under which a process says which shards of a cluster an answer lacks."""
PREPARED = "prepared"
"""What a message says that comes before the answer to a change: the change is ready, and its commit begins."""


class DeadlineExceeded(Exception):
    """A request has no time left."""


@dataclass(slots=True)
class Stages:
    """The time that each step of a request took, and the time when the request must end."""

    ends: float
    """The time at which the request must end, by `time.monotonic`."""
    seconds: dict[str, float] = field(default_factory=dict)
    _step: str = "read"
    _since: float = field(default_factory=time.monotonic)

    def begin(self, step: str) -> None:
        """A step begins or continues. Raises `DeadlineExceeded` if the time is over."""
        now = time.monotonic()
        self.seconds[self._step] = self.seconds.get(self._step, 0.0) + now - self._since
        self._step, self._since = step, now
        if now > self.ends:
            raise DeadlineExceeded


@dataclass(frozen=True, slots=True)
class RequestLimits:
    """Limits of one request."""

    k: int
    batch: int

    def check(self, operation: Operation, given: GivenOptions) -> None:
        """Raise `Refusal` if a request asks for too much."""
        if "k" not in operation.searches:
            return
        recipe = load_recipe(given.own.recipe).options if given.own.recipe else {}
        asked = sum(int(given.search.get(name, recipe.get(name, OPTIONS[name].default))) for name in ("k", "offset"))
        if asked > self.k:
            hint = f"; recipe sets k to {recipe['k']}: give k too" if "k" in recipe and "k" not in given.search else ""
            raise Refusal(400, f"k and offset together must be at most {self.k} on this server, not {asked}{hint}")
        queries = len(getattr(given.own, "queries", ()))
        if queries > self.batch:
            raise Refusal(400, f"a batch has at most {self.batch} queries on this server; divide it")
        if asked * queries > self.k:
            raise Refusal(400, f"a batch has at most {self.k} results on this server, not {asked} for each of {queries} queries; divide it")


def can_be_partial(operation: Operation) -> bool:
    """Whether an answer of the operation can say that it lacks shards of a cluster."""
    return isinstance(operation.answer, type) and issubclass(operation.answer, PartialAnswer)


RunCommand = Callable[[Index, Sequence[str], Sequence[bool], int], dict[str, Any]]
"""Runs a command on an open index: its arguments, whether its streams are terminals, and how wide these are."""


class Handler:
    """Runs operations on indexes, which it opens when they are first asked for."""

    def __init__(
        self,
        folders: Mapping[str, str],
        limits: RequestLimits,
        originals: Mapping[str, str] | None = None,
        run_command: RunCommand | None = None,
        opener: Opener | None = None,
    ) -> None:
        """Handle requests for indexes, given by name with their folders.

        `originals` has the folders of documents whose files requests may read, by the name of the index. `run_command`
        runs commands of the user of the server. `opener` opens the indexes if they are not in these folders.
        """
        self._opener = opener or FolderOpener(folders)
        self._run_command = run_command
        self.folders, self.limits, self.operations, self.originals = dict(folders), limits, load_operations(), dict(originals or {})
        self._open: dict[str, tuple[int, Index]] = {}

    def index(self, name: str, generation: int) -> Index:
        """An open index that shows at least the commit that was the last one when the request came.

        `generation` counts the commits that the server has noticed. If it is the one of the last request, nothing is
        read. So all steps of a request see one commit, and a request that follows a change sees the change.
        """
        known = self._open.get(name)
        if known is None:
            known = generation, self._opener.open(name, generation)
        elif known[0] != generation:
            self._opener.show(name, known[1], generation)
            known = generation, known[1]
        self._open[name] = known
        return known[1]

    def answer(self, meta: Mapping[str, Any], body: bytes) -> Message:
        """Run the operation of a request. Returns what the server must know about the answer, and the answer."""
        facts, content = self._answer(meta, body)
        if (known := self._open.get(meta["index"])) is not None:
            facts |= self._opener.facts(meta["index"], known[1])
        return facts, content

    def _answer(self, meta: Mapping[str, Any], body: bytes) -> Message:
        stages = Stages(time.monotonic() + float(meta["seconds"]))
        try:
            if meta["operation"] == STATUS:
                known = self._open.get(meta["index"])
                watched_index = known[1] if known is not None else self.index(meta["index"], 0)
                return {"status": 200}, encode(self._opener.status(meta["index"], watched_index, meta["generation"]))
            if meta["operation"] == COMMAND and self._run_command is not None:
                return {"status": 200}, self._command(self._run_command, meta, body, stages)
            operation = self.operations[meta["operation"]]
            given = read_query_string(operation, meta["query"]) if meta["method"] == "GET" else read_body(operation, body)
            self.limits.check(operation, given)
            with watched(stages.begin), originals_in(self.originals.get(meta["index"], "")):
                stages.begin("open")
                snapshot, answer = self._run(operation, given, meta)
                stages.begin("write")
            content = encode(answer)
            with contextlib.suppress(DeadlineExceeded):
                stages.begin("done")
            facts = {
                "status": 200,
                "stages": stages.seconds,
                "commit": snapshot.manifest.generation,
                "model": getattr(answer, "model", ""),
            }
            if snapshot.missing_shards:
                facts[MISSING] = list(snapshot.missing_shards)
            return facts, content
        except Exception as error:
            return refused(error, self.folders, stages.seconds)

    def _run(self, operation: Operation, given: GivenOptions, meta: Mapping[str, Any]) -> tuple[Snapshot, Any]:
        """What was searched, and the answer. A damaged index is opened anew once: its files may be repaired.

        Shards of a cluster may be left out, if it was opened so and the answer can say it.
        """

        def run(index: Index) -> tuple[Snapshot, Any]:
            answer = operation.run(index, given)
            return index.snapshot, answer

        for is_last in (False, True):
            try:
                index = self.index(meta["index"], meta["generation"])
                with naming_options(given):
                    return index.ask_answering(run) if can_be_partial(operation) else run(index)
            except IndexFormatError:
                self._open.pop(meta["index"], None)
                if is_last:
                    raise
        raise AssertionError

    def _command(self, run: RunCommand, meta: Mapping[str, Any], body: bytes, stages: Stages) -> bytes:
        """What a command prints, as JSON."""
        asked = json.loads(body)
        with watched(stages.begin):
            index = self.index(meta["index"], meta["generation"])
            return json.dumps(run(index, asked["arguments"], asked["terminals"], asked["columns"])).encode()


def encode(answer: Any) -> bytes:
    """An answer as JSON."""
    try:
        return orjson.dumps(answer)
    except (TypeError, orjson.JSONEncodeError):
        return _encode_slowly(answer)


def _encode_slowly(answer: Any) -> bytes:
    """An answer with values that orjson refuses: whole numbers of more than 64 bits, and halves of characters."""
    return json.dumps(asdict(answer) if is_dataclass(answer) and not isinstance(answer, type) else answer).encode()


def refused(error: Exception, folders: Mapping[str, str], stages: Mapping[str, float] | None = None) -> Message:
    """The answer to a request that failed. It has no path of this machine and no configuration; these go to the log."""
    incident = {} if _is_of_client(error) else {"incident": _incident(error)}
    refusal = _refusal_for(error, folders, incident.get("incident", {}).get("incident", ""))
    damaged = {DAMAGED: error.file} if isinstance(error, IndexFormatError) and not isinstance(error, LockedError) else {}
    return {"status": refusal.status, "headers": refusal.headers, "stages": dict(stages or {}), **incident, **damaged}, refusal.body


_FAILURES: tuple[tuple[Callable[[Exception], bool], str], ...] = (
    (lambda error: getattr(error, "errno", None) in (errno.EROFS, errno.ENOSPC, errno.EDQUOT), "the index cannot be written"),
    (lambda error: isinstance(error, PermissionError), "the server lacks a permission for the files of the index"),
    (lambda error: isinstance(error, (IndexFormatError, OSError)), "the index cannot be read"),
)
"""What a request is told about an error of the server, by the kind of error."""


def _is_of_client(error: Exception) -> bool:
    """Whether the client can do something about an error, or it will pass."""
    is_known = isinstance(error, (Refusal, DeadlineExceeded, LockedError, PerikopeError))
    return is_known and (not isinstance(error, IndexFormatError) or isinstance(error, LockedError))


def _incident(error: Exception) -> dict[str, Any]:
    has_text = not isinstance(error, (IndexFormatError, OSError, MemoryError))
    return incident_of(error, secrets.token_hex(4), has_text=has_text)


def _refusal_for(error: Exception, folders: Mapping[str, str], incident: str) -> Refusal:
    if isinstance(error, Refusal):
        return error
    if isinstance(error, DeadlineExceeded):
        return Refusal(504, DEADLINE)
    if isinstance(error, LockedError):
        return Refusal(409, "another program is writing to the index; try again later", {"Retry-After": "1"})
    if isinstance(error, MissingExtra):
        return Refusal(400, "the server lacks a package that this request needs; choose another model, or tell the operator")
    if isinstance(error, ShardError):
        return Refusal(503, str(error), {"Retry-After": "2"})
    if isinstance(error, PerikopeError) and not incident:
        # The file of an error is one of the server, since requests cannot name files.
        message = error.reason if isinstance(error, InputError) else str(error)
        place = (error.start, error.end) if isinstance(error, UnreadableQuery) else None
        return Refusal(404 if isinstance(error, NotFound) else 400, without_paths(message, folders), place=place)
    if isinstance(error, MemoryError):
        return Refusal(503, f"the server has too little memory for this request (incident {incident})", {"Retry-After": "1"})
    what = next((text for kind, text in _FAILURES if kind(error)), "the server failed")
    return Refusal(500, f"{what}; tell the operator the number of the incident: {incident}")


def without_paths(message: str, folders: Mapping[str, str]) -> str:
    """A message that names indexes instead of their folders."""
    for name, folder in folders.items():
        for written in {folder, str(Path(folder).resolve())}:
            message = message.replace(written, name)
    return message


def handle_requests(
    connection: socket.socket,
    folders: Mapping[str, str],
    limits: RequestLimits,
    originals: Mapping[str, str] | None = None,
    run_command: RunCommand | None = None,
    opener: Opener | None = None,
) -> None:
    """The main function of a process that reads: answers requests until the other side ends."""
    prepare_process()
    handler = Handler(folders, limits, originals, run_command, opener)
    for name in folders:
        # An index that cannot be opened is a problem of the requests that ask for it.
        with contextlib.suppress(PerikopeError, OSError):
            handler.index(name, 0)
    with contextlib.suppress(OSError), files_forbidden():
        connection.sendall(packed({"ready": True}))
        while (message := receive(connection)) is not None:
            with ended_after(message[0]):
                connection.sendall(packed({"ready": True}) if PING in message[0] else packed(*handler.answer(*message)))


def prepare_process() -> None:
    """Leave signals to the process that speaks HTTP, and warnings to nobody.

    The garbage collector leaves alone what the fork server has loaded: looking through it took a tenth of a second, in
    which a request waited, and copied shared memory.
    """
    gc.freeze()
    leave_signals()
    if hasattr(signal, "SIGALRM"):
        signal.signal(signal.SIGALRM, signal.SIG_DFL)  # ends the process
    warnings.simplefilter("ignore")


def leave_signals() -> None:
    """Leave signals to the process that speaks HTTP, which ends this one by closing its connection."""
    for name in LEFT_TO_SERVER:
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_IGN)


@contextlib.contextmanager
def ended_after(meta: Mapping[str, Any]) -> Iterator[None]:
    """The system ends the process if the block takes longer than a request may, even while it runs compiled code.

    The process that speaks HTTP does the same a little earlier. It may have ended before.
    """
    if not hasattr(signal, "setitimer"):
        yield
        return
    signal.setitimer(signal.ITIMER_REAL, float(meta.get("seconds", 0)) + 2 * GRACE)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
