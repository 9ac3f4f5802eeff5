"""Reads everything in an index that may be damaged or forged, in a separate process, so that the tests notice a crash.

    python -m tests.durability.probe            compiles the kernels of the process (`make checked-kernels`)
    python -m tests.durability.probe FOLDER MODULE [MEGABYTES [DEFECT]]     the process

MODULE has the functions `problems`, `look` and `change`, which read and change the folder. Those of this module read
and change an index. The process prints the outcome of reading the undamaged index as one line. Then each line on
standard input is a harm (`harms.py`) as JSON. It is done to a copy of the index in FOLDER, the copy is read, and one
line with the outcome is printed. MEGABYTES limit the memory that reading may take besides what the process has by then.
DEFECT names a function (`module:name`) that breaks the process first, to test those who use it.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import select
import shutil
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

import numpy as np

from perikope.browse.explanation import render
from perikope.browse.models import MODELS
from perikope.core.errors import PerikopeError
from perikope.document.tree import Document, Kind, TreeBuilder
from perikope.fetch.filters import known_fields, mask, parse_filter
from perikope.index.check import check
from perikope.index.commit import IndexWriter
from perikope.index.saved_tables import FOLDER as TABLES
from perikope.index.saved_tables import read_table
from perikope.index.vector_stores import FOLDER as STORES
from perikope.neural.models import set_query_encoder
from perikope.neural.stores.check import check_stores
from perikope.neural.stores.store import VectorStore
from perikope.search.facade import Index
from tests.durability import harms

OWN = "tests.durability.probe"
"""The name of this module."""
QUERY = "pump rotor valve"
TERMS = ["en:pump", "en:rotor", "fr:valv", "en:absent", "en:seal"]
PARTS = ["", "claims", "abstract"]
FILTERS = ["year=2012", "year!=2012", "by.id=*", "year<2015", "ipc=G06F17", "ipc=H*", "id=a|d"]
TABLE_MODELS = {"tags": "prox_h(weights=%s)", "prior": "position_prior(weights=%s)", "fusion": "learned(name=%s)"}
"""A model that uses each kind of table."""
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
    for model in (name for name, definition in MODELS.items() if definition.is_ready):
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


def look_at_tables(folder: Path) -> str:
    """A checksum of what searches with the learned tables of an index find."""
    index = Index.open(folder)
    models = [TABLE_MODELS[read_table(name, folder=folder).kind] % name for name in tables_of(folder)]
    found = [(model, index.search(QUERY, model=model, k=50).names()) for model in models]
    return f"{zlib.crc32(repr(found).encode()):08x}"


def look_at_stores(folder: Path) -> str:
    """A checksum of all vectors of an index, and of what searches with them find."""
    index = Index.open(folder)
    seen: list[object] = []
    for path in sorted((folder / STORES).iterdir()):
        store = VectorStore.open(folder, path.name)
        alive = [number for number in range(index.snapshot.numbers) if _is_alive(index, number)]
        packed = store.find(index.snapshot, np.array(alive, np.int64))
        seen += [store.kind, store.missing(index.snapshot), store.heading_path, sorted(store.known.items())]
        seen += [[part.tolist() for part in packed.vectors(passage)] for passage in range(packed.passages)]
        if store.kind == "own":
            query = np.linspace(-1, 1, store.codebook.dimension, dtype=np.float32)
            set_query_encoder(index, path.name, lambda text, query=query: query)
            seen.append(index.search(QUERY, model=f"vectors(store={path.name})", k=50).names())
    return f"{zlib.crc32(repr(seen).encode()):08x}"


def tables_of(folder: Path) -> list[str]:
    """The names of the tables that were written to the folder of an index."""
    return sorted(path.name.removesuffix(".json") for path in (folder / TABLES).glob("*.json"))


def _is_alive(index: Index, number: int) -> bool:
    segment, local = index.snapshot.locate(number)
    return bool(segment.alive[local])


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


def examine(folder: Path, changing: bool, module: Any, extras: frozenset[str] = frozenset()) -> dict[str, Any]:
    """The outcome of each step by its name; an error that is no `PerikopeError` and no `OSError` counts as `raised`.

    `extras` are the folders of tables and stores that the undamaged index has.
    """
    outcome: dict[str, Any] = {}
    steps = {"check": lambda: module.problems(folder), "look": lambda: module.look(folder)}
    if TABLES in extras:
        steps |= {"tables": lambda: look_at_tables(folder)}
    if STORES in extras:
        steps |= {"stores": lambda: look_at_stores(folder), "check stores": lambda: list(check_stores(folder).problems)}
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

    def __init__(self, folder: Path, module: str = OWN, *, megabytes: int = 0, defect: str = "") -> None:
        """See the docstring of the module for `module`, `megabytes` and `defect`."""
        self._arguments = [str(folder), module, str(megabytes), defect]
        self._process: subprocess.Popen[str] | None = None
        self.whole: dict[str, Any] = {}
        """The outcome of reading the undamaged index, once the process has been started."""

    def run(self, jobs: Iterable[dict[str, Any]]) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
        """Each harm with its outcome."""
        for job in jobs:
            self.start()
            process = self._process
            assert process is not None
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

    @property
    def processes(self) -> list[int]:
        """The id of the process, if it runs."""
        return [self._process.pid] if self._process is not None else []

    def close(self) -> None:
        """End the process; the next harm starts it again."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def _start(self) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "tests.durability.probe", *self._arguments]
        root = Path(__file__).parents[2]
        # Kernels that check bounds turn a read just outside an array, which might go unnoticed, into an error. They are
        # other machine code, so they have a cache of their own.
        cache = str(root / ".pytest_cache" / "kernels-with-bounds")
        settings = {**os.environ, "NUMBA_BOUNDSCHECK": "1", "PERIKOPE_CACHE": cache}
        pipe = subprocess.PIPE
        process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True, cwd=root, env=settings)
        # Kernels are compiled now, so that their compilation does not count as time that a harm takes.
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line, "the process does not start"
        self.whole = json.loads(line)
        return process

    def start(self) -> None:
        """Start the process, if it does not run yet."""
        self._process = self._process or self._start()


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


def main(original: Path, scratch: Path, module: Any, megabytes: int = 0) -> None:
    warnings.simplefilter("ignore")  # of numpy, about meaningless numbers
    whole = harms.content_of(original)
    extras = frozenset(name for name in (TABLES, STORES) if module.__name__ == OWN and (original / name).is_dir())
    harms.restore(scratch / "whole", whole)
    outcome = examine(scratch / "whole", False, module, extras)
    compiled = examine(scratch / "whole", True, module)
    assert "look again" in compiled, compiled
    if megabytes:
        limit_memory(megabytes)
    _say(json.dumps(outcome))
    for number, line in enumerate(sys.stdin):
        job = json.loads(line)
        # Each copy has a path of its own, because open stores are kept by their paths.
        folder = scratch / str(number)
        harms.restore(folder, whole)
        harms.do(folder, job)
        _say(json.dumps(examine(folder, bool(job.get("changing")), module, extras)))
        shutil.rmtree(folder)


def limit_memory(megabytes: int) -> None:
    """Limit the memory of this process to what it has now and some megabytes."""
    import resource

    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * os.sysconf("SC_PAGE_SIZE") + (megabytes << 20)
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


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
        given, module, megabytes, defect = [*sys.argv[1:], "0", ""][:4]
        # Not the module `__main__`, whose functions are others than those that a defect breaks.
        probe = importlib.import_module(OWN)
        if defect:
            importlib.import_module(defect.partition(":")[0]).__dict__[defect.partition(":")[2]](probe)
        with tempfile.TemporaryDirectory() as scratch:
            probe.main(Path(given), Path(scratch), importlib.import_module(module), int(megabytes))
