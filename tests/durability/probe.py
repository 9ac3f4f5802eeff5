"""Reads everything in an index that may be damaged or forged, in a separate process, so that the tests notice a crash.

    python -m tests.durability.probe                  compiles the kernels of the process (`make checked-kernels`)
    python -m tests.durability.probe FOLDER MODULE    the process

MODULE has the functions `problems`, `look` and `change`, which read and change the folder. Those of this module read
and change an index. The process prints one line when it has read the undamaged index. Then each line on standard input
is a harm (`harms.py`) as JSON. It is done to a copy of the index in FOLDER, the copy is read, and one line with the
outcome is printed.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import select
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from perikope.browse.explanation import render
from perikope.browse.models import MODELS
from perikope.core.errors import PerikopeError
from perikope.document.tree import Document, Kind, TreeBuilder
from perikope.fetch.filters import known_fields, mask, parse_filter
from perikope.index.check import check
from perikope.index.commit import IndexWriter
from perikope.search.facade import Index
from tests.durability import harms

QUERY = "pump rotor valve"
TERMS = ["en:pump", "en:rotor", "fr:valv", "en:absent", "en:seal"]
PARTS = ["", "claims", "abstract"]
FILTERS = ["year=2012", "year!=2012", "by.id=*", "year<2015", "ipc=G06F17", "ipc=H*", "id=a|d"]
MOST_PROCESSOR_SECONDS = 120
"""Processor time after which a process that reads one harmed index counts as hanging; reading takes under a second."""
MOST_IDLE_SECONDS = 120
"""Time after which a process counts as hanging that sleeps and uses no processor at all."""


def small_index(folder: Path) -> None:
    """Three segments: one with parts, languages, ids, tombstones and frequencies above a byte; two smaller ones."""
    index = Index.create(folder)
    index.add([_rich("a", 300), _rich("b", 2), _rich("c", 1), _rich("gone", 3)])
    index.commit()
    index.add([_plain("d", "pump and seal"), _plain("e", "rotor of the valve")])
    index.commit()
    index.delete(["gone"])
    index.add([_rich("f", 1)])
    index.commit()
    assert [segment.tombstones is not None for segment in index._snapshot.segments] == [True, False, False]


def _rich(id: str, often: int) -> Document:
    builder = TreeBuilder(
        id, title=f"Pumps {id}", metadata={"year": 2010 + often, "ipc": ["G06F 17/30", "H04L 9/00"], "by": {"id": id}}, cites=["x"]
    )
    builder.passage("The rotor of the pump " + "pump " * often, id="p1")
    with builder.span(Kind.SECTION, "sec", part="claims", id="s1"):
        builder.title("A valve")
        builder.passage("pump " * often + "with a seal")
        with builder.span(Kind.SECTION, "sec", language="fr"):
            builder.title("Pompe")
            builder.passage("la valve et le pump", refs=["p1"])
    builder.source, builder.source_hash = f"{id}.md", "0123"
    return builder.build()


def _plain(id: str, text: str) -> Document:
    builder = TreeBuilder(id, title="Plain")
    builder.passage(text)
    return builder.build()


def look(folder: Path) -> str:
    """A checksum of everything that can be read; raises the errors of reading."""
    index = Index.open(folder)
    snapshot = index._snapshot
    seen: list[object] = [len(index), index.passages, index.languages]
    for model in (name for name, definition in MODELS.items() if not definition.needs_store):
        results = index.search(QUERY, model=model, k=50)
        # The last results are in short documents. The explanation of a long one lists hundreds of occurrences, which
        # takes more time than everything else together and reads nothing more from the index.
        seen += [results.names(), list(results), [render(results.explain(row)) for row in range(len(results))[-3:]]]
    for name, _ in index.search(QUERY, k=2).names():
        seen.append(render(index.explain(QUERY, name)))
    seen.append(str(snapshot.statistics(TERMS)))
    seen += [str(snapshot.part_statistics(TERMS, part)) for part in PARTS]
    for filter in FILTERS:
        seen += [known_fields(snapshot), [mask(segment, parse_filter(filter)).tolist() for segment in snapshot.segments]]
    for segment in snapshot.segments:
        for document in range(segment.documents):
            seen += [segment.tokens(document).tolist(), segment.text(document), segment.record(document), segment.source(document)]
            seen += [segment.document_id(document), snapshot.find_document(segment.document_id(document))]
            seen += [segment.passage_id(document, passage) for passage in segment.passages_of(document)]
    return f"{zlib.crc32(repr(seen).encode('utf-8', 'surrogatepass')):08x}"


def change(folder: Path) -> None:
    """Delete, replace, add, commit and merge, which read the whole index."""
    with IndexWriter(folder) as writer:
        writer.delete(["b"])
        writer.add([_rich("a", 2), _rich("g", 1)], replace=True)
        writer.commit()
        writer.compact()


def problems(folder: Path) -> list[str]:
    """The problems that checking finds."""
    return list(check(folder).problems)


def examine(folder: Path, changing: bool, module: Any) -> dict[str, Any]:
    """The outcome of each step by its name; an error that is no `PerikopeError` and no `OSError` counts as `raised`."""
    outcome: dict[str, Any] = {}
    steps = {"check": lambda: module.problems(folder), "look": lambda: module.look(folder)}
    if changing:
        steps |= {"change": lambda: module.change(folder), "look again": lambda: module.look(folder)}
    for step, do in steps.items():
        try:
            outcome[step] = do()
        except (PerikopeError, OSError) as error:
            outcome[f"{step} refused"] = str(error)
        except Exception:
            outcome["raised"] = f"{step}: {traceback.format_exc()}"
    return outcome


class Probe:
    """The caller's side: sends harms to the process and yields their outcomes; that the process died or hung is one."""

    def __init__(self, folder: Path, module: str = __name__) -> None:
        self._folder, self._module = folder, module
        self._process: subprocess.Popen[str] | None = None

    def run(self, jobs: Iterable[dict[str, Any]]) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
        """Each harm with its outcome."""
        for job in jobs:
            process = self._process = self._process or self._start()
            assert process.stdin is not None
            assert process.stdout is not None
            with contextlib.suppress(BrokenPipeError):
                process.stdin.write(json.dumps(job) + "\n")
                process.stdin.flush()
            answers = _wait_for_line(process)
            line = process.stdout.readline() if answers else ""
            if line:
                yield job, json.loads(line)
            else:
                self.close()
                yield job, {"raised": f"died with {process.returncode}" if answers else "hung"}

    def close(self) -> None:
        """End the process; the next harm starts it again."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def _start(self) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "tests.durability.probe", str(self._folder), self._module]
        root = Path(__file__).parents[2]
        # Kernels that check bounds turn a read just outside an array, which might go unnoticed, into an error. They are
        # other machine code, so they have a cache of their own.
        cache = str(root / ".pytest_cache" / "kernels-with-bounds")
        settings = {**os.environ, "NUMBA_BOUNDSCHECK": "1", "PERIKOPE_CACHE": cache}
        pipe = subprocess.PIPE
        process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True, cwd=root, env=settings)
        # Kernels are compiled now, so that their compilation does not count as time that a harm takes.
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n", "the process does not start"
        return process


def _wait_for_line(process: subprocess.Popen[str]) -> bool:
    """Whether the process prints a line or ends; False where it hangs.

    Time on a clock says nothing on a busy machine. A process hangs where it has used much processor time since now, or
    sleeps and uses none. Where the system does not tell processor times, the process is waited for.
    """
    begin = last = _processor_seconds(process.pid)
    idle_since = time.monotonic()
    while not select.select([process.stdout], [], [], 1.0)[0]:
        now = _processor_seconds(process.pid)
        if now is None or begin is None:
            continue
        if now != last or not _sleeps(process.pid):
            last, idle_since = now, time.monotonic()
        if now - begin > MOST_PROCESSOR_SECONDS or time.monotonic() - idle_since > MOST_IDLE_SECONDS:
            return False
    return True


def _processor_seconds(process: int) -> float | None:
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _sleeps(process: int) -> bool:
    """Whether a process waits for something other than the processor or a disk."""
    return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "S"


def main(original: Path, folder: Path, module: Any) -> None:
    warnings.simplefilter("ignore")  # of numpy, about meaningless numbers
    whole = harms.content_of(original)
    harms.restore(folder, whole)
    outcome = examine(folder, True, module)
    assert "look again" in outcome, outcome
    _say("ready")
    for line in sys.stdin:
        job = json.loads(line)
        harms.restore(folder, whole)
        harms.do(folder, job)
        _say(json.dumps(examine(folder, bool(job.get("changing")), module)))


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def compile_kernels() -> None:
    """Start the process once, so that its kernels are in the cache."""
    with tempfile.TemporaryDirectory() as scratch:
        small_index(Path(scratch, "index"))
        probe = Probe(Path(scratch, "index"))
        assert [outcome["check"] for _, outcome in probe.run([{"do": "lose", "file": "write.lock"}])] == [[]]
        probe.close()


if __name__ == "__main__":
    if len(sys.argv) == 1:
        compile_kernels()
    else:
        with tempfile.TemporaryDirectory() as scratch:
            main(Path(sys.argv[1]), Path(scratch), importlib.import_module(sys.argv[2]))
