"""Merges the publications of a patent, such as the application (A1) and the granted patent (B1), into one document.

    with Index.create("patents.index") as index:
        index.add(merge_publications(read("patents/")))

Publications of a patent repeat each other. Without merging, each publication can be a result; the option
`one_per="patent"` keeps only the best publication per patent. With merging, the index holds each patent once, and
collection statistics count it once.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from perikope.document.tree import Document, Kind, TreeBuilder

_PUBLICATION = re.compile(r"([A-Z]{2}-[A-Z0-9]+)-[A-Z][0-9]?")


def merge_publications(documents: Iterable[Document]) -> Iterator[Document]:
    """Yield one document per patent, with the id `EP-1000000` for EP-1000000-A1 and EP-1000000-B1.

    The merged document has the sections of the latest publication. Earlier publications, latest first, add each part in
    each language that no later publication has. This is often the abstract, which only the application contains.

    Metadata are merged; values of later publications come first. The date is the earliest date, because the patent has
    been public since then. If there is a single publication of a patent, only its id changes. Documents that are no
    patents do not change. All documents are held in memory.
    """
    groups: dict[str, list[Document]] = {}
    for document in documents:
        publication = _PUBLICATION.fullmatch(document.id) if "patent" in document.metadata else None
        groups.setdefault(publication[1] if publication else document.id, []).append(document)
    for id, group in groups.items():
        if len(group) == 1 and group[0].id == id:
            yield group[0]
        else:
            yield merged(id, sorted(group, key=_recency, reverse=True))


def merged(id: str, publications: Sequence[Document]) -> Document:
    """Merge publications, given latest first, into one document with the given id."""
    latest = publications[0]
    builder = TreeBuilder(id, tag=latest.labels[latest.spans.tag[0]], language=latest.language)
    builder.metadata = _united([document.metadata for document in publications])
    ids_of_publications = {document.id for document in publications}
    builder.cites = [
        cited for cited in dict.fromkeys(cited for document in publications for cited in document.cites) if cited not in ids_of_publications
    ]
    builder.source, builder.source_hash = latest.source, latest.source_hash
    has_title = False
    seen: set[tuple[str, str]] = set()
    ids: set[str] = set()
    for document in publications:
        children = _children(document)
        parts: set[tuple[str, str]] = set()
        copied: dict[int, int] = {}
        for span in children.get(0, ()):
            if document.spans.kind[span] == Kind.TITLE:
                if not has_title:
                    has_title = True
                    copied[span] = builder.title(document.text_of(span))
                continue
            part = document.labels[document.spans.part[span]], document.labels[document.spans.language[span]]
            if part not in seen:
                parts.add(part)
                _copy(document, span, children, builder, copied, ids)
        seen |= parts
        for source, target in document.references:
            if source in copied and target in ids:
                builder.refer(target, copied[source])
        for span, number in copied.items():
            if span in document.citations:
                builder.citations[number] = document.citations[span]
            # Only the latest publication's places are kept: its file is the source of the merged document.
            if document is latest and span in document.places:
                builder.places[number] = document.places[span]
    return builder.build()


def _recency(document: Document) -> tuple[str, str]:
    """Sort key of publications: by date, then by kind (A1 before B1); those without a date count as earliest."""
    return str(document.metadata.get("date", "")), str(document.metadata.get("kind", ""))


def _children(document: Document) -> dict[int, list[int]]:
    children: dict[int, list[int]] = {}
    for span, parent in enumerate(document.spans.parent):
        children.setdefault(parent, []).append(span)
    return children


def _copy(
    document: Document, span: int, children: dict[int, list[int]], builder: TreeBuilder, copied: dict[int, int], ids: set[str]
) -> None:
    """Add a span of `document`, with everything inside it, to the open section of `builder`.

    `copied` receives the new number of each copied span. `ids` holds the ids in use: a repeated id is dropped.
    """
    spans, labels = document.spans, document.labels
    kind, tag = spans.kind[span], labels[spans.tag[span]]
    part, language = labels[spans.part[span]], labels[spans.language[span]]
    id = document.span_ids.get(span, "")
    id = "" if id in ids else id
    if kind == Kind.TITLE:
        copied[span] = builder.title(document.text_of(span), tag)
    elif kind == Kind.PASSAGE:
        start = spans.start[span]
        marks, waiting = [], list(children.get(span, ()))
        while waiting:
            mark = waiting.pop()
            waiting += children.get(mark, ())
            marks.append((labels[spans.tag[mark]], spans.start[mark] - start, spans.end[mark] - start))
        marks.sort(key=lambda mark: (mark[1], -mark[2]))
        copied[span] = builder.passage(document.text_of(span), tag, id=id, part=part, language=language, marks=marks)
    else:
        copied[span] = builder.open(Kind(kind), tag, id=id, part=part, language=language)
        for child in children.get(span, ()):
            _copy(document, child, children, builder, copied, ids)
        builder.close()
    if id:
        ids.add(id)


def _united(records: Sequence[Mapping[str, object]]) -> dict[str, object]:
    """Merge metadata, given latest publication first; values of later publications come first.

    A key gets a list if its values differ or if a record has a list for it, else a single value. The date is the
    earliest date.
    """
    united: dict[str, object] = {}
    for key in dict.fromkeys(key for record in records for key in record):
        values: dict[object, None] = {}
        is_list = False
        for record in records:
            value = record.get(key)
            is_list = is_list or isinstance(value, list)
            values.update(dict.fromkeys(value if isinstance(value, list) else [] if value is None else [value]))
        united[key] = list(values) if is_list or len(values) > 1 else next(iter(values))
    dates = [str(record["date"]) for record in records if record.get("date")]
    if dates:
        united["date"] = min(dates)
    return united
