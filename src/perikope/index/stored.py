"""Makes a `Document` from what a segment stores about it: the same document that was added to the index."""

from __future__ import annotations

from array import array

import numpy as np

from perikope.document.tree import Document, Spans
from perikope.index.segments import Segment

_LABELS = ("tag", "part", "language")


def stored_document(segment: Segment, number: int) -> Document:
    """The document with this number in the segment. Adding it to an index gives an equal document there."""
    return segment.ask(_stored_document, number)


def _stored_document(segment: Segment, number: int) -> Document:
    record = segment.record(number)
    source, source_hash = segment.source(number)
    spans, labels = _spans(segment, number)
    try:
        cites = tuple(map(str, record.get("cites", ())))
        references = tuple((int(span), str(target)) for span, target in record.get("references", ()))
    except (TypeError, ValueError):
        raise segment.columns.damaged(f"has damaged references (document {number})") from None
    return Document(
        id=segment.document_id(number),
        text=segment.text(number),
        spans=spans,
        labels=labels,
        metadata=segment.metadata(number, record),
        cites=cites,
        span_ids=segment.span_ids(number),
        references=references,
        places=segment.places(number, record),
        citations=segment.citations(number, record),
        source=source,
        member=str(record.get("member", "")),
        source_hash=source_hash,
    )


def _spans(segment: Segment, number: int) -> tuple[Spans, tuple[str, ...]]:
    """The tree of a document, and the labels that it uses. A segment has the labels of all its documents."""
    first, end = segment["document.first_span"][number : number + 2].tolist()
    column = {name: segment.rows(f"span.{name}", first, end).astype(np.int32) for name in ("kind", "parent", "start", "end", *_LABELS)}
    used = sorted({0, *(label for name in _LABELS for label in column[name].tolist())})
    if used[-1] >= len(segment.labels):
        raise segment.columns.damaged(f"has damaged labels (document {number})")
    number_of_label = {label: position for position, label in enumerate(used)}
    for name in _LABELS:
        column[name] = np.array([number_of_label[label] for label in column[name].tolist()], np.int32)
    kinds = array("B", column.pop("kind").astype(np.uint8).tobytes())
    return Spans(kind=kinds, **{name: array("i", values.tobytes()) for name, values in column.items()}), tuple(
        segment.labels[label] for label in used
    )
