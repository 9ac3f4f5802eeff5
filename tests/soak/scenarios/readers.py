"""One writer against several readers: each snapshot is exactly one commit, and nothing that a process holds grows."""

from __future__ import annotations

import os
import signal
import struct
import sys
import threading
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from mmap import mmap
from pathlib import Path
from typing import Any

from perikope.index import commit as commits
from perikope.search.facade import Index, Results
from tests.durability import history
from tests.soak.resources import end_with_parent
from tests.soak.scenario import Trial, defect, scenario

READERS = 2
LEAST_ROUNDS = 0.5
"""Rounds of each reader per commit, at least: otherwise the commits do not count."""
PAUSE = 0.01
MOST_SEGMENTS = 4
"""So that commits cause merges."""
COUNTERS = ("begun", "finished")
"""What all processes share: the commit that the writer has begun last, and finished last."""


class Shared:
    """Numbers that forked processes share: two of the writer, and the rounds of each reader."""

    def __init__(self) -> None:
        self._memory = mmap(-1, 8 * (len(COUNTERS) + READERS))

    def __getitem__(self, place: int) -> int:
        return int(struct.unpack_from("<q", self._memory, 8 * place)[0])

    def __setitem__(self, place: int, value: int) -> None:
        struct.pack_into("<q", self._memory, 8 * place, value)


BEGUN, FINISHED, ROUNDS = 0, 1, 2


@scenario("readers", most=1_000_000, reduced=40)
def readers(trial: Trial) -> None:
    """A writer commits and merges while readers refresh, search and verify each snapshot; nothing they hold grows."""
    folder = trial.folder / "index"
    commits.MAX_SEGMENTS = MOST_SEGMENTS
    index = Index.create(folder)
    history.make_commit(index, 1)
    history.answers(index)  # loads the kernels
    index.close()
    shared = Shared()
    shared[BEGUN] = shared[FINISHED] = 1
    writer = fork(lambda: write(folder, shared), trial.folder / "writer.txt")
    processes = {fork(lambda n=n: read(folder, shared, n), trial.folder / f"reader-{n}.txt"): f"reader {n}" for n in range(READERS)}
    processes[writer] = "writer"
    try:
        while trial.goes_on() and all(map(runs, processes)):
            time.sleep(PAUSE)
            rounds = [shared[ROUNDS + n] for n in range(READERS)]
            if shared[FINISHED] > trial.operations and min(rounds) >= shared[FINISHED] * LEAST_ROUNDS:
                trial.did(shared[FINISHED] - trial.operations)
                trial.doing(f"commit {shared[FINISHED]}, {rounds} rounds of readers")
                trial.watch(folder, processes)
    finally:
        for process in processes:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
    for path in sorted(trial.folder.glob("*.txt")):
        if text := path.read_text():
            trial.fail(f"{path.stem}: {text}")
    trial.note(f"{shared[FINISHED]} commits, {sum(shared[ROUNDS + n] for n in range(READERS))} rounds of {READERS} readers")
    trial.require_flat()


def fork(task: Callable[[], None], log: Path) -> int:
    """Start a process that does a task until it is ended; an error is written to the log."""
    child = os.fork()
    if child == 0:
        try:
            end_with_parent()
            task()
        except BaseException:
            log.write_text(traceback.format_exc(limit=-4))
        finally:
            os._exit(1)
    return child


def runs(process: int) -> bool:
    """Whether a child process still runs."""
    return os.waitpid(process, os.WNOHANG) == (0, 0)


def write(folder: Path, shared: Shared) -> None:
    """Make commits without end."""
    index = Index.open(folder)
    while True:
        commit = shared[FINISHED] + 1
        shared[BEGUN] = commit
        history.make_commit(index, commit)
        shared[FINISHED] = commit


def read(folder: Path, shared: Shared, number: int) -> None:
    """Refresh an index without end; a thread searches it at the same time."""
    index = Index.open(folder)
    broken: list[str] = []
    threading.Thread(target=lambda: _search(index, broken), daemon=True).start()
    last = 0
    while True:
        finished = shared[FINISHED]
        refresh(index)
        commit = verify(index)
        assert last <= commit, f"commit {commit} was seen after commit {last}"
        assert finished <= commit <= shared[BEGUN], f"commit {commit} was seen; {finished} was finished, {shared[BEGUN]} begun"
        assert not broken, broken[0]
        last = commit
        shared[ROUNDS + number] += 1
        time.sleep(PAUSE)


def refresh(index: Index) -> None:
    """Refresh an index."""
    index.refresh()


def verify(index: Index) -> int:
    """Assert that the index shows exactly one commit, and that its hits are passages of that commit."""
    commit = history.verify(index)
    verify_hits(index.search(history.QUERY, model="bm25", k=20), commit)
    return commit


def verify_hits(results: Results, commit: int | None = None) -> None:
    """Assert that every hit is a passage of its document as the commit in its metadata wrote it."""
    for hit in results:
        written = hit.metadata["commit"]
        text = history.document(hit.document, written).text
        assert text[hit.start : hit.end] == hit.text, f"a hit in {hit.document!r} of commit {written} has the text {hit.text!r}"
        if commit is not None:
            known = history.content(commit).get(hit.document)
            assert known == written, f"{hit.document!r} at commit {commit} should be of commit {known}, and is of commit {written}"


def _search(index: Index, broken: list[str]) -> None:
    """Search while another thread refreshes: results are those of one snapshot, whichever it is."""
    try:
        while True:
            verify_hits(index.search(history.QUERY, model="qsf_v_title", k=20))
            time.sleep(PAUSE)
    except BaseException:
        broken.append(traceback.format_exc(limit=-4))


@defect(readers, "a reader keeps every snapshot", reported="mappings grow")
def _leak() -> None:
    kept = []

    def keep(index: Index) -> None:
        index.refresh()
        kept.append(Index.open(index.folder).snapshot)

    sys.modules[__name__].refresh = keep  # type: ignore[attr-defined]


@defect(readers, "the writer loses a document", reported="len(index) == len(expected)")
def _lose() -> None:
    original = history.make_changes

    def change(index: Index, commit: int) -> None:
        original(index, commit)
        if commit % 5 == 0:
            index.delete([next(id for id in history.content(commit) if id != history.MARKER)])

    history.make_changes = change


@defect(readers, "a refresh does nothing", reported="commit 1 was seen; ")
def _stay() -> None:
    sys.modules[__name__].refresh = lambda index: None  # type: ignore[attr-defined]


@defect(readers, "metadata are those of another commit", reported="has the text")
def _mix() -> None:
    from perikope.index.segments import Segment

    original = Segment.metadata

    def metadata(segment: Segment, *arguments: Any) -> dict[str, Any]:
        found = original(segment, *arguments)
        return found | {"commit": found["commit"] - 1} if found["commit"] > 3 else found

    Segment.metadata = metadata  # type: ignore[method-assign, assignment]
