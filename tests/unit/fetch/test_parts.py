"""Documents ranked by weighted parts equal documents that are nothing but these parts."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perikope.core.errors import UsageError
from perikope.document.tree import Kind, TreeBuilder
from perikope.fetch.models import parse_fetch_model
from perikope.fetch.parts import check_parts, fetch_parts, parse_parts
from perikope.fetch.search import fetch
from perikope.query.terms import parse_query
from perikope.text.analysis import Analyzer
from tests.support.collections import WORDS, index_of, plain_document

words = st.lists(st.sampled_from(WORDS), max_size=6)
some_words = st.lists(st.sampled_from(WORDS), min_size=1, max_size=6)
patents = st.lists(st.fixed_dictionaries({"abstract": some_words, "claims": words, "description": words}), min_size=1, max_size=6)


def patent(id, parts):
    builder = TreeBuilder(id)
    for part, text in parts.items():
        if text:
            with builder.span(Kind.SECTION, part, part=part):
                builder.passage(" ".join(text))
    return builder.build()


def ranking(snapshot, found):
    return {snapshot.document_id(number): score for number, score in zip(found.documents.tolist(), found.scores.tolist(), strict=True)}


@settings(max_examples=60, deadline=None)
@given(
    patents, st.lists(st.sampled_from(WORDS[:5]), min_size=1, max_size=3), st.integers(0, 3), st.sampled_from(["bm25", "pl2", "lm", "sim"])
)
def test_whole_weights_repeat_the_text(texts, query, cut, model):
    """A part of weight 2 ranks as if its text occurred twice."""
    weighted = index_of([patent(f"d{i}", parts) for i, parts in enumerate(texts)], [min(cut, len(texts))])._snapshot
    repeated = [plain_document(f"d{i}", "", " ".join([*parts["abstract"], *parts["claims"] * 2])) for i, parts in enumerate(texts)]
    same = index_of(repeated)._snapshot
    parsed = parse_query(" ".join(query), Analyzer(), ["en"])
    found = fetch_parts(weighted, parsed, parse_fetch_model(model), 10, {"abstract": 1.0, "claims": 2.0})
    expected = fetch(same, parsed, parse_fetch_model(model), 10)
    assert ranking(weighted, found) == pytest.approx(ranking(same, expected), rel=1e-9)


def test_a_word_outside_the_parts_does_not_count():
    index = index_of([patent("d1", {"abstract": ["pump"], "claims": ["valve"]}), patent("d2", {"claims": ["pump", "pump"]})])
    assert [hit.document for hit in index.search("pump", model="bm25", fetch_parts={"abstract": 1})] == ["d1"]
    assert Counter(hit.document for hit in index.search("pump", model="bm25", fetch_parts={"abstract": 1, "claims": 1})) == {
        "d1": 1,
        "d2": 1,
    }


def test_mistakes_are_named():
    snapshot = index_of([patent("d1", {"abstract": ["pump"]})])._snapshot
    with pytest.raises(UsageError, match="unknown part 'claim'; valid: abstract"):
        check_parts(snapshot, {"claim": 1.0})
    with pytest.raises(UsageError, match="must be above 0"):
        check_parts(snapshot, {"abstract": 0.0})
    with pytest.raises(UsageError, match="no parts"):
        check_parts(index_of([plain_document("d1", "", "pump")])._snapshot, {"abstract": 1.0})
    with pytest.raises(UsageError, match="title=2,abstract"):
        parse_parts("title=two")
