"""Commits, refreshes and searches in one process for a long time, and reports what the process and the index hold.

    python -m tests.durability.long_run COMMITS [--no-gc]

Every commit adds, replaces and deletes documents, so that segments get tombstones and are merged. A second `Index` of
the same folder refreshes and searches after each commit. The process prints one line after 10, 100, 1,000 … commits.
A server runs for months, so descriptors, mappings, memory and disk space must not grow with the number of commits.
"""

from __future__ import annotations

import gc
import os
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from perikope.search.facade import Index

KEPT = 60
"""The number of documents after the first commits; each later commit adds one and deletes another."""
WORDS = ("pump", "rotor", "valve", "seal", "magnet", "shaft", "housing", "bearing", "impeller", "gasket")


@dataclass(frozen=True, slots=True)
class Held:
    """What the process and the index hold after a number of commits."""

    commits: int
    descriptors: int
    mappings: int
    """Mappings of files of the index."""
    memory: int
    """Resident memory of the process, in bytes."""
    disk: int
    """Size of all files of the index, in bytes."""
    unlinked: int
    """Size of mapped files that are removed already; their disk space is not free yet."""

    def __str__(self) -> str:
        sizes = f"{self.memory / 1e6:8.1f} MB resident, {self.disk / 1e3:7.1f} kB on disk, {self.unlinked / 1e3:5.1f} kB removed but mapped"
        return f"{self.commits:6} commits: {self.descriptors:4} descriptors, {self.mappings:4} mappings, {sizes}"


def held(folder: Path, commits: int) -> Held:
    """Measure the process and the index in a folder."""
    with open("/proc/self/maps") as file:
        mapped = [line.split(maxsplit=5) for line in file if str(folder) in line]
    unlinked = sum(_size(line[0]) for line in mapped if line[5].rstrip().endswith("(deleted)"))
    resident = int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    disk = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    return Held(commits, len(os.listdir("/proc/self/fd")), len(mapped), resident, disk, unlinked)


def _size(addresses: str) -> int:
    first, end = (int(address, 16) for address in addresses.split("-"))
    return end - first


def run(folder: Path, commits: int, reports: set[int]) -> Iterator[Held]:
    """Make `commits` commits in an index in a new folder; yields what is held after each number in `reports`."""
    writer = Index.create(folder)
    reader = Index.open(folder)
    for commit in range(1, commits + 1):
        writer.add([_document(commit), _document(max(commit - 7, 0))], replace=True)
        if commit > KEPT:
            writer.delete([f"d{commit - KEPT}"])
        writer.commit()
        assert reader.refresh()
        for index in (reader, writer):
            _use(index, commit)
        if commit in reports:
            yield held(folder, commit)
    writer.close()
    reader.close()


def _document(number: int) -> dict[str, object]:
    words = [WORDS[(number * step) % len(WORDS)] for step in (1, 3, 7)]
    passages = [f"The {words[0]} of the {words[1]} is number {number}.", f"A {words[2]} drives the {words[0]}."]
    return {"id": f"d{number}", "title": f"Of the {words[0]}", "passages": passages, "metadata": {"year": 2000 + number % 20}}


def _use(index: Index, commit: int) -> None:
    """Search in ways that read every kind of column, with results that are dropped at once."""
    results = index.search(f"{WORDS[commit % len(WORDS)]} number", k=3, filter="year>=2005" if commit % 2 else ())
    assert len([hit.text for hit in results]) == len(results)
    if commit % 5 == 0:
        results.explain(0)
        index.search("magnt sael", model="rrf", k=3)
    assert index.get(f"d{commit}") is not None
    assert len(index) <= KEPT + 2


def main(commits: int, collecting: bool) -> None:
    """Print what is held after powers of ten of commits and after the last one."""
    if not collecting:
        gc.disable()
    with tempfile.TemporaryDirectory() as scratch:
        for report in run(Path(scratch, "index"), commits, {10**power for power in range(1, 9)} | {commits}):
            sys.stdout.write(f"{report}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main(int(sys.argv[1]), "--no-gc" not in sys.argv)
