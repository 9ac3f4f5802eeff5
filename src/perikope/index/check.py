"""Checks an index. All segment files are read; damaged, missing and unknown files are reported."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from perikope.core.errors import IndexFormatError
from perikope.core.locks import LOCK_FILE
from perikope.index import manifest as manifests
from perikope.index.backup_record import RECORD
from perikope.index.columns import ColumnFile
from perikope.index.facets import FacetBuilder
from perikope.index.manifest import Manifest
from perikope.index.ranges import portions
from perikope.index.saved_tables import FOLDER as TABLES
from perikope.index.segments import Segment
from perikope.index.shards import folder_of
from perikope.index.vector_stores import FOLDER as STORES
from perikope.kernels.postings import WINDOW_BITS

_AT_ONCE = 1 << 20
"""The number of rows of a column that are checked at once."""


@dataclass(frozen=True, slots=True)
class CheckReport:
    """The result of `check`."""

    problems: tuple[str, ...]
    """One sentence per problem; empty if the index is sound."""
    readable_documents: int
    """The number of documents in segments without a problem."""
    documents: int
    """The number of documents that the manifest counts, without deleted ones."""
    unknown_files: tuple[str, ...]
    """The names of files in the folder that do not belong to the index. A writer that did not commit may have left
    them."""


def check(folder: Path) -> CheckReport:
    """Check every file of the current commit.

    Damage is reported and raises no error. Only a manifest that cannot be read raises an `IndexFormatError`.
    """
    while True:
        manifest = manifests.load(folder)
        report = _check(folder, manifest)
        # If a writer committed meanwhile, it may have removed files of the checked commit: check the new commit.
        if not report.problems or manifests.load(folder).generation == manifest.generation:
            return report


def _check(folder: Path, manifest: Manifest) -> CheckReport:
    problems: list[str] = []
    readable = total = 0
    known = {manifests.FILE, LOCK_FILE, TABLES, STORES, RECORD}
    for entry in manifest.segments:
        known |= {entry["file"], entry.get("deleted", {}).get("file", entry["file"])}
        deleted = entry.get("deleted", {}).get("documents", 0)
        total += entry["documents"] - deleted
        problems_of_segment = _check_segment(folder, entry)
        problems += problems_of_segment
        readable += 0 if problems_of_segment else entry["documents"] - deleted
    known |= {folder_of(number) for number in range(len(manifest.shards))}
    unknown = sorted(path.name for path in folder.iterdir() if path.name not in known)
    return CheckReport(tuple(problems), readable, total, tuple(unknown))


def _check_segment(folder: Path, entry: dict[str, object]) -> list[str]:
    problems = []
    parts = [entry, *([entry["deleted"]] if "deleted" in entry else [])]
    for part in parts:
        assert isinstance(part, dict)
        try:
            file = ColumnFile(folder / part["file"], part)
            problems += [f"{file.path} is damaged in column {name!r}" for name in file.damaged_columns()]
        except IndexFormatError as error:
            problems.append(str(error))
    if not problems:
        try:
            _check_content(Segment(folder, entry))
        except IndexFormatError as error:
            problems.append(str(error))
    return problems


def _check_content(segment: Segment) -> None:
    """Raise an error if columns of a segment contradict each other, which checksums do not show.

    Reads the whole segment.
    """
    segment.check_columns()
    _check_trees(segment)
    _check_postings(segment)
    facets = FacetBuilder()
    for document in range(segment.documents):
        segment.tokens(document)
        segment.document_id(document)
        segment.text(document)
        facets.add(segment.metadata(document))
    segment.facets.check(facets)
    for document in np.unique(segment["document.source"], return_index=True)[1].tolist():
        segment.source(document)


def _check_trees(segment: Segment) -> None:
    """Raise an error if a parent does not come before its children, or if a span ends after its document."""
    tokens = segment["document.tokens"]
    for kind, damage in (("span", "tree"), ("section", "tree of sections")):
        first = segment[f"document.first_{kind}"].astype(np.int64)
        for documents in portions(first, _AT_ONCE):
            rows = slice(first[documents.start], first[documents.stop])
            document = np.repeat(np.arange(documents.start, documents.stop), np.diff(first[documents.start : documents.stop + 1]))
            wrong = segment[f"{kind}.parent"][rows].astype(np.int64) >= np.arange(rows.start, rows.stop) - first[document]
            if kind == "span":
                wrong |= segment["span.end_token"][rows] > tokens[document]
            if wrong.any():
                raise segment.columns.damaged(f"has a damaged {damage} (document {document[wrong.argmax()]})")


def _check_postings(segment: Segment) -> None:
    """Raise an error if a posting has a document or a frequency that the segment does not have."""
    first = segment["window.first_posting"].astype(np.int64)
    for windows in portions(first, _AT_ONCE):
        postings = np.arange(first[windows.start], first[windows.stop])
        high = segment["window.number"][windows.start : windows.stop].astype(np.uint32) << np.uint32(WINDOW_BITS)
        documents = np.repeat(high, np.diff(first[windows.start : windows.stop + 1]))
        documents |= segment["posting.document"][postings[0] : postings[-1] + 1] if postings.size else documents
        if documents.size and int(documents.max()) >= segment.documents:
            raise segment.columns.damaged("has damaged postings")
        segment.frequencies("posting.frequency", postings)
