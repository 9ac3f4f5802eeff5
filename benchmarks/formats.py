"""Reading XML: what the available patents contain, and megabytes per second: `python -m benchmarks formats`.

There are four steps, each including those before it: lxml parses documents that are already cut out, without DTD and
named characters (this is the lower limit); perikope's trees, which cut out and clean the documents of a file;
documents, made of the trees; and an index of them, committed to disk. `python -m benchmarks formats FOLDER` measures
the XML files of a folder, also those in archives, instead of the available collections.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from lxml import etree

from benchmarks.common import Table, megabytes, publish, shared_data
from perikope.core.errors import UnreadableFile
from perikope.document.tree import Document, Kind
from perikope.formats import Source, documents, sources
from perikope.formats._archives import archive_kind
from perikope.formats._unpack import stem
from perikope.formats._xml import trees
from perikope.formats.xml import SUFFIXES
from perikope.search.facade import Index

FILES = {
    "clef-ip and epo": ("patents/*.xml", "patents/marec.zip"),
    "uspto": ("patents/uspto/*.xml",),
    "jats": ("evidence-inference/nxml/*.nxml",),
}
REPEAT = 3


def main(arguments: Sequence[str] = ()) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks formats", description=__doc__)
    parser.add_argument("--markdown", metavar="FILE")
    parser.add_argument("folder", nargs="?", type=Path)
    options = parser.parse_args(arguments)
    tables = [speed(options.folder, {options.folder.name: ("**/*",)})] if options.folder else [patents(shared_data()), speed(shared_data())]
    publish(tables, options.markdown)


def patents(folder: Path) -> Table:
    """Contents of the available patents by root element and country; codes are the distinct ones per patent."""
    columns = ("source", "files", "documents", "sections", "passages", "claims", "dependent", "codes", "cited patents", "references inside")
    table = Table("Patents read", columns)
    counts: dict[str, Counter[str]] = {}
    refused = []
    for path in [
        path for patterns in (FILES["clef-ip and epo"], FILES["uspto"]) for pattern in patterns for path in sorted(folder.glob(pattern))
    ]:
        for source in _in_memory(path):
            try:
                found = list(documents(source))
            except UnreadableFile as problem:
                refused.append(str(problem))
                continue
            for number, document in enumerate(found):
                key = f"{document.labels[document.spans.tag[0]]}, {document.metadata.get('country', '?')}"
                counts.setdefault(key, Counter()).update(_contents(document), files=number == 0)
    for key in sorted(counts, key=lambda key: (key.partition(",")[0], -counts[key]["documents"])):
        table.rows.append((key, *(f"{counts[key][column]:,}" for column in columns[1:])))
    total = sum(counts.values(), Counter())
    table.rows.append(("all", *(f"{total[column]:,}" for column in columns[1:])))
    table.notes += refused
    return table


def _contents(document: Document) -> Counter[str]:
    claims = {span for span in document.of_kind(Kind.PASSAGE) if document.citations.get(span, "").startswith("claim ")}
    depend = {span for span, target in document.references if span in claims and target.startswith("claim-")}
    codes = sum(len(values) for key in ("ipc", "cpc", "ecla", "uspc") if isinstance(values := document.metadata.get(key), list))
    return Counter(
        {
            "documents": 1,
            "sections": sum(kind == Kind.SECTION for kind in document.spans.kind) - 1,
            "passages": sum(kind == Kind.PASSAGE for kind in document.spans.kind),
            "claims": len(claims),
            "dependent": len(depend),
            "codes": codes,
            "cited patents": len(document.cites),
            "references inside": len(document.references),
        }
    )


def speed(folder: Path, files: Mapping[str, Sequence[str]] = FILES) -> Table:
    """Reading speed per kind of XML, in CPU seconds, since other work on the machine must not count."""
    table = Table("XML read, MB/s of the processor", ("files", "documents", "MB", "lxml alone", "trees", "documents made", "indexed"))
    for name, patterns in files.items():
        paths = [path for pattern in patterns for path in sorted(folder.glob(pattern)) if _is_read(path)]
        if paths:
            table.rows.append(_row(name, [source for path in paths for source in _in_memory(path)]))
    return table


def _is_read(path: Path) -> bool:
    return path.is_file() and (bool(archive_kind(path.name)) or stem(path.name).lower().endswith(SUFFIXES))


def _in_memory(path: Path) -> list[Source]:
    """The files of an archive, or the one that a path names, as bytes."""
    found = sources(path, format="xml", hashes=False, on_problem=lambda problem: None)
    return [source if source.content else replace(source, content=source.data()) for source in (source.carried() for source in found)]


def _row(name: str, files: Sequence[Source]) -> Sequence[str]:
    readable, cut_out, made = [], [], 0
    for source in files:
        try:
            made += sum(1 for _ in documents(source))
        except UnreadableFile:
            continue
        readable.append(source)
        cut_out += [etree.tostring(tree.root) for tree in trees(source)]
    size = sum(len(source.content) for source in readable)
    steps: tuple[Callable[[], object], ...] = (
        lambda: [etree.fromstring(data) for data in cut_out],
        lambda: [tree.root.tag for source in readable for tree in trees(source)],
        lambda: [document.id for source in readable for document in documents(source)],
        lambda: _index(readable),
    )
    return (name, f"{made:,}", megabytes(size), *(f"{size / _seconds(step) / 1e6:,.1f}" for step in steps))


def _index(files: Sequence[Source]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        index = Index.create(Path(folder, "index"))
        seen: set[str] = set()
        # The same document may be there in several files.
        index.add(document for source in files for document in documents(source) if document.id not in seen and not seen.add(document.id))
        index.commit()


def _seconds(step: Callable[[], object]) -> float:
    best = float("inf")
    for _ in range(REPEAT):
        started = time.process_time()
        step()
        best = min(best, time.process_time() - started)
    return best
