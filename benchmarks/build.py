"""Speed of building an index, its memory and its size, compared with other engines: `python -m benchmarks build`."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks import measure, peers
from benchmarks.common import ROOT, SCRATCH, Table, folder_bytes, megabytes, publish, shared_data
from benchmarks.measure import Measurement
from benchmarks.programs import TANTIVY_HEAP, THREADS, documents
from benchmarks.synthetic import SHORT, Collection
from perikope.text.analysis import default_stopwords

NOTES = [
    "seconds, CPU: of the build, imports left out; for the command, all of it with start-up. ×: by the command's. MB/s: of text.",
    "others: cores that other programs took meanwhile; where this is not 0.0, compare by CPU s; threads did not get what they asked for.",
    "peak: sum over the process tree; private: the part of it that no file stands behind. index: bytes on disk, by bytes of text.",
    "perikope: documents and passages, token stream with all positions, text, metadata; durable (fsync).",
    f"tantivy: positions, stored text (lz4), {THREADS} threads and a reader, heap {TANTIVY_HEAP / 1e6:.0f} MB, merges awaited; durable.",
    "bm25s: scores of one model only, one thread; no positions, no text, so its size is not comparable.",
    f"PISA: frequencies, no positions, no text, stop words kept, {THREADS} threads; the size counts its uncompressed intermediate files.",
    "perikope, tantivy and bm25s: the same stop words, English Snowball stemmer. PISA: the same stemmer (Porter2).",
]


@dataclass(frozen=True, slots=True)
class System:
    """A row of the table: its label and the command that builds an index of a source in a target."""

    label: str
    command: Callable[[str, str, str], list[str]]
    keep: bool = False
    """Whether the index stays in `.bench`, to be looked into with `columns`."""


def _program(name: str, peer: str | None = None) -> Callable[[str, str, str], list[str]]:
    def command(source: str, target: str, stopwords: str) -> list[str]:
        interpreter = str(peers.python(peer)) if peer else sys.executable
        return [interpreter, "-m", "benchmarks.programs", name, source, target, "--stopwords", stopwords]

    return command


def perikope_command(sources: Sequence[str], target: str, *options: str) -> list[str]:
    return [sys.executable, "-m", "perikope", "index", *sources, "--to", target, *options]


SYSTEMS = (
    System("reading and parsing alone", _program("read")),
    System("perikope index (command)", lambda source, target, _: perikope_command([source], target), keep=True),
    System("perikope, warm process", _program("perikope")),
    System("tantivy, one unit per document", _program("tantivy", "tantivy")),
    System("tantivy, one unit per passage", _program("tantivy_passages", "tantivy")),
    System("bm25s", _program("bm25s", "bm25s")),
    System("PISA", _program("pisa", "pyterrier-pisa")),
)


def measured(system: System, source: Path, target: Path, stopwords: Path, repeat: int) -> tuple[Measurement, int]:
    """The fastest of some builds, and the size of the index."""
    best, size = None, 0
    for _ in range(repeat):
        shutil.rmtree(target, ignore_errors=True)
        try:
            result = measure.run(system.command(str(source), str(target), str(stopwords)), cwd=ROOT)
        except (RuntimeError, OSError) as error:
            return Measurement(problem=str(error)), 0
        size = folder_bytes(target) if target.exists() else 0
        if result.problem:
            return result, size
        if best is None or _seconds(result) < _seconds(best):
            best = result
    if not system.keep:
        shutil.rmtree(target, ignore_errors=True)
    return best or Measurement(problem="not run"), size


def _seconds(result: Measurement) -> float:
    return result.said.get("seconds", result.wall)


def _cpu(result: Measurement) -> float:
    return result.said.get("cpu", result.cpu)


def warm_up(source: Path) -> None:
    """Let perikope compile its kernels: it does so once an installation, not once a build."""
    with tempfile.TemporaryDirectory() as folder:
        sample = Path(folder, "sample.jsonl")
        sample.write_text(json.dumps(next(documents(str(source)))), encoding="utf-8")
        measure.run(perikope_command([str(sample)], str(Path(folder, "index"))), cwd=ROOT)


def compare(title: str, source: Path, systems: Sequence[System], repeat: int) -> Table:
    """One collection, all systems."""
    SCRATCH.mkdir(exist_ok=True)
    stopwords = SCRATCH / "stopwords.txt"
    stopwords.write_text(" ".join(sorted(default_stopwords("en"))), encoding="utf-8")
    reading = measured(SYSTEMS[0], source, SCRATCH / "index-passing", stopwords, repeat)  # also brings the file into memory
    facts = reading[0].said
    warm_up(source)
    results: dict[str, tuple[Measurement, int]] = {SYSTEMS[0].label: reading}
    for system in systems:
        if system.label not in results:
            print(f"… {title.split(':')[0]}: {system.label}", file=sys.stderr, flush=True)
            target = SCRATCH / (f"index-{source.name.split('.')[0]}" if system.keep else "index-passing")
            results[system.label] = measured(system, source, target, stopwords, repeat)
    ours = next((result for label, (result, _) in results.items() if label.startswith("perikope index") and not result.problem), None)
    heading = f"{title}: {facts['documents']:,} documents, {facts['passages']:,} passages, {megabytes(facts['text'])} MB of text"
    table = Table(
        heading, ("", "seconds", "×", "CPU s", "CPU ×", "MB/s", "peak MB", "private MB", "index MB", "÷ text", "others"), notes=NOTES
    )
    table.rows += [_row(label, result, size, facts["text"], ours) for label, (result, size) in results.items()]
    return table


def _row(label: str, result: Measurement, size: int, text: float, ours: Measurement | None) -> list[str]:
    if result.problem:
        return [label, f"n/a ({result.problem})"]
    seconds = _seconds(result)
    return [
        label,
        f"{seconds:.1f}",
        f"{seconds / _seconds(ours):.2f}" if ours else "",
        f"{_cpu(result):.1f}",
        f"{_cpu(result) / _cpu(ours):.2f}" if ours else "",
        f"{text / 1e6 / seconds:.1f}",
        f"{result.resident / 1e6:,.0f}",
        f"{result.private / 1e6:,.0f}",
        megabytes(size) if size else "–",
        f"{size / text:.2f}" if size else "–",
        f"{result.others:.1f}",
    ]


def main(arguments: Sequence[str] = ()) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks build", description=__doc__)
    parser.add_argument("--collection", choices=("real", "synthetic", "all"), default="all")
    parser.add_argument("--documents", type=int, default=SHORT.documents, help="of the synthetic collection")
    parser.add_argument("--tokens", type=int, default=SHORT.tokens, help="words a document of the synthetic collection")
    parser.add_argument("--seed", type=int, default=SHORT.seed)
    parser.add_argument("--only", nargs="+", default=[""], metavar="TEXT", help="systems whose label holds one of these")
    parser.add_argument("--repeat", type=int, default=1, help="the fastest of so many")
    parser.add_argument("--markdown", metavar="FILE")
    options = parser.parse_args(arguments)
    systems = [system for system in SYSTEMS if any(text in system.label for text in options.only)]
    print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores", file=sys.stderr)
    real = shared_data() / "evidence-inference" / "documents.jsonl.gz"
    if options.collection != "synthetic" and real.exists():
        publish([compare("Evidence Inference", real, systems, options.repeat)], options.markdown)
    if options.collection != "real":
        source = Collection(options.documents, options.tokens, options.seed).file(SCRATCH)
        publish([compare("Synthetic", source, systems, options.repeat)], options.markdown)


if __name__ == "__main__":
    main(sys.argv[1:])
