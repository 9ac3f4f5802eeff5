"""A merge widens columns whose numbers fit the type of each segment but not the merged one."""

from perikope.document.tree import TreeBuilder
from tests.support.collections import index_of


def tagged(id, first, count):
    builder = TreeBuilder(id)
    for number in range(first, first + count):
        builder.passage("pump", tag=f"t{number}")
    return builder.build()


def test_labels_of_all_segments_together_may_need_wider_numbers():
    index = index_of([tagged("a", 0, 40_000), tagged("b", 40_000, 40_000)], [1])
    index.compact()
    snapshot = index._snapshot
    assert len(snapshot.segments) == 1
    for document, first in (("a", 0), ("b", 40_000)):
        segment, local = snapshot.locate(snapshot.find_document(document))
        passages = segment.passages_of(local)
        for number in (0, 39_999):
            span = segment.span_of("passage.span", local, passages.start + number)
            assert segment.label("tag", span) == f"t{first + number}"
