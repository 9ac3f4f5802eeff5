"""What every document must satisfy, whatever made it."""

from __future__ import annotations

import json
from pathlib import Path

from perikope.document.tree import Document, Kind

GOLDEN = Path(__file__).parent.parent / "golden"


def check_tree(document: Document) -> None:
    """Assert the invariants of the tree of spans."""
    spans = document.spans
    assert document.id.strip()
    assert spans.parent[0] == -1
    assert spans.kind[0] == Kind.SECTION
    assert (spans.start[0], spans.end[0]) == (0, len(document.text))
    for span in range(1, len(spans)):
        parent = spans.parent[span]
        assert 0 <= parent < span, "a parent comes before its children"
        assert spans.start[parent] <= spans.start[span] <= spans.end[span] <= spans.end[parent], "a child lies inside its parent"
        is_mark = spans.kind[span] == Kind.MARK
        assert is_mark or spans.kind[parent] in (Kind.SECTION, Kind.ELEMENT), "passages and titles hold marks only"
        assert not is_mark or spans.start[span] < spans.end[span], "a mark is not empty"
    last_end = 0
    for passage in document.of_kind(Kind.PASSAGE):
        assert spans.start[passage] >= last_end, "passages do not overlap and come in reading order"
        last_end = spans.end[passage]
    document.text.encode("utf-8")
    json.dumps([document.id, dict(document.metadata), document.cites, list(document.span_ids.values())], allow_nan=False).encode("utf-8")


def passages(document: Document) -> list[str]:
    """The texts of all passages, in reading order."""
    return [document.text_of(passage) for passage in document.of_kind(Kind.PASSAGE)]


def titles(document: Document) -> list[str]:
    """The texts of all titles, in reading order."""
    return [document.text_of(title) for title in document.of_kind(Kind.TITLE)]


def describe(document: Document) -> str:
    """Everything a document holds, as text for golden files."""
    head = {"metadata": dict(document.metadata), "cites": list(document.cites)}
    return f"{document.id} {json.dumps(head, ensure_ascii=False)}\n{document.outline()}"
