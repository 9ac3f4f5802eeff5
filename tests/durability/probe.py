"""Read all of an index that may be damaged or forged, in a separate process, so that a crash is noticed.

    python -m tests.durability.probe FOLDER

Each line on standard input names a harm (`harms.py`) as JSON. The process applies it to a copy of the index in FOLDER,
reads the copy and writes one line with the outcome.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
import sys
import tempfile
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
PATIENCE = 120
"""The time without output after which a process counts as hanging, in seconds."""


def small_index(folder: Path) -> None:
    """Make an index of three segments, of which the second has a single part.

    The first has parts, languages, ids, tombstones and frequencies that do not fit a byte; the third is small.
    """
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
    """The checksum of everything that can be read; errors of reading are raised."""
    index = Index.open(folder)
    snapshot = index._snapshot
    seen: list[object] = [index.documents, index.passages, index.languages]
    for model in (name for name, definition in MODELS.items() if not definition.needs_store):
        results = index.search(QUERY, model=model, k=50)
        seen += [results.names(), list(results), [render(results.explain(row)) for row in range(min(3, len(results)))]]
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


def examine(folder: Path, changing: bool) -> dict[str, Any]:
    """The outcome of each step of reading an index.

    A `PerikopeError` or `OSError` is recorded as `STEP refused`, any other exception as `raised`.
    """
    outcome: dict[str, Any] = {}
    steps = {"check": lambda: list(check(folder).problems), "look": lambda: look(folder)}
    if changing:
        steps |= {"change": lambda: change(folder), "look again": lambda: look(folder)}
    for step, do in steps.items():
        try:
            outcome[step] = do()
        except (PerikopeError, OSError) as error:
            outcome[f"{step} refused"] = str(error)
        except Exception:
            outcome["raised"] = f"{step}: {traceback.format_exc()}"
    return outcome


class Probe:
    """Sends harms to the process and returns the outcomes; a crash or a hang of the process is an outcome too."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._process: subprocess.Popen[str] | None = None

    def run(self, jobs: Iterable[dict[str, Any]]) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
        """Yield each harm with its outcome."""
        for job in jobs:
            process = self._process = self._process or self._start()
            assert process.stdin is not None
            assert process.stdout is not None
            with contextlib.suppress(BrokenPipeError):
                process.stdin.write(json.dumps(job) + "\n")
                process.stdin.flush()
            heard = select.select([process.stdout], [], [], PATIENCE)[0]
            line = process.stdout.readline() if heard else ""
            if line:
                yield job, json.loads(line)
            else:
                self.close()
                yield job, {"raised": f"died with {process.returncode}" if heard else "hung"}

    def close(self) -> None:
        """End the process; the next harm starts it again."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def _start(self) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "tests.durability.probe", str(self._folder)]
        root = Path(__file__).parents[2]
        # Kernels that check bounds turn a read just outside an array, which might go unnoticed, into an error.
        # They are compiled differently, so they have a separate cache.
        settings = {**os.environ, "NUMBA_BOUNDSCHECK": "1", "PERIKOPE_CACHE": str(root / ".pytest_cache" / "kernels-with-bounds")}
        pipe = subprocess.PIPE
        return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True, cwd=root, env=settings)


def main(original: Path, folder: Path) -> None:
    warnings.simplefilter("ignore")  # numpy warns about invalid numbers
    whole = {path.name: path.read_bytes() for path in original.iterdir()}
    for line in sys.stdin:
        job = json.loads(line)
        harms.restore(folder, whole)
        harms.do(folder, job)
        outcome = examine(folder, bool(job.get("changing")))
        sys.stdout.write(json.dumps(outcome) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        main(Path(sys.argv[1]), Path(scratch))
