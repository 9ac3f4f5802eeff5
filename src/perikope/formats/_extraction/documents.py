"""Whole documents from the reading process: what a reader of a format yields, as data for JSON and back.

The reading process gets no path. A source has the name `FILE` there, which the answer has in its messages.
"""

from __future__ import annotations

import re
import warnings
from array import array
from collections.abc import Iterator, Mapping
from dataclasses import fields, replace
from typing import Any

from perikope.core.errors import InputError, InputWarning, UnreadableFile
from perikope.core.file_limits import FileLimits
from perikope.document.tree import Document, Place, Spans
from perikope.formats._extraction.process import answer_of
from perikope.formats._source import Source, unreadable
from perikope.formats._unpack import DAMAGE

FILE = "@file"
_WARNING = re.compile(rf"{FILE}([^:]*)(?::(\d+))?: (.*)", re.DOTALL)


def contained(source: Source) -> Iterator[Document]:
    """Yield the documents of a source; its format is read in the reading process, within the limits of the source."""
    request = {"kind": "documents", "format": source.format, "id": source.id, "language": source.language}
    answer = answer_of(request, source.data(), source.path, source.limits)
    for inner, line, message in answer["warnings"]:
        warnings.warn(InputWarning(message, path=f"{source.path}{inner}", line=line), stacklevel=2)
    for plain in answer["documents"]:
        document = _document(plain)
        yield replace(document, source=source.source, source_hash=source.source_hash, member=source.member)
    if problem := answer["problem"]:
        error = UnreadableFile(problem["reason"], path=f"{source.path}{problem['inner']}", line=problem["line"])
        error.partly = problem["partly"]
        raise error


def read_documents(request: Mapping[str, Any], data: bytes) -> dict[str, Any]:
    """The answer of the reading process: documents, warnings, and the error that has ended reading, if any."""
    from perikope.formats import format_named

    source = Source(FILE, request["id"], request["language"], request["format"], limits=FileLimits(memory=request["memory"]), content=data)
    found: list[dict[str, Any]] = []
    problem: dict[str, Any] | None = None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", InputWarning)
        try:
            found += (_plain(document) for document in format_named(source.format).read(source))
        except (InputError, *DAMAGE) as caused:
            error = caused if isinstance(caused, InputError) else unreadable(FILE, caused)
            inner = str(error.path or "").removeprefix(FILE)
            problem = {"reason": error.reason, "inner": inner, "line": error.line, "partly": getattr(error, "partly", False)}
    noted = [matched for one in caught if issubclass(one.category, InputWarning) and (matched := _WARNING.match(str(one.message)))]
    return {"documents": found, "problem": problem, "warnings": [[one[1], int(one[2] or 0), one[3]] for one in noted]}


def _plain(document: Document) -> dict[str, Any]:
    return {
        "id": document.id,
        "text": document.text,
        "spans": {column.name: getattr(document.spans, column.name).tolist() for column in fields(Spans)},
        "labels": document.labels,
        "metadata": dict(document.metadata),
        "cites": document.cites,
        "span_ids": list(document.span_ids.items()),
        "references": document.references,
        "places": [[span, place.path, place.start, place.end, place.page, place.box] for span, place in document.places.items()],
        "citations": list(document.citations.items()),
    }


def _document(plain: Mapping[str, Any]) -> Document:
    empty = Spans()
    spans = Spans(**{name: array(getattr(empty, name).typecode, values) for name, values in plain["spans"].items()})
    return Document(
        plain["id"],
        plain["text"],
        spans,
        tuple(plain["labels"]),
        plain["metadata"],
        tuple(plain["cites"]),
        dict(plain["span_ids"]),
        tuple((span, target) for span, target in plain["references"]),
        {span: Place(path, start, end, page, tuple(box)) for span, path, start, end, page, box in plain["places"]},
        dict(plain["citations"]),
    )
