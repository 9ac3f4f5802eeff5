"""Shards on Ray: each shard is held by several actors, its replicas, on different nodes.

A question goes to one replica. If it has no answer after the time in which 95 % of the last questions had theirs, it is
sent to another replica as well, and the first answer counts. A replica that fails is asked again later; others
answer meanwhile. A question without an answer at the deadline is an error that names the shard. No answer is short.
"""

from __future__ import annotations

import copy
import re
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import ray
from ray.exceptions import ActorDiedError, GetTimeoutError, RayError, RayTaskError

from perikope.cluster.locations import is_url
from perikope.cluster.missing import DEADLINE, MissingShards
from perikope.cluster.shard import Message, ShardSnapshot
from perikope.cluster.storage import StoredCluster, folder_at, remove_old_copies
from perikope.core.arrays import Array
from perikope.core.errors import PerikopeError, ShardError
from perikope.index.manifest import Manifest

_KEPT_GENERATIONS = 2
"""The number of generations that a replica keeps open: searches that run during a commit finish on the old one."""
_FIRST_DELAY, _LEAST_DELAY = 0.25, 0.005
"""Seconds until a question is asked twice: before enough answers are known, and at least."""
_MEASURED = 256
"""The number of answers whose times are kept."""
_ENOUGH = 32
"""From this number of answers on, the delay is measured."""
_PAUSE = 1.0
"""Seconds for which a replica that has failed is not asked if there is another one."""


CONTROL = "control"
"""The group of calls that do not wait for questions."""
_STATUS_SECONDS = 0.5
"""Seconds that a replica may take to say that it lives."""


FindReplica = Callable[[int, int], Any]


class ShardReplica:
    """The actor that holds one shard. It opens a generation when it is first asked about it, beside the one before."""

    def __init__(self, place: str, number: int) -> None:
        self._place, self._number = place, number
        self._problem: Exception | None = None
        self._opened: dict[str, ShardSnapshot] = {}
        self._lock, self._is_opening = threading.Lock(), threading.Lock()

    def answer(self, generation: str, message: Message, manifest: Manifest | None = None) -> tuple[bool, Any]:
        """Whether the generation is open, and the answer to a question about it. With its manifest, it is opened."""
        snapshot = self._opened.get(generation)
        if snapshot is None and manifest is None:
            return False, None
        return True, (snapshot or self._open(generation, manifest)).answer(message)

    def place(self) -> str:
        """Where the cluster is: its folder, or its address in an object store."""
        return self._place

    def prepare(self, generation: str, manifest: Manifest) -> bool:
        """Begin to open a generation; returns whether it is open. Raises the error of the last attempt."""
        if generation in self._opened:
            return True
        problem, self._problem = self._problem, None
        if problem is not None:
            raise problem
        if not self._is_opening.locked():
            threading.Thread(target=self._prepare, args=(generation, manifest), daemon=True).start()
        return False

    def _prepare(self, generation: str, manifest: Manifest) -> None:
        if self._is_opening.acquire(blocking=False):
            try:
                # Counting what the coordinator asks for first takes time proportional to terms.
                _ = self._open(generation, manifest).description
            except Exception as error:
                self._problem = error
            finally:
                self._is_opening.release()

    def _open(self, generation: str, manifest: Manifest | None) -> ShardSnapshot:
        assert manifest is not None
        with self._lock:
            if generation not in self._opened:
                # Segments that did not change are shared.
                before = [segment for snapshot in self._opened.values() for segment in snapshot.segments]
                self._opened[generation] = ShardSnapshot(self._files(manifest), manifest, self._number, before)
                for old in [*self._opened][:-_KEPT_GENERATIONS]:
                    del self._opened[old]
            return self._opened[generation]

    def _files(self, manifest: Manifest) -> Path:
        """The folder with the files of the shard. Those in an object store are copied, if they are not there yet."""
        folder = folder_at(self._place)
        if is_url(self._place):
            StoredCluster(self._place).fetch(manifest, folder, [self._number])
            remove_old_copies(folder, manifest, [self._number])
        return folder


def replica_name(name: str, shard: int, replica: int) -> str:
    """The name of an actor in the Ray cluster."""
    return f"perikope {name} shard {shard} replica {replica}"


def name_in(actor: str) -> str | None:
    """The name under which a cluster was started, in the name of an actor; None if it is no replica.

    >>> name_in(replica_name("the manuals", 0, 1)), name_in("another")
    ('the manuals', None)
    """
    found = re.fullmatch(r"perikope (.*) shard \d+ replica \d+", actor)
    return found and found[1]


@dataclass(slots=True, eq=False)
class _Replica:
    """What a coordinator knows of a replica."""

    actor: Any
    shard: int
    number: int
    pending: int = 0
    """The number of questions that were sent to it and have no answer."""
    sent: int = 0
    """The number of all questions that were sent to it."""
    paused_until: float = 0.0


@dataclass(slots=True, eq=False)
class _Question:
    """A question that has no answer yet."""

    shard: int
    message: Message
    began: float
    sent: dict[Any, _Replica] = field(default_factory=dict)
    """The replicas that were asked, by the reference of the answer."""
    tried: list[_Replica] = field(default_factory=list)
    hedged: bool = False


@dataclass(slots=True)
class Figures:
    """What a coordinator has counted since it was made."""

    questions: int = 0
    hedges: int = 0
    """Questions that were sent to a second replica because the first was slow."""
    failures: int = 0
    """Questions that a replica did not answer because it died or could not be reached."""
    given_up: int = 0
    """Questions that no replica answered before the deadline."""


class RayShards:
    """The shards of a cluster on Ray at one generation; see `perikope.cluster.snapshot.Shards`.

    `replicas` has the actors of each shard. `deadline` is the time for one question, in seconds. `find` returns the
    actor that is now the replica of a shard, both given by number, or None. It is called if an actor has died for good.
    """

    def __init__(
        self, manifest: Manifest, replicas: Sequence[Sequence[Any]], *, deadline: float = DEADLINE, find: FindReplica | None = None
    ) -> None:
        self._manifest, self.deadline, self._find = manifest, deadline, find
        self._generation = _generation_of(manifest)
        self._replicas = [[_Replica(actor, shard, number) for number, actor in enumerate(actors)] for shard, actors in enumerate(replicas)]
        self._lock = threading.Lock()
        self._times: deque[float] = deque(maxlen=_MEASURED)
        self._late: dict[Any, _Replica] = {}
        self._probes: dict[int, list[Any]] = {}
        self.missing = MissingShards(self._has_answered)
        self.figures = Figures()
        self.problem: Exception | None = None
        """Why a replica could not open the generation that it was last asked to open."""

    def at(self, manifest: Manifest) -> RayShards:
        """The same shards at another generation, which replicas open when they are first asked about it.

        Both share what is known of the replicas, and what was counted.
        """
        other = copy.copy(self)
        other._manifest, other._generation = manifest, _generation_of(manifest)
        return other

    def prepare(self, manifest: Manifest) -> list[tuple[int, int]]:
        """Let all replicas open a generation, without waiting for it.

        Returns two numbers per shard: the replicas that answer, and those that have the generation open.
        """
        generation = _generation_of(manifest)
        self.problem = None
        replicas = [replica for of_shard in self._replicas for replica in of_shard]
        asked = {replica.actor.prepare.options(concurrency_group=CONTROL).remote(generation, manifest): replica for replica in replicas}
        answered = [[0, 0] for _ in self._replicas]
        for reference in ray.wait([*asked], num_returns=len(asked), timeout=_STATUS_SECONDS)[0] if asked else []:
            replica = asked[reference]
            try:
                is_open = ray.get(reference)
            except RayTaskError as error:
                is_open, self.problem = False, error.cause if isinstance(error.cause, PerikopeError) else error
            except RayError as error:
                self._find_again(replica, error)
                continue
            answered[replica.shard][0] += 1
            answered[replica.shard][1] += bool(is_open)
        return [(alive, ready) for alive, ready in answered]

    def _find_again(self, replica: _Replica, error: RayError) -> None:
        """Look for the actor of a replica if it has died for good: it may have been stopped, and started again."""
        if self._find is not None and isinstance(error, ActorDiedError):
            replica.actor = self._find(replica.shard, replica.number) or replica.actor

    def _has_answered(self, shard: int) -> bool:
        """Whether a replica of a shard has answered since the last call, which asked all of them whether they live."""
        asked = self._probes.get(shard, [])
        answered = ray.wait(asked, num_returns=len(asked), timeout=0)[0] if asked else []
        self._probes[shard] = [replica.actor.answer.remote("", None) for replica in self._replicas[shard]]
        return any(_is_answer(reference) for reference in answered)

    @property
    def delay(self) -> float:
        """Seconds after which a question is sent to a second replica: the 95th percentile of the last answers."""
        times = sorted(self._times)
        return max(times[int(0.95 * len(times))], _LEAST_DELAY) if len(times) >= _ENOUGH else _FIRST_DELAY

    def ask(self, messages: Sequence[tuple[int, Message]]) -> list[Any]:
        """The answers of shards, given by number, to messages; see `Shards.ask`."""
        began = time.monotonic()
        delay = self.delay
        questions = [_Question(shard, message, began) for shard, message in messages]
        answers: dict[int, Any] = {}
        with self._lock:
            self._forget_late()
            self.figures.questions += len(questions)
        for question in questions:
            self._send(question)
        open = dict(enumerate(questions))
        while open:
            waiting = {reference: number for number, question in open.items() for reference in question.sent}
            now = time.monotonic()
            if now - began >= self.deadline:
                self._give_up(open)
            due = began + (self.deadline if all(question.hedged for question in open.values()) else delay)
            ready = ray.wait([*waiting], timeout=max(due - now, 0.001))[0] if waiting else []
            for reference in ready:
                number = waiting[reference]
                if number in open and self._receive(open[number], reference, answers, number):
                    self._leave(open.pop(number))
            if time.monotonic() - began >= delay:
                for question in open.values():
                    self._hedge(question)
            if not waiting and not ready:
                time.sleep(0.01)
        return [answers[number] for number in range(len(questions))]

    def _send(self, question: _Question) -> bool:
        """Send a question to the replica that has the fewest questions without an answer, but not twice to one."""
        now = time.monotonic()
        with self._lock:
            able = [replica for replica in self._replicas[question.shard] if replica not in question.tried]
            if not able:
                return False
            chosen = min(able, key=lambda replica: (replica.paused_until > now, replica.pending, replica.sent))
            chosen.pending += 1
            chosen.sent += 1
        question.tried.append(chosen)
        try:
            question.sent[chosen.actor.answer.remote(self._generation, question.message)] = chosen
        except RayError as error:
            self._failed(question, chosen, error)
        return True

    def _hedge(self, question: _Question) -> None:
        if not question.hedged:
            question.hedged = True
            if self._send(question):
                with self._lock:
                    self.figures.hedges += 1

    def _receive(self, question: _Question, reference: Any, answers: dict[int, Any], number: int) -> bool:
        """Take over the answer of a replica; returns whether the question is answered."""
        replica = question.sent.pop(reference)
        try:
            is_open, answer = ray.get(reference)
        except RayTaskError as error:
            with self._lock:
                replica.pending -= 1
            raise error.cause if isinstance(error.cause, PerikopeError) else error from None
        except RayError as error:
            self._failed(question, replica, error)
            return False
        if not is_open:
            # A replica that was started anew, or a new generation.
            question.sent[replica.actor.answer.remote(self._generation, question.message, self._manifest)] = replica
            return False
        with self._lock:
            replica.pending -= 1
            self._times.append(time.monotonic() - question.began)
        answers[number] = writable(answer)
        return True

    def _failed(self, question: _Question, replica: _Replica, error: RayError) -> None:
        """Note that a replica has failed, and ask another. If all have failed, they are asked again after a pause."""
        self._find_again(replica, error)
        with self._lock:
            replica.pending -= 1
            replica.paused_until = time.monotonic() + _PAUSE
            self.figures.failures += 1
        if not self._send(question) and not question.sent:
            time.sleep(min(0.05, self.deadline))
            question.tried.clear()
            if time.monotonic() - question.began < self.deadline:
                self._send(question)

    def _leave(self, question: _Question) -> None:
        """Remember the answers that are no longer needed, so that their replicas count as busy until they arrive."""
        with self._lock:
            self._late.update(question.sent)

    def _forget_late(self) -> None:
        if not self._late:
            return
        for reference in ray.wait([*self._late], num_returns=len(self._late), timeout=0)[0]:
            replica = self._late.pop(reference)
            replica.pending -= 1
            try:
                ray.get(reference, timeout=0)
            except (RayTaskError, GetTimeoutError):
                continue
            except RayError:
                replica.paused_until = time.monotonic() + _PAUSE

    def _give_up(self, open: dict[int, _Question]) -> None:
        for question in open.values():
            self._leave(question)
        with self._lock:
            self.figures.given_up += len(open)
        shards = sorted({question.shard for question in open.values()})
        named = f"shard {shards[0]} has" if len(shards) == 1 else f"shards {', '.join(map(str, shards))} have"
        raise ShardError(f"{named} not answered within {self.deadline:g} s; the answer would be incomplete", shards)


def _generation_of(manifest: Manifest) -> str:
    """What identifies a generation in questions."""
    return f"{manifest.generation}-{manifest.fingerprint}"


def _is_answer(reference: Any) -> bool:
    """Whether a reference that is ready holds an answer, and no failure of a replica."""
    try:
        ray.get(reference)
    except RayError:
        return False
    return True


def writable(answer: Any) -> Any:
    """The answer with arrays that can be changed, as those of a snapshot on this machine; Ray's arrays cannot."""
    if isinstance(answer, np.ndarray):
        values: Array = answer if answer.flags.writeable else answer.copy()
        return values
    if type(answer) in (tuple, list):
        return type(answer)(map(writable, answer))
    if type(answer) is dict:
        return {key: writable(value) for key, value in answer.items()}
    return answer
