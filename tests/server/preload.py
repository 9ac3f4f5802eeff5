"""What the processes of a test server load: the kernels of one search, and an operation that misbehaves.

The operation `probe` is only declared in programs that import this module, never in the process of the tests.
"""

from __future__ import annotations

import gc
import os
import signal
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import perikope.server.handler
import perikope.server.writer  # noqa: F401
from perikope import Index
from perikope.core.checkpoints import checkpoint
from perikope.core.options import Options, option
from perikope.core.parameters import Range
from perikope.core.values import Real, Text, Whole
from perikope.index.commit import IndexWriter
from perikope.index.reader import Snapshot
from perikope.service.operations import GivenOptions, load_operations, operation

load_operations()
while os.path.exists(os.environ.get("PERIKOPE_TEST_HELD", "")):
    time.sleep(0.01)  # as long as kernels are compiled


@dataclass(frozen=True, kw_only=True)
class ProbeRequest(Options):
    """How to misbehave."""

    kind: str = option("", Text(), "What to do.")
    seconds: float = option(0.0, Real(Range(0)), "For how long.")
    size: int = option(0, Whole(Range(0)), "Bytes of the answer.")


@dataclass(frozen=True, slots=True)
class Probed:
    """The answer of the operation."""

    pid: int
    text: str


@operation("probe", ProbeRequest, Probed, example={})
def probe(index: Index, given: GivenOptions) -> Probed:
    """Misbehave."""
    ends = time.monotonic() + given.own.seconds
    match given.own.kind:
        case "steps":
            while time.monotonic() < ends:
                time.sleep(0.01)
                checkpoint("rank")
        case "stuck":
            while time.monotonic() < ends:
                pass
        case "sleep":
            time.sleep(given.own.seconds)
        case "crash":
            os.kill(os.getpid(), signal.SIGKILL)
        case "fail":
            raise RuntimeError("a text of a user, in /some/folder")
        case "collect":
            return Probed(os.getpid(), str(len(gc.get_objects())))
    return Probed(os.getpid(), "x" * given.own.size)


def _commit_and_die(self: IndexWriter) -> Snapshot:
    """Make a commit. If there is a file that says so, the process ends before or after it, once."""
    committed = None
    for moment in ("before", "after"):
        if moment == "after":
            committed = _commit(self)
        order = self.folder.parent / f"die-{moment}-commit"
        if order.exists():
            order.unlink()
            os.kill(os.getpid(), signal.SIGKILL)
    assert committed is not None
    return committed


_commit = IndexWriter.commit
IndexWriter.commit = _commit_and_die  # type: ignore[method-assign]

with tempfile.TemporaryDirectory() as folder, Index.create(Path(folder, "index")) as small:
    small.add([{"id": "a", "passages": ["magnetic pump"]}])
    small.commit()
    list(small.search("magnetic"))
