"""The sections of a document as a tree, for a table of contents.

The tree is flat: a list of nodes in reading order, each with the number of its parent. So it has no limit of depth, and
neither has its JSON.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from perikope.core.names import element_path, running_number
from perikope.document.tree import Document, Kind
from perikope.index.reader import Snapshot
from perikope.index.stored import stored_document
from perikope.search.explaining import find_document


@dataclass(frozen=True, slots=True)
class OutlineNode:
    """A section of a document; the first node is the document itself."""

    parent: int
    """The number of the section around this one, as an index into `DocumentTree.nodes`; -1 for the document."""
    depth: int
    """The number of sections around this one; 0 for the document."""
    title: str
    """The title of the section; empty if it has none."""
    id: str
    """The id of the section in the source file; empty if it has none."""
    step: str
    """The end of the path of the section, below the section around it, such as `/sec[2]`.

    The steps from the document down are the path. A path for each section would make a deep tree quadratic in size.
    """
    part: str
    """The part of the document that the section is in, such as `claims`; empty if it is in no part."""
    start: int
    """The first character of the section in the text of the document."""
    end: int
    """The end of the section in the text of the document (exclusive)."""
    passages: int
    """The number of passages in the section, including those in the sections inside it."""
    own_passages: int
    """The number of passages in the section that are in no section inside it."""
    first_passage: str
    """The id of the first passage in the section or a section inside it; empty if there is none."""


@dataclass(frozen=True, slots=True)
class DocumentTree:
    """The sections of a document."""

    document: str
    """The id of the document."""
    title: str
    """The title of the document; empty if it has none."""
    nodes: tuple[OutlineNode, ...]
    """The sections in reading order, parents before children. The first one is the document."""

    def path(self, number: int) -> str:
        """The path of a section, given by its number in `nodes`; `DOCUMENT#PATH` is its name, as in results."""
        steps = []
        while number >= 0:
            steps.append(self.nodes[number].step)
            number = self.nodes[number].parent
        return "".join(reversed(steps))

    def to_dict(self) -> dict[str, Any]:
        """The same as plain dictionaries and lists, for JSON."""
        return asdict(self)


def document_tree(snapshot: Snapshot, id: str) -> DocumentTree:
    """The sections of a document, given by its id or, for a patent, by its number in any spelling."""
    _, segment, local = find_document(snapshot, id)
    document = stored_document(segment, local)
    return DocumentTree(document.id, document.title, tuple(_nodes(document)))


def _nodes(document: Document) -> list[OutlineNode]:
    spans, labels = document.spans, document.labels
    sections = list(document.of_kind(Kind.SECTION))
    number_of_span = {span: number for number, span in enumerate(sections)}
    around, steps = _sections_around(document), _steps(document)
    ids = [document.span_ids.get(span, "") or running_number(number) for number, span in enumerate(document.of_kind(Kind.PASSAGE))]
    sections_of_passages = [around[span] for span in document.of_kind(Kind.PASSAGE)]
    own = Counter(sections_of_passages)
    # Walking backwards, the first passage of a section is the one that is noted last.
    first = {section: number for number, section in reversed(list(enumerate(sections_of_passages)))}
    total = Counter(own)
    depth = {-1: -1}
    for span in sections:
        depth[span] = depth[around[span]] + 1
    for span in reversed(sections[1:]):
        total[around[span]] += total[span]
        if span in first:
            first[around[span]] = min(first[span], first.get(around[span], first[span]))
    titles = {spans.parent[span]: document.text_of(span) for span in reversed(list(document.of_kind(Kind.TITLE)))}
    return [
        OutlineNode(
            parent=number_of_span.get(around[span], -1),
            depth=depth[span],
            title=titles.get(span, ""),
            id=document.span_ids.get(span, ""),
            step=_path_below(steps, spans.parent, span, around[span]),
            part=labels[spans.part[span]],
            start=spans.start[span],
            end=spans.end[span],
            passages=total[span],
            own_passages=own[span],
            first_passage=ids[first[span]] if span in first else "",
        )
        for span in sections
    ]


def _sections_around(document: Document) -> list[int]:
    """For each span, the nearest section around it; -1 for the document itself."""
    kind, around = document.spans.kind, list[int]()
    for parent in document.spans.parent:
        around.append(parent if parent < 0 or kind[parent] == Kind.SECTION else around[parent])
    return around


def _steps(document: Document) -> list[tuple[str, int]]:
    """For each span, its step in paths: its tag, and its number, from 1, among the siblings with the same tag."""
    siblings, steps = Counter[tuple[int, int]](), []
    for parent, tag in zip(document.spans.parent, document.spans.tag, strict=True):
        siblings[parent, tag] += 1
        steps.append((document.labels[tag], siblings[parent, tag]))
    return steps


def _path_below(steps: Sequence[tuple[str, int]], parent: Sequence[int], span: int, section: int) -> str:
    """The path of a span below a section around it. There may be other elements between both."""
    below = []
    while span != section:
        below.append(steps[span])
        span = parent[span]
    return element_path(reversed(below))
