"""Whatever is found and whatever the budget: a context keeps to it, quotes exactly, and repeats nothing."""

import re
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from perikope.core.names import encode
from perikope.document.segmentation import segmenter
from perikope.search.context import border_length, count_words
from tests.support.collections import collections, index_of
from tests.support.examples import examples

MEASURES = [
    count_words,
    len,
    lambda text: len(text.encode()) // 4,
    lambda text: len(re.findall(r"\w+|[^\w\s]", text)),
    lambda text: 7 * len(set(text.split())),  # adds up in no way at all
]


@examples(150)
@given(
    collections(max_size=4),
    st.sampled_from(["markup", "words:3", "windows:4/2"]),
    st.sampled_from(["pump", "rotor magnet", "valve seal shaft pump"]),
    st.sampled_from([1, 3, 8, 30]),
    st.integers(1, 120),
    st.sampled_from(MEASURES),
    st.integers(0, 3),
    st.booleans(),
)
def test_a_context(documents, segment, query, k, budget, tokens, around, elements):
    documents = [segmenter(segment)(document) for document in documents]
    texts = {document.id: document.text for document in documents}
    results = index_of(documents).search(query, k=k, elements=elements, model="bm25")
    context = results.context(budget, tokens=tokens, around=around)
    hits = {hit.rank: hit for hit in results}

    assert not context.text or tokens(context.text) == context.tokens <= budget
    assert [piece.ranks for piece in context.pieces if not piece.ranks] == [], "every piece holds a hit"
    ranks = [rank for piece in context.pieces for rank in piece.ranks]
    assert len(set(ranks)) == len(ranks) == len(results) - context.left_out
    for piece in context.pieces:
        assert texts[piece.document][piece.start : piece.end] == piece.text
        for rank in piece.ranks:
            hit = hits[rank]
            assert hit.document == piece.document
            assert piece.start <= hit.start <= hit.end <= piece.end, "no passage is split"
            if not elements:
                assert (hit.path, hit.passage in piece.passages) == (piece.path, True)
    spans = sorted((piece.document, piece.start, piece.end) for piece in context.pieces)
    assert all(one[0] != other[0] or one[2] <= other[1] for one, other in pairwise(spans)), "nothing stands there twice"

    again = index_of(documents).search(query, k=k, elements=elements, model="bm25").context(budget, tokens=tokens, around=around)
    assert again == context


@examples(80)
@given(collections(max_size=4), st.integers(10, 200), st.integers(0, 2))
def test_the_text_can_be_taken_apart_at_its_borders(documents, budget, around):
    context = index_of(documents).search("pump rotor", k=20).context(budget, around=around)
    length = border_length(piece.text for piece in context.pieces)
    found, document = [], ""
    for line in context.text.split("\n"):
        if line.startswith("=" * length):
            document = line[length + 1 :]
        elif line.startswith("-" * length):
            found.append((document, []))
        elif context.text:
            found[-1][1].append(line)
    assert [(name, "\n".join(lines)) for name, lines in found] == [(encode(piece.document), piece.text) for piece in context.pieces]


@examples(60)
@given(collections(max_size=3), st.integers(1, 100))
def test_the_best_hit_is_there_if_anything_is_and_it_fits(documents, budget):
    results = index_of(documents).search("pump", k=5, model="bm25")
    context = results.context(budget)
    if len(results):
        alone = index_of(documents).search("pump", k=1, model="bm25").context(budget, around=0)
        assert bool(alone.pieces) == (1 in [rank for piece in context.pieces for rank in piece.ranks])
