"""Patents published more than once: the application (A1) and the granted patent (B1) as one document, on request.

    with Index.create("patents.index") as index:
        index.add(merge_publications(read("patents/")))

Publications of a patent repeat each other. Kept apart, each is a result of its own, and `one_per="patent"` keeps the best of them in a
ranking. Merged, the collection holds each patent once, and statistics count it once.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from perikope.document.tree import Document, Kind, TreeBuilder

_PUBLICATION = re.compile(r"([A-Z]{2}-[A-Z0-9]+)-[A-Z][0-9]?")


def merge_publications(documents: Iterable[Document]) -> Iterator[Document]:
    """The same documents, but one for each patent: `EP-1000000` of EP-1000000-A1 and EP-1000000-B1.

    It has the sections of the latest publication, and of the earlier ones, latest first, those of a part and language that no later one
    has; often the abstract, which is published with the application only. Metadata are united, those of the latest first; the date is the
    first one, since from then on the patent was known. A document that is no publication of a patent is passed on as it is, and
    so is a patent that was published once, but for its id. All documents are held in memory until the last is read.
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
    """One document of several, the latest first."""
    latest = publications[0]
    builder = TreeBuilder(id, tag=latest.labels[latest.spans.tag[0]], language=latest.language)
    builder.metadata = _united([document.metadata for document in publications])
    own = {document.id for document in publications}
    builder.cites = [cited for cited in dict.fromkeys(cited for document in publications for cited in document.cites) if cited not in own]
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
            # A place is one in the file that the document is said to come from.
            if document is latest and span in document.places:
                builder.places[number] = document.places[span]
    return builder.build()


def _recency(document: Document) -> tuple[str, str]:
    """Publications are ordered by date, and those without one by kind: B1 comes after A1."""
    return str(document.metadata.get("date", "")), str(document.metadata.get("kind", ""))


def _children(document: Document) -> dict[int, list[int]]:
    children: dict[int, list[int]] = {}
    for span, parent in enumerate(document.spans.parent):
        children.setdefault(parent, []).append(span)
    return children


def _copy(
    document: Document, span: int, children: dict[int, list[int]], builder: TreeBuilder, copied: dict[int, int], ids: set[str]
) -> None:
    """Add a span with all that it holds."""
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
    """All values of each key, the latest publication's first; one where all say the same."""
    found: dict[str, object] = {}
    for key in dict.fromkeys(key for record in records for key in record):
        values: dict[object, None] = {}
        is_list = False
        for record in records:
            value = record.get(key)
            is_list = is_list or isinstance(value, list)
            values.update(dict.fromkeys(value if isinstance(value, list) else [] if value is None else [value]))
        found[key] = list(values) if is_list or len(values) > 1 else next(iter(values))
    dates = [str(record["date"]) for record in records if record.get("date")]
    if dates:
        found["date"] = min(dates)
    return found
